/* SPDX-License-Identifier: Apache-2.0 */
/* join_filters: a join whose result holds only rows of the other side that have a partner sends the keys of its table
 * there, once the table is complete: scans leave out what has none (exec/key_wants.h). */
#include "optimize/rule_priv.h"

/* Do rows of the side that looks up come to nothing without a partner? */
static bool drops_lonely(const struct gar_plan *join)
{
    switch (join->join) {
    case GAR_JOIN_INNER:
    case GAR_JOIN_SEMI: return true;
    case GAR_JOIN_LEFT:
    case GAR_JOIN_ANTI: return join->is_build_left;
    case GAR_JOIN_RIGHT: return !join->is_build_left;
    case GAR_JOIN_OUTER: break;
    }
    return false;
}

static bool sends_keys(const struct gar_plan *join)
{
    const int64_t side = join->is_build_left ? 1 : 0;
    const struct gar_schema *schema = join->inputs[side]->schema;
    bool is_useful = false;
    for (int64_t k = 0; k < join->key_count && !is_useful; k++) {
        const char *name = gar_expr_column_name(join->exprs[side * join->key_count + k]);
        const int64_t place = name != NULL ? gar_schema_find(schema, name) : -1;
        is_useful =
            place >= 0 && !join->nulls_equal[k] && gar_key_filter_takes(schema->fields[place].type);
    }
    return is_useful && join->asof.kind == GAR_ASOF_NONE && drops_lonely(join);
}

static enum gar_status mark(const struct gar_plan *node, struct gar_plan **out,
                            struct gar_error *err)
{
    if (node->kind != GAR_PLAN_JOIN || sends_keys(node) == node->sends_keys) {
        return GAR_OK;
    }
    struct gar_join_parts parts = gar_plan_join_parts(node);
    parts.sends_keys = !node->sends_keys;
    return gar_plan_join_exact(node->inputs[0], node->inputs[1], &parts, out, err);
}

enum gar_status gar_rule_join_filters(const struct gar_plan *plan, struct gar_plan **out,
                                      struct gar_error *err)
{
    return gar_plan_map(plan, mark, out, err);
}
