/* SPDX-License-Identifier: Apache-2.0 */
/* Compute side of a pipeline: one task takes a unit from its source through the transforms to the
 * sink, batch by batch. It stops early when
 * the query is cancelled, the pipeline has enough rows, or its outputs wait for a consumer; in the last case the job
 * keeps its place in the unit and is submitted again when they are gone. */
#include <string.h>

#include "arrow/gather.h"
#include "base/alloc.h"
#include "exec/exec_priv.h"

enum {
    OUTPUT_BATCH_ROWS = 65536, /* rows of a batch that goes to a consumer */
    OUTPUTS_MAX = 8,           /* batches that a job makes before it waits */
    COMPACT_BYTES = 1 << 20,   /* text of smaller batches is copied from where it lies sparsely */
    BATCH_ROWS_MIN = 256,      /* where rows are adapted to a number of bytes */
    LIMIT_ROWS_MIN = 1024,     /* with a limit: rows to begin with */
    SMALL_ROWS = 1024,         /* smaller outputs are joined */
};

enum gar_status gar_pipeline_make_workers(struct gar_pipeline *pipeline, int32_t workers,
                                          struct gar_error *err)
{
    for (int64_t b = 0; b < pipeline->branch_count; b++) {
        struct gar_branch *branch = &pipeline->branches[b];
        branch->worker_states = (void **)gar_calloc(branch->transform_count * workers,
                                                    (int64_t)sizeof *branch->worker_states);
        if (branch->worker_states == NULL) {
            return gar_error_nomem(err, branch->transform_count * workers);
        }
    }
    return GAR_OK;
}

void gar_pipeline_drop_workers(struct gar_pipeline *pipeline, int32_t workers)
{
    for (int64_t b = 0; b < pipeline->branch_count; b++) {
        struct gar_branch *branch = &pipeline->branches[b];
        for (int64_t i = 0; branch->worker_states != NULL && i < workers * branch->transform_count;
             i++) {
            if (branch->worker_states[i] != NULL) {
                struct gar_transform *transform = branch->transforms[i % branch->transform_count];
                transform->vtable->worker_free(transform, branch->worker_states[i]);
                branch->worker_states[i] = NULL;
            }
        }
    }
}

void gar_pipeline_free_workers(struct gar_pipeline *pipeline, int32_t workers)
{
    gar_pipeline_drop_workers(pipeline, workers);
    for (int64_t b = 0; b < pipeline->branch_count; b++) {
        gar_free(pipeline->branches[b].worker_states);
        pipeline->branches[b].worker_states = NULL;
    }
}

/* ---- branches that come while it runs ---- */

enum gar_status gar_pipeline_new(struct gar_query *query, struct gar_branch *branches,
                                 int64_t count, struct gar_sink *sink, struct gar_pipeline **out,
                                 struct gar_error *err)
{
    struct gar_pipeline *pipeline =
        (struct gar_pipeline *)gar_arena_calloc(&query->arena, 1, (int64_t)sizeof *pipeline);
    if (pipeline == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *pipeline);
    }
    pipeline->query = query;
    pipeline->branches = branches;
    pipeline->branch_count = pipeline->branch_capacity = count;
    pipeline->sink = sink;
    pipeline->range = (struct gar_row_range){.skip = 0, .take = -1};
    *query->all_tail = pipeline;
    query->all_tail = &pipeline->all_next;
    *out = pipeline;
    return GAR_OK;
}

enum gar_status gar_pipeline_new_before(struct gar_pipeline *pipeline, struct gar_source *source,
                                        struct gar_sink *sink, struct gar_pipeline **out,
                                        struct gar_error *err)
{
    struct gar_branch *branch =
        (struct gar_branch *)gar_arena_calloc(&pipeline->query->arena, 1, (int64_t)sizeof *branch);
    if (branch == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *branch);
    }
    branch->source = source;
    GAR_TRY(gar_pipeline_new(pipeline->query, branch, 1, sink, out, err));
    (*out)->number = pipeline->number;
    return GAR_OK;
}

/* Jobs point at their branches: none of those up to `after` moves but into a new array, and the old one stays as it is. */
enum gar_status gar_pipeline_insert(struct gar_pipeline *pipeline, int64_t after,
                                    const struct gar_branch *branch, struct gar_error *err)
{
    struct gar_query *query = pipeline->query;
    const int64_t count = pipeline->branch_count;
    void **states =
        (void **)gar_calloc(branch->transform_count * query->workers, (int64_t)sizeof *states);
    if (states == NULL) {
        return gar_error_nomem(err, branch->transform_count * query->workers * 8);
    }
    if (count == pipeline->branch_capacity) {
        const int64_t capacity = gar_max_i64(2 * count, 4);
        struct gar_branch *more =
            (struct gar_branch *)gar_arena_calloc(&query->arena, capacity, (int64_t)sizeof *more);
        if (more == NULL) {
            gar_free(states);
            return gar_error_nomem(err, capacity * (int64_t)sizeof *more);
        }
        memcpy(more, pipeline->branches, (size_t)count * sizeof *more);
        pipeline->branches = more;
        pipeline->branch_capacity = capacity;
    }
    struct gar_branch *place = &pipeline->branches[after + 1];
    memmove(place + 1, place, (size_t)(count - after - 1) * sizeof *place);
    *place = *branch;
    place->waits = true;
    place->worker_states = states;
    pipeline->branch_count++;
    return GAR_OK;
}

static bool has_transform(const struct gar_pipeline *pipeline, int64_t first,
                          const struct gar_transform *transform)
{
    for (int64_t b = first; b < pipeline->branch_count; b++) {
        for (int64_t t = 0; t < pipeline->branches[b].transform_count; t++) {
            if (pipeline->branches[b].transforms[t] == transform) {
                return true;
            }
        }
    }
    return false;
}

void gar_pipeline_release(struct gar_pipeline *pipeline, int64_t end)
{
    for (; pipeline->released < end; pipeline->released++) {
        const struct gar_branch *branch = &pipeline->branches[pipeline->released];
        if (branch->source->vtable->release != NULL) {
            branch->source->vtable->release(branch->source);
        }
        for (int64_t t = 0; t < branch->transform_count; t++) {
            struct gar_transform *transform = branch->transforms[t];
            if (transform->vtable->release != NULL &&
                !has_transform(pipeline, pipeline->released + 1, transform)) {
                transform->vtable->release(transform);
            }
        }
    }
}

/* The worker's state of transform t, made at first use. */
static enum gar_status need_state(struct gar_job *job, int32_t worker, int64_t t, void **out,
                                  struct gar_error *err)
{
    struct gar_branch *branch = job->branch;
    struct gar_transform *transform = branch->transforms[t];
    void **state = &branch->worker_states[worker * branch->transform_count + t];
    if (*state == NULL && transform->vtable->worker_new != NULL) {
        GAR_TRY(transform->vtable->worker_new(transform, job->query, worker, state, err));
    }
    *out = *state;
    return GAR_OK;
}

/* Push a batch (moved) through the transforms from `first` on; *out NULL: no row is left. */
static enum gar_status transform_batch(struct gar_job *job, int32_t worker, int64_t first,
                                       struct gar_batch *batch, struct gar_batch **out,
                                       struct gar_error *err)
{
    struct gar_branch *branch = job->branch;
    for (int64_t t = first; t < branch->transform_count && batch != NULL; t++) {
        struct gar_transform *transform = branch->transforms[t];
        void *state = NULL;
        const enum gar_status made = need_state(job, worker, t, &state, err);
        if (made < 0) {
            gar_batch_unref(batch);
            return made;
        }
        struct gar_batch *next = NULL;
        const int64_t rows = batch->selected;
        const int32_t op = branch->op + 1 + (int32_t)t;
        gar_meter_enter(&job->meter, op);
        const enum gar_status status =
            transform->vtable->apply(transform, state, batch, &next, err);
        struct gar_op_counts *counts = gar_meter_leave(&job->meter, op);
        GAR_TRY(status);
        GAR_COUNT_ADD(counts->rows_in, rows);
        gar_count_batch(counts, next);
        if (transform->vtable->more != NULL && next != NULL) {
            job->more |= UINT64_C(1) << t;
        }
        batch = next;
    }
    *out = batch;
    return GAR_OK;
}

/* The next batch of the last transform that may have one. *out NULL: there was none. */
static enum gar_status more_of_last(struct gar_job *job, int32_t worker, struct gar_batch **out,
                                    struct gar_error *err)
{
    const int64_t t = 63 - __builtin_clzll(job->more);
    struct gar_transform *transform = job->branch->transforms[t];
    const int32_t op = job->branch->op + 1 + (int32_t)t;
    struct gar_batch *batch = NULL;
    void *state = NULL;
    *out = NULL;
    GAR_TRY(need_state(job, worker, t, &state, err));
    gar_meter_enter(&job->meter, op);
    const enum gar_status status = transform->vtable->more(transform, state, &batch, err);
    gar_count_batch(gar_meter_leave(&job->meter, op), batch);
    GAR_TRY(status);
    if (batch == NULL) {
        job->more &= ~(UINT64_C(1) << t);
        return GAR_OK;
    }
    return transform_batch(job, worker, t + 1, batch, out, err);
}

void gar_pipeline_drop_saved(struct gar_job *job)
{
    for (int64_t t = 0; job->saved != NULL && t < job->branch->transform_count; t++) {
        if (job->saved[t] != NULL) {
            struct gar_transform *transform = job->branch->transforms[t];
            transform->vtable->drop(transform, job->saved[t]);
        }
    }
    gar_free(job->saved);
    job->saved = NULL;
}

/* The job leaves its worker in the middle of batches. */
static enum gar_status save_more(struct gar_job *job, int32_t worker, struct gar_error *err)
{
    struct gar_branch *branch = job->branch;
    if (job->more == 0) {
        return GAR_OK;
    }
    job->saved = (void **)gar_calloc(branch->transform_count, (int64_t)sizeof *job->saved);
    if (job->saved == NULL) {
        return gar_error_nomem(err, branch->transform_count * 8);
    }
    for (uint64_t more = job->more; more != 0; more &= more - 1) {
        const int64_t t = __builtin_ctzll(more);
        struct gar_transform *transform = branch->transforms[t];
        void *state = NULL;
        GAR_TRY(need_state(job, worker, t, &state, err));
        GAR_TRY(transform->vtable->suspend(transform, state, &job->saved[t], err));
    }
    return GAR_OK;
}

/* It comes to a worker again. */
static enum gar_status restore_more(struct gar_job *job, int32_t worker, struct gar_error *err)
{
    for (uint64_t more = job->saved != NULL ? job->more : 0; more != 0; more &= more - 1) {
        const int64_t t = __builtin_ctzll(more);
        struct gar_transform *transform = job->branch->transforms[t];
        void *state = NULL;
        GAR_TRY(need_state(job, worker, t, &state, err));
        transform->vtable->resume(transform, state, job->saved[t]);
        job->saved[t] = NULL;
    }
    gar_free(job->saved);
    job->saved = NULL;
    return GAR_OK;
}

typedef enum gar_status (*column_change_fn)(const struct gar_column *column,
                                            struct gar_memory *memory, struct gar_column **out,
                                            struct gar_error *err);

/* Strings of a batch from which most rows were dropped hold the bytes of all: copy those in use. */
static enum gar_status compact_text(const struct gar_column *column, struct gar_memory *memory,
                                    struct gar_column **out, struct gar_error *err)
{
    return gar_column_compact(column, false, memory, out, err);
}

/* The batch (moved) with every column changed. */
static enum gar_status change_columns(struct gar_batch *batch, column_change_fn change,
                                      struct gar_memory *memory, struct gar_batch **out,
                                      struct gar_error *err)
{
    const int64_t count = batch->schema->count;
    struct gar_column **columns = (struct gar_column **)gar_calloc(count, (int64_t)sizeof *columns);
    enum gar_status status =
        columns != NULL ? GAR_OK : gar_error_nomem(err, count * (int64_t)sizeof *columns);
    for (int64_t c = 0; c < count && status >= 0; c++) {
        status = change(batch->columns[c], memory, &columns[c], err);
    }
    if (status >= 0) {
        status = gar_batch_new(batch->schema, columns, batch->rows, out, err);
    }
    for (int64_t c = 0; columns != NULL && c < count && status < 0; c++) {
        gar_column_unref(columns[c]);
    }
    gar_free(columns);
    gar_batch_unref(batch);
    return status;
}

/* Gather the batch (moved); flat where the result shall be. is_compact: no text may hold much more than its rows. */
static enum gar_status gather_batch(const struct gar_job *job, struct gar_batch *batch,
                                    bool is_compact, struct gar_batch **out, struct gar_error *err)
{
    struct gar_memory *memory = job->pipeline->sink->memory;
    struct gar_batch *gathered = batch;
    if (batch->selection != NULL) {
        const bool is_sparse = batch->selected * 2 < batch->rows;
        enum gar_status status = gar_batch_gather(batch, memory, &gathered, err);
        gar_batch_unref(batch);
        if (status >= 0 && is_sparse) {
            status = change_columns(gathered, compact_text, memory, &gathered, err);
        }
        GAR_TRY(status);
    }
    if (job->query->is_flat) {
        GAR_TRY(change_columns(gathered, gar_column_flatten, memory, &gathered, err));
    }
    if (is_compact) {
        return change_columns(gathered, compact_text, memory, out, err);
    }
    *out = gathered;
    return GAR_OK;
}

/* Bytes of the batch's own rows. A text counts by its length: the buffers that it lies in are those of many batches. */
static int64_t payload_bytes(const struct gar_batch *batch)
{
    int64_t bytes = 0;
    for (int64_t c = 0; c < batch->schema->count; c++) {
        const struct gar_column *column = batch->columns[c];
        bytes += batch->rows * gar_max_i64(gar_type_width(column->type), 1);
        if (gar_type_is_text(column->type) && column->encoding == GAR_FLAT) {
            bytes += gar_column_far_bytes(column);
        }
    }
    return bytes;
}

/* The next batch shall come nearer to the bytes aimed at. */
static void adapt_rows(struct gar_job *job, int64_t bytes)
{
    if (bytes * 2 <= job->batch_bytes) {
        job->batch_rows = gar_min_i64(job->batch_rows * 2, OUTPUT_BATCH_ROWS);
    } else if (bytes > 2 * job->batch_bytes) {
        job->batch_rows = gar_max_i64(job->batch_rows / 2, BATCH_ROWS_MIN);
    }
}

/* Join a small batch to the small one before it (both moved into the latter's place). */
static enum gar_status join_outputs(struct gar_job *job, struct gar_batch *batch,
                                    struct gar_error *err)
{
    struct gar_batch **last = &job->outputs[job->output_count - 1];
    struct gar_batch *pair[2] = {*last, batch};
    struct gar_batch *joined = NULL;
    const enum gar_status status =
        gar_batch_concat(batch->schema, pair, 2, job->pipeline->sink->memory, &joined, err);
    gar_batch_unref(batch);
    if (status >= 0) {
        gar_batch_unref(*last);
        *last = joined;
    }
    return status;
}

/* Keep a batch (moved) for the sink's deliver. */
static enum gar_status keep_output(struct gar_job *job, struct gar_batch *batch,
                                   struct gar_error *err)
{
    struct gar_batch *gathered = NULL;
    const bool is_paced = job->batch_bytes > 0;
    GAR_TRY(gather_batch(job, batch, is_paced && job->batch_bytes < COMPACT_BYTES, &gathered, err));
    const int64_t bytes = payload_bytes(gathered);
    if (is_paced) {
        adapt_rows(job, bytes);
    }
    const bool is_small =
        gathered->rows < SMALL_ROWS && !(is_paced && bytes > job->batch_bytes / 2);
    if (job->output_count > job->output_next && is_small) {
        const int64_t together = job->outputs[job->output_count - 1]->rows + gathered->rows;
        if (together <= job->query->morsel_rows && together <= SMALL_ROWS * 4) {
            job->output_bytes += bytes;
            return join_outputs(job, gathered, err);
        }
    }
    const enum gar_status status =
        gar_grow((void **)&job->outputs, &job->output_capacity, job->output_count + 1,
                 (int64_t)sizeof *job->outputs, err);
    if (status < 0) {
        gar_batch_unref(gathered);
        return status;
    }
    job->outputs[job->output_count++] = gathered;
    job->output_bytes += bytes;
    return GAR_OK;
}

static int64_t decode_rows(const struct gar_job *job)
{
    const struct gar_query *query = job->query;
    const bool is_kept = job->pipeline->sink->vtable->push == NULL;
    int64_t rows = gar_min_i64(query->morsel_rows, !is_kept               ? GAR_EXEC_BATCH_ROWS
                                                   : job->batch_bytes > 0 ? job->batch_rows
                                                                          : OUTPUT_BATCH_ROWS);
    if (job->rows_max >= 0) {
        rows = gar_min_i64(rows, gar_max_i64(job->rows_max, LIMIT_ROWS_MIN));
    }
    return rows;
}

/* A batch (moved) into the sink, or kept for it. */
static enum gar_status push_batch(struct gar_job *job, int32_t worker, struct gar_batch *batch,
                                  struct gar_error *err)
{
    struct gar_sink *sink = job->pipeline->sink;
    const int64_t row = job->rows;
    const int64_t rows = batch->selected;
    const int64_t bytes = gar_profile_batch_bytes(batch);
    job->rows += rows;
    gar_meter_enter(&job->meter, sink->op);
    const enum gar_status status = sink->vtable->push != NULL
                                       ? sink->vtable->push(sink, worker, job->seq, row, batch, err)
                                       : keep_output(job, batch, err);
    struct gar_op_counts *counts = gar_meter_leave(&job->meter, sink->op);
    GAR_COUNT_ADD(counts->rows_in, rows);
    GAR_COUNT_ADD(counts->batches, 1);
    GAR_COUNT_ADD(counts->bytes, bytes);
    return status;
}

/* One batch. GAR_EOF at the end of the unit. */
static enum gar_status step(struct gar_job *job, int32_t worker, struct gar_error *err)
{
    struct gar_source *source = job->branch->source;
    struct gar_batch *out = NULL;
    int64_t rows = 0;
    if (job->more != 0) {
        GAR_TRY(more_of_last(job, worker, &out, err));
    } else {
        struct gar_batch *batch = NULL;
        gar_meter_enter(&job->meter, source->op);
        const enum gar_status status =
            source->vtable->decode(source, &job->unit, worker, decode_rows(job), &batch, err);
        struct gar_op_counts *counts = gar_meter_leave(&job->meter, source->op);
        if (status != GAR_OK) {
            return status;
        }
        gar_count_batch(counts, batch);
        /* cppcheck-suppress nullPointer ; GAR_OK gives a batch */
        if (batch->selected == 0) {
            gar_batch_unref(batch);
            return GAR_OK;
        }
        rows = batch->selected;
        if (job->query->is_inline) {
            job->work_bytes += gar_profile_batch_bytes(batch);
        }
        GAR_TRY(transform_batch(job, worker, 0, batch, &out, err));
    }
    job->work_rows += gar_max_i64(rows, out != NULL ? out->selected : 0);
    if (out == NULL) {
        return GAR_OK;
    }
    if (out->selected == 0) {
        gar_batch_unref(out);
        return GAR_OK;
    }
    return push_batch(job, worker, out, err);
}

void gar_pipeline_run_morsel(struct gar_job *job, int32_t worker)
{
    struct gar_pipeline *pipeline = job->pipeline;
    const struct gar_query *query = job->query;
    job->status = restore_more(job, worker, &job->error);
    if (job->status < 0) {
        __atomic_store_n(&pipeline->stop, 1, __ATOMIC_RELAXED);
        return;
    }
    while (job->output_count < OUTPUTS_MAX && job->output_bytes < job->output_bytes_max) {
        const bool is_enough = job->rows_max >= 0 && job->rows >= job->rows_max;
        if (is_enough || __atomic_load_n(&pipeline->stop, __ATOMIC_RELAXED) != 0) {
            job->is_done = true;
            return;
        }
        job->status = gar_cancel_status(job->query->cancel, &job->error);
        if (job->status >= 0) {
            job->status = step(job, worker, &job->error);
        }
        if (job->status == GAR_EOF) {
            job->status = GAR_OK;
            job->is_done = true;
            return;
        }
        if (job->status < 0) {
            /* Its worker's state may be half made: the worker must not take another morsel of this pipeline, not even
             * before the role hears of the failure. */
            __atomic_store_n(&pipeline->stop, 1, __ATOMIC_RELAXED);
            return;
        }
        if (query->is_inline && gar_query_is_outgrown(query, job->work_rows, job->work_bytes)) {
            break;
        }
    }
    job->status = save_more(job, worker, &job->error);
    if (job->status < 0) {
        __atomic_store_n(&pipeline->stop, 1, __ATOMIC_RELAXED);
    }
}
