/* SPDX-License-Identifier: Apache-2.0 */
/* The registry: one table made from functions.def, and look-ups by name. */
#include "expr/function.h"

#include <string.h>

#include "base/error.h"
#include "expr/bind_priv.h"
#include "expr/function_priv.h"

#define GAR_FUNCTION(fn_id, fn_name, fn_sql, fn_group, fn_kind, fn_min, fn_max, fn_bind, \
                     fn_signature, fn_summary)                                           \
    {                                                                                    \
        .info = {.name = (fn_name),                                                      \
                 .sql = (fn_sql),                                                        \
                 .signature = (fn_signature),                                            \
                 .summary = (fn_summary),                                                \
                 .group = (fn_group),                                                    \
                 .kind = GAR_FUNCTION_##fn_kind,                                         \
                 .args_min = (fn_min),                                                   \
                 .args_max = (fn_max)},                                                  \
        .id = GAR_FN_##fn_id,                                                            \
        .bind = (fn_bind),                                                               \
    },

static const struct gar_function functions[] = {
#include "expr/functions.def"
};

#define GAR_FUNCTION_ALIAS(alias_text, name_text) {(alias_text), (name_text)},
static const struct {
    const char *alias;
    const char *name;
} aliases[] = {
#include "expr/functions.def"
};

_Static_assert(GAR_COUNT_OF(functions) == GAR_FUNCTION_ID_COUNT, "one row for each function");

int64_t gar_function_count(void)
{
    return GAR_COUNT_OF(functions);
}

const struct gar_function *gar_function_at(int64_t i)
{
    return &functions[i];
}

const struct gar_function_info *gar_function_info(const struct gar_function *function)
{
    return &function->info;
}

static char lower_ascii(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool name_matches(const char *name, const char *text, int64_t bytes, bool ignore_case)
{
    for (int64_t i = 0; i < bytes; i++) {
        const char c = ignore_case ? lower_ascii(text[i]) : text[i];
        if (name[i] == '\0' || name[i] != c) {
            return false;
        }
    }
    return name[bytes] == '\0';
}

const struct gar_function *gar_function_find(const char *name, int64_t bytes, bool ignore_case)
{
    for (int64_t i = 0; i < GAR_COUNT_OF(functions); i++) {
        if (name_matches(functions[i].info.name, name, bytes, ignore_case)) {
            return &functions[i];
        }
    }
    for (int64_t i = 0; i < GAR_COUNT_OF(aliases); i++) {
        if (name_matches(aliases[i].alias, name, bytes, ignore_case)) {
            return gar_function_find(aliases[i].name, (int64_t)strlen(aliases[i].name), false);
        }
    }
    return NULL;
}

enum gar_status gar_function_check_count(const struct gar_function *function, int64_t count,
                                         struct gar_error *err)
{
    const struct gar_function_info *info = &function->info;
    const bool is_odd_needed = function->id == GAR_FN_WHEN;
    if (count >= info->args_min && (info->args_max < 0 || count <= info->args_max) &&
        (!is_odd_needed || count % 2 == 1)) {
        return GAR_OK;
    }
    if (is_odd_needed) {
        return gar_error_set(
            err, GAR_ERR_VALUE,
            "when takes pairs of condition and value and then one value, %lld arguments given",
            (long long)count);
    }
    if (info->args_max < 0) {
        return gar_error_set(err, GAR_ERR_VALUE, "%s takes at least %d arguments, %lld given",
                             info->name, info->args_min, (long long)count);
    }
    if (info->args_min == info->args_max) {
        return gar_error_set(err, GAR_ERR_VALUE, "%s takes %d argument%s, %lld given", info->name,
                             info->args_min, info->args_min == 1 ? "" : "s", (long long)count);
    }
    return gar_error_set(err, GAR_ERR_VALUE, "%s takes %d to %d arguments, %lld given", info->name,
                         info->args_min, info->args_max, (long long)count);
}

#define DISTANCE_NAME_MAX 32

/* Edit distance of two short names; large when one is too long to compare. */
static int32_t edit_distance(const char *a, int64_t a_bytes, const char *b)
{
    const int64_t b_bytes = (int64_t)strlen(b);
    if (a_bytes > DISTANCE_NAME_MAX || b_bytes > DISTANCE_NAME_MAX) {
        return INT32_MAX;
    }
    int32_t row[DISTANCE_NAME_MAX + 1];
    for (int64_t j = 0; j <= b_bytes; j++) {
        row[j] = (int32_t)j;
    }
    for (int64_t i = 1; i <= a_bytes; i++) {
        int32_t diagonal = row[0];
        row[0] = (int32_t)i;
        for (int64_t j = 1; j <= b_bytes; j++) {
            const int32_t replaced = diagonal + (lower_ascii(a[i - 1]) == b[j - 1] ? 0 : 1);
            const int32_t removed = row[j] + 1;
            const int32_t added = row[j - 1] + 1;
            diagonal = row[j];
            row[j] = replaced < removed ? replaced : removed;
            row[j] = row[j] < added ? row[j] : added;
        }
    }
    return row[b_bytes];
}

enum gar_status gar_function_unknown(const char *name, int64_t bytes, struct gar_error *err)
{
    char quoted[80];
    gar_error_quote(name, bytes, quoted, (int64_t)sizeof quoted);
    const char *nearest = NULL;
    int32_t least = 3;
    for (int64_t i = 0; i < GAR_COUNT_OF(functions); i++) {
        const int32_t distance = edit_distance(name, bytes, functions[i].info.name);
        if (distance < least && distance < (int32_t)strlen(functions[i].info.name)) {
            least = distance;
            nearest = functions[i].info.name;
        }
    }
    if (nearest == NULL) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "unknown function '%s'; docs/functions.md lists all functions",
                             quoted);
    }
    return gar_error_set(err, GAR_ERR_VALUE, "unknown function '%s'; did you mean '%s'?", quoted,
                         nearest);
}
