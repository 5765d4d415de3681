/* SPDX-License-Identifier: Apache-2.0 */
/* Windows: a call computed for each row over rows around it. */
#ifndef GAR_EXPR_WINDOW_H
#define GAR_EXPR_WINDOW_H

#include "expr/expr.h"

/* Sets *out to the expression with every aggregate and window function in it computed over the window; columns outside of them
 * stay those of the row. partition, order and the values of range bounds (NULL where the bound has none) are borrowed.
 * window's counts must be those of the arrays. Errors: GAR_ERR_VALUE when there is no such call in it, it has a window
 * already, or the frame makes no sense; GAR_ERR_NOMEM. */
GAR_MUST_USE enum gar_status gar_expr_over(const struct gar_expr *expr,
                                           const struct gar_window *window,
                                           struct gar_expr *const *partition,
                                           struct gar_expr *const *order,
                                           struct gar_expr *start_value, struct gar_expr *end_value,
                                           struct gar_expr **out, struct gar_error *err);
bool gar_expr_has_window(const struct gar_expr *expr);
/* Have both windows the same partitions and the same order (so that one sort serves both)? */
bool gar_window_same_sort(const struct gar_expr *a, const struct gar_expr *b);
/* Parts of a WINDOW node, borrowed. */
GAR_INLINE struct gar_expr *const *gar_window_partition(const struct gar_expr *expr)
{
    return expr->args + 1;
}
GAR_INLINE struct gar_expr *const *gar_window_order(const struct gar_expr *expr)
{
    return expr->args + 1 + expr->window.partition_count;
}
/* NULL: the bound has no value. */
const struct gar_expr *gar_window_start_value(const struct gar_expr *expr);
const struct gar_expr *gar_window_end_value(const struct gar_expr *expr);
/* "partition by a order by b desc rows between ..." */
void gar_window_print(const struct gar_expr *expr, struct gar_strbuf *out);

#endif
