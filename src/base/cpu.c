/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the processor's features once, then lets the environment lower the level. */
#include "base/cpu.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* -1 until read. Relaxed: every thread that reads the machine finds the same. */
static atomic_int isa_in_force = -1;

static enum gar_isa machine_isa(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    const bool has_lzcnt =
        __get_cpuid(0x80000001u, &eax, &ebx, &ecx, &edx) != 0 && (ecx & (1u << 5)) != 0;
    if (!has_lzcnt || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi") ||
        !__builtin_cpu_supports("bmi2") || !__builtin_cpu_supports("popcnt") ||
        !__builtin_cpu_supports("fma")) {
        return GAR_ISA_PORTABLE;
    }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2")) {
        return GAR_ISA_AVX512;
    }
    return GAR_ISA_AVX2;
#else
    return GAR_ISA_PORTABLE;
#endif
}

/* What the machine and GAR_ISA allow. An unknown word in the variable changes nothing. */
static enum gar_isa allowed_isa(void)
{
    const enum gar_isa best = machine_isa();
    const char *wish = getenv("GAR_ISA");
    for (int i = GAR_ISA_PORTABLE; wish != NULL && i < (int)best; i++) {
        if (strcmp(wish, gar_isa_name((enum gar_isa)i)) == 0) {
            return (enum gar_isa)i;
        }
    }
    return best;
}

enum gar_isa gar_cpu_isa(void)
{
    int isa = atomic_load_explicit(&isa_in_force, memory_order_relaxed);
    if (GAR_UNLIKELY(isa < 0)) {
        isa = (int)allowed_isa();
        atomic_store_explicit(&isa_in_force, isa, memory_order_relaxed);
    }
    return (enum gar_isa)isa;
}

enum gar_isa gar_cpu_set_isa(enum gar_isa isa)
{
    const enum gar_isa best = machine_isa();
    const enum gar_isa chosen = isa < best ? isa : best;
    atomic_store_explicit(&isa_in_force, (int)chosen, memory_order_relaxed);
    return chosen;
}

const char *gar_isa_name(enum gar_isa isa)
{
    switch (isa) {
    case GAR_ISA_PORTABLE: return "portable";
    case GAR_ISA_AVX2: return "avx2";
    case GAR_ISA_AVX512: return "avx512";
    }
    return "unknown";
}
