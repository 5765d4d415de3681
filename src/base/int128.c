/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of decimals. Rounding is half away from zero everywhere, on the exact value. */
#include "base/int128.h"

#include <math.h>

#include "base/number_text.h"

#define P19 ((gar_i128)INT64_C(1000000000000000000) * 10)

static const int64_t pow10_i64[19] = {
    INT64_C(1),
    INT64_C(10),
    INT64_C(100),
    INT64_C(1000),
    INT64_C(10000),
    INT64_C(100000),
    INT64_C(1000000),
    INT64_C(10000000),
    INT64_C(100000000),
    INT64_C(1000000000),
    INT64_C(10000000000),
    INT64_C(100000000000),
    INT64_C(1000000000000),
    INT64_C(10000000000000),
    INT64_C(100000000000000),
    INT64_C(1000000000000000),
    INT64_C(10000000000000000),
    INT64_C(100000000000000000),
    INT64_C(1000000000000000000),
};

gar_i128 gar_pow10_i128(int32_t n)
{
    if (n <= 18) {
        return pow10_i64[n];
    }
    return n <= 37 ? P19 * pow10_i64[n - 19] : P19 * pow10_i64[18] * 10;
}

int64_t gar_pow10_i64(int32_t n)
{
    return pow10_i64[n];
}

static gar_u128 magnitude(gar_i128 x)
{
    return x < 0 ? -(gar_u128)x : (gar_u128)x;
}

bool gar_decimal_fits(gar_i128 x, int32_t precision)
{
    return magnitude(x) < (gar_u128)gar_pow10_i128(precision);
}

/* m / 10^by rounded half up; by > 0. No 128-bit number reaches half of 10^39. */
static gar_u128 divide_rounded(gar_u128 m, int64_t by)
{
    if (by > GAR_DECIMAL_PRECISION_MAX) {
        return 0;
    }
    if (by <= 18 && m <= UINT64_MAX) {
        const uint64_t d = (uint64_t)pow10_i64[by];
        return (uint64_t)m / d + ((uint64_t)m % d >= d / 2);
    }
    const gar_u128 d = (gar_u128)gar_pow10_i128((int32_t)by);
    const gar_u128 q = m / d;
    return q + (m - q * d >= d / 2);
}

bool gar_decimal_rescale(gar_i128 x, int32_t by, gar_i128 *out)
{
    if (by >= 0) {
        gar_i128 r = 0;
        if (x != 0 &&
            (by > GAR_DECIMAL_PRECISION_MAX || __builtin_mul_overflow(x, gar_pow10_i128(by), &r) ||
             !gar_decimal_fits(r, GAR_DECIMAL_PRECISION_MAX))) {
            return false;
        }
        *out = r;
        return true;
    }
    const gar_u128 q = divide_rounded(magnitude(x), -(int64_t)by);
    *out = x < 0 ? -(gar_i128)q : (gar_i128)q;
    return gar_decimal_fits(*out, GAR_DECIMAL_PRECISION_MAX);
}

/* A number as text takes it apart: value = digits (then next_digit, then more) * 10^exponent. */
struct parts {
    gar_u128 digits;    /* the first 38 significant digits */
    int32_t next_digit; /* the 39th */
    bool has_more;      /* a non-zero digit after the 38th */
    int64_t exponent;
    bool is_negative;
};

/* Digits from p up to the exponent; false if there are none. *p moves behind them. */
static bool read_digits(const char **p, const char *end, struct parts *parts)
{
    int64_t significant = 0;
    bool has_digit = false;
    bool has_point = false;
    const char *q = *p;
    for (; q < end; q++) {
        if (*q == '.' && !has_point) {
            has_point = true;
            continue;
        }
        const uint32_t digit = (uint32_t)(unsigned char)*q - '0';
        if (digit > 9) {
            break;
        }
        has_digit = true;
        if (significant == 0 && digit == 0) {
            parts->exponent -= has_point;
        } else if (significant < GAR_DECIMAL_PRECISION_MAX) {
            parts->digits = significant < 18 ? (gar_u128)((uint64_t)parts->digits * 10 + digit)
                                             : parts->digits * 10 + digit;
            parts->exponent -= has_point;
            significant++;
        } else {
            if (significant++ == GAR_DECIMAL_PRECISION_MAX) {
                parts->next_digit = (int32_t)digit;
            }
            parts->has_more |= digit != 0;
            parts->exponent += !has_point;
        }
    }
    *p = q;
    return has_digit;
}

static bool read_number(const char *text, int64_t bytes, struct parts *parts)
{
    const char *p = text;
    const char *end = text + bytes;
    if (p < end && (*p == '-' || *p == '+')) {
        parts->is_negative = *p++ == '-';
    }
    if (!read_digits(&p, end, parts)) {
        return false;
    }
    if (p == end) {
        return true;
    }
    if (*p != 'e' && *p != 'E') {
        return false;
    }
    p++;
    const bool is_negative = p < end && *p == '-';
    p += p < end && (*p == '-' || *p == '+');
    if (p == end) {
        return false;
    }
    int64_t exponent = 0;
    for (; p < end; p++) {
        const uint32_t digit = (uint32_t)(unsigned char)*p - '0';
        if (digit > 9) {
            return false;
        }
        /* The cap is beyond what any number of digits in memory could make up for. */
        exponent = gar_min_i64(exponent * 10 + digit, INT64_MAX / 32);
    }
    parts->exponent += is_negative ? -exponent : exponent;
    return true;
}

enum gar_status gar_decimal_parse(const char *text, int64_t bytes, int32_t precision, int32_t scale,
                                  bool round, gar_i128 *out)
{
    struct parts parts = {0};
    if (!read_number(text, bytes, &parts)) {
        return GAR_ERR_VALUE;
    }
    if (parts.digits == 0) {
        *out = 0;
        return GAR_OK;
    }
    const int64_t shift = parts.exponent + scale;
    gar_u128 m = parts.digits;
    if (shift > 0) {
        if (shift > GAR_DECIMAL_PRECISION_MAX || parts.has_more ||
            __builtin_mul_overflow(m, (gar_u128)gar_pow10_i128((int32_t)shift), &m)) {
            return GAR_ERR_OVERFLOW;
        }
    } else {
        bool is_exact = !parts.has_more;
        if (shift == 0) {
            m += parts.next_digit >= 5;
        } else {
            const gar_u128 whole = m;
            m = divide_rounded(whole, -shift);
            is_exact = is_exact && shift >= -GAR_DECIMAL_PRECISION_MAX &&
                       whole % (gar_u128)gar_pow10_i128((int32_t)-shift) == 0;
        }
        if (!is_exact && !round) {
            return GAR_ERR_VALUE;
        }
    }
    if (m >= (gar_u128)gar_pow10_i128(precision)) {
        return GAR_ERR_OVERFLOW;
    }
    *out = parts.is_negative ? -(gar_i128)m : (gar_i128)m;
    return GAR_OK;
}

int32_t gar_decimal_format(gar_i128 x, int32_t scale, char *out)
{
    char reversed[48];
    int32_t n = 0;
    gar_u128 m = magnitude(x);
    while (m > UINT64_MAX) {
        reversed[n++] = (char)('0' + (int)(m % 10));
        m /= 10;
    }
    uint64_t low = (uint64_t)m;
    while (low != 0 || n <= scale) { /* at least one digit before the point */
        reversed[n++] = (char)('0' + low % 10);
        low /= 10;
    }
    int32_t used = 0;
    if (x < 0) {
        out[used++] = '-';
    }
    for (int32_t i = n - 1; i >= 0; i--) {
        out[used++] = reversed[i];
        if (i == scale && scale > 0) {
            out[used++] = '.';
        }
    }
    return used;
}

double gar_decimal_to_double(gar_i128 x, int32_t scale)
{
    static const double exact_pow10[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                           1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                           1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    /* One correctly rounded division of two exact doubles is the nearest double. */
    if (magnitude(x) <= (gar_u128)1 << 53 && scale <= 22) {
        return (double)(int64_t)x / exact_pow10[scale];
    }
    char text[48];
    double v = 0;
    if (!gar_parse_double(text, gar_decimal_format(x, scale, text), &v)) {
        return (double)NAN; /* cannot happen: the text is a number */
    }
    return v;
}

/* m * 5^scale in 192 bits: *high * 2^128 + result. */
static gar_u128 times_pow5(uint64_t m, int32_t scale, uint64_t *high)
{
    gar_u128 factor = 1; /* 5^38 takes 89 bits */
    for (int32_t i = 0; i < scale; i++) {
        factor *= 5;
    }
    const gar_u128 low = (gar_u128)m * (uint64_t)factor;
    const gar_u128 mid = (gar_u128)m * (uint64_t)(factor >> 64);
    const gar_u128 sum = low + (mid << 64);
    *high = (uint64_t)(mid >> 64) + (sum < low);
    return sum;
}

bool gar_decimal_from_double(double v, int32_t precision, int32_t scale, gar_i128 *out)
{
    if (!isfinite(v)) {
        return false;
    }
    int exponent = 0;
    const double fraction = frexp(fabs(v), &exponent);
    const uint64_t m = (uint64_t)ldexp(fraction, 53); /* |v| = m * 2^(exponent - 53) */
    if (m == 0) {
        *out = 0;
        return true;
    }
    /* |v| * 10^scale = m * 5^scale * 2^shift */
    const int32_t shift = exponent - 53 + scale;
    uint64_t high = 0;
    gar_u128 p = times_pow5(m, scale, &high);
    if (shift >= 0) {
        if (high != 0 || shift >= 128 || (shift > 0 && p >> (128 - shift) != 0)) {
            return false;
        }
        p <<= shift;
    } else {
        const int32_t right = -shift;
        bool half = false; /* the first bit that is shifted out */
        if (right > 192) {
            p = 0;
            high = 0;
        } else if (right > 128) {
            half = (high >> (right - 129)) & 1;
            p = right == 192 ? 0 : high >> (right - 128);
            high = 0;
        } else if (right == 128) {
            half = (p >> 127) & 1;
            p = high;
            high = 0;
        } else {
            half = (p >> (right - 1)) & 1;
            p = p >> right | (gar_u128)high << (128 - right);
            high = right >= 64 ? 0 : high >> right;
        }
        if (high != 0) {
            return false;
        }
        p += half;
    }
    if (p >= (gar_u128)gar_pow10_i128(precision)) {
        return false;
    }
    *out = v < 0 ? -(gar_i128)p : (gar_i128)p;
    return true;
}
