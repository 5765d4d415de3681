/* SPDX-License-Identifier: Apache-2.0 */
/* Spilled runs: every type and encoding comes back, damage is seen, failures leave nothing. */
#include "exec/spilled.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arrow/builder.h"
#include "arrow/gather.h"
#include "base/alloc.h"

static struct gar_spill_space *space;

enum { ROWS = 3000 };

static struct gar_type type_of(int32_t id)
{
    switch (id) {
    case GAR_DECIMAL128: return gar_type_decimal(30, 2);
    case GAR_TIME: return gar_type_with_unit(GAR_TIME, GAR_MICRO);
    case GAR_TIMESTAMP: return gar_type_timestamp(GAR_MILLI, NULL);
    case GAR_DURATION: return gar_type_with_unit(GAR_DURATION, GAR_NANO);
    default: return gar_type_of((enum gar_type_id)id);
    }
}

/* Row i of a column of the type; every seventh is null when asked. */
static struct gar_column *new_column(struct gar_type type, bool with_nulls)
{
    struct gar_builder builder;
    struct gar_column *made = NULL;
    gar_builder_init(&builder, gar_memory_system(), type);
    for (int64_t i = 0; i < ROWS; i++) {
        enum gar_status status = GAR_OK;
        if ((with_nulls && i % 7 == 3) || type.id == GAR_NULL) {
            status = gar_builder_append_null(&builder, NULL);
        } else if (type.id == GAR_BOOL) {
            status = gar_builder_append_bool(&builder, i % 3 == 0, NULL);
        } else if (gar_type_is_text(type)) {
            char text[64];
            memset(text, 'a' + (int)(i % 26), sizeof text);
            status = gar_builder_append_bytes(&builder, text, i % 40, NULL);
        } else {
            const int64_t value[2] = {i * 37 % 1001 % 100, 0};
            status = gar_builder_append_fixed(&builder, value, NULL);
        }
        assert_int_equal(status, GAR_OK);
    }
    assert_int_equal(gar_builder_finish(&builder, &made, NULL), GAR_OK);
    gar_builder_destroy(&builder);
    return made;
}

/* A column of each type, with and without nulls. */
static struct gar_batch *new_batch(void)
{
    struct gar_field fields[2 * GAR_TYPE_ID_COUNT] = {{0}};
    struct gar_column *columns[2 * GAR_TYPE_ID_COUNT];
    char names[2 * GAR_TYPE_ID_COUNT][8];
    int64_t count = 0;
    for (int32_t id = 0; id <= GAR_DURATION; id++) {
        for (int32_t nulls = 0; nulls < 2; nulls++) {
            names[count][0] = (char)('a' + id);
            names[count][1] = nulls ? 'n' : 'v';
            names[count][2] = '\0';
            fields[count].name = names[count];
            fields[count].type = type_of(id);
            fields[count].nullable = true;
            columns[count] = new_column(fields[count].type, nulls == 1);
            count++;
        }
    }
    struct gar_schema *schema = NULL;
    struct gar_batch *batch = NULL;
    assert_int_equal(gar_schema_new(fields, count, false, &schema, NULL), GAR_OK);
    assert_int_equal(gar_batch_new(schema, columns, ROWS, &batch, NULL), GAR_OK);
    gar_schema_unref(schema);
    return batch;
}

static void assert_rows_equal(const struct gar_batch *a, int64_t a_row, const struct gar_batch *b,
                              int64_t b_row)
{
    for (int64_t c = 0; c < a->schema->count; c++) {
        struct gar_value x = {.is_valid = false};
        struct gar_value y = {.is_valid = false};
        assert_int_equal(gar_value_from_column(a->columns[c], a_row, &x, NULL), GAR_OK);
        assert_int_equal(gar_value_from_column(b->columns[c], b_row, &y, NULL), GAR_OK);
        assert_true(gar_value_equal(&x, &y));
        gar_value_destroy(&x);
        gar_value_destroy(&y);
    }
}

static struct gar_spill_file *new_file(void)
{
    struct gar_spill_file *file = NULL;
    assert_int_equal(gar_spill_file_new(space, &file, NULL), GAR_OK);
    return file;
}

static void test_everything_comes_back(void **context)
{
    (void)context;
    struct gar_batch *batch = new_batch();
    struct gar_spill_file *file = new_file();
    struct gar_spilled run;
    const int64_t starts[] = {0, 1, 13, 2999};
    gar_spilled_init(&run, file, batch->schema);
    for (int64_t i = 0; i < 4; i++) {
        struct gar_batch *slice = NULL;
        assert_int_equal(gar_batch_slice(batch, starts[i], ROWS - starts[i], &slice, NULL), GAR_OK);
        assert_int_equal(gar_spilled_add(&run, slice, gar_memory_system(), NULL), GAR_OK);
        gar_batch_unref(slice);
    }
    assert_int_equal(run.count, 4);
    assert_int_equal(run.rows, 4 * ROWS - 3013);
    for (int64_t i = 3; i >= 0; i--) {
        struct gar_batch *back = NULL;
        assert_int_equal(gar_spilled_read(&run, i, gar_memory_system(), &back, NULL), GAR_OK);
        assert_int_equal(back->rows, ROWS - starts[i]);
        for (int64_t row = 0; row < back->rows; row += 1 + i * 97) {
            assert_rows_equal(batch, starts[i] + row, back, row);
        }
        gar_batch_unref(back);
        gar_spilled_release(&run, i);
    }
    assert_int_equal(gar_spill_space_used_bytes(space), 0);
    gar_spilled_destroy(&run);
    gar_spill_file_free(file);
    gar_batch_unref(batch);
}

static void test_encodings_and_selections(void **context)
{
    (void)context;
    struct gar_column *value = new_column(gar_type_of(GAR_STRING), false);
    struct gar_column *one = NULL;
    struct gar_column *columns[1];
    struct gar_buffer *selection = NULL;
    struct gar_batch *batch = NULL;
    struct gar_batch *selected = NULL;
    struct gar_batch *back = NULL;
    struct gar_schema *schema = NULL;
    struct gar_spilled run;
    struct gar_spill_file *file = new_file();
    char name[] = "s";
    const struct gar_field field = {
        .name = name, .type = gar_type_of(GAR_STRING), .nullable = true};
    assert_int_equal(gar_schema_new(&field, 1, false, &schema, NULL), GAR_OK);
    assert_int_equal(gar_column_slice(value, 25, 1, &one, NULL), GAR_OK);
    assert_int_equal(gar_column_new_constant(one, ROWS, &columns[0], NULL), GAR_OK);
    assert_int_equal(gar_batch_new(schema, columns, ROWS, &batch, NULL), GAR_OK);
    assert_int_equal(gar_buffer_new(gar_memory_system(), 8, &selection, NULL), GAR_OK);
    const uint32_t rows[2] = {5, 77};
    memcpy(selection->data, rows, sizeof rows);
    assert_int_equal(gar_batch_select(batch, selection, 2, &selected, NULL), GAR_OK);
    gar_spilled_init(&run, file, schema);
    assert_int_equal(gar_spilled_add(&run, selected, gar_memory_system(), NULL), GAR_OK);
    assert_int_equal(gar_spilled_read(&run, 0, gar_memory_system(), &back, NULL), GAR_OK);
    assert_int_equal(back->rows, 2);
    assert_int_equal(back->columns[0]->encoding, GAR_FLAT);
    assert_rows_equal(batch, 0, back, 1);
    gar_batch_unref(back);
    gar_batch_unref(batch);
    gar_batch_unref(selected);
    gar_spilled_destroy(&run);
    gar_spill_file_free(file);
    gar_schema_unref(schema);
    gar_column_unref(value);
}

static void test_damage_is_seen(void **context)
{
    (void)context;
    struct gar_batch *batch = new_batch();
    struct gar_spill_file *file = new_file();
    struct gar_spilled run;
    struct gar_batch *back = NULL;
    struct gar_error err = GAR_ERROR_INIT;
    gar_spilled_init(&run, file, batch->schema);
    assert_int_equal(gar_spilled_add(&run, batch, gar_memory_system(), NULL), GAR_OK);
    assert_int_equal(gar_spilled_add(&run, batch, gar_memory_system(), NULL), GAR_OK);
    run.blocks[0].bytes -= 1; /* the end is missing */
    assert_int_equal(gar_spilled_read(&run, 0, gar_memory_system(), &back, &err), GAR_ERR_IO);
    assert_non_null(strstr(err.message, "checksum"));
    run.blocks[0].bytes += 1;
    run.blocks[0].offset = run.blocks[1].offset + 4096; /* the bytes of another place */
    assert_int_equal(gar_spilled_read(&run, 0, gar_memory_system(), &back, &err), GAR_ERR_IO);
    run.blocks[0].offset = 0;
    assert_int_equal(gar_spilled_read(&run, 0, gar_memory_system(), &back, &err), GAR_OK);
    gar_batch_unref(back);
    gar_spilled_destroy(&run);
    gar_spill_file_free(file);
    gar_batch_unref(batch);
}

static void test_allocation_failures(void **context)
{
    (void)context;
    struct gar_batch *batch = new_batch();
    const int64_t blocks = gar_alloc_live_blocks();
    const int64_t bytes = gar_memory_system_live_bytes();
    bool is_done = false;
    for (int64_t n = 1; !is_done; n++) {
        struct gar_spill_file *file = new_file();
        struct gar_spilled run;
        struct gar_batch *back = NULL;
        gar_spilled_init(&run, file, batch->schema);
        (void)gar_alloc_fail_at(n, false);
        enum gar_status status = gar_spilled_add(&run, batch, gar_memory_system(), NULL);
        if (status >= 0) {
            status = gar_spilled_read(&run, 0, gar_memory_system(), &back, NULL);
        }
        is_done = gar_alloc_fail_at(0, false) < n;
        assert_true(status == GAR_OK || status == GAR_ERR_NOMEM);
        gar_batch_unref(back);
        gar_spilled_destroy(&run);
        gar_spill_file_free(file);
        assert_int_equal(gar_alloc_live_blocks(), blocks);
        assert_int_equal(gar_memory_system_live_bytes(), bytes);
        assert_int_equal(gar_spill_space_used_bytes(space), 0);
    }
    gar_batch_unref(batch);
}

static int set_up(void **context)
{
    (void)context;
    return gar_spill_space_new(NULL, 0, &space, NULL);
}

static int tear_down(void **context)
{
    (void)context;
    gar_spill_space_unref(space);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything_comes_back),
        cmocka_unit_test(test_encodings_and_selections),
        cmocka_unit_test(test_damage_is_seen),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
