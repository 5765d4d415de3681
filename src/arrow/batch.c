/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: columns of one length under a schema, seen through an optional selection. */
#include "arrow/batch.h"

#include "arrow/gather.h"
#include "arrow/refs_priv.h"
#include "base/alloc.h"

static struct gar_batch *alloc_batch(struct gar_schema *schema, int64_t rows, struct gar_error *err)
{
    const int64_t bytes =
        (int64_t)sizeof(struct gar_batch) + schema->count * (int64_t)sizeof(struct gar_column *);
    struct gar_batch *batch = gar_calloc(1, bytes);
    if (batch == NULL) {
        (void)gar_error_nomem(err, bytes);
        return NULL;
    }
    batch->refs = 1;
    batch->schema = gar_schema_ref(schema);
    batch->rows = rows;
    batch->selected = rows;
    batch->first_row = -1;
    batch->columns = (struct gar_column **)(void *)(batch + 1);
    return batch;
}

static enum gar_status check_column(const struct gar_schema *schema, int64_t i,
                                    const struct gar_column *column, int64_t rows,
                                    struct gar_error *err)
{
    if (column->length == rows && gar_type_equal(column->type, schema->fields[i].type)) {
        return GAR_OK;
    }
    char have[64];
    char want[64];
    return gar_error_set(err, GAR_ERR_INTERNAL,
                         "column '%s' has %lld rows of %s; the batch needs %lld rows of %s",
                         schema->fields[i].name, (long long)column->length,
                         gar_type_text(column->type, have, (int64_t)sizeof have), (long long)rows,
                         gar_type_text(schema->fields[i].type, want, (int64_t)sizeof want));
}

enum gar_status gar_batch_new(struct gar_schema *schema, struct gar_column **columns, int64_t rows,
                              struct gar_batch **out, struct gar_error *err)
{
    for (int64_t i = 0; i < schema->count; i++) {
        GAR_TRY(check_column(schema, i, columns[i], rows, err));
    }
    struct gar_batch *batch = alloc_batch(schema, rows, err);
    if (batch == NULL) {
        return GAR_ERR_NOMEM;
    }
    for (int64_t i = 0; i < schema->count; i++) {
        batch->columns[i] = columns[i];
    }
    *out = batch;
    return GAR_OK;
}

/* Row i of batch is row offset + i of from. */
static void share_origin(struct gar_batch *batch, const struct gar_batch *from, int64_t offset)
{
    if (from->row_of != NULL) {
        batch->first_row = from->first_row;
        batch->row_owner = gar_buffer_ref(from->row_owner);
        batch->row_of = from->row_of + offset;
    } else if (from->first_row >= 0) {
        batch->first_row = from->first_row + offset;
    }
}

void gar_batch_set_origin(struct gar_batch *batch, int64_t first_row)
{
    batch->first_row = first_row;
}

void gar_batch_set_origins(struct gar_batch *batch, int64_t first_row, struct gar_buffer *row_of)
{
    batch->first_row = first_row;
    batch->row_owner = row_of;
    batch->row_of = (const uint32_t *)(const void *)row_of->data;
}

void gar_batch_take_origin(struct gar_batch *batch, const struct gar_batch *from)
{
    if (from->selection == NULL) {
        share_origin(batch, from, 0);
    } else if (from->row_of == NULL && from->first_row >= 0) {
        batch->first_row = from->first_row;
        batch->row_owner = gar_buffer_ref(from->selection_owner);
        batch->row_of = from->selection;
    }
}

enum gar_status gar_batch_at_row(const struct gar_batch *batch, int64_t first_row,
                                 struct gar_batch **out, struct gar_error *err)
{
    struct gar_batch *view = alloc_batch(batch->schema, batch->rows, err);
    if (view == NULL) {
        return GAR_ERR_NOMEM;
    }
    for (int64_t i = 0; i < batch->schema->count; i++) {
        view->columns[i] = gar_column_ref(batch->columns[i]);
    }
    if (batch->selection != NULL) {
        view->selection_owner = gar_buffer_ref(batch->selection_owner);
        view->selection = batch->selection;
        view->selected = batch->selected;
    }
    view->first_row = first_row;
    *out = view;
    return GAR_OK;
}

struct gar_batch *gar_batch_ref(const struct gar_batch *batch)
{
    struct gar_batch *b = drop_const(batch);
    if (b != NULL) {
        ref_add(&b->refs);
    }
    return b;
}

void gar_batch_unref(struct gar_batch *batch)
{
    if (batch == NULL || !ref_drop(&batch->refs)) {
        return;
    }
    for (int64_t i = 0; i < batch->schema->count; i++) {
        gar_column_unref(batch->columns[i]);
    }
    gar_buffer_unref(batch->selection_owner);
    gar_buffer_unref(batch->row_owner);
    gar_schema_unref(batch->schema);
    gar_free(batch);
}

enum gar_status gar_batch_select(const struct gar_batch *batch, struct gar_buffer *selection,
                                 int64_t selected, struct gar_batch **out, struct gar_error *err)
{
    if (selected < 0 || selection->size / (int64_t)sizeof(uint32_t) < selected) {
        return gar_error_set(err, GAR_ERR_INTERNAL,
                             "a selection of %lld rows in a buffer of %lld bytes",
                             (long long)selected, (long long)selection->size);
    }
    struct gar_batch *view = alloc_batch(batch->schema, batch->rows, err);
    if (view == NULL) {
        return GAR_ERR_NOMEM;
    }
    for (int64_t i = 0; i < batch->schema->count; i++) {
        view->columns[i] = gar_column_ref(batch->columns[i]);
    }
    view->selection_owner = selection;
    view->selection = (const uint32_t *)(const void *)selection->data;
    view->selected = selected;
    share_origin(view, batch, 0);
    *out = view;
    return GAR_OK;
}

enum gar_status gar_batch_slice(const struct gar_batch *batch, int64_t offset, int64_t length,
                                struct gar_batch **out, struct gar_error *err)
{
    if (offset < 0 || length < 0 || offset > batch->selected - length) {
        return gar_error_set(err, GAR_ERR_INTERNAL,
                             "a slice of %lld rows from row %lld in a batch of %lld rows",
                             (long long)length, (long long)offset, (long long)batch->selected);
    }
    if (length == batch->selected) {
        *out = gar_batch_ref(batch);
        return GAR_OK;
    }
    const bool by_selection = batch->selection != NULL;
    struct gar_batch *slice = alloc_batch(batch->schema, by_selection ? batch->rows : length, err);
    if (slice == NULL) {
        return GAR_ERR_NOMEM;
    }
    for (int64_t i = 0; i < batch->schema->count; i++) {
        if (by_selection) {
            slice->columns[i] = gar_column_ref(batch->columns[i]);
            continue;
        }
        const enum gar_status status =
            gar_column_slice(batch->columns[i], offset, length, &slice->columns[i], err);
        if (status < 0) {
            gar_batch_unref(slice);
            return status;
        }
    }
    if (by_selection) {
        slice->selection_owner = gar_buffer_ref(batch->selection_owner);
        slice->selection = batch->selection + offset;
        slice->selected = length;
    }
    share_origin(slice, batch, by_selection ? 0 : offset);
    *out = slice;
    return GAR_OK;
}

enum gar_status gar_batch_gather(const struct gar_batch *batch, struct gar_memory *memory,
                                 struct gar_batch **out, struct gar_error *err)
{
    if (batch->selection == NULL) {
        *out = gar_batch_ref(batch);
        return GAR_OK;
    }
    struct gar_batch *full = alloc_batch(batch->schema, batch->selected, err);
    if (full == NULL) {
        return GAR_ERR_NOMEM;
    }
    for (int64_t i = 0; i < batch->schema->count; i++) {
        const enum gar_status status = gar_column_gather(
            batch->columns[i], batch->selection, batch->selected, memory, &full->columns[i], err);
        if (status < 0) {
            gar_batch_unref(full);
            return status;
        }
    }
    *out = full;
    return GAR_OK;
}

/* Column i of all batches, one below the other; parts has room for `count` columns. */
static enum gar_status concat_column(const struct gar_schema *schema, int64_t i,
                                     struct gar_batch *const *batches, int64_t count,
                                     struct gar_column **parts, struct gar_memory *memory,
                                     struct gar_column **out, struct gar_error *err)
{
    enum gar_status status = GAR_OK;
    int64_t made = 0;
    for (; made < count && status >= 0; made++) {
        const struct gar_batch *b = batches[made];
        parts[made] = NULL;
        if (b->selection == NULL) {
            parts[made] = gar_column_ref(b->columns[i]);
        } else {
            status = gar_column_gather(b->columns[i], b->selection, b->selected, memory,
                                       &parts[made], err);
        }
    }
    if (status >= 0) {
        status = gar_column_concat(parts, count, schema->fields[i].type, memory, out, err);
    }
    for (int64_t k = 0; k < made; k++) {
        gar_column_unref(parts[k]);
    }
    return status;
}

enum gar_status gar_batch_concat(struct gar_schema *schema, struct gar_batch *const *batches,
                                 int64_t count, struct gar_memory *memory, struct gar_batch **out,
                                 struct gar_error *err)
{
    int64_t rows = 0;
    for (int64_t k = 0; k < count; k++) {
        rows += batches[k]->selected;
        for (int64_t i = 0; i < schema->count; i++) {
            GAR_TRY(check_column(schema, i, batches[k]->columns[i], batches[k]->rows, err));
        }
    }
    if (count == 1 && batches[0]->schema == schema) {
        return gar_batch_gather(batches[0], memory, out, err);
    }
    struct gar_column **parts = gar_malloc(count * (int64_t)sizeof(struct gar_column *));
    struct gar_batch *all = alloc_batch(schema, rows, err);
    enum gar_status status =
        parts == NULL || all == NULL ? gar_error_nomem(err, count * 8) : GAR_OK;
    for (int64_t i = 0; status >= 0 && i < schema->count; i++) {
        status = concat_column(schema, i, batches, count, parts, memory, &all->columns[i], err);
    }
    gar_free(parts);
    if (status < 0) {
        gar_batch_unref(all);
        return status;
    }
    *out = all;
    return GAR_OK;
}

int64_t gar_batch_bytes(const struct gar_batch *batch)
{
    int64_t bytes = batch->selection_owner != NULL ? batch->selection_owner->size : 0;
    bytes += batch->row_owner != NULL ? batch->row_owner->size : 0;
    for (int64_t i = 0; i < batch->schema->count; i++) {
        bytes += gar_column_bytes(batch->columns[i]);
    }
    return bytes;
}
