/* SPDX-License-Identifier: Apache-2.0 */
/* Aggregate kernels: dense accumulators indexed by group number.
 *
 * A state belongs to one worker. The owner counts the rows of each group itself (it needs that
 * number once for all aggregates),
 * a state only counts what is missing from it: the nulls of its argument. States of several workers are joined by combine.
 *
 * Nulls:   count nothing (but for the count modes); a group without a value gives null (counts: 0)
 * NaN:     min and max ignore NaN unless all values are NaN; count_distinct counts all NaN as one value, -0.0 as 0.0
 * Sums:    integers and decimals are summed exactly (beyond 64 bits where needed); only a final result that does not fit
 *          is an error, so that the order of rows never matters. Means of them are exact before
 * the one rounding. */
#ifndef GAR_KERNELS_AGGREGATE_H
#define GAR_KERNELS_AGGREGATE_H

#include "arrow/column.h"

enum gar_aggregate_kind {
    GAR_AGGREGATE_COUNT,      /* rows whose argument is not null; without argument: rows */
    GAR_AGGREGATE_COUNT_NULL, /* rows whose argument is null */
    GAR_AGGREGATE_COUNT_ALL,  /* rows */
    GAR_AGGREGATE_COUNT_DISTINCT,
    GAR_AGGREGATE_SUM,
    GAR_AGGREGATE_PRODUCT,
    GAR_AGGREGATE_MEAN,
    GAR_AGGREGATE_MIN,
    GAR_AGGREGATE_MAX,
    GAR_AGGREGATE_VAR,
    GAR_AGGREGATE_STDDEV,
    GAR_AGGREGATE_ANY_VALUE, /* the first value that is not null */
    GAR_AGGREGATE_BOOL_AND,
    GAR_AGGREGATE_BOOL_OR,
    GAR_AGGREGATE_SKEW,     /* of the population: m3 / m2^1.5 */
    GAR_AGGREGATE_KURTOSIS, /* of the population, less 3 */
    GAR_AGGREGATE_CORR, /* of pairs: argument and second; rows where either is null count nothing */
    GAR_AGGREGATE_COVAR_POP,
    GAR_AGGREGATE_COVAR_SAMP,
    GAR_AGGREGATE_APPROX_COUNT_DISTINCT, /* HyperLogLog of 2^14 registers: 0.8 % */
    GAR_AGGREGATE_APPROX_PERCENTILE,     /* DDSketch: within 1 % of the value */
    GAR_AGGREGATE_PERCENTILE, /* exact, linear between the two values next to the place */
    GAR_AGGREGATE_MODE,       /* the most frequent value, the least of several */
    GAR_AGGREGATE_STRING_AGG, /* in the order of places, with spec.delimiter between */
    GAR_AGGREGATE_FIRST, /* row of the least place; with a second by that, null as the greatest */
    GAR_AGGREGATE_LAST,
    GAR_AGGREGATE_ARG_MIN, /* of the row whose second is the least; rows where it is null count nothing */
    GAR_AGGREGATE_ARG_MAX,
};
#define GAR_AGGREGATE_KINDS (GAR_AGGREGATE_ARG_MAX + 1)

/* What to compute. result must be what the function registry says for the argument's type. */
struct gar_aggregate_spec {
    enum gar_aggregate_kind kind;
    struct gar_type argument; /* null type when there is no argument */
    struct gar_type result;
    int64_t ddof; /* var, stddev */
    bool has_second;
    struct gar_type second; /* corr, covar, arg_min, arg_max; first and last may have it */
    double fraction;        /* percentiles: 0 to 1 */
    const char *delimiter;  /* string_agg; borrowed for the life of the state */
    int64_t delimiter_size;
    bool ignore_nulls; /* first, last: rows whose argument is null count nothing */
};

struct gar_aggregate; /* one worker's state of one call */

/* memory is borrowed for the life of the state. Errors: GAR_ERR_NOMEM; GAR_ERR_TYPE for a type
 * that the function does not take.
 * Owns: caller frees *out. */
GAR_MUST_USE enum gar_status gar_aggregate_new(const struct gar_aggregate_spec *spec,
                                               struct gar_memory *memory,
                                               struct gar_aggregate **out, struct gar_error *err);
void gar_aggregate_free(struct gar_aggregate *state);

/* Do places matter to the kind: does its result depend on the order of the rows? */
bool gar_aggregate_has_places(enum gar_aggregate_kind kind);
/* Does combine look at all rows that were kept, whatever groups it is asked for? Then ask once for all groups. */
bool gar_aggregate_keeps_rows(enum gar_aggregate_kind kind);

/* Can one state serve both calls (sum and mean of one column)? Then finish it with each spec. */
bool gar_aggregate_is_shared(const struct gar_aggregate_spec *a,
                             const struct gar_aggregate_spec *b);

/* Make room for groups 0 .. groups - 1; new ones start empty, groups never go away. Amortised constant.
 * Errors: GAR_ERR_NOMEM; the state is then as before. */
GAR_MUST_USE enum gar_status gar_aggregate_resize(struct gar_aggregate *state, int64_t groups,
                                                  struct gar_error *err);

/* Add rows: row i of argument belongs to groups[i], all to group 0 when groups is NULL. argument is NULL for kinds
 * without argument; any encoding; at least `rows` rows.
 * Shape:   argument[rows], groups[rows] -> accumulators; every group number < groups of the last resize
 * Errors:  GAR_ERR_NOMEM (strings, distinct sets); GAR_ERR_OVERFLOW of a product. The state can then only be freed.
 * Owns:    borrows everything
 * Threads: any, one at a time */
GAR_MUST_USE enum gar_status gar_aggregate_update(struct gar_aggregate *state,
                                                  const uint32_t *groups,
                                                  const struct gar_column *argument, int64_t rows,
                                                  struct gar_error *err);

/* The same with a second argument (NULL where the spec has none) and places: row i has place + i, no two rows of a group
 * have the same, and they follow the order of the input. The state keeps references to the columns of kinds that keep rows. */
GAR_MUST_USE enum gar_status gar_aggregate_update_pair(
    struct gar_aggregate *state, const uint32_t *groups, const struct gar_column *argument,
    const struct gar_column *second, uint64_t place, int64_t rows, struct gar_error *err);

/* The same of rows whose places do not follow each other: row i has places[i]. */
GAR_MUST_USE enum gar_status gar_aggregate_update_places(
    struct gar_aggregate *state, const uint32_t *groups, const struct gar_column *argument,
    const struct gar_column *second, const uint64_t *places, int64_t rows, struct gar_error *err);

/* After the last update and combine, before finish: what needs all rows is worked out. Errors: GAR_ERR_NOMEM,
 * GAR_ERR_CANCELLED (base/stop.h); the state can then only be freed. */
GAR_MUST_USE enum gar_status gar_aggregate_seal(struct gar_aggregate *state, struct gar_error *err);

/* Join groups of another state of the same spec: group from_groups[i] (i when NULL) of `from` into to_groups[i] of `state`.
 * Errors as update. */
GAR_MUST_USE enum gar_status gar_aggregate_combine(struct gar_aggregate *state,
                                                   const struct gar_aggregate *from,
                                                   const uint32_t *from_groups,
                                                   const uint32_t *to_groups, int64_t count,
                                                   struct gar_error *err);

/* The results of groups [first, first + count) of a sealed state as a FLAT column of spec->result; group_rows[g] is the
 * number of rows seen by group g (of all groups, not of the range). spec: the state's own or one that shares it.
 * Errors:  GAR_ERR_OVERFLOW naming function and type; GAR_ERR_NOMEM
 * Owns:    caller unrefs *out; the state is unchanged */
GAR_MUST_USE enum gar_status gar_aggregate_finish(const struct gar_aggregate *state,
                                                  const struct gar_aggregate_spec *spec,
                                                  int64_t first, int64_t count,
                                                  const int64_t *group_rows,
                                                  struct gar_memory *memory,
                                                  struct gar_column **out, struct gar_error *err);

const char *gar_aggregate_kind_name(enum gar_aggregate_kind kind);

#endif
