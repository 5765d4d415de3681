/* SPDX-License-Identifier: Apache-2.0 */
/* Small plans of every operator against answers worked out row by row in C: with morsels of 1, 7 and the usual number of
 * rows, inline and in pools of 1, 2 and 8 threads, in order and not; failing allocations,
 * cancelling, early stop. */
#include "exec/exec_test_priv.h"

/* ---- expressions ---- */

static struct gar_expr *col(const char *name)
{
    struct gar_expr *e = NULL;
    assert_int_equal(gar_expr_new_column(name, &e, NULL), GAR_OK);
    return e;
}

static struct gar_expr *int_literal(int64_t value)
{
    const struct gar_value v = {.type = gar_type_of(GAR_INT64), .is_valid = true, .i64 = value};
    struct gar_expr *e = NULL;
    assert_int_equal(gar_expr_new_literal(&v, &e, NULL), GAR_OK);
    return e;
}

/* Takes over its arguments. b may be NULL. */
static struct gar_expr *call(const char *name, struct gar_expr *a, struct gar_expr *b)
{
    struct gar_expr *args[2] = {a, b};
    struct gar_expr *e = NULL;
    struct gar_error err = GAR_ERROR_INIT;
    if (gar_expr_new_call_by_name(name, args, a == NULL ? 0 : b == NULL ? 1 : 2, &e, &err) < 0) {
        fail_msg("%s", err.message);
    }
    gar_expr_unref(a);
    gar_expr_unref(b);
    return e;
}

static struct gar_expr *named(struct gar_expr *a, const char *name)
{
    struct gar_expr *e = NULL;
    assert_int_equal(gar_expr_new_alias(a, name, &e, NULL), GAR_OK);
    gar_expr_unref(a);
    return e;
}

/* ---- plans: builders that take over their inputs ---- */

static struct gar_plan *scan(void)
{
    struct gar_plan *plan = NULL;
    assert_int_equal(gar_plan_scan(table, &plan, NULL), GAR_OK);
    return plan;
}

#define BUILD(expr)                                  \
    do {                                             \
        struct gar_error build_err = GAR_ERROR_INIT; \
        if ((expr) < 0) {                            \
            fail_msg("%s", build_err.message);       \
        }                                            \
    } while (0)

static struct gar_plan *filter_above(struct gar_plan *input, int64_t bound)
{
    struct gar_expr *predicate = call("greater", col("v"), int_literal(bound));
    struct gar_plan *plan = NULL;
    BUILD(gar_plan_filter(input, predicate, &plan, &build_err));
    gar_expr_unref(predicate);
    gar_plan_unref(input);
    return plan;
}

static struct gar_plan *limit(struct gar_plan *input, int64_t offset, int64_t count)
{
    struct gar_plan *plan = NULL;
    BUILD(gar_plan_limit(input, offset, count, &plan, &build_err));
    gar_plan_unref(input);
    return plan;
}

static struct gar_plan *sort(struct gar_plan *input, const char *first, bool first_desc,
                             bool nulls_first, const char *second, int64_t take)
{
    struct gar_expr *keys[2] = {col(first), col(second)};
    const bool descending[2] = {first_desc, false};
    const bool nulls[2] = {nulls_first, false};
    struct gar_plan *plan = NULL;
    BUILD(gar_plan_sort(input, keys, descending, nulls, 2, take, &plan, &build_err));
    gar_expr_unref(keys[0]);
    gar_expr_unref(keys[1]);
    gar_plan_unref(input);
    return plan;
}

static struct gar_plan *group(struct gar_plan *input, bool with_keys)
{
    struct gar_expr *keys[2] = {col("k"), col("s")};
    struct gar_expr *aggs[7] = {named(call("sum", col("v"), NULL), "sv"),
                                named(call("count", NULL, NULL), "n"),
                                named(call("count", col("v"), NULL), "nv"),
                                named(call("min", col("v"), NULL), "lv"),
                                named(call("max", col("s"), NULL), "ms"),
                                named(call("sum", col("d"), NULL), "sd"),
                                named(call("count_distinct", col("v"), NULL), "dv")};
    struct gar_plan *plan = NULL;
    BUILD(gar_plan_aggregate(input, keys, with_keys ? 2 : 0, aggs, 7, &plan, &build_err));
    for (int64_t i = 0; i < 7; i++) {
        gar_expr_unref(aggs[i]);
    }
    gar_expr_unref(keys[0]);
    gar_expr_unref(keys[1]);
    gar_plan_unref(input);
    return plan;
}

static struct gar_plan *distinct(struct gar_plan *input, const char *key)
{
    struct gar_expr *keys[1] = {key != NULL ? col(key) : NULL};
    struct gar_plan *plan = NULL;
    BUILD(gar_plan_distinct(input, keys, key != NULL ? 1 : 0, &plan, &build_err));
    gar_expr_unref(keys[0]);
    gar_plan_unref(input);
    return plan;
}

static struct gar_plan *project(struct gar_plan *input)
{
    struct gar_expr *exprs[3] = {named(call("add", col("v"), int_literal(1)), "w"), col("s"),
                                 col("k")};
    struct gar_plan *plan = NULL;
    BUILD(gar_plan_project(input, exprs, 3, &plan, &build_err));
    for (int64_t i = 0; i < 3; i++) {
        gar_expr_unref(exprs[i]);
    }
    gar_plan_unref(input);
    return plan;
}

static struct gar_plan *concat(struct gar_plan *a, struct gar_plan *b)
{
    struct gar_plan *inputs[2] = {a, b};
    struct gar_plan *plan = NULL;
    BUILD(gar_plan_concat(inputs, 2, &plan, &build_err));
    gar_plan_unref(a);
    gar_plan_unref(b);
    return plan;
}

/* Rows from LEFT_FROM on of the table, joined by k (and by text, for two keys) with rows from RIGHT_FROM on. */
enum { LEFT_FROM = 0, LEFT_ROWS = 60, RIGHT_FROM = 90, RIGHT_ROWS = 45 };

static struct gar_plan *join(enum gar_join_kind kind, int64_t keys, bool with_condition,
                             bool is_build_left)
{
    struct gar_plan *left = limit(scan(), LEFT_FROM, LEFT_ROWS);
    struct gar_plan *right = limit(scan(), RIGHT_FROM, RIGHT_ROWS);
    struct gar_expr *both[2] = {col("k"), col("s")};
    struct gar_expr *condition = call("less", col("v"), col("right.v"));
    const struct gar_join_spec spec = {.kind = kind,
                                       .left_keys = both,
                                       .right_keys = both,
                                       .key_count = keys,
                                       .condition = with_condition ? condition : NULL};
    struct gar_plan *plan = NULL;
    struct gar_plan *turned = NULL;
    struct gar_plan *out = NULL;
    BUILD(gar_plan_join(left, right, &spec, &plan, &build_err));
    struct gar_plan *node = plan->kind == GAR_PLAN_JOIN ? plan : plan->inputs[0];
    struct gar_join_parts parts = gar_plan_join_parts(node);
    parts.is_build_left = is_build_left;
    BUILD(gar_plan_join_exact(node->inputs[0], node->inputs[1], &parts, &turned, &build_err));
    if (node == plan) {
        out = gar_plan_ref(turned);
    } else {
        BUILD(gar_plan_with_inputs(plan, &turned, &out, &build_err));
    }
    gar_plan_unref(plan);
    gar_plan_unref(turned);
    gar_plan_unref(left);
    gar_plan_unref(right);
    gar_expr_unref(both[0]);
    gar_expr_unref(both[1]);
    gar_expr_unref(condition);
    return out;
}

/* ---- the same on rows ---- */

struct table_rows {
    struct row rows[2 * ROWS];
    int64_t count;
};

static struct table_rows *all_rows(void)
{
    struct table_rows *t = malloc(sizeof *t);
    assert_non_null(t);
    memcpy(t->rows, rows_of_table, sizeof rows_of_table);
    t->count = ROWS;
    return t;
}

static void keep_above(struct table_rows *t, int64_t bound)
{
    int64_t n = 0;
    for (int64_t i = 0; i < t->count; i++) {
        if (t->rows[i].v > bound) {
            t->rows[n++] = t->rows[i];
        }
    }
    t->count = n;
}

static void keep_range(struct table_rows *t, int64_t offset, int64_t count)
{
    const int64_t first = gar_min_i64(offset, t->count);
    const int64_t n = gar_min_i64(count < 0 ? INT64_MAX : count, t->count - first);
    memmove(t->rows, t->rows + first, (size_t)n * sizeof t->rows[0]);
    t->count = n;
}

/* By v descending, nulls first, then s: stable insertion sort. */
static int32_t order_of(const struct row *a, const struct row *b)
{
    if (a->v != b->v) {
        if (a->v < 0 || b->v < 0) {
            return a->v < 0 ? -1 : 1;
        }
        return a->v > b->v ? -1 : 1;
    }
    return strcmp(a->s, b->s);
}

static void sort_rows(struct table_rows *t)
{
    for (int64_t i = 1; i < t->count; i++) {
        const struct row r = t->rows[i];
        int64_t at = i;
        while (at > 0 && order_of(&t->rows[at - 1], &r) > 0) {
            t->rows[at] = t->rows[at - 1];
            at--;
        }
        t->rows[at] = r;
    }
}

static void keep_first_k(struct table_rows *t)
{
    bool seen[16] = {false};
    int64_t n = 0;
    for (int64_t i = 0; i < t->count; i++) {
        if (!seen[t->rows[i].k + 1]) {
            seen[t->rows[i].k + 1] = true;
            t->rows[n++] = t->rows[i];
        }
    }
    t->count = n;
}

static bool same_group(const struct row *a, const struct row *b, bool with_keys)
{
    return !with_keys || (a->k == b->k && strcmp(a->s, b->s) == 0);
}

static void group_lines(const struct table_rows *t, bool with_keys, struct lines *out)
{
    if (t->count == 0 && !with_keys) {
        add_line(out, "null|0|0|null|null|null|0");
        return;
    }
    for (int64_t i = 0; i < t->count; i++) {
        bool is_first = true;
        for (int64_t j = 0; j < i && is_first; j++) {
            is_first = !same_group(&t->rows[i], &t->rows[j], with_keys);
        }
        if (!is_first) {
            continue;
        }
        int64_t sum = 0;
        int64_t rows = 0;
        int64_t valid = 0;
        int64_t least = -1;
        int64_t decimals = 0;
        int64_t different = 0;
        const char *greatest = "";
        bool seen[1000] = {false};
        for (int64_t j = i; j < t->count; j++) {
            const struct row *r = &t->rows[j];
            if (!same_group(&t->rows[i], r, with_keys)) {
                continue;
            }
            rows++;
            decimals += r->d;
            greatest = strcmp(r->s, greatest) > 0 ? r->s : greatest;
            if (r->v >= 0) {
                valid++;
                sum += r->v;
                least = least < 0 || r->v < least ? r->v : least;
                different += !seen[r->v];
                seen[r->v] = true;
            }
        }
        char line[LINE_BYTES];
        char k[24];
        char s[24];
        char l[24];
        char d[24];
        int at = 0;
        if (with_keys) {
            at = snprintf(line, sizeof line, "%s|%s|", number_or_null(t->rows[i].k, k),
                          t->rows[i].s);
        }
        snprintf(line + at, sizeof line - (size_t)at, "%s|%lld|%lld|%s|%s|%s|%lld",
                 number_or_null(valid > 0 ? sum : -1, s), (long long)rows, (long long)valid,
                 number_or_null(least, l), greatest, decimal_text(decimals, d),
                 (long long)different);
        add_line(out, line);
    }
}

static void row_lines(const struct table_rows *t, struct lines *out)
{
    for (int64_t i = 0; i < t->count; i++) {
        add_row_line(out, &t->rows[i]);
    }
}

static void project_lines(const struct table_rows *t, struct lines *out)
{
    for (int64_t i = 0; i < t->count; i++) {
        char line[LINE_BYTES];
        char v[24];
        char k[24];
        const struct row *r = &t->rows[i];
        snprintf(line, sizeof line, "%s|%s|%s", number_or_null(r->v < 0 ? -1 : r->v + 1, v), r->s,
                 number_or_null(r->k, k));
        add_line(out, line);
    }
}

/* ---- cases: a plan and its answer ---- */

enum order { ORDER_KEPT, ORDER_FREE, ORDER_ALWAYS };

struct test_case {
    const char *name;
    struct gar_plan *(*plan)(void);
    void (*expect)(struct lines *out);
    enum order order; /* KEPT: by maintain_order; ALWAYS: also without (sorts) */
    bool any_subset;  /* without order, a limit may give other rows */
};

#define CASE_ROWS(name, change)                  \
    static void expect_##name(struct lines *out) \
    {                                            \
        struct table_rows *t = all_rows();       \
        change;                                  \
        row_lines(t, out);                       \
        free(t);                                 \
    }

static struct gar_plan *plan_filter(void)
{
    return filter_above(scan(), 500);
}
static struct gar_plan *plan_filter_none(void)
{
    return filter_above(scan(), 5000);
}
static struct gar_plan *plan_project(void)
{
    return project(filter_above(scan(), 300));
}
static struct gar_plan *plan_limit(void)
{
    return limit(scan(), 17, 120);
}
static struct gar_plan *plan_limit_zero(void)
{
    return limit(scan(), 3, 0);
}
static struct gar_plan *plan_offset(void)
{
    return limit(scan(), 450, -1);
}
static struct gar_plan *plan_offset_beyond(void)
{
    return limit(scan(), 5000, 10);
}
static struct gar_plan *plan_limit_of_limit(void)
{
    return limit(limit(filter_above(scan(), 100), 10, 200), 20, 190);
}
static struct gar_plan *plan_filter_of_limit(void)
{
    return filter_above(limit(scan(), 5, 300), 500);
}
static struct gar_plan *plan_sort(void)
{
    return sort(scan(), "v", true, true, "s", -1);
}
static struct gar_plan *plan_top(void)
{
    return sort(filter_above(scan(), 50), "v", true, true, "s", 37);
}
static struct gar_plan *plan_sort_of_limit(void)
{
    return limit(sort(limit(scan(), 0, 111), "v", true, true, "s", -1), 1, 50);
}
static struct gar_plan *plan_group(void)
{
    return group(scan(), true);
}
static struct gar_plan *plan_group_filtered(void)
{
    return group(filter_above(scan(), 400), true);
}
static struct gar_plan *plan_group_most(void)
{
    return group(filter_above(scan(), 50), true);
}
static struct gar_plan *plan_global_most(void)
{
    return group(filter_above(scan(), 50), false);
}
static struct gar_plan *plan_global(void)
{
    return group(scan(), false);
}
static struct gar_plan *plan_global_empty(void)
{
    return group(filter_above(scan(), 5000), false);
}
static struct gar_plan *plan_group_empty(void)
{
    return group(filter_above(scan(), 5000), true);
}
static struct gar_plan *plan_distinct(void)
{
    return distinct(scan(), "k");
}
static struct gar_plan *plan_distinct_all(void)
{
    return distinct(concat(scan(), scan()), NULL);
}
static struct gar_plan *plan_concat(void)
{
    return concat(filter_above(scan(), 900), limit(scan(), 2, 30));
}
static struct gar_plan *plan_concat_sorted(void)
{
    return limit(concat(sort(scan(), "v", true, true, "s", -1), scan()), 490, 40);
}
static struct gar_plan *plan_group_of_sort(void)
{
    return group(concat(sort(scan(), "v", true, true, "s", 40), limit(scan(), 0, 40)), true);
}

CASE_ROWS(scan, (void)0)
CASE_ROWS(filter, keep_above(t, 500))
CASE_ROWS(filter_none, keep_above(t, 5000))
CASE_ROWS(limit, keep_range(t, 17, 120))
CASE_ROWS(limit_zero, keep_range(t, 3, 0))
CASE_ROWS(offset, keep_range(t, 450, -1))
CASE_ROWS(offset_beyond, keep_range(t, 5000, 10))
CASE_ROWS(limit_of_limit, (keep_above(t, 100), keep_range(t, 10, 200), keep_range(t, 20, 190)))
CASE_ROWS(filter_of_limit, (keep_range(t, 5, 300), keep_above(t, 500)))
CASE_ROWS(sort, sort_rows(t))
CASE_ROWS(top, (keep_above(t, 50), sort_rows(t), keep_range(t, 0, 37)))
CASE_ROWS(sort_of_limit, (keep_range(t, 0, 111), sort_rows(t), keep_range(t, 1, 50)))
CASE_ROWS(distinct, keep_first_k(t))

static void expect_project(struct lines *out)
{
    struct table_rows *t = all_rows();
    keep_above(t, 300);
    project_lines(t, out);
    free(t);
}

static void expect_groups(struct lines *out, int64_t above, bool with_keys)
{
    struct table_rows *t = all_rows();
    if (above >= 0) {
        keep_above(t, above);
    }
    group_lines(t, with_keys, out);
    free(t);
}
static void expect_group(struct lines *out)
{
    expect_groups(out, -1, true);
}
static void expect_group_filtered(struct lines *out)
{
    expect_groups(out, 400, true);
}
static void expect_group_most(struct lines *out)
{
    expect_groups(out, 50, true);
}
static void expect_global_most(struct lines *out)
{
    expect_groups(out, 50, false);
}
static void expect_global(struct lines *out)
{
    expect_groups(out, -1, false);
}
static void expect_global_empty(struct lines *out)
{
    expect_groups(out, 5000, false);
}
static void expect_group_empty(struct lines *out)
{
    expect_groups(out, 5000, true);
}
static void expect_distinct_all(struct lines *out)
{
    struct lines all = {0};
    expect_scan(&all);
    for (int64_t i = 0; i < all.count; i++) {
        bool is_first = true;
        for (int64_t j = 0; j < i && is_first; j++) {
            is_first = strcmp(all.text[i], all.text[j]) != 0;
        }
        if (is_first) {
            add_line(out, all.text[i]);
        }
    }
    free_lines(&all);
}
static void expect_concat(struct lines *out)
{
    struct table_rows *t = all_rows();
    keep_above(t, 900);
    row_lines(t, out);
    free(t);
    t = all_rows();
    keep_range(t, 2, 30);
    row_lines(t, out);
    free(t);
}
static void expect_concat_sorted(struct lines *out)
{
    struct table_rows *t = all_rows();
    sort_rows(t);
    keep_range(t, 490, 40);
    row_lines(t, out);
    free(t);
    t = all_rows();
    keep_range(t, 0, 30);
    row_lines(t, out);
    free(t);
}
static void expect_group_of_sort(struct lines *out)
{
    struct table_rows *t = all_rows();
    sort_rows(t);
    keep_range(t, 0, 40);
    memcpy(t->rows + 40, rows_of_table, 40 * sizeof t->rows[0]);
    t->count = 80;
    group_lines(t, true, out);
    free(t);
}

/* ---- joins, by nested loops ---- */

static bool is_pair(const struct row *l, const struct row *r, int64_t keys, bool with_condition)
{
    const bool same_k = keys < 1 || (l->k >= 0 && l->k == r->k);
    const bool same_s = keys < 2 || strcmp(l->s, r->s) == 0;
    const bool passes = !with_condition || (l->v >= 0 && r->v >= 0 && l->v < r->v);
    return same_k && same_s && passes;
}

/* A line of the result; l or r may be missing. Keys of both sides are one column. */
static void add_pair_line(struct lines *out, const struct row *l, const struct row *r, int64_t keys)
{
    char texts[8][48];
    char number[24];
    const struct row *both[2] = {l, r};
    for (int64_t i = 0; i < 2; i++) {
        const struct row *row = both[i];
        snprintf(texts[4 * i], 48, "%s", row == NULL ? "null" : number_or_null(row->k, number));
        snprintf(texts[4 * i + 1], 48, "%s", row == NULL ? "null" : number_or_null(row->v, number));
        snprintf(texts[4 * i + 2], 48, "%s", row == NULL ? "null" : decimal_text(row->d, number));
        snprintf(texts[4 * i + 3], 48, "%s", row == NULL ? "null" : row->s);
    }
    char line[2 * LINE_BYTES] = "";
    for (int64_t i = 0; i < 8; i++) {
        const bool is_merged = (i == 4 && keys >= 1) || (i == 7 && keys >= 2);
        const bool from_right = l == NULL && ((i == 0 && keys >= 1) || (i == 3 && keys >= 2));
        if (!is_merged) {
            const size_t size = strlen(line);
            snprintf(line + size, sizeof line - size, "%s%s", i > 0 ? "|" : "",
                     texts[from_right ? i + 4 : i]);
        }
    }
    add_line(out, line);
}

static void expect_join(struct lines *out, enum gar_join_kind kind, int64_t keys,
                        bool with_condition)
{
    const struct row *left = rows_of_table + LEFT_FROM;
    const struct row *right = rows_of_table + RIGHT_FROM;
    const bool is_semi = kind == GAR_JOIN_SEMI || kind == GAR_JOIN_ANTI;
    bool has_partner[RIGHT_ROWS] = {false};
    for (int64_t l = 0; l < LEFT_ROWS; l++) {
        int64_t partners = 0;
        for (int64_t r = 0; r < RIGHT_ROWS; r++) {
            if (is_pair(&left[l], &right[r], keys, with_condition)) {
                partners++;
                has_partner[r] = true;
                if (!is_semi) {
                    add_pair_line(out, &left[l], &right[r], keys);
                }
            }
        }
        if (is_semi && (partners > 0) == (kind == GAR_JOIN_SEMI)) {
            add_row_line(out, &left[l]);
        } else if (partners == 0 && (kind == GAR_JOIN_LEFT || kind == GAR_JOIN_OUTER)) {
            add_pair_line(out, &left[l], NULL, keys);
        }
    }
    for (int64_t r = 0; r < RIGHT_ROWS; r++) {
        if (!has_partner[r] && (kind == GAR_JOIN_RIGHT || kind == GAR_JOIN_OUTER)) {
            add_pair_line(out, NULL, &right[r], keys);
        }
    }
}

#define JOIN_CASE(name, kind, keys, with_condition)     \
    static struct gar_plan *plan_##name(void)           \
    {                                                   \
        return join(kind, keys, with_condition, false); \
    }                                                   \
    static struct gar_plan *plan_##name##_swapped(void) \
    {                                                   \
        return join(kind, keys, with_condition, true);  \
    }                                                   \
    static void expect_##name(struct lines *out)        \
    {                                                   \
        expect_join(out, kind, keys, with_condition);   \
    }

JOIN_CASE(inner_join, GAR_JOIN_INNER, 1, false)
JOIN_CASE(left_join, GAR_JOIN_LEFT, 2, false)
JOIN_CASE(right_join, GAR_JOIN_RIGHT, 1, true)
JOIN_CASE(outer_join, GAR_JOIN_OUTER, 2, false)
JOIN_CASE(outer_join_if, GAR_JOIN_OUTER, 1, true)
JOIN_CASE(semi_join, GAR_JOIN_SEMI, 2, false)
JOIN_CASE(semi_join_if, GAR_JOIN_SEMI, 1, true)
JOIN_CASE(anti_join, GAR_JOIN_ANTI, 1, true)
JOIN_CASE(cross_join, GAR_JOIN_INNER, 0, false)
JOIN_CASE(unequal_join, GAR_JOIN_LEFT, 0, true)

/* Without order the limits below may give other rows. */
#define JOIN_CASES(name)                                                         \
    {#name, plan_##name, expect_##name, ORDER_FREE, true},                       \
    {                                                                            \
#name " swapped", plan_##name##_swapped, expect_##name, ORDER_FREE, true \
    }

static const struct test_case cases[] = {
    {"scan", scan, expect_scan, ORDER_KEPT, false},
    {"filter", plan_filter, expect_filter, ORDER_KEPT, false},
    {"filter_none", plan_filter_none, expect_filter_none, ORDER_KEPT, false},
    {"project", plan_project, expect_project, ORDER_KEPT, false},
    {"limit", plan_limit, expect_limit, ORDER_KEPT, true},
    {"limit_zero", plan_limit_zero, expect_limit_zero, ORDER_KEPT, false},
    {"offset", plan_offset, expect_offset, ORDER_KEPT, true},
    {"offset_beyond", plan_offset_beyond, expect_offset_beyond, ORDER_KEPT, false},
    {"limit_of_limit", plan_limit_of_limit, expect_limit_of_limit, ORDER_KEPT, true},
    {"filter_of_limit", plan_filter_of_limit, expect_filter_of_limit, ORDER_KEPT, true},
    {"sort", plan_sort, expect_sort, ORDER_ALWAYS, false},
    {"top", plan_top, expect_top, ORDER_ALWAYS, false},
    {"sort_of_limit", plan_sort_of_limit, expect_sort_of_limit, ORDER_KEPT, true},
    {"group", plan_group, expect_group, ORDER_FREE, false},
    {"group_filtered", plan_group_filtered, expect_group_filtered, ORDER_FREE, false},
    {"group_most", plan_group_most, expect_group_most, ORDER_FREE, false},
    {"global_most", plan_global_most, expect_global_most, ORDER_FREE, false},
    {"global", plan_global, expect_global, ORDER_FREE, false},
    {"global_empty", plan_global_empty, expect_global_empty, ORDER_FREE, false},
    {"group_empty", plan_group_empty, expect_group_empty, ORDER_FREE, false},
    {"distinct", plan_distinct, expect_distinct, ORDER_FREE, false},
    {"distinct_all", plan_distinct_all, expect_distinct_all, ORDER_FREE, false},
    {"concat", plan_concat, expect_concat, ORDER_KEPT, true},
    {"concat_sorted", plan_concat_sorted, expect_concat_sorted, ORDER_KEPT, true},
    {"group_of_sort", plan_group_of_sort, expect_group_of_sort, ORDER_FREE, true},
    JOIN_CASES(inner_join),
    JOIN_CASES(left_join),
    JOIN_CASES(right_join),
    JOIN_CASES(outer_join),
    JOIN_CASES(outer_join_if),
    JOIN_CASES(semi_join),
    JOIN_CASES(semi_join_if),
    JOIN_CASES(anti_join),
    JOIN_CASES(cross_join),
    JOIN_CASES(unequal_join),
};

/* ---- running ---- */

static struct gar_exec_options options_of(int64_t runtime, int64_t morsel_rows, bool allow_inline,
                                          bool in_order)
{
    return (struct gar_exec_options){.runtime = runtimes[runtime],
                                     .memory = gar_memory_system(),
                                     .morsel_rows = morsel_rows,
                                     .maintain_order = in_order,
                                     .allow_inline = allow_inline};
}

static enum gar_status run(const struct gar_plan *plan, const struct gar_exec_options *options,
                           struct lines *out, struct gar_error *err)
{
    struct gar_stream *stream = NULL;
    enum gar_status status = gar_exec_start(plan, options, &stream, err);
    while (status >= 0) {
        struct gar_batch *batch = NULL;
        status = gar_stream_next(stream, NULL, &batch, err);
        if (status != GAR_OK) {
            break;
        }
        assert_true(gar_schema_equal(batch->schema, plan->schema));
        if (out != NULL) { /* printing allocates too */
            add_batch_lines(out, batch);
        }
        gar_batch_unref(batch);
    }
    gar_stream_free(stream);
    return status == GAR_EOF ? GAR_OK : status;
}

/* Queries in the pools are freed by the loop: wait until they have left. */
static void settle(void)
{
    for (int64_t i = 0; i < 3; i++) {
        while (gar_runtime_active(runtimes[i]) > 0) {
            assert_true(gar_cancel_sleep(NULL, 100000, NULL) <= 0);
        }
    }
}

static void check_case(const struct test_case *c, const struct gar_plan *plan,
                       const struct lines *want, const struct gar_exec_options *options)
{
    struct lines got = {0};
    struct gar_error err = GAR_ERROR_INIT;
    if (run(plan, options, &got, &err) < 0) {
        fail_msg("%s: %s", c->name, err.message);
    }
    if (!options->maintain_order && c->any_subset) {
        free_lines(&got);
        return;
    }
    struct lines expected = {0};
    for (int64_t i = 0; i < want->count; i++) {
        add_line(&expected, want->text[i]);
    }
    if (c->order == ORDER_FREE || (c->order == ORDER_KEPT && !options->maintain_order)) {
        if (got.count > 0) {
            qsort(got.text, (size_t)got.count, LINE_BYTES, compare_lines);
        }
        if (expected.count > 0) {
            qsort(expected.text, (size_t)expected.count, LINE_BYTES, compare_lines);
        }
    }
    for (int64_t i = 0; i < got.count && i < expected.count; i++) {
        if (strcmp(got.text[i], expected.text[i]) != 0) {
            fail_msg("%s, morsel %d, inline %d: row %d is '%s', expected '%s'", c->name,
                     (int)options->morsel_rows, (int)options->allow_inline, (int)i, got.text[i],
                     expected.text[i]);
        }
    }
    if (got.count != expected.count) {
        fail_msg("%s: %d rows, expected %d", c->name, (int)got.count, (int)expected.count);
    }
    free_lines(&got);
    free_lines(&expected);
}

static void test_all_operators(void **context)
{
    (void)context;
    const int64_t morsels[3] = {1, 7, 131072};
    for (int64_t c = 0; c < GAR_COUNT_OF(cases); c++) {
        struct gar_plan *plan = cases[c].plan();
        struct lines want = {0};
        cases[c].expect(&want);
        for (int64_t m = 0; m < 3; m++) {
            for (int32_t in_order = 0; in_order < 2; in_order++) {
                struct gar_exec_options options = options_of(0, morsels[m], true, in_order);
                check_case(&cases[c], plan, &want, &options);
                for (int64_t r = 0; r < 3; r++) {
                    options = options_of(r, morsels[m], false, in_order);
                    check_case(&cases[c], plan, &want, &options);
                }
            }
        }
        free_lines(&want);
        gar_plan_unref(plan);
    }
    settle();
}

/* Operators that may put rows on disk do so, in parts of parts. */
static struct gar_exec_options spilling(struct gar_exec_options options)
{
    options.spill = spill_space;
    options.spill_always = true;
    return options;
}

static bool spills(const struct test_case *c)
{
    return strstr(c->name, "group") != NULL || strstr(c->name, "distinct") != NULL ||
           strstr(c->name, "join") != NULL;
}

static void test_spilling(void **context)
{
    (void)context;
    for (int64_t c = 0; c < GAR_COUNT_OF(cases); c++) {
        if (!spills(&cases[c])) {
            continue;
        }
        struct gar_plan *plan = cases[c].plan();
        struct lines want = {0};
        cases[c].expect(&want);
        struct gar_exec_options options = spilling(options_of(0, 7, true, true));
        check_case(&cases[c], plan, &want, &options);
        options = spilling(options_of(2, 131072, false, true));
        check_case(&cases[c], plan, &want, &options);
        gar_key_set_hash_mask(UINT32_C(0xf0000000)); /* few partitions have rows */
        options = spilling(options_of(1, 7, false, false));
        check_case(&cases[c], plan, &want, &options);
        gar_key_set_hash_mask(UINT32_MAX);
        free_lines(&want);
        gar_plan_unref(plan);
    }
    settle();
    assert_int_equal(gar_spill_space_used_bytes(spill_space), 0);
}

static void test_equal_hashes(void **context)
{
    (void)context;
    gar_key_set_hash_mask(0);
    for (int64_t c = 0; c < GAR_COUNT_OF(cases); c++) {
        struct gar_plan *plan = cases[c].plan();
        struct lines want = {0};
        cases[c].expect(&want);
        const struct gar_exec_options options = options_of(1, 7, false, true);
        check_case(&cases[c], plan, &want, &options);
        free_lines(&want);
        gar_plan_unref(plan);
    }
    settle();
    gar_key_set_hash_mask(UINT32_MAX);
}

/* The n-th allocation fails: an error or the right answer, and nothing is left over. */
static void test_allocation_failures(void **context)
{
    (void)context;
    for (int64_t c = 0; c < GAR_COUNT_OF(cases); c++) {
        struct gar_plan *plan = cases[c].plan();
        const int64_t blocks = gar_alloc_live_blocks();
        const int64_t bytes = gar_memory_system_live_bytes();
        const struct gar_exec_options options = options_of(0, 100, true, true);
        bool is_done = false;
        for (int64_t n = 1; !is_done; n++) {
            (void)gar_alloc_fail_at(n, false);
            const enum gar_status status = run(plan, &options, NULL, NULL);
            is_done = gar_alloc_fail_at(0, false) < n;
            if (status != GAR_OK && status != GAR_ERR_NOMEM) {
                fail_msg("%s: status %d at allocation %d", cases[c].name, (int)status, (int)n);
            }
            if (gar_alloc_live_blocks() != blocks || gar_memory_system_live_bytes() != bytes) {
                fail_msg("%s: allocation %d leaks", cases[c].name, (int)n);
            }
        }
        gar_plan_unref(plan);
    }
}

static const char *const swept[] = {"group_most", "distinct", "outer_join_if", "semi_join_if"};

static const struct test_case *case_of(const char *name)
{
    for (int64_t c = 0; c < GAR_COUNT_OF(cases); c++) {
        const char *at = strstr(cases[c].name, name);
        if (at == cases[c].name) {
            return &cases[c];
        }
    }
    fail_msg("no case %s", name);
    return NULL;
}

/* The n-th allocation, or call of the system, fails while rows are put on disk. */
static void test_faults_of_spilling(void **context)
{
    (void)context;
    gar_key_set_hash_mask(UINT32_C(0x80000000)); /* two partitions */
    for (int64_t i = 0; i < GAR_COUNT_OF(swept); i++) {
        const struct test_case *c = case_of(swept[i]);
        struct gar_plan *plan = c->plan();
        const int64_t blocks = gar_alloc_live_blocks();
        const int64_t bytes = gar_memory_system_live_bytes();
        const struct gar_exec_options options = spilling(options_of(0, 100, true, true));
        bool is_done = false;
        for (int64_t n = 1; !is_done; n += 1 + n / 100) {
            (void)gar_alloc_fail_at(n, false);
            const enum gar_status status = run(plan, &options, NULL, NULL);
            is_done = gar_alloc_fail_at(0, false) < n;
            if (status != GAR_OK && status != GAR_ERR_NOMEM) {
                fail_msg("%s: status %d at allocation %d", c->name, (int)status, (int)n);
            }
            if (gar_alloc_live_blocks() != blocks || gar_memory_system_live_bytes() != bytes) {
                fail_msg("%s: allocation %d leaks", c->name, (int)n);
            }
        }
        static const enum gar_os_call calls[] = {GAR_OS_OPEN, GAR_OS_WRITE, GAR_OS_READ};
        for (int64_t k = 0; k < GAR_COUNT_OF(calls); k++) {
            for (int64_t n = 1;; n += 3) {
                const struct gar_os_fault fault = {.call = calls[k], .nth = n, .os_errno = ENOSPC};
                gar_os_fault_set(&fault);
                const enum gar_status status = run(plan, &options, NULL, NULL);
                const bool is_hit = gar_os_fault_calls() >= n;
                gar_os_fault_set(NULL);
                assert_int_equal(status, is_hit ? GAR_ERR_IO : GAR_OK);
                assert_int_equal(gar_alloc_live_blocks(), blocks);
                if (!is_hit) {
                    break;
                }
            }
        }
        gar_plan_unref(plan);
    }
    gar_key_set_hash_mask(UINT32_MAX);
    assert_int_equal(gar_spill_space_used_bytes(spill_space), 0);
}

/* Cancelled, dropped or read to the end after any number of batches. */
static void test_stopping(void **context)
{
    (void)context;
    for (int64_t c = 0; c < GAR_COUNT_OF(cases); c++) {
        struct gar_plan *plan = cases[c].plan();
        for (int64_t taken = 0; taken < 4; taken++) {
            for (int32_t how = 0; how < 4; how++) {
                struct gar_exec_options options = options_of(1, 7, how % 2 == 0, true);
                if (taken == 1 && spills(&cases[c])) {
                    options = spilling(options);
                }
                struct gar_stream *stream = NULL;
                assert_int_equal(gar_exec_start(plan, &options, &stream, NULL), GAR_OK);
                enum gar_status status = GAR_OK;
                struct gar_error err = GAR_ERROR_INIT;
                for (int64_t i = 0; i < taken && status == GAR_OK; i++) {
                    struct gar_batch *batch = NULL;
                    status = gar_stream_next(stream, NULL, &batch, &err);
                    gar_batch_unref(batch);
                }
                if (how >= 2 && status == GAR_OK) {
                    gar_stream_cancel(stream, GAR_CANCEL_USER);
                    struct gar_batch *batch = NULL;
                    status = gar_stream_next(stream, NULL, &batch, &err);
                    for (int32_t i = 0; i < 1000 && status == GAR_OK; i++) {
                        gar_batch_unref(batch);
                        batch = NULL;
                        status = gar_stream_next(stream, NULL, &batch, &err);
                    }
                    assert_true(status == GAR_ERR_CANCELLED || status == GAR_EOF);
                }
                gar_stream_free(stream);
            }
        }
        gar_plan_unref(plan);
    }
    settle();
}

/* A slow consumer stops the producer: a range of 2^40 rows gives its first rows at once. */
static void test_early_stop(void **context)
{
    (void)context;
    struct gar_scan_provider *range = NULL;
    struct gar_plan *plan = NULL;
    assert_int_equal(gar_range_provider_new("i", 0, INT64_C(1) << 40, 1, &range, NULL), GAR_OK);
    assert_int_equal(gar_plan_scan(range, &plan, NULL), GAR_OK);
    const struct gar_exec_options options = options_of(1, 131072, true, true);
    struct gar_stream *stream = NULL;
    struct gar_batch *batch = NULL;
    assert_int_equal(gar_exec_start(plan, &options, &stream, NULL), GAR_OK);
    for (int64_t at = 0, i = 0; i < 5; i++) {
        assert_int_equal(gar_stream_next(stream, NULL, &batch, NULL), GAR_OK);
        assert_int_equal(((const int64_t *)batch->columns[0]->values)[0], at);
        at += batch->rows;
        gar_batch_unref(batch);
    }
    gar_stream_free(stream);
    struct gar_plan *limited = limit(plan, 1000000, 10);
    struct lines got = {0};
    assert_int_equal(run(limited, &options, &got, NULL), GAR_OK);
    assert_int_equal(got.count, 10);
    assert_string_equal(got.text[9], "1000009");
    free_lines(&got);
    gar_plan_unref(limited);
    gar_scan_provider_unref(range);
    settle();
}

/* A sort gives its order also when that of the input need not be kept. */
static void test_sort_without_order(void **context)
{
    (void)context;
    enum { MANY = 400000 };
    struct gar_scan_provider *range = NULL;
    struct gar_plan *plan = NULL;
    assert_int_equal(gar_range_provider_new("i", 0, MANY, 1, &range, NULL), GAR_OK);
    assert_int_equal(gar_plan_scan(range, &plan, NULL), GAR_OK);
    struct gar_plan *sorted = limit(sort(plan, "i", true, false, "i", -1), 3, -1);
    const struct gar_exec_options options = options_of(2, 10000, false, false);
    struct gar_stream *stream = NULL;
    assert_int_equal(gar_exec_start(sorted, &options, &stream, NULL), GAR_OK);
    int64_t want = MANY - 4;
    for (struct gar_batch *batch = NULL; gar_stream_next(stream, NULL, &batch, NULL) == GAR_OK;) {
        for (int64_t i = 0; i < batch->rows; i++) {
            assert_int_equal(((const int64_t *)batch->columns[0]->values)[i], want);
            want--;
        }
        gar_batch_unref(batch);
    }
    assert_int_equal(want, -1);
    gar_stream_free(stream);
    gar_plan_unref(sorted);
    gar_scan_provider_unref(range);
    settle();
}

static void test_explain(void **context)
{
    (void)context;
    struct gar_plan *plan = plan_sort_of_limit();
    struct gar_strbuf text = {0};
    const struct gar_exec_options options = options_of(1, 131072, true, true);
    assert_int_equal(gar_exec_explain(plan, &options, &text, NULL), GAR_OK);
    assert_string_equal(
        gar_strbuf_text(&text),
        "inline on the caller's thread\n"
        "pipeline 1\n  scan memory (500 rows)\n  => collect, limit 111, in order\n"
        "pipeline 2\n  rows of the pipeline before\n"
        "  => sort by v descending nulls first, s (radix buckets of normalised keys)\n"
        "pipeline 3\n  sorted rows of the pipeline before\n  => result, offset 1, limit 50, in "
        "order\n");
    gar_strbuf_destroy(&text);
    gar_plan_unref(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_operators),       cmocka_unit_test(test_spilling),
        cmocka_unit_test(test_faults_of_spilling),  cmocka_unit_test(test_equal_hashes),
        cmocka_unit_test(test_allocation_failures), cmocka_unit_test(test_stopping),
        cmocka_unit_test(test_early_stop),          cmocka_unit_test(test_explain),
        cmocka_unit_test(test_sort_without_order),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
