/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of whole partitions that lie in memory: sorted, cut into pieces, computed, and put back into the order they came in.
 * The window operator has one of all rows, or one after the other of rows that lay on disk (window_spill.h). */
#ifndef GAR_EXEC_OPS_WINDOW_PART_H
#define GAR_EXEC_OPS_WINDOW_PART_H

#include "exec/ops/window.h"

struct gar_sorter;

/* What all parts of an operator share; constant. */
struct gar_window_task {
    const struct gar_window *shape; /* borrowed, as all of this */
    struct gar_window_call *calls;
    int64_t call_count;
    int64_t computed_count;          /* columns: partition, order, then arguments of calls */
    const struct gar_schema *schema; /* of the result: input's columns, then one a call */
    int64_t input_count;
    struct gar_memory *memory;
};

/* Whole partitions: sorted rows [first, end). */
struct gar_window_piece {
    int64_t first;
    int64_t end;
    struct gar_column **results; /* owned; a column a call */
};

/* A zeroed struct is safe to destroy. */
struct gar_window_part {
    const struct gar_window_task *task; /* borrowed */
    int64_t rows;
    struct gar_column **computed;    /* owned; the caller fills it, in the order of the input */
    struct gar_sorter *parts;        /* owned; compares partitions; NULL: one partition */
    struct gar_sorter *sorter;       /* owned; by partition and order; NULL: no keys at all */
    struct gar_buffer *order;        /* owned; uint32_t: rows in sorted order */
    struct gar_buffer *places;       /* owned; uint32_t: place of each row in it */
    struct gar_window_piece *pieces; /* owned */
    int64_t piece_count;
    int64_t piece_capacity;
    struct gar_column **results; /* owned; in sorted order */
};

/* Errors of all: GAR_ERR_NOMEM, GAR_ERR_CANCELLED (base/stop.h), those of the calls. */
GAR_MUST_USE enum gar_status gar_window_part_init(struct gar_window_part *part,
                                                  const struct gar_window_task *task, int64_t rows,
                                                  struct gar_error *err);
void gar_window_part_destroy(struct gar_window_part *part);
/* Sort, and cut between partitions. */
GAR_MUST_USE enum gar_status gar_window_part_sort(struct gar_window_part *part,
                                                  struct gar_error *err);
/* All calls over a piece. Threads: one for each piece. */
GAR_MUST_USE enum gar_status gar_window_part_compute(struct gar_window_part *part, int64_t piece,
                                                     struct gar_error *err);
/* All pieces are computed: what only computing needed is not needed any more. */
void gar_window_part_computed(struct gar_window_part *part);
/* The results of one call joined, in sorted order; and where each row is in it. Threads: one for each. */
GAR_MUST_USE enum gar_status gar_window_part_join(struct gar_window_part *part, int64_t call,
                                                  struct gar_error *err);
GAR_MUST_USE enum gar_status gar_window_part_places(struct gar_window_part *part,
                                                    struct gar_error *err);
/* All of that is done. */
void gar_window_part_joined(struct gar_window_part *part);

#endif
