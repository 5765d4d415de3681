/* SPDX-License-Identifier: Apache-2.0 */
/* simplify: truth values, casts that do nothing, literals on the right of comparisons, branches that are decided, and filters
 * that are always or never true. Three-valued logic is kept. */
#include <string.h>

#include "optimize/rule_priv.h"

static enum gar_status truth(bool value, struct gar_expr **out, struct gar_error *err)
{
    const struct gar_value v = {.type = gar_type_of(GAR_BOOL), .is_valid = true, .boolean = value};
    return gar_expr_new_literal(&v, out, err);
}

static bool type_is(const struct gar_expr *expr, const struct gar_schema *schema,
                    struct gar_type type)
{
    struct gar_type found = {0};
    return gar_expr_type(expr, schema, true, &found, NULL) >= 0 && gar_type_equal(found, type);
}

static bool is_bool(const struct gar_expr *expr, const struct gar_schema *schema)
{
    return type_is(expr, schema, gar_type_of(GAR_BOOL));
}

/* a and b, a or b: `neutral` is the truth value that leaves the other side. */
static enum gar_status simplify_logic(const struct gar_expr *expr, bool neutral,
                                      const struct gar_schema *schema, struct gar_expr **out,
                                      struct gar_error *err)
{
    for (int32_t side = 0; side < 2; side++) {
        struct gar_expr *other = expr->args[1 - side];
        int32_t value = -1;
        if (!gar_expr_is_truth(expr->args[side], &value) || value < 0) {
            continue;
        }
        if (value == (int32_t)neutral) {
            if (is_bool(other, schema)) {
                *out = gar_expr_ref(other);
            }
            return GAR_OK;
        }
        return truth(!neutral, out, err);
    }
    if (gar_expr_equal(expr->args[0], expr->args[1]) && is_bool(expr->args[0], schema)) {
        *out = gar_expr_ref(expr->args[0]);
    }
    return GAR_OK;
}

/* not(not a), not(a = b), not(a is null). Order comparisons are not turned round: NaN makes both false. */
static enum gar_status simplify_not(const struct gar_expr *expr, const struct gar_schema *schema,
                                    struct gar_expr **out, struct gar_error *err)
{
    static const char *const opposites[][2] = {{"equal", "not_equal"},
                                               {"not_equal", "equal"},
                                               {"is_null", "not_null"},
                                               {"not_null", "is_null"}};
    const struct gar_expr *arg = expr->args[0];
    if (gar_expr_is_call(arg, "not")) {
        if (is_bool(arg->args[0], schema)) {
            *out = gar_expr_ref(arg->args[0]);
        }
        return GAR_OK;
    }
    for (int64_t i = 0; i < GAR_COUNT_OF(opposites); i++) {
        if (gar_expr_is_call(arg, opposites[i][0])) {
            return gar_expr_new_call_by_name(opposites[i][1], arg->args, arg->arg_count, out, err);
        }
    }
    return GAR_OK;
}

/* a = true, a <> false and the like, for a boolean a; literals go to the right. */
static enum gar_status simplify_comparison(const struct gar_expr *expr,
                                           const struct gar_schema *schema, struct gar_expr **out,
                                           struct gar_error *err)
{
    static const char *const swapped[][2] = {{"equal", "equal"},  {"not_equal", "not_equal"},
                                             {"less", "greater"}, {"less_equal", "greater_equal"},
                                             {"greater", "less"}, {"greater_equal", "less_equal"}};
    for (int64_t i = 0; i < GAR_COUNT_OF(swapped); i++) {
        if (!gar_expr_is_call(expr, swapped[i][0])) {
            continue;
        }
        int32_t value = -1;
        if (i < 2 && gar_expr_is_truth(expr->args[1], &value) && value >= 0 &&
            is_bool(expr->args[0], schema)) {
            if (value == (int32_t)(i == 0)) {
                *out = gar_expr_ref(expr->args[0]);
                return GAR_OK;
            }
            return gar_expr_new_call_by_name("not", expr->args, 1, out, err);
        }
        if (expr->args[0]->kind == GAR_EXPR_LITERAL && expr->args[1]->kind != GAR_EXPR_LITERAL) {
            struct gar_expr *const args[2] = {expr->args[1], expr->args[0]};
            return gar_expr_new_call_by_name(swapped[i][1], args, 2, out, err);
        }
    }
    return GAR_OK;
}

/* Branches whose condition is decided. The type stays only if the branches have one type; the caller checks. */
static enum gar_status simplify_when(const struct gar_expr *expr, const struct gar_schema *schema,
                                     struct gar_expr **out, struct gar_error *err)
{
    int32_t value = -1;
    if (!gar_expr_is_truth(expr->args[0], &value)) {
        return GAR_OK;
    }
    struct gar_expr *result = NULL;
    if (value == 1) {
        result = gar_expr_ref(expr->args[1]);
    } else if (expr->arg_count == 3) {
        result = gar_expr_ref(expr->args[2]);
    } else {
        GAR_TRY(
            gar_expr_new_call(expr->function, expr->args + 2, expr->arg_count - 2, &result, err));
    }
    struct gar_type type = {0};
    const bool is_literal =
        result->kind == GAR_EXPR_LITERAL; /* it would adapt where the whole did not */
    if (!is_literal && gar_expr_type(expr, schema, true, &type, NULL) >= 0 &&
        type_is(result, schema, type)) {
        *out = result;
    } else {
        gar_expr_unref(result);
    }
    return GAR_OK;
}

static enum gar_status simplify_node(const struct gar_expr *expr, void *context,
                                     struct gar_expr **out, struct gar_error *err)
{
    const struct gar_schema *schema = context;
    if (expr->kind == GAR_EXPR_CAST) {
        const bool is_adapting = expr->args[0]->kind == GAR_EXPR_LITERAL;
        if (!is_adapting && type_is(expr->args[0], schema, expr->type)) {
            *out = gar_expr_ref(expr->args[0]);
        }
        return GAR_OK;
    }
    if (expr->kind != GAR_EXPR_CALL) {
        return GAR_OK;
    }
    const struct gar_function_info *info = gar_function_info(expr->function);
    if (strcmp(info->group, "comparison") == 0) {
        return simplify_comparison(expr, schema, out, err);
    }
    if (strcmp(info->name, "and") == 0 || strcmp(info->name, "or") == 0) {
        return simplify_logic(expr, strcmp(info->name, "and") == 0, schema, out, err);
    }
    if (strcmp(info->name, "not") == 0) {
        return simplify_not(expr, schema, out, err);
    }
    if (strcmp(info->name, "when") == 0) {
        return simplify_when(expr, schema, out, err);
    }
    return GAR_OK;
}

static enum gar_status simplify_expr(struct gar_expr *expr, const struct gar_schema *schema,
                                     struct gar_expr **out, struct gar_error *err)
{
    struct gar_schema *context = NULL;
    memcpy(&context, &schema, sizeof context); /* read only; the walk's context is not const */
    return gar_expr_rewrite_up(expr, simplify_node, context, out, err);
}

/* A filter that is always or never true: its input, or none of it. NULL in *out for other nodes. */
static enum gar_status drop_filter(const struct gar_plan *node, struct gar_plan **out,
                                   struct gar_error *err)
{
    int32_t value = -1;
    if (node->kind != GAR_PLAN_FILTER || !gar_expr_is_truth(node->exprs[0], &value)) {
        return GAR_OK;
    }
    if (value == 1) {
        *out = gar_plan_ref(node->inputs[0]);
        return GAR_OK;
    }
    return gar_plan_limit(node->inputs[0], 0, 0, out, err); /* false or null: no row passes */
}

static enum gar_status simplify_plan_node(const struct gar_plan *node, struct gar_plan **out,
                                          struct gar_error *err)
{
    struct gar_plan *simplified = NULL;
    struct gar_plan *dropped = NULL;
    GAR_TRY(gar_plan_map_exprs(node, simplify_expr, &simplified, err));
    const enum gar_status status =
        drop_filter(simplified != NULL ? simplified : node, &dropped, err);
    if (status < 0 || dropped != NULL) {
        gar_plan_unref(simplified);
    }
    if (status >= 0) {
        *out = dropped != NULL ? dropped : simplified;
    }
    return status;
}

enum gar_status gar_rule_simplify(const struct gar_plan *plan, struct gar_plan **out,
                                  struct gar_error *err)
{
    return gar_plan_map(plan, simplify_plan_node, out, err);
}
