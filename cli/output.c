/* SPDX-License-Identifier: Apache-2.0 */
/* Rows and tables on standard output; a full or closed output is noticed at once. */
#include "output.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "input.h"

#define WAIT_MS 50

static bool is_closed;
static int last_errno;

bool output_is_closed(void)
{
    return is_closed;
}

int output_errno(void)
{
    return last_errno;
}

/* How many of the bytes can be written without being stuck for long, 0 after Ctrl-C. A pipe whose reader sleeps is
 * asked every WAIT_MS, so that an interrupt is seen whenever it comes; it then takes PIPE_BUF bytes. */
static int64_t writable_bytes(int64_t bytes)
{
    static int is_pipe = -1;
    struct stat info;
    if (is_pipe < 0) {
        is_pipe =
            fstat(STDOUT_FILENO, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
    }
    while (is_pipe != 0 && !input_interrupted(NULL)) {
        struct pollfd output = {.fd = STDOUT_FILENO, .events = POLLOUT};
        if (poll(&output, 1, WAIT_MS) > 0) {
            bytes = bytes < PIPE_BUF ? bytes : PIPE_BUF;
            break;
        }
    }
    return input_interrupted(NULL) ? 0 : bytes;
}

int output_write(const char *data, int64_t bytes, void *context)
{
    (void)context;
    while (bytes > 0) {
        const int64_t part = writable_bytes(bytes);
        if (part == 0) {
            return EINTR;
        }
        const ssize_t written = write(STDOUT_FILENO, data, (size_t)part);
        if (written < 0) {
            if (errno == EINTR || errno == EAGAIN) {
                continue;
            }
            is_closed = errno == EPIPE;
            last_errno = errno;
            return errno == 0 ? EIO : errno;
        }
        data += written;
        bytes -= written;
    }
    return 0;
}

static enum gar_status write_text(const char *text, struct gar_error *err)
{
    const int failed = output_write(text, (int64_t)strlen(text), NULL);
    if (failed == 0) {
        return GAR_OK;
    }
    err->status = GAR_ERR_IO;
    err->os_errno = failed;
    (void)snprintf(err->message, sizeof err->message, "cannot write to standard output: %s",
                   strerror(failed));
    return GAR_ERR_IO;
}

/* Columns of the terminal; 0 (no bound) when the output is a file or a pipe. */
static int64_t terminal_width(void)
{
    struct winsize size;
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
        return size.ws_col;
    }
    return 0;
}

static enum gar_status print_table(const struct gar_frame *frame, int64_t max_rows,
                                   struct gar_error *err)
{
    struct gar_run_options run;
    input_run_options(&run);
    struct gar_frame *collected = NULL;
    enum gar_status status = gar_frame_collect(frame, &run, &collected, err);
    if (status != GAR_OK) {
        return status;
    }
    struct gar_table_options options;
    gar_table_options_init(&options);
    options.max_rows = max_rows;
    options.max_width = terminal_width();
    options.total_rows = gar_frame_known_rows(collected);
    char *text = NULL;
    status = gar_frame_to_table(collected, GAR_FORMAT_TABLE, &options, &text, err);
    gar_frame_release(collected);
    if (status == GAR_OK) {
        status = write_text(text, err);
        gar_text_free(text);
    }
    return status;
}

enum gar_status output_frame(const struct gar_frame *frame, enum output_format format,
                             int64_t max_rows, struct gar_error *err)
{
    if (format == OUTPUT_TABLE) {
        return print_table(frame, max_rows, err);
    }
    struct gar_run_options run;
    input_run_options(&run);
    return gar_frame_write_text(frame, format == OUTPUT_CSV ? GAR_FORMAT_CSV : GAR_FORMAT_JSON,
                                &run, output_write, NULL, err);
}
