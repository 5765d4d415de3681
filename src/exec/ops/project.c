/* SPDX-License-Identifier: Apache-2.0 */
/* Projection: evaluates expressions into a new batch. When all of them are plain columns, columns
 * are only shared. */
#include "base/alloc.h"
#include "exec/ops/ops.h"

struct project {
    struct gar_transform base;
    struct gar_program *program; /* owned reference; NULL when all are plain columns */
    int64_t *plain; /* owned; positions in the input when all are plain columns, else NULL */
    struct gar_schema *schema; /* owned reference */
    struct gar_expr **exprs;   /* owned references; for explain */
};

struct project_worker {
    struct gar_eval *eval;       /* owned; may be NULL */
    struct gar_column **columns; /* owned array */
};

static void project_worker_free(struct gar_transform *transform, void *worker)
{
    (void)transform;
    struct project_worker *w = (struct project_worker *)worker;
    gar_eval_free(w->eval);
    gar_free(w->columns);
    gar_free(w);
}

static enum gar_status project_worker_new(struct gar_transform *transform, struct gar_query *query,
                                          int32_t worker, void **out, struct gar_error *err)
{
    (void)worker;
    const struct project *project = (const struct project *)transform;
    struct project_worker *w = (struct project_worker *)gar_calloc(1, (int64_t)sizeof *w);
    if (w == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *w);
    }
    w->columns =
        (struct gar_column **)gar_calloc(project->schema->count, (int64_t)sizeof *w->columns);
    enum gar_status status =
        w->columns != NULL ? GAR_OK : gar_error_nomem(err, project->schema->count * 8);
    if (status >= 0 && project->program != NULL) {
        status = gar_eval_new(project->program, query->memory, &w->eval, err);
    }
    if (status < 0) {
        project_worker_free(transform, w);
        return status;
    }
    *out = w;
    return GAR_OK;
}

/* Of w's columns (moved), which are the rows of `input`: all of them, or the selected ones. */
static enum gar_status make_batch(const struct project *project, struct project_worker *w,
                                  const struct gar_batch *input, int64_t rows,
                                  struct gar_batch **out, struct gar_error *err)
{
    const enum gar_status status = gar_batch_new(project->schema, w->columns, rows, out, err);
    for (int64_t i = 0; i < project->schema->count && status < 0; i++) {
        gar_column_unref(w->columns[i]);
    }
    if (status >= 0) {
        gar_batch_take_origin(*out, input);
    }
    return status;
}

static enum gar_status share_columns(const struct project *project, struct project_worker *w,
                                     const struct gar_batch *batch, struct gar_batch **out,
                                     struct gar_error *err)
{
    for (int64_t i = 0; i < project->schema->count; i++) {
        w->columns[i] = gar_column_ref(batch->columns[project->plain[i]]);
    }
    struct gar_batch *whole = NULL;
    struct gar_batch all = *batch; /* for the call only: without the selection */
    all.selection = NULL;
    GAR_TRY(make_batch(project, w, &all, batch->rows, &whole, err));
    if (batch->selection == NULL) {
        *out = whole;
        return GAR_OK;
    }
    struct gar_buffer *selection = gar_buffer_ref(batch->selection_owner);
    const enum gar_status status = gar_batch_select(whole, selection, batch->selected, out, err);
    if (status < 0) {
        gar_buffer_unref(selection);
    }
    gar_batch_unref(whole);
    return status;
}

static enum gar_status project_apply(struct gar_transform *transform, void *worker,
                                     struct gar_batch *batch, struct gar_batch **out,
                                     struct gar_error *err)
{
    const struct project *project = (const struct project *)transform;
    struct project_worker *w = (struct project_worker *)worker;
    enum gar_status status = GAR_OK;
    /* A selection that does not begin at its buffer (a slice) cannot be shared with its owner. */
    const bool is_whole =
        batch->selection == NULL ||
        (const void *)batch->selection == (const void *)batch->selection_owner->data;
    if (project->plain != NULL && is_whole) {
        status = share_columns(project, w, batch, out, err);
    } else {
        status = gar_eval_run(w->eval, batch, w->columns, err);
        if (status >= 0) {
            status = make_batch(project, w, batch, batch->selected, out, err);
        }
    }
    gar_batch_unref(batch);
    return status;
}

static void project_explain(const struct gar_transform *transform, struct gar_strbuf *out)
{
    const struct project *project = (const struct project *)(const void *)transform;
    gar_strbuf_append(out, "project ");
    for (int64_t i = 0; i < project->schema->count; i++) {
        gar_strbuf_append(out, i > 0 ? ", " : "");
        gar_expr_print(project->exprs[i], out);
    }
}

static void free_project(void *object)
{
    struct project *project = (struct project *)object;
    for (int64_t i = 0; project->exprs != NULL && i < project->schema->count; i++) {
        gar_expr_unref(project->exprs[i]);
    }
    gar_free(project->exprs);
    gar_program_unref(project->program);
    gar_free(project->plain);
    gar_schema_unref(project->schema);
    gar_free(project);
}

/* Positions of the columns when every expression is one; else nothing. */
static enum gar_status find_plain(struct project *project, const struct gar_schema *input,
                                  struct gar_error *err)
{
    const int64_t count = project->schema->count;
    int64_t *plain = (int64_t *)gar_calloc(count, (int64_t)sizeof *plain);
    if (plain == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *plain);
    }
    for (int64_t i = 0; i < count; i++) {
        const struct gar_expr *expr = project->exprs[i];
        while (expr->kind == GAR_EXPR_ALIAS) {
            expr = expr->args[0];
        }
        plain[i] = expr->kind == GAR_EXPR_COLUMN ? gar_schema_find(input, expr->name) : -1;
        if (plain[i] < 0) {
            gar_free(plain);
            return GAR_OK;
        }
    }
    project->plain = plain;
    return GAR_OK;
}

enum gar_status gar_project_new(struct gar_query *query, const struct gar_schema *input,
                                struct gar_expr *const *exprs, struct gar_schema *schema,
                                struct gar_transform **out, struct gar_error *err)
{
    static const struct gar_transform_vtable vtable = {.name = "project",
                                                       .worker_new = project_worker_new,
                                                       .worker_free = project_worker_free,
                                                       .apply = project_apply,
                                                       .explain = project_explain};
    struct project *project = (struct project *)gar_calloc(1, (int64_t)sizeof *project);
    if (project == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *project);
    }
    project->base.vtable = &vtable;
    project->schema = gar_schema_ref(schema);
    GAR_TRY(gar_query_own(query, project, free_project, err));
    project->exprs =
        (struct gar_expr **)gar_calloc(schema->count, (int64_t)sizeof(struct gar_expr *));
    if (project->exprs == NULL) {
        return gar_error_nomem(err, schema->count * 8);
    }
    for (int64_t i = 0; i < schema->count; i++) {
        project->exprs[i] = gar_expr_ref(exprs[i]);
    }
    GAR_TRY(find_plain(project, input, err));
    GAR_TRY(gar_program_new(input, exprs, schema->count, &project->program, err));
    *out = &project->base;
    return GAR_OK;
}
