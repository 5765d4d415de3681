/* SPDX-License-Identifier: Apache-2.0 */
/* Typing: names to positions, common types, implicit casts. What each function takes is in bind_*.c. */
#include <string.h>

#include "base/alloc.h"
#include "base/calendar.h"
#include "expr/bind_priv.h"
#include "expr/expr.h"
#include "expr/fold_priv.h"

/* Things with destructors that bound trees point to. */
struct gar_binder_item {
    struct gar_binder_item *next;
    struct gar_value value;
    struct gar_column *column;
};

void gar_binder_destroy(struct gar_binder *binder)
{
    for (struct gar_binder_item *item = binder->items; item != NULL; item = item->next) {
        gar_value_destroy(&item->value);
        gar_column_unref(item->column);
    }
    binder->items = NULL;
    gar_arena_destroy(&binder->arena);
}

static enum gar_status arena_calloc(struct gar_binder *binder, int64_t count, int64_t item_bytes,
                                    void **out, struct gar_error *err)
{
    *out = gar_arena_calloc(&binder->arena, count, item_bytes);
    return *out != NULL ? GAR_OK : gar_error_nomem(err, count * item_bytes);
}

enum gar_status gar_bound_new(struct gar_binder *binder, enum gar_op op, struct gar_type type,
                              struct gar_bound *const *args, int64_t count, struct gar_bound **out,
                              struct gar_error *err)
{
    void *memory = NULL;
    GAR_TRY(arena_calloc(binder, 1, (int64_t)sizeof(struct gar_bound), &memory, err));
    struct gar_bound *node = memory;
    node->op = op;
    node->type = type;
    node->arg_count = count;
    if (count > 0) {
        GAR_TRY(arena_calloc(binder, count, (int64_t)sizeof(struct gar_bound *), &memory, err));
        node->args = memory;
        memcpy(node->args, args, (size_t)count * sizeof *args);
    }
    *out = node;
    return GAR_OK;
}

enum gar_status gar_bound_const(struct gar_binder *binder, struct gar_value *value, bool is_literal,
                                struct gar_bound **out, struct gar_error *err)
{
    struct gar_binder_item *item = gar_arena_calloc(&binder->arena, 1, (int64_t)sizeof *item);
    if (item == NULL) {
        gar_value_destroy(value);
        return gar_error_nomem(err, (int64_t)sizeof *item);
    }
    item->value = *value;
    memset(value, 0, sizeof *value);
    item->next = binder->items;
    binder->items = item;
    GAR_TRY(gar_bound_new(binder, GAR_OP_CONST, item->value.type, NULL, 0, out, err));
    (*out)->value = &item->value;
    (*out)->is_literal = is_literal;
    return GAR_OK;
}

bool gar_bound_is_const_null(const struct gar_bound *node)
{
    return node->op == GAR_OP_CONST && !node->value->is_valid;
}

enum gar_status gar_bind_type_error(const struct gar_function *function, const char *takes,
                                    struct gar_type given, struct gar_error *err)
{
    char text[64];
    return gar_error_set(err, GAR_ERR_TYPE, "%s takes %s, not %s", function->info.name, takes,
                         gar_type_text(given, text, (int64_t)sizeof text));
}

enum gar_status gar_bind_literal_i64(const struct gar_function *function, const char *what,
                                     const struct gar_bound *arg, int64_t *out,
                                     struct gar_error *err)
{
    if (arg->op == GAR_OP_CONST && arg->value->is_valid) {
        if (gar_type_is_signed(arg->type)) {
            *out = arg->value->i64;
            return GAR_OK;
        }
        if (gar_type_is_unsigned(arg->type) && arg->value->u64 <= INT64_MAX) {
            *out = (int64_t)arg->value->u64;
            return GAR_OK;
        }
    }
    return gar_error_set(err, GAR_ERR_TYPE, "%s takes a literal integer as %s", function->info.name,
                         what);
}

int32_t gar_type_integer_digits(struct gar_type type)
{
    switch (type.id) {
    case GAR_INT8:
    case GAR_UINT8: return 3;
    case GAR_INT16:
    case GAR_UINT16: return 5;
    case GAR_INT32:
    case GAR_UINT32: return 10;
    case GAR_INT64: return 19;
    case GAR_UINT64: return 20;
    default: return 0;
    }
}

/* The integer type for values of both. uint64 with a signed type goes to int64, checked. */
static struct gar_type common_integer(struct gar_type a, struct gar_type b)
{
    const int32_t a_width = gar_type_width(a);
    const int32_t b_width = gar_type_width(b);
    if (gar_type_is_signed(a) == gar_type_is_signed(b)) {
        return a_width >= b_width ? a : b;
    }
    const int32_t signed_width = gar_type_is_signed(a) ? a_width : b_width;
    const int32_t unsigned_width = gar_type_is_signed(a) ? b_width : a_width;
    const int32_t width = signed_width > 2 * unsigned_width ? signed_width : 2 * unsigned_width;
    return gar_type_of(width <= 2 ? GAR_INT16 : width <= 4 ? GAR_INT32 : GAR_INT64);
}

static bool common_decimal(struct gar_type a, struct gar_type b, struct gar_type *out)
{
    const struct gar_type x =
        a.id == GAR_DECIMAL128 ? a : gar_type_decimal(gar_type_integer_digits(a), 0);
    const struct gar_type y =
        b.id == GAR_DECIMAL128 ? b : gar_type_decimal(gar_type_integer_digits(b), 0);
    const int32_t scale = x.scale > y.scale ? x.scale : y.scale;
    const int32_t x_whole = x.precision - x.scale;
    const int32_t y_whole = y.precision - y.scale;
    const int32_t precision = (x_whole > y_whole ? x_whole : y_whole) + scale;
    /* Beyond 38 digits the values are checked when they are cast. */
    *out = gar_type_decimal(
        precision > GAR_DECIMAL_PRECISION_MAX ? GAR_DECIMAL_PRECISION_MAX : precision, scale);
    return true;
}

static bool common_numeric(struct gar_type a, struct gar_type b, struct gar_type *out)
{
    if (gar_type_is_float(a) || gar_type_is_float(b)) {
        const struct gar_type other = gar_type_is_float(a) ? b : a;
        const struct gar_type given = gar_type_is_float(a) ? a : b;
        const bool is_narrow =
            given.id == GAR_FLOAT32 &&
            (other.id == GAR_FLOAT32 || (gar_type_is_integer(other) && gar_type_width(other) <= 2));
        *out = gar_type_of(is_narrow ? GAR_FLOAT32 : GAR_FLOAT64);
        return true;
    }
    if (a.id == GAR_DECIMAL128 || b.id == GAR_DECIMAL128) {
        return common_decimal(a, b, out);
    }
    *out = common_integer(a, b);
    return true;
}

bool gar_type_common(struct gar_type a, struct gar_type b, bool zones_may_differ,
                     struct gar_type *out)
{
    if (gar_type_equal(a, b) || b.id == GAR_NULL) {
        *out = a;
        return true;
    }
    if (a.id == GAR_NULL) {
        *out = b;
        return true;
    }
    if (gar_type_is_numeric(a) && gar_type_is_numeric(b)) {
        return common_numeric(a, b, out);
    }
    const bool is_date_with_timestamp =
        (a.id == GAR_DATE && b.id == GAR_TIMESTAMP) || (a.id == GAR_TIMESTAMP && b.id == GAR_DATE);
    if (is_date_with_timestamp) {
        *out = a.id == GAR_TIMESTAMP ? a : b;
        return true;
    }
    if (a.id == b.id && (a.id == GAR_TIMESTAMP || a.id == GAR_DURATION || a.id == GAR_TIME)) {
        if ((a.zone == NULL) != (b.zone == NULL) || (a.zone != b.zone && !zones_may_differ)) {
            return false;
        }
        *out = a;
        out->unit = a.unit > b.unit ? a.unit : b.unit;
        return true;
    }
    return false;
}

bool gar_type_for_equality(struct gar_type a, struct gar_type b, struct gar_type *out)
{
    const bool is_mixed_sign = (a.id == GAR_UINT64 && gar_type_is_signed(b)) ||
                               (b.id == GAR_UINT64 && gar_type_is_signed(a));
    if (is_mixed_sign) {
        *out = gar_type_decimal(20, 0);
        return true;
    }
    if (a.id == GAR_DECIMAL128 && b.id == GAR_DECIMAL128) {
        const int32_t a_whole = a.precision - a.scale;
        const int32_t b_whole = b.precision - b.scale;
        const int32_t scale = a.scale > b.scale ? a.scale : b.scale;
        if ((a_whole > b_whole ? a_whole : b_whole) + scale > GAR_DECIMAL_PRECISION_MAX) {
            return false;
        }
    }
    return gar_type_common(a, b, true, out);
}

bool gar_cast_exists(struct gar_type from, struct gar_type to)
{
    if (from.id == to.id || from.id == GAR_NULL) {
        return true;
    }
    const bool is_from_number = gar_type_is_numeric(from) || from.id == GAR_BOOL;
    switch ((enum gar_type_id)to.id) {
    case GAR_NULL: return false;
    case GAR_BOOL:
    case GAR_INT8:
    case GAR_INT16:
    case GAR_UINT8:
    case GAR_UINT16:
    case GAR_UINT32:
    case GAR_UINT64:
    case GAR_FLOAT32:
    case GAR_FLOAT64:
    case GAR_DECIMAL128: return is_from_number || from.id == GAR_STRING;
    case GAR_INT32: return is_from_number || from.id == GAR_STRING || from.id == GAR_DATE;
    case GAR_INT64: return is_from_number || from.id == GAR_STRING || gar_type_is_temporal(from);
    case GAR_STRING: return true;
    case GAR_BINARY: return from.id == GAR_STRING;
    case GAR_DATE: return from.id == GAR_STRING || from.id == GAR_TIMESTAMP || from.id == GAR_INT32;
    case GAR_TIME: return from.id == GAR_STRING || from.id == GAR_TIMESTAMP || from.id == GAR_INT64;
    case GAR_TIMESTAMP: return from.id == GAR_STRING || from.id == GAR_DATE || from.id == GAR_INT64;
    case GAR_DURATION: return from.id == GAR_INT64;
    case GAR_LIST:
    case GAR_FIXED_LIST:
    case GAR_STRUCT:
    case GAR_MAP:
    case GAR_TYPE_ID_COUNT: return false;
    }
    return false;
}

/* An integer constant as another numeric type, if the value is kept; else no literal is made. */
static bool integer_as(const struct gar_value *from, struct gar_type type, struct gar_value *out)
{
    const bool is_signed = gar_type_is_signed(from->type);
    if (!is_signed && from->u64 > INT64_MAX) {
        *out = (struct gar_value){.type = type, .is_valid = true, .u64 = from->u64};
        return type.id == GAR_UINT64;
    }
    const int64_t v = is_signed ? from->i64 : (int64_t)from->u64;
    *out = (struct gar_value){.type = type, .is_valid = true};
    const int32_t bits = 8 * gar_type_width(type);
    if (gar_type_is_signed(type)) {
        out->i64 = v;
        return bits == 64 || (v >= -((int64_t)1 << (bits - 1)) && v < ((int64_t)1 << (bits - 1)));
    }
    if (gar_type_is_unsigned(type)) {
        out->u64 = (uint64_t)v;
        return v >= 0 && (bits == 64 || v < ((int64_t)1 << bits));
    }
    if (gar_type_is_float(type)) {
        const int64_t exact_max = type.id == GAR_FLOAT32 ? (int64_t)1 << 24 : (int64_t)1 << 53;
        out->f64 = (double)v;
        return v >= -exact_max && v <= exact_max;
    }
    if (type.id == GAR_DECIMAL128) {
        return gar_decimal_rescale(v, type.scale, &out->i128) &&
               gar_decimal_fits(out->i128, type.precision);
    }
    return false;
}

enum gar_status gar_bound_cast(struct gar_binder *binder, struct gar_bound *node,
                               struct gar_type type, bool is_try, struct gar_bound **out,
                               struct gar_error *err)
{
    if (gar_type_equal(node->type, type)) {
        *out = node;
        return GAR_OK;
    }
    if (!gar_cast_exists(node->type, type)) {
        char from_text[64];
        char to_text[64];
        return gar_error_set(err, GAR_ERR_TYPE, "there is no cast from %s to %s",
                             gar_type_text(node->type, from_text, (int64_t)sizeof from_text),
                             gar_type_text(type, to_text, (int64_t)sizeof to_text));
    }
    if (node->op == GAR_OP_CONST) {
        struct gar_value value = {.type = type};
        if (!node->value->is_valid ||
            (gar_type_is_integer(node->type) && gar_type_is_numeric(type) &&
             integer_as(node->value, type, &value))) {
            return gar_bound_const(binder, &value, node->is_literal, out, err);
        }
    }
    GAR_TRY(gar_bound_new(binder, GAR_OP_CAST, type, &node, 1, out, err));
    (*out)->is_try = is_try;
    return GAR_OK;
}

/* The type a user's integer literal takes beside `other`; false to leave it as it is. */
static bool integer_literal_type(const struct gar_value *value, struct gar_type other,
                                 bool is_comparison, struct gar_type *out)
{
    struct gar_value kept;
    if (gar_type_is_integer(other)) {
        const bool is_wide =
            gar_type_is_signed(other) ? gar_type_width(other) >= 4 : other.id == GAR_UINT64;
        if ((is_wide || is_comparison) && integer_as(value, other, &kept)) {
            *out = other;
            return true;
        }
        *out = gar_type_of(GAR_INT32);
        return integer_as(value, *out, &kept);
    }
    if (other.id == GAR_FLOAT32) {
        *out = other;
        return integer_as(value, other, &kept);
    }
    if (other.id == GAR_DECIMAL128) {
        uint64_t rest = gar_type_is_signed(value->type) && value->i64 < 0 ? 0 - (uint64_t)value->i64
                                                                          : value->u64;
        int32_t digits = 1;
        while (rest >= 10) {
            rest /= 10;
            digits++;
        }
        *out = gar_type_decimal(digits, 0);
        return true;
    }
    return false;
}

enum gar_status gar_bind_adapt(struct gar_binder *binder, struct gar_bound **args, int64_t count,
                               bool is_comparison, struct gar_error *err)
{
    /* The common type of everything that is no literal. */
    struct gar_type other = gar_type_of(GAR_NULL);
    for (int64_t i = 0; i < count; i++) {
        if (!args[i]->is_literal && !gar_type_common(other, args[i]->type, true, &other)) {
            return GAR_OK; /* the caller reports it */
        }
    }
    for (int64_t i = 0; i < count && other.id != GAR_NULL; i++) {
        struct gar_bound *arg = args[i];
        if (!arg->is_literal || !arg->value->is_valid) {
            continue;
        }
        struct gar_type type;
        if (gar_type_is_integer(arg->type) &&
            integer_literal_type(arg->value, other, is_comparison, &type)) {
            GAR_TRY(gar_bound_cast(binder, arg, type, false, &args[i], err));
        } else if (arg->type.id == GAR_STRING && gar_type_is_temporal(other) &&
                   other.id != GAR_DURATION) {
            const bool has_time = other.id == GAR_DATE && arg->value->text.size > 10;
            type = has_time ? gar_type_timestamp(GAR_MICRO, NULL) : other;
            GAR_TRY(gar_bound_cast(binder, arg, type, false, &args[i], err));
            GAR_TRY(gar_bound_fold(binder, &args[i], err));
        }
    }
    return GAR_OK;
}

enum gar_status gar_bind_common(struct gar_binder *binder, const struct gar_function *function,
                                struct gar_bound **args, int64_t count, bool is_comparison,
                                struct gar_type *out, struct gar_error *err)
{
    GAR_TRY(gar_bind_adapt(binder, args, count, is_comparison, err));
    struct gar_type type = gar_type_of(GAR_NULL);
    for (int64_t i = 0; i < count; i++) {
        struct gar_type next;
        if (!gar_type_common(type, args[i]->type, is_comparison, &next)) {
            char a_text[64];
            char b_text[64];
            gar_type_text(type, a_text, (int64_t)sizeof a_text);
            gar_type_text(args[i]->type, b_text, (int64_t)sizeof b_text);
            const bool is_zone_clash =
                type.id == GAR_TIMESTAMP && args[i]->type.id == GAR_TIMESTAMP;
            return gar_error_set(err, GAR_ERR_TYPE, "%s cannot take %s with %s%s",
                                 function->info.name, a_text, b_text,
                                 is_zone_clash ? "; cast one of them to the other's zone"
                                               : "; cast one of them");
        }
        type = next;
    }
    for (int64_t i = 0; i < count; i++) {
        const struct gar_type from = args[i]->type;
        struct gar_type to = type;
        if (is_comparison && from.id == GAR_TIMESTAMP && type.id == GAR_TIMESTAMP) {
            to.zone = from.zone; /* instants compare whatever their zones */
        }
        GAR_TRY(gar_bound_cast(binder, args[i], to, false, &args[i], err));
    }
    *out = type;
    return GAR_OK;
}

static enum gar_status bind_column(struct gar_binder *binder, const struct gar_expr *expr,
                                   struct gar_bound **out, struct gar_error *err)
{
    int64_t position = 0;
    if (binder->schema == NULL) {
        return gar_error_set(err, GAR_ERR_COLUMN,
                             "unknown column '%s'; no columns are in reach here", expr->name);
    }
    GAR_TRY(gar_schema_get(binder->schema, expr->name, &position, err));
    GAR_TRY(gar_bound_new(binder, GAR_OP_COLUMN, binder->schema->fields[position].type, NULL, 0,
                          out, err));
    (*out)->column = position;
    return GAR_OK;
}

static enum gar_status bind_args(struct gar_binder *binder, const struct gar_expr *expr,
                                 struct gar_bound ***out, struct gar_error *err)
{
    void *memory = NULL;
    GAR_TRY(arena_calloc(binder, expr->arg_count + 1, (int64_t)sizeof(struct gar_bound *), &memory,
                         err));
    struct gar_bound **args = memory;
    for (int64_t i = 0; i < expr->arg_count; i++) {
        GAR_TRY(gar_bind(binder, expr->args[i], &args[i], err));
    }
    *out = args;
    return GAR_OK;
}

static enum gar_status bind_call(struct gar_binder *binder, const struct gar_expr *expr,
                                 struct gar_bound **out, struct gar_error *err)
{
    const struct gar_function *function = expr->function;
    const bool is_aggregate = function->info.kind == GAR_FUNCTION_AGGREGATE;
    if (is_aggregate && binder->in_aggregate) {
        return gar_error_set(err, GAR_ERR_TYPE,
                             "%s stands inside another aggregate; aggregate in two steps",
                             function->info.name);
    }
    if (is_aggregate && !binder->allow_aggregates) {
        return gar_error_set(err, GAR_ERR_TYPE,
                             "the aggregate %s is not allowed here; use agg() or select()",
                             function->info.name);
    }
    const bool is_windowed = binder->in_window;
    if (function->info.kind == GAR_FUNCTION_WINDOW && !is_windowed) {
        return gar_error_set(err, GAR_ERR_TYPE, "%s needs a window: %s(...).over(window)",
                             function->info.name, function->info.name);
    }
    struct gar_bound **args = NULL;
    binder->in_window = false;
    binder->in_aggregate = binder->in_aggregate || is_aggregate;
    const enum gar_status status = bind_args(binder, expr, &args, err);
    if (is_aggregate) {
        binder->in_aggregate = false;
    }
    GAR_TRY(status);
    const bool takes_interval = function->id == GAR_FN_ADD || function->id == GAR_FN_SUBTRACT;
    for (int64_t i = 0; i < expr->arg_count && !takes_interval; i++) {
        if (args[i]->op == GAR_OP_INTERVAL) {
            return gar_error_set(err, GAR_ERR_TYPE, "%s cannot take an interval; only + and - do",
                                 function->info.name);
        }
    }
    GAR_TRY(function->bind(binder, function, args, expr->arg_count, out, err));
    if ((*out)->function == NULL && (*out)->op != GAR_OP_COLUMN && (*out)->op != GAR_OP_CONST) {
        (*out)->function = function;
    }
    return GAR_OK;
}

static enum gar_status bind_in_list(struct gar_binder *binder, const struct gar_expr *expr,
                                    struct gar_bound **out, struct gar_error *err)
{
    struct gar_bound *arg = NULL;
    GAR_TRY(gar_bind(binder, expr->args[0], &arg, err));
    struct gar_column *set = NULL;
    struct gar_type type = arg->type;
    GAR_TRY(gar_fold_set(expr->set, &type, &set, err));
    struct gar_binder_item *item = gar_arena_calloc(&binder->arena, 1, (int64_t)sizeof *item);
    if (item == NULL) {
        gar_column_unref(set);
        return gar_error_nomem(err, (int64_t)sizeof *item);
    }
    item->column = set;
    item->next = binder->items;
    binder->items = item;
    GAR_TRY(gar_bound_cast(binder, arg, type, false, &arg, err));
    GAR_TRY(gar_bound_new(binder, GAR_OP_IN_SET, gar_type_of(GAR_BOOL), &arg, 1, out, err));
    (*out)->set = set;
    return GAR_OK;
}

/* Its arguments are typed where it runs; here it is a value of its type. */
static enum gar_status bind_udf(struct gar_binder *binder, const struct gar_expr *expr,
                                struct gar_bound **out, struct gar_error *err)
{
    struct gar_bound **args = NULL;
    GAR_TRY(bind_args(binder, expr, &args, err));
    for (int64_t i = 0; i < expr->arg_count; i++) {
        if (args[i]->op == GAR_OP_INTERVAL) {
            return gar_error_set(err, GAR_ERR_TYPE, "UDF '%s' cannot take an interval",
                                 expr->udf->name);
        }
    }
    return gar_bound_new(binder, GAR_OP_UDF, expr->udf->type, NULL, 0, out, err);
}

/* Typing only: the type of the call. */
static enum gar_status bind_window(struct gar_binder *binder, const struct gar_expr *expr,
                                   struct gar_bound **out, struct gar_error *err)
{
    const bool is_allowed = binder->allow_aggregates && !binder->in_aggregate;
    struct gar_bound *other = NULL;
    if (!is_allowed) {
        return gar_error_set(err, GAR_ERR_TYPE,
                             "a window function is not allowed here; compute it with select() or "
                             "with_column() first");
    }
    binder->in_window = true;
    GAR_TRY(gar_bind(binder, expr->args[0], out, err));
    binder->allow_aggregates = false;
    enum gar_status status = GAR_OK;
    for (int64_t i = 1; i < expr->arg_count && status >= 0; i++) {
        status = gar_bind(binder, expr->args[i], &other, err);
    }
    binder->allow_aggregates = true;
    return status;
}

enum gar_status gar_bind(struct gar_binder *binder, const struct gar_expr *expr,
                         struct gar_bound **out, struct gar_error *err)
{
    switch (expr->kind) {
    case GAR_EXPR_COLUMN: return bind_column(binder, expr, out, err);
    case GAR_EXPR_LITERAL: {
        struct gar_value value = {0};
        GAR_TRY(gar_value_copy(&expr->value, &value, err));
        return gar_bound_const(binder, &value, true, out, err);
    }
    case GAR_EXPR_CALL: return bind_call(binder, expr, out, err);
    case GAR_EXPR_CAST: {
        struct gar_bound *arg = NULL;
        GAR_TRY(gar_bind(binder, expr->args[0], &arg, err));
        GAR_TRY(gar_bound_cast(binder, arg, expr->type, expr->is_try, out, err));
        if ((*out)->op == GAR_OP_CONST && (*out)->is_literal) {
            struct gar_bound *typed = NULL; /* a cast literal has the type the user gave it */
            GAR_TRY(gar_bound_new(binder, GAR_OP_CONST, (*out)->type, NULL, 0, &typed, err));
            typed->value = (*out)->value;
            *out = typed;
        }
        return GAR_OK;
    }
    case GAR_EXPR_ALIAS: return gar_bind(binder, expr->args[0], out, err);
    case GAR_EXPR_IN_LIST: return bind_in_list(binder, expr, out, err);
    case GAR_EXPR_UDF: return bind_udf(binder, expr, out, err);
    case GAR_EXPR_WINDOW: return bind_window(binder, expr, out, err);
    }
    return gar_error_set(err, GAR_ERR_INTERNAL, "unknown kind of expression %d", (int)expr->kind);
}

enum gar_status gar_expr_type(const struct gar_expr *expr, const struct gar_schema *schema,
                              bool allow_aggregates, struct gar_type *out, struct gar_error *err)
{
    struct gar_binder binder = {.schema = schema, .allow_aggregates = allow_aggregates};
    struct gar_bound *bound = NULL;
    enum gar_status status = gar_bind(&binder, expr, &bound, err);
    if (status >= 0 && bound->op == GAR_OP_INTERVAL) {
        status = gar_error_set(err, GAR_ERR_TYPE,
                               "an interval is no value of its own; add it to a date or timestamp");
    }
    if (status >= 0) {
        *out = bound->type;
    }
    gar_binder_destroy(&binder);
    return status;
}
