/* SPDX-License-Identifier: Apache-2.0 */
/* Moving rows. The loops are one per value width; everything else is choosing the loop and sharing what need not move.
 *
 * Views under nulls are always valid views (zero, or what was there before), so views move like any 16-byte value. */
#include "arrow/gather.h"

#include "arrow/column_priv.h"
#include "base/alloc.h"
#include "base/stop.h"

/* No data buffer is longer: offsets in views are int32_t. */
#define DATA_BYTES_MAX INT64_C(0x7fffffff)

struct wide {
    uint64_t low;
    uint64_t high;
};

/* ---- loops ---- */

#define GAR_GATHER_LOOP(name, value_type, index_type)                                            \
    static void name(void *GAR_RESTRICT to, const void *from, const index_type *rows, int64_t n) \
    {                                                                                            \
        value_type *GAR_RESTRICT t = to;                                                         \
        const value_type *f = from;                                                              \
        for (int64_t i = 0; i < n; i++) {                                                        \
            t[i] = f[rows[i]];                                                                   \
        }                                                                                        \
    }

GAR_GATHER_LOOP(gather_1, uint8_t, uint32_t)
GAR_GATHER_LOOP(gather_2, uint16_t, uint32_t)
GAR_GATHER_LOOP(gather_4, uint32_t, uint32_t)
GAR_GATHER_LOOP(gather_8, uint64_t, uint32_t)
GAR_GATHER_LOOP(gather_16, struct wide, uint32_t)

/* With 64-bit row numbers; a negative one gives zero. */
#define GAR_GATHER_LOOP_I64(name, value_type)                                                 \
    static void name(void *GAR_RESTRICT to, const void *from, const int64_t *rows, int64_t n) \
    {                                                                                         \
        value_type *GAR_RESTRICT t = to;                                                      \
        const value_type *f = from;                                                           \
        const value_type zero = {0};                                                          \
        for (int64_t i = 0; i < n; i++) {                                                     \
            t[i] = rows[i] < 0 ? zero : f[rows[i]];                                           \
        }                                                                                     \
    }

GAR_GATHER_LOOP_I64(gather_i64_1, uint8_t)
GAR_GATHER_LOOP_I64(gather_i64_2, uint16_t)
GAR_GATHER_LOOP_I64(gather_i64_4, uint32_t)
GAR_GATHER_LOOP_I64(gather_i64_8, uint64_t)
GAR_GATHER_LOOP_I64(gather_i64_16, struct wide)

/* Width 0 (null type) moves nothing. */
static void gather_values(int32_t width, void *to, const void *from, const uint32_t *rows,
                          int64_t n)
{
    switch (width) {
    case 1: gather_1(to, from, rows, n); break;
    case 2: gather_2(to, from, rows, n); break;
    case 4: gather_4(to, from, rows, n); break;
    case 8: gather_8(to, from, rows, n); break;
    case 16: gather_16(to, from, rows, n); break;
    default: break;
    }
}

static void gather_values_i64(int32_t width, void *to, const void *from, const int64_t *rows,
                              int64_t n)
{
    switch (width) {
    case 1: gather_i64_1(to, from, rows, n); break;
    case 2: gather_i64_2(to, from, rows, n); break;
    case 4: gather_i64_4(to, from, rows, n); break;
    case 8: gather_i64_8(to, from, rows, n); break;
    case 16: gather_i64_16(to, from, rows, n); break;
    default: break;
    }
}

/* Bits are put together byte by byte; `to` starts at bit 0. */
static void gather_bits(uint8_t *to, const uint8_t *from, int64_t from_offset, const uint32_t *rows,
                        int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        unsigned byte = 0;
        for (int64_t k = 0; k < 8; k++) {
            byte |= (unsigned)gar_bit_get(from, from_offset + rows[i + k]) << k;
        }
        to[i >> 3] = (uint8_t)byte;
    }
    if (i < n) {
        unsigned byte = 0;
        for (int64_t k = 0; i + k < n; k++) {
            byte |= (unsigned)gar_bit_get(from, from_offset + rows[i + k]) << k;
        }
        to[i >> 3] = (uint8_t)byte;
    }
}

/* from NULL means all bits set; a negative row gives 0. */
static void gather_bits_i64(uint8_t *to, const uint8_t *from, int64_t from_offset,
                            const int64_t *rows, int64_t n)
{
    for (int64_t i = 0; i < n; i += 8) {
        unsigned byte = 0;
        for (int64_t k = 0; k < gar_min_i64(8, n - i); k++) {
            const int64_t row = rows[i + k];
            byte |= (unsigned)(row >= 0 && (from == NULL || gar_bit_get(from, from_offset + row)))
                    << k;
        }
        to[i >> 3] = (uint8_t)byte;
    }
}

/* ---- gather ---- */

static enum gar_status new_bits(struct gar_memory *memory, int64_t bits, struct gar_buffer **out,
                                struct gar_error *err)
{
    return gar_buffer_new(memory, gar_bits_bytes(bits), out, err);
}

/* Makes the values and validity buffers of a gathered column; width_bytes 0 with is_bits for booleans. */
static enum gar_status add_buffers(struct gar_column *to, int32_t width_bytes, bool is_bits,
                                   bool with_validity, struct gar_memory *memory,
                                   struct gar_error *err)
{
    if (is_bits) {
        GAR_TRY(new_bits(memory, to->length, &to->values_owner, err));
        to->values = to->values_owner->data;
    } else if (width_bytes > 0) {
        GAR_TRY(gar_buffer_new(memory, to->length * width_bytes, &to->values_owner, err));
        to->values = to->values_owner->data;
    }
    if (with_validity) {
        GAR_TRY(new_bits(memory, to->length, &to->validity_owner, err));
        to->validity = to->validity_owner->data;
        to->null_count = -1;
    }
    return GAR_OK;
}

/* A column of the same encoding and shared parts for `count` rows, its buffers still to be filled. */
static enum gar_status prepare(const struct gar_column *column, int64_t count, bool with_validity,
                               struct gar_memory *memory, struct gar_column **out,
                               struct gar_error *err)
{
    if (count < 0 || count > INT64_C(1) << 56) {
        return gar_error_set(err, GAR_ERR_NOMEM,
                             "out of memory: a column of %lld rows is impossible",
                             (long long)count);
    }
    struct gar_column *to = column_alloc(column->type, column->encoding, count, err);
    if (to == NULL) {
        return GAR_ERR_NOMEM;
    }
    to->dictionary = gar_column_ref(column->dictionary);
    to->dictionary_id = column->dictionary_id;
    column_share_data(to, column);
    enum gar_status status = GAR_OK;
    if (column->encoding == GAR_DICTIONARY) {
        status = add_buffers(to, (int32_t)sizeof(uint32_t), false, with_validity, memory, err);
    } else if (column->encoding == GAR_FLAT) {
        status = add_buffers(to, gar_type_width(column->type), column->type.id == GAR_BOOL,
                             with_validity && column->type.id != GAR_NULL, memory, err);
    } else {
        to->null_count = column->null_count == 0 ? 0 : count;
    }
    if (status < 0) {
        gar_column_unref(to);
        return status;
    }
    *out = to;
    return GAR_OK;
}

static int32_t moved_width(const struct gar_column *column)
{
    switch (column->encoding) {
    case GAR_DICTIONARY: return (int32_t)sizeof(uint32_t);
    case GAR_CONSTANT: return 0;
    case GAR_FLAT: break;
    }
    return gar_type_width(column->type);
}

static bool is_flat_bool(const struct gar_column *column)
{
    return column->encoding == GAR_FLAT && column->type.id == GAR_BOOL;
}

enum gar_status gar_column_gather(const struct gar_column *column, const uint32_t *rows,
                                  int64_t count, struct gar_memory *memory, struct gar_column **out,
                                  struct gar_error *err)
{
    if (gar_type_is_nested(column->type) && column->encoding == GAR_FLAT) {
        return nested_gather(column, rows, count, memory, out, err);
    }
    struct gar_column *to = NULL;
    const bool has_nulls =
        column->encoding != GAR_CONSTANT && column->validity != NULL && column->null_count != 0;
    GAR_TRY(prepare(column, count, has_nulls, memory, &to, err));
    if (is_flat_bool(column)) {
        gather_bits(to->values_owner->data, column->values, column->values_offset, rows, count);
    } else if (moved_width(column) > 0) {
        gather_values(moved_width(column), to->values_owner->data, column->values, rows, count);
    }
    if (to->validity_owner != NULL) {
        gather_bits(to->validity_owner->data, column->validity, column->validity_offset, rows,
                    count);
    }
    *out = to;
    return GAR_OK;
}

/* A constant seen through rows some of which may be negative: flat when any is, else constant. */
static enum gar_status gather_constant_i64(const struct gar_column *column, const int64_t *rows,
                                           int64_t count, struct gar_memory *memory,
                                           struct gar_column **out, struct gar_error *err)
{
    bool any_null = false;
    for (int64_t i = 0; i < count; i++) {
        any_null |= rows[i] < 0;
    }
    if (!any_null || column->null_count != 0) {
        return prepare(column, count, false, memory, out, err);
    }
    int64_t *zero_rows = gar_malloc(count * (int64_t)sizeof(int64_t));
    if (zero_rows == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof(int64_t));
    }
    for (int64_t i = 0; i < count; i++) {
        zero_rows[i] = rows[i] < 0 ? -1 : 0;
    }
    const enum gar_status status =
        gar_column_gather_i64(column->dictionary, zero_rows, count, memory, out, err);
    gar_free(zero_rows);
    return status;
}

enum gar_status gar_column_gather_i64(const struct gar_column *column, const int64_t *rows,
                                      int64_t count, struct gar_memory *memory,
                                      struct gar_column **out, struct gar_error *err)
{
    if (column->encoding == GAR_CONSTANT) {
        return gather_constant_i64(column, rows, count, memory, out, err);
    }
    if (column->encoding == GAR_DICTIONARY && column->dictionary->length == 0) {
        return gar_column_new_null(memory, column->type, count, out,
                                   err); /* no code would be valid */
    }
    if (gar_type_is_nested(column->type) && column->encoding == GAR_FLAT) {
        return nested_gather_i64(column, rows, count, memory, out, err);
    }
    struct gar_column *to = NULL;
    GAR_TRY(prepare(column, count, true, memory, &to, err));
    if (is_flat_bool(column)) {
        gather_bits_i64(to->values_owner->data, column->values, column->values_offset, rows, count);
    } else {
        gather_values_i64(moved_width(column), gar_column_values_mut(to), column->values, rows,
                          count);
    }
    if (to->validity_owner != NULL) {
        gather_bits_i64(to->validity_owner->data, column->validity, column->validity_offset, rows,
                        count);
    }
    *out = to;
    return GAR_OK;
}

/* ---- flatten and concat: both write any encoding into a place of a flat column ---- */

static void fill_values(int32_t width, uint8_t *to, const void *value, int64_t n)
{
    if (width == 1) {
        memset(to, *(const uint8_t *)value, (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n && width > 0; i++) {
        memcpy(to + i * width, value, (size_t)width);
    }
}

/* Boolean rows of any encoding to bits [at, at + length). */
static void write_bools(const struct gar_column *column, uint8_t *to, int64_t at)
{
    const struct gar_column *dictionary = column->dictionary;
    switch (column->encoding) {
    case GAR_FLAT:
        gar_bits_copy(to, at, column->values, column->values_offset, column->length);
        break;
    case GAR_CONSTANT:
        gar_bits_fill(to, at, column->length,
                      gar_bit_get(dictionary->values, dictionary->values_offset));
        break;
    case GAR_DICTIONARY:
        for (int64_t i = 0; i < column->length; i++) {
            const uint32_t code = ((const uint32_t *)column->values)[i];
            gar_bit_put(to, at + i,
                        dictionary->length > 0 &&
                            gar_bit_get(dictionary->values, dictionary->values_offset + code));
        }
        break;
    }
}

/* Fixed-width rows (views too) of any encoding to to[at ...]. */
static void write_fixed(const struct gar_column *column, uint8_t *to, int64_t at)
{
    const int32_t width = gar_type_width(column->type);
    uint8_t *place = to + at * width;
    switch (column->encoding) {
    case GAR_FLAT: memcpy(place, column->values, (size_t)(column->length * width)); break;
    case GAR_CONSTANT: fill_values(width, place, column->dictionary->values, column->length); break;
    case GAR_DICTIONARY:
        if (column->dictionary->length == 0) {
            memset(place, 0, (size_t)(column->length * width));
        } else {
            gather_values(width, place, column->dictionary->values, column->values, column->length);
        }
        break;
    }
}

/* Validity of any encoding to bits [at, at + length). */
static void write_validity(const struct gar_column *column, uint8_t *to, int64_t at)
{
    if (column->encoding == GAR_CONSTANT) {
        gar_bits_fill(to, at, column->length, !gar_column_is_null(column->dictionary, 0));
    } else {
        column_copy_validity(column, to, at);
    }
}

static void write_rows(const struct gar_column *column, struct gar_column *to, int64_t at)
{
    if (column->length == 0) {
        return;
    }
    if (to->type.id == GAR_BOOL) {
        write_bools(column, gar_column_values_mut(to), at);
    } else if (to->type.id != GAR_NULL) {
        write_fixed(column, gar_column_values_mut(to), at);
    }
    if (to->validity != NULL) {
        write_validity(column, gar_column_validity_mut(to), at);
    }
}

/* Could a row be null? Cheap, may be wrongly true. */
static bool may_have_nulls(const struct gar_column *column)
{
    return column->null_count != 0 && column->length > 0 &&
           (column->encoding == GAR_CONSTANT || column->validity != NULL);
}

enum gar_status gar_column_flatten(const struct gar_column *column, struct gar_memory *memory,
                                   struct gar_column **out, struct gar_error *err)
{
    if (column->encoding == GAR_FLAT) {
        *out = gar_column_ref(column);
        return GAR_OK;
    }
    if (gar_type_is_nested(column->type)) {
        return nested_flatten(column, memory, out, err);
    }
    struct gar_column *to = column_alloc(column->type, GAR_FLAT, column->length, err);
    if (to == NULL) {
        return GAR_ERR_NOMEM;
    }
    const bool is_constant_null = column->encoding == GAR_CONSTANT && may_have_nulls(column);
    const enum gar_status status =
        add_buffers(to, gar_type_width(to->type), to->type.id == GAR_BOOL,
                    is_constant_null && to->type.id != GAR_NULL, memory, err);
    if (status < 0) {
        gar_column_unref(to);
        return status;
    }
    column_share_data(to, column->dictionary);
    write_rows(column, to, 0);
    if (column->encoding == GAR_DICTIONARY) {
        column_share_validity(to, column);
    } else if (is_constant_null) {
        to->null_count = to->length;
    }
    *out = to;
    return GAR_OK;
}

/* The flat column whose data buffers the rows' views point into. */
static const struct gar_column *data_owner(const struct gar_column *column)
{
    return column->encoding == GAR_FLAT ? column : column->dictionary;
}

static void rebase_views(struct gar_string_view *views, int64_t n, int32_t by)
{
    for (int64_t i = 0; i < n; i++) {
        if (views[i].size > GAR_VIEW_INLINE_BYTES) {
            views[i].far.buffer += by;
        }
    }
}

/* String columns: take over all data buffers, once for runs of columns that share a set, and renumber the views. */
static enum gar_status merge_data(struct gar_column *const *columns, int64_t count,
                                  struct gar_column *to, struct gar_error *err)
{
    const struct gar_column *last = NULL;
    int32_t base = 0;
    int64_t at = 0;
    for (int64_t k = 0; k < count; k++) {
        const struct gar_column *owner = data_owner(columns[k]);
        if (owner->data_count > 0 && columns[k]->length > 0) {
            if (last == NULL) {
                column_share_data(to, owner);
            } else if (!column_same_data(last, owner)) {
                base = to->data_count;
                for (int32_t i = 0; i < owner->data_count; i++) {
                    int32_t index = 0;
                    struct gar_buffer *buffer = gar_buffer_ref(owner->data[i]);
                    const enum gar_status status = gar_column_add_data(to, buffer, &index, err);
                    if (status < 0) {
                        gar_buffer_unref(buffer);
                        return status;
                    }
                }
            }
            last = owner;
            if (base > 0) {
                struct gar_string_view *views = gar_column_values_mut(to);
                rebase_views(views + at, columns[k]->length, base);
            }
        }
        at += columns[k]->length;
    }
    return GAR_OK;
}

/* All columns are DICTIONARY under one id. */
static enum gar_status concat_codes(struct gar_column *const *columns, int64_t count,
                                    struct gar_column *to, bool with_validity,
                                    struct gar_memory *memory, struct gar_error *err)
{
    to->dictionary = gar_column_ref(columns[0]->dictionary);
    to->dictionary_id = columns[0]->dictionary_id;
    GAR_TRY(add_buffers(to, (int32_t)sizeof(uint32_t), false, with_validity, memory, err));
    int64_t at = 0;
    for (int64_t k = 0; k < count; k++) {
        GAR_TRY(gar_stop_check(err));
        const int64_t rows = columns[k]->length;
        uint32_t *codes = gar_column_values_mut(to);
        if (rows > 0) {
            memcpy(codes + at, columns[k]->values, (size_t)rows * sizeof(uint32_t));
        }
        if (with_validity && rows > 0) {
            column_copy_validity(columns[k], gar_column_validity_mut(to), at);
        }
        at += rows;
    }
    return GAR_OK;
}

static enum gar_status concat_flat(struct gar_column *const *columns, int64_t count,
                                   struct gar_column *to, bool with_validity,
                                   struct gar_memory *memory, struct gar_error *err)
{
    GAR_TRY(add_buffers(to, gar_type_width(to->type), to->type.id == GAR_BOOL,
                        with_validity && to->type.id != GAR_NULL, memory, err));
    int64_t at = 0;
    for (int64_t k = 0; k < count; k++) {
        GAR_TRY(gar_stop_check(err));
        write_rows(columns[k], to, at);
        at += columns[k]->length;
    }
    return gar_type_is_text(to->type) ? merge_data(columns, count, to, err) : GAR_OK;
}

enum gar_status gar_column_concat(struct gar_column *const *columns, int64_t count,
                                  struct gar_type type, struct gar_memory *memory,
                                  struct gar_column **out, struct gar_error *err)
{
    if (count == 1) {
        if (columns[0]->encoding != GAR_CONSTANT) {
            *out = gar_column_ref(columns[0]);
            return GAR_OK;
        }
        return gar_column_flatten(columns[0], memory, out, err);
    }
    int64_t rows = 0;
    bool with_validity = false;
    bool one_dictionary = count > 0;
    for (int64_t k = 0; k < count; k++) {
        const struct gar_column *c = columns[k];
        if (!gar_type_equal(c->type, type)) {
            char have[64];
            char want[64];
            return gar_error_set(err, GAR_ERR_INTERNAL, "cannot append %s to a column of %s",
                                 gar_type_text(c->type, have, (int64_t)sizeof have),
                                 gar_type_text(type, want, (int64_t)sizeof want));
        }
        rows += c->length;
        with_validity |= may_have_nulls(c);
        one_dictionary &=
            c->encoding == GAR_DICTIONARY && c->dictionary_id == columns[0]->dictionary_id;
    }
    if (gar_type_is_nested(type) && !one_dictionary) {
        return nested_concat(columns, count, type, memory, out, err);
    }
    struct gar_column *to =
        column_alloc(type, one_dictionary ? GAR_DICTIONARY : GAR_FLAT, rows, err);
    if (to == NULL) {
        return GAR_ERR_NOMEM;
    }
    const enum gar_status status =
        one_dictionary ? concat_codes(columns, count, to, with_validity, memory, err)
                       : concat_flat(columns, count, to, with_validity, memory, err);
    if (status < 0) {
        gar_column_unref(to);
        return status;
    }
    *out = to;
    return GAR_OK;
}

/* ---- compact ---- */

int64_t gar_column_far_bytes(const struct gar_column *column)
{
    const struct gar_string_view *views = column->values;
    int64_t bytes = 0;
    for (int64_t i = 0; i < column->length; i++) {
        bytes += views[i].size > GAR_VIEW_INLINE_BYTES ? views[i].size : 0;
    }
    return bytes;
}

/* Copies far bytes of `from` into fresh buffers of `to` and points its views there. */
static enum gar_status copy_far(const struct gar_column *from, struct gar_column *to,
                                int64_t left_bytes, struct gar_memory *memory,
                                struct gar_error *err)
{
    const struct gar_string_view *views = from->values;
    struct gar_string_view *out = gar_column_values_mut(to);
    struct gar_buffer *buffer = NULL;
    int32_t index = -1;
    int64_t at = 0;
    for (int64_t i = 0; i < from->length; i++) {
        struct gar_string_view v = views[i];
        if (v.size > GAR_VIEW_INLINE_BYTES) {
            if (buffer == NULL || v.size > buffer->size - at) {
                if (buffer != NULL) {
                    buffer->size = at;
                }
                const int64_t bytes = gar_max_i64(gar_min_i64(left_bytes, DATA_BYTES_MAX), v.size);
                GAR_TRY(gar_buffer_new(memory, bytes, &buffer, err));
                const enum gar_status status = gar_column_add_data(to, buffer, &index, err);
                if (status < 0) {
                    gar_buffer_unref(buffer);
                    return status;
                }
                at = 0;
            }
            memcpy(buffer->data + at, gar_view_bytes(&v, from->data_pointers), (size_t)v.size);
            v.far.buffer = index;
            v.far.offset = (int32_t)at;
            at += v.size;
            left_bytes -= v.size;
        }
        out[i] = v;
    }
    return GAR_OK;
}

enum gar_status gar_column_compact(const struct gar_column *column, bool force,
                                   struct gar_memory *memory, struct gar_column **out,
                                   struct gar_error *err)
{
    if (gar_type_is_nested(column->type) && column->encoding == GAR_FLAT) {
        return nested_compact(column, force, memory, out, err);
    }
    if (!gar_type_is_text(column->type) || column->encoding != GAR_FLAT ||
        column->data_count == 0) {
        *out = gar_column_ref(column);
        return GAR_OK;
    }
    int64_t held = 0;
    for (int32_t i = 0; i < column->data_count; i++) {
        held += column->data[i]->size;
    }
    const int64_t used = gar_column_far_bytes(column);
    if (!force && used >= held - used) {
        *out = gar_column_ref(column);
        return GAR_OK;
    }
    struct gar_column *to = column_alloc(column->type, GAR_FLAT, column->length, err);
    if (to == NULL) {
        return GAR_ERR_NOMEM;
    }
    enum gar_status status = add_buffers(to, gar_type_width(to->type), false, false, memory, err);
    if (status >= 0) {
        status = copy_far(column, to, used, memory, err);
    }
    if (status < 0) {
        gar_column_unref(to);
        return status;
    }
    column_share_validity(to, column);
    *out = to;
    return GAR_OK;
}
