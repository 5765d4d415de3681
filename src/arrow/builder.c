/* SPDX-License-Identifier: Apache-2.0 */
/* Building flat columns row by row. A row is counted only when all of its parts are stored. */
#include "arrow/builder.h"

#include "base/alloc.h"

#define FIRST_ROWS         64
#define FIRST_DATA_BYTES   INT64_C(1024)
#define LARGEST_DATA_BYTES (INT64_C(4) << 20)
#define VALUE_BYTES_MAX    INT64_C(0x7fffffff)

void gar_builder_init(struct gar_builder *builder, struct gar_memory *memory, struct gar_type type)
{
    *builder = (struct gar_builder){.memory = memory, .type = type};
}

void gar_builder_destroy(struct gar_builder *builder)
{
    if (builder == NULL) {
        return;
    }
    gar_buffer_unref(builder->values);
    gar_buffer_unref(builder->validity);
    for (int32_t i = 0; i < builder->data_count; i++) {
        gar_buffer_unref(builder->data[i]);
    }
    gar_free(builder->data);
    gar_builder_init(builder, builder->memory, builder->type);
}

static int64_t bytes_for(struct gar_type type, int64_t rows)
{
    return type.id == GAR_BOOL ? gar_bits_bytes(rows) : rows * gar_type_width(type);
}

/* Rows that the values buffer has room for. */
static int64_t room(const struct gar_builder *b)
{
    if (b->values == NULL) {
        return b->type.id == GAR_NULL ? INT64_MAX : 0;
    }
    return b->type.id == GAR_BOOL ? b->values->size * 8 : b->values->size / gar_type_width(b->type);
}

static enum gar_status grow_buffer(struct gar_memory *memory, struct gar_buffer **buffer,
                                   int64_t bytes, struct gar_error *err)
{
    return *buffer == NULL ? gar_buffer_new(memory, bytes, buffer, err)
                           : gar_buffer_resize(*buffer, bytes, err);
}

/* Room for at least `want` rows in values and, where it is there, validity. */
static enum gar_status grow(struct gar_builder *b, int64_t want, struct gar_error *err)
{
    if (want > INT64_C(1) << 56) {
        return gar_error_set(err, GAR_ERR_NOMEM,
                             "out of memory: a column of %lld rows is impossible", (long long)want);
    }
    if (b->validity != NULL && b->validity->size * 8 < want) {
        GAR_TRY(gar_buffer_resize(b->validity, gar_bits_bytes(want), err));
    }
    return b->type.id == GAR_NULL
               ? GAR_OK
               : grow_buffer(b->memory, &b->values, bytes_for(b->type, want), err);
}

static enum gar_status grow_for_one(struct gar_builder *b, struct gar_error *err)
{
    return grow(b, gar_max_i64(FIRST_ROWS, 2 * b->length), err);
}

enum gar_status gar_builder_reserve(struct gar_builder *builder, int64_t rows,
                                    struct gar_error *err)
{
    if (rows > (INT64_C(1) << 56) - builder->length) {
        return gar_error_set(err, GAR_ERR_NOMEM, "out of memory: %lld more rows are impossible",
                             (long long)rows);
    }
    const int64_t want = builder->length + rows;
    return want <= room(builder) ? GAR_OK : grow(builder, want, err);
}

/* Room for one more row. */
GAR_INLINE enum gar_status ensure_one(struct gar_builder *b, struct gar_error *err)
{
    return GAR_LIKELY(b->length < room(b)) ? GAR_OK : grow_for_one(b, err);
}

GAR_INLINE void count_valid(struct gar_builder *b)
{
    if (b->validity != NULL) {
        gar_bit_set(b->validity->data, b->length);
    }
    b->length++;
}

static enum gar_status start_validity(struct gar_builder *b, struct gar_error *err)
{
    const int64_t rows = gar_max_i64(b->values == NULL ? FIRST_ROWS : room(b), b->length + 1);
    GAR_TRY(gar_buffer_new(b->memory, gar_bits_bytes(rows), &b->validity, err));
    memset(b->validity->data, 0xff, (size_t)b->validity->size);
    return GAR_OK;
}

enum gar_status gar_builder_append_null(struct gar_builder *builder, struct gar_error *err)
{
    if (builder->type.id == GAR_NULL) {
        builder->length++;
        builder->null_count++;
        return GAR_OK;
    }
    GAR_TRY(ensure_one(builder, err));
    if (builder->validity == NULL) {
        GAR_TRY(start_validity(builder, err));
    }
    if (builder->type.id == GAR_BOOL) {
        gar_bit_clear(builder->values->data, builder->length);
    } else {
        const int32_t width = gar_type_width(builder->type);
        memset(builder->values->data + builder->length * width, 0, (size_t)width);
    }
    gar_bit_clear(builder->validity->data, builder->length);
    builder->length++;
    builder->null_count++;
    return GAR_OK;
}

enum gar_status gar_builder_append_bool(struct gar_builder *builder, bool value,
                                        struct gar_error *err)
{
    GAR_TRY(ensure_one(builder, err));
    gar_bit_put(builder->values->data, builder->length, value);
    count_valid(builder);
    return GAR_OK;
}

enum gar_status gar_builder_append_fixed(struct gar_builder *builder, const void *value,
                                         struct gar_error *err)
{
    GAR_TRY(ensure_one(builder, err));
    const int32_t width = gar_type_width(builder->type);
    memcpy(builder->values->data + builder->length * width, value, (size_t)width);
    count_valid(builder);
    return GAR_OK;
}

/* A data buffer whose unused capacity holds `bytes` more; its size is what is used. */
static enum gar_status ensure_data(struct gar_builder *b, int64_t bytes, struct gar_error *err)
{
    const int64_t last = b->data_count > 0 ? b->data[b->data_count - 1]->size : 0;
    if (b->data_count > 0 && bytes <= b->data[b->data_count - 1]->capacity - 64 - last &&
        last <= VALUE_BYTES_MAX - bytes) {
        return GAR_OK;
    }
    void *items = b->data;
    GAR_TRY(gar_grow(&items, &b->data_capacity, (int64_t)b->data_count + 1,
                     (int64_t)sizeof b->data[0], err));
    b->data = items;
    const int64_t wanted =
        b->data_count == 0 ? FIRST_DATA_BYTES : gar_min_i64(2 * last, LARGEST_DATA_BYTES);
    struct gar_buffer *buffer = NULL;
    GAR_TRY(gar_buffer_new(b->memory, gar_max_i64(wanted, bytes), &buffer, err));
    buffer->size = 0;
    b->data[b->data_count++] = buffer;
    return GAR_OK;
}

enum gar_status gar_builder_append_bytes(struct gar_builder *builder, const void *data,
                                         int64_t bytes, struct gar_error *err)
{
    GAR_TRY(ensure_one(builder, err));
    struct gar_string_view *view =
        (struct gar_string_view *)(void *)builder->values->data + builder->length;
    if (GAR_LIKELY(bytes <= GAR_VIEW_INLINE_BYTES)) {
        memset(view, 0, sizeof *view);
        view->size = (int32_t)bytes;
        if (bytes > 0) {
            memcpy(view->inlined, data, (size_t)bytes);
        }
    } else {
        if (bytes > VALUE_BYTES_MAX) {
            return gar_error_set(err, GAR_ERR_OVERFLOW, "a value of %lld bytes; the limit is %lld",
                                 (long long)bytes, (long long)VALUE_BYTES_MAX);
        }
        GAR_TRY(ensure_data(builder, bytes, err));
        struct gar_buffer *buffer = builder->data[builder->data_count - 1];
        memcpy(buffer->data + buffer->size, data, (size_t)bytes);
        *view = gar_view_make(data, (int32_t)bytes, builder->data_count - 1, (int32_t)buffer->size);
        buffer->size += bytes;
    }
    count_valid(builder);
    return GAR_OK;
}

static enum gar_status append_i64(struct gar_builder *b, int64_t v, struct gar_error *err)
{
    switch (gar_type_width(b->type)) {
    case 1: {
        const int8_t x = (int8_t)v;
        return gar_builder_append_fixed(b, &x, err);
    }
    case 2: {
        const int16_t x = (int16_t)v;
        return gar_builder_append_fixed(b, &x, err);
    }
    case 4: {
        const int32_t x = (int32_t)v;
        return gar_builder_append_fixed(b, &x, err);
    }
    default: return gar_builder_append_fixed(b, &v, err);
    }
}

enum gar_status gar_builder_append_value(struct gar_builder *builder, const struct gar_value *value,
                                         struct gar_error *err)
{
    if (!value->is_valid) {
        return gar_builder_append_null(builder, err);
    }
    if (!gar_type_equal(value->type, builder->type)) {
        char have[64];
        char want[64];
        return gar_error_set(err, GAR_ERR_INTERNAL, "cannot append a value of %s to a column of %s",
                             gar_type_text(value->type, have, (int64_t)sizeof have),
                             gar_type_text(builder->type, want, (int64_t)sizeof want));
    }
    switch ((enum gar_type_id)value->type.id) {
    case GAR_BOOL: return gar_builder_append_bool(builder, value->boolean, err);
    case GAR_FLOAT32: {
        const float f = (float)value->f64;
        return gar_builder_append_fixed(builder, &f, err);
    }
    case GAR_FLOAT64: return gar_builder_append_fixed(builder, &value->f64, err);
    case GAR_DECIMAL128: return gar_builder_append_fixed(builder, &value->i128, err);
    case GAR_STRING:
    case GAR_BINARY:
        return gar_builder_append_bytes(builder, value->text.data, value->text.size, err);
    case GAR_UINT8:
    case GAR_UINT16:
    case GAR_UINT32:
    case GAR_UINT64: return append_i64(builder, (int64_t)value->u64, err);
    case GAR_INT8:
    case GAR_INT16:
    case GAR_INT32:
    case GAR_INT64:
    case GAR_DATE:
    case GAR_TIME:
    case GAR_TIMESTAMP:
    case GAR_DURATION: return append_i64(builder, value->i64, err);
    case GAR_LIST:
    case GAR_FIXED_LIST:
    case GAR_STRUCT:
    case GAR_MAP: {
        char text[96];
        return gar_error_set(err, GAR_ERR_UNSUPPORTED, "%s columns cannot be built value by value",
                             gar_type_text(builder->type, text, (int64_t)sizeof text));
    }
    case GAR_NULL:
    case GAR_TYPE_ID_COUNT: break;
    }
    return gar_builder_append_null(builder, err);
}

enum gar_status gar_builder_finish(struct gar_builder *builder, struct gar_column **out,
                                   struct gar_error *err)
{
    if (builder->values == NULL) {
        GAR_TRY(grow(builder, builder->length, err));
    } else {
        builder->values->size = bytes_for(builder->type, builder->length);
    }
    if (builder->validity != NULL) {
        builder->validity->size = gar_bits_bytes(builder->length);
    }
    const struct gar_column_parts parts = {.type = builder->type,
                                           .length = builder->length,
                                           .null_count = builder->null_count,
                                           .validity = builder->validity,
                                           .values = builder->values,
                                           .data = builder->data,
                                           .data_count = builder->data_count};
    GAR_TRY(gar_column_from_parts(&parts, out, err));
    gar_free(builder->data); /* the array; the buffers went into the column */
    gar_builder_init(builder, builder->memory, builder->type);
    return GAR_OK;
}
