/* SPDX-License-Identifier: Apache-2.0 */
/* Distinct: the whole first row of every key.
 *
 * Each worker keeps, for every new group of its table, the row that made it (groups are numbered
 * in the order of their first rows, so
 * row g of the kept rows belongs to group g) and the row's place in the input. Units come to a worker in ascending order,
 * so what it keeps is its first. Joining the workers takes the smaller place; the result is in the order of the places.
 *
 * Memory: keys and kept rows of every worker; once more all kept rows while they are joined.
 * Order: kept. */
#include "arrow/gather.h"
#include "base/alloc.h"
#include "base/stop.h"
#include "exec/group_table.h"
#include "exec/ops/ops.h"
#include "kernels/radix_sort.h"

enum { RESULT_ROWS = 1 << 16, KEEP_ROWS = 1024 };

struct worker {
    struct gar_group_table *table; /* owned */
    struct gar_eval *eval;         /* owned */
    struct gar_column **keys;      /* owned array */
    struct gar_buffer *numbers;    /* owned; uint32_t group of each row of a batch */
    struct gar_batch_list kept;    /* rows of the groups, in order */
    struct gar_buffer *places;     /* owned; uint64_t place of each group's row */
};

struct distinct {
    struct gar_sink base;
    struct gar_query *query;     /* borrowed */
    struct gar_schema *schema;   /* owned reference */
    struct gar_program *program; /* owned reference */
    int64_t key_count;
    struct gar_key_layout layout;
    struct worker **workers; /* owned */
    int32_t worker_count;
    struct gar_batch_list result;
};

static void free_worker(struct worker *w)
{
    if (w == NULL) {
        return;
    }
    gar_group_table_free(w->table);
    gar_eval_free(w->eval);
    gar_free(w->keys);
    gar_buffer_unref(w->numbers);
    gar_batch_list_destroy(&w->kept);
    gar_buffer_unref(w->places);
    gar_free(w);
}

static enum gar_status make_worker(struct distinct *op, struct worker **out, struct gar_error *err)
{
    struct worker *w = (struct worker *)gar_calloc(1, (int64_t)sizeof *w);
    if (w == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *w);
    }
    *out = w; /* freed with the operator */
    gar_batch_list_init(&w->kept);
    w->keys = (struct gar_column **)gar_calloc(op->key_count, (int64_t)sizeof(struct gar_column *));
    if (w->keys == NULL) {
        return gar_error_nomem(err, op->key_count * 8);
    }
    GAR_TRY(gar_eval_new(op->program, op->base.memory, &w->eval, err));
    return gar_group_table_new(&op->layout, op->base.memory, &w->table, err);
}

static enum gar_status grow_to(struct gar_memory *memory, struct gar_buffer **buffer, int64_t bytes,
                               struct gar_error *err)
{
    if (*buffer == NULL) {
        return gar_buffer_new(memory, bytes, buffer, err);
    }
    return bytes <= (*buffer)->size
               ? GAR_OK
               : gar_buffer_resize(*buffer, gar_max_i64(bytes, 2 * (*buffer)->size), err);
}

/* Keep the rows listed in `rows` (uint32_t, moved) of the batch. Small pieces are joined. */
static enum gar_status keep_rows(struct distinct *op, struct worker *w,
                                 const struct gar_batch *batch, struct gar_buffer *rows,
                                 int64_t count, struct gar_error *err)
{
    struct gar_batch *view = NULL;
    enum gar_status status = gar_batch_select(batch, rows, count, &view, err);
    if (status < 0) {
        gar_buffer_unref(rows);
        return status;
    }
    struct gar_batch *piece = NULL;
    status = gar_batch_gather(view, op->base.memory, &piece, err);
    gar_batch_unref(view);
    GAR_TRY(status);
    struct gar_batch **last = w->kept.count > 0 ? &w->kept.batches[w->kept.count - 1] : NULL;
    if (last != NULL && count < KEEP_ROWS && (*last)->rows < KEEP_ROWS) {
        struct gar_batch *pair[2] = {*last, piece};
        struct gar_batch *joined = NULL;
        status = gar_batch_concat(op->schema, pair, 2, op->base.memory, &joined, err);
        gar_batch_unref(piece);
        GAR_TRY(status);
        gar_batch_unref(*last);
        *last = joined;
        return GAR_OK;
    }
    status = gar_batch_list_add(&w->kept, piece, err);
    if (status < 0) {
        gar_batch_unref(piece);
    }
    return status;
}

/* Find groups and keep the first rows of new ones. */
static enum gar_status add_batch(struct distinct *op, struct worker *w,
                                 const struct gar_batch *batch, int64_t seq, int64_t row,
                                 struct gar_error *err)
{
    const int64_t rows = batch->rows;
    const int64_t before = gar_group_table_count(w->table);
    GAR_TRY(grow_to(op->base.memory, &w->numbers, rows * (int64_t)sizeof(uint32_t), err));
    uint32_t *numbers = (uint32_t *)(void *)w->numbers->data;
    GAR_TRY(gar_group_table_find(w->table, w->keys, rows, numbers, err));
    const int64_t fresh = gar_group_table_count(w->table) - before;
    if (fresh == 0) {
        return GAR_OK;
    }
    GAR_TRY(
        grow_to(op->base.memory, &w->places, (before + fresh) * (int64_t)sizeof(uint64_t), err));
    struct gar_buffer *list = NULL;
    GAR_TRY(gar_buffer_new(op->base.memory, fresh * (int64_t)sizeof(uint32_t), &list, err));
    uint32_t *listed = (uint32_t *)(void *)list->data;
    uint64_t *places = (uint64_t *)(void *)w->places->data + before;
    int64_t n = 0;
    for (int64_t i = 0; i < rows && n < fresh; i++) {
        if (numbers[i] == before + n) {
            listed[n] = (uint32_t)i;
            places[n] = ((uint64_t)seq << 32) | (uint64_t)(row + i);
            n++;
        }
    }
    return keep_rows(op, w, batch, list, n, err);
}

static enum gar_status distinct_start(struct gar_sink *base, struct gar_query *query,
                                      int32_t workers, struct gar_error *err)
{
    struct distinct *op = (struct distinct *)base;
    (void)query;
    op->workers = (struct worker **)gar_calloc(workers, (int64_t)sizeof(struct worker *));
    if (op->workers == NULL) {
        return gar_error_nomem(err, workers * 8);
    }
    op->worker_count = workers;
    return GAR_OK;
}

static enum gar_status distinct_push(struct gar_sink *base, int32_t worker, int64_t seq,
                                     int64_t row, struct gar_batch *batch, struct gar_error *err)
{
    struct distinct *op = (struct distinct *)base;
    struct gar_batch *dense = NULL;
    enum gar_status status = gar_batch_gather(batch, op->base.memory, &dense, err);
    gar_batch_unref(batch);
    GAR_TRY(status);
    if (op->workers[worker] == NULL) {
        status = make_worker(op, &op->workers[worker], err);
    }
    struct worker *w = op->workers[worker];
    if (status >= 0) {
        status = gar_eval_run(w->eval, dense, w->keys, err);
    }
    if (status >= 0) {
        status = add_batch(op, w, dense, seq, row, err);
        for (int64_t k = 0; k < op->key_count; k++) {
            gar_column_unref(w->keys[k]);
        }
    }
    gar_batch_unref(dense);
    return status;
}

/* ---- joining ---- */

/* Where a group's row lies among all kept rows of all workers, and its place in the input. */
struct found {
    uint64_t place;
    int64_t row;
};

static enum gar_status absorb_worker(struct distinct *op, struct gar_group_table *table,
                                     const struct worker *w, int64_t first_row,
                                     struct gar_buffer **found, int64_t *found_count,
                                     struct gar_error *err)
{
    enum { STEP = 4096 };
    uint32_t theirs[STEP];
    uint32_t ours[STEP];
    const int64_t count = gar_group_table_count(w->table);
    const uint64_t *places = (const uint64_t *)(const void *)w->places->data;
    for (int64_t at = 0; at < count; at += STEP) {
        const int64_t n = gar_min_i64(count - at, STEP);
        GAR_CANCEL_CHECK(op->query->cancel, err);
        for (int64_t i = 0; i < n; i++) {
            theirs[i] = (uint32_t)(at + i);
        }
        GAR_TRY(gar_group_table_absorb(table, w->table, theirs, n, ours, err));
        const int64_t groups = gar_group_table_count(table);
        GAR_TRY(grow_to(op->base.memory, found, groups * (int64_t)sizeof(struct found), err));
        struct found *all = (struct found *)(void *)(*found)->data;
        for (int64_t i = 0; i < n; i++) {
            struct found *f = &all[ours[i]];
            if (ours[i] >= *found_count || places[at + i] < f->place) {
                *f = (struct found){places[at + i], first_row + at + i};
            }
            *found_count = gar_max_i64(*found_count, (int64_t)ours[i] + 1);
        }
    }
    return GAR_OK;
}

/* By place, by a sort that can be stopped. */
static enum gar_status sort_found(struct distinct *op, struct found *found, int64_t count,
                                  struct gar_error *err)
{
    struct gar_buffer *scratch = NULL;
    GAR_TRY(gar_buffer_new(op->base.memory, 2 * count * (int64_t)sizeof(struct gar_sort_entry),
                           &scratch, err));
    struct gar_sort_entry *entries = (struct gar_sort_entry *)(void *)scratch->data;
    for (int64_t i = 0; i < count; i++) {
        entries[i] = (struct gar_sort_entry){.key = found[i].place,
                                             .row = (uint32_t)found[i].row,
                                             .more = (uint32_t)(found[i].row >> 32)};
    }
    gar_radix_sort(entries, entries + count, count);
    for (int64_t i = 0; i < count; i++) {
        found[i] = (struct found){entries[i].key,
                                  (int64_t)(((uint64_t)entries[i].more << 32) | entries[i].row)};
    }
    gar_buffer_unref(scratch);
    return gar_stop_check(err);
}

/* All kept rows of all workers as one batch. */
static enum gar_status concat_kept(struct distinct *op, struct gar_batch **out,
                                   struct gar_error *err)
{
    int64_t count = 0;
    for (int32_t i = 0; i < op->worker_count; i++) {
        count += op->workers[i] != NULL ? op->workers[i]->kept.count : 0;
    }
    struct gar_batch **all = (struct gar_batch **)gar_calloc(count, (int64_t)sizeof *all);
    if (all == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *all);
    }
    int64_t n = 0;
    for (int32_t i = 0; i < op->worker_count; i++) {
        for (int64_t b = 0; op->workers[i] != NULL && b < op->workers[i]->kept.count; b++) {
            all[n++] = op->workers[i]->kept.batches[b];
        }
    }
    const enum gar_status status = gar_batch_concat(op->schema, all, n, op->base.memory, out, err);
    gar_free(all);
    return status;
}

/* Rows of `all` named by found[first, first + count) as a batch. */
static enum gar_status gather_found(struct distinct *op, const struct gar_batch *all,
                                    const struct found *found, int64_t count,
                                    struct gar_batch **out, struct gar_error *err)
{
    const int64_t fields = op->schema->count;
    int64_t *rows = (int64_t *)gar_malloc(count * (int64_t)sizeof *rows);
    struct gar_column **columns =
        (struct gar_column **)gar_calloc(fields, (int64_t)sizeof *columns);
    enum gar_status status =
        rows != NULL && columns != NULL ? GAR_OK : gar_error_nomem(err, count * 8);
    for (int64_t i = 0; i < count && status >= 0; i++) {
        rows[i] = found[i].row;
    }
    for (int64_t c = 0; c < fields && status >= 0; c++) {
        status =
            gar_column_gather_i64(all->columns[c], rows, count, op->base.memory, &columns[c], err);
    }
    if (status >= 0) {
        status = gar_batch_new(op->schema, columns, count, out, err);
    }
    for (int64_t c = 0; columns != NULL && c < fields && status < 0; c++) {
        gar_column_unref(columns[c]);
    }
    gar_free(rows);
    gar_free(columns);
    return status;
}

static enum gar_status put_result(struct distinct *op, struct found *found, int64_t count,
                                  struct gar_error *err)
{
    struct gar_batch *all = NULL;
    GAR_TRY(concat_kept(op, &all, err));
    enum gar_status status = sort_found(op, found, count, err);
    for (int64_t at = 0; at < count && status >= 0; at += RESULT_ROWS) {
        struct gar_batch *piece = NULL;
        status = gar_stop_check(err);
        if (status < 0) {
            break;
        }
        status =
            gather_found(op, all, found + at, gar_min_i64(count - at, RESULT_ROWS), &piece, err);
        if (status >= 0) {
            status = gar_batch_list_add(&op->result, piece, err);
            if (status < 0) {
                gar_batch_unref(piece);
            }
        }
    }
    gar_batch_unref(all);
    return status;
}

static enum gar_status join_workers(struct distinct *op, struct gar_error *err)
{
    struct gar_group_table *table = NULL;
    struct gar_buffer *found = NULL;
    int64_t found_count = 0;
    int64_t first_row = 0;
    GAR_TRY(gar_group_table_new(&op->layout, op->base.memory, &table, err));
    enum gar_status status = GAR_OK;
    for (int32_t i = 0; i < op->worker_count && status >= 0; i++) {
        const struct worker *w = op->workers[i];
        if (w != NULL && w->places != NULL) {
            status = absorb_worker(op, table, w, first_row, &found, &found_count, err);
            first_row += gar_group_table_count(w->table);
        }
    }
    if (status >= 0 && found_count > 0) {
        status = put_result(op, (struct found *)(void *)found->data, found_count, err);
    }
    gar_group_table_free(table);
    gar_buffer_unref(found);
    return status;
}

static enum gar_status distinct_stage(struct gar_sink *base, struct gar_query *query, int32_t stage,
                                      int64_t *out_items, struct gar_error *err)
{
    struct distinct *op = (struct distinct *)base;
    (void)query;
    (void)err;
    *out_items = 0;
    int64_t used = 0;
    struct worker *only = NULL;
    for (int32_t i = 0; i < op->worker_count; i++) {
        if (op->workers[i] != NULL) {
            only = op->workers[i];
            used++;
        }
    }
    if (stage == 0 && used > 1) {
        *out_items = 1;
        return GAR_OK;
    }
    if (stage == 0 && used == 1) { /* its rows are the result */
        op->result.batches = only->kept.batches;
        op->result.count = only->kept.count;
        op->result.capacity = only->kept.capacity;
        only->kept.batches = NULL;
        only->kept.count = only->kept.capacity = 0;
    }
    for (int32_t i = 0; i < op->worker_count; i++) {
        free_worker(op->workers[i]);
        op->workers[i] = NULL;
    }
    return GAR_OK;
}

static enum gar_status distinct_item(struct gar_sink *base, int32_t stage, int64_t item,
                                     int32_t worker, struct gar_error *err)
{
    (void)stage;
    (void)item;
    (void)worker;
    return join_workers((struct distinct *)base, err);
}

static void distinct_explain(const struct gar_sink *base, struct gar_strbuf *out)
{
    const struct distinct *op = (const struct distinct *)(const void *)base;
    gar_strbuf_printf(out, "distinct by %lld keys (first rows, a table per worker)",
                      (long long)op->key_count);
}

static void free_distinct(void *object)
{
    struct distinct *op = (struct distinct *)object;
    for (int32_t i = 0; op->workers != NULL && i < op->worker_count; i++) {
        free_worker(op->workers[i]);
    }
    gar_free(op->workers);
    gar_batch_list_destroy(&op->result);
    gar_key_layout_destroy(&op->layout);
    gar_program_unref(op->program);
    gar_schema_unref(op->schema);
    gar_free(op);
}

/* The key expressions: the plan's, or every column. Items are new references. */
static enum gar_status list_keys(const struct gar_plan *plan, int64_t count, struct gar_expr **out,
                                 struct gar_error *err)
{
    for (int64_t i = 0; i < count; i++) {
        if (plan->expr_count > 0) {
            out[i] = gar_expr_ref(plan->exprs[i]);
        } else {
            GAR_TRY(gar_expr_new_column(plan->inputs[0]->schema->fields[i].name, &out[i], err));
        }
    }
    return GAR_OK;
}

static enum gar_status make_keys(struct distinct *op, const struct gar_plan *plan,
                                 struct gar_error *err)
{
    const struct gar_schema *input = plan->inputs[0]->schema;
    op->key_count = plan->expr_count > 0 ? plan->expr_count : input->count;
    struct gar_expr **keys =
        (struct gar_expr **)gar_calloc(op->key_count, (int64_t)sizeof(struct gar_expr *));
    struct gar_type *types = (struct gar_type *)gar_calloc(op->key_count, (int64_t)sizeof *types);
    enum gar_status status =
        keys != NULL && types != NULL ? GAR_OK : gar_error_nomem(err, op->key_count * 24);
    if (status >= 0) {
        status = list_keys(plan, op->key_count, keys, err);
    }
    if (status >= 0) {
        status = gar_program_new(input, keys, op->key_count, &op->program, err);
    }
    for (int64_t i = 0; i < op->key_count && status >= 0; i++) {
        types[i] = gar_program_output_type(op->program, i);
    }
    if (status >= 0) {
        status = gar_key_layout_init(&op->layout, types, op->key_count, err);
    }
    for (int64_t i = 0; keys != NULL && i < op->key_count; i++) {
        gar_expr_unref(keys[i]);
    }
    gar_free(keys);
    gar_free(types);
    return status;
}

enum gar_status gar_distinct_new(struct gar_query *query, const struct gar_plan *plan,
                                 struct gar_sink **out_sink, struct gar_source **out_source,
                                 struct gar_error *err)
{
    static const struct gar_sink_vtable vtable = {.name = "distinct",
                                                  .start = distinct_start,
                                                  .push = distinct_push,
                                                  .stage = distinct_stage,
                                                  .item = distinct_item,
                                                  .explain = distinct_explain};
    struct distinct *op = (struct distinct *)gar_calloc(1, (int64_t)sizeof *op);
    if (op == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *op);
    }
    op->base.vtable = &vtable;
    op->query = query;
    op->schema = gar_schema_ref(plan->schema);
    gar_batch_list_init(&op->result);
    GAR_TRY(gar_query_own(query, op, free_distinct, err));
    GAR_TRY(gar_query_op_memory(query, &op->base.memory, err));
    GAR_TRY(make_keys(op, plan, err));
    *out_sink = &op->base;
    *out_source = &op->result.source;
    return GAR_OK;
}
