/* SPDX-License-Identifier: Apache-2.0 */
/* Row pages: key rows (kernels/hash_rows.h) kept in pages without a single pointer, so that a page
 * may be written to a file and read
 * back at another address. Bytes of long texts lie in heap pages; a row names them by page and
 * offset. */
#ifndef GAR_EXEC_ROW_PAGE_H
#define GAR_EXEC_ROW_PAGE_H

#include "kernels/hash_rows.h"

struct gar_row_pages {
    struct gar_memory *memory;           /* borrowed */
    const struct gar_key_layout *layout; /* borrowed */
    int64_t count;                       /* rows */
    int32_t page_shift;                  /* rows of a page, as a power of two */
    struct gar_buffer **pages;           /* owned */
    int64_t page_count;
    int64_t page_capacity;
    struct gar_buffer **heaps; /* owned */
    int64_t heap_count;
    int64_t heap_capacity;
    int64_t heap_used; /* bytes of the newest heap page */
};

/* A text's place in a row: heap page in the high half, offset in the low one. */
GAR_INLINE const uint8_t *gar_row_pages_far(const struct gar_row_pages *pages, uint64_t place)
{
    return pages->heaps[place >> 32]->data + (uint32_t)place;
}

GAR_INLINE const uint64_t *gar_row_pages_at(const struct gar_row_pages *pages, int64_t row)
{
    const int64_t in_page = row & (((int64_t)1 << pages->page_shift) - 1);
    return (const uint64_t *)(const void *)pages->pages[row >> pages->page_shift]->data +
           in_page * pages->layout->words;
}

void gar_row_pages_init(struct gar_row_pages *pages, const struct gar_key_layout *layout,
                        struct gar_memory *memory);
void gar_row_pages_destroy(struct gar_row_pages *pages);
/* Copy a row whose far texts are pointers; it becomes row number count. Errors: GAR_ERR_NOMEM,
 * GAR_ERR_UNSUPPORTED. */
GAR_MUST_USE enum gar_status gar_row_pages_append(struct gar_row_pages *pages, const uint64_t *row,
                                                  struct gar_error *err);
/* A kept row as an outside one: places become pointers. out has layout->words words. */
void gar_row_pages_export(const struct gar_row_pages *pages, int64_t row, uint64_t *out);
/* Is the kept row equal to an outside one (hash included)? */
bool gar_row_pages_equal(const struct gar_row_pages *pages, int64_t row, const uint64_t *other);
/* Key column `index` of rows[0..count) (NULL: first, first + 1, ...) as a FLAT column. Errors:
 * GAR_ERR_NOMEM. */
GAR_MUST_USE enum gar_status gar_row_pages_column(const struct gar_row_pages *pages, int64_t index,
                                                  const uint32_t *rows, int64_t first,
                                                  int64_t count, struct gar_memory *memory,
                                                  struct gar_column **out, struct gar_error *err);

#endif
