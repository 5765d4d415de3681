/* SPDX-License-Identifier: Apache-2.0 */
/* What the aggregate kernels share: the state's head, its growing arrays, and the feed that turns a column of any encoding
 * into short dense vectors without nulls. */
#ifndef GAR_KERNELS_AGGREGATE_PRIV_H
#define GAR_KERNELS_AGGREGATE_PRIV_H

#include "kernels/aggregate.h"

struct gar_aggregate_vtable {
    enum gar_status (*resize)(struct gar_aggregate *state, int64_t groups, struct gar_error *err);
    enum gar_status (*update)(struct gar_aggregate *state, const uint32_t *groups,
                              const struct gar_column *argument, int64_t rows,
                              struct gar_error *err);
    enum gar_status (*combine)(struct gar_aggregate *state, const struct gar_aggregate *from,
                               const uint32_t *from_groups, const uint32_t *to_groups,
                               int64_t count, struct gar_error *err);
    /* validity of out is all valid and may be cleared; *nulls counts what was cleared. */
    enum gar_status (*finish)(const struct gar_aggregate *state,
                              const struct gar_aggregate_spec *spec, int64_t first, int64_t count,
                              const int64_t *group_rows, struct gar_column *out, int64_t *nulls,
                              struct gar_error *err);
    /* May be NULL, as resize, update and combine. */
    enum gar_status (*seal)(struct gar_aggregate *state, struct gar_error *err);
    /* Instead of finish: makes the whole column itself. */
    enum gar_status (*finish_column)(const struct gar_aggregate *state,
                                     const struct gar_aggregate_spec *spec, int64_t first,
                                     int64_t count, struct gar_memory *memory,
                                     struct gar_column **out, struct gar_error *err);
    void (*free)(struct gar_aggregate *state);
};

/* A growing array in column memory; zeroed = empty. */
struct gar_aggregate_array {
    struct gar_buffer *buffer; /* owned */
    int64_t count;             /* items that are initialised */
};

struct gar_aggregate {
    const struct gar_aggregate_vtable *vtable;
    struct gar_aggregate_spec spec;
    struct gar_memory *memory;        /* borrowed */
    int64_t groups;                   /* of the last resize */
    const struct gar_column *second;  /* of the update under way; borrowed */
    uint64_t place;                   /* of its first row */
    const uint64_t *places;           /* of each of its rows; NULL: they follow the first one */
    struct gar_aggregate_array nulls; /* int64_t per group; empty until the first null is seen */
};

/* Room for count items of item_bytes each; new ones are zeroed. Grows by doubling. */
GAR_MUST_USE enum gar_status gar_aggregate_array_grow(struct gar_aggregate_array *array,
                                                      struct gar_memory *memory, int64_t count,
                                                      int64_t item_bytes, struct gar_error *err);
void gar_aggregate_array_destroy(struct gar_aggregate_array *array);

GAR_INLINE void *gar_aggregate_array_data(const struct gar_aggregate_array *array)
{
    return array->buffer != NULL ? (void *)array->buffer->data : NULL;
}

/* How many values a group has: its rows less its nulls. */
GAR_INLINE int64_t gar_aggregate_valid(const struct gar_aggregate *state, int64_t group,
                                       const int64_t *group_rows)
{
    const int64_t *nulls = (const int64_t *)gar_aggregate_array_data(&state->nulls);
    return group_rows[group] - (nulls != NULL && group < state->nulls.count ? nulls[group] : 0);
}

GAR_MUST_USE enum gar_status gar_aggregate_count_nulls(struct gar_aggregate *state,
                                                       const uint32_t *groups,
                                                       const struct gar_column *argument,
                                                       int64_t rows, struct gar_error *err);
GAR_MUST_USE enum gar_status gar_aggregate_combine_nulls(struct gar_aggregate *state,
                                                         const struct gar_aggregate *from,
                                                         const uint32_t *from_groups,
                                                         const uint32_t *to_groups, int64_t count,
                                                         struct gar_error *err);

/* Rows that one step of a feed gives at most: values and groups stay in L1. */
#define GAR_FEED_ROWS 1024

/* What the values are turned into. */
enum gar_feed_form {
    GAR_FEED_I64,  /* integers (signed, bool, temporal) and decimals of up to 18 digits */
    GAR_FEED_U64,  /* uint8..uint64 */
    GAR_FEED_I128, /* decimals */
    GAR_FEED_F64,  /* every number; decimals divided by their scale */
};

/* Steps over the rows of a column that are not null. */
struct gar_feed {
    const struct gar_column *column; /* borrowed */
    const struct gar_column *flat;   /* column, or its dictionary */
    const uint32_t *row_groups;      /* of the column's rows, or NULL */
    enum gar_feed_form form;
    int64_t rows;
    int64_t next;           /* first row of the next step */
    int64_t count;          /* values of this step, 1 .. GAR_FEED_ROWS */
    const void *values;     /* count values in the form */
    const uint32_t *groups; /* of the values, or NULL */
    gar_i128 scratch[GAR_FEED_ROWS];
    uint32_t valid_groups[GAR_FEED_ROWS];
    uint32_t places[GAR_FEED_ROWS];
};

void gar_feed_init(struct gar_feed *feed, const struct gar_column *column, const uint32_t *groups,
                   int64_t rows, enum gar_feed_form form);
/* False at the end. */
bool gar_feed_next(struct gar_feed *feed);
/* The places (rows of feed->flat) of the next step's values that are not null: for types that are not numbers. Sets
 * count, groups and feed->places; values is unset. False at the end. */
bool gar_feed_next_places(struct gar_feed *feed);

/* A bitmap (gar_free it) of the dictionary entries that rows [0, rows) of a DICTIONARY column
 * show; NULL without memory. */
uint64_t *gar_aggregate_used_codes(const struct gar_column *column, int64_t rows);

/* One constructor a family; each makes a zeroed state with its vtable and nothing else. */
struct gar_aggregate *gar_aggregate_new_count(void);
struct gar_aggregate *gar_aggregate_new_sum(const struct gar_aggregate_spec *spec);
struct gar_aggregate *gar_aggregate_new_product(const struct gar_aggregate_spec *spec);
struct gar_aggregate *gar_aggregate_new_pick(const struct gar_aggregate_spec *spec);
struct gar_aggregate *gar_aggregate_new_var(void);
struct gar_aggregate *gar_aggregate_new_bool(void);
struct gar_aggregate *gar_aggregate_new_moments(void);
struct gar_aggregate *gar_aggregate_new_pairs(void);
struct gar_aggregate *gar_aggregate_new_registers(struct gar_memory *memory);
struct gar_aggregate *gar_aggregate_new_sketch(struct gar_memory *memory);
struct gar_aggregate *gar_aggregate_new_keep(void);
struct gar_aggregate *gar_aggregate_new_distinct(const struct gar_aggregate_spec *spec,
                                                 struct gar_memory *memory);

#endif
