/* SPDX-License-Identifier: Apache-2.0 */
/* merge_projects: a projection over a projection becomes one, unless that would compute something twice; a projection that
 * gives its input as it is disappears. */
#include <string.h>

#include "base/alloc.h"
#include "optimize/rule_priv.h"

enum { DEPTH_MAX = 64 }; /* deeper results are not worth a tree */

static bool is_identity(const struct gar_plan *project)
{
    const struct gar_schema *input = project->inputs[0]->schema;
    if (project->expr_count != input->count) {
        return false;
    }
    for (int64_t i = 0; i < project->expr_count; i++) {
        const struct gar_expr *expr = project->exprs[i];
        if (expr->kind != GAR_EXPR_COLUMN || gar_schema_find(input, expr->name) != i) {
            return false;
        }
    }
    return true;
}

struct use_count {
    const struct gar_schema *schema;
    int64_t *uses; /* of each inner column */
};

static void count_use(const char *name, void *context)
{
    struct use_count *c = context;
    const int64_t i = gar_schema_find(c->schema, name);
    if (i >= 0) {
        c->uses[i]++;
    }
}

/* Would inlining compute an inner expression more than once? */
static bool computes_twice(const struct gar_plan *outer, const struct gar_plan *inner,
                           int64_t *uses)
{
    struct use_count c = {.schema = inner->schema, .uses = uses};
    for (int64_t i = 0; i < outer->expr_count; i++) {
        gar_expr_visit_columns(outer->exprs[i], count_use, &c);
    }
    for (int64_t i = 0; i < inner->expr_count; i++) {
        const struct gar_expr *made = gar_expr_strip_alias(inner->exprs[i]);
        if (uses[i] > 1 && made->kind != GAR_EXPR_COLUMN && made->kind != GAR_EXPR_LITERAL) {
            return true;
        }
    }
    return false;
}

/* A literal in an inner projection is a typed column to the outer one; inlined it would adapt. */
static bool inlines_literal(const struct gar_plan *inner, const int64_t *uses)
{
    for (int64_t i = 0; i < inner->expr_count; i++) {
        if (uses[i] > 0 && gar_expr_strip_alias(inner->exprs[i])->kind == GAR_EXPR_LITERAL) {
            return true;
        }
    }
    return false;
}

static enum gar_status inline_exprs(const struct gar_plan *outer, const struct gar_plan *inner,
                                    struct gar_expr **exprs, bool *is_deep, struct gar_error *err)
{
    for (int64_t i = 0; i < outer->expr_count; i++) {
        struct gar_expr *inlined = NULL;
        const enum gar_status inlining =
            gar_expr_inline(outer->exprs[i], inner->schema, inner->exprs, &inlined, err);
        if (inlining == GAR_ERR_VALUE || (inlining >= 0 && inlined->depth > DEPTH_MAX)) {
            gar_expr_unref(inlined);
            *is_deep = true;
            return GAR_OK;
        }
        GAR_TRY(inlining);
        const enum gar_status status =
            gar_expr_named(inlined, outer->schema->fields[i].name, &exprs[i], err);
        gar_expr_unref(inlined);
        GAR_TRY(status);
    }
    return GAR_OK;
}

static enum gar_status merge(const struct gar_plan *outer, const struct gar_plan *inner,
                             struct gar_plan **out, struct gar_error *err)
{
    int64_t *uses = gar_calloc(inner->expr_count, (int64_t)sizeof *uses);
    struct gar_expr **exprs = gar_calloc(outer->expr_count, (int64_t)sizeof *exprs);
    enum gar_status status = GAR_OK;
    bool is_deep = false;
    if (uses == NULL || exprs == NULL) {
        status =
            gar_error_nomem(err, (inner->expr_count + outer->expr_count) * (int64_t)sizeof *uses);
    } else if (!computes_twice(outer, inner, uses) && !inlines_literal(inner, uses)) {
        status = inline_exprs(outer, inner, exprs, &is_deep, err);
        if (status >= 0 && !is_deep) {
            status = gar_plan_project_exact(inner->inputs[0], exprs, outer->expr_count, out, err);
        }
    }
    gar_free(uses);
    gar_exprs_free(exprs, outer->expr_count);
    return status;
}

static enum gar_status merge_node(const struct gar_plan *node, struct gar_plan **out,
                                  struct gar_error *err)
{
    if (node->kind != GAR_PLAN_PROJECT) {
        return GAR_OK;
    }
    if (is_identity(node)) {
        *out = gar_plan_ref(node->inputs[0]);
        return GAR_OK;
    }
    return node->inputs[0]->kind == GAR_PLAN_PROJECT ? merge(node, node->inputs[0], out, err)
                                                     : GAR_OK;
}

enum gar_status gar_rule_merge_projects(const struct gar_plan *plan, struct gar_plan **out,
                                        struct gar_error *err)
{
    return gar_plan_map(plan, merge_node, out, err);
}
