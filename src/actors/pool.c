/* SPDX-License-Identifier: Apache-2.0 */
/* The pool: the roster decides, links are its world. Results are adopted here: small ones are copied, larger ones stay in
 * the arena under a lease; both are checked, on a compute task when there is much to check. */
#include "actors/pool.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "actors/link.h"
#include "actors/roster.h"
#include "actors/setup.h"
#include "arrow/abi.h"
#include "base/alloc.h"
#include "os/clock.h"

/* Results up to this are copied out of the arena. */
#define COPY_BYTES INT64_C(16384)
/* Results with texts or lists, whose every row is looked at, are checked on the loop up to this. */
#define SMALL_BYTES (INT64_C(64) << 10)
/* A worker has so many leases at most; more results are copied. */
#define LEASES_MAX (GAR_WIRE_SLOTS / 2)
/* While calls are open the workers' memory is looked at this often. */
#define SAMPLE_NS (250 * GAR_NS_PER_MS)
/* A worker whose memory found no room in the query's limit so often in a row ends the pool: others may spill meanwhile. */
#define HOMELESS_MAX 4
/* Address space of all arenas of a pool together. */
#define WINDOWS_BYTES (INT64_C(1) << 44)
#define WINDOW_MAX    (INT64_C(1) << 36)

struct actor {
    struct gar_actor_pool *pool;
    struct gar_link *link;        /* owned; NULL: no process */
    struct gar_message no_memory; /* not even for a link */
    struct gar_actor_seat seat;
    char *device;               /* owned copy */
    char **environment;         /* owned copy */
    struct gar_ticket resident; /* its process's own memory, as last seen */
    int32_t homeless; /* looks in a row at which that did not fit into the query's limit */
    bool is_aside;
};

struct gar_call_work {
    struct gar_roster_call roster;
    struct gar_actor_pool *pool;
    struct gar_actor_call *user;
};

struct gar_actor_pool {
    struct gar_link_common common;
    struct gar_loop *loop;
    char *name;
    char **argv;        /* owned copies, as the next */
    char **environment; /* the whole */
    struct gar_strbuf setup;
    struct gar_schema *input;
    struct gar_schema *output;
    struct ArrowSchema output_abi;
    struct gar_wire_layout *input_layout;
    struct gar_wire_layout *output_layout;
    struct gar_actor_listener listener;
    void *context;
    struct gar_roster *roster;
    struct gar_timer alarm;
    struct gar_timer sample;
    int64_t open_calls;
    int64_t limit_bytes; /* own memory of one worker; 0: none */
    bool is_entered;
    bool is_plain;                 /* results have values of fixed width only */
    enum gar_status cancel_status; /* < 0: cancelled for this reason */
    struct gar_error cancel_error;
    int32_t count;
    struct actor actors[];
};

/* A result on its way out of the arena. */
struct adoption {
    struct gar_task task;
    struct gar_message message;
    struct gar_actor_pool *pool;
    struct gar_exchange *exchange; /* owned reference */
    int32_t actor;
    struct gar_roster_part *part;
    struct gar_wire_message answer;
    enum gar_status status;
    bool is_malformed; /* the worker's fault, not the user's */
    struct gar_error error;
    struct gar_batch *batch;
};

static const struct gar_roster_world world;
static const struct gar_link_listener link_listener;

/* ---- making ---- */

static char **copy_list(const char *const *list)
{
    int64_t count = 0;
    while (list != NULL && list[count] != NULL) {
        count++;
    }
    char **copy = gar_calloc(count + 1, (int64_t)sizeof copy[0]);
    for (int64_t i = 0; copy != NULL && i < count; i++) {
        copy[i] = gar_strdup(list[i]);
        if (copy[i] == NULL) {
            for (int64_t k = 0; k < i; k++) {
                gar_free(copy[k]);
            }
            gar_free(copy);
            return NULL;
        }
    }
    return copy;
}

static void free_list(char **list)
{
    for (int64_t i = 0; list != NULL && list[i] != NULL; i++) {
        gar_free(list[i]);
    }
    gar_free(list);
}

/* Without the grants. */
static void free_pool(struct gar_actor_pool *pool)
{
    for (int32_t i = 0; i < pool->count; i++) {
        gar_free(pool->actors[i].device);
        free_list(pool->actors[i].environment);
    }
    gar_roster_free(pool->roster);
    gar_free(pool->input_layout);
    gar_free(pool->output_layout);
    if (pool->output_abi.release != NULL) {
        pool->output_abi.release(&pool->output_abi);
    }
    gar_schema_unref(pool->input);
    gar_schema_unref(pool->output);
    gar_strbuf_destroy(&pool->setup);
    free_list(pool->argv);
    free_list(pool->environment);
    gar_account_unref(pool->common.account);
    gar_free(pool->name);
    gar_free(pool);
}

static void release_grants(struct gar_actor_pool *pool)
{
    for (int32_t i = 0; i < pool->count; i++) {
        struct gar_actor_seat *seat = &pool->actors[i].seat;
        if (seat->release != NULL) {
            seat->release(seat->grant);
            seat->release = NULL;
        }
    }
}

/* Schemas, layouts and the setup block. */
static enum gar_status prepare_data(struct gar_actor_pool *pool,
                                    const struct gar_actor_pool_options *options,
                                    struct gar_error *err)
{
    struct ArrowSchema input;
    pool->input = gar_schema_ref(options->input);
    pool->output = gar_schema_ref(options->output);
    GAR_TRY(gar_schema_export(options->output, GAR_TEXT_LARGE_OFFSETS, &pool->output_abi, err));
    GAR_TRY(gar_wire_layout_new(&pool->output_abi, &pool->output_layout, err));
    for (int32_t i = 1; i < pool->output_layout->count; i++) {
        const enum gar_wire_node_kind kind = pool->output_layout->nodes[i].kind;
        pool->is_plain &= kind == GAR_WIRE_NODE_FIXED || kind == GAR_WIRE_NODE_BITS;
    }
    GAR_TRY(gar_schema_export(options->input, GAR_TEXT_LARGE_OFFSETS, &input, err));
    const enum gar_status status = gar_wire_layout_new(&input, &pool->input_layout, err);
    if (status >= 0) {
        const struct gar_setup_options setup = {.count = options->count,
                                                .name = pool->name,
                                                .code = options->code,
                                                .code_bytes = options->code_bytes,
                                                .input = &input,
                                                .output = &pool->output_abi};
        gar_setup_write(&setup, &pool->setup);
    }
    input.release(&input);
    GAR_TRY(status);
    return pool->setup.failed ? gar_error_nomem(err, options->code_bytes) : GAR_OK;
}

static enum gar_status prepare_lists(struct gar_actor_pool *pool,
                                     const struct gar_actor_pool_options *options,
                                     struct gar_error *err)
{
    union {
        char *const *plain;
        const char *const *constant;
    } own = {.plain = environ};
    const char *const *const lists[] = {own.constant, options->environment};
    const char **merged = gar_environment_merge(lists, 2);
    pool->environment = merged == NULL ? NULL : copy_list(merged);
    gar_free(merged);
    pool->argv = copy_list(options->argv);
    if (pool->environment == NULL || pool->argv == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof lists);
    }
    for (int32_t i = 0; i < pool->count; i++) {
        struct actor *actor = &pool->actors[i];
        const struct gar_actor_seat *seat = &options->seats[i];
        actor->pool = pool;
        actor->environment = copy_list(seat->environment);
        actor->device = seat->device != NULL ? gar_strdup(seat->device) : NULL;
        if (actor->environment == NULL || (seat->device != NULL && actor->device == NULL)) {
            return gar_error_nomem(err, (int64_t)sizeof *actor);
        }
    }
    return GAR_OK;
}

static void fill_common(struct gar_actor_pool *pool, const struct gar_actor_pool_options *options)
{
    struct gar_link_common *common = &pool->common;
    union {
        char **plain;
        const char *const *constant;
    } argv = {.plain = pool->argv}, environment = {.plain = pool->environment};
    common->runtime = options->runtime;
    common->account = options->account != NULL ? gar_account_ref(options->account) : NULL;
    common->memory = options->account != NULL ? &options->account->memory : gar_memory_system();
    common->window = options->arena_bytes;
    if (common->window == 0 && pool->count > WINDOWS_BYTES / WINDOW_MAX / 2) {
        common->window = WINDOWS_BYTES / 2 / pool->count;
    }
    common->argv = argv.constant;
    common->environment = environment.constant;
    common->setup = pool->setup.data;
    common->setup_bytes = pool->setup.size;
    common->input = pool->input_layout;
    common->listener = &link_listener;
}

static void on_alarm(struct gar_timer *timer, struct gar_loop *loop);
static void on_sample(struct gar_timer *timer, struct gar_loop *loop);

enum gar_status gar_actor_pool_new(const struct gar_actor_pool_options *options,
                                   struct gar_actor_pool **out, struct gar_error *err)
{
    if (options->count < 1 || options->count > GAR_ACTORS_MAX) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "number of actors of UDF '%s' must be between 1 and %d, got %d",
                             options->name, GAR_ACTORS_MAX, (int)options->count);
    }
    const int64_t bytes =
        (int64_t)sizeof(struct gar_actor_pool) + options->count * (int64_t)sizeof(struct actor);
    struct gar_actor_pool *pool = gar_calloc(1, bytes);
    if (pool == NULL) {
        return gar_error_nomem(err, bytes);
    }
    pool->count = options->count;
    pool->loop = gar_runtime_loop(options->runtime);
    pool->listener = *options->listener;
    pool->context = options->context;
    pool->limit_bytes = options->limit_bytes;
    pool->alarm.fire = on_alarm;
    pool->sample.fire = on_sample;
    pool->is_plain = true;
    pool->name = gar_strdup(options->name);
    enum gar_status status =
        pool->name == NULL ? gar_error_nomem(err, 1) : prepare_data(pool, options, err);
    status = status < 0 ? status : prepare_lists(pool, options, err);
    if (status >= 0) {
        fill_common(pool, options);
        status = gar_roster_new(&options->policy, options->count, &world, pool, &pool->roster, err);
    }
    if (status < 0) {
        if (err != NULL && pool->name != NULL) {
            gar_error_prefix(err, "UDF '%s': ", pool->name);
        }
        free_pool(pool);
        return status;
    }
    for (int32_t i = 0; i < options->count; i++) {
        pool->actors[i].seat = options->seats[i];
    }
    *out = pool;
    return GAR_OK;
}

void gar_actor_pool_drop(struct gar_actor_pool *pool)
{
    if (pool != NULL) {
        release_grants(pool);
        free_pool(pool);
    }
}

/* ---- failures ---- */

/* The loop tells what an actor is. */
static void describe(const struct actor *actor, struct gar_actor_failure *failure)
{
    if (failure != NULL) {
        failure->actor = (int32_t)(actor - actor->pool->actors);
        failure->pid = actor->link != NULL ? gar_link_pid(actor->link) : 0;
        if (actor->device != NULL && failure->device == NULL) {
            failure->device = gar_strdup(actor->device);
        }
    }
}

/* What the ledger says about the actor's devices. */
static enum gar_roster_verdict judge(struct actor *actor, int32_t exit_code, int32_t signal_number,
                                     const char *text, struct gar_actor_failure *failure)
{
    const char *why = NULL;
    bool is_aside = false;
    if (actor->seat.judge == NULL || failure == NULL) {
        return GAR_ROSTER_KEEP;
    }
    const enum gar_device_error error =
        actor->seat.judge(actor->seat.grant, exit_code, signal_number, text, &is_aside, &why);
    if (is_aside) {
        char words[GAR_ERROR_MESSAGE_BYTES];
        actor->is_aside = true;
        failure->fault = GAR_ACTOR_LOST_DEVICE;
        (void)snprintf(words, sizeof words, "%s; its device is out of service%s%s", failure->text,
                       why != NULL ? ": " : "", why != NULL ? why : "");
        char *copy = gar_strdup(words);
        if (copy != NULL) {
            gar_free(failure->text);
            failure->text = copy;
        }
        return GAR_ROSTER_ASIDE;
    }
    return error == GAR_DEVICE_POISON ? GAR_ROSTER_REPLACE : GAR_ROSTER_KEEP;
}

static const char *signal_hint(int32_t signal_number)
{
    switch (signal_number) {
    case SIGKILL: return " (SIGKILL: often the system's answer when memory runs out)";
    case SIGSEGV: return " (SIGSEGV: a wrong memory access in native code)";
    case SIGABRT: return " (SIGABRT: native code gave up)";
    case SIGBUS: return " (SIGBUS)";
    case SIGILL: return " (SIGILL)";
    case SIGFPE: return " (SIGFPE)";
    case SIGTERM: return " (SIGTERM)";
    default: return "";
    }
}

static struct gar_actor_failure *death_failure(const struct actor *actor,
                                               const struct gar_link_end *end)
{
    struct gar_actor_failure *failure;
    const long long pid = (long long)end->pid;
    if (!end->is_started) {
        failure = gar_actor_failure_new(GAR_ACTOR_NO_START, "%s", end->error.message);
    } else if (end->is_oom) {
        failure = gar_actor_failure_new(
            GAR_ACTOR_DIED, "its process %lld was killed by the kernel: out of memory", pid);
    } else if (end->process.signal != 0) {
        failure =
            gar_actor_failure_new(GAR_ACTOR_DIED, "its process %lld was killed by signal %d%s", pid,
                                  (int)end->process.signal, signal_hint(end->process.signal));
    } else if (end->process.is_known) {
        failure = gar_actor_failure_new(GAR_ACTOR_DIED, "its process %lld exited with code %d", pid,
                                        (int)end->process.exit_code);
    } else {
        failure = gar_actor_failure_new(
            GAR_ACTOR_DIED,
            "its process %lld ended; exit status unknown, because this program reaps all children",
            pid);
    }
    if (failure != NULL) {
        failure->exit_code = end->process.exit_code;
        failure->signal = end->process.signal;
        failure->log = end->log[0] != 0 ? gar_strdup(end->log) : NULL;
        describe(actor, failure);
    }
    return failure;
}

/* ---- what links tell ---- */

static void on_link_ready(void *owner)
{
    struct actor *actor = owner;
    struct gar_actor_pool *pool = actor->pool;
    if (actor->seat.set_process != NULL) {
        actor->seat.set_process(actor->seat.grant, gar_link_pid(actor->link));
    }
    gar_roster_ready(pool->roster, (int32_t)(actor - pool->actors), gar_clock_ns());
}

static void on_link_no_start(void *owner, const struct gar_wire_message *message)
{
    struct actor *actor = owner;
    struct gar_actor_pool *pool = actor->pool;
    struct gar_actor_failure *failure = gar_actor_failure_new(GAR_ACTOR_NO_START, "it failed");
    if (failure != NULL) {
        gar_link_read_failure(actor->link, message, failure);
        describe(actor, failure);
        (void)judge(actor, -1, 0, failure->text, failure);
        failure->fault = actor->is_aside ? GAR_ACTOR_LOST_DEVICE : GAR_ACTOR_NO_START;
    }
    gar_roster_broken(pool->roster, (int32_t)(actor - pool->actors), failure, gar_clock_ns());
}

static void on_link_broken(void *owner, bool is_ours, const char *why)
{
    struct actor *actor = owner;
    struct gar_actor_pool *pool = actor->pool;
    const int64_t now_ns = gar_clock_ns();
    struct gar_actor_failure *failure =
        is_ours
            ? gar_actor_failure_new(GAR_ACTOR_NO_ROOM, "%s", why)
            : gar_actor_failure_new(GAR_ACTOR_PROTOCOL, "its process %lld broke the protocol: %s",
                                    (long long)gar_link_pid(actor->link), why);
    describe(actor, failure);
    if (is_ours) {
        gar_roster_fail(pool->roster, failure, now_ns);
    } else {
        gar_roster_broken(pool->roster, (int32_t)(actor - pool->actors), failure, now_ns);
    }
}

static void on_link_output(void *owner, bool is_stderr, const char *text, int64_t bytes)
{
    const struct actor *actor = owner;
    const struct gar_actor_pool *pool = actor->pool;
    if (pool->listener.on_output != NULL) {
        pool->listener.on_output(pool->context, (int32_t)(actor - pool->actors), is_stderr, text,
                                 bytes);
    }
}

static void on_link_dead(void *owner, const struct gar_link_end *end)
{
    struct actor *actor = owner;
    struct gar_actor_pool *pool = actor->pool;
    struct gar_actor_failure *failure = death_failure(actor, end);
    enum gar_roster_verdict verdict = GAR_ROSTER_KEEP;
    if (end->is_started && !end->is_killed &&
        (end->process.exit_code > 0 || end->process.signal != 0)) {
        verdict = judge(actor, end->process.exit_code, end->process.signal, end->log, failure);
    }
    if (actor->is_aside) {
        verdict = GAR_ROSTER_ASIDE;
    }
    struct gar_link *link = actor->link;
    actor->link = NULL;
    gar_link_free(link);
    gar_ticket_release(&actor->resident);
    actor->homeless = 0;
    gar_roster_dead(pool->roster, (int32_t)(actor - pool->actors), failure, verdict,
                    gar_clock_ns());
}

/* ---- adopting results ---- */

static void free_copy(void *copy)
{
    gar_free(copy);
}

/* The region itself under a lease, or a copy of it. */
static enum gar_status open_source(struct adoption *a, struct gar_wire_source *out)
{
    const uint8_t *region = gar_exchange_data(a->exchange, GAR_ARENA_OUT) + a->answer.offset;
    struct gar_lease *lease = NULL;
    out->bytes = a->answer.bytes;
    out->rows = a->answer.rows;
    out->memory = a->pool->common.memory;
    GAR_TRY(gar_exchange_lease(a->exchange, a->answer.slot, a->answer.offset, a->answer.bytes,
                               &lease, &a->error));
    if (a->answer.bytes > COPY_BYTES && gar_exchange_leases(a->exchange) <= LEASES_MAX) {
        out->region = region;
        out->on_release = gar_lease_release;
        out->context = lease;
        return GAR_OK;
    }
    /* Room to bring the copy to the alignment of regions. */
    uint8_t *copy = gar_malloc(a->answer.bytes + GAR_WIRE_ALIGN);
    if (copy == NULL) {
        gar_lease_release(lease);
        return gar_error_nomem(&a->error, a->answer.bytes);
    }
    const size_t over = (size_t)((uintptr_t)copy % GAR_WIRE_ALIGN);
    uint8_t *aligned = copy + (over == 0 ? 0 : GAR_WIRE_ALIGN - over);
    memcpy(aligned, region, (size_t)a->answer.bytes);
    gar_lease_release(lease);
    out->region = aligned;
    out->on_release = free_copy;
    out->context = copy;
    return GAR_OK;
}

static enum gar_status adopt(struct adoption *a)
{
    struct gar_wire_source source;
    struct ArrowArray array;
    GAR_TRY(open_source(a, &source));
    const enum gar_status status =
        gar_wire_read(a->pool->output_layout, &source, &array, &a->error);
    if (status < 0) {
        source.on_release(source.context);
        a->is_malformed = status == GAR_ERR_FORMAT;
        return status;
    }
    return gar_batch_import(&a->pool->output_abi, &array, a->pool->output, a->pool->common.memory,
                            &a->batch, &a->error);
}

static void end_adoption(struct adoption *a)
{
    struct gar_actor_pool *pool = a->pool;
    struct actor *actor = &pool->actors[a->actor];
    const int64_t now_ns = gar_clock_ns();
    gar_exchange_unref(a->exchange);
    if (a->status >= 0) {
        gar_roster_result(pool->roster, a->part, a->batch, now_ns);
    } else {
        const enum gar_actor_fault fault = a->is_malformed              ? GAR_ACTOR_PROTOCOL
                                           : a->status == GAR_ERR_NOMEM ? GAR_ACTOR_NO_ROOM
                                                                        : GAR_ACTOR_BAD_RESULT;
        struct gar_actor_failure *failure = gar_actor_failure_new(
            fault, "%s%s", a->is_malformed ? "" : "returned values are bad: ", a->error.message);
        describe(actor, failure);
        gar_roster_part_failed(pool->roster, a->actor, a->part, failure,
                               a->is_malformed ? GAR_ROSTER_REPLACE : GAR_ROSTER_KEEP, now_ns);
    }
    gar_free(a);
}

static void run_adoption(struct gar_task *task, int32_t worker)
{
    (void)worker;
    struct adoption *a = (struct adoption *)(void *)task;
    a->status = adopt(a);
    (void)gar_loop_post(a->pool->loop, &a->message);
}

static void on_adopted(struct gar_message *message, struct gar_loop *loop)
{
    (void)loop;
    end_adoption((struct adoption *)(void *)((char *)message - offsetof(struct adoption, message)));
}

static void take_result(struct actor *actor, const struct gar_wire_message *message)
{
    struct gar_actor_pool *pool = actor->pool;
    const int32_t number = (int32_t)(actor - pool->actors);
    struct adoption *a = gar_calloc(1, (int64_t)sizeof *a);
    if (a != NULL) { /* before the roster moves on: the link may be gone then */
        a->exchange = gar_exchange_ref(gar_link_exchange(actor->link));
    }
    struct gar_roster_part *part = gar_roster_answered(pool->roster, number, gar_clock_ns());
    if (a == NULL || part == NULL) {
        if (part != NULL) {
            gar_roster_part_failed(pool->roster, number, part,
                                   gar_actor_failure_new(GAR_ACTOR_NO_ROOM, "out of memory"),
                                   GAR_ROSTER_KEEP, gar_clock_ns());
        }
        if (a != NULL) {
            gar_exchange_unref(a->exchange);
            gar_free(a);
        }
        return;
    }
    a->task.run = run_adoption;
    a->message.handle = on_adopted;
    a->pool = pool;
    a->actor = number;
    a->part = part;
    a->answer = *message;
    a->answer.rows = part->rows; /* what it must have; wire_read compares */
    if (message->bytes > SMALL_BYTES && !pool->is_plain) {
        gar_pool_submit(gar_runtime_compute(pool->common.runtime), &a->task);
        return;
    }
    a->status = adopt(a);
    end_adoption(a);
}

static enum gar_actor_fault fault_of(uint32_t detail)
{
    switch (detail) {
    case GAR_WIRE_BAD_RESULT: return GAR_ACTOR_BAD_RESULT;
    case GAR_WIRE_NO_ROOM: return GAR_ACTOR_NO_ROOM;
    default: return GAR_ACTOR_RAISED;
    }
}

static void take_failure(struct actor *actor, const struct gar_wire_message *message)
{
    struct gar_actor_pool *pool = actor->pool;
    const int32_t number = (int32_t)(actor - pool->actors);
    enum gar_roster_verdict verdict = GAR_ROSTER_KEEP;
    struct gar_actor_failure *failure =
        gar_actor_failure_new(fault_of(message->detail), "it failed");
    if (failure != NULL) {
        gar_link_read_failure(actor->link, message, failure);
        describe(actor, failure);
        if (failure->fault == GAR_ACTOR_RAISED) {
            verdict = judge(actor, -1, 0, failure->text, failure);
        } else {
            gar_free(failure->type); /* the engine's own words need none */
            failure->type = NULL;
        }
    }
    struct gar_roster_part *part = gar_roster_answered(pool->roster, number, gar_clock_ns());
    if (part == NULL) {
        gar_actor_failure_free(failure);
        return;
    }
    gar_roster_part_failed(pool->roster, number, part, failure, verdict, gar_clock_ns());
}

static void on_link_answer(void *owner, const struct gar_wire_message *message)
{
    struct actor *actor = owner;
    if (message->kind == GAR_WIRE_RESULT) {
        take_result(actor, message);
    } else {
        take_failure(actor, message);
    }
}

static const struct gar_link_listener link_listener = {
    .on_ready = on_link_ready,
    .on_answer = on_link_answer,
    .on_no_start = on_link_no_start,
    .on_broken = on_link_broken,
    .on_output = on_link_output,
    .on_dead = on_link_dead,
};

/* ---- what the roster asks ---- */

static void on_no_memory(struct gar_message *message, struct gar_loop *loop)
{
    (void)loop;
    struct actor *actor =
        (struct actor *)(void *)((char *)message - offsetof(struct actor, no_memory));
    struct gar_actor_pool *pool = actor->pool;
    gar_roster_dead(pool->roster, (int32_t)(actor - pool->actors),
                    gar_actor_failure_new(GAR_ACTOR_NO_START, "out of memory"), GAR_ROSTER_KEEP,
                    gar_clock_ns());
}

static void world_start(void *context, int32_t number)
{
    struct gar_actor_pool *pool = context;
    struct actor *actor = &pool->actors[number];
    union {
        char **plain;
        const char *const *constant;
    } environment = {.plain = actor->environment};
    if (gar_link_start(&pool->common, number, environment.constant, actor, &actor->link, NULL) <
        0) {
        actor->link = NULL;
        actor->no_memory.handle = on_no_memory;
        (void)gar_loop_post(pool->loop, &actor->no_memory);
    }
}

static void world_send(void *context, int32_t number, struct gar_roster_part *part)
{
    struct gar_actor_pool *pool = context;
    const struct gar_call_work *work = part->call->owner;
    gar_link_send(pool->actors[number].link, work->user->batch, part->offset, part->rows);
}

static void world_stop(void *context, int32_t number)
{
    struct gar_actor_pool *pool = context;
    gar_link_stop(pool->actors[number].link);
}

static void world_kill(void *context, int32_t number)
{
    struct gar_actor_pool *pool = context;
    if (pool->actors[number].link != NULL) {
        gar_link_kill(pool->actors[number].link);
    }
}

static bool world_is_stopped(void *context, int32_t number)
{
    struct gar_actor_pool *pool = context;
    return gar_link_is_stopped(pool->actors[number].link);
}

static void world_set_alarm(void *context, int64_t deadline_ns)
{
    struct gar_actor_pool *pool = context;
    if (deadline_ns == GAR_CLOCK_NEVER) {
        gar_loop_stop_timer_on_loop(pool->loop, &pool->alarm);
    } else {
        gar_loop_start_timer_on_loop(pool->loop, &pool->alarm, deadline_ns);
    }
}

static void on_alarm(struct gar_timer *timer, struct gar_loop *loop)
{
    (void)loop;
    struct gar_actor_pool *pool =
        (struct gar_actor_pool *)(void *)((char *)timer - offsetof(struct gar_actor_pool, alarm));
    gar_roster_alarm(pool->roster, gar_clock_ns());
}

static struct gar_actor_failure *too_large(const struct actor *actor, int64_t bytes,
                                           const char *why)
{
    struct gar_actor_failure *failure = gar_actor_failure_new(
        GAR_ACTOR_NO_ROOM, "its process %lld uses %.1f MiB of memory of its own, %s",
        (long long)gar_link_pid(actor->link), (double)bytes / 1048576.0, why);
    describe(actor, failure);
    return failure;
}

/* Why a worker that uses so many bytes cannot go on; NULL: it can. What it has is there already, so the query's operators get
 * less first, and spill; only what does not fit for a while is too much. */
static struct gar_actor_failure *weigh(struct actor *actor, int64_t bytes)
{
    const struct gar_actor_pool *pool = actor->pool;
    struct gar_error err = GAR_ERROR_INIT;
    char why[GAR_ERROR_MESSAGE_BYTES];
    if (pool->limit_bytes > 0 && bytes > pool->limit_bytes) {
        (void)snprintf(
            why, sizeof why,
            "more than the %.1f MiB that memory= books for each; ask for more, or work on "
            "smaller batches",
            (double)pool->limit_bytes / 1048576.0);
        return too_large(actor, bytes, why);
    }
    if (bytes <= actor->resident.bytes) {
        gar_ticket_shrink(&actor->resident, actor->resident.bytes - bytes);
        actor->homeless = 0;
    } else if (pool->common.account == NULL ||
               gar_ticket_reserve(&actor->resident, pool->common.account,
                                  bytes - actor->resident.bytes, &err) >= 0) {
        actor->homeless = 0;
    } else if (++actor->homeless >= HOMELESS_MAX) {
        (void)snprintf(why, sizeof why, "which the query has no room for: %.700s", err.message);
        return too_large(actor, bytes, why);
    }
    return NULL;
}

static void on_sample(struct gar_timer *timer, struct gar_loop *loop)
{
    struct gar_actor_pool *pool =
        (struct gar_actor_pool *)(void *)((char *)timer - offsetof(struct gar_actor_pool, sample));
    struct gar_actor_failure *failure = NULL;
    for (int32_t i = 0; failure == NULL && i < pool->count; i++) {
        struct actor *actor = &pool->actors[i];
        if (actor->link != NULL) {
            failure = weigh(actor, gar_link_private_bytes(actor->link));
        }
    }
    if (failure != NULL) {
        gar_roster_fail(pool->roster, failure, gar_clock_ns());
    } else if (pool->open_calls > 0) {
        gar_loop_start_timer_on_loop(loop, timer, gar_clock_ns() + SAMPLE_NS);
    }
}

static void world_drop_result(void *context, void *result)
{
    (void)context;
    gar_batch_unref(result);
}

/* rows nulls of the output's types. */
static enum gar_status null_batch(struct gar_actor_pool *pool, int64_t rows, struct gar_batch **out,
                                  struct gar_error *err)
{
    const int64_t count = pool->output->count;
    struct gar_column **columns = gar_calloc(count + 1, (int64_t)sizeof columns[0]);
    if (columns == NULL) {
        return gar_error_nomem(err, (count + 1) * (int64_t)sizeof columns[0]);
    }
    enum gar_status status = GAR_OK;
    for (int64_t k = 0; status >= 0 && k < count; k++) {
        status = gar_column_new_null(pool->common.memory, pool->output->fields[k].type, rows,
                                     &columns[k], err);
    }
    status = status < 0 ? status : gar_batch_new(pool->output, columns, rows, out, err);
    if (status < 0) {
        for (int64_t k = 0; k < count; k++) {
            gar_column_unref(columns[k]);
        }
    }
    gar_free(columns);
    return status;
}

/* The parts of a finished call in order, as one batch; takes the parts down. */
static enum gar_status join_parts(struct gar_actor_pool *pool, struct gar_roster_call *call,
                                  struct gar_batch **out, struct gar_error *err)
{
    int64_t count = 0;
    enum gar_status status = GAR_OK;
    for (struct gar_roster_part *p = call->parts; p != NULL; p = p->sibling) {
        count++;
        if (status >= 0 && p->is_null) {
            struct gar_batch *nulls = NULL;
            status = null_batch(pool, p->rows, &nulls, err);
            p->result = nulls;
        }
    }
    struct gar_batch **batches = gar_calloc(count, (int64_t)sizeof batches[0]);
    if (batches == NULL) {
        status = gar_error_nomem(err, count * (int64_t)sizeof batches[0]);
    }
    for (int64_t i = 0; call->parts != NULL; i++) {
        struct gar_roster_part *part = call->parts;
        call->parts = part->sibling;
        if (batches != NULL) {
            batches[i] = part->result;
        } else {
            gar_batch_unref(part->result);
        }
        gar_free(part);
    }
    if (status >= 0 && count == 1) {
        *out = batches[0];
        batches[0] = NULL;
    } else if (status >= 0) {
        status = gar_batch_concat(pool->output, batches, count, pool->common.memory, out, err);
    }
    for (int64_t i = 0; batches != NULL && i < count; i++) {
        gar_batch_unref(batches[i]);
    }
    gar_free(batches);
    return status;
}

static void world_finish(void *context, struct gar_roster_call *roster_call)
{
    struct gar_actor_pool *pool = context;
    struct gar_call_work *work = roster_call->owner;
    struct gar_actor_call *call = work->user;
    struct gar_error err = GAR_ERROR_INIT;
    call->result = NULL;
    call->status = roster_call->is_cancelled ? GAR_ERR_CANCELLED
                                             : join_parts(pool, roster_call, &call->result, &err);
    gar_batch_unref(call->batch);
    call->batch = NULL;
    call->work = NULL;
    gar_free(work);
    pool->open_calls--;
    if (call->status < 0 && call->status != GAR_ERR_CANCELLED) {
        gar_roster_fail(pool->roster, gar_actor_failure_new(GAR_ACTOR_NO_ROOM, "%s", err.message),
                        gar_clock_ns());
        call->status = GAR_ERR_CANCELLED;
    }
    call->on_done(call);
}

static void world_on_nulled(void *context, const struct gar_roster_part *part,
                            const struct gar_actor_failure *failure)
{
    (void)part;
    const struct gar_actor_pool *pool = context;
    if (pool->listener.on_nulled != NULL) {
        pool->listener.on_nulled(pool->context, failure);
    }
}

static void world_on_room(void *context)
{
    const struct gar_actor_pool *pool = context;
    if (pool->listener.on_room != NULL) {
        pool->listener.on_room(pool->context);
    }
}

static void world_on_ended(void *context, bool has_failed, struct gar_actor_failure *failure)
{
    struct gar_actor_pool *pool = context;
    const struct gar_actor_listener listener = pool->listener;
    void *const user = pool->context;
    struct gar_runtime *runtime = pool->is_entered ? pool->common.runtime : NULL;
    struct gar_error err = GAR_ERROR_INIT;
    enum gar_status status = GAR_OK;
    if (has_failed) {
        status = gar_actor_failure_error(failure, pool->name, &err);
    } else if (pool->cancel_status < 0) {
        status = pool->cancel_status;
        err = pool->cancel_error;
    }
    gar_loop_stop_timer_on_loop(pool->loop, &pool->alarm);
    gar_loop_stop_timer_on_loop(pool->loop, &pool->sample);
    release_grants(pool);
    free_pool(pool);
    listener.on_ended(user, status, status < 0 ? &err : NULL, failure);
    gar_actor_failure_free(failure);
    if (runtime != NULL) {
        gar_runtime_leave(runtime);
    }
}

static const struct gar_roster_world world = {
    .start = world_start,
    .send = world_send,
    .stop = world_stop,
    .kill = world_kill,
    .is_stopped = world_is_stopped,
    .set_alarm = world_set_alarm,
    .drop_result = world_drop_result,
    .finish = world_finish,
    .on_nulled = world_on_nulled,
    .on_room = world_on_room,
    .on_ended = world_on_ended,
};

/* ---- commands ---- */

void gar_actor_pool_start_on_loop(struct gar_actor_pool *pool)
{
    struct gar_error err = GAR_ERROR_INIT;
    if (gar_runtime_enter(pool->common.runtime, &err) < 0) {
        gar_roster_fail(pool->roster, gar_actor_failure_new(GAR_ACTOR_NO_START, "%s", err.message),
                        gar_clock_ns());
        return;
    }
    pool->is_entered = true;
    gar_roster_start(pool->roster, gar_clock_ns());
}

enum gar_status gar_actor_pool_submit_on_loop(struct gar_actor_pool *pool,
                                              struct gar_actor_call *call)
{
    struct gar_call_work *work = gar_calloc(1, (int64_t)sizeof *work);
    if (work == NULL) {
        return GAR_ERR_NOMEM;
    }
    work->pool = pool;
    work->user = call;
    work->roster.rows = call->batch->rows;
    work->roster.first_row = call->first_row;
    work->roster.owner = work;
    call->work = work;
    pool->open_calls++;
    const int64_t now_ns = gar_clock_ns();
    if (!pool->sample.is_running && (pool->common.account != NULL || pool->limit_bytes > 0)) {
        gar_loop_start_timer_on_loop(pool->loop, &pool->sample, now_ns + SAMPLE_NS);
    }
    const enum gar_status status = gar_roster_submit(pool->roster, &work->roster, now_ns);
    if (status != GAR_OK) {
        pool->open_calls--;
        call->work = NULL;
        gar_free(work);
    }
    return status;
}

void gar_actor_pool_end_on_loop(struct gar_actor_pool *pool)
{
    gar_roster_end(pool->roster, gar_clock_ns());
}

void gar_actor_pool_cancel_on_loop(struct gar_actor_pool *pool, enum gar_status status,
                                   const struct gar_error *err)
{
    if (pool->cancel_status >= 0) {
        pool->cancel_status = status < 0 ? status : GAR_ERR_CANCELLED;
        if (err != NULL) {
            pool->cancel_error = *err;
        } else {
            (void)gar_error_set(&pool->cancel_error, pool->cancel_status, "UDF '%s' was cancelled",
                                pool->name);
        }
    }
    gar_roster_cancel(pool->roster, gar_clock_ns());
}

void gar_actor_pool_figures_on_loop(const struct gar_actor_pool *pool,
                                    struct gar_actor_pool_figures *out)
{
    struct gar_roster_figures figures;
    gar_roster_figures(pool->roster, &figures);
    *out = (struct gar_actor_pool_figures){.actors = pool->count,
                                           .ready = figures.ready,
                                           .busy = figures.busy,
                                           .aside = figures.aside,
                                           .restarts = figures.restarts,
                                           .retries = figures.retries,
                                           .rows = figures.rows,
                                           .nulled = figures.nulled};
}
