/* SPDX-License-Identifier: Apache-2.0 */
/* Guesses at row numbers. Only their order matters: which side of a join is smaller. The shares below are rules of thumb
 * in the spirit of Selinger et al., "Access Path Selection in a Relational Database Management System" (1979). */
#include <math.h>

#include "optimize/rule_priv.h"

/* Bytes of a row where a source knows its size only. */
#define ROW_BYTES 64.0

static double share_of(const struct gar_expr *predicate)
{
    if (gar_expr_is_call(predicate, "and")) {
        return share_of(predicate->args[0]) * share_of(predicate->args[1]);
    }
    if (gar_expr_is_call(predicate, "or")) {
        return fmin(1.0, share_of(predicate->args[0]) + share_of(predicate->args[1]));
    }
    if (gar_expr_is_call(predicate, "not")) {
        return 1.0 - share_of(predicate->args[0]);
    }
    if (gar_expr_is_call(predicate, "equal")) {
        return 0.05;
    }
    if (predicate->kind == GAR_EXPR_IN_LIST) {
        return fmin(0.5, 0.05 * (double)predicate->set->length);
    }
    if (gar_expr_is_call(predicate, "not_equal") || gar_expr_is_call(predicate, "is_not_null")) {
        return 0.9;
    }
    return 0.3;
}

static double scan_rows(const struct gar_plan *scan)
{
    const struct gar_scan_provider *provider = scan->provider;
    double rows = (double)provider->size_hint_rows;
    if (rows < 0 && provider->vtable->row_count != NULL) {
        rows = (double)provider->vtable->row_count(scan->provider);
    }
    if (rows < 0) {
        rows = provider->size_hint_bytes >= 0 ? (double)provider->size_hint_bytes / ROW_BYTES : -1;
    }
    if (rows >= 0 && scan->filter != NULL) {
        rows *= share_of(scan->filter);
    }
    return scan->limit >= 0 && (rows < 0 || (double)scan->limit < rows) ? (double)scan->limit
                                                                        : rows;
}

/* Keys of the larger side are taken to be in the smaller one as often as its rows were kept. */
static double join_rows(const struct gar_plan *join, double left, double right)
{
    switch (join->join) {
    case GAR_JOIN_SEMI:
    case GAR_JOIN_ANTI: return left * 0.5;
    case GAR_JOIN_LEFT: return fmax(left, 1.0);
    case GAR_JOIN_RIGHT: return fmax(right, 1.0);
    case GAR_JOIN_OUTER: return left + right;
    case GAR_JOIN_INNER: break;
    }
    const double condition =
        join->expr_count > 2 * join->key_count ? share_of(join->exprs[2 * join->key_count]) : 1.0;
    return condition * (join->key_count > 0 ? fmax(left, right) : left * right);
}

/* Recursion is bounded by GAR_PLAN_DEPTH_MAX. */
double gar_plan_estimate_rows(const struct gar_plan *plan)
{
    if (plan->kind == GAR_PLAN_SCAN) {
        return scan_rows(plan);
    }
    double rows[2] = {0, 0};
    double sum = 0;
    for (int64_t i = 0; i < plan->input_count; i++) {
        const double input = gar_plan_estimate_rows(plan->inputs[i]);
        if (input < 0) {
            return plan->limit >= 0 ? (double)plan->limit : -1;
        }
        rows[i > 0] = input;
        sum += input;
    }
    switch (plan->kind) {
    case GAR_PLAN_FILTER: return rows[0] * share_of(plan->exprs[0]);
    case GAR_PLAN_LIMIT:
    case GAR_PLAN_SORT: return plan->limit >= 0 ? fmin(rows[0], (double)plan->limit) : rows[0];
    case GAR_PLAN_AGGREGATE: return plan->key_count > 0 ? fmax(rows[0] * 0.1, 1.0) : 1.0;
    case GAR_PLAN_DISTINCT: return fmax(rows[0] * 0.1, 1.0);
    case GAR_PLAN_JOIN: return join_rows(plan, rows[0], rows[1]);
    case GAR_PLAN_SCAN:
    case GAR_PLAN_PROJECT:
    case GAR_PLAN_CONCAT:
    case GAR_PLAN_WRITE: break;
    }
    return sum;
}
