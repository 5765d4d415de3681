/* SPDX-License-Identifier: Apache-2.0 */
/* The list of rules and the loop over it: all rules in order, until a round changes nothing. */
#include "optimize/optimize.h"

#include <string.h>

#include "optimize/rule_priv.h"

/* Rules converge in two rounds on ordinary plans; the bound guards against two rules that undo each other. */
enum { ROUNDS_MAX = 5 };

static const struct {
    const char *name;
    gar_rule_fn apply;
} rules[] = {
    {"fold_constants", gar_rule_fold_constants}, {"simplify", gar_rule_simplify},
    {"push_filters", gar_rule_push_filters},     {"push_limits", gar_rule_push_limits},
    {"merge_projects", gar_rule_merge_projects}, {"prune_columns", gar_rule_prune_columns},
    {"split_sums", gar_rule_split_sums},         {"count_rows", gar_rule_count_rows},
    {"order_joins", gar_rule_order_joins},       {"choose_build", gar_rule_choose_build},
    {"join_filters", gar_rule_join_filters},
};

int64_t gar_optimize_rule_count(void)
{
    return GAR_COUNT_OF(rules);
}

const char *gar_optimize_rule_name(int64_t i)
{
    return rules[i].name;
}

/* The next word of a list at *names, which moves behind it; its bytes, 0: there is none. */
static int64_t next_name(const char **names, const char **out)
{
    *out = *names + strspn(*names, ", ");
    const int64_t bytes = (int64_t)strcspn(*out, ", ");
    *names = *out + bytes;
    return bytes;
}

static bool is_name(const char *name, const char *word, int64_t bytes)
{
    return (int64_t)strlen(name) == bytes && memcmp(name, word, (size_t)bytes) == 0;
}

static bool is_disabled(const char *name, const char *disabled)
{
    const char *word = NULL;
    int64_t bytes = disabled != NULL ? next_name(&disabled, &word) : 0;
    for (; bytes > 0; bytes = next_name(&disabled, &word)) {
        if (is_name(name, word, bytes)) {
            return true;
        }
    }
    return false;
}

static enum gar_status refuse_name(const char *word, int64_t bytes, struct gar_error *err)
{
    struct gar_strbuf known = {0};
    char quoted[64];
    for (int64_t i = 0; i < GAR_COUNT_OF(rules); i++) {
        gar_strbuf_printf(&known, "%s%s", i > 0 ? ", " : "", rules[i].name);
    }
    const enum gar_status status = gar_error_set(
        err, GAR_ERR_VALUE, "the optimizer has no rule %s; its rules are %s",
        gar_error_quote(word, bytes, quoted, (int64_t)sizeof quoted), gar_strbuf_text(&known));
    gar_strbuf_destroy(&known);
    return status;
}

enum gar_status gar_optimize_check_names(const char *names, struct gar_error *err)
{
    const char *word = NULL;
    int64_t bytes = names != NULL ? next_name(&names, &word) : 0;
    for (; bytes > 0; bytes = next_name(&names, &word)) {
        bool is_known = false;
        for (int64_t i = 0; i < GAR_COUNT_OF(rules) && !is_known; i++) {
            is_known = is_name(rules[i].name, word, bytes);
        }
        if (!is_known) {
            return refuse_name(word, bytes, err);
        }
    }
    return GAR_OK;
}

/* Applies one rule to *plan (replaced). */
static enum gar_status apply_rule(int64_t rule, struct gar_plan **plan, bool *fired,
                                  struct gar_error *err)
{
    struct gar_plan *next = NULL;
    GAR_TRY(rules[rule].apply(*plan, &next, err));
    if (next == *plan) {
        gar_plan_unref(next);
        return GAR_OK;
    }
    if (!gar_schema_equal(next->schema, (*plan)->schema)) {
        gar_plan_unref(next);
        return gar_error_set(
            err, GAR_ERR_INTERNAL,
            "the rule %s changed the columns of the plan; switch it off and report this",
            rules[rule].name);
    }
    gar_plan_unref(*plan);
    *plan = next;
    *fired = true;
    return GAR_OK;
}

enum gar_status gar_optimize(const struct gar_plan *plan, const char *disabled,
                             struct gar_strbuf *fired, struct gar_plan **out, struct gar_error *err)
{
    bool has_fired[GAR_COUNT_OF(rules)] = {false};
    struct gar_plan *current = gar_plan_ref(plan);
    bool has_changed = true;
    for (int32_t round = 0; round < ROUNDS_MAX && has_changed; round++) {
        has_changed = false;
        for (int64_t i = 0; i < GAR_COUNT_OF(rules); i++) {
            bool rule_fired = false;
            const enum gar_status status = is_disabled(rules[i].name, disabled)
                                               ? GAR_OK
                                               : apply_rule(i, &current, &rule_fired, err);
            if (status < 0) {
                gar_plan_unref(current);
                return status;
            }
            has_changed = has_changed || rule_fired;
            has_fired[i] = has_fired[i] || rule_fired;
        }
    }
    for (int64_t i = 0; i < GAR_COUNT_OF(rules) && fired != NULL; i++) {
        if (has_fired[i]) {
            gar_strbuf_printf(fired, "%s%s", fired->size == 0 ? "" : ", ", rules[i].name);
        }
    }
    *out = current;
    return GAR_OK;
}
