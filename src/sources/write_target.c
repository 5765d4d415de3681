/* SPDX-License-Identifier: Apache-2.0 */
/* Names of written files, and their publication. */
#include "sources/write_target.h"

#include <stdio.h>
#include <string.h>

#include "arrow/builder.h"
#include "base/alloc.h"
#include "base/strbuf.h"
#include "storage/paths.h"
#include "storage/temporary.h"

static bool has_suffix(const char *path, const char *const *suffixes)
{
    const size_t bytes = strlen(path);
    for (int64_t i = 0; suffixes[i] != NULL; i++) {
        const size_t suffix = strlen(suffixes[i]);
        if (bytes > suffix && strcmp(path + bytes - suffix, suffixes[i]) == 0) {
            return true;
        }
    }
    return false;
}

enum gar_status gar_write_target_init(struct gar_write_target *target, const char *path,
                                      bool is_single_file, bool is_overwrite,
                                      const char *const *suffixes, const char *new_suffix,
                                      struct gar_error *err)
{
    *target = (struct gar_write_target){.is_overwrite = is_overwrite};
    if (path != NULL && strcmp(path, "-") == 0) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "cannot write to '-': files are published by rename; give a path");
    }
    char *local = NULL;
    GAR_TRY(gar_path_local(path, &local, err));
    if (is_single_file || (has_suffix(local, suffixes) && !gar_path_is_folder(local))) {
        target->path = local;
        return GAR_OK;
    }
    target->folder = local;
    char name[96];
    char unique[17];
    gar_random_name(unique);
    (void)snprintf(name, sizeof name, "%s-0%s", unique, new_suffix);
    target->path = gar_path_join(local, name);
    return target->path != NULL
               ? GAR_OK
               : gar_error_nomem(err, (int64_t)strlen(local) + (int64_t)sizeof name);
}

static enum gar_status open_sink(struct gar_write_target *target, struct gar_error *err)
{
    return target->sink != NULL ? GAR_OK : gar_sink_open(target->path, &target->sink, err);
}

enum gar_status gar_write_target_write(struct gar_write_target *target, const void *data,
                                       int64_t bytes, struct gar_error *err)
{
    GAR_TRY(open_sink(target, err));
    return gar_sink_write(target->sink, data, bytes, err);
}

static enum gar_status path_batch(const char *path, struct gar_memory *memory,
                                  struct gar_batch **out, struct gar_error *err)
{
    char name[] = "path";
    const struct gar_field field = {
        .name = name, .type = gar_type_of(GAR_STRING), .nullable = false};
    struct gar_schema *schema = NULL;
    struct gar_column *column = NULL;
    struct gar_builder builder;
    gar_builder_init(&builder, memory, field.type);
    enum gar_status status = gar_builder_append_bytes(&builder, path, (int64_t)strlen(path), err);
    if (status >= 0) {
        status = gar_builder_finish(&builder, &column, err);
    }
    if (status >= 0) {
        status = gar_schema_new(&field, 1, false, &schema, err);
    }
    if (status >= 0) {
        status = gar_batch_new(schema, &column, 1, out, err);
    }
    if (status < 0) {
        gar_column_unref(column);
    }
    gar_builder_destroy(&builder);
    gar_schema_unref(schema);
    return status;
}

enum gar_status gar_write_target_publish(struct gar_write_target *target, struct gar_memory *memory,
                                         struct gar_batch **out_paths, struct gar_error *err)
{
    struct gar_batch *paths = NULL;
    GAR_TRY(path_batch(target->path, memory, &paths,
                       err)); /* first, so that nothing can fail after publishing */
    const struct gar_publish_options options = {
        .replaced_folder = target->is_overwrite ? target->folder : NULL,
    };
    enum gar_status status = open_sink(target, err);
    if (status >= 0) {
        status = gar_sinks_publish(&target->sink, 1, &options, err);
    }
    if (status < 0) {
        gar_batch_unref(paths);
        return status;
    }
    *out_paths = paths;
    return GAR_OK;
}

void gar_write_target_destroy(struct gar_write_target *target)
{
    gar_sink_free(target->sink);
    gar_free(target->path);
    gar_free(target->folder);
    *target = (struct gar_write_target){0};
}
