/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of this folder: a folder of one's own with files in it. */
#ifndef GAR_STORAGE_STORAGE_TEST_PRIV_H
#define GAR_STORAGE_STORAGE_TEST_PRIV_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "os/fault.h"
#include "os/file.h"
#include "storage/paths.h"

static char test_folder[] = "/tmp/gar-storage-XXXXXX";

/* Path of a name in the test folder; good until the eighth call after. */
static inline const char *in_folder(const char *name)
{
    static char paths[8][512];
    static int next;
    next = (next + 1) % 8;
    (void)snprintf(paths[next], sizeof paths[next], "%s/%s", test_folder, name);
    return paths[next];
}

static inline int enter_folder(void **state)
{
    (void)state;
    memcpy(test_folder + strlen(test_folder) - 6, "XXXXXX", 6);
    return mkdtemp(test_folder) == NULL ? -1 : 0;
}

static inline void remove_tree(const char *path)
{
    struct gar_dir_list list = {0};
    if (gar_dir_read(path, &list, NULL) >= 0) {
        for (int64_t i = 0; i < list.count; i++) {
            char *full = gar_path_join(path, list.entries[i].name);
            if (unlink(full) != 0) {
                remove_tree(full);
            }
            gar_free(full);
        }
    }
    gar_dir_list_destroy(&list);
    (void)rmdir(path);
}

static inline int leave_folder(void **state)
{
    (void)state;
    gar_os_fault_set(NULL);
    remove_tree(test_folder);
    return 0;
}

static inline void put_file(const char *name, const void *data, int64_t bytes)
{
    struct gar_error err = GAR_ERROR_INIT;
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", test_folder, name);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    assert_int_equal(gar_dir_make(path, &err), GAR_OK);
    *slash = '/';
    int fd;
    assert_int_equal(gar_file_open(path, GAR_FILE_CREATE, &fd, &err), GAR_OK);
    assert_int_equal(gar_file_write(fd, path, data, bytes, &err), GAR_OK);
    assert_int_equal(gar_file_close(fd, path, &err), GAR_OK);
}

static inline void put_text(const char *name, const char *text)
{
    put_file(name, text, (int64_t)strlen(text));
}

#endif
