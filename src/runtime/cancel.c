/* SPDX-License-Identifier: Apache-2.0 */
/* Cancel tokens. The reason is set first, then the wakers are taken off the list one by one and run without the lock;
 * `running` lets gar_cancel_remove_waker wait for the one that is just running. A waker added after the reason was set is
 * refused under the same lock, so none is forgotten. */
#include "runtime/cancel.h"

#include <assert.h>

#include "base/alloc.h"
#include "os/clock.h"
#include "os/mutex.h"
#include "os/park.h"
#include "os/test_point.h"
#include "os/thread.h"

struct token {
    struct gar_cancel base;
    struct gar_mutex lock;
    struct gar_cond ran; /* `running` has changed */
    struct {
        struct gar_cancel_waker *first;
        const struct gar_cancel_waker *running;
        const void *runner; /* gar_thread_self() of the thread that runs it */
    } synced GAR_GUARDED;
    int64_t refs; /* atomic */
};

static struct token *token_of(struct gar_cancel *cancel)
{
    return (struct token *)cancel;
}

static void unlink_locked(struct token *token, struct gar_cancel_waker *waker)
    GAR_REQUIRES(token->lock)
{
    if (waker->previous != NULL) {
        waker->previous->next = waker->next;
    } else {
        token->synced.first = waker->next;
    }
    if (waker->next != NULL) {
        waker->next->previous = waker->previous;
    }
    waker->next = NULL;
    waker->previous = NULL;
    waker->is_listed = false;
}

enum gar_status gar_cancel_new(int64_t deadline_ns, struct gar_cancel **out, struct gar_error *err)
{
    struct token *token = gar_calloc(1, (int64_t)sizeof *token);
    if (token == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *token);
    }
    token->base.deadline_ns = deadline_ns;
    token->refs = 1;
    gar_mutex_init(&token->lock);
    gar_cond_init(&token->ran);
    *out = &token->base;
    return GAR_OK;
}

struct gar_cancel *gar_cancel_ref(struct gar_cancel *cancel)
{
    (void)__atomic_fetch_add(&token_of(cancel)->refs, 1, __ATOMIC_RELAXED);
    return cancel;
}

void gar_cancel_unref(struct gar_cancel *cancel)
{
    struct token *token = token_of(cancel);
    if (token == NULL || __atomic_sub_fetch(&token->refs, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    gar_cond_destroy(&token->ran);
    gar_mutex_destroy(&token->lock);
    gar_free(token);
}

bool gar_cancel_request(struct gar_cancel *cancel, enum gar_cancel_reason reason)
{
    assert(reason != GAR_CANCEL_NONE);
    struct token *token = token_of(cancel);
    int32_t expected = GAR_CANCEL_NONE;
    if (!__atomic_compare_exchange_n(&cancel->reason, &expected, (int32_t)reason, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        return false;
    }
    (void)gar_cancel_ref(cancel); /* a waker may drop the last other reference */
    gar_mutex_lock(&token->lock);
    while (token->synced.first != NULL) {
        struct gar_cancel_waker *waker = token->synced.first;
        unlink_locked(token, waker);
        token->synced.running = waker;
        token->synced.runner = gar_thread_self();
        gar_mutex_unlock(&token->lock);
        GAR_TEST_POINT("cancel wake");
        waker->wake(waker);
        gar_mutex_lock(&token->lock);
        token->synced.running = NULL;
        gar_cond_broadcast(&token->ran);
    }
    gar_mutex_unlock(&token->lock);
    gar_cancel_unref(cancel);
    return true;
}

bool gar_cancel_poll(struct gar_cancel *cancel)
{
    if (cancel == NULL) {
        return false;
    }
    if (gar_cancel_requested(cancel)) {
        return true;
    }
    if (gar_interrupt_check(cancel->interrupt)) {
        (void)gar_cancel_request(cancel, GAR_CANCEL_INTERRUPT);
        return true;
    }
    if (cancel->deadline_ns == GAR_CLOCK_NEVER || gar_clock_ns() < cancel->deadline_ns) {
        return false;
    }
    (void)gar_cancel_request(cancel, GAR_CANCEL_DEADLINE);
    return true;
}

enum gar_cancel_reason gar_cancel_reason_get(const struct gar_cancel *cancel)
{
    return cancel == NULL
               ? GAR_CANCEL_NONE
               : (enum gar_cancel_reason)__atomic_load_n(&cancel->reason, __ATOMIC_ACQUIRE);
}

enum gar_status gar_cancel_status(const struct gar_cancel *cancel, struct gar_error *err)
{
    switch (gar_cancel_reason_get(cancel)) {
    case GAR_CANCEL_NONE: return GAR_OK;
    case GAR_CANCEL_INTERRUPT: return gar_error_set(err, GAR_ERR_INTERRUPTED, "interrupted");
    case GAR_CANCEL_DEADLINE:
        return gar_error_set(err, GAR_ERR_TIMEOUT,
                             "the query did not finish before its deadline; allow more time");
    case GAR_CANCEL_DROPPED:
        return gar_error_set(err, GAR_ERR_CANCELLED, "cancelled: nobody takes the result any more");
    case GAR_CANCEL_ERROR:
        return gar_error_set(err, GAR_ERR_CANCELLED, "cancelled: another part of the query failed");
    case GAR_CANCEL_USER: return gar_error_set(err, GAR_ERR_CANCELLED, "cancelled by the caller");
    }
    return gar_error_set(err, GAR_ERR_INTERNAL, "unknown cancel reason");
}

bool gar_cancel_add_waker(struct gar_cancel *cancel, struct gar_cancel_waker *waker)
{
    struct token *token = token_of(cancel);
    gar_mutex_lock(&token->lock);
    const bool is_open = __atomic_load_n(&cancel->reason, __ATOMIC_ACQUIRE) == GAR_CANCEL_NONE;
    waker->next = NULL;
    waker->previous = NULL;
    waker->is_listed = is_open;
    if (is_open) {
        waker->next = token->synced.first;
        if (waker->next != NULL) {
            waker->next->previous = waker;
        }
        token->synced.first = waker;
    }
    gar_mutex_unlock(&token->lock);
    return is_open;
}

void gar_cancel_remove_waker(struct gar_cancel *cancel, struct gar_cancel_waker *waker)
{
    struct token *token = token_of(cancel);
    gar_mutex_lock(&token->lock);
    if (waker->is_listed) {
        unlink_locked(token, waker);
    }
    while (token->synced.running == waker && token->synced.runner != gar_thread_self()) {
        gar_cond_wait(&token->ran, &token->lock);
    }
    gar_mutex_unlock(&token->lock);
}

struct sleeper {
    struct gar_cancel_waker waker; /* first */
    struct gar_parker parker;
};

static void wake_sleeper(struct gar_cancel_waker *waker)
{
    gar_parker_wake(&((struct sleeper *)waker)->parker);
}

enum gar_status gar_cancel_sleep(struct gar_cancel *cancel, int64_t ns, struct gar_error *err)
{
    struct sleeper sleeper = {.waker = {.wake = wake_sleeper}, .parker = {0}};
    if (cancel != NULL && !gar_cancel_add_waker(cancel, &sleeper.waker)) {
        return gar_cancel_status(cancel, err);
    }
    const int64_t until_ns = gar_clock_deadline(gar_max_i64(ns, 0));
    const int64_t limit_ns = cancel == NULL ? GAR_CLOCK_NEVER : cancel->deadline_ns;
    while (!gar_cancel_poll(cancel) && gar_clock_ns() < until_ns) {
        (void)gar_parker_wait(&sleeper.parker, gar_min_i64(until_ns, limit_ns));
    }
    if (cancel != NULL) {
        gar_cancel_remove_waker(cancel, &sleeper.waker);
    }
    return gar_cancel_status(cancel, err);
}
