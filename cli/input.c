/* SPDX-License-Identifier: Apache-2.0 */
/* Files and standard input as frames. */
#include "input.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define WAIT_MS 50

static volatile sig_atomic_t signal_number;

static void on_signal(int number)
{
    signal_number = number;
}

int input_signal(void)
{
    return signal_number;
}

int input_interrupted(void *context)
{
    (void)context;
    return signal_number != 0;
}

void input_install_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = (int)SA_RESETHAND;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction before;
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) {
            (void)sigaction(numbers[i], &action, NULL);
        }
    }
    action.sa_handler = SIG_IGN; /* a closed pipe shows as EPIPE */
    action.sa_flags = 0;
    (void)sigaction(SIGPIPE, &action, NULL);
    (void)sigaction(SIGXFSZ, &action, NULL); /* so does a file that may not grow, as EFBIG */
}

void input_run_options(struct gar_run_options *options)
{
    gar_run_options_init(options);
    options->interrupted = input_interrupted;
}

/* ---- the format of standard input ---- */

enum { MAGIC_BYTES = 4 };

/* Until there is something to read, or its end. */
static enum gar_status wait_for_input(struct gar_error *err)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    while (poll(&input, 1, WAIT_MS) <= 0) {
        if (input_interrupted(NULL)) {
            err->status = GAR_ERR_INTERRUPTED;
            return GAR_ERR_INTERRUPTED;
        }
    }
    return GAR_OK;
}

/* Copy what a pipe holds first, without taking it: tee(2) into another pipe. */
static ssize_t peek_pipe(char *out)
{
    int copy[2];
    if (pipe2(copy, O_CLOEXEC) != 0) {
        return -1;
    }
    ssize_t got = tee(STDIN_FILENO, copy[1], MAGIC_BYTES, 0);
    if (got > 0) {
        got = read(copy[0], out, MAGIC_BYTES);
    }
    (void)close(copy[0]);
    (void)close(copy[1]);
    return got;
}

/* The first bytes of standard input stay there for who reads it. What cannot be looked at is taken for CSV. A Parquet file's
 * writer hands out its first bytes at once, so that fewer bytes than those of the magic mean CSV too. */
static enum gar_status is_stdin_parquet(bool *out, struct gar_error *err)
{
    char head[MAGIC_BYTES] = {0};
    struct stat info;
    ssize_t got = -1;
    *out = false;
    if (fstat(STDIN_FILENO, &info) != 0) {
        return GAR_OK; /* the reader has the words for it */
    }
    if (S_ISREG(info.st_mode)) {
        got = pread(STDIN_FILENO, head, MAGIC_BYTES, lseek(STDIN_FILENO, 0, SEEK_CUR));
    } else if (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode)) {
        const enum gar_status status = wait_for_input(err);
        if (status != GAR_OK) {
            return status;
        }
        got = S_ISFIFO(info.st_mode) ? peek_pipe(head)
                                     : recv(STDIN_FILENO, head, MAGIC_BYTES, MSG_PEEK);
    }
    *out = got == MAGIC_BYTES && memcmp(head, "PAR1", MAGIC_BYTES) == 0;
    return GAR_OK;
}

/* ---- files ---- */

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
                                struct gar_frame **out, struct gar_error *err)
{
    const char *first = arguments->files[0];
    struct gar_csv_options options;
    gar_csv_options_init(&options);
    options.has_header = !arguments->no_header;
    options.interrupted = input_interrupted;
    if (arguments->delimiter != 0) {
        options.delimiter = arguments->delimiter;
    } else if (ends_with(first, ".tsv") || ends_with(first, ".tsv.gz") ||
               ends_with(first, ".tsv.zst")) {
        options.delimiter = '\t';
    }
    return gar_frame_read_csv(session, arguments->files, arguments->file_count, &options, out, err);
}

enum gar_status input_find_format(const struct arguments *arguments, bool *out_is_csv,
                                  struct gar_error *err)
{
    if (arguments->input_format != NULL) {
        *out_is_csv = strcmp(arguments->input_format, "csv") == 0;
        return GAR_OK;
    }
    if (strcmp(arguments->files[0], "-") != 0) {
        *out_is_csv = looks_like_csv(arguments->files[0]);
        return GAR_OK;
    }
    bool is_parquet = false;
    const enum gar_status status = is_stdin_parquet(&is_parquet, err);
    *out_is_csv = !is_parquet;
    return status;
}

enum gar_status input_open(struct gar_session *session, const struct arguments *arguments,
                           bool is_csv, struct gar_frame **out, struct gar_error *err)
{
    if (is_csv) {
        return open_csv(session, arguments, out, err);
    }
    struct gar_parquet_options options;
    gar_parquet_options_init(&options);
    options.interrupted = input_interrupted;
    return gar_frame_read_parquet(session, arguments->files, arguments->file_count, &options, out,
                                  err);
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
