/* SPDX-License-Identifier: Apache-2.0 */
/* choose_build: a join makes its table of the side that is guessed to be smaller. Joins that keep rows of one side are
 * simpler with the table on the other one: there it takes a clear difference. */
#include "optimize/rule_priv.h"

static bool wants_left(const struct gar_plan *join)
{
    const double left = gar_plan_estimate_rows(join->inputs[0]);
    const double right = gar_plan_estimate_rows(join->inputs[1]);
    if (left < 0 || right < 0) {
        return join->join == GAR_JOIN_RIGHT;
    }
    switch (join->join) {
    case GAR_JOIN_INNER: return left < right;
    case GAR_JOIN_RIGHT: return left < right * 2;
    case GAR_JOIN_LEFT:
    case GAR_JOIN_OUTER:
    case GAR_JOIN_SEMI:
    case GAR_JOIN_ANTI: break;
    }
    return left * 2 < right;
}

static enum gar_status choose(const struct gar_plan *node, struct gar_plan **out,
                              struct gar_error *err)
{
    if (node->kind != GAR_PLAN_JOIN || node->asof.kind != GAR_ASOF_NONE ||
        wants_left(node) == node->is_build_left) {
        return GAR_OK;
    }
    struct gar_join_parts parts = gar_plan_join_parts(node);
    parts.is_build_left = !node->is_build_left;
    return gar_plan_join_exact(node->inputs[0], node->inputs[1], &parts, out, err);
}

enum gar_status gar_rule_choose_build(const struct gar_plan *plan, struct gar_plan **out,
                                      struct gar_error *err)
{
    return gar_plan_map(plan, choose, out, err);
}
