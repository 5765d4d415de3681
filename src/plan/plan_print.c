/* SPDX-License-Identifier: Apache-2.0 */
/* Plans as text: one node a line, inputs indented below. */
#include <stdio.h>

#include "plan/plan.h"

static void print_exprs(struct gar_expr *const *exprs, int64_t count, struct gar_strbuf *out)
{
    for (int64_t i = 0; i < count; i++) {
        if (i > 0) {
            gar_strbuf_append(out, ", ");
        }
        gar_expr_print(exprs[i], out);
    }
}

static void print_scan(const struct gar_plan *plan, struct gar_strbuf *out)
{
    gar_strbuf_append(out, "Scan ");
    plan->provider->vtable->print(plan->provider, out);
    gar_strbuf_append(out, " columns [");
    for (int64_t i = 0; i < plan->schema->count; i++) {
        gar_strbuf_printf(out, "%s%s", i == 0 ? "" : ", ", plan->schema->fields[i].name);
    }
    gar_strbuf_append(out, "]");
    if (plan->filter != NULL) {
        gar_strbuf_append(out, " filter ");
        gar_expr_print(plan->filter, out);
    }
    if (plan->limit >= 0) {
        gar_strbuf_printf(out, " limit %lld", (long long)plan->limit);
    }
}

static void print_sort(const struct gar_plan *plan, struct gar_strbuf *out)
{
    gar_strbuf_append(out, "Sort ");
    for (int64_t i = 0; i < plan->expr_count; i++) {
        gar_strbuf_append(out, i == 0 ? "" : ", ");
        gar_expr_print(plan->exprs[i], out);
        gar_strbuf_append(out, plan->descending[i] ? " desc" : "");
        if (plan->nulls_first[i] != plan->descending[i]) {
            gar_strbuf_append(out, plan->nulls_first[i] ? " nulls first" : " nulls last");
        }
    }
    if (plan->limit >= 0) {
        gar_strbuf_printf(out, " limit %lld", (long long)plan->limit);
    }
}

static void print_aggregate(const struct gar_plan *plan, struct gar_strbuf *out)
{
    gar_strbuf_append(out, "Aggregate ");
    print_exprs(plan->exprs + plan->key_count, plan->expr_count - plan->key_count, out);
    if (plan->key_count > 0) {
        gar_strbuf_append(out, plan->expr_count > plan->key_count ? " by " : "by ");
        print_exprs(plan->exprs, plan->key_count, out);
    }
}

static void print_limit(const struct gar_plan *plan, struct gar_strbuf *out)
{
    if (plan->limit >= 0) {
        gar_strbuf_printf(out, "Limit %lld", (long long)plan->limit);
    }
    if (plan->offset > 0) {
        gar_strbuf_printf(out, "%s %lld", plan->limit >= 0 ? " offset" : "Offset",
                          (long long)plan->offset);
    }
}

static const char *join_name(const struct gar_plan *plan)
{
    switch (plan->join) {
    case GAR_JOIN_INNER: return plan->key_count > 0 ? "inner" : "cross";
    case GAR_JOIN_LEFT: return "left";
    case GAR_JOIN_RIGHT: return "right";
    case GAR_JOIN_OUTER: return "outer";
    case GAR_JOIN_SEMI: return "semi";
    case GAR_JOIN_ANTI: return "anti";
    }
    return "unknown";
}

static void print_join(const struct gar_plan *plan, struct gar_strbuf *out)
{
    static const char *const asof[] = {"", "asof backward ", "asof forward ", "asof nearest "};
    gar_strbuf_printf(out, "Join %s%s", asof[plan->asof.kind], join_name(plan));
    for (int64_t k = 0; k < plan->key_count; k++) {
        gar_strbuf_append(out, k == 0 ? " on " : ", ");
        gar_expr_print(plan->exprs[k], out);
        gar_strbuf_append(out, plan->nulls_equal[k] ? " <=> " : " = ");
        gar_expr_print(plan->exprs[plan->key_count + k], out);
    }
    if (plan->expr_count > 2 * plan->key_count) {
        gar_strbuf_append(out, " where ");
        gar_expr_print(plan->exprs[2 * plan->key_count], out);
    }
    gar_strbuf_append(out, " columns [");
    for (int64_t i = 0; i < plan->schema->count; i++) {
        gar_strbuf_printf(out, "%s%s", i == 0 ? "" : ", ", plan->schema->fields[i].name);
    }
    gar_strbuf_printf(out, "] table of %s%s", plan->is_build_left ? "left" : "right",
                      plan->sends_keys ? ", sends keys" : "");
}

static void print_udf(const struct gar_plan *plan, struct gar_strbuf *out)
{
    gar_strbuf_printf(out, "Udf %s(", plan->udf->name);
    print_exprs(plan->exprs, plan->expr_count, out);
    gar_strbuf_printf(out, ") as %s", plan->schema->fields[plan->schema->count - 1].name);
    if (plan->udf->batch_rows > 0) {
        gar_strbuf_printf(out, ", batches of %lld rows", (long long)plan->udf->batch_rows);
    }
    if (plan->udf->detail != NULL) {
        gar_strbuf_printf(out, ", %s", plan->udf->detail);
    }
}

static void print_node(const struct gar_plan *plan, struct gar_strbuf *out)
{
    switch (plan->kind) {
    case GAR_PLAN_SCAN: print_scan(plan, out); break;
    case GAR_PLAN_PROJECT:
        gar_strbuf_append(out, "Project ");
        print_exprs(plan->exprs, plan->expr_count, out);
        break;
    case GAR_PLAN_FILTER:
        gar_strbuf_append(out, "Filter ");
        gar_expr_print(plan->exprs[0], out);
        break;
    case GAR_PLAN_LIMIT: print_limit(plan, out); break;
    case GAR_PLAN_SORT: print_sort(plan, out); break;
    case GAR_PLAN_AGGREGATE: print_aggregate(plan, out); break;
    case GAR_PLAN_DISTINCT:
        gar_strbuf_append(out, plan->expr_count == 0 ? "Distinct" : "Distinct on ");
        print_exprs(plan->exprs, plan->expr_count, out);
        break;
    case GAR_PLAN_JOIN: print_join(plan, out); break;
    case GAR_PLAN_WINDOW:
        gar_strbuf_append(out, "Window ");
        print_exprs(plan->exprs, plan->expr_count, out);
        break;
    case GAR_PLAN_CONCAT: gar_strbuf_append(out, "Concat"); break;
    case GAR_PLAN_WRITE:
        gar_strbuf_append(out, "Write ");
        plan->sink->vtable->print(plan->sink, out);
        break;
    case GAR_PLAN_UDF: print_udf(plan, out); break;
    }
}

static void print_at(const struct gar_plan *plan, int64_t level, struct gar_strbuf *out)
{
    gar_strbuf_append_fill(out, ' ', 2 * level);
    print_node(plan, out);
    gar_strbuf_append_char(out, '\n');
    for (int64_t i = 0; i < plan->input_count; i++) {
        print_at(plan->inputs[i], level + 1, out);
    }
}

void gar_plan_print(const struct gar_plan *plan, struct gar_strbuf *out)
{
    print_at(plan, 0, out);
}
