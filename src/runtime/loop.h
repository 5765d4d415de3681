/* SPDX-License-Identifier: Apache-2.0 */
/* The query loop: one thread that owns the state of all running queries. Everything reaches it as a message. */
#ifndef GAR_RUNTIME_LOOP_H
#define GAR_RUNTIME_LOOP_H

#include "base/attrs.h"
#include "base/error.h"

struct gar_loop;

/* Embedded in the sender's or receiver's struct. Posting one that is still queued does nothing: the handling to come
 * sees what was written before the post. It may be posted again from the moment handle begins; the struct may be freed
 * by handle itself, and by others only when no post can be under way. */
struct gar_message {
    struct gar_message *next; /* the inbox's while queued */
    void (*handle)(struct gar_message *message, struct gar_loop *loop);
    int32_t is_queued; /* atomic */
};

/* Lock-free, never fails. True if it was not queued before. Threads: any. Order between messages of one sender is kept. */
bool gar_loop_post(struct gar_loop *loop, struct gar_message *message);

/* Embedded; zeroed = not running. */
struct gar_timer {
    int64_t deadline_ns; /* gar_clock_ns */
    void (*fire)(struct gar_timer *timer, struct gar_loop *loop);
    struct gar_timer *child; /* pairing heap */
    struct gar_timer *sibling;
    struct gar_timer *previous;
    bool is_running;
};
/* (Re)start: fires once, on the loop, not before deadline_ns. Threads: query loop only. */
void gar_loop_start_timer_on_loop(struct gar_loop *loop, struct gar_timer *timer,
                                  int64_t deadline_ns);
/* Stop; one that does not run is fine. Threads: query loop only. */
void gar_loop_stop_timer_on_loop(struct gar_loop *loop, struct gar_timer *timer);

/* A descriptor that the loop looks at. Embedded; zeroed = not watched. */
struct gar_watch {
    int fd;
    /* On the loop, again and again while an event stands: read, or stop watching. May stop any watch, its own too, and
     * free its struct. events: bits of enum gar_poll_event (os/poll.h). */
    void (*ready)(struct gar_watch *watch, struct gar_loop *loop, uint32_t events);
    bool is_watching;
};
/* Watch watch->fd for reading. Errors: GAR_ERR_IO (too many open files). Threads: query loop only. */
GAR_MUST_USE enum gar_status gar_loop_watch_on_loop(struct gar_loop *loop, struct gar_watch *watch,
                                                    struct gar_error *err);
/* Before the descriptor is closed; one that is not watched is fine. Threads: query loop only. */
void gar_loop_unwatch_on_loop(struct gar_loop *loop, struct gar_watch *watch);

/* Is the calling thread the loop's? */
bool gar_loop_is_self(const struct gar_loop *loop);

/* The role "may touch a query's state": the loop's thread, or the caller of an inline query. Functions that need it say
 * GAR_REQUIRES(gar_query_role); entries say gar_query_role_assert(). */
struct GAR_CAPABILITY("role") gar_role {
    int32_t unused;
};
extern struct gar_role gar_query_role;
GAR_INLINE void gar_query_role_assert(void) GAR_ASSERTS(gar_query_role)
{
}

#endif
