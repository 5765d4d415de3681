/* SPDX-License-Identifier: Apache-2.0 */
/* Logical plans: immutable, counted trees. Every builder checks names and types, so a plan that exists is well typed. */
#ifndef GAR_PLAN_PLAN_H
#define GAR_PLAN_PLAN_H

#include "base/int128.h"
#include "expr/expr.h"
#include "plan/provider.h"

#define GAR_PLAN_DEPTH_MAX 5000

enum gar_plan_kind {
    GAR_PLAN_SCAN,    /* provider, columns, filter, limit: what has been pushed down so far */
    GAR_PLAN_PROJECT, /* exprs (named): select, with_columns, rename, exclude all become this */
    GAR_PLAN_FILTER,  /* exprs[0] */
    GAR_PLAN_LIMIT,   /* offset, limit (-1: no limit) */
    GAR_PLAN_SORT,    /* exprs as keys with descending[] and nulls_first[]; limit >= 0: top-N */
    GAR_PLAN_AGGREGATE, /* exprs[0..key_count) are keys, the rest aggregate calls (bare calls, maybe aliased) */
    GAR_PLAN_DISTINCT, /* exprs: the keys (empty: all columns); keeps whole rows, the first in input order */
    GAR_PLAN_JOIN, /* inputs[0] left, inputs[1] right; exprs: key_count left keys, as many right keys, maybe a condition */
    GAR_PLAN_WINDOW, /* the input's columns, then exprs: calls over windows of one partition and order, all aliased */
    GAR_PLAN_CONCAT, /* inputs one after the other */
    GAR_PLAN_WRITE,  /* sink */
    GAR_PLAN_UDF,    /* udf over exprs as one more column, the last; rows too, when it expands */
};

enum gar_join_kind {
    GAR_JOIN_INNER, /* without keys: every pair */
    GAR_JOIN_LEFT,  /* and left rows without a partner, beside nulls */
    GAR_JOIN_RIGHT,
    GAR_JOIN_OUTER,
    GAR_JOIN_SEMI, /* left rows with a partner, once */
    GAR_JOIN_ANTI, /* left rows without one */
};

/* Of the pairs of a left row that pass the condition, only the one whose `on` values lie nearest. */
enum gar_asof_kind {
    GAR_ASOF_NONE,
    GAR_ASOF_BACKWARD, /* right's `on` is at most left's */
    GAR_ASOF_FORWARD,  /* at least */
    GAR_ASOF_NEAREST,  /* either; of two that lie equally near the lesser */
};

/* An as-of join is a left join whose condition compares left's `on` (first argument) with right's: greater_equal (or greater)
 * for backward, less_equal (or less) for forward, the disjunction of both for nearest. The table is made of right. */
struct gar_asof {
    enum gar_asof_kind kind;
    bool has_tolerance;
    gar_i128 tolerance;      /* greatest distance, in units of `on`; at least 0 */
    double tolerance_double; /* the same where `on` is float64 */
};

struct gar_plan {
    int64_t refs; /* atomic */
    enum gar_plan_kind kind;
    int32_t depth;
    struct gar_schema *schema; /* output; owned */
    int64_t input_count;
    struct gar_plan **inputs; /* owned references */
    int64_t expr_count;
    struct gar_expr **exprs;            /* owned references */
    int64_t key_count;                  /* AGGREGATE, JOIN */
    bool *descending;                   /* SORT: expr_count items, owned */
    bool *nulls_first;                  /* SORT: expr_count items, owned */
    int64_t offset;                     /* LIMIT */
    int64_t limit;                      /* LIMIT, SORT, SCAN; -1 none */
    struct gar_scan_provider *provider; /* SCAN; owned reference */
    int64_t *
        columns; /* SCAN: positions in the provider's schema; JOIN: in `pairs`; schema->count items; owned */
    enum gar_join_kind join; /* JOIN */
    bool *nulls_equal;       /* JOIN: null keys match each other; key_count items, owned */
    bool is_build_left;      /* JOIN: the table is made of the left input, not of the right one */
    bool is_ordered;         /* JOIN: its place among other joins has been chosen */
    bool sends_keys;         /* JOIN: scans of the other side look for the table's keys first */
    struct gar_asof asof;    /* JOIN */
    struct gar_schema
        *pairs; /* JOIN: columns of left, then of right; what the condition sees; owned */
    struct gar_expr *filter;        /* SCAN: over the provider's schema; owned reference or NULL */
    struct gar_sink_provider *sink; /* WRITE; owned reference */
    struct gar_udf *udf;            /* UDF; owned reference */
};

struct gar_plan *gar_plan_ref(const struct gar_plan *plan);
void gar_plan_unref(struct gar_plan *plan);

/* Builders: borrow arguments, take references, give a new reference. Errors: GAR_ERR_COLUMN, GAR_ERR_TYPE, GAR_ERR_VALUE
 * (duplicate output names, negative limit), GAR_ERR_NOMEM. */
GAR_MUST_USE enum gar_status gar_plan_scan(struct gar_scan_provider *provider,
                                           struct gar_plan **out, struct gar_error *err);
/* For the optimizer: the same scan with other columns, filter or limit. */
GAR_MUST_USE enum gar_status gar_plan_scan_pushed(const struct gar_plan *scan,
                                                  const int64_t *columns, int64_t count,
                                                  struct gar_expr *filter, int64_t limit,
                                                  struct gar_plan **out, struct gar_error *err);
/* Select. Expressions with aggregates (over the whole input) make an AGGREGATE with a PROJECT on top as needed; a column "*"
 * stands for all columns. */
GAR_MUST_USE enum gar_status gar_plan_project(struct gar_plan *input, struct gar_expr *const *exprs,
                                              int64_t count, struct gar_plan **out,
                                              struct gar_error *err);
/* Adds columns or replaces those of the same name in place. */
GAR_MUST_USE enum gar_status gar_plan_with_columns(struct gar_plan *input,
                                                   struct gar_expr *const *exprs, int64_t count,
                                                   struct gar_plan **out, struct gar_error *err);
GAR_MUST_USE enum gar_status gar_plan_rename(struct gar_plan *input, const char *const *from,
                                             const char *const *to, int64_t count,
                                             struct gar_plan **out, struct gar_error *err);
/* Names that do not exist are an error. */
GAR_MUST_USE enum gar_status gar_plan_exclude(struct gar_plan *input, const char *const *names,
                                              int64_t count, struct gar_plan **out,
                                              struct gar_error *err);
GAR_MUST_USE enum gar_status gar_plan_filter(struct gar_plan *input, struct gar_expr *predicate,
                                             struct gar_plan **out, struct gar_error *err);
GAR_MUST_USE enum gar_status gar_plan_limit(struct gar_plan *input, int64_t offset, int64_t limit,
                                            struct gar_plan **out, struct gar_error *err);
GAR_MUST_USE enum gar_status gar_plan_sort(struct gar_plan *input, struct gar_expr *const *keys,
                                           const bool *descending, const bool *nulls_first,
                                           int64_t count, int64_t limit, struct gar_plan **out,
                                           struct gar_error *err);
/* aggs may be any expressions over aggregates (sum(a) / sum(b)): nested ones become AGGREGATE + PROJECT. Keys may be expressions.
 * key_count 0: one row over everything. */
GAR_MUST_USE enum gar_status gar_plan_aggregate(struct gar_plan *input,
                                                struct gar_expr *const *keys, int64_t key_count,
                                                struct gar_expr *const *aggs, int64_t agg_count,
                                                struct gar_plan **out, struct gar_error *err);
GAR_MUST_USE enum gar_status gar_plan_distinct(struct gar_plan *input, struct gar_expr *const *keys,
                                               int64_t count, struct gar_plan **out,
                                               struct gar_error *err);
/* What a join is asked for. */
struct gar_join_spec {
    enum gar_join_kind kind;
    struct gar_expr *const *left_keys;  /* over left's schema; key_count items, maybe 0 */
    struct gar_expr *const *right_keys; /* over right's schema */
    int64_t key_count;
    bool nulls_equal; /* null keys match each other */
    struct gar_expr
        *condition; /* what else must be true of a pair, over the columns of the result; or NULL */
    const char
        *prefix; /* for names of right columns that left has too; both NULL: "right." in front */
    const char *suffix;
};
/* Keys of different types are compared in a type that holds both. A pair of keys that are plain columns of one name
 * gives one column (of left's type; for right and outer joins with right's value where left has none). Conjuncts of the
 * condition that compare the two sides for equality become keys. Errors: GAR_ERR_TYPE naming the keys and their types,
 * GAR_ERR_COLUMN, GAR_ERR_VALUE (two output columns of one name). */
GAR_MUST_USE enum gar_status gar_plan_join(struct gar_plan *left, struct gar_plan *right,
                                           const struct gar_join_spec *spec, struct gar_plan **out,
                                           struct gar_error *err);
/* What an as-of join is asked for. Keys, prefix and suffix as in gar_join_spec. */
struct gar_asof_spec {
    enum gar_asof_kind kind; /* not NONE */
    struct gar_expr *left_on;
    struct gar_expr *right_on;
    struct gar_expr *const *left_by; /* by_count items, maybe 0 */
    struct gar_expr *const *right_by;
    int64_t by_count;
    bool excludes_equal; /* a partner's `on` may not equal left's */
    struct gar_expr
        *tolerance; /* greatest distance, a literal: a number, or a duration; NULL: any */
    const char *prefix;
    const char *suffix;
};
/* Every left row once, beside the row of right with equal `by` keys whose `on` lies nearest in the direction, or beside nulls.
 * `on`: integers, floats, decimals, dates, times, timestamps, durations, compared in a type that holds both; a null or NaN has
 * no partner. Of right rows with equal `on` the last (backward), or the first (forward). When both are plain columns
 * of one name right's is left out, as for keys. Errors: GAR_ERR_TYPE, GAR_ERR_COLUMN, GAR_ERR_VALUE (a negative tolerance, two
 * output columns of one name). */
GAR_MUST_USE enum gar_status gar_plan_join_asof(struct gar_plan *left, struct gar_plan *right,
                                                const struct gar_asof_spec *spec,
                                                struct gar_plan **out, struct gar_error *err);
/* The sides of an as-of join's condition. Borrowed. */
struct gar_asof_on {
    struct gar_expr *left;
    struct gar_expr *right;
    bool excludes_equal;
};
struct gar_asof_on gar_plan_asof_on(const struct gar_plan *join);
/* Schemas must be equal (names, order, types; null type widens). */
GAR_MUST_USE enum gar_status gar_plan_concat(struct gar_plan *const *inputs, int64_t count,
                                             struct gar_plan **out, struct gar_error *err);
GAR_MUST_USE enum gar_status gar_plan_write(struct gar_plan *input, struct gar_sink_provider *sink,
                                            struct gar_plan **out, struct gar_error *err);
/* A user function over args as a further column `name`. The other builders make these nodes of the calls in their
 * expressions; args hold no calls. */
GAR_MUST_USE enum gar_status gar_plan_udf(struct gar_plan *input, struct gar_udf *udf,
                                          struct gar_expr *const *args, int64_t count,
                                          const char *name, struct gar_plan **out,
                                          struct gar_error *err);
/* For the optimizer: nodes with exactly these expressions; no "*" is expanded, no aggregate split;
 * zero expressions are fine. aggregate: keys first, then bare aggregate calls, all maybe aliased. */
GAR_MUST_USE enum gar_status gar_plan_project_exact(struct gar_plan *input,
                                                    struct gar_expr *const *exprs, int64_t count,
                                                    struct gar_plan **out, struct gar_error *err);
GAR_MUST_USE enum gar_status gar_plan_aggregate_exact(struct gar_plan *input,
                                                      struct gar_expr *const *exprs, int64_t count,
                                                      int64_t key_count, struct gar_plan **out,
                                                      struct gar_error *err);
/* The node itself: names of both inputs differ, keys have equal types. exprs as in GAR_PLAN_JOIN; nulls_equal has key_count
 * items; columns are positions among left's and right's columns (NULL: all; semi and anti: of left only). */
struct gar_join_parts {
    enum gar_join_kind kind;
    struct gar_expr *const *exprs;
    int64_t expr_count;
    int64_t key_count;
    const bool *nulls_equal;
    const int64_t *columns;
    int64_t column_count;
    bool is_build_left;
    bool is_ordered;
    bool sends_keys;
    struct gar_asof asof;
};
GAR_MUST_USE enum gar_status gar_plan_join_exact(struct gar_plan *left, struct gar_plan *right,
                                                 const struct gar_join_parts *parts,
                                                 struct gar_plan **out, struct gar_error *err);
/* Those of a node; they borrow from it. */
struct gar_join_parts gar_plan_join_parts(const struct gar_plan *join);
/* The schema that expression i of the node is over. Borrowed. */
const struct gar_schema *gar_plan_expr_schema(const struct gar_plan *plan, int64_t i);
/* A WINDOW node with exactly these calls. */
GAR_MUST_USE enum gar_status gar_plan_window_exact(struct gar_plan *input,
                                                   struct gar_expr *const *exprs, int64_t count,
                                                   struct gar_plan **out, struct gar_error *err);
/* The same node over other inputs (for the optimizer); the schema is worked out again. */
GAR_MUST_USE enum gar_status gar_plan_with_inputs(const struct gar_plan *plan,
                                                  struct gar_plan *const *inputs,
                                                  struct gar_plan **out, struct gar_error *err);

/* Does a UDF node lie in it? */
bool gar_plan_runs_udf(const struct gar_plan *plan);
/* A tree as text, one node a line, indented, for explain. */
void gar_plan_print(const struct gar_plan *plan, struct gar_strbuf *out);
/* Upper estimate of the rows (and bytes) that go into the plan's scans, -1 unknown. */
int64_t gar_plan_source_rows(const struct gar_plan *plan);
int64_t gar_plan_source_bytes(const struct gar_plan *plan);

#endif
