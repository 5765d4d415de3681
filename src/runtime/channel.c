/* SPDX-License-Identifier: Apache-2.0 */
/* The bounded queue: a ring under one lock. The consumer says under the lock that it is going to sleep, so a producer
 * enters the kernel only for a sleeping one. Room is announced when half of the bound is free again, not after each item:
 * a producer is then worth waking. In a forked child the producers do not exist; the consumer's calls say so. */
#include "runtime/channel.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "os/clock.h"
#include "os/event_fd.h"
#include "os/fork.h"
#include "os/mutex.h"
#include "os/park.h"
#include "os/test_point.h"

#define RING_MIN 8

struct entry {
    void *item;
    int64_t bytes;
};

struct gar_channel {
    struct gar_channel_options options;
    uint64_t generation; /* of the process that made it */
    struct gar_mutex lock;
    struct {
        struct entry *ring; /* owned; `capacity` items, at most options.max_items */
        int64_t capacity;
        int64_t head; /* index of the oldest entry */
        int64_t count;
        int64_t bytes;
        bool is_ended;
        bool is_closed;
        bool is_refused;        /* a put was GAR_PENDING; on_room is owed */
        bool is_waiting;        /* the consumer sleeps or is about to */
        bool end_at_once;       /* the error goes before queued items */
        enum gar_status status; /* of the end */
        int fd;                 /* event descriptor, -1 until asked for */
    } synced GAR_GUARDED;
    struct gar_error error; /* written before is_ended is set under the lock, constant afterwards */
    int64_t refs;           /* atomic */
    int64_t is_full;        /* atomic; a hint */
    struct gar_parker parker; /* the consumer's */
};

static enum gar_status put(struct gar_channel *channel, void *item, int64_t bytes,
                           int64_t *out_grow, bool *out_wake);
static bool grow(struct gar_channel *channel, int64_t capacity);
static bool is_full_locked(const struct gar_channel *channel, int64_t more_bytes)
    GAR_REQUIRES(channel->lock);
static void note_full_locked(struct gar_channel *channel) GAR_REQUIRES(channel->lock);
static bool wake_locked(struct gar_channel *channel) GAR_REQUIRES(channel->lock);
static enum gar_status take_locked(struct gar_channel *channel, bool will_wait, void **out_item,
                                   bool *out_room) GAR_REQUIRES(channel->lock);
static enum gar_status take(struct gar_channel *channel, bool will_wait, void **out_item,
                            struct gar_error *err);
static enum gar_status refuse_forked(struct gar_error *err);
static void drop_all(struct gar_channel *channel);
static void unref(struct gar_channel *channel);

enum gar_status gar_channel_new(const struct gar_channel_options *options, struct gar_channel **out,
                                struct gar_error *err)
{
    assert(options->max_items >= 1 && options->drop != NULL);
    struct gar_channel *channel = gar_calloc(1, (int64_t)sizeof *channel);
    if (channel == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *channel);
    }
    channel->options = *options;
    channel->generation = gar_fork_generation();
    channel->refs = 2;
    gar_mutex_init(&channel->lock);
    gar_mutex_lock(&channel->lock);
    channel->synced.fd = -1;
    gar_mutex_unlock(&channel->lock);
    *out = channel;
    return GAR_OK;
}

enum gar_status gar_channel_put(struct gar_channel *channel, void *item, int64_t bytes)
{
    int64_t capacity = 0;
    bool must_wake = false;
    enum gar_status status = put(channel, item, bytes, &capacity, &must_wake);
    while (capacity > 0) {
        if (!grow(channel, capacity)) {
            return GAR_ERR_NOMEM;
        }
        capacity = 0;
        status = put(channel, item, bytes, &capacity, &must_wake);
    }
    if (must_wake) {
        gar_parker_wake(&channel->parker);
    }
    return status;
}

void gar_channel_end(struct gar_channel *channel, enum gar_status status,
                     const struct gar_error *why, bool at_once)
{
    if (why != NULL) {
        channel->error = *why;
    } else {
        channel->error.position = -1;
        (void)gar_error_set(&channel->error, status, "%s", gar_status_text(status));
    }
    channel->error.status = status;
    gar_mutex_lock(&channel->lock);
    assert(!channel->synced.is_ended);
    channel->synced.is_ended = true;
    channel->synced.status = status;
    channel->synced.end_at_once = at_once && status < 0;
    const bool must_wake = wake_locked(channel);
    gar_mutex_unlock(&channel->lock);
    if (must_wake) {
        gar_parker_wake(&channel->parker);
    }
    unref(channel);
}

bool gar_channel_is_full(const struct gar_channel *channel)
{
    return __atomic_load_n(&channel->is_full, __ATOMIC_RELAXED) != 0;
}

enum gar_status gar_channel_try_take(struct gar_channel *channel, void **out_item,
                                     struct gar_error *err)
{
    return take(channel, false, out_item, err);
}

enum gar_status gar_channel_take(struct gar_channel *channel, int64_t deadline_ns,
                                 const struct gar_interrupt *interrupt, void **out_item,
                                 struct gar_error *err)
{
    for (;;) {
        const enum gar_status status = take(channel, true, out_item, err);
        if (status != GAR_PENDING) {
            return status;
        }
        const int64_t now_ns = gar_clock_ns();
        if (now_ns >= deadline_ns) {
            return GAR_PENDING;
        }
        const int64_t tick_ns = interrupt == NULL ? GAR_CLOCK_NEVER : now_ns + GAR_WAIT_TICK_NS;
        GAR_TEST_POINT("channel wait");
        const enum gar_park_result result =
            gar_parker_wait(&channel->parker, gar_min_i64(tick_ns, deadline_ns));
        if (result != GAR_PARK_WOKEN && gar_interrupt_check(interrupt)) {
            return GAR_ERR_INTERRUPTED;
        }
    }
}

bool gar_channel_drain(struct gar_channel *channel, int64_t after_ns)
{
    const int64_t deadline_ns = gar_clock_deadline(after_ns);
    for (;;) {
        void *item = NULL;
        const enum gar_status status = gar_channel_take(channel, deadline_ns, NULL, &item, NULL);
        if (status != GAR_OK) {
            return status != GAR_PENDING;
        }
        channel->options.drop(item);
        if (gar_clock_ns() >= deadline_ns) {
            return false;
        }
    }
}

enum gar_status gar_channel_fd(struct gar_channel *channel, int *out_fd, struct gar_error *err)
{
    if (gar_channel_is_forked(channel)) {
        return refuse_forked(err);
    }
    gar_mutex_lock(&channel->lock);
    int fd = channel->synced.fd;
    gar_mutex_unlock(&channel->lock);
    if (fd < 0) {
        GAR_TRY(gar_event_fd_open(&fd, err));
        gar_mutex_lock(&channel->lock);
        channel->synced.fd = fd;
        if (channel->synced.count > 0 || channel->synced.is_ended) {
            gar_event_fd_signal(fd);
        }
        gar_mutex_unlock(&channel->lock);
    }
    *out_fd = fd;
    return GAR_OK;
}

bool gar_channel_is_forked(const struct gar_channel *channel)
{
    return channel->generation != gar_fork_generation();
}

void gar_channel_close(struct gar_channel *channel)
{
    if (channel == NULL || gar_channel_is_forked(channel)) {
        return; /* in a child: its lock may be held by a thread that does not exist here */
    }
    gar_mutex_lock(&channel->lock);
    channel->synced.is_closed = true;
    const int fd = channel->synced.fd;
    channel->synced.fd = -1;
    gar_mutex_unlock(&channel->lock);
    gar_event_fd_close(fd);
    drop_all(channel);
    unref(channel);
}

/* *out_grow > 0: nothing was done, the ring needs so many places first. */
static enum gar_status put(struct gar_channel *channel, void *item, int64_t bytes,
                           int64_t *out_grow, bool *out_wake)
{
    enum gar_status status = GAR_OK;
    gar_mutex_lock(&channel->lock);
    assert(!channel->synced.is_ended);
    if (channel->synced.is_closed) {
        status = GAR_ERR_CANCELLED;
    } else if (is_full_locked(channel, bytes)) {
        channel->synced.is_refused = true;
        status = GAR_PENDING;
    } else if (channel->synced.count == channel->synced.capacity) {
        *out_grow = gar_min_i64(gar_max_i64(2 * channel->synced.capacity, RING_MIN),
                                channel->options.max_items);
    } else {
        const int64_t at =
            (channel->synced.head + channel->synced.count) % channel->synced.capacity;
        channel->synced.ring[at] = (struct entry){.item = item, .bytes = bytes};
        channel->synced.count++;
        channel->synced.bytes += bytes;
        note_full_locked(channel);
        *out_wake = wake_locked(channel);
    }
    gar_mutex_unlock(&channel->lock);
    return status;
}

/* A ring of at least `capacity` places; memory is got and given back without the lock. */
static bool grow(struct gar_channel *channel, int64_t capacity)
{
    struct entry *fresh = gar_calloc(capacity, (int64_t)sizeof *fresh);
    if (fresh == NULL) {
        return false;
    }
    gar_mutex_lock(&channel->lock);
    struct entry *old = fresh; /* when another producer was faster */
    if (channel->synced.capacity < capacity) {
        old = channel->synced.ring;
        for (int64_t i = 0; i < channel->synced.count; i++) {
            fresh[i] = old[(channel->synced.head + i) % channel->synced.capacity];
        }
        channel->synced.ring = fresh;
        channel->synced.capacity = capacity;
        channel->synced.head = 0;
    }
    gar_mutex_unlock(&channel->lock);
    gar_free(old);
    return true;
}

static bool is_full_locked(const struct gar_channel *channel, int64_t more_bytes)
{
    return channel->synced.count == channel->options.max_items ||
           (channel->synced.count > 0 &&
            more_bytes > channel->options.max_bytes - channel->synced.bytes);
}

static void note_full_locked(struct gar_channel *channel)
{
    const bool is_full = channel->synced.count == channel->options.max_items ||
                         channel->synced.bytes >= channel->options.max_bytes;
    __atomic_store_n(&channel->is_full, is_full ? 1 : 0, __ATOMIC_RELAXED);
}

/* Something came: true if the consumer's parker must be woken, after the lock is given back. The descriptor is set
 * here, under the lock, because it shows a level and not an event; only pollers pay for it. */
static bool wake_locked(struct gar_channel *channel)
{
    if (channel->synced.fd >= 0) {
        gar_event_fd_signal(channel->synced.fd);
    }
    const bool was_waiting = channel->synced.is_waiting;
    channel->synced.is_waiting = false;
    return was_waiting;
}

static enum gar_status take_locked(struct gar_channel *channel, bool will_wait, void **out_item,
                                   bool *out_room)
{
    *out_room = false;
    channel->synced.is_waiting = false;
    if (channel->synced.is_ended && (channel->synced.end_at_once || channel->synced.count == 0)) {
        return channel->synced.status == GAR_OK ? GAR_EOF : channel->synced.status;
    }
    if (channel->synced.count == 0) {
        channel->synced.is_waiting = will_wait;
        return GAR_PENDING;
    }
    const struct entry *entry = &channel->synced.ring[channel->synced.head];
    *out_item = entry->item;
    channel->synced.head = (channel->synced.head + 1) % channel->synced.capacity;
    channel->synced.count--;
    channel->synced.bytes -= entry->bytes;
    note_full_locked(channel);
    const bool has_room =
        channel->synced.count <= channel->options.max_items / 2 &&
        (channel->synced.count == 0 || channel->synced.bytes <= channel->options.max_bytes / 2);
    if (channel->synced.is_refused && has_room) {
        channel->synced.is_refused = false;
        *out_room = true;
    }
    if (channel->synced.fd >= 0 && channel->synced.count == 0 && !channel->synced.is_ended) {
        gar_event_fd_clear(channel->synced.fd);
    }
    return GAR_OK;
}

static enum gar_status take(struct gar_channel *channel, bool will_wait, void **out_item,
                            struct gar_error *err)
{
    if (gar_channel_is_forked(channel)) {
        return refuse_forked(err);
    }
    bool has_room;
    gar_mutex_lock(&channel->lock);
    const enum gar_status status = take_locked(channel, will_wait, out_item, &has_room);
    gar_mutex_unlock(&channel->lock);
    if (status < 0) {
        if (err != NULL) {
            *err = channel->error;
        }
        drop_all(channel);
    }
    if (has_room && channel->options.on_room != NULL) {
        channel->options.on_room(channel->options.context);
    }
    return status;
}

static enum gar_status refuse_forked(struct gar_error *err)
{
    return gar_error_set(err, GAR_ERR_UNSUPPORTED,
                         "this result belongs to the parent process: a query that was started "
                         "before fork cannot go on "
                         "in the child; run it again here");
}

/* Nobody will take them: they are freed without the lock. */
static void drop_all(struct gar_channel *channel)
{
    for (;;) {
        void *item = NULL;
        gar_mutex_lock(&channel->lock);
        if (channel->synced.count > 0) {
            item = channel->synced.ring[channel->synced.head].item;
            channel->synced.bytes -= channel->synced.ring[channel->synced.head].bytes;
            channel->synced.head = (channel->synced.head + 1) % channel->synced.capacity;
            channel->synced.count--;
        }
        gar_mutex_unlock(&channel->lock);
        if (item == NULL) {
            return;
        }
        channel->options.drop(item);
    }
}

static void unref(struct gar_channel *channel)
{
    if (__atomic_sub_fetch(&channel->refs, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    drop_all(channel);
    gar_mutex_lock(&channel->lock); /* nobody else is left */
    struct entry *ring = channel->synced.ring;
    gar_mutex_unlock(&channel->lock);
    gar_free(ring);
    gar_mutex_destroy(&channel->lock);
    gar_free(channel);
}
