/* SPDX-License-Identifier: Apache-2.0 */
/* The front of the aggregate kernels: which family serves a call, growing arrays, counting of
 * nulls. */
#include "kernels/aggregate.h"

#include "base/alloc.h"
#include "kernels/aggregate_priv.h"

static const char *const kind_names[] = {
    [GAR_AGGREGATE_COUNT] = "count",
    [GAR_AGGREGATE_COUNT_NULL] = "count",
    [GAR_AGGREGATE_COUNT_ALL] = "count",
    [GAR_AGGREGATE_COUNT_DISTINCT] = "count_distinct",
    [GAR_AGGREGATE_SUM] = "sum",
    [GAR_AGGREGATE_PRODUCT] = "product",
    [GAR_AGGREGATE_MEAN] = "mean",
    [GAR_AGGREGATE_MIN] = "min",
    [GAR_AGGREGATE_MAX] = "max",
    [GAR_AGGREGATE_VAR] = "var",
    [GAR_AGGREGATE_STDDEV] = "stddev",
    [GAR_AGGREGATE_ANY_VALUE] = "any_value",
    [GAR_AGGREGATE_BOOL_AND] = "bool_and",
    [GAR_AGGREGATE_BOOL_OR] = "bool_or",
    [GAR_AGGREGATE_SKEW] = "skew",
    [GAR_AGGREGATE_KURTOSIS] = "kurtosis",
    [GAR_AGGREGATE_CORR] = "corr",
    [GAR_AGGREGATE_COVAR_POP] = "covar_pop",
    [GAR_AGGREGATE_COVAR_SAMP] = "covar_samp",
    [GAR_AGGREGATE_APPROX_COUNT_DISTINCT] = "approx_count_distinct",
    [GAR_AGGREGATE_APPROX_PERCENTILE] = "approx_percentiles",
    [GAR_AGGREGATE_PERCENTILE] = "percentile",
    [GAR_AGGREGATE_MODE] = "mode",
    [GAR_AGGREGATE_STRING_AGG] = "string_agg",
    [GAR_AGGREGATE_FIRST] = "first",
    [GAR_AGGREGATE_LAST] = "last",
    [GAR_AGGREGATE_ARG_MIN] = "arg_min",
    [GAR_AGGREGATE_ARG_MAX] = "arg_max",
};

const char *gar_aggregate_kind_name(enum gar_aggregate_kind kind)
{
    return kind_names[kind];
}

enum gar_status gar_aggregate_array_grow(struct gar_aggregate_array *array,
                                         struct gar_memory *memory, int64_t count,
                                         int64_t item_bytes, struct gar_error *err)
{
    if (count <= array->count) {
        return GAR_OK;
    }
    const int64_t want = count * item_bytes;
    const int64_t have = array->buffer != NULL ? array->buffer->size : 0;
    if (want > have) {
        const int64_t bytes = gar_max_i64(want, gar_min_i64(have * 2, have + ((int64_t)256 << 20)));
        if (array->buffer == NULL) {
            GAR_TRY(
                gar_buffer_new(memory, gar_max_i64(bytes, 16 * item_bytes), &array->buffer, err));
        } else {
            GAR_TRY(gar_buffer_resize(array->buffer, bytes, err));
        }
    }
    /* All room is initialised at once, so that growing group by group costs one comparison. */
    const int64_t room = array->buffer->size / item_bytes;
    memset(array->buffer->data + array->count * item_bytes, 0,
           (size_t)((room - array->count) * item_bytes));
    array->count = room;
    return GAR_OK;
}

void gar_aggregate_array_destroy(struct gar_aggregate_array *array)
{
    gar_buffer_unref(array->buffer);
    array->buffer = NULL;
    array->count = 0;
}

/* Is there a null in the first rows? Never more than a look when the count is known. */
static bool may_have_nulls(const struct gar_column *column)
{
    if (column->type.id == GAR_NULL) {
        return true;
    }
    if (column->encoding == GAR_CONSTANT) {
        return gar_column_is_null(column->dictionary, 0);
    }
    return column->validity != NULL && column->null_count != 0;
}

static void count_null_rows(int64_t *nulls, const uint32_t *groups,
                            const struct gar_column *argument, int64_t rows)
{
    for (int64_t at = 0; at < rows; at += 64) {
        const int64_t n = gar_min_i64(rows - at, 64);
        uint64_t bits = ~gar_bits_load(argument->validity, argument->validity_offset + at, n);
        if (n < 64) {
            bits &= (UINT64_C(1) << n) - 1;
        }
        while (bits != 0) {
            nulls[groups[at + gar_ctz64(bits)]]++;
            bits &= bits - 1;
        }
    }
}

enum gar_status gar_aggregate_count_nulls(struct gar_aggregate *state, const uint32_t *groups,
                                          const struct gar_column *argument, int64_t rows,
                                          struct gar_error *err)
{
    if (argument == NULL || !may_have_nulls(argument)) {
        return GAR_OK;
    }
    GAR_TRY(gar_aggregate_array_grow(&state->nulls, state->memory, state->groups,
                                     (int64_t)sizeof(int64_t), err));
    int64_t *nulls = (int64_t *)gar_aggregate_array_data(&state->nulls);
    if (argument->encoding == GAR_CONSTANT || argument->type.id == GAR_NULL) {
        if (groups == NULL) {
            nulls[0] += rows;
        } else {
            for (int64_t i = 0; i < rows; i++) {
                nulls[groups[i]]++;
            }
        }
    } else if (groups == NULL) {
        nulls[0] += rows - gar_bits_count(argument->validity, argument->validity_offset, rows);
    } else {
        count_null_rows(nulls, groups, argument, rows);
    }
    return GAR_OK;
}

enum gar_status gar_aggregate_combine_nulls(struct gar_aggregate *state,
                                            const struct gar_aggregate *from,
                                            const uint32_t *from_groups, const uint32_t *to_groups,
                                            int64_t count, struct gar_error *err)
{
    const int64_t *theirs = (const int64_t *)gar_aggregate_array_data(&from->nulls);
    if (theirs == NULL) {
        return GAR_OK;
    }
    GAR_TRY(gar_aggregate_array_grow(&state->nulls, state->memory, state->groups,
                                     (int64_t)sizeof(int64_t), err));
    int64_t *ours = (int64_t *)gar_aggregate_array_data(&state->nulls);
    for (int64_t i = 0; i < count; i++) {
        const int64_t g = from_groups != NULL ? (int64_t)from_groups[i] : i;
        if (g < from->nulls.count) {
            ours[to_groups[i]] += theirs[g];
        }
    }
    return GAR_OK;
}

/* Counts: everything is in the nulls. */
static enum gar_status count_finish(const struct gar_aggregate *state,
                                    const struct gar_aggregate_spec *spec, int64_t first,
                                    int64_t count, const int64_t *group_rows,
                                    struct gar_column *out, int64_t *nulls, struct gar_error *err)
{
    (void)nulls;
    (void)err;
    int64_t *to = (int64_t *)gar_column_values_mut(out);
    for (int64_t i = 0; i < count; i++) {
        const int64_t valid = gar_aggregate_valid(state, first + i, group_rows);
        if (spec->kind == GAR_AGGREGATE_COUNT_ALL) {
            to[i] = group_rows[first + i];
        } else if (spec->kind == GAR_AGGREGATE_COUNT_NULL) {
            to[i] = group_rows[first + i] - valid;
        } else {
            to[i] = valid;
        }
    }
    return GAR_OK;
}

struct gar_aggregate *gar_aggregate_new_count(void)
{
    static const struct gar_aggregate_vtable vtable = {.finish = count_finish};
    struct gar_aggregate *state = (struct gar_aggregate *)gar_calloc(1, (int64_t)sizeof *state);
    if (state != NULL) {
        state->vtable = &vtable;
    }
    return state;
}

static struct gar_aggregate *new_by_kind(const struct gar_aggregate_spec *spec,
                                         struct gar_memory *memory)
{
    switch (spec->kind) {
    case GAR_AGGREGATE_COUNT:
    case GAR_AGGREGATE_COUNT_NULL:
    case GAR_AGGREGATE_COUNT_ALL: return gar_aggregate_new_count();
    case GAR_AGGREGATE_COUNT_DISTINCT: return gar_aggregate_new_distinct(spec, memory);
    case GAR_AGGREGATE_SUM:
    case GAR_AGGREGATE_MEAN: return gar_aggregate_new_sum(spec);
    case GAR_AGGREGATE_PRODUCT: return gar_aggregate_new_product(spec);
    case GAR_AGGREGATE_MIN:
    case GAR_AGGREGATE_MAX:
    case GAR_AGGREGATE_ANY_VALUE: return gar_aggregate_new_pick(spec);
    case GAR_AGGREGATE_VAR:
    case GAR_AGGREGATE_STDDEV: return gar_aggregate_new_var();
    case GAR_AGGREGATE_BOOL_AND:
    case GAR_AGGREGATE_BOOL_OR: return gar_aggregate_new_bool();
    case GAR_AGGREGATE_SKEW:
    case GAR_AGGREGATE_KURTOSIS: return gar_aggregate_new_moments();
    case GAR_AGGREGATE_CORR:
    case GAR_AGGREGATE_COVAR_POP:
    case GAR_AGGREGATE_COVAR_SAMP: return gar_aggregate_new_pairs();
    case GAR_AGGREGATE_APPROX_COUNT_DISTINCT: return gar_aggregate_new_registers(memory);
    case GAR_AGGREGATE_APPROX_PERCENTILE: return gar_aggregate_new_sketch(memory);
    case GAR_AGGREGATE_PERCENTILE:
    case GAR_AGGREGATE_MODE:
    case GAR_AGGREGATE_STRING_AGG:
    case GAR_AGGREGATE_FIRST:
    case GAR_AGGREGATE_LAST:
    case GAR_AGGREGATE_ARG_MIN:
    case GAR_AGGREGATE_ARG_MAX: return gar_aggregate_new_keep();
    }
    return NULL;
}

/* Does the function take the type? The null type is taken by all: every result is null or zero. */
static bool takes_type(const struct gar_aggregate_spec *spec)
{
    const struct gar_type type = spec->argument;
    if (type.id == GAR_NULL) {
        return true;
    }
    switch (spec->kind) {
    case GAR_AGGREGATE_COUNT:
    case GAR_AGGREGATE_COUNT_NULL:
    case GAR_AGGREGATE_COUNT_ALL:
    case GAR_AGGREGATE_COUNT_DISTINCT:
    case GAR_AGGREGATE_MIN:
    case GAR_AGGREGATE_MAX:
    case GAR_AGGREGATE_APPROX_COUNT_DISTINCT:
    case GAR_AGGREGATE_MODE:
    case GAR_AGGREGATE_FIRST:
    case GAR_AGGREGATE_LAST:
    case GAR_AGGREGATE_ARG_MIN:
    case GAR_AGGREGATE_ARG_MAX:
    case GAR_AGGREGATE_ANY_VALUE: return true;
    case GAR_AGGREGATE_STRING_AGG: return type.id == GAR_STRING;
    case GAR_AGGREGATE_CORR:
    case GAR_AGGREGATE_COVAR_POP:
    case GAR_AGGREGATE_COVAR_SAMP:
    case GAR_AGGREGATE_SKEW:
    case GAR_AGGREGATE_KURTOSIS:
    case GAR_AGGREGATE_APPROX_PERCENTILE:
    case GAR_AGGREGATE_PERCENTILE: return gar_type_is_numeric(type) || type.id == GAR_BOOL;
    case GAR_AGGREGATE_SUM:
    case GAR_AGGREGATE_MEAN:
        return gar_type_is_numeric(type) || type.id == GAR_BOOL || type.id == GAR_DURATION;
    case GAR_AGGREGATE_PRODUCT:
        return gar_type_is_integer(type) || gar_type_is_float(type) || type.id == GAR_BOOL;
    case GAR_AGGREGATE_VAR:
    case GAR_AGGREGATE_STDDEV: return gar_type_is_numeric(type) || type.id == GAR_BOOL;
    case GAR_AGGREGATE_BOOL_AND:
    case GAR_AGGREGATE_BOOL_OR: return type.id == GAR_BOOL;
    }
    return false;
}

enum gar_status gar_aggregate_new(const struct gar_aggregate_spec *spec, struct gar_memory *memory,
                                  struct gar_aggregate **out, struct gar_error *err)
{
    if (!takes_type(spec)) {
        char text[64];
        return gar_error_set(err, GAR_ERR_TYPE, "%s does not take %s",
                             gar_aggregate_kind_name(spec->kind),
                             gar_type_text(spec->argument, text, (int64_t)sizeof text));
    }
    struct gar_aggregate *state = new_by_kind(spec, memory);
    if (state == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *state);
    }
    state->spec = *spec;
    state->memory = memory;
    *out = state;
    return GAR_OK;
}

void gar_aggregate_free(struct gar_aggregate *state)
{
    if (state == NULL) {
        return;
    }
    if (state->vtable->free != NULL) {
        state->vtable->free(state);
    }
    gar_aggregate_array_destroy(&state->nulls);
    gar_free(state);
}

/* Kinds that keep the same state. */
static int32_t family(const struct gar_aggregate_spec *spec)
{
    switch (spec->kind) {
    case GAR_AGGREGATE_COUNT:
    case GAR_AGGREGATE_COUNT_NULL: return 0;
    case GAR_AGGREGATE_SUM:
    case GAR_AGGREGATE_MEAN: return 1;
    case GAR_AGGREGATE_VAR:
    case GAR_AGGREGATE_STDDEV: return 2;
    case GAR_AGGREGATE_SKEW:
    case GAR_AGGREGATE_KURTOSIS: return 3;
    case GAR_AGGREGATE_CORR:
    case GAR_AGGREGATE_COVAR_POP:
    case GAR_AGGREGATE_COVAR_SAMP: return 4;
    case GAR_AGGREGATE_APPROX_PERCENTILE: return 5;
    case GAR_AGGREGATE_APPROX_COUNT_DISTINCT:
    case GAR_AGGREGATE_PERCENTILE:
    case GAR_AGGREGATE_MODE:
    case GAR_AGGREGATE_STRING_AGG:
    case GAR_AGGREGATE_FIRST:
    case GAR_AGGREGATE_LAST:
    case GAR_AGGREGATE_ARG_MIN:
    case GAR_AGGREGATE_ARG_MAX:
    case GAR_AGGREGATE_COUNT_ALL:
    case GAR_AGGREGATE_COUNT_DISTINCT:
    case GAR_AGGREGATE_PRODUCT:
    case GAR_AGGREGATE_MIN:
    case GAR_AGGREGATE_MAX:
    case GAR_AGGREGATE_ANY_VALUE:
    case GAR_AGGREGATE_BOOL_AND:
    case GAR_AGGREGATE_BOOL_OR: return 16 + (int32_t)spec->kind;
    }
    return -1;
}

bool gar_aggregate_is_shared(const struct gar_aggregate_spec *a, const struct gar_aggregate_spec *b)
{
    if (family(a) != family(b) || !gar_type_equal(a->argument, b->argument) ||
        a->has_second != b->has_second || !gar_type_equal(a->second, b->second)) {
        return false;
    }
    switch (a->kind) {
    case GAR_AGGREGATE_PERCENTILE:
        return memcmp(&a->fraction, &b->fraction, sizeof a->fraction) == 0;
    case GAR_AGGREGATE_STRING_AGG:
        return a->delimiter_size == b->delimiter_size &&
               memcmp(a->delimiter, b->delimiter, (size_t)a->delimiter_size) == 0;
    case GAR_AGGREGATE_FIRST:
    case GAR_AGGREGATE_LAST: return a->ignore_nulls == b->ignore_nulls;
    default: return true;
    }
}

bool gar_aggregate_has_places(enum gar_aggregate_kind kind)
{
    return kind >= GAR_AGGREGATE_STRING_AGG && kind <= GAR_AGGREGATE_ARG_MAX;
}

bool gar_aggregate_keeps_rows(enum gar_aggregate_kind kind)
{
    return kind == GAR_AGGREGATE_COUNT_DISTINCT ||
           (kind >= GAR_AGGREGATE_APPROX_COUNT_DISTINCT && kind <= GAR_AGGREGATE_ARG_MAX);
}

enum gar_status gar_aggregate_resize(struct gar_aggregate *state, int64_t groups,
                                     struct gar_error *err)
{
    if (groups <= state->groups) {
        return GAR_OK;
    }
    if (state->vtable->resize != NULL) {
        GAR_TRY(state->vtable->resize(state, groups, err));
    }
    if (state->nulls.buffer != NULL) {
        GAR_TRY(gar_aggregate_array_grow(&state->nulls, state->memory, groups,
                                         (int64_t)sizeof(int64_t), err));
    }
    state->groups = groups;
    return GAR_OK;
}

enum gar_status gar_aggregate_update(struct gar_aggregate *state, const uint32_t *groups,
                                     const struct gar_column *argument, int64_t rows,
                                     struct gar_error *err)
{
    if (rows == 0 || argument == NULL) {
        return GAR_OK;
    }
    GAR_TRY(gar_aggregate_count_nulls(state, groups, argument, rows, err));
    if (state->vtable->update == NULL || argument->type.id == GAR_NULL) {
        return GAR_OK;
    }
    return state->vtable->update(state, groups, argument, rows, err);
}

enum gar_status gar_aggregate_update_pair(struct gar_aggregate *state, const uint32_t *groups,
                                          const struct gar_column *argument,
                                          const struct gar_column *second, uint64_t place,
                                          int64_t rows, struct gar_error *err)
{
    state->second = second;
    state->place = place;
    const enum gar_status status = gar_aggregate_update(state, groups, argument, rows, err);
    state->second = NULL;
    return status;
}

enum gar_status gar_aggregate_update_places(struct gar_aggregate *state, const uint32_t *groups,
                                            const struct gar_column *argument,
                                            const struct gar_column *second, const uint64_t *places,
                                            int64_t rows, struct gar_error *err)
{
    state->places = places;
    const enum gar_status status =
        gar_aggregate_update_pair(state, groups, argument, second, 0, rows, err);
    state->places = NULL;
    return status;
}

enum gar_status gar_aggregate_seal(struct gar_aggregate *state, struct gar_error *err)
{
    if (state->vtable->seal == NULL || state->spec.argument.id == GAR_NULL) {
        return GAR_OK;
    }
    return state->vtable->seal(state, err);
}

enum gar_status gar_aggregate_combine(struct gar_aggregate *state, const struct gar_aggregate *from,
                                      const uint32_t *from_groups, const uint32_t *to_groups,
                                      int64_t count, struct gar_error *err)
{
    GAR_TRY(gar_aggregate_combine_nulls(state, from, from_groups, to_groups, count, err));
    if (state->vtable->combine == NULL || state->spec.argument.id == GAR_NULL) {
        return GAR_OK;
    }
    return state->vtable->combine(state, from, from_groups, to_groups, count, err);
}

static bool is_count(enum gar_aggregate_kind kind)
{
    return kind == GAR_AGGREGATE_COUNT || kind == GAR_AGGREGATE_COUNT_NULL ||
           kind == GAR_AGGREGATE_COUNT_ALL || kind == GAR_AGGREGATE_COUNT_DISTINCT ||
           kind == GAR_AGGREGATE_APPROX_COUNT_DISTINCT;
}

/* Every row null. */
static enum gar_status all_null(struct gar_type type, int64_t count, struct gar_memory *memory,
                                struct gar_column **out, struct gar_error *err)
{
    struct gar_column *column = NULL;
    GAR_TRY(gar_column_new(memory, type, count, type.id != GAR_NULL, &column, err));
    if (type.id != GAR_NULL) {
        gar_bits_fill(gar_column_validity_mut(column), 0, count, false);
        void *values = gar_column_values_mut(column);
        if (values != NULL) {
            memset(values, 0, (size_t)(count * gar_type_width(type)));
        }
    }
    column->null_count = count;
    *out = column;
    return GAR_OK;
}

enum gar_status gar_aggregate_finish(const struct gar_aggregate *state,
                                     const struct gar_aggregate_spec *spec, int64_t first,
                                     int64_t count, const int64_t *group_rows,
                                     struct gar_memory *memory, struct gar_column **out,
                                     struct gar_error *err)
{
    if (spec->argument.id == GAR_NULL && !is_count(spec->kind)) {
        return all_null(spec->result, count, memory, out, err);
    }
    if (state->vtable->finish_column != NULL) {
        return state->vtable->finish_column(state, spec, first, count, memory, out, err);
    }
    struct gar_column *column = NULL;
    GAR_TRY(gar_column_new(memory, spec->result, count, !is_count(spec->kind), &column, err));
    int64_t nulls = 0;
    const enum gar_status status =
        state->vtable->finish(state, spec, first, count, group_rows, column, &nulls, err);
    if (status < 0) {
        gar_column_unref(column);
        return status;
    }
    column->null_count = nulls;
    if (nulls == 0) {
        gar_buffer_unref(column->validity_owner);
        column->validity_owner = NULL;
        column->validity = NULL;
    }
    *out = column;
    return GAR_OK;
}
