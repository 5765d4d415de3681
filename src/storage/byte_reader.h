/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a source in order, decompressed when it is gzip or zstd: all members, all frames. */
#ifndef GAR_STORAGE_BYTE_READER_H
#define GAR_STORAGE_BYTE_READER_H

#include "storage/source.h"

struct gar_byte_reader;

/* A reader from the start of the source. The first bytes tell the compression, whatever the name says.
 * Errors: GAR_ERR_IO, GAR_ERR_UNSUPPORTED for bzip2, xz and lz4, GAR_ERR_NOMEM. Owns: takes a reference; caller
 *         frees *out. cancel is
 * borrowed for its life and may be NULL. Threads: one at a time; may block. */
GAR_MUST_USE enum gar_status gar_byte_reader_new(struct gar_source *source,
                                                 struct gar_cancel *cancel,
                                                 struct gar_byte_reader **out,
                                                 struct gar_error *err);
void gar_byte_reader_free(struct gar_byte_reader *reader);
bool gar_byte_reader_is_compressed(const struct gar_byte_reader *reader);

/* Fill `out` with the next bytes; fewer than `bytes` (*out_read) only at the end of the data. At the end it is
 * checked that the file did not change meanwhile.
 * Errors: GAR_ERR_IO, GAR_ERR_FORMAT with path for damaged or cut compressed data and for zstd windows over 128 MiB, the
 * cancel's reason. */
GAR_MUST_USE enum gar_status gar_byte_reader_read(struct gar_byte_reader *reader, void *out,
                                                  int64_t bytes, int64_t *out_read,
                                                  struct gar_error *err);

#endif
