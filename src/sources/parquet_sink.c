/* SPDX-License-Identifier: Apache-2.0 */
/* Writing Parquet: each encode makes one row group on a compute thread, append joins them to the staged file in order. */
#include <string.h>

#include "base/alloc.h"
#include "formats/parquet/parquet.h"
#include "sources/sources.h"
#include "sources/write_target.h"

/* Rows of a row group unless options say otherwise: enough for good encodings, few enough to encode several at once. */
#define ROW_GROUP_ROWS 262144

struct provider {
    struct gar_sink_provider base;
    char *path; /* owned */
    struct gar_write_options
        options; /* compression points into the caller's text: not used after parsing */
    struct gar_parquet_write_options format;
};

struct writer {
    struct gar_write base;
    struct gar_schema *schema; /* owned */
    struct gar_parquet_write_options format;
    struct gar_parquet_writer *file; /* owned */
    struct gar_write_target target;  /* owned */
};

static enum gar_status encode(struct gar_write *base, struct gar_batch *batch,
                              struct gar_memory *memory, struct gar_encoded **out,
                              struct gar_error *err)
{
    struct writer *writer = (struct writer *)base;
    struct gar_parquet_group *group = NULL;
    GAR_TRY(
        gar_parquet_group_encode(writer->schema, &batch, 1, &writer->format, memory, &group, err));
    *out = (struct gar_encoded *)group;
    return GAR_OK;
}

static void encoded_free(struct gar_write *base, struct gar_encoded *encoded)
{
    (void)base;
    gar_parquet_group_free((struct gar_parquet_group *)encoded);
}

/* Move what the encoder has ready to the file. */
static enum gar_status drain(struct writer *writer, struct gar_error *err)
{
    const uint8_t *data = NULL;
    int64_t bytes = 0;
    while (gar_parquet_writer_next(writer->file, &data, &bytes) == GAR_OK) {
        GAR_TRY(gar_write_target_write(&writer->target, data, bytes, err));
    }
    return GAR_OK;
}

static enum gar_status append(struct gar_write *base, struct gar_encoded *encoded,
                              struct gar_error *err)
{
    struct writer *writer = (struct writer *)base;
    GAR_TRY(gar_parquet_writer_add(writer->file, (struct gar_parquet_group *)encoded, err));
    return drain(writer, err);
}

static enum gar_status finish(struct gar_write *base, struct gar_memory *memory,
                              struct gar_batch **out, struct gar_error *err)
{
    struct writer *writer = (struct writer *)base;
    GAR_TRY(gar_parquet_writer_finish(writer->file, err));
    GAR_TRY(drain(writer, err));
    return gar_write_target_publish(&writer->target, memory, out, err);
}

static void writer_free(struct gar_write *base)
{
    struct writer *writer = (struct writer *)base;
    gar_parquet_writer_free(writer->file);
    gar_write_target_destroy(&writer->target);
    gar_schema_unref(writer->schema);
    gar_free(writer);
}

static enum gar_status open(struct gar_sink_provider *base, struct gar_schema *schema,
                            struct gar_memory *memory, struct gar_write **out,
                            struct gar_error *err)
{
    static const struct gar_write_vtable vtable = {encode, append, encoded_free, finish,
                                                   writer_free};
    static const char *const suffixes[] = {".parquet", ".pq", NULL};
    const struct provider *provider = (const struct provider *)base;
    struct writer *writer = gar_calloc(1, sizeof *writer);
    if (writer == NULL) {
        return gar_error_nomem(err, sizeof *writer);
    }
    writer->base.vtable = &vtable;
    writer->base.preferred_rows = provider->format.row_group_rows;
    writer->schema = gar_schema_ref(schema);
    writer->format = provider->format;
    enum gar_status status =
        gar_parquet_writer_new(schema, &writer->format, memory, &writer->file, err);
    if (status == GAR_OK) {
        status =
            gar_write_target_init(&writer->target, provider->path, provider->options.single_file,
                                  provider->options.overwrite, suffixes, suffixes[0], err);
    }
    if (status != GAR_OK) {
        writer_free(&writer->base);
        return status;
    }
    *out = &writer->base;
    return GAR_OK;
}

static void print(const struct gar_sink_provider *base, struct gar_strbuf *out)
{
    gar_strbuf_printf(out, "parquet %s", ((const struct provider *)base)->path);
}

static void provider_free(struct gar_sink_provider *base)
{
    struct provider *provider = (struct provider *)base;
    gar_free(provider->path);
    gar_free(provider);
}

enum gar_status gar_parquet_sink_new(const char *path, const struct gar_write_options *options,
                                     struct gar_sink_provider **out, struct gar_error *err)
{
    static const struct gar_sink_provider_vtable vtable = {open, print, provider_free};
    struct gar_parquet_write_options format;
    gar_parquet_write_options_init(&format);
    if (options->row_group_rows < 0) {
        return gar_error_set(err, GAR_ERR_VALUE, "rows of a row group must be positive, got %lld",
                             (long long)options->row_group_rows);
    }
    format.row_group_rows = options->row_group_rows > 0 ? options->row_group_rows : ROW_GROUP_ROWS;
    if (options->compression != NULL) {
        GAR_TRY(gar_parquet_codec_parse(options->compression, &format.codec, err));
    }
    struct provider *provider = gar_calloc(1, sizeof *provider);
    char *copy = gar_strdup(path);
    if (provider == NULL || copy == NULL) {
        gar_free(provider);
        gar_free(copy);
        return gar_error_nomem(err, sizeof *provider);
    }
    provider->base.vtable = &vtable;
    provider->base.refs = 1;
    provider->path = copy;
    provider->options = *options;
    provider->options.compression = NULL;
    provider->format = format;
    *out = &provider->base;
    return GAR_OK;
}
