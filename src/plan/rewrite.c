/* SPDX-License-Identifier: Apache-2.0 */
/* Tree rewriting. Depth is bounded by GAR_EXPR_DEPTH_MAX, so the walks recurse. */
#include "plan/rewrite.h"

#include <string.h>

#include "base/alloc.h"

enum { FEW_ARGS = 4 };

static enum gar_status rewrite(const struct gar_expr *expr, gar_rewrite_fn fn, void *context,
                               bool from_leaves, struct gar_expr **out, struct gar_error *err);

/* The node with rewritten arguments; a new reference to itself when none changed. */
static enum gar_status rewrite_args(const struct gar_expr *expr, gar_rewrite_fn fn, void *context,
                                    bool from_leaves, struct gar_expr **out, struct gar_error *err)
{
    struct gar_expr *few[FEW_ARGS] = {NULL};
    struct gar_expr **args = few;
    if (expr->arg_count > FEW_ARGS) {
        args = gar_calloc(expr->arg_count, (int64_t)sizeof *args);
        if (args == NULL) {
            return gar_error_nomem(err, expr->arg_count * (int64_t)sizeof *args);
        }
    }
    enum gar_status status = GAR_OK;
    bool has_changed = false;
    int64_t done = 0;
    for (; done < expr->arg_count && status >= 0; done++) {
        status = rewrite(expr->args[done], fn, context, from_leaves, &args[done], err);
        has_changed = has_changed || args[done] != expr->args[done];
    }
    if (status >= 0) {
        if (has_changed) {
            status = gar_expr_with_args(expr, args, out, err);
        } else {
            *out = gar_expr_ref(expr);
        }
    }
    for (int64_t i = 0; i < done; i++) {
        gar_expr_unref(args[i]);
    }
    if (args != few) {
        gar_free(args);
    }
    return status;
}

static enum gar_status rewrite(const struct gar_expr *expr, gar_rewrite_fn fn, void *context,
                               bool from_leaves, struct gar_expr **out, struct gar_error *err)
{
    struct gar_expr *replacement = NULL;
    if (!from_leaves) {
        GAR_TRY(fn(expr, context, &replacement, err));
        if (replacement != NULL) {
            *out = replacement;
            return GAR_OK;
        }
        return rewrite_args(expr, fn, context, from_leaves, out, err);
    }
    struct gar_expr *inner = NULL;
    GAR_TRY(rewrite_args(expr, fn, context, from_leaves, &inner, err));
    const enum gar_status status = fn(inner, context, &replacement, err);
    if (status >= 0) {
        *out = replacement != NULL ? replacement : gar_expr_ref(inner);
    }
    gar_expr_unref(inner);
    return status;
}

enum gar_status gar_expr_rewrite(const struct gar_expr *expr, gar_rewrite_fn fn, void *context,
                                 struct gar_expr **out, struct gar_error *err)
{
    return rewrite(expr, fn, context, false, out, err);
}

enum gar_status gar_expr_rewrite_up(const struct gar_expr *expr, gar_rewrite_fn fn, void *context,
                                    struct gar_expr **out, struct gar_error *err)
{
    return rewrite(expr, fn, context, true, out, err);
}

struct inline_context {
    const struct gar_schema *schema;
    struct gar_expr *const *exprs;
};

static enum gar_status inline_column(const struct gar_expr *expr, void *context,
                                     struct gar_expr **out, struct gar_error *err)
{
    const struct inline_context *c = context;
    if (expr->kind == GAR_EXPR_COLUMN) {
        int64_t i = 0;
        GAR_TRY(gar_schema_get(c->schema, expr->name, &i, err));
        *out = gar_expr_ref(gar_expr_strip_alias(c->exprs[i]));
    }
    return GAR_OK;
}

enum gar_status gar_expr_inline(const struct gar_expr *expr, const struct gar_schema *schema,
                                struct gar_expr *const *exprs, struct gar_expr **out,
                                struct gar_error *err)
{
    struct inline_context context = {.schema = schema, .exprs = exprs};
    return gar_expr_rewrite(expr, inline_column, &context, out, err);
}

enum gar_status gar_expr_named(struct gar_expr *expr, const char *name, struct gar_expr **out,
                               struct gar_error *err)
{
    struct gar_expr *bare = gar_expr_strip_alias(expr);
    if (strcmp(gar_expr_name(bare), name) == 0) {
        *out = gar_expr_ref(bare);
        return GAR_OK;
    }
    return gar_expr_new_alias(bare, name, out, err);
}

struct gar_expr *gar_expr_strip_alias(struct gar_expr *expr)
{
    while (expr->kind == GAR_EXPR_ALIAS) {
        expr = expr->args[0];
    }
    return expr;
}

const char *gar_expr_column_name(const struct gar_expr *expr)
{
    while (expr->kind == GAR_EXPR_ALIAS) {
        expr = expr->args[0];
    }
    return expr->kind == GAR_EXPR_COLUMN ? expr->name : NULL;
}

bool gar_expr_is_call(const struct gar_expr *expr, const char *function)
{
    return expr->kind == GAR_EXPR_CALL &&
           strcmp(gar_function_info(expr->function)->name, function) == 0;
}

void gar_exprs_free(struct gar_expr **exprs, int64_t count)
{
    for (int64_t i = 0; exprs != NULL && i < count; i++) {
        gar_expr_unref(exprs[i]);
    }
    gar_free(exprs);
}
