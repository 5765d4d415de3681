/* SPDX-License-Identifier: Apache-2.0 */
/* push_limits: limits pass projections, join other limits, make a sort a top-N, go into scans (which may stop early) and into
 * the inputs of concat. Nothing is scanned for no rows at all. */
#include "base/alloc.h"
#include "optimize/rule_priv.h"

/* LIMIT offset, limit over input, as low as it gets. */
static enum gar_status limit_over(struct gar_plan *input, int64_t offset, int64_t limit,
                                  struct gar_plan **out, struct gar_error *err);

/* Rows that must be there before the offset is taken off; -1 for all. */
static int64_t rows_needed(int64_t offset, int64_t limit)
{
    int64_t rows = 0;
    return limit < 0 || __builtin_add_overflow(offset, limit, &rows) ? -1 : rows;
}

static enum gar_status merge_limits(const struct gar_plan *inner, int64_t offset, int64_t limit,
                                    struct gar_plan **out, struct gar_error *err)
{
    int64_t sum = 0;
    if (__builtin_add_overflow(inner->offset, offset, &sum)) {
        sum = INT64_MAX;
    }
    if (inner->limit >= 0) {
        const int64_t left = gar_max_i64(inner->limit - offset, 0);
        limit = limit < 0 ? left : gar_min_i64(limit, left);
    }
    return limit_over(inner->inputs[0], sum, limit, out, err);
}

static enum gar_status limit_project(const struct gar_plan *project, int64_t offset, int64_t limit,
                                     struct gar_plan **out, struct gar_error *err)
{
    struct gar_plan *below = NULL;
    GAR_TRY(limit_over(project->inputs[0], offset, limit, &below, err));
    const enum gar_status status = gar_plan_over(project, below, out, err);
    gar_plan_unref(below);
    return status;
}

static enum gar_status limit_sort(struct gar_plan *sort, int64_t offset, int64_t limit,
                                  struct gar_plan **out, struct gar_error *err)
{
    const int64_t rows = rows_needed(offset, limit);
    struct gar_plan *top = NULL;
    if (rows >= 0 && (sort->limit < 0 || rows < sort->limit)) {
        GAR_TRY(gar_plan_sort(sort->inputs[0], sort->exprs, sort->descending, sort->nulls_first,
                              sort->expr_count, rows, &top, err));
    } else {
        top = gar_plan_ref(sort);
    }
    if (offset == 0 && rows >= 0) {
        *out = top; /* the sort gives no more rows than its limit */
        return GAR_OK;
    }
    const enum gar_status status = gar_plan_limit(top, offset, limit, out, err);
    gar_plan_unref(top);
    return status;
}

static enum gar_status limit_scan(struct gar_plan *scan, int64_t offset, int64_t limit,
                                  struct gar_plan **out, struct gar_error *err)
{
    const int64_t rows = rows_needed(offset, limit);
    if (rows < 0 || (scan->limit >= 0 && scan->limit <= rows)) {
        return gar_plan_limit(scan, offset, limit, out, err);
    }
    struct gar_plan *pushed = NULL;
    GAR_TRY(gar_plan_scan_pushed(scan, scan->columns, scan->schema->count, scan->filter, rows,
                                 &pushed, err));
    const enum gar_status status =
        gar_plan_limit(pushed, offset, limit, out, err); /* scans may give more */
    gar_plan_unref(pushed);
    return status;
}

/* Does the input give at most so many rows already? */
static bool is_limited(const struct gar_plan *plan, int64_t rows)
{
    while (plan->kind == GAR_PLAN_PROJECT ||
           (plan->kind == GAR_PLAN_UDF && !plan->udf->is_expanding)) {
        plan = plan->inputs[0];
    }
    return (plan->kind == GAR_PLAN_LIMIT || plan->kind == GAR_PLAN_SORT) && plan->limit >= 0 &&
           plan->limit <= rows;
}

static enum gar_status limit_inputs(const struct gar_plan *concat, int64_t rows,
                                    struct gar_plan **inputs, struct gar_plan **out,
                                    struct gar_error *err)
{
    bool has_changed = false;
    for (int64_t i = 0; i < concat->input_count; i++) {
        if (is_limited(concat->inputs[i], rows)) {
            inputs[i] = gar_plan_ref(concat->inputs[i]);
        } else {
            GAR_TRY(limit_over(concat->inputs[i], 0, rows, &inputs[i], err));
            has_changed = true;
        }
    }
    if (!has_changed) {
        *out = gar_plan_ref(concat);
        return GAR_OK;
    }
    return gar_plan_with_inputs(concat, inputs, out, err);
}

static enum gar_status limit_concat(struct gar_plan *concat, int64_t offset, int64_t limit,
                                    struct gar_plan **out, struct gar_error *err)
{
    const int64_t rows = rows_needed(offset, limit);
    if (rows < 0) {
        return gar_plan_limit(concat, offset, limit, out, err);
    }
    struct gar_plan **inputs = gar_calloc(concat->input_count, (int64_t)sizeof *inputs);
    struct gar_plan *limited = NULL;
    if (inputs == NULL) {
        return gar_error_nomem(err, concat->input_count * (int64_t)sizeof *inputs);
    }
    enum gar_status status = limit_inputs(concat, rows, inputs, &limited, err);
    if (status >= 0) {
        status = gar_plan_limit(limited, offset, limit, out, err);
    }
    gar_plan_unref(limited);
    for (int64_t i = 0; i < concat->input_count; i++) {
        gar_plan_unref(inputs[i]);
    }
    gar_free(inputs);
    return status;
}

static enum gar_status no_rows(struct gar_schema *schema, struct gar_plan **out,
                               struct gar_error *err)
{
    struct gar_scan_provider *provider = NULL;
    GAR_TRY(gar_memory_provider_new(schema, NULL, 0, &provider, err));
    const enum gar_status status = gar_plan_scan(provider, out, err);
    gar_scan_provider_unref(provider);
    return status;
}

static enum gar_status limit_over(struct gar_plan *input, int64_t offset, int64_t limit,
                                  struct gar_plan **out, struct gar_error *err)
{
    if (limit == 0) {
        return no_rows(input->schema, out, err);
    }
    switch (input->kind) {
    case GAR_PLAN_SCAN: return limit_scan(input, offset, limit, out, err);
    case GAR_PLAN_PROJECT: return limit_project(input, offset, limit, out, err);
    case GAR_PLAN_LIMIT: return merge_limits(input, offset, limit, out, err);
    case GAR_PLAN_SORT: return limit_sort(input, offset, limit, out, err);
    case GAR_PLAN_CONCAT: return limit_concat(input, offset, limit, out, err);
    case GAR_PLAN_UDF:
        if (!input->udf->is_expanding) {
            return limit_project(input, offset, limit, out, err);
        }
        break;
    case GAR_PLAN_FILTER:
    case GAR_PLAN_AGGREGATE:
    case GAR_PLAN_DISTINCT:
    case GAR_PLAN_JOIN:
    case GAR_PLAN_WINDOW:
    case GAR_PLAN_WRITE: break;
    }
    return gar_plan_limit(input, offset, limit, out, err);
}

static enum gar_status push_limit(const struct gar_plan *node, struct gar_plan **out,
                                  struct gar_error *err)
{
    if (node->kind != GAR_PLAN_LIMIT) {
        return GAR_OK;
    }
    struct gar_plan *pushed = NULL;
    GAR_TRY(limit_over(node->inputs[0], node->offset, node->limit, &pushed, err));
    if (pushed->kind == GAR_PLAN_LIMIT && pushed->inputs[0] == node->inputs[0]) {
        gar_plan_unref(pushed); /* it stays where it is */
        return GAR_OK;
    }
    *out = pushed;
    return GAR_OK;
}

enum gar_status gar_rule_push_limits(const struct gar_plan *plan, struct gar_plan **out,
                                     struct gar_error *err)
{
    return gar_plan_map(plan, push_limit, out, err);
}
