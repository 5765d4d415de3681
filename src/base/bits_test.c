/* SPDX-License-Identifier: Apache-2.0 */
/* Bit ranges against one-bit-at-a-time answers, in blocks of exact size so that a sanitizer sees a stray byte. */
#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/cpu.h"

static uint64_t random_state = 12345;

static uint64_t next_random(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return random_state >> 17 ^ random_state >> 41;
}

static uint8_t *random_bytes(int64_t bytes)
{
    uint8_t *data = gar_malloc(bytes);
    assert_non_null(data);
    for (int64_t i = 0; i < bytes; i++) {
        data[i] = (uint8_t)next_random();
    }
    return data;
}

static void ranges_agree_with_single_bits(void **state)
{
    (void)state;
    for (int round = 0; round < 3000; round++) {
        const int64_t count = (int64_t)(next_random() % 300);
        const int64_t from = (int64_t)(next_random() % 70);
        const int64_t to = (int64_t)(next_random() % 70);
        const int64_t a_bytes = gar_bits_bytes(from + count);
        const int64_t b_bytes = gar_bits_bytes(to + count);
        uint8_t *a = random_bytes(a_bytes);
        uint8_t *b = random_bytes(b_bytes);
        uint8_t *b_before = random_bytes(b_bytes);
        memcpy(b_before, b, (size_t)b_bytes);

        int64_t set = 0;
        for (int64_t i = 0; i < count; i++) {
            set += gar_bit_get(a, from + i);
        }
        assert_int_equal(gar_bits_count(a, from, count), set);

        const int64_t loaded = gar_min_i64(count, 64);
        const uint64_t word = gar_bits_load(a, from, count);
        for (int64_t i = 0; i < 64; i++) {
            assert_int_equal((word >> i) & 1, i < loaded ? gar_bit_get(a, from + i) : 0);
        }

        uint8_t *and_out = random_bytes(gar_bits_bytes(count));
        gar_bits_and(and_out, a, from, b, to, count);
        for (int64_t i = 0; i < count; i++) {
            assert_int_equal(gar_bit_get(and_out, i),
                             gar_bit_get(a, from + i) && gar_bit_get(b, to + i));
        }

        gar_bits_copy(b, to, a, from, count);
        for (int64_t i = 0; i < 8 * b_bytes; i++) {
            const bool is_inside = i >= to && i < to + count;
            assert_int_equal(gar_bit_get(b, i),
                             is_inside ? gar_bit_get(a, from + i - to) : gar_bit_get(b_before, i));
        }
        const bool value = round % 2 == 0;
        memcpy(b, b_before, (size_t)b_bytes);
        gar_bits_fill(b, to, count, value);
        for (int64_t i = 0; i < 8 * b_bytes; i++) {
            assert_int_equal(gar_bit_get(b, i),
                             i >= to && i < to + count ? value : gar_bit_get(b_before, i));
        }
        gar_free(a);
        gar_free(b);
        gar_free(b_before);
        gar_free(and_out);
    }
}

static void portable_count_agrees(void **state)
{
    const enum gar_isa best = gar_cpu_isa();
    gar_cpu_set_isa(GAR_ISA_PORTABLE);
    ranges_agree_with_single_bits(state);
    gar_cpu_set_isa(best);
}

static void and_works_in_place(void **state)
{
    (void)state;
    uint8_t a[20];
    uint8_t b[20];
    memset(a, 0xf0, sizeof a);
    memset(b, 0x3c, sizeof b);
    gar_bits_and(a, a, 0, b, 0, 160);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(a[i], 0x30);
    }
}

static void single_bits(void **state)
{
    (void)state;
    uint8_t bits[2] = {0, 0};
    gar_bit_set(bits, 9);
    assert_int_equal(bits[1], 2);
    gar_bit_put(bits, 3, true);
    gar_bit_put(bits, 9, false);
    assert_int_equal(bits[0], 8);
    assert_int_equal(bits[1], 0);
    gar_bit_clear(bits, 3);
    assert_int_equal(bits[0], 0);
    assert_int_equal(gar_next_pow2(1), 1);
    assert_int_equal(gar_next_pow2(3), 4);
    assert_int_equal(gar_next_pow2(64), 64);
    assert_int_equal(gar_next_pow2(65), 128);
    assert_true(gar_next_pow2(INT64_C(1) << 62) == INT64_C(1) << 62);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_bits),
        cmocka_unit_test(ranges_agree_with_single_bits),
        cmocka_unit_test(portable_count_agrees),
        cmocka_unit_test(and_works_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
