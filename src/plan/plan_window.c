/* SPDX-License-Identifier: Apache-2.0 */
/* Windows in projections. Each different call over a window becomes a column of a WINDOW node below the projection; calls of
 * the same partitions and order share a node, and so a sort. */
#include <string.h>

#include "base/alloc.h"
#include "expr/window.h"
#include "plan/plan.h"
#include "plan/plan_priv.h"
#include "plan/rewrite.h"

static enum gar_status window_schema(const struct gar_schema *input, struct gar_expr *const *exprs,
                                     int64_t count, struct gar_schema **out, struct gar_error *err)
{
    struct gar_schema *made = NULL;
    GAR_TRY(gar_plan_schema_of(input, exprs, count, 0, &made, err));
    struct gar_field *fields = gar_calloc(input->count + count, (int64_t)sizeof *fields);
    enum gar_status status = fields != NULL ? GAR_OK : gar_error_nomem(err, input->count + count);
    if (status >= 0) {
        for (int64_t i = 0; i < input->count; i++) {
            fields[i] = input->fields[i];
        }
        for (int64_t i = 0; i < count; i++) {
            fields[input->count + i] = made->fields[i];
        }
        status = gar_schema_new(fields, input->count + count, false, out, err);
    }
    gar_free(fields);
    gar_schema_unref(made);
    return status;
}

enum gar_status gar_plan_window_exact(struct gar_plan *input, struct gar_expr *const *exprs,
                                      int64_t count, struct gar_plan **out, struct gar_error *err)
{
    struct gar_schema *schema = NULL;
    GAR_TRY(window_schema(input->schema, exprs, count, &schema, err));
    const enum gar_status status =
        gar_plan_new_node(GAR_PLAN_WINDOW, &input, 1, exprs, count, out, err);
    if (status < 0) {
        gar_schema_unref(schema);
        return status;
    }
    (*out)->schema = schema;
    return GAR_OK;
}

/* The different calls found, each under the name of its column. */
struct found {
    const struct gar_schema *input;
    struct gar_expr **items; /* owned */
    int64_t count;
    int64_t capacity;
};

static const struct gar_expr *call_of(const struct gar_expr *item)
{
    return item->args[0];
}

static bool name_is_taken(const struct found *found, const char *name)
{
    for (int64_t i = 0; i < found->count; i++) {
        if (strcmp(found->items[i]->name, name) == 0) {
            return true;
        }
    }
    return gar_schema_find(found->input, name) >= 0;
}

static enum gar_status add_call(struct found *found, const struct gar_expr *window,
                                struct gar_error *err)
{
    void *items = found->items;
    GAR_TRY(
        gar_grow(&items, &found->capacity, found->count + 1, (int64_t)sizeof *found->items, err));
    found->items = items;
    struct gar_strbuf name = {0};
    gar_expr_print(window, &name);
    while (!name.failed && name_is_taken(found, gar_strbuf_text(&name))) {
        gar_strbuf_append(&name, "'");
    }
    struct gar_expr *shared = gar_expr_ref(window);
    const enum gar_status status =
        name.failed
            ? gar_error_nomem(err, name.size)
            : gar_expr_new_alias(shared, gar_strbuf_text(&name), &found->items[found->count], err);
    gar_expr_unref(shared);
    gar_strbuf_destroy(&name);
    found->count += status >= 0;
    return status;
}

static enum gar_status replace_window(const struct gar_expr *expr, void *context,
                                      struct gar_expr **out, struct gar_error *err)
{
    struct found *found = context;
    if (expr->kind != GAR_EXPR_WINDOW) {
        return GAR_OK;
    }
    if (gar_expr_has_udf(expr)) {
        return gar_error_set(err, GAR_ERR_UNSUPPORTED,
                             "a user function inside a window; give it a column of its own first, "
                             "with with_column()");
    }
    int64_t at = 0;
    while (at < found->count && !gar_expr_equal(call_of(found->items[at]), expr)) {
        at++;
    }
    if (at == found->count) {
        GAR_TRY(add_call(found, expr, err));
    }
    return gar_expr_new_column(found->items[at]->name, out, err);
}

/* A node for the first call that has none yet and all that share its sort. used: a flag for each call. */
static enum gar_status add_node(const struct found *found, bool *used, struct gar_expr **group,
                                struct gar_plan **plan, struct gar_error *err)
{
    int64_t count = 0;
    for (int64_t i = 0; i < found->count; i++) {
        if (!used[i] &&
            (count == 0 || gar_window_same_sort(call_of(group[0]), call_of(found->items[i])))) {
            group[count++] = found->items[i];
            used[i] = true;
        }
    }
    struct gar_plan *node = NULL;
    GAR_TRY(gar_plan_window_exact(*plan, group, count, &node, err));
    gar_plan_unref(*plan);
    *plan = node;
    return GAR_OK;
}

static bool has_unused(const bool *used, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (!used[i]) {
            return true;
        }
    }
    return false;
}

static enum gar_status stack_nodes(const struct found *found, struct gar_plan *input,
                                   struct gar_plan **out, struct gar_error *err)
{
    struct gar_expr **group = gar_calloc(found->count, (int64_t)sizeof *group);
    bool *used = gar_calloc(found->count, (int64_t)sizeof *used);
    struct gar_plan *plan = gar_plan_ref(input);
    enum gar_status status =
        group != NULL && used != NULL ? GAR_OK : gar_error_nomem(err, found->count * 9);
    while (status >= 0 && has_unused(used, found->count)) {
        status = add_node(found, used, group, &plan, err);
    }
    gar_free(group);
    gar_free(used);
    if (status < 0) {
        gar_plan_unref(plan);
        return status;
    }
    *out = plan;
    return GAR_OK;
}

enum gar_status gar_plan_windows(struct gar_plan *input, struct gar_expr *const *exprs,
                                 int64_t count, struct gar_plan **out, struct gar_error *err)
{
    struct found found = {.input = input->schema};
    struct gar_expr **outer = gar_calloc(count, (int64_t)sizeof *outer);
    struct gar_plan *windows = NULL;
    enum gar_status status = outer != NULL ? GAR_OK : gar_error_nomem(err, count * 8);
    for (int64_t i = 0; i < count && status >= 0; i++) {
        struct gar_expr *rewritten = NULL;
        status = gar_expr_rewrite(gar_expr_strip_alias(exprs[i]), replace_window, &found,
                                  &rewritten, err);
        if (status >= 0) {
            status = gar_expr_named(rewritten, gar_expr_name(exprs[i]), &outer[i], err);
        }
        gar_expr_unref(rewritten);
    }
    if (status >= 0) {
        status = stack_nodes(&found, input, &windows, err);
    }
    if (status >= 0) {
        status = gar_plan_project_exact(windows, outer, count, out, err);
    }
    gar_plan_unref(windows);
    gar_exprs_free(outer, count);
    gar_exprs_free(found.items, found.count);
    return status;
}
