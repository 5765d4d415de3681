/* SPDX-License-Identifier: Apache-2.0 */
/* Where a write goes: one named file, or one new file with a unique name in a folder. Shared by all sinks. */
#ifndef GAR_SOURCES_WRITE_TARGET_H
#define GAR_SOURCES_WRITE_TARGET_H

#include "arrow/batch.h"
#include "storage/sink.h"

/* A zeroed struct is empty. */
struct gar_write_target {
    char *path;            /* owned; the file that appears */
    char *folder;          /* owned; the folder it is made in, NULL when the user named the file */
    bool is_overwrite;     /* a folder's other files are removed after publishing */
    struct gar_sink *sink; /* owned; NULL before the first write */
};

/* `path` is what the user gave. It names a file when is_single_file, or when it ends in one of the suffixes
 * (NULL-terminated list, such as ".csv", ".csv.gz") and is no existing folder; else a folder, in which a file
 * "<unique>-0<suffix>" is made. Touches nothing. Errors: GAR_ERR_UNSUPPORTED (a scheme), GAR_ERR_VALUE,
 * GAR_ERR_NOMEM. Owns: caller destroys. */
GAR_MUST_USE enum gar_status gar_write_target_init(struct gar_write_target *target,
                                                   const char *path, bool is_single_file,
                                                   bool is_overwrite, const char *const *suffixes,
                                                   const char *new_suffix, struct gar_error *err);
/* Write to the staged file, which is made by the first call. Errors: GAR_ERR_IO. Threads: one at a time; may block. */
GAR_MUST_USE enum gar_status gar_write_target_write(struct gar_write_target *target,
                                                    const void *data, int64_t bytes,
                                                    struct gar_error *err);
/* Publish, and give a batch of one string column "path" with the one path. A target nothing was written to gives an
 * empty file.
 * Errors: GAR_ERR_IO, GAR_ERR_NOMEM. Owns: caller unrefs *out_paths. */
GAR_MUST_USE enum gar_status gar_write_target_publish(struct gar_write_target *target,
                                                      struct gar_memory *memory,
                                                      struct gar_batch **out_paths,
                                                      struct gar_error *err);
/* Removes what was staged unless it was published. */
void gar_write_target_destroy(struct gar_write_target *target);

#endif
