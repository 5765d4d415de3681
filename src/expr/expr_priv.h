/* SPDX-License-Identifier: Apache-2.0 */
/* Making nodes, for the builders of expr/. */
#ifndef GAR_EXPR_EXPR_PRIV_H
#define GAR_EXPR_EXPR_PRIV_H

#include "expr/expr.h"

/* A node with references to its arguments; the rest is the caller's to fill. Errors: GAR_ERR_VALUE (depth), GAR_ERR_NOMEM. */
GAR_MUST_USE enum gar_status gar_expr_new_node(enum gar_expr_kind kind,
                                               struct gar_expr *const *args, int64_t count,
                                               struct gar_expr **out, struct gar_error *err);

#endif
