/* SPDX-License-Identifier: Apache-2.0 */
/* Plan nodes: counting, schemas, and the builders of all kinds but projections and aggregates. */
#include "plan/plan.h"

#include <string.h>

#include "base/alloc.h"
#include "plan/plan_priv.h"
#include "plan/rewrite.h"

struct gar_plan *gar_plan_ref(const struct gar_plan *plan)
{
    struct gar_plan *shared = NULL;
    memcpy(&shared, &plan,
           sizeof shared); /* the count is the one thing that changes in a shared plan */
    __atomic_fetch_add(&shared->refs, 1, __ATOMIC_RELAXED);
    return shared;
}

void gar_plan_unref(struct gar_plan *plan)
{
    if (plan == NULL || __atomic_sub_fetch(&plan->refs, 1, __ATOMIC_ACQ_REL) != 0) {
        return;
    }
    for (int64_t i = 0; i < plan->input_count; i++) {
        gar_plan_unref(plan->inputs[i]);
    }
    gar_free(plan->inputs);
    gar_exprs_free(plan->exprs, plan->expr_count);
    gar_free(plan->descending);
    gar_free(plan->nulls_first);
    gar_free(plan->columns);
    gar_free(plan->nulls_equal);
    gar_schema_unref(plan->pairs);
    gar_scan_provider_unref(plan->provider);
    gar_expr_unref(plan->filter);
    gar_sink_provider_unref(plan->sink);
    gar_udf_unref(plan->udf);
    gar_schema_unref(plan->schema);
    gar_free(plan);
}

static enum gar_status fill_node(struct gar_plan *plan, struct gar_plan *const *inputs,
                                 int64_t input_count, struct gar_expr *const *exprs,
                                 int64_t expr_count, struct gar_error *err)
{
    if (input_count > 0) {
        plan->inputs = gar_calloc(input_count, (int64_t)sizeof *plan->inputs);
        if (plan->inputs == NULL) {
            return gar_error_nomem(err, input_count * (int64_t)sizeof *plan->inputs);
        }
        for (int64_t i = 0; i < input_count; i++) {
            plan->inputs[i] = gar_plan_ref(inputs[i]);
        }
        plan->input_count = input_count;
    }
    if (expr_count > 0) {
        plan->exprs = gar_calloc(expr_count, (int64_t)sizeof *plan->exprs);
        if (plan->exprs == NULL) {
            return gar_error_nomem(err, expr_count * (int64_t)sizeof *plan->exprs);
        }
        for (int64_t i = 0; i < expr_count; i++) {
            plan->exprs[i] = gar_expr_ref(exprs[i]);
        }
        plan->expr_count = expr_count;
    }
    return GAR_OK;
}

enum gar_status gar_plan_new_node(enum gar_plan_kind kind, struct gar_plan *const *inputs,
                                  int64_t input_count, struct gar_expr *const *exprs,
                                  int64_t expr_count, struct gar_plan **out, struct gar_error *err)
{
    int32_t depth = 1;
    for (int64_t i = 0; i < input_count; i++) {
        depth = inputs[i]->depth >= depth ? inputs[i]->depth + 1 : depth;
    }
    if (depth > GAR_PLAN_DEPTH_MAX) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "the plan is more than %d steps deep; collect an intermediate result "
                             "and go on from that",
                             GAR_PLAN_DEPTH_MAX);
    }
    struct gar_plan *plan = gar_calloc(1, (int64_t)sizeof *plan);
    if (plan == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *plan);
    }
    plan->refs = 1;
    plan->kind = kind;
    plan->depth = depth;
    plan->limit = -1;
    const enum gar_status status = fill_node(plan, inputs, input_count, exprs, expr_count, err);
    if (status < 0) {
        gar_plan_unref(plan);
        return status;
    }
    *out = plan;
    return GAR_OK;
}

static enum gar_status describe_field(const struct gar_schema *input, const struct gar_expr *expr,
                                      bool allow_aggregates, struct gar_field *out,
                                      struct gar_error *err)
{
    struct gar_type type = {0};
    GAR_TRY(gar_expr_type(expr, input, allow_aggregates, &type, err));
    *out = (struct gar_field){.type = type, .nullable = true};
    const char *column = gar_expr_column_name(expr);
    const int64_t i = column == NULL ? -1 : gar_schema_find(input, column);
    if (i >= 0) {
        *out = input->fields[i]; /* metadata is copied by gar_schema_new */
    }
    const char *name = gar_expr_name(expr);
    memcpy(&out->name, &name,
           sizeof name); /* borrowed for the call of gar_schema_new, which copies it */
    return GAR_OK;
}

enum gar_status gar_plan_schema_of(const struct gar_schema *input, struct gar_expr *const *exprs,
                                   int64_t count, int64_t first_aggregate, struct gar_schema **out,
                                   struct gar_error *err)
{
    struct gar_field *fields = gar_calloc(count, (int64_t)sizeof *fields);
    if (fields == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *fields);
    }
    enum gar_status status = GAR_OK;
    for (int64_t i = 0; i < count && status >= 0; i++) {
        status = describe_field(input, exprs[i], i >= first_aggregate, &fields[i], err);
    }
    if (status >= 0) {
        status = gar_schema_new(fields, count, false, out, err);
    }
    gar_free(fields);
    return status;
}

/* ---- scan and write ---- */

static enum gar_status set_scan(struct gar_plan *plan, struct gar_scan_provider *provider,
                                const int64_t *columns, int64_t count, struct gar_expr *filter,
                                int64_t limit, struct gar_error *err)
{
    plan->provider = gar_scan_provider_ref(provider);
    plan->filter = filter == NULL ? NULL : gar_expr_ref(filter);
    plan->limit = limit;
    plan->columns = gar_calloc(count, (int64_t)sizeof *plan->columns);
    struct gar_field *fields = gar_calloc(count, (int64_t)sizeof *fields);
    enum gar_status status = GAR_OK;
    if (plan->columns == NULL || fields == NULL) {
        status = gar_error_nomem(err, count * (int64_t)sizeof *fields);
    }
    for (int64_t i = 0; i < count && status >= 0; i++) {
        plan->columns[i] = columns == NULL ? i : columns[i];
        fields[i] = provider->schema->fields[plan->columns[i]];
    }
    if (status >= 0) {
        status = gar_schema_new(fields, count, true, &plan->schema, err);
    }
    gar_free(fields);
    return status;
}

static enum gar_status new_scan(struct gar_scan_provider *provider, const int64_t *columns,
                                int64_t count, struct gar_expr *filter, int64_t limit,
                                struct gar_plan **out, struct gar_error *err)
{
    struct gar_plan *plan = NULL;
    GAR_TRY(gar_plan_new_node(GAR_PLAN_SCAN, NULL, 0, NULL, 0, &plan, err));
    const enum gar_status status = set_scan(plan, provider, columns, count, filter, limit, err);
    if (status < 0) {
        gar_plan_unref(plan);
        return status;
    }
    *out = plan;
    return GAR_OK;
}

enum gar_status gar_plan_check_predicate(const struct gar_expr *predicate,
                                         const struct gar_schema *schema, struct gar_error *err)
{
    struct gar_type type = {0};
    GAR_TRY(gar_expr_type(predicate, schema, false, &type, err));
    if (type.id != GAR_BOOL && type.id != GAR_NULL) {
        struct gar_strbuf text = {0};
        gar_expr_print(predicate, &text);
        char quoted[200];
        char type_text[64];
        gar_error_quote(gar_strbuf_text(&text), text.size, quoted, (int64_t)sizeof quoted);
        gar_strbuf_destroy(&text);
        return gar_error_set(
            err, GAR_ERR_TYPE,
            "a filter must be a boolean expression, but %s is %s; compare it with something",
            quoted, gar_type_text(type, type_text, (int64_t)sizeof type_text));
    }
    return GAR_OK;
}

enum gar_status gar_plan_scan(struct gar_scan_provider *provider, struct gar_plan **out,
                              struct gar_error *err)
{
    return new_scan(provider, NULL, provider->schema->count, NULL, -1, out, err);
}

enum gar_status gar_plan_scan_pushed(const struct gar_plan *scan, const int64_t *columns,
                                     int64_t count, struct gar_expr *filter, int64_t limit,
                                     struct gar_plan **out, struct gar_error *err)
{
    if (filter != NULL) {
        GAR_TRY(gar_plan_check_predicate(filter, scan->provider->schema, err));
    }
    return new_scan(scan->provider, columns, count, filter, limit, out, err);
}

enum gar_status gar_plan_write(struct gar_plan *input, struct gar_sink_provider *sink,
                               struct gar_plan **out, struct gar_error *err)
{
    struct gar_plan *plan = NULL;
    GAR_TRY(gar_plan_new_node(GAR_PLAN_WRITE, &input, 1, NULL, 0, &plan, err));
    plan->sink = gar_sink_provider_ref(sink);
    char name[] = "path";
    const struct gar_field field = {
        .name = name, .type = gar_type_of(GAR_STRING), .nullable = false};
    const enum gar_status status = gar_schema_new(&field, 1, false, &plan->schema, err);
    if (status < 0) {
        gar_plan_unref(plan);
        return status;
    }
    *out = plan;
    return GAR_OK;
}

/* ---- filter, limit, sort, distinct ---- */

static enum gar_status build_filter(struct gar_plan *input, struct gar_expr *const *exprs,
                                    const void *context, struct gar_plan **out,
                                    struct gar_error *err)
{
    (void)context;
    return gar_plan_filter(input, exprs[0], out, err);
}

enum gar_status gar_plan_filter(struct gar_plan *input, struct gar_expr *predicate,
                                struct gar_plan **out, struct gar_error *err)
{
    if (gar_expr_has_udf(predicate)) {
        return gar_plan_around_udfs(input, &predicate, 1, build_filter, NULL, out, err);
    }
    GAR_TRY(gar_plan_check_predicate(predicate, input->schema, err));
    struct gar_plan *plan = NULL;
    struct gar_expr *bare = gar_expr_strip_alias(predicate);
    GAR_TRY(gar_plan_new_node(GAR_PLAN_FILTER, &input, 1, &bare, 1, &plan, err));
    plan->schema = gar_schema_ref(input->schema);
    *out = plan;
    return GAR_OK;
}

enum gar_status gar_plan_limit(struct gar_plan *input, int64_t offset, int64_t limit,
                               struct gar_plan **out, struct gar_error *err)
{
    if (offset < 0) {
        return gar_error_set(err, GAR_ERR_VALUE, "offset must not be negative, but is %lld",
                             (long long)offset);
    }
    if (limit < -1) {
        return gar_error_set(err, GAR_ERR_VALUE, "limit must not be negative, but is %lld",
                             (long long)limit);
    }
    if (offset == 0 && limit < 0) {
        *out = gar_plan_ref(input);
        return GAR_OK;
    }
    struct gar_plan *plan = NULL;
    GAR_TRY(gar_plan_new_node(GAR_PLAN_LIMIT, &input, 1, NULL, 0, &plan, err));
    plan->schema = gar_schema_ref(input->schema);
    plan->offset = offset;
    plan->limit = limit;
    *out = plan;
    return GAR_OK;
}

/* Key expressions must be well typed; nothing else is asked of them. */
static enum gar_status check_keys(const struct gar_schema *schema, struct gar_expr *const *keys,
                                  int64_t count, struct gar_error *err)
{
    for (int64_t i = 0; i < count; i++) {
        struct gar_type type = {0};
        GAR_TRY(gar_expr_type(keys[i], schema, false, &type, err));
    }
    return GAR_OK;
}

static enum gar_status set_directions(struct gar_plan *plan, const bool *descending,
                                      const bool *nulls_first, struct gar_error *err)
{
    const int64_t count = plan->expr_count;
    plan->descending = gar_calloc(count, (int64_t)sizeof(bool));
    plan->nulls_first = gar_calloc(count, (int64_t)sizeof(bool));
    if (plan->descending == NULL || plan->nulls_first == NULL) {
        return gar_error_nomem(err, count);
    }
    for (int64_t i = 0; i < count; i++) {
        plan->descending[i] = descending != NULL && descending[i];
        plan->nulls_first[i] = nulls_first != NULL ? nulls_first[i] : plan->descending[i];
    }
    return GAR_OK;
}

struct sort_order {
    const bool *descending;
    const bool *nulls_first;
    int64_t count;
    int64_t limit;
};

static enum gar_status build_sort(struct gar_plan *input, struct gar_expr *const *keys,
                                  const void *context, struct gar_plan **out, struct gar_error *err)
{
    const struct sort_order *order = context;
    return gar_plan_sort(input, keys, order->descending, order->nulls_first, order->count,
                         order->limit, out, err);
}

enum gar_status gar_plan_sort(struct gar_plan *input, struct gar_expr *const *keys,
                              const bool *descending, const bool *nulls_first, int64_t count,
                              int64_t limit, struct gar_plan **out, struct gar_error *err)
{
    if (count <= 0) {
        return gar_error_set(err, GAR_ERR_VALUE, "sort needs at least one key");
    }
    if (limit < -1) {
        return gar_error_set(err, GAR_ERR_VALUE, "limit must not be negative, but is %lld",
                             (long long)limit);
    }
    if (gar_plan_has_udf(keys, count)) {
        const struct sort_order order = {descending, nulls_first, count, limit};
        return gar_plan_around_udfs(input, keys, count, build_sort, &order, out, err);
    }
    GAR_TRY(check_keys(input->schema, keys, count, err));
    struct gar_plan *plan = NULL;
    GAR_TRY(gar_plan_new_node(GAR_PLAN_SORT, &input, 1, keys, count, &plan, err));
    plan->schema = gar_schema_ref(input->schema);
    plan->limit = limit;
    const enum gar_status status = set_directions(plan, descending, nulls_first, err);
    if (status < 0) {
        gar_plan_unref(plan);
        return status;
    }
    *out = plan;
    return GAR_OK;
}

static enum gar_status build_distinct(struct gar_plan *input, struct gar_expr *const *keys,
                                      const void *context, struct gar_plan **out,
                                      struct gar_error *err)
{
    return gar_plan_distinct(input, keys, *(const int64_t *)context, out, err);
}

enum gar_status gar_plan_distinct(struct gar_plan *input, struct gar_expr *const *keys,
                                  int64_t count, struct gar_plan **out, struct gar_error *err)
{
    if (gar_plan_has_udf(keys, count)) {
        return gar_plan_around_udfs(input, keys, count, build_distinct, &count, out, err);
    }
    GAR_TRY(check_keys(input->schema, keys, count, err));
    struct gar_plan *plan = NULL;
    GAR_TRY(gar_plan_new_node(GAR_PLAN_DISTINCT, &input, 1, keys, count, &plan, err));
    plan->schema = gar_schema_ref(input->schema);
    *out = plan;
    return GAR_OK;
}

/* ---- concat ---- */

/* Widens fields[] of the schemas so far by input number `i`. */
static enum gar_status join_fields(struct gar_field *fields, int64_t count,
                                   const struct gar_schema *schema, int64_t i,
                                   struct gar_error *err)
{
    if (schema->count != count) {
        return gar_error_set(err, GAR_ERR_TYPE,
                             "concat: input %lld has %lld columns, the first has %lld; select the "
                             "same columns of both",
                             (long long)i + 1, (long long)schema->count, (long long)count);
    }
    for (int64_t c = 0; c < count; c++) {
        const struct gar_field *field = &schema->fields[c];
        if (strcmp(field->name, fields[c].name) != 0) {
            return gar_error_set(
                err, GAR_ERR_TYPE,
                "concat: column %lld of input %lld is named '%s', in the first '%s'; rename it",
                (long long)c + 1, (long long)i + 1, field->name, fields[c].name);
        }
        fields[c].nullable = fields[c].nullable || field->nullable;
        if (fields[c].type.id == GAR_NULL) {
            fields[c].type = field->type;
        } else if (field->type.id != GAR_NULL && !gar_type_equal(field->type, fields[c].type)) {
            char a[64];
            char b[64];
            return gar_error_set(
                err, GAR_ERR_TYPE,
                "concat: column '%s' is %s in input %lld and %s before; cast one of them",
                field->name, gar_type_text(field->type, a, (int64_t)sizeof a), (long long)i + 1,
                gar_type_text(fields[c].type, b, (int64_t)sizeof b));
        }
    }
    return GAR_OK;
}

/* The input with columns of null type cast to the types of `schema`. */
static enum gar_status widen_nulls(struct gar_plan *input, const struct gar_schema *schema,
                                   struct gar_plan **out, struct gar_error *err)
{
    if (gar_schema_equal(input->schema, schema)) {
        *out = gar_plan_ref(input);
        return GAR_OK;
    }
    const int64_t count = schema->count;
    struct gar_expr **exprs = gar_calloc(count, (int64_t)sizeof *exprs);
    if (exprs == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *exprs);
    }
    enum gar_status status = GAR_OK;
    for (int64_t i = 0; i < count && status >= 0; i++) {
        status = gar_expr_new_column(schema->fields[i].name, &exprs[i], err);
        if (status >= 0 && !gar_type_equal(input->schema->fields[i].type, schema->fields[i].type)) {
            struct gar_expr *column = exprs[i];
            exprs[i] = NULL;
            status = gar_expr_new_cast(column, schema->fields[i].type, false, &exprs[i], err);
            gar_expr_unref(column);
        }
    }
    if (status >= 0) {
        status = gar_plan_project_exact(input, exprs, count, out, err);
    }
    gar_exprs_free(exprs, count);
    return status;
}

static enum gar_status concat_schema(struct gar_plan *const *inputs, int64_t count,
                                     struct gar_schema **out, struct gar_error *err)
{
    const struct gar_schema *first = inputs[0]->schema;
    struct gar_field *fields = gar_calloc(first->count, (int64_t)sizeof *fields);
    if (fields == NULL) {
        return gar_error_nomem(err, first->count * (int64_t)sizeof *fields);
    }
    if (first->count > 0) {
        memcpy(fields, first->fields, (size_t)first->count * sizeof *fields);
    }
    enum gar_status status = GAR_OK;
    for (int64_t i = 1; i < count && status >= 0; i++) {
        status = join_fields(fields, first->count, inputs[i]->schema, i, err);
    }
    if (status >= 0) {
        status = gar_schema_new(fields, first->count, true, out, err);
    }
    gar_free(fields);
    return status;
}

static enum gar_status concat_widened(struct gar_plan *const *inputs, struct gar_plan **widened,
                                      int64_t count, struct gar_schema *schema,
                                      struct gar_plan **out, struct gar_error *err)
{
    for (int64_t i = 0; i < count; i++) {
        GAR_TRY(widen_nulls(inputs[i], schema, &widened[i], err));
    }
    GAR_TRY(gar_plan_new_node(GAR_PLAN_CONCAT, widened, count, NULL, 0, out, err));
    (*out)->schema = gar_schema_ref(schema);
    return GAR_OK;
}

enum gar_status gar_plan_concat(struct gar_plan *const *inputs, int64_t count,
                                struct gar_plan **out, struct gar_error *err)
{
    if (count <= 0) {
        return gar_error_set(err, GAR_ERR_VALUE, "concat needs at least one input");
    }
    struct gar_schema *schema = NULL;
    GAR_TRY(concat_schema(inputs, count, &schema, err));
    struct gar_plan **widened = gar_calloc(count, (int64_t)sizeof *widened);
    const enum gar_status status = widened == NULL
                                       ? gar_error_nomem(err, count * (int64_t)sizeof *widened)
                                       : concat_widened(inputs, widened, count, schema, out, err);
    for (int64_t i = 0; widened != NULL && i < count; i++) {
        gar_plan_unref(widened[i]);
    }
    gar_free(widened);
    gar_schema_unref(schema);
    return status;
}

/* ---- all kinds ---- */

enum gar_status gar_plan_with_inputs(const struct gar_plan *plan, struct gar_plan *const *inputs,
                                     struct gar_plan **out, struct gar_error *err)
{
    switch (plan->kind) {
    case GAR_PLAN_SCAN: *out = gar_plan_ref(plan); return GAR_OK;
    case GAR_PLAN_PROJECT:
        return gar_plan_project_exact(inputs[0], plan->exprs, plan->expr_count, out, err);
    case GAR_PLAN_FILTER: return gar_plan_filter(inputs[0], plan->exprs[0], out, err);
    case GAR_PLAN_LIMIT: return gar_plan_limit(inputs[0], plan->offset, plan->limit, out, err);
    case GAR_PLAN_SORT:
        return gar_plan_sort(inputs[0], plan->exprs, plan->descending, plan->nulls_first,
                             plan->expr_count, plan->limit, out, err);
    case GAR_PLAN_AGGREGATE:
        return gar_plan_aggregate_exact(inputs[0], plan->exprs, plan->expr_count, plan->key_count,
                                        out, err);
    case GAR_PLAN_DISTINCT:
        return gar_plan_distinct(inputs[0], plan->exprs, plan->expr_count, out, err);
    case GAR_PLAN_JOIN: return gar_plan_join_over(plan, inputs, out, err);
    case GAR_PLAN_WINDOW:
        return gar_plan_window_exact(inputs[0], plan->exprs, plan->expr_count, out, err);
    case GAR_PLAN_CONCAT: return gar_plan_concat(inputs, plan->input_count, out, err);
    case GAR_PLAN_WRITE: return gar_plan_write(inputs[0], plan->sink, out, err);
    case GAR_PLAN_UDF:
        return gar_plan_udf(inputs[0], plan->udf, plan->exprs, plan->expr_count,
                            plan->schema->fields[plan->schema->count - 1].name, out, err);
    }
    return gar_error_set(err, GAR_ERR_INTERNAL, "plan node of unknown kind %d", (int)plan->kind);
}

static int64_t scan_rows(const struct gar_plan *plan)
{
    int64_t rows = plan->provider->size_hint_rows;
    if (rows < 0 && plan->provider->vtable->row_count != NULL) {
        rows = plan->provider->vtable->row_count(plan->provider);
    }
    if (plan->limit >= 0 && plan->filter == NULL) {
        rows = rows < 0 ? plan->limit : gar_min_i64(rows, plan->limit);
    }
    return rows;
}

static int64_t sum_over_scans(const struct gar_plan *plan,
                              int64_t (*size)(const struct gar_plan *scan))
{
    if (plan->kind == GAR_PLAN_SCAN) {
        return size(plan);
    }
    int64_t sum = 0;
    for (int64_t i = 0; i < plan->input_count; i++) {
        const int64_t part = sum_over_scans(plan->inputs[i], size);
        if (part < 0 || __builtin_add_overflow(sum, part, &sum)) {
            return -1;
        }
    }
    return sum;
}

static int64_t scan_bytes(const struct gar_plan *plan)
{
    return plan->provider->size_hint_bytes;
}

int64_t gar_plan_source_rows(const struct gar_plan *plan)
{
    return sum_over_scans(plan, scan_rows);
}

int64_t gar_plan_source_bytes(const struct gar_plan *plan)
{
    return sum_over_scans(plan, scan_bytes);
}

bool gar_plan_runs_udf(const struct gar_plan *plan)
{
    bool runs = plan->kind == GAR_PLAN_UDF;
    for (int64_t i = 0; i < plan->input_count && !runs; i++) {
        runs = gar_plan_runs_udf(plan->inputs[i]);
    }
    return runs;
}
