/* SPDX-License-Identifier: Apache-2.0 */
/* SIGXFSZ, which the kernel sends to a thread that lets a file grow beyond RLIMIT_FSIZE, and which ends a process that does not
 * ignore it. A library reports an error (EFBIG) instead: the signal is held back around the call and taken away. Engine threads
 * block it for good; this is for calls on threads of the host. */
#ifndef GAR_OS_SIZE_SIGNAL_PRIV_H
#define GAR_OS_SIZE_SIGNAL_PRIV_H

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

struct gar_size_signal {
    sigset_t only;
    sigset_t before;
};

static inline void gar_size_signal_hold(struct gar_size_signal *held)
{
    (void)sigemptyset(&held->only);
    (void)sigaddset(&held->only, SIGXFSZ);
    (void)pthread_sigmask(SIG_BLOCK, &held->only, &held->before);
}

/* Keeps errno. A signal that the host itself blocks is the host's. */
static inline void gar_size_signal_release(const struct gar_size_signal *held)
{
    const int code = errno;
    if (sigismember(&held->before, SIGXFSZ) == 0) {
        static const struct timespec now = {0};
        while (sigtimedwait(&held->only, NULL, &now) < 0 && errno == EINTR) {
        }
        (void)pthread_sigmask(SIG_SETMASK, &held->before, NULL);
    }
    errno = code;
}

#endif
