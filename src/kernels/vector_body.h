/* SPDX-License-Identifier: Apache-2.0 */
/* The body of the vector kernels, compiled once for each instruction set by vector_portable.c, vector_avx2.c and
 * vector_avx512.c, which define GAR_BODY_ISA and GAR_BODY_TABLE and, for the wider sets, GAR_BODY_AVX2 or GAR_BODY_AVX512.
 * Plain loops that compilers vectorise; intrinsics only where they do not. */

/* --- arithmetic ------------------------------------------------------------------------------------------------- */

/* One function for each shape; LOAD_A and LOAD_B read lane i or the single value. */
#define SHAPES(MACRO, ...)                     \
    MACRO(vv, (a[i]), (b[i]), __VA_ARGS__)     \
    MACRO(vs, (a[i]), (scalar_b), __VA_ARGS__) \
    MACRO(sv, (scalar_a), (b[i]), __VA_ARGS__)

/* Sums and differences: the sign of `wrong` says that a lane overflowed. */
#define SUM_FN(shape, A, B, name, type, utype, op, WRONG)                             \
    static bool name##_##shape(const void *pa, const void *pb, void *pout, int64_t n) \
    {                                                                                 \
        const type *a = pa;                                                           \
        const type *b = pb;                                                           \
        type *out = pout;                                                             \
        const type scalar_a = a[0];                                                   \
        const type scalar_b = b[0];                                                   \
        (void)scalar_a;                                                               \
        (void)scalar_b;                                                               \
        utype wrong = 0;                                                              \
        for (int64_t i = 0; i < n; i++) {                                             \
            const utype x = (utype)A;                                                 \
            const utype y = (utype)B;                                                 \
            const utype r = (utype)(x op y);                                          \
            wrong = (utype)(wrong | (WRONG));                                         \
            out[i] = (type)r;                                                         \
        }                                                                             \
        return (wrong >> (8 * sizeof(type) - 1)) != 0;                                \
    }

#define PRODUCT_FN(shape, A, B, name, type, wide)                                     \
    static bool name##_##shape(const void *pa, const void *pb, void *pout, int64_t n) \
    {                                                                                 \
        const type *a = pa;                                                           \
        const type *b = pb;                                                           \
        type *out = pout;                                                             \
        const type scalar_a = a[0];                                                   \
        const type scalar_b = b[0];                                                   \
        (void)scalar_a;                                                               \
        (void)scalar_b;                                                               \
        wide wrong = 0;                                                               \
        for (int64_t i = 0; i < n; i++) {                                             \
            const wide r = (wide)((wide)A * (wide)B);                                 \
            const type kept = (type)r;                                                \
            wrong = (wide)(wrong | (wide)(r ^ (wide)kept));                           \
            out[i] = kept;                                                            \
        }                                                                             \
        return wrong != 0;                                                            \
    }

/* 64-bit products have no wider lane: look at the sizes first, multiply without a check when they allow it. */
#define PRODUCT64_FN(shape, A, B, name, type, utype, BITS)                                 \
    static bool name##_##shape(const void *pa, const void *pb, void *pout, int64_t n)      \
    {                                                                                      \
        const type *a = pa;                                                                \
        const type *b = pb;                                                                \
        type *out = pout;                                                                  \
        const type scalar_a = a[0];                                                        \
        const type scalar_b = b[0];                                                        \
        (void)scalar_a;                                                                    \
        (void)scalar_b;                                                                    \
        utype a_bits = 0;                                                                  \
        utype b_bits = 0;                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                  \
            const type x = A;                                                              \
            const type y = B;                                                              \
            a_bits |= BITS(x);                                                             \
            b_bits |= BITS(y);                                                             \
        }                                                                                  \
        const int32_t width = (64 - gar_clz64(a_bits | 1)) + (64 - gar_clz64(b_bits | 1)); \
        if (width <= 62) {                                                                 \
            for (int64_t i = 0; i < n; i++) {                                              \
                out[i] = (type)((utype)A * (utype)B);                                      \
            }                                                                              \
            return false;                                                                  \
        }                                                                                  \
        bool wrong = false;                                                                \
        for (int64_t i = 0; i < n; i++) {                                                  \
            type r;                                                                        \
            wrong |= __builtin_mul_overflow(A, B, &r);                                     \
            out[i] = r;                                                                    \
        }                                                                                  \
        return wrong;                                                                      \
    }

#define FLOAT_FN(shape, A, B, name, type, op)                                         \
    static bool name##_##shape(const void *pa, const void *pb, void *pout, int64_t n) \
    {                                                                                 \
        const type *a = pa;                                                           \
        const type *b = pb;                                                           \
        type *out = pout;                                                             \
        const type scalar_a = a[0];                                                   \
        const type scalar_b = b[0];                                                   \
        (void)scalar_a;                                                               \
        (void)scalar_b;                                                               \
        for (int64_t i = 0; i < n; i++) {                                             \
            out[i] = A op B;                                                          \
        }                                                                             \
        return false;                                                                 \
    }

#define SIGNED_LANE(tag, type, utype)                            \
    SHAPES(SUM_FN, add_##tag, type, utype, +, (x ^ r) & (y ^ r)) \
    SHAPES(SUM_FN, sub_##tag, type, utype, -, (x ^ y) & (x ^ r))
#define UNSIGNED_LANE(tag, type)                                       \
    SHAPES(SUM_FN, add_##tag, type, type, +, (x & y) | ((x | y) & ~r)) \
    SHAPES(SUM_FN, sub_##tag, type, type, -, (~x & y) | ((~x | y) & r))
#define FLOAT_LANE(tag, type)            \
    SHAPES(FLOAT_FN, add_##tag, type, +) \
    SHAPES(FLOAT_FN, sub_##tag, type, -) \
    SHAPES(FLOAT_FN, mul_##tag, type, *) \
    SHAPES(FLOAT_FN, div_##tag, type, /)
#define SIGNED_BITS(v)   ((uint64_t)((v) ^ ((v) >> 63)))
#define UNSIGNED_BITS(v) (v)

SIGNED_LANE(i8, int8_t, uint8_t)
SIGNED_LANE(i16, int16_t, uint16_t)
SIGNED_LANE(i32, int32_t, uint32_t)
SIGNED_LANE(i64, int64_t, uint64_t)
UNSIGNED_LANE(u8, uint8_t)
UNSIGNED_LANE(u16, uint16_t)
UNSIGNED_LANE(u32, uint32_t)
UNSIGNED_LANE(u64, uint64_t)
SHAPES(PRODUCT_FN, mul_i8, int8_t, int32_t)
SHAPES(PRODUCT_FN, mul_i16, int16_t, int32_t)
SHAPES(PRODUCT_FN, mul_i32, int32_t, int64_t)
SHAPES(PRODUCT_FN, mul_u8, uint8_t, uint32_t)
SHAPES(PRODUCT_FN, mul_u16, uint16_t, uint32_t)
SHAPES(PRODUCT_FN, mul_u32, uint32_t, uint64_t)
SHAPES(PRODUCT64_FN, mul_i64, int64_t, uint64_t, SIGNED_BITS)
SHAPES(PRODUCT64_FN, mul_u64, uint64_t, uint64_t, UNSIGNED_BITS)
FLOAT_LANE(f32, float)
FLOAT_LANE(f64, double)

#define MUL_UNCHECKED_FN(shape, A, B, name)                                                 \
    static void name##_##shape(const int64_t *a, const int64_t *b, int64_t *out, int64_t n) \
    {                                                                                       \
        const int64_t scalar_a = a[0];                                                      \
        const int64_t scalar_b = b[0];                                                      \
        (void)scalar_a;                                                                     \
        (void)scalar_b;                                                                     \
        for (int64_t i = 0; i < n; i++) {                                                   \
            out[i] = (int64_t)((uint64_t)A * (uint64_t)B);                                  \
        }                                                                                   \
    }
SHAPES(MUL_UNCHECKED_FN, mul_unchecked)

/* --- comparison: bytes 0 or 1 first, then packed ----------------------------------------------------------------- */

GAR_INLINE uint64_t pack_bytes(const uint8_t *flags)
{
#if defined(GAR_BODY_AVX512)
    const __m512i v = _mm512_loadu_si512(flags);
    return _mm512_test_epi8_mask(v, v);
#elif defined(GAR_BODY_AVX2)
    const __m256i zero = _mm256_setzero_si256();
    const __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)flags);
    const __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(flags + 32));
    const uint32_t low_bits = (uint32_t)_mm256_movemask_epi8(_mm256_cmpgt_epi8(low, zero));
    const uint32_t high_bits = (uint32_t)_mm256_movemask_epi8(_mm256_cmpgt_epi8(high, zero));
    return low_bits | (uint64_t)high_bits << 32;
#else
    uint64_t bits = 0;
    for (int32_t k = 0; k < 8; k++) {
        /* the multiplication gathers the low bits of eight bytes in the top byte */
        bits |= ((gar_load_u64(flags + 8 * k) * UINT64_C(0x0102040810204080)) >> 56) << (8 * k);
    }
    return bits;
#endif
}

#define COMPARE_FN(name, type, op, B, PREPARE)                                  \
    static void name(const void *pa, const void *pb, uint64_t *bits, int64_t n) \
    {                                                                           \
        const type *a = pa;                                                     \
        const type *b = pb;                                                     \
        PREPARE                                                                 \
        int64_t i = 0;                                                          \
        for (; i + 64 <= n; i += 64) {                                          \
            uint8_t flags[64];                                                  \
            for (int64_t k = 0; k < 64; k++) {                                  \
                flags[k] = a[i + k] op B(i + k);                                \
            }                                                                   \
            bits[i >> 6] = pack_bytes(flags);                                   \
        }                                                                       \
        if (i < n) {                                                            \
            uint64_t word = 0;                                                  \
            for (int64_t k = 0; i + k < n; k++) {                               \
                word |= (uint64_t)(a[i + k] op B(i + k)) << k;                  \
            }                                                                   \
            bits[i >> 6] = word;                                                \
        }                                                                       \
    }

#define VECTOR_B(k) b[k]
#define SCALAR_B(k) scalar_b
#define COMPARE_LANE(tag, type)                                                \
    COMPARE_FN(eq_##tag##_vv, type, ==, VECTOR_B, )                            \
    COMPARE_FN(lt_##tag##_vv, type, <, VECTOR_B, )                             \
    COMPARE_FN(le_##tag##_vv, type, <=, VECTOR_B, )                            \
    COMPARE_FN(eq_##tag##_vs, type, ==, SCALAR_B, const type scalar_b = b[0];) \
    COMPARE_FN(lt_##tag##_vs, type, <, SCALAR_B, const type scalar_b = b[0];)  \
    COMPARE_FN(le_##tag##_vs, type, <=, SCALAR_B, const type scalar_b = b[0];) \
    COMPARE_FN(gt_##tag##_vs, type, >, SCALAR_B, const type scalar_b = b[0];)  \
    COMPARE_FN(ge_##tag##_vs, type, >=, SCALAR_B, const type scalar_b = b[0];)

COMPARE_LANE(i8, int8_t)
COMPARE_LANE(i16, int16_t)
COMPARE_LANE(i32, int32_t)
COMPARE_LANE(i64, int64_t)
COMPARE_LANE(u8, uint8_t)
COMPARE_LANE(u16, uint16_t)
COMPARE_LANE(u32, uint32_t)
COMPARE_LANE(u64, uint64_t)
COMPARE_LANE(f32, float)
COMPARE_LANE(f64, double)

#define BETWEEN_FN(name, type, utype)                                               \
    static void name(const type *a, type low, type high, uint64_t *bits, int64_t n) \
    {                                                                               \
        if (low > high) {                                                           \
            memset(bits, 0, (size_t)((n + 63) / 64) * 8);                           \
            return;                                                                 \
        }                                                                           \
        const utype first = (utype)low;                                             \
        const utype span = (utype)((utype)high - first);                            \
        int64_t i = 0;                                                              \
        for (; i + 64 <= n; i += 64) {                                              \
            uint8_t flags[64];                                                      \
            for (int64_t k = 0; k < 64; k++) {                                      \
                flags[k] = (utype)((utype)a[i + k] - first) <= span;                \
            }                                                                       \
            bits[i >> 6] = pack_bytes(flags);                                       \
        }                                                                           \
        if (i < n) {                                                                \
            uint64_t word = 0;                                                      \
            for (int64_t k = 0; i + k < n; k++) {                                   \
                word |= (uint64_t)((utype)((utype)a[i + k] - first) <= span) << k;  \
            }                                                                       \
            bits[i >> 6] = word;                                                    \
        }                                                                           \
    }
BETWEEN_FN(between_i32, int32_t, uint32_t)
BETWEEN_FN(between_i64, int64_t, uint64_t)

/* --- selections --------------------------------------------------------------------------------------------------- */

static int64_t select_bits(const uint64_t *bits, int64_t n, uint32_t base, uint32_t *out)
{
    uint32_t *next = out;
#if defined(GAR_BODY_AVX512)
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (int64_t i = 0; i < n; i += 64) {
        uint64_t word = bits[i >> 6];
        uint32_t row = base + (uint32_t)i;
        while (word != 0) {
            const __mmask16 mask = (__mmask16)word;
            const __m512i rows = _mm512_add_epi32(_mm512_set1_epi32((int32_t)row), lanes);
            /* compress in the register and store whole: compressing stores are slow on some processors */
            _mm512_storeu_si512(next, _mm512_maskz_compress_epi32(mask, rows));
            next += __builtin_popcount(mask);
            word >>= 16;
            row += 16;
        }
    }
#else
    for (int64_t i = 0; i < n; i += 64) {
        uint64_t word = bits[i >> 6];
        const uint32_t row = base + (uint32_t)i;
        if (word == UINT64_MAX) {
            for (uint32_t k = 0; k < 64; k++) {
                next[k] = row + k;
            }
            next += 64;
            continue;
        }
        while (word != 0) {
            *next++ = row + (uint32_t)gar_ctz64(word);
            word &= word - 1;
        }
    }
#endif
    return next - out;
}

static int64_t select_rows(const uint64_t *bits, int64_t n, const uint32_t *rows, uint32_t *out)
{
    uint32_t *next = out;
#if defined(GAR_BODY_AVX512)
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 mask = (__mmask16)(bits[i >> 6] >> (i & 63));
        const __m512i chosen =
            _mm512_maskz_compress_epi32(mask, _mm512_maskz_loadu_epi32(mask, rows + i));
        _mm512_storeu_si512(next, chosen);
        next += __builtin_popcount(mask);
    }
#else
    for (int64_t i = 0; i < n; i += 64) {
        uint64_t word = bits[i >> 6];
        while (word != 0) {
            *next++ = rows[i + gar_ctz64(word)];
            word &= word - 1;
        }
    }
#endif
    return next - out;
}

/* --- decimals ----------------------------------------------------------------------------------------------------- */

static uint64_t bound_of(uint64_t bits)
{
    return bits == 0 ? 0 : UINT64_MAX >> gar_clz64(bits);
}

static bool narrow(const gar_i128 *in, int64_t *out, int64_t n, uint64_t *out_bound)
{
    const int64_t *halves = (const int64_t *)(const void *)in;
    uint64_t wide = 0;
    uint64_t bits = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t low = halves[2 * i];
        const int64_t sign = low >> 63;
        wide |= (uint64_t)(halves[2 * i + 1] ^ sign);
        bits |= (uint64_t)(low ^ sign);
        out[i] = low;
    }
    *out_bound = bound_of(bits) + 1; /* -2^k has the bits of 2^k - 1 */
    return wide == 0;
}

static void widen(const int64_t *in, gar_i128 *out, int64_t n)
{
    int64_t *halves = (int64_t *)(void *)out;
    for (int64_t i = 0; i < n; i++) {
        halves[2 * i] = in[i];
        halves[2 * i + 1] = in[i] >> 63;
    }
}

static uint64_t bound(const int64_t *in, int64_t n)
{
    uint64_t bits = 0;
    for (int64_t i = 0; i < n; i++) {
        bits |= (uint64_t)(in[i] ^ (in[i] >> 63));
    }
    return bound_of(bits) + 1;
}

/* --- gathers ------------------------------------------------------------------------------------------------------ */

#define GATHER_FN(name, type)                                                        \
    static void name(const type *values, const uint32_t *rows, type *out, int64_t n) \
    {                                                                                \
        for (int64_t i = 0; i < n; i++) {                                            \
            out[i] = values[rows[i]];                                                \
        }                                                                            \
    }
GATHER_FN(gather8, uint8_t)
GATHER_FN(gather16, uint16_t)
GATHER_FN(gather32_any, uint32_t)
GATHER_FN(gather64_any, uint64_t)

/* Tables of up to 32 or 16 entries lie in two registers and are looked up there. */
static void gather32(const uint32_t *values, int64_t count, const uint32_t *rows, uint32_t *out,
                     int64_t n)
{
    int64_t i = 0;
#if defined(GAR_BODY_AVX512)
    if (count <= 32) {
        const uint32_t mask = count == 32 ? UINT32_MAX : (1u << count) - 1;
        const __m512i low = _mm512_maskz_loadu_epi32((__mmask16)mask, values);
        const __m512i high = _mm512_maskz_loadu_epi32((__mmask16)(mask >> 16), values + 16);
        for (; i + 16 <= n; i += 16) {
            const __m512i at = _mm512_loadu_si512(rows + i);
            _mm512_storeu_si512(out + i, _mm512_permutex2var_epi32(low, at, high));
        }
    } else {
        for (; i + 16 <= n; i += 16) {
            _mm512_storeu_si512(out + i,
                                _mm512_i32gather_epi32(_mm512_loadu_si512(rows + i), values, 4));
        }
    }
#else
    (void)count;
#endif
    gather32_any(values, rows + i, out + i, n - i);
}

static void gather64(const uint64_t *values, int64_t count, const uint32_t *rows, uint64_t *out,
                     int64_t n)
{
    int64_t i = 0;
#if defined(GAR_BODY_AVX512)
    if (count <= 16) {
        const uint32_t mask = (1u << count) - 1;
        const __m512i low = _mm512_maskz_loadu_epi64((__mmask8)mask, values);
        const __m512i high = _mm512_maskz_loadu_epi64((__mmask8)(mask >> 8), values + 8);
        for (; i + 8 <= n; i += 8) {
            const __m512i at = _mm512_cvtepu32_epi64(
                _mm256_loadu_si256((const __m256i *)(const void *)(rows + i)));
            _mm512_storeu_si512(out + i, _mm512_permutex2var_epi64(low, at, high));
        }
    } else {
        for (; i + 8 <= n; i += 8) {
            const __m256i at = _mm256_loadu_si256((const __m256i *)(const void *)(rows + i));
            _mm512_storeu_si512(out + i, _mm512_i32gather_epi64(at, values, 8));
        }
    }
#else
    (void)count;
#endif
    gather64_any(values, rows + i, out + i, n - i);
}

static void gather_flags(const uint8_t *flags, const uint32_t *rows, uint64_t *bits, int64_t n)
{
    int64_t i = 0;
    for (; i + 64 <= n; i += 64) {
        uint8_t found[64];
        for (int64_t k = 0; k < 64; k++) {
            found[k] = flags[rows[i + k]];
        }
        bits[i >> 6] = pack_bytes(found);
    }
    if (i < n) {
        uint64_t word = 0;
        for (int64_t k = 0; i + k < n; k++) {
            word |= (uint64_t)flags[rows[i + k]] << k;
        }
        bits[i >> 6] = word;
    }
}

#if defined(GAR_BODY_AVX512)
/* Up to 512 flags as bits of one register; rows are a multiple of 64. */
static void gather_few_flags(const uint8_t *flags, int64_t count, const uint32_t *rows,
                             uint64_t *bits, int64_t n)
{
    uint64_t words[8] = {0};
    for (int64_t i = 0; i < count; i++) {
        words[i >> 6] |= (uint64_t)flags[i] << (i & 63);
    }
    const __m512i table = _mm512_loadu_si512(words);
    const __m512i one = _mm512_set1_epi32(1);
    const __m512i low = _mm512_set1_epi32(31);
    for (int64_t i = 0; i < n; i += 64) {
        uint64_t word = 0;
        for (int32_t k = 0; k < 64; k += 16) {
            const __m512i row = _mm512_loadu_si512(rows + i + k);
            const __m512i found = _mm512_permutexvar_epi32(_mm512_srli_epi32(row, 5), table);
            const __m512i shifted = _mm512_srlv_epi32(found, _mm512_and_si512(row, low));
            word |= (uint64_t)_mm512_test_epi32_mask(shifted, one) << k;
        }
        bits[i >> 6] = word;
    }
}
#endif

static void gather_bits(const uint8_t *flags, int64_t count, const uint32_t *rows, uint64_t *bits,
                        int64_t n)
{
    int64_t i = 0;
#if defined(GAR_BODY_AVX512)
    if (count <= 512 && count < n) {
        i = n / 64 * 64;
        gather_few_flags(flags, count, rows, bits, i);
    }
#else
    (void)count;
#endif
    gather_flags(flags, rows + i, bits + i / 64, n - i);
}

/* --- widths ------------------------------------------------------------------------------------------------------- */

#define WIDTH_FN(tag, type)                                              \
    static void to_i64_##tag(const void *pin, int64_t *out, int64_t n)   \
    {                                                                    \
        const type *in = pin;                                            \
        for (int64_t i = 0; i < n; i++) {                                \
            out[i] = (int64_t)in[i];                                     \
        }                                                                \
    }                                                                    \
    static bool from_i64_##tag(const int64_t *in, void *pout, int64_t n) \
    {                                                                    \
        type *out = pout;                                                \
        int64_t lost = 0;                                                \
        for (int64_t i = 0; i < n; i++) {                                \
            const type kept = (type)in[i];                               \
            lost |= in[i] ^ (int64_t)kept;                               \
            out[i] = kept;                                               \
        }                                                                \
        return lost != 0;                                                \
    }
WIDTH_FN(i8, int8_t)
WIDTH_FN(i16, int16_t)
WIDTH_FN(i32, int32_t)
WIDTH_FN(u8, uint8_t)
WIDTH_FN(u16, uint16_t)
WIDTH_FN(u32, uint32_t)

/* --- texts -------------------------------------------------------------------------------------------------------- */

/* Pairs of words, as views are: bit i = pairs[i] is (low, high) where masked bits count. */
static void equal_pairs(const uint64_t *pairs, uint64_t low, uint64_t low_mask, uint64_t high,
                        uint64_t high_mask, uint64_t *bits, int64_t n)
{
    int64_t i = 0;
    low &= low_mask;
    high &= high_mask;
#if defined(GAR_BODY_AVX512)
    const int64_t l = (int64_t)low;
    const int64_t h = (int64_t)high;
    const int64_t lm = (int64_t)low_mask;
    const int64_t hm = (int64_t)high_mask;
    const __m512i want = _mm512_setr_epi64(l, h, l, h, l, h, l, h);
    const __m512i keep = _mm512_setr_epi64(lm, hm, lm, hm, lm, hm, lm, hm);
    for (; i + 64 <= n; i += 64) {
        uint64_t word = 0;
        for (int32_t k = 0; k < 64; k += 8) {
            const uint64_t *p = pairs + 2 * (i + k);
            const __m512i a = _mm512_and_si512(_mm512_loadu_si512(p), keep);
            const __m512i b = _mm512_and_si512(_mm512_loadu_si512(p + 8), keep);
            const uint32_t same = (uint32_t)_mm512_cmpeq_epi64_mask(a, want) |
                                  (uint32_t)_mm512_cmpeq_epi64_mask(b, want) << 8;
            word |= (uint64_t)_pext_u32(same & same >> 1, 0x5555) << k;
        }
        bits[i >> 6] = word;
    }
#endif
    for (; i < n; i += 64) {
        uint64_t word = 0;
        const int64_t count = n - i < 64 ? n - i : 64;
        for (int64_t k = 0; k < count; k++) {
            const uint64_t *p = pairs + 2 * (i + k);
            const uint64_t wrong = ((p[0] & low_mask) ^ low) | ((p[1] & high_mask) ^ high);
            word |= (uint64_t)(wrong == 0) << k;
        }
        bits[i >> 6] = word;
    }
}

/* First place of a part of at least two bytes: places where its first and last byte stand at the right distance are looked at. */
static int64_t find_part(const uint8_t *text, int64_t bytes, const uint8_t *part,
                         int64_t part_bytes)
{
    const int64_t places = bytes - part_bytes + 1;
    int64_t i = 0;
#if defined(GAR_BODY_AVX512)
    const __m512i first = _mm512_set1_epi8((char)part[0]);
    const __m512i last = _mm512_set1_epi8((char)part[part_bytes - 1]);
    for (; i < places; i += 64) {
        const uint64_t left = places - i >= 64 ? UINT64_MAX : (UINT64_C(1) << (places - i)) - 1;
        const __m512i a = _mm512_maskz_loadu_epi8(left, text + i);
        const __m512i b = _mm512_maskz_loadu_epi8(left, text + i + part_bytes - 1);
        uint64_t hits =
            _mm512_mask_cmpeq_epi8_mask(_mm512_cmpeq_epi8_mask(a, first), b, last) & left;
        while (hits != 0) {
            const int64_t at = i + gar_ctz64(hits);
            if (memcmp(text + at + 1, part + 1, (size_t)part_bytes - 2) == 0) {
                return at;
            }
            hits &= hits - 1;
        }
    }
    return -1;
#elif defined(GAR_BODY_AVX2)
    const __m256i first = _mm256_set1_epi8((char)part[0]);
    const __m256i last = _mm256_set1_epi8((char)part[part_bytes - 1]);
    for (; i + 32 <= places; i += 32) {
        const __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)(text + i));
        const __m256i b =
            _mm256_loadu_si256((const __m256i *)(const void *)(text + i + part_bytes - 1));
        const __m256i both =
            _mm256_and_si256(_mm256_cmpeq_epi8(a, first), _mm256_cmpeq_epi8(b, last));
        uint32_t hits = (uint32_t)_mm256_movemask_epi8(both);
        while (hits != 0) {
            const int64_t at = i + gar_ctz64(hits);
            if (memcmp(text + at + 1, part + 1, (size_t)part_bytes - 2) == 0) {
                return at;
            }
            hits &= hits - 1;
        }
    }
    for (; i < places; i++) {
        if (text[i] == part[0] && text[i + part_bytes - 1] == part[part_bytes - 1] &&
            memcmp(text + i + 1, part + 1, (size_t)part_bytes - 2) == 0) {
            return i;
        }
    }
    return -1;
#else
    (void)places;
    (void)i;
    const uint8_t *found = memmem(text, (size_t)bytes, part, (size_t)part_bytes);
    return found == NULL ? -1 : found - text;
#endif
}

/* Letters first .. first + 25 get their other case; true if all bytes are ASCII. Eight bytes a step: adding to the low
 * seven bits of each byte carries into its top bit where the byte is large enough. */
GAR_INLINE uint64_t flip_eight(uint64_t x, uint64_t first)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t low = x & (0x7f * ones);
    const uint64_t from_first = low + (0x80 - first) * ones;
    const uint64_t from_behind = low + (0x80 - first - 26) * ones;
    return x ^ ((~x & (from_first ^ from_behind) & (0x80 * ones)) >> 2);
}

static bool flip_case(const uint8_t *GAR_RESTRICT text, uint8_t *GAR_RESTRICT out, int64_t bytes,
                      uint8_t first)
{
    uint64_t high = 0;
    int64_t i = 0;
    for (; i + 8 <= bytes; i += 8) {
        const uint64_t x = gar_load_u64(text + i);
        high |= x;
        gar_store_u64(out + i, flip_eight(x, first));
    }
    if (i < bytes && bytes >= 8) { /* the last eight once more */
        const uint64_t x = gar_load_u64(text + bytes - 8);
        high |= x;
        gar_store_u64(out + bytes - 8, flip_eight(x, first));
    } else if (i < bytes) {
        uint64_t x = 0;
        memcpy(&x, text, (size_t)bytes);
        high |= x;
        const uint64_t flipped = flip_eight(x, first);
        memcpy(out, &flipped, (size_t)bytes);
    }
    return (high & UINT64_C(0x8080808080808080)) == 0;
}

/* --- dates and doubles -------------------------------------------------------------------------------------------- */

#define CIVIL_FN(name, member)                                     \
    static void name(const int32_t *days, int32_t *out, int64_t n) \
    {                                                              \
        for (int64_t i = 0; i < n; i++) {                          \
            out[i] = civil_of(days[i]).member;                     \
        }                                                          \
    }
CIVIL_FN(civil_year, year)
CIVIL_FN(civil_month, month)
CIVIL_FN(civil_day, day)

static bool days_of_ticks(const int64_t *ticks, int64_t per_day, int32_t *out, int64_t n)
{
    int64_t lost = 0;
#if defined(GAR_BODY_AVX512)
    /* the estimate is off by less than one: ticks have 63 bits and the quotient is far below 2^52 for any unit that
     * passes the check at the end, whose remainder then says which way */
    const double inverse = 1.0 / (double)per_day;
    for (int64_t i = 0; i < n; i++) {
        int64_t q = (int64_t)((double)ticks[i] * inverse);
        const int64_t rest = (int64_t)((uint64_t)ticks[i] - (uint64_t)q * (uint64_t)per_day);
        q -= rest < 0 ? 1 : 0;
        q += rest >= per_day ? 1 : 0;
        out[i] = (int32_t)q;
        lost |= q ^ out[i];
    }
#else
    for (int64_t i = 0; i < n; i++) {
        const int64_t t = ticks[i];
        const int64_t q = t / per_day - (t % per_day < 0 ? 1 : 0);
        out[i] = (int32_t)q;
        lost |= q ^ out[i];
    }
#endif
    return lost == 0;
}

static void divide_to_double(const int64_t *in, double unit, double *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        out[i] = (double)in[i] / unit;
    }
}

static void i64_to_double(const int64_t *in, double *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        out[i] = (double)in[i];
    }
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

#define ARITH_ROW(op)                                             \
    {                                                             \
        [GAR_LANE_I8] = {op##_i8_vv, op##_i8_vs, op##_i8_sv},     \
        [GAR_LANE_I16] = {op##_i16_vv, op##_i16_vs, op##_i16_sv}, \
        [GAR_LANE_I32] = {op##_i32_vv, op##_i32_vs, op##_i32_sv}, \
        [GAR_LANE_I64] = {op##_i64_vv, op##_i64_vs, op##_i64_sv}, \
        [GAR_LANE_U8] = {op##_u8_vv, op##_u8_vs, op##_u8_sv},     \
        [GAR_LANE_U16] = {op##_u16_vv, op##_u16_vs, op##_u16_sv}, \
        [GAR_LANE_U32] = {op##_u32_vv, op##_u32_vs, op##_u32_sv}, \
        [GAR_LANE_U64] = {op##_u64_vv, op##_u64_vs, op##_u64_sv}, \
        [GAR_LANE_F32] = {op##_f32_vv, op##_f32_vs, op##_f32_sv}, \
        [GAR_LANE_F64] = {op##_f64_vv, op##_f64_vs, op##_f64_sv}, \
    }
#define COMPARE_ROW(op, SECOND)                                             \
    {                                                                       \
        [GAR_LANE_I8] = SECOND(op, i8), [GAR_LANE_I16] = SECOND(op, i16),   \
        [GAR_LANE_I32] = SECOND(op, i32), [GAR_LANE_I64] = SECOND(op, i64), \
        [GAR_LANE_U8] = SECOND(op, u8), [GAR_LANE_U16] = SECOND(op, u16),   \
        [GAR_LANE_U32] = SECOND(op, u32), [GAR_LANE_U64] = SECOND(op, u64), \
        [GAR_LANE_F32] = SECOND(op, f32), [GAR_LANE_F64] = SECOND(op, f64), \
    }
#define BOTH_SHAPES(op, tag)             \
    {                                    \
        op##_##tag##_vv, op##_##tag##_vs \
    }
#define SCALAR_SHAPE(op, tag) \
    {                         \
        NULL, op##_##tag##_vs \
    }

const struct gar_vector_kernels GAR_BODY_TABLE = {
    .isa = GAR_BODY_ISA,
    .arith =
        {
            [GAR_ARITH_ADD] = ARITH_ROW(add),
            [GAR_ARITH_SUB] = ARITH_ROW(sub),
            [GAR_ARITH_MUL] = ARITH_ROW(mul),
            [GAR_ARITH_DIV] = {[GAR_LANE_F32] = {div_f32_vv, div_f32_vs, div_f32_sv},
                               [GAR_LANE_F64] = {div_f64_vv, div_f64_vs, div_f64_sv}},
        },
    .compare =
        {
            [GAR_COMPARE_EQ] = COMPARE_ROW(eq, BOTH_SHAPES),
            [GAR_COMPARE_LT] = COMPARE_ROW(lt, BOTH_SHAPES),
            [GAR_COMPARE_LE] = COMPARE_ROW(le, BOTH_SHAPES),
            [GAR_COMPARE_GT] = COMPARE_ROW(gt, SCALAR_SHAPE),
            [GAR_COMPARE_GE] = COMPARE_ROW(ge, SCALAR_SHAPE),
        },
    .between_i32 = between_i32,
    .between_i64 = between_i64,
    .select = select_bits,
    .select_rows = select_rows,
    .narrow = narrow,
    .widen = widen,
    .bound = bound,
    .mul_unchecked = {mul_unchecked_vv, mul_unchecked_vs, mul_unchecked_sv},
    .gather8 = gather8,
    .gather16 = gather16,
    .gather32 = gather32,
    .gather64 = gather64,
    .gather_bits = gather_bits,
    .equal_pairs = equal_pairs,
    .find_part = find_part,
    .flip_case = flip_case,
    .civil = {civil_year, civil_month, civil_day},
    .days_of_ticks = days_of_ticks,
    .divide_to_double = divide_to_double,
    .i64_to_double = i64_to_double,
    .to_i64 = {[GAR_LANE_I8] = to_i64_i8,
               [GAR_LANE_I16] = to_i64_i16,
               [GAR_LANE_I32] = to_i64_i32,
               [GAR_LANE_U8] = to_i64_u8,
               [GAR_LANE_U16] = to_i64_u16,
               [GAR_LANE_U32] = to_i64_u32},
    .from_i64 = {[GAR_LANE_I8] = from_i64_i8,
                 [GAR_LANE_I16] = from_i64_i16,
                 [GAR_LANE_I32] = from_i64_i32,
                 [GAR_LANE_U8] = from_i64_u8,
                 [GAR_LANE_U16] = from_i64_u16,
                 [GAR_LANE_U32] = from_i64_u32},
};
