/* SPDX-License-Identifier: Apache-2.0 */
/* Stable radix sort of (64-bit key, row) pairs. */
#ifndef GAR_KERNELS_RADIX_SORT_H
#define GAR_KERNELS_RADIX_SORT_H

#include "base/attrs.h"

struct gar_sort_entry {
    uint64_t key;
    uint32_t row;
    uint32_t more; /* the caller's */
};

/* Sort by key; entries of equal key keep their order. scratch has room for count entries, at most
 * 2^32 - 1.
 * Shape:   entries[count] in place; count >= 0
 * Stops:   early, in no order, when the task shall stop (base/stop.h): the caller looks again
 * Threads: any; one call works on its own arrays
 * Cost:    only bytes that differ between keys cost a pass; large inputs are first split by their highest byte, so that
 *          the passes stay in cache */
void gar_radix_sort(struct gar_sort_entry *entries, struct gar_sort_entry *scratch, int64_t count);

#endif
