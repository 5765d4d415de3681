/* SPDX-License-Identifier: Apache-2.0 */
/* Publishing: whole or not at all, for every system call that can fail. */
#include "storage/sink.h"

#include "base/strbuf.h"
#include "storage/storage_test_priv.h"

/* Names in a folder below the test folder (hidden ones too) with their contents: "a=1 b=2". */
static void check_folder(const char *name, const char *right)
{
    struct gar_strbuf got = {0};
    struct gar_dir_list list = {0};
    (void)(gar_dir_read(in_folder(name), &list, NULL) < 0);
    for (int64_t i = 0; i < list.count; i++) {
        char *path = gar_path_join(in_folder(name), list.entries[i].name);
        char text[64] = "";
        int fd;
        int64_t bytes = 0;
        if (list.entries[i].kind == GAR_FILE_REGULAR) {
            assert_int_equal(gar_file_open(path, GAR_FILE_READ, &fd, NULL), GAR_OK);
            assert_int_equal(
                gar_file_read_at(fd, path, text, (int64_t)sizeof text - 1, 0, &bytes, NULL),
                GAR_OK);
            assert_int_equal(gar_file_close(fd, path, NULL), GAR_OK);
        }
        gar_strbuf_printf(&got, "%s%s=%s", i > 0 ? " " : "", list.entries[i].name, text);
        gar_free(path);
    }
    assert_string_equal(got.data == NULL ? "" : got.data, right);
    gar_dir_list_destroy(&list);
    gar_strbuf_destroy(&got);
}

/* Write two files into out/ (made if missing), replacing what is there. */
static enum gar_status run_job(struct gar_error *err)
{
    struct gar_sink *sinks[2] = {NULL, NULL};
    enum gar_status status = gar_sink_open(in_folder("out/new/a"), &sinks[0], err);
    if (status >= 0) {
        status = gar_sink_open(in_folder("out/new/b"), &sinks[1], err);
    }
    if (status >= 0) {
        status = gar_sink_write(sinks[0], "one", 3, err);
    }
    if (status >= 0) {
        status = gar_sink_write(sinks[1], "two", 3, err);
    }
    const struct gar_publish_options options = {.replaced_folder = in_folder("out/new"),
                                                .is_durable = true};
    if (status >= 0) {
        status = gar_sinks_publish(sinks, 2, &options, err);
    }
    gar_sink_free(sinks[0]);
    gar_sink_free(sinks[1]);
    return status;
}

static void test_job(void **state)
{
    (void)state;
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(run_job(&err), GAR_OK);
    check_folder("out/new", "a=one b=two");
    put_text("out/new/old", "x");
    put_text("out/new/b", "previous");
    put_text("out/new/.keep", "x");
    assert_int_equal(run_job(&err), GAR_OK);
    check_folder("out/new", ".keep=x a=one b=two");
}

static void test_abort(void **state)
{
    (void)state;
    put_text("a", "old");
    struct gar_error err = GAR_ERROR_INIT;
    struct gar_sink *sink = NULL;
    assert_int_equal(gar_sink_open(in_folder("a"), &sink, &err), GAR_OK);
    assert_int_equal(gar_sink_write(sink, "new", 3, &err), GAR_OK);
    assert_int_equal(gar_sink_bytes(sink), 3);
    gar_sink_free(sink);
    check_folder("", "a=old");
    assert_int_equal(gar_sink_open(in_folder("x/y/z"), &sink, &err), GAR_OK);
    gar_sink_free(sink);
    check_folder("", "a=old");
    assert_int_equal(gar_sink_open(in_folder("dir/"), &sink, &err), GAR_ERR_IO);
    assert_int_equal(gar_dir_make(in_folder("dir"), &err), GAR_OK);
    assert_int_equal(gar_sink_open(in_folder("dir"), &sink, &err), GAR_ERR_IO);
    assert_int_equal(gar_sink_open(in_folder("a/b"), &sink, &err), GAR_ERR_IO);
    check_folder("", "a=old dir=");
}

/* Each system call of the job fails once: the old files stay and nothing is left over. A rename or removal that fails
 * late may leave new files beside old ones, but never a staged or a cut one. */
static void test_faults(void **state)
{
    (void)state;
    static const enum gar_os_call calls[] = {GAR_OS_OPEN,   GAR_OS_WRITE, GAR_OS_SYNC, GAR_OS_CLOSE,
                                             GAR_OS_RENAME, GAR_OS_MKDIR, GAR_OS_LIST};
    for (int64_t c = 0; c < GAR_COUNT_OF(calls); c++) {
        for (int64_t n = 1;; n++) {
            remove_tree(in_folder("out"));
            if (calls[c] != GAR_OS_MKDIR) {
                put_text("out/new/a", "old");
                put_text("out/new/other", "old");
            }
            const struct gar_os_fault fault = {.call = calls[c], .nth = n, .os_errno = ENOSPC};
            gar_os_fault_set(&fault);
            struct gar_error err = GAR_ERROR_INIT;
            const enum gar_status status = run_job(&err);
            gar_os_fault_set(NULL);
            if (status >= 0) {
                check_folder("out/new", "a=one b=two");
                break;
            }
            assert_int_equal(err.os_errno, ENOSPC);
            if (calls[c] == GAR_OS_MKDIR) {
                check_folder("", "");
            } else if (calls[c] == GAR_OS_RENAME && n == 2) {
                check_folder("out/new", "a=one other=old"); /* a was replaced whole */
            } else if (calls[c] == GAR_OS_SYNC && n > 2) {
                check_folder("out/new", "a=one b=two other=old");
            } else {
                check_folder("out/new", "a=old other=old");
            }
            assert_true(n < 20);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_job, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_abort, enter_folder, leave_folder),
        cmocka_unit_test_setup_teardown(test_faults, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
