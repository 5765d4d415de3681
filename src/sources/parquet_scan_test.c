/* SPDX-License-Identifier: Apache-2.0 */
/* Parquet files to rows and back: projections, filters with and without pruning, several files, given schemas, errors, faults. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "arrow/builder.h"
#include "base/alloc.h"
#include "formats/parquet/parquet.h"
#include "sources/sources.h"

static char folder[] = "/tmp/gar-parquet-XXXXXX";

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

/* Rows first .. first + rows - 1 of n: int64 (null at every 7th), s: text, d: double half of n. names says which columns, in
 * which order: "nsd". 'i' is n as int32. */
static struct gar_batch *make_batch(const char *names, int64_t first, int64_t rows)
{
    struct gar_field fields[4];
    char texts[4][2] = {{0}};
    struct gar_column *columns[4];
    const int64_t count = (int64_t)strlen(names);
    for (int64_t c = 0; c < count; c++) {
        const char name = names[c];
        texts[c][0] = name == 'i' ? 'n' : name;
        const enum gar_type_id id = name == 'n'   ? GAR_INT64
                                    : name == 'i' ? GAR_INT32
                                    : name == 's' ? GAR_STRING
                                                  : GAR_FLOAT64;
        fields[c] = (struct gar_field){.name = texts[c], .type = gar_type_of(id), .nullable = true};
        struct gar_builder builder;
        gar_builder_init(&builder, gar_memory_system(), fields[c].type);
        for (int64_t i = first; i < first + rows; i++) {
            struct gar_value v = {.type = fields[c].type,
                                  .is_valid = name == 's' || name == 'd' || i % 7 != 0};
            char text[64];
            if (name == 's') {
                const int32_t size = snprintf(text, sizeof text, "text number %lld", (long long)i);
                assert_int_equal(gar_value_from_text(fields[c].type, text, size, &v, NULL), GAR_OK);
            } else if (name == 'd') {
                v.f64 = (double)i / 2;
            } else {
                v.i64 = i;
            }
            assert_int_equal(gar_builder_append_value(&builder, &v, NULL), GAR_OK);
            gar_value_destroy(&v);
        }
        assert_int_equal(gar_builder_finish(&builder, &columns[c], NULL), GAR_OK);
        gar_builder_destroy(&builder);
    }
    struct gar_schema *schema = NULL;
    struct gar_batch *batch = NULL;
    assert_int_equal(gar_schema_new(fields, count, false, &schema, NULL), GAR_OK);
    assert_int_equal(gar_batch_new(schema, columns, rows, &batch, NULL), GAR_OK);
    gar_schema_unref(schema);
    return batch;
}

/* A file of those rows with row groups of group_rows. */
static void put_file(const char *name, const char *names, int64_t rows, int64_t group_rows)
{
    struct gar_parquet_write_options options;
    gar_parquet_write_options_init(&options);
    options.row_group_rows = group_rows;
    options.page_bytes = 64;
    struct gar_batch *batch = make_batch(names, 0, rows);
    struct gar_parquet_writer *writer = NULL;
    assert_int_equal(
        gar_parquet_writer_new(batch->schema, &options, gar_memory_system(), &writer, NULL),
        GAR_OK);
    assert_int_equal(gar_parquet_writer_append(writer, batch, NULL), GAR_OK);
    assert_int_equal(gar_parquet_writer_finish(writer, NULL), GAR_OK);
    FILE *file = fopen(in_folder(name), "wb");
    assert_non_null(file);
    const uint8_t *data = NULL;
    int64_t bytes = 0;
    while (gar_parquet_writer_next(writer, &data, &bytes) == GAR_OK) {
        assert_int_equal(fwrite(data, 1, (size_t)bytes, file), bytes);
    }
    assert_int_equal(fclose(file), 0);
    gar_parquet_writer_free(writer);
    gar_batch_unref(batch);
}

static struct gar_expr *column(const char *name)
{
    struct gar_expr *expr = NULL;
    assert_int_equal(gar_expr_new_column(name, &expr, NULL), GAR_OK);
    return expr;
}

static struct gar_expr *number(int64_t v)
{
    const struct gar_value value = {.type = gar_type_of(GAR_INT64), .is_valid = true, .i64 = v};
    struct gar_expr *expr = NULL;
    assert_int_equal(gar_expr_new_literal(&value, &expr, NULL), GAR_OK);
    return expr;
}

/* function(a, b); a and b are taken. */
static struct gar_expr *call(const char *function, struct gar_expr *a, struct gar_expr *b)
{
    struct gar_expr *args[] = {a, b};
    struct gar_expr *expr = NULL;
    assert_int_equal(gar_expr_new_call_by_name(function, args, 2, &expr, NULL), GAR_OK);
    gar_expr_unref(a);
    gar_expr_unref(b);
    return expr;
}

/* How a test reads. */
struct reading {
    const char *paths[4]; /* names in the folder, NULL-terminated */
    struct gar_parquet_options options;
    int64_t columns[4];
    int64_t column_count;    /* -1: all */
    struct gar_expr *filter; /* borrowed */
    int64_t limit;           /* 0: none */
    int64_t skip;
    int64_t first_row; /* result: origin of the first row */
    int64_t skipped;   /* result */
    int64_t max_rows;  /* 0: 1,000 */
    int64_t units;     /* out: units read */
};

static enum gar_status print_batch(const struct gar_batch *batch, struct gar_strbuf *out)
{
    struct gar_batch *full = NULL;
    GAR_TRY(gar_batch_gather(batch, gar_memory_system(), &full, NULL));
    enum gar_status status = GAR_OK;
    for (int64_t r = 0; r < full->rows && status >= 0; r++) {
        for (int64_t c = 0; c < full->schema->count && status >= 0; c++) {
            struct gar_value value = {0};
            status = gar_value_from_column(full->columns[c], r, &value, NULL);
            gar_strbuf_append(out, c > 0 ? "," : "");
            gar_value_print_plain(&value, 0, out);
            gar_value_destroy(&value);
        }
        gar_strbuf_append_char(out, ';');
    }
    gar_batch_unref(full);
    return status;
}

static enum gar_status run_unit(struct gar_scan *scan, struct gar_unit *unit,
                                struct reading *reading, struct gar_strbuf *out,
                                struct gar_error *err)
{
    const int64_t max_rows = reading->max_rows > 0 ? reading->max_rows : 1000;
    GAR_TRY(scan->vtable->load(scan, unit, err));
    enum gar_status status;
    struct gar_batch *batch = NULL;
    while ((status = scan->vtable->decode(scan, unit, NULL, max_rows, &batch, err)) == GAR_OK) {
        assert_true(batch->selected > 0 && batch->rows <= max_rows);
        if (reading->first_row < 0) {
            const int64_t row = batch->selection != NULL ? (int64_t)batch->selection[0] : 0;
            reading->first_row = gar_batch_origin(batch, row);
        }
        status = print_batch(batch, out);
        gar_batch_unref(batch);
        GAR_TRY(status);
    }
    return status < 0 ? status : GAR_OK;
}

static enum gar_status run_scan(struct gar_scan *scan, struct reading *reading,
                                struct gar_strbuf *out, struct gar_error *err)
{
    struct gar_unit *unit = NULL;
    enum gar_status status;
    reading->units = 0;
    while ((status = scan->vtable->next(scan, &unit, err)) == GAR_OK) {
        reading->units++;
        status = run_unit(scan, unit, reading, out, err);
        scan->vtable->unit_free(scan, unit);
        if (status < 0) {
            break;
        }
    }
    return status < 0 ? status : GAR_OK;
}

static enum gar_status read_parquet(struct reading *reading, struct gar_strbuf *out,
                                    struct gar_error *err)
{
    const char *paths[4];
    int64_t count = 0;
    for (; count < 4 && reading->paths[count] != NULL; count++) {
        paths[count] = in_folder(reading->paths[count]);
    }
    struct gar_scan_provider *provider = NULL;
    struct gar_scan *scan = NULL;
    reading->options.struct_bytes = sizeof reading->options;
    GAR_TRY(gar_parquet_provider_new(paths, count, &reading->options, NULL, &provider, err));
    static const int64_t all[] = {0, 1, 2, 3, 4, 5, 6, 7};
    const struct gar_scan_request request = {
        .columns = reading->column_count < 0 ? all : reading->columns,
        .column_count = reading->column_count < 0 ? provider->schema->count : reading->column_count,
        .filter = reading->filter,
        .skip = reading->skip,
        .limit = reading->limit > 0 ? reading->limit : -1,
        .batch_rows = 1000,
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
        reading->skipped = scan->rows_skipped;
        reading->first_row = -1;
        status = run_scan(scan, reading, out, err);
        scan->vtable->free(scan);
    }
    gar_scan_provider_unref(provider);
    return status;
}

/* The rows, or the message without the folder. */
static void check(struct reading *reading, const char *right)
{
    struct gar_strbuf got = {0};
    struct gar_error err = GAR_ERROR_INIT;
    if (read_parquet(reading, &got, &err) < 0) {
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

static void test_projection(void **state)
{
    (void)state;
    put_file("a.parquet", "nsd", 3, 2);
    struct reading reading = {.paths = {"a.parquet"}, .column_count = -1};
    const char *const all = "n:int64 s:string d:float64 | "
                            "null,text number 0,0.0;1,text number 1,0.5;2,text number 2,1.0;";
    check(&reading, all);
    assert_int_equal(reading.units, 2);
    reading.max_rows = 1;
    check(&reading, all);
    reading.column_count = 2;
    reading.columns[0] = 2;
    reading.columns[1] = 0;
    check(&reading, "d:float64 n:int64 | 0.0,null;0.5,1;1.0,2;");
    reading.column_count = 0;
    check(&reading, "| ;;;");
    reading.column_count = -1;
    reading.options.file_path_column = "path";
    check(&reading, "n:int64 s:string d:float64 path:string | null,text number 0,0.0,a.parquet;"
                    "1,text number 1,0.5,a.parquet;2,text number 2,1.0,a.parquet;");
    put_file("none.parquet", "ns", 0, 10);
    reading = (struct reading){.paths = {"none.parquet"}, .column_count = -1};
    check(&reading, "n:int64 s:string | ");
}

static void test_filter(void **state)
{
    (void)state;
    put_file("a.parquet", "nsd", 1000, 100);
    struct reading reading = {.paths = {"a.parquet"}, .column_count = 2, .columns = {1, 2}};
    /* One row group of ten can hold it. */
    reading.filter = call("equal", column("n"), number(345));
    check(&reading, "s:string d:float64 | text number 345,172.5;");
    assert_int_equal(reading.units, 1);
    gar_expr_unref(reading.filter);
    /* Bounds say that none can. */
    reading.filter = call("greater", column("n"), number(5000));
    check(&reading, "s:string d:float64 | ");
    assert_int_equal(reading.units, 0);
    gar_expr_unref(reading.filter);
    /* A literal of another type, on the other side; a column that is read too. */
    reading.column_count = 1;
    reading.columns[0] = 0;
    reading.filter = call("and", call("less", number(496), column("d")),
                          call("not_equal", column("n"), number(995)));
    check(&reading, "n:int64 | 993;996;997;998;999;");
    assert_int_equal(reading.units, 1);
    gar_expr_unref(reading.filter);
    /* Either of two. */
    reading.filter =
        call("or", call("equal", column("n"), number(5)), call("equal", column("n"), number(995)));
    check(&reading, "n:int64 | 5;995;");
    assert_int_equal(reading.units, 2);
    gar_expr_unref(reading.filter);
}

/* Every density of matching rows, and every batch size: the same rows as a filter afterwards gives. */
static void test_late_columns(void **state)
{
    (void)state;
    put_file("a.parquet", "nsd", 500, 217);
    for (int64_t modulus = 1; modulus < 300; modulus = modulus * 3 + 1) {
        struct gar_strbuf right = {0};
        gar_strbuf_append(&right, "s:string n:int64 | ");
        for (int64_t i = 0; i < 500; i++) {
            if (i % 7 != 0 && i % modulus == 0) {
                gar_strbuf_printf(&right, "text number %lld,%lld;", (long long)i, (long long)i);
            }
        }
        struct reading reading = {.paths = {"a.parquet"}, .column_count = 2, .columns = {1, 0}};
        reading.filter = call("equal", call("modulo", column("n"), number(modulus)), number(0));
        for (reading.max_rows = 1; reading.max_rows < 600;
             reading.max_rows = reading.max_rows * 5 + 2) {
            check(&reading, gar_strbuf_text(&right));
        }
        gar_expr_unref(reading.filter);
        gar_strbuf_destroy(&right);
    }
}

static void test_limit(void **state)
{
    (void)state;
    put_file("a.parquet", "n", 30, 10);
    struct gar_strbuf out = {0};
    struct reading reading = {.paths = {"a.parquet"}, .column_count = -1, .limit = 15};
    assert_int_equal(read_parquet(&reading, &out, NULL), GAR_OK);
    assert_int_equal(reading.units, 2);
    gar_strbuf_destroy(&out);
}

/* Whole row groups are left out at the start, and rows know their place in the input. */
static void test_skip(void **state)
{
    (void)state;
    static const struct {
        int64_t skip, limit, units, skipped, first_row;
    } cases[] = {
        {0, 0, 6, 0, 0},    {9, 0, 6, 0, 0},     {10, 0, 5, 10, 10},  {11, 0, 5, 10, 10},
        {29, 0, 4, 20, 20}, {30, 0, 3, 30, 30},  {45, 0, 2, 40, 40},  {59, 0, 1, 50, 50},
        {60, 0, 0, 60, -1}, {900, 0, 0, 60, -1}, {25, 30, 1, 20, 20}, {25, 31, 2, 20, 20},
        {1, 5, 1, 0, 0},
    };
    put_file("a.parquet", "n", 30, 10);
    for (int64_t i = 0; i < GAR_COUNT_OF(cases); i++) {
        struct gar_strbuf out = {0};
        struct reading reading = {.paths = {"a.parquet", "a.parquet"},
                                  .column_count = -1,
                                  .skip = cases[i].skip,
                                  .limit = cases[i].limit,
                                  .max_rows = 7};
        assert_int_equal(read_parquet(&reading, &out, NULL), GAR_OK);
        assert_int_equal(reading.units, cases[i].units);
        assert_int_equal(reading.skipped, cases[i].skipped);
        assert_int_equal(reading.first_row, cases[i].first_row);
        gar_strbuf_destroy(&out);
    }
}

static void test_files(void **state)
{
    (void)state;
    put_file("a.parquet", "ns", 2, 10);
    put_file("b.parquet", "sdn", 2, 10);
    put_file("c.parquet", "is", 2, 10);
    put_file("d.parquet", "n", 1, 10);
    struct reading reading = {.paths = {"a.parquet", "b.parquet"}, .column_count = -1};
    check(&reading, "n:int64 s:string | null,text number 0;1,text number 1;null,text number "
                    "0;1,text number 1;");
    reading.paths[1] = "d.parquet";
    check(&reading, "d.parquet: has no column 's', which the first file (a.parquet) has; give "
                    "a schema to read it as nulls");
    reading.paths[1] = "c.parquet";
    check(&reading, "c.parquet: column 'n' is int32, but int64 in the first file (a.parquet); give "
                    "a schema to read both as "
                    "one type");
    /* A given schema: other types are cast, missing columns are null, strings may come as binary. */
    static const char *const names[] = {"s", "n", "more"};
    static const char *const types[] = {"binary", "float64", "date"};
    reading.options.schema_names = names;
    reading.options.schema_types = types;
    reading.options.schema_count = 3;
    reading.paths[2] = "d.parquet";
    check(
        &reading,
        "s:binary n:float64 more:date | "
        "74657874206e756d6265722030,null,null;74657874206e756d6265722031,1.0,null;"
        "74657874206e756d6265722030,null,null;74657874206e756d6265722031,1.0,null;null,null,null;");
}

static void test_errors(void **state)
{
    (void)state;
    struct reading reading = {.paths = {"gone.parquet"}, .column_count = -1};
    check(&reading, "cannot read 'gone.parquet': No such file or directory");
    FILE *file = fopen(in_folder("short.parquet"), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite("PAR1x", 1, 5, file), 5);
    assert_int_equal(fclose(file), 0);
    reading.paths[0] = "short.parquet";
    check(&reading,
          "short.parquet: not a Parquet file: 5 bytes are smaller than the minimum 12 bytes");
    put_file("a.parquet", "ns", 50, 100);
    struct stat info;
    assert_int_equal(stat(in_folder("a.parquet"), &info), 0);
    assert_int_equal(truncate(in_folder("a.parquet"), info.st_size - 1), 0);
    reading.paths[0] = "a.parquet";
    check(&reading, "a.parquet: truncated Parquet file: it starts with \"PAR1\" but its last 4 "
                    "bytes are not \"PAR1\"");
    /* A byte of the first page changed: the checksum tells. */
    put_file("a.parquet", "ns", 50, 100);
    file = fopen(in_folder("a.parquet"), "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 60, SEEK_SET), 0);
    assert_int_equal(fputc(0xee, file), 0xee);
    assert_int_equal(fclose(file), 0);
    struct gar_strbuf out = {0};
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(read_parquet(&reading, &out, &err), GAR_ERR_FORMAT);
    assert_non_null(strstr(err.message, "a.parquet: column 'n', row group 0, "));
    assert_non_null(strstr(err.message, "checksum"));
    gar_strbuf_destroy(&out);
}

static void test_changed_file(void **state)
{
    (void)state;
    put_file("a.parquet", "n", 10, 10);
    const char *path = in_folder("a.parquet");
    const struct gar_parquet_options options = {.struct_bytes = sizeof options};
    struct gar_scan_provider *provider = NULL;
    struct gar_scan *scan = NULL;
    struct gar_unit *unit = NULL;
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(gar_parquet_provider_new(&path, 1, &options, NULL, &provider, &err), GAR_OK);
    put_file("a.parquet", "n", 20, 10);
    const struct gar_scan_request request = {.columns = (const int64_t[]){0},
                                             .column_count = 1,
                                             .limit = -1,
                                             .batch_rows = 10,
                                             .memory = gar_memory_system()};
    assert_int_equal(provider->vtable->open(provider, &request, &scan, &err), GAR_OK);
    enum gar_status status = scan->vtable->next(scan, &unit, &err);
    if (status == GAR_OK) {
        status = scan->vtable->load(scan, unit, &err);
        scan->vtable->unit_free(scan, unit);
    }
    assert_int_equal(status, GAR_ERR_IO);
    assert_non_null(strstr(err.message, "changed"));
    scan->vtable->free(scan);
    gar_scan_provider_unref(provider);
}

/* Every allocation fails in turn, once and from then on. */
static void test_memory(void **state)
{
    (void)state;
    put_file("a.parquet", "nsd", 40, 30);
    struct reading reading = {.paths = {"a.parquet"}, .column_count = -1};
    reading.filter = call("greater", column("d"), number(3));
    for (int32_t and_on = 0; and_on < 2; and_on++) {
        for (int64_t n = 1;; n += 1 + n / 100) {
            struct gar_strbuf out = {0};
            struct gar_error err = GAR_ERROR_INIT;
            (void)gar_alloc_fail_at(n, and_on == 1);
            const enum gar_status status = read_parquet(&reading, &out, &err);
            (void)gar_alloc_fail_at(0, false);
            const bool is_over = status >= 0 && !out.failed;
            gar_strbuf_destroy(&out);
            if (is_over && n > 1000) {
                break;
            }
            assert_true(status >= 0 || status == GAR_ERR_NOMEM);
        }
    }
    gar_expr_unref(reading.filter);
}

static int64_t count_names(bool hidden)
{
    DIR *d = opendir(folder);
    int64_t count = 0;
    struct dirent *entry;
    while (d != NULL && (entry = readdir(d)) != NULL) {
        const bool is_dots = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        count += !is_dots && (entry->d_name[0] == '.') == hidden;
    }
    (void)closedir(d);
    return count;
}

static void test_sink(void **state)
{
    (void)state;
    const struct gar_write_options options = {
        .struct_bytes = sizeof options, .compression = "zstd", .row_group_rows = 10};
    struct gar_sink_provider *provider = NULL;
    struct gar_error err = GAR_ERROR_INIT;
    struct gar_batch *first = make_batch("ns", 0, 10);
    struct gar_batch *second = make_batch("ns", 10, 5);
    assert_int_equal(gar_parquet_sink_new(in_folder("out.parquet"), &options, &provider, &err),
                     GAR_OK);
    for (int32_t is_finished = 0; is_finished < 2; is_finished++) {
        struct gar_write *write = NULL;
        struct gar_batch *paths = NULL;
        assert_int_equal(
            provider->vtable->open(provider, first->schema, gar_memory_system(), &write, &err),
            GAR_OK);
        struct gar_batch *const batches[] = {first, second};
        for (int32_t i = 0; i < 2; i++) {
            struct gar_encoded *encoded = NULL;
            assert_int_equal(
                write->vtable->encode(write, batches[i], gar_memory_system(), &encoded, &err),
                GAR_OK);
            assert_int_equal(write->vtable->append(write, encoded, &err), GAR_OK);
        }
        assert_int_equal(count_names(false), 0); /* nothing to see yet */
        if (is_finished != 0) {
            assert_int_equal(write->vtable->finish(write, gar_memory_system(), &paths, &err),
                             GAR_OK);
            assert_int_equal(paths->rows, 1);
            gar_batch_unref(paths);
        }
        write->vtable->free(write);
        assert_int_equal(count_names(true), 0); /* nothing left behind */
        assert_int_equal(count_names(false), is_finished);
    }
    gar_sink_provider_unref(provider);
    struct reading reading = {.paths = {"out.parquet"}, .column_count = 1, .columns = {0}};
    check(&reading, "n:int64 | null;1;2;3;4;5;6;null;8;9;10;11;12;13;null;");
    assert_int_equal(reading.units, 2);
    gar_batch_unref(first);
    gar_batch_unref(second);
    struct gar_write_options bad = options;
    bad.compression = "rar";
    assert_int_equal(gar_parquet_sink_new("x", &bad, &provider, &err), GAR_ERR_VALUE);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_projection), IN_FOLDER(test_filter),       IN_FOLDER(test_late_columns),
        IN_FOLDER(test_limit),      IN_FOLDER(test_skip),         IN_FOLDER(test_files),
        IN_FOLDER(test_errors),     IN_FOLDER(test_changed_file), IN_FOLDER(test_memory),
        IN_FOLDER(test_sink),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
