/* SPDX-License-Identifier: Apache-2.0 */
/* Distinct: the whole first row of every key.
 *
 * 1. Each worker keeps, for every new group of its table, the row that made it (groups are numbered in the order of their
 *    first rows, so row g of the kept rows belongs to group g) and the row's place in the input. Units come to a worker
 *    in ascending order, so what it keeps is its first.
 * 2. Every worker's groups are listed by hash partition (an item a worker). In each partition, the row with the smallest
 *    place wins (an item a partition) and is marked.
 * 3. Rows that came to a worker one behind the other are a run. Runs in the order of their places are the result: parts of
 *    the kept batches, with the marked rows selected. Nothing is copied.
 *
 * When memory is short, tables are frozen: rows of keys that a worker has are dropped as before, all others are put aside by
 * hash partition with their places (exec/partitioned.h). Each partition is then made distinct by an operator of its own (a
 * part), one after the other, which takes over the partition's groups of all frozen tables in step 2; a part that is
 * short of memory does the same, by further bits of the hash. A part's rows come in any order: it keeps a row for a key
 * again when its place is before that of the one it has.
 *
 * Memory: keys and kept rows of every worker; while they are joined, once more the keys of the partitions at work. Under
 * pressure those of frozen tables and of one partition.
 * Order: kept; by partition under pressure. */
#include <stdlib.h>
#include <string.h>

#include "arrow/gather.h"
#include "base/alloc.h"
#include "base/stop.h"
#include "exec/group_table.h"
#include "exec/ops/ops.h"
#include "exec/partitioned.h"
#include "kernels/radix_sort.h"

enum {
    RESULT_ROWS = 1 << 16,
    KEEP_ROWS = 1024,
    JOIN_ALONE_GROUPS = 1 << 13, /* so many groups in all are joined by one item */
    STOP_STEPS = 1 << 16,
    FORCED_SHIFT_MAX = 2 * GAR_PARTITION_BITS, /* where tests force it */
};

/* With rows of one worker only, the first stage is the last: it orders them. */
enum stage { STAGE_LIST, STAGE_JOIN, STAGE_ORDER };

/* Groups whose rows came one behind the other; of one worker, up to those of its next run. */
struct run {
    uint64_t place;
    int64_t first; /* group */
};

struct worker {
    struct gar_group_table *table; /* owned */
    struct gar_eval *eval;         /* owned */
    struct gar_column **keys;      /* owned array */
    struct gar_buffer *numbers;    /* owned; uint32_t group of each row of a batch */
    struct gar_batch_list kept;    /* rows of the groups, in order */
    struct gar_buffer *places;     /* owned; uint64_t place of each group's row */
    struct run *runs;              /* owned; in the order of the groups */
    int64_t run_count;
    int64_t run_capacity;
    uint64_t next_place; /* of the row behind the last one pushed */
    int64_t count;       /* groups whose rows are kept */
    int64_t kept_rows;
    struct gar_buffer *
        row_of; /* owned; of a part: uint32_t kept row of each group; else row g is that of group g */
    bool is_frozen;             /* takes no more groups */
    struct gar_column **picked; /* owned array; rows put aside */
    struct gar_buffer *lists;   /* owned; uint32_t rows put aside, and their hashes */
    uint64_t *scratch;          /* owned; key rows */
    /* after the input */
    struct gar_group_parts parts;
    uint8_t *is_first; /* owned; of each kept row; NULL: all are */
    int64_t *starts;   /* owned; first row of each kept batch, and the end */
};

/* Groups of a frozen table that a part takes over. */
struct share {
    struct worker *worker;
    const uint32_t *listed; /* borrowed from the giver */
    int64_t count;
    struct gar_group_parts parts; /* of the listed ones */
    uint32_t *rows;               /* owned; their kept rows, ascending */
};

/* Rows of a part of a kept batch. */
struct segment {
    const struct worker *worker;
    int64_t batch;
    int64_t row; /* in the batch */
    int64_t rows;
    const uint32_t *listed; /* the kept rows, ascending, all of the batch; NULL: from row on */
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
    /* after the input */
    struct worker **used; /* owned array of borrowed workers */
    int64_t used_count;
    int32_t partition_bits;
    struct gar_source source;
    struct segment *segments; /* owned; in order */
    int64_t segment_count;
    int64_t segment_capacity;
    int64_t next_segment;
    /* under pressure */
    struct gar_schema *row_schema; /* owned reference; the input's columns, then places */
    struct gar_partitioned *aside; /* owned */
    int32_t is_short;              /* atomic: all workers freeze */
    bool has_parts;                /* what is aside makes the result */
    int32_t shift;                 /* bits of the hash that all its rows share */
    int64_t bytes_before;          /* that the operator held when this part of it began */
    struct distinct *whole;        /* of a part: what it is a part of; the plan's things are its */
    struct share *shares;          /* owned; of a part */
    int64_t share_count;
    int64_t open_parts; /* that are not through */
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
    gar_free(w->runs);
    gar_buffer_unref(w->row_of);
    gar_free(w->picked);
    gar_buffer_unref(w->lists);
    gar_free(w->scratch);
    gar_group_parts_destroy(&w->parts);
    gar_free(w->is_first);
    gar_free(w->starts);
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
    w->picked = (struct gar_column **)gar_calloc(op->row_schema->count + op->key_count,
                                                 (int64_t)sizeof(struct gar_column *));
    if (w->keys == NULL || w->picked == NULL) {
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

/* Rows from `place` on are about to be pushed; the first new group among them will be `group`. */
static enum gar_status note_run(struct worker *w, uint64_t place, int64_t rows, int64_t group,
                                struct gar_error *err)
{
    const bool goes_on = w->run_count > 0 && place == w->next_place;
    w->next_place = place + (uint64_t)rows;
    if (goes_on) {
        return GAR_OK;
    }
    if (w->run_count > 0 && w->runs[w->run_count - 1].first == group) {
        w->run_count--; /* an empty one */
    }
    GAR_TRY(gar_grow((void **)&w->runs, &w->run_capacity, w->run_count + 1,
                     (int64_t)sizeof *w->runs, err));
    w->runs[w->run_count++] = (struct run){place, group};
    return GAR_OK;
}

/* Rows of an input batch. */
struct rows {
    const struct gar_batch *batch;
    uint64_t place;         /* of the first */
    const uint64_t *places; /* of each; NULL: they follow the first */
};

static uint64_t place_of(const struct rows *rows, int64_t i)
{
    return rows->places != NULL ? rows->places[i] : rows->place + (uint64_t)i;
}

/* Rows of the batch that are kept: the first of each new group. Returns how many. */
static int64_t list_new(struct worker *w, const struct rows *rows, const uint32_t *numbers,
                        int64_t before, uint32_t *listed)
{
    uint64_t *places = (uint64_t *)(void *)w->places->data;
    const int64_t fresh = gar_group_table_count(w->table) - before;
    int64_t n = 0;
    for (int64_t i = 0; i < rows->batch->rows && n < fresh; i++) {
        if (numbers[i] == before + n) {
            listed[n] = (uint32_t)i;
            places[before + n] = place_of(rows, i);
            n++;
        }
    }
    return n;
}

/* The same of a part: also rows before the one that is kept. */
static int64_t list_earlier(struct worker *w, const struct rows *rows, const uint32_t *numbers,
                            int64_t before, uint32_t *listed)
{
    uint64_t *places = (uint64_t *)(void *)w->places->data;
    uint32_t *row_of = (uint32_t *)(void *)w->row_of->data;
    int64_t known = before;
    int64_t n = 0;
    for (int64_t i = 0; i < rows->batch->rows; i++) {
        const uint32_t group = numbers[i];
        const bool is_new = group == known;
        if (is_new || place_of(rows, i) < places[group]) {
            known += is_new;
            places[group] = place_of(rows, i);
            row_of[group] = (uint32_t)(w->kept_rows + n);
            listed[n++] = (uint32_t)i;
        }
    }
    return n;
}

/* Find groups and keep the first rows of new ones. */
static enum gar_status keep_new(struct distinct *op, struct worker *w, const struct rows *rows,
                                struct gar_error *err)
{
    struct gar_memory *memory = op->base.memory;
    const int64_t count = rows->batch->rows;
    const int64_t before = w->count;
    GAR_TRY(note_run(w, rows->place, count, before, err));
    GAR_TRY(grow_to(memory, &w->numbers, count * (int64_t)sizeof(uint32_t), err));
    uint32_t *numbers = (uint32_t *)(void *)w->numbers->data;
    GAR_TRY(gar_group_table_find(w->table, w->keys, count, numbers, err));
    const int64_t after = gar_group_table_count(w->table);
    if (after == before && op->whole == NULL) {
        return GAR_OK;
    }
    GAR_TRY(grow_to(memory, &w->places, after * (int64_t)sizeof(uint64_t), err));
    if (op->whole != NULL) {
        GAR_TRY(grow_to(memory, &w->row_of, after * (int64_t)sizeof(uint32_t), err));
    }
    struct gar_buffer *list = NULL;
    GAR_TRY(gar_buffer_new(memory, count * (int64_t)sizeof(uint32_t), &list, err));
    uint32_t *listed = (uint32_t *)(void *)list->data;
    const int64_t n = op->whole != NULL ? list_earlier(w, rows, numbers, before, listed)
                                        : list_new(w, rows, numbers, before, listed);
    if (n == 0) {
        gar_buffer_unref(list);
        return GAR_OK;
    }
    GAR_TRY(keep_rows(op, w, rows->batch, list, n, err));
    w->kept_rows += n;
    w->count = after;
    return GAR_OK;
}

/* ---- rows put aside ---- */

static bool may_divide(const struct distinct *op)
{
    return gar_query_may_divide(op->query, op->shift);
}

static void freeze(struct distinct *op, struct worker *w)
{
    __atomic_store_n(&op->is_short, 1, __ATOMIC_RELAXED);
    gar_group_table_freeze(w->table, true);
    w->is_frozen = true;
}

/* Before a batch of unit seq: is there room for what it may bring? */
static void look_at_room(struct distinct *op, struct worker *w, int64_t seq)
{
    if (w->is_frozen || !may_divide(op)) {
        return;
    }
    const int64_t own = gar_profile_memory_bytes(op->base.memory) - op->bytes_before;
    const bool is_forced =
        op->query->spills_always && op->shift < FORCED_SHIFT_MAX && (w->count > 0 || seq % 2 == 1);
    if (is_forced || __atomic_load_n(&op->is_short, __ATOMIC_RELAXED) != 0 ||
        gar_query_is_tight(op->query, op->shift, own / op->worker_count)) {
        freeze(op, w);
    }
}

/* Columns of the listed rows: those of the input, their places, and their keys. */
static enum gar_status pick_columns(struct distinct *op, struct worker *w, const struct rows *rows,
                                    const uint32_t *listed, int64_t count, struct gar_error *err)
{
    struct gar_memory *memory = op->base.memory;
    const int64_t columns = op->schema->count;
    for (int64_t c = 0; c < columns; c++) {
        GAR_TRY(
            gar_column_gather(rows->batch->columns[c], listed, count, memory, &w->picked[c], err));
    }
    GAR_TRY(
        gar_column_new(memory, gar_type_of(GAR_UINT64), count, false, &w->picked[columns], err));
    uint64_t *places = (uint64_t *)gar_column_values_mut(w->picked[columns]);
    for (int64_t i = 0; i < count; i++) {
        places[i] = place_of(rows, listed[i]);
    }
    w->picked[columns]->null_count = 0;
    for (int64_t k = 0; k < op->key_count; k++) {
        GAR_TRY(
            gar_column_gather(w->keys[k], listed, count, memory, &w->picked[columns + 1 + k], err));
    }
    return GAR_OK;
}

static enum gar_status put_aside(struct distinct *op, struct worker *w, int32_t worker,
                                 const struct rows *rows, const uint32_t *listed, int64_t count,
                                 uint32_t *hashes, struct gar_error *err)
{
    if (w->scratch == NULL) {
        const int64_t bytes = (int64_t)op->layout.words * GAR_KEY_ROWS * (int64_t)sizeof(uint64_t);
        w->scratch = (uint64_t *)gar_malloc(bytes);
        if (w->scratch == NULL) {
            return gar_error_nomem(err, bytes);
        }
    }
    enum gar_status status = pick_columns(op, w, rows, listed, count, err);
    if (status >= 0) {
        gar_key_hashes(&op->layout, w->picked + op->schema->count + 1, 0, count, w->scratch,
                       hashes);
        status = gar_partitioned_add(op->aside, worker, w->picked, count, hashes, err);
    }
    for (int64_t c = 0; c < op->row_schema->count + op->key_count; c++) {
        gar_column_unref(w->picked[c]);
        w->picked[c] = NULL;
    }
    return status;
}

/* Rows of keys that a frozen table has not; of a part also those before the one it keeps. */
static enum gar_status keep_others(struct distinct *op, struct worker *w, int32_t worker,
                                   const struct rows *rows, struct gar_error *err)
{
    const int64_t count = rows->batch->rows;
    const int64_t bytes = count * (int64_t)sizeof(uint32_t);
    GAR_TRY(grow_to(op->base.memory, &w->numbers, bytes, err));
    GAR_TRY(grow_to(op->base.memory, &w->lists, 2 * bytes, err));
    uint32_t *numbers = (uint32_t *)(void *)w->numbers->data;
    uint32_t *listed = (uint32_t *)(void *)w->lists->data;
    GAR_TRY(gar_group_table_find(w->table, w->keys, count, numbers, err));
    const uint64_t *places =
        w->places != NULL ? (const uint64_t *)(const void *)w->places->data : NULL;
    int64_t n = 0;
    for (int64_t i = 0; i < count; i++) {
        const bool is_known = numbers[i] < w->count;
        listed[n] = (uint32_t)i;
        n += !is_known || (op->whole != NULL && place_of(rows, i) < places[numbers[i]]);
    }
    return n > 0 ? put_aside(op, w, worker, rows, listed, n, listed + count, err) : GAR_OK;
}

/* Short of memory for new groups the worker is frozen, and the batch is begun again. */
static enum gar_status add_batch(struct distinct *op, struct worker *w, int32_t worker,
                                 const struct rows *rows, struct gar_error *err)
{
    if (!w->is_frozen) {
        const enum gar_status status = keep_new(op, w, rows, err);
        if (status != GAR_ERR_NOMEM || !may_divide(op)) {
            return status;
        }
        freeze(op, w);
    }
    return keep_others(op, w, worker, rows, err);
}

static enum gar_status distinct_start(struct gar_sink *base, struct gar_query *query,
                                      int32_t workers, struct gar_error *err)
{
    struct distinct *op = (struct distinct *)base;
    op->workers = (struct worker **)gar_calloc(workers, (int64_t)sizeof(struct worker *));
    op->used = (struct worker **)gar_calloc(workers, (int64_t)sizeof(struct worker *));
    if (op->workers == NULL || op->used == NULL) {
        return gar_error_nomem(err, workers * 16);
    }
    op->worker_count = workers;
    op->bytes_before = gar_profile_memory_bytes(op->base.memory);
    return gar_partitioned_new(query, op->row_schema, op->shift, 0, 0, op->base.memory, &op->aside,
                               err);
}

/* The batch (moved) without the places of a part's rows. */
static enum gar_status drop_places(const struct distinct *op, struct gar_batch **batch,
                                   struct gar_error *err)
{
    struct gar_batch *all = *batch;
    const int64_t count = op->schema->count;
    struct gar_batch *without = NULL;
    struct gar_column **columns = (struct gar_column **)gar_calloc(count, (int64_t)sizeof *columns);
    enum gar_status status = columns != NULL ? GAR_OK : gar_error_nomem(err, count * 8);
    for (int64_t c = 0; c < count && status >= 0; c++) {
        columns[c] = gar_column_ref(all->columns[c]);
    }
    if (status >= 0) {
        status = gar_batch_new(op->schema, columns, all->rows, &without, err);
    }
    for (int64_t c = 0; columns != NULL && c < count && status < 0; c++) {
        gar_column_unref(columns[c]);
    }
    gar_free(columns);
    gar_batch_unref(all);
    *batch = without;
    return status;
}

static enum gar_status distinct_push(struct gar_sink *base, int32_t worker, int64_t seq,
                                     int64_t row, struct gar_batch *batch, struct gar_error *err)
{
    struct distinct *op = (struct distinct *)base;
    struct gar_batch *whole = NULL;
    enum gar_status status = gar_batch_gather(batch, op->base.memory, &whole, err);
    gar_batch_unref(batch);
    GAR_TRY(status);
    struct gar_batch *dense = gar_batch_ref(whole);
    if (op->whole != NULL) {
        status = drop_places(op, &dense, err);
    }
    if (status >= 0 && op->workers[worker] == NULL) {
        status = make_worker(op, &op->workers[worker], err);
    }
    struct worker *w = op->workers[worker];
    if (status >= 0) {
        look_at_room(op, w, seq);
        status = gar_eval_run(w->eval, dense, w->keys, err);
    }
    if (status >= 0) {
        struct rows rows = {dense, ((uint64_t)seq << 32) | (uint64_t)row, NULL};
        if (op->whole != NULL) {
            rows.places = (const uint64_t *)whole->columns[op->schema->count]->values;
        }
        status = add_batch(op, w, worker, &rows, err);
        for (int64_t k = 0; k < op->key_count; k++) {
            gar_column_unref(w->keys[k]);
        }
    }
    gar_batch_unref(dense);
    gar_batch_unref(whole);
    return status;
}

/* ---- joining ---- */

/* Where the first row of a key is. */
struct found {
    uint64_t place;
    struct worker *worker;
    int64_t group;
};

/* Put the partition's groups of a worker into the table, and remember whose row comes first. */
static enum gar_status absorb_part(struct distinct *op, struct gar_group_table *table,
                                   struct worker *w, const struct gar_group_parts *parts,
                                   int64_t part, struct gar_buffer **found, struct gar_error *err)
{
    enum { STEP = 4096 };
    uint32_t ours[STEP];
    const int64_t end = parts->starts[part + 1];
    for (int64_t at = parts->starts[part]; at < end; at += STEP) {
        const uint64_t *places = (const uint64_t *)(const void *)w->places->data;
        const int64_t n = gar_min_i64(end - at, STEP);
        const int64_t before = gar_group_table_count(table);
        const uint32_t *theirs = parts->groups + at;
        GAR_CANCEL_CHECK(op->query->cancel, err);
        GAR_TRY(gar_group_table_absorb(table, w->table, theirs, n, ours, err));
        GAR_TRY(grow_to(op->base.memory, found,
                        gar_group_table_count(table) * (int64_t)sizeof(struct found), err));
        struct found *all = (struct found *)(void *)(*found)->data;
        for (int64_t i = 0; i < n; i++) {
            const uint64_t place = places[theirs[i]];
            if (ours[i] >= before || place < all[ours[i]].place) {
                all[ours[i]] = (struct found){place, w, theirs[i]};
            }
        }
    }
    return GAR_OK;
}

static void mark_first(struct worker *w, int64_t group)
{
    const uint32_t *row_of =
        w->row_of != NULL ? (const uint32_t *)(const void *)w->row_of->data : NULL;
    w->is_first[row_of != NULL ? (int64_t)row_of[group] : group] = 1;
}

/* Mark the first row of every key of the partition. */
static enum gar_status join_part(struct distinct *op, int64_t part, struct gar_error *err)
{
    struct gar_group_table *table = NULL;
    struct gar_buffer *found = NULL;
    GAR_TRY(gar_group_table_new(&op->layout, op->base.memory, &table, err));
    enum gar_status status = GAR_OK;
    for (int64_t k = 0; k < op->used_count && status >= 0; k++) {
        status = absorb_part(op, table, op->used[k], &op->used[k]->parts, part, &found, err);
    }
    for (int64_t k = 0; k < op->share_count && status >= 0; k++) {
        status =
            absorb_part(op, table, op->shares[k].worker, &op->shares[k].parts, part, &found, err);
    }
    for (int64_t g = 0; status >= 0 && g < gar_group_table_count(table); g++) {
        const struct found *first = (const struct found *)(const void *)found->data + g;
        mark_first(first->worker, first->group);
    }
    gar_group_table_free(table);
    gar_buffer_unref(found);
    return status;
}

static enum gar_status number_kept(struct worker *w, struct gar_error *err)
{
    w->starts = (int64_t *)gar_calloc(w->kept.count + 1, (int64_t)sizeof *w->starts);
    if (w->starts == NULL) {
        return gar_error_nomem(err, (w->kept.count + 1) * (int64_t)sizeof *w->starts);
    }
    for (int64_t b = 0; b < w->kept.count; b++) {
        w->starts[b + 1] = w->starts[b] + w->kept.batches[b]->rows;
    }
    return GAR_OK;
}

/* How many give groups: workers and shares. */
static int64_t givers(const struct distinct *op)
{
    return op->used_count + op->share_count;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* The kept rows of a share's groups. */
static enum gar_status list_rows(struct share *share, struct gar_error *err)
{
    const struct gar_buffer *row_of = share->worker->row_of;
    share->rows = (uint32_t *)gar_malloc(share->count * (int64_t)sizeof *share->rows);
    if (share->rows == NULL) {
        return gar_error_nomem(err, share->count * (int64_t)sizeof *share->rows);
    }
    for (int64_t i = 0; i < share->count; i++) {
        const uint32_t group = share->listed[i];
        share->rows[i] =
            row_of != NULL ? ((const uint32_t *)(const void *)row_of->data)[group] : group;
    }
    if (row_of != NULL) {
        qsort(share->rows, (size_t)share->count, sizeof *share->rows, by_number);
    }
    return GAR_OK;
}

/* List a giver's groups by partition. */
static enum gar_status list_giver(struct distinct *op, int64_t item, struct gar_error *err)
{
    if (item >= op->used_count) {
        struct share *share = &op->shares[item - op->used_count];
        GAR_TRY(list_rows(share, err));
        return gar_group_parts_init(&share->parts, share->worker->table, share->listed,
                                    share->count, op->shift, op->partition_bits, err);
    }
    struct worker *w = op->used[item];
    GAR_TRY(number_kept(w, err));
    if (givers(op) == 1 && !op->has_parts && w->row_of == NULL) {
        return GAR_OK; /* its rows are the result */
    }
    w->is_first = (uint8_t *)gar_calloc(w->kept_rows, 1);
    if (w->is_first == NULL) {
        return gar_error_nomem(err, w->kept_rows);
    }
    for (int32_t i = 0; op->has_parts && i < op->worker_count; i++) {
        if (op->workers[i] == w) {
            GAR_TRY(gar_partitioned_flush(op->aside, i, err));
        }
    }
    return gar_group_parts_init(&w->parts, w->table, NULL, w->count, op->shift, op->partition_bits,
                                err);
}

/* ---- the result ---- */

/* A run, and whose. */
struct owned_run {
    struct worker *worker;
    uint64_t place;
    int64_t first;
    int64_t end;
};

/* The numbers of the runs, by place, are the rows of *out's entries. A sort that can be stopped. */
static enum gar_status sort_runs(struct distinct *op, const struct owned_run *runs, int64_t count,
                                 struct gar_buffer **out, struct gar_error *err)
{
    GAR_TRY(gar_buffer_new(op->base.memory, 2 * count * (int64_t)sizeof(struct gar_sort_entry), out,
                           err));
    struct gar_sort_entry *entries = (struct gar_sort_entry *)(void *)(*out)->data;
    for (int64_t i = 0; i < count; i++) {
        entries[i] = (struct gar_sort_entry){
            .key = runs[i].place, .row = (uint32_t)i, .more = (uint32_t)((uint64_t)i >> 32)};
    }
    gar_radix_sort(entries, entries + count, count);
    return gar_stop_check(err);
}

/* The kept batch that a group's row lies in. */
static int64_t batch_of(const struct worker *w, int64_t group)
{
    int64_t low = 0;
    int64_t high = w->kept.count;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (w->starts[middle] <= group) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static enum gar_status add_segments(struct distinct *op, const struct owned_run *run,
                                    struct gar_error *err)
{
    const struct worker *w = run->worker;
    for (int64_t group = run->first; group < run->end;) {
        const int64_t batch = batch_of(w, group);
        const int64_t rows = gar_min_i64(run->end, w->starts[batch + 1]) - group;
        GAR_TRY(gar_grow((void **)&op->segments, &op->segment_capacity, op->segment_count + 1,
                         (int64_t)sizeof *op->segments, err));
        op->segments[op->segment_count++] =
            (struct segment){w, batch, group - w->starts[batch], rows, NULL};
        group += rows;
    }
    return GAR_OK;
}

/* All runs of all workers in the order of the input become segments. */
static enum gar_status order_runs(struct distinct *op, struct gar_error *err)
{
    int64_t count = 0;
    for (int64_t k = 0; k < op->used_count; k++) {
        count += op->used[k]->run_count;
    }
    struct owned_run *runs = (struct owned_run *)gar_calloc(count, (int64_t)sizeof *runs);
    if (runs == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *runs);
    }
    int64_t n = 0;
    for (int64_t k = 0; k < op->used_count; k++) {
        struct worker *w = op->used[k];
        for (int64_t r = 0; r < w->run_count; r++) {
            const int64_t end =
                r + 1 < w->run_count ? w->runs[r + 1].first : w->starts[w->kept.count];
            runs[n++] = (struct owned_run){w, w->runs[r].place, w->runs[r].first, end};
        }
    }
    struct gar_buffer *sorted = NULL;
    enum gar_status status = sort_runs(op, runs, count, &sorted, err);
    for (int64_t r = 0; r < count && status >= 0; r++) {
        const struct gar_sort_entry *entry =
            (const struct gar_sort_entry *)(const void *)sorted->data + r;
        status = add_segments(op, &runs[((uint64_t)entry->more << 32) | entry->row], err);
        if (status >= 0 && r % STOP_STEPS == 0) {
            status = gar_stop_check(err);
        }
    }
    gar_buffer_unref(sorted);
    gar_free(runs);
    return status;
}

static enum gar_status add_segment(struct distinct *op, const struct segment *segment,
                                   struct gar_error *err)
{
    GAR_TRY(gar_grow((void **)&op->segments, &op->segment_capacity, op->segment_count + 1,
                     (int64_t)sizeof *op->segments, err));
    op->segments[op->segment_count++] = *segment;
    return GAR_OK;
}

/* Rows of a part, in no order: those it has kept, and those of groups it has taken over. */
static enum gar_status list_segments(struct distinct *op, struct gar_error *err)
{
    for (int64_t k = 0; k < op->used_count; k++) {
        const struct worker *w = op->used[k];
        for (int64_t b = 0; b < w->kept.count; b++) {
            const struct segment all = {w, b, 0, w->kept.batches[b]->rows, NULL};
            GAR_TRY(add_segment(op, &all, err));
        }
    }
    for (int64_t k = 0; k < op->share_count; k++) {
        const struct share *share = &op->shares[k];
        const struct worker *w = share->worker;
        uint32_t *rows = share->rows;
        int64_t end = 0;
        for (int64_t at = 0; at < share->count; at = end) {
            const int64_t batch = batch_of(w, rows[at]);
            for (end = at + 1; end < share->count && rows[end] < w->starts[batch + 1];) {
                end++;
            }
            const struct segment listed = {w, batch, 0, end - at, rows + at};
            GAR_TRY(add_segment(op, &listed, err));
        }
    }
    return GAR_OK;
}

/* How many give groups. */
static int64_t plan_join(struct distinct *op)
{
    int64_t groups = 0;
    for (int32_t i = 0; i < op->worker_count; i++) {
        struct worker *w = op->workers[i];
        if (w != NULL) {
            op->used[op->used_count++] = w;
            groups += w->count;
        }
    }
    for (int64_t k = 0; k < op->share_count; k++) {
        groups += op->shares[k].count;
    }
    op->has_parts = gar_partitioned_is_used(op->aside);
    op->partition_bits = op->has_parts                ? GAR_PARTITION_BITS
                         : groups > JOIN_ALONE_GROUPS ? gar_group_partition_bits(groups)
                                                      : 0;
    return givers(op);
}

static enum gar_status distinct_stage(struct gar_sink *base, struct gar_query *query, int32_t stage,
                                      int64_t *out_items, struct gar_error *err)
{
    struct distinct *op = (struct distinct *)base;
    (void)query;
    (void)err;
    *out_items = 0;
    if (stage == STAGE_LIST) {
        *out_items = plan_join(op);
    } else if (op->has_parts) {
        *out_items = 0;
    } else if (stage == STAGE_JOIN) {
        *out_items = givers(op) > 1 || op->whole != NULL ? (int64_t)1 << op->partition_bits : 0;
    } else if (stage == STAGE_ORDER) {
        *out_items = 1;
    }
    return GAR_OK;
}

static enum gar_status distinct_item(struct gar_sink *base, int32_t stage, int64_t item,
                                     int32_t worker, struct gar_error *err)
{
    struct distinct *op = (struct distinct *)base;
    (void)worker;
    if (stage == STAGE_JOIN) {
        return join_part(op, item, err);
    }
    if (stage == STAGE_LIST) {
        GAR_TRY(list_giver(op, item, err));
        return givers(op) > 1 || op->whole != NULL || op->has_parts ? GAR_OK : order_runs(op, err);
    }
    for (int64_t k = 0; k < op->used_count; k++) { /* not needed any more */
        gar_group_parts_destroy(&op->used[k]->parts);
        gar_group_table_free(op->used[k]->table);
        op->used[k]->table = NULL;
    }
    return op->whole != NULL ? list_segments(op, err) : order_runs(op, err);
}

static struct distinct *of_source(struct gar_source *source)
{
    return (struct distinct *)(void *)((char *)source - offsetof(struct distinct, source));
}

/* A unit: some segments, from `part` to `end`; row `next` of the first. */
static enum gar_status distinct_next(struct gar_source *source, struct gar_query *query,
                                     struct gar_source_unit *out, struct gar_error *err)
{
    struct distinct *op = of_source(source);
    (void)query;
    (void)err;
    if (op->has_parts || op->next_segment >= op->segment_count) {
        return GAR_EOF;
    }
    out->part = op->next_segment;
    for (int64_t rows = 0; op->next_segment < op->segment_count && rows < RESULT_ROWS;) {
        rows += op->segments[op->next_segment++].rows;
    }
    out->end = op->next_segment;
    return GAR_OK;
}

/* The kept row that is number i of the segment, in its batch. */
static uint32_t row_at(const struct segment *s, int64_t i)
{
    return (uint32_t)(s->listed != NULL ? (int64_t)s->listed[i] - s->worker->starts[s->batch]
                                        : s->row + i);
}

/* The marked ones of rows [first, first + rows) of a segment; *out stays NULL when there are none. */
static enum gar_status take_marked(struct distinct *op, const struct segment *s, int64_t first,
                                   int64_t rows, struct gar_batch **out, struct gar_error *err)
{
    struct gar_batch *batch = s->worker->kept.batches[s->batch];
    const uint8_t *is_first = s->worker->is_first;
    if (is_first == NULL) {
        return gar_batch_slice(batch, s->row + first, rows, out, err);
    }
    is_first += s->worker->starts[s->batch];
    int64_t marked = 0;
    for (int64_t i = first; i < first + rows; i++) {
        marked += is_first[row_at(s, i)];
    }
    if (marked == 0) {
        return GAR_OK;
    }
    if (marked == rows && s->listed == NULL) {
        return gar_batch_slice(batch, s->row + first, rows, out, err);
    }
    struct gar_buffer *selection = NULL;
    GAR_TRY(gar_buffer_new(op->base.memory, rows * (int64_t)sizeof(uint32_t), &selection, err));
    uint32_t *listed = (uint32_t *)(void *)selection->data;
    int64_t n = 0;
    for (int64_t i = first; n < marked; i++) {
        listed[n] = row_at(s, i);
        n += is_first[row_at(s, i)];
    }
    const enum gar_status status = gar_batch_select(batch, selection, marked, out, err);
    if (status < 0) {
        gar_buffer_unref(selection);
    }
    return status;
}

static enum gar_status distinct_decode(struct gar_source *source, struct gar_source_unit *unit,
                                       int32_t worker, int64_t max_rows, struct gar_batch **out,
                                       struct gar_error *err)
{
    struct distinct *op = of_source(source);
    (void)worker;
    struct gar_batch *batch = NULL;
    while (batch == NULL && unit->part < unit->end) {
        const struct segment *s = &op->segments[unit->part];
        const int64_t rows = gar_min_i64(s->rows - unit->next, max_rows);
        GAR_TRY(take_marked(op, s, unit->next, rows, &batch, err));
        unit->next += rows;
        if (unit->next == s->rows) {
            unit->part++;
            unit->next = 0;
        }
    }
    if (batch == NULL) {
        return GAR_EOF;
    }
    *out = batch;
    return GAR_OK;
}

static void distinct_unit_free(struct gar_source *source, struct gar_source_unit *unit)
{
    (void)source;
    (void)unit;
}

/* ---- parts ---- */

static void free_state(struct distinct *op)
{
    for (int32_t i = 0; op->workers != NULL && i < op->worker_count; i++) {
        free_worker(op->workers[i]);
    }
    for (int64_t k = 0; k < op->share_count; k++) {
        gar_group_parts_destroy(&op->shares[k].parts);
        gar_free(op->shares[k].rows);
    }
    gar_partitioned_free(op->aside);
    gar_free(op->workers);
    gar_free(op->used);
    gar_free(op->segments);
    gar_free(op->shares);
    op->workers = op->used = NULL;
    op->segments = NULL;
    op->shares = NULL;
    op->aside = NULL;
    op->share_count = op->used_count = op->segment_count = op->segment_capacity = 0;
}

/* What has parts is needed until the last of them is through. */
static void distinct_release(struct gar_source *source)
{
    struct distinct *op = of_source(source);
    while (op != NULL && op->open_parts == 0) {
        free_state(op);
        op = op->whole;
        if (op != NULL) {
            op->open_parts--;
        }
    }
}

static void free_part(void *object)
{
    free_state((struct distinct *)object);
    gar_free(object);
}

/* Groups of the partition, of all that gives some. */
static void list_shares(const struct distinct *op, int64_t p, struct distinct *part)
{
    for (int64_t k = 0; k < givers(op); k++) {
        const bool is_own = k < op->used_count;
        const struct share *share = is_own ? NULL : &op->shares[k - op->used_count];
        const struct gar_group_parts *parts = is_own ? &op->used[k]->parts : &share->parts;
        const int64_t first = parts->starts[p];
        if (parts->starts[p + 1] > first) {
            part->shares[part->share_count++] =
                (struct share){.worker = is_own ? op->used[k] : share->worker,
                               .listed = parts->groups + first,
                               .count = parts->starts[p + 1] - first};
        }
    }
}

/* An operator for one partition: the plan's things are borrowed from the whole. */
static enum gar_status new_part(struct distinct *op, int32_t p, struct distinct **out,
                                struct gar_error *err)
{
    struct distinct *part = (struct distinct *)gar_calloc(1, (int64_t)sizeof *part);
    if (part == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *part);
    }
    part->base = op->base;
    part->query = op->query;
    part->schema = op->schema;
    part->program = op->program;
    part->key_count = op->key_count;
    part->layout = op->layout;
    part->source = op->source;
    part->row_schema = op->row_schema;
    part->shift = op->shift + GAR_PARTITION_BITS;
    part->whole = op;
    part->shares = (struct share *)gar_calloc(givers(op), (int64_t)sizeof *part->shares);
    if (part->shares == NULL) {
        gar_free(part);
        return gar_error_nomem(err, givers(op) * (int64_t)sizeof *part->shares);
    }
    list_shares(op, p, part);
    GAR_TRY(gar_query_own(op->query, part, free_part, err));
    op->open_parts++;
    *out = part;
    return GAR_OK;
}

/* All partitions, one after the other, behind this source. */
static enum gar_status distinct_follow(struct gar_source *source, struct gar_pipeline *pipeline,
                                       int64_t at, struct gar_error *err)
{
    struct distinct *op = of_source(source);
    for (int32_t p = 0; op->has_parts && p < GAR_PARTITIONS; p++) {
        struct distinct *part = NULL;
        struct gar_source *rows = NULL;
        struct gar_branch branch = pipeline->branches[at];
        GAR_TRY(new_part(op, p, &part, err));
        GAR_TRY(gar_partitioned_source(op->aside, p, op->source.op, &rows, err));
        GAR_TRY(gar_pipeline_new_before(pipeline, rows, &part->base, &branch.before, err));
        branch.source = &part->source;
        GAR_TRY(gar_pipeline_insert(pipeline, at + p, &branch, err));
    }
    return GAR_OK;
}

static void source_explain(const struct gar_source *source, struct gar_strbuf *out)
{
    (void)source;
    gar_strbuf_append(out, "first rows of the pipeline before");
}

static void distinct_explain(const struct gar_sink *base, struct gar_strbuf *out)
{
    const struct distinct *op = (const struct distinct *)(const void *)base;
    gar_strbuf_printf(
        out, "distinct by %lld keys (first rows, a table per worker, joined by hash partition)",
        (long long)op->key_count);
}

static void free_distinct(void *object)
{
    struct distinct *op = (struct distinct *)object;
    free_state(op);
    gar_schema_unref(op->row_schema);
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

/* Of rows put aside: the input's columns, then places. */
static enum gar_status make_row_schema(struct distinct *op, struct gar_error *err)
{
    char name[] = "";
    const int64_t count = op->schema->count;
    struct gar_field *fields = (struct gar_field *)gar_calloc(count + 1, (int64_t)sizeof *fields);
    if (fields == NULL) {
        return gar_error_nomem(err, (count + 1) * (int64_t)sizeof *fields);
    }
    for (int64_t i = 0; i < count; i++) {
        fields[i] = op->schema->fields[i];
    }
    fields[count] =
        (struct gar_field){.name = name, .type = gar_type_of(GAR_UINT64), .nullable = false};
    const enum gar_status status = gar_schema_new(fields, count + 1, true, &op->row_schema, err);
    gar_free(fields);
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
    static const struct gar_source_vtable source_vtable = {.name = "distinct rows",
                                                           .next = distinct_next,
                                                           .decode = distinct_decode,
                                                           .unit_free = distinct_unit_free,
                                                           .follow = distinct_follow,
                                                           .release = distinct_release,
                                                           .explain = source_explain};
    struct distinct *op = (struct distinct *)gar_calloc(1, (int64_t)sizeof *op);
    if (op == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *op);
    }
    op->base.vtable = &vtable;
    op->query = query;
    op->schema = gar_schema_ref(plan->schema);
    op->source.vtable = &source_vtable;
    GAR_TRY(gar_query_own(query, op, free_distinct, err));
    GAR_TRY(gar_query_op_memory(query, &op->base.memory, err));
    GAR_TRY(make_keys(op, plan, err));
    GAR_TRY(make_row_schema(op, err));
    *out_sink = &op->base;
    *out_source = &op->source;
    return GAR_OK;
}
