/* SPDX-License-Identifier: Apache-2.0 */
/* The query loop.
 *
 * The inbox is a stack that senders push to with one compare-and-swap and the loop takes whole with one exchange, then
 * turns around: messages of one sender are handled in order. Whoever makes the inbox non-empty wakes the loop; the
 * parker keeps a wake that comes before the sleep. After each turn due timers fire. With nothing to do the loop sleeps
 * until the next timer, for ever if there is none. */
#include "runtime/loop.h"

#include <string.h>

#include "base/memory.h"
#include "os/clock.h"
#include "os/park.h"
#include "os/test_point.h"
#include "os/thread.h"
#include "runtime/loop_priv.h"
#include "runtime/spin_priv.h"
#include "runtime/timer_priv.h"

struct gar_loop {
    const int64_t *active; /* atomic, borrowed from the runtime */
    struct gar_thread thread;
    struct {
        struct gar_timer *timers; /* pairing heap */
        bool is_stopping;
        struct gar_message stop;
    } loop; /* the loop's thread only */
    GAR_ALIGNED(GAR_CACHE_LINE)
    struct gar_message *inbox; /* atomic: release by senders, acquire by the loop */
    int64_t posting; /* atomic: threads inside gar_loop_post; the loop is not freed under them */
    struct gar_parker parker;
};

struct gar_role gar_query_role;

static void run(void *context);
static bool handle_all(struct gar_loop *loop);
static void fire_due(struct gar_loop *loop);
static void on_stop(struct gar_message *message, struct gar_loop *loop);

bool gar_loop_post(struct gar_loop *loop, struct gar_message *message)
{
    /* Acquire-release: if it is queued already, its handler must see what we wrote before this. */
    if (__atomic_exchange_n(&message->is_queued, 1, __ATOMIC_ACQ_REL) != 0) {
        return false;
    }
    (void)__atomic_fetch_add(&loop->posting, 1, __ATOMIC_RELAXED);
    struct gar_message *head = __atomic_load_n(&loop->inbox, __ATOMIC_RELAXED);
    do {
        message->next = head;
    } while (!__atomic_compare_exchange_n(&loop->inbox, &head, message, true, __ATOMIC_RELEASE,
                                          __ATOMIC_RELAXED));
    GAR_TEST_POINT("posted");
    if (head == NULL) {
        gar_parker_wake(&loop->parker);
    }
    (void)__atomic_fetch_sub(&loop->posting, 1, __ATOMIC_RELEASE);
    return true;
}

void gar_loop_start_timer_on_loop(struct gar_loop *loop, struct gar_timer *timer,
                                  int64_t deadline_ns)
{
    gar_loop_stop_timer_on_loop(loop, timer);
    timer->deadline_ns = deadline_ns;
    gar_timer_insert(&loop->loop.timers, timer);
}

void gar_loop_stop_timer_on_loop(struct gar_loop *loop, struct gar_timer *timer)
{
    if (timer->is_running) {
        gar_timer_remove(&loop->loop.timers, timer);
    }
}

bool gar_loop_is_self(const struct gar_loop *loop)
{
    return gar_thread_is_self(&loop->thread);
}

enum gar_status gar_loop_new(const int64_t *active, struct gar_loop **out, struct gar_error *err)
{
    int64_t bytes;
    struct gar_loop *loop =
        gar_memory_alloc(gar_memory_system(), (int64_t)sizeof *loop, &bytes, err);
    if (loop == NULL) {
        return GAR_ERR_NOMEM;
    }
    memset(loop, 0, sizeof *loop);
    loop->active = active;
    *out = loop;
    return GAR_OK;
}

enum gar_status gar_loop_run_thread(struct gar_loop *loop, struct gar_error *err)
{
    const struct gar_thread_options options = {.name = "Query-Loop"};
    return gar_thread_start(&loop->thread, &options, run, loop, err);
}

void gar_loop_stop(struct gar_loop *loop)
{
    if (loop->thread.is_started) {
        loop->loop.stop.handle = on_stop;
        (void)gar_loop_post(loop, &loop->loop.stop);
        gar_thread_join(&loop->thread);
    }
}

void gar_loop_free(struct gar_loop *loop, bool is_forked)
{
    if (loop == NULL) {
        return;
    }
    while (!is_forked && __atomic_load_n(&loop->posting, __ATOMIC_ACQUIRE) > 0) {
        gar_thread_yield();
    }
    gar_memory_free(gar_memory_system(), loop, (int64_t)sizeof *loop);
}

static void run(void *context)
{
    struct gar_loop *loop = context;
    gar_query_role_assert();
    for (;;) {
        const bool has_worked = handle_all(loop);
        fire_due(loop);
        if (has_worked) {
            continue;
        }
        if (loop->loop.is_stopping) {
            return;
        }
        if (__atomic_load_n(loop->active, __ATOMIC_RELAXED) > 0) {
            _Static_assert(sizeof loop->inbox == sizeof(int64_t),
                           "the spin looks at the inbox as a word");
            gar_spin_for((const int64_t *)(const void *)&loop->inbox);
        }
        if (__atomic_load_n(&loop->inbox, __ATOMIC_RELAXED) == NULL) {
            (void)gar_parker_wait(&loop->parker, loop->loop.timers == NULL
                                                     ? GAR_CLOCK_NEVER
                                                     : loop->loop.timers->deadline_ns);
        }
    }
}

/* False when the inbox was empty. */
static bool handle_all(struct gar_loop *loop)
{
    struct gar_message *taken = __atomic_exchange_n(&loop->inbox, NULL, __ATOMIC_ACQUIRE);
    if (taken == NULL) {
        return false;
    }
    struct gar_message *ordered = NULL;
    while (taken != NULL) {
        struct gar_message *message = taken;
        taken = message->next;
        message->next = ordered;
        ordered = message;
    }
    while (ordered != NULL) {
        struct gar_message *message = ordered;
        ordered = message->next;
        /* From here it may be posted again; see gar_loop_post for the order. */
        (void)__atomic_exchange_n(&message->is_queued, 0, __ATOMIC_ACQ_REL);
        message->handle(message, loop);
    }
    return true;
}

static void fire_due(struct gar_loop *loop)
{
    if (loop->loop.timers == NULL) {
        return;
    }
    const int64_t now_ns = gar_clock_ns();
    while (loop->loop.timers != NULL && loop->loop.timers->deadline_ns <= now_ns) {
        struct gar_timer *timer = loop->loop.timers;
        gar_timer_remove(&loop->loop.timers, timer);
        timer->fire(timer, loop);
    }
}

static void on_stop(struct gar_message *message, struct gar_loop *loop)
{
    (void)message;
    loop->loop.is_stopping = true;
}
