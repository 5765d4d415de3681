/* SPDX-License-Identifier: Apache-2.0 */
/* Windows.
 *
 * 1. Workers keep the batches of their units with the computed keys and arguments of all calls.
 * 2. At the end the batches are put in the order of the input, and the computed columns are joined (an item a column).
 * 3. All rows are sorted by partition and order, as row numbers (one item), and cut into pieces of whole partitions.
 * 4. Every piece gathers its arguments in sorted order and computes all calls (window_call.c; an item a piece).
 * 5. The pieces' results are joined (an item a call), and the place of each row of the input in the sorted order is noted.
 * The result is the kept batches with a column a call, gathered by those places.
 *
 * Memory: all rows; the computed columns twice while they are joined; 44 bytes a row. When that would not leave enough to
 * others, rows go to disk, and windows are computed part by part (window_spill.h). Order: that of the input. */
#include "exec/ops/window.h"

#include <stdlib.h>
#include <string.h>

#include "arrow/gather.h"
#include "base/alloc.h"
#include "exec/ops/ops.h"
#include "exec/ops/window_spill.h"

enum { ROW_BYTES = 44, CALL_ROW_BYTES = 16 };

struct kept {
    struct gar_column **columns; /* owned; input's columns, then computed ones */
    int64_t rows;
    int64_t seq;
    int64_t row;
    int64_t first; /* its first row in the input */
};

struct worker {
    struct gar_eval *eval; /* owned; NULL when nothing is computed */
    struct gar_column **computed;
    struct kept *kept; /* owned */
    int64_t kept_count;
    int64_t kept_capacity;
};

struct window_op {
    struct gar_sink base;
    struct gar_source source;
    struct gar_query *query;     /* borrowed */
    const struct gar_plan *plan; /* owned reference */
    struct gar_program *program; /* owned reference or NULL */
    int64_t computed_count;      /* outputs of the program: partition, order, then those of calls */
    int64_t input_count;         /* columns of the input */
    const struct gar_window *shape;
    struct gar_window_call *calls; /* owned */
    int64_t call_count;
    struct gar_window_task task;
    struct worker **workers; /* owned */
    int32_t worker_count;
    struct gar_window_spill *spill; /* owned; NULL: nothing may be spilled */
    int32_t is_spilling;            /* atomic */
    int64_t pending;                /* atomic: bytes that computing what is in memory will need */
    /* after the input */
    struct kept *all; /* owned; in order */
    int64_t all_count;
    struct gar_window_part part; /* all rows, when they are in memory */
    int64_t group_count;         /* when they are not */
    int64_t next_unit;
};

/* ---- input ---- */

static int64_t column_count(const struct window_op *op)
{
    return op->input_count + op->computed_count;
}

static void destroy_kept(const struct window_op *op, struct kept *kept)
{
    for (int64_t c = 0; kept->columns != NULL && c < column_count(op); c++) {
        gar_column_unref(kept->columns[c]);
    }
    gar_free(kept->columns);
    kept->columns = NULL;
}

static void free_worker(const struct window_op *op, struct worker *w)
{
    if (w == NULL) {
        return;
    }
    for (int64_t i = 0; i < w->kept_count; i++) {
        destroy_kept(op, &w->kept[i]);
    }
    gar_free(w->kept);
    gar_free(w->computed);
    gar_eval_free(w->eval);
    gar_free(w);
}

static enum gar_status make_worker(struct window_op *op, struct worker **out, struct gar_error *err)
{
    struct worker *w = (struct worker *)gar_calloc(1, (int64_t)sizeof *w);
    if (w == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *w);
    }
    *out = w; /* freed with the operator from here on */
    w->computed =
        (struct gar_column **)gar_calloc(op->computed_count, (int64_t)sizeof(struct gar_column *));
    if (w->computed == NULL) {
        return gar_error_nomem(err, op->computed_count * 8);
    }
    return op->program != NULL ? gar_eval_new(op->program, op->base.memory, &w->eval, err) : GAR_OK;
}

static enum gar_status make_spill(struct window_op *op, struct gar_error *err)
{
    struct gar_type *types =
        (struct gar_type *)gar_calloc(op->computed_count, (int64_t)sizeof *types);
    if (types == NULL) {
        return gar_error_nomem(err, op->computed_count * (int64_t)sizeof *types);
    }
    for (int64_t c = 0; c < op->computed_count; c++) {
        types[c] = gar_program_output_type(op->program, c);
    }
    const enum gar_status status =
        gar_window_spill_new(&op->task, op->query, op->plan->inputs[0]->schema, types,
                             op->worker_count, &op->spill, err);
    gar_free(types);
    return status;
}

static enum gar_status window_start(struct gar_sink *base, struct gar_query *query, int32_t workers,
                                    struct gar_error *err)
{
    struct window_op *op = (struct window_op *)base;
    op->workers = (struct worker **)gar_calloc(workers, (int64_t)sizeof(struct worker *));
    if (op->workers == NULL) {
        return gar_error_nomem(err, workers * 8);
    }
    op->worker_count = workers;
    return gar_query_may_spill(query) ? make_spill(op, err) : GAR_OK;
}

static enum gar_status keep_batch(struct window_op *op, struct worker *w, int64_t seq, int64_t row,
                                  const struct gar_batch *dense, bool is_sparse,
                                  struct gar_error *err)
{
    GAR_TRY(gar_grow((void **)&w->kept, &w->kept_capacity, w->kept_count + 1,
                     (int64_t)sizeof *w->kept, err));
    struct kept *kept = &w->kept[w->kept_count++];
    *kept = (struct kept){.rows = dense->rows, .seq = seq, .row = row};
    kept->columns =
        (struct gar_column **)gar_calloc(column_count(op), (int64_t)sizeof(struct gar_column *));
    if (kept->columns == NULL) {
        return gar_error_nomem(err, column_count(op) * 8);
    }
    for (int64_t c = 0; c < op->input_count; c++) {
        if (is_sparse) { /* do not hold the texts of dropped rows */
            GAR_TRY(gar_column_compact(dense->columns[c], false, op->base.memory, &kept->columns[c],
                                       err));
        } else {
            kept->columns[c] = gar_column_ref(dense->columns[c]);
        }
    }
    if (op->program != NULL) {
        GAR_TRY(gar_eval_run(w->eval, dense, w->computed, err));
        memcpy(kept->columns + op->input_count, w->computed,
               (size_t)op->computed_count * sizeof w->computed[0]);
    }
    return GAR_OK;
}

/* What computing the windows of a kept batch will need besides what it is. */
static int64_t need_of(const struct window_op *op, const struct kept *kept)
{
    int64_t bytes = kept->rows * (ROW_BYTES + CALL_ROW_BYTES * op->call_count);
    for (int64_t c = op->input_count; c < column_count(op); c++) {
        bytes += gar_column_bytes(kept->columns[c]);
    }
    return bytes;
}

/* Write all that a worker holds. */
static enum gar_status spill_kept(struct window_op *op, int32_t worker, struct gar_error *err)
{
    struct worker *w = op->workers[worker];
    while (w->kept_count > 0) {
        struct kept *kept = &w->kept[w->kept_count - 1];
        GAR_TRY(gar_window_spill_put(op->spill, worker, kept->columns, kept->rows, kept->seq,
                                     kept->row, err));
        (void)__atomic_sub_fetch(&op->pending, need_of(op, kept), __ATOMIC_RELAXED);
        destroy_kept(op, kept);
        w->kept_count--;
    }
    return GAR_OK;
}

/* A batch was kept: once memory has been short, all goes to disk. */
static enum gar_status look_at_room(struct window_op *op, int32_t worker, struct gar_error *err)
{
    const struct worker *w = op->workers[worker];
    if (op->spill == NULL) {
        return GAR_OK;
    }
    const int64_t need = __atomic_add_fetch(&op->pending, need_of(op, &w->kept[w->kept_count - 1]),
                                            __ATOMIC_RELAXED);
    if (__atomic_load_n(&op->is_spilling, __ATOMIC_RELAXED) == 0) {
        if (!gar_query_is_short(op->query, need)) {
            return GAR_OK;
        }
        __atomic_store_n(&op->is_spilling, 1, __ATOMIC_RELAXED);
    }
    return spill_kept(op, worker, err);
}

static enum gar_status window_push(struct gar_sink *base, int32_t worker, int64_t seq, int64_t row,
                                   struct gar_batch *batch, struct gar_error *err)
{
    struct window_op *op = (struct window_op *)base;
    struct gar_batch *dense = NULL;
    enum gar_status status = GAR_OK;
    if (op->workers[worker] == NULL) {
        status = make_worker(op, &op->workers[worker], err);
    }
    if (status >= 0) {
        status = gar_batch_gather(batch, op->base.memory, &dense, err);
    }
    if (status >= 0) {
        status = keep_batch(op, op->workers[worker], seq, row, dense, dense->rows * 2 < batch->rows,
                            err);
    }
    gar_batch_unref(dense);
    gar_batch_unref(batch);
    if (status >= 0) {
        status = look_at_room(op, worker, err);
    }
    return status;
}

/* ---- sorting ---- */

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
static enum gar_status list_all(struct window_op *op, struct gar_error *err)
{
    int64_t count = 0;
    for (int32_t i = 0; i < op->worker_count; i++) {
        count += op->workers[i] != NULL ? op->workers[i]->kept_count : 0;
    }
    op->all = (struct kept *)gar_calloc(count, (int64_t)sizeof *op->all);
    if (op->all == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *op->all);
    }
    for (int32_t i = 0; i < op->worker_count; i++) {
        struct worker *w = op->workers[i];
        if (w == NULL) {
            continue;
        }
        for (int64_t b = 0; b < w->kept_count; b++) {
            op->all[op->all_count++] = w->kept[b];
        }
        w->kept_count = 0;
        free_worker(op, w);
        op->workers[i] = NULL;
    }
    qsort(op->all, (size_t)op->all_count, sizeof *op->all, compare_kept);
    int64_t rows = 0;
    for (int64_t i = 0; i < op->all_count; i++) {
        op->all[i].first = rows;
        rows += op->all[i].rows;
    }
    return gar_window_part_init(&op->part, &op->task, rows, err);
}

static enum gar_status join_computed(struct window_op *op, int64_t column, struct gar_error *err)
{
    struct gar_column **parts =
        (struct gar_column **)gar_calloc(op->all_count, (int64_t)sizeof *parts);
    if (parts == NULL) {
        return gar_error_nomem(err, op->all_count * 8);
    }
    for (int64_t i = 0; i < op->all_count; i++) {
        parts[i] = op->all[i].columns[op->input_count + column];
    }
    const enum gar_status status = gar_column_concat(
        parts, op->all_count, parts[0]->type, op->base.memory, &op->part.computed[column], err);
    for (int64_t i = 0; i < op->all_count && status >= 0; i++) {
        gar_column_unref(parts[i]);
        op->all[i].columns[op->input_count + column] = NULL;
    }
    gar_free(parts);
    return status;
}

/* ---- stages ---- */

enum stage { STAGE_JOIN, STAGE_SORT, STAGE_COMPUTE, STAGE_RESULTS, STAGE_END };

static enum gar_status stage_in_memory(struct window_op *op, enum stage stage, int64_t *out_items,
                                       struct gar_error *err)
{
    if (stage == STAGE_JOIN) {
        GAR_TRY(list_all(op, err));
    }
    if (op->part.rows == 0) {
        return GAR_OK;
    }
    switch (stage) {
    case STAGE_JOIN: /* one more, so that the next stage comes when nothing is computed */
        *out_items = op->computed_count + 1;
        return GAR_OK;
    case STAGE_SORT: *out_items = 1; return GAR_OK;
    case STAGE_COMPUTE: *out_items = op->part.piece_count; return GAR_OK;
    case STAGE_RESULTS:
        gar_window_part_computed(&op->part);
        *out_items = op->call_count + 1;
        return GAR_OK;
    case STAGE_END: break;
    }
    gar_window_part_joined(&op->part);
    return GAR_OK;
}

static enum gar_status item_in_memory(struct window_op *op, enum stage stage, int64_t item,
                                      struct gar_error *err)
{
    switch (stage) {
    case STAGE_JOIN: return item < op->computed_count ? join_computed(op, item, err) : GAR_OK;
    case STAGE_SORT: return gar_window_part_sort(&op->part, err);
    case STAGE_COMPUTE: return gar_window_part_compute(&op->part, item, err);
    case STAGE_RESULTS:
        return item < op->call_count ? gar_window_part_join(&op->part, item, err)
                                     : gar_window_part_places(&op->part, err);
    case STAGE_END: break;
    }
    return GAR_OK;
}

enum spill_stage { SPILL_REST, SPILL_DIVIDE, SPILL_COMPUTE, SPILL_END };

static enum gar_status stage_on_disk(struct window_op *op, enum spill_stage stage,
                                     int64_t *out_items, struct gar_error *err)
{
    switch (stage) {
    case SPILL_REST: *out_items = op->worker_count; break;
    case SPILL_DIVIDE:
        GAR_TRY(gar_window_spill_plan(op->spill, &op->group_count, err));
        *out_items = op->group_count;
        break;
    case SPILL_COMPUTE: *out_items = gar_window_spill_parts(op->spill); break;
    case SPILL_END: break;
    }
    return GAR_OK;
}

static enum gar_status item_on_disk(struct window_op *op, enum spill_stage stage, int64_t item,
                                    struct gar_error *err)
{
    switch (stage) {
    case SPILL_REST: return op->workers[item] != NULL ? spill_kept(op, (int32_t)item, err) : GAR_OK;
    case SPILL_DIVIDE: return gar_window_spill_divide(op->spill, item, err);
    case SPILL_COMPUTE: return gar_window_spill_compute(op->spill, item, err);
    case SPILL_END: break;
    }
    return GAR_OK;
}

static enum gar_status window_stage(struct gar_sink *base, struct gar_query *query, int32_t stage,
                                    int64_t *out_items, struct gar_error *err)
{
    struct window_op *op = (struct window_op *)base;
    (void)query;
    *out_items = 0;
    return op->is_spilling != 0 ? stage_on_disk(op, (enum spill_stage)stage, out_items, err)
                                : stage_in_memory(op, (enum stage)stage, out_items, err);
}

static enum gar_status window_item(struct gar_sink *base, int32_t stage, int64_t item,
                                   int32_t worker, struct gar_error *err)
{
    struct window_op *op = (struct window_op *)base;
    (void)worker;
    return op->is_spilling != 0 ? item_on_disk(op, (enum spill_stage)stage, item, err)
                                : item_in_memory(op, (enum stage)stage, item, err);
}

/* ---- the result ---- */

static struct window_op *of_source(struct gar_source *source)
{
    return (struct window_op *)(void *)((char *)source - offsetof(struct window_op, source));
}

static enum gar_status window_next(struct gar_source *source, struct gar_query *query,
                                   struct gar_source_unit *out, struct gar_error *err)
{
    struct window_op *op = of_source(source);
    (void)query;
    (void)err;
    const bool is_spilled = op->is_spilling != 0;
    if (op->next_unit >= (is_spilled ? op->group_count : op->all_count)) {
        return GAR_EOF;
    }
    out->part = op->next_unit++;
    out->next = 0;
    out->end = is_spilled ? gar_window_spill_rows(op->spill, out->part) : op->all[out->part].rows;
    return GAR_OK;
}

static enum gar_status make_columns(struct window_op *op, const struct kept *kept, int64_t first,
                                    int64_t count, struct gar_column **columns,
                                    struct gar_error *err)
{
    const uint32_t *places =
        (const uint32_t *)(const void *)op->part.places->data + kept->first + first;
    for (int64_t c = 0; c < op->input_count; c++) {
        GAR_TRY(gar_column_slice(kept->columns[c], first, count, &columns[c], err));
    }
    for (int64_t c = 0; c < op->call_count; c++) {
        GAR_TRY(gar_column_gather(op->part.results[c], places, count, op->base.memory,
                                  &columns[op->input_count + c], err));
    }
    return GAR_OK;
}

static enum gar_status window_decode(struct gar_source *source, struct gar_source_unit *unit,
                                     int32_t worker, int64_t max_rows, struct gar_batch **out,
                                     struct gar_error *err)
{
    struct window_op *op = of_source(source);
    (void)worker;
    int64_t count = gar_min_i64(unit->end - unit->next, max_rows);
    if (count <= 0) {
        return GAR_EOF;
    }
    struct gar_schema *schema = op->plan->schema;
    struct gar_column **columns =
        (struct gar_column **)gar_calloc(schema->count, (int64_t)sizeof *columns);
    if (columns == NULL) {
        return gar_error_nomem(err, schema->count * 8);
    }
    enum gar_status status =
        op->is_spilling != 0
            ? gar_window_spill_read(op->spill, unit->part, unit->next, count, columns, &count, err)
            : make_columns(op, &op->all[unit->part], unit->next, count, columns, err);
    if (status >= 0) {
        status = gar_batch_new(schema, columns, count, out, err);
    }
    for (int64_t c = 0; c < schema->count && status < 0; c++) {
        gar_column_unref(columns[c]);
    }
    gar_free(columns);
    unit->next += count;
    return status;
}

static void window_unit_free(struct gar_source *source, struct gar_source_unit *unit)
{
    struct window_op *op = of_source(source);
    if (op->is_spilling != 0) {
        gar_window_spill_leave(op->spill, unit->part);
    }
}

static void source_explain(const struct gar_source *source, struct gar_strbuf *out)
{
    (void)source;
    gar_strbuf_append(out, "rows with their windows of the pipeline before");
}

static void window_explain(const struct gar_sink *base, struct gar_strbuf *out)
{
    const struct window_op *op = (const struct window_op *)(const void *)base;
    gar_strbuf_append(out, "window ");
    for (int64_t i = 0; i < op->plan->expr_count; i++) {
        gar_strbuf_append(out, i > 0 ? ", " : "");
        gar_expr_print(op->plan->exprs[i]->args[0], out);
    }
    gar_strbuf_append(out, " (one sort, pieces of whole partitions)");
}

/* ---- making ---- */

static void free_window(void *object)
{
    struct window_op *op = (struct window_op *)object;
    for (int32_t i = 0; op->workers != NULL && i < op->worker_count; i++) {
        free_worker(op, op->workers[i]);
    }
    gar_free(op->workers);
    for (int64_t i = 0; i < op->all_count; i++) {
        destroy_kept(op, &op->all[i]);
    }
    gar_free(op->all);
    gar_window_part_destroy(&op->part);
    gar_window_spill_free(op->spill);
    gar_free(op->calls);
    gar_program_unref(op->program);
    gar_plan_unref((struct gar_plan *)(uintptr_t)(const void *)op->plan);
    gar_free(op);
}

/* What the program computes. */
struct outputs {
    const struct gar_schema *input;
    struct gar_expr **items; /* owned */
    int64_t count;
    int64_t capacity;
};

/* Takes over expr, also on failure; *out is its number. */
static enum gar_status add_output(struct outputs *outputs, struct gar_expr *expr, int64_t *out,
                                  struct gar_error *err)
{
    void *items = outputs->items;
    const enum gar_status status = gar_grow(&items, &outputs->capacity, outputs->count + 1,
                                            (int64_t)sizeof *outputs->items, err);
    if (status < 0) {
        gar_expr_unref(expr);
        return status;
    }
    outputs->items = (struct gar_expr **)items;
    *out = outputs->count;
    outputs->items[outputs->count++] = expr;
    return GAR_OK;
}

static enum gar_status add_argument(struct outputs *outputs, const struct gar_expr *expr,
                                    int64_t *out, struct gar_error *err)
{
    return expr == NULL ? GAR_OK : add_output(outputs, gar_expr_ref(expr), out, err);
}

/* The bound of each row (key plus or minus the value) and the key as a value of the same type. */
static enum gar_status add_bound(struct outputs *outputs, const struct gar_window_call *call,
                                 const struct gar_expr *value, int64_t *out_key, int64_t *out_bound,
                                 struct gar_error *err)
{
    struct gar_expr *key = gar_window_order(call->expr)[0];
    struct gar_expr *args[2] = {key, gar_expr_ref(value)};
    struct gar_expr *bound = NULL;
    struct gar_expr *cast = NULL;
    struct gar_type type = {0};
    enum gar_status status = gar_expr_type(key, outputs->input, false, &type, err);
    if (status >= 0) {
        /* beyond the type's range there is no value: no bound */
        const char *name = gar_type_is_numeric(type)
                               ? (call->is_descending ? "try_subtract" : "try_add")
                               : (call->is_descending ? "subtract" : "add");
        status = gar_expr_new_call_by_name(name, args, 2, &bound, err);
    }
    gar_expr_unref(args[1]);
    if (status >= 0) {
        status = gar_expr_type(bound, outputs->input, false, &type, err);
    }
    if (status >= 0) {
        status = gar_expr_new_cast(key, type, false, &cast, err);
    }
    if (status < 0) {
        gar_error_prefix(err, "range_between: ");
        gar_expr_unref(bound);
        return status;
    }
    status = add_output(outputs, bound, out_bound, err);
    if (status < 0) {
        gar_expr_unref(cast);
        return status;
    }
    return add_output(outputs, cast, out_key, err);
}

static const struct gar_value *literal_at(const struct gar_expr *call, int64_t i)
{
    const struct gar_expr *arg = i < call->arg_count ? call->args[i] : NULL;
    while (arg != NULL && arg->kind == GAR_EXPR_ALIAS) {
        arg = arg->args[0];
    }
    return arg != NULL && arg->kind == GAR_EXPR_LITERAL && arg->value.is_valid ? &arg->value : NULL;
}

static const struct {
    const char *name;
    enum gar_window_kind kind;
} kinds[] = {
    {"row_number", GAR_WINDOW_ROW_NUMBER},
    {"rank", GAR_WINDOW_RANK},
    {"dense_rank", GAR_WINDOW_DENSE_RANK},
    {"percent_rank", GAR_WINDOW_PERCENT_RANK},
    {"cume_dist", GAR_WINDOW_CUME_DIST},
    {"ntile", GAR_WINDOW_NTILE},
    {"lag", GAR_WINDOW_LAG},
    {"lead", GAR_WINDOW_LEAD},
    {"first_value", GAR_WINDOW_FIRST_VALUE},
    {"last_value", GAR_WINDOW_LAST_VALUE},
    {"nth_value", GAR_WINDOW_NTH_VALUE},
};

static enum gar_window_kind kind_of(const struct gar_expr *function_call)
{
    const char *name = gar_function_info(function_call->function)->name;
    for (int64_t i = 0; i < GAR_COUNT_OF(kinds); i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return kinds[i].kind;
        }
    }
    return GAR_WINDOW_AGGREGATE;
}

/* lag, lead and values of the frame. */
static enum gar_status read_value(struct outputs *outputs, struct gar_window_call *call,
                                  const struct gar_expr *expr, struct gar_error *err)
{
    const bool is_shift = call->kind == GAR_WINDOW_LAG || call->kind == GAR_WINDOW_LEAD;
    const int64_t flag = call->kind == GAR_WINDOW_NTH_VALUE ? 2 : 1;
    const struct gar_value *number = literal_at(expr, 1);
    const struct gar_value *ignore = literal_at(expr, flag);
    GAR_TRY(add_argument(outputs, expr->args[0], &call->argument, err));
    if (is_shift || call->kind == GAR_WINDOW_NTH_VALUE) {
        call->number = number != NULL ? number->i64 : 1;
    }
    call->ignore_nulls = !is_shift && ignore != NULL && ignore->boolean;
    if (is_shift && literal_at(expr, 2) == NULL && expr->arg_count > 2 &&
        expr->args[2]->kind == GAR_EXPR_LITERAL) {
        return GAR_OK; /* null */
    }
    if (is_shift && expr->arg_count > 2) {
        struct gar_expr *cast = NULL;
        GAR_TRY(gar_expr_new_cast(expr->args[2], call->type, false, &cast, err));
        return add_output(outputs, cast, &call->fallback, err);
    }
    return GAR_OK;
}

static enum gar_status read_call(struct window_op *op, struct outputs *outputs,
                                 struct gar_window_call *call, struct gar_error *err)
{
    const struct gar_expr *expr = call->expr->args[0];
    const struct gar_window *w = &call->expr->window;
    call->kind = kind_of(expr);
    call->is_descending = (w->descending & 1) != 0;
    (void)op;
    if (w->has_start_value) {
        GAR_TRY(add_bound(outputs, call, gar_window_start_value(call->expr), &call->start_key,
                          &call->start, err));
    }
    if (w->has_end_value) {
        GAR_TRY(add_bound(outputs, call, gar_window_end_value(call->expr), &call->end_key,
                          &call->end, err));
    }
    if (call->kind == GAR_WINDOW_NTILE) {
        const struct gar_value *buckets = literal_at(expr, 0);
        call->number = buckets != NULL ? buckets->i64 : 1;
        return GAR_OK;
    }
    if (call->kind < GAR_WINDOW_NTILE) {
        return GAR_OK;
    }
    if (call->kind != GAR_WINDOW_AGGREGATE) {
        return read_value(outputs, call, expr, err);
    }
    struct gar_aggregate_call read;
    GAR_TRY(gar_aggregate_call_read(expr, &read, err));
    call->spec = read.spec;
    GAR_TRY(add_argument(outputs, read.argument, &call->argument, err));
    return add_argument(outputs, read.second, &call->second, err);
}

static enum gar_status read_calls(struct window_op *op, struct outputs *outputs,
                                  struct gar_error *err)
{
    const struct gar_expr *first = op->calls[0].expr;
    const int64_t keys = op->shape->partition_count + op->shape->order_count;
    for (int64_t k = 0; k < keys; k++) {
        int64_t number = 0;
        GAR_TRY(add_argument(outputs, first->args[1 + k], &number, err));
    }
    for (int64_t c = 0; c < op->call_count; c++) {
        GAR_TRY(read_call(op, outputs, &op->calls[c], err));
    }
    op->computed_count = outputs->count;
    if (outputs->count > 0) {
        GAR_TRY(gar_program_new(outputs->input, outputs->items, outputs->count, &op->program, err));
    }
    for (int64_t c = 0; c < op->call_count; c++) {
        struct gar_window_call *call = &op->calls[c];
        const struct gar_type argument = call->argument >= 0
                                             ? gar_program_output_type(op->program, call->argument)
                                             : gar_type_of(GAR_BOOL); /* any that is not null */
        const struct gar_type second = call->second >= 0
                                           ? gar_program_output_type(op->program, call->second)
                                           : gar_type_of(GAR_NULL);
        gar_aggregate_call_set_types(&call->spec, argument, second, call->second >= 0, call->type);
    }
    return GAR_OK;
}

static enum gar_status make_calls(struct window_op *op, struct gar_error *err)
{
    op->calls = (struct gar_window_call *)gar_calloc(op->call_count, (int64_t)sizeof *op->calls);
    if (op->calls == NULL) {
        return gar_error_nomem(err, op->call_count * (int64_t)sizeof *op->calls);
    }
    for (int64_t c = 0; c < op->call_count; c++) {
        struct gar_window_call *call = &op->calls[c];
        call->expr = op->plan->exprs[c]->args[0];
        call->type = op->plan->schema->fields[op->input_count + c].type;
        call->argument = call->second = call->fallback = -1;
        call->start_key = call->start = call->end_key = call->end = -1;
    }
    op->shape = &op->calls[0].expr->window;
    struct outputs outputs = {.input = op->plan->inputs[0]->schema};
    const enum gar_status status = read_calls(op, &outputs, err);
    for (int64_t i = 0; i < outputs.count; i++) {
        gar_expr_unref(outputs.items[i]);
    }
    gar_free(outputs.items);
    return status;
}

enum gar_status gar_window_new(struct gar_query *query, const struct gar_plan *plan,
                               struct gar_sink **out_sink, struct gar_source **out_source,
                               struct gar_error *err)
{
    static const struct gar_sink_vtable sink_vtable = {.name = "window",
                                                       .start = window_start,
                                                       .push = window_push,
                                                       .stage = window_stage,
                                                       .item = window_item,
                                                       .explain = window_explain};
    static const struct gar_source_vtable source_vtable = {.name = "windowed rows",
                                                           .next = window_next,
                                                           .decode = window_decode,
                                                           .unit_free = window_unit_free,
                                                           .explain = source_explain};
    struct window_op *op = (struct window_op *)gar_calloc(1, (int64_t)sizeof *op);
    if (op == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *op);
    }
    op->base.vtable = &sink_vtable;
    op->source.vtable = &source_vtable;
    op->query = query;
    op->plan = gar_plan_ref(plan);
    op->input_count = plan->inputs[0]->schema->count;
    op->call_count = plan->expr_count;
    GAR_TRY(gar_query_own(query, op, free_window, err));
    GAR_TRY(gar_query_op_memory(query, &op->base.memory, err));
    GAR_TRY(make_calls(op, err));
    op->task = (struct gar_window_task){.shape = op->shape,
                                        .calls = op->calls,
                                        .call_count = op->call_count,
                                        .computed_count = op->computed_count,
                                        .schema = op->plan->schema,
                                        .input_count = op->input_count,
                                        .memory = op->base.memory};
    *out_sink = &op->base;
    *out_source = &op->source;
    return GAR_OK;
}
