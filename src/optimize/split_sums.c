/* SPDX-License-Identifier: Apache-2.0 */
/* split_sums: sums of one small integer and different constants, sum(x + 1), sum(x + 2), ..., become sum(x) and count(x), which
 * are computed once, and sum(x) + k * count(x) for each. Only where neither x + k nor the parts can overflow, whatever
 * the values are, so that no error comes or goes. */
#include <string.h>

#include "base/alloc.h"
#include "optimize/rule_priv.h"

/* Of fewer sums the parts cost more than they save. */
enum { SUMS_MIN = 3 };

/* sum(of + by), as a part of a node. */
struct shifted {
    struct gar_expr *of; /* borrowed */
    int64_t by;
    bool is_shifted;
    int64_t part; /* the sums of one `of` have one number; -1: not split */
};

struct split {
    const struct gar_plan *node; /* borrowed */
    struct shifted *sums;        /* owned; expr_count items */
    int64_t part_count;
    struct gar_expr **inner; /* owned; of the new aggregate */
    int64_t inner_count;
    struct gar_expr **outer;    /* owned; of the projection above it */
    struct gar_plan *aggregate; /* owned */
};

/* Least and greatest value of an integer type of at most 32 bits. */
static bool small_range(struct gar_type type, int64_t *least, int64_t *greatest)
{
    const int32_t bits = 8 * gar_type_width(type);
    if (!gar_type_is_integer(type) || bits > 32) {
        return false;
    }
    *least = gar_type_is_signed(type) ? -(INT64_C(1) << (bits - 1)) : 0;
    *greatest = (INT64_C(1) << (gar_type_is_signed(type) ? bits - 1 : bits)) - 1;
    return true;
}

static bool read_constant(const struct gar_expr *expr, int64_t *out)
{
    if (expr->kind != GAR_EXPR_LITERAL || !expr->value.is_valid ||
        !gar_type_is_signed(expr->value.type)) {
        return false;
    }
    *out = expr->value.i64;
    return *out >= INT32_MIN && *out <= INT32_MAX;
}

/* x + k, k + x or x - k. */
static bool read_sum(const struct gar_expr *sum, struct shifted *out)
{
    const bool is_add = gar_expr_is_call(sum, "add");
    if (!is_add && !gar_expr_is_call(sum, "subtract")) {
        return false;
    }
    if (read_constant(sum->args[1], &out->by)) {
        out->of = sum->args[0];
        out->by = is_add ? out->by : -out->by;
        return true;
    }
    out->of = sum->args[1];
    return is_add && read_constant(sum->args[0], &out->by);
}

/* Does x + k fit into its type for every x? */
static bool is_safe(const struct gar_expr *sum, const struct shifted *shifted,
                    const struct gar_schema *schema)
{
    struct gar_type from = {0};
    struct gar_type to = {0};
    int64_t least = 0;
    int64_t greatest = 0;
    int64_t to_least = INT64_MIN / 2;
    int64_t to_greatest = INT64_MAX / 2;
    if (gar_expr_type(shifted->of, schema, false, &from, NULL) < 0 ||
        gar_expr_type(sum, schema, false, &to, NULL) < 0 || !small_range(from, &least, &greatest) ||
        !gar_type_is_signed(to)) {
        return false;
    }
    (void)small_range(to, &to_least, &to_greatest);
    return least + shifted->by >= to_least && greatest + shifted->by <= to_greatest;
}

static void find_sums(struct split *split)
{
    const struct gar_plan *node = split->node;
    for (int64_t i = 0; i < node->expr_count; i++) {
        struct shifted *s = &split->sums[i];
        const struct gar_expr *call = gar_expr_strip_alias(node->exprs[i]);
        s->part = -1;
        s->is_shifted = i >= node->key_count && gar_expr_is_call(call, "sum") &&
                        call->arg_count == 1 && read_sum(call->args[0], s) &&
                        is_safe(call->args[0], s, node->inputs[0]->schema);
    }
}

/* Numbers for what enough sums have in common. */
static void number_parts(struct split *split)
{
    const int64_t count = split->node->expr_count;
    for (int64_t i = 0; i < count; i++) {
        int64_t same = 0;
        for (int64_t j = i; j < count && split->sums[i].is_shifted && split->sums[i].part < 0;
             j++) {
            same +=
                split->sums[j].is_shifted && gar_expr_equal(split->sums[j].of, split->sums[i].of);
        }
        if (same < SUMS_MIN) {
            continue;
        }
        struct gar_expr *of = split->sums[i].of;
        for (int64_t j = i; j < count; j++) {
            if (split->sums[j].is_shifted && gar_expr_equal(split->sums[j].of, of)) {
                split->sums[j].part = split->part_count;
            }
        }
        split->part_count++;
    }
}

/* ---- the aggregate below ---- */

static bool name_is_taken(const struct split *split, const char *name)
{
    for (int64_t i = 0; i < split->inner_count; i++) {
        if (strcmp(gar_expr_name(split->inner[i]), name) == 0) {
            return true;
        }
    }
    return gar_schema_find(split->node->schema, name) >= 0;
}

/* function(of) under a name that nothing else has, as the next inner expression. */
static enum gar_status add_part(struct split *split, const char *function, struct gar_expr *of,
                                struct gar_error *err)
{
    struct gar_expr *call = NULL;
    struct gar_strbuf name = {0};
    GAR_TRY(gar_expr_new_call_by_name(function, &of, 1, &call, err));
    gar_expr_print(call, &name);
    while (!name.failed && name_is_taken(split, gar_strbuf_text(&name))) {
        gar_strbuf_append(&name, "'");
    }
    const enum gar_status status = name.failed
                                       ? gar_error_nomem(err, name.size)
                                       : gar_expr_new_alias(call, gar_strbuf_text(&name),
                                                            &split->inner[split->inner_count], err);
    split->inner_count += status >= 0;
    gar_strbuf_destroy(&name);
    gar_expr_unref(call);
    return status;
}

/* What stays as it is, then sum and count of each part. */
static enum gar_status make_aggregate(struct split *split, struct gar_error *err)
{
    const struct gar_plan *node = split->node;
    for (int64_t i = 0; i < node->expr_count; i++) {
        if (split->sums[i].part < 0) {
            split->inner[split->inner_count++] = gar_expr_ref(node->exprs[i]);
        }
    }
    for (int64_t p = 0; p < split->part_count; p++) {
        int64_t i = 0;
        while (split->sums[i].part != p) {
            i++;
        }
        GAR_TRY(add_part(split, "sum", split->sums[i].of, err));
        GAR_TRY(add_part(split, "count", split->sums[i].of, err));
    }
    return gar_plan_aggregate_exact(node->inputs[0], split->inner, split->inner_count,
                                    node->key_count, &split->aggregate, err);
}

/* ---- the projection above ---- */

/* An inner column as int64. */
static enum gar_status new_part(const struct split *split, int64_t at, struct gar_expr **out,
                                struct gar_error *err)
{
    struct gar_expr *column = NULL;
    GAR_TRY(gar_expr_new_column(gar_expr_name(split->inner[at]), &column, err));
    const enum gar_status status =
        gar_expr_new_cast(column, gar_type_of(GAR_INT64), false, out, err);
    gar_expr_unref(column);
    return status;
}

/* sum + k * count. */
static enum gar_status join_parts(const struct split *split, const struct shifted *shifted,
                                  struct gar_expr **out, struct gar_error *err)
{
    const struct gar_value by = {
        .type = gar_type_of(GAR_INT64), .is_valid = true, .i64 = shifted->by};
    const int64_t at = split->inner_count - 2 * (split->part_count - shifted->part);
    struct gar_expr *factors[2] = {NULL, NULL};
    struct gar_expr *terms[2] = {NULL, NULL};
    enum gar_status status = new_part(split, at, &terms[0], err);
    if (status >= 0) {
        status = new_part(split, at + 1, &factors[0], err);
    }
    if (status >= 0) {
        status = gar_expr_new_literal(&by, &factors[1], err);
    }
    if (status >= 0) {
        status = gar_expr_new_call_by_name("multiply", factors, 2, &terms[1], err);
    }
    if (status >= 0) {
        status = gar_expr_new_call_by_name("add", terms, 2, out, err);
    }
    for (int32_t i = 0; i < 2; i++) {
        gar_expr_unref(factors[i]);
        gar_expr_unref(terms[i]);
    }
    return status;
}

static enum gar_status make_projection(struct split *split, struct gar_plan **out,
                                       struct gar_error *err)
{
    const struct gar_plan *node = split->node;
    for (int64_t i = 0; i < node->expr_count; i++) {
        const char *name = node->schema->fields[i].name;
        struct gar_expr *sum = NULL;
        if (split->sums[i].part < 0) {
            GAR_TRY(gar_expr_new_column(name, &split->outer[i], err));
            continue;
        }
        GAR_TRY(join_parts(split, &split->sums[i], &sum, err));
        const enum gar_status status = gar_expr_named(sum, name, &split->outer[i], err);
        gar_expr_unref(sum);
        GAR_TRY(status);
    }
    return gar_plan_project_exact(split->aggregate, split->outer, node->expr_count, out, err);
}

static enum gar_status split_node(const struct gar_plan *node, struct gar_plan **out,
                                  struct gar_error *err)
{
    if (node->kind != GAR_PLAN_AGGREGATE) {
        return GAR_OK;
    }
    const int64_t count = node->expr_count;
    struct split split = {.node = node};
    split.sums = (struct shifted *)gar_calloc(count, (int64_t)sizeof *split.sums);
    split.inner = (struct gar_expr **)gar_calloc(2 * count, (int64_t)sizeof *split.inner);
    split.outer = (struct gar_expr **)gar_calloc(count, (int64_t)sizeof *split.outer);
    enum gar_status status = split.sums != NULL && split.inner != NULL && split.outer != NULL
                                 ? GAR_OK
                                 : gar_error_nomem(err, count * (int64_t)sizeof *split.sums);
    if (status >= 0) {
        find_sums(&split);
        number_parts(&split);
    }
    if (status >= 0 && split.part_count > 0) {
        status = make_aggregate(&split, err);
        if (status >= 0) {
            status = make_projection(&split, out, err);
        }
    }
    gar_exprs_free(split.inner, 2 * count);
    gar_exprs_free(split.outer, count);
    gar_plan_unref(split.aggregate);
    gar_free(split.sums);
    return status;
}

enum gar_status gar_rule_split_sums(const struct gar_plan *plan, struct gar_plan **out,
                                    struct gar_error *err)
{
    return gar_plan_map(plan, split_node, out, err);
}
