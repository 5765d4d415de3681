/* SPDX-License-Identifier: Apache-2.0 */
/* Builders: the plan that comes out as text and schema, and the messages of what is refused. */
#include "plan/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "plan/rewrite.h"

/* ---- building ---- */

static struct gar_expr *col(const char *name)
{
    struct gar_expr *e = NULL;
    assert_int_equal(gar_expr_new_column(name, &e, NULL), GAR_OK);
    return e;
}

static struct gar_expr *lit(int64_t v)
{
    const struct gar_value value = {.type = gar_type_of(GAR_INT64), .is_valid = true, .i64 = v};
    struct gar_expr *e = NULL;
    assert_int_equal(gar_expr_new_literal(&value, &e, NULL), GAR_OK);
    return e;
}

/* Moves a and b (may be NULL). */
static struct gar_expr *call(const char *function, struct gar_expr *a, struct gar_expr *b)
{
    struct gar_expr *const args[2] = {a, b};
    struct gar_expr *e = NULL;
    assert_int_equal(gar_expr_new_call_by_name(function, args,
                                               a == NULL   ? 0
                                               : b == NULL ? 1
                                                           : 2,
                                               &e, NULL),
                     GAR_OK);
    gar_expr_unref(a);
    gar_expr_unref(b);
    return e;
}

static struct gar_expr *alias(struct gar_expr *a, const char *name)
{
    struct gar_expr *e = NULL;
    assert_int_equal(gar_expr_new_alias(a, name, &e, NULL), GAR_OK);
    gar_expr_unref(a);
    return e;
}

/* A scan of an empty table with these columns; a name starting with 's' is a string, with 'n' null, else int64. */
static struct gar_plan *table(const char *const *names, int64_t count)
{
    struct gar_field fields[8];
    for (int64_t i = 0; i < count; i++) {
        const enum gar_type_id id = names[i][0] == 's'   ? GAR_STRING
                                    : names[i][0] == 'n' ? GAR_NULL
                                                         : GAR_INT64;
        fields[i] = (struct gar_field){.type = gar_type_of(id), .nullable = true};
        memcpy(&fields[i].name, &names[i], sizeof names[i]);
    }
    struct gar_schema *schema = NULL;
    struct gar_scan_provider *provider = NULL;
    struct gar_plan *plan = NULL;
    assert_int_equal(gar_schema_new(fields, count, false, &schema, NULL), GAR_OK);
    assert_int_equal(gar_memory_provider_new(schema, NULL, 0, &provider, NULL), GAR_OK);
    assert_int_equal(gar_plan_scan(provider, &plan, NULL), GAR_OK);
    gar_scan_provider_unref(provider);
    gar_schema_unref(schema);
    return plan;
}

static struct gar_plan *abs_table(void)
{
    static const char *const names[] = {"a", "b", "s"};
    return table(names, 3);
}

static void free_exprs(struct gar_expr **exprs, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        gar_expr_unref(exprs[i]);
    }
}

/* Does the plan print so, and have this schema? Frees plan. */
static void check(struct gar_plan *plan, const char *text, const char *schema)
{
    struct gar_strbuf out = {0};
    gar_plan_print(plan, &out);
    assert_string_equal(gar_strbuf_text(&out), text);
    gar_strbuf_clear(&out);
    gar_schema_print(plan->schema, &out);
    if (out.size > 0 && out.data[out.size - 1] == '\n') {
        out.data[out.size - 1] = '\0';
    }
    assert_string_equal(gar_strbuf_text(&out), schema);
    gar_strbuf_destroy(&out);
    gar_plan_unref(plan);
}

#define SCAN "Scan memory (0 rows) columns [a, b, s]\n"

/* ---- cases ---- */

static void projections(void **state)
{
    (void)state;
    struct gar_plan *t = abs_table();
    struct gar_plan *p = NULL;
    struct gar_expr *star[] = {col("*"), alias(call("add", col("a"), lit(1)), "c")};
    assert_int_equal(gar_plan_project(t, star, 2, &p, NULL), GAR_OK);
    check(p, "Project a, b, s, a + 1 as c\n  " SCAN, "a: int64\nb: int64\ns: string\nc: int64");

    struct gar_expr *with[] = {alias(col("s"), "a"), alias(col("a"), "z")};
    assert_int_equal(gar_plan_with_columns(t, with, 2, &p, NULL), GAR_OK);
    check(p, "Project s as a, b, s, a as z\n  " SCAN, "a: string\nb: int64\ns: string\nz: int64");

    static const char *const from[] = {"a", "b"};
    static const char *const to[] = {"b", "a"};
    assert_int_equal(gar_plan_rename(t, from, to, 2, &p, NULL), GAR_OK);
    check(p, "Project a as b, b as a, s\n  " SCAN, "b: int64\na: int64\ns: string");

    assert_int_equal(gar_plan_exclude(t, from, 1, &p, NULL), GAR_OK);
    check(p, "Project b, s\n  " SCAN, "b: int64\ns: string");
    free_exprs(star, 2);
    free_exprs(with, 2);
    gar_plan_unref(t);
}

static void aggregates(void **state)
{
    (void)state;
    struct gar_plan *t = abs_table();
    struct gar_plan *p = NULL;
    struct gar_expr *key = col("s");
    struct gar_expr *simple[] = {call("sum", col("a"), NULL),
                                 alias(call("count", NULL, NULL), "n")};
    assert_int_equal(gar_plan_aggregate(t, &key, 1, simple, 2, &p, NULL), GAR_OK);
    check(p, "Aggregate sum(a), count(*) as n by s\n  " SCAN, "s: string\na: int64\nn: int64");

    struct gar_expr *mixed[] = {
        alias(call("divide", call("sum", col("a"), NULL), call("sum", col("b"), NULL)), "r"),
        call("sum", col("a"), NULL), alias(call("concat", col("s"), col("s")), "k2")};
    assert_int_equal(gar_plan_aggregate(t, &key, 1, mixed, 3, &p, NULL), GAR_OK);
    check(p,
          "Project s, \"sum(a)\" / \"sum(b)\" as r, \"sum(a)\" as a, concat(s, s) as k2\n"
          "  Aggregate sum(a) as \"sum(a)\", sum(b) as \"sum(b)\" by s\n    " SCAN,
          "s: string\nr: float64\na: int64\nk2: string");

    assert_int_equal(gar_plan_project(t, simple, 2, &p, NULL), GAR_OK);
    check(p, "Aggregate sum(a), count(*) as n\n  " SCAN, "a: int64\nn: int64");

    struct gar_expr *bad[] = {alias(call("add", call("sum", col("a"), NULL), col("b")), "x")};
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(gar_plan_aggregate(t, &key, 1, bad, 1, &p, &err), GAR_ERR_VALUE);
    assert_non_null(strstr(err.message, "'b' is neither a key"));
    free_exprs(simple, 2);
    free_exprs(mixed, 3);
    free_exprs(bad, 1);
    gar_expr_unref(key);
    gar_plan_unref(t);
}

static void others(void **state)
{
    (void)state;
    struct gar_plan *t = abs_table();
    struct gar_plan *p = NULL;
    struct gar_plan *q = NULL;
    struct gar_expr *predicate = call("greater", col("a"), lit(1));
    assert_int_equal(gar_plan_filter(t, predicate, &p, NULL), GAR_OK);
    assert_int_equal(gar_plan_limit(p, 2, 5, &q, NULL), GAR_OK);
    gar_plan_unref(p);
    check(q, "Limit 5 offset 2\n  Filter a > 1\n    " SCAN, "a: int64\nb: int64\ns: string");

    assert_int_equal(gar_plan_limit(t, 0, -1, &p, NULL), GAR_OK);
    assert_ptr_equal(p, t);
    gar_plan_unref(p);
    assert_int_equal(gar_plan_limit(t, 3, -1, &p, NULL), GAR_OK);
    check(p, "Offset 3\n  " SCAN, "a: int64\nb: int64\ns: string");

    struct gar_expr *keys[] = {col("a"), col("s")};
    const bool descending[] = {true, false};
    const bool nulls_first[] = {false, true};
    assert_int_equal(gar_plan_sort(t, keys, descending, NULL, 2, 10, &p, NULL), GAR_OK);
    check(p, "Sort a desc, s limit 10\n  " SCAN, "a: int64\nb: int64\ns: string");
    assert_int_equal(gar_plan_sort(t, keys, descending, nulls_first, 2, -1, &p, NULL), GAR_OK);
    check(p, "Sort a desc nulls last, s nulls first\n  " SCAN, "a: int64\nb: int64\ns: string");

    assert_int_equal(gar_plan_distinct(t, keys, 1, &p, NULL), GAR_OK);
    check(p, "Distinct on a\n  " SCAN, "a: int64\nb: int64\ns: string");
    assert_int_equal(gar_plan_distinct(t, NULL, 0, &p, NULL), GAR_OK);
    check(p, "Distinct\n  " SCAN, "a: int64\nb: int64\ns: string");
    free_exprs(keys, 2);
    gar_expr_unref(predicate);
    gar_plan_unref(t);
}

static void concatenation(void **state)
{
    (void)state;
    static const char *const with_null[] = {"a", "n"};
    struct gar_plan *one = table(with_null, 2);
    struct gar_plan *two = NULL;
    struct gar_expr *make[] = {col("a"), alias(col("b"), "n")};
    struct gar_plan *t = abs_table();
    assert_int_equal(gar_plan_project(t, make, 2, &two, NULL), GAR_OK);
    struct gar_plan *inputs[] = {one, two};
    struct gar_plan *p = NULL;
    assert_int_equal(gar_plan_concat(inputs, 2, &p, NULL), GAR_OK);
    check(p,
          "Concat\n  Project a, cast(n as int64)\n    Scan memory (0 rows) columns [a, n]\n"
          "  Project a, b as n\n    " SCAN,
          "a: int64\nn: int64");
    struct gar_error err = GAR_ERROR_INIT;
    inputs[0] = t;
    assert_int_equal(gar_plan_concat(inputs, 2, &p, &err), GAR_ERR_TYPE);
    assert_non_null(strstr(err.message, "input 2 has 2 columns, the first has 3"));
    free_exprs(make, 2);
    gar_plan_unref(one);
    gar_plan_unref(two);
    gar_plan_unref(t);
}

static void expect(enum gar_status status, enum gar_status wanted, const struct gar_error *err,
                   const char *part)
{
    if (status != wanted || strstr(err->message, part) == NULL) {
        fail_msg("%s: %s; expected '%s'", gar_status_name(status), err->message, part);
    }
}

static void refusals(void **state)
{
    (void)state;
    struct gar_plan *t = abs_table();
    struct gar_plan *p = NULL;
    struct gar_error err = GAR_ERROR_INIT;
    struct gar_expr *e[] = {col("aa"), alias(col("a"), "b"), col("b"), call("sum", col("a"), NULL),
                            call("add", col("a"), lit(1))};
    static const char *const names[] = {"q", "a", "a"};
    expect(gar_plan_project(t, e, 1, &p, &err), GAR_ERR_COLUMN, &err, "'aa'");
    expect(gar_plan_project(t, e + 1, 2, &p, &err), GAR_ERR_VALUE, &err, "'b'");
    expect(gar_plan_with_columns(t, e + 1, 2, &p, &err), GAR_ERR_VALUE, &err, "'b'");
    expect(gar_plan_filter(t, e[4], &p, &err), GAR_ERR_TYPE, &err, "a + 1 is int64");
    expect(gar_plan_filter(t, e[0], &p, &err), GAR_ERR_COLUMN, &err, "aa");
    expect(gar_plan_filter(t, e[3], &p, &err), GAR_ERR_TYPE, &err, "sum");
    expect(gar_plan_rename(t, names, names, 1, &p, &err), GAR_ERR_COLUMN, &err, "'q'");
    expect(gar_plan_rename(t, names + 1, names, 2, &p, &err), GAR_ERR_VALUE, &err, "twice");
    expect(gar_plan_exclude(t, names, 1, &p, &err), GAR_ERR_COLUMN, &err, "'q'");
    expect(gar_plan_limit(t, 0, -2, &p, &err), GAR_ERR_VALUE, &err, "-2");
    expect(gar_plan_limit(t, -1, 2, &p, &err), GAR_ERR_VALUE, &err, "-1");
    expect(gar_plan_sort(t, e, NULL, NULL, 1, -1, &p, &err), GAR_ERR_COLUMN, &err, "'aa'");
    expect(gar_plan_sort(t, e, NULL, NULL, 0, -1, &p, &err), GAR_ERR_VALUE, &err, "one key");
    expect(gar_plan_aggregate(t, e + 3, 1, NULL, 0, &p, &err), GAR_ERR_TYPE, &err, "sum");
    free_exprs(e, 5);
    gar_plan_unref(t);
}

static void depth_is_bounded(void **state)
{
    (void)state;
    struct gar_plan *plan = abs_table();
    struct gar_expr *predicate = call("greater", col("a"), lit(1));
    enum gar_status status = GAR_OK;
    int64_t depth = 1;
    while (status >= 0 && depth < 10000) {
        struct gar_plan *next = NULL;
        status = gar_plan_filter(plan, predicate, &next, NULL);
        if (status >= 0) {
            gar_plan_unref(plan);
            plan = next;
            depth++;
        }
    }
    assert_int_equal(status, GAR_ERR_VALUE);
    assert_int_equal(depth, GAR_PLAN_DEPTH_MAX);
    gar_plan_unref(plan);
    gar_expr_unref(predicate);
}

/* ---- providers ---- */

/* All rows of a scan as one sum and count; batches of at most max_rows. */
static void drain_from(struct gar_scan_provider *provider, int64_t skip, int64_t limit,
                       int64_t batch_rows, int64_t max_rows, int64_t *rows, int64_t *sum)
{
    const int64_t columns[] = {0};
    const struct gar_scan_request request = {.columns = columns,
                                             .column_count = 1,
                                             .skip = skip,
                                             .limit = limit,
                                             .batch_rows = batch_rows,
                                             .memory = gar_memory_system()};
    struct gar_scan *scan = NULL;
    struct gar_unit *unit = NULL;
    *rows = 0;
    *sum = 0;
    assert_int_equal(provider->vtable->open(provider, &request, &scan, NULL), GAR_OK);
    while (scan->vtable->next(scan, &unit, NULL) == GAR_OK) {
        struct gar_batch *batch = NULL;
        while (scan->vtable->decode(scan, unit, NULL, max_rows, &batch, NULL) == GAR_OK) {
            assert_true(batch->rows <= max_rows && batch->rows > 0);
            assert_int_equal(gar_batch_origin(batch, 0), scan->rows_skipped + *rows);
            for (int64_t i = 0; i < batch->rows; i++) {
                *sum = (int64_t)((uint64_t)*sum + (uint64_t)((const int64_t *)batch->columns[0]
                                                                 ->values)[i]); /* may wrap */
            }
            *rows += batch->rows;
            gar_batch_unref(batch);
        }
        scan->vtable->unit_free(scan, unit);
    }
    assert_int_equal(scan->rows_exact, *rows);
    assert_true(scan->rows_skipped <= skip);
    scan->vtable->free(scan);
}

static void drain(struct gar_scan_provider *provider, int64_t limit, int64_t batch_rows,
                  int64_t max_rows, int64_t *rows, int64_t *sum)
{
    drain_from(provider, 0, limit, batch_rows, max_rows, rows, sum);
}

static void ranges(void **state)
{
    (void)state;
    static const struct {
        int64_t start, end, step, rows;
    } cases[] = {{0, 10, 1, 10},
                 {0, 10, 3, 4},
                 {10, 0, -3, 4},
                 {5, 5, 1, 0},
                 {5, 4, 1, 0},
                 {0, 9, 3, 3},
                 {-5, 1000, 1, 1005},
                 {INT64_MAX - 3, INT64_MAX, 2, 2},
                 {INT64_MIN, INT64_MAX, INT64_MAX, 3}};
    for (int64_t i = 0; i < GAR_COUNT_OF(cases); i++) {
        struct gar_scan_provider *provider = NULL;
        assert_int_equal(gar_range_provider_new("id", cases[i].start, cases[i].end, cases[i].step,
                                                &provider, NULL),
                         GAR_OK);
        assert_int_equal(provider->vtable->row_count(provider), cases[i].rows);
        int64_t rows = 0;
        int64_t sum = 0;
        drain(provider, -1, 7, 3, &rows, &sum);
        uint64_t expected = 0;
        for (int64_t k = 0; k < cases[i].rows; k++) {
            expected += (uint64_t)cases[i].start + (uint64_t)k * (uint64_t)cases[i].step;
        }
        assert_int_equal(rows, cases[i].rows);
        assert_true(sum == (int64_t)expected);
        drain(provider, 2, 7, 3, &rows, &sum);
        assert_int_equal(rows, gar_min_i64(cases[i].rows, 2));
        drain_from(provider, 3, -1, 7, 3, &rows, &sum);
        assert_int_equal(rows, gar_max_i64(cases[i].rows - 3, 0));
        drain_from(provider, 1, 3, 7, 3, &rows, &sum);
        assert_int_equal(rows, gar_max_i64(gar_min_i64(cases[i].rows, 3) - 1, 0));
        gar_scan_provider_unref(provider);
    }
    struct gar_scan_provider *provider = NULL;
    assert_int_equal(gar_range_provider_new("id", 0, 10, 0, &provider, NULL), GAR_ERR_VALUE);
    assert_int_equal(gar_range_provider_new("id", INT64_MIN, INT64_MAX, 1, &provider, NULL),
                     GAR_ERR_VALUE);
}

/* Rows of a range as a table in memory. */
static struct gar_scan_provider *memory_of(int64_t rows, int64_t batches)
{
    struct gar_batch *list[4] = {NULL};
    struct gar_schema *schema = NULL;
    char name[] = "id";
    const struct gar_field field = {.name = name, .type = gar_type_of(GAR_INT64), .nullable = true};
    assert_int_equal(gar_schema_new(&field, 1, false, &schema, NULL), GAR_OK);
    for (int64_t b = 0; b < batches; b++) {
        struct gar_column *column = NULL;
        assert_int_equal(
            gar_column_new(gar_memory_system(), field.type, rows, false, &column, NULL), GAR_OK);
        for (int64_t i = 0; i < rows; i++) {
            ((int64_t *)gar_column_values_mut(column))[i] = i;
        }
        column->null_count = 0;
        assert_int_equal(gar_batch_new(schema, &column, rows, &list[b], NULL), GAR_OK);
    }
    struct gar_scan_provider *provider = NULL;
    assert_int_equal(gar_memory_provider_new(schema, list, batches, &provider, NULL), GAR_OK);
    for (int64_t b = 0; b < batches; b++) {
        gar_batch_unref(list[b]);
    }
    gar_schema_unref(schema);
    return provider;
}

static void memory_scans(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{10, 2, 20}, {0, 3, 0}, {1000, 1, 1000}, {5, 4, 20}};
    for (int64_t i = 0; i < GAR_COUNT_OF(sizes); i++) {
        struct gar_scan_provider *provider = memory_of(sizes[i][0], sizes[i][1]);
        int64_t rows = 0;
        int64_t sum = 0;
        drain(provider, -1, 4, 3, &rows, &sum);
        assert_int_equal(rows, sizes[i][2]);
        assert_int_equal(sum, sizes[i][1] * sizes[i][0] * (sizes[i][0] - 1) / 2);
        drain(provider, 7, 1 << 17, 1 << 17, &rows, &sum);
        assert_int_equal(rows, gar_min_i64(sizes[i][2], 7));
        for (int64_t skip = 0; skip <= sizes[i][2] + 1; skip += 1 + sizes[i][2] / 20) {
            drain_from(provider, skip, -1, 4, 3, &rows, &sum);
            assert_int_equal(rows, gar_max_i64(sizes[i][2] - skip, 0));
            drain_from(provider, skip, skip + 4, 4, 3, &rows, &sum);
            assert_int_equal(rows, gar_max_i64(gar_min_i64(sizes[i][2] - skip, 4), 0));
        }
        gar_scan_provider_unref(provider);
    }
}

/* ---- rewriting ---- */

static enum gar_status a_to_b(const struct gar_expr *expr, void *context, struct gar_expr **out,
                              struct gar_error *err)
{
    (void)context;
    return expr->kind == GAR_EXPR_COLUMN && strcmp(expr->name, "a") == 0
               ? gar_expr_new_column("b", out, err)
               : GAR_OK;
}

static void rewriting(void **state)
{
    (void)state;
    struct gar_expr *e = call("add", call("multiply", col("a"), lit(2)), col("c"));
    struct gar_expr *expected = call("add", call("multiply", col("b"), lit(2)), col("c"));
    struct gar_expr *down = NULL;
    struct gar_expr *up = NULL;
    assert_int_equal(gar_expr_rewrite(e, a_to_b, NULL, &down, NULL), GAR_OK);
    assert_int_equal(gar_expr_rewrite_up(e, a_to_b, NULL, &up, NULL), GAR_OK);
    assert_true(gar_expr_equal(down, expected) && gar_expr_equal(up, expected));
    gar_expr_unref(up);
    assert_int_equal(gar_expr_rewrite(down, a_to_b, NULL, &up, NULL), GAR_OK);
    assert_ptr_equal(up, down); /* nothing to change: shared */
    gar_expr_unref(up);
    gar_expr_unref(down);
    assert_int_equal(gar_expr_named(e, "x", &down, NULL), GAR_OK);
    assert_string_equal(gar_expr_name(down), "x");
    assert_int_equal(gar_expr_named(down, "a", &up, NULL), GAR_OK);
    assert_ptr_equal(up, e); /* its own name needs no alias */
    gar_expr_unref(up);
    gar_expr_unref(down);
    gar_expr_unref(expected);
    gar_expr_unref(e);
}

/* Every allocation of a build fails once: an error, nothing leaked. */
static void refused_memory(void **state)
{
    (void)state;
    const int64_t blocks = gar_alloc_live_blocks();
    struct gar_plan *t = abs_table();
    struct gar_expr *key = col("s");
    struct gar_expr *aggs[] = {
        alias(call("divide", call("sum", col("a"), NULL), call("sum", col("b"), NULL)), "r"),
        call("sum", col("a"), NULL)};
    for (int64_t n = 1; n < 10000; n++) {
        const int64_t before = gar_alloc_live_blocks();
        struct gar_plan *p = NULL;
        gar_alloc_fail_at(n, false);
        const enum gar_status status = gar_plan_aggregate(t, &key, 1, aggs, 2, &p, NULL);
        gar_alloc_fail_at(0, false);
        gar_plan_unref(p);
        assert_int_equal(gar_alloc_live_blocks(), before);
        if (status >= 0) {
            break;
        }
        assert_int_equal(status, GAR_ERR_NOMEM);
    }
    gar_expr_unref(key);
    free_exprs(aggs, 2);
    gar_plan_unref(t);
    assert_int_equal(gar_alloc_live_blocks(), blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(projections), cmocka_unit_test(aggregates),
        cmocka_unit_test(others),      cmocka_unit_test(concatenation),
        cmocka_unit_test(refusals),    cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(ranges),      cmocka_unit_test(memory_scans),
        cmocka_unit_test(rewriting),   cmocka_unit_test(refused_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
