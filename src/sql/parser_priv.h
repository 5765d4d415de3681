/* SPDX-License-Identifier: Apache-2.0 */
/* The parser's state and what its files share: operators (expression.c), primaries (primary.c), windows (over.c). */
#ifndef GAR_SQL_PARSER_PRIV_H
#define GAR_SQL_PARSER_PRIV_H

#include "arrow/builder.h"
#include "expr/expr.h"
#include "sql/lexer.h"

#define GAR_SQL_DEPTH_MAX 256

struct gar_parser {
    struct gar_lexer lexer;
    struct gar_token token;          /* the one looked at */
    const struct gar_schema *schema; /* borrowed; NULL: names are not checked */
    int32_t depth;
    struct gar_error *err; /* may be NULL */
};

/* Step to the next token. */
GAR_MUST_USE enum gar_status gar_parser_advance(struct gar_parser *p);
bool gar_token_is_word(const struct gar_token *token, const char *word); /* word in lower case */
bool gar_token_is_symbol(const struct gar_token *token, const char *symbol);
/* GAR_ERR_SYNTAX at a place. */
enum gar_status gar_parser_fail(struct gar_parser *p, int64_t at, const char *what);
/* Gives the error of a part that knows no places (registry, schema, casts) this one, unless it has a place already. Returns
 * status. */
enum gar_status gar_parser_locate(struct gar_parser *p, int64_t at, enum gar_status status);
/* "expected WANTED, got TOKEN" at the current token. */
enum gar_status gar_parser_unexpected(struct gar_parser *p, const char *wanted);
GAR_MUST_USE enum gar_status gar_parser_expect(struct gar_parser *p, const char *symbol);
GAR_MUST_USE enum gar_status gar_parser_expect_word(struct gar_parser *p, const char *word);

/* A call that takes its arguments over, also on failure. */
GAR_MUST_USE enum gar_status gar_parser_call(struct gar_parser *p, const char *function,
                                             struct gar_expr **args, int64_t count,
                                             struct gar_expr **out);
GAR_MUST_USE enum gar_status gar_parser_literal_i64(struct gar_parser *p, int64_t value,
                                                    struct gar_expr **out);
/* A whole expression; one that stops before AND, OR and comparisons. */
GAR_MUST_USE enum gar_status gar_parser_expression(struct gar_parser *p, struct gar_expr **out);
GAR_MUST_USE enum gar_status gar_parser_operand(struct gar_parser *p, struct gar_expr **out);
/* Comma-separated expressions past the closing parenthesis. Owns: caller frees with gar_parser_arguments_free. */
GAR_MUST_USE enum gar_status gar_parser_arguments(struct gar_parser *p, struct gar_expr ***out,
                                                  int64_t *out_count);
void gar_parser_arguments_free(struct gar_expr **items, int64_t count);

/* over.c: `call` (taken over, also on failure) over the window that begins at the parenthesis; OVER has been read. */
GAR_MUST_USE enum gar_status gar_parser_over(struct gar_parser *p, struct gar_expr *call,
                                             struct gar_expr **out);

/* primary.c: literals, names, calls, CASE, CAST, parentheses, with :: behind. */
GAR_MUST_USE enum gar_status gar_parser_primary(struct gar_parser *p, struct gar_expr **out);
GAR_MUST_USE enum gar_status gar_parser_number(struct gar_parser *p, bool is_negative,
                                               struct gar_expr **out);
/* The identifier at the current token, quotes taken off (gar_free). */
GAR_MUST_USE enum gar_status gar_parser_take_name(struct gar_parser *p, char **out);

#endif
