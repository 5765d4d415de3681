/* SPDX-License-Identifier: Apache-2.0 */
/* Public frame functions: where rows come from, lazy transformations, and looking at a frame without running it. */
#include <gar/gar.h>
#include <string.h>

#include "arrow/abi.h"
#include "base/alloc.h"
#include "engine/session_priv.h"
#include "exec/exec.h"
#include "exec/performer.h"
#include "optimize/optimize.h"
#include "os/clock.h"
#include "sources/sources.h"
#include "stream/arrow_stream.h"

/* ---- handles ---------------------------------------------------------------------------------------------------- */

enum gar_status gar_frame_make(struct gar_session *session, struct gar_plan *plan,
                               struct gar_frame **out, struct gar_error *err)
{
    struct gar_frame *frame = gar_calloc(1, sizeof *frame);
    if (frame == NULL) {
        gar_plan_unref(plan);
        return gar_error_nomem(err, sizeof *frame);
    }
    frame->refs = 1;
    frame->session = gar_session_retain(session);
    frame->plan = plan;
    frame->rows = -1;
    *out = frame;
    return GAR_OK;
}

static enum gar_status scan_frame(struct gar_session *session, struct gar_scan_provider *provider,
                                  struct gar_frame **out, struct gar_error *err)
{
    struct gar_plan *plan = NULL;
    const enum gar_status status = gar_plan_scan(provider, &plan, err);
    gar_scan_provider_unref(provider);
    return status == GAR_OK ? gar_frame_make(session, plan, out, err) : status;
}

enum gar_status gar_frame_make_collected(struct gar_session *session, struct gar_schema *schema,
                                         struct gar_batch *const *batches, int64_t count,
                                         struct gar_frame **out, struct gar_error *err)
{
    struct gar_scan_provider *provider = NULL;
    struct gar_frame *frame = NULL;
    GAR_TRY(gar_memory_provider_new(schema, batches, count, &provider, err));
    GAR_TRY(scan_frame(session, provider, &frame, err));
    frame->batches = gar_calloc(gar_max_i64(count, 1), sizeof(struct gar_batch *));
    if (frame->batches == NULL) {
        gar_frame_release(frame);
        return gar_error_nomem(err, count * (int64_t)sizeof(struct gar_batch *));
    }
    frame->rows = 0;
    for (int64_t i = 0; i < count; i++) {
        frame->batches[i] = gar_batch_ref(batches[i]);
        frame->rows += batches[i]->rows;
    }
    frame->batch_count = count;
    frame->is_collected = true;
    *out = frame;
    return GAR_OK;
}

struct gar_frame *gar_frame_retain(struct gar_frame *frame)
{
    __atomic_fetch_add(&frame->refs, 1, __ATOMIC_RELAXED);
    return frame;
}

void gar_frame_release(struct gar_frame *frame)
{
    if (frame == NULL || __atomic_sub_fetch(&frame->refs, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    for (int64_t i = 0; i < frame->batch_count; i++) {
        gar_batch_unref(frame->batches[i]);
    }
    gar_free(frame->batches);
    gar_profile_unref(frame->profile);
    gar_plan_unref(frame->plan);
    gar_session_release(frame->session);
    gar_free(frame);
}

/* ---- sources ------------------------------------------------------------------------------------------------------ */

void gar_parquet_options_init(struct gar_parquet_options *options)
{
    *options = (struct gar_parquet_options){.struct_bytes = sizeof *options};
}

void gar_files_options_init(struct gar_files_options *options)
{
    *options = (struct gar_files_options){.struct_bytes = sizeof *options};
}

void gar_csv_options_init(struct gar_csv_options *options)
{
    *options = (struct gar_csv_options){
        .struct_bytes = sizeof *options,
        .has_header = true,
        .delimiter = ',',
        .quote = '"',
        .double_quote = true,
        .infer_schema = true,
    };
}

static enum gar_status check_paths(const char *const *paths, int64_t count, struct gar_error *err)
{
    if (count < 1) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "no path given; name at least one file, glob or directory");
    }
    for (int64_t i = 0; i < count; i++) {
        if (paths[i] == NULL || paths[i][0] == '\0') {
            return gar_error_set(err, GAR_ERR_VALUE, "path %lld is empty", (long long)i);
        }
    }
    return GAR_OK;
}

/* The caller's interrupt while a provider is made: asked on this thread, at most every GAR_WAIT_TICK_NS. */
struct planning {
    struct gar_interrupt interrupt;
    struct gar_cancel *cancel; /* owned; NULL: cannot be interrupted */
    int (*interrupted)(void *context);
    void *context;
    int64_t next_ns; /* when to ask again */
};

static bool ask_caller(void *context)
{
    struct planning *planning = context;
    const int64_t now_ns = gar_clock_ns();
    if (now_ns < planning->next_ns) {
        return false;
    }
    planning->next_ns = now_ns + GAR_WAIT_TICK_NS;
    return planning->interrupted(planning->context) != 0;
}

static enum gar_status planning_begin(int (*interrupted)(void *context), void *context,
                                      struct planning *out, struct gar_error *err)
{
    *out = (struct planning){.interrupted = interrupted, .context = context};
    if (interrupted == NULL) {
        return GAR_OK;
    }
    out->interrupt = (struct gar_interrupt){.check = ask_caller, .context = out};
    GAR_TRY(gar_cancel_new(GAR_CLOCK_NEVER, &out->cancel, err));
    out->cancel->interrupt = &out->interrupt;
    return GAR_OK;
}

enum gar_status gar_frame_read_parquet(struct gar_session *session, const char *const *paths,
                                       int64_t count, const struct gar_parquet_options *options,
                                       struct gar_frame **out, struct gar_error *err)
{
    struct gar_parquet_options full;
    gar_parquet_options_init(&full);
    gar_options_take(&full, sizeof full, options);
    struct gar_scan_provider *provider = NULL;
    struct planning planning;
    GAR_TRY(check_paths(paths, count, err));
    GAR_TRY(planning_begin(full.interrupted, full.context, &planning, err));
    const enum gar_status status =
        gar_parquet_provider_new(paths, count, &full, planning.cancel, &provider, err);
    gar_cancel_unref(planning.cancel);
    return status == GAR_OK ? scan_frame(session, provider, out, err) : status;
}

enum gar_status gar_frame_read_csv(struct gar_session *session, const char *const *paths,
                                   int64_t count, const struct gar_csv_options *options,
                                   struct gar_frame **out, struct gar_error *err)
{
    struct gar_csv_options full;
    gar_csv_options_init(&full);
    gar_options_take(&full, sizeof full, options);
    struct gar_scan_provider *provider = NULL;
    struct planning planning;
    GAR_TRY(check_paths(paths, count, err));
    GAR_TRY(planning_begin(full.interrupted, full.context, &planning, err));
    const enum gar_status status =
        gar_csv_provider_new(paths, count, &full, planning.cancel, &provider, err);
    gar_cancel_unref(planning.cancel);
    return status == GAR_OK ? scan_frame(session, provider, out, err) : status;
}

enum gar_status gar_frame_read_files(struct gar_session *session, const char *const *paths,
                                     int64_t count, const struct gar_files_options *options,
                                     struct gar_frame **out, struct gar_error *err)
{
    struct gar_files_options full;
    gar_files_options_init(&full);
    gar_options_take(&full, sizeof full, options);
    struct gar_scan_provider *provider = NULL;
    struct planning planning;
    GAR_TRY(check_paths(paths, count, err));
    GAR_TRY(planning_begin(full.interrupted, full.context, &planning, err));
    const enum gar_status status =
        gar_files_provider_new(paths, count, &full, planning.cancel, &provider, err);
    gar_cancel_unref(planning.cancel);
    return status == GAR_OK ? scan_frame(session, provider, out, err) : status;
}

/* Append an owned batch to a growing array; unrefs it on failure. */
static enum gar_status keep_batch(struct gar_batch ***batches, int64_t *count, int64_t *capacity,
                                  struct gar_batch *batch, struct gar_error *err)
{
    const enum gar_status status =
        gar_grow((void **)batches, capacity, *count + 1, sizeof(struct gar_batch *), err);
    if (status != GAR_OK) {
        gar_batch_unref(batch);
        return status;
    }
    (*batches)[(*count)++] = batch;
    return GAR_OK;
}

enum gar_status gar_frame_from_stream(struct gar_session *session, struct ArrowArrayStream *stream,
                                      struct gar_frame **out, struct gar_error *err)
{
    struct gar_arrow_reader *reader = NULL;
    struct gar_account *account = NULL;
    GAR_TRY(gar_arrow_reader_open(stream, &reader, err));
    enum gar_status status = gar_account_new(session->pool, "arrow import", 0, &account, err);
    struct gar_batch **batches = NULL;
    int64_t count = 0;
    int64_t capacity = 0;
    while (status == GAR_OK) {
        struct gar_batch *batch = NULL;
        status = gar_arrow_reader_next(reader, &account->memory, &batch, err);
        if (status == GAR_OK && batch->rows > 0) {
            status = keep_batch(&batches, &count, &capacity, batch, err);
        } else if (status == GAR_OK) {
            gar_batch_unref(batch);
        }
    }
    if (status == GAR_EOF) {
        status = gar_frame_make_collected(session, gar_arrow_reader_schema(reader), batches, count,
                                          out, err);
    }
    gar_batches_free(batches, count);
    gar_arrow_reader_free(reader);
    gar_account_unref(account);
    return status;
}

enum gar_status gar_frame_from_arrow(struct gar_session *session, const struct ArrowSchema *schema,
                                     struct ArrowArray *array, struct gar_frame **out,
                                     struct gar_error *err)
{
    struct gar_schema *imported = NULL;
    struct gar_account *account = NULL;
    struct gar_batch *batch = NULL;
    enum gar_status status = gar_schema_import(schema, &imported, err);
    if (status == GAR_OK) {
        status = gar_account_new(session->pool, "arrow import", 0, &account, err);
    }
    if (status == GAR_OK) {
        status = gar_batch_import(schema, array, imported, &account->memory, &batch, err);
    } else if (array->release != NULL) {
        array->release(array);
    }
    if (status == GAR_OK) {
        status =
            gar_frame_make_collected(session, imported, &batch, batch->rows > 0 ? 1 : 0, out, err);
    }
    gar_batch_unref(batch);
    gar_account_unref(account);
    gar_schema_unref(imported);
    return status;
}

enum gar_status gar_frame_range(struct gar_session *session, int64_t start, int64_t end,
                                int64_t step, struct gar_frame **out, struct gar_error *err)
{
    if (step == 0) {
        return gar_error_set(err, GAR_ERR_VALUE, "range step must not be 0");
    }
    struct gar_scan_provider *provider = NULL;
    GAR_TRY(gar_range_provider_new("id", start, end, step, &provider, err));
    return scan_frame(session, provider, out, err);
}

/* ---- transformations ------------------------------------------------------------------------------------------------ */

/* The tail of every transformation: a plan builder's result becomes a frame of the same session. */
static enum gar_status wrap(const struct gar_frame *from, enum gar_status status,
                            struct gar_plan *plan, struct gar_frame **out, struct gar_error *err)
{
    return status == GAR_OK ? gar_frame_make(from->session, plan, out, err) : status;
}

enum gar_status gar_frame_select(const struct gar_frame *frame, struct gar_expr *const *exprs,
                                 int64_t count, struct gar_frame **out, struct gar_error *err)
{
    struct gar_plan *plan = NULL;
    const enum gar_status status = gar_plan_project(frame->plan, exprs, count, &plan, err);
    return wrap(frame, status, plan, out, err);
}

enum gar_status gar_frame_with_columns(const struct gar_frame *frame, struct gar_expr *const *exprs,
                                       int64_t count, struct gar_frame **out, struct gar_error *err)
{
    struct gar_plan *plan = NULL;
    const enum gar_status status = gar_plan_with_columns(frame->plan, exprs, count, &plan, err);
    return wrap(frame, status, plan, out, err);
}

enum gar_status gar_frame_rename(const struct gar_frame *frame, const char *const *from,
                                 const char *const *to, int64_t count, struct gar_frame **out,
                                 struct gar_error *err)
{
    struct gar_plan *plan = NULL;
    const enum gar_status status = gar_plan_rename(frame->plan, from, to, count, &plan, err);
    return wrap(frame, status, plan, out, err);
}

enum gar_status gar_frame_exclude(const struct gar_frame *frame, const char *const *names,
                                  int64_t count, struct gar_frame **out, struct gar_error *err)
{
    struct gar_plan *plan = NULL;
    const enum gar_status status = gar_plan_exclude(frame->plan, names, count, &plan, err);
    return wrap(frame, status, plan, out, err);
}

enum gar_status gar_frame_where(const struct gar_frame *frame, struct gar_expr *predicate,
                                struct gar_frame **out, struct gar_error *err)
{
    struct gar_plan *plan = NULL;
    const enum gar_status status = gar_plan_filter(frame->plan, predicate, &plan, err);
    return wrap(frame, status, plan, out, err);
}

enum gar_status gar_frame_limit(const struct gar_frame *frame, int64_t offset, int64_t limit,
                                struct gar_frame **out, struct gar_error *err)
{
    if (offset < 0) {
        return gar_error_set(err, GAR_ERR_VALUE, "offset must not be negative, got %lld",
                             (long long)offset);
    }
    if (limit < -1) {
        return gar_error_set(err, GAR_ERR_VALUE, "limit must not be negative, got %lld",
                             (long long)limit);
    }
    struct gar_plan *plan = NULL;
    const enum gar_status status = gar_plan_limit(frame->plan, offset, limit, &plan, err);
    return wrap(frame, status, plan, out, err);
}

enum gar_status gar_frame_sort(const struct gar_frame *frame, struct gar_expr *const *keys,
                               const bool *descending, const bool *nulls_first, int64_t count,
                               struct gar_frame **out, struct gar_error *err)
{
    bool *flags = gar_calloc(2 * gar_max_i64(count, 1), sizeof(bool));
    if (flags == NULL) {
        return gar_error_nomem(err, 2 * count);
    }
    bool *nulls = flags + count;
    for (int64_t i = 0; i < count; i++) {
        flags[i] = descending != NULL && descending[i];
        nulls[i] = nulls_first != NULL ? nulls_first[i] : flags[i];
    }
    struct gar_plan *plan = NULL;
    const enum gar_status status =
        gar_plan_sort(frame->plan, keys, flags, nulls, count, -1, &plan, err);
    gar_free(flags);
    return wrap(frame, status, plan, out, err);
}

enum gar_status gar_frame_aggregate(const struct gar_frame *frame, struct gar_expr *const *keys,
                                    int64_t key_count, struct gar_expr *const *aggs,
                                    int64_t agg_count, struct gar_frame **out,
                                    struct gar_error *err)
{
    struct gar_plan *plan = NULL;
    const enum gar_status status =
        gar_plan_aggregate(frame->plan, keys, key_count, aggs, agg_count, &plan, err);
    return wrap(frame, status, plan, out, err);
}

enum gar_status gar_frame_distinct(const struct gar_frame *frame, struct gar_expr *const *keys,
                                   int64_t count, struct gar_frame **out, struct gar_error *err)
{
    struct gar_plan *plan = NULL;
    const enum gar_status status = gar_plan_distinct(frame->plan, keys, count, &plan, err);
    return wrap(frame, status, plan, out, err);
}

enum gar_status gar_frame_concat(struct gar_frame *const *frames, int64_t count,
                                 struct gar_frame **out, struct gar_error *err)
{
    if (count < 1) {
        return gar_error_set(err, GAR_ERR_VALUE, "concat needs at least one dataframe");
    }
    struct gar_plan **plans = gar_calloc(count, sizeof(struct gar_plan *));
    if (plans == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof(struct gar_plan *));
    }
    for (int64_t i = 0; i < count; i++) {
        plans[i] = frames[i]->plan;
    }
    struct gar_plan *plan = NULL;
    const enum gar_status status = gar_plan_concat(plans, count, &plan, err);
    gar_free(plans);
    return wrap(frames[0], status, plan, out, err);
}

void gar_join_options_init(struct gar_join_options *options)
{
    *options = (struct gar_join_options){.struct_bytes = sizeof *options, .how = "inner"};
}

static enum gar_status read_join_kind(const char *how, enum gar_join_kind *out, bool *out_cross,
                                      struct gar_error *err)
{
    static const struct {
        const char *name;
        enum gar_join_kind kind;
    } kinds[] = {{"inner", GAR_JOIN_INNER}, {"left", GAR_JOIN_LEFT},  {"right", GAR_JOIN_RIGHT},
                 {"outer", GAR_JOIN_OUTER}, {"full", GAR_JOIN_OUTER}, {"semi", GAR_JOIN_SEMI},
                 {"anti", GAR_JOIN_ANTI},   {"cross", GAR_JOIN_INNER}};
    for (int64_t i = 0; i < GAR_COUNT_OF(kinds); i++) {
        if (strcmp(kinds[i].name, how) == 0) {
            *out = kinds[i].kind;
            *out_cross = strcmp(how, "cross") == 0;
            return GAR_OK;
        }
    }
    char quoted[64];
    gar_error_quote(how, (int64_t)strlen(how), quoted, (int64_t)sizeof quoted);
    return gar_error_set(err, GAR_ERR_VALUE,
                         "join: how must be inner, left, right, outer, semi, anti or cross, got %s",
                         quoted);
}

static enum gar_status check_join(const struct gar_join_options *options, bool is_cross,
                                  int64_t count, struct gar_error *err)
{
    const char *strategy = options->strategy;
    if (strategy != NULL && strcmp(strategy, "hash") != 0 && strcmp(strategy, "broadcast") != 0) {
        char quoted[64];
        gar_error_quote(strategy, (int64_t)strlen(strategy), quoted, (int64_t)sizeof quoted);
        return gar_error_set(err, GAR_ERR_UNSUPPORTED,
                             "join: there is no strategy %s; joins go by hash (leave strategy out)",
                             quoted);
    }
    if (is_cross && count > 0) {
        return gar_error_set(
            err, GAR_ERR_VALUE,
            "join: a cross join takes no keys; leave on out, or use how=\"inner\"");
    }
    if (!is_cross && count == 0 && options->condition == NULL) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "join: no key is given; name one with on, or use how=\"cross\"");
    }
    return GAR_OK;
}

enum gar_status gar_frame_join(const struct gar_frame *left, const struct gar_frame *right,
                               struct gar_expr *const *left_keys,
                               struct gar_expr *const *right_keys, int64_t count,
                               const struct gar_join_options *options, struct gar_frame **out,
                               struct gar_error *err)
{
    struct gar_join_options full;
    gar_join_options_init(&full);
    gar_options_take(&full, sizeof full, options);
    struct gar_join_spec spec = {.left_keys = left_keys,
                                 .right_keys = right_keys,
                                 .key_count = count,
                                 .nulls_equal = full.nulls_equal,
                                 .condition = full.condition,
                                 .prefix = full.prefix,
                                 .suffix = full.suffix};
    bool is_cross = false;
    struct gar_plan *plan = NULL;
    GAR_TRY(read_join_kind(full.how != NULL ? full.how : "inner", &spec.kind, &is_cross, err));
    GAR_TRY(check_join(&full, is_cross, count, err));
    const enum gar_status status = gar_plan_join(left->plan, right->plan, &spec, &plan, err);
    return wrap(left, status, plan, out, err);
}

void gar_asof_options_init(struct gar_asof_options *options)
{
    *options = (struct gar_asof_options){.struct_bytes = sizeof *options, .direction = "backward"};
}

static enum gar_status read_direction(const char *direction, enum gar_asof_kind *out,
                                      struct gar_error *err)
{
    static const char *const names[] = {"", "backward", "forward", "nearest"};
    for (int32_t i = GAR_ASOF_BACKWARD; i <= GAR_ASOF_NEAREST; i++) {
        if (direction != NULL && strcmp(names[i], direction) == 0) {
            *out = (enum gar_asof_kind)i;
            return GAR_OK;
        }
    }
    char quoted[64] = "nothing";
    if (direction != NULL) {
        gar_error_quote(direction, (int64_t)strlen(direction), quoted, (int64_t)sizeof quoted);
    }
    return gar_error_set(err, GAR_ERR_VALUE,
                         "join_asof: strategy must be backward, forward or nearest, got %s",
                         quoted);
}

/* NOLINTNEXTLINE(readability-function-size): two sides with two kinds of keys each */
enum gar_status gar_frame_join_asof(const struct gar_frame *left, const struct gar_frame *right,
                                    struct gar_expr *left_on, struct gar_expr *right_on,
                                    struct gar_expr *const *left_by,
                                    struct gar_expr *const *right_by, int64_t count,
                                    const struct gar_asof_options *options, struct gar_frame **out,
                                    struct gar_error *err)
{
    struct gar_asof_options full;
    gar_asof_options_init(&full);
    gar_options_take(&full, sizeof full, options);
    struct gar_asof_spec spec = {.left_on = left_on,
                                 .right_on = right_on,
                                 .left_by = left_by,
                                 .right_by = right_by,
                                 .by_count = count,
                                 .excludes_equal = full.excludes_equal,
                                 .tolerance = full.tolerance,
                                 .prefix = full.prefix,
                                 .suffix = full.suffix};
    struct gar_plan *plan = NULL;
    GAR_TRY(read_direction(full.direction, &spec.kind, err));
    const enum gar_status status = gar_plan_join_asof(left->plan, right->plan, &spec, &plan, err);
    return wrap(left, status, plan, out, err);
}

/* ---- looking ---------------------------------------------------------------------------------------------------------- */

int64_t gar_frame_column_count(const struct gar_frame *frame)
{
    return frame->plan->schema->count;
}

const char *gar_frame_column_name(const struct gar_frame *frame, int64_t i)
{
    return i >= 0 && i < frame->plan->schema->count ? frame->plan->schema->fields[i].name : NULL;
}

enum gar_status gar_frame_column_type(const struct gar_frame *frame, int64_t i, char **out,
                                      struct gar_error *err)
{
    if (i < 0 || i >= frame->plan->schema->count) {
        return gar_error_set(err, GAR_ERR_VALUE, "column %lld of %lld", (long long)i,
                             (long long)frame->plan->schema->count);
    }
    struct gar_strbuf text = {0};
    gar_type_print(frame->plan->schema->fields[i].type, &text);
    return gar_engine_take_text(&text, out, err);
}

enum gar_status gar_frame_schema(const struct gar_frame *frame, struct ArrowSchema *out,
                                 struct gar_error *err)
{
    return gar_schema_export(frame->plan->schema, GAR_TEXT_LARGE_OFFSETS, out, err);
}

int64_t gar_frame_known_rows(const struct gar_frame *frame)
{
    if (frame->is_collected) {
        return frame->rows;
    }
    const struct gar_plan *plan = frame->plan;
    if (plan->kind == GAR_PLAN_SCAN && plan->filter == NULL && plan->limit < 0) {
        return plan->provider->vtable->row_count(plan->provider);
    }
    return -1;
}

enum gar_status gar_frame_explain(const struct gar_frame *frame, enum gar_plan_stage stage,
                                  char **out, struct gar_error *err)
{
    struct gar_strbuf text = {0};
    if (stage == GAR_STAGE_LOGICAL) {
        gar_plan_print(frame->plan, &text);
        return gar_engine_take_text(&text, out, err);
    }
    struct gar_plan *optimized = NULL;
    struct gar_strbuf fired = {0};
    struct gar_settings settings;
    gar_settings_init(&settings);
    gar_session_settings(frame->session, &settings);
    enum gar_status status =
        gar_optimize(frame->plan, settings.disabled_rules, &fired, &optimized, err);
    if (status == GAR_OK && stage == GAR_STAGE_OPTIMIZED) {
        gar_plan_print(optimized, &text);
        if (fired.size > 0) {
            gar_strbuf_printf(&text, "rules: %s\n", gar_strbuf_text(&fired));
        }
    } else if (status == GAR_OK && stage == GAR_STAGE_RESOURCES) {
        status = gar_exec_explain_resources(optimized, &text, err);
    } else if (status == GAR_OK) {
        status = gar_engine_explain_physical(frame, optimized, &text, err);
    }
    gar_plan_unref(optimized);
    gar_strbuf_destroy(&fired);
    if (status != GAR_OK) {
        gar_strbuf_destroy(&text);
        return status;
    }
    return gar_engine_take_text(&text, out, err);
}

void gar_table_options_init(struct gar_table_options *options)
{
    *options = (struct gar_table_options){.struct_bytes = sizeof *options,
                                          .max_rows = 8,
                                          .max_cell_width = 30,
                                          .max_width = 0,
                                          .total_rows = -1};
}

enum gar_status gar_frame_to_table(const struct gar_frame *frame, enum gar_text_format format,
                                   const struct gar_table_options *options, char **out,
                                   struct gar_error *err)
{
    struct gar_table_options full;
    gar_table_options_init(&full);
    full.total_rows = frame->rows;
    gar_options_take(&full, sizeof full, options);
    if (!frame->is_collected) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "the dataframe has no rows in memory; collect it first");
    }
    if (format != GAR_FORMAT_TABLE && format != GAR_FORMAT_HTML) {
        return gar_error_set(
            err, GAR_ERR_VALUE,
            "a table is text or HTML; CSV and JSON are written by gar_frame_write_text");
    }
    return gar_table_format(frame->plan->schema, frame->batches, frame->batch_count, format, &full,
                            out, err);
}
