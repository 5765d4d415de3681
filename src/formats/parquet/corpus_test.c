/* SPDX-License-Identifier: Apache-2.0 */
/* Files of other writers, valid and broken, from the corpora folder (skipped where that is absent). */
#include <dirent.h>

#include "formats/parquet/parquet_test_priv.h"

static char folder[3000];

static struct bytes load(const char *part, const char *name)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s/%s", folder, part, name);
    FILE *const file = fopen(path, "rb");
    if (file == NULL) {
        return (struct bytes){NULL, 0};
    }
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    const int64_t size = ftell(file);
    rewind(file);
    struct bytes b = bytes_copy(NULL, 0);
    b.data = realloc(b.data, (size_t)size);
    assert_non_null(b.data);
    b.size = size;
    assert_int_equal(fread(b.data, 1, (size_t)size, file), size);
    (void)fclose(file);
    return b;
}

static void need_folder(void)
{
    const char *const root = getenv("GAR_TEST_CORPORA");
    (void)snprintf(folder, sizeof folder, "%s/parquet-testing",
                   root == NULL ? "../shared/corpora" : root);
    DIR *const d = opendir(folder);
    if (d == NULL) {
        print_message("%s is absent: corpus tests are skipped\n", folder);
        skip();
    }
    (void)closedir(d);
}

static void test_good_files(void **state)
{
    (void)state;
    need_folder();
    static const struct {
        const char *name;
        int64_t rows;
        int64_t columns;
    } files[] = {
        {"alltypes_dictionary.parquet", 2, 11},
        {"alltypes_plain.parquet", 8, 11},
        {"alltypes_plain.snappy.parquet", 2, 11},
        {"alltypes_tiny_pages.parquet", 7300, 13},
        {"binary.parquet", 12, 1},
        {"binary_truncated_min_max.parquet", 12, 6},
        {"byte_array_decimal.parquet", 24, 1},
        {"byte_stream_split.zstd.parquet", 300, 2},
        {"column_chunk_key_value_metadata.parquet", 0, 2},
        {"data_index_bloom_encoding_stats.parquet", 14, 1},
        {"data_index_bloom_encoding_with_length.parquet", 14, 1},
        {"datapage_v1-snappy-compressed-checksum.parquet", 5120, 2},
        {"datapage_v1-uncompressed-checksum.parquet", 5120, 2},
        {"datapage_v2.snappy.parquet", 5, 5},
        {"delta_binary_packed.parquet", 200, 66},
        {"delta_byte_array.parquet", 1000, 9},
        {"delta_encoding_required_column.parquet", 100, 17},
        {"delta_length_byte_array.parquet", 1000, 1},
        {"fixed_length_byte_array.parquet", 1000, 1},
        {"fixed_length_decimal.parquet", 24, 1},
        {"float16_nonzeros_and_nans.parquet", 8, 1},
        {"floating_orders_nan_count.parquet", 50, 6},
        {"hadoop_lz4_compressed.parquet", 4, 3},
        {"int32_decimal.parquet", 24, 1},
        {"int32_with_null_pages.parquet", 1000, 1},
        {"int64_decimal.parquet", 24, 1},
        {"list_columns.parquet", 3, 2},
        {"lz4_raw_compressed.parquet", 4, 3},
        {"lz4_raw_compressed_larger.parquet", 10000, 1},
        {"map_no_value.parquet", 3, 3},
        {"nan_in_stats.parquet", 2, 1},
        {"nested_lists.snappy.parquet", 3, 2},
        {"nested_structs.rust.parquet", 1, 36},
        {"nullable.impala.parquet", 7, 6},
        {"nulls.snappy.parquet", 8, 1},
        {"plain-dict-uncompressed-checksum.parquet", 1000, 2},
        {"repeated_primitive_no_list.parquet", 4, 3},
        {"rle-dict-snappy-checksum.parquet", 1000, 2},
        {"sort_columns.parquet", 6, 2},
        {"unknown-logical-type.parquet", 3, 2},
    };
    for (int64_t i = 0; i < GAR_COUNT_OF(files); i++) {
        const struct bytes b = load("data", files[i].name);
        struct gar_parquet_file *file = NULL;
        struct gar_error err = GAR_ERROR_INIT;
        assert_non_null(b.data);
        enum gar_status status = parse_file(b, &file, &err);
        int64_t readable = 0;
        int64_t rows = 0;
        if (status >= 0) {
            assert_int_equal(file->rows, files[i].rows);
            assert_int_equal(file->schema->count, files[i].columns);
            for (int64_t c = 0; c < file->schema->count; c++) {
                readable += file->columns[c].unsupported == NULL;
                assert_true((gar_parquet_column_check(file, c, &err) < 0) ==
                            (file->columns[c].unsupported != NULL));
            }
            status = read_everything(b, 777, false, &rows, &err);
        }
        if (status >= 0) {
            status = read_selections(b, 100, &err);
        }
        if (status < 0) {
            print_error("%s: %s\n", files[i].name, err.message);
        }
        assert_int_equal(status, GAR_OK);
        assert_int_equal(rows, readable * files[i].rows);
        gar_parquet_file_unref(file);
        free(b.data);
    }
}

/* One column of a file as "a|b|c". */
static void expect_rows(const char *name, int64_t column, int64_t rows, const char *want)
{
    const struct bytes b = load("data", name);
    struct gar_parquet_file *file = NULL;
    struct gar_parquet_reader *reader = NULL;
    struct gar_column *values = NULL;
    struct gar_strbuf text = {0};
    assert_non_null(b.data);
    assert_int_equal(parse_file(b, &file, NULL), GAR_OK);
    assert_int_equal(open_chunk(b, file, 0, column, false, &reader, NULL), GAR_OK);
    assert_int_equal(gar_parquet_reader_read(reader, rows, &values, NULL), GAR_OK);
    for (int64_t i = 0; i < rows; i++) {
        char row[256];
        text_of(values, i, row, sizeof row);
        gar_strbuf_printf(&text, "%s%s", i > 0 ? "|" : "", row);
    }
    assert_string_equal(gar_strbuf_text(&text), want);
    gar_strbuf_destroy(&text);
    gar_column_unref(values);
    gar_parquet_reader_free(reader);
    gar_parquet_file_unref(file);
    free(b.data);
}

static void test_values(void **state)
{
    (void)state;
    need_folder();
    expect_rows("byte_array_decimal.parquet", 0, 3, "1.00|2.00|3.00");
    expect_rows("fixed_length_decimal.parquet", 0, 3, "1.00|2.00|3.00");
    expect_rows("int32_decimal.parquet", 0, 3, "1.00|2.00|3.00");
    expect_rows("int64_decimal.parquet", 0, 3, "1.00|2.00|3.00");
    expect_rows("float16_nonzeros_and_nans.parquet", 0, 8, "null|1.0|-2.0|nan|0.0|-1.0|-0.0|2.0");
    expect_rows("unknown-logical-type.parquet", 1, 1, "x'756e6b6e6f776e20737472696e672031'");
    expect_rows("alltypes_plain.parquet", 10, 2,
                "timestamp '2009-03-01 00:00:00.000000'|timestamp '2009-03-01 00:01:00.000000'");
    expect_rows("binary.parquet", 0, 3, "x'00'|x'01'|x'02'");
    expect_rows("nan_in_stats.parquet", 0, 2, "1.0|nan");
}

static void test_bounds(void **state)
{
    (void)state;
    need_folder();
    struct bytes b = load("data", "nan_in_stats.parquet");
    struct gar_parquet_file *file = NULL;
    struct gar_parquet_bounds bounds;
    assert_int_equal(parse_file(b, &file, NULL), GAR_OK);
    assert_int_equal(gar_parquet_bounds_get(file, 0, 0, &bounds, NULL), GAR_OK);
    assert_false(bounds.min.is_valid || bounds.max.is_valid);
    gar_parquet_bounds_destroy(&bounds);
    gar_parquet_file_unref(file);
    free(b.data);
    /* Cut bounds bound, but are no values. */
    b = load("data", "binary_truncated_min_max.parquet");
    assert_int_equal(parse_file(b, &file, NULL), GAR_OK);
    bool has_inexact = false;
    bool has_exact = false;
    for (int64_t c = 0; c < file->schema->count; c++) {
        assert_int_equal(gar_parquet_bounds_get(file, 0, c, &bounds, NULL), GAR_OK);
        assert_true(bounds.min.is_valid && bounds.max.is_valid);
        has_inexact = has_inexact || !bounds.min_exact || !bounds.max_exact;
        has_exact = has_exact || (bounds.min_exact && bounds.max_exact);
        gar_parquet_bounds_destroy(&bounds);
    }
    assert_true(has_inexact && has_exact);
    gar_parquet_file_unref(file);
    free(b.data);
}

static void test_bad_files(void **state)
{
    (void)state;
    need_folder();
    static const struct {
        const char *folder;
        const char *name;
        const char *want; /* part of the message; NULL: valid */
    } files[] = {
        {"bad_data", "ARROW-RS-GH-6229-DICTHEADER.parquet", "outside the file"},
        {"bad_data", "ARROW-GH-41317.parquet", "damaged Parquet footer"},
        {"bad_data", "ARROW-GH-41321.parquet", "254 bits"},
        {"bad_data", "ARROW-GH-43605.parquet", NULL},
        {"bad_data", "ARROW-GH-47662.parquet", "fewer bytes"},
        {"data", "datapage_v1-corrupt-checksum.parquet",
         "column 'a', row group 0, page 0 at offset 4: the page's checksum"},
        {"data", "rle-dict-uncompressed-corrupt-checksum.parquet", "checksum"},
    };
    for (int64_t i = 0; i < GAR_COUNT_OF(files); i++) {
        const struct bytes b = load(files[i].folder, files[i].name);
        struct gar_error err = GAR_ERROR_INIT;
        int64_t rows = 0;
        assert_non_null(b.data);
        const enum gar_status status = read_everything(b, 1000, false, &rows, &err);
        if (files[i].want == NULL) {
            assert_int_equal(status, GAR_OK);
            assert_int_equal(rows, 21186);
        } else {
            assert_true(status < 0);
            if (strstr(err.message, files[i].want) == NULL) {
                print_error("%s: %s\n", files[i].name, err.message);
            }
            assert_non_null(strstr(err.message, files[i].want));
        }
        free(b.data);
    }
    /* Dictionary page of a wrong size: either is fine, a crash is not. */
    const struct bytes b = load("data", "nation.dict-malformed.parquet");
    int64_t rows = 0;
    struct gar_error err = GAR_ERROR_INIT;
    (void)read_everything(b, 1000, false, &rows, &err);
    free(b.data);
}

/* Small files of all kinds, damaged: cut anywhere, and each byte changed. */
static void test_damage(void **state)
{
    (void)state;
    need_folder();
    static const char *const parts[] = {"data", "bad_data"};
    uint64_t random = 5;
    for (int64_t p = 0; p < 2; p++) {
        char path[4000];
        (void)snprintf(path, sizeof path, "%s/%s", folder, parts[p]);
        struct dirent **names = NULL;
        const int count = scandir(path, &names, NULL, alphasort);
        assert_true(count > 0);
        for (int i = 0; i < count; i++) {
            const size_t length = strlen(names[i]->d_name);
            const bool is_parquet =
                length > 8 && strcmp(names[i]->d_name + length - 8, ".parquet") == 0;
            const struct bytes b =
                is_parquet ? load(parts[p], names[i]->d_name) : (struct bytes){NULL, 0};
            /* Larger files are damaged at fewer places. */
            const int64_t step = b.size < 2000 ? 1 : b.size / 500;
            for (int64_t at = 0; at < b.size; at += step) {
                struct gar_error err = GAR_ERROR_INIT;
                int64_t rows = 0;
                struct bytes part = bytes_copy(b.data, at);
                assert_true(read_everything(part, 1000, false, &rows, &err) < 0);
                free(part.data);
                part = bytes_copy(b.data, b.size);
                random = random * UINT64_C(6364136223846793005) + 1;
                part.data[at] = (uint8_t)(part.data[at] ^ (1U << (random >> 61)));
                if (b.size < 10000) {
                    (void)read_everything(part, 1000, (at & 1) != 0, &rows, &err);
                    (void)read_selections(part, 100, &err);
                }
                free(part.data);
            }
            free(b.data);
            free(names[i]);
        }
        free(names);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_files), cmocka_unit_test(test_values),
        cmocka_unit_test(test_bounds),     cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
