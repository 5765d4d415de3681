/* SPDX-License-Identifier: Apache-2.0 */
/* Casts between numbers, booleans, dates and times. Casts from and to text are in ops_cast_text.c. */
#include <math.h>

#include "expr/cast_priv.h"

enum gar_status gar_cast_fails(struct gar_eval *eval, const struct gar_instr *instr,
                               struct gar_reg **args, struct gar_reg *out, const uint64_t *active,
                               int64_t i, int64_t n, const char *reason, struct gar_error *err)
{
    if (instr->node->is_try) {
        gar_reg_set_null(out, i, n);
        return GAR_OK;
    }
    if (!gar_word_bit(active, i)) {
        return GAR_OK;
    }
    char value[160];
    char from_text[64];
    char to_text[64];
    char row[GAR_ROW_TEXT_BYTES];
    const struct gar_type from = instr->node->args[0]->type;
    return gar_error_set(err, GAR_ERR_CAST,
                         "cannot cast '%s' from %s to %s%s: %s; try_cast gives null instead",
                         gar_lane_text(args[0], from, i, value, (int64_t)sizeof value),
                         gar_type_text(from, from_text, (int64_t)sizeof from_text),
                         gar_type_text(instr->node->type, to_text, (int64_t)sizeof to_text),
                         gar_lane_row_text(eval, i, row), reason);
}

/* --- integers --- */

/* Values of an integer, date or bool register as int64; uint64 by its bits. */
static const int64_t *as_i64(struct gar_eval *eval, const struct gar_instr *instr,
                             const struct gar_reg *arg, int64_t n)
{
    if (instr->node->args[0]->type.id == GAR_BOOL) {
        int64_t *to = (int64_t *)(void *)eval->wide_temp[0];
        for (int64_t i = 0; i < n; i++) {
            to[i] = gar_word_bit(arg->values, i);
        }
        return to;
    }
    if (instr->lane == GAR_LANE_I64 || instr->lane == GAR_LANE_U64) {
        return arg->values;
    }
    int64_t *to = (int64_t *)(void *)eval->wide_temp[0];
    eval->kernels->to_i64[instr->lane](arg->values, to, n);
    return to;
}

static bool any_negative(const int64_t *values, int64_t n)
{
    int64_t signs = 0;
    for (int64_t i = 0; i < n; i++) {
        signs |= values[i];
    }
    return signs < 0;
}

/* Lane i of as_i64's values, whatever the sign of its type. */
static gar_i128 exact(const struct gar_instr *instr, const int64_t *values, int64_t i)
{
    return instr->lane == GAR_LANE_U64 ? (gar_i128)(uint64_t)values[i] : values[i];
}

static bool fits_lane(enum gar_lane lane, gar_i128 v)
{
    switch (lane) {
    case GAR_LANE_I8: return v == (int8_t)v;
    case GAR_LANE_I16: return v == (int16_t)v;
    case GAR_LANE_I32: return v == (int32_t)v;
    case GAR_LANE_I64: return v == (int64_t)v;
    case GAR_LANE_U8: return v == (uint8_t)v;
    case GAR_LANE_U16: return v == (uint16_t)v;
    case GAR_LANE_U32: return v == (uint32_t)v;
    case GAR_LANE_U64: return v == (uint64_t)v;
    case GAR_LANE_F32:
    case GAR_LANE_F64:
    case GAR_LANE_COUNT: break;
    }
    return true;
}

static enum gar_status integer_to_integer(struct gar_eval *eval, const struct gar_instr *instr,
                                          struct gar_reg **args, struct gar_reg *out, int64_t n,
                                          struct gar_error *err)
{
    const enum gar_lane to = gar_type_lane(instr->node->type);
    const int64_t *values = as_i64(eval, instr, args[0], n);
    const bool is_huge =
        instr->lane == GAR_LANE_U64 && to != GAR_LANE_U64 && any_negative(values, n);
    bool has_lost = is_huge;
    if (to == GAR_LANE_I64 || to == GAR_LANE_U64) {
        memcpy(out->dest, values, (size_t)n * sizeof *values);
        has_lost = has_lost ||
                   (to == GAR_LANE_U64 && instr->lane != GAR_LANE_U64 && any_negative(values, n));
    } else {
        has_lost = eval->kernels->from_i64[to](values, out->dest, n) || has_lost;
    }
    if (GAR_LIKELY(!has_lost)) {
        return GAR_OK;
    }
    uint64_t active[GAR_VECTOR_WORDS];
    gar_active_lanes(eval, instr, out, n, active);
    for (int64_t i = 0; i < n; i++) {
        if (!fits_lane(to, exact(instr, values, i))) {
            GAR_TRY(
                gar_cast_fails(eval, instr, args, out, active, i, n, "it is out of range", err));
        }
    }
    return GAR_OK;
}

static enum gar_status integer_to_bool(struct gar_eval *eval, const struct gar_instr *instr,
                                       struct gar_reg **args, struct gar_reg *out, int64_t n,
                                       struct gar_error *err)
{
    (void)err;
    const int64_t *values = as_i64(eval, instr, args[0], n);
    uint64_t *words = out->dest;
    memset(words, 0, (size_t)gar_words(n) * 8);
    for (int64_t i = 0; i < n; i++) {
        words[i >> 6] |= (uint64_t)(values[i] != 0) << (i & 63);
    }
    return GAR_OK;
}

static enum gar_status integer_to_float(struct gar_eval *eval, const struct gar_instr *instr,
                                        struct gar_reg **args, struct gar_reg *out, int64_t n,
                                        struct gar_error *err)
{
    (void)err;
    const int64_t *values = as_i64(eval, instr, args[0], n);
    const bool is_unsigned = instr->lane == GAR_LANE_U64;
    if (instr->node->type.id == GAR_FLOAT64 && !is_unsigned) {
        eval->kernels->i64_to_double(values, out->dest, n);
    } else if (instr->node->type.id == GAR_FLOAT64) {
        double *to = out->dest;
        for (int64_t i = 0; i < n; i++) {
            to[i] = (double)(uint64_t)values[i];
        }
    } else {
        float *to = out->dest;
        for (int64_t i = 0; i < n; i++) {
            to[i] = is_unsigned ? (float)(uint64_t)values[i] : (float)values[i];
        }
    }
    return GAR_OK;
}

/* --- floats --- */

static double float_at(const struct gar_instr *instr, const struct gar_reg *arg, int64_t i)
{
    return instr->lane == GAR_LANE_F64 ? ((const double *)arg->values)[i]
                                       : (double)((const float *)arg->values)[i];
}

static enum gar_status float_to_float(struct gar_eval *eval, const struct gar_instr *instr,
                                      struct gar_reg **args, struct gar_reg *out, int64_t n,
                                      struct gar_error *err)
{
    (void)eval;
    (void)err;
    for (int64_t i = 0; i < n; i++) {
        if (instr->node->type.id == GAR_FLOAT64) {
            ((double *)out->dest)[i] = float_at(instr, args[0], i);
        } else {
            ((float *)out->dest)[i] = (float)float_at(instr, args[0], i);
        }
    }
    return GAR_OK;
}

static enum gar_status float_to_bool(struct gar_eval *eval, const struct gar_instr *instr,
                                     struct gar_reg **args, struct gar_reg *out, int64_t n,
                                     struct gar_error *err)
{
    (void)eval;
    (void)err;
    uint64_t *words = out->dest;
    memset(words, 0, (size_t)gar_words(n) * 8);
    for (int64_t i = 0; i < n; i++) {
        words[i >> 6] |= (uint64_t)(float_at(instr, args[0], i) != 0) << (i & 63);
    }
    return GAR_OK;
}

/* Toward zero, as C and Python's int() do. */
static enum gar_status float_to_integer(struct gar_eval *eval, const struct gar_instr *instr,
                                        struct gar_reg **args, struct gar_reg *out, int64_t n,
                                        struct gar_error *err)
{
    const enum gar_lane to = gar_type_lane(instr->node->type);
    uint64_t active[GAR_VECTOR_WORDS];
    gar_active_lanes(eval, instr, out, n, active);
    int64_t *whole = (int64_t *)(void *)eval->wide_temp[0];
    for (int64_t i = 0; i < n; i++) {
        const double v = float_at(instr, args[0], i);
        const bool is_u64 = to == GAR_LANE_U64;
        const bool is_kept = is_u64 ? v > -1.0 && v < 18446744073709551616.0
                                    : v >= -9223372036854775808.0 && v < 9223372036854775808.0;
        whole[i] = !is_kept ? 0 : is_u64 ? (int64_t)(uint64_t)(v < 0 ? 0.0 : v) : (int64_t)v;
        if (!is_kept || (!is_u64 && !fits_lane(to, whole[i]))) {
            whole[i] = 0;
            GAR_TRY(gar_cast_fails(eval, instr, args, out, active, i, n,
                                   isnan(v) ? "it is no number" : "it is out of range", err));
        }
    }
    if (to == GAR_LANE_I64 || to == GAR_LANE_U64) {
        memcpy(out->dest, whole, (size_t)n * sizeof *whole);
    } else {
        (void)eval->kernels->from_i64[to](whole, out->dest, n);
    }
    return GAR_OK;
}

static enum gar_status float_to_decimal(struct gar_eval *eval, const struct gar_instr *instr,
                                        struct gar_reg **args, struct gar_reg *out, int64_t n,
                                        struct gar_error *err)
{
    const struct gar_type type = instr->node->type;
    gar_i128 *to = out->dest;
    uint64_t active[GAR_VECTOR_WORDS];
    gar_active_lanes(eval, instr, out, n, active);
    for (int64_t i = 0; i < n; i++) {
        to[i] = 0;
        if (!gar_decimal_from_double(float_at(instr, args[0], i), type.precision, type.scale,
                                     &to[i])) {
            to[i] = 0;
            GAR_TRY(gar_cast_fails(eval, instr, args, out, active, i, n,
                                   "it does not fit the precision", err));
        }
    }
    out->is_wide = true;
    return GAR_OK;
}

/* --- decimals --- */

/* 128-bit values to another scale, each checked. */
static enum gar_status rescale_wide(struct gar_eval *eval, const struct gar_instr *instr,
                                    struct gar_reg **args, struct gar_reg *out,
                                    const gar_i128 *values, int32_t by, int64_t n,
                                    struct gar_error *err)
{
    gar_i128 *to = out->dest;
    uint64_t active[GAR_VECTOR_WORDS];
    gar_active_lanes(eval, instr, out, n, active);
    for (int64_t i = 0; i < n; i++) {
        const gar_i128 v = values[i]; /* may lie in the temporary that messages use */
        to[i] = 0;
        if (!gar_decimal_rescale(v, by, &to[i]) ||
            !gar_decimal_fits(to[i], instr->node->type.precision)) {
            to[i] = 0;
            GAR_TRY(gar_cast_fails(eval, instr, args, out, active, i, n,
                                   "it does not fit the precision", err));
        }
    }
    out->is_wide = true;
    return GAR_OK;
}

/* 64-bit values times 10^by when bounds show that the results fit; false if they do not. */
static bool rescale_narrow(struct gar_eval *eval, struct gar_type to, const int64_t *values,
                           uint64_t bound, int32_t by, struct gar_reg *out, int64_t n)
{
    uint64_t scaled = 0;
    if (by < 0 || by > GAR_DECIMAL64_PRECISION_MAX) {
        return false;
    }
    const int64_t factor = gar_pow10_i64(by);
    if (__builtin_mul_overflow(bound, (uint64_t)factor, &scaled) || scaled > INT64_MAX) {
        return false;
    }
    if (to.precision <= GAR_DECIMAL64_PRECISION_MAX &&
        scaled >= (uint64_t)gar_pow10_i64(to.precision)) {
        return false;
    }
    eval->kernels->mul_unchecked[GAR_SHAPE_VS](values, &factor, out->dest, n);
    out->bound = scaled;
    return true;
}

static enum gar_status decimal_to_decimal(struct gar_eval *eval, const struct gar_instr *instr,
                                          struct gar_reg **args, struct gar_reg *out, int64_t n,
                                          struct gar_error *err)
{
    const int32_t by = instr->node->type.scale - instr->node->args[0]->type.scale;
    if (!args[0]->is_wide) {
        const uint64_t tight = eval->kernels->bound(args[0]->values, n);
        if (rescale_narrow(eval, instr->node->type, args[0]->values, tight, by, out, n)) {
            return GAR_OK;
        }
    }
    return rescale_wide(eval, instr, args, out, gar_reg_wide(eval, args[0], n, 0), by, n, err);
}

static enum gar_status integer_to_decimal(struct gar_eval *eval, const struct gar_instr *instr,
                                          struct gar_reg **args, struct gar_reg *out, int64_t n,
                                          struct gar_error *err)
{
    const int64_t *values = as_i64(eval, instr, args[0], n);
    const bool is_huge = instr->lane == GAR_LANE_U64 && any_negative(values, n);
    if (!is_huge && rescale_narrow(eval, instr->node->type, values, eval->kernels->bound(values, n),
                                   instr->node->type.scale, out, n)) {
        return GAR_OK;
    }
    gar_i128 *wide = eval->wide_temp[1];
    for (int64_t i = 0; i < n; i++) {
        wide[i] = exact(instr, values, i);
    }
    return rescale_wide(eval, instr, args, out, wide, instr->node->type.scale, n, err);
}

/* Largest integer up to which every integer is a double. */
#define DOUBLE_EXACT_MAX (UINT64_C(1) << 53)

static enum gar_status decimal_to_float(struct gar_eval *eval, const struct gar_instr *instr,
                                        struct gar_reg **args, struct gar_reg *out, int64_t n,
                                        struct gar_error *err)
{
    (void)err;
    const int32_t scale = instr->node->args[0]->type.scale;
    const bool is_double = instr->node->type.id == GAR_FLOAT64;
    if (is_double && !args[0]->is_wide && scale <= 22 &&
        eval->kernels->bound(args[0]->values, n) <= DOUBLE_EXACT_MAX) {
        /* both sides of the division are exact, so that the quotient is rounded once */
        eval->kernels->divide_to_double(args[0]->values, (double)gar_pow10_i128(scale), out->dest,
                                        n);
        return GAR_OK;
    }
    const gar_i128 *values = gar_reg_wide(eval, args[0], n, 0);
    for (int64_t i = 0; i < n; i++) {
        const double v = gar_decimal_to_double(values[i], scale);
        if (is_double) {
            ((double *)out->dest)[i] = v;
        } else {
            ((float *)out->dest)[i] = (float)v;
        }
    }
    return GAR_OK;
}

/* Toward zero. */
static enum gar_status decimal_to_integer(struct gar_eval *eval, const struct gar_instr *instr,
                                          struct gar_reg **args, struct gar_reg *out, int64_t n,
                                          struct gar_error *err)
{
    const enum gar_lane to = gar_type_lane(instr->node->type);
    const gar_i128 unit = gar_pow10_i128(instr->node->args[0]->type.scale);
    const gar_i128 *values = gar_reg_wide(eval, args[0], n, 0);
    const bool is_bool = instr->node->type.id == GAR_BOOL;
    uint64_t active[GAR_VECTOR_WORDS];
    gar_active_lanes(eval, instr, out, n, active);
    int64_t *whole = (int64_t *)(void *)eval->wide_temp[1];
    for (int64_t i = 0; i < n; i++) {
        const gar_i128 v = values[i] / unit;
        whole[i] = is_bool ? values[i] != 0 : (int64_t)v;
        if (!is_bool && !fits_lane(to, v)) {
            whole[i] = 0;
            GAR_TRY(
                gar_cast_fails(eval, instr, args, out, active, i, n, "it is out of range", err));
        }
    }
    if (is_bool) {
        uint64_t *words = out->dest;
        memset(words, 0, (size_t)gar_words(n) * 8);
        for (int64_t i = 0; i < n; i++) {
            words[i >> 6] |= (uint64_t)(whole[i] & 1) << (i & 63);
        }
    } else if (to == GAR_LANE_I64 || to == GAR_LANE_U64) {
        memcpy(out->dest, whole, (size_t)n * sizeof *whole);
    } else {
        (void)eval->kernels->from_i64[to](whole, out->dest, n);
    }
    return GAR_OK;
}

/* --- dates and times --- */

/* Ticks in another unit: down by flooring. */
static bool change_unit(int64_t v, enum gar_time_unit from, enum gar_time_unit to, int64_t *out)
{
    const int64_t a = gar_unit_ticks_per_second(from);
    const int64_t b = gar_unit_ticks_per_second(to);
    if (b >= a) {
        return !__builtin_mul_overflow(v, b / a, out);
    }
    const int64_t by = a / b;
    *out = v / by - (v % by < 0 ? 1 : 0);
    return true;
}

/* One value; the types say which way. */
static bool cast_time(struct gar_type from, const struct gar_zone *from_zone, struct gar_type to,
                      const struct gar_zone *to_zone, int64_t v, int64_t *out)
{
    const enum gar_time_unit to_unit = (enum gar_time_unit)to.unit;
    const enum gar_time_unit from_unit = (enum gar_time_unit)from.unit;
    if (from.id == GAR_DATE && to.id == GAR_TIMESTAMP) {
        return gar_ticks_from_day(to_unit, to_zone, v, out);
    }
    if (from.id == GAR_TIMESTAMP && to.id == GAR_DATE) {
        *out = gar_ticks_day(from_unit, from_zone, v, NULL);
        return *out == (int32_t)*out;
    }
    if (from.id == GAR_TIMESTAMP && to.id == GAR_TIME) {
        (void)gar_ticks_day(from_unit, from_zone, v, &v);
        return change_unit(v, from_unit, to_unit, out);
    }
    if (to.id == GAR_TIME && from.id == GAR_INT64) {
        *out = v;
        return v >= 0 && v < 86400 * gar_unit_ticks_per_second(to_unit);
    }
    if (from.id == GAR_TIMESTAMP && (from.zone == NULL) != (to.zone == NULL)) {
        /* the local clock stays as it reads */
        const bool is_kept = from.zone == NULL ? gar_ticks_from_local(from_unit, to_zone, v, &v)
                                               : gar_ticks_to_local(from_unit, from_zone, v, &v);
        return is_kept && change_unit(v, from_unit, to_unit, out);
    }
    return change_unit(v, from_unit, to_unit, out);
}

struct zones {
    const struct gar_zone *from;
    const struct gar_zone *to;
};

static enum gar_status time_to_time(struct gar_eval *eval, const struct gar_instr *instr,
                                    struct gar_reg **args, struct gar_reg *out, int64_t n,
                                    struct gar_error *err)
{
    const struct gar_type from = instr->node->args[0]->type;
    const struct gar_type to = instr->node->type;
    const struct zones *zones = instr->state;
    const bool is_from_date = from.id == GAR_DATE;
    const bool is_to_date = to.id == GAR_DATE;
    uint64_t active[GAR_VECTOR_WORDS];
    gar_active_lanes(eval, instr, out, n, active);
    for (int64_t i = 0; i < n; i++) {
        const int64_t v = is_from_date ? ((const int32_t *)args[0]->values)[i]
                                       : ((const int64_t *)args[0]->values)[i];
        int64_t r = 0;
        if (!cast_time(from, zones->from, to, zones->to, v, &r)) {
            r = 0;
            GAR_TRY(
                gar_cast_fails(eval, instr, args, out, active, i, n, "it is out of range", err));
        }
        if (is_to_date) {
            ((int32_t *)out->dest)[i] = (int32_t)r;
        } else {
            ((int64_t *)out->dest)[i] = r;
        }
    }
    return GAR_OK;
}

static enum gar_status choose_time_cast(const struct gar_bound *node, struct gar_instr *instr,
                                        struct gar_error *err)
{
    struct zones *zones = gar_calloc(1, (int64_t)sizeof *zones);
    if (zones == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *zones);
    }
    instr->state = zones;
    instr->state_free = gar_free;
    instr->run = time_to_time;
    GAR_TRY(gar_type_zone(node->args[0]->type, &zones->from, err));
    return gar_type_zone(node->type, &zones->to, err);
}

/* --- choice --- */

/* All rows of null type are null, so that no value is ever looked at. */
static enum gar_status from_null(struct gar_eval *eval, const struct gar_instr *instr,
                                 struct gar_reg **args, struct gar_reg *out, int64_t n,
                                 struct gar_error *err)
{
    (void)eval;
    (void)args;
    (void)err;
    memset(out->dest, 0,
           instr->node->type.id == GAR_BOOL ? (size_t)gar_words(n) * 8
                                            : (size_t)(n * gar_type_width(instr->node->type)));
    for (int64_t i = 0; i < n; i++) {
        gar_reg_set_null(out, i, n);
    }
    return GAR_OK;
}

static gar_instr_fn choose_number_cast(struct gar_type from, struct gar_type to)
{
    const bool is_from_integer =
        gar_type_is_integer(from) || from.id == GAR_BOOL || from.id == GAR_DATE;
    if (is_from_integer) {
        return gar_type_is_float(to)     ? integer_to_float
               : to.id == GAR_DECIMAL128 ? integer_to_decimal
               : to.id == GAR_BOOL       ? integer_to_bool
                                         : integer_to_integer;
    }
    if (gar_type_is_float(from)) {
        return gar_type_is_float(to)     ? float_to_float
               : to.id == GAR_DECIMAL128 ? float_to_decimal
               : to.id == GAR_BOOL       ? float_to_bool
                                         : float_to_integer;
    }
    return gar_type_is_float(to)     ? decimal_to_float
           : to.id == GAR_DECIMAL128 ? decimal_to_decimal
                                     : decimal_to_integer;
}

enum gar_status gar_choose_cast(const struct gar_bound *node, struct gar_instr *instr,
                                struct gar_error *err)
{
    const struct gar_type from = node->args[0]->type;
    const struct gar_type to = node->type;
    instr->is_strict = true;
    instr->is_flat = true;
    if (from.id == GAR_NULL) {
        instr->run = from_null;
    } else if (gar_type_is_text(from) || gar_type_is_text(to)) {
        return gar_choose_cast_text(node, instr, err);
    } else if (to.id == GAR_DATE || to.id == GAR_TIME || to.id == GAR_TIMESTAMP ||
               to.id == GAR_DURATION) {
        return choose_time_cast(node, instr, err);
    } else {
        instr->run = choose_number_cast(from, to);
    }
    return GAR_OK;
}
