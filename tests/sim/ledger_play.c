/* SPDX-License-Identifier: Apache-2.0 */
/* A ledger of its own, some threads that acquire, hold, give up and release, and one that loses devices and finds them again.
 * Every ticket ends once; nobody waits when nothing is held; in the end all is back. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "os/park.h"
#include "plays.h"
#include "resources/ledger.h"

enum { HOLDERS_MAX = 5, ROUNDS_MAX = 4, DEVICES_MAX = 3 };

struct books {
    struct sim_play *play;
    struct gar_ledger *ledger;
    int32_t device_count;
    bool is_over; /* the holders are done */
};

/* One acquisition; lives until the play is judged, because a late wake must find its parker. */
struct stay {
    struct gar_ledger_ticket ticket; /* first */
    struct books *books;
    struct gar_parker parker;
    int64_t done_count;
    enum gar_status status;
    int64_t patience_ns; /* -1: waits */
    bool is_cancelled;
};

static void on_done(struct gar_ledger_ticket *ticket, enum gar_status status)
{
    struct stay *stay = (struct stay *)ticket;
    stay->done_count++;
    SIM_CHECK(stay->done_count == 1, "a ticket of the ledger ended twice");
    stay->status = status;
    sim_point("ledger on_done");
    gar_parker_wake(&stay->parker);
}

static void lose_patience(void *context)
{
    struct stay *stay = context;
    sim_sleep(stay->patience_ns);
    stay->is_cancelled = gar_ledger_cancel(&stay->ticket);
}

static void wait_for(struct stay *stay)
{
    struct sim_thread *canceller =
        stay->patience_ns >= 0 ? sim_spawn("ledger canceller", lose_patience, stay) : NULL;
    while (stay->done_count == 0) {
        (void)gar_parker_wait(&stay->parker, GAR_CLOCK_NEVER);
    }
    if (canceller != NULL) {
        sim_join(canceller);
    }
    SIM_CHECK((stay->status == GAR_ERR_CANCELLED) == stay->is_cancelled,
              "a ticket ended with %s, cancelled %d", gar_status_text(stay->status),
              (int)stay->is_cancelled);
}

static struct gar_ledger_want draw_want(struct books *books)
{
    static const int64_t shares[] = {2000, 3333, 5000, 7500, GAR_SHARES, 2 * GAR_SHARES};
    struct sim_rng *rng = &books->play->rng;
    struct gar_ledger_want want = {.holder = "play"};
    gar_resource_request_init(&want.request);
    want.count = 1 + sim_below(rng, 2);
    want.count_min = sim_chance(rng, 30) ? 1 : 0;
    want.strategy = sim_chance(rng, 50) ? GAR_GPU_PACK : GAR_GPU_SPREAD;
    if (sim_chance(rng, 50)) {
        want.request.cpu_shares = sim_below(rng, 2 * GAR_SHARES);
    }
    if (sim_chance(rng, 70)) {
        want.request.gpu_shares = shares[sim_below(rng, GAR_COUNT_OF(shares))];
    }
    return want;
}

static void free_stay(void *context)
{
    free(context);
}

static void stay_once(struct books *books)
{
    struct sim_rng *rng = &books->play->rng;
    struct stay *stay = calloc(1, sizeof *stay);
    SIM_CHECK(stay != NULL, "no memory");
    stay->books = books;
    stay->ticket.on_done = on_done;
    stay->patience_ns = sim_chance(rng, 30) ? sim_below(rng, 5 * GAR_NS_PER_MS) : -1;
    struct gar_ledger_want wants[2];
    const int64_t count = 1 + sim_below(rng, GAR_COUNT_OF(wants));
    for (int64_t w = 0; w < count; w++) {
        wants[w] = draw_want(books);
    }
    struct gar_error err = GAR_ERROR_INIT;
    const enum gar_status status =
        gar_ledger_acquire(books->ledger, wants, count, &stay->ticket, &err);
    if (status == GAR_PENDING) {
        wait_for(stay);
    } else {
        stay->status = status;
    }
    sim_trace("ledger: %s", gar_status_text(stay->status));
    SIM_CHECK(stay->status != GAR_ERR_NOMEM || books->play->has_refused_memory,
              "the ledger found no memory: %s", err.message);
    SIM_CHECK(stay->status == GAR_OK || stay->status == GAR_ERR_VALUE ||
                  stay->status == GAR_ERR_NOMEM || stay->status == GAR_ERR_CANCELLED,
              "an acquisition ended with %s: %s", gar_status_text(stay->status), err.message);
    if (stay->status == GAR_OK) {
        sim_sleep(sim_below(rng, 3 * GAR_NS_PER_MS));
        if (stay->ticket.grant_count > 0 && sim_chance(rng, 30)) {
            (void)gar_ledger_report(stay->ticket.grants[0],
                                    sim_chance(rng, 30) ? GAR_DEVICE_LOST : GAR_DEVICE_SUSPECT,
                                    "simulated loss");
        }
    }
    gar_ledger_ticket_destroy(&stay->ticket);
    sim_play_later(books->play, free_stay, stay);
}

static void holder(void *context)
{
    struct books *books = context;
    for (int64_t i = sim_below(&books->play->rng, ROUNDS_MAX); i >= 0; i--) {
        stay_once(books);
    }
}

static void breaker(void *context)
{
    struct books *books = context;
    struct sim_rng *rng = &books->play->rng;
    while (!books->is_over && books->device_count > 0) {
        sim_sleep(1 + sim_below(rng, GAR_NS_PER_MS));
        const int32_t device = (int32_t)sim_below(rng, books->device_count);
        if (sim_chance(rng, 50)) {
            gar_ledger_restore(books->ledger, device);
        } else if (sim_chance(rng, 30)) {
            gar_ledger_set_aside(books->ledger, device, "simulated loss");
        }
    }
}

static void judge_books(const struct books *books)
{
    struct gar_resources *resources = NULL;
    const enum gar_status status = gar_ledger_snapshot(books->ledger, &resources, NULL);
    if (status != GAR_OK) {
        SIM_CHECK(books->play->has_refused_memory, "no snapshot of the ledger");
        return;
    }
    SIM_CHECK(resources->holder_count == 0 && resources->waiting_count == 0,
              "somebody holds or waits at the end");
    SIM_CHECK(resources->free_cpu_shares == resources->cpu_shares, "CPUs are missing at the end");
    for (int64_t d = 0; d < resources->device_count; d++) {
        SIM_CHECK(resources->devices[d].free_shares == GAR_SHARES, "a share is missing at the end");
    }
    gar_resources_free(resources);
}

static struct gar_ledger *draw_machine(struct books *books)
{
    struct gar_device_list list = {.count = 0};
    books->device_count = (int32_t)sim_below(&books->play->rng, DEVICES_MAX + 1);
    list.devices = gar_calloc(DEVICES_MAX, (int64_t)sizeof *list.devices);
    if (list.devices == NULL) {
        return NULL;
    }
    list.count = books->device_count;
    list.capacity = DEVICES_MAX;
    for (int32_t d = 0; d < books->device_count; d++) {
        list.devices[d].name[0] = (char)('0' + d);
        list.devices[d].memory_bytes = -1;
    }
    const struct gar_ledger_options options = {.cpu_shares = 2 * GAR_SHARES, .devices = &list};
    struct gar_ledger *ledger = NULL;
    const enum gar_status status = gar_ledger_new(&options, &ledger, NULL);
    gar_device_list_destroy(&list);
    return status == GAR_OK ? ledger : NULL;
}

static void keeper(void *context)
{
    struct books *books = context;
    books->ledger = draw_machine(books);
    if (books->ledger == NULL) {
        SIM_CHECK(books->play->has_refused_memory, "no ledger");
        free(books);
        return;
    }
    struct sim_thread *threads[HOLDERS_MAX];
    const int64_t count = 1 + sim_below(&books->play->rng, HOLDERS_MAX);
    struct sim_thread *loser = sim_spawn("ledger breaker", breaker, books);
    for (int64_t i = 0; i < count; i++) {
        threads[i] = sim_spawn("ledger holder", holder, books);
    }
    for (int64_t i = 0; i < count; i++) {
        sim_join(threads[i]);
    }
    books->is_over = true;
    sim_join(loser);
    judge_books(books);
    gar_ledger_unref(books->ledger);
    free(books);
}

struct sim_thread *sim_play_ledger(struct sim_play *play)
{
    struct books *books = calloc(1, sizeof *books);
    SIM_CHECK(books != NULL, "no memory");
    books->play = play;
    return sim_spawn("ledger keeper", keeper, books);
}
