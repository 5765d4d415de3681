/* SPDX-License-Identifier: Apache-2.0 */
/* User functions: an asynchronous operator between two pipelines that run at the same time. As a sink it takes batches of
 * kept and argument columns in order and cuts them into works of exact batches; a performer turns works into outputs;
 * as a source it gives these in order.
 *
 * Of a function of groups the first argument numbers them, in runs: a call has whole groups, those of about free_rows rows.
 *
 * Small calls go to the performer many at a time: a work has as many as took about WORK_NS the last time. At most
 * `open_max` works are open, results that wait included; then the sink is full. Memory: their rows and results. */
#include "base/alloc.h"
#include "exec/ops/ops.h"
#include "exec/performer.h"

enum {
    WORK_ROWS_MAX = 16384, /* of works of several calls */
    WORK_NS = 2000000,
    FREE_ROWS_FIRST = 256, /* of calls whose size is left to us: more while they are fast */
    FREE_ROWS_MAX = 1 << 20,
    FREE_NS = 20000000,
    OUTPUT_ROWS = 1024, /* outputs that are there go on together until they have so many rows */
};

struct work {
    struct gar_udf_work base;
    struct udf_stage *stage;
    int64_t capacity; /* of base.parts */
    bool is_done;
    struct work *next;
};

struct udf_stage {
    struct gar_sink sink;
    struct gar_source source;
    struct gar_query *query;   /* borrowed */
    struct gar_udf *udf;       /* owned reference */
    struct gar_schema *input;  /* owned reference */
    struct gar_schema *output; /* owned reference */
    struct gar_expr **args;    /* owned; for explain */
    int64_t arg_count;
    struct gar_performer *performer; /* owned; NULL: for explain only */
    /* role */
    struct gar_batch **pending; /* owned; not yet works */
    int64_t pending_count;
    int64_t pending_capacity;
    int64_t pending_rows;
    int64_t offset;     /* rows of the first that are taken */
    int64_t looked;     /* pending rows that were looked at for a group's end in vain */
    int64_t kept;       /* columns of the input before the arguments */
    int64_t rows;       /* of works so far */
    int64_t calls;      /* in the next work */
    int64_t free_rows;  /* most rows of a call whose size is left to us */
    struct work *first; /* owned; in order */
    struct work *last;
    int64_t running;
    int64_t open; /* works in the list */
    bool is_input_over;
    bool is_ended;
    bool is_stopped;
};

static struct udf_stage *stage_of(struct gar_source *source)
{
    return (struct udf_stage *)(void *)((char *)source - offsetof(struct udf_stage, source));
}

static void release_parts(struct gar_udf_work *work)
{
    for (int64_t i = 0; i < work->part_count; i++) {
        gar_batch_unref(work->parts[i]);
    }
    work->part_count = 0;
}

static void free_work(struct work *work)
{
    release_parts(&work->base);
    gar_free(work->base.parts);
    gar_batch_unref(work->base.output);
    gar_free(work);
}

/* ---- cutting ---- */

static int64_t group_at(const struct udf_stage *stage, const struct gar_batch *batch, int64_t row)
{
    const struct gar_column *values = NULL;
    const int64_t place = gar_column_locate(batch->columns[stage->kept], row, &values);
    return ((const int64_t *)values->values)[place];
}

/* Rows up to the first end of a group behind about free_rows of them; 0: it is not there yet. */
static int64_t next_groups(struct udf_stage *stage)
{
    const int64_t from = gar_max_i64(stage->looked, stage->free_rows);
    int64_t before = 0; /* pending rows of earlier batches */
    int64_t last = 0;   /* group of the row before */
    for (int64_t b = 0; b < stage->pending_count; b++) {
        const struct gar_batch *batch = stage->pending[b];
        const int64_t first = b == 0 ? stage->offset : 0;
        for (int64_t i = first + gar_max_i64(from - before, 0); i < batch->rows; i++) {
            const int64_t group = group_at(stage, batch, i);
            last = i > first ? group_at(stage, batch, i - 1) : last;
            if (group != last) {
                return before + i - first;
            }
        }
        before += batch->rows - first;
        last = group_at(stage, batch, batch->rows - 1);
    }
    stage->looked = before;
    return stage->is_input_over ? before : 0;
}

static int64_t next_rows(struct udf_stage *stage)
{
    if (stage->udf->is_grouped) {
        return next_groups(stage);
    }
    if (stage->udf->batch_rows == 0) {
        return stage->pending_count > 0
                   ? gar_min_i64(stage->pending[0]->rows - stage->offset, stage->free_rows)
                   : 0;
    }
    const int64_t whole = stage->pending_rows / stage->udf->batch_rows;
    if (whole == 0) {
        return stage->is_input_over ? stage->pending_rows : 0;
    }
    return gar_min_i64(whole, stage->calls) * stage->udf->batch_rows;
}

static enum gar_status add_part(struct work *work, struct gar_batch *part, struct gar_error *err)
{
    const enum gar_status status = gar_grow((void **)&work->base.parts, &work->capacity,
                                            work->base.part_count + 1, (int64_t)sizeof(part), err);
    if (status < 0) {
        gar_batch_unref(part);
        return status;
    }
    work->base.parts[work->base.part_count++] = part;
    return GAR_OK;
}

/* Move the first `rows` pending rows into the work. */
static enum gar_status fill_work(struct udf_stage *stage, struct work *work, int64_t rows,
                                 struct gar_error *err)
{
    int64_t used = 0;
    enum gar_status status = GAR_OK;
    while (rows > 0 && status >= 0) {
        struct gar_batch *batch = stage->pending[used];
        const int64_t take = gar_min_i64(rows, batch->rows - stage->offset);
        struct gar_batch *part = NULL;
        status = gar_batch_slice(batch, stage->offset, take, &part, err);
        if (status >= 0) {
            status = add_part(work, part, err);
        }
        if (status >= 0) {
            rows -= take;
            stage->offset += take;
            stage->pending_rows -= take;
            work->base.rows += take;
            if (stage->offset == batch->rows) {
                gar_batch_unref(batch);
                stage->offset = 0;
                used++;
            }
        }
    }
    stage->looked = 0;
    stage->pending_count -= used;
    for (int64_t i = 0; i < stage->pending_count && used > 0; i++) {
        stage->pending[i] = stage->pending[i + used];
    }
    return status;
}

static void work_is_done(struct gar_udf_work *base, enum gar_status status);

static enum gar_status begin_work(struct udf_stage *stage, int64_t rows, struct gar_error *err)
{
    struct work *work = (struct work *)gar_calloc(1, (int64_t)sizeof *work);
    if (work == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *work);
    }
    work->stage = stage;
    work->base.first_row = stage->rows;
    work->base.done = work_is_done;
    enum gar_status status = fill_work(stage, work, rows, err);
    if (status >= 0) {
        status = stage->udf->kind->submit(stage->performer, stage->sink.op, &work->base, err);
    }
    if (status < 0) {
        free_work(work);
        return status;
    }
    stage->rows += rows;
    stage->running++;
    stage->open++;
    if (stage->last != NULL) {
        stage->last->next = work;
    } else {
        stage->first = work;
    }
    stage->last = work;
    return GAR_OK;
}

/* As many works as may be under way. */
static enum gar_status begin_works(struct udf_stage *stage, struct gar_error *err)
{
    const int64_t width = stage->udf->kind->width(stage->performer);
    while (!stage->is_stopped && stage->running < width && stage->open < 2 * width + 1) {
        const int64_t rows = next_rows(stage);
        if (rows == 0) {
            return GAR_OK;
        }
        GAR_TRY(begin_work(stage, rows, err));
    }
    return GAR_OK;
}

/* Try again when a work is done; what fails fails the query. */
static void go_on(struct udf_stage *stage)
{
    struct gar_error err = GAR_ERROR_INIT;
    const enum gar_status status = begin_works(stage, &err);
    if (status < 0) {
        gar_query_fail(stage->query, status, &err);
    }
}

/* The next works shall neither be felt as calls nor hold rows back for long. */
static void adapt_size(struct udf_stage *stage, const struct gar_udf_work *work)
{
    const int64_t batch_rows = stage->udf->batch_rows;
    if (batch_rows == 0) {
        if (work->took_ns < FREE_NS && work->rows >= stage->free_rows) {
            stage->free_rows = gar_min_i64(2 * stage->free_rows, FREE_ROWS_MAX);
        } else if (work->took_ns > 4 * (int64_t)FREE_NS) {
            stage->free_rows = gar_max_i64(gar_min_i64(work->rows, stage->free_rows) / 2, 1);
        }
        return;
    }
    if (!stage->udf->kind->is_grouping) {
        return;
    }
    if (work->took_ns < WORK_NS) {
        stage->calls = gar_min_i64(2 * stage->calls, gar_max_i64(WORK_ROWS_MAX / batch_rows, 1));
    } else if (work->took_ns > 4 * (int64_t)WORK_NS) {
        stage->calls = gar_max_i64(stage->calls / 2, 1);
    }
}

static void work_is_done(struct gar_udf_work *base, enum gar_status status)
{
    struct work *work = (struct work *)base;
    struct udf_stage *stage = work->stage;
    work->is_done = true;
    stage->running--;
    release_parts(base);
    if (status < 0) {
        return; /* the query has failed, or fails */
    }
    adapt_size(stage, base);
    go_on(stage);
}

/* ---- as a sink ---- */

static enum gar_status udf_start(struct gar_sink *sink, struct gar_query *query, int32_t workers,
                                 struct gar_error *err)
{
    (void)query;
    (void)workers;
    struct udf_stage *stage = (struct udf_stage *)sink;
    return stage->udf->kind->start != NULL ? stage->udf->kind->start(stage->performer, err)
                                           : GAR_OK;
}

static enum gar_status udf_deliver(struct gar_sink *sink, struct gar_query *query,
                                   struct gar_batch *batch, struct gar_error *err)
{
    (void)query;
    struct udf_stage *stage = (struct udf_stage *)sink;
    if (stage->is_stopped) {
        return GAR_EOF;
    }
    if (next_rows(stage) > 0) { /* there is enough for a work, but no place for it */
        return GAR_PENDING;
    }
    GAR_TRY(gar_grow((void **)&stage->pending, &stage->pending_capacity, stage->pending_count + 1,
                     (int64_t)sizeof *stage->pending, err));
    stage->pending[stage->pending_count++] = batch; /* ours from here on */
    stage->pending_rows += batch->rows;
    go_on(stage);
    return GAR_OK;
}

static enum gar_status udf_stage_end(struct gar_sink *sink, struct gar_query *query, int32_t number,
                                     int64_t *out_items, struct gar_error *err)
{
    (void)query;
    (void)number;
    struct udf_stage *stage = (struct udf_stage *)sink;
    stage->is_input_over = true;
    *out_items = 0;
    return begin_works(stage, err);
}

static void udf_explain(const struct gar_sink *sink, struct gar_strbuf *out)
{
    const struct udf_stage *stage = (const struct udf_stage *)(const void *)sink;
    gar_strbuf_printf(out, "udf %s(", stage->udf->name);
    for (int64_t i = 0; i < stage->arg_count; i++) {
        gar_strbuf_append(out, i > 0 ? ", " : "");
        gar_expr_print(stage->args[i], out);
    }
    gar_strbuf_printf(out, ") %s", stage->udf->kind->name);
    if (stage->udf->batch_rows > 0) {
        gar_strbuf_printf(out, ", batches of %lld rows", (long long)stage->udf->batch_rows);
    }
    if (stage->udf->is_grouped) {
        gar_strbuf_append(out, ", whole groups");
    }
    if (stage->udf->max_calls > 0) {
        gar_strbuf_printf(out, ", %d at once", (int)stage->udf->max_calls);
    }
    if (stage->udf->detail != NULL) {
        gar_strbuf_printf(out, ", %s", stage->udf->detail);
    }
}

/* ---- as a source: a unit is the output of a work, or of several small ones ---- */

struct output {
    struct work *works; /* owned; in order */
    int64_t count;
    struct gar_batch *whole; /* owned */
};

static struct output *output_of(const struct gar_source_unit *unit)
{
    return (struct output *)(void *)unit->unit;
}

static void free_output(struct output *output)
{
    while (output->works != NULL) {
        struct work *work = output->works;
        output->works = work->next;
        free_work(work);
    }
    gar_batch_unref(output->whole);
    gar_free(output);
}

static int64_t output_rows(const struct work *work)
{
    return work->base.output != NULL ? work->base.output->rows : 0;
}

/* The first work that is done, or, in order, the first if it is done. Taken off the list; NULL: none. */
static struct work *take_done(struct udf_stage *stage)
{
    struct work *before = NULL;
    struct work *work = stage->first;
    while (work != NULL && !work->is_done && !stage->query->is_ordered) {
        before = work;
        work = work->next;
    }
    if (work == NULL || !work->is_done) {
        return NULL;
    }
    if (before != NULL) {
        before->next = work->next;
    } else {
        stage->first = work->next;
    }
    if (stage->last == work) {
        stage->last = before;
    }
    stage->open--;
    work->next = NULL;
    return work;
}

/* The works that are done as one unit, while they are small. */
static enum gar_status take_output(struct udf_stage *stage, struct gar_source_unit *out,
                                   struct gar_error *err)
{
    struct output *output = (struct output *)gar_calloc(1, (int64_t)sizeof *output);
    if (output == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *output);
    }
    struct work **tail = &output->works;
    int64_t rows = 0;
    while (rows < OUTPUT_ROWS) {
        struct work *work = take_done(stage);
        if (work == NULL) {
            break;
        }
        rows += output_rows(work);
        output->count++;
        *tail = work;
        tail = &work->next;
    }
    if (output->works == NULL) {
        gar_free(output);
        return GAR_PENDING;
    }
    *out = (struct gar_source_unit){.unit = (struct gar_unit *)(void *)output, .end = rows};
    return GAR_OK;
}

/* On a compute thread: the outputs as one batch. */
static enum gar_status join_output(const struct udf_stage *stage, struct output *output,
                                   struct gar_error *err)
{
    struct gar_batch **batches =
        (struct gar_batch **)gar_calloc(output->count, (int64_t)sizeof(struct gar_batch *));
    if (batches == NULL) {
        return gar_error_nomem(err, output->count * (int64_t)sizeof(struct gar_batch *));
    }
    int64_t count = 0;
    for (const struct work *work = output->works; work != NULL; work = work->next) {
        if (output_rows(work) > 0) {
            batches[count++] = work->base.output;
        }
    }
    enum gar_status status = GAR_OK;
    if (count == 1) {
        output->whole = gar_batch_ref(batches[0]);
    } else {
        status = gar_batch_concat(stage->output, batches, count, stage->sink.memory, &output->whole,
                                  err);
    }
    gar_free(batches);
    return status;
}

static enum gar_status udf_next(struct gar_source *source, struct gar_query *query,
                                struct gar_source_unit *out, struct gar_error *err)
{
    (void)query;
    struct udf_stage *stage = stage_of(source);
    enum gar_status status = take_output(stage, out, err);
    if (status == GAR_OK) {
        status = begin_works(stage, err);
        if (status < 0) {
            free_output(output_of(out));
        }
    }
    if (status != GAR_PENDING) {
        return status;
    }
    if (!stage->is_input_over || stage->open > 0 || stage->pending_rows > 0) {
        return GAR_PENDING;
    }
    status = stage->udf->kind->end(stage->performer, stage->sink.op, err);
    return status == GAR_OK ? GAR_EOF : status;
}

static enum gar_status udf_decode(struct gar_source *source, struct gar_source_unit *unit,
                                  int32_t worker, int64_t max_rows, struct gar_batch **out,
                                  struct gar_error *err)
{
    (void)worker;
    struct output *output = output_of(unit);
    const int64_t rows = gar_min_i64(unit->end - unit->next, max_rows);
    if (rows <= 0) {
        return GAR_EOF;
    }
    if (output->whole == NULL) {
        GAR_TRY(join_output(stage_of(source), output, err));
    }
    struct gar_batch *batch = output->whole;
    if (rows == batch->rows) {
        *out = gar_batch_ref(batch);
    } else {
        GAR_TRY(gar_batch_slice(batch, unit->next, rows, out, err));
    }
    unit->next += rows;
    return GAR_OK;
}

static void udf_unit_free(struct gar_source *source, struct gar_source_unit *unit)
{
    (void)source;
    if (unit->unit != NULL) {
        free_output(output_of(unit));
    }
    unit->unit = NULL;
}

static void udf_stop(struct gar_source *source)
{
    struct udf_stage *stage = stage_of(source);
    const bool is_first = !stage->is_stopped || stage->performer == NULL;
    stage->is_stopped = true;
    if (is_first && stage->performer != NULL && stage->udf->kind->stop != NULL) {
        stage->udf->kind->stop(stage->performer);
    }
}

static void source_explain(const struct gar_source *source, struct gar_strbuf *out)
{
    const struct udf_stage *stage =
        (const struct udf_stage *)(const void *)((const char *)source -
                                                 offsetof(struct udf_stage, source));
    gar_strbuf_printf(out, "results of udf %s, as they come", stage->udf->name);
}

/* ---- making ---- */

static void free_stage(void *object)
{
    struct udf_stage *stage = (struct udf_stage *)object;
    for (int64_t i = 0; i < stage->pending_count; i++) {
        gar_batch_unref(stage->pending[i]);
    }
    gar_free(stage->pending);
    while (stage->first != NULL) {
        struct work *work = stage->first;
        stage->first = work->next;
        free_work(work);
    }
    if (stage->performer != NULL) {
        stage->udf->kind->free(stage->performer);
    }
    for (int64_t i = 0; i < stage->arg_count; i++) {
        gar_expr_unref(stage->args[i]);
    }
    gar_free(stage->args);
    gar_schema_unref(stage->output);
    gar_schema_unref(stage->input);
    gar_udf_unref(stage->udf);
    gar_free(stage);
}

static enum gar_status fill_stage(struct udf_stage *stage, const struct gar_plan *plan,
                                  struct gar_schema *input, bool is_dry, struct gar_error *err)
{
    struct gar_query *query = stage->query;
    stage->args =
        (struct gar_expr **)gar_calloc(plan->expr_count, (int64_t)sizeof(struct gar_expr *));
    if (stage->args == NULL) {
        return gar_error_nomem(err, plan->expr_count * 8);
    }
    for (; stage->arg_count < plan->expr_count; stage->arg_count++) {
        stage->args[stage->arg_count] = gar_expr_ref(plan->exprs[stage->arg_count]);
    }
    GAR_TRY(gar_query_op_memory(query, &stage->sink.memory, err));
    if (is_dry) {
        return GAR_OK;
    }
    const struct gar_performer_options options = {.udf = stage->udf,
                                                  .query = query,
                                                  .input = input,
                                                  .kept = plan->inputs[0]->schema->count,
                                                  .output = stage->output,
                                                  .memory = stage->sink.memory};
    return stage->udf->kind->open(&options, &stage->performer, err);
}

enum gar_status gar_udf_stage_new(struct gar_query *query, const struct gar_plan *plan,
                                  struct gar_schema *input, bool is_dry, struct gar_sink **out_sink,
                                  struct gar_source **out_source, struct gar_error *err)
{
    static const struct gar_sink_vtable sink = {.name = "udf",
                                                .start = udf_start,
                                                .deliver = udf_deliver,
                                                .stage = udf_stage_end,
                                                .explain = udf_explain};
    static const struct gar_source_vtable source = {.name = "udf results",
                                                    .next = udf_next,
                                                    .decode = udf_decode,
                                                    .unit_free = udf_unit_free,
                                                    .stop = udf_stop,
                                                    .explain = source_explain};
    struct udf_stage *stage = (struct udf_stage *)gar_calloc(1, (int64_t)sizeof *stage);
    if (stage == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *stage);
    }
    stage->sink.vtable = &sink;
    stage->source.vtable = &source;
    stage->query = query;
    stage->udf = gar_udf_ref(plan->udf);
    stage->input = gar_schema_ref(input);
    stage->output = gar_schema_ref(plan->schema);
    stage->calls = 1;
    stage->free_rows = FREE_ROWS_FIRST;
    stage->kept = plan->inputs[0]->schema->count;
    GAR_TRY(gar_query_own(query, stage, free_stage, err));
    GAR_TRY(fill_stage(stage, plan, input, is_dry, err));
    *out_sink = &stage->sink;
    *out_source = &stage->source;
    return GAR_OK;
}
