/* SPDX-License-Identifier: Apache-2.0 */
/* Sort.
 *
 * 1. Workers keep the batches of their units with the computed keys.
 * 2. At the end the batches are put in the order of the input and every column is joined to one (an item a column).
 * 3. First-level keys of all rows are written in chunks, with a histogram of their top bits (an item a chunk).
 * 4. Chunks are scattered to buckets by those bits (an item a chunk), which keeps the order of equal rows.
 * 5. Buckets are sorted on their own (an item some buckets). The result is gathered by the sorted row numbers.
 *
 * With a limit, each worker cuts its rows to the best `limit` whenever it has many more. Rows then carry their
 * place in the input as a last key.
 *
 * Memory: all rows, those columns twice that are being joined (one a thread), and 32 bytes a row for keys; with a limit
 * a few times the limit's rows. Order: stable. */
#include <stdlib.h>
#include <string.h>

#include "arrow/gather.h"
#include "base/alloc.h"
#include "base/stop.h"
#include "exec/ops/ops.h"
#include "kernels/sort_key.h"

enum {
    CHUNK_ROWS = 1 << 17,
    BUCKET_BITS_MAX = 10,
    BUCKET_ROWS = 1 << 13, /* aimed at */
    RESULT_ROWS = 1 << 16,
    CUT_ROWS_MIN = 1 << 15, /* with a limit: rows that a worker holds before it cuts */
    CUT_FACTOR = 4,         /* or so many times the limit */
};

/* A batch of payload, computed keys and, with a limit, places; and where it stands in the input. */
struct kept {
    struct gar_column **columns; /* owned; column_count references */
    int64_t rows;
    int64_t seq;
    int64_t row;
};

struct worker {
    struct gar_eval *eval;    /* owned; NULL when all keys are plain columns */
    struct gar_column **keys; /* owned array; outputs of the program */
    struct kept *kept;        /* owned */
    int64_t kept_count;
    int64_t kept_capacity;
    int64_t rows;
    struct gar_column *bound; /* owned; with a limit, after a cut: first key of the best rows */
};

struct order_by {
    struct gar_sink base;
    struct gar_source source;
    struct gar_query *query;      /* borrowed */
    const struct gar_plan *plan;  /* owned reference */
    struct gar_schema *schema;    /* owned reference */
    struct gar_program *program;  /* owned reference; NULL when all keys are plain columns */
    int64_t computed_count;       /* outputs of the program */
    int64_t column_count;         /* payload, computed keys, places */
    struct gar_sort_column *keys; /* owned; key_count items, columns unset */
    int64_t *key_columns;         /* owned; which of the columns */
    int64_t key_count;            /* with a limit one more than the plan's */
    int64_t limit;
    struct worker **workers; /* owned */
    int32_t worker_count;
    /* after the input */
    struct kept *all; /* owned; in order */
    int64_t all_count;
    int64_t rows;
    struct gar_column **columns; /* owned; joined */
    struct gar_sorter *sorter;   /* owned */
    struct gar_buffer *entries;  /* owned; struct gar_sort_entry, sorted at the end */
    struct gar_buffer *scratch;  /* owned */
    int64_t chunk_count;
    int32_t bucket_bits;
    int64_t *histograms; /* owned; chunk_count x buckets: counts, then places */
    int64_t *buckets;    /* owned; first of each bucket, and the end */
    int64_t group_count; /* items of the last stage */
    int64_t next_row;
};

/* ---- kept rows ---- */

static void destroy_kept(const struct order_by *op, struct kept *kept)
{
    for (int64_t c = 0; kept->columns != NULL && c < op->column_count; c++) {
        gar_column_unref(kept->columns[c]);
    }
    gar_free(kept->columns);
    kept->columns = NULL;
}

static void free_worker(const struct order_by *op, struct worker *w)
{
    if (w == NULL) {
        return;
    }
    for (int64_t i = 0; i < w->kept_count; i++) {
        destroy_kept(op, &w->kept[i]);
    }
    gar_free(w->kept);
    gar_free(w->keys);
    gar_column_unref(w->bound);
    gar_eval_free(w->eval);
    gar_free(w);
}

static enum gar_status make_worker(struct order_by *op, struct worker **out, struct gar_error *err)
{
    struct worker *w = (struct worker *)gar_calloc(1, (int64_t)sizeof *w);
    if (w == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *w);
    }
    *out = w;
    w->keys =
        (struct gar_column **)gar_calloc(op->computed_count, (int64_t)sizeof(struct gar_column *));
    if (w->keys == NULL) {
        return gar_error_nomem(err, op->computed_count * 8);
    }
    return op->program != NULL ? gar_eval_new(op->program, op->base.memory, &w->eval, err) : GAR_OK;
}

static enum gar_status make_places(struct order_by *op, int64_t seq, int64_t row, int64_t rows,
                                   struct gar_column **out, struct gar_error *err)
{
    GAR_TRY(gar_column_new(op->base.memory, gar_type_of(GAR_UINT64), rows, false, out, err));
    uint64_t *places = (uint64_t *)gar_column_values_mut(*out);
    for (int64_t i = 0; i < rows; i++) {
        places[i] = ((uint64_t)seq << 32) | (uint64_t)(row + i);
    }
    (*out)->null_count = 0;
    return GAR_OK;
}

/* Columns of a dense batch, computed keys and places. */
static enum gar_status fill_kept(struct order_by *op, struct worker *w,
                                 const struct gar_batch *batch, bool is_sparse, struct kept *kept,
                                 struct gar_error *err)
{
    const int64_t payload = op->schema->count;
    kept->columns =
        (struct gar_column **)gar_calloc(op->column_count, (int64_t)sizeof(struct gar_column *));
    if (kept->columns == NULL) {
        return gar_error_nomem(err, op->column_count * 8);
    }
    for (int64_t c = 0; c < payload; c++) {
        if (is_sparse) { /* do not hold the texts of dropped rows */
            GAR_TRY(gar_column_compact(batch->columns[c], false, op->base.memory, &kept->columns[c],
                                       err));
        } else {
            kept->columns[c] = gar_column_ref(batch->columns[c]);
        }
    }
    if (op->program != NULL) {
        GAR_TRY(gar_eval_run(w->eval, batch, w->keys, err));
        memcpy(kept->columns + payload, w->keys, (size_t)op->computed_count * sizeof w->keys[0]);
    }
    if (op->limit >= 0) {
        GAR_TRY(make_places(op, kept->seq, kept->row, kept->rows,
                            &kept->columns[op->column_count - 1], err));
    }
    return GAR_OK;
}

static enum gar_status join_column(struct order_by *op, const struct kept *kept, int64_t count,
                                   int64_t column, struct gar_column **out, struct gar_error *err)
{
    struct gar_column **parts = (struct gar_column **)gar_calloc(count, (int64_t)sizeof *parts);
    if (parts == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *parts);
    }
    for (int64_t i = 0; i < count; i++) {
        parts[i] = kept[i].columns[column];
    }
    const enum gar_status status =
        gar_column_concat(parts, count, parts[0]->type, op->base.memory, out, err);
    gar_free(parts);
    return status;
}

static enum gar_status make_sorter(const struct order_by *op, struct gar_column *const *columns,
                                   int64_t rows, struct gar_sorter **out, struct gar_error *err)
{
    struct gar_sort_column *keys =
        (struct gar_sort_column *)gar_calloc(op->key_count, (int64_t)sizeof *keys);
    if (keys == NULL) {
        return gar_error_nomem(err, op->key_count * (int64_t)sizeof *keys);
    }
    for (int64_t k = 0; k < op->key_count; k++) {
        keys[k] = op->keys[k];
        keys[k].column = columns[op->key_columns[k]];
    }
    const enum gar_status status = gar_sorter_new(keys, op->key_count, rows, out, err);
    gar_free(keys);
    return status;
}

/* ---- a limit: cutting what a worker holds ---- */

/* The first `take` rows of sorted entries as one kept batch. */
static enum gar_status take_best(struct order_by *op, struct gar_column *const *columns,
                                 const struct gar_sort_entry *entries, int64_t take,
                                 struct kept *out, struct gar_error *err)
{
    uint32_t *rows = (uint32_t *)gar_malloc(take * (int64_t)sizeof *rows);
    out->columns =
        (struct gar_column **)gar_calloc(op->column_count, (int64_t)sizeof(struct gar_column *));
    enum gar_status status =
        rows != NULL && out->columns != NULL ? GAR_OK : gar_error_nomem(err, take * 4);
    for (int64_t i = 0; i < take && status >= 0; i++) {
        rows[i] = entries[i].row;
    }
    for (int64_t c = 0; c < op->column_count && status >= 0; c++) {
        struct gar_column *gathered = NULL;
        status = gar_column_gather(columns[c], rows, take, op->base.memory, &gathered, err);
        if (status >= 0) {
            status = gar_column_compact(gathered, false, op->base.memory, &out->columns[c], err);
            gar_column_unref(gathered);
        }
    }
    out->rows = take;
    gar_free(rows);
    return status;
}

static enum gar_status sort_columns(struct order_by *op, struct gar_column *const *columns,
                                    int64_t rows, struct gar_buffer **out_entries,
                                    struct gar_error *err)
{
    struct gar_sorter *sorter = NULL;
    struct gar_buffer *scratch = NULL;
    const int64_t bytes = rows * (int64_t)sizeof(struct gar_sort_entry);
    enum gar_status status = make_sorter(op, columns, rows, &sorter, err);
    if (status >= 0) {
        status = gar_buffer_new(op->base.memory, bytes, &scratch, err);
    }
    if (status >= 0) {
        status = gar_buffer_new(op->base.memory, bytes, out_entries, err);
    }
    if (status >= 0) {
        struct gar_sort_entry *entries = (struct gar_sort_entry *)(void *)(*out_entries)->data;
        gar_sorter_fill(sorter, 0, rows, entries);
        gar_sorter_sort(sorter, entries, (struct gar_sort_entry *)(void *)scratch->data, rows);
        status = gar_stop_check(err); /* then they are not sorted */
    }
    gar_buffer_unref(scratch);
    gar_sorter_free(sorter);
    return status;
}

static enum gar_status cut_rows(struct order_by *op, struct worker *w, struct gar_error *err)
{
    struct gar_column **columns =
        (struct gar_column **)gar_calloc(op->column_count, (int64_t)sizeof(struct gar_column *));
    struct gar_buffer *entries = NULL;
    struct kept best = {0};
    enum gar_status status = columns != NULL ? GAR_OK : gar_error_nomem(err, op->column_count * 8);
    for (int64_t c = 0; c < op->column_count && status >= 0; c++) {
        status = join_column(op, w->kept, w->kept_count, c, &columns[c], err);
    }
    if (status >= 0) {
        status = sort_columns(op, columns, w->rows, &entries, err);
    }
    const int64_t take = gar_min_i64(op->limit, w->rows);
    if (status >= 0) {
        status = take_best(op, columns, (const struct gar_sort_entry *)(const void *)entries->data,
                           take, &best, err);
    }
    gar_buffer_unref(entries);
    for (int64_t c = 0; columns != NULL && c < op->column_count; c++) {
        gar_column_unref(columns[c]);
    }
    gar_free(columns);
    if (status < 0) {
        destroy_kept(op, &best);
        return status;
    }
    for (int64_t i = 0; i < w->kept_count; i++) {
        destroy_kept(op, &w->kept[i]);
    }
    w->kept[0] = best;
    w->kept_count = 1;
    w->rows = take;
    gar_column_unref(w->bound);
    w->bound = gar_column_ref(best.columns[op->key_columns[0]]);
    return GAR_OK;
}

/* ---- input ---- */

static enum gar_status order_by_start(struct gar_sink *base, struct gar_query *query,
                                      int32_t workers, struct gar_error *err)
{
    struct order_by *op = (struct order_by *)base;
    (void)query;
    op->workers = (struct worker **)gar_calloc(workers, (int64_t)sizeof(struct worker *));
    if (op->workers == NULL) {
        return gar_error_nomem(err, workers * 8);
    }
    op->worker_count = workers;
    return GAR_OK;
}

static enum gar_status keep_batch(struct order_by *op, struct worker *w, int64_t seq, int64_t row,
                                  const struct gar_batch *batch, bool is_sparse,
                                  struct gar_error *err)
{
    GAR_TRY(gar_grow((void **)&w->kept, &w->kept_capacity, w->kept_count + 1,
                     (int64_t)sizeof *w->kept, err));
    struct kept *kept = &w->kept[w->kept_count++];
    *kept = (struct kept){NULL, batch->rows, seq, row};
    GAR_TRY(fill_kept(op, w, batch, is_sparse, kept, err));
    w->rows += batch->rows;
    if (op->limit >= 0 &&
        w->rows > gar_max_i64(CUT_ROWS_MIN, CUT_FACTOR * gar_min_i64(op->limit, INT32_MAX))) {
        return cut_rows(op, w, err);
    }
    return GAR_OK;
}

/* The first key of a batch's selected rows. */
static enum gar_status first_key(struct order_by *op, struct worker *w,
                                 const struct gar_batch *batch, struct gar_column **out,
                                 struct gar_error *err)
{
    const int64_t at = op->key_columns[0];
    if (at < op->schema->count) {
        struct gar_column *column = batch->columns[at];
        if (batch->selection == NULL) {
            *out = gar_column_ref(column);
            return GAR_OK;
        }
        return gar_column_gather(column, batch->selection, batch->selected, op->base.memory, out,
                                 err);
    }
    GAR_TRY(gar_eval_run(w->eval, batch, w->keys, err));
    for (int64_t k = 0; k < op->computed_count; k++) {
        if (k == at - op->schema->count) {
            *out = w->keys[k];
        } else {
            gar_column_unref(w->keys[k]);
        }
    }
    return GAR_OK;
}

/* Drop the rows that come after the worst of `limit` rows that the worker has already. *out is NULL
 * when none is left. */
static enum gar_status keep_candidates(struct order_by *op, struct worker *w,
                                       const struct gar_batch *batch, struct gar_batch **out,
                                       struct gar_error *err)
{
    struct gar_column *column = NULL;
    struct gar_buffer *selection = NULL;
    *out = NULL;
    GAR_TRY(first_key(op, w, batch, &column, err));
    enum gar_status status = gar_buffer_new(
        op->base.memory, batch->selected * (int64_t)sizeof(uint32_t), &selection, err);
    if (status < 0) {
        gar_column_unref(column);
        return status;
    }
    uint32_t *rows = (uint32_t *)(void *)selection->data;
    struct gar_sort_column key = op->keys[0];
    key.column = column;
    const int64_t n =
        gar_sort_not_after(&key, batch->selected, w->bound, w->bound->length - 1, rows);
    gar_column_unref(column);
    for (int64_t i = 0; i < n && batch->selection != NULL; i++) {
        rows[i] = batch->selection[rows[i]];
    }
    if (n > 0 && n < batch->selected) {
        status = gar_batch_select(batch, selection, n, out, err);
        if (status >= 0) {
            return status;
        }
    } else if (n > 0) {
        *out = gar_batch_ref(batch);
    }
    gar_buffer_unref(selection);
    return status;
}

static enum gar_status add_batch(struct order_by *op, struct worker *w, int64_t seq, int64_t row,
                                 const struct gar_batch *batch, struct gar_error *err)
{
    struct gar_batch *candidates = NULL;
    struct gar_batch *dense = NULL;
    if (w->bound != NULL) {
        GAR_TRY(keep_candidates(op, w, batch, &candidates, err));
        if (candidates == NULL) {
            return GAR_OK;
        }
    }
    enum gar_status status =
        gar_batch_gather(candidates != NULL ? candidates : batch, op->base.memory, &dense, err);
    if (status >= 0) {
        status = keep_batch(op, w, seq, row, dense, dense->rows * 2 < batch->rows, err);
    }
    gar_batch_unref(candidates);
    gar_batch_unref(dense);
    return status;
}

static enum gar_status order_by_push(struct gar_sink *base, int32_t worker, int64_t seq,
                                     int64_t row, struct gar_batch *batch, struct gar_error *err)
{
    struct order_by *op = (struct order_by *)base;
    enum gar_status status = GAR_OK;
    if (op->workers[worker] == NULL) {
        status = make_worker(op, &op->workers[worker], err);
    }
    if (status >= 0) {
        status = add_batch(op, op->workers[worker], seq, row, batch, err);
    }
    gar_batch_unref(batch);
    return status;
}

/* ---- stages ---- */

static int compare_kept(const void *a, const void *b)
{
    const struct kept *x = (const struct kept *)a;
    const struct kept *y = (const struct kept *)b;
    if (x->seq != y->seq) {
        return x->seq < y->seq ? -1 : 1;
    }
    return (x->row > y->row) - (x->row < y->row);
}

/* Put all kept batches in order. */
static enum gar_status list_all(struct order_by *op, struct gar_error *err)
{
    int64_t count = 0;
    for (int32_t i = 0; i < op->worker_count; i++) {
        count += op->workers[i] != NULL ? op->workers[i]->kept_count : 0;
    }
    op->all = (struct kept *)gar_calloc(count, (int64_t)sizeof *op->all);
    op->columns =
        (struct gar_column **)gar_calloc(op->column_count, (int64_t)sizeof(struct gar_column *));
    if (op->all == NULL || op->columns == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *op->all);
    }
    for (int32_t i = 0; i < op->worker_count; i++) {
        struct worker *w = op->workers[i];
        if (w == NULL) {
            continue;
        }
        for (int64_t b = 0; b < w->kept_count; b++) {
            op->all[op->all_count++] = w->kept[b];
            op->rows += w->kept[b].rows;
        }
        w->kept_count = 0;
        free_worker(op, w);
        op->workers[i] = NULL;
    }
    qsort(op->all, (size_t)op->all_count, sizeof *op->all, compare_kept);
    return GAR_OK;
}

/* The columns are joined: make room for keys. Ranges of the keys are looked at by the only item of
 * stage 1. */
static enum gar_status plan_chunks(struct order_by *op, struct gar_error *err)
{
    for (int64_t i = 0; i < op->all_count; i++) {
        destroy_kept(op, &op->all[i]);
    }
    op->all_count = 0;
    const int64_t bytes = op->rows * (int64_t)sizeof(struct gar_sort_entry);
    op->chunk_count = (op->rows + CHUNK_ROWS - 1) / CHUNK_ROWS;
    while (op->bucket_bits < BUCKET_BITS_MAX && op->chunk_count > 1 &&
           (op->rows >> op->bucket_bits) > BUCKET_ROWS) {
        op->bucket_bits++;
    }
    const int64_t buckets = (int64_t)1 << op->bucket_bits;
    op->histograms = (int64_t *)gar_calloc(op->chunk_count * buckets, (int64_t)sizeof(int64_t));
    op->buckets = (int64_t *)gar_calloc(buckets + 1, (int64_t)sizeof(int64_t));
    if (op->histograms == NULL || op->buckets == NULL) {
        return gar_error_nomem(err, op->chunk_count * buckets * 8);
    }
    GAR_TRY(gar_buffer_new(op->base.memory, bytes, &op->entries, err));
    return gar_buffer_new(op->base.memory, bytes, &op->scratch, err);
}

static int64_t bucket_of(const struct order_by *op, uint64_t key)
{
    return op->bucket_bits == 0 ? 0 : (int64_t)(key >> (64 - op->bucket_bits));
}

/* Counts become places: bucket by bucket, in each the chunks in order. */
static void place_chunks(struct order_by *op)
{
    const int64_t buckets = (int64_t)1 << op->bucket_bits;
    int64_t at = 0;
    for (int64_t b = 0; b < buckets; b++) {
        op->buckets[b] = at;
        for (int64_t c = 0; c < op->chunk_count; c++) {
            int64_t *cell = &op->histograms[c * buckets + b];
            const int64_t n = *cell;
            *cell = at;
            at += n;
        }
    }
    op->buckets[buckets] = at;
}

enum stage { STAGE_JOIN, STAGE_RANGES, STAGE_FILL, STAGE_SCATTER, STAGE_SORT, STAGE_END };

static enum gar_status order_by_stage(struct gar_sink *base, struct gar_query *query, int32_t stage,
                                      int64_t *out_items, struct gar_error *err)
{
    struct order_by *op = (struct order_by *)base;
    *out_items = 0;
    switch ((enum stage)stage) {
    case STAGE_JOIN:
        GAR_TRY(list_all(op, err));
        *out_items = op->rows > 0 ? op->column_count : 0;
        return GAR_OK;
    case STAGE_RANGES:
        GAR_TRY(plan_chunks(op, err));
        *out_items = 1;
        return GAR_OK;
    case STAGE_FILL: *out_items = op->chunk_count; return GAR_OK;
    case STAGE_SCATTER:
        place_chunks(op);
        *out_items = op->chunk_count;
        return GAR_OK;
    case STAGE_SORT:
        op->group_count = op->bucket_bits == 0
                              ? 1
                              : gar_min_i64((int64_t)1 << op->bucket_bits, query->workers * 8);
        *out_items = op->group_count;
        return GAR_OK;
    case STAGE_END: break;
    }
    gar_buffer_unref(op->scratch);
    op->scratch = NULL;
    return GAR_OK;
}

/* So that what is held twice at any time is a column for each thread, not all rows. */
static enum gar_status join_and_drop(struct order_by *op, int64_t column, struct gar_error *err)
{
    GAR_TRY(join_column(op, op->all, op->all_count, column, &op->columns[column], err));
    for (int64_t i = 0; i < op->all_count; i++) {
        gar_column_unref(op->all[i].columns[column]);
        op->all[i].columns[column] = NULL;
    }
    return GAR_OK;
}

static void fill_chunk(struct order_by *op, int64_t chunk)
{
    const int64_t first = chunk * CHUNK_ROWS;
    const int64_t count = gar_min_i64(op->rows - first, CHUNK_ROWS);
    struct gar_sort_entry *entries = (struct gar_sort_entry *)(void *)op->scratch->data + first;
    gar_sorter_fill(op->sorter, first, count, entries);
    int64_t *histogram = &op->histograms[chunk << op->bucket_bits];
    for (int64_t i = 0; i < count; i++) {
        histogram[bucket_of(op, entries[i].key)]++;
    }
}

static void scatter_chunk(struct order_by *op, int64_t chunk)
{
    const int64_t first = chunk * CHUNK_ROWS;
    const int64_t count = gar_min_i64(op->rows - first, CHUNK_ROWS);
    const struct gar_sort_entry *from =
        (const struct gar_sort_entry *)(const void *)op->scratch->data + first;
    struct gar_sort_entry *to = (struct gar_sort_entry *)(void *)op->entries->data;
    int64_t *places = &op->histograms[chunk << op->bucket_bits];
    for (int64_t i = 0; i < count; i++) {
        to[places[bucket_of(op, from[i].key)]++] = from[i];
    }
}

/* Buckets whose first row falls into this item's share of the rows. */
static void sort_group(struct order_by *op, int64_t group)
{
    const int64_t from = op->rows * group / op->group_count;
    const int64_t to = op->rows * (group + 1) / op->group_count;
    struct gar_sort_entry *entries = (struct gar_sort_entry *)(void *)op->entries->data;
    struct gar_sort_entry *scratch = (struct gar_sort_entry *)(void *)op->scratch->data;
    for (int64_t b = 0; b < (int64_t)1 << op->bucket_bits; b++) {
        const int64_t first = op->buckets[b];
        const int64_t count = op->buckets[b + 1] - first;
        if (count > 1 && first >= from && first < to && !gar_stop_requested()) {
            gar_sorter_sort(op->sorter, entries + first, scratch + first, count);
        }
    }
}

static enum gar_status order_by_item(struct gar_sink *base, int32_t stage, int64_t item,
                                     int32_t worker, struct gar_error *err)
{
    struct order_by *op = (struct order_by *)base;
    (void)worker;
    switch ((enum stage)stage) {
    case STAGE_JOIN: return join_and_drop(op, item, err);
    case STAGE_RANGES: return make_sorter(op, op->columns, op->rows, &op->sorter, err);
    case STAGE_FILL: fill_chunk(op, item); break;
    case STAGE_SCATTER: scatter_chunk(op, item); break;
    case STAGE_SORT: sort_group(op, item); break;
    case STAGE_END: break;
    }
    return gar_cancel_status(op->query->cancel, err);
}

/* ---- the result ---- */

static struct order_by *of_source(struct gar_source *source)
{
    return (struct order_by *)(void *)((char *)source - offsetof(struct order_by, source));
}

static enum gar_status order_by_next(struct gar_source *source, struct gar_query *query,
                                     struct gar_source_unit *out, struct gar_error *err)
{
    struct order_by *op = of_source(source);
    (void)query;
    (void)err;
    const int64_t rows = op->limit >= 0 ? gar_min_i64(op->rows, op->limit) : op->rows;
    if (op->next_row >= rows) {
        return GAR_EOF;
    }
    out->next = op->next_row;
    out->end = op->next_row = gar_min_i64(op->next_row + RESULT_ROWS, rows);
    return GAR_OK;
}

static enum gar_status order_by_decode(struct gar_source *source, struct gar_source_unit *unit,
                                       int32_t worker, int64_t max_rows, struct gar_batch **out,
                                       struct gar_error *err)
{
    struct order_by *op = of_source(source);
    (void)worker;
    const int64_t count = gar_min_i64(unit->end - unit->next, max_rows);
    if (count <= 0) {
        return GAR_EOF;
    }
    const struct gar_sort_entry *entries =
        (const struct gar_sort_entry *)(const void *)op->entries->data + unit->next;
    const int64_t fields = op->schema->count;
    uint32_t *rows = (uint32_t *)gar_malloc(count * (int64_t)sizeof *rows);
    struct gar_column **columns =
        (struct gar_column **)gar_calloc(fields, (int64_t)sizeof *columns);
    enum gar_status status =
        rows != NULL && columns != NULL ? GAR_OK : gar_error_nomem(err, count * 4);
    for (int64_t i = 0; i < count && status >= 0; i++) {
        rows[i] = entries[i].row;
    }
    for (int64_t c = 0; c < fields && status >= 0; c++) {
        status = gar_column_gather(op->columns[c], rows, count, op->base.memory, &columns[c], err);
    }
    if (status >= 0) {
        status = gar_batch_new(op->schema, columns, count, out, err);
    }
    for (int64_t c = 0; columns != NULL && c < fields && status < 0; c++) {
        gar_column_unref(columns[c]);
    }
    gar_free(rows);
    gar_free(columns);
    unit->next += count;
    return status;
}

static void order_by_unit_free(struct gar_source *source, struct gar_source_unit *unit)
{
    (void)source;
    (void)unit;
}

static void source_explain(const struct gar_source *source, struct gar_strbuf *out)
{
    (void)source;
    gar_strbuf_append(out, "sorted rows of the pipeline before");
}

static void order_by_explain(const struct gar_sink *base, struct gar_strbuf *out)
{
    const struct order_by *op = (const struct order_by *)(const void *)base;
    gar_strbuf_append(out, op->limit >= 0 ? "top rows by " : "sort by ");
    for (int64_t k = 0; k < op->plan->expr_count; k++) {
        gar_strbuf_append(out, k > 0 ? ", " : "");
        gar_expr_print(op->plan->exprs[k], out);
        gar_strbuf_append(out, op->plan->descending[k] ? " descending" : "");
        gar_strbuf_append(out, op->plan->nulls_first[k] ? " nulls first" : "");
    }
    if (op->limit >= 0) {
        gar_strbuf_printf(out, " (limit %lld, cut by each worker)", (long long)op->limit);
    } else {
        gar_strbuf_append(out, " (radix buckets of normalised keys)");
    }
}

/* ---- making ---- */

static void free_order_by(void *object)
{
    struct order_by *op = (struct order_by *)object;
    for (int32_t i = 0; op->workers != NULL && i < op->worker_count; i++) {
        free_worker(op, op->workers[i]);
    }
    gar_free(op->workers);
    for (int64_t i = 0; i < op->all_count; i++) {
        destroy_kept(op, &op->all[i]);
    }
    gar_free(op->all);
    for (int64_t c = 0; op->columns != NULL && c < op->column_count; c++) {
        gar_column_unref(op->columns[c]);
    }
    gar_free(op->columns);
    gar_sorter_free(op->sorter);
    gar_buffer_unref(op->entries);
    gar_buffer_unref(op->scratch);
    gar_free(op->histograms);
    gar_free(op->buckets);
    gar_free(op->keys);
    gar_free(op->key_columns);
    gar_program_unref(op->program);
    gar_schema_unref(op->schema);
    gar_plan_unref((struct gar_plan *)(uintptr_t)(const void *)op->plan);
    gar_free(op);
}

/* Plain columns are keys where they are; other keys are computed into columns behind the payload.
 * */
static enum gar_status make_keys(struct order_by *op, struct gar_error *err)
{
    const struct gar_plan *plan = op->plan;
    struct gar_expr **computed =
        (struct gar_expr **)gar_calloc(plan->expr_count, (int64_t)sizeof(struct gar_expr *));
    op->keys =
        (struct gar_sort_column *)gar_calloc(plan->expr_count + 1, (int64_t)sizeof *op->keys);
    op->key_columns = (int64_t *)gar_calloc(plan->expr_count + 1, (int64_t)sizeof *op->key_columns);
    if (computed == NULL || op->keys == NULL || op->key_columns == NULL) {
        gar_free(computed);
        return gar_error_nomem(err, plan->expr_count * (int64_t)sizeof *op->keys);
    }
    for (int64_t k = 0; k < plan->expr_count; k++) {
        const struct gar_expr *expr = plan->exprs[k];
        while (expr->kind == GAR_EXPR_ALIAS) {
            expr = expr->args[0];
        }
        op->keys[k] = (struct gar_sort_column){NULL, plan->descending[k], plan->nulls_first[k]};
        op->key_columns[k] =
            expr->kind == GAR_EXPR_COLUMN ? gar_schema_find(op->schema, expr->name) : -1;
        if (op->key_columns[k] < 0) {
            op->key_columns[k] = op->schema->count + op->computed_count;
            computed[op->computed_count++] = plan->exprs[k];
        }
    }
    op->key_count = plan->expr_count;
    op->column_count = op->schema->count + op->computed_count;
    if (op->limit >= 0) {
        op->key_columns[op->key_count++] = op->column_count++;
    }
    enum gar_status status = GAR_OK;
    if (op->computed_count > 0) {
        status = gar_program_new(plan->inputs[0]->schema, computed, op->computed_count,
                                 &op->program, err);
    }
    gar_free(computed);
    return status;
}

enum gar_status gar_order_by_new(struct gar_query *query, const struct gar_plan *plan,
                                 struct gar_sink **out_sink, struct gar_source **out_source,
                                 struct gar_error *err)
{
    static const struct gar_sink_vtable sink_vtable = {.name = "sort",
                                                       .start = order_by_start,
                                                       .push = order_by_push,
                                                       .stage = order_by_stage,
                                                       .item = order_by_item,
                                                       .explain = order_by_explain};
    static const struct gar_source_vtable source_vtable = {.name = "sorted rows",
                                                           .next = order_by_next,
                                                           .decode = order_by_decode,
                                                           .unit_free = order_by_unit_free,
                                                           .explain = source_explain};
    struct order_by *op = (struct order_by *)gar_calloc(1, (int64_t)sizeof *op);
    if (op == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *op);
    }
    op->base.vtable = &sink_vtable;
    op->source.vtable = &source_vtable;
    op->query = query;
    op->plan = gar_plan_ref(plan);
    op->schema = gar_schema_ref(plan->schema);
    op->limit = plan->limit;
    GAR_TRY(gar_query_own(query, op, free_order_by, err));
    GAR_TRY(gar_query_op_memory(query, &op->base.memory, err));
    GAR_TRY(make_keys(op, err));
    *out_sink = &op->base;
    *out_source = &op->source;
    return GAR_OK;
}
