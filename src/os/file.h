/* SPDX-License-Identifier: Apache-2.0 */
/* Files by descriptor: every call handles EINTR and short transfers, opens close-on-exec, and asks the fault hook
 * first (os/fault.h). `path` is only for messages and may be any text ("<stdin>"). All calls may block: IO pool or
 * the caller's own thread. Errors are GAR_ERR_IO with os_errno and the path. */
#ifndef GAR_OS_FILE_H
#define GAR_OS_FILE_H

#include "base/attrs.h"
#include "base/error.h"

enum gar_file_mode {
    GAR_FILE_READ,
    GAR_FILE_CREATE,     /* write; created or emptied; mode 0666 less umask */
    GAR_FILE_CREATE_NEW, /* write; fails if it exists */
    GAR_FILE_READ_WRITE, /* read and write; created if missing, kept otherwise */
};

enum gar_file_kind {
    GAR_FILE_REGULAR,
    GAR_FILE_DIRECTORY,
    GAR_FILE_OTHER /* pipe, socket, device */
};

struct gar_file_info {
    enum gar_file_kind kind;
    int64_t bytes;       /* regular files */
    int64_t modified_ns; /* since 1970-01-01 UTC */
    int64_t changed_ns;  /* the same, but of anything, and set by the kernel alone */
    uint64_t device;
    uint64_t inode;
};

/* Somebody who can ask a blocked read to stop; is_stopped runs on the reading thread every 20 ms. */
struct gar_file_stop {
    bool (*is_stopped)(void *context);
    void *context;
};

/* Owns: close *out_fd with gar_file_close. A FIFO is opened without waiting for its writer. */
GAR_MUST_USE enum gar_status gar_file_open(const char *path, enum gar_file_mode mode, int *out_fd,
                                           struct gar_error *err);
/* A file without a name in the folder, for reading and writing by its owner alone: it is gone with the descriptor, however the
 * process ends. Owns: as gar_file_open. */
GAR_MUST_USE enum gar_status gar_file_open_nameless(const char *folder, int *out_fd,
                                                    struct gar_error *err);
/* Reports what close(2) says (a late write error); the descriptor is gone in any case. */
GAR_MUST_USE enum gar_status gar_file_close(int fd, const char *path, struct gar_error *err);
/* Reads until `bytes` are there or the file ends; *out_read tells. */
GAR_MUST_USE enum gar_status gar_file_read_at(int fd, const char *path, void *out, int64_t bytes,
                                              int64_t offset, int64_t *out_read,
                                              struct gar_error *err);
/* One read from the current place, at least one byte unless the end is reached (*out_read = 0); for pipes and standard
 * input. Waits with poll(2) and asks `stop` (may be NULL): GAR_ERR_CANCELLED when it says so. */
GAR_MUST_USE enum gar_status gar_file_read_some(int fd, const char *path, void *out, int64_t bytes,
                                                const struct gar_file_stop *stop, int64_t *out_read,
                                                struct gar_error *err);
/* All of `bytes`, at an offset or at the current place. */
GAR_MUST_USE enum gar_status gar_file_write_at(int fd, const char *path, const void *data,
                                               int64_t bytes, int64_t offset,
                                               struct gar_error *err);
GAR_MUST_USE enum gar_status gar_file_write(int fd, const char *path, const void *data,
                                            int64_t bytes, struct gar_error *err);
GAR_MUST_USE enum gar_status gar_file_sync(int fd, const char *path, struct gar_error *err);
GAR_MUST_USE enum gar_status gar_file_truncate(int fd, const char *path, int64_t bytes,
                                               struct gar_error *err);
GAR_MUST_USE enum gar_status gar_file_stat_fd(int fd, const char *path, struct gar_file_info *out,
                                              struct gar_error *err);
/* Follows links. os_errno = ENOENT: no such file. */
GAR_MUST_USE enum gar_status gar_file_stat(const char *path, struct gar_file_info *out,
                                           struct gar_error *err);
/* Replaces `to`. */
GAR_MUST_USE enum gar_status gar_file_rename(const char *from, const char *to,
                                             struct gar_error *err);
GAR_MUST_USE enum gar_status gar_file_unlink(const char *path, struct gar_error *err);
/* Hold the file against others who ask the same way, until the descriptor is closed or the process ends. False: another holds
 * it. Advice to those who ask; where the file system has no locks: true. Never blocks. */
bool gar_file_hold(int fd);
/* Bytes that an unprivileged process may still write into the folder; -1: not known. */
int64_t gar_folder_free_bytes(const char *folder);
/* Hints to the kernel; never fail. */
/* The bytes are not needed any more: gives their space back where the file system can; they read as anything. */
void gar_file_advise_unused(int fd, int64_t offset, int64_t bytes);
void gar_file_advise_sequential(int fd);
void gar_file_advise_soon(int fd, int64_t offset, int64_t bytes);

/* One entry of a directory; "." and ".." are left out. */
struct gar_dir_entry {
    char *name;              /* owned by the list */
    enum gar_file_kind kind; /* links are followed; a dangling one is OTHER */
};
struct gar_dir_list {
    struct gar_dir_entry *entries;
    int64_t count;
    int64_t capacity;
};
/* All entries, sorted by bytes of the name. Owns: caller destroys the list. */
GAR_MUST_USE enum gar_status gar_dir_read(const char *path, struct gar_dir_list *out,
                                          struct gar_error *err);
void gar_dir_list_destroy(struct gar_dir_list *list);
/* Makes the directory and its parents; one that exists is fine. */
GAR_MUST_USE enum gar_status gar_dir_make(const char *path, struct gar_error *err);
/* Removes an empty directory. */
GAR_MUST_USE enum gar_status gar_dir_remove(const char *path, struct gar_error *err);
/* Makes renames inside the directory durable. */
GAR_MUST_USE enum gar_status gar_dir_sync(const char *path, struct gar_error *err);

#endif
