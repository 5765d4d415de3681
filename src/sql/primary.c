/* SPDX-License-Identifier: Apache-2.0 */
/* What stands between operators: literals, names, calls, CASE, CAST, EXTRACT, SUBSTRING, INTERVAL, parentheses. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/calendar.h"
#include "base/number_text.h"
#include "expr/program.h"
#include "sql/parser_priv.h"

/* ---- numbers and texts ---------------------------------------------------------------------------------------------- */

/* Digits without underscores, with a sign in front; NULL if memory is out. */
static char *clean_number(const struct gar_token *token, bool is_negative, int64_t *out_bytes)
{
    char *text = gar_malloc(token->bytes + 2);
    int64_t bytes = 0;
    if (text == NULL) {
        return NULL;
    }
    if (is_negative) {
        text[bytes++] = '-';
    }
    for (int64_t i = 0; i < token->bytes; i++) {
        if (token->text[i] != '_') {
            text[bytes++] = token->text[i];
        }
    }
    text[bytes] = '\0';
    *out_bytes = bytes;
    return text;
}

/* "12.50" as decimal(4, 2); false when it has an exponent or more than 38 digits. */
static bool number_as_decimal(const char *text, int64_t bytes, struct gar_value *out)
{
    const char *point = memchr(text, '.', (size_t)bytes);
    int64_t digits = 0; /* without leading zeros */
    for (int64_t i = 0; i < bytes; i++) {
        if (text[i] == 'e' || text[i] == 'E') {
            return false;
        }
        digits += text[i] >= (digits == 0 ? '1' : '0') && text[i] <= '9';
    }
    const int64_t scale = point == NULL ? 0 : bytes - (point - text) - 1;
    if (digits > GAR_DECIMAL_PRECISION_MAX || scale > GAR_DECIMAL_PRECISION_MAX) {
        return false;
    }
    const int32_t precision = (int32_t)gar_max_i64(gar_max_i64(digits, scale), 1);
    out->type = gar_type_decimal(precision, (int32_t)scale);
    return gar_decimal_parse(text, bytes, precision, (int32_t)scale, false, &out->i128) == GAR_OK;
}

static bool number_as_value(const char *text, int64_t bytes, struct gar_value *out)
{
    out->is_valid = true;
    if (memchr(text, '.', (size_t)bytes) == NULL &&
        gar_parse_i64(text, bytes, &out->i64) == GAR_OK) {
        out->type = gar_type_of(GAR_INT64);
        return true;
    }
    if (memchr(text, '.', (size_t)bytes) == NULL &&
        gar_parse_u64(text, bytes, &out->u64) == GAR_OK) {
        out->type = gar_type_of(GAR_UINT64);
        return true;
    }
    if (number_as_decimal(text, bytes, out)) {
        return true;
    }
    out->type = gar_type_of(GAR_FLOAT64);
    return gar_parse_double(text, bytes, &out->f64) && isfinite(out->f64);
}

enum gar_status gar_parser_number(struct gar_parser *p, bool is_negative, struct gar_expr **out)
{
    int64_t bytes = 0;
    char *text = clean_number(&p->token, is_negative, &bytes);
    if (text == NULL) {
        return gar_error_nomem(p->err, p->token.bytes + 2);
    }
    struct gar_value value = {.is_valid = false};
    const bool is_good = number_as_value(text, bytes, &value);
    gar_free(text);
    if (!is_good) {
        return gar_parser_fail(p, p->token.at, "this number is too large");
    }
    struct gar_expr *literal = NULL;
    GAR_TRY(gar_expr_new_literal(&value, &literal, p->err));
    const enum gar_status status = gar_parser_advance(p);
    if (status != GAR_OK) {
        gar_expr_unref(literal);
        return status;
    }
    *out = literal;
    return GAR_OK;
}

/* The text between the quotes, doubled quotes made single. Caller gar_frees. */
static char *unquote(const struct gar_token *token, int64_t *out_bytes)
{
    char *text = gar_malloc(token->bytes + 1);
    int64_t bytes = 0;
    if (text == NULL) {
        return NULL;
    }
    for (int64_t i = 1; i + 1 < token->bytes; i++) {
        text[bytes++] = token->text[i];
        if (token->text[i] == token->text[0]) {
            i++; /* its twin */
        }
    }
    text[bytes] = '\0';
    *out_bytes = bytes;
    return text;
}

static enum gar_status parse_string(struct gar_parser *p, struct gar_expr **out)
{
    int64_t bytes = 0;
    char *text = unquote(&p->token, &bytes);
    if (text == NULL) {
        return gar_error_nomem(p->err, p->token.bytes);
    }
    struct gar_value value;
    enum gar_status status =
        gar_value_from_text(gar_type_of(GAR_STRING), text, bytes, &value, p->err);
    gar_free(text);
    GAR_TRY(status);
    status = gar_expr_new_literal(&value, out, p->err);
    gar_value_destroy(&value);
    if (status == GAR_OK) {
        status = gar_parser_advance(p);
        if (status != GAR_OK) {
            gar_expr_unref(*out);
        }
    }
    return status;
}

/* DATE '...', TIME '...', TIMESTAMP '...': the text cast now, so that a bad one fails at its place. */
static enum gar_status parse_typed_string(struct gar_parser *p, struct gar_type type,
                                          struct gar_expr **out)
{
    const int64_t at = p->token.at;
    struct gar_expr *text = NULL;
    struct gar_expr *cast = NULL;
    struct gar_value value;
    GAR_TRY(parse_string(p, &text));
    enum gar_status status = gar_expr_new_cast(text, type, false, &cast, p->err);
    gar_expr_unref(text);
    GAR_TRY(status);
    struct gar_error why = GAR_ERROR_INIT;
    status = gar_expr_fold(cast, &value, &why);
    gar_expr_unref(cast);
    if (status != GAR_OK) {
        return status == GAR_ERR_NOMEM ? gar_error_set(p->err, status, "%s", why.message)
                                       : gar_parser_fail(p, at, why.message);
    }
    status = gar_expr_new_literal(&value, out, p->err);
    gar_value_destroy(&value);
    return status;
}

/* TIMESTAMP '...': nanoseconds if more than six digits are given, an instant in UTC if an offset is. */
static struct gar_type timestamp_type(const struct gar_token *token)
{
    const char *end = token->text + token->bytes;
    const char *point = memchr(token->text, '.', (size_t)token->bytes);
    int64_t digits = 0;
    for (const char *c = point == NULL ? end : point + 1; c < end && *c >= '0' && *c <= '9'; c++) {
        digits++;
    }
    int64_t ignored = 0;
    bool has_offset = false;
    const enum gar_time_unit unit = digits > 6 ? GAR_NANO : GAR_MICRO;
    const bool is_read =
        token->bytes > 2 && gar_parse_timestamp(token->text + 1, token->bytes - 2,
                                                gar_unit_digits(unit), &ignored, &has_offset);
    const char *zone = is_read && has_offset ? gar_zone_intern("UTC", 3, NULL) : NULL;
    return gar_type_timestamp(unit, zone);
}

/* ---- names ---- */

enum gar_status gar_parser_take_name(struct gar_parser *p, char **out)
{
    int64_t bytes = 0;
    char *name = NULL;
    if (p->token.kind == GAR_TOKEN_QUOTED) {
        name = unquote(&p->token, &bytes);
    } else if (p->token.kind == GAR_TOKEN_NAME) {
        name = gar_strndup(p->token.text, p->token.bytes);
    } else {
        return gar_parser_unexpected(p, "a name");
    }
    if (name == NULL) {
        return gar_error_nomem(p->err, p->token.bytes);
    }
    const enum gar_status status = gar_parser_advance(p);
    if (status != GAR_OK) {
        gar_free(name);
        return status;
    }
    *out = name;
    return GAR_OK;
}

static bool equal_ignoring_case(const char *a, const char *b)
{
    for (; *a != '\0' && *b != '\0'; a++, b++) {
        const char x = *a >= 'A' && *a <= 'Z' ? (char)(*a + 'a' - 'A') : *a;
        const char y = *b >= 'A' && *b <= 'Z' ? (char)(*b + 'a' - 'A') : *b;
        if (x != y) {
            return false;
        }
    }
    return *a == *b;
}

/* Is this first word of the text, which is no column, a statement's? */
static bool begins_statement(const struct gar_parser *p, const char *name, int64_t at)
{
    static const char *const words[] = {"select", "with",  "insert", "update",  "delete",
                                        "create", "alter", "drop",   "explain", "values"};
    for (int64_t i = 0; i < at; i++) {
        if (strchr(" \t\r\n(", p->lexer.text[i]) == NULL) {
            return false;
        }
    }
    for (int64_t i = 0; i < GAR_COUNT_OF(words); i++) {
        if (equal_ignoring_case(name, words[i])) {
            return true;
        }
    }
    return false;
}

/* Exact name first, then the only one that differs in case alone. */
static enum gar_status resolve(struct gar_parser *p, const char *name, int64_t at, const char **out)
{
    *out = name;
    if (p->schema == NULL || gar_schema_find(p->schema, name) >= 0 || strcmp(name, "*") == 0) {
        return GAR_OK;
    }
    int64_t found = -1;
    for (int64_t i = 0; i < p->schema->count; i++) {
        if (equal_ignoring_case(p->schema->fields[i].name, name)) {
            if (found >= 0) {
                return gar_syntax_error(
                    p->lexer.text, p->lexer.bytes, at, p->err,
                    "column '%.100s' is ambiguous: '%.100s' or '%.100s'; quote the one you mean",
                    name, p->schema->fields[found].name, p->schema->fields[i].name);
            }
            found = i;
        }
    }
    if (found < 0 && begins_statement(p, name, at)) {
        return gar_parser_fail(p, at,
                               "statements are not taken here, only an expression, such as a > 1 "
                               "or upper(s)");
    }
    if (found < 0) {
        int64_t ignored = 0;
        return gar_parser_locate(p, at, gar_schema_get(p->schema, name, &ignored, p->err));
    }
    *out = p->schema->fields[found].name;
    return GAR_OK;
}

static enum gar_status make_column(struct gar_parser *p, const char *name, int64_t at,
                                   struct gar_expr **out)
{
    const char *resolved = NULL;
    GAR_TRY(resolve(p, name, at, &resolved));
    return gar_expr_new_column(resolved, out, p->err);
}

/* name[.name ...]: joined by dots, as column names with dots are written. Takes nothing; name is the first part. */
static enum gar_status parse_dotted(struct gar_parser *p, const char *name, int64_t at,
                                    struct gar_expr **out)
{
    struct gar_strbuf full = {0};
    gar_strbuf_append(&full, name);
    enum gar_status status = GAR_OK;
    while (status == GAR_OK && gar_token_is_symbol(&p->token, ".")) {
        char *part = NULL;
        status = gar_parser_advance(p);
        if (status == GAR_OK) {
            status = gar_parser_take_name(p, &part);
        }
        if (status == GAR_OK) {
            gar_strbuf_append_char(&full, '.');
            gar_strbuf_append(&full, part);
            gar_free(part);
        }
    }
    if (status == GAR_OK && full.failed) {
        status = gar_error_nomem(p->err, full.size);
    }
    if (status == GAR_OK) {
        status = make_column(p, gar_strbuf_text(&full), at, out);
    }
    gar_strbuf_destroy(&full);
    return status;
}

/* ---- types and casts ------------------------------------------------------------------------------------------------------ */

static bool is_type_word(const struct gar_token *token)
{
    static const char *const words[] = {"precision", "varying", "with", "without", "time", "zone"};
    for (int64_t i = 0; i < GAR_COUNT_OF(words); i++) {
        if (gar_token_is_word(token, words[i])) {
            return true;
        }
    }
    return false;
}

/* Step past "[...]" whose inside is no SQL ("timestamp[us, Europe/Berlin]"). */
static enum gar_status skip_brackets(struct gar_parser *p, int64_t *out_end)
{
    const char *from = p->lexer.text + p->token.at;
    const char *end = memchr(from, ']', (size_t)(p->lexer.bytes - p->token.at));
    if (end == NULL) {
        return gar_parser_fail(p, p->token.at, "this '[' is not closed");
    }
    *out_end = end - p->lexer.text + 1;
    p->lexer.at = *out_end;
    return gar_parser_advance(p);
}

static enum gar_status parse_type(struct gar_parser *p, struct gar_type *out)
{
    const int64_t start = p->token.at;
    int64_t end = start + p->token.bytes;
    if (p->token.kind != GAR_TOKEN_NAME) {
        return gar_parser_unexpected(p, "a type");
    }
    GAR_TRY(gar_parser_advance(p));
    while (is_type_word(&p->token)) {
        end = p->token.at + p->token.bytes;
        GAR_TRY(gar_parser_advance(p));
    }
    if (gar_token_is_symbol(&p->token, "(")) {
        while (p->token.kind != GAR_TOKEN_END && !gar_token_is_symbol(&p->token, ")")) {
            GAR_TRY(gar_parser_advance(p));
        }
        end = p->token.at + p->token.bytes;
        GAR_TRY(gar_parser_expect(p, ")"));
    } else if (gar_token_is_symbol(&p->token, "[")) {
        GAR_TRY(skip_brackets(p, &end));
    }
    struct gar_error why = GAR_ERROR_INIT;
    if (gar_type_parse(p->lexer.text + start, end - start, out, &why) != GAR_OK) {
        return gar_parser_fail(p, start, why.message);
    }
    return GAR_OK;
}

/* CAST(x AS type); the word and its parenthesis have been read. */
static enum gar_status parse_cast(struct gar_parser *p, bool is_try, struct gar_expr **out)
{
    struct gar_expr *arg = NULL;
    struct gar_type type = gar_type_of(GAR_NULL);
    GAR_TRY(gar_parser_expression(p, &arg));
    enum gar_status status = gar_parser_expect_word(p, "as");
    if (status == GAR_OK) {
        status = parse_type(p, &type);
    }
    if (status == GAR_OK) {
        status = gar_parser_expect(p, ")");
    }
    if (status == GAR_OK) {
        status = gar_expr_new_cast(arg, type, is_try, out, p->err);
    }
    gar_expr_unref(arg);
    return status;
}

/* ---- CASE ---- */

struct branches {
    struct gar_expr **items; /* condition, value, condition, value, ..., otherwise; owned */
    int64_t count;
    int64_t capacity;
};

static enum gar_status add_branch(struct gar_parser *p, struct branches *b, struct gar_expr *item)
{
    const enum gar_status status =
        gar_grow((void **)&b->items, &b->capacity, b->count + 1, sizeof(struct gar_expr *), p->err);
    if (status != GAR_OK) {
        gar_expr_unref(item);
        return status;
    }
    b->items[b->count++] = item;
    return GAR_OK;
}

/* WHEN c THEN v, with c compared to subject where there is one. */
static enum gar_status parse_when(struct gar_parser *p, const struct gar_expr *subject,
                                  struct branches *b)
{
    struct gar_expr *condition = NULL;
    struct gar_expr *value = NULL;
    GAR_TRY(gar_parser_advance(p));
    GAR_TRY(gar_parser_expression(p, &condition));
    if (subject != NULL) {
        struct gar_expr *pair[2] = {gar_expr_ref(subject), condition};
        condition = NULL;
        GAR_TRY(gar_parser_call(p, "equal", pair, 2, &condition));
    }
    GAR_TRY(add_branch(p, b, condition));
    GAR_TRY(gar_parser_expect_word(p, "then"));
    GAR_TRY(gar_parser_expression(p, &value));
    return add_branch(p, b, value);
}

static enum gar_status parse_branches(struct gar_parser *p, const struct gar_expr *subject,
                                      struct branches *b)
{
    if (!gar_token_is_word(&p->token, "when")) {
        return gar_parser_unexpected(p, "WHEN");
    }
    while (gar_token_is_word(&p->token, "when")) {
        GAR_TRY(parse_when(p, subject, b));
    }
    struct gar_expr *otherwise = NULL;
    if (gar_token_is_word(&p->token, "else")) {
        GAR_TRY(gar_parser_advance(p));
        GAR_TRY(gar_parser_expression(p, &otherwise));
    } else {
        const struct gar_value null = {.is_valid = false};
        GAR_TRY(gar_expr_new_literal(&null, &otherwise, p->err));
    }
    GAR_TRY(add_branch(p, b, otherwise));
    return gar_parser_expect_word(p, "end");
}

/* CASE [subject] WHEN ... END; the word CASE has been read. */
static enum gar_status parse_case(struct gar_parser *p, struct gar_expr **out)
{
    struct gar_expr *subject = NULL;
    struct branches b = {0};
    enum gar_status status = GAR_OK;
    if (!gar_token_is_word(&p->token, "when")) {
        status = gar_parser_expression(p, &subject);
    }
    if (status == GAR_OK) {
        status = parse_branches(p, subject, &b);
    }
    if (status == GAR_OK) {
        status = gar_expr_new_call_by_name("when", b.items, b.count, out, p->err);
    }
    gar_expr_unref(subject);
    gar_parser_arguments_free(b.items, b.count);
    return status;
}

/* ---- intervals ---- */

struct span {
    const char *word; /* without a plural s */
    int64_t months;
    int64_t days;
    int64_t ns;
};

static const struct span spans[] = {
    {"year", 12, 0, 0},
    {"quarter", 3, 0, 0},
    {"month", 1, 0, 0},
    {"week", 0, 7, 0},
    {"day", 0, 1, 0},
    {"hour", 0, 0, INT64_C(3600000000000)},
    {"minute", 0, 0, INT64_C(60000000000)},
    {"second", 0, 0, 1000000000},
    {"millisecond", 0, 0, 1000000},
    {"microsecond", 0, 0, 1000},
    {"nanosecond", 0, 0, 1},
};

static const struct span *find_span(const char *text, int64_t bytes)
{
    char word[16];
    if (bytes < 2 || bytes >= (int64_t)sizeof word) {
        return NULL;
    }
    memcpy(word, text, (size_t)bytes);
    word[bytes] = '\0';
    for (int64_t i = 0; i < GAR_COUNT_OF(spans); i++) {
        if (equal_ignoring_case(word, spans[i].word)) {
            return &spans[i];
        }
    }
    word[bytes - 1] =
        (char)(word[bytes - 1] == 's' || word[bytes - 1] == 'S' ? '\0' : word[bytes - 1]);
    for (int64_t i = 0; i < GAR_COUNT_OF(spans); i++) {
        if (equal_ignoring_case(word, spans[i].word)) {
            return &spans[i];
        }
    }
    return NULL;
}

/* Add count * span to the three parts of an interval; false on overflow. */
static bool add_span(int64_t parts[3], const struct span *span, int64_t count)
{
    const int64_t factors[3] = {span->months, span->days, span->ns};
    for (int i = 0; i < 3; i++) {
        int64_t product = 0;
        if (__builtin_mul_overflow(factors[i], count, &product) ||
            __builtin_add_overflow(parts[i], product, &parts[i])) {
            return false;
        }
    }
    return true;
}

/* "3", "3 days", "1 year 2 months": numbers each followed by a unit; the last may take `unit`. */
static bool add_spans(int64_t parts[3], const char *text, int64_t bytes, const struct span *unit)
{
    int64_t at = 0;
    bool has_any = false;
    while (at < bytes) {
        while (at < bytes && text[at] == ' ') {
            at++;
        }
        int64_t end = at;
        while (end < bytes &&
               ((text[end] >= '0' && text[end] <= '9') || text[end] == '-' || text[end] == '+')) {
            end++;
        }
        int64_t count = 0;
        if (at == bytes) {
            break;
        }
        if (gar_parse_i64(text + at, end - at, &count) != GAR_OK) {
            return false;
        }
        at = end;
        while (at < bytes && text[at] == ' ') {
            at++;
        }
        end = at;
        while (end < bytes &&
               ((text[end] >= 'a' && text[end] <= 'z') || (text[end] >= 'A' && text[end] <= 'Z'))) {
            end++;
        }
        const struct span *span = end > at ? find_span(text + at, end - at) : unit;
        if (span == NULL || !add_span(parts, span, count)) {
            return false;
        }
        has_any = true;
        at = end;
    }
    return has_any;
}

/* The digits a standard interval may ask for, as in INTERVAL '90' DAY (3); they say nothing here. */
static enum gar_status skip_digits(struct gar_parser *p)
{
    if (!gar_token_is_symbol(&p->token, "(")) {
        return GAR_OK;
    }
    GAR_TRY(gar_parser_advance(p));
    if (p->token.kind != GAR_TOKEN_NUMBER) {
        return gar_parser_unexpected(p, "a number of digits");
    }
    GAR_TRY(gar_parser_advance(p));
    return gar_parser_expect(p, ")");
}

/* INTERVAL '90' day, INTERVAL '1 year 2 months', INTERVAL 3 month; the word has been read. */
static enum gar_status parse_interval(struct gar_parser *p, struct gar_expr **out)
{
    const struct gar_token amount = p->token;
    GAR_TRY(gar_parser_advance(p));
    const struct span *unit =
        p->token.kind == GAR_TOKEN_NAME ? find_span(p->token.text, p->token.bytes) : NULL;
    if (unit != NULL) {
        GAR_TRY(gar_parser_advance(p));
        GAR_TRY(skip_digits(p));
    }
    const int64_t cut = amount.kind == GAR_TOKEN_STRING ? 1 : 0;
    int64_t parts[3] = {0, 0, 0};
    if (!add_spans(parts, amount.text + cut, amount.bytes - 2 * cut, unit)) {
        return gar_parser_fail(
            p, amount.at,
            "an interval is written INTERVAL '3' day or INTERVAL '1 year 2 months' (year, quarter, "
            "month, week, day, hour, minute, second, millisecond, microsecond, nanosecond)");
    }
    struct gar_expr *args[3] = {NULL, NULL, NULL};
    enum gar_status status = GAR_OK;
    for (int i = 0; i < 3 && status == GAR_OK; i++) {
        status = gar_parser_literal_i64(p, parts[i], &args[i]);
    }
    if (status != GAR_OK) {
        for (int i = 0; i < 3; i++) {
            gar_expr_unref(args[i]);
        }
        return status;
    }
    return gar_parser_call(p, "interval", args, 3, out);
}

/* ---- calls ---- */

/* What EXTRACT knows: function(x) * factor + then(x), plus `add`, modulo `modulo`. */
static const struct part {
    const char *word;
    const char *function;
    const char *then; /* or NULL */
    int64_t factor;
    int64_t add;
    int64_t modulo; /* 0: none */
} parts[] = {
    {"year", "year", NULL, 1, 0, 0},
    {"quarter", "quarter", NULL, 1, 0, 0},
    {"month", "month", NULL, 1, 0, 0},
    {"week", "week_of_year", NULL, 1, 0, 0},
    {"day", "day", NULL, 1, 0, 0},
    {"doy", "day_of_year", NULL, 1, 0, 0},
    {"dow", "day_of_week", NULL, 1, 1, 7},    /* Sunday is 0 */
    {"isodow", "day_of_week", NULL, 1, 1, 0}, /* Monday is 1 */
    {"hour", "hour", NULL, 1, 0, 0},
    {"minute", "minute", NULL, 1, 0, 0},
    {"second", "second", NULL, 1, 0, 0},
    {"millisecond", "second", "millisecond", 1000, 0, 0}, /* whole seconds are counted in */
    {"microsecond", "second", "microsecond", 1000000, 0, 0},
};

/* function(*expr, number) instead of *expr. */
static enum gar_status apply_number(struct gar_parser *p, const char *function, int64_t number,
                                    struct gar_expr **expr)
{
    struct gar_expr *pair[2] = {*expr, NULL};
    *expr = NULL;
    const enum gar_status status = gar_parser_literal_i64(p, number, &pair[1]);
    if (status != GAR_OK) {
        gar_expr_unref(pair[0]);
        return status;
    }
    return gar_parser_call(p, function, pair, 2, expr);
}

/* The part of arg (borrowed). On failure *out may hold what was built; the caller releases it. */
static enum gar_status build_part(struct gar_parser *p, const struct part *part,
                                  struct gar_expr *arg, struct gar_expr **out)
{
    struct gar_expr *first = gar_expr_ref(arg);
    GAR_TRY(gar_parser_call(p, part->function, &first, 1, out));
    if (part->factor != 1) {
        GAR_TRY(apply_number(p, "multiply", part->factor, out));
    }
    if (part->then != NULL) {
        struct gar_expr *second = gar_expr_ref(arg);
        struct gar_expr *pair[2] = {*out, NULL};
        GAR_TRY(gar_parser_call(p, part->then, &second, 1, &pair[1]));
        *out = NULL;
        GAR_TRY(gar_parser_call(p, "add", pair, 2, out));
    }
    if (part->add != 0) {
        GAR_TRY(apply_number(p, "add", part->add, out));
    }
    return part->modulo != 0 ? apply_number(p, "modulo", part->modulo, out) : GAR_OK;
}

/* EXTRACT(part FROM x); the parenthesis has been read. */
static enum gar_status parse_extract(struct gar_parser *p, struct gar_expr **out)
{
    const struct part *part = NULL;
    for (int64_t i = 0; i < GAR_COUNT_OF(parts) && part == NULL; i++) {
        part = gar_token_is_word(&p->token, parts[i].word) ? &parts[i] : NULL;
    }
    if (part == NULL) {
        return gar_parser_unexpected(p, "year, quarter, month, week, day, doy, dow, isodow, hour, "
                                        "minute, second, millisecond or microsecond");
    }
    struct gar_expr *arg = NULL;
    struct gar_expr *built = NULL;
    GAR_TRY(gar_parser_advance(p));
    GAR_TRY(gar_parser_expect_word(p, "from"));
    GAR_TRY(gar_parser_expression(p, &arg));
    enum gar_status status = gar_parser_expect(p, ")");
    if (status == GAR_OK) {
        status = build_part(p, part, arg, &built);
    }
    gar_expr_unref(arg);
    if (status != GAR_OK) {
        gar_expr_unref(built);
        return status;
    }
    *out = built;
    return GAR_OK;
}

/* SQL counts characters from 1, the tree from 0: when(start > 0, start - 1, start). */
static enum gar_status shift_start(struct gar_parser *p, struct gar_expr *start,
                                   struct gar_expr **out)
{
    struct gar_expr *args[3] = {gar_expr_ref(start), gar_expr_ref(start), gar_expr_ref(start)};
    enum gar_status status = apply_number(p, "greater", 0, &args[0]);
    if (status == GAR_OK) {
        status = apply_number(p, "subtract", 1, &args[1]);
    }
    if (status == GAR_OK) {
        return gar_parser_call(p, "when", args, 3, out);
    }
    for (int i = 0; i < 3; i++) {
        gar_expr_unref(args[i]);
    }
    return status;
}

/* columns_max(length - 1, 0): what is left of a length that begins one place before the text. */
static enum gar_status shorten(struct gar_parser *p, struct gar_expr *length, struct gar_expr **out)
{
    struct gar_expr *less = gar_expr_ref(length);
    GAR_TRY(apply_number(p, "subtract", 1, &less));
    GAR_TRY(apply_number(p, "columns_max", 0, &less));
    *out = less;
    return GAR_OK;
}

/* args[1] and, if there is one, args[2] from SQL's positions to the tree's. Position 0 is one before the first
 * character: the length, counted from there, loses one. */
static enum gar_status shift_positions(struct gar_parser *p, struct gar_expr **args, int64_t count)
{
    struct gar_expr *start = args[1];
    const bool is_known = start->kind == GAR_EXPR_LITERAL && start->value.is_valid &&
                          start->value.type.id == GAR_INT64;
    const int64_t known = is_known ? start->value.i64 : 0;
    if (count > 2 && known == 0) {
        struct gar_expr *when[3] = {gar_expr_ref(start), NULL, args[2]};
        args[2] = NULL;
        enum gar_status status = shorten(p, when[2], &when[1]);
        if (status == GAR_OK) {
            status = apply_number(p, "equal", 0, &when[0]);
        }
        if (status != GAR_OK) {
            gar_expr_unref(when[0]);
            gar_expr_unref(when[1]);
            gar_expr_unref(when[2]);
            return status;
        }
        GAR_TRY(gar_parser_call(p, "when", when, 3, &args[2]));
    }
    struct gar_expr *shifted = NULL;
    GAR_TRY(is_known ? gar_parser_literal_i64(p, known > 0 ? known - 1 : known, &shifted)
                     : shift_start(p, start, &shifted));
    gar_expr_unref(start);
    args[1] = shifted;
    return GAR_OK;
}

/* SUBSTR(x, start [, length]) and SUBSTRING(x FROM start [FOR length]); the parenthesis has been read. */
static enum gar_status parse_substr(struct gar_parser *p, struct gar_expr **out)
{
    struct gar_expr *args[3] = {NULL, NULL, NULL};
    int64_t count = 1;
    enum gar_status status = gar_parser_expression(p, &args[0]);
    while (status == GAR_OK && count < 3 &&
           (gar_token_is_symbol(&p->token, ",") ||
            gar_token_is_word(&p->token, count == 1 ? "from" : "for"))) {
        status = gar_parser_advance(p);
        if (status == GAR_OK) {
            status = gar_parser_expression(p, &args[count]);
        }
        count++;
    }
    if (status == GAR_OK) {
        status = gar_parser_expect(p, ")");
    }
    if (status == GAR_OK && count > 1) {
        status = shift_positions(p, args, count);
    }
    if (status == GAR_OK) {
        status = gar_expr_new_call_by_name("substr", args, count, out, p->err);
    }
    for (int i = 0; i < 3; i++) {
        gar_expr_unref(args[i]);
    }
    return status;
}

/* COUNT(*), COUNT(DISTINCT x) or COUNT(x); the parenthesis has been read. */
static enum gar_status parse_count(struct gar_parser *p, struct gar_expr **out)
{
    struct gar_expr *arg = NULL;
    const char *function = "count";
    if (gar_token_is_symbol(&p->token, "*")) {
        GAR_TRY(gar_parser_advance(p));
        GAR_TRY(gar_parser_literal_i64(p, 1, &arg));
    } else {
        if (gar_token_is_word(&p->token, "distinct")) {
            function = "count_distinct";
            GAR_TRY(gar_parser_advance(p));
        }
        GAR_TRY(gar_parser_expression(p, &arg));
    }
    const enum gar_status status = gar_parser_expect(p, ")");
    if (status != GAR_OK) {
        gar_expr_unref(arg);
        return status;
    }
    return gar_parser_call(p, function, &arg, 1, out);
}

static enum gar_status parse_plain_call(struct gar_parser *p, const struct gar_token *name,
                                        struct gar_expr **out)
{
    const struct gar_function *function = gar_function_find(name->text, name->bytes, true);
    struct gar_expr **args = NULL;
    int64_t count = 0;
    if (function == NULL) {
        char text[80];
        char *copy = gar_strndup(name->text, name->bytes);
        if (copy == NULL) {
            return gar_error_nomem(p->err, name->bytes);
        }
        struct gar_error why = GAR_ERROR_INIT;
        struct gar_expr *unused = NULL;
        const enum gar_status status = gar_expr_new_call_by_name(copy, NULL, 0, &unused, &why);
        gar_expr_unref(unused);
        gar_free(copy);
        return gar_parser_fail(p, name->at,
                               status != GAR_OK
                                   ? why.message
                                   : gar_error_quote(name->text, name->bytes, text, sizeof text));
    }
    GAR_TRY(gar_parser_arguments(p, &args, &count));
    struct gar_error why = GAR_ERROR_INIT;
    const enum gar_status status = gar_expr_new_call(function, args, count, out, &why);
    gar_parser_arguments_free(args, count);
    if (status == GAR_ERR_VALUE) {
        return gar_parser_fail(p, name->at, why.message);
    }
    return status == GAR_OK ? GAR_OK : gar_error_set(p->err, status, "%s", why.message);
}

/* name(...); name and the parenthesis have been read. */
static enum gar_status parse_call(struct gar_parser *p, const struct gar_token *name,
                                  struct gar_expr **out)
{
    if (gar_token_is_word(name, "cast") || gar_token_is_word(name, "try_cast")) {
        return parse_cast(p, gar_token_is_word(name, "try_cast"), out);
    }
    if (gar_token_is_word(name, "extract")) {
        return parse_extract(p, out);
    }
    if (gar_token_is_word(name, "substr") || gar_token_is_word(name, "substring")) {
        return parse_substr(p, out);
    }
    if (gar_token_is_word(name, "count")) {
        return parse_count(p, out);
    }
    return parse_plain_call(p, name, out);
}

/* ---- primaries ---- */

static enum gar_status literal_of(struct gar_parser *p, struct gar_value value,
                                  struct gar_expr **out)
{
    return gar_expr_new_literal(&value, out, p->err);
}

static bool is_reserved(const struct gar_token *token)
{
    static const char *const words[] = {"and",   "or",   "not",  "is",   "in",  "between", "like",
                                        "ilike", "when", "then", "else", "end", "as",      "from"};
    for (int64_t i = 0; i < GAR_COUNT_OF(words); i++) {
        if (gar_token_is_word(token, words[i])) {
            return true;
        }
    }
    return false;
}

/* A name and what it begins: keyword literal, typed literal, call or column. */
static enum gar_status parse_word(struct gar_parser *p, struct gar_expr **out)
{
    const struct gar_token name = p->token;
    if (is_reserved(&name)) {
        return gar_parser_unexpected(p, "a value");
    }
    GAR_TRY(gar_parser_advance(p));
    if (gar_token_is_symbol(&p->token, "(")) {
        struct gar_expr *call = NULL;
        GAR_TRY(gar_parser_advance(p));
        GAR_TRY(parse_call(p, &name, &call));
        if (gar_token_is_word(&p->token, "over")) {
            const enum gar_status status = gar_parser_advance(p);
            if (status == GAR_OK) {
                return gar_parser_over(p, call, out);
            }
            gar_expr_unref(call);
            return status;
        }
        *out = call;
        return GAR_OK;
    }
    if (gar_token_is_word(&name, "true") || gar_token_is_word(&name, "false")) {
        return literal_of(p,
                          (struct gar_value){.type = gar_type_of(GAR_BOOL),
                                             .is_valid = true,
                                             .boolean = gar_token_is_word(&name, "true")},
                          out);
    }
    if (gar_token_is_word(&name, "null")) {
        return literal_of(p, (struct gar_value){.is_valid = false}, out);
    }
    if (gar_token_is_word(&name, "case")) {
        return parse_case(p, out);
    }
    const bool is_string_next = p->token.kind == GAR_TOKEN_STRING;
    if (gar_token_is_word(&name, "interval") &&
        (is_string_next || p->token.kind == GAR_TOKEN_NUMBER)) {
        return parse_interval(p, out);
    }
    if (is_string_next && gar_token_is_word(&name, "date")) {
        return parse_typed_string(p, gar_type_of(GAR_DATE), out);
    }
    if (is_string_next && gar_token_is_word(&name, "time")) {
        return parse_typed_string(p, gar_type_with_unit(GAR_TIME, GAR_MICRO), out);
    }
    if (is_string_next && gar_token_is_word(&name, "timestamp")) {
        return parse_typed_string(p, timestamp_type(&p->token), out);
    }
    char *text = gar_strndup(name.text, name.bytes);
    if (text == NULL) {
        return gar_error_nomem(p->err, name.bytes);
    }
    const enum gar_status status = parse_dotted(p, text, name.at, out);
    gar_free(text);
    return status;
}

static enum gar_status parse_quoted(struct gar_parser *p, struct gar_expr **out)
{
    const int64_t at = p->token.at;
    char *name = NULL;
    GAR_TRY(gar_parser_take_name(p, &name));
    const enum gar_status status = parse_dotted(p, name, at, out);
    gar_free(name);
    return status;
}

static enum gar_status parse_parentheses(struct gar_parser *p, struct gar_expr **out)
{
    struct gar_expr *inner = NULL;
    GAR_TRY(gar_parser_advance(p));
    GAR_TRY(gar_parser_expression(p, &inner));
    const enum gar_status status = gar_parser_expect(p, ")");
    if (status != GAR_OK) {
        gar_expr_unref(inner);
        return status;
    }
    *out = inner;
    return GAR_OK;
}

static enum gar_status parse_atom(struct gar_parser *p, struct gar_expr **out)
{
    switch (p->token.kind) {
    case GAR_TOKEN_NUMBER: return gar_parser_number(p, false, out);
    case GAR_TOKEN_STRING: return parse_string(p, out);
    case GAR_TOKEN_QUOTED: return parse_quoted(p, out);
    case GAR_TOKEN_NAME: return parse_word(p, out);
    case GAR_TOKEN_SYMBOL:
        if (gar_token_is_symbol(&p->token, "(")) {
            return parse_parentheses(p, out);
        }
        if (gar_token_is_symbol(&p->token, "*")) {
            GAR_TRY(gar_parser_advance(p));
            return gar_expr_new_column("*", out, p->err);
        }
        break;
    case GAR_TOKEN_END: break;
    }
    return gar_parser_unexpected(p, "a value");
}

enum gar_status gar_parser_primary(struct gar_parser *p, struct gar_expr **out)
{
    struct gar_expr *expr = NULL;
    GAR_TRY(parse_atom(p, &expr));
    while (gar_token_is_symbol(&p->token, "::")) {
        struct gar_type type = gar_type_of(GAR_NULL);
        struct gar_expr *cast = NULL;
        enum gar_status status = gar_parser_advance(p);
        if (status == GAR_OK) {
            status = parse_type(p, &type);
        }
        if (status == GAR_OK) {
            status = gar_expr_new_cast(expr, type, false, &cast, p->err);
        }
        gar_expr_unref(expr);
        GAR_TRY(status);
        expr = cast;
    }
    *out = expr;
    return GAR_OK;
}
