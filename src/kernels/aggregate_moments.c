/* SPDX-License-Identifier: Apache-2.0 */
/* Moments: skew and kurtosis of one argument, correlation and covariance of two. Parts are joined by Pébay's formulas,
 * one value being a part of one. */
#include <math.h>

#include "base/alloc.h"
#include "kernels/aggregate_priv.h"

struct moments {
    double count;
    double mean;
    double m2; /* sums of powers of (value - mean) */
    double m3;
    double m4;
};

struct moments_state {
    struct gar_aggregate head;
    struct gar_aggregate_array moments; /* struct moments */
};

static void join_moments(struct moments *a, const struct moments *b)
{
    if (b->count == 0) {
        return;
    }
    if (a->count == 0) {
        *a = *b;
        return;
    }
    const double na = a->count;
    const double nb = b->count;
    const double n = na + nb;
    const double d = b->mean - a->mean;
    const double dn = d / n;
    const double product = d * dn * na * nb;
    a->m4 += b->m4 + product * dn * dn * (na * na - na * nb + nb * nb) +
             6 * dn * dn * (na * na * b->m2 + nb * nb * a->m2) + 4 * dn * (na * b->m3 - nb * a->m3);
    a->m3 += b->m3 + product * dn * (na - nb) + 3 * dn * (na * b->m2 - nb * a->m2);
    a->m2 += b->m2 + product;
    a->mean += dn * nb;
    a->count = n;
}

static enum gar_status moments_resize(struct gar_aggregate *head, int64_t groups,
                                      struct gar_error *err)
{
    return gar_aggregate_array_grow(&((struct moments_state *)head)->moments, head->memory, groups,
                                    (int64_t)sizeof(struct moments), err);
}

static enum gar_status moments_update(struct gar_aggregate *head, const uint32_t *groups,
                                      const struct gar_column *argument, int64_t rows,
                                      struct gar_error *err)
{
    (void)err;
    struct moments *all =
        (struct moments *)gar_aggregate_array_data(&((struct moments_state *)head)->moments);
    struct gar_feed feed;
    gar_feed_init(&feed, argument, groups, rows, GAR_FEED_F64);
    while (gar_feed_next(&feed)) {
        const double *values = (const double *)feed.values;
        for (int64_t i = 0; i < feed.count; i++) {
            const struct moments one = {.count = 1, .mean = values[i]};
            join_moments(&all[feed.groups != NULL ? feed.groups[i] : 0], &one);
        }
    }
    return GAR_OK;
}

static enum gar_status moments_combine(struct gar_aggregate *head,
                                       const struct gar_aggregate *from_head,
                                       const uint32_t *from_groups, const uint32_t *to_groups,
                                       int64_t count, struct gar_error *err)
{
    (void)err;
    struct moments *ours =
        (struct moments *)gar_aggregate_array_data(&((struct moments_state *)head)->moments);
    const struct moments_state *from = (const struct moments_state *)(const void *)from_head;
    const struct moments *theirs = (const struct moments *)gar_aggregate_array_data(&from->moments);
    for (int64_t i = 0; i < count; i++) {
        join_moments(&ours[to_groups[i]],
                     &theirs[from_groups != NULL ? (int64_t)from_groups[i] : i]);
    }
    return GAR_OK;
}

/* A result, or null when it does not exist. */
static void put(struct gar_column *out, int64_t i, double value, bool exists, int64_t *nulls)
{
    ((double *)gar_column_values_mut(out))[i] = exists ? value : 0;
    if (!exists) {
        gar_bit_clear(gar_column_validity_mut(out), i);
        (*nulls)++;
    }
}

static enum gar_status moments_finish(const struct gar_aggregate *head,
                                      const struct gar_aggregate_spec *spec, int64_t first,
                                      int64_t count, const int64_t *group_rows,
                                      struct gar_column *out, int64_t *nulls, struct gar_error *err)
{
    (void)group_rows;
    (void)err;
    const struct moments_state *state = (const struct moments_state *)(const void *)head;
    const struct moments *all =
        (const struct moments *)gar_aggregate_array_data(&state->moments) + first;
    for (int64_t i = 0; i < count; i++) {
        const struct moments *m = &all[i];
        const double var = m->m2 / m->count;
        const double value = spec->kind == GAR_AGGREGATE_SKEW ? m->m3 / m->count / (var * sqrt(var))
                                                              : m->m4 / m->count / (var * var) - 3;
        put(out, i, value, m->count > 0 && m->m2 != 0, nulls);
    }
    return GAR_OK;
}

static void moments_free(struct gar_aggregate *head)
{
    gar_aggregate_array_destroy(&((struct moments_state *)head)->moments);
}

struct gar_aggregate *gar_aggregate_new_moments(void)
{
    static const struct gar_aggregate_vtable vtable = {.resize = moments_resize,
                                                       .update = moments_update,
                                                       .combine = moments_combine,
                                                       .finish = moments_finish,
                                                       .free = moments_free};
    struct moments_state *state = (struct moments_state *)gar_calloc(1, (int64_t)sizeof *state);
    if (state == NULL) {
        return NULL;
    }
    state->head.vtable = &vtable;
    return &state->head;
}

/* ---- pairs ---- */

struct pairs {
    double count;
    double mean_x;
    double mean_y;
    double xx;
    double yy;
    double xy;
};

struct pairs_state {
    struct gar_aggregate head;
    struct gar_aggregate_array pairs; /* struct pairs */
};

static void join_pairs(struct pairs *a, const struct pairs *b)
{
    if (b->count == 0) {
        return;
    }
    const double n = a->count + b->count;
    const double dx = b->mean_x - a->mean_x;
    const double dy = b->mean_y - a->mean_y;
    const double weight = a->count * b->count / n;
    a->xx += b->xx + dx * dx * weight;
    a->yy += b->yy + dy * dy * weight;
    a->xy += b->xy + dx * dy * weight;
    a->mean_x += dx * (b->count / n);
    a->mean_y += dy * (b->count / n);
    a->count = n;
}

static enum gar_status pairs_resize(struct gar_aggregate *head, int64_t groups,
                                    struct gar_error *err)
{
    return gar_aggregate_array_grow(&((struct pairs_state *)head)->pairs, head->memory, groups,
                                    (int64_t)sizeof(struct pairs), err);
}

/* Values of rows [first, first + count), and which are not null. */
static enum gar_status load_step(const struct gar_column *column, int64_t first, int64_t count,
                                 const uint32_t *numbers, double *values, uint8_t *seen,
                                 struct gar_error *err)
{
    struct gar_column *slice = NULL;
    struct gar_feed feed;
    memset(seen, 0, (size_t)count);
    GAR_TRY(gar_column_slice(column, first, count, &slice, err));
    gar_feed_init(&feed, slice, numbers, count, GAR_FEED_F64);
    while (gar_feed_next(&feed)) {
        const double *from = (const double *)feed.values;
        for (int64_t i = 0; i < feed.count; i++) {
            values[feed.groups[i]] = from[i];
            seen[feed.groups[i]] = 1;
        }
    }
    gar_column_unref(slice);
    return GAR_OK;
}

static enum gar_status pairs_update(struct gar_aggregate *head, const uint32_t *groups,
                                    const struct gar_column *argument, int64_t rows,
                                    struct gar_error *err)
{
    struct pairs *all =
        (struct pairs *)gar_aggregate_array_data(&((struct pairs_state *)head)->pairs);
    double x[GAR_FEED_ROWS];
    double y[GAR_FEED_ROWS];
    uint8_t has_x[GAR_FEED_ROWS];
    uint8_t has_y[GAR_FEED_ROWS];
    uint32_t numbers[GAR_FEED_ROWS];
    for (uint32_t i = 0; i < GAR_FEED_ROWS; i++) {
        numbers[i] = i;
    }
    if (head->second->type.id == GAR_NULL) {
        return GAR_OK;
    }
    for (int64_t at = 0; at < rows; at += GAR_FEED_ROWS) {
        const int64_t n = gar_min_i64(rows - at, GAR_FEED_ROWS);
        GAR_TRY(load_step(argument, at, n, numbers, x, has_x, err));
        GAR_TRY(load_step(head->second, at, n, numbers, y, has_y, err));
        for (int64_t i = 0; i < n; i++) {
            if ((has_x[i] & has_y[i]) != 0) {
                const struct pairs one = {.count = 1, .mean_x = x[i], .mean_y = y[i]};
                join_pairs(&all[groups != NULL ? groups[at + i] : 0], &one);
            }
        }
    }
    return GAR_OK;
}

static enum gar_status pairs_combine(struct gar_aggregate *head,
                                     const struct gar_aggregate *from_head,
                                     const uint32_t *from_groups, const uint32_t *to_groups,
                                     int64_t count, struct gar_error *err)
{
    (void)err;
    struct pairs *ours =
        (struct pairs *)gar_aggregate_array_data(&((struct pairs_state *)head)->pairs);
    const struct pairs_state *from = (const struct pairs_state *)(const void *)from_head;
    const struct pairs *theirs = (const struct pairs *)gar_aggregate_array_data(&from->pairs);
    for (int64_t i = 0; i < count; i++) {
        join_pairs(&ours[to_groups[i]], &theirs[from_groups != NULL ? (int64_t)from_groups[i] : i]);
    }
    return GAR_OK;
}

static enum gar_status pairs_finish(const struct gar_aggregate *head,
                                    const struct gar_aggregate_spec *spec, int64_t first,
                                    int64_t count, const int64_t *group_rows,
                                    struct gar_column *out, int64_t *nulls, struct gar_error *err)
{
    (void)group_rows;
    (void)err;
    const struct pairs_state *state = (const struct pairs_state *)(const void *)head;
    const struct pairs *all = (const struct pairs *)gar_aggregate_array_data(&state->pairs) + first;
    for (int64_t i = 0; i < count; i++) {
        const struct pairs *p = &all[i];
        if (spec->kind == GAR_AGGREGATE_CORR) {
            const double r = p->xy / sqrt(p->xx) / sqrt(p->yy);
            put(out, i, r > 1 ? 1 : r < -1 ? -1 : r, p->xx != 0 && p->yy != 0, nulls);
        } else {
            const double freedom = p->count - (spec->kind == GAR_AGGREGATE_COVAR_SAMP ? 1 : 0);
            put(out, i, p->xy / freedom, freedom > 0, nulls);
        }
    }
    return GAR_OK;
}

static void pairs_free(struct gar_aggregate *head)
{
    gar_aggregate_array_destroy(&((struct pairs_state *)head)->pairs);
}

struct gar_aggregate *gar_aggregate_new_pairs(void)
{
    static const struct gar_aggregate_vtable vtable = {.resize = pairs_resize,
                                                       .update = pairs_update,
                                                       .combine = pairs_combine,
                                                       .finish = pairs_finish,
                                                       .free = pairs_free};
    struct pairs_state *state = (struct pairs_state *)gar_calloc(1, (int64_t)sizeof *state);
    if (state == NULL) {
        return NULL;
    }
    state->head.vtable = &vtable;
    return &state->head;
}
