/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/key_filter.h"

#include "arrow/gather.h"
#include "base/alloc.h"

enum {
    BLOOM_BITS = 16,      /* a key */
    BLOOM_WORDS_MIN = 64, /* of 64 bits */
    SPARSE_MAX = 256,     /* a bitmap has at most so many bits a key, */
    TESTED_MIN = 1 << 16, /* rows before a filter is judged */
};
/* or so many in all: what stays in a core's own cache */
#define BITMAP_SMALL ((uint64_t)1 << 22)
#define BITMAP_MAX   ((uint64_t)1 << 28)
/* More keys than these are not worth a filter that no cache holds. */
#define KEYS_MAX ((int64_t)1 << 24)

enum form { FORM_EMPTY, FORM_BITMAP, FORM_BLOOM };

struct gar_key_filter {
    struct gar_memory *memory; /* borrowed */
    enum form form;
    int64_t least;
    int64_t greatest;
    uint64_t range;          /* BITMAP: values from least on; the bit behind them is 0 */
    uint64_t mask;           /* BLOOM: words - 1 */
    struct gar_buffer *bits; /* owned */
    int32_t is_filled;       /* atomic; everything above is constant then */
};

bool gar_key_filter_takes(struct gar_type type)
{
    switch ((enum gar_type_id)type.id) {
    case GAR_INT8:
    case GAR_INT16:
    case GAR_INT32:
    case GAR_INT64:
    case GAR_UINT8:
    case GAR_UINT16:
    case GAR_UINT32:
    case GAR_DATE:
    case GAR_TIME:
    case GAR_TIMESTAMP:
    case GAR_DURATION: return true;
    default: return false;
    }
}

enum gar_status gar_key_filter_new(struct gar_memory *memory, struct gar_key_filter **out,
                                   struct gar_error *err)
{
    struct gar_key_filter *filter = gar_calloc(1, (int64_t)sizeof *filter);
    if (filter == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *filter);
    }
    filter->memory = memory;
    *out = filter;
    return GAR_OK;
}

void gar_key_filter_free(struct gar_key_filter *filter)
{
    if (filter != NULL) {
        gar_buffer_unref(filter->bits);
        gar_free(filter);
    }
}

static uint64_t hash_of(int64_t key)
{
    uint64_t x = (uint64_t)key * UINT64_C(0x9E3779B97F4A7C15);
    x ^= x >> 32;
    return x * UINT64_C(0xD6E8FEB86659FD93);
}

/* Three bits of one word, by the upper bits of the hash; the word is chosen by the lower ones. */
static uint64_t bloom_bits(uint64_t hash)
{
    return UINT64_C(1) << (hash >> 58) | UINT64_C(1) << ((hash >> 52) & 63) |
           UINT64_C(1) << ((hash >> 46) & 63);
}

static uint64_t *words_of(const struct gar_key_filter *filter)
{
    return (uint64_t *)(void *)filter->bits->data;
}

/* ---- filling ---- */

static int64_t value_at(const void *values, struct gar_type type, int64_t i)
{
    switch (gar_type_width(type) * 2 + gar_type_is_unsigned(type)) {
    case 2: return ((const int8_t *)values)[i];
    case 3: return ((const uint8_t *)values)[i];
    case 4: return ((const int16_t *)values)[i];
    case 5: return ((const uint16_t *)values)[i];
    case 8: return ((const int32_t *)values)[i];
    case 9: return ((const uint32_t *)values)[i];
    default: return ((const int64_t *)values)[i];
    }
}

static bool is_valid_at(const struct gar_column *flat, int64_t i)
{
    return flat->validity == NULL || gar_bit_get(flat->validity, flat->validity_offset + i);
}

/* Least and greatest; the number of keys that are not null. */
static int64_t measure(struct gar_key_filter *filter, const struct gar_column *flat)
{
    int64_t count = 0;
    filter->least = INT64_MAX;
    filter->greatest = INT64_MIN;
    for (int64_t i = 0; i < flat->length; i++) {
        if (is_valid_at(flat, i)) {
            const int64_t value = value_at(flat->values, flat->type, i);
            filter->least = gar_min_i64(filter->least, value);
            filter->greatest = gar_max_i64(filter->greatest, value);
            count++;
        }
    }
    return count;
}

static void set_keys(struct gar_key_filter *filter, const struct gar_column *flat)
{
    uint64_t *words = words_of(filter);
    for (int64_t i = 0; i < flat->length; i++) {
        if (!is_valid_at(flat, i)) {
            continue;
        }
        const int64_t value = value_at(flat->values, flat->type, i);
        if (filter->form == FORM_BITMAP) {
            const uint64_t at = (uint64_t)value - (uint64_t)filter->least;
            words[at >> 6] |= UINT64_C(1) << (at & 63);
        } else {
            const uint64_t hash = hash_of(value);
            words[hash & filter->mask] |= bloom_bits(hash);
        }
    }
}

static void choose_form(struct gar_key_filter *filter, int64_t count, int64_t *out_words)
{
    const uint64_t span = (uint64_t)filter->greatest - (uint64_t)filter->least;
    const uint64_t bits_max =
        gar_max_i64(count, 1) > (int64_t)(BITMAP_MAX / SPARSE_MAX)
            ? BITMAP_MAX
            : (uint64_t)gar_max_i64((int64_t)BITMAP_SMALL, count * SPARSE_MAX);
    if (count == 0) {
        filter->form = FORM_EMPTY;
        *out_words = 0;
    } else if (span < bits_max) {
        filter->form = FORM_BITMAP;
        filter->range = span + 1;
        *out_words = (int64_t)(filter->range >> 6) + 1;
    } else {
        int64_t words = BLOOM_WORDS_MIN;
        while (words * 64 < count * BLOOM_BITS) {
            words *= 2;
        }
        filter->form = FORM_BLOOM;
        filter->mask = (uint64_t)words - 1;
        *out_words = words;
    }
}

void gar_key_filter_fill(struct gar_key_filter *filter, const struct gar_column *keys)
{
    struct gar_column *flat = NULL;
    int64_t words = 0;
    if (keys->length > KEYS_MAX || gar_column_flatten(keys, filter->memory, &flat, NULL) < 0) {
        return;
    }
    choose_form(filter, measure(filter, flat), &words);
    const bool has_room = words == 0 || gar_buffer_new_zeroed(filter->memory, words * 8,
                                                              &filter->bits, NULL) == GAR_OK;
    if (has_room && words > 0) {
        set_keys(filter, flat);
    }
    gar_column_unref(flat);
    if (has_room) {
        __atomic_store_n(&filter->is_filled, 1, __ATOMIC_RELEASE);
    }
}

/* ---- looking ---- */

bool gar_key_filter_is_filled(const struct gar_key_filter *filter)
{
    return __atomic_load_n(&filter->is_filled, __ATOMIC_ACQUIRE) != 0;
}

bool gar_key_filter_may_match(const struct gar_key_filter *filter, int64_t least, int64_t greatest)
{
    least = gar_max_i64(least, filter->least);
    greatest = gar_min_i64(greatest, filter->greatest);
    if (filter->form == FORM_EMPTY || least > greatest) {
        return false;
    }
    if (filter->form == FORM_BLOOM) {
        return true;
    }
    uint64_t from = (uint64_t)least - (uint64_t)filter->least;
    const uint64_t to = (uint64_t)greatest - (uint64_t)filter->least;
    const uint64_t *words = words_of(filter);
    uint64_t word = words[from >> 6] & (UINT64_MAX << (from & 63));
    for (; from >> 6 < to >> 6; from = ((from >> 6) + 1) << 6, word = words[from >> 6]) {
        if (word != 0) {
            return true;
        }
    }
    return (word & (UINT64_MAX >> (63 - (to & 63)))) != 0;
}

GAR_INLINE bool passes(const struct gar_key_filter *filter, const uint64_t *words, int64_t value,
                       bool is_bitmap)
{
    if (is_bitmap) {
        uint64_t at = (uint64_t)value - (uint64_t)filter->least;
        at = at < filter->range ? at : filter->range;
        return (words[at >> 6] >> (at & 63)) & 1;
    }
    const uint64_t hash = hash_of(value);
    const uint64_t bits = bloom_bits(hash);
    return (words[hash & filter->mask] & bits) == bits;
}

/* One loop for each type, form and kind of input: the branches on them are constants inside. */
#define SELECT_LOOP(type, is_bitmap)                                        \
    for (int64_t i = 0; i < count; i++) {                                   \
        const uint32_t row = rows != NULL ? rows[i] : (uint32_t)i;          \
        out[n] = row;                                                       \
        n += passes(filter, words, ((const type *)values)[row], is_bitmap); \
    }                                                                       \
    break
#define SELECT(type)                   \
    if (filter->form == FORM_BITMAP) { \
        SELECT_LOOP(type, true);       \
    } else {                           \
        SELECT_LOOP(type, false);      \
    }

static int64_t select_values(const struct gar_key_filter *filter, const void *values,
                             struct gar_type type, const uint32_t *rows, int64_t count,
                             uint32_t *out)
{
    const uint64_t *words = words_of(filter);
    const bool is_unsigned = gar_type_is_unsigned(type);
    int64_t n = 0;
    switch (gar_type_width(type) * 2 + is_unsigned) {
    case 2: SELECT(int8_t)
    case 3: SELECT(uint8_t)
    case 4: SELECT(int16_t)
    case 5: SELECT(uint16_t)
    case 8: SELECT(int32_t)
    case 9: SELECT(uint32_t)
    default: SELECT(int64_t)
    }
    return n;
}

int64_t gar_key_filter_select(const struct gar_key_filter *filter, const struct gar_column *column,
                              const uint32_t *rows, int64_t count, uint32_t *out)
{
    if (filter->form == FORM_EMPTY) {
        return 0;
    }
    int64_t n = select_values(filter, column->values, column->type, rows, count, out);
    if (column->validity != NULL) {
        int64_t valid = 0;
        for (int64_t i = 0; i < n; i++) {
            out[valid] = out[i];
            valid += is_valid_at(column, out[i]);
        }
        n = valid;
    }
    return n;
}

bool gar_key_use_pays(const struct gar_key_use *use)
{
    if (!gar_key_filter_is_filled(use->filter)) {
        return false;
    }
    const int64_t tested = __atomic_load_n(&use->tested, __ATOMIC_RELAXED);
    const int64_t passed = __atomic_load_n(&use->passed, __ATOMIC_RELAXED);
    return tested < TESTED_MIN || passed < tested - tested / 5;
}

void gar_key_use_count(struct gar_key_use *use, int64_t tested, int64_t passed)
{
    (void)__atomic_fetch_add(&use->tested, tested, __ATOMIC_RELAXED);
    (void)__atomic_fetch_add(&use->passed, passed, __ATOMIC_RELAXED);
}
