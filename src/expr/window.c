/* SPDX-License-Identifier: Apache-2.0 */
#include "expr/window.h"

#include "base/alloc.h"
#include "expr/expr_priv.h"

static bool is_windowed_call(const struct gar_expr *expr)
{
    return expr->kind == GAR_EXPR_CALL &&
           gar_function_info(expr->function)->kind != GAR_FUNCTION_SCALAR;
}

/* What all calls get. */
struct over {
    const struct gar_window *window;
    struct gar_expr **args; /* owned array; the first place is the call's */
    int64_t arg_count;
    bool has_call;
};

static enum gar_status put_over(const struct gar_expr *expr, struct over *over,
                                struct gar_expr **out, struct gar_error *err);

static enum gar_status put_over_args(const struct gar_expr *expr, struct over *over,
                                     struct gar_expr **out, struct gar_error *err)
{
    struct gar_expr **args = gar_calloc(expr->arg_count, (int64_t)sizeof *args);
    if (args == NULL) {
        return gar_error_nomem(err, expr->arg_count * (int64_t)sizeof *args);
    }
    enum gar_status status = GAR_OK;
    for (int64_t i = 0; i < expr->arg_count && status >= 0; i++) {
        status = put_over(expr->args[i], over, &args[i], err);
    }
    if (status >= 0) {
        status = gar_expr_with_args(expr, args, out, err);
    }
    for (int64_t i = 0; i < expr->arg_count; i++) {
        gar_expr_unref(args[i]);
    }
    gar_free(args);
    return status;
}

static enum gar_status put_over(const struct gar_expr *expr, struct over *over,
                                struct gar_expr **out, struct gar_error *err)
{
    if (expr->kind == GAR_EXPR_WINDOW) {
        return gar_error_set(err, GAR_ERR_VALUE, "the expression has a window already");
    }
    if (is_windowed_call(expr)) {
        over->has_call = true;
        over->args[0] = gar_expr_ref(expr);
        const enum gar_status status =
            gar_expr_new_node(GAR_EXPR_WINDOW, over->args, over->arg_count, out, err);
        gar_expr_unref(over->args[0]);
        if (status >= 0) {
            (*out)->window = *over->window;
        }
        return status;
    }
    if (expr->arg_count == 0) {
        *out = gar_expr_ref(expr);
        return GAR_OK;
    }
    return put_over_args(expr, over, out, err);
}

/* Bounds that cannot be: the frame would always be empty, or ends where it cannot start. */
static enum gar_status check_frame(const struct gar_window *w, struct gar_error *err)
{
    if (w->partition_count < 0 || w->order_count < 0 || w->order_count > 64 || w->min_periods < 0) {
        return gar_error_set(
            err, GAR_ERR_VALUE,
            "a window takes at most 64 expressions to order by and min_periods of 0 "
            "or more");
    }
    if (w->frame == GAR_FRAME_NONE) {
        return GAR_OK;
    }
    if (w->start == GAR_BOUND_UNBOUNDED_FOLLOWING || w->end == GAR_BOUND_UNBOUNDED_PRECEDING) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "a frame starts at the first rows and ends at the last, not the other "
                             "way round");
    }
    if (w->frame != GAR_FRAME_RANGE && w->start == GAR_BOUND_OFFSET && w->end == GAR_BOUND_OFFSET &&
        w->start_rows > w->end_rows) {
        return gar_error_set(err, GAR_ERR_VALUE, "the frame starts at %s %lld, after its end %lld",
                             w->frame == GAR_FRAME_ROWS ? "row" : "group", (long long)w->start_rows,
                             (long long)w->end_rows);
    }
    if (w->frame == GAR_FRAME_GROUPS && w->order_count == 0) {
        return gar_error_set(
            err, GAR_ERR_VALUE,
            "a frame of groups needs an order: its groups are rows with equal keys");
    }
    if (w->frame == GAR_FRAME_ROWS && w->order_count == 0 && w->partition_count == 0) {
        return GAR_OK;
    }
    if (w->frame == GAR_FRAME_RANGE && w->order_count != 1 &&
        (w->start == GAR_BOUND_OFFSET || w->end == GAR_BOUND_OFFSET)) {
        return gar_error_set(
            err, GAR_ERR_VALUE,
            "range_between with an offset needs exactly one expression to order by, "
            "got %d",
            w->order_count);
    }
    return GAR_OK;
}

enum gar_status gar_expr_over(const struct gar_expr *expr, const struct gar_window *window,
                              struct gar_expr *const *partition, struct gar_expr *const *order,
                              struct gar_expr *start_value, struct gar_expr *end_value,
                              struct gar_expr **out, struct gar_error *err)
{
    GAR_TRY(check_frame(window, err));
    struct gar_window shape = *window;
    shape.has_start_value = start_value != NULL;
    shape.has_end_value = end_value != NULL;
    struct over over = {.window = &shape, .arg_count = 1};
    over.args =
        gar_calloc(3 + shape.partition_count + shape.order_count, (int64_t)sizeof *over.args);
    if (over.args == NULL) {
        return gar_error_nomem(err, 8 * (int64_t)(shape.partition_count + shape.order_count));
    }
    for (int32_t i = 0; i < shape.partition_count; i++) {
        over.args[over.arg_count++] = partition[i];
    }
    for (int32_t i = 0; i < shape.order_count; i++) {
        over.args[over.arg_count++] = order[i];
    }
    if (start_value != NULL) {
        over.args[over.arg_count++] = start_value;
    }
    if (end_value != NULL) {
        over.args[over.arg_count++] = end_value;
    }
    struct gar_expr *made = NULL;
    enum gar_status status = put_over(expr, &over, &made, err);
    gar_free(over.args);
    if (status >= 0 && !over.has_call) {
        gar_expr_unref(made);
        return gar_error_set(err, GAR_ERR_VALUE,
                             "over() needs an aggregate or a window function, e.g. col('a').sum()");
    }
    if (status >= 0) {
        *out = made;
    }
    return status;
}

bool gar_expr_has_window(const struct gar_expr *expr)
{
    if (expr->kind == GAR_EXPR_WINDOW) {
        return true;
    }
    for (int64_t i = 0; i < expr->arg_count; i++) {
        if (gar_expr_has_window(expr->args[i])) {
            return true;
        }
    }
    return false;
}

bool gar_window_same_sort(const struct gar_expr *a, const struct gar_expr *b)
{
    if (a->window.partition_count != b->window.partition_count ||
        a->window.order_count != b->window.order_count ||
        a->window.descending != b->window.descending ||
        a->window.nulls_first != b->window.nulls_first) {
        return false;
    }
    for (int32_t i = 1; i <= a->window.partition_count + a->window.order_count; i++) {
        if (!gar_expr_equal(a->args[i], b->args[i])) {
            return false;
        }
    }
    return true;
}

const struct gar_expr *gar_window_start_value(const struct gar_expr *expr)
{
    const struct gar_window *w = &expr->window;
    return w->has_start_value ? expr->args[1 + w->partition_count + w->order_count] : NULL;
}

const struct gar_expr *gar_window_end_value(const struct gar_expr *expr)
{
    return expr->window.has_end_value ? expr->args[expr->arg_count - 1] : NULL;
}

static void print_bound(enum gar_bound_kind kind, int64_t rows, const struct gar_expr *value,
                        struct gar_strbuf *out)
{
    switch (kind) {
    case GAR_BOUND_UNBOUNDED_PRECEDING: gar_strbuf_append(out, "unbounded preceding"); break;
    case GAR_BOUND_UNBOUNDED_FOLLOWING: gar_strbuf_append(out, "unbounded following"); break;
    case GAR_BOUND_CURRENT: gar_strbuf_append(out, "current row"); break;
    case GAR_BOUND_OFFSET:
        if (value != NULL) {
            gar_expr_print(value, out);
            gar_strbuf_append(out, " following");
        } else {
            gar_strbuf_printf(out, "%lld %s", (long long)(rows < 0 ? -rows : rows),
                              rows < 0 ? "preceding" : "following");
        }
        break;
    }
}

void gar_window_print(const struct gar_expr *expr, struct gar_strbuf *out)
{
    const struct gar_window *w = &expr->window;
    const char *gap = "";
    for (int32_t i = 0; i < w->partition_count; i++) {
        gar_strbuf_append(out, i == 0 ? "partition by " : ", ");
        gar_expr_print(gar_window_partition(expr)[i], out);
        gap = " ";
    }
    for (int32_t i = 0; i < w->order_count; i++) {
        const bool descending = (w->descending >> i & 1) != 0;
        const bool nulls_first = (w->nulls_first >> i & 1) != 0;
        gar_strbuf_append(out, i == 0 ? gap : "");
        gar_strbuf_append(out, i == 0 ? "order by " : ", ");
        gar_expr_print(gar_window_order(expr)[i], out);
        gar_strbuf_append(out, descending ? " desc" : "");
        if (nulls_first != descending) {
            gar_strbuf_append(out, nulls_first ? " nulls first" : " nulls last");
        }
        gap = " ";
    }
    static const char *const frames[] = {"", "rows between ", "range between ", "groups between "};
    static const char *const exclusions[] = {"", " exclude current row", " exclude group",
                                             " exclude ties"};
    if (w->frame != GAR_FRAME_NONE) {
        gar_strbuf_append(out, gap);
        gar_strbuf_append(out, frames[w->frame]);
        print_bound(w->start, w->start_rows, gar_window_start_value(expr), out);
        gar_strbuf_append(out, " and ");
        print_bound(w->end, w->end_rows, gar_window_end_value(expr), out);
        gap = " ";
    }
    gar_strbuf_append(out, exclusions[w->exclusion] + (gap[0] == '\0' && w->exclusion != 0));
}
