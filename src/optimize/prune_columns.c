/* SPDX-License-Identifier: Apache-2.0 */
/* prune_columns: every node makes only what is used above it, down to the columns that scans read.
 *
 * A walk from the root with one flag for each output column. The pruned node has at least the wanted columns, in their old
 * order; nodes above refer to columns by name, so more do no harm, except below concat, where a projection cuts
 * them off. A projection that only picks columns of a scan becomes part of the scan. */
#include <string.h>

#include "base/alloc.h"
#include "optimize/rule_priv.h"

static enum gar_status prune(const struct gar_plan *plan, const bool *wanted, struct gar_plan **out,
                             struct gar_error *err);

struct marks {
    const struct gar_schema *schema;
    bool *wanted;
};

static void mark(const char *name, void *context)
{
    const struct marks *m = context;
    const int64_t i = gar_schema_find(m->schema, name);
    if (i >= 0) {
        m->wanted[i] = true;
    }
}

static bool *new_flags(int64_t count, struct gar_error *err)
{
    bool *flags = gar_calloc(count, (int64_t)sizeof *flags);
    if (flags == NULL) {
        gar_error_nomem(err, count);
    }
    return flags;
}

static enum gar_status prune_scan(const struct gar_plan *scan, const bool *wanted,
                                  struct gar_plan **out, struct gar_error *err)
{
    int64_t *columns = gar_calloc(scan->schema->count, (int64_t)sizeof *columns);
    if (columns == NULL) {
        return gar_error_nomem(err, scan->schema->count * (int64_t)sizeof *columns);
    }
    int64_t count = 0;
    for (int64_t i = 0; i < scan->schema->count; i++) {
        if (wanted[i]) {
            columns[count++] = scan->columns[i];
        }
    }
    enum gar_status status = GAR_OK;
    if (count == scan->schema->count) {
        *out = gar_plan_ref(scan);
    } else {
        status = gar_plan_scan_pushed(scan, columns, count, scan->filter, scan->limit, out, err);
    }
    gar_free(columns);
    return status;
}

/* The input of `plan` with what exprs use, and what is wanted of the input itself (may be NULL). */
static enum gar_status prune_input(const struct gar_plan *plan, struct gar_expr *const *exprs,
                                   int64_t count, const bool *wanted, struct gar_plan **out,
                                   struct gar_error *err)
{
    const struct gar_schema *schema = plan->inputs[0]->schema;
    struct marks m = {.schema = schema, .wanted = new_flags(schema->count, err)};
    if (m.wanted == NULL) {
        return GAR_ERR_NOMEM;
    }
    if (wanted != NULL && schema->count > 0) {
        memcpy(m.wanted, wanted, (size_t)schema->count * sizeof *wanted);
    }
    for (int64_t i = 0; i < count; i++) {
        gar_expr_visit_columns(exprs[i], mark, &m);
    }
    const enum gar_status status = prune(plan->inputs[0], m.wanted, out, err);
    gar_free(m.wanted);
    return status;
}

/* Filter, sort, limit, distinct by keys: the output is the input's. */
static enum gar_status prune_passing(const struct gar_plan *plan, const bool *wanted,
                                     struct gar_plan **out, struct gar_error *err)
{
    struct gar_plan *input = NULL;
    GAR_TRY(prune_input(plan, plan->exprs, plan->expr_count, wanted, &input, err));
    const enum gar_status status = gar_plan_over(plan, input, out, err);
    gar_plan_unref(input);
    return status;
}

/* Nodes that need all of their input: distinct of whole rows, write. */
static enum gar_status prune_whole(const struct gar_plan *plan, struct gar_plan **out,
                                   struct gar_error *err)
{
    const int64_t count = plan->inputs[0]->schema->count;
    bool *all = new_flags(count, err);
    struct gar_plan *input = NULL;
    if (all == NULL) {
        return GAR_ERR_NOMEM;
    }
    memset(all, 1, (size_t)count * sizeof *all);
    enum gar_status status = prune(plan->inputs[0], all, &input, err);
    if (status >= 0) {
        status = gar_plan_over(plan, input, out, err);
    }
    gar_plan_unref(input);
    gar_free(all);
    return status;
}

/* The scan that gives what a projection picks, if it only picks; else NULL in *out. */
static enum gar_status pick_in_scan(const struct gar_plan *scan, struct gar_expr *const *exprs,
                                    int64_t count, struct gar_plan **out, struct gar_error *err)
{
    int64_t *columns = gar_calloc(count, (int64_t)sizeof *columns);
    if (columns == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *columns);
    }
    bool only_picks = true;
    for (int64_t i = 0; i < count && only_picks; i++) {
        const int64_t at =
            exprs[i]->kind == GAR_EXPR_COLUMN ? gar_schema_find(scan->schema, exprs[i]->name) : -1;
        only_picks = at >= 0;
        columns[i] = only_picks ? scan->columns[at] : 0;
    }
    enum gar_status status = GAR_OK;
    if (only_picks) {
        status = gar_plan_scan_pushed(scan, columns, count, scan->filter, scan->limit, out, err);
    }
    gar_free(columns);
    return status;
}

static enum gar_status project_over(const struct gar_plan *project, struct gar_plan *input,
                                    struct gar_expr *const *exprs, int64_t count,
                                    struct gar_plan **out, struct gar_error *err)
{
    if (count == 0) {
        *out = gar_plan_ref(input); /* only the number of rows is wanted */
        return GAR_OK;
    }
    if (input->kind == GAR_PLAN_SCAN) {
        GAR_TRY(pick_in_scan(input, exprs, count, out, err));
        if (*out != NULL) {
            return GAR_OK;
        }
    }
    if (count == project->expr_count) {
        return gar_plan_over(project, input, out, err);
    }
    return gar_plan_project_exact(input, exprs, count, out, err);
}

static enum gar_status prune_project(const struct gar_plan *project, const bool *wanted,
                                     struct gar_plan **out, struct gar_error *err)
{
    struct gar_expr **kept = gar_calloc(project->expr_count, (int64_t)sizeof *kept);
    if (kept == NULL) {
        return gar_error_nomem(err, project->expr_count * (int64_t)sizeof *kept);
    }
    int64_t count = 0;
    for (int64_t i = 0; i < project->expr_count; i++) {
        if (wanted[i]) {
            kept[count++] = project->exprs[i]; /* borrowed */
        }
    }
    struct gar_plan *input = NULL;
    enum gar_status status = prune_input(project, kept, count, NULL, &input, err);
    if (status >= 0) {
        status = project_over(project, input, kept, count, out, err);
    }
    gar_plan_unref(input);
    gar_free(kept);
    return status;
}

static enum gar_status prune_aggregate(const struct gar_plan *aggregate, const bool *wanted,
                                       struct gar_plan **out, struct gar_error *err)
{
    struct gar_expr **kept = gar_calloc(aggregate->expr_count, (int64_t)sizeof *kept);
    if (kept == NULL) {
        return gar_error_nomem(err, aggregate->expr_count * (int64_t)sizeof *kept);
    }
    int64_t count = 0;
    for (int64_t i = 0; i < aggregate->expr_count; i++) {
        const bool is_last_chance =
            i == aggregate->expr_count - 1 && count == 0; /* one row needs one column */
        if (i < aggregate->key_count || wanted[i] || is_last_chance) {
            kept[count++] = aggregate->exprs[i]; /* borrowed */
        }
    }
    struct gar_plan *input = NULL;
    enum gar_status status = prune_input(aggregate, kept, count, NULL, &input, err);
    if (status >= 0) {
        status = count == aggregate->expr_count
                     ? gar_plan_over(aggregate, input, out, err)
                     : gar_plan_aggregate_exact(input, kept, count, aggregate->key_count, out, err);
    }
    gar_plan_unref(input);
    gar_free(kept);
    return status;
}

/* Calls that nobody wants are dropped; the input's columns pass. */
static enum gar_status prune_window(const struct gar_plan *window, const bool *wanted,
                                    struct gar_plan **out, struct gar_error *err)
{
    const int64_t first = window->inputs[0]->schema->count;
    struct gar_expr **kept = gar_calloc(window->expr_count, (int64_t)sizeof *kept);
    if (kept == NULL) {
        return gar_error_nomem(err, window->expr_count * (int64_t)sizeof *kept);
    }
    int64_t count = 0;
    for (int64_t i = 0; i < window->expr_count; i++) {
        if (wanted[first + i]) {
            kept[count++] = window->exprs[i]; /* borrowed */
        }
    }
    struct gar_plan *input = NULL;
    enum gar_status status = prune_input(window, kept, count, wanted, &input, err);
    if (status >= 0 && count == 0) {
        *out = gar_plan_ref(input);
    } else if (status >= 0) {
        status = count == window->expr_count ? gar_plan_over(window, input, out, err)
                                             : gar_plan_window_exact(input, kept, count, out, err);
    }
    gar_plan_unref(input);
    gar_free(kept);
    return status;
}

/* The plan cut to the wanted columns of `schema`, in order. plan is moved in, also on failure. */
static enum gar_status cut_to(struct gar_plan *plan, const struct gar_schema *schema,
                              const bool *wanted, struct gar_plan **out, struct gar_error *err)
{
    struct gar_expr_list columns = {0};
    enum gar_status status = GAR_OK;
    for (int64_t i = 0; i < schema->count && status >= 0; i++) {
        struct gar_expr *column = NULL;
        if (wanted[i]) {
            status = gar_expr_new_column(schema->fields[i].name, &column, err);
            status = status >= 0 ? gar_expr_list_add(&columns, column, err) : status;
        }
    }
    if (status >= 0 && columns.count == plan->schema->count) {
        *out = gar_plan_ref(plan);
    } else if (status >= 0) {
        status = gar_plan_project_exact(plan, columns.items, columns.count, out, err);
    }
    gar_expr_list_destroy(&columns);
    gar_plan_unref(plan);
    return status;
}

static enum gar_status prune_inputs(const struct gar_plan *concat, const bool *wanted,
                                    struct gar_plan **inputs, struct gar_plan **out,
                                    struct gar_error *err)
{
    bool has_changed = false;
    for (int64_t i = 0; i < concat->input_count; i++) {
        struct gar_plan *pruned = NULL;
        GAR_TRY(prune(concat->inputs[i], wanted, &pruned, err));
        GAR_TRY(cut_to(pruned, concat->schema, wanted, &inputs[i], err));
        has_changed = has_changed || inputs[i] != concat->inputs[i];
    }
    if (!has_changed) {
        *out = gar_plan_ref(concat);
        return GAR_OK;
    }
    return gar_plan_with_inputs(concat, inputs, out, err);
}

static enum gar_status prune_concat(const struct gar_plan *concat, const bool *wanted,
                                    struct gar_plan **out, struct gar_error *err)
{
    bool *needed = new_flags(concat->schema->count, err);
    struct gar_plan **inputs = gar_calloc(concat->input_count, (int64_t)sizeof *inputs);
    enum gar_status status = GAR_OK;
    if (needed == NULL || inputs == NULL) {
        status = gar_error_nomem(err, concat->input_count * (int64_t)sizeof *inputs);
    } else {
        bool has_any = concat->schema->count == 0;
        for (int64_t i = 0; i < concat->schema->count; i++) {
            needed[i] = wanted[i];
            has_any = has_any || wanted[i];
        }
        if (!has_any) {
            needed[0] = true; /* inputs without columns would not match */
        }
        status = prune_inputs(concat, needed, inputs, out, err);
    }
    for (int64_t i = 0; inputs != NULL && i < concat->input_count; i++) {
        gar_plan_unref(inputs[i]);
    }
    gar_free(inputs);
    gar_free(needed);
    return status;
}

/* ---- joins ---- */

/* Positions of the wanted columns of the join among those of its new inputs. */
static enum gar_status join_of(const struct gar_plan *join, const bool *wanted,
                               struct gar_plan *const *inputs, struct gar_plan **out,
                               struct gar_error *err)
{
    int64_t *columns = gar_calloc(join->schema->count, (int64_t)sizeof *columns);
    if (columns == NULL) {
        return gar_error_nomem(err, join->schema->count * (int64_t)sizeof *columns);
    }
    int64_t count = 0;
    for (int64_t i = 0; i < join->schema->count; i++) {
        if (wanted[i]) {
            const char *name = join->schema->fields[i].name;
            const bool is_left = join->columns[i] < join->inputs[0]->schema->count;
            const int64_t at = gar_schema_find(inputs[is_left ? 0 : 1]->schema, name);
            columns[count++] = is_left ? at : inputs[0]->schema->count + at;
        }
    }
    struct gar_join_parts parts = gar_plan_join_parts(join);
    parts.columns = columns;
    parts.column_count = count;
    enum gar_status status = GAR_OK;
    if (count == join->schema->count && inputs[0] == join->inputs[0] &&
        inputs[1] == join->inputs[1]) {
        *out = gar_plan_ref(join);
    } else {
        status = gar_plan_join_exact(inputs[0], inputs[1], &parts, out, err);
    }
    gar_free(columns);
    return status;
}

static bool has_any(const struct marks *m)
{
    for (int64_t i = 0; i < m->schema->count; i++) {
        if (m->wanted[i]) {
            return true;
        }
    }
    return false;
}

/* Of each side: what is wanted of it above, its keys, and what the condition looks at. */
static enum gar_status prune_side(const struct gar_plan *join, const bool *wanted, int64_t side,
                                  struct gar_plan **out, struct gar_error *err)
{
    const struct gar_plan *input = join->inputs[side];
    struct marks m = {.schema = input->schema, .wanted = new_flags(input->schema->count, err)};
    if (m.wanted == NULL) {
        return GAR_ERR_NOMEM;
    }
    for (int64_t i = 0; i < join->schema->count; i++) {
        const bool is_left = join->columns[i] < join->inputs[0]->schema->count;
        if (wanted[i] && is_left == (side == 0)) {
            mark(join->schema->fields[i].name, &m);
        }
    }
    for (int64_t k = 0; k < join->key_count; k++) {
        gar_expr_visit_columns(join->exprs[side * join->key_count + k], mark, &m);
    }
    if (join->expr_count > 2 * join->key_count) {
        gar_expr_visit_columns(join->exprs[2 * join->key_count], mark, &m);
        if (input->schema->count > 0 && !has_any(&m)) {
            m.wanted[0] =
                true; /* a side that is cut to nothing may show other columns, of any name */
        }
    }
    const enum gar_status status = prune(input, m.wanted, out, err);
    gar_free(m.wanted);
    return status;
}

static enum gar_status prune_join(const struct gar_plan *join, const bool *wanted,
                                  struct gar_plan **out, struct gar_error *err)
{
    struct gar_plan *inputs[2] = {NULL, NULL};
    enum gar_status status = prune_side(join, wanted, 0, &inputs[0], err);
    if (status >= 0) {
        status = prune_side(join, wanted, 1, &inputs[1], err);
    }
    if (status >= 0) {
        status = join_of(join, wanted, inputs, out, err);
    }
    gar_plan_unref(inputs[0]);
    gar_plan_unref(inputs[1]);
    return status;
}

/* A function whose result nobody looks at is not called, unless it makes rows. */
static enum gar_status prune_udf(const struct gar_plan *plan, const bool *wanted,
                                 struct gar_plan **out, struct gar_error *err)
{
    if (!wanted[plan->schema->count - 1] && !plan->udf->is_expanding) {
        return prune(plan->inputs[0], wanted, out, err);
    }
    struct gar_plan *input = NULL;
    GAR_TRY(prune_input(plan, plan->exprs, plan->expr_count, wanted, &input, err));
    const enum gar_status status = gar_plan_over(plan, input, out, err);
    gar_plan_unref(input);
    return status;
}

static enum gar_status prune(const struct gar_plan *plan, const bool *wanted, struct gar_plan **out,
                             struct gar_error *err)
{
    switch (plan->kind) {
    case GAR_PLAN_SCAN: return prune_scan(plan, wanted, out, err);
    case GAR_PLAN_PROJECT: return prune_project(plan, wanted, out, err);
    case GAR_PLAN_FILTER:
    case GAR_PLAN_LIMIT:
    case GAR_PLAN_SORT: return prune_passing(plan, wanted, out, err);
    case GAR_PLAN_AGGREGATE: return prune_aggregate(plan, wanted, out, err);
    case GAR_PLAN_DISTINCT:
        return plan->expr_count > 0 ? prune_passing(plan, wanted, out, err)
                                    : prune_whole(plan, out, err);
    case GAR_PLAN_JOIN: return prune_join(plan, wanted, out, err);
    case GAR_PLAN_WINDOW: return prune_window(plan, wanted, out, err);
    case GAR_PLAN_CONCAT: return prune_concat(plan, wanted, out, err);
    case GAR_PLAN_WRITE: return prune_whole(plan, out, err);
    case GAR_PLAN_UDF: return prune_udf(plan, wanted, out, err);
    }
    return gar_error_set(err, GAR_ERR_INTERNAL, "plan node of unknown kind %d", (int)plan->kind);
}

enum gar_status gar_rule_prune_columns(const struct gar_plan *plan, struct gar_plan **out,
                                       struct gar_error *err)
{
    bool *all = new_flags(plan->schema->count, err);
    if (all == NULL) {
        return GAR_ERR_NOMEM;
    }
    if (plan->schema->count > 0) {
        memset(all, 1, (size_t)plan->schema->count * sizeof *all);
    }
    const enum gar_status status = prune(plan, all, out, err);
    gar_free(all);
    return status;
}
