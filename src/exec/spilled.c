/* SPDX-License-Identifier: Apache-2.0 */
/* The form of a block: an 8-byte hash of all that follows, the rows, then pieces. A piece is two 8-byte sizes, raw and stored,
 * and the stored bytes; it is compressed where both differ. Numbers are in the machine's byte order: nobody else reads it. */
#include "exec/spilled.h"

#include <lz4.h>
#include <string.h>

#include "arrow/gather.h"
#include "base/alloc.h"
#include "base/hash.h"

#define HEADER_BYTES     16
#define PIECE_BYTES      16
#define TEXT_BYTES_MAX   (INT64_C(1) << 30) /* of one column in one block */
#define COMPRESS_MIN     64
#define COMPRESS_MAX     LZ4_MAX_INPUT_SIZE
#define PIECES_OF_COLUMN 3

/* ---- writing ---- */

struct writer {
    uint8_t *out; /* with room for everything uncompressed */
    int64_t used;
    uint8_t *scratch; /* with room for the largest piece */
};

static void put_piece(struct writer *w, const void *data, int64_t bytes)
{
    uint8_t *at = w->out + w->used + PIECE_BYTES;
    int64_t stored = 0;
    if (bytes >= COMPRESS_MIN && bytes <= COMPRESS_MAX) {
        stored = LZ4_compress_default((const char *)data, (char *)at, (int)bytes,
                                      (int)(bytes - bytes / 8));
    }
    if (stored <= 0) {
        stored = bytes;
        if (bytes > 0) {
            memcpy(at, data, (size_t)bytes);
        }
    }
    const int64_t sizes[2] = {bytes, stored};
    memcpy(at - PIECE_BYTES, sizes, sizeof sizes);
    w->used += PIECE_BYTES + stored;
}

static void put_bits(struct writer *w, const uint8_t *bits, int64_t offset, int64_t rows)
{
    const int64_t bytes = (rows + 7) / 8;
    memset(w->scratch, 0, (size_t)bytes);
    gar_bits_copy(w->scratch, 0, bits, offset, rows);
    put_piece(w, w->scratch, bytes);
}

static void put_texts(struct writer *w, const struct gar_column *column)
{
    int32_t *sizes = (int32_t *)(void *)w->scratch;
    int64_t total = 0;
    for (int64_t i = 0; i < column->length; i++) {
        int64_t size = 0;
        if (!gar_column_is_null(column, i)) {
            (void)gar_column_bytes_at(column, i, &size);
        }
        sizes[i] = (int32_t)size;
        total += size;
    }
    put_piece(w, sizes, column->length * (int64_t)sizeof *sizes);
    uint8_t *at = w->scratch;
    for (int64_t i = 0; i < column->length; i++) {
        if (!gar_column_is_null(column, i)) {
            int64_t size = 0;
            const uint8_t *bytes = gar_column_bytes_at(column, i, &size);
            memcpy(at, bytes, (size_t)size);
            at += size;
        }
    }
    put_piece(w, w->scratch, total);
}

static void put_column(struct writer *w, const struct gar_column *column)
{
    if (column->type.id == GAR_NULL) {
        return;
    }
    if (column->validity != NULL) {
        put_bits(w, column->validity, column->validity_offset, column->length);
    } else {
        put_piece(w, NULL, 0);
    }
    if (column->type.id == GAR_BOOL) {
        put_bits(w, (const uint8_t *)column->values, column->values_offset, column->length);
    } else if (gar_type_is_text(column->type)) {
        put_texts(w, column);
    } else {
        put_piece(w, column->values, column->length * gar_type_width(column->type));
    }
}

static int64_t text_bytes(const struct gar_column *column)
{
    int64_t total = 0;
    for (int64_t i = 0; i < column->length; i++) {
        int64_t size = 0;
        if (!gar_column_is_null(column, i)) {
            (void)gar_column_bytes_at(column, i, &size);
        }
        total += size;
    }
    return total;
}

/* Bytes of all pieces of a FLAT column uncompressed; *largest: of the largest. */
static int64_t raw_bytes(const struct gar_column *column, int64_t *largest)
{
    const int64_t bits = (column->length + 7) / 8;
    int64_t values = column->length * gar_type_width(column->type);
    int64_t texts = 0;
    if (column->type.id == GAR_BOOL) {
        values = bits;
    } else if (gar_type_is_text(column->type)) {
        values = column->length * (int64_t)sizeof(int32_t);
        texts = text_bytes(column);
    }
    *largest = gar_max_i64(*largest, gar_max_i64(bits, gar_max_i64(values, texts)));
    return bits + values + texts;
}

static enum gar_status write_block(struct gar_spilled *run, struct gar_column *const *columns,
                                   int64_t rows, struct gar_memory *memory, struct gar_error *err)
{
    const int64_t count = run->schema->count;
    int64_t total = HEADER_BYTES + count * PIECES_OF_COLUMN * PIECE_BYTES;
    int64_t largest = 1;
    for (int64_t c = 0; c < count; c++) {
        total += raw_bytes(columns[c], &largest);
    }
    struct gar_buffer *out = NULL;
    struct gar_buffer *scratch = NULL;
    int64_t offset = 0;
    GAR_TRY(gar_grow((void **)&run->blocks, &run->capacity, run->count + 1,
                     (int64_t)sizeof *run->blocks, err));
    enum gar_status status = gar_buffer_new(memory, total, &out, err);
    if (status >= 0) {
        status = gar_buffer_new(memory, largest, &scratch, err);
    }
    if (status >= 0) {
        struct writer w = {.out = out->data, .used = HEADER_BYTES, .scratch = scratch->data};
        for (int64_t c = 0; c < count; c++) {
            put_column(&w, columns[c]);
        }
        memcpy(w.out + 8, &rows, sizeof rows);
        const uint64_t hash = gar_hash_bytes(w.out + 8, w.used - 8);
        memcpy(w.out, &hash, sizeof hash);
        status = gar_spill_file_write(run->file, w.out, w.used, &offset, err);
        if (status >= 0) {
            run->blocks[run->count++] = (struct gar_spilled_block){offset, w.used, rows};
            run->rows += rows;
            run->bytes += w.used;
        }
    }
    gar_buffer_unref(out);
    gar_buffer_unref(scratch);
    return status;
}

static enum gar_status flatten_columns(const struct gar_batch *batch, struct gar_memory *memory,
                                       struct gar_column **columns, struct gar_error *err)
{
    for (int64_t c = 0; c < batch->schema->count; c++) {
        GAR_TRY(gar_column_flatten(batch->columns[c], memory, &columns[c], err));
    }
    return GAR_OK;
}

static bool is_too_large(struct gar_column *const *columns, int64_t count, int64_t rows)
{
    for (int64_t c = 0; c < count && rows > 1; c++) {
        if (gar_type_is_text(columns[c]->type) && text_bytes(columns[c]) > TEXT_BYTES_MAX) {
            return true;
        }
    }
    return false;
}

static enum gar_status add_rows(struct gar_spilled *run, const struct gar_batch *batch,
                                struct gar_memory *memory, struct gar_error *err)
{
    const int64_t count = batch->schema->count;
    struct gar_column **columns = (struct gar_column **)gar_calloc(count, (int64_t)sizeof *columns);
    enum gar_status status = columns != NULL ? GAR_OK : gar_error_nomem(err, count * 8);
    if (status >= 0) {
        status = flatten_columns(batch, memory, columns, err);
    }
    if (status >= 0 && is_too_large(columns, count, batch->rows)) {
        const int64_t half = batch->rows / 2;
        for (int32_t part = 0; part < 2 && status >= 0; part++) {
            struct gar_batch *piece = NULL;
            status = gar_batch_slice(batch, part * half, part == 0 ? half : batch->rows - half,
                                     &piece, err);
            if (status >= 0) {
                status = add_rows(run, piece, memory, err);
            }
            gar_batch_unref(piece);
        }
    } else if (status >= 0) {
        status = write_block(run, columns, batch->rows, memory, err);
    }
    for (int64_t c = 0; columns != NULL && c < count; c++) {
        gar_column_unref(columns[c]);
    }
    gar_free(columns);
    return status;
}

enum gar_status gar_spilled_add(struct gar_spilled *run, const struct gar_batch *batch,
                                struct gar_memory *memory, struct gar_error *err)
{
    struct gar_batch *gathered = NULL;
    if (batch->selected == 0) {
        return GAR_OK;
    }
    GAR_TRY(gar_batch_gather(batch, memory, &gathered, err));
    const enum gar_status status = add_rows(run, gathered, memory, err);
    gar_batch_unref(gathered);
    return status;
}

/* ---- reading ---- */

struct reader {
    const uint8_t *at;
    const uint8_t *end;
};

static enum gar_status damaged(struct gar_error *err)
{
    return gar_error_set(err, GAR_ERR_IO,
                         "spilled data came back damaged from the disk: its checksum is wrong");
}

/* The sizes of the next piece, whose stored bytes lie at *out_stored then. */
static enum gar_status next_piece(struct reader *r, int64_t *out_raw, const uint8_t **out_stored,
                                  int64_t *out_bytes, struct gar_error *err)
{
    int64_t sizes[2] = {0, 0};
    if (r->end - r->at < PIECE_BYTES) {
        return damaged(err);
    }
    memcpy(sizes, r->at, sizeof sizes);
    r->at += PIECE_BYTES;
    if (sizes[0] < 0 || sizes[1] < 0 || sizes[1] > r->end - r->at) {
        return damaged(err);
    }
    *out_raw = sizes[0];
    *out_stored = r->at;
    *out_bytes = sizes[1];
    r->at += sizes[1];
    return GAR_OK;
}

static enum gar_status unpack(const uint8_t *stored, int64_t bytes, void *out, int64_t raw,
                              struct gar_error *err)
{
    if (bytes == raw) {
        if (raw > 0) {
            memcpy(out, stored, (size_t)raw);
        }
        return GAR_OK;
    }
    const int got = LZ4_decompress_safe((const char *)stored, (char *)out, (int)bytes, (int)raw);
    return got == raw ? GAR_OK : damaged(err);
}

/* The next piece, which has exactly `bytes`. */
static enum gar_status take_piece(struct reader *r, void *out, int64_t bytes, struct gar_error *err)
{
    const uint8_t *stored = NULL;
    int64_t raw = 0;
    int64_t stored_bytes = 0;
    GAR_TRY(next_piece(r, &raw, &stored, &stored_bytes, err));
    return raw == bytes ? unpack(stored, stored_bytes, out, raw, err) : damaged(err);
}

static enum gar_status make_views(struct gar_column *column, const int32_t *sizes,
                                  const struct gar_buffer *bytes, int32_t number,
                                  struct gar_error *err)
{
    struct gar_string_view *views = (struct gar_string_view *)gar_column_values_mut(column);
    int64_t at = 0;
    for (int64_t i = 0; i < column->length; i++) {
        if (sizes[i] < 0 || sizes[i] > bytes->size - at) {
            return damaged(err);
        }
        views[i] = gar_view_make(bytes->data + at, sizes[i], number, (int32_t)at);
        at += sizes[i];
    }
    return GAR_OK;
}

static enum gar_status take_texts(struct reader *r, struct gar_column *column,
                                  struct gar_memory *memory, struct gar_error *err)
{
    const uint8_t *stored = NULL;
    int64_t raw = 0;
    int64_t stored_bytes = 0;
    int32_t number = 0;
    struct gar_buffer *bytes = NULL;
    const struct gar_buffer *data = NULL;
    const int64_t sizes_bytes = column->length * (int64_t)sizeof(int32_t);
    int32_t *sizes = (int32_t *)gar_malloc(sizes_bytes);
    if (sizes == NULL) {
        return gar_error_nomem(err, sizes_bytes);
    }
    enum gar_status status = take_piece(r, sizes, sizes_bytes, err);
    if (status >= 0) {
        status = next_piece(r, &raw, &stored, &stored_bytes, err);
    }
    if (status >= 0) {
        status = gar_buffer_new(memory, raw, &bytes, err);
    }
    if (status >= 0) {
        status = unpack(stored, stored_bytes, bytes->data, raw, err);
    }
    if (status >= 0) {
        data = bytes;
        status = gar_column_add_data(column, bytes, &number, err);
    }
    if (status < 0) {
        gar_buffer_unref(bytes);
    } else {
        status = make_views(column, sizes, data, number, err);
    }
    gar_free(sizes);
    return status;
}

static enum gar_status fill_column(struct reader *r, struct gar_column *column, bool has_validity,
                                   const uint8_t *stored, int64_t stored_bytes,
                                   struct gar_memory *memory, struct gar_error *err)
{
    const int64_t bits = (column->length + 7) / 8;
    column->null_count = has_validity ? -1 : 0;
    if (has_validity) {
        GAR_TRY(unpack(stored, stored_bytes, gar_column_validity_mut(column), bits, err));
    }
    if (gar_type_is_text(column->type)) {
        return take_texts(r, column, memory, err);
    }
    const int64_t bytes =
        column->type.id == GAR_BOOL ? bits : column->length * gar_type_width(column->type);
    return take_piece(r, gar_column_values_mut(column), bytes, err);
}

static enum gar_status take_column(struct reader *r, struct gar_type type, int64_t rows,
                                   struct gar_memory *memory, struct gar_column **out,
                                   struct gar_error *err)
{
    if (type.id == GAR_NULL) {
        return gar_column_new_null(memory, type, rows, out, err);
    }
    const uint8_t *stored = NULL;
    int64_t raw = 0;
    int64_t stored_bytes = 0;
    GAR_TRY(next_piece(r, &raw, &stored, &stored_bytes, err));
    if (raw != 0 && raw != (rows + 7) / 8) {
        return damaged(err);
    }
    struct gar_column *column = NULL;
    GAR_TRY(gar_column_new(memory, type, rows, raw > 0, &column, err));
    const enum gar_status status =
        fill_column(r, column, raw > 0, stored, stored_bytes, memory, err);
    if (status < 0) {
        gar_column_unref(column);
        return status;
    }
    *out = column;
    return GAR_OK;
}

static enum gar_status read_columns(const struct gar_spilled *run, const struct gar_buffer *block,
                                    struct gar_memory *memory, struct gar_batch **out,
                                    struct gar_error *err)
{
    uint64_t hash = 0;
    int64_t rows = 0;
    memcpy(&hash, block->data, sizeof hash);
    memcpy(&rows, block->data + 8, sizeof rows);
    if (hash != gar_hash_bytes(block->data + 8, block->size - 8)) {
        return damaged(err);
    }
    const int64_t count = run->schema->count;
    struct reader r = {block->data + HEADER_BYTES, block->data + block->size};
    struct gar_column **columns = (struct gar_column **)gar_calloc(count, (int64_t)sizeof *columns);
    enum gar_status status = columns != NULL ? GAR_OK : gar_error_nomem(err, count * 8);
    for (int64_t c = 0; c < count && status >= 0; c++) {
        status = take_column(&r, run->schema->fields[c].type, rows, memory, &columns[c], err);
    }
    if (status >= 0) {
        status = gar_batch_new(run->schema, columns, rows, out, err);
    }
    for (int64_t c = 0; columns != NULL && c < count && status < 0; c++) {
        gar_column_unref(columns[c]);
    }
    gar_free(columns);
    return status;
}

enum gar_status gar_spilled_read(const struct gar_spilled *run, int64_t i,
                                 struct gar_memory *memory, struct gar_batch **out,
                                 struct gar_error *err)
{
    const struct gar_spilled_block *block = &run->blocks[i];
    struct gar_buffer *buffer = NULL;
    GAR_TRY(gar_buffer_new(memory, block->bytes, &buffer, err));
    enum gar_status status =
        gar_spill_file_read(run->file, block->offset, buffer->data, block->bytes, err);
    if (status >= 0) {
        status = read_columns(run, buffer, memory, out, err);
    }
    gar_buffer_unref(buffer);
    return status;
}

/* ---- life ---- */

void gar_spilled_init(struct gar_spilled *run, struct gar_spill_file *file,
                      struct gar_schema *schema)
{
    *run = (struct gar_spilled){.file = file, .schema = gar_schema_ref(schema)};
}

void gar_spilled_release(struct gar_spilled *run, int64_t i)
{
    struct gar_spilled_block *block = &run->blocks[i];
    if (block->offset >= 0) {
        gar_spill_file_release(run->file, block->offset, block->bytes);
        block->offset = -1;
    }
}

void gar_spilled_destroy(struct gar_spilled *run)
{
    for (int64_t i = 0; i < run->count; i++) {
        gar_spilled_release(run, i);
    }
    gar_free(run->blocks);
    gar_schema_unref(run->schema);
    *run = (struct gar_spilled){.file = NULL};
}
