/* SPDX-License-Identifier: Apache-2.0 */
/* What a row of functions.def holds besides the public info. */
#ifndef GAR_EXPR_FUNCTION_PRIV_H
#define GAR_EXPR_FUNCTION_PRIV_H

#include "expr/function.h"

struct gar_binder;
struct gar_bound;
struct gar_function;

/* One enumerator for each function: GAR_FN_ADD, ... */
#define GAR_FUNCTION(id, name, sql, group, kind, min, max, bind, signature, summary) GAR_FN_##id,
enum gar_function_id {
#include "expr/functions.def"
    GAR_FUNCTION_ID_COUNT
};

/* Types a call: checks args (already bound), inserts casts, gives the bound node. */
typedef enum gar_status (*gar_bind_fn)(struct gar_binder *binder,
                                       const struct gar_function *function, struct gar_bound **args,
                                       int64_t count, struct gar_bound **out,
                                       struct gar_error *err);

struct gar_function {
    struct gar_function_info info;
    enum gar_function_id id;
    gar_bind_fn bind;
};

/* GAR_ERR_VALUE naming function and counts unless it takes `count` arguments. */
GAR_MUST_USE enum gar_status gar_function_check_count(const struct gar_function *function,
                                                      int64_t count, struct gar_error *err);
/* Writes "unknown function 'uper'; did you mean 'upper'?" and returns GAR_ERR_VALUE. */
enum gar_status gar_function_unknown(const char *name, int64_t bytes, struct gar_error *err);

#endif
