/* SPDX-License-Identifier: Apache-2.0 */
/* Walks and small tests that rules share. */
#include <string.h>

#include "base/alloc.h"
#include "optimize/rule_priv.h"

enum { FEW_INPUTS = 2 };

enum gar_status gar_plan_over(const struct gar_plan *node, struct gar_plan *input,
                              struct gar_plan **out, struct gar_error *err)
{
    if (node->inputs[0] == input) {
        *out = gar_plan_ref(node);
        return GAR_OK;
    }
    return gar_plan_with_inputs(node, &input, out, err);
}

static enum gar_status map_inputs(const struct gar_plan *plan, gar_node_fn fn,
                                  struct gar_plan **out, struct gar_error *err)
{
    struct gar_plan *few[FEW_INPUTS] = {NULL};
    struct gar_plan **inputs = few;
    if (plan->input_count > FEW_INPUTS) {
        inputs = gar_calloc(plan->input_count, (int64_t)sizeof *inputs);
        if (inputs == NULL) {
            return gar_error_nomem(err, plan->input_count * (int64_t)sizeof *inputs);
        }
    }
    enum gar_status status = GAR_OK;
    bool has_changed = false;
    for (int64_t i = 0; i < plan->input_count && status >= 0; i++) {
        status = gar_plan_map(plan->inputs[i], fn, &inputs[i], err);
        has_changed = has_changed || inputs[i] != plan->inputs[i];
    }
    if (status >= 0) {
        if (has_changed) {
            status = gar_plan_with_inputs(plan, inputs, out, err);
        } else {
            *out = gar_plan_ref(plan);
        }
    }
    for (int64_t i = 0; i < plan->input_count; i++) {
        gar_plan_unref(inputs[i]);
    }
    if (inputs != few) {
        gar_free(inputs);
    }
    return status;
}

enum gar_status gar_plan_map(const struct gar_plan *plan, gar_node_fn fn, struct gar_plan **out,
                             struct gar_error *err)
{
    struct gar_plan *mapped = NULL;
    struct gar_plan *changed = NULL;
    GAR_TRY(map_inputs(plan, fn, &mapped, err));
    const enum gar_status status = fn(mapped, &changed, err);
    if (status < 0 || changed != NULL) {
        gar_plan_unref(mapped);
    }
    if (status >= 0) {
        *out = changed != NULL ? changed : mapped;
    }
    return status;
}

/* ---- expressions of a node ---- */

/* One changed expression: under its old name where the name is the output's, and only if its type stays. */
static enum gar_status map_expr(struct gar_expr *expr, const struct gar_schema *schema,
                                bool is_named, bool is_aggregate, gar_node_expr_fn fn,
                                struct gar_expr **out, struct gar_error *err)
{
    struct gar_expr *changed = NULL;
    GAR_TRY(fn(expr, schema, &changed, err));
    if (changed == expr) {
        *out = changed;
        return GAR_OK;
    }
    struct gar_type before = {0};
    struct gar_type after = {0};
    enum gar_status status = gar_expr_type(expr, schema, is_aggregate, &before, err);
    const bool is_same = status >= 0 &&
                         gar_expr_type(changed, schema, is_aggregate, &after, NULL) >= 0 &&
                         gar_type_equal(before, after);
    if (status >= 0) {
        if (!is_same) {
            *out = gar_expr_ref(expr);
        } else if (is_named) {
            status = gar_expr_named(changed, gar_expr_name(expr), out, err);
        } else {
            *out = gar_expr_ref(changed);
        }
    }
    gar_expr_unref(changed);
    return status;
}

static enum gar_status rebuild(const struct gar_plan *node, struct gar_expr *const *exprs,
                               struct gar_plan **out, struct gar_error *err)
{
    switch (node->kind) {
    case GAR_PLAN_PROJECT:
        return gar_plan_project_exact(node->inputs[0], exprs, node->expr_count, out, err);
    case GAR_PLAN_FILTER: return gar_plan_filter(node->inputs[0], exprs[0], out, err);
    case GAR_PLAN_SORT:
        return gar_plan_sort(node->inputs[0], exprs, node->descending, node->nulls_first,
                             node->expr_count, node->limit, out, err);
    case GAR_PLAN_AGGREGATE:
        return gar_plan_aggregate_exact(node->inputs[0], exprs, node->expr_count, node->key_count,
                                        out, err);
    case GAR_PLAN_DISTINCT:
        return gar_plan_distinct(node->inputs[0], exprs, node->expr_count, out, err);
    case GAR_PLAN_JOIN: {
        struct gar_join_parts parts = gar_plan_join_parts(node);
        parts.exprs = exprs;
        return gar_plan_join_exact(node->inputs[0], node->inputs[1], &parts, out, err);
    }
    case GAR_PLAN_UDF:
        return gar_plan_udf(node->inputs[0], node->udf, exprs, node->expr_count,
                            node->schema->fields[node->schema->count - 1].name, out, err);
    case GAR_PLAN_SCAN:
    case GAR_PLAN_LIMIT:
    case GAR_PLAN_WINDOW:
    case GAR_PLAN_CONCAT:
    case GAR_PLAN_WRITE: break;
    }
    return gar_error_set(err, GAR_ERR_INTERNAL, "plan node of kind %d has no expressions",
                         (int)node->kind);
}

enum gar_status gar_plan_map_exprs(const struct gar_plan *node, gar_node_expr_fn fn,
                                   struct gar_plan **out, struct gar_error *err)
{
    if (node->expr_count == 0 || node->kind == GAR_PLAN_WINDOW) {
        return GAR_OK;
    }
    struct gar_expr **exprs = gar_calloc(node->expr_count, (int64_t)sizeof *exprs);
    if (exprs == NULL) {
        return gar_error_nomem(err, node->expr_count * (int64_t)sizeof *exprs);
    }
    const bool is_named = node->kind == GAR_PLAN_PROJECT || node->kind == GAR_PLAN_AGGREGATE;
    enum gar_status status = GAR_OK;
    bool has_changed = false;
    for (int64_t i = 0; i < node->expr_count && status >= 0; i++) {
        const bool is_aggregate = node->kind == GAR_PLAN_AGGREGATE && i >= node->key_count;
        status = map_expr(node->exprs[i], gar_plan_expr_schema(node, i), is_named, is_aggregate, fn,
                          &exprs[i], err);
        has_changed = has_changed || (status >= 0 && exprs[i] != node->exprs[i]);
    }
    if (status >= 0 && has_changed) {
        status = rebuild(node, exprs, out, err);
    }
    gar_exprs_free(exprs, node->expr_count);
    return status;
}

/* ---- lists and conjunctions ---- */

enum gar_status gar_expr_list_add(struct gar_expr_list *list, struct gar_expr *expr,
                                  struct gar_error *err)
{
    void *items = list->items;
    const enum gar_status status =
        gar_grow(&items, &list->capacity, list->count + 1, (int64_t)sizeof *list->items, err);
    if (status < 0) {
        gar_expr_unref(expr);
        return status;
    }
    list->items = items;
    list->items[list->count++] = expr;
    return GAR_OK;
}

void gar_expr_list_destroy(struct gar_expr_list *list)
{
    gar_exprs_free(list->items, list->count);
    *list = (struct gar_expr_list){0};
}

enum gar_status gar_expr_list_add_conjuncts(struct gar_expr_list *list, struct gar_expr *expr,
                                            struct gar_error *err)
{
    if (gar_expr_is_call(expr, "and")) {
        GAR_TRY(gar_expr_list_add_conjuncts(list, expr->args[0], err));
        return gar_expr_list_add_conjuncts(list, expr->args[1], err);
    }
    return gar_expr_list_add(list, gar_expr_ref(expr), err);
}

enum gar_status gar_expr_join_and(struct gar_expr *const *items, int64_t count,
                                  struct gar_expr **out, struct gar_error *err)
{
    if (count == 1) {
        *out = gar_expr_ref(items[0]);
        return GAR_OK;
    }
    const int64_t half = count / 2;
    struct gar_expr *args[2] = {NULL, NULL};
    enum gar_status status = gar_expr_join_and(items, half, &args[0], err);
    if (status >= 0) {
        status = gar_expr_join_and(items + half, count - half, &args[1], err);
    }
    if (status >= 0) {
        status = gar_expr_new_call_by_name("and", args, 2, out, err);
    }
    gar_expr_unref(args[0]);
    gar_expr_unref(args[1]);
    return status;
}

/* ---- tests ---- */

/* Functions that give a value or null for every input, by group; single ones by name. */
static bool function_may_fail(const struct gar_function_info *info)
{
    static const char *const safe_groups[] = {"comparison", "logic", "null", "float", "text"};
    static const char *const safe_names[] = {
        "divide",      "try_add",     "try_subtract", "try_multiply", "year", "quarter", "month",
        "day",         "day_of_week", "day_of_year",  "week_of_year", "hour", "minute",  "second",
        "millisecond", "microsecond", "nanosecond",   "date",         "time", "hash"};
    for (int64_t i = 0; i < GAR_COUNT_OF(safe_groups); i++) {
        if (strcmp(info->group, safe_groups[i]) == 0) {
            return false;
        }
    }
    for (int64_t i = 0; i < GAR_COUNT_OF(safe_names); i++) {
        if (strcmp(info->name, safe_names[i]) == 0) {
            return false;
        }
    }
    return true;
}

bool gar_expr_may_fail(const struct gar_expr *expr)
{
    if (expr->kind == GAR_EXPR_UDF || (expr->kind == GAR_EXPR_CAST && !expr->is_try) ||
        (expr->kind == GAR_EXPR_CALL && function_may_fail(gar_function_info(expr->function)))) {
        return true;
    }
    for (int64_t i = 0; i < expr->arg_count; i++) {
        if (gar_expr_may_fail(expr->args[i])) {
            return true;
        }
    }
    return false;
}

int64_t gar_expr_size(const struct gar_expr *expr)
{
    int64_t size = 1;
    for (int64_t i = 0; i < expr->arg_count; i++) {
        size += gar_expr_size(expr->args[i]);
    }
    return size;
}

bool gar_expr_is_truth(const struct gar_expr *expr, int32_t *out_truth)
{
    if (expr->kind != GAR_EXPR_LITERAL ||
        (expr->value.type.id != GAR_BOOL && expr->value.type.id != GAR_NULL)) {
        return false;
    }
    *out_truth = !expr->value.is_valid ? -1 : expr->value.boolean ? 1 : 0;
    return true;
}
