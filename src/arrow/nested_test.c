/* SPDX-License-Identifier: Apache-2.0 */
/* Nested columns: moved, sliced, joined, packed and checked against the rows' text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arrow/gather.h"
#include "arrow/schema.h"
#include "arrow/value.h"
#include "base/alloc.h"

#define ROWS 40

static uint64_t random_state = 7;

static int64_t next_random(int64_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)(random_state >> 33) % below;
}

static struct gar_memory *memory(void)
{
    return gar_memory_system();
}

static struct gar_type nested(enum gar_type_id id, const struct gar_nest_field *fields,
                              int32_t count, int32_t width)
{
    const struct gar_nest *nest = gar_nest_intern(id, fields, count, width, NULL);
    assert_non_null(nest);
    return gar_type_nested(id, nest);
}

/* list[struct[a: int64, b: fixed_list[int64, 2], m: map[int64, list[int64]]]] and its parts, by depth. */
static struct gar_type type_number(int32_t i)
{
    const struct gar_type i64 = gar_type_of(GAR_INT64);
    const struct gar_nest_field item = {"", i64, true};
    const struct gar_type list = nested(GAR_LIST, &item, 1, 0);
    const struct gar_type fixed = nested(GAR_FIXED_LIST, &item, 1, 2);
    const struct gar_nest_field pair[2] = {{"", i64, true}, {"", list, true}};
    const struct gar_type map = nested(GAR_MAP, pair, 2, 0);
    const struct gar_nest_field fields[3] = {
        {"a", i64, true}, {"b", fixed, true}, {"m", map, true}};
    const struct gar_type record = nested(GAR_STRUCT, fields, 3, 0);
    const struct gar_nest_field records = {"", record, true};
    const struct gar_type all[] = {list, fixed, map, record, nested(GAR_LIST, &records, 1, 0)};
    return all[i];
}

#define TYPES 5

static struct gar_column *random_column(struct gar_type type, int64_t rows, bool nulls)
{
    struct gar_column *c = NULL;
    assert_int_equal(gar_column_new(memory(), type, rows, nulls, &c, NULL), GAR_OK);
    const bool has_entries = type.id == GAR_LIST || type.id == GAR_MAP;
    const int64_t items =
        has_entries ? 2 * rows + 3 : rows * (type.nest != NULL ? type.nest->width : 0);
    for (int32_t k = 0; k < c->child_count; k++) {
        gar_column_unref(c->children[k]);
        c->children[k] =
            random_column(type.nest->fields[k].type, type.id == GAR_STRUCT ? rows : items,
                          !(type.id == GAR_MAP && k == 0));
    }
    for (int64_t i = 0; i < rows; i++) {
        const bool valid = !nulls || next_random(4) > 0;
        if (nulls) {
            gar_bit_put(gar_column_validity_mut(c), i, valid);
        }
        if (has_entries && valid) {
            const int64_t length = next_random(4);
            ((struct gar_list_entry *)gar_column_values_mut(c))[i] =
                (struct gar_list_entry){next_random(items - length + 1), length};
        } else if (type.id == GAR_INT64) {
            ((int64_t *)gar_column_values_mut(c))[i] = next_random(100);
        }
    }
    return c;
}

/* The text of row i, the same for the same value. */
static void print_row(const struct gar_column *column, int64_t i, struct gar_strbuf *out)
{
    const struct gar_column *c = NULL;
    if (gar_column_is_null(column, i)) {
        gar_strbuf_append(out, "null");
        return;
    }
    i = gar_column_locate(column, i, &c);
    if (c->type.id == GAR_INT64) {
        gar_strbuf_printf(out, "%lld", (long long)((const int64_t *)c->values)[i]);
        return;
    }
    struct gar_list_entry e = {i, 1};
    if (c->type.id == GAR_FIXED_LIST) {
        e = (struct gar_list_entry){i * c->type.nest->width, c->type.nest->width};
    } else if (c->type.id != GAR_STRUCT) {
        e = ((const struct gar_list_entry *)c->values)[i];
    }
    gar_strbuf_append(out, "[");
    for (int64_t item = e.offset; item < e.offset + e.length; item++) {
        for (int32_t k = 0; k < c->child_count; k++) {
            print_row(c->children[k], item, out);
            gar_strbuf_append(out, k + 1 < c->child_count ? ":" : ",");
        }
    }
    gar_strbuf_append(out, "]");
}

static void assert_same_row(const struct gar_column *a, int64_t i, const struct gar_column *b,
                            int64_t k)
{
    struct gar_strbuf left = {0};
    struct gar_strbuf right = {0};
    print_row(a, i, &left);
    print_row(b, k, &right);
    assert_string_equal(gar_strbuf_text(&left), gar_strbuf_text(&right));
    gar_strbuf_destroy(&left);
    gar_strbuf_destroy(&right);
}

static void assert_valid(const struct gar_column *column)
{
    struct gar_error err = GAR_ERROR_INIT;
    if (gar_column_validate(column, &err) < 0) {
        fail_msg("%s", err.message);
    }
}

static void rows_move(void **state)
{
    (void)state;
    for (int32_t t = 0; t < TYPES; t++) {
        struct gar_column *c = random_column(type_number(t), ROWS, true);
        assert_valid(c);
        assert_true(gar_column_bytes(c) > 0);
        uint32_t rows[ROWS];
        int64_t signed_rows[ROWS];
        for (int64_t i = 0; i < ROWS; i++) {
            rows[i] = (uint32_t)next_random(ROWS);
            signed_rows[i] = next_random(ROWS + 5) - 5;
        }
        struct gar_column *out = NULL;
        assert_int_equal(gar_column_gather(c, rows, ROWS, memory(), &out, NULL), GAR_OK);
        assert_valid(out);
        for (int64_t i = 0; i < ROWS; i++) {
            assert_same_row(c, rows[i], out, i);
        }
        struct gar_column *packed = NULL;
        assert_int_equal(gar_column_compact(out, true, memory(), &packed, NULL), GAR_OK);
        assert_valid(packed);
        for (int64_t i = 0; i < ROWS; i++) {
            assert_same_row(out, i, packed, i);
        }
        gar_column_unref(packed);
        gar_column_unref(out);
        assert_int_equal(gar_column_gather_i64(c, signed_rows, ROWS, memory(), &out, NULL), GAR_OK);
        assert_valid(out);
        for (int64_t i = 0; i < ROWS; i++) {
            assert_int_equal(gar_column_is_null(out, i),
                             signed_rows[i] < 0 || gar_column_is_null(c, signed_rows[i]));
            if (signed_rows[i] >= 0) {
                assert_same_row(c, signed_rows[i], out, i);
            }
        }
        gar_column_unref(out);
        gar_column_unref(c);
    }
}

static void slices_and_constants_join(void **state)
{
    (void)state;
    for (int32_t t = 0; t < TYPES; t++) {
        const struct gar_type type = type_number(t);
        struct gar_column *c = random_column(type, ROWS, false);
        struct gar_column *parts[4] = {NULL};
        struct gar_column *one = NULL;
        struct gar_column *all = NULL;
        assert_int_equal(gar_column_slice(c, 5, 20, &parts[0], NULL), GAR_OK);
        assert_int_equal(gar_column_slice(c, 7, 1, &one, NULL), GAR_OK);
        assert_int_equal(gar_column_new_constant(one, 9, &parts[1], NULL), GAR_OK);
        assert_int_equal(gar_column_new_null(memory(), type, 3, &parts[2], NULL), GAR_OK);
        assert_int_equal(gar_column_slice(parts[0], 2, 8, &parts[3], NULL), GAR_OK);
        assert_int_equal(gar_column_concat(parts, 4, type, memory(), &all, NULL), GAR_OK);
        assert_valid(all);
        int64_t at = 0;
        for (int32_t p = 0; p < 4; p++) {
            assert_valid(parts[p]);
            for (int64_t i = 0; i < parts[p]->length; i++) {
                assert_same_row(parts[p], i, all, at++);
            }
            gar_column_unref(parts[p]);
        }
        assert_same_row(c, 5, all, 0);
        assert_same_row(c, 7, all, 20);
        assert_int_equal(gar_column_null_count(all), 3);
        gar_column_unref(all);
        gar_column_unref(c);
    }
}

static void false_entries_are_found(void **state)
{
    (void)state;
    static const struct gar_list_entry bad[] = {
        {-1, 1},           {0, -1}, {2 * ROWS + 3, 1}, {1, INT64_MAX}, {INT64_MAX, INT64_MAX},
        {0, 2 * ROWS + 4},
    };
    for (int64_t k = 0; k < GAR_COUNT_OF(bad); k++) {
        struct gar_column *c = random_column(type_number(0), ROWS, false);
        assert_valid(c);
        ((struct gar_list_entry *)gar_column_values_mut(c))[3] = bad[k];
        assert_int_equal(gar_column_validate(c, NULL), GAR_ERR_FORMAT);
        gar_column_unref(c);
    }
    struct gar_column *c = random_column(type_number(3), ROWS, false);
    c->children[0]->length--;
    assert_int_equal(gar_column_validate(c, NULL), GAR_ERR_FORMAT);
    gar_column_unref(c);
}

static void parts_must_fit(void **state)
{
    (void)state;
    const struct gar_type list = type_number(0);
    const struct gar_list_entry rows[2] = {{1, 2}, {0, 1}};
    struct gar_column *items = random_column(gar_type_of(GAR_INT64), 3, false);
    struct gar_column *texts = NULL;
    struct gar_buffer *entries = NULL;
    struct gar_column *column = NULL;
    assert_int_equal(gar_column_new(memory(), gar_type_of(GAR_STRING), 3, false, &texts, NULL),
                     GAR_OK);
    assert_int_equal(gar_buffer_new(memory(), (int64_t)sizeof rows, &entries, NULL), GAR_OK);
    memcpy(entries->data, rows, sizeof rows);
    struct gar_column_parts parts = {.type = list, .length = 2, .values = entries};
    assert_int_equal(gar_column_from_parts(&parts, &column, NULL), GAR_ERR_INTERNAL);
    parts.children = &texts;
    parts.child_count = 1;
    assert_int_equal(gar_column_from_parts(&parts, &column, NULL), GAR_ERR_INTERNAL);
    parts.children = &items;
    assert_int_equal(gar_column_from_parts(&parts, &column, NULL), GAR_OK);
    assert_valid(column);
    gar_column_unref(column);
    struct gar_column *record = NULL;
    parts = (struct gar_column_parts){
        .type = type_number(1), .length = 2, .children = &texts, .child_count = 1};
    assert_int_equal(gar_column_from_parts(&parts, &record, NULL), GAR_ERR_INTERNAL);
    gar_column_unref(texts);
}

static void the_engine_refuses_them_by_name(void **state)
{
    (void)state;
    char name[] = "tags";
    const struct gar_field field = {.name = name, .type = type_number(0), .nullable = true};
    struct gar_schema *schema = NULL;
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(gar_schema_new(&field, 1, false, &schema, &err), GAR_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "column 'tags' has the nested type list[int64]"));
    struct gar_column *c = random_column(type_number(3), 1, false);
    struct gar_value value = {0};
    assert_int_equal(gar_value_from_column(c, 0, &value, NULL), GAR_ERR_UNSUPPORTED);
    gar_column_unref(c);
}

static void every_refused_allocation_is_survived(void **state)
{
    (void)state;
    const struct gar_type type = type_number(TYPES - 1);
    for (int64_t n = 1; n < 2000; n++) {
        struct gar_column *c = random_column(type, ROWS, true);
        struct gar_column *parts[2] = {c, NULL};
        struct gar_column *all = NULL;
        struct gar_column *packed = NULL;
        gar_alloc_fail_at(n, false);
        enum gar_status status = gar_column_new_null(memory(), type, 4, &parts[1], NULL);
        if (status >= 0) {
            status = gar_column_concat(parts, 2, type, memory(), &all, NULL);
        }
        if (status >= 0) {
            status = gar_column_compact(all, true, memory(), &packed, NULL);
        }
        const bool reached = gar_alloc_fail_at(0, false) >= n;
        assert_true(status >= 0 || status == GAR_ERR_NOMEM);
        assert_true(reached || status >= 0);
        gar_column_unref(packed);
        gar_column_unref(all);
        gar_column_unref(parts[1]);
        gar_column_unref(c);
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
        cmocka_unit_test_teardown(rows_move, nothing_is_left),
        cmocka_unit_test_teardown(slices_and_constants_join, nothing_is_left),
        cmocka_unit_test_teardown(false_entries_are_found, nothing_is_left),
        cmocka_unit_test_teardown(parts_must_fit, nothing_is_left),
        cmocka_unit_test_teardown(the_engine_refuses_them_by_name, nothing_is_left),
        cmocka_unit_test_teardown(every_refused_allocation_is_survived, nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
