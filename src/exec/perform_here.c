/* SPDX-License-Identifier: Apache-2.0 */
/* User functions of this process: every work is one task of the Python pool, which joins the parts, calls the function
 * for exact pieces, checks what it gives, and puts the output together. */
#include <string.h>

#include "arrow/abi.h"
#include "arrow/gather.h"
#include "base/alloc.h"
#include "exec/exec_priv.h"
#include "exec/performer.h"
#include "os/clock.h"

struct gar_performer {
    struct gar_performer_options options;
    struct gar_user_function *function; /* borrowed: the udf's context */
    struct gar_schema *args;            /* owned reference */
    struct ArrowSchema exported;        /* of args; release NULL: not made */
    void *state;                        /* the function's, of this query */
    bool is_open;                       /* and it has to be closed */
    bool is_closing;
    bool is_closed;
};

/* A work on its way. */
struct task {
    struct gar_performer *performer;
    struct gar_udf_work *work;
};

static bool call_is_cancelled(const struct gar_user_call *call)
{
    const struct gar_performer *performer = (const struct gar_performer *)call->engine;
    return gar_cancel_requested(performer->options.query->cancel);
}

/* May the function give `from` where `to` was declared? Numbers and times of another width, nothing that loses its
 * meaning. */
static bool is_adaptable(struct gar_type from, struct gar_type to)
{
    const bool from_number = gar_type_is_integer(from) || gar_type_is_float(from);
    if (from.id == GAR_NULL || gar_type_equal(from, to)) {
        return true;
    }
    if (gar_type_is_integer(to)) {
        return gar_type_is_integer(from);
    }
    if (gar_type_is_float(to)) {
        return from_number || from.id == GAR_DECIMAL128;
    }
    if (to.id == GAR_DECIMAL128) {
        return gar_type_is_integer(from) || from.id == GAR_DECIMAL128;
    }
    return from.id == to.id || (from.id == GAR_DATE && to.id == GAR_TIMESTAMP);
}

static enum gar_status refuse_type(const struct gar_udf *udf, struct gar_type given,
                                   struct gar_error *err)
{
    char a[64];
    char b[64];
    return gar_error_set(
        err, GAR_ERR_TYPE,
        "UDF '%s' returned %s, expected %s; convert the values, or declare the type "
        "they have",
        udf->name, gar_type_text(given, a, (int64_t)sizeof a),
        gar_type_text(udf->type, b, (int64_t)sizeof b));
}

/* The column (moved) as the declared type. */
static enum gar_status adapt(const struct gar_performer *performer, struct gar_column *column,
                             struct gar_column **out, struct gar_error *err)
{
    const struct gar_udf *udf = performer->options.udf;
    if (gar_type_equal(column->type, udf->type)) {
        *out = column;
        return GAR_OK;
    }
    if (!is_adaptable(column->type, udf->type)) {
        const enum gar_status refused = refuse_type(udf, column->type, err);
        gar_column_unref(column);
        return refused;
    }
    char name[] = "result";
    const struct gar_field field = {.name = name, .type = column->type, .nullable = true};
    struct gar_schema *schema = NULL;
    struct gar_batch *batch = NULL;
    struct gar_expr *plain = NULL;
    struct gar_expr *cast = NULL;
    struct gar_program *program = NULL;
    struct gar_eval *eval = NULL;
    const int64_t rows = column->length;
    enum gar_status status = gar_schema_new(&field, 1, false, &schema, err);
    if (status >= 0) {
        status = gar_batch_new(schema, &column, rows, &batch, err);
    }
    if (status < 0) {
        gar_column_unref(column);
    }
    if (status >= 0) {
        status = gar_expr_new_column(name, &plain, err);
    }
    if (status >= 0) {
        status = gar_expr_new_cast(plain, udf->type, false, &cast, err);
    }
    if (status >= 0) {
        status = gar_program_new(schema, &cast, 1, &program, err);
    }
    if (status >= 0) {
        status = gar_eval_new(program, performer->options.memory, &eval, err);
    }
    if (status >= 0) {
        status = gar_eval_run(eval, batch, out, err);
    }
    gar_eval_free(eval);
    gar_program_unref(program);
    gar_expr_unref(cast);
    gar_expr_unref(plain);
    gar_batch_unref(batch);
    gar_schema_unref(schema);
    if (status < 0 && err != NULL) {
        char inner[GAR_ERROR_MESSAGE_BYTES];
        memcpy(inner, err->message, sizeof inner);
        return gar_error_set(err, status, "UDF '%s': a value that it returned does not fit: %.700s",
                             udf->name, inner);
    }
    return status;
}

static enum gar_status refuse_length(const struct gar_udf *udf, int64_t got, int64_t expected,
                                     struct gar_error *err)
{
    return gar_error_set(err, GAR_ERR_VALUE, "UDF '%s' returned %lld values, expected %lld",
                         udf->name, (long long)got, (long long)expected);
}

/* Which rows of the input the rows of an expanded result belong to. Caller frees *out. */
static enum gar_status take_repeats(const struct gar_udf *udf, const struct gar_user_call *call,
                                    int64_t total, int64_t **out, struct gar_error *err)
{
    const struct ArrowArray *array = &call->repeats;
    if (array->release == NULL || array->n_buffers != 2 || array->length != call->rows ||
        array->offset < 0 || (array->length > 0 && array->buffers[1] == NULL)) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "UDF '%s' did not say how many rows each row gives", udf->name);
    }
    int64_t *rows = (int64_t *)gar_calloc(gar_max_i64(total, 1), (int64_t)sizeof *rows);
    if (rows == NULL) {
        return gar_error_nomem(err, total * (int64_t)sizeof *rows);
    }
    const int64_t *counts = (const int64_t *)array->buffers[1] + array->offset;
    int64_t n = 0;
    for (int64_t i = 0; i < call->rows; i++) {
        if (counts[i] < 0 || counts[i] > total - n) {
            n = total + 1;
            break;
        }
        for (int64_t k = 0; k < counts[i]; k++) {
            rows[n++] = i;
        }
    }
    if (n != total) {
        gar_free(rows);
        return refuse_length(udf, total, n, err);
    }
    *out = rows;
    return GAR_OK;
}

static void release_results(struct gar_user_call *call)
{
    if (call->args.release != NULL) {
        call->args.release(&call->args);
    }
    if (call->result.release != NULL) {
        call->result.release(&call->result);
    }
    if (call->result_schema.release != NULL) {
        call->result_schema.release(&call->result_schema);
    }
    if (call->repeats.release != NULL) {
        call->repeats.release(&call->repeats);
    }
}

enum gar_status gar_performer_args(const struct gar_performer_options *options,
                                   struct gar_schema *args, const struct gar_batch *input,
                                   struct gar_batch **out, struct gar_error *err)
{
    const int64_t count = args->count;
    struct gar_column **columns =
        (struct gar_column **)gar_calloc(gar_max_i64(count, 1), (int64_t)sizeof *columns);
    if (columns == NULL) {
        return gar_error_nomem(err, count * 8);
    }
    for (int64_t i = 0; i < count; i++) {
        columns[i] = gar_column_ref(input->columns[options->kept + i]);
    }
    const enum gar_status status = gar_batch_new(args, columns, input->rows, out, err);
    for (int64_t i = 0; i < count && status < 0; i++) {
        gar_column_unref(columns[i]);
    }
    gar_free(columns);
    return status;
}

/* The arguments of a piece as an Arrow array. */
static enum gar_status export_args(const struct gar_performer *performer,
                                   const struct gar_batch *piece, struct ArrowArray *out,
                                   struct gar_error *err)
{
    struct gar_batch *batch = NULL;
    GAR_TRY(gar_performer_args(&performer->options, performer->args, piece, &batch, err));
    const enum gar_status status =
        gar_batch_export(batch, GAR_TEXT_LARGE_OFFSETS, performer->options.memory, out, err);
    gar_batch_unref(batch);
    return status;
}

enum gar_status gar_performer_output(const struct gar_performer_options *options,
                                     const struct gar_batch *input, struct gar_column *result,
                                     const int64_t *rows, struct gar_batch **out,
                                     struct gar_error *err)
{
    const int64_t kept = options->kept;
    const int64_t length = result->length;
    struct gar_column **columns =
        (struct gar_column **)gar_calloc(kept + 1, (int64_t)sizeof *columns);
    enum gar_status status = columns != NULL ? GAR_OK : gar_error_nomem(err, (kept + 1) * 8);
    for (int64_t i = 0; i < kept && status >= 0; i++) {
        if (rows == NULL) {
            columns[i] = gar_column_ref(input->columns[i]);
        } else {
            status = gar_column_gather_i64(input->columns[i], rows, length, options->memory,
                                           &columns[i], err);
        }
    }
    if (status >= 0) {
        columns[kept] = result;
        status = gar_batch_new(options->output, columns, length, out, err);
        columns[kept] = NULL;
    }
    if (status < 0) {
        for (int64_t i = 0; columns != NULL && i < kept; i++) {
            gar_column_unref(columns[i]);
        }
        gar_column_unref(result);
    }
    gar_free(columns);
    return status;
}

enum gar_status gar_performer_join(const struct gar_performer_options *options,
                                   const struct gar_udf_work *work, struct gar_batch **out,
                                   struct gar_error *err)
{
    struct gar_batch *joined = NULL;
    if (work->part_count == 1) {
        joined = gar_batch_ref(work->parts[0]);
    } else {
        GAR_TRY(gar_batch_concat(options->input, work->parts, work->part_count, options->memory,
                                 &joined, err));
    }
    const enum gar_status status = gar_batch_gather(joined, options->memory, out, err);
    gar_batch_unref(joined);
    return status;
}

static enum gar_status take_result(const struct gar_performer *performer,
                                   const struct gar_batch *piece, struct gar_user_call *call,
                                   struct gar_batch **out, struct gar_error *err)
{
    const struct gar_udf *udf = performer->options.udf;
    struct gar_column *column = NULL;
    struct gar_column *result = NULL;
    int64_t *rows = NULL;
    if (call->result.release == NULL || call->result_schema.release == NULL) {
        return gar_error_set(err, GAR_ERR_VALUE, "UDF '%s' returned nothing", udf->name);
    }
    GAR_TRY(gar_column_import(&call->result_schema, &call->result, performer->options.memory,
                              &column, err));
    enum gar_status status = GAR_OK;
    if (udf->is_expanding) {
        status = take_repeats(udf, call, column->length, &rows, err);
    } else if (column->length != piece->rows) {
        status = refuse_length(udf, column->length, piece->rows, err);
    }
    if (status < 0) {
        gar_column_unref(column);
        return status;
    }
    status = adapt(performer, column, &result, err);
    if (status >= 0) {
        status = gar_performer_output(&performer->options, piece, result, rows, out, err);
    }
    gar_free(rows);
    return status;
}

static enum gar_status call_once(struct gar_performer *performer, const struct gar_batch *piece,
                                 int64_t first_row, struct gar_batch **out, struct gar_error *err)
{
    struct gar_user_call call = {.struct_bytes = sizeof call,
                                 .schema = &performer->exported,
                                 .rows = piece->rows,
                                 .query = gar_profile_id(performer->options.query->profile),
                                 .first_row = first_row,
                                 .state = performer->state,
                                 .is_cancelled = call_is_cancelled,
                                 .engine = performer};
    GAR_CANCEL_CHECK(performer->options.query->cancel, err);
    GAR_TRY(export_args(performer, piece, &call.args, err));
    enum gar_status status = performer->function->call(performer->function->context, &call, err);
    if (status >= 0) {
        status = take_result(performer, piece, &call, out, err);
    }
    release_results(&call);
    return status;
}

/* All pieces of the joined input, one after the other. */
static enum gar_status call_pieces(struct gar_performer *performer, const struct gar_batch *whole,
                                   int64_t first_row, struct gar_batch **out, struct gar_error *err)
{
    const int64_t step = performer->options.udf->batch_rows;
    if (step == 0 || whole->rows <= step) {
        return call_once(performer, whole, first_row, out, err);
    }
    const int64_t count = (whole->rows + step - 1) / step;
    struct gar_batch **outputs = (struct gar_batch **)gar_calloc(count, (int64_t)sizeof *outputs);
    enum gar_status status = outputs != NULL ? GAR_OK : gar_error_nomem(err, count * 8);
    for (int64_t i = 0; i < count && status >= 0; i++) {
        struct gar_batch *piece = NULL;
        status = gar_batch_slice(whole, i * step, gar_min_i64(step, whole->rows - i * step), &piece,
                                 err);
        if (status >= 0) {
            status = call_once(performer, piece, first_row + i * step, &outputs[i], err);
            gar_batch_unref(piece);
        }
    }
    if (status >= 0) {
        status = gar_batch_concat(performer->options.output, outputs, count,
                                  performer->options.memory, out, err);
    }
    for (int64_t i = 0; outputs != NULL && i < count; i++) {
        gar_batch_unref(outputs[i]);
    }
    gar_free(outputs);
    return status;
}

static enum gar_status run_task(void *context, int32_t worker, struct gar_error *err)
{
    (void)worker;
    struct task *task = (struct task *)context;
    struct gar_performer *performer = task->performer;
    struct gar_udf_work *work = task->work;
    GAR_CANCEL_CHECK(performer->options.query->cancel, err);
    const int64_t begin_ns = gar_clock_ns();
    struct gar_batch *whole = NULL;
    enum gar_status status = gar_performer_join(&performer->options, work, &whole, err);
    if (status >= 0) {
        status = call_pieces(performer, whole, work->first_row, &work->output, err);
    }
    gar_batch_unref(whole);
    work->took_ns = gar_clock_ns() - begin_ns;
    return status;
}

static void task_is_done(void *context, struct gar_query *query, enum gar_status status,
                         const struct gar_error *err)
{
    (void)query;
    (void)err;
    struct task *task = (struct task *)context;
    struct gar_udf_work *work = task->work;
    gar_free(task);
    work->done(work, status);
}

static enum gar_status submit_here(struct gar_performer *performer, int32_t op,
                                   struct gar_udf_work *work, struct gar_error *err)
{
    struct gar_query *query = performer->options.query;
    struct task *task = (struct task *)gar_calloc(1, (int64_t)sizeof *task);
    if (task == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *task);
    }
    *task = (struct task){performer, work};
    const struct gar_work what = {.op = op,
                                  .pool = gar_runtime_python(query->runtime),
                                  .run = run_task,
                                  .done = task_is_done,
                                  .context = task};
    const enum gar_status status = gar_query_call(query, &what, err);
    if (status < 0) {
        gar_free(task);
    }
    return status;
}

/* ---- begin and end ---- */

static enum gar_status run_close(void *context, int32_t worker, struct gar_error *err)
{
    (void)worker;
    (void)err;
    struct gar_performer *performer = (struct gar_performer *)context;
    performer->is_open = false;
    performer->function->close(performer->function->context, performer->state, true);
    return GAR_OK;
}

static void close_is_done(void *context, struct gar_query *query, enum gar_status status,
                          const struct gar_error *err)
{
    (void)query;
    (void)status;
    (void)err;
    ((struct gar_performer *)context)->is_closed = true;
}

static enum gar_status end_here(struct gar_performer *performer, int32_t op, struct gar_error *err)
{
    if (performer->is_closed || performer->function->close == NULL) {
        return GAR_OK;
    }
    if (!performer->is_closing) {
        struct gar_query *query = performer->options.query;
        const struct gar_work what = {.op = op,
                                      .pool = gar_runtime_python(query->runtime),
                                      .run = run_close,
                                      .done = close_is_done,
                                      .context = performer};
        GAR_TRY(gar_query_call(query, &what, err));
        performer->is_closing = true;
    }
    return GAR_PENDING;
}

static void free_here(struct gar_performer *performer)
{
    if (performer == NULL) {
        return;
    }
    if (performer->is_open) {
        performer->function->close(performer->function->context, performer->state, false);
    }
    if (performer->exported.release != NULL) {
        performer->exported.release(&performer->exported);
    }
    gar_schema_unref(performer->args);
    gar_free(performer);
}

static enum gar_status open_here(const struct gar_performer_options *options,
                                 struct gar_performer **out, struct gar_error *err)
{
    struct gar_performer *performer =
        (struct gar_performer *)gar_calloc(1, (int64_t)sizeof *performer);
    if (performer == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *performer);
    }
    performer->options = *options;
    performer->function = (struct gar_user_function *)options->udf->context;
    enum gar_status status =
        gar_runtime_start(options->query->runtime, GAR_RUNTIME_ALL | GAR_RUNTIME_PYTHON, err);
    if (status >= 0) {
        status = gar_schema_new(options->input->fields + options->kept,
                                options->input->count - options->kept, true, &performer->args, err);
    }
    if (status >= 0) {
        status =
            gar_schema_export(performer->args, GAR_TEXT_LARGE_OFFSETS, &performer->exported, err);
    }
    if (status >= 0 && performer->function->open != NULL) {
        status = performer->function->open(performer->function->context,
                                           gar_profile_id(options->query->profile),
                                           &performer->state, err);
        performer->is_open = status >= 0 && performer->function->close != NULL;
    }
    if (status < 0) {
        free_here(performer);
        return status;
    }
    *out = performer;
    return GAR_OK;
}

static int32_t width_here(const struct gar_performer *performer)
{
    const int32_t threads = gar_pool_workers(gar_runtime_python(performer->options.query->runtime));
    const int32_t most = performer->options.udf->max_calls;
    return most > 0 && most < threads ? most : threads;
}

const struct gar_udf_kind gar_udf_in_process = {.name = "in this process",
                                                .is_grouping = true,
                                                .open = open_here,
                                                .width = width_here,
                                                .submit = submit_here,
                                                .end = end_here,
                                                .free = free_here};
