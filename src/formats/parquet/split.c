/* SPDX-License-Identifier: Apache-2.0 */
/* BYTE_STREAM_SPLIT. On x86-64 widths 4 and 8 are joined sixteen values at a time with SSE2 byte interleaving, which every
 * such processor has. */
#include "formats/parquet/split_priv.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

void gar_split_join_portable(const uint8_t *in, int64_t total, int64_t at, int64_t count,
                             int32_t width, uint8_t *out)
{
    for (int32_t j = 0; j < width; j++) {
        const uint8_t *const stream = in + j * total + at;
        for (int64_t i = 0; i < count; i++) {
            out[i * width + j] = stream[i];
        }
    }
}

#if defined(__x86_64__)
static __m128i load(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static void store(uint8_t *p, __m128i v)
{
    _mm_storeu_si128((__m128i *)(void *)p, v);
}

static int64_t join_4(const uint8_t *in, int64_t total, int64_t count, uint8_t *out)
{
    int64_t i = 0;
    for (; count - i >= 16; i += 16) {
        const __m128i a = load(in + i);
        const __m128i b = load(in + total + i);
        const __m128i c = load(in + 2 * total + i);
        const __m128i d = load(in + 3 * total + i);
        const __m128i ab0 = _mm_unpacklo_epi8(a, b);
        const __m128i ab1 = _mm_unpackhi_epi8(a, b);
        const __m128i cd0 = _mm_unpacklo_epi8(c, d);
        const __m128i cd1 = _mm_unpackhi_epi8(c, d);
        store(out + 4 * i, _mm_unpacklo_epi16(ab0, cd0));
        store(out + 4 * i + 16, _mm_unpackhi_epi16(ab0, cd0));
        store(out + 4 * i + 32, _mm_unpacklo_epi16(ab1, cd1));
        store(out + 4 * i + 48, _mm_unpackhi_epi16(ab1, cd1));
    }
    return i;
}

static int64_t join_8(const uint8_t *in, int64_t total, int64_t count, uint8_t *out)
{
    int64_t i = 0;
    for (; count - i >= 16; i += 16) {
        __m128i pair[4][2];
        for (int32_t k = 0; k < 4; k++) {
            const __m128i a = load(in + 2 * k * total + i);
            const __m128i b = load(in + (2 * k + 1) * total + i);
            pair[k][0] = _mm_unpacklo_epi8(a, b);
            pair[k][1] = _mm_unpackhi_epi8(a, b);
        }
        for (int32_t half = 0; half < 2; half++) {
            const __m128i low0 = _mm_unpacklo_epi16(pair[0][half], pair[1][half]);
            const __m128i low1 = _mm_unpackhi_epi16(pair[0][half], pair[1][half]);
            const __m128i high0 = _mm_unpacklo_epi16(pair[2][half], pair[3][half]);
            const __m128i high1 = _mm_unpackhi_epi16(pair[2][half], pair[3][half]);
            uint8_t *const to = out + 8 * i + 64 * half;
            store(to, _mm_unpacklo_epi32(low0, high0));
            store(to + 16, _mm_unpackhi_epi32(low0, high0));
            store(to + 32, _mm_unpacklo_epi32(low1, high1));
            store(to + 48, _mm_unpackhi_epi32(low1, high1));
        }
    }
    return i;
}
#endif

void gar_split_join(const uint8_t *in, int64_t total, int64_t at, int64_t count, int32_t width,
                    uint8_t *out)
{
    int64_t done = 0;
#if defined(__x86_64__)
    if (width == 4) {
        done = join_4(in + at, total, count, out);
    } else if (width == 8) {
        done = join_8(in + at, total, count, out);
    }
#endif
    gar_split_join_portable(in, total, at + done, count - done, width, out + done * width);
}
