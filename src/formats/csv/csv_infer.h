/* SPDX-License-Identifier: Apache-2.0 */
/* Names and types of columns from a sample of a file. Linear in the sample. */
#ifndef GAR_FORMATS_CSV_CSV_INFER_H
#define GAR_FORMATS_CSV_CSV_INFER_H

#include "arrow/type.h"
#include "formats/csv/csv_parse.h"

/* What one column's values have been so far; a zeroed struct has seen none. */
struct gar_csv_guess {
    int64_t values; /* neither null nor blank */
    int64_t booleans;
    int64_t integers;
    int64_t floats;      /* with point or exponent */
    int64_t float_words; /* nan, inf: numbers only beside others */
    int64_t dates;
    int64_t timestamps;
    int64_t with_offset; /* of the timestamps */
    bool has_negative;
    bool beyond_int64;
    bool beyond_uint64;
    bool has_nanoseconds;    /* more than six digits of fraction */
    bool beyond_nanoseconds; /* outside of what int64 nanoseconds hold */
};

/* Take one more value into account. Threads: any, one per guess. */
void gar_csv_guess_add(struct gar_csv_guess *guess, const char *text, int64_t bytes);
/* The narrowest of bool, int64, uint64, float64, date, timestamp[us] (ns where digits ask, UTC where all have an offset) that
 * all values fit; else, or without values, string. Numbers with leading zeros or '+' are text. */
struct gar_type gar_csv_guess_type(const struct gar_csv_guess *guess);

/* A zeroed struct is empty. */
struct gar_csv_inference {
    int64_t count;                 /* columns */
    char **names;                  /* owned, count of them */
    struct gar_csv_guess *guesses; /* owned, count of them */
    int64_t capacity;
    int64_t rows; /* looked at */
};

/* Look at a sample of one file: data[0, size) are whole records after a byte-order mark, GAR_CSV_PAD_BYTES behind
 * are readable. The first sample with a record decides the columns: the header's names (column_1, ... where they are
 * empty, or without a header) and their number. In later samples a header must have the same names in any order,
 * else the file's rows are not looked at.
 * Errors: GAR_ERR_FORMAT (quote never closed, NUL in a name, too many columns), GAR_ERR_NOMEM. Owns: caller destroys. */
GAR_MUST_USE enum gar_status gar_csv_infer(struct gar_csv_inference *inference,
                                           const struct gar_csv_format *format,
                                           const struct gar_csv_dialect *dialect,
                                           const uint8_t *data, int64_t size,
                                           struct gar_error *err);
void gar_csv_inference_destroy(struct gar_csv_inference *inference);

/* The name of column i (from 0) when the file gives none: "column_1". out has room for 32 bytes. Returns out. */
const char *gar_csv_column_name(int64_t i, char *out, int64_t out_bytes);

#endif
