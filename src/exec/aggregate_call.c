/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/aggregate_call.h"

#include <string.h>

static const struct gar_expr *bare(const struct gar_expr *expr)
{
    while (expr->kind == GAR_EXPR_ALIAS) {
        expr = expr->args[0];
    }
    return expr;
}

static const struct gar_value *literal_of(const struct gar_expr *expr)
{
    expr = bare(expr);
    return expr->kind == GAR_EXPR_LITERAL ? &expr->value : NULL;
}

static const struct {
    const char *name;
    enum gar_aggregate_kind kind;
} kinds[] = {
    {"sum", GAR_AGGREGATE_SUM},
    {"product", GAR_AGGREGATE_PRODUCT},
    {"mean", GAR_AGGREGATE_MEAN},
    {"min", GAR_AGGREGATE_MIN},
    {"max", GAR_AGGREGATE_MAX},
    {"count", GAR_AGGREGATE_COUNT},
    {"stddev", GAR_AGGREGATE_STDDEV},
    {"var", GAR_AGGREGATE_VAR},
    {"any_value", GAR_AGGREGATE_ANY_VALUE},
    {"bool_and", GAR_AGGREGATE_BOOL_AND},
    {"bool_or", GAR_AGGREGATE_BOOL_OR},
    {"count_distinct", GAR_AGGREGATE_COUNT_DISTINCT},
    {"skew", GAR_AGGREGATE_SKEW},
    {"kurtosis", GAR_AGGREGATE_KURTOSIS},
    {"corr", GAR_AGGREGATE_CORR},
    {"covar_pop", GAR_AGGREGATE_COVAR_POP},
    {"covar_samp", GAR_AGGREGATE_COVAR_SAMP},
    {"approx_count_distinct", GAR_AGGREGATE_APPROX_COUNT_DISTINCT},
    {"approx_percentiles", GAR_AGGREGATE_APPROX_PERCENTILE},
    {"percentile", GAR_AGGREGATE_PERCENTILE},
    {"median", GAR_AGGREGATE_PERCENTILE},
    {"mode", GAR_AGGREGATE_MODE},
    {"string_agg", GAR_AGGREGATE_STRING_AGG},
    {"first", GAR_AGGREGATE_FIRST},
    {"last", GAR_AGGREGATE_LAST},
    {"arg_min", GAR_AGGREGATE_ARG_MIN},
    {"arg_max", GAR_AGGREGATE_ARG_MAX},
};

static enum gar_status read_kind(const struct gar_expr *expr, enum gar_aggregate_kind *out,
                                 struct gar_error *err)
{
    if (expr->kind != GAR_EXPR_CALL) {
        return gar_error_set(err, GAR_ERR_INTERNAL,
                             "an aggregation over something that is not an aggregate call");
    }
    const char *name = gar_function_info(expr->function)->name;
    for (int64_t i = 0; i < GAR_COUNT_OF(kinds); i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            *out = kinds[i].kind;
            return GAR_OK;
        }
    }
    return gar_error_set(err, GAR_ERR_UNSUPPORTED, "the aggregate function '%s' cannot be run yet",
                         name);
}

/* An argument that has to be a literal that is not null. */
static enum gar_status literal_option(const struct gar_expr *expr, int64_t i,
                                      const struct gar_value **out, struct gar_error *err)
{
    *out = literal_of(expr->args[i]);
    if (*out == NULL || !(*out)->is_valid) {
        return gar_error_set(err, GAR_ERR_VALUE, "%s: argument %lld must be a literal",
                             gar_function_info(expr->function)->name, (long long)(i + 1));
    }
    return GAR_OK;
}

static double fraction_of(const struct gar_value *value)
{
    if (gar_type_is_float(value->type)) {
        return value->f64;
    }
    return value->type.id == GAR_DECIMAL128 ? gar_decimal_to_double(value->i128, value->type.scale)
                                            : (double)value->i64;
}

/* first and last: an order that is not null itself, and whether nulls are passed over. */
static enum gar_status read_first(const struct gar_expr *expr, struct gar_aggregate_call *out,
                                  struct gar_error *err)
{
    const struct gar_value *order = literal_of(expr->args[1]);
    if (order == NULL || order->is_valid) {
        out->second = expr->args[1];
    }
    if (expr->arg_count > 2) {
        const struct gar_value *value = NULL;
        GAR_TRY(literal_option(expr, 2, &value, err));
        out->spec.ignore_nulls = value->boolean;
    }
    return GAR_OK;
}

static enum gar_status read_options(const struct gar_expr *expr, struct gar_aggregate_call *out,
                                    struct gar_error *err)
{
    struct gar_aggregate_spec *spec = &out->spec;
    const struct gar_value *value = NULL;
    switch (spec->kind) {
    case GAR_AGGREGATE_ARG_MIN:
    case GAR_AGGREGATE_ARG_MAX:
    case GAR_AGGREGATE_CORR:
    case GAR_AGGREGATE_COVAR_POP:
    case GAR_AGGREGATE_COVAR_SAMP: out->second = expr->args[1]; return GAR_OK;
    case GAR_AGGREGATE_FIRST:
    case GAR_AGGREGATE_LAST: return read_first(expr, out, err);
    default: break;
    }
    GAR_TRY(literal_option(expr, 1, &value, err));
    switch (spec->kind) {
    case GAR_AGGREGATE_COUNT:
        if (strcmp(value->text.data, "all") == 0) {
            spec->kind = GAR_AGGREGATE_COUNT_ALL;
            out->argument = NULL;
        } else if (strcmp(value->text.data, "null") == 0) {
            spec->kind = GAR_AGGREGATE_COUNT_NULL;
        }
        break;
    case GAR_AGGREGATE_PERCENTILE:
    case GAR_AGGREGATE_APPROX_PERCENTILE: spec->fraction = fraction_of(value); break;
    case GAR_AGGREGATE_STRING_AGG:
        spec->delimiter = value->text.data;
        spec->delimiter_size = value->text.size;
        break;
    default: spec->ddof = value->i64; break;
    }
    return GAR_OK;
}

enum gar_status gar_aggregate_call_read(const struct gar_expr *expr, struct gar_aggregate_call *out,
                                        struct gar_error *err)
{
    expr = bare(expr);
    memset(out, 0, sizeof *out);
    GAR_TRY(read_kind(expr, &out->spec.kind, err));
    out->spec.ddof = 1;
    out->spec.fraction = 0.5;
    out->spec.delimiter = "";
    out->argument = expr->arg_count > 0 ? expr->args[0] : NULL;
    return expr->arg_count > 1 ? read_options(expr, out, err) : GAR_OK;
}

void gar_aggregate_call_set_types(struct gar_aggregate_spec *spec, struct gar_type argument,
                                  struct gar_type second, bool has_second, struct gar_type result)
{
    spec->argument = argument;
    spec->second = second;
    /* An order in which all rows are equal is none. */
    spec->has_second =
        has_second && !(second.id == GAR_NULL &&
                        (spec->kind == GAR_AGGREGATE_FIRST || spec->kind == GAR_AGGREGATE_LAST));
    spec->result = result;
}
