/* SPDX-License-Identifier: Apache-2.0 */
/* Batches to text, and back again. */
#include "formats/csv/csv_writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "arrow/builder.h"
#include "base/alloc.h"
#include "formats/csv/csv_test_priv.h"

/* A batch of one column per type text, built from rows of texts parsed by type; NULL is null. */
static struct gar_batch *make_batch(const char *const *types, int64_t columns,
                                    const char *const *cells, int64_t rows)
{
    struct gar_error err = GAR_ERROR_INIT;
    struct gar_field fields[16] = {0};
    struct gar_column *built[16] = {NULL};
    static char names[16][32];
    for (int64_t c = 0; c < columns; c++) {
        (void)snprintf(names[c], sizeof names[c], "c,%lld", (long long)c);
        fields[c].name = names[c];
        assert_int_equal(gar_type_parse(types[c], (int64_t)strlen(types[c]), &fields[c].type, &err),
                         GAR_OK);
        struct gar_builder builder;
        gar_builder_init(&builder, gar_memory_system(), fields[c].type);
        for (int64_t r = 0; r < rows; r++) {
            const char *cell = cells[r * columns + c];
            enum gar_status status;
            if (cell == NULL) {
                status = gar_builder_append_null(&builder, &err);
            } else if (gar_type_is_text(fields[c].type)) {
                status = gar_builder_append_bytes(&builder, cell, (int64_t)strlen(cell), &err);
            } else {
                const int64_t v = strtoll(cell, NULL, 10);
                status = fields[c].type.id == GAR_BOOL
                             ? gar_builder_append_bool(&builder, v != 0, &err)
                             : gar_builder_append_fixed(&builder, &v, &err);
            }
            assert_int_equal(status, GAR_OK);
        }
        assert_int_equal(gar_builder_finish(&builder, &built[c], &err), GAR_OK);
        gar_builder_destroy(&builder);
    }
    struct gar_schema *schema = NULL;
    struct gar_batch *batch = NULL;
    assert_int_equal(gar_schema_new(fields, columns, false, &schema, &err), GAR_OK);
    assert_int_equal(gar_batch_new(schema, built, rows, &batch, &err), GAR_OK);
    gar_schema_unref(schema);
    return batch;
}

static void check(const struct gar_batch *batch, const char *right)
{
    const struct gar_csv_writer_options options = {.delimiter = ',', .quote = '"'};
    struct gar_strbuf out = {0};
    struct gar_error err = GAR_ERROR_INIT;
    enum gar_status status = gar_csv_write_header(batch->schema, &options, &out, &err);
    if (status >= 0) {
        status = gar_csv_write_batch(batch, &options, gar_memory_system(), &out, &err);
    }
    assert_string_equal(status < 0 ? err.message : gar_strbuf_text(&out), right);
    gar_strbuf_destroy(&out);
}

static void test_values(void **state)
{
    (void)state;
    static const char *const types[] = {
        "string", "int64", "bool", "date", "timestamp[ms]", "timestamp[us, UTC]", "time[us]"};
    static const char *const cells[] = {
        "a",
        "1",
        "1",
        "19000",
        "1700000000123",
        "1700000000123456",
        "3723000001",
        NULL,
        NULL,
        NULL,
        NULL,
        NULL,
        NULL,
        NULL,
        "",
        "-5",
        "0",
        "-1",
        "0",
        "-1",
        "0",
        "a,\"b\"\n",
        "0",
        "0",
        "0",
        "0",
        "0",
        "0",
    };
    struct gar_batch *batch = make_batch(types, 7, cells, 4);
    check(
        batch,
        "\"c,0\",\"c,1\",\"c,2\",\"c,3\",\"c,4\",\"c,5\",\"c,6\"\n"
        "a,1,true,2022-01-08,2023-11-14T22:13:20.123,2023-11-14T22:13:20.123456Z,01:02:03.000001\n"
        ",,,,,,\n"
        "\"\",-5,false,1969-12-31,1970-01-01T00:00:00.000,1969-12-31T23:59:59.999999Z,00:00:00."
        "000000\n"
        "\"a,\"\"b\"\"\n\",0,false,1970-01-01,1970-01-01T00:00:00.000,1970-01-01T00:00:00.000000Z,"
        "00:00:00.000000\n");
    gar_batch_unref(batch);
}

static void test_binary(void **state)
{
    (void)state;
    static const char *const types[] = {"binary"};
    static const char *const good[] = {"a text of sixteen", "\xc3\xa4"};
    static const char *const bad[] = {"a", "\xff"};
    struct gar_batch *batch = make_batch(types, 1, good, 2);
    check(batch, "\"c,0\"\na text of sixteen\n\xc3\xa4\n");
    gar_batch_unref(batch);
    batch = make_batch(types, 1, bad, 2);
    check(batch,
          "column 'c,0', row 1: a binary value that is not UTF-8 text cannot be written as CSV");
    gar_batch_unref(batch);
}

/* Texts of every kind come back through the parser as they were. */
static void test_round_trip(void **state)
{
    (void)state;
    static const char *const types[] = {"string", "string"};
    static const char *const cells[] = {
        "plain",
        "with, comma",
        "\"quoted\"",
        "line\nbreak",
        "line\r\nbreak",
        "\r",
        "",
        NULL,
        NULL,
        "",
        " blank ",
        "\ttab",
        "a\"b",
        "\"",
        "\"\"",
        "'",
        "\xe2\x82\xac",
        "longer than twelve bytes",
        "long, and \"quoted\" at that",
        "#x",
    };
    const int64_t rows = GAR_COUNT_OF(cells) / 2;
    struct gar_batch *batch = make_batch(types, 2, cells, rows);
    const struct gar_csv_writer_options options = {.delimiter = ',', .quote = '"'};
    struct gar_strbuf text = {0};
    struct gar_strbuf before = {0};
    struct gar_strbuf after = {0};
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(gar_csv_write_batch(batch, &options, gar_memory_system(), &text, &err),
                     GAR_OK);
    const struct gar_csv_format format = gar_csv_format_default();
    const struct gar_csv_dialect dialect =
        gar_csv_dialect_of(&format, (const uint8_t *)text.data, text.size);
    const struct gar_csv_column columns[] = {{.field = 0}, {.field = 1}};
    const struct gar_csv_parser_parts parts = {.format = &format,
                                               .dialect = dialect,
                                               .path = "f",
                                               .field_count = 2,
                                               .schema = batch->schema,
                                               .columns = columns};
    struct gar_csv_parser *parser = NULL;
    assert_int_equal(gar_csv_parser_new(&parts, &parser, &err), GAR_OK);
    print_rows(batch, &before);
    parse_text(parser, &dialect, (const uint8_t *)text.data, text.size, 32, 3, &after);
    assert_string_equal(gar_strbuf_text(&before), gar_strbuf_text(&after));
    gar_csv_parser_free(parser);
    gar_strbuf_destroy(&text);
    gar_strbuf_destroy(&before);
    gar_strbuf_destroy(&after);
    gar_batch_unref(batch);
}

/* Every allocation fails in turn. */
static void test_memory(void **state)
{
    (void)state;
    static const char *const types[] = {"string", "int64"};
    static const char *const cells[] = {"a", "1", "b,c", NULL};
    struct gar_batch *batch = make_batch(types, 2, cells, 2);
    const struct gar_csv_writer_options options = {.delimiter = ',', .quote = '"'};
    for (int64_t n = 1;; n++) {
        struct gar_strbuf out = {0};
        struct gar_error err = GAR_ERROR_INIT;
        (void)gar_alloc_fail_at(n, false);
        const enum gar_status status =
            gar_csv_write_batch(batch, &options, gar_memory_system(), &out, &err);
        (void)gar_alloc_fail_at(0, false);
        gar_strbuf_destroy(&out);
        if (status >= 0) {
            break;
        }
        assert_int_equal(status, GAR_ERR_NOMEM);
        assert_true(n < 100);
    }
    gar_batch_unref(batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_binary),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
