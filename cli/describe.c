/* SPDX-License-Identifier: Apache-2.0 */
/* gar describe: one aggregate query over all columns, its single row turned into a row per column. Every figure is cast to
 * text inside the query, so that one reader of large_string arrays is enough here. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input.h"
#include "output.h"

enum { FIGURES = 6, OUTPUT_COLUMNS = 8 };

/* cast(function(column[, mode]) as string) as "f_i"; a null text where the function does not take the type. */
static enum gar_status figure_expr(const struct gar_frame *frame, int64_t column, int figure,
                                   struct gar_expr **out, struct gar_error *err)
{
    static const char *const functions[FIGURES] = {"count", "count", "min",
                                                   "max",   "mean",  "stddev"};
    struct gar_expr *args[2] = {NULL, NULL};
    struct gar_expr *call = NULL;
    struct gar_expr *text = NULL;
    char name[48];
    (void)snprintf(name, sizeof name, "f%" PRId64 "_%d", column, figure);
    enum gar_status status = gar_expr_column(gar_frame_column_name(frame, column), &args[0], err);
    if (status == GAR_OK && figure == 1) {
        status = gar_expr_string("null", 4, &args[1], err);
    }
    if (status == GAR_OK) {
        status = gar_expr_call(functions[figure], args, figure == 1 ? 2 : 1, &call, err);
    }
    char *type = NULL;
    if (status == GAR_OK) {
        status = gar_expr_type_text(call, frame, &type, err);
    }
    if (status == GAR_ERR_TYPE) { /* no mean of texts: an empty figure */
        struct gar_expr *null = NULL;
        gar_expr_release(call);
        call = NULL;
        status = gar_expr_null(&null, err);
        if (status == GAR_OK) {
            status = gar_expr_call("any_value", &null, 1, &call, err);
            gar_expr_release(null);
        }
    }
    gar_text_free(type);
    if (status == GAR_OK) {
        status = gar_expr_cast(call, "string", false, &text, err);
    }
    if (status == GAR_OK) {
        status = gar_expr_alias(text, name, out, err);
    }
    gar_expr_release(text);
    gar_expr_release(call);
    gar_expr_release(args[0]);
    gar_expr_release(args[1]);
    return status;
}

/* A text column under construction: Arrow utf8 with 64-bit offsets. */
struct text_column {
    int64_t rows;
    int64_t nulls;
    int64_t *offsets;
    char *data;
    int64_t data_bytes;
    uint8_t *validity;
};

static void text_column_destroy(struct text_column *column)
{
    free(column->offsets);
    free(column->data);
    free(column->validity);
}

static bool text_column_init(struct text_column *column, int64_t rows)
{
    *column = (struct text_column){0};
    column->offsets = calloc((size_t)rows + 1, sizeof *column->offsets);
    column->validity = calloc((size_t)rows / 8 + 1, 1);
    return column->offsets != NULL && column->validity != NULL;
}

static bool text_column_append(struct text_column *column, const char *text, int64_t bytes)
{
    if (text != NULL && bytes > 0) {
        char *grown = realloc(column->data, (size_t)(column->data_bytes + bytes));
        if (grown == NULL) {
            return false;
        }
        column->data = grown;
        memcpy(column->data + column->data_bytes, text, (size_t)bytes);
        column->data_bytes += bytes;
    }
    if (text != NULL) {
        column->validity[column->rows / 8] |= (uint8_t)(1U << (column->rows % 8));
    } else {
        column->nulls++;
    }
    column->offsets[++column->rows] = column->data_bytes;
    return true;
}

/* What an exported array owns; children are released with it. */
struct exported {
    struct text_column columns[OUTPUT_COLUMNS];
    const void *buffers[OUTPUT_COLUMNS][3];
    struct ArrowArray children[OUTPUT_COLUMNS];
    struct ArrowArray *child_pointers[OUTPUT_COLUMNS];
    const void *no_buffer[1];
};

static void release_child(struct ArrowArray *array)
{
    array->release = NULL; /* the parent owns everything */
}

static void release_exported(struct ArrowArray *array)
{
    struct exported *e = array->private_data;
    for (int c = 0; c < OUTPUT_COLUMNS; c++) {
        if (e->children[c].release != NULL) {
            e->children[c].release(&e->children[c]);
        }
        text_column_destroy(&e->columns[c]);
    }
    free(e);
    array->release = NULL;
}

static void fill_array(struct exported *e, struct ArrowArray *out)
{
    for (int c = 0; c < OUTPUT_COLUMNS; c++) {
        struct text_column *column = &e->columns[c];
        e->buffers[c][0] = column->nulls > 0 ? column->validity : NULL;
        e->buffers[c][1] = column->offsets;
        e->buffers[c][2] = column->data;
        e->children[c] = (struct ArrowArray){.length = column->rows,
                                             .null_count = column->nulls,
                                             .n_buffers = 3,
                                             .buffers = e->buffers[c],
                                             .release = release_child};
        e->child_pointers[c] = &e->children[c];
    }
    *out = (struct ArrowArray){.length = e->columns[0].rows,
                               .n_buffers = 1,
                               .n_children = OUTPUT_COLUMNS,
                               .buffers = e->no_buffer,
                               .children = e->child_pointers,
                               .release = release_exported,
                               .private_data = e};
}

static void release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL; /* static parts */
}

static void describe_schema(struct ArrowSchema *out, struct ArrowSchema *children,
                            struct ArrowSchema **pointers)
{
    static const char *const names[OUTPUT_COLUMNS] = {"column", "type", "count", "nulls",
                                                      "min",    "max",  "mean",  "stddev"};
    for (int c = 0; c < OUTPUT_COLUMNS; c++) {
        children[c] = (struct ArrowSchema){.format = "U",
                                           .name = names[c],
                                           .flags = ARROW_FLAG_NULLABLE,
                                           .release = release_schema};
        pointers[c] = &children[c];
    }
    *out = (struct ArrowSchema){.format = "+s",
                                .name = "",
                                .n_children = OUTPUT_COLUMNS,
                                .children = pointers,
                                .release = release_schema};
}

/* Text of row 0 of a large_string child, NULL for null. */
static const char *first_text(const struct ArrowArray *row, int64_t child, int64_t *out_bytes)
{
    const struct ArrowArray *array = row->children[child];
    const uint8_t *validity = array->buffers[0];
    const int64_t *offsets = (const int64_t *)array->buffers[1] + array->offset;
    if (validity != NULL && ((validity[array->offset / 8] >> (array->offset % 8)) & 1) == 0) {
        return NULL;
    }
    *out_bytes = offsets[1] - offsets[0];
    return *out_bytes == 0 ? "" : (const char *)array->buffers[2] + offsets[0];
}

static bool fill_rows(struct exported *e, const struct gar_frame *frame,
                      const struct ArrowArray *row, int64_t columns)
{
    for (int64_t c = 0; c < columns; c++) {
        const char *name = gar_frame_column_name(frame, c);
        char *type = NULL;
        if (gar_frame_column_type(frame, c, &type, NULL) != GAR_OK) {
            return false;
        }
        bool is_good = text_column_append(&e->columns[0], name, (int64_t)strlen(name)) &&
                       text_column_append(&e->columns[1], type, (int64_t)strlen(type));
        gar_text_free(type);
        for (int f = 0; f < FIGURES && is_good; f++) {
            int64_t bytes = 0;
            const char *text = first_text(row, c * FIGURES + f, &bytes);
            is_good = text_column_append(&e->columns[2 + f], text, bytes);
        }
        if (!is_good) {
            return false;
        }
    }
    return true;
}

static enum gar_status out_of_memory(struct gar_error *err)
{
    err->status = GAR_ERR_NOMEM;
    (void)snprintf(err->message, sizeof err->message, "out of memory");
    return GAR_ERR_NOMEM;
}

static enum gar_status print_figures(struct gar_session *session, const struct gar_frame *frame,
                                     const struct ArrowArray *row, int64_t columns,
                                     enum output_format format, struct gar_error *err)
{
    struct exported *e = calloc(1, sizeof *e);
    if (e == NULL) {
        return out_of_memory(err);
    }
    bool is_good = true;
    for (int c = 0; c < OUTPUT_COLUMNS && is_good; c++) {
        is_good = text_column_init(&e->columns[c], columns);
    }
    struct ArrowArray array;
    is_good = is_good && fill_rows(e, frame, row, columns);
    fill_array(e, &array);
    if (!is_good) {
        array.release(&array);
        return out_of_memory(err);
    }
    struct ArrowSchema schema;
    struct ArrowSchema children[OUTPUT_COLUMNS];
    struct ArrowSchema *pointers[OUTPUT_COLUMNS];
    describe_schema(&schema, children, pointers);
    struct gar_frame *table = NULL;
    enum gar_status status = gar_frame_from_arrow(session, &schema, &array, &table, err);
    if (status == GAR_OK) {
        status = output_frame(table, format, columns, err);
        gar_frame_release(table);
    }
    return status;
}

enum gar_status output_describe(struct gar_session *session, const struct gar_frame *frame,
                                enum output_format format, struct gar_error *err)
{
    const int64_t columns = gar_frame_column_count(frame);
    struct gar_expr **exprs = calloc((size_t)(columns * FIGURES) + 1, sizeof *exprs);
    if (exprs == NULL) {
        return out_of_memory(err);
    }
    enum gar_status status = GAR_OK;
    int64_t made = 0;
    for (; made < columns * FIGURES && status == GAR_OK; made++) {
        status = figure_expr(frame, made / FIGURES, (int)(made % FIGURES), &exprs[made], err);
    }
    struct gar_frame *figures = NULL;
    if (status == GAR_OK) {
        status = gar_frame_aggregate(frame, NULL, 0, exprs, columns * FIGURES, &figures, err);
    }
    for (int64_t i = 0; i < made; i++) {
        gar_expr_release(exprs[i]);
    }
    free((void *)exprs);
    struct gar_result *result = NULL;
    struct gar_run_options run;
    input_run_options(&run);
    if (status == GAR_OK) {
        status = gar_frame_run(figures, &run, &result, err);
    }
    struct ArrowArray row;
    if (status == GAR_OK) {
        status = gar_result_next(result, GAR_TEXT_AS_LARGE, &row, err);
    }
    if (status == GAR_OK) {
        status = print_figures(session, frame, &row, columns, format, err);
        row.release(&row);
    }
    gar_result_release(result);
    gar_frame_release(figures);
    return status;
}
