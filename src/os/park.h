/* SPDX-License-Identifier: Apache-2.0 */
/* A parker: one thread sleeps on it, any thread wakes it. A wake before the sleep is not lost. It is a futex word: it
 * costs no descriptor, and a signal handled by the sleeping thread ends the sleep. */
#ifndef GAR_OS_PARK_H
#define GAR_OS_PARK_H

#include "base/attrs.h"

/* A zeroed struct is ready for use. */
struct gar_parker {
    uint32_t state; /* atomic: 0 nothing, 1 a wake is pending, 2 somebody sleeps */
};

enum gar_park_result { GAR_PARK_WOKEN, GAR_PARK_TIMEOUT, GAR_PARK_SIGNAL };

/* Sleep until a wake, the deadline (gar_clock_ns; GAR_CLOCK_NEVER: none) or a signal handler. Consumes one wake; what
 * the waker wrote before is visible afterwards. Threads: one sleeper at a time. */
enum gar_park_result gar_parker_wait(struct gar_parker *parker, int64_t deadline_ns);
/* Never blocks; wakes coalesce. The parker must be alive until the call returns. Threads: any. */
void gar_parker_wake(struct gar_parker *parker);

#endif
