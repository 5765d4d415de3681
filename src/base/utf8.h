/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8: validation, counting, stepping. */
#ifndef GAR_BASE_UTF8_H
#define GAR_BASE_UTF8_H

#include "base/attrs.h"

/* True if the bytes are well-formed UTF-8 (no surrogates, nothing overlong, nothing beyond U+10FFFF). */
bool gar_utf8_valid(const void *data, int64_t bytes);
/* Offset of the first byte of the first ill-formed sequence, or -1. */
int64_t gar_utf8_first_bad(const void *data, int64_t bytes);
/* Characters (code points) in well-formed text. */
int64_t gar_utf8_length(const void *data, int64_t bytes);
/* Byte offset of character `index` (>= 0) in well-formed text; `bytes` if the text is shorter. */
int64_t gar_utf8_offset(const void *data, int64_t bytes, int64_t index);
/* Decode one character at data (bytes > 0, well-formed); *out_size gets its bytes. */
int32_t gar_utf8_decode(const void *data, int64_t bytes, int32_t *out_size);
/* Write a code point; returns its bytes (1..4). */
int32_t gar_utf8_encode(int32_t code_point, char out[4]);
/* Terminal columns that the text takes (East Asian wide characters take two, combining marks none). */
int64_t gar_utf8_width(const void *data, int64_t bytes);

#endif
