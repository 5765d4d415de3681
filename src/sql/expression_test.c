/* SPDX-License-Identifier: Apache-2.0 */
/* SQL expressions: constant ones are folded and compared with their value; others by their tree;
 * bad ones by message and place. */
#include "sql/expression.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "expr/program.h"

static struct gar_schema *make_schema(void)
{
    const struct gar_field fields[] = {
        {.name = (char[]){"a"}, .type = {.id = GAR_INT64}},
        {.name = (char[]){"B"}, .type = {.id = GAR_FLOAT64}},
        {.name = (char[]){"s"}, .type = {.id = GAR_STRING}},
        {.name = (char[]){"a.b"}, .type = {.id = GAR_INT64}},
        {.name = (char[]){"Name"}, .type = {.id = GAR_STRING}},
        {.name = (char[]){"name"}, .type = {.id = GAR_STRING}},
    };
    struct gar_schema *schema = NULL;
    assert_int_equal(gar_schema_new(fields, GAR_COUNT_OF(fields), false, &schema, NULL), GAR_OK);
    return schema;
}

static void expect_result(const char *sql, const char *expected)
{
    struct gar_error err = GAR_ERROR_INIT;
    struct gar_expr *expr = NULL;
    struct gar_value value;
    if (gar_sql_parse_expression(sql, (int64_t)strlen(sql), NULL, &expr, &err) != GAR_OK) {
        fail_msg("%s: %s", sql, err.message);
    }
    if (gar_expr_fold(expr, &value, &err) != GAR_OK) {
        fail_msg("%s: %s", sql, err.message);
    }
    struct gar_strbuf text = {0};
    gar_value_print_plain(&value, -1, &text);
    if (strcmp(gar_strbuf_text(&text), expected) != 0) {
        fail_msg("%s is %s, expected %s", sql, gar_strbuf_text(&text), expected);
    }
    gar_strbuf_destroy(&text);
    gar_value_destroy(&value);
    gar_expr_unref(expr);
}

static void test_values(void **state)
{
    (void)state;
    expect_result("1 + 2 * 3", "7");
    expect_result("(1 + 2) * 3", "9");
    expect_result("10 - 3 - 2", "5");
    expect_result("- -5", "5");
    expect_result("2 ** 3 ** 2 = 512", "true");
    expect_result("7 // 2", "3");
    expect_result("7 % 4", "3");
    expect_result("-9223372036854775808", "-9223372036854775808");
    expect_result("18446744073709551615", "18446744073709551615");
    expect_result("1_000", "1000");
    expect_result("0.05 + 0.1", "0.15");
    expect_result("1.50", "1.50");
    expect_result("1e3", "1000.0");
    expect_result("'it''s'", "it's");
    expect_result("'a' || 'b'", "ab");
    expect_result("not 1 = 2 and true", "true");
    expect_result("not (1 = 1 or 1 = 2)", "false");
    expect_result("1 < 2 or null", "true");
    expect_result("1 between 0 and 2 and 3 not between 4 and 5", "true");
    expect_result("2 in (1, 2, 3)", "true");
    expect_result("2 not in (1, 3)", "true");
    expect_result("'x' in ('y', 'x')", "true");
    expect_result("(2 in (1, null)) is null", "true");
    expect_result("2 in (1, 1 + 1)", "true");
    expect_result("null is null", "true");
    expect_result("1 is not null", "true");
    expect_result("(1 = 2) is false", "true");
    expect_result("1 is distinct from null", "true");
    expect_result("null is not distinct from null", "true");
    expect_result("'abc' like 'a%' and 'abc' not like 'b%'", "true");
    expect_result("'ABC' ilike 'a_c'", "true");
    expect_result("case when 1 = 2 then 'x' when true then 'y' else 'z' end", "y");
    expect_result("case 3 when 1 then 'one' when 3 then 'three' end", "three");
    expect_result("cast('12' as bigint) + 1", "13");
    expect_result("'2'::int + '3'::int64", "5");
    expect_result("cast('1.25' as decimal(10, 2))", "1.25");
    expect_result("try_cast('x' as int) is null", "true");
    expect_result("extract(year from date '1998-12-01')", "1998");
    expect_result("date '1998-12-01' - interval '90' day", "1998-09-02");
    expect_result("date '2024-01-31' + interval 1 month", "2024-02-29");
    expect_result("date '2024-01-31' + interval '1 year 1 month'", "2025-02-28");
    expect_result("substr('query', 3)", "ery");
    expect_result("substring('query' from 2 for 3)", "uer");
    expect_result("SuBsTrInG('query', 1, 1)", "q");
    expect_result("UPPER(lower('Ab'))", "AB");
    expect_result("coalesce(null, 2)", "2");
    expect_result("-- a comment\n 1 /* and /* another */ one */", "1");
    expect_result("-5::float64", "-5.0");
    expect_result("cast(0.05 as decimal(2, 2))", "0.05");
    expect_result("0.06 + 0.01 = 0.07", "true");
    expect_result("'50%' like '50!%' escape '!' and '5x' not like '5!%' escape '!'", "true");
    expect_result("substr('abc', 0, 2)", "a");
    expect_result("substr('abc', 1 - 1, 2)", "a");
    expect_result("substr('abc', 1 + 1, 2)", "bc");
    expect_result("substr('abc', -2)", "bc");
    expect_result("extract(dow from date '2024-09-01')", "0");
    expect_result("extract(isodow from date '2024-09-01')", "7");
    expect_result("extract(week from date '2024-01-01')", "1");
    expect_result("extract(millisecond from timestamp '2024-01-01 00:00:02.5')", "2500");
    expect_result("date '1998-12-01' - interval '90' day (3)", "1998-09-02");
    expect_result(
        "timestamp '2024-01-01 00:00:00.123456789' > timestamp '2024-01-01 00:00:00.123456788'",
        "true");
    expect_result("timestamp '2024-01-01 02:00:00+02:00' = timestamp '2024-01-01 00:00:00Z'",
                  "true");
}

static void test_names(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"a", "a"},     {"A", "a"},       {"b", "B"},
                                           {"\"B\"", "B"}, {"`s`", "s"},     {"\"a.b\"", "a.b"},
                                           {"a.b", "a.b"}, {"Name", "Name"}, {"name", "name"}};
    struct gar_schema *schema = make_schema();
    for (int64_t i = 0; i < GAR_COUNT_OF(cases); i++) {
        struct gar_expr *expr = NULL;
        assert_int_equal(gar_sql_parse_expression(cases[i][0], (int64_t)strlen(cases[i][0]), schema,
                                                  &expr, NULL),
                         GAR_OK);
        assert_int_equal(expr->kind, GAR_EXPR_COLUMN);
        assert_string_equal(expr->name, cases[i][1]);
        gar_expr_unref(expr);
    }
    gar_schema_unref(schema);
}

static void test_list(void **state)
{
    (void)state;
    static const char sql[] = "a, b * 2 as \"twice b\", upper(s) AS u, *";
    struct gar_schema *schema = make_schema();
    struct gar_expr **list = NULL;
    int64_t count = 0;
    assert_int_equal(gar_sql_parse_list(sql, sizeof sql - 1, schema, &list, &count, NULL), GAR_OK);
    assert_int_equal(count, 4);
    assert_string_equal(gar_expr_name(list[1]), "twice b");
    assert_string_equal(gar_expr_name(list[2]), "u");
    assert_string_equal(list[3]->name, "*");
    for (int64_t i = 0; i < count; i++) {
        gar_expr_unref(list[i]);
    }
    gar_free(list);
    gar_schema_unref(schema);
}

static void test_errors(void **state)
{
    (void)state;
    static const struct {
        const char *sql;
        int64_t position;
        const char *part; /* of the message */
    } cases[] = {
        {"", 0, "the text ends here"},
        {"1 +", 3, "the text ends here"},
        {"1 2", 2, "expected an operator or the end, got 2"},
        {"a = 'x", 4, "no closing quote"},
        {"a ? 1", 2, "no meaning"},
        {"(a", 2, "')'"},
        {"a in ()", 5, "at least one value"},
        {"a is 3", 5, "DISTINCT FROM"},
        {"a not 3", 6, "IN, BETWEEN"},
        {"cast(a as nothing)", 10, "nothing"},
        {"extract(upper from s)", 8, "year"},
        {"s like 'a!' escape '!'", 19, "ends with its escape"},
        {"1e999", 0, "too large"},
        {"cast(a int)", 7, "expected as"},
        {"uper(s)", 0, "upper"},
        {"lower()", 0, "lower"},
        {"12abc", 2, "letters"},
        {"interval 'x' day", 9, "INTERVAL"},
        {"date 'no'", 5, "no"},
        {"NAME = 1", 0, "ambiguous"},
        {"case a end", 7, "WHEN"},
        {"and", 0, "a value"},
        {"SELECT 1", 0, "statements are not taken here"},
        {" (select * from t)", 2, "statements are not taken here"},
        {"nam = 1", 0, "nam"},
        {"a > 1 and\n upper(nam) = 1", 17, "line 2, column 8"},
        {"a + selec", 4, "unknown column 'selec'"},
        {"a.c = 1", 0, "a.c"},
    };
    struct gar_schema *schema = make_schema();
    for (int64_t i = 0; i < GAR_COUNT_OF(cases); i++) {
        struct gar_error err = GAR_ERROR_INIT;
        struct gar_expr *expr = NULL;
        const enum gar_status status = gar_sql_parse_expression(
            cases[i].sql, (int64_t)strlen(cases[i].sql), schema, &expr, &err);
        if (status >= 0 || expr != NULL || strstr(err.message, cases[i].part) == NULL ||
            err.position != cases[i].position) {
            fail_msg("'%s': status %d at %lld: %s", cases[i].sql, (int)status,
                     (long long)err.position, err.message);
        }
        const bool is_column = strstr(err.message, "unknown column") != NULL;
        assert_int_equal(status, is_column ? GAR_ERR_COLUMN : GAR_ERR_SYNTAX);
        assert_int_equal(err.message[strlen(err.message) - 1], '^');
    }
    gar_schema_unref(schema);
}

/* Whatever the words: an expression, or an error with a place in the text and a caret under it. */
static void test_places(void **state)
{
    (void)state;
    static const char *const words[] = {"a",        "B",    "s",        "nam",      "name",
                                        "1",        "2.5",  "1e999",    "'x'",      "'",
                                        "(",        ")",    ",",        "+",        "-",
                                        "*",        "/",    "%",        "//",       "**",
                                        "<",        "=",    "||",       "::",       "int8",
                                        "x9",       "and",  "or",       "not",      "is",
                                        "null",     "in",   "like",     "case",     "when",
                                        "then",     "else", "end",      "between",  "cast",
                                        "extract",  "year", "from",     "substr",   "for",
                                        "upper",    "date", "count",    "as",       "'2020-01-01'",
                                        "interval", "day",  "distinct", "select",   "escape",
                                        "\"b",      "\"",   ".",        "try_cast", "coalesce",
                                        "sum",      "ä",    "\n"};
    struct gar_schema *schema = make_schema();
    uint64_t random = 42;
    for (int round = 0; round < 20000; round++) {
        char text[256] = "";
        const uint64_t count = 1 + (random >> 33) % 12;
        for (uint64_t i = 0; i < count; i++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            const size_t used = strlen(text);
            (void)snprintf(text + used, sizeof text - used, "%s ",
                           words[(random >> 33) % (uint64_t)GAR_COUNT_OF(words)]);
        }
        struct gar_error err = GAR_ERROR_INIT;
        struct gar_expr *expr = NULL;
        const int64_t bytes = (int64_t)strlen(text);
        const enum gar_status status = gar_sql_parse_expression(text, bytes, schema, &expr, &err);
        gar_expr_unref(expr);
        if (status < 0 && (err.position < 0 || err.position > bytes ||
                           err.message[strlen(err.message) - 1] != '^')) {
            fail_msg("'%s': status %d at %lld: %s", text, (int)status, (long long)err.position,
                     err.message);
        }
    }
    gar_schema_unref(schema);
}

/* Deep nesting is refused, long chains are not. */
static void test_depth(void **state)
{
    (void)state;
    struct gar_strbuf text = {0};
    struct gar_expr *expr = NULL;
    gar_strbuf_append_fill(&text, '(', 100000);
    assert_int_equal(gar_sql_parse_expression(text.data, text.size, NULL, &expr, NULL),
                     GAR_ERR_SYNTAX);
    gar_strbuf_clear(&text);
    gar_strbuf_append(&text, "a = 0");
    for (int i = 1; i < 5000; i++) {
        gar_strbuf_printf(&text, " or a = %d", i);
    }
    assert_int_equal(gar_sql_parse_expression(text.data, text.size, NULL, &expr, NULL), GAR_OK);
    assert_true(expr->depth < 20);
    gar_expr_unref(expr);
    gar_strbuf_destroy(&text);
}

/* Every allocation fails once: an error, nothing leaked. */
static void test_memory(void **state)
{
    (void)state;
    static const char sql[] = "case when a in (1, 2) then upper(s) || 'x' else substr(s, a, 2) end "
                              "= 'k' and a between 1 and 2";
    const int64_t before = gar_alloc_live_blocks();
    for (int64_t n = 1;; n++) {
        struct gar_expr *expr = NULL;
        gar_alloc_fail_at(n, false);
        const enum gar_status status =
            gar_sql_parse_expression(sql, sizeof sql - 1, NULL, &expr, NULL);
        gar_alloc_fail_at(0, false);
        gar_expr_unref(expr);
        assert_int_equal(gar_alloc_live_blocks(), before);
        if (status == GAR_OK) {
            break;
        }
        assert_int_equal(status, GAR_ERR_NOMEM);
        assert_true(n < 10000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_names),  cmocka_unit_test(test_list),
        cmocka_unit_test(test_errors), cmocka_unit_test(test_places), cmocka_unit_test(test_depth),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
