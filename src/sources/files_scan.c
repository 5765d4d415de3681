/* SPDX-License-Identifier: Apache-2.0 */
/* Files as rows: path, size, and either "content" (the whole file) or "num_rows" (null: files are not looked into).
 *
 *   next    the next files, so many that their contents are about UNIT_BYTES
 *   load    reads the contents, when they are wanted; a file that cannot be read is an error, or null by option
 *   decode  rows of them
 *
 * Names and sizes are known since the provider was made, so a filter that asks for nothing else picks files before any is
 * opened. A file is listed with the size that it had then, and read with what it has when its turn comes. */
#include <string.h>

#include "arrow/builder.h"
#include "base/alloc.h"
#include "base/log.h"
#include "base/utf8.h"
#include "expr/program.h"
#include "sources/sources.h"
#include "storage/paths.h"
#include "storage/source.h"

#define UNIT_BYTES ((int64_t)4 << 20)
#define UNIT_FILES 256
/* First room for a file whose size is not known before it is read (/proc). */
#define STREAM_BYTES ((int64_t)64 << 10)

enum { PATH_COLUMN, SIZE_COLUMN, LAST_COLUMN, COLUMN_COUNT };

struct files_provider {
    struct gar_scan_provider base;
    struct gar_path_list files; /* owned */
    int64_t *sizes;             /* owned; files.count items */
    bool with_content;
    bool null_on_error;
};

struct files_scan {
    struct gar_scan base;
    struct files_provider *provider; /* owned reference */
    struct gar_memory *memory;       /* borrowed */
    struct gar_cancel *cancel;       /* borrowed */
    struct gar_scan_counts *counts;  /* borrowed; may be NULL */
    int64_t *columns;                /* owned; output column -> position in the provider's schema */
    uint32_t *picked;                /* files that pass the filter, in `owner`; NULL: all */
    struct gar_buffer *owner;        /* owned or NULL */
    int64_t file_next;               /* among those picked */
    int64_t file_count;
    int64_t batch_rows;
};

struct gar_unit {
    int64_t first; /* file, among those picked */
    int64_t count;
    int64_t done;               /* rows given */
    int64_t loaded;             /* the row that content begins with */
    struct gar_column *content; /* owned or NULL */
};

static int64_t file_of(const struct files_scan *scan, int64_t i)
{
    return scan->picked != NULL ? scan->picked[i] : i;
}

/* ---- units ---- */

static void unit_free(struct gar_scan *base, struct gar_unit *unit)
{
    (void)base;
    if (unit != NULL) {
        gar_column_unref(unit->content);
        gar_free(unit);
    }
}

static enum gar_status next(struct gar_scan *base, struct gar_unit **out, struct gar_error *err)
{
    struct files_scan *scan = (struct files_scan *)base;
    const int64_t left = scan->file_count - scan->file_next;
    if (left <= 0) {
        return GAR_EOF;
    }
    struct gar_unit *unit = gar_calloc(1, (int64_t)sizeof *unit);
    if (unit == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *unit);
    }
    unit->first = scan->file_next;
    if (base->vtable->load == NULL) {
        unit->count = gar_min_i64(left, scan->batch_rows);
    } else {
        const int64_t most = gar_min_i64(left, gar_min_i64(scan->batch_rows, UNIT_FILES));
        int64_t bytes = 0;
        while (unit->count < most && bytes < UNIT_BYTES) {
            bytes += scan->provider->sizes[file_of(scan, unit->first + unit->count)];
            unit->count++;
        }
    }
    scan->file_next += unit->count;
    *out = unit;
    return GAR_OK;
}

/* ---- contents ---- */

/* Contents on their way into a column: small files share a buffer. */
struct contents {
    struct gar_column *column;
    struct gar_buffer *buffer; /* borrowed from the column; NULL before the first */
    int32_t number;            /* of the buffer */
    int64_t used;              /* bytes of it */
};

/* Room of `bytes` in the contents' buffer, which is a new one if they do not fit; `rest` are expected in all. */
static enum gar_status make_room(const struct files_scan *scan, struct contents *contents,
                                 int64_t bytes, int64_t rest, struct gar_error *err)
{
    if (contents->buffer != NULL && contents->buffer->size - contents->used >= bytes) {
        return GAR_OK;
    }
    struct gar_buffer *buffer = NULL;
    const int64_t size = gar_max_i64(gar_max_i64(bytes, 1), gar_min_i64(rest, UNIT_BYTES));
    GAR_TRY(gar_buffer_new(scan->memory, size, &buffer, err));
    const enum gar_status status =
        gar_column_add_data(contents->column, buffer, &contents->number, err);
    if (status < 0) {
        gar_buffer_unref(buffer);
        return status;
    }
    contents->buffer = buffer;
    contents->used = 0;
    return GAR_OK;
}

static enum gar_status too_large(const char *path, int64_t bytes, struct gar_error *err)
{
    return gar_error_set(err, GAR_ERR_VALUE,
                         "'%s' has %lld bytes; the content of a file can be a value of up to "
                         "%lld bytes",
                         path, (long long)bytes, (long long)INT32_MAX);
}

/* The rest of a file that does not say how long it is, into a buffer of its own. */
static enum gar_status read_stream(const struct files_scan *scan, struct gar_source *source,
                                   struct contents *contents, int64_t *out_bytes,
                                   struct gar_error *err)
{
    struct gar_buffer *buffer = NULL;
    int64_t total = 0;
    int64_t got = 0;
    GAR_TRY(gar_buffer_new(scan->memory, STREAM_BYTES, &buffer, err));
    enum gar_status status = GAR_OK;
    while (status >= 0) {
        const int64_t want = buffer->size - total;
        status =
            gar_source_read_at(source, buffer->data + total, want, total, scan->cancel, &got, err);
        total += status >= 0 ? got : 0;
        if (status < 0 || got < want) {
            break;
        }
        status = buffer->size > INT32_MAX / 2
                     ? too_large(gar_source_path(source), 2 * buffer->size, err)
                     : gar_buffer_resize(buffer, 2 * buffer->size, err);
    }
    if (status >= 0) {
        status = gar_column_add_data(contents->column, buffer, &contents->number, err);
    }
    if (status < 0) {
        gar_buffer_unref(buffer);
        return status;
    }
    contents->buffer = buffer;
    contents->used = 0;
    *out_bytes = total;
    return GAR_OK;
}

static enum gar_status read_source(const struct files_scan *scan, struct gar_source *source,
                                   struct contents *contents, int64_t rest, int64_t *out_bytes,
                                   struct gar_error *err)
{
    if (gar_source_is_stream(source)) {
        return read_stream(scan, source, contents, out_bytes, err);
    }
    const int64_t bytes = gar_source_bytes(source);
    if (bytes > INT32_MAX) {
        return too_large(gar_source_path(source), bytes, err);
    }
    GAR_TRY(make_room(scan, contents, bytes, rest, err));
    int64_t got = 0;
    GAR_TRY(gar_source_read_at(source, contents->buffer->data + contents->used, bytes, 0,
                               scan->cancel, &got, err));
    if (got != bytes) {
        return gar_error_set(err, GAR_ERR_IO, "%s: the file became shorter while it was read",
                             gar_source_path(source));
    }
    *out_bytes = bytes;
    return gar_source_check(source, err);
}

/* Row `row` of the column: the content of one file. */
static enum gar_status read_file(const struct files_scan *scan, int64_t file, int64_t row,
                                 int64_t rest, struct contents *contents, struct gar_error *err)
{
    struct gar_source *source = NULL;
    int64_t bytes = 0;
    GAR_TRY(gar_source_open(scan->provider->files.paths[file], NULL, &source, err));
    const enum gar_status status = read_source(scan, source, contents, rest, &bytes, err);
    gar_source_unref(source);
    GAR_TRY(status);
    GAR_SCAN_COUNT(scan->counts, files_read, 1);
    GAR_SCAN_COUNT(scan->counts, bytes_read, bytes);
    struct gar_string_view *views = gar_column_values_mut(contents->column);
    views[row] = gar_view_make(contents->buffer->data + contents->used, (int32_t)bytes,
                               contents->number, (int32_t)contents->used);
    contents->used += bytes;
    return GAR_OK;
}

static bool is_the_files_fault(enum gar_status status)
{
    return status == GAR_ERR_IO || status == GAR_ERR_VALUE;
}

static enum gar_status read_files(const struct files_scan *scan, struct gar_unit *unit,
                                  struct contents *contents, struct gar_error *err)
{
    struct gar_column *column = contents->column;
    int64_t rest = 0;
    for (int64_t i = unit->done; i < unit->count; i++) {
        rest += scan->provider->sizes[file_of(scan, unit->first + i)];
    }
    for (int64_t i = unit->done; i < unit->count; i++) {
        GAR_CANCEL_CHECK(scan->cancel, err);
        const int64_t file = file_of(scan, unit->first + i);
        const int64_t row = i - unit->done;
        struct gar_error failure = GAR_ERROR_INIT;
        const enum gar_status status = read_file(scan, file, row, rest, contents, &failure);
        if (status < 0 && scan->provider->null_on_error && is_the_files_fault(status)) {
            gar_log(GAR_LOG_WARNING, "read_blob: null for a file that cannot be read: %s",
                    failure.message);
            gar_bit_clear(gar_column_validity_mut(column), row);
            column->null_count++;
        } else if (status < 0) {
            if (err != NULL) {
                *err = failure;
            }
            return status;
        }
        rest -= scan->provider->sizes[file];
    }
    return GAR_OK;
}

static enum gar_status load(struct gar_scan *base, struct gar_unit *unit, struct gar_error *err)
{
    struct files_scan *scan = (struct files_scan *)base;
    struct contents contents = {0};
    GAR_TRY(gar_column_new(scan->memory, gar_type_of(GAR_BINARY), unit->count - unit->done,
                           scan->provider->null_on_error, &contents.column, err));
    contents.column->null_count = 0;
    const enum gar_status status = read_files(scan, unit, &contents, err);
    if (status < 0) {
        gar_column_unref(contents.column);
        return status;
    }
    gar_column_unref(unit->content);
    unit->content = contents.column;
    unit->loaded = unit->done;
    return GAR_OK;
}

static void park(struct gar_scan *base, struct gar_unit *unit)
{
    (void)base;
    if (unit != NULL) {
        gar_column_unref(unit->content);
        unit->content = NULL;
    }
}

/* ---- rows ---- */

static enum gar_status path_column(const struct files_scan *scan, int64_t first, int64_t rows,
                                   struct gar_column **out, struct gar_error *err)
{
    struct gar_builder builder;
    gar_builder_init(&builder, scan->memory, gar_type_of(GAR_STRING));
    enum gar_status status = gar_builder_reserve(&builder, rows, err);
    for (int64_t i = 0; i < rows && status >= 0; i++) {
        const char *path = scan->provider->files.paths[file_of(scan, first + i)];
        status = gar_builder_append_bytes(&builder, path, (int64_t)strlen(path), err);
    }
    if (status >= 0) {
        status = gar_builder_finish(&builder, out, err);
    }
    gar_builder_destroy(&builder);
    return status;
}

/* With contents (of these rows): their sizes, where they could be read. */
static enum gar_status size_column(const struct files_scan *scan, int64_t first, int64_t rows,
                                   const struct gar_column *content, struct gar_column **out,
                                   struct gar_error *err)
{
    GAR_TRY(gar_column_new(scan->memory, gar_type_of(GAR_INT64), rows, false, out, err));
    int64_t *values = gar_column_values_mut(*out);
    for (int64_t i = 0; i < rows; i++) {
        values[i] = scan->provider->sizes[file_of(scan, first + i)];
        if (content != NULL && !gar_column_is_null(content, i)) {
            (void)gar_column_bytes_at(content, i, &values[i]);
        }
    }
    (*out)->null_count = 0;
    return GAR_OK;
}

static enum gar_status make_column(const struct files_scan *scan, int64_t position, int64_t first,
                                   int64_t rows, const struct gar_column *content,
                                   struct gar_column **out, struct gar_error *err)
{
    switch (position) {
    case PATH_COLUMN: return path_column(scan, first, rows, out, err);
    case SIZE_COLUMN: return size_column(scan, first, rows, content, out, err);
    default:
        if (content == NULL) {
            return gar_column_new_null(scan->memory, gar_type_of(GAR_INT64), rows, out, err);
        }
        *out = gar_column_ref(content);
        return GAR_OK;
    }
}

/* The wanted columns of files [first, first + rows) of those picked. */
static enum gar_status make_batch(const struct files_scan *scan, struct gar_schema *schema,
                                  const int64_t *positions, int64_t first, int64_t rows,
                                  const struct gar_column *content, struct gar_batch **out,
                                  struct gar_error *err)
{
    struct gar_column **columns = gar_calloc(schema->count + 1, (int64_t)sizeof *columns);
    if (columns == NULL) {
        return gar_error_nomem(err, schema->count * (int64_t)sizeof *columns);
    }
    enum gar_status status = GAR_OK;
    for (int64_t i = 0; i < schema->count && status >= 0; i++) {
        status = make_column(scan, positions[i], first, rows, content, &columns[i], err);
    }
    if (status >= 0) {
        status = gar_batch_new(schema, columns, rows, out, err);
    }
    for (int64_t i = 0; i < schema->count && status < 0; i++) {
        gar_column_unref(columns[i]);
    }
    gar_free(columns);
    return status;
}

static enum gar_status decode(struct gar_scan *base, struct gar_unit *unit, void *worker,
                              int64_t max_rows, struct gar_batch **out, struct gar_error *err)
{
    (void)worker;
    const struct files_scan *scan = (const struct files_scan *)base;
    const int64_t rows = gar_min_i64(unit->count - unit->done, max_rows);
    if (rows <= 0) {
        return GAR_EOF;
    }
    struct gar_column *content = NULL;
    if (unit->content != NULL) {
        GAR_TRY(gar_column_slice(unit->content, unit->done - unit->loaded, rows, &content, err));
    }
    const int64_t first = unit->first + unit->done;
    const enum gar_status status =
        make_batch(scan, base->schema, scan->columns, first, rows, content, out, err);
    gar_column_unref(content);
    GAR_TRY(status);
    if (scan->picked == NULL) {
        gar_batch_set_origin(*out, first);
    }
    GAR_SCAN_COUNT(scan->counts, rows_read, rows);
    unit->done += rows;
    return GAR_OK;
}

/* ---- opening ---- */

static void scan_free(struct gar_scan *base)
{
    struct files_scan *scan = (struct files_scan *)base;
    if (scan != NULL) {
        gar_buffer_unref(scan->owner);
        gar_free(scan->columns);
        gar_schema_unref(base->schema);
        gar_scan_provider_unref(&scan->provider->base);
        gar_free(scan);
    }
}

static const struct gar_scan_vtable listing_vtable = {
    .next = next, .decode = decode, .unit_free = unit_free, .free = scan_free};
static const struct gar_scan_vtable reading_vtable = {.next = next,
                                                      .load = load,
                                                      .decode = decode,
                                                      .park = park,
                                                      .unit_free = unit_free,
                                                      .free = scan_free};

static void note_last_column(const char *name, void *context)
{
    const struct gar_schema *schema = ((struct files_scan *)context)->provider->base.schema;
    if (gar_schema_find(schema, name) == LAST_COLUMN) {
        ((struct files_scan *)context)->base.vtable = &reading_vtable;
    }
}

/* Which files pass a filter over path and size; exec filters once more what they give. */
static enum gar_status pick_files(struct files_scan *scan, const struct gar_expr *filter,
                                  struct gar_error *err)
{
    static const int64_t listed[] = {PATH_COLUMN, SIZE_COLUMN};
    struct gar_expr *expr = (struct gar_expr *)(uintptr_t)filter;
    struct gar_schema *schema = NULL;
    struct gar_batch *batch = NULL;
    struct gar_program *program = NULL;
    struct gar_eval *eval = NULL;
    GAR_TRY(gar_schema_new(scan->provider->base.schema->fields, 2, false, &schema, err));
    enum gar_status status =
        make_batch(scan, schema, listed, 0, scan->file_count, NULL, &batch, err);
    if (status >= 0) {
        status = gar_program_new(schema, &expr, 1, &program, err);
    }
    if (status >= 0) {
        status = gar_eval_new(program, scan->memory, &eval, err);
    }
    if (status >= 0) {
        status = gar_eval_filter(eval, batch, &scan->owner, &scan->file_count, err);
    }
    gar_eval_free(eval);
    gar_program_unref(program);
    gar_batch_unref(batch);
    gar_schema_unref(schema);
    GAR_TRY(status);
    scan->picked = scan->owner != NULL ? (uint32_t *)(void *)scan->owner->data : NULL;
    return GAR_OK;
}

static enum gar_status choose_columns(struct files_scan *scan,
                                      const struct gar_scan_request *request, struct gar_error *err)
{
    struct gar_field *fields = gar_calloc(request->column_count + 1, (int64_t)sizeof *fields);
    scan->columns = gar_calloc(request->column_count + 1, (int64_t)sizeof *scan->columns);
    if (fields == NULL || scan->columns == NULL) {
        gar_free(fields);
        return gar_error_nomem(err, request->column_count * (int64_t)sizeof *fields);
    }
    const struct gar_schema *all = scan->provider->base.schema;
    for (int64_t i = 0; i < request->column_count; i++) {
        scan->columns[i] = request->columns[i];
        fields[i] = all->fields[request->columns[i]];
        if (scan->provider->with_content && request->columns[i] == LAST_COLUMN) {
            scan->base.vtable = &reading_vtable;
        }
    }
    const enum gar_status status =
        gar_schema_new(fields, request->column_count, true, &scan->base.schema, err);
    gar_free(fields);
    return status;
}

static enum gar_status apply_request(struct files_scan *scan,
                                     const struct gar_scan_request *request, struct gar_error *err)
{
    GAR_TRY(choose_columns(scan, request, err));
    scan->file_count = scan->provider->files.count;
    if (request->filter == NULL) {
        scan->file_next = gar_min_i64(request->skip, scan->file_count);
        scan->base.rows_skipped = scan->file_next;
        if (request->limit >= 0) {
            scan->file_count = gar_min_i64(scan->file_count, request->limit);
        }
        scan->base.rows_exact = gar_max_i64(scan->file_count - scan->file_next, 0);
        return GAR_OK;
    }
    struct files_scan asked = {.provider = scan->provider, .base.vtable = &listing_vtable};
    gar_expr_visit_columns(request->filter, note_last_column, &asked);
    if (asked.base.vtable == &listing_vtable && scan->file_count <= UINT32_MAX) {
        GAR_TRY(pick_files(scan, request->filter, err));
    }
    return GAR_OK;
}

static enum gar_status open_scan(struct gar_scan_provider *base,
                                 const struct gar_scan_request *request, struct gar_scan **out,
                                 struct gar_error *err)
{
    struct files_scan *scan = gar_calloc(1, (int64_t)sizeof *scan);
    if (scan == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *scan);
    }
    scan->base.vtable = &listing_vtable;
    scan->base.rows_exact = -1;
    scan->provider = (struct files_provider *)gar_scan_provider_ref(base);
    scan->memory = request->memory;
    scan->cancel = request->cancel;
    scan->counts = request->counts;
    scan->batch_rows = request->batch_rows > 0 ? request->batch_rows : INT64_MAX;
    const enum gar_status status = apply_request(scan, request, err);
    if (status < 0) {
        scan_free(&scan->base);
        return status;
    }
    if (scan->base.vtable == &reading_vtable) {
        scan->base.unit_bytes = UNIT_BYTES;
    }
    if (scan->counts != NULL) {
        scan->counts->files_total = scan->base.vtable == &reading_vtable ? scan->file_count : 0;
        scan->counts->bytes_total = scan->base.vtable == &reading_vtable ? -1 : 0;
        scan->counts->rows_total = scan->file_count - scan->file_next;
    }
    *out = &scan->base;
    return GAR_OK;
}

/* ---- provider ---- */

static int64_t row_count(struct gar_scan_provider *base)
{
    return ((struct files_provider *)base)->files.count;
}

static void print(const struct gar_scan_provider *base, struct gar_strbuf *out)
{
    const struct files_provider *provider = (const struct files_provider *)base;
    gar_strbuf_printf(out, "files %s", provider->files.paths[0]);
    if (provider->files.count > 1) {
        gar_strbuf_printf(out, " and %lld more", (long long)provider->files.count - 1);
    }
}

static void provider_free(struct gar_scan_provider *base)
{
    struct files_provider *provider = (struct files_provider *)base;
    gar_path_list_destroy(&provider->files);
    gar_free(provider->sizes);
    gar_schema_unref(base->schema);
    gar_free(provider);
}

static const struct gar_scan_provider_vtable provider_vtable = {
    .open = open_scan, .row_count = row_count, .print = print, .free = provider_free};

static enum gar_status list_file(struct files_provider *provider, int64_t i, struct gar_error *err)
{
    const char *path = provider->files.paths[i];
    char shown[512];
    if (!gar_utf8_valid(path, (int64_t)strlen(path))) {
        return gar_error_set(
            err, GAR_ERR_VALUE, "the name of '%s' is no UTF-8, so it cannot be a value",
            gar_error_quote(path, (int64_t)strlen(path), shown, (int64_t)sizeof shown));
    }
    provider->sizes[i] = gar_path_bytes(path);
    if (provider->sizes[i] < 0) {
        return gar_error_set(err, GAR_ERR_UNSUPPORTED,
                             "'%s' is no file; pipes and devices cannot be listed or read whole",
                             path);
    }
    provider->base.size_hint_bytes += provider->with_content ? provider->sizes[i] : 0;
    return GAR_OK;
}

static enum gar_status fill_provider(struct files_provider *provider, const char *const *paths,
                                     int64_t count, struct gar_cancel *cancel,
                                     struct gar_error *err)
{
    GAR_TRY(gar_paths_expand(paths, count, &provider->files, err));
    provider->sizes = gar_calloc(provider->files.count, (int64_t)sizeof *provider->sizes);
    if (provider->sizes == NULL) {
        return gar_error_nomem(err, provider->files.count * (int64_t)sizeof *provider->sizes);
    }
    for (int64_t i = 0; i < provider->files.count; i++) {
        GAR_CANCEL_CHECK(cancel, err);
        GAR_TRY(list_file(provider, i, err));
    }
    provider->base.size_hint_rows = provider->files.count;
    const struct gar_field fields[COLUMN_COUNT] = {
        [PATH_COLUMN] = {.name = (char *)(uintptr_t) "path", .type = gar_type_of(GAR_STRING)},
        [SIZE_COLUMN] = {.name = (char *)(uintptr_t) "size", .type = gar_type_of(GAR_INT64)},
        [LAST_COLUMN] = {.name =
                             (char *)(uintptr_t)(provider->with_content ? "content" : "num_rows"),
                         .type = gar_type_of(provider->with_content ? GAR_BINARY : GAR_INT64),
                         .nullable = true},
    };
    return gar_schema_new(fields, COLUMN_COUNT, false, &provider->base.schema, err);
}

enum gar_status gar_files_provider_new(const char *const *paths, int64_t count,
                                       const struct gar_files_options *options,
                                       struct gar_cancel *cancel, struct gar_scan_provider **out,
                                       struct gar_error *err)
{
    struct files_provider *provider = gar_calloc(1, (int64_t)sizeof *provider);
    if (provider == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *provider);
    }
    provider->base.vtable = &provider_vtable;
    provider->base.refs = 1;
    provider->with_content = options->with_content;
    provider->null_on_error = options->null_on_error;
    const enum gar_status status = fill_provider(provider, paths, count, cancel, err);
    if (status < 0) {
        provider_free(&provider->base);
        return status;
    }
    *out = &provider->base;
    return GAR_OK;
}
