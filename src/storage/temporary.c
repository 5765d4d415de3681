/* SPDX-License-Identifier: Apache-2.0 */
/* Unique names: clock, process number and a counter, mixed. O_EXCL decides; the name only makes a clash unlikely. */
#include "storage/temporary.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/process.h"

#define TRIES         16
#define RANDOM_DIGITS 16
#define ORPHAN_AGE_NS (60 * GAR_NS_PER_S)
/* File systems take names of 255 bytes; leave room for what is added. */
#define NAME_BYTES_MAX 200

void gar_random_name(char *out)
{
    static atomic_uint_least64_t counter;
    uint64_t h = gar_hash_u64((uint64_t)gar_clock_wall_ns());
    h = gar_hash_combine(h, (uint64_t)gar_clock_ns());
    h = gar_hash_combine(h, (uint64_t)getpid());
    h = gar_hash_combine(h, atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed));
    (void)snprintf(out, 17, "%016llx", (unsigned long long)h);
}

enum gar_status gar_staged_open(const char *folder, const char *name, char **out_path, int *out_fd,
                                struct gar_error *err)
{
    for (int try = 0; try < TRIES; try++) {
        char random[17];
        struct gar_strbuf path = {0};
        gar_random_name(random);
        gar_strbuf_append(&path, folder);
        if (folder[0] != '\0' && folder[strlen(folder) - 1] != '/') {
            gar_strbuf_append_char(&path, '/');
        }
        gar_strbuf_append_char(&path, '.');
        gar_strbuf_append_n(&path, name, gar_min_i64((int64_t)strlen(name), NAME_BYTES_MAX));
        gar_strbuf_printf(&path, ".%lld.%s.tmp", (long long)getpid(), random);
        char *text = gar_strbuf_take(&path);
        gar_strbuf_destroy(&path);
        if (text == NULL) {
            return gar_error_nomem(err, 0);
        }
        struct gar_error failure = GAR_ERROR_INIT;
        const enum gar_status status = gar_file_open(text, GAR_FILE_CREATE_NEW, out_fd, &failure);
        if (status >= 0) {
            (void)gar_file_hold(*out_fd); /* tells gar_staged_clean that it is in use */
            *out_path = text;
            return GAR_OK;
        }
        gar_free(text);
        if (failure.os_errno != EEXIST || try == TRIES - 1) {
            if (err != NULL) {
                *err = failure;
            }
            return status;
        }
    }
    return gar_error_set(err, GAR_ERR_IO, "no free temporary name in '%s'", folder);
}

/* ".<name>.<pid>.<16 digits>.tmp" of a process that is gone? */
static bool is_orphan_name(const char *name)
{
    static const char tail[] = ".tmp";
    const int64_t bytes = (int64_t)strlen(name);
    const int64_t random = bytes - (int64_t)(sizeof tail - 1) - RANDOM_DIGITS;
    if (name[0] != '.' || random < 4 || strcmp(name + bytes - (sizeof tail - 1), tail) != 0 ||
        name[random - 1] != '.' ||
        strspn(name + random, "0123456789abcdef") != (size_t)RANDOM_DIGITS) {
        return false;
    }
    int64_t digits = random - 1;
    while (digits > 1 && name[digits - 1] >= '0' && name[digits - 1] <= '9') {
        digits--;
    }
    const long long pid = strtoll(name + digits, NULL, 10);
    return digits < random - 1 && name[digits - 1] == '.' && pid > 0 && !gar_process_may_live(pid);
}

static void remove_orphan(const char *path)
{
    int fd = -1;
    struct gar_file_info info = {.kind = GAR_FILE_OTHER};
    if (gar_file_open(path, GAR_FILE_READ, &fd, NULL) < 0) {
        return;
    }
    const bool is_old = gar_file_stat_fd(fd, path, &info, NULL) >= 0 &&
                        info.kind == GAR_FILE_REGULAR &&
                        gar_clock_wall_ns() - info.modified_ns > ORPHAN_AGE_NS;
    if (is_old && gar_file_hold(fd)) {
        const enum gar_status removed = gar_file_unlink(path, NULL);
        (void)removed;
    }
    const enum gar_status closed = gar_file_close(fd, path, NULL);
    (void)closed;
}

void gar_staged_clean(const char *folder)
{
    struct gar_dir_list list = {0};
    const char *where = folder[0] != '\0' ? folder : ".";
    if (gar_dir_read(where, &list, NULL) >= 0) {
        for (int64_t i = 0; i < list.count; i++) {
            struct gar_strbuf path = {0};
            if (is_orphan_name(list.entries[i].name)) {
                gar_strbuf_printf(&path, "%s/%s", where, list.entries[i].name);
                if (!path.failed) {
                    remove_orphan(gar_strbuf_text(&path));
                }
            }
            gar_strbuf_destroy(&path);
        }
    }
    gar_dir_list_destroy(&list);
}

enum gar_status gar_temporary_open(const char *name, char **out_path, int *out_fd,
                                   struct gar_error *err)
{
    const char *folder = getenv("TMPDIR");
    return gar_staged_open(folder != NULL && folder[0] != '\0' ? folder : "/tmp", name, out_path,
                           out_fd, err);
}
