/* SPDX-License-Identifier: Apache-2.0 */
/* Bitmaps in Arrow order (bit i of a map is bit i%8 of byte i/8, least significant first) and bit tricks. Offsets and
 * lengths are in bits. No function reads or writes a byte that holds none of the named bits. */
#ifndef GAR_BASE_BITS_H
#define GAR_BASE_BITS_H

#include <string.h>

#include "base/attrs.h"

GAR_INLINE bool gar_bit_get(const uint8_t *bits, int64_t i)
{
    return (bits[i >> 3] >> (i & 7)) & 1;
}

GAR_INLINE void gar_bit_set(uint8_t *bits, int64_t i)
{
    bits[i >> 3] = (uint8_t)(bits[i >> 3] | (1u << (i & 7)));
}

GAR_INLINE void gar_bit_clear(uint8_t *bits, int64_t i)
{
    bits[i >> 3] = (uint8_t)(bits[i >> 3] & ~(1u << (i & 7)));
}

GAR_INLINE void gar_bit_put(uint8_t *bits, int64_t i, bool value)
{
    const unsigned mask = 1u << (i & 7);
    bits[i >> 3] = (uint8_t)((bits[i >> 3] & ~mask) | (value ? mask : 0u));
}

GAR_INLINE int64_t gar_bits_bytes(int64_t bits)
{
    return (bits + 7) >> 3;
}

GAR_INLINE int32_t gar_popcount64(uint64_t x)
{
    return __builtin_popcountll(x);
}

GAR_INLINE int32_t gar_ctz64(uint64_t x) /* x != 0 */
{
    return __builtin_ctzll(x);
}

GAR_INLINE int32_t gar_clz64(uint64_t x) /* x != 0 */
{
    return __builtin_clzll(x);
}

GAR_INLINE uint64_t gar_load_u64(const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

GAR_INLINE uint32_t gar_load_u32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

GAR_INLINE void gar_store_u64(void *p, uint64_t v)
{
    memcpy(p, &v, sizeof v);
}

/* Smallest power of two >= x; x in 1 .. 2^62. */
GAR_INLINE int64_t gar_next_pow2(int64_t x)
{
    return x <= 1 ? 1 : (int64_t)1 << (64 - gar_clz64((uint64_t)(x - 1)));
}

/* How many of the bits [offset, offset + count) are set. */
int64_t gar_bits_count(const uint8_t *bits, int64_t offset, int64_t count);
/* Copy a range of bits; source and target must not overlap. */
void gar_bits_copy(uint8_t *to, int64_t to_offset, const uint8_t *from, int64_t from_offset,
                   int64_t count);
/* Set a range to one value. */
void gar_bits_fill(uint8_t *to, int64_t offset, int64_t count, bool value);
/* out = a AND b over count bits; out starts at bit 0; out may be a or b when their offset is 0. */
void gar_bits_and(uint8_t *out, const uint8_t *a, int64_t a_offset, const uint8_t *b,
                  int64_t b_offset, int64_t count);
/* The 64 bits that start at `offset`, fewer (zero-filled) when count < 64; reads only bytes that hold them. */
uint64_t gar_bits_load(const uint8_t *bits, int64_t offset, int64_t count);

#endif
