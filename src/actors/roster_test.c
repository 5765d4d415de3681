/* SPDX-License-Identifier: Apache-2.0 */
/* The state machine against a simulated world: actors that answer, fail, die, hang, lose their device and refuse to start,
 * at times that a seed decides, with ends and cancels at any moment. Whatever happens, each call finishes once, every
 * part of a good call is done or null, all actors are dead at the end, and the end comes. */
#include "actors/roster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "os/clock.h"

enum { ACTORS_MAX = 5, CALLS_MAX = 40 };

struct sim_actor {
    bool is_process; /* started and not reported dead */
    bool is_ready;
    bool is_dying; /* kill, stop or accident: dead will be told */
    bool is_stopped;
    bool is_aside;
    int32_t lives;
    struct gar_roster_part *work[4]; /* sent, oldest first */
    int32_t count;
};

struct sim_call {
    struct gar_roster_call call;
    int32_t finished;
};

struct sim {
    uint64_t seed;
    int64_t now_ns;
    int64_t alarm_ns;
    struct gar_roster *roster;
    struct sim_actor actors[ACTORS_MAX];
    int32_t count;
    struct sim_call calls[CALLS_MAX];
    int32_t submitted;
    struct gar_roster_part *on_way[64]; /* answered, result to come */
    int32_t on_way_actor[64];
    int32_t on_way_count;
    bool is_ended;
    bool has_failed;
    bool had_failure;
    int32_t fault_odds; /* of 1000 */
    int64_t results;    /* alive */
    int64_t poison;     /* this row of each call always fails; -1: none */
};

static uint64_t roll(struct sim *s)
{
    s->seed ^= s->seed << 13;
    s->seed ^= s->seed >> 7;
    s->seed ^= s->seed << 17;
    return s->seed * UINT64_C(0x2545F4914F6CDD1D) >> 11;
}

static bool chance(struct sim *s, int32_t of_1000)
{
    return (int32_t)(roll(s) % 1000) < of_1000;
}

static void on_start(void *world, int32_t actor)
{
    struct sim *s = world;
    struct sim_actor *a = &s->actors[actor];
    assert_false(a->is_process);
    assert_false(a->is_aside);
    a->is_process = true;
    a->is_ready = false;
    a->is_dying = false;
    a->is_stopped = false;
    a->count = 0;
    a->lives++;
}

static void on_send(void *world, int32_t actor, struct gar_roster_part *part)
{
    struct sim *s = world;
    struct sim_actor *a = &s->actors[actor];
    assert_true(a->is_process && a->is_ready && a->count < 2);
    assert_false(part->is_done);
    assert_true(part->rows > 0);
    a->work[a->count++] = part;
}

static void on_stop(void *world, int32_t actor)
{
    struct sim *s = world;
    assert_true(s->actors[actor].is_ready);
    assert_int_equal(s->actors[actor].count, 0);
    if (!chance(s, 100)) { /* else it hangs in its tear-down */
        s->actors[actor].is_dying = true;
    }
}

static void on_kill(void *world, int32_t actor)
{
    struct sim *s = world;
    assert_true(s->actors[actor].is_process);
    s->actors[actor].is_dying = true;
}

static bool on_is_stopped(void *world, int32_t actor)
{
    struct sim *s = world;
    return s->actors[actor].is_stopped;
}

static void on_set_alarm(void *world, int64_t deadline_ns)
{
    struct sim *s = world;
    s->alarm_ns = deadline_ns;
}

static void on_drop_result(void *world, void *result)
{
    struct sim *s = world;
    s->results--;
    gar_free(result);
}

static void on_finish(void *world, struct gar_roster_call *call)
{
    struct sim *s = world;
    struct sim_call *mine = call->owner;
    mine->finished++;
    assert_int_equal(mine->finished, 1);
    int64_t at = 0;
    while (call->parts != NULL) {
        struct gar_roster_part *part = call->parts;
        call->parts = part->sibling;
        assert_false(call->is_cancelled);
        assert_true(part->is_done);
        assert_int_equal(part->offset, at);
        assert_true(part->is_null == (part->result == NULL));
        at += part->rows;
        if (part->result != NULL) {
            on_drop_result(world, part->result);
        }
        gar_free(part);
    }
    if (!call->is_cancelled) {
        assert_int_equal(at, call->rows);
    }
    if (chance(s, 5)) {
        gar_roster_cancel(s->roster, s->now_ns);
    }
}

static void on_nulled(void *world, const struct gar_roster_part *part,
                      const struct gar_actor_failure *failure)
{
    (void)world;
    assert_int_equal(part->rows, 1);
    assert_non_null(failure);
    assert_int_equal(failure->first_row, part->call->first_row + part->offset);
}

static void on_room(void *world)
{
    (void)world;
}

static void on_ended(void *world, bool has_failed, struct gar_actor_failure *failure)
{
    struct sim *s = world;
    assert_false(s->is_ended);
    s->is_ended = true;
    s->has_failed = has_failed;
    s->had_failure = failure != NULL;
    gar_actor_failure_free(failure);
}

static const struct gar_roster_world world_table = {
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

static void tell_death(struct sim *s, int32_t number)
{
    struct sim_actor *a = &s->actors[number];
    a->is_process = false;
    a->is_ready = false;
    a->count = 0;
    a->is_aside |= chance(s, s->fault_odds / 20);
    gar_roster_dead(s->roster, number, gar_actor_failure_new(GAR_ACTOR_DIED, "killed by signal 9"),
                    a->is_aside ? GAR_ROSTER_ASIDE : GAR_ROSTER_KEEP, s->now_ns);
}

static bool has_poison(const struct sim *s, const struct gar_roster_part *part)
{
    return s->poison >= part->offset && s->poison < part->offset + part->rows;
}

/* A result or failure that was on the way arrives. */
static void arrive(struct sim *s)
{
    const int32_t k = (int32_t)(roll(s) % (uint64_t)s->on_way_count);
    struct gar_roster_part *part = s->on_way[k];
    const int32_t actor = s->on_way_actor[k];
    s->on_way_count--;
    s->on_way[k] = s->on_way[s->on_way_count];
    s->on_way_actor[k] = s->on_way_actor[s->on_way_count];
    if (has_poison(s, part) || chance(s, s->fault_odds)) {
        struct gar_actor_failure *failure = gar_actor_failure_new(GAR_ACTOR_RAISED, "bad row");
        enum gar_roster_verdict verdict = GAR_ROSTER_KEEP;
        if (chance(s, 100)) {
            verdict = GAR_ROSTER_REPLACE;
        } else if (s->actors[actor].is_process && chance(s, 20)) {
            failure->fault = GAR_ACTOR_LOST_DEVICE;
            verdict = GAR_ROSTER_ASIDE;
            s->actors[actor].is_aside = true;
        }
        gar_roster_part_failed(s->roster, actor, part, failure, verdict, s->now_ns);
    } else {
        s->results++;
        gar_roster_result(s->roster, part, gar_malloc(1), s->now_ns);
    }
}

/* Something happens to one living actor. */
static void act(struct sim *s, int32_t number)
{
    struct sim_actor *a = &s->actors[number];
    if (a->is_dying) {
        tell_death(s, number);
    } else if (chance(s, s->fault_odds / 4)) {
        a->is_dying = true;
    } else if (!a->is_ready) {
        if (chance(s, a->lives == 1 ? s->fault_odds / 40 : s->fault_odds / 2)) {
            gar_roster_broken(s->roster, number,
                              gar_actor_failure_new(GAR_ACTOR_NO_START, "ValueError"), s->now_ns);
        } else {
            a->is_ready = true;
            gar_roster_ready(s->roster, number, s->now_ns);
        }
    } else if (a->count > 0 && !a->is_stopped) {
        if (chance(s, s->fault_odds / 10)) {
            a->is_stopped = true;
            return;
        }
        struct gar_roster_part *mine = a->work[0];
        a->count--;
        memmove(&a->work[0], &a->work[1], (size_t)a->count * sizeof a->work[0]);
        struct gar_roster_part *part = gar_roster_answered(s->roster, number, s->now_ns);
        if (part != NULL) {
            assert_ptr_equal(part, mine);
            s->on_way[s->on_way_count] = part;
            s->on_way_actor[s->on_way_count++] = number;
        }
    }
}

static void submit(struct sim *s)
{
    struct sim_call *call = &s->calls[s->submitted];
    memset(call, 0, sizeof *call);
    call->call.rows = 1 + (int64_t)(roll(s) % 20);
    call->call.first_row = s->submitted * 20;
    call->call.owner = call;
    const enum gar_status status = gar_roster_submit(s->roster, &call->call, s->now_ns);
    s->submitted += status == GAR_OK;
}

/* One step of the world; false when nothing can happen any more but a jump of the clock. */
static bool step(struct sim *s)
{
    int32_t able[ACTORS_MAX];
    int32_t count = 0;
    for (int32_t i = 0; i < s->count; i++) {
        const struct sim_actor *a = &s->actors[i];
        const bool can = a->is_dying || !a->is_ready || (a->count > 0 && !a->is_stopped);
        if (a->is_process && can) {
            able[count++] = i;
        }
    }
    const int32_t choices = count + (s->on_way_count > 0);
    if (choices == 0) {
        return false;
    }
    const int32_t pick = (int32_t)(roll(s) % (uint64_t)choices);
    if (pick < count) {
        act(s, able[pick]);
    } else {
        arrive(s);
    }
    return true;
}

static bool fire_alarm(struct sim *s)
{
    if (s->alarm_ns > s->now_ns) {
        return false;
    }
    s->alarm_ns = GAR_CLOCK_NEVER;
    gar_roster_alarm(s->roster, s->now_ns);
    return true;
}

static void run_seed(uint64_t seed)
{
    struct sim *s = gar_calloc(1, (int64_t)sizeof *s);
    s->seed = seed * UINT64_C(0x9E3779B97F4A7C15) | 1;
    s->now_ns = 1000;
    s->alarm_ns = GAR_CLOCK_NEVER;
    s->count = 1 + (int32_t)(roll(s) % ACTORS_MAX);
    s->fault_odds = chance(s, 300) ? 0 : (int32_t)(roll(s) % 300);
    s->poison = chance(s, 300) ? (int64_t)(roll(s) % 20) : -1;
    const struct gar_actor_policy policy = {
        .on_error = (enum gar_actor_on_error)(roll(s) % 3),
        .grows = chance(s, 300),
        .max_retries = (int32_t)(roll(s) % 3),
        .call_limit_ns = chance(s, 500) ? 10 * GAR_NS_PER_S : 0,
    };
    assert_int_equal(gar_roster_new(&policy, s->count, &world_table, s, &s->roster, NULL), GAR_OK);
    const int32_t target = (int32_t)(roll(s) % CALLS_MAX);
    bool has_ended_input = false;
    gar_roster_start(s->roster, s->now_ns);
    for (int64_t steps = 0; !s->is_ended; steps++) {
        if (steps > 200000) {
            print_error("seed %llu does not end\n", (unsigned long long)seed);
            fail();
        }
        s->now_ns += (int64_t)(roll(s) % 3000000);
        if (fire_alarm(s)) {
            continue;
        }
        if (s->submitted < target && chance(s, 300)) {
            submit(s);
        } else if (!has_ended_input && (s->submitted == target || chance(s, 2))) {
            has_ended_input = true;
            gar_roster_end(s->roster, s->now_ns);
        } else if (chance(s, 1)) {
            gar_roster_cancel(s->roster, s->now_ns);
        } else if (!step(s)) {
            if (s->alarm_ns != GAR_CLOCK_NEVER) {
                s->now_ns = s->alarm_ns;
            } else if (has_ended_input) {
                print_error("seed %llu: nothing moves\n", (unsigned long long)seed);
                fail();
            }
        }
    }
    for (int32_t i = 0; i < s->submitted; i++) {
        assert_int_equal(s->calls[i].finished, 1);
    }
    for (int32_t i = 0; i < s->count; i++) {
        assert_false(s->actors[i].is_process);
    }
    assert_int_equal(s->on_way_count, 0);
    assert_int_equal(s->results, 0);
    if (s->has_failed) {
        assert_true(s->had_failure);
    }
    gar_roster_free(s->roster);
    gar_free(s);
}

static void test_random_worlds(void **state)
{
    (void)state;
    const char *first = getenv("GAR_SEED");
    const uint64_t from = first != NULL ? strtoull(first, NULL, 10) : 1;
    const uint64_t count = first != NULL ? 1 : 10000;
    const int64_t blocks = gar_alloc_live_blocks();
    for (uint64_t seed = from; seed < from + count; seed++) {
        run_seed(seed);
        if (gar_alloc_live_blocks() != blocks) {
            print_error("seed %llu leaks\n", (unsigned long long)seed);
            fail();
        }
    }
}

/* One call of eight rows, row 5 always fails: exactly that row is null. */
static void test_only_the_bad_row_is_null(void **state)
{
    (void)state;
    struct sim *s = gar_calloc(1, (int64_t)sizeof *s);
    s->seed = 7;
    s->now_ns = 1000;
    s->count = 1;
    s->poison = 5;
    const struct gar_actor_policy policy = {.on_error = GAR_ACTOR_NULL};
    assert_int_equal(gar_roster_new(&policy, 1, &world_table, s, &s->roster, NULL), GAR_OK);
    struct sim_call call = {.call = {.rows = 8, .owner = &call}};
    gar_roster_start(s->roster, s->now_ns);
    assert_int_equal(gar_roster_submit(s->roster, &call.call, s->now_ns), GAR_OK);
    while (call.finished == 0) {
        s->now_ns += 1000;
        assert_true(step(s));
    }
    struct gar_roster_figures figures;
    gar_roster_figures(s->roster, &figures);
    assert_int_equal(figures.nulled, 1);
    assert_int_equal(figures.rows, 8);
    gar_roster_end(s->roster, s->now_ns);
    while (!s->is_ended) {
        s->now_ns =
            s->alarm_ns != GAR_CLOCK_NEVER && !s->actors[0].is_dying ? s->alarm_ns : s->now_ns + 1;
        (void)fire_alarm(s);
        (void)step(s);
    }
    gar_roster_free(s->roster);
    gar_free(s);
}

/* The world of a pool that grows: each start takes a second, each call so long; a call is handed in whenever there is room
 * and every_ns has passed. Returns how many actors were started for 40 calls. */
static int32_t count_started(int64_t call_ns, int64_t every_ns)
{
    struct sim *s = gar_calloc(1, (int64_t)sizeof *s);
    const struct gar_actor_policy policy = {.grows = true};
    int64_t free_at_ns[ACTORS_MAX] = {0};
    int64_t next_call_ns = 0;
    int32_t started = 0;
    s->seed = 7;
    s->poison = -1;
    s->count = ACTORS_MAX;
    s->alarm_ns = GAR_CLOCK_NEVER;
    assert_int_equal(gar_roster_new(&policy, s->count, &world_table, s, &s->roster, NULL), GAR_OK);
    gar_roster_start(s->roster, 0);
    for (s->now_ns = 0; !s->is_ended; s->now_ns += GAR_NS_PER_MS) {
        (void)fire_alarm(s);
        if (s->submitted < CALLS_MAX && next_call_ns <= s->now_ns) {
            const int32_t before = s->submitted;
            submit(s);
            next_call_ns += s->submitted > before ? every_ns : 0;
        } else if (s->submitted == CALLS_MAX) {
            gar_roster_end(s->roster, s->now_ns);
        }
        for (int32_t i = 0; i < s->count; i++) {
            struct sim_actor *a = &s->actors[i];
            const bool is_idle = a->is_ready && a->count == 0;
            const int64_t takes_ns = a->is_ready ? call_ns : GAR_NS_PER_S;
            if (free_at_ns[i] == 0 || is_idle) {
                free_at_ns[i] = s->now_ns + takes_ns;
            }
            if (a->is_process && (a->is_dying || (!is_idle && free_at_ns[i] <= s->now_ns))) {
                free_at_ns[i] = s->now_ns + call_ns;
                act(s, i);
            } else if (!a->is_process) {
                free_at_ns[i] = 0;
            }
        }
        while (s->on_way_count > 0) {
            arrive(s);
        }
    }
    for (int32_t i = 0; i < s->count; i++) {
        started += s->actors[i].lives;
    }
    gar_roster_free(s->roster);
    gar_free(s);
    return started;
}

static void test_pools_grow(void **state)
{
    (void)state;
    assert_int_equal(count_started(10 * GAR_NS_PER_MS, 20 * GAR_NS_PER_MS), 1);
    assert_int_equal(count_started(4 * GAR_NS_PER_S, GAR_NS_PER_MS), ACTORS_MAX);
    assert_int_equal(count_started(4 * GAR_NS_PER_S, 2 * GAR_NS_PER_S + GAR_NS_PER_MS), 3);
    /* All calls together take less than a start. */
    assert_int_equal(count_started(10 * GAR_NS_PER_MS, 0), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_worlds),
        cmocka_unit_test(test_only_the_bad_row_is_null),
        cmocka_unit_test(test_pools_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
