/* SPDX-License-Identifier: Apache-2.0 */
/* Names that nobody else has: staged siblings and files of the temporary folder. */
#ifndef GAR_STORAGE_TEMPORARY_H
#define GAR_STORAGE_TEMPORARY_H

#include "base/attrs.h"
#include "base/error.h"

/* Make and open for writing "<folder>/.<name>.<pid>.<random>.tmp"; fails rather than open what is there. folder ""
 * is the current one.
 * Errors: GAR_ERR_IO. Owns: caller frees *out_path (gar_free) and closes *out_fd. Threads: may block. */
GAR_MUST_USE enum gar_status gar_staged_open(const char *folder, const char *name, char **out_path,
                                             int *out_fd, struct gar_error *err);
/* Remove what writers left in the folder that were killed: files of such names whose process is gone, that nobody holds, and
 * that were not written to for a minute. What cannot be looked at or removed stays. Threads: may block. */
void gar_staged_clean(const char *folder);
/* The same in the temporary folder (TMPDIR, else /tmp). */
GAR_MUST_USE enum gar_status gar_temporary_open(const char *name, char **out_path, int *out_fd,
                                                struct gar_error *err);
/* 16 hexadecimal digits that no other call in any process is likely to give. out has room for 17 bytes. */
void gar_random_name(char *out);

#endif
