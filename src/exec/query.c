/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a query.
 *
 * 1. gar_exec_start lowers the plan and decides where it runs: small work on the caller's thread (inline), other work in
 *    the pools under the query loop. Both run the same code; they differ in two places only: where a job is put
 *    (a pool's queue, or the query's own list) and how it reports back (a message, or directly). When the rows through
 *    an operator of an inline query turn out to be many, the query is handed over, once and for good: between two jobs
 *    the caller gives the role to the loop, which takes over the list; the caller's stream goes on with a queue.
 * 2. gar_query_advance (schedule.c), on the query role, is called after every event: start, a job's report, room in the
 *    stream, cancel.
 * 3. When the last pipeline is done, or after the first failure, and no job is at work any more, everything is
 *    freed and the stream gets its end mark. */
#include <string.h>

#include "base/alloc.h"
#include "exec/exec.h"
#include "exec/exec_priv.h"
#include "exec/performer.h"

enum {
    INLINE_ROWS = 50000,
    INLINE_BYTES = 1 << 20,
    WIDE_BYTES = 8 << 20,   /* few rows, but large ones: not inline */
    NARROW_ROWS = 200000,   /* few bytes, but many rows: not inline */
    HAND_OVER_FACTOR = 2,   /* an estimate may be wrong by so much before an inline query moves */
    STREAM_BYTES = 4 << 20, /* of batches that wait for the consumer */
    OTHERS_SHARE = 4,       /* one part in so many of the memory limit is left to other operators */
    BEGIN_SHARE = 2,        /* with less left than one part in so many no further unit is begun */
    INTERRUPT_JOBS = 64,    /* inline: look at the caller's signals once in so many jobs */
};

#define CONTAINER(pointer, type, member) \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* ---- making and freeing ---- */

void gar_query_unref(struct gar_query *query)
{
    if (__atomic_sub_fetch(&query->refs, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    for (int64_t i = query->ready_next; i < query->ready_count; i++) {
        gar_batch_unref(query->ready[i]);
    }
    gar_free(query->ready);
    gar_memory_unref(query->memory);
    gar_cancel_unref(query->cancel);
    gar_profile_unref(query->profile);
    gar_schema_unref(query->schema);
    gar_spill_file_free(query->spill);
    gar_free(query);
}

static void ref_query(struct gar_query *query)
{
    __atomic_add_fetch(&query->refs, 1, __ATOMIC_RELAXED);
}

enum gar_status gar_query_own(struct gar_query *query, void *object,
                              void (*free_object)(void *object), struct gar_error *err)
{
    struct gar_owned *owned =
        (struct gar_owned *)gar_arena_alloc(&query->arena, (int64_t)sizeof *owned);
    if (owned == NULL) {
        free_object(object);
        return gar_error_nomem(err, (int64_t)sizeof *owned);
    }
    *owned = (struct gar_owned){query->owned, object, free_object};
    query->owned = owned;
    return GAR_OK;
}

/* What pipelines, operators and sinks hold. No job is at work. */
void gar_query_free_parts(struct gar_query *query)
{
    for (struct gar_pipeline *p = query->pipelines; p != NULL; p = p->all_next) {
        for (int64_t i = 0; p->ring != NULL && i < p->window_max; i++) {
            struct gar_job *job = p->ring[i];
            if (job != NULL) {
                if (!job->is_done) {
                    job->branch->source->vtable->unit_free(job->branch->source, &job->unit);
                }
                gar_job_free(job);
            }
        }
        gar_free(p->ring);
        p->ring = NULL;
        gar_pipeline_free_workers(p, query->workers);
    }
    query->pipelines = query->first = query->current = NULL;
    while (query->owned != NULL) {
        struct gar_owned *owned = query->owned;
        query->owned = owned->next;
        owned->free(owned->object);
    }
    gar_query_free_idle_jobs(query);
    gar_arena_destroy(&query->arena);
}

bool gar_query_may_spill(const struct gar_query *query)
{
    return query->spill != NULL && gar_spill_file_may_write(query->spill);
}

bool gar_query_is_short(const struct gar_query *query, int64_t bytes)
{
    int64_t limit = 0;
    if (!gar_query_may_spill(query)) {
        return false;
    }
    const int64_t room = gar_memory_room(query->memory, &limit);
    return query->spills_always || room - bytes < limit / OTHERS_SHARE;
}

bool gar_query_is_crowded(const struct gar_query *query)
{
    int64_t limit = 0;
    const int64_t room = gar_memory_room(query->memory, &limit);
    return limit != INT64_MAX && room < limit / BEGIN_SHARE;
}

/* Few rows, or few bytes; -1: unknown. */
static bool is_small(int64_t rows, int64_t bytes, int64_t factor)
{
    const bool few_rows = rows >= 0 && rows <= factor * INLINE_ROWS && bytes <= factor * WIDE_BYTES;
    const bool few_bytes =
        bytes >= 0 && bytes <= factor * INLINE_BYTES && rows <= factor * NARROW_ROWS;
    return few_rows || few_bytes;
}

static bool fits_inline(const struct gar_plan *plan)
{
    return is_small(gar_plan_source_rows(plan), gar_plan_source_bytes(plan), 1);
}

bool gar_query_is_outgrown(const struct gar_query *query, int64_t rows, int64_t bytes)
{
    return query->hand_over_rows > 0 ? rows >= query->hand_over_rows
                                     : !is_small(rows, bytes, HAND_OVER_FACTOR);
}

static enum gar_status new_query(const struct gar_plan *plan,
                                 const struct gar_exec_options *options, struct gar_query **out,
                                 struct gar_error *err)
{
    struct gar_query *query = (struct gar_query *)gar_calloc(1, (int64_t)sizeof *query);
    if (query == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *query);
    }
    query->refs = 1;
    query->runtime = options->runtime;
    query->memory = gar_memory_ref(options->memory);
    query->schema = gar_schema_ref(plan->schema);
    query->morsel_rows = gar_max_i64(options->morsel_rows, 1);
    query->is_ordered = options->maintain_order;
    query->is_flat = options->flat_result;
    query->watchdog.limit_ns = options->watchdog_ns;
    query->is_inline = options->allow_inline && fits_inline(plan) && !gar_plan_runs_udf(plan);
    query->is_greedy = options->is_greedy || options->stream_batches == INT64_MAX;
    query->hand_over_rows = options->hand_over_rows;
    query->workers = gar_pool_workers(gar_runtime_compute(query->runtime));
    query->all_tail = &query->pipelines;
    query->tail = &query->first;
    query->spills_always = options->spill_always;
    enum gar_status status = GAR_OK;
    if (options->spill != NULL) {
        status = gar_spill_file_new(options->spill, &query->spill, err);
    }
    if (options->cancel != NULL) {
        query->cancel = gar_cancel_ref(options->cancel);
    } else if (status >= 0) {
        status = gar_cancel_new(INT64_MAX, &query->cancel, err);
    }
    if (options->profile != NULL) {
        query->profile = gar_profile_ref(options->profile);
    } else if (status >= 0) {
        status = gar_profile_new(NULL, &query->profile, err);
    }
    if (status < 0) {
        gar_query_unref(query);
        return status;
    }
    *out = query;
    return GAR_OK;
}

/* ---- queries in the pools ---- */

static void on_advance_message(struct gar_message *message, struct gar_loop *loop)
{
    struct gar_query *query = CONTAINER(message, struct gar_query, start_message);
    gar_query_role_assert();
    if (!query->is_on_loop) {
        query->is_on_loop = true;
        gar_profile_set_on_loop(query->profile);
        gar_query_widen(query);
        if (query->cancel->deadline_ns != INT64_MAX) {
            gar_loop_start_timer_on_loop(loop, &query->deadline, query->cancel->deadline_ns);
        }
    }
    gar_watchdog_wake(query);
    gar_query_advance(query);
    gar_query_unref(query);
}

/* Ask the loop to look at the query. Threads: any that knows the query to be alive. */
static void post_advance(struct gar_query *query)
{
    ref_query(query); /* the message's */
    if (!gar_loop_post(gar_runtime_loop(query->runtime), &query->start_message)) {
        gar_query_unref(query);
    }
}

static void on_deadline(struct gar_timer *timer, struct gar_loop *loop)
{
    (void)loop;
    struct gar_query *query = CONTAINER(timer, struct gar_query, deadline);
    (void)gar_cancel_request(query->cancel, GAR_CANCEL_DEADLINE);
}

static void on_cancelled(struct gar_cancel_waker *waker)
{
    post_advance(CONTAINER(waker, struct gar_query, waker));
}

static void on_stream_room(void *context)
{
    post_advance((struct gar_query *)context);
}

static void on_stream_cancel(void *context, enum gar_cancel_reason reason)
{
    struct gar_query *query = (struct gar_query *)context;
    (void)gar_cancel_request(query->cancel, reason);
}

static void on_stream_release(void *context)
{
    gar_query_unref((struct gar_query *)context);
}

/* Give the query to the loop; nothing of it may be touched by this thread afterwards but what belongs to the consumer.
 * On failure nothing has happened. */
static enum gar_status give_to_loop(struct gar_query *query, int64_t stream_batches,
                                    int64_t stream_bytes, struct gar_stream **out,
                                    struct gar_error *err)
{
    static const struct gar_stream_producer producer = {
        .on_room = on_stream_room, .on_cancel = on_stream_cancel, .release = on_stream_release};
    const struct gar_stream_options stream = {.schema = query->schema,
                                              .max_batches = stream_batches,
                                              .max_bytes = stream_bytes > 0   ? stream_bytes
                                                           : query->is_greedy ? 0
                                                                              : STREAM_BYTES,
                                              .producer = &producer,
                                              .context = query};
    GAR_TRY(gar_runtime_enter(query->runtime, err));
    const enum gar_status status = gar_stream_new_queue(&stream, out, &query->stream, err);
    if (status < 0) {
        gar_runtime_leave(query->runtime);
        return status;
    }
    query->is_inline = false;
    query->start_message.handle = on_advance_message;
    query->deadline.fire = on_deadline;
    query->waker.wake = on_cancelled;
    ref_query(query); /* one for the consumer, one until it is finished */
    (void)gar_cancel_add_waker(
        query->cancel,
        &query->waker); /* one cancelled already is seen by the first gar_query_advance */
    post_advance(query);
    return GAR_OK;
}

enum gar_status gar_query_emit(struct gar_query *query, struct gar_batch *batch,
                               struct gar_error *err)
{
    const int64_t rows = batch->rows;
    const int64_t bytes = gar_profile_batch_bytes(batch);
    if (!query->is_inline) {
        const enum gar_status status = gar_stream_push(query->stream, batch, err);
        if (status == GAR_OK) {
            gar_profile_note_result(query->profile, rows, bytes);
        }
        return status;
    }
    GAR_TRY(gar_grow((void **)&query->ready, &query->ready_capacity, query->ready_count + 1,
                     (int64_t)sizeof *query->ready, err));
    query->ready[query->ready_count++] = batch;
    gar_profile_note_result(query->profile, rows, bytes);
    return GAR_OK;
}

/* ---- inline queries ---- */

static bool take_ready(struct gar_query *query, struct gar_batch **out) GAR_REQUIRES(gar_query_role)
{
    if (query->ready_next >= query->ready_count) {
        query->ready_next = query->ready_count = 0;
        return false;
    }
    *out = query->ready[query->ready_next++];
    return true;
}

/* Between two jobs; all results so far are taken. */
static enum gar_status hand_over(struct gar_query *query, struct gar_error *err)
    GAR_REQUIRES(gar_query_role)
{
    GAR_TRY(gar_runtime_start(query->runtime, GAR_RUNTIME_ALL, err));
    query->is_handed = true;
    ref_query(query); /* the inner stream's; the outer one keeps its own */
    const enum gar_status status = give_to_loop(query, 0, 0, &query->inner, err);
    if (status < 0) {
        query->is_handed = false; /* nothing has happened */
        gar_query_unref(query);
        return status;
    }
    return GAR_PENDING;
}

static struct gar_stream *take_over(void *context)
{
    struct gar_query *query = (struct gar_query *)context;
    struct gar_stream *inner = query->inner;
    query->inner = NULL;
    return inner;
}

static enum gar_status next_inline(void *context, const struct gar_interrupt *interrupt,
                                   struct gar_batch **out, struct gar_error *err)
{
    struct gar_query *query = (struct gar_query *)context;
    gar_query_role_assert();
    if (!query->is_started) {
        query->is_started = true;
        gar_query_advance(query);
    }
    for (int64_t jobs = 1;; jobs++) {
        if (!query->is_failed && take_ready(query, out)) {
            return GAR_OK;
        }
        if (query->is_finished) {
            if (query->is_failed && err != NULL) {
                *err = query->error;
            }
            return query->is_failed ? query->status : GAR_EOF;
        }
        if (!query->is_failed && query->current != NULL &&
            gar_query_is_outgrown(query, query->current->work_rows, query->current->work_bytes)) {
            return hand_over(query, err);
        }
        if (jobs % INTERRUPT_JOBS == 0 && gar_interrupt_check(interrupt)) {
            (void)gar_cancel_request(query->cancel, GAR_CANCEL_INTERRUPT);
        }
        (void)gar_cancel_poll(query->cancel);
        struct gar_job *job = gar_query_take_job(query);
        if (job != NULL) {
            gar_job_run(job, 0);
            gar_job_handle(job);
        } else if (query->is_failed || query->current == NULL || query->ready_count == 0) {
            /* Everything runs on this thread: with no job and no result there must be an end. */
            return gar_error_set(err, GAR_ERR_INTERNAL, "the query has stopped without an end");
        }
        if (query->ready_count == 0) {
            gar_query_advance(query);
        }
    }
}

static void cancel_inline(void *context, enum gar_cancel_reason reason)
{
    (void)gar_cancel_request(((struct gar_query *)context)->cancel, reason);
}

static void release_inline(void *context)
{
    struct gar_query *query = (struct gar_query *)context;
    gar_query_role_assert();
    if (!query->is_handed && !query->is_finished) {
        for (struct gar_job *job = gar_query_take_job(query); job != NULL;
             job = gar_query_take_job(query)) {
            if (job->kind != GAR_JOB_MORSEL) { /* morsels are in their pipeline's ring */
                if (job->kind == GAR_JOB_CALL) {
                    const struct gar_error none = GAR_ERROR_INIT;
                    job->work.done(job->work.context, query, GAR_ERR_CANCELLED, &none);
                }
                gar_job_free(job);
            }
        }
        gar_query_free_parts(query);
        gar_profile_end(query->profile, GAR_ERR_CANCELLED);
    }
    gar_query_unref(query);
}

static enum gar_status start_inline(struct gar_query *query, struct gar_stream **out,
                                    struct gar_error *err)
{
    static const struct gar_stream_source source = {.next = next_inline,
                                                    .cancel = cancel_inline,
                                                    .release = release_inline,
                                                    .take_over = take_over};
    return gar_stream_new_inline(query->schema, &source, query, out, err);
}

static enum gar_status start_query(struct gar_query *query, const struct gar_plan *plan,
                                   const struct gar_exec_options *options, struct gar_stream **out,
                                   struct gar_error *err)
{
    if (!query->is_inline) {
        GAR_TRY(gar_runtime_start(query->runtime, GAR_RUNTIME_ALL, err));
        query->workers = gar_pool_workers(gar_runtime_compute(query->runtime));
    }
    GAR_TRY(gar_query_lower(query, plan, false, err));
    GAR_TRY(gar_query_acquire(query, err));
    query->current = query->first;
    return query->is_inline
               ? start_inline(query, out, err)
               : give_to_loop(query, options->stream_batches, options->stream_bytes, out, err);
}

enum gar_status gar_exec_start(const struct gar_plan *plan, const struct gar_exec_options *options,
                               struct gar_stream **out, struct gar_error *err)
{
    struct gar_query *query = NULL;
    GAR_TRY(new_query(plan, options, &query, err));
    const enum gar_status status = start_query(query, plan, options, out, err);
    if (status < 0) {
        gar_query_free_parts(query);
        gar_query_unref(query);
    }
    return status;
}

/* ---- explain ---- */

enum gar_status gar_exec_explain(const struct gar_plan *plan,
                                 const struct gar_exec_options *options, struct gar_strbuf *out,
                                 struct gar_error *err)
{
    struct gar_query *query = NULL;
    GAR_TRY(new_query(plan, options, &query, err));
    enum gar_status status = gar_query_lower(query, plan, true, err);
    if (status >= 0) {
        gar_profile_print(query->profile, false, out);
    }
    gar_query_free_parts(query);
    gar_query_unref(query);
    return status;
}
