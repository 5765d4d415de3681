/* SPDX-License-Identifier: Apache-2.0 */
/* Selection: the k-th smallest of some numbers without sorting them, and floats as keys that compare as integers. */
#ifndef GAR_KERNELS_SELECT_H
#define GAR_KERNELS_SELECT_H

#include <math.h>
#include <string.h>

#include "base/bits.h"

/* Keys in the order of floats: -0.0 equals 0.0, NaN equals NaN and is the greatest. */
GAR_INLINE uint64_t gar_float_key(double value)
{
    uint64_t bits = 0;
    if (isnan(value)) {
        return UINT64_MAX;
    }
    value = value == 0 ? 0.0 : value;
    memcpy(&bits, &value, sizeof bits);
    return bits >> 63 != 0 ? ~bits : bits | UINT64_C(1) << 63;
}

GAR_INLINE double gar_float_of_key(uint64_t key)
{
    const uint64_t bits = key >> 63 != 0 ? key ^ UINT64_C(1) << 63 : ~key;
    double value = 0;
    memcpy(&value, &bits, sizeof value);
    return key == UINT64_MAX ? (double)NAN : value;
}

/* Puts the number that would stand at place k (0 .. count - 1) in order there, none greater before it and none smaller behind
 * it. Threads: any. */
void gar_select_u64(uint64_t *keys, int64_t count, int64_t k);

#endif
