/* SPDX-License-Identifier: Apache-2.0 */
/* How long the engine's threads look for work before they sleep. A wake-up through the kernel costs 15-25 us of the waker
 * and the woken on a small virtual machine, so that is what a short look may cost. */
#ifndef GAR_RUNTIME_SPIN_PRIV_H
#define GAR_RUNTIME_SPIN_PRIV_H

#include "os/clock.h"
#include "os/test_point.h"
#include "os/thread.h"

#define GAR_SPIN_NS INT64_C(30000)

/* Spins until *word is not 0 or the time is over. */
GAR_INLINE void gar_spin_for(const int64_t *word)
{
    const int64_t until_ns = gar_clock_ns() + GAR_SPIN_NS;
    do {
        for (int32_t i = 0; i < 16; i++) {
            if (__atomic_load_n(word, __ATOMIC_RELAXED) != 0) {
                return;
            }
            gar_thread_pause();
        }
        GAR_TEST_POINT("spin");
    } while (gar_clock_ns() < until_ns);
}

#endif
