/* SPDX-License-Identifier: Apache-2.0 */
/* The system memory: aligned blocks of the C library, counted. */
#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/alloc.h"

enum { ALIGN_BYTES = 64 };

static atomic_int_least64_t live_bytes; /* relaxed: a count */

static void *system_alloc(struct gar_memory *self, int64_t bytes, int64_t *out_capacity,
                          struct gar_error *err)
{
    (void)self;
    void *data = NULL;
    if (bytes < 0 || bytes > INT64_MAX - ALIGN_BYTES) {
        gar_error_nomem(err, bytes);
        return NULL;
    }
    const int64_t capacity =
        gar_max_i64((bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES, ALIGN_BYTES);
    if (gar_alloc_must_fail() || posix_memalign(&data, ALIGN_BYTES, (size_t)capacity) != 0) {
        gar_error_nomem(err, bytes);
        return NULL;
    }
    atomic_fetch_add_explicit(&live_bytes, capacity, memory_order_relaxed);
    *out_capacity = capacity;
    return data;
}

static void system_free(struct gar_memory *self, void *data, int64_t capacity)
{
    (void)self;
    atomic_fetch_sub_explicit(&live_bytes, capacity, memory_order_relaxed);
    free(data);
}

static void system_count(struct gar_memory *self)
{
    (void)self; /* lives for ever */
}

struct gar_memory *gar_memory_system(void)
{
    static const struct gar_memory_vtable vtable = {
        .alloc = system_alloc, .free = system_free, .ref = system_count, .unref = system_count};
    static struct gar_memory memory = {.vtable = &vtable};
    return &memory;
}

int64_t gar_memory_system_live_bytes(void)
{
    return atomic_load_explicit(&live_bytes, memory_order_relaxed);
}
