/* SPDX-License-Identifier: Apache-2.0 */
/* Numbering: WINDOW nodes that only number the rows of their input (row_number without partition and order). It stands between
 * two pipelines that run at the same time: as a sink it takes batches in order and counts their rows, as a source it gives
 * them with the numbers as further columns, which are made by the compute threads.
 *
 * Memory: at most BATCHES_MAX batches that wait. Order: kept. */
#include <string.h>

#include "base/alloc.h"
#include "exec/ops/ops.h"
#include "expr/window.h"

enum { BATCHES_MAX = 16 };

struct number {
    struct gar_sink sink;
    struct gar_source source;
    struct gar_schema *schema; /* owned reference */
    /* role */
    struct gar_batch *batches[BATCHES_MAX]; /* owned; a ring */
    int64_t first;
    int64_t count;
    int64_t rows; /* of batches given so far */
    bool is_input_over;
    bool is_stopped;
};

static struct number *of_source(struct gar_source *source)
{
    return (struct number *)(void *)((char *)source - offsetof(struct number, source));
}

/* ---- as a sink ---- */

static enum gar_status number_deliver(struct gar_sink *sink, struct gar_query *query,
                                      struct gar_batch *batch, struct gar_error *err)
{
    struct number *number = (struct number *)sink;
    (void)query;
    (void)err;
    if (number->is_stopped) {
        return GAR_EOF;
    }
    if (number->count == BATCHES_MAX) {
        return GAR_PENDING;
    }
    number->batches[(number->first + number->count++) % BATCHES_MAX] = batch;
    return GAR_OK;
}

static enum gar_status number_stage(struct gar_sink *sink, struct gar_query *query, int32_t stage,
                                    int64_t *out_items, struct gar_error *err)
{
    (void)query;
    (void)stage;
    (void)err;
    ((struct number *)sink)->is_input_over = true;
    *out_items = 0;
    return GAR_OK;
}

static void number_explain(const struct gar_sink *sink, struct gar_strbuf *out)
{
    (void)sink;
    gar_strbuf_append(out, "number rows");
}

/* ---- as a source: a unit is a batch, `part` the number of its first row ---- */

static struct gar_batch *unit_batch(const struct gar_source_unit *unit)
{
    return (struct gar_batch *)(void *)unit->unit;
}

static enum gar_status number_next(struct gar_source *source, struct gar_query *query,
                                   struct gar_source_unit *out, struct gar_error *err)
{
    struct number *number = of_source(source);
    (void)query;
    (void)err;
    if (number->count == 0) {
        return number->is_input_over ? GAR_EOF : GAR_PENDING;
    }
    struct gar_batch *batch = number->batches[number->first];
    *out = (struct gar_source_unit){
        .unit = (struct gar_unit *)(void *)batch, .part = number->rows + 1, .end = batch->rows};
    number->first = (number->first + 1) % BATCHES_MAX;
    number->count--;
    number->rows += batch->rows;
    return GAR_OK;
}

/* `rows` numbers from `first` on. */
static enum gar_status new_numbers(struct gar_memory *memory, int64_t first, int64_t rows,
                                   struct gar_column **out, struct gar_error *err)
{
    GAR_TRY(gar_column_new(memory, gar_type_of(GAR_INT64), rows, false, out, err));
    int64_t *values = (int64_t *)gar_column_values_mut(*out);
    for (int64_t i = 0; i < rows; i++) {
        values[i] = first + i;
    }
    (*out)->null_count = 0;
    return GAR_OK;
}

/* The rows of `piece` and their numbers. */
static enum gar_status add_numbers(struct number *number, const struct gar_batch *piece,
                                   int64_t first, struct gar_batch **out, struct gar_error *err)
{
    const int64_t count = number->schema->count;
    const int64_t kept = piece->schema->count;
    struct gar_column **columns = (struct gar_column **)gar_calloc(count, (int64_t)sizeof *columns);
    if (columns == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *columns);
    }
    for (int64_t i = 0; i < kept; i++) {
        columns[i] = gar_column_ref(piece->columns[i]);
    }
    enum gar_status status =
        new_numbers(number->sink.memory, first, piece->rows, &columns[kept], err);
    for (int64_t i = kept + 1; i < count && status >= 0; i++) {
        columns[i] = gar_column_ref(columns[kept]);
    }
    if (status >= 0) {
        status = gar_batch_new(number->schema, columns, piece->rows, out, err);
    }
    if (status >= 0) {
        gar_batch_take_origin(*out, piece);
    }
    for (int64_t i = 0; i < count && status < 0; i++) {
        gar_column_unref(columns[i]);
    }
    gar_free(columns);
    return status;
}

static enum gar_status number_decode(struct gar_source *source, struct gar_source_unit *unit,
                                     int32_t worker, int64_t max_rows, struct gar_batch **out,
                                     struct gar_error *err)
{
    struct number *number = of_source(source);
    (void)worker;
    const int64_t rows = gar_min_i64(unit->end - unit->next, max_rows);
    if (rows <= 0) {
        return GAR_EOF;
    }
    struct gar_batch *piece = NULL;
    GAR_TRY(gar_batch_slice(unit_batch(unit), unit->next, rows, &piece, err));
    const enum gar_status status = add_numbers(number, piece, unit->part + unit->next, out, err);
    gar_batch_unref(piece);
    unit->next += rows;
    return status;
}

static void number_unit_free(struct gar_source *source, struct gar_source_unit *unit)
{
    (void)source;
    gar_batch_unref(unit_batch(unit));
    unit->unit = NULL;
}

static void number_stop(struct gar_source *source)
{
    of_source(source)->is_stopped = true;
}

static void source_explain(const struct gar_source *source, struct gar_strbuf *out)
{
    (void)source;
    gar_strbuf_append(out, "numbered rows, as they come");
}

/* ---- making ---- */

static void free_number(void *object)
{
    struct number *number = (struct number *)object;
    for (int64_t i = 0; i < number->count; i++) {
        gar_batch_unref(number->batches[(number->first + i) % BATCHES_MAX]);
    }
    gar_schema_unref(number->schema);
    gar_free(number);
}

bool gar_number_applies(const struct gar_plan *plan)
{
    for (int64_t i = 0; i < plan->expr_count; i++) {
        const struct gar_expr *window = plan->exprs[i];
        while (window->kind == GAR_EXPR_ALIAS) {
            window = window->args[0];
        }
        const struct gar_expr *call = window->args[0];
        if (call->kind != GAR_EXPR_CALL || window->window.partition_count > 0 ||
            window->window.order_count > 0 || window->window.min_periods > 1 ||
            strcmp(gar_function_info(call->function)->name, "row_number") != 0) {
            return false;
        }
    }
    return plan->expr_count > 0;
}

enum gar_status gar_number_new(struct gar_query *query, const struct gar_plan *plan,
                               struct gar_sink **out_sink, struct gar_source **out_source,
                               struct gar_error *err)
{
    static const struct gar_sink_vtable sink = {.name = "number rows",
                                                .deliver = number_deliver,
                                                .stage = number_stage,
                                                .explain = number_explain};
    static const struct gar_source_vtable source = {.name = "numbered rows",
                                                    .next = number_next,
                                                    .decode = number_decode,
                                                    .unit_free = number_unit_free,
                                                    .stop = number_stop,
                                                    .explain = source_explain};
    struct number *number = (struct number *)gar_calloc(1, (int64_t)sizeof *number);
    if (number == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *number);
    }
    number->sink.vtable = &sink;
    number->source.vtable = &source;
    number->schema = gar_schema_ref(plan->schema);
    GAR_TRY(gar_query_own(query, number, free_number, err));
    GAR_TRY(gar_query_op_memory(query, &number->sink.memory, err));
    *out_sink = &number->sink;
    *out_source = &number->source;
    return GAR_OK;
}
