/* SPDX-License-Identifier: Apache-2.0 */
/* The CSV scan. `next` runs in order on the IO pool: it reads about block_bytes of text, finds where the last record
 * in it ends, and gives that much as a unit; the rest goes in front of the next block. `decode` parses units on any
 * number of threads.
 *
 * A file's first block also gives its dialect, its header and with it the place of each wanted column, so the files
 * of one scan may order their columns differently. Rows that the filter drops leave through the batch's selection. */
#include <string.h>

#include "arrow/value.h"
#include "base/alloc.h"
#include "expr/program.h"
#include "sources/csv_provider_priv.h"

/* A file's first block has room for a byte-order mark at least. */
#define HEAD_BYTES 4

/* One file's parser, shared by its units. */
struct csv_file {
    int64_t refs;                  /* atomic */
    struct gar_csv_parser *parser; /* owned */
    struct gar_column
        *path; /* owned; one row, for the file_path_column; NULL when it is not wanted */
};

struct gar_unit {
    struct csv_file *file;    /* owned reference */
    struct gar_buffer *owner; /* owned reference; holds the text */
    int64_t first_row;        /* number of the next row in the scan's input, -1 unknown */
    struct gar_csv_block block;
};

struct csv_scan {
    struct gar_scan base;
    struct csv_provider *provider;  /* owned reference */
    struct gar_memory *memory;      /* borrowed */
    struct gar_cancel *cancel;      /* borrowed */
    struct gar_scan_counts *counts; /* borrowed; may be NULL */
    struct gar_schema *parsed;      /* owned; what the parser gives */
    int64_t *fields;                /* owned; parsed->count provider positions */
    struct gar_schema *wide; /* owned; the same and behind it, if wanted, the path of the file */
    bool wants_path;
    int64_t *slots;             /* owned; output column -> column of wide */
    bool is_direct;             /* batches of the parser leave as they are */
    struct gar_program *filter; /* owned or NULL; over wide */

    /* of `next` alone */
    int64_t file_next;
    struct gar_byte_reader *reader; /* owned; NULL between files */
    struct csv_file *file;          /* owned reference; NULL until the header is read */
    const char *path;               /* borrowed from the provider */
    int64_t left_bytes;             /* text that is left in the file, -1 unknown */
    struct gar_csv_dialect dialect;
    bool is_started; /* byte-order mark and dialect are known */
    bool is_at_end;
    enum gar_csv_state state;
    int64_t next_row; /* number of the next row in the input; -1 once a line may be no row */
    int64_t line;     /* of the first byte of carry */
    uint8_t *carry;   /* owned; text behind the last record end */
    int64_t carry_bytes;
    int64_t carry_lines; /* line ends in it */
    int64_t carry_capacity;
    int64_t block_bytes;
};

struct csv_worker {
    struct gar_csv_worker *csv; /* owned */
    struct gar_eval *eval;      /* owned; NULL without a filter */
};

/* ---- files ---- */

static void file_unref(struct csv_file *file)
{
    if (file != NULL && __atomic_sub_fetch(&file->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        gar_csv_parser_free(file->parser);
        gar_column_unref(file->path);
        gar_free(file);
    }
}

static enum gar_status path_column(const struct csv_scan *scan, struct gar_column **out,
                                   struct gar_error *err)
{
    struct gar_value value = {0};
    GAR_TRY(gar_value_from_text(gar_type_of(GAR_STRING), scan->path, (int64_t)strlen(scan->path),
                                &value, err));
    const enum gar_status status = gar_value_to_column(&value, scan->memory, out, err);
    gar_value_destroy(&value);
    return status;
}

/* The name of field i of a header. */
static bool is_named(const struct gar_csv_record *header, int64_t i, const char *name)
{
    char neutral[32];
    const char *text = header->text + header->cells[i].offset;
    int64_t bytes = header->cells[i].bytes;
    if (bytes == 0) {
        text = gar_csv_column_name(i, neutral, (int64_t)sizeof neutral);
        bytes = (int64_t)strlen(text);
    }
    return (int64_t)strlen(name) == bytes && memcmp(name, text, (size_t)bytes) == 0;
}

/* Nearly always at the same place; -1 when it is not there. */
static int64_t find_field(const struct gar_csv_record *header, int64_t position, const char *name)
{
    for (int64_t k = 0; k < header->count; k++) {
        const int64_t i = (position + k) % header->count;
        if (is_named(header, i, name)) {
            return i;
        }
    }
    return -1;
}

/* Where each column of the provider is in this file; fields has provider->field_count items. */
static enum gar_status map_header(const struct csv_scan *scan, const struct gar_csv_record *header,
                                  int64_t *fields, struct gar_error *err)
{
    const struct csv_provider *provider = scan->provider;
    const bool is_loose = provider->format.allow_variable_columns;
    const char *first = csv_provider_path(provider, 0);
    if (!is_loose && header->count != provider->field_count) {
        return gar_error_set(
            err, GAR_ERR_TYPE,
            "'%s' has %lld columns where '%s' has %lld; files that are read together need the same "
            "columns (with allow_variable_columns missing ones are filled with null)",
            scan->path, (long long)header->count, first, (long long)provider->field_count);
    }
    for (int64_t i = 0; i < provider->field_count; i++) {
        const char *name = provider->base.schema->fields[i].name;
        fields[i] = find_field(header, i, name);
        if (fields[i] < 0 && !is_loose) {
            return gar_error_set(
                err, GAR_ERR_TYPE,
                "'%s' has no column '%s', which '%s' has; files that are read together need the "
                "same "
                "columns (with allow_variable_columns missing ones are filled with null)",
                scan->path, name, first);
        }
    }
    return GAR_OK;
}

/* columns: where the wanted ones are. A missing one stands behind the last field, where every record is too short. */
static enum gar_status make_parser(const struct csv_scan *scan, const struct gar_csv_record *header,
                                   int64_t *places, struct gar_csv_column *columns,
                                   struct gar_csv_parser **out, struct gar_error *err)
{
    const struct csv_provider *provider = scan->provider;
    int64_t field_count = provider->field_count;
    if (header != NULL) {
        GAR_TRY(map_header(scan, header, places, err));
        field_count = header->count;
    }
    bool has_missing = false;
    for (int64_t i = 0; i < scan->parsed->count; i++) {
        const int64_t position = scan->fields[i];
        const int64_t place = header != NULL ? places[position] : position;
        has_missing |= place < 0;
        columns[i].field = place < 0 ? field_count : place;
        columns[i].inferred = provider->inferred[position];
    }
    const struct gar_csv_parser_parts parts = {
        .format = &provider->format,
        .dialect = scan->dialect,
        .path = scan->path,
        .field_count = field_count + has_missing,
        .schema = scan->parsed,
        .columns = columns,
    };
    return gar_csv_parser_new(&parts, out, err);
}

/* The current file is known well enough to be parsed. header is NULL when the format has none. */
static enum gar_status set_file(struct csv_scan *scan, const struct gar_csv_record *header,
                                struct gar_error *err)
{
    struct csv_file *file = gar_calloc(1, (int64_t)sizeof *file);
    int64_t *places = gar_calloc(scan->provider->field_count, (int64_t)sizeof *places);
    struct gar_csv_column *columns = gar_calloc(scan->parsed->count + 1, (int64_t)sizeof *columns);
    enum gar_status status = GAR_OK;
    if (file == NULL || places == NULL || columns == NULL) {
        status = gar_error_nomem(err, scan->provider->field_count * (int64_t)sizeof *columns);
    }
    if (status >= 0) {
        file->refs = 1;
        status = make_parser(scan, header, places, columns, &file->parser, err);
    }
    if (status >= 0 && scan->wants_path) {
        status = path_column(scan, &file->path, err);
    }
    gar_free(places);
    gar_free(columns);
    if (status < 0) {
        if (file != NULL) {
            gar_csv_parser_free(file->parser);
            gar_free(file);
        }
        return status;
    }
    scan->file = file;
    return GAR_OK;
}

static enum gar_status open_file(struct csv_scan *scan, struct gar_error *err)
{
    const struct csv_provider *provider = scan->provider;
    const int64_t i = scan->file_next;
    struct gar_source *source = NULL;
    if (provider->streams[i] != NULL) {
        source = gar_source_ref(provider->streams[i]);
    } else {
        GAR_TRY(gar_source_open(provider->files.paths[i], NULL, &source, err));
    }
    const enum gar_status status = gar_byte_reader_new(source, scan->cancel, &scan->reader, err);
    const int64_t bytes = gar_source_bytes(source);
    gar_source_unref(source);
    GAR_TRY(status);
    scan->file_next++;
    scan->path = csv_provider_path(provider, i);
    scan->left_bytes = gar_byte_reader_is_compressed(scan->reader) ? -1 : bytes;
    GAR_SCAN_COUNT(scan->counts, files_read, 1);
    if (scan->left_bytes < 0 &&
        scan->counts != NULL) { /* text read does not compare with bytes stored */
        __atomic_store_n(&scan->counts->bytes_total, -1, __ATOMIC_RELAXED);
    }
    scan->is_started = false;
    scan->is_at_end = false;
    scan->state = GAR_CSV_RECORD_START;
    scan->line = 1;
    scan->carry_bytes = 0;
    scan->carry_lines = 0;
    return GAR_OK;
}

static void close_file(struct csv_scan *scan)
{
    gar_byte_reader_free(scan->reader);
    scan->reader = NULL;
    file_unref(scan->file);
    scan->file = NULL;
}

/* ---- blocks ---- */

/* Text just read, in a buffer with room in front, behind, and for one line end. */
struct text {
    struct gar_buffer *buffer;
    uint8_t *data;
    int64_t start; /* behind a byte-order mark */
    int64_t bytes;
    int64_t records;
    int64_t lines;
    int64_t end; /* of the last record */
    bool may_have_blank;
};

static enum gar_status read_text(struct csv_scan *scan, struct text *text, struct gar_error *err)
{
    /* A long record doubles the block until it fits. */
    int64_t want = gar_max_i64(scan->block_bytes, scan->carry_bytes);
    if (!scan->is_started) {
        want = gar_max_i64(want, HEAD_BYTES);
    }
    if (scan->left_bytes >= 0) {
        want = gar_min_i64(want, scan->left_bytes + 1); /* one more, to see the end */
    }
    GAR_TRY(gar_buffer_new(scan->memory,
                           GAR_CSV_PAD_BYTES + scan->carry_bytes + want + 1 + GAR_CSV_PAD_BYTES,
                           &text->buffer, err));
    text->data = text->buffer->data + GAR_CSV_PAD_BYTES;
    if (scan->carry_bytes > 0) {
        memcpy(text->data, scan->carry, (size_t)scan->carry_bytes);
    }
    int64_t got = 0;
    GAR_TRY(gar_byte_reader_read(scan->reader, text->data + scan->carry_bytes, want, &got, err));
    GAR_SCAN_COUNT(scan->counts, bytes_read, got);
    GAR_SCAN_COUNT(scan->counts, pieces_read, 1);
    scan->is_at_end = got < want;
    scan->left_bytes = scan->left_bytes >= 0 ? scan->left_bytes - got : -1;
    text->bytes = scan->carry_bytes + got;
    if (!scan->is_started) {
        GAR_TRY(gar_csv_bom(text->data, text->bytes, &text->start, err));
        scan->dialect = gar_csv_dialect_of(&scan->provider->format, text->data, text->bytes);
        const uint8_t terminator = scan->provider->terminators[scan->file_next - 1];
        scan->dialect.terminator = terminator != 0 ? terminator : scan->dialect.terminator;
        scan->is_started = true;
    }
    return GAR_OK;
}

/* Find the end of the last record; at the end of the file everything belongs to records. */
static enum gar_status cut_text(struct csv_scan *scan, struct text *text, struct gar_error *err)
{
    struct gar_csv_split_result split;
    const int64_t from = gar_max_i64(scan->carry_bytes, text->start);
    gar_csv_split(&scan->dialect, text->data, from, text->bytes, &scan->state, &split);
    text->end = split.last_end >= 0 ? split.last_end : text->start;
    text->records = split.record_ends;
    text->lines = scan->carry_lines + split.line_ends;
    text->may_have_blank = split.may_have_blank;
    if (scan->is_at_end) {
        if (text->bytes > text->start && text->data[text->bytes - 1] != scan->dialect.terminator) {
            text->may_have_blank |= text->data[text->bytes - 1] == '\r';
            text->data[text->bytes++] = scan->dialect.terminator;
            text->records++;
            text->lines++;
        }
        text->end = text->bytes;
    }
    if (text->bytes - text->end > scan->provider->format.line_bytes_max) {
        return gar_error_set(
            err, GAR_ERR_FORMAT, "%s: line %lld is longer than %lld bytes%s", scan->path,
            (long long)(scan->line + text->lines -
                        gar_csv_count_byte(text->data + text->end, text->bytes - text->end,
                                           scan->dialect.terminator)),
            (long long)scan->provider->format.line_bytes_max,
            gar_csv_state_is_open(scan->state) ? "; is a quote in it never closed?" : "");
    }
    return GAR_OK;
}

/* Keep what lies behind the last record for the next block. */
static enum gar_status keep_carry(struct csv_scan *scan, const struct text *text,
                                  struct gar_error *err)
{
    const int64_t rest = text->bytes - text->end;
    GAR_TRY(gar_grow((void **)&scan->carry, &scan->carry_capacity, rest, 1, err));
    if (rest > 0) {
        memcpy(scan->carry, text->data + text->end, (size_t)rest);
    }
    scan->carry_bytes = rest;
    scan->carry_lines = gar_csv_count_byte(scan->carry, rest, scan->dialect.terminator);
    return GAR_OK;
}

/* Read the header from the first records; *at is moved behind it. No record yet: scan->file stays NULL. */
static enum gar_status read_header(struct csv_scan *scan, const struct text *text, int64_t *at,
                                   struct gar_error *err)
{
    if (!scan->provider->format.has_header) {
        return set_file(scan, NULL, err);
    }
    struct gar_csv_record record = {0};
    int64_t line = scan->line;
    enum gar_status status =
        gar_csv_read_record(&scan->dialect, text->data, text->end, at, &line, &record, err);
    if (status == GAR_OK) {
        status = set_file(scan, &record, err);
    } else if (status == GAR_ERR_FORMAT) {
        gar_error_prefix(err, "%s, ", scan->path);
    }
    gar_csv_record_destroy(&record);
    return status < 0 ? status : GAR_OK;
}

static enum gar_status make_unit(struct csv_scan *scan, const struct text *text, int64_t at,
                                 struct gar_unit **out, struct gar_error *err)
{
    struct gar_unit *unit = gar_calloc(1, (int64_t)sizeof *unit);
    if (unit == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *unit);
    }
    __atomic_fetch_add(&scan->file->refs, 1, __ATOMIC_RELAXED);
    unit->file = scan->file;
    unit->owner = gar_buffer_ref(text->buffer);
    unit->block = (struct gar_csv_block){
        .owner = text->buffer,
        .data = text->data,
        .size = text->end,
        .next = at,
        .first_line = scan->line,
        .line_ends = text->records,
    };
    unit->first_row = scan->next_row;
    *out = unit;
    return GAR_OK;
}

/* *out stays NULL when the text read holds no rows. */
static enum gar_status next_block(struct csv_scan *scan, struct text *text, struct gar_unit **out,
                                  struct gar_error *err)
{
    GAR_TRY(read_text(scan, text, err));
    GAR_TRY(cut_text(scan, text, err));
    GAR_TRY(keep_carry(scan, text, err));
    int64_t at = text->start;
    const bool had_file = scan->file != NULL;
    const bool has_header = scan->provider->format.has_header;
    if (text->may_have_blank || scan->dialect.has_comment) {
        scan->next_row = -1; /* which lines are rows is seen when they are parsed */
    }
    if (text->end > at && scan->file == NULL) {
        GAR_TRY(read_header(scan, text, &at, err));
    }
    if (text->end > at && scan->file != NULL) {
        GAR_TRY(make_unit(scan, text, at, out, err));
    }
    if (scan->next_row >= 0) {
        scan->next_row += text->records - (!had_file && scan->file != NULL && has_header);
    }
    scan->line += text->lines - scan->carry_lines;
    return GAR_OK;
}

static enum gar_status next(struct gar_scan *base, struct gar_unit **out, struct gar_error *err)
{
    struct csv_scan *scan = (struct csv_scan *)base;
    *out = NULL;
    while (*out == NULL) {
        GAR_CANCEL_CHECK(scan->cancel, err);
        if (scan->reader == NULL) {
            if (scan->file_next == scan->provider->files.count) {
                return GAR_EOF;
            }
            GAR_TRY(open_file(scan, err));
        }
        struct text text = {0};
        const enum gar_status status = next_block(scan, &text, out, err);
        gar_buffer_unref(text.buffer);
        GAR_TRY(status);
        if (scan->is_at_end) {
            close_file(scan);
        }
        scan->block_bytes = gar_min_i64(2 * scan->block_bytes, scan->provider->block_bytes);
    }
    return GAR_OK;
}

static void unit_free(struct gar_scan *base, struct gar_unit *unit)
{
    (void)base;
    if (unit != NULL) {
        file_unref(unit->file);
        gar_buffer_unref(unit->owner);
        gar_free(unit);
    }
}

/* ---- decoding ---- */

static void worker_free(struct gar_scan *base, void *worker_memory)
{
    (void)base;
    struct csv_worker *worker = worker_memory;
    if (worker != NULL) {
        gar_csv_worker_free(worker->csv);
        gar_eval_free(worker->eval);
        gar_free(worker);
    }
}

static enum gar_status worker_new(struct gar_scan *base, struct gar_memory *memory, void **out,
                                  struct gar_error *err)
{
    struct csv_scan *scan = (struct csv_scan *)base;
    struct csv_worker *worker = gar_calloc(1, (int64_t)sizeof *worker);
    if (worker == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *worker);
    }
    enum gar_status status = gar_csv_worker_new(&worker->csv, err);
    if (status >= 0 && scan->filter != NULL) {
        status = gar_eval_new(scan->filter, memory, &worker->eval, err);
    }
    if (status < 0) {
        worker_free(base, worker);
        return status;
    }
    *out = worker;
    return GAR_OK;
}

/* A batch of columns that are moved in, also on failure. */
static enum gar_status take_columns(struct gar_schema *schema, struct gar_column **columns,
                                    int64_t rows, struct gar_batch **out, struct gar_error *err)
{
    const enum gar_status status = gar_batch_new(schema, columns, rows, out, err);
    for (int64_t i = 0; status < 0 && i < schema->count; i++) {
        gar_column_unref(columns[i]);
    }
    return status;
}

static struct gar_column **new_columns(int64_t count, struct gar_error *err)
{
    struct gar_column **columns = gar_calloc(count + 1, (int64_t)sizeof(struct gar_column *));
    if (columns == NULL) {
        (void)gar_error_nomem(err, count * (int64_t)sizeof(struct gar_column *));
    }
    return columns;
}

/* A parsed batch with the file's path as one column more. */
static enum gar_status widen(const struct csv_scan *scan, const struct csv_file *file,
                             const struct gar_batch *parsed, struct gar_batch **out,
                             struct gar_error *err)
{
    struct gar_column *path = NULL;
    struct gar_column *one = gar_column_ref(file->path);
    enum gar_status status = gar_column_new_constant(one, parsed->rows, &path, err);
    if (status < 0) {
        gar_column_unref(one);
        return status;
    }
    struct gar_column **columns = new_columns(scan->wide->count, err);
    if (columns == NULL) {
        gar_column_unref(path);
        return GAR_ERR_NOMEM;
    }
    for (int64_t i = 0; i < parsed->schema->count; i++) {
        columns[i] = gar_column_ref(parsed->columns[i]);
    }
    columns[parsed->schema->count] = path;
    status = take_columns(scan->wide, columns, parsed->rows, out, err);
    gar_free(columns);
    if (status >= 0) {
        gar_batch_take_origin(*out, parsed);
    }
    return status;
}

/* The wanted columns of a wide batch. */
static enum gar_status pick_columns(const struct csv_scan *scan, const struct gar_batch *wide,
                                    struct gar_batch **out, struct gar_error *err)
{
    struct gar_column **columns = new_columns(scan->base.schema->count, err);
    if (columns == NULL) {
        return GAR_ERR_NOMEM;
    }
    for (int64_t i = 0; i < scan->base.schema->count; i++) {
        columns[i] = gar_column_ref(wide->columns[scan->slots[i]]);
    }
    const enum gar_status status = take_columns(scan->base.schema, columns, wide->rows, out, err);
    gar_free(columns);
    if (status >= 0) {
        gar_batch_take_origin(*out, wide);
    }
    return status;
}

/* Filter and pick; *out stays NULL when no row is left. */
static enum gar_status finish_batch(const struct csv_scan *scan, struct csv_worker *worker,
                                    const struct gar_batch *wide, struct gar_batch **out,
                                    struct gar_error *err)
{
    struct gar_buffer *selection = NULL;
    int64_t selected = wide->rows;
    if (worker->eval != NULL) {
        GAR_TRY(gar_eval_filter(worker->eval, wide, &selection, &selected, err));
    }
    struct gar_batch *batch = NULL;
    enum gar_status status = selected > 0 ? pick_columns(scan, wide, &batch, err) : GAR_OK;
    if (status >= 0 && batch != NULL && selection != NULL) {
        struct gar_batch *whole = batch;
        batch = NULL;
        status = gar_batch_select(whole, selection, selected, &batch, err);
        selection = status >= 0 ? NULL : selection; /* moved */
        gar_batch_unref(whole);
    }
    gar_buffer_unref(selection);
    *out = batch;
    return status;
}

/* One parsed batch (moved) to the batch that leaves. */
static enum gar_status shape_batch(const struct csv_scan *scan, const struct gar_unit *unit,
                                   struct csv_worker *worker, struct gar_batch *parsed,
                                   struct gar_batch **out, struct gar_error *err)
{
    if (scan->is_direct) {
        *out = parsed;
        return GAR_OK;
    }
    struct gar_batch *wide = NULL;
    enum gar_status status = GAR_OK;
    if (scan->wants_path) {
        status = widen(scan, unit->file, parsed, &wide, err);
    } else {
        wide = gar_batch_ref(parsed);
    }
    if (status >= 0) {
        status = finish_batch(scan, worker, wide, out, err);
    }
    gar_batch_unref(wide);
    gar_batch_unref(parsed);
    return status;
}

static enum gar_status decode(struct gar_scan *base, struct gar_unit *unit, void *worker_memory,
                              int64_t max_rows, struct gar_batch **out, struct gar_error *err)
{
    struct csv_scan *scan = (struct csv_scan *)base;
    struct csv_worker *worker = worker_memory;
    for (;;) {
        GAR_CANCEL_CHECK(scan->cancel, err);
        struct gar_batch *parsed = NULL;
        const enum gar_status status = gar_csv_parse(unit->file->parser, worker->csv, &unit->block,
                                                     max_rows, scan->memory, &parsed, err);
        if (status != GAR_OK) {
            return status;
        }
        GAR_SCAN_COUNT(scan->counts, rows_read, parsed->rows);
        if (unit->first_row >= 0) {
            gar_batch_set_origin(parsed, unit->first_row);
            unit->first_row += parsed->rows;
        }
        struct gar_batch *batch = NULL;
        GAR_TRY(shape_batch(scan, unit, worker, parsed, &batch, err));
        if (batch != NULL) {
            *out = batch;
            return GAR_OK;
        }
    }
}

/* ---- opening ---- */

static void scan_free(struct gar_scan *base)
{
    struct csv_scan *scan = (struct csv_scan *)base;
    if (scan == NULL) {
        return;
    }
    close_file(scan);
    gar_program_unref(scan->filter);
    gar_schema_unref(scan->parsed);
    gar_schema_unref(scan->wide);
    gar_schema_unref(scan->base.schema);
    gar_free(scan->fields);
    gar_free(scan->slots);
    gar_free(scan->carry);
    gar_scan_provider_unref(&scan->provider->base);
    gar_free(scan);
}

static const struct gar_scan_vtable csv_scan_vtable = {
    .next = next,
    .worker_new = worker_new,
    .worker_free = worker_free,
    .decode = decode,
    .unit_free = unit_free,
    .free = scan_free,
};

static enum gar_status schema_of(const struct gar_schema *from, const int64_t *positions,
                                 int64_t count, struct gar_schema **out, struct gar_error *err)
{
    struct gar_field *fields = gar_calloc(count + 1, (int64_t)sizeof *fields);
    if (fields == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *fields);
    }
    for (int64_t i = 0; i < count; i++) {
        fields[i] = from->fields[positions[i]];
    }
    const enum gar_status status = gar_schema_new(fields, count, true, out, err);
    gar_free(fields);
    return status;
}

/* Columns to parse so far, and where each of the provider's columns is among them (-1: not wanted). */
struct choice {
    struct csv_scan *scan;
    int64_t *slot_of; /* provider->base.schema->count items */
    int64_t count;
};

static void choose(struct choice *choice, int64_t position)
{
    if (position == choice->scan->provider->path_column) {
        choice->scan->wants_path = true;
    } else if (choice->slot_of[position] < 0) {
        choice->slot_of[position] = choice->count;
        choice->scan->fields[choice->count++] = position;
    }
}

static void choose_filter_column(const char *name, void *context)
{
    struct choice *choice = context;
    const int64_t position = gar_schema_find(choice->scan->provider->base.schema, name);
    if (position >= 0) {
        choose(choice, position);
    }
}

static enum gar_status choose_columns(struct csv_scan *scan, const struct gar_scan_request *request,
                                      struct choice *choice, struct gar_error *err)
{
    const struct gar_schema *all = scan->provider->base.schema;
    for (int64_t i = 0; i < all->count; i++) {
        choice->slot_of[i] = -1;
    }
    for (int64_t i = 0; i < request->column_count; i++) {
        choose(choice, request->columns[i]);
    }
    if (request->filter != NULL) {
        gar_expr_visit_columns(request->filter, choose_filter_column, choice);
    }
    GAR_TRY(schema_of(all, scan->fields, choice->count, &scan->parsed, err));
    if (scan->wants_path) {
        choice->slot_of[scan->provider->path_column] = choice->count;
        scan->fields[choice->count] = scan->provider->path_column;
    }
    GAR_TRY(schema_of(all, scan->fields, choice->count + scan->wants_path, &scan->wide, err));
    scan->is_direct =
        request->filter == NULL && scan->wide->count == request->column_count && !scan->wants_path;
    for (int64_t i = 0; i < request->column_count; i++) {
        scan->slots[i] = choice->slot_of[request->columns[i]];
        scan->is_direct = scan->is_direct && scan->slots[i] == i;
    }
    if (scan->is_direct) {
        scan->base.schema = gar_schema_ref(scan->parsed);
        return GAR_OK;
    }
    return schema_of(all, request->columns, request->column_count, &scan->base.schema, err);
}

static enum gar_status fill_scan(struct csv_scan *scan, const struct gar_scan_request *request,
                                 struct gar_error *err)
{
    const int64_t count = scan->provider->base.schema->count;
    scan->fields = gar_calloc(count, (int64_t)sizeof *scan->fields);
    scan->slots = gar_calloc(request->column_count + 1, (int64_t)sizeof *scan->slots);
    int64_t *slot_of = gar_calloc(count, (int64_t)sizeof *slot_of);
    if (scan->fields == NULL || scan->slots == NULL || slot_of == NULL) {
        gar_free(slot_of);
        return gar_error_nomem(err, (3 * count + 1) * 8);
    }
    struct choice choice = {.scan = scan, .slot_of = slot_of};
    const enum gar_status status = choose_columns(scan, request, &choice, err);
    gar_free(slot_of);
    GAR_TRY(status);
    if (request->filter != NULL) {
        struct gar_expr *filter = (struct gar_expr *)(uintptr_t)request->filter;
        GAR_TRY(gar_program_new(scan->wide, &filter, 1, &scan->filter, err));
    }
    return GAR_OK;
}

enum gar_status csv_scan_open(struct gar_scan_provider *base,
                              const struct gar_scan_request *request, struct gar_scan **out,
                              struct gar_error *err)
{
    struct csv_scan *scan = gar_calloc(1, (int64_t)sizeof *scan);
    if (scan == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *scan);
    }
    scan->base.vtable = &csv_scan_vtable;
    scan->base.sequential = true;
    scan->base.rows_exact = -1;
    scan->provider = (struct csv_provider *)gar_scan_provider_ref(base);
    scan->base.unit_bytes = 2 * scan->provider->block_bytes;
    scan->memory = request->memory;
    scan->cancel = request->cancel;
    scan->counts = request->counts;
    if (scan->counts != NULL) {
        scan->counts->files_total = scan->provider->files.count;
        scan->counts->bytes_total = base->size_hint_bytes;
    }
    scan->block_bytes = request->limit >= 0
                            ? gar_min_i64(CSV_FIRST_BLOCK_BYTES, scan->provider->block_bytes)
                            : scan->provider->block_bytes;
    const enum gar_status status = fill_scan(scan, request, err);
    if (status < 0) {
        scan_free(&scan->base);
        return status;
    }
    *out = &scan->base;
    return GAR_OK;
}
