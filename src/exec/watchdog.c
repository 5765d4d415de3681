/* SPDX-License-Identifier: Apache-2.0 */
/* The watchdog of a query in the pools: a timer of the loop that looks whether anything has moved.
 *
 * Moved means: a job reported back, or an operator gave or took a batch. A query that waits for its consumer is not at
 * fault: that is said once, at a lower level, and the timer rests until the query is called again, so that idle iterators
 * wake nobody. */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "exec/exec_priv.h"
#include "runtime/activity.h"

enum { LOOKS = 4, TEXT_BYTES = 768, JOBS_TOLD = 4, DETAIL_BYTES = 120 };

#define CONTAINER(pointer, type, member) \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* What a job is doing, appended to text. False: it has not begun. */
static bool tell_job(struct gar_query *query, struct gar_job *job, char *text, size_t text_bytes)
{
    const int32_t op = __atomic_load_n(&job->meter.op, __ATOMIC_RELAXED);
    struct gar_activity *activity = __atomic_load_n(&job->meter.activity, __ATOMIC_ACQUIRE);
    if (op == GAR_METER_IDLE) {
        return false;
    }
    const size_t used = strlen(text);
    if (used + 2 >= text_bytes) {
        return true;
    }
    (void)snprintf(text + used, text_bytes - used, "; ");
    char *rest = text + strlen(text);
    const size_t room = text_bytes - strlen(text);
    if (activity != NULL && gar_activity_describe(activity, rest, (int64_t)room)) {
        return true;
    }
    const double seconds =
        (double)(gar_clock_ns() - __atomic_load_n(&job->meter.since_ns, __ATOMIC_RELAXED)) / 1e9;
    struct gar_operator_profile seen;
    if (gar_profile_read_operator(query->profile, op, &seen)) {
        (void)snprintf(rest, room, "operator '%.*s' of pipeline %d is at work on one %s for %.1f s",
                       DETAIL_BYTES, seen.detail, (int)seen.pipeline,
                       job->kind == GAR_JOB_MORSEL ? "batch" : "step", seconds);
    } else {
        (void)snprintf(rest, room, "cleaning up for %.1f s", seconds);
    }
    return true;
}

/* What is the query waiting for? True: only for its consumer. */
static bool tell_query(struct gar_query *query, double seconds, char *text, size_t text_bytes)
{
    (void)snprintf(text, text_bytes, "query %lld has not moved for %.1f s",
                   (long long)gar_profile_id(query->profile), seconds);
    int64_t waiting = 0;
    int64_t told = 0;
    for (struct gar_job *job = query->at_work; job != NULL; job = job->at_work_next) {
        if (told == JOBS_TOLD || !tell_job(query, job, text, text_bytes)) {
            waiting++;
        } else {
            told++;
        }
    }
    const size_t used = strlen(text);
    if (waiting > 0) {
        (void)snprintf(text + used, text_bytes - used, "; %lld more tasks %s", (long long)waiting,
                       told == JOBS_TOLD ? "are under way" : "wait for a free thread");
    } else if (told == 0 && query->current != NULL && query->current->pace.blocked_ns != 0) {
        (void)snprintf(text + used, text_bytes - used, "; its rows wait for who reads them");
        return true;
    } else if (told == 0) {
        (void)snprintf(text + used, text_bytes - used, "; nothing of it is under way");
    }
    return false;
}

static void arm(struct gar_query *query, struct gar_loop *loop, int64_t now_ns)
{
    gar_loop_start_timer_on_loop(loop, &query->watchdog.timer,
                                 now_ns + gar_max_i64(query->watchdog.limit_ns / LOOKS, 1));
}

static void on_timer(struct gar_timer *timer, struct gar_loop *loop)
{
    struct gar_query *query = CONTAINER(timer, struct gar_query, watchdog.timer);
    gar_query_role_assert();
    struct gar_watchdog *dog = &query->watchdog;
    const int64_t now_ns = gar_clock_ns();
    const int64_t moves = dog->events + gar_profile_moves(query->profile);
    if (moves != dog->seen) {
        dog->seen = moves;
        dog->since_ns = now_ns;
        dog->has_told = false;
        gar_profile_set_waiting(query->profile, NULL);
    } else if (!dog->has_told && now_ns - dog->since_ns >= dog->limit_ns) {
        char text[TEXT_BYTES];
        const bool is_consumer =
            tell_query(query, (double)(now_ns - dog->since_ns) / 1e9, text, sizeof text);
        gar_log(is_consumer ? GAR_LOG_INFO : GAR_LOG_WARNING, "%s", text);
        gar_profile_set_waiting(query->profile, text);
        dog->has_told = true;
        if (is_consumer) {
            return;
        }
    }
    arm(query, loop, now_ns);
}

void gar_watchdog_wake(struct gar_query *query)
{
    struct gar_watchdog *dog = &query->watchdog;
    if (dog->limit_ns <= 0 || dog->timer.is_running || query->is_finished) {
        return;
    }
    dog->timer.fire = on_timer;
    dog->since_ns = gar_clock_ns();
    dog->has_told = false;
    dog->events++;
    arm(query, gar_runtime_loop(query->runtime), dog->since_ns);
}

void gar_watchdog_stop(struct gar_query *query)
{
    gar_loop_stop_timer_on_loop(gar_runtime_loop(query->runtime), &query->watchdog.timer);
}
