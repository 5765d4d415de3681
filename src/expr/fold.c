/* SPDX-License-Identifier: Apache-2.0 */
/* Constant folding: parts without columns are run once over one row. */
#include "arrow/gather.h"
#include "base/alloc.h"
#include "base/memory.h"
#include "expr/eval_priv.h"
#include "expr/fold_priv.h"

/* Runs one bound tree over columns (may be NULL) of `count` rows. */
static enum gar_status run_once(const struct gar_bound *root, struct gar_column *const *columns,
                                int64_t count, struct gar_column **out, struct gar_error *err)
{
    struct gar_program program = {.refs = 1};
    struct gar_eval *eval = NULL;
    GAR_TRY(gar_eval_new(&program, gar_memory_system(), &eval, err));
    struct gar_variant *variant = NULL;
    enum gar_status status = gar_variant_new(eval, &root, 1, 0, &variant, err);
    if (status >= 0) {
        status = gar_variant_run(eval, variant, columns, NULL, count, out, err);
    }
    gar_variant_free(variant);
    gar_eval_free(eval);
    return status;
}

static enum gar_status value_of(const struct gar_bound *node, struct gar_value *out,
                                struct gar_error *err)
{
    struct gar_column *column = NULL;
    GAR_TRY(run_once(node, NULL, 1, &column, err));
    const enum gar_status status = gar_value_from_column(column, 0, out, err);
    gar_column_unref(column);
    return status;
}

static bool is_constant(const struct gar_bound *node)
{
    if (node->op == GAR_OP_COLUMN || node->op == GAR_OP_AGGREGATE || node->op == GAR_OP_UDF ||
        node->op == GAR_OP_INTERVAL) {
        return false;
    }
    for (int64_t i = 0; i < node->arg_count; i++) {
        if (!is_constant(node->args[i])) {
            return false;
        }
    }
    return true;
}

enum gar_status gar_bound_fold(struct gar_binder *binder, struct gar_bound **node,
                               struct gar_error *err)
{
    if ((*node)->op == GAR_OP_CONST || !is_constant(*node)) {
        return GAR_OK;
    }
    struct gar_value value = {0};
    GAR_TRY(value_of(*node, &value, err));
    const bool is_literal = (*node)->op == GAR_OP_CAST && (*node)->args[0]->is_literal;
    return gar_bound_const(binder, &value, is_literal, node, err);
}

enum gar_status gar_bound_fold_parts(struct gar_binder *binder, struct gar_bound **node,
                                     struct gar_error *err)
{
    if ((*node)->op == GAR_OP_CONST || (*node)->op == GAR_OP_COLUMN) {
        return GAR_OK;
    }
    if (is_constant(*node)) {
        /* what fails stays as it is: it is an error only if a row comes to it */
        struct gar_error ignored;
        const enum gar_status status = gar_bound_fold(binder, node, &ignored);
        return status == GAR_ERR_NOMEM ? gar_error_set(err, status, "%s", ignored.message) : GAR_OK;
    }
    for (int64_t i = 0; i < (*node)->arg_count; i++) {
        GAR_TRY(gar_bound_fold_parts(binder, &(*node)->args[i], err));
    }
    return GAR_OK;
}

enum gar_status gar_expr_fold(const struct gar_expr *expr, struct gar_value *out,
                              struct gar_error *err)
{
    struct gar_binder binder = {0};
    struct gar_bound *bound = NULL;
    enum gar_status status = gar_bind(&binder, expr, &bound, err);
    if (status >= 0 && bound->op == GAR_OP_INTERVAL) {
        status = gar_error_set(err, GAR_ERR_TYPE,
                               "an interval is no value of its own; add it to a date or timestamp");
    }
    if (status >= 0) {
        status = value_of(bound, out, err);
    }
    gar_binder_destroy(&binder);
    return status;
}

/* --- sets --- */

/* Does every value of `from` that `to` can hold come through a try_cast unchanged, and nothing else come through? */
static bool casts_exactly(struct gar_type from, struct gar_type to)
{
    if (from.id == GAR_NULL || gar_type_equal(from, to)) {
        return true;
    }
    if (gar_type_is_integer(from)) {
        return gar_type_is_integer(to) || to.id == GAR_DECIMAL128;
    }
    if (from.id == GAR_DECIMAL128 && to.id == GAR_DECIMAL128) {
        return from.scale <= to.scale;
    }
    if (from.id == GAR_DATE && to.id == GAR_TIMESTAMP) {
        return true;
    }
    if (from.id == to.id &&
        (from.id == GAR_TIMESTAMP || from.id == GAR_DURATION || from.id == GAR_TIME)) {
        return from.unit <= to.unit && (from.zone == NULL) == (to.zone == NULL);
    }
    return from.id == GAR_FLOAT32 && to.id == GAR_FLOAT64;
}

static enum gar_status drop_nulls(struct gar_column *column, struct gar_column **out,
                                  struct gar_error *err)
{
    if (column->encoding == GAR_FLAT && gar_column_null_count(column) == 0) {
        *out = gar_column_ref(column);
        return GAR_OK;
    }
    uint32_t *rows = gar_malloc(column->length * (int64_t)sizeof *rows);
    if (rows == NULL) {
        return gar_error_nomem(err, column->length * (int64_t)sizeof *rows);
    }
    int64_t count = 0;
    for (int64_t i = 0; i < column->length; i++) {
        if (!gar_column_is_null(column, i)) {
            rows[count++] = (uint32_t)i;
        }
    }
    struct gar_column *kept = NULL;
    enum gar_status status =
        gar_column_gather(column, rows, count, gar_memory_system(), &kept, err);
    gar_free(rows);
    if (status >= 0) {
        status = gar_column_flatten(kept, gar_memory_system(), out, err);
        gar_column_unref(kept);
    }
    return status;
}

enum gar_status gar_fold_set(struct gar_column *set, struct gar_type *type, struct gar_column **out,
                             struct gar_error *err)
{
    if (set->length > UINT32_MAX) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "in takes at most %lld values, %lld given; join instead",
                             (long long)UINT32_MAX, (long long)set->length);
    }
    const bool is_text_beside_time = set->type.id == GAR_STRING && gar_type_is_temporal(*type);
    struct gar_type common = *type;
    if (type->id == GAR_NULL) {
        common = set->type;
    } else if (!is_text_beside_time && !casts_exactly(set->type, *type) &&
               !gar_type_common(*type, set->type, true, &common)) {
        char a_text[64];
        char b_text[64];
        return gar_error_set(err, GAR_ERR_TYPE, "in cannot look for %s among %s; cast one of them",
                             gar_type_text(*type, a_text, (int64_t)sizeof a_text),
                             gar_type_text(set->type, b_text, (int64_t)sizeof b_text));
    }
    *type = common;
    struct gar_column *cast = NULL;
    if (gar_type_equal(set->type, common)) {
        cast = gar_column_ref(set);
    } else {
        struct gar_bound column = {.op = GAR_OP_COLUMN, .type = set->type};
        struct gar_bound *args[1] = {&column};
        const struct gar_bound root = {.op = GAR_OP_CAST,
                                       .type = common,
                                       .args = args,
                                       .arg_count = 1,
                                       .is_try = !is_text_beside_time};
        GAR_TRY(run_once(&root, &set, set->length, &cast, err));
    }
    const enum gar_status status = drop_nulls(cast, out, err);
    gar_column_unref(cast);
    return status;
}
