/* SPDX-License-Identifier: Apache-2.0 */
/* Expression trees: immutable, counted. Building checks shapes only; gar_expr_type checks names and types against a schema. */
#ifndef GAR_EXPR_EXPR_H
#define GAR_EXPR_EXPR_H

#include "arrow/batch.h"
#include "arrow/value.h"
#include "expr/function.h"
#include "expr/udf.h"

/* Deeper trees are refused when built, so that walks may recurse. */
#define GAR_EXPR_DEPTH_MAX 1000

enum gar_expr_kind {
    GAR_EXPR_COLUMN,  /* name */
    GAR_EXPR_LITERAL, /* value */
    GAR_EXPR_CALL,    /* function, args */
    GAR_EXPR_CAST,    /* args[0], type, is_try */
    GAR_EXPR_ALIAS,   /* args[0], name */
    GAR_EXPR_IN_LIST, /* args[0] in set (a FLAT column, nulls in it match nothing) */
    GAR_EXPR_UDF,     /* a user function of args; no program evaluates it */
    GAR_EXPR_WINDOW, /* args[0] (a call) over a window: partition, order and range values follow (expr/window.h) */
};

enum gar_window_frame { GAR_FRAME_NONE, GAR_FRAME_ROWS, GAR_FRAME_RANGE, GAR_FRAME_GROUPS };
/* Rows that do not count though they lie in the frame. */
enum gar_window_exclusion {
    GAR_EXCLUDE_NONE,
    GAR_EXCLUDE_CURRENT,
    GAR_EXCLUDE_GROUP, /* the row and its peers */
    GAR_EXCLUDE_TIES,  /* the row's peers, not the row itself */
};
enum gar_bound_kind {
    GAR_BOUND_UNBOUNDED_PRECEDING,
    GAR_BOUND_OFFSET,  /* rows, or a value to add to the key; negative: before */
    GAR_BOUND_CURRENT, /* the row itself; of a range: its peers */
    GAR_BOUND_UNBOUNDED_FOLLOWING,
};

/* The shape of a window; what it goes by stands in the node's arguments. Without a frame: the whole partition. */
struct gar_window {
    int32_t partition_count;
    int32_t order_count; /* at most 64 */
    uint64_t descending; /* a bit for each order expression */
    uint64_t nulls_first;
    enum gar_window_frame frame;
    enum gar_bound_kind start;
    enum gar_bound_kind end;
    enum gar_window_exclusion exclusion;
    int64_t start_rows; /* ROWS with an offset; GROUPS: of peers */
    int64_t end_rows;
    bool has_start_value; /* RANGE with an offset */
    bool has_end_value;
    int64_t min_periods; /* frames of fewer rows give null */
};

struct gar_expr {
    int64_t refs; /* atomic */
    enum gar_expr_kind kind;
    int32_t depth;
    char *name;                          /* COLUMN, ALIAS; owned */
    struct gar_value value;              /* LITERAL; owned */
    const struct gar_function *function; /* CALL; static */
    struct gar_type type;                /* CAST */
    bool is_try;                         /* CAST */
    int64_t arg_count;
    struct gar_expr **args;   /* owned references */
    struct gar_column *set;   /* IN_LIST; owned */
    struct gar_udf *udf;      /* UDF; owned reference */
    struct gar_window window; /* WINDOW */
};

struct gar_expr *gar_expr_ref(const struct gar_expr *expr);
void gar_expr_unref(struct gar_expr *expr);

/* Builders: borrow their arguments (references are taken), give a new reference in *out. Errors: GAR_ERR_NOMEM,
 * GAR_ERR_VALUE (depth, argument count naming function and counts). */
GAR_MUST_USE enum gar_status gar_expr_new_column(const char *name, struct gar_expr **out,
                                                 struct gar_error *err);
GAR_MUST_USE enum gar_status gar_expr_new_literal(const struct gar_value *value,
                                                  struct gar_expr **out, struct gar_error *err);
GAR_MUST_USE enum gar_status gar_expr_new_call(const struct gar_function *function,
                                               struct gar_expr *const *args, int64_t count,
                                               struct gar_expr **out, struct gar_error *err);
/* By name in functions.def; unknown names list the nearest ones. */
GAR_MUST_USE enum gar_status gar_expr_new_call_by_name(const char *name,
                                                       struct gar_expr *const *args, int64_t count,
                                                       struct gar_expr **out,
                                                       struct gar_error *err);
GAR_MUST_USE enum gar_status gar_expr_new_cast(struct gar_expr *arg, struct gar_type type,
                                               bool is_try, struct gar_expr **out,
                                               struct gar_error *err);
GAR_MUST_USE enum gar_status gar_expr_new_alias(struct gar_expr *arg, const char *name,
                                                struct gar_expr **out, struct gar_error *err);
GAR_MUST_USE enum gar_status gar_expr_new_in_list(struct gar_expr *arg, struct gar_column *set,
                                                  struct gar_expr **out, struct gar_error *err);
/* A call of a user function (a reference is taken); args may be none. */
GAR_MUST_USE enum gar_status gar_expr_new_udf(struct gar_udf *udf, struct gar_expr *const *args,
                                              int64_t count, struct gar_expr **out,
                                              struct gar_error *err);
/* The same node with other arguments (for rewrites). */
GAR_MUST_USE enum gar_status gar_expr_with_args(const struct gar_expr *expr,
                                                struct gar_expr *const *args, struct gar_expr **out,
                                                struct gar_error *err);

/* Type of the result over rows of `schema`. Errors: GAR_ERR_COLUMN with near names, GAR_ERR_TYPE naming function, types
 * and what it takes. Aggregates are allowed only if allow_aggregates, and not inside each other. */
GAR_MUST_USE enum gar_status gar_expr_type(const struct gar_expr *expr,
                                           const struct gar_schema *schema, bool allow_aggregates,
                                           struct gar_type *out, struct gar_error *err);
/* The type in which values of both types are compared for equality; false when they are not comparable, or when no type
 * holds all values of both. */
bool gar_type_for_equality(struct gar_type a, struct gar_type b, struct gar_type *out);
/* The output column's name: the alias, else the name of the leftmost column in it, else "literal"
 * ("count" for a call without columns: the function's name). Owned by expr. */
const char *gar_expr_name(const struct gar_expr *expr);
/* As text a user could have written in SQL: (a + 1) * b, s like 'x%', cast(a as int64). */
void gar_expr_print(const struct gar_expr *expr, struct gar_strbuf *out);
bool gar_expr_equal(const struct gar_expr *a, const struct gar_expr *b);
bool gar_expr_has_aggregate(const struct gar_expr *expr);
bool gar_expr_has_udf(const struct gar_expr *expr);
/* Does it name no column and call no volatile or user function (so that it can be folded)? */
bool gar_expr_is_constant(const struct gar_expr *expr);
/* Calls visit(name, context) for each column named, duplicates included. */
void gar_expr_visit_columns(const struct gar_expr *expr,
                            void (*visit)(const char *name, void *context), void *context);

#endif
