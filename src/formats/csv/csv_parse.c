/* SPDX-License-Identifier: Apache-2.0 */
/* From a block of text to a batch, a chunk of about CHUNK_FIELDS fields at a time so that the text, the index and
 * the kernels' scratch stay in the caches:
 *   1. gar_csv_index lists the separators of the chunk; a record cut off at its end is listed again with the next chunk;
 *   2. `is_regular` tests that every field_count-th separator is a line end and no other is. Then field (r, c) lies between
 *      positions[r * field_count + c - 1] and positions[r * field_count + c], and nothing needs to be copied;
 *      else `settle` walks the records, drops blank and comment lines, refuses or fits ragged ones, and makes such a matrix;
 *   3. csv_convert appends each wanted column's fields to its target.
 * When columns of one chunk hold bad values, the first one in reading order is reported. */
#include "formats/csv/csv_parse.h"

#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "formats/csv/csv_convert_priv.h"

/* 16 KiB of index, about 30 KiB of ordinary text: both stay in the first-level cache while the columns are converted. */
#define CHUNK_FIELDS 4096
/* The indexer stops early by up to two words of 64 bytes. */
#define INDEX_SLACK 192

struct gar_csv_parser {
    struct csv_rules rules;
    bool allow_variable_columns;
    bool has_text; /* a string column is wanted: UTF-8 counts */
    char *path;    /* owned */
    int64_t field_count;
    struct gar_schema *schema;      /* owned reference */
    struct gar_csv_column *columns; /* owned; schema->count */
};

struct gar_csv_worker {
    uint32_t *positions; /* owned; [0] is the place before the first field, the separators follow */
    int64_t position_capacity;
    uint32_t *before; /* owned; the settled matrix */
    uint32_t *ends;   /* owned */
    int64_t matrix_capacity;
    struct csv_target *targets; /* owned */
    int64_t target_count;       /* live ones; 0 between parses */
    int64_t target_capacity;
};

/* The records of a chunk. */
struct chunk {
    const uint32_t *before;
    const uint32_t *ends;
    int64_t rows;
    int64_t end; /* just behind the last record taken */
    struct gar_csv_index_result index;
    bool has_returns; /* a record ends in "\r\n" and the last column's ends must be moved */
};

/* ---- making and freeing ---- */

static enum gar_status copy_nulls(const struct gar_csv_format *format, struct csv_rules *rules,
                                  struct gar_error *err)
{
    if (format->null_count == 0) {
        return GAR_OK;
    }
    rules->nulls = gar_calloc(format->null_count, (int64_t)sizeof *rules->nulls);
    if (rules->nulls == NULL) {
        return gar_error_nomem(err, format->null_count * (int64_t)sizeof *rules->nulls);
    }
    rules->null_count = format->null_count;
    for (int64_t i = 0; i < format->null_count; i++) {
        char *text = gar_strdup(format->nulls[i]);
        if (text == NULL) {
            return gar_error_nomem(err, (int64_t)strlen(format->nulls[i]));
        }
        rules->nulls[i] = (struct csv_null){.text = text, .bytes = (int64_t)strlen(text)};
        const uint8_t first = (uint8_t)text[0];
        rules->nulls_look_like_values |=
            (first >= '0' && first <= '9') || first == '-' || first == '.' || first == '+';
    }
    return GAR_OK;
}

static enum gar_status check_columns(const struct gar_csv_parser_parts *parts,
                                     struct gar_csv_parser *parser, struct gar_error *err)
{
    for (int64_t i = 0; i < parts->schema->count; i++) {
        const struct gar_field *field = &parts->schema->fields[i];
        if (parts->columns[i].field < 0 || parts->columns[i].field >= parts->field_count) {
            return gar_error_set(err, GAR_ERR_INTERNAL, "column '%s' stands for field %lld of %lld",
                                 field->name, (long long)parts->columns[i].field,
                                 (long long)parts->field_count);
        }
        if (!csv_type_is_readable(field->type)) {
            return gar_error_set(err, GAR_ERR_UNSUPPORTED,
                                 "column '%s': csv has no text form of this type", field->name);
        }
        parser->has_text |= field->type.id == GAR_STRING;
    }
    return GAR_OK;
}

enum gar_status gar_csv_parser_new(const struct gar_csv_parser_parts *parts,
                                   struct gar_csv_parser **out, struct gar_error *err)
{
    struct gar_csv_parser *parser = gar_calloc(1, (int64_t)sizeof *parser);
    if (parser == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *parser);
    }
    const int64_t column_bytes = parts->schema->count * (int64_t)sizeof *parser->columns;
    parser->rules.dialect = parts->dialect;
    parser->allow_variable_columns = parts->format->allow_variable_columns;
    parser->field_count = parts->field_count;
    parser->schema = gar_schema_ref(parts->schema);
    parser->path = gar_strdup(parts->path);
    parser->columns = gar_malloc(column_bytes);
    enum gar_status status = GAR_OK;
    if (parser->path == NULL || parser->columns == NULL) {
        status = gar_error_nomem(err, column_bytes);
    } else {
        if (column_bytes > 0) {
            memcpy(parser->columns, parts->columns, (size_t)column_bytes);
        }
        status = copy_nulls(parts->format, &parser->rules, err);
    }
    if (status >= 0) {
        status = check_columns(parts, parser, err);
    }
    if (status < 0) {
        gar_csv_parser_free(parser);
        return status;
    }
    *out = parser;
    return GAR_OK;
}

void gar_csv_parser_free(struct gar_csv_parser *parser)
{
    if (parser == NULL) {
        return;
    }
    for (int64_t i = 0; i < parser->rules.null_count; i++) {
        gar_free(parser->rules.nulls[i].text);
    }
    gar_free(parser->rules.nulls);
    gar_schema_unref(parser->schema);
    gar_free(parser->path);
    gar_free(parser->columns);
    gar_free(parser);
}

enum gar_status gar_csv_worker_new(struct gar_csv_worker **out, struct gar_error *err)
{
    *out = gar_calloc(1, (int64_t)sizeof **out);
    return *out != NULL ? GAR_OK : gar_error_nomem(err, (int64_t)sizeof **out);
}

void gar_csv_worker_free(struct gar_csv_worker *worker)
{
    if (worker != NULL) {
        gar_free(worker->positions);
        gar_free(worker->before);
        gar_free(worker->ends);
        gar_free(worker->targets);
        gar_free(worker);
    }
}

static enum gar_status grow_matrix(struct gar_csv_worker *worker, int64_t items,
                                   struct gar_error *err)
{
    if (items <= worker->matrix_capacity) {
        return GAR_OK;
    }
    int64_t capacity = worker->matrix_capacity;
    GAR_TRY(
        gar_grow((void **)&worker->before, &capacity, items, (int64_t)sizeof *worker->before, err));
    capacity = worker->matrix_capacity;
    GAR_TRY(gar_grow((void **)&worker->ends, &capacity, items, (int64_t)sizeof *worker->ends, err));
    worker->matrix_capacity = capacity;
    return GAR_OK;
}

/* ---- messages ---- */

static int64_t line_at(const struct gar_csv_parser *parser, const struct gar_csv_block *block,
                       int64_t offset)
{
    return block->first_line +
           gar_csv_count_byte(block->data, offset, parser->rules.dialect.terminator);
}

static enum gar_status report_ragged(const struct gar_csv_parser *parser,
                                     const struct gar_csv_block *block, int64_t offset,
                                     int64_t fields, struct gar_error *err)
{
    return gar_error_set(err, GAR_ERR_FORMAT,
                         "%s, line %lld: %lld field%s where %lld are expected; "
                         "with allow_variable_columns short "
                         "rows are filled with null and extra fields dropped",
                         parser->path, (long long)line_at(parser, block, offset), (long long)fields,
                         fields == 1 ? "" : "s", (long long)parser->field_count);
}

static enum gar_status report_value(const struct gar_csv_parser *parser,
                                    const struct gar_csv_block *block, int64_t column,
                                    enum csv_problem problem, int64_t start, int64_t end,
                                    struct gar_error *err)
{
    const struct gar_field *field = &parser->schema->fields[column];
    char type[64];
    char value[96];
    (void)gar_type_text(field->type, type, (int64_t)sizeof type);
    (void)gar_error_quote((const char *)block->data + start, end - start, value,
                          (int64_t)sizeof value);
    const char *path = parser->path;
    const long long line = (long long)line_at(parser, block, start);
    const char *name = field->name;
    switch (problem) {
    case CSV_FINE: break;
    case CSV_NOT_A_VALUE:
    case CSV_OUT_OF_RANGE:
        if (parser->columns[column].inferred) {
            return gar_error_set(err, GAR_ERR_CAST,
                                 "%s, line %lld, column '%s': '%s' %s %s, the type inferred from "
                                 "the first rows; give the column the right one in the schema, "
                                 "for example string",
                                 path, line, name, value,
                                 problem == CSV_OUT_OF_RANGE ? "is out of the range of" : "is no",
                                 type);
        }
        return gar_error_set(
            err, GAR_ERR_CAST, "%s, line %lld, column '%s': '%s' %s %s", path, line, name, value,
            problem == CSV_OUT_OF_RANGE ? "is out of the range of" : "is no", type);
    case CSV_AFTER_QUOTE:
        return gar_error_set(
            err, GAR_ERR_FORMAT,
            "%s, line %lld, column '%s': a quoted field must end with its closing quote, got %s; "
            "quotes inside are doubled, or another quote character is needed",
            path, line, name, value);
    case CSV_BAD_UTF8:
        return gar_error_set(err, GAR_ERR_FORMAT,
                             "%s, line %lld, column '%s': '%s' is not valid UTF-8; convert the "
                             "file, or give the column "
                             "the type binary",
                             path, line, name, value);
    case CSV_NO_ZONE:
        return gar_error_set(
            err, GAR_ERR_CAST,
            "%s, line %lld, column '%s': '%s' has no UTC offset, which %s needs; read it without "
            "a time zone",
            path, line, name, value, type);
    case CSV_HAS_ZONE:
        return gar_error_set(err, GAR_ERR_CAST,
                             "%s, line %lld, column '%s': '%s' has a UTC offset, which %s cannot "
                             "hold; give the column "
                             "a type with a time zone",
                             path, line, name, value, type);
    case CSV_TOO_LONG:
        return gar_error_set(err, GAR_ERR_FORMAT,
                             "%s, line %lld, column '%s': the texts of a block exceed 2^31 bytes",
                             path, line, name);
    case CSV_NO_MEMORY: return GAR_ERR_NOMEM;
    case CSV_UNSUPPORTED_TYPE: break;
    }
    return gar_error_set(err, GAR_ERR_UNSUPPORTED, "%s, column '%s': csv has no text form of %s",
                         path, name, type);
}

/* ---- records of a chunk ---- */

/* positions[0] is the place before the first field. As many line ends as rows, and one at the end of each row: then no other
 * separator is a line end. */
static bool is_regular(const struct gar_csv_parser *parser, const struct gar_csv_block *block,
                       const uint32_t *positions, const struct gar_csv_index_result *index,
                       bool *out_has_returns)
{
    const int64_t fields = parser->field_count;
    const int64_t rows = index->count / fields;
    const uint8_t terminator = parser->rules.dialect.terminator;
    const uint8_t *data = block->data;
    uint64_t good = index->line_ends == rows;
    uint64_t returns = 0;
    for (int64_t r = 1; r <= rows; r++) {
        const int64_t at = positions[r * fields];
        good &= (uint64_t)(data[at] == terminator);
        returns |= (uint64_t)(data[at - 1] == '\r');
    }
    *out_has_returns = returns != 0 && terminator == '\n';
    return good != 0;
}

/* One record of `fields` separators from positions[0] on, as row `row` of the matrix. False: it is to be left out. */
static enum gar_status settle_record(const struct gar_csv_parser *parser,
                                     const struct gar_csv_block *block, const uint32_t *positions,
                                     int64_t fields, struct gar_csv_worker *worker, int64_t row,
                                     bool *out_taken, struct gar_error *err)
{
    const struct gar_csv_dialect *d = &parser->rules.dialect;
    const int64_t wanted = parser->field_count;
    const uint32_t start = positions[0] + 1;
    uint32_t end = positions[fields];
    if (d->terminator == '\n' && end > start && block->data[end - 1] == '\r') {
        end--;
    }
    const bool is_empty = end == start;
    const bool is_comment = d->has_comment && !is_empty && block->data[start] == d->comment;
    *out_taken = !is_comment && !(is_empty && wanted > 1);
    if (!*out_taken) {
        return GAR_OK;
    }
    if (fields != wanted && !parser->allow_variable_columns) {
        return report_ragged(parser, block, start, fields, err);
    }
    uint32_t *before = worker->before + row * wanted;
    uint32_t *ends = worker->ends + row * wanted;
    for (int64_t c = 0; c < wanted; c++) {
        before[c] = c < fields ? positions[c] : end - 1;
        ends[c] = c + 1 < fields ? positions[c + 1] : end;
    }
    return GAR_OK;
}

/* Walk the records of the index; takes at most max_rows. A bad record ends the chunk before it, so that errors come in the
 * order of the rows. */
static enum gar_status settle(const struct gar_csv_parser *parser,
                              const struct gar_csv_block *block, int64_t max_rows,
                              struct gar_csv_worker *worker, struct chunk *chunk,
                              struct gar_error *err)
{
    const uint32_t *positions = worker->positions;
    const uint8_t terminator = parser->rules.dialect.terminator;
    GAR_TRY(grow_matrix(worker, gar_min_i64(max_rows, chunk->index.line_ends) * parser->field_count,
                        err));
    int64_t rows = 0;
    int64_t first = 0;
    for (int64_t i = 1; i <= chunk->index.count && rows < max_rows; i++) {
        if (block->data[positions[i]] != terminator) {
            continue;
        }
        bool taken;
        const enum gar_status status = settle_record(parser, block, positions + first, i - first,
                                                     worker, rows, &taken, rows > 0 ? NULL : err);
        if (status < 0 && rows == 0) {
            return status;
        }
        if (status < 0) {
            break;
        }
        rows += taken;
        first = i;
    }
    chunk->before = worker->before;
    chunk->ends = worker->ends;
    chunk->rows = rows;
    chunk->end = (int64_t)(uint32_t)(positions[first] + 1);
    chunk->has_returns = false;
    return GAR_OK;
}

/* The next whole records from block->next on, at most max_rows; the index grows until one fits. */
static enum gar_status next_chunk(const struct gar_csv_parser *parser,
                                  struct gar_csv_worker *worker, const struct gar_csv_block *block,
                                  int64_t max_rows, struct chunk *chunk, struct gar_error *err)
{
    const int64_t fields = parser->field_count;
    int64_t capacity = gar_min_i64(CHUNK_FIELDS / fields + 1, max_rows) * fields + INDEX_SLACK;
    for (;;) {
        GAR_TRY(gar_grow((void **)&worker->positions, &worker->position_capacity, capacity + 1,
                         (int64_t)sizeof *worker->positions, err));
        enum gar_csv_state state = GAR_CSV_RECORD_START;
        bool has_returns;
        worker->positions[0] = (uint32_t)block->next - 1;
        gar_csv_index(&parser->rules.dialect, block->data, block->next, block->size, &state,
                      worker->positions + 1, capacity, &chunk->index);
        if (chunk->index.count >= fields && !parser->rules.dialect.has_comment &&
            is_regular(parser, block, worker->positions, &chunk->index, &has_returns)) {
            chunk->before = worker->positions;
            chunk->ends = worker->positions + 1;
            chunk->rows = gar_min_i64(chunk->index.count / fields, max_rows);
            chunk->end = (int64_t)worker->positions[chunk->rows * fields] + 1;
            chunk->has_returns = has_returns;
            return GAR_OK;
        }
        GAR_TRY(settle(parser, block, max_rows, worker, chunk, err));
        if (chunk->end > block->next) {
            return GAR_OK;
        }
        if (chunk->index.end == block->size) {
            return gar_error_set(err, GAR_ERR_FORMAT,
                                 "%s, line %lld: a quoted field is never closed", parser->path,
                                 (long long)line_at(parser, block, block->next));
        }
        capacity *= 2;
    }
}

/* ---- columns of a chunk ---- */

/* The column whose record ends in "\r\n": its fields apart, without the '\r'. */
static enum gar_status trim_returns(const struct gar_csv_block *block,
                                    struct gar_csv_worker *worker, int64_t rows,
                                    struct csv_fields *fields, struct gar_error *err)
{
    GAR_TRY(grow_matrix(worker, rows, err));
    for (int64_t r = 0; r < rows; r++) {
        const uint32_t before = fields->before[r * fields->stride];
        const uint32_t end = fields->ends[r * fields->stride];
        worker->before[r] = before;
        worker->ends[r] = end - (end != before + 1 && block->data[end - 1] == '\r');
    }
    fields->before = worker->before;
    fields->ends = worker->ends;
    fields->stride = 1;
    return GAR_OK;
}

static enum gar_status convert_chunk(const struct gar_csv_parser *parser,
                                     struct gar_csv_worker *worker,
                                     const struct gar_csv_block *block, const struct chunk *chunk,
                                     struct gar_error *err)
{
    struct csv_fields fields = {
        .data = block->data,
        .rows = chunk->rows,
        .has_escapes = chunk->index.has_escapes,
        .check_utf8 = chunk->index.has_wide && parser->has_text &&
                      !gar_utf8_valid(block->data + block->next, chunk->end - block->next),
    };
    enum csv_problem first_problem = CSV_FINE;
    int64_t first_row = INT64_MAX;
    int64_t first_column = 0;
    int64_t start = 0;
    int64_t end = 0;
    for (int64_t c = 0; c < parser->schema->count; c++) {
        const int64_t field = parser->columns[c].field;
        fields.before = chunk->before + field;
        fields.ends = chunk->ends + field;
        fields.stride = parser->field_count;
        if (chunk->has_returns && field == parser->field_count - 1) {
            GAR_TRY(trim_returns(block, worker, chunk->rows, &fields, err));
        }
        int64_t row = 0;
        const enum csv_problem problem =
            csv_convert(&parser->rules, &fields, &worker->targets[c], &row, err);
        if (problem == CSV_NO_MEMORY) {
            return GAR_ERR_NOMEM;
        }
        if (problem != CSV_FINE &&
            (row < first_row ||
             (row == first_row && field < parser->columns[first_column].field))) {
            first_problem = problem;
            first_row = row;
            first_column = c;
            start = (int64_t)(uint32_t)(fields.before[row * fields.stride] + 1);
            end = fields.ends[row * fields.stride];
        }
    }
    if (first_problem != CSV_FINE) {
        return report_value(parser, block, first_column, first_problem, start, end, err);
    }
    return GAR_OK;
}

/* ---- batches ---- */

static enum gar_status open_targets(const struct gar_csv_parser *parser,
                                    struct gar_csv_worker *worker,
                                    const struct gar_csv_block *block, int64_t capacity,
                                    struct gar_memory *memory, struct gar_error *err)
{
    GAR_TRY(gar_grow((void **)&worker->targets, &worker->target_capacity, parser->schema->count,
                     (int64_t)sizeof *worker->targets, err));
    for (int64_t c = 0; c < parser->schema->count; c++) {
        memset(&worker->targets[c], 0, sizeof worker->targets[c]);
    }
    worker->target_count = parser->schema->count;
    for (int64_t c = 0; c < parser->schema->count; c++) {
        GAR_TRY(csv_target_init(&worker->targets[c], parser->schema->fields[c].type, capacity,
                                memory, err));
        worker->targets[c].base = (int32_t)(block->data - block->owner->data);
    }
    return GAR_OK;
}

static void close_targets(struct gar_csv_worker *worker)
{
    for (int64_t c = 0; c < worker->target_count; c++) {
        csv_target_destroy(&worker->targets[c]);
    }
    worker->target_count = 0;
}

/* The targets as a batch; they are empty afterwards, also on failure. */
static enum gar_status make_batch(const struct gar_csv_parser *parser,
                                  struct gar_csv_worker *worker, const struct gar_csv_block *block,
                                  int64_t rows, struct gar_batch **out, struct gar_error *err)
{
    const int64_t count = parser->schema->count;
    struct gar_column **columns = gar_calloc(count, (int64_t)sizeof *columns);
    enum gar_status status =
        columns != NULL ? GAR_OK : gar_error_nomem(err, count * (int64_t)sizeof *columns);
    for (int64_t c = 0; c < count && status >= 0; c++) {
        status = csv_target_finish(&worker->targets[c], block->owner, &columns[c], err);
    }
    if (status >= 0) {
        status = gar_batch_new(parser->schema, columns, rows, out, err);
    }
    if (status < 0 && columns != NULL) {
        for (int64_t c = 0; c < count; c++) {
            gar_column_unref(columns[c]);
        }
    }
    gar_free(columns);
    return status;
}

static enum gar_status fill_targets(const struct gar_csv_parser *parser,
                                    struct gar_csv_worker *worker, struct gar_csv_block *block,
                                    int64_t max_rows, int64_t *out_rows, struct gar_error *err)
{
    int64_t rows = 0;
    while (block->next < block->size && rows < max_rows) {
        struct chunk chunk;
        GAR_TRY(next_chunk(parser, worker, block, max_rows - rows, &chunk, err));
        if (chunk.rows > 0) {
            GAR_TRY(convert_chunk(parser, worker, block, &chunk, err));
        }
        rows += chunk.rows;
        block->next = chunk.end;
    }
    *out_rows = rows;
    return GAR_OK;
}

enum gar_status gar_csv_parse(const struct gar_csv_parser *parser, struct gar_csv_worker *worker,
                              struct gar_csv_block *block, int64_t max_rows,
                              struct gar_memory *memory, struct gar_batch **out,
                              struct gar_error *err)
{
    if (block->next >= block->size) {
        return GAR_EOF;
    }
    const int64_t capacity = gar_min_i64(max_rows, gar_max_i64(block->line_ends, 1));
    int64_t rows = 0;
    enum gar_status status = open_targets(parser, worker, block, capacity, memory, err);
    if (status >= 0) {
        status = fill_targets(parser, worker, block, capacity, &rows, err);
    }
    if (status >= 0) {
        status = rows > 0 ? make_batch(parser, worker, block, rows, out, err) : GAR_EOF;
    }
    close_targets(worker);
    return status;
}

/* ---- single records ---- */

static enum gar_status append_cell(const struct gar_csv_dialect *d, const uint8_t *text,
                                   int64_t bytes, struct gar_csv_record *record,
                                   struct gar_error *err)
{
    GAR_TRY(gar_grow((void **)&record->cells, &record->capacity, record->count + 1,
                     (int64_t)sizeof *record->cells, err));
    GAR_TRY(gar_grow((void **)&record->text, &record->text_capacity, record->text_bytes + bytes + 1,
                     1, err));
    struct gar_csv_cell *cell = &record->cells[record->count++];
    cell->offset = record->text_bytes;
    cell->is_quoted =
        d->has_quote && bytes >= 2 && text[0] == d->quote && text[bytes - 1] == d->quote;
    const int64_t last = bytes - cell->is_quoted;
    char *to = record->text + cell->offset;
    int64_t count = 0;
    for (int64_t i = cell->is_quoted; i < last; i++) {
        const bool is_doubled = cell->is_quoted && text[i] == d->quote && d->double_quote;
        const bool is_escape = d->has_escape && text[i] == d->escape;
        i += (is_doubled || is_escape) && i + 1 < last;
        to[count++] = (char)text[i];
    }
    cell->bytes = count;
    record->text_bytes += count;
    return GAR_OK;
}

enum gar_status gar_csv_read_record(const struct gar_csv_dialect *dialect, const uint8_t *data,
                                    int64_t size, int64_t *at, int64_t *line,
                                    struct gar_csv_record *record, struct gar_error *err)
{
    uint32_t positions[INDEX_SLACK];
    enum gar_csv_state state = GAR_CSV_RECORD_START;
    int64_t start = *at; /* of the field */
    int64_t scanned = *at;
    record->count = 0;
    record->text_bytes = 0;
    record->line = *line;
    while (scanned < size) {
        struct gar_csv_index_result index;
        gar_csv_index(dialect, data, scanned, size, &state, positions, GAR_COUNT_OF(positions),
                      &index);
        scanned = index.end;
        for (int64_t i = 0; i < index.count; i++) {
            const int64_t end = positions[i];
            const bool is_end = data[end] == dialect->terminator;
            const bool has_return =
                is_end && dialect->terminator == '\n' && end > start && data[end - 1] == '\r';
            GAR_TRY(append_cell(dialect, data + start, end - start - has_return, record, err));
            start = end + 1;
            if (!is_end) {
                continue;
            }
            *line += gar_csv_count_byte(data + *at, start - *at, dialect->terminator);
            const bool is_comment = dialect->has_comment && data[*at] == dialect->comment;
            const bool is_empty =
                record->count == 1 && record->cells[0].bytes == 0 && !record->cells[0].is_quoted;
            *at = start;
            if (!is_comment && !is_empty) {
                return GAR_OK;
            }
            record->count = 0;
            record->text_bytes = 0;
            record->line = *line;
        }
    }
    if (start == size && record->count == 0) {
        return GAR_EOF;
    }
    if (gar_csv_state_is_open(state)) {
        return gar_error_set(err, GAR_ERR_FORMAT, "line %lld: a quoted field is never closed",
                             (long long)record->line);
    }
    GAR_TRY(append_cell(dialect, data + start, size - start, record, err));
    const bool is_comment = dialect->has_comment && data[*at] == dialect->comment;
    *at = size;
    return is_comment ? GAR_EOF : GAR_OK;
}

void gar_csv_record_destroy(struct gar_csv_record *record)
{
    gar_free(record->text);
    gar_free(record->cells);
    memset(record, 0, sizeof *record);
}
