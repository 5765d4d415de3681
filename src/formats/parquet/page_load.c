/* SPDX-License-Identifier: Apache-2.0 */
/* Loading a page: checksum, decompression, levels, decoders; and the dictionary. */
#include <libdeflate.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/parquet/chunk_reader_priv.h"

#define CODE_WIDTH_MAX 32

void gar_parquet_page_prefix(const struct gar_parquet_reader *reader, struct gar_error *err)
{
    char quoted[80];
    const char *const name = reader->column->name;
    (void)gar_error_quote(name, (int64_t)strlen(name), quoted, sizeof quoted);
    const long long group = reader->row_group;
    const long long offset = reader->chunk->offset + reader->place;
    if (reader->page == PARQUET_AT_CHUNK) {
        gar_error_prefix(err, "column '%s', row group %lld: ", quoted, group);
    } else if (reader->page == PARQUET_AT_DICTIONARY) {
        gar_error_prefix(err,
                         "column '%s', row group %lld, dictionary page at offset %lld: ", quoted,
                         group, offset);
    } else {
        gar_error_prefix(err, "column '%s', row group %lld, page %lld at offset %lld: ", quoted,
                         group, (long long)reader->page, offset);
    }
}

enum gar_status gar_parquet_page_fail(const struct gar_parquet_reader *reader,
                                      struct gar_error *err, const char *what)
{
    (void)gar_error_set(err, GAR_ERR_FORMAT, "%s", what);
    gar_parquet_page_prefix(reader, err);
    return GAR_ERR_FORMAT;
}

static void release_buffer(void *buffer)
{
    gar_buffer_unref(buffer);
}

/* Will views point into this page's bytes? */
static bool needs_buffer(const struct gar_parquet_reader *reader, uint8_t encoding)
{
    const bool is_text =
        reader->column->conversion == PARQUET_TEXT || reader->column->conversion == PARQUET_BYTES;
    if (!is_text && reader->column->physical != GAR_PARQUET_BYTE_ARRAY) {
        return false;
    }
    return encoding == PARQUET_PLAIN || encoding == PARQUET_DELTA_LENGTH_BYTE_ARRAY;
}

/* The page's bytes, decompressed if need be: *out_data, with *out_bytes; state.buffer holds them if views need it. */
static enum gar_status unpack_page(struct gar_parquet_reader *reader,
                                   const struct parquet_page *page, const uint8_t **out_data,
                                   int64_t *out_bytes, struct gar_error *err)
{
    const enum gar_parquet_codec codec = (enum gar_parquet_codec)reader->chunk->codec;
    struct parquet_page_state *const state = &reader->state;
    const bool keeps = needs_buffer(reader, page->encoding);
    const bool is_plain = codec == GAR_PARQUET_NONE || (page->is_v2 && !page->is_compressed);
    *out_bytes = page->uncompressed_bytes;
    if (is_plain) {
        *out_data = page->data;
        if (keeps) {
            GAR_TRY(gar_buffer_new_foreign(page->data, page->bytes, release_buffer, reader->data,
                                           &state->buffer, err));
            (void)gar_buffer_ref(reader->data);
        }
        return GAR_OK;
    }
    struct gar_buffer **const target = keeps ? &state->buffer : &reader->page_buffer;
    if (*target == NULL) {
        GAR_TRY(gar_buffer_new(reader->memory, page->uncompressed_bytes, target, err));
    } else {
        (*target)->size = 0; /* nothing to keep */
        GAR_TRY(gar_buffer_resize(*target, page->uncompressed_bytes, err));
    }
    uint8_t *const out = (*target)->data;
    const int64_t in_bytes = page->bytes - page->level_bytes;
    const int64_t values_bytes = page->uncompressed_bytes - page->level_bytes;
    memcpy(out, page->data, (size_t)page->level_bytes);
    if (in_bytes > 0) {
        const enum gar_status status =
            gar_page_decompress(&reader->scratch->codec, codec, page->data + page->level_bytes,
                                in_bytes, out + page->level_bytes, values_bytes, err);
        if (status < 0) {
            gar_parquet_page_prefix(reader, err);
            return status;
        }
    } else if (values_bytes != 0) {
        return gar_parquet_page_fail(reader, err, "the page has no bytes but should have values");
    }
    *out_data = out;
    return GAR_OK;
}

/* Finds the definition levels in front of a data page's values and moves *data behind them. */
static enum gar_status split_levels(struct gar_parquet_reader *reader,
                                    const struct parquet_page *page, const uint8_t **data,
                                    int64_t *bytes, struct gar_error *err)
{
    struct parquet_page_state *const state = &reader->state;
    state->level_kind = PARQUET_LEVELS_NONE;
    int64_t level_bytes = page->level_bytes;
    if (page->is_v2) {
        if (reader->column->optional) {
            state->level_kind = PARQUET_LEVELS_RLE;
            gar_rle_init(&state->levels, *data, level_bytes, 1);
        }
    } else if (reader->column->optional && page->level_encoding == PARQUET_RLE) {
        const int64_t prefix = 4;
        if (*bytes < prefix || gar_load_u32(*data) > *bytes - prefix) {
            return gar_parquet_page_fail(reader, err, "the page's levels do not fit into it");
        }
        level_bytes = prefix + gar_load_u32(*data);
        state->level_kind = PARQUET_LEVELS_RLE;
        gar_rle_init(&state->levels, *data + prefix, level_bytes - prefix, 1);
    } else if (reader->column->optional) {
        level_bytes = gar_bits_bytes(page->values);
        if (*bytes < level_bytes) {
            return gar_parquet_page_fail(reader, err, "the page's levels do not fit into it");
        }
        state->level_kind = PARQUET_LEVELS_PACKED;
        state->packed_levels = *data;
        state->packed_at = 0;
    }
    *data += level_bytes;
    *bytes -= level_bytes;
    return GAR_OK;
}

static enum gar_status start_codes(struct gar_parquet_reader *reader, const uint8_t *data,
                                   int64_t bytes, struct gar_error *err)
{
    /* A page of nulls alone may leave the width out. */
    const int32_t width = bytes > 0 ? data[0] : 0;
    if (width > CODE_WIDTH_MAX) {
        (void)gar_error_set(err, GAR_ERR_FORMAT, "dictionary codes have %d bits, more than 32",
                            width);
        gar_parquet_page_prefix(reader, err);
        return GAR_ERR_FORMAT;
    }
    gar_rle_init(&reader->state.codes, data + (bytes > 0), bytes - (bytes > 0), width);
    return GAR_OK;
}

static enum gar_status start_delta_texts(struct gar_parquet_reader *reader, bool has_prefixes,
                                         struct gar_error *err)
{
    struct parquet_page_state *const state = &reader->state;
    const uint8_t *at = state->next;
    if (has_prefixes) {
        if (!gar_delta_init(&state->delta, at, state->end - at)) {
            return gar_parquet_page_fail(reader, err, "the prefix lengths are malformed");
        }
        at = gar_delta_end(&state->delta);
        if (at == NULL) {
            return gar_parquet_page_fail(reader, err, "the prefix lengths are cut short");
        }
    }
    if (!gar_delta_init(&state->lengths, at, state->end - at)) {
        return gar_parquet_page_fail(reader, err, "the text lengths are malformed");
    }
    state->next = gar_delta_end(&state->lengths);
    if (state->next == NULL) {
        return gar_parquet_page_fail(reader, err, "the text lengths are cut short");
    }
    reader->last_bytes = 0;
    return GAR_OK;
}

static bool bytes_are_ascii(const uint8_t *p, const uint8_t *end)
{
    uint64_t any = 0;
    for (; end - p >= 64; p += 64) {
        uint64_t here = 0;
        for (int32_t i = 0; i < 64; i += 8) {
            here |= gar_load_u64(p + i);
        }
        any |= here;
    }
    for (; p < end; p++) {
        any |= *p;
    }
    return (any & UINT64_C(0x8080808080808080)) == 0;
}

static enum gar_status start_values(struct gar_parquet_reader *reader, const uint8_t *data,
                                    int64_t bytes, struct gar_error *err)
{
    struct parquet_page_state *const state = &reader->state;
    state->next = data;
    state->end = data + bytes;
    state->bit = 0;
    state->view_buffer = -1;
    const int32_t width = gar_parquet_physical_bytes(
        (enum gar_parquet_physical)reader->column->physical, reader->column->fixed_bytes);
    switch (state->encoding) {
    case PARQUET_PLAIN:
        if (reader->column->conversion == PARQUET_TEXT) {
            state->is_ascii = bytes_are_ascii(data, state->end);
        }
        return GAR_OK;
    case PARQUET_PLAIN_DICTIONARY:
    case PARQUET_RLE_DICTIONARY: return start_codes(reader, data, bytes, err);
    case PARQUET_RLE:
        if (bytes < 4 || gar_load_u32(data) > bytes - 4) {
            return gar_parquet_page_fail(reader, err, "the page's booleans do not fit into it");
        }
        gar_rle_init(&state->codes, data + 4, gar_load_u32(data), 1);
        return GAR_OK;
    case PARQUET_DELTA_BINARY_PACKED:
        if (!gar_delta_init(&state->delta, data, bytes)) {
            return gar_parquet_page_fail(reader, err,
                                         "the header of the delta encoding is malformed");
        }
        return GAR_OK;
    case PARQUET_DELTA_LENGTH_BYTE_ARRAY: return start_delta_texts(reader, false, err);
    case PARQUET_DELTA_BYTE_ARRAY: return start_delta_texts(reader, true, err);
    default: /* PARQUET_BYTE_STREAM_SPLIT: page_list lets no other through */
        if (width == 0 || bytes % width != 0) {
            return gar_parquet_page_fail(reader, err,
                                         "the page's size is no multiple of its values' size");
        }
        state->split_values = bytes / width;
        state->split_at = 0;
        return GAR_OK;
    }
}

enum gar_status gar_parquet_load_page(struct gar_parquet_reader *reader,
                                      const struct parquet_page *page, bool is_dictionary_page,
                                      struct gar_error *err)
{
    struct parquet_page_state *const state = &reader->state;
    reader->place = page->offset;
    gar_buffer_unref(state->buffer);
    *state = (struct parquet_page_state){.encoding = page->encoding, .view_buffer = -1};
    if (page->has_crc && libdeflate_crc32(0, page->data, (size_t)page->bytes) != page->crc) {
        return gar_parquet_page_fail(reader, err,
                                     "the page's checksum (CRC) is wrong: its bytes are damaged");
    }
    const uint8_t *data = NULL;
    int64_t bytes = 0;
    GAR_TRY(unpack_page(reader, page, &data, &bytes, err));
    state->start = state->buffer != NULL ? state->buffer->data : data;
    if (!is_dictionary_page) {
        GAR_TRY(split_levels(reader, page, &data, &bytes, err));
    }
    GAR_TRY(start_values(reader, data, bytes, err));
    state->left = page->values;
    return GAR_OK;
}

/* The dictionary page as a FLAT column. */
static enum gar_status decode_dictionary(struct gar_parquet_reader *reader, struct gar_error *err)
{
    const struct parquet_page *const page = &reader->dictionary_page;
    const int64_t entries = page->values;
    GAR_TRY(gar_parquet_load_page(reader, page, true, err));
    /* Entries need their bytes before they get memory. */
    const int32_t width = gar_parquet_physical_bytes(
        (enum gar_parquet_physical)reader->column->physical, reader->column->fixed_bytes);
    const int64_t entry_bytes =
        reader->column->physical == GAR_PARQUET_BYTE_ARRAY ? 4 : gar_max_i64(width, 1);
    const int64_t free_entries = width == 0 && entry_bytes == 1; /* of length 0 one is enough */
    if (entries > (reader->state.end - reader->state.next) / entry_bytes + free_entries) {
        return gar_parquet_page_fail(reader, err,
                                     "the dictionary has fewer entries than its header says");
    }
    struct gar_buffer *values = NULL;
    GAR_TRY(gar_buffer_new(reader->memory, entries * gar_type_width(reader->column->type), &values,
                           err));
    enum gar_status status = gar_parquet_decode_dense(reader, entries, values->data, 0, err);
    if (status >= 0) {
        struct gar_column_parts parts = {.type = reader->column->type,
                                         .length = entries,
                                         .values = values,
                                         .data = reader->text.buffers,
                                         .data_count = (int32_t)reader->text.count};
        if (!gar_type_is_text(parts.type)) {
            parts.data_count = 0;
        }
        status = gar_column_from_parts(&parts, &reader->dictionary, err);
        if (status >= 0 && parts.data_count > 0) {
            reader->text.count = 0; /* moved into the column */
        }
    }
    if (status < 0) {
        gar_buffer_unref(values);
        return status;
    }
    reader->dictionary_id = gar_dictionary_next_id();
    return gar_parquet_text_reset(reader, err);
}

enum gar_status gar_parquet_need_dictionary(struct gar_parquet_reader *reader,
                                            struct gar_error *err)
{
    if (reader->dictionary != NULL) {
        return GAR_OK;
    }
    /* A DICTIONARY read decodes its dictionary first; a FLAT one in the middle of a page must not lose its place. */
    struct parquet_page_state saved = reader->state;
    struct gar_buffer *const saved_buffer = reader->page_buffer;
    const int64_t saved_page = reader->page;
    const int64_t saved_place = reader->place;
    const bool is_dictionary = reader->is_dictionary;
    reader->state = (struct parquet_page_state){0};
    reader->page_buffer = NULL;
    reader->page = PARQUET_AT_DICTIONARY;
    reader->is_dictionary = false;
    const enum gar_status status = decode_dictionary(reader, err);
    gar_buffer_unref(reader->state.buffer);
    gar_buffer_unref(reader->page_buffer);
    reader->state = saved;
    reader->page_buffer = saved_buffer;
    reader->page = saved_page;
    reader->place = saved_place;
    reader->is_dictionary = is_dictionary;
    return status;
}
