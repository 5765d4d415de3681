/* SPDX-License-Identifier: Apache-2.0 */
/* SQL expressions as text -> expression trees. */
#ifndef GAR_SQL_EXPRESSION_H
#define GAR_SQL_EXPRESSION_H

#include "expr/expr.h"

/* One expression ("a > 1 and s like 'x%'"), an optional "as name" included. schema (may be NULL) resolves
 * names: exact first, then without case if that is unambiguous. Errors:
 * GAR_ERR_SYNTAX with err->position set and a message with line, column
 * and caret; GAR_ERR_COLUMN. Nesting beyond 256 is a syntax error. */
GAR_MUST_USE enum gar_status gar_sql_parse_expression(const char *text, int64_t bytes,
                                                      const struct gar_schema *schema,
                                                      struct gar_expr **out, struct gar_error *err);
/* A comma-separated list of them ("a, b + 1 as c, *"); the caller unrefs each and gar_frees the array. */
GAR_MUST_USE enum gar_status gar_sql_parse_list(const char *text, int64_t bytes,
                                                const struct gar_schema *schema,
                                                struct gar_expr ***out, int64_t *out_count,
                                                struct gar_error *err);

#endif
