/* SPDX-License-Identifier: Apache-2.0 */
/* Group tables against a list of keys: types, encodings, nulls, dictionaries that change, all
 * hashes equal, merging. */
#include "exec/group_table.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "arrow/builder.h"
#include "base/alloc.h"

enum { ROWS = 600, BATCHES = 4, COLUMNS_MAX = 4 };

static uint64_t random_state = 5;

static uint64_t next_random(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return random_state >> 17 ^ random_state >> 41;
}

static const struct gar_type all_types[] = {
    {.id = GAR_NULL},
    {.id = GAR_BOOL},
    {.id = GAR_INT8},
    {.id = GAR_INT32},
    {.id = GAR_INT64},
    {.id = GAR_UINT64},
    {.id = GAR_FLOAT32},
    {.id = GAR_FLOAT64},
    {.id = GAR_DECIMAL128, .precision = 15, .scale = 2},
    {.id = GAR_DECIMAL128, .precision = 30, .scale = 2},
    {.id = GAR_STRING},
    {.id = GAR_DATE},
};

static struct gar_value random_value(struct gar_type type, int64_t variety, bool with_nulls)
{
    struct gar_value v = {
        .type = type, .is_valid = type.id != GAR_NULL && (!with_nulls || next_random() % 5 != 0)};
    const int64_t r = (int64_t)(next_random() % (uint64_t)variety);
    if (!v.is_valid) {
        return v;
    }
    if (type.id == GAR_BOOL) {
        v.boolean = r % 2 == 0;
    } else if (gar_type_is_float(type)) {
        v.f64 = r == 0 ? (double)NAN : r == 1 ? -0.0 : r == 2 ? 0.0 : (double)r / 4;
    } else if (type.id == GAR_DECIMAL128) {
        v.i128 = type.precision > 18 ? (gar_i128)r * INT64_MAX : -r;
    } else if (gar_type_is_text(type)) {
        char text[64];
        const int n = snprintf(text, sizeof text,
                               r % 2 == 0 ? "%d" : "a key of more than twelve bytes %d", (int)r);
        struct gar_value t;
        assert_int_equal(gar_value_from_text(type, text, n, &t, NULL), GAR_OK);
        return t;
    } else if (gar_type_is_unsigned(type)) {
        v.u64 = (uint64_t)r;
    } else {
        v.i64 = r % 100;
    }
    return v;
}

static struct gar_column *random_flat(struct gar_type type, int64_t rows, int64_t variety,
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

static struct gar_column *random_key(struct gar_type type, int64_t variety)
{
    const int32_t encoding = (int32_t)(next_random() % 4);
    struct gar_column *out = NULL;
    if (encoding < 2 || type.id == GAR_NULL) {
        return random_flat(type, ROWS, variety, encoding == 1);
    }
    if (encoding == 3) {
        struct gar_column *value = random_flat(type, 1, variety, true);
        assert_int_equal(gar_column_new_constant(value, ROWS, &out, NULL), GAR_OK);
        return out;
    }
    const int64_t entries = 1 + (int64_t)(next_random() % 60);
    struct gar_column *dictionary =
        random_flat(type, entries, variety, false); /* entries may be equal */
    struct gar_buffer *codes = NULL;
    struct gar_buffer *validity = NULL;
    assert_int_equal(gar_buffer_new(gar_memory_system(), ROWS * 4, &codes, NULL), GAR_OK);
    assert_int_equal(gar_buffer_new_zeroed(gar_memory_system(), (ROWS + 7) / 8, &validity, NULL),
                     GAR_OK);
    int64_t nulls = 0;
    for (int64_t i = 0; i < ROWS; i++) {
        const bool is_null = next_random() % 6 == 0;
        gar_bit_put(validity->data, i, !is_null);
        ((uint32_t *)(void *)codes->data)[i] =
            is_null ? 0 : (uint32_t)(next_random() % (uint64_t)entries);
        nulls += is_null;
    }
    assert_int_equal(gar_column_new_dictionary(codes, ROWS, validity, nulls, dictionary,
                                               gar_dictionary_next_id(), &out, NULL),
                     GAR_OK);
    return out;
}

static bool same_key(struct gar_column *const *a, int64_t i, struct gar_column *const *b, int64_t k,
                     int64_t count)
{
    bool same = true;
    for (int64_t c = 0; c < count && same; c++) {
        struct gar_value x;
        struct gar_value y;
        assert_int_equal(gar_value_from_column(a[c], i, &x, NULL), GAR_OK);
        assert_int_equal(gar_value_from_column(b[c], k, &y, NULL), GAR_OK);
        same = x.is_valid == y.is_valid && (!x.is_valid || gar_value_compare(&x, &y) == 0);
        gar_value_destroy(&x);
        gar_value_destroy(&y);
    }
    return same;
}

static void read_keys(const struct gar_group_table *table, int64_t count, struct gar_column **out)
{
    for (int64_t c = 0; c < count; c++) {
        assert_int_equal(gar_group_table_column(table, c, 0, gar_group_table_count(table),
                                                gar_memory_system(), &out[c], NULL),
                         GAR_OK);
        assert_int_equal(gar_column_validate(out[c], NULL), GAR_OK);
    }
}

/* Every row's group has the row's key; no two groups have the same. */
/* A frozen table finds what it has, and nothing else; hashes of columns are those of groups. */
static void check_frozen(struct gar_group_table *table, const struct gar_key_layout *layout,
                         const struct gar_type *types, int64_t count, int64_t variety)
{
    struct gar_column *keys[COLUMNS_MAX];
    struct gar_column *columns[COLUMNS_MAX];
    uint32_t groups[ROWS];
    uint32_t hashes[ROWS * BATCHES];
    const int64_t found = gar_group_table_count(table);
    uint64_t *scratch = test_malloc((size_t)layout->words * GAR_KEY_ROWS * sizeof *scratch);
    gar_group_table_freeze(table, true);
    read_keys(table, count, keys);
    gar_key_hashes(layout, keys, 0, found, scratch, hashes);
    for (int64_t g = 0; g < found; g++) {
        assert_int_equal(hashes[g], gar_group_table_hash(table, g));
    }
    for (int64_t c = 0; c < count; c++) {
        columns[c] = random_key(types[c], 2 * variety);
    }
    assert_int_equal(gar_group_table_find(table, columns, ROWS, groups, NULL), GAR_OK);
    assert_int_equal(gar_group_table_count(table), found);
    for (int64_t i = 0; i < ROWS; i++) {
        if (groups[i] != GAR_NO_GROUP) {
            assert_true(same_key(columns, i, keys, groups[i], count));
            continue;
        }
        for (int64_t g = 0; g < found; g++) {
            assert_false(same_key(columns, i, keys, g, count));
        }
    }
    for (int64_t c = 0; c < count; c++) {
        gar_column_unref(columns[c]);
        gar_column_unref(keys[c]);
    }
    test_free(scratch);
}

static void check_round(int64_t count)
{
    struct gar_type types[COLUMNS_MAX];
    struct gar_key_layout layout;
    struct gar_group_table *tables[2] = {NULL, NULL};
    struct gar_group_table *merged = NULL;
    const int64_t variety = 1 + (int64_t)(next_random() % (next_random() % 2 == 0 ? 4 : 60));
    for (int64_t c = 0; c < count; c++) {
        types[c] = all_types[next_random() % GAR_COUNT_OF(all_types)];
    }
    assert_int_equal(gar_key_layout_init(&layout, types, count, NULL), GAR_OK);
    assert_int_equal(gar_group_table_new(&layout, gar_memory_system(), &merged, NULL), GAR_OK);
    for (int64_t t = 0; t < 2; t++) {
        assert_int_equal(gar_group_table_new(&layout, gar_memory_system(), &tables[t], NULL),
                         GAR_OK);
        for (int64_t b = 0; b < BATCHES; b++) {
            struct gar_column *columns[COLUMNS_MAX];
            struct gar_column *keys[COLUMNS_MAX];
            uint32_t groups[ROWS];
            for (int64_t c = 0; c < count; c++) {
                columns[c] = random_key(types[c], variety);
            }
            assert_int_equal(gar_group_table_find(tables[t], columns, ROWS, groups, NULL), GAR_OK);
            read_keys(tables[t], count, keys);
            for (int64_t i = 0; i < ROWS; i++) {
                assert_true(groups[i] < gar_group_table_count(tables[t]));
                assert_true(same_key(columns, i, keys, groups[i], count));
            }
            for (int64_t c = 0; c < count; c++) {
                gar_column_unref(columns[c]);
                gar_column_unref(keys[c]);
            }
        }
        struct gar_column *keys[COLUMNS_MAX];
        read_keys(tables[t], count, keys);
        const int64_t found = gar_group_table_count(tables[t]);
        for (int64_t g = 0; g < found && found < 300; g++) {
            for (int64_t h = 0; h < g; h++) {
                assert_false(same_key(keys, g, keys, h, count));
            }
        }
        uint32_t all[ROWS * BATCHES];
        uint32_t map[ROWS * BATCHES];
        for (int64_t g = 0; g < found; g++) {
            all[g] = (uint32_t)g;
        }
        struct gar_column *merged_keys[COLUMNS_MAX];
        assert_int_equal(gar_group_table_absorb(merged, tables[t], all, found, map, NULL), GAR_OK);
        read_keys(merged, count, merged_keys);
        for (int64_t g = 0; g < found; g++) {
            assert_true(same_key(keys, g, merged_keys, map[g], count));
            assert_int_equal(gar_group_table_hash(merged, map[g]),
                             gar_group_table_hash(tables[t], g));
        }
        for (int64_t c = 0; c < count; c++) {
            gar_column_unref(keys[c]);
            gar_column_unref(merged_keys[c]);
        }
        check_frozen(tables[t], &layout, types, count, variety);
    }
    gar_group_table_free(merged);
    gar_group_table_free(tables[0]);
    gar_group_table_free(tables[1]);
    gar_key_layout_destroy(&layout);
}

static void test_random_keys(void **context)
{
    (void)context;
    for (int32_t round = 0; round < 120; round++) {
        check_round(1 + (int64_t)(next_random() % COLUMNS_MAX));
    }
}

static void test_equal_hashes(void **context)
{
    (void)context;
    gar_key_set_hash_mask(0);
    for (int32_t round = 0; round < 12; round++) {
        check_round(1 + round % COLUMNS_MAX);
    }
    gar_key_set_hash_mask(UINT32_MAX);
}

static void test_many_groups(void **context)
{
    (void)context;
    enum { MANY = 200000 };
    const struct gar_type types[2] = {gar_type_of(GAR_INT64), gar_type_of(GAR_STRING)};
    for (int64_t count = 1; count <= 2; count++) {
        struct gar_key_layout layout;
        struct gar_group_table *table = NULL;
        struct gar_builder builders[2];
        struct gar_column *columns[2] = {NULL, NULL};
        gar_builder_init(&builders[0], gar_memory_system(), types[0]);
        gar_builder_init(&builders[1], gar_memory_system(), types[1]);
        for (int64_t i = 0; i < MANY; i++) {
            char text[48];
            const int64_t key = i * 7919 % MANY;
            const int n = snprintf(text, sizeof text, "customer number %lld", (long long)key);
            assert_int_equal(gar_builder_append_fixed(&builders[0], &key, NULL), GAR_OK);
            assert_int_equal(gar_builder_append_bytes(&builders[1], text, n, NULL), GAR_OK);
        }
        for (int64_t c = 0; c < 2; c++) {
            assert_int_equal(gar_builder_finish(&builders[c], &columns[c], NULL), GAR_OK);
            gar_builder_destroy(&builders[c]);
        }
        uint32_t *groups = test_malloc(MANY * sizeof *groups);
        assert_int_equal(gar_key_layout_init(&layout, types, count, NULL), GAR_OK);
        assert_int_equal(gar_group_table_new(&layout, gar_memory_system(), &table, NULL), GAR_OK);
        for (int32_t round = 0; round < 2; round++) {
            assert_int_equal(gar_group_table_find(table, columns, MANY, groups, NULL), GAR_OK);
            for (int64_t i = 0; i < MANY; i++) {
                assert_int_equal(groups[i], i);
            }
        }
        gar_group_table_free(table);
        gar_key_layout_destroy(&layout);
        gar_column_unref(columns[0]);
        gar_column_unref(columns[1]);
        test_free(groups);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_keys),
        cmocka_unit_test(test_equal_hashes),
        cmocka_unit_test(test_many_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
