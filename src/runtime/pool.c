/* SPDX-License-Identifier: Apache-2.0 */
/* Thread pools: one queue, one lock, one parker a worker.
 *
 * Work comes in pieces of 100 us and more, so one short lock is not felt; what is felt is a wake-up. Therefore an idle
 * worker first spins for a moment while queries are inside (at most half of the workers at a time), and a submit wakes
 * sleepers only for tasks that no spinner is there for. Spinners and sleepers are counted under the lock, and a worker
 * looks at the queue under the lock after it spun and before it sleeps: a task cannot be overlooked. */
#include "runtime/pool.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/memory.h"
#include "os/mutex.h"
#include "os/park.h"
#include "os/test_point.h"
#include "runtime/pool_priv.h"
#include "runtime/spin_priv.h"

struct worker {
    struct gar_pool *pool;
    int32_t number;
    struct gar_thread thread;
    const void *self; /* atomic; the name of the thread while it runs */
    struct gar_parker parker;
    struct worker *next_asleep; /* under the pool's lock */
    bool is_asleep;             /* under the pool's lock: on the list of sleepers */
};

struct gar_pool {
    struct gar_pool_options options;
    char name[32];
    struct worker *workers; /* options.threads items */
    struct gar_mutex lock;
    struct {
        struct gar_task *first;
        struct gar_task *last;
        struct worker *asleep; /* latest first: its caches are warm */
        int32_t spinning;
        bool is_stopping;
    } synced GAR_GUARDED;
    /* Atomics. */
    int32_t started; /* threads; 0 before the start */
    GAR_ALIGNED(GAR_CACHE_LINE)
    int64_t queued;     /* changed under the lock; read by spinners without */
    int64_t submitting; /* threads inside submit: the pool is not freed under them */
};

static void work(void *context);
static struct gar_task *take_locked(struct gar_pool *pool) GAR_REQUIRES(pool->lock);
static void spin_locked(struct gar_pool *pool) GAR_REQUIRES(pool->lock);
static void sleep_locked(struct gar_pool *pool, struct worker *worker) GAR_REQUIRES(pool->lock);
static void wake(struct gar_pool *pool, int64_t count);

void gar_pool_submit(struct gar_pool *pool, struct gar_task *task)
{
    gar_pool_submit_list(pool, task, task, 1);
}

void gar_pool_submit_list(struct gar_pool *pool, struct gar_task *first, struct gar_task *last,
                          int64_t count)
{
    assert(__atomic_load_n(&pool->started, __ATOMIC_ACQUIRE) > 0);
    (void)__atomic_fetch_add(&pool->submitting, 1, __ATOMIC_RELAXED);
    last->next = NULL;
    gar_mutex_lock(&pool->lock);
    if (pool->synced.last == NULL) {
        pool->synced.first = first;
    } else {
        pool->synced.last->next = first;
    }
    pool->synced.last = last;
    const int64_t queued = __atomic_add_fetch(&pool->queued, count, __ATOMIC_RELAXED);
    const int64_t wanted = pool->synced.asleep == NULL ? 0 : queued - pool->synced.spinning;
    gar_mutex_unlock(&pool->lock);
    wake(pool, wanted);
    (void)__atomic_fetch_sub(&pool->submitting, 1, __ATOMIC_RELEASE);
}

int32_t gar_pool_workers(const struct gar_pool *pool)
{
    const int32_t started = __atomic_load_n(&pool->started, __ATOMIC_ACQUIRE);
    return started > 0 ? started : pool->options.threads;
}

int64_t gar_pool_queued(const struct gar_pool *pool)
{
    return __atomic_load_n(&pool->queued, __ATOMIC_RELAXED);
}

int32_t gar_pool_worker_self(const struct gar_pool *pool)
{
    const void *self = gar_thread_self();
    const int32_t started = __atomic_load_n(&pool->started, __ATOMIC_ACQUIRE);
    for (int32_t i = 0; i < started; i++) {
        if (__atomic_load_n(&pool->workers[i].self, __ATOMIC_RELAXED) == self) {
            return i;
        }
    }
    return -1;
}

enum gar_status gar_pool_new(const struct gar_pool_options *options, struct gar_pool **out,
                             struct gar_error *err)
{
    assert(options->threads > 0);
    int64_t bytes;
    struct gar_pool *pool =
        gar_memory_alloc(gar_memory_system(), (int64_t)sizeof *pool, &bytes, err);
    if (pool == NULL) {
        return GAR_ERR_NOMEM;
    }
    memset(pool, 0, sizeof *pool);
    pool->workers = gar_calloc(options->threads, (int64_t)sizeof *pool->workers);
    if (pool->workers == NULL) {
        gar_memory_free(gar_memory_system(), pool, (int64_t)sizeof *pool);
        return gar_error_nomem(err, options->threads * (int64_t)sizeof *pool->workers);
    }
    pool->options = *options;
    (void)snprintf(pool->name, sizeof pool->name, "%s", options->name);
    pool->options.name = pool->name;
    gar_mutex_init(&pool->lock);
    *out = pool;
    return GAR_OK;
}

enum gar_status gar_pool_run_threads(struct gar_pool *pool, struct gar_error *err)
{
    int32_t started = 0;
    for (; started < pool->options.threads; started++) {
        struct worker *worker = &pool->workers[started];
        worker->pool = pool;
        worker->number = started;
        char name[48];
        (void)snprintf(name, sizeof name, "%s-%d", pool->name, (int)started);
        const struct gar_thread_options options = {
            .name = name, .nice = pool->options.nice, .policy = pool->options.policy};
        /* With some threads the work gets done; only the first refusal of all is an error. */
        const enum gar_status status =
            gar_thread_start(&worker->thread, &options, work, worker, started == 0 ? err : NULL);
        if (status != GAR_OK && started == 0) {
            return status;
        }
        if (status != GAR_OK) {
            break;
        }
    }
    __atomic_store_n(&pool->started, started, __ATOMIC_RELEASE);
    return GAR_OK;
}

void gar_pool_stop(struct gar_pool *pool)
{
    gar_mutex_lock(&pool->lock);
    pool->synced.is_stopping = true;
    gar_mutex_unlock(&pool->lock);
    wake(pool, INT64_MAX);
    for (int32_t i = 0; i < pool->options.threads; i++) {
        gar_thread_join(&pool->workers[i].thread);
    }
}

void gar_pool_free(struct gar_pool *pool, bool is_forked)
{
    if (pool == NULL) {
        return;
    }
    while (!is_forked && __atomic_load_n(&pool->submitting, __ATOMIC_ACQUIRE) > 0) {
        gar_thread_yield();
    }
    if (!is_forked) {
        gar_mutex_destroy(&pool->lock);
    }
    gar_free(pool->workers);
    gar_memory_free(gar_memory_system(), pool, (int64_t)sizeof *pool);
}

static void work(void *context)
{
    struct worker *worker = context;
    struct gar_pool *pool = worker->pool;
    __atomic_store_n(&worker->self, gar_thread_self(), __ATOMIC_RELAXED);
    bool has_spun = false;
    gar_mutex_lock(&pool->lock);
    for (;;) {
        struct gar_task *task = take_locked(pool);
        if (task != NULL) {
            gar_mutex_unlock(&pool->lock);
            GAR_TEST_POINT("task");
            task->run(task, worker->number);
            has_spun = false;
            gar_mutex_lock(&pool->lock);
        } else if (pool->synced.is_stopping) {
            break;
        } else if (!has_spun) {
            spin_locked(pool);
            has_spun = true;
        } else {
            sleep_locked(pool, worker);
            has_spun = false;
        }
    }
    gar_mutex_unlock(&pool->lock);
    __atomic_store_n(&worker->self, NULL, __ATOMIC_RELAXED);
}

static struct gar_task *take_locked(struct gar_pool *pool)
{
    struct gar_task *task = pool->synced.first;
    if (task != NULL) {
        pool->synced.first = task->next;
        if (task->next == NULL) {
            pool->synced.last = NULL;
        }
        task->next = NULL;
        (void)__atomic_fetch_sub(&pool->queued, 1, __ATOMIC_RELAXED);
    }
    return task;
}

static struct gar_task *take_owned_locked(struct gar_pool *pool, const void *owner)
    GAR_REQUIRES(pool->lock)
{
    struct gar_task *before = NULL;
    struct gar_task *task = pool->synced.first;
    while (task != NULL && task->owner != owner) {
        before = task;
        task = task->next;
    }
    if (task == NULL) {
        return NULL;
    }
    if (before == NULL) {
        return take_locked(pool);
    }
    before->next = task->next;
    if (pool->synced.last == task) {
        pool->synced.last = before;
    }
    task->next = NULL;
    (void)__atomic_fetch_sub(&pool->queued, 1, __ATOMIC_RELAXED);
    return task;
}

bool gar_pool_help(struct gar_pool *pool, const void *owner)
{
    if (gar_pool_queued(pool) == 0) {
        return false;
    }
    const int32_t self = gar_pool_worker_self(pool);
    if (self < 0) {
        return false;
    }
    gar_mutex_lock(&pool->lock);
    struct gar_task *task = take_owned_locked(pool, owner);
    gar_mutex_unlock(&pool->lock);
    if (task != NULL) {
        task->run(task, self);
    }
    return task != NULL;
}

/* Gives the lock up while it spins. */
static void spin_locked(struct gar_pool *pool)
{
    const int32_t spinners_max = (gar_pool_workers(pool) + 1) / 2;
    if (pool->synced.spinning >= spinners_max ||
        __atomic_load_n(pool->options.active, __ATOMIC_RELAXED) == 0) {
        return;
    }
    pool->synced.spinning++;
    gar_mutex_unlock(&pool->lock);
    gar_spin_for(&pool->queued);
    gar_mutex_lock(&pool->lock);
    pool->synced.spinning--;
}

/* Gives the lock up while it sleeps. Called when the queue was found empty under the same lock. */
static void sleep_locked(struct gar_pool *pool, struct worker *worker)
{
    worker->is_asleep = true;
    worker->next_asleep = pool->synced.asleep;
    pool->synced.asleep = worker;
    while (worker->is_asleep) { /* whoever wakes takes it off the list */
        gar_mutex_unlock(&pool->lock);
        (void)gar_parker_wait(&worker->parker, GAR_CLOCK_NEVER);
        gar_mutex_lock(&pool->lock);
    }
}

/* Up to `count` sleepers; the kernel is entered without the lock. A sleeper taken off the list belongs to us until it is
 * woken, but it may also come awake by itself, so it is kept here by pointer and not linked. */
static void wake(struct gar_pool *pool, int64_t count)
{
    enum { AT_ONCE = 16 };
    struct worker *taken[AT_ONCE];
    while (count > 0) {
        int32_t n = 0;
        gar_mutex_lock(&pool->lock);
        for (; n < AT_ONCE && n < count && pool->synced.asleep != NULL; n++) {
            taken[n] = pool->synced.asleep;
            pool->synced.asleep = taken[n]->next_asleep;
            taken[n]->is_asleep = false;
        }
        gar_mutex_unlock(&pool->lock);
        for (int32_t i = 0; i < n; i++) {
            gar_parker_wake(&taken[i]->parker);
        }
        count = n < AT_ONCE ? 0 : count - n;
    }
}
