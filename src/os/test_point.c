/* SPDX-License-Identifier: Apache-2.0 */
/* Test points: each thread draws from its own random sequence and sometimes yields or sleeps. */
#include "os/test_point.h"

#include <time.h>

#include "os/thread.h"

static uint64_t seed_set;
static int64_t delay_us;

void gar_test_point_set(uint64_t seed, int64_t delay_us_max)
{
    __atomic_store_n(&delay_us, delay_us_max, __ATOMIC_RELAXED);
    __atomic_store_n(&seed_set, seed, __ATOMIC_RELEASE);
}

void gar_test_point(const char *name)
{
    static _Thread_local uint64_t state;
    const uint64_t seed = __atomic_load_n(&seed_set, __ATOMIC_ACQUIRE);
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
        const struct timespec pause = {.tv_sec = 0, .tv_nsec = (long)((state >> 16) % (uint64_t)limit_us) * 1000};
        (void)nanosleep(&pause, NULL);
    }
}
