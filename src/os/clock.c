/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks over clock_gettime. */
#include "os/clock.h"

#include <time.h>

#include "os/simulate.h"

static int64_t read_clock(clockid_t id)
{
    struct timespec now = {0, 0};
    (void)clock_gettime(id, &now);
    return (int64_t)now.tv_sec * GAR_NS_PER_S + (int64_t)now.tv_nsec;
}

int64_t gar_clock_ns(void)
{
    const struct gar_simulation *simulation = gar_simulation();
    return simulation != NULL ? simulation->clock_ns() : read_clock(CLOCK_MONOTONIC);
}

int64_t gar_clock_wall_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

int64_t gar_clock_thread_cpu_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

int64_t gar_clock_deadline(int64_t after_ns)
{
    int64_t at_ns;
    if (after_ns < 0 || __builtin_add_overflow(gar_clock_ns(), after_ns, &at_ns)) {
        return GAR_CLOCK_NEVER;
    }
    return at_ns;
}
