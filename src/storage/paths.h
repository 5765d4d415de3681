/* SPDX-License-Identifier: Apache-2.0 */
/* What users call paths, as the files they mean: one file, a list, a glob, a folder, a file:// URI. */
#ifndef GAR_STORAGE_PATHS_H
#define GAR_STORAGE_PATHS_H

#include "base/attrs.h"
#include "base/error.h"

/* A zeroed struct is an empty list. */
struct gar_path_list {
    char **paths; /* owned */
    int64_t count;
    int64_t capacity;
};

/* The files that the inputs mean, input by input, those of one input sorted by bytes.
 *
 *   - "-" is passed on; a path that exists is taken as it is, whatever characters it has;
 *   - a folder gives its files: names that start with '_' or '.' and empty files are left out, sub-folders are not entered;
 *   - '*', '?' and '[a-z]', '[!a]' match inside a name, "**" any number of folders; wildcards never match names that
 *     start with '_' or '.', nor folders as a last part;
 *   - file:// URIs are percent-decoded; every other scheme is refused.
 *
 * Errors: GAR_ERR_IO naming the input (missing, nothing matched, no permission; os_errno is set);
 *         GAR_ERR_UNSUPPORTED naming the scheme,
 * without secrets; GAR_ERR_VALUE for an empty path. Owns: caller destroys the list. Threads: may block. */
GAR_MUST_USE enum gar_status gar_paths_expand(const char *const *inputs, int64_t count,
                                              struct gar_path_list *out, struct gar_error *err);
void gar_path_list_destroy(struct gar_path_list *list);
GAR_MUST_USE enum gar_status gar_path_list_append(struct gar_path_list *list, const char *path,
                                                  struct gar_error *err);

/* The local path that an input means ("file:///a%20b" -> "/a b"), for writing. Errors as above. Owns: caller frees. */
GAR_MUST_USE enum gar_status gar_path_local(const char *input, char **out, struct gar_error *err);

/* "folder/name", one slash between; NULL when memory is refused. Owns: caller frees. */
char *gar_path_join(const char *folder, const char *name);

/* Size of a file; -1 for anything else ("-", pipes, what is not there). Threads: may block. */
int64_t gar_path_bytes(const char *path);
/* Is there a folder of this name now? Threads: may block. */
bool gar_path_is_folder(const char *path);

/* A URI for messages: without user, password and query. out gets at most out_bytes - 1 bytes and a NUL. Returns out. */
const char *gar_path_redact(const char *input, char *out, int64_t out_bytes);

/* Does the whole name match the pattern ('*', '?', '[...]'; no folders)? Linear in name times pattern. */
bool gar_glob_match(const char *pattern, int64_t pattern_bytes, const char *name);
bool gar_path_has_wildcard(const char *path);

#endif
