/* SPDX-License-Identifier: Apache-2.0 */
/* Bit unpacking with AVX2: eight values a step by byte shuffle, variable shift and mask; widths 1..25. */
#include "formats/parquet/bit_unpack_priv.h"

#if defined(__x86_64__)
#include <immintrin.h>

/* Eight values of `width` bits are `width` bytes, so a step moves by whole bytes and the bit phase stays. Each half of the
 * vector takes four values out of 16 bytes: 3 + 25 * 3 + 32 bits at most. */
GAR_TARGET("avx2")
int64_t gar_bit_unpack_avx2(const uint8_t *in, int64_t in_bytes, int32_t width, int32_t first_bit,
                            int64_t count, uint32_t *out)
{
    int32_t shuffle[8];
    int32_t shift[8];
    const int32_t high_byte = (first_bit + 4 * width) >> 3;
    for (int32_t i = 0; i < 8; i++) {
        const int32_t bit = first_bit + i * width - (i >= 4 ? 8 * high_byte : 0);
        shuffle[i] = (bit >> 3) * 0x01010101 + 0x03020100;
        shift[i] = bit & 7;
    }
    const __m256i shuffles = _mm256_loadu_si256((const __m256i *)(const void *)shuffle);
    const __m256i shifts = _mm256_loadu_si256((const __m256i *)(const void *)shift);
    const __m256i mask = _mm256_set1_epi32((int32_t)((UINT32_C(1) << width) - 1));
    int64_t done = 0;
    while (count - done >= 8 && in_bytes >= high_byte + 16) {
        const __m128i low = _mm_loadu_si128((const __m128i *)(const void *)in);
        const __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(in + high_byte));
        __m256i v = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
        v = _mm256_shuffle_epi8(v, shuffles);
        v = _mm256_and_si256(_mm256_srlv_epi32(v, shifts), mask);
        _mm256_storeu_si256((__m256i *)(void *)(out + done), v);
        in += width;
        in_bytes -= width;
        done += 8;
    }
    return done;
}
#endif
