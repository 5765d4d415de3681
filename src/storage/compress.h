/* SPDX-License-Identifier: Apache-2.0 */
/* Whole pieces of text compressed on their own: gzip members, zstd frames. Pieces one after the other are one valid file. */
#ifndef GAR_STORAGE_COMPRESS_H
#define GAR_STORAGE_COMPRESS_H

#include "base/attrs.h"
#include "base/error.h"
#include "base/strbuf.h"

enum gar_compression { GAR_COMPRESSION_NONE, GAR_COMPRESSION_GZIP, GAR_COMPRESSION_ZSTD };

/* "none", "gzip" or "zstd"; NULL: by the suffix of `path` (".gz", ".zst"; else none). Errors: GAR_ERR_VALUE naming
 * the word. */
GAR_MUST_USE enum gar_status gar_compression_parse(const char *word, const char *path,
                                                   enum gar_compression *out,
                                                   struct gar_error *err);
/* "", ".gz", ".zst" */
const char *gar_compression_suffix(enum gar_compression compression);
/* Append data, compressed, to out. Errors: GAR_ERR_NOMEM. Threads: any; never blocks. */
GAR_MUST_USE enum gar_status gar_compress(enum gar_compression compression, const void *data,
                                          int64_t bytes, struct gar_strbuf *out,
                                          struct gar_error *err);

#endif
