/* SPDX-License-Identifier: Apache-2.0 */
/* Text to typed rows: values, nulls, quotes, ragged rows, errors with their lines; the same for every block size. */
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cpu.h"
#include "formats/csv/csv_test_priv.h"

/* types: one gar_type_parse text per column, separated by ';'. */
static struct gar_csv_parser *make_parser(const struct gar_csv_format *format,
                                          const struct gar_csv_dialect *d, const char *types)
{
    struct gar_error err = GAR_ERROR_INIT;
    struct gar_field fields[32] = {0};
    struct gar_csv_column columns[32] = {0};
    static char names[32][4];
    int64_t count = 0;
    while (*types != '\0') {
        const int64_t bytes = (int64_t)strcspn(types, ";");
        (void)snprintf(names[count], sizeof names[count], "c%lld", (long long)count);
        fields[count].name = names[count];
        fields[count].nullable = true;
        assert_int_equal(gar_type_parse(types, bytes, &fields[count].type, &err), GAR_OK);
        columns[count].field = count;
        count++;
        types += bytes + (types[bytes] == ';');
    }
    struct gar_schema *schema = NULL;
    assert_int_equal(gar_schema_new(fields, count, false, &schema, &err), GAR_OK);
    const struct gar_csv_parser_parts parts = {.format = format,
                                               .dialect = *d,
                                               .path = "f.csv",
                                               .field_count = count,
                                               .schema = schema,
                                               .columns = columns};
    struct gar_csv_parser *parser = NULL;
    assert_int_equal(gar_csv_parser_new(&parts, &parser, &err), GAR_OK);
    gar_schema_unref(schema);
    return parser;
}

static void check_as(const struct gar_csv_format *format, const char *types, const void *text,
                     int64_t bytes, const char *right)
{
    const struct gar_csv_dialect d = gar_csv_dialect_of(format, text, bytes);
    struct gar_csv_parser *parser = make_parser(format, &d, types);
    for (int isa = GAR_ISA_PORTABLE; isa <= (int)GAR_ISA_AVX512; isa++) {
        (void)gar_cpu_set_isa((enum gar_isa)isa);
        for (int64_t block = 0; block <= 64; block++) {
            struct gar_strbuf got = {0};
            parse_text(parser, &d, text, bytes, block == 0 ? bytes + 1 : block,
                       block % 2 == 0 ? 1000 : block, &got);
            assert_string_equal(gar_strbuf_text(&got), right);
            gar_strbuf_destroy(&got);
        }
    }
    (void)gar_cpu_set_isa(GAR_ISA_AVX512);
    gar_csv_parser_free(parser);
}

static void check(const char *types, const char *text, const char *right)
{
    const struct gar_csv_format format = gar_csv_format_default();
    check_as(&format, types, text, (int64_t)strlen(text), right);
}

static void test_numbers(void **state)
{
    (void)state;
    check("int64",
          "1\n-2\n0\n-0\n007\n+5\n 12 \n\"34\"\n\"\"\n\n9223372036854775807\n-9223372036854775808\n"
          "1234567890123456\n-123456789012345\n12345678\n123456789\n",
          "1;-2;0;0;7;5;12;34;null;null;9223372036854775807;-9223372036854775808;1234567890123456;-"
          "123456789012345;"
          "12345678;123456789;");
    check("uint64;int8", "18446744073709551615,-128\n0,127", "18446744073709551615,-128;0,127;");
    check("double",
          "1.5\n.5\n1.\n-0.25\n1e3\n-1E-2\n123456789012345\n1234567890123456\n0.1\n21168."
          "23\n1234567.123456789\n",
          "1.5;0.5;1.0;-0.25;1000.0;-0.01;123456789012345.0;1234567890123456.0;0.1;21168.23;"
          "1234567.123456789;");
    check("decimal(15,2)", "1\n1.5\n-1.25\n.5\n21168.23\n9999999999999.99\n\"7.10\"\n0.500\n",
          "1.00;1.50;-1.25;0.50;21168.23;9999999999999.99;7.10;0.50;");
    check("decimal(38,10)", "1234567890123456789012345678.0123456789\n-1.5\n",
          "1234567890123456789012345678.0123456789;-1.5000000000;");
}

static void test_number_errors(void **state)
{
    (void)state;
    check("int64", "1\n2\nx\n", "error: f.csv, line 3, column 'c0': 'x' is no int64");
    check("int8", "128\n", "error: f.csv, line 1, column 'c0': '128' is out of the range of int8");
    check("int64", "9223372036854775808\n",
          "error: f.csv, line 1, column 'c0': '9223372036854775808' is out of the range of int64");
    check("int64", "1.0\n", "error: f.csv, line 1, column 'c0': '1.0' is no int64");
    check("int64", "1-2\n", "error: f.csv, line 1, column 'c0': '1-2' is no int64");
    check("int64", "-\n", "error: f.csv, line 1, column 'c0': '-' is no int64");
    check("double", ".\n", "error: f.csv, line 1, column 'c0': '.' is no float64");
    check("double", "1.2.3\n", "error: f.csv, line 1, column 'c0': '1.2.3' is no float64");
    check("decimal(5,2)", "1000\n",
          "error: f.csv, line 1, column 'c0': '1000' is out of the range of decimal(5, 2)");
    check("decimal(5,2)", "1.234\n",
          "error: f.csv, line 1, column 'c0': '1.234' is no decimal(5, 2)");
    check("uint8", "-1\n", "error: f.csv, line 1, column 'c0': '-1' is out of the range of uint8");
}

static void test_times(void **state)
{
    (void)state;
    check("date", "1996-03-13\n1970-01-01\n2024-02-29\n0001-01-01\n9999-12-31\n\n1900-02-28\n",
          "date '1996-03-13';date '1970-01-01';date '2024-02-29';date '0001-01-01';date "
          "'9999-12-31';null;date "
          "'1900-02-28';");
    check("date", "2023-02-29\n", "error: f.csv, line 1, column 'c0': '2023-02-29' is no date");
    check("date", "2023-13-01\n", "error: f.csv, line 1, column 'c0': '2023-13-01' is no date");
    check("date", "2023-00-10\n", "error: f.csv, line 1, column 'c0': '2023-00-10' is no date");
    check("date", "2023-04-31\n", "error: f.csv, line 1, column 'c0': '2023-04-31' is no date");
    check("boolean", "true\nFALSE\nTrue\n\n\"false\"\n", "true;false;true;null;false;");
    check("boolean", "yes\n", "error: f.csv, line 1, column 'c0': 'yes' is no bool");
    check("timestamp[us, UTC]",
          "2024-01-02T03:04:05Z\n2024-01-02 03:04:05.5+01:00\n2024-01-02 00:00:00\n",
          "timestamptz '2024-01-02 03:04:05.000000Z';timestamptz '2024-01-02 "
          "02:04:05.500000Z';timestamptz '2024-01-02 "
          "00:00:00.000000Z';");
    check("timestamp[us]", "2024-01-02T03:04:05Z\n",
          "error: f.csv, line 1, column 'c0': '2024-01-02T03:04:05Z' has a UTC offset, which "
          "timestamp[us] cannot hold; "
          "give the column a type with a time zone");
}

static void test_text(void **state)
{
    (void)state;
    check("string;string",
          "a,b\n\"x,y\",\"say \"\"hi\"\"\"\n,\"\"\n 1 ,\"two\nlines\"\n5\" pipe,\"longer than "
          "twelve\"\n"
          "longer than twelve too,\"\"\"quoted and long\"\"\"\n",
          "'a','b';'x,y','say \"hi\"';null,'';' 1 ','two\\nlines';'5\" pipe','longer than "
          "twelve';'longer than twelve "
          "too','\"quoted and long\"';");
    check("string;int64", "a,1\r\n\"b\",2\r\n,3\r\n\"c\r\nd\",\r\n",
          "'a',1;'b',2;null,3;'c\\r\\nd',null;");
    check("string", "a\r\n\r\n\"\"\r\n", "'a';null;'';");
    check("string;string", "a\rb,c\n", "'a\\rb','c';");
    check("string;string", "a,b\rc,d\r", "'a','b';'c','d';");
    check("string;string", "a,\"b\"x\n",
          "error: f.csv, line 1, column 'c1': a quoted field must end with its closing quote, got "
          "\"b\"x; quotes inside are "
          "doubled, or another quote character is needed");
    check("string;string", "a,\"b\"\"c\" \"d\"\n",
          "error: f.csv, line 1, column 'c1': a quoted field must end with its closing quote, got "
          "\"b\"\"c\" \"d\"; quotes "
          "inside are doubled, or another quote character is needed");
    check("string", "\xc3\xa4\xe2\x82\xac\n", "'\xc3\xa4\xe2\x82\xac';");
    check("string;string", "ok,1\nok,\xc3\xa4\nok,\xff\n",
          "error: f.csv, line 3, column 'c1': '\\xff' is not valid UTF-8; convert the file, or "
          "give the column the type "
          "binary");
}

static void test_records(void **state)
{
    (void)state;
    check("int64;int64", "1,2\n\n3,4\n\r\n5,6", "1,2;3,4;5,6;");
    check("int64;int64;int64", "1,2,3\n1,2\n",
          "error: f.csv, line 2: 2 fields where 3 are expected; with allow_variable_columns "
          "short rows are filled with "
          "null and extra fields dropped");
    struct gar_csv_format format = gar_csv_format_default();
    format.allow_variable_columns = true;
    static const char ragged[] = "1,2,3\n1,2\n1,2,3,4\n1\n\"5\",\"6\",\"7\",\"8,9\",10,11\n";
    check_as(&format, "int64;int64;int64", ragged, (int64_t)strlen(ragged),
             "1,2,3;1,2,null;1,2,3;1,null,null;5,6,7;");
    format = gar_csv_format_default();
    format.comment = '#';
    static const char commented[] = "#a\n1,2\n#,\"\n#\n3,4\n5,#6\n#end";
    check_as(&format, "int64;string", commented, (int64_t)strlen(commented), "1,'2';3,'4';5,'#6';");
    check_as(&format, "string", "#a\nb\n#\n", 7, "'b';");
    format = gar_csv_format_default();
    format.escape = '\\';
    static const char escaped[] = "a\\,b,\"c\\\"d\"\n\"x\\\\\",\"a value that is long\\n\"\n";
    check_as(&format, "string;string", escaped, (int64_t)strlen(escaped),
             "'a,b','c\"d';'x\\','a value that is longn';");
    format = gar_csv_format_default();
    static const char *const nulls[] = {"NA", "-1"};
    format.nulls = nulls;
    format.null_count = 2;
    static const char spelled[] = "NA,NA\n-1,\"NA\"\n1,x\n\"NA\",-1\n";
    check_as(&format, "int64;string", spelled, (int64_t)strlen(spelled),
             "null,null;null,'NA';1,'x';null,null;");
}

static void test_nul_and_unclosed(void **state)
{
    (void)state;
    const struct gar_csv_format format = gar_csv_format_default();
    check_as(&format, "string;int64", "a\0b,1\n", 6, "'a\\x00b',1;");
    check_as(&format, "int64", "\"1\n2\n", 5,
             "error: f.csv, line 1: a quoted field is never closed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_number_errors),
        cmocka_unit_test(test_times),   cmocka_unit_test(test_text),
        cmocka_unit_test(test_records), cmocka_unit_test(test_nul_and_unclosed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
