/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share about columns: the counted set of string data buffers. */
#ifndef GAR_ARROW_COLUMN_PRIV_H
#define GAR_ARROW_COLUMN_PRIV_H

#include "arrow/column.h"

/* A column's `data` and `data_pointers` lie in one block with a count in front, so that slices and gathered columns share
 * all string buffers with one increment. */
struct data_set {
    int64_t refs;                 /* atomic */
    int64_t capacity;             /* items in each of the two arrays */
    struct gar_buffer *buffers[]; /* capacity items, then capacity pointers to their data */
};

/* Use the same data buffers as `from` (FLAT); `to` has none yet. */
void column_share_data(struct gar_column *to, const struct gar_column *from);
/* Do both use the very same set? Then view buffer numbers agree. */
bool column_same_data(const struct gar_column *a, const struct gar_column *b);
/* A zeroed column with one reference. */
struct gar_column *column_alloc(struct gar_type type, enum gar_encoding encoding, int64_t length,
                                struct gar_error *err);
/* Copy the validity of `column` (any encoding but CONSTANT) to bits [to_offset, to_offset + length) of `to`. */
void column_copy_validity(const struct gar_column *column, uint8_t *to, int64_t to_offset);
/* Give `to` the same validity as `from` (same rows), sharing the bitmap. */
void column_share_validity(struct gar_column *to, const struct gar_column *from);
/* Use the same children as `from`; `to` has none yet. */
enum gar_status column_share_children(struct gar_column *to, const struct gar_column *from,
                                      struct gar_error *err);
/* Room for the children of a nested column, all NULL; nothing for other types. */
enum gar_status column_alloc_children(struct gar_column *to, struct gar_error *err);
/* Nested cases of what gather.h declares (gather_nested.c); the column is nested and, but for flatten, FLAT. */
enum gar_status nested_gather_i64(const struct gar_column *column, const int64_t *rows,
                                  int64_t count, struct gar_memory *memory, struct gar_column **out,
                                  struct gar_error *err);
enum gar_status nested_gather(const struct gar_column *column, const uint32_t *rows, int64_t count,
                              struct gar_memory *memory, struct gar_column **out,
                              struct gar_error *err);
enum gar_status nested_flatten(const struct gar_column *column, struct gar_memory *memory,
                               struct gar_column **out, struct gar_error *err);
enum gar_status nested_concat(struct gar_column *const *columns, int64_t count,
                              struct gar_type type, struct gar_memory *memory,
                              struct gar_column **out, struct gar_error *err);
enum gar_status nested_compact(const struct gar_column *column, bool force,
                               struct gar_memory *memory, struct gar_column **out,
                               struct gar_error *err);

#endif
