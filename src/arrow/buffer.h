/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers: counted bytes, owned by a gar_memory or by a foreign owner with a release callback. */
#ifndef GAR_ARROW_BUFFER_H
#define GAR_ARROW_BUFFER_H

#include "base/attrs.h"
#include "base/memory.h"

struct gar_buffer {
    int64_t refs; /* atomic */
    uint8_t *data;
    int64_t size;              /* bytes in use */
    int64_t capacity;          /* bytes there; own buffers only */
    struct gar_memory *memory; /* owner of data (a reference is held), NULL for foreign or empty */
    void (*release)(void *context); /* foreign: called once by the last unref, on any thread */
    void *context;
};

/* Writable until it is shared. size = bytes, contents undefined; data is 64-byte aligned and padded: reading
 * up to 64 bytes past size is safe. Errors: GAR_ERR_NOMEM. Owns: caller unrefs. */
GAR_MUST_USE enum gar_status gar_buffer_new(struct gar_memory *memory, int64_t bytes,
                                            struct gar_buffer **out, struct gar_error *err);
/* The same, zeroed. */
GAR_MUST_USE enum gar_status gar_buffer_new_zeroed(struct gar_memory *memory, int64_t bytes,
                                                   struct gar_buffer **out, struct gar_error *err);
/* Grow (or shrink) a buffer that only the caller holds; contents up to min(old, new) stay. On failure untouched. */
GAR_MUST_USE enum gar_status gar_buffer_resize(struct gar_buffer *buffer, int64_t bytes,
                                               struct gar_error *err);
/* Somebody else's bytes; release(context) once at the end. On failure release is not called. No padding is promised. */
GAR_MUST_USE enum gar_status gar_buffer_new_foreign(const void *data, int64_t bytes,
                                                    void (*release)(void *), void *context,
                                                    struct gar_buffer **out, struct gar_error *err);
struct gar_buffer *gar_buffer_ref(struct gar_buffer *buffer);
void gar_buffer_unref(struct gar_buffer *buffer);

#endif
