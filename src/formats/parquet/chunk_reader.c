/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a column chunk: rows to columns, page by page.
 *
 * A plain read writes dense values straight to their rows in the output and spreads them there when there are nulls. A selected
 * read goes in blocks: blocks without a selected row are passed, blocks that are selected whole are read straight, and the
 * others pass through a buffer of one block from which the selected rows are taken. */
#include <string.h>

#include "base/alloc.h"
#include "formats/parquet/chunk_reader_priv.h"
#include "formats/parquet/spread_priv.h"

/* A column being read. */
struct output {
    struct gar_buffer *values;   /* owned; NULL for the null type */
    struct gar_buffer *validity; /* owned; NULL until the first null */
    int64_t rows;
    int64_t at; /* rows written */
    int64_t null_count;
    int32_t width; /* 0: bits */
};

enum gar_status gar_parquet_scratch_new(struct gar_memory *memory, struct gar_parquet_scratch **out,
                                        struct gar_error *err)
{
    struct gar_parquet_scratch *const scratch = gar_calloc(1, (int64_t)sizeof *scratch);
    if (scratch == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *scratch);
    }
    scratch->memory = gar_memory_ref(memory);
    *out = scratch;
    return GAR_OK;
}

void gar_parquet_scratch_free(struct gar_parquet_scratch *scratch)
{
    if (scratch == NULL) {
        return;
    }
    gar_page_codec_destroy(&scratch->codec);
    gar_memory_unref(scratch->memory);
    gar_free(scratch);
}

static enum gar_status check_data(const struct gar_parquet_reader *reader, int64_t data_offset,
                                  struct gar_error *err)
{
    if (data_offset < 0 || data_offset > reader->data->size ||
        reader->chunk->bytes > reader->data->size - data_offset) {
        return gar_error_set(err, GAR_ERR_INTERNAL,
                             "a column chunk of %lld bytes does not lie in the bytes given",
                             (long long)reader->chunk->bytes);
    }
    return GAR_OK;
}

static enum gar_status start_reader(struct gar_parquet_reader *reader,
                                    const struct gar_parquet_reader_options *options,
                                    struct gar_error *err)
{
    if (options != NULL && options->as_binary && reader->column->conversion == PARQUET_TEXT) {
        reader->as_binary = *reader->column;
        reader->as_binary.type = gar_type_of(GAR_BINARY);
        reader->as_binary.conversion = PARQUET_BYTES;
        reader->column = &reader->as_binary;
    }
    reader->scratch = options == NULL ? NULL : options->scratch;
    if (reader->scratch == NULL) {
        GAR_TRY(gar_parquet_scratch_new(reader->memory, &reader->own_scratch, err));
        reader->scratch = reader->own_scratch;
    }
    reader->codes = gar_malloc(PARQUET_BLOCK_VALUES * (int64_t)sizeof *reader->codes);
    if (reader->codes == NULL) {
        return gar_error_nomem(err, PARQUET_BLOCK_VALUES * (int64_t)sizeof *reader->codes);
    }
    if (reader->chunk->codec == GAR_PARQUET_LZO) {
        return gar_error_set(err, GAR_ERR_UNSUPPORTED,
                             "column '%s' is compressed with LZO, which is not supported",
                             reader->column->name);
    }
    GAR_TRY(gar_parquet_list_pages(reader, err));
    if (options != NULL && options->flat) {
        reader->is_dictionary = false;
    }
    return GAR_OK;
}

enum gar_status gar_parquet_reader_new(struct gar_parquet_file *file, int64_t row_group,
                                       int64_t column, struct gar_buffer *data, int64_t data_offset,
                                       const struct gar_parquet_reader_options *options,
                                       struct gar_memory *memory, struct gar_parquet_reader **out,
                                       struct gar_error *err)
{
    GAR_TRY(gar_parquet_column_check(file, column, err));
    struct gar_parquet_reader *const reader = gar_calloc(1, (int64_t)sizeof *reader);
    if (reader == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *reader);
    }
    reader->file = gar_parquet_file_ref(file);
    reader->column = &file->columns[column];
    reader->chunk = gar_parquet_chunk(file, row_group, column);
    reader->row_group = row_group;
    reader->data = gar_buffer_ref(data);
    reader->memory = gar_memory_ref(memory);
    reader->left = file->row_groups[row_group].rows;
    reader->page = PARQUET_AT_CHUNK;
    enum gar_status status = check_data(reader, data_offset, err);
    if (status >= 0) {
        reader->bytes = data->data + data_offset;
        status = start_reader(reader, options, err);
    }
    if (status < 0) {
        gar_parquet_reader_free(reader);
        return status;
    }
    *out = reader;
    return GAR_OK;
}

void gar_parquet_reader_free(struct gar_parquet_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    for (int64_t i = 0; i < reader->text.count; i++) {
        gar_buffer_unref(reader->text.buffers[i]);
    }
    gar_free(reader->text.buffers);
    gar_column_unref(reader->dictionary);
    gar_buffer_unref(reader->state.buffer);
    gar_buffer_unref(reader->page_buffer);
    gar_buffer_unref(reader->last_buffer);
    gar_buffer_unref(reader->data);
    gar_free(reader->pages);
    gar_free(reader->codes);
    gar_free(reader->block);
    gar_parquet_scratch_free(reader->own_scratch);
    gar_memory_unref(reader->memory);
    gar_parquet_file_unref(reader->file);
    gar_free(reader);
}

int64_t gar_parquet_reader_left(const struct gar_parquet_reader *reader)
{
    return reader->left;
}

bool gar_parquet_reader_is_dictionary(const struct gar_parquet_reader *reader)
{
    return reader->is_dictionary;
}

enum gar_status gar_parquet_reader_dictionary(struct gar_parquet_reader *reader,
                                              struct gar_column **out, uint64_t *out_id,
                                              struct gar_error *err)
{
    if (!reader->is_dictionary) {
        return gar_error_set(err, GAR_ERR_INTERNAL,
                             "column '%s' has no dictionary for the whole row group",
                             reader->column->name);
    }
    GAR_TRY(gar_parquet_need_dictionary(reader, err));
    *out = gar_column_ref(reader->dictionary);
    *out_id = reader->dictionary_id;
    return GAR_OK;
}

/* Loads the next page if the current one is used up. There must be rows left. */
static enum gar_status need_page(struct gar_parquet_reader *reader, struct gar_error *err)
{
    while (reader->state.left == 0) {
        const struct parquet_page *const page = &reader->pages[reader->next_page];
        reader->page = reader->next_page++;
        if (page->values > 0) {
            GAR_TRY(gar_parquet_load_page(reader, page, false, err));
        }
    }
    return GAR_OK;
}

static enum gar_status fail_levels(const struct gar_parquet_reader *reader, struct gar_error *err)
{
    return gar_parquet_page_fail(
        reader, err, "the page holds fewer levels than its header says, or they are malformed");
}

/* The next count levels as bits from `offset` of bits; *out_set of them are 1 (not null). */
static enum gar_status read_levels(struct gar_parquet_reader *reader, int64_t count, uint8_t *bits,
                                   int64_t offset, int64_t *out_set, struct gar_error *err)
{
    struct parquet_page_state *const state = &reader->state;
    if (state->level_kind == PARQUET_LEVELS_PACKED) {
        gar_packed_levels_read(state->packed_levels, state->packed_at, count, bits, offset,
                               out_set);
        state->packed_at += count;
        return GAR_OK;
    }
    return gar_rle_read_bits(&state->levels, count, bits, offset, out_set)
               ? GAR_OK
               : fail_levels(reader, err);
}

static enum gar_status skip_levels(struct gar_parquet_reader *reader, int64_t count,
                                   int64_t *out_set, struct gar_error *err)
{
    struct parquet_page_state *const state = &reader->state;
    if (state->level_kind == PARQUET_LEVELS_NONE) {
        *out_set = count;
        return GAR_OK;
    }
    if (state->level_kind == PARQUET_LEVELS_RLE) {
        return gar_rle_skip_bits(&state->levels, count, out_set) ? GAR_OK
                                                                 : fail_levels(reader, err);
    }
    uint8_t bits[PARQUET_BLOCK_VALUES / 8];
    int64_t total = 0;
    while (count > 0) {
        const int64_t n = gar_min_i64(count, PARQUET_BLOCK_VALUES);
        int64_t set = 0;
        GAR_TRY(read_levels(reader, n, bits, 0, &set, err));
        total += set;
        count -= n;
    }
    *out_set = total;
    return GAR_OK;
}

/* Are the next count levels one run of "not null"? Then the bitmap need not be touched. */
static bool all_valid_ahead(const struct parquet_page_state *state, int64_t count)
{
    return state->level_kind == PARQUET_LEVELS_NONE ||
           (state->level_kind == PARQUET_LEVELS_RLE && !state->levels.is_packed &&
            state->levels.left >= count && state->levels.value == 1);
}

static enum gar_status need_validity(struct gar_parquet_reader *reader, struct output *output,
                                     struct gar_error *err)
{
    if (output->validity == NULL) {
        GAR_TRY(
            gar_buffer_new(reader->memory, gar_bits_bytes(output->rows), &output->validity, err));
        memset(output->validity->data, 0xff, (size_t)output->validity->size);
    }
    return GAR_OK;
}

/* The next n rows, which the loaded page has, straight to the output. */
static enum gar_status read_rows(struct gar_parquet_reader *reader, int64_t n,
                                 struct output *output, struct gar_error *err)
{
    int64_t set = n;
    if (all_valid_ahead(&reader->state, n)) {
        GAR_TRY(skip_levels(reader, n, &set, err));
    } else {
        GAR_TRY(need_validity(reader, output, err));
        GAR_TRY(read_levels(reader, n, output->validity->data, output->at, &set, err));
    }
    output->null_count += n - set;
    if (output->values != NULL) {
        uint8_t *const values = output->values->data;
        uint8_t *const to = output->width == 0 ? values : values + output->at * output->width;
        if (set > 0) {
            GAR_TRY(gar_parquet_decode_dense(reader, set, to, output->at, err));
        }
        if (set < n && output->width == 0) {
            gar_spread_bits(values, output->at, output->validity->data, output->at, n, set);
        } else if (set < n) {
            gar_spread(to, output->width, output->validity->data, output->at, n, set);
        }
    } else if (set > 0) {
        return gar_parquet_page_fail(reader, err, "a column of nulls has a value");
    }
    output->at += n;
    reader->state.left -= n;
    reader->left -= n;
    return GAR_OK;
}

static enum gar_status skip_rows(struct gar_parquet_reader *reader, int64_t n,
                                 struct gar_error *err)
{
    int64_t set = 0;
    GAR_TRY(skip_levels(reader, n, &set, err));
    if (set > 0) {
        GAR_TRY(gar_parquet_skip_dense(reader, set, err));
    }
    reader->state.left -= n;
    reader->left -= n;
    return GAR_OK;
}

static void output_destroy(struct output *output)
{
    gar_buffer_unref(output->values);
    gar_buffer_unref(output->validity);
}

static bool is_text(const struct gar_parquet_reader *reader)
{
    return gar_type_is_text(reader->column->type);
}

/* Memory for `rows` rows, and the dictionary if any page may need it. */
static enum gar_status output_init(struct gar_parquet_reader *reader, int64_t rows,
                                   struct output *output, struct gar_error *err)
{
    *output = (struct output){.rows = rows, .width = gar_parquet_dense_bytes(reader)};
    if (reader->column->conversion == PARQUET_ALL_NULL) {
        return GAR_OK;
    }
    if (reader->has_dictionary_page && rows > 0) {
        GAR_TRY(gar_parquet_need_dictionary(reader, err));
        const struct gar_column *const dictionary = reader->dictionary;
        if (!reader->is_dictionary && dictionary->data_count > 0) {
            /* Views of the dictionary name buffer 0. */
            int32_t number = 0;
            GAR_TRY(
                gar_parquet_text_add(reader, gar_buffer_ref(dictionary->data[0]), &number, err));
        }
    }
    if (output->width == 0) {
        return gar_buffer_new_zeroed(reader->memory, gar_bits_bytes(rows), &output->values, err);
    }
    return gar_buffer_new(reader->memory, rows * output->width, &output->values, err);
}

static enum gar_status make_column(struct gar_parquet_reader *reader, struct output *output,
                                   struct gar_column **out, struct gar_error *err)
{
    if (output->null_count == 0) {
        gar_buffer_unref(output->validity);
        output->validity = NULL;
    }
    if (reader->column->conversion == PARQUET_ALL_NULL) {
        return gar_column_new_null(reader->memory, reader->column->type, output->rows, out, err);
    }
    if (reader->is_dictionary && reader->dictionary != NULL) {
        struct gar_column *const dictionary = gar_column_ref(reader->dictionary);
        const enum gar_status status = gar_column_new_dictionary(
            output->values, output->rows, output->validity, output->null_count, dictionary,
            reader->dictionary_id, out, err);
        if (status < 0) {
            gar_column_unref(dictionary);
            return status;
        }
    } else {
        const struct gar_column_parts parts = {
            .type = reader->column->type,
            .length = output->rows,
            .null_count = output->null_count,
            .validity = output->validity,
            .values = output->values,
            .data = reader->text.buffers,
            .data_count = is_text(reader) ? (int32_t)reader->text.count : 0};
        for (int32_t i = 0; i < parts.data_count; i++) {
            (void)gar_buffer_ref(parts.data[i]);
        }
        const enum gar_status status = gar_column_from_parts(&parts, out, err);
        if (status < 0) {
            for (int32_t i = 0; i < parts.data_count; i++) {
                gar_buffer_unref(parts.data[i]);
            }
            return status;
        }
    }
    output->values = NULL;
    output->validity = NULL;
    return gar_parquet_text_reset(reader, err);
}

static enum gar_status finish(struct gar_parquet_reader *reader, enum gar_status status,
                              struct output *output, struct gar_column **out, struct gar_error *err)
{
    if (status >= 0) {
        struct gar_column *column = NULL;
        status = make_column(reader, output, &column, err);
        if (status >= 0) {
            *out = column;
        } else {
            gar_column_unref(column);
        }
    }
    output_destroy(output);
    return status;
}

static enum gar_status check_rows(const struct gar_parquet_reader *reader, int64_t rows,
                                  struct gar_error *err)
{
    if (rows < 0 || rows > reader->left) {
        return gar_error_set(err, GAR_ERR_INTERNAL,
                             "column '%s': %lld rows asked of a chunk with %lld left",
                             reader->column->name, (long long)rows, (long long)reader->left);
    }
    return GAR_OK;
}

enum gar_status gar_parquet_reader_read(struct gar_parquet_reader *reader, int64_t rows,
                                        struct gar_column **out, struct gar_error *err)
{
    GAR_TRY(check_rows(reader, rows, err));
    struct output output;
    enum gar_status status = output_init(reader, rows, &output, err);
    while (status >= 0 && output.at < rows) {
        status = need_page(reader, err);
        if (status >= 0) {
            status =
                read_rows(reader, gar_min_i64(rows - output.at, reader->state.left), &output, err);
        }
    }
    return finish(reader, status, &output, out, err);
}

enum gar_status gar_parquet_reader_skip(struct gar_parquet_reader *reader, int64_t rows,
                                        struct gar_error *err)
{
    GAR_TRY(check_rows(reader, rows, err));
    while (rows > 0) {
        if (reader->state.left == 0) {
            const struct parquet_page *const page = &reader->pages[reader->next_page];
            if (page->values <= rows) {
                rows -= page->values;
                reader->left -= page->values;
                reader->next_page++;
                continue;
            }
        }
        GAR_TRY(need_page(reader, err));
        const int64_t n = gar_min_i64(rows, reader->state.left);
        if (n < reader->state.left) {
            if (reader->has_dictionary_page) {
                GAR_TRY(gar_parquet_need_dictionary(reader, err));
            }
            GAR_TRY(skip_rows(reader, n, err));
            GAR_TRY(gar_parquet_text_reset(reader, err));
        } else {
            reader->state.left = 0;
            reader->left -= n;
        }
        rows -= n;
    }
    return GAR_OK;
}

/* Takes the selected of n rows that lie dense in reader->block. rows are numbered from `base`. */
static void take_selected(const struct gar_parquet_reader *reader, const uint32_t *selection,
                          int64_t count, int64_t base, const uint8_t *bits, bool has_nulls,
                          struct output *output)
{
    uint8_t *const values = output->values->data;
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = (int64_t)selection[i] - base;
        const int64_t to = output->at + i;
        if (has_nulls && !gar_bit_get(bits, row)) {
            gar_bit_clear(output->validity->data, to);
            output->null_count++;
        }
        switch (output->width) {
        case 0: gar_bit_put(values, to, gar_bit_get(reader->block, row)); break;
        case 1: values[to] = reader->block[row]; break;
        case 2: memcpy(values + 2 * to, reader->block + 2 * row, 2); break;
        case 4: memcpy(values + 4 * to, reader->block + 4 * row, 4); break;
        case 8: memcpy(values + 8 * to, reader->block + 8 * row, 8); break;
        default: memcpy(values + 16 * to, reader->block + 16 * row, 16); break;
        }
    }
}

/* Decodes n rows (at most a block) of the loaded page and takes the selected ones. */
static enum gar_status read_block(struct gar_parquet_reader *reader, int64_t n,
                                  const uint32_t *selection, int64_t count, int64_t base,
                                  struct output *output, struct gar_error *err)
{
    uint8_t bits[PARQUET_BLOCK_VALUES / 8];
    int64_t set = n;
    if (reader->state.level_kind != PARQUET_LEVELS_NONE) {
        GAR_TRY(read_levels(reader, n, bits, 0, &set, err));
    }
    if (set < n) {
        GAR_TRY(need_validity(reader, output, err));
    }
    if (set > 0) {
        GAR_TRY(gar_parquet_decode_dense(reader, set, reader->block, 0, err));
    }
    if (set < n && output->width == 0) {
        gar_spread_bits(reader->block, 0, bits, 0, n, set);
    } else if (set < n) {
        gar_spread(reader->block, output->width, bits, 0, n, set);
    }
    take_selected(reader, selection, count, base, bits, set < n, output);
    output->at += count;
    reader->state.left -= n;
    reader->left -= n;
    return GAR_OK;
}

/* Rows [base, base + n) of the span, of which selection[0..count) are wanted; the loaded page has them all. */
static enum gar_status read_span(struct gar_parquet_reader *reader, int64_t base, int64_t n,
                                 const uint32_t *selection, int64_t count, struct output *output,
                                 struct gar_error *err)
{
    const int64_t end = base + n;
    while (base < end) {
        if (count == 0) {
            /* What is left of a page that ends with this span need not be looked at. */
            if (end - base == reader->state.left) {
                reader->left -= end - base;
                reader->state.left = 0;
                return GAR_OK;
            }
            return skip_rows(reader, end - base, err);
        }
        const int64_t gap = (int64_t)selection[0] - base;
        if (gap >= PARQUET_BLOCK_VALUES) {
            GAR_TRY(skip_rows(reader, gap, err));
            base += gap;
        }
        const int64_t block = gar_min_i64(PARQUET_BLOCK_VALUES, end - base);
        int64_t here = 0;
        while (here < count && (int64_t)selection[here] < base + block) {
            here++;
        }
        GAR_TRY(here == block ? read_rows(reader, block, output, err)
                              : read_block(reader, block, selection, here, base, output, err));
        selection += here;
        count -= here;
        base += block;
    }
    return GAR_OK;
}

static enum gar_status read_selection(struct gar_parquet_reader *reader, int64_t rows,
                                      const uint32_t *selection, int64_t count,
                                      struct output *output, struct gar_error *err)
{
    int64_t base = 0;
    int64_t next = 0;
    while (base < rows) {
        if (reader->state.left == 0) {
            const struct parquet_page *const page = &reader->pages[reader->next_page];
            const int64_t wanted_at = next < count ? (int64_t)selection[next] : rows;
            if (page->values <= rows - base && wanted_at >= base + page->values) {
                base += page->values;
                reader->left -= page->values;
                reader->next_page++;
                continue;
            }
        }
        GAR_TRY(need_page(reader, err));
        const int64_t n = gar_min_i64(rows - base, reader->state.left);
        int64_t here = next;
        while (here < count && (int64_t)selection[here] < base + n) {
            here++;
        }
        GAR_TRY(read_span(reader, base, n, selection + next, here - next, output, err));
        next = here;
        base += n;
    }
    return GAR_OK;
}

enum gar_status gar_parquet_reader_read_selected(struct gar_parquet_reader *reader, int64_t rows,
                                                 const uint32_t *selection, int64_t count,
                                                 struct gar_column **out, struct gar_error *err)
{
    GAR_TRY(check_rows(reader, rows, err));
    if (count == rows) {
        return gar_parquet_reader_read(reader, rows, out, err);
    }
    if (reader->block == NULL) {
        reader->block = gar_malloc(PARQUET_BLOCK_VALUES * 16);
        if (reader->block == NULL) {
            return gar_error_nomem(err, PARQUET_BLOCK_VALUES * 16);
        }
    }
    struct output output;
    if (reader->column->conversion == PARQUET_ALL_NULL) {
        GAR_TRY(gar_parquet_reader_skip(reader, rows, err));
        return gar_column_new_null(reader->memory, reader->column->type, count, out, err);
    }
    enum gar_status status = output_init(reader, count, &output, err);
    if (status >= 0) {
        status = read_selection(reader, rows, selection, count, &output, err);
    }
    return finish(reader, status, &output, out, err);
}
