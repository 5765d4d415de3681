/* SPDX-License-Identifier: Apache-2.0 */
/* Where column memory comes from: a counted interface. resources/ gives the pooled, huge-page, accounted one; the
 * system one here is plain aligned memory for tests and tools. */
#ifndef GAR_BASE_MEMORY_H
#define GAR_BASE_MEMORY_H

#include "base/attrs.h"
#include "base/error.h"

struct gar_memory;

struct gar_memory_vtable {
    /* At least `bytes` (>= 0) of memory aligned to 64 bytes, contents undefined; *out_capacity gets its real size.
     * NULL with err set (GAR_ERR_NOMEM naming limit and use) when refused. Threads: any. */
    void *(*alloc)(struct gar_memory *self, int64_t bytes, int64_t *out_capacity,
                   struct gar_error *err);
    /* Gives back what alloc gave; capacity is what alloc reported. */
    void (*free)(struct gar_memory *self, void *data, int64_t capacity);
    void (*ref)(struct gar_memory *self);
    void (*unref)(struct gar_memory *self);
    /* How much may still be asked for, and of how much in all; NULL: there is no limit. Advice, not a promise. Threads: any. */
    int64_t (*room)(const struct gar_memory *self, int64_t *out_limit);
};

struct gar_memory {
    const struct gar_memory_vtable *vtable;
};

GAR_INLINE void *gar_memory_alloc(struct gar_memory *m, int64_t bytes, int64_t *out_capacity,
                                  struct gar_error *err)
{
    return m->vtable->alloc(m, bytes, out_capacity, err);
}

GAR_INLINE void gar_memory_free(struct gar_memory *m, void *data, int64_t capacity)
{
    if (data != NULL) {
        m->vtable->free(m, data, capacity);
    }
}

GAR_INLINE struct gar_memory *gar_memory_ref(struct gar_memory *m)
{
    m->vtable->ref(m);
    return m;
}

GAR_INLINE void gar_memory_unref(struct gar_memory *m)
{
    if (m != NULL) {
        m->vtable->unref(m);
    }
}

/* Bytes that may still be asked for; *out_limit: of how many in all (INT64_MAX: there is no limit). */
GAR_INLINE int64_t gar_memory_room(const struct gar_memory *m, int64_t *out_limit)
{
    *out_limit = INT64_MAX;
    return m->vtable->room != NULL ? m->vtable->room(m, out_limit) : INT64_MAX;
}

/* Plain aligned memory, counted, without a limit. Lives for ever. */
struct gar_memory *gar_memory_system(void);
/* Bytes alive from the system memory. */
int64_t gar_memory_system_live_bytes(void);

#endif
