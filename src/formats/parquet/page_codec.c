/* SPDX-License-Identifier: Apache-2.0 */
/* The codecs of Parquet pages over the system's libraries: exact output sizes, contexts reused. */
#include <brotli/decode.h>
#include <brotli/encode.h>
#include <libdeflate.h>
#include <lz4.h>
#include <snappy-c.h>
#include <string.h>
#include <zstd.h>

#include "formats/parquet/page_codec_priv.h"
#include "formats/parquet/parquet_priv.h"

#define ZSTD_LEVEL_USUAL   1
#define GZIP_LEVEL_USUAL   6
#define BROTLI_LEVEL_USUAL 4
#define BROTLI_WINDOW      22
#define HADOOP_FRAME_BYTES 8

void gar_page_codec_destroy(struct page_codec *codec)
{
    (void)ZSTD_freeDCtx(codec->zstd_decoder);
    (void)ZSTD_freeCCtx(codec->zstd_encoder);
    if (codec->deflate != NULL) {
        libdeflate_free_decompressor(codec->deflate);
    }
    if (codec->deflate_encoder != NULL) {
        libdeflate_free_compressor(codec->deflate_encoder);
    }
    memset(codec, 0, sizeof *codec);
}

/* How many bytes one byte of each format can stand for at the very most. */
bool gar_page_codec_plausible(enum gar_parquet_codec kind, int64_t in_bytes, int64_t out_bytes)
{
    int64_t ratio = 1;
    switch (kind) {
    case GAR_PARQUET_NONE: return in_bytes == out_bytes;
    case GAR_PARQUET_SNAPPY: ratio = 64; break;
    case GAR_PARQUET_GZIP: ratio = 1040; break;
    case GAR_PARQUET_LZ4_HADOOP:
    case GAR_PARQUET_LZ4_RAW: ratio = 256; break;
    /* Run-length blocks of 128 KiB in 4 bytes, and meta-blocks of 16 MiB in a few. */
    case GAR_PARQUET_ZSTD: ratio = 128 * 1024; break;
    case GAR_PARQUET_BROTLI: ratio = 16 * 1024 * 1024; break;
    case GAR_PARQUET_LZO: break;
    }
    return out_bytes / ratio <= in_bytes;
}

static enum gar_status fail(struct gar_error *err, enum gar_parquet_codec kind, const char *what)
{
    return gar_error_set(err, GAR_ERR_FORMAT, "%s data are damaged: %s",
                         gar_parquet_codec_name((int32_t)kind), what);
}

static enum gar_status decompress_zstd(struct page_codec *codec, const uint8_t *in,
                                       int64_t in_bytes, uint8_t *out, int64_t out_bytes,
                                       struct gar_error *err)
{
    if (codec->zstd_decoder == NULL) {
        codec->zstd_decoder = ZSTD_createDCtx();
        if (codec->zstd_decoder == NULL) {
            return gar_error_nomem(err, 1 << 17);
        }
    }
    const size_t got =
        ZSTD_decompressDCtx(codec->zstd_decoder, out, (size_t)out_bytes, in, (size_t)in_bytes);
    if (ZSTD_isError(got)) {
        return fail(err, GAR_PARQUET_ZSTD, ZSTD_getErrorName(got));
    }
    return (int64_t)got == out_bytes
               ? GAR_OK
               : fail(err, GAR_PARQUET_ZSTD, "they give fewer bytes than the page says");
}

/* All members, one after the other; zlib streams, which some writers leave under this name, too. */
static enum gar_status decompress_gzip(struct page_codec *codec, const uint8_t *in,
                                       int64_t in_bytes, uint8_t *out, int64_t out_bytes,
                                       struct gar_error *err)
{
    if (codec->deflate == NULL) {
        codec->deflate = libdeflate_alloc_decompressor();
        if (codec->deflate == NULL) {
            return gar_error_nomem(err, 1 << 14);
        }
    }
    const bool is_gzip = in_bytes >= 2 && in[0] == 0x1f && in[1] == 0x8b;
    while (in_bytes > 0) {
        size_t used = 0;
        size_t got = 0;
        const enum libdeflate_result result =
            is_gzip ? libdeflate_gzip_decompress_ex(codec->deflate, in, (size_t)in_bytes, out,
                                                    (size_t)out_bytes, &used, &got)
                    : libdeflate_zlib_decompress_ex(codec->deflate, in, (size_t)in_bytes, out,
                                                    (size_t)out_bytes, &used, &got);
        if (result == LIBDEFLATE_INSUFFICIENT_SPACE) {
            return fail(err, GAR_PARQUET_GZIP, "they give more bytes than the page says");
        }
        if (result != LIBDEFLATE_SUCCESS || used == 0) {
            return fail(err, GAR_PARQUET_GZIP, "not a gzip stream, or a wrong checksum");
        }
        in += used;
        in_bytes -= (int64_t)used;
        out += got;
        out_bytes -= (int64_t)got;
    }
    return out_bytes == 0 ? GAR_OK
                          : fail(err, GAR_PARQUET_GZIP, "they give fewer bytes than the page says");
}

static enum gar_status decompress_brotli(const uint8_t *in, int64_t in_bytes, uint8_t *out,
                                         int64_t out_bytes, struct gar_error *err)
{
    size_t got = (size_t)out_bytes;
    if (BrotliDecoderDecompress((size_t)in_bytes, in, &got, out) != BROTLI_DECODER_RESULT_SUCCESS) {
        return fail(err, GAR_PARQUET_BROTLI, "not a brotli stream of the size that the page says");
    }
    return (int64_t)got == out_bytes
               ? GAR_OK
               : fail(err, GAR_PARQUET_BROTLI, "they give fewer bytes than the page says");
}

static bool decompress_lz4_raw(const uint8_t *in, int64_t in_bytes, uint8_t *out, int64_t out_bytes)
{
    if (in_bytes > INT32_MAX || out_bytes > INT32_MAX) {
        return false;
    }
    return LZ4_decompress_safe((const char *)in, (char *)out, (int)in_bytes, (int)out_bytes) ==
           (int)out_bytes;
}

static int64_t load_big_endian_u32(const uint8_t *p)
{
    return (int64_t)__builtin_bswap32(gar_load_u32(p));
}

/* Blocks of a big-endian uncompressed size, a compressed size, and so many bytes. False when it is something else. */
static bool decompress_lz4_hadoop(const uint8_t *in, int64_t in_bytes, uint8_t *out,
                                  int64_t out_bytes)
{
    while (in_bytes >= HADOOP_FRAME_BYTES) {
        const int64_t give = load_big_endian_u32(in);
        const int64_t take = load_big_endian_u32(in + 4);
        in += HADOOP_FRAME_BYTES;
        in_bytes -= HADOOP_FRAME_BYTES;
        if (take > in_bytes || give > out_bytes || !decompress_lz4_raw(in, take, out, give)) {
            return false;
        }
        in += take;
        in_bytes -= take;
        out += give;
        out_bytes -= give;
    }
    return in_bytes == 0 && out_bytes == 0;
}

enum gar_status gar_page_decompress(struct page_codec *codec, enum gar_parquet_codec kind,
                                    const uint8_t *in, int64_t in_bytes, uint8_t *out,
                                    int64_t out_bytes, struct gar_error *err)
{
    switch (kind) {
    case GAR_PARQUET_NONE:
        if (in_bytes != out_bytes) {
            return gar_error_set(err, GAR_ERR_FORMAT,
                                 "it is not compressed but %lld bytes are said to be %lld",
                                 (long long)in_bytes, (long long)out_bytes);
        }
        memcpy(out, in, (size_t)in_bytes);
        return GAR_OK;
    case GAR_PARQUET_SNAPPY:
        if (!gar_snappy_decode(in, in_bytes, out, out_bytes)) {
            return fail(err, kind, "not a snappy stream of the size that the page says");
        }
        return GAR_OK;
    case GAR_PARQUET_GZIP: return decompress_gzip(codec, in, in_bytes, out, out_bytes, err);
    case GAR_PARQUET_BROTLI: return decompress_brotli(in, in_bytes, out, out_bytes, err);
    case GAR_PARQUET_ZSTD: return decompress_zstd(codec, in, in_bytes, out, out_bytes, err);
    case GAR_PARQUET_LZ4_RAW:
        if (!decompress_lz4_raw(in, in_bytes, out, out_bytes)) {
            return fail(err, kind, "not an LZ4 block of the size that the page says");
        }
        return GAR_OK;
    case GAR_PARQUET_LZ4_HADOOP:
        /* Some writers of this retired codec left Hadoop's frame out. */
        if (!decompress_lz4_hadoop(in, in_bytes, out, out_bytes) &&
            !decompress_lz4_raw(in, in_bytes, out, out_bytes)) {
            return fail(
                err, kind,
                "neither Hadoop's LZ4 frames nor an LZ4 block of the size that the page says");
        }
        return GAR_OK;
    case GAR_PARQUET_LZO: break;
    }
    return gar_error_set(err, GAR_ERR_UNSUPPORTED, "the codec %s is not supported",
                         gar_parquet_codec_name((int32_t)kind));
}

int64_t gar_page_compress_bound(enum gar_parquet_codec kind, int64_t in_bytes)
{
    switch (kind) {
    case GAR_PARQUET_SNAPPY: return (int64_t)snappy_max_compressed_length((size_t)in_bytes);
    case GAR_PARQUET_GZIP: return (int64_t)libdeflate_gzip_compress_bound(NULL, (size_t)in_bytes);
    case GAR_PARQUET_BROTLI: return (int64_t)BrotliEncoderMaxCompressedSize((size_t)in_bytes) + 64;
    case GAR_PARQUET_ZSTD: return (int64_t)ZSTD_compressBound((size_t)in_bytes);
    case GAR_PARQUET_LZ4_RAW: return in_bytes + in_bytes / 255 + 64;
    case GAR_PARQUET_NONE:
    case GAR_PARQUET_LZO:
    case GAR_PARQUET_LZ4_HADOOP: break;
    }
    return in_bytes;
}

static enum gar_status compress_zstd(struct page_codec *codec, int32_t level, const uint8_t *in,
                                     int64_t in_bytes, uint8_t *out, int64_t *out_bytes,
                                     struct gar_error *err)
{
    if (codec->zstd_encoder == NULL) {
        codec->zstd_encoder = ZSTD_createCCtx();
        if (codec->zstd_encoder == NULL) {
            return gar_error_nomem(err, 1 << 17);
        }
    }
    const size_t got =
        ZSTD_compressCCtx(codec->zstd_encoder, out, ZSTD_compressBound((size_t)in_bytes), in,
                          (size_t)in_bytes, level == 0 ? ZSTD_LEVEL_USUAL : level);
    if (ZSTD_isError(got)) {
        return gar_error_set(err, GAR_ERR_INTERNAL, "zstd cannot compress a page: %s",
                             ZSTD_getErrorName(got));
    }
    *out_bytes = (int64_t)got;
    return GAR_OK;
}

static enum gar_status compress_gzip(struct page_codec *codec, int32_t level, const uint8_t *in,
                                     int64_t in_bytes, uint8_t *out, int64_t *out_bytes,
                                     struct gar_error *err)
{
    const int32_t wanted = level == 0 ? GZIP_LEVEL_USUAL : level;
    if (codec->deflate_encoder == NULL || codec->deflate_level != wanted) {
        if (codec->deflate_encoder != NULL) {
            libdeflate_free_compressor(codec->deflate_encoder);
        }
        codec->deflate_encoder = libdeflate_alloc_compressor(wanted);
        codec->deflate_level = wanted;
        if (codec->deflate_encoder == NULL) {
            return gar_error_nomem(err, 1 << 18);
        }
    }
    const size_t room = libdeflate_gzip_compress_bound(NULL, (size_t)in_bytes);
    *out_bytes =
        (int64_t)libdeflate_gzip_compress(codec->deflate_encoder, in, (size_t)in_bytes, out, room);
    return *out_bytes > 0 ? GAR_OK
                          : gar_error_set(err, GAR_ERR_INTERNAL, "gzip cannot compress a page");
}

enum gar_status gar_page_compress(struct page_codec *codec, enum gar_parquet_codec kind,
                                  int32_t level, const uint8_t *in, int64_t in_bytes, uint8_t *out,
                                  int64_t *out_bytes, struct gar_error *err)
{
    size_t got = 0;
    switch (kind) {
    case GAR_PARQUET_NONE:
        memcpy(out, in, (size_t)in_bytes);
        *out_bytes = in_bytes;
        return GAR_OK;
    case GAR_PARQUET_SNAPPY:
        got = snappy_max_compressed_length((size_t)in_bytes);
        if (snappy_compress((const char *)in, (size_t)in_bytes, (char *)out, &got) != SNAPPY_OK) {
            return gar_error_set(err, GAR_ERR_INTERNAL, "snappy cannot compress a page");
        }
        *out_bytes = (int64_t)got;
        return GAR_OK;
    case GAR_PARQUET_GZIP: return compress_gzip(codec, level, in, in_bytes, out, out_bytes, err);
    case GAR_PARQUET_ZSTD: return compress_zstd(codec, level, in, in_bytes, out, out_bytes, err);
    case GAR_PARQUET_BROTLI:
        got = (size_t)gar_page_compress_bound(kind, in_bytes);
        if (BrotliEncoderCompress(level == 0 ? BROTLI_LEVEL_USUAL : level, BROTLI_WINDOW,
                                  BROTLI_MODE_GENERIC, (size_t)in_bytes, in, &got,
                                  out) != BROTLI_TRUE) {
            return gar_error_set(err, GAR_ERR_INTERNAL, "brotli cannot compress a page");
        }
        *out_bytes = (int64_t)got;
        return GAR_OK;
    case GAR_PARQUET_LZ4_RAW:
        if (in_bytes > LZ4_MAX_INPUT_SIZE) {
            return gar_error_set(err, GAR_ERR_OVERFLOW, "a page of %lld bytes is too large for lz4",
                                 (long long)in_bytes);
        }
        *out_bytes = LZ4_compress_default(
            (const char *)in, (char *)out, (int)in_bytes,
            (int)gar_min_i64(gar_page_compress_bound(kind, in_bytes), INT32_MAX));
        return *out_bytes > 0 ? GAR_OK
                              : gar_error_set(err, GAR_ERR_INTERNAL, "lz4 cannot compress a page");
    case GAR_PARQUET_LZO:
    case GAR_PARQUET_LZ4_HADOOP: break;
    }
    return gar_error_set(err, GAR_ERR_UNSUPPORTED, "pages cannot be written with the codec %s",
                         gar_parquet_codec_name((int32_t)kind));
}
