/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger: placement, refusals, waiting in turn, lost devices, snapshots, failing allocations. */
#include "resources/ledger.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "resources/ledger_test_priv.h"

/* A ticket that remembers how it ended. */
struct waiter {
    struct gar_ledger_ticket ticket;
    int64_t done_count;
    enum gar_status status;
    int64_t order; /* which of all it was */
};

static int64_t done_total;

static void note_done(struct gar_ledger_ticket *ticket, enum gar_status status)
{
    struct waiter *waiter = ticket->context;
    waiter->done_count++;
    waiter->status = status;
    waiter->order = ++done_total;
}

static enum gar_status acquire(struct gar_ledger *ledger, const struct gar_ledger_want *wants,
                               int64_t count, struct waiter *waiter, struct gar_error *err)
{
    memset(waiter, 0, sizeof *waiter);
    waiter->ticket.on_done = note_done;
    waiter->ticket.context = waiter;
    return gar_ledger_acquire(ledger, wants, count, &waiter->ticket, err);
}

static void expect_devices(const struct waiter *waiter, int64_t grant, const char *devices)
{
    char text[256];
    assert_true(grant < waiter->ticket.grant_count);
    assert_string_equal(
        gar_grant_device_text(waiter->ticket.grants[grant], text, (int64_t)sizeof text), devices);
}

static void expect_refused(struct gar_ledger *ledger, const struct gar_ledger_want *wants,
                           int64_t count, const char *text)
{
    struct waiter waiter;
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(acquire(ledger, wants, count, &waiter, &err), GAR_ERR_VALUE);
    if (strstr(err.message, text) == NULL) {
        fail_msg("'%s' is not in '%s'", text, err.message);
    }
    assert_int_equal(waiter.done_count, 0);
    gar_ledger_ticket_destroy(&waiter.ticket);
}

static void expect_all_free(struct gar_ledger *ledger)
{
    struct gar_resources *resources = NULL;
    assert_int_equal(gar_ledger_snapshot(ledger, &resources, NULL), GAR_OK);
    assert_int_equal(resources->free_cpu_shares, resources->cpu_shares);
    assert_int_equal(resources->free_memory_bytes, resources->memory_bytes);
    for (int64_t d = 0; d < resources->device_count; d++) {
        assert_int_equal(resources->devices[d].free_shares, GAR_SHARES);
        assert_int_equal(resources->devices[d].free_memory_bytes,
                         resources->devices[d].device.memory_bytes);
    }
    assert_int_equal(resources->holder_count, 0);
    assert_int_equal(resources->waiting_count, 0);
    gar_resources_free(resources);
}

/* The demonstration: parent 3,4,5,6, two actors of two. */
static void test_whole_devices_in_order(void **state)
{
    (void)state;
    struct gar_ledger *ledger = new_machine(8, GIB, "3,4,5,6", -1);
    const struct gar_ledger_want want = gpu_want("Model", 2, 2);
    struct waiter waiter;
    assert_int_equal(acquire(ledger, &want, 1, &waiter, NULL), GAR_OK);
    assert_int_equal(waiter.ticket.grant_count, 2);
    expect_devices(&waiter, 0, "3,4");
    expect_devices(&waiter, 1, "5,6");
    struct gar_device_environment environment;
    assert_int_equal(gar_grant_environment(waiter.ticket.grants[1], &environment, NULL), GAR_OK);
    assert_int_equal(environment.count, 1);
    assert_string_equal(environment.entries[0], "CUDA_VISIBLE_DEVICES=5,6");
    gar_device_environment_destroy(&environment);
    gar_ledger_ticket_destroy(&waiter.ticket);
    expect_all_free(ledger);
    /* Three with one each start anywhere but in order; a request for more than there is names both numbers. */
    const struct gar_ledger_want three = gpu_want("Model", 3, 1);
    assert_int_equal(acquire(ledger, &three, 1, &waiter, NULL), GAR_OK);
    expect_devices(&waiter, 0, "3");
    expect_devices(&waiter, 2, "5");
    gar_ledger_ticket_destroy(&waiter.ticket);
    const struct gar_ledger_want eight = gpu_want("Model", 1, 8);
    expect_refused(ledger, &eight, 1, "Requested 8 GPUs but found only 4 available");
    gar_ledger_unref(ledger);
}

static void test_fractions_pack(void **state)
{
    (void)state;
    struct gar_ledger *ledger = new_machine(8, GIB, "a,b,c", -1);
    struct waiter w1;
    struct waiter w2;
    struct waiter w3;
    const struct gar_ledger_want first[] = {gpu_want("x", 1, 0.3), gpu_want("y", 1, 0.8)};
    assert_int_equal(acquire(ledger, first, 2, &w1, NULL), GAR_OK);
    expect_devices(&w1, 0, "a");
    expect_devices(&w1, 1, "b");
    /* 0.2 fits exactly on b, which has least; then a (0.7 left); never over two devices. */
    const struct gar_ledger_want second[] = {gpu_want("x", 1, 0.2), gpu_want("y", 1, 0.6)};
    assert_int_equal(acquire(ledger, second, 2, &w2, NULL), GAR_OK);
    expect_devices(&w2, 0, "b");
    expect_devices(&w2, 1, "a");
    struct gar_ledger_want spread = gpu_want("s", 2, 0.1);
    spread.strategy = GAR_GPU_SPREAD;
    assert_int_equal(acquire(ledger, &spread, 1, &w3, NULL), GAR_OK);
    expect_devices(&w3, 0, "c");
    expect_devices(&w3, 1, "c");
    gar_ledger_ticket_destroy(&w1.ticket);
    gar_ledger_ticket_destroy(&w2.ticket);
    gar_ledger_ticket_destroy(&w3.ticket);
    expect_all_free(ledger);
    /* Halves: packed on one, spread over two. */
    struct gar_ledger_want halves = gpu_want("h", 2, 0.5);
    assert_int_equal(acquire(ledger, &halves, 1, &w1, NULL), GAR_OK);
    expect_devices(&w1, 1, "a");
    gar_ledger_ticket_destroy(&w1.ticket);
    halves.strategy = GAR_GPU_SPREAD;
    assert_int_equal(acquire(ledger, &halves, 1, &w1, NULL), GAR_OK);
    expect_devices(&w1, 0, "a");
    expect_devices(&w1, 1, "b");
    gar_ledger_ticket_destroy(&w1.ticket);
    gar_ledger_unref(ledger);
}

static void test_shares_fit_exactly(void **state)
{
    (void)state;
    struct gar_ledger *ledger = new_machine(1, GIB, "0", -1);
    static const struct {
        double share;
        int64_t count;
    } cases[] = {{0.2, 5}, {1.0 / 3, 3}, {0.1, 10}, {1.0 / 7, 7}, {0.0001, 10000}};
    for (int64_t i = 0; i < GAR_COUNT_OF(cases); i++) {
        struct waiter waiter;
        struct gar_ledger_want want = gpu_want("x", cases[i].count, cases[i].share);
        assert_int_equal(acquire(ledger, &want, 1, &waiter, NULL), GAR_OK);
        gar_ledger_ticket_destroy(&waiter.ticket);
        want.count++;
        expect_refused(ledger, &want, 1, "Not enough resources available to admit");
    }
    expect_all_free(ledger);
    gar_ledger_unref(ledger);
}

/* 2 x 0.75 need two devices; 3 x 0.6 never fit on two. */
static void test_actors_are_placed_one_by_one(void **state)
{
    (void)state;
    struct gar_ledger *one = new_machine(8, GIB, "0", -1);
    struct gar_ledger *two = new_machine(8, GIB, "0,1", -1);
    struct gar_ledger_want want = gpu_want("Model", 2, 0.75);
    struct waiter waiter;
    expect_refused(one, &want, 1,
                   "Not enough resources available to admit 2 actors: 2 of 'Model' with 0.75 GPUs "
                   "each; the machine has 8 CPUs, 1.0 GiB of memory, 1 GPUs (0)");
    assert_int_equal(acquire(two, &want, 1, &waiter, NULL), GAR_OK);
    expect_devices(&waiter, 0, "0");
    expect_devices(&waiter, 1, "1");
    gar_ledger_ticket_destroy(&waiter.ticket);
    want = gpu_want("Model", 3, 0.6);
    expect_refused(two, &want, 1, "admit 3 actors");
    /* As many as fit. */
    want.count_min = 1;
    assert_int_equal(acquire(two, &want, 1, &waiter, NULL), GAR_OK);
    assert_int_equal(waiter.ticket.grant_count, 2);
    assert_int_equal(waiter.ticket.counts[0], 2);
    gar_ledger_ticket_destroy(&waiter.ticket);
    expect_all_free(two);
    gar_ledger_unref(one);
    gar_ledger_unref(two);
}

static void test_refusals(void **state)
{
    (void)state;
    struct gar_ledger *ledger = new_machine(2, 16 * GIB, "0,1", 80 * GIB);
    struct gar_ledger *bare = new_machine(2, 16 * GIB, "", -1);
    struct gar_ledger_want want = cpu_want("f", 1, 1000);
    expect_refused(ledger, &want, 1, "Requested 1000 CPUs but found only 2 available (for 'f')");
    want = cpu_want("f", 3, 1);
    expect_refused(ledger, &want, 1,
                   "Not enough resources available to admit 3 actors: 3 of 'f' "
                   "with 1 CPU each; the machine has 2 CPUs");
    want = cpu_want("f", 1, 1);
    want.request.memory_bytes = 16 * GIB + 1;
    expect_refused(ledger, &want, 1,
                   "Requested 17179869185 bytes of memory (16.0 GiB) but found only 17179869184 "
                   "(16.0 GiB) available");
    want = gpu_want("f", 1, 1);
    expect_refused(bare, &want, 1, "Requested 1 GPUs but found only 0 available");
    want = gpu_want("f", 1, 0.5);
    expect_refused(bare, &want, 1, "Requested 0.5 GPUs but found only 0 available");
    want = gpu_want("f", 1, 0);
    want.request.gpu_memory_bytes = 81 * GIB;
    expect_refused(ledger, &want, 1,
                   "Requested 81.0 GiB of GPU memory but found only 80.0 GiB available on the "
                   "largest device");
    want = gpu_want("f", 0, 1);
    expect_refused(ledger, &want, 1, "a pool has 1 or more");
    want = gpu_want("f", 2, 1);
    want.count_min = 3;
    expect_refused(ledger, &want, 1, "at least 3");
    want = gpu_want("f", 1000000, 0);
    expect_refused(ledger, &want, 1, "at most 65536");
    want = gpu_want("f", 1, 1e9); /* no memory is taken for so many */
    expect_refused(ledger, &want, 1, "Requested 1000000000 GPUs but found only 2 available");
    want = gpu_want("f", 1, 1);
    want.request.gpu_shares = 15000;
    expect_refused(ledger, &want, 1, "greater than 1 must be an integer");
    /* Two stages of one chain on one GPU. */
    const struct gar_ledger_want chain[] = {gpu_want("Decode", 1, 1), gpu_want("Embed", 1, 2)};
    expect_refused(ledger, chain, 2,
                   "admit 2 actors: 1 of 'Decode' with 1 GPU each, 1 of 'Embed' with 2 GPUs each");
    expect_refused(ledger, chain, 2, "they run at the same time: ask for fractions");
    expect_all_free(ledger);
    gar_ledger_unref(ledger);
    gar_ledger_unref(bare);
}

static void test_gpu_memory(void **state)
{
    (void)state;
    struct gar_ledger *ledger = new_machine(2, GIB, "0,1", 80 * GIB);
    struct waiter waiters[5];
    struct gar_ledger_want want = gpu_want("m", 1, 0);
    gar_resource_request_init(&want.request);
    want.request.gpu_memory_bytes = 50 * GIB;
    assert_int_equal(acquire(ledger, &want, 1, &waiters[0], NULL), GAR_OK);
    expect_devices(&waiters[0], 0, "0");
    assert_int_equal(acquire(ledger, &want, 1, &waiters[1], NULL), GAR_OK);
    expect_devices(&waiters[1], 0, "1");
    want.request.gpu_memory_bytes = 30 * GIB;
    assert_int_equal(acquire(ledger, &want, 1, &waiters[2], NULL), GAR_OK);
    expect_devices(&waiters[2], 0, "0");
    /* With a share: both must fit on one device. */
    want = gpu_want("m", 1, 0.5);
    want.request.gpu_memory_bytes = 20 * GIB;
    assert_int_equal(acquire(ledger, &want, 1, &waiters[3], NULL), GAR_OK);
    expect_devices(&waiters[3], 0, "1");
    /* A device with booked memory is not entirely free. */
    want = gpu_want("m", 1, 1);
    assert_int_equal(acquire(ledger, &want, 1, &waiters[4], NULL), GAR_PENDING);
    gar_ledger_ticket_destroy(&waiters[2].ticket);
    assert_int_equal(waiters[4].done_count, 0);
    gar_ledger_ticket_destroy(&waiters[0].ticket);
    assert_int_equal(waiters[4].done_count, 1);
    expect_devices(&waiters[4], 0, "0");
    /* A whole device takes all its memory. */
    struct waiter late;
    want = gpu_want("m", 1, 0);
    want.request.gpu_memory_bytes = 15 * GIB;
    assert_int_equal(acquire(ledger, &want, 1, &late, NULL), GAR_PENDING);
    assert_true(gar_ledger_cancel(&late.ticket));
    assert_int_equal(late.status, GAR_ERR_CANCELLED);
    gar_ledger_ticket_destroy(&late.ticket);
    gar_ledger_ticket_destroy(&waiters[1].ticket);
    gar_ledger_ticket_destroy(&waiters[3].ticket);
    gar_ledger_ticket_destroy(&waiters[4].ticket);
    expect_all_free(ledger);
    struct gar_ledger *unknown = new_machine(2, GIB, "0,1", -1);
    expect_refused(unknown, &want, 1, "the memory of the devices is not known");
    gar_ledger_unref(unknown);
    gar_ledger_unref(ledger);
}

static void test_slices(void **state)
{
    (void)state;
    struct gar_ledger *ledger = new_machine(4, GIB, "MIG-a,MIG-b,0,1", 10 * GIB);
    struct waiter waiter;
    struct gar_ledger_want want = gpu_want("m", 3, 1);
    assert_int_equal(acquire(ledger, &want, 1, &waiter, NULL), GAR_OK);
    expect_devices(&waiter, 0, "MIG-a");
    expect_devices(&waiter, 2, "0");
    gar_ledger_ticket_destroy(&waiter.ticket);
    want = gpu_want("m", 1, 2);
    assert_int_equal(acquire(ledger, &want, 1, &waiter, NULL), GAR_OK);
    expect_devices(&waiter, 0, "0,1");
    gar_ledger_ticket_destroy(&waiter.ticket);
    want = gpu_want("m", 1, 3);
    expect_refused(ledger, &want, 1,
                   "Requested 3 GPUs but found only 2 available (for 'm'); a process can use only "
                   "one slice of a split GPU");
    gar_ledger_unref(ledger);
}

/* The order in which wants are given decides, unless only another one fits. */
static void test_hard_wants_first_when_needed(void **state)
{
    (void)state;
    struct gar_ledger *ledger = new_machine(4, GIB, "0,1", -1);
    struct waiter waiter;
    const struct gar_ledger_want wants[] = {gpu_want("small", 2, 0.4), gpu_want("large", 1, 0.6),
                                            gpu_want("middle", 1, 0.6)};
    assert_int_equal(acquire(ledger, wants, 3, &waiter, NULL), GAR_OK);
    assert_int_equal(waiter.ticket.grant_count, 4);
    char small[16];
    char other[16];
    assert_string_not_equal(gar_grant_device_text(waiter.ticket.grants[0], small, sizeof small),
                            gar_grant_device_text(waiter.ticket.grants[1], other, sizeof other));
    gar_ledger_ticket_destroy(&waiter.ticket);
    /* More than the least, in turn, for those that may have more. */
    struct gar_ledger_want more[] = {cpu_want("a", 4, 1), cpu_want("b", 4, 1)};
    more[0].count_min = 1;
    more[1].count_min = 1;
    assert_int_equal(acquire(ledger, more, 2, &waiter, NULL), GAR_OK);
    assert_int_equal(waiter.ticket.counts[0], 2);
    assert_int_equal(waiter.ticket.counts[1], 2);
    gar_ledger_ticket_destroy(&waiter.ticket);
    expect_all_free(ledger);
    gar_ledger_unref(ledger);
}

/* 0.5 + 0.3 + 0.2 and 0.4 + 0.3 + 0.3 fill two devices; neither order of placing finds it. */
static void test_search_finds_what_orders_miss(void **state)
{
    (void)state;
    struct gar_ledger *ledger = new_machine(8, GIB, "0,1", -1);
    struct waiter waiter;
    struct gar_ledger_want wants[] = {
        gpu_want("a", 1, 0.5), gpu_want("b", 1, 0.4), gpu_want("c", 3, 0.3),
        gpu_want("d", 1, 0.2), cpu_want("e", 2, 2),
    };
    assert_int_equal(acquire(ledger, wants, 5, &waiter, NULL), GAR_OK);
    assert_int_equal(waiter.ticket.grant_count, 8);
    gar_ledger_ticket_destroy(&waiter.ticket);
    wants[4].count = 5; /* CPUs count in the search too */
    expect_refused(ledger, wants, 5, "Not enough resources available to admit 11 actors");
    expect_all_free(ledger);
    gar_ledger_unref(ledger);
}

static void test_waits_in_turn(void **state)
{
    (void)state;
    struct gar_ledger *ledger = new_machine(4, GIB, "0,1", -1);
    const struct gar_ledger_want one = gpu_want("one", 1, 1);
    const struct gar_ledger_want both = gpu_want("both", 1, 2);
    const struct gar_ledger_want cpu = cpu_want("cpu", 1, 1);
    struct waiter a;
    struct waiter b;
    struct waiter c;
    struct waiter d;
    done_total = 0;
    assert_int_equal(acquire(ledger, &one, 1, &a, NULL), GAR_OK);
    assert_int_equal(acquire(ledger, &both, 1, &b, NULL), GAR_PENDING);
    /* One device is free, but b waits for both and came first. */
    assert_int_equal(acquire(ledger, &one, 1, &c, NULL), GAR_PENDING);
    /* Nobody waits for CPUs. */
    assert_int_equal(acquire(ledger, &cpu, 1, &d, NULL), GAR_OK);
    gar_grant_release(&a.ticket.grants[0]);
    assert_null(a.ticket.grants[0]);
    gar_grant_release(&a.ticket.grants[0]); /* a second time is nothing */
    assert_int_equal(b.done_count, 1);
    assert_int_equal(b.status, GAR_OK);
    assert_int_equal(c.done_count, 0);
    assert_false(gar_ledger_cancel(&b.ticket));
    gar_ledger_ticket_destroy(&b.ticket);
    assert_int_equal(c.done_count, 1);
    assert_true(b.order < c.order);
    gar_ledger_ticket_destroy(&c.ticket);
    gar_ledger_ticket_destroy(&a.ticket);
    gar_ledger_ticket_destroy(&d.ticket);
    expect_all_free(ledger);
    gar_ledger_unref(ledger);
}

/* Small requests cannot starve a large one: what becomes free is kept for who came first. */
static void test_nobody_overtakes(void **state)
{
    (void)state;
    struct gar_ledger *ledger = new_machine(4, GIB, "0,1", -1);
    const struct gar_ledger_want one = gpu_want("one", 1, 1);
    const struct gar_ledger_want both = gpu_want("both", 1, 2);
    struct waiter a;
    struct waiter b;
    struct waiter c;
    struct waiter d;
    assert_int_equal(acquire(ledger, &one, 1, &a, NULL), GAR_OK);
    assert_int_equal(acquire(ledger, &one, 1, &b, NULL), GAR_OK);
    assert_int_equal(acquire(ledger, &both, 1, &c, NULL), GAR_PENDING);
    assert_int_equal(acquire(ledger, &one, 1, &d, NULL), GAR_PENDING);
    gar_ledger_ticket_destroy(&a.ticket);
    assert_int_equal(c.done_count + d.done_count, 0);
    gar_ledger_ticket_destroy(&b.ticket);
    assert_int_equal(c.done_count, 1);
    assert_int_equal(d.done_count, 0);
    gar_ledger_ticket_destroy(&c.ticket);
    assert_int_equal(d.done_count, 1);
    gar_ledger_ticket_destroy(&d.ticket);
    expect_all_free(ledger);
    gar_ledger_unref(ledger);
}

/* Who stood in the way is cancelled: the next one is served at once. */
static void test_cancel_lets_the_next_pass(void **state)
{
    (void)state;
    struct gar_ledger *ledger = new_machine(4, GIB, "0,1", -1);
    const struct gar_ledger_want one = gpu_want("one", 1, 1);
    const struct gar_ledger_want both = gpu_want("both", 1, 2);
    struct waiter a;
    struct waiter b;
    struct waiter c;
    assert_int_equal(acquire(ledger, &one, 1, &a, NULL), GAR_OK);
    assert_int_equal(acquire(ledger, &both, 1, &b, NULL), GAR_PENDING);
    assert_int_equal(acquire(ledger, &one, 1, &c, NULL), GAR_PENDING);
    assert_true(gar_ledger_cancel(&b.ticket));
    assert_false(gar_ledger_cancel(&b.ticket));
    assert_int_equal(b.done_count, 1);
    assert_int_equal(b.status, GAR_ERR_CANCELLED);
    assert_int_equal(b.ticket.err.status, GAR_ERR_CANCELLED);
    assert_int_equal(c.done_count, 1);
    expect_devices(&c, 0, "1");
    gar_ledger_ticket_destroy(&a.ticket);
    gar_ledger_ticket_destroy(&b.ticket);
    gar_ledger_ticket_destroy(&c.ticket);
    expect_all_free(ledger);
    gar_ledger_unref(ledger);
}

static void release_at_once(struct gar_ledger_ticket *ticket, enum gar_status status)
{
    static int64_t depth = 0;
    assert_int_equal(depth++, 0);
    note_done(ticket, status);
    gar_ledger_ticket_destroy(ticket);
    depth--;
}

/* on_done may release: a long queue is served without recursion. */
static void test_release_inside_on_done(void **state)
{
    (void)state;
    enum { WAITERS = 20000 };
    struct gar_ledger *ledger = new_machine(4, GIB, "0", -1);
    const struct gar_ledger_want want = gpu_want("one", 1, 1);
    struct waiter first;
    struct waiter *waiters = calloc(WAITERS, sizeof *waiters);
    assert_non_null(waiters);
    assert_int_equal(acquire(ledger, &want, 1, &first, NULL), GAR_OK);
    done_total = 0;
    /* Queueing looks at all who wait, so the queue is filled from the end of a short one. */
    for (int64_t i = 0; i < WAITERS; i++) {
        waiters[i].ticket.on_done = release_at_once;
        waiters[i].ticket.context = &waiters[i];
        assert_int_equal(gar_ledger_acquire(ledger, &want, 1, &waiters[i].ticket, NULL),
                         GAR_PENDING);
        if (i % 500 == 499) { /* keeps the test short */
            gar_ledger_ticket_destroy(&first.ticket);
            assert_int_equal(acquire(ledger, &want, 1, &first, NULL), GAR_OK);
        }
    }
    gar_ledger_ticket_destroy(&first.ticket);
    for (int64_t i = 0; i < WAITERS; i++) {
        assert_int_equal(waiters[i].done_count, 1);
        assert_int_equal(waiters[i].order, i + 1);
    }
    free(waiters);
    expect_all_free(ledger);
    gar_ledger_unref(ledger);
}

static void test_lost_devices(void **state)
{
    (void)state;
    struct gar_ledger *ledger = new_machine(4, GIB, "3,4", -1);
    const struct gar_ledger_want one = gpu_want("one", 1, 1);
    const struct gar_ledger_want both = gpu_want("both", 1, 2);
    struct waiter a;
    struct waiter b;
    struct waiter c;
    assert_int_equal(acquire(ledger, &one, 1, &a, NULL), GAR_OK);
    assert_int_equal(acquire(ledger, &both, 1, &b, NULL), GAR_PENDING);
    assert_int_equal(acquire(ledger, &one, 1, &c, NULL), GAR_PENDING);
    /* The held device is lost: who waits for both never gets them, the next gets the other one. */
    assert_true(gar_ledger_report(a.ticket.grants[0], GAR_DEVICE_LOST, "uncorrectable ECC error"));
    assert_int_equal(b.status, GAR_ERR_VALUE);
    assert_non_null(strstr(b.ticket.err.message,
                           "Requested 2 GPUs but found only 1 available (for 'both'); device '3' "
                           "is set aside: uncorrectable ECC error"));
    assert_int_equal(c.status, GAR_OK);
    assert_int_equal(c.done_count, 1);
    expect_devices(&c, 0, "4");
    assert_true(gar_ledger_is_set_aside(ledger, 0));
    gar_ledger_ticket_destroy(&a.ticket); /* its share comes back, but is not given again */
    struct waiter d;
    assert_int_equal(acquire(ledger, &one, 1, &d, NULL), GAR_PENDING);
    expect_refused(ledger, &both, 1, "set aside: uncorrectable ECC error");
    gar_ledger_restore(ledger, 0);
    assert_int_equal(d.done_count, 1);
    expect_devices(&d, 0, "3");
    gar_ledger_ticket_destroy(&b.ticket);
    gar_ledger_ticket_destroy(&c.ticket);
    /* Suspicion counts only twice in a row. */
    assert_false(gar_ledger_report(d.ticket.grants[0], GAR_DEVICE_SUSPECT, "the process aborted"));
    assert_false(gar_ledger_report(d.ticket.grants[0], GAR_DEVICE_FINE, ""));
    assert_false(gar_ledger_report(d.ticket.grants[0], GAR_DEVICE_SUSPECT, "the process aborted"));
    assert_false(gar_ledger_report(d.ticket.grants[0], GAR_DEVICE_POISON, ""));
    assert_true(gar_ledger_report(d.ticket.grants[0], GAR_DEVICE_SUSPECT, "the process aborted"));
    gar_ledger_set_aside(ledger, 1, "by hand");
    expect_refused(ledger, &one, 1, "found only 0 available");
    gar_ledger_ticket_destroy(&d.ticket);
    gar_ledger_unref(ledger);
}

static void test_snapshot(void **state)
{
    (void)state;
    struct gar_ledger *ledger = new_machine(4, 8 * GIB, "3,4", 80 * GIB);
    struct gar_ledger_want wants[] = {gpu_want("Model", 1, 2), cpu_want("f", 1, 1.5)};
    wants[1].request.memory_bytes = GIB;
    struct waiter a;
    struct waiter b;
    assert_int_equal(acquire(ledger, wants, 2, &a, NULL), GAR_OK);
    gar_grant_set_process(a.ticket.grants[0], 4711);
    const struct gar_ledger_want more = gpu_want("a name that is much longer than the room that "
                                                 "there is for it in a snapshot",
                                                 1, 0.5);
    assert_int_equal(acquire(ledger, &more, 1, &b, NULL), GAR_PENDING);
    struct gar_resources *resources = NULL;
    assert_int_equal(gar_ledger_snapshot(ledger, &resources, NULL), GAR_OK);
    assert_int_equal(resources->free_cpu_shares, 25000);
    assert_int_equal(resources->free_memory_bytes, 7 * GIB);
    assert_int_equal(resources->device_count, 2);
    assert_string_equal(resources->devices[1].device.name, "4");
    assert_int_equal(resources->devices[1].free_shares, 0);
    assert_int_equal(resources->devices[1].free_memory_bytes, 0);
    assert_int_equal(resources->holder_count, 2);
    assert_string_equal(resources->holders[0].name, "Model");
    assert_int_equal(resources->holders[0].process_id, 4711);
    assert_int_equal(resources->holders[0].device_count, 2);
    assert_int_equal(resources->holders[0].devices[1], 1);
    assert_string_equal(resources->holders[1].name, "f");
    assert_int_equal(resources->holders[1].device_count, 0);
    assert_int_equal(resources->waiting_count, 1);
    assert_int_equal(resources->waiting[0].request.gpu_shares, 5000);
    assert_int_equal(strlen(resources->waiting[0].name), GAR_HOLDER_TEXT_BYTES - 1);
    gar_resources_free(resources);
    gar_resources_free(NULL);
    assert_true(gar_ledger_cancel(&b.ticket));
    gar_ledger_ticket_destroy(&b.ticket);
    gar_ledger_ticket_destroy(&a.ticket);
    gar_ledger_unref(ledger);
}

static void test_preview(void **state)
{
    (void)state;
    struct gar_ledger *ledger = new_machine(4, GIB, "3,4", -1);
    struct gar_ledger_want wants[] = {gpu_want("a", 4, 0.5), gpu_want("b", 2, 0)};
    wants[0].count_min = 1;
    struct gar_placement placement;
    assert_int_equal(gar_ledger_preview(ledger, wants, 2, false, &placement, NULL), GAR_OK);
    assert_int_equal(placement.counts[0], 4);
    assert_int_equal(gar_placement_devices(&placement, wants, 0, 3)[0], 1);
    gar_placement_destroy(&placement);
    struct waiter held;
    const struct gar_ledger_want both = gpu_want("both", 1, 2);
    assert_int_equal(acquire(ledger, &both, 1, &held, NULL), GAR_OK);
    assert_int_equal(gar_ledger_preview(ledger, wants, 2, false, &placement, NULL), GAR_PENDING);
    assert_int_equal(gar_ledger_preview(ledger, wants, 2, true, &placement, NULL), GAR_OK);
    gar_placement_destroy(&placement);
    struct gar_error err = GAR_ERROR_INIT;
    const struct gar_ledger_want three = gpu_want("three", 1, 3);
    assert_int_equal(gar_ledger_preview(ledger, &three, 1, true, &placement, &err), GAR_ERR_VALUE);
    gar_ledger_ticket_destroy(&held.ticket);
    expect_all_free(ledger);
    gar_ledger_unref(ledger);
}

/* Every allocation of an acquisition and of a snapshot fails once: nothing is booked, nothing leaks. */
static void test_allocations_fail(void **state)
{
    (void)state;
    struct gar_ledger *ledger = new_machine(4, GIB, "3,4", -1);
    const struct gar_ledger_want wants[] = {gpu_want("a", 2, 0.5), gpu_want("b", 1, 1)};
    bool is_through = false;
    for (int64_t n = 1; !is_through; n++) {
        struct waiter waiter;
        struct gar_resources *resources = NULL;
        struct gar_placement placement = {0};
        struct gar_error err = GAR_ERROR_INIT;
        (void)gar_alloc_fail_at(n, false);
        const enum gar_status acquired = acquire(ledger, wants, 2, &waiter, &err);
        const enum gar_status previewed =
            acquired == GAR_OK ? gar_ledger_preview(ledger, wants, 2, true, &placement, &err)
                               : GAR_OK;
        const enum gar_status seen = gar_ledger_snapshot(ledger, &resources, NULL);
        is_through = gar_alloc_fail_at(0, false) < n;
        assert_true(acquired == GAR_OK || acquired == GAR_ERR_NOMEM);
        assert_true(previewed == GAR_OK || previewed == GAR_ERR_NOMEM);
        assert_true(seen == GAR_OK || seen == GAR_ERR_NOMEM);
        if (is_through) {
            assert_int_equal(acquired, GAR_OK);
            assert_int_equal(seen, GAR_OK);
        }
        gar_placement_destroy(&placement);
        gar_resources_free(resources);
        gar_ledger_ticket_destroy(&waiter.ticket);
        expect_all_free(ledger);
    }
    gar_ledger_unref(ledger);
    is_through = false;
    for (int64_t n = 1; !is_through; n++) {
        (void)gar_alloc_fail_at(n, false);
        const struct gar_ledger_options options = {.cpu_shares = 1, .memory_bytes = 1};
        ledger = NULL;
        const enum gar_status made = gar_ledger_new(&options, &ledger, NULL);
        is_through = gar_alloc_fail_at(0, false) < n;
        assert_true(made == (is_through ? GAR_OK : GAR_ERR_NOMEM));
        gar_ledger_unref(ledger);
    }
}

/* A forked child has books of its own for CPUs, and gets no devices. */
static bool works_in_child(struct gar_ledger *ledger, const struct gar_ledger_want *all_cpus,
                           struct waiter *held, struct waiter *queued)
{
    const struct gar_ledger_want gpu = gpu_want("f", 1, 1);
    struct waiter waiter;
    struct gar_resources *resources = NULL;
    bool is_right = acquire(ledger, all_cpus, 1, &waiter, NULL) == GAR_OK;
    gar_ledger_ticket_destroy(&held->ticket); /* the parent's: gives nothing back here */
    is_right = is_right && gar_ledger_cancel(&queued->ticket) && queued->done_count == 1;
    gar_ledger_ticket_destroy(&queued->ticket);
    is_right = is_right && gar_resources_read(&resources, NULL) == GAR_OK &&
               resources->free_cpu_shares == 0 && resources->holder_count == 1;
    gar_resources_free(resources);
    gar_ledger_ticket_destroy(&waiter.ticket);
    return is_right && acquire(ledger, &gpu, 1, &waiter, NULL) == GAR_ERR_UNSUPPORTED;
}

static void test_fork(void **state)
{
    (void)state;
    struct gar_ledger *ledger = gar_ledger_process(NULL);
    assert_non_null(ledger);
    assert_ptr_equal(gar_ledger_process(NULL), ledger);
    assert_true(gar_ledger_cpu_shares(ledger) >= GAR_SHARES);
    struct gar_ledger_want all_cpus = cpu_want("parent", 1, 1);
    all_cpus.request.cpu_shares = gar_ledger_cpu_shares(ledger);
    struct waiter held;
    struct waiter queued;
    assert_int_equal(acquire(ledger, &all_cpus, 1, &held, NULL), GAR_OK);
    assert_int_equal(acquire(ledger, &all_cpus, 1, &queued, NULL), GAR_PENDING);
    const pid_t child = fork();
    if (child == 0) {
        _exit(works_in_child(ledger, &all_cpus, &held, &queued) ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_true(gar_ledger_cancel(&queued.ticket));
    gar_ledger_ticket_destroy(&queued.ticket);
    gar_ledger_ticket_destroy(&held.ticket);
    expect_all_free(ledger);
    assert_int_equal(gar_resources_set_aside("no such device", "x", NULL), GAR_ERR_VALUE);
    assert_int_equal(gar_resources_restore("no such device", NULL), GAR_ERR_VALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_devices_in_order),
        cmocka_unit_test(test_fractions_pack),
        cmocka_unit_test(test_shares_fit_exactly),
        cmocka_unit_test(test_actors_are_placed_one_by_one),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_gpu_memory),
        cmocka_unit_test(test_slices),
        cmocka_unit_test(test_hard_wants_first_when_needed),
        cmocka_unit_test(test_search_finds_what_orders_miss),
        cmocka_unit_test(test_waits_in_turn),
        cmocka_unit_test(test_nobody_overtakes),
        cmocka_unit_test(test_cancel_lets_the_next_pass),
        cmocka_unit_test(test_release_inside_on_done),
        cmocka_unit_test(test_lost_devices),
        cmocka_unit_test(test_snapshot),
        cmocka_unit_test(test_preview),
        cmocka_unit_test(test_allocations_fail),
        cmocka_unit_test(test_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
