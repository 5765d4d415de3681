/* SPDX-License-Identifier: Apache-2.0 */
/* Word indexes: the array, the table, and the choice between them. */
#include "kernels/word_index.h"

#include <string.h>

#include "base/bits.h"
#include "base/stop.h"
#include "kernels/hash_rows.h"

enum {
    FIRST_SLOTS = 64,
    GROW_FAST_BELOW = 1 << 18,     /* numbers */
    PREFETCH_FROM_BYTES = 1 << 18, /* smaller tables lie in L2 anyway */
    CELLS_ALWAYS = 4096,           /* a range so small is always an array */
    CELLS_PER_NUMBER = 16,
    STOP_STEPS = 1 << 16,
};

struct slot {
    uint64_t key;
    uint32_t number; /* + 1; 0: empty */
    uint32_t hash;
};

void gar_word_index_init(struct gar_word_index *index, struct gar_memory *memory, bool is_integer)
{
    memset(index, 0, sizeof *index);
    index->memory = memory;
    index->is_integer = is_integer;
    index->null_number = -1;
    index->least = INT64_MAX;
    index->greatest = INT64_MIN;
}

void gar_word_index_destroy(struct gar_word_index *index)
{
    gar_buffer_unref(index->words);
    gar_buffer_unref(index->table);
    index->words = NULL;
    index->table = NULL;
}

static uint64_t *words_of(const struct gar_word_index *index)
{
    return (uint64_t *)(void *)index->words->data;
}

/* Room in the list of keys. */
static enum gar_status room_for_words(struct gar_word_index *index, int64_t more,
                                      struct gar_error *err)
{
    const int64_t want = index->count + more;
    if (want >= (int64_t)UINT32_MAX) {
        return gar_error_set(err, GAR_ERR_UNSUPPORTED, "more than 4294967294 groups in one task");
    }
    const int64_t bytes = want * (int64_t)sizeof(uint64_t);
    if (index->words == NULL) {
        return gar_buffer_new(index->memory, bytes, &index->words, err);
    }
    if (index->words->size >= bytes) {
        return GAR_OK;
    }
    return gar_buffer_resize(index->words, gar_max_i64(bytes, 2 * index->words->size), err);
}

/* ---- the table ---- */

static void insert_slot(struct slot *slots, uint64_t mask, struct slot slot)
{
    uint64_t at = slot.hash & mask;
    while (slots[at].number != 0) {
        at = (at + 1) & mask;
    }
    slots[at] = slot;
}

/* A table with room for `want` numbers. Old slots are moved in their order: a slot's new place is its
 * old one or a multiple of the old size further, so that memory is written in a few streams. */
static enum gar_status make_table(struct gar_word_index *index, int64_t want, struct gar_error *err)
{
    /* Small tables grow by 4, to be made again less often; large ones by 2, for their memory. */
    const bool is_first = index->table == NULL;
    const int64_t factor = !is_first && want < GROW_FAST_BELOW ? 4 : 2;
    const int64_t slots = gar_max_i64(gar_next_pow2(want * factor), FIRST_SLOTS);
    const uint64_t mask = (uint64_t)slots - 1;
    struct gar_buffer *fresh = NULL;
    GAR_TRY(
        gar_buffer_new_zeroed(index->memory, slots * (int64_t)sizeof(struct slot), &fresh, err));
    struct slot *to = (struct slot *)(void *)fresh->data;
    if (!is_first && !index->is_direct) {
        const struct slot *old = (const struct slot *)(const void *)index->table->data;
        for (int64_t i = 0; i <= index->slot_mask; i++) {
            if (old[i].number != 0) {
                insert_slot(to, mask, old[i]);
            }
            if (i % STOP_STEPS == 0 && gar_stop_requested()) {
                break;
            }
        }
    } else {
        for (int64_t n = 0; n < index->count; n++) {
            const uint64_t key = words_of(index)[n];
            if (n != index->null_number) {
                const struct slot slot = {key, (uint32_t)n + 1, gar_key_hash_word(key)};
                insert_slot(to, mask, slot);
            }
            if (n % STOP_STEPS == 0 && gar_stop_requested()) {
                break;
            }
        }
    }
    const enum gar_status status = gar_stop_check(err);
    if (status < 0) { /* half filled: the old one stays */
        gar_buffer_unref(fresh);
        return status;
    }
    gar_buffer_unref(index->table);
    index->table = fresh;
    index->slot_mask = slots - 1;
    index->is_direct = false;
    return GAR_OK;
}

static inline uint32_t find_slot(struct gar_word_index *index, struct slot *slots, uint64_t key,
                                 uint32_t hash)
{
    uint64_t at = hash & (uint64_t)index->slot_mask;
    while (slots[at].number != 0) {
        if (slots[at].key == key) {
            return slots[at].number - 1;
        }
        at = (at + 1) & (uint64_t)index->slot_mask;
    }
    const uint32_t number = (uint32_t)index->count++;
    slots[at] = (struct slot){key, number + 1, hash};
    words_of(index)[number] = key;
    return number;
}

static void find_in_table(struct gar_word_index *index, const uint64_t *keys, int64_t count,
                          uint32_t *out)
{
    uint32_t hashes[GAR_WORD_INDEX_STEP];
    struct slot *slots = (struct slot *)(void *)index->table->data;
    for (int64_t i = 0; i < count; i++) {
        hashes[i] = gar_key_hash_word(keys[i]);
    }
    if (index->table->size > PREFETCH_FROM_BYTES) {
        for (int64_t i = 0; i < count; i++) {
            __builtin_prefetch(&slots[hashes[i] & (uint64_t)index->slot_mask]);
        }
    }
    uint64_t last = ~keys[0];
    uint32_t number = 0;
    for (int64_t i = 0; i < count; i++) {
        if (keys[i] != last) {
            last = keys[i];
            number = find_slot(index, slots, last, hashes[i]);
        }
        out[i] = number;
    }
}

/* ---- the array ---- */

/* Keys in the range, or 0 when they are too many to count. */
static uint64_t span_of(const struct gar_word_index *index)
{
    return (uint64_t)index->greatest - (uint64_t)index->least + 1;
}

static bool suits_array(const struct gar_word_index *index, int64_t want)
{
    const uint64_t span = span_of(index);
    return index->is_integer && span != 0 &&
           (span <= CELLS_ALWAYS || span / CELLS_PER_NUMBER <= (uint64_t)want);
}

/* To one of few sizes, so that the memory of one query fits the next. */
static int64_t round_up(int64_t cells)
{
    const int64_t quarter = gar_next_pow2(gar_max_i64(cells, 64)) / 8;
    return (cells + quarter - 1) / quarter * quarter;
}

/* An array over the range of all keys, with room on the side that it grew on. */
static enum gar_status make_array(struct gar_word_index *index, struct gar_error *err)
{
    const uint64_t span = span_of(index);
    const uint64_t room = span / 2;
    uint64_t base = (uint64_t)index->least;
    if (index->is_direct && (int64_t)base < (int64_t)index->base) {
        base -= room; /* it may wrap: places are differences */
    }
    const int64_t cells = round_up((int64_t)(span + room));
    struct gar_buffer *fresh = NULL;
    GAR_TRY(gar_buffer_new_zeroed(index->memory, cells * (int64_t)sizeof(uint32_t), &fresh, err));
    uint32_t *to = (uint32_t *)(void *)fresh->data;
    for (int64_t n = 0; n < index->count; n++) {
        if (n != index->null_number) {
            to[words_of(index)[n] - base] = (uint32_t)n + 1;
        }
        if (n % STOP_STEPS == 0 && gar_stop_requested()) {
            break;
        }
    }
    const enum gar_status status = gar_stop_check(err);
    if (status < 0) { /* half filled: the old one stays */
        gar_buffer_unref(fresh);
        return status;
    }
    gar_buffer_unref(index->table);
    index->table = fresh;
    index->base = base;
    index->cells = cells;
    index->is_direct = true;
    return GAR_OK;
}

static void find_in_array(struct gar_word_index *index, const uint64_t *keys, int64_t count,
                          uint32_t *out)
{
    uint32_t *numbers = (uint32_t *)(void *)index->table->data;
    const uint64_t base = index->base;
    if (index->table->size > PREFETCH_FROM_BYTES) {
        for (int64_t i = 0; i < count; i++) {
            __builtin_prefetch(&numbers[keys[i] - base]);
        }
    }
    for (int64_t i = 0; i < count; i++) {
        uint32_t *number = &numbers[keys[i] - base];
        if (GAR_UNLIKELY(*number == 0)) {
            words_of(index)[index->count] = keys[i];
            *number = (uint32_t)++index->count;
        }
        out[i] = *number - 1;
    }
}

/* ---- both ---- */

static void widen_range(struct gar_word_index *index, const uint64_t *keys, int64_t count)
{
    int64_t least = index->least;
    int64_t greatest = index->greatest;
    for (int64_t i = 0; i < count; i++) {
        least = gar_min_i64(least, (int64_t)keys[i]);
        greatest = gar_max_i64(greatest, (int64_t)keys[i]);
    }
    index->least = least;
    index->greatest = greatest;
}

/* Make the form fit for the keys that come: their range is in, their number may all be new. */
static enum gar_status fit(struct gar_word_index *index, int64_t more, struct gar_error *err)
{
    const int64_t want = index->count + more;
    if (index->is_direct) {
        const uint64_t cells = (uint64_t)index->cells;
        const bool is_inside = (uint64_t)index->least - index->base < cells &&
                               (uint64_t)index->greatest - index->base < cells;
        if (is_inside) {
            return GAR_OK;
        }
    } else if (index->table != NULL && want * 3 <= (index->slot_mask + 1) * 2) {
        return GAR_OK;
    }
    return suits_array(index, want) ? make_array(index, err) : make_table(index, want, err);
}

enum gar_status gar_word_index_find(struct gar_word_index *index, const uint64_t *keys,
                                    int64_t count, uint32_t *out, struct gar_error *err)
{
    if (count == 0) {
        return GAR_OK;
    }
    GAR_TRY(room_for_words(index, count, err));
    if (index->is_integer) {
        widen_range(index, keys, count);
    }
    GAR_TRY(fit(index, count, err));
    if (index->is_direct) {
        find_in_array(index, keys, count, out);
    } else {
        find_in_table(index, keys, count, out);
    }
    return GAR_OK;
}

void gar_word_index_look_up(const struct gar_word_index *index, const uint64_t *keys, int64_t count,
                            uint32_t *out)
{
    if (index->table == NULL) {
        memset(out, 0xff, (size_t)count * sizeof *out);
        return;
    }
    if (index->is_direct) {
        const uint32_t *numbers = (const uint32_t *)(const void *)index->table->data;
        for (int64_t i = 0; i < count; i++) {
            const uint64_t cell = keys[i] - index->base;
            out[i] = (cell < (uint64_t)index->cells ? numbers[cell] : 0) - 1;
        }
        return;
    }
    uint32_t hashes[GAR_WORD_INDEX_STEP];
    const struct slot *slots = (const struct slot *)(const void *)index->table->data;
    for (int64_t i = 0; i < count; i++) {
        hashes[i] = gar_key_hash_word(keys[i]);
        __builtin_prefetch(&slots[hashes[i] & (uint64_t)index->slot_mask]);
    }
    for (int64_t i = 0; i < count; i++) {
        uint64_t at = hashes[i] & (uint64_t)index->slot_mask;
        while (slots[at].number != 0 && slots[at].key != keys[i]) {
            at = (at + 1) & (uint64_t)index->slot_mask;
        }
        out[i] = slots[at].number - 1;
    }
}

enum gar_status gar_word_index_find_null(struct gar_word_index *index, uint32_t *out,
                                         struct gar_error *err)
{
    if (index->null_number < 0) {
        GAR_TRY(room_for_words(index, 1, err));
        index->null_number = index->count++;
        words_of(index)[index->null_number] = 0;
    }
    *out = (uint32_t)index->null_number;
    return GAR_OK;
}
