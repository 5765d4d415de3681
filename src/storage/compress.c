/* SPDX-License-Identifier: Apache-2.0 */
/* One-shot compression. */
#include "storage/compress.h"

#include <libdeflate.h>
#include <string.h>
#include <zstd.h>

#include "base/alloc.h"

#define GZIP_LEVEL 6
#define ZSTD_LEVEL 3

static bool ends_in(const char *path, const char *suffix)
{
    const size_t bytes = strlen(path);
    const size_t end = strlen(suffix);
    return bytes >= end && strcmp(path + bytes - end, suffix) == 0;
}

enum gar_status gar_compression_parse(const char *word, const char *path, enum gar_compression *out,
                                      struct gar_error *err)
{
    *out = GAR_COMPRESSION_NONE;
    if (word == NULL) {
        *out = ends_in(path, ".gz")    ? GAR_COMPRESSION_GZIP
               : ends_in(path, ".zst") ? GAR_COMPRESSION_ZSTD
                                       : *out;
        return GAR_OK;
    }
    if (strcmp(word, "gzip") == 0) {
        *out = GAR_COMPRESSION_GZIP;
    } else if (strcmp(word, "zstd") == 0) {
        *out = GAR_COMPRESSION_ZSTD;
    } else if (strcmp(word, "none") != 0) {
        char shown[64];
        return gar_error_set(
            err, GAR_ERR_VALUE, "unknown compression '%s'; text files take none, gzip and zstd",
            gar_error_quote(word, (int64_t)strlen(word), shown, (int64_t)sizeof shown));
    }
    return GAR_OK;
}

const char *gar_compression_suffix(enum gar_compression compression)
{
    switch (compression) {
    case GAR_COMPRESSION_NONE: return "";
    case GAR_COMPRESSION_GZIP: return ".gz";
    case GAR_COMPRESSION_ZSTD: return ".zst";
    }
    return "";
}

static bool reserve(struct gar_strbuf *out, int64_t bytes, struct gar_error *err)
{
    return gar_grow((void **)&out->data, &out->capacity, out->size + bytes + 1, 1, err) >= 0;
}

static enum gar_status compress_gzip(const void *data, int64_t bytes, struct gar_strbuf *out,
                                     struct gar_error *err)
{
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(GZIP_LEVEL);
    if (compressor == NULL) {
        return gar_error_nomem(err, 1 << 20);
    }
    const int64_t room = (int64_t)libdeflate_gzip_compress_bound(compressor, (size_t)bytes);
    enum gar_status status = reserve(out, room, err) ? GAR_OK : GAR_ERR_NOMEM;
    if (status >= 0) {
        out->size += (int64_t)libdeflate_gzip_compress(compressor, data, (size_t)bytes,
                                                       out->data + out->size, (size_t)room);
    }
    libdeflate_free_compressor(compressor);
    return status;
}

static enum gar_status compress_zstd(const void *data, int64_t bytes, struct gar_strbuf *out,
                                     struct gar_error *err)
{
    const int64_t room = (int64_t)ZSTD_compressBound((size_t)bytes);
    if (!reserve(out, room, err)) {
        return GAR_ERR_NOMEM;
    }
    const size_t made =
        ZSTD_compress(out->data + out->size, (size_t)room, data, (size_t)bytes, ZSTD_LEVEL);
    if (ZSTD_isError(made) != 0) {
        return gar_error_nomem(err, room);
    }
    out->size += (int64_t)made;
    return GAR_OK;
}

enum gar_status gar_compress(enum gar_compression compression, const void *data, int64_t bytes,
                             struct gar_strbuf *out, struct gar_error *err)
{
    switch (compression) {
    case GAR_COMPRESSION_GZIP: return compress_gzip(data, bytes, out, err);
    case GAR_COMPRESSION_ZSTD: return compress_zstd(data, bytes, out, err);
    case GAR_COMPRESSION_NONE: break;
    }
    gar_strbuf_append_n(out, data, bytes);
    return out->failed ? gar_error_nomem(err, bytes) : GAR_OK;
}
