/* SPDX-License-Identifier: Apache-2.0 */
/* Guesses at row numbers. Only their order matters: which side of a join is smaller, which join comes first. Shares of
 * predicates that no statistics help with are rules of thumb in the spirit of Selinger et al., "Access Path Selection in a
 * Relational Database Management System" (1979). */
#include <math.h>
#include <string.h>

#include "optimize/rule_priv.h"

/* Bytes of a row where a source knows its size only. */
#define ROW_BYTES 64.0

/* ---- columns ---- */

static const struct gar_expr *bare(const struct gar_expr *expr)
{
    while (expr->kind == GAR_EXPR_ALIAS || expr->kind == GAR_EXPR_CAST) {
        expr = expr->args[0];
    }
    return expr;
}

static double source_rows(const struct gar_scan_provider *provider)
{
    double rows = (double)provider->size_hint_rows;
    if (rows < 0 && provider->vtable->row_count != NULL) {
        struct gar_scan_provider *asked = NULL;
        memcpy(&asked, &provider, sizeof asked); /* row_count changes nothing */
        rows = (double)provider->vtable->row_count(asked);
    }
    if (rows < 0 && provider->size_hint_bytes >= 0) {
        rows = (double)provider->size_hint_bytes / ROW_BYTES;
    }
    return rows;
}

/* The scan that column `name` of the plan comes from unchanged, and its position there; NULL: none. */
static const struct gar_plan *find_scan(const struct gar_plan *plan, const char *name,
                                        int64_t *out_position)
{
    while (plan->kind != GAR_PLAN_SCAN) {
        const int64_t at = gar_schema_find(plan->schema, name);
        if (at < 0 || plan->input_count == 0) {
            return NULL;
        }
        switch (plan->kind) {
        case GAR_PLAN_PROJECT:
        case GAR_PLAN_AGGREGATE: {
            const struct gar_expr *made = bare(plan->exprs[at]);
            if (made->kind != GAR_EXPR_COLUMN) {
                return NULL;
            }
            name = made->name;
            plan = plan->inputs[0];
            break;
        }
        case GAR_PLAN_JOIN:
            plan = plan->inputs[plan->columns[at] < plan->inputs[0]->schema->count ? 0 : 1];
            break;
        case GAR_PLAN_CONCAT:
        case GAR_PLAN_WRITE: return NULL;
        default: plan = plan->inputs[0]; break; /* rows of the input, or some of them */
        }
    }
    const int64_t at = gar_schema_find(plan->schema, name);
    const int64_t in_source = at >= 0 ? -1 : gar_schema_find(plan->provider->schema, name);
    *out_position = at >= 0 ? plan->columns[at] : in_source;
    return *out_position >= 0 ? plan : NULL;
}

static bool has_whole_values(struct gar_type type)
{
    return gar_type_is_integer(type) || type.id == GAR_DATE;
}

double gar_plan_distinct_bound(const struct gar_plan *plan, const struct gar_expr *expr)
{
    const struct gar_expr *column = bare(expr);
    int64_t position = 0;
    const struct gar_plan *scan =
        column->kind == GAR_EXPR_COLUMN ? find_scan(plan, column->name, &position) : NULL;
    if (scan == NULL) {
        return gar_plan_estimate_rows(plan);
    }
    double bound = source_rows(scan->provider);
    double least = 0;
    double greatest = 0;
    const struct gar_scan_provider_vtable *vtable = scan->provider->vtable;
    if (has_whole_values(scan->provider->schema->fields[position].type) &&
        vtable->column_range != NULL &&
        vtable->column_range(scan->provider, position, &least, &greatest)) {
        const double values = greatest - least + 1;
        bound = bound < 0 ? values : fmin(bound, values);
    }
    return bound;
}

double gar_plan_base_rows(const struct gar_plan *plan, const struct gar_expr *expr)
{
    const struct gar_expr *column = bare(expr);
    int64_t position = 0;
    const struct gar_plan *scan =
        column->kind == GAR_EXPR_COLUMN ? find_scan(plan, column->name, &position) : NULL;
    return scan != NULL ? source_rows(scan->provider) : gar_plan_estimate_rows(plan);
}

/* ---- predicates ---- */

static bool number_of(const struct gar_expr *expr, double *out)
{
    const struct gar_expr *literal = bare(expr);
    if (literal->kind != GAR_EXPR_LITERAL || !literal->value.is_valid) {
        return false;
    }
    const struct gar_value *v = &literal->value;
    if (gar_type_is_integer(v->type) || v->type.id == GAR_DATE) {
        *out = (double)v->i64;
    } else if (gar_type_is_float(v->type)) {
        *out = v->f64;
    } else if (v->type.id == GAR_DECIMAL128) {
        *out = (double)v->i128 / pow(10.0, (double)v->type.scale);
    } else {
        return false;
    }
    return true;
}

/* Share of values below the literal, by the column's range; -1: no idea. */
static double share_below(const struct gar_expr *column, const struct gar_expr *literal,
                          const struct gar_plan *plan)
{
    double value = 0;
    double least = 0;
    double greatest = 0;
    int64_t position = 0;
    column = bare(column);
    if (plan == NULL || column->kind != GAR_EXPR_COLUMN || !number_of(literal, &value)) {
        return -1;
    }
    const struct gar_plan *scan = find_scan(plan, column->name, &position);
    if (scan == NULL || scan->provider->vtable->column_range == NULL ||
        !scan->provider->vtable->column_range(scan->provider, position, &least, &greatest)) {
        return -1;
    }
    return greatest > least ? fmin(1.0, fmax(0.0, (value - least) / (greatest - least))) : -1;
}

static double comparison_share(const struct gar_expr *call, const struct gar_plan *plan)
{
    const bool is_less = gar_expr_is_call(call, "less") || gar_expr_is_call(call, "less_equal");
    double below = share_below(call->args[0], call->args[1], plan);
    if (below >= 0) {
        return is_less ? below : 1.0 - below;
    }
    below = share_below(call->args[1], call->args[0], plan);
    return below < 0 ? 0.3 : is_less ? 1.0 - below : below;
}

static double equality_share(const struct gar_expr *call, const struct gar_plan *plan)
{
    for (int64_t i = 0; i < 2 && plan != NULL; i++) {
        const struct gar_expr *column = bare(call->args[i]);
        int64_t position = 0;
        const struct gar_plan *scan =
            column->kind == GAR_EXPR_COLUMN ? find_scan(plan, column->name, &position) : NULL;
        if (scan != NULL && has_whole_values(scan->provider->schema->fields[position].type)) {
            return 1.0 / fmax(1.0, gar_plan_distinct_bound(plan, column));
        }
    }
    return 0.05;
}

double gar_expr_share(const struct gar_expr *predicate, const struct gar_plan *plan)
{
    if (gar_expr_is_call(predicate, "and")) {
        return gar_expr_share(predicate->args[0], plan) * gar_expr_share(predicate->args[1], plan);
    }
    if (gar_expr_is_call(predicate, "or")) {
        return fmin(1.0, gar_expr_share(predicate->args[0], plan) +
                             gar_expr_share(predicate->args[1], plan));
    }
    if (gar_expr_is_call(predicate, "not")) {
        return 1.0 - gar_expr_share(predicate->args[0], plan);
    }
    if (gar_expr_is_call(predicate, "equal")) {
        return equality_share(predicate, plan);
    }
    if (gar_expr_is_call(predicate, "less") || gar_expr_is_call(predicate, "less_equal") ||
        gar_expr_is_call(predicate, "greater") || gar_expr_is_call(predicate, "greater_equal")) {
        return comparison_share(predicate, plan);
    }
    if (gar_expr_is_call(predicate, "between")) {
        const double low = share_below(predicate->args[0], predicate->args[1], plan);
        const double high = share_below(predicate->args[0], predicate->args[2], plan);
        return low >= 0 && high >= 0 ? fmax(high - low, 0.001) : 0.1;
    }
    if (predicate->kind == GAR_EXPR_IN_LIST) {
        return fmin(0.5, 0.05 * (double)predicate->set->length);
    }
    if (gar_expr_is_call(predicate, "not_equal") || gar_expr_is_call(predicate, "not_null")) {
        return 0.9;
    }
    static const char *const searches[] = {"like", "ilike", "contains", "startswith", "endswith"};
    for (int64_t i = 0; i < GAR_COUNT_OF(searches); i++) {
        if (gar_expr_is_call(predicate, searches[i])) {
            return 0.1;
        }
    }
    return 0.3;
}

/* ---- nodes ---- */

static double scan_rows(const struct gar_plan *scan)
{
    double rows = source_rows(scan->provider);
    if (rows >= 0 && scan->filter != NULL) {
        rows *= gar_expr_share(scan->filter, scan);
    }
    return scan->limit >= 0 && (rows < 0 || (double)scan->limit < rows) ? (double)scan->limit
                                                                        : rows;
}

/* Different keys of one side: no more than its source has rows. */
static double side_values(const struct gar_plan *join, int64_t side)
{
    double values = 1;
    double most = 0;
    for (int64_t k = 0; k < join->key_count; k++) {
        const struct gar_expr *key = join->exprs[side * join->key_count + k];
        values *= fmax(gar_plan_distinct_bound(join->inputs[side], key), 1.0);
        most = fmax(most, gar_plan_base_rows(join->inputs[side], key));
    }
    return most > 0 ? fmin(values, most) : values;
}

/* Every key of the side with fewer different ones is taken to be on the other side too. */
static double pair_rows(const struct gar_plan *join, double left, double right)
{
    const double values = fmin(side_values(join, 0), side_values(join, 1));
    const double condition = join->expr_count > 2 * join->key_count
                                 ? gar_expr_share(join->exprs[2 * join->key_count], NULL)
                                 : 1.0;
    return condition * left * right / values;
}

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
    return fmax(pair_rows(join, left, right), 1.0);
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
    case GAR_PLAN_FILTER: return rows[0] * gar_expr_share(plan->exprs[0], plan->inputs[0]);
    case GAR_PLAN_LIMIT:
    case GAR_PLAN_SORT: return plan->limit >= 0 ? fmin(rows[0], (double)plan->limit) : rows[0];
    case GAR_PLAN_AGGREGATE: return plan->key_count > 0 ? fmax(rows[0] * 0.1, 1.0) : 1.0;
    case GAR_PLAN_DISTINCT: return fmax(rows[0] * 0.1, 1.0);
    case GAR_PLAN_JOIN: return join_rows(plan, rows[0], rows[1]);
    case GAR_PLAN_SCAN:
    case GAR_PLAN_PROJECT:
    case GAR_PLAN_UDF:
    case GAR_PLAN_WINDOW:
    case GAR_PLAN_CONCAT:
    case GAR_PLAN_WRITE: break;
    }
    return sum;
}
