/* SPDX-License-Identifier: Apache-2.0 */
/* The process's column memory.
 *
 * 1. A request is rounded up to a size class: 2^e * {5, 6, 7, 8} / 4 bytes plus EXTRA_BYTES. The extra takes the padding
 *    of buffers, so that a column of 2^n bytes does not fall into the next class, and keeps equal columns from lying at
 *    addresses that compete for the same cache sets.
 * 2. A freed block goes to the front of its class's list in the freeing thread's shard: the next taker finds it warm.
 *    A taker looks into its own shard, then into the others, then cuts new blocks.
 * 3. New blocks are cut from the class's newest span (a map), several at a time, and populated outside the lock: one
 *    system call instead of hundreds of page faults. Spans hold one class only, so that they become empty again.
 * 4. Nothing goes back to the kernel until a trim, which runs between queries (when the last one leaves, and when
 *    blocks are freed later), or before a cut that would take more from the kernel than the limit.
 *    A trim detaches all free blocks, sorts them by address, and unmaps spans whose
 *    blocks are all free.
 * 5. Above LARGE_BYTES a block is a map of its own and is kept on one list, for requests of nearly the same size.
 *
 * Threads: any. Locks: one a shard, one for spans and large blocks; no function holds two, except around fork. */
#include "resources/memory_pool.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/memory.h"
#include "os/fork.h"
#include "os/limits.h"
#include "os/map.h"
#include "os/mutex.h"
#include "resources/memory_pool_priv.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define HIDE(data, bytes) __asan_poison_memory_region((data), (size_t)(bytes))
#define SHOW(data, bytes) __asan_unpoison_memory_region((data), (size_t)(bytes))
#else
#define HIDE(data, bytes) ((void)(data), (void)(bytes))
#define SHOW(data, bytes) ((void)(data), (void)(bytes))
#endif

enum { NEIGHBOURS = 3 }; /* classes above the wanted one that may serve it */
enum { SHARDS = 8, SMALL_SHIFT = 12, LARGE_SHIFT = 25, CLASSES = (LARGE_SHIFT - SMALL_SHIFT) * 4 };
#define EXTRA_BYTES           INT64_C(128)
#define SMALL_BYTES           ((INT64_C(1) << SMALL_SHIFT) + EXTRA_BYTES) /* up to here: the C library */
#define LARGE_BYTES           ((INT64_C(1) << LARGE_SHIFT) + EXTRA_BYTES) /* above: a map of its own */
#define HUGE_FROM_BYTES       (INT64_C(64) << 10) /* classes from here up use huge pages */
#define NEIGHBOURS_FROM_BYTES (INT64_C(1) << 20)
#define SPAN_BYTES_MAX        (INT64_C(16) << 20)
#define POPULATE_BYTES_MAX \
    (INT64_C(64) << 20) /* larger blocks are left to first touch, by several threads */
#define DEFAULT_PERCENT    75
#define RESIDENT_BYTES_MAX (INT64_C(2) << 30)  /* of the default cap */
#define TRIM_STEP_BYTES    (INT64_C(64) << 20) /* freed between two trims while no query is inside */

/* A free block, in its own first bytes. */
struct block {
    struct block *next;
    int64_t bytes; /* large blocks only */
};

struct span {
    struct span *next;
    char *data;
    int64_t bytes;     /* of the map */
    int64_t cut_bytes; /* from its start: handed out at least once */
};

struct shard {
    GAR_ALIGNED(GAR_CACHE_LINE) struct gar_mutex lock;
    struct {
        struct block *free[CLASSES];
    } synced GAR_GUARDED;
};

struct gar_memory_pool {
    struct gar_memory_pool *next; /* under pools_lock */
    struct gar_memory_pool *previous;
    bool is_process;   /* never freed */
    int64_t own_bytes; /* of this struct's block */
    struct gar_mutex lock;
    struct {
        struct span *spans[CLASSES]; /* newest first; blocks are cut from the first */
        struct block *large;
    } synced GAR_GUARDED;
    /* Atomics. Relaxed: they are counts; memory itself is published through the locks. */
    int64_t refs; /* acquire-release */
    int64_t limit_bytes;
    int64_t resident_bytes; /* 0: the default */
    int64_t queries; /* inside; sequentially consistent: the last leave or a later free trims */
    int64_t trim_at_bytes; /* idle bytes at which a free trims */
    GAR_ALIGNED(GAR_CACHE_LINE) int64_t used_bytes;
    int64_t peak_bytes;
    int64_t reserved_bytes;
    int64_t idle_bytes;
    int64_t mapped_bytes; /* cut so far and not given back */
    struct shard shards[SHARDS];
};

static int32_t class_of(int64_t block_bytes);
static int64_t class_bytes(int32_t class);
static int32_t own_shard(void);
static struct block *pop(struct shard *shard, int32_t class);
static void push_list(struct shard *shard, int32_t class, struct block *first, struct block *last);
static void *take_new(struct gar_memory_pool *pool, int32_t class);
static char *cut(struct gar_memory_pool *pool, int32_t class, int64_t *out_count);
static struct span *new_span(int32_t class);
static void *take_large(struct gar_memory_pool *pool, int64_t bytes);
static struct block *find_large_locked(struct gar_memory_pool *pool, int64_t bytes)
    GAR_REQUIRES(pool->lock);
static void make_room(struct gar_memory_pool *pool, int64_t bytes);
static int64_t resident_cap(const struct gar_memory_pool *pool);
static int64_t trim_to(struct gar_memory_pool *pool, int64_t keep_bytes);
static int64_t trim_class(struct gar_memory_pool *pool, int32_t class);
static int64_t trim_large(struct gar_memory_pool *pool, int64_t keep_bytes);
static struct block *sort_blocks(struct block *list);
static struct span *take_empty_spans(struct gar_memory_pool *pool, int32_t class,
                                     struct block **blocks);
static bool is_span_free(const struct span *span, const struct block *blocks, int64_t step);
static int64_t default_limit(void);
static void add(int64_t *counter, int64_t bytes);
static int64_t get(const int64_t *counter);

/* ---- all pools, for fork ---- */

static struct gar_mutex pools_lock =
    GAR_MUTEX_INIT; /* guards the list and the making of process_pool */
static struct gar_memory_pool *first_pool;
static struct gar_memory_pool *process_pool;

/* Around fork all locks are held, so that the child finds no half-changed list. */
static void lock_all(void) GAR_NO_TSA
{
    gar_mutex_lock(&pools_lock);
    for (struct gar_memory_pool *pool = first_pool; pool != NULL; pool = pool->next) {
        gar_mutex_lock(&pool->lock);
        for (int32_t i = 0; i < SHARDS; i++) {
            gar_mutex_lock(&pool->shards[i].lock);
        }
    }
}

static void unlock_all(void) GAR_NO_TSA
{
    for (struct gar_memory_pool *pool = first_pool; pool != NULL; pool = pool->next) {
        for (int32_t i = 0; i < SHARDS; i++) {
            gar_mutex_unlock(&pool->shards[i].lock);
        }
        gar_mutex_unlock(&pool->lock);
    }
    gar_mutex_unlock(&pools_lock);
}

/* The parent's queries do not go on in the child. */
static void reset_child(void) GAR_NO_TSA
{
    for (struct gar_memory_pool *pool = first_pool; pool != NULL; pool = pool->next) {
        __atomic_store_n(&pool->queries, 0, __ATOMIC_SEQ_CST);
    }
    unlock_all();
}

static void handle_forks(void)
{
    static struct gar_fork_handler handler = {
        .before = lock_all, .after_in_parent = unlock_all, .after_in_child = reset_child};
    gar_fork_register(&handler);
}

static void link_pool(struct gar_memory_pool *pool)
{
    static struct gar_once once = GAR_ONCE_INIT;
    gar_once_run(&once, handle_forks);
    gar_mutex_lock(&pools_lock);
    pool->next = first_pool;
    if (first_pool != NULL) {
        first_pool->previous = pool;
    }
    first_pool = pool;
    gar_mutex_unlock(&pools_lock);
}

static void unlink_pool(struct gar_memory_pool *pool)
{
    gar_mutex_lock(&pools_lock);
    if (pool->next != NULL) {
        pool->next->previous = pool->previous;
    }
    if (pool->previous != NULL) {
        pool->previous->next = pool->next;
    } else {
        first_pool = pool->next;
    }
    gar_mutex_unlock(&pools_lock);
}

/* ---- life ---- */

enum gar_status gar_memory_pool_new(const struct gar_memory_pool_options *options,
                                    struct gar_memory_pool **out, struct gar_error *err)
{
    if (options->limit_bytes < 0 || options->resident_bytes < 0) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "memory limit %lld and resident cap %lld must not be negative",
                             (long long)options->limit_bytes, (long long)options->resident_bytes);
    }
    int64_t own_bytes = 0; /* the system memory aligns to cache lines */
    struct gar_memory_pool *pool =
        gar_memory_alloc(gar_memory_system(), (int64_t)sizeof *pool, &own_bytes, err);
    if (pool == NULL) {
        return GAR_ERR_NOMEM;
    }
    memset(pool, 0, sizeof *pool);
    pool->own_bytes = own_bytes;
    gar_mutex_init(&pool->lock);
    for (int32_t i = 0; i < SHARDS; i++) {
        gar_mutex_init(&pool->shards[i].lock);
    }
    pool->refs = 1;
    gar_memory_pool_set_limit(pool, options->limit_bytes);
    gar_memory_pool_set_resident(pool, options->resident_bytes);
    link_pool(pool);
    *out = pool;
    return GAR_OK;
}

struct gar_memory_pool *gar_memory_pool_ref(struct gar_memory_pool *pool)
{
    (void)__atomic_fetch_add(&pool->refs, 1, __ATOMIC_RELAXED);
    return pool;
}

void gar_memory_pool_unref(struct gar_memory_pool *pool)
{
    if (pool == NULL || __atomic_sub_fetch(&pool->refs, 1, __ATOMIC_ACQ_REL) > 0 ||
        pool->is_process) {
        return;
    }
    assert(get(&pool->used_bytes) == 0);
    (void)trim_to(pool, 0);
    unlink_pool(pool);
    for (int32_t i = 0; i < SHARDS; i++) {
        gar_mutex_destroy(&pool->shards[i].lock);
    }
    gar_mutex_destroy(&pool->lock);
    gar_memory_free(gar_memory_system(), pool, pool->own_bytes);
}

/* ---- the process's pool ---- */

struct gar_memory_pool *gar_memory_pool_process(struct gar_error *err)
{
    struct gar_memory_pool *pool = __atomic_load_n(&process_pool, __ATOMIC_ACQUIRE);
    if (GAR_LIKELY(pool != NULL)) {
        return pool;
    }
    const struct gar_memory_pool_options defaults = {0};
    struct gar_memory_pool *made = NULL;
    if (gar_memory_pool_new(&defaults, &made, err) != GAR_OK) {
        return NULL;
    }
    made->is_process = true;
    gar_mutex_lock(&pools_lock);
    const bool is_first = process_pool == NULL;
    if (is_first) {
        __atomic_store_n(&process_pool, made, __ATOMIC_RELEASE);
    }
    pool = process_pool;
    gar_mutex_unlock(&pools_lock);
    if (!is_first) {
        made->is_process = false;
        gar_memory_pool_unref(made);
    }
    return pool;
}

/* ---- the budget ---- */

void gar_memory_pool_set_limit(struct gar_memory_pool *pool, int64_t bytes)
{
    __atomic_store_n(&pool->limit_bytes, bytes > 0 ? bytes : default_limit(), __ATOMIC_RELAXED);
}

void gar_memory_pool_set_resident(struct gar_memory_pool *pool, int64_t bytes)
{
    __atomic_store_n(&pool->resident_bytes, bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&pool->trim_at_bytes, resident_cap(pool), __ATOMIC_RELAXED);
}

void gar_memory_pool_usage(struct gar_memory_pool *pool, struct gar_memory_usage *out)
{
    out->limit_bytes = get(&pool->limit_bytes);
    out->used_bytes = get(&pool->used_bytes);
    out->peak_bytes = get(&pool->peak_bytes);
    out->reserved_bytes = get(&pool->reserved_bytes);
    out->idle_bytes = get(&pool->idle_bytes);
    out->mapped_bytes = get(&pool->mapped_bytes);
    out->resident_bytes = resident_cap(pool);
}

void gar_memory_pool_reset_peak(struct gar_memory_pool *pool)
{
    __atomic_store_n(&pool->peak_bytes, get(&pool->used_bytes), __ATOMIC_RELAXED);
}

bool gar_memory_pool_charge(struct gar_memory_pool *pool, int64_t bytes, bool is_ticket)
{
    int64_t used = get(&pool->used_bytes);
    do {
        if (bytes > get(&pool->limit_bytes) - used) {
            return false;
        }
    } while (!__atomic_compare_exchange_n(&pool->used_bytes, &used, used + bytes, true,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    gar_raise_peak(&pool->peak_bytes, used + bytes);
    if (is_ticket) {
        add(&pool->reserved_bytes, bytes);
    }
    return true;
}

void gar_memory_pool_discharge(struct gar_memory_pool *pool, int64_t bytes, bool is_ticket)
{
    add(&pool->used_bytes, -bytes);
    if (is_ticket) {
        add(&pool->reserved_bytes, -bytes);
    }
}

/* ---- blocks ---- */

int64_t gar_memory_pool_block_bytes(int64_t bytes)
{
    assert(bytes >= 0 && bytes <= INT64_C(1) << 60);
    if (bytes <= SMALL_BYTES) {
        return gar_max_i64((bytes + GAR_CACHE_LINE - 1) / GAR_CACHE_LINE, 1) * GAR_CACHE_LINE;
    }
    if (bytes > LARGE_BYTES) {
        return (bytes + GAR_MAP_PAGE_BYTES - 1) / GAR_MAP_PAGE_BYTES * GAR_MAP_PAGE_BYTES;
    }
    return class_bytes(class_of(bytes));
}

void *gar_memory_pool_take(struct gar_memory_pool *pool, int64_t block_bytes)
{
    if (block_bytes <= SMALL_BYTES) {
        int64_t capacity;
        /* cppcheck-suppress returnDanglingLifetime ; the capacity is written, not kept */
        return gar_memory_alloc(gar_memory_system(), block_bytes, &capacity, NULL);
    }
    if (gar_alloc_must_fail()) {
        return NULL;
    }
    if (block_bytes > LARGE_BYTES) {
        return take_large(pool, block_bytes);
    }
    const int32_t class = class_of(block_bytes);
    const int32_t own = own_shard();
    for (int32_t i = 0; i < SHARDS; i++) {
        struct block *block = pop(&pool->shards[(own + i) % SHARDS], class);
        if (block != NULL) {
            add(&pool->idle_bytes, -block_bytes);
            SHOW(block, block_bytes);
            return block;
        }
    }
    return take_new(pool, class);
}

void *gar_memory_pool_take_idle(struct gar_memory_pool *pool, int64_t block_bytes,
                                int64_t *out_block_bytes)
{
    if (block_bytes < NEIGHBOURS_FROM_BYTES || block_bytes > LARGE_BYTES) {
        return NULL;
    }
    const int32_t class = class_of(block_bytes);
    const int32_t own = own_shard();
    for (int32_t c = class; c <= class + NEIGHBOURS && c < CLASSES; c++) {
        for (int32_t i = 0; i < SHARDS; i++) {
            struct block *block = pop(&pool->shards[(own + i) % SHARDS], c);
            if (block != NULL) {
                *out_block_bytes = class_bytes(c);
                add(&pool->idle_bytes, -*out_block_bytes);
                SHOW(block, *out_block_bytes);
                return block;
            }
        }
    }
    return NULL;
}

void gar_memory_pool_give(struct gar_memory_pool *pool, void *data, int64_t block_bytes)
{
    if (block_bytes <= SMALL_BYTES) {
        gar_memory_free(gar_memory_system(), data, block_bytes);
        return;
    }
    struct block *block = data;
    add(&pool->idle_bytes, block_bytes);
    if (block_bytes > LARGE_BYTES) {
        block->bytes = block_bytes;
        gar_mutex_lock(&pool->lock);
        block->next = pool->synced.large;
        pool->synced.large = block;
        gar_mutex_unlock(&pool->lock);
        return;
    }
    HIDE(block + 1, block_bytes - (int64_t)sizeof *block);
    push_list(&pool->shards[own_shard()], class_of(block_bytes), block, block);
}

/* Sizes in (2^e, 2^(e+1)] fall into four classes; EXTRA_BYTES is taken off first. */
static int32_t class_of(int64_t block_bytes)
{
    const int64_t nominal = gar_max_i64(block_bytes - EXTRA_BYTES, (INT64_C(1) << SMALL_SHIFT) + 1);
    const int32_t e = 63 - gar_clz64((uint64_t)(nominal - 1));
    const int32_t quarter = (int32_t)((nominal - 1 - (INT64_C(1) << e)) >> (e - 2));
    return (e - SMALL_SHIFT) * 4 + quarter;
}

static int64_t class_bytes(int32_t class)
{
    const int32_t e = SMALL_SHIFT + class / 4;
    return (INT64_C(1) << e) + (((int64_t)(class % 4) + 1) << (e - 2)) + EXTRA_BYTES;
}

static int32_t own_shard(void)
{
    static uint32_t next;
    static _Thread_local uint32_t mine; /* shard + 1 */
    if (GAR_UNLIKELY(mine == 0)) {
        mine = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % SHARDS + 1;
    }
    return (int32_t)(mine - 1);
}

static struct block *pop(struct shard *shard, int32_t class)
{
    gar_mutex_lock(&shard->lock);
    struct block *block = shard->synced.free[class];
    if (block != NULL) {
        shard->synced.free[class] = block->next;
    }
    gar_mutex_unlock(&shard->lock);
    return block;
}

static void push_list(struct shard *shard, int32_t class, struct block *first, struct block *last)
{
    gar_mutex_lock(&shard->lock);
    last->next = shard->synced.free[class];
    shard->synced.free[class] = first;
    gar_mutex_unlock(&shard->lock);
}

/* Cut blocks, keep the rest for the next ones. */
static void *take_new(struct gar_memory_pool *pool, int32_t class)
{
    const int64_t step = class_bytes(class);
    make_room(pool, step);
    int64_t count = 0;
    char *data = cut(pool, class, &count);
    if (data == NULL) { /* the kernel has no more: give back what is idle and try once more */
        (void)trim_to(pool, 0);
        data = cut(pool, class, &count);
    }
    if (data == NULL) {
        return NULL;
    }
    add(&pool->mapped_bytes, count * step);
    const uintptr_t from = (uintptr_t)data % (uintptr_t)GAR_MAP_PAGE_BYTES;
    gar_map_populate(data - from, (count * step + (int64_t)from) & -GAR_MAP_PAGE_BYTES);
    struct block *rest = NULL;
    struct block *last = NULL;
    for (int64_t i = count - 1; i > 0; i--) {
        struct block *block = (struct block *)(void *)(data + i * step);
        block->next = rest;
        rest = block;
        last = last == NULL ? block : last;
        HIDE(block + 1, step - (int64_t)sizeof *block);
    }
    if (rest != NULL) {
        add(&pool->idle_bytes, (count - 1) * step);
        push_list(&pool->shards[own_shard()], class, rest, last);
    }
    return data;
}

/* Up to as many blocks as one populate step holds, but never more than the budget has room for. */
static char *cut(struct gar_memory_pool *pool, int32_t class, int64_t *out_count)
{
    const int64_t step = class_bytes(class);
    const int64_t room =
        gar_max_i64((get(&pool->limit_bytes) - get(&pool->mapped_bytes)) / step, 1);
    const int64_t want_bytes = step < HUGE_FROM_BYTES ? HUGE_FROM_BYTES : GAR_MAP_HUGE_BYTES;
    const int64_t want = gar_min_i64(gar_max_i64(want_bytes / step, 1), room);
    struct span *fresh = NULL;
    char *data = NULL;
    for (;;) {
        gar_mutex_lock(&pool->lock);
        struct span *span = pool->synced.spans[class];
        if (fresh != NULL && (span == NULL || span->bytes - span->cut_bytes < step)) {
            fresh->next = span;
            pool->synced.spans[class] = fresh;
            span = fresh;
            fresh = NULL;
        }
        const int64_t left = span == NULL ? 0 : (span->bytes - span->cut_bytes) / step;
        if (left > 0) {
            *out_count = gar_min_i64(want, left);
            data = span->data + span->cut_bytes;
            span->cut_bytes += *out_count * step;
        }
        gar_mutex_unlock(&pool->lock);
        if (data != NULL || fresh != NULL) {
            break;
        }
        fresh = new_span(class);
        if (fresh == NULL) {
            return NULL;
        }
    }
    if (fresh != NULL) { /* another thread was quicker */
        gar_map_free(fresh->data, fresh->bytes);
        gar_free(fresh);
    }
    return data;
}

static struct span *new_span(int32_t class)
{
    const int64_t step = class_bytes(class);
    const int64_t several = gar_min_i64(16 * step, SPAN_BYTES_MAX);
    int64_t bytes = gar_max_i64(gar_max_i64(several, step), GAR_MAP_HUGE_BYTES);
    bytes = (bytes + GAR_MAP_PAGE_BYTES - 1) / GAR_MAP_PAGE_BYTES * GAR_MAP_PAGE_BYTES;
    struct span *span = gar_calloc(1, (int64_t)sizeof *span);
    if (span == NULL) {
        return NULL;
    }
    span->data = gar_map_new(bytes, step >= HUGE_FROM_BYTES);
    if (span->data == NULL) { /* address space is short: one block only */
        bytes = (step + GAR_MAP_PAGE_BYTES - 1) / GAR_MAP_PAGE_BYTES * GAR_MAP_PAGE_BYTES;
        span->data = gar_map_new(bytes, step >= HUGE_FROM_BYTES);
    }
    if (span->data == NULL) {
        gar_free(span);
        return NULL;
    }
    span->bytes = bytes;
    return span;
}

static void *take_large(struct gar_memory_pool *pool, int64_t bytes)
{
    gar_mutex_lock(&pool->lock);
    struct block *block = find_large_locked(pool, bytes);
    gar_mutex_unlock(&pool->lock);
    if (block != NULL) {
        const int64_t over = block->bytes - bytes;
        if (over > 0) { /* the block is charged with its own size only: the rest goes back */
            gar_map_free((char *)block + bytes, over);
            add(&pool->mapped_bytes, -over);
        }
        add(&pool->idle_bytes, -(bytes + over));
        return block;
    }
    make_room(pool, bytes);
    void *data = gar_map_new(bytes, true);
    if (data == NULL) {
        (void)trim_to(pool, 0);
        data = gar_map_new(bytes, true);
    }
    if (data != NULL) {
        add(&pool->mapped_bytes, bytes);
        if (bytes <= POPULATE_BYTES_MAX) {
            gar_map_populate(data, bytes);
        }
    }
    return data;
}

/* The smallest that fits and is at most a quarter too large. */
static struct block *find_large_locked(struct gar_memory_pool *pool, int64_t bytes)
{
    struct block **best = NULL;
    for (struct block **at = &pool->synced.large; *at != NULL; at = &(*at)->next) {
        if ((*at)->bytes >= bytes && (*at)->bytes - bytes <= bytes / 4 &&
            (best == NULL || (*at)->bytes < (*best)->bytes)) {
            best = at;
        }
    }
    if (best == NULL) {
        return NULL;
    }
    struct block *block = *best;
    *best = block->next;
    return block;
}

/* ---- giving back ---- */

/* Before more is taken from the kernel: idle blocks of other sizes must not push the process over its limit. */
static void make_room(struct gar_memory_pool *pool, int64_t bytes)
{
    if (get(&pool->mapped_bytes) + bytes > get(&pool->limit_bytes) && get(&pool->idle_bytes) > 0) {
        (void)trim_to(pool, 0);
    }
}

int64_t gar_memory_pool_trim(struct gar_memory_pool *pool)
{
    const int64_t keep = resident_cap(pool);
    const int64_t given = trim_to(pool, keep);
    /* What partly used spans hold back stays above the cap: frees do not sort it again each time. */
    const int64_t at = gar_max_i64(get(&pool->idle_bytes), keep) + TRIM_STEP_BYTES;
    __atomic_store_n(&pool->trim_at_bytes, at, __ATOMIC_RELAXED);
    return given;
}

void gar_memory_pool_enter(struct gar_memory_pool *pool)
{
    (void)__atomic_fetch_add(&pool->queries, 1, __ATOMIC_SEQ_CST);
}

void gar_memory_pool_leave(struct gar_memory_pool *pool)
{
    const int64_t left = __atomic_sub_fetch(&pool->queries, 1, __ATOMIC_SEQ_CST);
    assert(left >= 0);
    if (left == 0) {
        (void)gar_memory_pool_trim(pool);
    }
}

void gar_memory_pool_freed(struct gar_memory_pool *pool)
{
    const int64_t idle = get(&pool->idle_bytes);
    const int64_t keep = resident_cap(pool);
    if (GAR_LIKELY(idle <= keep) || __atomic_load_n(&pool->queries, __ATOMIC_SEQ_CST) > 0) {
        return;
    }
    if (idle > get(&pool->trim_at_bytes) || get(&pool->used_bytes) == 0) {
        (void)gar_memory_pool_trim(pool);
    }
}

static int64_t resident_cap(const struct gar_memory_pool *pool)
{
    const int64_t set = get(&pool->resident_bytes);
    return set > 0 ? set : gar_min_i64(get(&pool->limit_bytes) / 4, RESIDENT_BYTES_MAX);
}

int64_t gar_memory_pool_trim_all(struct gar_memory_pool *pool)
{
    return trim_to(pool, 0);
}

/* Largest first: fewest system calls. */
static int64_t trim_to(struct gar_memory_pool *pool, int64_t keep_bytes)
{
    int64_t given = 0;
    if (get(&pool->idle_bytes) > keep_bytes) {
        given += trim_large(pool, keep_bytes);
    }
    for (int32_t class = CLASSES - 1; class >= 0 && get(&pool->idle_bytes) > keep_bytes; class --) {
        given += trim_class(pool, class);
    }
    return given;
}

static int64_t trim_large(struct gar_memory_pool *pool, int64_t keep_bytes)
{
    gar_mutex_lock(&pool->lock);
    struct block *list = pool->synced.large;
    pool->synced.large = NULL;
    gar_mutex_unlock(&pool->lock);
    int64_t given = 0;
    while (list != NULL && get(&pool->idle_bytes) > keep_bytes) {
        struct block *block = list;
        list = block->next;
        const int64_t bytes = block->bytes;
        gar_map_free(block, bytes);
        add(&pool->idle_bytes, -bytes);
        add(&pool->mapped_bytes, -bytes);
        given += bytes;
    }
    while (list != NULL) {
        struct block *block = list;
        list = block->next;
        gar_mutex_lock(&pool->lock);
        block->next = pool->synced.large;
        pool->synced.large = block;
        gar_mutex_unlock(&pool->lock);
    }
    return given;
}

static int64_t trim_class(struct gar_memory_pool *pool, int32_t class)
{
    struct block *blocks = NULL;
    for (int32_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &pool->shards[i];
        gar_mutex_lock(&shard->lock);
        struct block *list = shard->synced.free[class];
        shard->synced.free[class] = NULL;
        gar_mutex_unlock(&shard->lock);
        while (list != NULL) {
            struct block *block = list;
            list = block->next;
            block->next = blocks;
            blocks = block;
        }
    }
    if (blocks == NULL) {
        return 0;
    }
    blocks = sort_blocks(blocks);
    struct span *empty = take_empty_spans(pool, class, &blocks);
    int64_t given = 0;
    while (empty != NULL) {
        struct span *span = empty;
        empty = span->next;
        given += span->cut_bytes;
        SHOW(span->data, span->cut_bytes);
        gar_map_free(span->data, span->bytes);
        gar_free(span);
    }
    add(&pool->idle_bytes, -given);
    add(&pool->mapped_bytes, -given);
    if (blocks != NULL) {
        struct block *last = blocks;
        while (last->next != NULL) {
            last = last->next;
        }
        push_list(&pool->shards[own_shard()], class, blocks, last);
    }
    return given;
}

/* Merge sort by address, bottom up: bins[i] holds a sorted list of 2^i blocks. */
static struct block *merge(struct block *a, struct block *b)
{
    struct block *first = NULL;
    struct block **end = &first;
    while (a != NULL && b != NULL) {
        struct block **lower = (uintptr_t)a < (uintptr_t)b ? &a : &b;
        *end = *lower;
        end = &(*end)->next;
        *lower = *end;
    }
    *end = a != NULL ? a : b;
    return first;
}

static struct block *sort_blocks(struct block *list)
{
    struct block *bins[48] = {NULL};
    while (list != NULL) {
        struct block *one = list;
        list = one->next;
        one->next = NULL;
        int32_t i = 0;
        for (; i < 47 && bins[i] != NULL; i++) {
            one = merge(bins[i], one);
            bins[i] = NULL;
        }
        bins[i] = merge(bins[i], one);
    }
    struct block *all = NULL;
    for (int32_t i = 0; i < 48; i++) {
        all = merge(bins[i], all);
    }
    return all;
}

/* Unlinks the spans whose cut blocks are all in the sorted list, and takes those blocks out of the list. Nobody else
 * can hold a block of such a span; new ones are cut under the same lock. */
static struct span *take_empty_spans(struct gar_memory_pool *pool, int32_t class,
                                     struct block **blocks)
{
    const int64_t step = class_bytes(class);
    struct span *empty = NULL;
    gar_mutex_lock(&pool->lock);
    for (struct span **at = &pool->synced.spans[class]; *at != NULL;) {
        struct span *span = *at;
        struct block **first = blocks;
        while (*first != NULL && (char *)*first < span->data) {
            first = &(*first)->next;
        }
        if (!is_span_free(span, *first, step)) {
            at = &span->next;
            continue;
        }
        for (int64_t i = 0; i < span->cut_bytes / step; i++) {
            *first = (*first)->next;
        }
        *at = span->next;
        span->next = empty;
        empty = span;
    }
    gar_mutex_unlock(&pool->lock);
    return empty;
}

static bool is_span_free(const struct span *span, const struct block *blocks, int64_t step)
{
    for (const char *at = span->data; at < span->data + span->cut_bytes; at += step) {
        if ((const char *)blocks != at) {
            return false;
        }
        blocks = blocks->next;
    }
    return span->cut_bytes > 0;
}

static int64_t default_limit(void)
{
    const int64_t allowed = gar_os_limits()->memory_bytes;
    return gar_max_i64(allowed / 100 * DEFAULT_PERCENT, INT64_C(1) << 20);
}

static void add(int64_t *counter, int64_t bytes)
{
    (void)__atomic_fetch_add(counter, bytes, __ATOMIC_RELAXED);
}

static int64_t get(const int64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}
