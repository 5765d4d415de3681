/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime as a whole: pools, loop, timers, calls, shortage of threads, forks. */
#include "runtime/runtime.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "os/clock.h"
#include "os/fault.h"
#include "os/limits.h"
#include "os/park.h"
#include "os/thread.h"
#include "runtime/timer_priv.h"

/* TSan runs a thread of its own, and none can be started in a child of its process. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define IS_TSAN 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define IS_TSAN 1
#endif
#if !defined(IS_TSAN)
#define IS_TSAN 0
#endif

static struct gar_runtime *new_runtime(int32_t compute, int32_t io)
{
    const struct gar_runtime_options options = {.compute_threads = compute, .io_threads = io};
    struct gar_runtime *runtime = NULL;
    assert_int_equal(gar_runtime_new(&options, &runtime, NULL), GAR_OK);
    return runtime;
}

static int64_t count_threads(void)
{
    struct gar_os_usage usage;
    gar_os_usage_read(&usage);
    return usage.threads;
}

struct job {
    struct gar_task task;
    struct gar_pool *pool;
    struct gar_parker *done;
    int64_t *left; /* atomic */
    int32_t workers_max;
    int64_t again; /* submit myself so many times more */
    bool is_wrong;
};

static void run_job(struct gar_task *task, int32_t worker)
{
    struct job *job = (struct job *)task;
    if (worker < 0 || worker >= job->workers_max || gar_pool_worker_self(job->pool) != worker) {
        job->is_wrong = true;
    }
    if (job->again > 0) {
        job->again--;
        gar_pool_submit(job->pool, task);
        return;
    }
    struct gar_parker *done = job->done;
    if (__atomic_sub_fetch(job->left, 1, __ATOMIC_ACQ_REL) == 0) {
        gar_parker_wake(done);
    }
}

static void run_jobs(struct gar_pool *pool, bool as_list)
{
    enum { JOBS = 500 };
    static struct job jobs[JOBS];
    static struct gar_parker done; /* outlives the last waker */
    static int64_t left;
    __atomic_store_n(&left, JOBS, __ATOMIC_RELAXED);
    for (int i = 0; i < JOBS; i++) {
        jobs[i] = (struct job){.task = {.run = run_job},
                               .pool = pool,
                               .done = &done,
                               .left = &left,
                               .workers_max = gar_pool_workers(pool),
                               .again = i % 5};
        jobs[i].task.next = i + 1 < JOBS ? &jobs[i + 1].task : NULL;
    }
    if (as_list) {
        gar_pool_submit_list(pool, &jobs[0].task, &jobs[JOBS - 1].task, JOBS);
    } else {
        for (int i = 0; i < JOBS; i++) {
            gar_pool_submit(pool, &jobs[i].task);
        }
    }
    while (__atomic_load_n(&left, __ATOMIC_ACQUIRE) > 0) {
        assert_int_equal(gar_parker_wait(&done, gar_clock_deadline(20 * GAR_NS_PER_S)),
                         GAR_PARK_WOKEN);
    }
    for (int i = 0; i < JOBS; i++) {
        assert_false(jobs[i].is_wrong);
    }
    assert_int_equal(gar_pool_queued(pool), 0);
}

static void test_starts_on_first_use(void **state)
{
    (void)state;
    if (IS_TSAN) {
        skip();
    }
    const int64_t before = count_threads();
    struct gar_runtime *runtime = new_runtime(3, 2);
    assert_int_equal(count_threads(), before);
    assert_int_equal(gar_pool_workers(gar_runtime_compute(runtime)), 3);
    assert_int_equal(gar_pool_worker_self(gar_runtime_compute(runtime)), -1);
    assert_int_equal(gar_runtime_start(runtime, GAR_RUNTIME_COMPUTE, NULL), GAR_OK);
    assert_int_equal(gar_runtime_start(runtime, GAR_RUNTIME_COMPUTE, NULL), GAR_OK);
    assert_int_equal(count_threads(), before + 3);
    assert_int_equal(gar_runtime_start(runtime, GAR_RUNTIME_ALL, NULL), GAR_OK);
    assert_int_equal(count_threads(), before + 6);
    gar_runtime_free(runtime);
    assert_int_equal(count_threads(), before);
    gar_runtime_free(NULL);
}

static void test_tasks(void **state)
{
    (void)state;
    struct gar_runtime *runtime = new_runtime(2, 1);
    assert_int_equal(gar_runtime_start(runtime, GAR_RUNTIME_ALL, NULL), GAR_OK);
    assert_int_equal(gar_runtime_enter(runtime, NULL), GAR_OK);
    assert_int_equal(gar_runtime_active(runtime), 1);
    for (int round = 0; round < 4; round++) {
        run_jobs(gar_runtime_compute(runtime), round % 2 == 0);
        run_jobs(gar_runtime_io(runtime), round % 2 == 1);
    }
    gar_runtime_leave(runtime);
    gar_runtime_free(runtime);
}

/* An idle engine wakes up never: not one context switch in a while. */
static void test_idle_sleeps(void **state)
{
    (void)state;
    if (IS_TSAN) {
        skip();
    }
    struct gar_runtime *runtime = new_runtime(2, 2);
    assert_int_equal(gar_runtime_start(runtime, GAR_RUNTIME_ALL, NULL), GAR_OK);
    run_jobs(gar_runtime_compute(runtime), false);
    (void)usleep(50000);
    struct rusage before;
    struct rusage after;
    (void)getrusage(RUSAGE_SELF, &before);
    (void)usleep(200000);
    (void)getrusage(RUSAGE_SELF, &after);
    assert_true(after.ru_nvcsw - before.ru_nvcsw <= 2); /* our own sleep */
    gar_runtime_free(runtime);
}

static void test_few_threads(void **state)
{
    (void)state;
    struct gar_runtime *runtime = new_runtime(4, 2);
    struct gar_os_fault fault = {
        .call = GAR_OS_THREAD, .nth = 1, .and_on = true, .os_errno = EAGAIN};
    struct gar_error err = GAR_ERROR_INIT;
    gar_os_fault_set(&fault);
    assert_int_equal(gar_runtime_start(runtime, GAR_RUNTIME_COMPUTE, &err), GAR_ERR_IO);
    assert_int_equal(err.os_errno, EAGAIN);
    assert_int_equal(gar_runtime_start(runtime, GAR_RUNTIME_LOOP, &err), GAR_ERR_IO);
    fault.nth = 2; /* one, then no more */
    gar_os_fault_set(&fault);
    assert_int_equal(gar_runtime_start(runtime, GAR_RUNTIME_COMPUTE, &err), GAR_OK);
    gar_os_fault_set(NULL);
    assert_int_equal(gar_pool_workers(gar_runtime_compute(runtime)), 1);
    run_jobs(gar_runtime_compute(runtime), false);
    assert_int_equal(gar_runtime_start(runtime, GAR_RUNTIME_ALL, NULL), GAR_OK);
    run_jobs(gar_runtime_io(runtime), true);
    gar_runtime_free(runtime);
}

static void test_bad_options(void **state)
{
    (void)state;
    struct gar_runtime *runtime = NULL;
    struct gar_error err = GAR_ERROR_INIT;
    const struct gar_runtime_options negative = {.compute_threads = -1};
    assert_int_equal(gar_runtime_new(&negative, &runtime, &err), GAR_ERR_VALUE);
    assert_non_null(strstr(err.message, "-1"));
    const struct gar_runtime_options many = {.io_threads = GAR_RUNTIME_THREADS_MAX + 1};
    assert_int_equal(gar_runtime_new(&many, &runtime, &err), GAR_ERR_VALUE);
    const struct gar_runtime_options defaults = {0};
    for (int64_t n = 1;; n++) {
        (void)gar_alloc_fail_at(n, false);
        const enum gar_status status = gar_runtime_new(&defaults, &runtime, &err);
        (void)gar_alloc_fail_at(0, false);
        if (status == GAR_OK) {
            gar_runtime_free(runtime);
            assert_true(n > 3);
            return;
        }
        assert_int_equal(status, GAR_ERR_NOMEM);
    }
}

/* ---- loop ---- */

struct note {
    struct gar_message message;
    int number;
};

static int seen[64];
static int seen_count;
static struct gar_parker loop_done;
static struct gar_message last_message;

static void handle_note(struct gar_message *message, struct gar_loop *loop)
{
    assert_true(gar_loop_is_self(loop));
    seen[seen_count++] = ((struct note *)message)->number;
}

static void handle_last(struct gar_message *message, struct gar_loop *loop)
{
    (void)message;
    (void)loop;
    gar_parker_wake(&loop_done);
}

static void drain_loop(struct gar_loop *loop)
{
    last_message.handle = handle_last;
    (void)gar_loop_post(loop, &last_message);
    assert_int_equal(gar_parker_wait(&loop_done, gar_clock_deadline(10 * GAR_NS_PER_S)),
                     GAR_PARK_WOKEN);
}

static void test_messages_in_order(void **state)
{
    (void)state;
    struct gar_runtime *runtime = new_runtime(1, 1);
    struct gar_loop *loop = gar_runtime_loop(runtime);
    struct note notes[50];
    memset(notes, 0, sizeof notes);
    seen_count = 0;
    for (int i = 0; i < 50; i++) { /* posted before the thread starts: kept */
        notes[i].message.handle = handle_note;
        notes[i].number = i;
        assert_true(gar_loop_post(loop, &notes[i].message));
        assert_false(gar_loop_post(loop, &notes[i].message));
    }
    assert_int_equal(gar_runtime_start(runtime, GAR_RUNTIME_LOOP, NULL), GAR_OK);
    assert_false(gar_loop_is_self(loop));
    drain_loop(loop);
    assert_int_equal(seen_count, 50);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(seen[i], i);
    }
    assert_true(gar_loop_post(loop, &notes[7].message));
    drain_loop(loop);
    assert_int_equal(seen_count, 51);
    gar_runtime_free(runtime);
}

struct alarm {
    struct gar_timer timer;
    int64_t fired_ns;
};

static struct alarm alarms[3];
static struct gar_message arm_message;

static void on_fire(struct gar_timer *timer, struct gar_loop *loop)
{
    ((struct alarm *)timer)->fired_ns = gar_clock_ns();
    if (timer == &alarms[1].timer) {
        handle_last(NULL, loop);
    }
}

static void arm(struct gar_message *message, struct gar_loop *loop)
{
    (void)message;
    const int64_t now_ns = gar_clock_ns();
    for (int i = 0; i < 3; i++) {
        alarms[i].timer.fire = on_fire;
    }
    gar_loop_start_timer_on_loop(loop, &alarms[0].timer, now_ns + 500 * GAR_NS_PER_S);
    gar_loop_start_timer_on_loop(loop, &alarms[1].timer, now_ns + 20 * GAR_NS_PER_MS);
    gar_loop_start_timer_on_loop(loop, &alarms[2].timer, now_ns + GAR_NS_PER_MS);
    gar_loop_start_timer_on_loop(loop, &alarms[0].timer, now_ns + 10 * GAR_NS_PER_MS); /* moved */
    gar_loop_stop_timer_on_loop(loop, &alarms[2].timer);
    gar_loop_stop_timer_on_loop(loop, &alarms[2].timer);
}

static void test_timers(void **state)
{
    (void)state;
    struct gar_runtime *runtime = new_runtime(1, 1);
    assert_int_equal(gar_runtime_start(runtime, GAR_RUNTIME_LOOP, NULL), GAR_OK);
    memset(alarms, 0, sizeof alarms);
    arm_message.handle = arm;
    const int64_t start_ns = gar_clock_ns();
    (void)gar_loop_post(gar_runtime_loop(runtime), &arm_message);
    assert_int_equal(gar_parker_wait(&loop_done, gar_clock_deadline(10 * GAR_NS_PER_S)),
                     GAR_PARK_WOKEN);
    gar_runtime_free(runtime);
    assert_true(alarms[0].fired_ns - start_ns >= 10 * GAR_NS_PER_MS);
    assert_true(alarms[1].fired_ns - start_ns >= 20 * GAR_NS_PER_MS);
    assert_true(alarms[0].fired_ns <= alarms[1].fired_ns);
    assert_int_equal(alarms[2].fired_ns, 0);
}

static void test_timer_heap(void **state)
{
    (void)state;
    enum { TIMERS = 200 };
    static struct gar_timer timers[TIMERS];
    struct gar_timer *root = NULL;
    uint64_t random = 12345;
    for (int round = 0; round < 20; round++) {
        memset(timers, 0, sizeof timers);
        for (int i = 0; i < TIMERS; i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
            timers[i].deadline_ns = (int64_t)((random >> 40) % 1000);
            gar_timer_insert(&root, &timers[i]);
        }
        int left = TIMERS;
        for (int i = 0; i < TIMERS; i += 3) {
            gar_timer_remove(&root, &timers[i]);
            left--;
        }
        int64_t before = -1;
        while (root != NULL) {
            struct gar_timer *first = root;
            assert_true(first->deadline_ns >= before);
            before = first->deadline_ns;
            gar_timer_remove(&root, first);
            left--;
        }
        assert_int_equal(left, 0);
    }
}

/* ---- calls ---- */

struct errand {
    struct gar_cancel *cancel;
    int64_t sleep_ns;
    bool ignores_cancel;
    int32_t released; /* atomic */
    int32_t ran;      /* atomic */
};

static enum gar_status run_errand(void *context, struct gar_error *err)
{
    struct errand *errand = context;
    const enum gar_status status =
        gar_cancel_sleep(errand->ignores_cancel ? NULL : errand->cancel, errand->sleep_ns, err);
    __atomic_store_n(&errand->ran, 1, __ATOMIC_RELEASE);
    return status != GAR_OK ? status : gar_error_set(err, GAR_ERR_FORMAT, "as arranged");
}

static void release_errand(void *context)
{
    (void)__atomic_fetch_add(&((struct errand *)context)->released, 1, __ATOMIC_ACQ_REL);
}

static bool always(void *context)
{
    (void)context;
    return true;
}

static void test_call(void **state)
{
    (void)state;
    struct gar_runtime *runtime = new_runtime(1, 1);
    struct gar_error err = GAR_ERROR_INIT;
    struct errand errand = {.sleep_ns = GAR_NS_PER_MS};
    struct gar_call call = {.run = run_errand, .release = release_errand, .context = &errand};
    assert_int_equal(gar_runtime_call(runtime, &call, &err), GAR_ERR_FORMAT);
    assert_string_equal(err.message, "as arranged");
    gar_runtime_free(runtime); /* waits for the worker to let go */
    assert_int_equal(errand.released, 1);
}

static void test_call_interrupted(void **state)
{
    (void)state;
    struct gar_runtime *runtime = new_runtime(1, 1);
    struct gar_error err = GAR_ERROR_INIT;
    const struct gar_interrupt interrupt = {.check = always};
    struct gar_cancel *cancel = NULL;
    assert_int_equal(gar_cancel_new(GAR_CLOCK_NEVER, &cancel, NULL), GAR_OK);
    struct errand errand = {.cancel = cancel, .sleep_ns = 20 * GAR_NS_PER_S};
    struct gar_call call = {.run = run_errand,
                            .release = release_errand,
                            .context = &errand,
                            .cancel = cancel,
                            .interrupt = &interrupt};
    const int64_t start_ns = gar_clock_ns();
    assert_int_equal(gar_runtime_call(runtime, &call, &err), GAR_ERR_INTERRUPTED);
    assert_true(gar_clock_ns() - start_ns < GAR_WAIT_STOP_NS);
    assert_int_equal(gar_runtime_call(runtime, &call, &err), GAR_ERR_INTERRUPTED); /* at once */
    gar_cancel_unref(cancel);
    /* Work that does not come back is left behind. */
    assert_int_equal(gar_cancel_new(gar_clock_ns() + 10 * GAR_NS_PER_MS, &cancel, NULL), GAR_OK);
    struct errand stuck = {
        .cancel = cancel, .sleep_ns = 1500 * GAR_NS_PER_MS, .ignores_cancel = true};
    call.context = &stuck;
    call.cancel = cancel;
    call.interrupt = NULL;
    assert_int_equal(gar_runtime_call(runtime, &call, &err), GAR_ERR_TIMEOUT);
    assert_int_equal(__atomic_load_n(&stuck.ran, __ATOMIC_ACQUIRE), 0);
    gar_cancel_unref(cancel);
    gar_runtime_free(runtime);
    assert_int_equal(stuck.ran, 1);
    assert_int_equal(stuck.released, 1);
    assert_int_equal(errand.released, 2);
}

struct nested {
    struct gar_runtime *runtime;
    struct errand errand;
};

static enum gar_status run_nested(void *context, struct gar_error *err)
{
    struct nested *nested = context;
    const struct gar_call call = {
        .run = run_errand, .release = release_errand, .context = &nested->errand};
    return gar_runtime_call(nested->runtime, &call, err);
}

/* A call on the only IO thread must not wait for an IO thread. */
static void test_call_nested(void **state)
{
    (void)state;
    struct nested nested = {.runtime = new_runtime(1, 1), .errand = {.sleep_ns = 0}};
    struct gar_error err = GAR_ERROR_INIT;
    const struct gar_call call = {.run = run_nested, .context = &nested};
    assert_int_equal(gar_runtime_call(nested.runtime, &call, &err), GAR_ERR_FORMAT);
    gar_runtime_free(nested.runtime);
}

static void test_fork(void **state)
{
    (void)state;
    struct gar_runtime *runtime = new_runtime(2, 1);
    assert_int_equal(gar_runtime_start(runtime, GAR_RUNTIME_ALL, NULL), GAR_OK);
    assert_int_equal(gar_runtime_enter(runtime, NULL), GAR_OK);
    assert_false(gar_runtime_is_forked(runtime));
    const pid_t child = fork();
    if (child == 0) {
        struct gar_error err = GAR_ERROR_INIT;
        bool is_right =
            gar_runtime_is_forked(runtime) &&
            gar_runtime_start(runtime, GAR_RUNTIME_COMPUTE, &err) == GAR_ERR_UNSUPPORTED &&
            gar_runtime_enter(runtime, &err) == GAR_ERR_UNSUPPORTED;
        gar_runtime_free(runtime);
        const struct gar_runtime_options options = {.compute_threads = 1};
        is_right = is_right && gar_runtime_new(&options, &runtime, &err) == GAR_OK;
        if (is_right && !IS_TSAN) {
            is_right = gar_runtime_start(runtime, GAR_RUNTIME_ALL, &err) == GAR_OK;
            run_jobs(gar_runtime_compute(runtime), false);
        }
        gar_runtime_free(runtime);
        _exit(is_right ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    run_jobs(gar_runtime_compute(runtime), false);
    gar_runtime_leave(runtime);
    gar_runtime_free(runtime);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_starts_on_first_use),
        cmocka_unit_test(test_tasks),
        cmocka_unit_test(test_idle_sleeps),
        cmocka_unit_test(test_few_threads),
        cmocka_unit_test(test_bad_options),
        cmocka_unit_test(test_messages_in_order),
        cmocka_unit_test(test_timers),
        cmocka_unit_test(test_timer_heap),
        cmocka_unit_test(test_call),
        cmocka_unit_test(test_call_interrupted),
        cmocka_unit_test(test_call_nested),
        cmocka_unit_test(test_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
