/* SPDX-License-Identifier: Apache-2.0 */
/* Expression trees: building, counting, comparing, naming. Trees are at most GAR_EXPR_DEPTH_MAX deep, so walks recurse. */
#include "expr/expr.h"

#include <string.h>

#include "base/alloc.h"
#include "expr/expr_priv.h"
#include "expr/function_priv.h"

struct gar_expr *gar_expr_ref(const struct gar_expr *expr)
{
    struct gar_expr *shared = NULL;
    memcpy(&shared, &expr,
           sizeof shared); /* the count is the one thing that changes in a shared tree */
    __atomic_fetch_add(&shared->refs, 1, __ATOMIC_RELAXED);
    return shared;
}

void gar_expr_unref(struct gar_expr *expr)
{
    if (expr == NULL || __atomic_sub_fetch(&expr->refs, 1, __ATOMIC_ACQ_REL) != 0) {
        return;
    }
    for (int64_t i = 0; i < expr->arg_count; i++) {
        gar_expr_unref(expr->args[i]);
    }
    gar_free(expr->args);
    gar_free(expr->name);
    gar_value_destroy(&expr->value);
    gar_column_unref(expr->set);
    gar_udf_unref(expr->udf);
    gar_free(expr);
}

enum gar_status gar_expr_new_node(enum gar_expr_kind kind, struct gar_expr *const *args,
                                  int64_t count, struct gar_expr **out, struct gar_error *err)
{
    int32_t depth = 1;
    for (int64_t i = 0; i < count; i++) {
        if (args[i]->depth >= depth) {
            depth = args[i]->depth + 1;
        }
    }
    if (depth > GAR_EXPR_DEPTH_MAX) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "expression is nested more than %d levels deep; compute parts of it "
                             "in columns of their own",
                             GAR_EXPR_DEPTH_MAX);
    }
    struct gar_expr *expr = gar_calloc(1, (int64_t)sizeof *expr);
    if (expr == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *expr);
    }
    expr->refs = 1;
    expr->kind = kind;
    expr->depth = depth;
    if (count > 0) {
        expr->args = gar_calloc(count, (int64_t)sizeof *expr->args);
        if (expr->args == NULL) {
            gar_expr_unref(expr);
            return gar_error_nomem(err, count * (int64_t)sizeof *expr->args);
        }
        for (int64_t i = 0; i < count; i++) {
            expr->args[i] = gar_expr_ref(args[i]);
        }
        expr->arg_count = count;
    }
    *out = expr;
    return GAR_OK;
}

static enum gar_status set_name(struct gar_expr *expr, const char *name, struct gar_error *err)
{
    expr->name = gar_strdup(name);
    if (expr->name == NULL) {
        return gar_error_nomem(err, (int64_t)strlen(name) + 1);
    }
    return GAR_OK;
}

enum gar_status gar_expr_new_column(const char *name, struct gar_expr **out, struct gar_error *err)
{
    struct gar_expr *expr = NULL;
    GAR_TRY(gar_expr_new_node(GAR_EXPR_COLUMN, NULL, 0, &expr, err));
    const enum gar_status status = set_name(expr, name, err);
    if (status < 0) {
        gar_expr_unref(expr);
        return status;
    }
    *out = expr;
    return GAR_OK;
}

enum gar_status gar_expr_new_literal(const struct gar_value *value, struct gar_expr **out,
                                     struct gar_error *err)
{
    GAR_TRY(gar_type_check(value->type, err));
    struct gar_expr *expr = NULL;
    GAR_TRY(gar_expr_new_node(GAR_EXPR_LITERAL, NULL, 0, &expr, err));
    const enum gar_status status = gar_value_copy(value, &expr->value, err);
    if (status < 0) {
        gar_expr_unref(expr);
        return status;
    }
    *out = expr;
    return GAR_OK;
}

enum gar_status gar_expr_new_call(const struct gar_function *function, struct gar_expr *const *args,
                                  int64_t count, struct gar_expr **out, struct gar_error *err)
{
    GAR_TRY(gar_function_check_count(function, count, err));
    struct gar_expr *expr = NULL;
    GAR_TRY(gar_expr_new_node(GAR_EXPR_CALL, args, count, &expr, err));
    expr->function = function;
    *out = expr;
    return GAR_OK;
}

enum gar_status gar_expr_new_call_by_name(const char *name, struct gar_expr *const *args,
                                          int64_t count, struct gar_expr **out,
                                          struct gar_error *err)
{
    const struct gar_function *function = gar_function_find(name, (int64_t)strlen(name), false);
    if (function == NULL) {
        return gar_function_unknown(name, (int64_t)strlen(name), err);
    }
    return gar_expr_new_call(function, args, count, out, err);
}

enum gar_status gar_expr_new_cast(struct gar_expr *arg, struct gar_type type, bool is_try,
                                  struct gar_expr **out, struct gar_error *err)
{
    GAR_TRY(gar_type_check(type, err));
    struct gar_expr *expr = NULL;
    GAR_TRY(gar_expr_new_node(GAR_EXPR_CAST, &arg, 1, &expr, err));
    expr->type = type;
    expr->is_try = is_try;
    *out = expr;
    return GAR_OK;
}

enum gar_status gar_expr_new_alias(struct gar_expr *arg, const char *name, struct gar_expr **out,
                                   struct gar_error *err)
{
    struct gar_expr *expr = NULL;
    GAR_TRY(gar_expr_new_node(GAR_EXPR_ALIAS, &arg, 1, &expr, err));
    const enum gar_status status = set_name(expr, name, err);
    if (status < 0) {
        gar_expr_unref(expr);
        return status;
    }
    *out = expr;
    return GAR_OK;
}

enum gar_status gar_expr_new_in_list(struct gar_expr *arg, struct gar_column *set,
                                     struct gar_expr **out, struct gar_error *err)
{
    if (set->encoding != GAR_FLAT) {
        return gar_error_set(err, GAR_ERR_VALUE, "the list of an in test must be a flat column");
    }
    struct gar_expr *expr = NULL;
    GAR_TRY(gar_expr_new_node(GAR_EXPR_IN_LIST, &arg, 1, &expr, err));
    expr->set = gar_column_ref(set);
    *out = expr;
    return GAR_OK;
}

enum gar_status gar_expr_new_udf(struct gar_udf *udf, struct gar_expr *const *args, int64_t count,
                                 struct gar_expr **out, struct gar_error *err)
{
    struct gar_expr *expr = NULL;
    GAR_TRY(gar_expr_new_node(GAR_EXPR_UDF, args, count, &expr, err));
    expr->udf = gar_udf_ref(udf);
    expr->type = udf->type;
    *out = expr;
    return GAR_OK;
}

enum gar_status gar_expr_with_args(const struct gar_expr *expr, struct gar_expr *const *args,
                                   struct gar_expr **out, struct gar_error *err)
{
    struct gar_expr *copy = NULL;
    GAR_TRY(gar_expr_new_node(expr->kind, args, expr->arg_count, &copy, err));
    copy->function = expr->function;
    copy->type = expr->type;
    copy->is_try = expr->is_try;
    copy->window = expr->window;
    if (expr->set != NULL) {
        copy->set = gar_column_ref(expr->set);
    }
    if (expr->udf != NULL) {
        copy->udf = gar_udf_ref(expr->udf);
    }
    enum gar_status status = GAR_OK;
    if (expr->name != NULL) {
        status = set_name(copy, expr->name, err);
    }
    if (status >= 0 && expr->kind == GAR_EXPR_LITERAL) {
        status = gar_value_copy(&expr->value, &copy->value, err);
    }
    if (status < 0) {
        gar_expr_unref(copy);
        return status;
    }
    *out = copy;
    return GAR_OK;
}

/* The name of the leftmost column below expr, or NULL. */
static const char *leftmost_column(const struct gar_expr *expr)
{
    if (expr->kind == GAR_EXPR_COLUMN) {
        return expr->name;
    }
    const int64_t count = expr->kind == GAR_EXPR_WINDOW ? 1 : expr->arg_count;
    for (int64_t i = 0; i < count; i++) {
        const char *name = leftmost_column(expr->args[i]);
        if (name != NULL) {
            return name;
        }
    }
    return NULL;
}

const char *gar_expr_name(const struct gar_expr *expr)
{
    if (expr->kind == GAR_EXPR_ALIAS) {
        return expr->name;
    }
    const char *name = leftmost_column(expr);
    if (name != NULL) {
        return name;
    }
    while (expr->kind == GAR_EXPR_CAST || expr->kind == GAR_EXPR_ALIAS ||
           expr->kind == GAR_EXPR_WINDOW) {
        expr = expr->args[0];
    }
    return expr->kind == GAR_EXPR_CALL  ? gar_function_info(expr->function)->name
           : expr->kind == GAR_EXPR_UDF ? expr->udf->name
                                        : "literal";
}

/* Literals are equal only if nothing can tell them apart: 0.0 and -0.0 are not. */
static bool literals_equal(const struct gar_value *a, const struct gar_value *b)
{
    if (!gar_type_equal(a->type, b->type) || a->is_valid != b->is_valid) {
        return false;
    }
    if (a->is_valid && gar_type_is_float(a->type)) {
        return memcmp(&a->f64, &b->f64, sizeof a->f64) == 0;
    }
    return gar_value_equal(a, b);
}

static bool windows_equal(const struct gar_window *a, const struct gar_window *b)
{
    return a->partition_count == b->partition_count && a->order_count == b->order_count &&
           a->descending == b->descending && a->nulls_first == b->nulls_first &&
           a->frame == b->frame && a->start == b->start && a->end == b->end &&
           a->exclusion == b->exclusion && a->start_rows == b->start_rows &&
           a->end_rows == b->end_rows && a->has_start_value == b->has_start_value &&
           a->has_end_value == b->has_end_value && a->min_periods == b->min_periods;
}

static bool sets_equal(const struct gar_column *a, const struct gar_column *b)
{
    if (a == b) {
        return true;
    }
    if (a == NULL || b == NULL || !gar_type_equal(a->type, b->type) || a->length != b->length) {
        return false;
    }
    for (int64_t i = 0; i < a->length; i++) {
        struct gar_value x = {0};
        struct gar_value y = {0};
        const bool is_read = gar_value_from_column(a, i, &x, NULL) >= 0 &&
                             gar_value_from_column(b, i, &y, NULL) >= 0;
        const bool is_same = is_read && literals_equal(&x, &y);
        gar_value_destroy(&x);
        gar_value_destroy(&y);
        if (!is_same) {
            return false;
        }
    }
    return true;
}

bool gar_expr_equal(const struct gar_expr *a, const struct gar_expr *b)
{
    if (a == b) {
        return true;
    }
    if (a->kind != b->kind || a->depth != b->depth || a->arg_count != b->arg_count ||
        a->function != b->function || a->udf != b->udf || a->is_try != b->is_try ||
        !gar_type_equal(a->type, b->type)) {
        return false;
    }
    if ((a->name == NULL) != (b->name == NULL) ||
        (a->name != NULL && strcmp(a->name, b->name) != 0)) {
        return false;
    }
    if (a->kind == GAR_EXPR_LITERAL && !literals_equal(&a->value, &b->value)) {
        return false;
    }
    if (a->kind == GAR_EXPR_WINDOW && !windows_equal(&a->window, &b->window)) {
        return false;
    }
    if (a->kind == GAR_EXPR_IN_LIST && !sets_equal(a->set, b->set)) {
        return false;
    }
    for (int64_t i = 0; i < a->arg_count; i++) {
        if (!gar_expr_equal(a->args[i], b->args[i])) {
            return false;
        }
    }
    return true;
}

bool gar_expr_has_aggregate(const struct gar_expr *expr)
{
    if (expr->kind == GAR_EXPR_CALL &&
        gar_function_info(expr->function)->kind == GAR_FUNCTION_AGGREGATE) {
        return true;
    }
    if (expr->kind == GAR_EXPR_WINDOW) { /* its own call is none of the rows'; one inside it is */
        for (int64_t i = 0; i < expr->args[0]->arg_count; i++) {
            if (gar_expr_has_aggregate(expr->args[0]->args[i])) {
                return true;
            }
        }
    }
    for (int64_t i = expr->kind == GAR_EXPR_WINDOW; i < expr->arg_count; i++) {
        if (gar_expr_has_aggregate(expr->args[i])) {
            return true;
        }
    }
    return false;
}

bool gar_expr_has_udf(const struct gar_expr *expr)
{
    bool has_udf = expr->kind == GAR_EXPR_UDF;
    for (int64_t i = 0; i < expr->arg_count && !has_udf; i++) {
        has_udf = gar_expr_has_udf(expr->args[i]);
    }
    return has_udf;
}

bool gar_expr_is_constant(const struct gar_expr *expr)
{
    if (expr->kind == GAR_EXPR_COLUMN || expr->kind == GAR_EXPR_UDF ||
        expr->kind == GAR_EXPR_WINDOW) {
        return false;
    }
    if (expr->kind == GAR_EXPR_CALL &&
        gar_function_info(expr->function)->kind != GAR_FUNCTION_SCALAR) {
        return false;
    }
    for (int64_t i = 0; i < expr->arg_count; i++) {
        if (!gar_expr_is_constant(expr->args[i])) {
            return false;
        }
    }
    return true;
}

void gar_expr_visit_columns(const struct gar_expr *expr,
                            void (*visit)(const char *name, void *context), void *context)
{
    if (expr->kind == GAR_EXPR_COLUMN) {
        visit(expr->name, context);
    }
    for (int64_t i = 0; i < expr->arg_count; i++) {
        gar_expr_visit_columns(expr->args[i], visit, context);
    }
}
