/* SPDX-License-Identifier: Apache-2.0 */
/* Projections: select, with_columns, rename, exclude. All become one PROJECT node. */
#include <string.h>

#include "base/alloc.h"
#include "expr/window.h"
#include "plan/plan.h"
#include "plan/plan_priv.h"
#include "plan/rewrite.h"

/* A growing list of owned expressions. */
struct expr_list {
    struct gar_expr **items;
    int64_t count;
    int64_t capacity;
};

static void destroy_list(struct expr_list *list)
{
    gar_exprs_free(list->items, list->count);
}

/* Moves expr in, also on failure. */
static enum gar_status push(struct expr_list *list, struct gar_expr *expr, struct gar_error *err)
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

static enum gar_status push_column(struct expr_list *list, const char *name, struct gar_error *err)
{
    struct gar_expr *column = NULL;
    GAR_TRY(gar_expr_new_column(name, &column, err));
    return push(list, column, err);
}

/* Calls of user functions below, what they give above. */
static enum gar_status project_udfs(struct gar_plan *input, struct gar_expr *const *exprs,
                                    int64_t count, struct gar_plan **out, struct gar_error *err)
{
    struct gar_expr **plain = gar_calloc(count, (int64_t)sizeof *plain);
    struct gar_plan *below = NULL;
    enum gar_status status = plain != NULL ? GAR_OK : gar_error_nomem(err, count * 8);
    if (status >= 0) {
        status = gar_plan_split_udfs(input, exprs, count, count, true, &below, plain, err);
    }
    if (status >= 0) {
        status = gar_plan_project_exact(below, plain, count, out, err);
    }
    gar_plan_unref(below);
    gar_exprs_free(plain, count);
    return status;
}

enum gar_status gar_plan_project_exact(struct gar_plan *input, struct gar_expr *const *exprs,
                                       int64_t count, struct gar_plan **out, struct gar_error *err)
{
    if (gar_plan_has_udf(exprs, count)) {
        return project_udfs(input, exprs, count, out, err);
    }
    struct gar_schema *schema = NULL;
    GAR_TRY(gar_plan_schema_of(input->schema, exprs, count, count, &schema, err));
    const enum gar_status status =
        gar_plan_new_node(GAR_PLAN_PROJECT, &input, 1, exprs, count, out, err);
    if (status < 0) {
        gar_schema_unref(schema);
        return status;
    }
    (*out)->schema = schema;
    return GAR_OK;
}

/* Some of the expressions may have calls over windows. */
static enum gar_status project_any(struct gar_plan *input, struct gar_expr *const *exprs,
                                   int64_t count, struct gar_plan **out, struct gar_error *err)
{
    for (int64_t i = 0; i < count; i++) {
        if (gar_expr_has_window(exprs[i])) {
            return gar_plan_windows(input, exprs, count, out, err);
        }
    }
    return gar_plan_project_exact(input, exprs, count, out, err);
}

static enum gar_status expand(const struct gar_schema *schema, struct gar_expr *const *exprs,
                              int64_t count, struct expr_list *list, struct gar_error *err)
{
    for (int64_t i = 0; i < count; i++) {
        if (exprs[i]->kind != GAR_EXPR_COLUMN || strcmp(exprs[i]->name, "*") != 0) {
            GAR_TRY(push(list, gar_expr_ref(exprs[i]), err));
            continue;
        }
        for (int64_t c = 0; c < schema->count; c++) {
            GAR_TRY(push_column(list, schema->fields[c].name, err));
        }
    }
    return GAR_OK;
}

enum gar_status gar_plan_project(struct gar_plan *input, struct gar_expr *const *exprs,
                                 int64_t count, struct gar_plan **out, struct gar_error *err)
{
    struct expr_list list = {0};
    enum gar_status status = expand(input->schema, exprs, count, &list, err);
    bool has_aggregate = false;
    for (int64_t i = 0; i < list.count; i++) {
        has_aggregate = has_aggregate || gar_expr_has_aggregate(list.items[i]);
    }
    if (status >= 0) {
        status = has_aggregate
                     ? gar_plan_aggregate(input, NULL, 0, list.items, list.count, out, err)
                     : project_any(input, list.items, list.count, out, err);
    }
    destroy_list(&list);
    return status;
}

/* Position of the last expression in exprs that makes `name`, or -1. */
static int64_t find_made(struct gar_expr *const *exprs, int64_t count, const char *name)
{
    for (int64_t i = 0; i < count; i++) {
        if (strcmp(gar_expr_name(exprs[i]), name) == 0) {
            return i;
        }
    }
    return -1;
}

static enum gar_status list_with_columns(const struct gar_schema *schema,
                                         struct gar_expr *const *exprs, int64_t count,
                                         struct expr_list *list, struct gar_error *err)
{
    for (int64_t c = 0; c < schema->count; c++) {
        const int64_t made = find_made(exprs, count, schema->fields[c].name);
        if (made >= 0) {
            GAR_TRY(push(list, gar_expr_ref(exprs[made]), err));
        } else {
            GAR_TRY(push_column(list, schema->fields[c].name, err));
        }
    }
    for (int64_t i = 0; i < count; i++) {
        const char *name = gar_expr_name(exprs[i]);
        if (find_made(exprs, i, name) >= 0) {
            return gar_error_set(
                err, GAR_ERR_VALUE,
                "two of the new columns are named '%s'; give one of them another name", name);
        }
        if (gar_schema_find(schema, name) < 0) {
            GAR_TRY(push(list, gar_expr_ref(exprs[i]), err));
        }
    }
    return GAR_OK;
}

enum gar_status gar_plan_with_columns(struct gar_plan *input, struct gar_expr *const *exprs,
                                      int64_t count, struct gar_plan **out, struct gar_error *err)
{
    struct expr_list list = {0};
    enum gar_status status = list_with_columns(input->schema, exprs, count, &list, err);
    if (status >= 0) {
        status = project_any(input, list.items, list.count, out, err);
    }
    destroy_list(&list);
    return status;
}

static int64_t find_name(const char *const *names, int64_t count, const char *name)
{
    for (int64_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

/* All names must be columns, each named once. */
static enum gar_status check_names(const struct gar_schema *schema, const char *const *names,
                                   int64_t count, struct gar_error *err)
{
    for (int64_t i = 0; i < count; i++) {
        int64_t position = 0;
        GAR_TRY(gar_schema_get(schema, names[i], &position, err));
        if (find_name(names, i, names[i]) >= 0) {
            return gar_error_set(err, GAR_ERR_VALUE, "column '%s' is named twice", names[i]);
        }
    }
    return GAR_OK;
}

static enum gar_status list_renamed(const struct gar_schema *schema, const char *const *from,
                                    const char *const *to, int64_t count, struct expr_list *list,
                                    struct gar_error *err)
{
    GAR_TRY(check_names(schema, from, count, err));
    for (int64_t c = 0; c < schema->count; c++) {
        const char *name = schema->fields[c].name;
        const int64_t i = find_name(from, count, name);
        GAR_TRY(push_column(list, name, err));
        if (i >= 0 && strcmp(to[i], name) != 0) {
            struct gar_expr *column = list->items[c];
            struct gar_expr *renamed = NULL;
            GAR_TRY(gar_expr_new_alias(column, to[i], &renamed, err));
            list->items[c] = renamed;
            gar_expr_unref(column);
        }
    }
    return GAR_OK;
}

enum gar_status gar_plan_rename(struct gar_plan *input, const char *const *from,
                                const char *const *to, int64_t count, struct gar_plan **out,
                                struct gar_error *err)
{
    struct expr_list list = {0};
    enum gar_status status = list_renamed(input->schema, from, to, count, &list, err);
    if (status >= 0) {
        status = gar_plan_project_exact(input, list.items, list.count, out, err);
    }
    destroy_list(&list);
    return status;
}

enum gar_status gar_plan_exclude(struct gar_plan *input, const char *const *names, int64_t count,
                                 struct gar_plan **out, struct gar_error *err)
{
    struct expr_list list = {0};
    enum gar_status status = check_names(input->schema, names, count, err);
    for (int64_t c = 0; c < input->schema->count && status >= 0; c++) {
        if (find_name(names, count, input->schema->fields[c].name) < 0) {
            status = push_column(&list, input->schema->fields[c].name, err);
        }
    }
    if (status >= 0) {
        status = gar_plan_project_exact(input, list.items, list.count, out, err);
    }
    destroy_list(&list);
    return status;
}
