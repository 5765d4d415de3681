/* SPDX-License-Identifier: Apache-2.0 */
/* Running a plan: lowering into pipelines, execution on the compute and IO pools, a stream of
 * batches as the result. */
#ifndef GAR_EXEC_EXEC_H
#define GAR_EXEC_EXEC_H

#include "exec/profile.h"
#include "plan/plan.h"
#include "runtime/runtime.h"
#include "storage/spill.h"
#include "stream/stream.h"

struct gar_exec_options {
    struct gar_runtime *runtime; /* borrowed; outlives the query */
    struct gar_memory *memory;   /* the query's account; a reference is taken */
    struct gar_cancel *cancel;   /* a reference is taken; NULL: the query makes its own */
    int64_t morsel_rows;         /* default_morsel_size; >= 1 */
    bool maintain_order;
    bool allow_inline; /* small work on the caller's thread */
    bool is_greedy;    /* the consumer takes everything at once: no slow start, large batches */
    bool flat_result;  /* no dictionaries, no constants: flattened on the compute threads */
    int64_t stream_batches; /* bound of the result stream, 0: default; INT64_MAX: none */
    int64_t stream_bytes;
    int64_t watchdog_ns; /* without a move for so long the query says what it waits for; 0: never */
    struct gar_profile
        *profile; /* a new one; a reference is taken; NULL: the query makes its own */
    struct gar_spill_space *spill; /* a reference is taken; NULL: nothing is spilled */
    bool spill_always;             /* for tests: operators spill whatever the room */
    int64_t
        hand_over_rows; /* for tests: inline work of so many rows moves to the pools; 0: usual */
};

/* Starts (or, inline, prepares) the optimized plan; batches are gathered (no selection), all of
 * plan->schema, with rows > 0. Everything
 * the query uses is gone when the stream is freed and its last batch released. Errors: what
 * lowering finds. Owns: caller frees *out.
 * Threads: any; does not block on IO. */
GAR_MUST_USE enum gar_status gar_exec_start(const struct gar_plan *plan,
                                            const struct gar_exec_options *options,
                                            struct gar_stream **out, struct gar_error *err);
/* The physical plan as text: pipelines, operators, strategies, and whether it would run inline. */
GAR_MUST_USE enum gar_status gar_exec_explain(const struct gar_plan *plan,
                                              const struct gar_exec_options *options,
                                              struct gar_strbuf *out, struct gar_error *err);

#endif
