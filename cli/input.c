/* SPDX-License-Identifier: Apache-2.0 */
/* Files and standard input as frames. */
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t interrupt_count;

static void on_interrupt(int number)
{
    (void)number;
    interrupt_count = 1;
}

int input_interrupted(void *context)
{
    (void)context;
    return interrupt_count != 0;
}

void input_install_signals(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_interrupt;
    (void)sigaction(SIGINT, &action, NULL);
    action.sa_handler = SIG_IGN; /* a closed pipe shows as EPIPE */
    (void)sigaction(SIGPIPE, &action, NULL);
}

void input_run_options(struct gar_run_options *options)
{
    gar_run_options_init(options);
    options->interrupted = input_interrupted;
}

static enum gar_status fail_errno(struct gar_error *err, const char *what)
{
    err->status = GAR_ERR_IO;
    err->os_errno = errno;
    (void)snprintf(err->message, sizeof err->message, "%s: %s", what, strerror(errno));
    return GAR_ERR_IO;
}

static enum gar_status write_all(int fd, const char *data, ssize_t bytes, struct gar_error *err)
{
    while (bytes > 0) {
        const ssize_t written = write(fd, data, (size_t)bytes);
        if (written < 0 && errno != EINTR) {
            return fail_errno(err,
                              "cannot keep standard input in a temporary file (TMPDIR says where)");
        }
        if (written > 0) {
            data += written;
            bytes -= written;
        }
    }
    return GAR_OK;
}

/* Copy standard input into an unlinked file; path gets a name under which this process can open it. */
static enum gar_status spool_stdin(char *path, size_t path_bytes, bool *out_is_parquet,
                                   struct gar_error *err)
{
    const char *folder = getenv("TMPDIR");
    const int fd = open(folder != NULL && folder[0] != '\0' ? folder : "/tmp",
                        O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) {
        return fail_errno(err,
                          "cannot make a temporary file for standard input (TMPDIR says where)");
    }
    static char block[1 << 16];
    int64_t total = 0;
    *out_is_parquet = false;
    for (;;) {
        const ssize_t got = read(STDIN_FILENO, block, sizeof block);
        if (input_interrupted(NULL)) {
            return GAR_ERR_INTERRUPTED;
        }
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return fail_errno(err, "cannot read standard input");
        }
        if (got == 0) {
            break;
        }
        if (total == 0 && got >= 4) {
            *out_is_parquet = memcmp(block, "PAR1", 4) == 0;
        }
        const enum gar_status status = write_all(fd, block, got, err);
        if (status != GAR_OK) {
            return status;
        }
        total += got;
    }
    (void)snprintf(path, path_bytes, "/proc/self/fd/%d", fd);
    return GAR_OK;
}

static bool ends_with(const char *text, const char *suffix)
{
    const size_t n = strlen(text);
    const size_t m = strlen(suffix);
    return n >= m && strcmp(text + n - m, suffix) == 0;
}

static bool looks_like_csv(const char *path)
{
    static const char *const suffixes[] = {".csv",    ".csv.gz",  ".csv.zst", ".tsv",
                                           ".tsv.gz", ".tsv.zst", ".txt"};
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        if (ends_with(path, suffixes[i])) {
            return true;
        }
    }
    return false;
}

static enum gar_status open_csv(struct gar_session *session, const struct arguments *arguments,
                                const char *const *paths, int64_t count, struct gar_frame **out,
                                struct gar_error *err)
{
    struct gar_csv_options options;
    gar_csv_options_init(&options);
    options.has_header = !arguments->no_header;
    if (arguments->delimiter != 0) {
        options.delimiter = arguments->delimiter;
    } else if (ends_with(paths[0], ".tsv")) {
        options.delimiter = '\t';
    }
    return gar_frame_read_csv(session, paths, count, &options, out, err);
}

enum gar_status input_open(struct gar_session *session, const struct arguments *arguments,
                           int64_t file_count, struct gar_frame **out, struct gar_error *err)
{
    static char spooled[64];
    const char **paths = arguments->files;
    bool is_csv = looks_like_csv(paths[0]);
    for (int64_t i = 0; i < file_count; i++) {
        if (strcmp(paths[i], "-") == 0) {
            bool is_parquet = false;
            if (spooled[0] != '\0') {
                err->status = GAR_ERR_VALUE;
                (void)snprintf(err->message, sizeof err->message,
                               "standard input (-) can be named only once");
                return GAR_ERR_VALUE;
            }
            const enum gar_status status = spool_stdin(spooled, sizeof spooled, &is_parquet, err);
            if (status != GAR_OK) {
                return status;
            }
            paths[i] = spooled;
            is_csv = i == 0 ? !is_parquet : is_csv;
        }
    }
    if (arguments->input_format != NULL) {
        is_csv = strcmp(arguments->input_format, "csv") == 0;
    }
    if (is_csv) {
        return open_csv(session, arguments, paths, file_count, out, err);
    }
    return gar_frame_read_parquet(session, paths, file_count, NULL, out, err);
}

static enum gar_status apply_where(struct gar_frame **frame, const char *where,
                                   struct gar_error *err)
{
    struct gar_expr *predicate = NULL;
    struct gar_frame *filtered = NULL;
    enum gar_status status = gar_expr_parse(where, (int64_t)strlen(where), *frame, &predicate, err);
    if (status == GAR_OK) {
        status = gar_frame_where(*frame, predicate, &filtered, err);
        gar_expr_release(predicate);
    }
    if (status == GAR_OK) {
        gar_frame_release(*frame);
        *frame = filtered;
    }
    return status;
}

static enum gar_status apply_select(struct gar_frame **frame, const char *select,
                                    struct gar_error *err)
{
    struct gar_expr **exprs = NULL;
    int64_t count = 0;
    struct gar_frame *selected = NULL;
    enum gar_status status =
        gar_expr_parse_list(select, (int64_t)strlen(select), *frame, &exprs, &count, err);
    if (status == GAR_OK) {
        status = gar_frame_select(*frame, exprs, count, &selected, err);
        gar_expr_list_free(exprs, count);
    }
    if (status == GAR_OK) {
        gar_frame_release(*frame);
        *frame = selected;
    }
    return status;
}

enum gar_status input_refine(struct gar_frame *frame, const struct arguments *arguments,
                             int64_t limit, struct gar_frame **out, struct gar_error *err)
{
    enum gar_status status = GAR_OK;
    if (arguments->where != NULL) {
        status = apply_where(&frame, arguments->where, err);
    }
    if (status == GAR_OK && arguments->select != NULL) {
        status = apply_select(&frame, arguments->select, err);
    }
    if (status == GAR_OK && limit >= 0) {
        struct gar_frame *limited = NULL;
        status = gar_frame_limit(frame, 0, limit, &limited, err);
        if (status == GAR_OK) {
            gar_frame_release(frame);
            frame = limited;
        }
    }
    if (status != GAR_OK) {
        gar_frame_release(frame);
        return status;
    }
    *out = frame;
    return GAR_OK;
}
