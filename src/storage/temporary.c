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

#define TRIES 16
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

enum gar_status gar_temporary_open(const char *name, char **out_path, int *out_fd,
                                   struct gar_error *err)
{
    const char *folder = getenv("TMPDIR");
    return gar_staged_open(folder != NULL && folder[0] != '\0' ? folder : "/tmp", name, out_path,
                           out_fd, err);
}
