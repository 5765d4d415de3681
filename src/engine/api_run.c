/* SPDX-License-Identifier: Apache-2.0 */
/* Running frames: results as batches or Arrow streams, collecting, counting, writing. */
#include <gar/gar.h>
#include <string.h>

#include "arrow/abi.h"
#include "base/alloc.h"
#include "base/log.h"
#include "engine/progress_line_priv.h"
#include "engine/session_priv.h"
#include "exec/exec.h"
#include "formats/csv/csv_writer.h"
#include "formats/json/json_writer.h"
#include "optimize/optimize.h"
#include "os/clock.h"
#include "os/fork.h"
#include "runtime/trace.h"
#include "sources/sources.h"
#include "stream/arrow_stream.h"

/* Ticks of waiting between two flushes of a trace. */
#define TRACE_TICKS 25

struct gar_result {
    struct gar_session *session;    /* owned reference */
    struct gar_runtime *runtime;    /* entered until release */
    struct gar_account *account;    /* owned reference */
    struct gar_stream *stream;      /* owned */
    struct gar_cancel *cancel;      /* owned reference */
    struct gar_profile *profile;    /* owned reference */
    struct gar_schema *schema;      /* owned reference */
    struct gar_interrupt interrupt; /* check NULL: none */
    int (*interrupted)(void *context);
    void *context;
    int64_t batch_rows;        /* exact rows of a batch, 0: as they come */
    struct gar_batch *pending; /* rows read beyond the last batch, or NULL */
    struct gar_batch **kept;   /* owned; by gar_result_collect */
    int64_t kept_count;
    int64_t kept_capacity;
    struct gar_progress_line line;
    int64_t ticks;            /* of waiting */
    int32_t is_read;          /* atomic: the end, or a failure, was given out */
    struct gar_error failure; /* status < 0: the first, told by all later calls */
    uint64_t generation;      /* of the process that runs it */
};

void gar_run_options_init(struct gar_run_options *options)
{
    *options = (struct gar_run_options){.struct_bytes = sizeof *options};
}

/* In a child of the process that runs the query? Its threads and what they have locked are not here. */
static bool is_foreign(const struct gar_result *result)
{
    return result->generation != gar_fork_generation();
}

static enum gar_status refuse_foreign(struct gar_error *err)
{
    return gar_error_set(err, GAR_ERR_UNSUPPORTED,
                         "this result belongs to the parent process: a query that was started "
                         "before fork cannot go on in the child; run it again here");
}

/* A trace is flushed by who waits, too, so that long queries do not fill their threads' rings. */
static void flush_trace(void)
{
    struct gar_error err = GAR_ERROR_INIT;
    if (gar_trace_is_on() && gar_trace_flush(&err) < 0) {
        gar_log(GAR_LOG_ERROR, "the trace ends here: %s", err.message);
    }
}

/* On the waiting thread, every 20 ms. */
static bool ask_caller(void *context)
{
    struct gar_result *result = context;
    gar_progress_line_tick(&result->line);
    /* A query started inside a user function, on a thread that the query itself may need. */
    while (gar_pool_help(gar_runtime_python(result->runtime), result->cancel)) {
    }
    if (gar_trace_is_on() && ++result->ticks % TRACE_TICKS == 0) {
        flush_trace();
    }
    return result->interrupted != NULL && result->interrupted(result->context) != 0;
}

static const struct gar_interrupt *interrupt_of(const struct gar_result *result)
{
    return result->interrupted != NULL || result->line.is_wanted || gar_trace_is_on()
               ? &result->interrupt
               : NULL;
}

static enum gar_status take_run_options(const struct gar_run_options *options,
                                        struct gar_run_options *out, struct gar_error *err)
{
    gar_run_options_init(out);
    gar_options_take(out, sizeof *out, options);
    if (out->timeout_ms < 0 || out->batch_rows < 0) {
        return gar_error_set(err, GAR_ERR_VALUE, "%s must not be negative, got %lld",
                             out->timeout_ms < 0 ? "timeout" : "batch size",
                             (long long)(out->timeout_ms < 0 ? out->timeout_ms : out->batch_rows));
    }
    if (out->mode < GAR_RUN_ON_DEMAND || out->mode > GAR_RUN_TO_END) {
        return gar_error_set(err, GAR_ERR_VALUE, "no such way to run a query: %d", (int)out->mode);
    }
    return GAR_OK;
}

/* A time of gar_clock_ns; 0 (the past) for "do not wait". */
static int64_t deadline_of(int64_t timeout_ms)
{
    if (timeout_ms < 0 || timeout_ms > INT64_MAX / GAR_NS_PER_MS / 2) {
        return GAR_CLOCK_NEVER;
    }
    return timeout_ms == 0 ? 0 : gar_clock_ns() + timeout_ms * GAR_NS_PER_MS;
}

static enum gar_status start_query(struct gar_result *result, const struct gar_plan *plan,
                                   bool is_flat, bool has_order, const struct gar_run_options *run,
                                   struct gar_error *err)
{
    struct gar_settings settings;
    struct gar_plan *optimized = NULL;
    const int64_t deadline = run->timeout_ms > 0 ? deadline_of(run->timeout_ms) : GAR_CLOCK_NEVER;
    GAR_TRY(gar_session_begin(result->session, &settings, &result->runtime, err));
    GAR_TRY(gar_account_new(result->session->pool, "query", 0, &result->account, err));
    GAR_TRY(gar_cancel_new(deadline, &result->cancel, err));
    GAR_TRY(gar_profile_new(result->account, &result->profile, err));
    gar_progress_line_init(&result->line, result->profile, settings.progress, run->show_progress,
                           run->context);
    GAR_TRY(gar_optimize(plan, settings.disabled_rules, NULL, &optimized, err));
    struct gar_spill_space *spill = gar_session_spill_space(result->session);
    const struct gar_exec_options options = {
        .runtime = result->runtime,
        .spill = spill,
        .spill_always = settings.spill_always,
        .memory = &result->account->memory,
        .cancel = result->cancel,
        .morsel_rows = settings.morsel_rows,
        .maintain_order = settings.maintain_order || has_order,
        .allow_inline = settings.enable_inline && run->mode == GAR_RUN_ON_DEMAND,
        .is_greedy = !is_flat, /* a frame is made of all of it */
        .flat_result = is_flat,
        .stream_batches = run->mode == GAR_RUN_TO_END ? INT64_MAX : 0,
        .stream_bytes = run->mode == GAR_RUN_TO_END ? INT64_MAX : 0,
        .profile = result->profile,
        .watchdog_ns = settings.watchdog_ms * GAR_NS_PER_MS,
    };
    const enum gar_status status = gar_exec_start(optimized, &options, &result->stream, err);
    gar_spill_space_unref(spill);
    gar_plan_unref(optimized);
    return status;
}

/* Run a plan that may not be a frame's (counts, writes). is_flat: without dictionaries, for those who take Arrow arrays.
 * has_order: the rows have come in an order (of a sort, perhaps) that stays, whatever the setting. */
static enum gar_status run_plan(struct gar_session *session, const struct gar_plan *plan,
                                bool is_flat, bool has_order, const struct gar_run_options *options,
                                struct gar_result **out, struct gar_error *err)
{
    struct gar_run_options run;
    GAR_TRY(take_run_options(options, &run, err));
    struct gar_result *result = gar_calloc(1, sizeof *result);
    if (result == NULL) {
        return gar_error_nomem(err, sizeof *result);
    }
    result->generation = gar_fork_generation();
    result->session = gar_session_retain(session);
    result->schema = gar_schema_ref(plan->schema);
    result->interrupted = run.interrupted;
    result->context = run.context;
    result->interrupt = (struct gar_interrupt){.check = ask_caller, .context = result};
    result->batch_rows = run.batch_rows;
    const enum gar_status status = start_query(result, plan, is_flat, has_order, &run, err);
    if (status != GAR_OK) {
        gar_result_release(result);
        return status;
    }
    *out = result;
    return GAR_OK;
}

enum gar_status gar_frame_run(const struct gar_frame *frame, const struct gar_run_options *options,
                              struct gar_result **out, struct gar_error *err)
{
    return run_plan(frame->session, frame->plan, true, frame->is_collected, options, out, err);
}

void gar_result_release(struct gar_result *result)
{
    if (result == NULL || is_foreign(result)) {
        return;
    }
    gar_stream_free(result->stream);
    flush_trace();
    gar_batch_unref(result->pending);
    gar_batches_free(result->kept, result->kept_count);
    gar_profile_unref(result->profile);
    gar_cancel_unref(result->cancel);
    gar_account_unref(result->account);
    gar_schema_unref(result->schema);
    if (result->runtime != NULL) {
        gar_runtime_leave(result->runtime);
    }
    gar_session_release(result->session);
    gar_free(result);
}

void gar_result_cancel(struct gar_result *result)
{
    if (!is_foreign(result)) {
        (void)gar_cancel_request(result->cancel, GAR_CANCEL_USER);
        gar_stream_cancel(result->stream, GAR_CANCEL_USER);
    }
}

/* Join `more` (moved) to the pending rows. */
static enum gar_status append_pending(struct gar_result *result, struct gar_batch *more,
                                      struct gar_error *err)
{
    if (result->pending == NULL) {
        result->pending = more;
        return GAR_OK;
    }
    struct gar_batch *both[2] = {result->pending, more};
    struct gar_batch *joined = NULL;
    const enum gar_status status =
        gar_batch_concat(result->schema, both, 2, &result->account->memory, &joined, err);
    gar_batch_unref(more);
    if (status == GAR_OK) {
        gar_batch_unref(result->pending);
        result->pending = joined;
    }
    return status;
}

/* Split `batch_rows` rows (or all, at the end) off the pending ones. */
static enum gar_status split_pending(struct gar_result *result, struct gar_batch **out,
                                     struct gar_error *err)
{
    struct gar_batch *pending = result->pending;
    if (pending->rows <= result->batch_rows) {
        result->pending = NULL;
        *out = pending;
        return GAR_OK;
    }
    struct gar_batch *head = NULL;
    struct gar_batch *tail = NULL;
    GAR_TRY(gar_batch_slice(pending, 0, result->batch_rows, &head, err));
    const enum gar_status status = gar_batch_slice(pending, result->batch_rows,
                                                   pending->rows - result->batch_rows, &tail, err);
    if (status != GAR_OK) {
        gar_batch_unref(head);
        return status;
    }
    gar_batch_unref(pending);
    result->pending = tail;
    *out = head;
    return GAR_OK;
}

/* Rows may be lost by a failure: no later call may look complete. */
static enum gar_status note_failure(struct gar_result *result, enum gar_status status,
                                    const struct gar_error *why, struct gar_error *err)
{
    if (status < 0) {
        result->failure = *why;
        result->failure.status = status;
        if (err != NULL) {
            *err = result->failure;
        }
    }
    return status;
}

/* The next batch, cut or joined to exactly batch_rows where asked. */
static enum gar_status cut_batch(struct gar_result *result, int64_t deadline_ns,
                                 struct gar_batch **out, struct gar_error *err)
{
    const struct gar_interrupt *interrupt = interrupt_of(result);
    if (result->batch_rows == 0) {
        return gar_stream_next_until(result->stream, deadline_ns, interrupt, out, err);
    }
    while (result->pending == NULL || result->pending->rows < result->batch_rows) {
        struct gar_batch *batch = NULL;
        const enum gar_status status =
            gar_stream_next_until(result->stream, deadline_ns, interrupt, &batch, err);
        if (status == GAR_EOF) {
            return result->pending == NULL ? GAR_EOF : split_pending(result, out, err);
        }
        if (status != GAR_OK) {
            return status;
        }
        GAR_TRY(append_pending(result, batch, err));
    }
    return split_pending(result, out, err);
}

/* The same; GAR_PENDING at the deadline. */
static enum gar_status next_batch_until(struct gar_result *result, int64_t deadline_ns,
                                        struct gar_batch **out, struct gar_error *err)
{
    struct gar_error why = GAR_ERROR_INIT;
    if (is_foreign(result)) {
        return refuse_foreign(err);
    }
    if (result->failure.status < 0) {
        why = result->failure;
        return note_failure(result, why.status, &why, err);
    }
    const int64_t start_ns = gar_trace_is_on() ? gar_clock_ns() : 0;
    const enum gar_status status = cut_batch(result, deadline_ns, out, &why);
    if (start_ns != 0) {
        const struct gar_trace_args args = {.query = gar_profile_id(result->profile)};
        gar_trace_span("wait", "next rows", start_ns, &args);
    }
    if (status != GAR_OK && status != GAR_PENDING) {
        __atomic_store_n(&result->is_read, 1, __ATOMIC_RELEASE);
    }
    return note_failure(result, status, &why, err);
}

static enum gar_status next_batch(struct gar_result *result, struct gar_batch **out,
                                  struct gar_error *err)
{
    return next_batch_until(result, GAR_CLOCK_NEVER, out, err);
}

static enum gar_text_layout layout_of(enum gar_text_encoding encoding)
{
    return encoding == GAR_TEXT_AS_VIEW ? GAR_TEXT_VIEWS : GAR_TEXT_LARGE_OFFSETS;
}

static enum gar_status next_array(struct gar_result *result, enum gar_text_encoding encoding,
                                  int64_t deadline_ns, struct ArrowArray *out,
                                  struct gar_error *err)
{
    struct gar_batch *batch = NULL;
    gar_progress_line_begin(&result->line);
    const enum gar_status status = next_batch_until(result, deadline_ns, &batch, err);
    gar_progress_line_end(&result->line);
    if (status != GAR_OK) {
        return status;
    }
    struct gar_error why = GAR_ERROR_INIT;
    const enum gar_status exported =
        gar_batch_export(batch, layout_of(encoding), &result->account->memory, out, &why);
    gar_batch_unref(batch);
    return note_failure(result, exported, &why, err);
}

enum gar_status gar_result_next(struct gar_result *result, enum gar_text_encoding encoding,
                                struct ArrowArray *out, struct gar_error *err)
{
    return next_array(result, encoding, GAR_CLOCK_NEVER, out, err);
}

enum gar_status gar_result_next_within(struct gar_result *result, enum gar_text_encoding encoding,
                                       int64_t timeout_ms, struct ArrowArray *out,
                                       struct gar_error *err)
{
    return next_array(result, encoding, deadline_of(timeout_ms), out, err);
}

/* Move batches of the result to its kept ones: GAR_OK at the end. */
static enum gar_status keep_rest(struct gar_result *result, int64_t deadline_ns,
                                 struct gar_error *err)
{
    for (;;) {
        struct gar_batch *batch = NULL;
        GAR_TRY(gar_grow((void **)&result->kept, &result->kept_capacity, result->kept_count + 1,
                         sizeof(struct gar_batch *), err));
        const enum gar_status status = next_batch_until(result, deadline_ns, &batch, err);
        if (status != GAR_OK) {
            return status == GAR_EOF ? GAR_OK : status;
        }
        result->kept[result->kept_count++] = batch;
    }
}

enum gar_status gar_result_collect(struct gar_result *result, int64_t timeout_ms,
                                   struct gar_frame **out, struct gar_error *err)
{
    gar_progress_line_begin(&result->line);
    const enum gar_status status = keep_rest(result, deadline_of(timeout_ms), err);
    gar_progress_line_end(&result->line);
    if (status != GAR_OK) {
        return status;
    }
    struct gar_frame *frame = NULL;
    GAR_TRY(gar_frame_make_collected(result->session, result->schema, result->kept,
                                     result->kept_count, &frame, err));
    frame->profile = gar_profile_ref(result->profile);
    *out = frame;
    return GAR_OK;
}

enum gar_status gar_result_fd(struct gar_result *result, int *out_fd, struct gar_error *err)
{
    return is_foreign(result) ? refuse_foreign(err) : gar_stream_fd(result->stream, out_fd, err);
}

static enum gar_run_state state_of_end(enum gar_status status)
{
    switch (status) {
    case GAR_OK:
    case GAR_EOF: return GAR_RUN_DONE;
    case GAR_ERR_CANCELLED:
    case GAR_ERR_INTERRUPTED:
    case GAR_ERR_TIMEOUT: return GAR_RUN_CANCELLED;
    default: return GAR_RUN_FAILED;
    }
}

struct gar_profile *gar_result_profile(const struct gar_result *result)
{
    return gar_profile_ref(result->profile);
}

void gar_result_progress(const struct gar_result *result, struct gar_progress *out)
{
    struct gar_query_profile seen;
    const bool is_told = gar_profile_is_told(result->profile) ||
                         __atomic_load_n(&result->is_read, __ATOMIC_ACQUIRE) != 0;
    gar_profile_read_query(result->profile, &seen);
    const struct gar_progress full = {
        .struct_bytes = out->struct_bytes,
        .state = is_foreign(result)            ? GAR_RUN_FAILED
                 : is_told && seen.is_finished ? state_of_end(seen.status)
                                               : GAR_RUN_RUNNING,
        .elapsed_ns = seen.wall_ns,
        .rows_read = seen.rows_read,
        .rows = seen.rows,
        .bytes = seen.bytes,
        .memory_bytes = gar_account_used_bytes(result->account),
        .memory_peak_bytes = gar_account_peak_bytes(result->account),
    };
    memcpy(out, &full, out->struct_bytes < sizeof full ? out->struct_bytes : sizeof full);
}

enum gar_status gar_result_schema(const struct gar_result *result, enum gar_text_encoding encoding,
                                  struct ArrowSchema *out, struct gar_error *err)
{
    return gar_schema_export(result->schema, layout_of(encoding), out, err);
}

static enum gar_status pull_for_stream(void *context, const struct gar_interrupt *interrupt,
                                       struct gar_batch **out, struct gar_error *err)
{
    (void)interrupt; /* the result carries its own */
    struct gar_result *result = context;
    gar_progress_line_begin(&result->line);
    const enum gar_status status = next_batch(result, out, err);
    gar_progress_line_end(&result->line);
    return status;
}

static void cancel_for_stream(void *context, enum gar_cancel_reason reason)
{
    struct gar_result *result = context;
    if (!is_foreign(result)) {
        (void)gar_cancel_request(result->cancel, reason);
        gar_stream_cancel(result->stream, reason);
    }
}

static void release_for_stream(void *context)
{
    gar_result_release(context);
}

enum gar_status gar_result_to_stream(struct gar_result *result, enum gar_text_encoding encoding,
                                     struct ArrowArrayStream *out, struct gar_error *err)
{
    static const struct gar_stream_source source = {
        .next = pull_for_stream, .cancel = cancel_for_stream, .release = release_for_stream};
    struct gar_memory *memory = gar_memory_ref(&result->account->memory);
    const struct gar_arrow_export_options options = {.layout = layout_of(encoding),
                                                     .memory = memory};
    struct gar_stream *stream = NULL;
    enum gar_status status = gar_stream_new_inline(result->schema, &source, result, &stream, err);
    if (status != GAR_OK) {
        gar_result_release(result);
    } else {
        status = gar_stream_export(stream, &options, out, err);
        if (status != GAR_OK) {
            gar_stream_free(stream);
        }
    }
    gar_memory_unref(memory);
    return status;
}

/* Run a plan to its end and keep the rows as a frame. */
static enum gar_status collect_plan(struct gar_session *session, const struct gar_plan *plan,
                                    const struct gar_run_options *options, struct gar_frame **out,
                                    struct gar_error *err)
{
    struct gar_result *result = NULL;
    GAR_TRY(run_plan(session, plan, false, false, options, &result, err));
    const enum gar_status status = gar_result_collect(result, -1, out, err);
    gar_result_release(result);
    return status;
}

enum gar_status gar_frame_collect(const struct gar_frame *frame,
                                  const struct gar_run_options *options, struct gar_frame **out,
                                  struct gar_error *err)
{
    if (frame->is_collected) {
        *out = gar_frame_retain((struct gar_frame *)(uintptr_t)frame);
        return GAR_OK;
    }
    return collect_plan(frame->session, frame->plan, options, out, err);
}

/* count(1) over a plan. */
static enum gar_status count_plan(const struct gar_plan *plan, struct gar_plan **out,
                                  struct gar_error *err)
{
    struct gar_expr *one = NULL;
    struct gar_expr *count = NULL;
    GAR_TRY(gar_expr_int64(1, &one, err));
    enum gar_status status = gar_expr_new_call_by_name("count", &one, 1, &count, err);
    gar_expr_unref(one);
    if (status == GAR_OK) {
        status =
            gar_plan_aggregate((struct gar_plan *)(uintptr_t)plan, NULL, 0, &count, 1, out, err);
        gar_expr_unref(count);
    }
    return status;
}

enum gar_status gar_frame_count_rows(const struct gar_frame *frame,
                                     const struct gar_run_options *options, int64_t *out,
                                     struct gar_error *err)
{
    const int64_t known = gar_frame_known_rows(frame);
    if (known >= 0) {
        *out = known;
        return GAR_OK;
    }
    struct gar_plan *plan = NULL;
    struct gar_frame *counted = NULL;
    GAR_TRY(count_plan(frame->plan, &plan, err));
    enum gar_status status = collect_plan(frame->session, plan, options, &counted, err);
    gar_plan_unref(plan);
    if (status != GAR_OK) {
        return status;
    }
    struct gar_value value = {.is_valid = false};
    if (counted->rows != 1) {
        status = gar_error_set(err, GAR_ERR_INTERNAL, "counting gave %lld rows",
                               (long long)counted->rows);
    } else {
        status = gar_value_from_column(counted->batches[0]->columns[0], 0, &value, err);
    }
    if (status == GAR_OK) {
        *out = gar_type_is_unsigned(value.type) ? (int64_t)value.u64 : value.i64;
    }
    gar_value_destroy(&value);
    gar_frame_release(counted);
    return status;
}

enum gar_status gar_engine_explain_physical(const struct gar_frame *frame,
                                            const struct gar_plan *optimized,
                                            struct gar_strbuf *out, struct gar_error *err)
{
    struct gar_settings settings;
    struct gar_runtime *runtime = NULL;
    GAR_TRY(gar_session_begin(frame->session, &settings, &runtime, err));
    const struct gar_exec_options options = {
        .runtime = runtime,
        .memory = gar_memory_system(),
        .morsel_rows = settings.morsel_rows,
        .maintain_order = settings.maintain_order,
        .allow_inline = settings.enable_inline,
    };
    const enum gar_status status = gar_exec_explain(optimized, &options, out, err);
    gar_runtime_leave(runtime);
    return status;
}

/* ---- writing ------------------------------------------------------------------------------------------------------- */

void gar_write_options_init(struct gar_write_options *options)
{
    *options = (struct gar_write_options){
        .struct_bytes = sizeof *options, .delimiter = ',', .header = true};
}

typedef enum gar_status (*make_sink_fn)(const char *path, const struct gar_write_options *options,
                                        struct gar_sink_provider **out, struct gar_error *err);

static enum gar_status write_frame(const struct gar_frame *frame, const char *path,
                                   make_sink_fn make_sink, const struct gar_write_options *write,
                                   const struct gar_run_options *options, struct gar_frame **out,
                                   struct gar_error *err)
{
    struct gar_write_options full;
    gar_write_options_init(&full);
    gar_options_take(&full, sizeof full, write);
    if (path == NULL || path[0] == '\0') {
        return gar_error_set(err, GAR_ERR_VALUE, "no path given to write to");
    }
    struct gar_sink_provider *sink = NULL;
    struct gar_plan *plan = NULL;
    GAR_TRY(make_sink(path, &full, &sink, err));
    enum gar_status status = gar_plan_write(frame->plan, sink, &plan, err);
    gar_sink_provider_unref(sink);
    if (status == GAR_OK) {
        status = collect_plan(frame->session, plan, options, out, err);
        gar_plan_unref(plan);
    }
    return status;
}

enum gar_status gar_frame_write_parquet(const struct gar_frame *frame, const char *path,
                                        const struct gar_write_options *write,
                                        const struct gar_run_options *options,
                                        struct gar_frame **out, struct gar_error *err)
{
    return write_frame(frame, path, gar_parquet_sink_new, write, options, out, err);
}

enum gar_status gar_frame_write_csv(const struct gar_frame *frame, const char *path,
                                    const struct gar_write_options *write,
                                    const struct gar_run_options *options, struct gar_frame **out,
                                    struct gar_error *err)
{
    return write_frame(frame, path, gar_csv_sink_new, write, options, out, err);
}

/* ---- text --------------------------------------------------------------------------------------------------------- */

/* Rows turned into text at once: bounds the text in memory. */
#define TEXT_ROWS 8192

struct text_out {
    enum gar_text_format format;
    struct gar_csv_writer_options csv;
    int (*write)(const char *data, int64_t bytes, void *context);
    void *context;
    struct gar_strbuf text;
};

static enum gar_status flush_text(struct text_out *out, struct gar_error *err)
{
    const int failed =
        out->text.size == 0 ? 0 : out->write(out->text.data, out->text.size, out->context);
    gar_strbuf_clear(&out->text);
    return failed == 0
               ? GAR_OK
               : gar_error_set(err, GAR_ERR_CALLBACK, "writing the rows failed (%d)", failed);
}

static enum gar_status write_rows(struct text_out *out, const struct gar_batch *batch,
                                  struct gar_memory *memory, struct gar_error *err)
{
    for (int64_t at = 0; at < batch->rows; at += TEXT_ROWS) {
        struct gar_batch *part = NULL;
        GAR_TRY(gar_batch_slice(batch, at, gar_min_i64(TEXT_ROWS, batch->rows - at), &part, err));
        const enum gar_status status =
            out->format == GAR_FORMAT_CSV
                ? gar_csv_write_batch(part, &out->csv, memory, &out->text, err)
                : gar_json_write_batch(part, memory, &out->text, err);
        gar_batch_unref(part);
        GAR_TRY(status);
        GAR_TRY(flush_text(out, err));
    }
    return GAR_OK;
}

enum gar_status gar_frame_write_text(const struct gar_frame *frame, enum gar_text_format format,
                                     const struct gar_run_options *options,
                                     int (*write)(const char *data, int64_t bytes, void *context),
                                     void *context, struct gar_error *err)
{
    struct text_out out = {.format = format, .csv = {',', '"'}, .write = write, .context = context};
    struct gar_result *result = NULL;
    if (format != GAR_FORMAT_CSV && format != GAR_FORMAT_JSON) {
        return gar_error_set(
            err, GAR_ERR_VALUE,
            "rows are written as CSV or JSON; tables are made by gar_frame_to_table");
    }
    GAR_TRY(gar_frame_run(frame, options, &result, err));
    enum gar_status status = GAR_OK;
    if (format == GAR_FORMAT_CSV) {
        status = gar_csv_write_header(result->schema, &out.csv, &out.text, err);
        status = status == GAR_OK ? flush_text(&out, err) : status;
    }
    while (status == GAR_OK) {
        struct gar_batch *batch = NULL;
        gar_progress_line_begin(&result->line);
        status = next_batch(result, &batch, err);
        gar_progress_line_end(&result->line);
        if (status == GAR_OK) {
            status = write_rows(&out, batch, &result->account->memory, err);
            gar_batch_unref(batch);
        }
    }
    gar_strbuf_destroy(&out.text);
    gar_result_release(result);
    return status == GAR_EOF ? GAR_OK : status;
}
