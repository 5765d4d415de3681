/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of this folder: text in padded memory, cut into blocks of a given size, parsed, printed. */
#ifndef GAR_FORMATS_CSV_CSV_TEST_PRIV_H
#define GAR_FORMATS_CSV_CSV_TEST_PRIV_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h> /* needs the ones above */
/* clang-format on */

#include "arrow/value.h"
#include "formats/csv/csv_parse.h"

/* Text with the padding that the functions ask for. */
static inline struct gar_buffer *padded_text(const void *text, int64_t bytes)
{
    struct gar_error err = GAR_ERROR_INIT;
    struct gar_buffer *buffer = NULL;
    if (gar_buffer_new(gar_memory_system(), bytes + 2 * GAR_CSV_PAD_BYTES, &buffer, &err) < 0) {
        return NULL;
    }
    memset(buffer->data, 'X', (size_t)buffer->size);
    if (bytes > 0) {
        memcpy(buffer->data + GAR_CSV_PAD_BYTES, text, (size_t)bytes);
    }
    return buffer;
}

/* "1,'a',null;" a row: values as SQL text. */
static inline void print_rows(const struct gar_batch *batch, struct gar_strbuf *out)
{
    for (int64_t r = 0; r < batch->rows; r++) {
        for (int64_t c = 0; c < batch->schema->count; c++) {
            struct gar_error err = GAR_ERROR_INIT;
            struct gar_value value = {0};
            if (gar_value_from_column(batch->columns[c], r, &value, &err) < 0) {
                gar_strbuf_append(out, err.message);
            }
            gar_strbuf_append(out, c > 0 ? "," : "");
            gar_value_print(&value, out);
            gar_value_destroy(&value);
        }
        gar_strbuf_append_char(out, ';');
    }
}

/* Parse `bytes` of text in pieces of block_bytes (cut where records end) and max_rows rows; errors give "error:
 * ...". The text's last record may lack its line end. */
static inline void parse_text(const struct gar_csv_parser *parser,
                              const struct gar_csv_dialect *dialect, const uint8_t *text,
                              int64_t bytes, int64_t block_bytes, int64_t max_rows,
                              struct gar_strbuf *out)
{
    struct gar_error err = GAR_ERROR_INIT;
    struct gar_csv_worker *worker = NULL;
    enum gar_status status = gar_csv_worker_new(&worker, &err);
    enum gar_csv_state state = GAR_CSV_RECORD_START;
    int64_t start = 0;
    int64_t line = 1;
    int64_t lines = 0;
    for (int64_t at = 0; at < bytes && status >= 0; at += block_bytes) {
        const int64_t until = gar_min_i64(bytes, at + block_bytes);
        struct gar_buffer *whole = padded_text(text + at, until - at);
        struct gar_csv_split_result split;
        gar_csv_split(dialect, whole->data + GAR_CSV_PAD_BYTES, 0, until - at, &state, &split);
        gar_buffer_unref(whole);
        lines += split.line_ends;
        int64_t end = split.last_end >= 0 ? at + split.last_end : start;
        const bool is_last = until == bytes;
        if (end == start && !is_last) {
            continue;
        }
        end = is_last ? bytes : end;
        const bool lacks_end = end > start && text[end - 1] != dialect->terminator;
        struct gar_buffer *block_text = padded_text(text + start, end - start + lacks_end);
        if (lacks_end) {
            block_text->data[GAR_CSV_PAD_BYTES + end - start] = dialect->terminator;
        }
        struct gar_csv_block block = {
            .owner = block_text,
            .data = block_text->data + GAR_CSV_PAD_BYTES,
            .size = end - start + lacks_end,
            .first_line = line,
            .line_ends = lines + lacks_end,
        };
        struct gar_batch *batch = NULL;
        while ((status = gar_csv_parse(parser, worker, &block, max_rows, gar_memory_system(),
                                       &batch, &err)) == GAR_OK) {
            print_rows(batch, out);
            gar_batch_unref(batch);
        }
        line += gar_csv_count_byte(text + start, end - start, dialect->terminator);
        lines = 0;
        start = end;
        gar_buffer_unref(block_text);
    }
    if (status < 0) {
        gar_strbuf_clear(out); /* how many rows came before depends on the block size */
        gar_strbuf_append(out, "error: ");
        gar_strbuf_append(out, err.message);
    }
    gar_csv_worker_free(worker);
}

#endif
