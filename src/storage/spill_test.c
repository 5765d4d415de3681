/* SPDX-License-Identifier: Apache-2.0 */
/* Spill files: blocks come back, limits and full disks are one clear error, nothing stays behind. */
#include "storage/spill.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "os/fault.h"

static char folder[] = "/tmp/gar-spill-test-XXXXXX";

static int64_t files_in_folder(void)
{
    DIR *dir = opendir(folder);
    int64_t count = 0;
    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count - 2;
}

static struct gar_spill_file *new_file(int64_t limit, struct gar_spill_space **space)
{
    struct gar_spill_file *file = NULL;
    assert_int_equal(gar_spill_space_new(folder, limit, space, NULL), GAR_OK);
    assert_int_equal(gar_spill_file_new(*space, &file, NULL), GAR_OK);
    return file;
}

static void test_blocks_come_back(void **context)
{
    (void)context;
    struct gar_spill_space *space = NULL;
    struct gar_spill_file *file = new_file(0, &space);
    int64_t offsets[20];
    char block[10000];
    assert_true(gar_spill_file_may_write(file));
    for (int64_t i = 0; i < 20; i++) {
        memset(block, (int)i, sizeof block);
        assert_int_equal(gar_spill_file_write(file, block, 500 * (i + 1), &offsets[i], NULL),
                         GAR_OK);
    }
    assert_int_equal(files_in_folder(), 0);
    for (int64_t i = 19; i >= 0; i--) {
        char read[10000];
        memset(block, (int)i, sizeof block);
        assert_int_equal(gar_spill_file_read(file, offsets[i], read, 500 * (i + 1), NULL), GAR_OK);
        assert_memory_equal(read, block, (size_t)(500 * (i + 1)));
        gar_spill_file_release(file, offsets[i], 500 * (i + 1));
    }
    assert_int_equal(gar_spill_space_used_bytes(space), 0);
    assert_true(gar_spill_file_written_bytes(file) >= 20 * 500);
    gar_spill_file_free(file);
    gar_spill_space_unref(space);
}

static void test_limits(void **context)
{
    (void)context;
    struct gar_spill_space *space = NULL;
    struct gar_spill_file *file = new_file(8192, &space);
    struct gar_spill_file *other = NULL;
    struct gar_error err = GAR_ERROR_INIT;
    char block[4096] = {0};
    int64_t offsets[2];
    int64_t unused = 0;
    assert_int_equal(gar_spill_file_new(space, &other, NULL), GAR_OK);
    assert_int_equal(gar_spill_file_write(file, block, 4096, &offsets[0], NULL), GAR_OK);
    assert_int_equal(gar_spill_file_write(other, block, 1, &offsets[1], NULL), GAR_OK);
    assert_int_equal(gar_spill_file_write(file, block, 1, &unused, &err), GAR_ERR_NOMEM);
    assert_non_null(strstr(err.message, "exceed the limit of 8192"));
    assert_non_null(strstr(err.message, folder));
    gar_spill_file_free(other); /* gives its bytes back */
    assert_int_equal(gar_spill_file_write(file, block, 1, &unused, &err), GAR_OK);
    gar_spill_file_free(file);
    assert_int_equal(gar_spill_space_used_bytes(space), 0);
    gar_spill_space_unref(space);
    file = new_file(-1, &space);
    assert_false(gar_spill_file_may_write(file));
    assert_int_equal(gar_spill_file_write(file, block, 1, &unused, &err), GAR_ERR_NOMEM);
    assert_non_null(strstr(err.message, "nothing may be spilled"));
    gar_spill_file_free(file);
    gar_spill_space_unref(space);
}

static void test_full_and_missing_disks(void **context)
{
    (void)context;
    static const enum gar_os_call calls[] = {GAR_OS_OPEN, GAR_OS_WRITE};
    for (int32_t c = 0; c < 2; c++) {
        struct gar_spill_space *space = NULL;
        struct gar_spill_file *file = new_file(0, &space);
        struct gar_error err = GAR_ERROR_INIT;
        char block[100] = {0};
        int64_t offset = 0;
        const struct gar_os_fault fault = {.call = calls[c], .nth = 1, .os_errno = ENOSPC};
        gar_os_fault_set(&fault);
        assert_int_equal(gar_spill_file_write(file, block, 100, &offset, &err), GAR_ERR_IO);
        gar_os_fault_set(NULL);
        assert_int_equal(err.os_errno, ENOSPC);
        assert_non_null(strstr(err.message, folder));
        assert_non_null(strstr(err.message, "spilling 100 bytes"));
        gar_spill_file_free(file);
        assert_int_equal(gar_spill_space_used_bytes(space), 0);
        gar_spill_space_unref(space);
    }
    struct gar_spill_space *space = NULL;
    struct gar_spill_file *file = NULL;
    struct gar_error err = GAR_ERROR_INIT;
    int64_t offset = 0;
    assert_int_equal(gar_spill_space_new("/nonexistent/folder", 0, &space, NULL), GAR_OK);
    assert_int_equal(gar_spill_file_new(space, &file, NULL), GAR_OK);
    assert_int_equal(gar_spill_file_write(file, "x", 1, &offset, &err), GAR_ERR_IO);
    assert_non_null(strstr(err.message, "/nonexistent/folder"));
    gar_spill_file_free(file);
    gar_spill_space_unref(space);
}

static void test_allocation_failures(void **context)
{
    (void)context;
    const int64_t blocks = gar_alloc_live_blocks();
    bool is_done = false;
    for (int64_t n = 1; !is_done; n++) {
        struct gar_spill_space *space = NULL;
        struct gar_spill_file *file = NULL;
        (void)gar_alloc_fail_at(n, false);
        if (gar_spill_space_new(NULL, 0, &space, NULL) >= 0) {
            const enum gar_status status = gar_spill_file_new(space, &file, NULL);
            assert_true(status == GAR_OK || status == GAR_ERR_NOMEM);
        }
        is_done = gar_alloc_fail_at(0, false) < n;
        gar_spill_file_free(file);
        gar_spill_space_unref(space);
        assert_int_equal(gar_alloc_live_blocks(), blocks);
    }
}

static int set_up(void **context)
{
    (void)context;
    return mkdtemp(folder) == NULL;
}

static int tear_down(void **context)
{
    (void)context;
    return rmdir(folder); /* fails when anything is left in it */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_come_back),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_full_and_missing_disks),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
