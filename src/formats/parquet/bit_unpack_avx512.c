/* SPDX-License-Identifier: Apache-2.0 */
/* Bit unpacking with AVX-512 VBMI: sixteen (or, above 25 bits, eight) values a step by one byte permutation. */
#include "formats/parquet/bit_unpack_priv.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define VBMI GAR_TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")

/* Sixteen values of width bits are 2 * width bytes: 7 + 16 * 25 bits fit the 64 bytes of a register, and each value lies in
 * four bytes. Loads are masked, so nothing behind the input is touched. */
VBMI static int64_t unpack_narrow(const uint8_t *in, int64_t in_bytes, int32_t width,
                                  int32_t first_bit, int64_t count, uint32_t *out)
{
    const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i bits = _mm512_add_epi32(_mm512_mullo_epi32(lanes, _mm512_set1_epi32(width)),
                                          _mm512_set1_epi32(first_bit));
    const __m512i bytes = _mm512_add_epi32(
        _mm512_mullo_epi32(_mm512_srli_epi32(bits, 3), _mm512_set1_epi32(0x01010101)),
        _mm512_set1_epi32(0x03020100));
    const __m512i shifts = _mm512_and_si512(bits, _mm512_set1_epi32(7));
    const __m512i mask = _mm512_set1_epi32((int32_t)((UINT32_C(1) << width) - 1));
    const int32_t need = (first_bit + 16 * width + 7) >> 3;
    const __mmask64 loads = need >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << need) - 1;
    int64_t done = 0;
    while (count - done >= 16 && in_bytes >= need) {
        __m512i v = _mm512_maskz_loadu_epi8(loads, in);
        v = _mm512_permutexvar_epi8(bytes, v);
        v = _mm512_and_si512(_mm512_srlv_epi32(v, shifts), mask);
        _mm512_storeu_si512(out + done, v);
        in += 2 * width;
        in_bytes -= 2 * width;
        done += 16;
    }
    return done;
}

/* Eight values in 64-bit lanes: 7 + 32 bits lie in five bytes. */
VBMI static int64_t unpack_wide(const uint8_t *in, int64_t in_bytes, int32_t width,
                                int32_t first_bit, int64_t count, uint32_t *out)
{
    const __m512i lanes = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i bits = _mm512_add_epi64(_mm512_mullo_epi64(lanes, _mm512_set1_epi64(width)),
                                          _mm512_set1_epi64(first_bit));
    const __m512i bytes =
        _mm512_add_epi64(_mm512_mullo_epi64(_mm512_srli_epi64(bits, 3),
                                            _mm512_set1_epi64(INT64_C(0x0101010101010101))),
                         _mm512_set1_epi64(INT64_C(0x0706050403020100)));
    const __m512i shifts = _mm512_and_si512(bits, _mm512_set1_epi64(7));
    const __m512i mask = _mm512_set1_epi64((int64_t)((UINT64_C(1) << width) - 1));
    const int32_t need = (first_bit + 8 * width + 7) >> 3;
    const __mmask64 loads = (UINT64_C(1) << need) - 1; /* need <= 33 */
    int64_t done = 0;
    while (count - done >= 8 && in_bytes >= need) {
        __m512i v = _mm512_maskz_loadu_epi8(loads, in);
        v = _mm512_permutexvar_epi8(bytes, v);
        v = _mm512_and_si512(_mm512_srlv_epi64(v, shifts), mask);
        _mm256_storeu_si256((__m256i *)(void *)(out + done), _mm512_cvtepi64_epi32(v));
        in += width;
        in_bytes -= width;
        done += 8;
    }
    return done;
}

VBMI int64_t gar_bit_unpack_avx512(const uint8_t *in, int64_t in_bytes, int32_t width,
                                   int32_t first_bit, int64_t count, uint32_t *out)
{
    return width <= 25 ? unpack_narrow(in, in_bytes, width, first_bit, count, out)
                       : unpack_wide(in, in_bytes, width, first_bit, count, out);
}
#endif
