/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of three columns, and plans over them whose answer is worked out row by row beside the engine. Every operator keeps the
 * schema (k int32, v int64, s string), so that plans nest at will. */
#ifndef GAR_SIM_ROWS_H
#define GAR_SIM_ROWS_H

#include "plan/plan.h"
#include "scheduler.h"

struct sim_row {
    int32_t k; /* few values; -1: null */
    int32_t s; /* number of a text */
    int64_t v; /* many values; -1: null */
};

/* How much of an answer is known before it runs. */
enum sim_certainty {
    SIM_ORDERED, /* rows in this order */
    SIM_BAG,     /* these rows in any order */
    SIM_COUNT,   /* so many rows, not which */
    SIM_UNKNOWN
};

struct sim_rows {
    struct sim_row *rows; /* malloc */
    int64_t count;
    int64_t capacity;
    enum sim_certainty certainty;
};

void sim_rows_add(struct sim_rows *rows, struct sim_row row);
void sim_rows_free(struct sim_rows *rows);
void sim_rows_sort(struct sim_rows *rows); /* by all columns */
struct sim_rows sim_rows_random(struct sim_rng *rng, int64_t count);

/* Of columns k, v, s. */
struct gar_schema *sim_schema_new(void);
/* Column positions[i] of the schema as column i; a failing allocation is an error. */
GAR_MUST_USE enum gar_status sim_batch_new(struct gar_schema *schema, const int64_t *positions,
                                           int64_t count, const struct sim_row *rows,
                                           int64_t row_count, struct gar_memory *memory,
                                           struct gar_batch **out, struct gar_error *err);
/* Adds the rows of a batch of all three columns. Allocates nothing from the engine. */
void sim_batch_read(const struct gar_batch *batch, struct sim_rows *out);

/* A plan over one of `providers` (drawn; rows[i] are its rows) and its answer. is_ordered: maintain_order. Owns: both are the
 * caller's. */
struct gar_plan *sim_plan_random(struct sim_rng *rng, struct gar_scan_provider *const *providers,
                                 const struct sim_rows *rows, int64_t count, bool is_ordered,
                                 struct sim_rows *out);

/* The first n rows of a table of at least so many. */
struct gar_plan *sim_plan_first(struct gar_scan_provider *provider, const struct sim_rows *rows,
                                int64_t n, bool is_ordered, struct sim_rows *out);

/* NULL when the rows are what was expected, else what is wrong (static). is_complete: the stream has ended well; otherwise the
 * rows so far must be possible. got may be sorted. */
const char *sim_rows_differ(const struct sim_rows *want, struct sim_rows *got, bool is_complete);

#endif
