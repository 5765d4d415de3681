/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions over dates and times. The zone of a timestamp is looked up when the instruction is made. */
#include "expr/eval_priv.h"
#include "kernels/temporal.h"

static enum gar_date_part part_of(int64_t function)
{
    switch ((enum gar_function_id)function) {
    case GAR_FN_YEAR: return GAR_PART_YEAR;
    case GAR_FN_QUARTER: return GAR_PART_QUARTER;
    case GAR_FN_MONTH: return GAR_PART_MONTH;
    case GAR_FN_DAY: return GAR_PART_DAY;
    case GAR_FN_DAY_OF_WEEK: return GAR_PART_DAY_OF_WEEK;
    case GAR_FN_DAY_OF_YEAR: return GAR_PART_DAY_OF_YEAR;
    case GAR_FN_WEEK_OF_YEAR: return GAR_PART_WEEK_OF_YEAR;
    case GAR_FN_HOUR: return GAR_PART_HOUR;
    case GAR_FN_MINUTE: return GAR_PART_MINUTE;
    case GAR_FN_SECOND: return GAR_PART_SECOND;
    case GAR_FN_MILLISECOND: return GAR_PART_MILLISECOND;
    case GAR_FN_MICROSECOND: return GAR_PART_MICROSECOND;
    default: return GAR_PART_NANOSECOND;
    }
}

enum gar_status gar_type_zone(struct gar_type type, const struct gar_zone **out,
                              struct gar_error *err)
{
    *out = NULL;
    if (type.zone == NULL) {
        return GAR_OK;
    }
    GAR_TRY(gar_zone_find(type.zone, out, err));
    if (gar_zone_is_utc(*out)) {
        *out = NULL; /* the local clock is the instant */
    }
    return GAR_OK;
}

static enum gar_time_unit unit_of(const struct gar_instr *instr)
{
    return (enum gar_time_unit)instr->node->args[0]->type.unit;
}

static enum gar_status run_part(struct gar_eval *eval, const struct gar_instr *instr,
                                struct gar_reg **args, struct gar_reg *out, int64_t n,
                                struct gar_error *err)
{
    (void)eval;
    (void)err;
    const enum gar_date_part part = part_of(instr->node->param[0]);
    if (instr->lane == GAR_LANE_I32) {
        gar_days_part(part, args[0]->values, out->dest, n);
    } else {
        gar_ticks_part(part, unit_of(instr), instr->state, args[0]->values, out->dest, n);
    }
    return GAR_OK;
}

static enum gar_status out_of_range(struct gar_eval *eval, const struct gar_instr *instr,
                                    struct gar_reg **args, const uint64_t *active, int64_t i,
                                    struct gar_error *err)
{
    if (!gar_word_bit(active, i)) {
        return GAR_OK;
    }
    char value[80];
    char type_text[64];
    char row[GAR_ROW_TEXT_BYTES];
    const struct gar_type type = instr->node->type;
    return gar_error_set(
        err, GAR_ERR_OVERFLOW, "%s of %s leaves the range of %s%s", gar_instr_name(instr),
        gar_lane_text(args[0], instr->node->args[0]->type, i, value, (int64_t)sizeof value),
        gar_type_text(type, type_text, (int64_t)sizeof type_text), gar_lane_row_text(eval, i, row));
}

/* date(timestamp), time(timestamp) */
static enum gar_status run_date_of(struct gar_eval *eval, const struct gar_instr *instr,
                                   struct gar_reg **args, struct gar_reg *out, int64_t n,
                                   struct gar_error *err)
{
    const enum gar_time_unit unit = unit_of(instr);
    const int64_t *ticks = args[0]->values;
    const bool is_date = instr->node->type.id == GAR_DATE;
    const int64_t scale = gar_unit_ticks_per_second((enum gar_time_unit)instr->node->type.unit) /
                          gar_unit_ticks_per_second(unit);
    uint64_t active[GAR_VECTOR_WORDS];
    gar_active_lanes(eval, instr, out, n, active);
    for (int64_t i = 0; i < n; i++) {
        int64_t day_ticks = 0;
        const int64_t days = gar_ticks_day(unit, instr->state, ticks[i], &day_ticks);
        if (!is_date) {
            ((int64_t *)out->dest)[i] = day_ticks * scale;
            continue;
        }
        ((int32_t *)out->dest)[i] = (int32_t)days;
        if ((int32_t)days != days) {
            GAR_TRY(out_of_range(eval, instr, args, active, i, err));
        }
    }
    return GAR_OK;
}

static enum gar_status run_trunc(struct gar_eval *eval, const struct gar_instr *instr,
                                 struct gar_reg **args, struct gar_reg *out, int64_t n,
                                 struct gar_error *err)
{
    const enum gar_trunc_unit to = (enum gar_trunc_unit)instr->node->param[0];
    if (instr->lane != GAR_LANE_I32 &&
        gar_ticks_trunc_vector(to, unit_of(instr), instr->state, args[0]->values, out->dest, n)) {
        return GAR_OK;
    }
    uint64_t active[GAR_VECTOR_WORDS];
    gar_active_lanes(eval, instr, out, n, active);
    for (int64_t i = 0; i < n; i++) {
        bool is_kept = true;
        if (instr->lane == GAR_LANE_I32) {
            const int64_t days = gar_days_trunc(to, ((const int32_t *)args[0]->values)[i]);
            ((int32_t *)out->dest)[i] = (int32_t)days;
            is_kept = (int32_t)days == days;
        } else {
            int64_t ticks = 0;
            is_kept = gar_ticks_trunc(to, unit_of(instr), instr->state,
                                      ((const int64_t *)args[0]->values)[i], &ticks);
            ((int64_t *)out->dest)[i] = ticks;
        }
        if (!is_kept) {
            GAR_TRY(out_of_range(eval, instr, args, active, i, err));
        }
    }
    return GAR_OK;
}

/* x + months from a column, or + a literal interval */
static enum gar_status run_add(struct gar_eval *eval, const struct gar_instr *instr,
                               struct gar_reg **args, struct gar_reg *out, int64_t n,
                               struct gar_error *err)
{
    const struct gar_bound *node = instr->node;
    const int64_t *months = node->op == GAR_OP_ADD_MONTHS ? args[1]->values : NULL;
    uint64_t active[GAR_VECTOR_WORDS];
    gar_active_lanes(eval, instr, out, n, active);
    for (int64_t i = 0; i < n; i++) {
        const int64_t by_months = months != NULL ? months[i] : node->param[0];
        bool is_kept = true;
        if (instr->lane == GAR_LANE_I32) {
            int32_t days = 0;
            is_kept = gar_days_add(((const int32_t *)args[0]->values)[i], by_months, node->param[1],
                                   &days);
            ((int32_t *)out->dest)[i] = days;
        } else {
            int64_t ticks = 0;
            is_kept =
                gar_ticks_add(unit_of(instr), instr->state, ((const int64_t *)args[0]->values)[i],
                              by_months, node->param[1], node->param[2], &ticks);
            ((int64_t *)out->dest)[i] = ticks;
        }
        if (!is_kept) {
            GAR_TRY(out_of_range(eval, instr, args, active, i, err));
        }
    }
    return GAR_OK;
}

enum gar_status gar_choose_time(const struct gar_bound *node, struct gar_instr *instr,
                                struct gar_error *err)
{
    instr->is_strict = true;
    instr->is_flat = true;
    const struct gar_zone *zone = NULL;
    GAR_TRY(gar_type_zone(node->args[0]->type, &zone, err));
    memcpy(&instr->state, &zone, sizeof zone); /* lives for ever, never written through */
    switch (node->op) {
    case GAR_OP_DATE_PART: instr->run = run_part; break;
    case GAR_OP_DATE_OF: instr->run = run_date_of; break;
    case GAR_OP_DATE_TRUNC: instr->run = run_trunc; break;
    default: instr->run = run_add; break;
    }
    return GAR_OK;
}
