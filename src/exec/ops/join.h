/* SPDX-License-Identifier: Apache-2.0 */
/* What the two halves of a join share: join.c makes the table of one side, join_probe.c looks the other side up in it. */
#ifndef GAR_EXEC_OPS_JOIN_H
#define GAR_EXEC_OPS_JOIN_H

#include "exec/join_table.h"
#include "exec/ops/ops.h"
#include "exec/partitioned.h"

/* Which rows come out. */
struct gar_join_mode {
    bool gives_pairs; /* inner, left, right, outer */
    bool keeps_probe; /* probe rows without a partner, beside nulls */
    bool keeps_build; /* build rows without a partner, at the end */
    bool is_semi;     /* rows of left, by whether they have a partner */
    bool wants_partner;
    bool is_left_build; /* the build side is left */
};

/* Where a column of the result, or of the condition, comes from. */
struct gar_join_column {
    bool is_build;
    int64_t position; /* in the batches of the probe side; among the build side's kept columns */
};

struct gar_join_worker; /* of the sink */

struct gar_join {
    struct gar_sink sink;           /* of the build side */
    struct gar_transform transform; /* of the probe side */
    struct gar_source source;       /* build rows that are left at the end */
    struct gar_query *query;        /* borrowed */
    struct gar_plan *plan;          /* owned reference */
    struct gar_join_mode mode;
    int64_t key_count;
    int64_t eval_count; /* columns of the programs: keys, and `on` of an as-of join */
    bool *nulls_equal;  /* owned copy */
    struct gar_program *build_program; /* owned reference; NULL when eval_count is 0 */
    struct gar_program *probe_program;
    struct gar_program *condition;             /* owned reference; NULL: none, or as-of */
    struct gar_schema *condition_schema;       /* owned; the columns that it looks at */
    struct gar_join_column *condition_columns; /* owned; condition_schema->count items */
    struct gar_join_column *outputs;           /* owned; schema->count items */
    struct gar_schema *schema;                 /* owned reference; of the result */
    int64_t *kept;                             /* owned; positions in the build side's batches */
    int64_t kept_count;
    struct gar_schema *build_schema; /* owned reference; of those batches */
    struct gar_schema *probe_schema; /* owned reference */

    /* the build side's rows */
    struct gar_join_worker **workers; /* owned */
    int32_t worker_count;
    struct gar_join_rows *rows; /* owned; of all workers, in input order */
    int64_t rows_count;
    struct gar_column *
        *columns; /* owned; kept columns, then keys (NULL once the table has them), then
                                    `on`; NULL before they are joined */
    int64_t build_rows;
    struct gar_join_table *table; /* owned; NULL without keys */
    struct gar_buffer
        *marks;       /* owned; a byte a build row: it had a partner; NULL when nobody asks */
    int64_t next_row; /* of the source */

    /* when the table does not fit into memory */
    struct gar_schema *row_schema;       /* owned reference; kept columns, then what is evaluated */
    struct gar_key_layout layout;        /* owned; of the keys */
    struct gar_partitioned *build_aside; /* owned; rows by partition; NULL: they all fit */
    struct gar_partitioned *probe_aside; /* owned; rows of partitions that are not in the table */
    int32_t is_short;                    /* atomic: workers divide what they have */
    bool has_parts;                      /* not all partitions are in the table: */
    int32_t resident;                    /* only the first ones */
    int32_t step;                        /* after the input: next one, and that of the items */
    int32_t item_step;
    int32_t shift;          /* bits of the hash that all its rows share */
    struct gar_join *whole; /* of a part: what it is a part of; the plan's things are its */
    int64_t open_parts;     /* that are not through */
    int32_t probe_op;       /* the transform's number in the profile */
    struct gar_key_filter *
        *sent; /* owned; key_count items: filled with the table's keys, or NULL */
};

/* The filter of the table's keys k, made at the first call; the join owns it. Errors: GAR_ERR_NOMEM. */
GAR_MUST_USE enum gar_status gar_join_send_keys(struct gar_join *join, int64_t k,
                                                struct gar_key_filter **out, struct gar_error *err);

/* The transform's vtable, for join.c. */
extern const struct gar_transform_vtable gar_join_probe_vtable;

/* compute: the rows [0, count) of build numbers (and of nulls for the probe side) as a batch of the result. */
GAR_MUST_USE enum gar_status gar_join_build_batch(struct gar_join *join, const uint32_t *build_rows,
                                                  int64_t count, struct gar_batch **out,
                                                  struct gar_error *err);

/* Are build rows asked for after the last probe row? */
GAR_INLINE bool gar_join_has_rest(const struct gar_join *join)
{
    return join->mode.keeps_build || (join->mode.is_semi && join->mode.is_left_build);
}

/* role: joins of the partitions that are not in the table come behind branch `at`, each followed by the transforms. `op`: of
 * those in the profile, for rows that come at the end. */
GAR_MUST_USE enum gar_status gar_join_insert_parts(struct gar_join *join,
                                                   struct gar_pipeline *pipeline, int64_t at,
                                                   struct gar_transform *const *transforms,
                                                   int64_t count, int32_t op,
                                                   struct gar_error *err);
/* role: nothing is looked up any more. */
void gar_join_release(struct gar_join *join);

/* compute: of the partners of each probe row, [starts[i], starts[i] + counts[i]), leaves the nearest in `on`, or none. `on`
 * holds those of the probe rows; build rows are sorted by theirs. */
GAR_MUST_USE enum gar_status gar_join_nearest(const struct gar_join *join,
                                              const struct gar_column *on, int64_t rows,
                                              uint32_t *starts, uint32_t *counts,
                                              struct gar_error *err);

#endif
