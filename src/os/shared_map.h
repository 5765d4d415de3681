/* SPDX-License-Identifier: Apache-2.0 */
/* Memory shared with another process by descriptor: nameless, freed by the kernel at the last close and unmap. */
#ifndef GAR_OS_SHARED_MAP_H
#define GAR_OS_SHARED_MAP_H

#include "base/attrs.h"
#include "base/error.h"

/* A nameless file (memfd) of `bytes`, close-on-exec, that nobody can shrink. `name` is for debuggers.
 * Errors: GAR_ERR_IO. Owns: caller closes. */
GAR_MUST_USE enum gar_status gar_shared_open(const char *name, int64_t bytes, int *out_fd,
                                             struct gar_error *err);
/* Make it larger. Errors: GAR_ERR_IO. */
GAR_MUST_USE enum gar_status gar_shared_grow(int fd, int64_t bytes, struct gar_error *err);
/* Bytes it has now, -1 when fd is none. */
int64_t gar_shared_size(int fd);
/* Address space for `window` bytes of the file, which may be larger than the file is yet; touching what it does not have
 * kills the process. NULL with errno when refused. */
void *gar_shared_map(int fd, int64_t window);
void gar_shared_unmap(void *data, int64_t window);
/* Make the pages of [offset, offset + bytes) exist in this process (both multiples of the page size). Errors: GAR_ERR_NOMEM when
 * the kernel has none; on kernels that cannot do it they come at first touch. */
GAR_MUST_USE enum gar_status gar_shared_populate(void *data, int64_t offset, int64_t bytes,
                                                 struct gar_error *err);
/* Give the pages of a range (multiples of the page size) back to the kernel, for all who map them; they read as zeros
 * then. */
void gar_shared_discard(void *data, int64_t offset, int64_t bytes);

#endif
