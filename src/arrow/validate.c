/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of columns whose bytes came from outside. After it passes, every kernel may read the column without further checks. */
#include "arrow/column.h"
#include "base/calendar.h"
#include "base/utf8.h"

static enum gar_status fault(struct gar_error *err, const char *what, int64_t row)
{
    return gar_error_set(err, GAR_ERR_FORMAT, "%s at row %lld", what, (long long)row);
}

static enum gar_status check_bitmap(const struct gar_buffer *owner, const uint8_t *bits,
                                    int64_t offset, int64_t length, struct gar_error *err)
{
    if (bits == NULL || length == 0) {
        return GAR_OK;
    }
    if (offset < 0 || owner == NULL || bits < owner->data || bits > owner->data + owner->size ||
        gar_bits_bytes(offset + length) > owner->data + owner->size - bits) {
        return gar_error_set(err, GAR_ERR_FORMAT, "a bitmap is shorter than %lld rows",
                             (long long)length);
    }
    return GAR_OK;
}

static enum gar_status check_values(const struct gar_column *column, int64_t width_bytes,
                                    struct gar_error *err)
{
    if (column->length == 0 || width_bytes == 0) {
        return GAR_OK;
    }
    const struct gar_buffer *owner = column->values_owner;
    const uint8_t *values = column->values;
    if (owner == NULL || values < owner->data || values > owner->data + owner->size ||
        column->length > (owner->data + owner->size - values) / width_bytes) {
        return gar_error_set(err, GAR_ERR_FORMAT,
                             "the values buffer is shorter than %lld rows of %lld bytes",
                             (long long)column->length, (long long)width_bytes);
    }
    return GAR_OK;
}

/* Where the bytes of a view lie and whether they are its own prefix. */
static enum gar_status check_view(const struct gar_column *column,
                                  const struct gar_string_view *view, int64_t row,
                                  struct gar_error *err)
{
    if (view->size < 0) {
        return fault(err, "a negative text size", row);
    }
    if (view->size <= GAR_VIEW_INLINE_BYTES) {
        for (int32_t i = view->size; i < GAR_VIEW_INLINE_BYTES; i++) {
            if (view->inlined[i] != 0) {
                return fault(err, "a short text with bytes behind its end", row);
            }
        }
        return GAR_OK;
    }
    if (view->far.buffer < 0 || view->far.buffer >= column->data_count) {
        return fault(err, "a text in a buffer that is not there", row);
    }
    const struct gar_buffer *buffer = column->data[view->far.buffer];
    if (view->far.offset < 0 || view->far.offset > buffer->size ||
        view->size > buffer->size - view->far.offset) {
        return fault(err, "a text outside its buffer", row);
    }
    if (memcmp(buffer->data + view->far.offset, view->far.prefix, sizeof view->far.prefix) != 0) {
        return fault(err, "a text whose prefix differs from its bytes", row);
    }
    return GAR_OK;
}

static enum gar_status check_views(const struct gar_column *column, struct gar_error *err)
{
    const struct gar_string_view *views = column->values;
    for (int64_t i = 0; i < column->length; i++) {
        GAR_TRY(check_view(column, &views[i], i, err));
        if (column->type.id == GAR_STRING && !gar_column_is_null(column, i) &&
            !gar_utf8_valid(gar_view_bytes(&views[i], column->data_pointers), views[i].size)) {
            return fault(err, "a string that is not valid UTF-8", i);
        }
    }
    return GAR_OK;
}

static enum gar_status check_decimals(const struct gar_column *column, struct gar_error *err)
{
    const gar_i128 *values = column->values;
    for (int64_t i = 0; i < column->length; i++) {
        if (!gar_decimal_fits(values[i], column->type.precision) &&
            !gar_column_is_null(column, i)) {
            return fault(err, "a decimal with more digits than its precision", i);
        }
    }
    return GAR_OK;
}

static enum gar_status check_times(const struct gar_column *column, struct gar_error *err)
{
    const int64_t *values = column->values;
    const int64_t day =
        86400 * gar_ticks_per_second(gar_unit_digits((enum gar_time_unit)column->type.unit));
    for (int64_t i = 0; i < column->length; i++) {
        if ((values[i] < 0 || values[i] >= day) && !gar_column_is_null(column, i)) {
            return fault(err, "a time of day outside 00:00 to 24:00", i);
        }
    }
    return GAR_OK;
}

static enum gar_status check_codes(const struct gar_column *column, struct gar_error *err)
{
    const struct gar_column *dictionary = column->dictionary;
    if (dictionary == NULL || dictionary->encoding != GAR_FLAT ||
        !gar_type_equal(dictionary->type, column->type)) {
        return gar_error_set(err, GAR_ERR_FORMAT,
                             "a dictionary column without a fitting dictionary");
    }
    if (gar_column_null_count(dictionary) != 0) {
        return gar_error_set(err, GAR_ERR_FORMAT, "a dictionary with nulls");
    }
    GAR_TRY(check_values(column, (int64_t)sizeof(uint32_t), err));
    const uint32_t *codes = column->values;
    for (int64_t i = 0; i < column->length; i++) {
        if ((int64_t)codes[i] >= dictionary->length &&
            !(dictionary->length == 0 && gar_column_is_null(column, i))) {
            return fault(err, "a dictionary code beyond the dictionary", i);
        }
    }
    return GAR_OK;
}

static enum gar_status check_entries(const struct gar_column *column, struct gar_error *err)
{
    const struct gar_list_entry *entries = column->values;
    const int64_t items = column->children[0]->length;
    for (int64_t i = 0; i < column->length; i++) {
        const struct gar_list_entry e = entries[i];
        if (e.offset < 0 || e.length < 0 || e.offset > items || e.length > items - e.offset) {
            return fault(err, "a list outside its items", i);
        }
        if ((e.offset != 0 || e.length != 0) && gar_column_is_null(column, i)) {
            return fault(err, "a null list with items", i);
        }
    }
    return GAR_OK;
}

/* Children: as many as fields, FLAT, of the fields' types, as long as the rows ask for, and valid themselves. */
static enum gar_status check_nested(const struct gar_column *column, struct gar_error *err)
{
    const struct gar_nest *nest = column->type.nest;
    if (column->child_count != nest->count) {
        return gar_error_set(err, GAR_ERR_FORMAT, "a nested column with %d children for %d fields",
                             column->child_count, nest->count);
    }
    const bool has_entries = gar_type_width(column->type) > 0;
    for (int32_t i = 0; i < nest->count; i++) {
        const struct gar_column *child = column->children[i];
        int64_t want = column->length;
        if (has_entries) {
            want = column->children[0] != NULL ? column->children[0]->length : -1;
        } else if (column->type.id == GAR_FIXED_LIST &&
                   __builtin_mul_overflow(column->length, (int64_t)nest->width, &want)) {
            want = -1;
        }
        if (child == NULL || child->encoding != GAR_FLAT || child->length != want ||
            !gar_type_equal(child->type, nest->fields[i].type)) {
            return gar_error_set(err, GAR_ERR_FORMAT, "a nested column whose child %d does not fit",
                                 i);
        }
        GAR_TRY(gar_column_validate(child, err));
    }
    if (column->type.id == GAR_MAP && gar_column_null_count(column->children[0]) != 0) {
        return gar_error_set(err, GAR_ERR_FORMAT, "a map with null keys");
    }
    return has_entries ? check_entries(column, err) : GAR_OK;
}

static enum gar_status check_flat(const struct gar_column *column, struct gar_error *err)
{
    if (column->type.id == GAR_BOOL) {
        return check_bitmap(column->values_owner, column->values, column->values_offset,
                            column->length, err);
    }
    GAR_TRY(check_values(column, gar_type_width(column->type), err));
    if (gar_type_is_text(column->type)) {
        return check_views(column, err);
    }
    if (gar_type_is_nested(column->type)) {
        return check_nested(column, err);
    }
    if (column->type.id == GAR_DECIMAL128) {
        return check_decimals(column, err);
    }
    return column->type.id == GAR_TIME ? check_times(column, err) : GAR_OK;
}

enum gar_status gar_column_validate(const struct gar_column *column, struct gar_error *err)
{
    GAR_TRY(gar_type_check(column->type, err));
    if (column->length < 0) {
        return gar_error_set(err, GAR_ERR_FORMAT, "a column of %lld rows",
                             (long long)column->length);
    }
    GAR_TRY(check_bitmap(column->validity_owner, column->validity, column->validity_offset,
                         column->length, err));
    if (column->encoding == GAR_FLAT) {
        GAR_TRY(check_flat(column, err));
    } else {
        if (column->encoding == GAR_DICTIONARY) {
            GAR_TRY(check_codes(column, err));
        } else if (column->dictionary == NULL || column->dictionary->encoding != GAR_FLAT ||
                   column->dictionary->length != 1) {
            return gar_error_set(err, GAR_ERR_FORMAT, "a constant column without its value");
        }
        GAR_TRY(gar_column_validate(column->dictionary, err));
    }
    if (column->encoding != GAR_CONSTANT && column->validity != NULL && column->null_count >= 0 &&
        column->null_count !=
            column->length -
                gar_bits_count(column->validity, column->validity_offset, column->length)) {
        return gar_error_set(err, GAR_ERR_FORMAT, "a null count of %lld that is not true",
                             (long long)column->null_count);
    }
    return GAR_OK;
}
