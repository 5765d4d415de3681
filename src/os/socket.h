/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of connected descriptors: message sockets and pipes. All are close-on-exec. */
#ifndef GAR_OS_SOCKET_H
#define GAR_OS_SOCKET_H

#include "base/attrs.h"
#include "base/error.h"

/* A pair that keeps message borders and order (SOCK_SEQPACKET); [0] does not block, [1] does. Errors: GAR_ERR_IO. */
GAR_MUST_USE enum gar_status gar_socket_pair(int out_fds[2], struct gar_error *err);
/* A pipe; [0] is read and does not block, [1] is written and blocks. Errors: GAR_ERR_IO. */
GAR_MUST_USE enum gar_status gar_pipe_open(int out_fds[2], struct gar_error *err);
/* < 0 is fine. */
void gar_fd_close(int fd);
/* A copy of fd at a number of at least `from`, close-on-exec; fd is closed in any case. -1 with errno. */
int gar_fd_move_up(int fd, int from);

/* One whole message. GAR_OK; GAR_PENDING: no room now; GAR_EOF: nobody reads any more. */
enum gar_status gar_socket_send(int fd, const void *data, int64_t bytes);
/* GAR_OK: *out_bytes is what the message had (more than `bytes`: it was cut); GAR_PENDING: nothing there (or a signal
 * came); GAR_EOF: the other end is closed. may_wait: sleep until something comes. */
enum gar_status gar_socket_receive(int fd, void *out, int64_t bytes, bool may_wait,
                                   int64_t *out_bytes);
/* Bytes of a pipe that does not block: > 0; 0: the end; -1: nothing there now. */
int64_t gar_pipe_read(int fd, void *out, int64_t bytes);

#endif
