/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the instruction sets. */
#ifndef GAR_KERNELS_VECTOR_PRIV_H
#define GAR_KERNELS_VECTOR_PRIV_H

#include "kernels/vector.h"

extern const struct gar_vector_kernels gar_vector_kernels_portable;
#if defined(__x86_64__)
extern const struct gar_vector_kernels gar_vector_kernels_avx2;
extern const struct gar_vector_kernels gar_vector_kernels_avx512;
#endif

#endif
