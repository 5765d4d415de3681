/* SPDX-License-Identifier: Apache-2.0 */
/* fold_constants: a part of an expression that names no column becomes its value.
 *
 * An integer literal adapts to the type beside it, a computed integer does not; so a folded integer is cast to its
 * type unless it stands alone or in a comparison, where the type does not matter. What fails to evaluate is left as it is:
 * it fails when, and only if, a row needs it. */
#include <string.h>

#include "expr/program.h"
#include "optimize/rule_priv.h"

static bool is_comparison(const struct gar_expr *expr)
{
    return expr->kind == GAR_EXPR_CALL &&
           strcmp(gar_function_info(expr->function)->group, "comparison") == 0;
}

/* The value of a constant; NULL in *out when it has none. */
static enum gar_status fold(const struct gar_expr *expr, bool may_adapt, struct gar_expr **out,
                            struct gar_error *err)
{
    struct gar_value value = {0};
    if (gar_expr_fold(expr, &value, NULL) < 0) {
        return GAR_OK;
    }
    struct gar_expr *literal = NULL;
    const struct gar_type type = value.type;
    enum gar_status status = gar_expr_new_literal(&value, &literal, err);
    gar_value_destroy(&value);
    if (status >= 0 && !may_adapt && gar_type_is_integer(type)) {
        status = gar_expr_new_cast(literal, type, false, out, err);
        gar_expr_unref(literal);
    } else if (status >= 0) {
        *out = literal;
    }
    return status;
}

static bool is_foldable(const struct gar_expr *expr, bool may_adapt)
{
    if (expr->kind == GAR_EXPR_LITERAL || expr->kind == GAR_EXPR_ALIAS ||
        !gar_expr_is_constant(expr)) {
        return false;
    }
    const bool is_cast_literal =
        expr->kind == GAR_EXPR_CAST && expr->args[0]->kind == GAR_EXPR_LITERAL;
    return may_adapt || !is_cast_literal || !gar_type_is_integer(expr->type);
}

static enum gar_status fold_node(const struct gar_expr *expr, void *context, struct gar_expr **out,
                                 struct gar_error *err);

/* An argument of a comparison. */
static enum gar_status fold_compared(const struct gar_expr *expr, struct gar_expr **out,
                                     struct gar_error *err)
{
    if (is_foldable(expr, true)) {
        GAR_TRY(fold(expr, true, out, err));
    }
    return *out != NULL ? GAR_OK : gar_expr_rewrite(expr, fold_node, NULL, out, err);
}

static enum gar_status fold_comparison(const struct gar_expr *expr, struct gar_expr **out,
                                       struct gar_error *err)
{
    struct gar_expr *args[3] = {NULL, NULL, NULL};
    enum gar_status status = GAR_OK;
    bool has_changed = false;
    for (int64_t i = 0; i < expr->arg_count && status >= 0; i++) {
        status = fold_compared(expr->args[i], &args[i], err);
        has_changed = has_changed || args[i] != expr->args[i];
    }
    if (status >= 0 && has_changed) {
        status = gar_expr_with_args(expr, args, out, err);
    } else if (status >= 0) {
        *out = gar_expr_ref(expr);
    }
    for (int64_t i = 0; i < 3; i++) {
        gar_expr_unref(args[i]);
    }
    return status;
}

static enum gar_status fold_node(const struct gar_expr *expr, void *context, struct gar_expr **out,
                                 struct gar_error *err)
{
    (void)context;
    if (is_foldable(expr, false)) {
        GAR_TRY(fold(expr, false, out, err));
        if (*out != NULL) {
            return GAR_OK;
        }
    }
    return is_comparison(expr) && expr->arg_count <= 3 ? fold_comparison(expr, out, err) : GAR_OK;
}

static enum gar_status fold_expr(struct gar_expr *expr, const struct gar_schema *schema,
                                 struct gar_expr **out, struct gar_error *err)
{
    (void)schema;
    struct gar_expr *bare = gar_expr_strip_alias(expr);
    if (is_foldable(bare, true)) {
        GAR_TRY(fold(bare, true, out, err));
        if (*out != NULL) {
            return GAR_OK;
        }
    }
    return gar_expr_rewrite(expr, fold_node, NULL, out, err);
}

static enum gar_status fold_plan_node(const struct gar_plan *node, struct gar_plan **out,
                                      struct gar_error *err)
{
    return gar_plan_map_exprs(node, fold_expr, out, err);
}

enum gar_status gar_rule_fold_constants(const struct gar_plan *plan, struct gar_plan **out,
                                        struct gar_error *err)
{
    return gar_plan_map(plan, fold_plan_node, out, err);
}
