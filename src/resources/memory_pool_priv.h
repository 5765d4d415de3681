/* SPDX-License-Identifier: Apache-2.0 */
/* What account.c needs of the pool: charging and raw blocks. */
#ifndef GAR_RESOURCES_MEMORY_POOL_PRIV_H
#define GAR_RESOURCES_MEMORY_POOL_PRIV_H

#include "resources/memory_pool.h"

/* Real size of a block for `bytes` (0 .. 2^60). */
int64_t gar_memory_pool_block_bytes(int64_t bytes);
/* Count bytes as used if the limit allows it; false changes nothing. */
bool gar_memory_pool_charge(struct gar_memory_pool *pool, int64_t bytes, bool is_ticket);
void gar_memory_pool_discharge(struct gar_memory_pool *pool, int64_t bytes, bool is_ticket);
/* A block of exactly gar_memory_pool_block_bytes; charged by the caller. NULL when the kernel refuses. */
void *gar_memory_pool_take(struct gar_memory_pool *pool, int64_t block_bytes);
/* An idle block of this size or, from 1 MiB up, of up to three classes above (at most 1.75 times as large): tables that grow
 * leave blocks of neighbouring classes, which serve each other instead of new memory. *out_block_bytes gets its size. NULL
 * when there is none: then take. */
void *gar_memory_pool_take_idle(struct gar_memory_pool *pool, int64_t block_bytes,
                                int64_t *out_block_bytes);
void gar_memory_pool_give(struct gar_memory_pool *pool, void *data, int64_t block_bytes);
/* After a block was given and discharged: trims if no query is inside and there is reason to. */
void gar_memory_pool_freed(struct gar_memory_pool *pool);

/* atomically raise *peak to value. */
GAR_INLINE void gar_raise_peak(int64_t *peak, int64_t value)
{
    int64_t seen = __atomic_load_n(peak, __ATOMIC_RELAXED);
    while (seen < value && !__atomic_compare_exchange_n(peak, &seen, value, true, __ATOMIC_RELAXED,
                                                        __ATOMIC_RELAXED)) {
    }
}

#endif
