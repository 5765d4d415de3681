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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(type_texts_read_back),
        cmocka_unit_test(zones_are_interned),
        cmocka_unit_test(unknown_columns_name_near_ones),
        cmocka_unit_test(values_print),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
