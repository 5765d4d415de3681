/* SPDX-License-Identifier: Apache-2.0 */
/* What was worked out from files that were read before in this process (Parquet footers), so that the same files are
 * planned again without reading and parsing. A value is found by path and by what the file system says of the file's state,
 * and it is kept only when that state is so old that a later change must show. Off until somebody sets a limit. */
#ifndef GAR_STORAGE_FILE_CACHE_H
#define GAR_STORAGE_FILE_CACHE_H

#include "storage/source.h"

/* A kind of values: immutable and counted. */
struct gar_file_cache_kind {
    void (*ref)(void *value);
    void (*unref)(void *value);
};

/* How many bytes all kept values may have, 0: none is kept; those beyond are dropped now. Threads: any; a leaf lock. */
void gar_file_cache_set_limit(int64_t bytes);
/* The value of the file in its present state (a new reference), or NULL. */
void *gar_file_cache_find(const struct gar_file_cache_kind *kind, const struct gar_source *source);
/* Keep a reference to the value, which has so many bytes, unless the file changed within the last seconds or there is no
 * room. */
void gar_file_cache_add(const struct gar_file_cache_kind *kind, const struct gar_source *source,
                        void *value, int64_t bytes);

#endif
