/* SPDX-License-Identifier: Apache-2.0 */
/* Rewriting expression trees: what builders and optimizer rules share. */
#ifndef GAR_PLAN_REWRITE_H
#define GAR_PLAN_REWRITE_H

#include "expr/expr.h"

/* Asked for every node from the top. Sets *out to a new reference that takes the node's place (its arguments are then
 * not visited), or leaves it NULL to go on below. */
typedef enum gar_status (*gar_rewrite_fn)(const struct gar_expr *expr, void *context,
                                          struct gar_expr **out, struct gar_error *err);

/* The tree with replacements made; unchanged parts are shared. Errors: those of fn, GAR_ERR_VALUE (depth), GAR_ERR_NOMEM.
 * Owns: caller unrefs *out. */
GAR_MUST_USE enum gar_status gar_expr_rewrite(const struct gar_expr *expr, gar_rewrite_fn fn,
                                              void *context, struct gar_expr **out,
                                              struct gar_error *err);
/* The same from the leaves up: fn sees a node whose arguments are rewritten already. */
GAR_MUST_USE enum gar_status gar_expr_rewrite_up(const struct gar_expr *expr, gar_rewrite_fn fn,
                                                 void *context, struct gar_expr **out,
                                                 struct gar_error *err);

/* Every column replaced by the expression (aliases stripped) that makes it in a projection with this schema. */
GAR_MUST_USE enum gar_status gar_expr_inline(const struct gar_expr *expr,
                                             const struct gar_schema *schema,
                                             struct gar_expr *const *exprs, struct gar_expr **out,
                                             struct gar_error *err);
/* expr under `name`: itself if that is its name already, else with an alias (an outer alias is replaced). */
GAR_MUST_USE enum gar_status gar_expr_named(struct gar_expr *expr, const char *name,
                                            struct gar_expr **out, struct gar_error *err);
/* Without aliases at the top. Borrowed from expr. */
struct gar_expr *gar_expr_strip_alias(struct gar_expr *expr);
/* Is it a plain column, maybe under aliases? Then its name, else NULL. Borrowed. */
const char *gar_expr_column_name(const struct gar_expr *expr);
/* Is it a call of the function with this registry name? */
bool gar_expr_is_call(const struct gar_expr *expr, const char *function);
void gar_exprs_free(struct gar_expr **exprs, int64_t count);

#endif
