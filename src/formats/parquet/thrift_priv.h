/* SPDX-License-Identifier: Apache-2.0 */
/* The Thrift compact protocol, as far as Parquet metadata needs it.
 *
 * Reading is sticky: the first malformed item sets `why`, and from there on every call gives zero, an empty text or "no more
 * fields", so that parsers run down the page and look once. Lists and texts are checked against the bytes that are left before
 * anybody believes their length. Writing appends to a struct gar_strbuf, which is sticky too. */
#ifndef GAR_FORMATS_PARQUET_THRIFT_PRIV_H
#define GAR_FORMATS_PARQUET_THRIFT_PRIV_H

#include "base/strbuf.h"

enum thrift_type {
    THRIFT_STOP = 0,
    THRIFT_TRUE = 1,
    THRIFT_FALSE = 2,
    THRIFT_BYTE = 3,
    THRIFT_I16 = 4,
    THRIFT_I32 = 5,
    THRIFT_I64 = 6,
    THRIFT_DOUBLE = 7,
    THRIFT_BINARY = 8,
    THRIFT_LIST = 9,
    THRIFT_SET = 10,
    THRIFT_MAP = 11,
    THRIFT_STRUCT = 12,
    THRIFT_UUID = 13,
};

/* Nesting of structs, lists and maps that a reader follows, also in fields it skips. */
#define THRIFT_DEPTH_MAX 64

struct thrift_reader {
    const uint8_t *start;
    const uint8_t *next;
    const uint8_t *end;
    const char *why; /* static text of the first failure, or NULL */
    int64_t where;   /* offset of that failure from start */
    int32_t depth;
};

struct thrift_field {
    int32_t id;   /* 0 before the first field */
    uint8_t type; /* enum thrift_type */
};

void gar_thrift_init(struct thrift_reader *reader, const uint8_t *data, int64_t bytes);
/* Record a failure unless there is one already. */
void gar_thrift_fail(struct thrift_reader *reader, const char *why);

/* Around the fields of a struct. field must be zeroed before the first next. */
void gar_thrift_struct_begin(struct thrift_reader *reader);
/* The next field; false after the last one (the struct is then over) and after a failure. */
bool gar_thrift_field_next(struct thrift_reader *reader, struct thrift_field *field);
/* The value of a field whose type is checked; another type than wanted is a failure. */
int64_t gar_thrift_field_int(struct thrift_reader *reader, const struct thrift_field *field);
int32_t gar_thrift_field_i32(struct thrift_reader *reader, const struct thrift_field *field);
bool gar_thrift_field_bool(struct thrift_reader *reader, const struct thrift_field *field);
/* A view of the bytes, borrowed from the input; never NULL. */
const uint8_t *gar_thrift_field_binary(struct thrift_reader *reader,
                                       const struct thrift_field *field, int64_t *out_bytes);
/* Ready for gar_thrift_struct_begin if the field is a struct. */
bool gar_thrift_field_struct(struct thrift_reader *reader, const struct thrift_field *field);
/* Number of items, each of which has at least item_bytes_min bytes; their type must be `item`. 0 after a failure. */
int64_t gar_thrift_field_list(struct thrift_reader *reader, const struct thrift_field *field,
                              enum thrift_type item, int64_t item_bytes_min);
/* Items of lists of integers and texts. */
int64_t gar_thrift_int(struct thrift_reader *reader);
const uint8_t *gar_thrift_binary(struct thrift_reader *reader, int64_t *out_bytes);
void gar_thrift_skip(struct thrift_reader *reader, const struct thrift_field *field);

/* Writing: *last is the id of the struct's previous field, 0 at its begin. */
void gar_thrift_put_field(struct gar_strbuf *out, int32_t *last, int32_t id, enum thrift_type type);
void gar_thrift_put_i32(struct gar_strbuf *out, int32_t *last, int32_t id, int32_t value);
void gar_thrift_put_i64(struct gar_strbuf *out, int32_t *last, int32_t id, int64_t value);
void gar_thrift_put_bool(struct gar_strbuf *out, int32_t *last, int32_t id, bool value);
void gar_thrift_put_binary(struct gar_strbuf *out, int32_t *last, int32_t id, const void *data,
                           int64_t bytes);
void gar_thrift_put_list(struct gar_strbuf *out, int32_t *last, int32_t id, enum thrift_type item,
                         int64_t count);
void gar_thrift_put_stop(struct gar_strbuf *out);
/* Bare items of lists. */
void gar_thrift_put_zigzag(struct gar_strbuf *out, int64_t value);
void gar_thrift_put_text(struct gar_strbuf *out, const void *data, int64_t bytes);

#endif
