/* SPDX-License-Identifier: Apache-2.0 */
/* As-of joins: the condition that stands for the direction, and the greatest distance in units of `on`. */
#include <math.h>
#include <string.h>

#include "plan/plan.h"
#include "plan/plan_priv.h"
#include "plan/rewrite.h"

static bool has_distance(struct gar_type type)
{
    return gar_type_is_numeric(type) || gar_type_is_temporal(type);
}

static enum gar_status refuse_tolerance(const struct gar_asof_spec *spec, struct gar_type on,
                                        const char *wanted, struct gar_error *err)
{
    struct gar_strbuf shown = {0};
    char type[64];
    gar_expr_print(spec->tolerance, &shown);
    const enum gar_status status =
        shown.failed ? gar_error_nomem(err, shown.size)
                     : gar_error_set(err, GAR_ERR_TYPE,
                                     "join_asof: the tolerance of a %s `on` is %s, got %s",
                                     gar_type_text(on, type, (int64_t)sizeof type), wanted,
                                     gar_strbuf_text(&shown));
    gar_strbuf_destroy(&shown);
    return status;
}

static bool read_integer(const struct gar_value *value, gar_i128 *out)
{
    if (!value->is_valid || !gar_type_is_integer(value->type)) {
        return false;
    }
    *out = gar_type_is_unsigned(value->type) ? (gar_i128)value->u64 : (gar_i128)value->i64;
    return true;
}

static bool read_decimal(const struct gar_value *value, int32_t scale, gar_i128 *out)
{
    gar_i128 whole = 0;
    if (read_integer(value, &whole)) {
        return gar_decimal_rescale(whole, scale, out);
    }
    return value->is_valid && value->type.id == GAR_DECIMAL128 && value->type.scale <= scale &&
           gar_decimal_rescale(value->i128, scale - value->type.scale, out);
}

static bool read_double(const struct gar_value *value, double *out)
{
    gar_i128 whole = 0;
    if (read_integer(value, &whole)) {
        *out = (double)whole;
        return true;
    }
    if (value->is_valid && value->type.id == GAR_DECIMAL128) {
        *out = gar_decimal_to_double(value->i128, value->type.scale);
        return true;
    }
    *out = value->is_valid && gar_type_is_float(value->type) ? value->f64 : 0;
    return value->is_valid && gar_type_is_float(value->type) && !isnan(value->f64);
}

/* A duration in units of the type; what is less than a unit makes no difference. */
static bool read_duration(const struct gar_value *value, struct gar_type on, gar_i128 *out)
{
    if (!value->is_valid || value->type.id != GAR_DURATION) {
        return false;
    }
    const gar_i128 nanos = (gar_i128)value->i64 *
                           gar_pow10_i64(9 - gar_unit_digits((enum gar_time_unit)value->type.unit));
    const gar_i128 unit = on.id == GAR_DATE
                              ? (gar_i128)86400 * 1000000000
                              : gar_pow10_i64(9 - gar_unit_digits((enum gar_time_unit)on.unit));
    *out = nanos < 0 ? -1 : nanos / unit;
    return true;
}

static enum gar_status read_tolerance(const struct gar_asof_spec *spec, struct gar_type on,
                                      struct gar_asof *out, struct gar_error *err)
{
    const struct gar_expr *literal = gar_expr_strip_alias(spec->tolerance);
    if (literal->kind != GAR_EXPR_LITERAL) {
        return refuse_tolerance(spec, on, "a plain value", err);
    }
    const struct gar_value *value = &literal->value;
    out->has_tolerance = true;
    if (gar_type_is_float(on)) {
        if (!read_double(value, &out->tolerance_double)) {
            return refuse_tolerance(spec, on, "a number", err);
        }
    } else if (on.id == GAR_DECIMAL128) {
        if (!read_decimal(value, on.scale, &out->tolerance)) {
            return refuse_tolerance(spec, on, "an integer or a decimal of at most its scale", err);
        }
    } else if (gar_type_is_integer(on)) {
        if (!read_integer(value, &out->tolerance)) {
            return refuse_tolerance(spec, on, "an integer", err);
        }
    } else if (!read_duration(value, on, &out->tolerance)) {
        return refuse_tolerance(spec, on, "a duration", err);
    }
    if (out->tolerance < 0 || out->tolerance_double < 0) {
        return gar_error_set(err, GAR_ERR_VALUE, "join_asof: the tolerance must not be negative");
    }
    return GAR_OK;
}

enum gar_status gar_plan_make_asof(const struct gar_asof_spec *spec,
                                   const struct gar_schema *left_schema, struct gar_expr *left,
                                   struct gar_expr *right, struct gar_expr **out_condition,
                                   struct gar_asof *out, struct gar_error *err)
{
    struct gar_type on = {0};
    GAR_TRY(gar_expr_type(left, left_schema, false, &on, err));
    if (!has_distance(on)) {
        char type[64];
        return gar_error_set(err, GAR_ERR_TYPE,
                             "join_asof: `on` '%s' is %s; it must be a number, a date or a time",
                             gar_expr_name(left), gar_type_text(on, type, (int64_t)sizeof type));
    }
    if (gar_expr_is_constant(left) || gar_expr_is_constant(right)) {
        return gar_error_set(err, GAR_ERR_VALUE, "join_asof: `on` must name a column of each side");
    }
    *out = (struct gar_asof){.kind = spec->kind};
    if (spec->tolerance != NULL) {
        GAR_TRY(read_tolerance(spec, on, out, err));
    }
    struct gar_expr *sides[2] = {left, right};
    struct gar_expr *both[2] = {NULL, NULL};
    const char *at_least = spec->excludes_equal ? "greater" : "greater_equal";
    const char *at_most = spec->excludes_equal ? "less" : "less_equal";
    if (spec->kind != GAR_ASOF_NEAREST) {
        const char *name = spec->kind == GAR_ASOF_BACKWARD ? at_least : at_most;
        return gar_expr_new_call_by_name(name, sides, 2, out_condition, err);
    }
    enum gar_status status = gar_expr_new_call_by_name(at_least, sides, 2, &both[0], err);
    if (status >= 0) {
        status = gar_expr_new_call_by_name(at_most, sides, 2, &both[1], err);
    }
    if (status >= 0) {
        status = gar_expr_new_call_by_name("or", both, 2, out_condition, err);
    }
    gar_expr_unref(both[0]);
    gar_expr_unref(both[1]);
    return status;
}

struct gar_asof_on gar_plan_asof_on(const struct gar_plan *join)
{
    const struct gar_expr *condition = join->exprs[2 * join->key_count];
    if (gar_expr_is_call(condition, "or")) {
        condition = condition->args[0];
    }
    const bool excludes_equal =
        gar_expr_is_call(condition, "greater") || gar_expr_is_call(condition, "less");
    return (struct gar_asof_on){condition->args[0], condition->args[1], excludes_equal};
}
