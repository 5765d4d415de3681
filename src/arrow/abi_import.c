/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow arrays to columns.
 *
 * The moved ArrowArray lives in one counted holder; every buffer that is shared keeps a reference to it, and the last one calls
 * the producer's release. The C data interface says nothing of buffer sizes, so a producer's lengths are the only bounds:
 * they are checked for sense, and every offset, view, code and run end is checked against them before it is used. */
#include <string.h>

#include "arrow/abi.h"
#include "arrow/abi_priv.h"
#include "arrow/gather.h"
#include "arrow/refs_priv.h"
#include "base/alloc.h"
#include "base/utf8.h"

/* Row counts and offsets beyond this are lies. */
#define ROWS_MAX       (INT64_C(1) << 48)
#define VIEW_BYTES_MAX INT64_C(0x7fffffff)

struct holder {
    int64_t refs; /* atomic */
    struct ArrowArray array;
};

struct import {
    struct holder *holder;
    struct gar_memory *memory;
};

/* Rows [start, start + length) of the buffers of one array. */
struct span {
    const struct ArrowArray *array;
    int64_t start;
    int64_t length;
};

static enum gar_status import_rows(const struct import *in, const struct ArrowSchema *abi,
                                   const struct ArrowArray *array, int64_t offset, int64_t length,
                                   int32_t depth, struct gar_column **out, struct gar_error *err);

/* ---- the holder ---- */

static void unref_holder(void *context)
{
    struct holder *holder = context;
    if (ref_drop(&holder->refs)) {
        holder->array.release(&holder->array);
        gar_free(holder);
    }
}

static enum gar_status take_array(struct ArrowArray *array, struct holder **out,
                                  struct gar_error *err)
{
    if (array->release == NULL) {
        return gar_error_set(err, GAR_ERR_FORMAT, "an Arrow array that is already released");
    }
    struct holder *holder = gar_malloc((int64_t)sizeof *holder);
    if (holder == NULL) {
        array->release(array);
        array->release = NULL;
        return gar_error_nomem(err, (int64_t)sizeof *holder);
    }
    holder->refs = 1;
    holder->array = *array;
    array->release = NULL;
    *out = holder;
    return GAR_OK;
}

/* A buffer over the producer's memory. */
static enum gar_status share(const struct import *in, const void *data, int64_t bytes,
                             struct gar_buffer **out, struct gar_error *err)
{
    GAR_TRY(gar_buffer_new_foreign(data, bytes, unref_holder, in->holder, out, err));
    ref_add(&in->holder->refs);
    return GAR_OK;
}

/* ---- reading buffers ---- */

static enum gar_status malformed(struct gar_error *err, const char *what)
{
    return gar_error_set(err, GAR_ERR_FORMAT, "malformed Arrow array: %s", what);
}

/* Buffer i, which must be there when rows are. */
static enum gar_status need_buffer(const struct span *s, int64_t i, const void **out,
                                   struct gar_error *err)
{
    if (s->array->n_buffers <= i || s->array->buffers == NULL) {
        return malformed(err, "too few buffers for its type");
    }
    *out = s->array->buffers[i];
    if (*out == NULL && s->length > 0) {
        return malformed(err, "a missing buffer");
    }
    return GAR_OK;
}

static bool is_aligned(const void *p, int32_t width)
{
    return width <= 1 || ((uintptr_t)p & ((uintptr_t)width - 1)) == 0;
}

/* Validity of the span, shared; no buffer when every row is valid. */
static enum gar_status import_validity(const struct import *in, const struct span *s,
                                       struct gar_column_parts *parts, struct gar_error *err)
{
    const struct ArrowArray *a = s->array;
    const void *bits = a->n_buffers > 0 && a->buffers != NULL ? a->buffers[0] : NULL;
    if (bits == NULL) {
        return a->null_count > 0 ? malformed(err, "nulls without a validity bitmap") : GAR_OK;
    }
    const int64_t nulls = s->length - gar_bits_count(bits, s->start, s->length);
    if (nulls == 0) {
        return GAR_OK;
    }
    if (a->null_count == 0) {
        return malformed(err, "a null count of 0 beside a bitmap with nulls");
    }
    GAR_TRY(share(in, bits, gar_bits_bytes(s->start + s->length), &parts->validity, err));
    parts->validity_offset = s->start;
    parts->null_count = nulls;
    return GAR_OK;
}

static bool row_is_null(const struct gar_column_parts *parts, int64_t i)
{
    return parts->validity != NULL &&
           !gar_bit_get(parts->validity->data, parts->validity_offset + i);
}

/* ---- fixed-width values ---- */

static enum gar_status import_direct(const struct import *in, const struct span *s, int32_t width,
                                     struct gar_column_parts *parts, struct gar_error *err)
{
    const void *data = NULL;
    GAR_TRY(need_buffer(s, 1, &data, err));
    if (s->length == 0) {
        return gar_buffer_new(in->memory, 0, &parts->values, err);
    }
    if (is_aligned(data, width)) {
        parts->values_offset = s->start;
        return share(in, data, (s->start + s->length) * width, &parts->values, err);
    }
    GAR_TRY(gar_buffer_new(in->memory, s->length * width, &parts->values, err));
    memcpy(parts->values->data, (const uint8_t *)data + s->start * width,
           (size_t)(s->length * width));
    return GAR_OK;
}

static enum gar_status import_bool(const struct import *in, const struct span *s,
                                   struct gar_column_parts *parts, struct gar_error *err)
{
    const void *data = NULL;
    GAR_TRY(need_buffer(s, 1, &data, err));
    if (s->length == 0) {
        return gar_buffer_new(in->memory, 0, &parts->values, err);
    }
    parts->values_offset = s->start;
    return share(in, data, gar_bits_bytes(s->start + s->length), &parts->values, err);
}

/* IEEE binary16 to binary32. */
static float float_from_half(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t exponent = (half >> 10) & 0x1fu;
    uint32_t mantissa = half & 0x3ffu;
    uint32_t bits = 0;
    if (exponent == 0x1f) {
        bits = sign | 0x7f800000u | (mantissa << 13);
    } else if (exponent != 0) {
        bits = sign | ((exponent + 112u) << 23) | (mantissa << 13);
    } else if (mantissa != 0) { /* subnormal: shift until the leading one is implied */
        uint32_t shift = 0;
        while ((mantissa & 0x400u) == 0) {
            mantissa <<= 1;
            shift++;
        }
        bits = sign | ((113u - shift) << 23) | ((mantissa & 0x3ffu) << 13);
    } else {
        bits = sign;
    }
    float out;
    memcpy(&out, &bits, sizeof out);
    return out;
}

static void convert_halves(const uint8_t *from, float *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, from + 2 * i, sizeof half);
        to[i] = float_from_half(half);
    }
}

static enum gar_status convert_dates(const uint8_t *from, int32_t *to, int64_t n,
                                     const struct gar_column_parts *parts, struct gar_error *err)
{
    const int64_t day_ms = 86400000;
    for (int64_t i = 0; i < n; i++) {
        int64_t ms;
        memcpy(&ms, from + 8 * i, sizeof ms);
        const int64_t days = ms / day_ms - (ms % day_ms < 0 ? 1 : 0);
        const bool fits = days >= INT32_MIN && days <= INT32_MAX;
        if (!fits && !row_is_null(parts, i)) {
            return gar_error_set(err, GAR_ERR_OVERFLOW,
                                 "date64 value %lld at row %lld is beyond a date", (long long)ms,
                                 (long long)i);
        }
        to[i] = fits ? (int32_t)days : 0;
    }
    return GAR_OK;
}

static void convert_times(const uint8_t *from, int64_t *to, int64_t n, int32_t factor)
{
    for (int64_t i = 0; i < n; i++) {
        int32_t v;
        memcpy(&v, from + 4 * i, sizeof v);
        to[i] = (int64_t)v * factor;
    }
}

/* decimal32, 64 and 256 to 128; digits are checked afterwards with the column. */
static enum gar_status convert_decimals(const uint8_t *from, gar_i128 *to, int64_t n, int32_t width,
                                        const struct gar_column_parts *parts, struct gar_error *err)
{
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *p = from + i * width;
        if (width == 4) {
            int32_t v;
            memcpy(&v, p, sizeof v);
            to[i] = v;
        } else if (width == 8) {
            int64_t v;
            memcpy(&v, p, sizeof v);
            to[i] = v;
        } else {
            gar_i128 low;
            gar_i128 high;
            memcpy(&low, p, sizeof low);
            memcpy(&high, p + 16, sizeof high);
            if (high != (low < 0 ? -1 : 0) && !row_is_null(parts, i)) {
                return gar_error_set(err, GAR_ERR_OVERFLOW,
                                     "a decimal256 with more than 38 digits at row %lld",
                                     (long long)i);
            }
            to[i] = low;
        }
    }
    return GAR_OK;
}

static enum gar_status import_converted(const struct import *in, const struct span *s,
                                        const struct abi_format *format,
                                        struct gar_column_parts *parts, struct gar_error *err)
{
    const void *data = NULL;
    GAR_TRY(need_buffer(s, 1, &data, err));
    GAR_TRY(
        gar_buffer_new(in->memory, s->length * gar_type_width(parts->type), &parts->values, err));
    if (s->length == 0) {
        return GAR_OK;
    }
    const uint8_t *from = (const uint8_t *)data + s->start * format->width;
    void *to = parts->values->data;
    if (format->layout == ABI_FLOAT16) {
        convert_halves(from, to, s->length);
    } else if (format->layout == ABI_TIME32) {
        convert_times(from, to, s->length, format->factor);
    } else if (format->layout == ABI_DATE64) {
        return convert_dates(from, to, s->length, parts, err);
    } else {
        return convert_decimals(from, to, s->length, format->width, parts, err);
    }
    return GAR_OK;
}

/* ---- text ---- */

/* Bits of the first 8 and of the next 4 inline bytes that a text of so many bytes uses. */
static const uint64_t low_masks[GAR_VIEW_INLINE_BYTES + 1] = {
    0,
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
    UINT64_MAX,
};
static const uint32_t high_masks[GAR_VIEW_INLINE_BYTES + 1] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xffff, 0xffffff, UINT32_MAX};
#define HIGH_BITS UINT64_C(0x8080808080808080)

/* The view of `size` (0..12) bytes; reads 12 bytes when so many are there. */
GAR_INLINE struct gar_string_view short_view(const uint8_t *bytes, int32_t size, bool has_12)
{
    struct gar_string_view v;
    if (GAR_UNLIKELY(!has_12)) {
        return gar_view_make(bytes, size, 0, 0);
    }
    const uint64_t low = gar_load_u64(bytes) & low_masks[size];
    const uint32_t high = gar_load_u32(bytes + 8) & high_masks[size];
    v.size = size;
    memcpy(v.inlined, &low, sizeof low);
    memcpy(v.inlined + 8, &high, sizeof high);
    return v;
}

/* The view of a text of more than 12 bytes. */
GAR_INLINE struct gar_string_view far_view(const uint8_t *bytes, int32_t size, int32_t buffer,
                                           int32_t offset)
{
    struct gar_string_view v = {.size = size, .far = {.buffer = buffer, .offset = offset}};
    memcpy(v.far.prefix, bytes, sizeof v.far.prefix);
    return v;
}

/* Text with offsets being turned into views. Data longer than a view's offset can say is shared as several buffers. */
struct text_import {
    const struct import *in;
    const uint8_t *data;
    int64_t end;  /* of the bytes in use */
    int64_t base; /* where the newest buffer starts */
    struct gar_buffer **buffers;
    int64_t capacity;
    int32_t count;
};

/* Makes sure [begin, begin + size) lies in the newest buffer. */
static enum gar_status cover(struct text_import *t, int64_t begin, int64_t size,
                             struct gar_error *err)
{
    if (t->count > 0 && begin + size - t->base <= VIEW_BYTES_MAX) {
        return GAR_OK;
    }
    if (size > VIEW_BYTES_MAX) {
        return gar_error_set(err, GAR_ERR_OVERFLOW, "a text of %lld bytes; the limit is %lld",
                             (long long)size, (long long)VIEW_BYTES_MAX);
    }
    void *items = t->buffers;
    GAR_TRY(
        gar_grow(&items, &t->capacity, (int64_t)t->count + 1, (int64_t)sizeof t->buffers[0], err));
    t->buffers = items;
    const int64_t bytes = gar_min_i64(t->end - begin, VIEW_BYTES_MAX);
    GAR_TRY(share(t->in, t->data + begin, bytes, &t->buffers[t->count], err));
    t->base = begin;
    t->count++;
    return GAR_OK;
}

static int64_t offset_at(const void *offsets, int32_t width, int64_t i)
{
    if (width == 4) {
        int32_t v;
        memcpy(&v, (const uint8_t *)offsets + 4 * i, sizeof v);
        return v;
    }
    int64_t v;
    memcpy(&v, (const uint8_t *)offsets + 8 * i, sizeof v);
    return v;
}

static enum gar_status bad_utf8(struct gar_error *err, int64_t row)
{
    return gar_error_set(
        err, GAR_ERR_FORMAT,
        "the string at row %lld is not valid UTF-8; import it as binary to keep the bytes",
        (long long)row);
}

static enum gar_status check_offsets(const struct span *s, const void *offsets, int32_t width,
                                     struct gar_error *err)
{
    int64_t last = offset_at(offsets, width, s->start);
    if (last < 0 || last > ROWS_MAX) {
        return malformed(err, "a negative text offset");
    }
    for (int64_t i = 1; i <= s->length; i++) {
        const int64_t next = offset_at(offsets, width, s->start + i);
        if (next < last) {
            return malformed(err, "text offsets that fall");
        }
        last = next;
    }
    return last <= ROWS_MAX ? GAR_OK : malformed(err, "a text offset beyond belief");
}

/* Are all bytes of the span well-formed, and does every value start at a character? Then no value needs its own check. */
static bool whole_is_utf8(const uint8_t *data, int64_t begin, int64_t end)
{
    return end == begin || gar_utf8_valid(data + begin, end - begin);
}

/* One loop for each width of the offsets, with and without nulls: the flags are constants where it is called. */
GAR_INLINE enum gar_status fill_views_as(struct text_import *t, const struct span *s,
                                         const void *offsets, const struct gar_column_parts *parts,
                                         struct gar_error *err, int32_t width, bool with_nulls)
{
    struct gar_string_view *views = (struct gar_string_view *)(void *)parts->values->data;
    const int64_t first = offset_at(offsets, width, s->start);
    const bool is_string = parts->type.id == GAR_STRING;
    const bool all_good = is_string && whole_is_utf8(t->data, first, t->end);
    int64_t begin = first;
    for (int64_t i = 0; i < s->length; i++) {
        const int64_t end = offset_at(offsets, width, s->start + i + 1);
        const int64_t size = end - begin;
        const uint8_t *bytes = t->data + begin;
        if (size <= 0 || (with_nulls && row_is_null(parts, i))) {
            memset(&views[i], 0, sizeof views[i]);
            begin = end;
            continue;
        }
        if (is_string && (all_good ? (bytes[0] & 0xC0u) == 0x80u ||
                                         (end < t->end && (t->data[end] & 0xC0u) == 0x80u)
                                   : !gar_utf8_valid(bytes, size))) {
            return bad_utf8(err, i);
        }
        if (size <= GAR_VIEW_INLINE_BYTES) {
            views[i] = short_view(bytes, (int32_t)size, t->end - begin >= GAR_VIEW_INLINE_BYTES);
        } else {
            GAR_TRY(cover(t, begin, size, err));
            views[i] = far_view(bytes, (int32_t)size, t->count - 1, (int32_t)(begin - t->base));
        }
        begin = end;
    }
    return GAR_OK;
}

static enum gar_status fill_views(struct text_import *t, const struct span *s, const void *offsets,
                                  int32_t width, const struct gar_column_parts *parts,
                                  struct gar_error *err)
{
    if (width == 4) {
        return parts->validity != NULL ? fill_views_as(t, s, offsets, parts, err, 4, true)
                                       : fill_views_as(t, s, offsets, parts, err, 4, false);
    }
    return parts->validity != NULL ? fill_views_as(t, s, offsets, parts, err, 8, true)
                                   : fill_views_as(t, s, offsets, parts, err, 8, false);
}

/* Moves the buffers made so far into parts (kept for clean-up on failure too). */
static void hand_over(struct text_import *t, struct gar_column_parts *parts)
{
    parts->data = t->buffers;
    parts->data_count = t->count;
}

static enum gar_status import_offsets(const struct import *in, const struct span *s, int32_t width,
                                      struct gar_column_parts *parts, struct gar_error *err)
{
    const void *offsets = NULL;
    const void *data = NULL;
    GAR_TRY(need_buffer(s, 1, &offsets, err));
    GAR_TRY(gar_buffer_new(in->memory, s->length * (int64_t)sizeof(struct gar_string_view),
                           &parts->values, err));
    if (s->length == 0) {
        return GAR_OK;
    }
    GAR_TRY(check_offsets(s, offsets, width, err));
    struct text_import t = {.in = in, .end = offset_at(offsets, width, s->start + s->length)};
    if (s->array->n_buffers < 3) {
        return malformed(err, "too few buffers for its type");
    }
    data = s->array->buffers[2];
    if (data == NULL && t.end > 0) {
        return malformed(err, "a missing buffer");
    }
    t.data = data;
    const enum gar_status status = fill_views(&t, s, offsets, width, parts, err);
    hand_over(&t, parts);
    return status;
}

static enum gar_status import_fixed_binary(const struct import *in, const struct span *s,
                                           int32_t width, struct gar_column_parts *parts,
                                           struct gar_error *err)
{
    const void *data = NULL;
    GAR_TRY(need_buffer(s, 1, &data, err));
    GAR_TRY(gar_buffer_new_zeroed(in->memory, s->length * (int64_t)sizeof(struct gar_string_view),
                                  &parts->values, err));
    struct gar_string_view *views = (struct gar_string_view *)(void *)parts->values->data;
    struct text_import t = {.in = in, .data = data, .end = (s->start + s->length) * width};
    enum gar_status status = GAR_OK;
    for (int64_t i = 0; i < s->length && status >= 0; i++) {
        if (row_is_null(parts, i)) {
            continue;
        }
        const int64_t begin = (s->start + i) * width;
        if (width > GAR_VIEW_INLINE_BYTES) {
            status = cover(&t, begin, width, err);
        }
        if (status >= 0) {
            views[i] = gar_view_make(t.data + begin, width, t.count - 1, (int32_t)(begin - t.base));
        }
    }
    hand_over(&t, parts);
    return status;
}

/* ---- views ---- */

enum view_fault { VIEW_GOOD, VIEW_UNTIDY, VIEW_OUTSIDE, VIEW_NOT_UTF8 };

/* UNTIDY: right bytes, but padding or prefix differ from what equality relies on. */
static enum view_fault judge_view(const struct gar_string_view *v,
                                  const struct gar_column_parts *parts, bool good_data)
{
    if (v->size < 0) {
        return VIEW_OUTSIDE;
    }
    const uint8_t *bytes = v->inlined;
    enum view_fault fault = VIEW_GOOD;
    if (v->size <= GAR_VIEW_INLINE_BYTES) {
        const struct gar_string_view tidy = short_view(v->inlined, v->size, true);
        fault = memcmp(&tidy, v, sizeof tidy) == 0 ? VIEW_GOOD : VIEW_UNTIDY;
    } else {
        if (v->far.buffer < 0 || v->far.buffer >= parts->data_count || v->far.offset < 0) {
            return VIEW_OUTSIDE;
        }
        const struct gar_buffer *buffer = parts->data[v->far.buffer];
        if (v->far.offset > buffer->size || v->size > buffer->size - v->far.offset) {
            return VIEW_OUTSIDE;
        }
        bytes = buffer->data + v->far.offset;
        fault = memcmp(bytes, v->far.prefix, sizeof v->far.prefix) == 0 ? VIEW_GOOD : VIEW_UNTIDY;
        if (good_data) {
            const int64_t end = (int64_t)v->far.offset + v->size;
            const bool cut = (bytes[0] & 0xC0u) == 0x80u ||
                             (end < buffer->size && (buffer->data[end] & 0xC0u) == 0x80u);
            return cut ? VIEW_NOT_UTF8 : fault;
        }
    }
    return parts->type.id == GAR_STRING && !gar_utf8_valid(bytes, v->size) ? VIEW_NOT_UTF8 : fault;
}

/* The same views with tidy padding and prefixes and zero under nulls. */
static enum gar_status tidy_views(const struct import *in, const struct span *s,
                                  const uint8_t *from, struct gar_column_parts *parts,
                                  struct gar_error *err)
{
    GAR_TRY(gar_buffer_new_zeroed(in->memory, s->length * (int64_t)sizeof(struct gar_string_view),
                                  &parts->values, err));
    struct gar_string_view *views = (struct gar_string_view *)(void *)parts->values->data;
    for (int64_t i = 0; i < s->length; i++) {
        if (row_is_null(parts, i)) {
            continue;
        }
        struct gar_string_view v;
        memcpy(&v, from + i * (int64_t)sizeof v, sizeof v);
        views[i] = v.size <= GAR_VIEW_INLINE_BYTES
                       ? short_view(v.inlined, v.size, true)
                       : gar_view_make(parts->data[v.far.buffer]->data + v.far.offset, v.size,
                                       v.far.buffer, v.far.offset);
    }
    return GAR_OK;
}

static enum gar_status share_view_data(const struct import *in, const struct ArrowArray *array,
                                       struct gar_column_parts *parts, struct gar_error *err)
{
    if (array->n_buffers < 3 || array->n_buffers > INT32_MAX || array->buffers == NULL) {
        return malformed(err, "too few buffers for views");
    }
    const int64_t count = array->n_buffers - 3;
    const void *sizes = array->buffers[array->n_buffers - 1];
    if (count == 0) {
        return GAR_OK;
    }
    if (sizes == NULL) {
        return malformed(err, "views without the sizes of their buffers");
    }
    parts->data = gar_calloc(count, (int64_t)sizeof parts->data[0]);
    if (parts->data == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof parts->data[0]);
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t size = offset_at(sizes, 8, i);
        const void *data = array->buffers[2 + i];
        if (size < 0 || size > ROWS_MAX || (data == NULL && size > 0)) {
            return malformed(err, "a data buffer of impossible size");
        }
        GAR_TRY(share(in, data != NULL ? data : "", size, &parts->data[i], err));
        parts->data_count = (int32_t)(i + 1);
    }
    return GAR_OK;
}

/* A short ASCII text (or any short binary) with nothing behind its end: good without a closer look. */
GAR_INLINE bool is_plain_short(const uint8_t *view, uint64_t forbidden)
{
    int32_t size;
    memcpy(&size, view, sizeof size);
    if ((uint32_t)size > GAR_VIEW_INLINE_BYTES) {
        return false;
    }
    const uint64_t low = gar_load_u64(view + 4);
    const uint32_t high = gar_load_u32(view + 12);
    return ((low & (~low_masks[size] | forbidden)) |
            (high & (~high_masks[size] | (uint32_t)forbidden))) == 0;
}

/* Is each data buffer well-formed as a whole? Then a far text only needs to start and end between characters. Not asked
 * where the buffers hold much more than the rows can use. */
static bool data_is_utf8(const struct gar_column_parts *parts)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < parts->data_count; i++) {
        bytes += parts->data[i]->size;
    }
    bool good = parts->type.id == GAR_STRING && bytes / 64 <= parts->length;
    for (int32_t i = 0; good && i < parts->data_count; i++) {
        good = gar_utf8_valid(parts->data[i]->data, parts->data[i]->size);
    }
    return good;
}

static enum gar_status import_views(const struct import *in, const struct span *s,
                                    struct gar_column_parts *parts, struct gar_error *err)
{
    const void *data = NULL;
    GAR_TRY(need_buffer(s, 1, &data, err));
    GAR_TRY(share_view_data(in, s->array, parts, err));
    if (s->length == 0) {
        return gar_buffer_new(in->memory, 0, &parts->values, err);
    }
    const uint8_t *from =
        (const uint8_t *)data + s->start * (int64_t)sizeof(struct gar_string_view);
    bool tidy = is_aligned(data, (int32_t)sizeof(int64_t));
    const bool good_data = data_is_utf8(parts);
    const uint64_t forbidden = parts->type.id == GAR_STRING ? HIGH_BITS : 0;
    for (int64_t i = 0; i < s->length; i++) {
        struct gar_string_view v;
        if (is_plain_short(from + i * (int64_t)sizeof v, forbidden)) {
            continue;
        }
        memcpy(&v, from + i * (int64_t)sizeof v, sizeof v);
        const enum view_fault fault = judge_view(&v, parts, good_data);
        if (fault != VIEW_GOOD) {
            tidy = false;
            if (fault != VIEW_UNTIDY && !row_is_null(parts, i)) {
                return fault == VIEW_OUTSIDE
                           ? gar_error_set(
                                 err, GAR_ERR_FORMAT,
                                 "malformed Arrow array: the text at row %lld lies outside "
                                 "its buffers",
                                 (long long)i)
                           : bad_utf8(err, i);
            }
        }
    }
    if (!tidy) {
        return tidy_views(in, s, from, parts, err);
    }
    parts->values_offset = s->start;
    return share(in, data, (s->start + s->length) * (int64_t)sizeof(struct gar_string_view),
                 &parts->values, err);
}

/* ---- dictionaries and runs ---- */

/* Index i of a dictionary array as it is written, -1 when it is none. */
static int64_t index_at(const uint8_t *data, const struct abi_format *format, int64_t i)
{
    switch (format->width) {
    case 1: return format->is_unsigned ? (int64_t)data[i] : (int64_t)((const int8_t *)data)[i];
    case 2: {
        int16_t v;
        memcpy(&v, data + 2 * i, sizeof v);
        return format->is_unsigned ? (int64_t)(uint16_t)v : v;
    }
    case 4: {
        int32_t v;
        memcpy(&v, data + 4 * i, sizeof v);
        return format->is_unsigned ? (int64_t)(uint32_t)v : v;
    }
    default:
        return offset_at(data, 8,
                         i); /* a uint64 beyond int64 is negative here, so out of range as well */
    }
}

/* Rows of the dictionary for each row: -1 for null. */
static enum gar_status read_indices(const struct span *s, const struct abi_format *format,
                                    const struct gar_column_parts *parts, int64_t dictionary_rows,
                                    int64_t *rows, struct gar_error *err)
{
    const void *data = NULL;
    GAR_TRY(need_buffer(s, 1, &data, err));
    for (int64_t i = 0; i < s->length; i++) {
        if (row_is_null(parts, i)) {
            rows[i] = -1;
            continue;
        }
        rows[i] = index_at(data, format, s->start + i);
        if (rows[i] < 0 || rows[i] >= dictionary_rows) {
            return gar_error_set(
                err, GAR_ERR_FORMAT,
                "malformed Arrow array: index %lld at row %lld in a dictionary of %lld entries",
                (long long)rows[i], (long long)i, (long long)dictionary_rows);
        }
    }
    return GAR_OK;
}

/* rows (int64) -> DICTIONARY column over a flat dictionary without nulls. Takes no reference of `dictionary`. */
static enum gar_status make_dictionary(const struct import *in, const int64_t *rows,
                                       const struct span *s, struct gar_column_parts *parts,
                                       struct gar_column *dictionary, struct gar_column **out,
                                       struct gar_error *err)
{
    struct gar_buffer *codes = NULL;
    struct gar_buffer *validity = NULL;
    GAR_TRY(gar_buffer_new(in->memory, s->length * (int64_t)sizeof(uint32_t), &codes, err));
    uint32_t *to = (uint32_t *)(void *)codes->data;
    for (int64_t i = 0; i < s->length; i++) {
        to[i] = rows[i] < 0 ? 0 : (uint32_t)rows[i];
    }
    enum gar_status status = GAR_OK;
    if (parts->validity != NULL) { /* the column's bitmap starts at bit 0 */
        status = gar_buffer_new(in->memory, gar_bits_bytes(s->length), &validity, err);
        if (status >= 0) {
            gar_bits_copy(validity->data, 0, parts->validity->data, parts->validity_offset,
                          s->length);
        }
    }
    if (status >= 0) {
        struct gar_column *shared = gar_column_ref(dictionary);
        status = gar_column_new_dictionary(codes, s->length, validity, parts->null_count, shared,
                                           gar_dictionary_next_id(), out, err);
        if (status < 0) {
            gar_column_unref(shared);
        }
    }
    if (status < 0) {
        gar_buffer_unref(codes);
        gar_buffer_unref(validity);
    }
    return status;
}

static enum gar_status import_dictionary(const struct import *in, const struct ArrowSchema *abi,
                                         const struct span *s, const struct abi_format *format,
                                         struct gar_column_parts *parts, int32_t depth,
                                         struct gar_column **out, struct gar_error *err)
{
    const struct ArrowArray *entries = s->array->dictionary;
    if (entries == NULL) {
        return malformed(err, "a dictionary type without a dictionary");
    }
    struct gar_column *imported = NULL;
    struct gar_column *dictionary = NULL;
    struct gar_buffer *rows = NULL;
    enum gar_status status =
        import_rows(in, abi->dictionary, entries, 0, entries->length, depth + 1, &imported, err);
    if (status >= 0) {
        status = gar_column_flatten(imported, in->memory, &dictionary, err);
    }
    if (status >= 0) {
        status = gar_buffer_new(in->memory, s->length * (int64_t)sizeof(int64_t), &rows, err);
    }
    if (status >= 0) {
        int64_t *numbers = (int64_t *)(void *)rows->data;
        status = read_indices(s, format, parts, dictionary->length, numbers, err);
        if (status >= 0 && (gar_column_null_count(dictionary) != 0 || dictionary->length == 0 ||
                            dictionary->length > UINT32_MAX || dictionary->type.id == GAR_NULL)) {
            status = gar_column_gather_i64(dictionary, numbers, s->length, in->memory, out, err);
        } else if (status >= 0) {
            status = make_dictionary(in, numbers, s, parts, dictionary, out, err);
        }
    }
    gar_buffer_unref(rows);
    gar_column_unref(dictionary);
    gar_column_unref(imported);
    return status;
}

static int64_t run_end_at(const void *ends, int32_t width, int64_t i)
{
    if (width == 2) {
        int16_t v;
        memcpy(&v, (const uint8_t *)ends + 2 * i, sizeof v);
        return v;
    }
    return offset_at(ends, width, i);
}

/* The value row of each row of the span. */
static enum gar_status expand_runs(const struct span *s, const struct span *ends, int32_t width,
                                   int64_t value_rows, int64_t *rows, struct gar_error *err)
{
    const void *data = NULL;
    GAR_TRY(need_buffer(ends, 1, &data, err));
    int64_t done = 0;
    int64_t last = 0;
    for (int64_t run = 0; run < ends->length && done < s->length; run++) {
        const int64_t end = run_end_at(data, width, ends->start + run);
        if (end <= last || run >= value_rows) {
            return malformed(err, "run ends that do not rise or have no values");
        }
        last = end;
        for (; done < s->length && s->start + done < end; done++) {
            rows[done] = run;
        }
    }
    return done == s->length ? GAR_OK : malformed(err, "runs that end before the last row");
}

static enum gar_status import_runs(const struct import *in, const struct ArrowSchema *abi,
                                   const struct span *s, int32_t width, int32_t depth,
                                   struct gar_column **out, struct gar_error *err)
{
    const struct ArrowArray *a = s->array;
    if (a->n_children != 2 || a->children == NULL || a->children[0] == NULL ||
        a->children[1] == NULL) {
        return malformed(err, "run-end encoding without its two children");
    }
    const struct ArrowArray *ends = a->children[0];
    if (ends->length < 0 || ends->length > ROWS_MAX || ends->offset < 0 ||
        ends->offset > ROWS_MAX) {
        return malformed(err, "impossible length or offset");
    }
    const struct span end_span = {ends, ends->offset, ends->length};
    struct gar_column *values = NULL;
    struct gar_buffer *rows = NULL;
    enum gar_status status = import_rows(in, abi->children[1], a->children[1], 0,
                                         a->children[1]->length, depth + 1, &values, err);
    if (status >= 0) {
        status = gar_buffer_new(in->memory, s->length * (int64_t)sizeof(int64_t), &rows, err);
    }
    if (status >= 0) {
        status =
            expand_runs(s, &end_span, width, values->length, (int64_t *)(void *)rows->data, err);
    }
    if (status >= 0) {
        status = gar_column_gather_i64(values, (const int64_t *)(const void *)rows->data, s->length,
                                       in->memory, out, err);
    }
    gar_buffer_unref(rows);
    gar_column_unref(values);
    return status;
}

/* ---- one column ---- */

static enum gar_status import_flat(const struct import *in, const struct span *s,
                                   const struct abi_format *format, struct gar_column_parts *parts,
                                   struct gar_error *err)
{
    switch (format->layout) {
    case ABI_BOOL: return import_bool(in, s, parts, err);
    case ABI_DIRECT: return import_direct(in, s, format->width, parts, err);
    case ABI_OFFSETS32:
    case ABI_OFFSETS64: return import_offsets(in, s, format->width, parts, err);
    case ABI_VIEWS: return import_views(in, s, parts, err);
    case ABI_FIXED_BINARY: return import_fixed_binary(in, s, format->width, parts, err);
    case ABI_FLOAT16:
    case ABI_DECIMAL:
    case ABI_DATE64:
    case ABI_TIME32: return import_converted(in, s, format, parts, err);
    case ABI_NULL:
    case ABI_RUN_END:
    case ABI_DICTIONARY: break;
    }
    return GAR_OK;
}

static void destroy_parts(struct gar_column_parts *parts)
{
    gar_buffer_unref(parts->validity);
    gar_buffer_unref(parts->values);
    for (int32_t i = 0; i < parts->data_count; i++) {
        gar_buffer_unref(parts->data[i]);
    }
    gar_free(parts->data);
}

/* Values whose range the layout alone does not bound. */
static enum gar_status check_values(struct gar_column *column, struct gar_error *err)
{
    if (column->type.id != GAR_DECIMAL128 && column->type.id != GAR_TIME) {
        return GAR_OK;
    }
    return gar_column_validate(column, err);
}

static enum gar_status import_plain(const struct import *in, const struct span *s,
                                    const struct abi_format *format, struct gar_column_parts *parts,
                                    struct gar_column **out, struct gar_error *err)
{
    GAR_TRY(import_flat(in, s, format, parts, err));
    struct gar_column *column = NULL;
    GAR_TRY(gar_column_from_parts(parts, &column, err));
    gar_free(parts->data); /* the array; the references moved */
    *parts = (struct gar_column_parts){0};
    const enum gar_status status = check_values(column, err);
    if (status < 0) {
        gar_column_unref(column);
        return status;
    }
    *out = column;
    return GAR_OK;
}

static enum gar_status import_rows(const struct import *in, const struct ArrowSchema *abi,
                                   const struct ArrowArray *array, int64_t offset, int64_t length,
                                   int32_t depth, struct gar_column **out, struct gar_error *err)
{
    struct abi_format format;
    GAR_TRY(abi_read_format(abi, depth, &format, err));
    if (array->length < 0 || array->length > ROWS_MAX || array->offset < 0 ||
        array->offset > ROWS_MAX || array->null_count < -1 || array->n_buffers < 0) {
        return malformed(err, "impossible length, offset or count");
    }
    if (offset < 0 || length < 0 || offset > array->length - length) {
        return gar_error_set(err, GAR_ERR_FORMAT,
                             "malformed Arrow array: %lld rows where %lld are needed",
                             (long long)array->length, (long long)(offset + length));
    }
    const struct span s = {array, array->offset + offset, length};
    struct gar_column_parts parts = {.type = format.type, .length = length};
    enum gar_status status = GAR_OK;
    if (format.layout == ABI_NULL) {
        return gar_column_new(in->memory, format.type, length, false, out, err);
    }
    if (format.layout == ABI_RUN_END) {
        return import_runs(in, abi, &s, format.width, depth, out, err);
    }
    status = import_validity(in, &s, &parts, err);
    if (status >= 0) {
        status = format.layout == ABI_DICTIONARY
                     ? import_dictionary(in, abi, &s, &format, &parts, depth, out, err)
                     : import_plain(in, &s, &format, &parts, out, err);
    }
    destroy_parts(&parts);
    return status;
}

/* ---- entries ---- */

enum gar_status gar_column_import(const struct ArrowSchema *abi, struct ArrowArray *array,
                                  struct gar_memory *memory, struct gar_column **out,
                                  struct gar_error *err)
{
    struct holder *holder = NULL;
    GAR_TRY(take_array(array, &holder, err));
    const struct import in = {holder, memory};
    const enum gar_status status =
        import_rows(&in, abi, &holder->array, 0, holder->array.length, 0, out, err);
    unref_holder(holder);
    return status;
}

/* A record batch is a struct whose own rows are all valid. */
static enum gar_status check_top(const struct ArrowSchema *abi, const struct ArrowArray *a,
                                 int64_t columns, struct gar_error *err)
{
    if (a->length < 0 || a->length > ROWS_MAX || a->offset < 0 || a->offset > ROWS_MAX ||
        a->n_children != columns || abi->n_children != columns ||
        (columns > 0 && a->children == NULL)) {
        return malformed(err, "length, offset or number of columns differ from its schema");
    }
    if (a->n_buffers > 0 && a->buffers != NULL && a->buffers[0] != NULL && a->null_count != 0 &&
        gar_bits_count(a->buffers[0], a->offset, a->length) != a->length) {
        return gar_error_set(err, GAR_ERR_UNSUPPORTED,
                             "whole rows that are null (a struct with nulls) are not "
                             "supported; drop them before the import");
    }
    return GAR_OK;
}

static enum gar_status import_columns(const struct import *in, const struct ArrowSchema *abi,
                                      const struct gar_schema *schema, struct gar_column **columns,
                                      int64_t *made, struct gar_error *err)
{
    const struct ArrowArray *a = &in->holder->array;
    GAR_TRY(check_top(abi, a, schema->count, err));
    for (int64_t i = 0; i < schema->count; i++) {
        if (a->children[i] == NULL || abi->children[i] == NULL) {
            return malformed(err, "a column that is not there");
        }
        const enum gar_status status = import_rows(in, abi->children[i], a->children[i], a->offset,
                                                   a->length, 0, &columns[i], err);
        if (status < 0) {
            gar_error_prefix(err, "column '%s': ", schema->fields[i].name);
            return status;
        }
        *made = i + 1;
    }
    return GAR_OK;
}

enum gar_status gar_batch_import(const struct ArrowSchema *abi, struct ArrowArray *array,
                                 struct gar_schema *schema, struct gar_memory *memory,
                                 struct gar_batch **out, struct gar_error *err)
{
    struct holder *holder = NULL;
    GAR_TRY(take_array(array, &holder, err));
    struct gar_column **columns =
        gar_calloc(gar_max_i64(schema->count, 1), (int64_t)sizeof columns[0]);
    if (columns == NULL) {
        unref_holder(holder);
        return gar_error_nomem(err, schema->count * (int64_t)sizeof columns[0]);
    }
    const struct import in = {holder, memory};
    int64_t made = 0;
    enum gar_status status = import_columns(&in, abi, schema, columns, &made, err);
    if (status >= 0) {
        status = gar_batch_new(schema, columns, holder->array.length, out, err);
    }
    for (int64_t i = 0; status < 0 && i < made; i++) {
        gar_column_unref(columns[i]);
    }
    gar_free(columns);
    unref_holder(holder);
    return status;
}
