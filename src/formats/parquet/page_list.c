/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of a column chunk: all headers are read before any value is, so that sizes, encodings and counts are known to fit
 * together, and pages can be passed without looking into them. */
#include <string.h>

#include "base/alloc.h"
#include "formats/parquet/chunk_reader_priv.h"

/* A page header as it stands. */
struct header {
    int32_t kind;
    int32_t uncompressed_bytes;
    int32_t bytes;
    int32_t crc;
    bool has_crc;
    int32_t values;
    int32_t encoding;
    int32_t level_encoding;
    int32_t nulls; /* v2 */
    int32_t rows;  /* v2 */
    int32_t definition_bytes;
    int32_t repetition_bytes;
    bool is_compressed;
    bool has_body; /* the struct of its kind was there */
};

/* DataPageHeader or DictionaryPageHeader, whose third field is something else. */
static void parse_data_body(struct thrift_reader *r, bool is_dictionary, struct header *h)
{
    struct thrift_field field = {0};
    gar_thrift_struct_begin(r);
    while (gar_thrift_field_next(r, &field)) {
        if (field.id == 1) {
            h->values = gar_thrift_field_i32(r, &field);
        } else if (field.id == 2) {
            h->encoding = gar_thrift_field_i32(r, &field);
        } else if (field.id == 3 && !is_dictionary) {
            h->level_encoding = gar_thrift_field_i32(r, &field);
        } else {
            gar_thrift_skip(r, &field);
        }
    }
}

static void parse_v2_body(struct thrift_reader *r, struct header *h)
{
    struct thrift_field field = {0};
    gar_thrift_struct_begin(r);
    while (gar_thrift_field_next(r, &field)) {
        switch (field.id) {
        case 1: h->values = gar_thrift_field_i32(r, &field); break;
        case 2: h->nulls = gar_thrift_field_i32(r, &field); break;
        case 3: h->rows = gar_thrift_field_i32(r, &field); break;
        case 4: h->encoding = gar_thrift_field_i32(r, &field); break;
        case 5: h->definition_bytes = gar_thrift_field_i32(r, &field); break;
        case 6: h->repetition_bytes = gar_thrift_field_i32(r, &field); break;
        case 7: h->is_compressed = gar_thrift_field_bool(r, &field); break;
        default: gar_thrift_skip(r, &field); break;
        }
    }
}

static void parse_header(struct thrift_reader *r, struct header *h)
{
    *h = (struct header){.kind = -1, .is_compressed = true};
    struct thrift_field field = {0};
    gar_thrift_struct_begin(r);
    while (gar_thrift_field_next(r, &field)) {
        const bool is_data = h->kind == PARQUET_PAGE_DATA && field.id == 5;
        const bool is_dictionary = h->kind == PARQUET_PAGE_DICTIONARY && field.id == 7;
        const bool is_v2 = h->kind == PARQUET_PAGE_DATA_V2 && field.id == 8;
        if (field.id == 1) {
            h->kind = gar_thrift_field_i32(r, &field);
        } else if (field.id == 2) {
            h->uncompressed_bytes = gar_thrift_field_i32(r, &field);
        } else if (field.id == 3) {
            h->bytes = gar_thrift_field_i32(r, &field);
        } else if (field.id == 4) {
            h->crc = gar_thrift_field_i32(r, &field);
            h->has_crc = true;
        } else if ((is_data || is_dictionary) && gar_thrift_field_struct(r, &field)) {
            parse_data_body(r, is_dictionary, h);
            h->has_body = true;
        } else if (is_v2 && gar_thrift_field_struct(r, &field)) {
            parse_v2_body(r, h);
            h->has_body = true;
        } else {
            gar_thrift_skip(r, &field);
        }
    }
}

static bool encoding_fits(const struct gar_parquet_reader *reader, int32_t encoding)
{
    const enum gar_parquet_physical physical = (enum gar_parquet_physical)reader->column->physical;
    switch (encoding) {
    case PARQUET_PLAIN: return true;
    case PARQUET_PLAIN_DICTIONARY:
    case PARQUET_RLE_DICTIONARY: return physical != GAR_PARQUET_BOOLEAN;
    case PARQUET_RLE: return physical == GAR_PARQUET_BOOLEAN;
    case PARQUET_DELTA_BINARY_PACKED:
        return physical == GAR_PARQUET_INT32 || physical == GAR_PARQUET_INT64;
    case PARQUET_DELTA_LENGTH_BYTE_ARRAY: return physical == GAR_PARQUET_BYTE_ARRAY;
    case PARQUET_DELTA_BYTE_ARRAY:
        return physical == GAR_PARQUET_BYTE_ARRAY || physical == GAR_PARQUET_FIXED;
    case PARQUET_BYTE_STREAM_SPLIT:
        return physical != GAR_PARQUET_BOOLEAN && physical != GAR_PARQUET_INT96 &&
               physical != GAR_PARQUET_BYTE_ARRAY;
    default: return false;
    }
}

static bool is_code_encoding(int32_t encoding)
{
    return encoding == PARQUET_PLAIN_DICTIONARY || encoding == PARQUET_RLE_DICTIONARY;
}

/* NULL, or what is wrong with the header. there: bytes of the chunk behind it. */
static const char *check_header(const struct gar_parquet_reader *reader, const struct header *h,
                                int64_t there)
{
    if (h->bytes < 0 || h->uncompressed_bytes < 0) {
        return "the page has a negative size";
    }
    if (h->bytes > there) {
        return "the page is longer than what is left of its column chunk";
    }
    if (h->kind == PARQUET_PAGE_INDEX) {
        return NULL;
    }
    if (h->kind < 0 || h->kind > PARQUET_PAGE_DATA_V2 || !h->has_body) {
        return "the page has an unknown kind or no header of its kind";
    }
    if (h->values < 0) {
        return "the page has a negative number of values";
    }
    const enum gar_parquet_codec codec = (enum gar_parquet_codec)reader->chunk->codec;
    const int64_t levels =
        h->kind == PARQUET_PAGE_DATA_V2 ? (int64_t)h->definition_bytes + h->repetition_bytes : 0;
    if (h->kind == PARQUET_PAGE_DATA_V2) {
        if (h->definition_bytes < 0 || h->repetition_bytes < 0 || levels > h->bytes ||
            levels > h->uncompressed_bytes) {
            return "the page's levels do not fit into it";
        }
        if (h->repetition_bytes != 0 || h->rows != h->values) {
            return "the page has repeated values in a column without lists";
        }
        if (h->nulls < 0 || h->nulls > h->values || (h->nulls > 0 && !reader->column->optional)) {
            return "the page has nulls where there can be none";
        }
    }
    const bool is_compressed = h->kind == PARQUET_PAGE_DATA_V2 ? h->is_compressed : true;
    if (!gar_page_codec_plausible(is_compressed ? codec : GAR_PARQUET_NONE, h->bytes - levels,
                                  h->uncompressed_bytes - levels)) {
        return "the page's sizes before and after compression cannot both be right";
    }
    return NULL;
}

static enum gar_status add_page(struct gar_parquet_reader *reader, const struct header *h,
                                const struct parquet_page *page, struct gar_error *err)
{
    if (h->kind == PARQUET_PAGE_DICTIONARY) {
        if (reader->has_dictionary_page || reader->page_count > 0) {
            return gar_parquet_page_fail(reader, err,
                                         "a dictionary page is there twice or behind a data page");
        }
        if (h->encoding != PARQUET_PLAIN && h->encoding != PARQUET_PLAIN_DICTIONARY) {
            return gar_parquet_page_fail(reader, err,
                                         "a dictionary page has an encoding that is not PLAIN");
        }
        reader->has_dictionary_page = true;
        reader->dictionary_page = *page;
        reader->dictionary_page.encoding = PARQUET_PLAIN;
        return GAR_OK;
    }
    if (!encoding_fits(reader, h->encoding)) {
        (void)gar_error_set(err, GAR_ERR_UNSUPPORTED,
                            "values of type %s in encoding %s cannot be read",
                            gar_parquet_physical_name(reader->column->physical),
                            gar_parquet_encoding_name(h->encoding));
        gar_parquet_page_prefix(reader, err);
        return GAR_ERR_UNSUPPORTED;
    }
    if (is_code_encoding(h->encoding) && !reader->has_dictionary_page) {
        return gar_parquet_page_fail(reader, err, "the page needs a dictionary but there is none");
    }
    if (reader->column->optional && !page->is_v2 && h->level_encoding != PARQUET_RLE &&
        h->level_encoding != PARQUET_BIT_PACKED) {
        return gar_parquet_page_fail(
            reader, err, "the page's levels have an encoding that is neither RLE nor BIT_PACKED");
    }
    void *items = reader->pages;
    GAR_TRY(gar_grow(&items, &reader->page_capacity, reader->page_count + 1, (int64_t)sizeof *page,
                     err));
    reader->pages = items;
    reader->pages[reader->page_count++] = *page;
    return GAR_OK;
}

/* Reads one header at *at and moves behind its page. */
static enum gar_status list_page(struct gar_parquet_reader *reader, int64_t *at, int64_t *values,
                                 struct gar_error *err)
{
    struct thrift_reader r;
    struct header h;
    reader->page = reader->page_count;
    reader->place = *at;
    gar_thrift_init(&r, reader->bytes + *at, reader->chunk->bytes - *at);
    parse_header(&r, &h);
    if (r.why != NULL) {
        (void)gar_error_set(err, GAR_ERR_FORMAT, "the page's header is damaged: %s", r.why);
        gar_parquet_page_prefix(reader, err);
        return GAR_ERR_FORMAT;
    }
    const char *const what = check_header(reader, &h, r.end - r.next);
    if (what != NULL) {
        return gar_parquet_page_fail(reader, err, what);
    }
    struct parquet_page page = {.data = r.next,
                                .offset = *at,
                                .bytes = h.bytes,
                                .uncompressed_bytes = h.uncompressed_bytes,
                                .values = h.values,
                                .level_bytes = h.definition_bytes,
                                .crc = (uint32_t)h.crc,
                                .has_crc = h.has_crc,
                                .is_v2 = h.kind == PARQUET_PAGE_DATA_V2,
                                .is_compressed = h.is_compressed,
                                .encoding = (uint8_t)h.encoding,
                                .level_encoding = (uint8_t)h.level_encoding};
    *at = (r.next - reader->bytes) + h.bytes;
    if (h.kind == PARQUET_PAGE_INDEX) {
        return GAR_OK;
    }
    if (h.kind != PARQUET_PAGE_DICTIONARY) {
        *values += h.values;
        if (*values > reader->chunk->values) {
            return gar_parquet_page_fail(reader, err,
                                         "the pages hold more values than the footer says");
        }
    }
    return add_page(reader, &h, &page, err);
}

static void choose_encoding(struct gar_parquet_reader *reader)
{
    bool all_codes = reader->has_dictionary_page && reader->column->conversion != PARQUET_ALL_NULL;
    for (int64_t i = 0; all_codes && i < reader->page_count; i++) {
        all_codes = is_code_encoding(reader->pages[i].encoding);
    }
    /* A dictionary that is nearly as long as the column saves nobody work. */
    const int64_t entries = reader->dictionary_page.values;
    reader->is_dictionary = all_codes && entries > 0 && entries <= reader->chunk->values / 2;
}

enum gar_status gar_parquet_list_pages(struct gar_parquet_reader *reader, struct gar_error *err)
{
    const int64_t rows = reader->file->row_groups[reader->row_group].rows;
    if (reader->chunk->values != rows) {
        (void)gar_error_set(err, GAR_ERR_FORMAT, "it has %lld values, its row group %lld rows",
                            (long long)reader->chunk->values, (long long)rows);
        reader->page = PARQUET_AT_CHUNK;
        gar_parquet_page_prefix(reader, err);
        return GAR_ERR_FORMAT;
    }
    int64_t values = 0;
    int64_t at = 0;
    while (values < rows && at < reader->chunk->bytes) {
        GAR_TRY(list_page(reader, &at, &values, err));
    }
    if (values != rows) {
        (void)gar_error_set(err, GAR_ERR_FORMAT, "its pages hold %lld values, the footer says %lld",
                            (long long)values, (long long)rows);
        reader->page = PARQUET_AT_CHUNK;
        gar_parquet_page_prefix(reader, err);
        return GAR_ERR_FORMAT;
    }
    choose_encoding(reader);
    return GAR_OK;
}
