/* SPDX-License-Identifier: Apache-2.0 */
/* The feed of the aggregate kernels: columns of any type and encoding as short vectors of one of
 * four forms. */
#include <math.h>

#include "base/alloc.h"
#include "base/int128.h"
#include "kernels/aggregate_priv.h"

void gar_feed_init(struct gar_feed *feed, const struct gar_column *column, const uint32_t *groups,
                   int64_t rows, enum gar_feed_form form)
{
    feed->column = column;
    feed->flat = column->encoding == GAR_FLAT ? column : column->dictionary;
    feed->row_groups = groups;
    feed->form = form;
    feed->rows = rows;
    feed->next = 0;
    feed->count = 0;
    feed->values = NULL;
    feed->groups = NULL;
    if (column->encoding == GAR_CONSTANT && gar_column_is_null(column->dictionary, 0)) {
        feed->next = rows;
    }
    if (column->type.id == GAR_NULL) {
        feed->next = rows;
    }
}

/* Rows [first, first + count) of the column that are not null, as row numbers less `first`. */
static int64_t list_valid(const struct gar_column *column, int64_t first, int64_t count,
                          uint32_t *out)
{
    int64_t n = 0;
    for (int64_t at = 0; at < count; at += 64) {
        uint64_t bits = gar_bits_load(column->validity, column->validity_offset + first + at,
                                      gar_min_i64(count - at, 64));
        while (bits != 0) {
            out[n++] = (uint32_t)(at + gar_ctz64(bits));
            bits &= bits - 1;
        }
    }
    return n;
}

/* Fill places (rows of flat) and groups of one step; *out_dense tells that places are base, base +
 * 1, ... and were not
 * written. */
static int64_t step_places(struct gar_feed *feed, int64_t *out_base, bool *out_dense)
{
    const struct gar_column *column = feed->column;
    const int64_t first = feed->next;
    int64_t count = gar_min_i64(feed->rows - first, GAR_FEED_ROWS);
    feed->next = first + count;
    const uint32_t *groups = feed->row_groups != NULL ? feed->row_groups + first : NULL;
    *out_dense = false;
    *out_base = first;
    if (column->encoding == GAR_CONSTANT) {
        memset(feed->places, 0, (size_t)count * sizeof feed->places[0]);
        feed->groups = groups;
        return count;
    }
    const bool has_nulls = column->validity != NULL;
    if (has_nulls) {
        count = list_valid(column, first, count, feed->places);
        if (groups != NULL) {
            for (int64_t i = 0; i < count; i++) {
                feed->valid_groups[i] = groups[feed->places[i]];
            }
            groups = feed->valid_groups;
        }
    }
    feed->groups = groups;
    if (column->encoding == GAR_DICTIONARY) {
        const uint32_t *codes = (const uint32_t *)column->values + first;
        if (has_nulls) {
            for (int64_t i = 0; i < count; i++) {
                feed->places[i] = codes[feed->places[i]];
            }
        } else {
            memcpy(feed->places, codes, (size_t)count * sizeof codes[0]);
        }
    } else if (has_nulls) {
        for (int64_t i = 0; i < count; i++) {
            feed->places[i] = (uint32_t)(feed->places[i] + (uint32_t)first);
        }
    } else {
        *out_dense = true;
    }
    return count;
}

bool gar_feed_next_places(struct gar_feed *feed)
{
    while (feed->next < feed->rows) {
        int64_t base = 0;
        bool is_dense = false;
        feed->count = step_places(feed, &base, &is_dense);
        if (is_dense) {
            for (int64_t i = 0; i < feed->count; i++) {
                feed->places[i] = (uint32_t)(base + i);
            }
        }
        if (feed->count > 0) {
            return true;
        }
    }
    return false;
}

/* out[i] = (to)from[place of i], dense from base or through places. */
#define CONVERT(from_type, to_type)                                    \
    do {                                                               \
        const from_type *from = (const from_type *)feed->flat->values; \
        to_type *to = (to_type *)(void *)feed->scratch;                \
        if (is_dense) {                                                \
            from += base;                                              \
            for (int64_t i = 0; i < count; i++) {                      \
                to[i] = (to_type)from[i];                              \
            }                                                          \
        } else {                                                       \
            for (int64_t i = 0; i < count; i++) {                      \
                to[i] = (to_type)from[feed->places[i]];                \
            }                                                          \
        }                                                              \
    } while (0)

static void convert_bool_i64(struct gar_feed *feed, int64_t base, bool is_dense, int64_t count)
{
    const uint8_t *bits = (const uint8_t *)feed->flat->values;
    const int64_t offset = feed->flat->values_offset;
    int64_t *to = (int64_t *)(void *)feed->scratch;
    for (int64_t i = 0; i < count; i++) {
        to[i] = gar_bit_get(bits, offset + (is_dense ? base + i : (int64_t)feed->places[i]));
    }
}

static void convert_i64(struct gar_feed *feed, int64_t base, bool is_dense, int64_t count)
{
    switch ((enum gar_type_id)feed->flat->type.id) {
    case GAR_BOOL: convert_bool_i64(feed, base, is_dense, count); break;
    case GAR_INT8: CONVERT(int8_t, int64_t); break;
    case GAR_INT16: CONVERT(int16_t, int64_t); break;
    case GAR_INT32:
    case GAR_DATE: CONVERT(int32_t, int64_t); break;
    case GAR_UINT8: CONVERT(uint8_t, int64_t); break;
    case GAR_UINT16: CONVERT(uint16_t, int64_t); break;
    case GAR_UINT32: CONVERT(uint32_t, int64_t); break;
    case GAR_DECIMAL128: CONVERT(gar_i128, int64_t); break;
    case GAR_NULL:
    case GAR_INT64:
    case GAR_UINT64:
    case GAR_FLOAT32:
    case GAR_FLOAT64:
    case GAR_STRING:
    case GAR_BINARY:
    case GAR_TIME:
    case GAR_TIMESTAMP:
    case GAR_DURATION:
    case GAR_LIST:
    case GAR_FIXED_LIST:
    case GAR_STRUCT:
    case GAR_MAP:
    case GAR_TYPE_ID_COUNT: CONVERT(int64_t, int64_t); break;
    }
}

static void convert_u64(struct gar_feed *feed, int64_t base, bool is_dense, int64_t count)
{
    switch (gar_type_width(feed->flat->type)) {
    case 1: CONVERT(uint8_t, uint64_t); break;
    case 2: CONVERT(uint16_t, uint64_t); break;
    case 4: CONVERT(uint32_t, uint64_t); break;
    default: CONVERT(uint64_t, uint64_t); break;
    }
}

static void convert_decimal_f64(struct gar_feed *feed, int64_t base, bool is_dense, int64_t count)
{
    const gar_i128 *from = (const gar_i128 *)feed->flat->values;
    double *to = (double *)(void *)feed->scratch;
    const int32_t scale = feed->flat->type.scale;
    for (int64_t i = 0; i < count; i++) {
        to[i] = gar_decimal_to_double(from[is_dense ? base + i : (int64_t)feed->places[i]], scale);
    }
}

static void convert_f64(struct gar_feed *feed, int64_t base, bool is_dense, int64_t count)
{
    const enum gar_type_id id = (enum gar_type_id)feed->flat->type.id;
    if (id == GAR_FLOAT32) {
        CONVERT(float, double);
    } else if (id == GAR_FLOAT64) {
        CONVERT(double, double);
    } else if (id == GAR_UINT64) {
        CONVERT(uint64_t, double);
    } else if (id == GAR_DECIMAL128) {
        convert_decimal_f64(feed, base, is_dense, count);
    } else {
        convert_i64(feed, base, is_dense, count);
        const int64_t *from = (const int64_t *)(const void *)feed->scratch;
        double *to = (double *)(void *)feed->scratch;
        for (int64_t i = 0; i < count; i++) {
            int64_t v;
            memcpy(&v, from + i, sizeof v);
            to[i] = (double)v;
        }
    }
}

/* Are the column's values already in the form? */
static bool is_direct(enum gar_feed_form form, struct gar_type type)
{
    const int32_t width = gar_type_width(type);
    switch (form) {
    case GAR_FEED_I64:
    case GAR_FEED_U64: return width == 8;
    case GAR_FEED_I128: return width == 16;
    case GAR_FEED_F64: return type.id == GAR_FLOAT64;
    }
    return false;
}

bool gar_feed_next(struct gar_feed *feed)
{
    while (feed->next < feed->rows) {
        int64_t base = 0;
        bool is_dense = false;
        const int64_t count = step_places(feed, &base, &is_dense);
        feed->count = count;
        if (count == 0) {
            continue;
        }
        feed->values = feed->scratch;
        if (is_dense && is_direct(feed->form, feed->flat->type)) {
            feed->values =
                (const uint8_t *)feed->flat->values + base * gar_type_width(feed->flat->type);
            return true;
        }
        switch (feed->form) {
        case GAR_FEED_I64: convert_i64(feed, base, is_dense, count); break;
        case GAR_FEED_U64: convert_u64(feed, base, is_dense, count); break;
        case GAR_FEED_I128: CONVERT(gar_i128, gar_i128); break;
        case GAR_FEED_F64: convert_f64(feed, base, is_dense, count); break;
        }
        return true;
    }
    return false;
}

uint64_t *gar_aggregate_used_codes(const struct gar_column *column, int64_t rows)
{
    uint64_t *used =
        (uint64_t *)gar_calloc((column->dictionary->length + 63) / 64, (int64_t)sizeof(uint64_t));
    if (used == NULL) {
        return NULL;
    }
    const uint32_t *codes = (const uint32_t *)column->values;
    for (int64_t i = 0; i < rows; i++) {
        if (column->validity == NULL ||
            gar_bit_get(column->validity, column->validity_offset + i)) {
            used[codes[i] >> 6] |= UINT64_C(1) << (codes[i] & 63);
        }
    }
    return used;
}
