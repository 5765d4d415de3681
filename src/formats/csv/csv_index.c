/* SPDX-License-Identifier: Apache-2.0 */
/* Separators of CSV text.
 *
 * The scalar machine (`step`) defines the meaning. The SIMD forms (SSE2, which is the portable one on x86-64, AVX2,
 * AVX-512) take 64 bytes at a time as three bit masks: delimiters, line ends, quotes. A prefix XOR of the quote mask
 * marks what is inside quotes, under the assumption that every quote toggles. That is the machine's meaning exactly
 * when each opening quote follows a separator or a closing quote, which is tested on the masks; a word of 64 bytes
 * that fails the test goes through the scalar machine, and the next word is SIMD again. Dialects with an escape or a
 * comment byte always take the scalar machine. */
#include "formats/csv/csv_index.h"

#include <string.h>

#include "base/bits.h"
#include "base/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define CSV_X86 1
#else
#define CSV_X86 0
#endif

#define WORD 64

/* ---- the scalar machine ---- */

/* Advance by one byte; true if the byte is a separator. */
GAR_INLINE bool step(const struct gar_csv_dialect *d, uint8_t byte, enum gar_csv_state *state,
                     bool *has_escapes)
{
    switch (*state) {
    case GAR_CSV_COMMENT:
        if (byte != d->terminator) {
            return false;
        }
        *state = GAR_CSV_RECORD_START;
        return true;
    case GAR_CSV_ESCAPED: *state = GAR_CSV_UNQUOTED; return false;
    case GAR_CSV_QUOTED_ESCAPED: *state = GAR_CSV_QUOTED; return false;
    case GAR_CSV_QUOTED:
        if (d->has_escape && byte == d->escape) {
            *has_escapes = true;
            *state = GAR_CSV_QUOTED_ESCAPED;
        } else if (byte == d->quote) {
            *state = GAR_CSV_AFTER_QUOTE;
        }
        return false;
    case GAR_CSV_RECORD_START:
        if (d->has_comment && byte == d->comment) {
            *state = GAR_CSV_COMMENT;
            return false;
        }
        break;
    case GAR_CSV_AFTER_QUOTE:
        if (byte == d->quote) {
            *has_escapes = true;
            *state = d->double_quote ? GAR_CSV_QUOTED : GAR_CSV_UNQUOTED;
            return false;
        }
        break;
    case GAR_CSV_FIELD_START:
    case GAR_CSV_UNQUOTED: break;
    }
    if (byte == d->delimiter) {
        *state = GAR_CSV_FIELD_START;
        return true;
    }
    if (byte == d->terminator) {
        *state = GAR_CSV_RECORD_START;
        return true;
    }
    if (d->has_quote && byte == d->quote) {
        if (*state == GAR_CSV_RECORD_START || *state == GAR_CSV_FIELD_START) {
            *state = GAR_CSV_QUOTED;
            return false;
        }
        *has_escapes = true;
    }
    if (d->has_escape && byte == d->escape) {
        *has_escapes = true;
        *state = GAR_CSV_ESCAPED;
        return false;
    }
    *state = GAR_CSV_UNQUOTED;
    return false;
}

static int64_t index_scalar(const struct gar_csv_dialect *d, const uint8_t *data, int64_t from,
                            int64_t to, enum gar_csv_state *state, uint32_t *positions,
                            struct gar_csv_index_result *out)
{
    int64_t count = 0;
    uint8_t wide = 0;
    for (int64_t i = from; i < to; i++) {
        wide |= data[i];
        if (step(d, data[i], state, &out->has_escapes)) {
            positions[count++] = (uint32_t)i;
            out->line_ends += data[i] == d->terminator;
        }
    }
    out->has_wide |= wide >= 128;
    return count;
}

static void split_scalar(const struct gar_csv_dialect *d, const uint8_t *data, int64_t from,
                         int64_t to, enum gar_csv_state *state, uint64_t *near,
                         struct gar_csv_split_result *out)
{
    bool has_escapes = false;
    for (int64_t i = from; i < to; i++) {
        if (step(d, data[i], state, &has_escapes) && data[i] == d->terminator) {
            out->last_end = i + 1;
            out->record_ends++;
        }
        const bool is_end = data[i] == d->terminator;
        out->line_ends += is_end;
        out->may_have_blank |=
            is_end && (*near >> 63 != 0 || (*near >> 62 != 0 && data[i - 1] == '\r'));
        *near = *near >> 1 | (uint64_t)is_end << 63;
    }
}

/* The line ends among the two bytes before `from`, in the highest bits: bit 63 is the byte just before. The first record
 * begins as if a line had ended. */
static uint64_t near_ends(const struct gar_csv_dialect *d, const uint8_t *data, int64_t from,
                          enum gar_csv_state state)
{
    const bool last = state == GAR_CSV_RECORD_START || data[from - 1] == d->terminator;
    const bool before = from >= 2 ? data[from - 2] == d->terminator : from == 1;
    return (uint64_t)last << 63 | (uint64_t)before << 62;
}

/* ---- words of 64 bytes ---- */

#if CSV_X86

/* The state as bits: what the byte before the word was. */
struct carry {
    uint64_t inside; /* all ones inside quotes, else 0 */
    uint64_t separator;
    uint64_t closer; /* it closed a quoted field, or is the first of a doubled quote */
};

GAR_INLINE struct carry carry_of(enum gar_csv_state state)
{
    return (struct carry){
        .inside = state == GAR_CSV_QUOTED ? ~UINT64_C(0) : 0,
        .separator = state == GAR_CSV_RECORD_START || state == GAR_CSV_FIELD_START,
        .closer = state == GAR_CSV_AFTER_QUOTE,
    };
}

/* RECORD_START and FIELD_START differ only for comments, which never come here; record says which it was. */
GAR_INLINE enum gar_csv_state state_of(const struct carry *c, bool record)
{
    if (c->inside != 0) {
        return GAR_CSV_QUOTED;
    }
    if (c->separator != 0) {
        return record ? GAR_CSV_RECORD_START : GAR_CSV_FIELD_START;
    }
    return c->closer != 0 ? GAR_CSV_AFTER_QUOTE : GAR_CSV_UNQUOTED;
}

struct word {
    uint64_t delimiters;
    uint64_t terminators;
    uint64_t quotes;
};

/* Separators outside quotes of a word with `bits` bytes (1..64), given the prefix XOR of its quotes. False: the
 * quotes are not regular, carry is untouched. */
GAR_INLINE bool resolve(const struct word *w, uint64_t toggled, int bits, bool double_quote,
                        struct carry *c, uint64_t *out_inside, uint64_t *escapes)
{
    const uint64_t inside = toggled ^ c->inside;
    const uint64_t separators = (w->delimiters | w->terminators) & ~inside;
    const uint64_t closers = w->quotes & ~inside;
    const uint64_t openers = w->quotes & inside;
    const uint64_t after_closer = (closers << 1) | c->closer;
    const uint64_t may_open = (separators << 1) | c->separator | (double_quote ? after_closer : 0);
    if (GAR_UNLIKELY((openers & ~may_open) != 0)) {
        return false;
    }
    *escapes |= openers & after_closer;
    c->inside = (uint64_t)((int64_t)inside >> 63);
    c->separator = (separators >> (bits - 1)) & 1;
    c->closer = (closers >> (bits - 1)) & 1;
    *out_inside = inside;
    return true;
}

GAR_TARGET("pclmul,sse2") GAR_INLINE uint64_t prefix_xor(uint64_t x)
{
    const __m128i ones = _mm_set1_epi8(-1);
    return (uint64_t)_mm_cvtsi128_si64(
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)x), ones, 0));
}

GAR_INLINE uint64_t prefix_xor_by_shifts(uint64_t x)
{
    for (int by = 1; by < 64; by *= 2) {
        x ^= x << by;
    }
    return x;
}

/* Is there a '\r' before one of these bytes? */
static bool returns_before(const uint8_t *data, uint64_t mask)
{
    for (; mask != 0; mask &= mask - 1) {
        if (data[gar_ctz64(mask) - 1] == '\r') {
            return true;
        }
    }
    return false;
}

GAR_INLINE int64_t emit_bits(uint64_t mask, int64_t base, uint32_t *positions, int64_t count)
{
    while (mask != 0) {
        positions[count++] = (uint32_t)(base + gar_ctz64(mask));
        mask &= mask - 1;
    }
    return count;
}

/* Every x86-64 has SSE2. */
GAR_INLINE uint64_t equal_sse2(const __m128i *v, uint8_t byte)
{
    const __m128i b = _mm_set1_epi8((char)byte);
    uint64_t mask = 0;
    for (int i = 0; i < 4; i++) {
        mask |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(v[i], b)) << (16 * i);
    }
    return mask;
}

GAR_INLINE void load_sse2(const struct gar_csv_dialect *d, const uint8_t *p, struct word *w,
                          uint64_t *wide)
{
    __m128i v[4];
    *wide = 0;
    for (int i = 0; i < 4; i++) {
        v[i] = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));
        *wide |= (uint64_t)(uint32_t)_mm_movemask_epi8(v[i]) << (16 * i);
    }
    w->delimiters = equal_sse2(v, d->delimiter);
    w->terminators = equal_sse2(v, d->terminator);
    w->quotes = d->has_quote ? equal_sse2(v, d->quote) : 0;
}

#define AVX2_TARGET   "avx2,bmi,bmi2,popcnt,lzcnt,pclmul"
#define SSE2_TARGET   "sse2"
#define AVX512_TARGET AVX2_TARGET ",avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vbmi2"

GAR_TARGET(AVX2_TARGET) GAR_INLINE uint64_t equal_avx2(__m256i low, __m256i high, uint8_t byte)
{
    const __m256i b = _mm256_set1_epi8((char)byte);
    const uint32_t l = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, b));
    const uint32_t h = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, b));
    return l | (uint64_t)h << 32;
}

GAR_TARGET(AVX2_TARGET)
GAR_INLINE void load_avx2(const struct gar_csv_dialect *d, const uint8_t *p, struct word *w,
                          uint64_t *wide)
{
    const __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)p);
    const __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(p + 32));
    w->delimiters = equal_avx2(low, high, d->delimiter);
    w->terminators = equal_avx2(low, high, d->terminator);
    w->quotes = d->has_quote ? equal_avx2(low, high, d->quote) : 0;
    *wide = (uint64_t)(uint32_t)_mm256_movemask_epi8(low) |
            (uint64_t)(uint32_t)_mm256_movemask_epi8(high) << 32;
}

GAR_TARGET(AVX512_TARGET)
GAR_INLINE void load_avx512(const struct gar_csv_dialect *d, const uint8_t *p, struct word *w,
                            uint64_t *wide)
{
    const __m512i v = _mm512_loadu_si512(p);
    w->delimiters = _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8((char)d->delimiter));
    w->terminators = _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8((char)d->terminator));
    w->quotes = d->has_quote ? _mm512_cmpeq_epi8_mask(v, _mm512_set1_epi8((char)d->quote)) : 0;
    *wide = _mm512_movepi8_mask(v);
}

/* Eight at a time without looking how many there are: what is written too much is written over by the next word. */
GAR_TARGET(AVX2_TARGET)
GAR_INLINE int64_t emit_avx2(uint64_t mask, int64_t base, uint32_t *positions, int64_t count)
{
    const int64_t found = gar_popcount64(mask);
    uint32_t *to = positions + count;
    for (int64_t i = 0; i < 8; i++) {
        to[i] = (uint32_t)(base + (int64_t)_tzcnt_u64(mask));
        mask &= mask - 1;
    }
    if (GAR_UNLIKELY(found > 8)) {
        for (int64_t i = 8; i < 16; i++) {
            to[i] = (uint32_t)(base + (int64_t)_tzcnt_u64(mask));
            mask &= mask - 1;
        }
        (void)emit_bits(mask, base, to, 16);
    }
    return count + found;
}

/* Sixteen at a time: the numbers of the set bits are compressed to the front, widened and stored. Writes up to 16
 * entries beyond. */
GAR_TARGET(AVX512_TARGET)
GAR_INLINE int64_t emit_avx512(uint64_t mask, int64_t base, uint32_t *positions, int64_t count)
{
    const __m512i numbers = _mm512_set_epi64(
        0x3f3e3d3c3b3a3938, 0x3736353433323130, 0x2f2e2d2c2b2a2928, 0x2726252423222120,
        0x1f1e1d1c1b1a1918, 0x1716151413121110, 0x0f0e0d0c0b0a0908, 0x0706050403020100);
    const __m512i bytes = _mm512_maskz_compress_epi8(mask, numbers);
    const __m512i first = _mm512_set1_epi32((int32_t)(uint32_t)base);
    const int64_t found = gar_popcount64(mask);
    uint32_t *to = positions + count;
    _mm512_storeu_si512(
        to, _mm512_add_epi32(first, _mm512_cvtepu8_epi32(_mm512_castsi512_si128(bytes))));
    if (GAR_UNLIKELY(found > 16)) {
        _mm512_storeu_si512(
            to + 16,
            _mm512_add_epi32(first, _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(bytes, 1))));
        if (found > 32) {
            _mm512_storeu_si512(
                to + 32,
                _mm512_add_epi32(first, _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(bytes, 2))));
            _mm512_storeu_si512(
                to + 48,
                _mm512_add_epi32(first, _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(bytes, 3))));
        }
    }
    return count + found;
}

/* The two instruction sets share the loop's text; `LOAD` and `EMIT` are what differs. */
#define DEFINE_WORD_LOOPS(NAME, TARGET, LOAD, EMIT, PREFIX)                                      \
    GAR_TARGET(TARGET)                                                                           \
    static void index_##NAME(const struct gar_csv_dialect *d, const uint8_t *data, int64_t from, \
                             int64_t to, enum gar_csv_state *state, uint32_t *positions,         \
                             int64_t capacity, struct gar_csv_index_result *out)                 \
    {                                                                                            \
        struct carry c = carry_of(*state);                                                       \
        uint64_t escapes = 0;                                                                    \
        uint64_t wide = 0;                                                                       \
        int64_t count = 0;                                                                       \
        int64_t line_ends = 0;                                                                   \
        int64_t at = from;                                                                       \
        const int64_t stop = capacity - 2 * WORD;                                                \
        while (at < to && count <= stop) {                                                       \
            struct word w;                                                                       \
            uint64_t word_wide;                                                                  \
            LOAD(d, data + at, &w, &word_wide);                                                  \
            const int bits = (int)gar_min_i64(WORD, to - at);                                    \
            if (GAR_UNLIKELY(bits < WORD)) {                                                     \
                const uint64_t there = (UINT64_C(1) << bits) - 1;                                \
                w.delimiters &= there;                                                           \
                w.terminators &= there;                                                          \
                w.quotes &= there;                                                               \
                word_wide &= there;                                                              \
            }                                                                                    \
            uint64_t inside;                                                                     \
            wide |= word_wide;                                                                   \
            if (GAR_LIKELY(resolve(&w, PREFIX(w.quotes), bits, d->double_quote, &c, &inside,     \
                                   &escapes))) {                                                 \
                count = EMIT((w.delimiters | w.terminators) & ~inside, at, positions, count);    \
                line_ends += gar_popcount64(w.terminators & ~inside);                            \
            } else {                                                                             \
                enum gar_csv_state s = state_of(&c, false);                                      \
                count += index_scalar(d, data, at, at + bits, &s, positions + count, out);       \
                c = carry_of(s);                                                                 \
                escapes = 1;                                                                     \
            }                                                                                    \
            at += bits;                                                                          \
        }                                                                                        \
        *state = state_of(&c, at > from && data[at - 1] == d->terminator);                       \
        out->end = at;                                                                           \
        out->count = count;                                                                      \
        out->line_ends += line_ends;                                                             \
        out->has_escapes |= escapes != 0;                                                        \
        out->has_wide |= wide != 0;                                                              \
    }                                                                                            \
    GAR_TARGET(TARGET)                                                                           \
    static void split_##NAME(const struct gar_csv_dialect *d, const uint8_t *data, int64_t from, \
                             int64_t to, enum gar_csv_state *state, uint64_t near,               \
                             struct gar_csv_split_result *out)                                   \
    {                                                                                            \
        struct carry c = carry_of(*state);                                                       \
        uint64_t escapes = 0;                                                                    \
        uint64_t last = 0;                                                                       \
        int64_t last_at = 0;                                                                     \
        int64_t records = 0;                                                                     \
        int64_t lines = 0;                                                                       \
        uint64_t blank = 0;                                                                      \
        for (int64_t at = from; at < to; at += WORD) {                                           \
            struct word w;                                                                       \
            uint64_t word_wide;                                                                  \
            LOAD(d, data + at, &w, &word_wide);                                                  \
            const int bits = (int)gar_min_i64(WORD, to - at);                                    \
            if (GAR_UNLIKELY(bits < WORD)) {                                                     \
                const uint64_t there = (UINT64_C(1) << bits) - 1;                                \
                w.delimiters &= there;                                                           \
                w.terminators &= there;                                                          \
                w.quotes &= there;                                                               \
            }                                                                                    \
            blank |= w.terminators & (w.terminators << 1 | near >> 63);                          \
            const uint64_t short_lines = w.terminators & (w.terminators << 2 | near >> 62);      \
            if (GAR_UNLIKELY(short_lines != 0)) {                                                \
                blank |= returns_before(data + at, short_lines);                                 \
            }                                                                                    \
            near = w.terminators;                                                                \
            uint64_t inside;                                                                     \
            if (GAR_LIKELY(resolve(&w, PREFIX(w.quotes), bits, d->double_quote, &c, &inside,     \
                                   &escapes))) {                                                 \
                const uint64_t ends = w.terminators & ~inside;                                   \
                last_at = ends != 0 ? at : last_at;                                              \
                last = ends != 0 ? ends : last;                                                  \
                records += gar_popcount64(ends);                                                 \
                lines += gar_popcount64(w.terminators);                                          \
            } else {                                                                             \
                struct gar_csv_split_result slow = {.last_end = -1};                             \
                enum gar_csv_state s = state_of(&c, false);                                      \
                uint64_t unused = 0;                                                             \
                split_scalar(d, data, at, at + bits, &s, &unused, &slow);                        \
                c = carry_of(s);                                                                 \
                if (slow.last_end >= 0) {                                                        \
                    last_at = at;                                                                \
                    last = UINT64_C(1) << (slow.last_end - 1 - at);                              \
                }                                                                                \
                records += slow.record_ends;                                                     \
                lines += slow.line_ends;                                                         \
            }                                                                                    \
        }                                                                                        \
        *state = state_of(&c, to > from && data[to - 1] == d->terminator);                       \
        out->last_end = last != 0 ? last_at + WORD - gar_clz64(last) : -1;                       \
        out->record_ends = records;                                                              \
        out->line_ends = lines;                                                                  \
        out->may_have_blank = blank != 0;                                                        \
    }

DEFINE_WORD_LOOPS(sse2, SSE2_TARGET, load_sse2, emit_bits, prefix_xor_by_shifts)
DEFINE_WORD_LOOPS(avx2, AVX2_TARGET, load_avx2, emit_avx2, prefix_xor)
DEFINE_WORD_LOOPS(avx512, AVX512_TARGET, load_avx512, emit_avx512, prefix_xor)

#endif

/* ---- choice of the form ---- */

/* Can quotes be resolved by masks at all? */
static bool has_words(const struct gar_csv_dialect *d)
{
    return CSV_X86 && !d->has_escape && !d->has_comment;
}

#if CSV_X86
static enum gar_isa word_isa(void)
{
    const enum gar_isa isa = gar_cpu_isa();
    return isa != GAR_ISA_PORTABLE && __builtin_cpu_supports("pclmul") ? isa : GAR_ISA_PORTABLE;
}
#endif

void gar_csv_index(const struct gar_csv_dialect *dialect, const uint8_t *data, int64_t from,
                   int64_t to, enum gar_csv_state *state, uint32_t *positions, int64_t capacity,
                   struct gar_csv_index_result *out)
{
    *out = (struct gar_csv_index_result){.end = from};
    if (from >= to) {
        return;
    }
    if (!has_words(dialect)) {
        while (out->end < to && out->count <= capacity - 2 * WORD) {
            const int64_t until = gar_min_i64(to, out->end + WORD);
            out->count +=
                index_scalar(dialect, data, out->end, until, state, positions + out->count, out);
            out->end = until;
        }
        return;
    }
#if CSV_X86
    switch (word_isa()) {
    case GAR_ISA_AVX512:
        index_avx512(dialect, data, from, to, state, positions, capacity, out);
        break;
    case GAR_ISA_AVX2: index_avx2(dialect, data, from, to, state, positions, capacity, out); break;
    case GAR_ISA_PORTABLE:
        index_sse2(dialect, data, from, to, state, positions, capacity, out);
        break;
    }
#endif
}

void gar_csv_split(const struct gar_csv_dialect *dialect, const uint8_t *data, int64_t from,
                   int64_t to, enum gar_csv_state *state, struct gar_csv_split_result *out)
{
    *out = (struct gar_csv_split_result){.last_end = -1};
    if (from >= to) {
        return;
    }
    uint64_t near = near_ends(dialect, data, from, *state);
    if (!has_words(dialect)) {
        split_scalar(dialect, data, from, to, state, &near, out);
        return;
    }
#if CSV_X86
    switch (word_isa()) {
    case GAR_ISA_AVX512: split_avx512(dialect, data, from, to, state, near, out); break;
    case GAR_ISA_AVX2: split_avx2(dialect, data, from, to, state, near, out); break;
    case GAR_ISA_PORTABLE: split_sse2(dialect, data, from, to, state, near, out); break;
    }
#endif
}

int64_t gar_csv_count_byte(const uint8_t *data, int64_t bytes, uint8_t byte)
{
    int64_t count = 0;
    for (int64_t i = 0; i < bytes; i++) {
        count += data[i] == byte;
    }
    return count;
}
