/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and dates from text, many fields at a time: a portable form and an AVX-512 form of each, which understand nearly
 * the same fields (what a form does not understand, the caller parses one by one) and agree on the values. */
#include <string.h>

#include "base/bits.h"
#include "base/calendar.h"
#include "base/cpu.h"
#include "formats/csv/csv_convert_priv.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define CSV_X86 1
#else
#define CSV_X86 0
#endif

#define NUMBER_BYTES 16
#define ASCII_ZEROS  UINT64_C(0x3030303030303030)

/* ---- portable ---- */

/* Bytes 0..9, the first digit in the lowest byte, as one number. */
GAR_INLINE uint64_t eight_digits(uint64_t digits)
{
    digits = digits * 10 + (digits >> 8);
    digits &= UINT64_C(0x00ff00ff00ff00ff);
    digits = digits * 100 + (digits >> 16);
    digits &= UINT64_C(0x0000ffff0000ffff);
    return (digits * 10000 + (digits >> 32)) & 0xffffffff;
}

/* All bytes in 0..9? */
GAR_INLINE bool are_digits(uint64_t x)
{
    return (((x + UINT64_C(0x7676767676767676)) | x) & UINT64_C(0x8080808080808080)) == 0;
}

/* Digits only, 1 to 16. */
GAR_INLINE bool whole_number(const uint8_t *p, int64_t bytes, uint64_t *out)
{
    if (bytes <= 8) {
        const uint64_t x = (gar_load_u64(p) ^ ASCII_ZEROS) << (64 - 8 * bytes);
        *out = eight_digits(x);
        return are_digits(x);
    }
    const uint64_t high = (gar_load_u64(p) ^ ASCII_ZEROS) << (128 - 8 * bytes);
    const uint64_t low = gar_load_u64(p + bytes - 8) ^ ASCII_ZEROS;
    *out = eight_digits(high) * 100000000 + eight_digits(low);
    return are_digits(high) && are_digits(low);
}

/* The byte where the point is in p[0, bytes), or -1; bytes is 1 to 16. */
GAR_INLINE int64_t find_point(const uint8_t *p, int64_t bytes)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t low = gar_load_u64(p) ^ (ones * '.');
    const uint64_t low_zero = (low - ones) & ~low & (ones << 7);
    if (low_zero != 0) {
        const int64_t at = gar_ctz64(low_zero) >> 3;
        return at < bytes ? at : -1;
    }
    const uint64_t high = gar_load_u64(p + 8) ^ (ones * '.');
    const uint64_t high_zero = (high - ones) & ~high & (ones << 7);
    if (high_zero == 0) {
        return -1;
    }
    const int64_t at = 8 + (gar_ctz64(high_zero) >> 3);
    return at < bytes ? at : -1;
}

/* Digits with a point at `point`: the digits behind it move up by one place. */
GAR_INLINE bool pointed_number(const uint8_t *p, int64_t bytes, int64_t point, uint64_t *out)
{
    uint8_t digits[32];
    const gar_u128 text = (gar_u128)gar_load_u64(p) | (gar_u128)gar_load_u64(p + 8) << 64;
    const gar_u128 before = ((gar_u128)1 << (8 * point)) - 1;
    const gar_u128 joined = (text & before) | ((text >> 8) & ~before);
    if (bytes == 1) {
        return false;
    }
    memcpy(digits, &joined, sizeof joined);
    return whole_number(digits, bytes - 1, out);
}

struct number {
    int64_t value;
    uint8_t fraction; /* digits behind the point */
    bool is_pointed;
};

GAR_INLINE bool one_number(const struct csv_fields *f, int64_t row, struct number *out)
{
    const uint32_t start = f->before[row * f->stride] + 1;
    int64_t bytes = (int64_t)(uint32_t)(f->ends[row * f->stride] - start);
    const uint8_t *p = f->data + start;
    if (bytes < 1 || bytes > NUMBER_BYTES) {
        return false;
    }
    const bool is_negative = p[0] == '-';
    p += is_negative;
    bytes -= is_negative;
    if (bytes < 1) {
        return false;
    }
    uint64_t magnitude = 0;
    const int64_t point = find_point(p, bytes);
    out->is_pointed = point >= 0;
    out->fraction = (uint8_t)(point >= 0 ? bytes - 1 - point : 0);
    if (!(point >= 0 ? pointed_number(p, bytes, point, &magnitude)
                     : whole_number(p, bytes, &magnitude))) {
        return false;
    }
    out->value = is_negative ? -(int64_t)magnitude : (int64_t)magnitude;
    return !is_negative || magnitude != 0;
}

GAR_INLINE void put_bit(uint64_t *bits, int64_t i, bool value)
{
    const uint64_t bit = UINT64_C(1) << (i & 63);
    bits[i >> 6] = value ? bits[i >> 6] | bit : bits[i >> 6] & ~bit;
}

static const double powers_of_ten[16] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                         1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

/* A double holds a mantissa up to here and the power of ten exactly, so one division rounds right. */
#define DOUBLE_EXACT (INT64_C(1) << 53)

/* Rows [from, rows) of a vector, one by one. */
static void integers_portable(const struct csv_fields *f, int64_t row, int64_t from, int64_t rows,
                              int64_t *values, uint64_t *plain)
{
    for (int64_t i = from; i < rows; i++) {
        struct number n = {0};
        const bool is_plain = one_number(f, row + i, &n);
        values[i] = n.value;
        put_bit(plain, i, is_plain && !n.is_pointed);
    }
}

static void doubles_portable(const struct csv_fields *f, int64_t row, int64_t from, int64_t rows,
                             double *values, uint64_t *plain)
{
    for (int64_t i = from; i < rows; i++) {
        struct number n = {0};
        const bool is_plain = one_number(f, row + i, &n);
        values[i] = (double)n.value / powers_of_ten[n.fraction];
        put_bit(plain, i, is_plain && n.value <= DOUBLE_EXACT && n.value >= -DOUBLE_EXACT);
    }
}

static void decimals_portable(const struct csv_fields *f, int64_t row, int64_t from, int64_t rows,
                              const struct csv_decimal_rules *rules, uint8_t *values,
                              uint64_t *plain)
{
    for (int64_t i = from; i < rows; i++) {
        struct number n = {0};
        const bool is_plain = one_number(f, row + i, &n);
        const int64_t limit = rules->limit[n.fraction];
        const bool fits = is_plain && n.value <= limit && n.value >= -limit;
        const gar_i128 v = fits ? n.value * rules->factor[n.fraction] : 0;
        memcpy(values + i * (int64_t)sizeof v, &v, sizeof v);
        put_bit(plain, i, fits);
    }
}

GAR_INLINE bool one_date(const uint8_t *p, int32_t *out)
{
    const uint64_t x = gar_load_u64(p) ^ UINT64_C(0x2d30302d30303030); /* 0000-00- */
    const uint32_t y = (uint32_t)(p[8] ^ '0');
    const uint32_t z = (uint32_t)(p[9] ^ '0');
    if (!are_digits(x & UINT64_C(0x00ffff00ffffffff)) || (x & UINT64_C(0xff0000ff00000000)) != 0 ||
        y > 9 || z > 9) {
        return false;
    }
    const int32_t year = (int32_t)((x & 0xff) * 1000 + ((x >> 8) & 0xff) * 100 +
                                   ((x >> 16) & 0xff) * 10 + ((x >> 24) & 0xff));
    const int32_t month = (int32_t)(((x >> 40) & 0xff) * 10 + ((x >> 48) & 0xff));
    const int32_t day = (int32_t)(y * 10 + z);
    if (year < 1 || month < 1 || month > 12 || day < 1 ||
        (day > 28 && day > gar_days_in_month(year, month))) {
        return false;
    }
    const int32_t march_year = year - (month <= 2);
    const int32_t march_month = month <= 2 ? month + 9 : month - 3;
    *out = 365 * march_year + march_year / 4 - march_year / 100 + march_year / 400 +
           (153 * march_month + 2) / 5 + day - 719469;
    return true;
}

static void dates_portable(const struct csv_fields *f, int64_t row, int64_t from, int64_t rows,
                           int32_t *out_days, uint64_t *plain)
{
    for (int64_t i = from; i < rows; i++) {
        const uint32_t start = f->before[(row + i) * f->stride] + 1;
        put_bit(plain, i,
                f->ends[(row + i) * f->stride] - start == 10 &&
                    one_date(f->data + start, &out_days[i]));
    }
}

/* ---- AVX-512 ---- */

#if CSV_X86

#define AVX512  \
    GAR_TARGET( \
        "avx2,bmi,bmi2,popcnt,lzcnt,avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vbmi2")

/* Four fields, each right-aligned in a 128-bit lane. */
struct four {
    __m512i text;
    uint64_t there; /* bit per byte of a field */
    uint32_t fits;  /* bit per field of 1 to 16 bytes */
};

AVX512 GAR_INLINE __m128i load_16(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* The fields of rows `row`, `row + 2`, `row + 4`, `row + 6`. */
AVX512 GAR_INLINE struct four load_four(const struct csv_fields *f, int64_t row)
{
    const uint32_t *before = f->before + row * f->stride;
    const uint32_t *ends = f->ends + row * f->stride;
    const int64_t step = 2 * f->stride;
    const uint32_t e0 = ends[0];
    const uint32_t e1 = ends[step];
    const uint32_t e2 = ends[2 * step];
    const uint32_t e3 = ends[3 * step];
    /* The length less one: empty fields wrap to 2^32 - 1. */
    const uint32_t n0 = e0 - before[0] - 2;
    const uint32_t n1 = e1 - before[step] - 2;
    const uint32_t n2 = e2 - before[2 * step] - 2;
    const uint32_t n3 = e3 - before[3 * step] - 2;
    const uint8_t *d = f->data - NUMBER_BYTES;
    __m512i v = _mm512_castsi128_si512(load_16(d + e0));
    v = _mm512_inserti32x4(v, load_16(d + e1), 1);
    v = _mm512_inserti32x4(v, load_16(d + e2), 2);
    v = _mm512_inserti32x4(v, load_16(d + e3), 3);
    struct four four;
    four.text = v;
    four.fits = (uint32_t)(n0 < NUMBER_BYTES) | (uint32_t)(n1 < NUMBER_BYTES) << 1 |
                (uint32_t)(n2 < NUMBER_BYTES) << 2 | (uint32_t)(n3 < NUMBER_BYTES) << 3;
    const uint64_t m0 = (0x7fffu >> (n0 & 15)) ^ 0xffffu;
    const uint64_t m1 = (0x7fffu >> (n1 & 15)) ^ 0xffffu;
    const uint64_t m2 = (0x7fffu >> (n2 & 15)) ^ 0xffffu;
    const uint64_t m3 = (0x7fffu >> (n3 & 15)) ^ 0xffffu;
    four.there = m0 | m1 << 16 | m2 << 32 | m3 << 48;
    return four;
}

/* Digits without point as bytes 0..9, and per field (one bit each of four): is it good, negative, pointed. */
struct four_digits {
    __m512i digits;
    uint32_t good;
    uint32_t negative;
    uint32_t pointed;
    __m128i dots; /* words: one bit where the point is */
};

AVX512 GAR_INLINE struct four_digits digits_of(const struct four *four)
{
    const __m512i ascii = _mm512_sub_epi8(four->text, _mm512_set1_epi8('0'));
    const uint64_t there = four->there;
    const uint64_t digit = _mm512_mask_cmple_epu8_mask(there, ascii, _mm512_set1_epi8(9));
    const uint64_t dot = _mm512_mask_cmpeq_epi8_mask(there, four->text, _mm512_set1_epi8('.'));
    const uint64_t first = there & ~(there << 1);
    const uint64_t minus = _mm512_mask_cmpeq_epi8_mask(first, four->text, _mm512_set1_epi8('-'));
    const uint64_t bad = there ^ (digit | dot | minus);

    const __m128i dots = _mm_cvtsi64_si128((int64_t)dot);
    const __m128i below = _mm_sub_epi16(dots, _mm_set1_epi16(1));
    const __mmask8 dotted = _mm_test_epi16_mask(dots, dots);
    const __mmask8 dotted_twice = _mm_mask_test_epi16_mask(dotted, dots, below);
    const uint64_t up_to_dot =
        (uint64_t)_mm_cvtsi128_si64(_mm_maskz_mov_epi16(dotted, _mm_xor_si128(dots, below)));
    const __mmask8 has_digit =
        _mm_test_epi16_mask(_mm_cvtsi64_si128((int64_t)digit), _mm_set1_epi16(-1));
    const __m128i bads = _mm_cvtsi64_si128((int64_t)bad);
    const __mmask8 has_bad = _mm_test_epi16_mask(bads, bads);
    const __m128i minuses = _mm_cvtsi64_si128((int64_t)minus);

    struct four_digits out;
    const __m512i values = _mm512_maskz_mov_epi8(digit, ascii);
    out.digits = _mm512_mask_mov_epi8(values, up_to_dot, _mm512_bslli_epi128(values, 1));
    out.good = four->fits & has_digit & ~(uint32_t)has_bad & ~(uint32_t)dotted_twice & 15;
    out.negative = (uint32_t)_mm_test_epi16_mask(minuses, minuses) & 15;
    out.pointed = dotted;
    out.dots = dots;
    return out;
}

/* Digits behind the point, 0 without one: the place of the point is the exponent of its bit taken as a float. */
AVX512 GAR_INLINE __m128i fraction_of(const struct four_digits *d)
{
    const __m128i exponent =
        _mm_srli_epi32(_mm_castps_si128(_mm_cvtepi32_ps(_mm_cvtepu16_epi32(d->dots))), 23);
    return _mm_maskz_sub_epi32((__mmask8)d->pointed, _mm_set1_epi32(127 + 15), exponent);
}

/* Eight numbers in row order. */
struct eight {
    __m512i values; /* signed */
    __mmask8 good;
    __mmask8 pointed;
};

/* Bits of four even and four odd rows as eight. */
AVX512 GAR_INLINE __mmask8 interleave(uint32_t even, uint32_t odd)
{
    return (__mmask8)(_pdep_u32(even, 0x55) | _pdep_u32(odd, 0xaa));
}

AVX512 GAR_INLINE struct eight eight_numbers(const struct csv_fields *f, int64_t row,
                                             struct four_digits *even, struct four_digits *odd)
{
    const __m512i tens = _mm512_set1_epi16(0x010a);
    const __m512i hundreds = _mm512_set1_epi32(0x00010064);
    const __m512i ten_thousands = _mm512_set1_epi32(0x00012710);
    const __m512i hundred_millions = _mm512_set1_epi64(100000000);
    const struct four even_text = load_four(f, row);
    const struct four odd_text = load_four(f, row + 1);
    *even = digits_of(&even_text);
    *odd = digits_of(&odd_text);
    const __m512i e = _mm512_madd_epi16(_mm512_maddubs_epi16(even->digits, tens), hundreds);
    const __m512i o = _mm512_madd_epi16(_mm512_maddubs_epi16(odd->digits, tens), hundreds);
    const __m512i both = _mm512_madd_epi16(_mm512_packus_epi32(e, o), ten_thousands);
    const __m512i value =
        _mm512_add_epi64(_mm512_mul_epu32(both, hundred_millions), _mm512_srli_epi64(both, 32));
    const __mmask8 negative = interleave(even->negative, odd->negative);
    struct eight out;
    out.values = _mm512_mask_sub_epi64(value, negative, _mm512_setzero_si512(), value);
    out.good = interleave(even->good, odd->good) &
               (__mmask8)(~negative | _mm512_test_epi64_mask(value, value));
    out.pointed = interleave(even->pointed, odd->pointed);
    return out;
}

/* Digits behind the point of eight numbers, as quadwords. */
AVX512 GAR_INLINE __m512i eight_fractions(const struct four_digits *even,
                                          const struct four_digits *odd)
{
    const __m256i e = _mm256_cvtepu32_epi64(fraction_of(even));
    const __m256i o = _mm256_cvtepu32_epi64(fraction_of(odd));
    const __m256i low = _mm256_unpacklo_epi64(e, o);  /* 0 1, 4 5 */
    const __m256i high = _mm256_unpackhi_epi64(e, o); /* 2 3, 6 7 */
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_permute2x128_si256(low, high, 0x20)),
                              _mm256_permute2x128_si256(low, high, 0x31), 1);
}

/* Entry number fraction (0..15) of a table of sixteen quadwords. */
AVX512 GAR_INLINE __m512i table_of(const void *table, __m512i fraction)
{
    return _mm512_permutex2var_epi64(_mm512_load_si512(table), fraction,
                                     _mm512_load_si512((const uint8_t *)table + 64));
}

AVX512 static void integers_avx512(const struct csv_fields *f, int64_t row, int64_t rows,
                                   int64_t *values, uint64_t *plain)
{
    int64_t i = 0;
    memset(plain, 0, CSV_VECTOR_ROWS / 8);
    for (; i + 8 <= rows; i += 8) {
        struct four_digits even;
        struct four_digits odd;
        const struct eight n = eight_numbers(f, row + i, &even, &odd);
        _mm512_storeu_si512(values + i, n.values);
        plain[i >> 6] |= (uint64_t)(uint8_t)(n.good & ~n.pointed) << (i & 63);
    }
    integers_portable(f, row, i, rows, values, plain);
}

AVX512 static void doubles_avx512(const struct csv_fields *f, int64_t row, int64_t rows,
                                  double *values, uint64_t *plain)
{
    GAR_ALIGNED(64) double powers[16];
    int64_t i = 0;
    memcpy(powers, powers_of_ten, sizeof powers);
    memset(plain, 0, CSV_VECTOR_ROWS / 8);
    for (; i + 8 <= rows; i += 8) {
        struct four_digits even;
        struct four_digits odd;
        const struct eight n = eight_numbers(f, row + i, &even, &odd);
        const __m512i power = table_of(powers, eight_fractions(&even, &odd));
        const __mmask8 exact =
            _mm512_cmple_epi64_mask(_mm512_abs_epi64(n.values), _mm512_set1_epi64(DOUBLE_EXACT));
        _mm512_storeu_pd(values + i,
                         _mm512_div_pd(_mm512_cvtepi64_pd(n.values), _mm512_castsi512_pd(power)));
        plain[i >> 6] |= (uint64_t)(uint8_t)(n.good & exact) << (i & 63);
    }
    doubles_portable(f, row, i, rows, values, plain);
}

AVX512 static void decimals_avx512(const struct csv_fields *f, int64_t row, int64_t rows,
                                   const struct csv_decimal_rules *rules, uint8_t *values,
                                   uint64_t *plain)
{
    const __m512i first = _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0);
    const __m512i second = _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4);
    int64_t i = 0;
    memset(plain, 0, CSV_VECTOR_ROWS / 8);
    for (; i + 8 <= rows; i += 8) {
        struct four_digits even;
        struct four_digits odd;
        const struct eight n = eight_numbers(f, row + i, &even, &odd);
        const __m512i fraction = eight_fractions(&even, &odd);
        const __mmask8 fits = n.good & _mm512_cmple_epi64_mask(_mm512_abs_epi64(n.values),
                                                               table_of(rules->limit, fraction));
        const __m512i low =
            _mm512_maskz_mullo_epi64(fits, n.values, table_of(rules->factor, fraction));
        const __m512i high = _mm512_srai_epi64(low, 63);
        _mm512_storeu_si512(values + i * 16, _mm512_permutex2var_epi64(low, first, high));
        _mm512_storeu_si512(values + i * 16 + 64, _mm512_permutex2var_epi64(low, second, high));
        plain[i >> 6] |= (uint64_t)(uint8_t)fits << (i & 63);
    }
    decimals_portable(f, row, i, rows, rules, values, plain);
}

/* Four dates of ten bytes, in rows row, row + 2, ...: dwords year and month << 8 | day in each lane. */
AVX512 GAR_INLINE __m512i four_dates(const struct csv_fields *f, int64_t row, uint32_t *good)
{
    const uint32_t *before = f->before + row * f->stride;
    const uint32_t *ends = f->ends + row * f->stride;
    const int64_t step = 2 * f->stride;
    const uint32_t b0 = before[0];
    const uint32_t b1 = before[step];
    const uint32_t b2 = before[2 * step];
    const uint32_t b3 = before[3 * step];
    const uint32_t ten = (uint32_t)(ends[0] - b0 == 11) | (uint32_t)(ends[step] - b1 == 11) << 1 |
                         (uint32_t)(ends[2 * step] - b2 == 11) << 2 |
                         (uint32_t)(ends[3 * step] - b3 == 11) << 3;
    const uint8_t *d = f->data;
    /* The field of row 0 starts at 0: before is 2^32 - 1 and the sum wraps. */
    __m512i v = _mm512_castsi128_si512(load_16(d + (uint32_t)(b0 + 1)));
    v = _mm512_inserti32x4(v, load_16(d + (uint32_t)(b1 + 1)), 1);
    v = _mm512_inserti32x4(v, load_16(d + (uint32_t)(b2 + 1)), 2);
    v = _mm512_inserti32x4(v, load_16(d + (uint32_t)(b3 + 1)), 3);
    const __m512i order =
        _mm512_broadcast_i32x4(_mm_set_epi8(-1, -1, -1, -1, -1, -1, 7, 4, 9, 8, 6, 5, 3, 2, 1, 0));
    const __m512i x = _mm512_shuffle_epi8(_mm512_sub_epi8(v, _mm512_set1_epi8('0')), order);
    const uint64_t digits_bad =
        _mm512_mask_cmpgt_epu8_mask(UINT64_C(0x00ff00ff00ff00ff), x, _mm512_set1_epi8(9));
    const uint64_t dashes_bad =
        _mm512_mask_cmpneq_epi8_mask(UINT64_C(0x0300030003000300), x, _mm512_set1_epi8('-' - '0'));
    const __m128i bads = _mm_cvtsi64_si128((int64_t)(digits_bad | dashes_bad));
    *good = ten & ~(uint32_t)_mm_test_epi16_mask(bads, bads) & 15;
    const __m512i pairs = _mm512_maddubs_epi16(
        _mm512_maskz_mov_epi8(UINT64_C(0x00ff00ff00ff00ff), x), _mm512_set1_epi16(0x010a));
    return _mm512_madd_epi16(pairs, _mm512_set1_epi64(INT64_C(0x0001010000010064)));
}

AVX512 static void dates_avx512(const struct csv_fields *f, int64_t row, int64_t rows,
                                int32_t *out_days, uint64_t *plain)
{
    /* By month 0..15: days before it in a year that starts in March; days it has for sure. */
    const __m512i before_month =
        _mm512_set_epi32(0, 0, 0, 275, 245, 214, 184, 153, 122, 92, 61, 31, 0, 337, 306, 0);
    const __m512i month_days =
        _mm512_set_epi32(0, 0, 0, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 28, 31, 0);
    const __m256i one = _mm256_set1_epi32(1);
    memset(plain, 0, CSV_VECTOR_ROWS / 8);
    int64_t i = 0;
    for (; i + 8 <= rows; i += 8) {
        uint32_t even_good;
        uint32_t odd_good;
        const __m512i even = four_dates(f, row + i, &even_good);
        const __m512i odd = four_dates(f, row + i + 1, &odd_good);
        const __m512i both = _mm512_unpacklo_epi64(even, odd);
        const __m256i year = _mm512_cvtepi64_epi32(both);
        const __m256i month_day = _mm512_cvtepi64_epi32(_mm512_srli_epi64(both, 32));
        const __m256i month = _mm256_srli_epi32(month_day, 8);
        const __m256i day = _mm256_and_si256(month_day, _mm256_set1_epi32(255));
        const __m512i wide_month = _mm512_castsi256_si512(month);
        const __m256i offset =
            _mm512_castsi512_si256(_mm512_permutexvar_epi32(wide_month, before_month));
        const __m256i last =
            _mm512_castsi512_si256(_mm512_permutexvar_epi32(wide_month, month_days));
        const __mmask8 good_day =
            _mm256_cmple_epu32_mask(_mm256_sub_epi32(day, one), _mm256_sub_epi32(last, one)) &
            _mm256_cmple_epu32_mask(month, _mm256_set1_epi32(12)) &
            _mm256_test_epi32_mask(month, month) & _mm256_test_epi32_mask(day, day);
        const __m256i y = _mm256_sub_epi32(
            year,
            _mm256_maskz_mov_epi32(_mm256_cmple_epu32_mask(month, _mm256_set1_epi32(2)), one));
        const __m256i centuries =
            _mm256_srli_epi32(_mm256_mullo_epi32(y, _mm256_set1_epi32(5243)), 19);
        __m256i days = _mm256_mullo_epi32(y, _mm256_set1_epi32(365));
        days = _mm256_add_epi32(days, _mm256_srli_epi32(y, 2));
        days = _mm256_sub_epi32(days, centuries);
        days = _mm256_add_epi32(days, _mm256_srli_epi32(centuries, 2));
        days = _mm256_add_epi32(days, _mm256_add_epi32(offset, day));
        days = _mm256_sub_epi32(days, _mm256_set1_epi32(719469));
        _mm256_storeu_si256((__m256i *)(void *)(out_days + i), days);
        const uint64_t good = (_pdep_u64(even_good, 0x55) | _pdep_u64(odd_good, 0xaa)) & good_day &
                              _mm256_test_epi32_mask(year, year);
        plain[i >> 6] |= good << (i & 63);
    }
    dates_portable(f, row, i, rows, out_days, plain);
}

#endif

/* ---- choice ---- */

#if CSV_X86
#define CHOOSE(NAME, ...)                                       \
    do {                                                        \
        if (gar_cpu_isa() == GAR_ISA_AVX512) {                  \
            NAME##_avx512(fields, row, rows, __VA_ARGS__);      \
        } else {                                                \
            NAME##_portable(fields, row, 0, rows, __VA_ARGS__); \
        }                                                       \
    } while (0)
#else
#define CHOOSE(NAME, ...) NAME##_portable(fields, row, 0, rows, __VA_ARGS__)
#endif

void csv_parse_integers(const struct csv_fields *fields, int64_t row, int64_t rows, int64_t *values,
                        uint64_t *plain)
{
    CHOOSE(integers, values, plain);
}

void csv_parse_doubles(const struct csv_fields *fields, int64_t row, int64_t rows, double *values,
                       uint64_t *plain)
{
    CHOOSE(doubles, values, plain);
}

void csv_parse_decimals(const struct csv_fields *fields, int64_t row, int64_t rows,
                        const struct csv_decimal_rules *rules, uint8_t *values, uint64_t *plain)
{
    CHOOSE(decimals, rules, values, plain);
}

void csv_parse_dates(const struct csv_fields *fields, int64_t row, int64_t rows, int32_t *out_days,
                     uint64_t *plain)
{
    CHOOSE(dates, out_days, plain);
}
