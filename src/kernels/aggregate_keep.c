/* SPDX-License-Identifier: Apache-2.0 */
/* Aggregates that need rows themselves: percentile, mode, string_agg, first, last, arg_min, arg_max.
 *
 * A state keeps the columns it was given with a column of groups and, where order matters, one of places. Sealing joins
 * them and sorts the rows by group and by what the kind looks for; percentiles are selected from the values of a group. Of
 * kinds that pick one row a group only candidates are kept: rows are cut to the best of each group whenever there are many
 * more than groups.
 *
 * Memory: all rows that are not null (percentile, mode, string_agg), else a few rows a group. */
#include <math.h>

#include "arrow/builder.h"
#include "arrow/gather.h"
#include "base/alloc.h"
#include "base/stop.h"
#include "kernels/aggregate_priv.h"
#include "kernels/select.h"
#include "kernels/sort_key.h"

enum { CUT_ROWS_MIN = 1 << 16, CUT_FACTOR = 4 };

/* What is kept of each row. */
enum part { PART_ARGUMENT, PART_GROUP, PART_PLACE, PART_SECOND, PART_NAN, PARTS };

struct chunk {
    struct gar_column *parts[PARTS]; /* owned; NULL: not needed by the kind */
    int64_t rows;
};

struct keep_state {
    struct gar_aggregate head;
    struct chunk *chunks; /* owned */
    int64_t chunk_count;
    int64_t chunk_capacity;
    int64_t rows;
    /* sealed */
    bool is_sealed;
    struct gar_column
        *values; /* owned; the arguments of all rows, or, of percentile, the results */
    struct gar_buffer *picked;  /* owned; int64_t per group: its row of values, -1 none */
    struct gar_buffer *entries; /* owned; string_agg: rows in order */
    struct gar_buffer *starts;  /* owned; string_agg: first entry of each group, and the end */
};

static void destroy_chunk(struct chunk *chunk)
{
    for (int32_t p = 0; p < PARTS; p++) {
        gar_column_unref(chunk->parts[p]);
        chunk->parts[p] = NULL;
    }
}

static void destroy_chunks(struct keep_state *state)
{
    for (int64_t i = 0; i < state->chunk_count; i++) {
        destroy_chunk(&state->chunks[i]);
    }
    state->chunk_count = 0;
    state->rows = 0;
}

static enum gar_aggregate_kind kind_of(const struct keep_state *state)
{
    return state->head.spec.kind;
}

static bool has_part(const struct keep_state *state, enum part part)
{
    const struct gar_aggregate_spec *spec = &state->head.spec;
    switch (part) {
    case PART_ARGUMENT:
    case PART_GROUP: return true;
    case PART_PLACE: return gar_aggregate_has_places(spec->kind);
    case PART_SECOND: return spec->has_second;
    case PART_NAN:
        return gar_type_is_float(spec->second) &&
               (spec->kind == GAR_AGGREGATE_ARG_MIN || spec->kind == GAR_AGGREGATE_ARG_MAX);
    case PARTS: break;
    }
    return false;
}

/* One row of each group is all that is wanted. */
static bool is_pick(const struct keep_state *state)
{
    return kind_of(state) >= GAR_AGGREGATE_FIRST && kind_of(state) <= GAR_AGGREGATE_ARG_MAX;
}

/* ---- sorting ---- */

struct sorted {
    struct gar_column *parts[PARTS]; /* owned */
    struct gar_sorter *sorter;       /* owned */
    struct gar_buffer *entries;      /* owned; struct gar_sort_entry */
    int64_t rows;
};

static void destroy_sorted(struct sorted *sorted)
{
    gar_sorter_free(sorted->sorter);
    for (int32_t p = 0; p < PARTS; p++) {
        gar_column_unref(sorted->parts[p]);
    }
    gar_buffer_unref(sorted->entries);
}

static enum gar_status join_part(const struct keep_state *state, int32_t part,
                                 struct gar_column **out, struct gar_error *err)
{
    struct gar_column **columns =
        (struct gar_column **)gar_calloc(state->chunk_count, (int64_t)sizeof *columns);
    if (columns == NULL) {
        return gar_error_nomem(err, state->chunk_count * 8);
    }
    for (int64_t i = 0; i < state->chunk_count; i++) {
        columns[i] = state->chunks[i].parts[part];
    }
    const enum gar_status status = gar_column_concat(columns, state->chunk_count, columns[0]->type,
                                                     state->head.memory, out, err);
    gar_free(columns);
    return status;
}

/* The order in which the kind wants the rows of a group. */
static int64_t list_keys(const struct keep_state *state, const struct sorted *sorted,
                         struct gar_sort_column *keys)
{
    const enum gar_aggregate_kind kind = kind_of(state);
    const bool is_last = kind == GAR_AGGREGATE_LAST;
    int64_t n = 0;
    keys[n++] = (struct gar_sort_column){sorted->parts[PART_GROUP], false, false};
    if (kind == GAR_AGGREGATE_MODE) {
        keys[n++] = (struct gar_sort_column){sorted->parts[PART_ARGUMENT], false, false};
        return n;
    }
    if (sorted->parts[PART_NAN] != NULL) {
        keys[n++] = (struct gar_sort_column){sorted->parts[PART_NAN], false, false};
    }
    if (sorted->parts[PART_SECOND] != NULL) {
        keys[n++] = (struct gar_sort_column){sorted->parts[PART_SECOND],
                                             is_last || kind == GAR_AGGREGATE_ARG_MAX, is_last};
    }
    keys[n++] = (struct gar_sort_column){sorted->parts[PART_PLACE], is_last, false};
    return n;
}

static enum gar_status sort_rows(const struct keep_state *state, struct sorted *sorted,
                                 struct gar_error *err)
{
    struct gar_sort_column keys[PARTS];
    struct gar_buffer *scratch = NULL;
    const int64_t bytes = state->rows * (int64_t)sizeof(struct gar_sort_entry);
    for (int32_t p = 0; p < PARTS; p++) {
        if (has_part(state, (enum part)p)) {
            GAR_TRY(join_part(state, p, &sorted->parts[p], err));
        }
    }
    sorted->rows = state->rows;
    const int64_t count = list_keys(state, sorted, keys);
    GAR_TRY(gar_sorter_new(keys, count, state->rows, &sorted->sorter, err));
    GAR_TRY(gar_buffer_new(state->head.memory, bytes, &sorted->entries, err));
    GAR_TRY(gar_buffer_new(state->head.memory, bytes, &scratch, err));
    struct gar_sort_entry *entries = (struct gar_sort_entry *)(void *)sorted->entries->data;
    gar_sorter_fill(sorted->sorter, 0, state->rows, entries);
    gar_sorter_sort(sorted->sorter, entries, (struct gar_sort_entry *)(void *)scratch->data,
                    state->rows);
    gar_buffer_unref(scratch);
    return gar_stop_check(err); /* then they are in no order */
}

static const struct gar_sort_entry *entries_of(const struct sorted *sorted)
{
    return (const struct gar_sort_entry *)(const void *)sorted->entries->data;
}

static uint32_t group_at(const struct sorted *sorted, int64_t i)
{
    const struct gar_column *flat = NULL;
    const int64_t row =
        gar_column_locate(sorted->parts[PART_GROUP], entries_of(sorted)[i].row, &flat);
    return ((const uint32_t *)flat->values)[row];
}

/* ---- keeping ---- */

static enum gar_status push_chunk(struct keep_state *state, const struct chunk *chunk,
                                  struct gar_error *err)
{
    void *items = state->chunks;
    GAR_TRY(gar_grow(&items, &state->chunk_capacity, state->chunk_count + 1,
                     (int64_t)sizeof *state->chunks, err));
    state->chunks = (struct chunk *)items;
    state->chunks[state->chunk_count++] = *chunk;
    state->rows += chunk->rows;
    return GAR_OK;
}

/* The listed rows of a chunk as another one, without the bytes of texts that are gone. */
static enum gar_status gather_chunk(const struct keep_state *state, struct gar_column *const *parts,
                                    const uint32_t *rows, int64_t count, struct chunk *out,
                                    struct gar_error *err)
{
    out->rows = count;
    for (int32_t p = 0; p < PARTS; p++) {
        if (parts[p] == NULL) {
            continue;
        }
        struct gar_column *gathered = NULL;
        GAR_TRY(gar_column_gather(parts[p], rows, count, state->head.memory, &gathered, err));
        const enum gar_status status =
            gar_column_compact(gathered, false, state->head.memory, &out->parts[p], err);
        gar_column_unref(gathered);
        GAR_TRY(status);
    }
    return GAR_OK;
}

/* Keep the best row of each group only. */
static enum gar_status cut_rows(struct keep_state *state, struct gar_error *err)
{
    struct sorted sorted = {{NULL}, NULL, NULL, 0};
    struct chunk best = {{NULL}, 0};
    uint32_t *rows = NULL;
    enum gar_status status = sort_rows(state, &sorted, err);
    if (status >= 0) {
        rows = (uint32_t *)gar_malloc(sorted.rows * (int64_t)sizeof *rows);
        status = rows != NULL ? GAR_OK : gar_error_nomem(err, sorted.rows * 4);
    }
    int64_t n = 0;
    for (int64_t i = 0; status >= 0 && i < sorted.rows; i++) {
        if (i == 0 || group_at(&sorted, i) != group_at(&sorted, i - 1)) {
            rows[n++] = entries_of(&sorted)[i].row;
        }
    }
    if (status >= 0) {
        status = gather_chunk(state, sorted.parts, rows, n, &best, err);
    }
    if (status >= 0) {
        destroy_chunks(state);
        status = push_chunk(state, &best, err); /* has room: there was a chunk */
    } else {
        destroy_chunk(&best);
    }
    gar_free(rows);
    destroy_sorted(&sorted);
    return status;
}

/* Moves the chunk in, also on failure. */
static enum gar_status add_chunk(struct keep_state *state, struct chunk *chunk,
                                 struct gar_error *err)
{
    const enum gar_status status = chunk->rows > 0 ? push_chunk(state, chunk, err) : GAR_OK;
    if (status < 0 || chunk->rows == 0) {
        destroy_chunk(chunk);
        return status;
    }
    if (is_pick(state) &&
        state->rows > gar_max_i64(CUT_ROWS_MIN, CUT_FACTOR * state->head.groups)) {
        return cut_rows(state, err);
    }
    return GAR_OK;
}

static enum gar_status new_words(const struct keep_state *state, enum gar_type_id id, int64_t rows,
                                 struct gar_column **out, void **out_values, struct gar_error *err)
{
    GAR_TRY(gar_column_new(state->head.memory, gar_type_of(id), rows, false, out, err));
    (*out)->null_count = 0;
    *out_values = gar_column_values_mut(*out);
    return GAR_OK;
}

/* Which rows of a float column are NaN. */
static enum gar_status mark_nan(const struct keep_state *state, const struct gar_column *column,
                                int64_t rows, struct gar_column **out, struct gar_error *err)
{
    void *bits = NULL;
    GAR_TRY(new_words(state, GAR_BOOL, rows, out, &bits, err));
    for (int64_t i = 0; i < rows; i++) {
        const struct gar_column *flat = NULL;
        const int64_t at = gar_column_locate(column, i, &flat);
        const bool is_nan = flat->type.id == GAR_FLOAT32
                                ? isnan(((const float *)flat->values)[at])
                                : isnan(((const double *)flat->values)[at]);
        gar_bit_put((uint8_t *)bits, i, is_nan && !gar_column_is_null(column, i));
    }
    return GAR_OK;
}

/* Which column's nulls make a row count nothing; NULL: none. */
static const struct gar_column *decisive(const struct keep_state *state,
                                         const struct gar_column *argument)
{
    switch (kind_of(state)) {
    case GAR_AGGREGATE_ARG_MIN:
    case GAR_AGGREGATE_ARG_MAX: return state->head.second;
    case GAR_AGGREGATE_FIRST:
    case GAR_AGGREGATE_LAST: return state->head.spec.ignore_nulls ? argument : NULL;
    default: return argument;
    }
}

static enum gar_status fill_parts(struct keep_state *state, const uint32_t *groups,
                                  const struct gar_column *argument, int64_t rows,
                                  struct chunk *chunk, struct gar_error *err)
{
    void *values = NULL;
    GAR_TRY(gar_column_slice(argument, 0, rows, &chunk->parts[PART_ARGUMENT], err));
    GAR_TRY(new_words(state, GAR_UINT32, rows, &chunk->parts[PART_GROUP], &values, err));
    if (groups != NULL) {
        memcpy(values, groups, (size_t)rows * sizeof *groups);
    } else {
        memset(values, 0, (size_t)rows * sizeof *groups);
    }
    if (has_part(state, PART_PLACE)) {
        GAR_TRY(new_words(state, GAR_UINT64, rows, &chunk->parts[PART_PLACE], &values, err));
        for (int64_t i = 0; i < rows; i++) {
            ((uint64_t *)values)[i] = state->head.places != NULL ? state->head.places[i]
                                                                 : state->head.place + (uint64_t)i;
        }
    }
    if (has_part(state, PART_SECOND)) {
        GAR_TRY(gar_column_slice(state->head.second, 0, rows, &chunk->parts[PART_SECOND], err));
    }
    if (has_part(state, PART_NAN)) {
        GAR_TRY(mark_nan(state, state->head.second, rows, &chunk->parts[PART_NAN], err));
    }
    return GAR_OK;
}

static enum gar_status keep_update(struct gar_aggregate *head, const uint32_t *groups,
                                   const struct gar_column *argument, int64_t rows,
                                   struct gar_error *err)
{
    struct keep_state *state = (struct keep_state *)head;
    struct chunk whole = {{NULL}, rows};
    enum gar_status status = fill_parts(state, groups, argument, rows, &whole, err);
    const struct gar_column *column = decisive(state, argument);
    if (status < 0 || column == NULL || gar_column_null_count(column) == 0) {
        if (status < 0) {
            destroy_chunk(&whole);
            return status;
        }
        return add_chunk(state, &whole, err);
    }
    struct chunk valid = {{NULL}, 0};
    uint32_t *listed = (uint32_t *)gar_malloc(rows * (int64_t)sizeof *listed);
    status = listed != NULL ? GAR_OK : gar_error_nomem(err, rows * 4);
    int64_t n = 0;
    for (int64_t i = 0; i < rows && status >= 0; i++) {
        listed[n] = (uint32_t)i;
        n += !gar_column_is_null(column, i);
    }
    if (status >= 0 && n > 0) {
        status = gather_chunk(state, whole.parts, listed, n, &valid, err);
    }
    gar_free(listed);
    destroy_chunk(&whole);
    if (status < 0) {
        destroy_chunk(&valid);
        return status;
    }
    return add_chunk(state, &valid, err);
}

/* Rows of the chunk whose groups are asked for, in our numbers. */
static enum gar_status take_chunk(struct keep_state *state, const struct chunk *chunk,
                                  const uint32_t *map, uint32_t *rows, struct gar_error *err)
{
    struct chunk taken = {{NULL}, 0};
    struct gar_column *parts[PARTS];
    int64_t n = 0;
    for (int64_t i = 0; i < chunk->rows; i++) {
        const struct gar_column *flat = NULL;
        const int64_t at = gar_column_locate(chunk->parts[PART_GROUP], i, &flat);
        rows[n] = (uint32_t)i;
        n += map[((const uint32_t *)flat->values)[at]] != UINT32_MAX;
    }
    if (n == 0) {
        return GAR_OK;
    }
    memcpy(parts, chunk->parts, sizeof parts);
    parts[PART_GROUP] = NULL;
    void *values = NULL;
    enum gar_status status = gather_chunk(state, parts, rows, n, &taken, err);
    if (status >= 0) {
        status = new_words(state, GAR_UINT32, n, &taken.parts[PART_GROUP], &values, err);
    }
    if (status < 0) {
        destroy_chunk(&taken);
        return status;
    }
    for (int64_t i = 0; i < n; i++) {
        const struct gar_column *flat = NULL;
        const int64_t at = gar_column_locate(chunk->parts[PART_GROUP], rows[i], &flat);
        ((uint32_t *)values)[i] = map[((const uint32_t *)flat->values)[at]];
    }
    return add_chunk(state, &taken, err);
}

static enum gar_status keep_combine(struct gar_aggregate *head,
                                    const struct gar_aggregate *from_head,
                                    const uint32_t *from_groups, const uint32_t *to_groups,
                                    int64_t count, struct gar_error *err)
{
    const struct keep_state *from = (const struct keep_state *)(const void *)from_head;
    int64_t rows_max = 0;
    for (int64_t i = 0; i < from->chunk_count; i++) {
        rows_max = gar_max_i64(rows_max, from->chunks[i].rows);
    }
    if (rows_max == 0) {
        return GAR_OK;
    }
    uint32_t *map = (uint32_t *)gar_malloc(from_head->groups * (int64_t)sizeof *map);
    uint32_t *rows = (uint32_t *)gar_malloc(rows_max * (int64_t)sizeof *rows);
    enum gar_status status =
        map != NULL && rows != NULL ? GAR_OK : gar_error_nomem(err, from_head->groups * 4);
    if (status >= 0) {
        memset(map, 0xff, (size_t)from_head->groups * sizeof *map);
        for (int64_t i = 0; i < count; i++) {
            map[from_groups != NULL ? (int64_t)from_groups[i] : i] = to_groups[i];
        }
    }
    for (int64_t i = 0; i < from->chunk_count && status >= 0; i++) {
        status = take_chunk((struct keep_state *)head, &from->chunks[i], map, rows, err);
    }
    gar_free(map);
    gar_free(rows);
    return status;
}

/* ---- sealing ---- */

static enum gar_status new_picked(struct keep_state *state, struct gar_error *err)
{
    const int64_t groups = gar_max_i64(state->head.groups, 1);
    const int64_t bytes = groups * (int64_t)sizeof(int64_t);
    GAR_TRY(gar_buffer_new(state->head.memory, bytes, &state->picked, err));
    memset(state->picked->data, 0xff, (size_t)bytes); /* -1 */
    return GAR_OK;
}

static int64_t *picked_of(const struct keep_state *state)
{
    return (int64_t *)(void *)state->picked->data;
}

/* The first row of each group. */
static void pick_first(struct keep_state *state, const struct sorted *sorted)
{
    int64_t *picked = picked_of(state);
    for (int64_t i = sorted->rows; i-- > 0;) {
        picked[group_at(sorted, i)] = entries_of(sorted)[i].row;
    }
}

/* The first row of each group's longest run of equal values. */
static void pick_mode(struct keep_state *state, const struct sorted *sorted)
{
    const struct gar_sort_entry *entries = entries_of(sorted);
    int64_t *picked = picked_of(state);
    int64_t longest = 0;
    for (int64_t i = 0; i < sorted->rows;) {
        int64_t end = i + 1;
        while (end < sorted->rows &&
               gar_sorter_compare(sorted->sorter, entries[i].row, entries[end].row) == 0) {
            end++;
        }
        const uint32_t group = group_at(sorted, i);
        if (picked[group] < 0 || end - i > longest) {
            picked[group] = entries[i].row;
            longest = end - i;
        }
        i = end;
    }
}

/* Values of percentiles as keys (kernels/select.h), group by group: those of g lie from starts[g] to starts[g + 1]. */
struct piles {
    struct gar_buffer *keys;
    struct gar_buffer *starts;
};

static uint64_t *keys_of(const struct piles *piles)
{
    return (uint64_t *)(void *)piles->keys->data;
}

static int64_t *starts_of(const struct piles *piles)
{
    return (int64_t *)(void *)piles->starts->data;
}

static const uint32_t *groups_of(const struct chunk *chunk)
{
    return (const uint32_t *)chunk->parts[PART_GROUP]->values;
}

/* Calls for each value of the chunks: counts those of each group at starts[g + 1], or puts them where starts[g] says. */
static void visit_values(const struct keep_state *state, struct piles *piles, bool is_count)
{
    int64_t *starts = starts_of(piles);
    for (int64_t c = 0; c < state->chunk_count; c++) {
        const struct chunk *chunk = &state->chunks[c];
        struct gar_feed feed;
        gar_feed_init(&feed, chunk->parts[PART_ARGUMENT], groups_of(chunk), chunk->rows,
                      GAR_FEED_F64);
        while (gar_feed_next(&feed)) {
            const double *values = (const double *)feed.values;
            for (int64_t i = 0; i < feed.count; i++) {
                if (is_count) {
                    starts[feed.groups[i] + 1]++;
                } else {
                    keys_of(piles)[starts[feed.groups[i]]++] = gar_float_key(values[i]);
                }
            }
        }
    }
}

static enum gar_status pile_values(const struct keep_state *state, int64_t groups,
                                   struct piles *piles, struct gar_error *err)
{
    struct gar_memory *memory = state->head.memory;
    const int64_t bytes = state->rows * (int64_t)sizeof(uint64_t);
    GAR_TRY(gar_buffer_new(memory, bytes, &piles->keys, err));
    GAR_TRY(gar_buffer_new_zeroed(memory, (groups + 1) * (int64_t)sizeof(int64_t), &piles->starts,
                                  err));
    int64_t *starts = starts_of(piles);
    visit_values(state, piles, true);
    for (int64_t g = 0; g < groups; g++) {
        starts[g + 1] += starts[g];
    }
    GAR_TRY(gar_stop_check(err));
    visit_values(state, piles, false); /* each start is at the next one now */
    memmove(starts + 1, starts, (size_t)groups * sizeof *starts);
    starts[0] = 0;
    return gar_stop_check(err);
}

/* Between the two values next to the place asked for. */
static double percentile_of(uint64_t *keys, int64_t count, double fraction)
{
    const double place = fraction * (double)(count - 1);
    const int64_t below = gar_min_i64((int64_t)floor(place), count - 1);
    const double weight = place - (double)below;
    gar_select_u64(keys, count, below);
    const double low = gar_float_of_key(keys[below]);
    if (!(weight > 0) || below + 1 >= count) {
        return low;
    }
    uint64_t next = keys[below + 1];
    for (int64_t i = below + 2; i < count; i++) {
        next = keys[i] < next ? keys[i] : next;
    }
    const double high = gar_float_of_key(next);
    return low != high ? low + (high - low) * weight : low;
}

static enum gar_status fill_percentiles(struct keep_state *state, struct piles *piles,
                                        struct gar_error *err)
{
    const int64_t groups = gar_max_i64(state->head.groups, 1);
    void *values = NULL;
    GAR_TRY(pile_values(state, groups, piles, err));
    GAR_TRY(new_words(state, GAR_FLOAT64, groups, &state->values, &values, err));
    const int64_t *starts = starts_of(piles);
    for (int64_t g = 0; g < groups; g++) {
        const int64_t count = starts[g + 1] - starts[g];
        ((double *)values)[g] = 0;
        if (count > 0) {
            ((double *)values)[g] =
                percentile_of(keys_of(piles) + starts[g], count, state->head.spec.fraction);
            picked_of(state)[g] = g;
        }
        if (g % 256 == 0) {
            GAR_TRY(gar_stop_check(err));
        }
    }
    return GAR_OK;
}

static enum gar_status seal_percentile(struct keep_state *state, struct gar_error *err)
{
    struct piles piles = {NULL, NULL};
    const enum gar_status status = fill_percentiles(state, &piles, err);
    gar_buffer_unref(piles.keys);
    gar_buffer_unref(piles.starts);
    if (status >= 0) {
        destroy_chunks(state);
        state->is_sealed = true;
    }
    return status;
}

/* Entries of group g lie from starts[g] to starts[g + 1]. */
static enum gar_status seal_texts(struct keep_state *state, struct sorted *sorted,
                                  struct gar_error *err)
{
    const int64_t groups = state->head.groups;
    GAR_TRY(gar_buffer_new_zeroed(state->head.memory, (groups + 1) * (int64_t)sizeof(int64_t),
                                  &state->starts, err));
    int64_t *starts = (int64_t *)(void *)state->starts->data;
    for (int64_t i = 0; i < sorted->rows; i++) {
        starts[group_at(sorted, i) + 1]++;
    }
    for (int64_t g = 0; g < groups; g++) {
        starts[g + 1] += starts[g];
    }
    state->entries = sorted->entries;
    sorted->entries = NULL;
    return GAR_OK;
}

static enum gar_status keep_seal(struct gar_aggregate *head, struct gar_error *err)
{
    struct keep_state *state = (struct keep_state *)head;
    struct sorted sorted = {{NULL}, NULL, NULL, 0};
    GAR_TRY(new_picked(state, err));
    if (state->rows == 0) {
        state->is_sealed = true;
        return GAR_OK;
    }
    if (kind_of(state) == GAR_AGGREGATE_PERCENTILE) {
        return seal_percentile(state, err);
    }
    enum gar_status status = sort_rows(state, &sorted, err);
    if (status < 0) {
        destroy_sorted(&sorted);
        return status;
    }
    destroy_chunks(state);
    switch (kind_of(state)) {
    case GAR_AGGREGATE_STRING_AGG: status = seal_texts(state, &sorted, err); break;
    case GAR_AGGREGATE_MODE: pick_mode(state, &sorted); break;
    default: pick_first(state, &sorted); break;
    }
    if (state->values == NULL) {
        state->values = sorted.parts[PART_ARGUMENT];
        sorted.parts[PART_ARGUMENT] = NULL;
    }
    destroy_sorted(&sorted);
    state->is_sealed = status >= 0;
    return status;
}

/* ---- results ---- */

/* The texts of one group in `bytes`, which has room. */
static void join_texts(const struct keep_state *state, int64_t first, int64_t end, uint8_t *bytes)
{
    const struct gar_aggregate_spec *spec = &state->head.spec;
    const struct gar_sort_entry *entries =
        (const struct gar_sort_entry *)(const void *)state->entries->data;
    for (int64_t i = first; i < end; i++) {
        const struct gar_column *flat = NULL;
        int64_t size = 0;
        const int64_t at = gar_column_locate(state->values, entries[i].row, &flat);
        const uint8_t *text = gar_column_bytes_at(flat, at, &size);
        if (i > first && spec->delimiter_size > 0) {
            memcpy(bytes, spec->delimiter, (size_t)spec->delimiter_size);
            bytes += spec->delimiter_size;
        }
        memcpy(bytes, text, (size_t)size);
        bytes += size;
    }
}

static int64_t size_of_texts(const struct keep_state *state, int64_t first, int64_t end)
{
    const struct gar_sort_entry *entries =
        (const struct gar_sort_entry *)(const void *)state->entries->data;
    int64_t bytes = state->head.spec.delimiter_size * (end - first - 1);
    for (int64_t i = first; i < end; i++) {
        const struct gar_column *flat = NULL;
        int64_t size = 0;
        const int64_t at = gar_column_locate(state->values, entries[i].row, &flat);
        (void)gar_column_bytes_at(flat, at, &size);
        bytes += size;
    }
    return bytes;
}

static enum gar_status append_texts(const struct keep_state *state, int64_t first, int64_t count,
                                    struct gar_memory *memory, struct gar_builder *builder,
                                    struct gar_buffer **scratch, struct gar_error *err)
{
    const int64_t *starts = (const int64_t *)(const void *)state->starts->data + first;
    for (int64_t g = 0; g < count; g++) {
        if (starts[g] == starts[g + 1]) {
            GAR_TRY(gar_builder_append_null(builder, err));
            continue;
        }
        const int64_t bytes = size_of_texts(state, starts[g], starts[g + 1]);
        if (bytes > INT32_MAX) {
            return gar_error_set(err, GAR_ERR_OVERFLOW,
                                 "string_agg: a text of %lld bytes is longer than a value may be "
                                 "(2147483647)",
                                 (long long)bytes);
        }
        if (*scratch == NULL || (*scratch)->size < bytes) {
            gar_buffer_unref(*scratch);
            *scratch = NULL;
            GAR_TRY(gar_buffer_new(memory, gar_max_i64(2 * bytes, 64), scratch, err));
        }
        join_texts(state, starts[g], starts[g + 1], (*scratch)->data);
        GAR_TRY(gar_builder_append_bytes(builder, (*scratch)->data, bytes, err));
    }
    return GAR_OK;
}

static enum gar_status finish_texts(const struct keep_state *state, int64_t first, int64_t count,
                                    struct gar_memory *memory, struct gar_column **out,
                                    struct gar_error *err)
{
    struct gar_builder builder;
    struct gar_buffer *scratch = NULL;
    gar_builder_init(&builder, memory, gar_type_of(GAR_STRING));
    enum gar_status status = append_texts(state, first, count, memory, &builder, &scratch, err);
    if (status >= 0) {
        status = gar_builder_finish(&builder, out, err);
    }
    gar_builder_destroy(&builder);
    gar_buffer_unref(scratch);
    return status;
}

static enum gar_status keep_finish(const struct gar_aggregate *head,
                                   const struct gar_aggregate_spec *spec, int64_t first,
                                   int64_t count, struct gar_memory *memory,
                                   struct gar_column **out, struct gar_error *err)
{
    const struct keep_state *state = (const struct keep_state *)(const void *)head;
    if (!state->is_sealed) {
        return gar_error_set(err, GAR_ERR_INTERNAL, "%s was not sealed",
                             gar_aggregate_kind_name(spec->kind));
    }
    if (state->values == NULL) { /* no row at all */
        struct gar_column *nulls = NULL;
        GAR_TRY(gar_column_new_null(memory, spec->result, count, &nulls, err));
        const enum gar_status status = gar_column_flatten(nulls, memory, out, err);
        gar_column_unref(nulls);
        return status;
    }
    if (spec->kind == GAR_AGGREGATE_STRING_AGG) {
        return finish_texts(state, first, count, memory, out, err);
    }
    struct gar_column *gathered = NULL;
    struct gar_column *flat = NULL;
    GAR_TRY(gar_column_gather_i64(state->values, picked_of(state) + first, count, memory, &gathered,
                                  err));
    enum gar_status status = gar_column_flatten(gathered, memory, &flat, err);
    gar_column_unref(gathered);
    if (status >= 0) {
        status = gar_column_compact(flat, false, memory, out, err);
        gar_column_unref(flat);
    }
    return status;
}

static void keep_free(struct gar_aggregate *head)
{
    struct keep_state *state = (struct keep_state *)head;
    destroy_chunks(state);
    gar_free(state->chunks);
    gar_column_unref(state->values);
    gar_buffer_unref(state->picked);
    gar_buffer_unref(state->entries);
    gar_buffer_unref(state->starts);
}

struct gar_aggregate *gar_aggregate_new_keep(void)
{
    static const struct gar_aggregate_vtable vtable = {.update = keep_update,
                                                       .combine = keep_combine,
                                                       .seal = keep_seal,
                                                       .finish_column = keep_finish,
                                                       .free = keep_free};
    struct keep_state *state = (struct keep_state *)gar_calloc(1, (int64_t)sizeof *state);
    if (state == NULL) {
        return NULL;
    }
    state->head.vtable = &vtable;
    return &state->head;
}
