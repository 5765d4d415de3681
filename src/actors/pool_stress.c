/* SPDX-License-Identifier: Apache-2.0 */
/* Pools under TSan: three threads run pools of real processes on one runtime, with retries, bad rows, dropped streams and
 * results that outlive their pool, while workers are killed at random. */
#include <signal.h>

#include "actors/pool_test_priv.h"
#include "os/test_point.h"
#include "os/thread.h"

enum { THREADS = 3, RUNS = 12 };

struct runner {
    struct gar_thread thread;
    struct test_pool *pool;
    uint64_t seed;
    int64_t batches;
    bool is_wrong;
};

static void kill_at_random(void *context)
{
    struct runner *self = context;
    self->seed = self->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    self->batches++;
    int64_t pids[16];
    const int64_t count = test_count_children(pids, 16);
    if ((self->seed >> 33) % 12 == 0 && count > 0) {
        (void)kill((pid_t)pids[(self->seed >> 40) % (uint64_t)gar_min_i64(count, 16)], SIGKILL);
    }
}

static void run_all(void *context)
{
    struct runner *self = context;
    for (int32_t i = 0; i < RUNS; i++) {
        struct test_run run;
        const struct test_options options = {.code =
                                                 i % 3 == 1 ? "do=raise at=777" : "sleep_us=100",
                                             .actors = 1 + i % 3,
                                             .rows = 4000,
                                             .chunk = 1500,
                                             .batch_rows = i % 4 == 3 ? 2000 : 150,
                                             .policy = {.on_error = GAR_ACTOR_NULL,
                                                        .max_retries = 20,
                                                        .max_restarts = 1000,
                                                        .backoff_ns = 1000},
                                             .stop_after = i % 5 == 4 ? 600 : 0,
                                             .on_batch = kill_at_random,
                                             .context = self};
        test_run_pool(self->pool, &options, &run);
        /* A pool may give up when several workers in a row are killed before they are ready. */
        const bool is_right = run.status == GAR_EOF
                                  ? run.rows == 4000
                                  : run.status == GAR_OK || run.fault == GAR_ACTOR_NO_START;
        if (!is_right || run.is_wrong) {
            printf("run %d: status %d, %lld rows, %s\n", (int)i, (int)run.status,
                   (long long)run.rows, run.error.message);
            self->is_wrong = true;
        }
    }
}

int main(void)
{
    struct test_pool pool;
    struct runner runners[THREADS];
    gar_test_point_set(11, 30);
    if (!test_pool_open(&pool)) {
        return 1;
    }
    memset(runners, 0, sizeof runners);
    for (int32_t i = 0; i < THREADS; i++) {
        const struct gar_thread_options options = {.name = "Runner"};
        runners[i].pool = &pool;
        runners[i].seed = (uint64_t)i + 1;
        if (gar_thread_start(&runners[i].thread, &options, run_all, &runners[i], NULL) != GAR_OK) {
            return 1;
        }
    }
    bool is_wrong = false;
    int64_t batches = 0;
    for (int32_t i = 0; i < THREADS; i++) {
        gar_thread_join(&runners[i].thread);
        is_wrong |= runners[i].is_wrong;
        batches += runners[i].batches;
    }
    const int64_t children = test_count_children(NULL, 0);
    test_pool_close(&pool);
    printf("%lld batches, %lld children left, %lld blocks\n", (long long)batches,
           (long long)children, (long long)gar_alloc_live_blocks());
    return is_wrong || children != 0 ? 1 : 0;
}
