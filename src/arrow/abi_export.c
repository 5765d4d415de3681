/* SPDX-License-Identifier: Apache-2.0 */
/* Columns and batches to Arrow arrays. An exported array holds a reference to its column, so its buffers are shared; only
 * bitmaps that start inside a byte and texts with offsets are copied. */
#include <string.h>

#include "arrow/abi.h"
#include "arrow/abi_priv.h"
#include "arrow/gather.h"
#include "base/alloc.h"

/* What an exported column keeps alive. The buffer pointers follow in the same block. */
struct exported_column {
    struct gar_column *column;    /* owned */
    struct gar_buffer *copies[4]; /* owned: validity, values, bytes, sizes; each may be NULL */
    const void *buffers[];
};

static void release_column(struct ArrowArray *array)
{
    struct exported_column *own = array->private_data;
    gar_column_unref(own->column);
    for (int64_t i = 0; i < GAR_COUNT_OF(own->copies); i++) {
        gar_buffer_unref(own->copies[i]);
    }
    gar_free(own);
    array->release = NULL;
}

/* A bitmap that starts at bit 0: shared when it begins at a byte, else copied to *copy. */
static enum gar_status align_bits(const uint8_t *bits, int64_t offset, int64_t length,
                                  struct gar_memory *memory, struct gar_buffer **copy,
                                  const void **out, struct gar_error *err)
{
    if (bits == NULL || (offset & 7) == 0) {
        *out = bits == NULL ? NULL : bits + (offset >> 3);
        return GAR_OK;
    }
    GAR_TRY(gar_buffer_new(memory, gar_bits_bytes(length), copy, err));
    gar_bits_copy((*copy)->data, 0, bits, offset, length);
    *out = (*copy)->data;
    return GAR_OK;
}

/* offsets (int64) and bytes of a text column; nulls are empty. */
static enum gar_status write_offsets(const struct gar_column *column, struct gar_memory *memory,
                                     struct exported_column *own, struct gar_error *err)
{
    const struct gar_string_view *views = column->values;
    GAR_TRY(gar_buffer_new(memory, (column->length + 1) * (int64_t)sizeof(int64_t), &own->copies[1],
                           err));
    int64_t *offsets = (int64_t *)(void *)own->copies[1]->data;
    int64_t total = 0;
    for (int64_t i = 0; i < column->length; i++) {
        offsets[i] = total;
        total += column->validity != NULL && gar_column_is_null(column, i) ? 0 : views[i].size;
    }
    offsets[column->length] = total;
    GAR_TRY(gar_buffer_new(memory, total, &own->copies[2], err));
    uint8_t *bytes = own->copies[2]->data;
    for (int64_t i = 0; i < column->length; i++) {
        const int64_t size = offsets[i + 1] - offsets[i];
        const uint8_t *from = gar_view_bytes(&views[i], column->data_pointers);
        if (size <= GAR_VIEW_INLINE_BYTES) {
            /* the padding behind the buffer takes what goes beyond */
            memcpy(bytes + offsets[i], views[i].inlined, GAR_VIEW_INLINE_BYTES);
        } else {
            memcpy(bytes + offsets[i], from, (size_t)size);
        }
    }
    own->buffers[1] = own->copies[1]->data;
    own->buffers[2] = own->copies[2]->data;
    return GAR_OK;
}

static enum gar_status write_views(const struct gar_column *column, struct gar_memory *memory,
                                   struct exported_column *own, struct gar_error *err)
{
    const int64_t count = column->data_count;
    own->buffers[1] = column->values;
    GAR_TRY(gar_buffer_new(memory, count * (int64_t)sizeof(int64_t), &own->copies[3], err));
    int64_t *sizes = (int64_t *)(void *)own->copies[3]->data;
    for (int64_t i = 0; i < count; i++) {
        own->buffers[2 + i] = column->data_pointers[i];
        sizes[i] = column->data[i]->size;
    }
    own->buffers[2 + count] = sizes;
    return GAR_OK;
}

/* Fills the buffers of a flat column. */
static enum gar_status fill_buffers(const struct gar_column *column, enum gar_text_layout layout,
                                    struct gar_memory *memory, struct exported_column *own,
                                    struct gar_error *err)
{
    GAR_TRY(align_bits(column->validity, column->validity_offset, column->length, memory,
                       &own->copies[0], &own->buffers[0], err));
    if (column->type.id == GAR_BOOL) {
        return align_bits(column->values, column->values_offset, column->length, memory,
                          &own->copies[1], &own->buffers[1], err);
    }
    if (!gar_type_is_text(column->type)) {
        own->buffers[1] = column->values;
        return GAR_OK;
    }
    return layout == GAR_TEXT_VIEWS ? write_views(column, memory, own, err)
                                    : write_offsets(column, memory, own, err);
}

static int64_t buffer_count(const struct gar_column *column, enum gar_text_layout layout)
{
    if (column->type.id == GAR_NULL) {
        return 0;
    }
    if (!gar_type_is_text(column->type)) {
        return 2;
    }
    return layout == GAR_TEXT_VIEWS ? 3 + (int64_t)column->data_count : 3;
}

enum gar_status gar_column_export(const struct gar_column *column, enum gar_text_layout layout,
                                  struct gar_memory *memory, struct ArrowArray *out,
                                  struct gar_error *err)
{
    if (gar_type_is_nested(column->type)) {
        char text[96];
        return gar_error_set(err, GAR_ERR_UNSUPPORTED, "%s columns cannot be exported",
                             gar_type_text(column->type, text, (int64_t)sizeof text));
    }
    struct gar_column *flat = NULL;
    GAR_TRY(gar_column_flatten(column, memory, &flat, err));
    const int64_t count = buffer_count(flat, layout);
    const int64_t bytes =
        (int64_t)sizeof(struct exported_column) + gar_max_i64(count, 1) * (int64_t)sizeof(void *);
    struct exported_column *own = gar_calloc(1, bytes);
    if (own == NULL) {
        gar_column_unref(flat);
        return gar_error_nomem(err, bytes);
    }
    own->column = flat;
    struct ArrowArray array = {.length = flat->length,
                               .null_count = gar_column_null_count(flat),
                               .n_buffers = count,
                               .buffers = own->buffers,
                               .release = release_column,
                               .private_data = own};
    if (count > 0) {
        const enum gar_status status = fill_buffers(flat, layout, memory, own, err);
        if (status < 0) {
            release_column(&array);
            return status;
        }
    }
    *out = array;
    return GAR_OK;
}

struct exported_batch {
    const void *no_validity; /* the struct's one buffer */
    struct ArrowArray *children;
    struct ArrowArray **child_pointers;
};

static void release_batch(struct ArrowArray *array)
{
    struct exported_batch *own = array->private_data;
    for (int64_t i = 0; i < array->n_children; i++) {
        if (own->children[i].release != NULL) { /* a consumer may have moved it out */
            own->children[i].release(&own->children[i]);
        }
    }
    gar_free(own->children);
    gar_free(own->child_pointers);
    gar_free(own);
    array->release = NULL;
}

static enum gar_status export_gathered(const struct gar_batch *batch, enum gar_text_layout layout,
                                       struct gar_memory *memory, struct ArrowArray *out,
                                       struct gar_error *err)
{
    const int64_t count = batch->schema->count;
    struct exported_batch *own = gar_calloc(1, (int64_t)sizeof *own);
    if (own == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *own);
    }
    own->children = gar_calloc(gar_max_i64(count, 1), (int64_t)sizeof own->children[0]);
    own->child_pointers = gar_calloc(gar_max_i64(count, 1), (int64_t)sizeof own->child_pointers[0]);
    struct ArrowArray array = {.length = batch->rows,
                               .n_buffers = 1,
                               .buffers = &own->no_validity,
                               .release = release_batch,
                               .private_data = own};
    enum gar_status status = GAR_OK;
    if (own->children == NULL || own->child_pointers == NULL) {
        status = gar_error_nomem(err, count * (int64_t)sizeof own->children[0]);
    } else {
        array.n_children = count;
        array.children = own->child_pointers;
    }
    for (int64_t i = 0; status >= 0 && i < count; i++) {
        own->child_pointers[i] = &own->children[i];
        status = gar_column_export(batch->columns[i], layout, memory, &own->children[i], err);
    }
    if (status < 0) {
        release_batch(&array);
        return status;
    }
    *out = array;
    return GAR_OK;
}

enum gar_status gar_batch_export(const struct gar_batch *batch, enum gar_text_layout layout,
                                 struct gar_memory *memory, struct ArrowArray *out,
                                 struct gar_error *err)
{
    struct gar_batch *full = NULL;
    GAR_TRY(gar_batch_gather(batch, memory, &full, err));
    const enum gar_status status = export_gathered(full, layout, memory, out, err);
    gar_batch_unref(full);
    return status;
}
