/* SPDX-License-Identifier: Apache-2.0 */
/* order_joins: the order of inner joins is chosen by the guessed size of what they make.
 *
 * A tree of inner joins (and of filters between them) is taken apart into relations and predicates and put together
 * again: up to DP_MAX relations by dynamic programming over their subsets, without pairs that no predicate connects
 * unless there is no other way (after Moerkotte and Neumann, "Analysis of Two Existing and One New Dynamic Programming
 * Algorithm for the Generation of Optimal Bushy Join Trees without Cross Products", 2006, enumerated plainly); beyond
 * that greedily, the smallest result first. Once chosen the order stays: the nodes are marked. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "optimize/rule_priv.h"

enum { RELATIONS_MAX = 32, DP_MAX = 10, PREDICATES_MAX = 256 };

struct relation {
    struct gar_plan *plan; /* borrowed at first, owned once it has a filter */
    bool is_owned;
    double rows;
};

struct predicate {
    struct gar_expr *left;  /* owned; of an equality */
    struct gar_expr *right; /* owned; NULL: left is the whole predicate */
    uint32_t left_set;      /* relations that it names */
    uint32_t right_set;
    bool is_done;
};

struct graph {
    struct relation relations[RELATIONS_MAX];
    int32_t count;
    struct predicate *predicates; /* owned; PREDICATES_MAX items */
    int64_t predicate_count;
    double side_values[RELATIONS_MAX]
                      [RELATIONS_MAX]; /* [a][b]: different keys of a, to b; 0: no equality */
    uint32_t neighbours[RELATIONS_MAX];
};

/* ---- taking apart ---- */

static bool is_plain_join(const struct gar_plan *plan)
{
    if (plan->kind != GAR_PLAN_JOIN || plan->join != GAR_JOIN_INNER) {
        return false;
    }
    for (int64_t k = 0; k < plan->key_count; k++) {
        if (plan->nulls_equal[k]) {
            return false;
        }
    }
    return true;
}

/* A join, or filters over one. */
static bool is_inside(const struct gar_plan *plan)
{
    while (plan->kind == GAR_PLAN_FILTER) {
        plan = plan->inputs[0];
    }
    return is_plain_join(plan);
}

static int64_t count_relations(const struct gar_plan *plan)
{
    if (!is_inside(plan)) {
        return 1;
    }
    return plan->kind == GAR_PLAN_FILTER
               ? count_relations(plan->inputs[0])
               : count_relations(plan->inputs[0]) + count_relations(plan->inputs[1]);
}

/* Moves both in, also on failure. */
static enum gar_status add_predicate(struct graph *g, struct gar_expr *left, struct gar_expr *right,
                                     struct gar_error *err)
{
    if (g->predicate_count >= PREDICATES_MAX) {
        gar_expr_unref(left);
        gar_expr_unref(right);
        return gar_error_set(err, GAR_ERR_INTERNAL, "more join predicates than were counted");
    }
    g->predicates[g->predicate_count++] = (struct predicate){.left = left, .right = right};
    return GAR_OK;
}

static enum gar_status add_conjuncts(struct graph *g, struct gar_expr *expr, struct gar_error *err)
{
    if (gar_expr_is_call(expr, "and")) {
        GAR_TRY(add_conjuncts(g, expr->args[0], err));
        return add_conjuncts(g, expr->args[1], err);
    }
    return add_predicate(g, gar_expr_ref(expr), NULL, err);
}

static int64_t count_conjuncts(const struct gar_expr *expr)
{
    return gar_expr_is_call(expr, "and")
               ? count_conjuncts(expr->args[0]) + count_conjuncts(expr->args[1])
               : 1;
}

static int64_t count_predicates(const struct gar_plan *plan)
{
    if (!is_inside(plan)) {
        return 0;
    }
    if (plan->kind == GAR_PLAN_FILTER) {
        return count_conjuncts(plan->exprs[0]) + count_predicates(plan->inputs[0]);
    }
    const int64_t own = plan->key_count + (plan->expr_count > 2 * plan->key_count
                                               ? count_conjuncts(plan->exprs[2 * plan->key_count])
                                               : 0);
    return own + count_predicates(plan->inputs[0]) + count_predicates(plan->inputs[1]);
}

static enum gar_status take_apart(struct graph *g, struct gar_plan *plan, struct gar_error *err)
{
    if (!is_inside(plan)) {
        g->relations[g->count++] =
            (struct relation){.plan = plan, .rows = gar_plan_estimate_rows(plan)};
        return GAR_OK;
    }
    if (plan->kind == GAR_PLAN_FILTER) {
        GAR_TRY(add_conjuncts(g, plan->exprs[0], err));
        return take_apart(g, plan->inputs[0], err);
    }
    for (int64_t k = 0; k < plan->key_count; k++) {
        GAR_TRY(add_predicate(g, gar_expr_ref(plan->exprs[k]),
                              gar_expr_ref(plan->exprs[plan->key_count + k]), err));
    }
    if (plan->expr_count > 2 * plan->key_count) {
        GAR_TRY(add_conjuncts(g, plan->exprs[2 * plan->key_count], err));
    }
    GAR_TRY(take_apart(g, plan->inputs[0], err));
    return take_apart(g, plan->inputs[1], err);
}

static bool has_unique_names(const struct graph *g)
{
    for (int32_t r = 0; r < g->count; r++) {
        const struct gar_schema *schema = g->relations[r].plan->schema;
        for (int64_t c = 0; c < schema->count; c++) {
            for (int32_t other = r + 1; other < g->count; other++) {
                if (gar_schema_find(g->relations[other].plan->schema, schema->fields[c].name) >=
                    0) {
                    return false;
                }
            }
        }
    }
    return true;
}

struct set_of {
    const struct graph *graph;
    uint32_t set;
};

static void note_relation(const char *name, void *context)
{
    struct set_of *s = context;
    for (int32_t r = 0; r < s->graph->count; r++) {
        if (gar_schema_find(s->graph->relations[r].plan->schema, name) >= 0) {
            s->set |= UINT32_C(1) << r;
        }
    }
}

static uint32_t relations_of(const struct graph *g, const struct gar_expr *expr)
{
    struct set_of s = {.graph = g};
    gar_expr_visit_columns(expr, note_relation, &s);
    return s.set;
}

static int32_t first_of(uint32_t set)
{
    return __builtin_ctz(set);
}

static bool is_single(uint32_t set)
{
    return set != 0 && (set & (set - 1)) == 0;
}

/* One more key of relation a towards b: together they have no more values than a's source has rows. */
static void note_side(struct graph *g, int32_t a, int32_t b, const struct gar_expr *key)
{
    const struct gar_plan *plan = g->relations[a].plan;
    const double values = fmax(gar_plan_distinct_bound(plan, key), 1.0);
    const double most = fmax(gar_plan_base_rows(plan, key), values);
    const double before = g->side_values[a][b];
    g->side_values[a][b] = before == 0 ? values : fmin(before * values, most);
}

/* Sets of the predicates, and what joins of two relations are worth. */
static void connect(struct graph *g)
{
    for (int64_t p = 0; p < g->predicate_count; p++) {
        struct predicate *q = &g->predicates[p];
        q->left_set = relations_of(g, q->left);
        q->right_set = q->right != NULL ? relations_of(g, q->right) : 0;
        if (q->right == NULL || !is_single(q->left_set) || !is_single(q->right_set) ||
            q->left_set == q->right_set) {
            continue;
        }
        const int32_t a = first_of(q->left_set);
        const int32_t b = first_of(q->right_set);
        note_side(g, a, b, q->left);
        note_side(g, b, a, q->right);
        g->neighbours[a] |= q->right_set;
        g->neighbours[b] |= q->left_set;
    }
}

/* ---- sizes ---- */

static bool is_within(uint32_t part, uint32_t whole)
{
    return (part & ~whole) == 0;
}

static double rows_of(const struct graph *g, uint32_t set)
{
    double rows = 1;
    for (int32_t a = 0; a < g->count; a++) {
        if ((set >> a & 1) == 0) {
            continue;
        }
        rows *= fmax(g->relations[a].rows, 1.0);
        for (int32_t b = a + 1; b < g->count; b++) {
            if ((set >> b & 1) != 0 && g->side_values[a][b] > 0) {
                rows /= fmin(g->side_values[a][b], g->side_values[b][a]);
            }
        }
    }
    for (int64_t p = 0; p < g->predicate_count; p++) {
        const struct predicate *q = &g->predicates[p];
        const uint32_t all = q->left_set | q->right_set;
        const bool is_counted =
            q->right != NULL && is_single(q->left_set) && is_single(q->right_set);
        if (!is_counted && !is_single(all) && is_within(all, set)) {
            rows *= q->right == NULL ? gar_expr_share(q->left, NULL) : 0.05;
        }
    }
    return fmax(rows, 1.0);
}

static bool touches(const struct graph *g, uint32_t a, uint32_t b)
{
    for (uint32_t left = a; left != 0; left &= left - 1) {
        if ((g->neighbours[first_of(left)] & b) != 0) {
            return true;
        }
    }
    return false;
}

/* A row that is put into a table costs more than one that is looked up. */
static double join_cost(double left, double right, double out)
{
    return 2.0 * fmin(left, right) + 0.5 * fmax(left, right) + out;
}

/* ---- choosing ---- */

struct best {
    double rows;
    double cost;    /* -1: not possible yet */
    uint32_t split; /* one of the two sets that it is joined of; 0: a relation */
};

static void try_splits(const struct graph *g, struct best *best, uint32_t set, bool allow_cross)
{
    struct best *b = &best[set];
    for (uint32_t part = (set - 1) & set; part != 0; part = (part - 1) & set) {
        const uint32_t rest = set & ~part;
        if (part < rest || best[part].cost < 0 || best[rest].cost < 0 ||
            (!allow_cross && !touches(g, part, rest))) {
            continue;
        }
        const double cost = best[part].cost + best[rest].cost +
                            join_cost(best[part].rows, best[rest].rows, b->rows);
        if (b->cost < 0 || cost < b->cost) {
            b->cost = cost;
            b->split = part;
        }
    }
}

static bool is_connected(const struct graph *g, uint32_t set)
{
    uint32_t reached = set & (~set + 1);
    for (uint32_t before = 0; before != reached;) {
        before = reached;
        for (uint32_t left = before; left != 0; left &= left - 1) {
            reached |= g->neighbours[first_of(left)] & set;
        }
    }
    return reached == set;
}

static void choose_all(const struct graph *g, struct best *best)
{
    const uint32_t all = (UINT32_C(1) << g->count) - 1;
    for (uint32_t set = 1; set <= all; set++) {
        best[set] = (struct best){.rows = rows_of(g, set), .cost = is_single(set) ? 0 : -1};
        if (!is_single(set)) {
            if (is_connected(g, set)) {
                try_splits(g, best, set, false);
            } else if (!is_connected(
                           g, all)) { /* parts that nothing connects have to meet somewhere */
                try_splits(g, best, set, true);
            }
        }
    }
}

/* ---- putting together ---- */

static enum gar_status join_sets(struct graph *g, struct gar_plan *left, uint32_t left_set,
                                 struct gar_plan *right, uint32_t right_set, struct gar_plan **out,
                                 struct gar_error *err)
{
    const uint32_t both = left_set | right_set;
    struct gar_expr **exprs = gar_calloc(2 * g->predicate_count + 1, (int64_t)sizeof *exprs);
    struct gar_expr_list rest = {0};
    if (exprs == NULL) {
        return gar_error_nomem(err, 2 * g->predicate_count * (int64_t)sizeof *exprs);
    }
    int64_t keys = 0;
    enum gar_status status = GAR_OK;
    for (int32_t pass = 0; pass < 2; pass++) { /* left keys, then right keys behind them */
        int64_t at = 0;
        for (int64_t p = 0; p < g->predicate_count; p++) {
            const struct predicate *q = &g->predicates[p];
            const bool is_key =
                !q->is_done && q->right != NULL && q->left_set != 0 && q->right_set != 0;
            const bool is_straight =
                is_within(q->left_set, left_set) && is_within(q->right_set, right_set);
            const bool is_turned =
                is_within(q->left_set, right_set) && is_within(q->right_set, left_set);
            if (is_key && (is_straight || is_turned)) {
                exprs[pass * keys + at++] = is_straight == (pass == 0) ? q->left : q->right;
            }
        }
        keys = at;
    }
    for (int64_t p = 0; p < g->predicate_count && status >= 0; p++) {
        struct predicate *q = &g->predicates[p];
        const uint32_t all = q->left_set | q->right_set;
        if (q->is_done || !is_within(all, both)) {
            continue;
        }
        const bool is_key =
            q->right != NULL && q->left_set != 0 && q->right_set != 0 &&
            ((is_within(q->left_set, left_set) && is_within(q->right_set, right_set)) ||
             (is_within(q->left_set, right_set) && is_within(q->right_set, left_set)));
        q->is_done = true;
        if (!is_key && q->right == NULL) {
            status = gar_expr_list_add(&rest, gar_expr_ref(q->left), err);
        } else if (!is_key) {
            struct gar_expr *args[2] = {q->left, q->right};
            struct gar_expr *equal = NULL;
            status = gar_expr_new_call_by_name("equal", args, 2, &equal, err);
            status = status >= 0 ? gar_expr_list_add(&rest, equal, err) : status;
        }
    }
    struct gar_expr *condition = NULL;
    if (status >= 0 && rest.count > 0) {
        status = gar_expr_join_and(rest.items, rest.count, &condition, err);
        exprs[2 * keys] = condition;
    }
    if (status >= 0) {
        const struct gar_join_parts parts = {.kind = GAR_JOIN_INNER,
                                             .exprs = exprs,
                                             .expr_count = 2 * keys + (rest.count > 0),
                                             .key_count = keys,
                                             .is_ordered = true};
        status = gar_plan_join_exact(left, right, &parts, out, err);
    }
    gar_expr_unref(condition);
    gar_expr_list_destroy(&rest);
    gar_free(exprs);
    return status;
}

static enum gar_status build(struct graph *g, const struct best *best, uint32_t set,
                             struct gar_plan **out, struct gar_error *err)
{
    if (is_single(set)) {
        *out = gar_plan_ref(g->relations[first_of(set)].plan);
        return GAR_OK;
    }
    const uint32_t left_set = best[set].split;
    const uint32_t right_set = set & ~left_set;
    struct gar_plan *left = NULL;
    struct gar_plan *right = NULL;
    enum gar_status status = build(g, best, left_set, &left, err);
    if (status >= 0) {
        status = build(g, best, right_set, &right, err);
    }
    if (status >= 0) {
        status = join_sets(g, left, left_set, right, right_set, out, err);
    }
    gar_plan_unref(left);
    gar_plan_unref(right);
    return status;
}

/* Too many relations to try all: join the two that give least, until one is left. */
static enum gar_status build_greedily(struct graph *g, struct gar_plan **out, struct gar_error *err)
{
    struct gar_plan *plans[RELATIONS_MAX];
    uint32_t sets[RELATIONS_MAX];
    int32_t count = g->count;
    enum gar_status status = GAR_OK;
    for (int32_t i = 0; i < count; i++) {
        plans[i] = gar_plan_ref(g->relations[i].plan);
        sets[i] = UINT32_C(1) << i;
    }
    while (count > 1 && status >= 0) {
        int32_t a = 0;
        int32_t b = 1;
        double least = HUGE_VAL;
        for (int32_t i = 0; i < count; i++) {
            for (int32_t k = i + 1; k < count; k++) {
                const double cross = touches(g, sets[i], sets[k]) ? 1.0 : 1e30;
                const double rows = rows_of(g, sets[i] | sets[k]) * cross;
                if (rows < least) {
                    least = rows;
                    a = i;
                    b = k;
                }
            }
        }
        struct gar_plan *joined = NULL;
        status = join_sets(g, plans[a], sets[a], plans[b], sets[b], &joined, err);
        if (status >= 0) {
            gar_plan_unref(plans[a]);
            gar_plan_unref(plans[b]);
            plans[a] = joined;
            sets[a] |= sets[b];
            plans[b] = plans[--count];
            sets[b] = sets[count];
        }
    }
    for (int32_t i = status >= 0 ? 1 : 0; i < count; i++) {
        gar_plan_unref(plans[i]);
    }
    *out = status >= 0 ? plans[0] : NULL;
    return status;
}

/* Predicates of one relation become a filter on it, those of none one on the first. */
static enum gar_status filter_relations(struct graph *g, struct gar_error *err)
{
    for (int64_t p = 0; p < g->predicate_count; p++) {
        struct predicate *q = &g->predicates[p];
        const uint32_t all = q->left_set | q->right_set;
        if (all != 0 && !is_single(all)) {
            continue;
        }
        struct relation *r = &g->relations[all != 0 ? first_of(all) : 0];
        struct gar_expr *predicate = NULL;
        if (q->right != NULL) {
            struct gar_expr *args[2] = {q->left, q->right};
            GAR_TRY(gar_expr_new_call_by_name("equal", args, 2, &predicate, err));
        } else {
            predicate = gar_expr_ref(q->left);
        }
        struct gar_plan *filtered = NULL;
        const enum gar_status status = gar_plan_filter(r->plan, predicate, &filtered, err);
        gar_expr_unref(predicate);
        GAR_TRY(status);
        if (r->is_owned) {
            gar_plan_unref(r->plan);
        }
        r->plan = filtered;
        r->is_owned = true;
        r->rows = gar_plan_estimate_rows(filtered);
        q->is_done = true;
    }
    return GAR_OK;
}

/* The join (moved, also on failure) with the columns of `schema`, in order. */
static enum gar_status show(struct gar_plan *join, const struct gar_schema *schema,
                            struct gar_plan **out, struct gar_error *err)
{
    int64_t *columns = gar_calloc(schema->count, (int64_t)sizeof *columns);
    enum gar_status status = GAR_OK;
    if (columns == NULL) {
        status = gar_error_nomem(err, schema->count * (int64_t)sizeof *columns);
    }
    for (int64_t i = 0; i < schema->count && status >= 0; i++) {
        columns[i] = gar_schema_find(join->pairs, schema->fields[i].name);
    }
    if (status >= 0) {
        struct gar_join_parts parts = gar_plan_join_parts(join);
        parts.columns = columns;
        parts.column_count = schema->count;
        status = gar_plan_join_exact(join->inputs[0], join->inputs[1], &parts, out, err);
    }
    gar_free(columns);
    gar_plan_unref(join);
    return status;
}

/* A key of several relations at once could end up inside one side of a join, where it would have to be a condition: that
 * is another equality for NaN. Such joins stay as they were written. */
static bool has_wide_key(const struct graph *g)
{
    for (int64_t p = 0; p < g->predicate_count; p++) {
        const struct predicate *q = &g->predicates[p];
        if (q->right != NULL && (!is_single(q->left_set) || !is_single(q->right_set))) {
            return true;
        }
    }
    return false;
}

static enum gar_status reorder(struct graph *g, const struct gar_plan *node, struct gar_plan **out,
                               struct gar_error *err)
{
    for (int32_t r = 0; r < g->count; r++) {
        if (g->relations[r].rows < 0) {
            return GAR_OK; /* no idea: it stays as it was written */
        }
    }
    if (!has_unique_names(g)) {
        return GAR_OK;
    }
    connect(g);
    if (has_wide_key(g)) {
        return GAR_OK;
    }
    GAR_TRY(filter_relations(g, err));
    struct gar_plan *built = NULL;
    if (g->count > DP_MAX) {
        GAR_TRY(build_greedily(g, &built, err));
        return show(built, node->schema, out, err);
    }
    const int64_t sets = (int64_t)1 << g->count;
    struct best *best = gar_calloc(sets, (int64_t)sizeof *best);
    if (best == NULL) {
        return gar_error_nomem(err, sets * (int64_t)sizeof *best);
    }
    choose_all(g, best);
    const enum gar_status status = build(g, best, (uint32_t)sets - 1, &built, err);
    gar_free(best);
    return status < 0 ? status : show(built, node->schema, out, err);
}

static enum gar_status order(const struct gar_plan *node, struct gar_plan **out,
                             struct gar_error *err)
{
    if (!is_plain_join(node) || node->is_ordered) {
        return GAR_OK;
    }
    const int64_t relations = count_relations(node);
    if (relations < 3 || relations > RELATIONS_MAX || count_predicates(node) > PREDICATES_MAX) {
        return GAR_OK;
    }
    struct graph *g = gar_calloc(1, (int64_t)sizeof *g);
    struct predicate *predicates = gar_calloc(PREDICATES_MAX, (int64_t)sizeof *predicates);
    struct gar_plan *root = gar_plan_ref(node);
    enum gar_status status = GAR_OK;
    if (g == NULL || predicates == NULL) {
        status = gar_error_nomem(err, PREDICATES_MAX * (int64_t)sizeof *predicates);
    } else {
        g->predicates = predicates;
        status = take_apart(g, root, err);
        if (status >= 0) {
            status = reorder(g, node, out, err);
        }
        for (int64_t p = 0; p < g->predicate_count; p++) {
            gar_expr_unref(predicates[p].left);
            gar_expr_unref(predicates[p].right);
        }
        for (int32_t r = 0; r < g->count; r++) {
            if (g->relations[r].is_owned) {
                gar_plan_unref(g->relations[r].plan);
            }
        }
    }
    gar_plan_unref(root);
    gar_free(predicates);
    gar_free(g);
    return status;
}

enum gar_status gar_rule_order_joins(const struct gar_plan *plan, struct gar_plan **out,
                                     struct gar_error *err)
{
    return gar_plan_map(plan, order, out, err);
}
