/* SPDX-License-Identifier: Apache-2.0 */
/* Typing of comparison, logic, null handling and choice. */
#include <math.h>

#include "expr/bind_priv.h"

static enum gar_status const_bool(struct gar_binder *binder, bool is_valid, bool truth,
                                  struct gar_bound **out, struct gar_error *err)
{
    struct gar_value value = {
        .type = gar_type_of(GAR_BOOL), .is_valid = is_valid, .boolean = truth};
    return gar_bound_const(binder, &value, false, out, err);
}

/* A float literal that is a whole number beside an integer column compares as an integer, so that
 * integers beyond 2^53 are told apart. */
static enum gar_status whole_literal(struct gar_binder *binder, const struct gar_bound *other,
                                     struct gar_bound **literal, struct gar_error *err)
{
    const struct gar_bound *node = *literal;
    if (!node->is_literal || !node->value->is_valid || !gar_type_is_float(node->type) ||
        !gar_type_is_integer(other->type)) {
        return GAR_OK;
    }
    const double v = node->value->f64;
    if (!(fabs(v) < 9.2e18) || v != floor(v)) {
        return GAR_OK;
    }
    struct gar_value value = {.type = gar_type_of(GAR_INT64), .is_valid = true, .i64 = (int64_t)v};
    return gar_bound_const(binder, &value, true, literal, err);
}

/* Mixed signs with uint64 and decimals whose common type needs more than 38 digits have no common type that holds all
 * values; the first pair compares as decimals of 20 digits, the second keeps its two scales. */
static enum gar_status compare_types(struct gar_binder *binder, const struct gar_function *function,
                                     struct gar_bound **args, struct gar_type *out,
                                     struct gar_error *err)
{
    GAR_TRY(whole_literal(binder, args[1], &args[0], err));
    GAR_TRY(whole_literal(binder, args[0], &args[1], err));
    GAR_TRY(gar_bind_adapt(binder, args, 2, true, err));
    const struct gar_type a = args[0]->type;
    const struct gar_type b = args[1]->type;
    const bool is_mixed_sign = (a.id == GAR_UINT64 && gar_type_is_signed(b)) ||
                               (b.id == GAR_UINT64 && gar_type_is_signed(a));
    if (is_mixed_sign) {
        const struct gar_type type = gar_type_decimal(20, 0);
        GAR_TRY(gar_bound_cast(binder, args[0], type, false, &args[0], err));
        GAR_TRY(gar_bound_cast(binder, args[1], type, false, &args[1], err));
        *out = type;
        return GAR_OK;
    }
    if (a.id == GAR_DECIMAL128 && b.id == GAR_DECIMAL128 && a.scale != b.scale) {
        const int32_t whole =
            gar_max_i64(a.precision - a.scale, b.precision - b.scale) > 0
                ? (int32_t)gar_max_i64(a.precision - a.scale, b.precision - b.scale)
                : 0;
        const int32_t scale = a.scale > b.scale ? a.scale : b.scale;
        if (whole + scale > GAR_DECIMAL_PRECISION_MAX) {
            *out = a;
            return GAR_OK;
        }
    }
    return gar_bind_common(binder, function, args, 2, true, out, err);
}

static enum gar_op compare_op(const struct gar_function *function)
{
    switch (function->id) {
    case GAR_FN_EQUAL: return GAR_OP_EQ;
    case GAR_FN_NOT_EQUAL: return GAR_OP_NE;
    case GAR_FN_LESS: return GAR_OP_LT;
    case GAR_FN_LESS_EQUAL: return GAR_OP_LE;
    case GAR_FN_GREATER: return GAR_OP_GT;
    case GAR_FN_GREATER_EQUAL: return GAR_OP_GE;
    default: return GAR_OP_EQ_SAFE;
    }
}

static enum gar_status bind_comparison(struct gar_binder *binder,
                                       const struct gar_function *function, enum gar_op op,
                                       struct gar_bound *a, struct gar_bound *b,
                                       struct gar_bound **out, struct gar_error *err)
{
    struct gar_bound *pair[2] = {a, b};
    struct gar_type type;
    GAR_TRY(compare_types(binder, function, pair, &type, err));
    if (type.id == GAR_NULL) {
        return const_bool(binder, op == GAR_OP_EQ_SAFE, true, out, err);
    }
    return gar_bound_new(binder, op, gar_type_of(GAR_BOOL), pair, 2, out, err);
}

enum gar_status gar_bind_compare(struct gar_binder *binder, const struct gar_function *function,
                                 struct gar_bound **args, int64_t count, struct gar_bound **out,
                                 struct gar_error *err)
{
    (void)count;
    return bind_comparison(binder, function, compare_op(function), args[0], args[1], out, err);
}

enum gar_status gar_bind_between(struct gar_binder *binder, const struct gar_function *function,
                                 struct gar_bound **args, int64_t count, struct gar_bound **out,
                                 struct gar_error *err)
{
    (void)count;
    struct gar_bound *pair[2];
    GAR_TRY(bind_comparison(binder, function, GAR_OP_GE, args[0], args[1], &pair[0], err));
    GAR_TRY(bind_comparison(binder, function, GAR_OP_LE, args[0], args[2], &pair[1], err));
    pair[0]->function = function;
    pair[1]->function = function;
    return gar_bound_new(binder, GAR_OP_AND, gar_type_of(GAR_BOOL), pair, 2, out, err);
}

static enum gar_status want_bool(struct gar_binder *binder, const struct gar_function *function,
                                 struct gar_bound **arg, struct gar_error *err)
{
    if ((*arg)->type.id == GAR_NULL) {
        return gar_bound_cast(binder, *arg, gar_type_of(GAR_BOOL), false, arg, err);
    }
    if ((*arg)->type.id != GAR_BOOL) {
        return gar_bind_type_error(function, "bool", (*arg)->type, err);
    }
    return GAR_OK;
}

enum gar_status gar_bind_logic(struct gar_binder *binder, const struct gar_function *function,
                               struct gar_bound **args, int64_t count, struct gar_bound **out,
                               struct gar_error *err)
{
    for (int64_t i = 0; i < count; i++) {
        GAR_TRY(want_bool(binder, function, &args[i], err));
    }
    const enum gar_op op = function->id == GAR_FN_AND   ? GAR_OP_AND
                           : function->id == GAR_FN_OR  ? GAR_OP_OR
                           : function->id == GAR_FN_XOR ? GAR_OP_XOR
                                                        : GAR_OP_NOT;
    return gar_bound_new(binder, op, gar_type_of(GAR_BOOL), args, count, out, err);
}

enum gar_status gar_bind_null_test(struct gar_binder *binder, const struct gar_function *function,
                                   struct gar_bound **args, int64_t count, struct gar_bound **out,
                                   struct gar_error *err)
{
    const enum gar_op op = function->id == GAR_FN_IS_NULL ? GAR_OP_IS_NULL : GAR_OP_NOT_NULL;
    return gar_bound_new(binder, op, gar_type_of(GAR_BOOL), args, count, out, err);
}

enum gar_status gar_bind_coalesce(struct gar_binder *binder, const struct gar_function *function,
                                  struct gar_bound **args, int64_t count, struct gar_bound **out,
                                  struct gar_error *err)
{
    struct gar_type type;
    GAR_TRY(gar_bind_common(binder, function, args, count, false, &type, err));
    if (count == 1 || type.id == GAR_NULL) {
        *out = args[0];
        return GAR_OK;
    }
    return gar_bound_new(binder, GAR_OP_COALESCE, type, args, count, out, err);
}

enum gar_status gar_bind_when(struct gar_binder *binder, const struct gar_function *function,
                              struct gar_bound **args, int64_t count, struct gar_bound **out,
                              struct gar_error *err)
{
    /* values to the front, typed together, then back */
    struct gar_bound **values = gar_arena_calloc(&binder->arena, count, (int64_t)sizeof *values);
    if (values == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *values);
    }
    const int64_t branches = count / 2;
    for (int64_t i = 0; i < branches; i++) {
        GAR_TRY(want_bool(binder, function, &args[2 * i], err));
        values[i] = args[2 * i + 1];
    }
    values[branches] = args[count - 1];
    struct gar_type type;
    GAR_TRY(gar_bind_common(binder, function, values, branches + 1, false, &type, err));
    for (int64_t i = 0; i < branches; i++) {
        args[2 * i + 1] = values[i];
    }
    args[count - 1] = values[branches];
    if (type.id == GAR_NULL) {
        *out = args[count - 1];
        return GAR_OK;
    }
    return gar_bound_new(binder, GAR_OP_WHEN, type, args, count, out, err);
}

/* when(test, value, otherwise) for functions that are a short form of it. */
static enum gar_status choose(struct gar_binder *binder, struct gar_bound *test,
                              struct gar_bound *value, struct gar_bound *otherwise,
                              struct gar_bound **out, struct gar_error *err)
{
    struct gar_bound *args[3] = {test, value, otherwise};
    return gar_bound_new(binder, GAR_OP_WHEN, otherwise->type, args, 3, out, err);
}

enum gar_status gar_bind_nullif(struct gar_binder *binder, const struct gar_function *function,
                                struct gar_bound **args, int64_t count, struct gar_bound **out,
                                struct gar_error *err)
{
    (void)count;
    struct gar_bound *is_same = NULL;
    GAR_TRY(bind_comparison(binder, function, GAR_OP_EQ, args[0], args[1], &is_same, err));
    if (args[0]->type.id == GAR_NULL) {
        *out = args[0];
        return GAR_OK;
    }
    struct gar_value value = {.type = args[0]->type};
    struct gar_bound *null = NULL;
    GAR_TRY(gar_bound_const(binder, &value, false, &null, err));
    return choose(binder, is_same, null, args[0], out, err);
}

enum gar_status gar_bind_fill_nan(struct gar_binder *binder, const struct gar_function *function,
                                  struct gar_bound **args, int64_t count, struct gar_bound **out,
                                  struct gar_error *err)
{
    if (args[0]->type.id == GAR_NULL ||
        (gar_type_is_numeric(args[0]->type) && !gar_type_is_float(args[0]->type))) {
        *out = args[0]; /* nothing there can be NaN */
        return GAR_OK;
    }
    if (!gar_type_is_float(args[0]->type)) {
        return gar_bind_type_error(function, "a float", args[0]->type, err);
    }
    struct gar_type type;
    if (args[1]->is_literal && args[1]->type.id == GAR_FLOAT64) {
        GAR_TRY(gar_bound_cast(binder, args[1], args[0]->type, false, &args[1], err));
    }
    GAR_TRY(gar_bind_common(binder, function, args, count, false, &type, err));
    struct gar_bound *is_nan = NULL;
    GAR_TRY(gar_bound_new(binder, GAR_OP_IS_NAN, gar_type_of(GAR_BOOL), args, 1, &is_nan, err));
    return choose(binder, is_nan, args[1], args[0], out, err);
}

enum gar_status gar_bind_extreme(struct gar_binder *binder, const struct gar_function *function,
                                 struct gar_bound **args, int64_t count, struct gar_bound **out,
                                 struct gar_error *err)
{
    struct gar_type type;
    GAR_TRY(gar_bind_common(binder, function, args, count, false, &type, err));
    struct gar_bound *best = args[0];
    const enum gar_op op = function->id == GAR_FN_COLUMNS_MIN ? GAR_OP_LEAST : GAR_OP_GREATEST;
    for (int64_t i = 1; i < count && type.id != GAR_NULL; i++) {
        struct gar_bound *pair[2] = {best, args[i]};
        GAR_TRY(gar_bound_new(binder, op, type, pair, 2, &best, err));
        best->function = function;
    }
    *out = best;
    return GAR_OK;
}

enum gar_status gar_bind_float_test(struct gar_binder *binder, const struct gar_function *function,
                                    struct gar_bound **args, int64_t count, struct gar_bound **out,
                                    struct gar_error *err)
{
    if (args[0]->type.id == GAR_NULL) {
        return const_bool(binder, false, false, out, err);
    }
    if (!gar_type_is_numeric(args[0]->type)) {
        return gar_bind_type_error(function, "a number", args[0]->type, err);
    }
    const enum gar_op op = function->id == GAR_FN_IS_NAN    ? GAR_OP_IS_NAN
                           : function->id == GAR_FN_NOT_NAN ? GAR_OP_NOT_NAN
                                                            : GAR_OP_IS_INF;
    return gar_bound_new(binder, op, gar_type_of(GAR_BOOL), args, count, out, err);
}
