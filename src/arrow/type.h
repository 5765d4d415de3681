/* SPDX-License-Identifier: Apache-2.0 */
/* Data types: small values, compared by gar_type_equal, printed as users write them. */
#ifndef GAR_ARROW_TYPE_H
#define GAR_ARROW_TYPE_H

#include "base/attrs.h"
#include "base/error.h"
#include "base/strbuf.h"

enum gar_type_id {
    GAR_NULL, /* no values; only a length */
    GAR_BOOL, /* bitmap */
    GAR_INT8,
    GAR_INT16,
    GAR_INT32,
    GAR_INT64,
    GAR_UINT8,
    GAR_UINT16,
    GAR_UINT32,
    GAR_UINT64,
    GAR_FLOAT32,
    GAR_FLOAT64,
    GAR_DECIMAL128, /* 16-byte two's complement, precision 1..38, scale 0..precision */
    GAR_STRING,     /* struct gar_string_view; UTF-8, valid */
    GAR_BINARY,     /* struct gar_string_view */
    GAR_DATE,       /* int32 days since 1970-01-01 */
    GAR_TIME, /* int64 since midnight, unit us or ns (s and ms are widened to us at the door) */
    GAR_TIMESTAMP, /* int64 since 1970-01-01 UTC in unit; with zone an instant, without the local clock */
    GAR_DURATION,   /* int64 in unit */
    GAR_LIST,       /* struct gar_list_entry per row into one child */
    GAR_FIXED_LIST, /* no values; nest->width items of the child per row */
    GAR_STRUCT,     /* no values; a child per field */
    GAR_MAP,        /* struct gar_list_entry per row into two children, keys and values */
    GAR_TYPE_ID_COUNT,
};

enum gar_time_unit { GAR_SECOND, GAR_MILLI, GAR_MICRO, GAR_NANO };

struct gar_nest;

/* A zeroed struct is the null type. */
struct gar_type {
    uint8_t id;        /* enum gar_type_id */
    uint8_t unit;      /* enum gar_time_unit; time, timestamp, duration; else 0 */
    uint8_t precision; /* decimal; else 0 */
    int8_t scale;      /* decimal; else 0 */
    const char *zone;  /* timestamp: interned by gar_zone_intern, NULL without zone; else NULL */
    const struct gar_nest *nest; /* nested types: interned by gar_nest_intern; else NULL */
};

/* What a nested type is made of: one field "item" (list, fixed list), "key" and "value" (map), or the fields of a
 * struct. One per distinct content for the life of the process, so types compare by pointer. */
struct gar_nest_field {
    const char *name;
    struct gar_type type;
    bool nullable; /* always true in an interned nest */
};

struct gar_nest {
    int32_t count; /* fields */
    int32_t width; /* fixed list: items per row; else 0 */
    int32_t depth; /* levels of nesting in it: 1 over flat types */
    struct gar_nest_field fields[];
};

#define GAR_NEST_DEPTH_MAX  64
#define GAR_NEST_NAME_MAX   1024 /* bytes of a field's name */
#define GAR_NEST_FIELDS_MAX 4096

GAR_INLINE struct gar_type gar_type_of(enum gar_type_id id)
{
    struct gar_type t = {(uint8_t)id, 0, 0, 0, NULL, NULL};
    return t;
}

GAR_INLINE struct gar_type gar_type_with_unit(enum gar_type_id id, enum gar_time_unit unit)
{
    struct gar_type t = {(uint8_t)id, (uint8_t)unit, 0, 0, NULL, NULL};
    return t;
}

/* Precision 1..38 and scale 0..precision, checked by the caller (gar_type_check). */
GAR_INLINE struct gar_type gar_type_decimal(int32_t precision, int32_t scale)
{
    struct gar_type t = {GAR_DECIMAL128, 0, (uint8_t)precision, (int8_t)scale, NULL, NULL};
    return t;
}

/* zone must come from gar_zone_intern or be NULL. */
GAR_INLINE struct gar_type gar_type_timestamp(enum gar_time_unit unit, const char *zone)
{
    struct gar_type t = {GAR_TIMESTAMP, (uint8_t)unit, 0, 0, zone, NULL};
    return t;
}

GAR_INLINE bool gar_type_equal(struct gar_type a, struct gar_type b)
{
    return a.id == b.id && a.unit == b.unit && a.precision == b.precision && a.scale == b.scale &&
           a.zone == b.zone && a.nest == b.nest;
}

/* One pointer per distinct zone text for the life of the process (at most 4,096 texts of at most 128 bytes; NULL
 * with err beyond). Threads: any. */
const char *gar_zone_intern(const char *zone, int64_t bytes, struct gar_error *err);

/* The nest of a nested type: a copy of the fields is kept. Names of list items and of map keys and values become "item",
 * "key" and "value", and nullable becomes true, so that producers' habits do not make types differ. Refused with
 * GAR_ERR_TYPE in err (result NULL): a flat id, a wrong number of fields, field types that are no legal types, repeated
 * or ill-formed field names, a width below 0, and depth over GAR_NEST_DEPTH_MAX; GAR_ERR_UNSUPPORTED beyond 16 MiB of
 * distinct nests in a process. Threads: any. */
const struct gar_nest *gar_nest_intern(enum gar_type_id id, const struct gar_nest_field *fields,
                                       int32_t count, int32_t width, struct gar_error *err);
bool gar_type_is_nested(struct gar_type type);
/* nest must come from gar_nest_intern with the same id. */
GAR_INLINE struct gar_type gar_type_nested(enum gar_type_id id, const struct gar_nest *nest)
{
    struct gar_type t = {(uint8_t)id, 0, 0, 0, NULL, nest};
    return t;
}

/* Is this a legal type (id, precision and scale, unit)? */
GAR_MUST_USE enum gar_status gar_type_check(struct gar_type type, struct gar_error *err);

/* Bytes of one value in the values buffer: 1..16; 0 for null, bool (a bitmap), fixed lists
 * and structs (no values of their own). */
int32_t gar_type_width(struct gar_type type);
bool gar_type_is_signed(struct gar_type type);   /* int8..int64 */
bool gar_type_is_unsigned(struct gar_type type); /* uint8..uint64 */
bool gar_type_is_integer(struct gar_type type);
bool gar_type_is_float(struct gar_type type);
bool gar_type_is_numeric(struct gar_type type); /* integers, floats, decimals */
bool gar_type_is_temporal(struct gar_type type);
bool gar_type_is_text(struct gar_type type); /* string or binary: views */
/* 0, 3, 6, 9 of a time unit. */
int32_t gar_unit_digits(enum gar_time_unit unit);

/* "int64", "decimal(15, 2)", "timestamp[us, UTC]", "string", ... */
void gar_type_print(struct gar_type type, struct gar_strbuf *out);
/* The same as static-length text; out has room for 64 bytes or more, zones are cut. Returns out. */
const char *gar_type_text(struct gar_type type, char *out, int64_t out_bytes);
/* Reads what gar_type_print writes and SQL spellings ("bigint", "varchar", "double", "decimal(15,2)",
 * "timestamp", "text"), any case. GAR_ERR_VALUE naming the text. */
GAR_MUST_USE enum gar_status gar_type_parse(const char *text, int64_t bytes, struct gar_type *out,
                                            struct gar_error *err);

#endif
