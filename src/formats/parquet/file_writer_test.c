/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and reading back every type, codec and layout; bounds for pruning; damage to what was written. */
#include <math.h>

#include "arrow/builder.h"
#include "arrow/gather.h"
#include "formats/parquet/parquet_test_priv.h"

static uint64_t random_state = 11;

static uint64_t next_random(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return random_state >> 33 ^ random_state >> 11;
}

static const struct gar_type types[] = {
    {.id = GAR_NULL},
    {.id = GAR_BOOL},
    {.id = GAR_INT8},
    {.id = GAR_INT16},
    {.id = GAR_INT32},
    {.id = GAR_INT64},
    {.id = GAR_UINT8},
    {.id = GAR_UINT16},
    {.id = GAR_UINT32},
    {.id = GAR_UINT64},
    {.id = GAR_FLOAT32},
    {.id = GAR_FLOAT64},
    {.id = GAR_DECIMAL128, .precision = 7, .scale = 2},
    {.id = GAR_DECIMAL128, .precision = 18, .scale = 0},
    {.id = GAR_DECIMAL128, .precision = 25, .scale = 25},
    {.id = GAR_DECIMAL128, .precision = 38, .scale = 5},
    {.id = GAR_STRING},
    {.id = GAR_BINARY},
    {.id = GAR_DATE},
    {.id = GAR_TIME, .unit = GAR_MICRO},
    {.id = GAR_TIME, .unit = GAR_NANO},
    {.id = GAR_TIMESTAMP, .unit = GAR_MILLI},
    {.id = GAR_TIMESTAMP, .unit = GAR_MICRO},
    {.id = GAR_TIMESTAMP, .unit = GAR_NANO},
    {.id = GAR_DURATION, .unit = GAR_SECOND},
    {.id = GAR_DURATION, .unit = GAR_NANO},
};
enum { TYPES = sizeof types / sizeof types[0] };

/* Few distinct values when narrow, so that both dictionaries and plain pages come up. */
static struct gar_value random_value(struct gar_type type, bool narrow, int32_t null_share)
{
    struct gar_value v = {.type = type,
                          .is_valid =
                              type.id != GAR_NULL && (int32_t)(next_random() % 100) >= null_share};
    const uint64_t r = narrow ? next_random() % 5 : next_random();
    const int32_t bits = 8 * gar_type_width(type);
    if (!v.is_valid) {
        return v;
    }
    if (type.id == GAR_BOOL) {
        v.boolean = r % 2 == 0;
    } else if (type.id == GAR_FLOAT32) {
        v.f64 = (double)(float)((double)(int64_t)r / 3);
    } else if (type.id == GAR_FLOAT64) {
        v.f64 = (double)(int64_t)r / 3;
    } else if (type.id == GAR_DECIMAL128) {
        v.i128 = ((gar_i128)(r % 2 == 0 ? r : 0 - r) * (gar_i128)next_random()) %
                 gar_pow10_i128(type.precision);
    } else if (gar_type_is_text(type)) {
        char text[64];
        const int32_t size = snprintf(text, sizeof text, "%.*s%llx", (int)(r % 20),
                                      "a long text to begin with", (unsigned long long)r);
        assert_int_equal(gar_value_from_text(type, text, size, &v, NULL), GAR_OK);
    } else if (gar_type_is_unsigned(type)) {
        v.u64 = bits == 64 ? r : r & ((UINT64_C(1) << bits) - 1);
    } else if (type.id == GAR_TIME) {
        v.i64 = (int64_t)(r % UINT64_C(86400000000));
    } else {
        v.i64 = (int64_t)(r << (64 - bits)) >> (64 - bits);
    }
    return v;
}

static struct gar_column *random_column(struct gar_type type, int64_t rows, bool narrow,
                                        int32_t null_share)
{
    struct gar_builder builder;
    struct gar_column *column = NULL;
    gar_builder_init(&builder, gar_memory_system(), type);
    for (int64_t i = 0; i < rows; i++) {
        struct gar_value v = random_value(type, narrow, null_share);
        assert_int_equal(gar_builder_append_value(&builder, &v, NULL), GAR_OK);
        gar_value_destroy(&v);
    }
    assert_int_equal(gar_builder_finish(&builder, &column, NULL), GAR_OK);
    gar_builder_destroy(&builder);
    return column;
}

static struct gar_batch *random_batch(int64_t rows, bool narrow, int32_t null_share)
{
    struct gar_field fields[TYPES];
    char names[TYPES][16];
    struct gar_column *columns[TYPES];
    for (int32_t i = 0; i < TYPES; i++) {
        (void)snprintf(names[i], sizeof names[i], "c%d", i);
        fields[i] = (struct gar_field){.name = names[i], .type = types[i], .nullable = true};
        if (types[i].id == GAR_TIMESTAMP && types[i].unit == GAR_NANO) {
            fields[i].type.zone = gar_zone_intern("Europe/Berlin", 13, NULL);
        }
        columns[i] = random_column(fields[i].type, rows, narrow, null_share);
    }
    struct gar_schema *schema = NULL;
    struct gar_batch *batch = NULL;
    assert_int_equal(gar_schema_new(fields, TYPES, false, &schema, NULL), GAR_OK);
    assert_int_equal(gar_batch_new(schema, columns, rows, &batch, NULL), GAR_OK);
    gar_schema_unref(schema);
    return batch;
}

static void take_all(struct gar_parquet_writer *writer, struct gar_strbuf *out)
{
    const uint8_t *data = NULL;
    int64_t bytes = 0;
    while (gar_parquet_writer_next(writer, &data, &bytes) == GAR_OK) {
        gar_strbuf_append_n(out, (const char *)data, bytes);
    }
}

/* The batch, appended in pieces, as a file. */
static struct bytes write_file(struct gar_batch *batch,
                               const struct gar_parquet_write_options *options, int64_t piece)
{
    struct gar_parquet_writer *writer = NULL;
    struct gar_strbuf out = {0};
    assert_int_equal(
        gar_parquet_writer_new(batch->schema, options, gar_memory_system(), &writer, NULL), GAR_OK);
    for (int64_t at = 0; at < batch->rows; at += piece) {
        struct gar_batch *part = NULL;
        assert_int_equal(
            gar_batch_slice(batch, at, gar_min_i64(piece, batch->rows - at), &part, NULL), GAR_OK);
        assert_int_equal(gar_parquet_writer_append(writer, part, NULL), GAR_OK);
        gar_batch_unref(part);
        take_all(writer, &out);
    }
    assert_int_equal(gar_parquet_writer_finish(writer, NULL), GAR_OK);
    take_all(writer, &out);
    assert_int_equal(gar_parquet_writer_rows(writer), batch->rows);
    assert_int_equal(gar_parquet_writer_bytes(writer), out.size);
    gar_parquet_writer_free(writer);
    assert_false(out.failed);
    const struct bytes b = bytes_copy(out.data, out.size);
    gar_strbuf_destroy(&out);
    return b;
}

static void check_column(const struct gar_column *got, const struct gar_column *want,
                         int64_t offset)
{
    for (int64_t i = 0; i < got->length; i++) {
        struct gar_value a;
        struct gar_value b;
        assert_int_equal(gar_value_from_column(got, i, &a, NULL), GAR_OK);
        assert_int_equal(gar_value_from_column(want, offset + i, &b, NULL), GAR_OK);
        assert_true(gar_value_equal(&a, &b));
        gar_value_destroy(&a);
        gar_value_destroy(&b);
    }
}

static void check_file(struct bytes b, const struct gar_batch *want, int64_t groups)
{
    struct gar_parquet_file *file = NULL;
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(parse_file(b, &file, &err), GAR_OK);
    assert_int_equal(file->rows, want->rows);
    assert_true(gar_schema_equal(file->schema, want->schema));
    if (groups >= 0) {
        assert_int_equal(file->row_group_count, groups);
    }
    for (int64_t g = 0; g < file->row_group_count; g++) {
        for (int64_t c = 0; c < file->schema->count; c++) {
            struct gar_parquet_reader *reader = NULL;
            int64_t at = file->row_groups[g].first_row;
            assert_int_equal(open_chunk(b, file, g, c, g % 2 == 1, &reader, &err), GAR_OK);
            while (gar_parquet_reader_left(reader) > 0) {
                struct gar_column *column = NULL;
                const int64_t n = gar_min_i64(gar_parquet_reader_left(reader),
                                              1 + (int64_t)(next_random() % 3000));
                assert_int_equal(gar_parquet_reader_read(reader, n, &column, &err), GAR_OK);
                assert_int_equal(gar_column_validate(column, &err), GAR_OK);
                check_column(column, want->columns[c], at);
                at += n;
                gar_column_unref(column);
            }
            gar_parquet_reader_free(reader);
        }
    }
    gar_parquet_file_unref(file);
}

static void test_round_trip(void **state)
{
    (void)state;
    static const enum gar_parquet_codec codecs[] = {GAR_PARQUET_NONE, GAR_PARQUET_SNAPPY,
                                                    GAR_PARQUET_GZIP, GAR_PARQUET_BROTLI,
                                                    GAR_PARQUET_ZSTD, GAR_PARQUET_LZ4_RAW};
    for (int32_t round = 0; round < 12; round++) {
        struct gar_batch *const batch =
            random_batch(round == 0 ? 1 : 700, round % 2 == 0, round % 3 * 40);
        struct gar_parquet_write_options options;
        gar_parquet_write_options_init(&options);
        options.codec = codecs[round % 6];
        options.row_group_rows = 300;
        options.page_bytes = round % 4 == 0 ? 100 : 0;
        options.no_dictionary = round % 5 == 4;
        const struct bytes b = write_file(batch, &options, 123);
        check_file(b, batch, round == 0 ? 1 : 3);
        free(b.data);
        gar_batch_unref(batch);
    }
    /* No rows, and all rows null. */
    struct gar_batch *batch = random_batch(0, false, 0);
    struct gar_parquet_write_options options;
    gar_parquet_write_options_init(&options);
    struct bytes b = write_file(batch, &options, 1);
    check_file(b, batch, 0);
    free(b.data);
    gar_batch_unref(batch);
    batch = random_batch(50, false, 100);
    b = write_file(batch, &options, 7);
    check_file(b, batch, 1);
    free(b.data);
    gar_batch_unref(batch);
    /* More rows than a page has. */
    batch = random_batch(50000, true, 10);
    b = write_file(batch, &options, 9999);
    check_file(b, batch, 1);
    free(b.data);
    gar_batch_unref(batch);
}

static void test_encodings_of_columns(void **state)
{
    (void)state;
    /* A constant, a dictionary and a selection are written as what they show. */
    struct gar_batch *const batch = random_batch(100, true, 20);
    struct gar_column *text = NULL;
    struct gar_column *one = NULL;
    struct gar_column *constant = NULL;
    assert_int_equal(gar_column_slice(batch->columns[16], 0, 1, &one, NULL), GAR_OK);
    assert_int_equal(gar_column_flatten(one, gar_memory_system(), &text, NULL), GAR_OK);
    gar_column_unref(one);
    assert_int_equal(gar_column_new_constant(text, 100, &constant, NULL), GAR_OK);
    struct gar_field field = {
        .name = (char[]){"s"}, .type = gar_type_of(GAR_STRING), .nullable = true};
    struct gar_schema *schema = NULL;
    struct gar_batch *whole = NULL;
    struct gar_batch *chosen = NULL;
    struct gar_batch *gathered = NULL;
    struct gar_buffer *selection = NULL;
    assert_int_equal(gar_schema_new(&field, 1, false, &schema, NULL), GAR_OK);
    assert_int_equal(gar_batch_new(schema, &constant, 100, &whole, NULL), GAR_OK);
    assert_int_equal(gar_buffer_new(gar_memory_system(), 8, &selection, NULL), GAR_OK);
    const uint32_t rows[] = {3, 99};
    memcpy(selection->data, rows, sizeof rows);
    assert_int_equal(gar_batch_select(whole, selection, 2, &chosen, NULL), GAR_OK);
    assert_int_equal(gar_batch_gather(chosen, gar_memory_system(), &gathered, NULL), GAR_OK);
    struct gar_parquet_write_options options;
    gar_parquet_write_options_init(&options);
    struct gar_parquet_group *group = NULL;
    assert_int_equal(
        gar_parquet_group_encode(schema, &chosen, 1, &options, gar_memory_system(), &group, NULL),
        GAR_OK);
    assert_int_equal(gar_parquet_group_rows(group), 2);
    struct gar_parquet_writer *writer = NULL;
    struct gar_strbuf out = {0};
    assert_int_equal(gar_parquet_writer_new(schema, &options, gar_memory_system(), &writer, NULL),
                     GAR_OK);
    assert_int_equal(gar_parquet_writer_append(writer, whole, NULL), GAR_OK);
    assert_int_equal(gar_parquet_writer_add(writer, group, NULL), GAR_OK);
    assert_int_equal(gar_parquet_writer_append(writer, batch, NULL), GAR_ERR_TYPE);
    assert_int_equal(gar_parquet_writer_finish(writer, NULL), GAR_OK);
    take_all(writer, &out);
    gar_parquet_writer_free(writer);
    const struct bytes b = bytes_copy(out.data, out.size);
    struct gar_batch *all = NULL;
    struct gar_batch *const both[] = {whole, gathered};
    assert_int_equal(gar_batch_concat(schema, both, 2, gar_memory_system(), &all, NULL), GAR_OK);
    check_file(b, all, 2);
    free(b.data);
    gar_strbuf_destroy(&out);
    gar_batch_unref(all);
    gar_batch_unref(gathered);
    gar_batch_unref(chosen);
    gar_batch_unref(whole);
    gar_batch_unref(batch);
    gar_schema_unref(schema);
}

/* A DICTIONARY column with repeated entries and nulls, as files give it. */
static void test_dictionary_input(void **state)
{
    (void)state;
    enum { ROWS = 1000, ENTRIES = 6 };
    struct gar_column *dictionary = random_column(gar_type_of(GAR_STRING), ENTRIES, true, 0);
    struct gar_buffer *codes = NULL;
    struct gar_buffer *validity = NULL;
    struct gar_column *column = NULL;
    assert_int_equal(gar_buffer_new(gar_memory_system(), ROWS * 4, &codes, NULL), GAR_OK);
    assert_int_equal(gar_buffer_new_zeroed(gar_memory_system(), ROWS / 8, &validity, NULL), GAR_OK);
    int64_t nulls = 0;
    for (int64_t i = 0; i < ROWS; i++) {
        const uint32_t code = (uint32_t)(next_random() % ENTRIES);
        const bool is_valid = next_random() % 5 != 0;
        memcpy(codes->data + 4 * i, &code, 4);
        gar_bit_put(validity->data, i, is_valid);
        nulls += !is_valid;
    }
    assert_int_equal(gar_column_new_dictionary(codes, ROWS, validity, nulls, dictionary,
                                               gar_dictionary_next_id(), &column, NULL),
                     GAR_OK);
    struct gar_field field = {
        .name = (char[]){"s"}, .type = gar_type_of(GAR_STRING), .nullable = true};
    struct gar_schema *schema = NULL;
    struct gar_batch *batch = NULL;
    assert_int_equal(gar_schema_new(&field, 1, false, &schema, NULL), GAR_OK);
    assert_int_equal(gar_batch_new(schema, &column, ROWS, &batch, NULL), GAR_OK);
    struct gar_parquet_write_options options;
    gar_parquet_write_options_init(&options);
    const struct bytes b = write_file(batch, &options, 333);
    check_file(b, batch, 1);
    free(b.data);
    gar_batch_unref(batch);
    gar_schema_unref(schema);
}

/* One column of given values. */
static struct bytes write_values(struct gar_type type, const struct gar_value *values,
                                 int64_t count)
{
    struct gar_builder builder;
    struct gar_column *column = NULL;
    gar_builder_init(&builder, gar_memory_system(), type);
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(gar_builder_append_value(&builder, &values[i], NULL), GAR_OK);
    }
    assert_int_equal(gar_builder_finish(&builder, &column, NULL), GAR_OK);
    gar_builder_destroy(&builder);
    struct gar_field field = {.name = (char[]){"x"}, .type = type, .nullable = true};
    struct gar_schema *schema = NULL;
    struct gar_batch *batch = NULL;
    assert_int_equal(gar_schema_new(&field, 1, false, &schema, NULL), GAR_OK);
    assert_int_equal(gar_batch_new(schema, &column, count, &batch, NULL), GAR_OK);
    struct gar_parquet_write_options options;
    gar_parquet_write_options_init(&options);
    const struct bytes b = write_file(batch, &options, count);
    gar_batch_unref(batch);
    gar_schema_unref(schema);
    return b;
}

static bool excludes(struct bytes b, enum gar_parquet_compare op, struct gar_value literal)
{
    struct gar_parquet_file *file = NULL;
    struct gar_parquet_bounds bounds;
    assert_int_equal(parse_file(b, &file, NULL), GAR_OK);
    assert_int_equal(gar_parquet_bounds_get(file, 0, 0, &bounds, NULL), GAR_OK);
    const bool is_excluded = gar_parquet_bounds_exclude(&bounds, op, &literal);
    gar_parquet_bounds_destroy(&bounds);
    gar_parquet_file_unref(file);
    return is_excluded;
}

static void test_bounds(void **state)
{
    (void)state;
    const struct gar_type i64 = gar_type_of(GAR_INT64);
#define INT(v) ((struct gar_value){.type = i64, .is_valid = true, .i64 = (v)})
    const struct gar_value ints[] = {INT(5), {.type = i64}, INT(9)};
    struct bytes b = write_values(i64, ints, 3);
    assert_true(excludes(b, GAR_PARQUET_EQ, INT(4)));
    assert_false(excludes(b, GAR_PARQUET_EQ, INT(5)));
    assert_false(excludes(b, GAR_PARQUET_EQ, INT(7)));
    assert_true(excludes(b, GAR_PARQUET_EQ, INT(10)));
    assert_false(excludes(b, GAR_PARQUET_NE, INT(5)));
    assert_true(excludes(b, GAR_PARQUET_LT, INT(5)));
    assert_false(excludes(b, GAR_PARQUET_LT, INT(6)));
    assert_true(excludes(b, GAR_PARQUET_LE, INT(4)));
    assert_false(excludes(b, GAR_PARQUET_LE, INT(5)));
    assert_true(excludes(b, GAR_PARQUET_GT, INT(9)));
    assert_false(excludes(b, GAR_PARQUET_GT, INT(8)));
    assert_true(excludes(b, GAR_PARQUET_GE, INT(10)));
    assert_false(excludes(b, GAR_PARQUET_GE, INT(9)));
    /* A literal of another type proves nothing; a null one everything. */
    assert_false(excludes(b, GAR_PARQUET_EQ,
                          (struct gar_value){.type = gar_type_of(GAR_INT32), .is_valid = true}));
    assert_true(excludes(b, GAR_PARQUET_EQ, (struct gar_value){.type = i64}));
    free(b.data);
    const struct gar_value same[] = {INT(5), INT(5)};
    b = write_values(i64, same, 2);
    assert_true(excludes(b, GAR_PARQUET_NE, INT(5)));
    free(b.data);
    const struct gar_value nulls[] = {{.type = i64}, {.type = i64}};
    b = write_values(i64, nulls, 2);
    assert_true(excludes(b, GAR_PARQUET_NE, INT(5)));
    free(b.data);

    const struct gar_type f64 = gar_type_of(GAR_FLOAT64);
#define FLOAT(v) ((struct gar_value){.type = f64, .is_valid = true, .f64 = (double)(v)})
    const struct gar_value floats[] = {FLOAT(0.0), FLOAT(NAN)};
    b = write_values(f64, floats, 2);
    assert_false(excludes(b, GAR_PARQUET_EQ, FLOAT(-0.0)));
    assert_false(excludes(b, GAR_PARQUET_NE, FLOAT(0.0)));
    assert_true(excludes(b, GAR_PARQUET_EQ, FLOAT(1.0)));
    assert_true(excludes(b, GAR_PARQUET_GT, FLOAT(0.0)));
    assert_true(excludes(b, GAR_PARQUET_EQ, FLOAT(NAN)));
    assert_false(excludes(b, GAR_PARQUET_NE, FLOAT(NAN)));
    free(b.data);
    const struct gar_value all_nan[] = {FLOAT(NAN), FLOAT(NAN)};
    b = write_values(f64, all_nan, 2);
    assert_false(excludes(b, GAR_PARQUET_EQ, FLOAT(1.0)));
    free(b.data);
#undef INT
#undef FLOAT
}

static void test_damage(void **state)
{
    (void)state;
    struct gar_batch *const batch = random_batch(20, true, 20);
    static const enum gar_parquet_codec codecs[] = {GAR_PARQUET_NONE, GAR_PARQUET_SNAPPY,
                                                    GAR_PARQUET_ZSTD};
    for (int64_t k = 0; k < GAR_COUNT_OF(codecs); k++) {
        struct gar_parquet_write_options options;
        gar_parquet_write_options_init(&options);
        options.codec = codecs[k];
        options.row_group_rows = 20;
        options.no_dictionary = k == 0;
        const struct bytes b = write_file(batch, &options, 20);
        struct gar_error err = GAR_ERROR_INIT;
        int64_t rows = 0;
        /* No prefix is a file. */
        for (int64_t cut = 0; cut < b.size; cut++) {
            const struct bytes part = bytes_copy(b.data, cut);
            assert_true(read_everything(part, 100, false, &rows, &err) < 0);
            free(part.data);
        }
        /* Any byte changed (each codec takes a third of them): an error or well-formed columns. */
        for (int64_t at = k; at < b.size; at += GAR_COUNT_OF(codecs)) {
            const struct bytes part = bytes_copy(b.data, b.size);
            part.data[at] = (uint8_t)(part.data[at] ^ (1U << (next_random() % 8)));
            (void)read_everything(part, 17, at % 2 == 0, &rows, &err);
            part.data[at] = (uint8_t)next_random();
            (void)read_selections(part, 20, &err);
            free(part.data);
        }
        free(b.data);
    }
    gar_batch_unref(batch);
}

static void test_no_memory(void **state)
{
    (void)state;
    struct gar_batch *const batch = random_batch(30, true, 20);
    struct gar_parquet_write_options options;
    gar_parquet_write_options_init(&options);
    options.codec = GAR_PARQUET_NONE; /* the libraries' own memory is not behind the hook */
    const struct bytes b = write_file(batch, &options, 30);
    gar_batch_unref(batch);
    struct gar_error err = GAR_ERROR_INIT;
    const int64_t live = gar_alloc_live_blocks();
    /* Every failing place costs a read of all before it, so that larger steps are taken later. */
    for (int64_t n = 1; n < 100000; n += 1 + n / 200) {
        int64_t rows = 0;
        (void)gar_alloc_fail_at(n, n % 2 == 0);
        const enum gar_status status = read_everything(b, 10, n % 3 == 0, &rows, &err);
        (void)gar_alloc_fail_at(0, false);
        assert_int_equal(gar_alloc_live_blocks(), live);
        if (status >= 0) {
            assert_true(n > 100);
            break;
        }
        assert_int_equal(status, GAR_ERR_NOMEM);
    }
    free(b.data);
}

static void test_names(void **state)
{
    (void)state;
    enum gar_parquet_codec codec = GAR_PARQUET_NONE;
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(gar_parquet_codec_parse("zstd", &codec, &err), GAR_OK);
    assert_int_equal(codec, GAR_PARQUET_ZSTD);
    assert_int_equal(gar_parquet_codec_parse("uncompressed", &codec, &err), GAR_OK);
    assert_int_equal(codec, GAR_PARQUET_NONE);
    assert_int_equal(gar_parquet_codec_parse("rar", &codec, &err), GAR_ERR_VALUE);
    assert_non_null(strstr(err.message, "'rar'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_encodings_of_columns),
        cmocka_unit_test(test_dictionary_input),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
