/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting against a comparison of values: random types, directions, null places, ties, long common
 * prefixes. */
#include "kernels/sort_key.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arrow/builder.h"
#include "base/alloc.h"

static uint64_t random_state = 3;

static uint64_t next_random(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return random_state >> 17 ^ random_state >> 41;
}

static const struct gar_type all_types[] = {
    {.id = GAR_NULL},
    {.id = GAR_BOOL},
    {.id = GAR_INT8},
    {.id = GAR_UINT8},
    {.id = GAR_INT32},
    {.id = GAR_INT64},
    {.id = GAR_UINT64},
    {.id = GAR_FLOAT32},
    {.id = GAR_FLOAT64},
    {.id = GAR_DECIMAL128, .precision = 15, .scale = 2},
    {.id = GAR_DECIMAL128, .precision = 38},
    {.id = GAR_STRING},
    {.id = GAR_DATE},
};

static struct gar_value random_value(struct gar_type type, int64_t variety, bool with_nulls)
{
    struct gar_value v = {
        .type = type, .is_valid = type.id != GAR_NULL && (!with_nulls || next_random() % 4 != 0)};
    const int64_t r = (int64_t)(next_random() % (uint64_t)variety);
    if (!v.is_valid) {
        return v;
    }
    if (type.id == GAR_BOOL) {
        v.boolean = r % 2 == 0;
    } else if (gar_type_is_float(type)) {
        v.f64 = r == 0   ? (double)NAN
                : r == 1 ? -0.0
                : r == 2 ? 0.0
                : r == 3 ? (double)INFINITY
                         : (double)(r - variety / 2) / 4;
    } else if (type.id == GAR_DECIMAL128) {
        v.i128 = (gar_i128)(r - variety / 2) *
                 (type.precision > 18 ? (gar_i128)INT64_MAX * INT64_C(1000000007) : 7);
    } else if (gar_type_is_text(type)) {
        char text[64];
        int n = snprintf(text, sizeof text,
                         r % 3 == 0 ? "%d" : "a long common beginning of texts %d", (int)r);
        if (r % 7 == 0) {
            n = (int)(r % 35); /* prefixes of each other, zero bytes at the end */
            memset(text, r % 2 == 0 ? 0 : 'a', (size_t)n);
        }
        struct gar_value t;
        assert_int_equal(gar_value_from_text(type, text, n, &t, NULL), GAR_OK);
        return t;
    } else if (gar_type_is_unsigned(type)) {
        v.u64 =
            type.id == GAR_UINT64 && r % 5 == 0 ? UINT64_MAX - (uint64_t)r : (uint64_t)(r % 200);
    } else if (type.id == GAR_INT64 && r % 5 == 0) {
        v.i64 = r % 2 == 0 ? INT64_MIN + r : INT64_MAX - r;
    } else {
        v.i64 = r % 100 - 50;
    }
    return v;
}

static struct gar_column *random_column(struct gar_type type, int64_t rows, int64_t variety,
                                        bool with_nulls)
{
    struct gar_builder builder;
    gar_builder_init(&builder, gar_memory_system(), type);
    for (int64_t i = 0; i < rows; i++) {
        struct gar_value v = random_value(type, variety, with_nulls);
        assert_int_equal(gar_builder_append_value(&builder, &v, NULL), GAR_OK);
        gar_value_destroy(&v);
    }
    struct gar_column *column = NULL;
    assert_int_equal(gar_builder_finish(&builder, &column, NULL), GAR_OK);
    gar_builder_destroy(&builder);
    return column;
}

static int32_t expected_order(const struct gar_sort_column *columns, int64_t count, int64_t a,
                              int64_t b)
{
    for (int64_t c = 0; c < count; c++) {
        struct gar_value x;
        struct gar_value y;
        assert_int_equal(gar_value_from_column(columns[c].column, a, &x, NULL), GAR_OK);
        assert_int_equal(gar_value_from_column(columns[c].column, b, &y, NULL), GAR_OK);
        int32_t order = 0;
        if (!x.is_valid || !y.is_valid) {
            order = (x.is_valid ? 0 : 1) - (y.is_valid ? 0 : 1);
            order = columns[c].nulls_first ? -order : order;
        } else {
            order = gar_value_compare(&x, &y);
            order = columns[c].descending ? -order : order;
        }
        gar_value_destroy(&x);
        gar_value_destroy(&y);
        if (order != 0) {
            return order;
        }
    }
    return 0;
}

static void check_sort(const struct gar_sort_column *columns, int64_t count, int64_t rows)
{
    struct gar_sorter *sorter = NULL;
    assert_int_equal(gar_sorter_new(columns, count, rows, &sorter, NULL), GAR_OK);
    const size_t bytes = (size_t)gar_max_i64(rows, 1) * sizeof(struct gar_sort_entry);
    struct gar_sort_entry *entries = test_malloc(bytes);
    struct gar_sort_entry *scratch = test_malloc(bytes);
    const int64_t half = rows / 2;
    gar_sorter_fill(sorter, 0, half, entries);
    gar_sorter_fill(sorter, half, rows - half, entries + half);
    gar_sorter_sort(sorter, entries, scratch, rows);
    for (int64_t i = 1; i < rows; i++) {
        const int32_t order = expected_order(columns, count, entries[i - 1].row, entries[i].row);
        const int32_t ours = gar_sorter_compare(sorter, entries[i - 1].row, entries[i].row);
        assert_true((order > 0) - (order < 0) == (ours > 0) - (ours < 0));
        if (order > 0 || (order == 0 && entries[i - 1].row >= entries[i].row)) {
            fail_msg("row %u before row %u: order %d", entries[i - 1].row, entries[i].row,
                     (int)order);
        }
    }
    test_free(entries);
    test_free(scratch);
    gar_sorter_free(sorter);
}

static void test_random_keys(void **context)
{
    (void)context;
    for (int32_t round = 0; round < 400; round++) {
        const int64_t rows = (int64_t)(next_random() % 700);
        const int64_t count = 1 + (int64_t)(next_random() % 4);
        struct gar_sort_column columns[4];
        for (int64_t c = 0; c < count; c++) {
            const struct gar_type type = all_types[next_random() % GAR_COUNT_OF(all_types)];
            const int64_t variety =
                1 + (int64_t)(next_random() % (next_random() % 2 == 0 ? 10 : 1000));
            columns[c] =
                (struct gar_sort_column){random_column(type, rows, variety, next_random() % 2 == 0),
                                         next_random() % 2 == 0, next_random() % 2 == 0};
        }
        check_sort(columns, count, rows);
        for (int64_t c = 0; c < count; c++) {
            gar_column_unref(columns[c].column);
        }
    }
}

static void test_large_inputs(void **context)
{
    (void)context;
    const struct gar_type types[] = {{.id = GAR_INT64}, {.id = GAR_FLOAT64}, {.id = GAR_STRING}};
    for (int64_t t = 0; t < GAR_COUNT_OF(types); t++) {
        for (int64_t variety = 3; variety < 2000000; variety *= 700) {
            struct gar_sort_column column = {random_column(types[t], 80000, variety, false), t == 1,
                                             false};
            check_sort(&column, 1, 80000);
            gar_column_unref(column.column);
        }
    }
}

static void test_radix_sort(void **context)
{
    (void)context;
    enum { MAX = 100000 };
    struct gar_sort_entry *entries = test_malloc(MAX * sizeof *entries);
    struct gar_sort_entry *scratch = test_malloc(MAX * sizeof *scratch);
    for (int32_t round = 0; round < 60; round++) {
        const int64_t count = (int64_t)(next_random() % (round % 10 == 0 ? MAX : 300));
        const int32_t shift = (int32_t)(next_random() % 60);
        for (int64_t i = 0; i < count; i++) {
            const uint64_t key = (next_random() << 32 ^ next_random()) >> shift;
            entries[i] =
                (struct gar_sort_entry){round % 3 == 0 ? key << (shift / 2) : key, (uint32_t)i, 0};
        }
        gar_radix_sort(entries, scratch, count);
        for (int64_t i = 1; i < count; i++) {
            assert_true(
                entries[i - 1].key < entries[i].key ||
                (entries[i - 1].key == entries[i].key && entries[i - 1].row < entries[i].row));
        }
    }
    test_free(entries);
    test_free(scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_radix_sort),
        cmocka_unit_test(test_random_keys),
        cmocka_unit_test(test_large_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
