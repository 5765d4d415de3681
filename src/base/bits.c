/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of bits, 64 at a time. The unaligned ends go bit range by bit range so that no byte outside is touched. */
#include "base/bits.h"

#include "base/cpu.h"

/* Write the low `count` (1..8) bits of value at bit `shift` of one byte; shift + count <= 8. */
static void put_bits(uint8_t *byte, int32_t shift, int64_t count, uint64_t value)
{
    const unsigned mask = ((1u << count) - 1u) << shift;
    *byte = (uint8_t)((*byte & ~mask) | (((unsigned)value << shift) & mask));
}

uint64_t gar_bits_load(const uint8_t *bits, int64_t offset, int64_t count)
{
    if (count <= 0) {
        return 0;
    }
    const uint8_t *p = bits + (offset >> 3);
    const unsigned shift = (unsigned)(offset & 7);
    if (count >= 64) {
        const uint64_t low = gar_load_u64(p) >> shift;
        return shift == 0 ? low : low | (uint64_t)p[8] << (64 - shift);
    }
    const int64_t bytes = gar_bits_bytes((int64_t)shift + count);
    uint64_t word = 0;
    if (bytes >= 8) {
        word = gar_load_u64(p) >> shift;
        if (bytes > 8) {
            word |= (uint64_t)p[8] << (64 - shift);
        }
    } else {
        for (int64_t i = 0; i < bytes; i++) {
            word |= (uint64_t)p[i] << (8 * i);
        }
        word >>= shift;
    }
    return word & ((UINT64_C(1) << count) - 1);
}

GAR_INLINE int64_t count_words(const uint8_t *p, int64_t words)
{
    int64_t n0 = 0;
    int64_t n1 = 0;
    int64_t i = 0;
    for (; i + 2 <= words; i += 2) {
        n0 += gar_popcount64(gar_load_u64(p + 8 * i));
        n1 += gar_popcount64(gar_load_u64(p + 8 * i + 8));
    }
    return n0 + n1 + (i < words ? gar_popcount64(gar_load_u64(p + 8 * i)) : 0);
}

#if defined(__x86_64__)
GAR_TARGET("popcnt") static int64_t count_words_popcnt(const uint8_t *p, int64_t words)
{
    return count_words(p, words);
}
#endif

int64_t gar_bits_count(const uint8_t *bits, int64_t offset, int64_t count)
{
    if (count <= 0) {
        return 0;
    }
    const int64_t head = gar_min_i64((8 - (offset & 7)) & 7, count);
    int64_t n = gar_popcount64(gar_bits_load(bits, offset, head));
    offset += head;
    count -= head;
    const int64_t words = count / 64;
    if (words > 0) {
        const uint8_t *p = bits + (offset >> 3);
#if defined(__x86_64__)
        n += gar_cpu_isa() >= GAR_ISA_AVX2 ? count_words_popcnt(p, words) : count_words(p, words);
#else
        n += count_words(p, words);
#endif
    }
    return n + gar_popcount64(gar_bits_load(bits, offset + words * 64, count - words * 64));
}

void gar_bits_copy(uint8_t *to, int64_t to_offset, const uint8_t *from, int64_t from_offset,
                   int64_t count)
{
    if (count <= 0) {
        return;
    }
    const int64_t head = gar_min_i64((8 - (to_offset & 7)) & 7, count);
    if (head > 0) {
        put_bits(to + (to_offset >> 3), (int32_t)(to_offset & 7), head,
                 gar_bits_load(from, from_offset, head));
        to_offset += head;
        from_offset += head;
        count -= head;
    }
    uint8_t *out = to + (to_offset >> 3);
    if ((from_offset & 7) == 0) {
        const int64_t bytes = count / 8;
        if (bytes > 0) {
            memcpy(out, from + (from_offset >> 3), (size_t)bytes);
        }
        out += bytes;
        from_offset += 8 * bytes;
        count -= 8 * bytes;
    } else {
        for (; count >= 64; count -= 64, from_offset += 64, out += 8) {
            gar_store_u64(out, gar_bits_load(from, from_offset, 64));
        }
        for (; count >= 8; count -= 8, from_offset += 8, out++) {
            *out = (uint8_t)gar_bits_load(from, from_offset, 8);
        }
    }
    if (count > 0) {
        put_bits(out, 0, count, gar_bits_load(from, from_offset, count));
    }
}

void gar_bits_fill(uint8_t *to, int64_t offset, int64_t count, bool value)
{
    if (count <= 0) {
        return;
    }
    const uint64_t word = value ? UINT64_MAX : 0;
    const int64_t head = gar_min_i64((8 - (offset & 7)) & 7, count);
    if (head > 0) {
        put_bits(to + (offset >> 3), (int32_t)(offset & 7), head, word);
        offset += head;
        count -= head;
    }
    uint8_t *out = to + (offset >> 3);
    const int64_t bytes = count / 8;
    if (bytes > 0) {
        memset(out, value ? 0xff : 0, (size_t)bytes);
    }
    if (count % 8 != 0) {
        put_bits(out + bytes, 0, count % 8, word);
    }
}

void gar_bits_and(uint8_t *out, const uint8_t *a, int64_t a_offset, const uint8_t *b,
                  int64_t b_offset, int64_t count)
{
    int64_t i = 0;
    for (; i + 64 <= count; i += 64) {
        gar_store_u64(out + (i >> 3),
                      gar_bits_load(a, a_offset + i, 64) & gar_bits_load(b, b_offset + i, 64));
    }
    const int64_t rest = count - i;
    const uint64_t word =
        gar_bits_load(a, a_offset + i, rest) & gar_bits_load(b, b_offset + i, rest);
    for (int64_t bit = 0; bit < rest; bit += 8) {
        out[(i + bit) >> 3] = (uint8_t)(word >> bit);
    }
}
