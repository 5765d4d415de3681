/* SPDX-License-Identifier: Apache-2.0 */
/* Free lists of arenas, and the pool's side of a worker's shared memory. */
#include "actors/arena.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "os/limits.h"
#include "os/map.h"
#include "os/mutex.h"
#include "os/shared_map.h"
#include "os/socket.h"

#define STEP_BYTES  INT64_C(65536)
#define FIRST_BYTES INT64_C(262144) /* behind the fixed part of an arena */

static int64_t round_to(int64_t bytes, int64_t step)
{
    return (bytes + step - 1) / step * step;
}

/* ---- regions ---- */

/* Room for one entry more than there can be after every region that is out has come back. */
static enum gar_status reserve(struct gar_regions *regions, struct gar_error *err)
{
    void *items = regions->free;
    const enum gar_status status =
        gar_grow(&items, &regions->capacity, regions->count + regions->taken + 2,
                 (int64_t)sizeof regions->free[0], err);
    regions->free = items;
    return status;
}

/* Put a free part in its place, joined with its neighbours. */
static void insert(struct gar_regions *regions, int64_t offset, int64_t bytes)
{
    int64_t at = 0;
    while (at < regions->count && regions->free[at].offset < offset) {
        at++;
    }
    const bool joins_before =
        at > 0 && regions->free[at - 1].offset + regions->free[at - 1].bytes == offset;
    const bool joins_after = at < regions->count && offset + bytes == regions->free[at].offset;
    if (joins_before) {
        regions->free[at - 1].bytes += bytes;
        if (joins_after) {
            regions->free[at - 1].bytes += regions->free[at].bytes;
            memmove(&regions->free[at], &regions->free[at + 1],
                    (size_t)(regions->count - at - 1) * sizeof regions->free[0]);
            regions->count--;
        }
    } else if (joins_after) {
        regions->free[at].offset = offset;
        regions->free[at].bytes += bytes;
    } else {
        memmove(&regions->free[at + 1], &regions->free[at],
                (size_t)(regions->count - at) * sizeof regions->free[0]);
        regions->free[at] = (struct gar_region){offset, bytes};
        regions->count++;
    }
}

enum gar_status gar_regions_extend(struct gar_regions *regions, int64_t from, int64_t to,
                                   struct gar_error *err)
{
    GAR_TRY(reserve(regions, err));
    if (to > from) {
        insert(regions, from, to - from);
        regions->end = to;
    }
    return GAR_OK;
}

enum gar_status gar_regions_take(struct gar_regions *regions, int64_t bytes, int64_t *out_offset,
                                 struct gar_error *err)
{
    const int64_t need = round_to(gar_max_i64(bytes, 1), GAR_WIRE_ALIGN);
    GAR_TRY(reserve(regions, err));
    for (int64_t i = 0; i < regions->count; i++) {
        struct gar_region *part = &regions->free[i];
        if (part->bytes < need) {
            continue;
        }
        *out_offset = part->offset;
        part->offset += need;
        part->bytes -= need;
        if (part->bytes == 0) {
            memmove(part, part + 1, (size_t)(regions->count - i - 1) * sizeof *part);
            regions->count--;
        }
        regions->taken++;
        return GAR_OK;
    }
    return GAR_PENDING;
}

void gar_regions_give(struct gar_regions *regions, int64_t offset, int64_t bytes)
{
    regions->taken--;
    insert(regions, offset, round_to(gar_max_i64(bytes, 1), GAR_WIRE_ALIGN));
}

int64_t gar_regions_end_for(const struct gar_regions *regions, int64_t bytes)
{
    int64_t start = regions->end;
    if (regions->count > 0) {
        const struct gar_region *last = &regions->free[regions->count - 1];
        if (last->offset + last->bytes == regions->end) {
            start = last->offset;
        }
    }
    return start + round_to(gar_max_i64(bytes, 1), GAR_WIRE_ALIGN);
}

void gar_regions_destroy(struct gar_regions *regions)
{
    gar_free(regions->free);
    *regions = (struct gar_regions){0};
}

/* ---- the pool's side ---- */

struct arena {
    int fd;
    uint8_t *data;
    int64_t bytes; /* granted; atomic: written by who grows, read by the loop */
    struct gar_ticket ticket;
};

struct gar_exchange {
    int64_t refs; /* atomic */
    struct gar_account *account;
    int64_t window;
    struct arena arenas[2];
    struct gar_mutex lock;
    struct {
        struct gar_lease *leases;
        int64_t lease_count;
        bool is_closed; /* nobody reads our marks any more; the ticket counts leased regions only */
    } synced GAR_GUARDED;
};

struct gar_lease {
    struct gar_exchange *exchange; /* owned reference */
    struct gar_lease *next;
    struct gar_lease *previous;
    int64_t offset;
    int64_t bytes;
    uint32_t slot;
};

static int64_t window_default(void)
{
    const struct gar_os_limits *limits = gar_os_limits();
    int64_t window = gar_min_i64(limits->memory_bytes, INT64_C(1) << 36);
    if (limits->address_space_bytes != INT64_MAX) {
        window = gar_min_i64(window, limits->address_space_bytes / 16);
    }
    return gar_max_i64(round_to(window, STEP_BYTES), INT64_C(64) * STEP_BYTES);
}

static int64_t fixed_bytes(enum gar_arena_way way)
{
    return way == GAR_ARENA_IN ? GAR_WIRE_CONTROL_BYTES : GAR_WIRE_TEXT_BYTES;
}

static enum gar_status open_arena(struct gar_exchange *exchange, enum gar_arena_way way,
                                  struct gar_error *err)
{
    struct arena *arena = &exchange->arenas[way];
    const int64_t bytes = round_to(fixed_bytes(way) + FIRST_BYTES, GAR_MAP_PAGE_BYTES);
    if (exchange->account != NULL) {
        GAR_TRY(gar_ticket_reserve(&arena->ticket, exchange->account, bytes, err));
    }
    GAR_TRY(gar_shared_open(way == GAR_ARENA_IN ? "gar-actor-in" : "gar-actor-out", bytes,
                            &arena->fd, err));
    arena->fd = gar_fd_move_up(arena->fd, GAR_WIRE_FD_COUNT);
    if (arena->fd < 0) {
        return gar_error_set(err, GAR_ERR_IO,
                             "cannot open shared memory: too many open files (ulimit -n)");
    }
    arena->data = gar_shared_map(arena->fd, exchange->window);
    if (arena->data == NULL) {
        return gar_error_set(err, GAR_ERR_NOMEM,
                             "cannot map %lld bytes of address space shared with an actor",
                             (long long)exchange->window);
    }
    GAR_TRY(gar_shared_populate(arena->data, 0, bytes, err));
    arena->bytes = bytes;
    return GAR_OK;
}

enum gar_status gar_exchange_new(struct gar_account *account, int64_t window,
                                 struct gar_exchange **out, struct gar_error *err)
{
    struct gar_exchange *exchange = gar_calloc(1, (int64_t)sizeof *exchange);
    if (exchange == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *exchange);
    }
    exchange->refs = 1;
    exchange->window =
        window > 0 ? gar_max_i64(round_to(window, STEP_BYTES), 16 * STEP_BYTES) : window_default();
    exchange->account = account != NULL ? gar_account_ref(account) : NULL;
    gar_mutex_init(&exchange->lock);
    exchange->arenas[GAR_ARENA_IN].fd = -1;
    exchange->arenas[GAR_ARENA_OUT].fd = -1;
    enum gar_status status = open_arena(exchange, GAR_ARENA_IN, err);
    status = status < 0 ? status : open_arena(exchange, GAR_ARENA_OUT, err);
    if (status < 0) {
        gar_exchange_unref(exchange);
        return status;
    }
    *out = exchange;
    return GAR_OK;
}

struct gar_exchange *gar_exchange_ref(struct gar_exchange *exchange)
{
    (void)__atomic_fetch_add(&exchange->refs, 1, __ATOMIC_RELAXED);
    return exchange;
}

void gar_exchange_unref(struct gar_exchange *exchange)
{
    if (exchange == NULL || __atomic_sub_fetch(&exchange->refs, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    for (int way = 0; way < 2; way++) {
        struct arena *arena = &exchange->arenas[way];
        gar_shared_unmap(arena->data, exchange->window);
        gar_fd_close(arena->fd);
        gar_ticket_release(&arena->ticket);
    }
    gar_account_unref(exchange->account);
    gar_mutex_destroy(&exchange->lock);
    gar_free(exchange);
}

int gar_exchange_fd(const struct gar_exchange *exchange, enum gar_arena_way way)
{
    return exchange->arenas[way].fd;
}

uint8_t *gar_exchange_data(const struct gar_exchange *exchange, enum gar_arena_way way)
{
    return exchange->arenas[way].data;
}

int64_t gar_exchange_window(const struct gar_exchange *exchange)
{
    return exchange->window;
}

int64_t gar_exchange_bytes(const struct gar_exchange *exchange, enum gar_arena_way way)
{
    return __atomic_load_n(&exchange->arenas[way].bytes, __ATOMIC_ACQUIRE);
}

struct gar_wire_control *gar_exchange_control(const struct gar_exchange *exchange)
{
    return (struct gar_wire_control *)(void *)exchange->arenas[GAR_ARENA_IN].data;
}

/* To exactly `bytes`. */
static enum gar_status grow_to(struct gar_exchange *exchange, struct arena *arena, int64_t bytes,
                               struct gar_error *err)
{
    const int64_t before = arena->bytes;
    if (exchange->account != NULL) {
        GAR_TRY(gar_ticket_reserve(&arena->ticket, exchange->account, bytes - before, err));
    }
    enum gar_status status = gar_shared_grow(arena->fd, bytes, err);
    if (status >= 0) {
        status = gar_shared_populate(arena->data, before, bytes - before, err);
    }
    if (status < 0) {
        if (exchange->account != NULL) {
            gar_ticket_shrink(&arena->ticket, bytes - before);
        }
        return status;
    }
    __atomic_store_n(&arena->bytes, bytes, __ATOMIC_RELEASE);
    return GAR_OK;
}

enum gar_status gar_exchange_grow(struct gar_exchange *exchange, enum gar_arena_way way,
                                  int64_t bytes, struct gar_error *err)
{
    struct arena *arena = &exchange->arenas[way];
    if (bytes <= arena->bytes) {
        return GAR_OK;
    }
    if (bytes > exchange->window) {
        return gar_error_set(err, GAR_ERR_NOMEM,
                             "a batch needs %lld bytes of memory shared with its actor, which "
                             "has room for %lld; use a smaller batch_size",
                             (long long)bytes, (long long)exchange->window);
    }
    const int64_t least = gar_min_i64(round_to(bytes, STEP_BYTES), exchange->window);
    const int64_t wanted = gar_min_i64(gar_max_i64(least, 2 * arena->bytes), exchange->window);
    if (wanted > least && grow_to(exchange, arena, wanted, NULL) >= 0) {
        return GAR_OK;
    }
    return grow_to(exchange, arena, least, err);
}

/* ---- leases ---- */

static void link_lease_locked(struct gar_exchange *exchange, struct gar_lease *lease)
    GAR_REQUIRES(exchange->lock)
{
    lease->next = exchange->synced.leases;
    if (lease->next != NULL) {
        lease->next->previous = lease;
    }
    exchange->synced.leases = lease;
    exchange->synced.lease_count++;
}

static void unlink_lease_locked(struct gar_exchange *exchange, struct gar_lease *lease)
    GAR_REQUIRES(exchange->lock)
{
    if (lease->previous != NULL) {
        lease->previous->next = lease->next;
    } else {
        exchange->synced.leases = lease->next;
    }
    if (lease->next != NULL) {
        lease->next->previous = lease->previous;
    }
    exchange->synced.lease_count--;
}

enum gar_status gar_exchange_lease(struct gar_exchange *exchange, uint32_t slot, int64_t offset,
                                   int64_t bytes, struct gar_lease **out, struct gar_error *err)
{
    assert(slot < GAR_WIRE_SLOTS);
    struct gar_lease *lease = gar_calloc(1, (int64_t)sizeof *lease);
    if (lease == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *lease);
    }
    lease->exchange = gar_exchange_ref(exchange);
    lease->slot = slot;
    lease->offset = offset;
    lease->bytes = bytes;
    gar_mutex_lock(&exchange->lock);
    link_lease_locked(exchange, lease);
    gar_mutex_unlock(&exchange->lock);
    *out = lease;
    return GAR_OK;
}

/* Pages that a lease touches; two small ones may share one, which is then counted twice. */
static int64_t pages_of(const struct gar_lease *lease)
{
    const int64_t from = lease->offset / GAR_MAP_PAGE_BYTES * GAR_MAP_PAGE_BYTES;
    return round_to(lease->offset + lease->bytes, GAR_MAP_PAGE_BYTES) - from;
}

void gar_lease_release(void *context)
{
    struct gar_lease *lease = context;
    struct gar_exchange *exchange = lease->exchange;
    gar_mutex_lock(&exchange->lock);
    unlink_lease_locked(exchange, lease);
    struct gar_ticket *ticket = &exchange->arenas[GAR_ARENA_OUT].ticket;
    if (exchange->synced.is_closed) {
        if (exchange->account != NULL) {
            gar_ticket_shrink(ticket, gar_min_i64(pages_of(lease), ticket->bytes));
        }
        gar_shared_discard(
            exchange->arenas[GAR_ARENA_OUT].data, round_to(lease->offset, GAR_MAP_PAGE_BYTES),
            (lease->offset + lease->bytes) / GAR_MAP_PAGE_BYTES * GAR_MAP_PAGE_BYTES -
                round_to(lease->offset, GAR_MAP_PAGE_BYTES));
    } else {
        __atomic_store_n(&gar_exchange_control(exchange)->out_done[lease->slot], (uint8_t)1,
                         __ATOMIC_RELEASE);
    }
    gar_mutex_unlock(&exchange->lock);
    gar_free(lease);
    gar_exchange_unref(exchange);
}

int64_t gar_exchange_leases(struct gar_exchange *exchange)
{
    gar_mutex_lock(&exchange->lock);
    const int64_t count = exchange->synced.lease_count;
    gar_mutex_unlock(&exchange->lock);
    return count;
}

static int compare_regions(const void *a, const void *b)
{
    const int64_t x = ((const struct gar_region *)a)->offset;
    const int64_t y = ((const struct gar_region *)b)->offset;
    return (x > y) - (x < y);
}

/* What is leased now, in ascending order; NULL when there is nothing or no memory. */
static struct gar_region *leased_locked(struct gar_exchange *exchange, int64_t *out_count)
    GAR_REQUIRES(exchange->lock)
{
    int64_t count = 0;
    struct gar_region *regions =
        exchange->synced.lease_count == 0
            ? NULL
            : gar_malloc(exchange->synced.lease_count * (int64_t)sizeof regions[0]);
    for (const struct gar_lease *l = exchange->synced.leases; regions != NULL && l != NULL;
         l = l->next) {
        regions[count++] = (struct gar_region){l->offset, l->bytes};
    }
    *out_count = count;
    return regions;
}

/* Give back the pages between the regions. Some may have been released meanwhile: those went back by themselves. */
static void discard_gaps(const struct arena *out, struct gar_region *regions, int64_t count)
{
    qsort(regions, (size_t)count, sizeof regions[0], compare_regions);
    int64_t at = 0;
    for (int64_t i = 0; i <= count; i++) {
        const int64_t next = i < count ? regions[i].offset : out->bytes;
        const int64_t from = round_to(at, GAR_MAP_PAGE_BYTES);
        gar_shared_discard(out->data, from, next / GAR_MAP_PAGE_BYTES * GAR_MAP_PAGE_BYTES - from);
        at = i < count ? regions[i].offset + regions[i].bytes : next;
    }
}

void gar_exchange_close(struct gar_exchange *exchange)
{
    struct arena *in = &exchange->arenas[GAR_ARENA_IN];
    struct arena *out = &exchange->arenas[GAR_ARENA_OUT];
    int64_t held = 0;
    int64_t count = 0;
    gar_mutex_lock(&exchange->lock);
    exchange->synced.is_closed = true;
    for (const struct gar_lease *l = exchange->synced.leases; l != NULL; l = l->next) {
        held += pages_of(l);
    }
    if (exchange->account != NULL) {
        gar_ticket_shrink(&out->ticket, gar_max_i64(out->ticket.bytes - held, 0));
    }
    struct gar_region *regions = leased_locked(exchange, &count);
    gar_mutex_unlock(&exchange->lock);
    if (regions != NULL) {
        discard_gaps(out, regions, count);
        gar_free(regions);
    }
    gar_shared_unmap(in->data, exchange->window);
    in->data = NULL;
    gar_fd_close(in->fd);
    in->fd = -1;
    gar_ticket_release(&in->ticket);
    gar_fd_close(out->fd);
    out->fd = -1;
}
