/* SPDX-License-Identifier: Apache-2.0 */
/* Counted buffers over column memory or foreign memory. */
#include "arrow/buffer.h"

#include <string.h>

#include "arrow/refs_priv.h"
#include "base/alloc.h"

/* Readable bytes behind every own buffer, so that kernels may load whole vectors. */
#define PADDING_BYTES 64
/* No buffer is larger: sums of a few sizes can then never wrap. */
#define BUFFER_BYTES_MAX (INT64_C(1) << 60)

static enum gar_status check_bytes(int64_t bytes, struct gar_error *err)
{
    if (GAR_UNLIKELY(bytes < 0 || bytes > BUFFER_BYTES_MAX)) {
        return gar_error_set(err, GAR_ERR_NOMEM,
                             "out of memory: a buffer of %lld bytes is impossible",
                             (long long)bytes);
    }
    return GAR_OK;
}

enum gar_status gar_buffer_new(struct gar_memory *memory, int64_t bytes, struct gar_buffer **out,
                               struct gar_error *err)
{
    GAR_TRY(check_bytes(bytes, err));
    struct gar_buffer *buffer = gar_malloc((int64_t)sizeof *buffer);
    if (buffer == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *buffer);
    }
    int64_t capacity = 0;
    void *data = gar_memory_alloc(memory, bytes + PADDING_BYTES, &capacity, err);
    if (data == NULL) {
        gar_free(buffer);
        return GAR_ERR_NOMEM;
    }
    *buffer = (struct gar_buffer){.refs = 1,
                                  .data = data,
                                  .size = bytes,
                                  .capacity = capacity,
                                  .memory = gar_memory_ref(memory)};
    *out = buffer;
    return GAR_OK;
}

enum gar_status gar_buffer_new_zeroed(struct gar_memory *memory, int64_t bytes,
                                      struct gar_buffer **out, struct gar_error *err)
{
    GAR_TRY(gar_buffer_new(memory, bytes, out, err));
    memset((*out)->data, 0, (size_t)bytes);
    return GAR_OK;
}

enum gar_status gar_buffer_resize(struct gar_buffer *buffer, int64_t bytes, struct gar_error *err)
{
    GAR_TRY(check_bytes(bytes, err));
    if (buffer->memory == NULL) {
        return gar_error_set(err, GAR_ERR_INTERNAL, "cannot resize a buffer with a foreign owner");
    }
    if (bytes <= buffer->capacity - PADDING_BYTES) {
        buffer->size = bytes;
        return GAR_OK;
    }
    int64_t capacity = 0;
    void *data = gar_memory_alloc(buffer->memory, bytes + PADDING_BYTES, &capacity, err);
    if (data == NULL) {
        return GAR_ERR_NOMEM;
    }
    memcpy(data, buffer->data, (size_t)gar_min_i64(buffer->size, bytes));
    gar_memory_free(buffer->memory, buffer->data, buffer->capacity);
    buffer->data = data;
    buffer->size = bytes;
    buffer->capacity = capacity;
    return GAR_OK;
}

enum gar_status gar_buffer_new_foreign(const void *data, int64_t bytes, void (*release)(void *),
                                       void *context, struct gar_buffer **out,
                                       struct gar_error *err)
{
    GAR_TRY(check_bytes(bytes, err));
    struct gar_buffer *buffer = gar_malloc((int64_t)sizeof *buffer);
    if (buffer == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *buffer);
    }
    *buffer = (struct gar_buffer){
        .refs = 1, .data = drop_const(data), .size = bytes, .release = release, .context = context};
    *out = buffer;
    return GAR_OK;
}

struct gar_buffer *gar_buffer_ref(struct gar_buffer *buffer)
{
    if (buffer != NULL) {
        ref_add(&buffer->refs);
    }
    return buffer;
}

void gar_buffer_unref(struct gar_buffer *buffer)
{
    if (buffer == NULL || !ref_drop(&buffer->refs)) {
        return;
    }
    if (buffer->memory != NULL) {
        gar_memory_free(buffer->memory, buffer->data, buffer->capacity);
        gar_memory_unref(buffer->memory);
    } else if (buffer->release != NULL) {
        buffer->release(buffer->context);
    }
    gar_free(buffer);
}
