/* SPDX-License-Identifier: Apache-2.0 */
/* What the operators of a query have done so far: counted while it runs, read by anyone at any time, also after the query
 * has gone.
 *
 * Who writes: each worker has counters of its own for every operator, and so has the query role; a word has one writer
 * at a time and is written and read with relaxed atomics. Who reads adds them up. Nothing is locked and the query is not
 * asked, so looking costs the query nothing. Memory and scan counters are shared words (few writes each). */
#ifndef GAR_EXEC_PROFILE_H
#define GAR_EXEC_PROFILE_H

#include <gar/gar.h>

#include "base/attrs.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "os/clock.h"
#include "plan/provider.h"
#include "resources/account.h"

struct gar_profile;
struct gar_query;

/* The clock starts now. A reference to account (the query's; may be NULL) is taken. Owns: caller unrefs. */
GAR_MUST_USE enum gar_status gar_profile_new(struct gar_account *account, struct gar_profile **out,
                                             struct gar_error *err);
struct gar_profile *gar_profile_ref(struct gar_profile *profile);
void gar_profile_unref(struct gar_profile *profile);

/* ---- readers; any thread, never wait ---- */

void gar_profile_read_query(const struct gar_profile *profile, struct gar_query_profile *out);
/* False past the end, and before the query has been lowered. Texts live as long as the profile. */
bool gar_profile_read_operator(const struct gar_profile *profile, int64_t i,
                               struct gar_operator_profile *out);
/* What a pool of actors does; the role writes words, relaxed. */
struct gar_pool_counts {
    const char *name; /* of its function; borrowed from the profile */
    int64_t actors;
    int64_t ready; /* constructed and alive; busy ones included */
    int64_t busy;
    int64_t restarts;
    int64_t rows; /* finished */
};
/* False past the last pool, and before the query has been lowered. */
bool gar_profile_read_pool(const struct gar_profile *profile, int64_t i,
                           struct gar_pool_counts *out);
/* The physical plan as text; with_numbers: also what the query and each operator have done. */
void gar_profile_print(const struct gar_profile *profile, bool with_numbers,
                       struct gar_strbuf *out);
/* One line for terminals: how far the operators at work have come. Returns its bytes. */
int64_t gar_profile_line(const struct gar_profile *profile, char *out, int64_t out_bytes);

/* ---- what a query writes ---- */

/* Of one operator, by one worker. */
struct gar_op_counts {
    int64_t rows_in;
    int64_t rows_out;
    int64_t batches;
    int64_t bytes;
    int64_t busy_ns; /* on compute threads */
    int64_t io_ns;   /* on IO threads; role only */
};

/* Of one worker, or of the query role. Spaced so that two workers share no cache line. */
struct gar_worker_counts {
    char before[GAR_CACHE_LINE];
    int64_t cpu_ns;
    int64_t tasks;
    struct gar_op_counts ops[]; /* then a cache line's room */
};

/* A task at work. Written by its worker; the watchdog looks at op and since_ns. */
struct gar_meter {
    struct gar_worker_counts *counts;
    struct gar_activity *activity; /* atomic: of the thread, for calls */
    int64_t begin_ns;              /* of the task */
    int64_t since_ns;              /* atomic: when the operator at work began with its batch */
    int64_t cpu_ns;  /* of the thread when the task began, or of the call when it has ended */
    int64_t call_ns; /* that the call took */
    int32_t op;      /* atomic: operator at work; -1: none of them; GAR_METER_IDLE: no task */
};

#define GAR_METER_IDLE (-2)

#define GAR_COUNT_ADD(word, n) \
    __atomic_store_n(&(word), __atomic_load_n(&(word), __ATOMIC_RELAXED) + (n), __ATOMIC_RELAXED)

/* Before describe: the counters of a scan, borrowed by it. NULL: out of memory. */
struct gar_scan_counts *gar_profile_new_scan(struct gar_profile *profile);
/* What memory of gar_profile_new_memory has given out. */
int64_t gar_profile_memory_bytes(const struct gar_memory *memory);
/* Before describe: the counters of a pool, borrowed by it. NULL: out of memory. */
struct gar_pool_counts *gar_profile_new_pool(struct gar_profile *profile, const char *name);
/* Before describe: memory for one operator's needs, charged to `inner` and counted. Owns: the profile; what is
 * allocated from it keeps what it needs alive. */
GAR_MUST_USE enum gar_status gar_profile_new_memory(struct gar_profile *profile,
                                                    struct gar_memory *inner,
                                                    struct gar_memory **out, struct gar_error *err);
/* After lowering: numbers and describes the operators and opens the profile to readers. */
GAR_MUST_USE enum gar_status gar_profile_describe(struct gar_profile *profile,
                                                  const struct gar_query *query,
                                                  struct gar_error *err);
/* role: the query ended; then, when the consumer has been told: a query that is told has its end mark in the stream. */
void gar_profile_end(struct gar_profile *profile, enum gar_status status);
void gar_profile_set_told(struct gar_profile *profile);
bool gar_profile_is_told(const struct gar_profile *profile);
/* The query's account; NULL: it has none. Borrowed. */
struct gar_account *gar_profile_account(const struct gar_profile *profile);
/* Number of the query in this process, from 1. Constant. */
int64_t gar_profile_id(const struct gar_profile *profile);
/* Grows whenever an operator gives or takes a batch. Threads: any. */
int64_t gar_profile_moves(const struct gar_profile *profile);
/* role: what a query that does not move waits for; NULL: it moves. Kept by the profile, a few times. */
void gar_profile_set_waiting(struct gar_profile *profile, const char *text);
/* role: a query that was described as inline runs in the pools now. */
void gar_profile_set_on_loop(struct gar_profile *profile);
/* role: which pipeline runs now (from 1). */
void gar_profile_set_pipeline(struct gar_profile *profile, int32_t pipeline);
/* role: rows went to the consumer. */
void gar_profile_note_result(struct gar_profile *profile, int64_t rows, int64_t bytes);
/* role: a call for an operator (-1: none) has ended. */
void gar_profile_note_call(struct gar_profile *profile, const struct gar_meter *meter, int32_t op,
                           bool is_io);
/* Bytes of a batch's own rows, those it shares with other batches left out. */
int64_t gar_profile_batch_bytes(const struct gar_batch *batch);

/* worker: a task begins. Errors: GAR_ERR_NOMEM at a worker's first task. */
GAR_MUST_USE enum gar_status gar_meter_begin(struct gar_meter *meter, struct gar_profile *profile,
                                             int32_t worker, int32_t op, struct gar_error *err);
void gar_meter_end(struct gar_meter *meter);
/* IO or compute thread: the same around a call, whose time the role notes when it hears of the end. */
void gar_meter_begin_call(struct gar_meter *meter, int32_t op);
void gar_meter_end_call(struct gar_meter *meter);
/* worker: from now on `op` is at work. */
GAR_INLINE void gar_meter_enter(struct gar_meter *meter, int32_t op)
{
    __atomic_store_n(&meter->op, op, __ATOMIC_RELAXED);
}
/* worker: op is done with a batch; the time since the last call is its. */
GAR_INLINE struct gar_op_counts *gar_meter_leave(struct gar_meter *meter, int32_t op)
{
    struct gar_op_counts *counts = &meter->counts->ops[op];
    const int64_t now_ns = gar_clock_ns();
    GAR_COUNT_ADD(counts->busy_ns, now_ns - meter->since_ns);
    __atomic_store_n(&meter->since_ns, now_ns, __ATOMIC_RELAXED);
    return counts;
}
/* worker: an operator gave a batch; NULL is none. */
GAR_INLINE void gar_count_batch(struct gar_op_counts *counts, const struct gar_batch *batch)
{
    if (batch != NULL) {
        GAR_COUNT_ADD(counts->rows_out, batch->selected);
        GAR_COUNT_ADD(counts->batches, 1);
        GAR_COUNT_ADD(counts->bytes, gar_profile_batch_bytes(batch));
    }
}

#endif
