/* SPDX-License-Identifier: Apache-2.0 */
/* The Thrift reader: what the writer writes, and input that lies. */
#include "formats/parquet/parquet_test_priv.h"

static void test_round_trip(void **state)
{
    (void)state;
    struct gar_strbuf out = {0};
    int32_t last = 0;
    gar_thrift_put_i32(&out, &last, 1, -5);
    gar_thrift_put_i64(&out, &last, 2, INT64_MIN);
    gar_thrift_put_bool(&out, &last, 3, true);
    gar_thrift_put_binary(&out, &last, 40, "hello", 5);
    gar_thrift_put_list(&out, &last, 41, THRIFT_I32, 20);
    for (int32_t i = 0; i < 20; i++) {
        gar_thrift_put_zigzag(&out, i - 10);
    }
    gar_thrift_put_stop(&out);
    assert_false(out.failed);

    struct thrift_reader r;
    struct thrift_field field = {0};
    gar_thrift_init(&r, (const uint8_t *)out.data, out.size);
    gar_thrift_struct_begin(&r);
    assert_true(gar_thrift_field_next(&r, &field));
    assert_int_equal(field.id, 1);
    assert_int_equal(gar_thrift_field_i32(&r, &field), -5);
    assert_true(gar_thrift_field_next(&r, &field));
    assert_true(gar_thrift_field_int(&r, &field) == INT64_MIN);
    assert_true(gar_thrift_field_next(&r, &field));
    assert_true(gar_thrift_field_bool(&r, &field));
    assert_true(gar_thrift_field_next(&r, &field));
    assert_int_equal(field.id, 40);
    int64_t bytes = 0;
    const uint8_t *const text = gar_thrift_field_binary(&r, &field, &bytes);
    assert_int_equal(bytes, 5);
    assert_memory_equal(text, "hello", 5);
    assert_true(gar_thrift_field_next(&r, &field));
    assert_int_equal(gar_thrift_field_list(&r, &field, THRIFT_I32, 1), 20);
    for (int32_t i = 0; i < 20; i++) {
        assert_int_equal(gar_thrift_int(&r), i - 10);
    }
    assert_false(gar_thrift_field_next(&r, &field));
    assert_null(r.why);
    assert_ptr_equal(r.next, r.end);
    assert_int_equal(r.depth, 0);

    /* Every prefix fails cleanly, and skipping finds the end. */
    for (int64_t cut = 0; cut <= out.size; cut++) {
        const struct bytes b = bytes_copy(out.data, cut);
        gar_thrift_init(&r, b.data, cut);
        field = (struct thrift_field){0};
        gar_thrift_struct_begin(&r);
        while (gar_thrift_field_next(&r, &field)) {
            gar_thrift_skip(&r, &field);
        }
        assert_int_equal(r.why != NULL, cut < out.size);
        free(b.data);
    }
    gar_strbuf_destroy(&out);
}

static void skip_all(const uint8_t *data, int64_t size, bool must_fail)
{
    const struct bytes b = bytes_copy(data, size);
    struct thrift_reader r;
    struct thrift_field field = {0};
    gar_thrift_init(&r, b.data, size);
    gar_thrift_struct_begin(&r);
    while (gar_thrift_field_next(&r, &field)) {
        gar_thrift_skip(&r, &field);
    }
    assert_int_equal(r.why != NULL, must_fail);
    free(b.data);
}

static void test_lies(void **state)
{
    (void)state;
    /* A list of 2^31 - 1 items, a text longer than the input, a map of 2^40 pairs. */
    static const uint8_t list[] = {0x19, 0xf5, 0xff, 0xff, 0xff, 0xff, 0x07};
    static const uint8_t text[] = {0x18, 0xff, 0xff, 0xff, 0xff, 0x0f, 'a'};
    static const uint8_t map[] = {0x1b, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 0x55};
    static const uint8_t varint[] = {0x16, 0xff, 0xff, 0xff, 0xff, 0xff,
                                     0xff, 0xff, 0xff, 0xff, 0x7f, 0};
    static const uint8_t type[] = {0x1e, 0, 0};
    skip_all(list, sizeof list, true);
    skip_all(text, sizeof text, true);
    skip_all(map, sizeof map, true);
    skip_all(varint, sizeof varint, true);
    skip_all(type, sizeof type, true);
    static const uint8_t good_map[] = {0x1b, 0x01, 0x58, 0x02, 0x01, 'a', 0};
    skip_all(good_map, sizeof good_map, false);
}

static void test_depth(void **state)
{
    (void)state;
    uint8_t deep[4096];
    /* Structs in structs, and lists of lists. */
    memset(deep, 0x1c, sizeof deep);
    skip_all(deep, sizeof deep, true);
    memset(deep, 0x19, sizeof deep);
    skip_all(deep, sizeof deep, true);
    memset(deep, 0, sizeof deep);
    memset(deep, 0x1c, THRIFT_DEPTH_MAX - 1);
    skip_all(deep, 2 * THRIFT_DEPTH_MAX, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_lies),
        cmocka_unit_test(test_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
