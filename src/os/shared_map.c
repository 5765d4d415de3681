/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory over memfd_create(2), sealed against shrinking. */
#include "os/shared_map.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/fault.h"
#include "os/map.h"
#include "os/size_signal_priv.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; older ones say EINVAL */
#endif

/* ftruncate(2); the limit of file sizes holds for shared memory too. */
static int set_size(int fd, int64_t bytes)
{
    struct gar_size_signal held;
    gar_size_signal_hold(&held);
    const int code = ftruncate(fd, (off_t)bytes);
    gar_size_signal_release(&held);
    return code;
}

enum gar_status gar_shared_open(const char *name, int64_t bytes, int *out_fd, struct gar_error *err)
{
    int code = gar_os_fault_hit(GAR_OS_MAP);
    if (code == 0) {
        const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0) {
            code = errno;
        } else if (set_size(fd, bytes) != 0 ||
                   fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
            code = errno;
            (void)close(fd);
        } else {
            *out_fd = fd;
            return GAR_OK;
        }
    }
    return gar_error_set_errno(err, code, "cannot make shared memory of %lld bytes",
                               (long long)bytes);
}

enum gar_status gar_shared_grow(int fd, int64_t bytes, struct gar_error *err)
{
    int code = gar_os_fault_hit(GAR_OS_MAP);
    if (code == 0) {
        if (set_size(fd, bytes) == 0) {
            return GAR_OK;
        }
        code = errno;
    }
    return gar_error_set_errno(err, code, "cannot grow shared memory to %lld bytes",
                               (long long)bytes);
}

int64_t gar_shared_size(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 ? (int64_t)st.st_size : -1;
}

void *gar_shared_map(int fd, int64_t window)
{
    const int fault = gar_os_fault_hit(GAR_OS_MAP);
    if (fault != 0) {
        errno = fault;
        return NULL;
    }
    void *data =
        mmap(NULL, (size_t)window, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (data == MAP_FAILED) {
        return NULL;
    }
    (void)madvise(data, (size_t)window, MADV_DONTDUMP);
    return data;
}

void gar_shared_unmap(void *data, int64_t window)
{
    if (data != NULL) {
        (void)munmap(data, (size_t)window);
    }
}

enum gar_status gar_shared_populate(void *data, int64_t offset, int64_t bytes,
                                    struct gar_error *err)
{
    if (bytes <= 0) {
        return GAR_OK;
    }
    if (madvise((char *)data + offset, (size_t)bytes, MADV_POPULATE_WRITE) == 0 ||
        errno == EINVAL || errno == EINTR || errno == EAGAIN) {
        return GAR_OK;
    }
    return gar_error_set(err, GAR_ERR_NOMEM,
                         "the system has no memory for %lld more bytes shared with an actor",
                         (long long)bytes);
}

void gar_shared_discard(void *data, int64_t offset, int64_t bytes)
{
    if (bytes > 0) {
        (void)madvise((char *)data + offset, (size_t)bytes, MADV_REMOVE);
    }
}
