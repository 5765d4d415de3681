/* SPDX-License-Identifier: Apache-2.0 */
/* What a CSV file looks like: the user's options and the dialect that the parser works by. */
#ifndef GAR_FORMATS_CSV_CSV_DIALECT_H
#define GAR_FORMATS_CSV_CSV_DIALECT_H

#include "base/attrs.h"
#include "base/error.h"

#define GAR_CSV_NONE           (-1)
#define GAR_CSV_LINE_BYTES_MAX ((int64_t)64 << 20)
#define GAR_CSV_FIELDS_MAX     100000

/* Start from gar_csv_format_default. Bytes are 0..255, or GAR_CSV_NONE for "there is none". */
struct gar_csv_format {
    bool has_header;
    bool double_quote;           /* two quotes inside a quoted field stand for one */
    bool allow_variable_columns; /* short rows are filled with null, extra fields are dropped */
    int32_t delimiter;
    int32_t quote;
    int32_t escape;           /* makes the next byte plain, inside and outside of quotes */
    int32_t comment;          /* lines that start with it are skipped */
    const char *const *nulls; /* spellings of null besides the empty unquoted field; borrowed */
    int64_t null_count;
    int64_t line_bytes_max; /* longest record taken; guards against a quote that is never closed */
};

/* ',' and '"', quotes doubled, with a header, empty fields are null, records up to 64 MiB. */
struct gar_csv_format gar_csv_format_default(void);
/* Are the options usable together? Errors: GAR_ERR_VALUE naming the option. Threads: any. */
GAR_MUST_USE enum gar_status gar_csv_format_check(const struct gar_csv_format *format,
                                                  struct gar_error *err);

/* The options as the indexer needs them, with the line end of the file at hand. Copied freely. */
struct gar_csv_dialect {
    uint8_t delimiter;
    uint8_t
        terminator; /* '\n' (a '\r' before it is dropped) or, in files that know no '\n', '\r' */
    uint8_t quote;
    uint8_t escape;
    uint8_t comment;
    bool has_quote;
    bool has_escape;
    bool has_comment;
    bool double_quote;
};

/* Options must have passed the check. head is the start of the file: lines end in '\r' only when it
 * has some outside of quotes and no '\n' there. */
struct gar_csv_dialect gar_csv_dialect_of(const struct gar_csv_format *format, const uint8_t *head,
                                          int64_t head_bytes);

/* How many bytes of byte-order mark the file starts with (0 or 3).
 * Errors: GAR_ERR_UNSUPPORTED for the marks of UTF-16 and UTF-32, telling what to do. */
GAR_MUST_USE enum gar_status gar_csv_bom(const uint8_t *head, int64_t head_bytes,
                                         int64_t *out_bytes, struct gar_error *err);

#endif
