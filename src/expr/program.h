/* SPDX-License-Identifier: Apache-2.0 */
/* Flat programs: expressions compiled against a schema and run over batches, vector by vector (1-4 K rows that stay in
 * L1/L2), with implicit casts made explicit. A program is immutable and shared; each worker has its own gar_eval. */
#ifndef GAR_EXPR_PROGRAM_H
#define GAR_EXPR_PROGRAM_H

#include "expr/expr.h"

struct gar_program;
struct gar_eval;

/* No aggregates. Common sub-expressions are computed once. Errors as gar_expr_type. Owns: caller unrefs *out. */
GAR_MUST_USE enum gar_status gar_program_new(const struct gar_schema *input,
                                             struct gar_expr *const *exprs, int64_t count,
                                             struct gar_program **out, struct gar_error *err);
struct gar_program *gar_program_ref(const struct gar_program *program);
void gar_program_unref(struct gar_program *program);
int64_t gar_program_output_count(const struct gar_program *program);
struct gar_type gar_program_output_type(const struct gar_program *program, int64_t i);

/* Scratch of one worker; memory is borrowed and used for outputs too. */
GAR_MUST_USE enum gar_status gar_eval_new(const struct gar_program *program,
                                          struct gar_memory *memory, struct gar_eval **out,
                                          struct gar_error *err);
void gar_eval_free(struct gar_eval *eval);

/* Evaluate all outputs over the batch's selected rows: out[i] has batch->selected rows (dense). A plain column without a
 * selection is passed through as a new reference; dictionary and constant inputs are worked on per entry where
 * the function allows. Errors: GAR_ERR_OVERFLOW, GAR_ERR_CAST, ... naming function, values and row. On error out is untouched. */
GAR_MUST_USE enum gar_status gar_eval_run(struct gar_eval *eval, const struct gar_batch *batch,
                                          struct gar_column **out, struct gar_error *err);
/* A program with one boolean output as a predicate: *out_selection gets ascending row numbers (uint32_t, of batch rows)
 * where it is true, *out_selected how many; *out_selection stays NULL when every row of a selection-free batch passes. */
GAR_MUST_USE enum gar_status gar_eval_filter(struct gar_eval *eval, const struct gar_batch *batch,
                                             struct gar_buffer **out_selection,
                                             int64_t *out_selected, struct gar_error *err);
/* The value of an expression without columns. Caller destroys *out. */
GAR_MUST_USE enum gar_status gar_expr_fold(const struct gar_expr *expr, struct gar_value *out,
                                           struct gar_error *err);

#endif
