/* SPDX-License-Identifier: Apache-2.0 */
/* Thread pools: intrusive tasks, first in first out. */
#ifndef GAR_RUNTIME_POOL_H
#define GAR_RUNTIME_POOL_H

#include "base/attrs.h"
#include "base/error.h"

/* Embedded in the owner's struct. The owner keeps it alive until run has begun; run may free or submit it again.
 * Compute tasks never block; a task that fails tells its query, there is no result here. */
struct gar_task {
    struct gar_task *next; /* the pool's while queued */
    void (*run)(struct gar_task *task, int32_t worker);
    const void *owner; /* who may take it out of turn (gar_pool_help); NULL: nobody */
};

struct gar_pool;

/* Never fails, never blocks: the pool must have been started (gar_runtime_start). Threads: any. */
void gar_pool_submit(struct gar_pool *pool, struct gar_task *task);
/* `count` tasks linked by next, from first to last (last->next is not looked at): one lock, as many wake-ups as useful. */
void gar_pool_submit_list(struct gar_pool *pool, struct gar_task *first, struct gar_task *last,
                          int64_t count);
/* Number of threads; worker numbers are 0 .. workers - 1. Constant once the pool is started, before that the size it
 * would like: allocate worker states after the start. */
int32_t gar_pool_workers(const struct gar_pool *pool);
/* Tasks waiting now; a hint. */
int64_t gar_pool_queued(const struct gar_pool *pool);
/* For a worker of the pool that waits inside a task for tasks of its own: runs the oldest queued one of this owner here.
 * False: there is none, or the thread is not the pool's. Thus a task may wait for others without a thread to spare. */
bool gar_pool_help(struct gar_pool *pool, const void *owner);
/* Number of the calling thread in this pool, -1 for a foreign thread. */
int32_t gar_pool_worker_self(const struct gar_pool *pool);

#endif
