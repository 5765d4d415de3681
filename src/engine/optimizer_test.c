/* SPDX-License-Identifier: Apache-2.0 */
/* Random plans over random rows give the same rows with all rules, with none, and with each rule switched off.
 *
 * Rows are compared as sorted text. Steps whose result depends on the order of rows (limit, distinct by a key) are only put
 * where that order is settled. A plan that fails without rules may do anything with them; one that does not
 * must not fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arrow/builder.h"
#include "base/alloc.h"
#include "engine/session_priv.h"
#include "exec/exec.h"
#include "optimize/optimize.h"
#include "sql/expression.h"

enum { PLANS = 250, STEPS_MAX = 7, BATCHES = 3, ROWS_MAX = 40, COLUMNS_MAX = 8 };

static uint64_t random_state = 88172645463325252u;

static int64_t pick(int64_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (int64_t)(random_state % (uint64_t)below);
}

/* ---- rows ---- */

static const enum gar_type_id column_types[] = {GAR_INT64, GAR_INT32, GAR_STRING, GAR_BOOL,
                                                GAR_FLOAT64};
static const char *const column_names[] = {"a", "b", "s", "t", "f"};

static void append_random(struct gar_builder *builder, enum gar_type_id id)
{
    static const char *const texts[] = {"", "1", "22", "x", "a long text that is not inlined", "7"};
    const int64_t v = pick(10) - 3;
    const int32_t small = (int32_t)v;
    const double number = (double)v / 2;
    enum gar_status status = GAR_OK;
    if (pick(6) == 0) {
        status = gar_builder_append_null(builder, NULL);
    } else if (id == GAR_STRING) {
        const char *text = texts[pick(6)];
        status = gar_builder_append_bytes(builder, text, (int64_t)strlen(text), NULL);
    } else if (id == GAR_BOOL) {
        status = gar_builder_append_bool(builder, v > 0, NULL);
    } else {
        const void *value = id == GAR_INT64   ? (const void *)&v
                            : id == GAR_INT32 ? (const void *)&small
                                              : (const void *)&number;
        status = gar_builder_append_fixed(builder, value, NULL);
    }
    assert_int_equal(status, GAR_OK);
}

static struct gar_batch *make_batch(struct gar_schema *schema, int64_t rows)
{
    struct gar_column *columns[5];
    struct gar_batch *batch = NULL;
    for (int64_t c = 0; c < 5; c++) {
        struct gar_builder builder = {0};
        gar_builder_init(&builder, gar_memory_system(), gar_type_of(column_types[c]));
        for (int64_t i = 0; i < rows; i++) {
            append_random(&builder, column_types[c]);
        }
        assert_int_equal(gar_builder_finish(&builder, &columns[c], NULL), GAR_OK);
        gar_builder_destroy(&builder);
    }
    assert_int_equal(gar_batch_new(schema, columns, rows, &batch, NULL), GAR_OK);
    return batch;
}

static struct gar_plan *make_table(void)
{
    struct gar_field fields[5];
    for (int64_t c = 0; c < 5; c++) {
        fields[c] = (struct gar_field){.type = gar_type_of(column_types[c]), .nullable = true};
        memcpy(&fields[c].name, &column_names[c], sizeof column_names[c]);
    }
    struct gar_schema *schema = NULL;
    struct gar_batch *batches[BATCHES] = {NULL};
    struct gar_scan_provider *provider = NULL;
    struct gar_plan *plan = NULL;
    assert_int_equal(gar_schema_new(fields, 5, false, &schema, NULL), GAR_OK);
    for (int64_t b = 0; b < BATCHES; b++) {
        batches[b] = make_batch(schema, pick(ROWS_MAX));
    }
    assert_int_equal(gar_memory_provider_new(schema, batches, BATCHES, &provider, NULL), GAR_OK);
    assert_int_equal(gar_plan_scan(provider, &plan, NULL), GAR_OK);
    for (int64_t b = 0; b < BATCHES; b++) {
        gar_batch_unref(batches[b]);
    }
    gar_scan_provider_unref(provider);
    gar_schema_unref(schema);
    return plan;
}

/* ---- plans ---- */

/* The form with each $ replaced by a quoted name: the first by a, the others by b. */
static void expand(const char *form, const char *a, const char *b, char *out, int64_t out_bytes)
{
    struct gar_strbuf text = {0};
    for (; *form != '\0'; form++) {
        if (*form == '$') {
            gar_strbuf_printf(&text, "\"%s\"", a);
            a = b;
        } else {
            gar_strbuf_append_char(&text, *form);
        }
    }
    assert_true(!text.failed && text.size < out_bytes);
    memcpy(out, gar_strbuf_text(&text), (size_t)text.size + 1);
    gar_strbuf_destroy(&text);
}

/* A random expression over the schema; NULL when the text does not suit the columns. */
static struct gar_expr *random_expr(const struct gar_schema *schema, bool is_predicate)
{
    static const char *const predicates[] = {"$ > 1",
                                             "$ is not null",
                                             "not ($ = 2)",
                                             "$ in (1, 2, null)",
                                             "$ between 0 and 3",
                                             "true and $ > 0",
                                             "$ = 1 or false",
                                             "$ like '%x%'",
                                             "cast($ as string) <> '22'",
                                             "1 + 1 > $",
                                             "$",
                                             "not not $",
                                             "$ is true",
                                             "$ < 2 and $ > -2",
                                             "case when true then $ > 0 else false end",
                                             "cast($ as int64) < 5"};
    static const char *const values[] = {"$ + 1",          "$ * (1 + 1)",
                                         "2 - $",          "cast($ as string)",
                                         "coalesce($, $)", "-$",
                                         "upper($)",       "$",
                                         "3 + 4",          "case when $ is null then 1 else 0 end",
                                         "$ + $",          "length($)"};
    char text[300];
    const char *name = schema->fields[pick(schema->count)].name;
    const char *other = schema->fields[pick(schema->count)].name;
    const char *form = is_predicate ? predicates[pick(GAR_COUNT_OF(predicates))]
                                    : values[pick(GAR_COUNT_OF(values))];
    expand(form, name, other, text, (int64_t)sizeof text);
    struct gar_expr *expr = NULL;
    return gar_sql_parse_expression(text, (int64_t)strlen(text), schema, &expr, NULL) == GAR_OK
               ? expr
               : NULL;
}

static struct gar_expr *column(const struct gar_schema *schema, int64_t i)
{
    struct gar_expr *expr = NULL;
    assert_int_equal(gar_expr_new_column(schema->fields[i].name, &expr, NULL), GAR_OK);
    return expr;
}

static struct gar_expr *named(struct gar_expr *expr, int64_t number)
{
    char name[16];
    struct gar_expr *alias = NULL;
    snprintf(name, sizeof name, "x%d", (int)number);
    assert_int_equal(gar_expr_new_alias(expr, name, &alias, NULL), GAR_OK);
    gar_expr_unref(expr);
    return alias;
}

static void sort_by_all(const struct gar_plan *plan, struct gar_plan **out)
{
    struct gar_expr *keys[COLUMNS_MAX];
    bool descending[COLUMNS_MAX];
    struct gar_plan *input = gar_plan_ref(plan);
    for (int64_t i = 0; i < plan->schema->count; i++) {
        keys[i] = column(plan->schema, i);
        descending[i] = pick(2) == 0;
    }
    assert_int_equal(
        gar_plan_sort(input, keys, descending, NULL, plan->schema->count, -1, out, NULL), GAR_OK);
    for (int64_t i = 0; i < plan->schema->count; i++) {
        gar_expr_unref(keys[i]);
    }
    gar_plan_unref(input);
}

static enum gar_status group(struct gar_plan *plan, struct gar_plan **out)
{
    static const char *const aggregates[] = {"count(*)",
                                             "min($)",
                                             "max($)",
                                             "count($)",
                                             "count_distinct($)",
                                             "count($) + 1",
                                             "coalesce(min($), max($))"};
    char text[300];
    const char *name = plan->schema->fields[pick(plan->schema->count)].name;
    struct gar_expr *key = column(plan->schema, pick(plan->schema->count));
    struct gar_expr *aggs[2] = {NULL, NULL};
    enum gar_status status = GAR_OK;
    for (int64_t i = 0; i < 2 && status >= 0; i++) {
        expand(aggregates[pick(GAR_COUNT_OF(aggregates))], name, name, text, (int64_t)sizeof text);
        status =
            gar_sql_parse_expression(text, (int64_t)strlen(text), plan->schema, &aggs[i], NULL);
        if (status >= 0) {
            aggs[i] = named(aggs[i], 20 + i);
        }
    }
    if (status >= 0) {
        status = gar_plan_aggregate(plan, &key, pick(3) == 0 ? 0 : 1, aggs, 2, out, NULL);
    }
    gar_expr_unref(key);
    gar_expr_unref(aggs[0]);
    gar_expr_unref(aggs[1]);
    return status;
}

/* One more step on the plan, if it can be built; *is_settled says whether the order of rows is known. */
static enum gar_status add_step(struct gar_plan *plan, bool *is_settled, struct gar_plan **out)
{
    const struct gar_schema *schema = plan->schema;
    struct gar_expr *exprs[2] = {NULL, NULL};
    enum gar_status status = GAR_ERR_VALUE;
    const int64_t kind = pick(10);
    if (kind <= 3) {
        exprs[0] = random_expr(schema, true);
        status = exprs[0] == NULL ? GAR_ERR_VALUE : gar_plan_filter(plan, exprs[0], out, NULL);
    } else if (kind == 4) {
        exprs[0] = random_expr(schema, false);
        exprs[1] = column(schema, pick(schema->count));
        if (exprs[0] != NULL) {
            exprs[0] = named(exprs[0], pick(3));
            status = gar_plan_project(plan, exprs, 2, out, NULL);
        }
    } else if (kind == 5 && schema->count < COLUMNS_MAX) {
        exprs[0] = random_expr(schema, false);
        if (exprs[0] != NULL) {
            exprs[0] = named(exprs[0], pick(3));
            status = gar_plan_with_columns(plan, exprs, 1, out, NULL);
        }
    } else if (kind == 6) {
        sort_by_all(plan, out);
        *is_settled = true;
        status = GAR_OK;
    } else if (kind == 7 && *is_settled) {
        status = gar_plan_limit(plan, pick(3), pick(4) == 0 ? -1 : pick(12), out, NULL);
    } else if (kind == 8) {
        exprs[0] = column(schema, pick(schema->count));
        status = gar_plan_distinct(plan, exprs, *is_settled ? pick(2) : 0, out, NULL);
        *is_settled = *is_settled && status < 0;
    } else if (kind == 9 && pick(2) == 0) {
        status = group(plan, out);
        *is_settled = *is_settled && status < 0;
    } else if (kind == 9) {
        struct gar_plan *const inputs[2] = {plan, plan};
        status = gar_plan_concat(inputs, 2, out, NULL);
    }
    gar_expr_unref(exprs[0]);
    gar_expr_unref(exprs[1]);
    return status;
}

static struct gar_plan *random_plan(void)
{
    struct gar_plan *plan = make_table();
    bool is_settled = true;
    for (int64_t steps = 1 + pick(STEPS_MAX); steps > 0; steps--) {
        struct gar_plan *next = NULL;
        if (add_step(plan, &is_settled, &next) >= 0) {
            gar_plan_unref(plan);
            plan = next;
        }
    }
    return plan;
}

/* ---- running ---- */

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *row_text(const struct gar_batch *batch, int64_t i)
{
    struct gar_strbuf line = {0};
    for (int64_t c = 0; c < batch->schema->count; c++) {
        struct gar_value value = {0};
        assert_int_equal(gar_value_from_column(batch->columns[c], i, &value, NULL), GAR_OK);
        gar_value_print(&value, &line);
        gar_strbuf_append(&line, "|");
        gar_value_destroy(&value);
    }
    return gar_strbuf_take(&line);
}

/* All rows as sorted lines. */
static char *rows_text(struct gar_batch **batches, int64_t count)
{
    char **lines = NULL;
    int64_t rows = 0;
    for (int64_t b = 0; b < count; b++) {
        rows += batches[b]->rows;
    }
    lines = gar_calloc(rows, (int64_t)sizeof *lines);
    assert_non_null(lines);
    int64_t at = 0;
    for (int64_t b = 0; b < count; b++) {
        for (int64_t i = 0; i < batches[b]->rows; i++) {
            lines[at++] = row_text(batches[b], i);
        }
    }
    qsort(lines, (size_t)rows, sizeof *lines, compare_lines);
    struct gar_strbuf text = {0};
    for (int64_t i = 0; i < rows; i++) {
        gar_strbuf_printf(&text, "%s\n", lines[i]);
        gar_free(lines[i]);
    }
    gar_free(lines);
    return gar_strbuf_take(&text);
}

static enum gar_status run(const struct gar_plan *plan, char **out, struct gar_error *err)
{
    struct gar_session *session = NULL;
    struct gar_settings settings;
    struct gar_runtime *runtime = NULL;
    struct gar_stream *stream = NULL;
    struct gar_batch **batches = NULL;
    int64_t count = 0;
    assert_int_equal(gar_session_default(&session, NULL), GAR_OK);
    assert_int_equal(gar_session_begin(session, &settings, &runtime, NULL), GAR_OK);
    const struct gar_exec_options options = {.runtime = runtime,
                                             .memory = gar_memory_system(),
                                             .morsel_rows = 1 + pick(20),
                                             .maintain_order = true,
                                             .allow_inline = true};
    enum gar_status status = gar_exec_start(plan, &options, &stream, err);
    if (status >= 0) {
        status = gar_stream_collect(stream, NULL, &batches, &count, err);
    }
    if (status >= 0) {
        *out = rows_text(batches, count);
        gar_batches_free(batches, count);
    }
    gar_stream_free(stream);
    gar_runtime_leave(runtime);
    return status;
}

static void fail_with(const struct gar_plan *plan, const struct gar_plan *optimized,
                      const char *rows, const char *wanted)
{
    struct gar_strbuf text = {0};
    gar_plan_print(plan, &text);
    gar_strbuf_append(&text, "--- optimized\n");
    gar_plan_print(optimized, &text);
    gar_strbuf_printf(&text, "--- gives\n%s--- instead of\n%s", rows, wanted);
    print_error("%s\n", gar_strbuf_text(&text));
    gar_strbuf_destroy(&text);
    fail();
}

/* The plan with all rules but those in `disabled` gives the wanted rows. */
static void check_rules(const struct gar_plan *plan, const char *disabled, const char *wanted)
{
    struct gar_error err = GAR_ERROR_INIT;
    struct gar_plan *optimized = NULL;
    char *rows = NULL;
    if (gar_optimize(plan, disabled, NULL, &optimized, &err) < 0) {
        fail_with(plan, plan, err.message, wanted);
    } else if (run(optimized, &rows, &err) < 0) {
        fail_with(plan, optimized, err.message, wanted);
    } else if (strcmp(rows, wanted) != 0) {
        fail_with(plan, optimized, rows, wanted);
    }
    gar_free(rows);
    gar_plan_unref(optimized);
}

static void rules_keep_the_rows(void **state)
{
    (void)state;
    int64_t compared = 0;
    for (int64_t n = 0; n < PLANS; n++) {
        struct gar_plan *plan = random_plan();
        struct gar_error err = GAR_ERROR_INIT;
        char *wanted = NULL;
        if (run(plan, &wanted, &err) >= 0) {
            check_rules(plan, NULL, wanted);
            for (int64_t r = 0; r < gar_optimize_rule_count(); r++) {
                check_rules(plan, gar_optimize_rule_name(r), wanted);
            }
            compared++;
        }
        gar_free(wanted);
        gar_plan_unref(plan);
    }
    assert_true(compared > PLANS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rules_keep_the_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
