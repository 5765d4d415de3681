/* SPDX-License-Identifier: Apache-2.0 */
/* The state machine of a pool.
 *
 * Every command and event changes states and then calls `advance`, which does all that follows from them: gives waiting
 * parts to free actors, finishes calls, stops actors, tells the end, sets the alarm. Nothing else talks to the world but
 * for start, kill and on_nulled. `advance` called from inside the world's finish only asks for another turn. */
#include "actors/roster.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "os/clock.h"

/* Calls shorter than this on average are worth sending one ahead, so that the next waits at the actor. */
#define SHORT_CALL_NS (5 * GAR_NS_PER_MS)
/* Failing starts in a row until the pool gives up (or as many as a batch has tries), where one may be an accident: the
 * actor had been ready before, or a signal ended it. */
#define START_FAILURES_MAX 5

enum actor_state {
    ACTOR_NONE, /* never started; of a pool that grows perhaps later */
    ACTOR_STARTING,
    ACTOR_READY,
    ACTOR_STOPPING, /* asked to end normally */
    ACTOR_WAITING,  /* dead; to be started again at `deadline_ns` */
    ACTOR_DEAD,
    ACTOR_ASIDE, /* dead, its device is out of service */
};

struct actor {
    enum actor_state state;
    bool is_killed;   /* a kill was asked for in this life */
    bool is_expected; /* its death is nobody's failure */
    bool has_been_ready;
    struct gar_actor_failure *reason; /* why it is killed; owned, or NULL */
    struct gar_roster_part *first;    /* at work, oldest first */
    struct gar_roster_part *last;
    int32_t at_work;
    int64_t since_ns;    /* the oldest part began; STARTING: the start */
    int64_t check_ns;    /* look whether it is stopped */
    int64_t deadline_ns; /* STARTING, STOPPING: then it is killed; WAITING: then it is started */
    int64_t average_ns;  /* of its calls; -1: none yet */
};

struct part_list {
    struct gar_roster_part *first;
    struct gar_roster_part *last;
};

enum mode {
    MODE_IDLE, /* not started */
    MODE_RUNNING,
    MODE_ENDING,  /* no more calls will come */
    MODE_KILLING, /* failed or cancelled */
    MODE_ENDED,
};

struct gar_roster {
    struct gar_actor_policy policy;
    const struct gar_roster_world *world;
    void *context;
    enum mode mode;
    bool is_advancing;
    bool advance_again;
    bool wants_room; /* a submit was refused */
    bool has_failed;
    struct gar_actor_failure *failure; /* owned; the first */
    struct part_list waiting;
    struct gar_roster_call *open; /* all calls not finished */
    struct gar_roster_call *finished;
    int64_t open_count;
    int64_t open_max;
    int32_t start_failures;
    int64_t start_ns; /* that the last start took */
    int64_t
        pressed_ns; /* since when parts wait with all actors at work; GAR_CLOCK_NEVER: they do not */
    int64_t restarts;
    int64_t retries;
    int64_t rows;
    int64_t nulled;
    int64_t alarm_ns;
    int32_t count;
    struct actor actors[];
};

static void advance(struct gar_roster *r, int64_t now_ns);

static int64_t later(int64_t now_ns, int64_t after_ns)
{
    return after_ns > INT64_MAX - now_ns ? GAR_CLOCK_NEVER : now_ns + after_ns;
}

static int64_t or_default(int64_t value, int64_t fallback)
{
    return value > 0 ? value : fallback;
}

enum gar_status gar_roster_new(const struct gar_actor_policy *policy, int32_t actors,
                               const struct gar_roster_world *world, void *context,
                               struct gar_roster **out, struct gar_error *err)
{
    const int64_t bytes =
        (int64_t)sizeof(struct gar_roster) + actors * (int64_t)sizeof(struct actor);
    struct gar_roster *r = gar_calloc(1, bytes);
    if (r == NULL) {
        return gar_error_nomem(err, bytes);
    }
    r->policy = *policy;
    struct gar_actor_policy *p = &r->policy;
    p->max_restarts = p->max_restarts > 0 ? p->max_restarts : 64 + 4 * actors;
    p->backoff_ns = or_default(p->backoff_ns, 100 * GAR_NS_PER_MS);
    p->backoff_max_ns = or_default(p->backoff_max_ns, 60 * GAR_NS_PER_S);
    p->start_limit_ns = or_default(p->start_limit_ns, 120 * GAR_NS_PER_S);
    p->call_limit_ns = or_default(p->call_limit_ns, GAR_CLOCK_NEVER);
    p->stop_limit_ns = or_default(p->stop_limit_ns, 30 * GAR_NS_PER_S);
    p->close_limit_ns = or_default(p->close_limit_ns, 5 * GAR_NS_PER_S);
    r->world = world;
    r->context = context;
    r->count = actors;
    r->open_max = 2 * (int64_t)actors + 2;
    r->alarm_ns = GAR_CLOCK_NEVER;
    r->pressed_ns = GAR_CLOCK_NEVER;
    for (int32_t i = 0; i < actors; i++) {
        r->actors[i].average_ns = -1;
    }
    *out = r;
    return GAR_OK;
}

void gar_roster_free(struct gar_roster *r)
{
    if (r == NULL) {
        return;
    }
    for (int32_t i = 0; i < r->count; i++) {
        gar_actor_failure_free(r->actors[i].reason);
    }
    gar_actor_failure_free(r->failure);
    gar_free(r);
}

/* ---- lists ---- */

static void push_back(struct part_list *list, struct gar_roster_part *part)
{
    part->next = NULL;
    if (list->last != NULL) {
        list->last->next = part;
    } else {
        list->first = part;
    }
    list->last = part;
}

static void push_front(struct part_list *list, struct gar_roster_part *part)
{
    part->next = list->first;
    list->first = part;
    if (list->last == NULL) {
        list->last = part;
    }
}

/* The first part that may be tried now, taken out of the list. */
static struct gar_roster_part *take_due(struct part_list *list, int64_t now_ns)
{
    struct gar_roster_part *before = NULL;
    for (struct gar_roster_part *part = list->first; part != NULL; part = part->next) {
        if (part->not_before_ns <= now_ns) {
            if (before != NULL) {
                before->next = part->next;
            } else {
                list->first = part->next;
            }
            if (list->last == part) {
                list->last = before;
            }
            part->next = NULL;
            return part;
        }
        before = part;
    }
    return NULL;
}

/* All parts an actor has, oldest first, and none any more. */
static struct gar_roster_part *take_work(struct actor *actor)
{
    struct gar_roster_part *work = actor->first;
    actor->first = NULL;
    actor->last = NULL;
    actor->at_work = 0;
    return work;
}

/* Back to the front of what waits, in the same order. */
static void put_back(struct gar_roster *r, struct gar_roster_part *work)
{
    struct gar_roster_part *turned = NULL;
    while (work != NULL) {
        struct gar_roster_part *next = work->next;
        work->next = turned;
        turned = work;
        work = next;
    }
    while (turned != NULL) {
        struct gar_roster_part *next = turned->next;
        push_front(&r->waiting, turned);
        turned = next;
    }
}

static void free_parts(struct gar_roster *r, struct gar_roster_call *call)
{
    while (call->parts != NULL) {
        struct gar_roster_part *part = call->parts;
        call->parts = part->sibling;
        if (part->result != NULL) {
            r->world->drop_result(r->context, part->result);
        }
        gar_free(part);
    }
}

/* ---- calls ---- */

static void finish_call(struct gar_roster *r, struct gar_roster_call *call)
{
    if (call->previous != NULL) {
        call->previous->next = call->next;
    } else {
        r->open = call->next;
    }
    if (call->next != NULL) {
        call->next->previous = call->previous;
    }
    r->open_count--;
    call->previous = NULL;
    call->next = r->finished;
    r->finished = call;
}

static void part_done(struct gar_roster *r, struct gar_roster_part *part)
{
    struct gar_roster_call *call = part->call;
    part->is_done = true;
    call->open--;
    if (call->open == 0) {
        r->rows += call->rows;
        finish_call(r, call);
    }
}

static bool is_over(const struct gar_roster *r)
{
    return r->mode == MODE_KILLING || r->mode == MODE_ENDED;
}

/* ---- killing ---- */

static void kill_actor(struct gar_roster *r, int32_t number, struct gar_actor_failure *reason)
{
    struct actor *actor = &r->actors[number];
    if (actor->is_killed) {
        gar_actor_failure_free(reason);
        return;
    }
    actor->is_killed = true;
    actor->is_expected = reason == NULL;
    actor->reason = reason;
    r->world->kill(r->context, number);
}

/* Everything ends now. Parts at work or waiting are dropped; a call goes when none of its results is on the way. */
static void begin_killing(struct gar_roster *r)
{
    if (is_over(r)) {
        return;
    }
    r->mode = MODE_KILLING;
    r->waiting = (struct part_list){NULL, NULL};
    for (int32_t i = 0; i < r->count; i++) {
        struct actor *actor = &r->actors[i];
        (void)take_work(actor);
        switch (actor->state) {
        case ACTOR_STARTING:
        case ACTOR_READY:
        case ACTOR_STOPPING:
            actor->is_expected = true;
            kill_actor(r, i, NULL);
            break;
        case ACTOR_WAITING:
        case ACTOR_NONE: actor->state = ACTOR_DEAD; break;
        case ACTOR_DEAD:
        case ACTOR_ASIDE: break;
        }
    }
}

static void fail(struct gar_roster *r, struct gar_actor_failure *failure)
{
    if (is_over(r)) {
        gar_actor_failure_free(failure);
        return;
    }
    r->has_failed = true;
    r->failure = failure;
    begin_killing(r);
}

/* ---- parts that failed ---- */

static int64_t backoff(const struct gar_roster *r, int32_t tries)
{
    int64_t ns = r->policy.backoff_ns;
    for (int32_t i = 1; i < tries && ns < r->policy.backoff_max_ns; i++) {
        ns *= 2;
    }
    return gar_min_i64(ns, r->policy.backoff_max_ns);
}

/* The second half of a part becomes a part of its own. False without memory. */
static bool halve(struct gar_roster *r, struct gar_roster_part *part)
{
    struct gar_roster_part *half = gar_calloc(1, (int64_t)sizeof *half);
    if (half == NULL) {
        return false;
    }
    half->call = part->call;
    half->rows = part->rows / 2;
    part->rows -= half->rows;
    half->offset = part->offset + part->rows;
    half->tries = part->tries;
    half->sibling = part->sibling;
    part->sibling = half;
    part->call->open++;
    part->not_before_ns = 0;
    push_front(&r->waiting, half);
    push_front(&r->waiting, part);
    return true;
}

/* Can trying again, or leaving rows out, help at all? */
static bool is_about_rows(enum gar_actor_fault fault)
{
    switch (fault) {
    case GAR_ACTOR_RAISED:
    case GAR_ACTOR_BAD_RESULT:
    case GAR_ACTOR_DIED:
    case GAR_ACTOR_TOO_SLOW:
    case GAR_ACTOR_PROTOCOL: return true;
    case GAR_ACTOR_LOST_DEVICE:
    case GAR_ACTOR_NO_FAULT:
    case GAR_ACTOR_NO_START:
    case GAR_ACTOR_NO_ROOM: break;
    }
    return false;
}

/* What the policy says of a part that failed. The failure is moved. */
static void judge_part(struct gar_roster *r, struct gar_roster_part *part,
                       struct gar_actor_failure *failure, int64_t now_ns)
{
    if (is_over(r) || failure == NULL || !is_about_rows(failure->fault)) {
        fail(r, failure);
        return;
    }
    part->is_answered = false;
    if (part->tries < r->policy.max_retries) {
        part->tries++;
        r->retries++;
        part->not_before_ns = later(now_ns, failure->retry_after_ns >= 0 ? failure->retry_after_ns
                                                                         : backoff(r, part->tries));
        push_front(&r->waiting, part);
    } else if (r->policy.on_error == GAR_ACTOR_RAISE) {
        fail(r, failure);
        return;
    } else if (part->rows == 1) {
        r->world->on_nulled(r->context, part, failure);
        part->is_null = true;
        r->nulled++;
        part_done(r, part);
    } else if (!halve(r, part)) {
        fail(r, NULL);
    }
    gar_actor_failure_free(failure);
}

/* ---- actors that start and die ---- */

static void start_actor(struct gar_roster *r, int32_t number, int64_t now_ns)
{
    struct actor *actor = &r->actors[number];
    actor->state = ACTOR_STARTING;
    actor->is_killed = false;
    actor->is_expected = false;
    gar_actor_failure_free(actor->reason);
    actor->reason = NULL;
    actor->since_ns = now_ns;
    actor->deadline_ns = later(now_ns, r->policy.start_limit_ns);
    r->world->start(r->context, number);
}

/* That live, or can be started while the pool runs. */
static int32_t live_actors(const struct gar_roster *r)
{
    int32_t live = 0;
    for (int32_t i = 0; i < r->count; i++) {
        const enum actor_state state = r->actors[i].state;
        live += state != ACTOR_STOPPING && state != ACTOR_DEAD && state != ACTOR_ASIDE;
    }
    return live;
}

static bool allows_loss(const struct gar_roster *r)
{
    return r->policy.max_retries > 0 || r->policy.on_error != GAR_ACTOR_RAISE;
}

/* A dead actor's place: start again, or leave it. `failure` (moved) tells when nothing is left. */
static void refill(struct gar_roster *r, int32_t number, enum gar_roster_verdict verdict,
                   struct gar_actor_failure *failure, int64_t now_ns)
{
    struct actor *actor = &r->actors[number];
    if (is_over(r)) {
        gar_actor_failure_free(failure);
        return;
    }
    if (verdict == GAR_ROSTER_ASIDE) {
        actor->state = ACTOR_ASIDE;
    } else if (r->restarts < r->policy.max_restarts) {
        r->restarts++;
        actor->state = ACTOR_WAITING;
        actor->deadline_ns =
            r->start_failures > 0 ? later(now_ns, backoff(r, r->start_failures)) : now_ns;
    }
    if (live_actors(r) == 0) {
        fail(r, failure);
    } else {
        gar_actor_failure_free(failure);
    }
}

/* The failure that counts when a killed actor's death is told: why it was killed, with what is known of its end. */
static struct gar_actor_failure *merge_reason(struct actor *actor, struct gar_actor_failure *death)
{
    struct gar_actor_failure *reason = actor->reason;
    if (reason == NULL) {
        return death;
    }
    actor->reason = NULL;
    if (death != NULL) {
        reason->actor = death->actor;
        reason->pid = death->pid;
        reason->log = death->log;
        death->log = NULL;
        if (reason->device == NULL) {
            reason->device = death->device;
            death->device = NULL;
        }
    }
    gar_actor_failure_free(death);
    return reason;
}

static struct gar_actor_failure *copy_failure(const struct gar_actor_failure *from)
{
    struct gar_actor_failure *copy =
        from == NULL ? NULL : gar_actor_failure_new(from->fault, "%s", from->text);
    if (copy != NULL) {
        copy->type = from->type != NULL ? gar_strdup(from->type) : NULL;
        copy->log = from->log != NULL ? gar_strdup(from->log) : NULL;
        copy->device = from->device != NULL ? gar_strdup(from->device) : NULL;
        copy->actor = from->actor;
        copy->pid = from->pid;
        copy->exit_code = from->exit_code;
        copy->signal = from->signal;
    }
    return copy;
}

static void place_rows(struct gar_actor_failure *failure, const struct gar_roster_part *part)
{
    if (failure != NULL) {
        failure->first_row = part->call->first_row + part->offset;
        failure->rows = part->rows;
    }
}

/* It died while it worked (or waited for work): the oldest part is the one it failed at, the others were not begun. */
static void died_ready(struct gar_roster *r, int32_t number, struct gar_actor_failure *failure,
                       enum gar_roster_verdict verdict, int64_t now_ns)
{
    struct gar_roster_part *work = take_work(&r->actors[number]);
    if (work == NULL) {
        if (!allows_loss(r)) {
            fail(r, failure);
            return;
        }
        refill(r, number, verdict, failure, now_ns);
        return;
    }
    put_back(r, work->next);
    work->next = NULL;
    place_rows(failure, work);
    struct gar_actor_failure *copy = copy_failure(failure);
    if (copy != NULL) {
        place_rows(copy, work);
    }
    if (verdict == GAR_ROSTER_ASIDE && allows_loss(r)) {
        /* Not the rows' fault, and it cannot happen more often than there are actors. */
        r->retries++;
        push_front(&r->waiting, work);
        gar_actor_failure_free(failure);
    } else {
        judge_part(r, work, failure, now_ns);
    }
    refill(r, number, verdict, copy, now_ns);
}

static void died_starting(struct gar_roster *r, int32_t number, struct gar_actor_failure *failure,
                          enum gar_roster_verdict verdict, int64_t now_ns)
{
    struct actor *actor = &r->actors[number];
    r->start_failures++;
    if (failure != NULL && failure->fault == GAR_ACTOR_DIED) {
        failure->fault = GAR_ACTOR_NO_START;
    }
    const bool is_accident = actor->has_been_ready || (failure != NULL && failure->signal != 0);
    const bool may_go_on =
        allows_loss(r) && (verdict == GAR_ROSTER_ASIDE ||
                           (is_accident && r->start_failures < gar_max_i64(START_FAILURES_MAX,
                                                                           r->policy.max_retries)));
    if (may_go_on) {
        refill(r, number, verdict, failure, now_ns);
    } else {
        fail(r, failure);
    }
}

/* ---- what follows from the states ---- */

/* The best actor for the next part: one that has nothing, else one of the quick ones that has one. -1: none. */
static int32_t choose_actor(const struct gar_roster *r)
{
    int32_t ahead = -1;
    for (int32_t i = 0; i < r->count; i++) {
        const struct actor *actor = &r->actors[i];
        if (actor->state != ACTOR_READY || actor->is_killed) {
            continue;
        }
        if (actor->at_work == 0) {
            return i;
        }
        if (ahead < 0 && actor->at_work == 1 && actor->average_ns >= 0 &&
            actor->average_ns < SHORT_CALL_NS) {
            ahead = i;
        }
    }
    return ahead;
}

static void begin_part(struct gar_roster *r, struct actor *actor, int64_t now_ns)
{
    actor->since_ns = now_ns;
    actor->check_ns = later(now_ns, r->policy.stop_limit_ns);
}

static void dispatch(struct gar_roster *r, int64_t now_ns)
{
    while (r->waiting.first != NULL) {
        const int32_t number = choose_actor(r);
        struct gar_roster_part *part = number < 0 ? NULL : take_due(&r->waiting, now_ns);
        if (part == NULL) {
            return;
        }
        struct actor *actor = &r->actors[number];
        if (actor->last != NULL) {
            actor->last->next = part;
        } else {
            actor->first = part;
            begin_part(r, actor, now_ns);
        }
        actor->last = part;
        actor->at_work++;
        r->world->send(r->context, number, part);
    }
}

/* The first actor that was never started; -1: none. */
static int32_t next_actor(const struct gar_roster *r)
{
    for (int32_t i = 0; i < r->count; i++) {
        if (r->actors[i].state == ACTOR_NONE) {
            return i;
        }
    }
    return -1;
}

/* Are parts waiting because all that could take them are at work? And nobody is on the way to help. */
static bool is_pressed(const struct gar_roster *r)
{
    for (int32_t i = 0; i < r->count; i++) {
        const struct actor *actor = &r->actors[i];
        if (actor->state == ACTOR_STARTING || actor->state == ACTOR_WAITING ||
            (actor->state == ACTOR_READY && (actor->at_work == 0 || actor->is_killed))) {
            return false;
        }
    }
    return r->waiting.first != NULL;
}

/* A pool that grows: one more actor, when having waited for so long is as dear as a start. */
static void grow(struct gar_roster *r, int64_t now_ns)
{
    const int32_t next = next_actor(r);
    if (next < 0 || !is_pressed(r)) {
        r->pressed_ns = GAR_CLOCK_NEVER;
        return;
    }
    if (r->pressed_ns == GAR_CLOCK_NEVER) {
        r->pressed_ns = now_ns;
    }
    bool has_ready = false;
    for (int32_t i = 0; i < r->count; i++) {
        has_ready |= r->actors[i].state == ACTOR_READY;
    }
    if (!has_ready || later(r->pressed_ns, r->start_ns) <= now_ns) {
        r->pressed_ns = GAR_CLOCK_NEVER;
        start_actor(r, next, now_ns);
    }
}

/* The normal end, when all calls are done. */
static void stop_actors(struct gar_roster *r, int64_t now_ns)
{
    for (int32_t i = 0; i < r->count; i++) {
        struct actor *actor = &r->actors[i];
        switch (actor->state) {
        case ACTOR_READY:
            if (!actor->is_killed) {
                actor->state = ACTOR_STOPPING;
                actor->deadline_ns = later(now_ns, r->policy.close_limit_ns);
                r->world->stop(r->context, i);
            }
            break;
        case ACTOR_STARTING: kill_actor(r, i, NULL); break;
        case ACTOR_NONE:
        case ACTOR_WAITING: actor->state = ACTOR_DEAD; break;
        case ACTOR_STOPPING:
        case ACTOR_DEAD:
        case ACTOR_ASIDE: break;
        }
    }
}

static void cancel_calls(struct gar_roster *r)
{
    struct gar_roster_call *next = NULL;
    for (struct gar_roster_call *call = r->open; call != NULL; call = next) {
        next = call->next;
        if (call->on_way == 0) {
            call->is_cancelled = true;
            finish_call(r, call);
        }
    }
}

static void tell_finished(struct gar_roster *r)
{
    while (r->finished != NULL) {
        struct gar_roster_call *call = r->finished;
        r->finished = call->next;
        if (call->is_cancelled) {
            free_parts(r, call);
        }
        r->world->finish(r->context, call);
    }
}

static bool all_dead(const struct gar_roster *r)
{
    for (int32_t i = 0; i < r->count; i++) {
        const enum actor_state state = r->actors[i].state;
        if (state != ACTOR_DEAD && state != ACTOR_ASIDE) {
            return false;
        }
    }
    return true;
}

static int64_t next_time(const struct gar_roster *r)
{
    int64_t at =
        r->pressed_ns == GAR_CLOCK_NEVER ? GAR_CLOCK_NEVER : later(r->pressed_ns, r->start_ns);
    for (int32_t i = 0; i < r->count; i++) {
        const struct actor *actor = &r->actors[i];
        switch (actor->state) {
        case ACTOR_STARTING:
        case ACTOR_STOPPING:
            at = actor->is_killed ? at : gar_min_i64(at, actor->deadline_ns);
            break;
        case ACTOR_WAITING: at = gar_min_i64(at, actor->deadline_ns); break;
        case ACTOR_READY:
            if (actor->first != NULL && !actor->is_killed) {
                at = gar_min_i64(at, later(actor->since_ns, r->policy.call_limit_ns));
                at = gar_min_i64(at, actor->check_ns);
            }
            break;
        case ACTOR_NONE:
        case ACTOR_DEAD:
        case ACTOR_ASIDE: break;
        }
    }
    for (const struct gar_roster_part *p = r->waiting.first; p != NULL; p = p->next) {
        if (p->not_before_ns > 0) {
            at = gar_min_i64(at, p->not_before_ns);
        }
    }
    return at;
}

/* A part whose time has come but that finds no free actor needs no alarm: the actor's answer is the event. */
static void set_alarm(struct gar_roster *r, int64_t now_ns)
{
    for (struct gar_roster_part *p = r->waiting.first; p != NULL; p = p->next) {
        if (p->not_before_ns <= now_ns) {
            p->not_before_ns = 0;
        }
    }
    const int64_t at = next_time(r);
    if (at != r->alarm_ns) {
        r->alarm_ns = at;
        r->world->set_alarm(r->context, at);
    }
}

static void advance_once(struct gar_roster *r, int64_t now_ns)
{
    if (r->mode == MODE_RUNNING || r->mode == MODE_ENDING) {
        dispatch(r, now_ns);
        grow(r, now_ns);
    } else {
        r->pressed_ns = GAR_CLOCK_NEVER;
    }
    if (r->mode == MODE_ENDING && r->open_count == 0) {
        stop_actors(r, now_ns);
    }
    if (r->mode == MODE_KILLING) {
        cancel_calls(r);
    }
    tell_finished(r);
    if (r->wants_room && r->open_count < r->open_max) {
        r->wants_room = false;
        r->world->on_room(r->context);
    }
}

/* The roster may be gone afterwards. */
static void advance(struct gar_roster *r, int64_t now_ns)
{
    if (r->is_advancing) {
        r->advance_again = true;
        return;
    }
    r->is_advancing = true;
    do {
        r->advance_again = false;
        advance_once(r, now_ns);
    } while (r->advance_again);
    r->is_advancing = false;
    set_alarm(r, now_ns);
    const bool is_ending = r->mode == MODE_ENDING || r->mode == MODE_KILLING;
    if (is_ending && r->open_count == 0 && all_dead(r)) {
        r->mode = MODE_ENDED;
        struct gar_actor_failure *failure = r->failure;
        r->failure = NULL;
        r->world->on_ended(r->context, r->has_failed, failure);
    }
}

/* ---- commands ---- */

void gar_roster_start(struct gar_roster *r, int64_t now_ns)
{
    if (r->mode == MODE_IDLE) {
        r->mode = MODE_RUNNING;
        for (int32_t i = 0; i < (r->policy.grows ? 1 : r->count); i++) {
            start_actor(r, i, now_ns);
        }
        advance(r, now_ns);
    }
}

enum gar_status gar_roster_submit(struct gar_roster *r, struct gar_roster_call *call,
                                  int64_t now_ns)
{
    if (r->mode != MODE_RUNNING && r->mode != MODE_IDLE) {
        return GAR_ERR_CANCELLED;
    }
    if (r->open_count >= r->open_max) {
        r->wants_room = true;
        return GAR_PENDING;
    }
    struct gar_roster_part *part = gar_calloc(1, (int64_t)sizeof *part);
    if (part == NULL) {
        return GAR_ERR_NOMEM;
    }
    part->call = call;
    part->rows = call->rows;
    call->parts = part;
    call->open = 1;
    call->on_way = 0;
    call->is_cancelled = false;
    call->previous = NULL;
    call->next = r->open;
    if (r->open != NULL) {
        r->open->previous = call;
    }
    r->open = call;
    r->open_count++;
    push_back(&r->waiting, part);
    advance(r, now_ns);
    return GAR_OK;
}

void gar_roster_end(struct gar_roster *r, int64_t now_ns)
{
    if (r->mode == MODE_RUNNING || r->mode == MODE_IDLE) {
        if (r->mode == MODE_IDLE && r->open_count > 0) {
            begin_killing(r); /* calls that nobody will ever work on */
        } else {
            r->mode = MODE_ENDING;
        }
        advance(r, now_ns);
    }
}

void gar_roster_cancel(struct gar_roster *r, int64_t now_ns)
{
    if (!is_over(r)) {
        begin_killing(r);
        advance(r, now_ns);
    }
}

void gar_roster_fail(struct gar_roster *r, struct gar_actor_failure *failure, int64_t now_ns)
{
    const bool was_over = is_over(r);
    fail(r, failure);
    if (!was_over) {
        advance(r, now_ns);
    }
}

/* ---- events ---- */

void gar_roster_ready(struct gar_roster *r, int32_t number, int64_t now_ns)
{
    struct actor *actor = &r->actors[number];
    if (actor->state == ACTOR_STARTING) {
        actor->state = ACTOR_READY;
        actor->has_been_ready = true;
        r->start_ns = now_ns - actor->since_ns;
        r->start_failures = 0;
        advance(r, now_ns);
    }
}

struct gar_roster_part *gar_roster_answered(struct gar_roster *r, int32_t number, int64_t now_ns)
{
    struct actor *actor = &r->actors[number];
    struct gar_roster_part *part = actor->first;
    if (part == NULL) {
        return NULL;
    }
    actor->first = part->next;
    part->next = NULL;
    if (actor->first == NULL) {
        actor->last = NULL;
    }
    actor->at_work--;
    const int64_t took_ns = now_ns - actor->since_ns;
    actor->average_ns = actor->average_ns < 0 ? took_ns : (3 * actor->average_ns + took_ns) / 4;
    begin_part(r, actor, now_ns);
    part->is_answered = true;
    part->call->on_way++;
    advance(r, now_ns);
    return part;
}

void gar_roster_result(struct gar_roster *r, struct gar_roster_part *part, void *result,
                       int64_t now_ns)
{
    part->call->on_way--;
    part->result = result;
    part_done(r, part);
    advance(r, now_ns);
}

void gar_roster_part_failed(struct gar_roster *r, int32_t number, struct gar_roster_part *part,
                            struct gar_actor_failure *failure, enum gar_roster_verdict verdict,
                            int64_t now_ns)
{
    struct actor *actor = &r->actors[number];
    part->call->on_way--;
    place_rows(failure, part);
    if (is_over(r)) {
        gar_actor_failure_free(failure);
        advance(r, now_ns);
        return;
    }
    const bool can_move = verdict == GAR_ROSTER_ASIDE && allows_loss(r) && live_actors(r) > 1;
    if (verdict != GAR_ROSTER_KEEP && actor->state == ACTOR_READY && !actor->is_killed) {
        put_back(r, take_work(actor));
        kill_actor(r, number, copy_failure(failure));
    }
    if (can_move) {
        part->is_answered = false;
        r->retries++;
        push_front(&r->waiting, part);
        gar_actor_failure_free(failure);
    } else {
        judge_part(r, part, failure, now_ns);
    }
    advance(r, now_ns);
}

void gar_roster_broken(struct gar_roster *r, int32_t number, struct gar_actor_failure *failure,
                       int64_t now_ns)
{
    struct actor *actor = &r->actors[number];
    if (is_over(r) || (actor->state != ACTOR_STARTING && actor->state != ACTOR_READY)) {
        gar_actor_failure_free(failure);
        return;
    }
    kill_actor(r, number, failure);
    advance(r, now_ns);
}

void gar_roster_dead(struct gar_roster *r, int32_t number, struct gar_actor_failure *failure,
                     enum gar_roster_verdict verdict, int64_t now_ns)
{
    struct actor *actor = &r->actors[number];
    const enum actor_state before = actor->state;
    if (before == ACTOR_NONE || before == ACTOR_DEAD || before == ACTOR_ASIDE ||
        before == ACTOR_WAITING) {
        gar_actor_failure_free(failure);
        return;
    }
    const bool is_spoiled = actor->reason != NULL && actor->first == NULL;
    failure = merge_reason(actor, failure);
    actor->state = ACTOR_DEAD;
    if (is_over(r) || before == ACTOR_STOPPING || actor->is_expected) {
        gar_actor_failure_free(failure);
    } else if (before == ACTOR_STARTING) {
        died_starting(r, number, failure, verdict, now_ns);
    } else if (is_spoiled && allows_loss(r)) { /* its part was judged when it was killed */
        refill(r, number, verdict, failure, now_ns);
    } else {
        died_ready(r, number, failure, verdict, now_ns);
    }
    advance(r, now_ns);
}

/* One actor whose time has come. */
static void check_actor(struct gar_roster *r, int32_t number, int64_t now_ns)
{
    struct actor *actor = &r->actors[number];
    switch (actor->state) {
    case ACTOR_STARTING:
        if (actor->deadline_ns <= now_ns) {
            kill_actor(r, number,
                       gar_actor_failure_new(GAR_ACTOR_NO_START, "it was not ready within %.1f s",
                                             (double)r->policy.start_limit_ns / 1e9));
        }
        break;
    case ACTOR_STOPPING:
        if (actor->deadline_ns <= now_ns) {
            kill_actor(r, number, NULL);
        }
        break;
    case ACTOR_WAITING:
        if (actor->deadline_ns <= now_ns) {
            start_actor(r, number, now_ns);
        }
        break;
    case ACTOR_READY:
        if (actor->first == NULL || actor->is_killed) {
            break;
        }
        if (later(actor->since_ns, r->policy.call_limit_ns) <= now_ns) {
            kill_actor(r, number,
                       gar_actor_failure_new(GAR_ACTOR_TOO_SLOW,
                                             "the call took longer than its limit of %.1f s",
                                             (double)r->policy.call_limit_ns / 1e9));
        } else if (actor->check_ns <= now_ns) {
            actor->check_ns = later(now_ns, r->policy.stop_limit_ns);
            if (r->world->is_stopped(r->context, number)) {
                kill_actor(r, number,
                           gar_actor_failure_new(
                               GAR_ACTOR_TOO_SLOW,
                               "no progress for %.1f s: its process is stopped by a signal",
                               (double)(now_ns - actor->since_ns) / 1e9));
            }
        }
        break;
    case ACTOR_NONE:
    case ACTOR_DEAD:
    case ACTOR_ASIDE: break;
    }
}

void gar_roster_alarm(struct gar_roster *r, int64_t now_ns)
{
    r->alarm_ns = GAR_CLOCK_NEVER;
    for (int32_t i = 0; i < r->count; i++) {
        check_actor(r, i, now_ns);
    }
    advance(r, now_ns);
}

/* ---- looking ---- */

void gar_roster_figures(const struct gar_roster *r, struct gar_roster_figures *out)
{
    *out = (struct gar_roster_figures){
        .restarts = r->restarts, .retries = r->retries, .rows = r->rows, .nulled = r->nulled};
    for (int32_t i = 0; i < r->count; i++) {
        const struct actor *actor = &r->actors[i];
        out->ready += actor->state == ACTOR_READY && !actor->is_killed;
        out->busy += actor->state == ACTOR_READY && actor->at_work > 0;
        out->aside += actor->state == ACTOR_ASIDE;
    }
}

const struct gar_roster_part *gar_roster_at_work(const struct gar_roster *r, int32_t number)
{
    return r->actors[number].first;
}

bool gar_roster_is_ready(const struct gar_roster *r, int32_t number)
{
    return r->actors[number].state == ACTOR_READY;
}
