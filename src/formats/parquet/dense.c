/* SPDX-License-Identifier: Apache-2.0 */
/* From batches to dense physical values: nulls taken out, types in the form that Parquet stores. */
#include <string.h>

#include "arrow/gather.h"
#include "base/alloc.h"
#include "formats/parquet/encode_priv.h"

#define INT32_DECIMAL_DIGITS 9
#define INT64_DECIMAL_DIGITS 18

/* Bytes that hold any decimal of a precision: least n with 10^p <= 2^(8n-1). */
static int32_t decimal_bytes(int32_t precision)
{
    int32_t bytes = 1;
    while (bytes < 16 && ((gar_i128)1 << (8 * bytes - 1)) < gar_pow10_i128(precision)) {
        bytes++;
    }
    return bytes;
}

static struct parquet_storage decimal_storage(struct gar_type type)
{
    struct parquet_storage s = {GAR_PARQUET_FIXED, decimal_bytes(type.precision),
                                PARQUET_LOGICAL_DECIMAL, PARQUET_CONVERTED_DECIMAL};
    if (type.precision <= INT32_DECIMAL_DIGITS) {
        s.physical = GAR_PARQUET_INT32;
        s.bytes = 4;
    } else if (type.precision <= INT64_DECIMAL_DIGITS) {
        s.physical = GAR_PARQUET_INT64;
        s.bytes = 8;
    }
    return s;
}

/* The old annotations know no local time and no nanoseconds, so times carry the new one alone. */
struct parquet_storage gar_parquet_storage_of(struct gar_type type)
{
    const int32_t none = PARQUET_CONVERTED_NONE;
    const int32_t integer = PARQUET_LOGICAL_INTEGER;
    switch ((enum gar_type_id)type.id) {
    case GAR_NULL:
        return (struct parquet_storage){GAR_PARQUET_INT32, 4, PARQUET_LOGICAL_NULL, none};
    case GAR_BOOL:
        return (struct parquet_storage){GAR_PARQUET_BOOLEAN, 0, PARQUET_LOGICAL_NONE, none};
    case GAR_INT8:
        return (struct parquet_storage){GAR_PARQUET_INT32, 4, integer, PARQUET_CONVERTED_INT_8};
    case GAR_INT16:
        return (struct parquet_storage){GAR_PARQUET_INT32, 4, integer, PARQUET_CONVERTED_INT_16};
    case GAR_INT32:
        return (struct parquet_storage){GAR_PARQUET_INT32, 4, PARQUET_LOGICAL_NONE, none};
    case GAR_INT64:
        return (struct parquet_storage){GAR_PARQUET_INT64, 8, PARQUET_LOGICAL_NONE, none};
    case GAR_UINT8:
        return (struct parquet_storage){GAR_PARQUET_INT32, 4, integer, PARQUET_CONVERTED_UINT_8};
    case GAR_UINT16:
        return (struct parquet_storage){GAR_PARQUET_INT32, 4, integer, PARQUET_CONVERTED_UINT_16};
    case GAR_UINT32:
        return (struct parquet_storage){GAR_PARQUET_INT32, 4, integer, PARQUET_CONVERTED_UINT_32};
    case GAR_UINT64:
        return (struct parquet_storage){GAR_PARQUET_INT64, 8, integer, PARQUET_CONVERTED_UINT_64};
    case GAR_FLOAT32:
        return (struct parquet_storage){GAR_PARQUET_FLOAT, 4, PARQUET_LOGICAL_NONE, none};
    case GAR_FLOAT64:
        return (struct parquet_storage){GAR_PARQUET_DOUBLE, 8, PARQUET_LOGICAL_NONE, none};
    case GAR_DECIMAL128: return decimal_storage(type);
    case GAR_STRING:
        return (struct parquet_storage){GAR_PARQUET_BYTE_ARRAY, 0, PARQUET_LOGICAL_STRING,
                                        PARQUET_CONVERTED_UTF8};
    case GAR_BINARY:
        return (struct parquet_storage){GAR_PARQUET_BYTE_ARRAY, 0, PARQUET_LOGICAL_NONE, none};
    case GAR_DATE:
        return (struct parquet_storage){GAR_PARQUET_INT32, 4, PARQUET_LOGICAL_DATE,
                                        PARQUET_CONVERTED_DATE};
    case GAR_TIME:
        return (struct parquet_storage){GAR_PARQUET_INT64, 8, PARQUET_LOGICAL_TIME, none};
    case GAR_TIMESTAMP:
        return (struct parquet_storage){GAR_PARQUET_INT64, 8, PARQUET_LOGICAL_TIMESTAMP, none};
    case GAR_DURATION:
        return (struct parquet_storage){GAR_PARQUET_INT64, 8, PARQUET_LOGICAL_NONE, none};
    case GAR_LIST:
    case GAR_FIXED_LIST:
    case GAR_STRUCT:
    case GAR_MAP:
    case GAR_TYPE_ID_COUNT: break;
    }
    return (struct parquet_storage){GAR_PARQUET_INT32, 4, PARQUET_LOGICAL_NULL, none};
}

void gar_parquet_dense_destroy(struct parquet_dense *dense)
{
    gar_buffer_unref(dense->validity);
    gar_buffer_unref(dense->values);
    for (int64_t i = 0; i < dense->held_count; i++) {
        gar_column_unref(dense->held[i]);
        gar_column_unref(dense->sources[i]);
    }
    gar_free(dense->held);
    gar_free(dense->sources);
    *dense = (struct parquet_dense){0};
}

/* Copies the column's validity into the row group's bitmap at `at`. */
static void copy_validity(const struct gar_column *column, uint8_t *bits, int64_t at)
{
    if (column->validity == NULL) {
        gar_bits_fill(bits, at, column->length, true);
    } else {
        gar_bits_copy(bits, at, column->validity, column->validity_offset, column->length);
    }
}

/* A FLAT column's non-null values, widened or narrowed. */
#define DENSE_COPY(in_type, out_type)                                             \
    do {                                                                          \
        const in_type *const in = column->values;                                 \
        out_type *const values = out;                                             \
        int64_t n = 0;                                                            \
        for (int64_t i = 0; i < column->length; i++) {                            \
            if (bits == NULL || gar_bit_get(bits, column->validity_offset + i)) { \
                values[n++] = (out_type)in[i];                                    \
            }                                                                     \
        }                                                                         \
    } while (0)

static void store_big_endian(gar_i128 value, int32_t bytes, uint8_t *out)
{
    gar_u128 v = (gar_u128)value;
    for (int32_t k = bytes - 1; k >= 0; k--) {
        out[k] = (uint8_t)v;
        v >>= 8;
    }
}

static void copy_decimals(const struct gar_column *column, const uint8_t *bits, int32_t bytes,
                          void *out)
{
    if (bytes == 4) {
        DENSE_COPY(gar_i128, int32_t);
    } else if (bytes == 8) {
        DENSE_COPY(gar_i128, int64_t);
    } else {
        const gar_i128 *const in = column->values;
        uint8_t *to = out;
        for (int64_t i = 0; i < column->length; i++) {
            if (bits == NULL || gar_bit_get(bits, column->validity_offset + i)) {
                store_big_endian(in[i], bytes, to);
                to += bytes;
            }
        }
    }
}

static enum gar_status copy_seconds(const struct gar_column *column, const uint8_t *bits,
                                    int64_t *out, struct gar_error *err)
{
    const int64_t *const in = column->values;
    int64_t n = 0;
    for (int64_t i = 0; i < column->length; i++) {
        if (bits != NULL && !gar_bit_get(bits, column->validity_offset + i)) {
            continue;
        }
        if (__builtin_mul_overflow(in[i], INT64_C(1000), &out[n++])) {
            return gar_error_set(
                err, GAR_ERR_OVERFLOW,
                "timestamp of %lld seconds is beyond the milliseconds that Parquet stores",
                (long long)in[i]);
        }
    }
    return GAR_OK;
}

/* Non-null values of one FLAT column to out. */
static enum gar_status copy_values(const struct parquet_dense *dense,
                                   const struct gar_column *column, void *out,
                                   struct gar_error *err)
{
    const uint8_t *const bits = column->validity;
    switch ((enum gar_type_id)dense->type.id) {
    case GAR_INT8: DENSE_COPY(int8_t, int32_t); break;
    case GAR_UINT8: DENSE_COPY(uint8_t, int32_t); break;
    case GAR_INT16: DENSE_COPY(int16_t, int32_t); break;
    case GAR_UINT16: DENSE_COPY(uint16_t, int32_t); break;
    case GAR_INT32:
    case GAR_UINT32:
    case GAR_FLOAT32:
    case GAR_DATE: DENSE_COPY(uint32_t, uint32_t); break;
    case GAR_TIMESTAMP:
        if (dense->type.unit == GAR_SECOND) {
            return copy_seconds(column, bits, out, err);
        }
        DENSE_COPY(uint64_t, uint64_t);
        break;
    case GAR_INT64:
    case GAR_UINT64:
    case GAR_FLOAT64:
    case GAR_TIME:
    case GAR_DURATION: DENSE_COPY(uint64_t, uint64_t); break;
    case GAR_DECIMAL128: copy_decimals(column, bits, dense->storage.bytes, out); break;
    case GAR_STRING:
    case GAR_BINARY: {
        struct parquet_slice *slices = out;
        for (int64_t i = 0; i < column->length; i++) {
            if (bits == NULL || gar_bit_get(bits, column->validity_offset + i)) {
                slices->data = gar_column_bytes_at(column, i, &slices->bytes);
                slices++;
            }
        }
        break;
    }
    case GAR_BOOL:
    case GAR_NULL:
    case GAR_LIST:
    case GAR_FIXED_LIST:
    case GAR_STRUCT:
    case GAR_MAP:
    case GAR_TYPE_ID_COUNT: break;
    }
    return GAR_OK;
}

static void copy_bools(const struct gar_column *column, uint8_t *out, int64_t at)
{
    const uint8_t *const values = column->values;
    if (column->validity == NULL) {
        gar_bits_copy(out, at, values, column->values_offset, column->length);
        return;
    }
    for (int64_t i = 0; i < column->length; i++) {
        if (gar_bit_get(column->validity, column->validity_offset + i)) {
            gar_bit_put(out, at++, gar_bit_get(values, column->values_offset + i));
        }
    }
}

static enum gar_status flatten_all(struct gar_batch *const *batches, int64_t count, int64_t number,
                                   struct gar_memory *memory, struct parquet_dense *dense,
                                   struct gar_error *err)
{
    dense->held = gar_calloc(count, (int64_t)sizeof *dense->held);
    dense->sources = gar_calloc(count, (int64_t)sizeof *dense->sources);
    if (dense->held == NULL || dense->sources == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *dense->held);
    }
    int64_t nulls = 0;
    for (int64_t i = 0; i < count; i++) {
        GAR_TRY(gar_column_flatten(batches[i]->columns[number], memory, &dense->held[i], err));
        dense->sources[i] = gar_column_ref(batches[i]->columns[number]);
        dense->held_count = i + 1;
        dense->rows += dense->held[i]->length;
        nulls += dense->type.id == GAR_NULL ? dense->held[i]->length
                                            : gar_column_null_count(dense->held[i]);
    }
    dense->count = dense->rows - nulls;
    return GAR_OK;
}

static enum gar_status fill_dense(struct parquet_dense *dense, struct gar_memory *memory,
                                  struct gar_error *err)
{
    const bool has_nulls = dense->count < dense->rows;
    if (has_nulls) {
        GAR_TRY(gar_buffer_new_zeroed(memory, gar_bits_bytes(dense->rows), &dense->validity, err));
    }
    if (dense->type.id == GAR_NULL) {
        return gar_buffer_new(memory, 0, &dense->values, err);
    }
    const int64_t value_bytes =
        dense->storage.bytes == 0 ? (int64_t)sizeof(struct parquet_slice) : dense->storage.bytes;
    if (dense->type.id == GAR_BOOL) {
        GAR_TRY(gar_buffer_new_zeroed(memory, gar_bits_bytes(dense->count), &dense->values, err));
    } else {
        GAR_TRY(gar_buffer_new(memory, dense->count * value_bytes, &dense->values, err));
    }
    int64_t row = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < dense->held_count; i++) {
        const struct gar_column *const column = dense->held[i];
        if (has_nulls) {
            copy_validity(column, dense->validity->data, row);
        }
        if (dense->type.id == GAR_BOOL) {
            copy_bools(column, dense->values->data, at);
        } else {
            GAR_TRY(copy_values(dense, column, dense->values->data + at * value_bytes, err));
        }
        row += column->length;
        at += column->length - gar_column_null_count(column);
    }
    return GAR_OK;
}

enum gar_status gar_parquet_dense_make(struct gar_batch *const *batches, int64_t count,
                                       int64_t number, struct gar_memory *memory,
                                       struct parquet_dense *out, struct gar_error *err)
{
    *out = (struct parquet_dense){0};
    if (count == 0) {
        return gar_error_set(err, GAR_ERR_INTERNAL, "a row group of no batches");
    }
    out->type = batches[0]->schema->fields[number].type;
    out->storage = gar_parquet_storage_of(out->type);
    enum gar_status status = flatten_all(batches, count, number, memory, out, err);
    if (status >= 0) {
        status = fill_dense(out, memory, err);
    }
    if (status < 0) {
        gar_parquet_dense_destroy(out);
    }
    return status;
}
