/* SPDX-License-Identifier: Apache-2.0 */
/* The query loop.
 *
 * The inbox is a stack that senders push to with one compare-and-swap and the loop takes whole with one exchange, then
 * turns around: messages of one sender are handled in order. Whoever makes the inbox non-empty wakes the loop; the
 * parker keeps a wake that comes before the sleep. After each turn due timers fire. With nothing to do the loop sleeps
 * until the next timer, for ever if there is none.
 *
 * While descriptors are watched it sleeps in poll instead of the parker, and senders wake it by an event descriptor. It
 * says so (is_polling) before it looks at the inbox for the last time; a sender looks after it has pushed: one of the two
 * sees the other. */
#include "runtime/loop.h"

#include <string.h>

#include "base/memory.h"
#include "os/clock.h"
#include "os/event_fd.h"
#include "os/park.h"
#include "os/poll.h"
#include "os/test_point.h"
#include "os/thread.h"
#include "runtime/loop_priv.h"
#include "runtime/spin_priv.h"
#include "runtime/timer_priv.h"

#define READY_MAX 16

struct gar_loop {
    const int64_t *active; /* atomic, borrowed from the runtime */
    struct gar_thread thread;
    struct {
        struct gar_timer *timers; /* pairing heap */
        bool is_stopping;
        struct gar_message stop;
        int64_t watches; /* now */
        int poll;        /* made at the first watch, -1 before */
        struct gar_poll_ready
            ready[READY_MAX]; /* of this turn; entries of stopped watches are NULL */
        int32_t ready_count;
    } loop;      /* the loop's thread only */
    int wake_fd; /* written before is_polling is set for the first time */
    GAR_ALIGNED(GAR_CACHE_LINE)
    struct gar_message *inbox; /* atomic: release by senders, acquire by the loop */
    int32_t is_polling;        /* atomic: asleep in poll, or about to */
    int64_t posting; /* atomic: threads inside gar_loop_post; the loop is not freed under them */
    struct gar_parker parker;
};

struct gar_role gar_query_role;

static void run(void *context);
static bool handle_all(struct gar_loop *loop);
static void fire_due(struct gar_loop *loop);
static void rest(struct gar_loop *loop);
static bool handle_ready(struct gar_loop *loop, int64_t deadline_ns);
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
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (__atomic_load_n(&loop->is_polling, __ATOMIC_ACQUIRE) != 0) {
            gar_event_fd_signal(loop->wake_fd);
        } else {
            gar_parker_wake(&loop->parker);
        }
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

enum gar_status gar_loop_watch_on_loop(struct gar_loop *loop, struct gar_watch *watch,
                                       struct gar_error *err)
{
    if (loop->loop.poll < 0) {
        int poll = -1;
        int wake_fd = -1;
        GAR_TRY(gar_poll_open(&poll, err));
        enum gar_status status = gar_event_fd_open(&wake_fd, err);
        if (status >= 0) {
            status = gar_poll_add(poll, wake_fd, GAR_POLL_READ, loop, err);
        }
        if (status < 0) {
            gar_event_fd_close(wake_fd);
            gar_poll_close(poll);
            return status;
        }
        loop->loop.poll = poll;
        loop->wake_fd = wake_fd;
    }
    GAR_TRY(gar_poll_add(loop->loop.poll, watch->fd, GAR_POLL_READ, watch, err));
    watch->is_watching = true;
    loop->loop.watches++;
    return GAR_OK;
}

void gar_loop_unwatch_on_loop(struct gar_loop *loop, struct gar_watch *watch)
{
    if (!watch->is_watching) {
        return;
    }
    gar_poll_remove(loop->loop.poll, watch->fd);
    watch->is_watching = false;
    loop->loop.watches--;
    for (int32_t i = 0; i < loop->loop.ready_count; i++) {
        if (loop->loop.ready[i].owner == watch) {
            loop->loop.ready[i].owner = NULL;
        }
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
    loop->loop.poll = -1;
    loop->wake_fd = -1;
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
    gar_event_fd_close(loop->wake_fd);
    gar_poll_close(loop->loop.poll);
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
        rest(loop);
    }
}

/* Nothing to do now: look a moment longer, then sleep until something comes. */
static void rest(struct gar_loop *loop)
{
    const bool is_active = __atomic_load_n(loop->active, __ATOMIC_RELAXED) > 0;
    const int64_t deadline_ns =
        loop->loop.timers == NULL ? GAR_CLOCK_NEVER : loop->loop.timers->deadline_ns;
    if (loop->loop.watches == 0) {
        if (is_active) {
            _Static_assert(sizeof loop->inbox == sizeof(int64_t),
                           "the spin looks at the inbox as a word");
            gar_spin_for((const int64_t *)(const void *)&loop->inbox);
        }
        if (__atomic_load_n(&loop->inbox, __ATOMIC_RELAXED) == NULL) {
            (void)gar_parker_wait(&loop->parker, deadline_ns);
        }
        return;
    }
    const int64_t until_ns = is_active ? gar_clock_ns() + GAR_SPIN_NS : 0;
    do {
        if (handle_ready(loop, 0) || __atomic_load_n(&loop->inbox, __ATOMIC_RELAXED) != NULL) {
            return;
        }
    } while (is_active && gar_clock_ns() < until_ns);
    __atomic_store_n(&loop->is_polling, 1, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    GAR_TEST_POINT("polling");
    /* A deadline of 0 would mean: do not wait. */
    (void)handle_ready(loop, __atomic_load_n(&loop->inbox, __ATOMIC_RELAXED) != NULL
                                 ? 0
                                 : gar_max_i64(deadline_ns, 1));
}

/* True when a watch was ready. */
static bool handle_ready(struct gar_loop *loop, int64_t deadline_ns)
{
    const int32_t count = gar_poll_wait(loop->loop.poll, deadline_ns, loop->loop.ready, READY_MAX);
    __atomic_store_n(&loop->is_polling, 0, __ATOMIC_RELEASE);
    loop->loop.ready_count = count;
    for (int32_t i = 0; i < count; i++) {
        struct gar_watch *watch = loop->loop.ready[i].owner;
        if (loop->loop.ready[i].owner == loop) { /* a sender woke us */
            gar_event_fd_clear(loop->wake_fd);
        } else if (watch != NULL) {
            watch->ready(watch, loop, loop->loop.ready[i].events);
        }
    }
    loop->loop.ready_count = 0;
    return count > 0;
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
