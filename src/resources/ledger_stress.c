/* SPDX-License-Identifier: Apache-2.0 */
/* Several threads acquire, wait, cancel, release, set devices aside and look, all at once. */
#include <stdio.h>

#include "os/clock.h"
#include "os/park.h"
#include "os/test_point.h"
#include "os/thread.h"
#include "resources/ledger_test_priv.h"

enum { THREADS = 4, ROUNDS = 1500 };

static struct gar_ledger *ledger;
static int64_t granted; /* atomic */
static int64_t cancelled;

struct waiter {
    struct gar_ledger_ticket ticket; /* first */
    struct gar_parker parker;
    uint32_t is_done; /* atomic; the status is written before */
    enum gar_status status;
};

static void on_done(struct gar_ledger_ticket *ticket, enum gar_status status)
{
    struct waiter *waiter = (struct waiter *)ticket;
    waiter->status = status;
    __atomic_store_n(&waiter->is_done, 1, __ATOMIC_RELEASE);
    gar_parker_wake(&waiter->parker); /* the waiter frees itself only after this round */
}

static void wait_for(struct waiter *waiter)
{
    while (__atomic_load_n(&waiter->is_done, __ATOMIC_ACQUIRE) == 0) {
        (void)gar_parker_wait(&waiter->parker, GAR_CLOCK_NEVER);
    }
}

static void look(void)
{
    struct gar_resources *resources = NULL;
    if (gar_ledger_snapshot(ledger, &resources, NULL) != GAR_OK || resources->free_cpu_shares < 0) {
        abort();
    }
    gar_resources_free(resources);
}

static void work(void *context)
{
    uint64_t random = *(const uint64_t *)context;
    static const double shares[] = {0.2, 0.5, 1, 2};
    struct waiter *waiters = calloc(ROUNDS, sizeof *waiters); /* a late wake must find its parker */
    if (waiters == NULL) {
        abort();
    }
    for (int64_t i = 0; i < ROUNDS; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        struct waiter *waiter = &waiters[i];
        waiter->ticket.on_done = on_done;
        struct gar_ledger_want want =
            gpu_want("pool", 1 + (int64_t)((random >> 20) % 2), shares[(random >> 33) % 4]);
        want.count_min = 1;
        want.request.cpu_shares = (int64_t)((random >> 40) % GAR_SHARES);
        enum gar_status status = gar_ledger_acquire(ledger, &want, 1, &waiter->ticket, NULL);
        if (status == GAR_PENDING) {
            if ((random >> 50) % 4 == 0 && gar_ledger_cancel(&waiter->ticket)) {
                (void)__atomic_fetch_add(&cancelled, 1, __ATOMIC_RELAXED);
            }
            wait_for(waiter);
            status = waiter->status;
        }
        if (status == GAR_OK) {
            (void)__atomic_fetch_add(&granted, 1, __ATOMIC_RELAXED);
            gar_grant_set_process(waiter->ticket.grants[0], i);
        }
        if (random % 29 == 0) {
            look();
        }
        gar_ledger_ticket_destroy(&waiter->ticket);
        if (random % 53 == 0) {
            gar_ledger_set_aside(ledger, 0, "lost");
            gar_ledger_restore(ledger, 0);
        }
    }
    free(waiters);
}

int main(void)
{
    ledger = new_machine(2, GIB, "0,1,2", -1);
    gar_test_point_set(11, 50);
    struct gar_thread threads[THREADS];
    uint64_t seeds[THREADS];
    memset(threads, 0, sizeof threads);
    for (int i = 0; i < THREADS; i++) {
        seeds[i] = (uint64_t)i + 1;
        const struct gar_thread_options options = {.name = "Stress"};
        if (gar_thread_start(&threads[i], &options, work, &seeds[i], NULL) != GAR_OK) {
            return 1;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        gar_thread_join(&threads[i]);
    }
    struct gar_resources *resources = NULL;
    if (gar_ledger_snapshot(ledger, &resources, NULL) != GAR_OK) {
        return 1;
    }
    bool is_right = resources->holder_count == 0 && resources->waiting_count == 0 && granted > 0 &&
                    resources->free_cpu_shares == resources->cpu_shares;
    for (int64_t d = 0; d < resources->device_count; d++) {
        is_right = is_right && resources->devices[d].free_shares == GAR_SHARES;
    }
    printf("granted %lld, cancelled %lld\n", (long long)granted, (long long)cancelled);
    gar_resources_free(resources);
    gar_ledger_unref(ledger);
    return is_right ? 0 : 1;
}
