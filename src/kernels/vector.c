/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing the vector kernels, and the closer look at lanes that may have overflowed. */
#include "kernels/vector.h"

#include <string.h>

#include "kernels/vector_priv.h"

const struct gar_vector_kernels *gar_vector_kernels_for(enum gar_isa isa)
{
    switch (isa) {
    case GAR_ISA_PORTABLE: return &gar_vector_kernels_portable;
#if defined(__x86_64__)
    case GAR_ISA_AVX2: return &gar_vector_kernels_avx2;
    case GAR_ISA_AVX512: return &gar_vector_kernels_avx512;
#else
    case GAR_ISA_AVX2:
    case GAR_ISA_AVX512: return NULL;
#endif
    }
    return NULL;
}

const struct gar_vector_kernels *gar_vector_kernels(void)
{
    const struct gar_vector_kernels *kernels = gar_vector_kernels_for(gar_cpu_isa());
    return kernels != NULL ? kernels : &gar_vector_kernels_portable;
}

#define OVERFLOW_CASE(lane_id, type)                                 \
    case lane_id: {                                                  \
        type x;                                                      \
        type y;                                                      \
        type r;                                                      \
        memcpy(&x, a, sizeof x);                                     \
        memcpy(&y, b, sizeof y);                                     \
        switch (op) {                                                \
        case GAR_ARITH_ADD: return __builtin_add_overflow(x, y, &r); \
        case GAR_ARITH_SUB: return __builtin_sub_overflow(x, y, &r); \
        case GAR_ARITH_MUL: return __builtin_mul_overflow(x, y, &r); \
        case GAR_ARITH_DIV:                                          \
        case GAR_ARITH_COUNT: return false;                          \
        }                                                            \
        return false;                                                \
    }

bool gar_arith_overflows(enum gar_arith op, enum gar_lane lane, const void *a, const void *b)
{
    switch (lane) {
        OVERFLOW_CASE(GAR_LANE_I8, int8_t)
        OVERFLOW_CASE(GAR_LANE_I16, int16_t)
        OVERFLOW_CASE(GAR_LANE_I32, int32_t)
        OVERFLOW_CASE(GAR_LANE_I64, int64_t)
        OVERFLOW_CASE(GAR_LANE_U8, uint8_t)
        OVERFLOW_CASE(GAR_LANE_U16, uint16_t)
        OVERFLOW_CASE(GAR_LANE_U32, uint32_t)
        OVERFLOW_CASE(GAR_LANE_U64, uint64_t)
    case GAR_LANE_F32:
    case GAR_LANE_F64:
    case GAR_LANE_COUNT: return false;
    }
    return false;
}
