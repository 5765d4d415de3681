/* SPDX-License-Identifier: Apache-2.0 */
/* Pools under TSan: tasks submitted from outside, from tasks and between pools, singly and as lists, while runtimes come
 * and go, threads are refused, and the schedule is disturbed. Every task must run exactly as often as it was submitted. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "os/clock.h"
#include "os/park.h"
#include "os/test_point.h"
#include "os/thread.h"
#include "runtime/runtime.h"

enum { SUBMITTERS = 3, TASKS = 64, ROUNDS = 40, HOPS = 6 };

struct job {
    struct gar_task task;
    struct gar_runtime *runtime;
    int32_t hops;
    int64_t runs;  /* only the one who runs it */
    int64_t *left; /* atomic */
    struct gar_parker *done;
};

static void run_job(struct gar_task *task, int32_t worker)
{
    struct job *job = (struct job *)task;
    (void)worker;
    job->runs++;
    if (job->hops-- > 0) { /* to and fro between the pools */
        gar_pool_submit(job->hops % 2 == 0 ? gar_runtime_io(job->runtime)
                                           : gar_runtime_compute(job->runtime),
                        task);
        return;
    }
    struct gar_parker *done = job->done;
    if (__atomic_sub_fetch(job->left, 1, __ATOMIC_ACQ_REL) == 0) {
        gar_parker_wake(done);
    }
}

struct submitter {
    struct gar_thread thread;
    struct gar_runtime *runtime;
    struct gar_parker done;
    struct job jobs[TASKS];
    int64_t left;
    bool is_wrong;
};

static void submit_round(struct submitter *self, int round)
{
    __atomic_store_n(&self->left, TASKS, __ATOMIC_RELAXED);
    for (int i = 0; i < TASKS; i++) {
        self->jobs[i] = (struct job){.task = {.run = run_job},
                                     .runtime = self->runtime,
                                     .hops = HOPS,
                                     .left = &self->left,
                                     .done = &self->done};
        self->jobs[i].task.next = i + 1 < TASKS ? &self->jobs[i + 1].task : NULL;
    }
    struct gar_pool *pool = gar_runtime_compute(self->runtime);
    if (round % 2 == 0) {
        gar_pool_submit_list(pool, &self->jobs[0].task, &self->jobs[TASKS - 1].task, TASKS);
    } else {
        for (int i = 0; i < TASKS; i++) {
            gar_pool_submit(pool, &self->jobs[i].task);
        }
    }
    while (__atomic_load_n(&self->left, __ATOMIC_ACQUIRE) > 0) {
        (void)gar_parker_wait(&self->done, GAR_CLOCK_NEVER);
    }
    for (int i = 0; i < TASKS; i++) {
        self->is_wrong |= self->jobs[i].runs != HOPS + 1;
    }
}

static void submit_all(void *context)
{
    struct submitter *self = context;
    for (int round = 0; round < ROUNDS; round++) {
        if (gar_runtime_enter(self->runtime, NULL) != GAR_OK ||
            gar_runtime_start(self->runtime, GAR_RUNTIME_ALL, NULL) != GAR_OK) {
            self->is_wrong = true;
            return;
        }
        submit_round(self, round);
        gar_runtime_leave(self->runtime);
    }
}

static bool run_once(int32_t compute, int32_t io)
{
    const struct gar_runtime_options options = {.compute_threads = compute, .io_threads = io};
    struct gar_runtime *runtime = NULL;
    struct submitter *submitters = gar_calloc(SUBMITTERS, (int64_t)sizeof *submitters);
    if (submitters == NULL || gar_runtime_new(&options, &runtime, NULL) != GAR_OK) {
        return false;
    }
    bool is_right = true;
    for (int i = 0; i < SUBMITTERS; i++) {
        const struct gar_thread_options thread = {.name = "Submitter"};
        submitters[i].runtime = runtime;
        is_right &= gar_thread_start(&submitters[i].thread, &thread, submit_all, &submitters[i],
                                     NULL) == GAR_OK;
    }
    for (int i = 0; i < SUBMITTERS; i++) {
        gar_thread_join(&submitters[i].thread);
        is_right &= !submitters[i].is_wrong;
    }
    gar_runtime_free(runtime);
    gar_free(submitters);
    return is_right;
}

int main(void)
{
    gar_test_point_set(11, 100);
    for (int32_t i = 1; i <= 4; i++) {
        if (!run_once(i, 5 - i)) {
            printf("wrong with %d compute threads\n", (int)i);
            return 1;
        }
    }
    return 0;
}
