/* SPDX-License-Identifier: Apache-2.0 */
/* The parker over a futex. The sleeper announces itself by 0 -> 2; the waker sets 1 and enters the kernel only if it
 * found 2. A wake that meets nobody stays as 1 and ends the next wait at once. */
#include "os/park.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/simulate.h"
#include "os/test_point.h"

enum { STATE_EMPTY, STATE_WOKEN, STATE_ASLEEP };

/* 0 or errno. */
static int simulated_wait(const struct gar_simulation *simulation, const uint32_t *word,
                          uint32_t expected, int64_t deadline_ns)
{
    if (__atomic_load_n(word, __ATOMIC_RELAXED) != expected) {
        return EAGAIN;
    }
    switch (simulation->wait(word, deadline_ns)) {
    case GAR_SIMULATED_WOKEN: return 0;
    case GAR_SIMULATED_TIMEOUT: return ETIMEDOUT;
    case GAR_SIMULATED_SIGNAL: return EINTR;
    }
    return 0;
}

/* 0 or errno. */
static int futex_wait(uint32_t *word, uint32_t expected, int64_t deadline_ns)
{
    const struct gar_simulation *simulation = gar_simulation();
    if (GAR_UNLIKELY(simulation != NULL)) {
        return simulated_wait(simulation, word, expected, deadline_ns);
    }
    const int64_t at_ns = gar_max_i64(deadline_ns, 0);
    const struct timespec at = {.tv_sec = at_ns / GAR_NS_PER_S, .tv_nsec = at_ns % GAR_NS_PER_S};
    const long code =
        syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected,
                deadline_ns == GAR_CLOCK_NEVER ? NULL : &at, NULL, FUTEX_BITSET_MATCH_ANY);
    return code == 0 ? 0 : errno;
}

/* Stop sleeping: takes the wake that may have come meanwhile. */
static enum gar_park_result leave(struct gar_parker *parker, enum gar_park_result without_wake)
{
    const uint32_t state = __atomic_exchange_n(&parker->state, STATE_EMPTY, __ATOMIC_ACQUIRE);
    return state == STATE_WOKEN ? GAR_PARK_WOKEN : without_wake;
}

enum gar_park_result gar_parker_wait(struct gar_parker *parker, int64_t deadline_ns)
{
    uint32_t expected = STATE_EMPTY;
    if (!__atomic_compare_exchange_n(&parker->state, &expected, STATE_ASLEEP, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
        return leave(parker, GAR_PARK_WOKEN);
    }
    GAR_TEST_POINT("park");
    for (;;) {
        const int code = futex_wait(&parker->state, STATE_ASLEEP, deadline_ns);
        if (__atomic_load_n(&parker->state, __ATOMIC_RELAXED) == STATE_WOKEN) {
            return leave(parker, GAR_PARK_WOKEN);
        }
        if (code == ETIMEDOUT) {
            return leave(parker, GAR_PARK_TIMEOUT);
        }
        if (code == EINTR) {
            return leave(parker, GAR_PARK_SIGNAL);
        }
    }
}

static void futex_wake(uint32_t *word)
{
    const struct gar_simulation *simulation = gar_simulation();
    if (GAR_UNLIKELY(simulation != NULL)) {
        simulation->wake(word, false);
    } else {
        (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
}

void gar_parker_wake(struct gar_parker *parker)
{
    if (__atomic_exchange_n(&parker->state, STATE_WOKEN, __ATOMIC_RELEASE) == STATE_ASLEEP) {
        GAR_TEST_POINT("wake");
        futex_wake(&parker->state);
    }
}
