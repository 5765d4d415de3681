/* SPDX-License-Identifier: Apache-2.0 */
/* Row groups and whole files: batches are gathered until a row group is full, encoded, and handed out chunk by chunk; the footer
 * goes last. */
#include <string.h>

#include "base/alloc.h"
#include "formats/parquet/encode_priv.h"

#define ROW_GROUP_ROWS_USUAL  (1 << 20)
#define ROW_GROUP_BYTES_USUAL (INT64_C(256) << 20)
#define MAGIC                 "PAR1"
#define MAGIC_BYTES           4

struct gar_parquet_writer {
    struct gar_schema *schema; /* owned reference */
    struct gar_parquet_write_options options;
    struct gar_memory *memory;  /* a reference is held */
    struct gar_batch **batches; /* owned references: rows not yet encoded */
    int64_t batch_count;
    int64_t batch_capacity;
    int64_t batch_rows;
    int64_t batch_bytes;
    struct parquet_placed *placed; /* owned; of all groups */
    int64_t placed_count;
    int64_t placed_capacity;
    int64_t *group_rows; /* owned */
    int64_t group_count;
    int64_t group_capacity;
    int64_t next_placed; /* first chunk not handed out */
    int64_t position;    /* where the next encoded chunk goes */
    int64_t handed_bytes;
    int64_t rows;
    struct gar_buffer *handed; /* owned: what the last next gave */
    struct gar_strbuf footer;
    bool has_magic; /* "PAR1" was handed out */
    bool is_finished;
    bool footer_is_out;
};

void gar_parquet_write_options_init(struct gar_parquet_write_options *options)
{
    *options = (struct gar_parquet_write_options){.codec = GAR_PARQUET_SNAPPY};
}

enum gar_status gar_parquet_codec_parse(const char *text, enum gar_parquet_codec *out,
                                        struct gar_error *err)
{
    static const struct {
        const char *name;
        enum gar_parquet_codec codec;
    } names[] = {{"none", GAR_PARQUET_NONE},       {"uncompressed", GAR_PARQUET_NONE},
                 {"snappy", GAR_PARQUET_SNAPPY},   {"gzip", GAR_PARQUET_GZIP},
                 {"brotli", GAR_PARQUET_BROTLI},   {"zstd", GAR_PARQUET_ZSTD},
                 {"lz4_raw", GAR_PARQUET_LZ4_RAW}, {"lz4", GAR_PARQUET_LZ4_RAW}};
    for (int64_t i = 0; i < GAR_COUNT_OF(names); i++) {
        if (strcmp(text, names[i].name) == 0) {
            *out = names[i].codec;
            return GAR_OK;
        }
    }
    char quoted[80];
    return gar_error_set(
        err, GAR_ERR_VALUE,
        "unknown Parquet compression '%s'; use one of none, snappy, gzip, brotli, zstd, lz4_raw",
        gar_error_quote(text, (int64_t)strlen(text), quoted, sizeof quoted));
}

void gar_parquet_group_free(struct gar_parquet_group *group)
{
    if (group == NULL) {
        return;
    }
    for (int64_t i = 0; i < group->column_count; i++) {
        gar_parquet_encoded_destroy(&group->columns[i]);
    }
    gar_free(group->columns);
    gar_free(group);
}

int64_t gar_parquet_group_rows(const struct gar_parquet_group *group)
{
    return group->rows;
}

static enum gar_status encode_columns(const struct gar_schema *schema,
                                      struct gar_batch *const *batches, int64_t count,
                                      const struct gar_parquet_write_options *options,
                                      struct gar_memory *memory, struct gar_parquet_group *group,
                                      struct gar_error *err)
{
    struct page_codec codec = {0};
    enum gar_status status = GAR_OK;
    for (int64_t i = 0; i < schema->count && status >= 0; i++) {
        struct parquet_dense dense;
        status = gar_parquet_dense_make(batches, count, i, memory, &dense, err);
        if (status >= 0) {
            status =
                gar_parquet_column_encode(&dense, options, &codec, memory, &group->columns[i], err);
            gar_parquet_dense_destroy(&dense);
        }
        if (status < 0) {
            char quoted[80];
            const char *const name = schema->fields[i].name;
            gar_error_prefix(err, "column '%s': ",
                             gar_error_quote(name, (int64_t)strlen(name), quoted, sizeof quoted));
        }
    }
    gar_page_codec_destroy(&codec);
    return status;
}

/* Selections are gathered first; *out are references to be unreferenced, count of them. */
static enum gar_status gather_all(struct gar_batch *const *batches, int64_t count,
                                  struct gar_memory *memory, struct gar_batch **out,
                                  struct gar_error *err)
{
    for (int64_t i = 0; i < count; i++) {
        GAR_TRY(gar_batch_gather(batches[i], memory, &out[i], err));
    }
    return GAR_OK;
}

enum gar_status gar_parquet_group_encode(const struct gar_schema *schema,
                                         struct gar_batch *const *batches, int64_t count,
                                         const struct gar_parquet_write_options *options,
                                         struct gar_memory *memory, struct gar_parquet_group **out,
                                         struct gar_error *err)
{
    struct gar_parquet_group *const group = gar_calloc(1, (int64_t)sizeof *group);
    struct gar_batch **const full = gar_calloc(count, (int64_t)sizeof *full);
    enum gar_status status = GAR_OK;
    if (group != NULL) {
        group->columns = gar_calloc(schema->count, (int64_t)sizeof *group->columns);
        group->column_count = group->columns != NULL ? schema->count : 0;
    }
    if (group == NULL || full == NULL || group->columns == NULL) {
        status = gar_error_nomem(err, schema->count * (int64_t)sizeof *group->columns);
    }
    if (status >= 0) {
        status = gather_all(batches, count, memory, full, err);
    }
    if (status >= 0) {
        for (int64_t i = 0; i < count; i++) {
            group->rows += full[i]->rows;
        }
        status = encode_columns(schema, full, count, options, memory, group, err);
    }
    for (int64_t i = 0; i < count && full != NULL; i++) {
        gar_batch_unref(full[i]);
    }
    gar_free(full);
    if (status < 0) {
        gar_parquet_group_free(group);
        return status;
    }
    *out = group;
    return GAR_OK;
}

enum gar_status gar_parquet_writer_new(struct gar_schema *schema,
                                       const struct gar_parquet_write_options *options,
                                       struct gar_memory *memory, struct gar_parquet_writer **out,
                                       struct gar_error *err)
{
    if (schema->count > INT32_MAX - 1) {
        return gar_error_set(err, GAR_ERR_OVERFLOW, "%lld columns are more than Parquet allows",
                             (long long)schema->count);
    }
    struct gar_parquet_writer *const writer = gar_calloc(1, (int64_t)sizeof *writer);
    if (writer == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *writer);
    }
    writer->schema = gar_schema_ref(schema);
    writer->options = *options;
    if (writer->options.row_group_rows <= 0) {
        writer->options.row_group_rows = ROW_GROUP_ROWS_USUAL;
    }
    if (writer->options.row_group_bytes <= 0) {
        writer->options.row_group_bytes = ROW_GROUP_BYTES_USUAL;
    }
    writer->memory = gar_memory_ref(memory);
    writer->position = MAGIC_BYTES;
    *out = writer;
    return GAR_OK;
}

static void drop_batches(struct gar_parquet_writer *writer)
{
    for (int64_t i = 0; i < writer->batch_count; i++) {
        gar_batch_unref(writer->batches[i]);
    }
    writer->batch_count = 0;
    writer->batch_rows = 0;
    writer->batch_bytes = 0;
}

void gar_parquet_writer_free(struct gar_parquet_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    drop_batches(writer);
    gar_free(writer->batches);
    for (int64_t i = 0; i < writer->placed_count; i++) {
        gar_parquet_encoded_destroy(&writer->placed[i].encoded);
    }
    gar_free(writer->placed);
    gar_free(writer->group_rows);
    gar_buffer_unref(writer->handed);
    gar_strbuf_destroy(&writer->footer);
    gar_schema_unref(writer->schema);
    gar_memory_unref(writer->memory);
    gar_free(writer);
}

/* Gives every chunk of the group its place in the file. */
static enum gar_status place_group(struct gar_parquet_writer *writer,
                                   struct gar_parquet_group *group, struct gar_error *err)
{
    void *items = writer->placed;
    GAR_TRY(gar_grow(&items, &writer->placed_capacity, writer->placed_count + group->column_count,
                     (int64_t)sizeof *writer->placed, err));
    writer->placed = items;
    items = writer->group_rows;
    GAR_TRY(gar_grow(&items, &writer->group_capacity, writer->group_count + 1,
                     (int64_t)sizeof *writer->group_rows, err));
    writer->group_rows = items;
    for (int64_t i = 0; i < group->column_count; i++) {
        struct parquet_placed *const placed = &writer->placed[writer->placed_count++];
        *placed = (struct parquet_placed){.offset = writer->position,
                                          .bytes = group->columns[i].bytes->size,
                                          .encoded = group->columns[i]};
        group->columns[i] = (struct parquet_encoded){0};
        writer->position += placed->bytes;
    }
    writer->group_rows[writer->group_count++] = group->rows;
    writer->rows += group->rows;
    return GAR_OK;
}

static enum gar_status flush(struct gar_parquet_writer *writer, struct gar_error *err)
{
    if (writer->batch_rows == 0) {
        drop_batches(writer);
        return GAR_OK;
    }
    struct gar_parquet_group *group = NULL;
    GAR_TRY(gar_parquet_group_encode(writer->schema, writer->batches, writer->batch_count,
                                     &writer->options, writer->memory, &group, err));
    drop_batches(writer);
    const enum gar_status status = place_group(writer, group, err);
    gar_parquet_group_free(group);
    return status;
}

/* What the rows of a batch take; buffers shared with other batches do not count. */
static int64_t estimate_bytes(const struct gar_batch *batch)
{
    int64_t bytes = 0;
    for (int64_t c = 0; c < batch->schema->count; c++) {
        const struct gar_column *const column = batch->columns[c];
        bytes += batch->selected * gar_max_i64(gar_type_width(column->type), 1);
        if (gar_type_is_text(column->type) && column->encoding == GAR_FLAT) {
            const struct gar_string_view *const views = column->values;
            for (int64_t i = 0; i < column->length; i++) {
                bytes += gar_column_is_null(column, i) ? 0 : views[i].size;
            }
        }
    }
    return bytes;
}

static enum gar_status keep_batch(struct gar_parquet_writer *writer, struct gar_batch *batch,
                                  struct gar_error *err)
{
    void *items = writer->batches;
    GAR_TRY(gar_grow(&items, &writer->batch_capacity, writer->batch_count + 1,
                     (int64_t)sizeof *writer->batches, err));
    writer->batches = items;
    writer->batches[writer->batch_count++] = gar_batch_ref(batch);
    writer->batch_rows += batch->selected;
    writer->batch_bytes += estimate_bytes(batch);
    return GAR_OK;
}

enum gar_status gar_parquet_writer_append(struct gar_parquet_writer *writer,
                                          struct gar_batch *batch, struct gar_error *err)
{
    if (!gar_schema_equal(batch->schema, writer->schema)) {
        return gar_error_set(err, GAR_ERR_TYPE,
                             "a batch to be written has other columns than the Parquet file");
    }
    int64_t offset = 0;
    while (offset < batch->selected) {
        const int64_t rows = gar_min_i64(batch->selected - offset,
                                         writer->options.row_group_rows - writer->batch_rows);
        struct gar_batch *piece = NULL;
        GAR_TRY(gar_batch_slice(batch, offset, rows, &piece, err));
        const enum gar_status status = keep_batch(writer, piece, err);
        gar_batch_unref(piece);
        GAR_TRY(status);
        offset += rows;
        if (writer->batch_rows >= writer->options.row_group_rows ||
            writer->batch_bytes >= writer->options.row_group_bytes) {
            GAR_TRY(flush(writer, err));
        }
    }
    return GAR_OK;
}

enum gar_status gar_parquet_writer_add(struct gar_parquet_writer *writer,
                                       struct gar_parquet_group *group, struct gar_error *err)
{
    enum gar_status status = flush(writer, err);
    if (status >= 0) {
        status = place_group(writer, group, err);
    }
    gar_parquet_group_free(group);
    return status;
}

enum gar_status gar_parquet_writer_finish(struct gar_parquet_writer *writer, struct gar_error *err)
{
    GAR_TRY(flush(writer, err));
    GAR_TRY(gar_parquet_footer_write(writer->schema, writer->group_rows, writer->group_count,
                                     writer->placed, &writer->footer, err));
    if (writer->footer.size > INT32_MAX) {
        return gar_error_set(err, GAR_ERR_OVERFLOW,
                             "a footer of %lld bytes is larger than Parquet allows",
                             (long long)writer->footer.size);
    }
    const uint32_t bytes = (uint32_t)writer->footer.size;
    gar_strbuf_append_n(&writer->footer, (const char *)&bytes, sizeof bytes);
    gar_strbuf_append_n(&writer->footer, MAGIC, MAGIC_BYTES);
    if (writer->footer.failed) {
        return gar_error_nomem(err, (int64_t)bytes);
    }
    writer->is_finished = true;
    return GAR_OK;
}

enum gar_status gar_parquet_writer_next(struct gar_parquet_writer *writer, const uint8_t **out_data,
                                        int64_t *out_bytes)
{
    gar_buffer_unref(writer->handed);
    writer->handed = NULL;
    if (!writer->has_magic) {
        writer->has_magic = true;
        *out_data = (const uint8_t *)MAGIC;
        *out_bytes = MAGIC_BYTES;
    } else if (writer->next_placed < writer->placed_count) {
        struct parquet_placed *const placed = &writer->placed[writer->next_placed++];
        writer->handed = placed->encoded.bytes;
        placed->encoded.bytes = NULL;
        *out_data = writer->handed->data;
        *out_bytes = placed->bytes;
    } else if (writer->is_finished && !writer->footer_is_out) {
        writer->footer_is_out = true;
        *out_data = (const uint8_t *)writer->footer.data;
        *out_bytes = writer->footer.size;
    } else {
        return GAR_EOF;
    }
    writer->handed_bytes += *out_bytes;
    return GAR_OK;
}

int64_t gar_parquet_writer_rows(const struct gar_parquet_writer *writer)
{
    return writer->rows + writer->batch_rows;
}

int64_t gar_parquet_writer_bytes(const struct gar_parquet_writer *writer)
{
    return writer->handed_bytes;
}
