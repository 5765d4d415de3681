/* SPDX-License-Identifier: Apache-2.0 */
/* What the builders of plan/ share. */
#ifndef GAR_PLAN_PLAN_PRIV_H
#define GAR_PLAN_PLAN_PRIV_H

#include "plan/plan.h"

/* A node of this kind over inputs with references to exprs; schema and the rest are the caller's to set. limit is -1. */
GAR_MUST_USE enum gar_status gar_plan_new_node(enum gar_plan_kind kind,
                                               struct gar_plan *const *inputs, int64_t input_count,
                                               struct gar_expr *const *exprs, int64_t expr_count,
                                               struct gar_plan **out, struct gar_error *err);
/* One field for each expression over `input`: name, type; a plain column keeps its metadata. Duplicate names are an
 * error. Aggregates are allowed from position `first_aggregate` on (pass count for none). */
GAR_MUST_USE enum gar_status gar_plan_schema_of(const struct gar_schema *input,
                                                struct gar_expr *const *exprs, int64_t count,
                                                int64_t first_aggregate, struct gar_schema **out,
                                                struct gar_error *err);
/* Is the expression a truth value over the schema? Errors: GAR_ERR_TYPE naming it and its type, GAR_ERR_COLUMN. */
GAR_MUST_USE enum gar_status gar_plan_check_predicate(const struct gar_expr *predicate,
                                                      const struct gar_schema *schema,
                                                      struct gar_error *err);
/* A JOIN over other inputs. Columns of the result that they do not have any more are left out. */
GAR_MUST_USE enum gar_status gar_plan_join_over(const struct gar_plan *join,
                                                struct gar_plan *const *inputs,
                                                struct gar_plan **out, struct gar_error *err);

#endif
