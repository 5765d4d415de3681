/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels over vectors of up to GAR_VECTOR_ROWS values: arithmetic, comparison, decimal widths, gathers, selections.
 *
 * Each instruction set has a full table made from one body (vector_body.h). Kernels take raw pointers, never look at nulls
 * and never fail: integer arithmetic tells whether any lane overflowed and the caller looks closer.
 * Bitmaps are 64-bit words, bit i of the vector is bit i % 64 of word i / 64; bits at and beyond n are written 0.
 * Threads: any. Owns: nothing. */
#ifndef GAR_KERNELS_VECTOR_H
#define GAR_KERNELS_VECTOR_H

#include "base/attrs.h"
#include "base/cpu.h"
#include "base/int128.h"

#define GAR_VECTOR_ROWS  1024
#define GAR_VECTOR_WORDS (GAR_VECTOR_ROWS / 64)

/* How the values of a type lie in memory, as far as arithmetic and comparison care. */
enum gar_lane {
    GAR_LANE_I8,
    GAR_LANE_I16,
    GAR_LANE_I32,
    GAR_LANE_I64,
    GAR_LANE_U8,
    GAR_LANE_U16,
    GAR_LANE_U32,
    GAR_LANE_U64,
    GAR_LANE_F32,
    GAR_LANE_F64,
    GAR_LANE_COUNT
};

/* Which sides are vectors (V) and which a single value (S). */
enum gar_shape { GAR_SHAPE_VV, GAR_SHAPE_VS, GAR_SHAPE_SV, GAR_SHAPE_COUNT };

enum gar_arith { GAR_ARITH_ADD, GAR_ARITH_SUB, GAR_ARITH_MUL, GAR_ARITH_DIV, GAR_ARITH_COUNT };
/* GT and GE exist for shape VS only; swap the sides for VV. */
enum gar_compare {
    GAR_COMPARE_EQ,
    GAR_COMPARE_LT,
    GAR_COMPARE_LE,
    GAR_COMPARE_GT,
    GAR_COMPARE_GE,
    GAR_COMPARE_COUNT
};

/* out[i] = a[i] op b[i]; out may be a or b. True if some lane overflowed (its out is the wrapped value); never for floats. */
typedef bool (*gar_arith_fn)(const void *a, const void *b, void *out, int64_t n);
/* bits = a[i] op b[i], IEEE for floats. */
typedef void (*gar_compare_fn)(const void *a, const void *b, uint64_t *bits, int64_t n);

struct gar_vector_kernels {
    enum gar_isa isa;
    /* DIV is for floats only. NULL where there is none. */
    gar_arith_fn arith[GAR_ARITH_COUNT][GAR_LANE_COUNT][GAR_SHAPE_COUNT];
    /* Shapes VV and VS. NULL where there is none. */
    gar_compare_fn compare[GAR_COMPARE_COUNT][GAR_LANE_COUNT][2];
    /* low <= a[i] <= high. */
    void (*between_i32)(const int32_t *a, int32_t low, int32_t high, uint64_t *bits, int64_t n);
    void (*between_i64)(const int64_t *a, int64_t low, int64_t high, uint64_t *bits, int64_t n);
    /* First rows: out gets base + i for each set bit i, in order; returns how many. Writes up to 16 items beyond. */
    int64_t (*select)(const uint64_t *bits, int64_t n, uint32_t base, uint32_t *out);
    /* out gets rows[i] for each set bit i. Writes up to 16 items beyond; out may be rows. */
    int64_t (*select_rows)(const uint64_t *bits, int64_t n, const uint32_t *rows, uint32_t *out);
    /* Low halves of 128-bit values. False if one does not fit 64 bits (out is then partly written). *out_bound gets a
     * value that no |out[i]| exceeds. */
    bool (*narrow)(const gar_i128 *in, int64_t *out, int64_t n, uint64_t *out_bound);
    void (*widen)(const int64_t *in, gar_i128 *out, int64_t n);
    /* A value that no |in[i]| exceeds. */
    uint64_t (*bound)(const int64_t *in, int64_t n);
    /* Products that the caller knows not to overflow. */
    void (*mul_unchecked[GAR_SHAPE_COUNT])(const int64_t *a, const int64_t *b, int64_t *out,
                                           int64_t n);
    /* out[i] = values[rows[i]]. */
    void (*gather8)(const uint8_t *values, const uint32_t *rows, uint8_t *out, int64_t n);
    void (*gather16)(const uint16_t *values, const uint32_t *rows, uint16_t *out, int64_t n);
    /* values has `count` items; few are looked up in registers. */
    void (*gather32)(const uint32_t *values, int64_t count, const uint32_t *rows, uint32_t *out,
                     int64_t n);
    void (*gather64)(const uint64_t *values, int64_t count, const uint32_t *rows, uint64_t *out,
                     int64_t n);
    /* bits = flags[rows[i]]; flags has `count` bytes of 0 or 1. */
    void (*gather_bits)(const uint8_t *flags, int64_t count, const uint32_t *rows, uint64_t *bits,
                        int64_t n);
    /* Pairs of words, as string views are: bits = pair i is (low, high) in the masked bits. */
    void (*equal_pairs)(const uint64_t *pairs, uint64_t low, uint64_t low_mask, uint64_t high,
                        uint64_t high_mask, uint64_t *bits, int64_t n);
    /* First place of part in text, or -1; 2 <= part_bytes <= bytes. Reads nothing outside of text. */
    int64_t (*find_part)(const uint8_t *text, int64_t bytes, const uint8_t *part,
                         int64_t part_bytes);
    /* ASCII letters from `first` ('a' or 'A') on get their other case; false if some byte is not ASCII. */
    bool (*flip_case)(const uint8_t *text, uint8_t *out, int64_t bytes, uint8_t first);
    /* Year, month, day of days within GAR_CIVIL_DAYS_MIN .. MAX. */
    void (*civil[3])(const int32_t *days, int32_t *out, int64_t n);
    /* Ticks to days, rounded down; false if one leaves int32. */
    bool (*days_of_ticks)(const int64_t *ticks, int64_t per_day, int32_t *out, int64_t n);
    /* (double)in[i] / unit. */
    void (*divide_to_double)(const int64_t *in, double unit, double *out, int64_t n);
    void (*i64_to_double)(const int64_t *in, double *out, int64_t n);
    /* Integers between widths; true if some value did not fit. To and from int64 only. */
    void (*to_i64[GAR_LANE_COUNT])(const void *in, int64_t *out, int64_t n);
    bool (*from_i64[GAR_LANE_COUNT])(const int64_t *in, void *out, int64_t n);
};

/* The table for the processor's level (gar_cpu_isa()). */
const struct gar_vector_kernels *gar_vector_kernels(void);
/* The table for one level, NULL if it was not compiled in. The caller checks that the machine has it. */
const struct gar_vector_kernels *gar_vector_kernels_for(enum gar_isa isa);

/* Does lane i of a checked operation overflow? For the closer look; a and b point at single values. */
bool gar_arith_overflows(enum gar_arith op, enum gar_lane lane, const void *a, const void *b);

#endif
