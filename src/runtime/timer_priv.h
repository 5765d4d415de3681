/* SPDX-License-Identifier: Apache-2.0 */
/* The loop's timers: a pairing heap in the timers themselves, so that starting one cannot fail. */
#ifndef GAR_RUNTIME_TIMER_PRIV_H
#define GAR_RUNTIME_TIMER_PRIV_H

#include "runtime/loop.h"

/* *root is the earliest, NULL when empty. Insert one that does not run; remove one that does. Cost: O(1) and O(log n)
 * on average. */
void gar_timer_insert(struct gar_timer **root, struct gar_timer *timer);
void gar_timer_remove(struct gar_timer **root, struct gar_timer *timer);

#endif
