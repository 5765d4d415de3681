/* SPDX-License-Identifier: Apache-2.0 */
/* What the window operator (window.c) and the computing of its calls (window_call.c) share. */
#ifndef GAR_EXEC_OPS_WINDOW_H
#define GAR_EXEC_OPS_WINDOW_H

#include "exec/aggregate_call.h"
#include "expr/window.h"

enum gar_window_kind {
    GAR_WINDOW_ROW_NUMBER,
    GAR_WINDOW_RANK,
    GAR_WINDOW_DENSE_RANK,
    GAR_WINDOW_PERCENT_RANK,
    GAR_WINDOW_CUME_DIST,
    GAR_WINDOW_NTILE,
    GAR_WINDOW_LAG,
    GAR_WINDOW_LEAD,
    GAR_WINDOW_FIRST_VALUE,
    GAR_WINDOW_LAST_VALUE,
    GAR_WINDOW_NTH_VALUE,
    GAR_WINDOW_AGGREGATE,
};

/* One call. Columns are places in the inputs of gar_window_compute; -1: there is none. */
struct gar_window_call {
    enum gar_window_kind kind;
    const struct gar_expr *expr; /* the WINDOW node; borrowed */
    struct gar_type type;        /* of the result */
    struct gar_aggregate_spec spec;
    int64_t argument;
    int64_t second;
    int64_t fallback;  /* lag, lead: the default, of the argument's type */
    int64_t start_key; /* range bounds: the key as the bound's type, and the bound of each row */
    int64_t start;
    int64_t end_key;
    int64_t end;
    int64_t number; /* ntile's buckets, the offset of lag and lead, n */
    bool ignore_nulls;
    bool is_descending; /* the first key */
};

/* Sorted rows of some whole partitions. All arrays have count items and hold places 0 .. count. */
struct gar_window_rows {
    int64_t count;
    int64_t *part_first; /* first row of the row's partition, and the one after its last */
    int64_t *part_end;
    int64_t *peer_first; /* likewise of its peers */
    int64_t *peer_end;
    struct gar_column **inputs; /* in sorted order */
    struct gar_memory *memory;  /* borrowed */
};

/* The call's values for the rows, as a FLAT column. Errors: those of aggregates, GAR_ERR_NOMEM, GAR_ERR_CANCELLED
 * (base/stop.h). Owns: caller unrefs. */
GAR_MUST_USE enum gar_status gar_window_compute(const struct gar_window_call *call,
                                                const struct gar_window_rows *rows,
                                                struct gar_column **out, struct gar_error *err);

#endif
