/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the Parquet format share: the format's numbers, the footer's store, schema mapping. */
#ifndef GAR_FORMATS_PARQUET_PARQUET_PRIV_H
#define GAR_FORMATS_PARQUET_PARQUET_PRIV_H

#include "base/arena.h"
#include "formats/parquet/parquet.h"
#include "formats/parquet/thrift_priv.h"

enum parquet_encoding {
    PARQUET_PLAIN = 0,
    PARQUET_PLAIN_DICTIONARY = 2,
    PARQUET_RLE = 3,
    PARQUET_BIT_PACKED = 4,
    PARQUET_DELTA_BINARY_PACKED = 5,
    PARQUET_DELTA_LENGTH_BYTE_ARRAY = 6,
    PARQUET_DELTA_BYTE_ARRAY = 7,
    PARQUET_RLE_DICTIONARY = 8,
    PARQUET_BYTE_STREAM_SPLIT = 9,
};

enum parquet_page_kind {
    PARQUET_PAGE_DATA = 0,
    PARQUET_PAGE_INDEX = 1,
    PARQUET_PAGE_DICTIONARY = 2,
    PARQUET_PAGE_DATA_V2 = 3,
};

enum parquet_repetition { PARQUET_REQUIRED = 0, PARQUET_OPTIONAL = 1, PARQUET_REPEATED = 2 };

/* Numbers of the LogicalType union. */
enum parquet_logical {
    PARQUET_LOGICAL_NONE = 0,
    PARQUET_LOGICAL_STRING = 1,
    PARQUET_LOGICAL_MAP = 2,
    PARQUET_LOGICAL_LIST = 3,
    PARQUET_LOGICAL_ENUM = 4,
    PARQUET_LOGICAL_DECIMAL = 5,
    PARQUET_LOGICAL_DATE = 6,
    PARQUET_LOGICAL_TIME = 7,
    PARQUET_LOGICAL_TIMESTAMP = 8,
    PARQUET_LOGICAL_INTEGER = 10,
    PARQUET_LOGICAL_NULL = 11,
    PARQUET_LOGICAL_JSON = 12,
    PARQUET_LOGICAL_BSON = 13,
    PARQUET_LOGICAL_UUID = 14,
    PARQUET_LOGICAL_FLOAT16 = 15,
};

/* ConvertedType, the older annotation. */
enum parquet_converted {
    PARQUET_CONVERTED_NONE = -1,
    PARQUET_CONVERTED_UTF8 = 0,
    PARQUET_CONVERTED_MAP = 1,
    PARQUET_CONVERTED_MAP_KEY_VALUE = 2,
    PARQUET_CONVERTED_LIST = 3,
    PARQUET_CONVERTED_ENUM = 4,
    PARQUET_CONVERTED_DECIMAL = 5,
    PARQUET_CONVERTED_DATE = 6,
    PARQUET_CONVERTED_TIME_MILLIS = 7,
    PARQUET_CONVERTED_TIME_MICROS = 8,
    PARQUET_CONVERTED_TIMESTAMP_MILLIS = 9,
    PARQUET_CONVERTED_TIMESTAMP_MICROS = 10,
    PARQUET_CONVERTED_UINT_8 = 11,
    PARQUET_CONVERTED_UINT_16 = 12,
    PARQUET_CONVERTED_UINT_32 = 13,
    PARQUET_CONVERTED_UINT_64 = 14,
    PARQUET_CONVERTED_INT_8 = 15,
    PARQUET_CONVERTED_INT_16 = 16,
    PARQUET_CONVERTED_INT_32 = 17,
    PARQUET_CONVERTED_INT_64 = 18,
    PARQUET_CONVERTED_JSON = 19,
    PARQUET_CONVERTED_BSON = 20,
    PARQUET_CONVERTED_INTERVAL = 21,
};

/* How physical values become values of the column's type. */
enum parquet_conversion {
    PARQUET_AS_IS,   /* same bytes: int32, int64, float, double */
    PARQUET_BITS,    /* boolean */
    PARQUET_TO_INT8, /* from int32, range checked */
    PARQUET_TO_INT16,
    PARQUET_TO_UINT8,
    PARQUET_TO_UINT16,
    PARQUET_TO_UINT32,   /* from int64, range checked */
    PARQUET_MS_TO_US,    /* time of int32 milliseconds, range checked */
    PARQUET_TIME,        /* time of int64 in its unit, range checked */
    PARQUET_I32_DECIMAL, /* to 16 bytes, precision checked */
    PARQUET_I64_DECIMAL,
    PARQUET_BYTES_DECIMAL, /* big-endian two's complement, fixed or variable */
    PARQUET_I96_TIMESTAMP, /* to microseconds */
    PARQUET_F16,           /* to float32 */
    PARQUET_TEXT,          /* bytes to views, UTF-8 checked */
    PARQUET_BYTES,         /* bytes to views */
    PARQUET_ALL_NULL,      /* the null type: every level must be null */
};

/* One element of the schema as the footer has it. */
struct parquet_element {
    const char *name;
    int32_t physical; /* -1: a group */
    int32_t fixed_bytes;
    int32_t repetition; /* -1: not given */
    int32_t child_count;
    int32_t converted; /* enum parquet_converted */
    int32_t logical;   /* enum parquet_logical, or an unknown number */
    int32_t scale;
    int32_t precision;
    int32_t field_id;
    int32_t unit; /* enum gar_time_unit of TIME and TIMESTAMP; -1 unknown */
    int32_t integer_bits;
    bool integer_signed;
    bool utc;
};

/* What the embedded Arrow schema says about one top-level field. A zeroed struct says nothing. */
struct parquet_arrow_fact {
    const char *name;
    int32_t kind; /* Arrow's number of the type in its metadata, 0: none */
    int32_t bits; /* integers */
    bool is_signed;
    int32_t unit;     /* enum gar_time_unit; timestamps and durations; -1 unknown */
    const char *zone; /* of this arena, or NULL */
    int64_t zone_bytes;
    char *metadata; /* Arrow's binary key-value form, of this arena, or NULL */
    int64_t metadata_bytes;
};

enum {
    PARQUET_ARROW_BINARY = 4,
    PARQUET_ARROW_UTF8 = 5,
    PARQUET_ARROW_INT = 2,
    PARQUET_ARROW_TIMESTAMP = 10,
    PARQUET_ARROW_FIXED_SIZE_BINARY = 15,
    PARQUET_ARROW_DURATION = 18,
    PARQUET_ARROW_LARGE_UTF8 = 20,
    PARQUET_ARROW_UTF8_VIEW = 24
};

/* Fills type, conversion, unsupported and order facts of a leaf column. arena gets texts. */
GAR_MUST_USE enum gar_status gar_parquet_map_leaf(const struct parquet_element *element,
                                                  const struct parquet_arrow_fact *fact,
                                                  struct gar_arena *arena,
                                                  struct gar_parquet_column *out,
                                                  struct gar_error *err);

/* Reads the value of the "ARROW:schema" key. Anything malformed gives no facts: *out_count 0. Facts are of this arena.
 * Errors: GAR_ERR_NOMEM. */
GAR_MUST_USE enum gar_status gar_parquet_arrow_facts(const char *base64, int64_t bytes,
                                                     struct gar_arena *arena,
                                                     struct parquet_arrow_fact **out,
                                                     int64_t *out_count, struct gar_error *err);

/* Bytes of a physical value, 0 for booleans and byte arrays. */
int32_t gar_parquet_physical_bytes(enum gar_parquet_physical physical, int32_t fixed_bytes);
const char *gar_parquet_physical_name(int32_t physical);
const char *gar_parquet_encoding_name(int32_t encoding);
const char *gar_parquet_codec_name(int32_t codec);

#endif
