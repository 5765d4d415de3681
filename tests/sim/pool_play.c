/* SPDX-License-Identifier: Apache-2.0 */
/* Pools of actors on one machine's ledger: every crew waits for its grants, runs the pools' state machine over simulated worker
 * processes, and gives back. Workers are slow, die, refuse to start, hang in a call or in their tear-down, and lose their
 * device; crews are cancelled, and run out of memory, at any moment. Each call ends once with all its rows, each pool comes
 * to its end, and at every step what is free and what is held is the whole machine. */
#include <stdlib.h>

#include "actors/roster.h"
#include "base/alloc.h"
#include "os/park.h"
#include "plays.h"
#include "resources/ledger.h"

enum { CREWS_MAX = 3, ACTORS_MAX = 4, CALLS_MAX = 12, DEVICES_MAX = 3 };

struct machine {
    struct sim_play *play;
    struct gar_ledger *ledger;
    int32_t device_count;
    bool is_over; /* the crews are done */
};

enum event_kind { EVENT_READY, EVENT_NO_START, EVENT_ANSWER, EVENT_DEAD };

struct event {
    struct event *next;
    enum event_kind kind;
    int32_t actor;
    bool has_failed;  /* an answer: with an exception */
    bool lost_device; /* a death: the device's fault */
};

/* One life of a worker process. */
struct process {
    struct crew *crew;
    struct sim_thread *thread;
    struct gar_parker parker;
    int32_t actor;
    int32_t sent;
    bool is_stopping;
    bool is_killed;
};

struct call {
    struct gar_roster_call call;
    int32_t finished;
};

/* One query's pool; lives until the play is judged, because a late wake must find its parker. */
struct crew {
    struct gar_ledger_ticket ticket; /* first */
    struct machine *machine;
    struct gar_parker parker;
    int32_t done_count;
    enum gar_status status;
    struct gar_roster *roster;
    struct process *processes[ACTORS_MAX];
    bool is_aside[ACTORS_MAX];
    struct event *first; /* told by workers, not yet looked at */
    struct event *last;
    struct call calls[CALLS_MAX];
    int32_t submitted;
    int64_t results; /* alive */
    int64_t alarm_ns;
    int64_t cancel_ns; /* GAR_CLOCK_NEVER: is not cancelled */
    int32_t fault_percent;
    bool is_ended;
};

static struct sim_rng *rng_of(const struct crew *crew)
{
    return &crew->machine->play->rng;
}

/* ---- workers ---- */

static void tell(const struct process *process, struct event what)
{
    struct crew *crew = process->crew;
    struct event *event = calloc(1, sizeof *event);
    SIM_CHECK(event != NULL, "no memory");
    *event = what;
    event->actor = process->actor;
    if (crew->last != NULL) {
        crew->last->next = event;
    } else {
        crew->first = event;
    }
    crew->last = event;
    gar_parker_wake(&crew->parker);
}

/* Something that takes time; a kill ends it at once. */
static void take_time(struct process *process, int64_t ns)
{
    const int64_t until_ns = sim_now_ns() + ns;
    while (!process->is_killed && sim_now_ns() < until_ns) {
        (void)gar_parker_wait(&process->parker, until_ns);
    }
}

static bool is_fault(const struct process *process, int32_t divisor)
{
    return sim_chance(rng_of(process->crew), process->crew->fault_percent / divisor);
}

static void wait_for_kill(struct process *process)
{
    while (!process->is_killed) {
        (void)gar_parker_wait(&process->parker, GAR_CLOCK_NEVER);
    }
}

/* False: it died, or is to. */
static bool work_once(struct process *process)
{
    struct sim_rng *rng = rng_of(process->crew);
    /* Now and then longer than the limit of a call. */
    take_time(process, is_fault(process, 4) ? 20 * GAR_NS_PER_S : sim_below(rng, GAR_NS_PER_MS));
    if (process->is_killed || is_fault(process, 2)) {
        return false;
    }
    process->sent--;
    tell(process, (struct event){.kind = EVENT_ANSWER, .has_failed = is_fault(process, 1)});
    return true;
}

static void run_process(void *context)
{
    struct process *process = context;
    take_time(process, sim_below(rng_of(process->crew), 5 * GAR_NS_PER_MS));
    bool lives = !process->is_killed && !is_fault(process, 3);
    if (lives && is_fault(process, 6)) {
        tell(process, (struct event){.kind = EVENT_NO_START});
        wait_for_kill(process);
    } else if (lives) {
        tell(process, (struct event){.kind = EVENT_READY});
    }
    while (lives && !process->is_killed) {
        if (process->sent > 0) {
            lives = work_once(process);
        } else if (process->is_stopping) {
            if (is_fault(process, 2)) {
                wait_for_kill(process); /* hangs in its tear-down */
            }
            lives = false;
        } else {
            (void)gar_parker_wait(&process->parker, GAR_CLOCK_NEVER);
        }
    }
    sim_point("worker dies");
    tell(process, (struct event){.kind = EVENT_DEAD, .lost_device = is_fault(process, 4)});
}

/* ---- the world of a roster ---- */

static void on_start(void *world, int32_t actor)
{
    struct crew *crew = world;
    struct process *process = calloc(1, sizeof *process);
    SIM_CHECK(process != NULL, "no memory");
    SIM_CHECK(crew->processes[actor] == NULL, "an actor was started twice");
    SIM_CHECK(!crew->is_aside[actor], "an actor was started on a lost device");
    process->crew = crew;
    process->actor = actor;
    crew->processes[actor] = process;
    process->thread = sim_spawn("worker process", run_process, process);
}

static void on_send(void *world, int32_t actor, struct gar_roster_part *part)
{
    struct crew *crew = world;
    SIM_CHECK(part->rows > 0 && !part->is_done, "a finished part was sent");
    SIM_CHECK(crew->processes[actor] != NULL, "a part was sent to no process");
    crew->processes[actor]->sent++;
    gar_parker_wake(&crew->processes[actor]->parker);
}

static void on_stop(void *world, int32_t actor)
{
    struct crew *crew = world;
    crew->processes[actor]->is_stopping = true;
    gar_parker_wake(&crew->processes[actor]->parker);
}

static void on_kill(void *world, int32_t actor)
{
    struct crew *crew = world;
    crew->processes[actor]->is_killed = true;
    gar_parker_wake(&crew->processes[actor]->parker);
}

static bool on_is_stopped(void *world, int32_t actor)
{
    (void)world;
    (void)actor;
    return false;
}

static void on_set_alarm(void *world, int64_t deadline_ns)
{
    ((struct crew *)world)->alarm_ns = deadline_ns;
}

static void on_drop_result(void *world, void *result)
{
    ((struct crew *)world)->results--;
    free(result);
}

static void on_finish(void *world, struct gar_roster_call *call)
{
    struct call *mine = call->owner;
    int64_t rows = 0;
    mine->finished++;
    SIM_CHECK(mine->finished == 1, "a call of a pool ended twice");
    while (call->parts != NULL) {
        struct gar_roster_part *part = call->parts;
        call->parts = part->sibling;
        SIM_CHECK(part->is_done && part->offset == rows, "rows of a call are missing");
        SIM_CHECK(part->is_null == (part->result == NULL), "a part without a result is not null");
        rows += part->rows;
        if (part->result != NULL) {
            on_drop_result(world, part->result);
        }
        gar_free(part);
    }
    SIM_CHECK(call->is_cancelled || rows == call->rows, "a call has %lld rows of %lld",
              (long long)rows, (long long)call->rows);
}

static void on_nulled(void *world, const struct gar_roster_part *part,
                      const struct gar_actor_failure *failure)
{
    (void)world;
    (void)failure;
    SIM_CHECK(part->rows == 1, "%lld rows were made null at once", (long long)part->rows);
}

static void on_room(void *world)
{
    (void)world;
}

static void on_ended(void *world, bool has_failed, struct gar_actor_failure *failure)
{
    struct crew *crew = world;
    SIM_CHECK(!crew->is_ended, "a pool ended twice");
    crew->is_ended = true;
    sim_trace("pool ended: %s",
              !has_failed ? "well" : (failure != NULL ? failure->text : "no memory"));
    gar_actor_failure_free(failure);
}

static const struct gar_roster_world world = {
    .start = on_start,
    .send = on_send,
    .stop = on_stop,
    .kill = on_kill,
    .is_stopped = on_is_stopped,
    .set_alarm = on_set_alarm,
    .drop_result = on_drop_result,
    .finish = on_finish,
    .on_nulled = on_nulled,
    .on_room = on_room,
    .on_ended = on_ended,
};

/* ---- a crew ---- */

static void take_answer(struct crew *crew, const struct event *event)
{
    const int64_t now_ns = sim_now_ns();
    struct gar_roster_part *part = gar_roster_answered(crew->roster, event->actor, now_ns);
    if (part == NULL) {
        return; /* the pool is being killed */
    }
    if (event->has_failed) {
        gar_roster_part_failed(
            crew->roster, event->actor, part, gar_actor_failure_new(GAR_ACTOR_RAISED, "bad row"),
            sim_chance(rng_of(crew), 10) ? GAR_ROSTER_REPLACE : GAR_ROSTER_KEEP, now_ns);
        return;
    }
    void *result = malloc(1);
    SIM_CHECK(result != NULL, "no memory");
    crew->results++;
    gar_roster_result(crew->roster, part, result, now_ns);
}

static void bury(struct crew *crew, const struct event *event)
{
    struct process *process = crew->processes[event->actor];
    struct gar_grant *grant = crew->ticket.grants[event->actor];
    enum gar_roster_verdict verdict = GAR_ROSTER_KEEP;
    sim_join(process->thread);
    free(process);
    crew->processes[event->actor] = NULL;
    if (event->lost_device && gar_ledger_report(grant, GAR_DEVICE_LOST, "simulated loss")) {
        crew->is_aside[event->actor] = true;
        verdict = GAR_ROSTER_ASIDE;
    }
    gar_roster_dead(crew->roster, event->actor,
                    gar_actor_failure_new(GAR_ACTOR_DIED, "killed by signal 9"), verdict,
                    sim_now_ns());
}

static void take_event(struct crew *crew)
{
    struct event *event = crew->first;
    crew->first = event->next;
    if (crew->first == NULL) {
        crew->last = NULL;
    }
    switch (event->kind) {
    case EVENT_READY: gar_roster_ready(crew->roster, event->actor, sim_now_ns()); break;
    case EVENT_NO_START:
        gar_roster_broken(crew->roster, event->actor,
                          gar_actor_failure_new(GAR_ACTOR_NO_START, "ValueError"), sim_now_ns());
        break;
    case EVENT_ANSWER: take_answer(crew, event); break;
    case EVENT_DEAD: bury(crew, event); break;
    }
    free(event);
}

/* The next of its calls, or the end of them. */
static void submit(struct crew *crew, int32_t count)
{
    if (crew->submitted == count) {
        gar_roster_end(crew->roster, sim_now_ns());
        return;
    }
    struct call *call = &crew->calls[crew->submitted];
    call->call = (struct gar_roster_call){
        .rows = 1 + sim_below(rng_of(crew), 8), .first_row = crew->submitted * 8, .owner = call};
    switch (gar_roster_submit(crew->roster, &call->call, sim_now_ns())) {
    case GAR_OK: crew->submitted++; break;
    case GAR_PENDING:
    case GAR_ERR_CANCELLED: break;
    default: gar_roster_cancel(crew->roster, sim_now_ns()); break;
    }
}

static void wait_for_event(struct crew *crew)
{
    const int64_t until_ns = gar_min_i64(crew->alarm_ns, crew->cancel_ns);
    if (crew->first == NULL && until_ns > sim_now_ns()) {
        (void)gar_parker_wait(&crew->parker, until_ns);
    }
}

static void run_pool(struct crew *crew)
{
    struct sim_rng *rng = rng_of(crew);
    const struct gar_actor_policy policy = {.on_error = (enum gar_actor_on_error)sim_below(rng, 3),
                                            .grows = sim_chance(rng, 40),
                                            .max_retries = (int32_t)sim_below(rng, 3),
                                            .call_limit_ns = 10 * GAR_NS_PER_S};
    const int32_t count = (int32_t)sim_below(rng, CALLS_MAX + 1);
    if (gar_roster_new(&policy, (int32_t)crew->ticket.grant_count, &world, crew, &crew->roster,
                       NULL) < 0) {
        SIM_CHECK(crew->machine->play->has_refused_memory, "no roster");
        return;
    }
    gar_roster_start(crew->roster, sim_now_ns());
    while (!crew->is_ended) {
        const int32_t before = crew->submitted;
        submit(crew, count);
        if (crew->is_ended || (crew->submitted > before && sim_chance(rng, 50))) {
            continue;
        }
        wait_for_event(crew);
        if (crew->cancel_ns <= sim_now_ns()) {
            crew->cancel_ns = GAR_CLOCK_NEVER;
            gar_roster_cancel(crew->roster, sim_now_ns());
        } else if (crew->alarm_ns <= sim_now_ns()) {
            crew->alarm_ns = GAR_CLOCK_NEVER;
            gar_roster_alarm(crew->roster, sim_now_ns());
        } else if (crew->first != NULL) {
            take_event(crew);
        }
    }
    gar_roster_free(crew->roster);
    for (int32_t i = 0; i < crew->submitted; i++) {
        SIM_CHECK(crew->calls[i].finished == 1, "call %d of a pool did not end", (int)i);
    }
    for (int32_t i = 0; i < ACTORS_MAX; i++) {
        SIM_CHECK(crew->processes[i] == NULL, "a pool ended before its process");
    }
    SIM_CHECK(crew->first == NULL && crew->results == 0, "something of a pool is left over");
}

static void on_granted(struct gar_ledger_ticket *ticket, enum gar_status status)
{
    struct crew *crew = (struct crew *)ticket;
    crew->status = status;
    crew->done_count++;
    SIM_CHECK(crew->done_count == 1, "a ticket of a pool ended twice");
    sim_point("pool granted");
    gar_parker_wake(&crew->parker);
}

/* Until the grants are there, or the crew has waited enough. */
static void wait_for_grants(struct crew *crew)
{
    while (crew->done_count == 0) {
        if (gar_parker_wait(&crew->parker, crew->cancel_ns) == GAR_PARK_TIMEOUT) {
            crew->cancel_ns = GAR_CLOCK_NEVER;
            (void)gar_ledger_cancel(&crew->ticket);
        }
    }
}

static void free_crew(void *context)
{
    free(context);
}

static void crew_main(void *context)
{
    static const int64_t shares[] = {2000, 3333, 5000, 7500, GAR_SHARES};
    struct crew *crew = context;
    struct machine *machine = crew->machine;
    struct sim_rng *rng = &machine->play->rng;
    struct gar_ledger_want want = {.count = 1 + sim_below(rng, ACTORS_MAX), .holder = "crew"};
    struct gar_error err = GAR_ERROR_INIT;
    gar_resource_request_init(&want.request);
    want.count_min = sim_chance(rng, 50) ? 1 : 0;
    want.strategy = sim_chance(rng, 50) ? GAR_GPU_PACK : GAR_GPU_SPREAD;
    want.request.cpu_shares = sim_below(rng, GAR_SHARES);
    if (sim_chance(rng, 70)) {
        want.request.gpu_shares = shares[sim_below(rng, GAR_COUNT_OF(shares))];
    }
    crew->ticket.on_done = on_granted;
    crew->fault_percent = sim_chance(rng, 40) ? 0 : (int32_t)sim_below(rng, 40);
    crew->alarm_ns = GAR_CLOCK_NEVER;
    crew->cancel_ns =
        sim_chance(rng, 30) ? sim_now_ns() + sim_below(rng, 20 * GAR_NS_PER_MS) : GAR_CLOCK_NEVER;
    crew->status = gar_ledger_acquire(machine->ledger, &want, 1, &crew->ticket, &err);
    if (crew->status == GAR_PENDING) {
        wait_for_grants(crew);
    }
    sim_trace("pool admitted: %s", gar_status_text(crew->status));
    SIM_CHECK(crew->status != GAR_ERR_NOMEM || machine->play->has_refused_memory,
              "the ledger found no memory: %s", err.message);
    if (crew->status == GAR_OK) {
        run_pool(crew);
    }
    gar_ledger_ticket_destroy(&crew->ticket);
    sim_play_later(machine->play, free_crew, crew);
}

/* ---- the machine ---- */

/* What is free and what is held is all there is. */
static void check_books(const struct machine *machine, bool is_end)
{
    struct gar_resources *now = NULL;
    if (gar_ledger_snapshot(machine->ledger, &now, NULL) < 0) {
        SIM_CHECK(machine->play->has_refused_memory, "no snapshot of the ledger");
        return;
    }
    int64_t cpu_shares = now->free_cpu_shares;
    int64_t shares[DEVICES_MAX] = {0};
    for (int64_t h = 0; h < now->holder_count; h++) {
        const struct gar_resource_holder *holder = &now->holders[h];
        cpu_shares += gar_max_i64(holder->request.cpu_shares, 0);
        for (int64_t d = 0; d < holder->device_count; d++) {
            shares[holder->devices[d]] += gar_min_i64(holder->request.gpu_shares, GAR_SHARES);
        }
    }
    SIM_CHECK(cpu_shares == now->cpu_shares, "CPUs: free and held are %lld of %lld",
              (long long)cpu_shares, (long long)now->cpu_shares);
    for (int64_t d = 0; d < now->device_count; d++) {
        SIM_CHECK(shares[d] + now->devices[d].free_shares == GAR_SHARES,
                  "device %lld: free and held are not the whole", (long long)d);
    }
    SIM_CHECK(!is_end || (now->holder_count == 0 && now->waiting_count == 0),
              "somebody holds or waits at the end");
    gar_resources_free(now);
}

/* Counts, and mends devices: what waits for a lost one may get it after all. */
static void auditor(void *context)
{
    struct machine *machine = context;
    struct sim_rng *rng = &machine->play->rng;
    while (!machine->is_over) {
        sim_sleep(1 + sim_below(rng, 2 * GAR_NS_PER_MS));
        check_books(machine, false);
        if (machine->device_count > 0 && sim_chance(rng, 20)) {
            gar_ledger_restore(machine->ledger, (int32_t)sim_below(rng, machine->device_count));
        }
    }
}

static struct gar_ledger *make_ledger(struct machine *machine)
{
    struct gar_device_list list = {.count = 0};
    machine->device_count = (int32_t)sim_below(&machine->play->rng, DEVICES_MAX + 1);
    list.devices = gar_calloc(DEVICES_MAX, (int64_t)sizeof *list.devices);
    if (list.devices == NULL) {
        return NULL;
    }
    list.count = machine->device_count;
    list.capacity = DEVICES_MAX;
    for (int32_t d = 0; d < machine->device_count; d++) {
        list.devices[d].name[0] = (char)('0' + d);
        list.devices[d].memory_bytes = -1;
    }
    const struct gar_ledger_options options = {.cpu_shares = 3 * GAR_SHARES, .devices = &list};
    struct gar_ledger *ledger = NULL;
    const enum gar_status status = gar_ledger_new(&options, &ledger, NULL);
    gar_device_list_destroy(&list);
    return status == GAR_OK ? ledger : NULL;
}

static void machine_main(void *context)
{
    struct machine *machine = context;
    struct sim_thread *threads[CREWS_MAX];
    const int64_t count = 1 + sim_below(&machine->play->rng, CREWS_MAX);
    machine->ledger = make_ledger(machine);
    if (machine->ledger == NULL) {
        SIM_CHECK(machine->play->has_refused_memory, "no ledger");
        free(machine);
        return;
    }
    struct sim_thread *counter = sim_spawn("pool auditor", auditor, machine);
    for (int64_t i = 0; i < count; i++) {
        struct crew *crew = calloc(1, sizeof *crew);
        SIM_CHECK(crew != NULL, "no memory");
        crew->machine = machine;
        threads[i] = sim_spawn("pool", crew_main, crew);
    }
    for (int64_t i = 0; i < count; i++) {
        sim_join(threads[i]);
    }
    machine->is_over = true;
    sim_join(counter);
    check_books(machine, true);
    gar_ledger_unref(machine->ledger);
    free(machine);
}

struct sim_thread *sim_play_pool(struct sim_play *play)
{
    struct machine *machine = calloc(1, sizeof *machine);
    SIM_CHECK(machine != NULL, "no memory");
    machine->play = play;
    return sim_spawn("pool machine", machine_main, machine);
}
