/* SPDX-License-Identifier: Apache-2.0 */
/* Who performs the calls of a user function: threads of this process, or a pool of actors. The operator (ops/udf.c) cuts
 * batches, keeps order and bounds; a performer turns arguments into results.
 *
 * Everything here belongs to the query role but for what a performer does on threads of its own. */
#ifndef GAR_EXEC_PERFORMER_H
#define GAR_EXEC_PERFORMER_H

#include <gar/function.h>

#include "arrow/batch.h"
#include "expr/udf.h"

struct gar_query;
struct gar_performer; /* the kind's own */

/* Some calls that follow each other: pieces of exactly the function's batch_rows, the last maybe smaller. Embedded. */
struct gar_udf_work {
    struct gar_batch *
        *parts; /* owned by the operator; batches of kept and argument columns in order */
    int64_t part_count;
    int64_t rows;
    int64_t first_row;        /* in the function's input */
    struct gar_batch *output; /* made by the performer: kept columns and the result */
    int64_t took_ns;
    /* role, once for each accepted work, never inside submit; an advance follows. status < 0: the query has failed. */
    void (*done)(struct gar_udf_work *work, enum gar_status status);
};

struct gar_performer_options {
    struct gar_udf *udf;      /* borrowed; outlives the performer */
    struct gar_query *query;  /* borrowed */
    struct gar_schema *input; /* of parts: the first `kept` columns go on, the rest are arguments */
    int64_t kept;
    struct gar_schema *output;
    struct gar_memory *memory;
    int32_t op; /* of the operator, in the profile; set before the first submit */
};

struct gar_udf_kind {
    const char *name; /* "in this process" */
    /* On the thread that starts the query. */
    enum gar_status (*open)(const struct gar_performer_options *options, struct gar_performer **out,
                            struct gar_error *err);
    /* How many works it likes to have at once. */
    int32_t (*width)(const struct gar_performer *performer);
    enum gar_status (*submit)(struct gar_performer *performer, int32_t op,
                              struct gar_udf_work *work, struct gar_error *err);
    /* No more works; all are done. GAR_PENDING: ask again after the next advance. */
    enum gar_status (*end)(struct gar_performer *performer, int32_t op, struct gar_error *err);
    /* No work is under way. */
    void (*free)(struct gar_performer *performer);
};

/* Functions of this process, on the Python pool; the udf's context is a struct gar_user_function of the kind's own. */
extern const struct gar_udf_kind gar_udf_in_process;

#endif
