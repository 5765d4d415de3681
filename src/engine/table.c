/* SPDX-License-Identifier: Apache-2.0 */
/* The first rows of a frame as a box table for terminals or an HTML table for notebooks.
 *
 * Every cell becomes one line of text with control characters escaped, cut to a width in terminal columns. When the table
 * would be wider than asked, columns of the middle are left out and a column of dots tells how many. */
#include <string.h>

#include "arrow/value.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/utf8.h"
#include "engine/engine_priv.h"

/* Bytes of one value that are looked at, at most: cells show far fewer. */
#define CELL_BYTES_MAX 4096

struct cell {
    const char *text; /* in the arena */
    int64_t bytes;
    int64_t width; /* terminal columns */
};

struct grid {
    struct gar_arena arena;
    const struct gar_schema *schema;
    int64_t rows;
    int64_t columns; /* of the schema */
    struct cell *names;
    struct cell *types;
    struct cell *cells;  /* rows * columns */
    int64_t *widths;     /* columns */
    bool *right;         /* numbers stand right */
    int64_t first_shown; /* columns [0, first_shown) and [last_shown, columns) are shown */
    int64_t last_shown;
};

/* Append text with control characters as \n, \t or \xNN. */
static void append_escaped(struct gar_strbuf *out, const char *text, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c == '\n') {
            gar_strbuf_append(out, "\\n");
        } else if (c == '\t') {
            gar_strbuf_append(out, "\\t");
        } else if (c == '\r') {
            gar_strbuf_append(out, "\\r");
        } else if (c < 0x20 || c == 0x7f) {
            gar_strbuf_printf(out, "\\x%02x", c);
        } else {
            gar_strbuf_append_char(out, (char)c);
        }
    }
}

/* Cut to at most max_width terminal columns, an ellipsis included. */
static void cut_to_width(struct gar_strbuf *text, int64_t max_width)
{
    const char *data = gar_strbuf_text(text);
    if (max_width <= 0 || gar_utf8_width(data, text->size) <= max_width) {
        return;
    }
    int64_t used = 0;
    int64_t at = 0;
    while (at < text->size) {
        int32_t size = 1;
        (void)gar_utf8_decode(data + at, text->size - at, &size);
        const int64_t width = gar_utf8_width(data + at, size);
        if (used + width > max_width - 1) {
            break;
        }
        used += width;
        at += size;
    }
    text->size = at;
    gar_strbuf_append(text, "…");
}

static enum gar_status make_cell(struct grid *g, struct gar_strbuf *scratch, int64_t max_width,
                                 struct cell *out, struct gar_error *err)
{
    cut_to_width(scratch, max_width);
    out->text = gar_arena_strndup(&g->arena, gar_strbuf_text(scratch), scratch->size);
    if (out->text == NULL || scratch->failed) {
        return gar_error_nomem(err, scratch->size);
    }
    out->bytes = scratch->size;
    out->width = gar_utf8_width(out->text, out->bytes);
    return GAR_OK;
}

static enum gar_status fill_header(struct grid *g, struct gar_strbuf *scratch, int64_t max_width,
                                   struct gar_error *err)
{
    for (int64_t c = 0; c < g->columns; c++) {
        const struct gar_field *field = &g->schema->fields[c];
        gar_strbuf_clear(scratch);
        append_escaped(scratch, field->name,
                       gar_min_i64((int64_t)strlen(field->name), CELL_BYTES_MAX));
        GAR_TRY(make_cell(g, scratch, max_width, &g->names[c], err));
        gar_strbuf_clear(scratch);
        gar_type_print(field->type, scratch);
        GAR_TRY(make_cell(g, scratch, max_width, &g->types[c], err));
        g->widths[c] = gar_max_i64(g->names[c].width, g->types[c].width);
        g->right[c] = gar_type_is_numeric(field->type);
    }
    return GAR_OK;
}

static enum gar_status fill_row(struct grid *g, struct gar_strbuf *scratch,
                                const struct gar_batch *batch, int64_t row, int64_t at,
                                int64_t max_width, struct gar_error *err)
{
    for (int64_t c = 0; c < g->columns; c++) {
        struct gar_value value;
        GAR_TRY(gar_value_from_column(batch->columns[c], row, &value, err));
        gar_strbuf_clear(scratch);
        gar_value_print_plain(&value, CELL_BYTES_MAX, scratch);
        gar_value_destroy(&value);
        struct cell *cell = &g->cells[at * g->columns + c];
        GAR_TRY(make_cell(g, scratch, max_width, cell, err));
        g->widths[c] = gar_max_i64(g->widths[c], cell->width);
    }
    return GAR_OK;
}

static enum gar_status fill_grid(struct grid *g, struct gar_batch *const *batches,
                                 int64_t batch_count, const struct gar_table_options *options,
                                 struct gar_error *err)
{
    const int64_t cells = g->rows * g->columns;
    g->names = gar_arena_calloc(&g->arena, g->columns, (int64_t)sizeof *g->names);
    g->types = gar_arena_calloc(&g->arena, g->columns, (int64_t)sizeof *g->types);
    g->cells = gar_arena_calloc(&g->arena, cells, (int64_t)sizeof *g->cells);
    g->widths = gar_arena_calloc(&g->arena, g->columns, (int64_t)sizeof *g->widths);
    g->right = gar_arena_calloc(&g->arena, g->columns, (int64_t)sizeof *g->right);
    if (g->names == NULL || g->types == NULL || g->cells == NULL || g->widths == NULL ||
        g->right == NULL) {
        return gar_error_nomem(err, cells * (int64_t)sizeof *g->cells);
    }
    struct gar_strbuf scratch = {0};
    enum gar_status status = fill_header(g, &scratch, options->max_cell_width, err);
    int64_t at = 0;
    for (int64_t b = 0; b < batch_count && status == GAR_OK; b++) {
        for (int64_t r = 0; r < batches[b]->rows && at < g->rows && status == GAR_OK; r++) {
            status = fill_row(g, &scratch, batches[b], r, at++, options->max_cell_width, err);
        }
    }
    gar_strbuf_destroy(&scratch);
    return status;
}

/* Which columns fit: alternately one from the left and one from the right, until the width is used up. */
static void choose_columns(struct grid *g, int64_t max_width)
{
    g->first_shown = g->columns;
    g->last_shown = g->columns;
    int64_t total = 1;
    for (int64_t c = 0; c < g->columns; c++) {
        total += g->widths[c] + 3;
    }
    if (max_width <= 0 || total <= max_width) {
        return;
    }
    int64_t left = 0;
    int64_t right = g->columns;
    int64_t used = 1 + 3 + 3; /* border and the column of dots */
    while (left < right) {
        const int64_t c =
            left + g->columns - right <= 0 || left <= g->columns - right ? left : right - 1;
        if (used + g->widths[c] + 3 > max_width && left + (g->columns - right) > 0) {
            break;
        }
        used += g->widths[c] + 3;
        if (c == left) {
            left++;
        } else {
            right--;
        }
    }
    g->first_shown = left;
    g->last_shown = right;
}

static bool is_gap(const struct grid *g)
{
    return g->first_shown < g->last_shown;
}

static void append_repeated(struct gar_strbuf *out, const char *piece, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        gar_strbuf_append(out, piece);
    }
}

/* One horizontal line: corners and crossings as given. */
static void append_rule(const struct grid *g, struct gar_strbuf *out, const char *left,
                        const char *fill, const char *cross, const char *right)
{
    gar_strbuf_append(out, left);
    bool first = true;
    for (int64_t c = 0; c < g->columns; c++) {
        if (c == g->first_shown && is_gap(g)) {
            gar_strbuf_append(out, first ? "" : cross);
            append_repeated(out, fill, 3);
            first = false;
            c = g->last_shown;
        }
        if (c >= g->columns) {
            break;
        }
        gar_strbuf_append(out, first ? "" : cross);
        append_repeated(out, fill, g->widths[c] + 2);
        first = false;
    }
    gar_strbuf_append(out, right);
    gar_strbuf_append_char(out, '\n');
}

static void append_padded(struct gar_strbuf *out, const struct cell *cell, int64_t width,
                          bool right)
{
    const int64_t pad = width - cell->width;
    gar_strbuf_append_char(out, ' ');
    if (right) {
        gar_strbuf_append_fill(out, ' ', pad);
    }
    gar_strbuf_append_n(out, cell->text, cell->bytes);
    if (!right) {
        gar_strbuf_append_fill(out, ' ', pad);
    }
    gar_strbuf_append_char(out, ' ');
}

static void append_line(const struct grid *g, struct gar_strbuf *out, const struct cell *cells,
                        bool is_header)
{
    gar_strbuf_append(out, "│");
    bool first = true;
    for (int64_t c = 0; c < g->columns; c++) {
        if (c == g->first_shown && is_gap(g)) {
            gar_strbuf_append(out, first ? " … " : "┆ … ");
            first = false;
            c = g->last_shown;
        }
        if (c >= g->columns) {
            break;
        }
        gar_strbuf_append(out, first ? "" : "┆");
        append_padded(out, &cells[c], g->widths[c], g->right[c] && !is_header);
        first = false;
    }
    gar_strbuf_append(out, "│\n");
}

static void append_note(const struct grid *g, struct gar_strbuf *out, int64_t total_rows)
{
    if (is_gap(g)) {
        gar_strbuf_printf(out, "(%lld of %lld columns shown)\n",
                          (long long)(g->columns - g->last_shown + g->first_shown),
                          (long long)g->columns);
    }
    if (total_rows < 0) {
        gar_strbuf_printf(out, "(Showing first %lld rows)\n", (long long)g->rows);
    } else if (total_rows == 0) {
        gar_strbuf_append(out, "(No rows)\n");
    } else if (g->rows < total_rows) {
        gar_strbuf_printf(out, "(Showing first %lld of %lld rows)\n", (long long)g->rows,
                          (long long)total_rows);
    } else {
        gar_strbuf_printf(out, "(%lld row%s)\n", (long long)total_rows, total_rows == 1 ? "" : "s");
    }
}

static void append_box(const struct grid *g, struct gar_strbuf *out, int64_t total_rows)
{
    if (g->columns > 0) {
        append_rule(g, out, "╭", "─", "┬", "╮");
        append_line(g, out, g->names, true);
        append_line(g, out, g->types, true);
        append_rule(g, out, "╞", "═", "╪", "╡");
        for (int64_t r = 0; r < g->rows; r++) {
            append_line(g, out, &g->cells[r * g->columns], false);
        }
        append_rule(g, out, "╰", "─", "┴", "╯");
    }
    append_note(g, out, total_rows);
}

static void append_html_text(struct gar_strbuf *out, const char *text, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i++) {
        switch (text[i]) {
        case '&': gar_strbuf_append(out, "&amp;"); break;
        case '<': gar_strbuf_append(out, "&lt;"); break;
        case '>': gar_strbuf_append(out, "&gt;"); break;
        case '"': gar_strbuf_append(out, "&quot;"); break;
        default: gar_strbuf_append_char(out, text[i]); break;
        }
    }
}

static void append_html(const struct grid *g, struct gar_strbuf *out, int64_t total_rows)
{
    gar_strbuf_append(out, "<div>\n<table class=\"gar\">\n<thead><tr>");
    for (int64_t c = 0; c < g->columns; c++) {
        gar_strbuf_append(out, "<th style=\"text-align: left\">");
        append_html_text(out, g->names[c].text, g->names[c].bytes);
        gar_strbuf_append(out, "<br/><small>");
        append_html_text(out, g->types[c].text, g->types[c].bytes);
        gar_strbuf_append(out, "</small></th>");
    }
    gar_strbuf_append(out, "</tr></thead>\n<tbody>\n");
    for (int64_t r = 0; r < g->rows; r++) {
        gar_strbuf_append(out, "<tr>");
        for (int64_t c = 0; c < g->columns; c++) {
            gar_strbuf_append(out, g->right[c] ? "<td style=\"text-align: right\">"
                                               : "<td style=\"text-align: left\">");
            append_html_text(out, g->cells[r * g->columns + c].text,
                             g->cells[r * g->columns + c].bytes);
            gar_strbuf_append(out, "</td>");
        }
        gar_strbuf_append(out, "</tr>\n");
    }
    gar_strbuf_append(out, "</tbody>\n</table>\n<small>");
    append_note(g, out, total_rows);
    gar_strbuf_append(out, "</small>\n</div>\n");
}

enum gar_status gar_table_format(const struct gar_schema *schema, struct gar_batch *const *batches,
                                 int64_t batch_count, enum gar_text_format format,
                                 const struct gar_table_options *options, char **out,
                                 struct gar_error *err)
{
    struct grid g = {.schema = schema, .columns = schema->count};
    int64_t total = 0;
    for (int64_t b = 0; b < batch_count; b++) {
        total += batches[b]->rows;
    }
    g.rows = gar_min_i64(total, gar_max_i64(options->max_rows, 0));
    enum gar_status status = fill_grid(&g, batches, batch_count, options, err);
    struct gar_strbuf text = {0};
    if (status == GAR_OK) {
        if (format == GAR_FORMAT_HTML) {
            choose_columns(&g, 0);
            append_html(&g, &text, options->total_rows);
        } else {
            choose_columns(&g, options->max_width);
            append_box(&g, &text, options->total_rows);
        }
        char *taken = gar_strbuf_take(&text);
        if (taken == NULL) {
            status = gar_error_nomem(err, text.size);
        } else {
            *out = taken;
        }
    }
    gar_strbuf_destroy(&text);
    gar_arena_destroy(&g.arena);
    return status;
}
