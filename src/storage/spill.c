/* SPDX-License-Identifier: Apache-2.0 */
/* One file a query: writers take places at its end by an atomic addition and write at once; holes are punched where blocks
 * were. Places are multiples of the page size, so that a hole takes whole pages along. */
#include "storage/spill.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "os/file.h"

#define PAGE_BYTES 4096

struct gar_spill_space {
    int64_t refs;        /* atomic */
    char *folder;        /* owned */
    int64_t given_limit; /* as asked for */
    int64_t limit;       /* atomic; 0: not looked up yet */
    int64_t used;        /* atomic */
};

struct gar_spill_file {
    struct gar_spill_space *space; /* owned reference */
    int32_t fd;                    /* atomic; -1: not open */
    int64_t end;                   /* atomic */
    int64_t used;                  /* atomic; of the space */
};

static const char *default_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder != NULL && folder[0] != '\0' ? folder : "/tmp";
}

static int64_t whole_pages(int64_t bytes)
{
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* ---- the space ---- */

enum gar_status gar_spill_space_new(const char *folder, int64_t limit_bytes,
                                    struct gar_spill_space **out, struct gar_error *err)
{
    struct gar_spill_space *space = (struct gar_spill_space *)gar_calloc(1, (int64_t)sizeof *space);
    char *name = gar_strdup(folder != NULL && folder[0] != '\0' ? folder : default_folder());
    if (space == NULL || name == NULL) {
        gar_free(space);
        gar_free(name);
        return gar_error_nomem(err, (int64_t)sizeof *space);
    }
    *space = (struct gar_spill_space){.refs = 1, .folder = name, .given_limit = limit_bytes};
    space->limit = limit_bytes > 0 ? limit_bytes : 0;
    *out = space;
    return GAR_OK;
}

struct gar_spill_space *gar_spill_space_ref(struct gar_spill_space *space)
{
    (void)__atomic_fetch_add(&space->refs, 1, __ATOMIC_RELAXED);
    return space;
}

void gar_spill_space_unref(struct gar_spill_space *space)
{
    if (space == NULL || __atomic_sub_fetch(&space->refs, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    gar_free(space->folder);
    gar_free(space);
}

int64_t gar_spill_space_used_bytes(const struct gar_spill_space *space)
{
    return __atomic_load_n(&space->used, __ATOMIC_RELAXED);
}

static int64_t limit_of(struct gar_spill_space *space)
{
    int64_t limit = __atomic_load_n(&space->limit, __ATOMIC_RELAXED);
    if (limit == 0) {
        const int64_t room = gar_folder_free_bytes(space->folder);
        limit = room < 0 ? INT64_MAX : gar_max_i64(room / 10 * 9, 1);
        __atomic_store_n(&space->limit, limit, __ATOMIC_RELAXED);
    }
    return limit;
}

static enum gar_status refuse(const struct gar_spill_space *space, int64_t bytes, int64_t limit,
                              struct gar_error *err)
{
    if (space->given_limit < 0) {
        return gar_error_set(err, GAR_ERR_NOMEM,
                             "out of memory, and nothing may be spilled: raise the memory limit or "
                             "the spill limit");
    }
    return gar_error_set(err, GAR_ERR_NOMEM,
                         "out of memory and of spill space: %lld more bytes in '%s' would exceed "
                         "the limit of %lld; raise the spill limit, name a folder with more room, "
                         "or raise the memory limit",
                         (long long)bytes, space->folder, (long long)limit);
}

static enum gar_status reserve(struct gar_spill_space *space, int64_t bytes, struct gar_error *err)
{
    if (space->given_limit < 0) {
        return refuse(space, bytes, 0, err);
    }
    const int64_t limit = limit_of(space);
    if (__atomic_add_fetch(&space->used, bytes, __ATOMIC_RELAXED) > limit) {
        (void)__atomic_sub_fetch(&space->used, bytes, __ATOMIC_RELAXED);
        return refuse(space, bytes, limit, err);
    }
    return GAR_OK;
}

/* ---- files ---- */

enum gar_status gar_spill_file_new(struct gar_spill_space *space, struct gar_spill_file **out,
                                   struct gar_error *err)
{
    struct gar_spill_file *file = (struct gar_spill_file *)gar_calloc(1, (int64_t)sizeof *file);
    if (file == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *file);
    }
    file->space = gar_spill_space_ref(space);
    file->fd = -1;
    *out = file;
    return GAR_OK;
}

/* What it held is not wanted any more. */
static void close_file(const struct gar_spill_file *file, int fd)
{
    const enum gar_status status = gar_file_close(fd, file->space->folder, NULL);
    (void)status;
}

void gar_spill_file_free(struct gar_spill_file *file)
{
    if (file == NULL) {
        return;
    }
    if (file->fd >= 0) {
        close_file(file, file->fd);
    }
    (void)__atomic_sub_fetch(&file->space->used, file->used, __ATOMIC_RELAXED);
    gar_spill_space_unref(file->space);
    gar_free(file);
}

bool gar_spill_file_may_write(const struct gar_spill_file *file)
{
    return file->space->given_limit >= 0;
}

/* Two that open at once keep the file of one. */
static enum gar_status need_open(struct gar_spill_file *file, int *out_fd, struct gar_error *err)
{
    int32_t fd = __atomic_load_n(&file->fd, __ATOMIC_ACQUIRE);
    if (fd >= 0) {
        *out_fd = fd;
        return GAR_OK;
    }
    int32_t none = -1;
    GAR_TRY(gar_file_open_nameless(file->space->folder, &fd, err));
    if (!__atomic_compare_exchange_n(&file->fd, &none, fd, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        close_file(file, fd);
        fd = none;
    }
    *out_fd = fd;
    return GAR_OK;
}

/* What the system said, with the folder, the bytes and what to do. */
static enum gar_status explain(const struct gar_spill_file *file, int64_t bytes,
                               enum gar_status status, struct gar_error *err)
{
    if (err == NULL) {
        return status;
    }
    char why[256];
    const int number = err->os_errno;
    (void)snprintf(why, sizeof why, "%.255s", err->message);
    const enum gar_status made = gar_error_set(
        err, GAR_ERR_IO,
        "spilling %lld bytes into '%s' failed (%lld bytes lie there): %s; make room there, name "
        "another folder with the setting spill_dir, or raise the memory limit",
        (long long)bytes, file->space->folder, (long long)gar_spill_space_used_bytes(file->space),
        why);
    err->os_errno = number;
    return made;
}

enum gar_status gar_spill_file_write(struct gar_spill_file *file, const void *data, int64_t bytes,
                                     int64_t *out_offset, struct gar_error *err)
{
    const int64_t held = whole_pages(bytes);
    int fd = -1;
    GAR_TRY(reserve(file->space, held, err));
    (void)__atomic_add_fetch(&file->used, held, __ATOMIC_RELAXED);
    enum gar_status status = need_open(file, &fd, err);
    if (status >= 0) {
        *out_offset = __atomic_fetch_add(&file->end, held, __ATOMIC_RELAXED);
        status = gar_file_write_at(fd, file->space->folder, data, bytes, *out_offset, err);
    }
    return status < 0 ? explain(file, bytes, status, err) : GAR_OK;
}

enum gar_status gar_spill_file_read(struct gar_spill_file *file, int64_t offset, void *out,
                                    int64_t bytes, struct gar_error *err)
{
    int64_t got = 0;
    const int fd = __atomic_load_n(&file->fd, __ATOMIC_ACQUIRE);
    GAR_TRY(gar_file_read_at(fd, file->space->folder, out, bytes, offset, &got, err));
    if (got < bytes) {
        return gar_error_set(err, GAR_ERR_IO,
                             "spilled data in '%s' is gone: %lld of %lld bytes are there",
                             file->space->folder, (long long)got, (long long)bytes);
    }
    return GAR_OK;
}

void gar_spill_file_release(struct gar_spill_file *file, int64_t offset, int64_t bytes)
{
    const int64_t held = whole_pages(bytes);
    gar_file_advise_unused(__atomic_load_n(&file->fd, __ATOMIC_ACQUIRE), offset, held);
    (void)__atomic_sub_fetch(&file->used, held, __ATOMIC_RELAXED);
    (void)__atomic_sub_fetch(&file->space->used, held, __ATOMIC_RELAXED);
}

int64_t gar_spill_file_written_bytes(const struct gar_spill_file *file)
{
    return __atomic_load_n(&file->end, __ATOMIC_RELAXED);
}
