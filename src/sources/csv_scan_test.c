/* SPDX-License-Identifier: Apache-2.0 */
/* CSV files to rows and back: several files, projections, every block size, streams, compressed files, errors, faults. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "arrow/value.h"
#include "base/alloc.h"
#include "sources/csv_provider_priv.h"
#include "sources/sources.h"
#include "storage/compress.h"

static char folder[] = "/tmp/gar-csv-XXXXXX";

static const char *in_folder(const char *name)
{
    static char paths[8][512];
    static int next;
    next = (next + 1) % 8;
    (void)snprintf(paths[next], sizeof paths[next], "%s/%s", folder, name);
    return paths[next];
}

static int enter_folder(void **state)
{
    (void)state;
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int leave_folder(void **state)
{
    (void)state;
    char command[600];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static void put_file(const char *name, const void *data, int64_t bytes)
{
    FILE *file = fopen(in_folder(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, (size_t)bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static void put_text(const char *name, const char *text)
{
    put_file(name, text, (int64_t)strlen(text));
}

static struct gar_csv_options default_options(void)
{
    return (struct gar_csv_options){.struct_bytes = sizeof(struct gar_csv_options),
                                    .has_header = true,
                                    .delimiter = ',',
                                    .quote = '"',
                                    .double_quote = true,
                                    .infer_schema = true};
}

/* How a test reads. */
struct reading {
    const char *paths[4]; /* names in the folder, NULL-terminated */
    struct gar_csv_options options;
    int64_t columns[8];
    int64_t column_count; /* -1: all */
    int64_t block_bytes;  /* 0: default */
    int64_t max_rows;
};

static enum gar_status print_batch(const struct gar_batch *batch, struct gar_strbuf *out)
{
    for (int64_t r = 0; r < batch->rows; r++) {
        for (int64_t c = 0; c < batch->schema->count; c++) {
            struct gar_value value = {0};
            GAR_TRY(gar_value_from_column(batch->columns[c], r, &value, NULL));
            gar_strbuf_append(out, c > 0 ? "," : "");
            gar_value_print_plain(&value, 0, out);
            gar_value_destroy(&value);
        }
        gar_strbuf_append_char(out, ';');
    }
    return GAR_OK;
}

/* Of the last scan: rows, and how many of them knew their number. */
static int64_t rows_seen;
static int64_t rows_placed;

static enum gar_status run_scan(struct gar_scan *scan, int64_t max_rows, struct gar_strbuf *out,
                                struct gar_error *err)
{
    rows_seen = 0;
    rows_placed = 0;
    void *worker = NULL;
    GAR_TRY(scan->vtable->worker_new(scan, gar_memory_system(), &worker, err));
    struct gar_unit *unit = NULL;
    enum gar_status status;
    while ((status = scan->vtable->next(scan, &unit, err)) == GAR_OK) {
        struct gar_batch *batch = NULL;
        while ((status = scan->vtable->decode(scan, unit, worker, max_rows, &batch, err)) ==
               GAR_OK) {
            assert_true(batch->rows > 0 && batch->rows <= max_rows);
            assert_ptr_equal(batch->schema, scan->schema);
            if (gar_batch_origin(batch, 0) >= 0) {
                assert_int_equal(gar_batch_origin(batch, 0), rows_seen);
                rows_placed += batch->rows;
            }
            rows_seen += batch->rows;
            status = print_batch(batch, out);
            gar_batch_unref(batch);
            if (status < 0) {
                break;
            }
        }
        scan->vtable->unit_free(scan, unit);
        if (status < 0) {
            break;
        }
    }
    scan->vtable->worker_free(scan, worker);
    return status < 0 ? status : GAR_OK;
}

/* "name:type ... | rows" */
static enum gar_status read_csv(const struct reading *reading, struct gar_strbuf *out,
                                struct gar_error *err)
{
    const char *paths[4];
    int64_t count = 0;
    for (; count < 4 && reading->paths[count] != NULL; count++) {
        paths[count] = in_folder(reading->paths[count]);
    }
    struct gar_scan_provider *provider = NULL;
    struct gar_scan *scan = NULL;
    GAR_TRY(gar_csv_provider_new(paths, count, &reading->options, NULL, &provider, err));
    if (reading->block_bytes > 0) {
        csv_provider_set_block_bytes(provider, reading->block_bytes);
    }
    int64_t all[16];
    for (int64_t i = 0; i < 16; i++) {
        all[i] = i;
    }
    const struct gar_scan_request request = {
        .columns = reading->column_count < 0 ? all : reading->columns,
        .column_count = reading->column_count < 0 ? provider->schema->count : reading->column_count,
        .limit = -1,
        .batch_rows = reading->max_rows,
        .memory = gar_memory_system(),
    };
    enum gar_status status = provider->vtable->open(provider, &request, &scan, err);
    if (status >= 0) {
        for (int64_t i = 0; i < scan->schema->count; i++) {
            char type[64];
            gar_strbuf_printf(
                out, "%s:%s ", scan->schema->fields[i].name,
                gar_type_text(scan->schema->fields[i].type, type, (int64_t)sizeof type));
        }
        gar_strbuf_append(out, "| ");
        status = run_scan(scan, reading->max_rows, out, err);
        scan->vtable->free(scan);
    }
    gar_scan_provider_unref(provider);
    return status;
}

/* The rows, or the message without the folder. */
static void check(const struct reading *reading, const char *right)
{
    struct gar_strbuf got = {0};
    struct gar_error err = GAR_ERROR_INIT;
    if (read_csv(reading, &got, &err) < 0) {
        gar_strbuf_clear(&got);
        gar_strbuf_append(&got, err.message);
    }
    char *at;
    while (got.data != NULL && (at = strstr(got.data, folder)) != NULL) {
        memmove(at, at + strlen(folder) + 1, strlen(at + strlen(folder) + 1) + 1);
    }
    assert_string_equal(gar_strbuf_text(&got), right);
    gar_strbuf_destroy(&got);
}

static void check_everywhere(struct reading reading, const char *right)
{
    for (int64_t block = 0; block <= 64; block++) {
        reading.block_bytes = block;
        reading.max_rows = block == 0 ? 1000 : 1 + block % 7;
        check(&reading, right);
    }
}

static void test_files(void **state)
{
    (void)state;
    put_text("a.csv", "a,b,c\n1,x,2024-01-01\n2,\"y\nz\",\n");
    put_text("b.csv",
             "\xef\xbb\xbf"
             "c,a,b\r\n2024-02-29,3,\"\"\r\n,,w\r\n\r\n2020-01-01,5,last and a bit longer");
    put_text("empty.csv", "");
    struct reading reading = {
        .paths = {"a.csv", "empty.csv", "b.csv"}, .options = default_options(), .column_count = -1};
    check_everywhere(reading, "a:int64 b:string c:date | "
                              "1,x,2024-01-01;2,y\\nz,null;3,,2024-02-29;null,w,null;5,last and a "
                              "bit longer,2020-01-01;");
    reading.column_count = 2;
    reading.columns[0] = 2;
    reading.columns[1] = 0;
    check_everywhere(reading,
                     "c:date a:int64 | 2024-01-01,1;null,2;2024-02-29,3;null,null;2020-01-01,5;");
    reading.column_count = 0;
    check_everywhere(reading, "| ;;;;;");
    reading.column_count = -1;
    reading.options.file_path_column = "path";
    check_everywhere(reading, "a:int64 b:string c:date path:string | "
                              "1,x,2024-01-01,a.csv;2,y\\nz,null,a.csv;3,,2024-02-29,b.csv;"
                              "null,w,null,b.csv;5,last and a bit longer,2020-01-01,b.csv;");
    reading.column_count = 1;
    reading.columns[0] = 3;
    check_everywhere(reading, "path:string | a.csv;a.csv;b.csv;b.csv;b.csv;");
}

/* Rows know their number in the input, but behind a line that may be blank. */
static void test_origins(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t rows;
        int64_t placed; /* at least */
    } cases[] = {
        {"a,b\n1,2\n3,4\n5,6\n", 3, 3},      {"a,b\r\n1,2\r\n3,4\r\n5,6", 3, 3},
        {"a\n10\n20\n30\n40\n", 4, 4},       {"a,b\n1,\"x\ny\"\n3,\"z\nv\"\n5,6\n", 3, 3},
        {"\na,b\n1,2\n3,4\n", 2, 0},         {"a,b\n1,2\n\n3,4\n5,6\n", 3, 0},
        {"a,b\r\n1,2\r\n\r\n3,4\r\n", 2, 0}, {"a,b\n1,2\n3,4\n\n", 2, 0},
        {"a,b\n1,2\n3,4\n\r", 2, 0},         {"\xef\xbb\xbf\na,b\n1,2\n", 1, 0},
    };
    for (int64_t i = 0; i < GAR_COUNT_OF(cases); i++) {
        put_text("o.csv", cases[i].text);
        for (int64_t block = 0; block <= 40; block++) {
            struct reading reading = {.paths = {"o.csv"},
                                      .options = default_options(),
                                      .column_count = -1,
                                      .block_bytes = block,
                                      .max_rows = 1 + block % 3};
            struct gar_strbuf out = {0};
            assert_int_equal(read_csv(&reading, &out, NULL), GAR_OK);
            assert_int_equal(rows_seen, cases[i].rows);
            assert_true(rows_placed >= cases[i].placed);
            gar_strbuf_destroy(&out);
        }
    }
}

static void test_other_columns(void **state)
{
    (void)state;
    put_text("a.csv", "a,b\n1,2\n");
    put_text("more.csv", "a,b,c\n1,2,3\n");
    put_text("other.csv", "a,x\n1,2\n");
    struct reading reading = {.paths = {"a.csv", "more.csv"},
                              .options = default_options(),
                              .column_count = -1,
                              .max_rows = 10};
    check(&reading, "'more.csv' has 3 columns where 'a.csv' has 2; files that are read together "
                    "need the same columns "
                    "(with allow_variable_columns missing ones are filled with null)");
    reading.paths[1] = "other.csv";
    check(&reading, "'other.csv' has no column 'b', which 'a.csv' has; files that are read "
                    "together need the same columns "
                    "(with allow_variable_columns missing ones are filled with null)");
    reading.options.allow_variable_columns = true;
    check(&reading, "a:int64 b:int64 | 1,2;1,null;");
    reading.paths[1] = "more.csv";
    check(&reading, "a:int64 b:int64 | 1,2;1,2;");
}

static void test_schema(void **state)
{
    (void)state;
    put_text("a.csv", "code,n\n01,1\n02,2\n");
    const char *const names[] = {"n"};
    const char *const types[] = {"decimal(9,2)"};
    struct reading reading = {
        .paths = {"a.csv"}, .options = default_options(), .column_count = -1, .max_rows = 10};
    check(&reading, "code:string n:int64 | 01,1;02,2;");
    reading.options.schema_names = names;
    reading.options.schema_types = types;
    reading.options.schema_count = 1;
    check(&reading, "code:string n:decimal(9, 2) | 01,1.00;02,2.00;");
    reading.options.infer_schema = false;
    reading.options.schema_count = 0;
    check(&reading, "code:string n:string | 01,1;02,2;");
    const char *const unknown[] = {"nn"};
    reading.options.schema_names = unknown;
    reading.options.schema_count = 1;
    check(&reading, "schema: unknown column 'nn'; did you mean 'n'? (columns: code, n)");
    put_text("plain.csv", "1,x\n2,y\n");
    const char *const both[] = {"k", "v"};
    const char *const both_types[] = {"int32", "string"};
    reading.paths[0] = "plain.csv";
    reading.options = default_options();
    reading.options.has_header = false;
    check(&reading, "column_1:int64 column_2:string | 1,x;2,y;");
    reading.options.schema_names = both;
    reading.options.schema_types = both_types;
    reading.options.schema_count = 2;
    check(&reading, "k:int32 v:string | 1,x;2,y;");
    reading.options.schema_count = 1;
    check(&reading, "schema names 1 columns, but 'plain.csv' has 2");
    const char *const neutral[] = {"column_2"};
    const char *const neutral_types[] = {"binary"};
    reading.options.schema_names = neutral;
    reading.options.schema_types = neutral_types;
    check(&reading, "column_1:int64 column_2:binary | 1,78;2,79;");
    put_text("empty.csv", "");
    reading.paths[0] = "empty.csv";
    check(&reading, "column_2:binary | ");
    reading.options = default_options();
    check(&reading, "'empty.csv' is empty, so it names no columns; give a schema that does");
    put_text("header.csv", "a,b");
    reading.paths[0] = "header.csv";
    check(&reading, "a:string b:string | ");
    put_text("twice.csv", "a,a\n1,2\n");
    reading.paths[0] = "twice.csv";
    struct gar_strbuf out = {0};
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(read_csv(&reading, &out, &err), GAR_ERR_VALUE);
    assert_non_null(strstr(err.message, "the header of"));
    assert_non_null(strstr(err.message, "'a'"));
    gar_strbuf_destroy(&out);
}

/* Numbers for longer than the sample, then something else. */
static void test_late_values(void **state)
{
    (void)state;
    struct gar_strbuf text = {0};
    gar_strbuf_append(&text, "n,s\n");
    int64_t lines = 1;
    while (text.size < 3 << 20) {
        gar_strbuf_printf(&text, "%lld,\"a\nb\"\n", (long long)lines);
        lines += 2;
    }
    gar_strbuf_append(&text, "1.5,x\n");
    put_file("a.csv", text.data, text.size);
    gar_strbuf_destroy(&text);
    struct reading reading = {
        .paths = {"a.csv"}, .options = default_options(), .column_count = -1, .max_rows = 100000};
    char right[256];
    (void)snprintf(right, sizeof right,
                   "a.csv, line %lld, column 'n': '1.5' is no int64, the type inferred from the "
                   "first rows; give the column the right one in the schema, for example string",
                   (long long)lines + 1);
    check(&reading, right);
}

static void test_bad_files(void **state)
{
    (void)state;
    struct reading reading = {
        .paths = {"a.csv"}, .options = default_options(), .column_count = -1, .max_rows = 10};
    check(&reading, "cannot read 'a.csv': No such file or directory");
    put_text("a.csv", "a,b\n1,2\n3\n");
    check(&reading, "a.csv, line 3: 1 field where 2 are expected; with "
                    "allow_variable_columns short rows are filled with null and "
                    "extra fields dropped");
    put_text("a.csv", "a,b\n1,2\n\"3,4\n5,6\n");
    check(&reading, "a.csv: line 3: a quoted field is never closed");
    put_file("a.csv",
             "\xff\xfe"
             "a\0",
             4);
    check(&reading, "a.csv: the file is UTF-16 or UTF-32 (it starts with that byte-order mark); "
                    "convert it to UTF-8 first, for "
                    "example with iconv");
    put_text("a.csv", "a\n\xff\n");
    check(&reading, "a.csv, line 2, column 'a': '\\xff' is not valid UTF-8; convert the file, or "
                    "give the column the type binary");
    put_text("a.csv", "BZh91AY&SY");
    check(&reading, "a.csv: 'a.csv' is compressed with bzip2; gzip and zstd are supported, "
                    "decompress it first");
    reading.options.delimiter = '"';
    check(&reading, "csv options delimiter and quote are both '\"'; they must differ");
}

static void test_compressed(void **state)
{
    (void)state;
    static const enum gar_compression kinds[] = {GAR_COMPRESSION_GZIP, GAR_COMPRESSION_ZSTD};
    for (int64_t i = 0; i < GAR_COUNT_OF(kinds); i++) {
        struct gar_strbuf packed = {0};
        assert_int_equal(gar_compress(kinds[i], "a,b\n1,", 6, &packed, NULL), GAR_OK);
        assert_int_equal(gar_compress(kinds[i], "x\n2,y\n", 6, &packed, NULL), GAR_OK);
        put_file("a.csv", packed.data, packed.size);
        gar_strbuf_destroy(&packed);
        const struct reading reading = {
            .paths = {"a.csv"}, .options = default_options(), .column_count = -1};
        check_everywhere(reading, "a:int64 b:string | 1,x;2,y;");
    }
}

static void test_pipe(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
    const pid_t child = fork();
    if (child == 0) {
        put_text("fifo", "a,b\n1,x\n2,y\n");
        _exit(0);
    }
    const struct reading reading = {
        .paths = {"fifo"}, .options = default_options(), .column_count = -1, .max_rows = 1};
    check(&reading, "a:int64 b:string | 1,x;2,y;");
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void test_long_line(void **state)
{
    (void)state;
    struct gar_strbuf text = {0};
    gar_strbuf_append(&text, "a,b\n1,\"");
    gar_strbuf_append_fill(&text, 'x', 3 << 20);
    gar_strbuf_append(&text, "\"\n2,y\n");
    put_file("a.csv", text.data, text.size);
    struct gar_strbuf right = {0};
    gar_strbuf_append(&right, "a:int64 b:string | 1,");
    gar_strbuf_append_fill(&right, 'x', 3 << 20);
    gar_strbuf_append(&right, ";2,y;");
    struct reading reading = {
        .paths = {"a.csv"}, .options = default_options(), .column_count = -1, .max_rows = 10};
    check(&reading, right.data);
    reading.block_bytes = 1000;
    check(&reading, right.data);
    gar_strbuf_destroy(&text);
    gar_strbuf_destroy(&right);
}

/* Every allocation fails in turn, once and from then on. */
static void test_memory(void **state)
{
    (void)state;
    put_text("a.csv", "a,b,c\n1,x,\n2,\"y \"\"and\"\" some more text\",2024-01-01\n");
    struct reading reading = {.paths = {"a.csv"},
                              .options = default_options(),
                              .column_count = -1,
                              .block_bytes = 16,
                              .max_rows = 10};
    reading.options.file_path_column = "path";
    for (int32_t and_on = 0; and_on < 2; and_on++) {
        for (int64_t n = 1;; n++) {
            struct gar_strbuf out = {0};
            struct gar_error err = GAR_ERROR_INIT;
            gar_strbuf_append_fill(&out, ' ', 1 << 16);
            gar_strbuf_clear(&out);
            const int64_t live = gar_memory_system_live_bytes();
            (void)gar_alloc_fail_at(n, and_on != 0);
            const enum gar_status status = read_csv(&reading, &out, &err);
            (void)gar_alloc_fail_at(0, false);
            gar_strbuf_destroy(&out);
            assert_int_equal(gar_memory_system_live_bytes(), live);
            if (status >= 0) {
                break;
            }
            assert_int_equal(status, GAR_ERR_NOMEM);
            assert_true(n < 1000);
        }
    }
}

static enum gar_status write_csv(const char *path, const struct gar_write_options *options,
                                 struct gar_batch *batch, char *out_path, struct gar_error *err)
{
    struct gar_sink_provider *sink = NULL;
    struct gar_write *write = NULL;
    struct gar_batch *paths = NULL;
    GAR_TRY(gar_csv_sink_new(path, options, &sink, err));
    enum gar_status status =
        sink->vtable->open(sink, batch->schema, gar_memory_system(), &write, err);
    for (int i = 0; i < 2 && status >= 0 && batch->rows > 0; i++) {
        struct gar_encoded *encoded = NULL;
        status = write->vtable->encode(write, batch, gar_memory_system(), &encoded, err);
        if (status >= 0) {
            status = write->vtable->append(write, encoded, err);
        }
    }
    if (status >= 0) {
        status = write->vtable->finish(write, gar_memory_system(), &paths, err);
    }
    if (status >= 0) {
        int64_t bytes;
        const uint8_t *text = gar_column_bytes_at(paths->columns[0], 0, &bytes);
        memcpy(out_path, text + strlen(folder) + 1, (size_t)bytes - strlen(folder) - 1);
        out_path[bytes - (int64_t)strlen(folder) - 1] = '\0';
        gar_batch_unref(paths);
    }
    if (write != NULL) {
        write->vtable->free(write);
    }
    gar_sink_provider_unref(sink);
    return status;
}

static struct gar_batch *small_batch(void)
{
    struct gar_error err = GAR_ERROR_INIT;
    char name[] = "n";
    const struct gar_field field = {.name = name, .type = gar_type_of(GAR_INT64), .nullable = true};
    struct gar_column *column = NULL;
    struct gar_schema *schema = NULL;
    struct gar_batch *batch = NULL;
    assert_int_equal(gar_column_new(gar_memory_system(), field.type, 2, false, &column, &err),
                     GAR_OK);
    ((int64_t *)gar_column_values_mut(column))[0] = 7;
    ((int64_t *)gar_column_values_mut(column))[1] = -8;
    assert_int_equal(gar_schema_new(&field, 1, false, &schema, &err), GAR_OK);
    assert_int_equal(gar_batch_new(schema, &column, 2, &batch, &err), GAR_OK);
    gar_schema_unref(schema);
    return batch;
}

static void test_sink(void **state)
{
    (void)state;
    struct gar_batch *batch = small_batch();
    struct gar_write_options options = {
        .struct_bytes = sizeof options, .delimiter = ',', .header = true};
    struct gar_error err = GAR_ERROR_INIT;
    static const char *const targets[] = {"one.csv", "one.csv.gz", "new/folder", "one.csv.zst",
                                          "plain"};
    for (int64_t i = 0; i < GAR_COUNT_OF(targets); i++) {
        char path[256];
        options.single_file = i == 4;
        options.compression = i == 2 ? "zstd" : NULL;
        assert_int_equal(write_csv(in_folder(targets[i]), &options, batch, path, &err), GAR_OK);
        assert_memory_equal(path, targets[i], strlen(targets[i]));
        if (i == 2) {
            assert_non_null(strstr(path, "-0.csv.zst"));
        }
        const struct reading reading = {
            .paths = {path}, .options = default_options(), .column_count = -1, .max_rows = 10};
        check(&reading, "n:int64 | 7;-8;7;-8;");
    }
    options.single_file = false;
    options.overwrite = true;
    options.compression = NULL;
    char path[256];
    assert_int_equal(write_csv(in_folder("new/folder"), &options, batch, path, &err), GAR_OK);
    const struct reading whole = {
        .paths = {"new/folder"}, .options = default_options(), .column_count = -1, .max_rows = 10};
    check(&whole, "n:int64 | 7;-8;7;-8;");
    struct gar_batch *none = NULL;
    assert_int_equal(gar_batch_slice(batch, 0, 0, &none, &err), GAR_OK);
    assert_int_equal(write_csv(in_folder("zero"), &options, none, path, &err), GAR_OK);
    const struct reading zero = {
        .paths = {path}, .options = default_options(), .column_count = -1, .max_rows = 10};
    check(&zero, "n:string | ");
    options.compression = "brotli";
    assert_int_equal(write_csv(in_folder("x.csv"), &options, batch, path, &err), GAR_ERR_VALUE);
    assert_int_equal(
        write_csv("s3://b/x.csv", &(struct gar_write_options){.delimiter = ','}, batch, path, &err),
        GAR_ERR_UNSUPPORTED);
    gar_batch_unref(none);
    gar_batch_unref(batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_files, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_origins, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_other_columns, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_schema, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_late_values, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_bad_files, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_compressed, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_pipe, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_long_line, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_memory, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_sink, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
