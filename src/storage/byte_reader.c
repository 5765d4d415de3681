/* SPDX-License-Identifier: Apache-2.0 */
/* Sequential reading. Compressed data goes through a 256 KiB input buffer; output goes straight to the caller, so
 * memory is bounded whatever the data claims. Every step of a decoder takes input or gives output, else the data is
 * called damaged. */
#include "storage/byte_reader.h"

#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/alloc.h"

#define INPUT_BYTES         ((int64_t)256 << 10)
#define ZSTD_WINDOW_LOG_MAX 27
#define GZIP_WINDOW_BITS    (15 + 16)
/* zlib counts in unsigned int. */
#define STEP_BYTES_MAX ((int64_t)1 << 30)

enum codec { CODEC_NONE, CODEC_GZIP, CODEC_ZSTD };

struct gar_byte_reader {
    struct gar_source *source; /* owned reference */
    struct gar_cancel *cancel; /* borrowed */
    int64_t offset;            /* of the next byte to read from the source */
    enum codec codec;
    bool is_checked; /* the end was reached and the file found unchanged */
    /* compressed data only */
    uint8_t *input; /* owned */
    int64_t input_bytes;
    int64_t input_used;
    bool is_input_end;
    bool is_inside; /* in a gzip member or zstd frame */
    bool has_zlib;
    z_stream zlib;
    ZSTD_DStream *zstd; /* owned */
};

/* ---- which compression ---- */

static bool starts_with(const uint8_t *head, int64_t bytes, const char *magic, int64_t magic_bytes)
{
    return bytes >= magic_bytes && memcmp(head, magic, (size_t)magic_bytes) == 0;
}

static enum gar_status find_codec(struct gar_byte_reader *reader, struct gar_error *err)
{
    uint8_t head[8];
    int64_t bytes = 0;
    GAR_TRY(gar_source_read_at(reader->source, head, (int64_t)sizeof head, 0, reader->cancel,
                               &bytes, err));
    const bool is_skippable =
        bytes >= 4 && (head[0] & 0xf0) == 0x50 && memcmp(head + 1, "\x2a\x4d\x18", 3) == 0;
    const char *refused = NULL;
    if (starts_with(head, bytes, "\x1f\x8b", 2)) {
        reader->codec = CODEC_GZIP;
    } else if (starts_with(head, bytes, "\x28\xb5\x2f\xfd", 4) || is_skippable) {
        reader->codec = CODEC_ZSTD;
    } else if (starts_with(head, bytes, "BZh", 3) && bytes >= 8 &&
               memcmp(head + 4, "1AY&", 4) == 0) {
        refused = "bzip2";
    } else if (starts_with(head, bytes,
                           "\xfd"
                           "7zXZ",
                           5)) {
        refused = "xz";
    } else if (starts_with(head, bytes, "\x04\x22\x4d\x18", 4)) {
        refused = "lz4";
    }
    if (refused != NULL) {
        return gar_error_set(
            err, GAR_ERR_UNSUPPORTED,
            "'%s' is compressed with %s; gzip and zstd are supported, decompress it first",
            gar_source_path(reader->source), refused);
    }
    return GAR_OK;
}

static void *zlib_alloc(void *opaque, unsigned items, unsigned size)
{
    (void)opaque;
    return gar_malloc((int64_t)items * size);
}

static void zlib_free(void *opaque, void *memory)
{
    (void)opaque;
    gar_free(memory);
}

static enum gar_status open_codec(struct gar_byte_reader *reader, struct gar_error *err)
{
    if (reader->codec == CODEC_NONE) {
        return GAR_OK;
    }
    reader->input = gar_malloc(INPUT_BYTES);
    if (reader->input == NULL) {
        return gar_error_nomem(err, INPUT_BYTES);
    }
    if (reader->codec == CODEC_GZIP) {
        reader->zlib.zalloc = zlib_alloc;
        reader->zlib.zfree = zlib_free;
        reader->has_zlib = inflateInit2(&reader->zlib, GZIP_WINDOW_BITS) == Z_OK;
        return reader->has_zlib ? GAR_OK : gar_error_nomem(err, 1 << 15);
    }
    reader->zstd = ZSTD_createDStream();
    if (reader->zstd == NULL || ZSTD_isError(ZSTD_DCtx_setParameter(
                                    reader->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX)) != 0) {
        return gar_error_nomem(err, 1 << 17);
    }
    return GAR_OK;
}

enum gar_status gar_byte_reader_new(struct gar_source *source, struct gar_cancel *cancel,
                                    struct gar_byte_reader **out, struct gar_error *err)
{
    struct gar_byte_reader *reader = gar_calloc(1, (int64_t)sizeof *reader);
    if (reader == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *reader);
    }
    reader->source = gar_source_ref(source);
    reader->cancel = cancel;
    enum gar_status status = find_codec(reader, err);
    if (status >= 0) {
        status = open_codec(reader, err);
    }
    if (status < 0) {
        gar_byte_reader_free(reader);
        return status;
    }
    *out = reader;
    return GAR_OK;
}

void gar_byte_reader_free(struct gar_byte_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    if (reader->has_zlib) {
        (void)inflateEnd(&reader->zlib);
    }
    (void)ZSTD_freeDStream(reader->zstd);
    gar_free(reader->input);
    gar_source_unref(reader->source);
    gar_free(reader);
}

bool gar_byte_reader_is_compressed(const struct gar_byte_reader *reader)
{
    return reader->codec != CODEC_NONE;
}

/* ---- reading ---- */

static enum gar_status fill_input(struct gar_byte_reader *reader, struct gar_error *err)
{
    if (reader->input_used < reader->input_bytes || reader->is_input_end) {
        return GAR_OK;
    }
    GAR_TRY(gar_source_read_at(reader->source, reader->input, INPUT_BYTES, reader->offset,
                               reader->cancel, &reader->input_bytes, err));
    reader->input_used = 0;
    reader->offset += reader->input_bytes;
    reader->is_input_end = reader->input_bytes < INPUT_BYTES;
    return GAR_OK;
}

static enum gar_status damaged(const struct gar_byte_reader *reader, const char *what,
                               struct gar_error *err)
{
    const int64_t at = reader->offset - (reader->input_bytes - reader->input_used);
    return gar_error_set(err, GAR_ERR_FORMAT, "'%s' is damaged: %s near byte %lld",
                         gar_source_path(reader->source), what, (long long)at);
}

/* Between members: nothing more, or zeros that some writers pad with, or another member. */
static enum gar_status next_member(struct gar_byte_reader *reader, struct gar_error *err)
{
    while (reader->input_used < reader->input_bytes && reader->input[reader->input_used] == 0) {
        reader->input_used++;
    }
    if (reader->input_used == reader->input_bytes) {
        return GAR_OK;
    }
    if (inflateReset(&reader->zlib) != Z_OK) {
        return damaged(reader, "gzip state is lost", err);
    }
    reader->is_inside = true;
    return GAR_OK;
}

static enum gar_status step_gzip(struct gar_byte_reader *reader, uint8_t *out, int64_t bytes,
                                 int64_t *out_made, struct gar_error *err)
{
    *out_made = 0;
    if (!reader->is_inside) {
        GAR_TRY(next_member(reader, err));
        if (!reader->is_inside) {
            return GAR_OK;
        }
    }
    z_stream *z = &reader->zlib;
    const int64_t left = reader->input_bytes - reader->input_used;
    z->next_in = reader->input + reader->input_used;
    z->avail_in = (unsigned)left;
    z->next_out = out;
    z->avail_out = (unsigned)gar_min_i64(bytes, STEP_BYTES_MAX);
    const int64_t room = z->avail_out;
    const int code = inflate(z, Z_NO_FLUSH);
    reader->input_used += left - z->avail_in;
    *out_made = room - z->avail_out;
    if (code == Z_STREAM_END) {
        reader->is_inside = false;
        return GAR_OK;
    }
    if (code == Z_MEM_ERROR) {
        return gar_error_nomem(err, 1 << 15);
    }
    if (code != Z_OK && code != Z_BUF_ERROR) {
        return damaged(reader, z->msg != NULL ? z->msg : "not gzip data", err);
    }
    if (*out_made == 0 && reader->input_used == reader->input_bytes && reader->is_input_end) {
        return damaged(reader, "gzip data ends early", err);
    }
    return GAR_OK;
}

static enum gar_status step_zstd(struct gar_byte_reader *reader, uint8_t *out, int64_t bytes,
                                 int64_t *out_made, struct gar_error *err)
{
    *out_made = 0;
    const bool has_input = reader->input_used < reader->input_bytes;
    if (!has_input && !reader->is_inside) {
        return GAR_OK;
    }
    ZSTD_inBuffer from = {reader->input, (size_t)reader->input_bytes, (size_t)reader->input_used};
    ZSTD_outBuffer to = {out, (size_t)bytes, 0};
    const size_t code = ZSTD_decompressStream(reader->zstd, &to, &from);
    reader->input_used = (int64_t)from.pos;
    *out_made = (int64_t)to.pos;
    if (ZSTD_isError(code) != 0) {
        if (ZSTD_getErrorCode(code) == ZSTD_error_frameParameter_windowTooLarge) {
            return gar_error_set(err, GAR_ERR_FORMAT,
                                 "'%s' needs a zstd window over %d MiB; compress it without --long",
                                 gar_source_path(reader->source), 1 << (ZSTD_WINDOW_LOG_MAX - 20));
        }
        if (ZSTD_getErrorCode(code) == ZSTD_error_memory_allocation) {
            return gar_error_nomem(err, (int64_t)1 << ZSTD_WINDOW_LOG_MAX);
        }
        return damaged(reader, ZSTD_getErrorName(code), err);
    }
    reader->is_inside = code != 0;
    if (reader->is_inside && to.pos == 0 && !has_input && reader->is_input_end) {
        return damaged(reader, "zstd data ends early", err);
    }
    return GAR_OK;
}

static enum gar_status read_compressed(struct gar_byte_reader *reader, uint8_t *out, int64_t bytes,
                                       int64_t *out_read, struct gar_error *err)
{
    int64_t done = 0;
    while (done < bytes) {
        GAR_CANCEL_CHECK(reader->cancel, err);
        GAR_TRY(fill_input(reader, err));
        const bool is_end =
            reader->is_input_end && reader->input_used == reader->input_bytes && !reader->is_inside;
        if (is_end) {
            break;
        }
        int64_t made = 0;
        GAR_TRY(reader->codec == CODEC_GZIP
                    ? step_gzip(reader, out + done, bytes - done, &made, err)
                    : step_zstd(reader, out + done, bytes - done, &made, err));
        done += made;
    }
    *out_read = done;
    return GAR_OK;
}

enum gar_status gar_byte_reader_read(struct gar_byte_reader *reader, void *out, int64_t bytes,
                                     int64_t *out_read, struct gar_error *err)
{
    *out_read = 0;
    if (reader->codec == CODEC_NONE) {
        GAR_TRY(gar_source_read_at(reader->source, out, bytes, reader->offset, reader->cancel,
                                   out_read, err));
        reader->offset += *out_read;
    } else {
        GAR_TRY(read_compressed(reader, out, bytes, out_read, err));
    }
    if (*out_read < bytes && !reader->is_checked) {
        GAR_TRY(gar_source_check(reader->source, err));
        reader->is_checked = true;
    }
    return GAR_OK;
}
