/* SPDX-License-Identifier: Apache-2.0 */
/* Writing CSV: each encode turns rows into text (compressed if asked, each piece by itself) on a compute thread,
 * append joins the pieces behind the header in the staged file. */
#include <string.h>

#include "base/alloc.h"
#include "formats/csv/csv_writer.h"
#include "sources/sources.h"
#include "sources/write_target.h"
#include "storage/compress.h"

/* Rows of one piece of text: a few MiB. */
#define PIECE_ROWS 32768

struct csv_sink {
    struct gar_sink_provider base;
    char *path; /* owned */
    struct gar_csv_writer_options format;
    enum gar_compression compression;
    bool has_header;
    bool is_single_file;
    bool is_overwrite;
};

struct csv_write {
    struct gar_write base;
    struct csv_sink *sink;          /* owned reference */
    struct gar_schema *schema;      /* owned reference */
    struct gar_write_target target; /* owned */
    bool has_header;                /* still to be written */
};

/* gar_encoded is a struct gar_strbuf of its own here. */
static void encoded_free(struct gar_write *base, struct gar_encoded *encoded)
{
    (void)base;
    struct gar_strbuf *text = (struct gar_strbuf *)(void *)encoded;
    if (text != NULL) {
        gar_strbuf_destroy(text);
        gar_free(text);
    }
}

/* Plain text (moved) to what goes into the file. */
static enum gar_status pack(const struct csv_sink *sink, struct gar_strbuf *plain,
                            struct gar_strbuf *out, struct gar_error *err)
{
    if (sink->compression == GAR_COMPRESSION_NONE || plain->size == 0) {
        *out = *plain;
        *plain = (struct gar_strbuf){0};
        return GAR_OK;
    }
    return gar_compress(sink->compression, plain->data, plain->size, out, err);
}

static enum gar_status encode(struct gar_write *base, struct gar_batch *batch,
                              struct gar_memory *memory, struct gar_encoded **out,
                              struct gar_error *err)
{
    const struct csv_write *write = (const struct csv_write *)base;
    struct gar_strbuf plain = {0};
    struct gar_strbuf *text = gar_calloc(1, (int64_t)sizeof *text);
    enum gar_status status = text != NULL ? GAR_OK : gar_error_nomem(err, (int64_t)sizeof *text);
    if (status >= 0) {
        status = gar_csv_write_batch(batch, &write->sink->format, memory, &plain, err);
    }
    if (status >= 0) {
        status = pack(write->sink, &plain, text, err);
    }
    gar_strbuf_destroy(&plain);
    if (status < 0) {
        encoded_free(base, (struct gar_encoded *)(void *)text);
        return status;
    }
    *out = (struct gar_encoded *)(void *)text;
    return GAR_OK;
}

static enum gar_status write_header(struct csv_write *write, struct gar_error *err)
{
    if (!write->has_header) {
        return GAR_OK;
    }
    struct gar_strbuf plain = {0};
    struct gar_strbuf packed = {0};
    enum gar_status status = gar_csv_write_header(write->schema, &write->sink->format, &plain, err);
    if (status >= 0) {
        status = pack(write->sink, &plain, &packed, err);
    }
    if (status >= 0) {
        status = gar_write_target_write(&write->target, packed.data, packed.size, err);
    }
    gar_strbuf_destroy(&plain);
    gar_strbuf_destroy(&packed);
    write->has_header = status < 0;
    return status;
}

static enum gar_status append(struct gar_write *base, struct gar_encoded *encoded,
                              struct gar_error *err)
{
    struct csv_write *write = (struct csv_write *)base;
    const struct gar_strbuf *text = (const struct gar_strbuf *)(const void *)encoded;
    enum gar_status status = write_header(write, err);
    if (status >= 0 && text->size > 0) {
        status = gar_write_target_write(&write->target, text->data, text->size, err);
    }
    encoded_free(base, encoded);
    return status;
}

static enum gar_status finish(struct gar_write *base, struct gar_memory *memory,
                              struct gar_batch **out_paths, struct gar_error *err)
{
    struct csv_write *write = (struct csv_write *)base;
    GAR_TRY(write_header(write, err));
    return gar_write_target_publish(&write->target, memory, out_paths, err);
}

static void write_free(struct gar_write *base)
{
    struct csv_write *write = (struct csv_write *)base;
    if (write != NULL) {
        gar_write_target_destroy(&write->target);
        gar_schema_unref(write->schema);
        gar_sink_provider_unref(&write->sink->base);
        gar_free(write);
    }
}

static enum gar_status sink_open(struct gar_sink_provider *base, struct gar_schema *schema,
                                 struct gar_memory *memory, struct gar_write **out,
                                 struct gar_error *err)
{
    static const struct gar_write_vtable vtable = {encode, append, encoded_free, finish,
                                                   write_free};
    static const char *const suffixes[] = {".csv", ".tsv", ".csv.gz", ".csv.zst", NULL};
    (void)memory;
    struct csv_sink *sink = (struct csv_sink *)base;
    struct csv_write *write = gar_calloc(1, (int64_t)sizeof *write);
    if (write == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *write);
    }
    write->base.vtable = &vtable;
    write->base.preferred_rows = PIECE_ROWS;
    write->sink = (struct csv_sink *)gar_sink_provider_ref(base);
    write->schema = gar_schema_ref(schema);
    write->has_header = sink->has_header;
    char suffix[16] = ".csv";
    memcpy(suffix + 4, gar_compression_suffix(sink->compression),
           strlen(gar_compression_suffix(sink->compression)) + 1);
    const enum gar_status status =
        gar_write_target_init(&write->target, sink->path, sink->is_single_file, sink->is_overwrite,
                              suffixes, suffix, err);
    if (status < 0) {
        write_free(&write->base);
        return status;
    }
    *out = &write->base;
    return GAR_OK;
}

static void print(const struct gar_sink_provider *base, struct gar_strbuf *out)
{
    gar_strbuf_printf(out, "csv %s", ((const struct csv_sink *)base)->path);
}

static void sink_free(struct gar_sink_provider *base)
{
    struct csv_sink *sink = (struct csv_sink *)base;
    gar_free(sink->path);
    gar_free(sink);
}

enum gar_status gar_csv_sink_new(const char *path, const struct gar_write_options *options,
                                 struct gar_sink_provider **out, struct gar_error *err)
{
    static const struct gar_sink_provider_vtable vtable = {sink_open, print, sink_free};
    enum gar_compression compression;
    GAR_TRY(gar_compression_parse(options->compression, path, &compression, err));
    struct csv_sink *sink = gar_calloc(1, (int64_t)sizeof *sink);
    char *copy = gar_strdup(path);
    if (sink == NULL || copy == NULL) {
        gar_free(sink);
        gar_free(copy);
        return gar_error_nomem(err, (int64_t)sizeof *sink);
    }
    sink->base.vtable = &vtable;
    sink->base.refs = 1;
    sink->path = copy;
    sink->format = (struct gar_csv_writer_options){.delimiter = options->delimiter, .quote = '"'};
    sink->compression = compression;
    sink->has_header = options->header;
    sink->is_single_file = options->single_file;
    sink->is_overwrite = options->overwrite;
    const struct gar_csv_writer_options *format = &sink->format;
    const enum gar_status status = gar_csv_writer_options_check(format, err);
    if (status < 0) {
        sink_free(&sink->base);
        return status;
    }
    *out = &sink->base;
    return GAR_OK;
}
