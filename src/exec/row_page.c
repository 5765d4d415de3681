/* SPDX-License-Identifier: Apache-2.0 */
/* Row pages: appending, comparing, and turning rows back into columns. */
#include "exec/row_page.h"

#include "base/alloc.h"

enum {
    FIRST_PAGE_BYTES = 4096, /* the first page, for small inputs; a page never moves */
    PAGE_BYTES = 1 << 18,
    HEAP_BYTES = 1 << 18,
    PAGE_ROWS_MIN_SHIFT = 6,
};

void gar_row_pages_init(struct gar_row_pages *pages, const struct gar_key_layout *layout,
                        struct gar_memory *memory)
{
    memset(pages, 0, sizeof *pages);
    pages->memory = memory;
    pages->layout = layout;
    const int64_t rows = gar_max_i64(PAGE_BYTES / ((int64_t)layout->words * 8), 1);
    pages->page_shift = PAGE_ROWS_MIN_SHIFT;
    while (((int64_t)2 << pages->page_shift) <= rows) {
        pages->page_shift++;
    }
}

void gar_row_pages_destroy(struct gar_row_pages *pages)
{
    for (int64_t i = 0; i < pages->page_count; i++) {
        gar_buffer_unref(pages->pages[i]);
    }
    for (int64_t i = 0; i < pages->heap_count; i++) {
        gar_buffer_unref(pages->heaps[i]);
    }
    gar_free(pages->pages);
    gar_free(pages->heaps);
    pages->pages = NULL;
    pages->heaps = NULL;
    pages->page_count = pages->heap_count = pages->count = 0;
}

/* The first page starts small and doubles in place until it is full, all others are whole. */
static enum gar_status room_for_row(struct gar_row_pages *pages, struct gar_error *err)
{
    const int64_t row_bytes = (int64_t)pages->layout->words * 8;
    const int64_t full_bytes = row_bytes << pages->page_shift;
    const int64_t page = pages->count >> pages->page_shift;
    const int64_t in_page = pages->count & (((int64_t)1 << pages->page_shift) - 1);
    if (page < pages->page_count) {
        struct gar_buffer *last = pages->pages[page];
        if ((in_page + 1) * row_bytes <= last->size) {
            return GAR_OK;
        }
        return gar_buffer_resize(last, gar_min_i64(last->size * 2, full_bytes), err);
    }
    GAR_TRY(gar_grow((void **)&pages->pages, &pages->page_capacity, page + 1,
                     (int64_t)sizeof *pages->pages, err));
    const int64_t bytes =
        page == 0 ? gar_min_i64(gar_max_i64(FIRST_PAGE_BYTES, row_bytes), full_bytes) : full_bytes;
    GAR_TRY(gar_buffer_new(pages->memory, bytes, &pages->pages[page], err));
    pages->page_count = page + 1;
    return GAR_OK;
}

static enum gar_status keep_bytes(struct gar_row_pages *pages, const uint8_t *bytes, int64_t size,
                                  uint64_t *out_place, struct gar_error *err)
{
    struct gar_buffer *heap = pages->heap_count > 0 ? pages->heaps[pages->heap_count - 1] : NULL;
    if (heap == NULL || pages->heap_used + size > heap->size) {
        GAR_TRY(gar_grow((void **)&pages->heaps, &pages->heap_capacity, pages->heap_count + 1,
                         (int64_t)sizeof *pages->heaps, err));
        const int64_t usual = pages->heap_count == 0 ? FIRST_PAGE_BYTES : HEAP_BYTES;
        GAR_TRY(gar_buffer_new(pages->memory, gar_max_i64(usual, size), &heap, err));
        pages->heaps[pages->heap_count++] = heap;
        pages->heap_used = 0;
    }
    memcpy(heap->data + pages->heap_used, bytes, (size_t)size);
    *out_place = ((uint64_t)(pages->heap_count - 1) << 32) | (uint64_t)pages->heap_used;
    pages->heap_used += size;
    return GAR_OK;
}

static bool is_far(const struct gar_key_column *key, const uint64_t *row)
{
    return key->is_text && gar_key_text_size(row[key->word]) > GAR_VIEW_INLINE_BYTES;
}

enum gar_status gar_row_pages_append(struct gar_row_pages *pages, const uint64_t *row,
                                     struct gar_error *err)
{
    const struct gar_key_layout *layout = pages->layout;
    GAR_TRY(room_for_row(pages, err));
    const int64_t in_page = pages->count & (((int64_t)1 << pages->page_shift) - 1);
    uint64_t *to = (uint64_t *)(void *)pages->pages[pages->count >> pages->page_shift]->data +
                   in_page * layout->words;
    memcpy(to, row, (size_t)layout->words * sizeof *to);
    for (int64_t c = 0; layout->text_count > 0 && c < layout->count; c++) {
        const struct gar_key_column *key = &layout->columns[c];
        if (is_far(key, row)) {
            GAR_TRY(keep_bytes(pages, gar_key_far(row[key->word + 1]),
                               gar_key_text_size(row[key->word]), &to[key->word + 1], err));
        }
    }
    pages->count++;
    return GAR_OK;
}

void gar_row_pages_export(const struct gar_row_pages *pages, int64_t row, uint64_t *out)
{
    const struct gar_key_layout *layout = pages->layout;
    memcpy(out, gar_row_pages_at(pages, row), (size_t)layout->words * sizeof *out);
    for (int64_t c = 0; layout->text_count > 0 && c < layout->count; c++) {
        const struct gar_key_column *key = &layout->columns[c];
        if (is_far(key, out)) {
            out[key->word + 1] = (uint64_t)(uintptr_t)gar_row_pages_far(pages, out[key->word + 1]);
        }
    }
}

/* Rows whose words differ are equal all the same when they differ only in the places of long texts
 * with equal bytes. */
static bool equal_but_for_places(const struct gar_row_pages *pages, const uint64_t *mine,
                                 const uint64_t *other)
{
    const struct gar_key_layout *layout = pages->layout;
    for (int64_t c = 0; c < layout->count; c++) {
        const struct gar_key_column *key = &layout->columns[c];
        const int32_t w = key->word;
        if (key->words == 0) {
            continue;
        }
        if (mine[w] != other[w]) {
            return false;
        }
        if (is_far(key, other)) {
            const size_t size = (size_t)gar_key_text_size(other[w]);
            const uint8_t *text = gar_row_pages_far(pages, mine[w + 1]);
            if (memcmp(text, gar_key_far(other[w + 1]), size) != 0) {
                return false;
            }
        } else if (key->words == 2 && mine[w + 1] != other[w + 1]) {
            return false;
        }
    }
    return true;
}

bool gar_row_pages_equal(const struct gar_row_pages *pages, int64_t row, const uint64_t *other)
{
    const struct gar_key_layout *layout = pages->layout;
    const uint64_t *mine = gar_row_pages_at(pages, row);
    uint64_t differs = 0;
    for (int32_t w = 0; w < layout->words; w++) {
        differs |= mine[w] ^ other[w];
    }
    if (differs == 0 || layout->text_count == 0) {
        return differs == 0;
    }
    for (int32_t w = 0; w < layout->null_words; w++) {
        if (mine[w] != other[w]) {
            return false;
        }
    }
    return equal_but_for_places(pages, mine, other);
}

static int64_t row_number(const uint32_t *rows, int64_t first, int64_t i)
{
    return rows != NULL ? (int64_t)rows[i] : first + i;
}

static void put_words(const struct gar_row_pages *pages, const struct gar_key_column *key,
                      const uint32_t *rows, int64_t first, int64_t count, struct gar_column *out)
{
    void *values = gar_column_values_mut(out);
    for (int64_t i = 0; i < count; i++) {
        const uint64_t *row = gar_row_pages_at(pages, row_number(rows, first, i));
        if (key->words == 2) {
            const gar_u128 v = ((gar_u128)row[key->word + 1] << 64) | row[key->word];
            ((gar_i128 *)values)[i] = (gar_i128)v;
        } else if (gar_type_width(key->type) == 8) {
            ((uint64_t *)values)[i] = row[key->word];
        } else {
            gar_key_store_word(out, i, row[key->word]);
        }
    }
}

/* Bytes of long texts among the rows from i on, as many rows as one data buffer takes; *out_end is
 * the row after. */
static int64_t far_bytes(const struct gar_row_pages *pages, const struct gar_key_column *key,
                         const uint32_t *rows, int64_t first, int64_t i, int64_t count,
                         int64_t *out_end)
{
    const int64_t limit = (int64_t)1 << 30;
    int64_t bytes = 0;
    for (; i < count; i++) {
        const uint64_t *row = gar_row_pages_at(pages, row_number(rows, first, i));
        const int64_t size = is_far(key, row) ? gar_key_text_size(row[key->word]) : 0;
        if (bytes > 0 && bytes + size > limit) {
            break;
        }
        bytes += size;
    }
    *out_end = i;
    return bytes;
}

static enum gar_status put_texts(const struct gar_row_pages *pages,
                                 const struct gar_key_column *key, const uint32_t *rows,
                                 int64_t first, int64_t count, struct gar_memory *memory,
                                 struct gar_column *out, struct gar_error *err)
{
    struct gar_string_view *views = (struct gar_string_view *)gar_column_values_mut(out);
    int64_t i = 0;
    while (i < count) {
        int64_t end = 0;
        const int64_t bytes = far_bytes(pages, key, rows, first, i, count, &end);
        struct gar_buffer *buffer = NULL;
        int32_t index = 0;
        int32_t at = 0;
        if (bytes > 0) {
            GAR_TRY(gar_buffer_new(memory, bytes, &buffer, err));
            const enum gar_status status = gar_column_add_data(out, buffer, &index, err);
            if (status < 0) {
                gar_buffer_unref(buffer);
                return status;
            }
        }
        for (; i < end; i++) {
            const uint64_t *row = gar_row_pages_at(pages, row_number(rows, first, i));
            if (is_far(key, row)) {
                const int32_t size = gar_key_text_size(row[key->word]);
                memcpy(buffer->data + at, gar_row_pages_far(pages, row[key->word + 1]),
                       (size_t)size);
                views[i] = gar_view_make(buffer->data + at, size, index, at);
                at += size;
            } else {
                memcpy(&views[i], &row[key->word], sizeof views[i]);
            }
        }
    }
    return GAR_OK;
}

static int64_t put_nulls(const struct gar_row_pages *pages, int64_t index, const uint32_t *rows,
                         int64_t first, int64_t count, struct gar_column *out)
{
    uint8_t *validity = gar_column_validity_mut(out);
    int64_t nulls = 0;
    for (int64_t i = 0; i < count; i++) {
        if (gar_key_is_null(gar_row_pages_at(pages, row_number(rows, first, i)), index)) {
            gar_bit_clear(validity, i);
            nulls++;
        }
    }
    return nulls;
}

enum gar_status gar_row_pages_column(const struct gar_row_pages *pages, int64_t index,
                                     const uint32_t *rows, int64_t first, int64_t count,
                                     struct gar_memory *memory, struct gar_column **out,
                                     struct gar_error *err)
{
    const struct gar_key_column *key = &pages->layout->columns[index];
    struct gar_column *column = NULL;
    if (key->type.id == GAR_NULL) {
        GAR_TRY(gar_column_new(memory, key->type, count, false, &column, err));
        column->null_count = count;
        *out = column;
        return GAR_OK;
    }
    bool has_nulls = false;
    for (int64_t i = 0; i < count && !has_nulls; i++) {
        has_nulls = gar_key_is_null(gar_row_pages_at(pages, row_number(rows, first, i)), index);
    }
    GAR_TRY(gar_column_new(memory, key->type, count, has_nulls, &column, err));
    enum gar_status status = GAR_OK;
    if (key->is_text) {
        status = put_texts(pages, key, rows, first, count, memory, column, err);
    } else {
        put_words(pages, key, rows, first, count, column);
    }
    if (status < 0) {
        gar_column_unref(column);
        return status;
    }
    column->null_count = has_nulls ? put_nulls(pages, index, rows, first, count, column) : 0;
    *out = column;
    return GAR_OK;
}
