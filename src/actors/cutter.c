/* SPDX-License-Identifier: Apache-2.0 */
/* Exact batches. */
#include "actors/cutter.h"

#include <string.h>

#include "base/alloc.h"

void gar_cutter_init(struct gar_cutter *cutter, struct gar_schema *schema,
                     struct gar_memory *memory, int64_t rows)
{
    *cutter = (struct gar_cutter){.schema = gar_schema_ref(schema), .memory = memory, .rows = rows};
}

enum gar_status gar_cutter_put(struct gar_cutter *cutter, struct gar_batch *batch,
                               struct gar_error *err)
{
    if (batch->selected == 0) {
        gar_batch_unref(batch);
        return GAR_OK;
    }
    if (cutter->first > 0) {
        cutter->count -= cutter->first;
        memmove(&cutter->queue[0], &cutter->queue[cutter->first],
                (size_t)cutter->count * sizeof cutter->queue[0]);
        cutter->first = 0;
    }
    void *items = cutter->queue;
    const enum gar_status status = gar_grow(&items, &cutter->capacity, cutter->count + 1,
                                            (int64_t)sizeof cutter->queue[0], err);
    cutter->queue = items;
    if (status < 0) {
        gar_batch_unref(batch);
        return status;
    }
    cutter->queue[cutter->count++] = batch;
    cutter->held += batch->selected;
    return GAR_OK;
}

void gar_cutter_end(struct gar_cutter *cutter)
{
    cutter->is_ended = true;
}

/* The next rows of the first batch, at most `most`. */
static enum gar_status take_slice(struct gar_cutter *cutter, int64_t most, struct gar_batch **out,
                                  struct gar_error *err)
{
    struct gar_batch *batch = cutter->queue[cutter->first];
    const int64_t rows = gar_min_i64(batch->selected - cutter->offset, most);
    if (cutter->offset == 0 && rows == batch->selected) {
        *out = batch;
        cutter->queue[cutter->first++] = NULL;
    } else {
        GAR_TRY(gar_batch_slice(batch, cutter->offset, rows, out, err));
        cutter->offset += rows;
        if (cutter->offset == batch->selected) {
            gar_batch_unref(batch);
            cutter->queue[cutter->first++] = NULL;
            cutter->offset = 0;
        }
    }
    cutter->held -= rows;
    return GAR_OK;
}

static enum gar_status join_slices(struct gar_cutter *cutter, int64_t rows, struct gar_batch **out,
                                   struct gar_error *err)
{
    const int64_t most = cutter->count - cutter->first;
    struct gar_batch **slices = gar_calloc(most, (int64_t)sizeof slices[0]);
    if (slices == NULL) {
        return gar_error_nomem(err, most * (int64_t)sizeof slices[0]);
    }
    enum gar_status status = GAR_OK;
    int64_t count = 0;
    for (int64_t have = 0; status >= 0 && have < rows;) {
        status = take_slice(cutter, rows - have, &slices[count], err);
        if (status >= 0) {
            have += slices[count++]->selected;
        }
    }
    if (status >= 0) {
        status = gar_batch_concat(cutter->schema, slices, count, cutter->memory, out, err);
    }
    for (int64_t i = 0; i < count; i++) {
        gar_batch_unref(slices[i]);
    }
    gar_free(slices);
    return status;
}

enum gar_status gar_cutter_take(struct gar_cutter *cutter, struct gar_batch **out,
                                struct gar_error *err)
{
    if (cutter->held == 0) {
        return cutter->is_ended ? GAR_EOF : GAR_PENDING;
    }
    const struct gar_batch *first = cutter->queue[cutter->first];
    const int64_t in_first = first->selected - cutter->offset;
    const int64_t rows = cutter->rows > 0 ? gar_min_i64(cutter->rows, cutter->held) : in_first;
    if (rows < cutter->rows && !cutter->is_ended) {
        return GAR_PENDING;
    }
    return rows <= in_first ? take_slice(cutter, rows, out, err)
                            : join_slices(cutter, rows, out, err);
}

void gar_cutter_destroy(struct gar_cutter *cutter)
{
    for (int64_t i = cutter->first; i < cutter->count; i++) {
        gar_batch_unref(cutter->queue[i]);
    }
    gar_free(cutter->queue);
    gar_schema_unref(cutter->schema);
    *cutter = (struct gar_cutter){.schema = NULL};
}
