/* SPDX-License-Identifier: Apache-2.0 */
/* Hash join, the probe side: a transform that may give many batches for one.
 *
 * The rows of a batch are looked up at once; then pairs of row numbers are listed, so many as a batch may have, checked
 * against the condition, and gathered. A batch that is not through yet (a probe) may be put aside by the job that
 * carries it and be taken up by another worker.
 *
 * With a condition it shows only at the end of a batch which of its rows had no partner: they come last. */
#include <string.h>

#include "arrow/gather.h"
#include "base/alloc.h"
#include "exec/ops/join.h"

#define NO_ROW UINT32_MAX

/* A batch on its way. */
struct probe {
    struct gar_batch *batch;   /* owned; NULL: none */
    int64_t rows;              /* selected */
    struct gar_buffer *starts; /* owned; uint32_t a row; kept for the next batch */
    struct gar_buffer *counts;
    struct gar_buffer *hits; /* owned; a byte a row: a pair passed the condition */
    int64_t row;             /* next */
    int64_t done;            /* of its partners */
    bool is_at_tail;         /* all pairs are through: rows without a partner come */
};

struct worker {
    int32_t worker;
    struct gar_eval *eval;       /* owned; NULL without keys */
    struct gar_eval *condition;  /* owned; NULL without one */
    struct gar_column **columns; /* owned array; keys, outputs, or what the condition sees */
    struct gar_column **checked; /* owned array */
    uint64_t *scratch;           /* owned */
    struct gar_buffer *leaving;  /* owned; uint32_t a row: hash, row that leaves */
    struct gar_buffer *pairs;    /* owned; uint32_t: probe rows, build rows, batch rows */
    struct probe probe;
};

static struct gar_join *of_transform(struct gar_transform *transform)
{
    return (struct gar_join *)(void *)((char *)transform - offsetof(struct gar_join, transform));
}

/* Pairs that one batch may have. */
static int64_t pairs_max(const struct gar_join *join)
{
    return gar_min_i64(GAR_EXEC_BATCH_ROWS, join->query->morsel_rows);
}

static bool needs_hits(const struct gar_join *join)
{
    const bool asks_probe =
        join->mode.keeps_probe || (join->mode.is_semi && !join->mode.is_left_build);
    return join->condition != NULL && asks_probe;
}

static void drop_batch(struct probe *probe)
{
    gar_batch_unref(probe->batch);
    probe->batch = NULL;
}

static void destroy_probe(struct probe *probe)
{
    drop_batch(probe);
    gar_buffer_unref(probe->starts);
    gar_buffer_unref(probe->counts);
    gar_buffer_unref(probe->hits);
}

/* ---- workers ---- */

static void probe_worker_free(struct gar_transform *transform, void *worker)
{
    (void)transform;
    struct worker *w = (struct worker *)worker;
    destroy_probe(&w->probe);
    gar_eval_free(w->eval);
    gar_eval_free(w->condition);
    gar_free(w->columns);
    gar_free(w->checked);
    gar_free(w->scratch);
    gar_buffer_unref(w->pairs);
    gar_buffer_unref(w->leaving);
    gar_free(w);
}

static enum gar_status fill_worker(struct gar_join *join, struct worker *w, struct gar_error *err)
{
    struct gar_memory *memory = join->sink.memory;
    const int64_t columns = gar_max_i64(join->eval_count, join->schema->count);
    w->columns = (struct gar_column **)gar_calloc(columns, (int64_t)sizeof *w->columns);
    if (w->columns == NULL) {
        return gar_error_nomem(err, columns * 8);
    }
    if (join->key_count > 0) {
        const int64_t words = gar_join_table_scratch(join->table);
        w->scratch = (uint64_t *)gar_malloc(words * (int64_t)sizeof(uint64_t));
        if (w->scratch == NULL) {
            return gar_error_nomem(err, words * (int64_t)sizeof(uint64_t));
        }
    }
    if (join->eval_count > 0) {
        GAR_TRY(gar_eval_new(join->probe_program, memory, &w->eval, err));
    }
    if (join->condition != NULL) {
        w->checked = (struct gar_column **)gar_calloc(join->condition_schema->count,
                                                      (int64_t)sizeof *w->checked);
        if (w->checked == NULL) {
            return gar_error_nomem(err, join->condition_schema->count * 8);
        }
        GAR_TRY(gar_eval_new(join->condition, memory, &w->condition, err));
    }
    return gar_buffer_new(memory, 3 * pairs_max(join) * (int64_t)sizeof(uint32_t), &w->pairs, err);
}

static enum gar_status probe_worker_new(struct gar_transform *transform, struct gar_query *query,
                                        int32_t worker, void **out, struct gar_error *err)
{
    (void)query;
    struct worker *w = (struct worker *)gar_calloc(1, (int64_t)sizeof *w);
    if (w == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *w);
    }
    w->worker = worker;
    const enum gar_status status = fill_worker(of_transform(transform), w, err);
    if (status < 0) {
        probe_worker_free(transform, w);
        return status;
    }
    *out = w;
    return GAR_OK;
}

static uint32_t *pair_list(const struct gar_join *join, const struct worker *w, int32_t which)
{
    return (uint32_t *)(void *)w->pairs->data + which * pairs_max(join);
}

/* ---- looking up ---- */

static enum gar_status need_bytes(struct gar_join *join, struct gar_buffer **buffer, int64_t bytes,
                                  struct gar_error *err)
{
    if (*buffer != NULL && (*buffer)->size >= bytes) {
        return GAR_OK;
    }
    gar_buffer_unref(*buffer);
    *buffer = NULL;
    return gar_buffer_new(join->sink.memory, bytes, buffer, err);
}

static uint32_t *numbers(const struct gar_buffer *buffer)
{
    return (uint32_t *)(void *)buffer->data;
}

static enum gar_status look_up(struct gar_join *join, struct worker *w, struct gar_error *err)
{
    struct probe *probe = &w->probe;
    const int64_t bytes = probe->rows * (int64_t)sizeof(uint32_t);
    GAR_TRY(need_bytes(join, &probe->starts, bytes, err));
    GAR_TRY(need_bytes(join, &probe->counts, bytes, err));
    if (needs_hits(join)) {
        GAR_TRY(need_bytes(join, &probe->hits, probe->rows, err));
        memset(probe->hits->data, 0, (size_t)probe->rows);
    }
    uint32_t *starts = numbers(probe->starts);
    uint32_t *counts = numbers(probe->counts);
    if (join->key_count == 0) {
        for (int64_t i = 0; i < probe->rows; i++) {
            starts[i] = 0;
            counts[i] = (uint32_t)join->build_rows;
        }
    }
    if (join->eval_count == 0) {
        return GAR_OK;
    }
    GAR_TRY(gar_eval_run(w->eval, probe->batch, w->columns, err));
    if (join->key_count > 0) {
        gar_join_table_find(join->table, w->columns, 0, probe->rows, w->scratch, starts, counts);
    }
    enum gar_status status = GAR_OK;
    if (join->eval_count > join->key_count) {
        status =
            gar_join_nearest(join, w->columns[join->key_count], probe->rows, starts, counts, err);
    }
    for (int64_t k = 0; k < join->eval_count; k++) {
        gar_column_unref(w->columns[k]);
    }
    return status;
}

/* ---- pairs ---- */

/* List the next pairs as (row of the probe, row of the table); NO_ROW: none. Returns how many. */
static int64_t list_pairs(struct gar_join *join, struct worker *w)
{
    struct probe *probe = &w->probe;
    const uint32_t *starts = numbers(probe->starts);
    const uint32_t *counts = numbers(probe->counts);
    const uint32_t *lists = join->table != NULL ? gar_join_table_lists(join->table) : NULL;
    const bool keeps_lonely = join->mode.keeps_probe && join->condition == NULL;
    uint32_t *rows = pair_list(join, w, 0);
    uint32_t *partners = pair_list(join, w, 1);
    const int64_t max = pairs_max(join);
    int64_t n = 0;
    while (probe->row < probe->rows && n < max) {
        const int64_t row = probe->row;
        const int64_t count = counts[row];
        const int64_t take = gar_min_i64(count - probe->done, max - n);
        const int64_t first = starts[row] + probe->done;
        for (int64_t k = 0; k < take; k++) {
            rows[n + k] = (uint32_t)row;
            partners[n + k] = lists != NULL ? lists[first + k] : (uint32_t)(first + k);
        }
        if (count == 0 && keeps_lonely) {
            rows[n] = (uint32_t)row;
            partners[n++] = NO_ROW;
        }
        n += take;
        probe->done += take;
        if (probe->done >= count) {
            probe->row++;
            probe->done = 0;
        }
    }
    return n;
}

/* Rows of the batch that are meant by selected rows. */
static void locate(const struct gar_batch *batch, const uint32_t *rows, int64_t n, uint32_t *out)
{
    for (int64_t i = 0; i < n; i++) {
        out[i] = batch->selection != NULL ? batch->selection[rows[i]] : rows[i];
    }
}

static enum gar_status gather_partners(struct gar_join *join, const struct gar_column *column,
                                       const uint32_t *partners, int64_t n, bool has_lonely,
                                       struct gar_column **out, struct gar_error *err)
{
    struct gar_memory *memory = join->sink.memory;
    if (!has_lonely) {
        return gar_column_gather(column, partners, n, memory, out, err);
    }
    int64_t *places = (int64_t *)gar_malloc(n * (int64_t)sizeof *places);
    if (places == NULL) {
        return gar_error_nomem(err, n * (int64_t)sizeof *places);
    }
    for (int64_t i = 0; i < n; i++) {
        places[i] = partners[i] == NO_ROW ? -1 : (int64_t)partners[i];
    }
    const enum gar_status status = gar_column_gather_i64(column, places, n, memory, out, err);
    gar_free(places);
    return status;
}

struct pairs {
    const uint32_t *rows;     /* of the batch */
    const uint32_t *partners; /* of the table */
    int64_t count;
    bool is_whole;   /* rows are all of the batch, in order */
    bool has_lonely; /* some partners are NO_ROW */
};

/* Columns of the pairs; on failure none is left. */
static enum gar_status gather_pairs(struct gar_join *join, const struct gar_batch *batch,
                                    const struct pairs *pairs, const struct gar_join_column *from,
                                    int64_t count, struct gar_column **columns,
                                    struct gar_error *err)
{
    enum gar_status status = GAR_OK;
    int64_t made = 0;
    for (; made < count && status >= 0; made++) {
        const struct gar_join_column *c = &from[made];
        if (c->is_build) {
            status = gather_partners(join, join->columns[c->position], pairs->partners,
                                     pairs->count, pairs->has_lonely, &columns[made], err);
        } else if (pairs->is_whole) {
            columns[made] = gar_column_ref(batch->columns[c->position]);
        } else {
            status = gar_column_gather(batch->columns[c->position], pairs->rows, pairs->count,
                                       join->sink.memory, &columns[made], err);
        }
    }
    for (int64_t i = 0; i < made - 1 && status < 0; i++) {
        gar_column_unref(columns[i]);
    }
    return status;
}

static enum gar_status make_output(struct gar_join *join, struct worker *w,
                                   const struct gar_batch *batch, const struct pairs *pairs,
                                   struct gar_batch **out, struct gar_error *err)
{
    const int64_t count = join->schema->count;
    GAR_TRY(gather_pairs(join, batch, pairs, join->outputs, count, w->columns, err));
    const enum gar_status status = gar_batch_new(join->schema, w->columns, pairs->count, out, err);
    for (int64_t i = 0; i < count && status < 0; i++) {
        gar_column_unref(w->columns[i]);
    }
    return status;
}

/* Which of the listed pairs pass the condition: they move to the front. */
static enum gar_status check_pairs(struct gar_join *join, struct worker *w, int64_t *count,
                                   struct gar_error *err)
{
    uint32_t *rows = pair_list(join, w, 0);
    uint32_t *partners = pair_list(join, w, 1);
    uint32_t *located = pair_list(join, w, 2);
    const int64_t columns = join->condition_schema->count;
    struct gar_batch *batch = NULL;
    struct gar_buffer *selection = NULL;
    int64_t selected = 0;
    locate(w->probe.batch, rows, *count, located);
    const struct pairs pairs = {located, partners, *count, false, false};
    GAR_TRY(gather_pairs(join, w->probe.batch, &pairs, join->condition_columns, columns, w->checked,
                         err));
    enum gar_status status = gar_batch_new(join->condition_schema, w->checked, *count, &batch, err);
    for (int64_t i = 0; i < columns && status < 0; i++) {
        gar_column_unref(w->checked[i]);
    }
    if (status >= 0) {
        status = gar_eval_filter(w->condition, batch, &selection, &selected, err);
    }
    if (status >= 0 && selection != NULL) {
        const uint32_t *passed = numbers(selection);
        for (int64_t i = 0; i < selected; i++) {
            rows[i] = rows[passed[i]];
            partners[i] = partners[passed[i]];
        }
    }
    *count = status >= 0 ? selected : 0;
    for (int64_t i = 0; i < *count && w->probe.hits != NULL; i++) {
        w->probe.hits->data[rows[i]] = 1;
    }
    gar_buffer_unref(selection);
    gar_batch_unref(batch);
    return status;
}

/* Several workers may mark one row: all write the same. */
static void mark_partners(struct gar_join *join, const uint32_t *partners, int64_t count)
{
    uint8_t *marks = join->marks->data;
    for (int64_t i = 0; i < count; i++) {
        if (partners[i] != NO_ROW && __atomic_load_n(&marks[partners[i]], __ATOMIC_RELAXED) == 0) {
            __atomic_store_n(&marks[partners[i]], 1, __ATOMIC_RELAXED);
        }
    }
}

static bool has_no_row(const uint32_t *partners, int64_t n)
{
    bool found = false;
    for (int64_t i = 0; i < n; i++) {
        found |= partners[i] == NO_ROW;
    }
    return found;
}

/* One list of pairs; *out stays NULL when none is left of them. */
static enum gar_status next_pairs(struct gar_join *join, struct worker *w, struct gar_batch **out,
                                  struct gar_error *err)
{
    struct probe *probe = &w->probe;
    const bool is_first = probe->row == 0 && probe->done == 0;
    int64_t count = list_pairs(join, w);
    if (count > 0 && join->condition != NULL) {
        GAR_TRY(check_pairs(join, w, &count, err));
    }
    const uint32_t *rows = pair_list(join, w, 0);
    const uint32_t *partners = pair_list(join, w, 1);
    uint32_t *located = pair_list(join, w, 2);
    if (join->marks != NULL) {
        mark_partners(join, partners, count);
    }
    if (count == 0 || !join->mode.gives_pairs) {
        return GAR_OK;
    }
    locate(probe->batch, rows, count, located);
    bool is_whole = is_first && probe->batch->selection == NULL && count == probe->rows &&
                    probe->row == probe->rows;
    for (int64_t i = 0; i < count && is_whole; i++) {
        is_whole = rows[i] == (uint32_t)i;
    }
    const struct pairs pairs = {located, partners, count, is_whole,
                                join->mode.keeps_probe && has_no_row(partners, count)};
    return make_output(join, w, probe->batch, &pairs, out, err);
}

/* ---- rows of the probe side itself ---- */

/* Rows (from probe->row on) that had a partner, or had none, as wanted. */
static int64_t list_rows(struct gar_join *join, struct worker *w, bool wants_partner, int64_t max,
                         uint32_t *out)
{
    struct probe *probe = &w->probe;
    const uint32_t *counts = numbers(probe->counts);
    const uint8_t *hits = join->condition != NULL ? probe->hits->data : NULL;
    int64_t n = 0;
    for (; probe->row < probe->rows && n < max; probe->row++) {
        const bool has_partner = hits != NULL ? hits[probe->row] != 0 : counts[probe->row] > 0;
        out[n] = (uint32_t)probe->row;
        n += has_partner == wants_partner;
    }
    return n;
}

/* Rows without a partner beside nulls. */
static enum gar_status next_lonely(struct gar_join *join, struct worker *w, struct gar_batch **out,
                                   struct gar_error *err)
{
    uint32_t *rows = pair_list(join, w, 0);
    uint32_t *partners = pair_list(join, w, 1);
    uint32_t *located = pair_list(join, w, 2);
    const int64_t count = list_rows(join, w, false, pairs_max(join), rows);
    if (count == 0) {
        return GAR_OK;
    }
    locate(w->probe.batch, rows, count, located);
    memset(partners, 0xff, (size_t)count * sizeof *partners);
    const struct pairs pairs = {located, partners, count, false, true};
    return make_output(join, w, w->probe.batch, &pairs, out, err);
}

/* Semi and anti: the batch with a selection. */
static enum gar_status select_rows(struct gar_join *join, struct worker *w, struct gar_batch **out,
                                   struct gar_error *err)
{
    const struct gar_batch *batch = w->probe.batch;
    struct gar_buffer *selection = NULL;
    struct gar_batch *whole = NULL;
    GAR_TRY(gar_buffer_new(join->sink.memory, w->probe.rows * (int64_t)sizeof(uint32_t), &selection,
                           err));
    uint32_t *rows = numbers(selection);
    const int64_t count = list_rows(join, w, join->mode.wants_partner, w->probe.rows, rows);
    locate(batch, rows, count, rows);
    const struct pairs pairs = {NULL, NULL, batch->rows, true, false};
    enum gar_status status = GAR_OK;
    if (count > 0) {
        status = make_output(join, w, batch, &pairs, &whole, err);
    }
    if (status >= 0 && count > 0 && count < batch->rows) {
        status = gar_batch_select(whole, selection, count, out, err);
        if (status >= 0) {
            selection = NULL; /* moved */
        }
    } else if (status >= 0 && count > 0) {
        *out = gar_batch_ref(whole);
    }
    gar_buffer_unref(selection);
    gar_batch_unref(whole);
    return status;
}

/* ---- rows of partitions that are not in the table ---- */

/* Hashes of the keys of the batch's selected rows. */
static enum gar_status hash_rows(struct gar_join *join, struct worker *w,
                                 const struct gar_batch *batch, uint32_t *out,
                                 struct gar_error *err)
{
    GAR_TRY(gar_eval_run(w->eval, batch, w->columns, err));
    gar_key_hashes(&join->layout, w->columns, 0, batch->selected, w->scratch, out);
    for (int64_t k = 0; k < join->eval_count; k++) {
        gar_column_unref(w->columns[k]);
    }
    return GAR_OK;
}

/* The listed rows of the batch, to be looked up later. */
static enum gar_status put_aside(struct gar_join *join, struct worker *w,
                                 const struct gar_batch *batch, const uint32_t *rows,
                                 const uint32_t *hashes, int64_t count, struct gar_error *err)
{
    const int64_t n = join->probe_schema->count;
    struct gar_column **columns = (struct gar_column **)gar_calloc(n, (int64_t)sizeof *columns);
    enum gar_status status = columns != NULL ? GAR_OK : gar_error_nomem(err, n * 8);
    for (int64_t c = 0; c < n && status >= 0; c++) {
        status =
            gar_column_gather(batch->columns[c], rows, count, join->sink.memory, &columns[c], err);
    }
    if (status >= 0) {
        status = gar_partitioned_add(join->probe_aside, w->worker, columns, count, hashes, err);
    }
    for (int64_t c = 0; columns != NULL && c < n; c++) {
        gar_column_unref(columns[c]);
    }
    gar_free(columns);
    return status;
}

/* Put rows of other partitions aside. *batch (moved) becomes what is left of it, or NULL. */
static enum gar_status leave_rows(struct gar_join *join, struct worker *w, struct gar_batch **batch,
                                  struct gar_error *err)
{
    struct gar_batch *all = *batch;
    struct gar_buffer *staying = NULL;
    const int64_t bytes = all->selected * (int64_t)sizeof(uint32_t);
    *batch = NULL;
    enum gar_status status = need_bytes(join, &w->leaving, 2 * bytes, err);
    uint32_t *hashes = status >= 0 ? numbers(w->leaving) : NULL;
    uint32_t *leaving = status >= 0 ? hashes + all->selected : NULL;
    if (status >= 0) {
        status = hash_rows(join, w, all, hashes, err);
    }
    if (status >= 0) {
        status = gar_buffer_new(join->sink.memory, bytes, &staying, err);
    }
    int64_t left = 0;
    int64_t stay = 0;
    for (int64_t i = 0; i < all->selected && status >= 0; i++) {
        const uint32_t row = all->selection != NULL ? all->selection[i] : (uint32_t)i;
        const bool leaves = gar_partition_of(hashes[i], join->shift) >= join->resident;
        numbers(staying)[stay] = row;
        leaving[left] = row;
        hashes[left] = hashes[i];
        left += leaves;
        stay += !leaves;
    }
    if (status >= 0 && left > 0) {
        status = put_aside(join, w, all, leaving, hashes, left, err);
    }
    if (status >= 0 && left == 0) {
        *batch = gar_batch_ref(all);
    } else if (status >= 0 && stay > 0) {
        status = gar_batch_select(all, staying, stay, batch, err);
        staying = status >= 0 ? NULL : staying; /* moved */
    }
    gar_buffer_unref(staying);
    gar_batch_unref(all);
    return status;
}

/* ---- the transform ---- */

static enum gar_status probe_follow(struct gar_transform *transform, struct gar_pipeline *pipeline,
                                    int64_t at, int64_t t, struct gar_error *err)
{
    struct gar_join *join = of_transform(transform);
    const struct gar_branch *branch = &pipeline->branches[at];
    join->probe_op = branch->op + 1 + (int32_t)t;
    if (gar_join_has_rest(join)) { /* they come after the rows at the end */
        return GAR_OK;
    }
    return gar_join_insert_parts(join, pipeline, at, branch->transforms + t + 1,
                                 branch->transform_count - t - 1, join->probe_op, err);
}

static void probe_release(struct gar_transform *transform)
{
    struct gar_join *join = of_transform(transform);
    if (!gar_join_has_rest(join)) {
        gar_join_release(join);
    }
}

/* The next batch with rows in it, or NULL when the probe is through. */
static enum gar_status next_output(struct gar_join *join, struct worker *w, struct gar_batch **out,
                                   struct gar_error *err)
{
    struct probe *probe = &w->probe;
    const bool asks_probe = join->mode.is_semi && !join->mode.is_left_build;
    const bool has_pairs = !asks_probe || join->condition != NULL;
    const bool has_tail = asks_probe || (join->mode.keeps_probe && join->condition != NULL);
    while (*out == NULL && has_pairs && !probe->is_at_tail && probe->row < probe->rows) {
        GAR_CANCEL_CHECK(join->query->cancel, err);
        GAR_TRY(next_pairs(join, w, out, err));
    }
    if (*out != NULL || !has_tail) {
        return GAR_OK;
    }
    if (!probe->is_at_tail) {
        probe->is_at_tail = true;
        probe->row = 0;
    }
    if (asks_probe) {
        return probe->row < probe->rows ? select_rows(join, w, out, err) : GAR_OK;
    }
    while (*out == NULL && probe->row < probe->rows) {
        GAR_TRY(next_lonely(join, w, out, err));
    }
    return GAR_OK;
}

static enum gar_status probe_more(struct gar_transform *transform, void *worker,
                                  struct gar_batch **out, struct gar_error *err)
{
    struct worker *w = (struct worker *)worker;
    *out = NULL;
    if (w->probe.batch == NULL) {
        return GAR_OK;
    }
    const enum gar_status status = next_output(of_transform(transform), w, out, err);
    if (status < 0 || *out == NULL) {
        drop_batch(&w->probe);
    }
    return status;
}

static enum gar_status probe_apply(struct gar_transform *transform, void *worker,
                                   struct gar_batch *batch, struct gar_batch **out,
                                   struct gar_error *err)
{
    struct gar_join *join = of_transform(transform);
    struct worker *w = (struct worker *)worker;
    struct probe *probe = &w->probe;
    *out = NULL;
    drop_batch(probe);
    if (join->has_parts) {
        GAR_TRY(leave_rows(join, w, &batch, err));
    }
    if (batch == NULL) {
        return GAR_OK;
    }
    probe->batch = batch;
    probe->rows = batch->selected;
    probe->row = probe->done = 0;
    probe->is_at_tail = false;
    const enum gar_status status = look_up(join, w, err);
    if (status < 0) {
        drop_batch(probe);
        return status;
    }
    return probe_more(transform, worker, out, err);
}

/* A probe that is not through leaves the worker, and comes to another. */
static enum gar_status probe_suspend(struct gar_transform *transform, void *worker, void **out,
                                     struct gar_error *err)
{
    (void)transform;
    struct worker *w = (struct worker *)worker;
    struct probe *saved = (struct probe *)gar_malloc((int64_t)sizeof *saved);
    if (saved == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *saved);
    }
    *saved = w->probe;
    memset(&w->probe, 0, sizeof w->probe);
    *out = saved;
    return GAR_OK;
}

static void probe_drop(struct gar_transform *transform, void *saved)
{
    (void)transform;
    destroy_probe((struct probe *)saved);
    gar_free(saved);
}

static void probe_resume(struct gar_transform *transform, void *worker, void *saved)
{
    (void)transform;
    struct worker *w = (struct worker *)worker;
    destroy_probe(&w->probe);
    w->probe = *(struct probe *)saved;
    gar_free(saved);
}

static void probe_explain(const struct gar_transform *transform, struct gar_strbuf *out)
{
    static const char *const kinds[] = {"inner", "left", "right", "outer", "semi", "anti"};
    const struct gar_join *join =
        (const struct gar_join *)(const void *)((const char *)transform -
                                                offsetof(struct gar_join, transform));
    const bool is_cross = join->key_count == 0 && join->plan->join == GAR_JOIN_INNER;
    static const char *const asof[] = {"", "asof backward ", "asof forward ", "asof nearest "};
    gar_strbuf_printf(out, "%s%s join", asof[join->plan->asof.kind],
                      is_cross ? "cross" : kinds[join->plan->join]);
    const int64_t first = join->mode.is_left_build ? join->key_count : 0;
    for (int64_t k = 0; k < join->key_count; k++) {
        gar_strbuf_append(out, k > 0 ? ", " : " by ");
        gar_expr_print(join->plan->exprs[first + k], out);
    }
    if (join->condition != NULL) {
        gar_strbuf_append(out, " where ");
        gar_expr_print(join->plan->exprs[2 * join->key_count], out);
    }
}

const struct gar_transform_vtable gar_join_probe_vtable = {.name = "join",
                                                           .worker_new = probe_worker_new,
                                                           .worker_free = probe_worker_free,
                                                           .apply = probe_apply,
                                                           .more = probe_more,
                                                           .suspend = probe_suspend,
                                                           .resume = probe_resume,
                                                           .drop = probe_drop,
                                                           .follow = probe_follow,
                                                           .release = probe_release,
                                                           .explain = probe_explain};
