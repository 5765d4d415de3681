/* SPDX-License-Identifier: Apache-2.0 */
/* Byte sinks: files staged under hidden names and published by rename, alone or many together. */
#ifndef GAR_STORAGE_SINK_H
#define GAR_STORAGE_SINK_H

#include "base/attrs.h"
#include "base/error.h"

struct gar_sink;

/* Stage a file that shall become `path` (a local path): makes the folder if missing and opens a hidden sibling
 * ".name.pid.random.tmp" that nobody else has. `path` itself is not touched before gar_sinks_publish.
 * Errors: GAR_ERR_IO with path and reason; a `path` that is a folder. Owns: caller frees. Threads: one at a time;
 *         may block. */
GAR_MUST_USE enum gar_status gar_sink_open(const char *path, struct gar_sink **out,
                                           struct gar_error *err);
GAR_MUST_USE enum gar_status gar_sink_write(struct gar_sink *sink, const void *data, int64_t bytes,
                                            struct gar_error *err);
int64_t gar_sink_bytes(const struct gar_sink *sink); /* written so far */
const char *gar_sink_path(const struct gar_sink *sink);
/* Removes the staged file (and folders made for it, when empty) unless it was published. NULL is fine. */
void gar_sink_free(struct gar_sink *sink);

struct gar_publish_options {
    const char *
        replaced_folder; /* with it: other files that lie in it now are removed after the new ones are in place; NULL: none */
    bool is_durable;     /* fsync files and folders */
};

/* All sinks of a job, or none: closes every file first (late write errors show here), then renames them. When a rename
 * fails, files of this job that are already in place under new names are removed again. The sinks are to be freed as always.
 * Errors: GAR_ERR_IO with the path and reason. Threads: one at a time; may block. */
GAR_MUST_USE enum gar_status gar_sinks_publish(struct gar_sink *const *sinks, int64_t count,
                                               const struct gar_publish_options *options,
                                               struct gar_error *err);

#endif
