/* SPDX-License-Identifier: Apache-2.0 */
/* Columns: immutable, counted, typed values with validity, in one of three encodings.
 *
 * FLAT        values[length] in the type's layout (bitmap for bool; nothing for null).
 * DICTIONARY  codes: uint32_t[length] into `dictionary` (a FLAT column of the same type, without nulls); nulls are
 *             in this column's validity; codes under nulls are valid too (0).
 * CONSTANT    every row is row 0 of `dictionary` (a FLAT column of length 1, which may be null). No validity here.
 *
 * A column is built by one owner (gar_column_new, fill, publish) and never written once shared. A slice shares
 * buffers and has its own pointers. */
#ifndef GAR_ARROW_COLUMN_H
#define GAR_ARROW_COLUMN_H

#include <string.h>

#include "arrow/buffer.h"
#include "arrow/type.h"
#include "base/bits.h"
#include "base/int128.h"

enum gar_encoding { GAR_FLAT, GAR_DICTIONARY, GAR_CONSTANT };

#define GAR_VIEW_INLINE_BYTES 12

/* Arrow's view layout: up to 12 bytes lie inside, else a prefix and a place in one of the column's data buffers.
 * Unused inline bytes are zero, so that equal short strings have equal structs. */
struct gar_string_view {
    int32_t size; /* bytes, >= 0 */
    union {
        uint8_t inlined[GAR_VIEW_INLINE_BYTES];
        struct {
            uint8_t prefix[4];
            int32_t buffer;
            int32_t offset;
        } far;
    };
};
_Static_assert(sizeof(struct gar_string_view) == 16, "Arrow view layout");

/* Row of a list or map: items [offset, offset + length) of its children; {0, 0} under nulls. Entries may be in any order,
 * overlap and leave gaps. */
struct gar_list_entry {
    int64_t offset;
    int64_t length;
};
_Static_assert(sizeof(struct gar_list_entry) == 16, "moves like a view");

struct gar_column {
    int64_t refs; /* atomic */
    struct gar_type type;
    enum gar_encoding encoding;
    int64_t length;     /* rows */
    int64_t null_count; /* -1 unknown; counts this column's own validity (CONSTANT: 0 or length) */
    const uint8_t *validity;           /* bitmap, NULL when there is no null */
    int64_t validity_offset;           /* first bit */
    const void *values;                /* FLAT: values; bool: bitmap; DICTIONARY: uint32_t codes */
    int64_t values_offset;             /* bool: first bit; else 0 (the pointer is advanced) */
    struct gar_buffer *validity_owner; /* owned reference or NULL */
    struct gar_buffer *values_owner;   /* owned reference or NULL */
    struct gar_buffer *
        *data; /* FLAT string and binary: buffers the views point into; owned references */
    const uint8_t **data_pointers; /* data[i]->data, for kernels; same allocation as data */
    int32_t data_count;
    struct gar_column *dictionary; /* DICTIONARY and CONSTANT: owned reference */
    /* FLAT nested types: FLAT columns, owned references. LIST one and MAP two (keys, without nulls, and values), which
     * entries point into; FIXED_LIST one of length * width rows; STRUCT one per field of length rows. */
    struct gar_column **children;
    int32_t child_count;
    uint64_t
        dictionary_id; /* DICTIONARY: equal ids mean equal dictionaries; from gar_dictionary_next_id */
};

struct gar_column *gar_column_ref(const struct gar_column *column);
void gar_column_unref(struct gar_column *column);
uint64_t gar_dictionary_next_id(void);

/* A FLAT column of `length` rows with writable, uninitialised values (views and bitmaps zeroed) and, if with_validity, an
 * all-valid bitmap. Children of nested types are made alike, those of lists and maps empty.
 * Fill through gar_column_values_mut and gar_column_validity_mut before sharing; then set null_count.
 * Errors: GAR_ERR_NOMEM. Owns: caller unrefs. */
GAR_MUST_USE enum gar_status gar_column_new(struct gar_memory *memory, struct gar_type type,
                                            int64_t length, bool with_validity,
                                            struct gar_column **out, struct gar_error *err);
/* Writable pointers of a column that nobody else holds (bit offset 0). */
void *gar_column_values_mut(struct gar_column *column);
uint8_t *gar_column_validity_mut(struct gar_column *column);
/* Take over (move) a data buffer of a string column being built; *out_index is its number for views. */
GAR_MUST_USE enum gar_status gar_column_add_data(struct gar_column *column,
                                                 struct gar_buffer *buffer, int32_t *out_index,
                                                 struct gar_error *err);

/* From parts; every reference is moved in on success, left to the caller on failure. validity and data may be NULL. */
struct gar_column_parts {
    struct gar_type type;
    int64_t length;
    int64_t null_count;
    struct gar_buffer *validity;
    int64_t validity_offset;
    struct gar_buffer *values;
    int64_t values_offset; /* bool: bits; else rows */
    struct gar_buffer **data;
    int32_t data_count;
    struct gar_column *
        *children; /* nested: FLAT, as many as the nest has fields; the array stays the caller's */
    int32_t child_count;
};
GAR_MUST_USE enum gar_status gar_column_from_parts(const struct gar_column_parts *parts,
                                                   struct gar_column **out, struct gar_error *err);
/* codes (uint32_t, moved) + dictionary (moved) -> DICTIONARY column; validity moved, may be NULL. Codes are trusted. */
GAR_MUST_USE enum gar_status gar_column_new_dictionary(
    struct gar_buffer *codes, int64_t length, struct gar_buffer *validity, int64_t null_count,
    struct gar_column *dictionary, uint64_t dictionary_id, struct gar_column **out,
    struct gar_error *err);
/* The rows of a DICTIONARY column with another dictionary (FLAT, without nulls, at least as long; a reference is
 * taken) and its id; codes and validity are shared. */
GAR_MUST_USE enum gar_status gar_column_with_dictionary(const struct gar_column *column,
                                                        struct gar_column *dictionary,
                                                        uint64_t dictionary_id,
                                                        struct gar_column **out,
                                                        struct gar_error *err);
/* value: FLAT of length 1 (moved) -> CONSTANT of `length`. */
GAR_MUST_USE enum gar_status gar_column_new_constant(struct gar_column *value, int64_t length,
                                                     struct gar_column **out,
                                                     struct gar_error *err);
/* All rows null. */
GAR_MUST_USE enum gar_status gar_column_new_null(struct gar_memory *memory, struct gar_type type,
                                                 int64_t length, struct gar_column **out,
                                                 struct gar_error *err);

/* Rows [offset, offset + length) of a column, sharing its buffers. 0 <= offset, offset + length <= column length. */
GAR_MUST_USE enum gar_status gar_column_slice(const struct gar_column *column, int64_t offset,
                                              int64_t length, struct gar_column **out,
                                              struct gar_error *err);
/* Exact number of nulls (counts when unknown). */
int64_t gar_column_null_count(const struct gar_column *column);
/* Is row i null? Any encoding. */
bool gar_column_is_null(const struct gar_column *column, int64_t i);
/* The physical row of a FLAT values array that row i shows: i, code[i] or 0; *out_values gets that FLAT column. */
int64_t gar_column_locate(const struct gar_column *column, int64_t i,
                          const struct gar_column **out_values);
/* Bytes of buffers it holds (shared ones counted whole once per column). */
int64_t gar_column_bytes(const struct gar_column *column);
/* Checks everything an importer cannot trust: lengths, offsets, view buffers, UTF-8, codes. Cost: one pass. */
GAR_MUST_USE enum gar_status gar_column_validate(const struct gar_column *column,
                                                 struct gar_error *err);

GAR_INLINE const uint8_t *gar_view_bytes(const struct gar_string_view *view,
                                         const uint8_t *const *data_pointers)
{
    return view->size <= GAR_VIEW_INLINE_BYTES ? view->inlined
                                               : data_pointers[view->far.buffer] + view->far.offset;
}

/* Bytes of row i of a FLAT string or binary column. */
GAR_INLINE const uint8_t *gar_column_bytes_at(const struct gar_column *flat, int64_t i,
                                              int64_t *out_bytes)
{
    const struct gar_string_view *view = (const struct gar_string_view *)flat->values + i;
    *out_bytes = view->size;
    return gar_view_bytes(view, flat->data_pointers);
}

/* Make a view of bytes that lie at `offset` of data buffer `buffer` (copied inline when short). */
GAR_INLINE struct gar_string_view gar_view_make(const uint8_t *bytes, int32_t size, int32_t buffer,
                                                int32_t offset)
{
    struct gar_string_view v;
    memset(&v, 0, sizeof v);
    v.size = size;
    if (size <= GAR_VIEW_INLINE_BYTES) {
        memcpy(v.inlined, bytes, (size_t)size);
    } else {
        memcpy(v.far.prefix, bytes, 4);
        v.far.buffer = buffer;
        v.far.offset = offset;
    }
    return v;
}

#endif
