/* SPDX-License-Identifier: Apache-2.0 */
/* From one-word keys to dense numbers (0, 1, 2, ... in the order of their first appearance).
 *
 * Two forms behind one interface. Integers that lie close together (their range is at most 16 times
 * their number) are looked up in an array by key less the smallest; others in an open-addressing
 * table of (key, number) slots. The form is chosen again whenever the index has to grow.
 *
 * Memory: 8 bytes a number, and either 4 bytes for each key of the range or 24 to 48 bytes a number.
 * Nothing holds a pointer. Threads: one at a time. */
#ifndef GAR_KERNELS_WORD_INDEX_H
#define GAR_KERNELS_WORD_INDEX_H

#include "arrow/buffer.h"

struct gar_word_index {
    struct gar_memory *memory; /* borrowed */
    bool is_integer;           /* keys have an order that their bits show */
    bool is_direct;            /* the array is in use */
    int64_t count;             /* numbers given, that of null included */
    int64_t null_number;       /* -1: none yet */
    struct gar_buffer *words;  /* owned; key of each number */
    struct gar_buffer *table;  /* owned; slots, or uint32_t number + 1 of each key from base on */
    int64_t slot_mask;
    uint64_t base;
    int64_t cells;
    int64_t least; /* of all keys; only if is_integer */
    int64_t greatest;
};

/* Keys that one call takes at most. */
#define GAR_WORD_INDEX_STEP 256
#define GAR_WORD_INDEX_NONE UINT32_MAX

void gar_word_index_init(struct gar_word_index *index, struct gar_memory *memory, bool is_integer);
void gar_word_index_destroy(struct gar_word_index *index);
/* out[i] = number of keys[i]; new keys get the next ones. Errors: GAR_ERR_NOMEM; GAR_ERR_UNSUPPORTED
 * beyond 2^32 - 2 numbers. Nothing is changed then. */
GAR_MUST_USE enum gar_status gar_word_index_find(struct gar_word_index *index, const uint64_t *keys,
                                                 int64_t count, uint32_t *out,
                                                 struct gar_error *err);
/* The same of keys that the index has; others are GAR_WORD_INDEX_NONE, and the index stays as it is. */
void gar_word_index_look_up(const struct gar_word_index *index, const uint64_t *keys, int64_t count,
                            uint32_t *out);
/* The number of null. Errors as find. */
GAR_MUST_USE enum gar_status gar_word_index_find_null(struct gar_word_index *index, uint32_t *out,
                                                      struct gar_error *err);

GAR_INLINE uint64_t gar_word_index_key(const struct gar_word_index *index, int64_t number)
{
    return ((const uint64_t *)(const void *)index->words->data)[number];
}

#endif
