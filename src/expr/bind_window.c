/* SPDX-License-Identifier: Apache-2.0 */
/* Typing of window functions. Their work is done by exec/. */
#include <string.h>

#include "expr/bind_priv.h"

static enum gar_status windowed(struct gar_binder *binder, const struct gar_function *function,
                                struct gar_type type, struct gar_bound **args, int64_t count,
                                struct gar_bound **out, struct gar_error *err)
{
    GAR_TRY(gar_bound_new(binder, GAR_OP_AGGREGATE, type, args, count, out, err));
    (*out)->function = function;
    return GAR_OK;
}

static enum gar_status expect_positive(const struct gar_function *function, const char *what,
                                       const struct gar_bound *arg, struct gar_error *err)
{
    int64_t value = 0;
    GAR_TRY(gar_bind_literal_i64(function, what, arg, &value, err));
    if (value < 1) {
        return gar_error_set(err, GAR_ERR_VALUE, "%s: %s is %lld, it must be at least 1",
                             function->info.name, what, (long long)value);
    }
    return GAR_OK;
}

enum gar_status gar_bind_rank(struct gar_binder *binder, const struct gar_function *function,
                              struct gar_bound **args, int64_t count, struct gar_bound **out,
                              struct gar_error *err)
{
    const bool is_share = function->id == GAR_FN_PERCENT_RANK || function->id == GAR_FN_CUME_DIST;
    if (function->id == GAR_FN_NTILE) {
        GAR_TRY(expect_positive(function, "buckets", args[0], err));
    }
    return windowed(binder, function, gar_type_of(is_share ? GAR_FLOAT64 : GAR_INT64), args, count,
                    out, err);
}

enum gar_status gar_bind_shift(struct gar_binder *binder, const struct gar_function *function,
                               struct gar_bound **args, int64_t count, struct gar_bound **out,
                               struct gar_error *err)
{
    if (count > 1) {
        int64_t offset = 0;
        GAR_TRY(gar_bind_literal_i64(function, "offset", args[1], &offset, err));
    }
    if (count > 2 && !gar_cast_exists(args[2]->type, args[0]->type)) {
        return gar_bind_type_error(function, "a default of the column's type", args[2]->type, err);
    }
    return windowed(binder, function, args[0]->type, args, count, out, err);
}

enum gar_status gar_bind_value(struct gar_binder *binder, const struct gar_function *function,
                               struct gar_bound **args, int64_t count, struct gar_bound **out,
                               struct gar_error *err)
{
    const int64_t flag = function->id == GAR_FN_NTH_VALUE ? 2 : 1;
    if (function->id == GAR_FN_NTH_VALUE) {
        GAR_TRY(expect_positive(function, "n", args[1], err));
    }
    if (count > flag && (args[flag]->op != GAR_OP_CONST || args[flag]->type.id != GAR_BOOL ||
                         !args[flag]->value->is_valid)) {
        return gar_error_set(err, GAR_ERR_VALUE, "%s: ignore_nulls must be a literal true or false",
                             function->info.name);
    }
    return windowed(binder, function, args[0]->type, args, count, out, err);
}
