/* SPDX-License-Identifier: Apache-2.0 */
/* Types, schemas and values: their texts, what is refused and what the messages say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arrow/schema.h"
#include "arrow/value.h"
#include "base/alloc.h"

static void assert_type_text(const char *text, const char *expected)
{
    struct gar_type type = {0};
    struct gar_error err = GAR_ERROR_INIT;
    const enum gar_status status = gar_type_parse(text, (int64_t)strlen(text), &type, &err);
    if (expected == NULL) {
        assert_int_equal(status, GAR_ERR_VALUE);
        assert_non_null(strstr(err.message, "unknown type"));
        return;
    }
    assert_int_equal(status, GAR_OK);
    char printed[200];
    assert_string_equal(gar_type_text(type, printed, (int64_t)sizeof printed), expected);
    assert_int_equal(gar_type_check(type, NULL), GAR_OK);
}

static void type_texts_read_back(void **state)
{
    (void)state;
    assert_type_text("int64", "int64");
    assert_type_text(" BIGINT ", "int64");
    assert_type_text("Double   Precision", "float64");
    assert_type_text("varchar(10)", "string");
    assert_type_text("DECIMAL( 15 ,2 )", "decimal(15, 2)");
    assert_type_text("decimal(15, 2)", "decimal(15, 2)");
    assert_type_text("numeric(5)", "decimal(5, 0)");
    assert_type_text("timestamp[us, UTC]", "timestamp[us, UTC]");
    assert_type_text("timestamp[ns,Europe/Berlin]", "timestamp[ns, Europe/Berlin]");
    assert_type_text("timestamptz", "timestamp[us, UTC]");
    assert_type_text("time[ns]", "time[ns]");
    assert_type_text("duration[ms]", "duration[ms]");
    assert_type_text("null", "null");
    assert_type_text("decimal(39, 2)", NULL);
    assert_type_text("decimal(5, 6)", NULL);
    assert_type_text("timestamp[min]", NULL);
    assert_type_text("int64(3)", NULL);
    assert_type_text("duration[us, UTC]", NULL);
    assert_type_text("", NULL);
    assert_type_text("list<int64>", NULL);
    assert_type_text("timestamp[us", NULL);
}

static void zones_are_interned(void **state)
{
    (void)state;
    const char *a = gar_zone_intern("Asia/Tokyo", 10, NULL);
    assert_non_null(a);
    assert_ptr_equal(a, gar_zone_intern("Asia/Tokyo!", 10, NULL));
    assert_ptr_not_equal(a, gar_zone_intern("Asia/Toky", 9, NULL));
    assert_null(gar_zone_intern("", 0, NULL));
    assert_null(gar_zone_intern("a\nb", 3, NULL));
}

static void unknown_columns_name_near_ones(void **state)
{
    (void)state;
    char names[3][16] = {"l_orderkey", "l_quantity", "l_tax"};
    struct gar_field fields[3] = {0};
    for (int i = 0; i < 3; i++) {
        fields[i].name = names[i];
        fields[i].type = gar_type_of(GAR_INT64);
    }
    struct gar_schema *schema = NULL;
    struct gar_error err = GAR_ERROR_INIT;
    int64_t at = -1;
    assert_int_equal(gar_schema_new(fields, 3, false, &schema, NULL), GAR_OK);
    assert_int_equal(gar_schema_get(schema, "l_tax", &at, NULL), GAR_OK);
    assert_int_equal(at, 2);
    assert_int_equal(gar_schema_get(schema, "l_quantty", &at, &err), GAR_ERR_COLUMN);
    assert_string_equal(
        err.message, "unknown column 'l_quantty'; did you mean 'l_quantity'? (columns: l_orderkey, "
                     "l_quantity, l_tax)");
    assert_int_equal(gar_schema_get(schema, "zzz", &at, &err), GAR_ERR_COLUMN);
    assert_null(strstr(err.message, "did you mean"));
    gar_schema_unref(schema);
    memcpy(names[2], "l_orderkey", 11);
    assert_int_equal(gar_schema_new(fields, 3, false, &schema, &err), GAR_ERR_VALUE);
    assert_non_null(strstr(err.message, "'l_orderkey'"));
    assert_int_equal(gar_schema_new(fields, 3, true, &schema, &err), GAR_OK);
    assert_int_equal(gar_schema_find(schema, "l_orderkey"), 0);
    gar_schema_unref(schema);
    memcpy(names[2], "\xff", 2);
    assert_int_equal(gar_schema_new(fields, 3, true, &schema, &err), GAR_ERR_VALUE);
}

static void assert_value(const char *type_text, const char *text, const char *sql,
                         const char *plain)
{
    struct gar_type type = {0};
    struct gar_value value = {0};
    struct gar_strbuf sb = {0};
    assert_int_equal(gar_type_parse(type_text, (int64_t)strlen(type_text), &type, NULL), GAR_OK);
    assert_int_equal(gar_value_from_text(type, text, (int64_t)strlen(text), &value, NULL), GAR_OK);
    gar_value_print(&value, &sb);
    assert_string_equal(gar_strbuf_text(&sb), sql);
    gar_strbuf_clear(&sb);
    gar_value_print_plain(&value, 8, &sb);
    assert_string_equal(gar_strbuf_text(&sb), plain);
    gar_strbuf_destroy(&sb);
    gar_value_destroy(&value);
}

static void values_print(void **state)
{
    (void)state;
    assert_value("int8", "-128", "-128", "-128");
    assert_value("string", "it's\n", "'it''s\\n'", "it's\\n");
    assert_value("string", "abcdefghij", "'abcdefghij'", "abcdefgh…");
    assert_value("string", "abcdefg\xc3\xa4", "'abcdefg\xc3\xa4'", "abcdefg…");
    assert_value("string", "\x1b[31m", "'\\x1b[31m'", "\\x1b[31m");
    assert_value("binary", "\x01z", "x'017a'", "017a");
    assert_value("date", "1998-12-01", "date '1998-12-01'", "1998-12-01");
    assert_value("decimal(5, 2)", "1.5", "1.50", "1.50");
    assert_value("bool", "TRUE", "true", "true");
    assert_value("duration[us]", "-1500000", "interval '-00:00:01.500000'", "-00:00:01.500000");
    assert_value("timestamp[s]", "2024-01-02 03:04:05", "timestamp '2024-01-02 03:04:05'",
                 "2024-01-02 03:04:05");
    struct gar_value value = {0};
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(gar_value_from_text(gar_type_of(GAR_INT8), "300", 3, &value, &err),
                     GAR_ERR_OVERFLOW);
    assert_string_equal(err.message, "'300' does not fit int8");
    assert_int_equal(gar_value_from_text(gar_type_of(GAR_DATE), "soon", 4, &value, &err),
                     GAR_ERR_VALUE);
}

static struct gar_type list_of(struct gar_type item)
{
    const struct gar_nest_field field = {"element", item, false};
    return gar_type_nested(GAR_LIST, gar_nest_intern(GAR_LIST, &field, 1, 0, NULL));
}

static void assert_nest_text(struct gar_type type, const char *want)
{
    char text[256];
    assert_int_equal(gar_type_check(type, NULL), GAR_OK);
    assert_string_equal(gar_type_text(type, text, (int64_t)sizeof text), want);
}

static void nests_are_interned(void **state)
{
    (void)state;
    const struct gar_type i64 = gar_type_of(GAR_INT64);
    const struct gar_nest_field pair[2] = {{"a", i64, false}, {"b", list_of(i64), true}};
    const struct gar_nest_field other[2] = {{"a", i64, true}, {"c", list_of(i64), true}};
    const struct gar_nest *nest = gar_nest_intern(GAR_STRUCT, pair, 2, 0, NULL);
    assert_non_null(nest);
    assert_ptr_equal(nest, gar_nest_intern(GAR_STRUCT, pair, 2, 0, NULL));
    assert_true(nest->fields[0].nullable);
    assert_int_equal(nest->depth, 2);
    assert_ptr_not_equal(nest, gar_nest_intern(GAR_STRUCT, other, 2, 0, NULL));
    assert_nest_text(gar_type_nested(GAR_STRUCT, nest), "struct[a: int64, b: list[int64]]");
    assert_nest_text(gar_type_nested(GAR_MAP, gar_nest_intern(GAR_MAP, pair, 2, 0, NULL)),
                     "map[int64, list[int64]]");
    assert_nest_text(
        gar_type_nested(GAR_FIXED_LIST, gar_nest_intern(GAR_FIXED_LIST, pair, 1, 4, NULL)),
        "fixed_list[int64, 4]");
    assert_nest_text(gar_type_nested(GAR_STRUCT, gar_nest_intern(GAR_STRUCT, NULL, 0, 0, NULL)),
                     "struct[]");
    assert_true(gar_type_equal(list_of(i64), list_of(i64)));
    assert_false(gar_type_equal(list_of(i64), list_of(gar_type_of(GAR_INT32))));
}

static void unfit_nests_are_refused(void **state)
{
    (void)state;
    const struct gar_type i64 = gar_type_of(GAR_INT64);
    const struct gar_nest_field twice[2] = {{"a", i64, true}, {"a", i64, true}};
    const struct gar_nest_field nameless = {NULL, i64, true};
    const struct gar_nest_field hollow = {"a", gar_type_of(GAR_LIST), true};
    struct gar_error err = GAR_ERROR_INIT;
    assert_null(gar_nest_intern(GAR_STRUCT, twice, 2, 0, &err));
    assert_string_equal(err.message, "a struct has two fields 'a'; names must be distinct");
    assert_null(gar_nest_intern(GAR_STRUCT, &nameless, 1, 0, NULL));
    assert_null(gar_nest_intern(GAR_LIST, &hollow, 1, 0, NULL));
    assert_null(gar_nest_intern(GAR_LIST, twice, 2, 0, NULL));
    assert_null(gar_nest_intern(GAR_MAP, twice, 1, 0, NULL));
    assert_null(gar_nest_intern(GAR_FIXED_LIST, twice, 1, -1, NULL));
    assert_null(gar_nest_intern(GAR_INT64, twice, 1, 0, NULL));
    struct gar_type deep = i64;
    for (int32_t i = 0; i < GAR_NEST_DEPTH_MAX; i++) {
        deep = list_of(deep);
        assert_int_equal(gar_type_check(deep, NULL), GAR_OK);
    }
    assert_null(list_of(deep).nest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(type_texts_read_back),
        cmocka_unit_test(zones_are_interned),
        cmocka_unit_test(unknown_columns_name_near_ones),
        cmocka_unit_test(values_print),
        cmocka_unit_test(nests_are_interned),
        cmocka_unit_test(unfit_nests_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
