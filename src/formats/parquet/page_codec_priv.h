/* SPDX-License-Identifier: Apache-2.0 */
/* Compression of pages: whole buffers with exact sizes. */
#ifndef GAR_FORMATS_PARQUET_PAGE_CODEC_PRIV_H
#define GAR_FORMATS_PARQUET_PAGE_CODEC_PRIV_H

#include "formats/parquet/parquet.h"

/* Contexts that are made on first use and kept. A zeroed struct is valid; one thread at a time. */
struct page_codec {
    void *zstd_decoder;    /* owned */
    void *deflate;         /* owned; libdeflate's decompressor */
    void *zstd_encoder;    /* owned */
    void *deflate_encoder; /* owned; of deflate_level */
    int32_t deflate_level;
};

void gar_page_codec_destroy(struct page_codec *codec);

/* Could `in_bytes` of compressed data give out_bytes at all? Asked before out_bytes of memory are. */
bool gar_page_codec_plausible(enum gar_parquet_codec kind, int64_t in_bytes, int64_t out_bytes);

/* Fills out with exactly out_bytes; up to 64 bytes behind it may be overwritten with anything (a gar_buffer has them). in is
 * readable for in_bytes only. Errors: GAR_ERR_FORMAT (malformed, or another size than out_bytes), GAR_ERR_UNSUPPORTED,
 * GAR_ERR_NOMEM; the message starts with what is wrong and names the codec. */
GAR_MUST_USE enum gar_status gar_page_decompress(struct page_codec *codec,
                                                 enum gar_parquet_codec kind, const uint8_t *in,
                                                 int64_t in_bytes, uint8_t *out, int64_t out_bytes,
                                                 struct gar_error *err);

/* Room that compressing in_bytes may need. */
int64_t gar_page_compress_bound(enum gar_parquet_codec kind, int64_t in_bytes);
/* level 0: the codec's usual one. out has gar_page_compress_bound bytes. */
GAR_MUST_USE enum gar_status gar_page_compress(struct page_codec *codec,
                                               enum gar_parquet_codec kind, int32_t level,
                                               const uint8_t *in, int64_t in_bytes, uint8_t *out,
                                               int64_t *out_bytes, struct gar_error *err);

/* One raw snappy stream; see snappy_decode.c. False if malformed or not exactly out_bytes. */
bool gar_snappy_decode(const uint8_t *in, int64_t in_bytes, uint8_t *out, int64_t out_bytes);

#endif
