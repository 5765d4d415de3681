/* SPDX-License-Identifier: Apache-2.0 */
/* Anonymous maps at 2 MiB borders. mmap gives 4 KiB borders, so a larger range is taken and its ends given back. */
#include "os/map.h"

#include <assert.h>
#include <errno.h>
#include <sys/mman.h>

#include "os/fault.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14; older ones say EINVAL */
#endif

void *gar_map_new(int64_t bytes, bool is_huge)
{
    assert(bytes > 0 && bytes % GAR_MAP_PAGE_BYTES == 0);
    const int fault = gar_os_fault_hit(GAR_OS_MAP);
    if (fault != 0 || bytes > INT64_MAX - GAR_MAP_HUGE_BYTES) {
        errno = fault != 0 ? fault : ENOMEM;
        return NULL;
    }
    const size_t size = (size_t)bytes;
    const size_t padded = size + (size_t)GAR_MAP_HUGE_BYTES;
    char *start = mmap(NULL, padded, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) {
        return NULL;
    }
    const size_t over = (size_t)((uintptr_t)start % (uintptr_t)GAR_MAP_HUGE_BYTES);
    const size_t skip = over == 0 ? 0 : (size_t)GAR_MAP_HUGE_BYTES - over;
    char *data = start + skip;
    if (skip > 0) {
        (void)munmap(start, skip);
    }
    if (padded - skip > size) {
        (void)munmap(data + size, padded - skip - size);
    }
    const size_t whole = size - size % (size_t)GAR_MAP_HUGE_BYTES;
    (void)madvise(data, is_huge ? whole : size, is_huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    if (is_huge && size > whole) {
        (void)madvise(data + whole, size - whole, MADV_NOHUGEPAGE);
    }
    return data;
}

void gar_map_free(void *data, int64_t bytes)
{
    if (data != NULL) {
        (void)munmap(data, (size_t)bytes);
    }
}

void gar_map_populate(void *data, int64_t bytes)
{
    (void)madvise(data, (size_t)bytes, MADV_POPULATE_WRITE);
}

void gar_map_discard(void *data, int64_t bytes)
{
    (void)madvise(data, (size_t)bytes, MADV_DONTNEED);
}
