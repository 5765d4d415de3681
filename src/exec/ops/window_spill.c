/* SPDX-License-Identifier: Apache-2.0 */
/* Every block of a part carries the rows' numbers within their group, so that the results of all parts find their rows. */
#include "exec/ops/window_spill.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/gather.h"
#include "base/alloc.h"
#include "base/stop.h"
#include "exec/spilled.h"
#include "kernels/hash_rows.h"

enum {
    GROUP_ROWS = 1 << 17,
    GROUP_ROWS_FORCED = 64, /* where tests let everything spill */
    GROUP_BYTES_MIN = 1 << 18,
    GROUP_BYTES_MAX = 64 << 20,
    GROUP_SHARE = 16, /* of the room, of each worker */
    PART_BITS_MAX = 10,
    PART_BITS_FORCED = 2,
    PART_COPIES = 3,     /* of the computed columns while a part is computed */
    PART_ROW_BYTES = 64, /* besides, and for each call: */
    PART_CALL_BYTES = 24,
};

/* Blocks [first, end) of a run. */
struct blocks {
    int64_t first;
    int64_t end;
};

struct put {
    int64_t seq;
    int64_t row;
    int64_t rows;
    int64_t bytes; /* of the computed columns in memory */
    int64_t all_bytes;
    int32_t worker;
    struct blocks input;
    struct blocks computed;
};

struct put_list {
    struct gar_spilled input;
    struct gar_spilled computed;
    struct put *items; /* owned */
    int64_t count;
    int64_t capacity;
};

struct group {
    int64_t first; /* of the puts */
    int64_t count;
    int64_t rows;
    struct gar_spilled run; /* divided computed columns */
    int64_t *starts;        /* owned; of each part's blocks in the run, and the end */
    /* while it is read */
    bool is_open;
    struct gar_column **results; /* owned; a column a call, part by part */
    struct gar_buffer *places;   /* owned; uint32_t: where each row lies in them */
    int64_t put;                 /* that batch is of */
    int64_t put_first;           /* its first row in the group */
    struct gar_batch *batch;     /* owned */
};

struct part {
    struct gar_spilled run; /* results */
    int64_t *starts;        /* owned; of each group's blocks, and the end */
};

struct gar_window_spill {
    const struct gar_window_task *task;
    struct gar_query *query;
    struct gar_schema *input;    /* owned reference */
    struct gar_schema *computed; /* owned reference */
    struct gar_schema *divided;  /* owned; computed columns and the row's number */
    struct gar_schema *results;  /* owned; of calls, and the row's number */
    struct gar_key_layout layout;
    struct put_list *lists; /* owned; one a worker */
    int32_t workers;
    struct put *puts; /* owned; all, in order */
    int64_t put_count;
    struct group *groups; /* owned */
    int64_t group_count;
    struct part *parts; /* owned */
    int32_t part_bits;
};

/* ---- making ---- */

/* Numbered fields of the types, and, where asked, one for the row's number. */
static enum gar_status make_schema(const struct gar_type *types, int64_t count, bool has_row,
                                   struct gar_schema **out, struct gar_error *err)
{
    const int64_t all = count + (has_row ? 1 : 0);
    struct gar_field *fields = (struct gar_field *)gar_calloc(all, (int64_t)sizeof *fields);
    char(*names)[24] = (char(*)[24])gar_calloc(all, 24);
    enum gar_status status =
        fields != NULL && names != NULL ? GAR_OK : gar_error_nomem(err, all * 24);
    for (int64_t i = 0; i < all && status >= 0; i++) {
        (void)snprintf(names[i], sizeof names[i], "%lld", (long long)i);
        fields[i] = (struct gar_field){.name = names[i],
                                       .type = i < count ? types[i] : gar_type_of(GAR_UINT32),
                                       .nullable = true};
    }
    if (status >= 0) {
        status = gar_schema_new(fields, all, false, out, err);
    }
    gar_free(fields);
    gar_free(names);
    return status;
}

static enum gar_status make_schemas(struct gar_window_spill *spill, const struct gar_type *types,
                                    struct gar_error *err)
{
    const struct gar_window_task *task = spill->task;
    struct gar_type *calls =
        (struct gar_type *)gar_calloc(task->call_count, (int64_t)sizeof *calls);
    if (calls == NULL) {
        return gar_error_nomem(err, task->call_count * (int64_t)sizeof *calls);
    }
    for (int64_t c = 0; c < task->call_count; c++) {
        calls[c] = task->calls[c].type;
    }
    enum gar_status status = make_schema(types, task->computed_count, false, &spill->computed, err);
    if (status >= 0) {
        status = make_schema(types, task->computed_count, true, &spill->divided, err);
    }
    if (status >= 0) {
        status = make_schema(calls, task->call_count, true, &spill->results, err);
    }
    gar_free(calls);
    return status;
}

enum gar_status gar_window_spill_new(const struct gar_window_task *task, struct gar_query *query,
                                     struct gar_schema *input, const struct gar_type *types,
                                     int32_t workers, struct gar_window_spill **out,
                                     struct gar_error *err)
{
    struct gar_window_spill *spill =
        (struct gar_window_spill *)gar_calloc(1, (int64_t)sizeof *spill);
    if (spill == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *spill);
    }
    spill->task = task;
    spill->query = query;
    spill->input = gar_schema_ref(input);
    enum gar_status status = make_schemas(spill, types, err);
    if (status >= 0) {
        status = gar_key_layout_init(&spill->layout, types, task->shape->partition_count, err);
    }
    if (status >= 0) {
        spill->lists = (struct put_list *)gar_calloc(workers, (int64_t)sizeof *spill->lists);
        status = spill->lists != NULL
                     ? GAR_OK
                     : gar_error_nomem(err, workers * (int64_t)sizeof *spill->lists);
    }
    if (status < 0) {
        gar_window_spill_free(spill);
        return status;
    }
    spill->workers = workers;
    for (int32_t i = 0; i < workers; i++) {
        gar_spilled_init(&spill->lists[i].input, query->spill, spill->input);
        gar_spilled_init(&spill->lists[i].computed, query->spill, spill->computed);
    }
    *out = spill;
    return GAR_OK;
}

static void close_group(const struct gar_window_spill *spill, struct group *group)
{
    for (int64_t c = 0; group->results != NULL && c < spill->task->call_count; c++) {
        gar_column_unref(group->results[c]);
    }
    gar_free(group->results);
    gar_buffer_unref(group->places);
    gar_batch_unref(group->batch);
    group->results = NULL;
    group->places = NULL;
    group->batch = NULL;
}

void gar_window_spill_free(struct gar_window_spill *spill)
{
    if (spill == NULL) {
        return;
    }
    for (int32_t i = 0; i < spill->workers; i++) {
        gar_spilled_destroy(&spill->lists[i].input);
        gar_spilled_destroy(&spill->lists[i].computed);
        gar_free(spill->lists[i].items);
    }
    for (int64_t g = 0; g < spill->group_count; g++) {
        close_group(spill, &spill->groups[g]);
        gar_spilled_destroy(&spill->groups[g].run);
        gar_free(spill->groups[g].starts);
    }
    for (int64_t p = 0; spill->parts != NULL && p < gar_window_spill_parts(spill); p++) {
        gar_spilled_destroy(&spill->parts[p].run);
        gar_free(spill->parts[p].starts);
    }
    gar_free(spill->lists);
    gar_free(spill->puts);
    gar_free(spill->groups);
    gar_free(spill->parts);
    gar_key_layout_destroy(&spill->layout);
    gar_schema_unref(spill->input);
    gar_schema_unref(spill->computed);
    gar_schema_unref(spill->divided);
    gar_schema_unref(spill->results);
    gar_free(spill);
}

/* ---- writing ---- */

static int64_t held_bytes(struct gar_column *const *columns, int64_t count)
{
    int64_t bytes = 0;
    for (int64_t c = 0; c < count; c++) {
        bytes += gar_max_i64(gar_column_bytes(columns[c]),
                             columns[c]->length * gar_max_i64(gar_type_width(columns[c]->type), 1));
    }
    return bytes;
}

/* Add the columns (references are taken) to a run, unless it has none. */
static enum gar_status put_columns(struct gar_window_spill *spill, struct gar_spilled *run,
                                   struct gar_column *const *columns, int64_t rows,
                                   struct blocks *out, struct gar_error *err)
{
    struct gar_memory *memory = spill->task->memory;
    struct gar_column **copies = NULL;
    struct gar_batch *batch = NULL;
    const int64_t count = run->schema->count;
    *out = (struct blocks){run->count, run->count};
    if (count == 0) {
        return GAR_OK;
    }
    copies = (struct gar_column **)gar_calloc(count, (int64_t)sizeof *copies);
    if (copies == NULL) {
        return gar_error_nomem(err, count * 8);
    }
    for (int64_t c = 0; c < count; c++) {
        copies[c] = gar_column_ref(columns[c]);
    }
    enum gar_status status = gar_batch_new(run->schema, copies, rows, &batch, err);
    if (status >= 0) {
        status = gar_spilled_add(run, batch, memory, err);
        gar_batch_unref(batch);
    } else {
        for (int64_t c = 0; c < count; c++) {
            gar_column_unref(copies[c]);
        }
    }
    gar_free(copies);
    out->end = run->count;
    return status;
}

enum gar_status gar_window_spill_put(struct gar_window_spill *spill, int32_t worker,
                                     struct gar_column *const *columns, int64_t rows, int64_t seq,
                                     int64_t row, struct gar_error *err)
{
    const struct gar_window_task *task = spill->task;
    struct put_list *list = &spill->lists[worker];
    GAR_TRY(gar_stop_check(err));
    GAR_TRY(gar_grow((void **)&list->items, &list->capacity, list->count + 1,
                     (int64_t)sizeof *list->items, err));
    struct put *put = &list->items[list->count];
    *put = (struct put){.seq = seq, .row = row, .rows = rows, .worker = worker};
    put->bytes = held_bytes(columns + task->input_count, task->computed_count);
    put->all_bytes = put->bytes + held_bytes(columns, task->input_count);
    GAR_TRY(put_columns(spill, &list->input, columns, rows, &put->input, err));
    GAR_TRY(put_columns(spill, &list->computed, columns + task->input_count, rows, &put->computed,
                        err));
    list->count++;
    return GAR_OK;
}

/* ---- reading ---- */

/* Batches of a run's blocks, which are given back. Owns: caller unrefs them, also on failure. */
static enum gar_status read_blocks(struct gar_window_spill *spill, struct gar_spilled *run,
                                   struct blocks blocks, struct gar_batch **out,
                                   struct gar_error *err)
{
    for (int64_t i = blocks.first; i < blocks.end; i++) {
        GAR_TRY(gar_stop_check(err));
        GAR_TRY(gar_spilled_read(run, i, spill->task->memory, &out[i - blocks.first], err));
        gar_spilled_release(run, i);
    }
    return GAR_OK;
}

static void unref_batches(struct gar_batch **batches, int64_t count)
{
    for (int64_t i = 0; batches != NULL && i < count; i++) {
        gar_batch_unref(batches[i]);
    }
    gar_free(batches);
}

/* Column c of all batches. */
static enum gar_status join_column(const struct gar_window_spill *spill,
                                   struct gar_batch *const *batches, int64_t count,
                                   const struct gar_schema *schema, int64_t c,
                                   struct gar_column **out, struct gar_error *err)
{
    struct gar_column **columns = (struct gar_column **)gar_calloc(count, (int64_t)sizeof *columns);
    if (columns == NULL) {
        return gar_error_nomem(err, count * 8);
    }
    for (int64_t i = 0; i < count; i++) {
        columns[i] = batches[i]->columns[c];
    }
    const enum gar_status status =
        gar_column_concat(columns, count, schema->fields[c].type, spill->task->memory, out, err);
    gar_free(columns);
    return status;
}

/* ---- groups ---- */

static int compare_puts(const void *a, const void *b)
{
    const struct put *x = (const struct put *)a;
    const struct put *y = (const struct put *)b;
    if (x->seq != y->seq) {
        return x->seq < y->seq ? -1 : 1;
    }
    return (x->row > y->row) - (x->row < y->row);
}

static enum gar_status list_puts(struct gar_window_spill *spill, struct gar_error *err)
{
    int64_t count = 0;
    for (int32_t i = 0; i < spill->workers; i++) {
        count += spill->lists[i].count;
    }
    spill->puts = (struct put *)gar_calloc(count, (int64_t)sizeof *spill->puts);
    spill->groups = (struct group *)gar_calloc(count, (int64_t)sizeof *spill->groups);
    if (spill->puts == NULL || spill->groups == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *spill->groups);
    }
    for (int32_t i = 0; i < spill->workers; i++) {
        for (int64_t k = 0; k < spill->lists[i].count; k++) {
            spill->puts[spill->put_count++] = spill->lists[i].items[k];
        }
    }
    qsort(spill->puts, (size_t)spill->put_count, sizeof *spill->puts, compare_puts);
    return GAR_OK;
}

/* Puts that follow each other until they have enough rows or bytes. */
static void make_groups(struct gar_window_spill *spill, int64_t room)
{
    const struct gar_query *query = spill->query;
    const int64_t max_rows = query->spills_always ? GROUP_ROWS_FORCED : GROUP_ROWS;
    const int64_t share = room / ((int64_t)GROUP_SHARE * query->workers);
    const int64_t max_bytes = gar_max_i64(GROUP_BYTES_MIN, gar_min_i64(GROUP_BYTES_MAX, share));
    int64_t bytes = 0;
    for (int64_t i = 0; i < spill->put_count; i++) {
        struct group *group =
            spill->group_count > 0 ? &spill->groups[spill->group_count - 1] : NULL;
        if (group == NULL || group->rows >= max_rows || bytes >= max_bytes) {
            group = &spill->groups[spill->group_count++];
            *group = (struct group){.first = i};
            gar_spilled_init(&group->run, query->spill, spill->divided);
            bytes = 0;
        }
        group->count++;
        group->rows += spill->puts[i].rows;
        bytes += spill->puts[i].all_bytes;
    }
}

/* So many parts that what all workers have of them at once takes half of the room. */
static enum gar_status make_parts(struct gar_window_spill *spill, int64_t room,
                                  struct gar_error *err)
{
    const struct gar_window_task *task = spill->task;
    int64_t bytes = 0;
    for (int64_t i = 0; i < spill->put_count; i++) {
        bytes += PART_COPIES * spill->puts[i].bytes +
                 spill->puts[i].rows * (PART_ROW_BYTES + PART_CALL_BYTES * task->call_count);
    }
    const int64_t share = room / 2 / spill->query->workers;
    while (task->shape->partition_count > 0 && spill->part_bits < PART_BITS_MAX &&
           ((bytes >> spill->part_bits) > share ||
            (spill->query->spills_always && spill->part_bits < PART_BITS_FORCED))) {
        spill->part_bits++;
    }
    const int64_t count = gar_window_spill_parts(spill);
    spill->parts = (struct part *)gar_calloc(count, (int64_t)sizeof *spill->parts);
    if (spill->parts == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *spill->parts);
    }
    for (int64_t p = 0; p < count; p++) {
        gar_spilled_init(&spill->parts[p].run, spill->query->spill, spill->results);
        spill->parts[p].starts =
            (int64_t *)gar_calloc(spill->group_count + 1, (int64_t)sizeof(int64_t));
        if (spill->parts[p].starts == NULL) {
            return gar_error_nomem(err, spill->group_count * 8);
        }
    }
    for (int64_t g = 0; g < spill->group_count; g++) {
        spill->groups[g].starts = (int64_t *)gar_calloc(count + 1, (int64_t)sizeof(int64_t));
        if (spill->groups[g].starts == NULL) {
            return gar_error_nomem(err, count * 8);
        }
    }
    return GAR_OK;
}

enum gar_status gar_window_spill_plan(struct gar_window_spill *spill, int64_t *out_groups,
                                      struct gar_error *err)
{
    int64_t limit = 0;
    const int64_t room = gar_memory_room(spill->task->memory, &limit);
    GAR_TRY(list_puts(spill, err));
    make_groups(spill, room);
    GAR_TRY(make_parts(spill, room, err));
    *out_groups = spill->group_count;
    return GAR_OK;
}

/* ---- dividing ---- */

/* The computed columns of a group; none when nothing is computed. */
static enum gar_status read_computed(struct gar_window_spill *spill, const struct group *group,
                                     struct gar_column **columns, struct gar_error *err)
{
    int64_t count = 0;
    for (int64_t i = 0; i < group->count; i++) {
        const struct put *put = &spill->puts[group->first + i];
        count += put->computed.end - put->computed.first;
    }
    struct gar_batch **batches = (struct gar_batch **)gar_calloc(count, (int64_t)sizeof *batches);
    enum gar_status status = batches != NULL ? GAR_OK : gar_error_nomem(err, count * 8);
    int64_t at = 0;
    for (int64_t i = 0; i < group->count && status >= 0; i++) {
        const struct put *put = &spill->puts[group->first + i];
        status = read_blocks(spill, &spill->lists[put->worker].computed, put->computed,
                             batches + at, err);
        at += put->computed.end - put->computed.first;
    }
    for (int64_t c = 0; c < spill->task->computed_count && status >= 0; c++) {
        status = join_column(spill, batches, count, spill->computed, c, &columns[c], err);
    }
    unref_batches(batches, count);
    return status;
}

/* Row numbers 0 .. rows - 1 by part, in order within each; starts has the first of each part, and the end. */
static enum gar_status sort_into_parts(const struct gar_window_spill *spill,
                                       struct gar_column *const *columns, int64_t rows,
                                       uint32_t *sorted, uint32_t *starts, struct gar_error *err)
{
    const int64_t parts = gar_window_spill_parts(spill);
    const int64_t words = spill->layout.words;
    uint64_t *keys = (uint64_t *)gar_malloc(GAR_KEY_ROWS * words * (int64_t)sizeof *keys);
    uint16_t *part_of = (uint16_t *)gar_malloc(rows * (int64_t)sizeof *part_of);
    if (keys == NULL || part_of == NULL) {
        gar_free(keys);
        gar_free(part_of);
        return gar_error_nomem(err, rows * 2);
    }
    for (int64_t first = 0; first < rows; first += GAR_KEY_ROWS) {
        const int64_t count = gar_min_i64(GAR_KEY_ROWS, rows - first);
        if (spill->part_bits > 0) {
            gar_key_encode(&spill->layout, columns, first, count, keys);
        }
        for (int64_t i = 0; i < count; i++) {
            const uint32_t part = spill->part_bits > 0
                                      ? gar_key_hash(keys + i * words) >> (32 - spill->part_bits)
                                      : 0;
            part_of[first + i] = (uint16_t)part;
            starts[part + 1]++;
        }
    }
    for (int64_t p = 0; p < parts; p++) {
        starts[p + 1] += starts[p];
    }
    for (int64_t i = 0; i < rows; i++) {
        sorted[starts[part_of[i]]++] = (uint32_t)i;
    }
    for (int64_t p = parts; p > 0; p--) { /* each has come to the next one's first */
        starts[p] = starts[p - 1];
    }
    starts[0] = 0;
    gar_free(keys);
    gar_free(part_of);
    return GAR_OK;
}

static enum gar_status make_numbers(const struct gar_window_spill *spill, const uint32_t *rows,
                                    int64_t count, struct gar_column **out, struct gar_error *err)
{
    GAR_TRY(gar_column_new(spill->task->memory, gar_type_of(GAR_UINT32), count, false, out, err));
    if (count > 0) {
        memcpy(gar_column_values_mut(*out), rows, (size_t)count * sizeof *rows);
    }
    (*out)->null_count = 0;
    return GAR_OK;
}

/* Rows of one part, with their numbers, to the group's run. */
static enum gar_status write_divided(struct gar_window_spill *spill, struct group *group,
                                     struct gar_column *const *columns, const uint32_t *rows,
                                     int64_t count, struct gar_error *err)
{
    const int64_t computed = spill->task->computed_count;
    struct blocks unused;
    struct gar_column **gathered =
        (struct gar_column **)gar_calloc(computed + 1, (int64_t)sizeof *gathered);
    enum gar_status status = gathered != NULL ? GAR_OK : gar_error_nomem(err, computed * 8);
    for (int64_t c = 0; c < computed && status >= 0; c++) {
        status = gar_column_gather(columns[c], rows, count, spill->task->memory, &gathered[c], err);
    }
    if (status >= 0) {
        status = make_numbers(spill, rows, count, &gathered[computed], err);
    }
    if (status >= 0) {
        status = put_columns(spill, &group->run, gathered, count, &unused, err);
    }
    for (int64_t c = 0; gathered != NULL && c <= computed; c++) {
        gar_column_unref(gathered[c]);
    }
    gar_free(gathered);
    return status;
}

static enum gar_status write_parts(struct gar_window_spill *spill, struct group *group,
                                   struct gar_column *const *columns, uint32_t *sorted,
                                   uint32_t *starts, struct gar_error *err)
{
    const int64_t parts = gar_window_spill_parts(spill);
    GAR_TRY(sort_into_parts(spill, columns, group->rows, sorted, starts, err));
    for (int64_t p = 0; p < parts; p++) {
        if (starts[p + 1] > starts[p]) {
            GAR_TRY(gar_stop_check(err));
            GAR_TRY(write_divided(spill, group, columns, sorted + starts[p],
                                  (int64_t)starts[p + 1] - starts[p], err));
        }
        group->starts[p + 1] = group->run.count;
    }
    return GAR_OK;
}

enum gar_status gar_window_spill_divide(struct gar_window_spill *spill, int64_t group,
                                        struct gar_error *err)
{
    struct group *g = &spill->groups[group];
    const int64_t computed = spill->task->computed_count;
    const int64_t parts = gar_window_spill_parts(spill);
    struct gar_column **columns =
        (struct gar_column **)gar_calloc(computed, (int64_t)sizeof *columns);
    uint32_t *sorted = (uint32_t *)gar_malloc(g->rows * (int64_t)sizeof *sorted);
    uint32_t *starts = (uint32_t *)gar_calloc(parts + 1, (int64_t)sizeof *starts);
    enum gar_status status = columns != NULL && sorted != NULL && starts != NULL
                                 ? GAR_OK
                                 : gar_error_nomem(err, g->rows * 4);
    if (status >= 0) {
        status = read_computed(spill, g, columns, err);
    }
    if (status >= 0) {
        status = write_parts(spill, g, columns, sorted, starts, err);
    }
    for (int64_t c = 0; columns != NULL && c < computed; c++) {
        gar_column_unref(columns[c]);
    }
    gar_free(columns);
    gar_free(sorted);
    gar_free(starts);
    return status;
}

/* ---- parts ---- */

int64_t gar_window_spill_parts(const struct gar_window_spill *spill)
{
    return (int64_t)1 << spill->part_bits;
}

static struct blocks blocks_of_part(const struct group *group, int64_t part)
{
    return (struct blocks){group->starts[part], group->starts[part + 1]};
}

static struct blocks blocks_of_group(const struct part *part, int64_t group)
{
    return (struct blocks){part->starts[group], part->starts[group + 1]};
}

/* The part's rows in the order of the input: computed columns, and the numbers within the groups. */
struct loaded {
    struct gar_batch **batches; /* owned */
    int64_t count;
    int64_t *rows; /* owned; of each group */
    int64_t total;
};

static void free_loaded(struct loaded *loaded)
{
    unref_batches(loaded->batches, loaded->count);
    gar_free(loaded->rows);
    *loaded = (struct loaded){.batches = NULL};
}

static enum gar_status load_part(struct gar_window_spill *spill, int64_t part, struct loaded *out,
                                 struct gar_error *err)
{
    for (int64_t g = 0; g < spill->group_count; g++) {
        const struct blocks blocks = blocks_of_part(&spill->groups[g], part);
        out->count += blocks.end - blocks.first;
    }
    out->batches = (struct gar_batch **)gar_calloc(out->count, (int64_t)sizeof *out->batches);
    out->rows = (int64_t *)gar_calloc(spill->group_count, (int64_t)sizeof *out->rows);
    if (out->batches == NULL || out->rows == NULL) {
        return gar_error_nomem(err, out->count * 8);
    }
    int64_t at = 0;
    for (int64_t g = 0; g < spill->group_count; g++) {
        const struct blocks blocks = blocks_of_part(&spill->groups[g], part);
        GAR_TRY(read_blocks(spill, &spill->groups[g].run, blocks, out->batches + at, err));
        for (int64_t i = blocks.first; i < blocks.end; i++) {
            out->rows[g] += out->batches[at++]->rows;
        }
        out->total += out->rows[g];
    }
    return GAR_OK;
}

static enum gar_status compute_loaded(struct gar_window_spill *spill, struct loaded *loaded,
                                      struct gar_window_part *part, struct gar_error *err)
{
    for (int64_t c = 0; c < spill->task->computed_count; c++) {
        GAR_TRY(join_column(spill, loaded->batches, loaded->count, spill->divided, c,
                            &part->computed[c], err));
    }
    unref_batches(loaded->batches, loaded->count);
    loaded->batches = NULL;
    loaded->count = 0;
    GAR_TRY(gar_window_part_sort(part, err));
    for (int64_t i = 0; i < part->piece_count; i++) {
        GAR_TRY(gar_window_part_compute(part, i, err));
    }
    gar_window_part_computed(part);
    for (int64_t c = 0; c < spill->task->call_count; c++) {
        GAR_TRY(gar_window_part_join(part, c, err));
    }
    GAR_TRY(gar_window_part_places(part, err));
    gar_window_part_joined(part);
    return GAR_OK;
}

/* Rows [first, first + count) of the part in the order of the input. */
static enum gar_status write_result(struct gar_window_spill *spill, struct part *to,
                                    const struct gar_window_part *part, struct gar_column *numbers,
                                    int64_t first, int64_t count, struct gar_error *err)
{
    const int64_t calls = spill->task->call_count;
    const uint32_t *places = (const uint32_t *)(const void *)part->places->data + first;
    struct blocks unused;
    struct gar_column **columns =
        (struct gar_column **)gar_calloc(calls + 1, (int64_t)sizeof *columns);
    enum gar_status status = columns != NULL ? GAR_OK : gar_error_nomem(err, calls * 8);
    for (int64_t c = 0; c < calls && status >= 0; c++) {
        status = gar_column_gather(part->results[c], places, count, spill->task->memory,
                                   &columns[c], err);
    }
    if (status >= 0) {
        status = gar_column_slice(numbers, first, count, &columns[calls], err);
    }
    if (status >= 0) {
        status = put_columns(spill, &to->run, columns, count, &unused, err);
    }
    for (int64_t c = 0; columns != NULL && c <= calls; c++) {
        gar_column_unref(columns[c]);
    }
    gar_free(columns);
    return status;
}

static enum gar_status write_results(struct gar_window_spill *spill, struct part *to,
                                     const struct loaded *loaded,
                                     const struct gar_window_part *part, struct gar_column *numbers,
                                     struct gar_error *err)
{
    int64_t first = 0;
    for (int64_t g = 0; g < spill->group_count; g++) {
        if (loaded->rows[g] > 0) {
            GAR_TRY(gar_stop_check(err));
            GAR_TRY(write_result(spill, to, part, numbers, first, loaded->rows[g], err));
        }
        first += loaded->rows[g];
        to->starts[g + 1] = to->run.count;
    }
    return GAR_OK;
}

static enum gar_status compute_part(struct gar_window_spill *spill, int64_t part,
                                    struct loaded *loaded, struct gar_window_part *rows,
                                    struct gar_column **numbers, struct gar_error *err)
{
    GAR_TRY(load_part(spill, part, loaded, err));
    if (loaded->total == 0) {
        return GAR_OK;
    }
    GAR_TRY(gar_window_part_init(rows, spill->task, loaded->total, err));
    GAR_TRY(join_column(spill, loaded->batches, loaded->count, spill->divided,
                        spill->task->computed_count, numbers, err));
    GAR_TRY(compute_loaded(spill, loaded, rows, err));
    return write_results(spill, &spill->parts[part], loaded, rows, *numbers, err);
}

enum gar_status gar_window_spill_compute(struct gar_window_spill *spill, int64_t part,
                                         struct gar_error *err)
{
    struct loaded loaded = {.batches = NULL};
    struct gar_window_part rows = {.task = NULL};
    struct gar_column *numbers = NULL;
    const enum gar_status status = compute_part(spill, part, &loaded, &rows, &numbers, err);
    if (status == GAR_ERR_NOMEM) {
        gar_error_prefix(err, "a partition of a window may be too large for the memory: ");
    }
    gar_column_unref(numbers);
    gar_window_part_destroy(&rows);
    free_loaded(&loaded);
    return status;
}

/* ---- the result ---- */

int64_t gar_window_spill_rows(const struct gar_window_spill *spill, int64_t group)
{
    return spill->groups[group].rows;
}

/* Where each row of the group lies in the results: the inverse of the numbers. */
static enum gar_status invert(const struct gar_window_spill *spill, struct group *group,
                              struct gar_batch *const *batches, int64_t count,
                              struct gar_error *err)
{
    GAR_TRY(gar_buffer_new(spill->task->memory, group->rows * (int64_t)sizeof(uint32_t),
                           &group->places, err));
    uint32_t *places = (uint32_t *)(void *)group->places->data;
    uint32_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        const struct gar_column *numbers = batches[i]->columns[spill->task->call_count];
        const uint32_t *rows = (const uint32_t *)numbers->values;
        for (int64_t k = 0; k < batches[i]->rows; k++) {
            places[rows[k]] = at++;
        }
    }
    return GAR_OK;
}

static enum gar_status join_group(struct gar_window_spill *spill, int64_t number,
                                  struct gar_batch **batches, int64_t count, struct gar_error *err)
{
    struct group *group = &spill->groups[number];
    int64_t at = 0;
    for (int64_t p = 0; p < gar_window_spill_parts(spill); p++) {
        const struct blocks blocks = blocks_of_group(&spill->parts[p], number);
        GAR_TRY(read_blocks(spill, &spill->parts[p].run, blocks, batches + at, err));
        at += blocks.end - blocks.first;
    }
    for (int64_t c = 0; c < spill->task->call_count; c++) {
        GAR_TRY(join_column(spill, batches, count, spill->results, c, &group->results[c], err));
    }
    return invert(spill, group, batches, count, err);
}

static enum gar_status open_group(struct gar_window_spill *spill, int64_t number,
                                  struct gar_error *err)
{
    struct group *group = &spill->groups[number];
    int64_t count = 0;
    for (int64_t p = 0; p < gar_window_spill_parts(spill); p++) {
        const struct blocks blocks = blocks_of_group(&spill->parts[p], number);
        count += blocks.end - blocks.first;
    }
    group->is_open = true;
    group->put = -1;
    group->results =
        (struct gar_column **)gar_calloc(spill->task->call_count, (int64_t)sizeof *group->results);
    struct gar_batch **batches = (struct gar_batch **)gar_calloc(count, (int64_t)sizeof *batches);
    const enum gar_status status = group->results != NULL && batches != NULL
                                       ? join_group(spill, number, batches, count, err)
                                       : gar_error_nomem(err, count * 8);
    unref_batches(batches, count);
    return status;
}

/* Read the batch that row `first` of the group is in. */
static enum gar_status open_put(struct gar_window_spill *spill, struct group *group, int64_t first,
                                struct gar_error *err)
{
    if (group->put < 0) {
        group->put = group->first;
    } else if (first < group->put_first + spill->puts[group->put].rows) {
        return GAR_OK;
    }
    while (first >= group->put_first + spill->puts[group->put].rows) {
        group->put_first += spill->puts[group->put].rows;
        group->put++;
    }
    gar_batch_unref(group->batch);
    group->batch = NULL;
    const struct put *put = &spill->puts[group->put];
    const int64_t count = put->input.end - put->input.first;
    if (count == 0) {
        return GAR_OK; /* no columns */
    }
    struct gar_batch **batches = (struct gar_batch **)gar_calloc(count, (int64_t)sizeof *batches);
    if (batches == NULL) {
        return gar_error_nomem(err, count * 8);
    }
    enum gar_status status =
        read_blocks(spill, &spill->lists[put->worker].input, put->input, batches, err);
    if (status >= 0 && count == 1) {
        group->batch = batches[0];
        batches[0] = NULL;
    } else if (status >= 0) {
        status =
            gar_batch_concat(spill->input, batches, count, spill->task->memory, &group->batch, err);
    }
    unref_batches(batches, count);
    return status;
}

enum gar_status gar_window_spill_read(struct gar_window_spill *spill, int64_t group, int64_t first,
                                      int64_t max_rows, struct gar_column **columns,
                                      int64_t *out_rows, struct gar_error *err)
{
    struct group *g = &spill->groups[group];
    const struct gar_window_task *task = spill->task;
    if (!g->is_open) {
        GAR_TRY(open_group(spill, group, err));
    }
    GAR_TRY(open_put(spill, g, first, err));
    const int64_t at = first - g->put_first;
    const int64_t count = gar_min_i64(max_rows, spill->puts[g->put].rows - at);
    const uint32_t *places = (const uint32_t *)(const void *)g->places->data + first;
    for (int64_t c = 0; c < task->input_count; c++) {
        GAR_TRY(gar_column_slice(g->batch->columns[c], at, count, &columns[c], err));
    }
    for (int64_t c = 0; c < task->call_count; c++) {
        GAR_TRY(gar_column_gather(g->results[c], places, count, task->memory,
                                  &columns[task->input_count + c], err));
    }
    *out_rows = count;
    return GAR_OK;
}

void gar_window_spill_leave(struct gar_window_spill *spill, int64_t group)
{
    close_group(spill, &spill->groups[group]);
}
