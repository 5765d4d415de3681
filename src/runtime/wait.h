/* SPDX-License-Identifier: Apache-2.0 */
/* How a caller's thread waits for the engine: asleep, but looking at its own signals every 20 ms. */
#ifndef GAR_RUNTIME_WAIT_H
#define GAR_RUNTIME_WAIT_H

#include "base/attrs.h"
#include "base/error.h"

/* The caller's look at its signals. check returns true when it wants to stop (Python: PyErr_CheckSignals failed; it
 * takes the GIL itself). Runs on the waiting thread, at least every 20 ms and after every handled signal. */
struct gar_interrupt {
    bool (*check)(void *context);
    void *context;
};

/* How often a waiting caller looks, and how long it waits for a cancelled query to stop before it leaves it alone. */
#define GAR_WAIT_TICK_NS INT64_C(20000000)
#define GAR_WAIT_STOP_NS INT64_C(1000000000)

GAR_INLINE bool gar_interrupt_check(const struct gar_interrupt *interrupt)
{
    return interrupt != NULL && interrupt->check(interrupt->context);
}

#endif
