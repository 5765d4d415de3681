/* SPDX-License-Identifier: Apache-2.0 */
/* Cancel tokens and operations under TSan: wakers come and go while tokens are cancelled, finish and cancel of an
 * operation meet. A waker's memory may be reused the moment remove returns; on_finish runs exactly once and never beside
 * on_cancel. */
#include "runtime/cancel.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "os/clock.h"
#include "os/park.h"
#include "os/test_point.h"
#include "os/thread.h"
#include "runtime/operation.h"

enum { ROUNDS = 3000 };

struct work {
    struct gar_operation operation;
    int32_t inside; /* not atomic on purpose: TSan sees an overlap of on_cancel and on_finish */
    int32_t finishes;
    int32_t left; /* atomic: of the two threads */
};

static void on_finish(struct gar_operation *operation)
{
    struct work *work = (struct work *)operation;
    work->inside++;
    work->finishes++;
}

static void on_cancel(struct gar_operation *operation)
{
    ((struct work *)operation)->inside++;
}

static struct gar_cancel *token;
static struct work *current;
static int32_t turn; /* atomic: round number; the other thread follows */
static int32_t answered;
static bool is_wrong;

struct local_waker {
    struct gar_cancel_waker waker; /* first */
    int32_t woken;                 /* atomic */
};

static void wake(struct gar_cancel_waker *waker)
{
    __atomic_store_n(&((struct local_waker *)waker)->woken, 1, __ATOMIC_RELEASE);
}

/* Adds and removes wakers on its stack and finishes the operation. */
static void follow(void *context)
{
    (void)context;
    for (int32_t round = 1; round <= ROUNDS; round++) {
        while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) < round) {
            gar_thread_yield();
        }
        struct local_waker waker;
        memset(&waker, 0, sizeof waker);
        waker.waker.wake = wake;
        if (gar_cancel_add_waker(token, &waker.waker)) {
            for (int i = 0; i < round % 50; i++) {
                gar_thread_pause();
            }
            gar_cancel_remove_waker(token, &waker.waker);
        }
        memset(&waker, 0x5a, sizeof waker);
        gar_operation_finish(&current->operation, GAR_OK, NULL);
        if (round % 3 == 0 &&
            gar_cancel_sleep(token, 20 * GAR_NS_PER_S, NULL) != GAR_ERR_CANCELLED) {
            __atomic_store_n(&is_wrong, true, __ATOMIC_RELAXED);
        }
        __atomic_store_n(&answered, round, __ATOMIC_RELEASE);
    }
}

int main(void)
{
    gar_test_point_set(3, 30);
    struct gar_thread thread = {0};
    const struct gar_thread_options options = {.name = "Follower"};
    if (gar_thread_start(&thread, &options, follow, NULL, NULL) != GAR_OK) {
        return 1;
    }
    for (int32_t round = 1; round <= ROUNDS; round++) {
        struct work *work = gar_calloc(1, (int64_t)sizeof *work);
        if (work == NULL || gar_cancel_new(GAR_CLOCK_NEVER, &token, NULL) != GAR_OK) {
            return 1;
        }
        gar_operation_init(&work->operation, on_finish);
        if (!gar_operation_start(&work->operation, on_cancel)) {
            return 1;
        }
        current = work;
        __atomic_store_n(&turn, round, __ATOMIC_RELEASE);
        for (int i = 0; i < round % 70; i++) {
            gar_thread_pause();
        }
        (void)gar_cancel_request(token, GAR_CANCEL_USER);
        gar_operation_cancel(&work->operation);
        while (__atomic_load_n(&answered, __ATOMIC_ACQUIRE) < round) {
            gar_thread_yield();
        }
        if (work->finishes != 1) {
            printf("round %d: finished %d times\n", (int)round, (int)work->finishes);
            return 1;
        }
        gar_free(work);
        gar_cancel_unref(token);
    }
    gar_thread_join(&thread);
    return is_wrong ? 1 : 0;
}
