/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions of physical values. The loops gather "does not fit" in one flag, so that compilers can vectorise them. */
#include <string.h>

#include "base/bits.h"
#include "formats/parquet/convert_priv.h"

#define UNIX_EPOCH_JULIAN_DAY 2440588
#define US_PER_DAY            INT64_C(86400000000)
#define MS_PER_DAY            86400000
#define I96_BYTES             12

bool gar_convert_i32_i8(const int32_t *GAR_RESTRICT in, int64_t count, int8_t *GAR_RESTRICT out)
{
    int32_t bad = 0;
    for (int64_t i = 0; i < count; i++) {
        out[i] = (int8_t)in[i];
        bad |= out[i] ^ in[i];
    }
    return bad == 0;
}

bool gar_convert_i32_i16(const int32_t *GAR_RESTRICT in, int64_t count, int16_t *GAR_RESTRICT out)
{
    int32_t bad = 0;
    for (int64_t i = 0; i < count; i++) {
        out[i] = (int16_t)in[i];
        bad |= out[i] ^ in[i];
    }
    return bad == 0;
}

bool gar_convert_i32_u8(const int32_t *GAR_RESTRICT in, int64_t count, uint8_t *GAR_RESTRICT out)
{
    uint32_t bad = 0;
    for (int64_t i = 0; i < count; i++) {
        out[i] = (uint8_t)in[i];
        bad |= out[i] ^ (uint32_t)in[i];
    }
    return bad == 0;
}

bool gar_convert_i32_u16(const int32_t *GAR_RESTRICT in, int64_t count, uint16_t *GAR_RESTRICT out)
{
    uint32_t bad = 0;
    for (int64_t i = 0; i < count; i++) {
        out[i] = (uint16_t)in[i];
        bad |= out[i] ^ (uint32_t)in[i];
    }
    return bad == 0;
}

bool gar_convert_i64_u32(const int64_t *GAR_RESTRICT in, int64_t count, uint32_t *GAR_RESTRICT out)
{
    uint64_t bad = 0;
    for (int64_t i = 0; i < count; i++) {
        out[i] = (uint32_t)in[i];
        bad |= (uint64_t)in[i] >> 32;
    }
    return bad == 0;
}

bool gar_convert_ms_us(const int32_t *GAR_RESTRICT in, int64_t count, int64_t *GAR_RESTRICT out)
{
    uint32_t bad = 0;
    for (int64_t i = 0; i < count; i++) {
        out[i] = (int64_t)in[i] * 1000;
        bad |= (uint32_t)((uint32_t)in[i] >= MS_PER_DAY);
    }
    return bad == 0;
}

bool gar_convert_time(const int64_t *GAR_RESTRICT in, int64_t count, int64_t day,
                      int64_t *GAR_RESTRICT out)
{
    uint64_t bad = 0;
    for (int64_t i = 0; i < count; i++) {
        out[i] = in[i];
        bad |= (uint64_t)((uint64_t)in[i] >= (uint64_t)day);
    }
    return bad == 0;
}

bool gar_convert_i32_decimal(const int32_t *GAR_RESTRICT in, int64_t count, int32_t precision,
                             void *GAR_RESTRICT out)
{
    int64_t *const words = out;
    const int64_t limit = gar_pow10_i64(precision);
    int64_t bad = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t v = in[i];
        words[2 * i] = v;
        words[2 * i + 1] = v >> 63;
        bad |= (int64_t)(v >= limit) | (int64_t)(v <= -limit);
    }
    return bad == 0;
}

bool gar_convert_i64_decimal(const int64_t *GAR_RESTRICT in, int64_t count, int32_t precision,
                             void *GAR_RESTRICT out)
{
    int64_t *const words = out;
    const int64_t limit = gar_pow10_i64(precision);
    int64_t bad = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t v = in[i];
        words[2 * i] = v;
        words[2 * i + 1] = v >> 63;
        bad |= (int64_t)(v >= limit) | (int64_t)(v <= -limit);
    }
    return bad == 0;
}

bool gar_convert_decimal_bytes(const uint8_t *in, int64_t count, int64_t width, int32_t precision,
                               void *out)
{
    uint8_t *to = out;
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *p = in + i * width;
        int64_t bytes = width;
        const uint8_t sign = bytes > 0 && (p[0] & 0x80) != 0 ? 0xff : 0;
        for (; bytes > 16; bytes--, p++) {
            if (*p != sign) {
                return false;
            }
        }
        gar_u128 value = sign != 0 ? ~(gar_u128)0 : 0;
        for (int64_t k = 0; k < bytes; k++) {
            value = (value << 8) | p[k];
        }
        /* With leading sign bytes cut, the sign of what is left must be the same. */
        if (width > 16 && (p[0] & 0x80) != (sign & 0x80)) {
            return false;
        }
        if (!gar_decimal_fits((gar_i128)value, precision)) {
            return false;
        }
        memcpy(to, &value, sizeof value);
        to += sizeof value;
    }
    return true;
}

bool gar_convert_i96(const uint8_t *in, int64_t count, int64_t *out)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t nanos = (int64_t)gar_load_u64(in + I96_BYTES * i);
        const int64_t day =
            (int64_t)(int32_t)gar_load_u32(in + I96_BYTES * i + 8) - UNIX_EPOCH_JULIAN_DAY;
        const int64_t micros = nanos / 1000 - (nanos % 1000 < 0);
        int64_t us = 0;
        if (__builtin_mul_overflow(day, US_PER_DAY, &us) ||
            __builtin_add_overflow(us, micros, &out[i])) {
            return false;
        }
    }
    return true;
}

/* Exponent and fraction move to their places in a float; subnormals are scaled by the float unit itself. */
void gar_convert_f16(const uint8_t *in, int64_t count, float *out)
{
    for (int64_t i = 0; i < count; i++) {
        const uint32_t half = (uint32_t)in[2 * i] | ((uint32_t)in[2 * i + 1] << 8);
        const uint32_t sign = (half & 0x8000) << 16;
        const uint32_t exponent = (half >> 10) & 0x1f;
        const uint32_t fraction = half & 0x3ff;
        uint32_t bits = 0;
        if (exponent == 0x1f) {
            bits = 0x7f800000 | (fraction << 13);
        } else if (exponent != 0) {
            bits = ((exponent + 112) << 23) | (fraction << 13);
        } else {
            const float small = (float)fraction * 0x1p-24F;
            memcpy(&bits, &small, sizeof bits);
        }
        bits |= sign;
        memcpy(&out[i], &bits, sizeof bits);
    }
}
