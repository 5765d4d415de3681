/* SPDX-License-Identifier: Apache-2.0 */
/* Files: open, transfer, publish. Each system call stands in one small wrapper that asks the fault hook and repeats
 * after EINTR; the public functions above them deal with short transfers and messages. */
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/fault.h"
#include "os/size_signal_priv.h"

/* The kernel moves at most about 2 GiB a call; 1 GiB keeps offsets aligned. */
#define TRANSFER_BYTES_MAX (INT64_C(1) << 30)
#define STOP_TICK_MS       20

/* Repeat `call` while the fault hook or the system says EINTR; result is -1 with errno set on failure. */
#define REPEAT(kind, result, call)                 \
    do {                                           \
        const int fault_ = gar_os_fault_hit(kind); \
        if (GAR_UNLIKELY(fault_ != 0)) {           \
            errno = fault_;                        \
            (result) = -1;                         \
        } else {                                   \
            (result) = (call);                     \
        }                                          \
    } while ((result) < 0 && errno == EINTR)

static enum gar_file_kind kind_of(mode_t mode);
static void fill_info(const struct stat *from, struct gar_file_info *out);
static int wait_for(int fd, short events, int timeout_ms);
static enum gar_status wait_readable(int fd, const char *path, const struct gar_file_stop *stop,
                                     struct gar_error *err);
static enum gar_status write_all(int fd, const char *path, const void *data, int64_t bytes,
                                 int64_t offset, struct gar_error *err);

enum gar_status gar_file_open(const char *path, enum gar_file_mode mode, int *out_fd,
                              struct gar_error *err)
{
    int flags = O_CLOEXEC;
    switch (mode) {
    case GAR_FILE_READ:
        flags |= O_RDONLY |
                 O_NONBLOCK; /* a FIFO without writer must not hang the open; files do not care */
        break;
    case GAR_FILE_CREATE: flags |= O_WRONLY | O_CREAT | O_TRUNC; break;
    case GAR_FILE_CREATE_NEW: flags |= O_WRONLY | O_CREAT | O_EXCL; break;
    case GAR_FILE_READ_WRITE: flags |= O_RDWR | O_CREAT; break;
    }
    int fd;
    REPEAT(GAR_OS_OPEN, fd, open(path, flags, 0666));
    if (fd < 0) {
        return gar_error_set_errno(err, errno, "cannot open '%s'", path);
    }
    *out_fd = fd;
    return GAR_OK;
}

/* Where the file system has no nameless files, one of a random name that is unlinked at once. */
static int open_unlinked(const char *folder)
{
    char path[4096];
    const int length = snprintf(path, sizeof path, "%s/.gar-XXXXXX", folder);
    if (length < 0 || length >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    const int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) {
        (void)unlink(path);
    }
    return fd;
}

enum gar_status gar_file_open_nameless(const char *folder, int *out_fd, struct gar_error *err)
{
    int fd;
    REPEAT(GAR_OS_OPEN, fd, open(folder, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600));
    if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
        REPEAT(GAR_OS_OPEN, fd, open_unlinked(folder));
    }
    if (fd < 0) {
        return gar_error_set_errno(err, errno, "cannot make a temporary file in '%s'", folder);
    }
    *out_fd = fd;
    return GAR_OK;
}

bool gar_file_hold(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

int64_t gar_folder_free_bytes(const char *folder)
{
    struct statvfs info;
    if (statvfs(folder, &info) != 0) {
        return -1;
    }
    const uint64_t bytes = (uint64_t)info.f_bavail * (uint64_t)info.f_frsize;
    return bytes > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)bytes;
}

void gar_file_advise_unused(int fd, int64_t offset, int64_t bytes)
{
    (void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);
}

enum gar_status gar_file_close(int fd, const char *path, struct gar_error *err)
{
    const int fault = gar_os_fault_hit(GAR_OS_CLOSE);
    /* Not repeated after EINTR: Linux has closed it by then. */
    int code = close(fd) == 0 || errno == EINTR ? 0 : errno;
    if (fault != 0 && fault != EINTR) {
        code = fault;
    }
    return code == 0 ? GAR_OK : gar_error_set_errno(err, code, "cannot close '%s'", path);
}

enum gar_status gar_file_read_at(int fd, const char *path, void *out, int64_t bytes, int64_t offset,
                                 int64_t *out_read, struct gar_error *err)
{
    int64_t done = 0;
    while (done < bytes) {
        const int64_t want =
            gar_os_fault_cut(GAR_OS_READ, gar_min_i64(bytes - done, TRANSFER_BYTES_MAX));
        ssize_t got;
        REPEAT(GAR_OS_READ, got,
               pread(fd, (char *)out + done, (size_t)want, (off_t)(offset + done)));
        if (got < 0 && errno == EAGAIN) {
            (void)wait_for(fd, POLLIN, STOP_TICK_MS);
            continue;
        }
        if (got < 0) {
            return gar_error_set_errno(err, errno, "cannot read '%s' at byte %lld", path,
                                       (long long)(offset + done));
        }
        if (got == 0) {
            break;
        }
        done += (int64_t)got;
    }
    *out_read = done;
    return GAR_OK;
}

enum gar_status gar_file_read_some(int fd, const char *path, void *out, int64_t bytes,
                                   const struct gar_file_stop *stop, int64_t *out_read,
                                   struct gar_error *err)
{
    const int64_t want = gar_os_fault_cut(GAR_OS_READ, gar_min_i64(bytes, TRANSFER_BYTES_MAX));
    for (;;) {
        GAR_TRY(wait_readable(fd, path, stop, err));
        ssize_t got;
        REPEAT(GAR_OS_READ, got, read(fd, out, (size_t)want));
        if (got >= 0) {
            *out_read = (int64_t)got;
            return GAR_OK;
        }
        if (errno != EAGAIN) {
            return gar_error_set_errno(err, errno, "cannot read '%s'", path);
        }
    }
}

enum gar_status gar_file_write_at(int fd, const char *path, const void *data, int64_t bytes,
                                  int64_t offset, struct gar_error *err)
{
    return write_all(fd, path, data, bytes, offset, err);
}

enum gar_status gar_file_write(int fd, const char *path, const void *data, int64_t bytes,
                               struct gar_error *err)
{
    return write_all(fd, path, data, bytes, -1, err);
}

enum gar_status gar_file_sync(int fd, const char *path, struct gar_error *err)
{
    int code;
    REPEAT(GAR_OS_SYNC, code, fsync(fd));
    return code == 0
               ? GAR_OK
               : gar_error_set_errno(err, errno, "cannot write '%s' through to the disk", path);
}

enum gar_status gar_file_truncate(int fd, const char *path, int64_t bytes, struct gar_error *err)
{
    int code;
    struct gar_size_signal held;
    gar_size_signal_hold(&held);
    REPEAT(GAR_OS_WRITE, code, ftruncate(fd, (off_t)bytes));
    gar_size_signal_release(&held);
    return code == 0 ? GAR_OK
                     : gar_error_set_errno(err, errno, "cannot set the size of '%s' to %lld", path,
                                           (long long)bytes);
}

enum gar_status gar_file_stat_fd(int fd, const char *path, struct gar_file_info *out,
                                 struct gar_error *err)
{
    struct stat info;
    int code;
    REPEAT(GAR_OS_STAT, code, fstat(fd, &info));
    if (code != 0) {
        return gar_error_set_errno(err, errno, "cannot look at '%s'", path);
    }
    fill_info(&info, out);
    return GAR_OK;
}

enum gar_status gar_file_stat(const char *path, struct gar_file_info *out, struct gar_error *err)
{
    struct stat info;
    int code;
    REPEAT(GAR_OS_STAT, code, stat(path, &info));
    if (code != 0) {
        return gar_error_set_errno(err, errno, "cannot look at '%s'", path);
    }
    fill_info(&info, out);
    return GAR_OK;
}

enum gar_status gar_file_rename(const char *from, const char *to, struct gar_error *err)
{
    int code;
    REPEAT(GAR_OS_RENAME, code, rename(from, to));
    return code == 0 ? GAR_OK
                     : gar_error_set_errno(err, errno, "cannot rename '%s' to '%s'", from, to);
}

enum gar_status gar_file_unlink(const char *path, struct gar_error *err)
{
    int code;
    REPEAT(GAR_OS_UNLINK, code, unlink(path));
    return code == 0 ? GAR_OK : gar_error_set_errno(err, errno, "cannot remove '%s'", path);
}

void gar_file_advise_sequential(int fd)
{
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
}

void gar_file_advise_soon(int fd, int64_t offset, int64_t bytes)
{
    (void)posix_fadvise(fd, (off_t)offset, (off_t)bytes, POSIX_FADV_WILLNEED);
}

static enum gar_file_kind kind_of(mode_t mode)
{
    if (S_ISREG(mode)) {
        return GAR_FILE_REGULAR;
    }
    return S_ISDIR(mode) ? GAR_FILE_DIRECTORY : GAR_FILE_OTHER;
}

static void fill_info(const struct stat *from, struct gar_file_info *out)
{
    out->kind = kind_of(from->st_mode);
    out->bytes = (int64_t)from->st_size;
    out->modified_ns =
        (int64_t)from->st_mtim.tv_sec * GAR_NS_PER_S + (int64_t)from->st_mtim.tv_nsec;
    out->changed_ns = (int64_t)from->st_ctim.tv_sec * GAR_NS_PER_S + (int64_t)from->st_ctim.tv_nsec;
    out->device = (uint64_t)from->st_dev;
    out->inode = (uint64_t)from->st_ino;
}

/* > 0: ready, 0: time is over or a signal came, -1: errno. */
static int wait_for(int fd, short events, int timeout_ms)
{
    struct pollfd one = {.fd = fd, .events = events, .revents = 0};
    const int code = poll(&one, 1, timeout_ms);
    return code < 0 && errno == EINTR ? 0 : code;
}

static enum gar_status wait_readable(int fd, const char *path, const struct gar_file_stop *stop,
                                     struct gar_error *err)
{
    for (;;) {
        if (stop != NULL && stop->is_stopped(stop->context)) {
            return gar_error_set(err, GAR_ERR_CANCELLED, "reading '%s' was cancelled", path);
        }
        const int code = wait_for(fd, POLLIN, stop != NULL ? STOP_TICK_MS : -1);
        if (code < 0) {
            return gar_error_set_errno(err, errno, "cannot wait for '%s'", path);
        }
        if (code > 0) {
            return GAR_OK;
        }
    }
}

/* offset < 0: at the current place. */
static enum gar_status write_all(int fd, const char *path, const void *data, int64_t bytes,
                                 int64_t offset, struct gar_error *err)
{
    int64_t done = 0;
    while (done < bytes) {
        const size_t want =
            (size_t)gar_os_fault_cut(GAR_OS_WRITE, gar_min_i64(bytes - done, TRANSFER_BYTES_MAX));
        const char *from = (const char *)data + done;
        ssize_t put;
        struct gar_size_signal held;
        gar_size_signal_hold(&held);
        if (offset < 0) {
            REPEAT(GAR_OS_WRITE, put, write(fd, from, want));
        } else {
            REPEAT(GAR_OS_WRITE, put, pwrite(fd, from, want, (off_t)(offset + done)));
        }
        gar_size_signal_release(&held);
        if (put < 0 && errno == EAGAIN) {
            (void)wait_for(fd, POLLOUT, STOP_TICK_MS);
            continue;
        }
        if (put < 0) {
            return gar_error_set_errno(err, errno, "cannot write %lld bytes to '%s'",
                                       (long long)(bytes - done), path);
        }
        done += (int64_t)put;
    }
    return GAR_OK;
}
