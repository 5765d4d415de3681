/* SPDX-License-Identifier: Apache-2.0 */
/* The two simplest sinks, whose batches come in order to the query role: the result stream, and a list that a later
 * pipeline reads. */
#include "base/alloc.h"
#include "exec/ops/ops.h"

/* ---- lists of batches as sources ---- */

static enum gar_status list_next(struct gar_source *source, struct gar_query *query,
                                 struct gar_source_unit *out, struct gar_error *err)
{
    (void)query;
    (void)err;
    struct gar_batch_list *list = (struct gar_batch_list *)source;
    if (list->next >= list->count) {
        return GAR_EOF;
    }
    out->part = list->next++;
    out->end = list->batches[out->part]->rows;
    return GAR_OK;
}

static enum gar_status list_decode(struct gar_source *source, struct gar_source_unit *unit,
                                   int32_t worker, int64_t max_rows, struct gar_batch **out,
                                   struct gar_error *err)
{
    (void)worker;
    const struct gar_batch_list *list = (const struct gar_batch_list *)source;
    const int64_t rows = gar_min_i64(unit->end - unit->next, max_rows);
    if (rows <= 0) {
        return GAR_EOF;
    }
    struct gar_batch *batch = list->batches[unit->part];
    if (rows == batch->rows) {
        *out = gar_batch_ref(batch);
    } else {
        GAR_TRY(gar_batch_slice(batch, unit->next, rows, out, err));
    }
    unit->next += rows;
    return GAR_OK;
}

static void list_unit_free(struct gar_source *source, struct gar_source_unit *unit)
{
    (void)source;
    (void)unit;
}

static void list_explain(const struct gar_source *source, struct gar_strbuf *out)
{
    (void)source;
    gar_strbuf_append(out, "rows of the pipeline before");
}

void gar_batch_list_init(struct gar_batch_list *list)
{
    static const struct gar_source_vtable vtable = {.name = "rows",
                                                    .next = list_next,
                                                    .decode = list_decode,
                                                    .unit_free = list_unit_free,
                                                    .explain = list_explain};
    *list = (struct gar_batch_list){.source = {.vtable = &vtable}};
}

void gar_batch_list_destroy(struct gar_batch_list *list)
{
    for (int64_t i = 0; i < list->count; i++) {
        gar_batch_unref(list->batches[i]);
    }
    gar_free(list->batches);
    list->batches = NULL;
    list->count = list->capacity = 0;
}

enum gar_status gar_batch_list_add(struct gar_batch_list *list, struct gar_batch *batch,
                                   struct gar_error *err)
{
    GAR_TRY(gar_grow((void **)&list->batches, &list->capacity, list->count + 1,
                     (int64_t)sizeof *list->batches, err));
    list->batches[list->count++] = batch;
    return GAR_OK;
}

/* ---- the result ---- */

static enum gar_status result_deliver(struct gar_sink *sink, struct gar_query *query,
                                      struct gar_batch *batch, struct gar_error *err)
{
    (void)sink;
    return gar_query_emit(query, batch, err);
}

static void result_explain(const struct gar_sink *sink, struct gar_strbuf *out)
{
    (void)sink;
    gar_strbuf_append(out, "result");
}

enum gar_status gar_result_sink_new(struct gar_query *query, struct gar_sink **out,
                                    struct gar_error *err)
{
    static const struct gar_sink_vtable vtable = {
        .name = "result", .deliver = result_deliver, .explain = result_explain};
    struct gar_sink *sink =
        (struct gar_sink *)gar_arena_calloc(&query->arena, 1, (int64_t)sizeof *sink);
    if (sink == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *sink);
    }
    sink->vtable = &vtable;
    GAR_TRY(gar_query_op_memory(query, &sink->memory, err));
    *out = sink;
    return GAR_OK;
}

/* ---- a list between two pipelines ---- */

struct collect_sink {
    struct gar_sink base;
    struct gar_batch_list list;
};

static enum gar_status collect_deliver(struct gar_sink *sink, struct gar_query *query,
                                       struct gar_batch *batch, struct gar_error *err)
{
    (void)query;
    return gar_batch_list_add(&((struct collect_sink *)sink)->list, batch, err);
}

static void collect_explain(const struct gar_sink *sink, struct gar_strbuf *out)
{
    (void)sink;
    gar_strbuf_append(out, "collect");
}

static void free_collect(void *object)
{
    struct collect_sink *sink = (struct collect_sink *)object;
    gar_batch_list_destroy(&sink->list);
    gar_free(sink);
}

enum gar_status gar_collect_sink_new(struct gar_query *query, struct gar_sink **out_sink,
                                     struct gar_source **out_source, struct gar_error *err)
{
    static const struct gar_sink_vtable vtable = {
        .name = "collect", .deliver = collect_deliver, .explain = collect_explain};
    struct collect_sink *sink = (struct collect_sink *)gar_calloc(1, (int64_t)sizeof *sink);
    if (sink == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *sink);
    }
    sink->base.vtable = &vtable;
    gar_batch_list_init(&sink->list);
    GAR_TRY(gar_query_own(query, sink, free_collect, err));
    GAR_TRY(gar_query_op_memory(query, &sink->base.memory, err));
    *out_sink = &sink->base;
    *out_source = &sink->list.source;
    return GAR_OK;
}
