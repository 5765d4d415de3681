/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: a schema, its columns, a row count and an optional selection. Immutable and counted once published.
 *
 * A batch may know its origin: which rows of the query's input its rows are, for messages. Row i is row first_row + i, or
 * first_row + row_of[i] where a filter dropped rows before the columns were made; first_row -1: not known. Sources set it;
 * select, slice and gather keep it where that costs nothing, everything else forgets it. */
#ifndef GAR_ARROW_BATCH_H
#define GAR_ARROW_BATCH_H

#include "arrow/column.h"
#include "arrow/schema.h"

struct gar_batch {
    int64_t refs;                       /* atomic */
    struct gar_schema *schema;          /* owned reference */
    int64_t rows;                       /* rows of each column */
    struct gar_column **columns;        /* schema->count owned references */
    struct gar_buffer *selection_owner; /* owned, or NULL */
    const uint32_t *selection;          /* rows that count, ascending; NULL: all */
    int64_t selected;                   /* how many; = rows without a selection */
    int64_t first_row;                  /* origin; -1: not known */
    struct gar_buffer *row_owner;       /* owned, or NULL */
    const uint32_t *row_of; /* `rows` items in row_owner; NULL: rows follow each other */
};

/* Takes over (moves) the column references on success; each has `rows` rows and the schema's type.
 * Errors: GAR_ERR_NOMEM; GAR_ERR_INTERNAL when lengths or types differ. Owns: caller unrefs. */
GAR_MUST_USE enum gar_status gar_batch_new(struct gar_schema *schema, struct gar_column **columns,
                                           int64_t rows, struct gar_batch **out,
                                           struct gar_error *err);
struct gar_batch *gar_batch_ref(const struct gar_batch *batch);
void gar_batch_unref(struct gar_batch *batch);
/* The same columns seen through a selection (buffer of uint32_t, moved; replaces an existing one). */
GAR_MUST_USE enum gar_status gar_batch_select(const struct gar_batch *batch,
                                              struct gar_buffer *selection, int64_t selected,
                                              struct gar_batch **out, struct gar_error *err);
/* Rows [offset, offset+length) of the selected rows. */
GAR_MUST_USE enum gar_status gar_batch_slice(const struct gar_batch *batch, int64_t offset,
                                             int64_t length, struct gar_batch **out,
                                             struct gar_error *err);
/* No selection any more: gathered columns. Without a selection: a new reference. */
GAR_MUST_USE enum gar_status gar_batch_gather(const struct gar_batch *batch,
                                              struct gar_memory *memory, struct gar_batch **out,
                                              struct gar_error *err);
/* One batch of all rows of all (same schema). count 0 needs schema. */
GAR_MUST_USE enum gar_status gar_batch_concat(struct gar_schema *schema,
                                              struct gar_batch *const *batches, int64_t count,
                                              struct gar_memory *memory, struct gar_batch **out,
                                              struct gar_error *err);
/* The row of the input that row `row` is; -1: not known. */
GAR_INLINE int64_t gar_batch_origin(const struct gar_batch *batch, int64_t row)
{
    return batch->first_row < 0
               ? -1
               : batch->first_row + (batch->row_of != NULL ? batch->row_of[row] : row);
}
/* Before it is published: its rows follow each other from first_row on. */
void gar_batch_set_origin(struct gar_batch *batch, int64_t first_row);
/* Before it is published: its rows are those of first_row + row_of (buffer of uint32_t for each row, moved). */
void gar_batch_set_origins(struct gar_batch *batch, int64_t first_row, struct gar_buffer *row_of);
/* Before it is published: its rows are the selected rows of `from`. */
void gar_batch_take_origin(struct gar_batch *batch, const struct gar_batch *from);
/* The same batch as the rows from first_row on. */
GAR_MUST_USE enum gar_status gar_batch_at_row(const struct gar_batch *batch, int64_t first_row,
                                              struct gar_batch **out, struct gar_error *err);
int64_t gar_batch_bytes(const struct gar_batch *batch);

#endif
