/* SPDX-License-Identifier: Apache-2.0 */
/* The fault hook: one fault at a time, counted with an atomic. */
#include "os/fault.h"

#include <errno.h>

static struct gar_os_fault current;
static int32_t is_on;
static int64_t calls;

void gar_os_fault_set(const struct gar_os_fault *fault)
{
    __atomic_store_n(&is_on, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&calls, 0, __ATOMIC_SEQ_CST);
    if (fault != NULL) {
        current = *fault;
        __atomic_store_n(&is_on, 1, __ATOMIC_SEQ_CST);
    }
}

int64_t gar_os_fault_calls(void)
{
    return __atomic_load_n(&calls, __ATOMIC_SEQ_CST);
}

int gar_os_fault_hit(enum gar_os_call call)
{
    if (GAR_LIKELY(__atomic_load_n(&is_on, __ATOMIC_ACQUIRE) == 0) || current.call != call) {
        return 0;
    }
    const int64_t n = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
    if (current.nth <= 0 || n < current.nth || (n > current.nth && !current.and_on)) {
        return 0;
    }
    /* A call that is retried after EINTR must get through at its second try. */
    if (current.os_errno == EINTR && (n - current.nth) % 2 != 0) {
        return 0;
    }
    return current.os_errno;
}

int64_t gar_os_fault_cut(enum gar_os_call call, int64_t bytes)
{
    if (GAR_LIKELY(__atomic_load_n(&is_on, __ATOMIC_ACQUIRE) == 0) || current.call != call ||
        current.short_bytes <= 0) {
        return bytes;
    }
    return gar_min_i64(bytes, current.short_bytes);
}
