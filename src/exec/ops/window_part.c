/* SPDX-License-Identifier: Apache-2.0 */
/* One sort of row numbers by partition and order; pieces are independent of each other. */
#include "exec/ops/window_part.h"

#include <string.h>

#include "arrow/gather.h"
#include "base/alloc.h"
#include "base/stop.h"
#include "kernels/sort_key.h"

enum { PIECE_ROWS = 1 << 15 };

/* ---- sorting ---- */

static enum gar_status make_sorters(struct gar_window_part *part, struct gar_error *err)
{
    const int64_t parts = part->task->shape->partition_count;
    const int64_t count = parts + part->task->shape->order_count;
    struct gar_sort_column *keys =
        (struct gar_sort_column *)gar_calloc(count, (int64_t)sizeof *keys);
    if (keys == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *keys);
    }
    for (int64_t k = 0; k < count; k++) {
        keys[k].column = part->computed[k];
        keys[k].descending = k >= parts && (part->task->shape->descending >> (k - parts) & 1) != 0;
        keys[k].nulls_first =
            k >= parts && (part->task->shape->nulls_first >> (k - parts) & 1) != 0;
    }
    enum gar_status status = GAR_OK;
    if (parts > 0) {
        status = gar_sorter_new(keys, parts, part->rows, &part->parts, err);
    }
    if (status >= 0 && count > 0) {
        status = gar_sorter_new(keys, count, part->rows, &part->sorter, err);
    }
    gar_free(keys);
    return status;
}

static uint32_t *order_of(const struct gar_window_part *part)
{
    return (uint32_t *)(void *)part->order->data;
}

static enum gar_status sort_rows(struct gar_window_part *part, struct gar_error *err)
{
    struct gar_buffer *entries = NULL;
    struct gar_buffer *scratch = NULL;
    const int64_t bytes = part->rows * (int64_t)sizeof(struct gar_sort_entry);
    GAR_TRY(gar_buffer_new(part->task->memory, part->rows * 4, &part->order, err));
    uint32_t *order = order_of(part);
    if (part->sorter == NULL) {
        for (int64_t i = 0; i < part->rows; i++) {
            order[i] = (uint32_t)i;
        }
        return GAR_OK;
    }
    enum gar_status status = gar_buffer_new(part->task->memory, bytes, &entries, err);
    if (status >= 0) {
        status = gar_buffer_new(part->task->memory, bytes, &scratch, err);
    }
    if (status >= 0) {
        struct gar_sort_entry *sorted = (struct gar_sort_entry *)(void *)entries->data;
        gar_sorter_fill(part->sorter, 0, part->rows, sorted);
        gar_sorter_sort(part->sorter, sorted, (struct gar_sort_entry *)(void *)scratch->data,
                        part->rows);
        status = gar_stop_check(err); /* then they are in no order */
        for (int64_t i = 0; i < part->rows; i++) {
            order[i] = sorted[i].row;
        }
    }
    gar_buffer_unref(entries);
    gar_buffer_unref(scratch);
    return status;
}

static bool is_new_partition(const struct gar_window_part *part, int64_t i)
{
    return part->parts != NULL &&
           gar_sorter_compare(part->parts, order_of(part)[i - 1], order_of(part)[i]) != 0;
}

static enum gar_status add_piece(struct gar_window_part *part, int64_t first, int64_t end,
                                 struct gar_error *err)
{
    GAR_TRY(gar_grow((void **)&part->pieces, &part->piece_capacity, part->piece_count + 1,
                     (int64_t)sizeof *part->pieces, err));
    struct gar_window_piece *piece = &part->pieces[part->piece_count];
    *piece = (struct gar_window_piece){.first = first, .end = end};
    piece->results = (struct gar_column **)gar_calloc(part->task->call_count,
                                                      (int64_t)sizeof(struct gar_column *));
    if (piece->results == NULL) {
        return gar_error_nomem(err, part->task->call_count * 8);
    }
    part->piece_count++;
    return GAR_OK;
}

enum gar_status gar_window_part_sort(struct gar_window_part *part, struct gar_error *err)
{
    GAR_TRY(make_sorters(part, err));
    GAR_TRY(sort_rows(part, err));
    int64_t first = 0;
    for (int64_t i = 1; i < part->rows; i++) {
        if (i - first >= PIECE_ROWS && is_new_partition(part, i)) {
            GAR_TRY(gar_stop_check(err));
            GAR_TRY(add_piece(part, first, i, err));
            first = i;
        }
    }
    return add_piece(part, first, part->rows, err);
}

/* ---- pieces ---- */

/* Firsts and ends of partitions and peers. */
static enum gar_status mark_rows(const struct gar_window_part *part,
                                 const struct gar_window_piece *piece, struct gar_window_rows *rows,
                                 struct gar_error *err)
{
    const uint32_t *order = order_of(part) + piece->first;
    const bool has_order = part->task->shape->order_count > 0;
    for (int64_t i = 0; i < rows->count; i++) {
        const bool is_part = i == 0 || is_new_partition(part, piece->first + i);
        const bool is_peer =
            !is_part &&
            (!has_order || gar_sorter_compare(part->sorter, order[i - 1], order[i]) == 0);
        rows->part_first[i] = is_part ? i : rows->part_first[i - 1];
        rows->peer_first[i] = is_peer ? rows->peer_first[i - 1] : i;
        if ((i & 4095) == 0) {
            GAR_TRY(gar_stop_check(err));
        }
    }
    for (int64_t i = rows->count - 1; i >= 0; i--) {
        const bool is_last = i == rows->count - 1;
        rows->part_end[i] =
            is_last || rows->part_first[i + 1] == i + 1 ? i + 1 : rows->part_end[i + 1];
        rows->peer_end[i] =
            is_last || rows->peer_first[i + 1] == i + 1 ? i + 1 : rows->peer_end[i + 1];
    }
    return GAR_OK;
}

static enum gar_status compute_calls(struct gar_window_part *part, struct gar_window_piece *piece,
                                     struct gar_window_rows *rows, struct gar_error *err)
{
    const int64_t keys = part->task->shape->partition_count + part->task->shape->order_count;
    for (int64_t c = keys; c < part->task->computed_count; c++) {
        GAR_TRY(gar_column_gather(part->computed[c], order_of(part) + piece->first, rows->count,
                                  part->task->memory, &rows->inputs[c], err));
    }
    GAR_TRY(mark_rows(part, piece, rows, err));
    for (int64_t c = 0; c < part->task->call_count; c++) {
        const enum gar_status status =
            gar_window_compute(&part->task->calls[c], rows, &piece->results[c], err);
        if (status < 0) {
            gar_error_prefix(
                err, "column '%s': ", part->task->schema->fields[part->task->input_count + c].name);
            return status;
        }
    }
    return GAR_OK;
}

enum gar_status gar_window_part_compute(struct gar_window_part *part, int64_t item,
                                        struct gar_error *err)
{
    struct gar_window_piece *piece = &part->pieces[item];
    const int64_t count = piece->end - piece->first;
    struct gar_window_rows rows = {.count = count, .memory = part->task->memory};
    struct gar_buffer *marks = NULL;
    GAR_TRY(gar_buffer_new(part->task->memory, 4 * count * (int64_t)sizeof(int64_t), &marks, err));
    rows.part_first = (int64_t *)(void *)marks->data;
    rows.part_end = rows.part_first + count;
    rows.peer_first = rows.part_end + count;
    rows.peer_end = rows.peer_first + count;
    rows.inputs = (struct gar_column **)gar_calloc(part->task->computed_count,
                                                   (int64_t)sizeof(struct gar_column *));
    const enum gar_status status = rows.inputs != NULL
                                       ? compute_calls(part, piece, &rows, err)
                                       : gar_error_nomem(err, part->task->computed_count * 8);
    for (int64_t c = 0; rows.inputs != NULL && c < part->task->computed_count; c++) {
        gar_column_unref(rows.inputs[c]);
    }
    gar_free(rows.inputs);
    gar_buffer_unref(marks);
    return status;
}

enum gar_status gar_window_part_join(struct gar_window_part *part, int64_t call,
                                     struct gar_error *err)
{
    struct gar_column **parts =
        (struct gar_column **)gar_calloc(part->piece_count, (int64_t)sizeof *parts);
    if (parts == NULL) {
        return gar_error_nomem(err, part->piece_count * 8);
    }
    for (int64_t i = 0; i < part->piece_count; i++) {
        parts[i] = part->pieces[i].results[call];
    }
    const enum gar_status status =
        gar_column_concat(parts, part->piece_count, part->task->calls[call].type,
                          part->task->memory, &part->results[call], err);
    gar_free(parts);
    return status;
}

enum gar_status gar_window_part_places(struct gar_window_part *part, struct gar_error *err)
{
    GAR_TRY(gar_buffer_new(part->task->memory, part->rows * 4, &part->places, err));
    uint32_t *places = (uint32_t *)(void *)part->places->data;
    for (int64_t i = 0; i < part->rows; i++) {
        places[order_of(part)[i]] = (uint32_t)i;
    }
    return GAR_OK;
}

/* ---- life ---- */

static void free_pieces(struct gar_window_part *part)
{
    for (int64_t i = 0; i < part->piece_count; i++) {
        for (int64_t c = 0; c < part->task->call_count; c++) {
            gar_column_unref(part->pieces[i].results[c]);
        }
        gar_free(part->pieces[i].results);
    }
    gar_free(part->pieces);
    part->pieces = NULL;
    part->piece_count = 0;
}

/* What only computing needed. */
void gar_window_part_computed(struct gar_window_part *part)
{
    gar_sorter_free(part->parts);
    gar_sorter_free(part->sorter);
    part->parts = NULL;
    part->sorter = NULL;
    for (int64_t c = 0; part->computed != NULL && c < part->task->computed_count; c++) {
        gar_column_unref(part->computed[c]);
        part->computed[c] = NULL;
    }
}

enum gar_status gar_window_part_init(struct gar_window_part *part,
                                     const struct gar_window_task *task, int64_t rows,
                                     struct gar_error *err)
{
    *part = (struct gar_window_part){.task = task, .rows = rows};
    part->computed = (struct gar_column **)gar_calloc(task->computed_count,
                                                      (int64_t)sizeof(struct gar_column *));
    part->results =
        (struct gar_column **)gar_calloc(task->call_count, (int64_t)sizeof(struct gar_column *));
    if (part->computed == NULL || part->results == NULL) {
        return gar_error_nomem(err, (task->computed_count + task->call_count) * 8);
    }
    if (rows > UINT32_MAX - 1) {
        return gar_error_set(err, GAR_ERR_UNSUPPORTED,
                             "a window over %lld rows; at most 4294967294 rows fit into one sort",
                             (long long)rows);
    }
    return GAR_OK;
}

void gar_window_part_joined(struct gar_window_part *part)
{
    free_pieces(part);
    gar_buffer_unref(part->order);
    part->order = NULL;
}

void gar_window_part_destroy(struct gar_window_part *part)
{
    gar_window_part_computed(part);
    gar_window_part_joined(part);
    gar_free(part->computed);
    for (int64_t c = 0; part->results != NULL && c < part->task->call_count; c++) {
        gar_column_unref(part->results[c]);
    }
    gar_free(part->results);
    gar_buffer_unref(part->places);
    *part = (struct gar_window_part){.task = NULL};
}
