/* SPDX-License-Identifier: Apache-2.0 */
/* Terminals by ioctl. */
#include "os/terminal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool gar_terminal_is(int fd)
{
    if (isatty(fd) == 0) {
        return false;
    }
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes the environment while the engine runs */
    const char *kind = getenv("TERM");
    const pid_t foreground = tcgetpgrp(fd); /* fails when it is not our controlling terminal */
    return (kind == NULL || strcmp(kind, "dumb") != 0) &&
           (foreground < 0 || foreground == getpgrp());
}

int32_t gar_terminal_columns(int fd)
{
    struct winsize size;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? (int32_t)size.ws_col : 80;
}

void gar_terminal_write(int fd, const char *data, int64_t bytes)
{
    while (bytes > 0) {
        const ssize_t written = write(fd, data, (size_t)bytes);
        if (written < 0 && errno != EINTR) {
            return;
        }
        if (written > 0) {
            data += written;
            bytes -= written;
        }
    }
}
