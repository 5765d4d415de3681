/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the separators of CSV text: delimiters and line ends that are not inside quotes.
 *
 * Meaning (the scalar machine in csv_index.c is the definition; the SIMD forms give the same for every input):
 *   - a quote opens a quoted field only as the first byte of a field; elsewhere in an unquoted field it is text;
 *   - inside quotes a quote closes, unless the next byte is a quote too and double_quote is on;
 *   - an escape makes the next byte plain, in and out of quotes;
 *   - a line whose first byte is the comment byte is one field, up to its line end;
 *   - a closing quote that is not followed by a separator leaves the field unquoted from there on (the parser
 *     refuses such fields).
 * All of it needs only the byte position reached and one state byte, so that text can be cut anywhere. */
#ifndef GAR_FORMATS_CSV_CSV_INDEX_H
#define GAR_FORMATS_CSV_CSV_INDEX_H

#include "base/attrs.h"
#include "formats/csv/csv_dialect.h"

/* Bytes that must be readable before and after the text given to the functions here and in csv_parse.h. */
#define GAR_CSV_PAD_BYTES 64

/* Where in a record the machine stands. */
enum gar_csv_state {
    GAR_CSV_RECORD_START,
    GAR_CSV_FIELD_START,
    GAR_CSV_UNQUOTED,
    GAR_CSV_QUOTED,
    GAR_CSV_AFTER_QUOTE, /* a quote inside quotes: closed, unless another one follows */
    GAR_CSV_COMMENT,
    GAR_CSV_ESCAPED,        /* the byte before was an escape in an unquoted field */
    GAR_CSV_QUOTED_ESCAPED, /* the same inside quotes */
};

struct gar_csv_index_result {
    int64_t end;       /* scanned up to here */
    int64_t count;     /* separators written */
    int64_t line_ends; /* how many of them end a record */
    bool
        has_escapes; /* there may be doubled quotes, escapes or quotes out of place: look inside fields */
    bool has_wide; /* there are bytes >= 128 */
};

/* Write the offsets of the separators in data[from, to) to positions, at least 64 below `capacity` (>= 128), and stop early
 * only when these are taken. *state is taken and left. 0 <= from <= to < 2^32 - 64; GAR_CSV_PAD_BYTES after `to` are
 * readable.
 * Threads: any. Cost: one pass, no allocation. */
void gar_csv_index(const struct gar_csv_dialect *dialect, const uint8_t *data, int64_t from,
                   int64_t to, enum gar_csv_state *state, uint32_t *positions, int64_t capacity,
                   struct gar_csv_index_result *out);

struct gar_csv_split_result {
    int64_t last_end;    /* offset just behind the last record end, or -1: none here */
    int64_t record_ends; /* line ends outside of quotes */
    int64_t line_ends;   /* line ends in all */
    bool may_have_blank; /* a line is "" or "\r"; perhaps one of those inside quotes */
};

/* Where records end in data[from, to), without listing fields. Same rules and conditions as gar_csv_index; data[0] is the
 * first byte of a record (or of the file's mark). */
void gar_csv_split(const struct gar_csv_dialect *dialect, const uint8_t *data, int64_t from,
                   int64_t to, enum gar_csv_state *state, struct gar_csv_split_result *out);

/* True if text that ends in this state ends inside a quoted field. */
GAR_INLINE bool gar_csv_state_is_open(enum gar_csv_state state)
{
    return state == GAR_CSV_QUOTED || state == GAR_CSV_QUOTED_ESCAPED;
}

/* Count a byte (for line numbers in messages). */
int64_t gar_csv_count_byte(const uint8_t *data, int64_t bytes, uint8_t byte);

#endif
