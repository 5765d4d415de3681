/* SPDX-License-Identifier: Apache-2.0 */
/* Window calls over sorted rows.
 *
 * Ranks and shifts come from the places of partitions and peers. Other calls look at a frame [low, high) of each row, of which
 * an exclusion cuts rows out.
 * Aggregates over whole partitions are a group-by with a group a partition; over other frames each frame is joined from the
 * nodes of a tree of aggregate states (16 children a node) and a few rows. Kinds that keep rows have no tree: their frames
 * are read row by row. */
#include <math.h>

#include "arrow/gather.h"
#include "base/alloc.h"
#include "base/stop.h"
#include "exec/ops/window.h"

enum {
    FANOUT = 16,
    LEVELS_MAX = 9,
    CHUNK = 512, /* frames computed at once */
    NODES_MAX =
        CHUNK * 4 * FANOUT, /* of one level in a chunk: a frame has two large pieces at most */
    RAW_MAX = 1 << 14,
};

struct frames {
    int64_t *low; /* owned; of each row */
    int64_t *high;
};

/* ---- frames ---- */

/* The keys of a range frame as numbers. */
struct keys {
    bool is_float;
    double *floats; /* owned */
    gar_i128 *ints; /* owned */
    bool *known;    /* owned; neither null nor NaN */
};

static void destroy_keys(struct keys *keys)
{
    gar_free(keys->floats);
    gar_free(keys->ints);
    gar_free(keys->known);
}

static gar_i128 integer_at(const struct gar_column *flat, int64_t i)
{
    const bool is_unsigned = gar_type_is_unsigned(flat->type);
    switch (gar_type_width(flat->type)) {
    case 1:
        return is_unsigned ? (gar_i128)((const uint8_t *)flat->values)[i]
                           : (gar_i128)((const int8_t *)flat->values)[i];
    case 2:
        return is_unsigned ? (gar_i128)((const uint16_t *)flat->values)[i]
                           : (gar_i128)((const int16_t *)flat->values)[i];
    case 4:
        return is_unsigned ? (gar_i128)((const uint32_t *)flat->values)[i]
                           : (gar_i128)((const int32_t *)flat->values)[i];
    case 16: return ((const gar_i128 *)flat->values)[i];
    default:
        return is_unsigned ? (gar_i128)((const uint64_t *)flat->values)[i]
                           : (gar_i128)((const int64_t *)flat->values)[i];
    }
}

static enum gar_status load_keys(const struct gar_column *column, int64_t count, struct keys *keys,
                                 struct gar_error *err)
{
    keys->is_float = gar_type_is_float(column->type);
    keys->known = (bool *)gar_calloc(count, (int64_t)sizeof *keys->known);
    if (keys->is_float) {
        keys->floats = (double *)gar_calloc(count, (int64_t)sizeof *keys->floats);
    } else {
        keys->ints = (gar_i128 *)gar_calloc(count, (int64_t)sizeof *keys->ints);
    }
    if (keys->known == NULL || (keys->floats == NULL && keys->ints == NULL)) {
        return gar_error_nomem(err, count * 17);
    }
    for (int64_t i = 0; i < count; i++) {
        const struct gar_column *flat = NULL;
        const int64_t at = gar_column_locate(column, i, &flat);
        if (gar_column_is_null(column, i)) {
            continue;
        }
        if (keys->is_float) {
            keys->floats[i] = flat->type.id == GAR_FLOAT32
                                  ? (double)((const float *)flat->values)[at]
                                  : ((const double *)flat->values)[at];
            keys->known[i] = !isnan(keys->floats[i]);
        } else {
            keys->ints[i] = integer_at(flat, at);
            keys->known[i] = true;
        }
    }
    return GAR_OK;
}

static int32_t compare_keys(const struct keys *a, int64_t i, const struct keys *b, int64_t j)
{
    if (a->is_float) {
        return (a->floats[i] > b->floats[j]) - (a->floats[i] < b->floats[j]);
    }
    return (a->ints[i] > b->ints[j]) - (a->ints[i] < b->ints[j]);
}

/* The first row of [first, end), whose keys are known and sorted, that is not before the bound of row i; past it when
 * `past`: the first after it. */
static int64_t search(const struct keys *keys, const struct keys *bounds, int64_t i, int64_t first,
                      int64_t end, bool is_descending, bool past)
{
    while (first < end) {
        const int64_t middle = first + (end - first) / 2;
        const int32_t order = compare_keys(keys, middle, bounds, i) * (is_descending ? -1 : 1);
        if (order < 0 || (past && order == 0)) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    return first;
}

/* One side of the frames by value. */
static enum gar_status range_side(const struct gar_window_call *call,
                                  const struct gar_window_rows *rows, bool is_end, int64_t *out,
                                  struct gar_error *err)
{
    struct keys keys = {0};
    struct keys bounds = {0};
    enum gar_status status =
        load_keys(rows->inputs[is_end ? call->end_key : call->start_key], rows->count, &keys, err);
    if (status >= 0) {
        status =
            load_keys(rows->inputs[is_end ? call->end : call->start], rows->count, &bounds, err);
    }
    int64_t first = 0;
    int64_t end = 0;
    for (int64_t i = 0; i < rows->count && status >= 0; i++) {
        if (i == rows->part_first[i]) { /* rows of the partition with a known key */
            for (first = i; first < rows->part_end[i] && !keys.known[first];) {
                first++;
            }
            for (end = rows->part_end[i]; end > first && !keys.known[end - 1];) {
                end--;
            }
            status = gar_stop_check(err);
        }
        if (!keys.known[i]) {
            out[i] = is_end ? rows->peer_end[i] : rows->peer_first[i];
        } else if (!bounds.known[i]) { /* beyond every value of the type */
            out[i] = is_end ? end : first;
        } else {
            out[i] = search(&keys, &bounds, i, first, end, call->is_descending, is_end);
        }
    }
    destroy_keys(&keys);
    destroy_keys(&bounds);
    return status;
}

/* One side of frames that are counted in groups of peers. */
static enum gar_status group_side(const struct gar_window_rows *rows, int64_t offset, bool is_end,
                                  int64_t *out, struct gar_error *err)
{
    int64_t *firsts = (int64_t *)gar_malloc(rows->count * (int64_t)sizeof *firsts);
    if (firsts == NULL) {
        return gar_error_nomem(err, rows->count * (int64_t)sizeof *firsts);
    }
    int64_t first_group = 0; /* of the partition */
    int64_t group = -1;      /* of the row */
    int64_t end_group = 0;   /* of the partition, past it */
    for (int64_t i = 0; i < rows->count; i++) {
        if (i == rows->part_first[i]) { /* the firsts of the whole partition */
            first_group = end_group;
            for (int64_t row = i; row < rows->part_end[i]; row = rows->peer_end[row]) {
                firsts[end_group++] = row;
            }
            group = first_group - 1;
        }
        group += i == rows->peer_first[i];
        const int64_t wanted = group + offset + is_end;
        out[i] = wanted < first_group  ? rows->part_first[i]
                 : wanted >= end_group ? rows->part_end[i]
                                       : firsts[wanted];
    }
    gar_free(firsts);
    return GAR_OK;
}

static enum gar_status frame_side(const struct gar_window_call *call,
                                  const struct gar_window_rows *rows, bool is_end, int64_t *out,
                                  struct gar_error *err)
{
    const struct gar_window *w = &call->expr->window;
    const int64_t far = INT64_C(1) << 40; /* more rows than a query can hold */
    const enum gar_bound_kind kind =
        w->frame == GAR_FRAME_NONE
            ? (is_end ? GAR_BOUND_UNBOUNDED_FOLLOWING : GAR_BOUND_UNBOUNDED_PRECEDING)
            : (is_end ? w->end : w->start);
    const int64_t wanted = is_end ? w->end_rows : w->start_rows;
    const int64_t offset = gar_max_i64(-far, gar_min_i64(wanted, far));
    if (kind == GAR_BOUND_OFFSET && w->frame == GAR_FRAME_RANGE) {
        return range_side(call, rows, is_end, out, err);
    }
    if (kind == GAR_BOUND_OFFSET && w->frame == GAR_FRAME_GROUPS) {
        return group_side(rows, offset, is_end, out, err);
    }
    for (int64_t i = 0; i < rows->count; i++) {
        int64_t at = i + is_end;
        if (kind == GAR_BOUND_UNBOUNDED_PRECEDING) {
            at = rows->part_first[i];
        } else if (kind == GAR_BOUND_UNBOUNDED_FOLLOWING) {
            at = rows->part_end[i];
        } else if (kind == GAR_BOUND_OFFSET) {
            at = i + offset + is_end;
        } else if (w->frame != GAR_FRAME_ROWS) {
            at = is_end ? rows->peer_end[i] : rows->peer_first[i];
        }
        out[i] = gar_max_i64(rows->part_first[i], gar_min_i64(at, rows->part_end[i]));
    }
    return GAR_OK;
}

static enum gar_status make_frames(const struct gar_window_call *call,
                                   const struct gar_window_rows *rows, struct frames *frames,
                                   struct gar_error *err)
{
    frames->low = (int64_t *)gar_malloc(rows->count * (int64_t)sizeof(int64_t));
    frames->high = (int64_t *)gar_malloc(rows->count * (int64_t)sizeof(int64_t));
    if (frames->low == NULL || frames->high == NULL) {
        return gar_error_nomem(err, rows->count * 16);
    }
    GAR_TRY(frame_side(call, rows, false, frames->low, err));
    GAR_TRY(frame_side(call, rows, true, frames->high, err));
    for (int64_t i = 0; i < rows->count; i++) {
        frames->high[i] = gar_max_i64(frames->low[i], frames->high[i]);
    }
    return GAR_OK;
}

/* What of a row's frame counts: ranges of rows, in order. */
struct pieces {
    int64_t low[3];
    int64_t high[3];
    int32_t count;
    int64_t rows;
};

static void add_piece(struct pieces *pieces, int64_t low, int64_t high)
{
    if (low < high) {
        pieces->low[pieces->count] = low;
        pieces->high[pieces->count++] = high;
        pieces->rows += high - low;
    }
}

static struct pieces frame_pieces(const struct gar_window_call *call,
                                  const struct gar_window_rows *rows, const struct frames *frames,
                                  int64_t i)
{
    struct pieces pieces = {.count = 0};
    const enum gar_window_exclusion exclusion = call->expr->window.exclusion;
    const int64_t low = frames->low[i];
    const int64_t high = frames->high[i];
    if (exclusion == GAR_EXCLUDE_NONE) {
        add_piece(&pieces, low, high);
        return pieces;
    }
    const bool is_row = exclusion == GAR_EXCLUDE_CURRENT;
    const int64_t hole = is_row ? i : rows->peer_first[i];
    const int64_t hole_end = is_row ? i + 1 : rows->peer_end[i];
    add_piece(&pieces, low, gar_min_i64(high, hole));
    if (exclusion == GAR_EXCLUDE_TIES && low <= i && i < high) {
        add_piece(&pieces, i, i + 1);
    }
    add_piece(&pieces, gar_max_i64(low, hole_end), high);
    return pieces;
}

/* ---- ranks ---- */

static void fill_shares(const struct gar_window_call *call, const struct gar_window_rows *rows,
                        double *out)
{
    for (int64_t i = 0; i < rows->count; i++) {
        const double all = (double)(rows->part_end[i] - rows->part_first[i]);
        if (call->kind == GAR_WINDOW_CUME_DIST) {
            out[i] = (double)(rows->peer_end[i] - rows->part_first[i]) / all;
        } else {
            out[i] = all > 1 ? (double)(rows->peer_first[i] - rows->part_first[i]) / (all - 1) : 0;
        }
    }
}

static int64_t tile_of(int64_t row, int64_t rows, int64_t buckets)
{
    const int64_t size = rows / buckets;
    const int64_t larger = rows % buckets; /* buckets of one row more */
    if (row < larger * (size + 1)) {
        return row / (size + 1) + 1;
    }
    return larger + (row - larger * (size + 1)) / size + 1;
}

static void fill_ranks(const struct gar_window_call *call, const struct gar_window_rows *rows,
                       int64_t *out)
{
    int64_t dense = 0;
    for (int64_t i = 0; i < rows->count; i++) {
        const int64_t first = rows->part_first[i];
        dense = i == first ? 0 : dense;
        dense += i == rows->peer_first[i];
        switch (call->kind) {
        case GAR_WINDOW_ROW_NUMBER: out[i] = i - first + 1; break;
        case GAR_WINDOW_DENSE_RANK: out[i] = dense; break;
        case GAR_WINDOW_NTILE:
            out[i] = tile_of(i - first, rows->part_end[i] - first, call->number);
            break;
        default: out[i] = rows->peer_first[i] - first + 1; break;
        }
    }
}

static enum gar_status compute_rank(const struct gar_window_call *call,
                                    const struct gar_window_rows *rows, struct gar_column **out,
                                    struct gar_error *err)
{
    GAR_TRY(gar_column_new(rows->memory, call->type, rows->count, false, out, err));
    (*out)->null_count = 0;
    void *values = gar_column_values_mut(*out);
    if (call->type.id == GAR_FLOAT64) {
        fill_shares(call, rows, (double *)values);
    } else {
        fill_ranks(call, rows, (int64_t *)values);
    }
    return GAR_OK;
}

/* ---- values of other rows ---- */

static enum gar_status gather_flat(const struct gar_column *column, const int64_t *places,
                                   int64_t count, struct gar_memory *memory,
                                   struct gar_column **out, struct gar_error *err)
{
    struct gar_column *gathered = NULL;
    GAR_TRY(gar_column_gather_i64(column, places, count, memory, &gathered, err));
    const enum gar_status status = gar_column_flatten(gathered, memory, out, err);
    gar_column_unref(gathered);
    return status;
}

static enum gar_status compute_shift(const struct gar_window_call *call,
                                     const struct gar_window_rows *rows, int64_t *places,
                                     struct gar_column **out, struct gar_error *err)
{
    const int64_t far = INT64_C(1) << 40;
    const int64_t offset =
        gar_max_i64(-far, gar_min_i64(call->number, far)) * (call->kind == GAR_WINDOW_LAG ? -1 : 1);
    for (int64_t i = 0; i < rows->count; i++) {
        const int64_t at = i + offset;
        const bool is_inside = at >= rows->part_first[i] && at < rows->part_end[i];
        places[i] = is_inside ? at : call->fallback >= 0 ? rows->count + i : -1;
    }
    if (call->fallback < 0) {
        return gather_flat(rows->inputs[call->argument], places, rows->count, rows->memory, out,
                           err);
    }
    struct gar_column *parts[2] = {rows->inputs[call->argument], rows->inputs[call->fallback]};
    struct gar_column *both = NULL;
    GAR_TRY(gar_column_concat(parts, 2, call->type, rows->memory, &both, err));
    const enum gar_status status = gather_flat(both, places, rows->count, rows->memory, out, err);
    gar_column_unref(both);
    return status;
}

/* Places of the values asked for. valid: rows that count, in order; before[i]: how many of them lie before row i. Both NULL:
 * all count. */
static void place_values(const struct gar_window_call *call, const struct gar_window_rows *rows,
                         const struct frames *frames, const int64_t *valid, const int64_t *before,
                         int64_t *places)
{
    const bool is_last = call->kind == GAR_WINDOW_LAST_VALUE;
    const int64_t skip =
        call->kind == GAR_WINDOW_NTH_VALUE ? gar_min_i64(call->number - 1, INT64_C(1) << 40) : 0;
    for (int64_t i = 0; i < rows->count; i++) {
        const struct pieces pieces = frame_pieces(call, rows, frames, i);
        int64_t left = skip;
        places[i] = -1;
        for (int32_t k = 0; k < pieces.count && places[i] < 0; k++) {
            const int32_t p = is_last ? pieces.count - 1 - k : k;
            const int64_t low = before != NULL ? before[pieces.low[p]] : pieces.low[p];
            const int64_t high = before != NULL ? before[pieces.high[p]] : pieces.high[p];
            const int64_t at = is_last ? high - 1 : low + left;
            if (at >= low && at < high) {
                places[i] = valid != NULL ? valid[at] : at;
            }
            left -= high - low;
        }
        if (pieces.rows < call->expr->window.min_periods) {
            places[i] = -1;
        }
    }
}

static enum gar_status compute_value(const struct gar_window_call *call,
                                     const struct gar_window_rows *rows,
                                     const struct frames *frames, int64_t *places,
                                     struct gar_column **out, struct gar_error *err)
{
    const struct gar_column *argument = rows->inputs[call->argument];
    if (!call->ignore_nulls) {
        place_values(call, rows, frames, NULL, NULL, places);
        return gather_flat(argument, places, rows->count, rows->memory, out, err);
    }
    int64_t *valid = (int64_t *)gar_malloc((rows->count + 1) * (int64_t)sizeof *valid);
    int64_t *before = (int64_t *)gar_malloc((rows->count + 1) * (int64_t)sizeof *before);
    enum gar_status status =
        valid != NULL && before != NULL ? GAR_OK : gar_error_nomem(err, rows->count * 16);
    if (status >= 0) {
        int64_t n = 0;
        for (int64_t i = 0; i < rows->count; i++) {
            before[i] = n;
            valid[n] = i;
            n += !gar_column_is_null(argument, i);
        }
        before[rows->count] = n;
        place_values(call, rows, frames, valid, before, places);
        status = gather_flat(argument, places, rows->count, rows->memory, out, err);
    }
    gar_free(valid);
    gar_free(before);
    return status;
}

/* ---- aggregates ---- */

static const struct gar_column *input_or_null(const struct gar_window_rows *rows, int64_t i)
{
    return i >= 0 ? rows->inputs[i] : NULL;
}

/* A group a partition. */
static enum gar_status sum_partitions(const struct gar_window_call *call,
                                      const struct gar_window_rows *rows, uint32_t *groups,
                                      int64_t *sizes, struct gar_aggregate *state,
                                      struct gar_column **out, struct gar_error *err)
{
    int64_t parts = 0;
    for (int64_t i = 0; i < rows->count; i++) {
        if (i == rows->part_first[i]) {
            sizes[parts++] = rows->part_end[i] - i;
        }
        groups[i] = (uint32_t)(parts - 1);
    }
    GAR_TRY(gar_aggregate_resize(state, parts, err));
    GAR_TRY(gar_aggregate_update_pair(state, groups, input_or_null(rows, call->argument),
                                      input_or_null(rows, call->second), 0, rows->count, err));
    GAR_TRY(gar_aggregate_seal(state, err));
    struct gar_column *values = NULL;
    GAR_TRY(gar_aggregate_finish(state, &call->spec, 0, parts, sizes, rows->memory, &values, err));
    const int64_t least = call->expr->window.min_periods;
    enum gar_status status = GAR_OK;
    int64_t *places = (int64_t *)gar_malloc(rows->count * (int64_t)sizeof *places);
    if (places == NULL) {
        status = gar_error_nomem(err, rows->count * 8);
    } else {
        for (int64_t i = 0; i < rows->count; i++) {
            places[i] = sizes[groups[i]] >= least ? (int64_t)groups[i] : -1;
        }
        status = gather_flat(values, places, rows->count, rows->memory, out, err);
    }
    gar_free(places);
    gar_column_unref(values);
    return status;
}

static enum gar_status compute_partitions(const struct gar_window_call *call,
                                          const struct gar_window_rows *rows,
                                          struct gar_column **out, struct gar_error *err)
{
    struct gar_aggregate *state = NULL;
    uint32_t *groups = (uint32_t *)gar_malloc(rows->count * (int64_t)sizeof *groups);
    int64_t *sizes = (int64_t *)gar_malloc(rows->count * (int64_t)sizeof *sizes);
    enum gar_status status =
        groups != NULL && sizes != NULL ? GAR_OK : gar_error_nomem(err, rows->count * 12);
    if (status >= 0) {
        status = gar_aggregate_new(&call->spec, rows->memory, &state, err);
    }
    if (status >= 0) {
        status = sum_partitions(call, rows, groups, sizes, state, out, err);
    }
    gar_aggregate_free(state);
    gar_free(groups);
    gar_free(sizes);
    return status;
}

/* Pairs of numbers on their way into the states of a chunk. */
struct pairs {
    uint32_t *from;
    uint32_t *to;
    int64_t count;
};

struct tree {
    const struct gar_window_call *call;
    const struct gar_window_rows *rows;
    struct gar_aggregate *levels[LEVELS_MAX]; /* owned; node i of level k: rows from i * 16^(k+1) */
    struct pairs nodes[LEVELS_MAX];           /* owned */
    struct pairs raw;                         /* owned; rows themselves */
    int64_t level_count;
    struct gar_aggregate *state; /* owned; of the chunk under way */
    uint64_t place;              /* of the next row */
};

static void destroy_tree(struct tree *tree)
{
    for (int32_t k = 0; k < LEVELS_MAX; k++) {
        gar_aggregate_free(tree->levels[k]);
        gar_free(tree->nodes[k].from);
        gar_free(tree->nodes[k].to);
    }
    gar_free(tree->raw.from);
    gar_free(tree->raw.to);
    gar_aggregate_free(tree->state);
}

static enum gar_status new_pairs(struct pairs *pairs, int64_t room, struct gar_error *err)
{
    pairs->from = (uint32_t *)gar_malloc(room * (int64_t)sizeof(uint32_t));
    pairs->to = (uint32_t *)gar_malloc(room * (int64_t)sizeof(uint32_t));
    return pairs->from != NULL && pairs->to != NULL ? GAR_OK : gar_error_nomem(err, room * 8);
}

/* Level k of `nodes` nodes from what lies below it. */
static enum gar_status add_level(struct tree *tree, int64_t nodes, int64_t children,
                                 struct gar_error *err)
{
    const int64_t k = tree->level_count;
    GAR_TRY(gar_aggregate_new(&tree->call->spec, tree->rows->memory, &tree->levels[k], err));
    GAR_TRY(gar_aggregate_resize(tree->levels[k], nodes, err));
    GAR_TRY(new_pairs(&tree->nodes[k], NODES_MAX, err));
    uint32_t *groups = (uint32_t *)gar_malloc(children * (int64_t)sizeof *groups);
    if (groups == NULL) {
        return gar_error_nomem(err, children * 4);
    }
    for (int64_t i = 0; i < children; i++) {
        groups[i] = (uint32_t)(i / FANOUT);
    }
    const enum gar_status status =
        k == 0 ? gar_aggregate_update_pair(
                     tree->levels[0], groups, input_or_null(tree->rows, tree->call->argument),
                     input_or_null(tree->rows, tree->call->second), 0, children, err)
               : gar_aggregate_combine(tree->levels[k], tree->levels[k - 1], NULL, groups, children,
                                       err);
    gar_free(groups);
    tree->level_count++;
    return status;
}

static enum gar_status build_tree(struct tree *tree, struct gar_error *err)
{
    GAR_TRY(new_pairs(&tree->raw, RAW_MAX, err));
    if (gar_aggregate_keeps_rows(tree->call->spec.kind)) {
        return GAR_OK;
    }
    int64_t below = tree->rows->count;
    while (below > FANOUT && tree->level_count < LEVELS_MAX) {
        const int64_t nodes = (below + FANOUT - 1) / FANOUT;
        GAR_TRY(gar_stop_check(err));
        GAR_TRY(add_level(tree, nodes, below, err));
        below = nodes;
    }
    return GAR_OK;
}

/* Listed rows of an input; NULL for an input that is not there. */
static enum gar_status gather_raw(const struct tree *tree, int64_t input, struct gar_column **out,
                                  struct gar_error *err)
{
    if (input < 0) {
        return GAR_OK;
    }
    return gar_column_gather(tree->rows->inputs[input], tree->raw.from, tree->raw.count,
                             tree->rows->memory, out, err);
}

static enum gar_status flush_raw(struct tree *tree, struct gar_error *err)
{
    struct gar_column *argument = NULL;
    struct gar_column *second = NULL;
    if (tree->raw.count == 0) {
        return GAR_OK;
    }
    enum gar_status status = gather_raw(tree, tree->call->argument, &argument, err);
    if (status >= 0) {
        status = gather_raw(tree, tree->call->second, &second, err);
    }
    if (status >= 0) {
        status = gar_aggregate_update_pair(tree->state, tree->raw.to, argument, second, tree->place,
                                           tree->raw.count, err);
    }
    gar_column_unref(argument);
    gar_column_unref(second);
    tree->place += (uint64_t)tree->raw.count;
    tree->raw.count = 0;
    return status < 0 ? status : gar_stop_check(err);
}

static enum gar_status push_raw(struct tree *tree, int64_t low, int64_t high, uint32_t group,
                                struct gar_error *err)
{
    for (int64_t i = low; i < high; i++) {
        if (tree->raw.count == RAW_MAX) {
            GAR_TRY(flush_raw(tree, err));
        }
        tree->raw.from[tree->raw.count] = (uint32_t)i;
        tree->raw.to[tree->raw.count++] = group;
    }
    return GAR_OK;
}

static void push_nodes(struct pairs *pairs, int64_t low, int64_t high, uint32_t group)
{
    for (int64_t i = low; i < high; i++) {
        pairs->from[pairs->count] = (uint32_t)i;
        pairs->to[pairs->count++] = group;
    }
}

/* Rows [low, high) as few nodes and rows. */
static enum gar_status push_frame(struct tree *tree, int64_t low, int64_t high, uint32_t group,
                                  struct gar_error *err)
{
    if (tree->level_count == 0 || high - low <= FANOUT) {
        return push_raw(tree, low, high, group, err);
    }
    int64_t first = (low + FANOUT - 1) / FANOUT;
    int64_t end = high / FANOUT;
    GAR_TRY(push_raw(tree, low, first * FANOUT, group, err));
    for (int64_t k = 0; first < end; k++) {
        struct pairs *nodes = &tree->nodes[k];
        if (end - first <= FANOUT || k + 1 == tree->level_count) {
            push_nodes(nodes, first, end, group);
            break;
        }
        const int64_t up = (first + FANOUT - 1) / FANOUT;
        const int64_t down = end / FANOUT;
        push_nodes(nodes, first, up * FANOUT, group);
        push_nodes(nodes, down * FANOUT, end, group);
        first = up;
        end = down;
    }
    return push_raw(tree, gar_max_i64(high / FANOUT, (low + FANOUT - 1) / FANOUT) * FANOUT, high,
                    group, err);
}

/* The results of frames [first, first + count). */
static enum gar_status compute_chunk(struct tree *tree, const struct frames *frames, int64_t first,
                                     int64_t count, struct gar_column **out, struct gar_error *err)
{
    int64_t sizes[CHUNK];
    GAR_TRY(gar_stop_check(err));
    gar_aggregate_free(tree->state);
    tree->state = NULL;
    tree->place = 0;
    GAR_TRY(gar_aggregate_new(&tree->call->spec, tree->rows->memory, &tree->state, err));
    GAR_TRY(gar_aggregate_resize(tree->state, count, err));
    for (int64_t i = 0; i < count; i++) {
        const struct pieces pieces = frame_pieces(tree->call, tree->rows, frames, first + i);
        sizes[i] = pieces.rows;
        for (int32_t p = 0; p < pieces.count; p++) {
            GAR_TRY(push_frame(tree, pieces.low[p], pieces.high[p], (uint32_t)i, err));
        }
    }
    GAR_TRY(flush_raw(tree, err));
    for (int64_t k = 0; k < tree->level_count; k++) {
        struct pairs *nodes = &tree->nodes[k];
        GAR_TRY(gar_aggregate_combine(tree->state, tree->levels[k], nodes->from, nodes->to,
                                      nodes->count, err));
        nodes->count = 0;
    }
    GAR_TRY(gar_aggregate_seal(tree->state, err));
    return gar_aggregate_finish(tree->state, &tree->call->spec, 0, count, sizes, tree->rows->memory,
                                out, err);
}

static enum gar_status join_chunks(const struct gar_window_call *call,
                                   const struct gar_window_rows *rows, const struct frames *frames,
                                   struct gar_column **chunks, int64_t count, int64_t *places,
                                   struct gar_column **out, struct gar_error *err)
{
    struct gar_column *all = NULL;
    GAR_TRY(gar_column_concat(chunks, count, call->type, rows->memory, &all, err));
    for (int64_t i = 0; i < rows->count; i++) {
        const int64_t size = frame_pieces(call, rows, frames, i).rows;
        places[i] = size >= call->expr->window.min_periods ? i : -1;
    }
    const enum gar_status status =
        call->expr->window.min_periods > 0
            ? gather_flat(all, places, rows->count, rows->memory, out, err)
            : gar_column_flatten(all, rows->memory, out, err);
    gar_column_unref(all);
    return status;
}

static enum gar_status compute_frames(const struct gar_window_call *call,
                                      const struct gar_window_rows *rows,
                                      const struct frames *frames, int64_t *places,
                                      struct gar_column **out, struct gar_error *err)
{
    struct tree tree = {.call = call, .rows = rows};
    const int64_t count = (rows->count + CHUNK - 1) / CHUNK;
    struct gar_column **chunks = (struct gar_column **)gar_calloc(count, (int64_t)sizeof *chunks);
    enum gar_status status = chunks != NULL ? GAR_OK : gar_error_nomem(err, count * 8);
    if (status >= 0) {
        status = build_tree(&tree, err);
    }
    for (int64_t c = 0; c < count && status >= 0; c++) {
        const int64_t first = c * CHUNK;
        status = compute_chunk(&tree, frames, first, gar_min_i64(rows->count - first, CHUNK),
                               &chunks[c], err);
    }
    if (status >= 0) {
        status = join_chunks(call, rows, frames, chunks, count, places, out, err);
    }
    for (int64_t c = 0; chunks != NULL && c < count; c++) {
        gar_column_unref(chunks[c]);
    }
    gar_free(chunks);
    destroy_tree(&tree);
    return status;
}

static bool is_whole(const struct gar_window *w)
{
    if (w->exclusion != GAR_EXCLUDE_NONE) {
        return false;
    }
    return w->frame == GAR_FRAME_NONE ||
           (w->start == GAR_BOUND_UNBOUNDED_PRECEDING && w->end == GAR_BOUND_UNBOUNDED_FOLLOWING);
}

enum gar_status gar_window_compute(const struct gar_window_call *call,
                                   const struct gar_window_rows *rows, struct gar_column **out,
                                   struct gar_error *err)
{
    if (call->kind <= GAR_WINDOW_NTILE) {
        return compute_rank(call, rows, out, err);
    }
    if (call->kind == GAR_WINDOW_AGGREGATE && is_whole(&call->expr->window)) {
        return compute_partitions(call, rows, out, err);
    }
    struct frames frames = {NULL, NULL};
    int64_t *places = (int64_t *)gar_malloc(rows->count * (int64_t)sizeof *places);
    enum gar_status status = places != NULL ? GAR_OK : gar_error_nomem(err, rows->count * 8);
    const bool is_shift = call->kind == GAR_WINDOW_LAG || call->kind == GAR_WINDOW_LEAD;
    if (status >= 0 && !is_shift) {
        status = make_frames(call, rows, &frames, err);
    }
    if (status >= 0) {
        status = is_shift ? compute_shift(call, rows, places, out, err)
                 : call->kind == GAR_WINDOW_AGGREGATE
                     ? compute_frames(call, rows, &frames, places, out, err)
                     : compute_value(call, rows, &frames, places, out, err);
    }
    gar_free(frames.low);
    gar_free(frames.high);
    gar_free(places);
    return status;
}
