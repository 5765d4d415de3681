/* SPDX-License-Identifier: Apache-2.0 */
/* Files and directories: transfers, messages, faults. */
#include "os/file.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "os/clock.h"
#include "os/fault.h"
#include "os/shared_map.h"
#include "os/thread.h"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/gar_file_test_XXXXXX");
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
    (void)state;
    gar_os_fault_set(NULL);
    struct gar_dir_list list;
    assert_int_equal(gar_dir_read(folder, &list, NULL), GAR_OK);
    for (int64_t i = 0; i < list.count; i++) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s/%s", folder, list.entries[i].name);
        if (list.entries[i].kind == GAR_FILE_DIRECTORY) {
            (void)rmdir(path);
        } else {
            (void)unlink(path);
        }
    }
    gar_dir_list_destroy(&list);
    return rmdir(folder);
}

static const char *in_folder(const char *name)
{
    static char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *path, const char *text)
{
    int fd;
    assert_int_equal(gar_file_open(path, GAR_FILE_CREATE, &fd, NULL), GAR_OK);
    assert_int_equal(gar_file_write(fd, path, text, (int64_t)strlen(text), NULL), GAR_OK);
    assert_int_equal(gar_file_sync(fd, path, NULL), GAR_OK);
    assert_int_equal(gar_file_close(fd, path, NULL), GAR_OK);
}

static void test_round_trip(void **state)
{
    (void)state;
    const char *path = in_folder("a");
    write_file(path, "0123456789");
    int fd;
    char out[16] = {0};
    int64_t got = -1;
    assert_int_equal(gar_file_open(path, GAR_FILE_READ, &fd, NULL), GAR_OK);
    assert_int_equal(gar_file_read_at(fd, path, out, 4, 3, &got, NULL), GAR_OK);
    assert_int_equal(got, 4);
    assert_memory_equal(out, "3456", 4);
    assert_int_equal(gar_file_read_at(fd, path, out, 16, 8, &got, NULL), GAR_OK);
    assert_int_equal(got, 2);
    assert_int_equal(gar_file_read_at(fd, path, out, 16, 100, &got, NULL), GAR_OK);
    assert_int_equal(got, 0);
    assert_int_equal(gar_file_read_some(fd, path, out, 16, NULL, &got, NULL), GAR_OK);
    assert_int_equal(got, 10);
    assert_int_equal(gar_file_read_some(fd, path, out, 16, NULL, &got, NULL), GAR_OK);
    assert_int_equal(got, 0);
    struct gar_file_info info;
    assert_int_equal(gar_file_stat_fd(fd, path, &info, NULL), GAR_OK);
    assert_int_equal(info.bytes, 10);
    assert_int_equal(info.kind, GAR_FILE_REGULAR);
    assert_int_equal(gar_file_close(fd, path, NULL), GAR_OK);
}

static void test_publish(void **state)
{
    (void)state;
    char from[256];
    strcpy(from, in_folder("temporary"));
    write_file(from, "new");
    assert_int_equal(gar_file_rename(from, in_folder("final"), NULL), GAR_OK);
    assert_int_equal(gar_dir_sync(folder, NULL), GAR_OK);
    struct gar_error err = GAR_ERROR_INIT;
    struct gar_file_info info;
    assert_int_equal(gar_file_stat(from, &info, &err), GAR_ERR_IO);
    assert_int_equal(err.os_errno, ENOENT);
    assert_non_null(strstr(err.message, "temporary"));
    assert_int_equal(gar_file_unlink(in_folder("final"), NULL), GAR_OK);
    assert_int_equal(gar_file_unlink(in_folder("final"), &err), GAR_ERR_IO);
}

static void test_directories(void **state)
{
    (void)state;
    assert_int_equal(gar_dir_make(in_folder("x/y//z"), NULL), GAR_OK);
    assert_int_equal(gar_dir_make(in_folder("x/y/z/"), NULL), GAR_OK);
    write_file(in_folder("x/b"), "");
    write_file(in_folder("x/a"), "");
    assert_int_equal(symlink("a", in_folder("x/link")), 0);
    assert_int_equal(symlink("nowhere", in_folder("x/dangling")), 0);
    struct gar_dir_list list;
    assert_int_equal(gar_dir_read(in_folder("x"), &list, NULL), GAR_OK);
    assert_int_equal(list.count, 5);
    static const char *const names[] = {"a", "b", "dangling", "link", "y"};
    static const enum gar_file_kind kinds[] = {GAR_FILE_REGULAR, GAR_FILE_REGULAR, GAR_FILE_OTHER,
                                               GAR_FILE_REGULAR, GAR_FILE_DIRECTORY};
    for (int64_t i = 0; i < 5; i++) {
        assert_string_equal(list.entries[i].name, names[i]);
        assert_int_equal(list.entries[i].kind, kinds[i]);
    }
    gar_dir_list_destroy(&list);
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(gar_dir_read(in_folder("missing"), &list, &err), GAR_ERR_IO);
    assert_int_equal(gar_dir_make("", &err), GAR_ERR_IO);
    assert_int_equal(gar_dir_make(in_folder("x/a/b"), &err), GAR_ERR_IO);
    static const char *const leftovers[] = {"x/a", "x/b", "x/link", "x/dangling"};
    for (int64_t i = 0; i < GAR_COUNT_OF(leftovers); i++) {
        assert_int_equal(gar_file_unlink(in_folder(leftovers[i]), NULL), GAR_OK);
    }
    assert_int_equal(gar_dir_remove(in_folder("x/y/z"), NULL), GAR_OK);
    assert_int_equal(gar_dir_remove(in_folder("x/y"), NULL), GAR_OK);
    assert_int_equal(gar_dir_remove(in_folder("x"), NULL), GAR_OK);
}

static void read_back(const char *path, const char *expected)
{
    int fd;
    char out[32];
    int64_t got;
    assert_int_equal(gar_file_open(path, GAR_FILE_READ, &fd, NULL), GAR_OK);
    assert_int_equal(gar_file_read_at(fd, path, out, 32, 0, &got, NULL), GAR_OK);
    assert_int_equal(got, (int64_t)strlen(expected));
    assert_memory_equal(out, expected, (size_t)got);
    assert_int_equal(gar_file_close(fd, path, NULL), GAR_OK);
}

/* EINTR on every call and transfers of one byte change nothing. */
static void test_harmless_faults(void **state)
{
    (void)state;
    const char *path = in_folder("f");
    for (int call = 0; call < GAR_OS_CALL_COUNT; call++) {
        const struct gar_os_fault interrupted = {
            .call = (enum gar_os_call)call, .nth = 1, .and_on = true, .os_errno = EINTR};
        gar_os_fault_set(&interrupted);
        write_file(path, "some text");
        read_back(path, "some text");
        const struct gar_os_fault small = {.call = (enum gar_os_call)call, .short_bytes = 1};
        gar_os_fault_set(&small);
        write_file(path, "other text");
        read_back(path, "other text");
        gar_os_fault_set(NULL);
    }
    const struct gar_os_fault again = {.call = GAR_OS_READ, .nth = 1, .os_errno = EAGAIN};
    gar_os_fault_set(&again);
    read_back(path, "other text");
    gar_os_fault_set(NULL);
}

static void test_errors_are_named(void **state)
{
    (void)state;
    const char *path = in_folder("g");
    write_file(path, "x");
    struct gar_error err = GAR_ERROR_INIT;
    int fd;
    char out[4];
    int64_t got;
    assert_int_equal(gar_file_open(path, GAR_FILE_CREATE_NEW, &fd, &err), GAR_ERR_IO);
    assert_int_equal(err.os_errno, EEXIST);
    assert_int_equal(gar_file_open(path, GAR_FILE_READ_WRITE, &fd, NULL), GAR_OK);
    const struct gar_os_fault broken = {.call = GAR_OS_READ, .nth = 1, .os_errno = EIO};
    gar_os_fault_set(&broken);
    assert_int_equal(gar_file_read_at(fd, path, out, 1, 0, &got, &err), GAR_ERR_IO);
    assert_int_equal(err.os_errno, EIO);
    assert_non_null(strstr(err.message, path));
    const struct gar_os_fault full = {.call = GAR_OS_WRITE, .nth = 1, .os_errno = ENOSPC};
    gar_os_fault_set(&full);
    assert_int_equal(gar_file_write_at(fd, path, "y", 1, 0, &err), GAR_ERR_IO);
    assert_int_equal(err.os_errno, ENOSPC);
    const struct gar_os_fault late = {.call = GAR_OS_CLOSE, .nth = 1, .os_errno = EDQUOT};
    gar_os_fault_set(&late);
    assert_int_equal(gar_file_close(fd, path, &err), GAR_ERR_IO);
    assert_int_equal(err.os_errno, EDQUOT);
    gar_os_fault_set(NULL);
    assert_int_equal(gar_file_open("/dev/full", GAR_FILE_CREATE, &fd, NULL), GAR_OK);
    assert_int_equal(gar_file_write(fd, "/dev/full", "x", 1, &err), GAR_ERR_IO);
    assert_int_equal(err.os_errno, ENOSPC);
    assert_int_equal(gar_file_close(fd, "/dev/full", NULL), GAR_OK);
}

/* A file at its limit is an error to whoever writes, not the end of the process. */
static void test_size_limit(void **state)
{
    (void)state;
    const char *path = in_folder("limited");
    const char data[32] = {0};
    int fd;
    int shared;
    struct gar_error errors[4];
    sigset_t pending;
    sigset_t blocked;
    struct rlimit before;
    assert_int_equal(gar_file_open(path, GAR_FILE_CREATE, &fd, NULL), GAR_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {.rlim_cur = 16, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_true(signal(SIGXFSZ, SIG_DFL) != SIG_ERR);
    const enum gar_status statuses[] = {
        gar_file_write(fd, path, data, 32, &errors[0]),
        gar_file_write_at(fd, path, data, 1, 16, &errors[1]),
        gar_file_truncate(fd, path, 17, &errors[2]),
        gar_shared_open("gar-test", 4096, &shared, &errors[3]),
    };
    (void)sigpending(&pending);
    (void)pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        assert_int_equal(errors[i].os_errno, EFBIG);
        assert_true(statuses[i] < 0);
    }
    assert_int_equal(sigismember(&pending, SIGXFSZ), 0);
    assert_int_equal(sigismember(&blocked, SIGXFSZ), 0);
    assert_int_equal(gar_file_write(fd, path, data, 32, NULL), GAR_OK);
    assert_int_equal(gar_file_close(fd, path, NULL), GAR_OK);
}

static bool stop_after_50_ms(void *context)
{
    return gar_clock_ns() - *(const int64_t *)context > 50 * GAR_NS_PER_MS;
}

/* A FIFO without a writer neither hangs the open nor the read of somebody who may stop. */
static void test_stuck_fifo(void **state)
{
    (void)state;
    const char *path = in_folder("fifo");
    assert_int_equal(mkfifo(path, 0600), 0);
    int fd;
    assert_int_equal(gar_file_open(path, GAR_FILE_READ, &fd, NULL), GAR_OK);
    int64_t start_ns = gar_clock_ns();
    const struct gar_file_stop stop = {.is_stopped = stop_after_50_ms, .context = &start_ns};
    char out[8];
    int64_t got;
    assert_int_equal(gar_file_read_some(fd, path, out, 8, &stop, &got, NULL), GAR_ERR_CANCELLED);
    assert_true(gar_clock_ns() - start_ns < 500 * GAR_NS_PER_MS);
    int writer;
    assert_int_equal(gar_file_open(path, GAR_FILE_CREATE, &writer, NULL), GAR_OK);
    assert_int_equal(gar_file_write(writer, path, "hi", 2, NULL), GAR_OK);
    start_ns = gar_clock_ns();
    assert_int_equal(gar_file_read_some(fd, path, out, 8, &stop, &got, NULL), GAR_OK);
    assert_int_equal(got, 2);
    assert_int_equal(gar_file_close(writer, path, NULL), GAR_OK);
    assert_int_equal(gar_file_read_some(fd, path, out, 8, NULL, &got, NULL), GAR_OK);
    assert_int_equal(got, 0);
    assert_int_equal(gar_file_close(fd, path, NULL), GAR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_publish, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_directories, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_harmless_faults, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_errors_are_named, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_size_limit, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_stuck_fifo, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
