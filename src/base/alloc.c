/* SPDX-License-Identifier: Apache-2.0 */
/* The C library's allocator behind counters and a failure hook.
 *
 * Counters are sharded by thread so that two threads that allocate do not share a cache line. A block is
 * counted by its usable size, so no header of ours is needed; one shard may go negative, the sum is right. */
#include "base/alloc.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { SHARDS = 16 };

/* All atomics here are relaxed: they are counts, nothing is published through them. */
struct shard {
    GAR_ALIGNED(GAR_CACHE_LINE) atomic_int_least64_t live_bytes;
    atomic_int_least64_t live_blocks;
    atomic_int_least64_t made; /* allocations asked for, refused ones included */
};

static struct shard shards[SHARDS];
static atomic_uint next_shard;
static _Thread_local struct shard *my_shard;

static atomic_bool is_armed;                /* the failure hook is on */
static atomic_int_least64_t fail_countdown; /* 1: the next allocation fails */
static atomic_bool fail_and_on;             /* also all after it */
static atomic_int_least64_t made_at_last_call;

static struct shard *shard_of_thread(void)
{
    if (GAR_UNLIKELY(my_shard == NULL)) {
        my_shard =
            &shards[atomic_fetch_add_explicit(&next_shard, 1, memory_order_relaxed) % SHARDS];
    }
    return my_shard;
}

static void count(void *memory, int64_t sign)
{
    struct shard *s = shard_of_thread();
    const int64_t bytes = (int64_t)malloc_usable_size(memory);
    atomic_fetch_add_explicit(&s->live_bytes, sign * bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->live_blocks, sign, memory_order_relaxed);
}

bool gar_alloc_must_fail(void)
{
    atomic_fetch_add_explicit(&shard_of_thread()->made, 1, memory_order_relaxed);
    if (GAR_LIKELY(!atomic_load_explicit(&is_armed, memory_order_relaxed))) {
        return false;
    }
    const int64_t left = atomic_fetch_sub_explicit(&fail_countdown, 1, memory_order_relaxed);
    return left == 1 || (left < 1 && atomic_load_explicit(&fail_and_on, memory_order_relaxed));
}

void *gar_malloc(int64_t bytes)
{
    if (gar_alloc_must_fail()) {
        return NULL;
    }
    void *memory = malloc(bytes <= 0 ? 1 : (size_t)bytes);
    if (memory != NULL) {
        count(memory, 1);
    }
    return memory;
}

void *gar_calloc(int64_t items, int64_t item_bytes)
{
    if (gar_alloc_must_fail()) {
        return NULL;
    }
    const bool is_empty = items <= 0 || item_bytes <= 0;
    void *memory = calloc(is_empty ? 1 : (size_t)items, is_empty ? 1 : (size_t)item_bytes);
    if (memory != NULL) {
        count(memory, 1);
    }
    return memory;
}

void *gar_realloc(void *old, int64_t bytes)
{
    if (old == NULL) {
        return gar_malloc(bytes);
    }
    if (gar_alloc_must_fail()) {
        return NULL;
    }
    const int64_t old_bytes = (int64_t)malloc_usable_size(old);
    void *memory = realloc(old, bytes <= 0 ? 1 : (size_t)bytes);
    if (memory != NULL) {
        const int64_t grown = (int64_t)malloc_usable_size(memory) - old_bytes;
        atomic_fetch_add_explicit(&shard_of_thread()->live_bytes, grown, memory_order_relaxed);
    }
    return memory;
}

void gar_free(void *memory)
{
    if (memory != NULL) {
        count(memory, -1);
        free(memory);
    }
}

char *gar_strdup(const char *text)
{
    return gar_strndup(text, (int64_t)strlen(text));
}

char *gar_strndup(const char *text, int64_t bytes)
{
    char *copy = gar_malloc(bytes + 1);
    if (copy != NULL) {
        if (bytes > 0) {
            memcpy(copy, text, (size_t)bytes);
        }
        copy[bytes] = '\0';
    }
    return copy;
}

enum gar_status gar_grow(void **items, int64_t *capacity, int64_t want, int64_t item_bytes,
                         struct gar_error *err)
{
    if (want <= *capacity) {
        return GAR_OK;
    }
    int64_t target = *capacity < 8 ? 8 : *capacity;
    while (target < want) {
        if (__builtin_mul_overflow(target, (int64_t)2, &target)) {
            target = want;
        }
    }
    int64_t bytes = 0;
    if (__builtin_mul_overflow(target, item_bytes, &bytes)) {
        return gar_error_nomem(err, INT64_MAX);
    }
    void *grown = gar_realloc(*items, bytes);
    if (grown == NULL) {
        return gar_error_nomem(err, bytes);
    }
    *items = grown;
    *capacity = target;
    return GAR_OK;
}

int64_t gar_alloc_live_bytes(void)
{
    int64_t sum = 0;
    for (int i = 0; i < SHARDS; i++) {
        sum += atomic_load_explicit(&shards[i].live_bytes, memory_order_relaxed);
    }
    return sum;
}

int64_t gar_alloc_live_blocks(void)
{
    int64_t sum = 0;
    for (int i = 0; i < SHARDS; i++) {
        sum += atomic_load_explicit(&shards[i].live_blocks, memory_order_relaxed);
    }
    return sum;
}

int64_t gar_alloc_fail_at(int64_t n, bool and_on)
{
    int64_t made = 0;
    for (int i = 0; i < SHARDS; i++) {
        made += atomic_load_explicit(&shards[i].made, memory_order_relaxed);
    }
    atomic_store_explicit(&is_armed, false, memory_order_relaxed);
    atomic_store_explicit(&fail_and_on, and_on, memory_order_relaxed);
    atomic_store_explicit(&fail_countdown, n, memory_order_relaxed);
    atomic_store_explicit(&is_armed, n > 0, memory_order_relaxed);
    return made - atomic_exchange_explicit(&made_at_last_call, made, memory_order_relaxed);
}
