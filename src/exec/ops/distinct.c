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
 * Memory: keys and kept rows of every worker; while they are joined, once more the keys of the partitions at work.
 * Order: kept. */
#include "base/alloc.h"
#include "base/stop.h"
#include "exec/group_table.h"
#include "exec/ops/ops.h"
#include "kernels/radix_sort.h"

enum {
    RESULT_ROWS = 1 << 16,
    KEEP_ROWS = 1024,
    JOIN_ALONE_GROUPS = 1 << 13, /* so many groups in all are joined by one item */
    STOP_STEPS = 1 << 16,
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
    /* after the input */
    struct gar_group_parts parts;
    uint8_t *is_first; /* owned; of each group; NULL: all are */
    int64_t *starts;   /* owned; first group of each kept batch, and the end */
};

/* Rows of a part of a kept batch. */
struct segment {
    const struct worker *worker;
    int64_t batch;
    int64_t row; /* in the batch */
    int64_t rows;
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

/* Find groups and keep the first rows of new ones. */
static enum gar_status add_batch(struct distinct *op, struct worker *w,
                                 const struct gar_batch *batch, int64_t seq, int64_t row,
                                 struct gar_error *err)
{
    const int64_t rows = batch->rows;
    const int64_t before = gar_group_table_count(w->table);
    GAR_TRY(note_run(w, ((uint64_t)seq << 32) | (uint64_t)row, rows, before, err));
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
    op->used = (struct worker **)gar_calloc(workers, (int64_t)sizeof(struct worker *));
    if (op->workers == NULL || op->used == NULL) {
        return gar_error_nomem(err, workers * 16);
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

/* Where the first row of a key is. */
struct found {
    uint64_t place;
    int64_t worker;
    int64_t group;
};

/* Put the partition's groups of a worker into the table, and remember whose row comes first. */
static enum gar_status absorb_part(struct distinct *op, struct gar_group_table *table,
                                   int64_t worker, int64_t part, struct gar_buffer **found,
                                   struct gar_error *err)
{
    enum { STEP = 4096 };
    uint32_t ours[STEP];
    const struct worker *w = op->used[worker];
    const uint64_t *places = (const uint64_t *)(const void *)w->places->data;
    const int64_t end = w->parts.starts[part + 1];
    for (int64_t at = w->parts.starts[part]; at < end; at += STEP) {
        const int64_t n = gar_min_i64(end - at, STEP);
        const int64_t before = gar_group_table_count(table);
        const uint32_t *theirs = w->parts.groups + at;
        GAR_CANCEL_CHECK(op->query->cancel, err);
        GAR_TRY(gar_group_table_absorb(table, w->table, theirs, n, ours, err));
        GAR_TRY(grow_to(op->base.memory, found,
                        gar_group_table_count(table) * (int64_t)sizeof(struct found), err));
        struct found *all = (struct found *)(void *)(*found)->data;
        for (int64_t i = 0; i < n; i++) {
            const uint64_t place = places[theirs[i]];
            if (ours[i] >= before || place < all[ours[i]].place) {
                all[ours[i]] = (struct found){place, worker, theirs[i]};
            }
        }
    }
    return GAR_OK;
}

/* Mark the first row of every key of the partition. */
static enum gar_status join_part(struct distinct *op, int64_t part, struct gar_error *err)
{
    struct gar_group_table *table = NULL;
    struct gar_buffer *found = NULL;
    GAR_TRY(gar_group_table_new(&op->layout, op->base.memory, &table, err));
    enum gar_status status = GAR_OK;
    for (int64_t k = 0; k < op->used_count && status >= 0; k++) {
        status = absorb_part(op, table, k, part, &found, err);
    }
    for (int64_t g = 0; status >= 0 && g < gar_group_table_count(table); g++) {
        const struct found *first = (const struct found *)(const void *)found->data + g;
        op->used[first->worker]->is_first[first->group] = 1;
    }
    gar_group_table_free(table);
    gar_buffer_unref(found);
    return status;
}

static enum gar_status list_worker(struct distinct *op, struct worker *w, struct gar_error *err)
{
    const int64_t count = gar_group_table_count(w->table);
    w->is_first = (uint8_t *)gar_calloc(count, 1);
    if (w->is_first == NULL) {
        return gar_error_nomem(err, count);
    }
    return gar_group_parts_init(&w->parts, w->table, NULL, count, 0, op->partition_bits, err);
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
            (struct segment){w, batch, group - w->starts[batch], rows};
        group += rows;
    }
    return GAR_OK;
}

/* All runs of all workers in the order of the input become segments. */
static enum gar_status order_runs(struct distinct *op, struct gar_error *err)
{
    int64_t count = 0;
    for (int64_t k = 0; k < op->used_count; k++) {
        GAR_TRY(number_kept(op->used[k], err));
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

/* How many workers have rows. */
static int64_t plan_join(struct distinct *op)
{
    int64_t groups = 0;
    for (int32_t i = 0; i < op->worker_count; i++) {
        struct worker *w = op->workers[i];
        if (w != NULL && w->places != NULL) {
            op->used[op->used_count++] = w;
            groups += gar_group_table_count(w->table);
        }
    }
    op->partition_bits = groups > JOIN_ALONE_GROUPS ? gar_group_partition_bits(groups) : 0;
    return op->used_count;
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
    } else if (stage == STAGE_JOIN) {
        *out_items = op->used_count > 1 ? (int64_t)1 << op->partition_bits : 0;
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
    if (stage == STAGE_LIST && op->used_count > 1) {
        return list_worker(op, op->used[item], err);
    }
    for (int64_t k = 0; k < op->used_count; k++) { /* not needed any more */
        gar_group_parts_destroy(&op->used[k]->parts);
        gar_group_table_free(op->used[k]->table);
        op->used[k]->table = NULL;
    }
    return order_runs(op, err);
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
    if (op->next_segment >= op->segment_count) {
        return GAR_EOF;
    }
    out->part = op->next_segment;
    for (int64_t rows = 0; op->next_segment < op->segment_count && rows < RESULT_ROWS;) {
        rows += op->segments[op->next_segment++].rows;
    }
    out->end = op->next_segment;
    return GAR_OK;
}

/* The marked ones of rows [row, row + rows) of a kept batch; *out stays NULL when there are none. */
static enum gar_status take_marked(struct distinct *op, const struct segment *s, int64_t row,
                                   int64_t rows, struct gar_batch **out, struct gar_error *err)
{
    struct gar_batch *batch = s->worker->kept.batches[s->batch];
    const uint8_t *is_first = s->worker->is_first;
    int64_t marked = rows;
    if (is_first != NULL) {
        is_first += s->worker->starts[s->batch] + row;
        marked = 0;
        for (int64_t i = 0; i < rows; i++) {
            marked += is_first[i];
        }
    }
    if (marked == 0) {
        return GAR_OK;
    }
    struct gar_batch *slice = NULL;
    GAR_TRY(gar_batch_slice(batch, row, rows, &slice, err));
    if (marked == rows) {
        *out = slice;
        return GAR_OK;
    }
    struct gar_buffer *selection = NULL;
    enum gar_status status =
        gar_buffer_new(op->base.memory, marked * (int64_t)sizeof(uint32_t), &selection, err);
    if (status >= 0) {
        uint32_t *listed = (uint32_t *)(void *)selection->data;
        for (int64_t i = 0, n = 0; n < marked; i++) {
            listed[n] = (uint32_t)i;
            n += is_first[i];
        }
        status = gar_batch_select(slice, selection, marked, out, err);
        if (status < 0) {
            gar_buffer_unref(selection);
        }
    }
    gar_batch_unref(slice);
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
        GAR_TRY(take_marked(op, s, s->row + unit->next, rows, &batch, err));
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
    for (int32_t i = 0; op->workers != NULL && i < op->worker_count; i++) {
        free_worker(op->workers[i]);
    }
    gar_free(op->workers);
    gar_free(op->used);
    gar_free(op->segments);
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
    static const struct gar_source_vtable source_vtable = {.name = "distinct rows",
                                                           .next = distinct_next,
                                                           .decode = distinct_decode,
                                                           .unit_free = distinct_unit_free,
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
    *out_sink = &op->base;
    *out_source = &op->source;
    return GAR_OK;
}
