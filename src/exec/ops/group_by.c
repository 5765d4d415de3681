/* SPDX-License-Identifier: Apache-2.0 */
/* Aggregation, grouped and global.
 *
 * 1. Each worker evaluates keys and arguments, finds the groups of the rows in its own table and updates dense
 *    accumulators, one aggregate after the other. Calls that need the same state over the same argument share it.
 * 2. At the end the workers' tables are joined: few groups into the largest table, by one task; many by hash
 *    partition, one task a partition, each into a table of its own.
 *    Accumulators that need all rows (percentile, mode, first, ...) are sealed then.
 * 3. The result is read group by group from the joined tables.
 *
 * When memory is short, tables are frozen: rows of groups that a worker has still go into its accumulators, all others are
 * put aside by hash partition as they are, keys and arguments (exec/partitioned.h). Then there is no joined result: each
 * partition is aggregated by an operator of its own (a part) after the other, whose input are the partition's rows and
 * which takes over the partition's groups of all frozen tables in its step 2. A part that is short of memory does the
 * same, by further bits of the hash. States whose size grows with the rows may be too large even in frozen tables: these
 * are closed then and take no more rows.
 *
 * Memory: one key row and the accumulators a group and worker; the partitioned join holds both sides once more. Under
 * pressure frozen tables and one partition.
 * Order: none needed, none kept. */
#include <string.h>

#include "arrow/gather.h"
#include "base/alloc.h"
#include "base/stop.h"
#include "exec/ops/group_by_priv.h"

enum {
    JOIN_ALONE_GROUPS = 1 << 15, /* so many groups in all are joined by one task */
    PART_ROWS = 1 << 16,         /* rows of one unit of the result */
    JOIN_ALONE_WORKERS = 2,
    DENSE_TENTHS = 7, /* a selection of so many tenths of the rows is not gathered */
    FORCED_SHIFT_MAX = 2 * GAR_PARTITION_BITS, /* where tests force it */
};

/* ---- groups ---- */

static void destroy_groups(const struct group_by *op, struct groups *groups)
{
    gar_group_table_free(groups->table);
    for (int64_t s = 0; groups->states != NULL && s < op->state_count; s++) {
        gar_aggregate_free(groups->states[s]);
    }
    gar_free(groups->states);
    gar_buffer_unref(groups->rows);
    memset(groups, 0, sizeof *groups);
}

static enum gar_status init_groups(struct group_by *op, struct groups *groups,
                                   struct gar_error *err)
{
    struct gar_memory *memory = op->base.memory;
    groups->states = (struct gar_aggregate **)gar_calloc(op->state_count,
                                                         (int64_t)sizeof(struct gar_aggregate *));
    if (groups->states == NULL) {
        return gar_error_nomem(err, op->state_count * 8);
    }
    for (int64_t s = 0; s < op->state_count; s++) {
        GAR_TRY(gar_aggregate_new(&op->state_specs[s], memory, &groups->states[s], err));
    }
    if (op->key_count > 0) {
        GAR_TRY(gar_group_table_new(&op->layout, memory, &groups->table, err));
    }
    return GAR_OK;
}

/* Accumulators and row counts are numbered by place: group g of a table lies at g + 1, behind the
 * waste place 0; the only group without keys lies at 0, before its waste place. */
static int64_t first_place(const struct group_by *op)
{
    return op->key_count > 0 ? 1 : 0;
}

static uint32_t waste_place(const struct group_by *op)
{
    return op->key_count > 0 ? 0 : 1;
}

static enum gar_status resize_groups(struct group_by *op, struct groups *groups, int64_t count,
                                     struct gar_error *err)
{
    const int64_t places = count + 1;
    if (places > groups->room) {
        const int64_t room = gar_max_i64(gar_max_i64(places, 2 * groups->room), 16);
        const int64_t bytes = room * (int64_t)sizeof(int64_t);
        if (groups->rows == NULL) {
            GAR_TRY(gar_buffer_new(op->base.memory, bytes, &groups->rows, err));
        } else {
            GAR_TRY(gar_buffer_resize(groups->rows, bytes, err));
        }
        memset(groups->rows->data + groups->room * (int64_t)sizeof(int64_t), 0,
               (size_t)(room - groups->room) * sizeof(int64_t));
        groups->room = room;
    }
    if (count > groups->count) {
        for (int64_t s = 0; s < op->state_count; s++) {
            GAR_TRY(gar_aggregate_resize(groups->states[s], places, err));
        }
        groups->count = count;
    }
    return GAR_OK;
}

static int64_t *rows_of(const struct groups *groups)
{
    return (int64_t *)(void *)groups->rows->data;
}

/* ---- input ---- */

static void drop_columns(struct gar_column **columns, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        gar_column_unref(columns[i]);
        columns[i] = NULL;
    }
}

static void free_worker(struct group_by *op, struct worker *w)
{
    if (w == NULL) {
        return;
    }
    destroy_groups(op, &w->groups);
    gar_eval_free(w->eval);
    gar_free(w->columns);
    gar_free(w->picked);
    gar_buffer_unref(w->numbers);
    gar_buffer_unref(w->lists);
    gar_buffer_unref(w->places);
    gar_free(w->scratch);
    gar_group_parts_destroy(&w->parts);
    gar_free(w);
}

static enum gar_status make_worker(struct group_by *op, struct worker **out, struct gar_error *err)
{
    struct worker *w = (struct worker *)gar_calloc(1, (int64_t)sizeof *w);
    if (w == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *w);
    }
    *out = w; /* freed with the operator from here on */
    w->columns =
        (struct gar_column **)gar_calloc(op->output_count, (int64_t)sizeof(struct gar_column *));
    w->picked = (struct gar_column **)gar_calloc(op->output_count + 1,
                                                 (int64_t)sizeof(struct gar_column *));
    if (w->columns == NULL || w->picked == NULL) {
        return gar_error_nomem(err, op->output_count * 8);
    }
    if (op->program != NULL && op->whole == NULL) {
        GAR_TRY(gar_eval_new(op->program, op->base.memory, &w->eval, err));
    }
    GAR_TRY(init_groups(op, &w->groups, err));
    return op->key_count == 0 ? resize_groups(op, &w->groups, 1, err) : GAR_OK;
}

static enum gar_status need_bytes(const struct group_by *op, struct gar_buffer **buffer,
                                  int64_t bytes, struct gar_error *err)
{
    if (*buffer != NULL && (*buffer)->size >= bytes) {
        return GAR_OK;
    }
    gar_buffer_unref(*buffer);
    *buffer = NULL;
    return gar_buffer_new(op->base.memory, bytes, buffer, err);
}

/* Groups become places, rows are counted; rows that are not selected go to waste. */
static void number_places(struct group_by *op, struct worker *w, const struct gar_batch *batch,
                          bool is_whole, int64_t rows)
{
    uint32_t *numbers = (uint32_t *)(void *)w->numbers->data;
    const uint32_t first = (uint32_t)first_place(op);
    const int64_t places = w->groups.count + 1;
    struct row_counts counts;
    counts.seen = rows_of(&w->groups);
    counts.is_few = places <= FEW_PLACES;
    if (counts.is_few) {
        memset(counts.lanes, 0, sizeof counts.lanes);
    }
    if (!is_whole) {
        for (int64_t i = 0; i < rows; i++) {
            numbers[i] += first;
        }
        count_places(&counts, numbers, rows);
        end_counts(&counts, places);
        return;
    }
    const uint32_t waste = waste_place(op);
    int64_t row = 0;
    for (int64_t i = 0; i < batch->selected;) {
        for (; row < batch->selection[i]; row++) {
            numbers[row] = waste;
        }
        const int64_t n = run_of(batch->selection, i, batch->selected);
        for (int64_t k = 0; k < n; k++) {
            numbers[row + k] += first;
        }
        count_places(&counts, numbers + row, n);
        row += n;
        i += n;
    }
    for (; row < rows; row++) {
        numbers[row] = waste;
    }
    end_counts(&counts, places);
}

/* Rows that go into accumulators together. */
struct rows {
    struct gar_column **columns; /* outputs of the program */
    int64_t count;
    uint64_t place;         /* of the first row */
    const uint64_t *places; /* of each row; NULL: they follow the first */
};

static enum gar_status update_states(struct group_by *op, struct worker *w, const uint32_t *numbers,
                                     const struct rows *rows, struct gar_error *err)
{
    for (int64_t s = 0; s < op->state_count; s++) {
        const int64_t argument = op->state_arguments[s];
        const int64_t second = op->state_arguments[op->call_count + s];
        const struct gar_column *first = argument >= 0 ? rows->columns[argument] : NULL;
        const struct gar_column *other = second >= 0 ? rows->columns[second] : NULL;
        GAR_TRY(rows->places != NULL
                    ? gar_aggregate_update_places(w->groups.states[s], numbers, first, other,
                                                  rows->places, rows->count, err)
                    : gar_aggregate_update_pair(w->groups.states[s], numbers, first, other,
                                                rows->place, rows->count, err));
    }
    return GAR_OK;
}

/* Add evaluated rows: those selected, or, is_whole, all of the batch. GAR_ERR_NOMEM with *out_done false: no accumulator
 * has changed. */
static enum gar_status add_rows(struct group_by *op, struct worker *w, const struct rows *rows,
                                const struct gar_batch *batch, bool is_whole, bool *out_done,
                                struct gar_error *err)
{
    const uint32_t *numbers = NULL;
    if (op->key_count > 0 || is_whole) {
        GAR_TRY(need_bytes(op, &w->numbers, rows->count * (int64_t)sizeof(uint32_t), err));
        uint32_t *found = (uint32_t *)(void *)w->numbers->data;
        if (op->key_count > 0) {
            GAR_TRY(gar_group_table_find(w->groups.table, rows->columns, rows->count, found, err));
            GAR_TRY(resize_groups(op, &w->groups, gar_group_table_count(w->groups.table), err));
        } else {
            memset(found, 0, (size_t)rows->count * sizeof *found);
        }
        *out_done = true;
        number_places(op, w, batch, is_whole, rows->count);
        numbers = found;
    } else {
        *out_done = true;
        rows_of(&w->groups)[0] += rows->count;
    }
    return update_states(op, w, numbers, rows, err);
}

/* Evaluate keys and arguments. *out_whole tells that they are of all rows of the batch, though only
 * some are selected: when most are, and no dropped row makes an expression fail. */
static enum gar_status evaluate(struct group_by *op, struct worker *w,
                                const struct gar_batch *batch, bool *out_whole,
                                struct gar_error *err)
{
    *out_whole = false;
    if (op->program == NULL) {
        return GAR_OK;
    }
    for (int64_t i = 0; op->whole != NULL && i < op->output_count; i++) {
        w->columns[i] = gar_column_ref(batch->columns[i]);
    }
    if (op->whole != NULL) {
        return GAR_OK;
    }
    if (batch->selection != NULL && op->may_waste && !w->is_frozen &&
        batch->selected * 10 >= batch->rows * DENSE_TENTHS) {
        struct gar_batch whole = *batch; /* for the call only: nobody takes a reference */
        whole.selection = NULL;
        whole.selection_owner = NULL;
        whole.selected = batch->rows;
        if (gar_eval_run(w->eval, &whole, w->columns, NULL) >= 0) {
            *out_whole = true;
            return GAR_OK;
        }
    }
    return gar_eval_run(w->eval, batch, w->columns, err);
}

static enum gar_status group_by_start(struct gar_sink *base, struct gar_query *query,
                                      int32_t workers, struct gar_error *err)
{
    struct group_by *op = (struct group_by *)base;
    op->workers = (struct worker **)gar_calloc(workers, (int64_t)sizeof(struct worker *));
    op->used = (struct worker **)gar_calloc(workers, (int64_t)sizeof(struct worker *));
    if (op->workers == NULL || op->used == NULL) {
        return gar_error_nomem(err, workers * 16);
    }
    op->worker_count = workers;
    op->bytes_before = gar_profile_memory_bytes(op->base.memory);
    return op->key_count > 0 && op->aside == NULL
               ? gar_partitioned_new(query, op->row_schema, op->shift, 0, 0, op->base.memory,
                                     &op->aside, err)
               : GAR_OK;
}

/* ---- rows put aside ---- */

static bool may_divide(const struct group_by *op)
{
    return op->aside != NULL && gar_query_may_divide(op->query, op->shift);
}

static void freeze(struct group_by *op, struct worker *w)
{
    __atomic_store_n(&op->is_short, 1, __ATOMIC_RELAXED);
    gar_group_table_freeze(w->groups.table, true);
    w->is_frozen = true;
}

/* What its groups hold. */
static int64_t own_bytes(const struct group_by *op)
{
    return gar_max_i64(gar_profile_memory_bytes(op->base.memory) - op->bytes_before, 0);
}

/* Before a batch of unit seq: is there room for what it may bring? */
static void look_at_room(struct group_by *op, struct worker *w, int64_t seq)
{
    if (!may_divide(op)) {
        return;
    }
    const int64_t own = own_bytes(op) / op->worker_count;
    if (!w->is_frozen) {
        const bool is_forced = op->query->spills_always && op->shift < FORCED_SHIFT_MAX &&
                               (w->groups.count > 0 || seq % 2 == 1);
        if (is_forced || __atomic_load_n(&op->is_short, __ATOMIC_RELAXED) != 0 ||
            gar_query_is_tight(op->query, op->shift, 2 * own)) {
            freeze(op, w);
        }
    } else if (op->keeps_rows && !w->is_closed) {
        w->is_closed = gar_query_is_tight(op->query, 1, own / 4);
    }
}

/* Columns of the listed rows into w->picked. On failure there are none. */
static enum gar_status pick_columns(struct group_by *op, struct worker *w, const struct rows *rows,
                                    const uint32_t *listed, int64_t count, struct gar_error *err)
{
    for (int64_t c = 0; c < op->output_count; c++) {
        const enum gar_status status =
            gar_column_gather(rows->columns[c], listed, count, op->base.memory, &w->picked[c], err);
        if (status < 0) {
            drop_columns(w->picked, c);
            return status;
        }
    }
    return GAR_OK;
}

/* Places of the listed rows, as a column of the rows put aside. */
static enum gar_status pick_places(struct group_by *op, const struct rows *rows,
                                   const uint32_t *listed, int64_t count, struct gar_column **out,
                                   struct gar_error *err)
{
    GAR_TRY(gar_column_new(op->base.memory, gar_type_of(GAR_UINT64), count, false, out, err));
    uint64_t *places = (uint64_t *)gar_column_values_mut(*out);
    for (int64_t i = 0; i < count; i++) {
        places[i] = rows->places != NULL ? rows->places[listed[i]] : rows->place + listed[i];
    }
    (*out)->null_count = 0;
    return GAR_OK;
}

/* Rows of groups that the worker has not. */
static enum gar_status put_aside(struct group_by *op, struct worker *w, int32_t worker,
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
    GAR_TRY(pick_columns(op, w, rows, listed, count, err));
    int64_t columns = op->output_count;
    enum gar_status status = GAR_OK;
    if (op->has_places) {
        status = pick_places(op, rows, listed, count, &w->picked[columns], err);
        columns += status >= 0;
    }
    if (status >= 0) {
        gar_key_hashes(&op->layout, w->picked, 0, count, w->scratch, hashes);
        status = gar_partitioned_add(op->aside, worker, w->picked, count, hashes, err);
    }
    drop_columns(w->picked, columns);
    return status;
}

/* Rows of groups that the worker has, at `numbers`. */
static enum gar_status add_known(struct group_by *op, struct worker *w, const struct rows *rows,
                                 uint32_t *numbers, const uint32_t *listed, int64_t count,
                                 struct gar_error *err)
{
    const uint32_t first = (uint32_t)first_place(op);
    int64_t *seen = rows_of(&w->groups);
    struct rows picked = {w->picked, count, rows->place, NULL};
    if (op->has_places) {
        GAR_TRY(need_bytes(op, &w->places, count * (int64_t)sizeof(uint64_t), err));
        uint64_t *places = (uint64_t *)(void *)w->places->data;
        for (int64_t i = 0; i < count; i++) {
            places[i] = rows->places != NULL ? rows->places[listed[i]] : rows->place + listed[i];
        }
        picked.places = places;
    }
    GAR_TRY(pick_columns(op, w, rows, listed, count, err));
    for (int64_t i = 0; i < count; i++) {
        numbers[i] = numbers[listed[i]] + first; /* listed[i] >= i */
        seen[numbers[i]]++;
    }
    const enum gar_status status = update_states(op, w, numbers, &picked, err);
    drop_columns(w->picked, op->output_count);
    return status;
}

/* Into a frozen table, and aside. */
static enum gar_status divide_rows(struct group_by *op, struct worker *w, int32_t worker,
                                   const struct rows *rows, struct gar_error *err)
{
    const int64_t bytes = rows->count * (int64_t)sizeof(uint32_t);
    GAR_TRY(need_bytes(op, &w->numbers, bytes, err));
    GAR_TRY(need_bytes(op, &w->lists, 3 * bytes, err));
    uint32_t *numbers = (uint32_t *)(void *)w->numbers->data;
    uint32_t *known = (uint32_t *)(void *)w->lists->data;
    uint32_t *others = known + rows->count;
    if (w->is_closed) {
        memset(numbers, 0xff, (size_t)bytes);
    } else {
        GAR_TRY(gar_group_table_find(w->groups.table, rows->columns, rows->count, numbers, err));
    }
    int64_t known_count = 0;
    int64_t other_count = 0;
    for (int64_t i = 0; i < rows->count; i++) {
        const bool is_known = numbers[i] < w->groups.count; /* it may have keys without states */
        known[known_count] = (uint32_t)i;
        others[other_count] = (uint32_t)i;
        known_count += is_known;
        other_count += !is_known;
    }
    if (other_count > 0) {
        GAR_TRY(put_aside(op, w, worker, rows, others, other_count, others + rows->count, err));
    }
    return known_count > 0 ? add_known(op, w, rows, numbers, known, known_count, err) : GAR_OK;
}

/* A batch into the worker's groups. Short of memory for new groups it is frozen, and the batch is begun again. */
static enum gar_status add_batch(struct group_by *op, struct worker *w, int32_t worker,
                                 uint64_t place, const struct gar_batch *batch,
                                 struct gar_error *err)
{
    bool is_whole = false;
    bool is_done = false;
    GAR_TRY(evaluate(op, w, batch, &is_whole, err));
    struct rows rows = {w->columns, is_whole ? batch->rows : batch->selected, place, NULL};
    if (op->whole != NULL && op->has_places) {
        rows.places = (const uint64_t *)batch->columns[op->output_count]->values;
    }
    enum gar_status status = w->is_frozen ? divide_rows(op, w, worker, &rows, err)
                                          : add_rows(op, w, &rows, batch, is_whole, &is_done, err);
    drop_columns(w->columns, op->output_count);
    if (status != GAR_ERR_NOMEM || w->is_frozen || is_done || !may_divide(op)) {
        return status;
    }
    freeze(op, w);
    return add_batch(op, w, worker, place, batch, err);
}

static enum gar_status group_by_push(struct gar_sink *base, int32_t worker, int64_t seq,
                                     int64_t row, struct gar_batch *batch, struct gar_error *err)
{
    struct group_by *op = (struct group_by *)base;
    const uint64_t place = ((uint64_t)seq << 32) | (uint64_t)row;
    enum gar_status status = GAR_OK;
    if (op->workers[worker] == NULL) {
        status = make_worker(op, &op->workers[worker], err);
    }
    if (status >= 0) {
        look_at_room(op, op->workers[worker], seq);
        status = add_batch(op, op->workers[worker], worker, place, batch, err);
    }
    gar_batch_unref(batch);
    return status;
}

/* ---- joining the workers' groups ---- */

/* Groups of both sides as places: from and to are changed. */
static enum gar_status combine_groups(struct group_by *op, struct groups *to,
                                      const struct groups *from, uint32_t *from_places,
                                      uint32_t *to_places, int64_t count, struct gar_error *err)
{
    const int64_t *theirs = rows_of(from);
    int64_t *ours = rows_of(to);
    const uint32_t first = (uint32_t)first_place(op);
    for (int64_t i = 0; i < count; i++) {
        from_places[i] += first;
        to_places[i] += first;
        ours[to_places[i]] += theirs[from_places[i]];
    }
    for (int64_t s = 0; s < op->state_count; s++) {
        GAR_TRY(gar_aggregate_combine(to->states[s], from->states[s], from_places, to_places, count,
                                      err));
    }
    return GAR_OK;
}

/* Numbers that groups of `from` have in `to`; new ones are added. */
static enum gar_status number_absorbed(struct group_by *op, struct groups *to,
                                       const struct groups *from, const uint32_t *from_groups,
                                       int64_t count, uint32_t *to_groups, struct gar_error *err)
{
    enum { STEP = 4096 };
    if (to->table == NULL) {
        to_groups[0] = 0;
        return GAR_OK;
    }
    for (int64_t at = 0; at < count; at += STEP) {
        GAR_CANCEL_CHECK(op->query->cancel, err);
        GAR_TRY(gar_group_table_absorb(to->table, from->table, from_groups + at,
                                       gar_min_i64(count - at, STEP), to_groups + at, err));
    }
    return resize_groups(op, to, gar_group_table_count(to->table), err);
}

/* Put the listed groups of `from` (NULL: all) into `to`. */
static enum gar_status absorb_groups(struct group_by *op, struct groups *to,
                                     const struct groups *from, const uint32_t *listed,
                                     int64_t count, struct gar_error *err)
{
    enum { STEP = 4096 };
    /* What keeps rows is combined once: it looks at all of them. */
    const int64_t step = op->keeps_rows ? gar_max_i64(count, 1) : STEP;
    uint32_t *numbers = (uint32_t *)gar_malloc(2 * step * (int64_t)sizeof *numbers);
    enum gar_status status = numbers != NULL ? GAR_OK : gar_error_nomem(err, 8 * step);
    for (int64_t at = 0; at < count && status >= 0; at += step) {
        const int64_t n = gar_min_i64(count - at, step);
        uint32_t *from_groups = numbers;
        uint32_t *to_groups = numbers + step;
        status = gar_cancel_status(op->query->cancel, err);
        for (int64_t i = 0; i < n; i++) {
            from_groups[i] = listed != NULL ? listed[at + i] : (uint32_t)(at + i);
        }
        if (status >= 0) {
            status = number_absorbed(op, to, from, from_groups, n, to_groups, err);
        }
        if (status >= 0) {
            status = combine_groups(op, to, from, from_groups, to_groups, n, err);
        }
    }
    gar_free(numbers);
    return status;
}

/* All rows of the groups are there. */
static enum gar_status seal_groups(struct group_by *op, struct groups *groups,
                                   struct gar_error *err)
{
    for (int64_t s = 0; s < op->state_count; s++) {
        GAR_TRY(gar_aggregate_seal(groups->states[s], err));
    }
    return GAR_OK;
}

/* All into the largest. */
static enum gar_status join_alone(struct group_by *op, struct gar_error *err)
{
    struct groups *to = &op->used[0]->groups;
    if (to->table != NULL) {
        gar_group_table_freeze(to->table, false);
    }
    for (int64_t k = 1; k < op->used_count; k++) {
        const struct groups *from = &op->used[k]->groups;
        GAR_TRY(absorb_groups(op, to, from, NULL, from->count, err));
    }
    for (int64_t k = 0; k < op->share_count; k++) {
        const struct share *share = &op->shares[k];
        GAR_TRY(absorb_groups(op, to, share->groups, share->listed, share->count, err));
    }
    return seal_groups(op, to, err);
}

static enum gar_status absorb_part(struct group_by *op, struct groups *to,
                                   const struct groups *from, const struct gar_group_parts *parts,
                                   int64_t part, struct gar_error *err)
{
    const int64_t first = parts->starts[part];
    return absorb_groups(op, to, from, parts->groups + first, parts->starts[part + 1] - first, err);
}

static enum gar_status join_partition(struct group_by *op, int64_t part, struct gar_error *err)
{
    struct groups *to = &op->parts[part];
    GAR_TRY(init_groups(op, to, err));
    GAR_TRY(resize_groups(op, to, 1, err));
    for (int64_t k = 0; k < op->used_count; k++) {
        const struct worker *w = op->used[k];
        GAR_TRY(absorb_part(op, to, &w->groups, &w->parts, part, err));
    }
    for (int64_t k = 0; k < op->share_count; k++) {
        const struct share *share = &op->shares[k];
        GAR_TRY(absorb_part(op, to, share->groups, &share->parts, part, err));
    }
    to->count = gar_group_table_count(to->table);
    return seal_groups(op, to, err);
}

/* The used workers, the one with most groups first. Returns the groups of them and of shares. */
static int64_t list_used(struct group_by *op)
{
    int64_t groups = 0;
    for (int32_t i = 0; i < op->worker_count; i++) {
        struct worker *w = op->workers[i];
        if (w == NULL) {
            continue;
        }
        groups += w->groups.count;
        op->used[op->used_count++] = w;
        if (w->groups.count > op->used[0]->groups.count) {
            op->used[op->used_count - 1] = op->used[0];
            op->used[0] = w;
        }
    }
    for (int64_t k = 0; k < op->share_count; k++) {
        groups += op->shares[k].count;
    }
    return groups;
}

/* What is there after the input: sort the used workers and choose how to join. */
static enum gar_status plan_join(struct group_by *op, int64_t *out_items, struct gar_error *err)
{
    const int64_t groups = list_used(op);
    if (op->used_count == 0 && (op->key_count == 0 || op->share_count > 0)) {
        GAR_TRY(make_worker(op, &op->workers[0], err)); /* no row: one group all the same */
        op->used[op->used_count++] = op->workers[0];
    }
    const int64_t givers = op->used_count + op->share_count;
    *out_items = 0;
    op->has_parts =
        op->aside != NULL && (gar_partitioned_is_used(op->aside) ||
                              (givers > 1 && groups > JOIN_ALONE_GROUPS && may_divide(op) &&
                               gar_query_is_tight(op->query, op->shift, own_bytes(op))));
    if (op->has_parts) {
        op->partition_bits = GAR_PARTITION_BITS;
        *out_items = givers;
        return GAR_OK;
    }
    if (givers <= 1) {
        *out_items = op->used_count == 1 && op->keeps_rows ? 1 : 0; /* to seal it */
        return GAR_OK;
    }
    if (groups <= JOIN_ALONE_GROUPS || givers <= JOIN_ALONE_WORKERS || op->key_count == 0) {
        *out_items = 1;
        return GAR_OK;
    }
    op->partition_bits = gar_group_partition_bits(op->keeps_rows ? 0 : groups);
    op->part_count = (int64_t)1 << op->partition_bits;
    op->parts = (struct groups *)gar_calloc(op->part_count, (int64_t)sizeof *op->parts);
    if (op->parts == NULL) {
        return gar_error_nomem(err, op->part_count * (int64_t)sizeof *op->parts);
    }
    *out_items = givers;
    return GAR_OK;
}

static enum gar_status group_by_stage(struct gar_sink *base, struct gar_query *query, int32_t stage,
                                      int64_t *out_items, struct gar_error *err)
{
    struct group_by *op = (struct group_by *)base;
    (void)query;
    *out_items = 0;
    if (stage == 0) {
        return plan_join(op, out_items, err);
    }
    if (stage == 1 && op->parts != NULL) {
        *out_items = op->part_count;
        return GAR_OK;
    }
    /* What has been joined is not needed any more. */
    for (int64_t k = op->parts != NULL ? 0 : 1; !op->has_parts && k < op->used_count; k++) {
        destroy_groups(op, &op->used[k]->groups);
    }
    return GAR_OK;
}

/* List groups by partition, for the parts or for the join. */
static enum gar_status list_groups(struct group_by *op, int64_t item, struct gar_error *err)
{
    if (item >= op->used_count) {
        struct share *share = &op->shares[item - op->used_count];
        return gar_group_parts_init(&share->parts, share->groups->table, share->listed,
                                    share->count, op->shift, op->partition_bits, err);
    }
    struct worker *w = op->used[item];
    GAR_TRY(gar_group_parts_init(&w->parts, w->groups.table, NULL, w->groups.count, op->shift,
                                 op->partition_bits, err));
    for (int32_t i = 0; op->has_parts && i < op->worker_count; i++) {
        if (op->workers[i] == w) {
            return gar_partitioned_flush(op->aside, i, err);
        }
    }
    return GAR_OK;
}

static enum gar_status group_by_item(struct gar_sink *base, int32_t stage, int64_t item,
                                     int32_t worker, struct gar_error *err)
{
    struct group_by *op = (struct group_by *)base;
    (void)worker;
    if (stage == 1) {
        return join_partition(op, item, err);
    }
    return op->parts != NULL || op->has_parts ? list_groups(op, item, err) : join_alone(op, err);
}

/* ---- the result ---- */

static const struct groups *part_of(const struct group_by *op, int64_t part)
{
    return op->parts != NULL ? &op->parts[part] : &op->used[part]->groups;
}

static struct group_by *of_source(struct gar_source *source)
{
    return (struct group_by *)(void *)((char *)source - offsetof(struct group_by, source));
}

static enum gar_status group_by_next(struct gar_source *source, struct gar_query *query,
                                     struct gar_source_unit *out, struct gar_error *err)
{
    struct group_by *op = of_source(source);
    (void)query;
    (void)err;
    if (op->has_parts) {
        return GAR_EOF;
    }
    const int64_t parts = op->parts != NULL ? op->part_count : gar_min_i64(op->used_count, 1);
    while (op->next_part < parts && op->next_row >= part_of(op, op->next_part)->count) {
        op->next_part++;
        op->next_row = 0;
    }
    if (op->next_part >= parts) {
        return GAR_EOF;
    }
    out->part = op->next_part;
    out->next = op->next_row;
    out->end = gar_min_i64(out->next + PART_ROWS, part_of(op, op->next_part)->count);
    op->next_row = out->end;
    return GAR_OK;
}

static enum gar_status make_columns(struct group_by *op, const struct groups *groups, int64_t first,
                                    int64_t count, struct gar_column **columns,
                                    struct gar_error *err)
{
    for (int64_t k = 0; k < op->key_count; k++) {
        GAR_TRY(gar_group_table_column(groups->table, k, first, count, op->base.memory, &columns[k],
                                       err));
    }
    for (int64_t c = 0; c < op->call_count; c++) {
        const struct call *call = &op->calls[c];
        const enum gar_status status = gar_aggregate_finish(
            groups->states[call->state], &call->spec, first_place(op) + first, count,
            rows_of(groups), op->base.memory, &columns[op->key_count + c], err);
        if (status < 0) {
            gar_error_prefix(err, "column '%s': ", op->schema->fields[op->key_count + c].name);
            return status;
        }
    }
    return GAR_OK;
}

/* Put a selection on the batch (of groups from `first` on) that leaves out groups without a row. */
static enum gar_status drop_empty(struct group_by *op, const struct groups *groups, int64_t first,
                                  struct gar_batch **batch, struct gar_error *err)
{
    const int64_t *rows = rows_of(groups) + first_place(op) + first;
    const int64_t count = (*batch)->rows;
    int64_t empty = 0;
    for (int64_t i = 0; i < count && op->key_count > 0; i++) {
        empty += rows[i] == 0;
    }
    if (empty == 0) {
        return GAR_OK;
    }
    struct gar_buffer *selection = NULL;
    struct gar_batch *selected = NULL;
    enum gar_status status =
        gar_buffer_new(op->base.memory, count * (int64_t)sizeof(uint32_t), &selection, err);
    if (status >= 0) {
        uint32_t *listed = (uint32_t *)(void *)selection->data;
        int64_t n = 0;
        for (int64_t i = 0; i < count; i++) {
            listed[n] = (uint32_t)i;
            n += rows[i] != 0;
        }
        status = gar_batch_select(*batch, selection, n, &selected, err);
        if (status < 0) {
            gar_buffer_unref(selection);
        }
    }
    gar_batch_unref(*batch);
    *batch = selected;
    return status;
}

static enum gar_status group_by_decode(struct gar_source *source, struct gar_source_unit *unit,
                                       int32_t worker, int64_t max_rows, struct gar_batch **out,
                                       struct gar_error *err)
{
    struct group_by *op = of_source(source);
    (void)worker;
    const int64_t rows = gar_min_i64(unit->end - unit->next, max_rows);
    if (rows <= 0) {
        return GAR_EOF;
    }
    const int64_t count = op->schema->count;
    struct gar_column **columns = (struct gar_column **)gar_calloc(count, (int64_t)sizeof *columns);
    if (columns == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *columns);
    }
    enum gar_status status =
        make_columns(op, part_of(op, unit->part), unit->next, rows, columns, err);
    if (status >= 0) {
        status = gar_batch_new(op->schema, columns, rows, out, err);
    }
    for (int64_t i = 0; i < count && status < 0; i++) {
        gar_column_unref(columns[i]);
    }
    gar_free(columns);
    if (status >= 0) {
        status = drop_empty(op, part_of(op, unit->part), unit->next, out, err);
    }
    unit->next += rows;
    return status;
}

static void group_by_unit_free(struct gar_source *source, struct gar_source_unit *unit)
{
    (void)source;
    (void)unit;
}

/* ---- parts ---- */

static void free_state(struct group_by *op)
{
    for (int32_t i = 0; op->workers != NULL && i < op->worker_count; i++) {
        free_worker(op, op->workers[i]);
    }
    for (int64_t p = 0; op->parts != NULL && p < op->part_count; p++) {
        destroy_groups(op, &op->parts[p]);
    }
    for (int64_t k = 0; k < op->share_count; k++) {
        gar_group_parts_destroy(&op->shares[k].parts);
    }
    gar_partitioned_free(op->aside);
    gar_free(op->parts);
    gar_free(op->workers);
    gar_free(op->used);
    gar_free(op->shares);
    op->parts = NULL;
    op->workers = op->used = NULL;
    op->shares = NULL;
    op->aside = NULL;
    op->share_count = op->used_count = op->part_count = 0;
}

/* What has parts is needed until the last of them is through. */
static void group_by_release(struct gar_source *source)
{
    struct group_by *op = of_source(source);
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
    free_state((struct group_by *)object);
    gar_free(object);
}

/* Groups of the partition, of all that gives some. */
static void list_shares(const struct group_by *op, int64_t p, struct group_by *part)
{
    for (int64_t k = 0; k < op->used_count + op->share_count; k++) {
        const bool is_own = k < op->used_count;
        const struct share *share = is_own ? NULL : &op->shares[k - op->used_count];
        const struct gar_group_parts *parts = is_own ? &op->used[k]->parts : &share->parts;
        const int64_t first = parts->starts[p];
        if (parts->starts[p + 1] > first) {
            part->shares[part->share_count++] =
                (struct share){.groups = is_own ? &op->used[k]->groups : share->groups,
                               .listed = parts->groups + first,
                               .count = parts->starts[p + 1] - first};
        }
    }
}

/* An operator for one partition: the plan's things are borrowed from the whole. */
static enum gar_status new_part(struct group_by *op, int32_t p, struct group_by **out,
                                struct gar_error *err)
{
    struct group_by *part = (struct group_by *)gar_calloc(1, (int64_t)sizeof *part);
    if (part == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *part);
    }
    *part = *op;
    part->workers = part->used = NULL;
    part->worker_count = 0;
    part->used_count = part->part_count = part->share_count = part->open_parts = 0;
    part->parts = NULL;
    part->aside = NULL;
    part->is_short = 0;
    part->has_parts = false;
    part->next_part = part->next_row = 0;
    part->shift = op->shift + GAR_PARTITION_BITS;
    part->whole = op;
    part->shares =
        (struct share *)gar_calloc(op->used_count + op->share_count, (int64_t)sizeof *part->shares);
    if (part->shares == NULL) {
        gar_free(part);
        return gar_error_nomem(err, (int64_t)sizeof *part->shares);
    }
    list_shares(op, p, part);
    GAR_TRY(gar_query_own(op->query, part, free_part, err));
    op->open_parts++;
    *out = part;
    return GAR_OK;
}

/* All partitions, one after the other, behind this source. */
static enum gar_status group_by_follow(struct gar_source *source, struct gar_pipeline *pipeline,
                                       int64_t at, struct gar_error *err)
{
    struct group_by *op = of_source(source);
    for (int32_t p = 0; op->has_parts && p < GAR_PARTITIONS; p++) {
        struct group_by *part = NULL;
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
    gar_strbuf_append(out, "groups of the pipeline before");
}

static void group_by_explain(const struct gar_sink *base, struct gar_strbuf *out)
{
    const struct group_by *op = (const struct group_by *)(const void *)base;
    gar_strbuf_append(out, op->key_count > 0 ? "group by " : "aggregate ");
    for (int64_t i = 0; i < op->plan->expr_count; i++) {
        gar_strbuf_append(out, i == 0 ? "" : i == op->key_count ? ": " : ", ");
        gar_expr_print(op->plan->exprs[i], out);
    }
    gar_strbuf_printf(out, " (%lld accumulators, a table per worker, joined by hash partition)",
                      (long long)op->state_count);
}

/* ---- making ---- */

static void free_group_by(void *object)
{
    struct group_by *op = (struct group_by *)object;
    free_state(op);
    gar_schema_unref(op->row_schema);
    gar_free(op->calls);
    gar_free(op->state_specs);
    gar_free(op->state_arguments);
    gar_key_layout_destroy(&op->layout);
    gar_program_unref(op->program);
    gar_schema_unref(op->schema);
    gar_plan_unref((struct gar_plan *)(uintptr_t)(const void *)op->plan);
    gar_free(op);
}

static const struct gar_expr *bare(const struct gar_expr *expr)
{
    while (expr->kind == GAR_EXPR_ALIAS) {
        expr = expr->args[0];
    }
    return expr;
}

/* Number of the expression among the program's; it is added when new. -1: there is none. */
static int64_t program_output(struct gar_expr **exprs, int64_t *count, const struct gar_expr *expr)
{
    if (expr == NULL) {
        return -1;
    }
    for (int64_t i = 0; i < *count; i++) {
        if (gar_expr_equal(exprs[i], expr)) {
            return i;
        }
    }
    exprs[(*count)++] = (struct gar_expr *)(uintptr_t)(const void *)expr;
    return *count - 1;
}

/* Keys first (each its own output), then the different arguments. */
static enum gar_status make_program(struct group_by *op, const struct gar_plan *plan,
                                    struct gar_error *err)
{
    struct gar_expr **exprs =
        (struct gar_expr **)gar_calloc(2 * plan->expr_count, (int64_t)sizeof(struct gar_expr *));
    if (exprs == NULL) {
        return gar_error_nomem(err, plan->expr_count * 16);
    }
    for (int64_t k = 0; k < op->key_count; k++) {
        exprs[k] = (struct gar_expr *)(uintptr_t)(const void *)bare(plan->exprs[k]);
    }
    op->output_count = op->key_count;
    enum gar_status status = GAR_OK;
    for (int64_t c = 0; c < op->call_count && status >= 0; c++) {
        const struct gar_expr *expr = bare(plan->exprs[op->key_count + c]);
        struct call *call = &op->calls[c];
        struct gar_aggregate_call read;
        status = gar_aggregate_call_read(expr, &read, err);
        call->argument = -1;
        call->second = -1;
        if (status >= 0) {
            call->spec = read.spec;
            call->argument = program_output(exprs, &op->output_count, read.argument);
            call->second = program_output(exprs, &op->output_count, read.second);
        }
    }
    if (status >= 0 && op->output_count > 0) {
        status =
            gar_program_new(plan->inputs[0]->schema, exprs, op->output_count, &op->program, err);
    }
    gar_free(exprs);
    return status;
}

/* Types of calls, and which share a state. */
static void assign_states(struct group_by *op)
{
    op->may_waste = true;
    for (int64_t c = 0; c < op->call_count; c++) {
        struct call *call = &op->calls[c];
        const struct gar_type argument = call->argument >= 0
                                             ? gar_program_output_type(op->program, call->argument)
                                             : gar_type_of(GAR_BOOL); /* any that is not null */
        const struct gar_type second = call->second >= 0
                                           ? gar_program_output_type(op->program, call->second)
                                           : gar_type_of(GAR_NULL);
        gar_aggregate_call_set_types(&call->spec, argument, second, call->second >= 0,
                                     op->schema->fields[op->key_count + c].type);
        const bool is_distinct = call->spec.kind == GAR_AGGREGATE_COUNT_DISTINCT;
        const bool keeps_rows = gar_aggregate_keeps_rows(call->spec.kind);
        op->keeps_rows = op->keeps_rows || keeps_rows;
        op->has_places = op->has_places || gar_aggregate_has_places(call->spec.kind);
        op->may_waste = op->may_waste && call->spec.kind != GAR_AGGREGATE_PRODUCT &&
                        !(keeps_rows && (!is_distinct || op->key_count == 0));
        call->state = -1;
        for (int64_t s = 0; s < op->state_count && call->state < 0; s++) {
            if (op->state_arguments[s] == call->argument &&
                op->state_arguments[op->call_count + s] == call->second &&
                gar_aggregate_is_shared(&op->state_specs[s], &call->spec)) {
                call->state = s;
            }
        }
        if (call->state < 0) {
            call->state = op->state_count++;
            op->state_specs[call->state] = call->spec;
            op->state_arguments[call->state] = call->argument;
            op->state_arguments[op->call_count + call->state] = call->second;
        }
    }
}

static enum gar_status make_keys(struct group_by *op, struct gar_error *err)
{
    if (op->key_count == 0) {
        return GAR_OK;
    }
    struct gar_type *types = (struct gar_type *)gar_calloc(op->key_count, (int64_t)sizeof *types);
    if (types == NULL) {
        return gar_error_nomem(err, op->key_count * (int64_t)sizeof *types);
    }
    for (int64_t k = 0; k < op->key_count; k++) {
        types[k] = op->schema->fields[k].type;
    }
    const enum gar_status status = gar_key_layout_init(&op->layout, types, op->key_count, err);
    gar_free(types);
    return status;
}

/* Of rows put aside: outputs of the program, then maybe their places. */
static enum gar_status make_row_schema(struct group_by *op, struct gar_error *err)
{
    if (op->key_count == 0) {
        return GAR_OK;
    }
    char name[] = "";
    struct gar_field *fields =
        (struct gar_field *)gar_calloc(op->output_count + 1, (int64_t)sizeof *fields);
    if (fields == NULL) {
        return gar_error_nomem(err, (op->output_count + 1) * (int64_t)sizeof *fields);
    }
    for (int64_t i = 0; i <= op->output_count; i++) {
        fields[i] = (struct gar_field){.name = name,
                                       .type = i < op->output_count
                                                   ? gar_program_output_type(op->program, i)
                                                   : gar_type_of(GAR_UINT64),
                                       .nullable = true};
    }
    const enum gar_status status =
        gar_schema_new(fields, op->output_count + op->has_places, true, &op->row_schema, err);
    gar_free(fields);
    return status;
}

enum gar_status gar_group_by_new(struct gar_query *query, const struct gar_plan *plan,
                                 struct gar_sink **out_sink, struct gar_source **out_source,
                                 struct gar_error *err)
{
    static const struct gar_sink_vtable sink_vtable = {.name = "group by",
                                                       .start = group_by_start,
                                                       .push = group_by_push,
                                                       .stage = group_by_stage,
                                                       .item = group_by_item,
                                                       .explain = group_by_explain};
    static const struct gar_source_vtable source_vtable = {.name = "groups",
                                                           .next = group_by_next,
                                                           .decode = group_by_decode,
                                                           .unit_free = group_by_unit_free,
                                                           .follow = group_by_follow,
                                                           .release = group_by_release,
                                                           .explain = source_explain};
    struct group_by *op = (struct group_by *)gar_calloc(1, (int64_t)sizeof *op);
    if (op == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *op);
    }
    op->base.vtable = &sink_vtable;
    op->source.vtable = &source_vtable;
    op->query = query;
    op->plan = gar_plan_ref(plan);
    op->schema = gar_schema_ref(plan->schema);
    op->key_count = plan->key_count;
    op->call_count = plan->expr_count - plan->key_count;
    GAR_TRY(gar_query_own(query, op, free_group_by, err));
    GAR_TRY(gar_query_op_memory(query, &op->base.memory, err));
    op->calls = (struct call *)gar_calloc(op->call_count, (int64_t)sizeof *op->calls);
    op->state_specs =
        (struct gar_aggregate_spec *)gar_calloc(op->call_count, (int64_t)sizeof *op->state_specs);
    op->state_arguments =
        (int64_t *)gar_calloc(2 * op->call_count, (int64_t)sizeof *op->state_arguments);
    if (op->calls == NULL || op->state_specs == NULL || op->state_arguments == NULL) {
        return gar_error_nomem(err, op->call_count * (int64_t)sizeof *op->calls);
    }
    GAR_TRY(make_keys(op, err));
    GAR_TRY(make_program(op, plan, err));
    assign_states(op);
    GAR_TRY(make_row_schema(op, err));
    *out_sink = &op->base;
    *out_source = &op->source;
    return GAR_OK;
}
