/* SPDX-License-Identifier: Apache-2.0 */
/* Bit unpacking in each variant, the run-length hybrid, delta packing, byte streams, spreading and conversions, each against
 * a plain answer. */
#include <math.h>

#include "base/cpu.h"
#include "formats/parquet/bit_unpack_priv.h"
#include "formats/parquet/convert_priv.h"
#include "formats/parquet/delta_priv.h"
#include "formats/parquet/encode_priv.h"
#include "formats/parquet/levels_priv.h"
#include "formats/parquet/page_codec_priv.h"
#include "formats/parquet/parquet_test_priv.h"
#include "formats/parquet/split_priv.h"
#include "formats/parquet/spread_priv.h"

static uint64_t random_state = 7;

static uint64_t next_random(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return random_state >> 29 ^ random_state;
}

static uint64_t naive_bits(const uint8_t *in, int64_t bit, int32_t width)
{
    uint64_t v = 0;
    for (int32_t k = 0; k < width; k++) {
        v |= (uint64_t)gar_bit_get(in, bit + k) << k;
    }
    return v;
}

static void test_bit_unpack(void **state)
{
    (void)state;
    enum { VALUES = 150 };
    const enum gar_isa best = gar_cpu_isa();
    for (int32_t isa = GAR_ISA_PORTABLE; isa <= (int32_t)best; isa++) {
        assert_int_equal(gar_cpu_set_isa((enum gar_isa)isa), isa);
        for (int32_t width = 0; width <= 32; width++) {
            for (int64_t skip = 0; skip < 20; skip++) {
                const int64_t count = (int64_t)(next_random() % VALUES);
                const int64_t size = gar_bits_bytes((skip + count) * width);
                const struct bytes b = bytes_copy(NULL, 0);
                uint8_t *const in = realloc(b.data, (size_t)size + 1);
                uint8_t *const exact = malloc((size_t)size + (size == 0));
                assert_non_null(in);
                assert_non_null(exact);
                for (int64_t i = 0; i < size; i++) {
                    in[i] = (uint8_t)next_random();
                }
                memcpy(exact, in, (size_t)size);
                uint32_t out[VALUES];
                gar_bit_unpack(exact, size, width, skip, count, out);
                for (int64_t i = 0; i < count; i++) {
                    assert_int_equal(out[i], naive_bits(in, (skip + i) * width, width));
                }
                free(in);
                free(exact);
            }
        }
    }
    (void)gar_cpu_set_isa(best);
}

static void test_bit_unpack_u64(void **state)
{
    (void)state;
    for (int32_t width = 1; width <= 64; width++) {
        uint8_t *const in = malloc((size_t)width * 8);
        assert_non_null(in);
        for (int64_t i = 0; i < (int64_t)width * 8; i++) {
            in[i] = (uint8_t)next_random();
        }
        uint64_t out[61];
        gar_bit_unpack_u64(in, (int64_t)width * 8, width, 3, 61, out);
        for (int64_t i = 0; i < 61; i++) {
            assert_true(out[i] == naive_bits(in, (3 + i) * width, width));
        }
        free(in);
    }
}

/* Values in runs of random length. */
static void fill_runs(uint32_t *values, int64_t count, int32_t width)
{
    const uint64_t mask = (UINT64_C(1) << width) - 1;
    for (int64_t i = 0; i < count;) {
        const int64_t run = next_random() % 3 == 0 ? (int64_t)(next_random() % 100) : 1;
        const uint32_t v = (uint32_t)(next_random() & mask);
        for (int64_t k = 0; k <= run && i < count; k++) {
            values[i++] = v;
        }
    }
}

static void test_rle_round_trip(void **state)
{
    (void)state;
    enum { VALUES = 3000 };
    static uint32_t values[VALUES];
    static uint32_t got[VALUES];
    for (int32_t width = 1; width <= 32; width++) {
        const int64_t count = (int64_t)(next_random() % VALUES);
        fill_runs(values, count, width);
        struct parquet_bytes out = {.memory = gar_memory_system()};
        assert_int_equal(gar_rle_append(values, count, width, &out, NULL), GAR_OK);
        const struct bytes b = bytes_copy(out.buffer == NULL ? NULL : out.buffer->data,
                                          out.buffer == NULL ? 0 : out.buffer->size);
        struct rle_decoder decoder;
        gar_rle_init(&decoder, b.data, b.size, width);
        int64_t at = 0;
        while (at < count) {
            const int64_t n = gar_min_i64(count - at, 1 + (int64_t)(next_random() % 200));
            uint32_t max = 0;
            uint32_t want_max = 0;
            if (next_random() % 4 == 0) {
                assert_true(gar_rle_skip(&decoder, n));
            } else {
                assert_true(gar_rle_read(&decoder, n, got, &max));
                for (int64_t i = 0; i < n; i++) {
                    assert_int_equal(got[i], values[at + i]);
                    want_max = values[at + i] > want_max ? values[at + i] : want_max;
                }
                assert_int_equal(max, want_max);
            }
            at += n;
        }
        /* Nothing but the padding of the last group may be left. */
        uint32_t max = 0;
        assert_false(gar_rle_read(&decoder, 8, got, &max));
        free(b.data);
        gar_buffer_unref(out.buffer);
    }
}

static void test_levels(void **state)
{
    (void)state;
    for (int32_t round = 0; round < 200; round++) {
        uint8_t bits[64];
        for (int64_t i = 0; i < (int64_t)sizeof bits; i++) {
            bits[i] = round % 3 == 0 ? 0xff : (uint8_t)next_random();
        }
        const int64_t from = (int64_t)(next_random() % 30);
        const int64_t rows = 1 + (int64_t)(next_random() % 400);
        struct parquet_bytes out = {.memory = gar_memory_system()};
        assert_int_equal(gar_levels_append(bits, from, rows, &out, NULL), GAR_OK);
        struct rle_decoder decoder;
        assert_int_equal(gar_load_u32(out.buffer->data), out.buffer->size - 4);
        gar_rle_init(&decoder, out.buffer->data + 4, out.buffer->size - 4, 1);
        struct rle_decoder skipper = decoder;
        uint8_t got[64];
        int64_t set = 0;
        int64_t skipped = 0;
        assert_true(gar_rle_read_bits(&decoder, rows, got, 5, &set));
        assert_true(gar_rle_skip_bits(&skipper, rows, &skipped));
        assert_int_equal(set, gar_bits_count(bits, from, rows));
        assert_int_equal(skipped, set);
        for (int64_t i = 0; i < rows; i++) {
            assert_int_equal(gar_bit_get(got, 5 + i), gar_bit_get(bits, from + i));
        }
        gar_buffer_unref(out.buffer);
    }
}

static void test_rle_lies(void **state)
{
    (void)state;
    struct rle_decoder decoder;
    uint32_t out[64];
    uint32_t max = 0;
    int64_t set = 0;
    /* Runs of no value, then the end. */
    static const uint8_t empty_runs[] = {0x00, 0x05, 0x00, 0x05, 0x01};
    gar_rle_init(&decoder, empty_runs, sizeof empty_runs, 8);
    assert_false(gar_rle_read(&decoder, 1, out, &max));
    /* A header of six bytes, a run without its value, a packed run cut short. */
    static const uint8_t long_header[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00};
    gar_rle_init(&decoder, long_header, sizeof long_header, 1);
    assert_false(gar_rle_read(&decoder, 1, out, &max));
    static const uint8_t no_value[] = {0x10};
    gar_rle_init(&decoder, no_value, sizeof no_value, 8);
    assert_false(gar_rle_read(&decoder, 1, out, &max));
    static const uint8_t cut[] = {0x05, 1, 2, 3};
    gar_rle_init(&decoder, cut, sizeof cut, 8);
    assert_true(gar_rle_read(&decoder, 3, out, &max));
    assert_int_equal(out[2], 3);
    assert_false(gar_rle_read(&decoder, 1, out, &max));
    /* A level of 2 in a column without lists. */
    static const uint8_t level[] = {0x10, 0x02};
    gar_rle_init(&decoder, level, sizeof level, 1);
    assert_false(gar_rle_read_bits(&decoder, 8, (uint8_t *)out, 0, &set));
    /* Width 0 needs no bytes. */
    static const uint8_t nothing[] = {0x03};
    gar_rle_init(&decoder, nothing, sizeof nothing, 0);
    assert_true(gar_rle_read(&decoder, 8, out, &max));
    assert_int_equal(out[7], 0);
}

static void put_varint(struct gar_strbuf *out, uint64_t v)
{
    while (v >= 0x80) {
        gar_strbuf_append_char(out, (char)(uint8_t)(v | 0x80));
        v >>= 7;
    }
    gar_strbuf_append_char(out, (char)(uint8_t)v);
}

/* A plain encoder of DELTA_BINARY_PACKED; sums wrap at 64 bits. */
static void encode_delta(const int64_t *values, int64_t count, int64_t block, int64_t miniblocks,
                         struct gar_strbuf *out)
{
    const int64_t per = block / miniblocks;
    put_varint(out, (uint64_t)block);
    put_varint(out, (uint64_t)miniblocks);
    put_varint(out, (uint64_t)count);
    gar_thrift_put_zigzag(out, count > 0 ? values[0] : 0);
    for (int64_t at = 1; at < count; at += block) {
        const int64_t n = gar_min_i64(block, count - at);
        int64_t min = INT64_MAX;
        for (int64_t i = 0; i < n; i++) {
            const int64_t d = (int64_t)((uint64_t)values[at + i] - (uint64_t)values[at + i - 1]);
            min = d < min ? d : min;
        }
        gar_thrift_put_zigzag(out, min);
        int32_t widths[16] = {0};
        for (int64_t i = 0; i < n; i++) {
            const uint64_t d =
                (uint64_t)values[at + i] - (uint64_t)values[at + i - 1] - (uint64_t)min;
            const int32_t width = d == 0 ? 0 : 64 - gar_clz64(d);
            widths[i / per] = width > widths[i / per] ? width : widths[i / per];
        }
        for (int64_t m = 0; m < miniblocks; m++) {
            gar_strbuf_append_char(out, (char)widths[m]);
        }
        for (int64_t m = 0; m < miniblocks && m * per < n; m++) {
            uint8_t packed[2048] = {0};
            for (int64_t i = m * per; i < (m + 1) * per && i < n; i++) {
                const uint64_t d =
                    (uint64_t)values[at + i] - (uint64_t)values[at + i - 1] - (uint64_t)min;
                for (int32_t k = 0; k < widths[m]; k++) {
                    gar_bit_put(packed, (i - m * per) * widths[m] + k, (d >> k) & 1);
                }
            }
            gar_strbuf_append_n(out, (const char *)packed, per / 8 * widths[m]);
        }
    }
}

static void test_delta(void **state)
{
    (void)state;
    enum { VALUES = 1000 };
    static int64_t values[VALUES];
    static int64_t got[VALUES];
    for (int32_t round = 0; round < 60; round++) {
        const int64_t count = round == 0 ? 0 : (int64_t)(next_random() % VALUES);
        const int32_t shift = round % 64;
        for (int64_t i = 0; i < count; i++) {
            values[i] = (int64_t)(next_random() >> shift);
        }
        struct gar_strbuf out = {0};
        encode_delta(values, count, round % 2 == 0 ? 128 : 256, round % 3 == 0 ? 1 : 4, &out);
        gar_strbuf_append(&out, "tail");
        const struct bytes b = bytes_copy(out.data, out.size);
        struct delta_decoder decoder;
        assert_true(gar_delta_init(&decoder, b.data, b.size));
        const uint8_t *const end = gar_delta_end(&decoder);
        assert_non_null(end);
        assert_memory_equal(end, "tail", 4);
        int64_t at = 0;
        while (at < count) {
            const int64_t n = gar_min_i64(count - at, 1 + (int64_t)(next_random() % 150));
            if (next_random() % 4 == 0) {
                assert_true(gar_delta_skip(&decoder, n));
            } else {
                assert_true(gar_delta_read_i64(&decoder, n, got));
                assert_memory_equal(got, values + at, (size_t)n * sizeof *got);
            }
            at += n;
        }
        assert_false(gar_delta_read_i64(&decoder, 1, got));
        free(b.data);
        gar_strbuf_destroy(&out);
    }
}

static void test_delta_lies(void **state)
{
    (void)state;
    struct delta_decoder decoder;
    int64_t out[64];
    /* No miniblocks; a block that is no multiple; 2^63 values; a width of 65 bits; a total without data. */
    static const uint8_t no_miniblocks[] = {0x80, 0x01, 0x00, 0x05, 0x02};
    static const uint8_t odd_block[] = {0x81, 0x01, 0x04, 0x05, 0x02};
    static const uint8_t huge[] = {0x80, 0x01, 0x04, 0xff, 0xff, 0xff, 0xff,
                                   0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x02};
    static const uint8_t wide[] = {0x80, 0x01, 0x04, 0x05, 0x02, 0x02, 65, 0, 0, 0, 1, 2, 3};
    static const uint8_t cut[] = {0x80, 0x01, 0x04, 0x05, 0x02};
    assert_false(gar_delta_init(&decoder, no_miniblocks, sizeof no_miniblocks));
    assert_false(gar_delta_init(&decoder, odd_block, sizeof odd_block));
    assert_false(gar_delta_init(&decoder, huge, sizeof huge));
    assert_true(gar_delta_init(&decoder, wide, sizeof wide));
    assert_null(gar_delta_end(&decoder));
    assert_false(gar_delta_read_i64(&decoder, 2, out));
    assert_true(gar_delta_init(&decoder, cut, sizeof cut));
    assert_null(gar_delta_end(&decoder));
    assert_false(gar_delta_read_i64(&decoder, 5, out));
}

static void test_split(void **state)
{
    (void)state;
    for (int32_t width = 1; width <= 17; width++) {
        const int64_t total = 100;
        uint8_t *const in = malloc((size_t)(total * width));
        uint8_t *const a = malloc((size_t)(total * width));
        uint8_t *const b = malloc((size_t)(total * width));
        assert_true(in != NULL && a != NULL && b != NULL);
        for (int64_t i = 0; i < total * width; i++) {
            in[i] = (uint8_t)next_random();
        }
        for (int64_t at = 0; at < 30; at += 7) {
            for (int64_t count = 0; count + at <= total; count += 9) {
                gar_split_join(in, total, at, count, width, a);
                gar_split_join_portable(in, total, at, count, width, b);
                assert_memory_equal(a, b, (size_t)(count * width));
                for (int64_t i = 0; i < count * width; i++) {
                    assert_int_equal(a[i], in[i % width * total + at + i / width]);
                }
            }
        }
        free(in);
        free(a);
        free(b);
    }
}

static void test_spread(void **state)
{
    (void)state;
    static const int32_t widths[] = {1, 2, 4, 8, 16};
    for (int32_t round = 0; round < 300; round++) {
        const int32_t width = widths[round % 5];
        const int64_t rows = (int64_t)(next_random() % 100);
        const int64_t offset = (int64_t)(next_random() % 9);
        uint8_t bits[16];
        for (int64_t i = 0; i < 16; i++) {
            bits[i] =
                round % 7 == 0 ? (uint8_t)(round % 2 == 0 ? 0xff : 0) : (uint8_t)next_random();
        }
        const int64_t dense = gar_bits_count(bits, offset, rows);
        GAR_ALIGNED(16) uint8_t values[1600];
        uint8_t want[1600] = {0};
        for (int64_t i = 0; i < (int64_t)sizeof values; i++) {
            values[i] = (uint8_t)next_random();
        }
        int64_t from = 0;
        uint8_t bools[16];
        uint8_t want_bools[16] = {0};
        memcpy(bools, values, sizeof bools);
        for (int64_t i = 0; i < rows; i++) {
            if (gar_bit_get(bits, offset + i)) {
                memcpy(want + i * width, values + from * width, (size_t)width);
                gar_bit_put(want_bools, 3 + i, gar_bit_get(bools, 3 + from));
                from++;
            }
        }
        gar_spread(values, width, bits, offset, rows, dense);
        assert_memory_equal(values, want, (size_t)(rows * width));
        gar_spread_bits(bools, 3, bits, offset, rows, dense);
        for (int64_t i = 0; i < rows; i++) {
            assert_int_equal(gar_bit_get(bools, 3 + i), gar_bit_get(want_bools, 3 + i));
        }
    }
}

static void test_float16(void **state)
{
    (void)state;
    static const struct {
        uint16_t half;
        float value;
    } cases[] = {
        {0x0000, 0.0F},     {0x3c00, 1.0F},     {0xc000, -2.0F},      {0x7bff, 65504.0F},
        {0x0400, 0x1p-14F}, {0x0001, 0x1p-24F}, {0x03ff, 0x3ffp-24F}, {0x3555, 0.333251953125F},
        {0x7c00, INFINITY}, {0xfc00, -INFINITY}};
    for (int64_t i = 0; i < GAR_COUNT_OF(cases); i++) {
        float out = -1;
        gar_convert_f16((const uint8_t *)&cases[i].half, 1, &out);
        assert_true(out == cases[i].value);
    }
    const uint16_t nan = 0x7e01;
    const uint16_t minus_zero = 0x8000;
    float out = 0;
    gar_convert_f16((const uint8_t *)&nan, 1, &out);
    assert_true(isnan(out));
    gar_convert_f16((const uint8_t *)&minus_zero, 1, &out);
    assert_true(out == 0 && signbit(out));
}

static void test_conversions(void **state)
{
    (void)state;
    const int32_t i32[] = {-129, 127, 300};
    int8_t i8[3];
    assert_false(gar_convert_i32_i8(i32, 1, i8));
    assert_true(gar_convert_i32_i8(i32 + 1, 1, i8));
    uint8_t u8[3];
    assert_false(gar_convert_i32_u8(i32 + 2, 1, u8));
    assert_false(gar_convert_i32_u8(i32, 1, u8));
    const int64_t i64[] = {-1, UINT32_MAX, (int64_t)UINT32_MAX + 1};
    uint32_t u32[3];
    assert_false(gar_convert_i64_u32(i64, 1, u32));
    assert_true(gar_convert_i64_u32(i64 + 1, 1, u32));
    assert_false(gar_convert_i64_u32(i64 + 2, 1, u32));

    GAR_ALIGNED(16) gar_i128 decimal[2];
    const int64_t cents[] = {-99999, 100000, INT64_MIN};
    assert_true(gar_convert_i64_decimal(cents, 1, 5, decimal));
    assert_true(decimal[0] == -99999);
    assert_false(gar_convert_i64_decimal(cents + 1, 1, 5, decimal));
    assert_false(gar_convert_i64_decimal(cents + 2, 1, 18, decimal));
    /* Sign extension over sixteen bytes is fine, other bytes there are not. */
    uint8_t wide[20];
    memset(wide, 0xff, sizeof wide);
    wide[19] = 0xfe;
    assert_true(gar_convert_decimal_bytes(wide, 1, 20, 1, decimal));
    assert_true(decimal[0] == -2);
    wide[0] = 0x7f;
    assert_false(gar_convert_decimal_bytes(wide, 1, 20, 1, decimal));
    assert_true(gar_convert_decimal_bytes(wide, 1, 0, 1, decimal));
    assert_true(decimal[0] == 0);

    /* 1970-01-02 00:00:00.000001 and a year that no int64 of microseconds holds. */
    uint8_t i96[12] = {0};
    const int64_t nanos = 1999;
    int32_t day = 2440589;
    memcpy(i96, &nanos, 8);
    memcpy(i96 + 8, &day, 4);
    int64_t us = 0;
    assert_true(gar_convert_i96(i96, 1, &us));
    assert_true(us == INT64_C(86400000001));
    day = INT32_MAX;
    memcpy(i96 + 8, &day, 4);
    assert_false(gar_convert_i96(i96, 1, &us));
}

/* Text-like and number-like data, so that all kinds of elements and offsets come up. */
static void fill_compressible(uint8_t *data, int64_t size, int32_t kind)
{
    for (int64_t i = 0; i < size;) {
        const int64_t back = 1 + (int64_t)(next_random() % (kind % 3 == 0 ? 20 : 70000));
        if (i > back && next_random() % 4 != 0) {
            const int64_t length = 1 + (int64_t)(next_random() % (kind % 2 == 0 ? 12 : 300));
            for (int64_t k = 0; k < length && i < size; k++, i++) {
                data[i] = data[i - back];
            }
        } else {
            const int64_t length = 1 + (int64_t)(next_random() % (kind % 5 == 0 ? 2000 : 20));
            for (int64_t k = 0; k < length && i < size; k++) {
                data[i++] = (uint8_t)next_random();
            }
        }
    }
}

static void test_snappy(void **state)
{
    (void)state;
    const enum gar_isa best = gar_cpu_isa();
    struct page_codec codec = {0};
    for (int32_t round = 0; round < 120; round++) {
        const int64_t size = round < 20 ? round : (int64_t)(next_random() % 200000);
        uint8_t *const data = malloc((size_t)size + 1);
        uint8_t *const packed = malloc((size_t)gar_page_compress_bound(GAR_PARQUET_SNAPPY, size));
        uint8_t *const out = malloc((size_t)size + 64);
        assert_true(data != NULL && packed != NULL && out != NULL);
        fill_compressible(data, size, round);
        int64_t bytes = 0;
        assert_int_equal(
            gar_page_compress(&codec, GAR_PARQUET_SNAPPY, 0, data, size, packed, &bytes, NULL),
            GAR_OK);
        const struct bytes exact = bytes_copy(packed, bytes);
        for (int32_t isa = GAR_ISA_PORTABLE; isa <= (int32_t)best; isa++) {
            (void)gar_cpu_set_isa((enum gar_isa)isa);
            memset(out, 0, (size_t)size);
            assert_true(gar_snappy_decode(exact.data, bytes, out, size));
            assert_memory_equal(out, data, (size_t)size);
            assert_false(gar_snappy_decode(exact.data, bytes, out, size + 1));
            assert_false(gar_snappy_decode(exact.data, bytes - 1, out, size));
            if (size > 0) {
                assert_false(gar_snappy_decode(exact.data, bytes, out, size - 1));
            }
            /* Damaged, it fails or gives other bytes, within the borders. */
            for (int32_t k = 0; k < 20; k++) {
                const int64_t at = (int64_t)(next_random() % (uint64_t)bytes);
                const uint8_t saved = exact.data[at];
                exact.data[at] = (uint8_t)next_random();
                (void)gar_snappy_decode(exact.data, bytes, out, size);
                exact.data[at] = saved;
            }
        }
        (void)gar_cpu_set_isa(best);
        free(exact.data);
        free(out);
        free(packed);
        free(data);
    }
    gar_page_codec_destroy(&codec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bit_unpack),     cmocka_unit_test(test_bit_unpack_u64),
        cmocka_unit_test(test_rle_round_trip), cmocka_unit_test(test_levels),
        cmocka_unit_test(test_rle_lies),       cmocka_unit_test(test_delta),
        cmocka_unit_test(test_delta_lies),     cmocka_unit_test(test_split),
        cmocka_unit_test(test_spread),         cmocka_unit_test(test_float16),
        cmocka_unit_test(test_conversions),    cmocka_unit_test(test_snappy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
