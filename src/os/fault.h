/* SPDX-License-Identifier: Apache-2.0 */
/* Faults on demand: tests let the n-th system call of a kind fail. Off by default; then a call costs one load. */
#ifndef GAR_OS_FAULT_H
#define GAR_OS_FAULT_H

#include "base/attrs.h"

enum gar_os_call {
    GAR_OS_OPEN,
    GAR_OS_CLOSE,
    GAR_OS_READ,
    GAR_OS_WRITE,
    GAR_OS_SYNC,
    GAR_OS_STAT,
    GAR_OS_RENAME,
    GAR_OS_UNLINK,
    GAR_OS_MKDIR,
    GAR_OS_LIST,
    GAR_OS_THREAD,
    GAR_OS_MAP,
    GAR_OS_EVENT_FD,
    GAR_OS_SOCKET,
    GAR_OS_PROCESS,
    GAR_OS_CALL_COUNT,
};

struct gar_os_fault {
    enum gar_os_call call;
    int64_t nth;  /* 1 = the next; 0 = none: only count */
    bool and_on;  /* all after it too */
    int os_errno; /* what it fails with; EINTR: is retried by the caller as from the system */
    int64_t short_bytes; /* > 0 and os_errno 0: reads and writes move at most so many bytes */
};

/* NULL switches off. Threads: set only while no other thread makes such calls. */
void gar_os_fault_set(const struct gar_os_fault *fault);
/* Calls of the set kind since gar_os_fault_set. */
int64_t gar_os_fault_calls(void);
/* For os/ and tests: 0, or the errno this call must fail with. */
int gar_os_fault_hit(enum gar_os_call call);
/* For os/: bytes cut to what the fault allows. */
int64_t gar_os_fault_cut(enum gar_os_call call, int64_t bytes);

#endif
