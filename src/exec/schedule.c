/* SPDX-License-Identifier: Apache-2.0 */
/* What a running query does next: its jobs, and the steps of its pipelines.
 *
 * gar_query_advance, on the query role, is called after every event: start, a job's report, room in the stream, cancel.
 * It delivers what is ready, dispatches units within a window, and moves pipelines through their stages. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/stop.h"
#include "exec/exec_priv.h"
#include "os/clock.h"
#include "runtime/trace.h"

#define CONTAINER(pointer, type, member) \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

enum {
    OUTPUT_BYTES_MAX = 8 << 20, /* that a job makes before it waits */
    BATCH_ROWS_FIRST = 1024,
    BATCH_BYTES_MIN = 64 << 10, /* pace: a batch at first */
    BATCH_BYTES_MAX = 4 << 20,
    BUDGET_MIN = 512 << 10, /* pace: what all jobs may hold at first */
    BUDGET_SHIFT_MAX = 12,
    IDLE_NS = 100 * 1000 * 1000, /* without a consumer, before a query is parked */
    WINDOW_BYTES = 1 << 20,      /* pace: so much delivered for one unit more at once */
};

#define IDLE_NS_MAX (INT64_C(10) * 1000 * 1000 * 1000)

static void advance(struct gar_query *query) GAR_REQUIRES(gar_query_role);

/* ---- jobs ---- */

static void free_outputs(struct gar_job *job)
{
    for (int64_t i = job->output_next; i < job->output_count; i++) {
        gar_batch_unref(job->outputs[i]);
    }
    job->output_count = job->output_next = 0;
    job->output_bytes = 0;
}

void gar_job_free(struct gar_job *job)
{
    gar_pipeline_drop_saved(job);
    free_outputs(job);
    gar_free(job->outputs);
    gar_free(job);
}

static enum gar_status new_job(struct gar_query *query, enum gar_job_kind kind,
                               struct gar_job **out, struct gar_error *err)
{
    struct gar_job *job = query->free_jobs;
    struct gar_batch **outputs = NULL;
    int64_t capacity = 0;
    if (job != NULL) {
        query->free_jobs = job->next_free;
        outputs = job->outputs;
        capacity = job->output_capacity;
    } else {
        job = (struct gar_job *)gar_malloc((int64_t)sizeof *job);
        if (job == NULL) {
            return gar_error_nomem(err, (int64_t)sizeof *job);
        }
    }
    memset(job, 0,
           offsetof(struct gar_job,
                    error)); /* the message of an error is large and only written on failure */
    job->outputs = outputs;
    job->output_capacity = capacity;
    job->query = query;
    job->kind = kind;
    *out = job;
    return GAR_OK;
}

struct gar_job *gar_query_take_job(struct gar_query *query)
{
    struct gar_job *job = query->run_first;
    if (job != NULL) {
        query->run_first = job->next_free;
        if (query->run_first == NULL) {
            query->run_last = NULL;
        }
    }
    return job;
}

void gar_query_free_idle_jobs(struct gar_query *query)
{
    while (query->free_jobs != NULL) {
        struct gar_job *job = query->free_jobs;
        query->free_jobs = job->next_free;
        gar_job_free(job);
    }
}

static void recycle_job(struct gar_query *query, struct gar_job *job)
{
    gar_pipeline_drop_saved(job);
    free_outputs(job);
    job->next_free = query->free_jobs;
    query->free_jobs = job;
}

/* The span of the task that has just run. */
static void trace_job(const struct gar_job *job)
{
    if (!gar_trace_is_on()) {
        return;
    }
    char name[64] = "clean up";
    struct gar_trace_args args = {.query = gar_profile_id(job->query->profile)};
    if (job->kind == GAR_JOB_MORSEL) {
        args.rows = job->rows;
        size_t used = (size_t)snprintf(name, sizeof name, "%s", job->branch->source->vtable->name);
        for (int64_t t = 0; t < job->branch->transform_count && used < sizeof name; t++) {
            used += (size_t)snprintf(name + used, sizeof name - used, " > %s",
                                     job->branch->transforms[t]->vtable->name);
        }
        if (used < sizeof name) {
            (void)snprintf(name + used, sizeof name - used, " > %s",
                           job->pipeline->sink->vtable->name);
        }
    } else if (job->kind == GAR_JOB_ITEM) {
        (void)snprintf(name, sizeof name, "%s, step %d", job->pipeline->sink->vtable->name,
                       (int)job->stage + 1);
    } else if (job->work.op >= 0) {
        struct gar_operator_profile seen;
        (void)gar_profile_read_operator(job->query->profile, job->work.op, &seen);
        (void)snprintf(name, sizeof name, "%s: %s", seen.name, job->work.is_io ? "IO" : "encode");
    }
    gar_trace_span("task", name, job->meter.begin_ns, &args);
}

static void run_item(struct gar_job *job, int32_t worker)
{
    struct gar_sink *sink = job->pipeline->sink;
    job->status = gar_cancel_status(job->query->cancel, &job->error);
    if (job->status >= 0) {
        job->status = sink->vtable->item(sink, job->stage, job->item, worker, &job->error);
    }
    (void)gar_meter_leave(&job->meter, sink->op);
}

static void run_kind(struct gar_job *job, int32_t worker)
{
    struct gar_profile *profile = job->query->profile;
    switch (job->kind) {
    case GAR_JOB_MORSEL:
        job->status =
            gar_meter_begin(&job->meter, profile, worker, job->branch->source->op, &job->error);
        if (job->status >= 0) {
            gar_pipeline_run_morsel(job, worker);
            gar_meter_end(&job->meter);
            trace_job(job);
        }
        break;
    case GAR_JOB_ITEM:
        job->status =
            gar_meter_begin(&job->meter, profile, worker, job->pipeline->sink->op, &job->error);
        if (job->status >= 0) {
            run_item(job, worker);
            gar_meter_end(&job->meter);
            trace_job(job);
        }
        break;
    case GAR_JOB_CALL:
        gar_meter_begin_call(&job->meter, job->work.op);
        job->status = job->work.run(job->work.context, worker, &job->error);
        gar_meter_end_call(&job->meter);
        trace_job(job);
        break;
    }
}

/* Loops deep inside stop when the query is cancelled; they do not know why. */
void gar_job_run(struct gar_job *job, int32_t worker)
{
    const struct gar_cancel *cancel = job->query->cancel;
    const int32_t *before = gar_stop_word;
    gar_stop_word = &cancel->reason;
    run_kind(job, worker);
    gar_stop_word = before;
    if (job->status == GAR_ERR_CANCELLED && gar_cancel_requested(cancel)) {
        job->status = gar_cancel_status(cancel, &job->error);
    }
}

static void run_task(struct gar_task *task, int32_t worker)
{
    struct gar_job *job = CONTAINER(task, struct gar_job, task);
    struct gar_loop *loop = gar_runtime_loop(job->query->runtime);
    gar_job_run(job, worker);
    (void)gar_loop_post(loop, &job->message); /* the job may be gone from here on */
}

static void on_job_message(struct gar_message *message, struct gar_loop *loop)
{
    (void)loop;
    gar_query_role_assert();
    gar_job_handle(CONTAINER(message, struct gar_job, message));
}

static void give_to_pool(struct gar_job *job)
{
    struct gar_runtime *runtime = job->query->runtime;
    if (job->work.pool != NULL) {
        job->task.owner = job->query->cancel;
        gar_pool_submit(job->work.pool, &job->task);
        return;
    }
    gar_pool_submit(job->work.is_io ? gar_runtime_io(runtime) : gar_runtime_compute(runtime),
                    &job->task);
}

static void submit_job(struct gar_query *query, struct gar_job *job) GAR_REQUIRES(gar_query_role)
{
    query->in_flight++;
    job->is_running = true;
    __atomic_store_n(&job->meter.op, GAR_METER_IDLE, __ATOMIC_RELAXED);
    job->at_work_previous = NULL;
    job->at_work_next = query->at_work;
    if (query->at_work != NULL) {
        query->at_work->at_work_previous = job;
    }
    query->at_work = job;
    job->task.run = run_task;
    job->message.handle = on_job_message;
    if (query->is_inline) {
        job->next_free = NULL;
        if (query->run_last != NULL) {
            query->run_last->next_free = job;
        } else {
            query->run_first = job;
        }
        query->run_last = job;
        return;
    }
    give_to_pool(job);
}

enum gar_status gar_query_call(struct gar_query *query, const struct gar_work *work,
                               struct gar_error *err)
{
    gar_query_role_assert();
    struct gar_job *job = NULL;
    GAR_TRY(new_job(query, GAR_JOB_CALL, &job, err));
    job->work = *work;
    submit_job(query, job);
    return GAR_OK;
}

/* What the job has made and seen. */
static void take_report(struct gar_pipeline *p, const struct gar_job *job)
    GAR_REQUIRES(gar_query_role)
{
    p->pace.granted_bytes -= job->output_bytes_max;
    p->pace.held_bytes += job->output_bytes;
    p->pace.batch_rows = job->batch_rows;
    if (p->query->is_inline) { /* one job at a time: it went on from what the pipeline had */
        p->work_rows = job->work_rows;
        p->work_bytes = job->work_bytes;
    }
}

void gar_job_handle(struct gar_job *job)
{
    struct gar_query *query = job->query;
    query->in_flight--;
    query->watchdog.events++;
    job->is_running = false;
    if (job->at_work_previous != NULL) {
        job->at_work_previous->at_work_next = job->at_work_next;
    } else {
        query->at_work = job->at_work_next;
    }
    if (job->at_work_next != NULL) {
        job->at_work_next->at_work_previous = job->at_work_previous;
    }
    if (job->status < 0) {
        gar_query_fail(query, job->status, &job->error);
    }
    switch (job->kind) {
    case GAR_JOB_MORSEL:
        job->pipeline->in_flight--;
        take_report(job->pipeline, job);
        if (job->status < 0) {
            job->is_done = true;
        }
        if (job->is_done) {
            job->branch->source->vtable->unit_free(job->branch->source, &job->unit);
        }
        break;
    case GAR_JOB_ITEM:
        job->pipeline->in_flight--;
        recycle_job(query, job);
        break;
    case GAR_JOB_CALL:
        gar_profile_note_call(query->profile, &job->meter, job->work.op, job->work.is_io);
        job->work.done(job->work.context, query, job->status, &job->error);
        recycle_job(query, job);
        break;
    }
    advance(query);
}

/* ---- advancing ---- */

void gar_query_fail(struct gar_query *query, enum gar_status status, const struct gar_error *err)
{
    if (query->is_failed) {
        return;
    }
    query->is_failed = true;
    query->status = status;
    query->error = *err;
    query->error.status = status;
    (void)gar_cancel_request(query->cancel, GAR_CANCEL_ERROR);
    for (struct gar_pipeline *p = query->pipelines; p != NULL; p = p->all_next) {
        __atomic_store_n(&p->stop, 1, __ATOMIC_RELAXED);
        for (int64_t b = 0; b < p->branch_count; b++) {
            if (p->branches[b].source->vtable->stop != NULL) {
                p->branches[b].source->vtable->stop(p->branches[b].source);
            }
        }
    }
}

static void satisfy(struct gar_pipeline *p) GAR_REQUIRES(gar_query_role)
{
    p->is_satisfied = true;
    __atomic_store_n(&p->stop, 1, __ATOMIC_RELAXED);
    for (int64_t b = 0; b < p->branch_count; b++) {
        if (p->branches[b].source->vtable->stop != NULL) {
            p->branches[b].source->vtable->stop(p->branches[b].source);
        }
    }
}

/* Cut the batch in *place by the pipeline's offset and limit and hand it on. GAR_OK: it is gone,
 * *place too. */
static enum gar_status deliver_batch(struct gar_pipeline *p, struct gar_batch **place,
                                     struct gar_error *err) GAR_REQUIRES(gar_query_role)
{
    struct gar_batch *batch = *place;
    const int64_t skip = gar_min_i64(p->range.skip, batch->rows);
    int64_t rows = batch->rows - skip;
    if (p->range.take >= 0) {
        rows = gar_min_i64(rows, p->range.take);
    }
    if (rows < batch->rows) {
        if (rows > 0) {
            struct gar_batch *part = NULL;
            GAR_TRY(gar_batch_slice(batch, skip, rows, &part, err));
            *place = part;
        }
        p->range.skip -= skip;
        if (rows == 0) {
            *place = NULL;
        }
        gar_batch_unref(batch);
    }
    if (*place != NULL) {
        const enum gar_status status = p->sink->vtable->deliver(p->sink, p->query, *place, err);
        if (status == GAR_OK) {
            p->pace.blocked_ns = 0;
        } else if (status == GAR_EOF) {
            satisfy(p);
        }
        if (status != GAR_OK) {
            return status;
        }
        *place = NULL;
        if (p->range.take >= 0) {
            p->range.take -= rows;
        }
    }
    if (p->range.take == 0) {
        satisfy(p);
    }
    return GAR_OK;
}

/* Deliver the outputs of a job that is not at work. GAR_PENDING: the sink is full. */
static enum gar_status deliver_job(struct gar_pipeline *p, struct gar_job *job,
                                   struct gar_error *err) GAR_REQUIRES(gar_query_role)
{
    while (job->output_next < job->output_count && !p->is_satisfied) {
        struct gar_batch **place = &job->outputs[job->output_next];
        const enum gar_status status = deliver_batch(p, place, err);
        if (status < 0 || status == GAR_PENDING) {
            return status;
        }
        if (*place == NULL) {
            job->output_next++;
        }
    }
    p->pace.held_bytes -= job->output_bytes;
    p->pace.delivered_bytes += job->output_bytes;
    free_outputs(job);
    return GAR_OK;
}

/* Does deliver get batches in the order of the units? Then a slow unit holds up those behind it, and places in the ring go
 * by number; else a place is any free one. */
static bool keeps_order(const struct gar_pipeline *p)
{
    return p->is_ordered && p->sink->vtable->push == NULL;
}

int64_t gar_pipeline_room(const struct gar_pipeline *p)
{
    if (p->held_units > 0 && gar_query_is_crowded(p->query)) {
        return 0; /* what is under way gives memory back, and asks again */
    }
    return p->window - (keeps_order(p) ? p->seq_next - p->seq_head : p->held_units);
}

/* There is room. */
static int64_t slot_for(const struct gar_pipeline *p, int64_t seq) GAR_REQUIRES(gar_query_role)
{
    int64_t slot = seq % p->window_max;
    while (p->ring[slot] != NULL) {
        slot = (slot + 1) % p->window_max;
    }
    return slot;
}

/* A unit is through: forget its job; more units may go together when the first ones did not fill a
 * limit. */
static void retire_job(struct gar_pipeline *p, struct gar_job *job) GAR_REQUIRES(gar_query_role)
{
    p->ring[job->slot] = NULL;
    p->held_units--;
    recycle_job(p->query, job);
    while (keeps_order(p) && p->seq_head < p->seq_next &&
           p->ring[p->seq_head % p->window_max] == NULL) {
        p->seq_head++;
    }
    p->pace.retired++;
    if (!p->query->is_inline) {
        p->window = gar_min_i64(p->window * 2, p->window_max);
    }
}

/* ---- pace ---- */

/* What all jobs may hold. */
static int64_t budget_of(const struct gar_pipeline *p)
{
    const int64_t by_units = (int64_t)BUDGET_MIN << gar_min_i64(p->pace.retired, BUDGET_SHIFT_MAX);
    return gar_min_i64(gar_max_i64(by_units, 2 * p->pace.delivered_bytes),
                       ((int64_t)p->query->workers + 1) * OUTPUT_BYTES_MAX);
}

/* Bytes that the job may make now; 0: none, it has to wait. The oldest unit always goes on. */
static int64_t grant_of(struct gar_pipeline *p, const struct gar_job *job)
{
    if (!p->pace.is_on) {
        return OUTPUT_BYTES_MAX;
    }
    const int64_t budget = budget_of(p);
    const int64_t batch =
        gar_max_i64(BATCH_BYTES_MIN, gar_min_i64(p->pace.delivered_bytes / 4, BATCH_BYTES_MAX));
    const int64_t used = p->pace.granted_bytes + p->pace.held_bytes;
    const int64_t grant = gar_min_i64(budget - used, gar_max_i64(batch, budget / p->window_max));
    return grant > 0                              ? gar_min_i64(grant, OUTPUT_BYTES_MAX)
           : job->seq == p->seq_head || used == 0 ? 1
                                                  : 0;
}

static void begin_morsel(struct gar_pipeline *p, struct gar_job *job, int64_t grant)
    GAR_REQUIRES(gar_query_role)
{
    job->output_bytes_max = grant;
    job->batch_rows = p->pace.batch_rows;
    job->batch_bytes = p->pace.is_on
                           ? gar_max_i64(BATCH_BYTES_MIN,
                                         gar_min_i64(p->pace.delivered_bytes / 4, BATCH_BYTES_MAX))
                           : 0;
    job->work_rows = p->work_rows;
    job->work_bytes = p->work_bytes;
    p->pace.granted_bytes += grant;
    if (p->pace.is_on) {
        p->window = gar_max_i64(p->window,
                                gar_min_i64(p->pace.delivered_bytes / WINDOW_BYTES, p->window_max));
    }
    submit_job(p->query, job);
}

static enum gar_status run_reload(void *context, int32_t worker, struct gar_error *err)
{
    (void)worker;
    struct gar_job *job = (struct gar_job *)context;
    GAR_CANCEL_CHECK(job->query->cancel, err);
    return job->branch->source->vtable->reload(job->branch->source, &job->unit, err);
}

static void reload_is_done(void *context, struct gar_query *query, enum gar_status status,
                           const struct gar_error *err) GAR_REQUIRES(gar_query_role)
{
    (void)query;
    (void)err;
    struct gar_job *job = (struct gar_job *)context;
    job->is_parked = false;
    job->is_running = false;
    job->pipeline->in_flight--;
    if (status < 0) {
        job->is_done = true;
        job->branch->source->vtable->unit_free(job->branch->source, &job->unit);
    }
}

/* Let a job go on whose outputs are delivered. */
static enum gar_status resume_job(struct gar_pipeline *p, struct gar_job *job,
                                  struct gar_error *err) GAR_REQUIRES(gar_query_role)
{
    if (job->is_parked) {
        const struct gar_work work = {.op = job->branch->source->op,
                                      .is_io = true,
                                      .run = run_reload,
                                      .done = reload_is_done,
                                      .context = job};
        GAR_TRY(gar_query_call(p->query, &work, err));
        job->is_running = true;
        p->in_flight++;
        return GAR_OK;
    }
    const int64_t grant = grant_of(p, job);
    if (grant > 0) {
        p->in_flight++;
        begin_morsel(p, job, grant);
    }
    return GAR_OK;
}

/* GAR_PENDING when the sink is full. */
static enum gar_status drain(struct gar_pipeline *p, struct gar_error *err)
    GAR_REQUIRES(gar_query_role)
{
    const int64_t head = p->seq_head;
    for (int64_t i = 0; i < p->window_max; i++) {
        struct gar_job *job = p->ring[(head + i) % p->window_max];
        if (job == NULL) {
            continue;
        }
        if (!job->is_running) {
            const enum gar_status status = deliver_job(p, job, err);
            if (status < 0 || status == GAR_PENDING) {
                return status;
            }
            if (job->is_done) {
                retire_job(p, job);
                continue;
            }
            GAR_TRY(resume_job(p, job, err));
        }
        if (keeps_order(p) && !p->is_satisfied) {
            break;
        }
    }
    return GAR_OK;
}

/* The pipelines that make what the branch reads run now, and then p goes on. */
static void begin_before(struct gar_pipeline *p, struct gar_branch *branch)
    GAR_REQUIRES(gar_query_role)
{
    struct gar_pipeline *last = branch->before;
    while (last->next != NULL) {
        last = last->next;
    }
    last->next = p;
    p->query->current = branch->before;
    branch->before = NULL;
}

/* Is it in a branch behind this one? */
static bool comes_again(const struct gar_pipeline *p, const struct gar_transform *transform)
{
    for (int64_t b = p->branch + 1; b < p->branch_count; b++) {
        for (int64_t t = 0; t < p->branches[b].transform_count; t++) {
            if (p->branches[b].transforms[t] == transform) {
                return true;
            }
        }
    }
    return false;
}

/* The branch's source is at its end: its source and transforms may have more for the pipeline. */
static enum gar_status end_branch(struct gar_pipeline *p, struct gar_error *err)
    GAR_REQUIRES(gar_query_role)
{
    const struct gar_branch branch = p->branches[p->branch];
    if (branch.source->vtable->follow != NULL) {
        GAR_TRY(branch.source->vtable->follow(branch.source, p, p->branch, err));
    }
    for (int64_t t = 0; t < branch.transform_count; t++) {
        struct gar_transform *transform = branch.transforms[t];
        if (transform->vtable->follow != NULL && !comes_again(p, transform)) {
            GAR_TRY(transform->vtable->follow(transform, p, p->branch, t, err));
        }
    }
    p->branch++;
    p->is_branch_begun = false;
    return GAR_OK;
}

static enum gar_status dispatch(struct gar_pipeline *p, struct gar_error *err)
    GAR_REQUIRES(gar_query_role)
{
    while (!p->is_satisfied && p->branch < p->branch_count && gar_pipeline_room(p) > 0) {
        struct gar_branch *branch = &p->branches[p->branch];
        struct gar_source_unit unit = {0};
        if (branch->before != NULL) {
            if (p->in_flight == 0 && p->held_units == 0) {
                gar_pipeline_release(p, p->branch);
                begin_before(p, branch);
            }
            return GAR_PENDING;
        }
        if (branch->waits && !p->is_branch_begun && p->held_units > 0) {
            return GAR_PENDING;
        }
        const struct gar_job place = {.seq = p->seq_next};
        const int64_t grant = grant_of(p, &place);
        if (grant == 0) {
            return GAR_PENDING;
        }
        const enum gar_status status =
            branch->source->vtable->next(branch->source, p->query, &unit, err);
        if (status == GAR_EOF) {
            GAR_TRY(end_branch(p, err));
            continue;
        }
        if (status != GAR_OK) {
            return status;
        }
        p->is_branch_begun = true;
        struct gar_job *job = NULL;
        const enum gar_status made = new_job(p->query, GAR_JOB_MORSEL, &job, err);
        if (made < 0) {
            branch->source->vtable->unit_free(branch->source, &unit);
            return made;
        }
        job->pipeline = p;
        job->seq = p->seq_next++;
        job->branch = branch;
        job->unit = unit;
        job->rows_max = p->range.take >= 0 ? p->range.skip + p->range.take : -1;
        job->slot = slot_for(p, job->seq);
        p->ring[job->slot] = job;
        p->held_units++;
        p->in_flight++;
        begin_morsel(p, job, grant);
    }
    return GAR_OK;
}

/* ---- parking ---- */

/* The consumer has taken nothing for a while: hold nothing that can be had again. What is made already stays. */
static void park(struct gar_pipeline *p) GAR_REQUIRES(gar_query_role)
{
    struct gar_query *query = p->query;
    for (int64_t i = 0; i < p->window_max; i++) {
        struct gar_job *job = p->ring[i];
        if (job != NULL && !job->is_done && !job->is_parked) {
            job->is_parked = job->branch->source->vtable->park != NULL &&
                             job->branch->source->vtable->park(job->branch->source, &job->unit);
        }
    }
    for (int64_t b = 0; b < p->branch_count; b++) {
        struct gar_source *source = p->branches[b].source;
        if (source->vtable->park != NULL) {
            (void)source->vtable->park(source, NULL);
        }
    }
    gar_pipeline_drop_workers(p, query->workers);
    gar_query_free_idle_jobs(query);
    /* A consumer that is merely slow pays for reading again: wait longer the next time. */
    query->idle_ns = gar_min_i64(2 * query->idle_ns, IDLE_NS_MAX);
}

static void on_idle(struct gar_timer *timer, struct gar_loop *loop)
{
    struct gar_query *query = CONTAINER(timer, struct gar_query, idle);
    gar_query_role_assert();
    struct gar_pipeline *p = query->current;
    query->is_idle_timed = false;
    if (p == NULL || query->is_failed || p->pace.blocked_ns == 0) {
        return;
    }
    const int64_t now = gar_clock_ns();
    const int64_t until = p->pace.blocked_ns + query->idle_ns;
    if (query->in_flight > 0 || now < until) {
        query->is_idle_timed = true;
        gar_loop_start_timer_on_loop(loop, timer, gar_max_i64(until, now + IDLE_NS));
        return;
    }
    park(p);
}

/* The consumer has no room. */
static void note_blocked(struct gar_pipeline *p) GAR_REQUIRES(gar_query_role)
{
    struct gar_query *query = p->query;
    if (p->pace.blocked_ns != 0) {
        return;
    }
    p->pace.blocked_ns = gar_clock_ns();
    if (!query->is_idle_timed) {
        query->is_idle_timed = true;
        query->idle.fire = on_idle;
        query->idle_ns = gar_max_i64(query->idle_ns, IDLE_NS);
        gar_loop_start_timer_on_loop(gar_runtime_loop(query->runtime), &query->idle,
                                     p->pace.blocked_ns + query->idle_ns);
    }
}

/* ---- steps ---- */

static void set_window(struct gar_pipeline *p) GAR_REQUIRES(gar_query_role)
{
    const bool is_inline = p->query->is_inline;
    p->pace.is_on = p->is_result && !is_inline && !p->query->is_greedy;
    p->window = is_inline || p->pace.is_on || p->range.take >= 0 ? 1 : p->window_max;
    if (!is_inline && !p->is_ordered && p->range.take < 0) {
        p->window = gar_max_i64(p->window, 2); /* while one unit is slow, others widen it */
    }
}

void gar_query_widen(struct gar_query *query)
{
    for (struct gar_pipeline *p = query->pipelines; p != NULL; p = p->all_next) {
        if (p->state == GAR_PIPELINE_RUNNING) {
            set_window(p);
        }
    }
    for (struct gar_job *job = gar_query_take_job(query); job != NULL;
         job = gar_query_take_job(query)) {
        give_to_pool(job);
    }
}

static enum gar_status start_pipeline(struct gar_pipeline *p, struct gar_error *err)
    GAR_REQUIRES(gar_query_role)
{
    p->window_max = (int64_t)p->query->workers * 3 + 1;
    p->pace.batch_rows = BATCH_ROWS_FIRST;
    set_window(p);
    p->ring = (struct gar_job **)gar_calloc(p->window_max, (int64_t)sizeof *p->ring);
    if (p->ring == NULL) {
        return gar_error_nomem(err, p->window_max * (int64_t)sizeof *p->ring);
    }
    GAR_TRY(gar_pipeline_make_workers(p, p->query->workers, err));
    if (p->sink->vtable->start != NULL) {
        GAR_TRY(p->sink->vtable->start(p->sink, p->query, p->query->workers, err));
    }
    p->state = GAR_PIPELINE_RUNNING;
    if (p->range.take == 0) {
        satisfy(p);
    }
    return GAR_OK;
}

/* Stages of the sink, one after the other. GAR_OK when it is complete. */
static enum gar_status finalize(struct gar_pipeline *p, struct gar_error *err)
    GAR_REQUIRES(gar_query_role)
{
    for (;;) {
        if (p->in_flight > 0) {
            return GAR_PENDING;
        }
        if (p->is_stage_begun) {
            p->is_stage_begun = false;
            p->stage++;
        }
        int64_t items = 0;
        if (p->sink->vtable->stage != NULL) {
            const enum gar_status status =
                p->sink->vtable->stage(p->sink, p->query, p->stage, &items, err);
            if (status != GAR_OK) {
                return status;
            }
        }
        if (items == 0) {
            p->state = GAR_PIPELINE_DONE;
            return GAR_OK;
        }
        p->is_stage_begun = true;
        for (int64_t i = 0; i < items; i++) {
            struct gar_job *job = NULL;
            GAR_TRY(new_job(p->query, GAR_JOB_ITEM, &job, err));
            job->pipeline = p;
            job->stage = p->stage;
            job->item = i;
            p->in_flight++;
            submit_job(p->query, job);
        }
    }
}

/* GAR_OK when the pipeline is done, GAR_PENDING when something has to happen first. */
static enum gar_status advance_pipeline(struct gar_pipeline *p, struct gar_error *err)
    GAR_REQUIRES(gar_query_role)
{
    gar_profile_set_pipeline(p->query->profile, p->number);
    if (p->state == GAR_PIPELINE_WAITING) {
        GAR_TRY(start_pipeline(p, err));
    }
    if (p->state == GAR_PIPELINE_RUNNING) {
        const enum gar_status drained = drain(p, err);
        GAR_TRY(drained);
        if (drained == GAR_OK) {
            GAR_TRY(dispatch(p, err));
        } else if (p->is_result) {
            note_blocked(p);
        }
        const bool is_all_given = p->is_satisfied || p->branch >= p->branch_count;
        if (!is_all_given || p->in_flight > 0 || p->held_units > 0) {
            return GAR_PENDING;
        }
        gar_pipeline_release(p, p->branch_count);
        p->state = GAR_PIPELINE_FINALIZING;
    }
    return p->state == GAR_PIPELINE_FINALIZING ? finalize(p, err) : GAR_OK;
}

/* A pipeline, and those that read from it while it runs: these first, because what they take makes room in it. */
static enum gar_status advance_stream(struct gar_pipeline *p, struct gar_error *err)
    GAR_REQUIRES(gar_query_role)
{
    if (p->is_streaming && p->next != NULL) {
        GAR_TRY(advance_stream(p->next, err));
        if (p->next->is_satisfied && !p->is_satisfied) {
            satisfy(p);
        }
    }
    return advance_pipeline(p, err);
}

static enum gar_status run_free_parts(void *context, int32_t worker, struct gar_error *err)
{
    (void)worker;
    (void)err;
    struct gar_query *query = (struct gar_query *)context;
    /* The job that runs this is not in any list. */
    gar_query_free_parts(query);
    return GAR_OK;
}

static void parts_are_free(void *context, struct gar_query *query, enum gar_status status,
                           const struct gar_error *err)
{
    (void)context;
    (void)status;
    (void)err;
    query->has_write = false;
}

/* Nothing is at work any more: free all, then tell the consumer. */
static void finish(struct gar_query *query) GAR_REQUIRES(gar_query_role)
{
    if (query->has_write && !query->is_inline) {
        /* Taking back what was staged is IO. */
        struct gar_error err = GAR_ERROR_INIT;
        const struct gar_work work = {.op = -1,
                                      .is_io = true,
                                      .run = run_free_parts,
                                      .done = parts_are_free,
                                      .context = query};
        if (gar_query_call(query, &work, &err) >= 0) {
            return;
        }
    }
    gar_query_free_parts(query);
    query->is_finished = true;
    gar_profile_end(query->profile, query->status); /* the consumer finds all of it */
    if (query->is_inline) {
        gar_profile_set_told(query->profile);
        return;
    }
    gar_cancel_remove_waker(query->cancel, &query->waker);
    gar_loop_stop_timer_on_loop(gar_runtime_loop(query->runtime), &query->deadline);
    gar_watchdog_stop(query);
    gar_loop_stop_timer_on_loop(gar_runtime_loop(query->runtime), &query->idle);
    gar_runtime_leave(query->runtime); /* whoever sees the end finds the query gone */
    gar_stream_end(query->stream, query->status, query->is_failed ? &query->error : NULL);
    query->stream = NULL;
    gar_profile_set_told(query->profile); /* whoever sees it finds the end mark */
    gar_query_unref(query);
}

static void advance(struct gar_query *query)
{
    if (query->is_finished || query->is_advancing) {
        query->advance_again = query->is_advancing;
        return;
    }
    query->is_advancing = true;
    do {
        query->advance_again = false;
        struct gar_error err = GAR_ERROR_INIT;
        if (!query->is_failed && query->current != NULL && gar_cancel_requested(query->cancel)) {
            gar_query_fail(query, gar_cancel_status(query->cancel, &err), &err);
        }
        while (!query->is_failed && query->current != NULL) {
            struct gar_pipeline *p = query->current;
            const enum gar_status status = advance_stream(p, &err);
            if (status < 0) {
                gar_query_fail(query, status, &err);
                break;
            }
            if (query->current != p) { /* something has to come before it */
                continue;
            }
            if (status != GAR_OK) {
                break;
            }
            query->current = p->next;
        }
    } while (query->advance_again);
    query->is_advancing = false;
    if (query->in_flight == 0 && (query->is_failed || query->current == NULL)) {
        finish(query);
    }
}

void gar_query_advance(struct gar_query *query)
{
    gar_query_role_assert();
    advance(query);
}
