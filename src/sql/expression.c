/* SPDX-License-Identifier: Apache-2.0 */
/* A Pratt parser for SQL expressions.
 *
 * parse_binary(min) reads a prefix expression, then infix operators that bind at least as strongly as `min`. Each
 * function takes over the expression it is given and hands a new one back through *out; on failure it has released what it
 * took. Chains of AND and OR are collected and joined as a balanced tree, so that long generated conditions stay shallow. */
#include "sql/expression.h"

#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "sql/parser_priv.h"

/* Binding powers, weakest first. */
enum {
    BIND_OR = 1,
    BIND_AND,
    BIND_NOT,
    BIND_COMPARE,
    BIND_BITS,
    BIND_SUM,
    BIND_PRODUCT,
    BIND_POWER,
    BIND_UNARY
};

struct infix {
    const char *symbol;
    const char *function;
    int power;
};

static const struct infix infixes[] = {
    {"=", "equal", BIND_COMPARE},
    {"==", "equal", BIND_COMPARE},
    {"<>", "not_equal", BIND_COMPARE},
    {"!=", "not_equal", BIND_COMPARE},
    {"<", "less", BIND_COMPARE},
    {"<=", "less_equal", BIND_COMPARE},
    {">", "greater", BIND_COMPARE},
    {">=", "greater_equal", BIND_COMPARE},
    {"|", "bitwise_or", BIND_BITS},
    {"&", "bitwise_and", BIND_BITS},
    {"^", "bitwise_xor", BIND_BITS},
    {"<<", "shift_left", BIND_BITS},
    {">>", "shift_right", BIND_BITS},
    {"||", "concat", BIND_BITS},
    {"+", "add", BIND_SUM},
    {"-", "subtract", BIND_SUM},
    {"*", "multiply", BIND_PRODUCT},
    {"/", "divide", BIND_PRODUCT},
    {"%", "modulo", BIND_PRODUCT},
    {"//", "floor_divide", BIND_PRODUCT},
    {"**", "power", BIND_POWER},
};

static enum gar_status parse_binary(struct gar_parser *p, int min, struct gar_expr **out);

/* ---- tokens ---- */

enum gar_status gar_parser_advance(struct gar_parser *p)
{
    return gar_lexer_next(&p->lexer, &p->token, p->err);
}

bool gar_token_is_word(const struct gar_token *token, const char *word)
{
    if (token->kind != GAR_TOKEN_NAME || token->bytes != (int64_t)strlen(word)) {
        return false;
    }
    for (int64_t i = 0; i < token->bytes; i++) {
        const char c = token->text[i];
        if ((c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c) != word[i]) {
            return false;
        }
    }
    return true;
}

bool gar_token_is_symbol(const struct gar_token *token, const char *symbol)
{
    return token->kind == GAR_TOKEN_SYMBOL && token->bytes == (int64_t)strlen(symbol) &&
           memcmp(token->text, symbol, (size_t)token->bytes) == 0;
}

enum gar_status gar_parser_fail(struct gar_parser *p, int64_t at, const char *what)
{
    return gar_syntax_error(p->lexer.text, p->lexer.bytes, at, p->err, "%s", what);
}

enum gar_status gar_parser_locate(struct gar_parser *p, int64_t at, enum gar_status status)
{
    if (status < 0 && status != GAR_ERR_NOMEM && p->err != NULL && p->err->position < 0) {
        gar_syntax_locate(p->lexer.text, p->lexer.bytes, at, p->err);
    }
    return status;
}

enum gar_status gar_parser_unexpected(struct gar_parser *p, const char *wanted)
{
    if (p->token.kind == GAR_TOKEN_END) {
        return gar_syntax_error(p->lexer.text, p->lexer.bytes, p->token.at, p->err,
                                "the text ends here, but %s is missing", wanted);
    }
    char shown[80];
    return gar_syntax_error(p->lexer.text, p->lexer.bytes, p->token.at, p->err,
                            "expected %s, got %s", wanted,
                            gar_error_quote(p->token.text, p->token.bytes, shown, sizeof shown));
}

enum gar_status gar_parser_expect(struct gar_parser *p, const char *symbol)
{
    if (!gar_token_is_symbol(&p->token, symbol)) {
        char wanted[8] = "'";
        (void)strncat(strncat(wanted, symbol, 4), "'", 2);
        return gar_parser_unexpected(p, wanted);
    }
    return gar_parser_advance(p);
}

enum gar_status gar_parser_expect_word(struct gar_parser *p, const char *word)
{
    return gar_token_is_word(&p->token, word) ? gar_parser_advance(p)
                                              : gar_parser_unexpected(p, word);
}

/* ---- building ---- */

enum gar_status gar_parser_call(struct gar_parser *p, const char *function, struct gar_expr **args,
                                int64_t count, struct gar_expr **out)
{
    const enum gar_status status = gar_expr_new_call_by_name(function, args, count, out, p->err);
    for (int64_t i = 0; i < count; i++) {
        gar_expr_unref(args[i]);
    }
    return status;
}

enum gar_status gar_parser_literal_i64(struct gar_parser *p, int64_t value, struct gar_expr **out)
{
    const struct gar_value v = {.type = gar_type_of(GAR_INT64), .is_valid = true, .i64 = value};
    return gar_expr_new_literal(&v, out, p->err);
}

static enum gar_status negate_if(struct gar_parser *p, bool is_negated, enum gar_status status,
                                 struct gar_expr *expr, struct gar_expr **out)
{
    if (status != GAR_OK || !is_negated) {
        *out = expr;
        return status;
    }
    return gar_parser_call(p, "not", &expr, 1, out);
}

/* items[0..count) (taken) joined as a balanced tree. */
static enum gar_status join_balanced(struct gar_parser *p, const char *function,
                                     struct gar_expr **items, int64_t count, struct gar_expr **out)
{
    enum gar_status status = GAR_OK;
    while (count > 1 && status == GAR_OK) {
        int64_t to = 0;
        int64_t from = 0;
        for (; from + 1 < count && status == GAR_OK; from += 2) {
            struct gar_expr *joined = NULL;
            status = gar_parser_call(p, function, &items[from], 2, &joined);
            if (status == GAR_OK) {
                items[to++] = joined;
            }
        }
        while (from < count) {
            items[to++] = items[from++];
        }
        count = to;
    }
    if (status != GAR_OK) {
        for (int64_t i = 0; i < count; i++) {
            gar_expr_unref(items[i]);
        }
        return status;
    }
    *out = items[0];
    return GAR_OK;
}

/* A growing list of expressions it owns. */
struct list {
    struct gar_expr **items;
    int64_t count;
    int64_t capacity;
};

static void list_destroy(struct list *list)
{
    for (int64_t i = 0; i < list->count; i++) {
        gar_expr_unref(list->items[i]);
    }
    gar_free(list->items);
    *list = (struct list){0};
}

static enum gar_status list_add(struct gar_parser *p, struct list *list, struct gar_expr *expr)
{
    const enum gar_status status = gar_grow((void **)&list->items, &list->capacity, list->count + 1,
                                            sizeof(struct gar_expr *), p->err);
    if (status != GAR_OK) {
        gar_expr_unref(expr);
        return status;
    }
    list->items[list->count++] = expr;
    return GAR_OK;
}

/* Comma-separated expressions up to and past the closing parenthesis. */
static enum gar_status parse_arguments(struct gar_parser *p, struct list *list)
{
    if (gar_token_is_symbol(&p->token, ")")) {
        return gar_parser_advance(p);
    }
    for (;;) {
        struct gar_expr *item = NULL;
        GAR_TRY(parse_binary(p, BIND_OR, &item));
        GAR_TRY(list_add(p, list, item));
        if (!gar_token_is_symbol(&p->token, ",")) {
            return gar_parser_expect(p, ")");
        }
        GAR_TRY(gar_parser_advance(p));
    }
}

enum gar_status gar_parser_arguments(struct gar_parser *p, struct gar_expr ***out,
                                     int64_t *out_count)
{
    struct list list = {0};
    const enum gar_status status = parse_arguments(p, &list);
    if (status != GAR_OK) {
        list_destroy(&list);
        return status;
    }
    *out = list.items;
    *out_count = list.count;
    return GAR_OK;
}

void gar_parser_arguments_free(struct gar_expr **items, int64_t count)
{
    struct list list = {.items = items, .count = count};
    list_destroy(&list);
}

enum gar_status gar_parser_expression(struct gar_parser *p, struct gar_expr **out)
{
    return parse_binary(p, BIND_OR, out);
}

enum gar_status gar_parser_operand(struct gar_parser *p, struct gar_expr **out)
{
    return parse_binary(p, BIND_BITS, out);
}

/* ---- IN, BETWEEN, LIKE, IS ------------------------------------------------------------------------------------------------- */

static bool is_literal(const struct gar_expr *expr)
{
    return expr->kind == GAR_EXPR_LITERAL;
}

static bool is_null_literal(const struct gar_expr *expr)
{
    return is_literal(expr) && !expr->value.is_valid;
}

/* Are all items literals of one type, nulls aside? */
static bool is_uniform(const struct list *list)
{
    const struct gar_value *first = NULL;
    for (int64_t i = 0; i < list->count; i++) {
        if (!is_literal(list->items[i])) {
            return false;
        }
        const struct gar_value *value = &list->items[i]->value;
        if (!value->is_valid) {
            continue;
        }
        if (first != NULL && !gar_type_equal(first->type, value->type)) {
            return false;
        }
        first = first == NULL ? value : first;
    }
    return first != NULL;
}

/* The literals of a uniform list as a column, nulls left out. */
static enum gar_status make_set(struct gar_parser *p, const struct list *list,
                                struct gar_column **out)
{
    struct gar_type type = gar_type_of(GAR_NULL);
    for (int64_t i = 0; i < list->count; i++) {
        if (!is_null_literal(list->items[i])) {
            type = list->items[i]->value.type;
        }
    }
    struct gar_builder builder;
    gar_builder_init(&builder, gar_memory_system(), type);
    enum gar_status status = GAR_OK;
    for (int64_t i = 0; i < list->count && status == GAR_OK; i++) {
        if (!is_null_literal(list->items[i])) {
            status = gar_builder_append_value(&builder, &list->items[i]->value, p->err);
        }
    }
    if (status == GAR_OK) {
        status = gar_builder_finish(&builder, out, p->err);
    }
    gar_builder_destroy(&builder);
    return status;
}

/* subject = item or subject = item or ... */
static enum gar_status in_by_equality(struct gar_parser *p, struct gar_expr *subject,
                                      struct list *list, struct gar_expr **out)
{
    enum gar_status status = GAR_OK;
    for (int64_t i = 0; i < list->count && status == GAR_OK; i++) {
        struct gar_expr *pair[2] = {gar_expr_ref(subject), list->items[i]};
        list->items[i] = NULL;
        status = gar_parser_call(p, "equal", pair, 2, &list->items[i]);
    }
    if (status == GAR_OK) {
        status = join_balanced(p, "or", list->items, list->count, out);
        list->count = 0;
    }
    return status;
}

static enum gar_status in_by_set(struct gar_parser *p, struct gar_expr *subject,
                                 const struct list *list, struct gar_expr **out)
{
    struct gar_column *set = NULL;
    struct gar_expr *in = NULL;
    GAR_TRY(make_set(p, list, &set));
    enum gar_status status = gar_expr_new_in_list(subject, set, &in, p->err);
    const bool has_null = set->length < list->count;
    gar_column_unref(set);
    if (status == GAR_OK && has_null) { /* SQL: a null in the list makes "not found" unknown */
        const struct gar_value null = {.type = gar_type_of(GAR_BOOL), .is_valid = false};
        struct gar_expr *pair[2] = {in, NULL};
        status = gar_expr_new_literal(&null, &pair[1], p->err);
        if (status != GAR_OK) {
            gar_expr_unref(in);
            return status;
        }
        return gar_parser_call(p, "or", pair, 2, out);
    }
    *out = in;
    return status;
}

static enum gar_status parse_in(struct gar_parser *p, struct gar_expr *subject,
                                struct gar_expr **out)
{
    struct list list = {0};
    const int64_t at = p->token.at;
    enum gar_status status = gar_parser_expect(p, "(");
    if (status == GAR_OK) {
        status = parse_arguments(p, &list);
    }
    if (status == GAR_OK && list.count == 0) {
        status = gar_parser_fail(p, at, "IN needs at least one value");
    }
    if (status == GAR_OK) {
        status = is_uniform(&list) ? in_by_set(p, subject, &list, out)
                                   : in_by_equality(p, subject, &list, out);
    }
    list_destroy(&list);
    gar_expr_unref(subject);
    return status;
}

static enum gar_status parse_between(struct gar_parser *p, struct gar_expr *subject,
                                     struct gar_expr **out)
{
    struct gar_expr *args[3] = {subject, NULL, NULL};
    enum gar_status status = parse_binary(p, BIND_BITS, &args[1]);
    if (status == GAR_OK) {
        status = gar_parser_expect_word(p, "and");
    }
    if (status == GAR_OK) {
        status = parse_binary(p, BIND_BITS, &args[2]);
    }
    if (status == GAR_OK) {
        return gar_parser_call(p, "between", args, 3, out);
    }
    gar_expr_unref(args[0]);
    gar_expr_unref(args[1]);
    gar_expr_unref(args[2]);
    return status;
}

static enum gar_status parse_right_call(struct gar_parser *p, const char *function,
                                        struct gar_expr *left, int power, struct gar_expr **out)
{
    struct gar_expr *args[2] = {left, NULL};
    const enum gar_status status = parse_binary(p, power, &args[1]);
    if (status != GAR_OK) {
        gar_expr_unref(left);
        return status;
    }
    return gar_parser_call(p, function, args, 2, out);
}

/* The pattern with `escape` as its escape character, in terms of the backslash. False if it ends with the escape. */
static bool translate_pattern(const struct gar_value *pattern, const char *escape,
                              int64_t escape_bytes, struct gar_strbuf *out)
{
    const char *text = pattern->text.data;
    for (int64_t i = 0; i < pattern->text.size; i++) {
        const bool is_escape = escape_bytes > 0 && pattern->text.size - i >= escape_bytes &&
                               memcmp(text + i, escape, (size_t)escape_bytes) == 0;
        if (is_escape) {
            i += escape_bytes;
            if (i == pattern->text.size) {
                return false;
            }
        }
        if (text[i] == '\\' || (is_escape && (text[i] == '%' || text[i] == '_'))) {
            gar_strbuf_append_char(out, '\\');
        }
        gar_strbuf_append_char(out, text[i]);
    }
    return true;
}

/* ESCAPE 'c' behind a pattern (replaced); the word has been read. */
static enum gar_status parse_escape(struct gar_parser *p, struct gar_expr **pattern)
{
    struct gar_expr *escape = NULL;
    const int64_t at = p->token.at;
    if (p->token.kind != GAR_TOKEN_STRING) {
        return gar_parser_unexpected(p, "one character in quotes");
    }
    if ((*pattern)->kind != GAR_EXPR_LITERAL || (*pattern)->value.type.id != GAR_STRING) {
        return gar_parser_fail(p, at, "ESCAPE needs a pattern that is written out");
    }
    GAR_TRY(gar_parser_primary(p, &escape));
    struct gar_strbuf text = {0};
    enum gar_status status = GAR_OK;
    if (escape->kind != GAR_EXPR_LITERAL || escape->value.type.id != GAR_STRING ||
        gar_utf8_length(escape->value.text.data, escape->value.text.size) > 1) {
        status = gar_parser_fail(p, at, "ESCAPE takes one character in quotes");
    } else if (!translate_pattern(&(*pattern)->value, escape->value.text.data,
                                  escape->value.text.size, &text)) {
        status = gar_parser_fail(p, at, "the pattern ends with its escape character");
    } else if (text.failed) {
        status = gar_error_nomem(p->err, text.size);
    }
    gar_expr_unref(escape);
    struct gar_value value = {.is_valid = false};
    if (status == GAR_OK) {
        status = gar_value_from_text(gar_type_of(GAR_STRING), gar_strbuf_text(&text), text.size,
                                     &value, p->err);
    }
    gar_strbuf_destroy(&text);
    struct gar_expr *translated = NULL;
    if (status == GAR_OK) {
        status = gar_expr_new_literal(&value, &translated, p->err);
        gar_value_destroy(&value);
    }
    if (status == GAR_OK) {
        gar_expr_unref(*pattern);
        *pattern = translated;
    }
    return status;
}

/* subject LIKE pattern [ESCAPE 'c']; takes subject. */
static enum gar_status parse_like(struct gar_parser *p, const char *function,
                                  struct gar_expr *subject, struct gar_expr **out)
{
    struct gar_expr *args[2] = {subject, NULL};
    enum gar_status status = parse_binary(p, BIND_BITS, &args[1]);
    if (status == GAR_OK && gar_token_is_word(&p->token, "escape")) {
        status = gar_parser_advance(p);
        if (status == GAR_OK) {
            status = parse_escape(p, &args[1]);
        }
    }
    if (status != GAR_OK) {
        gar_expr_unref(args[0]);
        gar_expr_unref(args[1]);
        return status;
    }
    return gar_parser_call(p, function, args, 2, out);
}

/* subject IS [NOT] what; the word IS has been read. Takes subject. */
static enum gar_status parse_is(struct gar_parser *p, struct gar_expr *subject,
                                struct gar_expr **out)
{
    bool is_negated = false;
    enum gar_status status = GAR_OK;
    if (gar_token_is_word(&p->token, "not")) {
        is_negated = true;
        status = gar_parser_advance(p);
    }
    const struct gar_token what = p->token;
    struct gar_expr *test = NULL;
    if (status == GAR_OK) {
        status = gar_parser_advance(p);
    }
    if (status != GAR_OK) {
        gar_expr_unref(subject);
        return status;
    }
    if (gar_token_is_word(&what, "null")) {
        return gar_parser_call(p, is_negated ? "not_null" : "is_null", &subject, 1, out);
    }
    if (gar_token_is_word(&what, "true") || gar_token_is_word(&what, "false")) {
        const struct gar_value value = {.type = gar_type_of(GAR_BOOL),
                                        .is_valid = true,
                                        .boolean = gar_token_is_word(&what, "true")};
        struct gar_expr *pair[2] = {subject, NULL};
        status = gar_expr_new_literal(&value, &pair[1], p->err);
        if (status == GAR_OK) {
            status = gar_parser_call(p, "eq_null_safe", pair, 2, &test);
        } else {
            gar_expr_unref(subject);
        }
        return negate_if(p, is_negated, status, test, out);
    }
    if (gar_token_is_word(&what, "distinct")) {
        status = gar_parser_expect_word(p, "from");
        if (status == GAR_OK) {
            status = parse_right_call(p, "eq_null_safe", subject, BIND_BITS, &test);
        } else {
            gar_expr_unref(subject);
        }
        return negate_if(p, !is_negated, status, test, out);
    }
    gar_expr_unref(subject);
    return gar_syntax_error(p->lexer.text, p->lexer.bytes, what.at, p->err,
                            "IS is followed by [NOT] NULL, TRUE, FALSE or DISTINCT FROM");
}

/* [NOT] IN / BETWEEN / LIKE / ILIKE after a subject (taken). */
static enum gar_status parse_word_test(struct gar_parser *p, struct gar_expr *subject,
                                       struct gar_expr **out)
{
    bool is_negated = false;
    enum gar_status status = GAR_OK;
    if (gar_token_is_word(&p->token, "not")) {
        is_negated = true;
        status = gar_parser_advance(p);
    }
    const struct gar_token word = p->token;
    if (status == GAR_OK && !gar_token_is_word(&word, "in") &&
        !gar_token_is_word(&word, "between") && !gar_token_is_word(&word, "like") &&
        !gar_token_is_word(&word, "ilike")) {
        status = gar_parser_unexpected(p, "IN, BETWEEN, LIKE or ILIKE");
    }
    if (status == GAR_OK) {
        status = gar_parser_advance(p);
    }
    if (status != GAR_OK) {
        gar_expr_unref(subject);
        return status;
    }
    struct gar_expr *test = NULL;
    if (gar_token_is_word(&word, "in")) {
        status = parse_in(p, subject, &test);
    } else if (gar_token_is_word(&word, "between")) {
        status = parse_between(p, subject, &test);
    } else {
        status = parse_like(p, gar_token_is_word(&word, "like") ? "like" : "ilike", subject, &test);
    }
    return negate_if(p, is_negated, status, test, out);
}

/* ---- the loop ----------------------------------------------------------------------------------------------------------- */

static const struct infix *find_infix(const struct gar_token *token)
{
    for (int64_t i = 0; i < GAR_COUNT_OF(infixes); i++) {
        if (gar_token_is_symbol(token, infixes[i].symbol)) {
            return &infixes[i];
        }
    }
    return NULL;
}

static bool is_word_test(const struct gar_token *token)
{
    static const char *const words[] = {"is", "not", "in", "between", "like", "ilike"};
    for (int64_t i = 0; i < GAR_COUNT_OF(words); i++) {
        if (gar_token_is_word(token, words[i])) {
            return true;
        }
    }
    return false;
}

/* left AND x AND y ...: all operands of one chain, joined balanced. Takes left. */
static enum gar_status parse_chain(struct gar_parser *p, const char *word, int power,
                                   struct gar_expr *left, struct gar_expr **out)
{
    struct list list = {0};
    enum gar_status status = list_add(p, &list, left);
    while (status == GAR_OK && gar_token_is_word(&p->token, word)) {
        struct gar_expr *item = NULL;
        status = gar_parser_advance(p);
        if (status == GAR_OK) {
            status = parse_binary(p, power + 1, &item);
        }
        if (status == GAR_OK) {
            status = list_add(p, &list, item);
        }
    }
    if (status == GAR_OK) {
        status = join_balanced(p, word, list.items, list.count, out);
        list.count = 0;
    }
    list_destroy(&list);
    return status;
}

/* One infix step on `left` (taken): *out_done when the next token binds weaker than min. */
static enum gar_status parse_infix(struct gar_parser *p, int min, struct gar_expr *left,
                                   struct gar_expr **out, bool *out_done)
{
    const struct infix *infix = find_infix(&p->token);
    *out_done = false;
    if (infix != NULL && infix->power >= min) {
        const enum gar_status status = gar_parser_advance(p);
        if (status != GAR_OK) {
            gar_expr_unref(left);
            return status;
        }
        /* all but power associate to the left */
        return parse_right_call(p, infix->function, left,
                                infix->power == BIND_POWER ? BIND_POWER : infix->power + 1, out);
    }
    if (min <= BIND_AND && gar_token_is_word(&p->token, "and")) {
        return parse_chain(p, "and", BIND_AND, left, out);
    }
    if (min <= BIND_OR && gar_token_is_word(&p->token, "or")) {
        return parse_chain(p, "or", BIND_OR, left, out);
    }
    if (min <= BIND_COMPARE && is_word_test(&p->token)) {
        if (!gar_token_is_word(&p->token, "is")) {
            return parse_word_test(p, left, out);
        }
        const enum gar_status status = gar_parser_advance(p);
        if (status != GAR_OK) {
            gar_expr_unref(left);
            return status;
        }
        return parse_is(p, left, out);
    }
    *out = left;
    *out_done = true;
    return GAR_OK;
}

/* Does "::" follow the current token? It binds tighter than a sign. */
static bool is_cast_next(const struct gar_parser *p)
{
    struct gar_lexer lexer = p->lexer;
    struct gar_token next = {.kind = GAR_TOKEN_END};
    return gar_lexer_next(&lexer, &next, NULL) == GAR_OK && gar_token_is_symbol(&next, "::");
}

static enum gar_status parse_prefix(struct gar_parser *p, struct gar_expr **out)
{
    struct gar_expr *arg = NULL;
    if (gar_token_is_word(&p->token, "not")) {
        GAR_TRY(gar_parser_advance(p));
        GAR_TRY(parse_binary(p, BIND_NOT, &arg));
        return gar_parser_call(p, "not", &arg, 1, out);
    }
    if (gar_token_is_symbol(&p->token, "-") || gar_token_is_symbol(&p->token, "+")) {
        const bool is_minus = gar_token_is_symbol(&p->token, "-");
        GAR_TRY(gar_parser_advance(p));
        if (is_minus && p->token.kind == GAR_TOKEN_NUMBER && !is_cast_next(p)) {
            return gar_parser_number(p, true, out);
        }
        GAR_TRY(parse_binary(p, BIND_UNARY, &arg));
        if (!is_minus) {
            *out = arg;
            return GAR_OK;
        }
        return gar_parser_call(p, "negate", &arg, 1, out);
    }
    return gar_parser_primary(p, out);
}

static enum gar_status parse_binary(struct gar_parser *p, int min, struct gar_expr **out)
{
    if (p->depth >= GAR_SQL_DEPTH_MAX) {
        return gar_parser_fail(p, p->token.at, "the expression is nested deeper than 256 levels");
    }
    p->depth++;
    struct gar_expr *left = NULL;
    int64_t at = p->token.at;
    enum gar_status status = gar_parser_locate(p, at, parse_prefix(p, &left));
    bool is_done = status != GAR_OK;
    while (!is_done && status == GAR_OK) {
        struct gar_expr *next = NULL;
        at = p->token.at;
        status = gar_parser_locate(p, at, parse_infix(p, min, left, &next, &is_done));
        left = next;
    }
    p->depth--;
    if (status == GAR_OK) {
        *out = left;
    }
    return status;
}

/* ---- entry points ---------------------------------------------------------------------------------------------------------- */

/* expression [AS name] */
static enum gar_status parse_named(struct gar_parser *p, struct gar_expr **out)
{
    struct gar_expr *expr = NULL;
    GAR_TRY(parse_binary(p, BIND_OR, &expr));
    if (!gar_token_is_word(&p->token, "as")) {
        *out = expr;
        return GAR_OK;
    }
    char *name = NULL;
    int64_t at = p->token.at;
    enum gar_status status = gar_parser_advance(p);
    if (status == GAR_OK) {
        at = p->token.at;
        status = gar_parser_take_name(p, &name);
    }
    if (status == GAR_OK) {
        status = gar_parser_locate(p, at, gar_expr_new_alias(expr, name, out, p->err));
    }
    gar_free(name);
    gar_expr_unref(expr);
    return status;
}

static enum gar_status start(struct gar_parser *p, const char *text, int64_t bytes,
                             const struct gar_schema *schema, struct gar_error *err)
{
    *p = (struct gar_parser){.lexer = {.text = text, .bytes = bytes}, .schema = schema, .err = err};
    return gar_parser_advance(p);
}

enum gar_status gar_sql_parse_expression(const char *text, int64_t bytes,
                                         const struct gar_schema *schema, struct gar_expr **out,
                                         struct gar_error *err)
{
    struct gar_parser p;
    struct gar_expr *expr = NULL;
    GAR_TRY(start(&p, text, bytes, schema, err));
    GAR_TRY(parse_named(&p, &expr));
    if (p.token.kind != GAR_TOKEN_END) {
        gar_expr_unref(expr);
        return gar_parser_unexpected(&p, "an operator or the end");
    }
    *out = expr;
    return GAR_OK;
}

enum gar_status gar_sql_parse_list(const char *text, int64_t bytes, const struct gar_schema *schema,
                                   struct gar_expr ***out, int64_t *out_count,
                                   struct gar_error *err)
{
    struct gar_parser p;
    struct list list = {0};
    GAR_TRY(start(&p, text, bytes, schema, err));
    enum gar_status status = GAR_OK;
    for (;;) {
        struct gar_expr *item = NULL;
        status = parse_named(&p, &item);
        if (status == GAR_OK) {
            status = list_add(&p, &list, item);
        }
        if (status != GAR_OK || !gar_token_is_symbol(&p.token, ",")) {
            break;
        }
        status = gar_parser_advance(&p);
        if (status != GAR_OK) {
            break;
        }
    }
    if (status == GAR_OK && p.token.kind != GAR_TOKEN_END) {
        status = gar_parser_unexpected(&p, "',' or the end");
    }
    if (status != GAR_OK) {
        list_destroy(&list);
        return status;
    }
    *out = list.items;
    *out_count = list.count;
    return GAR_OK;
}
