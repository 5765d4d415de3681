/* SPDX-License-Identifier: Apache-2.0 */
/* Integers by hand, floats by <charconv>. What the library leaves out is added here: a leading plus, infinity and
 * zero for what is out of range, and refusal of "nan(text)". */
#include "base/number_text.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/bits.h"
#include "base/charconv_shim_priv.h"

/* ---- integers ---- */

/* True if the eight bytes are all digits. */
GAR_INLINE bool is_eight_digits(uint64_t w)
{
    return ((w & UINT64_C(0xf0f0f0f0f0f0f0f0)) |
            (((w + UINT64_C(0x0606060606060606)) & UINT64_C(0xf0f0f0f0f0f0f0f0)) >> 4)) ==
           UINT64_C(0x3333333333333333);
}

/* The value of eight digits, first digit in the low byte: pairs, then fours, then eight. */
GAR_INLINE uint64_t eight_digits(uint64_t w)
{
    w = (w & UINT64_C(0x0f0f0f0f0f0f0f0f)) * 2561 >> 8;
    w = (w & UINT64_C(0x00ff00ff00ff00ff)) * 6553601 >> 16;
    return (w & UINT64_C(0x0000ffff0000ffff)) * UINT64_C(42949672960001) >> 32;
}

/* Digits to a magnitude. GAR_ERR_OVERFLOW beyond uint64, GAR_ERR_VALUE for anything but digits. */
static enum gar_status parse_magnitude(const char *p, const char *end, uint64_t *out)
{
    if (p == end) {
        return GAR_ERR_VALUE;
    }
    uint64_t value = 0;
    bool has_overflow = false;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (end - p >= 8 && is_eight_digits(gar_load_u64(p))) {
        value = eight_digits(gar_load_u64(p));
        p += 8;
        if (end - p >= 8 && is_eight_digits(gar_load_u64(p))) {
            value = value * 100000000 + eight_digits(gar_load_u64(p));
            p += 8;
        }
    }
#endif
    for (; p < end; p++) {
        const uint64_t digit = (uint64_t)(unsigned char)*p - '0';
        if (digit > 9) {
            return GAR_ERR_VALUE;
        }
        has_overflow |= __builtin_mul_overflow(value, (uint64_t)10, &value);
        has_overflow |= __builtin_add_overflow(value, digit, &value);
    }
    *out = value;
    return has_overflow ? GAR_ERR_OVERFLOW : GAR_OK;
}

enum gar_status gar_parse_i64(const char *text, int64_t bytes, int64_t *out)
{
    const char *p = text;
    const char *end = text + bytes;
    const bool is_negative = bytes > 0 && *p == '-';
    p += bytes > 0 && (*p == '-' || *p == '+');
    uint64_t magnitude = 0;
    const enum gar_status status = parse_magnitude(p, end, &magnitude);
    if (status != GAR_OK) {
        return status;
    }
    if (magnitude > (uint64_t)INT64_MAX + is_negative) {
        return GAR_ERR_OVERFLOW;
    }
    *out = (int64_t)(is_negative ? 0 - magnitude : magnitude);
    return GAR_OK;
}

enum gar_status gar_parse_u64(const char *text, int64_t bytes, uint64_t *out)
{
    const char *p = text;
    const char *end = text + bytes;
    const bool is_negative = bytes > 0 && *p == '-';
    p += bytes > 0 && (*p == '-' || *p == '+');
    uint64_t magnitude = 0;
    const enum gar_status status = parse_magnitude(p, end, &magnitude);
    if (status != GAR_OK) {
        return status;
    }
    if (is_negative && magnitude != 0) {
        return GAR_ERR_OVERFLOW;
    }
    *out = magnitude;
    return GAR_OK;
}

int32_t gar_format_u64(uint64_t v, char *out)
{
    char reversed[24];
    int32_t n = 0;
    while (v >= 100) {
        const uint32_t pair = (uint32_t)(v % 100);
        v /= 100;
        reversed[n++] = (char)('0' + pair % 10);
        reversed[n++] = (char)('0' + pair / 10);
    }
    reversed[n++] = (char)('0' + v % 10);
    if (v >= 10) {
        reversed[n++] = (char)('0' + v / 10);
    }
    for (int32_t i = 0; i < n; i++) {
        out[i] = reversed[n - 1 - i];
    }
    return n;
}

int32_t gar_format_i64(int64_t v, char *out)
{
    if (v >= 0) {
        return gar_format_u64((uint64_t)v, out);
    }
    out[0] = '-';
    return 1 + gar_format_u64(0 - (uint64_t)v, out + 1);
}

/* ---- floats ---- */

/* "inf", "infinity" and "nan" in any case. */
static bool parse_word(const char *text, int64_t bytes, double *out)
{
    if (bytes == 3 && strncasecmp(text, "nan", 3) == 0) {
        *out = (double)NAN;
        return true;
    }
    if ((bytes == 3 && strncasecmp(text, "inf", 3) == 0) ||
        (bytes == 8 && strncasecmp(text, "infinity", 8) == 0)) {
        *out = (double)INFINITY;
        return true;
    }
    return false;
}

/* Whether a number that fits no double or float is too large, rather than too small: the decimal exponent of its
 * first non-zero digit tells. */
static bool is_huge(const char *text, int64_t bytes)
{
    int64_t point = -1;       /* index of the digit after the point, counted in digits */
    int64_t first_digit = -1; /* index of the first non-zero digit, counted in digits */
    int64_t digits = 0;
    int64_t i = 0;
    for (; i < bytes && text[i] != 'e' && text[i] != 'E'; i++) {
        if (text[i] == '.') {
            point = digits;
        } else {
            if (first_digit < 0 && text[i] != '0') {
                first_digit = digits;
            }
            digits++;
        }
    }
    int64_t exponent = 0;
    if (i < bytes) {
        const bool is_negative = i + 1 < bytes && text[i + 1] == '-';
        for (i++; i < bytes; i++) {
            if (text[i] >= '0' && text[i] <= '9' && exponent < INT64_MAX / 100) {
                exponent = exponent * 10 + (text[i] - '0');
            }
        }
        exponent = is_negative ? -exponent : exponent;
    }
    return exponent + (point < 0 ? digits : point) - first_digit > 0;
}

/* Strip a sign; true when what is left begins like a number. */
static bool strip_sign(const char **text, int64_t *bytes, bool *is_negative)
{
    *is_negative = *bytes > 0 && **text == '-';
    if (*bytes > 0 && (**text == '-' || **text == '+')) {
        ++*text;
        --*bytes;
    }
    return *bytes > 0 && ((**text >= '0' && **text <= '9') || **text == '.');
}

bool gar_parse_double(const char *text, int64_t bytes, double *out)
{
    bool is_negative = false;
    double value = 0;
    if (!strip_sign(&text, &bytes, &is_negative)) {
        if (!parse_word(text, bytes, &value)) {
            return false;
        }
    } else {
        switch (gar_charconv_parse_double(text, bytes, &value)) {
        case GAR_CHARCONV_OK: break;
        case GAR_CHARCONV_INVALID: return false;
        case GAR_CHARCONV_OUT_OF_RANGE:
            value = is_huge(text, bytes) ? (double)INFINITY : 0.0;
            break;
        }
    }
    *out = is_negative ? -value : value;
    return true;
}

bool gar_parse_float(const char *text, int64_t bytes, float *out)
{
    bool is_negative = false;
    float value = 0;
    if (!strip_sign(&text, &bytes, &is_negative)) {
        double word = 0;
        if (!parse_word(text, bytes, &word)) {
            return false;
        }
        value = (float)word;
    } else {
        switch (gar_charconv_parse_float(text, bytes, &value)) {
        case GAR_CHARCONV_OK: break;
        case GAR_CHARCONV_INVALID: return false;
        case GAR_CHARCONV_OUT_OF_RANGE: value = is_huge(text, bytes) ? INFINITY : 0.0f; break;
        }
    }
    *out = is_negative ? -value : value;
    return true;
}

/* Words for what has no digits; 0 when v is finite. */
static int32_t format_special(double v, char *out)
{
    if (isnan(v)) {
        memcpy(out, "nan", 3);
        return 3;
    }
    if (isinf(v)) {
        memcpy(out, v < 0 ? "-inf" : "inf", v < 0 ? 4 : 3);
        return v < 0 ? 4 : 3;
    }
    return 0;
}

/* From 1e-4 up to 1e16 without exponent, as people write numbers. */
static bool needs_exponent(double v)
{
    const double a = fabs(v);
    return a != 0 && (a < 1e-4 || a >= 1e16);
}

static int32_t add_point(char *out, int32_t n)
{
    if (memchr(out, '.', (size_t)n) == NULL && memchr(out, 'e', (size_t)n) == NULL) {
        out[n++] = '.';
        out[n++] = '0';
    }
    return n;
}

int32_t gar_format_double(double v, char *out)
{
    const int32_t n = format_special(v, out);
    return n != 0 ? n : add_point(out, gar_charconv_format_double(v, needs_exponent(v), out, 38));
}

int32_t gar_format_float(float v, char *out)
{
    const int32_t n = format_special((double)v, out);
    return n != 0
               ? n
               : add_point(out, gar_charconv_format_float(v, needs_exponent((double)v), out, 38));
}
