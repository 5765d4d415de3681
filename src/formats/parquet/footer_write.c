/* SPDX-License-Identifier: Apache-2.0 */
/* The metadata at a file's end. */
#include <string.h>

#include "formats/parquet/encode_priv.h"

#define FORMAT_VERSION 2
#define CREATED_BY     "gar version 0.1.0"

static void put_unit(struct gar_strbuf *out, int32_t *last, int32_t id, enum gar_time_unit unit)
{
    int32_t inner = 0;
    gar_thrift_put_field(out, last, id, THRIFT_STRUCT);
    /* MILLIS 1, MICROS 2, NANOS 3; seconds are stored as milliseconds. */
    gar_thrift_put_field(out, &inner, unit <= GAR_MILLI ? 1 : (int32_t)unit, THRIFT_STRUCT);
    gar_thrift_put_stop(out);
    gar_thrift_put_stop(out);
}

static int32_t integer_bits(struct gar_type type)
{
    return 8 * gar_type_width(type);
}

/* The struct inside the LogicalType union. */
static void put_logical(struct gar_strbuf *out, struct gar_type type, int32_t logical)
{
    int32_t last = 0;
    int32_t inner = 0;
    gar_thrift_put_field(out, &last, logical, THRIFT_STRUCT);
    if (logical == PARQUET_LOGICAL_DECIMAL) {
        gar_thrift_put_i32(out, &inner, 1, type.scale);
        gar_thrift_put_i32(out, &inner, 2, type.precision);
    } else if (logical == PARQUET_LOGICAL_TIME || logical == PARQUET_LOGICAL_TIMESTAMP) {
        gar_thrift_put_bool(out, &inner, 1, type.zone != NULL);
        put_unit(out, &inner, 2, (enum gar_time_unit)type.unit);
    } else if (logical == PARQUET_LOGICAL_INTEGER) {
        gar_thrift_put_field(out, &inner, 1, THRIFT_BYTE);
        gar_strbuf_append_char(out, (char)integer_bits(type));
        gar_thrift_put_bool(out, &inner, 2, gar_type_is_signed(type));
    }
    gar_thrift_put_stop(out);
    gar_thrift_put_stop(out);
}

static void put_element(struct gar_strbuf *out, const struct gar_field *field)
{
    const struct parquet_storage storage = gar_parquet_storage_of(field->type);
    int32_t last = 0;
    gar_thrift_put_i32(out, &last, 1, storage.physical);
    if (storage.physical == GAR_PARQUET_FIXED) {
        gar_thrift_put_i32(out, &last, 2, storage.bytes);
    }
    gar_thrift_put_i32(out, &last, 3, PARQUET_OPTIONAL);
    gar_thrift_put_binary(out, &last, 4, field->name, (int64_t)strlen(field->name));
    if (storage.converted != PARQUET_CONVERTED_NONE) {
        gar_thrift_put_i32(out, &last, 6, storage.converted);
    }
    if (storage.logical == PARQUET_LOGICAL_DECIMAL) {
        gar_thrift_put_i32(out, &last, 7, field->type.scale);
        gar_thrift_put_i32(out, &last, 8, field->type.precision);
    }
    if (storage.logical != PARQUET_LOGICAL_NONE) {
        gar_thrift_put_field(out, &last, 10, THRIFT_STRUCT);
        put_logical(out, field->type, storage.logical);
    }
    gar_thrift_put_stop(out);
}

static void put_schema(struct gar_strbuf *out, int32_t *last, const struct gar_schema *schema)
{
    int32_t inner = 0;
    gar_thrift_put_list(out, last, 2, THRIFT_STRUCT, schema->count + 1);
    gar_thrift_put_binary(out, &inner, 4, "schema", 6);
    gar_thrift_put_i32(out, &inner, 5, (int32_t)schema->count);
    gar_thrift_put_stop(out);
    for (int64_t i = 0; i < schema->count; i++) {
        put_element(out, &schema->fields[i]);
    }
}

static void put_statistics(struct gar_strbuf *out, int32_t *last,
                           const struct parquet_encoded *encoded)
{
    int32_t inner = 0;
    gar_thrift_put_field(out, last, 12, THRIFT_STRUCT);
    gar_thrift_put_i64(out, &inner, 3, encoded->null_count);
    if (encoded->statistics.has_bounds) {
        gar_thrift_put_binary(out, &inner, 5, gar_strbuf_text(&encoded->statistics.max),
                              encoded->statistics.max.size);
        gar_thrift_put_binary(out, &inner, 6, gar_strbuf_text(&encoded->statistics.min),
                              encoded->statistics.min.size);
        gar_thrift_put_bool(out, &inner, 7, true);
        gar_thrift_put_bool(out, &inner, 8, true);
    }
    gar_thrift_put_stop(out);
}

static void put_chunk_metadata(struct gar_strbuf *out, const struct gar_field *field,
                               const struct parquet_placed *placed)
{
    const struct parquet_encoded *const encoded = &placed->encoded;
    int32_t last = 0;
    gar_thrift_put_i32(out, &last, 1, gar_parquet_storage_of(field->type).physical);
    gar_thrift_put_list(out, &last, 2, THRIFT_I32, encoded->has_dictionary ? 3 : 2);
    gar_thrift_put_zigzag(out, PARQUET_PLAIN);
    gar_thrift_put_zigzag(out, PARQUET_RLE);
    if (encoded->has_dictionary) {
        gar_thrift_put_zigzag(out, PARQUET_RLE_DICTIONARY);
    }
    gar_thrift_put_list(out, &last, 3, THRIFT_BINARY, 1);
    gar_thrift_put_text(out, field->name, (int64_t)strlen(field->name));
    gar_thrift_put_i32(out, &last, 4, (int32_t)encoded->codec);
    gar_thrift_put_i64(out, &last, 5, encoded->values);
    gar_thrift_put_i64(out, &last, 6, encoded->uncompressed_bytes);
    gar_thrift_put_i64(out, &last, 7, placed->bytes);
    gar_thrift_put_i64(out, &last, 9, placed->offset + encoded->dictionary_bytes);
    if (encoded->has_dictionary) {
        gar_thrift_put_i64(out, &last, 11, placed->offset);
    }
    put_statistics(out, &last, encoded);
    gar_thrift_put_stop(out);
}

static void put_row_group(struct gar_strbuf *out, const struct gar_schema *schema, int64_t rows,
                          const struct parquet_placed *placed)
{
    int32_t last = 0;
    int64_t uncompressed = 0;
    int64_t compressed = 0;
    gar_thrift_put_list(out, &last, 1, THRIFT_STRUCT, schema->count);
    for (int64_t i = 0; i < schema->count; i++) {
        int32_t inner = 0;
        gar_thrift_put_i64(out, &inner, 2, 0);
        gar_thrift_put_field(out, &inner, 3, THRIFT_STRUCT);
        put_chunk_metadata(out, &schema->fields[i], &placed[i]);
        gar_thrift_put_stop(out);
        uncompressed += placed[i].encoded.uncompressed_bytes;
        compressed += placed[i].bytes;
    }
    gar_thrift_put_i64(out, &last, 2, uncompressed);
    gar_thrift_put_i64(out, &last, 3, rows);
    if (schema->count > 0) {
        gar_thrift_put_i64(out, &last, 5, placed[0].offset);
    }
    gar_thrift_put_i64(out, &last, 6, compressed);
    gar_thrift_put_stop(out);
}

static enum gar_status put_key_values(struct gar_strbuf *out, int32_t *last,
                                      const struct gar_schema *schema, struct gar_error *err)
{
    struct gar_strbuf arrow = {0};
    const enum gar_status status = gar_parquet_arrow_facts_write(schema, &arrow, err);
    if (status >= 0 && arrow.size > 0) {
        int32_t inner = 0;
        gar_thrift_put_list(out, last, 5, THRIFT_STRUCT, 1);
        gar_thrift_put_binary(out, &inner, 1, "ARROW:schema", 12);
        gar_thrift_put_binary(out, &inner, 2, arrow.data, arrow.size);
        gar_thrift_put_stop(out);
    }
    gar_strbuf_destroy(&arrow);
    return status;
}

enum gar_status gar_parquet_footer_write(const struct gar_schema *schema, const int64_t *group_rows,
                                         int64_t group_count, const struct parquet_placed *placed,
                                         struct gar_strbuf *out, struct gar_error *err)
{
    int32_t last = 0;
    int64_t rows = 0;
    for (int64_t i = 0; i < group_count; i++) {
        rows += group_rows[i];
    }
    gar_thrift_put_i32(out, &last, 1, FORMAT_VERSION);
    put_schema(out, &last, schema);
    gar_thrift_put_i64(out, &last, 3, rows);
    gar_thrift_put_list(out, &last, 4, THRIFT_STRUCT, group_count);
    for (int64_t i = 0; i < group_count; i++) {
        put_row_group(out, schema, group_rows[i], placed + i * schema->count);
    }
    GAR_TRY(put_key_values(out, &last, schema, err));
    gar_thrift_put_binary(out, &last, 6, CREATED_BY, (int64_t)sizeof CREATED_BY - 1);
    gar_thrift_put_list(out, &last, 7, THRIFT_STRUCT, schema->count);
    for (int64_t i = 0; i < schema->count; i++) {
        int32_t inner = 0;
        gar_thrift_put_field(out, &inner, 1, THRIFT_STRUCT); /* the order that the type defines */
        gar_thrift_put_stop(out);
        gar_thrift_put_stop(out);
    }
    gar_thrift_put_stop(out);
    return out->failed ? gar_error_nomem(err, out->size) : GAR_OK;
}
