/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 with a fast way through ASCII. Terminal widths come from utf8proc. */
#include "base/utf8.h"

#include <string.h>
#include <utf8proc.h>

#include "base/bits.h"

#define HIGH_BITS UINT64_C(0x8080808080808080)
#define LOW_BITS  UINT64_C(0x0101010101010101)

/* Bytes of the well-formed character of two or more bytes at p, or 0. Second bytes are narrowed for E0, ED, F0
 * and F4 as table 3-7 of the Unicode standard says. */
static int64_t check_sequence(const uint8_t *p, int64_t left)
{
    const uint8_t lead = p[0];
    if (lead < 0xc2 || lead > 0xf4 || left < 2) {
        return 0;
    }
    if (lead < 0xe0) {
        return (p[1] & 0xc0) == 0x80 ? 2 : 0;
    }
    uint8_t low = 0x80;
    uint8_t high = 0xbf;
    if (lead < 0xf0) {
        low = lead == 0xe0 ? 0xa0 : low;
        high = lead == 0xed ? 0x9f : high;
        return left >= 3 && p[1] >= low && p[1] <= high && (p[2] & 0xc0) == 0x80 ? 3 : 0;
    }
    low = lead == 0xf0 ? 0x90 : low;
    high = lead == 0xf4 ? 0x8f : high;
    return left >= 4 && p[1] >= low && p[1] <= high && (p[2] & 0xc0) == 0x80 &&
                   (p[3] & 0xc0) == 0x80
               ? 4
               : 0;
}

int64_t gar_utf8_first_bad(const void *data, int64_t bytes)
{
    const uint8_t *p = data;
    int64_t i = 0;
    while (i < bytes) {
        while (i + 32 <= bytes) {
            const uint64_t any = gar_load_u64(p + i) | gar_load_u64(p + i + 8) |
                                 gar_load_u64(p + i + 16) | gar_load_u64(p + i + 24);
            if ((any & HIGH_BITS) != 0) {
                break;
            }
            i += 32;
        }
        /* At least one window's worth byte by byte before the wide test is tried again. */
        const int64_t stop = gar_min_i64(bytes, i + 32);
        while (i < stop) {
            if (p[i] < 0x80) {
                i++;
                continue;
            }
            const int64_t n = check_sequence(p + i, bytes - i);
            if (n == 0) {
                return i;
            }
            i += n;
        }
    }
    return -1;
}

bool gar_utf8_valid(const void *data, int64_t bytes)
{
    return gar_utf8_first_bad(data, bytes) < 0;
}

int64_t gar_utf8_length(const void *data, int64_t bytes)
{
    const uint8_t *p = data;
    int64_t continued = 0; /* bytes of the form 10xxxxxx */
    int64_t i = 0;
    while (i + 8 <= bytes) {
        uint64_t sums = 0; /* one count in each byte; 31 words keep their total below 256 */
        for (int64_t k = 0; k < 31 && i + 8 <= bytes; k++, i += 8) {
            const uint64_t w = gar_load_u64(p + i);
            sums += (w >> 7) & ~(w >> 6) & LOW_BITS;
        }
        continued += (int64_t)(sums * LOW_BITS >> 56);
    }
    for (; i < bytes; i++) {
        continued += (p[i] & 0xc0) == 0x80;
    }
    return bytes - continued;
}

int64_t gar_utf8_offset(const void *data, int64_t bytes, int64_t index)
{
    const uint8_t *p = data;
    int64_t i = 0;
    while (index >= 8 && i + 8 <= bytes && (gar_load_u64(p + i) & HIGH_BITS) == 0) {
        i += 8;
        index -= 8;
    }
    for (; i < bytes; i++) {
        if ((p[i] & 0xc0) != 0x80 && index-- == 0) {
            return i;
        }
    }
    return bytes;
}

int32_t gar_utf8_decode(const void *data, int64_t bytes, int32_t *out_size)
{
    const uint8_t *p = data;
    if (p[0] < 0x80 || bytes < 2) {
        *out_size = 1;
        return p[0];
    }
    if (p[0] < 0xe0 || bytes < 3) {
        *out_size = 2;
        return (p[0] & 0x1f) << 6 | (p[1] & 0x3f);
    }
    if (p[0] < 0xf0 || bytes < 4) {
        *out_size = 3;
        return (p[0] & 0x0f) << 12 | (p[1] & 0x3f) << 6 | (p[2] & 0x3f);
    }
    *out_size = 4;
    return (p[0] & 0x07) << 18 | (p[1] & 0x3f) << 12 | (p[2] & 0x3f) << 6 | (p[3] & 0x3f);
}

int32_t gar_utf8_encode(int32_t code_point, char out[4])
{
    const uint32_t c = (uint32_t)code_point;
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | (c >> 18 & 0x07));
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

int64_t gar_utf8_width(const void *data, int64_t bytes)
{
    const char *p = data;
    int64_t width = 0;
    int64_t i = 0;
    while (i < bytes) {
        int32_t size = 1;
        const int32_t c = gar_utf8_decode(p + i, bytes - i, &size);
        const int one = c < 0x80 ? (c >= 0x20 && c != 0x7f) : utf8proc_charwidth(c);
        width += one > 0 ? one : 0;
        i += size;
    }
    return width;
}
