/* SPDX-License-Identifier: Apache-2.0 */
/* Life of a pool, for runtime.c. */
#ifndef GAR_RUNTIME_POOL_PRIV_H
#define GAR_RUNTIME_POOL_PRIV_H

#include "os/thread.h"
#include "runtime/pool.h"

struct gar_pool_options {
    const char *name; /* "Compute-Thread": threads are called Compute-Thread-0, ... */
    int32_t threads;
    int32_t nice;
    enum gar_thread_policy policy;
    const int64_t
        *active; /* atomic, borrowed: queries inside; while not 0 idle workers spin a moment */
};

GAR_MUST_USE enum gar_status gar_pool_new(const struct gar_pool_options *options,
                                          struct gar_pool **out, struct gar_error *err);
/* Starts as many of the threads as can be had; an error when none. Once. */
GAR_MUST_USE enum gar_status gar_pool_run_threads(struct gar_pool *pool, struct gar_error *err);
/* Runs what is queued, then ends and joins the threads. */
void gar_pool_stop(struct gar_pool *pool);
void gar_pool_free(struct gar_pool *pool, bool is_forked);

#endif
