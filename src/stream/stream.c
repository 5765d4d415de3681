/* SPDX-License-Identifier: Apache-2.0 */
/* The batch stream over a channel (queue kind) or a callback (inline kind).
 *
 * The sink and the stream share only the channel, so they may go in any order. The producer's context is held by the
 * stream and released when the stream is freed: callbacks never meet a freed producer. The end that the consumer saw is
 * kept and repeated. */
#include "stream/stream.h"

#include <assert.h>

#include "base/alloc.h"
#include "runtime/channel.h"

#define BATCHES_DEFAULT 8
#define BYTES_DEFAULT   (INT64_C(16) << 20)
#define CLOCK_NEVER     INT64_MAX

struct gar_stream {
    struct gar_schema *schema; /* owned reference */
    struct gar_channel
        *channel; /* queue kind: the consumer's reference; inline kind: only for its descriptor */
    const struct gar_stream_producer *producer; /* queue kind; may be NULL */
    const struct gar_stream_source *source;     /* inline kind, else NULL */
    void *context;                              /* of producer or source */
    /* Consumer's thread only. */
    struct gar_stream *inner; /* owned; the stream that took an inline one over */
    enum gar_status end;      /* GAR_OK while it goes on */
    struct gar_error error;   /* when end < 0 */
    int32_t cancelled;        /* atomic enum gar_cancel_reason: the first */
};

struct gar_stream_sink {
    struct gar_channel *channel; /* the producer's reference */
};

static enum gar_status new_stream(struct gar_schema *schema, struct gar_stream **out,
                                  struct gar_error *err);
static void drop_batch(void *item);
static void tell_room(void *context);
static enum gar_status take(struct gar_stream *stream, int64_t deadline_ns,
                            const struct gar_interrupt *interrupt, struct gar_batch **out,
                            struct gar_error *err);
static enum gar_status take_queued(struct gar_stream *stream, int64_t deadline_ns,
                                   const struct gar_interrupt *interrupt, struct gar_batch **out,
                                   struct gar_error *err);
static enum gar_status take_inline(struct gar_stream *stream, const struct gar_interrupt *interrupt,
                                   struct gar_batch **out, struct gar_error *err);
static enum gar_status stop_after_interrupt(struct gar_stream *stream, struct gar_error *err);
static enum gar_status repeat_end(const struct gar_stream *stream, struct gar_error *err);
static enum gar_status reason_error(enum gar_cancel_reason reason, struct gar_error *err);

/* ---- producer ---- */

enum gar_status gar_stream_new_queue(const struct gar_stream_options *options,
                                     struct gar_stream **out_stream,
                                     struct gar_stream_sink **out_sink, struct gar_error *err)
{
    struct gar_stream_sink *sink = gar_calloc(1, (int64_t)sizeof *sink);
    if (sink == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *sink);
    }
    struct gar_stream *stream = NULL;
    enum gar_status status = new_stream(options->schema, &stream, err);
    if (status == GAR_OK) {
        const int64_t batches = options->max_batches > 0 ? options->max_batches : BATCHES_DEFAULT;
        const struct gar_channel_options channel = {
            .max_items = batches,
            .max_bytes = options->max_bytes > 0 ? options->max_bytes : BYTES_DEFAULT,
            .drop = drop_batch,
            .on_room = tell_room,
            .context = stream,
        };
        status = gar_channel_new(&channel, &stream->channel, err);
    }
    if (status != GAR_OK) {
        gar_free(sink);
        if (stream != NULL) {
            gar_schema_unref(stream->schema);
            gar_free(stream);
        }
        return status;
    }
    stream->producer = options->producer;
    stream->context = options->context;
    sink->channel = stream->channel;
    *out_stream = stream;
    *out_sink = sink;
    return GAR_OK;
}

enum gar_status gar_stream_push(struct gar_stream_sink *sink, struct gar_batch *batch,
                                struct gar_error *err)
{
    assert(batch->selection == NULL);
    const enum gar_status status = gar_channel_put(sink->channel, batch, gar_batch_bytes(batch));
    if (status == GAR_ERR_NOMEM) {
        return gar_error_set(err, status,
                             "out of memory: no place for one more batch in the queue");
    }
    return status == GAR_ERR_CANCELLED ? reason_error(GAR_CANCEL_DROPPED, err) : status;
}

bool gar_stream_is_full(const struct gar_stream_sink *sink)
{
    return gar_channel_is_full(sink->channel);
}

void gar_stream_end(struct gar_stream_sink *sink, enum gar_status status,
                    const struct gar_error *why)
{
    assert(status <= 0);
    gar_channel_end(sink->channel, status, why, true);
    gar_free(sink);
}

void gar_stream_sink_free(struct gar_stream_sink *sink)
{
    if (sink != NULL) {
        struct gar_error why = GAR_ERROR_INIT;
        (void)gar_error_set(
            &why, GAR_ERR_INTERNAL,
            "the result ended without an end mark: it may be incomplete and is not used");
        gar_stream_end(sink, GAR_ERR_INTERNAL, &why);
    }
}

/* ---- inline ---- */

enum gar_status gar_stream_new_inline(struct gar_schema *schema,
                                      const struct gar_stream_source *source, void *context,
                                      struct gar_stream **out, struct gar_error *err)
{
    struct gar_stream *stream = NULL;
    GAR_TRY(new_stream(schema, &stream, err));
    stream->source = source;
    stream->context = context;
    *out = stream;
    return GAR_OK;
}

struct batch_list {
    struct gar_batch **batches; /* owned references */
    int64_t count;
    int64_t next;
};

static enum gar_status next_of_list(void *context, const struct gar_interrupt *interrupt,
                                    struct gar_batch **out, struct gar_error *err)
{
    (void)interrupt;
    (void)err;
    struct batch_list *list = context;
    if (list->next == list->count) {
        return GAR_EOF;
    }
    *out = list->batches[list->next];
    list->batches[list->next++] = NULL;
    return GAR_OK;
}

static void release_list(void *context)
{
    struct batch_list *list = context;
    gar_batches_free(list->batches, list->count);
    gar_free(list);
}

enum gar_status gar_stream_new_batches(struct gar_schema *schema, struct gar_batch *const *batches,
                                       int64_t count, struct gar_stream **out,
                                       struct gar_error *err)
{
    static const struct gar_stream_source source = {.next = next_of_list, .release = release_list};
    struct batch_list *list = gar_calloc(1, (int64_t)sizeof *list);
    if (list == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *list);
    }
    list->batches = gar_calloc(count, (int64_t)sizeof *list->batches);
    if (list->batches == NULL) {
        gar_free(list);
        return gar_error_nomem(err, count * (int64_t)sizeof *list->batches);
    }
    for (; list->count < count; list->count++) {
        list->batches[list->count] = gar_batch_ref(batches[list->count]);
    }
    const enum gar_status status = gar_stream_new_inline(schema, &source, list, out, err);
    if (status != GAR_OK) {
        release_list(list);
    }
    return status;
}

/* ---- consumer ---- */

const struct gar_schema *gar_stream_schema(const struct gar_stream *stream)
{
    return stream->schema;
}

enum gar_status gar_stream_next(struct gar_stream *stream, const struct gar_interrupt *interrupt,
                                struct gar_batch **out, struct gar_error *err)
{
    return take(stream, CLOCK_NEVER, interrupt, out, err);
}

enum gar_status gar_stream_try_next(struct gar_stream *stream, struct gar_batch **out,
                                    struct gar_error *err)
{
    return take(stream, 0, NULL, out, err);
}

enum gar_status gar_stream_next_until(struct gar_stream *stream, int64_t deadline_ns,
                                      const struct gar_interrupt *interrupt, struct gar_batch **out,
                                      struct gar_error *err)
{
    return take(stream, deadline_ns, interrupt, out, err);
}

enum gar_status gar_stream_fd(struct gar_stream *stream, int *out_fd, struct gar_error *err)
{
    if (stream->inner != NULL) {
        return gar_stream_fd(stream->inner, out_fd, err);
    }
    if (stream->channel == NULL) { /* an ended channel's descriptor is always readable */
        const struct gar_channel_options options = {
            .max_items = 1, .max_bytes = 1, .drop = drop_batch};
        GAR_TRY(gar_channel_new(&options, &stream->channel, err));
        gar_channel_end(stream->channel, GAR_OK, NULL, false);
    }
    return gar_channel_fd(stream->channel, out_fd, err);
}

void gar_stream_cancel(struct gar_stream *stream, enum gar_cancel_reason reason)
{
    int32_t expected = GAR_CANCEL_NONE;
    if (!__atomic_compare_exchange_n(&stream->cancelled, &expected, (int32_t)reason, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        return;
    }
    if (stream->source != NULL) {
        if (stream->source->cancel != NULL) {
            stream->source->cancel(stream->context, reason);
        }
    } else if (stream->producer != NULL && stream->producer->on_cancel != NULL) {
        stream->producer->on_cancel(stream->context, reason);
    }
}

void gar_stream_free(struct gar_stream *stream)
{
    if (stream == NULL) {
        return;
    }
    if (stream->channel != NULL && gar_channel_is_forked(stream->channel)) {
        return; /* a child: the query lives in the parent; touching what they share could hang on a lock */
    }
    if (stream->end == GAR_OK) {
        gar_stream_cancel(stream, GAR_CANCEL_DROPPED);
    }
    gar_stream_free(stream->inner);
    gar_channel_close(stream->channel);
    void (*const release)(void *) = stream->source != NULL     ? stream->source->release
                                    : stream->producer != NULL ? stream->producer->release
                                                               : NULL;
    if (release != NULL) {
        release(stream->context);
    }
    gar_schema_unref(stream->schema);
    gar_free(stream);
}

enum gar_status gar_stream_collect(struct gar_stream *stream, const struct gar_interrupt *interrupt,
                                   struct gar_batch ***out_batches, int64_t *out_count,
                                   struct gar_error *err)
{
    void *items = NULL;
    int64_t capacity = 0;
    int64_t count = 0;
    for (;;) {
        struct gar_batch *batch = NULL;
        enum gar_status status = gar_stream_next(stream, interrupt, &batch, err);
        if (status == GAR_EOF) {
            *out_batches = items;
            *out_count = count;
            return GAR_OK;
        }
        if (status == GAR_OK) {
            status = gar_grow(&items, &capacity, count + 1, (int64_t)sizeof batch, err);
        }
        if (status == GAR_OK && gar_interrupt_check(interrupt)) {
            status = stop_after_interrupt(stream, err);
        }
        if (status != GAR_OK) {
            gar_batch_unref(batch);
            gar_batches_free(items, count);
            return status;
        }
        ((struct gar_batch **)items)[count++] = batch;
    }
}

void gar_batches_free(struct gar_batch **batches, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        gar_batch_unref(batches[i]);
    }
    gar_free(batches);
}

/* ---- inside ---- */

static enum gar_status new_stream(struct gar_schema *schema, struct gar_stream **out,
                                  struct gar_error *err)
{
    struct gar_stream *stream = gar_calloc(1, (int64_t)sizeof *stream);
    if (stream == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *stream);
    }
    stream->schema = gar_schema_ref(schema);
    *out = stream;
    return GAR_OK;
}

static void drop_batch(void *item)
{
    gar_batch_unref(item);
}

static void tell_room(void *context)
{
    const struct gar_stream *stream = context;
    if (stream->producer != NULL && stream->producer->on_room != NULL) {
        stream->producer->on_room(stream->context);
    }
}

static enum gar_status take(struct gar_stream *stream, int64_t deadline_ns,
                            const struct gar_interrupt *interrupt, struct gar_batch **out,
                            struct gar_error *err)
{
    if (stream->end != GAR_OK) {
        return repeat_end(stream, err);
    }
    struct gar_error error = GAR_ERROR_INIT;
    enum gar_status status = GAR_PENDING;
    if (stream->source != NULL && stream->inner == NULL) {
        status = take_inline(stream, interrupt, out, &error);
    }
    if (status == GAR_PENDING && stream->inner != NULL) {
        status = take(stream->inner, deadline_ns, interrupt, out, &error);
    } else if (stream->source == NULL) {
        status = take_queued(stream, deadline_ns, interrupt, out, &error);
    }
    if (status != GAR_OK && status != GAR_PENDING) {
        stream->end = status;
        stream->error = error;
        return repeat_end(stream, err);
    }
    return status;
}

static enum gar_status take_queued(struct gar_stream *stream, int64_t deadline_ns,
                                   const struct gar_interrupt *interrupt, struct gar_batch **out,
                                   struct gar_error *err)
{
    void *item = NULL;
    const enum gar_status status =
        deadline_ns <= 0 ? gar_channel_try_take(stream->channel, &item, err)
                         : gar_channel_take(stream->channel, deadline_ns, interrupt, &item, err);
    if (status == GAR_OK) {
        *out = item;
    }
    /* The consumer's own interrupt comes without a message; a producer that was interrupted wrote one. */
    return status == GAR_ERR_INTERRUPTED && err->status == GAR_OK
               ? stop_after_interrupt(stream, err)
               : status;
}

static enum gar_status take_inline(struct gar_stream *stream, const struct gar_interrupt *interrupt,
                                   struct gar_batch **out, struct gar_error *err)
{
    const enum gar_cancel_reason reason =
        (enum gar_cancel_reason)__atomic_load_n(&stream->cancelled, __ATOMIC_ACQUIRE);
    if (reason != GAR_CANCEL_NONE) {
        return reason_error(reason, err);
    }
    const enum gar_status status = stream->source->next(stream->context, interrupt, out, err);
    if (status == GAR_PENDING) {
        assert(stream->source->take_over != NULL);
        stream->inner = stream->source->take_over(stream->context);
    }
    return status;
}

/* Cancel, then wait for the producer to end, because the caller may believe that everything has stopped. */
static enum gar_status stop_after_interrupt(struct gar_stream *stream, struct gar_error *err)
{
    gar_stream_cancel(stream, GAR_CANCEL_INTERRUPT);
    struct gar_stream *queue = stream->inner != NULL ? stream->inner : stream;
    if (queue->source == NULL) {
        gar_channel_drain(queue->channel, GAR_WAIT_STOP_NS);
    }
    stream->end = reason_error(GAR_CANCEL_INTERRUPT, &stream->error);
    return repeat_end(stream, err);
}

static enum gar_status repeat_end(const struct gar_stream *stream, struct gar_error *err)
{
    if (stream->end < 0 && err != NULL) {
        *err = stream->error;
    }
    return stream->end;
}

static enum gar_status reason_error(enum gar_cancel_reason reason, struct gar_error *err)
{
    const struct gar_cancel as_token = {.reason = (int32_t)reason, .deadline_ns = CLOCK_NEVER};
    return gar_cancel_status(&as_token, err);
}
