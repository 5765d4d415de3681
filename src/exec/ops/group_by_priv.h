/* SPDX-License-Identifier: Apache-2.0 */
/* What aggregation holds (group_by.c), and how it counts the rows of groups. */
#ifndef GAR_EXEC_OPS_GROUP_BY_PRIV_H
#define GAR_EXEC_OPS_GROUP_BY_PRIV_H

#include "exec/aggregate_call.h"
#include "exec/group_table.h"
#include "exec/ops/ops.h"
#include "exec/partitioned.h"

enum { COUNT_LANES = 4, FEW_PLACES = 64, RUN_STEP = 16 };

/* One aggregate call of the plan. */
struct call {
    struct gar_aggregate_spec spec;
    int64_t argument; /* output of the program, -1 none */
    int64_t second;   /* likewise */
    int64_t state;    /* which accumulators */
};

/* Keys and accumulators of some groups. */
struct groups {
    struct gar_group_table *table; /* owned; NULL without keys */
    struct gar_aggregate **states; /* owned; state_count items */
    struct gar_buffer *rows;       /* owned; int64_t rows seen of each group */
    int64_t count;
    int64_t room; /* of rows */
};

struct worker {
    struct groups groups;
    struct gar_eval *eval;       /* owned */
    struct gar_column **columns; /* owned array; outputs of the program */
    struct gar_column **picked;  /* owned array; those of some rows, and their places */
    struct gar_buffer *numbers;  /* owned; uint32_t group of each row of a batch */
    struct gar_buffer *lists;  /* owned; uint32_t rows of groups it has, others, hashes of these */
    struct gar_buffer *places; /* owned; uint64_t */
    uint64_t *scratch;         /* owned; key rows */
    bool is_frozen;            /* takes no more groups */
    bool is_closed;            /* takes no more rows */
    struct gar_group_parts parts;
};

/* Groups of a frozen table that a part takes over. */
struct share {
    const struct groups *groups;
    const uint32_t *listed; /* borrowed from the giver */
    int64_t count;
    struct gar_group_parts parts; /* of the listed ones */
};

struct group_by {
    struct gar_sink base;
    struct gar_source source;
    struct gar_query *query;     /* borrowed */
    struct gar_schema *schema;   /* of the result; owned reference */
    struct gar_program *program; /* owned reference; NULL when it has no outputs */
    int64_t output_count;
    int64_t key_count;
    struct gar_key_layout layout;
    struct call *calls; /* owned */
    int64_t call_count;
    bool may_waste;  /* no aggregate can fail on, or is slower with, values of dropped rows */
    bool keeps_rows; /* some combine looks at all rows kept, whatever groups it is asked for */
    bool has_places; /* some result depends on the order of rows */
    struct gar_aggregate_spec
        *state_specs;         /* owned; call_count items, the first state_count in use */
    int64_t *state_arguments; /* owned; arguments, then seconds */
    int64_t state_count;
    struct worker **workers; /* owned; NULL where a worker had nothing to do */
    int32_t worker_count;
    /* after the input */
    struct worker **used; /* owned array of borrowed workers, the one with most groups first */
    int64_t used_count;
    int32_t partition_bits;
    struct groups *parts; /* owned when partitioned */
    int64_t part_count;   /* 0: used[0] is the result */
    int64_t next_part;
    int64_t next_row;
    const struct gar_plan *plan; /* owned reference */
    /* under pressure */
    struct gar_schema *row_schema; /* owned reference; outputs of the program, then maybe places */
    struct gar_partitioned *aside; /* owned; rows; NULL without keys */
    int32_t is_short;              /* atomic: all workers freeze */
    bool has_parts;                /* what is aside makes the result */
    int32_t shift;                 /* bits of the hash that all its rows share */
    int64_t bytes_before;          /* that the operator held when this part of it began */
    struct group_by *whole;        /* of a part: what it is a part of; the plan's things are its */
    struct share *shares;          /* owned; of a part */
    int64_t share_count;
    int64_t open_parts; /* that are not through */
};

/* Rows of each place, of some batch. Few places are counted in several lanes: a counter that is raised row after row
 * would wait for itself. */
struct row_counts {
    int64_t *seen;
    bool is_few;
    uint32_t lanes[COUNT_LANES][FEW_PLACES];
};

GAR_INLINE void count_places(struct row_counts *counts, const uint32_t *places, int64_t count)
{
    int64_t i = 0;
    for (; counts->is_few && i + COUNT_LANES <= count; i += COUNT_LANES) {
        for (int64_t k = 0; k < COUNT_LANES; k++) {
            counts->lanes[k][places[i + k]]++;
        }
    }
    for (; i < count; i++) {
        counts->seen[places[i]]++;
    }
}

GAR_INLINE void end_counts(struct row_counts *counts, int64_t places)
{
    for (int64_t p = 0; counts->is_few && p < places; p++) {
        for (int64_t k = 0; k < COUNT_LANES; k++) {
            counts->seen[p] += counts->lanes[k][p];
        }
    }
}

/* Selected rows that lie side by side, from selection[at] on. */
GAR_INLINE int64_t run_of(const uint32_t *selection, int64_t at, int64_t count)
{
    int64_t n = 1;
    while (at + n + RUN_STEP <= count &&
           selection[at + n + RUN_STEP - 1] == selection[at] + n + RUN_STEP - 1) {
        n += RUN_STEP;
    }
    while (at + n < count && selection[at + n] == selection[at] + n) {
        n++;
    }
    return n;
}

#endif
