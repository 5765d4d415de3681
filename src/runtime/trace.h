/* SPDX-License-Identifier: Apache-2.0 */
/* Trace events: spans on one track a thread, written as a file that Chrome and Perfetto show. Off, a span costs one branch.
 *
 * Each thread writes into a ring of its own; flushes, under one lock, move what is there to the file, which is complete
 * JSON after each of them. A full ring drops events and counts them: a trace never grows without bound between flushes. */
#ifndef GAR_RUNTIME_TRACE_H
#define GAR_RUNTIME_TRACE_H

#include "base/attrs.h"
#include "base/error.h"

extern int32_t gar_trace_on; /* atomic; gar_trace_is_on */

GAR_INLINE bool gar_trace_is_on(void)
{
    return GAR_UNLIKELY(__atomic_load_n(&gar_trace_on, __ATOMIC_RELAXED) != 0);
}

/* Begin a trace in a new file at path. Errors: GAR_ERR_VALUE when a trace is being written already (naming its file);
 * GAR_ERR_IO. Threads: any; may block. */
GAR_MUST_USE enum gar_status gar_trace_begin(const char *path, struct gar_error *err);
/* Move what threads have noted to the file. Without a trace it does nothing. Errors: GAR_ERR_IO, which ends the trace.
 * Threads: any; may block. */
GAR_MUST_USE enum gar_status gar_trace_flush(struct gar_error *err);
/* Flush, close, and switch off. Without a trace it does nothing. */
GAR_MUST_USE enum gar_status gar_trace_end(struct gar_error *err);

/* Details of a span; what is 0 or NULL is left out. Texts are copied and cut. */
struct gar_trace_args {
    const char *path;
    int64_t offset;
    int64_t bytes;
    int64_t query;
    int64_t rows;
};

/* On the calling thread's track, from start_ns (gar_clock_ns) to now. category is a static text. Spans of one thread
 * nest: an inner one ends first. Threads: any. */
void gar_trace_span(const char *category, const char *name, int64_t start_ns,
                    const struct gar_trace_args *args);
/* A query as an asynchronous span over all tracks. */
void gar_trace_query_begin(int64_t query, const char *name);
void gar_trace_query_end(int64_t query, const char *name);

#endif
