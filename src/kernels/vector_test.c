/* SPDX-License-Identifier: Apache-2.0 */
/* Each instruction set's vector kernels give what the portable ones give, on random data of every length, and the portable
 * ones give what plain scalar code gives at the edges. */
#include "kernels/vector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bits.h"

enum { ROUNDS = 60, SLACK = 16 };

static uint64_t seed = 0x9e3779b97f4a7c15U;

static uint64_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static const int32_t lane_bytes[GAR_LANE_COUNT] = {1, 2, 4, 8, 1, 2, 4, 8, 4, 8};

/* Lengths around the widths of registers and words, and full vectors. */
static int64_t random_length(void)
{
    static const int64_t lengths[] = {0,  1,  7,  8,   9,   15,   16,   17,  31,
                                      63, 64, 65, 127, 200, 1000, 1023, 1024};
    return lengths[next_random() % GAR_COUNT_OF(lengths)];
}

/* Bytes of values: whole range, or small numbers that often are equal and do not overflow. */
static void fill(enum gar_lane lane, bool is_small, uint8_t *values)
{
    for (int64_t i = 0; i < GAR_VECTOR_ROWS; i++) {
        const uint64_t random = next_random();
        const int64_t small = (int64_t)(random % 9) - 4;
        if (lane == GAR_LANE_F32) {
            const float specials[] = {
                0.0F, -0.0F, 1.5F, -1.5F, 1e30F, __builtin_nanf(""), __builtin_inff()};
            const float v = is_small ? (float)small : specials[random % 7];
            memcpy(values + 4 * i, &v, 4);
        } else if (lane == GAR_LANE_F64) {
            const double specials[] = {
                0.0, -0.0, 1.5, -1.5, 1e300, __builtin_nan(""), __builtin_inf()};
            const double v = is_small ? (double)small : specials[random % 7];
            memcpy(values + 8 * i, &v, 8);
        } else {
            const uint64_t v = is_small ? (uint64_t)small : random;
            memcpy(values + lane_bytes[lane] * i, &v, (size_t)lane_bytes[lane]);
        }
    }
}

static const struct gar_vector_kernels *plain(void)
{
    return gar_vector_kernels_for(GAR_ISA_PORTABLE);
}

static uint8_t a[GAR_VECTOR_ROWS * 16];
static uint8_t b[GAR_VECTOR_ROWS * 16];
static uint8_t got[GAR_VECTOR_ROWS * 16 + 64];
static uint8_t want[GAR_VECTOR_ROWS * 16 + 64];

static void check_arith(const struct gar_vector_kernels *kernels, enum gar_lane lane)
{
    for (int32_t op = 0; op < GAR_ARITH_COUNT; op++) {
        for (int32_t shape = 0; shape < GAR_SHAPE_COUNT; shape++) {
            const int64_t n = random_length();
            if (plain()->arith[op][lane][shape] == NULL) {
                continue;
            }
            const bool is_over = plain()->arith[op][lane][shape](a, b, want, n);
            assert_int_equal(kernels->arith[op][lane][shape](a, b, got, n), is_over);
            assert_memory_equal(got, want, (size_t)(n * lane_bytes[lane]));
        }
    }
}

static void check_compare(const struct gar_vector_kernels *kernels, enum gar_lane lane)
{
    for (int32_t op = 0; op < GAR_COMPARE_COUNT; op++) {
        for (int32_t shape = 0; shape < 2; shape++) {
            const int64_t n = random_length();
            if (plain()->compare[op][lane][shape] == NULL) {
                continue;
            }
            plain()->compare[op][lane][shape](a, b, (uint64_t *)(void *)want, n);
            kernels->compare[op][lane][shape](a, b, (uint64_t *)(void *)got, n);
            assert_memory_equal(got, want, (size_t)((n + 63) / 64 * 8));
        }
    }
}

/* Runs check for every instruction set that the machine has. */
static void each_isa(void (*check)(const struct gar_vector_kernels *kernels))
{
    for (enum gar_isa isa = GAR_ISA_PORTABLE; isa <= GAR_ISA_AVX512; isa++) {
        if (gar_cpu_set_isa(isa) == isa && gar_vector_kernels_for(isa) != NULL) {
            for (int32_t round = 0; round < ROUNDS; round++) {
                check(gar_vector_kernels_for(isa));
            }
        }
    }
}

static void check_lanes(const struct gar_vector_kernels *kernels)
{
    for (enum gar_lane lane = GAR_LANE_I8; lane < GAR_LANE_COUNT; lane++) {
        fill(lane, next_random() % 2 == 0, a);
        fill(lane, next_random() % 2 == 0, b);
        check_arith(kernels, lane);
        check_compare(kernels, lane);
    }
}

static void test_lanes(void **state)
{
    (void)state;
    each_isa(check_lanes);
}

/* The overflow answer and each lane's closer look agree, and both agree with wide arithmetic. */
static void test_overflow_is_exact(void **state)
{
    (void)state;
    for (int32_t round = 0; round < 400; round++) {
        for (enum gar_lane lane = GAR_LANE_I8; lane <= GAR_LANE_U64; lane++) {
            fill(lane, next_random() % 2 == 0, a);
            fill(lane, next_random() % 2 == 0, b);
            const int64_t n = 1 + (int64_t)(next_random() % 4);
            for (int32_t op = GAR_ARITH_ADD; op <= GAR_ARITH_MUL; op++) {
                bool is_any = false;
                for (int64_t i = 0; i < n; i++) {
                    is_any = is_any ||
                             gar_arith_overflows((enum gar_arith)op, lane, a + i * lane_bytes[lane],
                                                 b + i * lane_bytes[lane]);
                }
                assert_int_equal(gar_vector_kernels()->arith[op][lane][GAR_SHAPE_VV](a, b, got, n),
                                 is_any);
            }
        }
    }
}

static void check_selections(const struct gar_vector_kernels *kernels)
{
    uint64_t bits[GAR_VECTOR_WORDS];
    uint32_t rows[GAR_VECTOR_ROWS];
    const int64_t n = random_length();
    const uint64_t density = next_random() % 4;
    for (int64_t w = 0; w < GAR_VECTOR_WORDS; w++) {
        const int64_t left = n - 64 * w;
        const uint64_t mask = left >= 64 ? UINT64_MAX : left <= 0 ? 0 : (UINT64_C(1) << left) - 1;
        bits[w] = density == 0   ? 0
                  : density == 1 ? UINT64_MAX
                                 : next_random() & (density == 2 ? next_random() : UINT64_MAX);
        bits[w] &= mask;
    }
    for (int64_t i = 0; i < GAR_VECTOR_ROWS; i++) {
        rows[i] = (uint32_t)(7 * i + 3);
    }
    uint32_t *out = (uint32_t *)(void *)got;
    int64_t count = kernels->select(bits, n, 1000, out);
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        if ((bits[i >> 6] >> (i & 63) & 1) != 0) {
            assert_int_equal(out[at++], 1000 + i);
        }
    }
    assert_int_equal(count, at);
    count = kernels->select_rows(bits, n, rows, out);
    assert_int_equal(count, at);
    at = 0;
    for (int64_t i = 0; i < n; i++) {
        if ((bits[i >> 6] >> (i & 63) & 1) != 0) {
            assert_int_equal(out[at++], rows[i]);
        }
    }
}

static void test_selections(void **state)
{
    (void)state;
    each_isa(check_selections);
}

static void check_decimals(const struct gar_vector_kernels *kernels)
{
    static gar_i128 wide[GAR_VECTOR_ROWS];
    static gar_i128 back[GAR_VECTOR_ROWS];
    static int64_t slim[GAR_VECTOR_ROWS];
    const int64_t n = random_length();
    const bool has_huge = n > 0 && next_random() % 4 == 0;
    const int32_t shift = (int32_t)(next_random() % 64);
    uint64_t largest = 0;
    for (int64_t i = 0; i < n; i++) {
        wide[i] = (int64_t)next_random() >> shift;
        const uint64_t size = wide[i] < 0 ? (uint64_t)-wide[i] : (uint64_t)wide[i];
        largest = size > largest ? size : largest;
    }
    uint64_t bound = 0;
    if (has_huge) {
        wide[(int64_t)(next_random() % (uint64_t)n)] = (gar_i128)1 << (63 + next_random() % 60);
        assert_false(kernels->narrow(wide, slim, n, &bound));
        return;
    }
    assert_true(kernels->narrow(wide, slim, n, &bound));
    assert_true(bound >= largest);
    assert_true(kernels->bound(slim, n) >= largest);
    kernels->widen(slim, back, n);
    assert_memory_equal(back, wide, (size_t)n * sizeof *wide);
    int64_t product[GAR_VECTOR_ROWS];
    int64_t other[GAR_VECTOR_ROWS];
    for (int32_t shape = 0; shape < GAR_SHAPE_COUNT; shape++) {
        plain()->mul_unchecked[shape](slim, slim, other, n);
        kernels->mul_unchecked[shape](slim, slim, product, n);
        assert_memory_equal(product, other, (size_t)n * sizeof *product);
    }
}

static void test_decimals(void **state)
{
    (void)state;
    each_isa(check_decimals);
}

static void check_gathers(const struct gar_vector_kernels *kernels)
{
    const int64_t n = random_length();
    static const int64_t counts[] = {1, 2, 8, 9, 16, 17, 32, 33, 512, 513, 1000};
    const int64_t count = counts[next_random() % GAR_COUNT_OF(counts)];
    uint32_t rows[GAR_VECTOR_ROWS];
    for (int64_t i = 0; i < n; i++) {
        rows[i] = (uint32_t)(next_random() % (uint64_t)count);
    }
    fill(GAR_LANE_U64, false, a);
    kernels->gather8(a, rows, got, n);
    kernels->gather16((uint16_t *)(void *)a, rows, (uint16_t *)(void *)want, n);
    for (int64_t i = 0; i < n; i++) {
        assert_int_equal(got[i], a[rows[i]]);
        assert_int_equal(((uint16_t *)(void *)want)[i], ((uint16_t *)(void *)a)[rows[i]]);
    }
    /* tables end where their last entry ends: a heap block of that size shows reads beyond */
    uint32_t *table32 = malloc((size_t)count * 4);
    uint64_t *table64 = malloc((size_t)count * 8);
    uint8_t *flags = malloc((size_t)count);
    memcpy(table32, a, (size_t)count * 4);
    memcpy(table64, a, (size_t)count * 8);
    for (int64_t i = 0; i < count; i++) {
        flags[i] = a[i] & 1;
    }
    uint64_t bits[GAR_VECTOR_WORDS];
    kernels->gather32(table32, count, rows, (uint32_t *)(void *)got, n);
    kernels->gather64(table64, count, rows, (uint64_t *)(void *)want, n);
    kernels->gather_bits(flags, count, rows, bits, n);
    for (int64_t i = 0; i < n; i++) {
        assert_int_equal(((uint32_t *)(void *)got)[i], table32[rows[i]]);
        assert_int_equal(((uint64_t *)(void *)want)[i], table64[rows[i]]);
        assert_int_equal(bits[i >> 6] >> (i & 63) & 1, flags[rows[i]]);
    }
    free(table32);
    free(table64);
    free(flags);
}

static void test_gathers(void **state)
{
    (void)state;
    each_isa(check_gathers);
}

static int64_t slow_find(const uint8_t *text, int64_t bytes, const uint8_t *part,
                         int64_t part_bytes)
{
    for (int64_t i = 0; i + part_bytes <= bytes; i++) {
        if (memcmp(text + i, part, (size_t)part_bytes) == 0) {
            return i;
        }
    }
    return -1;
}

static void check_texts(const struct gar_vector_kernels *kernels)
{
    const int64_t bytes = 2 + (int64_t)(next_random() % 200);
    const int64_t part_bytes = 2 + (int64_t)(next_random() % 5);
    uint8_t *text = malloc((size_t)bytes); /* exact: reads beyond show */
    uint8_t part[8];
    for (int64_t i = 0; i < bytes; i++) {
        text[i] = (uint8_t)('a' + next_random() % 3);
    }
    for (int64_t i = 0; i < part_bytes; i++) {
        part[i] = (uint8_t)('a' + next_random() % 3);
    }
    if (part_bytes <= bytes) {
        assert_int_equal(kernels->find_part(text, bytes, part, part_bytes),
                         slow_find(text, bytes, part, part_bytes));
    }
    for (int64_t i = 0; i < bytes; i++) {
        text[i] = (uint8_t)(next_random() % (next_random() % 8 == 0 ? 256 : 128));
    }
    bool is_ascii = true;
    const bool is_ascii_told = kernels->flip_case(text, got, bytes, 'a');
    for (int64_t i = 0; i < bytes; i++) {
        is_ascii = is_ascii && text[i] < 0x80;
        const uint8_t flipped =
            text[i] >= 'a' && text[i] <= 'z' ? (uint8_t)(text[i] - 0x20) : text[i];
        assert_int_equal(got[i], flipped);
    }
    assert_int_equal(is_ascii_told, is_ascii);
    free(text);
    const int64_t n = random_length();
    uint64_t bits[GAR_VECTOR_WORDS];
    for (int64_t i = 0; i < 2 * n; i++) {
        ((uint64_t *)(void *)a)[i] = next_random() % 2 == 0 ? 5 : 5 | UINT64_C(7) << 60;
    }
    kernels->equal_pairs((uint64_t *)(void *)a, 5, UINT64_MAX, 5, UINT64_MAX >> 8, bits, n);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t *pair = (const uint64_t *)(const void *)a + 2 * i;
        assert_int_equal(bits[i >> 6] >> (i & 63) & 1,
                         pair[0] == 5 && (pair[1] & (UINT64_MAX >> 8)) == 5);
    }
}

static void test_texts(void **state)
{
    (void)state;
    each_isa(check_texts);
}

static void check_between(const struct gar_vector_kernels *kernels)
{
    const int64_t n = random_length();
    uint64_t bits[GAR_VECTOR_WORDS];
    fill(GAR_LANE_I64, next_random() % 2 == 0, a);
    const int64_t *wide = (const int64_t *)(const void *)a;
    const int64_t low = next_random() % 4 == 0 ? INT64_MIN : (int64_t)(next_random() % 5) - 3;
    const int64_t high = next_random() % 4 == 0 ? INT64_MAX : (int64_t)(next_random() % 5) - 2;
    kernels->between_i64(wide, low, high, bits, n);
    for (int64_t i = 0; i < n; i++) {
        assert_int_equal(bits[i >> 6] >> (i & 63) & 1, wide[i] >= low && wide[i] <= high);
    }
    fill(GAR_LANE_I32, next_random() % 2 == 0, a);
    const int32_t *slim = (const int32_t *)(const void *)a;
    const int32_t low32 = low == INT64_MIN ? INT32_MIN : (int32_t)low;
    const int32_t high32 = high == INT64_MAX ? INT32_MAX : (int32_t)high;
    kernels->between_i32(slim, low32, high32, bits, n);
    for (int64_t i = 0; i < n; i++) {
        assert_int_equal(bits[i >> 6] >> (i & 63) & 1, slim[i] >= low32 && slim[i] <= high32);
    }
}

static void test_between(void **state)
{
    (void)state;
    each_isa(check_between);
}

static void check_times(const struct gar_vector_kernels *kernels)
{
    const int64_t n = random_length();
    const int64_t per_day = INT64_C(86400) * (next_random() % 2 == 0 ? 1000 : 1000000000);
    int64_t ticks[GAR_VECTOR_ROWS];
    int32_t days[GAR_VECTOR_ROWS];
    for (int64_t i = 0; i < n; i++) {
        /* around day borders, where an estimate may be off by one */
        const int64_t day = (int64_t)(next_random() % 200000) - 100000;
        ticks[i] = day * per_day + (int64_t)(next_random() % 3) - 1;
    }
    assert_true(kernels->days_of_ticks(ticks, per_day, days, n));
    for (int64_t i = 0; i < n; i++) {
        const int64_t floor = ticks[i] / per_day - (ticks[i] % per_day < 0 ? 1 : 0);
        assert_int_equal(days[i], floor);
    }
    const int64_t far[1] = {INT64_MAX};
    assert_false(kernels->days_of_ticks(far, 86400, days, 1));
    double quotient[GAR_VECTOR_ROWS];
    kernels->divide_to_double(ticks, 100.0, quotient, n);
    for (int64_t i = 0; i < n; i++) {
        assert_true(quotient[i] == (double)ticks[i] / 100.0);
    }
}

static void test_times(void **state)
{
    (void)state;
    each_isa(check_times);
}

static void check_widths(const struct gar_vector_kernels *kernels)
{
    int64_t wide[GAR_VECTOR_ROWS];
    for (enum gar_lane lane = GAR_LANE_I8; lane < GAR_LANE_COUNT; lane++) {
        if (kernels->to_i64[lane] == NULL) {
            continue;
        }
        const int64_t n = random_length();
        fill(lane, next_random() % 2 == 0, a);
        kernels->to_i64[lane](a, wide, n);
        assert_false(kernels->from_i64[lane](wide, got, n));
        assert_memory_equal(got, a, (size_t)(n * lane_bytes[lane]));
        if (n > 0) {
            wide[(int64_t)(next_random() % (uint64_t)n)] = (int64_t)1 << 40;
            assert_true(kernels->from_i64[lane](wide, got, n));
        }
    }
}

static void test_widths(void **state)
{
    (void)state;
    each_isa(check_widths);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lanes),      cmocka_unit_test(test_overflow_is_exact),
        cmocka_unit_test(test_selections), cmocka_unit_test(test_decimals),
        cmocka_unit_test(test_gathers),    cmocka_unit_test(test_texts),
        cmocka_unit_test(test_between),    cmocka_unit_test(test_times),
        cmocka_unit_test(test_widths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
