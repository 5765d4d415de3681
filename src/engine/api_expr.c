/* SPDX-License-Identifier: Apache-2.0 */
/* Public expression functions: thin wrappers over expr/ and sql/. */
#include <gar/gar.h>
#include <string.h>

#include "actors/failure.h"
#include "arrow/abi.h"
#include "arrow/gather.h"
#include "base/alloc.h"
#include "base/utf8.h"
#include "engine/engine_priv.h"
#include "exec/performer.h"
#include "expr/program.h"
#include "expr/window.h"
#include "sql/expression.h"

enum gar_status gar_engine_take_text(struct gar_strbuf *text, char **out, struct gar_error *err)
{
    if (text->data == NULL && !text->failed) {
        gar_strbuf_append(text, "");
    }
    char *taken = gar_strbuf_take(text);
    if (taken == NULL) {
        return gar_error_nomem(err, text->size);
    }
    *out = taken;
    return GAR_OK;
}

static enum gar_status parse_type(const char *text, struct gar_type *out, struct gar_error *err)
{
    if (text == NULL) {
        return gar_error_set(err, GAR_ERR_VALUE, "no type given");
    }
    return gar_type_parse(text, (int64_t)strlen(text), out, err);
}

void gar_text_free(char *text)
{
    gar_free(text);
}

enum gar_status gar_type_canonical(const char *type, char **out, struct gar_error *err)
{
    struct gar_type parsed;
    GAR_TRY(parse_type(type, &parsed, err));
    struct gar_strbuf text = {0};
    gar_type_print(parsed, &text);
    return gar_engine_take_text(&text, out, err);
}

enum gar_status gar_type_to_arrow(const char *type, struct ArrowSchema *out, struct gar_error *err)
{
    struct gar_type parsed;
    GAR_TRY(parse_type(type, &parsed, err));
    return gar_type_export(parsed, "", true, GAR_TEXT_LARGE_OFFSETS, out, err);
}

enum gar_status gar_type_from_arrow(const struct ArrowSchema *schema, char **out,
                                    struct gar_error *err)
{
    struct gar_type parsed;
    GAR_TRY(gar_type_import(schema, &parsed, err));
    struct gar_strbuf text = {0};
    gar_type_print(parsed, &text);
    return gar_engine_take_text(&text, out, err);
}

enum gar_status gar_expr_column(const char *name, struct gar_expr **out, struct gar_error *err)
{
    return gar_expr_new_column(name, out, err);
}

enum gar_status gar_expr_null(struct gar_expr **out, struct gar_error *err)
{
    const struct gar_value value = {.is_valid = false};
    return gar_expr_new_literal(&value, out, err);
}

enum gar_status gar_expr_bool(bool value, struct gar_expr **out, struct gar_error *err)
{
    const struct gar_value v = {.type = gar_type_of(GAR_BOOL), .is_valid = true, .boolean = value};
    return gar_expr_new_literal(&v, out, err);
}

enum gar_status gar_expr_int64(int64_t value, struct gar_expr **out, struct gar_error *err)
{
    const struct gar_value v = {.type = gar_type_of(GAR_INT64), .is_valid = true, .i64 = value};
    return gar_expr_new_literal(&v, out, err);
}

enum gar_status gar_expr_uint64(uint64_t value, struct gar_expr **out, struct gar_error *err)
{
    const struct gar_value v = {.type = gar_type_of(GAR_UINT64), .is_valid = true, .u64 = value};
    return gar_expr_new_literal(&v, out, err);
}

enum gar_status gar_expr_float64(double value, struct gar_expr **out, struct gar_error *err)
{
    const struct gar_value v = {.type = gar_type_of(GAR_FLOAT64), .is_valid = true, .f64 = value};
    return gar_expr_new_literal(&v, out, err);
}

static enum gar_status literal_text(enum gar_type_id id, const char *data, int64_t bytes,
                                    struct gar_expr **out, struct gar_error *err)
{
    struct gar_value value;
    GAR_TRY(gar_value_from_text(gar_type_of(id), data, bytes, &value, err));
    const enum gar_status status = gar_expr_new_literal(&value, out, err);
    gar_value_destroy(&value);
    return status;
}

enum gar_status gar_expr_string(const char *data, int64_t bytes, struct gar_expr **out,
                                struct gar_error *err)
{
    const int64_t bad = gar_utf8_first_bad(data, bytes);
    if (bad >= 0) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "text is not valid UTF-8 at byte %lld; pass bytes instead",
                             (long long)bad);
    }
    return literal_text(GAR_STRING, data, bytes, out, err);
}

enum gar_status gar_expr_binary(const void *data, int64_t bytes, struct gar_expr **out,
                                struct gar_error *err)
{
    return literal_text(GAR_BINARY, data, bytes, out, err);
}

enum gar_status gar_expr_typed(const char *type, const char *data, int64_t bytes,
                               struct gar_expr **out, struct gar_error *err)
{
    struct gar_type parsed;
    GAR_TRY(parse_type(type, &parsed, err));
    struct gar_expr *text = NULL;
    struct gar_expr *cast = NULL;
    struct gar_value value = {.is_valid = false};
    enum gar_status status = GAR_OK;
    if (parsed.id ==
        GAR_DURATION) { /* a count of its unit; expressions have no cast from text to it */
        status = gar_value_from_text(parsed, data, bytes, &value, err);
    } else {
        GAR_TRY(gar_expr_string(data, bytes, &text, err));
        status = gar_expr_new_cast(text, parsed, false, &cast, err);
        gar_expr_unref(text);
    }
    if (status == GAR_OK && cast != NULL) {
        status = gar_expr_fold(cast, &value, err);
        gar_expr_unref(cast);
    }
    if (status == GAR_OK) {
        status = gar_expr_new_literal(&value, out, err);
        gar_value_destroy(&value);
    }
    return status;
}

enum gar_status gar_expr_call(const char *function, struct gar_expr *const *args, int64_t count,
                              struct gar_expr **out, struct gar_error *err)
{
    return gar_expr_new_call_by_name(function, args, count, out, err);
}

enum gar_status gar_expr_cast(struct gar_expr *arg, const char *type, bool is_try,
                              struct gar_expr **out, struct gar_error *err)
{
    struct gar_type parsed;
    GAR_TRY(parse_type(type, &parsed, err));
    return gar_expr_new_cast(arg, parsed, is_try, out, err);
}

enum gar_status gar_expr_alias(struct gar_expr *arg, const char *name, struct gar_expr **out,
                               struct gar_error *err)
{
    return gar_expr_new_alias(arg, name, out, err);
}

/* The public description as the tree wants it. */
static enum gar_status read_window(const struct gar_window_description *d, struct gar_window *out,
                                   struct gar_error *err)
{
    if (d->partition_count < 0 || d->partition_count > 4096 || d->order_count < 0 ||
        d->order_count > 64 || d->frame < 0 || d->frame > GAR_FRAME_GROUPS || d->exclude < 0 ||
        d->exclude > GAR_EXCLUDE_TIES || d->start < 0 || d->start > GAR_BOUND_UNBOUNDED_FOLLOWING ||
        d->end < 0 || d->end > GAR_BOUND_UNBOUNDED_FOLLOWING) {
        return gar_error_set(
            err, GAR_ERR_VALUE,
            "a window takes up to 4096 expressions to partition by, 64 to order by, "
            "and a frame and bounds of the kinds there are");
    }
    const bool has_values = d->frame == GAR_FRAME_RANGE;
    if ((d->start_value != NULL) != (has_values && d->start == GAR_BOUND_OFFSET) ||
        (d->end_value != NULL) != (has_values && d->end == GAR_BOUND_OFFSET)) {
        return gar_error_set(
            err, GAR_ERR_VALUE,
            "the bounds of a range that are offsets have values, others have none");
    }
    *out = (struct gar_window){.partition_count = (int32_t)d->partition_count,
                               .order_count = (int32_t)d->order_count,
                               .frame = (enum gar_window_frame)d->frame,
                               .start = (enum gar_bound_kind)d->start,
                               .end = (enum gar_bound_kind)d->end,
                               .exclusion = (enum gar_window_exclusion)d->exclude,
                               .start_rows = d->start_rows,
                               .end_rows = d->end_rows,
                               .min_periods = d->min_periods};
    for (int64_t i = 0; i < d->order_count; i++) {
        const bool descending = d->descending != NULL && d->descending[i];
        const bool nulls_first = d->nulls_first != NULL ? d->nulls_first[i] : descending;
        out->descending |= (uint64_t)descending << i;
        out->nulls_first |= (uint64_t)nulls_first << i;
    }
    return GAR_OK;
}

enum gar_status gar_expr_windowed(struct gar_expr *arg, const struct gar_window_description *window,
                                  struct gar_expr **out, struct gar_error *err)
{
    struct gar_window_description d = {0};
    struct gar_window shape;
    memcpy(&d, window, window->struct_bytes < sizeof d ? window->struct_bytes : sizeof d);
    GAR_TRY(read_window(&d, &shape, err));
    return gar_expr_over(arg, &shape, d.partition_by, d.order_by, d.start_value, d.end_value, out,
                         err);
}

enum gar_status gar_expr_is_in(struct gar_expr *arg, const struct ArrowSchema *schema,
                               struct ArrowArray *array, struct gar_expr **out,
                               struct gar_error *err)
{
    struct gar_column *values = NULL;
    struct gar_column *flat = NULL;
    GAR_TRY(gar_column_import(schema, array, gar_memory_system(), &values, err));
    enum gar_status status = gar_column_flatten(values, gar_memory_system(), &flat, err);
    gar_column_unref(values);
    if (status == GAR_OK) {
        status = gar_expr_new_in_list(arg, flat, out, err);
        gar_column_unref(flat);
    }
    return status;
}

static void free_function(void *context)
{
    struct gar_user_function *function = context;
    if (function->release != NULL) {
        function->release(function->context);
    }
    gar_free(function);
}

enum gar_status gar_expr_user_function(const struct gar_user_function *function,
                                       struct gar_expr *const *args, int64_t count,
                                       struct gar_expr **out, struct gar_error *err)
{
    struct gar_user_function *copy = gar_calloc(1, sizeof *copy);
    if (copy == NULL) {
        if (function->release != NULL) {
            function->release(function->context);
        }
        return gar_error_nomem(err, sizeof *copy);
    }
    gar_options_take(copy, sizeof *copy, function);
    struct gar_udf_options options = {.name = copy->name,
                                      .batch_rows = copy->batch_rows,
                                      .max_calls = copy->max_calls,
                                      .is_expanding = copy->is_expanding,
                                      .is_grouped = copy->is_grouped,
                                      .detail = copy->detail,
                                      .kind = &gar_udf_in_process,
                                      .context = copy,
                                      .release = free_function};
    enum gar_status status = copy->call == NULL
                                 ? gar_error_set(err, GAR_ERR_VALUE, "no function to call given")
                                 : parse_type(copy->type, &options.type, err);
    struct gar_udf *udf = NULL;
    if (status == GAR_OK) {
        status = gar_udf_new(&options, &udf, err);
    }
    if (status != GAR_OK) {
        free_function(copy);
        return status;
    }
    copy->name = copy->type = copy->detail = NULL; /* the caller's */
    status = gar_expr_new_udf(udf, args, count, out, err);
    gar_udf_unref(udf);
    return status;
}

enum gar_status gar_expr_actor_function(const struct gar_actor_function *function,
                                        struct gar_expr *const *args, int64_t count,
                                        struct gar_expr **out, struct gar_error *err)
{
    struct gar_actor_function full = {.struct_bytes = sizeof full};
    gar_resource_request_init(&full.request);
    gar_options_take(&full, sizeof full, function);
    struct gar_udf_options options = {.name = full.name,
                                      .batch_rows = full.batch_rows,
                                      .detail = full.detail,
                                      .kind = &gar_udf_in_actors,
                                      .release = gar_actor_spec_free};
    struct gar_actor_spec *spec = NULL;
    struct gar_udf *udf = NULL;
    GAR_TRY(parse_type(full.type, &options.type, err));
    GAR_TRY(gar_actor_spec_new(&full, &spec, err));
    options.context = spec;
    enum gar_status status = gar_udf_new(&options, &udf, err);
    if (status != GAR_OK) {
        gar_actor_spec_free(spec);
        return status;
    }
    status = gar_expr_new_udf(udf, args, count, out, err);
    gar_udf_unref(udf);
    return status;
}

char *gar_failure_traceback(int64_t position)
{
    char text[GAR_ACTOR_TRACEBACK_BYTES];
    return gar_actor_failure_take(position, text) ? gar_strdup(text) : NULL;
}

enum gar_status gar_expr_parse(const char *sql, int64_t bytes, const struct gar_frame *frame,
                               struct gar_expr **out, struct gar_error *err)
{
    return gar_sql_parse_expression(sql, bytes, frame == NULL ? NULL : frame->plan->schema, out,
                                    err);
}

enum gar_status gar_expr_parse_list(const char *sql, int64_t bytes, const struct gar_frame *frame,
                                    struct gar_expr ***out, int64_t *out_count,
                                    struct gar_error *err)
{
    return gar_sql_parse_list(sql, bytes, frame == NULL ? NULL : frame->plan->schema, out,
                              out_count, err);
}

void gar_expr_list_free(struct gar_expr **list, int64_t count)
{
    for (int64_t i = 0; list != NULL && i < count; i++) {
        gar_expr_unref(list[i]);
    }
    gar_free(list);
}

struct gar_expr *gar_expr_retain(struct gar_expr *expr)
{
    return gar_expr_ref(expr);
}

void gar_expr_release(struct gar_expr *expr)
{
    gar_expr_unref(expr);
}

const char *gar_expr_output_name(const struct gar_expr *expr)
{
    return gar_expr_name(expr);
}

enum gar_status gar_expr_to_text(const struct gar_expr *expr, char **out, struct gar_error *err)
{
    struct gar_strbuf text = {0};
    gar_expr_print(expr, &text);
    return gar_engine_take_text(&text, out, err);
}

enum gar_status gar_expr_type_text(const struct gar_expr *expr, const struct gar_frame *frame,
                                   char **out, struct gar_error *err)
{
    struct gar_type type;
    GAR_TRY(gar_expr_type(expr, frame->plan->schema, true, &type, err));
    struct gar_strbuf text = {0};
    gar_type_print(type, &text);
    return gar_engine_take_text(&text, out, err);
}

int64_t gar_registry_count(void)
{
    return gar_function_count();
}

bool gar_registry_get(int64_t i, struct gar_function_description *out)
{
    if (i < 0 || i >= gar_function_count()) {
        return false;
    }
    const struct gar_function_info *info = gar_function_info(gar_function_at(i));
    const struct gar_function_description row = {
        .struct_bytes = sizeof row,
        .name = info->name,
        .sql = info->sql,
        .signature = info->signature,
        .summary = info->summary,
        .group = info->group,
        .args_min = info->args_min,
        .args_max = info->args_max,
        .is_aggregate = info->kind == GAR_FUNCTION_AGGREGATE,
    };
    const size_t bytes = out->struct_bytes < sizeof row ? out->struct_bytes : sizeof row;
    memcpy(out, &row, bytes);
    return true;
}
