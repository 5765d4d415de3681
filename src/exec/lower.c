/* SPDX-License-Identifier: Apache-2.0 */
/* Lowering: a plan becomes pipelines.
 *
 * A node is lowered to a chain: branches of a source and transforms, and an offset and limit that still have to be
 * applied to the rows in order. Filters and projections add a transform to every branch; concat puts branches one behind
 * the other; an aggregate, sort, distinct or write ends the chain with its sink and begins a new one with the sink's
 * result. An offset or limit is left to the next sink that takes rows in order (the result, a write); before
 * anything else that does not keep rows apart, the chain is cut by a list of the limited rows. */
#include <string.h>

#include "base/alloc.h"
#include "exec/key_wants.h"
#include "exec/ops/ops.h"

/* Branches lie in the query's arena. */
struct chain {
    struct gar_branch *branches;
    int64_t count;
    int64_t capacity;
    struct gar_row_range range;
    bool is_sorted; /* rows come in the order of a sort, which is always kept */
};

static const struct gar_row_range all_rows = {.skip = 0, .take = -1};

static bool is_cut(const struct chain *chain)
{
    return chain->range.skip > 0 || chain->range.take >= 0;
}

static enum gar_status add_branch(struct gar_query *query, struct chain *chain,
                                  const struct gar_branch *branch, struct gar_error *err)
{
    if (chain->count == chain->capacity) {
        const int64_t capacity = gar_max_i64(2 * chain->capacity, 1);
        struct gar_branch *more =
            (struct gar_branch *)gar_arena_calloc(&query->arena, capacity, (int64_t)sizeof *more);
        if (more == NULL) {
            return gar_error_nomem(err, capacity * (int64_t)sizeof *more);
        }
        if (chain->count > 0) {
            memcpy(more, chain->branches, (size_t)chain->count * sizeof *more);
        }
        chain->branches = more;
        chain->capacity = capacity;
    }
    chain->branches[chain->count++] = *branch;
    return GAR_OK;
}

static enum gar_status new_chain(struct gar_query *query, struct gar_source *source,
                                 struct chain *chain, struct gar_error *err)
{
    const struct gar_branch branch = {.source = source};
    *chain = (struct chain){.range = all_rows};
    return add_branch(query, chain, &branch, err);
}

static enum gar_status add_transform(struct gar_query *query, struct chain *chain,
                                     struct gar_transform *transform, struct gar_error *err)
{
    for (int64_t b = 0; b < chain->count; b++) {
        struct gar_branch *branch = &chain->branches[b];
        if (branch->transform_count == branch->transform_capacity) {
            const int64_t capacity = gar_max_i64(2 * branch->transform_capacity, 4);
            struct gar_transform **more = (struct gar_transform **)gar_arena_calloc(
                &query->arena, capacity, (int64_t)sizeof(struct gar_transform *));
            if (more == NULL) {
                return gar_error_nomem(err, capacity * 8);
            }
            if (branch->transform_count > 0) {
                memcpy(more, branch->transforms, (size_t)branch->transform_count * sizeof *more);
            }
            branch->transforms = more;
            branch->transform_capacity = capacity;
        }
        branch->transforms[branch->transform_count++] = transform;
    }
    return GAR_OK;
}

/* The chain's rows go into the sink: a pipeline. */
static enum gar_status end_chain(struct gar_query *query, const struct chain *chain,
                                 struct gar_sink *sink, struct gar_error *err)
{
    struct gar_pipeline *pipeline = NULL;
    GAR_TRY(gar_pipeline_new(query, chain->branches, chain->count, sink, &pipeline, err));
    pipeline->range = chain->range;
    pipeline->is_ordered = query->is_ordered || chain->is_sorted;
    *query->tail = pipeline;
    query->tail = &pipeline->next;
    return GAR_OK;
}

/* The last that was made; it is not before a branch yet. */
static struct gar_pipeline *last_pipeline(struct gar_query *query)
{
    struct gar_pipeline *last = query->first;
    while (last->next != NULL) {
        last = last->next;
    }
    return last;
}

/* Apply the limit now. */
static enum gar_status cut_chain(struct gar_query *query, struct chain *chain,
                                 struct gar_error *err)
{
    if (!is_cut(chain)) {
        return GAR_OK;
    }
    struct gar_sink *sink = NULL;
    struct gar_source *source = NULL;
    GAR_TRY(gar_collect_sink_new(query, &sink, &source, err));
    GAR_TRY(end_chain(query, chain, sink, err));
    const bool is_sorted = chain->is_sorted;
    GAR_TRY(new_chain(query, source, chain, err));
    chain->is_sorted = is_sorted;
    return GAR_OK;
}

/* ---- scans ---- */

/* Columns to ask a scan for: those of the plan, then those that only its filter needs. */
struct columns {
    const struct gar_schema *schema; /* of the provider */
    int64_t *positions;              /* in the arena; room for all of the schema and the plan's */
    int64_t count;
};

static void note_column(const char *name, void *context)
{
    struct columns *columns = (struct columns *)context;
    const int64_t position = gar_schema_find(columns->schema, name);
    for (int64_t i = 0; i < columns->count; i++) {
        if (columns->positions[i] == position) {
            return;
        }
    }
    if (position >= 0) {
        columns->positions[columns->count++] = position;
    }
}

/* Only the plan's columns, in its order, of batches that have more. */
static enum gar_status drop_columns(struct gar_query *query, const struct gar_plan *plan,
                                    const struct gar_schema *input, struct chain *chain,
                                    struct gar_error *err)
{
    const int64_t count = plan->schema->count;
    struct gar_expr **exprs = (struct gar_expr **)gar_calloc(count, (int64_t)sizeof *exprs);
    if (exprs == NULL) {
        return gar_error_nomem(err, count * 8);
    }
    enum gar_status status = GAR_OK;
    for (int64_t i = 0; i < count && status >= 0; i++) {
        status = gar_expr_new_column(input->fields[i].name, &exprs[i], err);
    }
    struct gar_transform *transform = NULL;
    if (status >= 0) {
        status = gar_project_new(query, input, exprs, plan->schema, &transform, err);
    }
    for (int64_t i = 0; i < count; i++) {
        gar_expr_unref(exprs[i]);
    }
    gar_free(exprs);
    return status >= 0 ? add_transform(query, chain, transform, err) : status;
}

/* Keys that the scan does not look at are tested behind it; its batches begin with the plan's columns. */
static enum gar_status test_keys(struct gar_query *query, const struct gar_plan *plan,
                                 const struct gar_scan_request *request, struct gar_schema *schema,
                                 struct chain *chain, struct gar_error *err)
{
    for (int64_t k = 0; k < request->key_count && !plan->provider->takes_keys; k++) {
        struct gar_transform *transform = NULL;
        int64_t column = 0;
        while (plan->columns[column] != request->keys[k].position) {
            column++;
        }
        GAR_TRY(gar_key_test_new(query, schema, column, &request->keys[k], &transform, err));
        GAR_TRY(add_transform(query, chain, transform, err));
    }
    return GAR_OK;
}

/* The scan leaves (part of) its filter to us: ask for the columns that it needs too. */
static enum gar_status scan_and_filter(struct gar_query *query, const struct gar_plan *plan,
                                       struct gar_scan_request *request, struct chain *chain,
                                       struct gar_error *err)
{
    struct columns columns = {.schema = plan->provider->schema, .count = plan->schema->count};
    columns.positions = (int64_t *)gar_arena_calloc(
        &query->arena, columns.schema->count + columns.count, (int64_t)sizeof *columns.positions);
    if (columns.positions == NULL) {
        return gar_error_nomem(err, columns.schema->count * 8);
    }
    for (int64_t i = 0; i < columns.count; i++) {
        columns.positions[i] = plan->columns[i];
    }
    gar_expr_visit_columns(plan->filter, note_column, &columns);
    request->columns = columns.positions;
    request->column_count = columns.count;
    struct gar_source *source = NULL;
    const struct gar_scan *scan = NULL;
    struct gar_transform *filter = NULL;
    GAR_TRY(gar_scan_source_new(query, plan->provider, request, &source, &scan, err));
    GAR_TRY(new_chain(query, source, chain, err));
    GAR_TRY(test_keys(query, plan, request, scan->schema, chain, err));
    GAR_TRY(gar_filter_new(query, scan->schema, plan->filter, &filter, err));
    GAR_TRY(add_transform(query, chain, filter, err));
    return columns.count > plan->schema->count ? drop_columns(query, plan, scan->schema, chain, err)
                                               : GAR_OK;
}

/* The scan without its first `skip` rows, as far as it can leave them out; chain->range has the rest. */
static enum gar_status lower_scan(struct gar_query *query, const struct gar_plan *plan,
                                  int64_t skip, const struct gar_key_want *wants,
                                  struct chain *chain, struct gar_error *err)
{
    struct gar_scan_request request = {.columns = plan->columns,
                                       .column_count = plan->schema->count,
                                       .filter = plan->filter,
                                       .skip = plan->filter == NULL ? skip : 0,
                                       .limit = plan->limit,
                                       .batch_rows = query->morsel_rows,
                                       .memory = query->memory,
                                       .cancel = query->cancel};
    GAR_TRY(gar_key_wants_of_scan(query, plan, wants, &request.keys, &request.key_count, err));
    chain->range = all_rows;
    if (plan->filter == NULL || plan->provider->filter_exact) {
        struct gar_source *source = NULL;
        const struct gar_scan *scan = NULL;
        GAR_TRY(gar_scan_source_new(query, plan->provider, &request, &source, &scan, err));
        GAR_TRY(new_chain(query, source, chain, err));
        GAR_TRY(test_keys(query, plan, &request, scan->schema, chain, err));
        chain->range.skip = skip - scan->rows_skipped;
    } else {
        GAR_TRY(scan_and_filter(query, plan, &request, chain, err));
        chain->range.skip = skip;
    }
    chain->range.take = plan->limit < 0 ? -1 : gar_max_i64(plan->limit - skip, 0);
    return GAR_OK;
}

/* ---- other nodes ---- */

static enum gar_status lower(struct gar_query *query, const struct gar_plan *plan, bool is_dry,
                             const struct gar_key_want *wants, struct chain *chain,
                             struct gar_error *err);

/* An input of the node, wanted for what the node is. */
static enum gar_status lower_input(struct gar_query *query, const struct gar_plan *plan,
                                   int64_t input, bool is_dry, const struct gar_key_want *wants,
                                   struct chain *chain, struct gar_error *err)
{
    const struct gar_key_want *below = NULL;
    GAR_TRY(gar_key_wants_below(query, plan, input, wants, &below, err));
    return lower(query, plan->inputs[input], is_dry, below, chain, err);
}

/* OFFSET o LIMIT l of rows that are limited already. */
static void narrow(struct gar_row_range *range, int64_t offset, int64_t limit)
{
    if (range->take >= 0) {
        const int64_t dropped = gar_min_i64(offset, range->take);
        range->take -= dropped;
        if (limit >= 0) {
            range->take = gar_min_i64(range->take, limit);
        }
    } else {
        range->take = limit;
    }
    range->skip = offset > INT64_MAX - range->skip ? INT64_MAX : range->skip + offset;
}

typedef enum gar_status (*breaker_fn)(struct gar_query *query, const struct gar_plan *plan,
                                      struct gar_sink **out_sink, struct gar_source **out_source,
                                      struct gar_error *err);

static enum gar_status lower_breaker(struct gar_query *query, const struct gar_plan *plan,
                                     breaker_fn make, struct chain *chain, struct gar_error *err)
{
    struct gar_sink *sink = NULL;
    struct gar_source *source = NULL;
    GAR_TRY(cut_chain(query, chain, err));
    GAR_TRY(make(query, plan, &sink, &source, err));
    GAR_TRY(end_chain(query, chain, sink, err));
    return new_chain(query, source, chain, err);
}

static enum gar_status lower_write(struct gar_query *query, const struct gar_plan *plan,
                                   bool is_dry, struct chain *chain, struct gar_error *err)
{
    struct gar_sink *sink = NULL;
    struct gar_source *source = NULL;
    GAR_TRY(gar_write_sink_new(query, plan, is_dry, &sink, &source, err));
    GAR_TRY(end_chain(query, chain, sink, err));
    return new_chain(query, source, chain, err);
}

static enum gar_status lower_concat(struct gar_query *query, const struct gar_plan *plan,
                                    bool is_dry, const struct gar_key_want *wants,
                                    struct chain *chain, struct gar_error *err)
{
    *chain = (struct chain){.range = all_rows};
    for (int64_t i = 0; i < plan->input_count; i++) {
        struct chain input;
        struct gar_pipeline **place = query->tail;
        GAR_TRY(lower_input(query, plan, i, is_dry, wants, &input, err));
        GAR_TRY(cut_chain(query, &input, err));
        /* Pipelines that make the input run when its turn comes, if it comes. */
        if (*place != NULL) {
            *query->tail =
                input.branches[0].before; /* what its own first branch waits for comes after them */
            input.branches[0].before = *place;
            *place = NULL;
            query->tail = place;
        }
        for (int64_t b = 0; b < input.count; b++) {
            GAR_TRY(add_branch(query, chain, &input.branches[b], err));
        }
    }
    return GAR_OK;
}

static enum gar_status lower_filter(struct gar_query *query, const struct gar_plan *plan,
                                    struct chain *chain, struct gar_error *err)
{
    struct gar_transform *transform = NULL;
    GAR_TRY(cut_chain(query, chain, err));
    GAR_TRY(gar_filter_new(query, plan->inputs[0]->schema, plan->exprs[0], &transform, err));
    return add_transform(query, chain, transform, err);
}

static enum gar_status lower_project(struct gar_query *query, const struct gar_plan *plan,
                                     struct chain *chain, struct gar_error *err)
{
    struct gar_transform *transform = NULL;
    GAR_TRY(gar_project_new(query, plan->inputs[0]->schema, plan->exprs, plan->schema, &transform,
                            err));
    return add_transform(query, chain, transform, err);
}

/* A branch may have so many transforms before one that gives several batches for one. */
static enum gar_status room_for_more(struct gar_query *query, struct chain *chain,
                                     struct gar_error *err)
{
    bool is_long = false;
    for (int64_t b = 0; b < chain->count; b++) {
        is_long = is_long || chain->branches[b].transform_count >= GAR_EXEC_MORE_MAX;
    }
    if (!is_long) {
        return GAR_OK;
    }
    struct gar_sink *sink = NULL;
    struct gar_source *source = NULL;
    GAR_TRY(gar_collect_sink_new(query, &sink, &source, err));
    GAR_TRY(end_chain(query, chain, sink, err));
    return new_chain(query, source, chain, err);
}

/* The table of an as-of join is made of rows sorted by their `on`. */
static enum gar_status lower_sorted_by_on(struct gar_query *query, const struct gar_plan *join,
                                          bool is_dry, struct chain *chain, struct gar_error *err)
{
    struct gar_expr *on = gar_plan_asof_on(join).right;
    const bool is_down = false;
    struct gar_plan *sort = NULL;
    GAR_TRY(gar_plan_sort(join->inputs[1], &on, &is_down, &is_down, 1, -1, &sort, err));
    const enum gar_status status = lower(query, sort, is_dry, NULL, chain, err);
    gar_plan_unref(sort);
    return status;
}

static enum gar_status lower_join(struct gar_query *query, const struct gar_plan *plan, bool is_dry,
                                  const struct gar_key_want *wants, struct chain *chain,
                                  struct gar_error *err)
{
    struct gar_join *join = NULL;
    const struct gar_key_want *probe_wants = NULL;
    struct chain build;
    struct gar_sink *sink = NULL;
    struct gar_transform *transform = NULL;
    struct gar_source *rest = NULL;
    const int64_t side = plan->is_build_left ? 0 : 1;
    if (plan->asof.kind != GAR_ASOF_NONE) {
        GAR_TRY(lower_sorted_by_on(query, plan, is_dry, &build, err));
    } else {
        GAR_TRY(lower_input(query, plan, side, is_dry, wants, &build, err));
    }
    GAR_TRY(cut_chain(query, &build, err));
    GAR_TRY(gar_join_new(query, plan, &sink, &transform, &rest, &join, err));
    GAR_TRY(end_chain(query, &build, sink, err));
    GAR_TRY(gar_key_wants_below(query, plan, 1 - side, wants, &probe_wants, err));
    GAR_TRY(gar_key_wants_add(query, plan, join, &probe_wants, err));
    GAR_TRY(lower(query, plan->inputs[1 - side], is_dry, probe_wants, chain, err));
    GAR_TRY(cut_chain(query, chain, err));
    GAR_TRY(room_for_more(query, chain, err));
    GAR_TRY(add_transform(query, chain, transform, err));
    if (rest == NULL) {
        return GAR_OK;
    }
    const struct gar_branch branch = {.source = rest, .waits = true};
    return add_branch(query, chain, &branch, err);
}

/* The node's input columns and, behind them, its arguments. */
static enum gar_status udf_input(const struct gar_plan *plan, struct gar_schema **out_schema,
                                 struct gar_expr ***out_exprs, struct gar_error *err)
{
    const struct gar_schema *input = plan->inputs[0]->schema;
    const int64_t count = input->count + plan->expr_count;
    struct gar_field *fields = (struct gar_field *)gar_calloc(count, (int64_t)sizeof *fields);
    struct gar_expr **exprs = (struct gar_expr **)gar_calloc(count, (int64_t)sizeof *exprs);
    enum gar_status status =
        fields != NULL && exprs != NULL ? GAR_OK : gar_error_nomem(err, count * 8);
    for (int64_t i = 0; i < input->count && status >= 0; i++) {
        fields[i] = input->fields[i];
        status = gar_expr_new_column(input->fields[i].name, &exprs[i], err);
    }
    for (int64_t i = input->count; i < count && status >= 0; i++) {
        struct gar_expr *arg = plan->exprs[i - input->count];
        const char *name = gar_expr_name(arg);
        memcpy(&fields[i].name, &name, sizeof name); /* copied by the schema */
        fields[i].nullable = true;
        status = gar_expr_type(arg, input, false, &fields[i].type, err);
        exprs[i] = gar_expr_ref(arg);
    }
    if (status >= 0) {
        status = gar_schema_new(fields, count, true, out_schema, err);
    }
    gar_free(fields);
    *out_exprs = exprs;
    return status;
}

static enum gar_status lower_udf(struct gar_query *query, const struct gar_plan *plan, bool is_dry,
                                 struct chain *chain, struct gar_error *err)
{
    struct gar_schema *input = NULL;
    struct gar_expr **exprs = NULL;
    struct gar_transform *transform = NULL;
    struct gar_sink *sink = NULL;
    struct gar_source *source = NULL;
    enum gar_status status = udf_input(plan, &input, &exprs, err);
    if (status >= 0 && plan->expr_count > 0) {
        status = gar_project_new(query, plan->inputs[0]->schema, exprs, input, &transform, err);
        if (status >= 0) {
            status = add_transform(query, chain, transform, err);
        }
    }
    if (status >= 0) {
        status = gar_udf_stage_new(query, plan, input, is_dry, &sink, &source, err);
    }
    if (status >= 0) {
        status = end_chain(query, chain, sink, err);
    }
    for (int64_t i = 0; exprs != NULL && i < plan->inputs[0]->schema->count + plan->expr_count;
         i++) {
        gar_expr_unref(exprs[i]);
    }
    gar_free(exprs);
    gar_schema_unref(input);
    GAR_TRY(status);
    last_pipeline(query)->is_streaming = true;
    return new_chain(query, source, chain, err);
}

static enum gar_status lower_window(struct gar_query *query, const struct gar_plan *plan,
                                    struct chain *chain, struct gar_error *err)
{
    if (!gar_number_applies(plan)) {
        return lower_breaker(query, plan, gar_window_new, chain, err);
    }
    struct gar_sink *sink = NULL;
    struct gar_source *source = NULL;
    const bool is_sorted = chain->is_sorted;
    GAR_TRY(gar_number_new(query, plan, &sink, &source, err));
    chain->is_sorted = true; /* numbers are given in order, whatever is kept */
    GAR_TRY(end_chain(query, chain, sink, err));
    last_pipeline(query)->is_streaming = true;
    GAR_TRY(new_chain(query, source, chain, err));
    chain->is_sorted = is_sorted;
    return GAR_OK;
}

/* Recursion is bounded by GAR_PLAN_DEPTH_MAX. */
static enum gar_status lower(struct gar_query *query, const struct gar_plan *plan, bool is_dry,
                             const struct gar_key_want *wants, struct chain *chain,
                             struct gar_error *err)
{
    if (plan->kind == GAR_PLAN_LIMIT && plan->inputs[0]->kind == GAR_PLAN_SCAN) {
        GAR_TRY(lower_scan(query, plan->inputs[0], plan->offset, NULL, chain, err));
        narrow(&chain->range, 0, plan->limit);
        return GAR_OK;
    }
    if (plan->kind != GAR_PLAN_SCAN && plan->kind != GAR_PLAN_CONCAT &&
        plan->kind != GAR_PLAN_JOIN) {
        GAR_TRY(lower_input(query, plan, 0, is_dry, wants, chain, err));
    }
    switch (plan->kind) {
    case GAR_PLAN_SCAN: return lower_scan(query, plan, 0, wants, chain, err);
    case GAR_PLAN_PROJECT: return lower_project(query, plan, chain, err);
    case GAR_PLAN_FILTER: return lower_filter(query, plan, chain, err);
    case GAR_PLAN_LIMIT: narrow(&chain->range, plan->offset, plan->limit); return GAR_OK;
    case GAR_PLAN_SORT:
        GAR_TRY(lower_breaker(query, plan, gar_order_by_new, chain, err));
        chain->is_sorted = true;
        return GAR_OK;
    case GAR_PLAN_AGGREGATE: return lower_breaker(query, plan, gar_group_by_new, chain, err);
    case GAR_PLAN_DISTINCT: return lower_breaker(query, plan, gar_distinct_new, chain, err);
    case GAR_PLAN_WINDOW: return lower_window(query, plan, chain, err);
    case GAR_PLAN_JOIN: return lower_join(query, plan, is_dry, wants, chain, err);
    case GAR_PLAN_CONCAT: return lower_concat(query, plan, is_dry, wants, chain, err);
    case GAR_PLAN_WRITE: return lower_write(query, plan, is_dry, chain, err);
    case GAR_PLAN_UDF: return lower_udf(query, plan, is_dry, chain, err);
    }
    return gar_error_set(err, GAR_ERR_INTERNAL, "a plan node of unknown kind %d", (int)plan->kind);
}

enum gar_status gar_query_lower(struct gar_query *query, const struct gar_plan *plan, bool is_dry,
                                struct gar_error *err)
{
    struct chain chain;
    struct gar_sink *sink = NULL;
    GAR_TRY(lower(query, plan, is_dry, NULL, &chain, err));
    GAR_TRY(gar_result_sink_new(query, &sink, err));
    GAR_TRY(end_chain(query, &chain, sink, err));
    last_pipeline(query)->is_result = true;
    return gar_profile_describe(query->profile, query, err);
}
