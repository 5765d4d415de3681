/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the runtime that queries do not use in every way: blocking calls, operations, streams with a producer of ours,
 * watched descriptors. */
#include <stdlib.h>
#include <string.h>

#include "os/event_fd.h"
#include "os/park.h"
#include "plays.h"
#include "runtime/operation.h"
#include "stream/stream.h"
#include "world.h"

static void *make(size_t bytes)
{
    void *object = calloc(1, bytes);
    SIM_CHECK(object != NULL, "no memory");
    return object;
}

/* ---- calls ---- */

struct call {
    struct sim_play *play;
    struct gar_cancel *token;
    int64_t work_ns; /* how long the work takes */
    bool is_deaf;    /* and whether it looks at the token meanwhile */
    bool fails;
    bool is_nested; /* the work is done by a call inside it */
    int64_t cancel_ns;
    int64_t interrupt_ns;
    int64_t started_ns;
    bool is_interrupted;
    bool is_cancelled;
    int64_t runs;
    int64_t releases;
};

static enum gar_status call_run(void *context, struct gar_error *err);

static void call_release(void *context)
{
    ((struct call *)context)->releases++;
}

static enum gar_status call_inner(void *context, struct gar_error *err)
{
    struct call *call = context;
    call->runs++;
    if (call->is_deaf) {
        sim_sleep(call->work_ns);
    } else {
        GAR_TRY(gar_cancel_sleep(call->token, call->work_ns, err));
    }
    return call->fails ? gar_error_set(err, GAR_ERR_IO, "simulated fault: call") : GAR_OK;
}

static enum gar_status call_run(void *context, struct gar_error *err)
{
    struct call *call = context;
    if (!call->is_nested) {
        return call_inner(context, err);
    }
    const struct gar_call inner = {.run = call_inner, .context = call, .cancel = call->token};
    return gar_runtime_call(call->play->runtime, &inner, err);
}

static bool call_check(void *context)
{
    struct call *call = context;
    const bool is_due = call->interrupt_ns >= 0 && !call->is_interrupted &&
                        sim_now_ns() >= call->started_ns + call->interrupt_ns;
    call->is_interrupted = call->is_interrupted || is_due;
    return is_due;
}

static void call_cancel(void *context)
{
    struct call *call = context;
    sim_sleep(call->cancel_ns);
    call->is_cancelled = true;
    (void)gar_cancel_request(call->token, GAR_CANCEL_USER);
}

static void judge_call(const struct call *call, enum gar_status status, const struct gar_error *err)
{
    const bool has_stopped = call->is_cancelled || call->is_interrupted;
    sim_trace("call ends with %s: %s", gar_status_text(status), err->message);
    SIM_CHECK(!call->is_interrupted || status == GAR_ERR_INTERRUPTED,
              "the caller was interrupted, but its call ended with %s", gar_status_text(status));
    switch (status) {
    case GAR_OK:
        SIM_CHECK(!call->fails && call->runs == 1, "a call is well, but did not run well");
        break;
    case GAR_ERR_IO:
        SIM_CHECK((call->fails && strstr(err->message, "simulated fault: call") != NULL) ||
                      (call->play->has_few_threads && strstr(err->message, "start thread") != NULL),
                  "a call failed: %s", err->message);
        break;
    case GAR_ERR_NOMEM:
        SIM_CHECK(call->play->has_refused_memory, "a call found no memory: %s", err->message);
        break;
    case GAR_ERR_CANCELLED:
        SIM_CHECK(call->is_cancelled, "a call was cancelled by nobody: %s", err->message);
        break;
    case GAR_ERR_INTERRUPTED:
        SIM_CHECK(call->is_interrupted, "a call was interrupted by nobody: %s", err->message);
        break;
    default: sim_fail("a call ended with %s: %s", gar_status_text(status), err->message);
    }
    const int64_t took_ns = sim_now_ns() - call->started_ns;
    const int64_t limit_ns = call->is_deaf || !has_stopped ? call->work_ns : 0;
    SIM_CHECK(took_ns < limit_ns + 5 * GAR_NS_PER_S, "a call took %lld ms",
              (long long)(took_ns / GAR_NS_PER_MS));
}

static void free_call(void *context)
{
    struct call *call = context;
    SIM_CHECK(call->releases == 1, "a call's context was released %lld times",
              (long long)call->releases);
    SIM_CHECK(call->runs <= 1, "a call ran %lld times", (long long)call->runs);
    gar_cancel_unref(call->token);
    free(call);
}

static void caller(void *context)
{
    struct call *call = context;
    struct sim_thread *canceller = NULL;
    struct gar_error err = GAR_ERROR_INIT;
    const struct gar_interrupt interrupt = {.check = call_check, .context = call};
    const struct gar_call what = {
        .run = call_run,
        .release = call_release,
        .context = call,
        .cancel = call->token,
        .interrupt = call->interrupt_ns >= 0 ? &interrupt : NULL,
    };
    call->started_ns = sim_now_ns();
    if (call->cancel_ns >= 0) {
        canceller = sim_spawn("call canceller", call_cancel, call);
    }
    const enum gar_status status = gar_runtime_call(call->play->runtime, &what, &err);
    judge_call(call, status, &err);
    if (canceller != NULL) {
        sim_join(canceller);
    }
    sim_play_later(call->play, free_call, call);
}

struct sim_thread *sim_play_call(struct sim_play *play)
{
    struct sim_rng *rng = &play->rng;
    struct call *call = make(sizeof *call);
    call->play = play;
    play->calls++;
    SIM_CHECK(gar_cancel_new(GAR_CLOCK_NEVER, &call->token, NULL) == GAR_OK, "no memory");
    call->work_ns = sim_below(rng, sim_chance(rng, 50) ? 1000 : 50 * GAR_NS_PER_MS);
    call->fails = play->has_faults && sim_chance(rng, 30);
    call->is_nested = sim_chance(rng, 20);
    call->cancel_ns = call->interrupt_ns = -1;
    if (play->has_stops && sim_chance(rng, 50)) {
        call->is_deaf = sim_chance(rng, 20);
        play->deaf_reads += call->is_deaf ? 1 : 0;
        call->work_ns = call->is_deaf ? SIM_DEAF_NS : 2 * call->work_ns;
        *(sim_chance(rng, 50) ? &call->cancel_ns : &call->interrupt_ns) =
            sim_below(rng, call->work_ns + 1);
    }
    return sim_spawn("caller", caller, call);
}

/* ---- operations ---- */

struct operation {
    struct gar_operation base; /* first */
    struct sim_play *play;
    int64_t finishes;
    int64_t cancels;
    bool is_finishing;
    bool is_cancelling;
    bool was_started;
    bool fails;
};

static void on_finish(struct gar_operation *base)
{
    struct operation *operation = (struct operation *)base;
    SIM_CHECK(!operation->is_cancelling, "an operation finishes while on_cancel runs");
    operation->is_finishing = true;
    operation->finishes++;
    sim_point("on_finish");
    SIM_CHECK(operation->finishes == 1, "an operation finishes twice");
    operation->is_finishing = false;
}

static void on_cancel(struct gar_operation *base)
{
    struct operation *operation = (struct operation *)base;
    SIM_CHECK(operation->finishes == 0, "an operation is cancelled after its finish");
    operation->is_cancelling = true;
    operation->cancels++;
    sim_point("on_cancel");
    SIM_CHECK(operation->cancels == 1, "an operation is cancelled twice");
    operation->is_cancelling = false;
}

static void canceller(void *context)
{
    struct operation *operation = context;
    sim_sleep(sim_below(&operation->play->rng, 20000));
    gar_operation_cancel(&operation->base);
}

static void perform(struct operation *operation)
{
    struct sim_rng *rng = &operation->play->rng;
    struct sim_thread *cancellers[2];
    gar_operation_init(&operation->base, on_finish);
    cancellers[0] = sim_spawn("operation canceller", canceller, operation);
    cancellers[1] = sim_spawn("operation canceller", canceller, operation);
    sim_sleep(sim_below(rng, 20000));
    if (gar_operation_start(&operation->base, sim_chance(rng, 80) ? on_cancel : NULL)) {
        struct gar_error err = GAR_ERROR_INIT;
        operation->was_started = true;
        sim_sleep(sim_below(rng, 20000));
        (void)gar_error_set(&err, GAR_ERR_IO, "simulated fault: operation");
        gar_operation_finish(&operation->base, operation->fails ? GAR_ERR_IO : GAR_OK,
                             operation->fails ? &err : NULL);
    }
    sim_join(cancellers[0]);
    sim_join(cancellers[1]);
    SIM_CHECK(operation->finishes == 1, "an operation finished %lld times",
              (long long)operation->finishes);
    const enum gar_status want = !operation->was_started ? GAR_ERR_CANCELLED
                                 : operation->fails      ? GAR_ERR_IO
                                                         : GAR_OK;
    SIM_CHECK(operation->base.status == want, "an operation has the status %s",
              gar_status_text(operation->base.status));
}

static void performer(void *context)
{
    struct sim_play *play = context;
    for (int64_t i = 1 + sim_below(&play->rng, 8); i > 0; i--) {
        struct operation operation = {.play = play, .fails = sim_chance(&play->rng, 30)};
        perform(&operation);
    }
}

struct sim_thread *sim_play_operation(struct sim_play *play)
{
    return sim_spawn("performer", performer, play);
}

/* ---- streams ---- */

enum stream_end { END_WELL, END_ERROR, END_MISSING };

struct pipe {
    struct sim_play *play;
    struct gar_schema *schema;
    struct gar_stream *stream;
    struct gar_stream_sink *sink;
    struct gar_parker parker; /* the producer's */
    int64_t batches;
    int64_t drop_after;
    enum stream_end end;
    bool has_room;
    bool is_cancelled;
    int64_t cancels;
    int64_t releases;
    bool is_refused; /* a push said that the consumer has gone */
    bool has_failed; /* its end, an error, is in the channel */
};

static void pipe_room(void *context)
{
    struct pipe *pipe = context;
    pipe->has_room = true;
    gar_parker_wake(&pipe->parker);
}

static void pipe_cancel(void *context, enum gar_cancel_reason reason)
{
    struct pipe *pipe = context;
    SIM_CHECK(reason == GAR_CANCEL_DROPPED, "a stream is cancelled for reason %d", (int)reason);
    pipe->cancels++;
    pipe->is_cancelled = true;
    gar_parker_wake(&pipe->parker);
}

static void pipe_release(void *context)
{
    ((struct pipe *)context)->releases++;
}

/* True while it is wanted. */
static bool push(struct pipe *pipe, struct gar_batch *batch)
{
    for (;;) {
        struct gar_error err = GAR_ERROR_INIT;
        pipe->has_room = false;
        const enum gar_status status = gar_stream_push(pipe->sink, batch, &err);
        if (status == GAR_OK) {
            return true;
        }
        if (status == GAR_ERR_NOMEM && pipe->play->has_refused_memory) {
            pipe->end = END_ERROR;
            gar_batch_unref(batch);
            return false;
        }
        SIM_CHECK(status == GAR_PENDING || status == GAR_ERR_CANCELLED, "a push said %s",
                  gar_status_text(status));
        pipe->is_refused = status == GAR_ERR_CANCELLED;
        while (status == GAR_PENDING && !pipe->has_room && !pipe->is_cancelled) {
            (void)gar_parker_wait(&pipe->parker, GAR_CLOCK_NEVER);
        }
        if (pipe->is_cancelled || pipe->is_refused) {
            gar_batch_unref(batch);
            return false;
        }
    }
}

static void producer(void *context)
{
    struct pipe *pipe = context;
    const int64_t positions[3] = {0, 1, 2};
    bool is_wanted = true;
    for (int64_t i = 0; i < pipe->batches && is_wanted; i++) {
        const struct sim_row row = {.k = 1, .s = 1, .v = i};
        struct gar_batch *batch = NULL;
        if (sim_batch_new(pipe->schema, positions, 3, &row, 1, gar_memory_system(), &batch, NULL) <
            0) {
            SIM_CHECK(pipe->play->has_refused_memory, "no memory for a batch");
            pipe->end = END_ERROR;
            break;
        }
        sim_sleep(sim_below(&pipe->play->rng, 3000));
        is_wanted = push(pipe, batch);
    }
    struct gar_error err = GAR_ERROR_INIT;
    switch (pipe->end) {
    case END_WELL: gar_stream_end(pipe->sink, GAR_OK, NULL); break;
    case END_ERROR:
        gar_stream_end(pipe->sink, gar_error_set(&err, GAR_ERR_IO, "simulated fault: stream"),
                       &err);
        break;
    case END_MISSING: gar_stream_sink_free(pipe->sink); break;
    }
    pipe->has_failed = pipe->end != END_WELL;
}

static void judge_pipe(const struct pipe *pipe, enum gar_status status, int64_t taken,
                       const struct gar_error *err)
{
    static const enum gar_status wanted[] = {GAR_EOF, GAR_ERR_IO, GAR_ERR_INTERNAL};
    SIM_CHECK(status == wanted[pipe->end], "a stream ended with %s: %s", gar_status_text(status),
              err->message);
    SIM_CHECK(status != GAR_EOF || taken == pipe->batches, "a stream gave %lld of %lld batches",
              (long long)taken, (long long)pipe->batches);
    SIM_CHECK(status != GAR_ERR_INTERNAL || strstr(err->message, "without an end mark") != NULL,
              "a stream ended with the text: %s", err->message);
}

static void taker(void *context)
{
    struct pipe *pipe = context;
    struct sim_thread *thread = sim_spawn("producer", producer, pipe);
    enum gar_status status = GAR_OK;
    for (int64_t taken = 0; status == GAR_OK && taken != pipe->drop_after;) {
        struct gar_error err = GAR_ERROR_INIT;
        struct gar_batch *batch = NULL;
        sim_sleep(sim_below(&pipe->play->rng, 3000));
        const bool has_failed = pipe->has_failed;
        status = gar_stream_next(pipe->stream, NULL, &batch, &err);
        if (status == GAR_OK) {
            SIM_CHECK(!has_failed, "a stream's error came after a queued batch");
            struct sim_rows rows = {0};
            sim_batch_read(batch, &rows);
            SIM_CHECK(rows.count == 1 && rows.rows[0].v == taken, "a stream changed the order");
            sim_rows_free(&rows);
            gar_batch_unref(batch);
            taken++;
        } else {
            judge_pipe(pipe, status, taken, &err);
        }
    }
    gar_stream_free(pipe->stream);
    sim_join(thread);
    SIM_CHECK(pipe->releases == 1 && pipe->cancels == (status == GAR_OK ? 1 : 0),
              "a stream's producer was released %lld times and cancelled %lld times",
              (long long)pipe->releases, (long long)pipe->cancels);
    gar_schema_unref(pipe->schema);
    free(pipe);
}

struct sim_thread *sim_play_stream(struct sim_play *play)
{
    static const struct gar_stream_producer vtable = {
        .on_room = pipe_room, .on_cancel = pipe_cancel, .release = pipe_release};
    struct sim_rng *rng = &play->rng;
    struct pipe *pipe = make(sizeof *pipe);
    pipe->play = play;
    pipe->schema = sim_schema_new();
    pipe->batches = sim_below(rng, 12);
    pipe->drop_after = play->has_stops && sim_chance(rng, 30) ? sim_below(rng, 12) : -1;
    pipe->end = (enum stream_end)sim_below(rng, play->has_faults ? 3 : 1);
    const struct gar_stream_options options = {.schema = pipe->schema,
                                               .max_batches = 1 + sim_below(rng, 3),
                                               .producer = &vtable,
                                               .context = pipe};
    SIM_CHECK(gar_stream_new_queue(&options, &pipe->stream, &pipe->sink, NULL) == GAR_OK,
              "no memory");
    return sim_spawn("taker", taker, pipe);
}

/* ---- watched descriptors ---- */

struct bell {
    struct gar_watch watch;
    struct gar_message message;
    struct gar_parker parker; /* of the ringing thread */
    struct sim_play *play;
    int64_t rings; /* wanted */
    int64_t heard;
};

static void bell_ready(struct gar_watch *watch, struct gar_loop *loop, uint32_t events)
{
    (void)loop;
    (void)events;
    struct bell *bell = (struct bell *)watch;
    gar_event_fd_clear(watch->fd);
    bell->heard++;
    gar_parker_wake(&bell->parker);
}

static struct bell *bell_of(struct gar_message *message)
{
    return (struct bell *)(void *)((char *)message - offsetof(struct bell, message));
}

static void bell_watch(struct gar_message *message, struct gar_loop *loop)
{
    struct bell *bell = bell_of(message);
    struct gar_error err = GAR_ERROR_INIT;
    SIM_CHECK(gar_loop_watch_on_loop(loop, &bell->watch, &err) == GAR_OK, "%s", err.message);
    gar_parker_wake(&bell->parker);
}

static void bell_unwatch(struct gar_message *message, struct gar_loop *loop)
{
    struct bell *bell = bell_of(message);
    gar_loop_unwatch_on_loop(loop, &bell->watch);
    bell->heard = -1;
    gar_parker_wake(&bell->parker);
}

static void ringer(void *context)
{
    struct bell *bell = context;
    struct gar_runtime *runtime = bell->play->runtime;
    struct gar_error err = GAR_ERROR_INIT;
    enum gar_status status = gar_event_fd_open(&bell->watch.fd, &err);
    SIM_CHECK(status == GAR_OK, "no event descriptor: %s", err.message);
    status = gar_runtime_start(runtime, GAR_RUNTIME_LOOP, &err);
    if (status == GAR_OK && gar_runtime_enter(runtime, &err) == GAR_OK) {
        bell->watch.ready = bell_ready;
        bell->message.handle = bell_watch;
        (void)gar_loop_post(gar_runtime_loop(runtime), &bell->message);
        for (int64_t i = 0; i < bell->rings; i++) {
            while (!bell->watch.is_watching) {
                (void)gar_parker_wait(&bell->parker, GAR_CLOCK_NEVER);
            }
            sim_sleep(sim_below(&bell->play->rng, 100000));
            gar_event_fd_signal(bell->watch.fd);
            while (bell->heard <= i) {
                (void)gar_parker_wait(&bell->parker, GAR_CLOCK_NEVER);
            }
        }
        bell->message.handle = bell_unwatch;
        (void)gar_loop_post(gar_runtime_loop(runtime), &bell->message);
        while (bell->heard >= 0) {
            (void)gar_parker_wait(&bell->parker, GAR_CLOCK_NEVER);
        }
        gar_runtime_leave(runtime);
    } else {
        SIM_CHECK(bell->play->has_refused_memory || bell->play->has_few_threads, "no loop: %s",
                  err.message);
    }
    gar_event_fd_close(bell->watch.fd);
    sim_play_later(bell->play, free, bell); /* the loop may still be in its wake */
}

struct sim_thread *sim_play_bell(struct sim_play *play)
{
    struct bell *bell = make(sizeof *bell);
    bell->play = play;
    bell->rings = sim_below(&play->rng, 5);
    return sim_spawn("ringer", ringer, bell);
}
