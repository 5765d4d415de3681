/* SPDX-License-Identifier: Apache-2.0 */
/* Scan and write providers: each joins a format to a storage. The engine makes them; option structs are the public ones
 * (complete: the engine has filled in defaults and checked nothing else). */
#ifndef GAR_SOURCES_SOURCES_H
#define GAR_SOURCES_SOURCES_H

#include <gar/gar.h>

#include "plan/provider.h"
#include "runtime/cancel.h"

/* Paths are files, globs, directories or file:// URIs; they are expanded and the footers (or a sample) read now.
 * Errors: GAR_ERR_IO (path and real cause), GAR_ERR_FORMAT, GAR_ERR_VALUE (an option), GAR_ERR_TYPE (files whose schemas
 * disagree), GAR_ERR_UNSUPPORTED. Owns: caller unrefs *out. Threads: blocks on IO; cancel (may be NULL) stops it. */
GAR_MUST_USE enum gar_status gar_parquet_provider_new(const char *const *paths, int64_t count,
                                                      const struct gar_parquet_options *options,
                                                      struct gar_cancel *cancel,
                                                      struct gar_scan_provider **out,
                                                      struct gar_error *err);
GAR_MUST_USE enum gar_status gar_csv_provider_new(const char *const *paths, int64_t count,
                                                  const struct gar_csv_options *options,
                                                  struct gar_cancel *cancel,
                                                  struct gar_scan_provider **out,
                                                  struct gar_error *err);
/* Files as rows: "path", "size" and "num_rows" (null) or "content". Names and sizes are taken now, contents when a scan wants
 * them. Errors: GAR_ERR_IO, GAR_ERR_VALUE (a name that is no UTF-8), GAR_ERR_UNSUPPORTED (a pipe). Otherwise as above. */
GAR_MUST_USE enum gar_status gar_files_provider_new(const char *const *paths, int64_t count,
                                                    const struct gar_files_options *options,
                                                    struct gar_cancel *cancel,
                                                    struct gar_scan_provider **out,
                                                    struct gar_error *err);

/* Write targets: `path` is a folder (made if missing; one new file with a unique name) or, by options->single_file or a file
 * suffix, one file. Nothing is touched before the first encode; everything is staged and published by rename at finish.
 * Errors: GAR_ERR_VALUE for an unknown compression, GAR_ERR_NOMEM. Owns: caller unrefs *out. */
GAR_MUST_USE enum gar_status gar_parquet_sink_new(const char *path,
                                                  const struct gar_write_options *options,
                                                  struct gar_sink_provider **out,
                                                  struct gar_error *err);
GAR_MUST_USE enum gar_status gar_csv_sink_new(const char *path,
                                              const struct gar_write_options *options,
                                              struct gar_sink_provider **out,
                                              struct gar_error *err);

#endif
