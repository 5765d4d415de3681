/* SPDX-License-Identifier: Apache-2.0 */
/* Texts: sinks, comparison, case, trimming, parts. Patterns are in like.c. */
#include "kernels/text.h"

#include <string.h>
#include <utf8proc.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "kernels/vector.h"

/* The first buffer of a sink; each further one is twice as large, up to the last. */
#define SINK_BUFFER_BYTES_MIN INT64_C(4096)
#define SINK_BUFFER_BYTES_MAX (INT64_C(1) << 20)

void gar_text_sink_destroy(struct gar_text_sink *sink)
{
    for (int64_t i = 0; i < sink->made; i++) {
        gar_buffer_unref(sink->buffers[i]);
    }
    gar_free(sink->buffers);
    gar_free(sink->pointers);
    memset(sink, 0, sizeof *sink);
}

void gar_text_sink_reset(struct gar_text_sink *sink)
{
    sink->count = 0;
    sink->used = 0;
}

static enum gar_status grow_arrays(struct gar_text_sink *sink, struct gar_error *err)
{
    if (sink->made < sink->capacity) {
        return GAR_OK;
    }
    int64_t capacity = sink->capacity;
    void *buffers = sink->buffers;
    GAR_TRY(
        gar_grow(&buffers, &capacity, sink->made + 1, (int64_t)sizeof(struct gar_buffer *), err));
    sink->buffers = buffers;
    /* cast through void *: the pointer array is ours to move although what it points to is const */
    void *pointers = (void *)sink->pointers;
    int64_t pointer_capacity = sink->capacity;
    GAR_TRY(
        gar_grow(&pointers, &pointer_capacity, sink->made + 1, (int64_t)sizeof(uint8_t *), err));
    sink->pointers = pointers;
    sink->capacity = capacity < pointer_capacity ? capacity : pointer_capacity;
    return GAR_OK;
}

/* A buffer with room for `bytes` becomes the last one in use. */
static enum gar_status next_buffer(struct gar_text_sink *sink, int64_t bytes, struct gar_error *err)
{
    if (sink->count < sink->made && sink->buffers[sink->count]->size >= bytes) {
        sink->count++;
        sink->used = 0;
        return GAR_OK;
    }
    if (sink->count >= INT32_MAX) {
        return gar_error_set(err, GAR_ERR_OVERFLOW, "texts of one column fill more than %d buffers",
                             INT32_MAX);
    }
    GAR_TRY(grow_arrays(sink, err));
    int64_t size =
        sink->count == 0 ? SINK_BUFFER_BYTES_MIN : 2 * sink->buffers[sink->count - 1]->size;
    size = size > SINK_BUFFER_BYTES_MAX ? SINK_BUFFER_BYTES_MAX : size;
    size = size < bytes ? bytes : size;
    struct gar_buffer *buffer = NULL;
    GAR_TRY(gar_buffer_new(sink->memory, size, &buffer, err));
    /* unused buffers behind this one are too small: put it before them */
    if (sink->count < sink->made) {
        sink->buffers[sink->made] = sink->buffers[sink->count];
        sink->pointers[sink->made] = sink->pointers[sink->count];
    }
    sink->buffers[sink->count] = buffer;
    sink->pointers[sink->count] = buffer->data;
    sink->made++;
    sink->count++;
    sink->used = 0;
    return GAR_OK;
}

enum gar_status gar_text_sink_room(struct gar_text_sink *sink, int64_t bytes, uint8_t **out,
                                   struct gar_error *err)
{
    if (bytes > INT32_MAX) {
        return gar_error_set(err, GAR_ERR_OVERFLOW, "a text of %lld bytes; the limit is %d",
                             (long long)bytes, INT32_MAX);
    }
    if (sink->count == 0 || sink->used + bytes > sink->buffers[sink->count - 1]->size) {
        GAR_TRY(next_buffer(sink, bytes, err));
    }
    *out = sink->buffers[sink->count - 1]->data + sink->used;
    return GAR_OK;
}

struct gar_string_view gar_text_sink_commit(struct gar_text_sink *sink, int64_t bytes)
{
    const int64_t last = sink->count - 1;
    const uint8_t *place = sink->pointers[last] + sink->used;
    const struct gar_string_view view =
        gar_view_make(place, (int32_t)bytes, (int32_t)last, (int32_t)sink->used);
    if (bytes > GAR_VIEW_INLINE_BYTES) {
        sink->used += bytes;
    }
    return view;
}

enum gar_status gar_text_sink_add(struct gar_text_sink *sink, const uint8_t *bytes, int64_t size,
                                  struct gar_string_view *out, struct gar_error *err)
{
    if (size <= GAR_VIEW_INLINE_BYTES) {
        *out = gar_view_make(bytes, (int32_t)size, 0, 0);
        return GAR_OK;
    }
    uint8_t *place = NULL;
    GAR_TRY(gar_text_sink_room(sink, size, &place, err));
    memcpy(place, bytes, (size_t)size);
    *out = gar_text_sink_commit(sink, size);
    return GAR_OK;
}

enum gar_status gar_text_sink_give(struct gar_text_sink *sink, struct gar_column *column,
                                   struct gar_error *err)
{
    for (int64_t i = 0; i < sink->count; i++) {
        int32_t index = 0;
        const enum gar_status status =
            gar_column_add_data(column, gar_buffer_ref(sink->buffers[i]), &index, err);
        if (status < 0) {
            gar_buffer_unref(sink->buffers[i]);
            return status;
        }
    }
    gar_text_sink_reset(sink);
    for (int64_t i = 0; i < sink->made; i++) {
        gar_buffer_unref(sink->buffers[i]);
    }
    sink->made = 0;
    return GAR_OK;
}

int64_t gar_text_find(const uint8_t *text, int64_t bytes, const uint8_t *part, int64_t part_bytes)
{
    if (part_bytes == 0) {
        return 0;
    }
    if (part_bytes > bytes) {
        return -1;
    }
    if (part_bytes == 1) {
        const uint8_t *found = memchr(text, part[0], (size_t)bytes);
        return found == NULL ? -1 : found - text;
    }
    return gar_vector_kernels()->find_part(text, bytes, part, part_bytes);
}

static uint32_t prefix_of(const struct gar_string_view *view)
{
    return __builtin_bswap32(gar_load_u32(view->inlined));
}

int32_t gar_text_compare(const struct gar_string_view *a, const uint8_t *const *a_data,
                         const struct gar_string_view *b, const uint8_t *const *b_data)
{
    /* unused inline bytes are zero, so that a shorter prefix sorts first by itself */
    const uint32_t a_prefix = prefix_of(a);
    const uint32_t b_prefix = prefix_of(b);
    if (a_prefix != b_prefix) {
        return a_prefix < b_prefix ? -1 : 1;
    }
    const int32_t shared = a->size < b->size ? a->size : b->size;
    if (shared > 4) {
        const uint8_t *x = gar_view_bytes(a, a_data);
        const uint8_t *y = gar_view_bytes(b, b_data);
        const int order = memcmp(x + 4, y + 4, (size_t)shared - 4);
        if (order != 0) {
            return order < 0 ? -1 : 1;
        }
    }
    return (a->size > b->size) - (a->size < b->size);
}

bool gar_text_equal(const struct gar_string_view *a, const uint8_t *const *a_data,
                    const struct gar_string_view *b, const uint8_t *const *b_data)
{
    uint64_t x[2];
    uint64_t y[2];
    memcpy(x, a, sizeof x);
    memcpy(y, b, sizeof y);
    if (x[0] != y[0]) {
        return false; /* size or prefix */
    }
    if (a->size <= GAR_VIEW_INLINE_BYTES) {
        return x[1] == y[1];
    }
    return memcmp(a_data[a->far.buffer] + a->far.offset, b_data[b->far.buffer] + b->far.offset,
                  (size_t)a->size) == 0;
}

int32_t gar_text_lower_char(int32_t code_point)
{
    if (code_point < 0x80) {
        return code_point >= 'A' && code_point <= 'Z' ? code_point + 0x20 : code_point;
    }
    return (int32_t)utf8proc_tolower(code_point);
}

static int32_t to_case_char(int32_t code_point, enum gar_text_case to)
{
    if (to == GAR_TEXT_LOWER) {
        return gar_text_lower_char(code_point);
    }
    if (code_point < 0x80) {
        return code_point >= 'a' && code_point <= 'z' ? code_point - 0x20 : code_point;
    }
    /* sharp s has no simple mapping; the library gives the rare capital letter */
    return code_point == 0xdf ? code_point : (int32_t)utf8proc_toupper(code_point);
}

enum gar_status gar_text_to_case(struct gar_text_sink *sink, enum gar_text_case to,
                                 const uint8_t *text, int64_t bytes, struct gar_string_view *out,
                                 struct gar_error *err)
{
    const struct gar_vector_kernels *kernels = gar_vector_kernels();
    const uint8_t first = to == GAR_TEXT_LOWER ? 'A' : 'a';
    if (bytes <= GAR_VIEW_INLINE_BYTES) {
        uint8_t small[GAR_VIEW_INLINE_BYTES] = {0};
        if (kernels->flip_case(text, small, bytes, first)) {
            *out = gar_view_make(small, (int32_t)bytes, 0, 0);
            return GAR_OK;
        }
    }
    uint8_t *place = NULL;
    /* a character of two bytes may become one of three; none grows beyond twice its bytes */
    GAR_TRY(gar_text_sink_room(sink, 2 * bytes, &place, err));
    if (kernels->flip_case(text, place, bytes, first)) {
        *out = gar_text_sink_commit(sink, bytes);
        return GAR_OK;
    }
    int64_t written = 0;
    for (int64_t i = 0; i < bytes;) {
        int32_t size = 0;
        const int32_t code_point = gar_utf8_decode(text + i, bytes - i, &size);
        char encoded[4];
        const int32_t encoded_size = gar_utf8_encode(to_case_char(code_point, to), encoded);
        memcpy(place + written, encoded, (size_t)encoded_size);
        written += encoded_size;
        i += size;
    }
    *out = gar_text_sink_commit(sink, written);
    return GAR_OK;
}

static bool is_space(int32_t c)
{
    return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000;
}

int64_t gar_text_space_before(const uint8_t *text, int64_t bytes)
{
    int64_t at = 0;
    while (at < bytes) {
        int32_t size = 0;
        if (!is_space(gar_utf8_decode(text + at, bytes - at, &size))) {
            break;
        }
        at += size;
    }
    return at;
}

int64_t gar_text_space_after(const uint8_t *text, int64_t bytes)
{
    int64_t end = bytes;
    while (end > 0) {
        int64_t start = end - 1;
        while (start > 0 && (text[start] & 0xc0) == 0x80) {
            start--;
        }
        int32_t size = 0;
        if (!is_space(gar_utf8_decode(text + start, end - start, &size))) {
            break;
        }
        end = start;
    }
    return bytes - end;
}

void gar_text_substr(const uint8_t *text, int64_t bytes, int64_t start, int64_t count,
                     int64_t *out_start, int64_t *out_bytes)
{
    if (start < 0) {
        const int64_t length = gar_utf8_length(text, bytes);
        start = start < -length ? 0 : length + start;
    }
    const int64_t first = gar_utf8_offset(text, bytes, start);
    const int64_t rest = bytes - first;
    *out_start = first;
    *out_bytes = count <= 0 ? 0 : count >= rest ? rest : gar_utf8_offset(text + first, rest, count);
}
