/* SPDX-License-Identifier: Apache-2.0 */
/* From a leaf of the Parquet schema to a type, a conversion of its values, and what may be believed about its statistics.
 *
 * An annotation that does not fit its physical type, or that is unknown, is left aside: the physical values are given as they
 * are. A timestamp annotated only in the old way (ConvertedType) is local, without a zone, as all readers take it. */
#include <stdio.h>
#include <string.h>

#include "formats/parquet/parquet.h"
#include "formats/parquet/parquet_priv.h"

#define INT32_DECIMAL_DIGITS 9
#define INT64_DECIMAL_DIGITS 18

int32_t gar_parquet_physical_bytes(enum gar_parquet_physical physical, int32_t fixed_bytes)
{
    switch (physical) {
    case GAR_PARQUET_INT32:
    case GAR_PARQUET_FLOAT: return 4;
    case GAR_PARQUET_INT64:
    case GAR_PARQUET_DOUBLE: return 8;
    case GAR_PARQUET_INT96: return 12;
    case GAR_PARQUET_FIXED: return fixed_bytes;
    case GAR_PARQUET_BOOLEAN:
    case GAR_PARQUET_BYTE_ARRAY: return 0;
    }
    return 0;
}

const char *gar_parquet_physical_name(int32_t physical)
{
    static const char *const names[] = {"BOOLEAN", "INT32",  "INT64",      "INT96",
                                        "FLOAT",   "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"};
    return physical >= 0 && physical < GAR_COUNT_OF(names) ? names[physical] : "unknown";
}

const char *gar_parquet_encoding_name(int32_t encoding)
{
    static const char *const names[] = {"PLAIN",
                                        "1",
                                        "PLAIN_DICTIONARY",
                                        "RLE",
                                        "BIT_PACKED",
                                        "DELTA_BINARY_PACKED",
                                        "DELTA_LENGTH_BYTE_ARRAY",
                                        "DELTA_BYTE_ARRAY",
                                        "RLE_DICTIONARY",
                                        "BYTE_STREAM_SPLIT"};
    return encoding >= 0 && encoding < GAR_COUNT_OF(names) ? names[encoding] : "unknown";
}

const char *gar_parquet_codec_name(int32_t codec)
{
    static const char *const names[] = {"none",   "snappy", "gzip", "lzo",
                                        "brotli", "lz4",    "zstd", "lz4_raw"};
    return codec >= 0 && codec < GAR_COUNT_OF(names) ? names[codec] : "unknown";
}

static void set(struct gar_parquet_column *out, struct gar_type type,
                enum parquet_conversion conversion)
{
    out->type = type;
    out->conversion = (uint8_t)conversion;
}

/* The physical type alone. */
static void map_physical(const struct parquet_element *element, struct gar_parquet_column *out)
{
    switch (element->physical) {
    case GAR_PARQUET_BOOLEAN: set(out, gar_type_of(GAR_BOOL), PARQUET_BITS); break;
    case GAR_PARQUET_INT32: set(out, gar_type_of(GAR_INT32), PARQUET_AS_IS); break;
    case GAR_PARQUET_INT64: set(out, gar_type_of(GAR_INT64), PARQUET_AS_IS); break;
    case GAR_PARQUET_INT96:
        set(out, gar_type_timestamp(GAR_MICRO, NULL), PARQUET_I96_TIMESTAMP);
        out->min_max_signed = false;
        break;
    case GAR_PARQUET_FLOAT: set(out, gar_type_of(GAR_FLOAT32), PARQUET_AS_IS); break;
    case GAR_PARQUET_DOUBLE: set(out, gar_type_of(GAR_FLOAT64), PARQUET_AS_IS); break;
    default:
        set(out, gar_type_of(GAR_BINARY), PARQUET_BYTES);
        out->min_max_signed = false;
        break;
    }
}

/* Old annotations in the words of the new ones; logical stays NONE where there is none. */
static struct parquet_element modernised(const struct parquet_element *element)
{
    struct parquet_element e = *element;
    if (e.logical != PARQUET_LOGICAL_NONE) {
        return e;
    }
    e.utc = false;
    switch (e.converted) {
    case PARQUET_CONVERTED_UTF8: e.logical = PARQUET_LOGICAL_STRING; break;
    case PARQUET_CONVERTED_ENUM: e.logical = PARQUET_LOGICAL_ENUM; break;
    case PARQUET_CONVERTED_JSON: e.logical = PARQUET_LOGICAL_JSON; break;
    case PARQUET_CONVERTED_DECIMAL: e.logical = PARQUET_LOGICAL_DECIMAL; break;
    case PARQUET_CONVERTED_DATE: e.logical = PARQUET_LOGICAL_DATE; break;
    case PARQUET_CONVERTED_TIME_MILLIS:
    case PARQUET_CONVERTED_TIME_MICROS:
        e.logical = PARQUET_LOGICAL_TIME;
        e.unit = e.converted == PARQUET_CONVERTED_TIME_MILLIS ? GAR_MILLI : GAR_MICRO;
        break;
    case PARQUET_CONVERTED_TIMESTAMP_MILLIS:
    case PARQUET_CONVERTED_TIMESTAMP_MICROS:
        e.logical = PARQUET_LOGICAL_TIMESTAMP;
        e.unit = e.converted == PARQUET_CONVERTED_TIMESTAMP_MILLIS ? GAR_MILLI : GAR_MICRO;
        break;
    default:
        if (e.converted >= PARQUET_CONVERTED_UINT_8 && e.converted <= PARQUET_CONVERTED_INT_64) {
            e.logical = PARQUET_LOGICAL_INTEGER;
            e.integer_signed = e.converted >= PARQUET_CONVERTED_INT_8;
            e.integer_bits = 8 << ((e.converted - PARQUET_CONVERTED_UINT_8) % 4);
        }
        break;
    }
    return e;
}

static void map_integer(const struct parquet_element *e, struct gar_parquet_column *out)
{
    if (e->physical == GAR_PARQUET_INT64 && e->integer_bits == 64) {
        set(out, gar_type_of(e->integer_signed ? GAR_INT64 : GAR_UINT64), PARQUET_AS_IS);
    } else if (e->physical == GAR_PARQUET_INT32 && e->integer_bits == 32) {
        set(out, gar_type_of(e->integer_signed ? GAR_INT32 : GAR_UINT32), PARQUET_AS_IS);
    } else if (e->physical == GAR_PARQUET_INT32 && e->integer_bits == 16) {
        set(out, gar_type_of(e->integer_signed ? GAR_INT16 : GAR_UINT16),
            e->integer_signed ? PARQUET_TO_INT16 : PARQUET_TO_UINT16);
    } else if (e->physical == GAR_PARQUET_INT32 && e->integer_bits == 8) {
        set(out, gar_type_of(e->integer_signed ? GAR_INT8 : GAR_UINT8),
            e->integer_signed ? PARQUET_TO_INT8 : PARQUET_TO_UINT8);
    } else {
        return;
    }
    out->min_max_signed = e->integer_signed;
}

static enum gar_status map_decimal(const struct parquet_element *e, struct gar_arena *arena,
                                   struct gar_parquet_column *out, struct gar_error *err)
{
    const bool fits_type = e->precision >= 1 && e->precision <= GAR_DECIMAL_PRECISION_MAX &&
                           e->scale >= 0 && e->scale <= e->precision;
    if (!fits_type) {
        char text[64];
        const int32_t used = snprintf(text, sizeof text, "decimal(%d, %d)", e->precision, e->scale);
        out->unsupported = gar_arena_strndup(arena, text, used);
        out->type = gar_type_of(GAR_NULL);
        return out->unsupported == NULL ? gar_error_nomem(err, used) : GAR_OK;
    }
    const struct gar_type type = gar_type_decimal(e->precision, e->scale);
    if (e->physical == GAR_PARQUET_INT32 && e->precision <= INT32_DECIMAL_DIGITS) {
        set(out, type, PARQUET_I32_DECIMAL);
    } else if (e->physical == GAR_PARQUET_INT64 && e->precision <= INT64_DECIMAL_DIGITS) {
        set(out, type, PARQUET_I64_DECIMAL);
    } else if (e->physical == GAR_PARQUET_BYTE_ARRAY || e->physical == GAR_PARQUET_FIXED) {
        set(out, type, PARQUET_BYTES_DECIMAL);
        out->min_max_signed = false;
    }
    return GAR_OK;
}

static enum gar_status map_logical(const struct parquet_element *e, struct gar_arena *arena,
                                   struct gar_parquet_column *out, struct gar_error *err)
{
    const bool is_int32 = e->physical == GAR_PARQUET_INT32;
    const bool is_int64 = e->physical == GAR_PARQUET_INT64;
    const bool is_bytes = e->physical == GAR_PARQUET_BYTE_ARRAY;
    switch (e->logical) {
    case PARQUET_LOGICAL_STRING:
    case PARQUET_LOGICAL_ENUM:
    case PARQUET_LOGICAL_JSON:
        if (is_bytes) {
            set(out, gar_type_of(GAR_STRING), PARQUET_TEXT);
        }
        break;
    case PARQUET_LOGICAL_DECIMAL: return map_decimal(e, arena, out, err);
    case PARQUET_LOGICAL_DATE:
        if (is_int32) {
            set(out, gar_type_of(GAR_DATE), PARQUET_AS_IS);
        }
        break;
    case PARQUET_LOGICAL_TIME:
        if (is_int32 && e->unit == GAR_MILLI) {
            set(out, gar_type_with_unit(GAR_TIME, GAR_MICRO), PARQUET_MS_TO_US);
        } else if (is_int64 && (e->unit == GAR_MICRO || e->unit == GAR_NANO)) {
            set(out, gar_type_with_unit(GAR_TIME, (enum gar_time_unit)e->unit), PARQUET_TIME);
        }
        break;
    case PARQUET_LOGICAL_TIMESTAMP:
        if (is_int64 && e->unit >= 0) {
            const char *zone = NULL;
            if (e->utc) {
                zone = gar_zone_intern("UTC", 3, err);
                if (zone == NULL) {
                    return GAR_ERR_NOMEM;
                }
            }
            set(out, gar_type_timestamp((enum gar_time_unit)e->unit, zone), PARQUET_AS_IS);
        }
        break;
    case PARQUET_LOGICAL_INTEGER: map_integer(e, out); break;
    case PARQUET_LOGICAL_NULL: set(out, gar_type_of(GAR_NULL), PARQUET_ALL_NULL); break;
    case PARQUET_LOGICAL_FLOAT16:
        if (e->physical == GAR_PARQUET_FIXED && e->fixed_bytes == 2) {
            set(out, gar_type_of(GAR_FLOAT32), PARQUET_F16);
        }
        break;
    default: break;
    }
    return GAR_OK;
}

/* Restores what Parquet's own annotations do not say. */
static enum gar_status apply_fact(const struct parquet_element *e,
                                  const struct parquet_arrow_fact *fact,
                                  struct gar_parquet_column *out, struct gar_error *err)
{
    const bool is_plain = e->logical == PARQUET_LOGICAL_NONE;
    switch (fact->kind) {
    case PARQUET_ARROW_UTF8:
    case PARQUET_ARROW_LARGE_UTF8:
    case PARQUET_ARROW_UTF8_VIEW:
        if (is_plain && e->physical == GAR_PARQUET_BYTE_ARRAY) {
            set(out, gar_type_of(GAR_STRING), PARQUET_TEXT);
        }
        break;
    case PARQUET_ARROW_INT:
        if (is_plain && e->physical == GAR_PARQUET_INT64 && fact->bits == 32 && !fact->is_signed) {
            set(out, gar_type_of(GAR_UINT32), PARQUET_TO_UINT32);
        }
        break;
    case PARQUET_ARROW_DURATION:
        if (is_plain && e->physical == GAR_PARQUET_INT64 && fact->unit >= 0) {
            set(out, gar_type_with_unit(GAR_DURATION, (enum gar_time_unit)fact->unit),
                PARQUET_AS_IS);
        }
        break;
    case PARQUET_ARROW_TIMESTAMP:
        if (out->type.id == GAR_TIMESTAMP && fact->zone != NULL && fact->zone_bytes > 0) {
            const char *const zone = gar_zone_intern(fact->zone, fact->zone_bytes, err);
            if (zone == NULL) {
                return GAR_ERR_VALUE;
            }
            out->type.zone = zone;
        }
        break;
    default: break;
    }
    return GAR_OK;
}

enum gar_status gar_parquet_map_leaf(const struct parquet_element *element,
                                     const struct parquet_arrow_fact *fact, struct gar_arena *arena,
                                     struct gar_parquet_column *out, struct gar_error *err)
{
    out->min_max_signed = true;
    map_physical(element, out);
    const struct parquet_element e = modernised(element);
    GAR_TRY(map_logical(&e, arena, out, err));
    if (out->unsupported == NULL) {
        GAR_TRY(apply_fact(&e, fact, out, err));
    }
    return GAR_OK;
}
