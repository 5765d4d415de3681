/* SPDX-License-Identifier: Apache-2.0 */
/* Approximate aggregates, each a table of small counters that only joins by maximum or sum: any split of the input gives the
 * same answer.
 *
 * approx_count_distinct: HyperLogLog with 2^14 registers (standard error 0.8 %); only registers that were touched are
 * held, so small groups stay small. Few values are counted by the share of touched registers, many by LogLog-Beta.
 * approx_percentiles: DDSketch, counts of values whose sizes lie within 1 % of each other. */
#include <math.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "kernels/aggregate_priv.h"
#include "kernels/hash_rows.h"
#include "kernels/radix_sort.h"
#include "kernels/word_index.h"

/* Groups of another state as ours; UINT32_MAX: not asked for. NULL without memory. */
static uint32_t *map_groups(const struct gar_aggregate *from, const uint32_t *from_groups,
                            const uint32_t *to_groups, int64_t count)
{
    uint32_t *map = (uint32_t *)gar_malloc(from->groups * (int64_t)sizeof(uint32_t));
    if (map != NULL) {
        memset(map, 0xff, (size_t)from->groups * sizeof(uint32_t));
        for (int64_t i = 0; i < count; i++) {
            map[from_groups != NULL ? (int64_t)from_groups[i] : i] = to_groups[i];
        }
    }
    return map;
}

/* ---- approx_count_distinct ---- */

enum {
    REGISTER_BITS = 14,
    REGISTERS = 1 << REGISTER_BITS,
    RANK_MAX = 50, /* sums of 2^-rank are kept as whole multiples of 2^-RANK_MAX */
    STEP = GAR_WORD_INDEX_STEP,
};

struct group_sum {
    int64_t sum; /* of 2^(RANK_MAX - rank) over touched registers */
    int64_t touched;
};

struct registers_state {
    struct gar_aggregate head;
    struct gar_word_index index;      /* group and register */
    struct gar_aggregate_array ranks; /* uint8_t per number of the index */
    struct gar_aggregate_array sums;  /* struct group_sum per group */
};

static enum gar_status registers_resize(struct gar_aggregate *head, int64_t groups,
                                        struct gar_error *err)
{
    return gar_aggregate_array_grow(&((struct registers_state *)head)->sums, head->memory, groups,
                                    (int64_t)sizeof(struct group_sum), err);
}

/* Raise registers: keys are group and register. count <= STEP. */
static enum gar_status raise(struct registers_state *state, const uint64_t *keys,
                             const uint8_t *ranks, int64_t count, struct gar_error *err)
{
    uint32_t numbers[STEP];
    GAR_TRY(gar_word_index_find(&state->index, keys, count, numbers, err));
    GAR_TRY(
        gar_aggregate_array_grow(&state->ranks, state->head.memory, state->index.count, 1, err));
    uint8_t *held = (uint8_t *)gar_aggregate_array_data(&state->ranks);
    struct group_sum *sums = (struct group_sum *)gar_aggregate_array_data(&state->sums);
    for (int64_t i = 0; i < count; i++) {
        uint8_t *rank = &held[numbers[i]];
        if (ranks[i] <= *rank) {
            continue;
        }
        struct group_sum *sum = &sums[keys[i] >> REGISTER_BITS];
        if (*rank == 0) {
            sum->touched++;
        } else {
            sum->sum -= INT64_C(1) << (RANK_MAX - *rank);
        }
        sum->sum += INT64_C(1) << (RANK_MAX - ranks[i]);
        *rank = ranks[i];
    }
    return GAR_OK;
}

static uint64_t hash_value(const struct gar_column *flat, int64_t row)
{
    if (gar_type_is_text(flat->type)) {
        int64_t bytes = 0;
        const uint8_t *text = gar_column_bytes_at(flat, row, &bytes);
        return gar_hash_u64(gar_hash_bytes(text, bytes));
    }
    uint64_t words[2] = {0, 0};
    if (gar_key_is_word(flat->type)) {
        gar_key_load_words(flat, row, 1, words);
    } else {
        memcpy(words, (const gar_i128 *)flat->values + row, sizeof words);
    }
    return gar_hash_combine(gar_hash_u64(words[0]), words[1]);
}

static enum gar_status registers_update(struct gar_aggregate *head, const uint32_t *groups,
                                        const struct gar_column *argument, int64_t rows,
                                        struct gar_error *err)
{
    struct registers_state *state = (struct registers_state *)head;
    uint64_t keys[STEP];
    uint8_t ranks[STEP];
    struct gar_feed feed;
    gar_feed_init(&feed, argument, groups, rows, GAR_FEED_I64);
    while (gar_feed_next_places(&feed)) {
        for (int64_t at = 0; at < feed.count; at += STEP) {
            const int64_t n = gar_min_i64(feed.count - at, STEP);
            for (int64_t i = 0; i < n; i++) {
                const uint64_t hash = hash_value(feed.flat, feed.places[at + i]);
                const uint64_t group = feed.groups != NULL ? feed.groups[at + i] : 0;
                const uint64_t rest = hash << REGISTER_BITS;
                const int64_t rank = rest == 0 ? RANK_MAX : gar_clz64(rest) + 1;
                keys[i] = group << REGISTER_BITS | hash >> (64 - REGISTER_BITS);
                ranks[i] = (uint8_t)gar_min_i64(rank, RANK_MAX);
            }
            GAR_TRY(raise(state, keys, ranks, n, err));
        }
    }
    return GAR_OK;
}

static enum gar_status registers_combine(struct gar_aggregate *head,
                                         const struct gar_aggregate *from_head,
                                         const uint32_t *from_groups, const uint32_t *to_groups,
                                         int64_t count, struct gar_error *err)
{
    const struct registers_state *from = (const struct registers_state *)(const void *)from_head;
    uint32_t *map = map_groups(from_head, from_groups, to_groups, count);
    if (map == NULL) {
        return gar_error_nomem(err, from_head->groups * 4);
    }
    const uint8_t *held = (const uint8_t *)gar_aggregate_array_data(&from->ranks);
    uint64_t keys[STEP];
    uint8_t ranks[STEP];
    enum gar_status status = GAR_OK;
    for (int64_t at = 0; at < from->index.count && status >= 0;) {
        int64_t n = 0;
        for (; at < from->index.count && n < STEP; at++) {
            const uint64_t key = gar_word_index_key(&from->index, at);
            const uint32_t group = map[key >> REGISTER_BITS];
            if (group != UINT32_MAX) {
                keys[n] = (uint64_t)group << REGISTER_BITS | (key & (REGISTERS - 1));
                ranks[n++] = held[at];
            }
        }
        status = n > 0 ? raise((struct registers_state *)head, keys, ranks, n, err) : GAR_OK;
    }
    gar_free(map);
    return status;
}

/* LogLog-Beta for 14 bits: the bias as a polynomial of the registers that are empty. */
static double beta(double empty)
{
    static const double factors[] = {0.070471823, 0.17393686,   0.16339839, -0.09237745,
                                     0.03738027,  -0.005384159, 0.00042419};
    const double z = log(empty + 1);
    double power = z;
    double sum = -0.370393911 * empty;
    for (int64_t i = 0; i < GAR_COUNT_OF(factors); i++) {
        sum += factors[i] * power;
        power *= z;
    }
    return sum;
}

static int64_t estimate(const struct group_sum *group)
{
    const double m = REGISTERS;
    const double empty = m - (double)group->touched;
    if (group->touched <= REGISTERS / 4) {
        return (int64_t)llround(m * log(m / empty));
    }
    const double sum = ldexp((double)group->sum, -RANK_MAX) + empty;
    const double alpha = 0.7213 / (1 + 1.079 / m);
    /* Empty registers count 1 each in the harmonic sum; beta takes their place. */
    return (int64_t)llround(alpha * m * (m - empty) / (beta(empty) + sum));
}

static enum gar_status registers_finish(const struct gar_aggregate *head,
                                        const struct gar_aggregate_spec *spec, int64_t first,
                                        int64_t count, const int64_t *group_rows,
                                        struct gar_column *out, int64_t *nulls,
                                        struct gar_error *err)
{
    (void)group_rows;
    (void)spec;
    (void)nulls;
    (void)err;
    const struct registers_state *state = (const struct registers_state *)(const void *)head;
    const struct group_sum *sums =
        (const struct group_sum *)gar_aggregate_array_data(&state->sums) + first;
    int64_t *values = (int64_t *)gar_column_values_mut(out);
    for (int64_t i = 0; i < count; i++) {
        values[i] = estimate(&sums[i]);
    }
    return GAR_OK;
}

static void registers_free(struct gar_aggregate *head)
{
    struct registers_state *state = (struct registers_state *)head;
    gar_word_index_destroy(&state->index);
    gar_aggregate_array_destroy(&state->ranks);
    gar_aggregate_array_destroy(&state->sums);
}

struct gar_aggregate *gar_aggregate_new_registers(struct gar_memory *memory)
{
    static const struct gar_aggregate_vtable vtable = {.resize = registers_resize,
                                                       .update = registers_update,
                                                       .combine = registers_combine,
                                                       .finish = registers_finish,
                                                       .free = registers_free};
    struct registers_state *state = (struct registers_state *)gar_calloc(1, (int64_t)sizeof *state);
    if (state == NULL) {
        return NULL;
    }
    state->head.vtable = &vtable;
    gar_word_index_init(&state->index, memory, true);
    return &state->head;
}

/* ---- approx_percentiles ---- */

/* Buckets by value: below zero, zero, above zero, NaN. A size v lies in bucket ceil(log(v) / log(GAMMA)). */
#define GAMMA (101.0 / 99.0)
enum {
    BUCKET_ZERO = 1 << 17,
    BUCKET_SHIFT = 50000, /* makes the number of every finite size positive */
    BUCKET_INFINITE = 99999,
    BUCKET_NAN = 1 << 18,
};

struct sketch_state {
    struct gar_aggregate head;
    struct gar_word_index index;       /* group and bucket */
    struct gar_aggregate_array counts; /* int64_t per number of the index */
    struct gar_buffer *sorted; /* owned; sealed: struct gar_sort_entry by group and bucket */
};

static int64_t bucket_of(double value)
{
    if (isnan(value)) {
        return BUCKET_NAN;
    }
    if (value == 0) {
        return BUCKET_ZERO;
    }
    const int64_t size = isinf(value) ? BUCKET_INFINITE
                                      : (int64_t)ceil(log(fabs(value)) / log(GAMMA)) + BUCKET_SHIFT;
    return value > 0 ? BUCKET_ZERO + 1 + size : BUCKET_ZERO - 1 - size;
}

static double value_of(int64_t bucket)
{
    if (bucket == BUCKET_NAN) {
        return (double)NAN;
    }
    if (bucket == BUCKET_ZERO) {
        return 0;
    }
    const double sign = bucket > BUCKET_ZERO ? 1 : -1;
    const int64_t size = (bucket > BUCKET_ZERO ? bucket - BUCKET_ZERO : BUCKET_ZERO - bucket) - 1;
    if (size == BUCKET_INFINITE) {
        return sign * (double)INFINITY;
    }
    const double value = pow(GAMMA, (double)(size - BUCKET_SHIFT)) * (2 / (GAMMA + 1));
    return sign * fmin(value, 1.7976931348623157e308);
}

static enum gar_status add_counts(struct sketch_state *state, const uint64_t *keys,
                                  const int64_t *counts, int64_t count, struct gar_error *err)
{
    uint32_t numbers[STEP];
    GAR_TRY(gar_word_index_find(&state->index, keys, count, numbers, err));
    GAR_TRY(gar_aggregate_array_grow(&state->counts, state->head.memory, state->index.count,
                                     (int64_t)sizeof(int64_t), err));
    int64_t *held = (int64_t *)gar_aggregate_array_data(&state->counts);
    for (int64_t i = 0; i < count; i++) {
        held[numbers[i]] += counts != NULL ? counts[i] : 1;
    }
    return GAR_OK;
}

static enum gar_status sketch_update(struct gar_aggregate *head, const uint32_t *groups,
                                     const struct gar_column *argument, int64_t rows,
                                     struct gar_error *err)
{
    uint64_t keys[STEP];
    struct gar_feed feed;
    gar_feed_init(&feed, argument, groups, rows, GAR_FEED_F64);
    while (gar_feed_next(&feed)) {
        const double *values = (const double *)feed.values;
        for (int64_t at = 0; at < feed.count; at += STEP) {
            const int64_t n = gar_min_i64(feed.count - at, STEP);
            for (int64_t i = 0; i < n; i++) {
                keys[i] = (uint64_t)(feed.groups != NULL ? feed.groups[at + i] : 0) << 32 |
                          (uint64_t)bucket_of(values[at + i]);
            }
            GAR_TRY(add_counts((struct sketch_state *)head, keys, NULL, n, err));
        }
    }
    return GAR_OK;
}

static enum gar_status sketch_combine(struct gar_aggregate *head,
                                      const struct gar_aggregate *from_head,
                                      const uint32_t *from_groups, const uint32_t *to_groups,
                                      int64_t count, struct gar_error *err)
{
    const struct sketch_state *from = (const struct sketch_state *)(const void *)from_head;
    uint32_t *map = map_groups(from_head, from_groups, to_groups, count);
    if (map == NULL) {
        return gar_error_nomem(err, from_head->groups * 4);
    }
    const int64_t *held = (const int64_t *)gar_aggregate_array_data(&from->counts);
    uint64_t keys[STEP];
    int64_t counts[STEP];
    enum gar_status status = GAR_OK;
    for (int64_t at = 0; at < from->index.count && status >= 0;) {
        int64_t n = 0;
        for (; at < from->index.count && n < STEP; at++) {
            const uint64_t key = gar_word_index_key(&from->index, at);
            const uint32_t group = map[key >> 32];
            if (group != UINT32_MAX) {
                keys[n] = (uint64_t)group << 32 | (uint32_t)key;
                counts[n++] = held[at];
            }
        }
        status = n > 0 ? add_counts((struct sketch_state *)head, keys, counts, n, err) : GAR_OK;
    }
    gar_free(map);
    return status;
}

static enum gar_status sketch_seal(struct gar_aggregate *head, struct gar_error *err)
{
    struct sketch_state *state = (struct sketch_state *)head;
    struct gar_buffer *scratch = NULL;
    const int64_t count = state->index.count;
    const int64_t bytes = gar_max_i64(count, 1) * (int64_t)sizeof(struct gar_sort_entry);
    GAR_TRY(gar_buffer_new(head->memory, bytes, &state->sorted, err));
    GAR_TRY(gar_buffer_new(head->memory, bytes, &scratch, err));
    struct gar_sort_entry *entries = (struct gar_sort_entry *)(void *)state->sorted->data;
    for (int64_t i = 0; i < count; i++) {
        entries[i] = (struct gar_sort_entry){gar_word_index_key(&state->index, i), (uint32_t)i, 0};
    }
    gar_radix_sort(entries, (struct gar_sort_entry *)(void *)scratch->data, count);
    gar_buffer_unref(scratch);
    return GAR_OK;
}

/* The first sorted entry of the group or a later one. */
static int64_t first_of(const struct gar_sort_entry *entries, int64_t count, int64_t group)
{
    int64_t low = 0;
    int64_t high = count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if ((int64_t)(entries[middle].key >> 32) < group) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static enum gar_status sketch_finish(const struct gar_aggregate *head,
                                     const struct gar_aggregate_spec *spec, int64_t first,
                                     int64_t count, const int64_t *group_rows,
                                     struct gar_column *out, int64_t *nulls, struct gar_error *err)
{
    (void)group_rows;
    const struct sketch_state *state = (const struct sketch_state *)(const void *)head;
    if (state->sorted == NULL) {
        return gar_error_set(err, GAR_ERR_INTERNAL, "approx_percentiles was not sealed");
    }
    const struct gar_sort_entry *entries =
        (const struct gar_sort_entry *)(const void *)state->sorted->data;
    const int64_t *counts = (const int64_t *)gar_aggregate_array_data(&state->counts);
    const int64_t end = state->index.count;
    double *values = (double *)gar_column_values_mut(out);
    int64_t at = first_of(entries, end, first);
    for (int64_t i = 0; i < count; i++) {
        const int64_t begin = at;
        int64_t total = 0;
        for (; at < end && (int64_t)(entries[at].key >> 32) == first + i; at++) {
            total += counts[entries[at].row];
        }
        values[i] = 0;
        if (total == 0) {
            gar_bit_clear(gar_column_validity_mut(out), i);
            (*nulls)++;
            continue;
        }
        const double rank = spec->fraction * (double)(total - 1);
        int64_t seen = 0;
        int64_t e = begin;
        while (e + 1 < at && (double)(seen += counts[entries[e].row]) <= rank) {
            e++;
        }
        values[i] = value_of((int64_t)(uint32_t)entries[e].key);
    }
    return GAR_OK;
}

static void sketch_free(struct gar_aggregate *head)
{
    struct sketch_state *state = (struct sketch_state *)head;
    gar_word_index_destroy(&state->index);
    gar_aggregate_array_destroy(&state->counts);
    gar_buffer_unref(state->sorted);
}

struct gar_aggregate *gar_aggregate_new_sketch(struct gar_memory *memory)
{
    static const struct gar_aggregate_vtable vtable = {.update = sketch_update,
                                                       .combine = sketch_combine,
                                                       .seal = sketch_seal,
                                                       .finish = sketch_finish,
                                                       .free = sketch_free};
    struct sketch_state *state = (struct sketch_state *)gar_calloc(1, (int64_t)sizeof *state);
    if (state == NULL) {
        return NULL;
    }
    state->head.vtable = &vtable;
    gar_word_index_init(&state->index, memory, true);
    return &state->head;
}
