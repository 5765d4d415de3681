/* SPDX-License-Identifier: Apache-2.0 */
/* Aggregates over expressions. An AGGREGATE node computes bare aggregate calls only; sum(a) / sum(b), a call asked for
 * twice, or a key inside an expression are split: each different call once in the AGGREGATE, the rest in a PROJECT
 * above it that refers to calls and keys as columns. */
#include <string.h>

#include "base/alloc.h"
#include "plan/plan.h"
#include "plan/plan_priv.h"
#include "plan/rewrite.h"

enum gar_status gar_plan_aggregate_exact(struct gar_plan *input, struct gar_expr *const *exprs,
                                         int64_t count, int64_t key_count, struct gar_plan **out,
                                         struct gar_error *err)
{
    struct gar_schema *schema = NULL;
    GAR_TRY(gar_plan_schema_of(input->schema, exprs, count, key_count, &schema, err));
    const enum gar_status status =
        gar_plan_new_node(GAR_PLAN_AGGREGATE, &input, 1, exprs, count, out, err);
    if (status < 0) {
        gar_schema_unref(schema);
        return status;
    }
    (*out)->schema = schema;
    (*out)->key_count = key_count;
    return GAR_OK;
}

static bool is_aggregate_call(const struct gar_expr *expr)
{
    return expr->kind == GAR_EXPR_CALL &&
           gar_function_info(expr->function)->kind == GAR_FUNCTION_AGGREGATE;
}

/* Keys and the different calls found so far, all under the names they have in the AGGREGATE node. */
struct split {
    const struct gar_schema *input;
    struct gar_expr **inner; /* keys, then calls; owned, each under its name */
    int64_t key_count;
    int64_t count;
    int64_t capacity;
};

static const struct gar_expr *bare(const struct gar_expr *expr)
{
    while (expr->kind == GAR_EXPR_ALIAS) {
        expr = expr->args[0];
    }
    return expr;
}

static bool name_is_taken(const struct split *split, const char *name)
{
    for (int64_t i = 0; i < split->count; i++) {
        if (strcmp(gar_expr_name(split->inner[i]), name) == 0) {
            return true;
        }
    }
    return false;
}

/* Name a call by its text, so that plans read well. */
static enum gar_status name_call(const struct split *split, struct gar_expr *call,
                                 struct gar_expr **out, struct gar_error *err)
{
    struct gar_strbuf name = {0};
    gar_expr_print(call, &name);
    while (!name.failed && name_is_taken(split, gar_strbuf_text(&name))) {
        gar_strbuf_append(&name, "'");
    }
    const enum gar_status status = name.failed
                                       ? gar_error_nomem(err, name.size)
                                       : gar_expr_new_alias(call, gar_strbuf_text(&name), out, err);
    gar_strbuf_destroy(&name);
    return status;
}

/* Position of the call among the inner expressions; it is added if new. */
static enum gar_status find_or_add_call(struct split *split, const struct gar_expr *call,
                                        int64_t *out, struct gar_error *err)
{
    for (int64_t i = split->key_count; i < split->count; i++) {
        if (gar_expr_equal(bare(split->inner[i]), call)) {
            *out = i;
            return GAR_OK;
        }
    }
    void *items = split->inner;
    GAR_TRY(
        gar_grow(&items, &split->capacity, split->count + 1, (int64_t)sizeof *split->inner, err));
    split->inner = items;
    struct gar_expr *shared = gar_expr_ref(call);
    const enum gar_status status = name_call(split, shared, &split->inner[split->count], err);
    gar_expr_unref(shared);
    if (status >= 0) {
        *out = split->count++;
    }
    return status;
}

static enum gar_status replace_inner(const struct gar_expr *expr, void *context,
                                     struct gar_expr **out, struct gar_error *err)
{
    struct split *split = context;
    if (expr->kind == GAR_EXPR_WINDOW) {
        return gar_error_set(
            err, GAR_ERR_UNSUPPORTED,
            "windows cannot stand beside aggregates of all rows; compute them in two "
            "steps");
    }
    if (is_aggregate_call(expr)) {
        int64_t i = 0;
        GAR_TRY(find_or_add_call(split, expr, &i, err));
        return gar_expr_new_column(gar_expr_name(split->inner[i]), out, err);
    }
    for (int64_t i = 0; i < split->key_count; i++) {
        if (gar_expr_equal(bare(split->inner[i]), expr)) {
            return gar_expr_new_column(gar_expr_name(split->inner[i]), out, err);
        }
    }
    if (expr->kind == GAR_EXPR_COLUMN) {
        for (int64_t i = 0; i < split->key_count; i++) { /* a key by the name it was given */
            if (strcmp(gar_expr_name(split->inner[i]), expr->name) == 0) {
                *out = gar_expr_ref(expr);
                return GAR_OK;
            }
        }
        int64_t position = 0;
        GAR_TRY(gar_schema_get(split->input, expr->name, &position, err));
        return gar_error_set(err, GAR_ERR_VALUE,
                             "column '%s' is neither a key of the grouping nor inside an "
                             "aggregate; aggregate it, e.g. any_value(%s)",
                             expr->name, expr->name);
    }
    return GAR_OK;
}

/* All aggregates are bare calls and no two are the same: one node is enough. */
static bool is_simple(struct gar_expr *const *aggs, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (!is_aggregate_call(bare(aggs[i]))) {
            return false;
        }
        for (int64_t j = 0; j < i; j++) {
            if (gar_expr_equal(bare(aggs[i]), bare(aggs[j]))) {
                return false;
            }
        }
    }
    return true;
}

static enum gar_status simple_aggregate(struct gar_plan *input, struct gar_expr *const *keys,
                                        int64_t key_count, struct gar_expr *const *aggs,
                                        int64_t agg_count, struct gar_plan **out,
                                        struct gar_error *err)
{
    const int64_t count = key_count + agg_count;
    struct gar_expr **all = gar_calloc(count, (int64_t)sizeof *all);
    if (all == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *all);
    }
    if (key_count > 0) {
        memcpy(all, keys, (size_t)key_count * sizeof *all);
    }
    if (agg_count > 0) {
        memcpy(all + key_count, aggs, (size_t)agg_count * sizeof *all);
    }
    const enum gar_status status = gar_plan_aggregate_exact(input, all, count, key_count, out, err);
    gar_free(all); /* the expressions were borrowed */
    return status;
}

static enum gar_status fill_outer(struct split *split, struct gar_expr *const *aggs,
                                  int64_t agg_count, struct gar_expr **outer, struct gar_error *err)
{
    for (int64_t i = 0; i < split->key_count; i++) {
        GAR_TRY(gar_expr_new_column(gar_expr_name(split->inner[i]), &outer[i], err));
    }
    for (int64_t i = 0; i < agg_count; i++) {
        struct gar_expr *rewritten = NULL;
        GAR_TRY(gar_expr_rewrite(bare(aggs[i]), replace_inner, split, &rewritten, err));
        const enum gar_status status =
            gar_expr_named(rewritten, gar_expr_name(aggs[i]), &outer[split->key_count + i], err);
        gar_expr_unref(rewritten);
        GAR_TRY(status);
    }
    return GAR_OK;
}

static enum gar_status split_aggregate(struct split *split, struct gar_plan *input,
                                       struct gar_expr *const *aggs, int64_t agg_count,
                                       struct gar_expr **outer, struct gar_plan **out,
                                       struct gar_error *err)
{
    GAR_TRY(fill_outer(split, aggs, agg_count, outer, err));
    struct gar_plan *aggregate = NULL;
    GAR_TRY(gar_plan_aggregate_exact(input, split->inner, split->count, split->key_count,
                                     &aggregate, err));
    const enum gar_status status =
        gar_plan_project_exact(aggregate, outer, split->key_count + agg_count, out, err);
    gar_plan_unref(aggregate);
    return status;
}

/* Does an aggregate look at what a user function gives? */
static bool has_udf_inside(struct gar_expr *const *exprs, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (is_aggregate_call(exprs[i]) ? gar_expr_has_udf(exprs[i])
                                        : has_udf_inside(exprs[i]->args, exprs[i]->arg_count)) {
            return true;
        }
    }
    return false;
}

/* Calls in keys and inside aggregates come before the aggregation. */
static enum gar_status aggregate_udfs(struct gar_plan *input, struct gar_expr *const *keys,
                                      int64_t key_count, struct gar_expr *const *aggs,
                                      int64_t agg_count, struct gar_plan **out,
                                      struct gar_error *err)
{
    const int64_t count = key_count + agg_count;
    struct gar_expr **all = gar_calloc(count, (int64_t)sizeof *all);
    struct gar_expr **plain = gar_calloc(count, (int64_t)sizeof *plain);
    struct gar_plan *below = NULL;
    enum gar_status status =
        all != NULL && plain != NULL ? GAR_OK : gar_error_nomem(err, count * 8);
    if (status >= 0) {
        for (int64_t i = 0; i < count; i++) {
            all[i] = i < key_count ? keys[i] : aggs[i - key_count]; /* borrowed */
        }
        status = gar_plan_split_udfs(input, all, count, key_count, false, &below, plain, err);
    }
    if (status >= 0) {
        status =
            gar_plan_aggregate(below, plain, key_count, plain + key_count, agg_count, out, err);
    }
    gar_plan_unref(below);
    gar_free(all);
    gar_exprs_free(plain, count);
    return status;
}

enum gar_status gar_plan_aggregate(struct gar_plan *input, struct gar_expr *const *keys,
                                   int64_t key_count, struct gar_expr *const *aggs,
                                   int64_t agg_count, struct gar_plan **out, struct gar_error *err)
{
    if (key_count + agg_count <= 0) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "an aggregation needs at least one key or aggregate");
    }
    if (gar_plan_has_udf(keys, key_count) || has_udf_inside(aggs, agg_count)) {
        return aggregate_udfs(input, keys, key_count, aggs, agg_count, out, err);
    }
    if (is_simple(aggs, agg_count)) {
        return simple_aggregate(input, keys, key_count, aggs, agg_count, out, err);
    }
    struct split split = {.input = input->schema};
    const int64_t outer_count = key_count + agg_count;
    struct gar_expr **outer = gar_calloc(outer_count, (int64_t)sizeof *outer);
    void *items = NULL;
    enum gar_status status =
        outer == NULL ? gar_error_nomem(err, outer_count * (int64_t)sizeof *outer) : GAR_OK;
    if (status >= 0) {
        status = gar_grow(&items, &split.capacity, outer_count, (int64_t)sizeof *split.inner, err);
    }
    split.inner = items;
    if (status >= 0) {
        for (int64_t i = 0; i < key_count; i++) {
            split.inner[i] = gar_expr_ref(keys[i]);
        }
        split.key_count = split.count = key_count;
        status = split_aggregate(&split, input, aggs, agg_count, outer, out, err);
    }
    gar_exprs_free(split.inner, split.count);
    gar_exprs_free(outer, outer_count);
    return status;
}
