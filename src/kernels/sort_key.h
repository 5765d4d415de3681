/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting rows by columns.
 *
 * The keys of a row are seen as one long bit string whose order is the order wanted: fixed-width values less the
 * smallest of their column, in as few bits as the column's range needs, nulls as one more value at
 * the end they belong to, all
 * bits inverted for descending; texts byte by byte. A row's first 64 bits are its first-level key.
 * Rows are sorted by
 * them; rows that are equal in them and have more bits are sorted by the next 64, and so on.
 *
 * NaN is the greatest float and equal to itself, -0.0 equals 0.0; texts compare by bytes; false is
 * before true. */
#ifndef GAR_KERNELS_SORT_KEY_H
#define GAR_KERNELS_SORT_KEY_H

#include "arrow/column.h"
#include "kernels/radix_sort.h"

struct gar_sort_column {
    struct gar_column *column; /* any encoding; borrowed for the life of the sorter */
    bool descending;
    bool nulls_first; /* whatever the direction */
};

struct gar_sorter;

/* Looks at all rows for ranges. Errors: GAR_ERR_NOMEM; GAR_ERR_UNSUPPORTED for 2^32 rows or more.
 * Owns: caller frees. */
GAR_MUST_USE enum gar_status gar_sorter_new(const struct gar_sort_column *columns, int64_t count,
                                            int64_t rows, struct gar_sorter **out,
                                            struct gar_error *err);
void gar_sorter_free(struct gar_sorter *sorter);

/* First-level keys of rows [first, first + count): out[i] = {key, first + i}. Significant bits are at the top. Threads: any
 * number on one sorter. */
void gar_sorter_fill(const struct gar_sorter *sorter, int64_t first, int64_t count,
                     struct gar_sort_entry *out);
/* Sort entries that fill made (any subset, in row order), equal rows in the order they come.
 * scratch: count entries. Ends early, in no order, when the task shall stop (base/stop.h): look again. Threads: any number. */
void gar_sorter_sort(const struct gar_sorter *sorter, struct gar_sort_entry *entries,
                     struct gar_sort_entry *scratch, int64_t count);
/* Rows [0, rows) of the key's column that do not come after row `bound_row` of `bound` (a column of the
 * same type) go to out, ascending; returns how many. Threads: any. */
int64_t gar_sort_not_after(const struct gar_sort_column *key, int64_t rows,
                           struct gar_column *bound, int64_t bound_row, uint32_t *out);
/* Order of two rows: negative, 0, positive. */
int32_t gar_sorter_compare(const struct gar_sorter *sorter, int64_t a, int64_t b);

#endif
