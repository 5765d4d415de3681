/* SPDX-License-Identifier: Apache-2.0 */
/* Physical values to values of the column's type. Inputs are 8-byte aligned (booleans and texts do not come here); false when a
 * value does not fit, and the output is then undefined. */
#ifndef GAR_FORMATS_PARQUET_CONVERT_PRIV_H
#define GAR_FORMATS_PARQUET_CONVERT_PRIV_H

#include "base/int128.h"

bool gar_convert_i32_i8(const int32_t *in, int64_t count, int8_t *out);
bool gar_convert_i32_i16(const int32_t *in, int64_t count, int16_t *out);
bool gar_convert_i32_u8(const int32_t *in, int64_t count, uint8_t *out);
bool gar_convert_i32_u16(const int32_t *in, int64_t count, uint16_t *out);
bool gar_convert_i64_u32(const int64_t *in, int64_t count, uint32_t *out);
/* Times of day: 0 <= value < a day. */
bool gar_convert_ms_us(const int32_t *in, int64_t count, int64_t *out);
bool gar_convert_time(const int64_t *in, int64_t count, int64_t day, int64_t *out);
/* out: 16 bytes a value. */
bool gar_convert_i32_decimal(const int32_t *in, int64_t count, int32_t precision, void *out);
bool gar_convert_i64_decimal(const int64_t *in, int64_t count, int32_t precision, void *out);
/* Big-endian two's complement of `width` bytes a value. */
bool gar_convert_decimal_bytes(const uint8_t *in, int64_t count, int64_t width, int32_t precision,
                               void *out);
/* int96: nanoseconds of the day and Julian day, to microseconds since 1970 (cut to the microsecond before). */
bool gar_convert_i96(const uint8_t *in, int64_t count, int64_t *out);
void gar_convert_f16(const uint8_t *in, int64_t count, float *out);

#endif
