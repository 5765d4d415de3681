/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of a column chunk as bounds, by the rules that never prune a row that is there.
 *
 * The newer fields (min_value, max_value) are believed when the footer says in which order they are; the deprecated ones (min,
 * max) only for types whose values are ordered as signed numbers. A NaN among the bounds, a wrong length, a value that does not
 * fit its type, or a lower bound above the upper one make both unknown. int96 has no order that writers agree on. */
#include <stdlib.h>
#include <string.h>

#include "formats/parquet/convert_priv.h"
#include "formats/parquet/parquet.h"
#include "formats/parquet/parquet_priv.h"

/* First versions of two writers whose bounds of unsigned and text values are right. */
#define MR_FIXED_MINOR  10
#define CPP_FIXED_MINOR 3

/* One stored bound. */
struct stored {
    const uint8_t *data; /* NULL: none */
    int32_t bytes;
};

/* "parquet-mr version 1.9.0 (build ..)" is older than 1.10; other names and newer versions are not. */
static bool is_older(const char *created_by, const char *name, long minor)
{
    const size_t length = strlen(name);
    if (strncmp(created_by, name, length) != 0) {
        return false;
    }
    const char *const version = strstr(created_by + length, "version ");
    if (version == NULL) {
        return true;
    }
    char *end = NULL;
    const long major = strtol(version + 8, &end, 10);
    if (major != 1) {
        return major < 1;
    }
    return *end != '.' || strtol(end + 1, NULL, 10) < minor;
}

static bool is_signed_order(const struct gar_parquet_column *column)
{
    return column->min_max_signed;
}

/* Chooses the pair of fields to believe, or none. */
static void choose_fields(const struct gar_parquet_file *file,
                          const struct gar_parquet_column *column,
                          const struct gar_parquet_chunk *chunk, struct stored *min,
                          struct stored *max)
{
    *min = (struct stored){0};
    *max = (struct stored){0};
    if (column->physical == GAR_PARQUET_INT96 || column->unsupported != NULL ||
        column->type.id == GAR_NULL) {
        return;
    }
    const uint8_t order = file->column_orders[column->leaf];
    if (order != 0 && (chunk->min != NULL || chunk->max != NULL)) {
        *min = (struct stored){chunk->min, chunk->min_bytes};
        *max = (struct stored){chunk->max, chunk->max_bytes};
    } else if (is_signed_order(column)) {
        *min = (struct stored){chunk->legacy_min, chunk->legacy_min_bytes};
        *max = (struct stored){chunk->legacy_max, chunk->legacy_max_bytes};
    }
    const bool is_suspect = is_older(file->created_by, "parquet-mr", MR_FIXED_MINOR) ||
                            is_older(file->created_by, "parquet-cpp", CPP_FIXED_MINOR);
    if (is_suspect && !is_signed_order(column)) {
        *min = (struct stored){0};
        *max = (struct stored){0};
    }
}

/* The value, or false when the bytes are not one. Texts are copied. */
static bool load_fixed(const struct gar_parquet_column *column, struct stored from,
                       struct gar_value *out)
{
    GAR_ALIGNED(16) uint8_t raw[16] = {0};
    GAR_ALIGNED(16) uint8_t value[16] = {0};
    const int32_t width =
        column->physical == GAR_PARQUET_BOOLEAN
            ? 1
            : gar_parquet_physical_bytes((enum gar_parquet_physical)column->physical,
                                         column->fixed_bytes);
    if (from.bytes != width || width > (int32_t)sizeof raw || width == 0) {
        return false;
    }
    memcpy(raw, from.data, (size_t)width);
    const void *const in = raw;
    bool is_good = true;
    switch ((enum parquet_conversion)column->conversion) {
    case PARQUET_AS_IS:
    case PARQUET_TIME: memcpy(value, raw, (size_t)width); break;
    case PARQUET_BITS: value[0] = raw[0] & 1; break;
    case PARQUET_TO_INT8: is_good = gar_convert_i32_i8(in, 1, (void *)value); break;
    case PARQUET_TO_INT16: is_good = gar_convert_i32_i16(in, 1, (void *)value); break;
    case PARQUET_TO_UINT8: is_good = gar_convert_i32_u8(in, 1, (void *)value); break;
    case PARQUET_TO_UINT16: is_good = gar_convert_i32_u16(in, 1, (void *)value); break;
    case PARQUET_TO_UINT32: is_good = gar_convert_i64_u32(in, 1, (void *)value); break;
    case PARQUET_MS_TO_US: is_good = gar_convert_ms_us(in, 1, (void *)value); break;
    case PARQUET_I32_DECIMAL:
        is_good = gar_convert_i32_decimal(in, 1, column->type.precision, value);
        break;
    case PARQUET_I64_DECIMAL:
        is_good = gar_convert_i64_decimal(in, 1, column->type.precision, value);
        break;
    case PARQUET_F16: gar_convert_f16(in, 1, (void *)value); break;
    case PARQUET_BYTES_DECIMAL:
    case PARQUET_I96_TIMESTAMP:
    case PARQUET_TEXT:
    case PARQUET_BYTES:
    case PARQUET_ALL_NULL: return false;
    }
    if (!is_good) {
        return false;
    }
    switch ((enum gar_type_id)column->type.id) {
    case GAR_BOOL: out->boolean = value[0] != 0; break;
    case GAR_INT8: out->i64 = (int8_t)value[0]; break;
    case GAR_UINT8: out->u64 = value[0]; break;
    case GAR_INT16: out->i64 = *(const int16_t *)(const void *)value; break;
    case GAR_UINT16: out->u64 = *(const uint16_t *)(const void *)value; break;
    case GAR_INT32:
    case GAR_DATE: out->i64 = *(const int32_t *)(const void *)value; break;
    case GAR_UINT32: out->u64 = *(const uint32_t *)(const void *)value; break;
    case GAR_INT64:
    case GAR_TIME:
    case GAR_TIMESTAMP:
    case GAR_DURATION: out->i64 = *(const int64_t *)(const void *)value; break;
    case GAR_UINT64: out->u64 = *(const uint64_t *)(const void *)value; break;
    case GAR_FLOAT32: out->f64 = (double)*(const float *)(const void *)value; break;
    case GAR_FLOAT64: out->f64 = *(const double *)(const void *)value; break;
    case GAR_DECIMAL128: memcpy(&out->i128, value, sizeof out->i128); break;
    case GAR_NULL:
    case GAR_STRING:
    case GAR_BINARY:
    case GAR_LIST:
    case GAR_FIXED_LIST:
    case GAR_STRUCT:
    case GAR_MAP:
    case GAR_TYPE_ID_COUNT: return false;
    }
    return true;
}

/* is_valid stays false when there is no bound to believe. */
static enum gar_status load_value(const struct gar_parquet_column *column, struct stored from,
                                  struct gar_value *out, struct gar_error *err)
{
    *out = (struct gar_value){.type = column->type};
    if (from.data == NULL) {
        return GAR_OK;
    }
    if (column->conversion == PARQUET_BYTES_DECIMAL) {
        GAR_ALIGNED(16) gar_i128 value = 0;
        out->is_valid = from.bytes > 0 && gar_convert_decimal_bytes(from.data, 1, from.bytes,
                                                                    column->type.precision, &value);
        out->i128 = value;
        return GAR_OK;
    }
    if (gar_type_is_text(column->type)) {
        return gar_value_from_text(column->type, (const char *)from.data, from.bytes, out, err);
    }
    out->is_valid = load_fixed(column, from, out);
    return GAR_OK;
}

static void forget(struct gar_parquet_bounds *bounds)
{
    gar_value_destroy(&bounds->min);
    gar_value_destroy(&bounds->max);
    bounds->min = (struct gar_value){.type = bounds->min.type};
    bounds->max = (struct gar_value){.type = bounds->max.type};
    bounds->min_exact = false;
    bounds->max_exact = false;
}

static void check_floats(struct gar_parquet_bounds *bounds)
{
    const bool has_nan = (bounds->min.is_valid && bounds->min.f64 != bounds->min.f64) ||
                         (bounds->max.is_valid && bounds->max.f64 != bounds->max.f64);
    if (has_nan) {
        forget(bounds);
        return;
    }
    /* Writers do not agree which zero they store. */
    if (bounds->min.is_valid && bounds->min.f64 == 0.0) {
        bounds->min.f64 = -0.0;
    }
    if (bounds->max.is_valid && bounds->max.f64 == 0.0) {
        bounds->max.f64 = 0.0;
    }
}

enum gar_status gar_parquet_bounds_get(const struct gar_parquet_file *file, int64_t row_group,
                                       int64_t column_number, struct gar_parquet_bounds *out,
                                       struct gar_error *err)
{
    const struct gar_parquet_column *const column = &file->columns[column_number];
    struct gar_parquet_bounds bounds = {
        .min = {.type = column->type}, .max = {.type = column->type}, .null_count = -1};
    bounds.rows = file->row_groups[row_group].rows;
    if (column->unsupported != NULL) {
        *out = bounds;
        return GAR_OK;
    }
    const struct gar_parquet_chunk *const chunk = gar_parquet_chunk(file, row_group, column_number);
    struct stored min;
    struct stored max;
    choose_fields(file, column, chunk, &min, &max);
    GAR_TRY(load_value(column, min, &bounds.min, err));
    const enum gar_status status = load_value(column, max, &bounds.max, err);
    if (status < 0) {
        gar_value_destroy(&bounds.min);
        return status;
    }
    bounds.null_count = column->optional ? chunk->null_count : 0;
    const bool is_text = gar_type_is_text(column->type);
    bounds.min_exact =
        bounds.min.is_valid && (chunk->min_exact == 1 || (chunk->min_exact == -1 && !is_text));
    bounds.max_exact =
        bounds.max.is_valid && (chunk->max_exact == 1 || (chunk->max_exact == -1 && !is_text));
    bounds.may_have_nan = gar_type_is_float(column->type) && chunk->nan_count != 0;
    if (gar_type_is_float(column->type)) {
        check_floats(&bounds);
    }
    if (bounds.min.is_valid && bounds.max.is_valid &&
        gar_value_compare(&bounds.min, &bounds.max) > 0) {
        forget(&bounds);
    }
    *out = bounds;
    return GAR_OK;
}

void gar_parquet_bounds_destroy(struct gar_parquet_bounds *bounds)
{
    gar_value_destroy(&bounds->min);
    gar_value_destroy(&bounds->max);
    memset(bounds, 0, sizeof *bounds);
}

bool gar_parquet_bounds_exclude(const struct gar_parquet_bounds *bounds,
                                enum gar_parquet_compare op, const struct gar_value *literal)
{
    if (!literal->is_valid || bounds->null_count == bounds->rows) {
        return true;
    }
    if (!gar_type_equal(literal->type, bounds->min.type)) {
        return false;
    }
    if (gar_type_is_float(literal->type) && literal->f64 != literal->f64) {
        return op != GAR_PARQUET_NE; /* IEEE: nothing compares to NaN */
    }
    const bool has_min = bounds->min.is_valid;
    const bool has_max = bounds->max.is_valid;
    const int32_t to_min = has_min ? gar_value_compare(literal, &bounds->min) : 0;
    const int32_t to_max = has_max ? gar_value_compare(literal, &bounds->max) : 0;
    switch (op) {
    case GAR_PARQUET_EQ: return (has_min && to_min < 0) || (has_max && to_max > 0);
    case GAR_PARQUET_NE:
        return has_min && has_max && to_min == 0 && to_max == 0 && !bounds->may_have_nan;
    case GAR_PARQUET_LT: return has_min && to_min <= 0;
    case GAR_PARQUET_LE: return has_min && to_min < 0;
    case GAR_PARQUET_GT: return has_max && to_max >= 0;
    case GAR_PARQUET_GE: return has_max && to_max > 0;
    }
    return false;
}
