/* SPDX-License-Identifier: Apache-2.0 */
/* Filter: puts a selection on the batch; rows are gathered by who needs them dense. */
#include "base/alloc.h"
#include "exec/ops/ops.h"

struct filter {
    struct gar_transform base;
    struct gar_program *program; /* owned reference */
    struct gar_expr *predicate;  /* owned reference */
};

static enum gar_status filter_worker_new(struct gar_transform *transform, struct gar_query *query,
                                         int32_t worker, void **out, struct gar_error *err)
{
    (void)worker;
    struct gar_eval *eval = NULL;
    GAR_TRY(gar_eval_new(((struct filter *)transform)->program, query->memory, &eval, err));
    *out = eval;
    return GAR_OK;
}

static void filter_worker_free(struct gar_transform *transform, void *worker)
{
    (void)transform;
    gar_eval_free((struct gar_eval *)worker);
}

static enum gar_status select_rows(struct gar_eval *eval, const struct gar_batch *batch,
                                   struct gar_batch **out, struct gar_error *err)
{
    struct gar_buffer *selection = NULL;
    int64_t selected = 0;
    GAR_TRY(gar_eval_filter(eval, batch, &selection, &selected, err));
    if (selected == 0) {
        gar_buffer_unref(selection);
        *out = NULL;
        return GAR_OK;
    }
    if (selection == NULL) {
        *out = gar_batch_ref(batch);
        return GAR_OK;
    }
    const enum gar_status status = gar_batch_select(batch, selection, selected, out, err);
    if (status < 0) {
        gar_buffer_unref(selection);
    }
    return status;
}

static enum gar_status filter_apply(struct gar_transform *transform, void *worker,
                                    struct gar_batch *batch, struct gar_batch **out,
                                    struct gar_error *err)
{
    (void)transform;
    const enum gar_status status = select_rows((struct gar_eval *)worker, batch, out, err);
    gar_batch_unref(batch);
    return status;
}

static void filter_explain(const struct gar_transform *transform, struct gar_strbuf *out)
{
    gar_strbuf_append(out, "filter ");
    gar_expr_print(((const struct filter *)(const void *)transform)->predicate, out);
}

static void free_filter(void *object)
{
    struct filter *filter = (struct filter *)object;
    gar_program_unref(filter->program);
    gar_expr_unref(filter->predicate);
    gar_free(filter);
}

enum gar_status gar_filter_new(struct gar_query *query, const struct gar_schema *input,
                               struct gar_expr *predicate, struct gar_transform **out,
                               struct gar_error *err)
{
    static const struct gar_transform_vtable vtable = {.name = "filter",
                                                       .worker_new = filter_worker_new,
                                                       .worker_free = filter_worker_free,
                                                       .apply = filter_apply,
                                                       .explain = filter_explain};
    struct filter *filter = (struct filter *)gar_calloc(1, (int64_t)sizeof *filter);
    if (filter == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *filter);
    }
    filter->base.vtable = &vtable;
    filter->predicate = gar_expr_ref(predicate);
    GAR_TRY(gar_query_own(query, filter, free_filter, err));
    GAR_TRY(gar_program_new(input, &predicate, 1, &filter->program, err));
    *out = &filter->base;
    return GAR_OK;
}
