/* SPDX-License-Identifier: Apache-2.0 */
/* The C face of <charconv>: number_text.c alone uses it. */
#ifndef GAR_BASE_CHARCONV_SHIM_PRIV_H
#define GAR_BASE_CHARCONV_SHIM_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum gar_charconv_result {
    GAR_CHARCONV_OK,
    GAR_CHARCONV_INVALID,      /* not a number as a whole */
    GAR_CHARCONV_OUT_OF_RANGE, /* a number, too large or too small for the type; *out is untouched */
};

/* No leading '+', no blanks. */
enum gar_charconv_result gar_charconv_parse_double(const char *text, int64_t bytes, double *out);
enum gar_charconv_result gar_charconv_parse_float(const char *text, int64_t bytes, float *out);
/* Shortest digits, written with or without an exponent. Returns the length, or 0 when it does not fit. */
int32_t gar_charconv_format_double(double v, bool with_exponent, char *out, int32_t out_bytes);
int32_t gar_charconv_format_float(float v, bool with_exponent, char *out, int32_t out_bytes);

#ifdef __cplusplus
}
#endif
#endif
