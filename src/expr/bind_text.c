/* SPDX-License-Identifier: Apache-2.0 */
/* Typing of functions over text, dates and times. */
#include <string.h>

#include "expr/bind_priv.h"

static enum gar_status want_text(struct gar_binder *binder, const struct gar_function *function,
                                 struct gar_bound **arg, struct gar_error *err)
{
    if ((*arg)->type.id == GAR_NULL) {
        return gar_bound_cast(binder, *arg, gar_type_of(GAR_STRING), false, arg, err);
    }
    if ((*arg)->type.id != GAR_STRING) {
        return gar_bind_type_error(function, "a string", (*arg)->type, err);
    }
    return GAR_OK;
}

static enum gar_status want_integer(struct gar_binder *binder, const struct gar_function *function,
                                    struct gar_bound **arg, struct gar_error *err)
{
    if ((*arg)->type.id != GAR_NULL && !gar_type_is_integer((*arg)->type)) {
        return gar_bind_type_error(function, "an integer there", (*arg)->type, err);
    }
    return gar_bound_cast(binder, *arg, gar_type_of(GAR_INT64), false, arg, err);
}

static enum gar_status want_texts(struct gar_binder *binder, const struct gar_function *function,
                                  struct gar_bound **args, int64_t count, struct gar_error *err)
{
    for (int64_t i = 0; i < count; i++) {
        GAR_TRY(want_text(binder, function, &args[i], err));
    }
    return GAR_OK;
}

enum gar_status gar_bind_like(struct gar_binder *binder, const struct gar_function *function,
                              struct gar_bound **args, int64_t count, struct gar_bound **out,
                              struct gar_error *err)
{
    GAR_TRY(want_texts(binder, function, args, count, err));
    GAR_TRY(gar_bound_new(binder, GAR_OP_LIKE, gar_type_of(GAR_BOOL), args, count, out, err));
    (*out)->param[0] = function->id == GAR_FN_ILIKE;
    return GAR_OK;
}

enum gar_status gar_bind_text_test(struct gar_binder *binder, const struct gar_function *function,
                                   struct gar_bound **args, int64_t count, struct gar_bound **out,
                                   struct gar_error *err)
{
    GAR_TRY(want_texts(binder, function, args, count, err));
    const enum gar_op op = function->id == GAR_FN_CONTAINS     ? GAR_OP_CONTAINS
                           : function->id == GAR_FN_STARTSWITH ? GAR_OP_STARTSWITH
                                                               : GAR_OP_ENDSWITH;
    return gar_bound_new(binder, op, gar_type_of(GAR_BOOL), args, count, out, err);
}

enum gar_status gar_bind_text1(struct gar_binder *binder, const struct gar_function *function,
                               struct gar_bound **args, int64_t count, struct gar_bound **out,
                               struct gar_error *err)
{
    GAR_TRY(want_texts(binder, function, args, count, err));
    GAR_TRY(gar_bound_new(binder, GAR_OP_TEXT1, gar_type_of(GAR_STRING), args, count, out, err));
    (*out)->param[0] = function->id;
    return GAR_OK;
}

enum gar_status gar_bind_length(struct gar_binder *binder, const struct gar_function *function,
                                struct gar_bound **args, int64_t count, struct gar_bound **out,
                                struct gar_error *err)
{
    const bool is_binary = args[0]->type.id == GAR_BINARY;
    if (!is_binary) {
        GAR_TRY(want_texts(binder, function, args, count, err));
    }
    const enum gar_op op =
        is_binary || function->id == GAR_FN_LENGTH_BYTES ? GAR_OP_LENGTH_BYTES : GAR_OP_LENGTH;
    return gar_bound_new(binder, op, gar_type_of(GAR_INT64), args, count, out, err);
}

enum gar_status gar_bind_substr(struct gar_binder *binder, const struct gar_function *function,
                                struct gar_bound **args, int64_t count, struct gar_bound **out,
                                struct gar_error *err)
{
    struct gar_bound *parts[3] = {args[0], args[1], count == 3 ? args[2] : NULL};
    GAR_TRY(want_text(binder, function, &parts[0], err));
    GAR_TRY(want_integer(binder, function, &parts[1], err));
    if (count == 3) {
        GAR_TRY(want_integer(binder, function, &parts[2], err));
    }
    if (function->id == GAR_FN_RIGHT) {
        return gar_bound_new(binder, GAR_OP_RIGHT, gar_type_of(GAR_STRING), parts, 2, out, err);
    }
    if (function->id == GAR_FN_LEFT) {
        struct gar_value zero = {.type = gar_type_of(GAR_INT64), .is_valid = true, .i64 = 0};
        parts[2] = parts[1];
        GAR_TRY(gar_bound_const(binder, &zero, false, &parts[1], err));
        count = 3;
    }
    return gar_bound_new(binder, GAR_OP_SUBSTR, gar_type_of(GAR_STRING), parts, count, out, err);
}

enum gar_status gar_bind_concat(struct gar_binder *binder, const struct gar_function *function,
                                struct gar_bound **args, int64_t count, struct gar_bound **out,
                                struct gar_error *err)
{
    GAR_TRY(want_texts(binder, function, args, count, err));
    if (count == 1) {
        *out = args[0];
        return GAR_OK;
    }
    return gar_bound_new(binder, GAR_OP_CONCAT, gar_type_of(GAR_STRING), args, count, out, err);
}

enum gar_status gar_bind_replace(struct gar_binder *binder, const struct gar_function *function,
                                 struct gar_bound **args, int64_t count, struct gar_bound **out,
                                 struct gar_error *err)
{
    GAR_TRY(want_texts(binder, function, args, count, err));
    return gar_bound_new(binder, GAR_OP_REPLACE, gar_type_of(GAR_STRING), args, count, out, err);
}

static bool is_clock_part(enum gar_function_id id)
{
    return id == GAR_FN_HOUR || id == GAR_FN_MINUTE || id == GAR_FN_SECOND ||
           id == GAR_FN_MILLISECOND || id == GAR_FN_MICROSECOND || id == GAR_FN_NANOSECOND;
}

enum gar_status gar_bind_date_part(struct gar_binder *binder, const struct gar_function *function,
                                   struct gar_bound **args, int64_t count, struct gar_bound **out,
                                   struct gar_error *err)
{
    const bool is_clock = is_clock_part(function->id);
    const uint8_t id = args[0]->type.id;
    if (id == GAR_NULL) {
        GAR_TRY(gar_bound_cast(binder, args[0], gar_type_timestamp(GAR_MICRO, NULL), false,
                               &args[0], err));
    } else if (id != GAR_TIMESTAMP && id != (is_clock ? GAR_TIME : GAR_DATE)) {
        return gar_bind_type_error(
            function, is_clock ? "a timestamp or time" : "a date or timestamp", args[0]->type, err);
    }
    GAR_TRY(gar_bound_new(binder, GAR_OP_DATE_PART, gar_type_of(GAR_INT32), args, count, out, err));
    (*out)->param[0] = function->id;
    return GAR_OK;
}

enum gar_status gar_bind_date_of(struct gar_binder *binder, const struct gar_function *function,
                                 struct gar_bound **args, int64_t count, struct gar_bound **out,
                                 struct gar_error *err)
{
    const bool is_date = function->id == GAR_FN_DATE;
    const struct gar_type from = args[0]->type;
    struct gar_type type = gar_type_of(GAR_DATE);
    if (!is_date) {
        type = gar_type_with_unit(
            GAR_TIME, from.id == GAR_TIMESTAMP && from.unit == GAR_NANO ? GAR_NANO : GAR_MICRO);
    }
    if (from.id == GAR_TIMESTAMP) {
        return gar_bound_new(binder, GAR_OP_DATE_OF, type, args, count, out, err);
    }
    if (from.id == GAR_NULL || from.id == GAR_STRING ||
        from.id == (is_date ? GAR_DATE : GAR_TIME)) {
        return gar_bound_cast(binder, args[0], from.id == type.id ? from : type, false, out, err);
    }
    return gar_bind_type_error(
        function, is_date ? "a date, timestamp or string" : "a timestamp, time or string", from,
        err);
}

/* "month", "months", "1 month". */
static bool parse_unit(const char *text, int64_t bytes, enum gar_trunc_unit *out)
{
    static const char *const names[] = {"nanosecond", "microsecond", "millisecond", "second",
                                        "minute",     "hour",        "day",         "week",
                                        "month",      "quarter",     "year"};
    if (bytes > 2 && memcmp(text, "1 ", 2) == 0) {
        text += 2;
        bytes -= 2;
    }
    for (int32_t i = 0; i < GAR_COUNT_OF(names); i++) {
        const int64_t size = (int64_t)strlen(names[i]);
        const bool is_plural = bytes == size + 1 && (text[size] == 's' || text[size] == 'S');
        if (bytes != size && !is_plural) {
            continue;
        }
        int64_t same = 0;
        while (same < size && (text[same] | 0x20) == names[i][same]) {
            same++;
        }
        if (same == size) {
            *out = (enum gar_trunc_unit)i;
            return true;
        }
    }
    return false;
}

enum gar_status gar_bind_date_trunc(struct gar_binder *binder, const struct gar_function *function,
                                    struct gar_bound **args, int64_t count, struct gar_bound **out,
                                    struct gar_error *err)
{
    (void)count;
    const struct gar_bound *unit_arg = args[0];
    if (unit_arg->op != GAR_OP_CONST || unit_arg->type.id != GAR_STRING ||
        !unit_arg->value->is_valid) {
        return gar_error_set(err, GAR_ERR_TYPE,
                             "date_trunc takes a literal string as its first argument, the unit");
    }
    enum gar_trunc_unit unit;
    if (!parse_unit(unit_arg->value->text.data, unit_arg->value->text.size, &unit)) {
        char quoted[80];
        gar_error_quote(unit_arg->value->text.data, unit_arg->value->text.size, quoted,
                        (int64_t)sizeof quoted);
        return gar_error_set(err, GAR_ERR_VALUE,
                             "date_trunc: unknown unit '%s'; it takes nanosecond, microsecond, "
                             "millisecond, second, minute, "
                             "hour, day, week, month, quarter or year",
                             quoted);
    }
    const struct gar_type type = args[1]->type;
    if (type.id != GAR_DATE && type.id != GAR_TIMESTAMP && type.id != GAR_NULL) {
        return gar_bind_type_error(function, "a date or timestamp", type, err);
    }
    if (type.id == GAR_NULL || (type.id == GAR_DATE && unit <= GAR_TRUNC_DAY)) {
        *out = args[1];
        return GAR_OK;
    }
    GAR_TRY(gar_bound_new(binder, GAR_OP_DATE_TRUNC, type, &args[1], 1, out, err));
    (*out)->param[0] = unit;
    return GAR_OK;
}

enum gar_status gar_bind_add_months(struct gar_binder *binder, const struct gar_function *function,
                                    struct gar_bound **args, int64_t count, struct gar_bound **out,
                                    struct gar_error *err)
{
    if (args[0]->type.id == GAR_NULL) {
        GAR_TRY(gar_bound_cast(binder, args[0], gar_type_of(GAR_DATE), false, &args[0], err));
    }
    if (args[0]->type.id != GAR_DATE && args[0]->type.id != GAR_TIMESTAMP) {
        return gar_bind_type_error(function, "a date or timestamp", args[0]->type, err);
    }
    GAR_TRY(want_integer(binder, function, &args[1], err));
    return gar_bound_new(binder, GAR_OP_ADD_MONTHS, args[0]->type, args, count, out, err);
}

enum gar_status gar_bind_interval(struct gar_binder *binder, const struct gar_function *function,
                                  struct gar_bound **args, int64_t count, struct gar_bound **out,
                                  struct gar_error *err)
{
    static const char *const parts[] = {"months", "days", "nanoseconds"};
    GAR_TRY(gar_bound_new(binder, GAR_OP_INTERVAL, gar_type_of(GAR_NULL), NULL, 0, out, err));
    for (int64_t i = 0; i < count; i++) {
        GAR_TRY(gar_bind_literal_i64(function, parts[i], args[i], &(*out)->param[i], err));
    }
    return GAR_OK;
}
