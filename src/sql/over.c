/* SPDX-License-Identifier: Apache-2.0 */
/* Windows in SQL: call OVER (PARTITION BY ... ORDER BY ... frame). With an order and no frame, aggregates and values of the
 * frame see the rows up to the current row's peers, as the standard has it. */
#include <string.h>

#include "base/alloc.h"
#include "expr/window.h"
#include "sql/parser_priv.h"

struct over {
    struct gar_window window;
    struct gar_expr **partition; /* owned */
    struct gar_expr **order;     /* owned */
    struct gar_expr *start;      /* owned; a range bound's value, or NULL */
    struct gar_expr *end;
};

static void destroy_over(struct over *over)
{
    gar_parser_arguments_free(over->partition, over->window.partition_count);
    gar_parser_arguments_free(over->order, over->window.order_count);
    gar_expr_unref(over->start);
    gar_expr_unref(over->end);
}

/* Move one more expression into a list. */
static enum gar_status add_item(struct gar_parser *p, struct gar_expr ***items, int32_t *count,
                                int32_t most, struct gar_expr *item)
{
    int64_t capacity = *count;
    enum gar_status status =
        *count < most
            ? gar_grow((void **)items, &capacity, *count + 1, (int64_t)sizeof item, p->err)
            : gar_parser_fail(p, p->token.at, "a window of that many expressions");
    if (status != GAR_OK) {
        gar_expr_unref(item);
        return status;
    }
    (*items)[(*count)++] = item;
    return GAR_OK;
}

/* Take a word if it is there. */
static enum gar_status skip_word(struct gar_parser *p, const char *word, bool *out_found)
{
    *out_found = gar_token_is_word(&p->token, word);
    return *out_found ? gar_parser_advance(p) : GAR_OK;
}

static enum gar_status parse_partition(struct gar_parser *p, struct over *over)
{
    do {
        struct gar_expr *item = NULL;
        GAR_TRY(gar_parser_advance(p)); /* BY, or the comma */
        GAR_TRY(gar_parser_expression(p, &item));
        GAR_TRY(add_item(p, &over->partition, &over->window.partition_count, 4096, item));
    } while (gar_token_is_symbol(&p->token, ","));
    return GAR_OK;
}

/* [ASC | DESC] [NULLS FIRST | LAST]: bit `at` of the window's flags. */
static enum gar_status parse_direction(struct gar_parser *p, struct gar_window *window, int32_t at)
{
    bool is_down = false;
    bool found = false;
    GAR_TRY(skip_word(p, "desc", &is_down));
    if (!is_down) {
        GAR_TRY(skip_word(p, "asc", &found));
    }
    bool nulls_first = is_down;
    GAR_TRY(skip_word(p, "nulls", &found));
    if (found) {
        GAR_TRY(skip_word(p, "first", &nulls_first));
        if (!nulls_first) {
            GAR_TRY(gar_parser_expect_word(p, "last"));
        }
    }
    window->descending |= (uint64_t)is_down << at;
    window->nulls_first |= (uint64_t)nulls_first << at;
    return GAR_OK;
}

static enum gar_status parse_order(struct gar_parser *p, struct over *over)
{
    do {
        struct gar_expr *item = NULL;
        GAR_TRY(gar_parser_advance(p));
        GAR_TRY(gar_parser_expression(p, &item));
        GAR_TRY(add_item(p, &over->order, &over->window.order_count, 64, item));
        GAR_TRY(parse_direction(p, &over->window, over->window.order_count - 1));
    } while (gar_token_is_symbol(&p->token, ","));
    return GAR_OK;
}

/* The number of rows or groups that an offset gives. */
static enum gar_status read_offset(struct gar_parser *p, int64_t at, const struct gar_expr *value,
                                   bool is_before, int64_t *out)
{
    if (value->kind != GAR_EXPR_LITERAL || !value->value.is_valid ||
        value->value.type.id != GAR_INT64 || value->value.i64 < 0) {
        return gar_parser_fail(p, at,
                               "the offset of a frame of rows or groups is a whole number that is "
                               "not negative");
    }
    *out = is_before ? -value->value.i64 : value->value.i64;
    return GAR_OK;
}

static bool is_plain_interval(const struct gar_expr *value)
{
    if (value->kind != GAR_EXPR_CALL || value->arg_count != 3 ||
        strcmp(gar_function_info(value->function)->name, "interval") != 0) {
        return false;
    }
    for (int64_t i = 0; i < 3; i++) {
        const struct gar_value *part = &value->args[i]->value;
        if (value->args[i]->kind != GAR_EXPR_LITERAL || part->type.id != GAR_INT64 ||
            part->i64 == INT64_MIN) {
            return false;
        }
    }
    return true;
}

/* -value; value is taken over. An interval has its parts negated: there is no arithmetic of intervals alone. */
static enum gar_status negate(struct gar_parser *p, struct gar_expr *value, struct gar_expr **out)
{
    if (!is_plain_interval(value)) {
        return gar_parser_call(p, "negate", &value, 1, out);
    }
    struct gar_expr *parts[3] = {NULL, NULL, NULL};
    enum gar_status status = GAR_OK;
    for (int64_t i = 0; i < 3 && status == GAR_OK; i++) {
        status = gar_parser_literal_i64(p, -value->args[i]->value.i64, &parts[i]);
    }
    if (status == GAR_OK) {
        status = gar_expr_new_call_by_name("interval", parts, 3, out, p->err);
    }
    for (int64_t i = 0; i < 3; i++) {
        gar_expr_unref(parts[i]);
    }
    gar_expr_unref(value);
    return status;
}

/* UNBOUNDED PRECEDING | UNBOUNDED FOLLOWING | CURRENT ROW | value PRECEDING | value FOLLOWING. */
static enum gar_status parse_bound(struct gar_parser *p, enum gar_window_frame frame,
                                   enum gar_bound_kind *out_kind, int64_t *out_rows,
                                   struct gar_expr **out_value)
{
    bool found = false;
    bool is_before = false;
    const int64_t at = p->token.at;
    GAR_TRY(skip_word(p, "current", &found));
    if (found) {
        *out_kind = GAR_BOUND_CURRENT;
        return gar_parser_expect_word(p, "row");
    }
    GAR_TRY(skip_word(p, "unbounded", &found));
    struct gar_expr *value = NULL;
    if (!found) {
        GAR_TRY(gar_parser_operand(p, &value));
    }
    enum gar_status status = skip_word(p, "preceding", &is_before);
    if (status == GAR_OK && !is_before) {
        status = gar_parser_expect_word(p, "following");
    }
    if (found || status != GAR_OK) {
        *out_kind = is_before ? GAR_BOUND_UNBOUNDED_PRECEDING : GAR_BOUND_UNBOUNDED_FOLLOWING;
        gar_expr_unref(value);
        return status;
    }
    *out_kind = GAR_BOUND_OFFSET;
    if (frame != GAR_FRAME_RANGE) {
        status = read_offset(p, at, value, is_before, out_rows);
        gar_expr_unref(value);
        return status;
    }
    if (is_before) {
        return negate(p, value, out_value);
    }
    *out_value = value;
    return GAR_OK;
}

static enum gar_status parse_exclusion(struct gar_parser *p, struct gar_window *window)
{
    bool found = false;
    GAR_TRY(skip_word(p, "exclude", &found));
    if (!found) {
        return GAR_OK;
    }
    GAR_TRY(skip_word(p, "current", &found));
    if (found) {
        window->exclusion = GAR_EXCLUDE_CURRENT;
        return gar_parser_expect_word(p, "row");
    }
    GAR_TRY(skip_word(p, "group", &found));
    if (found) {
        window->exclusion = GAR_EXCLUDE_GROUP;
        return GAR_OK;
    }
    GAR_TRY(skip_word(p, "ties", &found));
    if (found) {
        window->exclusion = GAR_EXCLUDE_TIES;
        return GAR_OK;
    }
    GAR_TRY(skip_word(p, "no", &found));
    return found ? gar_parser_expect_word(p, "others")
                 : gar_parser_unexpected(p, "current row, group, ties or no others");
}

/* ROWS | RANGE | GROUPS, the word has been read: BETWEEN bound AND bound, or one bound up to the current row. */
static enum gar_status parse_frame(struct gar_parser *p, struct over *over)
{
    struct gar_window *w = &over->window;
    bool has_both = false;
    GAR_TRY(skip_word(p, "between", &has_both));
    GAR_TRY(parse_bound(p, w->frame, &w->start, &w->start_rows, &over->start));
    w->end = GAR_BOUND_CURRENT;
    if (has_both) {
        GAR_TRY(gar_parser_expect_word(p, "and"));
        GAR_TRY(parse_bound(p, w->frame, &w->end, &w->end_rows, &over->end));
    }
    return parse_exclusion(p, w);
}

/* What stands between the parentheses. */
static enum gar_status parse_window(struct gar_parser *p, struct over *over)
{
    bool found = false;
    GAR_TRY(skip_word(p, "partition", &found));
    if (found) {
        if (!gar_token_is_word(&p->token, "by")) {
            return gar_parser_unexpected(p, "by");
        }
        GAR_TRY(parse_partition(p, over));
    }
    GAR_TRY(skip_word(p, "order", &found));
    if (found) {
        if (!gar_token_is_word(&p->token, "by")) {
            return gar_parser_unexpected(p, "by");
        }
        GAR_TRY(parse_order(p, over));
    }
    static const char *const frames[] = {"", "rows", "range", "groups"};
    bool has_frame = false;
    for (int32_t f = GAR_FRAME_ROWS; f <= GAR_FRAME_GROUPS && !has_frame; f++) {
        GAR_TRY(skip_word(p, frames[f], &has_frame));
        over->window.frame = has_frame ? (enum gar_window_frame)f : GAR_FRAME_NONE;
    }
    if (has_frame) {
        return parse_frame(p, over);
    }
    if (over->window.order_count > 0) { /* the standard's frame */
        over->window.frame = GAR_FRAME_RANGE;
        over->window.start = GAR_BOUND_UNBOUNDED_PRECEDING;
        over->window.end = GAR_BOUND_CURRENT;
    }
    return parse_exclusion(p, &over->window);
}

enum gar_status gar_parser_over(struct gar_parser *p, struct gar_expr *call, struct gar_expr **out)
{
    struct over over = {.partition = NULL};
    const int64_t at = p->token.at;
    enum gar_status status = gar_parser_expect(p, "(");
    if (status == GAR_OK) {
        status = parse_window(p, &over);
    }
    if (status == GAR_OK) {
        status = gar_parser_expect(p, ")");
    }
    if (status == GAR_OK) {
        status = gar_parser_locate(p, at,
                                   gar_expr_over(call, &over.window, over.partition, over.order,
                                                 over.start, over.end, out, p->err));
    }
    destroy_over(&over);
    gar_expr_unref(call);
    return status;
}
