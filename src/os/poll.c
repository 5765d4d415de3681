/* SPDX-License-Identifier: Apache-2.0 */
/* Many descriptors over epoll(7). */
#include "os/poll.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/fault.h"
#include "os/simulate.h"

#define READY_MAX 64

static int32_t look(int poll, int wait_ms, struct gar_poll_ready *out, int32_t count);

enum gar_status gar_poll_open(int *out_poll, struct gar_error *err)
{
    int code = gar_os_fault_hit(GAR_OS_EVENT_FD);
    if (code == 0) {
        const int poll = epoll_create1(EPOLL_CLOEXEC);
        if (poll >= 0) {
            *out_poll = poll;
            return GAR_OK;
        }
        code = errno;
    }
    return gar_error_set_errno(
        err, code, "cannot open a poll descriptor; close files or raise the limit (ulimit -n)");
}

void gar_poll_close(int poll)
{
    if (poll >= 0) {
        (void)close(poll);
    }
}

enum gar_status gar_poll_add(int poll, int fd, uint32_t events, void *owner, struct gar_error *err)
{
    struct epoll_event event = {.events = ((events & GAR_POLL_READ) != 0 ? EPOLLIN : 0u) |
                                          ((events & GAR_POLL_WRITE) != 0 ? EPOLLOUT : 0u),
                                .data.ptr = owner};
    if (epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) != 0) {
        return gar_error_set_errno(err, errno, "cannot watch a descriptor");
    }
    return GAR_OK;
}

void gar_poll_remove(int poll, int fd)
{
    (void)epoll_ctl(poll, EPOLL_CTL_DEL, fd, NULL);
}

/* Look, and let simulated time pass until there is something to see. */
static int32_t simulated_wait(const struct gar_simulation *simulation, int poll,
                              int64_t deadline_ns, struct gar_poll_ready *out, int32_t count)
{
    for (;;) {
        const int32_t found = look(poll, 0, out, count);
        if (found > 0 || deadline_ns == 0 ||
            simulation->wait(&gar_simulated_descriptors, deadline_ns) != GAR_SIMULATED_WOKEN) {
            return found;
        }
    }
}

int32_t gar_poll_wait(int poll, int64_t deadline_ns, struct gar_poll_ready *out, int32_t count)
{
    const struct gar_simulation *simulation = gar_simulation();
    if (GAR_UNLIKELY(simulation != NULL)) {
        return simulated_wait(simulation, poll, deadline_ns, out, count);
    }
    int wait_ms = -1;
    if (deadline_ns == 0) {
        wait_ms = 0;
    } else if (deadline_ns != GAR_CLOCK_NEVER) {
        const int64_t left_ns = gar_max_i64(deadline_ns - gar_clock_ns(), 0);
        const int64_t left_ms = (left_ns + GAR_NS_PER_MS - 1) / GAR_NS_PER_MS;
        wait_ms = (int)gar_min_i64(left_ms, INT32_MAX);
    }
    return look(poll, wait_ms, out, count);
}

static int32_t look(int poll, int wait_ms, struct gar_poll_ready *out, int32_t count)
{
    struct epoll_event events[READY_MAX];
    const int found = epoll_wait(poll, events, (int)gar_min_i64(count, READY_MAX), wait_ms);
    for (int i = 0; i < found; i++) {
        const uint32_t got = events[i].events;
        out[i].owner = events[i].data.ptr;
        out[i].events =
            ((got & EPOLLIN) != 0 || (got & EPOLLHUP) != 0 ? (uint32_t)GAR_POLL_READ : 0u) |
            ((got & EPOLLOUT) != 0 ? (uint32_t)GAR_POLL_WRITE : 0u) |
            ((got & (EPOLLHUP | EPOLLERR)) != 0 ? (uint32_t)GAR_POLL_HANGUP : 0u);
    }
    return found > 0 ? found : 0;
}
