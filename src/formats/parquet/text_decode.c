/* SPDX-License-Identifier: Apache-2.0 */
/* Texts and fixed-length binaries of a loaded page as views.
 *
 * PLAIN and DELTA_LENGTH_BYTE_ARRAY give views into the page's own bytes. DELTA_BYTE_ARRAY and BYTE_STREAM_SPLIT build their
 * values in text buffers of the read. UTF-8 is checked on whole stretches where that proves each value, else value by value. */
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "formats/parquet/chunk_reader_priv.h"
#include "formats/parquet/split_priv.h"

#define STEP_VALUES 512
/* Built values of one page: a few bytes can repeat a long prefix without end. */
#define BUILT_PAGE_BYTES_MAX  (INT64_C(256) << 20)
#define TEXT_BUFFER_BYTES_MIN (64 * 1024)
#define ASCII_LENGTH_MAX      127

static enum gar_status fail_short(const struct gar_parquet_reader *reader, struct gar_error *err)
{
    return gar_parquet_page_fail(reader, err, "the page holds fewer bytes than its texts need");
}

static enum gar_status fail_utf8(const struct gar_parquet_reader *reader, struct gar_error *err)
{
    return gar_parquet_page_fail(reader, err,
                                 "the page has a text that is not valid UTF-8; to read its bytes, "
                                 "give the column the type binary in the schema");
}

enum gar_status gar_parquet_text_add(struct gar_parquet_reader *reader, struct gar_buffer *buffer,
                                     int32_t *out, struct gar_error *err)
{
    struct parquet_text *const text = &reader->text;
    void *items = text->buffers;
    const enum gar_status status =
        gar_grow(&items, &text->capacity, text->count + 1, (int64_t)sizeof *text->buffers, err);
    if (status < 0) {
        gar_buffer_unref(buffer);
        return status;
    }
    text->buffers = items;
    text->buffers[text->count] = buffer;
    text->room = 0;
    text->is_filling = false;
    *out = (int32_t)text->count++;
    return GAR_OK;
}

enum gar_status gar_parquet_text_reset(struct gar_parquet_reader *reader, struct gar_error *err)
{
    struct parquet_text *const text = &reader->text;
    enum gar_status status = GAR_OK;
    if (reader->last_bytes > 0 && text->count > 0) {
        struct gar_buffer *kept = NULL;
        status = gar_buffer_new(reader->memory, reader->last_bytes, &kept, err);
        if (status >= 0) {
            memcpy(kept->data, reader->last, (size_t)reader->last_bytes);
            gar_buffer_unref(reader->last_buffer);
            reader->last_buffer = kept;
            reader->last = kept->data;
        }
    }
    for (int64_t i = 0; i < text->count; i++) {
        gar_buffer_unref(text->buffers[i]);
    }
    text->count = 0;
    text->room = 0;
    text->is_filling = false;
    reader->state.view_buffer = -1;
    return status;
}

/* The number of the page's buffer among the read's text buffers. */
static enum gar_status use_page_buffer(struct gar_parquet_reader *reader, int32_t *out,
                                       struct gar_error *err)
{
    if (reader->state.view_buffer < 0) {
        GAR_TRY(gar_parquet_text_add(reader, gar_buffer_ref(reader->state.buffer),
                                     &reader->state.view_buffer, err));
    }
    *out = reader->state.view_buffer;
    return GAR_OK;
}

/* Low bytes that count of the first eight and the next four, by length. */
static const uint64_t low_mask[13] = {0,
                                      UINT64_C(0xff),
                                      UINT64_C(0xffff),
                                      UINT64_C(0xffffff),
                                      UINT64_C(0xffffffff),
                                      UINT64_C(0xffffffffff),
                                      UINT64_C(0xffffffffffff),
                                      UINT64_C(0xffffffffffffff),
                                      UINT64_MAX,
                                      UINT64_MAX,
                                      UINT64_MAX,
                                      UINT64_MAX,
                                      UINT64_MAX};
static const uint32_t high_mask[13] = {0, 0, 0,    0,      0,        0,         0,
                                       0, 0, 0xff, 0xffff, 0xffffff, 0xffffffff};

/* As gar_view_make; at least 12 bytes are readable at p. */
GAR_INLINE void put_view(struct gar_string_view *out, const uint8_t *p, uint32_t size,
                         int32_t buffer, int64_t offset)
{
    const uint32_t k = size < 12 ? size : 12;
    const uint64_t low = gar_load_u64(p) & low_mask[k];
    const uint64_t high = gar_load_u32(p + 8) & high_mask[k];
    const uint64_t inlined = (low >> 32) | (high << 32);
    const uint64_t far = (uint64_t)(uint32_t)buffer | ((uint64_t)offset << 32);
    const uint64_t words[2] = {size | (low << 32), size <= 12 ? inlined : far};
    memcpy(out, words, sizeof words);
}

/* Length-prefixed texts to views. Returns the place behind them, or NULL when they pass the end. */
static const uint8_t *view_plain(const uint8_t *p, const uint8_t *end, const uint8_t *start,
                                 int32_t buffer, int64_t count, struct gar_string_view *out,
                                 uint32_t *out_longest)
{
    uint32_t longest = 0;
    int64_t i = 0;
    /* With 16 bytes left a view can be made without looking where its text ends. */
    for (; i < count && end - p >= 16; i++) {
        const uint32_t size = gar_load_u32(p);
        p += 4;
        if (size > end - p) {
            return NULL;
        }
        put_view(&out[i], p, size, buffer, p - start);
        longest = size > longest ? size : longest;
        p += size;
    }
    for (; i < count; i++) {
        if (end - p < 4) {
            return NULL;
        }
        const uint32_t size = gar_load_u32(p);
        p += 4;
        if (size > end - p) {
            return NULL;
        }
        out[i] = gar_view_make(p, (int32_t)size, buffer, (int32_t)(p - start));
        longest = size > longest ? size : longest;
        p += size;
    }
    *out_longest = longest;
    return p;
}

static bool plain_is_utf8(const uint8_t *p, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t size = gar_load_u32(p);
        if (!gar_utf8_valid(p + 4, size)) {
            return false;
        }
        p += 4 + size;
    }
    return true;
}

static enum gar_status decode_plain(struct gar_parquet_reader *reader, int64_t count,
                                    struct gar_string_view *out, struct gar_error *err)
{
    struct parquet_page_state *const state = &reader->state;
    int32_t buffer = 0;
    GAR_TRY(use_page_buffer(reader, &buffer, err));
    const bool checks = reader->column->conversion == PARQUET_TEXT && !state->is_ascii;
    while (count > 0) {
        const int64_t n = checks ? gar_min_i64(count, STEP_VALUES) : count;
        uint32_t longest = 0;
        const uint8_t *const next =
            view_plain(state->next, state->end, state->start, buffer, n, out, &longest);
        if (next == NULL) {
            return fail_short(reader, err);
        }
        if (checks) {
            /* Lengths below 128 are ASCII bytes, so a sequence that runs over the end of a text is ill-formed in the whole
             * stretch too: one pass proves all. */
            const bool is_good = longest <= ASCII_LENGTH_MAX
                                     ? gar_utf8_valid(state->next, next - state->next)
                                     : plain_is_utf8(state->next, n);
            if (!is_good) {
                return fail_utf8(reader, err);
            }
        }
        state->next = next;
        out += n;
        count -= n;
    }
    return GAR_OK;
}

static enum gar_status decode_fixed(struct gar_parquet_reader *reader, int64_t count,
                                    struct gar_string_view *out, struct gar_error *err)
{
    struct parquet_page_state *const state = &reader->state;
    const int32_t width = reader->column->fixed_bytes;
    int32_t buffer = 0;
    const uint8_t *from = NULL;
    const uint8_t *start = NULL;
    if (state->encoding == PARQUET_BYTE_STREAM_SPLIT) {
        if (count > state->split_values - state->split_at) {
            return fail_short(reader, err);
        }
        struct gar_buffer *joined = NULL;
        GAR_TRY(gar_buffer_new(reader->memory, count * width, &joined, err));
        gar_split_join(state->next, state->split_values, state->split_at, count, width,
                       joined->data);
        from = joined->data;
        start = from;
        GAR_TRY(gar_parquet_text_add(reader, joined, &buffer, err));
        state->split_at += count;
    } else {
        if (width > 0 && count > (state->end - state->next) / width) {
            return fail_short(reader, err);
        }
        GAR_TRY(use_page_buffer(reader, &buffer, err));
        from = state->next;
        start = state->start;
        state->next += count * width;
    }
    for (int64_t i = 0; i < count; i++) {
        out[i] = gar_view_make(from, width, buffer, (int32_t)(from - start));
        from += width;
    }
    return GAR_OK;
}

/* Each text starts at a character, and all of them together are well-formed. */
static bool stretch_is_utf8(const uint8_t *p, const int32_t *lengths, int64_t count, int64_t bytes)
{
    if (!gar_utf8_valid(p, bytes)) {
        return false;
    }
    int64_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        if (at < bytes && (p[at] & 0xc0) == 0x80) {
            return false;
        }
        at += lengths[i];
    }
    return true;
}

static enum gar_status decode_delta_length(struct gar_parquet_reader *reader, int64_t count,
                                           struct gar_string_view *out, struct gar_error *err)
{
    struct parquet_page_state *const state = &reader->state;
    int32_t buffer = 0;
    GAR_TRY(use_page_buffer(reader, &buffer, err));
    int32_t lengths[STEP_VALUES];
    while (count > 0) {
        const int64_t n = gar_min_i64(count, STEP_VALUES);
        if (!gar_delta_read_i32(&state->lengths, n, lengths)) {
            return fail_short(reader, err);
        }
        int64_t total = 0;
        for (int64_t i = 0; i < n; i++) {
            if (lengths[i] < 0 || lengths[i] > state->end - state->next - total) {
                return gar_parquet_page_fail(
                    reader, err, "a text's length is negative or passes the page's end");
            }
            total += lengths[i];
        }
        if (reader->column->conversion == PARQUET_TEXT &&
            !stretch_is_utf8(state->next, lengths, n, total)) {
            return fail_utf8(reader, err);
        }
        for (int64_t i = 0; i < n; i++) {
            out[i] = gar_view_make(state->next, lengths[i], buffer,
                                   (int32_t)(state->next - state->start));
            state->next += lengths[i];
        }
        out += n;
        count -= n;
    }
    return GAR_OK;
}

/* Room for `bytes` at the end of a text buffer that is being filled. */
static enum gar_status text_room(struct gar_parquet_reader *reader, int64_t bytes,
                                 struct gar_error *err)
{
    struct parquet_text *const text = &reader->text;
    if (text->is_filling && text->room >= bytes) {
        return GAR_OK;
    }
    struct gar_buffer *buffer = NULL;
    const int64_t size = gar_max_i64(bytes, TEXT_BUFFER_BYTES_MIN);
    GAR_TRY(gar_buffer_new(reader->memory, size, &buffer, err));
    buffer->size = 0;
    int32_t number = 0;
    GAR_TRY(gar_parquet_text_add(reader, buffer, &number, err));
    text->room = size;
    text->is_filling = true;
    return GAR_OK;
}

/* Checks one step's prefixes and lengths; *out_total gets the bytes to build. */
static enum gar_status check_step(struct gar_parquet_reader *reader, int64_t n,
                                  const int32_t *prefixes, const int32_t *lengths,
                                  int64_t *out_total, struct gar_error *err)
{
    struct parquet_page_state *const state = &reader->state;
    const int32_t fixed =
        reader->column->physical == GAR_PARQUET_FIXED ? reader->column->fixed_bytes : -1;
    int64_t before = reader->last_bytes;
    int64_t total = 0;
    int64_t taken = 0;
    for (int64_t i = 0; i < n; i++) {
        if (prefixes[i] < 0 || prefixes[i] > before) {
            return gar_parquet_page_fail(reader, err,
                                         "a text shares more bytes than the one before it has");
        }
        if (lengths[i] < 0 || lengths[i] > state->end - state->next - taken) {
            return gar_parquet_page_fail(reader, err,
                                         "a text's length is negative or passes the page's end");
        }
        before = (int64_t)prefixes[i] + lengths[i];
        if (fixed >= 0 && before != fixed) {
            return gar_parquet_page_fail(reader, err,
                                         "a value of a fixed-length column has another length");
        }
        total += before;
        taken += lengths[i];
        if (total > BUILT_PAGE_BYTES_MAX - state->built_bytes) {
            return gar_parquet_page_fail(reader, err,
                                         "the page's texts would take more than 256 MiB");
        }
    }
    state->built_bytes += total;
    *out_total = total;
    return GAR_OK;
}

static enum gar_status decode_delta_bytes(struct gar_parquet_reader *reader, int64_t count,
                                          struct gar_string_view *out, struct gar_error *err)
{
    struct parquet_page_state *const state = &reader->state;
    int32_t prefixes[STEP_VALUES];
    int32_t lengths[STEP_VALUES];
    while (count > 0) {
        const int64_t n = gar_min_i64(count, STEP_VALUES);
        if (!gar_delta_read_i32(&state->delta, n, prefixes) ||
            !gar_delta_read_i32(&state->lengths, n, lengths)) {
            return fail_short(reader, err);
        }
        int64_t total = 0;
        GAR_TRY(check_step(reader, n, prefixes, lengths, &total, err));
        GAR_TRY(text_room(reader, total, err));
        struct parquet_text *const text = &reader->text;
        struct gar_buffer *const buffer = text->buffers[text->count - 1];
        for (int64_t i = 0; i < n; i++) {
            uint8_t *const to = buffer->data + buffer->size;
            const int64_t bytes = (int64_t)prefixes[i] + lengths[i];
            if (prefixes[i] > 0) {
                memcpy(to, reader->last, (size_t)prefixes[i]);
            }
            memcpy(to + prefixes[i], state->next, (size_t)lengths[i]);
            if (reader->column->conversion == PARQUET_TEXT && !gar_utf8_valid(to, bytes)) {
                return fail_utf8(reader, err);
            }
            out[i] = gar_view_make(to, (int32_t)bytes, (int32_t)(text->count - 1),
                                   (int32_t)buffer->size);
            state->next += lengths[i];
            buffer->size += bytes;
            reader->last = to;
            reader->last_bytes = bytes;
        }
        text->room -= total;
        out += n;
        count -= n;
    }
    return GAR_OK;
}

enum gar_status gar_parquet_decode_views(struct gar_parquet_reader *reader, int64_t count,
                                         struct gar_string_view *out, struct gar_error *err)
{
    if (count == 0) {
        return GAR_OK;
    }
    if (reader->state.encoding == PARQUET_DELTA_BYTE_ARRAY) {
        return decode_delta_bytes(reader, count, out, err);
    }
    if (reader->column->physical == GAR_PARQUET_FIXED) {
        return decode_fixed(reader, count, out, err);
    }
    return reader->state.encoding == PARQUET_PLAIN ? decode_plain(reader, count, out, err)
                                                   : decode_delta_length(reader, count, out, err);
}

enum gar_status gar_parquet_skip_views(struct gar_parquet_reader *reader, int64_t count,
                                       struct gar_error *err)
{
    struct parquet_page_state *const state = &reader->state;
    if (state->encoding == PARQUET_PLAIN) {
        const uint8_t *p = state->next;
        for (int64_t i = 0; i < count; i++) {
            if (state->end - p < 4 || gar_load_u32(p) > state->end - p - 4) {
                return fail_short(reader, err);
            }
            p += 4 + (int64_t)gar_load_u32(p);
        }
        state->next = p;
        return GAR_OK;
    }
    /* Lengths must be added up, and each built value is the base of the next one. */
    struct gar_string_view views[STEP_VALUES];
    while (count > 0) {
        const int64_t n = gar_min_i64(count, STEP_VALUES);
        GAR_TRY(gar_parquet_decode_views(reader, n, views, err));
        count -= n;
    }
    return GAR_OK;
}
