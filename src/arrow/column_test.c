/* SPDX-License-Identifier: Apache-2.0 */
/* Columns, gathering, concatenation, builders and batches against row-by-row answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "arrow/batch.h"
#include "arrow/builder.h"
#include "arrow/gather.h"
#include "base/alloc.h"

static uint64_t random_state = 99;

static uint64_t next_random(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return random_state >> 17 ^ random_state >> 41;
}

static struct gar_memory *memory(void)
{
    return gar_memory_system();
}

static const struct gar_type all_types[] = {
    {.id = GAR_NULL},
    {.id = GAR_BOOL},
    {.id = GAR_INT8},
    {.id = GAR_UINT16},
    {.id = GAR_INT32},
    {.id = GAR_INT64},
    {.id = GAR_FLOAT32},
    {.id = GAR_FLOAT64},
    {.id = GAR_DECIMAL128, .precision = 20, .scale = 3},
    {.id = GAR_STRING},
    {.id = GAR_BINARY},
    {.id = GAR_DATE},
    {.id = GAR_TIMESTAMP, .unit = GAR_NANO},
};

static struct gar_value random_value(struct gar_type type)
{
    struct gar_value v = {.type = type, .is_valid = next_random() % 4 != 0 && type.id != GAR_NULL};
    const int64_t r = (int64_t)(next_random() % 100);
    if (!v.is_valid) {
        return v;
    }
    if (type.id == GAR_BOOL) {
        v.boolean = r % 2 == 0;
    } else if (gar_type_is_float(type)) {
        v.f64 = (double)r / 4;
    } else if (type.id == GAR_DECIMAL128) {
        v.i128 = (gar_i128)r * 1000000007;
    } else if (gar_type_is_text(type)) {
        char text[64];
        const int bytes = snprintf(text, sizeof text, "%.*s", (int)(r % 40),
                                   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP");
        assert_int_equal(gar_value_from_text(type, text, bytes, &v, NULL), GAR_OK);
    } else if (gar_type_is_unsigned(type)) {
        v.u64 = (uint64_t)r;
    } else {
        v.i64 = r - 50;
    }
    return v;
}

/* A random column of any encoding. */
static struct gar_column *random_column(struct gar_type type, int64_t rows)
{
    const uint64_t kind = next_random() % 3;
    struct gar_builder b;
    struct gar_column *column = NULL;
    struct gar_column *flat = NULL;
    gar_builder_init(&b, memory(), type);
    const int64_t entries = kind == 0 ? rows : kind == 1 ? 5 : 1;
    for (int64_t i = 0; i < entries; i++) {
        struct gar_value v = random_value(type);
        while (kind == 1 && type.id != GAR_NULL && !v.is_valid) {
            v = random_value(type);
        }
        assert_int_equal(gar_builder_append_value(&b, &v, NULL), GAR_OK);
        gar_value_destroy(&v);
    }
    assert_int_equal(gar_builder_finish(&b, &flat, NULL), GAR_OK);
    gar_builder_destroy(&b);
    if (kind == 0 || (kind == 1 && type.id == GAR_NULL)) {
        assert_int_equal(gar_column_slice(flat, 0, gar_min_i64(rows, flat->length), &column, NULL),
                         GAR_OK);
        gar_column_unref(flat);
    } else if (kind == 1) {
        struct gar_buffer *codes = NULL;
        struct gar_buffer *validity = NULL;
        assert_int_equal(gar_buffer_new(memory(), rows * 4, &codes, NULL), GAR_OK);
        assert_int_equal(gar_buffer_new(memory(), gar_bits_bytes(rows), &validity, NULL), GAR_OK);
        for (int64_t i = 0; i < rows; i++) {
            ((uint32_t *)(void *)codes->data)[i] = (uint32_t)(next_random() % 5);
            gar_bit_put(validity->data, i, next_random() % 3 != 0);
        }
        assert_int_equal(gar_column_new_dictionary(codes, rows, validity, -1, flat,
                                                   gar_dictionary_next_id(), &column, NULL),
                         GAR_OK);
    } else {
        assert_int_equal(gar_column_new_constant(flat, rows, &column, NULL), GAR_OK);
    }
    assert_int_equal(gar_column_validate(column, NULL), GAR_OK);
    return column;
}

static void assert_same_row(const struct gar_column *a, int64_t i, const struct gar_column *b,
                            int64_t j)
{
    struct gar_value x = {0};
    struct gar_value y = {0};
    assert_int_equal(gar_value_from_column(a, i, &x, NULL), GAR_OK);
    if (b == NULL) {
        assert_false(x.is_valid);
    } else {
        assert_int_equal(gar_value_from_column(b, j, &y, NULL), GAR_OK);
        assert_true(gar_value_equal(&x, &y));
    }
    gar_value_destroy(&x);
    gar_value_destroy(&y);
}

static void check_gather(const struct gar_column *column)
{
    uint32_t rows[200];
    int64_t wide_rows[200];
    const int64_t count = column->length == 0 ? 0 : (int64_t)(next_random() % 200);
    for (int64_t i = 0; i < count; i++) {
        rows[i] = (uint32_t)(next_random() % (uint64_t)column->length);
        wide_rows[i] = next_random() % 5 == 0 ? -1 : (int64_t)rows[i];
    }
    struct gar_column *out = NULL;
    assert_int_equal(gar_column_gather(column, rows, count, memory(), &out, NULL), GAR_OK);
    assert_int_equal(gar_column_validate(out, NULL), GAR_OK);
    for (int64_t i = 0; i < count; i++) {
        assert_same_row(out, i, column, rows[i]);
    }
    gar_column_unref(out);
    assert_int_equal(gar_column_gather_i64(column, wide_rows, count, memory(), &out, NULL), GAR_OK);
    assert_int_equal(gar_column_validate(out, NULL), GAR_OK);
    for (int64_t i = 0; i < count; i++) {
        assert_same_row(out, i, wide_rows[i] < 0 ? NULL : column, wide_rows[i]);
    }
    gar_column_unref(out);
}

static void check_flatten_and_compact(const struct gar_column *column)
{
    struct gar_column *flat = NULL;
    struct gar_column *compact = NULL;
    assert_int_equal(gar_column_flatten(column, memory(), &flat, NULL), GAR_OK);
    assert_int_equal(flat->encoding, GAR_FLAT);
    assert_int_equal(gar_column_validate(flat, NULL), GAR_OK);
    assert_int_equal(gar_column_compact(flat, next_random() % 2 == 0, memory(), &compact, NULL),
                     GAR_OK);
    assert_int_equal(gar_column_validate(compact, NULL), GAR_OK);
    assert_int_equal(gar_column_null_count(column), gar_column_null_count(flat));
    for (int64_t i = 0; i < column->length; i++) {
        assert_same_row(column, i, flat, i);
        assert_same_row(column, i, compact, i);
    }
    gar_column_unref(flat);
    gar_column_unref(compact);
}

static struct gar_column *random_slice(struct gar_column *column)
{
    struct gar_column *slice = NULL;
    const int64_t offset = (int64_t)(next_random() % (uint64_t)(column->length + 1));
    const int64_t length = (int64_t)(next_random() % (uint64_t)(column->length - offset + 1));
    assert_int_equal(gar_column_slice(column, offset, length, &slice, NULL), GAR_OK);
    for (int64_t i = 0; i < length; i++) {
        assert_same_row(slice, i, column, offset + i);
    }
    return slice;
}

static void rows_move_as_one_by_one(void **state)
{
    (void)state;
    for (int round = 0; round < 60; round++) {
        for (int64_t t = 0; t < GAR_COUNT_OF(all_types); t++) {
            struct gar_column *column = random_column(all_types[t], (int64_t)(next_random() % 100));
            struct gar_column *slice = random_slice(column);
            check_gather(column);
            check_gather(slice);
            check_flatten_and_compact(column);
            check_flatten_and_compact(slice);
            gar_column_unref(slice);
            gar_column_unref(column);
        }
    }
}

static void concat_keeps_rows_in_order(void **state)
{
    (void)state;
    for (int round = 0; round < 60; round++) {
        for (int64_t t = 0; t < GAR_COUNT_OF(all_types); t++) {
            struct gar_column *parts[6] = {0};
            const int64_t count = (int64_t)(next_random() % 7);
            for (int64_t k = 0; k < count; k++) {
                if (k > 0 && next_random() % 2 == 0) {
                    parts[k] = random_slice(parts[k - 1]);
                } else {
                    parts[k] = random_column(all_types[t], (int64_t)(next_random() % 60));
                }
            }
            struct gar_column *all = NULL;
            assert_int_equal(gar_column_concat(parts, count, all_types[t], memory(), &all, NULL),
                             GAR_OK);
            assert_int_equal(gar_column_validate(all, NULL), GAR_OK);
            int64_t at = 0;
            for (int64_t k = 0; k < count; k++) {
                for (int64_t i = 0; i < parts[k]->length; i++) {
                    assert_same_row(all, at++, parts[k], i);
                }
                gar_column_unref(parts[k]);
            }
            assert_int_equal(at, all->length);
            gar_column_unref(all);
        }
    }
}

static void compact_drops_unused_bytes(void **state)
{
    (void)state;
    struct gar_builder b;
    struct gar_column *column = NULL;
    struct gar_column *few = NULL;
    struct gar_column *compact = NULL;
    gar_builder_init(&b, memory(), gar_type_of(GAR_STRING));
    char text[100];
    memset(text, 'x', sizeof text);
    for (int i = 0; i < 5000; i++) {
        assert_int_equal(gar_builder_append_bytes(&b, text, (int64_t)sizeof text, NULL), GAR_OK);
    }
    assert_int_equal(gar_builder_finish(&b, &column, NULL), GAR_OK);
    const uint32_t rows[] = {4999, 7};
    assert_int_equal(gar_column_gather(column, rows, 2, memory(), &few, NULL), GAR_OK);
    gar_column_unref(column);
    assert_true(gar_column_bytes(few) >= 500000);
    assert_int_equal(gar_column_compact(few, false, memory(), &compact, NULL), GAR_OK);
    assert_int_equal(gar_column_bytes(compact), 2 * 16 + 2 * 100);
    assert_int_equal(gar_column_validate(compact, NULL), GAR_OK);
    assert_same_row(few, 1, compact, 1);
    gar_column_unref(few);
    gar_column_unref(compact);
    gar_builder_destroy(&b);
}

static void batches_select_slice_and_concat(void **state)
{
    (void)state;
    char a[] = "a";
    char s[] = "s";
    const struct gar_field fields[] = {{.name = a, .type = {.id = GAR_INT64}, .nullable = true},
                                       {.name = s, .type = {.id = GAR_STRING}, .nullable = true}};
    struct gar_schema *schema = NULL;
    assert_int_equal(gar_schema_new(fields, 2, false, &schema, NULL), GAR_OK);
    struct gar_column *columns[2] = {random_column(fields[0].type, 50),
                                     random_column(fields[1].type, 50)};
    struct gar_column *wrong[2] = {columns[1], columns[0]};
    struct gar_batch *batch = NULL;
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(gar_batch_new(schema, wrong, 50, &batch, &err), GAR_ERR_INTERNAL);
    assert_int_equal(gar_batch_new(schema, columns, 50, &batch, &err), GAR_OK);
    struct gar_buffer *selection = NULL;
    assert_int_equal(gar_buffer_new(memory(), 3 * 4, &selection, NULL), GAR_OK);
    const uint32_t rows[] = {2, 30, 49};
    memcpy(selection->data, rows, sizeof rows);
    struct gar_batch *selected = NULL;
    struct gar_batch *slice = NULL;
    struct gar_batch *gathered = NULL;
    struct gar_batch *all = NULL;
    assert_int_equal(gar_batch_select(batch, selection, 3, &selected, NULL), GAR_OK);
    assert_int_equal(gar_batch_slice(selected, 1, 2, &slice, NULL), GAR_OK);
    assert_int_equal(gar_batch_gather(slice, memory(), &gathered, NULL), GAR_OK);
    assert_int_equal(gathered->rows, 2);
    /* origins: rows of an input that begins elsewhere */
    assert_int_equal(gar_batch_origin(batch, 3), -1);
    struct gar_batch *placed = NULL;
    struct gar_batch *part = NULL;
    struct gar_batch *chosen = NULL;
    assert_int_equal(gar_batch_at_row(batch, 1000, &placed, NULL), GAR_OK);
    assert_int_equal(gar_batch_slice(placed, 5, 45, &part, NULL), GAR_OK);
    assert_int_equal(gar_batch_select(placed, gar_buffer_ref(selection), 3, &chosen, NULL), GAR_OK);
    assert_int_equal(gar_batch_origin(placed, 7), 1007);
    assert_int_equal(gar_batch_origin(part, 7), 1012);
    assert_int_equal(gar_batch_origin(chosen, 30), 1030);
    gar_batch_take_origin(gathered, chosen); /* as if its rows were those */
    assert_int_equal(gar_batch_origin(gathered, 0), 1002);
    assert_int_equal(gar_batch_origin(gathered, 1), 1030);
    gar_batch_unref(placed);
    gar_batch_unref(part);
    gar_batch_unref(chosen);
    struct gar_batch *list[] = {batch, slice, gathered};
    assert_int_equal(gar_batch_concat(schema, list, 3, memory(), &all, NULL), GAR_OK);
    assert_int_equal(all->rows, 54);
    for (int64_t c = 0; c < 2; c++) {
        assert_same_row(gathered->columns[c], 0, batch->columns[c], 30);
        assert_same_row(all->columns[c], 51, batch->columns[c], 49);
        assert_same_row(all->columns[c], 52, batch->columns[c], 30);
    }
    gar_batch_unref(all);
    gar_batch_unref(gathered);
    gar_batch_unref(slice);
    gar_batch_unref(selected);
    gar_batch_unref(batch);
    assert_int_equal(gar_batch_concat(schema, NULL, 0, memory(), &all, NULL), GAR_OK);
    assert_int_equal(all->rows, 0);
    gar_batch_unref(all);
    gar_schema_unref(schema);
}

static void every_refused_allocation_is_survived(void **state)
{
    (void)state;
    for (int64_t n = 1; n < 200; n++) {
        struct gar_column *parts[2] = {random_column(gar_type_of(GAR_STRING), 40),
                                       random_column(gar_type_of(GAR_STRING), 40)};
        struct gar_column *all = NULL;
        struct gar_column *flat = NULL;
        const uint32_t rows[] = {1, 2, 3};
        (void)gar_alloc_fail_at(n, false);
        enum gar_status status = gar_column_concat(parts, 2, parts[0]->type, memory(), &all, NULL);
        if (status >= 0) {
            status = gar_column_gather(all, rows, 3, memory(), &flat, NULL);
        }
        const bool reached = gar_alloc_fail_at(0, false) >= n;
        assert_true(status >= 0 || status == GAR_ERR_NOMEM);
        gar_column_unref(all);
        gar_column_unref(flat);
        gar_column_unref(parts[0]);
        gar_column_unref(parts[1]);
        if (!reached) {
            break;
        }
    }
}

static int nothing_is_left(void **state)
{
    (void)state;
    return gar_alloc_live_blocks() == 0 && gar_memory_system_live_bytes() == 0 ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(rows_move_as_one_by_one, nothing_is_left),
        cmocka_unit_test_teardown(concat_keeps_rows_in_order, nothing_is_left),
        cmocka_unit_test_teardown(compact_drops_unused_bytes, nothing_is_left),
        cmocka_unit_test_teardown(batches_select_slice_and_concat, nothing_is_left),
        cmocka_unit_test_teardown(every_refused_allocation_is_survived, nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
