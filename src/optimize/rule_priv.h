/* SPDX-License-Identifier: Apache-2.0 */
/* What rules are and what they share. */
#ifndef GAR_OPTIMIZE_RULE_PRIV_H
#define GAR_OPTIMIZE_RULE_PRIV_H

#include "plan/plan.h"
#include "plan/rewrite.h"

/* A rule gives a new reference: to `plan` itself when there is nothing to do, else to a plan with the same schema and
 * the same result. */
typedef enum gar_status (*gar_rule_fn)(const struct gar_plan *plan, struct gar_plan **out,
                                       struct gar_error *err);

enum gar_status gar_rule_fold_constants(const struct gar_plan *plan, struct gar_plan **out,
                                        struct gar_error *err);
enum gar_status gar_rule_simplify(const struct gar_plan *plan, struct gar_plan **out,
                                  struct gar_error *err);
enum gar_status gar_rule_push_filters(const struct gar_plan *plan, struct gar_plan **out,
                                      struct gar_error *err);
enum gar_status gar_rule_push_limits(const struct gar_plan *plan, struct gar_plan **out,
                                     struct gar_error *err);
enum gar_status gar_rule_merge_projects(const struct gar_plan *plan, struct gar_plan **out,
                                        struct gar_error *err);
enum gar_status gar_rule_prune_columns(const struct gar_plan *plan, struct gar_plan **out,
                                       struct gar_error *err);
enum gar_status gar_rule_count_rows(const struct gar_plan *plan, struct gar_plan **out,
                                    struct gar_error *err);

enum gar_status gar_rule_split_sums(const struct gar_plan *plan, struct gar_plan **out,
                                    struct gar_error *err);

enum gar_status gar_rule_choose_build(const struct gar_plan *plan, struct gar_plan **out,
                                      struct gar_error *err);

enum gar_status gar_rule_join_filters(const struct gar_plan *plan, struct gar_plan **out,
                                      struct gar_error *err);

enum gar_status gar_rule_order_joins(const struct gar_plan *plan, struct gar_plan **out,
                                     struct gar_error *err);

/* A guess at the number of rows that the plan gives, from file statistics and rules of thumb; -1: no idea. */
double gar_plan_estimate_rows(const struct gar_plan *plan);
/* At most so many different values has the expression over the plan's rows before any filter below; -1: no idea. */
double gar_plan_distinct_bound(const struct gar_plan *plan, const struct gar_expr *expr);
/* Rows of the source that a column comes from, or of the plan if it is no column of a source; -1: no idea. */
double gar_plan_base_rows(const struct gar_plan *plan, const struct gar_expr *expr);
/* The share of rows that a predicate keeps, over rows of `plan` (NULL: of nothing in particular). */
double gar_expr_share(const struct gar_expr *predicate, const struct gar_plan *plan);

/* Changes one node whose inputs are done: sets *out to a new reference, or leaves it NULL to keep the node. */
typedef enum gar_status (*gar_node_fn)(const struct gar_plan *node, struct gar_plan **out,
                                       struct gar_error *err);
/* The plan with fn applied from the leaves up. */
GAR_MUST_USE enum gar_status gar_plan_map(const struct gar_plan *plan, gar_node_fn fn,
                                          struct gar_plan **out, struct gar_error *err);
/* node over `input` instead of its only input: the node itself when that is the same. */
GAR_MUST_USE enum gar_status gar_plan_over(const struct gar_plan *node, struct gar_plan *input,
                                           struct gar_plan **out, struct gar_error *err);

/* Changes one expression of a node, given over the schema it is evaluated on; a new reference in *out. */
typedef enum gar_status (*gar_node_expr_fn)(struct gar_expr *expr, const struct gar_schema *schema,
                                            struct gar_expr **out, struct gar_error *err);
/* The node with all its expressions changed; output names are kept, and so is an expression whose type would change.
 * NULL in *out when nothing did. */
GAR_MUST_USE enum gar_status gar_plan_map_exprs(const struct gar_plan *node, gar_node_expr_fn fn,
                                                struct gar_plan **out, struct gar_error *err);

/* A growing list that owns its expressions. Zeroed is empty. */
struct gar_expr_list {
    struct gar_expr **items;
    int64_t count;
    int64_t capacity;
};
/* Moves expr in, also on failure. */
GAR_MUST_USE enum gar_status gar_expr_list_add(struct gar_expr_list *list, struct gar_expr *expr,
                                               struct gar_error *err);
void gar_expr_list_destroy(struct gar_expr_list *list);
/* Adds the parts of a conjunction. */
GAR_MUST_USE enum gar_status gar_expr_list_add_conjuncts(struct gar_expr_list *list,
                                                         struct gar_expr *expr,
                                                         struct gar_error *err);
/* All of count > 0 expressions joined by and, balanced. */
GAR_MUST_USE enum gar_status gar_expr_join_and(struct gar_expr *const *items, int64_t count,
                                               struct gar_expr **out, struct gar_error *err);
/* Can evaluating it fail on some row (overflow, a cast)? When in doubt, yes. */
bool gar_expr_may_fail(const struct gar_expr *expr);
/* Nodes in the tree. */
int64_t gar_expr_size(const struct gar_expr *expr);
/* A literal boolean: *out_truth 1, 0 or -1 for null. */
bool gar_expr_is_truth(const struct gar_expr *expr, int32_t *out_truth);

#endif
