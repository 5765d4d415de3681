/* SPDX-License-Identifier: Apache-2.0 */
/* Message sockets and pipes. */
#include "os/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/fault.h"

static enum gar_status refuse(int code, struct gar_error *err)
{
    return gar_error_set_errno(
        err, code, "cannot open a pair of descriptors; close files or raise the limit (ulimit -n)");
}

enum gar_status gar_socket_pair(int out_fds[2], struct gar_error *err)
{
    const int fault = gar_os_fault_hit(GAR_OS_SOCKET);
    if (fault != 0) {
        return refuse(fault, err);
    }
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, out_fds) != 0) {
        return refuse(errno, err);
    }
    (void)fcntl(out_fds[0], F_SETFL, fcntl(out_fds[0], F_GETFL) | O_NONBLOCK);
    return GAR_OK;
}

enum gar_status gar_pipe_open(int out_fds[2], struct gar_error *err)
{
    const int fault = gar_os_fault_hit(GAR_OS_SOCKET);
    if (fault != 0) {
        return refuse(fault, err);
    }
    if (pipe2(out_fds, O_CLOEXEC) != 0) {
        return refuse(errno, err);
    }
    (void)fcntl(out_fds[0], F_SETFL, fcntl(out_fds[0], F_GETFL) | O_NONBLOCK);
    return GAR_OK;
}

void gar_fd_close(int fd)
{
    if (fd >= 0) {
        (void)close(fd);
    }
}

int gar_fd_move_up(int fd, int from)
{
    if (fd >= from) {
        return fd;
    }
    const int up = fcntl(fd, F_DUPFD_CLOEXEC, from);
    const int code = errno;
    (void)close(fd);
    errno = code;
    return up;
}

enum gar_status gar_socket_send(int fd, const void *data, int64_t bytes)
{
    for (;;) {
        if (send(fd, data, (size_t)bytes, MSG_NOSIGNAL) >= 0) {
            return GAR_OK;
        }
        if (errno == EAGAIN || errno == ENOBUFS) {
            return GAR_PENDING;
        }
        if (errno != EINTR) {
            return GAR_EOF;
        }
    }
}

enum gar_status gar_socket_receive(int fd, void *out, int64_t bytes, bool may_wait,
                                   int64_t *out_bytes)
{
    const ssize_t got = recv(fd, out, (size_t)bytes, (may_wait ? 0 : MSG_DONTWAIT) | MSG_TRUNC);
    if (got > 0) {
        *out_bytes = got;
        return GAR_OK;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return GAR_PENDING;
    }
    return GAR_EOF;
}

int64_t gar_pipe_read(int fd, void *out, int64_t bytes)
{
    for (;;) {
        const ssize_t got = read(fd, out, (size_t)bytes);
        if (got >= 0) {
            return got;
        }
        if (errno != EINTR) {
            return errno == EAGAIN ? -1 : 0;
        }
    }
}
