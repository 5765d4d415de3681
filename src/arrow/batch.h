/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: a schema, its columns, a row count and an optional selection. Immutable and counted once published. */
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
int64_t gar_batch_bytes(const struct gar_batch *batch);

#endif
