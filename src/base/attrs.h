/* SPDX-License-Identifier: Apache-2.0 */
/* The only place for compiler extensions: attributes, thread-safety annotations, likely hints. */
#ifndef GAR_BASE_ATTRS_H
#define GAR_BASE_ATTRS_H

#include <gar/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GAR_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define GAR_DEFER(fn)         __attribute__((cleanup(fn))) /* memory and references, never locks */
#define GAR_LIKELY(x)         __builtin_expect(!!(x), 1)
#define GAR_UNLIKELY(x)       __builtin_expect(!!(x), 0)
#define GAR_INLINE            static inline __attribute__((always_inline))
#define GAR_NOINLINE          __attribute__((noinline))
#define GAR_UNUSED            __attribute__((unused))
#define GAR_RESTRICT          __restrict__
#define GAR_TARGET(isa)       __attribute__((target(isa)))
#define GAR_ALIGNED(n)        __attribute__((aligned(n)))
#define GAR_CACHE_LINE        64

#if defined(__clang__)
#define GAR_TSA(x) __attribute__((x))
#else
#define GAR_TSA(x)
#endif
#define GAR_CAPABILITY(name) GAR_TSA(capability(name))
#define GAR_GUARDED          GAR_TSA(guarded_var)
#define GAR_ACQUIRES(...)    GAR_TSA(acquire_capability(__VA_ARGS__))
#define GAR_RELEASES(...)    GAR_TSA(release_capability(__VA_ARGS__))
#define GAR_REQUIRES(...)    GAR_TSA(requires_capability(__VA_ARGS__))
#define GAR_EXCLUDES(...)    GAR_TSA(locks_excluded(__VA_ARGS__))
#define GAR_ASSERTS(...)     GAR_TSA(assert_capability(__VA_ARGS__))
#define GAR_NO_TSA           GAR_TSA(no_thread_safety_analysis)

#define GAR_COUNT_OF(array) ((int64_t)(sizeof(array) / sizeof((array)[0])))

GAR_INLINE int64_t gar_min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

GAR_INLINE int64_t gar_max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
