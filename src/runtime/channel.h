/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded queue of pointers with an end mark, between producers that never block and one consumer that may. It knows
 * nothing of what it carries; stream/ makes the batch stream of it. */
#ifndef GAR_RUNTIME_CHANNEL_H
#define GAR_RUNTIME_CHANNEL_H

#include "base/attrs.h"
#include "base/error.h"
#include "runtime/wait.h"

struct gar_channel;

struct gar_channel_options {
    int64_t max_items;        /* full at so many; >= 1. Room is made as items come */
    int64_t max_bytes;        /* full when items hold more; one item always fits an empty channel */
    void (*drop)(void *item); /* frees an item that nobody took */
    void (*on_room)(
        void *
            context); /* room appeared after a put was GAR_PENDING; on the consumer's thread, no lock
                                       held, must not block */
    void *context;    /* borrowed: alive until gar_channel_close returned on the consumer's side */
};

/* Owns: one reference for the producer, one for the consumer: gar_channel_end and gar_channel_close give them up. */
GAR_MUST_USE enum gar_status gar_channel_new(const struct gar_channel_options *options,
                                             struct gar_channel **out, struct gar_error *err);

/* Producer's side. GAR_OK: item moved. GAR_PENDING: full, on_room will come. GAR_ERR_CANCELLED: the consumer has gone.
 * GAR_ERR_NOMEM: no room for more than was queued ever before; the item stays the caller's. Threads: any number. */
GAR_MUST_USE enum gar_status gar_channel_put(struct gar_channel *channel, void *item,
                                             int64_t bytes);
/* No more items, and why: GAR_OK, or an error (copied) that the consumer gets after what is queued (at once when
 * `at_once`). Gives up the producer's reference. */
void gar_channel_end(struct gar_channel *channel, enum gar_status status,
                     const struct gar_error *why, bool at_once);
/* Is it full now? A hint for schedulers. */
bool gar_channel_is_full(const struct gar_channel *channel);

/* Consumer's side, one thread at a time. GAR_OK: *out_item is the caller's. GAR_EOF, or the producer's error, again and
 * again. GAR_PENDING: nothing there now. */
GAR_MUST_USE enum gar_status gar_channel_try_take(struct gar_channel *channel, void **out_item,
                                                  struct gar_error *err);
/* Sleeps until an item or the end comes: as try_take. GAR_PENDING when the deadline (gar_clock_ns) has passed;
 * GAR_ERR_INTERRUPTED (message unset) when the interrupt says so: nothing is changed, the caller may go on. */
GAR_MUST_USE enum gar_status gar_channel_take(struct gar_channel *channel, int64_t deadline_ns,
                                              const struct gar_interrupt *interrupt,
                                              void **out_item, struct gar_error *err);
/* Drop what comes until the end or until after_ns have passed; true when the end was seen. */
bool gar_channel_drain(struct gar_channel *channel, int64_t after_ns);
/* A descriptor that is readable while an item or the end waits; made at the first call, owned by the channel. */
GAR_MUST_USE enum gar_status gar_channel_fd(struct gar_channel *channel, int *out_fd,
                                            struct gar_error *err);
/* Was it made before a fork, and this is the child? Then its producers do not exist here, and the consumer's calls are
 * GAR_ERR_UNSUPPORTED (close does nothing). */
bool gar_channel_is_forked(const struct gar_channel *channel);
/* Drop what is queued and refuse what comes; gives up the consumer's reference. Never blocks. */
void gar_channel_close(struct gar_channel *channel);

#endif
