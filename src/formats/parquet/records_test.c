/* SPDX-License-Identifier: Apache-2.0 */
/* Levels and shapes of nested columns: known answers, lies, and random shapes there and back in pieces. */
#include "formats/parquet/parquet_test_priv.h"
#include "formats/parquet/records_priv.h"

/* Text of a path: 'L' list, 'S' struct or leaf, small letters: not optional. */
static struct parquet_path path_of(const char *text)
{
    struct parquet_path path = {.count = (int32_t)strlen(text)};
    for (int32_t i = 0; i < path.count; i++) {
        path.nodes[i].is_optional = text[i] == 'L' || text[i] == 'S';
        path.nodes[i].is_list = text[i] == 'L' || text[i] == 'l';
    }
    assert_int_equal(gar_records_path(&path, NULL), GAR_OK);
    return path;
}

static const struct parquet_list_entry *entries_of(const struct parquet_records *records, int32_t n)
{
    return (const void *)records->nodes[n].entries->data;
}

/* [null, [], [null], [1, 2]] as three levels: the three kinds of nothing stay apart. */
static void test_list(void **state)
{
    (void)state;
    const struct parquet_path path = path_of("LS");
    assert_int_equal(path.max_definition, 3);
    assert_int_equal(path.max_repetition, 1);
    const uint32_t r[] = {0, 0, 0, 0, 1};
    const uint32_t d[] = {0, 1, 2, 3, 3};
    struct parquet_records records;
    gar_records_init(&records, &path, gar_memory_system());
    assert_int_equal(gar_records_add(&records, r, d, 5, NULL), GAR_OK);
    assert_int_equal(records.nodes[0].slots, 4);
    assert_int_equal(records.nodes[0].null_count, 1);
    assert_int_equal(records.nodes[0].validity->data[0] & 0xf, 0xe);
    const struct parquet_list_entry want[] = {{0, 0}, {0, 0}, {0, 1}, {1, 2}};
    assert_memory_equal(entries_of(&records, 0), want, sizeof want);
    assert_int_equal(records.nodes[1].slots, 3);
    assert_int_equal(records.nodes[1].validity->data[0] & 7, 6);
    assert_int_equal(records.values, 2);
    gar_records_destroy(&records);
}

/* Struct over a bare repeated field of a required leaf: null struct, empty, items. */
static void test_two_levels(void **state)
{
    (void)state;
    const struct parquet_path path = path_of("Sls");
    assert_int_equal(path.max_definition, 2);
    const uint32_t r[] = {0, 0, 0, 1, 1};
    const uint32_t d[] = {0, 1, 2, 2, 2};
    struct parquet_records records;
    gar_records_init(&records, &path, gar_memory_system());
    assert_int_equal(gar_records_add(&records, r, d, 5, NULL), GAR_OK);
    assert_int_equal(records.nodes[0].null_count, 1);
    assert_int_equal(records.nodes[1].slots, 3);
    assert_int_equal(records.nodes[1].null_count, 1); /* the null struct's */
    const struct parquet_list_entry want[] = {{0, 0}, {0, 0}, {0, 3}};
    assert_memory_equal(entries_of(&records, 1), want, sizeof want);
    assert_int_equal(records.nodes[2].slots, 3);
    assert_null(records.nodes[2].validity);
    gar_records_destroy(&records);
}

static void expect_lie(const char *text, const uint32_t *r, const uint32_t *d, int64_t count,
                       const char *words)
{
    const struct parquet_path path = path_of(text);
    struct parquet_records records;
    struct gar_error error = {0};
    gar_records_init(&records, &path, gar_memory_system());
    assert_int_equal(gar_records_add(&records, r, d, count, &error), GAR_ERR_FORMAT);
    assert_non_null(strstr(error.message, words));
    gar_records_destroy(&records);
}

static void test_lies(void **state)
{
    (void)state;
    expect_lie("LS", (const uint32_t[]){1}, (const uint32_t[]){3}, 1, "first repetition level");
    expect_lie("LS", (const uint32_t[]){0}, (const uint32_t[]){4}, 1, "above the column's");
    expect_lie("LS", (const uint32_t[]){0, 2}, (const uint32_t[]){3, 3}, 2, "above the column's");
    expect_lie("LS", (const uint32_t[]){0, 1}, (const uint32_t[]){1, 3}, 2, "empty or null");
    expect_lie("LS", (const uint32_t[]){0, 1}, (const uint32_t[]){3, 1}, 2, "empty or null");
    expect_lie("LLS", (const uint32_t[]){0, 2}, (const uint32_t[]){3, 5}, 2, "empty or null");
    struct parquet_path path = {.count = 0};
    assert_int_equal(gar_records_path(&path, NULL), GAR_ERR_UNSUPPORTED);
    path.count = PARQUET_NODES_MAX + 1;
    assert_int_equal(gar_records_path(&path, NULL), GAR_ERR_UNSUPPORTED);
    path = (struct parquet_path){.count = 1, .nodes = {{.is_list = true}}};
    assert_int_equal(gar_records_path(&path, NULL), GAR_ERR_INTERNAL);
}

static void test_cut(void **state)
{
    (void)state;
    const uint32_t r[] = {1, 0, 2, 0, 1, 0};
    int64_t rows = -1;
    assert_int_equal(gar_records_cut(r, 6, 0, &rows), 1);
    assert_int_equal(rows, 0);
    assert_int_equal(gar_records_cut(r, 6, 2, &rows), 5);
    assert_int_equal(rows, 2);
    assert_int_equal(gar_records_cut(r, 6, 9, &rows), 6);
    assert_int_equal(rows, 3);
    assert_int_equal(gar_records_cut(NULL, 6, 4, &rows), 4);
    assert_int_equal(rows, 4);
}

static uint64_t random_state = 11;

static uint64_t next_random(uint64_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (random_state >> 33) % below;
}

enum { ROWS = 40, SLOTS_MAX = 4096 };

/* A random shape: sources of each node over slots that lists name in any order, with gaps. */
struct shape {
    struct parquet_node_source sources[PARQUET_NODES_MAX];
    uint8_t bits[PARQUET_NODES_MAX][SLOTS_MAX / 8];
    struct parquet_list_entry entries[PARQUET_NODES_MAX][SLOTS_MAX];
};

static void make_shape(const struct parquet_path *path, struct shape *shape)
{
    memset(shape, 0, sizeof *shape);
    for (int32_t n = 0; n < path->count; n++) {
        shape->sources[n].entries = shape->entries[n];
        shape->sources[n].validity = path->nodes[n].is_optional ? shape->bits[n] : NULL;
        for (int64_t i = 0; i < SLOTS_MAX; i++) {
            gar_bit_put(shape->bits[n], i, next_random(4) != 0);
            const int64_t length = next_random(3) == 0 ? 0 : (int64_t)next_random(4);
            shape->entries[n][i] = (struct parquet_list_entry){
                (int64_t)next_random((uint64_t)(SLOTS_MAX - length)), length};
        }
    }
}

/* The source's slot and the decoded slot of node n say the same, and so does all below. */
static void compare(const struct shape *shape, const struct parquet_records *records, int32_t n,
                    int64_t from, int64_t to, const int64_t *slots, int64_t *value)
{
    const struct parquet_path *const path = records->path;
    const struct parquet_node_shape *const got = &records->nodes[n];
    assert_true(to < got->slots);
    const bool closed = from < 0;
    const bool is_valid =
        !closed && (!path->nodes[n].is_optional || gar_bit_get(shape->bits[n], from));
    assert_int_equal(got->validity == NULL || gar_bit_get(got->validity->data, to), is_valid);
    if (n == path->count - 1) {
        if (is_valid) {
            assert_int_equal(slots[(*value)++], from);
        }
        return;
    }
    if (!path->nodes[n].is_list) {
        compare(shape, records, n + 1, is_valid ? from : -1, to, slots, value);
        return;
    }
    const struct parquet_list_entry entry = entries_of(records, n)[to];
    assert_int_equal(entry.length, is_valid ? shape->entries[n][from].length : 0);
    assert_true(is_valid || entry.offset == 0);
    for (int64_t k = 0; k < entry.length; k++) {
        compare(shape, records, n + 1, shape->entries[n][from].offset + k, entry.offset + k, slots,
                value);
    }
}

static void round_trip(const char *text)
{
    static struct shape shape;
    const struct parquet_path path = path_of(text);
    make_shape(&path, &shape);
    struct parquet_levels levels;
    assert_int_equal(
        gar_records_levels(&path, shape.sources, 3, ROWS, gar_memory_system(), &levels, NULL),
        GAR_OK);
    const uint32_t *const r = (const void *)levels.repetition->data;
    const uint32_t *const d = (const void *)levels.definition->data;
    struct parquet_records whole;
    struct parquet_records pieces;
    gar_records_init(&whole, &path, gar_memory_system());
    gar_records_init(&pieces, &path, gar_memory_system());
    assert_int_equal(gar_records_add(&whole, r, d, levels.count, NULL), GAR_OK);
    for (int64_t at = 0; at < levels.count;) {
        const int64_t n = gar_min_i64(levels.count - at, 1 + (int64_t)next_random(9));
        assert_int_equal(gar_records_add(&pieces, r + at, d + at, n, NULL), GAR_OK);
        at += n;
    }
    assert_true(gar_records_agree(&whole, &pieces, path.count));
    assert_int_equal(whole.nodes[0].slots, ROWS);
    assert_int_equal(whole.values, levels.values);
    int64_t value = 0;
    for (int64_t i = 0; i < ROWS; i++) {
        compare(&shape, &whole, 0, 3 + i, i, (const void *)levels.slots->data, &value);
    }
    assert_int_equal(value, levels.values);
    /* One row less is another shape. */
    struct parquet_levels fewer;
    struct parquet_records other;
    assert_int_equal(
        gar_records_levels(&path, shape.sources, 3, ROWS - 1, gar_memory_system(), &fewer, NULL),
        GAR_OK);
    gar_records_init(&other, &path, gar_memory_system());
    assert_int_equal(gar_records_add(&other, (const void *)fewer.repetition->data,
                                     (const void *)fewer.definition->data, fewer.count, NULL),
                     GAR_OK);
    assert_false(gar_records_agree(&whole, &other, path.count));
    gar_records_destroy(&whole);
    gar_records_destroy(&pieces);
    gar_records_destroy(&other);
    gar_parquet_levels_destroy(&levels);
    gar_parquet_levels_destroy(&fewer);
}

static void test_random(void **state)
{
    (void)state;
    static const char *const paths[] = {"S",   "s",   "LS",   "Ls",    "lS",     "ls",
                                        "SS",  "Sls", "LSS",  "LLS",   "LsLS",   "SSLSS",
                                        "lls", "SlS", "LLLs", "LSLSS", "sLSsls", "LSSLs"};
    for (int64_t i = 0; i < GAR_COUNT_OF(paths); i++) {
        for (int32_t k = 0; k < 20; k++) {
            round_trip(paths[i]);
        }
    }
}

static void test_null_refused(void **state)
{
    (void)state;
    const struct parquet_path path = path_of("s");
    const uint8_t bits = 0x5;
    const struct parquet_node_source source = {.validity = &bits};
    struct parquet_levels levels;
    struct gar_error error = {0};
    assert_int_equal(gar_records_levels(&path, &source, 0, 3, gar_memory_system(), &levels, &error),
                     GAR_ERR_VALUE);
    assert_non_null(strstr(error.message, "slot 1"));
    gar_parquet_levels_destroy(&levels);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),   cmocka_unit_test(test_two_levels),
        cmocka_unit_test(test_lies),   cmocka_unit_test(test_cut),
        cmocka_unit_test(test_random), cmocka_unit_test(test_null_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
