/* SPDX-License-Identifier: Apache-2.0 */
/* Directories: list, make, remove, sync. Declared in os/file.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "os/fault.h"
#include "os/file.h"

static enum gar_status read_entries(DIR *dir, const char *path, struct gar_dir_list *list,
                                    struct gar_error *err);
static enum gar_status add_entry(DIR *dir, const struct dirent *entry, struct gar_dir_list *list,
                                 struct gar_error *err);
static enum gar_file_kind entry_kind(DIR *dir, const struct dirent *entry);
static int compare_names(const void *a, const void *b);
static int make_one(const char *path);

enum gar_status gar_dir_read(const char *path, struct gar_dir_list *out, struct gar_error *err)
{
    memset(out, 0, sizeof *out);
    const int fault = gar_os_fault_hit(GAR_OS_LIST);
    DIR *dir = NULL;
    if (fault != 0 && fault != EINTR) {
        errno = fault;
    } else {
        dir = opendir(path); /* close-on-exec in glibc */
    }
    if (dir == NULL) {
        return gar_error_set_errno(err, errno, "cannot list directory '%s'", path);
    }
    const enum gar_status status = read_entries(dir, path, out, err);
    (void)closedir(dir);
    if (status != GAR_OK) {
        gar_dir_list_destroy(out);
        return status;
    }
    if (out->count > 1) {
        qsort(out->entries, (size_t)out->count, sizeof *out->entries, compare_names);
    }
    return GAR_OK;
}

void gar_dir_list_destroy(struct gar_dir_list *list)
{
    for (int64_t i = 0; i < list->count; i++) {
        gar_free(list->entries[i].name);
    }
    gar_free(list->entries);
    memset(list, 0, sizeof *list);
}

enum gar_status gar_dir_make(const char *path, struct gar_error *err)
{
    char *part = gar_strdup(path);
    if (part == NULL) {
        return gar_error_nomem(err, (int64_t)strlen(path) + 1);
    }
    int code = 0;
    for (char *at = part; code == 0 && *at != '\0'; at++) {
        if (*at == '/' && at != part) {
            *at = '\0';
            code = make_one(part);
            *at = '/';
        }
    }
    if (code == 0) {
        code = make_one(path);
    }
    gar_free(part);
    return code == 0 ? GAR_OK : gar_error_set_errno(err, code, "cannot make directory '%s'", path);
}

enum gar_status gar_dir_remove(const char *path, struct gar_error *err)
{
    int code = gar_os_fault_hit(GAR_OS_UNLINK);
    if (code == 0 && rmdir(path) != 0) {
        code = errno;
    }
    return code == 0 ? GAR_OK
                     : gar_error_set_errno(err, code, "cannot remove directory '%s'", path);
}

enum gar_status gar_dir_sync(const char *path, struct gar_error *err)
{
    int code = gar_os_fault_hit(GAR_OS_SYNC);
    if (code == 0) {
        const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0) {
            code = errno;
        } else {
            /* Some file systems cannot sync a directory and say EINVAL; there is nothing more to do then. */
            code = fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
            (void)close(fd);
        }
    }
    return code == 0 ? GAR_OK
                     : gar_error_set_errno(err, code,
                                           "cannot write directory '%s' through to the disk", path);
}

static enum gar_status read_entries(DIR *dir, const char *path, struct gar_dir_list *list,
                                    struct gar_error *err)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (entry == NULL) {
            return errno == 0 ? GAR_OK
                              : gar_error_set_errno(err, errno, "cannot list directory '%s'", path);
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            GAR_TRY(add_entry(dir, entry, list, err));
        }
    }
}

static enum gar_status add_entry(DIR *dir, const struct dirent *entry, struct gar_dir_list *list,
                                 struct gar_error *err)
{
    void *items = list->entries;
    GAR_TRY(
        gar_grow(&items, &list->capacity, list->count + 1, (int64_t)sizeof *list->entries, err));
    list->entries = items;
    char *name = gar_strdup(entry->d_name);
    if (name == NULL) {
        return gar_error_nomem(err, (int64_t)strlen(entry->d_name) + 1);
    }
    list->entries[list->count].name = name;
    list->entries[list->count].kind = entry_kind(dir, entry);
    list->count++;
    return GAR_OK;
}

static enum gar_file_kind entry_kind(DIR *dir, const struct dirent *entry)
{
    if (entry->d_type == DT_REG) {
        return GAR_FILE_REGULAR;
    }
    if (entry->d_type == DT_DIR) {
        return GAR_FILE_DIRECTORY;
    }
    struct stat info;
    if ((entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN) &&
        fstatat(dirfd(dir), entry->d_name, &info, 0) == 0) {
        if (S_ISREG(info.st_mode)) {
            return GAR_FILE_REGULAR;
        }
        if (S_ISDIR(info.st_mode)) {
            return GAR_FILE_DIRECTORY;
        }
    }
    return GAR_FILE_OTHER;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct gar_dir_entry *)a)->name, ((const struct gar_dir_entry *)b)->name);
}

/* 0 or errno; a directory that is there is fine. */
static int make_one(const char *path)
{
    const int fault = gar_os_fault_hit(GAR_OS_MKDIR);
    if (fault != 0) {
        return fault;
    }
    if (mkdir(path, 0777) == 0) {
        return 0;
    }
    const int code = errno;
    struct stat info;
    return code == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode) ? 0 : code;
}
