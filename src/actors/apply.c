/* SPDX-License-Identifier: Apache-2.0 */
/* A pool over a stream.
 *
 * A feeder task on the IO pool reads the input and cuts it; it runs only when the loop wants more, and hands over what it
 * has by a message. The loop submits, keeps calls in the order of the input, and pushes the oldest ones that are done. */
#include "actors/apply.h"

#include <string.h>

#include "actors/cutter.h"
#include "base/alloc.h"
#include "os/clock.h"

/* Pieces that the feeder brings at once. */
#define FED_MAX 8
/* While the pool starts or works the feeder looks this often whether it is to stop. */
#define TICK_NS GAR_WAIT_TICK_NS

struct item {
    struct gar_actor_call call; /* first */
    struct apply *apply;
    struct item *next;
    bool is_submitted;
    bool is_done;
};

struct apply {
    int64_t refs; /* atomic: the stream's consumer side, the work itself */
    struct gar_runtime *runtime;
    struct gar_loop *loop;
    struct gar_stream_sink *sink; /* owned until the end */
    struct gar_stream *input;     /* owned; the feeder's while it runs */
    struct gar_cutter cutter;     /* likewise */
    struct gar_actor_pool *pool;  /* NULL after its end */
    void (*on_failed)(void *context, const struct gar_actor_failure *failure);
    void (*on_output)(void *context, int32_t actor, bool is_stderr, const char *text,
                      int64_t bytes);
    void *context;
    int64_t max_items;

    struct gar_task feed;
    struct gar_message fed;
    struct gar_batch *pieces[FED_MAX]; /* what the feeder brings */
    int32_t piece_count;
    int32_t piece_max;           /* that it may bring now */
    enum gar_status feed_status; /* GAR_OK, GAR_EOF, or an error */
    struct gar_error feed_error;

    struct gar_message look; /* start, room, cancel */
    int32_t cancel_reason;   /* atomic enum gar_cancel_reason */

    /* loop */
    bool is_started;
    bool is_feeding;
    bool is_input_over;
    bool is_cancelled;
    bool is_advancing;
    bool advance_again;
    struct item *first; /* in the order of the input */
    struct item *last;
    struct item *to_submit;
    int64_t item_count;
    int64_t next_row;
    enum gar_status status; /* of the end */
    struct gar_error error;
};

static void advance(struct apply *a);

static void unref(struct apply *a)
{
    if (__atomic_sub_fetch(&a->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        gar_cutter_destroy(&a->cutter);
        gar_stream_free(a->input);
        gar_stream_sink_free(a->sink);
        gar_free(a);
    }
}

/* ---- the feeder ---- */

static void run_feed(struct gar_task *task, int32_t worker)
{
    (void)worker;
    struct apply *a = (struct apply *)(void *)((char *)task - offsetof(struct apply, feed));
    a->piece_count = 0;
    a->feed_status = GAR_OK;
    while (a->feed_status == GAR_OK && a->piece_count < a->piece_max) {
        a->feed_status = gar_cutter_take(&a->cutter, &a->pieces[a->piece_count], &a->feed_error);
        if (a->feed_status == GAR_OK) {
            a->piece_count++;
        }
        if (a->feed_status != GAR_PENDING) {
            continue;
        }
        if (a->piece_count > 0) { /* let the actors have what is there */
            a->feed_status = GAR_OK;
            break;
        }
        if (__atomic_load_n(&a->cancel_reason, __ATOMIC_ACQUIRE) != GAR_CANCEL_NONE) {
            a->feed_status = gar_error_set(&a->feed_error, GAR_ERR_CANCELLED, "cancelled");
            break;
        }
        struct gar_batch *batch = NULL;
        a->feed_status = gar_stream_next_until(a->input, gar_clock_deadline(TICK_NS), NULL, &batch,
                                               &a->feed_error);
        if (a->feed_status == GAR_OK) {
            a->feed_status = gar_cutter_put(&a->cutter, batch, &a->feed_error);
        } else if (a->feed_status == GAR_EOF) {
            gar_cutter_end(&a->cutter);
            a->feed_status = GAR_OK;
        } else if (a->feed_status == GAR_PENDING) {
            a->feed_status = GAR_OK;
        }
    }
    (void)gar_loop_post(a->loop, &a->fed);
}

static void on_call_done(struct gar_actor_call *call);

static void on_fed(struct gar_message *message, struct gar_loop *loop)
{
    (void)loop;
    struct apply *a = (struct apply *)(void *)((char *)message - offsetof(struct apply, fed));
    a->is_feeding = false;
    enum gar_status status = a->feed_status;
    for (int32_t i = 0; i < a->piece_count; i++) {
        struct item *item =
            status < 0 || a->is_cancelled ? NULL : gar_calloc(1, (int64_t)sizeof *item);
        if (item == NULL) {
            status = status < 0 ? status : gar_error_nomem(&a->feed_error, (int64_t)sizeof *item);
            gar_batch_unref(a->pieces[i]);
            continue;
        }
        item->call.batch = a->pieces[i];
        item->call.first_row = a->next_row;
        item->call.on_done = on_call_done;
        item->apply = a;
        a->next_row += a->pieces[i]->rows;
        if (a->last != NULL) {
            a->last->next = item;
        } else {
            a->first = item;
        }
        a->last = item;
        a->to_submit = a->to_submit != NULL ? a->to_submit : item;
        a->item_count++;
    }
    if (status == GAR_EOF) {
        a->is_input_over = true;
    } else if (status < 0 && !a->is_cancelled) {
        a->is_cancelled = true;
        a->is_input_over = true;
        if (a->pool != NULL) {
            gar_actor_pool_cancel_on_loop(a->pool, status, &a->feed_error);
        }
    }
    advance(a);
}

/* ---- the pool's side ---- */

static void on_call_done(struct gar_actor_call *call)
{
    struct item *item = (struct item *)(void *)call;
    item->is_done = true;
    advance(item->apply);
}

static void on_room(void *context)
{
    advance(context);
}

static void on_output(void *context, int32_t actor, bool is_stderr, const char *text, int64_t bytes)
{
    const struct apply *a = context;
    if (a->on_output != NULL) {
        a->on_output(a->context, actor, is_stderr, text, bytes);
    }
}

static void on_ended(void *context, enum gar_status status, const struct gar_error *err,
                     const struct gar_actor_failure *failure)
{
    struct apply *a = context;
    a->pool = NULL;
    a->status = status;
    if (status < 0) {
        a->error = *err;
        a->is_cancelled = true;
    }
    if (failure != NULL && a->on_failed != NULL) {
        a->on_failed(a->context, failure);
    }
    advance(a);
}

static const struct gar_actor_listener pool_listener = {
    .on_room = on_room, .on_output = on_output, .on_ended = on_ended};

/* ---- the loop ---- */

static void submit_items(struct apply *a)
{
    while (a->to_submit != NULL && a->pool != NULL) {
        struct item *item = a->to_submit;
        a->to_submit = item->next; /* a failing pool may finish calls from inside */
        const enum gar_status status = gar_actor_pool_submit_on_loop(a->pool, &item->call);
        if (status != GAR_OK) {
            a->to_submit = item;
            if (status == GAR_ERR_NOMEM) {
                gar_actor_pool_cancel_on_loop(a->pool, status, NULL);
            }
            return;
        }
        item->is_submitted = true;
    }
}

static void drop_first(struct apply *a)
{
    struct item *item = a->first;
    a->first = item->next;
    if (a->first == NULL) {
        a->last = NULL;
    }
    if (a->to_submit == item) {
        a->to_submit = item->next;
    }
    a->item_count--;
    gar_batch_unref(item->call.batch);
    gar_batch_unref(item->call.result);
    gar_free(item);
}

/* Push what is done, oldest first. */
static void deliver(struct apply *a)
{
    while (a->first != NULL && a->first->is_done && !a->is_cancelled) {
        struct item *item = a->first;
        if (item->call.status < 0) {
            return; /* the pool's end tells why */
        }
        const enum gar_status status = gar_stream_push(a->sink, item->call.result, NULL);
        if (status == GAR_PENDING) {
            return;
        }
        if (status < 0) {
            __atomic_store_n(&a->cancel_reason, GAR_CANCEL_DROPPED, __ATOMIC_RELEASE);
            return;
        }
        item->call.result = NULL;
        drop_first(a);
    }
    /* After a cancel: whatever the pool does not have any more. */
    while (a->is_cancelled && a->first != NULL && (a->first->is_done || !a->first->is_submitted)) {
        drop_first(a);
    }
}

static void look_at_cancel(struct apply *a)
{
    const int32_t reason = __atomic_load_n(&a->cancel_reason, __ATOMIC_ACQUIRE);
    if (reason == GAR_CANCEL_NONE || a->is_cancelled) {
        return;
    }
    a->is_cancelled = true;
    if (a->pool != NULL) {
        gar_actor_pool_cancel_on_loop(a->pool,
                                      reason == GAR_CANCEL_INTERRUPT  ? GAR_ERR_INTERRUPTED
                                      : reason == GAR_CANCEL_DEADLINE ? GAR_ERR_TIMEOUT
                                                                      : GAR_ERR_CANCELLED,
                                      NULL);
    }
}

static void advance_once(struct apply *a)
{
    look_at_cancel(a);
    if (!a->is_started && a->pool != NULL) {
        a->is_started = true;
        gar_actor_pool_start_on_loop(a->pool);
    }
    submit_items(a);
    deliver(a);
    look_at_cancel(a);
    const int64_t room = a->max_items - a->item_count;
    if (!a->is_feeding && !a->is_input_over && !a->is_cancelled && 2 * room >= a->max_items &&
        a->pool != NULL) {
        a->is_feeding = true;
        a->piece_max = (int32_t)gar_min_i64(room, FED_MAX);
        gar_pool_submit(gar_runtime_io(a->runtime), &a->feed);
    }
    if (a->is_input_over && a->to_submit == NULL && !a->is_cancelled && a->pool != NULL) {
        gar_actor_pool_end_on_loop(a->pool);
    }
}

/* The struct may be gone afterwards. */
static void advance(struct apply *a)
{
    if (a->is_advancing) {
        a->advance_again = true;
        return;
    }
    a->is_advancing = true;
    do {
        a->advance_again = false;
        advance_once(a);
    } while (a->advance_again);
    a->is_advancing = false;
    if (a->pool == NULL && !a->is_feeding && a->first == NULL && a->sink != NULL) {
        struct gar_runtime *runtime = a->runtime;
        gar_stream_end(a->sink, a->status, a->status < 0 ? &a->error : NULL);
        a->sink = NULL;
        unref(a);
        gar_runtime_leave(runtime);
    }
}

static void on_look(struct gar_message *message, struct gar_loop *loop)
{
    (void)loop;
    struct apply *a = (struct apply *)(void *)((char *)message - offsetof(struct apply, look));
    if (a->sink != NULL) {
        advance(a);
    }
    unref(a); /* of who posted */
}

/* ---- the consumer's side ---- */

static void post_look(struct apply *a)
{
    (void)__atomic_fetch_add(&a->refs, 1, __ATOMIC_RELAXED);
    if (!gar_loop_post(a->loop, &a->look)) {
        unref(a);
    }
}

static void on_stream_room(void *context)
{
    post_look(context);
}

static void on_stream_cancel(void *context, enum gar_cancel_reason reason)
{
    struct apply *a = context;
    __atomic_store_n(&a->cancel_reason, (int32_t)reason, __ATOMIC_RELEASE);
    post_look(a);
}

static void on_stream_release(void *context)
{
    unref(context);
}

static const struct gar_stream_producer producer = {
    .on_room = on_stream_room, .on_cancel = on_stream_cancel, .release = on_stream_release};

static enum gar_status make(const struct gar_actor_apply *options, struct apply *a,
                            struct gar_stream **out, struct gar_error *err)
{
    struct gar_actor_pool_options pool = options->pool;
    pool.listener = &pool_listener;
    pool.context = a;
    GAR_TRY(gar_runtime_start(pool.runtime, GAR_RUNTIME_ALL | GAR_RUNTIME_SPAWN, err));
    GAR_TRY(gar_runtime_enter(pool.runtime, err));
    struct gar_stream *stream = NULL;
    const struct gar_stream_options stream_options = {
        .schema = pool.output, .producer = &producer, .context = a};
    enum gar_status status = gar_stream_new_queue(&stream_options, &stream, &a->sink, err);
    if (status >= 0) {
        a->refs++; /* the stream's */
        status = gar_actor_pool_new(&pool, &a->pool, err);
        if (status < 0) { /* without its sink, so that the cancel that comes now starts nothing */
            gar_stream_sink_free(a->sink);
            a->sink = NULL;
            gar_stream_free(stream);
        }
    }
    if (status < 0) {
        gar_runtime_leave(pool.runtime);
        return status;
    }
    *out = stream;
    return GAR_OK;
}

enum gar_status gar_actor_apply(const struct gar_actor_apply *options, struct gar_stream *input,
                                struct gar_stream **out, struct gar_error *err)
{
    struct apply *a = gar_calloc(1, (int64_t)sizeof *a);
    if (a == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *a);
    }
    a->refs = 1;
    a->runtime = options->pool.runtime;
    a->loop = gar_runtime_loop(a->runtime);
    a->on_failed = options->on_failed;
    a->on_output = options->on_output;
    a->context = options->context;
    a->max_items =
        options->max_batches > 0 ? options->max_batches : 4 * (int64_t)options->pool.count + 4;
    a->max_items = gar_max_i64(a->max_items, 2);
    a->feed.run = run_feed;
    a->fed.handle = on_fed;
    a->look.handle = on_look;
    struct gar_memory *memory =
        options->pool.account != NULL ? &options->pool.account->memory : gar_memory_system();
    gar_cutter_init(&a->cutter, options->pool.input, memory, options->batch_rows);
    const enum gar_status status = make(options, a, out, err);
    if (status < 0) {
        unref(a);
        return status;
    }
    a->input = input;
    post_look(a);
    return GAR_OK;
}
