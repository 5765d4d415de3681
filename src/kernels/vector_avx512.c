/* SPDX-License-Identifier: Apache-2.0 */
/* Vector kernels for AVX-512 (F, BW, DQ, VL). */
#include <string.h>

#include "base/bits.h"
#include "kernels/civil_priv.h"
#include "kernels/vector_priv.h"

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(                                                                 \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi,bmi2,popcnt,lzcnt"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target( \
    "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi,bmi2,popcnt,lzcnt,prefer-vector-width=512")
#endif

#define GAR_BODY_ISA    GAR_ISA_AVX512
#define GAR_BODY_TABLE  gar_vector_kernels_avx512
#define GAR_BODY_AVX512 1
#include "kernels/vector_body.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
