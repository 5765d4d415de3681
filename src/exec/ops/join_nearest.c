/* SPDX-License-Identifier: Apache-2.0 */
/* As-of joins: which of the partners that the table gives lies nearest. Partners of a key come in the order of the build side,
 * which is sorted by its `on`, nulls and NaN last; so each row takes one or two binary searches. */
#include <math.h>

#include "arrow/gather.h"
#include "exec/ops/join.h"

/* Where one row stands: its value, and partners in order. */
struct search {
    const struct gar_column *on; /* of the build side, FLAT */
    const uint32_t *lists;       /* rows by place; NULL: the place is the row */
    int64_t start;
    int64_t count;
    bool is_float;
    gar_i128 value;
    double value_double;
};

static gar_i128 exact_at(const struct gar_column *column, int64_t i)
{
    switch ((enum gar_type_id)column->type.id) {
    case GAR_INT8: return ((const int8_t *)column->values)[i];
    case GAR_INT16: return ((const int16_t *)column->values)[i];
    case GAR_INT32:
    case GAR_DATE: return ((const int32_t *)column->values)[i];
    case GAR_UINT8: return ((const uint8_t *)column->values)[i];
    case GAR_UINT16: return ((const uint16_t *)column->values)[i];
    case GAR_UINT32: return ((const uint32_t *)column->values)[i];
    case GAR_UINT64: return ((const uint64_t *)column->values)[i];
    case GAR_DECIMAL128: return ((const gar_i128 *)column->values)[i];
    default: return ((const int64_t *)column->values)[i]; /* int64, time, timestamp, duration */
    }
}

static double double_at(const struct gar_column *column, int64_t i)
{
    return column->type.id == GAR_FLOAT32 ? (double)((const float *)column->values)[i]
                                          : ((const double *)column->values)[i];
}

static int64_t row_at(const struct search *s, int64_t place)
{
    return s->lists != NULL ? s->lists[s->start + place] : s->start + place;
}

static bool is_nothing(const struct search *s, int64_t row)
{
    return gar_column_is_null(s->on, row) || (s->is_float && isnan(double_at(s->on, row)));
}

/* Is the partner's value below the row's, or equal to it where that counts? Nulls and NaN are above all. */
static bool is_before(const struct search *s, int64_t place, bool or_equal)
{
    const int64_t row = row_at(s, place);
    if (is_nothing(s, row)) {
        return false;
    }
    if (s->is_float) {
        const double value = double_at(s->on, row);
        return value < s->value_double || (or_equal && value == s->value_double);
    }
    const gar_i128 value = exact_at(s->on, row);
    return value < s->value || (or_equal && value == s->value);
}

/* How many partners are before the row. */
static int64_t count_before(const struct search *s, bool or_equal)
{
    int64_t low = 0;
    int64_t high = s->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (is_before(s, middle, or_equal)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static double double_distance(const struct search *s, int64_t place)
{
    const double value = double_at(s->on, row_at(s, place));
    return value == s->value_double ? 0.0 : fabs(value - s->value_double);
}

static gar_u128 exact_distance(const struct search *s, int64_t place)
{
    const gar_i128 value = exact_at(s->on, row_at(s, place));
    return value < s->value ? (gar_u128)s->value - (gar_u128)value
                            : (gar_u128)value - (gar_u128)s->value;
}

static bool is_nearer(const struct search *s, int64_t place, int64_t than)
{
    return s->is_float ? double_distance(s, place) < double_distance(s, than)
                       : exact_distance(s, place) < exact_distance(s, than);
}

static bool is_within(const struct search *s, int64_t place, const struct gar_asof *asof)
{
    return !asof->has_tolerance ||
           (s->is_float ? double_distance(s, place) <= asof->tolerance_double
                        : exact_distance(s, place) <= (gar_u128)asof->tolerance);
}

/* The place of the nearest partner, or -1. */
static int64_t find_nearest(const struct search *s, const struct gar_asof *asof,
                            bool excludes_equal)
{
    int64_t found = -1;
    if (asof->kind != GAR_ASOF_FORWARD) {
        found = count_before(s, !excludes_equal) - 1;
    }
    if (asof->kind != GAR_ASOF_BACKWARD) {
        const int64_t next = count_before(s, excludes_equal);
        if (next < s->count && !is_nothing(s, row_at(s, next)) &&
            (found < 0 || is_nearer(s, next, found))) {
            found = next;
        }
    }
    return found >= 0 && is_within(s, found, asof) ? found : -1;
}

static bool take_value(struct search *s, const struct gar_column *on, int64_t row)
{
    if (gar_column_is_null(on, row)) {
        return false;
    }
    if (s->is_float) {
        s->value_double = double_at(on, row);
        return !isnan(s->value_double);
    }
    s->value = exact_at(on, row);
    return true;
}

enum gar_status gar_join_nearest(const struct gar_join *join, const struct gar_column *on,
                                 int64_t rows, uint32_t *starts, uint32_t *counts,
                                 struct gar_error *err)
{
    struct gar_column *flat = NULL;
    GAR_TRY(gar_column_flatten(on, join->sink.memory, &flat, err));
    const struct gar_plan *plan = join->plan;
    const bool excludes_equal = gar_plan_asof_on(plan).excludes_equal;
    struct search s = {.on = join->columns[join->kept_count + join->key_count],
                       .lists = join->table != NULL ? gar_join_table_lists(join->table) : NULL,
                       .is_float = gar_type_is_float(flat->type)};
    for (int64_t i = 0; i < rows; i++) {
        s.start = starts[i];
        s.count = counts[i];
        const int64_t found = s.count > 0 && take_value(&s, flat, i)
                                  ? find_nearest(&s, &plan->asof, excludes_equal)
                                  : -1;
        starts[i] += found >= 0 ? (uint32_t)found : 0;
        counts[i] = found >= 0;
    }
    gar_column_unref(flat);
    return GAR_OK;
}
