/* SPDX-License-Identifier: Apache-2.0 */
/* Staging and publishing. The order that keeps the old state until the new one is whole:
 *   stage all -> close all (late errors, fsync if asked) -> list what shall be replaced -> rename all -> remove the
 *   listed files. */
#include "storage/sink.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "os/file.h"
#include "runtime/activity.h"
#include "storage/paths.h"
#include "storage/temporary.h"

struct gar_sink {
    char *path;   /* owned; the final name */
    char *folder; /* owned; "" is the current one */
    char *staged; /* owned; NULL when nothing is staged */
    int fd;       /* -1 when closed */
    int64_t bytes;
    bool replaces; /* something had the final name when it was published */
    bool is_published;
    int64_t made_from; /* length of the part of `folder` that existed before; -1: all of it */
};

/* ---- opening ---- */

static enum gar_status split_path(struct gar_sink *sink, const char *path, const char **out_name,
                                  struct gar_error *err)
{
    const char *slash = strrchr(path, '/');
    *out_name = slash == NULL ? path : slash + 1;
    if (**out_name == '\0') {
        return gar_error_set(err, GAR_ERR_IO, "'%s' names a folder, not a file to write", path);
    }
    sink->path = gar_strdup(path);
    sink->folder =
        slash == NULL ? gar_strdup("") : gar_strndup(path, slash == path ? 1 : slash - path);
    return sink->path != NULL && sink->folder != NULL
               ? GAR_OK
               : gar_error_nomem(err, (int64_t)strlen(path) + 1);
}

static bool exists(const char *path, bool *out_is_folder)
{
    struct gar_file_info info;
    const bool found = gar_file_stat(path, &info, NULL) >= 0;
    *out_is_folder = found && info.kind == GAR_FILE_DIRECTORY;
    return found;
}

/* Make the folder; remember how much of its path was there, so that an abort can take the rest away. */
static enum gar_status make_folder(struct gar_sink *sink, struct gar_error *err)
{
    bool is_folder;
    sink->made_from = -1;
    if (sink->folder[0] == '\0' || (exists(sink->folder, &is_folder) && is_folder)) {
        return GAR_OK;
    }
    char *part = gar_strdup(sink->folder);
    if (part == NULL) {
        return gar_error_nomem(err, (int64_t)strlen(sink->folder) + 1);
    }
    char *slash;
    while ((slash = strrchr(part, '/')) != NULL && slash != part) {
        *slash = '\0';
        if (exists(part, &is_folder)) {
            break;
        }
    }
    const int64_t there = slash == NULL || slash == part ? 0 : (int64_t)strlen(part);
    gar_free(part);
    sink->made_from = there; /* also when only some of them get made */
    return gar_dir_make(sink->folder, err);
}

static enum gar_status fill_sink(struct gar_sink *sink, const char *path, struct gar_error *err)
{
    const char *name;
    bool is_folder;
    GAR_TRY(split_path(sink, path, &name, err));
    if (exists(path, &is_folder) && is_folder) {
        return gar_error_set_errno(err, EISDIR, "cannot write the file '%s'", path);
    }
    GAR_TRY(make_folder(sink, err));
    gar_staged_clean(sink->folder);
    return gar_staged_open(sink->folder, name, &sink->staged, &sink->fd, err);
}

enum gar_status gar_sink_open(const char *path, struct gar_sink **out, struct gar_error *err)
{
    struct gar_sink *sink = gar_calloc(1, (int64_t)sizeof *sink);
    if (sink == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *sink);
    }
    sink->fd = -1;
    sink->made_from = -1;
    const enum gar_status status = fill_sink(sink, path, err);
    if (status < 0) {
        gar_sink_free(sink);
        return status;
    }
    *out = sink;
    return GAR_OK;
}

/* Folders that were made for this sink, from the deepest on, as long as they are empty. */
static void remove_made_folders(struct gar_sink *sink)
{
    while (sink->made_from >= 0 && (int64_t)strlen(sink->folder) > sink->made_from) {
        struct gar_error failure = GAR_ERROR_INIT;
        if (gar_dir_remove(sink->folder, &failure) < 0 && failure.os_errno != ENOENT) {
            return;
        }
        char *slash = strrchr(sink->folder, '/');
        if (slash == NULL || slash == sink->folder) {
            return;
        }
        *slash = '\0';
    }
}

void gar_sink_free(struct gar_sink *sink)
{
    if (sink == NULL) {
        return;
    }
    if (sink->fd >= 0) {
        const enum gar_status closed = gar_file_close(sink->fd, sink->path, NULL);
        (void)closed; /* it is thrown away */
    }
    if (sink->staged != NULL && !sink->is_published) {
        const enum gar_status removed = gar_file_unlink(sink->staged, NULL);
        (void)removed;
    }
    if (sink->folder != NULL && !sink->is_published) {
        remove_made_folders(sink);
    }
    gar_free(sink->path);
    gar_free(sink->folder);
    gar_free(sink->staged);
    gar_free(sink);
}

enum gar_status gar_sink_write(struct gar_sink *sink, const void *data, int64_t bytes,
                               struct gar_error *err)
{
    gar_activity_begin(GAR_ACTIVITY_WRITE, sink->path, sink->bytes, bytes);
    const enum gar_status status = gar_file_write(sink->fd, sink->path, data, bytes, err);
    gar_activity_end();
    GAR_TRY(status);
    sink->bytes += bytes;
    return GAR_OK;
}

int64_t gar_sink_bytes(const struct gar_sink *sink)
{
    return sink->bytes;
}

const char *gar_sink_path(const struct gar_sink *sink)
{
    return sink->path;
}

/* ---- publishing ---- */

static enum gar_status close_sink(struct gar_sink *sink, bool is_durable, struct gar_error *err)
{
    if (sink->fd < 0) {
        return GAR_OK;
    }
    enum gar_status status = is_durable ? gar_file_sync(sink->fd, sink->path, err) : GAR_OK;
    const enum gar_status closed = gar_file_close(sink->fd, sink->path, status >= 0 ? err : NULL);
    sink->fd = -1;
    return status >= 0 ? closed : status;
}

static void take_back(struct gar_sink *const *sinks, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (sinks[i]->is_published && !sinks[i]->replaces) {
            const enum gar_status removed = gar_file_unlink(sinks[i]->path, NULL);
            (void)removed; /* the first failure is what the user hears of */
        }
    }
}

static enum gar_status rename_all(struct gar_sink *const *sinks, int64_t count,
                                  struct gar_error *err)
{
    for (int64_t i = 0; i < count; i++) {
        struct gar_sink *sink = sinks[i];
        bool is_folder;
        sink->replaces = exists(sink->path, &is_folder);
        const enum gar_status status = gar_file_rename(sink->staged, sink->path, err);
        if (status < 0) {
            take_back(sinks, i);
            return status;
        }
        sink->is_published = true;
    }
    return GAR_OK;
}

static bool is_of_job(struct gar_sink *const *sinks, int64_t count, const char *path)
{
    for (int64_t i = 0; i < count; i++) {
        if (strcmp(sinks[i]->path, path) == 0) {
            return true;
        }
    }
    return false;
}

/* Files that lie in the folder now and are not of this job: what an overwrite removes later. Sub-folders stay. */
static enum gar_status list_replaced(const char *folder, struct gar_sink *const *sinks,
                                     int64_t count, struct gar_path_list *out,
                                     struct gar_error *err)
{
    struct gar_dir_list list = {0};
    enum gar_status status = gar_dir_read(folder, &list, err);
    for (int64_t i = 0; i < list.count && status >= 0; i++) {
        const char *name = list.entries[i].name;
        if (list.entries[i].kind == GAR_FILE_DIRECTORY || name[0] == '.') {
            continue;
        }
        char *path = gar_path_join(folder, name);
        if (path == NULL) {
            status = gar_error_nomem(err, 0);
        } else if (!is_of_job(sinks, count, path)) {
            status = gar_path_list_append(out, path, err);
        }
        gar_free(path);
    }
    gar_dir_list_destroy(&list);
    return status;
}

static enum gar_status remove_replaced(const struct gar_path_list *list, struct gar_error *err)
{
    for (int64_t i = 0; i < list->count; i++) {
        struct gar_error failure = GAR_ERROR_INIT;
        const enum gar_status status = gar_file_unlink(list->paths[i], &failure);
        if (status < 0 && failure.os_errno != ENOENT) {
            if (err != NULL) {
                *err = failure;
            }
            gar_error_prefix(err, "the new files are in place, but an old one is left: ");
            return status;
        }
    }
    return GAR_OK;
}

static enum gar_status publish(struct gar_sink *const *sinks, int64_t count,
                               const struct gar_publish_options *options,
                               struct gar_path_list *replaced, struct gar_error *err)
{
    for (int64_t i = 0; i < count; i++) {
        GAR_TRY(close_sink(sinks[i], options->is_durable, err));
    }
    if (options->replaced_folder != NULL) {
        GAR_TRY(list_replaced(options->replaced_folder, sinks, count, replaced, err));
    }
    GAR_TRY(rename_all(sinks, count, err));
    for (int64_t i = 0; i < count && options->is_durable; i++) {
        GAR_TRY(gar_dir_sync(sinks[i]->folder[0] == '\0' ? "." : sinks[i]->folder, err));
    }
    return remove_replaced(replaced, err);
}

enum gar_status gar_sinks_publish(struct gar_sink *const *sinks, int64_t count,
                                  const struct gar_publish_options *options, struct gar_error *err)
{
    struct gar_path_list replaced = {0};
    const enum gar_status status = publish(sinks, count, options, &replaced, err);
    gar_path_list_destroy(&replaced);
    return status;
}
