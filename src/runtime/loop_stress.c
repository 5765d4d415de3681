/* SPDX-License-Identifier: Apache-2.0 */
/* The loop's inbox under TSan: many senders post private messages (order, exactly once) and one shared message that
 * coalesces (no update may be lost), while timers are started and stopped and a descriptor is watched now and then, so that
 * the loop sleeps in both of its ways. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "os/clock.h"
#include "os/event_fd.h"
#include "os/park.h"
#include "os/test_point.h"
#include "os/thread.h"
#include "runtime/runtime.h"

enum { SENDERS = 4, POSTS = 4000, RING = 16 };

struct ticket {
    struct gar_message message;
    struct sender *sender;
    int64_t number;
    int32_t is_free; /* atomic: the sender may use it again */
};

struct sender {
    struct gar_thread thread;
    struct gar_loop *loop;
    struct ticket ring[RING];
    int64_t handled; /* loop only */
    bool is_wrong;   /* loop only */
};

static struct sender senders[SENDERS];

/* One message for all: senders add to `offered` and post; the handler takes everything there is. */
static struct gar_message shared;
static int64_t offered; /* atomic */
static int64_t taken;   /* loop only */

static struct gar_timer timer;
static int64_t fired; /* loop only */

/* Signalled by all senders; watched by turns. */
static struct gar_watch watch;
static int64_t seen;    /* loop only */
static bool is_refused; /* loop only */

static void on_ready(struct gar_watch *self, struct gar_loop *loop, uint32_t events)
{
    (void)loop;
    seen += events != 0;
    gar_event_fd_clear(self->fd);
}

static void toggle_watch(struct gar_loop *loop)
{
    if (watch.is_watching) {
        gar_loop_unwatch_on_loop(loop, &watch);
    } else {
        is_refused |= gar_loop_watch_on_loop(loop, &watch, NULL) != GAR_OK;
    }
}

static void on_timer(struct gar_timer *self, struct gar_loop *loop)
{
    fired++;
    gar_loop_start_timer_on_loop(loop, self, gar_clock_ns() + 100000);
}

static void on_ticket(struct gar_message *message, struct gar_loop *loop)
{
    struct ticket *ticket = (struct ticket *)message;
    struct sender *sender = ticket->sender;
    sender->is_wrong |= ticket->number != sender->handled;
    sender->handled++;
    if (sender->handled % 7 == 0) {
        gar_loop_start_timer_on_loop(loop, &timer, gar_clock_ns() + 50000);
    } else if (sender->handled % 11 == 0) {
        gar_loop_stop_timer_on_loop(loop, &timer);
    } else if (sender->handled % 13 == 0) {
        toggle_watch(loop);
    }
    __atomic_store_n(&ticket->is_free, 1, __ATOMIC_RELEASE);
}

static void on_shared(struct gar_message *message, struct gar_loop *loop)
{
    (void)message;
    (void)loop;
    taken += __atomic_exchange_n(&offered, 0, __ATOMIC_RELAXED);
}

static void send_all(void *context)
{
    struct sender *self = context;
    for (int64_t i = 0; i < POSTS; i++) {
        struct ticket *ticket = &self->ring[i % RING];
        while (__atomic_load_n(&ticket->is_free, __ATOMIC_ACQUIRE) == 0) {
            gar_thread_yield();
        }
        ticket->is_free = 0;
        ticket->number = i;
        (void)gar_loop_post(self->loop, &ticket->message);
        (void)__atomic_fetch_add(&offered, 1, __ATOMIC_RELAXED);
        (void)gar_loop_post(self->loop, &shared);
        if (i % 5 == 0) {
            gar_event_fd_signal(watch.fd);
        }
        if (i % 512 == 0) { /* time to fall asleep */
            const struct timespec pause = {.tv_nsec = 200000};
            (void)nanosleep(&pause, NULL);
        }
    }
}

int main(void)
{
    gar_test_point_set(5, 50);
    const struct gar_runtime_options options = {.compute_threads = 1, .io_threads = 1};
    struct gar_runtime *runtime = NULL;
    if (gar_runtime_new(&options, &runtime, NULL) != GAR_OK ||
        gar_runtime_start(runtime, GAR_RUNTIME_LOOP, NULL) != GAR_OK ||
        gar_runtime_enter(runtime, NULL) != GAR_OK) {
        return 1;
    }
    watch.ready = on_ready;
    if (gar_event_fd_open(&watch.fd, NULL) != GAR_OK) {
        return 1;
    }
    timer.fire = on_timer;
    shared.handle = on_shared;
    for (int i = 0; i < SENDERS; i++) {
        senders[i].loop = gar_runtime_loop(runtime);
        for (int j = 0; j < RING; j++) {
            senders[i].ring[j].message.handle = on_ticket;
            senders[i].ring[j].sender = &senders[i];
            senders[i].ring[j].is_free = 1;
        }
        const struct gar_thread_options thread = {.name = "Sender"};
        if (gar_thread_start(&senders[i].thread, &thread, send_all, &senders[i], NULL) != GAR_OK) {
            return 1;
        }
    }
    for (int i = 0; i < SENDERS; i++) {
        gar_thread_join(&senders[i].thread);
    }
    gar_runtime_leave(runtime);
    gar_runtime_free(runtime); /* handles what is queued first */
    gar_event_fd_close(watch.fd);
    bool is_right = taken == (int64_t)SENDERS * POSTS && seen > 0 && !is_refused;
    for (int i = 0; i < SENDERS; i++) {
        is_right &= senders[i].handled == POSTS && !senders[i].is_wrong;
    }
    printf("shared %lld of %lld, timer fired %lld times, descriptor ready %lld\n", (long long)taken,
           (long long)SENDERS * POSTS, (long long)fired, (long long)seen);
    return is_right ? 0 : 1;
}
