/* SPDX-License-Identifier: Apache-2.0 */
/* One column chunk: dictionary page if it pays, then data pages of version 1 (which every reader knows), each with a checksum.
 *
 * The codec is tried on the first data page: when it saves next to nothing the chunk is stored as it is. */
#include <libdeflate.h>
#include <string.h>

#include "base/bits.h"
#include "formats/parquet/encode_priv.h"

#define PAGE_BYTES_USUAL       (1 << 20)
#define DICTIONARY_BYTES_USUAL (1 << 20)
/* Small pages keep what a selective reader must decompress small. */
#define PAGE_ROWS_MAX 20480
/* A codec that leaves more than this share (in per cent) is not worth its time. */
#define COMPRESSED_SHARE_MAX 97
#define SAMPLE_BYTES_MIN     1024

struct chunk_encode {
    const struct parquet_dense *dense;
    const struct gar_parquet_write_options *options;
    struct page_codec *codec;
    struct gar_memory *memory;
    struct parquet_dictionary dictionary;
    struct parquet_bytes out;    /* the chunk so far */
    struct parquet_bytes page;   /* the page before compression */
    struct parquet_bytes packed; /* after it */
    enum gar_parquet_codec kind;
    bool kind_is_chosen;
    int64_t uncompressed_bytes;
    struct gar_error *err;
};

enum gar_status gar_parquet_plain_append(const struct parquet_dense *dense, int64_t from,
                                         int64_t count, const uint32_t *numbers,
                                         struct parquet_bytes *out, struct gar_error *err)
{
    const uint8_t *const values = dense->values->data;
    const int64_t bytes = dense->storage.bytes;
    uint8_t *to = NULL;
    if (dense->type.id == GAR_BOOL) {
        GAR_TRY(gar_parquet_bytes_room(out, gar_bits_bytes(count), &to, err));
        if (count > 0) {
            to[gar_bits_bytes(count) - 1] = 0;
        }
        gar_bits_copy(to, 0, values, from, count);
        out->buffer->size += gar_bits_bytes(count);
        return GAR_OK;
    }
    if (bytes > 0 && numbers == NULL) {
        return gar_parquet_bytes_append(out, values + from * bytes, count * bytes, err);
    }
    if (bytes > 0) {
        GAR_TRY(gar_parquet_bytes_room(out, count * bytes, &to, err));
        for (int64_t i = 0; i < count; i++) {
            memcpy(to + i * bytes, values + (int64_t)numbers[from + i] * bytes, (size_t)bytes);
        }
        out->buffer->size += count * bytes;
        return GAR_OK;
    }
    const struct parquet_slice *const slices = (const struct parquet_slice *)(const void *)values;
    int64_t total = 0;
    for (int64_t i = 0; i < count; i++) {
        total += 4 + slices[numbers != NULL ? numbers[from + i] : from + i].bytes;
    }
    GAR_TRY(gar_parquet_bytes_room(out, total, &to, err));
    for (int64_t i = 0; i < count; i++) {
        const struct parquet_slice slice = slices[numbers != NULL ? numbers[from + i] : from + i];
        const uint32_t length = (uint32_t)slice.bytes;
        memcpy(to, &length, sizeof length);
        memcpy(to + 4, slice.data, (size_t)slice.bytes);
        to += 4 + slice.bytes;
    }
    out->buffer->size += total;
    return GAR_OK;
}

/* Header of a data page (rows >= 0) or of the dictionary page. */
static void put_header(struct gar_strbuf *out, int64_t uncompressed, int64_t compressed,
                       uint32_t crc, int64_t values, int32_t encoding, bool is_dictionary)
{
    int32_t last = 0;
    int32_t inner = 0;
    gar_thrift_put_i32(out, &last, 1, is_dictionary ? PARQUET_PAGE_DICTIONARY : PARQUET_PAGE_DATA);
    gar_thrift_put_i32(out, &last, 2, (int32_t)uncompressed);
    gar_thrift_put_i32(out, &last, 3, (int32_t)compressed);
    gar_thrift_put_i32(out, &last, 4, (int32_t)crc);
    gar_thrift_put_field(out, &last, is_dictionary ? 7 : 5, THRIFT_STRUCT);
    gar_thrift_put_i32(out, &inner, 1, (int32_t)values);
    gar_thrift_put_i32(out, &inner, 2, encoding);
    if (!is_dictionary) {
        gar_thrift_put_i32(out, &inner, 3, PARQUET_RLE);
        gar_thrift_put_i32(out, &inner, 4, PARQUET_RLE);
    }
    gar_thrift_put_stop(out);
    gar_thrift_put_stop(out);
}

static enum gar_status compress(struct chunk_encode *e, enum gar_parquet_codec kind,
                                struct gar_error *err)
{
    const struct gar_buffer *const page = e->page.buffer;
    const int64_t bound = gar_page_compress_bound(kind, page->size);
    uint8_t *to = NULL;
    if (e->packed.buffer != NULL) {
        e->packed.buffer->size = 0;
    }
    GAR_TRY(gar_parquet_bytes_room(&e->packed, bound, &to, err));
    int64_t bytes = 0;
    GAR_TRY(gar_page_compress(e->codec, kind, e->options->level, page->data, page->size, to, &bytes,
                              err));
    e->packed.buffer->size = bytes;
    return GAR_OK;
}

/* Decides by the page at hand whether the chunk is compressed. */
static enum gar_status choose_codec(struct chunk_encode *e, struct gar_error *err)
{
    e->kind = e->options->codec;
    e->kind_is_chosen = true;
    if (e->kind == GAR_PARQUET_NONE || e->page.buffer->size < SAMPLE_BYTES_MIN) {
        return GAR_OK;
    }
    GAR_TRY(compress(e, e->kind, err));
    if (e->packed.buffer->size * 100 > e->page.buffer->size * COMPRESSED_SHARE_MAX) {
        e->kind = GAR_PARQUET_NONE;
    }
    return GAR_OK;
}

/* Compresses e->page and appends it with its header. */
static enum gar_status append_page(struct chunk_encode *e, int64_t values, int32_t encoding,
                                   bool is_dictionary)
{
    struct gar_error *const err = e->err;
    if (e->page.buffer->size > INT32_MAX) {
        return gar_error_set(err, GAR_ERR_OVERFLOW,
                             "a page of %lld bytes is larger than Parquet allows (2^31 - 1)",
                             (long long)e->page.buffer->size);
    }
    const struct gar_buffer *bytes = e->page.buffer;
    if (e->kind != GAR_PARQUET_NONE) {
        GAR_TRY(compress(e, e->kind, err));
        bytes = e->packed.buffer;
    }
    if (bytes->size > INT32_MAX) {
        return gar_error_set(err, GAR_ERR_OVERFLOW,
                             "a page of %lld bytes is larger than Parquet allows (2^31 - 1)",
                             (long long)bytes->size);
    }
    struct gar_strbuf header = {0};
    put_header(&header, e->page.buffer->size, bytes->size,
               libdeflate_crc32(0, bytes->data, (size_t)bytes->size), values, encoding,
               is_dictionary);
    enum gar_status status = header.failed ? gar_error_nomem(err, header.size) : GAR_OK;
    if (status >= 0) {
        e->uncompressed_bytes += header.size + e->page.buffer->size;
        status = gar_parquet_bytes_append(&e->out, header.data, header.size, err);
    }
    gar_strbuf_destroy(&header);
    if (status >= 0) {
        status = gar_parquet_bytes_append(&e->out, bytes->data, bytes->size, err);
    }
    return status;
}

static enum gar_status clear_page(struct chunk_encode *e)
{
    uint8_t *unused = NULL;
    GAR_TRY(gar_parquet_bytes_room(&e->page, 0, &unused, e->err));
    e->page.buffer->size = 0;
    return GAR_OK;
}

/* Levels and values of rows [row, row + rows), which have dense values [at, at + count). */
static enum gar_status fill_page(struct chunk_encode *e, int64_t row, int64_t rows, int64_t at,
                                 int64_t count)
{
    const struct parquet_dense *const dense = e->dense;
    GAR_TRY(clear_page(e));
    GAR_TRY(gar_levels_append(dense->validity != NULL ? dense->validity->data : NULL, row, rows,
                              &e->page, e->err));
    if (e->dictionary.entries == 0) {
        return dense->type.id == GAR_NULL
                   ? GAR_OK
                   : gar_parquet_plain_append(dense, at, count, NULL, &e->page, e->err);
    }
    const int64_t top = e->dictionary.entries - 1;
    const int32_t width = top <= 1 ? 1 : 64 - gar_clz64((uint64_t)top);
    const uint8_t byte = (uint8_t)width;
    GAR_TRY(gar_parquet_bytes_append(&e->page, &byte, 1, e->err));
    const uint32_t *const codes = (const uint32_t *)(const void *)e->dictionary.codes->data;
    return gar_rle_append(codes + at, count, width, &e->page, e->err);
}

/* How many rows from `row` make a page; their dense values start at `at`. */
static int64_t page_rows(const struct chunk_encode *e, int64_t row, int64_t at)
{
    const struct parquet_dense *const dense = e->dense;
    const int64_t limit = e->options->page_bytes > 0 ? e->options->page_bytes : PAGE_BYTES_USUAL;
    int64_t rows = gar_min_i64(PAGE_ROWS_MAX, dense->rows - row);
    if (e->dictionary.entries > 0 || dense->type.id == GAR_BOOL || dense->type.id == GAR_NULL) {
        return rows;
    }
    if (dense->storage.bytes > 0) {
        return gar_min_i64(rows, gar_max_i64(limit / dense->storage.bytes, 1));
    }
    /* Texts differ: add them up. Every row has at least its length. */
    const struct parquet_slice *const slices =
        (const struct parquet_slice *)(const void *)dense->values->data;
    int64_t bytes = 0;
    for (int64_t i = 0; i < rows; i++) {
        if (dense->validity != NULL && !gar_bit_get(dense->validity->data, row + i)) {
            continue;
        }
        bytes += 4 + slices[at++].bytes;
        if (bytes > limit && i > 0) {
            return i;
        }
    }
    return rows;
}

static enum gar_status encode_pages(struct chunk_encode *e, struct parquet_encoded *out)
{
    const struct parquet_dense *const dense = e->dense;
    const int32_t encoding = e->dictionary.entries > 0 ? PARQUET_RLE_DICTIONARY : PARQUET_PLAIN;
    int64_t row = 0;
    int64_t at = 0;
    while (row < dense->rows) {
        const int64_t rows = page_rows(e, row, at);
        const int64_t count =
            dense->validity == NULL ? rows : gar_bits_count(dense->validity->data, row, rows);
        GAR_TRY(fill_page(e, row, rows, at, count));
        if (!e->kind_is_chosen) {
            GAR_TRY(choose_codec(e, e->err));
            if (e->dictionary.entries > 0) {
                /* The dictionary goes first, with the codec of the chunk; then this page is made again. */
                GAR_TRY(clear_page(e));
                GAR_TRY(gar_parquet_plain_append(
                    dense, 0, e->dictionary.entries,
                    (const uint32_t *)(const void *)e->dictionary.firsts->data, &e->page, e->err));
                GAR_TRY(append_page(e, e->dictionary.entries, PARQUET_PLAIN, true));
                out->has_dictionary = true;
                out->dictionary_bytes = e->out.buffer->size;
                GAR_TRY(fill_page(e, row, rows, at, count));
            }
        }
        GAR_TRY(append_page(e, rows, encoding, false));
        row += rows;
        at += count;
    }
    return GAR_OK;
}

static enum gar_status encode_chunk(struct chunk_encode *e, struct parquet_encoded *out)
{
    const struct gar_parquet_write_options *const options = e->options;
    uint8_t *unused = NULL;
    GAR_TRY(gar_parquet_bytes_room(&e->out, 0, &unused, e->err));
    if (!options->no_dictionary) {
        const int64_t bytes_max = options->dictionary_bytes_max > 0 ? options->dictionary_bytes_max
                                                                    : DICTIONARY_BYTES_USUAL;
        GAR_TRY(
            gar_parquet_dictionary_make(e->dense, bytes_max, e->memory, &e->dictionary, e->err));
    }
    if (!options->no_statistics) {
        const uint32_t *const firsts =
            e->dictionary.entries > 0 ? (const uint32_t *)(const void *)e->dictionary.firsts->data
                                      : NULL;
        GAR_TRY(gar_parquet_statistics_make(e->dense, firsts, e->dictionary.entries,
                                            &out->statistics, e->err));
    }
    return encode_pages(e, out);
}

enum gar_status gar_parquet_column_encode(const struct parquet_dense *dense,
                                          const struct gar_parquet_write_options *options,
                                          struct page_codec *codec, struct gar_memory *memory,
                                          struct parquet_encoded *out, struct gar_error *err)
{
    *out =
        (struct parquet_encoded){.values = dense->rows, .null_count = dense->rows - dense->count};
    struct chunk_encode e = {
        .dense = dense, .options = options, .codec = codec, .memory = memory, .err = err};
    e.out.memory = memory;
    e.page.memory = memory;
    e.packed.memory = memory;
    const enum gar_status status = encode_chunk(&e, out);
    gar_parquet_dictionary_destroy(&e.dictionary);
    gar_buffer_unref(e.page.buffer);
    gar_buffer_unref(e.packed.buffer);
    if (status < 0) {
        gar_buffer_unref(e.out.buffer);
        gar_parquet_encoded_destroy(out);
        return status;
    }
    out->bytes = e.out.buffer;
    out->uncompressed_bytes = e.uncompressed_bytes;
    out->codec = e.kind;
    return GAR_OK;
}

void gar_parquet_encoded_destroy(struct parquet_encoded *encoded)
{
    gar_buffer_unref(encoded->bytes);
    gar_parquet_statistics_destroy(&encoded->statistics);
    *encoded = (struct parquet_encoded){0};
}
