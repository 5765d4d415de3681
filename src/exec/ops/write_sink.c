/* SPDX-License-Identifier: Apache-2.0 */
/* Writing: batches come in order, are put together to about the rows that the format prefers, encoded on compute
 * threads, several at once, and appended on the IO pool, one at a time and in order. The last append is followed by
 * finish, which publishes; its paths are the rows of the source.
 *
 * Memory: at most `pieces_max` pieces of preferred_rows rows are on their way; then the sink is
 * full. */
#include <string.h>

#include "base/alloc.h"
#include "exec/ops/ops.h"

/* Some batches on their way into the file. */
struct piece {
    struct write_sink *sink;
    struct gar_batch **batches; /* owned, until they are encoded */
    int64_t count;
    struct gar_encoded *encoded; /* owned by the write, until it is appended */
    bool is_encoded;
    struct piece *next;
};

struct write_sink {
    struct gar_sink base;
    struct gar_query *query;            /* borrowed */
    struct gar_schema *schema;          /* of the input; owned reference */
    struct gar_sink_provider *provider; /* owned reference */
    struct gar_write *write;            /* owned */
    struct gar_batch_list paths;
    /* role */
    struct gar_batch **pending; /* owned; not yet a piece */
    int64_t pending_count;
    int64_t pending_capacity;
    int64_t pending_rows;
    struct piece *first; /* owned; in order */
    struct piece *last;
    int64_t pieces;
    int64_t pieces_max;
    bool is_appending;
    bool is_finishing;
    bool is_complete;
    struct gar_batch *paths_batch; /* owned; what finish gave */
};

static void free_piece(struct piece *piece)
{
    for (int64_t i = 0; i < piece->count; i++) {
        gar_batch_unref(piece->batches[i]);
    }
    gar_free(piece->batches);
    if (piece->encoded != NULL) {
        piece->sink->write->vtable->encoded_free(piece->sink->write, piece->encoded);
    }
    gar_free(piece);
}

static enum gar_status run_encode(void *context, int32_t worker, struct gar_error *err)
{
    (void)worker;
    struct piece *piece = (struct piece *)context;
    struct write_sink *sink = piece->sink;
    GAR_CANCEL_CHECK(sink->query->cancel, err);
    struct gar_batch *whole = NULL;
    if (piece->count == 1) {
        whole = gar_batch_ref(piece->batches[0]);
    } else {
        GAR_TRY(gar_batch_concat(sink->schema, piece->batches, piece->count, sink->base.memory,
                                 &whole, err));
    }
    for (int64_t i = 0; i < piece->count; i++) {
        gar_batch_unref(piece->batches[i]);
    }
    piece->count = 0;
    const enum gar_status status =
        sink->write->vtable->encode(sink->write, whole, sink->base.memory, &piece->encoded, err);
    gar_batch_unref(whole);
    return status;
}

static enum gar_status run_append(void *context, int32_t worker, struct gar_error *err)
{
    (void)worker;
    struct piece *piece = (struct piece *)context;
    GAR_CANCEL_CHECK(piece->sink->query->cancel, err);
    struct gar_encoded *encoded = piece->encoded;
    piece->encoded = NULL;
    return piece->sink->write->vtable->append(piece->sink->write, encoded, err);
}

static enum gar_status run_finish(void *context, int32_t worker, struct gar_error *err)
{
    (void)worker;
    struct write_sink *sink = (struct write_sink *)context;
    GAR_CANCEL_CHECK(sink->query->cancel, err);
    return sink->write->vtable->finish(sink->write, sink->base.memory, &sink->paths_batch, err);
}

static void append_is_done(void *context, struct gar_query *query, enum gar_status status,
                           const struct gar_error *err);

/* Begin the append of the oldest piece if it is ready and none is under way. */
static void begin_append(struct write_sink *sink)
{
    struct piece *piece = sink->first;
    if (sink->is_appending || piece == NULL || !piece->is_encoded) {
        return;
    }
    struct gar_error err = GAR_ERROR_INIT;
    const struct gar_work work = {.op = sink->base.op,
                                  .is_io = true,
                                  .run = run_append,
                                  .done = append_is_done,
                                  .context = piece};
    const enum gar_status status = gar_query_call(sink->query, &work, &err);
    if (status < 0) {
        gar_query_fail(sink->query, status, &err);
        return;
    }
    sink->is_appending = true;
}

static void append_is_done(void *context, struct gar_query *query, enum gar_status status,
                           const struct gar_error *err)
{
    (void)query;
    (void)err;
    struct piece *piece = (struct piece *)context;
    struct write_sink *sink = piece->sink;
    sink->is_appending = false;
    sink->first = piece->next;
    if (sink->first == NULL) {
        sink->last = NULL;
    }
    sink->pieces--;
    free_piece(piece);
    if (status >= 0) {
        begin_append(sink);
    }
}

static void encode_is_done(void *context, struct gar_query *query, enum gar_status status,
                           const struct gar_error *err)
{
    (void)query;
    (void)err;
    struct piece *piece = (struct piece *)context;
    if (status >= 0) {
        piece->is_encoded = true;
        begin_append(piece->sink);
    }
}

static void finish_is_done(void *context, struct gar_query *query, enum gar_status status,
                           const struct gar_error *err)
{
    (void)query;
    (void)err;
    ((struct write_sink *)context)->is_complete = status >= 0;
}

/* All pending batches become a piece. */
static enum gar_status begin_piece(struct write_sink *sink, struct gar_error *err)
{
    struct piece *piece = (struct piece *)gar_calloc(1, (int64_t)sizeof *piece);
    if (piece == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *piece);
    }
    piece->sink = sink;
    piece->batches = sink->pending;
    piece->count = sink->pending_count;
    const struct gar_work work = {
        .op = sink->base.op, .run = run_encode, .done = encode_is_done, .context = piece};
    const enum gar_status status = gar_query_call(sink->query, &work, err);
    if (status < 0) {
        gar_free(piece);
        return status;
    }
    sink->pending = NULL;
    sink->pending_count = sink->pending_capacity = sink->pending_rows = 0;
    if (sink->last != NULL) {
        sink->last->next = piece;
    } else {
        sink->first = piece;
    }
    sink->last = piece;
    sink->pieces++;
    return GAR_OK;
}

static enum gar_status write_deliver(struct gar_sink *base, struct gar_query *query,
                                     struct gar_batch *batch, struct gar_error *err)
{
    struct write_sink *sink = (struct write_sink *)base;
    (void)query;
    if (sink->pieces >= sink->pieces_max) {
        return GAR_PENDING;
    }
    GAR_TRY(gar_grow((void **)&sink->pending, &sink->pending_capacity, sink->pending_count + 1,
                     (int64_t)sizeof *sink->pending, err));
    sink->pending[sink->pending_count++] = batch;
    sink->pending_rows += batch->rows;
    if (sink->pending_rows >= sink->write->preferred_rows) {
        const enum gar_status status = begin_piece(sink, err);
        if (status < 0) {
            sink->pending_count--; /* the batch stays the caller's */
            return status;
        }
    }
    return GAR_OK;
}

static enum gar_status write_stage(struct gar_sink *base, struct gar_query *query, int32_t stage,
                                   int64_t *out_items, struct gar_error *err)
{
    struct write_sink *sink = (struct write_sink *)base;
    (void)stage;
    *out_items = 0;
    if (sink->pending_count > 0) {
        GAR_TRY(begin_piece(sink, err));
    }
    if (sink->first != NULL) {
        return GAR_PENDING;
    }
    if (!sink->is_finishing) {
        const struct gar_work work = {.op = sink->base.op,
                                      .is_io = true,
                                      .run = run_finish,
                                      .done = finish_is_done,
                                      .context = sink};
        GAR_TRY(gar_query_call(query, &work, err));
        sink->is_finishing = true;
    }
    if (!sink->is_complete) {
        return GAR_PENDING;
    }
    if (sink->paths_batch != NULL && sink->paths_batch->rows > 0) {
        GAR_TRY(gar_batch_list_add(&sink->paths, sink->paths_batch, err));
        sink->paths_batch = NULL;
    }
    return GAR_OK;
}

static void write_explain(const struct gar_sink *base, struct gar_strbuf *out)
{
    const struct write_sink *sink = (const struct write_sink *)(const void *)base;
    gar_strbuf_append(out, "write ");
    sink->provider->vtable->print(sink->provider, out);
}

static void free_write_sink(void *object)
{
    struct write_sink *sink = (struct write_sink *)object;
    for (int64_t i = 0; i < sink->pending_count; i++) {
        gar_batch_unref(sink->pending[i]);
    }
    gar_free(sink->pending);
    while (sink->first != NULL) {
        struct piece *piece = sink->first;
        sink->first = piece->next;
        free_piece(piece);
    }
    gar_batch_unref(sink->paths_batch);
    gar_batch_list_destroy(&sink->paths);
    if (sink->write != NULL) {
        sink->write->vtable->free(sink->write);
    }
    gar_sink_provider_unref(sink->provider);
    gar_schema_unref(sink->schema);
    gar_free(sink);
}

enum gar_status gar_write_sink_new(struct gar_query *query, const struct gar_plan *plan,
                                   bool is_dry, struct gar_sink **out_sink,
                                   struct gar_source **out_source, struct gar_error *err)
{
    static const struct gar_sink_vtable vtable = {
        .name = "write", .deliver = write_deliver, .stage = write_stage, .explain = write_explain};
    struct write_sink *sink = (struct write_sink *)gar_calloc(1, (int64_t)sizeof *sink);
    if (sink == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *sink);
    }
    sink->base.vtable = &vtable;
    sink->query = query;
    sink->schema = gar_schema_ref(plan->inputs[0]->schema);
    sink->provider = gar_sink_provider_ref(plan->sink);
    sink->pieces_max = (int64_t)query->workers + 2;
    gar_batch_list_init(&sink->paths);
    GAR_TRY(gar_query_own(query, sink, free_write_sink, err));
    GAR_TRY(gar_query_op_memory(query, &sink->base.memory, err));
    if (!is_dry) {
        query->has_write = true;
        GAR_TRY(plan->sink->vtable->open(plan->sink, sink->schema, sink->base.memory, &sink->write,
                                         err));
    }
    *out_sink = &sink->base;
    *out_source = &sink->paths.source;
    return GAR_OK;
}
