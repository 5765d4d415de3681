/* SPDX-License-Identifier: Apache-2.0 */
/* Event descriptors over eventfd(2). */
#include "os/event_fd.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/fault.h"
#include "os/simulate.h"

enum gar_status gar_event_fd_open(int *out_fd, struct gar_error *err)
{
    int code = gar_os_fault_hit(GAR_OS_EVENT_FD);
    if (code == 0) {
        const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (fd >= 0) {
            *out_fd = fd;
            return GAR_OK;
        }
        code = errno;
    }
    return gar_error_set_errno(
        err, code, "cannot open an event descriptor; close files or raise the limit (ulimit -n)");
}

void gar_event_fd_signal(int fd)
{
    const uint64_t one = 1;
    ssize_t code;
    do {
        code = write(fd, &one, sizeof one);
    } while (code < 0 && errno == EINTR);
    /* EAGAIN: the counter is at its limit, so it is readable already. */
    const struct gar_simulation *simulation = gar_simulation();
    if (GAR_UNLIKELY(simulation != NULL)) {
        simulation->wake(&gar_simulated_descriptors, true);
    }
}

void gar_event_fd_clear(int fd)
{
    uint64_t count;
    ssize_t code;
    do {
        code = read(fd, &count, sizeof count);
    } while (code < 0 && errno == EINTR);
}

void gar_event_fd_close(int fd)
{
    if (fd >= 0) {
        (void)close(fd);
    }
}

/* Look, and let simulated time pass until there is something to see. */
static enum gar_status simulated_wait(const struct gar_simulation *simulation, int fd,
                                      int64_t deadline_ns)
{
    struct pollfd one = {.fd = fd, .events = POLLIN, .revents = 0};
    for (;;) {
        if (poll(&one, 1, 0) > 0) {
            return GAR_OK;
        }
        if (simulation->wait(&gar_simulated_descriptors, deadline_ns) != GAR_SIMULATED_WOKEN) {
            return GAR_PENDING;
        }
    }
}

enum gar_status gar_event_fd_wait(int fd, int64_t deadline_ns)
{
    const struct gar_simulation *simulation = gar_simulation();
    if (GAR_UNLIKELY(simulation != NULL)) {
        return simulated_wait(simulation, fd, deadline_ns);
    }
    struct pollfd one = {.fd = fd, .events = POLLIN, .revents = 0};
    struct timespec left = {0, 0};
    if (deadline_ns != GAR_CLOCK_NEVER) {
        const int64_t left_ns = gar_max_i64(deadline_ns - gar_clock_ns(), 0);
        left.tv_sec = left_ns / GAR_NS_PER_S;
        left.tv_nsec = left_ns % GAR_NS_PER_S;
    }
    return ppoll(&one, 1, deadline_ns == GAR_CLOCK_NEVER ? NULL : &left, NULL) > 0 ? GAR_OK
                                                                                   : GAR_PENDING;
}
