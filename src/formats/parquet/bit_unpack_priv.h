/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacking of integers packed at 0 to 32 bits, least significant bit first: the inner loop of dictionary codes and deltas.
 *
 * Every variant computes the same; gar_bit_unpack chooses by processor. */
#ifndef GAR_FORMATS_PARQUET_BIT_UNPACK_PRIV_H
#define GAR_FORMATS_PARQUET_BIT_UNPACK_PRIV_H

#include "base/attrs.h"

/* Values [skip, skip + count) of the packed input to out. in is readable for in_bytes only, which must hold
 * (skip + count) * width bits; width 0..32. */
void gar_bit_unpack(const uint8_t *in, int64_t in_bytes, int32_t width, int64_t skip, int64_t count,
                    uint32_t *out);
/* The same at widths 0..64, one value at a time. */
void gar_bit_unpack_u64(const uint8_t *in, int64_t in_bytes, int32_t width, int64_t skip,
                        int64_t count, uint64_t *out);

/* The variants, for tests and dispatch. first_bit is where value 0 starts. */
void gar_bit_unpack_portable(const uint8_t *in, int64_t in_bytes, int32_t width, int64_t first_bit,
                             int64_t count, uint32_t *out);
/* These take a first bit of 0..7 and widths 1..25 (avx2) or 1..32 (avx512), do a prefix of the values and return how many. */
int64_t gar_bit_unpack_avx2(const uint8_t *in, int64_t in_bytes, int32_t width, int32_t first_bit,
                            int64_t count, uint32_t *out);
int64_t gar_bit_unpack_avx512(const uint8_t *in, int64_t in_bytes, int32_t width, int32_t first_bit,
                              int64_t count, uint32_t *out);

#endif
