/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as JSON objects. */
#include "formats/json/json_writer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "arrow/builder.h"

static struct gar_column *one_column(struct gar_type type, const void *values, const bool *valid,
                                     int64_t rows)
{
    struct gar_error err = GAR_ERROR_INIT;
    struct gar_builder builder;
    gar_builder_init(&builder, gar_memory_system(), type);
    for (int64_t i = 0; i < rows; i++) {
        enum gar_status status;
        if (!valid[i]) {
            status = gar_builder_append_null(&builder, &err);
        } else if (gar_type_is_text(type)) {
            const char *text = ((const char *const *)values)[i];
            status = gar_builder_append_bytes(&builder, text, (int64_t)strlen(text), &err);
        } else {
            status = gar_builder_append_fixed(
                &builder, (const uint8_t *)values + i * gar_type_width(type), &err);
        }
        assert_int_equal(status, GAR_OK);
    }
    struct gar_column *column = NULL;
    assert_int_equal(gar_builder_finish(&builder, &column, &err), GAR_OK);
    gar_builder_destroy(&builder);
    return column;
}

static void test_rows(void **state)
{
    (void)state;
    static const char *const texts[] = {"a \"b\" \\ \n\t\x01", "\xc3\xa4", ""};
    static const char *const bytes[] = {"M", "Ma", "Man"};
    static const double numbers[] = {1.5, (double)NAN, (double)-INFINITY};
    static const int64_t integers[] = {INT64_MIN, 0, INT64_MAX};
    static const int32_t days[] = {0, 0, -1};
    static const bool all[] = {true, true, true};
    static const bool some[] = {true, false, true};
    char names[5][8] = {"s\"", "b", "f", "i", "d"};
    const struct gar_field fields[] = {
        {.name = names[0], .type = gar_type_of(GAR_STRING)},
        {.name = names[1], .type = gar_type_of(GAR_BINARY)},
        {.name = names[2], .type = gar_type_of(GAR_FLOAT64)},
        {.name = names[3], .type = gar_type_of(GAR_INT64)},
        {.name = names[4], .type = gar_type_of(GAR_DATE)},
    };
    struct gar_column *columns[] = {
        one_column(fields[0].type, texts, all, 3),   one_column(fields[1].type, bytes, all, 3),
        one_column(fields[2].type, numbers, all, 3), one_column(fields[3].type, integers, some, 3),
        one_column(fields[4].type, days, all, 3),
    };
    struct gar_error err = GAR_ERROR_INIT;
    struct gar_schema *schema = NULL;
    struct gar_batch *batch = NULL;
    struct gar_strbuf out = {0};
    assert_int_equal(gar_schema_new(fields, 5, false, &schema, &err), GAR_OK);
    assert_int_equal(gar_batch_new(schema, columns, 3, &batch, &err), GAR_OK);
    assert_int_equal(gar_json_write_batch(batch, gar_memory_system(), &out, &err), GAR_OK);
    assert_string_equal(
        gar_strbuf_text(&out),
        "{\"s\\\"\":\"a \\\"b\\\" \\\\ "
        "\\n\\t\\u0001\",\"b\":\"TQ==\",\"f\":1.5,\"i\":-9223372036854775808,\"d\":\"1970-01-01\"}"
        "\n"
        "{\"s\\\"\":\"\xc3\xa4\",\"b\":\"TWE=\",\"f\":null,\"i\":null,\"d\":\"1970-01-01\"}\n"
        "{\"s\\\"\":\"\",\"b\":\"TWFu\",\"f\":null,\"i\":9223372036854775807,\"d\":\"1969-12-31\"}"
        "\n");
    gar_strbuf_destroy(&out);
    gar_batch_unref(batch);
    gar_schema_unref(schema);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
