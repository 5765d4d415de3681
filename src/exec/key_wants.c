/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/key_wants.h"

#include <string.h>

#include "expr/window.h"
#include "plan/rewrite.h"

/* More tests of one scan cost more than they spare. */
enum { TESTS_MAX = 4 };

static enum gar_status add(struct gar_query *query, int64_t position, struct gar_key_filter *filter,
                           const struct gar_key_want **list, struct gar_error *err)
{
    for (const struct gar_key_want *w = *list; w != NULL; w = w->next) {
        if (w->position == position && w->filter == filter) {
            return GAR_OK;
        }
    }
    struct gar_key_want *want =
        (struct gar_key_want *)gar_arena_calloc(&query->arena, 1, (int64_t)sizeof *want);
    if (want == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *want);
    }
    *want = (struct gar_key_want){.next = *list, .position = position, .filter = filter};
    *list = want;
    return GAR_OK;
}

/* The place of a plain column, -1 of anything else. */
static int64_t column_place(const struct gar_expr *expr, const struct gar_schema *schema)
{
    const char *name = gar_expr_column_name(expr);
    return name != NULL ? gar_schema_find(schema, name) : -1;
}

static bool is_among(struct gar_expr *const *exprs, int64_t count, const struct gar_schema *schema,
                     int64_t position)
{
    bool is_found = false;
    for (int64_t i = 0; i < count && !is_found; i++) {
        is_found = column_place(exprs[i], schema) == position;
    }
    return is_found;
}

/* Where the column of a node with one input comes from, if a filter on it may go below; else -1. */
static int64_t place_below(const struct gar_plan *node, int64_t position)
{
    const struct gar_schema *input = node->inputs[0]->schema;
    switch (node->kind) {
    case GAR_PLAN_PROJECT: return column_place(node->exprs[position], input);
    case GAR_PLAN_AGGREGATE:
        return position < node->key_count ? column_place(node->exprs[position], input) : -1;
    case GAR_PLAN_FILTER: return position;
    case GAR_PLAN_SORT: return node->limit < 0 ? position : -1;
    case GAR_PLAN_DISTINCT:
        return node->expr_count == 0 || is_among(node->exprs, node->expr_count, input, position)
                   ? position
                   : -1;
    case GAR_PLAN_WINDOW: {
        const struct gar_expr *window = node->exprs[0]->args[0];
        return position < input->count && is_among(gar_window_partition(window),
                                                   window->window.partition_count, input, position)
                   ? position
                   : -1;
    }
    case GAR_PLAN_UDF: return position < input->count ? position : -1;
    case GAR_PLAN_CONCAT: return position;
    case GAR_PLAN_SCAN:
    case GAR_PLAN_LIMIT:
    case GAR_PLAN_JOIN:
    case GAR_PLAN_WRITE: return -1;
    }
    return -1;
}

/* May rows of the side that a filter drops be left out before the join? */
static bool drops_side(const struct gar_plan *join, int64_t side)
{
    return side == 0 ? join->join != GAR_JOIN_RIGHT && join->join != GAR_JOIN_OUTER
                     : join->join == GAR_JOIN_INNER || join->join == GAR_JOIN_RIGHT;
}

/* May what is wanted of one side's key be wanted of the other side's too? */
static bool has_equal_sides(const struct gar_plan *join)
{
    return (join->join == GAR_JOIN_INNER || join->join == GAR_JOIN_SEMI) &&
           join->asof.kind == GAR_ASOF_NONE;
}

static enum gar_status below_join(struct gar_query *query, const struct gar_plan *join,
                                  int64_t side, const struct gar_key_want *want,
                                  const struct gar_key_want **out, struct gar_error *err)
{
    const int64_t left_count = join->inputs[0]->schema->count;
    const int64_t at = join->columns[want->position];
    const int64_t from = at < left_count ? 0 : 1;
    const int64_t place = from == 0 ? at : at - left_count;
    if (from == side) {
        return drops_side(join, side) ? add(query, place, want->filter, out, err) : GAR_OK;
    }
    for (int64_t k = 0; k < join->key_count && has_equal_sides(join); k++) {
        const struct gar_expr *mine = join->exprs[side * join->key_count + k];
        const struct gar_expr *other = join->exprs[from * join->key_count + k];
        const int64_t mine_place = column_place(mine, join->inputs[side]->schema);
        if (mine_place >= 0 && column_place(other, join->inputs[from]->schema) == place &&
            !join->nulls_equal[k]) {
            GAR_TRY(add(query, mine_place, want->filter, out, err));
        }
    }
    return GAR_OK;
}

enum gar_status gar_key_wants_below(struct gar_query *query, const struct gar_plan *node,
                                    int64_t side, const struct gar_key_want *wants,
                                    const struct gar_key_want **out, struct gar_error *err)
{
    *out = NULL;
    for (; wants != NULL; wants = wants->next) {
        if (node->kind == GAR_PLAN_JOIN) {
            GAR_TRY(below_join(query, node, side, wants, out, err));
            continue;
        }
        const int64_t place = place_below(node, wants->position);
        if (place >= 0) {
            GAR_TRY(add(query, place, wants->filter, out, err));
        }
    }
    return GAR_OK;
}

enum gar_status gar_key_wants_add(struct gar_query *query, const struct gar_plan *plan,
                                  struct gar_join *join, const struct gar_key_want **wants,
                                  struct gar_error *err)
{
    const int64_t side = plan->is_build_left ? 1 : 0;
    const struct gar_schema *schema = plan->inputs[side]->schema;
    for (int64_t k = 0; k < plan->key_count && plan->sends_keys; k++) {
        const int64_t place = column_place(plan->exprs[side * plan->key_count + k], schema);
        if (place >= 0 && !plan->nulls_equal[k] &&
            gar_key_filter_takes(schema->fields[place].type)) {
            struct gar_key_filter *filter = NULL;
            GAR_TRY(gar_join_send_keys(join, k, &filter, err));
            GAR_TRY(add(query, place, filter, wants, err));
        }
    }
    return GAR_OK;
}

enum gar_status gar_key_wants_of_scan(struct gar_query *query, const struct gar_plan *scan,
                                      const struct gar_key_want *wants, struct gar_key_use **out,
                                      int64_t *out_count, struct gar_error *err)
{
    struct gar_key_use *uses = NULL;
    int64_t count = 0;
    if (wants != NULL && scan->limit < 0) {
        uses =
            (struct gar_key_use *)gar_arena_calloc(&query->arena, TESTS_MAX, (int64_t)sizeof *uses);
        if (uses == NULL) {
            return gar_error_nomem(err, TESTS_MAX * (int64_t)sizeof *uses);
        }
    }
    for (; uses != NULL && wants != NULL && count < TESTS_MAX; wants = wants->next) {
        if (gar_key_filter_takes(scan->schema->fields[wants->position].type)) { /* not null's */
            uses[count++] = (struct gar_key_use){.filter = wants->filter,
                                                 .position = scan->columns[wants->position]};
        }
    }
    *out = uses;
    *out_count = count;
    return GAR_OK;
}
