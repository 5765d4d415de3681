/* SPDX-License-Identifier: Apache-2.0 */
/* 128-bit integers and the arithmetic of decimals: value = unscaled / 10^scale. */
#ifndef GAR_BASE_INT128_H
#define GAR_BASE_INT128_H

#include "base/attrs.h"
#include "base/error.h"

__extension__ typedef __int128 gar_i128;
__extension__ typedef unsigned __int128 gar_u128;

#define GAR_DECIMAL_PRECISION_MAX 38
/* Up to this precision an unscaled value fits in int64_t. */
#define GAR_DECIMAL64_PRECISION_MAX 18

/* 10^n for n in 0..38. */
gar_i128 gar_pow10_i128(int32_t n);
/* 10^n for n in 0..18. */
int64_t gar_pow10_i64(int32_t n);

/* True if |x| < 10^precision. */
bool gar_decimal_fits(gar_i128 x, int32_t precision);
/* x * 10^by (by >= 0) or x / 10^-by rounded half away from zero (by < 0). False on overflow of 38 digits. */
bool gar_decimal_rescale(gar_i128 x, int32_t by, gar_i128 *out);
/* Text such as "-12.345", "1.5e3", blanks trimmed by the caller. Digits beyond `scale` are an error unless zero or
 * `round`. GAR_ERR_VALUE if not a number, GAR_ERR_OVERFLOW if it does not fit the precision. No message is written. */
enum gar_status gar_decimal_parse(const char *text, int64_t bytes, int32_t precision, int32_t scale,
                                  bool round, gar_i128 *out);
/* Writes the text, returns its length; out has room for 48 bytes. No NUL. */
int32_t gar_decimal_format(gar_i128 x, int32_t scale, char *out);
double gar_decimal_to_double(gar_i128 x, int32_t scale);
/* Rounds half away from zero. False for NaN, infinity, or what does not fit the precision. */
bool gar_decimal_from_double(double v, int32_t precision, int32_t scale, gar_i128 *out);

#endif
