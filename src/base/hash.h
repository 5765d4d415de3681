/* SPDX-License-Identifier: Apache-2.0 */
/* Hash functions of the engine. Values never leave the process unless a format fixes them. */
#ifndef GAR_BASE_HASH_H
#define GAR_BASE_HASH_H

#include "base/attrs.h"

/* Two multiplications: enough mixing for linear probing by the high or the low bits. */
GAR_INLINE uint64_t gar_hash_u64(uint64_t x)
{
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    return x;
}

/* Join a further key's hash to the hash so far; order matters. */
GAR_INLINE uint64_t gar_hash_combine(uint64_t h, uint64_t k)
{
    return gar_hash_u64((h ^ k) + (h << 6) + UINT64_C(0x9e3779b97f4a7c15));
}

/* XXH3 of bytes. */
uint64_t gar_hash_bytes(const void *data, int64_t bytes);
/* XXH64 with seed 0, as Parquet's Bloom filters ask. */
uint64_t gar_hash_xxh64(const void *data, int64_t bytes);

#endif
