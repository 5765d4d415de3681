/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the bytes; no allocation. */
#include "sql/lexer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

static bool is_name_start(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
}

static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_part(unsigned char c)
{
    return is_name_start(c) || is_digit(c) || c == '$';
}

static unsigned char byte_at(const struct gar_lexer *lexer, int64_t at)
{
    return at < lexer->bytes ? (unsigned char)lexer->text[at] : 0;
}

/* End of the block comment that begins at `at`, comments inside it counted; the end of the text if it has none. */
static int64_t comment_end(const struct gar_lexer *lexer, int64_t at)
{
    int64_t level = 0;
    while (at < lexer->bytes) {
        const unsigned char c = byte_at(lexer, at);
        const unsigned char d = byte_at(lexer, at + 1);
        const bool opens = c == '/' && d == '*';
        const bool closes = c == '*' && d == '/';
        level += opens ? 1 : closes ? -1 : 0;
        at += opens || closes ? 2 : 1;
        if (level == 0) {
            break;
        }
    }
    return at;
}

/* Blanks and comments: "--" to the end of the line, and block comments. */
static void skip_blanks(struct gar_lexer *lexer)
{
    while (lexer->at < lexer->bytes) {
        const unsigned char c = byte_at(lexer, lexer->at);
        const unsigned char d = byte_at(lexer, lexer->at + 1);
        if (c == ' ' || (c >= '\t' && c <= '\r')) {
            lexer->at++;
        } else if (c == '-' && d == '-') {
            while (lexer->at < lexer->bytes && lexer->text[lexer->at] != '\n') {
                lexer->at++;
            }
        } else if (c == '/' && d == '*') {
            lexer->at = comment_end(lexer, lexer->at);
        } else {
            return;
        }
    }
}

static int64_t scan_number(const struct gar_lexer *lexer, int64_t at)
{
    while (is_digit(byte_at(lexer, at)) ||
           (byte_at(lexer, at) == '_' && is_digit(byte_at(lexer, at + 1)))) {
        at++;
    }
    if (byte_at(lexer, at) == '.') {
        at++;
        while (is_digit(byte_at(lexer, at))) {
            at++;
        }
    }
    const unsigned char e = byte_at(lexer, at);
    if (e == 'e' || e == 'E') {
        const unsigned char sign = byte_at(lexer, at + 1);
        const int64_t digits = at + (sign == '+' || sign == '-' ? 2 : 1);
        if (is_digit(byte_at(lexer, digits))) {
            at = digits;
            while (is_digit(byte_at(lexer, at))) {
                at++;
            }
        }
    }
    return at;
}

/* End of a quoted token whose quote is doubled to stand for itself, or -1. */
static int64_t scan_quoted(const struct gar_lexer *lexer, int64_t at)
{
    const char quote = lexer->text[at++];
    while (at < lexer->bytes) {
        if (lexer->text[at] == quote) {
            if (byte_at(lexer, at + 1) != (unsigned char)quote) {
                return at + 1;
            }
            at++;
        }
        at++;
    }
    return -1;
}

static int64_t symbol_bytes(const struct gar_lexer *lexer, int64_t at)
{
    static const char *const doubles[] = {
        "<=", ">=", "<>", "!=", "==", "::", "||", "//", "**", "<<", ">>", "=>"};
    for (int64_t i = 0; i < GAR_COUNT_OF(doubles); i++) {
        if (at + 2 <= lexer->bytes && memcmp(lexer->text + at, doubles[i], 2) == 0) {
            return 2;
        }
    }
    const unsigned char c = byte_at(lexer, at);
    return c != 0 && strchr("+-*/%=<>(),.&|^~[]", c) != NULL ? 1 : 0;
}

static enum gar_status fail_at(const struct gar_lexer *lexer, int64_t at, const char *what,
                               struct gar_error *err)
{
    return gar_syntax_error(lexer->text, lexer->bytes, at, err, "%s", what);
}

static enum gar_status scan(struct gar_lexer *lexer, struct gar_token *out, struct gar_error *err)
{
    const int64_t at = lexer->at;
    const unsigned char c = byte_at(lexer, at);
    int64_t end = at + 1;
    if (is_name_start(c)) {
        out->kind = GAR_TOKEN_NAME;
        while (is_name_part(byte_at(lexer, end))) {
            end++;
        }
    } else if (is_digit(c) || (c == '.' && is_digit(byte_at(lexer, at + 1)))) {
        out->kind = GAR_TOKEN_NUMBER;
        end = scan_number(lexer, at);
        if (is_name_start(byte_at(lexer, end))) {
            return fail_at(lexer, end, "a number ends in letters", err);
        }
    } else if (c == '\'' || c == '"' || c == '`') {
        out->kind = c == '\'' ? GAR_TOKEN_STRING : GAR_TOKEN_QUOTED;
        end = scan_quoted(lexer, at);
        if (end < 0) {
            return fail_at(lexer, at,
                           c == '\'' ? "this text has no closing quote"
                                     : "this name has no closing quote",
                           err);
        }
    } else {
        out->kind = GAR_TOKEN_SYMBOL;
        end = at + symbol_bytes(lexer, at);
        if (end == at) {
            return fail_at(lexer, at, "this character has no meaning here", err);
        }
    }
    out->text = lexer->text + at;
    out->bytes = end - at;
    out->at = at;
    lexer->at = end;
    return GAR_OK;
}

enum gar_status gar_lexer_next(struct gar_lexer *lexer, struct gar_token *out,
                               struct gar_error *err)
{
    if (lexer->at == 0) {
        const int64_t bad = gar_utf8_first_bad(lexer->text, lexer->bytes);
        if (bad >= 0) {
            (void)gar_error_set(err, GAR_ERR_SYNTAX, "the SQL text is not valid UTF-8 at byte %lld",
                                (long long)bad);
            if (err != NULL) {
                err->position = bad; /* no caret: the text cannot be shown */
            }
            return GAR_ERR_SYNTAX;
        }
    }
    skip_blanks(lexer);
    if (lexer->at >= lexer->bytes) {
        *out = (struct gar_token){.kind = GAR_TOKEN_END, .text = "", .at = lexer->bytes};
        return GAR_OK;
    }
    return scan(lexer, out, err);
}

/* Bytes of the source line that a message shows, at most. */
#define SHOWN_BYTES 120

/* A place in the text, for messages. */
struct place {
    int64_t line;   /* from 1 */
    int64_t column; /* from 1, in characters */
    int64_t from;   /* the part of the line to show */
    int64_t to;
    int64_t caret; /* columns before it */
};

static bool is_inside_character(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

static struct place place_of(const char *text, int64_t bytes, int64_t at)
{
    struct place place = {.line = 1};
    int64_t start = 0;
    for (int64_t i = 0; i < at && i < bytes; i++) {
        if (text[i] == '\n') {
            place.line++;
            start = i + 1;
        }
    }
    int64_t end = at;
    while (end < bytes && text[end] != '\n') {
        end++;
    }
    place.column =
        1 + (gar_utf8_valid(text + start, at - start) ? gar_utf8_length(text + start, at - start)
                                                      : at - start);
    place.from = start;
    if (at - place.from > SHOWN_BYTES / 2) { /* a long line: show the part around the place */
        place.from = at - SHOWN_BYTES / 2;
        while (place.from < at && is_inside_character(text[place.from])) {
            place.from++;
        }
    }
    place.to = gar_min_i64(end, place.from + SHOWN_BYTES);
    while (place.to > place.from && place.to < bytes && is_inside_character(text[place.to])) {
        place.to--;
    }
    place.caret = gar_utf8_valid(text + place.from, at - place.from)
                      ? gar_utf8_width(text + place.from, at - place.from)
                      : 0;
    return place;
}

enum gar_status gar_syntax_error(const char *text, int64_t bytes, int64_t at, struct gar_error *err,
                                 const char *format, ...)
{
    char reason[400];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    const struct place place = place_of(text, bytes, at);
    if (err != NULL) { /* written here: this message has line ends, for the caret */
        *err = (struct gar_error){.status = GAR_ERR_SYNTAX, .position = at};
        (void)snprintf(err->message, sizeof err->message,
                       "SQL syntax error at line %lld, column %lld: %s\n  %.*s\n  %*s^",
                       (long long)place.line, (long long)place.column, reason,
                       (int)(place.to - place.from), text + place.from, (int)place.caret, "");
    }
    return GAR_ERR_SYNTAX;
}

void gar_syntax_locate(const char *text, int64_t bytes, int64_t at, struct gar_error *err)
{
    const struct place place = place_of(text, bytes, at);
    char reason[400];
    (void)snprintf(reason, sizeof reason, "%.399s", err->message);
    err->position = at;
    (void)snprintf(err->message, sizeof err->message,
                   "%s; at line %lld, column %lld of the SQL text\n  %.*s\n  %*s^", reason,
                   (long long)place.line, (long long)place.column, (int)(place.to - place.from),
                   text + place.from, (int)place.caret, "");
}
