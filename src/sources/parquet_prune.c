/* SPDX-License-Identifier: Apache-2.0 */
/* The filter's tree is walked once per row group: AND needs one excluded side, OR both; a comparison of a column with a literal
 * asks the column's bounds. A literal of another type counts only if it survives a cast to the column's type and back. */
#include "sources/parquet_prune.h"

#include <string.h>

#include "expr/program.h"

/* Longer IN lists are not looked at item by item. */
#define IN_LIST_MAX 256

struct comparison {
    const char *function;
    enum gar_parquet_compare op;
    enum gar_parquet_compare flipped; /* literal OP column */
};

static const struct comparison comparisons[] = {
    {"equal", GAR_PARQUET_EQ, GAR_PARQUET_EQ},
    {"eq_null_safe", GAR_PARQUET_EQ, GAR_PARQUET_EQ},
    {"not_equal", GAR_PARQUET_NE, GAR_PARQUET_NE},
    {"less", GAR_PARQUET_LT, GAR_PARQUET_GT},
    {"less_equal", GAR_PARQUET_LE, GAR_PARQUET_GE},
    {"greater", GAR_PARQUET_GT, GAR_PARQUET_LT},
    {"greater_equal", GAR_PARQUET_GE, GAR_PARQUET_LE},
};

static const struct comparison *find_comparison(const char *function)
{
    for (int64_t i = 0; i < GAR_COUNT_OF(comparisons); i++) {
        if (strcmp(comparisons[i].function, function) == 0) {
            return &comparisons[i];
        }
    }
    return NULL;
}

static const struct gar_expr *strip_alias(const struct gar_expr *expr)
{
    while (expr->kind == GAR_EXPR_ALIAS) {
        expr = expr->args[0];
    }
    return expr;
}

static bool cast_value(const struct gar_value *value, struct gar_type type, struct gar_value *out)
{
    struct gar_expr *literal = NULL;
    struct gar_expr *cast = NULL;
    bool is_good = gar_expr_new_literal(value, &literal, NULL) == GAR_OK &&
                   gar_expr_new_cast(literal, type, true, &cast, NULL) == GAR_OK &&
                   gar_expr_fold(cast, out, NULL) == GAR_OK;
    gar_expr_unref(literal);
    gar_expr_unref(cast);
    return is_good;
}

/* The literal in the column's type, if it means the same there. Caller destroys *out when true is returned. */
static bool literal_as(const struct gar_value *value, struct gar_type type, struct gar_value *out)
{
    if (gar_type_equal(value->type, type)) {
        return gar_value_copy(value, out, NULL) == GAR_OK;
    }
    struct gar_value back = {.is_valid = false};
    if (!value->is_valid || !cast_value(value, type, out)) {
        return false;
    }
    const bool is_same =
        out->is_valid && cast_value(out, value->type, &back) && gar_value_equal(value, &back);
    gar_value_destroy(&back);
    if (!is_same) {
        gar_value_destroy(out);
    }
    return is_same;
}

/* The file column of the provider's column, -1 when it has no statistics here. */
static int64_t file_column_at(const struct gar_parquet_prune *prune, int64_t position)
{
    const int64_t column = position < 0 ? -1 : prune->file_columns[position];
    if (column < 0 || prune->file->columns[column].unsupported != NULL ||
        !gar_type_equal(prune->file->columns[column].type, prune->schema->fields[position].type)) {
        return -1;
    }
    return column;
}

/* The same of the column that an expression names. */
static int64_t file_column(const struct gar_parquet_prune *prune, const struct gar_expr *expr)
{
    return expr->kind == GAR_EXPR_COLUMN
               ? file_column_at(prune, gar_schema_find(prune->schema, expr->name))
               : -1;
}

/* column OP value is never true in the row group. */
static bool excludes(const struct gar_parquet_prune *prune, int64_t row_group, int64_t column,
                     enum gar_parquet_compare op, const struct gar_value *value)
{
    struct gar_parquet_bounds bounds;
    struct gar_value literal;
    if (!value->is_valid || !literal_as(value, prune->file->columns[column].type, &literal)) {
        return false;
    }
    bool is_excluded = false;
    if (gar_parquet_bounds_get(prune->file, row_group, column, &bounds, NULL) == GAR_OK) {
        is_excluded = gar_parquet_bounds_exclude(&bounds, op, &literal);
        gar_parquet_bounds_destroy(&bounds);
    }
    gar_value_destroy(&literal);
    return is_excluded;
}

static bool prune_comparison(const struct gar_parquet_prune *prune, int64_t row_group,
                             const struct comparison *comparison, const struct gar_expr *a,
                             const struct gar_expr *b)
{
    const bool is_flipped = a->kind == GAR_EXPR_LITERAL;
    const int64_t column = file_column(prune, is_flipped ? b : a);
    const struct gar_expr *literal = is_flipped ? a : b;
    return column >= 0 && literal->kind == GAR_EXPR_LITERAL &&
           excludes(prune, row_group, column, is_flipped ? comparison->flipped : comparison->op,
                    &literal->value);
}

static bool prune_null_test(const struct gar_parquet_prune *prune, int64_t row_group,
                            const struct gar_expr *arg, bool wants_null)
{
    struct gar_parquet_bounds bounds;
    const int64_t column = file_column(prune, arg);
    if (column < 0 ||
        gar_parquet_bounds_get(prune->file, row_group, column, &bounds, NULL) != GAR_OK) {
        return false;
    }
    const bool is_known = bounds.null_count >= 0;
    const bool is_excluded =
        is_known && (wants_null ? bounds.null_count == 0 : bounds.null_count == bounds.rows);
    gar_parquet_bounds_destroy(&bounds);
    return is_excluded;
}

static bool prune_between(const struct gar_parquet_prune *prune, int64_t row_group,
                          const struct gar_expr *call)
{
    const int64_t column = file_column(prune, strip_alias(call->args[0]));
    const struct gar_expr *low = strip_alias(call->args[1]);
    const struct gar_expr *high = strip_alias(call->args[2]);
    return column >= 0 && ((low->kind == GAR_EXPR_LITERAL &&
                            excludes(prune, row_group, column, GAR_PARQUET_GE, &low->value)) ||
                           (high->kind == GAR_EXPR_LITERAL &&
                            excludes(prune, row_group, column, GAR_PARQUET_LE, &high->value)));
}

static bool prune_in_list(const struct gar_parquet_prune *prune, int64_t row_group,
                          const struct gar_expr *expr)
{
    const int64_t column = file_column(prune, strip_alias(expr->args[0]));
    if (column < 0 || expr->set->length > IN_LIST_MAX) {
        return false;
    }
    for (int64_t i = 0; i < expr->set->length; i++) {
        struct gar_value value;
        if (gar_value_from_column(expr->set, i, &value, NULL) != GAR_OK) {
            return false;
        }
        const bool is_excluded =
            !value.is_valid || excludes(prune, row_group, column, GAR_PARQUET_EQ, &value);
        gar_value_destroy(&value);
        if (!is_excluded) {
            return false;
        }
    }
    return true;
}

static bool prune_call(const struct gar_parquet_prune *prune, int64_t row_group,
                       const struct gar_expr *call)
{
    const char *name = gar_function_info(call->function)->name;
    const struct comparison *comparison = find_comparison(name);
    if (comparison != NULL) {
        return prune_comparison(prune, row_group, comparison, strip_alias(call->args[0]),
                                strip_alias(call->args[1]));
    }
    if (strcmp(name, "and") == 0) {
        return gar_parquet_prune_group(prune, row_group, call->args[0]) ||
               gar_parquet_prune_group(prune, row_group, call->args[1]);
    }
    if (strcmp(name, "or") == 0) {
        return gar_parquet_prune_group(prune, row_group, call->args[0]) &&
               gar_parquet_prune_group(prune, row_group, call->args[1]);
    }
    if (strcmp(name, "between") == 0) {
        return prune_between(prune, row_group, call);
    }
    if (strcmp(name, "is_null") == 0 || strcmp(name, "not_null") == 0) {
        return prune_null_test(prune, row_group, strip_alias(call->args[0]),
                               strcmp(name, "is_null") == 0);
    }
    return false;
}

bool gar_parquet_prune_group(const struct gar_parquet_prune *prune, int64_t row_group,
                             const struct gar_expr *filter)
{
    filter = strip_alias(filter);
    if (filter->kind == GAR_EXPR_LITERAL) {
        return !filter->value.is_valid ||
               (filter->value.type.id == GAR_BOOL && !filter->value.boolean);
    }
    if (filter->kind == GAR_EXPR_IN_LIST) {
        return prune_in_list(prune, row_group, filter);
    }
    return filter->kind == GAR_EXPR_CALL && prune_call(prune, row_group, filter);
}

/* A bound of a type that key filters take. */
static int64_t bound_key(const struct gar_value *value)
{
    return gar_type_is_unsigned(value->type) ? (int64_t)value->u64 : value->i64;
}

bool gar_parquet_prune_keys(const struct gar_parquet_prune *prune, int64_t row_group,
                            const struct gar_key_use *use)
{
    struct gar_parquet_bounds bounds;
    const int64_t column = file_column_at(prune, use->position);
    if (column < 0 ||
        gar_parquet_bounds_get(prune->file, row_group, column, &bounds, NULL) != GAR_OK) {
        return false;
    }
    bool is_without = bounds.null_count == bounds.rows;
    if (!is_without && bounds.min.is_valid && bounds.max.is_valid) {
        is_without =
            !gar_key_filter_may_match(use->filter, bound_key(&bounds.min), bound_key(&bounds.max));
    }
    gar_parquet_bounds_destroy(&bounds);
    return is_without;
}
