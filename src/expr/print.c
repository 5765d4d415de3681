/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions as SQL text: operators with the parentheses they need, everything else as calls. */
#include <string.h>

#include "expr/expr.h"
#include "expr/function_priv.h"
#include "expr/window.h"

/* How tightly a printed form binds; a part that binds less than its place asks for gets parentheses. */
enum level {
    LEVEL_OR,
    LEVEL_XOR,
    LEVEL_AND,
    LEVEL_NOT,
    LEVEL_TEST,
    LEVEL_SUM,
    LEVEL_PRODUCT,
    LEVEL_SIGN,
    LEVEL_ATOM
};

static void print_at(const struct gar_expr *expr, enum level at_least, struct gar_strbuf *out);

static bool is_word(const char *name)
{
    static const char *const reserved[] = {
        "all",      "and",      "as",    "between", "by",    "case",  "cast",      "date",
        "distinct", "else",     "end",   "exists",  "false", "from",  "group",     "having",
        "in",       "interval", "is",    "like",    "ilike", "limit", "not",       "null",
        "on",       "or",       "order", "select",  "then",  "time",  "timestamp", "true",
        "try_cast", "union",    "when",  "where",   "xor",
    };
    if (!((name[0] >= 'a' && name[0] <= 'z') || (name[0] >= 'A' && name[0] <= 'Z') ||
          name[0] == '_')) {
        return false;
    }
    char lower[16] = {0};
    int64_t i = 0;
    for (; name[i] != '\0'; i++) {
        const char c = name[i];
        const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!is_letter && !(c >= '0' && c <= '9')) {
            return false;
        }
        if (i < (int64_t)sizeof lower - 1) {
            lower[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
        }
    }
    for (int64_t k = 0; i < (int64_t)sizeof lower && k < GAR_COUNT_OF(reserved); k++) {
        if (strcmp(lower, reserved[k]) == 0) {
            return false;
        }
    }
    return true;
}

static void print_name(const char *name, struct gar_strbuf *out)
{
    if (is_word(name)) {
        gar_strbuf_append(out, name);
        return;
    }
    gar_strbuf_append_char(out, '"');
    for (; *name != '\0'; name++) {
        if (*name == '"') {
            gar_strbuf_append_char(out, '"');
        }
        gar_strbuf_append_char(out, *name);
    }
    gar_strbuf_append_char(out, '"');
}

static bool infix_level(enum gar_function_id id, enum level *out)
{
    switch (id) {
    case GAR_FN_OR: *out = LEVEL_OR; return true;
    case GAR_FN_XOR: *out = LEVEL_XOR; return true;
    case GAR_FN_AND: *out = LEVEL_AND; return true;
    case GAR_FN_EQUAL:
    case GAR_FN_NOT_EQUAL:
    case GAR_FN_LESS:
    case GAR_FN_LESS_EQUAL:
    case GAR_FN_GREATER:
    case GAR_FN_GREATER_EQUAL:
    case GAR_FN_EQ_NULL_SAFE:
    case GAR_FN_LIKE:
    case GAR_FN_ILIKE: *out = LEVEL_TEST; return true;
    case GAR_FN_ADD:
    case GAR_FN_SUBTRACT: *out = LEVEL_SUM; return true;
    case GAR_FN_MULTIPLY:
    case GAR_FN_DIVIDE:
    case GAR_FN_FLOOR_DIVIDE:
    case GAR_FN_MODULO: *out = LEVEL_PRODUCT; return true;
    default: return false;
    }
}

static void open_if(bool condition, struct gar_strbuf *out)
{
    if (condition) {
        gar_strbuf_append_char(out, '(');
    }
}

static void close_if(bool condition, struct gar_strbuf *out)
{
    if (condition) {
        gar_strbuf_append_char(out, ')');
    }
}

static void print_when(const struct gar_expr *expr, struct gar_strbuf *out)
{
    gar_strbuf_append(out, "case");
    for (int64_t i = 0; i + 1 < expr->arg_count; i += 2) {
        gar_strbuf_append(out, " when ");
        print_at(expr->args[i], LEVEL_OR, out);
        gar_strbuf_append(out, " then ");
        print_at(expr->args[i + 1], LEVEL_OR, out);
    }
    gar_strbuf_append(out, " else ");
    print_at(expr->args[expr->arg_count - 1], LEVEL_OR, out);
    gar_strbuf_append(out, " end");
}

/* interval '1' month and the like; a span of several parts is their sum in parentheses. */
static bool print_interval(const struct gar_expr *expr, struct gar_strbuf *out)
{
    static const char *const units[] = {"month", "day"};
    int64_t parts[3];
    for (int32_t i = 0; i < 3; i++) {
        const struct gar_expr *arg = expr->args[i];
        if (arg->kind != GAR_EXPR_LITERAL || !arg->value.is_valid ||
            !gar_type_is_signed(arg->value.type)) {
            return false;
        }
        parts[i] = arg->value.i64;
    }
    if (parts[2] % 1000 != 0) {
        return false;
    }
    const bool is_sum = (parts[0] != 0) + (parts[1] != 0) + (parts[2] != 0) > 1;
    const char *separator = "";
    open_if(is_sum, out);
    for (int32_t i = 0; i < 2; i++) {
        if (parts[i] != 0 || (i == 1 && parts[0] == 0 && parts[2] == 0)) {
            gar_strbuf_printf(out, "%sinterval '%lld' %s", separator, (long long)parts[i],
                              units[i]);
            separator = " + ";
        }
    }
    if (parts[2] != 0 && parts[2] % 1000000000 == 0) {
        gar_strbuf_printf(out, "%sinterval '%lld' second", separator,
                          (long long)(parts[2] / 1000000000));
    } else if (parts[2] != 0) {
        gar_strbuf_printf(out, "%sinterval '%lld' microsecond", separator,
                          (long long)(parts[2] / 1000));
    }
    close_if(is_sum, out);
    return true;
}

static void print_plain_call(const struct gar_expr *expr, struct gar_strbuf *out)
{
    const struct gar_function_info *info = gar_function_info(expr->function);
    gar_strbuf_append(out, info->name);
    gar_strbuf_append_char(out, '(');
    if (expr->function->id == GAR_FN_COUNT && expr->arg_count == 0) {
        gar_strbuf_append_char(out, '*');
    }
    for (int64_t i = 0; i < expr->arg_count; i++) {
        gar_strbuf_append(out, i == 0 ? "" : ", ");
        print_at(expr->args[i], LEVEL_OR, out);
    }
    gar_strbuf_append_char(out, ')');
}

static void print_infix(const struct gar_expr *expr, enum level level, enum level at_least,
                        struct gar_strbuf *out)
{
    const bool is_test = level == LEVEL_TEST; /* tests do not chain */
    open_if(level < at_least, out);
    print_at(expr->args[0], is_test ? LEVEL_SUM : level, out);
    gar_strbuf_printf(out, " %s ", gar_function_info(expr->function)->sql);
    print_at(expr->args[1], (enum level)(level + 1), out);
    close_if(level < at_least, out);
}

static void print_call(const struct gar_expr *expr, enum level at_least, struct gar_strbuf *out)
{
    enum level level;
    if (infix_level(expr->function->id, &level)) {
        print_infix(expr, level, at_least, out);
        return;
    }
    switch (expr->function->id) {
    case GAR_FN_NOT:
        open_if(at_least > LEVEL_NOT, out);
        gar_strbuf_append(out, "not ");
        print_at(expr->args[0], LEVEL_NOT, out);
        close_if(at_least > LEVEL_NOT, out);
        return;
    case GAR_FN_NEGATE:
        open_if(at_least > LEVEL_SIGN, out);
        gar_strbuf_append(out, "-");
        print_at(expr->args[0], LEVEL_ATOM, out);
        close_if(at_least > LEVEL_SIGN, out);
        return;
    case GAR_FN_IS_NULL:
    case GAR_FN_NOT_NULL:
        open_if(at_least > LEVEL_TEST, out);
        print_at(expr->args[0], LEVEL_SUM, out);
        gar_strbuf_printf(out, " %s", gar_function_info(expr->function)->sql);
        close_if(at_least > LEVEL_TEST, out);
        return;
    case GAR_FN_BETWEEN:
        open_if(at_least > LEVEL_TEST, out);
        print_at(expr->args[0], LEVEL_SUM, out);
        gar_strbuf_append(out, " between ");
        print_at(expr->args[1], LEVEL_SUM, out);
        gar_strbuf_append(out, " and ");
        print_at(expr->args[2], LEVEL_SUM, out);
        close_if(at_least > LEVEL_TEST, out);
        return;
    case GAR_FN_WHEN: print_when(expr, out); return;
    case GAR_FN_INTERVAL:
        if (!print_interval(expr, out)) {
            print_plain_call(expr, out);
        }
        return;
    default: print_plain_call(expr, out); return;
    }
}

static void print_set(const struct gar_column *set, struct gar_strbuf *out)
{
    gar_strbuf_append(out, " in (");
    const int64_t shown_max = 20;
    for (int64_t i = 0; i < set->length && i < shown_max; i++) {
        gar_strbuf_append(out, i == 0 ? "" : ", ");
        struct gar_value value = {0};
        if (gar_value_from_column(set, i, &value, NULL) >= 0) {
            gar_value_print(&value, out);
        }
        gar_value_destroy(&value);
    }
    if (set->length > shown_max) {
        gar_strbuf_printf(out, ", ... %lld values", (long long)set->length);
    }
    gar_strbuf_append_char(out, ')');
}

static void print_at(const struct gar_expr *expr, enum level at_least, struct gar_strbuf *out)
{
    switch (expr->kind) {
    case GAR_EXPR_COLUMN: print_name(expr->name, out); return;
    case GAR_EXPR_LITERAL: {
        const bool is_signed =
            at_least > LEVEL_SIGN && expr->value.is_valid && gar_type_is_numeric(expr->value.type);
        struct gar_strbuf text = {0};
        gar_value_print(&expr->value, &text);
        const bool is_negative = is_signed && gar_strbuf_text(&text)[0] == '-';
        open_if(is_negative, out);
        gar_strbuf_append(out, gar_strbuf_text(&text));
        close_if(is_negative, out);
        out->failed = out->failed || text.failed;
        gar_strbuf_destroy(&text);
        return;
    }
    case GAR_EXPR_CALL: print_call(expr, at_least, out); return;
    case GAR_EXPR_CAST:
        gar_strbuf_append(out, expr->is_try ? "try_cast(" : "cast(");
        print_at(expr->args[0], LEVEL_OR, out);
        gar_strbuf_append(out, " as ");
        gar_type_print(expr->type, out);
        gar_strbuf_append_char(out, ')');
        return;
    case GAR_EXPR_ALIAS:
        print_at(expr->args[0], at_least > LEVEL_OR ? LEVEL_ATOM : LEVEL_OR, out);
        if (at_least == LEVEL_OR) {
            gar_strbuf_append(out, " as ");
            print_name(expr->name, out);
        }
        return;
    case GAR_EXPR_UDF:
        gar_strbuf_printf(out, "%s(", expr->udf->name);
        for (int64_t i = 0; i < expr->arg_count; i++) {
            gar_strbuf_append(out, i > 0 ? ", " : "");
            print_at(expr->args[i], LEVEL_OR, out);
        }
        gar_strbuf_append_char(out, ')');
        return;
    case GAR_EXPR_IN_LIST:
        open_if(at_least > LEVEL_TEST, out);
        print_at(expr->args[0], LEVEL_SUM, out);
        print_set(expr->set, out);
        close_if(at_least > LEVEL_TEST, out);
        return;
    case GAR_EXPR_WINDOW:
        print_at(expr->args[0], LEVEL_ATOM, out);
        gar_strbuf_append(out, " over (");
        gar_window_print(expr, out);
        gar_strbuf_append_char(out, ')');
        return;
    }
}

void gar_expr_print(const struct gar_expr *expr, struct gar_strbuf *out)
{
    print_at(expr, LEVEL_OR, out);
}
