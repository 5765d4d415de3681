/* SPDX-License-Identifier: Apache-2.0 */
/* Who performs the calls of a user function: threads of this process, or a pool of actors. The operator (ops/udf.c) cuts
 * batches, keeps order and bounds; a performer turns arguments into results.
 *
 * Everything here belongs to the query role but for what a performer does on threads of its own. */
#ifndef GAR_EXEC_PERFORMER_H
#define GAR_EXEC_PERFORMER_H

#include <gar/function.h>

#include "actors/policy.h"
#include "arrow/batch.h"
#include "expr/udf.h"
#include "plan/plan.h"

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
    bool is_grouping; /* a work may have several calls */
    /* On the thread that starts the query. */
    enum gar_status (*open)(const struct gar_performer_options *options, struct gar_performer **out,
                            struct gar_error *err);
    /* role: the query runs. May be NULL. */
    enum gar_status (*start)(struct gar_performer *performer, struct gar_error *err);
    /* role: nobody wants results any more. May be NULL. */
    void (*stop)(struct gar_performer *performer);
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

/* Functions that a pool of actors performs; the udf's context is this. */
struct gar_actor_spec {
    int32_t count;
    bool takes_fewer;
    bool inherits_devices;
    bool is_spread;
    struct gar_resource_request request;
    struct gar_actor_policy policy;
    char **argv; /* owned, ends with NULL */
    void *code;  /* owned */
    int64_t code_bytes;
};
GAR_MUST_USE enum gar_status gar_actor_spec_new(const struct gar_actor_function *function,
                                                struct gar_actor_spec **out, struct gar_error *err);
void gar_actor_spec_free(void *object); /* a spec */
extern const struct gar_udf_kind gar_udf_in_actors;

/* After lowering, on the thread that starts the query: acquire what all pools need, or wait for it. Errors: what can
 * never be. */
GAR_MUST_USE enum gar_status gar_query_acquire(struct gar_query *query, struct gar_error *err);

/* What the user functions of a plan need and where they would go, for explain; nothing is booked. */
GAR_MUST_USE enum gar_status gar_exec_explain_resources(const struct gar_plan *plan,
                                                        struct gar_strbuf *out,
                                                        struct gar_error *err);

/* Kept columns of a batch beside the result (moved, also on failure). rows: of the batch for each row, or NULL. */
GAR_MUST_USE enum gar_status gar_performer_output(const struct gar_performer_options *options,
                                                  const struct gar_batch *input,
                                                  struct gar_column *result, const int64_t *rows,
                                                  struct gar_batch **out, struct gar_error *err);
/* The arguments of a batch as a batch of `args`. */
GAR_MUST_USE enum gar_status gar_performer_args(const struct gar_performer_options *options,
                                                struct gar_schema *args,
                                                const struct gar_batch *input,
                                                struct gar_batch **out, struct gar_error *err);
/* The parts of a work as one gathered batch; compute. */
GAR_MUST_USE enum gar_status gar_performer_join(const struct gar_performer_options *options,
                                                const struct gar_udf_work *work,
                                                struct gar_batch **out, struct gar_error *err);

#endif
