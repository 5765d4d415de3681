/* SPDX-License-Identifier: Apache-2.0 */
/* From fields of text to column buffers, for the parser only. */
#ifndef GAR_FORMATS_CSV_CSV_CONVERT_PRIV_H
#define GAR_FORMATS_CSV_CSV_CONVERT_PRIV_H

#include "arrow/buffer.h"
#include "arrow/column.h"
#include "formats/csv/csv_dialect.h"

/* Rows that a kernel takes at a time; its scratch lies in L1. */
#define CSV_VECTOR_ROWS 256

/* Spellings of null, measured once. */
struct csv_null {
    char *text; /* owned by the parser */
    int64_t bytes;
};

/* What is the same for every field of a file. */
struct csv_rules {
    struct gar_csv_dialect dialect;
    struct csv_null *nulls; /* owned by the parser */
    int64_t null_count;
    bool
        nulls_look_like_values; /* a spelling might parse as a number or date: look before parsing */
};

/* One column's fields of some rows: field r lies in data (before[r * stride], ends[r * stride]), both exclusive. */
struct csv_fields {
    const uint8_t *data; /* GAR_CSV_PAD_BYTES are readable before and after the text */
    const uint32_t *before;
    const uint32_t *ends;
    int64_t stride;
    int64_t rows;
    bool has_escapes; /* fields may hold doubled quotes, escapes, quotes out of place */
    bool check_utf8;  /* the text around is not all UTF-8: test each value */
};

enum csv_problem {
    CSV_FINE,
    CSV_NOT_A_VALUE,  /* not of the column's type */
    CSV_OUT_OF_RANGE, /* a number beyond the type */
    CSV_AFTER_QUOTE,  /* text after a closing quote */
    CSV_BAD_UTF8,
    CSV_NO_ZONE,  /* a time without offset for a zoned column */
    CSV_HAS_ZONE, /* a time with offset for a column without zone */
    CSV_TOO_LONG, /* a value over 2^31 - 1 bytes */
    CSV_NO_MEMORY,
    CSV_UNSUPPORTED_TYPE,
};

/* A column being filled. */
struct csv_target {
    struct gar_type type;
    struct gar_memory *memory; /* borrowed */
    int64_t capacity;          /* rows that values has room for */
    int64_t length;            /* rows written */
    int64_t null_count;
    struct gar_buffer *values;   /* owned */
    struct gar_buffer *validity; /* owned; NULL until the first null */
    struct gar_buffer *side;     /* owned; unescaped text longer than a view holds, or NULL */
    int64_t side_bytes;          /* used of side */
    int32_t base;                /* offset of csv_fields.data in the block's buffer */
    bool uses_block;             /* a view points into the block's buffer */
};

/* Is there a conversion from text to this type? */
bool csv_type_is_readable(struct gar_type type);
/* Room for `capacity` rows. On failure nothing is held. */
GAR_MUST_USE enum gar_status csv_target_init(struct csv_target *target, struct gar_type type,
                                             int64_t capacity, struct gar_memory *memory,
                                             struct gar_error *err);
void csv_target_destroy(struct csv_target *target);
/* Convert and append the rows. Stops at the first bad one: *out_row gets its number in fields; target is then good for
 * nothing but destroy. CSV_NO_MEMORY writes err. */
enum csv_problem csv_convert(const struct csv_rules *rules, const struct csv_fields *fields,
                             struct csv_target *target, int64_t *out_row, struct gar_error *err);
/* Moves the rows out as a FLAT column; block is the buffer that the text lies in (a reference is taken when needed). */
GAR_MUST_USE enum gar_status csv_target_finish(struct csv_target *target, struct gar_buffer *block,
                                               struct gar_column **out, struct gar_error *err);

/* ---- kernels over up to CSV_VECTOR_ROWS rows (csv_kernels.c) ---- */

/* Numbers of up to 16 characters: an optional '-', digits, at most one '.'. Zero with a '-' is left to the slow way.
 * Each writes values[rows] and sets bits of plain (CSV_VECTOR_ROWS of them) where it understood the field; what it did not
 * understand has an undefined value. */
/* Without a point. */
void csv_parse_integers(const struct csv_fields *fields, int64_t row, int64_t rows, int64_t *values,
                        uint64_t *plain);
void csv_parse_doubles(const struct csv_fields *fields, int64_t row, int64_t rows, double *values,
                       uint64_t *plain);

/* How a number with so many digits behind the point becomes a decimal. */
struct csv_decimal_rules {
    GAR_ALIGNED(64) int64_t factor[16]; /* what to multiply with, by digits behind the point */
    GAR_ALIGNED(64)
    int64_t limit[16]; /* the greatest magnitude before that; -1: not by the fast way */
};
void csv_parse_decimals(const struct csv_fields *fields, int64_t row, int64_t rows,
                        const struct csv_decimal_rules *rules, uint8_t *values, uint64_t *plain);
/* Dates "yyyy-mm-dd" (year 1..9999, 29 February may be left out) as days. */
void csv_parse_dates(const struct csv_fields *fields, int64_t row, int64_t rows, int32_t *out_days,
                     uint64_t *plain);

#endif
