/* SPDX-License-Identifier: Apache-2.0 */
/* Dense values of a loaded page: through a dictionary, as they are, or converted to the column's type. */
#include <string.h>

#include "formats/parquet/bit_unpack_priv.h"
#include "formats/parquet/chunk_reader_priv.h"
#include "formats/parquet/convert_priv.h"
#include "formats/parquet/split_priv.h"

#define STACK_BYTES (PARQUET_BLOCK_VALUES * 16)

int32_t gar_parquet_dense_bytes(const struct gar_parquet_reader *reader)
{
    return reader->is_dictionary ? (int32_t)sizeof(uint32_t) : gar_type_width(reader->column->type);
}

static bool has_codes(const struct gar_parquet_reader *reader)
{
    return reader->state.encoding == PARQUET_PLAIN_DICTIONARY ||
           reader->state.encoding == PARQUET_RLE_DICTIONARY;
}

static enum gar_status fail_short(const struct gar_parquet_reader *reader, struct gar_error *err)
{
    return gar_parquet_page_fail(
        reader, err, "the page holds fewer values than its header says, or they are malformed");
}

static enum gar_status read_codes(struct gar_parquet_reader *reader, int64_t count, uint32_t *out,
                                  struct gar_error *err)
{
    uint32_t max = 0;
    if (!gar_rle_read(&reader->state.codes, count, out, &max)) {
        return fail_short(reader, err);
    }
    if (count > 0 && (int64_t)max >= reader->dictionary->length) {
        (void)gar_error_set(err, GAR_ERR_FORMAT,
                            "dictionary code %u is beyond the %lld entries of the dictionary", max,
                            (long long)reader->dictionary->length);
        gar_parquet_page_prefix(reader, err);
        return GAR_ERR_FORMAT;
    }
    return GAR_OK;
}

static void gather(const void *from, int32_t width, const uint32_t *codes, int64_t count,
                   uint8_t *out)
{
    switch (width) {
    case 1: {
        const uint8_t *const values = from;
        for (int64_t i = 0; i < count; i++) {
            out[i] = values[codes[i]];
        }
        break;
    }
    case 2: {
        const uint16_t *const values = from;
        for (int64_t i = 0; i < count; i++) {
            memcpy(out + 2 * i, &values[codes[i]], 2);
        }
        break;
    }
    case 4: {
        const uint32_t *const values = from;
        for (int64_t i = 0; i < count; i++) {
            memcpy(out + 4 * i, &values[codes[i]], 4);
        }
        break;
    }
    case 8: {
        const uint64_t *const values = from;
        for (int64_t i = 0; i < count; i++) {
            memcpy(out + 8 * i, &values[codes[i]], 8);
        }
        break;
    }
    default: { /* 16 */
        const uint8_t *const values = from;
        for (int64_t i = 0; i < count; i++) {
            memcpy(out + 16 * i, values + 16 * (int64_t)codes[i], 16);
        }
        break;
    }
    }
}

static enum gar_status decode_through_dictionary(struct gar_parquet_reader *reader, int64_t count,
                                                 uint8_t *out, struct gar_error *err)
{
    const int32_t width = gar_type_width(reader->column->type);
    while (count > 0) {
        const int64_t n = gar_min_i64(count, PARQUET_BLOCK_VALUES);
        GAR_TRY(read_codes(reader, n, reader->codes, err));
        gather(reader->dictionary->values, width, reader->codes, n, out);
        out += n * width;
        count -= n;
    }
    return GAR_OK;
}

static enum gar_status decode_bits(struct gar_parquet_reader *reader, int64_t count, uint8_t *out,
                                   int64_t at, struct gar_error *err)
{
    struct parquet_page_state *const state = &reader->state;
    if (state->encoding == PARQUET_RLE) {
        int64_t set = 0;
        return gar_rle_read_bits(&state->codes, count, out, at, &set) ? GAR_OK
                                                                      : fail_short(reader, err);
    }
    if (count > (state->end - state->next) * 8 - state->bit) {
        return fail_short(reader, err);
    }
    gar_bits_copy(out, at, state->next, state->bit, count);
    state->bit += count;
    return GAR_OK;
}

/* FIXED values in DELTA_BYTE_ARRAY: through views. */
static enum gar_status read_fixed_delta(struct gar_parquet_reader *reader, int64_t count,
                                        int32_t width, uint8_t *out, struct gar_error *err)
{
    struct gar_string_view views[128];
    while (count > 0) {
        const int64_t n = gar_min_i64(count, GAR_COUNT_OF(views));
        GAR_TRY(gar_parquet_decode_views(reader, n, views, err));
        for (int64_t i = 0; i < n; i++) {
            const uint8_t *const bytes =
                views[i].size <= GAR_VIEW_INLINE_BYTES
                    ? views[i].inlined
                    : reader->text.buffers[views[i].far.buffer]->data + views[i].far.offset;
            memcpy(out, bytes, (size_t)width);
            out += width;
        }
        count -= n;
    }
    return GAR_OK;
}

/* Physical values of a fixed width, one after the other. */
static enum gar_status read_fixed(struct gar_parquet_reader *reader, int64_t count, int32_t width,
                                  uint8_t *out, struct gar_error *err)
{
    struct parquet_page_state *const state = &reader->state;
    switch (state->encoding) {
    case PARQUET_PLAIN:
        if (width > 0 && count > (state->end - state->next) / width) {
            return fail_short(reader, err);
        }
        memcpy(out, state->next, (size_t)(count * width));
        state->next += count * width;
        return GAR_OK;
    case PARQUET_BYTE_STREAM_SPLIT:
        if (count > state->split_values - state->split_at) {
            return fail_short(reader, err);
        }
        gar_split_join(state->next, state->split_values, state->split_at, count, width, out);
        state->split_at += count;
        return GAR_OK;
    case PARQUET_DELTA_BINARY_PACKED: {
        void *const values = out; /* aligned: columns and blocks of 4 or 8 byte values */
        const bool is_good = width == 8 ? gar_delta_read_i64(&state->delta, count, values)
                                        : gar_delta_read_i32(&state->delta, count, values);
        return is_good ? GAR_OK : fail_short(reader, err);
    }
    default: return read_fixed_delta(reader, count, width, out, err); /* PARQUET_DELTA_BYTE_ARRAY */
    }
}

static enum gar_status fail_range(const struct gar_parquet_reader *reader, struct gar_error *err)
{
    char type[64];
    const bool is_int96 = reader->column->conversion == PARQUET_I96_TIMESTAMP;
    const enum gar_status status = is_int96 ? GAR_ERR_OVERFLOW : GAR_ERR_FORMAT;
    (void)gar_error_set(err, status, "the page has a value beyond the range of its type %s",
                        gar_type_text(reader->column->type, type, sizeof type));
    gar_parquet_page_prefix(reader, err);
    return status;
}

/* Decimals stored as texts of any length. */
static enum gar_status decode_text_decimals(struct gar_parquet_reader *reader, int64_t count,
                                            uint8_t *out, struct gar_error *err)
{
    struct gar_string_view views[128];
    while (count > 0) {
        const int64_t n = gar_min_i64(count, GAR_COUNT_OF(views));
        GAR_TRY(gar_parquet_decode_views(reader, n, views, err));
        for (int64_t i = 0; i < n; i++) {
            const uint8_t *const bytes =
                views[i].size <= GAR_VIEW_INLINE_BYTES
                    ? views[i].inlined
                    : reader->text.buffers[views[i].far.buffer]->data + views[i].far.offset;
            if (!gar_convert_decimal_bytes(bytes, 1, views[i].size, reader->column->type.precision,
                                           out)) {
                return fail_range(reader, err);
            }
            out += sizeof(gar_i128);
        }
        count -= n;
    }
    return GAR_OK;
}

static int64_t day_ticks(struct gar_type type)
{
    return type.unit == GAR_NANO ? INT64_C(86400000000000) : INT64_C(86400000000);
}

static bool convert(const struct gar_parquet_column *column, const void *in, int64_t count,
                    int32_t width, void *out)
{
    switch ((enum parquet_conversion)column->conversion) {
    case PARQUET_TO_INT8: return gar_convert_i32_i8(in, count, out);
    case PARQUET_TO_INT16: return gar_convert_i32_i16(in, count, out);
    case PARQUET_TO_UINT8: return gar_convert_i32_u8(in, count, out);
    case PARQUET_TO_UINT16: return gar_convert_i32_u16(in, count, out);
    case PARQUET_TO_UINT32: return gar_convert_i64_u32(in, count, out);
    case PARQUET_MS_TO_US: return gar_convert_ms_us(in, count, out);
    case PARQUET_TIME: return gar_convert_time(in, count, day_ticks(column->type), out);
    case PARQUET_I32_DECIMAL:
        return gar_convert_i32_decimal(in, count, column->type.precision, out);
    case PARQUET_I64_DECIMAL:
        return gar_convert_i64_decimal(in, count, column->type.precision, out);
    case PARQUET_BYTES_DECIMAL:
        return gar_convert_decimal_bytes(in, count, width, column->type.precision, out);
    case PARQUET_I96_TIMESTAMP: return gar_convert_i96(in, count, out);
    case PARQUET_F16: gar_convert_f16(in, count, out); return true;
    case PARQUET_AS_IS:
    case PARQUET_BITS:
    case PARQUET_TEXT:
    case PARQUET_BYTES:
    case PARQUET_ALL_NULL: break;
    }
    return false;
}

static enum gar_status decode_converted(struct gar_parquet_reader *reader, int64_t count,
                                        uint8_t *out, struct gar_error *err)
{
    const int32_t in_width = gar_parquet_physical_bytes(
        (enum gar_parquet_physical)reader->column->physical, reader->column->fixed_bytes);
    const int32_t out_width = gar_type_width(reader->column->type);
    GAR_ALIGNED(64) uint8_t stack[STACK_BYTES];
    const int64_t step = in_width == 0 ? PARQUET_BLOCK_VALUES
                                       : gar_min_i64(PARQUET_BLOCK_VALUES, STACK_BYTES / in_width);
    if (step == 0) {
        return fail_range(reader, err);
    }
    while (count > 0) {
        const int64_t n = gar_min_i64(count, step);
        const struct parquet_page_state *const state = &reader->state;
        /* Aligned plain values need no copy. */
        const bool in_place = state->encoding == PARQUET_PLAIN && ((uintptr_t)state->next & 7) == 0;
        if (in_place) {
            if (in_width > 0 && n > (state->end - state->next) / in_width) {
                return fail_short(reader, err);
            }
        } else {
            GAR_TRY(read_fixed(reader, n, in_width, stack, err));
        }
        if (!convert(reader->column, in_place ? state->next : stack, n, in_width, out)) {
            return fail_range(reader, err);
        }
        if (in_place) {
            reader->state.next += n * in_width;
        }
        out += n * out_width;
        count -= n;
    }
    return GAR_OK;
}

enum gar_status gar_parquet_decode_dense(struct gar_parquet_reader *reader, int64_t count,
                                         void *out, int64_t at, struct gar_error *err)
{
    if (has_codes(reader)) {
        return reader->is_dictionary ? read_codes(reader, count, out, err)
                                     : decode_through_dictionary(reader, count, out, err);
    }
    const int32_t width = gar_parquet_physical_bytes(
        (enum gar_parquet_physical)reader->column->physical, reader->column->fixed_bytes);
    switch ((enum parquet_conversion)reader->column->conversion) {
    case PARQUET_BITS: return decode_bits(reader, count, out, at, err);
    case PARQUET_AS_IS: return read_fixed(reader, count, width, out, err);
    case PARQUET_TEXT:
    case PARQUET_BYTES: return gar_parquet_decode_views(reader, count, out, err);
    case PARQUET_ALL_NULL:
        return gar_parquet_page_fail(reader, err, "a column of nulls has a value");
    case PARQUET_BYTES_DECIMAL:
        if (reader->column->physical == GAR_PARQUET_BYTE_ARRAY) {
            return decode_text_decimals(reader, count, out, err);
        }
        return decode_converted(reader, count, out, err);
    case PARQUET_TO_INT8:
    case PARQUET_TO_INT16:
    case PARQUET_TO_UINT8:
    case PARQUET_TO_UINT16:
    case PARQUET_TO_UINT32:
    case PARQUET_MS_TO_US:
    case PARQUET_TIME:
    case PARQUET_I32_DECIMAL:
    case PARQUET_I64_DECIMAL:
    case PARQUET_I96_TIMESTAMP:
    case PARQUET_F16: return decode_converted(reader, count, out, err);
    }
    return gar_error_set(err, GAR_ERR_INTERNAL, "a Parquet conversion without a decoder");
}

enum gar_status gar_parquet_skip_dense(struct gar_parquet_reader *reader, int64_t count,
                                       struct gar_error *err)
{
    struct parquet_page_state *const state = &reader->state;
    if (has_codes(reader) || state->encoding == PARQUET_RLE) {
        return gar_rle_skip(&state->codes, count) ? GAR_OK : fail_short(reader, err);
    }
    if (state->encoding == PARQUET_DELTA_BINARY_PACKED) {
        return gar_delta_skip(&state->delta, count) ? GAR_OK : fail_short(reader, err);
    }
    if (state->encoding == PARQUET_BYTE_STREAM_SPLIT) {
        state->split_at += gar_min_i64(count, state->split_values - state->split_at);
        return GAR_OK;
    }
    if (reader->column->conversion == PARQUET_BITS) {
        if (count > (state->end - state->next) * 8 - state->bit) {
            return fail_short(reader, err);
        }
        state->bit += count;
        return GAR_OK;
    }
    const int32_t width = gar_parquet_physical_bytes(
        (enum gar_parquet_physical)reader->column->physical, reader->column->fixed_bytes);
    if (reader->column->physical == GAR_PARQUET_BYTE_ARRAY ||
        state->encoding == PARQUET_DELTA_BYTE_ARRAY) {
        return gar_parquet_skip_views(reader, count, err);
    }
    if (width > 0 && count > (state->end - state->next) / width) {
        return fail_short(reader, err);
    }
    state->next += count * width;
    return GAR_OK;
}
