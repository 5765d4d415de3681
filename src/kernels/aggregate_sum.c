/* SPDX-License-Identifier: Apache-2.0 */
/* Sums, means and products.
 *
 * Integers and decimals of up to 18 digits are summed in 64 bits that wrap; each wrap is counted in a second array that
 * does not exist until the first one (`carries`: sum = carry * 2^64 + low). Larger decimals are summed in 128 bits, floats
 * in double precision. */
#include <math.h>

#include "base/alloc.h"
#include "base/int128.h"
#include "kernels/aggregate_priv.h"
#include "kernels/vector.h"

struct sum_state {
    struct gar_aggregate head;
    enum gar_feed_form form;
    struct gar_aggregate_array sums;    /* int64_t, uint64_t, gar_i128 or double */
    struct gar_aggregate_array carries; /* int64_t; empty until needed */
};

static int64_t form_bytes(enum gar_feed_form form)
{
    return form == GAR_FEED_I128 ? 16 : 8;
}

static enum gar_status sum_resize(struct gar_aggregate *head, int64_t groups, struct gar_error *err)
{
    struct sum_state *state = (struct sum_state *)head;
    GAR_TRY(
        gar_aggregate_array_grow(&state->sums, head->memory, groups, form_bytes(state->form), err));
    if (state->carries.buffer != NULL) {
        GAR_TRY(gar_aggregate_array_grow(&state->carries, head->memory, groups,
                                         (int64_t)sizeof(int64_t), err));
    }
    return GAR_OK;
}

static GAR_NOINLINE enum gar_status add_carry(struct sum_state *state, int64_t group, int64_t by,
                                              struct gar_error *err)
{
    GAR_TRY(gar_aggregate_array_grow(&state->carries, state->head.memory, state->head.groups,
                                     (int64_t)sizeof(int64_t), err));
    int64_t *carries = (int64_t *)gar_aggregate_array_data(&state->carries);
    carries[group] += by;
    return GAR_OK;
}

static enum gar_status add_i64(struct sum_state *state, int64_t group, int64_t value,
                               struct gar_error *err)
{
    int64_t *sums = (int64_t *)gar_aggregate_array_data(&state->sums);
    int64_t sum = 0;
    const bool wraps = __builtin_add_overflow(sums[group], value, &sum);
    if (GAR_UNLIKELY(wraps)) {
        GAR_TRY(add_carry(state, group, value > 0 ? 1 : -1, err));
    }
    sums[group] = sum;
    return GAR_OK;
}

static enum gar_status add_u64(struct sum_state *state, int64_t group, uint64_t value,
                               struct gar_error *err)
{
    uint64_t *sums = (uint64_t *)gar_aggregate_array_data(&state->sums);
    uint64_t sum = 0;
    const bool wraps = __builtin_add_overflow(sums[group], value, &sum);
    if (GAR_UNLIKELY(wraps)) {
        GAR_TRY(add_carry(state, group, 1, err));
    }
    sums[group] = sum;
    return GAR_OK;
}

/* Wraps of 128 bits are counted too: only a final sum may be an error. */
static enum gar_status add_i128(struct sum_state *state, int64_t group, gar_i128 value,
                                struct gar_error *err)
{
    gar_i128 *sums = (gar_i128 *)gar_aggregate_array_data(&state->sums);
    gar_i128 sum = 0;
    if (GAR_UNLIKELY(__builtin_add_overflow(sums[group], value, &sum))) {
        GAR_TRY(add_carry(state, group, value > 0 ? 1 : -1, err));
    }
    sums[group] = sum;
    return GAR_OK;
}

/* Total of one step without any chance of overflow: halves are summed apart. */
static gar_i128 total_i64(const int64_t *values, int64_t count)
{
    int64_t high = 0;
    int64_t low = 0;
    for (int64_t i = 0; i < count; i++) {
        high += values[i] >> 32;
        low += (int64_t)(values[i] & INT64_C(0xffffffff));
    }
    return ((gar_i128)high * ((gar_i128)1 << 32)) + low;
}

/* Put a total of any size into group 0: in at most a few 64-bit steps, as a total of 1,024 values
 * has 74 bits. */
static enum gar_status add_total(struct sum_state *state, gar_i128 total, struct gar_error *err)
{
    while (total > INT64_MAX || total < INT64_MIN) {
        const int64_t part = total > 0 ? INT64_MAX : INT64_MIN;
        GAR_TRY(add_i64(state, 0, part, err));
        total -= part;
    }
    return add_i64(state, 0, (int64_t)total, err);
}

/* Up to this many groups are summed beside the state for a step. */
#define FEW_GROUPS 64
#define FEW_LANES  4
/* Values up to this size cannot overflow 64 bits within one step. */
#define FEW_BOUND ((uint64_t)INT64_MAX / GAR_FEED_ROWS)

_Static_assert(GAR_FEED_ROWS == GAR_VECTOR_ROWS, "steps are vectors");

/* Sums of few groups: adding to one place in memory again and again waits for itself each time, so that rows take
 * turns with several places for each group. totals has `group_count` items. */
static void sum_few_groups(const int64_t *values, const uint32_t *groups, int64_t count,
                           int64_t group_count, int64_t *totals)
{
    int64_t lanes[FEW_LANES][FEW_GROUPS];
    for (int32_t k = 0; k < FEW_LANES; k++) {
        memset(lanes[k], 0, (size_t)group_count * sizeof lanes[k][0]);
    }
    int64_t i = 0;
    for (; i + FEW_LANES <= count; i += FEW_LANES) {
        for (int32_t k = 0; k < FEW_LANES; k++) {
            lanes[k][groups[i + k]] += values[i + k];
        }
    }
    for (; i < count; i++) {
        lanes[0][groups[i]] += values[i];
    }
    for (int64_t g = 0; g < group_count; g++) {
        totals[g] = lanes[0][g] + lanes[1][g] + lanes[2][g] + lanes[3][g];
    }
}

/* Are there so many more values than groups that going over the groups once more does not show? */
static bool has_few_groups(const struct sum_state *state, int64_t count)
{
    return state->head.groups <= FEW_GROUPS && count >= 4 * state->head.groups;
}

static enum gar_status step_i64(struct sum_state *state, const struct gar_feed *feed,
                                struct gar_error *err)
{
    const int64_t *values = (const int64_t *)feed->values;
    const uint32_t *groups = feed->groups;
    if (groups == NULL) {
        return add_total(state, total_i64(values, feed->count), err);
    }
    if (has_few_groups(state, feed->count) &&
        gar_vector_kernels()->bound(values, feed->count) <= FEW_BOUND) {
        int64_t totals[FEW_GROUPS];
        sum_few_groups(values, groups, feed->count, state->head.groups, totals);
        for (int64_t g = 0; g < state->head.groups; g++) {
            GAR_TRY(add_i64(state, g, totals[g], err));
        }
        return GAR_OK;
    }
    int64_t *sums = (int64_t *)gar_aggregate_array_data(&state->sums);
    for (int64_t i = 0; i < feed->count; i++) {
        int64_t sum = 0;
        if (GAR_UNLIKELY(__builtin_add_overflow(sums[groups[i]], values[i], &sum))) {
            GAR_TRY(add_carry(state, groups[i], values[i] > 0 ? 1 : -1, err));
        }
        sums[groups[i]] = sum;
    }
    return GAR_OK;
}

static enum gar_status step_u64(struct sum_state *state, const struct gar_feed *feed,
                                struct gar_error *err)
{
    const uint64_t *values = (const uint64_t *)feed->values;
    for (int64_t i = 0; i < feed->count; i++) {
        GAR_TRY(add_u64(state, feed->groups != NULL ? feed->groups[i] : 0, values[i], err));
    }
    return GAR_OK;
}

static enum gar_status step_i128(struct sum_state *state, const struct gar_feed *feed,
                                 struct gar_error *err)
{
    const gar_i128 *values = (const gar_i128 *)feed->values;
    const uint32_t *groups = feed->groups;
    const bool is_simple = groups == NULL || has_few_groups(state, feed->count);
    int64_t slim[GAR_FEED_ROWS];
    uint64_t bound = 0;
    if (is_simple && gar_vector_kernels()->narrow(values, slim, feed->count, &bound) &&
        bound <= FEW_BOUND) {
        if (groups == NULL) {
            return add_i128(state, 0, total_i64(slim, feed->count), err);
        }
        int64_t totals[FEW_GROUPS];
        sum_few_groups(slim, groups, feed->count, state->head.groups, totals);
        for (int64_t g = 0; g < state->head.groups; g++) {
            GAR_TRY(add_i128(state, g, totals[g], err));
        }
        return GAR_OK;
    }
    gar_i128 *sums = (gar_i128 *)gar_aggregate_array_data(&state->sums);
    for (int64_t i = 0; i < feed->count; i++) {
        const int64_t g = groups != NULL ? groups[i] : 0;
        gar_i128 sum = 0;
        if (GAR_UNLIKELY(__builtin_add_overflow(sums[g], values[i], &sum))) {
            GAR_TRY(add_carry(state, g, values[i] > 0 ? 1 : -1, err));
        }
        sums[g] = sum;
    }
    return GAR_OK;
}

static double total_f64(const double *values, int64_t count)
{
    double lanes[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        for (int64_t k = 0; k < 8; k++) {
            lanes[k] += values[i + k];
        }
    }
    for (; i < count; i++) {
        lanes[0] += values[i];
    }
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
           ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

static enum gar_status step_f64(struct sum_state *state, const struct gar_feed *feed,
                                struct gar_error *err)
{
    (void)err;
    const double *values = (const double *)feed->values;
    const uint32_t *groups = feed->groups;
    double *sums = (double *)gar_aggregate_array_data(&state->sums);
    if (groups == NULL) {
        sums[0] += total_f64(values, feed->count);
    } else {
        for (int64_t i = 0; i < feed->count; i++) {
            sums[groups[i]] += values[i];
        }
    }
    return GAR_OK;
}

static enum gar_status sum_update(struct gar_aggregate *head, const uint32_t *groups,
                                  const struct gar_column *argument, int64_t rows,
                                  struct gar_error *err)
{
    struct sum_state *state = (struct sum_state *)head;
    struct gar_feed feed;
    gar_feed_init(&feed, argument, groups, rows, state->form);
    while (gar_feed_next(&feed)) {
        switch (state->form) {
        case GAR_FEED_I64: GAR_TRY(step_i64(state, &feed, err)); break;
        case GAR_FEED_U64: GAR_TRY(step_u64(state, &feed, err)); break;
        case GAR_FEED_I128: GAR_TRY(step_i128(state, &feed, err)); break;
        case GAR_FEED_F64: GAR_TRY(step_f64(state, &feed, err)); break;
        }
    }
    return GAR_OK;
}

static int64_t carry_of(const struct sum_state *state, int64_t group)
{
    const int64_t *carries = (const int64_t *)gar_aggregate_array_data(&state->carries);
    return carries != NULL && group < state->carries.count ? carries[group] : 0;
}

static enum gar_status sum_combine(struct gar_aggregate *head,
                                   const struct gar_aggregate *from_head,
                                   const uint32_t *from_groups, const uint32_t *to_groups,
                                   int64_t count, struct gar_error *err)
{
    struct sum_state *state = (struct sum_state *)head;
    const struct sum_state *from = (const struct sum_state *)(const void *)from_head;
    const void *theirs = gar_aggregate_array_data(&from->sums);
    for (int64_t i = 0; i < count; i++) {
        const int64_t g = from_groups != NULL ? (int64_t)from_groups[i] : i;
        const int64_t to = to_groups[i];
        switch (state->form) {
        case GAR_FEED_I64: GAR_TRY(add_i64(state, to, ((const int64_t *)theirs)[g], err)); break;
        case GAR_FEED_U64: GAR_TRY(add_u64(state, to, ((const uint64_t *)theirs)[g], err)); break;
        case GAR_FEED_I128: GAR_TRY(add_i128(state, to, ((const gar_i128 *)theirs)[g], err)); break;
        case GAR_FEED_F64:
            ((double *)gar_aggregate_array_data(&state->sums))[to] += ((const double *)theirs)[g];
            break;
        }
        const int64_t carry = carry_of(from, g);
        if (GAR_UNLIKELY(carry != 0)) {
            GAR_TRY(add_carry(state, to, carry, err));
        }
    }
    return GAR_OK;
}

/* The exact sum of a group of integers or decimals. False when it does not even fit 128 bits. */
static bool exact_sum(const struct sum_state *state, int64_t group, gar_i128 *out)
{
    const void *sums = gar_aggregate_array_data(&state->sums);
    const int64_t carry = carry_of(state, group);
    if (state->form == GAR_FEED_I128) {
        *out = ((const gar_i128 *)sums)[group];
        return carry == 0;
    }
    /* Carries stay far below 2^62: rows are counted in 63 bits. */
    const gar_i128 low = state->form == GAR_FEED_U64 ? (gar_i128)((const uint64_t *)sums)[group]
                                                     : (gar_i128)((const int64_t *)sums)[group];
    *out = low + (gar_i128)((gar_u128)(gar_i128)carry << 64);
    return true;
}

static enum gar_status sum_overflow(const struct gar_aggregate_spec *spec, gar_i128 value,
                                    struct gar_error *err)
{
    char type[64];
    char text[48];
    const int32_t n = gar_decimal_format(
        value, spec->argument.id == GAR_DECIMAL128 ? spec->argument.scale : 0, text);
    return gar_error_set(err, GAR_ERR_OVERFLOW,
                         "%s is %.*s, out of range for %s; cast the values to float64 first",
                         gar_aggregate_kind_name(spec->kind), (int)n, text,
                         gar_type_text(spec->result, type, (int64_t)sizeof type));
}

/* total / n with `digits` more decimal places, rounded half away from zero. */
static bool divide_rounded(gar_i128 total, int64_t n, int32_t digits, gar_i128 *out)
{
    const gar_i128 power = gar_pow10_i128(digits);
    const gar_i128 whole = total / n;
    const gar_i128 scaled = (total % n) * power; /* |rest| < 2^63, digits <= 4: fits */
    gar_i128 part = scaled / n;
    const gar_i128 rest = scaled % n;
    if ((rest < 0 ? -rest : rest) * 2 >= n) {
        part += total < 0 ? -1 : 1;
    }
    gar_i128 result = 0;
    if (__builtin_mul_overflow(whole, power, &result) ||
        __builtin_add_overflow(result, part, &result)) {
        return false;
    }
    *out = result;
    return true;
}

static double mean_f64(gar_i128 total, int64_t n)
{
    const int64_t exact = INT64_C(1) << 53;
    if (total > -exact && total < exact) {
        return (double)(int64_t)total / (double)n;
    }
    return (double)((long double)total / (long double)n);
}

static enum gar_status put_mean(const struct gar_aggregate_spec *spec, gar_i128 total, int64_t n,
                                void *values, int64_t i, struct gar_error *err)
{
    gar_i128 mean = 0;
    switch ((enum gar_type_id)spec->result.id) {
    case GAR_DECIMAL128:
        if (!divide_rounded(total, n, spec->result.scale - spec->argument.scale, &mean) ||
            !gar_decimal_fits(mean, spec->result.precision)) {
            return sum_overflow(spec, total / n, err);
        }
        ((gar_i128 *)values)[i] = mean;
        return GAR_OK;
    case GAR_DURATION:
    case GAR_INT64:
        (void)divide_rounded(total, n, 0, &mean);
        ((int64_t *)values)[i] = (int64_t)mean;
        return GAR_OK;
    default:
        if (spec->argument.id == GAR_DECIMAL128) {
            ((double *)values)[i] = gar_decimal_to_double(total, spec->argument.scale) / (double)n;
        } else {
            ((double *)values)[i] = mean_f64(total, n);
        }
        return GAR_OK;
    }
}

static enum gar_status put_sum(const struct gar_aggregate_spec *spec, gar_i128 total, void *values,
                               int64_t i, struct gar_error *err)
{
    bool fits = false;
    if (spec->result.id == GAR_DECIMAL128) {
        fits = gar_decimal_fits(total, spec->result.precision);
        if (fits) {
            ((gar_i128 *)values)[i] = total;
        }
    } else if (spec->result.id == GAR_UINT64) {
        fits = total >= 0 && total <= (gar_i128)UINT64_MAX;
        ((uint64_t *)values)[i] = (uint64_t)total;
    } else {
        fits = total >= INT64_MIN && total <= INT64_MAX;
        ((int64_t *)values)[i] = (int64_t)total;
    }
    return fits ? GAR_OK : sum_overflow(spec, total, err);
}

static enum gar_status sum_finish(const struct gar_aggregate *head,
                                  const struct gar_aggregate_spec *spec, int64_t first,
                                  int64_t count, const int64_t *group_rows, struct gar_column *out,
                                  int64_t *nulls, struct gar_error *err)
{
    const struct sum_state *state = (const struct sum_state *)(const void *)head;
    const bool is_mean = spec->kind == GAR_AGGREGATE_MEAN;
    void *values = gar_column_values_mut(out);
    uint8_t *validity = gar_column_validity_mut(out);
    const int32_t width = gar_type_width(spec->result);
    for (int64_t i = 0; i < count; i++) {
        const int64_t n = gar_aggregate_valid(head, first + i, group_rows);
        gar_i128 total = 0;
        if (n == 0) {
            memset((uint8_t *)values + i * width, 0, (size_t)width);
            gar_bit_clear(validity, i);
            (*nulls)++;
        } else if (state->form == GAR_FEED_F64) {
            const double sum = ((const double *)gar_aggregate_array_data(&state->sums))[first + i];
            ((double *)values)[i] = is_mean ? sum / (double)n : sum;
        } else if (!exact_sum(state, first + i, &total)) {
            return gar_error_set(err, GAR_ERR_OVERFLOW,
                                 "%s of decimals exceeds 38 digits; cast to float64 first",
                                 gar_aggregate_kind_name(spec->kind));
        } else if (is_mean) {
            GAR_TRY(put_mean(spec, total, n, values, i, err));
        } else {
            GAR_TRY(put_sum(spec, total, values, i, err));
        }
    }
    return GAR_OK;
}

static void sum_free(struct gar_aggregate *head)
{
    struct sum_state *state = (struct sum_state *)head;
    gar_aggregate_array_destroy(&state->sums);
    gar_aggregate_array_destroy(&state->carries);
}

static enum gar_feed_form form_of(struct gar_type type)
{
    if (gar_type_is_float(type)) {
        return GAR_FEED_F64;
    }
    if (type.id == GAR_DECIMAL128 && type.precision > GAR_DECIMAL64_PRECISION_MAX) {
        return GAR_FEED_I128;
    }
    return gar_type_is_unsigned(type) ? GAR_FEED_U64 : GAR_FEED_I64;
}

struct gar_aggregate *gar_aggregate_new_sum(const struct gar_aggregate_spec *spec)
{
    static const struct gar_aggregate_vtable vtable = {.resize = sum_resize,
                                                       .update = sum_update,
                                                       .combine = sum_combine,
                                                       .finish = sum_finish,
                                                       .free = sum_free};
    struct sum_state *state = (struct sum_state *)gar_calloc(1, (int64_t)sizeof *state);
    if (state == NULL) {
        return NULL;
    }
    state->head.vtable = &vtable;
    state->form = form_of(spec->argument);
    return &state->head;
}

/* Products: 64 bits with the overflow check, or double precision. */
static enum gar_status product_resize(struct gar_aggregate *head, int64_t groups,
                                      struct gar_error *err)
{
    struct sum_state *state = (struct sum_state *)head;
    const int64_t before = state->sums.count;
    GAR_TRY(
        gar_aggregate_array_grow(&state->sums, head->memory, groups, form_bytes(state->form), err));
    for (int64_t g = before; g < state->sums.count; g++) {
        if (state->form == GAR_FEED_F64) {
            ((double *)gar_aggregate_array_data(&state->sums))[g] = 1.0;
        } else {
            ((int64_t *)gar_aggregate_array_data(&state->sums))[g] = 1;
        }
    }
    return GAR_OK;
}

static enum gar_status multiply_into(struct sum_state *state, int64_t group, const void *value,
                                     struct gar_error *err)
{
    void *products = gar_aggregate_array_data(&state->sums);
    bool overflow = false;
    if (state->form == GAR_FEED_F64) {
        ((double *)products)[group] *= *(const double *)value;
    } else if (state->form == GAR_FEED_U64) {
        uint64_t *to = (uint64_t *)products + group;
        overflow = __builtin_mul_overflow(*to, *(const uint64_t *)value, to);
    } else {
        int64_t *to = (int64_t *)products + group;
        overflow = __builtin_mul_overflow(*to, *(const int64_t *)value, to);
    }
    if (GAR_UNLIKELY(overflow)) {
        char type[64];
        return gar_error_set(err, GAR_ERR_OVERFLOW,
                             "product is out of range for %s; cast the values to float64 first",
                             gar_type_text(state->head.spec.result, type, (int64_t)sizeof type));
    }
    return GAR_OK;
}

static enum gar_status product_update(struct gar_aggregate *head, const uint32_t *groups,
                                      const struct gar_column *argument, int64_t rows,
                                      struct gar_error *err)
{
    struct sum_state *state = (struct sum_state *)head;
    struct gar_feed feed;
    gar_feed_init(&feed, argument, groups, rows, state->form);
    while (gar_feed_next(&feed)) {
        for (int64_t i = 0; i < feed.count; i++) {
            GAR_TRY(multiply_into(state, feed.groups != NULL ? feed.groups[i] : 0,
                                  (const uint64_t *)feed.values + i, err));
        }
    }
    return GAR_OK;
}

static enum gar_status product_combine(struct gar_aggregate *head,
                                       const struct gar_aggregate *from_head,
                                       const uint32_t *from_groups, const uint32_t *to_groups,
                                       int64_t count, struct gar_error *err)
{
    struct sum_state *state = (struct sum_state *)head;
    const struct sum_state *from = (const struct sum_state *)(const void *)from_head;
    const uint64_t *theirs = (const uint64_t *)gar_aggregate_array_data(&from->sums);
    for (int64_t i = 0; i < count; i++) {
        GAR_TRY(multiply_into(state, to_groups[i],
                              theirs + (from_groups != NULL ? (int64_t)from_groups[i] : i), err));
    }
    return GAR_OK;
}

static enum gar_status product_finish(const struct gar_aggregate *head,
                                      const struct gar_aggregate_spec *spec, int64_t first,
                                      int64_t count, const int64_t *group_rows,
                                      struct gar_column *out, int64_t *nulls, struct gar_error *err)
{
    (void)spec;
    (void)err;
    const struct sum_state *state = (const struct sum_state *)(const void *)head;
    const uint64_t *from = (const uint64_t *)gar_aggregate_array_data(&state->sums);
    uint64_t *values = (uint64_t *)gar_column_values_mut(out);
    for (int64_t i = 0; i < count; i++) {
        values[i] = from[first + i];
        if (gar_aggregate_valid(head, first + i, group_rows) == 0) {
            gar_bit_clear(gar_column_validity_mut(out), i);
            (*nulls)++;
        }
    }
    return GAR_OK;
}

struct gar_aggregate *gar_aggregate_new_product(const struct gar_aggregate_spec *spec)
{
    static const struct gar_aggregate_vtable vtable = {.resize = product_resize,
                                                       .update = product_update,
                                                       .combine = product_combine,
                                                       .finish = product_finish,
                                                       .free = sum_free};
    struct sum_state *state = (struct sum_state *)gar_calloc(1, (int64_t)sizeof *state);
    if (state == NULL) {
        return NULL;
    }
    state->head.vtable = &vtable;
    state->form = form_of(spec->argument);
    return &state->head;
}
