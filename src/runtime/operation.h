/* SPDX-License-Identifier: Apache-2.0 */
/* The one asynchronous thing: caller-owned, started once, finished exactly once, cancellable. */
#ifndef GAR_RUNTIME_OPERATION_H
#define GAR_RUNTIME_OPERATION_H

#include "base/attrs.h"
#include "base/error.h"

/* Bits; the last two only while a cancel runs. */
enum gar_operation_state {
    GAR_OPERATION_IDLE = 0,
    GAR_OPERATION_STARTED = 1,
    GAR_OPERATION_FINISHED = 2,
    GAR_OPERATION_CANCELLING = 4,     /* on_cancel runs */
    GAR_OPERATION_FINISH_WAITING = 8, /* finished meanwhile; the cancelling thread runs on_finish */
};

/* Embedded in the caller's struct. The caller sets on_finish before it starts the operation; the performer sets
 * on_cancel by gar_operation_start. */
struct gar_operation {
    int32_t state;          /* atomic bits of enum gar_operation_state */
    int32_t cancelled;      /* atomic; a cancel was asked for */
    enum gar_status status; /* valid in on_finish and after */
    struct gar_error error; /* valid when status < 0 */
    /* Runs once, on the finishing thread (or on one that is just cancelling), with no lock held; may free the operation. */
    void (*on_finish)(struct gar_operation *operation);
    /* A request to finish soon; may run on any thread, at most once, never after or while on_finish runs. */
    void (*on_cancel)(struct gar_operation *operation);
};

void gar_operation_init(struct gar_operation *operation,
                        void (*on_finish)(struct gar_operation *operation));
/* The performer accepts the work. on_cancel may be NULL (the performer looks at gar_operation_is_cancelled). False when
 * it was cancelled before: then it has been finished (GAR_ERR_CANCELLED) by this call, and nothing is to be done. */
GAR_MUST_USE bool gar_operation_start(struct gar_operation *operation,
                                      void (*on_cancel)(struct gar_operation *operation));
/* The performer is done: records status and error (may be NULL) and runs on_finish. Exactly once; a second call is a
 * bug that an assert names. */
void gar_operation_finish(struct gar_operation *operation, enum gar_status status,
                          const struct gar_error *err);
/* Ask to stop. Before start: start then finishes it at once. The operation must be alive: ask from where on_finish runs
 * (the loop), or hold a reference. Any number of times. */
void gar_operation_cancel(struct gar_operation *operation);
bool gar_operation_is_cancelled(const struct gar_operation *operation);

#endif
