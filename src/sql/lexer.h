/* SPDX-License-Identifier: Apache-2.0 */
/* SQL tokens. */
#ifndef GAR_SQL_LEXER_H
#define GAR_SQL_LEXER_H

#include "base/attrs.h"
#include "base/error.h"

enum gar_token_kind {
    GAR_TOKEN_END,
    GAR_TOKEN_NAME,   /* unquoted identifier or keyword */
    GAR_TOKEN_QUOTED, /* "identifier" or `identifier`; text includes the quotes */
    GAR_TOKEN_NUMBER,
    GAR_TOKEN_STRING, /* 'text'; text includes the quotes */
    GAR_TOKEN_SYMBOL, /* operator or punctuation */
};

struct gar_token {
    enum gar_token_kind kind;
    const char *text; /* in the source */
    int64_t bytes;
    int64_t at; /* byte offset in the source */
};

struct gar_lexer {
    const char *text; /* borrowed */
    int64_t bytes;
    int64_t at;
};

/* The next token; GAR_TOKEN_END at the end (again and again). Errors: GAR_ERR_SYNTAX (unterminated
 * quote, stray byte, invalid UTF-8). */
GAR_MUST_USE enum gar_status gar_lexer_next(struct gar_lexer *lexer, struct gar_token *out,
                                            struct gar_error *err);

/* GAR_ERR_SYNTAX with err->position = at and a message of the reason, line, column, and the line of the text with a caret. */
enum gar_status gar_syntax_error(const char *text, int64_t bytes, int64_t at, struct gar_error *err,
                                 const char *format, ...) GAR_PRINTF(5, 6);
/* Adds position, line, column and caret to a message that another part has written. */
void gar_syntax_locate(const char *text, int64_t bytes, int64_t at, struct gar_error *err);

#endif
