/* SPDX-License-Identifier: Apache-2.0 */
/* push_filters: conjuncts move towards the scans and into them.
 *
 * They pass projections (their columns replaced by what makes them, if that is cheap), sorts without a limit, concat
 * (into every input), distinct and aggregates (if they look at keys only), and join other filters; never a limit.
 * A conjunct that may fail on a row (a cast, an overflow) does not join a filter below it: the rows which that one
 * removes could make it fail. */
#include "base/alloc.h"
#include "optimize/rule_priv.h"

enum { CHEAP_SIZE = 4 }; /* nodes of an expression that may be computed twice */

/* The plan with the conjuncts (over its output; moved, the list is left empty) applied as low as possible. */
static enum gar_status push(const struct gar_plan *plan, struct gar_expr_list *conjuncts,
                            struct gar_plan **out, struct gar_error *err);

/* FILTER over plan (moved in, also on failure) of all conjuncts that are left; the plan itself without any. */
static enum gar_status put_on_top(struct gar_plan *plan, const struct gar_expr_list *conjuncts,
                                  struct gar_plan **out, struct gar_error *err)
{
    if (conjuncts->count == 0) {
        *out = plan;
        return GAR_OK;
    }
    struct gar_expr *predicate = NULL;
    enum gar_status status = gar_expr_join_and(conjuncts->items, conjuncts->count, &predicate, err);
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

static bool is_safe(const struct gar_expr *conjunct, const struct gar_plan *plan)
{
    (void)plan;
    return !gar_expr_may_fail(conjunct);
}

static bool is_any(const struct gar_expr *conjunct, const struct gar_plan *plan)
{
    (void)conjunct;
    (void)plan;
    return true;
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
        status = move_if(conjuncts, &below, is_safe, plan, err);
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
        status = move_if(conjuncts, &all, scan->filter == NULL ? is_any : is_safe, scan, err);
    }
    if (status >= 0 && all.count > before) {
        status = gar_expr_join_and(all.items, all.count, &filter, err);
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

static bool is_none(const struct gar_expr *conjunct, const struct gar_plan *plan)
{
    (void)conjunct;
    (void)plan;
    return false;
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
    case GAR_PLAN_CONCAT: return push_into_concat(plan, conjuncts, out, err);
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
