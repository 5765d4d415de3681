/* SPDX-License-Identifier: Apache-2.0 */
/* User functions: every call becomes a UDF node below the node that uses it, which then sees a plain column. The column
 * has a name that no other has ("f#1"); the node that uses it gives it away again. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "plan/plan.h"
#include "plan/plan_priv.h"
#include "plan/rewrite.h"

enum { NAME_BYTES = 160 };

/* Calls taken out so far. */
struct taken {
    struct gar_expr *call; /* owned reference; its arguments are rewritten */
    char name[NAME_BYTES];
};

struct split {
    struct gar_plan *plan; /* owned reference */
    struct taken *taken;   /* owned */
    int64_t count;
    int64_t capacity;
    bool may_expand;
    bool is_expanded;
};

enum gar_status gar_plan_udf(struct gar_plan *input, struct gar_udf *udf,
                             struct gar_expr *const *args, int64_t count, const char *name,
                             struct gar_plan **out, struct gar_error *err)
{
    for (int64_t i = 0; i < count; i++) {
        struct gar_type type = {0};
        GAR_TRY(gar_expr_type(args[i], input->schema, false, &type, err));
        if (udf->is_grouped && i == 0 && type.id != GAR_INT64) {
            return gar_error_set(err, GAR_ERR_TYPE,
                                 "UDF '%s': the first argument of a function of groups is their "
                                 "number, an int64",
                                 udf->name);
        }
    }
    if (udf->is_grouped && (count == 0 || udf->batch_rows > 0)) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "UDF '%s': a function of groups needs their number as its first "
                             "argument, and no batch size",
                             udf->name);
    }
    const int64_t columns = input->schema->count;
    struct gar_field *fields = gar_calloc(columns + 1, (int64_t)sizeof *fields);
    char *copy = gar_strdup(name);
    struct gar_plan *plan = NULL;
    enum gar_status status = fields != NULL && copy != NULL
                                 ? GAR_OK
                                 : gar_error_nomem(err, (columns + 1) * (int64_t)sizeof *fields);
    if (status >= 0) {
        status = gar_plan_new_node(GAR_PLAN_UDF, &input, 1, args, count, &plan, err);
    }
    if (status >= 0) {
        if (columns > 0) {
            memcpy(fields, input->schema->fields, (size_t)columns * sizeof *fields);
        }
        fields[columns] = (struct gar_field){.name = copy, .type = udf->type, .nullable = true};
        plan->udf = gar_udf_ref(udf);
        status = gar_schema_new(fields, columns + 1, false, &plan->schema, err);
    }
    gar_free(copy);
    gar_free(fields);
    if (status < 0) {
        gar_plan_unref(plan);
        return status;
    }
    *out = plan;
    return GAR_OK;
}

/* A name for the call's column that the plan does not have. */
static void name_call(const struct gar_plan *plan, const struct gar_udf *udf, char *name)
{
    int64_t n = 0;
    do {
        (void)snprintf(name, NAME_BYTES, "%.100s#%lld", udf->name, (long long)++n);
    } while (gar_schema_find(plan->schema, name) >= 0);
}

/* A call whose arguments are plain becomes a node and a column. */
static enum gar_status take_call(const struct gar_expr *expr, void *context, struct gar_expr **out,
                                 struct gar_error *err)
{
    struct split *split = context;
    if (expr->kind != GAR_EXPR_UDF) {
        return GAR_OK;
    }
    for (int64_t i = 0; i < split->count; i++) {
        if (gar_expr_equal(split->taken[i].call, expr)) {
            return gar_expr_new_column(split->taken[i].name, out, err);
        }
    }
    struct gar_udf *udf = expr->udf;
    if (udf->is_expanding && !split->may_expand) {
        return gar_error_set(err, GAR_ERR_UNSUPPORTED,
                             "the generator '%s' changes the number of rows; select it alone or "
                             "with plain columns first, then go on",
                             udf->name);
    }
    if (udf->is_expanding && split->is_expanded) {
        return gar_error_set(err, GAR_ERR_UNSUPPORTED,
                             "a second generator, '%s', in one step; use two steps", udf->name);
    }
    void *items = split->taken;
    GAR_TRY(
        gar_grow(&items, &split->capacity, split->count + 1, (int64_t)sizeof *split->taken, err));
    split->taken = items;
    struct taken *taken = &split->taken[split->count];
    name_call(split->plan, udf, taken->name);
    struct gar_plan *plan = NULL;
    GAR_TRY(gar_plan_udf(split->plan, udf, expr->args, expr->arg_count, taken->name, &plan, err));
    gar_plan_unref(split->plan);
    split->plan = plan;
    split->is_expanded = split->is_expanded || udf->is_expanding;
    taken->call = gar_expr_ref(expr);
    split->count++;
    return gar_expr_new_column(taken->name, out, err);
}

static bool is_aggregate_call(const struct gar_expr *expr)
{
    return expr->kind == GAR_EXPR_CALL &&
           gar_function_info(expr->function)->kind == GAR_FUNCTION_AGGREGATE;
}

/* Inside aggregates only: calls over aggregates come after the aggregation. */
static enum gar_status take_inside(const struct gar_expr *expr, void *context,
                                   struct gar_expr **out, struct gar_error *err)
{
    return is_aggregate_call(expr) ? gar_expr_rewrite_up(expr, take_call, context, out, err)
                                   : GAR_OK;
}

bool gar_plan_has_udf(struct gar_expr *const *exprs, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (gar_expr_has_udf(exprs[i])) {
            return true;
        }
    }
    return false;
}

enum gar_status gar_plan_split_udfs(struct gar_plan *input, struct gar_expr *const *exprs,
                                    int64_t count, int64_t first_aggregate, bool may_expand,
                                    struct gar_plan **out_plan, struct gar_expr **out_exprs,
                                    struct gar_error *err)
{
    struct split split = {.plan = gar_plan_ref(input), .may_expand = may_expand};
    enum gar_status status = GAR_OK;
    for (int64_t i = 0; i < count && status >= 0; i++) {
        struct gar_expr *plain = NULL;
        if (i < first_aggregate) {
            status = gar_expr_rewrite_up(exprs[i], take_call, &split, &plain, err);
        } else {
            status = gar_expr_rewrite(exprs[i], take_inside, &split, &plain, err);
        }
        if (status >= 0) {
            status = plain == exprs[i]
                         ? GAR_OK
                         : gar_expr_named(plain, gar_expr_name(exprs[i]), &out_exprs[i], err);
            if (plain == exprs[i]) {
                out_exprs[i] = gar_expr_ref(plain);
            }
        }
        gar_expr_unref(plain);
    }
    for (int64_t i = 0; i < split.count; i++) {
        gar_expr_unref(split.taken[i].call);
    }
    gar_free(split.taken);
    if (status < 0) {
        gar_plan_unref(split.plan);
        return status;
    }
    *out_plan = split.plan;
    return GAR_OK;
}

enum gar_status gar_plan_only_columns(struct gar_plan *plan, const struct gar_schema *schema,
                                      struct gar_plan **out, struct gar_error *err)
{
    struct gar_expr **columns = gar_calloc(schema->count, (int64_t)sizeof(struct gar_expr *));
    enum gar_status status = columns != NULL ? GAR_OK : gar_error_nomem(err, schema->count * 8);
    for (int64_t i = 0; i < schema->count && status >= 0; i++) {
        status = gar_expr_new_column(schema->fields[i].name, &columns[i], err);
    }
    if (status >= 0) {
        status = gar_plan_project_exact(plan, columns, schema->count, out, err);
    }
    gar_exprs_free(columns, schema->count);
    return status;
}

enum gar_status gar_plan_around_udfs(struct gar_plan *input, struct gar_expr *const *exprs,
                                     int64_t count, gar_plan_build_fn build, const void *context,
                                     struct gar_plan **out, struct gar_error *err)
{
    struct gar_expr **plain = gar_calloc(count, (int64_t)sizeof(struct gar_expr *));
    struct gar_plan *below = NULL;
    struct gar_plan *node = NULL;
    enum gar_status status = plain != NULL ? GAR_OK : gar_error_nomem(err, count * 8);
    if (status >= 0) {
        status = gar_plan_split_udfs(input, exprs, count, count, false, &below, plain, err);
    }
    if (status >= 0) {
        status = build(below, plain, context, &node, err);
    }
    if (status >= 0) {
        status = gar_plan_only_columns(node, input->schema, out, err);
    }
    gar_plan_unref(node);
    gar_plan_unref(below);
    gar_exprs_free(plain, count);
    return status;
}
