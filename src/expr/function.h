/* SPDX-License-Identifier: Apache-2.0 */
/* The one registry of functions, made from functions.def: C names, Python names, typing and the reference page come
 * from its rows. */
#ifndef GAR_EXPR_FUNCTION_H
#define GAR_EXPR_FUNCTION_H

#include "arrow/type.h"

enum gar_function_kind { GAR_FUNCTION_SCALAR, GAR_FUNCTION_AGGREGATE, GAR_FUNCTION_WINDOW };

struct gar_function; /* fields below are read by everyone; the rest is private to expr/ */

struct gar_function_info {
    const char *name;      /* "add", "lower", "sum" */
    const char *sql;       /* operator or SQL spelling when it differs: "+", "like"; else NULL */
    const char *signature; /* "lower(text: string) -> string", for the reference page and stubs */
    const char *summary;   /* one sentence: meaning, nulls, errors */
    const char *group;     /* "string", "temporal", "aggregate", ... */
    enum gar_function_kind kind;
    int32_t args_min;
    int32_t args_max; /* -1: any number */
};

int64_t gar_function_count(void);
const struct gar_function *gar_function_at(int64_t i);
/* Exact name, or any case if ignore_case (SQL). NULL if absent. */
const struct gar_function *gar_function_find(const char *name, int64_t bytes, bool ignore_case);
const struct gar_function_info *gar_function_info(const struct gar_function *function);

#endif
