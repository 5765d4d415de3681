/* SPDX-License-Identifier: Apache-2.0 */
/* The door for a simulated machine: while one is set, threads, locks, parkers and the monotonic clock are not the system's but
 * its own, so that everything above runs on one thread, in an order it chooses, in a time it makes up. Compiled to nothing
 * outside sanitizer builds. The machine itself lies in tests/sim. */
#ifndef GAR_OS_SIMULATE_H
#define GAR_OS_SIMULATE_H

#include "base/attrs.h"

struct gar_thread;

enum gar_simulated_wait { GAR_SIMULATED_WOKEN, GAR_SIMULATED_TIMEOUT, GAR_SIMULATED_SIGNAL };

/* Nothing else is needed: locks, conditions and parkers are made of wait and wake, as the system's are of futexes. */
struct gar_simulation {
    int64_t (*clock_ns)(void);
    /* A place where another thread may come to run. */
    void (*point)(const char *name);
    /* The calling thread stops until a wake at this address, the deadline or (now and then) for no reason. */
    enum gar_simulated_wait (*wait)(const void *address, int64_t deadline_ns);
    void (*wake)(const void *address, bool all);
    /* A thread: an errno, or 0 and its name in *out_self. */
    int (*start)(const char *name, void (*run)(void *context), void *context,
                 const void **out_self);
    void (*join)(const void *self);
    /* The address that names the running thread. */
    const void *(*self)(void);
};

#if defined(GAR_SANITIZED)
/* NULL: the real machine. */
const struct gar_simulation *gar_simulation(void);
#else
GAR_INLINE const struct gar_simulation *gar_simulation(void)
{
    return NULL;
}
#endif
/* The address at which simulated threads wait for descriptors: whoever makes one readable wakes it. */
extern const char gar_simulated_descriptors;
/* Threads: set while no other thread runs and nothing is locked. Does nothing outside sanitizer builds. */
void gar_simulation_set(const struct gar_simulation *simulation);

#endif
