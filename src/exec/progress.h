/* SPDX-License-Identifier: Apache-2.0 */
/* What a query has done so far: written by the query, looked at by anyone, also after the query has gone. */
#ifndef GAR_EXEC_PROGRESS_H
#define GAR_EXEC_PROGRESS_H

#include "base/attrs.h"
#include "base/error.h"

struct gar_exec_progress {
    int64_t refs;      /* atomic */
    int64_t start_ns;  /* gar_clock_ns; constant */
    int64_t end_ns;    /* atomic, written last: 0 while the query runs */
    int32_t status;    /* enum gar_status of the end */
    int64_t rows_read; /* atomic; rows that scans gave */
    int64_t rows;      /* atomic; rows of the result */
    int64_t bytes;     /* atomic; bytes of the result */
};

/* The clock starts now. Owns: caller unrefs. */
GAR_MUST_USE enum gar_status gar_exec_progress_new(struct gar_exec_progress **out,
                                                   struct gar_error *err);
struct gar_exec_progress *gar_exec_progress_ref(struct gar_exec_progress *progress);
void gar_exec_progress_unref(struct gar_exec_progress *progress);

/* For the query; NULL is fine. Threads: any. */
GAR_INLINE void gar_exec_progress_note_read(struct gar_exec_progress *progress, int64_t rows)
{
    if (progress != NULL) {
        (void)__atomic_fetch_add(&progress->rows_read, rows, __ATOMIC_RELAXED);
    }
}
void gar_exec_progress_note_result(struct gar_exec_progress *progress, int64_t rows, int64_t bytes);
/* Once. */
void gar_exec_progress_end(struct gar_exec_progress *progress, enum gar_status status);

/* A consistent end: true when the query has ended, then *out_status and *out_end_ns are set. Threads: any. */
bool gar_exec_progress_ended(const struct gar_exec_progress *progress, enum gar_status *out_status,
                             int64_t *out_end_ns);

#endif
