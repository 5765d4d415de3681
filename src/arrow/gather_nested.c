/* SPDX-License-Identifier: Apache-2.0 */
/* Moving rows of nested columns. Lists and maps move entries and share their items, as strings share their bytes; fixed
 * lists and structs move their children's rows. */
#include "arrow/column_priv.h"
#include "arrow/gather.h"
#include "base/stop.h"

static bool has_entries(struct gar_type type)
{
    return gar_type_width(type) > 0;
}

/* A FLAT column with validity, no children yet and, for lists and maps, room for entries. */
static enum gar_status new_shell(struct gar_type type, int64_t count, bool with_validity,
                                 struct gar_memory *memory, struct gar_column **out,
                                 struct gar_error *err)
{
    if (count < 0 || count > INT64_C(1) << 56) {
        return gar_error_set(err, GAR_ERR_NOMEM,
                             "out of memory: a column of %lld rows is impossible",
                             (long long)count);
    }
    struct gar_column *to = column_alloc(type, GAR_FLAT, count, err);
    if (to == NULL) {
        return GAR_ERR_NOMEM;
    }
    enum gar_status status = column_alloc_children(to, err);
    if (status >= 0 && has_entries(type)) {
        status = gar_buffer_new(memory, count * (int64_t)sizeof(struct gar_list_entry),
                                &to->values_owner, err);
        to->values = status >= 0 ? to->values_owner->data : to->values;
    }
    if (status >= 0 && with_validity) {
        status = gar_buffer_new(memory, gar_bits_bytes(count), &to->validity_owner, err);
    }
    if (status < 0) {
        gar_column_unref(to);
        return status;
    }
    if (with_validity) {
        to->validity = to->validity_owner->data;
        to->null_count = -1;
    }
    *out = to;
    return GAR_OK;
}

/* Rows of the child of a fixed list: row r is items [r * width, (r + 1) * width); a negative row stays negative. */
static enum gar_status gather_fixed(const struct gar_column *column, const int64_t *rows,
                                    int64_t count, struct gar_memory *memory, struct gar_column *to,
                                    struct gar_error *err)
{
    const int64_t width = column->type.nest->width;
    int64_t items = 0;
    if (__builtin_mul_overflow(count, width, &items) || items > INT64_C(1) << 56) {
        return gar_error_set(err, GAR_ERR_NOMEM,
                             "out of memory: a column of %lld rows of %lld items is impossible",
                             (long long)count, (long long)width);
    }
    struct gar_buffer *buffer = NULL;
    GAR_TRY(gar_buffer_new(memory, items * (int64_t)sizeof(int64_t), &buffer, err));
    int64_t *item_rows = (int64_t *)(void *)buffer->data;
    for (int64_t i = 0; i < count; i++) {
        for (int64_t k = 0; k < width; k++) {
            item_rows[i * width + k] = rows[i] < 0 ? -1 : rows[i] * width + k;
        }
    }
    const enum gar_status status =
        gar_column_gather_i64(column->children[0], item_rows, items, memory, &to->children[0], err);
    gar_buffer_unref(buffer);
    return status;
}

static enum gar_status gather_children(const struct gar_column *column, const int64_t *rows,
                                       int64_t count, struct gar_memory *memory,
                                       struct gar_column *to, struct gar_error *err)
{
    if (column->type.id == GAR_FIXED_LIST) {
        return gather_fixed(column, rows, count, memory, to, err);
    }
    for (int32_t i = 0; i < to->child_count; i++) {
        if (has_entries(column->type)) {
            to->children[i] = gar_column_ref(column->children[i]);
        } else {
            GAR_TRY(gar_column_gather_i64(column->children[i], rows, count, memory,
                                          &to->children[i], err));
        }
    }
    return GAR_OK;
}

enum gar_status nested_gather_i64(const struct gar_column *column, const int64_t *rows,
                                  int64_t count, struct gar_memory *memory, struct gar_column **out,
                                  struct gar_error *err)
{
    struct gar_column *to = NULL;
    GAR_TRY(new_shell(column->type, count, true, memory, &to, err));
    uint8_t *valid = gar_column_validity_mut(to);
    for (int64_t i = 0; i < count; i++) {
        gar_bit_put(valid, i, rows[i] >= 0 && !gar_column_is_null(column, rows[i]));
    }
    if (has_entries(column->type)) {
        const struct gar_list_entry *from = column->values;
        struct gar_list_entry *entries = gar_column_values_mut(to);
        for (int64_t i = 0; i < count; i++) {
            entries[i] = rows[i] < 0 ? (struct gar_list_entry){0, 0} : from[rows[i]];
        }
    }
    const enum gar_status status = gather_children(column, rows, count, memory, to, err);
    if (status < 0) {
        gar_column_unref(to);
        return status;
    }
    *out = to;
    return GAR_OK;
}

enum gar_status nested_gather(const struct gar_column *column, const uint32_t *rows, int64_t count,
                              struct gar_memory *memory, struct gar_column **out,
                              struct gar_error *err)
{
    struct gar_buffer *wide = NULL;
    GAR_TRY(gar_buffer_new(memory, count * (int64_t)sizeof(int64_t), &wide, err));
    int64_t *wide_rows = (int64_t *)(void *)wide->data;
    for (int64_t i = 0; i < count; i++) {
        wide_rows[i] = rows[i];
    }
    const enum gar_status status = nested_gather_i64(column, wide_rows, count, memory, out, err);
    gar_buffer_unref(wide);
    return status;
}

enum gar_status nested_flatten(const struct gar_column *column, struct gar_memory *memory,
                               struct gar_column **out, struct gar_error *err)
{
    struct gar_buffer *buffer = NULL;
    GAR_TRY(gar_buffer_new(memory, column->length * (int64_t)sizeof(int64_t), &buffer, err));
    int64_t *rows = (int64_t *)(void *)buffer->data;
    for (int64_t i = 0; i < column->length; i++) {
        const struct gar_column *values = NULL;
        rows[i] = gar_column_is_null(column, i) ? -1 : gar_column_locate(column, i, &values);
    }
    const enum gar_status status =
        gar_column_gather_i64(column->dictionary, rows, column->length, memory, out, err);
    gar_buffer_unref(buffer);
    return status;
}

/* ---- concat ---- */

static enum gar_status concat_children(struct gar_column *const *flats, int64_t count,
                                       struct gar_memory *memory, struct gar_column *to,
                                       struct gar_error *err)
{
    struct gar_buffer *buffer = NULL;
    GAR_TRY(gar_buffer_new(memory, count * (int64_t)sizeof(struct gar_column *), &buffer, err));
    struct gar_column **parts = (struct gar_column **)(void *)buffer->data;
    enum gar_status status = GAR_OK;
    for (int32_t i = 0; i < to->child_count && status >= 0; i++) {
        for (int64_t k = 0; k < count; k++) {
            parts[k] = flats[k]->children[i];
        }
        status = gar_column_concat(parts, count, to->type.nest->fields[i].type, memory,
                                   &to->children[i], err);
    }
    gar_buffer_unref(buffer);
    return status;
}

static enum gar_status concat_flats(struct gar_column *const *flats, int64_t count,
                                    struct gar_memory *memory, struct gar_column *to,
                                    struct gar_error *err)
{
    int64_t at = 0;
    int64_t base = 0;
    for (int64_t k = 0; k < count; k++) {
        GAR_TRY(gar_stop_check(err));
        column_copy_validity(flats[k], gar_column_validity_mut(to), at);
        for (int64_t i = 0; has_entries(to->type) && i < flats[k]->length; i++) {
            struct gar_list_entry e = ((const struct gar_list_entry *)flats[k]->values)[i];
            e.offset += e.length > 0 ? base : 0;
            ((struct gar_list_entry *)gar_column_values_mut(to))[at + i] = e;
        }
        at += flats[k]->length;
        base += has_entries(to->type) ? flats[k]->children[0]->length : 0;
    }
    return concat_children(flats, count, memory, to, err);
}

enum gar_status nested_concat(struct gar_column *const *columns, int64_t count,
                              struct gar_type type, struct gar_memory *memory,
                              struct gar_column **out, struct gar_error *err)
{
    struct gar_buffer *buffer = NULL;
    GAR_TRY(
        gar_buffer_new_zeroed(memory, count * (int64_t)sizeof(struct gar_column *), &buffer, err));
    struct gar_column **flats = (struct gar_column **)(void *)buffer->data;
    struct gar_column *to = NULL;
    enum gar_status status = GAR_OK;
    int64_t rows = 0;
    for (int64_t k = 0; k < count && status >= 0; k++) {
        rows += columns[k]->length;
        status = gar_column_flatten(columns[k], memory, &flats[k], err);
    }
    if (status >= 0 && count == 0) {
        status = gar_column_new(memory, type, 0, false, &to, err);
    } else if (status >= 0) {
        status = new_shell(type, rows, true, memory, &to, err);
        status = status >= 0 ? concat_flats(flats, count, memory, to, err) : status;
    }
    for (int64_t k = 0; k < count; k++) {
        gar_column_unref(flats[k]);
    }
    gar_buffer_unref(buffer);
    if (status < 0) {
        gar_column_unref(to);
        return status;
    }
    *out = to;
    return GAR_OK;
}

/* ---- compact ---- */

/* The children with only the items that rows show, in the rows' order, and entries to match. */
static enum gar_status pack_items(const struct gar_column *column, int64_t used,
                                  struct gar_memory *memory, struct gar_column *to,
                                  struct gar_error *err)
{
    const struct gar_list_entry *from = column->values;
    struct gar_list_entry *entries = gar_column_values_mut(to);
    struct gar_buffer *buffer = NULL;
    GAR_TRY(gar_buffer_new(memory, used * (int64_t)sizeof(int64_t), &buffer, err));
    int64_t *rows = (int64_t *)(void *)buffer->data;
    int64_t at = 0;
    for (int64_t i = 0; i < column->length; i++) {
        entries[i] = (struct gar_list_entry){from[i].length > 0 ? at : 0, from[i].length};
        for (int64_t k = 0; k < from[i].length; k++) {
            rows[at++] = from[i].offset + k;
        }
    }
    enum gar_status status = GAR_OK;
    for (int32_t i = 0; i < to->child_count && status >= 0; i++) {
        struct gar_column *packed = NULL;
        status = gar_column_gather_i64(column->children[i], rows, used, memory, &packed, err);
        if (status >= 0) {
            status = gar_column_compact(packed, true, memory, &to->children[i], err);
        }
        gar_column_unref(packed);
    }
    gar_buffer_unref(buffer);
    return status;
}

static enum gar_status compact_children(const struct gar_column *column, bool force,
                                        struct gar_memory *memory, struct gar_column *to,
                                        struct gar_error *err)
{
    for (int32_t i = 0; i < to->child_count; i++) {
        GAR_TRY(gar_column_compact(column->children[i], force, memory, &to->children[i], err));
    }
    return GAR_OK;
}

enum gar_status nested_compact(const struct gar_column *column, bool force,
                               struct gar_memory *memory, struct gar_column **out,
                               struct gar_error *err)
{
    int64_t used = 0;
    bool is_packed = false;
    if (has_entries(column->type)) {
        for (int64_t i = 0; i < column->length; i++) {
            const int64_t items = ((const struct gar_list_entry *)column->values)[i].length;
            if (__builtin_add_overflow(used, items, &used) || used > INT64_C(1) << 56) {
                return gar_error_set(err, GAR_ERR_NOMEM,
                                     "out of memory: lists of so many items are impossible");
            }
        }
        const int64_t held = column->children[0]->length;
        is_packed = force || used < held - used;
    }
    struct gar_column *to = NULL;
    GAR_TRY(new_shell(column->type, column->length, false, memory, &to, err));
    if (has_entries(column->type) && !is_packed && column->length > 0) {
        memcpy(gar_column_values_mut(to), column->values,
               (size_t)column->length * sizeof(struct gar_list_entry));
    }
    const enum gar_status status = is_packed ? pack_items(column, used, memory, to, err)
                                             : compact_children(column, force, memory, to, err);
    if (status < 0) {
        gar_column_unref(to);
        return status;
    }
    column_share_validity(to, column);
    *out = to;
    return GAR_OK;
}
