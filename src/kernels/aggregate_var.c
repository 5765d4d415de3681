/* SPDX-License-Identifier: Apache-2.0 */
/* Variance and standard deviation (Welford's updates; parts are joined as Chan, Golub and LeVeque do), and the two
 * aggregates of booleans. */
#include <math.h>

#include "base/alloc.h"
#include "kernels/aggregate_priv.h"

struct moments {
    double count;
    double mean;
    double squares; /* sum of (value - mean)^2 */
};

struct var_state {
    struct gar_aggregate head;
    struct gar_aggregate_array moments; /* struct moments */
};

static enum gar_status var_resize(struct gar_aggregate *head, int64_t groups, struct gar_error *err)
{
    struct var_state *state = (struct var_state *)head;
    return gar_aggregate_array_grow(&state->moments, head->memory, groups,
                                    (int64_t)sizeof(struct moments), err);
}

static void join_moments(struct moments *to, const struct moments *from)
{
    if (from->count == 0) {
        return;
    }
    if (to->count == 0) {
        *to = *from;
        return;
    }
    const double count = to->count + from->count;
    const double delta = from->mean - to->mean;
    to->squares += from->squares + delta * delta * (to->count * from->count / count);
    to->mean += delta * (from->count / count);
    to->count = count;
}

/* One step of up to 1,024 values in two passes. The mean is counted from the first value, so that equal values have exactly
 * theirs, and no variance. */
static struct moments step_moments(const double *values, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += values[i] - values[0];
    }
    struct moments m = {(double)count, values[0] + sum / (double)count, 0};
    for (int64_t i = 0; i < count; i++) {
        const double delta = values[i] - m.mean;
        m.squares += delta * delta;
    }
    return m;
}

static enum gar_status var_update(struct gar_aggregate *head, const uint32_t *groups,
                                  const struct gar_column *argument, int64_t rows,
                                  struct gar_error *err)
{
    (void)err;
    struct var_state *state = (struct var_state *)head;
    struct moments *all = (struct moments *)gar_aggregate_array_data(&state->moments);
    struct gar_feed feed;
    gar_feed_init(&feed, argument, groups, rows, GAR_FEED_F64);
    while (gar_feed_next(&feed)) {
        const double *values = (const double *)feed.values;
        if (feed.groups == NULL) {
            const struct moments step = step_moments(values, feed.count);
            join_moments(&all[0], &step);
            continue;
        }
        for (int64_t i = 0; i < feed.count; i++) {
            struct moments *m = &all[feed.groups[i]];
            const double delta = values[i] - m->mean;
            m->count += 1;
            m->mean += delta / m->count;
            m->squares += delta * (values[i] - m->mean);
        }
    }
    return GAR_OK;
}

static enum gar_status var_combine(struct gar_aggregate *head,
                                   const struct gar_aggregate *from_head,
                                   const uint32_t *from_groups, const uint32_t *to_groups,
                                   int64_t count, struct gar_error *err)
{
    (void)err;
    struct var_state *state = (struct var_state *)head;
    const struct var_state *from = (const struct var_state *)(const void *)from_head;
    struct moments *ours = (struct moments *)gar_aggregate_array_data(&state->moments);
    const struct moments *theirs = (const struct moments *)gar_aggregate_array_data(&from->moments);
    for (int64_t i = 0; i < count; i++) {
        join_moments(&ours[to_groups[i]],
                     &theirs[from_groups != NULL ? (int64_t)from_groups[i] : i]);
    }
    return GAR_OK;
}

static enum gar_status var_finish(const struct gar_aggregate *head,
                                  const struct gar_aggregate_spec *spec, int64_t first,
                                  int64_t count, const int64_t *group_rows, struct gar_column *out,
                                  int64_t *nulls, struct gar_error *err)
{
    (void)group_rows;
    (void)err;
    const struct var_state *state = (const struct var_state *)(const void *)head;
    const struct moments *all =
        (const struct moments *)gar_aggregate_array_data(&state->moments) + first;
    double *values = (double *)gar_column_values_mut(out);
    for (int64_t i = 0; i < count; i++) {
        const double freedom = all[i].count - (double)spec->ddof;
        if (all[i].count == 0 || freedom <= 0) {
            values[i] = 0;
            gar_bit_clear(gar_column_validity_mut(out), i);
            (*nulls)++;
            continue;
        }
        const double var = all[i].squares / freedom;
        values[i] = spec->kind == GAR_AGGREGATE_STDDEV ? sqrt(var) : var;
    }
    return GAR_OK;
}

static void var_free(struct gar_aggregate *head)
{
    gar_aggregate_array_destroy(&((struct var_state *)head)->moments);
}

struct gar_aggregate *gar_aggregate_new_var(void)
{
    static const struct gar_aggregate_vtable vtable = {.resize = var_resize,
                                                       .update = var_update,
                                                       .combine = var_combine,
                                                       .finish = var_finish,
                                                       .free = var_free};
    struct var_state *state = (struct var_state *)gar_calloc(1, (int64_t)sizeof *state);
    if (state == NULL) {
        return NULL;
    }
    state->head.vtable = &vtable;
    return &state->head;
}

/* Booleans: has the deciding value (false for and, true for or) been seen? */
struct bool_state {
    struct gar_aggregate head;
    struct gar_aggregate_array decided; /* uint8_t */
};

static enum gar_status bool_resize(struct gar_aggregate *head, int64_t groups,
                                   struct gar_error *err)
{
    return gar_aggregate_array_grow(&((struct bool_state *)head)->decided, head->memory, groups, 1,
                                    err);
}

static enum gar_status bool_update(struct gar_aggregate *head, const uint32_t *groups,
                                   const struct gar_column *argument, int64_t rows,
                                   struct gar_error *err)
{
    (void)err;
    struct bool_state *state = (struct bool_state *)head;
    uint8_t *decided = (uint8_t *)gar_aggregate_array_data(&state->decided);
    const int64_t deciding = head->spec.kind == GAR_AGGREGATE_BOOL_OR;
    struct gar_feed feed;
    gar_feed_init(&feed, argument, groups, rows, GAR_FEED_I64);
    while (gar_feed_next(&feed)) {
        const int64_t *values = (const int64_t *)feed.values;
        for (int64_t i = 0; i < feed.count; i++) {
            const int64_t g = feed.groups != NULL ? feed.groups[i] : 0;
            decided[g] = (uint8_t)(decided[g] | (values[i] == deciding));
        }
    }
    return GAR_OK;
}

static enum gar_status bool_combine(struct gar_aggregate *head,
                                    const struct gar_aggregate *from_head,
                                    const uint32_t *from_groups, const uint32_t *to_groups,
                                    int64_t count, struct gar_error *err)
{
    (void)err;
    uint8_t *ours = (uint8_t *)gar_aggregate_array_data(&((struct bool_state *)head)->decided);
    const struct bool_state *from = (const struct bool_state *)(const void *)from_head;
    const uint8_t *theirs = (const uint8_t *)gar_aggregate_array_data(&from->decided);
    for (int64_t i = 0; i < count; i++) {
        const uint8_t other = theirs[from_groups != NULL ? (int64_t)from_groups[i] : i];
        ours[to_groups[i]] = (uint8_t)(ours[to_groups[i]] | other);
    }
    return GAR_OK;
}

static enum gar_status bool_finish(const struct gar_aggregate *head,
                                   const struct gar_aggregate_spec *spec, int64_t first,
                                   int64_t count, const int64_t *group_rows, struct gar_column *out,
                                   int64_t *nulls, struct gar_error *err)
{
    (void)err;
    const struct bool_state *state = (const struct bool_state *)(const void *)head;
    const uint8_t *decided = (const uint8_t *)gar_aggregate_array_data(&state->decided) + first;
    uint8_t *values = (uint8_t *)gar_column_values_mut(out);
    for (int64_t i = 0; i < count; i++) {
        if (gar_aggregate_valid(head, first + i, group_rows) == 0) {
            gar_bit_put(values, i, false);
            gar_bit_clear(gar_column_validity_mut(out), i);
            (*nulls)++;
        } else {
            gar_bit_put(values, i, (decided[i] != 0) == (spec->kind == GAR_AGGREGATE_BOOL_OR));
        }
    }
    return GAR_OK;
}

static void bool_free(struct gar_aggregate *head)
{
    gar_aggregate_array_destroy(&((struct bool_state *)head)->decided);
}

struct gar_aggregate *gar_aggregate_new_bool(void)
{
    static const struct gar_aggregate_vtable vtable = {.resize = bool_resize,
                                                       .update = bool_update,
                                                       .combine = bool_combine,
                                                       .finish = bool_finish,
                                                       .free = bool_free};
    struct bool_state *state = (struct bool_state *)gar_calloc(1, (int64_t)sizeof *state);
    if (state == NULL) {
        return NULL;
    }
    state->head.vtable = &vtable;
    return &state->head;
}
