/* SPDX-License-Identifier: Apache-2.0 */
/* Cancel tokens: one a query. A flag with a reason, cheap to test, that wakes those who sleep or wait. */
#ifndef GAR_RUNTIME_CANCEL_H
#define GAR_RUNTIME_CANCEL_H

#include "base/attrs.h"
#include "base/error.h"
#include "runtime/wait.h"

enum gar_cancel_reason {
    GAR_CANCEL_NONE,
    GAR_CANCEL_INTERRUPT, /* Ctrl-C: GAR_ERR_INTERRUPTED */
    GAR_CANCEL_DEADLINE,  /* GAR_ERR_TIMEOUT */
    GAR_CANCEL_DROPPED,   /* the consumer went away: GAR_ERR_CANCELLED */
    GAR_CANCEL_ERROR,     /* another part of the query failed: GAR_ERR_CANCELLED */
    GAR_CANCEL_USER,      /* a cancel call: GAR_ERR_CANCELLED */
};

struct gar_cancel {
    int32_t reason; /* atomic enum gar_cancel_reason; never goes back to NONE */
    int64_t
        deadline_ns; /* constant after creation, GAR_CLOCK_NEVER: none; who polls it calls gar_cancel_poll */
    /* Of a token that only one thread polls, for work on a caller's own thread: asked by gar_cancel_poll. Borrowed; set
     * before the first poll, NULL: none. */
    const struct gar_interrupt *interrupt;
};

/* deadline_ns: a time of gar_clock_ns, INT64_MAX for none. Owns: caller unrefs. */
GAR_MUST_USE enum gar_status gar_cancel_new(int64_t deadline_ns, struct gar_cancel **out,
                                            struct gar_error *err);
struct gar_cancel *gar_cancel_ref(struct gar_cancel *cancel);
void gar_cancel_unref(struct gar_cancel *cancel);

/* Cancel, and run all wakers on this thread with no lock held. The first reason stays; true if this was the first.
 * Threads: any. */
bool gar_cancel_request(struct gar_cancel *cancel, enum gar_cancel_reason reason);

/* Is it cancelled? One relaxed load; NULL is never cancelled. Once a morsel and in every long loop. */
GAR_INLINE bool gar_cancel_requested(const struct gar_cancel *cancel)
{
    return cancel != NULL &&
           GAR_UNLIKELY(__atomic_load_n(&cancel->reason, __ATOMIC_RELAXED) != GAR_CANCEL_NONE);
}

/* The same, but looks at the clock too and cancels by deadline when it has passed (for inline work: 25 ns), and asks the
 * token's interrupt where it has one. */
bool gar_cancel_poll(struct gar_cancel *cancel);
enum gar_cancel_reason gar_cancel_reason_get(const struct gar_cancel *cancel);
/* GAR_OK when not cancelled, else the status and message of the reason. */
enum gar_status gar_cancel_status(const struct gar_cancel *cancel, struct gar_error *err);

/* Return the reason's error from the calling function when cancelled. */
#define GAR_CANCEL_CHECK(cancel, err)                  \
    do {                                               \
        if (gar_cancel_requested(cancel)) {            \
            return gar_cancel_status((cancel), (err)); \
        }                                              \
    } while (0)

/* Somebody to wake. Embedded in the waiter's own struct; wake runs once at most, on the cancelling thread, and must
 * not block. */
struct gar_cancel_waker {
    struct gar_cancel_waker *next;
    struct gar_cancel_waker *previous;
    void (*wake)(struct gar_cancel_waker *self);
    bool is_listed; /* under the token's lock */
};
/* False (and wake will not run) when already cancelled. */
bool gar_cancel_add_waker(struct gar_cancel *cancel, struct gar_cancel_waker *waker);
/* Returns only when wake neither runs (on another thread) nor will run. A waker that was not added is fine. */
void gar_cancel_remove_waker(struct gar_cancel *cancel, struct gar_cancel_waker *waker);

/* Sleep, at most until cancelled: GAR_OK after the whole time, else the reason's error. cancel may be NULL.
 * Threads: IO pool and callers' threads: it blocks. */
GAR_MUST_USE enum gar_status gar_cancel_sleep(struct gar_cancel *cancel, int64_t ns,
                                              struct gar_error *err);

#endif
