/* SPDX-License-Identifier: Apache-2.0 */
/* Faults under whole queries, through the public API: the n-th allocation, read, write, open, rename, thread ... fails, for
 * n = 1, 2, ... until nothing is left to fail. Each time the answer is right or one clear error, nothing is left over, the
 * next query is right, and what was written shows its old state or its new one. */
#include "os/fault.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gar/gar.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"

enum { ROWS = 6000, EVEN = ROWS / 2, STEPS_MAX = 20000, HEAP_SLACK_BLOCKS = 32 };

static char root[64];
static struct gar_session *pooled; /* everything runs in the pools */
static struct gar_session *inlined;

struct outcome {
    enum gar_status status;
    int64_t rows;
    struct gar_error error;
};

typedef struct outcome (*operation_fn)(struct gar_session *session);

/* ---- operations ---- */

static const char *path_of(const char *name)
{
    static char path[2][128];
    static int turn;
    turn = 1 - turn;
    (void)snprintf(path[turn], sizeof path[turn], "%s/%s", root, name);
    return path[turn];
}

static enum gar_status open_input(struct gar_session *session, bool is_csv, struct gar_frame **out,
                                  struct gar_error *err)
{
    const char *path = path_of(is_csv ? "in.csv" : "in.parquet");
    return is_csv ? gar_frame_read_csv(session, &path, 1, NULL, out, err)
                  : gar_frame_read_parquet(session, &path, 1, NULL, out, err);
}

static enum gar_status keep_even(const struct gar_frame *frame, struct gar_frame **out,
                                 struct gar_error *err)
{
    struct gar_expr *predicate = NULL;
    enum gar_status status = gar_expr_parse("id % 2 = 0", 10, frame, &predicate, err);
    if (status == GAR_OK) {
        status = gar_frame_where(frame, predicate, out, err);
        gar_expr_release(predicate);
    }
    return status;
}

enum shape { SHAPE_PLAIN, SHAPE_GROUP, SHAPE_SORT, SHAPE_DISTINCT };

static enum gar_status shape_frame(const struct gar_frame *frame, enum shape shape,
                                   struct gar_frame **out, struct gar_error *err)
{
    struct gar_expr *key = NULL;
    struct gar_expr *sum = NULL;
    enum gar_status status = gar_expr_parse("text", 4, frame, &key, err);
    if (status == GAR_OK) {
        status = gar_expr_parse("sum(id)", 7, frame, &sum, err);
    }
    if (status == GAR_OK) {
        switch (shape) {
        case SHAPE_PLAIN: status = gar_frame_select(frame, &key, 1, out, err); break;
        case SHAPE_GROUP: status = gar_frame_aggregate(frame, &key, 1, &sum, 1, out, err); break;
        case SHAPE_SORT: status = gar_frame_sort(frame, &key, NULL, NULL, 1, out, err); break;
        case SHAPE_DISTINCT: status = gar_frame_distinct(frame, &key, 1, out, err); break;
        }
    }
    gar_expr_release(key);
    gar_expr_release(sum);
    return status;
}

static struct outcome run(struct gar_session *session, bool is_csv, enum shape shape,
                          const char *write_to)
{
    struct outcome outcome = {.error = {.position = -1}};
    struct gar_frame *input = NULL;
    struct gar_frame *even = NULL;
    struct gar_frame *shaped = NULL;
    struct gar_frame *rows = NULL;
    struct gar_error *err = &outcome.error;
    enum gar_status status = open_input(session, is_csv, &input, err);
    if (status == GAR_OK) {
        status = keep_even(input, &even, err);
    }
    if (status == GAR_OK) {
        status = shape_frame(even, shape, &shaped, err);
    }
    if (status == GAR_OK && write_to == NULL) {
        status = gar_frame_collect(shaped, NULL, &rows, err);
    } else if (status == GAR_OK) {
        struct gar_write_options options;
        gar_write_options_init(&options);
        options.overwrite = true;
        status = is_csv ? gar_frame_write_csv(shaped, write_to, &options, NULL, &rows, err)
                        : gar_frame_write_parquet(shaped, write_to, &options, NULL, &rows, err);
    }
    outcome.status = status;
    outcome.rows = status == GAR_OK ? gar_frame_known_rows(rows) : -1;
    gar_frame_release(rows);
    gar_frame_release(shaped);
    gar_frame_release(even);
    gar_frame_release(input);
    return outcome;
}

static struct outcome scan_parquet(struct gar_session *session)
{
    return run(session, false, SHAPE_PLAIN, NULL);
}

static struct outcome scan_csv(struct gar_session *session)
{
    return run(session, true, SHAPE_PLAIN, NULL);
}

static struct outcome read_files(struct gar_session *session)
{
    const char *path = path_of("in.*");
    struct outcome outcome = {.rows = -1, .error = {.position = -1}};
    struct gar_frame *input = NULL;
    struct gar_frame *rows = NULL;
    struct gar_files_options options;
    gar_files_options_init(&options);
    options.with_content = true;
    outcome.status = gar_frame_read_files(session, &path, 1, &options, &input, &outcome.error);
    if (outcome.status == GAR_OK) {
        outcome.status = gar_frame_collect(input, NULL, &rows, &outcome.error);
    }
    if (outcome.status == GAR_OK) {
        outcome.rows = gar_frame_known_rows(rows);
    }
    gar_frame_release(rows);
    gar_frame_release(input);
    return outcome;
}

static struct outcome group(struct gar_session *session)
{
    return run(session, false, SHAPE_GROUP, NULL);
}

static struct outcome sort(struct gar_session *session)
{
    return run(session, false, SHAPE_SORT, NULL);
}

static struct outcome distinct(struct gar_session *session)
{
    return run(session, false, SHAPE_DISTINCT, NULL);
}

static struct outcome write_parquet(struct gar_session *session)
{
    return run(session, false, SHAPE_SORT, path_of("out"));
}

static struct outcome write_csv(struct gar_session *session)
{
    return run(session, true, SHAPE_PLAIN, path_of("out"));
}

static const struct operation {
    const char *name;
    operation_fn run;
    int64_t rows; /* of the result; of a write the number of files */
    bool is_write;
} operations[] = {
    {"scan parquet", scan_parquet, EVEN, false},
    {"scan csv", scan_csv, EVEN, false},
    {"read files", read_files, 2, false},
    {"group by", group, 100, false},
    {"sort", sort, EVEN, false},
    {"distinct", distinct, 100, false},
    {"write parquet", write_parquet, 1, true},
    {"write csv", write_csv, 1, true},
};

/* ---- what must hold after each fault ---- */

/* Files that a reader sees in the folder that is written, as one text; hidden ones are counted. */
static void list_out(char *text, size_t room, int64_t *out_hidden)
{
    *out_hidden = 0;
    text[0] = '\0';
    DIR *folder = opendir(path_of("out"));
    for (struct dirent *entry = folder != NULL ? readdir(folder) : NULL; entry != NULL;
         entry = readdir(folder)) {
        if (entry->d_name[0] == '.') {
            *out_hidden += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
            continue;
        }
        const size_t used = strlen(text);
        (void)snprintf(text + used, room - used, "%s\n", entry->d_name);
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
}

static struct gar_statistics statistics(struct gar_session *session)
{
    struct gar_statistics found = {.struct_bytes = sizeof found};
    gar_session_statistics(session, &found);
    return found;
}

/* Queries leave a moment after their callers hear of the end. */
static void expect_nothing_left(struct gar_session *session, const struct gar_statistics *before)
{
    struct gar_statistics now = statistics(session);
    for (int i = 0; i < 5000; i++) {
        if (now.queries == 0 && now.memory_live_bytes == before->memory_live_bytes) {
            return;
        }
        const struct timespec pause = {.tv_nsec = 1000000};
        (void)nanosleep(&pause, NULL);
        now = statistics(session);
    }
    fail_msg("left over: %d queries, %lld bytes", (int)now.queries,
             (long long)(now.memory_live_bytes - before->memory_live_bytes));
}

static void expect_right(const struct operation *operation, struct gar_session *session)
{
    const struct outcome outcome = operation->run(session);
    if (outcome.status != GAR_OK || outcome.rows != operation->rows) {
        fail_msg("%s: %s, %lld rows", operation->name, outcome.error.message,
                 (long long)outcome.rows);
    }
}

/* A file that is read again is known; a fault in what opens it must be met too. */
static void forget_inputs(int64_t n)
{
    const struct timespec times[2] = {{.tv_sec = 1000000 + n}, {.tv_sec = 1000000 + n}};
    assert_int_equal(utimensat(AT_FDCWD, path_of("in.parquet"), times, 0), 0);
    assert_int_equal(utimensat(AT_FDCWD, path_of("in.csv"), times, 0), 0);
}

struct sweep {
    const char *name;
    bool is_alloc;
    struct gar_os_fault fault; /* nth is set by the sweep */
    bool is_harmless;          /* the answer is right all the same */
    bool only_writes;
};

static int64_t faults_met; /* of the current sweep */

static void set_fault(const struct sweep *sweep, int64_t n)
{
    if (sweep->is_alloc) {
        (void)gar_alloc_fail_at(n, sweep->fault.and_on);
        return;
    }
    struct gar_os_fault fault = sweep->fault;
    fault.nth = n;
    gar_os_fault_set(n > 0 ? &fault : NULL);
}

static void expect_clean_error(const struct sweep *sweep, const struct operation *operation,
                               int64_t n, const struct outcome *outcome)
{
    const enum gar_status want = sweep->is_alloc ? GAR_ERR_NOMEM : GAR_ERR_IO;
    const bool is_named = sweep->is_alloc || (outcome->error.os_errno == sweep->fault.os_errno &&
                                              strstr(outcome->error.message, root) != NULL);
    if (sweep->is_harmless || outcome->status != want || !is_named) {
        fail_msg("%s, %s %lld: %s (errno %d): %s", operation->name, sweep->name, (long long)n,
                 gar_status_name(outcome->status), (int)outcome->error.os_errno,
                 outcome->error.message);
    }
}

/* One operation with fault n; false when it was not met any more. */
static bool try_fault(const struct sweep *sweep, const struct operation *operation,
                      struct gar_session *session, int64_t n)
{
    char before[4096];
    char after[4096];
    int64_t hidden = 0;
    list_out(before, sizeof before, &hidden);
    forget_inputs(n);
    const struct gar_statistics held = statistics(session);
    set_fault(sweep, n);
    const struct outcome outcome = operation->run(session);
    const int64_t calls = sweep->is_alloc ? 0 : gar_os_fault_calls();
    const bool is_met = sweep->is_alloc ? outcome.status != GAR_OK : calls >= n;
    faults_met += is_met;
    set_fault(sweep, 0);
    expect_nothing_left(session, &held);
    list_out(after, sizeof after, &hidden);
    if (outcome.status == GAR_OK) {
        assert_int_equal(outcome.rows, operation->rows);
    } else {
        expect_clean_error(sweep, operation, n, &outcome);
        /* Memory may run out when all is published and only the answer is missing: then the new state is whole. */
        const char *line_end = strchr(after, '\n');
        const bool is_whole = sweep->is_alloc && line_end != NULL && line_end[1] == '\0';
        if (strcmp(before, after) != 0 && !is_whole) {
            fail_msg("%s, %s %lld: the folder shows\n%snot\n%s", operation->name, sweep->name,
                     (long long)n, after, before);
        }
    }
    if (hidden > 0) {
        fail_msg("%s, %s %lld: %lld staged files are left", operation->name, sweep->name,
                 (long long)n, (long long)hidden);
    }
    return is_met;
}

static void run_sweep(const struct sweep *sweep)
{
    struct gar_session *const sessions[] = {pooled, inlined};
    const bool is_long = getenv("GAR_TEST_LONG") != NULL;
    faults_met = 0;
    for (size_t s = 0; s < 2; s++) {
        for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
            const struct operation *operation = &operations[i];
            if (sweep->only_writes && !operation->is_write) {
                continue;
            }
            expect_right(operation, sessions[s]);
            expect_right(operation, sessions[s]);
            const struct gar_statistics before = statistics(sessions[s]);
            int64_t n = 1;
            int missed = 0;
            while (missed < 2 && n < STEPS_MAX) {
                missed = try_fault(sweep, operation, sessions[s], n) ? 0 : missed + 1;
                n += is_long ? 1 : 1 + n / 24; /* all of the first, fewer of the later */
            }
            assert_int_equal(missed, 2);
            expect_right(operation, sessions[s]);
            assert_true(statistics(sessions[s]).heap_live_blocks <=
                        before.heap_live_blocks + HEAP_SLACK_BLOCKS);
        }
    }
    assert_true(faults_met > 0);
}

/* ---- sweeps ---- */

static void test_allocations(void **state)
{
    (void)state;
    const struct sweep once = {.name = "allocation", .is_alloc = true};
    const struct sweep from_there = {
        .name = "allocations from", .is_alloc = true, .fault = {.and_on = true}};
    run_sweep(&once);
    run_sweep(&from_there);
}

static void test_reads(void **state)
{
    (void)state;
    const struct sweep error = {.name = "read",
                                .fault = {.call = GAR_OS_READ, .os_errno = EIO, .and_on = true}};
    const struct sweep interrupted = {
        .name = "interrupted read",
        .fault = {.call = GAR_OS_READ, .os_errno = EINTR, .and_on = true},
        .is_harmless = true};
    run_sweep(&error);
    run_sweep(&interrupted);
}

static void test_short_reads_and_writes(void **state)
{
    (void)state;
    static const enum gar_os_call calls[] = {GAR_OS_READ, GAR_OS_WRITE};
    for (size_t c = 0; c < 2; c++) {
        for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
            const struct gar_os_fault fault = {.call = calls[c], .short_bytes = 7};
            forget_inputs((int64_t)i);
            gar_os_fault_set(&fault);
            const struct outcome outcome = operations[i].run(pooled);
            gar_os_fault_set(NULL);
            assert_int_equal(outcome.status, GAR_OK);
            assert_int_equal(outcome.rows, operations[i].rows);
        }
    }
}

static void test_opens(void **state)
{
    (void)state;
    const struct sweep no_descriptors = {.name = "open",
                                         .fault = {.call = GAR_OS_OPEN, .os_errno = EMFILE}};
    const struct sweep denied = {
        .name = "open from", .fault = {.call = GAR_OS_OPEN, .os_errno = EACCES, .and_on = true}};
    run_sweep(&no_descriptors);
    run_sweep(&denied);
}

static void test_writes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum gar_os_call call;
        int code;
    } faults[] = {
        {"write", GAR_OS_WRITE, EIO},           {"write, full disk", GAR_OS_WRITE, ENOSPC},
        {"write, quota", GAR_OS_WRITE, EDQUOT}, {"close", GAR_OS_CLOSE, EIO},
        {"rename", GAR_OS_RENAME, EIO},         {"rename, read-only", GAR_OS_RENAME, EROFS},
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        const struct sweep sweep = {
            .name = faults[i].name,
            .fault = {.call = faults[i].call, .os_errno = faults[i].code, .and_on = true},
            .only_writes = true};
        run_sweep(&sweep);
    }
}

static void test_new_folder_is_refused(void **state)
{
    (void)state;
    static const int codes[] = {EACCES, EROFS, ENOSPC};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        const struct gar_os_fault fault = {
            .call = GAR_OS_MKDIR, .nth = 1, .os_errno = codes[i], .and_on = true};
        gar_os_fault_set(&fault);
        const struct outcome outcome = run(pooled, false, SHAPE_PLAIN, path_of("fresh"));
        gar_os_fault_set(NULL);
        assert_int_equal(outcome.status, GAR_ERR_IO);
        assert_int_equal(outcome.error.os_errno, codes[i]);
        assert_non_null(strstr(outcome.error.message, "fresh"));
        assert_int_not_equal(access(path_of("fresh"), F_OK), 0);
    }
}

/* Some threads or none can be started: fewer work, or an error says why. */
static void test_threads(void **state)
{
    (void)state;
    for (int and_on = 0; and_on < 2; and_on++) {
        for (int64_t n = 1; n <= 8; n++) {
            struct gar_settings settings;
            struct gar_session *session = NULL;
            gar_settings_init(&settings);
            settings.num_threads = 3;
            settings.io_threads = 2;
            settings.enable_inline = false;
            assert_int_equal(gar_session_new(&settings, &session, NULL), GAR_OK);
            const struct gar_os_fault fault = {
                .call = GAR_OS_THREAD, .nth = n, .os_errno = EAGAIN, .and_on = and_on != 0};
            gar_os_fault_set(&fault);
            const struct outcome outcome = sort(session);
            gar_os_fault_set(NULL);
            if (outcome.status == GAR_OK) {
                assert_int_equal(outcome.rows, EVEN);
            } else {
                assert_int_equal(outcome.status, GAR_ERR_IO);
                assert_int_equal(outcome.error.os_errno, EAGAIN);
                assert_non_null(strstr(outcome.error.message, "thread"));
            }
            assert_int_equal(sort(session).rows, EVEN);
            gar_session_release(session);
        }
    }
}

static void test_no_descriptor_to_poll(void **state)
{
    (void)state;
    struct gar_frame *frame = NULL;
    struct gar_result *result = NULL;
    struct gar_frame *all = NULL;
    struct gar_error err;
    int fd = -1;
    struct gar_run_options options;
    gar_run_options_init(&options);
    options.mode = GAR_RUN_TO_END;
    assert_int_equal(gar_frame_range(pooled, 0, ROWS, 1, &frame, NULL), GAR_OK);
    assert_int_equal(gar_frame_run(frame, &options, &result, NULL), GAR_OK);
    const struct gar_os_fault fault = {
        .call = GAR_OS_EVENT_FD, .nth = 1, .os_errno = EMFILE, .and_on = true};
    gar_os_fault_set(&fault);
    assert_int_equal(gar_result_fd(result, &fd, &err), GAR_ERR_IO);
    gar_os_fault_set(NULL);
    assert_int_equal(err.os_errno, EMFILE);
    assert_int_equal(gar_result_fd(result, &fd, &err), GAR_OK);
    assert_int_equal(gar_result_collect(result, -1, &all, NULL), GAR_OK);
    assert_int_equal(gar_frame_known_rows(all), ROWS);
    gar_frame_release(all);
    gar_result_release(result);
    gar_frame_release(frame);
}

/* ---- the files ---- */

static void make_inputs(void)
{
    struct gar_frame *range = NULL;
    struct gar_frame *frame = NULL;
    struct gar_frame *paths = NULL;
    struct gar_expr **list = NULL;
    int64_t count = 0;
    const char *sql = "id, concat('text number ', cast(id % 200 as string)) as text";
    assert_int_equal(gar_frame_range(pooled, 0, ROWS, 1, &range, NULL), GAR_OK);
    assert_int_equal(gar_expr_parse_list(sql, (int64_t)strlen(sql), range, &list, &count, NULL),
                     GAR_OK);
    assert_int_equal(gar_frame_select(range, list, count, &frame, NULL), GAR_OK);
    gar_expr_list_free(list, count);
    struct gar_write_options options;
    gar_write_options_init(&options);
    options.single_file = true;
    options.row_group_rows = 2000;
    assert_int_equal(
        gar_frame_write_parquet(frame, path_of("in.parquet"), &options, NULL, &paths, NULL),
        GAR_OK);
    gar_frame_release(paths);
    assert_int_equal(gar_frame_write_csv(frame, path_of("in.csv"), &options, NULL, &paths, NULL),
                     GAR_OK);
    gar_frame_release(paths);
    gar_frame_release(frame);
    gar_frame_release(range);
}

static int set_up(void **state)
{
    (void)state;
    strcpy(root, "/tmp/gar_fault_test_XXXXXX");
    if (mkdtemp(root) == NULL) {
        return -1;
    }
    struct gar_settings settings;
    gar_settings_init(&settings);
    settings.num_threads = 2;
    settings.io_threads = 2;
    assert_int_equal(gar_session_new(&settings, &inlined, NULL), GAR_OK);
    settings.enable_inline = false;
    assert_int_equal(gar_session_new(&settings, &pooled, NULL), GAR_OK);
    make_inputs();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    gar_session_release(pooled);
    gar_session_release(inlined);
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command); /* NOLINT(cert-env33-c): a fixed command on a folder made here */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_short_reads_and_writes),
        cmocka_unit_test(test_opens),
        cmocka_unit_test(test_writes),
        cmocka_unit_test(test_new_folder_is_refused),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_no_descriptor_to_poll),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
