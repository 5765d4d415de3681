/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime: makes pools and loop, starts their threads at first need, counts who is inside, takes all down again.
 *
 * Order of the end: nobody enters any more; wait until the last one has left; stop the loop (its inbox is empty then
 * but for stray messages), the pools, join; free. Structs are freed after all threads are joined, because a worker may
 * still be inside a submit to the other pool or a post to the loop. */
#include "runtime/runtime.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "os/clock.h"
#include "os/fork.h"
#include "os/limits.h"
#include "os/mutex.h"
#include "os/park.h"
#include "os/test_point.h"
#include "runtime/loop_priv.h"
#include "runtime/pool_priv.h"

#define IO_THREADS_DEFAULT 8
#define PYTHON_THREADS_MIN 2 /* one may wait for another */

/* What idle threads look at that must not spin: those of a machine with one CPU, where it keeps the work from running,
 * and the spawn thread. */
static const int64_t never_active = 0;

struct gar_runtime {
    uint64_t generation;            /* of the process that made it */
    struct gar_memory_pool *memory; /* owned reference */
    struct gar_pool *compute;
    struct gar_pool *io;
    struct gar_pool *spawn; /* one thread */
    struct gar_pool *python;
    struct gar_loop *loop;
    struct gar_mutex lock; /* start and end */
    struct gar_cond left;  /* active has fallen to 0 */
    struct {
        bool is_ending;
    } synced GAR_GUARDED;
    int64_t active; /* atomic, changed under the lock; read by spinning workers without */
    uint32_t
        started; /* atomic bits of enum gar_runtime_part, changed under the lock; release after the start */
};

static enum gar_status check_threads(const char *what, int32_t threads, struct gar_error *err);
static enum gar_status make_parts(struct gar_runtime *runtime,
                                  const struct gar_runtime_options *options, struct gar_error *err);
static void free_parts(struct gar_runtime *runtime, bool is_forked);
static enum gar_status start_locked(struct gar_runtime *runtime, uint32_t parts,
                                    struct gar_error *err) GAR_REQUIRES(runtime->lock);
static enum gar_status refuse_forked(struct gar_error *err);

enum gar_status gar_runtime_new(const struct gar_runtime_options *options, struct gar_runtime **out,
                                struct gar_error *err)
{
    GAR_TRY(check_threads("compute threads", options->compute_threads, err));
    GAR_TRY(check_threads("IO threads", options->io_threads, err));
    struct gar_runtime *runtime = gar_calloc(1, (int64_t)sizeof *runtime);
    if (runtime == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *runtime);
    }
    runtime->generation = gar_fork_generation();
    gar_mutex_init(&runtime->lock);
    gar_cond_init(&runtime->left);
    const enum gar_status status = make_parts(runtime, options, err);
    if (status != GAR_OK) {
        free_parts(runtime, false);
        return status;
    }
    *out = runtime;
    return GAR_OK;
}

void gar_runtime_free(struct gar_runtime *runtime)
{
    if (runtime == NULL) {
        return;
    }
    const bool is_forked = gar_runtime_is_forked(runtime);
    if (!is_forked) {
        gar_mutex_lock(&runtime->lock);
        runtime->synced.is_ending = true;
        while (__atomic_load_n(&runtime->active, __ATOMIC_ACQUIRE) > 0) {
            gar_cond_wait(&runtime->left, &runtime->lock);
        }
        gar_mutex_unlock(&runtime->lock);
        gar_loop_stop(runtime->loop);
        gar_pool_stop(runtime->python);
        gar_pool_stop(runtime->io);
        gar_pool_stop(runtime->compute);
        gar_pool_stop(runtime->spawn);
    }
    free_parts(runtime, is_forked);
}

enum gar_status gar_runtime_start(struct gar_runtime *runtime, uint32_t parts,
                                  struct gar_error *err)
{
    if (gar_runtime_is_forked(runtime)) {
        return refuse_forked(err);
    }
    if (GAR_LIKELY((__atomic_load_n(&runtime->started, __ATOMIC_ACQUIRE) & parts) == parts)) {
        return GAR_OK;
    }
    gar_mutex_lock(&runtime->lock);
    const enum gar_status status = start_locked(runtime, parts, err);
    gar_mutex_unlock(&runtime->lock);
    return status;
}

enum gar_status gar_runtime_enter(struct gar_runtime *runtime, struct gar_error *err)
{
    if (gar_runtime_is_forked(runtime)) {
        return refuse_forked(err);
    }
    gar_mutex_lock(&runtime->lock);
    const bool is_open = !runtime->synced.is_ending;
    if (is_open) {
        (void)__atomic_fetch_add(&runtime->active, 1, __ATOMIC_RELAXED);
        gar_memory_pool_enter(runtime->memory);
    }
    gar_mutex_unlock(&runtime->lock);
    return is_open ? GAR_OK
                   : gar_error_set(err, GAR_ERR_CANCELLED,
                                   "the engine is shutting down; no new query can start");
}

void gar_runtime_leave(struct gar_runtime *runtime)
{
    /* Before the count falls: afterwards the runtime may be gone. */
    if (!gar_runtime_is_forked(runtime)) {
        gar_memory_pool_leave(runtime->memory);
    }
    gar_mutex_lock(&runtime->lock);
    const int64_t left = __atomic_sub_fetch(&runtime->active, 1, __ATOMIC_RELEASE);
    assert(left >= 0);
    if (left == 0) {
        gar_cond_broadcast(&runtime->left);
    }
    gar_mutex_unlock(&runtime->lock);
}

int64_t gar_runtime_active(const struct gar_runtime *runtime)
{
    return __atomic_load_n(&runtime->active, __ATOMIC_RELAXED);
}

int32_t gar_runtime_threads(const struct gar_runtime *runtime)
{
    const uint32_t started = __atomic_load_n(&runtime->started, __ATOMIC_ACQUIRE);
    int32_t threads = (started & GAR_RUNTIME_LOOP) != 0 ? 1 : 0;
    if ((started & GAR_RUNTIME_COMPUTE) != 0) {
        threads += gar_pool_workers(runtime->compute);
    }
    if ((started & GAR_RUNTIME_IO) != 0) {
        threads += gar_pool_workers(runtime->io);
    }
    if ((started & GAR_RUNTIME_SPAWN) != 0) {
        threads += 1;
    }
    if ((started & GAR_RUNTIME_PYTHON) != 0) {
        threads += gar_pool_workers(runtime->python);
    }
    return threads;
}

bool gar_runtime_is_forked(const struct gar_runtime *runtime)
{
    return runtime->generation != gar_fork_generation();
}

struct gar_pool *gar_runtime_compute(struct gar_runtime *runtime)
{
    return runtime->compute;
}

struct gar_pool *gar_runtime_io(struct gar_runtime *runtime)
{
    return runtime->io;
}

struct gar_pool *gar_runtime_spawn(struct gar_runtime *runtime)
{
    return runtime->spawn;
}

struct gar_pool *gar_runtime_python(struct gar_runtime *runtime)
{
    return runtime->python;
}

struct gar_loop *gar_runtime_loop(struct gar_runtime *runtime)
{
    return runtime->loop;
}

struct gar_memory_pool *gar_runtime_memory(struct gar_runtime *runtime)
{
    return runtime->memory;
}

static enum gar_status check_threads(const char *what, int32_t threads, struct gar_error *err)
{
    if (threads < 0 || threads > GAR_RUNTIME_THREADS_MAX) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "number of %s must be between 0 (default) and %d, got %d", what,
                             GAR_RUNTIME_THREADS_MAX, (int)threads);
    }
    return GAR_OK;
}

static enum gar_status make_parts(struct gar_runtime *runtime,
                                  const struct gar_runtime_options *options, struct gar_error *err)
{
    struct gar_memory_pool *memory =
        options->memory != NULL ? options->memory : gar_memory_pool_process(err);
    if (memory == NULL) {
        return GAR_ERR_NOMEM;
    }
    runtime->memory = gar_memory_pool_ref(memory);
    const int32_t cpus = gar_os_limits()->cpus;
    const int64_t *active = cpus > 1 ? &runtime->active : &never_active;
    const struct gar_pool_options compute = {
        .name = "Compute-Thread",
        .threads = options->compute_threads > 0
                       ? options->compute_threads
                       : (int32_t)gar_min_i64(cpus, GAR_RUNTIME_THREADS_MAX),
        .nice = options->compute_nice,
        .policy = options->is_compute_batch ? GAR_THREAD_BATCH : GAR_THREAD_NORMAL,
        .active = active,
    };
    const struct gar_pool_options io = {
        .name = "IO-Thread",
        .threads = options->io_threads > 0 ? options->io_threads
                                           : (int32_t)gar_min_i64(cpus, IO_THREADS_DEFAULT),
        .nice = options->io_nice,
        .policy = GAR_THREAD_NORMAL,
        .active = active,
    };
    GAR_TRY(gar_pool_new(&compute, &runtime->compute, err));
    GAR_TRY(gar_pool_new(&io, &runtime->io, err));
    const struct gar_pool_options spawn = {
        .name = "Actor-Spawn", .threads = 1, .active = &never_active};
    GAR_TRY(gar_pool_new(&spawn, &runtime->spawn, err));
    const struct gar_pool_options python = {
        .name = "Python-Thread",
        .threads = (int32_t)gar_max_i64(compute.threads, PYTHON_THREADS_MIN),
        .active = &never_active};
    GAR_TRY(gar_pool_new(&python, &runtime->python, err));
    return gar_loop_new(active, &runtime->loop, err);
}

/* Half-built is fine. */
static void free_parts(struct gar_runtime *runtime, bool is_forked)
{
    gar_loop_free(runtime->loop, is_forked);
    gar_pool_free(runtime->python, is_forked);
    gar_pool_free(runtime->spawn, is_forked);
    gar_pool_free(runtime->io, is_forked);
    gar_pool_free(runtime->compute, is_forked);
    gar_memory_pool_unref(runtime->memory);
    if (!is_forked) {
        gar_cond_destroy(&runtime->left);
        gar_mutex_destroy(&runtime->lock);
    }
    gar_free(runtime);
}

static enum gar_status start_locked(struct gar_runtime *runtime, uint32_t parts,
                                    struct gar_error *err)
{
    const uint32_t missing = parts & ~__atomic_load_n(&runtime->started, __ATOMIC_RELAXED);
    if ((missing & GAR_RUNTIME_LOOP) != 0) {
        GAR_TRY(gar_loop_run_thread(runtime->loop, err));
        (void)__atomic_fetch_or(&runtime->started, (uint32_t)GAR_RUNTIME_LOOP, __ATOMIC_RELEASE);
    }
    if ((missing & GAR_RUNTIME_COMPUTE) != 0) {
        GAR_TRY(gar_pool_run_threads(runtime->compute, err));
        (void)__atomic_fetch_or(&runtime->started, (uint32_t)GAR_RUNTIME_COMPUTE, __ATOMIC_RELEASE);
    }
    if ((missing & GAR_RUNTIME_IO) != 0) {
        GAR_TRY(gar_pool_run_threads(runtime->io, err));
        (void)__atomic_fetch_or(&runtime->started, (uint32_t)GAR_RUNTIME_IO, __ATOMIC_RELEASE);
    }
    if ((missing & GAR_RUNTIME_SPAWN) != 0) {
        GAR_TRY(gar_pool_run_threads(runtime->spawn, err));
        (void)__atomic_fetch_or(&runtime->started, (uint32_t)GAR_RUNTIME_SPAWN, __ATOMIC_RELEASE);
    }
    if ((missing & GAR_RUNTIME_PYTHON) != 0) {
        GAR_TRY(gar_pool_run_threads(runtime->python, err));
        (void)__atomic_fetch_or(&runtime->started, (uint32_t)GAR_RUNTIME_PYTHON, __ATOMIC_RELEASE);
    }
    return GAR_OK;
}

static enum gar_status refuse_forked(struct gar_error *err)
{
    return gar_error_set(err, GAR_ERR_UNSUPPORTED,
                         "the engine was started before fork and has no threads in this process; "
                         "make a new one here or "
                         "start child processes with spawn");
}
