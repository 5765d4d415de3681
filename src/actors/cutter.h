/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of any size in, batches of exactly n rows out (the last may have fewer). Rows are shared where a piece lies in
 * one batch, and copied where it spans several. */
#ifndef GAR_ACTORS_CUTTER_H
#define GAR_ACTORS_CUTTER_H

#include "arrow/batch.h"

struct gar_cutter {
    struct gar_schema *schema; /* owned reference */
    struct gar_memory *memory; /* borrowed */
    int64_t rows;              /* of a piece */
    struct gar_batch **queue;  /* owned; items too */
    int64_t first;             /* of the queue that still has rows */
    int64_t count;
    int64_t capacity;
    int64_t offset; /* rows of the first that are taken */
    int64_t held;   /* rows in the queue not taken */
    bool is_ended;
};

/* rows >= 1, or 0: as they come. Threads: one at a time. */
void gar_cutter_init(struct gar_cutter *cutter, struct gar_schema *schema,
                     struct gar_memory *memory, int64_t rows);
/* Takes the batch (moved, also on failure); gathered. Errors: GAR_ERR_NOMEM. */
GAR_MUST_USE enum gar_status gar_cutter_put(struct gar_cutter *cutter, struct gar_batch *batch,
                                            struct gar_error *err);
/* No more will be put: what is left comes out. */
void gar_cutter_end(struct gar_cutter *cutter);
/* GAR_OK with a piece; GAR_PENDING: put more; GAR_EOF. Errors: GAR_ERR_NOMEM. */
GAR_MUST_USE enum gar_status gar_cutter_take(struct gar_cutter *cutter, struct gar_batch **out,
                                             struct gar_error *err);
void gar_cutter_destroy(struct gar_cutter *cutter);

#endif
