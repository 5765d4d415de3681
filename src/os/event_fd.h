/* SPDX-License-Identifier: Apache-2.0 */
/* Event descriptors: something to poll(2) for, readable while signalled. */
#ifndef GAR_OS_EVENT_FD_H
#define GAR_OS_EVENT_FD_H

#include "base/attrs.h"
#include "base/error.h"

/* Non-blocking, close-on-exec. Errors: GAR_ERR_IO (too many open files). Owns: close with gar_event_fd_close. */
GAR_MUST_USE enum gar_status gar_event_fd_open(int *out_fd, struct gar_error *err);
void gar_event_fd_signal(int fd);
void gar_event_fd_clear(int fd);
/* fd < 0 is fine. */
void gar_event_fd_close(int fd);
/* Wait until fd is readable: GAR_OK; GAR_PENDING after the deadline or when a signal handler ran. */
enum gar_status gar_event_fd_wait(int fd, int64_t deadline_ns);

#endif
