/* SPDX-License-Identifier: Apache-2.0 */
/* The CSV provider: options are turned into a format, paths into files, and the start of the first files into a schema. */
#include <string.h>

#include "base/alloc.h"
#include "base/strbuf.h"
#include "sources/csv_provider_priv.h"
#include "sources/sources.h"

/* Text looked at for names and types, over all files. */
#define SAMPLE_BYTES     ((int64_t)1 << 20)
#define SAMPLE_FILES_MAX 16

/* The file's name in messages and in explain. */
const char *csv_provider_path(const struct csv_provider *provider, int64_t file)
{
    const char *path = provider->files.paths[file];
    return strcmp(path, "-") == 0 ? "<stdin>" : path;
}

/* ---- options ---- */

static int32_t option_byte(char byte)
{
    return byte == 0 ? GAR_CSV_NONE : (int32_t)(uint8_t)byte;
}

static enum gar_status take_options(struct csv_provider *provider,
                                    const struct gar_csv_options *options, struct gar_error *err)
{
    struct gar_csv_format format = gar_csv_format_default();
    format.has_header = options->has_header;
    format.double_quote = options->double_quote;
    format.allow_variable_columns = options->allow_variable_columns;
    format.delimiter = option_byte(options->delimiter);
    format.quote = option_byte(options->quote);
    format.escape = option_byte(options->escape);
    format.comment = option_byte(options->comment);
    if (options->null_text != NULL && options->null_text[0] != '\0') {
        provider->null_text = gar_strdup(options->null_text);
        if (provider->null_text == NULL) {
            return gar_error_nomem(err, (int64_t)strlen(options->null_text) + 1);
        }
        provider->nulls[0] = provider->null_text;
        format.nulls = provider->nulls;
        format.null_count = 1;
    }
    provider->format = format;
    return gar_csv_format_check(&format, err);
}

/* ---- sample ---- */

/* The sample of one file in padded memory. */
struct sample {
    struct gar_buffer *buffer; /* owned */
    int64_t bytes;             /* from GAR_CSV_PAD_BYTES on */
    bool is_whole;             /* the file ends there */
};

/* Read `bytes` more, or to the end. */
static enum gar_status grow_sample(struct sample *sample, struct gar_byte_reader *reader,
                                   int64_t bytes, struct gar_error *err)
{
    const int64_t size = 2 * GAR_CSV_PAD_BYTES + sample->bytes + bytes;
    if (sample->buffer == NULL) {
        GAR_TRY(gar_buffer_new(gar_memory_system(), size, &sample->buffer, err));
    } else {
        GAR_TRY(gar_buffer_resize(sample->buffer, size, err));
    }
    int64_t got = 0;
    GAR_TRY(gar_byte_reader_read(reader, sample->buffer->data + GAR_CSV_PAD_BYTES + sample->bytes,
                                 bytes, &got, err));
    sample->bytes += got;
    sample->is_whole = got < bytes;
    return GAR_OK;
}

/* Grow the sample until it holds whole records; *out_end is where the last one ends. */
static enum gar_status cut_sample(const struct gar_csv_format *format, struct sample *sample,
                                  struct gar_byte_reader *reader, int64_t want,
                                  struct gar_csv_dialect *out_dialect, int64_t *out_start,
                                  int64_t *out_end, struct gar_error *err)
{
    for (;;) {
        GAR_TRY(grow_sample(sample, reader, want, err));
        const uint8_t *data = sample->buffer->data + GAR_CSV_PAD_BYTES;
        GAR_TRY(gar_csv_bom(data, sample->bytes, out_start, err));
        *out_dialect = gar_csv_dialect_of(format, data, sample->bytes);
        *out_end = sample->bytes;
        if (sample->is_whole) {
            return GAR_OK;
        }
        enum gar_csv_state state = GAR_CSV_RECORD_START;
        struct gar_csv_split_result split;
        gar_csv_split(out_dialect, data, *out_start, sample->bytes, &state, &split);
        if (split.record_ends > format->has_header) { /* one record besides the header */
            *out_end = split.last_end;
            return GAR_OK;
        }
        if (sample->bytes > format->line_bytes_max) {
            return gar_error_set(err, GAR_ERR_FORMAT,
                                 "line 1 is longer than %lld bytes; is a quote never closed, or is "
                                 "this no CSV file?",
                                 (long long)format->line_bytes_max);
        }
        want = sample->bytes;
    }
}

static enum gar_status infer_source(struct csv_provider *provider, int64_t file,
                                    struct gar_source *source, int64_t want,
                                    struct gar_csv_inference *inference, struct gar_cancel *cancel,
                                    int64_t *out_bytes, bool *out_compressed, struct gar_error *err)
{
    struct sample sample = {0};
    struct gar_byte_reader *reader = NULL;
    struct gar_csv_dialect dialect = {0};
    int64_t start = 0;
    int64_t end = 0;
    enum gar_status status = gar_byte_reader_new(source, cancel, &reader, err);
    if (status >= 0) {
        *out_compressed = gar_byte_reader_is_compressed(reader);
        status = cut_sample(&provider->format, &sample, reader, want, &dialect, &start, &end, err);
    }
    if (status >= 0) {
        status = gar_csv_infer(inference, &provider->format, &dialect,
                               sample.buffer->data + GAR_CSV_PAD_BYTES + start, end - start, err);
    }
    if (status >= 0) {
        provider->terminators[file] = dialect.terminator;
    }
    *out_bytes = sample.bytes;
    gar_byte_reader_free(reader);
    gar_buffer_unref(sample.buffer);
    return status;
}

static enum gar_status infer_file(struct csv_provider *provider, int64_t file, int64_t want,
                                  struct gar_csv_inference *inference, struct gar_cancel *cancel,
                                  int64_t *out_bytes, bool *out_compressed, struct gar_error *err)
{
    const char *path = provider->files.paths[file];
    struct gar_source *source = NULL;
    GAR_TRY(gar_source_open(path, NULL, &source, err));
    if (gar_source_is_stream(source)) {
        provider->streams[file] = gar_source_ref(source);
    }
    const enum gar_status status = infer_source(provider, file, source, want, inference, cancel,
                                                out_bytes, out_compressed, err);
    if (status == GAR_ERR_FORMAT || status == GAR_ERR_UNSUPPORTED) {
        gar_error_prefix(err, "%s: ", gar_source_path(source));
    }
    gar_source_unref(source);
    return status;
}

/* Look at the first files until SAMPLE_BYTES of text have been seen, and estimate the size of all. */
static enum gar_status infer_files(struct csv_provider *provider,
                                   struct gar_csv_inference *inference, struct gar_cancel *cancel,
                                   struct gar_error *err)
{
    int64_t seen = 0;
    bool is_compressed = false;
    for (int64_t i = 0; i < provider->files.count && i < SAMPLE_FILES_MAX && seen < SAMPLE_BYTES;
         i++) {
        int64_t bytes = 0;
        if (gar_cancel_poll(cancel)) {
            return gar_cancel_status(cancel, err);
        }
        GAR_TRY(infer_file(provider, i, SAMPLE_BYTES - seen, inference, cancel, &bytes,
                           &is_compressed, err));
        seen += bytes;
        if (is_compressed || provider->streams[i] != NULL) {
            provider->base.size_hint_bytes = -1;
        }
    }
    if (provider->base.size_hint_bytes >= 0 && inference->rows > 0) {
        const double row_bytes = (double)seen / (double)inference->rows;
        provider->base.size_hint_rows =
            (int64_t)((double)provider->base.size_hint_bytes / row_bytes);
    }
    return GAR_OK;
}

/* Sum of the files' sizes, -1 if one is a stream. */
static int64_t total_bytes(const struct gar_path_list *files)
{
    int64_t total = 0;
    for (int64_t i = 0; i < files->count; i++) {
        const int64_t bytes = gar_path_bytes(files->paths[i]);
        if (bytes < 0) {
            return -1;
        }
        total += bytes;
    }
    return total;
}

/* ---- schema ---- */

/* "column_" and digits. */
static bool is_neutral_name(const char *name)
{
    static const char stem[] = "column_";
    const size_t bytes = sizeof stem - 1;
    return strncmp(name, stem, bytes) == 0 && name[bytes] != '\0' &&
           strspn(name + bytes, "0123456789") == strlen(name + bytes);
}

/* Without a header, a schema with other names names the columns in order. */
static bool names_in_order(const struct gar_csv_options *options)
{
    if (options->has_header || options->schema_count == 0) {
        return false;
    }
    for (int64_t i = 0; i < options->schema_count; i++) {
        if (is_neutral_name(options->schema_names[i])) {
            return false;
        }
    }
    return true;
}

static enum gar_status given_type(const struct gar_csv_options *options, int64_t i,
                                  struct gar_type *out, struct gar_error *err)
{
    const char *text = options->schema_types[i];
    const enum gar_status status = gar_type_parse(text, (int64_t)strlen(text), out, err);
    if (status < 0) {
        gar_error_prefix(err, "schema, column '%s': ", options->schema_names[i]);
    }
    return status;
}

static enum gar_status check_count(const struct csv_provider *provider,
                                   const struct gar_csv_options *options, int64_t columns,
                                   struct gar_error *err)
{
    if (columns == 0 || columns == options->schema_count) {
        return GAR_OK;
    }
    return gar_error_set(err, GAR_ERR_COLUMN, "schema names %lld columns, but '%s' has %lld",
                         (long long)options->schema_count, csv_provider_path(provider, 0),
                         (long long)columns);
}

/* The columns before types are given: from the sample, or from the schema when there is none or it names them in order. */
static enum gar_status list_fields(struct csv_provider *provider,
                                   const struct gar_csv_options *options,
                                   const struct gar_csv_inference *inference,
                                   struct gar_field *fields, struct gar_error *err)
{
    const bool is_in_order = names_in_order(options) || inference->count == 0;
    if (is_in_order && options->schema_count > 0) {
        GAR_TRY(check_count(provider, options, inference->count, err));
    }
    for (int64_t i = 0; i < provider->field_count; i++) {
        struct gar_field *field = &fields[i];
        field->nullable = true;
        if (is_in_order) {
            field->name = (char *)(uintptr_t)options->schema_names[i];
            GAR_TRY(given_type(options, i, &field->type, err));
            continue;
        }
        field->name = inference->names[i];
        field->type = options->infer_schema ? gar_csv_guess_type(&inference->guesses[i])
                                            : gar_type_of(GAR_STRING);
        provider->inferred[i] = options->infer_schema;
    }
    return GAR_OK;
}

/* Types that the user gives win over guesses. */
static enum gar_status apply_types(struct csv_provider *provider,
                                   const struct gar_csv_options *options,
                                   const struct gar_schema *schema, struct gar_field *fields,
                                   struct gar_error *err)
{
    for (int64_t i = 0; i < options->schema_count; i++) {
        int64_t position;
        const enum gar_status status =
            gar_schema_get(schema, options->schema_names[i], &position, err);
        if (status < 0) {
            gar_error_prefix(err, "schema: ");
            return status;
        }
        GAR_TRY(given_type(options, i, &fields[position].type, err));
        provider->inferred[position] = false;
    }
    return GAR_OK;
}

static enum gar_status make_schema(struct csv_provider *provider,
                                   const struct gar_csv_options *options,
                                   const struct gar_csv_inference *inference,
                                   struct gar_field *fields, struct gar_error *err)
{
    GAR_TRY(list_fields(provider, options, inference, fields, err));
    struct gar_schema *schema = NULL;
    const enum gar_status status =
        gar_schema_new(fields, provider->field_count, false, &schema, err);
    if (status == GAR_ERR_VALUE) {
        gar_error_prefix(err, "the header of '%s': ", csv_provider_path(provider, 0));
    }
    GAR_TRY(status);
    const enum gar_status applied = apply_types(provider, options, schema, fields, err);
    gar_schema_unref(schema);
    GAR_TRY(applied);
    if (options->file_path_column != NULL) {
        provider->path_column = provider->field_count;
        fields[provider->field_count] = (struct gar_field){
            .name = (char *)(uintptr_t)options->file_path_column,
            .type = gar_type_of(GAR_STRING),
        };
    }
    return gar_schema_new(fields, provider->field_count + (provider->path_column >= 0), false,
                          &provider->base.schema, err);
}

static enum gar_status set_schema(struct csv_provider *provider,
                                  const struct gar_csv_options *options,
                                  const struct gar_csv_inference *inference, struct gar_error *err)
{
    provider->field_count = inference->count > 0 ? inference->count : options->schema_count;
    if (provider->field_count == 0) {
        return gar_error_set(err, GAR_ERR_FORMAT,
                             "'%s' is empty, so it names no columns; give a schema that does",
                             csv_provider_path(provider, 0));
    }
    struct gar_field *fields = gar_calloc(provider->field_count + 1, (int64_t)sizeof *fields);
    provider->inferred = gar_calloc(provider->field_count, (int64_t)sizeof *provider->inferred);
    enum gar_status status =
        fields != NULL && provider->inferred != NULL
            ? make_schema(provider, options, inference, fields, err)
            : gar_error_nomem(err, provider->field_count * (int64_t)sizeof *fields);
    gar_free(fields);
    return status;
}

/* ---- provider ---- */

static int64_t row_count(struct gar_scan_provider *base)
{
    (void)base;
    return -1;
}

static void print(const struct gar_scan_provider *base, struct gar_strbuf *out)
{
    const struct csv_provider *provider = (const struct csv_provider *)base;
    gar_strbuf_printf(out, "csv %s", csv_provider_path(provider, 0));
    if (provider->files.count > 1) {
        gar_strbuf_printf(out, " and %lld more files", (long long)provider->files.count - 1);
    }
}

static void provider_free(struct gar_scan_provider *base)
{
    struct csv_provider *provider = (struct csv_provider *)base;
    for (int64_t i = 0; provider->streams != NULL && i < provider->files.count; i++) {
        gar_source_unref(provider->streams[i]);
    }
    gar_free(provider->streams);
    gar_free(provider->terminators);
    gar_path_list_destroy(&provider->files);
    gar_free(provider->null_text);
    gar_free(provider->inferred);
    gar_schema_unref(provider->base.schema);
    gar_free(provider);
}

static const struct gar_scan_provider_vtable csv_provider_vtable = {
    .open = csv_scan_open,
    .row_count = row_count,
    .print = print,
    .free = provider_free,
};

void csv_provider_set_block_bytes(struct gar_scan_provider *provider, int64_t block_bytes)
{
    ((struct csv_provider *)provider)->block_bytes = block_bytes;
}

static enum gar_status fill_provider(struct csv_provider *provider, const char *const *paths,
                                     int64_t count, const struct gar_csv_options *options,
                                     struct gar_cancel *cancel, struct gar_error *err)
{
    GAR_TRY(take_options(provider, options, err));
    GAR_TRY(gar_paths_expand(paths, count, &provider->files, err));
    provider->streams = gar_calloc(provider->files.count, (int64_t)sizeof(struct gar_source *));
    provider->terminators = gar_calloc(provider->files.count, 1);
    if (provider->streams == NULL || provider->terminators == NULL) {
        return gar_error_nomem(err, provider->files.count * (int64_t)sizeof(struct gar_source *));
    }
    provider->base.size_hint_bytes = total_bytes(&provider->files);
    struct gar_csv_inference inference = {0};
    enum gar_status status = infer_files(provider, &inference, cancel, err);
    if (status >= 0) {
        status = set_schema(provider, options, &inference, err);
    }
    gar_csv_inference_destroy(&inference);
    return status;
}

enum gar_status gar_csv_provider_new(const char *const *paths, int64_t count,
                                     const struct gar_csv_options *options,
                                     struct gar_cancel *cancel, struct gar_scan_provider **out,
                                     struct gar_error *err)
{
    struct csv_provider *provider = gar_calloc(1, (int64_t)sizeof *provider);
    if (provider == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *provider);
    }
    provider->base.vtable = &csv_provider_vtable;
    provider->base.refs = 1;
    provider->base.filter_exact = true;
    provider->base.size_hint_rows = -1;
    provider->base.size_hint_bytes = -1;
    provider->path_column = -1;
    provider->block_bytes = CSV_BLOCK_BYTES;
    const enum gar_status status = fill_provider(provider, paths, count, options, cancel, err);
    if (status < 0) {
        provider_free(&provider->base);
        return status;
    }
    *out = &provider->base;
    return GAR_OK;
}
