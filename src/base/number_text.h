/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers from and to text, exact, locale-free. Floats go through the standard library's charconv. */
#ifndef GAR_BASE_NUMBER_TEXT_H
#define GAR_BASE_NUMBER_TEXT_H

#include "base/attrs.h"
#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The whole text must be a number, blanks trimmed by the caller. Leading '+' and "inf", "infinity", "nan" in any case
 * are taken. Overflow gives +-infinity, underflow +-0. False if it is not a number. Round to nearest even. */
bool gar_parse_double(const char *text, int64_t bytes, double *out);
bool gar_parse_float(const char *text, int64_t bytes, float *out);
/* Shortest text that reads back equal ("1.5", "1e+300", "nan", "inf", "-0.0", "3.0": always with point or exponent).
 * out has room for 40 bytes; returns the length; no NUL. */
int32_t gar_format_double(double v, char *out);
int32_t gar_format_float(float v, char *out);

/* Whole text as integer: optional sign, digits. GAR_OK, GAR_ERR_VALUE (not an integer) or GAR_ERR_OVERFLOW. */
enum gar_status gar_parse_i64(const char *text, int64_t bytes, int64_t *out);
enum gar_status gar_parse_u64(const char *text, int64_t bytes, uint64_t *out);
/* out has room for 24 bytes; returns the length; no NUL. */
int32_t gar_format_i64(int64_t v, char *out);
int32_t gar_format_u64(uint64_t v, char *out);

#ifdef __cplusplus
}
#endif
#endif
