/* SPDX-License-Identifier: Apache-2.0 */
/* Bit unpacking: the portable body and the choice of a variant. */
#include <string.h>

#include "base/bits.h"
#include "base/cpu.h"
#include "formats/parquet/bit_unpack_priv.h"

/* Fewer values than this are not worth a vector set-up. */
#define VECTOR_VALUES_MIN 16

/* Eight bytes from `at`, zeros behind the end. */
static uint64_t load_near_end(const uint8_t *in, int64_t in_bytes, int64_t at)
{
    uint64_t word = 0;
    if (at < in_bytes) {
        memcpy(&word, in + at, (size_t)gar_min_i64(8, in_bytes - at));
    }
    return word;
}

void gar_bit_unpack_portable(const uint8_t *in, int64_t in_bytes, int32_t width, int64_t first_bit,
                             int64_t count, uint32_t *out)
{
    const uint64_t mask = (UINT64_C(1) << width) - 1;
    /* Values whose eight bytes are all there; a value starts at most at bit 7 and has at most 32. */
    const int64_t whole_bits = (in_bytes - 8) * 8 + 7;
    int64_t whole = 0;
    if (in_bytes >= 8 && width > 0) {
        whole =
            gar_min_i64(count, whole_bits < first_bit ? 0 : (whole_bits - first_bit) / width + 1);
    }
    int64_t bit = first_bit;
    for (int64_t i = 0; i < whole; i++) {
        out[i] = (uint32_t)((gar_load_u64(in + (bit >> 3)) >> (bit & 7)) & mask);
        bit += width;
    }
    for (int64_t i = whole; i < count; i++) {
        out[i] = (uint32_t)((load_near_end(in, in_bytes, bit >> 3) >> (bit & 7)) & mask);
        bit += width;
    }
}

void gar_bit_unpack(const uint8_t *in, int64_t in_bytes, int32_t width, int64_t skip, int64_t count,
                    uint32_t *out)
{
    if (width == 0) {
        memset(out, 0, (size_t)count * sizeof *out);
        return;
    }
    const int64_t bit = skip * width;
    in += bit >> 3;
    in_bytes -= bit >> 3;
    const int32_t first_bit = (int32_t)(bit & 7);
    int64_t done = 0;
#if defined(__x86_64__)
    if (count >= VECTOR_VALUES_MIN) {
        switch (gar_cpu_isa()) {
        case GAR_ISA_AVX512:
            done = gar_bit_unpack_avx512(in, in_bytes, width, first_bit, count, out);
            break;
        case GAR_ISA_AVX2:
            if (width <= 25) {
                done = gar_bit_unpack_avx2(in, in_bytes, width, first_bit, count, out);
            }
            break;
        case GAR_ISA_PORTABLE: break;
        }
    }
#endif
    if (done < count) {
        gar_bit_unpack_portable(in, in_bytes, width, first_bit + done * width, count - done,
                                out + done);
    }
}

void gar_bit_unpack_u64(const uint8_t *in, int64_t in_bytes, int32_t width, int64_t skip,
                        int64_t count, uint64_t *out)
{
    const uint64_t mask = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
    int64_t bit = skip * width;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = bit >> 3;
        const int32_t shift = (int32_t)(bit & 7);
        uint64_t value = load_near_end(in, in_bytes, at) >> shift;
        if (shift + width > 64) {
            value |= (uint64_t)in[at + 8] << (64 - shift);
        }
        out[i] = value & mask;
        bit += width;
    }
}
