/* SPDX-License-Identifier: Apache-2.0 */
/* What the two files of casts share. */
#ifndef GAR_EXPR_CAST_PRIV_H
#define GAR_EXPR_CAST_PRIV_H

#include "base/alloc.h"
#include "expr/eval_priv.h"
#include "kernels/temporal.h"

/* Lane i cannot be cast: null for try_cast; an error naming value, types, row and reason if the lane counts. */
enum gar_status gar_cast_fails(struct gar_eval *eval, const struct gar_instr *instr,
                               struct gar_reg **args, struct gar_reg *out, const uint64_t *active,
                               int64_t i, int64_t n, const char *reason, struct gar_error *err);
enum gar_status gar_choose_cast_text(const struct gar_bound *node, struct gar_instr *instr,
                                     struct gar_error *err);

#endif
