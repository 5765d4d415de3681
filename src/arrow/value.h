/* SPDX-License-Identifier: Apache-2.0 */
/* One typed value: literals, statistics, results of aggregates over no column. */
#ifndef GAR_ARROW_VALUE_H
#define GAR_ARROW_VALUE_H

#include "arrow/column.h"

/* A zeroed struct is the null of null type. */
struct gar_value {
    struct gar_type type;
    bool is_valid; /* false: null */
    union {
        bool boolean;
        int64_t i64;   /* int8..int64, date (days), time, timestamp, duration */
        uint64_t u64;  /* uint8..uint64 */
        double f64;    /* float32 and float64 */
        gar_i128 i128; /* decimal128, unscaled */
        struct {
            char *data; /* string, binary; owned by the value (gar_malloc); NUL-terminated */
            int64_t size;
        } text;
    };
};

void gar_value_destroy(struct gar_value *value);
GAR_MUST_USE enum gar_status gar_value_copy(const struct gar_value *value, struct gar_value *out,
                                            struct gar_error *err);
GAR_MUST_USE enum gar_status gar_value_from_text(struct gar_type type, const char *data,
                                                 int64_t size, struct gar_value *out,
                                                 struct gar_error *err);
/* Row i of any column. */
GAR_MUST_USE enum gar_status gar_value_from_column(const struct gar_column *column, int64_t i,
                                                   struct gar_value *out, struct gar_error *err);
/* A FLAT column of length 1. */
GAR_MUST_USE enum gar_status gar_value_to_column(const struct gar_value *value,
                                                 struct gar_memory *memory, struct gar_column **out,
                                                 struct gar_error *err);
/* As SQL text: 12, 'it''s', date '2024-01-01', null; for plans and names. */
void gar_value_print(const struct gar_value *value, struct gar_strbuf *out);
/* As a user reads it in a table: text without quotes, control characters escaped, "null" as is_null tells. max_bytes
 * cuts long texts with "…" (<= 0: never). */
void gar_value_print_plain(const struct gar_value *value, int64_t max_bytes,
                           struct gar_strbuf *out);
/* -1, 0, 1 between two non-null values of one type; floats: NaN greatest and equal to itself. */
int32_t gar_value_compare(const struct gar_value *a, const struct gar_value *b);
bool gar_value_equal(const struct gar_value *a, const struct gar_value *b); /* nulls equal */

#endif
