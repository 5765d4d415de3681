/* SPDX-License-Identifier: Apache-2.0 */
/* Plans before and after: what each rule does, and what it must leave alone. */
#include "optimize/optimize.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"

/* ---- building ---- */

static struct gar_expr *col(const char *name)
{
    struct gar_expr *e = NULL;
    assert_int_equal(gar_expr_new_column(name, &e, NULL), GAR_OK);
    return e;
}

static struct gar_expr *literal(struct gar_value value)
{
    struct gar_expr *e = NULL;
    assert_int_equal(gar_expr_new_literal(&value, &e, NULL), GAR_OK);
    return e;
}

static struct gar_expr *lit(int64_t v)
{
    return literal((struct gar_value){.type = gar_type_of(GAR_INT64), .is_valid = true, .i64 = v});
}

static struct gar_expr *truth(bool v)
{
    return literal(
        (struct gar_value){.type = gar_type_of(GAR_BOOL), .is_valid = true, .boolean = v});
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

static struct gar_expr *when(struct gar_expr *condition, struct gar_expr *then,
                             struct gar_expr *otherwise)
{
    struct gar_expr *const args[3] = {condition, then, otherwise};
    struct gar_expr *e = NULL;
    assert_int_equal(gar_expr_new_call_by_name("when", args, 3, &e, NULL), GAR_OK);
    for (int i = 0; i < 3; i++) {
        gar_expr_unref(args[i]);
    }
    return e;
}

static struct gar_expr *cast(struct gar_expr *a, enum gar_type_id id)
{
    struct gar_expr *e = NULL;
    assert_int_equal(gar_expr_new_cast(a, gar_type_of(id), false, &e, NULL), GAR_OK);
    gar_expr_unref(a);
    return e;
}

static struct gar_expr *alias(struct gar_expr *a, const char *name)
{
    struct gar_expr *e = NULL;
    assert_int_equal(gar_expr_new_alias(a, name, &e, NULL), GAR_OK);
    gar_expr_unref(a);
    return e;
}

/* A table of no rows: a, b int64; i int32; s string; t bool. */
static struct gar_plan *table(void)
{
    static const char *const names[] = {"a", "b", "i", "s", "t"};
    static const enum gar_type_id types[] = {GAR_INT64, GAR_INT64, GAR_INT32, GAR_STRING, GAR_BOOL};
    struct gar_field fields[5];
    for (int64_t i = 0; i < 5; i++) {
        fields[i] = (struct gar_field){.type = gar_type_of(types[i]), .nullable = true};
        memcpy(&fields[i].name, &names[i], sizeof names[i]);
    }
    struct gar_schema *schema = NULL;
    struct gar_scan_provider *provider = NULL;
    struct gar_plan *plan = NULL;
    assert_int_equal(gar_schema_new(fields, 5, false, &schema, NULL), GAR_OK);
    assert_int_equal(gar_memory_provider_new(schema, NULL, 0, &provider, NULL), GAR_OK);
    assert_int_equal(gar_plan_scan(provider, &plan, NULL), GAR_OK);
    gar_scan_provider_unref(provider);
    gar_schema_unref(schema);
    return plan;
}

/* A table said to have so many rows: two int64 columns of these names. */
static struct gar_plan *sized(int64_t rows, const char *first, const char *second)
{
    struct gar_field fields[2] = {{.type = {.id = GAR_INT64}, .nullable = true},
                                  {.type = {.id = GAR_INT64}, .nullable = true}};
    struct gar_schema *schema = NULL;
    struct gar_scan_provider *provider = NULL;
    struct gar_plan *plan = NULL;
    memcpy(&fields[0].name, &first, sizeof first);
    memcpy(&fields[1].name, &second, sizeof second);
    assert_int_equal(gar_schema_new(fields, 2, false, &schema, NULL), GAR_OK);
    assert_int_equal(gar_memory_provider_new(schema, NULL, 0, &provider, NULL), GAR_OK);
    provider->size_hint_rows = rows;
    assert_int_equal(gar_plan_scan(provider, &plan, NULL), GAR_OK);
    gar_scan_provider_unref(provider);
    gar_schema_unref(schema);
    return plan;
}

/* The builders again, moving their arguments. */
static struct gar_plan *filter(struct gar_plan *input, struct gar_expr *predicate)
{
    struct gar_plan *p = NULL;
    assert_int_equal(gar_plan_filter(input, predicate, &p, NULL), GAR_OK);
    gar_expr_unref(predicate);
    gar_plan_unref(input);
    return p;
}

static struct gar_plan *limit(struct gar_plan *input, int64_t offset, int64_t count)
{
    struct gar_plan *p = NULL;
    assert_int_equal(gar_plan_limit(input, offset, count, &p, NULL), GAR_OK);
    gar_plan_unref(input);
    return p;
}

static struct gar_plan *project2(struct gar_plan *input, struct gar_expr *a, struct gar_expr *b)
{
    struct gar_expr *const exprs[2] = {a, b};
    struct gar_plan *p = NULL;
    assert_int_equal(gar_plan_project(input, exprs, b == NULL ? 1 : 2, &p, NULL), GAR_OK);
    gar_expr_unref(a);
    gar_expr_unref(b);
    gar_plan_unref(input);
    return p;
}

static struct gar_plan *with(struct gar_plan *input, struct gar_expr *a)
{
    struct gar_plan *p = NULL;
    assert_int_equal(gar_plan_with_columns(input, &a, 1, &p, NULL), GAR_OK);
    gar_expr_unref(a);
    gar_plan_unref(input);
    return p;
}

static struct gar_plan *sort(struct gar_plan *input, struct gar_expr *key)
{
    struct gar_plan *p = NULL;
    assert_int_equal(gar_plan_sort(input, &key, NULL, NULL, 1, -1, &p, NULL), GAR_OK);
    gar_expr_unref(key);
    gar_plan_unref(input);
    return p;
}

static struct gar_plan *group(struct gar_plan *input, struct gar_expr *key,
                              struct gar_expr *aggregate)
{
    struct gar_plan *p = NULL;
    assert_int_equal(gar_plan_aggregate(input, &key, key == NULL ? 0 : 1, &aggregate,
                                        aggregate == NULL ? 0 : 1, &p, NULL),
                     GAR_OK);
    gar_expr_unref(key);
    gar_expr_unref(aggregate);
    gar_plan_unref(input);
    return p;
}

static struct gar_plan *distinct(struct gar_plan *input, struct gar_expr *key)
{
    struct gar_plan *p = NULL;
    assert_int_equal(gar_plan_distinct(input, &key, key == NULL ? 0 : 1, &p, NULL), GAR_OK);
    gar_expr_unref(key);
    gar_plan_unref(input);
    return p;
}

/* Without keys when left_key is NULL. */
static struct gar_plan *join(enum gar_join_kind kind, struct gar_plan *a, struct gar_plan *b,
                             const char *left_key, const char *right_key)
{
    struct gar_expr *left = left_key != NULL ? col(left_key) : NULL;
    struct gar_expr *right = left_key != NULL ? col(right_key) : NULL;
    const struct gar_join_spec spec = {
        .kind = kind, .left_keys = &left, .right_keys = &right, .key_count = left_key != NULL};
    struct gar_plan *p = NULL;
    assert_int_equal(gar_plan_join(a, b, &spec, &p, NULL), GAR_OK);
    gar_expr_unref(left);
    gar_expr_unref(right);
    gar_plan_unref(a);
    gar_plan_unref(b);
    return p;
}

static struct gar_plan *concat(struct gar_plan *a, struct gar_plan *b)
{
    struct gar_plan *const inputs[2] = {a, b};
    struct gar_plan *p = NULL;
    assert_int_equal(gar_plan_concat(inputs, 2, &p, NULL), GAR_OK);
    gar_plan_unref(a);
    gar_plan_unref(b);
    return p;
}

/* ---- checking ---- */

#define M   "Scan memory (0 rows) columns "
#define ALL M "[a, b, i, s, t]"

static void print(const struct gar_plan *plan, struct gar_strbuf *out)
{
    gar_plan_print(plan, out);
    if (out->size > 0) {
        out->data[--out->size] = '\0'; /* the last line end */
    }
}

/* Frees plan. */
static void check(struct gar_plan *plan, const char *expected)
{
    struct gar_plan *optimized = NULL;
    struct gar_plan *again = NULL;
    struct gar_strbuf text = {0};
    struct gar_strbuf fired = {0};
    struct gar_error err = GAR_ERROR_INIT;
    if (gar_optimize(plan, NULL, &fired, &optimized, &err) < 0) {
        fail_msg("%s", err.message);
    }
    print(optimized, &text);
    assert_string_equal(gar_strbuf_text(&text), expected);
    assert_true(gar_schema_equal(plan->schema, optimized->schema));
    gar_strbuf_clear(&fired);
    assert_int_equal(gar_optimize(optimized, NULL, &fired, &again, NULL), GAR_OK);
    assert_string_equal(gar_strbuf_text(&fired), ""); /* nothing is left to do */
    assert_ptr_equal(again, optimized);
    gar_strbuf_destroy(&text);
    gar_strbuf_destroy(&fired);
    gar_plan_unref(again);
    gar_plan_unref(optimized);
    gar_plan_unref(plan);
}

/* ---- cases ---- */

static void folding(void **state)
{
    (void)state;
    check(filter(table(), call("greater", col("a"), call("add", lit(1), lit(2)))),
          ALL " filter a > 3");
    /* the type of a computed integer does not adapt to the column beside it */
    check(project2(table(), alias(call("add", col("i"), call("add", lit(1), lit(2))), "x"), NULL),
          "Project i + cast(3 as int64) as x\n  " M "[i]");
    check(project2(table(), call("multiply", lit(2), lit(3)), NULL),
          "Project 6 as multiply\n  " M "[]");
    /* what fails is left for the rows */
    check(project2(table(), alias(call("add", lit(INT64_MAX), lit(1)), "x"), NULL),
          "Project 9223372036854775807 + 1 as x\n  " M "[]");
}

static void simplification(void **state)
{
    (void)state;
    check(filter(table(), call("and", truth(true), call("greater", col("a"), lit(1)))),
          ALL " filter a > 1");
    check(filter(table(), call("or", col("t"), truth(true))), ALL);
    check(filter(table(), call("and", col("t"), truth(false))), ALL);
    check(filter(table(), call("not", call("not", col("t"), NULL), NULL)), ALL " filter t");
    check(filter(table(), call("not", call("equal", col("a"), lit(1)), NULL)),
          ALL " filter a <> 1");
    check(filter(table(), call("not", call("less", col("a"), lit(1)), NULL)),
          ALL " filter not a < 1");
    check(filter(table(), call("not", call("is_null", col("a"), NULL), NULL)),
          ALL " filter a is not null");
    check(filter(table(), call("less", lit(5), col("a"))), ALL " filter a > 5");
    check(filter(table(), call("equal", col("t"), truth(true))), ALL " filter t");
    check(filter(table(), call("equal", col("t"), truth(false))), ALL " filter not t");
    check(filter(table(), call("greater", cast(col("a"), GAR_INT64), lit(1))), ALL " filter a > 1");
    check(project2(table(), alias(when(truth(false), col("a"), col("b")), "x"), NULL),
          "Project b as x\n  " M "[b]");
}

static void filters_go_down(void **state)
{
    (void)state;
    check(filter(project2(table(), alias(col("a"), "x"), col("s")),
                 call("greater", col("x"), lit(1))),
          "Project a as x, s\n  " M "[a, s] filter a > 1");
    check(filter(sort(table(), col("a")), call("greater", col("b"), lit(1))),
          "Sort a\n  " ALL " filter b > 1");
    check(
        filter(filter(table(), call("greater", col("a"), lit(1))), call("less", col("b"), lit(9))),
        ALL " filter a > 1 and b < 9");
    check(filter(concat(table(), table()), col("t")),
          "Concat\n  " ALL " filter t\n  " ALL " filter t");
    check(filter(distinct(table(), NULL), col("t")), "Distinct\n  " ALL " filter t");
    check(filter(distinct(table(), col("a")), call("greater", col("a"), lit(1))),
          "Distinct on a\n  " ALL " filter a > 1");
    check(filter(group(table(), col("s"), alias(call("sum", col("a"), NULL), "n")),
                 call("equal", col("s"), col("s"))),
          "Aggregate sum(a) as n by s\n  " M "[a, s] filter s = s");
}

/* Conjuncts of one filter are evaluated one after the other. */
static void filters_are_ordered(void **state)
{
    (void)state;
    /* a cast may fail on rows that another conjunct removes: it comes last, however it was written */
    check(filter(filter(table(), col("t")), call("greater", cast(col("s"), GAR_INT64), lit(3))),
          ALL " filter t and cast(s as int64) > 3");
    check(
        filter(table(), call("and", call("greater", cast(col("s"), GAR_INT64), lit(3)), col("t"))),
        ALL " filter t and cast(s as int64) > 3");
    /* nor does it go where a conjunct that stays does not guard it */
    check(filter(filter(distinct(table(), col("s")), col("t")),
                 call("greater", cast(col("s"), GAR_INT64), lit(3))),
          "Filter t and cast(s as int64) > 3\n  Distinct on s\n    " ALL);
    /* numbers before text, tests of one column together */
    struct gar_expr *numbers =
        call("and", call("and", call("greater", col("a"), lit(1)), call("less", col("b"), lit(2))),
             call("less", col("a"), lit(9)));
    check(filter(table(), call("and", call("startswith", col("s"), col("s")), numbers)),
          ALL " filter a > 1 and a < 9 and (b < 2 and startswith(s, s))");
}

static void filters_stay(void **state)
{
    (void)state;
    check(filter(limit(table(), 0, 5), col("t")), "Filter t\n  Limit 5\n    " ALL " limit 5");
    check(filter(distinct(table(), col("a")), col("t")), "Filter t\n  Distinct on a\n    " ALL);
    check(filter(group(table(), col("s"), alias(call("sum", col("a"), NULL), "n")),
                 call("greater", col("n"), lit(1))),
          "Filter n > 1\n  Aggregate sum(a) as n by s\n    " M "[a, s]");
    check(filter(group(table(), NULL, alias(call("sum", col("a"), NULL), "n")),
                 call("greater", col("n"), lit(1))),
          "Filter n > 1\n  Aggregate sum(a) as n\n    " M "[a]");
    /* a long expression is not computed twice */
    struct gar_expr *heavy =
        call("add", call("multiply", col("a"), col("b")), call("multiply", col("b"), col("b")));
    check(filter(with(table(), alias(heavy, "x")), call("greater", col("x"), lit(1))),
          "Filter x > 1\n  Project a, b, i, s, t, a * b + b * b as x\n    " ALL);
}

static void limits(void **state)
{
    (void)state;
    check(limit(project2(table(), col("a"), NULL), 0, 5), "Limit 5\n  " M "[a] limit 5");
    check(limit(project2(table(), alias(col("a"), "x"), NULL), 2, 5),
          "Project a as x\n  Limit 5 offset 2\n    " M "[a] limit 7");
    check(limit(limit(table(), 3, 10), 2, 20), "Limit 8 offset 5\n  " ALL " limit 13");
    check(limit(limit(table(), 0, 3), 5, -1), ALL);
    check(limit(sort(table(), col("a")), 0, 5), "Sort a limit 5\n  " ALL);
    check(limit(sort(table(), col("a")), 2, 5), "Limit 5 offset 2\n  Sort a limit 7\n    " ALL);
    check(limit(filter(table(), col("t")), 0, 5), "Limit 5\n  " ALL " filter t limit 5");
    check(limit(table(), 4, -1), "Offset 4\n  " ALL);
    check(limit(table(), 0, 0), ALL);
    check(limit(concat(table(), table()), 1, 2),
          "Limit 2 offset 1\n  Concat\n    Limit 3\n      " ALL " limit 3\n    Limit 3\n      " ALL
          " limit 3");
    check(limit(distinct(table(), NULL), 0, 5), "Limit 5\n  Distinct\n    " ALL);
    check(limit(table(), 5, INT64_MAX), "Limit 9223372036854775807 offset 5\n  " ALL);
}

static void projections(void **state)
{
    (void)state;
    check(project2(with(table(), alias(call("add", col("a"), col("b")), "x")), col("x"), NULL),
          "Project a + b as x\n  " M "[a, b]");
    check(project2(with(table(), alias(call("add", col("a"), col("b")), "x")),
                   alias(call("multiply", col("x"), col("x")), "y"), NULL),
          "Project x * x as y\n  Project a + b as x\n    " M "[a, b]");
    check(project2(table(), col("s"), col("a")), M "[s, a]");
    check(project2(project2(table(), col("a"), alias(lit(1), "one")),
                   call("add", col("one"), col("a")), NULL),
          "Project one + a\n  Project a, 1 as one\n    " M "[a]");
}

static void columns(void **state)
{
    (void)state;
    check(project2(filter(table(), call("greater", col("b"), lit(1))), col("a"), NULL),
          M "[a] filter b > 1");
    check(project2(sort(table(), col("b")), col("a"), NULL),
          "Project a\n  Sort b\n    " M "[a, b]");
    check(project2(concat(table(), filter(table(), cast(col("s"), GAR_BOOL))), col("a"), NULL),
          "Concat\n  " M "[a]\n  " M "[a] filter cast(s as bool)");
    check(
        project2(group(table(), col("s"), alias(call("sum", col("a"), NULL), "n")), col("s"), NULL),
        "Aggregate by s\n  " M "[s]");
    check(project2(distinct(table(), NULL), col("a"), NULL), "Project a\n  Distinct\n    " ALL);
    check(group(sort(table(), col("b")), NULL, call("count", NULL, NULL)),
          "Aggregate count(*)\n  Sort b\n    " M "[b]");
}

#define SIZED "Scan memory (0 rows) columns "

/* Filters go to the side they look at, unless rows of it would come out without a partner. */
static void joins(void **state)
{
    (void)state;
    check(
        filter(join(GAR_JOIN_INNER, sized(10, "a", "b"), sized(20, "c", "d"), NULL, NULL),
               call("and", call("equal", col("a"), col("c")),
                    call("and", call("less", col("b"), lit(5)), call("less", col("b"), col("d"))))),
        "Filter b < d\n"
        "  Join inner on a = c columns [a, b, c, d] table of left, sends keys\n"
        "    " SIZED "[a, b] filter b < 5\n    " SIZED "[c, d]");
    check(filter(join(GAR_JOIN_LEFT, sized(100, "a", "b"), sized(20, "c", "d"), "a", "c"),
                 call("and", call("less", col("b"), lit(5)), call("less", col("d"), lit(7)))),
          "Filter d < 7\n"
          "  Join left on a = c columns [a, b, c, d] table of right\n"
          "    " SIZED "[a, b] filter b < 5\n    " SIZED "[c, d]");
    check(filter(join(GAR_JOIN_OUTER, sized(100, "a", "b"), sized(20, "c", "d"), "a", "c"),
                 call("less", col("b"), lit(5))),
          "Filter b < 5\n"
          "  Join outer on a = c columns [a, b, c, d] table of right\n"
          "    " SIZED "[a, b]\n    " SIZED "[c, d]");
    check(project2(join(GAR_JOIN_SEMI, sized(100, "a", "b"), sized(20, "c", "d"), "a", "c"),
                   col("b"), NULL),
          "Join semi on a = c columns [b] table of right, sends keys\n"
          "  " SIZED "[a, b]\n  " SIZED "[c]");
    check(project2(join(GAR_JOIN_LEFT, sized(10, "a", "b"), sized(500, "c", "d"), "a", "c"),
                   col("b"), col("d")),
          "Join left on a = c columns [b, d] table of left, sends keys\n"
          "  " SIZED "[a, b]\n  " SIZED "[c, d]");
}

/* The large table meets the small one first, whatever the order it was written in; no pairs without a predicate. */
static void join_order(void **state)
{
    (void)state;
    struct gar_plan *crossed =
        join(GAR_JOIN_INNER,
             join(GAR_JOIN_INNER, sized(50, "p", "pv"), sized(60, "s", "sv"), NULL, NULL),
             sized(100000, "lp", "ls"), NULL, NULL);
    check(filter(crossed, call("and", call("equal", col("p"), col("lp")),
                               call("equal", col("s"), col("ls")))),
          "Join inner on lp = p columns [p, pv, s, sv, lp, ls] table of right, sends keys\n"
          "  Join inner on ls = s columns [lp, ls, s, sv] table of right, sends keys\n"
          "    " SIZED "[lp, ls]\n    " SIZED "[s, sv]\n  " SIZED "[p, pv]");
}

static void counts(void **state)
{
    (void)state;
    check(group(table(), NULL, call("count", NULL, NULL)), "Scan memory (1 rows) columns [count]");
    check(group(with(table(), alias(lit(1), "x")), NULL, alias(call("count", lit(1), NULL), "n")),
          "Scan memory (1 rows) columns [n]");
    check(group(filter(table(), col("t")), NULL, call("count", NULL, NULL)),
          "Aggregate count(*)\n  " M "[] filter t");
    check(group(table(), NULL, call("count", col("a"), NULL)), "Aggregate count(a)\n  " M "[a]");
}

/* sum(of + first), sum(of + first + 1), sum(of - 1). Takes over `of`. */
static struct gar_plan *sums(struct gar_expr *of, int64_t first)
{
    struct gar_plan *input = table();
    struct gar_expr *exprs[3] = {
        alias(call("sum", call("add", gar_expr_ref(of), lit(first)), NULL), "x"),
        alias(call("sum", call("add", lit(first + 1), gar_expr_ref(of)), NULL), "y"),
        alias(call("sum", call("subtract", of, lit(1)), NULL), "z")};
    struct gar_plan *plan = NULL;
    assert_int_equal(gar_plan_aggregate(input, NULL, 0, exprs, 3, &plan, NULL), GAR_OK);
    for (int i = 0; i < 3; i++) {
        gar_expr_unref(exprs[i]);
    }
    gar_plan_unref(input);
    return plan;
}

#define SUM   "\"sum(cast(a as int16))\""
#define COUNT "\"count(cast(a as int16))\""

static void sums_are_split(void **state)
{
    (void)state;
    check(sums(cast(col("a"), GAR_INT16), 5),
          "Project " SUM " + " COUNT " * 5 as x, " SUM " + " COUNT " * 6 as y, " SUM " + " COUNT
          " * -1 as z\n  Aggregate sum(cast(a as int16)) as " SUM
          ", count(cast(a as int16)) as " COUNT "\n    " M "[a]");
    /* Too wide a column, and a sum that may leave its type: then the error is the user's. */
    check(sums(col("a"), 5),
          "Aggregate sum(a + 5) as x, sum(6 + a) as y, sum(a - 1) as z\n  " M "[a]");
}

static void rules_can_be_switched_off(void **state)
{
    (void)state;
    struct gar_strbuf all = {0};
    struct gar_error err = GAR_ERROR_INIT;
    for (int64_t i = 0; i < gar_optimize_rule_count(); i++) {
        gar_strbuf_printf(&all, "%s, ", gar_optimize_rule_name(i));
    }
    assert_int_equal(gar_optimize_check_names(gar_strbuf_text(&all), &err), GAR_OK);
    assert_int_equal(gar_optimize_check_names(NULL, &err), GAR_OK);
    assert_int_equal(gar_optimize_check_names("simplify,simplif", &err), GAR_ERR_VALUE);
    assert_non_null(strstr(err.message, "no rule simplif; its rules are fold_constants, simplify"));
    struct gar_plan *plan =
        project2(filter(table(), call("and", truth(true), col("t"))), col("a"), NULL);
    struct gar_plan *out = NULL;
    struct gar_strbuf fired = {0};
    assert_int_equal(gar_optimize(plan, gar_strbuf_text(&all), &fired, &out, NULL), GAR_OK);
    assert_ptr_equal(out, plan);
    gar_plan_unref(out);
    assert_int_equal(gar_optimize(plan, "push_filters", &fired, &out, NULL), GAR_OK);
    assert_string_equal(gar_strbuf_text(&fired), "simplify, prune_columns");
    gar_plan_unref(out);
    gar_plan_unref(plan);
    gar_strbuf_destroy(&all);
    gar_strbuf_destroy(&fired);
}

/* Every allocation fails once: an error or a plan, nothing leaked. */
static void refused_memory(void **state)
{
    (void)state;
    struct gar_plan *plan =
        limit(project2(filter(sort(concat(with(table(), alias(call("add", col("a"), lit(1)), "x")),
                                          with(filter(table(), col("t")), alias(lit(2), "x"))),
                                   col("x")),
                              call("and", call("less", lit(1), col("x")),
                                   call("not", call("equal", col("a"), lit(1)), NULL))),
                       alias(col("x"), "y"), col("s")),
              1, 5);
    for (int64_t n = 1; n < 100000; n++) {
        const int64_t before = gar_alloc_live_blocks();
        struct gar_plan *out = NULL;
        gar_alloc_fail_at(n, false);
        const enum gar_status status = gar_optimize(plan, NULL, NULL, &out, NULL);
        const int64_t made = gar_alloc_fail_at(0, false);
        gar_plan_unref(out);
        assert_int_equal(gar_alloc_live_blocks(), before);
        assert_true(status >= 0 || status == GAR_ERR_NOMEM);
        if (status >= 0 && made < n) {
            break;
        }
    }
    gar_plan_unref(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folding),
        cmocka_unit_test(simplification),
        cmocka_unit_test(filters_go_down),
        cmocka_unit_test(filters_stay),
        cmocka_unit_test(filters_are_ordered),
        cmocka_unit_test(limits),
        cmocka_unit_test(projections),
        cmocka_unit_test(columns),
        cmocka_unit_test(joins),
        cmocka_unit_test(join_order),
        cmocka_unit_test(counts),
        cmocka_unit_test(sums_are_split),
        cmocka_unit_test(rules_can_be_switched_off),
        cmocka_unit_test(refused_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
