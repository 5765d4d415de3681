/* SPDX-License-Identifier: Apache-2.0 */
/* Hash join, the build side.
 *
 * 1. Each worker evaluates the keys of its batches and keeps them beside the columns that come out.
 * 2. At the end the batches are put in input order and each column becomes one; the table (exec/join_table.h) is made of
 *    the key columns, region by region.
 * 3. join_probe.c looks the rows of the other side up. Where build rows without (or with) a partner are asked for, it marks
 *    those that had one, and the source here gives the others after the last probe row.
 *
 * When the build side and its table would not fit, its rows are divided by hash partition (exec/partitioned.h). As many
 * partitions as fit become the table; rows of the others, and those of the other side that they may meet, lie on disk. Each
 * of these partitions is a join of its own (a part) when all other rows are through, one after the other; a part that
 * does not fit does the same, by further bits of the hash.
 *
 * Memory: the build side once (twice while its columns are joined), its table, one byte a row for marks. Under
 * pressure what fits of it.
 * Order: probe rows in order, the partners of each in build order; rows of the source last. */
#include "exec/ops/join.h"

#include <stdlib.h>
#include <string.h>

#include "arrow/gather.h"
#include "base/alloc.h"

enum {
    PART_ROWS = 1 << 16,
    DATA_BUFFERS_MAX = 8,
    ROW_OVERHEAD = 80, /* bytes that the table takes for a row beside its columns, at most */
    FORCED_SHIFT_MAX = 2 * GAR_PARTITION_BITS, /* where tests force it */
};

/* After the input. */
enum step { STEP_DIVIDE, STEP_EVICT, STEP_JOIN, STEP_TABLE };

/* A batch of the build side: kept columns, then keys; no selection. */
struct gar_join_rows {
    int64_t seq;
    int64_t row;
    int64_t rows;
    struct gar_column **columns; /* owned */
};

struct gar_join_worker {
    struct gar_eval *eval;      /* owned; NULL without keys */
    struct gar_join_rows *rows; /* owned */
    int64_t count;
    int64_t capacity;
    uint64_t *scratch; /* owned; key rows */
    uint32_t *hashes;  /* owned */
    int64_t hash_capacity;
};

static struct gar_join *of_source(struct gar_source *source)
{
    return (struct gar_join *)(void *)((char *)source - offsetof(struct gar_join, source));
}

static int64_t column_count(const struct gar_join *join)
{
    return join->kept_count + join->eval_count;
}

static void free_columns(struct gar_column **columns, int64_t count)
{
    for (int64_t i = 0; columns != NULL && i < count; i++) {
        gar_column_unref(columns[i]);
    }
    gar_free(columns);
}

/* ---- input ---- */

static enum gar_status join_start(struct gar_sink *base, struct gar_query *query, int32_t workers,
                                  struct gar_error *err)
{
    struct gar_join *join = (struct gar_join *)base;
    (void)query;
    join->workers =
        (struct gar_join_worker **)gar_calloc(workers, (int64_t)sizeof(struct gar_join_worker *));
    if (join->workers == NULL) {
        return gar_error_nomem(err, workers * 8);
    }
    join->worker_count = workers;
    /* The rows that this part will look up are all there. */
    return join->whole != NULL ? gar_partitioned_settle(join->whole->probe_aside, err) : GAR_OK;
}

static enum gar_status need_worker(struct gar_join *join, int32_t worker, struct gar_error *err)
{
    if (join->workers[worker] != NULL) {
        return GAR_OK;
    }
    struct gar_join_worker *w = (struct gar_join_worker *)gar_calloc(1, (int64_t)sizeof *w);
    if (w == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *w);
    }
    join->workers[worker] = w;
    return join->eval_count > 0 && join->whole == NULL
               ? gar_eval_new(join->build_program, join->sink.memory, &w->eval, err)
               : GAR_OK;
}

/* Kept column k of the batch, gathered; text of which little is left is copied. */
static enum gar_status keep_column(struct gar_join *join, const struct gar_batch *batch, int64_t k,
                                   struct gar_column **out, struct gar_error *err)
{
    const struct gar_column *column = batch->columns[join->kept[k]];
    if (batch->selection == NULL) {
        *out = gar_column_ref(column);
        return GAR_OK;
    }
    struct gar_column *gathered = NULL;
    GAR_TRY(gar_column_gather(column, batch->selection, batch->selected, join->sink.memory,
                              &gathered, err));
    const enum gar_status status = gar_column_compact(gathered, false, join->sink.memory, out, err);
    gar_column_unref(gathered);
    return status;
}

static enum gar_status keep_batch(struct gar_join *join, struct gar_join_worker *w,
                                  const struct gar_batch *batch, struct gar_column **columns,
                                  struct gar_error *err)
{
    for (int64_t k = 0; join->whole != NULL && k < column_count(join); k++) {
        columns[k] = gar_column_ref(batch->columns[k]);
    }
    if (join->whole != NULL) {
        return GAR_OK;
    }
    for (int64_t k = 0; k < join->kept_count; k++) {
        GAR_TRY(keep_column(join, batch, k, &columns[k], err));
    }
    return join->eval_count > 0 ? gar_eval_run(w->eval, batch, columns + join->kept_count, err)
                                : GAR_OK;
}

/* ---- dividing ---- */

static bool may_divide(const struct gar_join *join)
{
    return join->key_count > 0 && join->plan->asof.kind == GAR_ASOF_NONE &&
           gar_query_may_divide(join->query, join->shift);
}

static bool is_forced(const struct gar_join *join)
{
    return join->query->spills_always && join->shift < FORCED_SHIFT_MAX;
}

/* Rows (borrowed) to their partitions. */
static enum gar_status divide_rows(struct gar_join *join, struct gar_join_worker *w, int32_t worker,
                                   struct gar_column *const *columns, int64_t rows,
                                   struct gar_error *err)
{
    const int64_t bytes = (int64_t)join->layout.words * GAR_KEY_ROWS * (int64_t)sizeof(uint64_t);
    if (w->scratch == NULL) {
        w->scratch = (uint64_t *)gar_malloc(bytes);
        if (w->scratch == NULL) {
            return gar_error_nomem(err, bytes);
        }
    }
    GAR_TRY(
        gar_grow((void **)&w->hashes, &w->hash_capacity, rows, (int64_t)sizeof *w->hashes, err));
    gar_key_hashes(&join->layout, columns + join->kept_count, 0, rows, w->scratch, w->hashes);
    return gar_partitioned_add(join->build_aside, worker, columns, rows, w->hashes, err);
}

/* All batches that the worker has kept. */
static enum gar_status divide_kept(struct gar_join *join, struct gar_join_worker *w, int32_t worker,
                                   struct gar_error *err)
{
    enum gar_status status = GAR_OK;
    for (int64_t k = 0; k < w->count; k++) {
        if (status >= 0) {
            status = divide_rows(join, w, worker, w->rows[k].columns, w->rows[k].rows, err);
        }
        free_columns(w->rows[k].columns, column_count(join));
    }
    w->count = 0;
    return status;
}

static void note_short(struct gar_join *join)
{
    __atomic_store_n(&join->is_short, 1, __ATOMIC_RELAXED);
}

/* A batch of the worker: kept, or divided with all that came before. Moves the columns, also on failure. */
static enum gar_status add_columns(struct gar_join *join, int32_t worker,
                                   const struct gar_join_rows *rows, struct gar_error *err)
{
    struct gar_join_worker *w = join->workers[worker];
    const int64_t all = __atomic_add_fetch(&join->build_rows, rows->rows, __ATOMIC_RELAXED);
    if (may_divide(join) &&
        (is_forced(join) || gar_query_is_tight(join->query, join->shift, all * ROW_OVERHEAD))) {
        note_short(join);
    }
    enum gar_status status =
        gar_grow((void **)&w->rows, &w->capacity, w->count + 1, (int64_t)sizeof *w->rows, err);
    if (status < 0) {
        free_columns(rows->columns, column_count(join));
        return status;
    }
    w->rows[w->count++] = *rows;
    return __atomic_load_n(&join->is_short, __ATOMIC_RELAXED) != 0
               ? divide_kept(join, w, worker, err)
               : GAR_OK;
}

static enum gar_status join_push(struct gar_sink *base, int32_t worker, int64_t seq, int64_t row,
                                 struct gar_batch *batch, struct gar_error *err)
{
    struct gar_join *join = (struct gar_join *)base;
    const int64_t count = column_count(join);
    struct gar_column **columns = NULL;
    enum gar_status status = need_worker(join, worker, err);
    struct gar_join_worker *w = join->workers[worker];
    if (status >= 0) {
        columns = (struct gar_column **)gar_calloc(count, (int64_t)sizeof *columns);
        status = columns != NULL ? GAR_OK : gar_error_nomem(err, count * 8);
    }
    if (status >= 0) {
        status = keep_batch(join, w, batch, columns, err);
    }
    if (status >= 0) {
        const struct gar_join_rows rows = {seq, row, batch->selected, columns};
        status = add_columns(join, worker, &rows, err);
    } else {
        free_columns(columns, count);
    }
    gar_batch_unref(batch);
    return status;
}

/* ---- making the table ---- */

static int by_input_order(const void *a, const void *b)
{
    const struct gar_join_rows *x = (const struct gar_join_rows *)a;
    const struct gar_join_rows *y = (const struct gar_join_rows *)b;
    if (x->seq != y->seq) {
        return x->seq < y->seq ? -1 : 1;
    }
    return x->row < y->row ? -1 : x->row > y->row;
}

/* Batches of the partitions that stay in memory. */
static enum gar_status collect_resident(struct gar_join *join, struct gar_error *err)
{
    int64_t capacity = 0;
    join->columns =
        (struct gar_column **)gar_calloc(column_count(join), (int64_t)sizeof *join->columns);
    if (join->columns == NULL) {
        return gar_error_nomem(err, column_count(join) * 8);
    }
    for (int32_t p = 0; p < join->resident; p++) {
        for (struct gar_batch *batch = gar_partitioned_take(join->build_aside, p); batch != NULL;
             batch = gar_partitioned_take(join->build_aside, p)) {
            struct gar_column **columns =
                (struct gar_column **)gar_calloc(column_count(join), (int64_t)sizeof *columns);
            enum gar_status status =
                columns != NULL ? GAR_OK : gar_error_nomem(err, column_count(join) * 8);
            if (status >= 0) {
                status = gar_grow((void **)&join->rows, &capacity, join->rows_count + 1,
                                  (int64_t)sizeof *join->rows, err);
            }
            for (int64_t c = 0; status >= 0 && c < column_count(join); c++) {
                columns[c] = gar_column_ref(batch->columns[c]);
            }
            if (status >= 0) {
                join->rows[join->rows_count] =
                    (struct gar_join_rows){0, join->rows_count, batch->rows, columns};
                join->rows_count++;
                join->build_rows += batch->rows;
            } else {
                gar_free(columns);
            }
            gar_batch_unref(batch);
            GAR_TRY(status);
        }
    }
    return GAR_OK;
}

/* Batches of all workers in input order. */
static enum gar_status collect_rows(struct gar_join *join, struct gar_error *err)
{
    int64_t count = 0;
    join->build_rows = 0;
    if (join->has_parts) {
        return collect_resident(join, err);
    }
    for (int32_t i = 0; i < join->worker_count; i++) {
        count += join->workers[i] != NULL ? join->workers[i]->count : 0;
    }
    join->rows = (struct gar_join_rows *)gar_calloc(count, (int64_t)sizeof *join->rows);
    join->columns =
        (struct gar_column **)gar_calloc(column_count(join), (int64_t)sizeof *join->columns);
    if (join->rows == NULL || join->columns == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *join->rows);
    }
    for (int32_t i = 0; i < join->worker_count; i++) {
        struct gar_join_worker *w = join->workers[i];
        for (int64_t k = 0; w != NULL && k < w->count; k++) {
            join->rows[join->rows_count++] = w->rows[k];
            join->build_rows += w->rows[k].rows;
        }
        if (w != NULL) {
            w->count = 0; /* they have moved */
        }
    }
    qsort(join->rows, (size_t)join->rows_count, sizeof *join->rows, by_input_order);
    return GAR_OK;
}

static struct gar_type column_type(const struct gar_join *join, int64_t i)
{
    return i < join->kept_count
               ? join->build_schema->fields[join->kept[i]].type
               : gar_program_output_type(join->build_program, i - join->kept_count);
}

/* One column of all batches; text in many small buffers is copied into one. */
static enum gar_status join_column(struct gar_join *join, int64_t i, struct gar_error *err)
{
    struct gar_memory *memory = join->sink.memory;
    struct gar_column **parts =
        (struct gar_column **)gar_calloc(join->rows_count, (int64_t)sizeof *parts);
    if (parts == NULL) {
        return gar_error_nomem(err, join->rows_count * 8);
    }
    for (int64_t k = 0; k < join->rows_count; k++) {
        parts[k] = join->rows[k].columns[i]; /* moved: this task is the only user of column i */
        join->rows[k].columns[i] = NULL;
    }
    struct gar_column *whole = NULL;
    enum gar_status status =
        gar_column_concat(parts, join->rows_count, column_type(join, i), memory, &whole, err);
    free_columns(parts, join->rows_count);
    if (status >= 0 && whole->data_count > DATA_BUFFERS_MAX) {
        status = gar_column_compact(whole, true, memory, &join->columns[i], err);
        gar_column_unref(whole);
    } else if (status >= 0 && i == join->kept_count + join->key_count) { /* `on`: searched */
        status = gar_column_flatten(whole, memory, &join->columns[i], err);
        gar_column_unref(whole);
    } else if (status >= 0) {
        join->columns[i] = whole;
    }
    return status;
}

static void free_rows(struct gar_join *join)
{
    for (int64_t k = 0; k < join->rows_count; k++) {
        free_columns(join->rows[k].columns, column_count(join));
    }
    gar_free(join->rows);
    join->rows = NULL;
    join->rows_count = 0;
}

static enum gar_status begin_table(struct gar_join *join, struct gar_error *err)
{
    struct gar_type *types = (struct gar_type *)gar_calloc(join->key_count, (int64_t)sizeof *types);
    if (types == NULL) {
        return gar_error_nomem(err, join->key_count * (int64_t)sizeof *types);
    }
    for (int64_t k = 0; k < join->key_count; k++) {
        types[k] = gar_program_output_type(join->build_program, k);
    }
    enum gar_status status =
        gar_join_table_new(types, join->key_count, join->nulls_equal, join->query->workers,
                           join->sink.memory, &join->table, err);
    gar_free(types);
    if (status >= 0) {
        status = gar_join_table_begin(join->table, join->columns + join->kept_count,
                                      join->build_rows, err);
    }
    for (int64_t k = 0; k < join->key_count; k++) { /* the table has them now */
        gar_column_unref(join->columns[join->kept_count + k]);
        join->columns[join->kept_count + k] = NULL;
    }
    return status;
}

/* Will the table of all rows be too large? */
static bool is_too_large(const struct gar_join *join)
{
    return may_divide(join) && join->build_rows > 0 &&
           (is_forced(join) ||
            gar_query_is_tight(join->query, join->shift, join->build_rows * ROW_OVERHEAD));
}

/* The first partitions stay as far as there is room for their rows, once more for the columns at work, and the table. */
static void choose_resident(struct gar_join *join)
{
    const int32_t most = gar_partitioned_resident(join->build_aside);
    int64_t room = gar_query_room(join->query, join->shift);
    for (int32_t p = 0; p < most; p++) {
        room += gar_partitioned_bytes(join->build_aside, p);
    }
    for (join->resident = 0; join->resident < most; join->resident++) {
        const int64_t bytes = gar_partitioned_bytes(join->build_aside, join->resident);
        room -= bytes + bytes / 2 +
                ROW_OVERHEAD * gar_partitioned_rows(join->build_aside, join->resident);
        if (room < 0) {
            break;
        }
    }
    gar_partitioned_evict(join->build_aside, join->resident);
}

/* What comes next after the input. *out_items 0: nothing to be done for it. */
static enum gar_status begin_step(struct gar_join *join, enum step step, int64_t *out_items,
                                  struct gar_error *err)
{
    *out_items = 0;
    switch (step) {
    case STEP_DIVIDE:
        join->has_parts = join->is_short != 0 || is_too_large(join);
        *out_items = join->has_parts ? join->worker_count : 0;
        return GAR_OK;
    case STEP_EVICT:
        if (join->has_parts) {
            choose_resident(join);
            *out_items = join->worker_count;
            return gar_partitioned_new(join->query, join->probe_schema, join->shift, 0, 0,
                                       join->sink.memory, &join->probe_aside, err);
        }
        return GAR_OK;
    case STEP_JOIN:
        GAR_TRY(collect_rows(join, err));
        *out_items = column_count(join);
        return GAR_OK;
    case STEP_TABLE: return GAR_OK;
    }
    return GAR_OK;
}

static enum gar_status join_stage(struct gar_sink *base, struct gar_query *query, int32_t stage,
                                  int64_t *out_items, struct gar_error *err)
{
    struct gar_join *join = (struct gar_join *)base;
    (void)query;
    (void)stage;
    *out_items = 0;
    while (join->step < STEP_TABLE) {
        join->item_step = join->step++;
        GAR_TRY(begin_step(join, (enum step)join->item_step, out_items, err));
        if (*out_items > 0) {
            return GAR_OK;
        }
    }
    join->item_step = STEP_TABLE;
    if (join->table == NULL) { /* the columns are whole */
        free_rows(join);
        if (gar_join_has_rest(join)) {
            GAR_TRY(gar_buffer_new_zeroed(join->sink.memory, join->build_rows, &join->marks, err));
        }
        if (join->key_count == 0) {
            return GAR_OK;
        }
        GAR_TRY(begin_table(join, err));
    }
    return gar_join_table_step(join->table, out_items, err);
}

/* Column i is whole: if it holds keys that scans wait for, they get them; never those of some partitions only. */
static void send_keys(struct gar_join *join, int64_t i)
{
    const int64_t k = i - join->kept_count;
    if (k >= 0 && k < join->key_count && !join->has_parts && join->whole == NULL &&
        join->sent[k] != NULL) {
        gar_key_filter_fill(join->sent[k], join->columns[i]);
    }
}

static enum gar_status join_item(struct gar_sink *base, int32_t stage, int64_t item, int32_t worker,
                                 struct gar_error *err)
{
    struct gar_join *join = (struct gar_join *)base;
    (void)worker;
    (void)stage;
    struct gar_join_worker *w = NULL;
    switch ((enum step)join->item_step) {
    case STEP_DIVIDE:
        w = join->workers[item];
        if (w != NULL) {
            GAR_TRY(divide_kept(join, w, (int32_t)item, err));
        }
        return gar_partitioned_flush(join->build_aside, (int32_t)item, err);
    case STEP_EVICT: return gar_partitioned_flush(join->build_aside, (int32_t)item, err);
    case STEP_JOIN:
        GAR_TRY(join_column(join, item, err));
        send_keys(join, item);
        return GAR_OK;
    case STEP_TABLE: break;
    }
    return gar_join_table_item(join->table, item, join->query->cancel, err);
}

/* ---- build rows at the end ---- */

static enum gar_status rest_next(struct gar_source *source, struct gar_query *query,
                                 struct gar_source_unit *out, struct gar_error *err)
{
    struct gar_join *join = of_source(source);
    (void)query;
    (void)err;
    if (join->next_row >= join->build_rows) {
        return GAR_EOF;
    }
    out->next = join->next_row;
    out->end = gar_min_i64(join->next_row + PART_ROWS, join->build_rows);
    join->next_row = out->end;
    return GAR_OK;
}

enum gar_status gar_join_build_batch(struct gar_join *join, const uint32_t *build_rows,
                                     int64_t count, struct gar_batch **out, struct gar_error *err)
{
    const int64_t n = join->schema->count;
    struct gar_column **columns = (struct gar_column **)gar_calloc(n, (int64_t)sizeof *columns);
    enum gar_status status = columns != NULL ? GAR_OK : gar_error_nomem(err, n * 8);
    for (int64_t i = 0; i < n && status >= 0; i++) {
        const struct gar_join_column *from = &join->outputs[i];
        if (from->is_build) {
            status = gar_column_gather(join->columns[from->position], build_rows, count,
                                       join->sink.memory, &columns[i], err);
        } else {
            status = gar_column_new_null(join->sink.memory, join->schema->fields[i].type, count,
                                         &columns[i], err);
        }
    }
    if (status >= 0) {
        status = gar_batch_new(join->schema, columns, count, out, err);
    }
    if (status < 0) {
        free_columns(columns, n);
    } else {
        gar_free(columns);
    }
    return status;
}

static enum gar_status rest_decode(struct gar_source *source, struct gar_source_unit *unit,
                                   int32_t worker, int64_t max_rows, struct gar_batch **out,
                                   struct gar_error *err)
{
    struct gar_join *join = of_source(source);
    (void)worker;
    const uint8_t *marks = join->marks->data;
    const uint8_t wanted = join->mode.is_semi && join->mode.wants_partner;
    const int64_t room = gar_min_i64(unit->end - unit->next, max_rows);
    uint32_t *rows = (uint32_t *)gar_malloc(room * (int64_t)sizeof *rows);
    if (rows == NULL) {
        return gar_error_nomem(err, room * (int64_t)sizeof *rows);
    }
    int64_t count = 0;
    for (; unit->next < unit->end && count < room; unit->next++) {
        rows[count] = (uint32_t)unit->next;
        count += marks[unit->next] == wanted;
    }
    const enum gar_status status =
        count > 0 ? gar_join_build_batch(join, rows, count, out, err) : GAR_EOF;
    gar_free(rows);
    return status;
}

static void rest_unit_free(struct gar_source *source, struct gar_source_unit *unit)
{
    (void)source;
    (void)unit;
}

static void rest_explain(const struct gar_source *source, struct gar_strbuf *out)
{
    const struct gar_join *join =
        (const struct gar_join *)(const void *)((const char *)source -
                                                offsetof(struct gar_join, source));
    gar_strbuf_printf(out, "rows of the join's table that had %s partner",
                      join->mode.is_semi && join->mode.wants_partner ? "a" : "no");
}

/* ---- parts ---- */

/* The table and its rows. */
static void free_table(struct gar_join *join)
{
    free_rows(join);
    gar_join_table_free(join->table);
    free_columns(join->columns, column_count(join));
    gar_buffer_unref(join->marks);
    join->table = NULL;
    join->columns = NULL;
    join->marks = NULL;
    join->build_rows = 0;
}

void gar_join_release(struct gar_join *join)
{
    free_table(join);
    while (join != NULL && join->open_parts == 0) {
        free_table(join);
        gar_partitioned_free(join->build_aside);
        gar_partitioned_free(join->probe_aside);
        join->build_aside = join->probe_aside = NULL;
        join = join->whole;
        if (join != NULL) {
            join->open_parts--;
        }
    }
}

static void free_part(void *object);

/* Forced, half of the partitions are not resident from the beginning. */
static enum gar_status make_build_aside(struct gar_join *join, struct gar_error *err)
{
    return may_divide(join)
               ? gar_partitioned_new(join->query, join->row_schema, join->shift,
                                     is_forced(join) ? GAR_PARTITIONS / 2 : GAR_PARTITIONS,
                                     ROW_OVERHEAD, join->sink.memory, &join->build_aside, err)
               : GAR_OK;
}

static enum gar_status new_part(struct gar_join *join, struct gar_join **out, struct gar_error *err)
{
    struct gar_join *part = (struct gar_join *)gar_calloc(1, (int64_t)sizeof *part);
    if (part == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *part);
    }
    *part = *join;
    part->workers = NULL;
    part->worker_count = 0;
    part->rows = NULL;
    part->rows_count = part->build_rows = part->next_row = part->open_parts = 0;
    part->columns = NULL;
    part->table = NULL;
    part->marks = NULL;
    part->build_aside = part->probe_aside = NULL;
    part->is_short = part->resident = part->step = part->item_step = 0;
    part->has_parts = false;
    part->shift = join->shift + GAR_PARTITION_BITS;
    part->whole = join;
    GAR_TRY(gar_query_own(join->query, part, free_part, err));
    join->open_parts++;
    *out = part;
    return make_build_aside(part, err);
}

/* The part of partition p: rows to look up, and rows of its own at the end. *at moves on. */
static enum gar_status insert_part(struct gar_join *join, int32_t p, struct gar_pipeline *pipeline,
                                   int64_t *at, struct gar_transform *const *transforms,
                                   int64_t count, int32_t op, struct gar_error *err)
{
    struct gar_join *part = NULL;
    struct gar_source *build = NULL;
    struct gar_transform **all = (struct gar_transform **)gar_arena_calloc(
        &join->query->arena, count + 1, (int64_t)sizeof(struct gar_transform *));
    if (all == NULL) {
        return gar_error_nomem(err, (count + 1) * 8);
    }
    GAR_TRY(new_part(join, &part, err));
    all[0] = &part->transform;
    if (count > 0) {
        memcpy(all + 1, transforms, (size_t)count * sizeof *all);
    }
    struct gar_branch probe = {
        .transforms = all, .transform_count = count + 1, .op = join->probe_op - 1};
    GAR_TRY(gar_partitioned_source(join->build_aside, p, join->probe_op, &build, err));
    GAR_TRY(gar_pipeline_new_before(pipeline, build, &part->sink, &probe.before, err));
    GAR_TRY(gar_partitioned_source(join->probe_aside, p, join->probe_op, &probe.source, err));
    GAR_TRY(gar_pipeline_insert(pipeline, (*at)++, &probe, err));
    if (gar_join_has_rest(join)) {
        const struct gar_branch rest = {
            .source = &part->source, .transforms = all + 1, .transform_count = count, .op = op};
        GAR_TRY(gar_pipeline_insert(pipeline, (*at)++, &rest, err));
    }
    return GAR_OK;
}

enum gar_status gar_join_insert_parts(struct gar_join *join, struct gar_pipeline *pipeline,
                                      int64_t at, struct gar_transform *const *transforms,
                                      int64_t count, int32_t op, struct gar_error *err)
{
    for (int32_t p = join->resident; join->has_parts && p < GAR_PARTITIONS; p++) {
        GAR_TRY(insert_part(join, p, pipeline, &at, transforms, count, op, err));
    }
    return GAR_OK;
}

static enum gar_status rest_follow(struct gar_source *source, struct gar_pipeline *pipeline,
                                   int64_t at, struct gar_error *err)
{
    const struct gar_branch *branch = &pipeline->branches[at];
    return gar_join_insert_parts(of_source(source), pipeline, at, branch->transforms,
                                 branch->transform_count, branch->op, err);
}

static void rest_release(struct gar_source *source)
{
    gar_join_release(of_source(source));
}

/* ---- making ---- */

static void free_workers(struct gar_join *join)
{
    for (int32_t i = 0; join->workers != NULL && i < join->worker_count; i++) {
        struct gar_join_worker *w = join->workers[i];
        for (int64_t k = 0; w != NULL && k < w->count; k++) {
            free_columns(w->rows[k].columns, column_count(join));
        }
        if (w != NULL) {
            gar_eval_free(w->eval);
            gar_free(w->rows);
            gar_free(w->scratch);
            gar_free(w->hashes);
            gar_free(w);
        }
    }
    gar_free(join->workers);
}

static void free_state(struct gar_join *join)
{
    free_table(join);
    free_workers(join);
    gar_partitioned_free(join->build_aside);
    gar_partitioned_free(join->probe_aside);
}

static void free_part(void *object)
{
    free_state((struct gar_join *)object);
    gar_free(object);
}

static void free_join(void *object)
{
    struct gar_join *join = (struct gar_join *)object;
    free_state(join);
    gar_key_layout_destroy(&join->layout);
    gar_schema_unref(join->row_schema);
    gar_program_unref(join->build_program);
    gar_program_unref(join->probe_program);
    gar_program_unref(join->condition);
    gar_schema_unref(join->condition_schema);
    gar_schema_unref(join->schema);
    gar_schema_unref(join->build_schema);
    gar_schema_unref(join->probe_schema);
    gar_free(join->condition_columns);
    gar_free(join->outputs);
    gar_free(join->kept);
    gar_free(join->nulls_equal);
    for (int64_t k = 0; k < join->key_count && join->sent != NULL; k++) {
        gar_key_filter_free(join->sent[k]);
    }
    gar_free(join->sent);
    gar_plan_unref(join->plan);
    gar_free(join);
}

static struct gar_join_mode mode_of(const struct gar_plan *plan)
{
    const bool is_left_build = plan->is_build_left;
    const bool keeps_left = plan->join == GAR_JOIN_LEFT || plan->join == GAR_JOIN_OUTER;
    const bool keeps_right = plan->join == GAR_JOIN_RIGHT || plan->join == GAR_JOIN_OUTER;
    const bool is_semi = plan->join == GAR_JOIN_SEMI || plan->join == GAR_JOIN_ANTI;
    return (struct gar_join_mode){.gives_pairs = !is_semi,
                                  .keeps_probe = is_left_build ? keeps_right : keeps_left,
                                  .keeps_build = is_left_build ? keeps_left : keeps_right,
                                  .is_semi = is_semi,
                                  .wants_partner = plan->join == GAR_JOIN_SEMI,
                                  .is_left_build = is_left_build};
}

/* Where column `position` of left's and right's columns comes from; a build column is kept from now on. */
static struct gar_join_column find_column(struct gar_join *join, int64_t position)
{
    const int64_t left_count = join->plan->inputs[0]->schema->count;
    const bool is_left = position < left_count;
    const int64_t at = is_left ? position : position - left_count;
    if (is_left != join->mode.is_left_build) {
        return (struct gar_join_column){.is_build = false, .position = at};
    }
    for (int64_t k = 0; k < join->kept_count; k++) {
        if (join->kept[k] == at) {
            return (struct gar_join_column){.is_build = true, .position = k};
        }
    }
    join->kept[join->kept_count] = at;
    return (struct gar_join_column){.is_build = true, .position = join->kept_count++};
}

struct used {
    const struct gar_schema *pairs;
    bool *is_used;
};

static void note_used(const char *name, void *context)
{
    struct used *used = (struct used *)context;
    const int64_t i = gar_schema_find(used->pairs, name);
    if (i >= 0) {
        used->is_used[i] = true;
    }
}

/* The condition's program over the columns that it looks at. */
static enum gar_status make_condition(struct gar_join *join, struct gar_expr *condition,
                                      struct gar_error *err)
{
    const struct gar_schema *pairs = join->plan->pairs;
    struct used used = {pairs, (bool *)gar_calloc(pairs->count, (int64_t)sizeof(bool))};
    struct gar_field *fields =
        (struct gar_field *)gar_calloc(pairs->count, (int64_t)sizeof *fields);
    join->condition_columns = (struct gar_join_column *)gar_calloc(
        pairs->count, (int64_t)sizeof *join->condition_columns);
    enum gar_status status = GAR_OK;
    if (used.is_used == NULL || fields == NULL || join->condition_columns == NULL) {
        status = gar_error_nomem(err, pairs->count * (int64_t)sizeof *fields);
    } else {
        gar_expr_visit_columns(condition, note_used, &used);
        int64_t count = 0;
        for (int64_t i = 0; i < pairs->count; i++) {
            if (used.is_used[i]) {
                fields[count] = pairs->fields[i];
                join->condition_columns[count++] = find_column(join, i);
            }
        }
        status = gar_schema_new(fields, count, false, &join->condition_schema, err);
    }
    if (status >= 0) {
        status = gar_program_new(join->condition_schema, &condition, 1, &join->condition, err);
    }
    gar_free(used.is_used);
    gar_free(fields);
    return status;
}

/* What is evaluated of a side: its keys, and its `on`. */
static enum gar_status make_program(const struct gar_plan *plan, bool is_left,
                                    const struct gar_schema *schema, struct gar_program **out,
                                    struct gar_error *err)
{
    const int64_t keys = plan->key_count;
    const bool is_asof = plan->asof.kind != GAR_ASOF_NONE;
    if (keys + is_asof == 0) {
        return GAR_OK;
    }
    struct gar_expr **exprs = (struct gar_expr **)gar_calloc(keys + 1, (int64_t)sizeof *exprs);
    if (exprs == NULL) {
        return gar_error_nomem(err, (keys + 1) * (int64_t)sizeof *exprs);
    }
    for (int64_t k = 0; k < keys; k++) {
        exprs[k] = plan->exprs[is_left ? k : keys + k];
    }
    if (is_asof) {
        const struct gar_asof_on on = gar_plan_asof_on(plan);
        exprs[keys] = is_left ? on.left : on.right;
    }
    const enum gar_status status = gar_program_new(schema, exprs, keys + is_asof, out, err);
    gar_free(exprs);
    return status;
}

/* What dividing needs: the schema of divided rows, and the layout of their keys. */
static enum gar_status make_rows(struct gar_join *join, struct gar_error *err)
{
    if (!may_divide(join)) {
        return GAR_OK;
    }
    const int64_t count = column_count(join);
    char name[] = "";
    struct gar_field *fields = (struct gar_field *)gar_calloc(count, (int64_t)sizeof *fields);
    struct gar_type *types = (struct gar_type *)gar_calloc(count, (int64_t)sizeof *types);
    enum gar_status status = fields != NULL && types != NULL
                                 ? GAR_OK
                                 : gar_error_nomem(err, count * (int64_t)sizeof *fields);
    for (int64_t i = 0; i < count && status >= 0; i++) {
        types[i] = column_type(join, i);
        fields[i] = (struct gar_field){.name = name, .type = types[i], .nullable = true};
    }
    if (status >= 0) {
        status = gar_schema_new(fields, count, true, &join->row_schema, err);
    }
    if (status >= 0) {
        status = gar_key_layout_init(&join->layout, types + join->kept_count, join->key_count, err);
    }
    gar_free(fields);
    gar_free(types);
    return status >= 0 ? make_build_aside(join, err) : status;
}

static enum gar_status fill_join(struct gar_join *join, struct gar_error *err)
{
    struct gar_plan *plan = join->plan;
    const bool is_left_build = plan->is_build_left;
    join->build_schema = gar_schema_ref(plan->inputs[is_left_build ? 0 : 1]->schema);
    join->probe_schema = gar_schema_ref(plan->inputs[is_left_build ? 1 : 0]->schema);
    join->key_count = plan->key_count;
    join->kept = (int64_t *)gar_calloc(join->build_schema->count, (int64_t)sizeof *join->kept);
    join->nulls_equal = (bool *)gar_calloc(plan->key_count, (int64_t)sizeof(bool));
    join->outputs =
        (struct gar_join_column *)gar_calloc(plan->schema->count, (int64_t)sizeof *join->outputs);
    join->sent = (struct gar_key_filter **)gar_calloc(plan->key_count, (int64_t)sizeof *join->sent);
    if (join->kept == NULL || join->nulls_equal == NULL || join->outputs == NULL ||
        join->sent == NULL) {
        return gar_error_nomem(err, plan->schema->count * (int64_t)sizeof *join->outputs);
    }
    for (int64_t k = 0; k < plan->key_count; k++) {
        join->nulls_equal[k] = plan->nulls_equal[k];
    }
    for (int64_t i = 0; i < plan->schema->count; i++) {
        join->outputs[i] = find_column(join, plan->columns[i]);
    }
    const bool is_asof = plan->asof.kind != GAR_ASOF_NONE;
    join->eval_count = plan->key_count + is_asof;
    GAR_TRY(make_program(plan, is_left_build, join->build_schema, &join->build_program, err));
    GAR_TRY(make_program(plan, !is_left_build, join->probe_schema, &join->probe_program, err));
    return plan->expr_count > 2 * plan->key_count && !is_asof
               ? make_condition(join, plan->exprs[2 * plan->key_count], err)
               : GAR_OK;
}

enum gar_status gar_join_send_keys(struct gar_join *join, int64_t k, struct gar_key_filter **out,
                                   struct gar_error *err)
{
    if (join->sent[k] == NULL) {
        GAR_TRY(gar_key_filter_new(join->sink.memory, &join->sent[k], err));
    }
    *out = join->sent[k];
    return GAR_OK;
}

static void join_explain(const struct gar_sink *base, struct gar_strbuf *out)
{
    const struct gar_join *join = (const struct gar_join *)(const void *)base;
    gar_strbuf_append(out, join->key_count > 0 ? "join table by " : "rows of a join without keys");
    const int64_t first = join->mode.is_left_build ? 0 : join->key_count;
    for (int64_t k = 0; k < join->key_count; k++) {
        gar_strbuf_append(out, k > 0 ? ", " : "");
        gar_expr_print(join->plan->exprs[first + k], out);
    }
}

enum gar_status gar_join_new(struct gar_query *query, const struct gar_plan *plan,
                             struct gar_sink **out_sink, struct gar_transform **out_transform,
                             struct gar_source **out_rest, struct gar_join **out_join,
                             struct gar_error *err)
{
    static const struct gar_sink_vtable sink_vtable = {.name = "join table",
                                                       .start = join_start,
                                                       .push = join_push,
                                                       .stage = join_stage,
                                                       .item = join_item,
                                                       .explain = join_explain};
    static const struct gar_source_vtable source_vtable = {.name = "join rest",
                                                           .next = rest_next,
                                                           .decode = rest_decode,
                                                           .unit_free = rest_unit_free,
                                                           .follow = rest_follow,
                                                           .release = rest_release,
                                                           .explain = rest_explain};
    struct gar_join *join = (struct gar_join *)gar_calloc(1, (int64_t)sizeof *join);
    if (join == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *join);
    }
    join->sink.vtable = &sink_vtable;
    join->source.vtable = &source_vtable;
    join->transform.vtable = &gar_join_probe_vtable;
    join->query = query;
    join->plan = gar_plan_ref(plan);
    join->schema = gar_schema_ref(plan->schema);
    join->mode = mode_of(plan);
    GAR_TRY(gar_query_own(query, join, free_join, err));
    GAR_TRY(gar_query_op_memory(query, &join->sink.memory, err));
    GAR_TRY(fill_join(join, err));
    GAR_TRY(make_rows(join, err));
    *out_join = join;
    *out_sink = &join->sink;
    *out_transform = &join->transform;
    *out_rest = gar_join_has_rest(join) ? &join->source : NULL;
    return GAR_OK;
}
