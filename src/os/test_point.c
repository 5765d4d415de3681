/* SPDX-License-Identifier: Apache-2.0 */
/* Test points: each thread draws from its own random sequence and sometimes yields or sleeps. */
#include "os/test_point.h"

#include <stdlib.h>
#include <time.h>

#include "os/simulate.h"
#include "os/thread.h"

#define UNSET UINT64_MAX

static uint64_t seed_set = UNSET;
static int64_t delay_us = 50;

uint64_t gar_test_point_environment(void)
{
    const char *text =
        getenv("GAR_TEST_POINTS"); /* NOLINT(concurrency-mt-unsafe): only in test builds */
    return text == NULL ? 0 : strtoull(text, NULL, 10);
}

static uint64_t read_seed(void)
{
    uint64_t seed = gar_test_point_environment();
    uint64_t expected = UNSET;
    return __atomic_compare_exchange_n(&seed_set, &expected, seed, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE)
               ? seed
               : expected;
}

void gar_test_point_set(uint64_t seed, int64_t delay_us_max)
{
    __atomic_store_n(&delay_us, delay_us_max, __ATOMIC_RELAXED);
    const uint64_t mixed = seed + gar_test_point_environment() * UINT64_C(0xD1342543DE82EF95);
    __atomic_store_n(&seed_set, seed == 0 ? 0 : mixed, __ATOMIC_RELEASE);
}

void gar_test_point(const char *name)
{
    const struct gar_simulation *simulation = gar_simulation();
    if (GAR_UNLIKELY(simulation != NULL)) {
        simulation->point(name);
        return;
    }
    static _Thread_local uint64_t state;
    uint64_t seed = __atomic_load_n(&seed_set, __ATOMIC_ACQUIRE);
    seed = GAR_UNLIKELY(seed == UNSET) ? read_seed() : seed;
    if (seed == 0) {
        return;
    }
    (void)name;
    if (state == 0) {
        state = seed * UINT64_C(0x9E3779B97F4A7C15) + (uint64_t)gar_thread_id();
    }
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    const int64_t limit_us = __atomic_load_n(&delay_us, __ATOMIC_RELAXED);
    if (state % 16 == 0) {
        gar_thread_yield();
    } else if (limit_us > 0 && state % 256 == 1) {
        const struct timespec pause = {
            .tv_sec = 0, .tv_nsec = (long)((state >> 16) % (uint64_t)limit_us) * 1000};
        (void)nanosleep(&pause, NULL);
    }
}
