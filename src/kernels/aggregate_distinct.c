/* SPDX-License-Identifier: Apache-2.0 */
/* count_distinct: one set of (group, value) pairs for all groups.
 *
 * Values of one word (kernels/hash_rows.h) get a number, and pairs of group and number are looked
 * up in a second index. Decimals of more than 18 digits and texts become two words: texts their
 * view, whose second half is a place in the heap when they are long. Their entries lie densely in
 * the order they came; the slots of an open-addressing table hold entry numbers, so that growing
 * moves no entries. Nothing holds a pointer. */
#include "base/alloc.h"
#include "base/hash.h"
#include "base/stop.h"
#include "kernels/aggregate_priv.h"
#include "kernels/hash_rows.h"
#include "kernels/word_index.h"

struct distinct_entry {
    uint64_t key[2];
    uint32_t group;
    uint32_t hash;
};

struct distinct_state {
    struct gar_aggregate head;
    struct gar_aggregate_array counts; /* int64_t per group */
    struct gar_buffer *entries;        /* owned; struct distinct_entry */
    int64_t entry_count;
    struct gar_buffer *slots; /* owned; uint32_t: entry number + 1, 0 empty */
    int64_t slot_mask;
    struct gar_buffer *heap; /* owned; bytes of texts over 12 bytes */
    int64_t heap_used;
    bool is_text;
};

/* A value on its way into the set. */
struct candidate {
    uint64_t key[2];
    const uint8_t *far; /* bytes of a long text, else NULL */
};

enum { FIRST_SLOTS = 64, STOP_STEPS = 1 << 12 };

static enum gar_status distinct_resize(struct gar_aggregate *head, int64_t groups,
                                       struct gar_error *err)
{
    struct distinct_state *state = (struct distinct_state *)head;
    return gar_aggregate_array_grow(&state->counts, head->memory, groups, (int64_t)sizeof(int64_t),
                                    err);
}

static uint32_t hash_candidate(const struct candidate *c, uint32_t group)
{
    uint64_t h = c->key[0];
    if (c->far != NULL) {
        h = gar_hash_combine(h, gar_hash_bytes(c->far, (int64_t)(uint32_t)c->key[0]));
    } else {
        h = gar_hash_combine(h, c->key[1]);
    }
    return (uint32_t)(gar_hash_combine(h, group) >> 32);
}

static bool equals(const struct distinct_state *state, const struct distinct_entry *e,
                   const struct candidate *c)
{
    if (e->key[0] != c->key[0]) {
        return false;
    }
    if (c->far == NULL) {
        return e->key[1] == c->key[1];
    }
    return memcmp(state->heap->data + e->key[1], c->far, (size_t)(uint32_t)c->key[0]) == 0;
}

static enum gar_status grow_buffer(struct gar_memory *memory, struct gar_buffer **buffer,
                                   int64_t want, struct gar_error *err)
{
    if (*buffer == NULL) {
        return gar_buffer_new(memory, want, buffer, err);
    }
    if (want <= (*buffer)->size) {
        return GAR_OK;
    }
    return gar_buffer_resize(*buffer, gar_max_i64(want, 2 * (*buffer)->size), err);
}

static enum gar_status rebuild_slots(struct distinct_state *state, int64_t slots,
                                     struct gar_error *err)
{
    struct gar_buffer *fresh = NULL;
    GAR_TRY(
        gar_buffer_new_zeroed(state->head.memory, slots * (int64_t)sizeof(uint32_t), &fresh, err));
    uint32_t *table = (uint32_t *)(void *)fresh->data;
    const uint64_t mask = (uint64_t)slots - 1;
    const struct distinct_entry *entries =
        state->entries != NULL ? (const struct distinct_entry *)(const void *)state->entries->data
                               : NULL;
    for (int64_t i = 0; i < state->entry_count; i++) {
        uint64_t at = entries[i].hash & mask;
        while (table[at] != 0) {
            at = (at + 1) & mask;
        }
        table[at] = (uint32_t)(i + 1);
        if (i % STOP_STEPS == 0 && gar_stop_requested()) {
            break;
        }
    }
    const enum gar_status status = gar_stop_check(err);
    if (status < 0) { /* half filled: the old ones stay */
        gar_buffer_unref(fresh);
        return status;
    }
    gar_buffer_unref(state->slots);
    state->slots = fresh;
    state->slot_mask = slots - 1;
    return GAR_OK;
}

/* Room for `more` entries in table and list. */
static enum gar_status make_room(struct distinct_state *state, int64_t more, struct gar_error *err)
{
    const int64_t want = state->entry_count + more;
    if (want >= UINT32_MAX) {
        return gar_error_set(err, GAR_ERR_UNSUPPORTED,
                             "count_distinct of more than 4294967294 values in one task");
    }
    GAR_TRY(grow_buffer(state->head.memory, &state->entries,
                        want * (int64_t)sizeof(struct distinct_entry), err));
    if (state->slots == NULL || want * 3 > (state->slot_mask + 1) * 2) {
        GAR_TRY(rebuild_slots(state, gar_max_i64(gar_next_pow2(want * 2), FIRST_SLOTS), err));
    }
    return GAR_OK;
}

/* Room must be there. */
static enum gar_status insert(struct distinct_state *state, const struct candidate *c,
                              uint32_t group, uint32_t hash, struct gar_error *err)
{
    struct distinct_entry *entries = (struct distinct_entry *)(void *)state->entries->data;
    uint32_t *slots = (uint32_t *)(void *)state->slots->data;
    uint64_t at = hash & (uint64_t)state->slot_mask;
    while (slots[at] != 0) {
        const struct distinct_entry *e = &entries[slots[at] - 1];
        if (e->hash == hash && e->group == group && equals(state, e, c)) {
            return GAR_OK;
        }
        at = (at + 1) & (uint64_t)state->slot_mask;
    }
    struct distinct_entry *e = &entries[state->entry_count];
    e->key[0] = c->key[0];
    e->key[1] = c->key[1];
    if (c->far != NULL) {
        const int64_t size = (int64_t)(uint32_t)c->key[0];
        GAR_TRY(grow_buffer(state->head.memory, &state->heap, state->heap_used + size, err));
        memcpy(state->heap->data + state->heap_used, c->far, (size_t)size);
        e->key[1] = (uint64_t)state->heap_used;
        state->heap_used += size;
    }
    e->group = group;
    e->hash = hash;
    slots[at] = (uint32_t)++state->entry_count;
    ((int64_t *)gar_aggregate_array_data(&state->counts))[group]++;
    return GAR_OK;
}

static void load_candidate(const struct gar_column *flat, int64_t row, struct candidate *c)
{
    c->far = NULL;
    if (!gar_type_is_text(flat->type)) {
        memcpy(c->key, (const gar_i128 *)flat->values + row, sizeof c->key);
        return;
    }
    const struct gar_string_view *view = (const struct gar_string_view *)flat->values + row;
    memcpy(c->key, view, sizeof c->key);
    if (view->size > GAR_VIEW_INLINE_BYTES) {
        c->far = gar_view_bytes(view, flat->data_pointers);
        c->key[1] = 0;
    }
}

static enum gar_status insert_places(struct distinct_state *state, const struct gar_column *flat,
                                     const uint32_t *places, const uint32_t *groups, int64_t count,
                                     struct gar_error *err)
{
    enum { STEP = 128 };
    struct candidate candidates[STEP];
    uint32_t hashes[STEP];
    for (int64_t first = 0; first < count; first += STEP) {
        const int64_t n = gar_min_i64(count - first, STEP);
        GAR_TRY(make_room(state, n, err));
        const uint32_t *slots = (const uint32_t *)(const void *)state->slots->data;
        for (int64_t i = 0; i < n; i++) {
            load_candidate(flat, places[first + i], &candidates[i]);
            hashes[i] = hash_candidate(&candidates[i], groups != NULL ? groups[first + i] : 0);
            __builtin_prefetch(&slots[hashes[i] & (uint64_t)state->slot_mask]);
        }
        const struct distinct_entry *entries =
            (const struct distinct_entry *)(const void *)state->entries->data;
        for (int64_t i = 0; i < n; i++) {
            const uint32_t slot = slots[hashes[i] & (uint64_t)state->slot_mask];
            __builtin_prefetch(&entries[slot != 0 ? slot - 1 : 0]);
        }
        for (int64_t i = 0; i < n; i++) {
            GAR_TRY(insert(state, &candidates[i], groups != NULL ? groups[first + i] : 0, hashes[i],
                           err));
        }
    }
    return GAR_OK;
}

/* One group over a dictionary: each entry in use once. */
static enum gar_status insert_used(struct distinct_state *state, const struct gar_column *argument,
                                   int64_t rows, struct gar_error *err)
{
    uint64_t *used = gar_aggregate_used_codes(argument, rows);
    if (used == NULL) {
        return gar_error_nomem(err, argument->dictionary->length / 8);
    }
    uint32_t places[64];
    enum gar_status status = GAR_OK;
    const int64_t words = (argument->dictionary->length + 63) / 64;
    for (int64_t w = 0; w < words && status >= 0; w++) {
        int64_t n = 0;
        for (uint64_t bits = used[w]; bits != 0; bits &= bits - 1) {
            places[n++] = (uint32_t)(w * 64 + gar_ctz64(bits));
        }
        status = insert_places(state, argument->dictionary, places, NULL, n, err);
    }
    gar_free(used);
    return status;
}

static enum gar_status distinct_update(struct gar_aggregate *head, const uint32_t *groups,
                                       const struct gar_column *argument, int64_t rows,
                                       struct gar_error *err)
{
    struct distinct_state *state = (struct distinct_state *)head;
    if (groups == NULL && argument->encoding == GAR_DICTIONARY &&
        argument->dictionary->length <= rows) {
        return insert_used(state, argument, rows, err);
    }
    struct gar_feed feed;
    const int64_t looked_at =
        groups == NULL && argument->encoding == GAR_CONSTANT ? gar_min_i64(rows, 1) : rows;
    gar_feed_init(&feed, argument, groups, looked_at, GAR_FEED_I64);
    while (gar_feed_next_places(&feed)) {
        GAR_TRY(insert_places(state, feed.flat, feed.places, feed.groups, feed.count, err));
    }
    return GAR_OK;
}

/* The other state's groups are looked up through a map from its group to ours. */
static enum gar_status distinct_combine(struct gar_aggregate *head,
                                        const struct gar_aggregate *from_head,
                                        const uint32_t *from_groups, const uint32_t *to_groups,
                                        int64_t count, struct gar_error *err)
{
    struct distinct_state *state = (struct distinct_state *)head;
    const struct distinct_state *from = (const struct distinct_state *)(const void *)from_head;
    if (from->entry_count == 0) {
        return GAR_OK;
    }
    uint32_t *map = (uint32_t *)gar_malloc(from->head.groups * (int64_t)sizeof(uint32_t));
    if (map == NULL) {
        return gar_error_nomem(err, from->head.groups * (int64_t)sizeof(uint32_t));
    }
    memset(map, 0xff, (size_t)from->head.groups * sizeof(uint32_t));
    for (int64_t i = 0; i < count; i++) {
        map[from_groups != NULL ? (int64_t)from_groups[i] : i] = to_groups[i];
    }
    enum gar_status status = GAR_OK;
    const struct distinct_entry *entries =
        (const struct distinct_entry *)(const void *)from->entries->data;
    for (int64_t i = 0; i < from->entry_count && status >= 0; i++) {
        const uint32_t group = map[entries[i].group];
        if (i % STOP_STEPS == 0) {
            status = gar_stop_check(err);
        }
        if (group == UINT32_MAX || status < 0) {
            continue;
        }
        struct candidate c = {{entries[i].key[0], entries[i].key[1]}, NULL};
        if (from->is_text && (int32_t)(uint32_t)c.key[0] > GAR_VIEW_INLINE_BYTES) {
            c.far = from->heap->data + c.key[1];
            c.key[1] = 0;
        }
        status = make_room(state, 1, err);
        if (status >= 0) {
            status = insert(state, &c, group, hash_candidate(&c, group), err);
        }
    }
    gar_free(map);
    return status;
}

static enum gar_status distinct_finish(const struct gar_aggregate *head,
                                       const struct gar_aggregate_spec *spec, int64_t first,
                                       int64_t count, const int64_t *group_rows,
                                       struct gar_column *out, int64_t *nulls,
                                       struct gar_error *err)
{
    (void)spec;
    (void)group_rows;
    (void)nulls;
    (void)err;
    const struct distinct_state *state = (const struct distinct_state *)(const void *)head;
    if (count > 0) {
        memcpy(gar_column_values_mut(out),
               (const int64_t *)gar_aggregate_array_data(&state->counts) + first,
               (size_t)count * sizeof(int64_t));
    }
    return GAR_OK;
}

static void distinct_free(struct gar_aggregate *head)
{
    struct distinct_state *state = (struct distinct_state *)head;
    gar_aggregate_array_destroy(&state->counts);
    gar_buffer_unref(state->entries);
    gar_buffer_unref(state->slots);
    gar_buffer_unref(state->heap);
}

/* ---- values of one word ---- */

/* A value gets a number, then a pair of group and number is looked for. While there is one group
 * only, the numbers are all. */
struct word_state {
    struct gar_aggregate head;
    struct gar_aggregate_array counts; /* int64_t per group, for pairs */
    struct gar_word_index values;
    struct gar_word_index pairs;
    bool has_pairs;
};

static enum gar_status word_resize(struct gar_aggregate *head, int64_t groups,
                                   struct gar_error *err)
{
    struct word_state *state = (struct word_state *)head;
    return gar_aggregate_array_grow(&state->counts, head->memory, groups, (int64_t)sizeof(int64_t),
                                    err);
}

static uint64_t pair_of(uint32_t group, uint32_t number)
{
    return ((uint64_t)group << 32) | number;
}

/* Add pairs of groups and numbers. */
static enum gar_status add_pairs(struct word_state *state, const uint64_t *pairs, int64_t count,
                                 struct gar_error *err)
{
    uint32_t found[GAR_WORD_INDEX_STEP];
    const int64_t before = state->pairs.count;
    GAR_TRY(gar_word_index_find(&state->pairs, pairs, count, found, err));
    int64_t *counts = (int64_t *)gar_aggregate_array_data(&state->counts);
    for (int64_t p = before; p < state->pairs.count; p++) {
        counts[gar_word_index_key(&state->pairs, p) >> 32]++;
    }
    return GAR_OK;
}

/* From here on groups count: what was seen belongs to group 0. */
static enum gar_status begin_pairs(struct word_state *state, struct gar_error *err)
{
    if (state->has_pairs) {
        return GAR_OK;
    }
    state->has_pairs = true;
    uint64_t pairs[GAR_WORD_INDEX_STEP];
    for (int64_t at = 0; at < state->values.count; at += GAR_WORD_INDEX_STEP) {
        const int64_t n = gar_min_i64(state->values.count - at, GAR_WORD_INDEX_STEP);
        for (int64_t i = 0; i < n; i++) {
            pairs[i] = pair_of(0, (uint32_t)(at + i));
        }
        GAR_TRY(add_pairs(state, pairs, n, err));
    }
    return GAR_OK;
}

/* Add values that are words already; groups NULL: of group 0. */
static enum gar_status add_words(struct word_state *state, const uint64_t *words,
                                 const uint32_t *groups, int64_t count, struct gar_error *err)
{
    uint32_t numbers[GAR_WORD_INDEX_STEP];
    uint64_t pairs[GAR_WORD_INDEX_STEP];
    GAR_TRY(gar_stop_check(err));
    if (groups != NULL) {
        GAR_TRY(begin_pairs(state, err));
    }
    GAR_TRY(gar_word_index_find(&state->values, words, count, numbers, err));
    if (!state->has_pairs) {
        return GAR_OK;
    }
    for (int64_t i = 0; i < count; i++) {
        pairs[i] = pair_of(groups != NULL ? groups[i] : 0, numbers[i]);
    }
    return add_pairs(state, pairs, count, err);
}

static enum gar_status word_update(struct gar_aggregate *head, const uint32_t *groups,
                                   const struct gar_column *argument, int64_t rows,
                                   struct gar_error *err)
{
    struct word_state *state = (struct word_state *)head;
    uint64_t words[GAR_WORD_INDEX_STEP];
    uint32_t valid_groups[GAR_WORD_INDEX_STEP];
    const bool has_nulls = gar_column_null_count(argument) > 0;
    for (int64_t at = 0; at < rows; at += GAR_WORD_INDEX_STEP) {
        int64_t n = gar_min_i64(rows - at, GAR_WORD_INDEX_STEP);
        const uint32_t *step_groups = groups != NULL ? groups + at : NULL;
        gar_key_load_words(argument, at, n, words);
        if (has_nulls) {
            int64_t valid = 0;
            for (int64_t i = 0; i < n; i++) {
                words[valid] = words[i];
                valid_groups[valid] = groups != NULL ? groups[at + i] : 0;
                valid += !gar_column_is_null(argument, at + i);
            }
            n = valid;
            step_groups = groups != NULL ? valid_groups : NULL;
        }
        GAR_TRY(add_words(state, words, step_groups, n, err));
    }
    return GAR_OK;
}

/* The pairs of the other state whose group is in the map (UINT32_MAX: it is not). */
static enum gar_status combine_pairs(struct word_state *state, const struct word_state *from,
                                     const uint32_t *map, struct gar_error *err)
{
    uint64_t words[GAR_WORD_INDEX_STEP];
    uint32_t groups[GAR_WORD_INDEX_STEP];
    int64_t n = 0;
    const int64_t count = from->has_pairs ? from->pairs.count : from->values.count;
    for (int64_t i = 0; i < count; i++) {
        const uint64_t pair =
            from->has_pairs ? gar_word_index_key(&from->pairs, i) : (uint64_t)(uint32_t)i;
        groups[n] = map[pair >> 32];
        words[n] = gar_word_index_key(&from->values, (uint32_t)pair);
        n += groups[n] != UINT32_MAX;
        if (n == GAR_WORD_INDEX_STEP || (i == count - 1 && n > 0)) {
            /* What has no pairs belongs to group 0. */
            const bool is_zero = !from->has_pairs && !state->has_pairs && groups[0] == 0;
            GAR_TRY(add_words(state, words, is_zero ? NULL : groups, n, err));
            n = 0;
        }
    }
    return GAR_OK;
}

static enum gar_status word_combine(struct gar_aggregate *head,
                                    const struct gar_aggregate *from_head,
                                    const uint32_t *from_groups, const uint32_t *to_groups,
                                    int64_t count, struct gar_error *err)
{
    const struct word_state *from = (const struct word_state *)(const void *)from_head;
    const int64_t bytes = from->head.groups * (int64_t)sizeof(uint32_t);
    uint32_t *map = (uint32_t *)gar_malloc(bytes);
    if (map == NULL) {
        return gar_error_nomem(err, bytes);
    }
    memset(map, 0xff, (size_t)bytes);
    for (int64_t i = 0; i < count; i++) {
        map[from_groups != NULL ? (int64_t)from_groups[i] : i] = to_groups[i];
    }
    const enum gar_status status = combine_pairs((struct word_state *)head, from, map, err);
    gar_free(map);
    return status;
}

static enum gar_status word_finish(const struct gar_aggregate *head,
                                   const struct gar_aggregate_spec *spec, int64_t first,
                                   int64_t count, const int64_t *group_rows, struct gar_column *out,
                                   int64_t *nulls, struct gar_error *err)
{
    (void)spec;
    (void)group_rows;
    (void)nulls;
    (void)err;
    const struct word_state *state = (const struct word_state *)(const void *)head;
    const int64_t *counts = (const int64_t *)gar_aggregate_array_data(&state->counts);
    int64_t *to = (int64_t *)gar_column_values_mut(out);
    for (int64_t i = 0; i < count; i++) {
        to[i] = counts[first + i];
        if (!state->has_pairs && first + i == 0) {
            to[i] = state->values.count;
        }
    }
    return GAR_OK;
}

static void word_free(struct gar_aggregate *head)
{
    struct word_state *state = (struct word_state *)head;
    gar_aggregate_array_destroy(&state->counts);
    gar_word_index_destroy(&state->values);
    gar_word_index_destroy(&state->pairs);
}

static struct gar_aggregate *new_words(const struct gar_aggregate_spec *spec,
                                       struct gar_memory *memory)
{
    static const struct gar_aggregate_vtable vtable = {.resize = word_resize,
                                                       .update = word_update,
                                                       .combine = word_combine,
                                                       .finish = word_finish,
                                                       .free = word_free};
    struct word_state *state = (struct word_state *)gar_calloc(1, (int64_t)sizeof *state);
    if (state == NULL) {
        return NULL;
    }
    state->head.vtable = &vtable;
    gar_word_index_init(&state->values, memory, !gar_type_is_float(spec->argument));
    gar_word_index_init(&state->pairs, memory, false);
    return &state->head;
}

struct gar_aggregate *gar_aggregate_new_distinct(const struct gar_aggregate_spec *spec,
                                                 struct gar_memory *memory)
{
    static const struct gar_aggregate_vtable vtable = {.resize = distinct_resize,
                                                       .update = distinct_update,
                                                       .combine = distinct_combine,
                                                       .finish = distinct_finish,
                                                       .free = distinct_free};
    if (gar_key_is_word(spec->argument)) {
        return new_words(spec, memory);
    }
    struct distinct_state *state = (struct distinct_state *)gar_calloc(1, (int64_t)sizeof *state);
    if (state == NULL) {
        return NULL;
    }
    state->head.vtable = &vtable;
    state->is_text = gar_type_is_text(spec->argument);
    return &state->head;
}
