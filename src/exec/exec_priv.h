/* SPDX-License-Identifier: Apache-2.0 */
/* The running query: pipelines of a source, transforms and a sink, and the jobs that carry morsels through them.
 *
 * Who may touch what: everything of a query and its pipelines belongs to the query role (the
 * loop's thread, or the caller of an inline
 * query), but for worker states, which belong to the one task that runs under that worker's number, and jobs, which belong to
 * their task from submit until they report back. Functions below say "role" or "compute"
 * accordingly. */
#ifndef GAR_EXEC_EXEC_PRIV_H
#define GAR_EXEC_EXEC_PRIV_H

#include "base/arena.h"
#include "exec/exec.h"
#include "exec/profile.h"
#include "expr/program.h"

struct gar_query;
struct gar_pipeline;
struct gar_job;
struct gar_spill_file;

/* Rows that one decode call gives at most: what an operator works on at once, sized for L2. */
#define GAR_EXEC_BATCH_ROWS 16384

/* ---- sources ---- */

/* Where a branch gets its batches: a scan, or what an earlier pipeline's sink made. */
struct gar_source {
    const struct gar_source_vtable *vtable;
    struct gar_memory *memory; /* what it allocates from, in the profile; NULL: not counted apart */
    struct gar_scan_counts *counts; /* a scan's, in the profile */
    int32_t op;                     /* number of the operator in the profile */
};

/* One unit of work: a piece of the input in order. */
struct gar_source_unit {
    struct gar_unit *unit; /* a scan's, owned by it */
    int64_t part;          /* a sink's: which part */
    int64_t next;          /* and its next row */
    int64_t end;
    struct gar_batch *batch; /* a source's that reads its parts: what it has read; owned by it */
};

struct gar_source_vtable {
    const char *name; /* "scan" */
    /* role: GAR_OK, GAR_EOF, or GAR_PENDING when IO has to come first (gar_query_advance is called
     * then). */
    enum gar_status (*next)(struct gar_source *source, struct gar_query *query,
                            struct gar_source_unit *out, struct gar_error *err);
    /* compute: the next batch of the unit, or GAR_EOF. */
    enum gar_status (*decode)(struct gar_source *source, struct gar_source_unit *unit,
                              int32_t worker, int64_t max_rows, struct gar_batch **out,
                              struct gar_error *err);
    void (*unit_free)(struct gar_source *source, struct gar_source_unit *unit); /* any */
    /* role: stop reading ahead; units that come anyway are dropped. May be NULL. */
    void (*stop)(struct gar_source *source);
    /* role: next gave GAR_EOF, of branch `at` of the pipeline. More branches may be put behind it
     * (gar_pipeline_insert). May be NULL. */
    enum gar_status (*follow)(struct gar_source *source, struct gar_pipeline *pipeline, int64_t at,
                              struct gar_error *err);
    /* role: its branch is through; what it holds may go. May be NULL. */
    void (*release)(struct gar_source *source);
    /* Of a source that reads its units; else both are NULL. park, role: nothing of the source is at work; drop what can
     * be read again, of the unit (NULL: of what waits inside the source). True: the unit has to be reloaded. reload, IO
     * pool: read a parked unit again, so that decode goes on where it was. */
    bool (*park)(struct gar_source *source, struct gar_source_unit *unit);
    enum gar_status (*reload)(struct gar_source *source, struct gar_source_unit *unit,
                              struct gar_error *err);
    void (*explain)(const struct gar_source *source, struct gar_strbuf *out);
    void (*free)(struct gar_source *source); /* no job of it is under way; may be NULL */
};

/* ---- transforms ---- */

struct gar_transform {
    const struct gar_transform_vtable *vtable;
};

struct gar_transform_vtable {
    const char *name; /* "filter" */
    enum gar_status (*worker_new)(struct gar_transform *transform, struct gar_query *query,
                                  int32_t worker, void **out, struct gar_error *err);
    void (*worker_free)(struct gar_transform *transform, void *worker);
    /* compute: consumes batch (also on failure); *out is NULL when no row is left. */
    enum gar_status (*apply)(struct gar_transform *transform, void *worker, struct gar_batch *batch,
                             struct gar_batch **out, struct gar_error *err);
    /* compute; NULL for those that give at most one batch for one: the next batch for the one last applied, NULL when
     * there is no more. */
    enum gar_status (*more)(struct gar_transform *transform, void *worker, struct gar_batch **out,
                            struct gar_error *err);
    /* compute; with more: take what is left of the batch last applied out of the worker's state, to be put into one
     * (maybe another's) later by resume, or to be dropped. */
    enum gar_status (*suspend)(struct gar_transform *transform, void *worker, void **out,
                               struct gar_error *err);
    void (*resume)(struct gar_transform *transform, void *worker, void *saved);
    void (*drop)(struct gar_transform *transform, void *saved); /* any */
    /* role: the source of the last branch that it stands in, `at`, where it is transform `t`, has come to its end. More
     * branches may be put behind it. May be NULL. */
    enum gar_status (*follow)(struct gar_transform *transform, struct gar_pipeline *pipeline,
                              int64_t at, int64_t t, struct gar_error *err);
    /* role: all branches that it stands in are through; what it holds may go. May be NULL. */
    void (*release)(struct gar_transform *transform);
    void (*explain)(const struct gar_transform *transform, struct gar_strbuf *out);
    void (*free)(struct gar_transform *transform);
};

/* ---- sinks ---- */

struct gar_sink {
    const struct gar_sink_vtable *vtable;
    struct gar_memory *memory; /* what it allocates from, in the profile */
    int32_t op;                /* number of the operator in the profile */
};

struct gar_sink_vtable {
    const char *name; /* "group by" */
    /* role: before the first push; workers is the number of worker states. */
    enum gar_status (*start)(struct gar_sink *sink, struct gar_query *query, int32_t workers,
                             struct gar_error *err);
    /* compute: takes the batch (moved, also on failure) of rows [row, row + selected) of unit seq.
     * NULL: batches are kept
     * in the job and come to deliver. */
    enum gar_status (*push)(struct gar_sink *sink, int32_t worker, int64_t seq, int64_t row,
                            struct gar_batch *batch, struct gar_error *err);
    /* role, only without push: gathered batches, in order where order is kept. GAR_OK: moved.
     * GAR_PENDING: full, keep the
     * batch; gar_query_advance is called when there is room. GAR_EOF: not wanted any more, keep
     * (and free) it. */
    enum gar_status (*deliver)(struct gar_sink *sink, struct gar_query *query,
                               struct gar_batch *batch, struct gar_error *err);
    /* role: all input is there. Begins step `stage` (0, 1, ...) and tells how many independent items it has; none: the
     * sink is complete. GAR_PENDING: wait for gar_query_advance and ask again. May be NULL. */
    enum gar_status (*stage)(struct gar_sink *sink, struct gar_query *query, int32_t stage,
                             int64_t *out_items, struct gar_error *err);
    /* compute: one item. */
    enum gar_status (*item)(struct gar_sink *sink, int32_t stage, int64_t item, int32_t worker,
                            struct gar_error *err);
    void (*explain)(const struct gar_sink *sink, struct gar_strbuf *out);
    void (*free)(struct gar_sink *sink);
};

/* ---- pipelines ---- */

struct gar_branch {
    struct gar_source *source;         /* owned by the query */
    struct gar_transform **transforms; /* in the arena; the items are owned by the query */
    int64_t transform_count;
    int64_t transform_capacity;
    void **worker_states;        /* workers x transform_count, made at need by the worker */
    bool waits;                  /* for the last unit of the branches before it to be through */
    int32_t op;                  /* number of the source in the profile; transforms follow */
    struct gar_pipeline *before; /* the first of those that make what source gives; they run when
                                    the branch's turn comes. NULL: none, or they have begun */
};

/* Transforms with `more` lie below this position of their branch. */
#define GAR_EXEC_MORE_MAX 64

enum gar_pipeline_state {
    GAR_PIPELINE_WAITING,
    GAR_PIPELINE_RUNNING,
    GAR_PIPELINE_FINALIZING,
    GAR_PIPELINE_DONE
};

/* Where a batch has to be cut on its way into deliver. */
struct gar_row_range {
    int64_t skip; /* rows still to be dropped */
    int64_t take; /* rows still wanted, -1: all */
};

/* How much a pipeline before the result makes in advance: little at first, more the more the consumer has taken. So a
 * result of which a few rows were read holds little, however large it is. Role only. */
struct gar_pace {
    bool is_on;
    int64_t granted_bytes;   /* that jobs at work may make */
    int64_t held_bytes;      /* that jobs not at work have made */
    int64_t delivered_bytes; /* so far */
    int64_t retired;         /* units so far */
    int64_t batch_rows;      /* of the next batch of a job */
    int64_t blocked_ns;      /* since when the consumer has been full; 0: it is not */
};

struct gar_pipeline {
    struct gar_query *query;
    struct gar_branch *branches; /* in the arena */
    int64_t branch_count;
    struct gar_sink *sink;      /* owned by the query */
    struct gar_row_range range; /* limit and offset; only before sinks with deliver */
    bool is_ordered;            /* deliver in order */
    bool is_result;             /* the sink is the result */
    bool is_streaming;          /* the next pipeline reads what the sink has while this one runs */
    struct gar_pipeline *next;  /* to run after this one */
    int32_t number;             /* from 1, in the profile */
    struct gar_pipeline *all_next;

    /* role */
    enum gar_pipeline_state state;
    int64_t branch;   /* that gives units now */
    int64_t released; /* branches that are through, and have given back what they held */
    int64_t branch_capacity;
    bool is_branch_begun;  /* it has given one */
    int64_t seq_next;      /* number of the next unit */
    int64_t seq_head;      /* oldest unit not delivered */
    int64_t in_flight;     /* jobs at work */
    int64_t window;        /* most units between head and next */
    struct gar_job **ring; /* window_max items; NULL: none */
    int64_t held_units;    /* jobs in the ring */
    int64_t window_max;
    int64_t work_rows; /* through the operator that had most, and bytes; of an inline query */
    int64_t work_bytes;
    struct gar_pace pace;
    bool is_satisfied; /* enough rows: stop */
    int32_t stage;
    bool is_stage_begun; /* items of this stage are under way */

    int32_t stop; /* atomic: jobs end early */
};

/* ---- jobs ---- */

enum gar_job_kind {
    GAR_JOB_MORSEL, /* a unit through a pipeline */
    GAR_JOB_ITEM,   /* an item of a sink's stage */
    GAR_JOB_CALL,   /* work.run(work.context) */
};

/* What a pool does for an operator besides morsels and items. */
struct gar_work {
    int32_t op;            /* number of the operator it is for; -1: none */
    bool is_io;            /* on the IO pool, else on the compute pool */
    struct gar_pool *pool; /* borrowed: on this pool instead; NULL: as is_io says */
    enum gar_status (*run)(void *context, int32_t worker, struct gar_error *err);
    void (*done)(void *context, struct gar_query *query, enum gar_status status,
                 const struct gar_error *err); /* role; an advance follows */
    void *context;
};

struct gar_job {
    struct gar_task task;
    struct gar_message message;
    struct gar_query *query; /* borrowed: lives while jobs are under way */
    enum gar_job_kind kind;
    struct gar_pipeline *pipeline; /* MORSEL, ITEM */
    int64_t seq;                   /* MORSEL */
    int64_t slot;                  /* MORSEL: in the ring */
    struct gar_branch *branch;
    struct gar_source_unit unit;
    int64_t rows;               /* that reached the sink so far */
    int64_t rows_max;           /* no more are needed from this unit; -1: all */
    struct gar_batch **outputs; /* owned; for deliver */
    int64_t output_count;
    int64_t output_capacity;
    int64_t output_next; /* the first that was not delivered */
    int64_t output_bytes;
    int64_t output_bytes_max; /* it stops for the role at so many */
    int64_t batch_rows;       /* to decode at once, and bytes of output that it shall come to: */
    int64_t batch_bytes;      /* batch_rows is adapted; 0: it is not */
    int64_t work_rows;        /* of the pipeline, in an inline query */
    int64_t work_bytes;
    uint64_t more; /* bits of the transforms that may have more for their last batch */
    void **saved;  /* owned; while not at work: what they would go on from, by transform; or NULL */
    bool is_running; /* at work, not in the ring's hands */
    bool is_parked;  /* the unit has to be reloaded */
    bool is_done;    /* the unit is finished */
    int64_t item;    /* ITEM */
    int32_t stage;
    struct gar_work work;         /* CALL */
    struct gar_meter meter;       /* of the task, while it runs */
    struct gar_job *at_work_next; /* role: of the query's list */
    struct gar_job *at_work_previous;
    struct gar_job *next_free; /* or next in an inline query's run list */
    enum gar_status status;
    struct gar_error error;
};

/* ---- the query ---- */

struct gar_owned {
    struct gar_owned *next;
    void *object;
    void (*free)(void *object);
};

/* Looks whether a query in the pools moves; role. */
struct gar_watchdog {
    struct gar_timer timer;
    int64_t limit_ns; /* without a move: tell; 0: never */
    int64_t events;   /* jobs that reported back */
    int64_t seen;     /* moves at the last look */
    int64_t since_ns; /* of the last move seen */
    bool has_told;
};

struct gar_query {
    int64_t refs;                /* atomic */
    struct gar_runtime *runtime; /* borrowed; entered while it runs in the pools */
    struct gar_memory *memory;   /* owned reference */
    struct gar_cancel *cancel;   /* owned reference */
    struct gar_profile *profile; /* owned reference */
    struct gar_cancel_waker waker;
    struct gar_timer deadline;
    struct gar_schema *schema;    /* owned reference */
    struct gar_spill_file *spill; /* owned; NULL: nothing is spilled */
    bool spills_always;           /* for tests */
    int64_t morsel_rows;
    bool is_ordered;
    bool is_flat; /* the result has FLAT columns only */
    bool is_inline;
    bool is_greedy;         /* the consumer takes all at once: no pace */
    bool is_handed;         /* began inline, runs in the pools; of the consumer's thread */
    bool is_on_loop;        /* the loop has begun with it */
    int64_t hand_over_rows; /* for tests; 0: the usual bounds */
    bool has_write;         /* freeing may do IO */
    int32_t workers;        /* worker numbers: 0 .. workers - 1 */
    struct gar_arena arena;
    struct gar_pipeline *pipelines; /* all, in the order in which they were made */
    struct gar_pipeline **all_tail;
    struct gar_pipeline *first; /* in the order to run, but for those before a branch */
    struct gar_pipeline **tail;
    struct gar_owned *owned; /* sources, transforms, sinks; newest first */

    struct gar_message start_message; /* and everything else that only asks for an advance */
    struct gar_stream_sink *stream;   /* owned; queue queries */
    struct gar_stream *inner;         /* owned until it is taken over; of the consumer's thread */
    struct gar_timer idle;            /* parks the query */
    int64_t idle_ns;                  /* after so long without a consumer */
    bool is_idle_timed;

    struct gar_actor_group
        *actors; /* owned as an object; of functions that pools perform; or NULL */

    /* role */
    struct gar_pipeline *current;
    int64_t in_flight;       /* all jobs */
    struct gar_job *at_work; /* list of them */
    struct gar_watchdog watchdog;
    bool is_started;
    bool is_failed;
    bool is_finished;
    bool is_advancing;
    bool advance_again;
    enum gar_status status;
    struct gar_error error;
    struct gar_job *free_jobs;
    struct gar_job *run_first; /* inline: jobs to run, first in first out */
    struct gar_job *run_last;
    struct gar_batch **ready; /* inline: results not yet taken */
    int64_t ready_count;
    int64_t ready_capacity;
    int64_t ready_next;
};

/* May operators put rows on disk? */
bool gar_query_may_spill(const struct gar_query *query);
/* Shall an operator that is about to take `bytes` more spill instead? When that would leave less than a quarter of the
 * memory limit to the others, or always, for tests. Never when nothing may be spilled. Threads: any. */
bool gar_query_is_short(const struct gar_query *query, int64_t bytes);
/* Is so much of the memory in use that no more should be begun beside what is at work? Threads: any. */
bool gar_query_is_crowded(const struct gar_query *query);
/* For constructors of operators: memory of the query that is counted for this operator. Owns: the profile. */
GAR_MUST_USE GAR_INLINE enum gar_status gar_query_op_memory(struct gar_query *query,
                                                            struct gar_memory **out,
                                                            struct gar_error *err)
{
    return gar_profile_new_memory(query->profile, query->memory, out, err);
}

/* Let the query own an object. On failure it is freed. */
GAR_MUST_USE enum gar_status gar_query_own(struct gar_query *query, void *object,
                                           void (*free_object)(void *object),
                                           struct gar_error *err);
/* role: look what can be done now: deliver, dispatch, go to the next stage. */
void gar_query_advance(struct gar_query *query);
/* role: the first failure wins; the rest is cancelled. */
void gar_query_fail(struct gar_query *query, enum gar_status status, const struct gar_error *err);
/* role: have the work (copied) done. Errors: GAR_ERR_NOMEM; then done is not called. */
GAR_MUST_USE enum gar_status gar_query_call(struct gar_query *query, const struct gar_work *work,
                                            struct gar_error *err);
/* role: a result batch (gathered) goes to the consumer: GAR_OK (moved), GAR_PENDING, or an error.
 * */
enum gar_status gar_query_emit(struct gar_query *query, struct gar_batch *batch,
                               struct gar_error *err);

/* Has an inline query's pipeline outgrown the caller's thread? Any thread. */
bool gar_query_is_outgrown(const struct gar_query *query, int64_t rows, int64_t bytes);
/* role: the query, inline until now, runs in the pools: give them what is listed, and widen the window. */
void gar_query_widen(struct gar_query *query) GAR_REQUIRES(gar_query_role);
/* role: first in first out; NULL: none is listed. */
struct gar_job *gar_query_take_job(struct gar_query *query) GAR_REQUIRES(gar_query_role);
/* What pipelines, operators and sinks hold. No job is at work. */
void gar_query_free_parts(struct gar_query *query);
/* Threads: any. */
void gar_query_unref(struct gar_query *query);

/* compute (or the IO pool): do what the job is for. */
void gar_job_run(struct gar_job *job, int32_t worker);
/* role: a job has reported back; followed by an advance. */
void gar_job_handle(struct gar_job *job) GAR_REQUIRES(gar_query_role);
/* role: a query in the pools was called; its watchdog looks from now on, if it did not. */
void gar_watchdog_wake(struct gar_query *query) GAR_REQUIRES(gar_query_role);
void gar_watchdog_stop(struct gar_query *query) GAR_REQUIRES(gar_query_role);

/* Jobs kept for later. */
void gar_query_free_idle_jobs(struct gar_query *query);
/* Frees what it holds but its unit. */
void gar_job_free(struct gar_job *job);

/* A pipeline into the sink, which is none of those to run yet. branches lie in the query's arena. */
GAR_MUST_USE enum gar_status gar_pipeline_new(struct gar_query *query, struct gar_branch *branches,
                                              int64_t count, struct gar_sink *sink,
                                              struct gar_pipeline **out, struct gar_error *err);
/* role: a pipeline from the source to the sink that may be put before a branch of `pipeline`. */
GAR_MUST_USE enum gar_status gar_pipeline_new_before(struct gar_pipeline *pipeline,
                                                     struct gar_source *source,
                                                     struct gar_sink *sink,
                                                     struct gar_pipeline **out,
                                                     struct gar_error *err);
/* role: one more branch of a running pipeline, behind branch `after`: from follow only. Of `branch` source, transforms, op
 * and before are read. */
GAR_MUST_USE enum gar_status gar_pipeline_insert(struct gar_pipeline *pipeline, int64_t after,
                                                 const struct gar_branch *branch,
                                                 struct gar_error *err);
/* role: branches before `end` are through: sources and transforms that no later one has give back what they hold. */
void gar_pipeline_release(struct gar_pipeline *pipeline, int64_t end);

/* compute: the morsel of a job, until its unit ends, its outputs are many, or something stops it.
 * */
void gar_pipeline_run_morsel(struct gar_job *job, int32_t worker);
/* Forget what the transforms of a job would go on from. */
void gar_pipeline_drop_saved(struct gar_job *job);
/* role: how many more units may be at work. */
int64_t gar_pipeline_room(const struct gar_pipeline *pipeline);
/* Places for the worker states of all branches. */
GAR_MUST_USE enum gar_status gar_pipeline_make_workers(struct gar_pipeline *pipeline,
                                                       int32_t workers, struct gar_error *err);
/* Worker states of all branches, which are made again at need; no job is at work. */
void gar_pipeline_drop_workers(struct gar_pipeline *pipeline, int32_t workers);
/* The same, and their places. */
void gar_pipeline_free_workers(struct gar_pipeline *pipeline, int32_t workers);

/* ---- lowering ---- */

/* Builds query->pipelines, the last of which ends in the result. is_dry: for explain, opens
 * nothing that writes. */
GAR_MUST_USE enum gar_status gar_query_lower(struct gar_query *query, const struct gar_plan *plan,
                                             bool is_dry, struct gar_error *err);

#endif
