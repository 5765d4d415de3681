/* SPDX-License-Identifier: Apache-2.0 */
/* Spilling: what running queries cannot hold lies in files without names. A space is the folder and the limit of an engine;
 * a file is that of one query. Nothing stays behind, however the process ends.
 *
 * Blocks are put at the end, by any number of threads, and are given back one by one: their bytes count against the limit
 * from the first to the last moment. The kernel keeps them in its page cache while it has room, so that writing is mostly
 * copying: it is done by compute threads (docs/decisions/0022). */
#ifndef GAR_STORAGE_SPILL_H
#define GAR_STORAGE_SPILL_H

#include "base/attrs.h"
#include "base/error.h"

struct gar_spill_space;
struct gar_spill_file;

/* folder NULL or "": TMPDIR, else /tmp. limit_bytes 0: nine tenths of what is free in the folder when the first byte is
 * written; negative: nothing may be spilled. The folder is looked at when the first byte is written.
 * Errors: GAR_ERR_NOMEM. Owns: caller unrefs; files hold references. Threads: any. */
GAR_MUST_USE enum gar_status gar_spill_space_new(const char *folder, int64_t limit_bytes,
                                                 struct gar_spill_space **out,
                                                 struct gar_error *err);
struct gar_spill_space *gar_spill_space_ref(struct gar_spill_space *space);
void gar_spill_space_unref(struct gar_spill_space *space);
int64_t gar_spill_space_used_bytes(const struct gar_spill_space *space);

/* No file is opened before the first block. Owns: caller frees. */
GAR_MUST_USE enum gar_status gar_spill_file_new(struct gar_spill_space *space,
                                                struct gar_spill_file **out, struct gar_error *err);
/* Its blocks are gone. No thread is at work with it. NULL is fine. */
void gar_spill_file_free(struct gar_spill_file *file);
/* Is there a space that lets it write? */
bool gar_spill_file_may_write(const struct gar_spill_file *file);

/* Write a block; it lies at *out_offset. Errors: GAR_ERR_NOMEM when the limit is reached ("out of memory and of spill space:
 * ..."), GAR_ERR_IO naming folder and bytes. Threads: any number at once; may block. */
GAR_MUST_USE enum gar_status gar_spill_file_write(struct gar_spill_file *file, const void *data,
                                                  int64_t bytes, int64_t *out_offset,
                                                  struct gar_error *err);
/* Read (part of) a block. Errors: GAR_ERR_IO. Threads: any number at once; may block. */
GAR_MUST_USE enum gar_status gar_spill_file_read(struct gar_spill_file *file, int64_t offset,
                                                 void *out, int64_t bytes, struct gar_error *err);
/* Give a whole block back. Threads: any. */
void gar_spill_file_release(struct gar_spill_file *file, int64_t offset, int64_t bytes);
/* Bytes written so far, given back or not. */
int64_t gar_spill_file_written_bytes(const struct gar_spill_file *file);

#endif
