/* SPDX-License-Identifier: Apache-2.0 */
/* JSON lines. The names are escaped once a batch; texts are copied in runs between characters that need an escape. */
#include "formats/json/json_writer.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/text_cell.h"

static bool is_plain(uint8_t c)
{
    return c >= 0x20 && c != '"' && c != '\\' && c != 0x7f;
}

static void put_escape(uint8_t c, struct gar_strbuf *out)
{
    static const char letters[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (int64_t i = 0; letters[i] != '\0'; i += 2) {
        if ((uint8_t)letters[i] == c) {
            gar_strbuf_append_char(out, '\\');
            gar_strbuf_append_char(out, letters[i + 1]);
            return;
        }
    }
    gar_strbuf_printf(out, "\\u%04x", (unsigned)c);
}

static void put_string(const uint8_t *text, int64_t bytes, struct gar_strbuf *out)
{
    gar_strbuf_append_char(out, '"');
    int64_t start = 0;
    for (int64_t i = 0; i < bytes; i++) {
        if (!is_plain(text[i])) {
            gar_strbuf_append_n(out, (const char *)text + start, i - start);
            put_escape(text[i], out);
            start = i + 1;
        }
    }
    gar_strbuf_append_n(out, (const char *)text + start, bytes - start);
    gar_strbuf_append_char(out, '"');
}

static void put_base64(const uint8_t *data, int64_t bytes, struct gar_strbuf *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    gar_strbuf_append_char(out, '"');
    for (int64_t i = 0; i < bytes; i += 3) {
        const int64_t left = bytes - i;
        const uint32_t x = (uint32_t)data[i] << 16 | (left > 1 ? (uint32_t)data[i + 1] << 8 : 0) |
                           (left > 2 ? (uint32_t)data[i + 2] : 0);
        const char quad[4] = {digits[x >> 18], digits[(x >> 12) & 63],
                              left > 1 ? digits[(x >> 6) & 63] : '=',
                              left > 2 ? digits[x & 63] : '='};
        gar_strbuf_append_n(out, quad, 4);
    }
    gar_strbuf_append_char(out, '"');
}

static bool is_finite(const struct gar_column *column, int64_t row)
{
    if (column->type.id == GAR_FLOAT64) {
        return isfinite(((const double *)column->values)[row]);
    }
    return column->type.id != GAR_FLOAT32 || isfinite(((const float *)column->values)[row]);
}

static void put_value(const struct gar_column *column, int64_t row, struct gar_strbuf *out)
{
    if (column->type.id == GAR_NULL ||
        (column->validity != NULL &&
         !gar_bit_get(column->validity, column->validity_offset + row)) ||
        !is_finite(column, row)) {
        gar_strbuf_append_n(out, "null", 4);
        return;
    }
    if (gar_type_is_text(column->type)) {
        int64_t bytes;
        const uint8_t *text = gar_column_bytes_at(column, row, &bytes);
        if (column->type.id == GAR_STRING) {
            put_string(text, bytes, out);
        } else {
            put_base64(text, bytes, out);
        }
        return;
    }
    char cell[GAR_TEXT_CELL_BYTES];
    const int32_t bytes = gar_text_cell(column, row, cell);
    const bool is_text = column->type.id == GAR_DATE || column->type.id == GAR_TIME ||
                         column->type.id == GAR_TIMESTAMP;
    if (is_text) {
        gar_strbuf_append_char(out, '"');
    }
    gar_strbuf_append_n(out, cell, bytes);
    if (is_text) {
        gar_strbuf_append_char(out, '"');
    }
}

/* {"a": and ,"b": one behind the other; ends[i] is where name i ends. */
static void put_names(const struct gar_schema *schema, struct gar_strbuf *names, int64_t *ends)
{
    for (int64_t c = 0; c < schema->count; c++) {
        const char *name = schema->fields[c].name;
        gar_strbuf_append_char(names, c == 0 ? '{' : ',');
        put_string((const uint8_t *)name, (int64_t)strlen(name), names);
        gar_strbuf_append_char(names, ':');
        ends[c] = names->size;
    }
}

static void put_rows(const struct gar_text_columns *columns, const struct gar_strbuf *names,
                     const int64_t *ends, struct gar_strbuf *out)
{
    const int64_t count = columns->batch->schema->count;
    for (int64_t row = 0; row < columns->batch->rows && !out->failed; row++) {
        int64_t start = 0;
        for (int64_t c = 0; c < count; c++) {
            gar_strbuf_append_n(out, names->data + start, ends[c] - start);
            put_value(columns->columns[c], row, out);
            start = ends[c];
        }
        gar_strbuf_append_n(out, count == 0 ? "{}\n" : "}\n", count == 0 ? 3 : 2);
    }
}

enum gar_status gar_json_write_batch(const struct gar_batch *batch, struct gar_memory *memory,
                                     struct gar_strbuf *out, struct gar_error *err)
{
    struct gar_text_columns columns;
    GAR_TRY(gar_text_columns_init(&columns, batch, memory, err));
    struct gar_strbuf names = {0};
    int64_t *ends = gar_calloc(batch->schema->count, (int64_t)sizeof *ends);
    if (ends != NULL) {
        put_names(batch->schema, &names, ends);
    }
    if (ends != NULL && !names.failed) {
        put_rows(&columns, &names, ends, out);
    }
    const bool is_whole = ends != NULL && !names.failed && !out->failed;
    gar_free(ends);
    gar_strbuf_destroy(&names);
    gar_text_columns_destroy(&columns);
    return is_whole ? GAR_OK : gar_error_nomem(err, out->size);
}
