/* SPDX-License-Identifier: Apache-2.0 */
/* Byte sources: local files read at any place, and streams (standard input, pipes) read in order. */
#ifndef GAR_STORAGE_SOURCE_H
#define GAR_STORAGE_SOURCE_H

#include "base/attrs.h"
#include "base/error.h"
#include "os/file.h"
#include "runtime/cancel.h"

/* How much of a stream's start is kept, so that a sample can be read before the data and a short input any number of
 * times. */
#define GAR_SOURCE_KEPT_BYTES ((int64_t)4 << 20)

/* Which state of a file somebody has seen; equal ids mean equal contents as far as the file system tells. */
struct gar_source_id {
    int64_t bytes;
    int64_t modified_ns;
    uint64_t device;
    uint64_t inode;
};

struct gar_source;

/* Open a file, or standard input for "-". Files that claim to be empty and are not (/proc) are streams.
 * With `expected` (may be NULL) the file must still be in that state.
 * Errors: GAR_ERR_IO with path and the system's reason (os_errno), also for a directory and a file that changed.
 * Owns: caller unrefs *out. Threads: may block. */
GAR_MUST_USE enum gar_status gar_source_open(const char *path, const struct gar_source_id *expected,
                                             struct gar_source **out, struct gar_error *err);
struct gar_source *gar_source_ref(struct gar_source *source);
void gar_source_unref(struct gar_source *source);

const char *gar_source_path(const struct gar_source *source);
/* Size when it was opened; -1 for a stream. */
int64_t gar_source_bytes(const struct gar_source *source);
bool gar_source_is_stream(const struct gar_source *source);
/* Is the file at path still in this state? False also when it cannot be looked at. */
bool gar_source_is_same(const char *path, const struct gar_source_id *id);
struct gar_source_id gar_source_id_of(const struct gar_source *source);
/* When anything of the file (content, name, owner) was changed last, by the kernel's clock. */
int64_t gar_source_changed_ns(const struct gar_source *source);

/* Fill `out` from `offset` on; fewer than `bytes` (*out_read) only at the end. A file ends where it ended when it
 * was opened. A stream gives its kept start again; behind that only the next bytes in order.
 * Errors: GAR_ERR_IO (system's reason; file became shorter; stream read out of order), the cancel's reason.
 * Threads: files: any number at once; streams: one at a time, a second one is refused. May block; cancel may be NULL. */
GAR_MUST_USE enum gar_status gar_source_read_at(struct gar_source *source, void *out, int64_t bytes,
                                                int64_t offset, struct gar_cancel *cancel,
                                                int64_t *out_read, struct gar_error *err);
/* Is the file still as it was when it was opened? Ask when all is read: GAR_ERR_IO "changed while it was read" if
 * not. Streams always are. */
GAR_MUST_USE enum gar_status gar_source_check(const struct gar_source *source,
                                              struct gar_error *err);
/* The same, of anything (content, name, owner), as an answer. Blocks. */
bool gar_source_is_unchanged(const struct gar_source *source);
/* Hint that [offset, offset + bytes) is wanted soon. */
void gar_source_advise(const struct gar_source *source, int64_t offset, int64_t bytes);

/* For formats that need any place: a stream's whole content in an unlinked file of the temporary folder, which it may fill by
 * half; a file is given back as it is (new reference). Errors: GAR_ERR_IO, the cancel's reason. */
GAR_MUST_USE enum gar_status gar_source_seekable(struct gar_source *source,
                                                 struct gar_cancel *cancel, struct gar_source **out,
                                                 struct gar_error *err);

#endif
