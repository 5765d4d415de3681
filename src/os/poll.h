/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for many descriptors at once. */
#ifndef GAR_OS_POLL_H
#define GAR_OS_POLL_H

#include "base/attrs.h"
#include "base/error.h"

enum gar_poll_event {
    GAR_POLL_READ = 1,   /* readable, or its other end is gone */
    GAR_POLL_WRITE = 2,  /* writable */
    GAR_POLL_HANGUP = 4, /* comes unasked: the other end is gone, or an error waits */
};

struct gar_poll_ready {
    void *owner;
    uint32_t events; /* bits of enum gar_poll_event */
};

/* Close-on-exec. Errors: GAR_ERR_IO. Owns: close with gar_poll_close. */
GAR_MUST_USE enum gar_status gar_poll_open(int *out_poll, struct gar_error *err);
/* < 0 is fine. */
void gar_poll_close(int poll);
/* Level-triggered: it is told again until the owner has read. Errors: GAR_ERR_IO. */
GAR_MUST_USE enum gar_status gar_poll_add(int poll, int fd, uint32_t events, void *owner,
                                          struct gar_error *err);
/* Before fd is closed. */
void gar_poll_remove(int poll, int fd);
/* Until something is ready or deadline_ns (gar_clock_ns; 0: do not wait) has passed. Returns the number of items of out. */
int32_t gar_poll_wait(int poll, int64_t deadline_ns, struct gar_poll_ready *out, int32_t count);

#endif
