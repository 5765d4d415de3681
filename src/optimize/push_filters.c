/* SPDX-License-Identifier: Apache-2.0 */
/* push_filters: conjuncts move towards the scans and into them.
 *
 * They pass projections (their columns replaced by what makes them, if that is cheap), sorts without a limit, concat
 * (into every input), distinct and aggregates (if they look at keys only), user functions (if they do
 * without their result), joins (to the side they look at, where a row of it
 * that they drop could not come out), and join other filters; never a limit. A conjunct that compares the sides of an inner
 * join for equality becomes one of its keys.
 * Joined conjuncts are ordered, because they are evaluated one after the other on the rows that are left: cheap ones
 * first, tests of one column together, and those that may fail on a row (a cast, an overflow) last, so that they never see a
 * row that another one removes. */
#include <string.h>

#include "base/alloc.h"
#include "expr/window.h"
#include "optimize/rule_priv.h"

enum {
    CHEAP_SIZE = 4,   /* nodes of an expression that may be computed twice */
    ORDERED_MAX = 64, /* conjuncts; more are left in the order they were written */
};

/* The plan with the conjuncts (over its output; moved, the list is left empty) applied as low as possible. */
static enum gar_status push(const struct gar_plan *plan, struct gar_expr_list *conjuncts,
                            struct gar_plan **out, struct gar_error *err);

/* A guess at the cost of a row: text costs more than numbers, looking into it more than comparing it. */
static int64_t cost_of(const struct gar_expr *expr, const struct gar_schema *schema)
{
    int64_t cost = expr->kind == GAR_EXPR_LITERAL ? 0 : 1;
    if (expr->kind == GAR_EXPR_COLUMN) {
        const int64_t i = gar_schema_find(schema, expr->name);
        cost = i >= 0 && gar_type_is_text(schema->fields[i].type) ? 4 : 1;
    } else if (expr->kind == GAR_EXPR_CALL &&
               strcmp(gar_function_info(expr->function)->group, "text") == 0) {
        cost = 8;
    } else if (expr->kind == GAR_EXPR_IN_LIST) {
        cost = 3;
    }
    for (int64_t i = 0; i < expr->arg_count; i++) {
        cost += cost_of(expr->args[i], schema);
    }
    return cost;
}

struct only_column {
    const char *name; /* borrowed; NULL before the first */
    bool is_only;
};

static void note_column(const char *name, void *context)
{
    struct only_column *o = context;
    o->is_only = o->is_only && (o->name == NULL || strcmp(o->name, name) == 0);
    o->name = name;
}

/* The one column that the conjunct looks at, or NULL. */
static const char *column_of(const struct gar_expr *conjunct)
{
    struct only_column o = {.is_only = true};
    gar_expr_visit_columns(conjunct, note_column, &o);
    return o.is_only ? o.name : NULL;
}

/* Where a conjunct comes among the others; equal ones stay in order. */
struct rank {
    bool may_fail;
    int64_t cost;
};

static struct rank rank_of(const struct gar_expr *conjunct, const struct gar_schema *schema)
{
    const bool may_fail = gar_expr_may_fail(conjunct);
    return (struct rank){.may_fail = may_fail, .cost = may_fail ? 0 : cost_of(conjunct, schema)};
}

/* Sorts by rank, stable; then tests of one column follow the first of them if they cost the same. */
static void order(struct gar_expr **items, int64_t count, const struct gar_schema *schema)
{
    for (int64_t i = 1; i < count; i++) {
        struct gar_expr *item = items[i];
        const struct rank r = rank_of(item, schema);
        int64_t to = i;
        for (; to > 0; to--) {
            const struct rank before = rank_of(items[to - 1], schema);
            if (before.may_fail < r.may_fail ||
                (before.may_fail == r.may_fail && before.cost <= r.cost)) {
                break;
            }
            items[to] = items[to - 1];
        }
        items[to] = item;
    }
    for (int64_t i = 0; i + 2 < count; i++) {
        const char *column = column_of(items[i]);
        const struct rank r = rank_of(items[i], schema);
        for (int64_t k = i + 2; k < count && column != NULL && !r.may_fail; k++) {
            const char *other = column_of(items[k]);
            const struct rank found = rank_of(items[k], schema);
            if (!found.may_fail && found.cost == r.cost && other != NULL &&
                strcmp(other, column) == 0) {
                struct gar_expr *item = items[k];
                memmove(items + i + 2, items + i + 1, (size_t)(k - i - 1) * sizeof *items);
                items[i + 1] = item;
                break;
            }
        }
    }
}

/* All conjuncts as one predicate over `schema`. */
static enum gar_status join_ordered(const struct gar_expr_list *conjuncts,
                                    const struct gar_schema *schema, struct gar_expr **out,
                                    struct gar_error *err)
{
    if (conjuncts->count <= ORDERED_MAX) {
        order(conjuncts->items, conjuncts->count, schema);
    }
    return gar_expr_join_and(conjuncts->items, conjuncts->count, out, err);
}

/* FILTER over plan (moved in, also on failure) of all conjuncts that are left; the plan itself without any. */
static enum gar_status put_on_top(struct gar_plan *plan, const struct gar_expr_list *conjuncts,
                                  struct gar_plan **out, struct gar_error *err)
{
    if (conjuncts->count == 0) {
        *out = plan;
        return GAR_OK;
    }
    struct gar_expr *predicate = NULL;
    enum gar_status status = join_ordered(conjuncts, plan->schema, &predicate, err);
    if (status >= 0) {
        status = gar_plan_filter(plan, predicate, out, err);
    }
    gar_expr_unref(predicate);
    gar_plan_unref(plan);
    return status;
}

/* Moves the conjuncts of `from` that `test` takes to `to`; the others stay in order. */
static enum gar_status move_if(struct gar_expr_list *from, struct gar_expr_list *to,
                               bool (*test)(const struct gar_expr *conjunct,
                                            const struct gar_plan *plan),
                               const struct gar_plan *plan, struct gar_error *err)
{
    int64_t kept = 0;
    enum gar_status status = GAR_OK;
    for (int64_t i = 0; i < from->count; i++) {
        struct gar_expr *conjunct = from->items[i];
        if (status >= 0 && test(conjunct, plan)) {
            status = gar_expr_list_add(to, conjunct, err);
        } else {
            from->items[kept++] = conjunct;
        }
    }
    from->count = kept;
    return status;
}

static bool is_any(const struct gar_expr *conjunct, const struct gar_plan *plan)
{
    (void)conjunct;
    (void)plan;
    return true;
}

static bool can_fail(const struct gar_expr *conjunct, const struct gar_plan *plan)
{
    (void)plan;
    return gar_expr_may_fail(conjunct);
}

struct column_test {
    const struct gar_plan *plan;
    bool is_ok;
};

/* May what makes column i take its place? A literal may not: as a column it had a type of its own, bare it adapts. */
static bool can_inline(const struct gar_plan *plan, int64_t i)
{
    return i >= 0 && gar_expr_strip_alias(plan->exprs[i])->kind != GAR_EXPR_LITERAL;
}

/* Is what makes the column cheap? */
static void test_cheap(const char *name, void *context)
{
    struct column_test *t = context;
    const int64_t i = gar_schema_find(t->plan->schema, name);
    t->is_ok = t->is_ok && can_inline(t->plan, i) &&
               gar_expr_size(gar_expr_strip_alias(t->plan->exprs[i])) <= CHEAP_SIZE;
}

static bool is_cheap_inside(const struct gar_expr *conjunct, const struct gar_plan *project)
{
    struct column_test t = {.plan = project, .is_ok = true};
    gar_expr_visit_columns(conjunct, test_cheap, &t);
    return t.is_ok;
}

/* Is the column a key of the aggregate? Keys come first in its schema. */
static void test_key(const char *name, void *context)
{
    struct column_test *t = context;
    const int64_t i = gar_schema_find(t->plan->schema, name);
    t->is_ok = t->is_ok && can_inline(t->plan, i) && i < t->plan->key_count;
}

static bool looks_at_keys(const struct gar_expr *conjunct, const struct gar_plan *aggregate)
{
    struct column_test t = {.plan = aggregate, .is_ok = true};
    gar_expr_visit_columns(conjunct, test_key, &t);
    return t.is_ok && aggregate->key_count > 0;
}

/* Is the column one that a distinct goes by? */
static void test_distinct_key(const char *name, void *context)
{
    struct column_test *t = context;
    bool is_key = t->plan->expr_count == 0;
    for (int64_t i = 0; i < t->plan->expr_count && !is_key; i++) {
        const char *key = gar_expr_column_name(t->plan->exprs[i]);
        is_key = key != NULL &&
                 gar_schema_find(t->plan->schema, key) == gar_schema_find(t->plan->schema, name);
    }
    t->is_ok = t->is_ok && is_key;
}

static bool looks_at_distinct_keys(const struct gar_expr *conjunct, const struct gar_plan *distinct)
{
    struct column_test t = {.plan = distinct, .is_ok = true};
    gar_expr_visit_columns(conjunct, test_distinct_key, &t);
    return t.is_ok;
}

/* Is the column one that the windows are partitioned by? Then a filter drops whole partitions. */
static void test_partition(const char *name, void *context)
{
    struct column_test *t = context;
    const struct gar_expr *window = t->plan->exprs[0]->args[0];
    bool is_key = false;
    for (int32_t i = 0; i < window->window.partition_count && !is_key; i++) {
        const char *key = gar_expr_column_name(gar_window_partition(window)[i]);
        is_key = key != NULL && gar_schema_find(t->plan->inputs[0]->schema, key) ==
                                    gar_schema_find(t->plan->inputs[0]->schema, name);
    }
    t->is_ok = t->is_ok && is_key && gar_schema_find(t->plan->inputs[0]->schema, name) >= 0;
}

static bool looks_at_partition(const struct gar_expr *conjunct, const struct gar_plan *window)
{
    struct column_test t = {.plan = window, .is_ok = true};
    gar_expr_visit_columns(conjunct, test_partition, &t);
    return t.is_ok && window->exprs[0]->args[0]->window.partition_count > 0;
}

/* Replaces every conjunct by its form below a node that computes exprs under the names of `schema`. */
static enum gar_status inline_all(struct gar_expr_list *conjuncts, const struct gar_plan *plan,
                                  struct gar_error *err)
{
    for (int64_t i = 0; i < conjuncts->count; i++) {
        struct gar_expr *inlined = NULL;
        GAR_TRY(gar_expr_inline(conjuncts->items[i], plan->schema, plan->exprs, &inlined, err));
        gar_expr_unref(conjuncts->items[i]);
        conjuncts->items[i] = inlined;
    }
    return GAR_OK;
}

/* A node with one input: those conjuncts that pass `test` go below it, the rest stays on top. */
static enum gar_status push_through(const struct gar_plan *plan, struct gar_expr_list *conjuncts,
                                    bool (*test)(const struct gar_expr *conjunct,
                                                 const struct gar_plan *plan),
                                    bool is_computed, struct gar_plan **out, struct gar_error *err)
{
    struct gar_expr_list below = {0};
    struct gar_plan *input = NULL;
    struct gar_plan *node = NULL;
    enum gar_status status = move_if(conjuncts, &below, test, plan, err);
    if (status >= 0 && conjuncts->count > 0) { /* what stays may guard those that can fail */
        status = move_if(&below, conjuncts, can_fail, plan, err);
    }
    if (status >= 0 && is_computed) {
        status = inline_all(&below, plan, err);
    }
    if (status >= 0) {
        status = push(plan->inputs[0], &below, &input, err);
    }
    if (status >= 0) {
        status = gar_plan_over(plan, input, &node, err);
    }
    gar_plan_unref(input);
    gar_expr_list_destroy(&below);
    return status < 0 ? status : put_on_top(node, conjuncts, out, err);
}

static enum gar_status push_filter(const struct gar_plan *plan, struct gar_expr_list *conjuncts,
                                   struct gar_plan **out, struct gar_error *err)
{
    const bool is_alone = conjuncts->count == 0;
    struct gar_expr_list below = {0};
    struct gar_plan *input = NULL;
    enum gar_status status = gar_expr_list_add_conjuncts(&below, plan->exprs[0], err);
    if (status >= 0) {
        status = move_if(conjuncts, &below, is_any, plan, err);
    }
    if (status >= 0) {
        status = push(plan->inputs[0], &below, &input, err);
    }
    gar_expr_list_destroy(&below);
    GAR_TRY(status);
    const bool is_same = is_alone && input->kind == GAR_PLAN_FILTER &&
                         input->inputs[0] == plan->inputs[0] &&
                         gar_expr_equal(input->exprs[0], plan->exprs[0]);
    if (is_same) {
        gar_plan_unref(input);
        *out = gar_plan_ref(plan);
        return GAR_OK;
    }
    return put_on_top(input, conjuncts, out, err);
}

static enum gar_status push_into_scan(const struct gar_plan *scan, struct gar_expr_list *conjuncts,
                                      struct gar_plan **out, struct gar_error *err)
{
    struct gar_expr_list all = {0};
    struct gar_expr *filter = NULL;
    struct gar_plan *pushed = NULL;
    enum gar_status status = GAR_OK;
    if (scan->filter != NULL) {
        status = gar_expr_list_add_conjuncts(&all, scan->filter, err);
    }
    const int64_t before = all.count;
    if (status >= 0 &&
        scan->limit < 0) { /* a limit counts rows after the filter: nothing may join it */
        status = move_if(conjuncts, &all, is_any, scan, err);
    }
    if (status >= 0 && all.count > before) {
        status = join_ordered(&all, scan->provider->schema, &filter, err);
        if (status >= 0) {
            status = gar_plan_scan_pushed(scan, scan->columns, scan->schema->count, filter,
                                          scan->limit, &pushed, err);
        }
    } else if (status >= 0) {
        pushed = gar_plan_ref(scan);
    }
    gar_expr_unref(filter);
    gar_expr_list_destroy(&all);
    return status < 0 ? status : put_on_top(pushed, conjuncts, out, err);
}

static enum gar_status push_into_inputs(const struct gar_plan *concat,
                                        struct gar_expr_list *conjuncts, struct gar_plan **inputs,
                                        struct gar_plan **out, struct gar_error *err)
{
    bool has_changed = false;
    for (int64_t i = 0; i < concat->input_count; i++) {
        struct gar_expr_list copy = {0};
        enum gar_status status = GAR_OK;
        for (int64_t c = 0; c < conjuncts->count && status >= 0; c++) {
            status = gar_expr_list_add(&copy, gar_expr_ref(conjuncts->items[c]), err);
        }
        if (status >= 0) {
            status = push(concat->inputs[i], &copy, &inputs[i], err);
        }
        gar_expr_list_destroy(&copy);
        GAR_TRY(status);
        has_changed = has_changed || inputs[i] != concat->inputs[i];
    }
    if (!has_changed) {
        *out = gar_plan_ref(concat);
        return GAR_OK;
    }
    return gar_plan_with_inputs(concat, inputs, out, err);
}

static enum gar_status push_into_concat(const struct gar_plan *concat,
                                        struct gar_expr_list *conjuncts, struct gar_plan **out,
                                        struct gar_error *err)
{
    struct gar_plan **inputs = gar_calloc(concat->input_count, (int64_t)sizeof *inputs);
    if (inputs == NULL) {
        return gar_error_nomem(err, concat->input_count * (int64_t)sizeof *inputs);
    }
    const enum gar_status status = push_into_inputs(concat, conjuncts, inputs, out, err);
    for (int64_t i = 0; i < concat->input_count; i++) {
        gar_plan_unref(inputs[i]);
    }
    gar_free(inputs);
    return status;
}

static void test_not_made(const char *name, void *context)
{
    struct column_test *t = context;
    t->is_ok = t->is_ok && gar_schema_find(t->plan->inputs[0]->schema, name) >= 0;
}

/* Does the conjunct do without what the user function makes? */
static bool spares_udf(const struct gar_expr *conjunct, const struct gar_plan *udf)
{
    struct column_test t = {.plan = udf, .is_ok = true};
    gar_expr_visit_columns(conjunct, test_not_made, &t);
    return t.is_ok;
}

static bool is_none(const struct gar_expr *conjunct, const struct gar_plan *plan)
{
    (void)conjunct;
    (void)plan;
    return false;
}

/* ---- joins ---- */

struct sides {
    const struct gar_plan *join;
    bool has_left;
    bool has_right;
};

static void note_side(const char *name, void *context)
{
    struct sides *s = context;
    const bool is_left = gar_schema_find(s->join->inputs[0]->schema, name) >= 0;
    s->has_left = s->has_left || is_left;
    s->has_right = s->has_right || !is_left;
}

static struct sides sides_of(const struct gar_expr *expr, const struct gar_plan *join)
{
    struct sides s = {.join = join};
    gar_expr_visit_columns(expr, note_side, &s);
    return s;
}

static bool keeps_left(enum gar_join_kind kind)
{
    return kind == GAR_JOIN_LEFT || kind == GAR_JOIN_OUTER;
}

static bool keeps_right(enum gar_join_kind kind)
{
    return kind == GAR_JOIN_RIGHT || kind == GAR_JOIN_OUTER;
}

/* Rows that a join would drop must not make a query fail: what may fail stays above. */
static bool is_of_left(const struct gar_expr *conjunct, const struct gar_plan *join)
{
    const struct sides s = sides_of(conjunct, join);
    return s.has_left && !s.has_right && !keeps_right(join->join) && !gar_expr_may_fail(conjunct);
}

static bool is_of_right(const struct gar_expr *conjunct, const struct gar_plan *join)
{
    const struct sides s = sides_of(conjunct, join);
    return s.has_right && !s.has_left && !keeps_left(join->join) && !gar_expr_may_fail(conjunct);
}

/* Is it an equality of a left with a right expression that may be a key? Left's side comes first in *out. */
static bool is_key(const struct gar_expr *conjunct, const struct gar_plan *join,
                   struct gar_expr **out_pair, struct gar_type *out_type)
{
    if (join->join != GAR_JOIN_INNER || !gar_expr_is_call(conjunct, "equal") ||
        gar_expr_may_fail(conjunct)) {
        return false;
    }
    const struct sides first = sides_of(conjunct->args[0], join);
    const bool is_swapped = first.has_right;
    out_pair[0] = conjunct->args[is_swapped];
    out_pair[1] = conjunct->args[!is_swapped];
    const struct sides left = sides_of(out_pair[0], join);
    const struct sides right = sides_of(out_pair[1], join);
    struct gar_type left_type = {0};
    struct gar_type right_type = {0};
    return left.has_left && !left.has_right && right.has_right && !right.has_left &&
           gar_expr_type(out_pair[0], join->inputs[0]->schema, false, &left_type, NULL) >= 0 &&
           gar_expr_type(out_pair[1], join->inputs[1]->schema, false, &right_type, NULL) >= 0 &&
           gar_type_equal(left_type, right_type) && !gar_type_is_float(left_type) &&
           gar_type_for_equality(left_type, right_type, out_type);
}

static bool is_new_key(const struct gar_expr *conjunct, const struct gar_plan *join)
{
    struct gar_expr *pair[2] = {NULL, NULL};
    struct gar_type type = {0};
    return is_key(conjunct, join, pair, &type);
}

/* The join with more keys, of conjuncts that are. */
static enum gar_status add_keys(const struct gar_plan *join, const struct gar_expr_list *found,
                                struct gar_plan **out, struct gar_error *err)
{
    const int64_t old = join->key_count;
    const int64_t count = old + found->count;
    const bool has_condition = join->expr_count > 2 * old;
    struct gar_expr **exprs = gar_calloc(2 * count + 1, (int64_t)sizeof *exprs);
    bool *nulls_equal = gar_calloc(count, (int64_t)sizeof *nulls_equal);
    enum gar_status status = GAR_OK;
    if (exprs == NULL || nulls_equal == NULL) {
        status = gar_error_nomem(err, 2 * count * (int64_t)sizeof *exprs);
    }
    for (int64_t k = 0; k < count && status >= 0; k++) {
        struct gar_expr *pair[2] = {NULL, NULL};
        struct gar_type type = {0};
        if (k < old) {
            pair[0] = join->exprs[k];
            pair[1] = join->exprs[old + k];
            nulls_equal[k] = join->nulls_equal[k];
        } else {
            (void)is_key(found->items[k - old], join, pair, &type);
        }
        exprs[k] = pair[0]; /* borrowed */
        exprs[count + k] = pair[1];
    }
    if (status >= 0) {
        struct gar_join_parts parts = gar_plan_join_parts(join);
        exprs[2 * count] = has_condition ? join->exprs[2 * old] : NULL;
        parts.exprs = exprs;
        parts.expr_count = 2 * count + has_condition;
        parts.key_count = count;
        parts.nulls_equal = nulls_equal;
        status = gar_plan_join_exact(join->inputs[0], join->inputs[1], &parts, out, err);
    }
    gar_free(exprs);
    gar_free(nulls_equal);
    return status;
}

/* Conjuncts of an inner join's own condition are as good as a filter above it. */
static enum gar_status take_condition(const struct gar_plan *join, struct gar_expr_list *conjuncts,
                                      struct gar_plan **out, struct gar_error *err)
{
    struct gar_join_parts parts = gar_plan_join_parts(join);
    if (join->join != GAR_JOIN_INNER || join->asof.kind != GAR_ASOF_NONE ||
        join->expr_count == 2 * join->key_count) {
        *out = gar_plan_ref(join);
        return GAR_OK;
    }
    struct gar_expr_list inside = {0};
    struct gar_expr_list kept = {0};
    struct gar_expr *condition = NULL;
    enum gar_status status =
        gar_expr_list_add_conjuncts(&inside, join->exprs[2 * join->key_count], err);
    for (int64_t i = 0; i < inside.count && status >= 0; i++) {
        struct gar_expr *item = inside.items[i];
        const bool is_moved = is_of_left(item, join) || is_of_right(item, join);
        status = gar_expr_list_add(is_moved ? conjuncts : &kept, gar_expr_ref(item), err);
    }
    if (status >= 0 && kept.count < inside.count) {
        struct gar_expr **exprs = gar_calloc(parts.expr_count, (int64_t)sizeof *exprs);
        if (exprs == NULL) {
            status = gar_error_nomem(err, parts.expr_count * (int64_t)sizeof *exprs);
        } else {
            memcpy(exprs, parts.exprs, (size_t)parts.expr_count * sizeof *exprs);
            if (kept.count > 0) {
                status = gar_expr_join_and(kept.items, kept.count, &condition, err);
            }
            exprs[parts.expr_count - 1] = condition;
            parts.expr_count -= kept.count == 0;
            parts.exprs = exprs;
            if (status >= 0) {
                status = gar_plan_join_exact(join->inputs[0], join->inputs[1], &parts, out, err);
            }
        }
        gar_free(exprs);
        gar_expr_unref(condition);
    } else if (status >= 0) {
        *out = gar_plan_ref(join);
    }
    gar_expr_list_destroy(&inside);
    gar_expr_list_destroy(&kept);
    return status;
}

/* The join (moved, also on failure) over inputs with their conjuncts pushed; the rest on top. */
static enum gar_status push_to_sides(struct gar_plan *join, struct gar_expr_list *conjuncts,
                                     struct gar_plan **out, struct gar_error *err)
{
    struct gar_expr_list lists[2] = {{0}, {0}};
    struct gar_plan *inputs[2] = {NULL, NULL};
    struct gar_plan *node = NULL;
    enum gar_status status = move_if(conjuncts, &lists[0], is_of_left, join, err);
    if (status >= 0) {
        status = move_if(conjuncts, &lists[1], is_of_right, join, err);
    }
    for (int64_t i = 0; i < 2 && status >= 0; i++) {
        status = push(join->inputs[i], &lists[i], &inputs[i], err);
    }
    if (status >= 0 && inputs[0] == join->inputs[0] && inputs[1] == join->inputs[1]) {
        node = gar_plan_ref(join);
    } else if (status >= 0) {
        status = gar_plan_with_inputs(join, inputs, &node, err);
    }
    for (int64_t i = 0; i < 2; i++) {
        gar_plan_unref(inputs[i]);
        gar_expr_list_destroy(&lists[i]);
    }
    gar_plan_unref(join);
    return status < 0 ? status : put_on_top(node, conjuncts, out, err);
}

static enum gar_status push_into_join(const struct gar_plan *plan, struct gar_expr_list *conjuncts,
                                      struct gar_plan **out, struct gar_error *err)
{
    struct gar_plan *join = NULL;
    struct gar_expr_list found = {0};
    GAR_TRY(take_condition(plan, conjuncts, &join, err));
    enum gar_status status = move_if(conjuncts, &found, is_new_key, join, err);
    if (status >= 0 && found.count > 0) {
        struct gar_plan *keyed = NULL;
        status = add_keys(join, &found, &keyed, err);
        if (status >= 0) {
            gar_plan_unref(join);
            join = keyed;
        }
    }
    gar_expr_list_destroy(&found);
    if (status < 0) {
        gar_plan_unref(join);
        return status;
    }
    return push_to_sides(join, conjuncts, out, err);
}

static enum gar_status push(const struct gar_plan *plan, struct gar_expr_list *conjuncts,
                            struct gar_plan **out, struct gar_error *err)
{
    switch (plan->kind) {
    case GAR_PLAN_SCAN: return push_into_scan(plan, conjuncts, out, err);
    case GAR_PLAN_PROJECT: return push_through(plan, conjuncts, is_cheap_inside, true, out, err);
    case GAR_PLAN_FILTER: return push_filter(plan, conjuncts, out, err);
    case GAR_PLAN_SORT:
        return push_through(plan, conjuncts, plan->limit < 0 ? is_any : is_none, false, out, err);
    case GAR_PLAN_AGGREGATE: return push_through(plan, conjuncts, looks_at_keys, true, out, err);
    case GAR_PLAN_DISTINCT:
        return push_through(plan, conjuncts, looks_at_distinct_keys, false, out, err);
    case GAR_PLAN_WINDOW: return push_through(plan, conjuncts, looks_at_partition, false, out, err);
    case GAR_PLAN_JOIN: return push_into_join(plan, conjuncts, out, err);
    case GAR_PLAN_CONCAT: return push_into_concat(plan, conjuncts, out, err);
    case GAR_PLAN_UDF: return push_through(plan, conjuncts, spares_udf, false, out, err);
    case GAR_PLAN_LIMIT:
    case GAR_PLAN_WRITE: return push_through(plan, conjuncts, is_none, false, out, err);
    }
    return gar_error_set(err, GAR_ERR_INTERNAL, "plan node of unknown kind %d", (int)plan->kind);
}

enum gar_status gar_rule_push_filters(const struct gar_plan *plan, struct gar_plan **out,
                                      struct gar_error *err)
{
    struct gar_expr_list none = {0};
    const enum gar_status status = push(plan, &none, out, err);
    gar_expr_list_destroy(&none);
    return status;
}
