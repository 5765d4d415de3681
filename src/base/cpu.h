/* SPDX-License-Identifier: Apache-2.0 */
/* What the processor can do; read once. GAR_ISA=portable|avx2|avx512 in the environment lowers it for tests. */
#ifndef GAR_BASE_CPU_H
#define GAR_BASE_CPU_H

#include "base/attrs.h"

enum gar_isa {
    GAR_ISA_PORTABLE, /* x86-64 baseline or any other machine */
    GAR_ISA_AVX2,     /* AVX2, BMI1, BMI2, POPCNT, LZCNT, FMA */
    GAR_ISA_AVX512,   /* F, BW, DQ, VL, VBMI, VBMI2 */
};

/* The best level that processor and environment allow. Threads: any. */
enum gar_isa gar_cpu_isa(void);
/* Lower (never raise beyond the machine) the level at run time; for tests of each variant. Returns the level in force. */
enum gar_isa gar_cpu_set_isa(enum gar_isa isa);
const char *gar_isa_name(enum gar_isa isa);

#endif
