/* SPDX-License-Identifier: Apache-2.0 */
/* Typing of aggregates. Their work is done by exec/ with kernels/aggregate*. */
#include <string.h>

#include "expr/bind_priv.h"

/* Digits that the mean of decimals has beyond its input's scale. */
#define MEAN_EXTRA_SCALE 4

static enum gar_status aggregate(struct gar_binder *binder, const struct gar_function *function,
                                 struct gar_type type, struct gar_bound **args, int64_t count,
                                 struct gar_bound **out, struct gar_error *err)
{
    GAR_TRY(gar_bound_new(binder, GAR_OP_AGGREGATE, type, args, count, out, err));
    (*out)->function = function;
    return GAR_OK;
}

enum gar_status gar_bind_sum(struct gar_binder *binder, const struct gar_function *function,
                             struct gar_bound **args, int64_t count, struct gar_bound **out,
                             struct gar_error *err)
{
    const struct gar_type from = args[0]->type;
    const bool is_sum = function->id == GAR_FN_SUM;
    struct gar_type type;
    if (gar_type_is_signed(from) || (is_sum && from.id == GAR_BOOL)) {
        type = gar_type_of(GAR_INT64);
    } else if (gar_type_is_unsigned(from)) {
        type = gar_type_of(GAR_UINT64);
    } else if (gar_type_is_float(from)) {
        type = gar_type_of(GAR_FLOAT64);
    } else if (is_sum && from.id == GAR_DECIMAL128) {
        type = gar_type_decimal(GAR_DECIMAL_PRECISION_MAX, from.scale);
    } else if (from.id == GAR_NULL || (is_sum && from.id == GAR_DURATION)) {
        type = from;
    } else {
        return gar_bind_type_error(
            function, is_sum ? "a number, bool or duration" : "an integer or float", from, err);
    }
    return aggregate(binder, function, type, args, count, out, err);
}

enum gar_status gar_bind_mean(struct gar_binder *binder, const struct gar_function *function,
                              struct gar_bound **args, int64_t count, struct gar_bound **out,
                              struct gar_error *err)
{
    const struct gar_type from = args[0]->type;
    struct gar_type type = gar_type_of(GAR_FLOAT64);
    if (from.id == GAR_DECIMAL128) {
        /* as many more digits as leave room for the whole part */
        const int32_t room = GAR_DECIMAL_PRECISION_MAX - from.precision;
        type = gar_type_decimal(GAR_DECIMAL_PRECISION_MAX,
                                from.scale + (room < MEAN_EXTRA_SCALE ? room : MEAN_EXTRA_SCALE));
    } else if (from.id == GAR_DURATION || from.id == GAR_NULL) {
        type = from;
    } else if (!gar_type_is_numeric(from) && from.id != GAR_BOOL) {
        return gar_bind_type_error(function, "a number, bool or duration", from, err);
    }
    return aggregate(binder, function, type, args, count, out, err);
}

enum gar_status gar_bind_min_max(struct gar_binder *binder, const struct gar_function *function,
                                 struct gar_bound **args, int64_t count, struct gar_bound **out,
                                 struct gar_error *err)
{
    return aggregate(binder, function, args[0]->type, args, count, out, err);
}

enum gar_status gar_bind_count(struct gar_binder *binder, const struct gar_function *function,
                               struct gar_bound **args, int64_t count, struct gar_bound **out,
                               struct gar_error *err)
{
    if (count == 2) {
        const struct gar_bound *mode = args[1];
        const bool is_text =
            mode->op == GAR_OP_CONST && mode->type.id == GAR_STRING && mode->value->is_valid;
        if (!is_text || (strcmp(mode->value->text.data, "valid") != 0 &&
                         strcmp(mode->value->text.data, "null") != 0 &&
                         strcmp(mode->value->text.data, "all") != 0)) {
            return gar_error_set(err, GAR_ERR_VALUE,
                                 "count takes 'valid', 'null' or 'all' as its second argument");
        }
    }
    return aggregate(binder, function, gar_type_of(GAR_INT64), args, count, out, err);
}

enum gar_status gar_bind_stddev(struct gar_binder *binder, const struct gar_function *function,
                                struct gar_bound **args, int64_t count, struct gar_bound **out,
                                struct gar_error *err)
{
    if (count == 2) {
        int64_t ddof = 0;
        GAR_TRY(gar_bind_literal_i64(function, "ddof", args[1], &ddof, err));
        if (ddof < 0) {
            return gar_error_set(err, GAR_ERR_VALUE, "%s: ddof is %lld, it cannot be negative",
                                 function->info.name, (long long)ddof);
        }
    }
    const struct gar_type from = args[0]->type;
    if (!gar_type_is_numeric(from) && from.id != GAR_NULL && from.id != GAR_BOOL) {
        return gar_bind_type_error(function, "a number", from, err);
    }
    return aggregate(binder, function, gar_type_of(GAR_FLOAT64), args, count, out, err);
}

enum gar_status gar_bind_bool_aggregate(struct gar_binder *binder,
                                        const struct gar_function *function,
                                        struct gar_bound **args, int64_t count,
                                        struct gar_bound **out, struct gar_error *err)
{
    if (args[0]->type.id != GAR_BOOL && args[0]->type.id != GAR_NULL) {
        return gar_bind_type_error(function, "bool", args[0]->type, err);
    }
    return aggregate(binder, function, gar_type_of(GAR_BOOL), args, count, out, err);
}

enum gar_status gar_bind_count_one(struct gar_binder *binder, const struct gar_function *function,
                                   struct gar_bound **args, int64_t count, struct gar_bound **out,
                                   struct gar_error *err)
{
    return aggregate(binder, function, gar_type_of(GAR_INT64), args, count, out, err);
}

static bool is_literal(const struct gar_bound *arg)
{
    return arg->op == GAR_OP_CONST && arg->value != NULL && arg->value->is_valid;
}

static enum gar_status expect_number(const struct gar_function *function,
                                     const struct gar_bound *arg, struct gar_error *err)
{
    const struct gar_type type = arg->type;
    if (!gar_type_is_numeric(type) && type.id != GAR_NULL && type.id != GAR_BOOL) {
        return gar_bind_type_error(function, "a number", type, err);
    }
    return GAR_OK;
}

enum gar_status gar_bind_percentile(struct gar_binder *binder, const struct gar_function *function,
                                    struct gar_bound **args, int64_t count, struct gar_bound **out,
                                    struct gar_error *err)
{
    GAR_TRY(expect_number(function, args[0], err));
    double fraction = -1;
    if (is_literal(args[1])) {
        const struct gar_value *value = args[1]->value;
        if (gar_type_is_float(value->type)) {
            fraction = value->f64;
        } else if (gar_type_is_integer(value->type)) {
            fraction = (double)value->i64;
        } else if (value->type.id == GAR_DECIMAL128) {
            fraction = gar_decimal_to_double(value->i128, value->type.scale);
        }
    }
    if (!(fraction >= 0 && fraction <= 1)) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "%s takes a literal number from 0 to 1 as its second argument, "
                             "e.g. 0.9",
                             function->info.name);
    }
    return aggregate(binder, function, gar_type_of(GAR_FLOAT64), args, count, out, err);
}

enum gar_status gar_bind_first(struct gar_binder *binder, const struct gar_function *function,
                               struct gar_bound **args, int64_t count, struct gar_bound **out,
                               struct gar_error *err)
{
    if (count == 3 && (!is_literal(args[2]) || args[2]->type.id != GAR_BOOL)) {
        return gar_error_set(err, GAR_ERR_VALUE, "%s: ignore_nulls must be a literal true or false",
                             function->info.name);
    }
    return aggregate(binder, function, args[0]->type, args, count, out, err);
}

enum gar_status gar_bind_string_agg(struct gar_binder *binder, const struct gar_function *function,
                                    struct gar_bound **args, int64_t count, struct gar_bound **out,
                                    struct gar_error *err)
{
    if (args[0]->type.id != GAR_STRING && args[0]->type.id != GAR_NULL) {
        return gar_bind_type_error(function, "a string; cast it first", args[0]->type, err);
    }
    if (count == 2 && (!is_literal(args[1]) || args[1]->type.id != GAR_STRING)) {
        return gar_error_set(err, GAR_ERR_VALUE, "%s: the delimiter must be a literal string",
                             function->info.name);
    }
    return aggregate(binder, function, gar_type_of(GAR_STRING), args, count, out, err);
}

enum gar_status gar_bind_pairs(struct gar_binder *binder, const struct gar_function *function,
                               struct gar_bound **args, int64_t count, struct gar_bound **out,
                               struct gar_error *err)
{
    GAR_TRY(expect_number(function, args[0], err));
    GAR_TRY(expect_number(function, args[1], err));
    return aggregate(binder, function, gar_type_of(GAR_FLOAT64), args, count, out, err);
}
