/* SPDX-License-Identifier: Apache-2.0 */
/* User functions that a pool of worker processes performs.
 *
 * All pools of a query are one acquisition, made before anything starts: at once, or waited for with the query in the
 * loop. A pool starts with its pipeline; the query counts it as work that is under way until it has ended, so that no
 * process or grant outlives the query. */
#include <string.h>

#include "actors/failure.h"
#include "actors/pool.h"
#include "actors/seats.h"
#include "base/alloc.h"
#include "base/log.h"
#include "exec/exec_priv.h"
#include "exec/performer.h"
#include "resources/ledger.h"

/* Works of so few rows are joined on the loop. */
#define JOIN_HERE_ROWS 256

#define CONTAINER(pointer, type, member) \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

struct gar_performer {
    struct gar_performer_options options;
    const struct gar_actor_spec *spec; /* borrowed: the udf's context */
    struct gar_actor_group *group;     /* borrowed */
    struct gar_performer *next;        /* of the group */
    struct gar_schema *args;           /* owned reference */
    struct gar_schema *result;         /* owned reference */
    int32_t count;                     /* actors granted */
    /* role */
    struct gar_actor_pool *pool;    /* until on_ended */
    struct gar_pool_counts *counts; /* borrowed from the profile */
    struct task *first;             /* waiting for the pool, or for room in it */
    struct task *last;
    bool is_started; /* the pool is */
    bool is_wanted;  /* the pipeline has begun */
    bool is_over;    /* no more works come */
    bool is_ended;
    bool is_stopped;
};

struct task {
    struct gar_actor_call call;
    struct gar_performer *performer;
    struct gar_udf_work *work;
    struct gar_batch *whole; /* owned; the parts as one */
    struct task *next;
};

/* The pools of a query. */
struct gar_actor_group {
    struct gar_query *query; /* borrowed; counts the pending ticket and the pools */
    struct gar_performer *first;
    struct gar_performer **tail;
    int64_t count;
    struct gar_ledger_ticket ticket;
    struct gar_message granted;
    enum gar_status status; /* of the ticket */
    bool is_pending;
    bool is_cancelled;
};

/* ---- what is to run -------------------------------------------------------------------------------------------------- */

void gar_actor_spec_free(void *object)
{
    struct gar_actor_spec *spec = (struct gar_actor_spec *)object;
    if (spec == NULL) {
        return;
    }
    for (int64_t i = 0; spec->argv != NULL && spec->argv[i] != NULL; i++) {
        gar_free(spec->argv[i]);
    }
    gar_free(spec->argv);
    gar_free(spec->code);
    gar_free(spec);
}

static enum gar_status copy_argv(const char *const *argv, struct gar_actor_spec *spec,
                                 struct gar_error *err)
{
    int64_t count = 0;
    while (argv != NULL && argv[count] != NULL) {
        count++;
    }
    if (count == 0) {
        return gar_error_set(err, GAR_ERR_VALUE, "no worker program given");
    }
    spec->argv = (char **)gar_calloc(count + 1, (int64_t)sizeof(char *));
    for (int64_t i = 0; spec->argv != NULL && i < count; i++) {
        spec->argv[i] = gar_strdup(argv[i]);
        if (spec->argv[i] == NULL) {
            return gar_error_nomem(err, (int64_t)strlen(argv[i]));
        }
    }
    return spec->argv != NULL ? GAR_OK : gar_error_nomem(err, count * 8);
}

enum gar_status gar_actor_spec_new(const struct gar_actor_function *function,
                                   struct gar_actor_spec **out, struct gar_error *err)
{
    GAR_TRY(gar_resource_request_check(&function->request, err));
    if (function->count < 0 || function->count > GAR_ACTORS_MAX || function->max_retries < 0 ||
        function->code_bytes < 0 || function->on_error < 0 ||
        function->on_error > (int32_t)GAR_ACTOR_LOG) {
        return gar_error_set(
            err, GAR_ERR_VALUE,
            "an option of the actor function is out of range: %d actors, %d retries",
            (int)function->count, (int)function->max_retries);
    }
    struct gar_actor_spec *spec = (struct gar_actor_spec *)gar_calloc(1, (int64_t)sizeof *spec);
    if (spec == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *spec);
    }
    spec->count = (int32_t)gar_max_i64(function->count, 1);
    spec->takes_fewer = function->takes_fewer;
    spec->inherits_devices = function->inherits_devices;
    spec->is_spread = function->is_spread;
    spec->request = function->request;
    spec->policy =
        (struct gar_actor_policy){.on_error = (enum gar_actor_on_error)function->on_error,
                                  .grows = function->takes_fewer,
                                  .max_retries = function->max_retries};
    spec->code_bytes = function->code_bytes;
    enum gar_status status = copy_argv(function->argv, spec, err);
    if (status >= 0 && spec->code_bytes > 0) {
        spec->code = gar_malloc(spec->code_bytes);
        status = spec->code != NULL ? GAR_OK : gar_error_nomem(err, spec->code_bytes);
    }
    if (status < 0) {
        gar_actor_spec_free(spec);
        return status;
    }
    if (spec->code_bytes > 0) {
        memcpy(spec->code, function->code, (size_t)spec->code_bytes);
    }
    *out = spec;
    return GAR_OK;
}

/* ---- works ------------------------------------------------------------------------------------------------------------- */

static void finish_task(struct task *task, enum gar_status status)
{
    struct gar_udf_work *work = task->work;
    gar_batch_unref(task->whole);
    gar_batch_unref(task->call.batch);
    gar_free(task);
    work->done(work, status);
}

static void note_figures(const struct gar_performer *performer)
{
    struct gar_actor_pool_figures figures;
    struct gar_pool_counts *counts = performer->counts;
    gar_actor_pool_figures_on_loop(performer->pool, &figures);
    __atomic_store_n(&counts->actors, figures.actors, __ATOMIC_RELAXED);
    __atomic_store_n(&counts->ready, figures.ready, __ATOMIC_RELAXED);
    __atomic_store_n(&counts->busy, figures.busy, __ATOMIC_RELAXED);
    __atomic_store_n(&counts->restarts, figures.restarts, __ATOMIC_RELAXED);
    __atomic_store_n(&counts->rows, figures.rows, __ATOMIC_RELAXED);
}

static void call_is_done(struct gar_actor_call *call)
{
    gar_query_role_assert();
    struct task *task = CONTAINER(call, struct task, call);
    struct gar_performer *performer = task->performer;
    struct gar_query *query = performer->options.query;
    struct gar_error err = GAR_ERROR_INIT;
    enum gar_status status = call->status;
    note_figures(performer);
    task->call.batch = NULL; /* the pool's */
    if (status >= 0) {
        struct gar_column *column = gar_column_ref(call->result->columns[0]);
        status = gar_performer_output(&performer->options, task->whole, column, NULL,
                                      &task->work->output, &err);
        gar_batch_unref(call->result);
        if (status < 0) {
            gar_query_fail(query, status, &err);
        }
    }
    finish_task(task, status);
    gar_query_advance(query);
}

/* As much as the pool takes. */
static void feed(struct gar_performer *performer)
{
    while (performer->is_started && !performer->is_ended && performer->first != NULL) {
        struct task *task = performer->first;
        const enum gar_status status = gar_actor_pool_submit_on_loop(performer->pool, &task->call);
        if (status != GAR_OK) {
            return; /* no room, or its end is near */
        }
        performer->first = task->next;
        if (performer->first == NULL) {
            performer->last = NULL;
        }
    }
}

static void drop_tasks(struct gar_performer *performer)
{
    while (performer->first != NULL) {
        struct task *task = performer->first;
        performer->first = task->next;
        finish_task(task, GAR_ERR_CANCELLED);
    }
    performer->last = NULL;
}

static enum gar_status run_join(void *context, int32_t worker, struct gar_error *err)
{
    (void)worker;
    struct task *task = (struct task *)context;
    struct gar_performer *performer = task->performer;
    GAR_CANCEL_CHECK(performer->options.query->cancel, err);
    GAR_TRY(gar_performer_join(&performer->options, task->work, &task->whole, err));
    return gar_performer_args(&performer->options, performer->args, task->whole, &task->call.batch,
                              err);
}

static void enqueue(struct task *task)
{
    struct gar_performer *performer = task->performer;
    if (performer->last != NULL) {
        performer->last->next = task;
    } else {
        performer->first = task;
    }
    performer->last = task;
    feed(performer);
}

static void join_is_done(void *context, struct gar_query *query, enum gar_status status,
                         const struct gar_error *err)
{
    (void)query;
    (void)err;
    struct task *task = (struct task *)context;
    const struct gar_performer *performer = task->performer;
    if (status < 0 || performer->is_stopped || performer->is_ended) {
        finish_task(task, status < 0 ? status : GAR_ERR_CANCELLED);
        return;
    }
    enqueue(task);
}

/* Is making one batch of its parts less work than asking another thread to? */
static bool is_joined(const struct gar_udf_work *work)
{
    return work->part_count == 1 ? work->parts[0]->selection == NULL : work->rows <= JOIN_HERE_ROWS;
}

static enum gar_status submit(struct gar_performer *performer, int32_t op,
                              struct gar_udf_work *work, struct gar_error *err)
{
    struct task *task = (struct task *)gar_calloc(1, (int64_t)sizeof *task);
    if (task == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *task);
    }
    task->performer = performer;
    task->work = work;
    task->call.first_row = work->first_row;
    task->call.on_done = call_is_done;
    if (is_joined(work) && !performer->is_stopped && !performer->is_ended) {
        const enum gar_status joined = run_join(task, 0, err);
        if (joined < 0) {
            gar_batch_unref(task->whole);
            gar_free(task);
            return joined;
        }
        enqueue(task);
        return GAR_OK;
    }
    const struct gar_work what = {.op = op, .run = run_join, .done = join_is_done, .context = task};
    const enum gar_status status = gar_query_call(performer->options.query, &what, err);
    if (status < 0) {
        gar_free(task);
    }
    return status;
}

/* ---- the pool's life ------------------------------------------------------------------------------------------------------ */

static void on_room(void *context)
{
    feed((struct gar_performer *)context);
}

static void on_output(void *context, int32_t actor, bool is_stderr, const char *text, int64_t bytes)
{
    const struct gar_performer *performer = (const struct gar_performer *)context;
    (void)is_stderr;
    for (int64_t at = 0; at < bytes;) {
        const char *end = memchr(text + at, '\n', (size_t)(bytes - at));
        const int64_t line = end != NULL ? end - (text + at) : bytes - at;
        if (line > 0) {
            gar_log(GAR_LOG_WARNING, "%s, actor %d: %.*s", performer->options.udf->name, (int)actor,
                    (int)gar_min_i64(line, 2000), text + at);
        }
        at += line + 1;
    }
}

static void on_nulled(void *context, const struct gar_actor_failure *failure)
{
    const struct gar_performer *performer = (const struct gar_performer *)context;
    gar_log(GAR_LOG_WARNING, "UDF '%s' failed on rows %lld to %lld, which are null now: %s: %s",
            performer->options.udf->name, (long long)failure->first_row,
            (long long)(failure->first_row + failure->rows - 1), failure->type, failure->text);
}

static void on_ended(void *context, enum gar_status status, const struct gar_error *err,
                     const struct gar_actor_failure *failure)
{
    gar_query_role_assert();
    struct gar_performer *performer = (struct gar_performer *)context;
    struct gar_query *query = performer->options.query;
    performer->is_ended = true;
    performer->pool = NULL;
    __atomic_store_n(&performer->counts->ready, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&performer->counts->busy, 0, __ATOMIC_RELAXED);
    if (status < 0 && !performer->is_stopped) {
        struct gar_error error = *err;
        error.position = gar_actor_failure_keep(failure);
        gar_query_fail(query, status, &error);
    }
    drop_tasks(performer);
    query->in_flight--;
    gar_query_advance(query);
}

static enum gar_status make_pool(struct gar_performer *performer, struct gar_grant **grants,
                                 int32_t count, struct gar_error *err)
{
    static const struct gar_actor_listener listener = {
        .on_room = on_room, .on_output = on_output, .on_nulled = on_nulled, .on_ended = on_ended};
    const struct gar_actor_spec *spec = performer->spec;
    struct gar_actor_seats seats = {.count = 0};
    GAR_TRY(gar_actor_seats_new(grants, count, spec->inherits_devices, &seats, err));
    const struct gar_actor_pool_options options = {
        .runtime = performer->options.query->runtime,
        .account = gar_profile_account(performer->options.query->profile),
        .limit_bytes = gar_max_i64(spec->request.memory_bytes, 0),
        .name = performer->options.udf->name,
        .argv = (const char *const *)spec->argv,
        .code = spec->code,
        .code_bytes = spec->code_bytes,
        .input = performer->args,
        .output = performer->result,
        .seats = seats.seats,
        .count = count,
        .policy = spec->policy,
        .listener = &listener,
        .context = performer,
    };
    const enum gar_status status = gar_actor_pool_new(&options, &performer->pool, err);
    gar_actor_seats_destroy(&seats, status < 0);
    performer->count = count;
    return status;
}

/* role: pool and pipeline are there. */
static void begin_pool(struct gar_performer *performer)
{
    if (!performer->is_wanted || performer->is_started || performer->is_stopped ||
        performer->pool == NULL) {
        return;
    }
    performer->is_started = true;
    performer->options.query->in_flight++;
    gar_actor_pool_start_on_loop(performer->pool);
    if (performer->is_over && !performer->is_ended) {
        gar_actor_pool_end_on_loop(performer->pool);
    }
    feed(performer);
    if (!performer->is_ended) {
        note_figures(performer);
    }
}

static enum gar_status start(struct gar_performer *performer, struct gar_error *err)
{
    (void)err;
    performer->is_wanted = true;
    begin_pool(performer);
    return GAR_OK;
}

static void stop(struct gar_performer *performer)
{
    struct gar_actor_group *group = performer->group;
    performer->is_stopped = true;
    if (group->is_pending && !group->is_cancelled) {
        group->is_cancelled = true;
        (void)gar_ledger_cancel(&group->ticket);
    }
    if (performer->is_started && !performer->is_ended) {
        gar_actor_pool_cancel_on_loop(performer->pool, GAR_ERR_CANCELLED, NULL);
    }
    drop_tasks(performer);
}

static enum gar_status end(struct gar_performer *performer, int32_t op, struct gar_error *err)
{
    (void)op;
    (void)err;
    if (!performer->is_over) {
        performer->is_over = true;
        if (performer->is_started && !performer->is_ended) {
            gar_actor_pool_end_on_loop(performer->pool);
        }
    }
    return performer->is_ended ? GAR_OK : GAR_PENDING;
}

static int32_t width(const struct gar_performer *performer)
{
    return 2 * (int32_t)gar_max_i64(performer->count, 1) + 2;
}

static void free_performer(struct gar_performer *performer)
{
    if (performer == NULL) {
        return;
    }
    if (performer->pool != NULL && !performer->is_started) {
        gar_actor_pool_drop(performer->pool);
    }
    gar_schema_unref(performer->args);
    gar_schema_unref(performer->result);
    gar_free(performer);
}

/* ---- the pools of a query ------------------------------------------------------------------------------------------------- */

static void free_group(void *object)
{
    struct gar_actor_group *group = (struct gar_actor_group *)object;
    gar_ledger_ticket_destroy(&group->ticket);
    gar_free(group);
}

static enum gar_status join_group(struct gar_query *query, struct gar_performer *performer,
                                  struct gar_error *err)
{
    struct gar_actor_group *group = query->actors;
    if (group == NULL) {
        group = (struct gar_actor_group *)gar_calloc(1, (int64_t)sizeof *group);
        if (group == NULL) {
            return gar_error_nomem(err, (int64_t)sizeof *group);
        }
        group->query = query;
        group->tail = &group->first;
        GAR_TRY(gar_query_own(query, group, free_group, err));
        query->actors = group;
    }
    performer->group = group;
    *group->tail = performer;
    group->tail = &performer->next;
    group->count++;
    return GAR_OK;
}

static enum gar_status result_schema(const struct gar_udf *udf, struct gar_schema **out,
                                     struct gar_error *err)
{
    char name[] = "result";
    const struct gar_field field = {.name = name, .type = udf->type, .nullable = true};
    return gar_schema_new(&field, 1, false, out, err);
}

static enum gar_status open(const struct gar_performer_options *options, struct gar_performer **out,
                            struct gar_error *err)
{
    struct gar_performer *performer =
        (struct gar_performer *)gar_calloc(1, (int64_t)sizeof *performer);
    if (performer == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *performer);
    }
    performer->options = *options;
    performer->spec = (const struct gar_actor_spec *)options->udf->context;
    performer->count = performer->spec->count;
    performer->counts = gar_profile_new_pool(options->query->profile, options->udf->name);
    if (performer->counts == NULL) {
        gar_free(performer);
        return gar_error_nomem(err, (int64_t)sizeof *performer->counts);
    }
    enum gar_status status =
        gar_runtime_start(options->query->runtime, GAR_RUNTIME_ALL | GAR_RUNTIME_SPAWN, err);
    if (status >= 0) {
        status = gar_schema_new(options->input->fields + options->kept,
                                options->input->count - options->kept, true, &performer->args, err);
    }
    if (status >= 0) {
        status = result_schema(options->udf, &performer->result, err);
    }
    if (status >= 0) {
        status = join_group(options->query, performer, err);
    }
    if (status < 0) {
        free_performer(performer);
        return status;
    }
    *out = performer;
    return GAR_OK;
}

/* The ticket was served: a pool for each performer. */
static enum gar_status make_pools(struct gar_actor_group *group, struct gar_error *err)
{
    int64_t at = 0;
    int64_t i = 0;
    for (struct gar_performer *p = group->first; p != NULL; p = p->next, i++) {
        const int64_t count = group->ticket.counts[i];
        GAR_TRY(make_pool(p, group->ticket.grants + at, (int32_t)count, err));
        at += count;
    }
    return GAR_OK;
}

static void on_granted_message(struct gar_message *message, struct gar_loop *loop)
{
    (void)loop;
    gar_query_role_assert();
    struct gar_actor_group *group = CONTAINER(message, struct gar_actor_group, granted);
    struct gar_query *query = group->query;
    struct gar_error err = group->ticket.err;
    enum gar_status status = group->status;
    group->is_pending = false;
    if (status >= 0) {
        status = make_pools(group, &err);
    }
    if (status < 0 && !group->is_cancelled) {
        gar_query_fail(query, status, &err);
    }
    for (struct gar_performer *p = group->first; p != NULL; p = p->next) {
        begin_pool(p);
    }
    query->in_flight--;
    gar_query_advance(query);
}

/* On any thread. */
static void on_granted(struct gar_ledger_ticket *ticket, enum gar_status status)
{
    struct gar_actor_group *group = (struct gar_actor_group *)ticket->context;
    struct gar_loop *loop = gar_runtime_loop(group->query->runtime);
    group->status = status;
    (void)gar_loop_post(loop, &group->granted);
}

static struct gar_ledger_want want_of(const struct gar_actor_spec *spec, const char *name)
{
    return (struct gar_ledger_want){.request = spec->request,
                                    .count = spec->count,
                                    .count_min = spec->takes_fewer ? 1 : 0,
                                    .strategy = spec->is_spread ? GAR_GPU_SPREAD : GAR_GPU_PACK,
                                    .holder = name};
}

enum gar_status gar_query_acquire(struct gar_query *query, struct gar_error *err)
{
    struct gar_actor_group *group = query->actors;
    if (group == NULL) {
        return GAR_OK;
    }
    struct gar_ledger *ledger = gar_ledger_process(err);
    struct gar_ledger_want *wants =
        (struct gar_ledger_want *)gar_calloc(group->count, (int64_t)sizeof *wants);
    if (ledger == NULL || wants == NULL) {
        gar_free(wants);
        return ledger == NULL ? GAR_ERR_NOMEM
                              : gar_error_nomem(err, group->count * (int64_t)sizeof *wants);
    }
    int64_t i = 0;
    for (const struct gar_performer *p = group->first; p != NULL; p = p->next, i++) {
        wants[i] = want_of(p->spec, p->options.udf->name);
    }
    group->ticket.on_done = on_granted;
    group->ticket.context = group;
    group->granted.handle = on_granted_message;
    group->is_pending = true;
    query->in_flight++; /* nobody else knows the query yet */
    const enum gar_status status =
        gar_ledger_acquire(ledger, wants, group->count, &group->ticket, err);
    gar_free(wants);
    if (status == GAR_PENDING) {
        return GAR_OK;
    }
    group->is_pending = false;
    query->in_flight--;
    return status < 0 ? status : make_pools(group, err);
}

/* ---- explain ---------------------------------------------------------------------------------------------------------- */

static const struct gar_actor_spec *spec_of(const struct gar_plan *plan)
{
    return plan->kind == GAR_PLAN_UDF && plan->udf->kind == &gar_udf_in_actors
               ? (const struct gar_actor_spec *)plan->udf->context
               : NULL;
}

static int64_t count_pools(const struct gar_plan *plan)
{
    int64_t count = spec_of(plan) != NULL ? 1 : 0;
    for (int64_t i = 0; i < plan->input_count; i++) {
        count += count_pools(plan->inputs[i]);
    }
    return count;
}

/* Inputs first, as the functions are printed. */
static void list_wants(const struct gar_plan *plan, struct gar_ledger_want *wants, int64_t *count)
{
    for (int64_t i = 0; i < plan->input_count; i++) {
        list_wants(plan->inputs[i], wants, count);
    }
    const struct gar_actor_spec *spec = spec_of(plan);
    if (spec != NULL) {
        wants[(*count)++] = want_of(spec, plan->udf->name);
    }
}

struct listing {
    struct gar_ledger *ledger;
    const struct gar_ledger_want *wants;
    const struct gar_placement *placement; /* NULL: it would wait, or cannot be */
    int64_t pool;
    struct gar_strbuf *out;
};

static void print_actors(const struct listing *listing, const struct gar_ledger_want *want)
{
    const struct gar_device_list *devices = gar_ledger_devices(listing->ledger);
    const int64_t each = gar_request_device_count(&want->request);
    for (int64_t a = 0;
         listing->placement != NULL && each > 0 && a < listing->placement->counts[listing->pool];
         a++) {
        const int32_t *taken =
            gar_placement_devices(listing->placement, listing->wants, listing->pool, a);
        gar_strbuf_printf(listing->out, "  actor %lld: device ", (long long)a);
        for (int64_t d = 0; d < each; d++) {
            gar_strbuf_printf(listing->out, "%s%s", d == 0 ? "" : ",",
                              devices->devices[taken[d]].name);
        }
        gar_strbuf_append(listing->out, "\n");
    }
}

static void print_functions(const struct gar_plan *plan, struct listing *listing)
{
    for (int64_t i = 0; i < plan->input_count; i++) {
        print_functions(plan->inputs[i], listing);
    }
    if (plan->kind != GAR_PLAN_UDF) {
        return;
    }
    struct gar_strbuf *out = listing->out;
    const struct gar_actor_spec *spec = spec_of(plan);
    gar_strbuf_printf(out, "%s: %s", plan->udf->name, plan->udf->kind->name);
    if (spec != NULL) {
        char text[128];
        gar_strbuf_printf(out, ", %d actor%s, each asks for %s", (int)spec->count,
                          spec->count == 1 ? "" : "s",
                          gar_resource_request_text(&spec->request, text, (int64_t)sizeof text));
    } else if (plan->udf->max_calls > 0) {
        gar_strbuf_printf(out, ", %d call%s at once", (int)plan->udf->max_calls,
                          plan->udf->max_calls == 1 ? "" : "s");
    }
    if (plan->udf->batch_rows > 0) {
        gar_strbuf_printf(out, ", batches of %lld rows", (long long)plan->udf->batch_rows);
    }
    gar_strbuf_append(out, "\n");
    if (spec != NULL) {
        print_actors(listing, &listing->wants[listing->pool]);
        listing->pool++;
    }
}

enum gar_status gar_exec_explain_resources(const struct gar_plan *plan, struct gar_strbuf *out,
                                           struct gar_error *err)
{
    if (!gar_plan_runs_udf(plan)) {
        gar_strbuf_append(out, "no user functions: nothing is booked\n");
        return GAR_OK;
    }
    const int64_t pools = count_pools(plan);
    struct gar_ledger *ledger = gar_ledger_process(err);
    struct gar_ledger_want *wants =
        (struct gar_ledger_want *)gar_calloc(pools + 1, (int64_t)sizeof *wants);
    if (ledger == NULL || wants == NULL) {
        gar_free(wants);
        return ledger == NULL ? GAR_ERR_NOMEM
                              : gar_error_nomem(err, pools * (int64_t)sizeof *wants);
    }
    int64_t count = 0;
    struct gar_placement placement = {.counts = NULL};
    struct gar_error why = GAR_ERROR_INIT;
    list_wants(plan, wants, &count);
    const enum gar_status seated =
        count > 0 ? gar_ledger_preview(ledger, wants, count, false, &placement, &why) : GAR_OK;
    const bool is_placed = seated == GAR_OK && count > 0;
    struct listing listing = {
        .ledger = ledger, .wants = wants, .placement = is_placed ? &placement : NULL, .out = out};
    print_functions(plan, &listing);
    if (seated == GAR_PENDING) {
        gar_strbuf_append(out, "others hold what is asked: the query would wait for it\n");
    } else if (seated < 0) {
        gar_strbuf_printf(out, "it cannot run: %s\n", why.message);
    }
    if (is_placed) {
        gar_placement_destroy(&placement);
    }
    gar_free(wants);
    return GAR_OK;
}

const struct gar_udf_kind gar_udf_in_actors = {.name = "in worker processes",
                                               .open = open,
                                               .start = start,
                                               .stop = stop,
                                               .width = width,
                                               .submit = submit,
                                               .end = end,
                                               .free = free_performer};
