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
/* A projection some of whose expressions have calls over windows: WINDOW nodes and a PROJECT. */
GAR_MUST_USE enum gar_status gar_plan_windows(struct gar_plan *input, struct gar_expr *const *exprs,
                                              int64_t count, struct gar_plan **out,
                                              struct gar_error *err);
/* Is the expression a truth value over the schema? Errors: GAR_ERR_TYPE naming it and its type, GAR_ERR_COLUMN. */
GAR_MUST_USE enum gar_status gar_plan_check_predicate(const struct gar_expr *predicate,
                                                      const struct gar_schema *schema,
                                                      struct gar_error *err);
/* A JOIN over other inputs. Columns of the result that they do not have any more are left out. */
GAR_MUST_USE enum gar_status gar_plan_join_over(const struct gar_plan *join,
                                                struct gar_plan *const *inputs,
                                                struct gar_plan **out, struct gar_error *err);

/* The condition (owned) and the rest of an as-of join over `on` expressions of one type. Errors: GAR_ERR_TYPE when values
 * of the type have no distance or the tolerance is none of it, GAR_ERR_VALUE for a negative tolerance. */
GAR_MUST_USE enum gar_status gar_plan_make_asof(const struct gar_asof_spec *spec,
                                                const struct gar_schema *left_schema,
                                                struct gar_expr *left, struct gar_expr *right,
                                                struct gar_expr **out_condition,
                                                struct gar_asof *out, struct gar_error *err);

/* ---- user functions ---- */

bool gar_plan_has_udf(struct gar_expr *const *exprs, int64_t count);
/* Takes the calls out of exprs: out_exprs[i] (count places, zeroed, filled with references also on failure) are the
 * same over *out_plan, under the same names. From first_aggregate on only calls inside aggregates. */
GAR_MUST_USE enum gar_status gar_plan_split_udfs(struct gar_plan *input,
                                                 struct gar_expr *const *exprs, int64_t count,
                                                 int64_t first_aggregate, bool may_expand,
                                                 struct gar_plan **out_plan,
                                                 struct gar_expr **out_exprs,
                                                 struct gar_error *err);
/* plan with the columns of schema alone. */
GAR_MUST_USE enum gar_status gar_plan_only_columns(struct gar_plan *plan,
                                                   const struct gar_schema *schema,
                                                   struct gar_plan **out, struct gar_error *err);
/* A node whose output is its input's: built over the UDF nodes, then cut to input's columns. */
typedef enum gar_status (*gar_plan_build_fn)(struct gar_plan *input, struct gar_expr *const *exprs,
                                             const void *context, struct gar_plan **out,
                                             struct gar_error *err);
GAR_MUST_USE enum gar_status gar_plan_around_udfs(struct gar_plan *input,
                                                  struct gar_expr *const *exprs, int64_t count,
                                                  gar_plan_build_fn build, const void *context,
                                                  struct gar_plan **out, struct gar_error *err);

#endif
