/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of CSV text to batches. A block starts where a record starts and ends where one ends, so blocks are parsed on many
 * threads at once; who cuts the file into blocks uses gar_csv_split (csv_index.h). */
#ifndef GAR_FORMATS_CSV_CSV_PARSE_H
#define GAR_FORMATS_CSV_CSV_PARSE_H

#include "arrow/batch.h"
#include "formats/csv/csv_dialect.h"
#include "formats/csv/csv_index.h"

/* One column that is wanted of each record. */
struct gar_csv_column {
    int64_t field; /* position in the record */
    bool inferred; /* the type was guessed: messages say how to give it */
};

struct gar_csv_parser;
struct gar_csv_worker;

/* What a parser is made of. All is copied or referenced. */
struct gar_csv_parser_parts {
    const struct gar_csv_format *format; /* checked */
    struct gar_csv_dialect dialect;
    const char *path;                     /* for messages */
    int64_t field_count;                  /* fields of each record, 1..GAR_CSV_FIELDS_MAX */
    struct gar_schema *schema;            /* of the batches; one field per column */
    const struct gar_csv_column *columns; /* schema->count of them */
};

/* Immutable afterwards, for any number of threads. Errors: GAR_ERR_NOMEM, GAR_ERR_UNSUPPORTED naming the column
 * whose type has no text form. Owns: caller frees *out. */
GAR_MUST_USE enum gar_status gar_csv_parser_new(const struct gar_csv_parser_parts *parts,
                                                struct gar_csv_parser **out, struct gar_error *err);
void gar_csv_parser_free(struct gar_csv_parser *parser);

/* Scratch memory of one thread at a time, for any parsers. */
GAR_MUST_USE enum gar_status gar_csv_worker_new(struct gar_csv_worker **out, struct gar_error *err);
void gar_csv_worker_free(struct gar_csv_worker *worker);

/* Text to parse, and how far it is parsed. */
struct gar_csv_block {
    struct gar_buffer *owner; /* borrowed; string columns take references to it */
    const uint8_t *
        data; /* inside owner; GAR_CSV_PAD_BYTES before and behind are readable; in all under 2^31 bytes */
    int64_t size;       /* the last byte is the dialect's terminator */
    int64_t next;       /* the next record starts here; 0 at first */
    int64_t first_line; /* line number of data[0], from 1 */
    int64_t line_ends;  /* terminators in data (at least as many as records) */
};

/* The next records of the block, at most max_rows (>= 1) of them, or GAR_EOF at its end.
 *
 * Nulls:   empty unquoted fields and the null spellings; for types other than text, blank and quoted empty fields too
 * Errors:  GAR_ERR_FORMAT naming path and line (wrong number of fields, text behind a closing quote, invalid UTF-8);
 *          GAR_ERR_CAST naming path, line, column and value; GAR_ERR_NOMEM. The block is then good for nothing.
 * Owns:    caller unrefs *out; it may hold a reference to block->owner
 * Threads: one thread per block and per worker at a time; never blocks */
GAR_MUST_USE enum gar_status gar_csv_parse(const struct gar_csv_parser *parser,
                                           struct gar_csv_worker *worker,
                                           struct gar_csv_block *block, int64_t max_rows,
                                           struct gar_memory *memory, struct gar_batch **out,
                                           struct gar_error *err);

/* One field of a record that was read by itself. */
struct gar_csv_cell {
    int64_t offset; /* in the record's text */
    int64_t bytes;
    bool is_quoted;
};

/* A record by itself, unescaped: header lines and samples. A zeroed struct is empty; it is used again for each record. */
struct gar_csv_record {
    char *text; /* owned */
    int64_t text_bytes;
    int64_t text_capacity;
    struct gar_csv_cell *cells; /* owned */
    int64_t count;
    int64_t capacity;
    int64_t line; /* where it starts */
};

/* Read the record at data[*at, size) and move *at and *line behind it; comment lines and empty lines are passed
 * over. GAR_EOF when there is none. The last record may lack its line end. GAR_CSV_PAD_BYTES behind `size` are readable.
 * Errors: GAR_ERR_FORMAT for a quote that is never closed, with the line; GAR_ERR_NOMEM. */
GAR_MUST_USE enum gar_status gar_csv_read_record(const struct gar_csv_dialect *dialect,
                                                 const uint8_t *data, int64_t size, int64_t *at,
                                                 int64_t *line, struct gar_csv_record *record,
                                                 struct gar_error *err);
void gar_csv_record_destroy(struct gar_csv_record *record);

#endif
