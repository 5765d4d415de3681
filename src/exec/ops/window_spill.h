/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over rows that lie on disk.
 *
 * 1. Workers write their batches, the input's columns and the computed ones apart from each other.
 * 2. Batches that follow each other in the input are a group. The computed columns of each group are divided by the hash of
 *    the partition (an item a group), so that the rows of a part lie in the order of the input, group by group.
 * 3. Each part, some whole partitions, is read, computed in memory (window_part.h), and its results are written group by
 *    group (an item a part).
 * 4. A group of the result is its batches, read again, beside the results of all parts.
 *
 * Memory: the computed columns of a part some times, one part a worker; a group's results a worker. A partition that is larger
 * than memory is an error, and so is a window without partitions over so many rows. Blocks are given back once they are
 * read. */
#ifndef GAR_EXEC_OPS_WINDOW_SPILL_H
#define GAR_EXEC_OPS_WINDOW_SPILL_H

#include "exec/exec_priv.h"
#include "exec/ops/window_part.h"

struct gar_window_spill;

/* Nothing is written yet. task, query and types (of the computed columns) are borrowed; input too. Owns: caller frees. */
GAR_MUST_USE enum gar_status gar_window_spill_new(const struct gar_window_task *task,
                                                  struct gar_query *query, struct gar_schema *input,
                                                  const struct gar_type *types, int32_t workers,
                                                  struct gar_window_spill **out,
                                                  struct gar_error *err);
void gar_window_spill_free(struct gar_window_spill *spill);
/* compute, each worker for itself: write a batch that stands at (seq, row): input's columns, then computed ones (borrowed). */
GAR_MUST_USE enum gar_status gar_window_spill_put(struct gar_window_spill *spill, int32_t worker,
                                                  struct gar_column *const *columns, int64_t rows,
                                                  int64_t seq, int64_t row, struct gar_error *err);
/* role: all is put; how many groups to divide. */
GAR_MUST_USE enum gar_status gar_window_spill_plan(struct gar_window_spill *spill,
                                                   int64_t *out_groups, struct gar_error *err);
/* compute, once for each. */
GAR_MUST_USE enum gar_status gar_window_spill_divide(struct gar_window_spill *spill, int64_t group,
                                                     struct gar_error *err);
/* role: how many parts to compute. */
int64_t gar_window_spill_parts(const struct gar_window_spill *spill);
/* compute, once for each. */
GAR_MUST_USE enum gar_status gar_window_spill_compute(struct gar_window_spill *spill, int64_t part,
                                                      struct gar_error *err);
/* Rows of a group of the result. */
int64_t gar_window_spill_rows(const struct gar_window_spill *spill, int64_t group);
/* compute, one thread for a group: up to max_rows of its rows from `first` on, which rises from call to call; *out_rows tells
 * how many, at least one. columns: places for all of the result's. */
GAR_MUST_USE enum gar_status gar_window_spill_read(struct gar_window_spill *spill, int64_t group,
                                                   int64_t first, int64_t max_rows,
                                                   struct gar_column **columns, int64_t *out_rows,
                                                   struct gar_error *err);
/* The group is not read any more. */
void gar_window_spill_leave(struct gar_window_spill *spill, int64_t group);

#endif
