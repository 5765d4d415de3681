/* SPDX-License-Identifier: Apache-2.0 */
/* What the Parquet tests share: reading a whole file from memory, and making files page by page. */
#ifndef GAR_FORMATS_PARQUET_PARQUET_TEST_PRIV_H
#define GAR_FORMATS_PARQUET_PARQUET_TEST_PRIV_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "formats/parquet/parquet.h"
#include "formats/parquet/parquet_priv.h"

/* A file's bytes in exactly as much memory, so that a sanitizer sees a byte too much. */
struct bytes {
    uint8_t *data;
    int64_t size;
};

static inline struct bytes bytes_copy(const void *data, int64_t size)
{
    struct bytes b = {malloc((size_t)(size > 0 ? size : 1)), size};
    assert_non_null(b.data);
    if (size > 0) {
        memcpy(b.data, data, (size_t)size);
    }
    return b;
}

static inline enum gar_status parse_file(struct bytes b, struct gar_parquet_file **out,
                                         struct gar_error *err)
{
    return gar_parquet_file_parse(b.data, b.size, b.size, out, err);
}

/* A reader over its own exact copy of the chunk. */
static inline enum gar_status open_chunk(struct bytes b, struct gar_parquet_file *file,
                                         int64_t group, int64_t column, bool flat,
                                         struct gar_parquet_reader **out, struct gar_error *err)
{
    GAR_TRY(gar_parquet_column_check(file, column, err));
    const struct gar_parquet_chunk *const chunk = gar_parquet_chunk(file, group, column);
    const struct bytes copy = bytes_copy(b.data + chunk->offset, chunk->bytes);
    struct gar_buffer *buffer = NULL;
    enum gar_status status =
        gar_buffer_new_foreign(copy.data, copy.size, free, copy.data, &buffer, err);
    if (status < 0) {
        free(copy.data);
        return status;
    }
    const struct gar_parquet_reader_options options = {.flat = flat};
    status = gar_parquet_reader_new(file, group, column, buffer, 0, &options, gar_memory_system(),
                                    out, err);
    gar_buffer_unref(buffer);
    return status;
}

static inline void check_valid(const struct gar_column *column)
{
    struct gar_error err = GAR_ERROR_INIT;
    if (gar_column_validate(column, &err) < 0) {
        char type[64];
        print_error("%s: %s\n", gar_type_text(column->type, type, sizeof type), err.message);
        fail();
    }
}

/* Reads and validates every readable column; rows that came from all of them, or the first failure. */
static inline enum gar_status read_everything(struct bytes b, int64_t step, bool flat,
                                              int64_t *out_rows, struct gar_error *err)
{
    struct gar_parquet_file *file = NULL;
    enum gar_status status = parse_file(b, &file, err);
    int64_t rows = 0;
    for (int64_t g = 0; status >= 0 && g < file->row_group_count; g++) {
        for (int64_t c = 0; status >= 0 && c < file->schema->count; c++) {
            struct gar_parquet_bounds bounds = {.rows = 0};
            status = gar_parquet_bounds_get(file, g, c, &bounds, err);
            if (status >= 0) {
                gar_parquet_bounds_destroy(&bounds);
            }
            if (status < 0 || file->columns[c].unsupported != NULL) {
                continue;
            }
            struct gar_parquet_reader *reader = NULL;
            status = open_chunk(b, file, g, c, flat, &reader, err);
            while (status >= 0 && gar_parquet_reader_left(reader) > 0) {
                struct gar_column *column = NULL;
                const int64_t n = gar_min_i64(step, gar_parquet_reader_left(reader));
                status = gar_parquet_reader_read(reader, n, &column, err);
                if (status >= 0) {
                    assert_int_equal(column->length, n);
                    check_valid(column);
                    rows += n;
                }
                gar_column_unref(column);
            }
            gar_parquet_reader_free(reader);
        }
    }
    gar_parquet_file_unref(file);
    *out_rows = rows;
    return status;
}

/* The same with a selection of every third row. */
static inline enum gar_status read_selections(struct bytes b, int64_t step, struct gar_error *err)
{
    struct gar_parquet_file *file = NULL;
    enum gar_status status = parse_file(b, &file, err);
    for (int64_t g = 0; status >= 0 && g < file->row_group_count; g++) {
        for (int64_t c = 0; status >= 0 && c < file->schema->count; c++) {
            if (file->columns[c].unsupported != NULL) {
                continue;
            }
            struct gar_parquet_reader *reader = NULL;
            status = open_chunk(b, file, g, c, (c & 1) != 0, &reader, err);
            while (status >= 0 && gar_parquet_reader_left(reader) > 0) {
                struct gar_column *column = NULL;
                uint32_t selection[64];
                const int64_t n =
                    gar_min_i64(gar_min_i64(step, 190), gar_parquet_reader_left(reader));
                int64_t count = 0;
                for (int64_t i = 1; i < n; i += 3) {
                    selection[count++] = (uint32_t)i;
                }
                status =
                    gar_parquet_reader_read_selected(reader, n, selection, count, &column, err);
                if (status >= 0) {
                    assert_int_equal(column->length, count);
                    check_valid(column);
                }
                gar_column_unref(column);
                if (status >= 0) {
                    status = gar_parquet_reader_skip(
                        reader, gar_min_i64(17, gar_parquet_reader_left(reader)), err);
                }
            }
            gar_parquet_reader_free(reader);
        }
    }
    gar_parquet_file_unref(file);
    return status;
}

/* One row of a column as text, for comparing with what is written down. */
static inline void text_of(const struct gar_column *column, int64_t row, char *out,
                           int64_t out_bytes)
{
    struct gar_value value;
    struct gar_strbuf text = {0};
    assert_int_equal(gar_value_from_column(column, row, &value, NULL), GAR_OK);
    gar_value_print(&value, &text);
    (void)snprintf(out, (size_t)out_bytes, "%s", gar_strbuf_text(&text));
    gar_strbuf_destroy(&text);
    gar_value_destroy(&value);
}

#endif
