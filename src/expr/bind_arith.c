/* SPDX-License-Identifier: Apache-2.0 */
/* Typing of arithmetic: numbers, decimals, texts, dates, durations, intervals, rounding, bits. */
#include <math.h>

#include "expr/bind_priv.h"

static const int64_t day_seconds = 86400;

static enum gar_op arith_op(const struct gar_function *function)
{
    switch (function->id) {
    case GAR_FN_ADD:
    case GAR_FN_TRY_ADD: return GAR_OP_ADD;
    case GAR_FN_SUBTRACT:
    case GAR_FN_TRY_SUBTRACT: return GAR_OP_SUB;
    case GAR_FN_MULTIPLY:
    case GAR_FN_TRY_MULTIPLY: return GAR_OP_MUL;
    case GAR_FN_DIVIDE: return GAR_OP_DIV;
    case GAR_FN_FLOOR_DIVIDE: return GAR_OP_FLOOR_DIV;
    default: return GAR_OP_MOD;
    }
}

static bool is_try_function(const struct gar_function *function)
{
    return function->id == GAR_FN_TRY_ADD || function->id == GAR_FN_TRY_SUBTRACT ||
           function->id == GAR_FN_TRY_MULTIPLY;
}

static enum gar_status pair_error(const struct gar_function *function, struct gar_type a,
                                  struct gar_type b, const char *hint, struct gar_error *err)
{
    char a_text[64];
    char b_text[64];
    return gar_error_set(err, GAR_ERR_TYPE, "%s cannot take %s and %s%s", function->info.name,
                         gar_type_text(a, a_text, (int64_t)sizeof a_text),
                         gar_type_text(b, b_text, (int64_t)sizeof b_text), hint);
}

static enum gar_status cast_both(struct gar_binder *binder, struct gar_bound **args,
                                 struct gar_type type, struct gar_error *err)
{
    GAR_TRY(gar_bound_cast(binder, args[0], type, false, &args[0], err));
    return gar_bound_cast(binder, args[1], type, false, &args[1], err);
}

static struct gar_type capped_decimal(int32_t precision, int32_t scale)
{
    return gar_type_decimal(
        precision > GAR_DECIMAL_PRECISION_MAX ? GAR_DECIMAL_PRECISION_MAX : precision, scale);
}

/* Precision beyond 38 is cut to 38: values that need more are an overflow error when they come. */
static enum gar_status bind_decimal(struct gar_binder *binder, const struct gar_function *function,
                                    enum gar_op op, struct gar_bound **args, struct gar_bound **out,
                                    struct gar_error *err)
{
    for (int32_t i = 0; i < 2; i++) {
        if (args[i]->type.id != GAR_DECIMAL128) {
            const struct gar_type type =
                gar_type_decimal(gar_type_integer_digits(args[i]->type), 0);
            GAR_TRY(gar_bound_cast(binder, args[i], type, false, &args[i], err));
        }
    }
    const struct gar_type a = args[0]->type;
    const struct gar_type b = args[1]->type;
    const int32_t a_whole = a.precision - a.scale;
    const int32_t b_whole = b.precision - b.scale;
    const int32_t whole = a_whole > b_whole ? a_whole : b_whole;
    const int32_t scale = a.scale > b.scale ? a.scale : b.scale;
    struct gar_type type = capped_decimal(whole + scale, scale);
    if (op == GAR_OP_MUL) {
        if (a.scale + b.scale > GAR_DECIMAL_PRECISION_MAX) {
            return pair_error(function, a, b,
                              "; the product has more than 38 digits after the point, cast one to "
                              "a smaller scale",
                              err);
        }
        type = capped_decimal(a.precision + b.precision, a.scale + b.scale);
    } else if (op == GAR_OP_ADD || op == GAR_OP_SUB) {
        type = capped_decimal(whole + scale + 1, scale);
        GAR_TRY(cast_both(binder, args, type, err));
    } else {
        GAR_TRY(cast_both(binder, args, type, err));
        if (op == GAR_OP_FLOOR_DIV) {
            type = capped_decimal(a_whole + b.scale + 1, 0);
        }
    }
    GAR_TRY(gar_bound_new(binder, op, type, args, 2, out, err));
    return GAR_OK;
}

static enum gar_status bind_numbers(struct gar_binder *binder, const struct gar_function *function,
                                    enum gar_op op, struct gar_bound **args, struct gar_bound **out,
                                    struct gar_error *err)
{
    GAR_TRY(gar_bind_adapt(binder, args, 2, false, err));
    struct gar_type type;
    gar_type_common(args[0]->type, args[1]->type, false, &type);
    if (op == GAR_OP_DIV && !gar_type_is_float(type)) {
        type = gar_type_of(GAR_FLOAT64);
    }
    if (type.id == GAR_DECIMAL128) {
        return bind_decimal(binder, function, op, args, out, err);
    }
    GAR_TRY(cast_both(binder, args, type, err));
    return gar_bound_new(binder, op, type, args, 2, out, err);
}

/* x + interval, x - interval. */
static enum gar_status bind_add_interval(struct gar_binder *binder,
                                         const struct gar_function *function,
                                         struct gar_bound *moved, const struct gar_bound *interval,
                                         bool is_minus, struct gar_bound **out,
                                         struct gar_error *err)
{
    int64_t part[3];
    for (int32_t i = 0; i < 3; i++) {
        part[i] = interval->param[i];
        if (is_minus && part[i] == INT64_MIN) {
            return gar_error_set(err, GAR_ERR_OVERFLOW, "interval of %lld is too long",
                                 (long long)part[i]);
        }
        part[i] = is_minus ? -part[i] : part[i];
    }
    if (moved->op == GAR_OP_INTERVAL) {
        GAR_TRY(gar_bound_new(binder, GAR_OP_INTERVAL, gar_type_of(GAR_NULL), NULL, 0, out, err));
        for (int32_t i = 0; i < 3; i++) {
            if (__builtin_add_overflow(moved->param[i], part[i], &(*out)->param[i])) {
                return gar_error_set(err, GAR_ERR_OVERFLOW, "the sum of the intervals is too long");
            }
        }
        return GAR_OK;
    }
    if (moved->is_literal && moved->type.id == GAR_STRING) {
        GAR_TRY(
            gar_bound_cast(binder, moved, gar_type_timestamp(GAR_MICRO, NULL), false, &moved, err));
    }
    struct gar_type type = moved->type;
    if (type.id == GAR_NULL) {
        type = gar_type_of(GAR_DATE);
    }
    if (type.id != GAR_DATE && type.id != GAR_TIMESTAMP) {
        return gar_bind_type_error(function, "a date or timestamp beside an interval", type, err);
    }
    if (type.id == GAR_DATE && part[2] != 0) {
        type = gar_type_timestamp(part[2] % 1000 == 0 ? GAR_MICRO : GAR_NANO, NULL);
    }
    if (type.id == GAR_TIMESTAMP) {
        static const int64_t tick_ns[] = {1000000000, 1000000, 1000, 1};
        while (part[2] % tick_ns[type.unit] != 0) {
            type.unit++;
        }
        part[2] /= tick_ns[type.unit];
    }
    GAR_TRY(gar_bound_cast(binder, moved, type, false, &moved, err));
    GAR_TRY(gar_bound_new(binder, GAR_OP_ADD_INTERVAL, type, &moved, 1, out, err));
    for (int32_t i = 0; i < 3; i++) {
        (*out)->param[i] = part[i];
    }
    return GAR_OK;
}

/* A literal duration in another unit if no digit is lost. */
static bool duration_in_unit(const struct gar_bound *duration, enum gar_time_unit unit,
                             int64_t *out)
{
    if (duration->op != GAR_OP_CONST || !duration->value->is_valid) {
        return false;
    }
    int64_t v = duration->value->i64;
    for (int32_t u = duration->type.unit; u > (int32_t)unit; u--) {
        if (v % 1000 != 0) {
            return false;
        }
        v /= 1000;
    }
    for (int32_t u = duration->type.unit; u < (int32_t)unit; u++) {
        if (__builtin_mul_overflow(v, 1000, &v)) {
            return false;
        }
    }
    *out = v;
    return true;
}

/* date or timestamp, plus or minus a duration. */
static enum gar_status bind_moved(struct gar_binder *binder, enum gar_op op,
                                  struct gar_bound **args, struct gar_bound **out,
                                  struct gar_error *err)
{
    struct gar_bound *moved = args[0];
    struct gar_bound *by = args[1];
    int64_t seconds = 0;
    if (moved->type.id == GAR_DATE && duration_in_unit(by, GAR_SECOND, &seconds) &&
        seconds % day_seconds == 0) {
        GAR_TRY(gar_bound_new(binder, GAR_OP_ADD_INTERVAL, moved->type, &moved, 1, out, err));
        (*out)->param[1] = op == GAR_OP_SUB ? -(seconds / day_seconds) : seconds / day_seconds;
        return GAR_OK;
    }
    struct gar_type type =
        moved->type.id == GAR_DATE ? gar_type_timestamp(by->type.unit, NULL) : moved->type;
    int64_t ticks = 0;
    if (!duration_in_unit(by, type.unit, &ticks) && by->type.unit > type.unit) {
        type.unit = by->type.unit;
    }
    struct gar_bound *pair[2];
    GAR_TRY(gar_bound_cast(binder, moved, type, false, &pair[0], err));
    GAR_TRY(gar_bound_cast(binder, by, gar_type_with_unit(GAR_DURATION, type.unit), false, &pair[1],
                           err));
    return gar_bound_new(binder, op, type, pair, 2, out, err);
}

/* Differences of dates and timestamps, sums of durations. */
static enum gar_status bind_temporal(struct gar_binder *binder, const struct gar_function *function,
                                     enum gar_op op, struct gar_bound **args,
                                     struct gar_bound **out, struct gar_error *err)
{
    const struct gar_type a = args[0]->type;
    const struct gar_type b = args[1]->type;
    const bool a_is_point = a.id == GAR_DATE || a.id == GAR_TIMESTAMP;
    const bool b_is_point = b.id == GAR_DATE || b.id == GAR_TIMESTAMP;
    const bool is_sum = op == GAR_OP_ADD || op == GAR_OP_SUB;
    if (is_sum && a_is_point && b.id == GAR_DURATION) {
        return bind_moved(binder, op, args, out, err);
    }
    if (op == GAR_OP_ADD && a.id == GAR_DURATION && b_is_point) {
        struct gar_bound *swapped[2] = {args[1], args[0]};
        return bind_moved(binder, op, swapped, out, err);
    }
    struct gar_type type;
    if (op == GAR_OP_SUB && a_is_point && b_is_point && gar_type_common(a, b, true, &type)) {
        const struct gar_type a_to = {GAR_TIMESTAMP,
                                      type.id == GAR_DATE ? GAR_SECOND : type.unit,
                                      0,
                                      0,
                                      a.id == GAR_TIMESTAMP ? a.zone : type.zone,
                                      NULL};
        const struct gar_type b_to = {
            GAR_TIMESTAMP, a_to.unit, 0, 0, b.id == GAR_TIMESTAMP ? b.zone : type.zone, NULL};
        GAR_TRY(gar_bound_cast(binder, args[0], a_to, false, &args[0], err));
        GAR_TRY(gar_bound_cast(binder, args[1], b_to, false, &args[1], err));
        return gar_bound_new(binder, op, gar_type_with_unit(GAR_DURATION, a_to.unit), args, 2, out,
                             err);
    }
    if (a.id == GAR_DURATION && b.id == GAR_DURATION && op != GAR_OP_MUL) {
        gar_type_common(a, b, false, &type);
        GAR_TRY(cast_both(binder, args, type, err));
        if (op == GAR_OP_DIV || op == GAR_OP_FLOOR_DIV) {
            GAR_TRY(cast_both(binder, args, gar_type_of(GAR_INT64), err));
            type = gar_type_of(GAR_INT64);
        }
        if (op == GAR_OP_DIV) {
            type = gar_type_of(GAR_FLOAT64);
            GAR_TRY(cast_both(binder, args, type, err));
        }
        return gar_bound_new(binder, op, type, args, 2, out, err);
    }
    const bool is_scaled = (op == GAR_OP_MUL || op == GAR_OP_FLOOR_DIV) && a.id == GAR_DURATION &&
                           gar_type_is_integer(b);
    if (is_scaled || (op == GAR_OP_MUL && gar_type_is_integer(a) && b.id == GAR_DURATION)) {
        type = is_scaled ? a : b;
        GAR_TRY(gar_bound_cast(binder, args[is_scaled ? 1 : 0], gar_type_of(GAR_INT64), false,
                               &args[is_scaled ? 1 : 0], err));
        return gar_bound_new(binder, op, type, args, 2, out, err);
    }
    const bool is_zone_clash = a.id == GAR_TIMESTAMP && b.id == GAR_TIMESTAMP && op == GAR_OP_SUB;
    return pair_error(function, a, b,
                      is_zone_clash ? "; one has a zone and the other has none" : "", err);
}

enum gar_status gar_bind_arith(struct gar_binder *binder, const struct gar_function *function,
                               struct gar_bound **args, int64_t count, struct gar_bound **out,
                               struct gar_error *err)
{
    (void)count;
    const enum gar_op op = arith_op(function);
    if (args[1]->op == GAR_OP_INTERVAL && (op == GAR_OP_ADD || op == GAR_OP_SUB)) {
        return bind_add_interval(binder, function, args[0], args[1], op == GAR_OP_SUB, out, err);
    }
    if (args[0]->op == GAR_OP_INTERVAL && op == GAR_OP_ADD) {
        return bind_add_interval(binder, function, args[1], args[0], false, out, err);
    }
    if (args[0]->op == GAR_OP_INTERVAL || args[1]->op == GAR_OP_INTERVAL) {
        return gar_error_set(err, GAR_ERR_TYPE,
                             "%s cannot take an interval there; write x - interval",
                             function->info.name);
    }
    GAR_TRY(gar_bind_adapt(binder, args, 2, false, err));
    const struct gar_type a = args[0]->type;
    const struct gar_type b = args[1]->type;
    if (a.id == GAR_NULL && b.id == GAR_NULL) {
        *out = args[0];
        return GAR_OK;
    }
    if (a.id == GAR_NULL || b.id == GAR_NULL) {
        /* null with x: the null is one of x's type, of a duration beside a point in time */
        const int32_t at = a.id == GAR_NULL ? 0 : 1;
        struct gar_type type = at == 0 ? b : a;
        if (type.id == GAR_DATE || type.id == GAR_TIMESTAMP) {
            type = gar_type_with_unit(GAR_DURATION, type.id == GAR_DATE ? GAR_SECOND : type.unit);
        }
        GAR_TRY(gar_bound_cast(binder, args[at], type, false, &args[at], err));
    }
    const bool is_text = args[0]->type.id == GAR_STRING && args[1]->type.id == GAR_STRING;
    if (is_text && function->id == GAR_FN_ADD) {
        return gar_bound_new(binder, GAR_OP_CONCAT, gar_type_of(GAR_STRING), args, 2, out, err);
    }
    if (gar_type_is_numeric(args[0]->type) && gar_type_is_numeric(args[1]->type)) {
        GAR_TRY(bind_numbers(binder, function, op, args, out, err));
    } else if (gar_type_is_temporal(args[0]->type) || gar_type_is_temporal(args[1]->type)) {
        GAR_TRY(bind_temporal(binder, function, op, args, out, err));
    } else {
        const bool has_text = a.id == GAR_STRING || b.id == GAR_STRING;
        return pair_error(function, a, b, has_text ? "; cast the text to a number" : "", err);
    }
    (*out)->is_try = is_try_function(function);
    return GAR_OK;
}

/* The number a user wrote with a sign is a literal too. */
static enum gar_status negate_literal(struct gar_binder *binder, const struct gar_bound *arg,
                                      struct gar_bound **out, struct gar_error *err)
{
    struct gar_value value = *arg->value; /* numbers own nothing */
    if (gar_type_is_float(value.type)) {
        value.f64 = -value.f64;
    } else if (value.type.id == GAR_DECIMAL128) {
        value.i128 = -value.i128;
    } else if (value.type.id == GAR_UINT64) {
        value.type = gar_type_of(GAR_INT64);
        value.i64 = (int64_t)(0 - value.u64); /* 2^63 at most, checked by the caller */
    } else {
        value.i64 = -value.i64;
    }
    return gar_bound_const(binder, &value, arg->is_literal, out, err);
}

static bool can_negate_literal(const struct gar_bound *arg)
{
    if (arg->op != GAR_OP_CONST || !arg->value->is_valid) {
        return false;
    }
    const struct gar_type type = arg->type;
    if (type.id == GAR_INT64 || type.id == GAR_DURATION) {
        return arg->value->i64 != INT64_MIN;
    }
    if (type.id == GAR_UINT64) {
        return arg->value->u64 <= (uint64_t)INT64_MAX + 1;
    }
    return gar_type_is_float(type) || type.id == GAR_DECIMAL128;
}

enum gar_status gar_bind_sign(struct gar_binder *binder, const struct gar_function *function,
                              struct gar_bound **args, int64_t count, struct gar_bound **out,
                              struct gar_error *err)
{
    (void)count;
    struct gar_bound *arg = args[0];
    const bool is_negate = function->id == GAR_FN_NEGATE;
    if (arg->op == GAR_OP_INTERVAL) {
        return gar_error_set(err, GAR_ERR_TYPE, "%s cannot take an interval; only + and - do",
                             function->info.name);
    }
    if (arg->type.id == GAR_NULL || (!is_negate && gar_type_is_unsigned(arg->type))) {
        *out = arg;
        return GAR_OK;
    }
    if (!gar_type_is_numeric(arg->type) && arg->type.id != GAR_DURATION) {
        return gar_bind_type_error(function, "a number or duration", arg->type, err);
    }
    if (is_negate && can_negate_literal(arg)) {
        return negate_literal(binder, arg, out, err);
    }
    if (gar_type_is_unsigned(arg->type)) {
        static const enum gar_type_id wider[] = {GAR_INT16, GAR_INT32, GAR_INT64, GAR_INT64};
        const struct gar_type type = gar_type_of(wider[arg->type.id - GAR_UINT8]);
        GAR_TRY(gar_bound_cast(binder, arg, type, false, &arg, err));
    }
    return gar_bound_new(binder, is_negate ? GAR_OP_NEG : GAR_OP_ABS, arg->type, &arg, 1, out, err);
}

enum gar_status gar_bind_sign_of(struct gar_binder *binder, const struct gar_function *function,
                                 struct gar_bound **args, int64_t count, struct gar_bound **out,
                                 struct gar_error *err)
{
    (void)count;
    if (args[0]->type.id == GAR_NULL) {
        *out = args[0];
        return GAR_OK;
    }
    if (!gar_type_is_numeric(args[0]->type)) {
        return gar_bind_type_error(function, "a number", args[0]->type, err);
    }
    const bool is_decimal = args[0]->type.id == GAR_DECIMAL128;
    const struct gar_type type = is_decimal ? gar_type_of(GAR_INT32) : args[0]->type;
    return gar_bound_new(binder, GAR_OP_SIGN, type, args, 1, out, err);
}

enum gar_status gar_bind_math1(struct gar_binder *binder, const struct gar_function *function,
                               struct gar_bound **args, int64_t count, struct gar_bound **out,
                               struct gar_error *err)
{
    (void)count;
    const bool is_number = gar_type_is_numeric(args[0]->type) || args[0]->type.id == GAR_NULL;
    if (!is_number) {
        return gar_bind_type_error(function, "a number", args[0]->type, err);
    }
    const struct gar_type type =
        gar_type_of(args[0]->type.id == GAR_FLOAT32 ? GAR_FLOAT32 : GAR_FLOAT64);
    GAR_TRY(gar_bound_cast(binder, args[0], type, false, &args[0], err));
    GAR_TRY(gar_bound_new(binder, GAR_OP_MATH1, type, args, 1, out, err));
    (*out)->param[0] = function->id;
    return GAR_OK;
}

enum gar_status gar_bind_math2(struct gar_binder *binder, const struct gar_function *function,
                               struct gar_bound **args, int64_t count, struct gar_bound **out,
                               struct gar_error *err)
{
    for (int64_t i = 0; i < count; i++) {
        if (!gar_type_is_numeric(args[i]->type) && args[i]->type.id != GAR_NULL) {
            return gar_bind_type_error(function, "numbers", args[i]->type, err);
        }
    }
    const struct gar_type type = gar_type_of(GAR_FLOAT64);
    GAR_TRY(cast_both(binder, args, type, err));
    GAR_TRY(gar_bound_new(binder, GAR_OP_MATH2, type, args, 2, out, err));
    (*out)->param[0] = function->id;
    return GAR_OK;
}

/* floor, ceil, round */
enum gar_status gar_bind_round(struct gar_binder *binder, const struct gar_function *function,
                               struct gar_bound **args, int64_t count, struct gar_bound **out,
                               struct gar_error *err)
{
    int64_t digits = 0;
    if (count == 2) {
        GAR_TRY(gar_bind_literal_i64(function, "the number of digits", args[1], &digits, err));
        digits = digits > 400 ? 400 : digits < -400 ? -400 : digits;
    }
    const struct gar_type from = args[0]->type;
    if (from.id != GAR_NULL && !gar_type_is_numeric(from)) {
        return gar_bind_type_error(function, "a number", from, err);
    }
    const bool is_whole = gar_type_is_integer(from) && digits >= 0;
    const bool has_fewer = from.id == GAR_DECIMAL128 && digits >= from.scale;
    if (from.id == GAR_NULL || is_whole || has_fewer) {
        *out = args[0];
        return GAR_OK;
    }
    struct gar_type type = from;
    if (from.id == GAR_DECIMAL128) {
        const int32_t scale = digits > 0 ? (int32_t)digits : 0;
        type = capped_decimal(from.precision - from.scale + scale + 1, scale);
    }
    GAR_TRY(gar_bound_new(binder, GAR_OP_ROUND, type, args, 1, out, err));
    (*out)->param[0] = function->id;
    (*out)->param[1] = digits;
    return GAR_OK;
}

enum gar_status gar_bind_bits(struct gar_binder *binder, const struct gar_function *function,
                              struct gar_bound **args, int64_t count, struct gar_bound **out,
                              struct gar_error *err)
{
    for (int64_t i = 0; i < count; i++) {
        if (args[i]->type.id == GAR_NULL) {
            GAR_TRY(gar_bound_cast(binder, args[i], gar_type_of(GAR_INT64), false, &args[i], err));
        }
        if (!gar_type_is_integer(args[i]->type)) {
            return gar_bind_type_error(function, "integers", args[i]->type, err);
        }
    }
    const bool is_shift = function->id == GAR_FN_SHIFT_LEFT || function->id == GAR_FN_SHIFT_RIGHT;
    struct gar_type type = args[0]->type;
    if (is_shift) {
        GAR_TRY(gar_bound_cast(binder, args[1], gar_type_of(GAR_INT64), false, &args[1], err));
    } else {
        GAR_TRY(gar_bind_common(binder, function, args, count, false, &type, err));
    }
    const enum gar_op op = function->id == GAR_FN_BITWISE_AND   ? GAR_OP_BIT_AND
                           : function->id == GAR_FN_BITWISE_OR  ? GAR_OP_BIT_OR
                           : function->id == GAR_FN_BITWISE_XOR ? GAR_OP_BIT_XOR
                           : function->id == GAR_FN_SHIFT_LEFT  ? GAR_OP_SHIFT_LEFT
                                                                : GAR_OP_SHIFT_RIGHT;
    return gar_bound_new(binder, op, type, args, count, out, err);
}

enum gar_status gar_bind_hash(struct gar_binder *binder, const struct gar_function *function,
                              struct gar_bound **args, int64_t count, struct gar_bound **out,
                              struct gar_error *err)
{
    (void)function;
    return gar_bound_new(binder, GAR_OP_HASH, gar_type_of(GAR_UINT64), args, count, out, err);
}
