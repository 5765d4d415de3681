/* SPDX-License-Identifier: Apache-2.0 */
/* The place where a simulated machine is plugged in. */
#include "os/simulate.h"

const char gar_simulated_descriptors = 0;

#if defined(GAR_SANITIZED)

static const struct gar_simulation *current;

const struct gar_simulation *gar_simulation(void)
{
    return __atomic_load_n(&current, __ATOMIC_RELAXED);
}

void gar_simulation_set(const struct gar_simulation *simulation)
{
    __atomic_store_n(&current, simulation, __ATOMIC_RELEASE);
}

#else

void gar_simulation_set(const struct gar_simulation *simulation)
{
    (void)simulation;
}

#endif
