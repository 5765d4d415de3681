/* SPDX-License-Identifier: Apache-2.0 */
/* CSV text, row by row. Room for a row's fixed-size cells is made once a row, for a text when it comes. */
#include "formats/csv/csv_writer.h"

#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "formats/text_cell.h"

#define ONES  UINT64_C(0x0101010101010101)
#define HIGHS UINT64_C(0x8080808080808080)

/* At least `bytes` more; false when refused. */
static bool make_room(struct gar_strbuf *out, int64_t bytes, struct gar_error *err)
{
    return gar_grow((void **)&out->data, &out->capacity, out->size + bytes + 1, 1, err) >= 0;
}

/* High bits of the bytes of x that equal the byte repeated in pattern. */
GAR_INLINE uint64_t equal_bytes(uint64_t x, uint64_t pattern)
{
    const uint64_t y = x ^ pattern;
    return (y - ONES) & ~y & HIGHS;
}

/* Must the text be quoted? */
static bool needs_quotes(const struct gar_csv_writer_options *options, const uint8_t *text,
                         int64_t bytes)
{
    if (bytes == 0) {
        return true;
    }
    const uint64_t delimiter = ONES * (uint8_t)options->delimiter;
    const uint64_t quote = ONES * (uint8_t)options->quote;
    int64_t i = 0;
    for (; i + 8 <= bytes; i += 8) {
        const uint64_t x = gar_load_u64(text + i);
        if ((equal_bytes(x, delimiter) | equal_bytes(x, quote) | equal_bytes(x, ONES * '\n') |
             equal_bytes(x, ONES * '\r')) != 0) {
            return true;
        }
    }
    for (; i < bytes; i++) {
        const uint8_t c = text[i];
        if (c == (uint8_t)options->delimiter || c == (uint8_t)options->quote || c == '\n' ||
            c == '\r') {
            return true;
        }
    }
    return false;
}

static enum gar_status put_text(const struct gar_csv_writer_options *options, const uint8_t *text,
                                int64_t bytes, struct gar_strbuf *out, struct gar_error *err)
{
    if (!needs_quotes(options, text, bytes)) {
        if (!make_room(out, bytes + 1, err)) {
            return GAR_ERR_NOMEM;
        }
        memcpy(out->data + out->size, text, (size_t)bytes);
        out->size += bytes;
        return GAR_OK;
    }
    if (!make_room(out, 2 * bytes + 3, err)) {
        return GAR_ERR_NOMEM;
    }
    char *to = out->data + out->size;
    *to++ = options->quote;
    for (int64_t i = 0; i < bytes; i++) {
        *to++ = (char)text[i];
        if ((char)text[i] == options->quote) {
            *to++ = options->quote;
        }
    }
    *to++ = options->quote;
    out->size = to - out->data;
    return GAR_OK;
}

enum gar_status gar_csv_writer_options_check(const struct gar_csv_writer_options *options,
                                             struct gar_error *err)
{
    const uint8_t d = (uint8_t)options->delimiter;
    if (d == 0 || d > 127 || d == '\n' || d == '\r' || options->delimiter == options->quote) {
        return gar_error_set(
            err, GAR_ERR_VALUE,
            "csv option delimiter must be one ASCII character other than a line end and the quote");
    }
    return GAR_OK;
}

enum gar_status gar_csv_write_header(const struct gar_schema *schema,
                                     const struct gar_csv_writer_options *options,
                                     struct gar_strbuf *out, struct gar_error *err)
{
    GAR_TRY(gar_csv_writer_options_check(options, err));
    for (int64_t c = 0; c < schema->count; c++) {
        const char *name = schema->fields[c].name;
        GAR_TRY(put_text(options, (const uint8_t *)name, (int64_t)strlen(name), out, err));
        if (!make_room(out, 2, err)) {
            return GAR_ERR_NOMEM;
        }
        out->data[out->size++] = c + 1 < schema->count ? options->delimiter : '\n';
    }
    return GAR_OK;
}

static enum gar_status put_cell(const struct gar_csv_writer_options *options,
                                const struct gar_column *column, const char *name, int64_t row,
                                struct gar_strbuf *out, struct gar_error *err)
{
    if (column->type.id == GAR_NULL ||
        (column->validity != NULL &&
         !gar_bit_get(column->validity, column->validity_offset + row))) {
        return GAR_OK;
    }
    if (!gar_type_is_text(column->type)) {
        out->size += gar_text_cell(column, row, out->data + out->size);
        return GAR_OK;
    }
    int64_t bytes;
    const uint8_t *text = gar_column_bytes_at(column, row, &bytes);
    if (column->type.id == GAR_BINARY && !gar_utf8_valid(text, bytes)) {
        return gar_error_set(
            err, GAR_ERR_VALUE,
            "column '%s', row %lld: a binary value that is not UTF-8 text cannot be written as CSV",
            name, (long long)row);
    }
    return put_text(options, text, bytes, out, err);
}

static enum gar_status put_rows(const struct gar_csv_writer_options *options,
                                const struct gar_text_columns *columns, struct gar_strbuf *out,
                                struct gar_error *err)
{
    const struct gar_schema *schema = columns->batch->schema;
    const int64_t room = schema->count * (GAR_TEXT_CELL_BYTES + 1) + 1;
    for (int64_t row = 0; row < columns->batch->rows; row++) {
        if (schema->count == 0 && !make_room(out, 1, err)) {
            return GAR_ERR_NOMEM;
        }
        for (int64_t c = 0; c < schema->count; c++) {
            /* Room for this cell and all that follow, texts apart. */
            if (out->capacity - out->size < room && !make_room(out, room, err)) {
                return GAR_ERR_NOMEM;
            }
            GAR_TRY(put_cell(options, columns->columns[c], schema->fields[c].name, row, out, err));
            if (c + 1 < schema->count) {
                if (out->capacity - out->size < 2 && !make_room(out, room, err)) {
                    return GAR_ERR_NOMEM;
                }
                out->data[out->size++] = options->delimiter;
            }
        }
        if (out->capacity - out->size < 2 && !make_room(out, room, err)) {
            return GAR_ERR_NOMEM;
        }
        out->data[out->size++] = '\n';
    }
    return GAR_OK;
}

enum gar_status gar_csv_write_batch(const struct gar_batch *batch,
                                    const struct gar_csv_writer_options *options,
                                    struct gar_memory *memory, struct gar_strbuf *out,
                                    struct gar_error *err)
{
    GAR_TRY(gar_csv_writer_options_check(options, err));
    struct gar_text_columns columns;
    GAR_TRY(gar_text_columns_init(&columns, batch, memory, err));
    const enum gar_status status = put_rows(options, &columns, out, err);
    if (out->data != NULL) {
        out->data[out->size] = '\0';
    }
    gar_text_columns_destroy(&columns);
    return status;
}
