/* SPDX-License-Identifier: Apache-2.0 */
/* The footer: from the last bytes of a file to an immutable struct gar_parquet_file.
 *
 * A file ends with the metadata (Thrift), its length as 4 bytes, and "PAR1". The metadata are copied into one arena with
 * everything made of them. Lists are believed only as far as there are bytes for their items, and each item is checked before
 * the next one gets memory, so that a footer never costs more than a small multiple of its own size. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/parquet/parquet.h"
#include "formats/parquet/parquet_priv.h"

#define MAGIC_BYTES      4
#define TRAILER_BYTES    8
#define FILE_BYTES_MIN   12
#define FIRST_READ_BYTES (64 * 1024)
#define SCHEMA_DEPTH_MAX 100
/* Least bytes of an encoded item, which bounds how many can be there. */
#define ELEMENT_BYTES_MIN   3
#define CHUNK_BYTES_MIN     16
#define ROW_GROUP_BYTES_MIN 5

struct gar_parquet_store {
    struct gar_arena arena;
};

/* Everything a parse needs beside its result. */
struct footer_parse {
    struct thrift_reader reader;
    struct gar_parquet_file *file;
    struct gar_arena *arena;          /* of the file's store */
    struct parquet_element *elements; /* of the arena */
    int64_t element_count;
    int32_t *leaf_physical;  /* of the arena, leaf_count items */
    const char **leaf_names; /* of the arena, for messages */
    int64_t row_group_capacity;
    int64_t metadata_capacity;
    bool has_rows;
    struct gar_error *err;
};

int64_t gar_parquet_first_read_bytes(int64_t file_bytes)
{
    return gar_min_i64(file_bytes, FIRST_READ_BYTES);
}

enum gar_status gar_parquet_footer_need(const uint8_t *tail, int64_t tail_bytes, int64_t file_bytes,
                                        const uint8_t *head, int64_t *out_need,
                                        struct gar_error *err)
{
    if (file_bytes < FILE_BYTES_MIN) {
        return gar_error_set(err, GAR_ERR_FORMAT,
                             "not a Parquet file: %lld bytes are smaller than the minimum 12 bytes",
                             (long long)file_bytes);
    }
    if (tail_bytes < TRAILER_BYTES || tail_bytes > file_bytes) {
        return gar_error_set(err, GAR_ERR_INTERNAL,
                             "a Parquet footer needs at least 8 bytes of the file's end");
    }
    const uint8_t *const end = tail + tail_bytes;
    if (tail_bytes == file_bytes) {
        head = tail;
    }
    if (memcmp(end - MAGIC_BYTES, "PARE", MAGIC_BYTES) == 0) {
        return gar_error_set(
            err, GAR_ERR_UNSUPPORTED,
            "the Parquet file has an encrypted footer, which cannot be read; decrypt it first");
    }
    if (memcmp(end - MAGIC_BYTES, "PAR1", MAGIC_BYTES) != 0) {
        if (head != NULL && memcmp(head, "PAR1", MAGIC_BYTES) == 0) {
            return gar_error_set(err, GAR_ERR_FORMAT,
                                 "truncated Parquet file: it starts with \"PAR1\" but its last 4 "
                                 "bytes are not \"PAR1\"");
        }
        return gar_error_set(err, GAR_ERR_FORMAT,
                             "not a Parquet file: the last 4 bytes are not \"PAR1\"");
    }
    if (head != NULL && memcmp(head, "PAR1", MAGIC_BYTES) != 0) {
        return gar_error_set(err, GAR_ERR_FORMAT,
                             "not a Parquet file: the first 4 bytes are not \"PAR1\"");
    }
    const int64_t footer_bytes = gar_load_u32(end - TRAILER_BYTES);
    if (footer_bytes > file_bytes - FILE_BYTES_MIN) {
        return gar_error_set(err, GAR_ERR_FORMAT,
                             "truncated or damaged Parquet file: the footer should have %lld "
                             "bytes, the file has %lld",
                             (long long)footer_bytes, (long long)file_bytes);
    }
    *out_need = footer_bytes + TRAILER_BYTES;
    return GAR_OK;
}

static enum gar_status malformed(struct footer_parse *parse, const char *what)
{
    return gar_error_set(parse->err, GAR_ERR_FORMAT, "damaged Parquet footer: %s", what);
}

/* The sticky failure of the reader, as a status. */
static enum gar_status reader_status(struct footer_parse *parse)
{
    if (parse->reader.why == NULL) {
        return GAR_OK;
    }
    return gar_error_set(parse->err, GAR_ERR_FORMAT,
                         "damaged Parquet footer: %s (at byte %lld of the footer)",
                         parse->reader.why, (long long)parse->reader.where);
}

static enum gar_status copy_text(struct footer_parse *parse, const uint8_t *data, int64_t bytes,
                                 const char **out)
{
    char *const text = gar_arena_strndup(parse->arena, (const char *)data, bytes);
    if (text == NULL) {
        return gar_error_nomem(parse->err, bytes);
    }
    *out = text;
    return GAR_OK;
}

static void parse_time_unit(struct thrift_reader *r, struct parquet_element *element)
{
    struct thrift_field field = {0};
    gar_thrift_struct_begin(r);
    while (gar_thrift_field_next(r, &field)) {
        if (field.id >= 1 && field.id <= 3) {
            element->unit = GAR_MILLI + field.id - 1;
        }
        gar_thrift_skip(r, &field);
    }
}

/* The struct inside the LogicalType union. */
static void parse_logical_body(struct thrift_reader *r, struct parquet_element *element)
{
    struct thrift_field field = {0};
    gar_thrift_struct_begin(r);
    while (gar_thrift_field_next(r, &field)) {
        const bool is_time = element->logical == PARQUET_LOGICAL_TIME ||
                             element->logical == PARQUET_LOGICAL_TIMESTAMP;
        if (element->logical == PARQUET_LOGICAL_DECIMAL && field.id == 1) {
            element->scale = gar_thrift_field_i32(r, &field);
        } else if (element->logical == PARQUET_LOGICAL_DECIMAL && field.id == 2) {
            element->precision = gar_thrift_field_i32(r, &field);
        } else if (is_time && field.id == 1) {
            element->utc = gar_thrift_field_bool(r, &field);
        } else if (is_time && field.id == 2 && gar_thrift_field_struct(r, &field)) {
            parse_time_unit(r, element);
        } else if (element->logical == PARQUET_LOGICAL_INTEGER && field.id == 1) {
            element->integer_bits = gar_thrift_field_i32(r, &field);
        } else if (element->logical == PARQUET_LOGICAL_INTEGER && field.id == 2) {
            element->integer_signed = gar_thrift_field_bool(r, &field);
        } else {
            gar_thrift_skip(r, &field);
        }
    }
}

static void parse_logical(struct thrift_reader *r, struct parquet_element *element)
{
    struct thrift_field field = {0};
    gar_thrift_struct_begin(r);
    while (gar_thrift_field_next(r, &field)) {
        if (!gar_thrift_field_struct(r, &field)) {
            break;
        }
        element->logical = field.id;
        parse_logical_body(r, element);
    }
}

static enum gar_status parse_element(struct footer_parse *parse, struct parquet_element *element)
{
    struct thrift_reader *const r = &parse->reader;
    *element = (struct parquet_element){.name = "",
                                        .physical = -1,
                                        .repetition = -1,
                                        .unit = -1,
                                        .field_id = -1,
                                        .converted = PARQUET_CONVERTED_NONE};
    struct thrift_field field = {0};
    gar_thrift_struct_begin(r);
    while (gar_thrift_field_next(r, &field)) {
        switch (field.id) {
        case 1: element->physical = gar_thrift_field_i32(r, &field); break;
        case 2: element->fixed_bytes = gar_thrift_field_i32(r, &field); break;
        case 3: element->repetition = gar_thrift_field_i32(r, &field); break;
        case 4: {
            int64_t bytes = 0;
            const uint8_t *const name = gar_thrift_field_binary(r, &field, &bytes);
            if (memchr(name, 0, (size_t)bytes) != NULL) {
                return malformed(parse, "a column name contains a NUL byte");
            }
            GAR_TRY(copy_text(parse, name, bytes, &element->name));
            break;
        }
        case 5: element->child_count = gar_thrift_field_i32(r, &field); break;
        case 6: element->converted = gar_thrift_field_i32(r, &field); break;
        case 7: element->scale = gar_thrift_field_i32(r, &field); break;
        case 8: element->precision = gar_thrift_field_i32(r, &field); break;
        case 9: element->field_id = gar_thrift_field_i32(r, &field); break;
        case 10:
            if (gar_thrift_field_struct(r, &field)) {
                parse_logical(r, element);
            }
            break;
        default: gar_thrift_skip(r, &field); break;
        }
    }
    return reader_status(parse);
}

static enum gar_status check_element(struct footer_parse *parse,
                                     const struct parquet_element *element)
{
    char quoted[80];
    (void)gar_error_quote(element->name, (int64_t)strlen(element->name), quoted, sizeof quoted);
    if (element->child_count < 0) {
        return gar_error_set(parse->err, GAR_ERR_FORMAT,
                             "damaged Parquet footer: column '%s' has %d children", quoted,
                             element->child_count);
    }
    if (element->physical > GAR_PARQUET_FIXED || element->physical < -1) {
        return gar_error_set(parse->err, GAR_ERR_FORMAT,
                             "damaged Parquet footer: column '%s' has unknown type %d", quoted,
                             element->physical);
    }
    if (element->physical == GAR_PARQUET_FIXED && element->fixed_bytes < 0) {
        return gar_error_set(parse->err, GAR_ERR_FORMAT,
                             "damaged Parquet footer: column '%s' has values of %d bytes", quoted,
                             element->fixed_bytes);
    }
    if (element->physical != -1 && element->child_count > 0) {
        return gar_error_set(parse->err, GAR_ERR_FORMAT,
                             "damaged Parquet footer: column '%s' has a type and children", quoted);
    }
    if (element->repetition < -1 || element->repetition > PARQUET_REPEATED) {
        return gar_error_set(parse->err, GAR_ERR_FORMAT,
                             "damaged Parquet footer: column '%s' has repetition %d", quoted,
                             element->repetition);
    }
    return GAR_OK;
}

static enum gar_status parse_schema_list(struct footer_parse *parse,
                                         const struct thrift_field *field)
{
    const int64_t count =
        gar_thrift_field_list(&parse->reader, field, THRIFT_STRUCT, ELEMENT_BYTES_MIN);
    GAR_TRY(reader_status(parse));
    if (parse->elements != NULL || count < 1) {
        return malformed(parse, "the schema is empty or there twice");
    }
    parse->elements = gar_arena_calloc(parse->arena, count, (int64_t)sizeof *parse->elements);
    if (parse->elements == NULL) {
        return gar_error_nomem(parse->err, count * (int64_t)sizeof *parse->elements);
    }
    for (int64_t i = 0; i < count; i++) {
        GAR_TRY(parse_element(parse, &parse->elements[i]));
        GAR_TRY(check_element(parse, &parse->elements[i]));
    }
    parse->element_count = count;
    return GAR_OK;
}

/* Numbers of the elements at the border of each subtree: checks that the children counts use up the list exactly, within the
 * depth limit, and counts leaves. top[i] becomes the element of top-level column i. */
static enum gar_status walk_schema(struct footer_parse *parse, int64_t *top, int64_t *top_leaf)
{
    int64_t left[SCHEMA_DEPTH_MAX]; /* children still to come on each level */
    int32_t depth = 0;
    int64_t leaves = 0;
    int64_t tops = 0;
    left[0] = parse->elements[0].child_count;
    for (int64_t i = 1; i < parse->element_count; i++) {
        while (depth >= 0 && left[depth] == 0) {
            depth--;
        }
        if (depth < 0) {
            return malformed(parse, "the schema lists more columns than its groups have");
        }
        left[depth]--;
        if (depth == 0) {
            top[tops] = i;
            top_leaf[tops] = leaves;
            tops++;
        }
        const struct parquet_element *const element = &parse->elements[i];
        if (element->physical != -1) {
            leaves++;
        } else {
            depth++;
            if (depth >= SCHEMA_DEPTH_MAX) {
                return malformed(parse, "columns are nested more than 100 deep");
            }
            left[depth] = element->child_count;
        }
    }
    while (depth >= 0 && left[depth] == 0) {
        depth--;
    }
    if (depth >= 0) {
        return malformed(parse, "the schema lists fewer columns than its groups have");
    }
    parse->file->leaf_count = leaves;
    return GAR_OK;
}

static enum gar_status note_leaves(struct footer_parse *parse)
{
    const int64_t leaves = parse->file->leaf_count;
    parse->leaf_physical =
        gar_arena_calloc(parse->arena, leaves, (int64_t)sizeof *parse->leaf_physical);
    parse->leaf_names = gar_arena_calloc(parse->arena, leaves, (int64_t)sizeof *parse->leaf_names);
    parse->file->column_orders = gar_arena_calloc(parse->arena, leaves, 1);
    if (parse->leaf_physical == NULL || parse->leaf_names == NULL ||
        parse->file->column_orders == NULL) {
        return gar_error_nomem(parse->err, leaves * 16);
    }
    int64_t leaf = 0;
    for (int64_t i = 1; i < parse->element_count; i++) {
        if (parse->elements[i].physical != -1) {
            parse->leaf_physical[leaf] = parse->elements[i].physical;
            parse->leaf_names[leaf] = parse->elements[i].name;
            leaf++;
        }
    }
    return GAR_OK;
}

static const char *group_reason(const struct parquet_element *element)
{
    if (element->logical == PARQUET_LOGICAL_LIST || element->converted == PARQUET_CONVERTED_LIST) {
        return "nested (list)";
    }
    if (element->logical == PARQUET_LOGICAL_MAP || element->converted == PARQUET_CONVERTED_MAP ||
        element->converted == PARQUET_CONVERTED_MAP_KEY_VALUE) {
        return "nested (map)";
    }
    return element->repetition == PARQUET_REPEATED ? "nested (repeated group)" : "nested (struct)";
}

static enum gar_status map_column(struct footer_parse *parse, const struct parquet_element *element,
                                  int64_t leaf, const struct parquet_arrow_fact *fact,
                                  struct gar_parquet_column *out)
{
    *out = (struct gar_parquet_column){.name = element->name,
                                       .type = gar_type_of(GAR_NULL),
                                       .leaf = leaf,
                                       .optional = element->repetition == PARQUET_OPTIONAL,
                                       .field_id = element->field_id};
    if (element->physical == -1) {
        out->unsupported = group_reason(element);
        return GAR_OK;
    }
    out->physical = (uint8_t)element->physical;
    out->fixed_bytes = element->physical == GAR_PARQUET_FIXED ? element->fixed_bytes : 0;
    if (element->repetition == PARQUET_REPEATED) {
        out->unsupported = "nested (repeated)";
        return GAR_OK;
    }
    return gar_parquet_map_leaf(element, fact, parse->arena, out, parse->err);
}

/* The embedded Arrow schema, if its fields are the file's columns. */
static enum gar_status find_facts(struct footer_parse *parse, const int64_t *top, int64_t count,
                                  struct parquet_arrow_fact **out)
{
    *out = NULL;
    for (int64_t i = 0; i < parse->file->metadata_count; i++) {
        const struct gar_parquet_key_value *const pair = &parse->file->metadata[i];
        if (strcmp(pair->key, "ARROW:schema") != 0) {
            continue;
        }
        struct parquet_arrow_fact *facts = NULL;
        int64_t fact_count = 0;
        GAR_TRY(gar_parquet_arrow_facts(pair->value, pair->value_bytes, parse->arena, &facts,
                                        &fact_count, parse->err));
        bool agrees = fact_count == count;
        for (int64_t k = 0; agrees && k < count; k++) {
            agrees =
                facts[k].name != NULL && strcmp(facts[k].name, parse->elements[top[k]].name) == 0;
        }
        if (agrees) {
            *out = facts;
        }
        return GAR_OK;
    }
    return GAR_OK;
}

static enum gar_status fill_columns(struct footer_parse *parse, const int64_t *top,
                                    const int64_t *top_leaf, int64_t count,
                                    struct gar_field *fields)
{
    static const struct parquet_arrow_fact no_fact = {.unit = -1};
    struct parquet_arrow_fact *facts = NULL;
    GAR_TRY(find_facts(parse, top, count, &facts));
    for (int64_t i = 0; i < count; i++) {
        const struct parquet_arrow_fact *const fact = facts != NULL ? &facts[i] : &no_fact;
        struct gar_parquet_column *const column = &parse->file->columns[i];
        GAR_TRY(map_column(parse, &parse->elements[top[i]], top_leaf[i], fact, column));
        fields[i] = (struct gar_field){.type = column->type,
                                       .nullable = column->optional,
                                       .metadata = fact->metadata,
                                       .metadata_bytes = fact->metadata_bytes};
        fields[i].name =
            gar_arena_strndup(parse->arena, column->name, (int64_t)strlen(column->name));
        if (fields[i].name == NULL) {
            return gar_error_nomem(parse->err, (int64_t)strlen(column->name));
        }
    }
    return gar_schema_new(fields, count, true, &parse->file->schema, parse->err);
}

static enum gar_status build_schema(struct footer_parse *parse, const int64_t *top,
                                    const int64_t *top_leaf)
{
    const int64_t count = parse->elements[0].child_count;
    struct gar_field *const fields = gar_arena_calloc(parse->arena, count, (int64_t)sizeof *fields);
    parse->file->columns =
        gar_arena_calloc(parse->arena, count, (int64_t)sizeof *parse->file->columns);
    if (fields == NULL || parse->file->columns == NULL) {
        return gar_error_nomem(parse->err, count * (int64_t)sizeof *fields);
    }
    return fill_columns(parse, top, top_leaf, count, fields);
}

static enum gar_status parse_key_values(struct footer_parse *parse,
                                        const struct thrift_field *field)
{
    struct thrift_reader *const r = &parse->reader;
    const int64_t count = gar_thrift_field_list(r, field, THRIFT_STRUCT, 1);
    GAR_TRY(reader_status(parse));
    for (int64_t i = 0; i < count; i++) {
        struct gar_parquet_key_value pair = {.key = "", .value = ""};
        struct thrift_field inner = {0};
        gar_thrift_struct_begin(r);
        while (gar_thrift_field_next(r, &inner)) {
            int64_t bytes = 0;
            if (inner.id == 1) {
                const uint8_t *const key = gar_thrift_field_binary(r, &inner, &bytes);
                GAR_TRY(copy_text(parse, key, bytes, &pair.key));
            } else if (inner.id == 2) {
                const uint8_t *const value = gar_thrift_field_binary(r, &inner, &bytes);
                GAR_TRY(copy_text(parse, value, bytes, &pair.value));
                pair.value_bytes = bytes;
            } else {
                gar_thrift_skip(r, &inner);
            }
        }
        GAR_TRY(reader_status(parse));
        struct gar_parquet_file *const file = parse->file;
        void *items = file->metadata;
        GAR_TRY(gar_grow(&items, &parse->metadata_capacity, file->metadata_count + 1,
                         (int64_t)sizeof pair, parse->err));
        file->metadata = items;
        file->metadata[file->metadata_count++] = pair;
    }
    return GAR_OK;
}

static void parse_statistic(struct thrift_reader *r, const struct thrift_field *field,
                            const uint8_t **out, int32_t *out_bytes)
{
    int64_t bytes = 0;
    const uint8_t *const data = gar_thrift_field_binary(r, field, &bytes);
    if (bytes <= INT32_MAX) {
        *out = data;
        *out_bytes = (int32_t)bytes;
    }
}

static void parse_statistics(struct thrift_reader *r, struct gar_parquet_chunk *chunk)
{
    struct thrift_field field = {0};
    gar_thrift_struct_begin(r);
    while (gar_thrift_field_next(r, &field)) {
        switch (field.id) {
        case 1: parse_statistic(r, &field, &chunk->legacy_max, &chunk->legacy_max_bytes); break;
        case 2: parse_statistic(r, &field, &chunk->legacy_min, &chunk->legacy_min_bytes); break;
        case 3: chunk->null_count = gar_thrift_field_int(r, &field); break;
        case 4: chunk->distinct_count = gar_thrift_field_int(r, &field); break;
        case 5: parse_statistic(r, &field, &chunk->max, &chunk->max_bytes); break;
        case 6: parse_statistic(r, &field, &chunk->min, &chunk->min_bytes); break;
        case 7: chunk->max_exact = (int8_t)gar_thrift_field_bool(r, &field); break;
        case 8: chunk->min_exact = (int8_t)gar_thrift_field_bool(r, &field); break;
        case 9: chunk->nan_count = gar_thrift_field_int(r, &field); break;
        default: gar_thrift_skip(r, &field); break;
        }
    }
}

/* Places of one chunk as they stand in the footer, before they are checked. */
struct chunk_places {
    int64_t data_page;
    int64_t dictionary_page; /* -1: none */
    int64_t bytes;
    int32_t physical;
    int32_t codec;
    bool has_file_path;
    bool has_metadata;
    bool is_encrypted;
};

static void parse_encodings(struct thrift_reader *r, const struct thrift_field *field,
                            struct gar_parquet_chunk *chunk)
{
    const int64_t count = gar_thrift_field_list(r, field, THRIFT_I32, 1);
    for (int64_t i = 0; i < count; i++) {
        const int64_t encoding = gar_thrift_int(r);
        if (encoding >= 0 && encoding < 32) {
            chunk->encodings |= UINT32_C(1) << encoding;
        }
    }
}

static void parse_chunk_metadata(struct thrift_reader *r, struct gar_parquet_chunk *chunk,
                                 struct chunk_places *places)
{
    struct thrift_field field = {0};
    gar_thrift_struct_begin(r);
    while (gar_thrift_field_next(r, &field)) {
        switch (field.id) {
        case 1: places->physical = gar_thrift_field_i32(r, &field); break;
        case 2: parse_encodings(r, &field, chunk); break;
        case 4: places->codec = gar_thrift_field_i32(r, &field); break;
        case 5: chunk->values = gar_thrift_field_int(r, &field); break;
        case 6: chunk->uncompressed_bytes = gar_thrift_field_int(r, &field); break;
        case 7: places->bytes = gar_thrift_field_int(r, &field); break;
        case 9: places->data_page = gar_thrift_field_int(r, &field); break;
        case 11: places->dictionary_page = gar_thrift_field_int(r, &field); break;
        case 12:
            if (gar_thrift_field_struct(r, &field)) {
                parse_statistics(r, chunk);
            }
            break;
        case 14: chunk->bloom_offset = gar_thrift_field_int(r, &field); break;
        case 15: chunk->bloom_bytes = gar_thrift_field_int(r, &field); break;
        default: gar_thrift_skip(r, &field); break;
        }
    }
    places->has_metadata = true;
}

/* A place that is optional: outside the file it is as if it were not there. */
static void check_optional_place(int64_t file_bytes, int64_t *offset, int64_t *bytes)
{
    if (*offset <= 0 || *bytes < 0 || *offset > file_bytes || *bytes > file_bytes - *offset) {
        *offset = 0;
        *bytes = 0;
    }
}

static enum gar_status check_chunk(struct footer_parse *parse, int64_t rows, int64_t leaf,
                                   const struct chunk_places *places,
                                   struct gar_parquet_chunk *chunk)
{
    const int64_t file_bytes = parse->file->file_bytes;
    char quoted[80];
    (void)gar_error_quote(parse->leaf_names[leaf], (int64_t)strlen(parse->leaf_names[leaf]), quoted,
                          sizeof quoted);
    const char *what = NULL;
    if (places->is_encrypted) {
        return gar_error_set(
            parse->err, GAR_ERR_UNSUPPORTED,
            "column '%s', row group %lld: the column is encrypted, which cannot be read", quoted,
            (long long)parse->file->row_group_count);
    }
    chunk->offset = places->data_page;
    if (places->dictionary_page > 0 && places->dictionary_page < places->data_page) {
        chunk->offset = places->dictionary_page;
    }
    chunk->bytes = places->bytes;
    chunk->codec = (uint8_t)places->codec;
    if (!places->has_metadata) {
        what = "it has no metadata";
    } else if (places->has_file_path) {
        what = "its pages are in another file";
    } else if (places->physical != parse->leaf_physical[leaf]) {
        what = "its type is not the schema's";
    } else if (places->codec < 0 || places->codec > GAR_PARQUET_LZ4_RAW) {
        what = "its codec is unknown";
    } else if (chunk->values < 0) {
        what = "it has a negative number of values";
    } else if (chunk->bytes < 0 || chunk->offset < 0 || chunk->offset > file_bytes ||
               chunk->bytes > file_bytes - chunk->offset ||
               (rows > 0 && chunk->offset < MAGIC_BYTES)) {
        what = "its pages lie outside the file";
    }
    if (what != NULL) {
        return gar_error_set(parse->err, GAR_ERR_FORMAT,
                             "damaged Parquet footer: column '%s', row group %lld: %s", quoted,
                             (long long)parse->file->row_group_count, what);
    }
    if (chunk->null_count < 0 || chunk->null_count > chunk->values) {
        chunk->null_count = -1;
    }
    if (chunk->nan_count < 0 || chunk->nan_count > chunk->values) {
        chunk->nan_count = -1;
    }
    check_optional_place(file_bytes, &chunk->column_index_offset, &chunk->column_index_bytes);
    check_optional_place(file_bytes, &chunk->offset_index_offset, &chunk->offset_index_bytes);
    check_optional_place(file_bytes, &chunk->bloom_offset, &chunk->bloom_bytes);
    return GAR_OK;
}

static enum gar_status parse_chunk(struct footer_parse *parse, struct gar_parquet_chunk *chunk,
                                   struct chunk_places *places)
{
    struct thrift_reader *const r = &parse->reader;
    *chunk = (struct gar_parquet_chunk){
        .null_count = -1, .distinct_count = -1, .nan_count = -1, .min_exact = -1, .max_exact = -1};
    *places = (struct chunk_places){.dictionary_page = -1};
    struct thrift_field field = {0};
    gar_thrift_struct_begin(r);
    while (gar_thrift_field_next(r, &field)) {
        switch (field.id) {
        case 1: {
            int64_t bytes = 0;
            (void)gar_thrift_field_binary(r, &field, &bytes);
            places->has_file_path = bytes > 0;
            break;
        }
        case 3:
            if (gar_thrift_field_struct(r, &field)) {
                parse_chunk_metadata(r, chunk, places);
            }
            break;
        case 4: chunk->offset_index_offset = gar_thrift_field_int(r, &field); break;
        case 5: chunk->offset_index_bytes = gar_thrift_field_int(r, &field); break;
        case 6: chunk->column_index_offset = gar_thrift_field_int(r, &field); break;
        case 7: chunk->column_index_bytes = gar_thrift_field_int(r, &field); break;
        case 8:
        case 9:
            places->is_encrypted = true;
            gar_thrift_skip(r, &field);
            break;
        default: gar_thrift_skip(r, &field); break;
        }
    }
    return reader_status(parse);
}

static enum gar_status parse_chunks(struct footer_parse *parse, const struct thrift_field *field,
                                    struct gar_parquet_row_group *group,
                                    struct chunk_places **out_places)
{
    const int64_t count =
        gar_thrift_field_list(&parse->reader, field, THRIFT_STRUCT, CHUNK_BYTES_MIN);
    GAR_TRY(reader_status(parse));
    if (count != parse->file->leaf_count || group->chunks != NULL) {
        return gar_error_set(
            parse->err, GAR_ERR_FORMAT,
            "damaged Parquet footer: row group %lld has %lld columns, the schema %lld",
            (long long)parse->file->row_group_count, (long long)count,
            (long long)parse->file->leaf_count);
    }
    group->chunks = gar_arena_calloc(parse->arena, count, (int64_t)sizeof *group->chunks);
    struct chunk_places *const places = gar_calloc(count, (int64_t)sizeof *places);
    *out_places = places;
    if (group->chunks == NULL || places == NULL) {
        return gar_error_nomem(parse->err,
                               count * (int64_t)(sizeof *group->chunks + sizeof *places));
    }
    for (int64_t i = 0; i < count; i++) {
        GAR_TRY(parse_chunk(parse, &group->chunks[i], &places[i]));
    }
    return GAR_OK;
}

static enum gar_status parse_row_group_fields(struct footer_parse *parse,
                                              struct gar_parquet_row_group *group,
                                              struct chunk_places **out_places)
{
    struct thrift_reader *const r = &parse->reader;
    struct thrift_field field = {0};
    group->rows = -1;
    gar_thrift_struct_begin(r);
    while (gar_thrift_field_next(r, &field)) {
        switch (field.id) {
        case 1: GAR_TRY(parse_chunks(parse, &field, group, out_places)); break;
        case 2: group->bytes = gar_thrift_field_int(r, &field); break;
        case 3: group->rows = gar_thrift_field_int(r, &field); break;
        default: gar_thrift_skip(r, &field); break;
        }
    }
    GAR_TRY(reader_status(parse));
    const int64_t before =
        parse->file->row_group_count == 0
            ? 0
            : parse->file->row_groups[parse->file->row_group_count - 1].first_row +
                  parse->file->row_groups[parse->file->row_group_count - 1].rows;
    if (group->rows < 0 || group->rows > INT64_MAX - before) {
        return gar_error_set(parse->err, GAR_ERR_FORMAT,
                             "damaged Parquet footer: row group %lld has %lld rows",
                             (long long)parse->file->row_group_count, (long long)group->rows);
    }
    group->first_row = before;
    if (group->chunks == NULL && parse->file->leaf_count > 0) {
        return gar_error_set(parse->err, GAR_ERR_FORMAT,
                             "damaged Parquet footer: row group %lld has no columns",
                             (long long)parse->file->row_group_count);
    }
    for (int64_t i = 0; i < parse->file->leaf_count && *out_places != NULL; i++) {
        GAR_TRY(check_chunk(parse, group->rows, i, &(*out_places)[i], &group->chunks[i]));
    }
    return GAR_OK;
}

static enum gar_status parse_row_group(struct footer_parse *parse,
                                       struct gar_parquet_row_group *group)
{
    struct chunk_places *places = NULL;
    const enum gar_status status = parse_row_group_fields(parse, group, &places);
    gar_free(places);
    return status;
}

static enum gar_status parse_row_groups(struct footer_parse *parse,
                                        const struct thrift_field *field)
{
    if (parse->leaf_physical == NULL) {
        return malformed(parse, "row groups come before the schema");
    }
    const int64_t count =
        gar_thrift_field_list(&parse->reader, field, THRIFT_STRUCT, ROW_GROUP_BYTES_MIN);
    GAR_TRY(reader_status(parse));
    struct gar_parquet_file *const file = parse->file;
    for (int64_t i = 0; i < count; i++) {
        struct gar_parquet_row_group group = {0};
        GAR_TRY(parse_row_group(parse, &group));
        void *items = file->row_groups;
        GAR_TRY(gar_grow(&items, &parse->row_group_capacity, file->row_group_count + 1,
                         (int64_t)sizeof group, parse->err));
        file->row_groups = items;
        file->row_groups[file->row_group_count++] = group;
    }
    return GAR_OK;
}

static enum gar_status parse_column_orders(struct footer_parse *parse,
                                           const struct thrift_field *field)
{
    struct thrift_reader *const r = &parse->reader;
    const int64_t count = gar_thrift_field_list(r, field, THRIFT_STRUCT, 1);
    for (int64_t i = 0; i < count && r->why == NULL; i++) {
        struct thrift_field inner = {0};
        uint8_t order = 0;
        gar_thrift_struct_begin(r);
        while (gar_thrift_field_next(r, &inner)) {
            order = inner.id == 1 || inner.id == 2 ? (uint8_t)inner.id : 0;
            gar_thrift_skip(r, &inner);
        }
        if (i < parse->file->leaf_count && parse->file->column_orders != NULL) {
            parse->file->column_orders[i] = order;
        }
    }
    return reader_status(parse);
}

static enum gar_status parse_fields(struct footer_parse *parse, int64_t **out_top)
{
    struct thrift_reader *const r = &parse->reader;
    struct gar_parquet_file *const file = parse->file;
    struct thrift_field field = {0};
    gar_thrift_struct_begin(r);
    while (gar_thrift_field_next(r, &field)) {
        switch (field.id) {
        case 2: {
            GAR_TRY(parse_schema_list(parse, &field));
            int64_t *const top =
                gar_arena_calloc(parse->arena, parse->element_count * 2, (int64_t)sizeof *top);
            if (top == NULL) {
                return gar_error_nomem(parse->err, parse->element_count * 16);
            }
            *out_top = top;
            GAR_TRY(walk_schema(parse, top, top + parse->element_count));
            GAR_TRY(note_leaves(parse));
            break;
        }
        case 3:
            file->rows = gar_thrift_field_int(r, &field);
            parse->has_rows = true;
            break;
        case 4: GAR_TRY(parse_row_groups(parse, &field)); break;
        case 5: GAR_TRY(parse_key_values(parse, &field)); break;
        case 6: {
            int64_t bytes = 0;
            const uint8_t *const by = gar_thrift_field_binary(r, &field, &bytes);
            GAR_TRY(copy_text(parse, by, bytes, &file->created_by));
            break;
        }
        case 7: GAR_TRY(parse_column_orders(parse, &field)); break;
        case 8:
            return gar_error_set(
                parse->err, GAR_ERR_UNSUPPORTED,
                "the Parquet file is encrypted, which cannot be read; decrypt it first");
        default: gar_thrift_skip(r, &field); break;
        }
    }
    return reader_status(parse);
}

static enum gar_status parse_metadata(struct footer_parse *parse)
{
    struct gar_parquet_file *const file = parse->file;
    int64_t *top = NULL;
    GAR_TRY(parse_fields(parse, &top));
    if (parse->elements == NULL || top == NULL) {
        return malformed(parse, "it has no schema");
    }
    int64_t rows = 0;
    for (int64_t i = 0; i < file->row_group_count; i++) {
        rows += file->row_groups[i].rows;
    }
    if (!parse->has_rows || file->rows != rows) {
        return gar_error_set(parse->err, GAR_ERR_FORMAT,
                             "damaged Parquet footer: it says %lld rows, its row groups hold %lld",
                             (long long)file->rows, (long long)rows);
    }
    return build_schema(parse, top, top + parse->element_count);
}

static enum gar_status parse_into(struct gar_parquet_file *file, const uint8_t *data, int64_t bytes,
                                  struct gar_error *err)
{
    struct gar_arena *const arena = &file->store->arena;
    /* Statistics stay views of the metadata, so those are copied first. */
    uint8_t *const copy = gar_arena_alloc(arena, bytes + 1);
    if (copy == NULL) {
        return gar_error_nomem(err, bytes);
    }
    memcpy(copy, data, (size_t)bytes);
    struct footer_parse parse = {.file = file, .arena = arena, .err = err};
    gar_thrift_init(&parse.reader, copy, bytes);
    return parse_metadata(&parse);
}

enum gar_status gar_parquet_file_parse(const uint8_t *tail, int64_t tail_bytes, int64_t file_bytes,
                                       struct gar_parquet_file **out, struct gar_error *err)
{
    int64_t need = 0;
    GAR_TRY(gar_parquet_footer_need(tail, tail_bytes, file_bytes, NULL, &need, err));
    if (tail_bytes < need) {
        return gar_error_set(err, GAR_ERR_INTERNAL,
                             "a Parquet footer needs %lld bytes of the file's end, not %lld",
                             (long long)need, (long long)tail_bytes);
    }
    struct gar_parquet_file *const file = gar_calloc(1, (int64_t)sizeof *file);
    struct gar_parquet_store *const store = gar_calloc(1, (int64_t)sizeof *store);
    if (file == NULL || store == NULL) {
        gar_free(file);
        gar_free(store);
        return gar_error_nomem(err, (int64_t)sizeof *file);
    }
    file->refs = 1;
    file->file_bytes = file_bytes;
    file->created_by = "";
    file->store = store;
    const enum gar_status status =
        parse_into(file, tail + tail_bytes - need, need - TRAILER_BYTES, err);
    if (status < 0) {
        gar_parquet_file_unref(file);
        return status;
    }
    *out = file;
    return GAR_OK;
}

struct gar_parquet_file *gar_parquet_file_ref(struct gar_parquet_file *file)
{
    (void)__atomic_add_fetch(&file->refs, 1, __ATOMIC_RELAXED);
    return file;
}

int64_t gar_parquet_file_memory(const struct gar_parquet_file *file)
{
    return (int64_t)sizeof *file + file->store->arena.total_bytes +
           file->row_group_count * (int64_t)sizeof *file->row_groups +
           file->metadata_count * (int64_t)sizeof *file->metadata +
           file->schema->count * 2 * (int64_t)sizeof *file->schema->fields;
}

void gar_parquet_file_unref(struct gar_parquet_file *file)
{
    if (file == NULL || __atomic_sub_fetch(&file->refs, 1, __ATOMIC_ACQ_REL) != 0) {
        return;
    }
    gar_schema_unref(file->schema);
    gar_free(file->row_groups);
    gar_free(file->metadata);
    gar_arena_destroy(&file->store->arena);
    gar_free(file->store);
    gar_free(file);
}

enum gar_status gar_parquet_column_check(const struct gar_parquet_file *file, int64_t column,
                                         struct gar_error *err)
{
    const struct gar_parquet_column *const c = &file->columns[column];
    if (c->unsupported == NULL) {
        return GAR_OK;
    }
    char quoted[80];
    return gar_error_set(
        err, GAR_ERR_UNSUPPORTED,
        "column '%s' is %s, which cannot be read yet; select the other columns by name",
        gar_error_quote(c->name, (int64_t)strlen(c->name), quoted, sizeof quoted), c->unsupported);
}
