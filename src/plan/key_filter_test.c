/* SPDX-License-Identifier: Apache-2.0 */
/* Key filters: no key is ever dropped, a bitmap lets nothing else pass, a Bloom filter little. */
#include "plan/key_filter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"

static struct gar_column *ints(const int64_t *values, int64_t count, int64_t null_at)
{
    struct gar_column *column = NULL;
    assert_int_equal(gar_column_new(gar_memory_system(), gar_type_of(GAR_INT64), count,
                                    null_at >= 0, &column, NULL),
                     GAR_OK);
    memcpy(gar_column_values_mut(column), values, (size_t)count * sizeof *values);
    if (null_at >= 0) {
        gar_bit_clear(gar_column_validity_mut(column), null_at);
    }
    column->null_count = null_at >= 0;
    return column;
}

static struct gar_key_filter *filled(const int64_t *keys, int64_t count, int64_t null_at)
{
    struct gar_key_filter *filter = NULL;
    struct gar_column *column = ints(keys, count, null_at);
    assert_int_equal(gar_key_filter_new(gar_memory_system(), &filter, NULL), GAR_OK);
    assert_false(gar_key_filter_is_filled(filter));
    gar_key_filter_fill(filter, column);
    assert_true(gar_key_filter_is_filled(filter));
    gar_column_unref(column);
    return filter;
}

static void bitmap(void **state)
{
    (void)state;
    const int64_t keys[] = {5, -3, 100, 7};
    const int64_t probes[] = {-3, -4, 5, 6, 7, 100, 101, INT64_MAX, INT64_MIN, 7};
    struct gar_key_filter *filter = filled(keys, 4, 3); /* 7 is null */
    struct gar_column *column = ints(probes, 10, 2);    /* and so is the 5 */
    uint32_t out[10];
    assert_int_equal(gar_key_filter_select(filter, column, NULL, 10, out), 2);
    assert_int_equal(out[0], 0);
    assert_int_equal(out[1], 5);
    uint32_t rows[] = {1, 5, 6};
    assert_int_equal(gar_key_filter_select(filter, column, rows, 3, rows), 1);
    assert_int_equal(rows[0], 5);
    assert_true(gar_key_filter_may_match(filter, INT64_MIN, -3));
    assert_false(gar_key_filter_may_match(filter, INT64_MIN, -4));
    assert_false(gar_key_filter_may_match(filter, 6, 99));
    assert_true(gar_key_filter_may_match(filter, 6, 100));
    assert_true(gar_key_filter_may_match(filter, 5, 5));
    assert_false(gar_key_filter_may_match(filter, 101, INT64_MAX));
    gar_column_unref(column);
    gar_key_filter_free(filter);
}

static void bloom(void **state)
{
    (void)state;
    enum { KEYS = 5000, PROBES = 100000 };
    int64_t *keys = gar_malloc(KEYS * 8);
    int64_t *probes = gar_malloc(PROBES * 8);
    uint32_t *out = gar_malloc(PROBES * 4);
    for (int64_t i = 0; i < KEYS; i++) {
        keys[i] = (i - KEYS / 2) * INT64_C(1234567891011);
    }
    for (int64_t i = 0; i < PROBES; i++) {
        probes[i] = i < KEYS ? keys[i] : i * INT64_C(987654321) + 1;
    }
    struct gar_key_filter *filter = filled(keys, KEYS, -1);
    struct gar_column *column = ints(probes, PROBES, -1);
    const int64_t n = gar_key_filter_select(filter, column, NULL, PROBES, out);
    assert_true(n >= KEYS && n < KEYS + PROBES / 50);
    for (int64_t i = 0; i < KEYS; i++) {
        assert_int_equal(out[i], i);
    }
    assert_false(gar_key_filter_may_match(filter, keys[KEYS - 1] + 1, INT64_MAX));
    gar_column_unref(column);
    gar_key_filter_free(filter);
    gar_free(keys);
    gar_free(probes);
    gar_free(out);
}

static void no_keys(void **state)
{
    (void)state;
    const int64_t values[] = {1, 2};
    struct gar_key_filter *filter = filled(values, 0, -1);
    struct gar_column *column = ints(values, 2, -1);
    uint32_t out[2];
    assert_int_equal(gar_key_filter_select(filter, column, NULL, 2, out), 0);
    assert_false(gar_key_filter_may_match(filter, INT64_MIN, INT64_MAX));
    gar_column_unref(column);
    gar_key_filter_free(filter);
}

/* A filter that lets most pass is given up, one that does not is kept. */
static void judged_by_what_passes(void **state)
{
    (void)state;
    const int64_t key = 1;
    struct gar_key_filter *filter = filled(&key, 1, -1);
    struct gar_key_use use = {.filter = filter};
    gar_key_use_count(&use, 1000, 1000);
    assert_true(gar_key_use_pays(&use));
    gar_key_use_count(&use, 99000, 89000);
    assert_false(gar_key_use_pays(&use));
    gar_key_use_count(&use, 100000, 0);
    assert_true(gar_key_use_pays(&use));
    gar_key_filter_free(filter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bitmap),
        cmocka_unit_test(bloom),
        cmocka_unit_test(no_keys),
        cmocka_unit_test(judged_by_what_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
