/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of the C library, for LD_PRELOAD: memory that runs out at random, a clock that jumps.
 *   FAULT_MALLOC=SEED:N  each allocation fails with a chance of 1 in N, after the first 50
 *   FAULT_CLOCK=1        the time of day jumps an hour ahead and back; the monotonic clock is right */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);

static uint64_t chance; /* 0: off */
static uint64_t state;
static uint64_t calls;
static int clock_jumps;

__attribute__((constructor)) static void read_settings(void)
{
    const char *text = getenv("FAULT_MALLOC");
    if (text != NULL) {
        char *end = NULL;
        state = strtoull(text, &end, 10) * 2 + 1;
        chance = *end == ':' ? strtoull(end + 1, NULL, 10) : 0;
    }
    clock_jumps = getenv("FAULT_CLOCK") != NULL;
}

static int must_fail(void)
{
    if (chance == 0 || __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) <= 50) {
        return 0;
    }
    uint64_t x = __atomic_fetch_add(&state, UINT64_C(0x9e3779b97f4a7c15), __ATOMIC_RELAXED);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (x ^ (x >> 31)) % chance == 0;
}

void *malloc(size_t bytes)
{
    if (must_fail()) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    if (must_fail()) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    if (must_fail()) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_realloc(old, bytes);
}

int clock_gettime(clockid_t id, struct timespec *out)
{
    static uint64_t asked;
    const int code = (int)syscall(SYS_clock_gettime, id, out);
    if (clock_jumps && code == 0 && id == CLOCK_REALTIME) {
        const uint64_t n = __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED);
        out->tv_sec += n % 3 == 0 ? 3600 : n % 3 == 1 ? -3600 : 0;
    }
    return code;
}
