/* SPDX-License-Identifier: Apache-2.0 */
/* Places in shared memory. `gar_regions` is the book of one side about an arena it fills: which parts are free. It lies in
 * private memory. `gar_exchange` is what the pool's side has of one worker: two arenas mapped once, grown within the
 * budget, and the leases of results that the engine still uses; it outlives the worker while there are any. */
#ifndef GAR_ACTORS_ARENA_H
#define GAR_ACTORS_ARENA_H

#include "actors/wire.h"
#include "base/attrs.h"
#include "base/error.h"
#include "resources/account.h"

/* ---- regions ---- */

struct gar_region {
    int64_t offset;
    int64_t bytes;
};

/* Free parts in ascending order, never touching. Zeroed: nothing is free. One thread at a time. */
struct gar_regions {
    struct gar_region *free;
    int64_t count;
    int64_t capacity;
    int64_t taken; /* regions out */
    int64_t end;
};
/* [from, to) is free from now on; also to let it grow (from = the old end). Errors: GAR_ERR_NOMEM. */
GAR_MUST_USE enum gar_status gar_regions_extend(struct gar_regions *regions, int64_t from,
                                                int64_t to, struct gar_error *err);
/* The first free part that is large enough, at a multiple of GAR_WIRE_ALIGN. GAR_PENDING: none is. Errors: GAR_ERR_NOMEM. */
GAR_MUST_USE enum gar_status gar_regions_take(struct gar_regions *regions, int64_t bytes,
                                              int64_t *out_offset, struct gar_error *err);
/* Exactly what take gave. */
void gar_regions_give(struct gar_regions *regions, int64_t offset, int64_t bytes);
/* Bytes to which the arena must grow so that `bytes` fit. */
int64_t gar_regions_end_for(const struct gar_regions *regions, int64_t bytes);
void gar_regions_destroy(struct gar_regions *regions);

/* ---- the pool's side ---- */

enum gar_arena_way { GAR_ARENA_IN, GAR_ARENA_OUT }; /* seen from the worker */

struct gar_exchange;

/* account may be NULL; a reference is kept. window: address space for each arena, a multiple of 64 KiB; 0: by the
 * machine's memory. Errors: GAR_ERR_IO, GAR_ERR_NOMEM. Owns: caller unrefs. */
GAR_MUST_USE enum gar_status gar_exchange_new(struct gar_account *account, int64_t window,
                                              struct gar_exchange **out, struct gar_error *err);
struct gar_exchange *gar_exchange_ref(struct gar_exchange *exchange);
void gar_exchange_unref(struct gar_exchange *exchange);
int gar_exchange_fd(const struct gar_exchange *exchange, enum gar_arena_way way);
uint8_t *gar_exchange_data(const struct gar_exchange *exchange, enum gar_arena_way way);
int64_t gar_exchange_window(const struct gar_exchange *exchange);
/* Granted now. */
int64_t gar_exchange_bytes(const struct gar_exchange *exchange, enum gar_arena_way way);
struct gar_wire_control *gar_exchange_control(const struct gar_exchange *exchange);
/* Let an arena have at least `bytes`, more if that is cheap; makes the pages. Errors: GAR_ERR_NOMEM saying what
 * refused: the window, the account, the system. Threads: one at a time for each way; may take a while (compute pool). */
GAR_MUST_USE enum gar_status gar_exchange_grow(struct gar_exchange *exchange,
                                               enum gar_arena_way way, int64_t bytes,
                                               struct gar_error *err);

/* The engine looks at [offset, offset + bytes) of the outbound arena until gar_lease_release. */
struct gar_lease;
GAR_MUST_USE enum gar_status gar_exchange_lease(struct gar_exchange *exchange, uint32_t slot,
                                                int64_t offset, int64_t bytes,
                                                struct gar_lease **out, struct gar_error *err);
/* Gives the slot back to the worker. context: a lease. Threads: any. */
void gar_lease_release(void *context);
int64_t gar_exchange_leases(struct gar_exchange *exchange);
/* The worker is gone: everything but the leased regions goes back to kernel and account. */
void gar_exchange_close(struct gar_exchange *exchange);

#endif
