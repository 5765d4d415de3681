/* SPDX-License-Identifier: Apache-2.0 */
/* min, max and any_value: one picked value a group.
 *
 * Numbers and times are kept in one of the feed's forms and narrowed at the end. Texts are copied into a heap of bytes (a
 * slot's room at least doubles when a longer text replaces a shorter one, so that the garbage
 * stays below the use). */
#include <math.h>

#include "base/alloc.h"
#include "kernels/aggregate_priv.h"

struct text_slot {
    int64_t offset; /* in the heap */
    int32_t size;   /* bytes */
    int32_t room;   /* bytes that belong to the slot */
};

struct pick_state {
    struct gar_aggregate head;
    enum gar_feed_form form;
    bool is_text;
    struct gar_aggregate_array values; /* of the form, or struct text_slot */
    struct gar_aggregate_array
        seen; /* uint8_t; texts and any_value: does the group have a value? */
    struct gar_aggregate_array
        bounds;              /* uint32_t; min and max of texts: first four bytes of the picked one,
                                          as a number in their order: most rows are told apart by it */
    struct gar_buffer *heap; /* owned; bytes of texts */
    int64_t heap_used;
};

static int64_t item_bytes(const struct pick_state *state)
{
    return state->is_text || state->form == GAR_FEED_I128 ? 16 : 8;
}

/* The value that every other one replaces. */
static void fill_start(struct pick_state *state, int64_t first)
{
    const bool is_min = state->head.spec.kind == GAR_AGGREGATE_MIN;
    void *values = gar_aggregate_array_data(&state->values);
    for (int64_t g = first; g < state->values.count; g++) {
        switch (state->form) {
        case GAR_FEED_I64: ((int64_t *)values)[g] = is_min ? INT64_MAX : INT64_MIN; break;
        case GAR_FEED_U64: ((uint64_t *)values)[g] = is_min ? UINT64_MAX : 0; break;
        case GAR_FEED_I128: {
            const gar_i128 largest = (gar_i128)(~(gar_u128)0 >> 1);
            ((gar_i128 *)values)[g] = is_min ? largest : -largest - 1;
            break;
        }
        case GAR_FEED_F64: ((double *)values)[g] = (double)NAN; break;
        }
    }
}

/* Bounds that no text is beyond. */
static enum gar_status resize_bounds(struct pick_state *state, int64_t groups,
                                     struct gar_error *err)
{
    const int64_t before = state->bounds.count;
    GAR_TRY(gar_aggregate_array_grow(&state->bounds, state->head.memory, groups,
                                     (int64_t)sizeof(uint32_t), err));
    uint32_t *bounds = (uint32_t *)gar_aggregate_array_data(&state->bounds);
    for (int64_t g = before; g < state->bounds.count; g++) {
        bounds[g] = state->head.spec.kind == GAR_AGGREGATE_MIN ? UINT32_MAX : 0;
    }
    return GAR_OK;
}

static enum gar_status pick_resize(struct gar_aggregate *head, int64_t groups,
                                   struct gar_error *err)
{
    struct pick_state *state = (struct pick_state *)head;
    const int64_t before = state->values.count;
    GAR_TRY(gar_aggregate_array_grow(&state->values, head->memory, groups, item_bytes(state), err));
    if (!state->is_text && head->spec.kind != GAR_AGGREGATE_ANY_VALUE) {
        fill_start(state, before);
        return GAR_OK;
    }
    if (state->is_text && head->spec.kind != GAR_AGGREGATE_ANY_VALUE) {
        GAR_TRY(resize_bounds(state, groups, err));
    }
    return gar_aggregate_array_grow(&state->seen, head->memory, groups, 1, err);
}

/* values[g] = better of values[g] and v, for one form. `better` is an expression over v and old. */
#define PICK_STEP(value_type, better)                                                \
    do {                                                                             \
        value_type *picked = (value_type *)gar_aggregate_array_data(&state->values); \
        const value_type *values = (const value_type *)source;                       \
        if (groups == NULL) {                                                        \
            value_type old = picked[0];                                              \
            for (int64_t i = 0; i < count; i++) {                                    \
                const value_type v = values[i];                                      \
                old = (better) ? v : old;                                            \
            }                                                                        \
            picked[0] = old;                                                         \
        } else {                                                                     \
            for (int64_t i = 0; i < count; i++) {                                    \
                const value_type v = values[i];                                      \
                const value_type old = picked[groups[i]];                            \
                picked[groups[i]] = (better) ? v : old;                              \
            }                                                                        \
        }                                                                            \
    } while (0)

/* NaN is replaced by anything and replaces nothing. */
static inline bool is_nan(double v)
{
    return v != v;
}

static void pick_step(struct pick_state *state, const void *source, const uint32_t *groups,
                      int64_t count)
{
    const bool is_min = state->head.spec.kind == GAR_AGGREGATE_MIN;
    switch (state->form) {
    case GAR_FEED_I64:
        if (is_min) {
            PICK_STEP(int64_t, v < old);
        } else {
            PICK_STEP(int64_t, v > old);
        }
        break;
    case GAR_FEED_U64:
        if (is_min) {
            PICK_STEP(uint64_t, v < old);
        } else {
            PICK_STEP(uint64_t, v > old);
        }
        break;
    case GAR_FEED_I128:
        if (is_min) {
            PICK_STEP(gar_i128, v < old);
        } else {
            PICK_STEP(gar_i128, v > old);
        }
        break;
    case GAR_FEED_F64:
        if (is_min) {
            PICK_STEP(double, v < old || is_nan(old));
        } else {
            PICK_STEP(double, v > old || is_nan(old));
        }
        break;
    }
}

static void any_step(struct pick_state *state, const struct gar_feed *feed)
{
    uint8_t *seen = (uint8_t *)gar_aggregate_array_data(&state->seen);
    uint8_t *picked = (uint8_t *)gar_aggregate_array_data(&state->values);
    const int64_t bytes = item_bytes(state);
    for (int64_t i = 0; i < feed->count; i++) {
        const int64_t g = feed->groups != NULL ? feed->groups[i] : 0;
        if (!seen[g]) {
            seen[g] = 1;
            memcpy(picked + g * bytes, (const uint8_t *)feed->values + i * bytes, (size_t)bytes);
        }
    }
}

/* The first four bytes of a text, filled up with zeros, as a number that orders as they do. */
static uint32_t prefix_of(const uint8_t *bytes, int64_t size)
{
    uint32_t prefix = 0;
    for (int64_t i = 0; i < 4; i++) {
        prefix = prefix << 8 | (i < size ? bytes[i] : 0);
    }
    return prefix;
}

/* The same of a view, in which they always stand at the same place. */
static uint32_t view_prefix(const struct gar_string_view *view)
{
    uint32_t word = 0;
    memcpy(&word, view->inlined, sizeof word);
    word = __builtin_bswap32(word);
    return view->size >= 4   ? word
           : view->size <= 0 ? 0
                             : word & (UINT32_MAX << (8 * (4 - (uint32_t)view->size)));
}

static int32_t compare_bytes(const uint8_t *a, int64_t a_size, const uint8_t *b, int64_t b_size)
{
    const int32_t order = memcmp(a, b, (size_t)gar_min_i64(a_size, b_size));
    return order != 0 ? order : (a_size > b_size) - (a_size < b_size);
}

static enum gar_status set_text(struct pick_state *state, int64_t group, const uint8_t *bytes,
                                int64_t size, struct gar_error *err)
{
    struct text_slot *slot = (struct text_slot *)gar_aggregate_array_data(&state->values) + group;
    if (size > slot->room) {
        const int64_t room = gar_min_i64(gar_max_i64(size, 2 * (int64_t)slot->room), INT32_MAX);
        const int64_t want = state->heap_used + room;
        if (state->heap == NULL) {
            GAR_TRY(gar_buffer_new(state->head.memory, gar_max_i64(want, 256), &state->heap, err));
        } else if (want > state->heap->size) {
            GAR_TRY(gar_buffer_resize(state->heap, gar_max_i64(want, 2 * state->heap->size), err));
        }
        slot->offset = state->heap_used;
        slot->room = (int32_t)room;
        state->heap_used = want;
    }
    if (size > 0) {
        memcpy(state->heap->data + slot->offset, bytes, (size_t)size);
    }
    slot->size = (int32_t)size;
    return GAR_OK;
}

static enum gar_status offer_text(struct pick_state *state, int64_t group, const uint8_t *bytes,
                                  int64_t size, struct gar_error *err)
{
    uint8_t *seen = (uint8_t *)gar_aggregate_array_data(&state->seen);
    if (seen[group]) {
        if (state->head.spec.kind == GAR_AGGREGATE_ANY_VALUE) {
            return GAR_OK;
        }
        const struct text_slot *slot =
            (struct text_slot *)gar_aggregate_array_data(&state->values) + group;
        const uint8_t *old = slot->size > 0 ? state->heap->data + slot->offset : bytes;
        const int32_t order = compare_bytes(bytes, size, old, slot->size);
        if (state->head.spec.kind == GAR_AGGREGATE_MIN ? order >= 0 : order <= 0) {
            return GAR_OK;
        }
    }
    GAR_TRY(set_text(state, group, bytes, size, err));
    seen[group] = 1;
    if (state->head.spec.kind != GAR_AGGREGATE_ANY_VALUE) {
        ((uint32_t *)gar_aggregate_array_data(&state->bounds))[group] = prefix_of(bytes, size);
    }
    return GAR_OK;
}

/* One group over a dictionary: only look at each entry in use once. */
static enum gar_status offer_used_entries(struct pick_state *state,
                                          const struct gar_column *argument, int64_t rows,
                                          struct gar_error *err)
{
    const struct gar_column *flat = argument->dictionary;
    uint64_t *used = gar_aggregate_used_codes(argument, rows);
    if (used == NULL) {
        return gar_error_nomem(err, flat->length / 8);
    }
    enum gar_status status = GAR_OK;
    for (int64_t code = 0; code < flat->length && status >= 0; code++) {
        if ((used[code >> 6] >> (code & 63)) & 1) {
            int64_t size = 0;
            const uint8_t *bytes = gar_column_bytes_at(flat, code, &size);
            status = offer_text(state, 0, bytes, size, err);
        }
    }
    gar_free(used);
    return status;
}

/* min and max: only texts that the bound does not rule out are compared. */
static enum gar_status pick_bounded(struct pick_state *state, const struct gar_feed *feed,
                                    struct gar_error *err)
{
    const struct gar_string_view *views = (const struct gar_string_view *)feed->flat->values;
    const uint32_t *bounds = (const uint32_t *)gar_aggregate_array_data(&state->bounds);
    const bool is_min = state->head.spec.kind == GAR_AGGREGATE_MIN;
    for (int64_t i = 0; i < feed->count; i++) {
        const uint32_t group = feed->groups != NULL ? feed->groups[i] : 0;
        const uint32_t prefix = view_prefix(&views[feed->places[i]]);
        if (is_min ? prefix <= bounds[group] : prefix >= bounds[group]) {
            int64_t size = 0;
            const uint8_t *bytes = gar_column_bytes_at(feed->flat, feed->places[i], &size);
            GAR_TRY(offer_text(state, group, bytes, size, err));
        }
    }
    return GAR_OK;
}

static enum gar_status pick_texts(struct pick_state *state, const uint32_t *groups,
                                  const struct gar_column *argument, int64_t rows,
                                  struct gar_error *err)
{
    if (groups == NULL && argument->encoding == GAR_DICTIONARY &&
        argument->dictionary->length <= rows && state->head.spec.kind != GAR_AGGREGATE_ANY_VALUE) {
        return offer_used_entries(state, argument, rows, err);
    }
    struct gar_feed feed;
    gar_feed_init(&feed, argument, groups, rows, GAR_FEED_I64);
    while (gar_feed_next_places(&feed)) {
        if (state->head.spec.kind != GAR_AGGREGATE_ANY_VALUE) {
            GAR_TRY(pick_bounded(state, &feed, err));
            continue;
        }
        for (int64_t i = 0; i < feed.count; i++) {
            int64_t size = 0;
            const uint8_t *bytes = gar_column_bytes_at(feed.flat, feed.places[i], &size);
            GAR_TRY(offer_text(state, feed.groups != NULL ? feed.groups[i] : 0, bytes, size, err));
        }
    }
    return GAR_OK;
}

static enum gar_status pick_update(struct gar_aggregate *head, const uint32_t *groups,
                                   const struct gar_column *argument, int64_t rows,
                                   struct gar_error *err)
{
    struct pick_state *state = (struct pick_state *)head;
    if (state->is_text) {
        return pick_texts(state, groups, argument, rows, err);
    }
    struct gar_feed feed;
    gar_feed_init(&feed, argument, groups, rows, state->form);
    while (gar_feed_next(&feed)) {
        if (head->spec.kind == GAR_AGGREGATE_ANY_VALUE) {
            any_step(state, &feed);
        } else {
            pick_step(state, feed.values, feed.groups, feed.count);
        }
    }
    return GAR_OK;
}

static enum gar_status combine_texts(struct pick_state *state, const struct pick_state *from,
                                     int64_t from_group, int64_t to_group, struct gar_error *err)
{
    const uint8_t *seen = (const uint8_t *)gar_aggregate_array_data(&from->seen);
    if (!seen[from_group]) {
        return GAR_OK;
    }
    const struct text_slot *slot =
        (const struct text_slot *)gar_aggregate_array_data(&from->values) + from_group;
    static const uint8_t nothing[1] = {0};
    const uint8_t *bytes = slot->size > 0 ? from->heap->data + slot->offset : nothing;
    return offer_text(state, to_group, bytes, slot->size, err);
}

static enum gar_status pick_combine(struct gar_aggregate *head,
                                    const struct gar_aggregate *from_head,
                                    const uint32_t *from_groups, const uint32_t *to_groups,
                                    int64_t count, struct gar_error *err)
{
    struct pick_state *state = (struct pick_state *)head;
    const struct pick_state *from = (const struct pick_state *)(const void *)from_head;
    const uint8_t *theirs = (const uint8_t *)gar_aggregate_array_data(&from->values);
    const uint8_t *seen = (const uint8_t *)gar_aggregate_array_data(&from->seen);
    const int64_t bytes = item_bytes(state);
    for (int64_t i = 0; i < count; i++) {
        const int64_t g = from_groups != NULL ? (int64_t)from_groups[i] : i;
        if (state->is_text) {
            GAR_TRY(combine_texts(state, from, g, to_groups[i], err));
            continue;
        }
        const uint8_t *value = theirs + g * bytes;
        if (head->spec.kind == GAR_AGGREGATE_ANY_VALUE) {
            uint8_t *ours = (uint8_t *)gar_aggregate_array_data(&state->seen);
            if (seen[g] && !ours[to_groups[i]]) {
                ours[to_groups[i]] = 1;
                memcpy((uint8_t *)gar_aggregate_array_data(&state->values) +
                           (int64_t)to_groups[i] * bytes,
                       value, (size_t)bytes);
            }
        } else {
            pick_step(state, value, to_groups + i, 1);
        }
    }
    return GAR_OK;
}

/* Store a value of the form as the narrower type of the column. */
static void put_value(const struct pick_state *state, int64_t group, struct gar_column *out,
                      int64_t i)
{
    const void *values = gar_aggregate_array_data(&state->values);
    void *to = gar_column_values_mut(out);
    if (state->form == GAR_FEED_I128) {
        ((gar_i128 *)to)[i] = ((const gar_i128 *)values)[group];
        return;
    }
    if (state->form == GAR_FEED_F64) {
        const double v = ((const double *)values)[group];
        if (out->type.id == GAR_FLOAT32) {
            ((float *)to)[i] = (float)v;
        } else {
            ((double *)to)[i] = v;
        }
        return;
    }
    const int64_t v = ((const int64_t *)values)[group]; /* unsigned values have the same bits */
    switch (gar_type_width(out->type)) {
    case 0: gar_bit_put((uint8_t *)to, i, v != 0); break;
    case 1: ((int8_t *)to)[i] = (int8_t)v; break;
    case 2: ((int16_t *)to)[i] = (int16_t)v; break;
    case 4: ((int32_t *)to)[i] = (int32_t)v; break;
    case 16: ((gar_i128 *)to)[i] = v; break;
    default: ((int64_t *)to)[i] = v; break;
    }
}

static bool has_value(const struct pick_state *state, int64_t group, const int64_t *group_rows)
{
    if (state->is_text || state->head.spec.kind == GAR_AGGREGATE_ANY_VALUE) {
        return ((const uint8_t *)gar_aggregate_array_data(&state->seen))[group] != 0;
    }
    return gar_aggregate_valid(&state->head, group, group_rows) > 0;
}

/* Copy the texts of a range of groups into data buffers of at most 1 GiB each. */
static enum gar_status put_texts(const struct pick_state *state, int64_t first, int64_t count,
                                 struct gar_column *out, struct gar_error *err)
{
    const struct text_slot *slots =
        (const struct text_slot *)gar_aggregate_array_data(&state->values) + first;
    struct gar_string_view *views = (struct gar_string_view *)gar_column_values_mut(out);
    const int64_t limit = (int64_t)1 << 30;
    int64_t i = 0;
    while (i < count) {
        int64_t end = i;
        int64_t bytes = 0;
        while (end < count && (bytes == 0 || bytes + slots[end].size <= limit)) {
            bytes += slots[end].size > GAR_VIEW_INLINE_BYTES ? slots[end].size : 0;
            end++;
        }
        int32_t index = 0;
        uint8_t *data = NULL;
        if (bytes > 0) {
            struct gar_buffer *buffer = NULL;
            GAR_TRY(gar_buffer_new(state->head.memory, bytes, &buffer, err));
            data = buffer->data;
            const enum gar_status status = gar_column_add_data(out, buffer, &index, err);
            if (status < 0) {
                gar_buffer_unref(buffer);
                return status;
            }
        }
        int32_t at = 0;
        for (; i < end; i++) {
            if (slots[i].size == 0) {
                continue; /* views start zeroed: the empty text */
            }
            const uint8_t *from = state->heap->data + slots[i].offset;
            views[i] = gar_view_make(from, slots[i].size, index, at);
            if (slots[i].size > GAR_VIEW_INLINE_BYTES) {
                memcpy(data + at, from, (size_t)slots[i].size);
                at += slots[i].size;
            }
        }
    }
    return GAR_OK;
}

static enum gar_status pick_finish(const struct gar_aggregate *head,
                                   const struct gar_aggregate_spec *spec, int64_t first,
                                   int64_t count, const int64_t *group_rows, struct gar_column *out,
                                   int64_t *nulls, struct gar_error *err)
{
    (void)spec;
    const struct pick_state *state = (const struct pick_state *)(const void *)head;
    if (state->is_text) {
        GAR_TRY(put_texts(state, first, count, out, err));
    }
    for (int64_t i = 0; i < count; i++) {
        if (!has_value(state, first + i, group_rows)) {
            gar_bit_clear(gar_column_validity_mut(out), i);
            (*nulls)++;
            if (!state->is_text && gar_type_width(out->type) > 0) {
                memset((uint8_t *)gar_column_values_mut(out) + i * gar_type_width(out->type), 0,
                       (size_t)gar_type_width(out->type));
            }
        } else if (!state->is_text) {
            put_value(state, first + i, out, i);
        }
    }
    return GAR_OK;
}

static void pick_free(struct gar_aggregate *head)
{
    struct pick_state *state = (struct pick_state *)head;
    gar_aggregate_array_destroy(&state->values);
    gar_aggregate_array_destroy(&state->seen);
    gar_aggregate_array_destroy(&state->bounds);
    gar_buffer_unref(state->heap);
}

struct gar_aggregate *gar_aggregate_new_pick(const struct gar_aggregate_spec *spec)
{
    static const struct gar_aggregate_vtable vtable = {.resize = pick_resize,
                                                       .update = pick_update,
                                                       .combine = pick_combine,
                                                       .finish = pick_finish,
                                                       .free = pick_free};
    struct pick_state *state = (struct pick_state *)gar_calloc(1, (int64_t)sizeof *state);
    if (state == NULL) {
        return NULL;
    }
    state->head.vtable = &vtable;
    state->is_text = gar_type_is_text(spec->argument);
    if (gar_type_is_float(spec->argument)) {
        state->form = GAR_FEED_F64;
    } else if (gar_type_is_unsigned(spec->argument)) {
        state->form = GAR_FEED_U64;
    } else if (spec->argument.id == GAR_DECIMAL128 &&
               spec->argument.precision > GAR_DECIMAL64_PRECISION_MAX) {
        state->form = GAR_FEED_I128;
    } else {
        state->form = GAR_FEED_I64;
    }
    return &state->head;
}
