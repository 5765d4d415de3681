/* SPDX-License-Identifier: Apache-2.0 */
/* Local files and streams behind one positioned read. */
#include "storage/source.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "runtime/activity.h"
#include "storage/paths.h"
#include "storage/temporary.h"

#define STANDARD_INPUT 0
#define COPY_BYTES     ((int64_t)1 << 20)

struct gar_source {
    /* constant */
    char *path; /* owned; "<stdin>" for standard input */
    int fd;
    bool owns_fd;
    bool is_stream;
    struct gar_file_info info;
    /* of the reader that holds `busy` */
    uint8_t *kept; /* owned; the stream's first bytes */
    int64_t kept_bytes;
    int64_t kept_capacity;
    int64_t taken; /* bytes that were read from the stream */
    bool is_at_end;
    /* atomic */
    atomic_int_least64_t refs;
    atomic_flag busy; /* acquire and release order the stream's fields between readers */
};

static struct gar_source_id id_of(const struct gar_file_info *info)
{
    return (struct gar_source_id){info->bytes, info->modified_ns, info->device, info->inode};
}

static bool is_same(const struct gar_source_id *a, const struct gar_source_id *b)
{
    return a->bytes == b->bytes && a->modified_ns == b->modified_ns && a->device == b->device &&
           a->inode == b->inode;
}

/* Pipes and devices are streams; so is what says that it is empty and is not (files of /proc), and a standard input of
 * which somebody has read already. */
static enum gar_status find_stream(struct gar_source *source, struct gar_error *err)
{
    source->is_stream = source->info.kind != GAR_FILE_REGULAR;
    if (!source->is_stream && source->info.bytes == 0) {
        uint8_t byte;
        int64_t got = 0;
        GAR_TRY(gar_file_read_at(source->fd, source->path, &byte, 1, 0, &got, err));
        source->is_stream = got > 0;
    }
    if (!source->is_stream && !source->owns_fd) {
        source->is_stream = lseek(source->fd, 0, SEEK_CUR) > 0;
    }
    return GAR_OK;
}

static enum gar_status fill_source(struct gar_source *source, const char *path,
                                   const struct gar_source_id *expected, struct gar_error *err)
{
    const bool is_standard = strcmp(path, "-") == 0;
    source->path = gar_strdup(is_standard ? "<stdin>" : path);
    if (source->path == NULL) {
        return gar_error_nomem(err, (int64_t)strlen(path) + 1);
    }
    source->fd = STANDARD_INPUT;
    if (!is_standard) {
        GAR_TRY(gar_file_open(path, GAR_FILE_READ, &source->fd, err));
        source->owns_fd = true;
    }
    GAR_TRY(gar_file_stat_fd(source->fd, source->path, &source->info, err));
    if (source->info.kind == GAR_FILE_DIRECTORY) {
        return gar_error_set_errno(err, EISDIR, "cannot read '%s' as a file", source->path);
    }
    GAR_TRY(find_stream(source, err));
    const struct gar_source_id id = id_of(&source->info);
    if (expected != NULL && !source->is_stream && !is_same(&id, expected)) {
        return gar_error_set(err, GAR_ERR_IO,
                             "file '%s' changed since it was looked at; read it again", path);
    }
    if (!source->is_stream) {
        gar_file_advise_sequential(source->fd);
    }
    return GAR_OK;
}

enum gar_status gar_source_open(const char *path, const struct gar_source_id *expected,
                                struct gar_source **out, struct gar_error *err)
{
    struct gar_source *source = gar_calloc(1, (int64_t)sizeof *source);
    if (source == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *source);
    }
    atomic_init(&source->refs, 1);
    atomic_flag_clear(&source->busy);
    const enum gar_status status = fill_source(source, path, expected, err);
    if (status < 0) {
        gar_source_unref(source);
        return status;
    }
    *out = source;
    return GAR_OK;
}

struct gar_source *gar_source_ref(struct gar_source *source)
{
    atomic_fetch_add_explicit(&source->refs, 1, memory_order_relaxed);
    return source;
}

void gar_source_unref(struct gar_source *source)
{
    if (source == NULL || atomic_fetch_sub_explicit(&source->refs, 1, memory_order_acq_rel) > 1) {
        return;
    }
    if (source->owns_fd) {
        (void)(gar_file_close(source->fd, source->path, NULL) < 0); /* nothing was written */
    }
    gar_free(source->kept);
    gar_free(source->path);
    gar_free(source);
}

const char *gar_source_path(const struct gar_source *source)
{
    return source->path;
}

int64_t gar_source_bytes(const struct gar_source *source)
{
    return source->is_stream ? -1 : source->info.bytes;
}

bool gar_source_is_stream(const struct gar_source *source)
{
    return source->is_stream;
}

bool gar_source_is_same(const char *path, const struct gar_source_id *id)
{
    struct gar_file_info info;
    if (gar_file_stat(path, &info, NULL) != GAR_OK) {
        return false;
    }
    const struct gar_source_id now = id_of(&info);
    return is_same(&now, id);
}

struct gar_source_id gar_source_id_of(const struct gar_source *source)
{
    return id_of(&source->info);
}

int64_t gar_source_changed_ns(const struct gar_source *source)
{
    return source->info.changed_ns;
}

static enum gar_status read_file(struct gar_source *source, void *out, int64_t bytes,
                                 int64_t offset, int64_t *out_read, struct gar_error *err)
{
    const int64_t there = gar_max_i64(source->info.bytes - offset, 0);
    const int64_t want = gar_min_i64(bytes, there);
    GAR_TRY(gar_file_read_at(source->fd, source->path, out, want, offset, out_read, err));
    if (*out_read < want) {
        return gar_error_set(
            err, GAR_ERR_IO, "file '%s' became shorter while it was read (%lld bytes, now %lld)",
            source->path, (long long)source->info.bytes, (long long)(offset + *out_read));
    }
    return GAR_OK;
}

static bool is_stopped(void *context)
{
    return gar_cancel_poll(context);
}

/* The next bytes of the stream, kept while there is room. */
static enum gar_status take_stream(struct gar_source *source, uint8_t *out, int64_t bytes,
                                   struct gar_cancel *cancel, int64_t *out_read,
                                   struct gar_error *err)
{
    const struct gar_file_stop stop = {is_stopped, cancel};
    int64_t done = 0;
    while (done < bytes && !source->is_at_end) {
        int64_t got = 0;
        const enum gar_status status =
            gar_file_read_some(source->fd, source->path, out + done, bytes - done,
                               cancel != NULL ? &stop : NULL, &got, err);
        if (status < 0) {
            return gar_cancel_requested(cancel) ? gar_cancel_status(cancel, err) : status;
        }
        source->is_at_end = got == 0;
        const int64_t keep = gar_min_i64(got, GAR_SOURCE_KEPT_BYTES - source->kept_bytes);
        if (keep > 0 && source->kept_bytes == source->taken) {
            GAR_TRY(gar_grow((void **)&source->kept, &source->kept_capacity,
                             source->kept_bytes + keep, 1, err));
            memcpy(source->kept + source->kept_bytes, out + done, (size_t)keep);
            source->kept_bytes += keep;
        }
        source->taken += got;
        done += got;
    }
    *out_read = done;
    return GAR_OK;
}

static enum gar_status read_stream(struct gar_source *source, uint8_t *out, int64_t bytes,
                                   int64_t offset, struct gar_cancel *cancel, int64_t *out_read,
                                   struct gar_error *err)
{
    const int64_t again = gar_max_i64(gar_min_i64(bytes, source->kept_bytes - offset), 0);
    if (again > 0) {
        memcpy(out, source->kept + offset, (size_t)again);
    }
    *out_read = again;
    if (again == bytes) {
        return GAR_OK;
    }
    if (offset + again != source->taken) {
        return gar_error_set(
            err, GAR_ERR_IO,
            "%s can be read only once (its first %lld bytes are gone); save it to a file first",
            source->path, (long long)source->taken);
    }
    int64_t more = 0;
    GAR_TRY(take_stream(source, out + again, bytes - again, cancel, &more, err));
    *out_read = again + more;
    return GAR_OK;
}

enum gar_status gar_source_read_at(struct gar_source *source, void *out, int64_t bytes,
                                   int64_t offset, struct gar_cancel *cancel, int64_t *out_read,
                                   struct gar_error *err)
{
    *out_read = 0;
    GAR_CANCEL_CHECK(cancel, err);
    if (!source->is_stream) {
        gar_activity_begin(GAR_ACTIVITY_READ, source->path, offset, bytes);
        const enum gar_status status = read_file(source, out, bytes, offset, out_read, err);
        gar_activity_end();
        return status;
    }
    if (atomic_flag_test_and_set_explicit(&source->busy, memory_order_acquire)) {
        return gar_error_set(err, GAR_ERR_IO, "%s is being read by another query", source->path);
    }
    gar_activity_begin(GAR_ACTIVITY_READ, source->path, offset, bytes);
    const enum gar_status status = read_stream(source, out, bytes, offset, cancel, out_read, err);
    gar_activity_end();
    atomic_flag_clear_explicit(&source->busy, memory_order_release);
    return status;
}

enum gar_status gar_source_check(const struct gar_source *source, struct gar_error *err)
{
    if (source->is_stream) {
        return GAR_OK;
    }
    struct gar_file_info now;
    GAR_TRY(gar_file_stat_fd(source->fd, source->path, &now, err));
    if (now.bytes != source->info.bytes) {
        return gar_error_set(err, GAR_ERR_IO,
                             "file '%s' changed while it was read (%lld bytes, now %lld)",
                             source->path, (long long)source->info.bytes, (long long)now.bytes);
    }
    if (now.modified_ns != source->info.modified_ns) {
        return gar_error_set(err, GAR_ERR_IO, "file '%s' changed while it was read", source->path);
    }
    return GAR_OK;
}

bool gar_source_is_unchanged(const struct gar_source *source)
{
    struct gar_file_info now;
    return gar_file_stat_fd(source->fd, source->path, &now, NULL) >= 0 &&
           now.bytes == source->info.bytes && now.modified_ns == source->info.modified_ns &&
           now.changed_ns == source->info.changed_ns;
}

void gar_source_advise(const struct gar_source *source, int64_t offset, int64_t bytes)
{
    if (!source->is_stream) {
        gar_file_advise_soon(source->fd, offset, bytes);
    }
}

/* ---- streams into files ---- */

/* Half of what is free where the file is: others need the folder too, and it may be memory. */
static int64_t spool_bytes_max(int fd)
{
    struct statvfs info;
    if (fstatvfs(fd, &info) != 0) {
        return INT64_MAX;
    }
    uint64_t bytes = 0;
    const bool is_huge =
        __builtin_mul_overflow((uint64_t)info.f_bavail / 2, (uint64_t)info.f_frsize, &bytes);
    return is_huge || bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
}

static enum gar_status copy_stream(struct gar_source *source, int fd, const char *path,
                                   uint8_t *buffer, struct gar_cancel *cancel,
                                   struct gar_error *err)
{
    const int64_t bytes_max = spool_bytes_max(fd);
    int64_t offset = 0;
    for (;;) {
        int64_t got = 0;
        GAR_TRY(gar_source_read_at(source, buffer, COPY_BYTES, offset, cancel, &got, err));
        if (got == 0) {
            return GAR_OK;
        }
        if (got > bytes_max - offset) {
            return gar_error_set(
                err, GAR_ERR_IO,
                "%s has more than %lld bytes, half of the room for temporary files ('%s'); set "
                "TMPDIR to a folder with more, or save it to a file first",
                source->path, (long long)bytes_max, path);
        }
        GAR_TRY(gar_file_write(fd, path, buffer, got, err));
        offset += got;
    }
}

enum gar_status gar_source_seekable(struct gar_source *source, struct gar_cancel *cancel,
                                    struct gar_source **out, struct gar_error *err)
{
    if (!source->is_stream) {
        *out = gar_source_ref(source);
        return GAR_OK;
    }
    uint8_t *buffer = gar_malloc(COPY_BYTES);
    if (buffer == NULL) {
        return gar_error_nomem(err, COPY_BYTES);
    }
    char *path = NULL;
    int fd = -1;
    enum gar_status status = gar_temporary_open("stdin", &path, &fd, err);
    if (status >= 0) {
        status = copy_stream(source, fd, path, buffer, cancel, err);
        const enum gar_status closed = gar_file_close(fd, path, status >= 0 ? err : NULL);
        status = status >= 0 ? closed : status;
        if (status >= 0) {
            status = gar_source_open(path, NULL, out, err);
        }
        const enum gar_status removed = gar_file_unlink(path, NULL);
        (void)removed; /* at worst a file stays in the temporary folder */
    }
    gar_free(path);
    gar_free(buffer);
    return status;
}
