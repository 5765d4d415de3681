/* SPDX-License-Identifier: Apache-2.0 */
/* Files are opened one after the other and closed again: a folder of 100,000 files needs one descriptor. */
#include "sources/parquet_files.h"

#include <string.h>

#include "base/alloc.h"
#include "storage/file_cache.h"
#include "storage/paths.h"

static enum gar_status read_exactly(struct gar_source *source, struct gar_buffer *buffer,
                                    int64_t bytes, int64_t offset, struct gar_cancel *cancel,
                                    struct gar_error *err)
{
    int64_t got = 0;
    GAR_TRY(gar_source_read_at(source, buffer->data, bytes, offset, cancel, &got, err));
    if (got != bytes) {
        return gar_error_set(err, GAR_ERR_IO, "the file became shorter while it was read");
    }
    return GAR_OK;
}

/* The last `bytes` of the file. */
static enum gar_status read_tail(struct gar_source *source, int64_t bytes,
                                 struct gar_cancel *cancel, struct gar_buffer **out,
                                 struct gar_error *err)
{
    struct gar_buffer *buffer = NULL;
    GAR_TRY(gar_buffer_new(gar_memory_system(), bytes, &buffer, err));
    const enum gar_status status =
        read_exactly(source, buffer, bytes, gar_source_bytes(source) - bytes, cancel, err);
    if (status != GAR_OK) {
        gar_buffer_unref(buffer);
        return status;
    }
    *out = buffer;
    return GAR_OK;
}

static enum gar_status read_footer(struct gar_source *source, struct gar_cancel *cancel,
                                   struct gar_parquet_file **out, struct gar_error *err)
{
    const int64_t file_bytes = gar_source_bytes(source);
    const int64_t first = gar_min_i64(file_bytes, gar_parquet_first_read_bytes(file_bytes));
    struct gar_buffer *tail = NULL;
    uint8_t head[4] = {0};
    int64_t head_bytes = 0;
    int64_t need = 0;
    GAR_TRY(
        gar_source_read_at(source, head, gar_min_i64(file_bytes, 4), 0, cancel, &head_bytes, err));
    GAR_TRY(read_tail(source, first, cancel, &tail, err));
    enum gar_status status = gar_parquet_footer_need(tail->data, first, file_bytes,
                                                     head_bytes == 4 ? head : NULL, &need, err);
    if (status == GAR_OK && need > first) {
        gar_buffer_unref(tail);
        tail = NULL;
        status = read_tail(source, need, cancel, &tail, err);
    }
    if (status == GAR_OK) {
        status = gar_parquet_file_parse(tail->data, gar_max_i64(need, first), file_bytes, out, err);
    }
    gar_buffer_unref(tail);
    return status;
}

static void ref_footer(void *value)
{
    (void)gar_parquet_file_ref(value);
}

static void unref_footer(void *value)
{
    gar_parquet_file_unref(value);
}

/* The footer as it was parsed before, or anew. */
static enum gar_status find_footer(struct gar_source *source, struct gar_cancel *cancel,
                                   struct gar_parquet_file **out, struct gar_error *err)
{
    static const struct gar_file_cache_kind footers = {ref_footer, unref_footer};
    *out = gar_file_cache_find(&footers, source);
    if (*out != NULL) {
        return GAR_OK;
    }
    GAR_TRY(read_footer(source, cancel, out, err));
    gar_file_cache_add(&footers, source, *out, gar_parquet_file_memory(*out));
    return GAR_OK;
}

/* An endless or wrong stream shall not be copied before anybody looks at it. */
static enum gar_status check_stream(struct gar_source *source, struct gar_cancel *cancel,
                                    struct gar_error *err)
{
    char head[4] = {0};
    int64_t bytes = 0;
    GAR_TRY(gar_source_read_at(source, head, (int64_t)sizeof head, 0, cancel, &bytes, err));
    if (memcmp(head, "PAR", 3) == 0) { /* the footer's reader tells the last byte's meaning */
        return GAR_OK;
    }
    return gar_error_set(err, GAR_ERR_FORMAT, "%s",
                         bytes == 0 ? "the input is empty, so it is no Parquet file"
                                    : "not a Parquet file: the first 4 bytes are not \"PAR1\"");
}

static enum gar_status open_input(const char *path, struct gar_cancel *cancel,
                                  struct gar_parquet_input *out, struct gar_error *err)
{
    struct gar_source *source = NULL;
    struct gar_source *seekable = NULL;
    out->path = gar_strdup(strcmp(path, "-") == 0 ? "<stdin>" : path);
    if (out->path == NULL) {
        return gar_error_nomem(err, (int64_t)strlen(path) + 1);
    }
    GAR_TRY(gar_source_open(path, NULL, &source, err));
    const bool is_stream = gar_source_is_stream(source);
    enum gar_status status = is_stream ? check_stream(source, cancel, err) : GAR_OK;
    if (status < 0) {
        gar_error_prefix(err, "%s: ", gar_source_path(source));
    } else {
        status = gar_source_seekable(source, cancel, &seekable, err);
    }
    gar_source_unref(source);
    GAR_TRY(status);
    out->id = gar_source_id_of(seekable);
    status = find_footer(seekable, cancel, &out->file, err);
    if (status < 0) {
        gar_error_prefix(err, "%s: ", out->path);
    }
    if (status == GAR_OK && (is_stream || strcmp(path, "-") == 0)) {
        out->source = gar_source_ref(seekable);
    }
    gar_source_unref(seekable);
    return status;
}

enum gar_status gar_parquet_input_reopen(const struct gar_parquet_input *input,
                                         struct gar_source **out, struct gar_error *err)
{
    if (input->source != NULL) {
        *out = gar_source_ref(input->source);
        return GAR_OK;
    }
    return gar_source_open(input->path, &input->id, out, err);
}

/* ---- the schema ------------------------------------------------------------------------------------------------------- */

/* The columns that options give, or the first file's, and the path column behind them. */
static enum gar_status make_schema(const struct gar_parquet_inputs *inputs,
                                   const struct gar_parquet_options *options,
                                   struct gar_schema **out, int64_t *out_path_column,
                                   struct gar_error *err)
{
    const struct gar_schema *first = inputs->items[0].file->schema;
    const bool is_given = options->schema_count > 0;
    const int64_t count = is_given ? options->schema_count : first->count;
    struct gar_field *fields = gar_calloc(count + 1, sizeof *fields);
    if (fields == NULL) {
        return gar_error_nomem(err, (count + 1) * (int64_t)sizeof *fields);
    }
    enum gar_status status = GAR_OK;
    for (int64_t i = 0; i < count && status == GAR_OK; i++) {
        if (is_given) {
            /* the field only borrows the name; gar_schema_new copies it */
            fields[i].name = (char *)(uintptr_t)options->schema_names[i];
            fields[i].nullable = true;
            status =
                gar_type_parse(options->schema_types[i], (int64_t)strlen(options->schema_types[i]),
                               &fields[i].type, err);
        } else {
            fields[i] = first->fields[i];
        }
    }
    const bool has_path = options->file_path_column != NULL;
    *out_path_column = has_path ? count : -1;
    if (has_path) {
        fields[count] = (struct gar_field){.name = (char *)(uintptr_t)options->file_path_column,
                                           .type = gar_type_of(GAR_STRING)};
    }
    if (status == GAR_OK) {
        status =
            gar_schema_new(fields, count + (has_path ? 1 : 0), !is_given && !has_path, out, err);
    }
    gar_free(fields);
    return status;
}

/* A program that casts one column of the file's type. */
static enum gar_status make_cast(const struct gar_field *from, struct gar_type to,
                                 struct gar_schema **out_input, struct gar_program **out,
                                 struct gar_error *err)
{
    struct gar_expr *column = NULL;
    struct gar_expr *cast = NULL;
    struct gar_schema *input = NULL;
    enum gar_status status = gar_schema_new(from, 1, false, &input, err);
    if (status == GAR_OK) {
        status = gar_expr_new_column(from->name, &column, err);
    }
    if (status == GAR_OK) {
        status = gar_expr_new_cast(column, to, false, &cast, err);
    }
    if (status == GAR_OK) {
        status = gar_program_new(input, &cast, 1, out, err);
    }
    gar_expr_unref(column);
    gar_expr_unref(cast);
    if (status != GAR_OK) {
        gar_schema_unref(input);
        return status;
    }
    *out_input = input;
    return GAR_OK;
}

static enum gar_status match_column(const struct gar_parquet_inputs *inputs,
                                    struct gar_parquet_input *input, int64_t position,
                                    bool is_given, struct gar_error *err)
{
    const struct gar_field *wanted = &inputs->schema->fields[position];
    const struct gar_schema *have = input->file->schema;
    int64_t column = gar_schema_find(have, wanted->name);
    if (!is_given && position < have->count &&
        strcmp(have->fields[position].name, wanted->name) == 0) {
        column = position; /* names may occur twice in a file */
    }
    input->columns[position] = column;
    if (column < 0) {
        return is_given ? GAR_OK
                        : gar_error_set(err, GAR_ERR_TYPE,
                                        "%s: has no column '%s', which the first file (%s) has; "
                                        "give a schema to read it as nulls",
                                        input->path, wanted->name, inputs->items[0].path);
    }
    const bool is_text_as_binary =
        is_given && have->fields[column].type.id == GAR_STRING && wanted->type.id == GAR_BINARY;
    if (gar_type_equal(have->fields[column].type, wanted->type) || is_text_as_binary ||
        input->file->columns[column].unsupported != NULL) {
        return GAR_OK; /* the reader itself gives strings as binary, without looking at UTF-8 */
    }
    if (!is_given) {
        char a[64];
        char b[64];
        return gar_error_set(err, GAR_ERR_TYPE,
                             "%s: column '%s' is %s, but %s in the first file (%s); give a schema "
                             "to read both as one type",
                             input->path, wanted->name,
                             gar_type_text(have->fields[column].type, a, sizeof a),
                             gar_type_text(wanted->type, b, sizeof b), inputs->items[0].path);
    }
    const enum gar_status status =
        make_cast(&have->fields[column], wanted->type, &input->cast_inputs[position],
                  &input->casts[position], err);
    if (status < 0) {
        gar_error_prefix(err, "%s: ", input->path);
    }
    return status;
}

static enum gar_status match_input(const struct gar_parquet_inputs *inputs,
                                   struct gar_parquet_input *input, bool is_given,
                                   struct gar_error *err)
{
    const int64_t count = inputs->schema->count;
    input->columns = gar_calloc(count + 1, sizeof *input->columns);
    input->casts = gar_calloc(count + 1, sizeof(struct gar_program *));
    input->cast_inputs = gar_calloc(count + 1, sizeof(struct gar_schema *));
    if (input->columns == NULL || input->casts == NULL || input->cast_inputs == NULL) {
        return gar_error_nomem(err, (count + 1) * (int64_t)sizeof *input->columns);
    }
    for (int64_t i = 0; i < count; i++) {
        if (i == inputs->path_column) {
            input->columns[i] = -1;
        } else {
            GAR_TRY(match_column(inputs, input, i, is_given, err));
        }
    }
    return GAR_OK;
}

static void count_input(struct gar_parquet_inputs *inputs, const struct gar_parquet_file *file)
{
    inputs->rows += file->rows;
    inputs->row_groups += file->row_group_count;
    for (int64_t g = 0; g < file->row_group_count; g++) {
        inputs->bytes += gar_max_i64(file->row_groups[g].bytes, 0);
    }
}

enum gar_status gar_parquet_inputs_open(const char *const *paths, int64_t count,
                                        const struct gar_parquet_options *options,
                                        struct gar_cancel *cancel, struct gar_parquet_inputs *out,
                                        struct gar_error *err)
{
    struct gar_path_list list = {0};
    *out = (struct gar_parquet_inputs){.path_column = -1};
    GAR_TRY(gar_paths_expand(paths, count, &list, err));
    enum gar_status status = GAR_OK;
    out->items = gar_calloc(list.count + 1, sizeof *out->items);
    if (out->items == NULL) {
        status = gar_error_nomem(err, (list.count + 1) * (int64_t)sizeof *out->items);
    }
    for (int64_t i = 0; i < list.count && status == GAR_OK; i++) {
        status = gar_cancel_poll(cancel) ? gar_cancel_status(cancel, err) : GAR_OK;
        if (status == GAR_OK) {
            out->count = i + 1;
            status = open_input(list.paths[i], cancel, &out->items[i], err);
        }
        if (status == GAR_OK && i == 0) {
            status = make_schema(out, options, &out->schema, &out->path_column, err);
        }
        if (status == GAR_OK) {
            status = match_input(out, &out->items[i], options->schema_count > 0, err);
        }
        if (status == GAR_OK) {
            count_input(out, out->items[i].file);
        }
    }
    gar_path_list_destroy(&list);
    return status;
}

static void destroy_input(struct gar_parquet_input *input, int64_t columns)
{
    for (int64_t i = 0; i < columns; i++) {
        if (input->casts != NULL) {
            gar_program_unref(input->casts[i]);
        }
        if (input->cast_inputs != NULL) {
            gar_schema_unref(input->cast_inputs[i]);
        }
    }
    gar_free(input->casts);
    gar_free(input->cast_inputs);
    gar_free(input->columns);
    gar_parquet_file_unref(input->file);
    gar_source_unref(input->source);
    gar_free(input->path);
}

void gar_parquet_inputs_destroy(struct gar_parquet_inputs *inputs)
{
    for (int64_t i = 0; i < inputs->count; i++) {
        destroy_input(&inputs->items[i], inputs->schema == NULL ? 0 : inputs->schema->count);
    }
    gar_free(inputs->items);
    gar_schema_unref(inputs->schema);
    *inputs = (struct gar_parquet_inputs){.path_column = -1};
}
