/* SPDX-License-Identifier: Apache-2.0 */
/* Putting dense values on their rows. */
#ifndef GAR_FORMATS_PARQUET_SPREAD_PRIV_H
#define GAR_FORMATS_PARQUET_SPREAD_PRIV_H

#include "base/attrs.h"

/* values[0..dense) become values[0..rows): value k goes to the k-th row whose bit (from `offset` of bits) is set, other rows
 * become zero. width 1, 2, 4, 8 or 16; dense is the number of set bits; in place. */
void gar_spread(void *values, int32_t width, const uint8_t *bits, int64_t offset, int64_t rows,
                int64_t dense);
/* The same for a bitmap: bits of `values` from bit `at`. */
void gar_spread_bits(uint8_t *values, int64_t at, const uint8_t *bits, int64_t offset, int64_t rows,
                     int64_t dense);

#endif
