/* SPDX-License-Identifier: Apache-2.0 */
/* Bound trees: expressions after names are looked up, types checked and implicit casts written out. They live in the
 * binder's arena. gar_expr_type looks at the root's type only; programs are compiled from the whole tree. */
#ifndef GAR_EXPR_BIND_PRIV_H
#define GAR_EXPR_BIND_PRIV_H

#include "arrow/schema.h"
#include "arrow/value.h"
#include "base/arena.h"
#include "expr/expr.h"
#include "expr/function_priv.h"
#include "kernels/temporal.h"

/* What a bound node does. Arguments have equal types unless the comment says otherwise. */
enum gar_op {
    GAR_OP_COLUMN,
    GAR_OP_CONST,
    GAR_OP_AGGREGATE, /* typing only */
    GAR_OP_UDF,       /* typing only */
    GAR_OP_INTERVAL,  /* typing only; param = months, days, nanoseconds */
    GAR_OP_ADD,
    GAR_OP_SUB,
    GAR_OP_MUL, /* decimals: scales may differ */
    GAR_OP_DIV, /* floats only */
    GAR_OP_FLOOR_DIV,
    GAR_OP_MOD,
    GAR_OP_MATH1, /* param[0] = enum gar_function_id */
    GAR_OP_MATH2,
    GAR_OP_NEG,
    GAR_OP_ABS,
    GAR_OP_SIGN,
    GAR_OP_ROUND, /* param[0] = function id (floor, ceil, round), param[1] = digits */
    GAR_OP_EQ,
    GAR_OP_NE,
    GAR_OP_LT,
    GAR_OP_LE,
    GAR_OP_GT,
    GAR_OP_GE,
    GAR_OP_EQ_SAFE,
    GAR_OP_RANGE, /* args[0] within constants args[1] and args[2], both included */
    GAR_OP_AND,
    GAR_OP_OR,
    GAR_OP_XOR,
    GAR_OP_NOT,
    GAR_OP_IS_NULL,
    GAR_OP_NOT_NULL,
    GAR_OP_COALESCE, /* any number of arguments */
    GAR_OP_WHEN,     /* condition, value, ..., otherwise */
    GAR_OP_LEAST,    /* two arguments, nulls passed over */
    GAR_OP_GREATEST,
    GAR_OP_IS_NAN,
    GAR_OP_NOT_NAN,
    GAR_OP_IS_INF,
    GAR_OP_CAST, /* from args[0]->type to type; param[0]: try; param[1]: round half away where digits are lost */
    GAR_OP_IN_SET, /* set has the type of args[0] */
    GAR_OP_LIKE,   /* param[0]: ignore case */
    GAR_OP_CONTAINS,
    GAR_OP_STARTSWITH,
    GAR_OP_ENDSWITH,
    GAR_OP_TEXT1, /* param[0] = function id (lower, upper, trim, ...) */
    GAR_OP_LENGTH,
    GAR_OP_LENGTH_BYTES,
    GAR_OP_SUBSTR, /* text, int64 start, int64 length or no third argument */
    GAR_OP_RIGHT,  /* text, int64 count */
    GAR_OP_CONCAT, /* any number of arguments */
    GAR_OP_REPLACE,
    GAR_OP_DATE_PART,    /* param[0] = function id; date, timestamp, time */
    GAR_OP_DATE_OF,      /* date or time of a timestamp by its local clock */
    GAR_OP_DATE_TRUNC,   /* param[0] = enum gar_trunc_unit */
    GAR_OP_ADD_MONTHS,   /* date or timestamp, int64 months */
    GAR_OP_ADD_INTERVAL, /* date or timestamp; param = months, days, ticks of the result's unit */
    GAR_OP_BIT_AND,
    GAR_OP_BIT_OR,
    GAR_OP_BIT_XOR,
    GAR_OP_SHIFT_LEFT, /* integer, int64 */
    GAR_OP_SHIFT_RIGHT,
    GAR_OP_HASH,       /* any number and types of arguments */
    GAR_OP_GUARD_TRUE, /* tests of a bool (or of null) for guards; made by the compiler */
    GAR_OP_GUARD_NOT_TRUE,
    GAR_OP_GUARD_NOT_FALSE,
    GAR_OP_GUARD_NULL,
};

struct gar_bound {
    enum gar_op op;
    struct gar_type type;
    int64_t column;                /* COLUMN: position in the schema */
    const struct gar_value *value; /* CONST; owned by the binder */
    bool is_literal; /* CONST written by the user: its numeric type may adapt to the other side */
    int64_t arg_count;
    struct gar_bound **args; /* in the arena */
    int64_t param[3];
    bool is_try;                         /* null instead of an error */
    const struct gar_function *function; /* for messages; may be NULL */
    const struct gar_column *set;        /* IN_SET; owned by the binder */
};

struct gar_binder_item;

/* A zeroed struct with schema set is ready. */
struct gar_binder {
    struct gar_arena arena;
    const struct gar_schema *schema; /* borrowed; NULL: no columns */
    bool allow_aggregates;
    bool in_aggregate;
    bool in_window;                /* of the call that stands over a window */
    struct gar_binder_item *items; /* values and columns to destroy */
};

void gar_binder_destroy(struct gar_binder *binder);
/* Types expr. Errors as gar_expr_type. *out lives in the binder. */
GAR_MUST_USE enum gar_status gar_bind(struct gar_binder *binder, const struct gar_expr *expr,
                                      struct gar_bound **out, struct gar_error *err);

/* Parts for the typing functions. */
GAR_MUST_USE enum gar_status gar_bound_new(struct gar_binder *binder, enum gar_op op,
                                           struct gar_type type, struct gar_bound *const *args,
                                           int64_t count, struct gar_bound **out,
                                           struct gar_error *err);
/* Moves value (also on failure) into the binder. */
GAR_MUST_USE enum gar_status gar_bound_const(struct gar_binder *binder, struct gar_value *value,
                                             bool is_literal, struct gar_bound **out,
                                             struct gar_error *err);
/* node as `type`; the node itself when the types are equal. Refuses casts that do not exist. */
GAR_MUST_USE enum gar_status gar_bound_cast(struct gar_binder *binder, struct gar_bound *node,
                                            struct gar_type type, bool is_try,
                                            struct gar_bound **out, struct gar_error *err);
/* Is there a cast at all? */
bool gar_cast_exists(struct gar_type from, struct gar_type to);
/* The type that holds all values of both; false if there is none. zones_may_differ: two zones are fine (comparison). */
bool gar_type_common(struct gar_type a, struct gar_type b, bool zones_may_differ,
                     struct gar_type *out);
/* Casts all args to one common type, literals adapting; GAR_ERR_TYPE names the function and the two types. */
GAR_MUST_USE enum gar_status gar_bind_common(struct gar_binder *binder,
                                             const struct gar_function *function,
                                             struct gar_bound **args, int64_t count,
                                             bool is_comparison, struct gar_type *out,
                                             struct gar_error *err);
/* Lets numeric and text literals among two args take the other's type where the value is kept. */
GAR_MUST_USE enum gar_status gar_bind_adapt(struct gar_binder *binder, struct gar_bound **args,
                                            int64_t count, bool is_comparison,
                                            struct gar_error *err);
/* "lower takes a string, not int64". */
enum gar_status gar_bind_type_error(const struct gar_function *function, const char *takes,
                                    struct gar_type given, struct gar_error *err);
/* An integer literal's value; GAR_ERR_TYPE naming function and `what` if it is none. */
GAR_MUST_USE enum gar_status gar_bind_literal_i64(const struct gar_function *function,
                                                  const char *what, const struct gar_bound *arg,
                                                  int64_t *out, struct gar_error *err);
bool gar_bound_is_const_null(const struct gar_bound *node);
/* Integer digits that a type can need: 3 for int8, 19 for int64, ... */
int32_t gar_type_integer_digits(struct gar_type type);

/* The typing functions named in functions.def. */
#define GAR_FUNCTION(id, name, sql, group, kind, min, max, bind, signature, summary)     \
    enum gar_status bind(struct gar_binder *binder, const struct gar_function *function, \
                         struct gar_bound **args, int64_t count, struct gar_bound **out, \
                         struct gar_error *err);
#include "expr/functions.def"

#endif
