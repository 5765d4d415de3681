/* SPDX-License-Identifier: Apache-2.0 */
/* Column chunks made page by page: encodings and page kinds that the writer does not write, and each way in which a
 * page can lie. */
#include <lz4.h>
#include <zlib.h>
#include <zstd.h>

#include "formats/parquet/page_codec_priv.h"
#include "formats/parquet/parquet_test_priv.h"

/* One column, one row group. */
struct maker {
    int32_t physical;
    int32_t fixed_bytes;
    int32_t logical; /* 0: none */
    int32_t codec;
    bool optional;
    int64_t rows;
    int64_t values; /* -1: rows */
    struct gar_strbuf chunk;
    int64_t dictionary_bytes;
};

static void put_page(struct maker *m, int32_t kind, int32_t values, int32_t encoding,
                     int32_t level_encoding, const void *data, int64_t bytes, int64_t uncompressed)
{
    struct gar_strbuf *const out = &m->chunk;
    int32_t last = 0;
    int32_t inner = 0;
    gar_thrift_put_i32(out, &last, 1, kind);
    gar_thrift_put_i32(out, &last, 2, (int32_t)uncompressed);
    gar_thrift_put_i32(out, &last, 3, (int32_t)bytes);
    gar_thrift_put_field(out, &last, kind == PARQUET_PAGE_DICTIONARY ? 7 : 5, THRIFT_STRUCT);
    gar_thrift_put_i32(out, &inner, 1, values);
    gar_thrift_put_i32(out, &inner, 2, encoding);
    if (kind == PARQUET_PAGE_DICTIONARY) {
        gar_thrift_put_bool(out, &inner, 3, false);
    } else {
        gar_thrift_put_i32(out, &inner, 3, level_encoding);
        gar_thrift_put_i32(out, &inner, 4, PARQUET_RLE);
    }
    gar_thrift_put_stop(out);
    gar_thrift_put_stop(out);
    gar_strbuf_append_n(out, data, bytes);
    if (kind == PARQUET_PAGE_DICTIONARY) {
        m->dictionary_bytes = out->size;
    }
}

static void put_v2(struct maker *m, int32_t values, int32_t nulls, int32_t rows, int32_t encoding,
                   int32_t level_bytes, int32_t repetition_bytes, bool is_compressed,
                   const void *data, int64_t bytes, int64_t uncompressed)
{
    struct gar_strbuf *const out = &m->chunk;
    int32_t last = 0;
    int32_t inner = 0;
    gar_thrift_put_i32(out, &last, 1, PARQUET_PAGE_DATA_V2);
    gar_thrift_put_i32(out, &last, 2, (int32_t)uncompressed);
    gar_thrift_put_i32(out, &last, 3, (int32_t)bytes);
    gar_thrift_put_field(out, &last, 8, THRIFT_STRUCT);
    gar_thrift_put_i32(out, &inner, 1, values);
    gar_thrift_put_i32(out, &inner, 2, nulls);
    gar_thrift_put_i32(out, &inner, 3, rows);
    gar_thrift_put_i32(out, &inner, 4, encoding);
    gar_thrift_put_i32(out, &inner, 5, level_bytes);
    gar_thrift_put_i32(out, &inner, 6, repetition_bytes);
    gar_thrift_put_bool(out, &inner, 7, is_compressed);
    gar_thrift_put_stop(out);
    gar_thrift_put_stop(out);
    gar_strbuf_append_n(out, data, bytes);
}

static void put_schema(struct gar_strbuf *out, int32_t *last, const struct maker *m)
{
    int32_t inner = 0;
    gar_thrift_put_list(out, last, 2, THRIFT_STRUCT, 2);
    gar_thrift_put_binary(out, &inner, 4, "schema", 6);
    gar_thrift_put_i32(out, &inner, 5, 1);
    gar_thrift_put_stop(out);
    inner = 0;
    gar_thrift_put_i32(out, &inner, 1, m->physical);
    gar_thrift_put_i32(out, &inner, 2, m->fixed_bytes);
    gar_thrift_put_i32(out, &inner, 3, m->optional ? PARQUET_OPTIONAL : PARQUET_REQUIRED);
    gar_thrift_put_binary(out, &inner, 4, "x", 1);
    if (m->logical != 0) {
        int32_t deep = 0;
        gar_thrift_put_field(out, &inner, 10, THRIFT_STRUCT);
        gar_thrift_put_field(out, &deep, m->logical, THRIFT_STRUCT);
        gar_thrift_put_stop(out);
        gar_thrift_put_stop(out);
    }
    gar_thrift_put_stop(out);
}

/* The whole file; the maker's chunk is given away. */
static struct bytes make_file(struct maker *m)
{
    struct gar_strbuf out = {0};
    gar_strbuf_append(&out, "PAR1");
    gar_strbuf_append_n(&out, gar_strbuf_text(&m->chunk), m->chunk.size);
    const int64_t start = out.size;
    int32_t last = 0;
    int32_t inner = 0;
    gar_thrift_put_i32(&out, &last, 1, 1);
    put_schema(&out, &last, m);
    gar_thrift_put_i64(&out, &last, 3, m->rows);
    gar_thrift_put_list(&out, &last, 4, THRIFT_STRUCT, 1);
    gar_thrift_put_list(&out, &inner, 1, THRIFT_STRUCT, 1);
    int32_t chunk = 0;
    int32_t meta = 0;
    gar_thrift_put_i64(&out, &chunk, 2, 4);
    gar_thrift_put_field(&out, &chunk, 3, THRIFT_STRUCT);
    gar_thrift_put_i32(&out, &meta, 1, m->physical);
    gar_thrift_put_list(&out, &meta, 2, THRIFT_I32, 1);
    gar_thrift_put_zigzag(&out, PARQUET_PLAIN);
    gar_thrift_put_list(&out, &meta, 3, THRIFT_BINARY, 1);
    gar_thrift_put_text(&out, "x", 1);
    gar_thrift_put_i32(&out, &meta, 4, m->codec);
    gar_thrift_put_i64(&out, &meta, 5, m->values < 0 ? m->rows : m->values);
    gar_thrift_put_i64(&out, &meta, 6, m->chunk.size);
    gar_thrift_put_i64(&out, &meta, 7, m->chunk.size);
    gar_thrift_put_i64(&out, &meta, 9, 4 + m->dictionary_bytes);
    if (m->dictionary_bytes > 0) {
        gar_thrift_put_i64(&out, &meta, 11, 4);
    }
    gar_thrift_put_stop(&out);
    gar_thrift_put_stop(&out);
    gar_thrift_put_i64(&out, &inner, 2, m->chunk.size);
    gar_thrift_put_i64(&out, &inner, 3, m->rows);
    gar_thrift_put_stop(&out);
    gar_thrift_put_stop(&out);
    const uint32_t bytes = (uint32_t)(out.size - start);
    gar_strbuf_append_n(&out, (const char *)&bytes, 4);
    gar_strbuf_append(&out, "PAR1");
    assert_false(out.failed);
    const struct bytes b = bytes_copy(out.data, out.size);
    gar_strbuf_destroy(&out);
    gar_strbuf_destroy(&m->chunk);
    return b;
}

/* All rows as "a|b|null", in one read, row by row, and by selection; all must agree. */
static enum gar_status read_text(struct maker *m, struct gar_strbuf *out, struct gar_error *err)
{
    const struct bytes b = make_file(m);
    struct gar_parquet_file *file = NULL;
    struct gar_strbuf again = {0};
    enum gar_status status = parse_file(b, &file, err);
    for (int32_t pass = 0; pass < 3 && status >= 0; pass++) {
        struct gar_strbuf *const to = pass == 0 ? out : &again;
        struct gar_parquet_reader *reader = NULL;
        gar_strbuf_clear(&again);
        status = open_chunk(b, file, 0, 0, pass == 1, &reader, err);
        while (status >= 0 && gar_parquet_reader_left(reader) > 0) {
            struct gar_column *column = NULL;
            const int64_t left = gar_parquet_reader_left(reader);
            uint32_t selection[2] = {0, 1};
            if (pass == 2) {
                const int64_t n = gar_min_i64(left, 3);
                /* Rows 0 and 1 of three, then the third alone. */
                status = gar_parquet_reader_read_selected(reader, gar_min_i64(n, 2), selection,
                                                          gar_min_i64(n, 2), &column, err);
            } else {
                status = gar_parquet_reader_read(reader, pass == 0 ? left : 1, &column, err);
            }
            for (int64_t i = 0; status >= 0 && i < column->length; i++) {
                char text[256];
                text_of(column, i, text, sizeof text);
                gar_strbuf_printf(to, "%s%s", to->size > 0 ? "|" : "", text);
            }
            if (status >= 0) {
                assert_int_equal(gar_column_validate(column, err), GAR_OK);
            }
            gar_column_unref(column);
        }
        gar_parquet_reader_free(reader);
        if (status >= 0 && pass > 0) {
            assert_string_equal(gar_strbuf_text(out), gar_strbuf_text(&again));
        }
    }
    gar_strbuf_destroy(&again);
    gar_parquet_file_unref(file);
    free(b.data);
    return status;
}

static void expect(struct maker *m, const char *want)
{
    struct gar_strbuf out = {0};
    struct gar_error err = GAR_ERROR_INIT;
    const enum gar_status status = read_text(m, &out, &err);
    if (status < 0) {
        print_error("%s\n", err.message);
    }
    assert_int_equal(status, GAR_OK);
    assert_string_equal(gar_strbuf_text(&out), want);
    gar_strbuf_destroy(&out);
}

static void expect_error(struct maker *m, const char *want)
{
    struct gar_strbuf out = {0};
    struct gar_error err = GAR_ERROR_INIT;
    assert_true(read_text(m, &out, &err) < 0);
    if (strstr(err.message, want) == NULL) {
        print_error("got: %s\nwant: %s\n", err.message, want);
    }
    assert_non_null(strstr(err.message, want));
    assert_non_null(strstr(err.message, "column 'x'"));
    assert_non_null(strstr(err.message, "row group 0"));
    gar_strbuf_destroy(&out);
}

static void plain(struct maker *m, int32_t values, const void *data, int64_t bytes)
{
    put_page(m, PARQUET_PAGE_DATA, values, PARQUET_PLAIN, PARQUET_RLE, data, bytes, bytes);
}

static void test_plain_types(void **state)
{
    (void)state;
    const int32_t ints[] = {1, -2, INT32_MAX};
    struct maker m = {.physical = GAR_PARQUET_INT32, .rows = 3, .values = -1};
    plain(&m, 3, ints, sizeof ints);
    expect(&m, "1|-2|2147483647");
    /* Two pages, the second one empty, then one more. */
    m = (struct maker){.physical = GAR_PARQUET_INT32, .rows = 3, .values = -1};
    plain(&m, 2, ints, 8);
    plain(&m, 0, ints, 0);
    plain(&m, 1, ints + 2, 4);
    expect(&m, "1|-2|2147483647");
    static const uint8_t bits[] = {0x05};
    m = (struct maker){.physical = GAR_PARQUET_BOOLEAN, .rows = 4, .values = -1};
    plain(&m, 4, bits, 1);
    expect(&m, "true|false|true|false");
    static const char texts[] = "\x01\0\0\0a\0\0\0\0\x0d\0\0\0thirteen byte\x02\0\0\0\xc3\xbc";
    m = (struct maker){.physical = GAR_PARQUET_BYTE_ARRAY,
                       .logical = PARQUET_LOGICAL_STRING,
                       .rows = 4,
                       .values = -1};
    plain(&m, 4, texts, sizeof texts - 1);
    expect(&m, "'a'|''|'thirteen byte'|'\xc3\xbc'");
    m = (struct maker){.physical = GAR_PARQUET_FIXED, .fixed_bytes = 3, .rows = 2, .values = -1};
    plain(&m, 2, "abcdef", 6);
    expect(&m, "x'616263'|x'646566'");
    m = (struct maker){.physical = GAR_PARQUET_FIXED, .fixed_bytes = 0, .rows = 2, .values = -1};
    plain(&m, 2, "", 0);
    expect(&m, "x''|x''");
    m = (struct maker){.physical = GAR_PARQUET_FIXED,
                       .fixed_bytes = 2,
                       .logical = PARQUET_LOGICAL_FLOAT16,
                       .rows = 2,
                       .values = -1};
    plain(&m, 2, "\x00\x3c\x00\xc0", 4);
    expect(&m, "1.0|-2.0");
}

static void test_levels(void **state)
{
    (void)state;
    const int64_t longs[] = {10, 20, 30};
    uint8_t page[64];
    /* RLE levels: packed bits 1 0 1 1 0 (one group of eight). */
    struct maker m = {.physical = GAR_PARQUET_INT64, .optional = true, .rows = 5, .values = -1};
    const uint32_t length = 2;
    memcpy(page, &length, 4);
    page[4] = 0x03;
    page[5] = 0x0d;
    memcpy(page + 6, longs, 24);
    plain(&m, 5, page, 30);
    expect(&m, "10|null|20|30|null");
    /* The old packed levels: most significant bit first, no length. */
    m = (struct maker){.physical = GAR_PARQUET_INT64, .optional = true, .rows = 5, .values = -1};
    page[0] = 0xb0;
    memcpy(page + 1, longs, 24);
    put_page(&m, PARQUET_PAGE_DATA, 5, PARQUET_PLAIN, PARQUET_BIT_PACKED, page, 25, 25);
    expect(&m, "10|null|20|30|null");
    /* Version 2: levels in front, no length. */
    m = (struct maker){.physical = GAR_PARQUET_INT64, .optional = true, .rows = 5, .values = -1};
    page[0] = 0x03;
    page[1] = 0x0d;
    memcpy(page + 2, longs, 24);
    put_v2(&m, 5, 2, 5, PARQUET_PLAIN, 2, 0, false, page, 26, 26);
    expect(&m, "10|null|20|30|null");
    /* Nothing but nulls: no values, and no bytes to decompress. */
    m = (struct maker){.physical = GAR_PARQUET_INT64,
                       .optional = true,
                       .rows = 3,
                       .values = -1,
                       .codec = GAR_PARQUET_SNAPPY};
    page[0] = 0x06;
    page[1] = 0x00;
    put_v2(&m, 3, 3, 3, PARQUET_PLAIN, 2, 0, true, page, 2, 2);
    expect(&m, "null|null|null");
}

static void test_dictionary(void **state)
{
    (void)state;
    static const char entries[] = "\x03\0\0\0one\x10\0\0\0sixteen letters!";
    /* Width 1, a packed group. */
    static const uint8_t codes[] = {0x01, 0x03, 0x36};
    struct maker m = {.physical = GAR_PARQUET_BYTE_ARRAY,
                      .logical = PARQUET_LOGICAL_STRING,
                      .rows = 6,
                      .values = -1};
    put_page(&m, PARQUET_PAGE_DICTIONARY, 2, PARQUET_PLAIN_DICTIONARY, 0, entries,
             sizeof entries - 1, sizeof entries - 1);
    put_page(&m, PARQUET_PAGE_DATA, 6, PARQUET_RLE_DICTIONARY, PARQUET_RLE, codes, sizeof codes,
             sizeof codes);
    expect(
        &m,
        "'one'|'sixteen letters!'|'sixteen letters!'|'one'|'sixteen letters!'|'sixteen letters!'");
    /* Mixed with a plain page: FLAT. */
    m = (struct maker){.physical = GAR_PARQUET_BYTE_ARRAY,
                       .logical = PARQUET_LOGICAL_STRING,
                       .rows = 7,
                       .values = -1};
    put_page(&m, PARQUET_PAGE_DICTIONARY, 2, PARQUET_PLAIN, 0, entries, sizeof entries - 1,
             sizeof entries - 1);
    put_page(&m, PARQUET_PAGE_DATA, 6, PARQUET_PLAIN_DICTIONARY, PARQUET_RLE, codes, sizeof codes,
             sizeof codes);
    static const char more[] = "\x0e\0\0\0fourteen bytes";
    plain(&m, 1, more, sizeof more - 1);
    expect(&m, "'one'|'sixteen letters!'|'sixteen letters!'|'one'|'sixteen letters!'|'sixteen "
               "letters!'|'fourteen bytes'");
    /* Width 0: one entry, no bytes for codes. */
    static const uint8_t zero_width[] = {0x00, 0x08};
    const int32_t seven = 7;
    m = (struct maker){.physical = GAR_PARQUET_INT32, .rows = 4, .values = -1};
    put_page(&m, PARQUET_PAGE_DICTIONARY, 1, PARQUET_PLAIN, 0, &seven, 4, 4);
    put_page(&m, PARQUET_PAGE_DATA, 4, PARQUET_RLE_DICTIONARY, PARQUET_RLE, zero_width, 2, 2);
    expect(&m, "7|7|7|7");
}

static void test_delta_texts(void **state)
{
    (void)state;
    /* Lengths 3, 0, 14: header 128 4 3 zigzag(3), block: min -3, widths 5 0 0 0, deltas 0 and 17. */
    static const uint8_t lengths[] = {0x80, 0x01, 0x04, 0x03, 0x06, 0x05, 5, 0, 0, 0,
                                      0x20, 0x02, 0,    0,    0,    0,    0, 0, 0, 0,
                                      0,    0,    0,    0,    0,    0,    0, 0, 0, 0};
    uint8_t page[128];
    memcpy(page, lengths, sizeof lengths);
    memcpy(page + sizeof lengths, "abcfourteen bytes", 17);
    struct maker m = {.physical = GAR_PARQUET_BYTE_ARRAY,
                      .logical = PARQUET_LOGICAL_STRING,
                      .rows = 3,
                      .values = -1};
    put_page(&m, PARQUET_PAGE_DATA, 3, PARQUET_DELTA_LENGTH_BYTE_ARRAY, PARQUET_RLE, page,
             sizeof lengths + 17, sizeof lengths + 17);
    expect(&m, "'abc'|''|'fourteen bytes'");
    /* Prefixes 0, 2, 3 and suffixes "axis", "le", "babble": the example of the specification's kind. Constant steps need no
     * bits: prefixes 0 2 4 (min delta 2), suffix lengths 4 2 0 (min delta -2). */
    static const uint8_t steps[] = {0x80, 0x01, 0x04, 0x03, 0x00, 0x04, 0, 0, 0, 0,
                                    0x80, 0x01, 0x04, 0x03, 0x08, 0x03, 0, 0, 0, 0};
    memcpy(page, steps, sizeof steps);
    memcpy(page + sizeof steps, "axisle", 6);
    m = (struct maker){.physical = GAR_PARQUET_BYTE_ARRAY,
                       .logical = PARQUET_LOGICAL_STRING,
                       .rows = 3,
                       .values = -1};
    put_page(&m, PARQUET_PAGE_DATA, 3, PARQUET_DELTA_BYTE_ARRAY, PARQUET_RLE, page,
             sizeof steps + 6, sizeof steps + 6);
    expect(&m, "'axis'|'axle'|'axle'");
    /* The same as fixed-length values of four bytes. */
    m = (struct maker){.physical = GAR_PARQUET_FIXED, .fixed_bytes = 4, .rows = 3, .values = -1};
    put_page(&m, PARQUET_PAGE_DATA, 3, PARQUET_DELTA_BYTE_ARRAY, PARQUET_RLE, page,
             sizeof steps + 6, sizeof steps + 6);
    expect(&m, "x'61786973'|x'61786c65'|x'61786c65'");
    /* A prefix longer than the text before: 0 2 4 with texts of 1 byte. */
    static const uint8_t greedy[] = {0x80, 0x01, 0x04, 0x03, 0x00, 0x04, 0, 0, 0, 0,
                                     0x80, 0x01, 0x04, 0x03, 0x02, 0x00, 0, 0, 0, 0};
    memcpy(page, greedy, sizeof greedy);
    memcpy(page + sizeof greedy, "abc", 3);
    m = (struct maker){.physical = GAR_PARQUET_BYTE_ARRAY, .rows = 3, .values = -1};
    put_page(&m, PARQUET_PAGE_DATA, 3, PARQUET_DELTA_BYTE_ARRAY, PARQUET_RLE, page,
             sizeof greedy + 3, sizeof greedy + 3);
    expect_error(&m, "shares more bytes");
}

static void test_delta_bomb(void **state)
{
    (void)state;
    /* A first text of 1 MiB, then a million texts that share all of it and add one byte each: some bytes that ask for
     * a terabyte. */
    const int64_t first = 1 << 20;
    struct gar_strbuf page = {0};
    static const uint8_t prefixes[] = {0x80, 0x01, 0x04, 0xc1, 0x84, 0x3d, 0x00};
    gar_strbuf_append_n(&page, (const char *)prefixes, sizeof prefixes);
    /* Block one: deltas 2^20, then 1, 1, ...: min delta 1, the first in 21 bits. */
    gar_strbuf_append_n(&page, "\x02\x15\x00\x00\x00", 5);
    uint8_t packed[84] = {0};
    const uint32_t jump = (uint32_t)first - 1;
    memcpy(packed, &jump, 4);
    gar_strbuf_append_n(&page, (const char *)packed, sizeof packed);
    for (int64_t i = 128; i < 1000000; i += 128) {
        gar_strbuf_append_n(&page, "\x02\x00\x00\x00\x00", 5);
    }
    static const uint8_t lengths[] = {0x80, 0x01, 0x04, 0xc1, 0x84, 0x3d, 0x80, 0x80, 0x80, 0x01};
    gar_strbuf_append_n(&page, (const char *)lengths, sizeof lengths);
    /* Deltas 1 - 2^20, then 0. */
    gar_strbuf_append_n(&page, "\xfd\xff\x7f\x15\x00\x00\x00", 7);
    memset(packed, 0xff, sizeof packed);
    const uint32_t mask = (uint32_t)first - 1;
    memset(packed, 0, sizeof packed);
    for (int64_t i = 1; i < 32; i++) {
        for (int32_t k = 0; k < 21; k++) {
            gar_bit_put(packed, i * 21 + k, (mask >> k) & 1);
        }
    }
    gar_strbuf_append_n(&page, (const char *)packed, sizeof packed);
    for (int64_t i = 128; i < 1000000; i += 128) {
        gar_strbuf_append_n(&page, "\x00\x00\x00\x00\x00", 5);
    }
    gar_strbuf_append_fill(&page, 'a', first + 1000000);
    struct maker m = {.physical = GAR_PARQUET_BYTE_ARRAY, .rows = 1000001, .values = -1};
    put_page(&m, PARQUET_PAGE_DATA, 1000001, PARQUET_DELTA_BYTE_ARRAY, PARQUET_RLE, page.data,
             page.size, page.size);
    gar_strbuf_destroy(&page);
    struct gar_strbuf out = {0};
    struct gar_error err = GAR_ERROR_INIT;
    assert_true(read_text(&m, &out, &err) < 0);
    gar_strbuf_destroy(&out);
}

static void test_byte_stream_split(void **state)
{
    (void)state;
    const float values[] = {1.5F, -2.0F, 1e10F};
    uint8_t page[12];
    for (int32_t i = 0; i < 12; i++) {
        page[i % 4 * 3 + i / 4] = ((const uint8_t *)values)[i];
    }
    struct maker m = {.physical = GAR_PARQUET_FLOAT, .rows = 3, .values = -1};
    put_page(&m, PARQUET_PAGE_DATA, 3, PARQUET_BYTE_STREAM_SPLIT, PARQUET_RLE, page, 12, 12);
    expect(&m, "1.5|-2.0|10000000000.0");
    m = (struct maker){.physical = GAR_PARQUET_FIXED, .fixed_bytes = 13, .rows = 2, .values = -1};
    put_page(&m, PARQUET_PAGE_DATA, 2, PARQUET_BYTE_STREAM_SPLIT, PARQUET_RLE,
             "aAbBcCdDeEfFgGhHiIjJkKlLmM", 26, 26);
    expect(&m, "x'6162636465666768696a6b6c6d'|x'4142434445464748494a4b4c4d'");
    m = (struct maker){.physical = GAR_PARQUET_FLOAT, .rows = 3, .values = -1};
    put_page(&m, PARQUET_PAGE_DATA, 3, PARQUET_BYTE_STREAM_SPLIT, PARQUET_RLE, page, 11, 11);
    expect_error(&m, "no multiple");
}

static void test_codecs(void **state)
{
    (void)state;
    const int32_t values[] = {5, 6, 7, 8};
    /* Two gzip members behind each other. */
    uint8_t packed[256];
    int64_t used = 0;
    for (int32_t half = 0; half < 2; half++) {
        z_stream z = {.next_out = packed + used, .avail_out = (uInt)(sizeof packed - (size_t)used)};
        assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
        uint8_t copy[8];
        memcpy(copy, (const uint8_t *)values + 8 * half, 8);
        z.next_in = copy;
        z.avail_in = 8;
        assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
        used += (int64_t)z.total_out;
        (void)deflateEnd(&z);
    }
    struct maker m = {
        .physical = GAR_PARQUET_INT32, .rows = 4, .values = -1, .codec = GAR_PARQUET_GZIP};
    put_page(&m, PARQUET_PAGE_DATA, 4, PARQUET_PLAIN, PARQUET_RLE, packed, used, 16);
    expect(&m, "5|6|7|8");
    /* Hadoop's LZ4 frames, two of them; and a bare block under the same name. */
    used = 0;
    for (int32_t half = 0; half < 2; half++) {
        const int32_t bytes =
            LZ4_compress_default((const char *)values + 8 * half, (char *)packed + used + 8, 8, 64);
        const uint32_t head[2] = {__builtin_bswap32(8), __builtin_bswap32((uint32_t)bytes)};
        memcpy(packed + used, head, 8);
        used += 8 + bytes;
    }
    m = (struct maker){
        .physical = GAR_PARQUET_INT32, .rows = 4, .values = -1, .codec = GAR_PARQUET_LZ4_HADOOP};
    put_page(&m, PARQUET_PAGE_DATA, 4, PARQUET_PLAIN, PARQUET_RLE, packed, used, 16);
    expect(&m, "5|6|7|8");
    used = LZ4_compress_default((const char *)values, (char *)packed, 16, 200);
    m = (struct maker){
        .physical = GAR_PARQUET_INT32, .rows = 4, .values = -1, .codec = GAR_PARQUET_LZ4_HADOOP};
    put_page(&m, PARQUET_PAGE_DATA, 4, PARQUET_PLAIN, PARQUET_RLE, packed, used, 16);
    expect(&m, "5|6|7|8");
    m = (struct maker){
        .physical = GAR_PARQUET_INT32, .rows = 4, .values = -1, .codec = GAR_PARQUET_LZO};
    plain(&m, 4, values, 16);
    struct gar_strbuf out = {0};
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(read_text(&m, &out, &err), GAR_ERR_UNSUPPORTED);
    /* A declared size that the codec does not give, in each codec. */
    static const enum gar_parquet_codec codecs[] = {GAR_PARQUET_SNAPPY, GAR_PARQUET_GZIP,
                                                    GAR_PARQUET_BROTLI, GAR_PARQUET_ZSTD,
                                                    GAR_PARQUET_LZ4_RAW};
    struct page_codec codec = {0};
    for (int64_t i = 0; i < GAR_COUNT_OF(codecs); i++) {
        uint8_t buffer[1024];
        int64_t bytes = 0;
        assert_int_equal(gar_page_compress(&codec, codecs[i], 0, (const uint8_t *)values, 16,
                                           buffer, &bytes, NULL),
                         GAR_OK);
        for (int64_t wrong = -1; wrong <= 1; wrong++) {
            m = (struct maker){.physical = GAR_PARQUET_INT32,
                               .rows = 4,
                               .values = -1,
                               .codec = (int32_t)codecs[i]};
            put_page(&m, PARQUET_PAGE_DATA, 4, PARQUET_PLAIN, PARQUET_RLE, buffer, bytes,
                     16 + 4 * wrong);
            if (wrong == 0) {
                expect(&m, "5|6|7|8");
            } else {
                expect_error(&m, "page 0 at offset 4");
            }
        }
    }
    gar_page_codec_destroy(&codec);
}

static void test_bombs(void **state)
{
    (void)state;
    /* One byte that is said to be 2 GiB. */
    static const enum gar_parquet_codec codecs[] = {GAR_PARQUET_NONE,       GAR_PARQUET_SNAPPY,
                                                    GAR_PARQUET_GZIP,       GAR_PARQUET_LZ4_RAW,
                                                    GAR_PARQUET_LZ4_HADOOP, GAR_PARQUET_ZSTD};
    for (int64_t i = 0; i < GAR_COUNT_OF(codecs); i++) {
        struct maker m = {
            .physical = GAR_PARQUET_INT32, .rows = 4, .values = -1, .codec = (int32_t)codecs[i]};
        put_page(&m, PARQUET_PAGE_DATA, 4, PARQUET_PLAIN, PARQUET_RLE, "x", 1, INT32_MAX);
        expect_error(&m, "cannot both be right");
    }
}

static void test_lying_pages(void **state)
{
    (void)state;
    const int32_t values[] = {1, 2, 3, 4};
    struct maker m = {.physical = GAR_PARQUET_INT32, .rows = 4, .values = -1};
    plain(&m, 4, values, 12);
    expect_error(&m, "fewer values");
    m = (struct maker){.physical = GAR_PARQUET_INT32, .rows = 4, .values = -1};
    plain(&m, 3, values, 12);
    expect_error(&m, "its pages hold 3 values, the footer says 4");
    m = (struct maker){.physical = GAR_PARQUET_INT32, .rows = 4, .values = -1};
    plain(&m, 5, values, 16);
    expect_error(&m, "more values than the footer");
    m = (struct maker){.physical = GAR_PARQUET_INT32, .rows = 4, .values = 3};
    plain(&m, 3, values, 12);
    expect_error(&m, "it has 3 values, its row group 4 rows");
    m = (struct maker){.physical = GAR_PARQUET_INT32, .rows = 4, .values = -1};
    put_page(&m, PARQUET_PAGE_DATA, -4, PARQUET_PLAIN, PARQUET_RLE, values, 16, 16);
    expect_error(&m, "negative number of values");
    m = (struct maker){.physical = GAR_PARQUET_INT32, .rows = 4, .values = -1};
    put_page(&m, PARQUET_PAGE_DATA, 4, PARQUET_PLAIN, PARQUET_RLE, values, 16, -16);
    expect_error(&m, "negative size");
    m = (struct maker){.physical = GAR_PARQUET_INT32, .rows = 4, .values = -1};
    put_page(&m, PARQUET_PAGE_DATA, 4, PARQUET_RLE_DICTIONARY, PARQUET_RLE, values, 16, 16);
    expect_error(&m, "needs a dictionary");
    m = (struct maker){.physical = GAR_PARQUET_INT32, .rows = 4, .values = -1};
    put_page(&m, PARQUET_PAGE_DATA, 4, PARQUET_DELTA_BYTE_ARRAY, PARQUET_RLE, values, 16, 16);
    expect_error(&m, "INT32 in encoding DELTA_BYTE_ARRAY");
    /* A code beyond the dictionary; a code of 40 bits; a dictionary of more entries than bytes. */
    static const uint8_t code[] = {0x02, 0x08, 0x03};
    m = (struct maker){.physical = GAR_PARQUET_INT32, .rows = 4, .values = -1};
    put_page(&m, PARQUET_PAGE_DICTIONARY, 3, PARQUET_PLAIN, 0, values, 12, 12);
    put_page(&m, PARQUET_PAGE_DATA, 4, PARQUET_RLE_DICTIONARY, PARQUET_RLE, code, 3, 3);
    expect_error(&m, "dictionary code 3 is beyond the 3 entries");
    m = (struct maker){.physical = GAR_PARQUET_INT32, .rows = 4, .values = -1};
    put_page(&m, PARQUET_PAGE_DICTIONARY, 3, PARQUET_PLAIN, 0, values, 12, 12);
    put_page(&m, PARQUET_PAGE_DATA, 4, PARQUET_RLE_DICTIONARY, PARQUET_RLE, "\x28\x08\x03", 3, 3);
    expect_error(&m, "40 bits");
    m = (struct maker){.physical = GAR_PARQUET_INT32, .rows = 4, .values = -1};
    put_page(&m, PARQUET_PAGE_DICTIONARY, 2000000000, PARQUET_PLAIN, 0, values, 12, 12);
    put_page(&m, PARQUET_PAGE_DATA, 4, PARQUET_RLE_DICTIONARY, PARQUET_RLE, code, 3, 3);
    expect_error(&m, "dictionary page at offset 4: the dictionary has fewer entries");
    /* Levels of version 2 that do not fit, and whose sum wraps. */
    m = (struct maker){.physical = GAR_PARQUET_INT32, .optional = true, .rows = 4, .values = -1};
    put_v2(&m, 4, 0, 4, PARQUET_PLAIN, 20, 0, false, values, 16, 16);
    expect_error(&m, "levels do not fit");
    m = (struct maker){.physical = GAR_PARQUET_INT32, .optional = true, .rows = 4, .values = -1};
    put_v2(&m, 4, 0, 4, PARQUET_PLAIN, INT32_MAX, INT32_MAX, false, values, 16, 16);
    expect_error(&m, "levels do not fit");
    m = (struct maker){.physical = GAR_PARQUET_INT32, .rows = 4, .values = -1};
    put_v2(&m, 4, 1, 4, PARQUET_PLAIN, 0, 0, false, values, 16, 16);
    expect_error(&m, "nulls where there can be none");
    m = (struct maker){.physical = GAR_PARQUET_INT32, .optional = true, .rows = 4, .values = -1};
    plain(&m, 4, "\xff\xff\xff\x7f", 4);
    expect_error(&m, "levels do not fit");
    m = (struct maker){.physical = GAR_PARQUET_INT32, .optional = true, .rows = 4, .values = -1};
    plain(&m, 4, "\x02\0\0\0\x04\x01", 6);
    expect_error(&m, "fewer levels");
}

static void test_lying_texts(void **state)
{
    (void)state;
    struct maker m = {.physical = GAR_PARQUET_BYTE_ARRAY, .rows = 1, .values = -1};
    plain(&m, 1, "\x05\0\0\0abcd", 8);
    expect_error(&m, "fewer bytes than its texts need");
    m = (struct maker){.physical = GAR_PARQUET_BYTE_ARRAY, .rows = 1, .values = -1};
    plain(&m, 1,
          "\xff\xff\xff\xff"
          "abcdefghijklmnop",
          20);
    expect_error(&m, "fewer bytes than its texts need");
    m = (struct maker){.physical = GAR_PARQUET_BYTE_ARRAY,
                       .logical = PARQUET_LOGICAL_STRING,
                       .rows = 1,
                       .values = -1};
    plain(&m, 1, "\x02\0\0\0\xc3(", 6);
    expect_error(&m, "not valid UTF-8");
    /* A character cut by the border between two texts. */
    m = (struct maker){.physical = GAR_PARQUET_BYTE_ARRAY,
                       .logical = PARQUET_LOGICAL_STRING,
                       .rows = 2,
                       .values = -1};
    plain(&m, 2, "\x01\0\0\0\xc3\x01\0\0\0\xbc", 10);
    expect_error(&m, "not valid UTF-8");
    /* The same in DELTA_LENGTH_BYTE_ARRAY, where the texts touch. */
    static const uint8_t page[] = {0x80, 0x01, 0x04, 0x02, 0x02, 0x00, 0, 0, 0, 0, 0xc3, 0xbc};
    m = (struct maker){.physical = GAR_PARQUET_BYTE_ARRAY,
                       .logical = PARQUET_LOGICAL_STRING,
                       .rows = 2,
                       .values = -1};
    put_page(&m, PARQUET_PAGE_DATA, 2, PARQUET_DELTA_LENGTH_BYTE_ARRAY, PARQUET_RLE, page,
             sizeof page, sizeof page);
    expect_error(&m, "not valid UTF-8");
    /* As binary all of it is fine. */
    m = (struct maker){.physical = GAR_PARQUET_BYTE_ARRAY, .rows = 2, .values = -1};
    plain(&m, 2, "\x01\0\0\0\xc3\x01\0\0\0\xbc", 10);
    expect(&m, "x'c3'|x'bc'");
}

static void test_text_as_binary(void **state)
{
    (void)state;
    struct maker m = {.physical = GAR_PARQUET_BYTE_ARRAY,
                      .logical = PARQUET_LOGICAL_STRING,
                      .rows = 1,
                      .values = -1};
    plain(&m, 1, "\x02\0\0\0\xc3(", 6);
    const struct bytes b = make_file(&m);
    struct gar_parquet_file *file = NULL;
    struct gar_parquet_reader *reader = NULL;
    struct gar_buffer *buffer = NULL;
    struct gar_column *column = NULL;
    assert_int_equal(parse_file(b, &file, NULL), GAR_OK);
    assert_int_equal(gar_buffer_new_foreign(b.data, b.size, free, b.data, &buffer, NULL), GAR_OK);
    const struct gar_parquet_reader_options options = {.as_binary = true};
    assert_int_equal(
        gar_parquet_reader_new(file, 0, 0, buffer, 4, &options, gar_memory_system(), &reader, NULL),
        GAR_OK);
    gar_buffer_unref(buffer);
    assert_int_equal(gar_parquet_reader_read(reader, 1, &column, NULL), GAR_OK);
    assert_int_equal(column->type.id, GAR_BINARY);
    char text[64];
    text_of(column, 0, text, sizeof text);
    assert_string_equal(text, "x'c328'");
    gar_parquet_reader_free(reader);
    gar_parquet_file_unref(file);
    gar_column_unref(column); /* the last holder of the file's bytes */
}

static void test_huge_claims(void **state)
{
    (void)state;
    /* 2^31 - 1 nulls in two bytes of levels: reading a few rows needs no memory for the rest. */
    struct maker m = {
        .physical = GAR_PARQUET_INT64, .optional = true, .rows = INT32_MAX, .values = -1};
    uint8_t page[16] = {6, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0x00};
    plain(&m, INT32_MAX, page, 10);
    const struct bytes b = make_file(&m);
    struct gar_parquet_file *file = NULL;
    struct gar_parquet_reader *reader = NULL;
    struct gar_column *column = NULL;
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(parse_file(b, &file, &err), GAR_OK);
    assert_int_equal(open_chunk(b, file, 0, 0, false, &reader, &err), GAR_OK);
    assert_int_equal(gar_parquet_reader_read(reader, 10, &column, &err), GAR_OK);
    assert_int_equal(gar_column_null_count(column), 10);
    gar_column_unref(column);
    assert_int_equal(gar_parquet_reader_skip(reader, INT32_MAX - 20, &err), GAR_OK);
    assert_int_equal(gar_parquet_reader_read(reader, 10, &column, &err), GAR_OK);
    assert_int_equal(gar_column_null_count(column), 10);
    gar_column_unref(column);
    gar_parquet_reader_free(reader);
    gar_parquet_file_unref(file);
    free(b.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_types), cmocka_unit_test(test_levels),
        cmocka_unit_test(test_dictionary),  cmocka_unit_test(test_delta_texts),
        cmocka_unit_test(test_delta_bomb),  cmocka_unit_test(test_byte_stream_split),
        cmocka_unit_test(test_codecs),      cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_lying_pages), cmocka_unit_test(test_lying_texts),
        cmocka_unit_test(test_huge_claims), cmocka_unit_test(test_text_as_binary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
