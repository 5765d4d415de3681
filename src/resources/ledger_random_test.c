/* SPDX-License-Identifier: Apache-2.0 */
/* Random lives of a ledger, one a seed: acquire, release, cancel, lose and restore devices, also from inside on_done.
 * After every step the books must balance: free + sum of grants = total for each resource and each device, no device is
 * over-booked, every ticket ends once. At the end everything is released: then nobody waits.
 *
 * GAR_TEST_SEED is the first seed (default 1), GAR_TEST_LEDGER_SEEDS their number (default 10,000). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "resources/ledger_test_priv.h"

enum { TICKETS = 24, STEPS = 60, DEVICES_MAX = 5 };

enum ticket_state { IDLE, WAITING, HELD, ENDED };

struct run;

struct life {
    struct gar_ledger_ticket ticket; /* first */
    struct run *run;
    enum ticket_state state;
    bool releases_at_once; /* inside on_done */
    int64_t done_count;
    int64_t place; /* in the queue, by time of arrival */
    struct gar_ledger_want wants[3];
    int64_t want_count;
};

struct run {
    uint64_t random;
    uint64_t seed;
    struct gar_ledger *ledger;
    struct life lives[TICKETS];
    int64_t device_count;
    int64_t arrivals;
};

static uint64_t next_random(struct run *run, uint64_t below)
{
    run->random = run->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (run->random >> 33) % below;
}

static void expect(const struct run *run, bool is_true, const char *what)
{
    if (!is_true) {
        fail_msg("seed %llu: %s", (unsigned long long)run->seed, what);
    }
}

/* Nothing is given from a device that is set aside. */
static void check_devices(const struct life *life)
{
    for (int64_t i = 0; i < life->ticket.grant_count; i++) {
        const struct gar_grant *grant = life->ticket.grants[i];
        for (int64_t d = 0; d < gar_grant_device_count(grant); d++) {
            expect(life->run,
                   !gar_ledger_is_set_aside(life->run->ledger, gar_grant_device(grant, d)),
                   "a device that is set aside was given");
        }
    }
}

static void on_done(struct gar_ledger_ticket *ticket, enum gar_status status)
{
    struct life *life = (struct life *)ticket;
    life->done_count++;
    expect(life->run, life->done_count == 1, "a ticket ended twice");
    expect(life->run, life->state == WAITING, "a ticket ended that did not wait");
    expect(life->run, status == GAR_OK || status == ticket->err.status, "status without message");
    life->state = status == GAR_OK ? HELD : ENDED;
    check_devices(life);
    if (life->releases_at_once || status != GAR_OK) {
        gar_ledger_ticket_destroy(ticket);
        life->state = IDLE;
    }
}

static void add_booking(const struct run *run, const struct gar_resources *resources,
                        const struct gar_resource_holder *holder, int64_t *shares, int64_t *memory)
{
    const struct gar_resource_request booked = gar_resource_request_booked(&holder->request);
    for (int64_t i = 0; i < holder->device_count; i++) {
        const int32_t d = holder->devices[i];
        for (int64_t before = 0; before < i; before++) {
            expect(run, holder->devices[before] != d, "a device twice in one grant");
        }
        const bool is_whole = booked.gpu_shares >= GAR_SHARES;
        shares[d] += is_whole ? GAR_SHARES : booked.gpu_shares;
        memory[d] += is_whole ? gar_max_i64(resources->devices[d].device.memory_bytes, 0)
                              : booked.gpu_memory_bytes;
    }
}

static void check_books(const struct run *run)
{
    struct gar_resources *resources = NULL;
    expect(run, gar_ledger_snapshot(run->ledger, &resources, NULL) == GAR_OK, "no snapshot");
    int64_t cpus = 0;
    int64_t memory = 0;
    int64_t device_shares[DEVICES_MAX] = {0};
    int64_t device_memory[DEVICES_MAX] = {0};
    for (int64_t i = 0; i < resources->holder_count; i++) {
        const struct gar_resource_request booked =
            gar_resource_request_booked(&resources->holders[i].request);
        cpus += booked.cpu_shares;
        memory += booked.memory_bytes;
        add_booking(run, resources, &resources->holders[i], device_shares, device_memory);
    }
    expect(run, resources->free_cpu_shares >= 0 && resources->free_memory_bytes >= 0, "overbooked");
    expect(run, cpus + resources->free_cpu_shares == resources->cpu_shares, "CPUs do not balance");
    expect(run, memory + resources->free_memory_bytes == resources->memory_bytes,
           "memory does not balance");
    for (int64_t d = 0; d < resources->device_count; d++) {
        const struct gar_resource_device *device = &resources->devices[d];
        expect(run, device->free_shares >= 0, "a device is overbooked");
        expect(run, device_shares[d] + device->free_shares == GAR_SHARES,
               "a device does not balance");
        if (device->device.memory_bytes >= 0) {
            expect(run, device->free_memory_bytes >= 0, "memory of a device is overbooked");
            expect(run, device_memory[d] + device->free_memory_bytes == device->device.memory_bytes,
                   "memory of a device does not balance");
        }
    }
    int64_t waiting = 0;
    for (int64_t i = 0; i < TICKETS; i++) {
        waiting += run->lives[i].state == WAITING;
    }
    expect(run, (resources->waiting_count > 0) == (waiting > 0),
           "the queue and the tickets differ");
    gar_resources_free(resources);
}

/* Who has waited longest waits because it does not fit, not because nobody looked. */
static void check_first(const struct run *run)
{
    const struct life *first = NULL;
    for (int64_t i = 0; i < TICKETS; i++) {
        const struct life *life = &run->lives[i];
        if (life->state == WAITING && (first == NULL || life->place < first->place)) {
            first = life;
        }
    }
    if (first != NULL) {
        struct gar_placement placement;
        expect(run,
               gar_ledger_preview(run->ledger, first->wants, first->want_count, false, &placement,
                                  NULL) == GAR_PENDING,
               "a wake-up was lost");
    }
}

static struct gar_ledger_want random_want(struct run *run)
{
    static const double shares[] = {0, 0.1, 0.2, 0.25, 1.0 / 3, 0.5, 0.6, 0.75, 1, 1, 2, 3};
    struct gar_ledger_want want = {.holder = "pool"};
    gar_resource_request_init(&want.request);
    want.count = 1 + (int64_t)next_random(run, 3);
    want.count_min = next_random(run, 3) == 0 ? 1 : 0;
    want.strategy = next_random(run, 2) == 0 ? GAR_GPU_PACK : GAR_GPU_SPREAD;
    if (next_random(run, 2) == 0) {
        want.request.cpu_shares = (int64_t)next_random(run, 3 * GAR_SHARES);
    }
    if (next_random(run, 3) == 0) {
        want.request.memory_bytes = (int64_t)next_random(run, (uint64_t)(3 * GIB));
    }
    if (next_random(run, 3) != 0) {
        want.request.gpu_shares =
            gar_shares_from_double(shares[next_random(run, GAR_COUNT_OF(shares))]);
    }
    if (next_random(run, 3) == 0) {
        want.request.gpu_memory_bytes = (int64_t)next_random(run, (uint64_t)(9 * GIB));
    }
    return want;
}

static void step_acquire(struct run *run, struct life *life)
{
    memset(life, 0, sizeof *life);
    struct gar_ledger_want *wants = life->wants;
    const int64_t count = 1 + (int64_t)next_random(run, GAR_COUNT_OF(life->wants));
    for (int64_t w = 0; w < count; w++) {
        wants[w] = random_want(run);
    }
    life->want_count = count;
    life->place = ++run->arrivals;
    life->run = run;
    life->ticket.on_done = on_done;
    life->releases_at_once = next_random(run, 3) == 0;
    struct gar_error err = GAR_ERROR_INIT;
    const enum gar_status status =
        gar_ledger_acquire(run->ledger, wants, count, &life->ticket, &err);
    if (status == GAR_PENDING) {
        life->state = WAITING;
        return;
    }
    expect(run, status == GAR_OK || status == GAR_ERR_VALUE, "acquire failed");
    if (status == GAR_OK) {
        life->state = HELD;
        check_devices(life);
        for (int64_t w = 0, at = 0; w < count; w++) {
            const int64_t least = wants[w].count_min > 0 ? wants[w].count_min : wants[w].count;
            expect(run, life->ticket.counts[w] >= least && life->ticket.counts[w] <= wants[w].count,
                   "wrong number of grants");
            for (int64_t i = 0; i < life->ticket.counts[w]; i++, at++) {
                expect(run,
                       gar_resource_request_equal(gar_grant_request(life->ticket.grants[at]),
                                                  &wants[w].request),
                       "a grant of another want");
            }
        }
    } else {
        gar_ledger_ticket_destroy(&life->ticket);
    }
}

static void step(struct run *run)
{
    struct life *life = &run->lives[next_random(run, TICKETS)];
    switch (life->state) {
    case IDLE: step_acquire(run, life); break;
    case WAITING:
        if (next_random(run, 3) == 0) {
            expect(run, gar_ledger_cancel(&life->ticket), "a waiting ticket was not cancelled");
            expect(run, life->done_count == 1, "a cancelled ticket was not told");
        }
        break;
    case HELD:
        if (next_random(run, 3) == 0 && life->ticket.grant_count > 0) { /* one actor ends */
            const uint64_t grants = (uint64_t)life->ticket.grant_count;
            gar_grant_release(&life->ticket.grants[next_random(run, grants)]);
        } else {
            gar_ledger_ticket_destroy(&life->ticket);
            life->state = IDLE;
        }
        break;
    case ENDED: break;
    }
    if (run->device_count > 0 && next_random(run, 10) == 0) {
        const int32_t device = (int32_t)next_random(run, (uint64_t)run->device_count);
        if (gar_ledger_is_set_aside(run->ledger, device)) {
            gar_ledger_restore(run->ledger, device);
        } else if (next_random(run, 2) == 0) {
            gar_ledger_set_aside(run->ledger, device, "lost");
        }
    }
}

/* Everything is released, nothing is cancelled: all who wait are served, or refused because a device is lost. */
static void drain(struct run *run)
{
    for (int64_t round = 0; round < TICKETS + 1; round++) {
        for (int64_t i = 0; i < TICKETS; i++) {
            if (run->lives[i].state == HELD) {
                gar_ledger_ticket_destroy(&run->lives[i].ticket);
                run->lives[i].state = IDLE;
            }
        }
    }
    for (int64_t i = 0; i < TICKETS; i++) {
        expect(run, run->lives[i].state == IDLE, "a ticket waits for ever");
    }
    check_books(run);
}

static void run_seed(uint64_t seed)
{
    static const char *const machines[] = {"", "0", "3,4", "MIG-a,MIG-b,2", "0,1,2,3,4"};
    static const int64_t counts[] = {0, 1, 2, 3, 5};
    static struct run run;
    memset(&run, 0, sizeof run);
    run.seed = seed;
    run.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    const uint64_t machine = next_random(&run, GAR_COUNT_OF(machines));
    run.device_count = counts[machine];
    run.ledger =
        new_machine(4, 8 * GIB, machines[machine], next_random(&run, 4) == 0 ? -1 : 16 * GIB);
    assert_non_null(run.ledger);
    for (int64_t i = 0; i < STEPS; i++) {
        step(&run);
        check_books(&run);
        check_first(&run);
    }
    drain(&run);
    gar_ledger_unref(run.ledger);
}

/* Any way at all to put parts on devices, tried in the plainest way. */
static bool can_pack(int64_t *room, int64_t devices, const int64_t *shares, int64_t count)
{
    bool can = count == 0;
    for (int64_t d = 0; d < devices && !can; d++) {
        if (room[d] >= shares[count - 1]) {
            room[d] -= shares[count - 1];
            can = can_pack(room, devices, shares, count - 1); /* at most 7 deep */
            room[d] += shares[count - 1];
        }
    }
    return can;
}

/* Pools of different shares on an empty machine: refused exactly when there is no way to place them. */
static void test_refuses_only_what_cannot_be(void **state)
{
    (void)state;
    static struct run run;
    memset(&run, 0, sizeof run);
    run.random = 77;
    int64_t refused = 0;
    for (int64_t round = 0; round < 20000; round++) {
        const char *const machines[] = {"0", "0,1", "0,1,2"};
        const int64_t devices = 1 + (int64_t)next_random(&run, 3);
        struct gar_ledger *ledger = new_machine(64, GIB, machines[devices - 1], -1);
        struct gar_ledger_want wants[7];
        int64_t shares[7];
        int64_t room[3] = {GAR_SHARES, GAR_SHARES, GAR_SHARES};
        const int64_t count = 2 + (int64_t)next_random(&run, 6);
        for (int64_t w = 0; w < count; w++) {
            shares[w] = 1000 * (2 + (int64_t)next_random(&run, 4));
            wants[w] = gpu_want("pool", 1, 0.1);
            wants[w].request.gpu_shares = shares[w];
        }
        struct gar_placement placement;
        const enum gar_status status =
            gar_ledger_preview(ledger, wants, count, true, &placement, NULL);
        assert_int_equal(status == GAR_OK, can_pack(room, devices, shares, count));
        if (status == GAR_OK) {
            for (int64_t w = 0; w < count; w++) {
                room[gar_placement_devices(&placement, wants, w, 0)[0]] -= shares[w];
            }
            assert_true(room[0] >= 0 && room[1] >= 0 && room[2] >= 0);
            gar_placement_destroy(&placement);
        } else {
            refused++;
        }
        gar_ledger_unref(ledger);
    }
    assert_in_range(refused, 1000, 19000);
}

static int64_t number_from(const char *variable, int64_t otherwise)
{
    const char *text = getenv(variable);
    return text == NULL ? otherwise : (int64_t)strtoll(text, NULL, 10);
}

static void test_random_lives(void **state)
{
    (void)state;
    const int64_t first = number_from("GAR_TEST_SEED", 1);
    const int64_t count = number_from("GAR_TEST_LEDGER_SEEDS", 10000);
    const int64_t blocks = gar_alloc_live_blocks();
    for (int64_t i = 0; i < count; i++) {
        run_seed((uint64_t)(first + i));
    }
    assert_int_equal(gar_alloc_live_blocks(), blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_lives),
        cmocka_unit_test(test_refuses_only_what_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
