/* SPDX-License-Identifier: Apache-2.0 */
/* Key rows: the key columns of a row as a few 64-bit words that are equal if and only if the keys are, with their hash.
 *
 * Word 0 holds the null bits of the first 32 key columns (low half) and the row's 32-bit hash (high half); more columns have
 * their null bits in words of their own behind it. Then one word for each column of up to 8 bytes (and for decimals
 * of up to 18 digits), two for larger decimals, two for texts: the 16 bytes of the view. Of a text over 12 bytes the
 * second word is a place: here a pointer to its bytes, in row pages an offset (exec/row_page.h).
 * Null keys are equal to each other, all NaN are equal, -0.0 equals 0.0. */
#ifndef GAR_KERNELS_HASH_ROWS_H
#define GAR_KERNELS_HASH_ROWS_H

#include "arrow/column.h"

struct gar_key_column {
    struct gar_type type;
    int32_t word;  /* its first word */
    int32_t words; /* 0 (null type), 1 or 2 */
    bool is_text;
};

/* Constant once made. */
struct gar_key_layout {
    struct gar_key_column *columns; /* owned */
    int64_t count;
    int32_t words;      /* of a row */
    int32_t null_words; /* words at the front that hold null bits */
    int32_t text_count; /* columns that are texts */
};

/* Errors: GAR_ERR_NOMEM, GAR_ERR_UNSUPPORTED for more than 4,096 keys. Owns: destroy it; zeroed is
 * safe to destroy. */
GAR_MUST_USE enum gar_status gar_key_layout_init(struct gar_key_layout *layout,
                                                 const struct gar_type *types, int64_t count,
                                                 struct gar_error *err);
void gar_key_layout_destroy(struct gar_key_layout *layout);

/* Rows that one call encodes at most. */
#define GAR_KEY_ROWS 256

/* Encode rows [first, first + count) of the key columns (any encodings); rows gets count * layout->words words.
 * Shape:   columns[layout->count] -> rows[count][words]; count <= GAR_KEY_ROWS
 * Owns:    borrows; long texts are pointed at in the columns' buffers
 * Threads: any */
void gar_key_encode(const struct gar_key_layout *layout, struct gar_column *const *columns,
                    int64_t first, int64_t count, uint64_t *rows);

/* Word of a key row that is a text's view: its bytes when they do not lie inside. */
GAR_INLINE const uint8_t *gar_key_far(uint64_t second_word)
{
    return (const uint8_t *)(uintptr_t)second_word;
}
GAR_INLINE int32_t gar_key_text_size(uint64_t first_word)
{
    return (int32_t)(uint32_t)first_word;
}
GAR_INLINE uint32_t gar_key_hash(const uint64_t *row)
{
    return (uint32_t)(row[0] >> 32);
}
GAR_INLINE bool gar_key_is_null(const uint64_t *row, int64_t column)
{
    return ((uint32_t)row[column >> 5] >> (column & 31)) & 1;
}

/* One fixed-width value of up to 8 bytes (or a decimal of up to 18 digits) as a word; rows [first, first + count) of any
 * encoding. What lies under nulls gives 0. */
void gar_key_load_words(const struct gar_column *column, int64_t first, int64_t count,
                        uint64_t *out);
/* The reverse: write a word as the value of row i of a FLAT column being built. */
void gar_key_store_word(struct gar_column *column, int64_t i, uint64_t word);
/* Can the type be one word? */
bool gar_key_is_word(struct gar_type type);
uint32_t gar_key_hash_word(uint64_t word);

/* Hashes of rows [first, first + count) of the key columns, of any encoding: of one key that is a word those of its
 * word (null: 0), else those of key rows. scratch holds GAR_KEY_ROWS key rows.
 * Shape:   columns[layout->count] -> out[count] */
void gar_key_hashes(const struct gar_key_layout *layout, struct gar_column *const *columns,
                    int64_t first, int64_t count, uint64_t *scratch, uint32_t *out);

/* Tests only: ANDed to every hash, so that all rows can be made to collide. */
void gar_key_set_hash_mask(uint32_t mask);

#endif
