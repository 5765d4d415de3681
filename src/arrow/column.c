/* SPDX-License-Identifier: Apache-2.0 */
/* Columns: making, sharing, slicing. Moving rows is in gather.c, checking in validate.c. */
#include "arrow/column.h"

#include "arrow/column_priv.h"
#include "arrow/refs_priv.h"
#include "base/alloc.h"

/* Read where a column has no values at all: one vector's worth. */
static const uint8_t no_values[64] GAR_ALIGNED(64);

static uint64_t last_dictionary_id; /* atomic */

uint64_t gar_dictionary_next_id(void)
{
    return __atomic_add_fetch(&last_dictionary_id, 1, __ATOMIC_RELAXED);
}

/* ---- the set of data buffers ---- */

static struct data_set *data_set_of(const struct gar_column *column)
{
    return column->data == NULL ? NULL
                                : (struct data_set *)(void *)((uint8_t *)(void *)column->data -
                                                              offsetof(struct data_set, buffers));
}

static struct data_set *new_data_set(int64_t capacity, struct gar_error *err)
{
    const int64_t bytes = (int64_t)sizeof(struct data_set) + 2 * capacity * (int64_t)sizeof(void *);
    struct data_set *set = gar_calloc(1, bytes);
    if (set == NULL) {
        (void)gar_error_nomem(err, bytes);
        return NULL;
    }
    set->refs = 1;
    set->capacity = capacity;
    return set;
}

static const uint8_t **pointers_of(struct data_set *set)
{
    return (const uint8_t **)(void *)(set->buffers + set->capacity);
}

static void use_data_set(struct gar_column *column, struct data_set *set, int32_t count)
{
    column->data = set->buffers;
    column->data_pointers = pointers_of(set);
    column->data_count = count;
}

static void unref_data(struct gar_column *column)
{
    struct data_set *set = data_set_of(column);
    if (set == NULL || !ref_drop(&set->refs)) {
        return;
    }
    for (int32_t i = 0; i < column->data_count; i++) {
        gar_buffer_unref(set->buffers[i]);
    }
    gar_free(set);
}

void column_share_data(struct gar_column *to, const struct gar_column *from)
{
    struct data_set *set = data_set_of(from);
    if (set != NULL) {
        ref_add(&set->refs);
        use_data_set(to, set, from->data_count);
    }
}

bool column_same_data(const struct gar_column *a, const struct gar_column *b)
{
    return a->data == b->data;
}

enum gar_status gar_column_add_data(struct gar_column *column, struct gar_buffer *buffer,
                                    int32_t *out_index, struct gar_error *err)
{
    struct data_set *set = data_set_of(column);
    const int64_t count = column->data_count;
    if (count >= INT32_MAX) {
        return gar_error_set(err, GAR_ERR_OVERFLOW, "a column of more than %d data buffers",
                             INT32_MAX);
    }
    if (set == NULL || count == set->capacity || !ref_is_only(&set->refs)) {
        struct data_set *grown = new_data_set(gar_next_pow2(count + 1), err);
        if (grown == NULL) {
            return GAR_ERR_NOMEM;
        }
        for (int64_t i = 0; i < count; i++) {
            grown->buffers[i] = gar_buffer_ref(column->data[i]);
            pointers_of(grown)[i] = column->data_pointers[i];
        }
        unref_data(column);
        use_data_set(column, grown, (int32_t)count);
        set = grown;
    }
    set->buffers[count] = buffer;
    pointers_of(set)[count] = buffer->data;
    column->data_count = (int32_t)(count + 1);
    *out_index = (int32_t)count;
    return GAR_OK;
}

/* ---- making ---- */

struct gar_column *column_alloc(struct gar_type type, enum gar_encoding encoding, int64_t length,
                                struct gar_error *err)
{
    struct gar_column *column = gar_calloc(1, (int64_t)sizeof *column);
    if (column == NULL) {
        (void)gar_error_nomem(err, (int64_t)sizeof *column);
        return NULL;
    }
    column->refs = 1;
    column->type = type;
    column->encoding = encoding;
    column->length = length;
    column->values = no_values;
    column->null_count = type.id == GAR_NULL && encoding == GAR_FLAT ? length : 0;
    return column;
}

struct gar_column *gar_column_ref(const struct gar_column *column)
{
    struct gar_column *c = drop_const(column);
    if (c != NULL) {
        ref_add(&c->refs);
    }
    return c;
}

void gar_column_unref(struct gar_column *column)
{
    if (column == NULL || !ref_drop(&column->refs)) {
        return;
    }
    gar_buffer_unref(column->validity_owner);
    gar_buffer_unref(column->values_owner);
    unref_data(column);
    gar_column_unref(column->dictionary); /* one level: dictionaries are FLAT */
    for (int32_t i = 0; i < column->child_count; i++) {
        gar_column_unref(column->children[i]); /* as deep as the type, GAR_NEST_DEPTH_MAX */
    }
    gar_free(column->children);
    gar_free(column);
}

enum gar_status column_alloc_children(struct gar_column *to, struct gar_error *err)
{
    if (to->type.nest == NULL || to->type.nest->count == 0) {
        return GAR_OK;
    }
    const int64_t count = to->type.nest->count;
    to->children = gar_calloc(count, (int64_t)sizeof(struct gar_column *));
    if (to->children == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof(struct gar_column *));
    }
    to->child_count = (int32_t)count;
    return GAR_OK;
}

enum gar_status column_share_children(struct gar_column *to, const struct gar_column *from,
                                      struct gar_error *err)
{
    GAR_TRY(column_alloc_children(to, err));
    for (int32_t i = 0; i < to->child_count; i++) {
        to->children[i] = gar_column_ref(from->children[i]);
    }
    return GAR_OK;
}

/* Rows of each child of a FLAT nested column whose entries, if any, take none; -1 if impossible. */
static int64_t child_length(struct gar_type type, int64_t length)
{
    if (type.id == GAR_FIXED_LIST) {
        int64_t items = 0;
        return __builtin_mul_overflow(length, (int64_t)type.nest->width, &items) ? -1 : items;
    }
    return type.id == GAR_STRUCT ? length : 0;
}

/* Bytes of the values buffer of a FLAT column, or -1 if the length is impossible. */
static int64_t values_bytes(struct gar_type type, int64_t length)
{
    if (length < 0 || length > (INT64_C(1) << 56)) {
        return -1;
    }
    return type.id == GAR_BOOL ? gar_bits_bytes(length) : length * gar_type_width(type);
}

static enum gar_status add_values(struct gar_column *column, struct gar_memory *memory,
                                  bool with_validity, struct gar_error *err)
{
    const int64_t bytes = values_bytes(column->type, column->length);
    if (bytes < 0) {
        return gar_error_set(err, GAR_ERR_NOMEM,
                             "out of memory: a column of %lld rows is impossible",
                             (long long)column->length);
    }
    if (column->type.id == GAR_NULL) {
        return GAR_OK;
    }
    if (column->type.id == GAR_BOOL || gar_type_is_text(column->type) ||
        gar_type_is_nested(column->type)) {
        GAR_TRY(gar_buffer_new_zeroed(memory, bytes, &column->values_owner, err));
    } else {
        GAR_TRY(gar_buffer_new(memory, bytes, &column->values_owner, err));
    }
    column->values = column->values_owner->data;
    if (with_validity) {
        GAR_TRY(
            gar_buffer_new(memory, gar_bits_bytes(column->length), &column->validity_owner, err));
        memset(column->validity_owner->data, 0xff, (size_t)column->validity_owner->size);
        column->validity = column->validity_owner->data;
        column->null_count = -1;
    }
    GAR_TRY(column_alloc_children(column, err));
    for (int32_t i = 0; i < column->child_count; i++) {
        GAR_TRY(gar_column_new(memory, column->type.nest->fields[i].type,
                               child_length(column->type, column->length), with_validity,
                               &column->children[i], err));
    }
    return GAR_OK;
}

enum gar_status gar_column_new(struct gar_memory *memory, struct gar_type type, int64_t length,
                               bool with_validity, struct gar_column **out, struct gar_error *err)
{
    struct gar_column *column = column_alloc(type, GAR_FLAT, length, err);
    if (column == NULL) {
        return GAR_ERR_NOMEM;
    }
    const enum gar_status status = add_values(column, memory, with_validity, err);
    if (status < 0) {
        gar_column_unref(column);
        return status;
    }
    *out = column;
    return GAR_OK;
}

void *gar_column_values_mut(struct gar_column *column)
{
    return column->values_owner != NULL ? (void *)column->values_owner->data
                                        : drop_const(column->values);
}

uint8_t *gar_column_validity_mut(struct gar_column *column)
{
    return column->validity_owner != NULL ? column->validity_owner->data : NULL;
}

static enum gar_status check_parts(const struct gar_column_parts *parts, struct gar_error *err)
{
    const int64_t bytes = values_bytes(parts->type, parts->length);
    const int64_t skip = parts->values_offset;
    bool fits = bytes >= 0 && skip >= 0 && parts->validity_offset >= 0 && parts->data_count >= 0;
    if (fits && parts->type.id != GAR_NULL) {
        const int64_t have = parts->values != NULL ? parts->values->size : 0;
        fits = skip <= INT64_C(1) << 56 && values_bytes(parts->type, parts->length + skip) <= have;
    }
    if (fits && parts->validity != NULL) {
        fits = parts->length <= parts->validity->size * 8 - parts->validity_offset;
    }
    const struct gar_nest *nest = parts->type.nest;
    fits = fits && parts->child_count == (nest != NULL ? nest->count : 0) &&
           (nest == NULL || skip == 0 || gar_type_width(parts->type) > 0);
    for (int32_t i = 0; fits && i < parts->child_count; i++) {
        const struct gar_column *child = parts->children[i];
        const int64_t want = child_length(parts->type, parts->length);
        fits = child->encoding == GAR_FLAT && gar_type_equal(child->type, nest->fields[i].type) &&
               (gar_type_width(parts->type) > 0 ? child->length == parts->children[0]->length
                                                : child->length == want);
    }
    if (!fits) {
        char text[64];
        return gar_error_set(
            err, GAR_ERR_INTERNAL, "buffers are too small for a column of %lld rows of %s",
            (long long)parts->length, gar_type_text(parts->type, text, (int64_t)sizeof text));
    }
    return GAR_OK;
}

enum gar_status gar_column_from_parts(const struct gar_column_parts *parts, struct gar_column **out,
                                      struct gar_error *err)
{
    GAR_TRY(check_parts(parts, err));
    struct gar_column *column = column_alloc(parts->type, GAR_FLAT, parts->length, err);
    if (column == NULL) {
        return GAR_ERR_NOMEM;
    }
    if (column_alloc_children(column, err) < 0) {
        gar_column_unref(column);
        return GAR_ERR_NOMEM;
    }
    if (parts->data_count > 0) {
        struct data_set *set = new_data_set(gar_next_pow2(parts->data_count), err);
        if (set == NULL) {
            gar_column_unref(column); /* its children are still NULL */
            return GAR_ERR_NOMEM;
        }
        for (int32_t i = 0; i < parts->data_count; i++) {
            set->buffers[i] = parts->data[i];
            pointers_of(set)[i] = parts->data[i]->data;
        }
        use_data_set(column, set, parts->data_count);
    }
    for (int32_t i = 0; i < column->child_count; i++) {
        column->children[i] = parts->children[i];
    }
    column->values_owner = parts->values;
    if (parts->type.id == GAR_BOOL) {
        column->values_offset = parts->values_offset;
    }
    if (parts->values != NULL) {
        const int64_t skip =
            parts->type.id == GAR_BOOL ? 0 : parts->values_offset * gar_type_width(parts->type);
        column->values = parts->values->data + skip;
    }
    if (parts->type.id != GAR_NULL) {
        column->validity_owner = parts->validity;
        column->validity = parts->validity != NULL ? parts->validity->data : NULL;
        column->validity_offset = parts->validity_offset;
        column->null_count = parts->validity != NULL ? parts->null_count : 0;
    } else {
        gar_buffer_unref(parts->validity);
    }
    *out = column;
    return GAR_OK;
}

enum gar_status gar_column_new_dictionary(struct gar_buffer *codes, int64_t length,
                                          struct gar_buffer *validity, int64_t null_count,
                                          struct gar_column *dictionary, uint64_t dictionary_id,
                                          struct gar_column **out, struct gar_error *err)
{
    if (dictionary->encoding != GAR_FLAT || length < 0 ||
        codes->size / (int64_t)sizeof(uint32_t) < length ||
        (validity != NULL && validity->size * 8 < length)) {
        return gar_error_set(err, GAR_ERR_INTERNAL,
                             "a dictionary column of %lld rows from unfit parts",
                             (long long)length);
    }
    struct gar_column *column = column_alloc(dictionary->type, GAR_DICTIONARY, length, err);
    if (column == NULL) {
        return GAR_ERR_NOMEM;
    }
    column->values_owner = codes;
    column->values = codes->data;
    column->validity_owner = validity;
    column->validity = validity != NULL ? validity->data : NULL;
    column->null_count = validity != NULL ? null_count : 0;
    column->dictionary = dictionary;
    column->dictionary_id = dictionary_id;
    *out = column;
    return GAR_OK;
}

enum gar_status gar_column_new_constant(struct gar_column *value, int64_t length,
                                        struct gar_column **out, struct gar_error *err)
{
    if (value->encoding != GAR_FLAT || value->length != 1 || length < 0) {
        return gar_error_set(err, GAR_ERR_INTERNAL,
                             "a constant column needs one flat value, not %lld rows",
                             (long long)value->length);
    }
    struct gar_column *column = column_alloc(value->type, GAR_CONSTANT, length, err);
    if (column == NULL) {
        return GAR_ERR_NOMEM;
    }
    column->dictionary = value;
    column->null_count = gar_column_is_null(value, 0) ? length : 0;
    *out = column;
    return GAR_OK;
}

/* Every row of a column of gar_column_new with validity, and of its children, becomes null. */
static void make_null(struct gar_column *column)
{
    if (column->validity != NULL) {
        memset(gar_column_values_mut(column), 0, (size_t)column->values_owner->size);
        memset(gar_column_validity_mut(column), 0, (size_t)column->validity_owner->size);
    }
    column->null_count = column->length;
    for (int32_t i = 0; i < column->child_count; i++) {
        make_null(column->children[i]);
    }
}

/* One null, FLAT. */
static enum gar_status new_one_null(struct gar_memory *memory, struct gar_type type,
                                    struct gar_column **out, struct gar_error *err)
{
    struct gar_column *value = NULL;
    GAR_TRY(gar_column_new(memory, type, 1, true, &value, err));
    make_null(value);
    *out = value;
    return GAR_OK;
}

enum gar_status gar_column_new_null(struct gar_memory *memory, struct gar_type type, int64_t length,
                                    struct gar_column **out, struct gar_error *err)
{
    if (type.id == GAR_NULL) {
        return gar_column_new(memory, type, length, false, out, err);
    }
    struct gar_column *value = NULL;
    GAR_TRY(new_one_null(memory, type, &value, err));
    if (length == 1) {
        *out = value;
        return GAR_OK;
    }
    const enum gar_status status = gar_column_new_constant(value, length, out, err);
    if (status < 0) {
        gar_column_unref(value);
    }
    return status;
}

/* ---- sharing ---- */

void column_share_validity(struct gar_column *to, const struct gar_column *from)
{
    to->validity_owner = gar_buffer_ref(from->validity_owner);
    to->validity = from->validity;
    to->validity_offset = from->validity_offset;
    to->null_count = from->null_count;
}

/* Lists and maps share their children whole; fixed lists and structs slice them. */
static enum gar_status slice_children(struct gar_column *to, const struct gar_column *from,
                                      int64_t offset, int64_t length, struct gar_error *err)
{
    if (from->child_count == 0) {
        return GAR_OK;
    }
    if (gar_type_width(from->type) > 0) {
        return column_share_children(to, from, err);
    }
    const int64_t scale = from->type.id == GAR_FIXED_LIST ? from->type.nest->width : 1;
    GAR_TRY(column_alloc_children(to, err));
    for (int32_t i = 0; i < to->child_count; i++) {
        GAR_TRY(gar_column_slice(from->children[i], offset * scale, length * scale,
                                 &to->children[i], err));
    }
    return GAR_OK;
}

/* The slice as a column of its own, also when it is the whole column. */
static enum gar_status new_slice(const struct gar_column *column, int64_t offset, int64_t length,
                                 struct gar_column **out, struct gar_error *err)
{
    struct gar_column *slice = column_alloc(column->type, column->encoding, length, err);
    if (slice == NULL) {
        return GAR_ERR_NOMEM;
    }
    const enum gar_status status = slice_children(slice, column, offset, length, err);
    if (status < 0) {
        gar_column_unref(slice);
        return status;
    }
    slice->dictionary = gar_column_ref(column->dictionary);
    slice->dictionary_id = column->dictionary_id;
    slice->values_owner = gar_buffer_ref(column->values_owner);
    column_share_data(slice, column);
    column_share_validity(slice, column);
    slice->validity_offset += column->validity != NULL ? offset : 0;
    if (column->null_count == column->length) {
        slice->null_count = length;
    } else if (column->null_count != 0) {
        slice->null_count = -1;
    }
    slice->values = column->values;
    if (column->encoding == GAR_DICTIONARY) {
        slice->values = (const uint32_t *)column->values + offset;
    } else if (column->encoding == GAR_FLAT && column->type.id == GAR_BOOL) {
        slice->values_offset = column->values_offset + offset;
    } else if (column->encoding == GAR_FLAT) {
        slice->values = (const uint8_t *)column->values + offset * gar_type_width(column->type);
    }
    *out = slice;
    return GAR_OK;
}

enum gar_status gar_column_slice(const struct gar_column *column, int64_t offset, int64_t length,
                                 struct gar_column **out, struct gar_error *err)
{
    if (offset == 0 && length == column->length) {
        *out = gar_column_ref(column);
        return GAR_OK;
    }
    if (offset < 0 || length < 0 || offset > column->length - length) {
        return gar_error_set(err, GAR_ERR_INTERNAL,
                             "a slice of %lld rows from row %lld in a column of %lld rows",
                             (long long)length, (long long)offset, (long long)column->length);
    }
    return new_slice(column, offset, length, out, err);
}

enum gar_status gar_column_with_dictionary(const struct gar_column *column,
                                           struct gar_column *dictionary, uint64_t dictionary_id,
                                           struct gar_column **out, struct gar_error *err)
{
    struct gar_column *coded = NULL;
    GAR_TRY(new_slice(column, 0, column->length, &coded, err));
    gar_column_unref(coded->dictionary);
    coded->dictionary = gar_column_ref(dictionary);
    coded->dictionary_id = dictionary_id;
    coded->type = dictionary->type;
    *out = coded;
    return GAR_OK;
}

/* ---- reading ---- */

int64_t gar_column_null_count(const struct gar_column *column)
{
    if (column->null_count >= 0) {
        return column->null_count;
    }
    if (column->validity == NULL) {
        return 0;
    }
    return column->length -
           gar_bits_count(column->validity, column->validity_offset, column->length);
}

bool gar_column_is_null(const struct gar_column *column, int64_t i)
{
    if (column->encoding == GAR_CONSTANT) {
        return gar_column_is_null(column->dictionary, 0);
    }
    if (column->type.id == GAR_NULL) {
        return true;
    }
    return column->validity != NULL && !gar_bit_get(column->validity, column->validity_offset + i);
}

int64_t gar_column_locate(const struct gar_column *column, int64_t i,
                          const struct gar_column **out_values)
{
    switch (column->encoding) {
    case GAR_DICTIONARY:
        *out_values = column->dictionary;
        return ((const uint32_t *)column->values)[i];
    case GAR_CONSTANT: *out_values = column->dictionary; return 0;
    case GAR_FLAT: break;
    }
    *out_values = column;
    return i;
}

void column_copy_validity(const struct gar_column *column, uint8_t *to, int64_t to_offset)
{
    if (column->validity == NULL) {
        gar_bits_fill(to, to_offset, column->length, column->type.id != GAR_NULL);
    } else {
        gar_bits_copy(to, to_offset, column->validity, column->validity_offset, column->length);
    }
}

int64_t gar_column_bytes(const struct gar_column *column)
{
    int64_t bytes = column->values_owner != NULL ? column->values_owner->size : 0;
    bytes += column->validity_owner != NULL ? column->validity_owner->size : 0;
    for (int32_t i = 0; i < column->data_count; i++) {
        bytes += column->data[i]->size;
    }
    for (int32_t i = 0; i < column->child_count; i++) {
        bytes += gar_column_bytes(column->children[i]);
    }
    return bytes + (column->dictionary != NULL ? gar_column_bytes(column->dictionary) : 0);
}
