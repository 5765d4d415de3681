/* SPDX-License-Identifier: Apache-2.0 */
/* Joins: the node, and the builder that makes names unique below it and merges key columns above it. */
#include <string.h>

#include "base/alloc.h"
#include "plan/plan.h"
#include "plan/plan_priv.h"
#include "plan/rewrite.h"

/* ---- the node ---- */

static bool is_left_only(enum gar_join_kind kind)
{
    return kind == GAR_JOIN_SEMI || kind == GAR_JOIN_ANTI;
}

/* Columns of left, then of right. Those of a side that may be missing are nullable. A name that is there twice belongs to
 * columns that nobody looks at: pruning leaves some over. */
static enum gar_status pair_schema(const struct gar_schema *left, const struct gar_schema *right,
                                   enum gar_join_kind kind, struct gar_schema **out,
                                   struct gar_error *err)
{
    const int64_t count = left->count + right->count;
    struct gar_field *fields = gar_calloc(count, (int64_t)sizeof *fields);
    if (fields == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *fields);
    }
    const bool left_may_lack = kind == GAR_JOIN_RIGHT || kind == GAR_JOIN_OUTER;
    const bool right_may_lack = kind == GAR_JOIN_LEFT || kind == GAR_JOIN_OUTER;
    for (int64_t i = 0; i < count; i++) {
        const bool is_left = i < left->count;
        fields[i] = is_left ? left->fields[i] : right->fields[i - left->count];
        fields[i].nullable = fields[i].nullable || (is_left ? left_may_lack : right_may_lack);
    }
    const enum gar_status status = gar_schema_new(fields, count, true, out, err);
    gar_free(fields);
    return status;
}

static enum gar_status set_columns(struct gar_plan *plan, const int64_t *columns, int64_t count,
                                   struct gar_error *err)
{
    plan->columns = gar_calloc(count, (int64_t)sizeof *plan->columns);
    struct gar_field *fields = gar_calloc(count, (int64_t)sizeof *fields);
    enum gar_status status = GAR_OK;
    if (plan->columns == NULL || fields == NULL) {
        status = gar_error_nomem(err, count * (int64_t)sizeof *fields);
    }
    for (int64_t i = 0; i < count && status >= 0; i++) {
        plan->columns[i] = columns == NULL ? i : columns[i];
        fields[i] = plan->pairs->fields[plan->columns[i]];
    }
    if (status >= 0) {
        status = gar_schema_new(fields, count, false, &plan->schema, err);
    }
    gar_free(fields);
    return status;
}

static enum gar_status check_exact(const struct gar_plan *plan, struct gar_error *err)
{
    for (int64_t k = 0; k < plan->key_count; k++) {
        struct gar_type left = {0};
        struct gar_type right = {0};
        GAR_TRY(gar_expr_type(plan->exprs[k], plan->inputs[0]->schema, false, &left, err));
        GAR_TRY(gar_expr_type(plan->exprs[plan->key_count + k], plan->inputs[1]->schema, false,
                              &right, err));
        if (!gar_type_equal(left, right)) {
            return gar_error_set(err, GAR_ERR_INTERNAL, "join key %lld has two types",
                                 (long long)k);
        }
    }
    if (plan->expr_count > 2 * plan->key_count) {
        return gar_plan_check_predicate(plan->exprs[2 * plan->key_count], plan->pairs, err);
    }
    return GAR_OK;
}

static enum gar_status fill_join(struct gar_plan *plan, const struct gar_join_parts *parts,
                                 struct gar_error *err)
{
    plan->join = parts->kind;
    plan->key_count = parts->key_count;
    plan->is_build_left = parts->is_build_left;
    plan->is_ordered = parts->is_ordered;
    plan->sends_keys = parts->sends_keys;
    plan->asof = parts->asof;
    plan->nulls_equal = gar_calloc(parts->key_count, (int64_t)sizeof(bool));
    if (plan->nulls_equal == NULL) {
        return gar_error_nomem(err, parts->key_count);
    }
    for (int64_t k = 0; k < parts->key_count; k++) {
        plan->nulls_equal[k] = parts->nulls_equal != NULL && parts->nulls_equal[k];
    }
    const struct gar_schema *left = plan->inputs[0]->schema;
    const struct gar_schema *right = plan->inputs[1]->schema;
    GAR_TRY(pair_schema(left, right, parts->kind, &plan->pairs, err));
    const int64_t all = is_left_only(parts->kind) ? left->count : plan->pairs->count;
    GAR_TRY(
        set_columns(plan, parts->columns, parts->columns == NULL ? all : parts->column_count, err));
    return check_exact(plan, err);
}

enum gar_status gar_plan_join_exact(struct gar_plan *left, struct gar_plan *right,
                                    const struct gar_join_parts *parts, struct gar_plan **out,
                                    struct gar_error *err)
{
    struct gar_plan *inputs[2] = {left, right};
    struct gar_plan *plan = NULL;
    GAR_TRY(
        gar_plan_new_node(GAR_PLAN_JOIN, inputs, 2, parts->exprs, parts->expr_count, &plan, err));
    const enum gar_status status = fill_join(plan, parts, err);
    if (status < 0) {
        gar_plan_unref(plan);
        return status;
    }
    *out = plan;
    return GAR_OK;
}

struct gar_join_parts gar_plan_join_parts(const struct gar_plan *join)
{
    return (struct gar_join_parts){.kind = join->join,
                                   .exprs = join->exprs,
                                   .expr_count = join->expr_count,
                                   .key_count = join->key_count,
                                   .nulls_equal = join->nulls_equal,
                                   .columns = join->columns,
                                   .column_count = join->schema->count,
                                   .is_build_left = join->is_build_left,
                                   .is_ordered = join->is_ordered,
                                   .sends_keys = join->sends_keys,
                                   .asof = join->asof};
}

enum gar_status gar_plan_join_over(const struct gar_plan *join, struct gar_plan *const *inputs,
                                   struct gar_plan **out, struct gar_error *err)
{
    int64_t *columns = gar_calloc(join->schema->count, (int64_t)sizeof *columns);
    if (columns == NULL) {
        return gar_error_nomem(err, join->schema->count * (int64_t)sizeof *columns);
    }
    int64_t count = 0;
    for (int64_t i = 0; i < join->schema->count; i++) {
        const char *name = join->schema->fields[i].name;
        const bool is_left = join->columns[i] < join->inputs[0]->schema->count;
        const int64_t at = gar_schema_find(inputs[is_left ? 0 : 1]->schema, name);
        if (at >= 0) {
            columns[count++] = is_left ? at : inputs[0]->schema->count + at;
        }
    }
    struct gar_join_parts parts = gar_plan_join_parts(join);
    parts.columns = columns;
    parts.column_count = count;
    const enum gar_status status = gar_plan_join_exact(inputs[0], inputs[1], &parts, out, err);
    gar_free(columns);
    return status;
}

const struct gar_schema *gar_plan_expr_schema(const struct gar_plan *plan, int64_t i)
{
    if (plan->kind != GAR_PLAN_JOIN || i < plan->key_count) {
        return plan->inputs[0]->schema;
    }
    return i < 2 * plan->key_count ? plan->inputs[1]->schema : plan->pairs;
}

/* ---- the builder ---- */

struct builder {
    const struct gar_join_spec *spec;
    struct gar_plan *left;    /* borrowed */
    struct gar_plan *right;   /* borrowed */
    struct gar_plan *renamed; /* owned: right under names that left has not */
    int64_t *merged; /* owned: for each right column the left column it is merged with, or -1 */
    struct gar_expr **left_keys; /* owned lists; key_count items each */
    struct gar_expr **right_keys;
    bool *nulls_equal; /* owned */
    int64_t key_count;
    int64_t key_capacity[3];
    struct gar_expr **rest; /* owned: conjuncts that are no keys */
    int64_t rest_count;
    int64_t rest_capacity;
    const struct gar_asof_spec *asof; /* NULL: none; else the last key is `on` */
};

static void destroy_builder(struct builder *b)
{
    gar_plan_unref(b->renamed);
    gar_free(b->merged);
    gar_exprs_free(b->left_keys, b->key_count);
    gar_exprs_free(b->right_keys, b->key_count);
    gar_free(b->nulls_equal);
    gar_exprs_free(b->rest, b->rest_count);
}

/* Which right columns are keys of the same name as their partner? */
static enum gar_status find_merged(struct builder *b, struct gar_error *err)
{
    const struct gar_schema *right = b->right->schema;
    b->merged = gar_calloc(right->count, (int64_t)sizeof *b->merged);
    if (b->merged == NULL) {
        return gar_error_nomem(err, right->count * (int64_t)sizeof *b->merged);
    }
    for (int64_t i = 0; i < right->count; i++) {
        b->merged[i] = -1;
    }
    for (int64_t k = 0; k < b->spec->key_count; k++) {
        const char *left_name = gar_expr_column_name(b->spec->left_keys[k]);
        const char *right_name = gar_expr_column_name(b->spec->right_keys[k]);
        if (left_name == NULL || right_name == NULL || strcmp(left_name, right_name) != 0) {
            continue;
        }
        const int64_t at = gar_schema_find(right, right_name);
        if (at >= 0) {
            b->merged[at] = gar_schema_find(b->left->schema, left_name);
        }
    }
    return GAR_OK;
}

static void new_name(const struct gar_join_spec *spec, const char *name, struct gar_strbuf *out)
{
    const bool is_default = spec->prefix == NULL && spec->suffix == NULL;
    gar_strbuf_append(out, is_default ? "right." : spec->prefix != NULL ? spec->prefix : "");
    gar_strbuf_append(out, name);
    gar_strbuf_append(out, spec->suffix != NULL ? spec->suffix : "");
}

/* A merged column is seen by nobody: any free name will do. */
static void hidden_name(const struct builder *b, const char *name, struct gar_strbuf *out)
{
    gar_strbuf_printf(out, "right.%s", name);
    while (gar_schema_find(b->left->schema, gar_strbuf_text(out)) >= 0 ||
           gar_schema_find(b->right->schema, gar_strbuf_text(out)) >= 0) {
        gar_strbuf_append_char(out, '\'');
    }
}

static enum gar_status rename_column(struct builder *b, int64_t i, struct gar_expr **out,
                                     bool *out_renamed, struct gar_error *err)
{
    const char *name = b->right->schema->fields[i].name;
    if (gar_schema_find(b->left->schema, name) < 0) {
        return gar_expr_new_column(name, out, err);
    }
    struct gar_strbuf text = {0};
    if (b->merged[i] >= 0 || (is_left_only(b->spec->kind) && b->spec->condition == NULL)) {
        hidden_name(b, name, &text);
    } else {
        new_name(b->spec, name, &text);
    }
    const char *fresh = gar_strbuf_text(&text);
    enum gar_status status = GAR_OK;
    if (text.failed) {
        status = gar_error_nomem(err, text.size);
    } else if (fresh[0] != '\0' && (gar_schema_find(b->left->schema, fresh) >= 0 ||
                                    gar_schema_find(b->right->schema, fresh) >= 0)) {
        status = gar_error_set(err, GAR_ERR_VALUE,
                               "join: both sides have a column '%s', and the name '%s' for the "
                               "right one is taken too; "
                               "rename it, or give another prefix or suffix",
                               name, fresh);
    }
    struct gar_expr *column = NULL;
    if (status >= 0) {
        status = gar_expr_new_column(name, &column, err);
    }
    if (status >= 0) {
        status = gar_expr_new_alias(column, fresh, out, err);
    }
    gar_expr_unref(column);
    gar_strbuf_destroy(&text);
    *out_renamed = true;
    return status;
}

/* Right with names that left does not have. */
static enum gar_status rename_right(struct builder *b, struct gar_error *err)
{
    const int64_t count = b->right->schema->count;
    struct gar_expr **exprs = gar_calloc(count, (int64_t)sizeof *exprs);
    if (exprs == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *exprs);
    }
    enum gar_status status = GAR_OK;
    bool has_renamed = false;
    for (int64_t i = 0; i < count && status >= 0; i++) {
        status = rename_column(b, i, &exprs[i], &has_renamed, err);
    }
    if (status >= 0 && has_renamed) {
        status = gar_plan_project_exact(b->right, exprs, count, &b->renamed, err);
    } else if (status >= 0) {
        b->renamed = gar_plan_ref(b->right);
    }
    gar_exprs_free(exprs, count);
    return status;
}

static enum gar_status rename_in_key(const struct gar_expr *expr, void *context,
                                     struct gar_expr **out, struct gar_error *err)
{
    const struct builder *b = context;
    if (expr->kind != GAR_EXPR_COLUMN) {
        return GAR_OK;
    }
    int64_t i = 0;
    GAR_TRY(gar_schema_get(b->right->schema, expr->name, &i, err));
    return gar_expr_new_column(b->renamed->schema->fields[i].name, out, err);
}

static enum gar_status cast_key(struct gar_expr *key, struct gar_type from, struct gar_type to,
                                struct gar_expr **out, struct gar_error *err)
{
    if (gar_type_equal(from, to)) {
        *out = gar_expr_ref(key);
        return GAR_OK;
    }
    return gar_expr_new_cast(key, to, false, out, err);
}

static enum gar_status room_for_key(struct builder *b, struct gar_error *err)
{
    GAR_TRY(gar_grow((void **)&b->left_keys, &b->key_capacity[0], b->key_count + 1,
                     (int64_t)sizeof *b->left_keys, err));
    GAR_TRY(gar_grow((void **)&b->right_keys, &b->key_capacity[1], b->key_count + 1,
                     (int64_t)sizeof *b->right_keys, err));
    return gar_grow((void **)&b->nulls_equal, &b->key_capacity[2], b->key_count + 1,
                    (int64_t)sizeof(bool), err);
}

/* A pair of keys over left and renamed right, cast to one type. */
static enum gar_status add_key(struct builder *b, struct gar_expr *left, struct gar_expr *right,
                               bool nulls_equal, struct gar_error *err)
{
    struct gar_type left_type = {0};
    struct gar_type right_type = {0};
    struct gar_type type = {0};
    GAR_TRY(gar_expr_type(left, b->left->schema, false, &left_type, err));
    GAR_TRY(gar_expr_type(right, b->renamed->schema, false, &right_type, err));
    if (!gar_type_for_equality(left_type, right_type, &type)) {
        char a[64];
        char c[64];
        return gar_error_set(err, GAR_ERR_TYPE,
                             "join: key '%s' of the left side is %s, key '%s' of the right side is "
                             "%s; cast one of them",
                             gar_expr_name(left), gar_type_text(left_type, a, (int64_t)sizeof a),
                             gar_expr_name(right), gar_type_text(right_type, c, (int64_t)sizeof c));
    }
    GAR_TRY(room_for_key(b, err));
    struct gar_expr *left_cast = NULL;
    struct gar_expr *right_cast = NULL;
    enum gar_status status = cast_key(gar_expr_strip_alias(left), left_type, type, &left_cast, err);
    if (status >= 0) {
        status = cast_key(gar_expr_strip_alias(right), right_type, type, &right_cast, err);
    }
    if (status < 0) {
        gar_expr_unref(left_cast);
        return status;
    }
    b->left_keys[b->key_count] = left_cast;
    b->right_keys[b->key_count] = right_cast;
    b->nulls_equal[b->key_count++] = nulls_equal;
    return GAR_OK;
}

static enum gar_status add_spec_keys(struct builder *b, struct gar_error *err)
{
    for (int64_t k = 0; k < b->spec->key_count; k++) {
        struct gar_expr *right = NULL;
        GAR_TRY(gar_expr_rewrite(b->spec->right_keys[k], rename_in_key, b, &right, err));
        const enum gar_status status =
            add_key(b, b->spec->left_keys[k], right, b->spec->nulls_equal, err);
        gar_expr_unref(right);
        GAR_TRY(status);
    }
    return GAR_OK;
}

struct sides {
    const struct builder *builder;
    bool has_left;
    bool has_right;
    bool has_unknown;
};

static void note_side(const char *name, void *context)
{
    struct sides *sides = context;
    if (gar_schema_find(sides->builder->left->schema, name) >= 0) {
        sides->has_left = true;
    } else if (gar_schema_find(sides->builder->renamed->schema, name) >= 0) {
        sides->has_right = true;
    } else {
        sides->has_unknown = true;
    }
}

static struct sides sides_of(const struct builder *b, const struct gar_expr *expr)
{
    struct sides sides = {.builder = b};
    gar_expr_visit_columns(expr, note_side, &sides);
    return sides;
}

/* Can the conjunct, an equality of one side with the other, be a key? Not of floats: a NaN equals no NaN there, as keys
 * they are equal. */
static bool find_key(const struct builder *b, const struct gar_expr *conjunct,
                     struct gar_expr **out_left, struct gar_expr **out_right)
{
    if (!gar_expr_is_call(conjunct, "equal") && !gar_expr_is_call(conjunct, "eq_null_safe")) {
        return false;
    }
    struct gar_expr *left = conjunct->args[0];
    struct gar_expr *right = conjunct->args[1];
    struct sides first = sides_of(b, left);
    struct sides second = sides_of(b, right);
    if (first.has_right && !first.has_left) {
        struct gar_expr *other = left;
        left = right;
        right = other;
        const struct sides side = first;
        first = second;
        second = side;
    }
    struct gar_type left_type = {0};
    struct gar_type right_type = {0};
    struct gar_type type = {0};
    *out_left = left;
    *out_right = right;
    return first.has_left && !first.has_right && second.has_right && !second.has_left &&
           gar_expr_type(left, b->left->schema, false, &left_type, NULL) >= 0 &&
           gar_expr_type(right, b->renamed->schema, false, &right_type, NULL) >= 0 &&
           gar_type_for_equality(left_type, right_type, &type) && !gar_type_is_float(type);
}

static enum gar_status split_condition(struct builder *b, struct gar_expr *condition,
                                       struct gar_error *err)
{
    if (gar_expr_is_call(condition, "and")) {
        GAR_TRY(split_condition(b, condition->args[0], err));
        return split_condition(b, condition->args[1], err);
    }
    struct gar_expr *left = NULL;
    struct gar_expr *right = NULL;
    if (find_key(b, condition, &left, &right)) {
        return add_key(b, left, right, gar_expr_is_call(condition, "eq_null_safe"), err);
    }
    GAR_TRY(gar_grow((void **)&b->rest, &b->rest_capacity, b->rest_count + 1,
                     (int64_t)sizeof *b->rest, err));
    b->rest[b->rest_count++] = gar_expr_ref(condition);
    return GAR_OK;
}

static enum gar_status add_condition(struct builder *b, struct gar_error *err)
{
    struct gar_schema *pairs = NULL;
    GAR_TRY(pair_schema(b->left->schema, b->renamed->schema, b->spec->kind, &pairs, err));
    enum gar_status status = gar_plan_check_predicate(b->spec->condition, pairs, err);
    gar_schema_unref(pairs);
    if (status >= 0) {
        status = split_condition(b, gar_expr_strip_alias(b->spec->condition), err);
    }
    return status;
}

/* The last pair of keys becomes the condition of an as-of join. */
static enum gar_status make_asof_node(const struct builder *b, struct gar_plan **out,
                                      struct gar_error *err)
{
    const int64_t n = b->key_count - 1;
    struct gar_expr **exprs = gar_calloc(2 * n + 1, (int64_t)sizeof *exprs);
    if (exprs == NULL) {
        return gar_error_nomem(err, (2 * n + 1) * (int64_t)sizeof *exprs);
    }
    for (int64_t k = 0; k < n; k++) {
        exprs[k] = gar_expr_ref(b->left_keys[k]);
        exprs[n + k] = gar_expr_ref(b->right_keys[k]);
    }
    struct gar_join_parts parts = {.kind = b->spec->kind,
                                   .exprs = exprs,
                                   .expr_count = 2 * n + 1,
                                   .key_count = n,
                                   .nulls_equal = b->nulls_equal};
    enum gar_status status = gar_plan_make_asof(b->asof, b->left->schema, b->left_keys[n],
                                                b->right_keys[n], &exprs[2 * n], &parts.asof, err);
    if (status >= 0) {
        status = gar_plan_join_exact(b->left, b->renamed, &parts, out, err);
    }
    gar_exprs_free(exprs, 2 * n + 1);
    return status;
}

/* left keys, right keys, the conjunction of what is left; the node. */
static enum gar_status make_node(const struct builder *b, struct gar_plan **out,
                                 struct gar_error *err)
{
    const int64_t n = b->key_count;
    struct gar_expr **exprs = gar_calloc(2 * n + 1, (int64_t)sizeof *exprs);
    if (exprs == NULL) {
        return gar_error_nomem(err, (2 * n + 1) * (int64_t)sizeof *exprs);
    }
    for (int64_t k = 0; k < n; k++) {
        exprs[k] = gar_expr_ref(b->left_keys[k]);
        exprs[n + k] = gar_expr_ref(b->right_keys[k]);
    }
    enum gar_status status = GAR_OK;
    for (int64_t i = 0; i < b->rest_count && status >= 0; i++) {
        if (exprs[2 * n] == NULL) {
            exprs[2 * n] = gar_expr_ref(b->rest[i]);
            continue;
        }
        struct gar_expr *both[2] = {exprs[2 * n], b->rest[i]};
        exprs[2 * n] = NULL;
        status = gar_expr_new_call_by_name("and", both, 2, &exprs[2 * n], err);
        gar_expr_unref(both[0]);
    }
    if (status >= 0) {
        const struct gar_join_parts parts = {.kind = b->spec->kind,
                                             .exprs = exprs,
                                             .expr_count = 2 * n + (b->rest_count > 0),
                                             .key_count = n,
                                             .nulls_equal = b->nulls_equal};
        status = gar_plan_join_exact(b->left, b->renamed, &parts, out, err);
    }
    gar_exprs_free(exprs, 2 * n + 1);
    return status;
}

/* The right key that is merged into left column i, in left's type, or NULL. */
static enum gar_status merged_key(const struct builder *b, int64_t left, struct gar_expr **out,
                                  struct gar_error *err)
{
    for (int64_t i = 0; i < b->right->schema->count; i++) {
        if (b->merged[i] != left) {
            continue;
        }
        struct gar_expr *column = NULL;
        GAR_TRY(gar_expr_new_column(b->renamed->schema->fields[i].name, &column, err));
        const struct gar_type from = b->right->schema->fields[i].type;
        const struct gar_type to = b->left->schema->fields[left].type;
        /* A key that is all null has no type of its own to keep. */
        const enum gar_status status =
            cast_key(column, from, to.id == GAR_NULL ? from : to, out, err);
        gar_expr_unref(column);
        return status;
    }
    *out = NULL;
    return GAR_OK;
}

/* Column i of left as the result shows it. */
static enum gar_status left_column(const struct builder *b, int64_t i, struct gar_expr **out,
                                   struct gar_error *err)
{
    const char *name = b->left->schema->fields[i].name;
    const enum gar_join_kind kind = b->spec->kind;
    struct gar_expr *column = NULL;
    struct gar_expr *key = NULL;
    struct gar_expr *value = NULL;
    enum gar_status status = gar_expr_new_column(name, &column, err);
    if (status >= 0 && (kind == GAR_JOIN_RIGHT || kind == GAR_JOIN_OUTER)) {
        status = merged_key(b, i, &key, err);
    }
    if (status >= 0 && key != NULL && kind == GAR_JOIN_OUTER) {
        struct gar_expr *args[2] = {column, key};
        status = gar_expr_new_call_by_name("coalesce", args, 2, &value, err);
    } else if (status >= 0) {
        value = gar_expr_ref(key != NULL ? key : column);
    }
    if (status >= 0) {
        status = gar_expr_named(value, name, out, err);
    }
    gar_expr_unref(column);
    gar_expr_unref(key);
    gar_expr_unref(value);
    return status;
}

/* The node's columns without the merged ones. */
static enum gar_status show_columns(const struct builder *b, struct gar_plan *join,
                                    struct gar_plan **out, struct gar_error *err)
{
    struct gar_expr **exprs = gar_calloc(join->pairs->count, (int64_t)sizeof *exprs);
    if (exprs == NULL) {
        return gar_error_nomem(err, join->pairs->count * (int64_t)sizeof *exprs);
    }
    int64_t count = 0;
    enum gar_status status = GAR_OK;
    for (int64_t i = 0; i < b->left->schema->count && status >= 0; i++) {
        status = left_column(b, i, &exprs[count], err);
        count += status >= 0;
    }
    for (int64_t i = 0; i < b->right->schema->count && status >= 0; i++) {
        if (b->merged[i] < 0) {
            status = gar_expr_new_column(b->renamed->schema->fields[i].name, &exprs[count], err);
            count += status >= 0;
        }
    }
    if (status >= 0) {
        status = gar_plan_project_exact(join, exprs, count, out, err);
    }
    gar_exprs_free(exprs, count);
    return status;
}

static bool has_merged(const struct builder *b)
{
    for (int64_t i = 0; i < b->right->schema->count; i++) {
        if (b->merged[i] >= 0) {
            return true;
        }
    }
    return false;
}

static enum gar_status build_join(struct builder *b, struct gar_plan **out, struct gar_error *err)
{
    GAR_TRY(find_merged(b, err));
    GAR_TRY(rename_right(b, err));
    GAR_TRY(add_spec_keys(b, err));
    if (b->spec->condition != NULL) {
        GAR_TRY(add_condition(b, err));
    }
    struct gar_plan *join = NULL;
    GAR_TRY(b->asof != NULL ? make_asof_node(b, &join, err) : make_node(b, &join, err));
    if (is_left_only(b->spec->kind) || !has_merged(b)) {
        *out = join;
        return GAR_OK;
    }
    const enum gar_status status = show_columns(b, join, out, err);
    gar_plan_unref(join);
    return status;
}

enum gar_status gar_plan_join(struct gar_plan *left, struct gar_plan *right,
                              const struct gar_join_spec *spec, struct gar_plan **out,
                              struct gar_error *err)
{
    struct builder b = {.spec = spec, .left = left, .right = right};
    const enum gar_status status = build_join(&b, out, err);
    destroy_builder(&b);
    return status;
}

enum gar_status gar_plan_join_asof(struct gar_plan *left, struct gar_plan *right,
                                   const struct gar_asof_spec *spec, struct gar_plan **out,
                                   struct gar_error *err)
{
    const int64_t count = spec->by_count + 1;
    struct gar_expr **keys = gar_calloc(2 * count, (int64_t)sizeof *keys); /* borrowed items */
    if (keys == NULL) {
        return gar_error_nomem(err, 2 * count * (int64_t)sizeof *keys);
    }
    for (int64_t k = 0; k < spec->by_count; k++) {
        keys[k] = spec->left_by[k];
        keys[count + k] = spec->right_by[k];
    }
    keys[count - 1] = spec->left_on;
    keys[2 * count - 1] = spec->right_on;
    const struct gar_join_spec join = {.kind = GAR_JOIN_LEFT,
                                       .left_keys = keys,
                                       .right_keys = keys + count,
                                       .key_count = count,
                                       .prefix = spec->prefix,
                                       .suffix = spec->suffix};
    struct builder b = {.spec = &join, .left = left, .right = right, .asof = spec};
    const enum gar_status status = build_join(&b, out, err);
    destroy_builder(&b);
    gar_free(keys);
    return status;
}
