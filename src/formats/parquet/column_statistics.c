/* SPDX-License-Identifier: Apache-2.0 */
/* Least and greatest value of a column chunk, as PLAIN bytes, always exact. Floats leave NaN out and store -0.0 below and 0.0
 * above; texts beyond a limit get no bounds rather than cut ones. */
#include <string.h>

#include "base/bits.h"
#include "base/int128.h"
#include "formats/parquet/encode_priv.h"

#define TEXT_BYTES_MAX 1024

void gar_parquet_statistics_destroy(struct parquet_statistics *statistics)
{
    gar_strbuf_destroy(&statistics->min);
    gar_strbuf_destroy(&statistics->max);
    statistics->has_bounds = false;
}

#define BOUNDS_BODY(type)                                                           \
    const type *const values = (const type *)(const void *)dense->values->data;     \
    type low = values[0];                                                           \
    type high = values[0];                                                          \
    for (int64_t i = 1; i < dense->count; i++) {                                    \
        low = values[i] < low ? values[i] : low;                                    \
        high = values[i] > high ? values[i] : high;                                 \
    }                                                                               \
    gar_strbuf_append_n(&out->min, (const char *)(const void *)&low, sizeof low);   \
    gar_strbuf_append_n(&out->max, (const char *)(const void *)&high, sizeof high); \
    out->has_bounds = true;

static void bounds_i32(const struct parquet_dense *dense, struct parquet_statistics *out)
{
    BOUNDS_BODY(int32_t)
}

static void bounds_u32(const struct parquet_dense *dense, struct parquet_statistics *out)
{
    BOUNDS_BODY(uint32_t)
}

static void bounds_i64(const struct parquet_dense *dense, struct parquet_statistics *out)
{
    BOUNDS_BODY(int64_t)
}

static void bounds_u64(const struct parquet_dense *dense, struct parquet_statistics *out)
{
    BOUNDS_BODY(uint64_t)
}

#define FLOAT_BOUNDS_BODY(type)                                                     \
    const type *const values = (const type *)(const void *)dense->values->data;     \
    type low = 0;                                                                   \
    type high = 0;                                                                  \
    bool is_first = true;                                                           \
    for (int64_t i = 0; i < dense->count; i++) {                                    \
        const type v = values[i];                                                   \
        if (v != v) {                                                               \
            continue;                                                               \
        }                                                                           \
        low = is_first || v < low ? v : low;                                        \
        high = is_first || v > high ? v : high;                                     \
        is_first = false;                                                           \
    }                                                                               \
    if (is_first) {                                                                 \
        return;                                                                     \
    }                                                                               \
    low = low == 0 ? (type)-0.0 : low;                                              \
    high = high == 0 ? (type)0.0 : high;                                            \
    gar_strbuf_append_n(&out->min, (const char *)(const void *)&low, sizeof low);   \
    gar_strbuf_append_n(&out->max, (const char *)(const void *)&high, sizeof high); \
    out->has_bounds = true;

static void bounds_f32(const struct parquet_dense *dense, struct parquet_statistics *out)
{
    FLOAT_BOUNDS_BODY(float)
}

static void bounds_f64(const struct parquet_dense *dense, struct parquet_statistics *out)
{
    FLOAT_BOUNDS_BODY(double)
}

static void bounds_bool(const struct parquet_dense *dense, struct parquet_statistics *out)
{
    const int64_t set = gar_bits_count(dense->values->data, 0, dense->count);
    gar_strbuf_append_char(&out->min, set == dense->count);
    gar_strbuf_append_char(&out->max, set > 0);
    out->has_bounds = true;
}

/* Big-endian two's complement of one width: the first byte is signed, the rest is not. */
static int32_t compare_fixed(const uint8_t *a, const uint8_t *b, int64_t bytes)
{
    if (a[0] != b[0]) {
        return (int8_t)a[0] < (int8_t)b[0] ? -1 : 1;
    }
    return memcmp(a, b, (size_t)bytes);
}

static void bounds_fixed(const struct parquet_dense *dense, struct parquet_statistics *out)
{
    const int64_t bytes = dense->storage.bytes;
    const uint8_t *low = dense->values->data;
    const uint8_t *high = low;
    for (int64_t i = 1; i < dense->count; i++) {
        const uint8_t *const value = dense->values->data + i * bytes;
        low = compare_fixed(value, low, bytes) < 0 ? value : low;
        high = compare_fixed(value, high, bytes) > 0 ? value : high;
    }
    gar_strbuf_append_n(&out->min, (const char *)low, bytes);
    gar_strbuf_append_n(&out->max, (const char *)high, bytes);
    out->has_bounds = true;
}

static bool is_less(const struct parquet_slice *a, const struct parquet_slice *b)
{
    const int32_t order = memcmp(a->data, b->data, (size_t)gar_min_i64(a->bytes, b->bytes));
    return order != 0 ? order < 0 : a->bytes < b->bytes;
}

static void bounds_text(const struct parquet_dense *dense, const uint32_t *numbers, int64_t count,
                        struct parquet_statistics *out)
{
    const struct parquet_slice *const slices =
        (const struct parquet_slice *)(const void *)dense->values->data;
    const struct parquet_slice *low = slices;
    const struct parquet_slice *high = slices;
    for (int64_t i = 1; i < (numbers != NULL ? count : dense->count); i++) {
        const struct parquet_slice *const slice = &slices[numbers != NULL ? numbers[i] : i];
        low = is_less(slice, low) ? slice : low;
        high = is_less(high, slice) ? slice : high;
    }
    if (low->bytes > TEXT_BYTES_MAX || high->bytes > TEXT_BYTES_MAX) {
        return;
    }
    gar_strbuf_append_n(&out->min, (const char *)low->data, low->bytes);
    gar_strbuf_append_n(&out->max, (const char *)high->data, high->bytes);
    out->has_bounds = true;
}

enum gar_status gar_parquet_statistics_make(const struct parquet_dense *dense,
                                            const uint32_t *numbers, int64_t count,
                                            struct parquet_statistics *out, struct gar_error *err)
{
    *out = (struct parquet_statistics){0};
    if (dense->count == 0) {
        return GAR_OK;
    }
    const bool is_unsigned = gar_type_is_unsigned(dense->type);
    switch ((enum gar_parquet_physical)dense->storage.physical) {
    case GAR_PARQUET_BOOLEAN: bounds_bool(dense, out); break;
    case GAR_PARQUET_INT32: (is_unsigned ? bounds_u32 : bounds_i32)(dense, out); break;
    case GAR_PARQUET_INT64: (is_unsigned ? bounds_u64 : bounds_i64)(dense, out); break;
    case GAR_PARQUET_FLOAT: bounds_f32(dense, out); break;
    case GAR_PARQUET_DOUBLE: bounds_f64(dense, out); break;
    case GAR_PARQUET_FIXED: bounds_fixed(dense, out); break;
    case GAR_PARQUET_BYTE_ARRAY: bounds_text(dense, numbers, count, out); break;
    case GAR_PARQUET_INT96: break;
    }
    if (out->min.failed || out->max.failed) {
        gar_parquet_statistics_destroy(out);
        return gar_error_nomem(err, TEXT_BYTES_MAX);
    }
    return GAR_OK;
}
