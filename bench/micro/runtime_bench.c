/* SPDX-License-Identifier: Apache-2.0 */
/* What the runtime costs: starting pools, a task, a message, a stream's hand-over, a block of memory. Prints the fastest
 * and the median of several runs in nanoseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "os/park.h"
#include "os/thread.h"
#include "resources/account.h"
#include "runtime/runtime.h"
#include "stream/stream.h"

enum { RUNS = 21 };

static struct gar_runtime *runtime;
static struct gar_account *account;

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* measure() does `count` things and returns the nanoseconds they took. */
static void report(const char *what, int64_t (*measure)(int64_t count), int64_t count)
{
    double each[RUNS];
    for (int i = 0; i < RUNS; i++) {
        each[i] = (double)measure(count) / (double)count;
    }
    qsort(each, RUNS, sizeof each[0], compare);
    printf("%-58s %10.0f %10.0f\n", what, each[0], each[RUNS / 2]);
}

static void fail(const char *what)
{
    (void)fprintf(stderr, "runtime_bench: %s failed\n", what);
    exit(1); /* NOLINT(concurrency-mt-unsafe): a program that ends */
}

static int64_t start_and_free(int64_t count)
{
    const int64_t start_ns = gar_clock_ns();
    for (int64_t i = 0; i < count; i++) {
        const struct gar_runtime_options options = {.compute_threads = 2, .io_threads = 2};
        struct gar_runtime *made = NULL;
        if (gar_runtime_new(&options, &made, NULL) != GAR_OK ||
            gar_runtime_start(made, GAR_RUNTIME_ALL, NULL) != GAR_OK) {
            fail("start");
        }
        gar_runtime_free(made);
    }
    return gar_clock_ns() - start_ns;
}

static int64_t enter_and_leave(int64_t count)
{
    const int64_t start_ns = gar_clock_ns();
    for (int64_t i = 0; i < count; i++) {
        if (gar_runtime_enter(runtime, NULL) != GAR_OK) {
            fail("enter");
        }
        gar_runtime_leave(runtime);
    }
    return gar_clock_ns() - start_ns;
}

struct job {
    struct gar_task task;
    struct gar_message message;
    struct gar_parker done;
    int64_t left; /* atomic */
};

static void run_task(struct gar_task *task, int32_t worker)
{
    (void)worker;
    struct job *job = (struct job *)task;
    __atomic_store_n(&job->left, 0, __ATOMIC_RELEASE);
    gar_parker_wake(&job->done);
}

static void handle(struct gar_message *message, struct gar_loop *loop)
{
    (void)loop;
    struct job *job = (struct job *)(void *)((char *)message - offsetof(struct job, message));
    __atomic_store_n(&job->left, 0, __ATOMIC_RELEASE);
    gar_parker_wake(&job->done);
}

static int64_t
    pause_us; /* between round trips: longer than a spin, so that the other side sleeps */

static void rest(int64_t *out_rested)
{
    if (pause_us > 0) {
        const int64_t from_ns = gar_clock_ns();
        struct gar_parker parker = {0};
        (void)gar_parker_wait(&parker, from_ns + pause_us * 1000);
        *out_rested += gar_clock_ns() - from_ns;
    }
}

static int64_t task_round_trip(int64_t count)
{
    struct job job = {.task = {.run = run_task}};
    int64_t rested_ns = 0;
    const int64_t start_ns = gar_clock_ns();
    for (int64_t i = 0; i < count; i++) {
        rest(&rested_ns);
        __atomic_store_n(&job.left, 1, __ATOMIC_RELAXED);
        gar_pool_submit(gar_runtime_compute(runtime), &job.task);
        while (__atomic_load_n(&job.left, __ATOMIC_ACQUIRE) != 0) {
            (void)gar_parker_wait(&job.done, GAR_CLOCK_NEVER);
        }
    }
    return gar_clock_ns() - start_ns - rested_ns;
}

static int64_t message_round_trip(int64_t count)
{
    struct job job = {.message = {.handle = handle}};
    int64_t rested_ns = 0;
    const int64_t start_ns = gar_clock_ns();
    for (int64_t i = 0; i < count; i++) {
        rest(&rested_ns);
        __atomic_store_n(&job.left, 1, __ATOMIC_RELAXED);
        (void)gar_loop_post(gar_runtime_loop(runtime), &job.message);
        while (__atomic_load_n(&job.left, __ATOMIC_ACQUIRE) != 0) {
            (void)gar_parker_wait(&job.done, GAR_CLOCK_NEVER);
        }
    }
    return gar_clock_ns() - start_ns - rested_ns;
}

enum { MANY = 10000 };
static struct job many[MANY];
static struct gar_parker many_done;
static int64_t many_left;

static void run_one_of_many(struct gar_task *task, int32_t worker)
{
    (void)task;
    (void)worker;
    if (__atomic_sub_fetch(&many_left, 1, __ATOMIC_ACQ_REL) == 0) {
        gar_parker_wake(&many_done);
    }
}

static int64_t many_tasks(int64_t count)
{
    __atomic_store_n(&many_left, count, __ATOMIC_RELAXED);
    const int64_t start_ns = gar_clock_ns();
    for (int64_t i = 0; i < count; i++) {
        many[i].task.run = run_one_of_many;
        many[i].task.next = &many[i + 1 < count ? i + 1 : i].task;
    }
    gar_pool_submit_list(gar_runtime_compute(runtime), &many[0].task, &many[count - 1].task, count);
    while (__atomic_load_n(&many_left, __ATOMIC_ACQUIRE) != 0) {
        (void)gar_parker_wait(&many_done, GAR_CLOCK_NEVER);
    }
    return gar_clock_ns() - start_ns;
}

static struct gar_schema *schema;
static struct gar_batch *batch;

/* A producer task that fills a stream for a consumer that only takes: the hand-over between two cores. */
struct feeder {
    struct gar_task task;
    struct gar_stream_sink *sink;
    int64_t left;
};

static void feed(struct gar_task *task, int32_t worker)
{
    (void)worker;
    struct feeder *feeder = (struct feeder *)task;
    while (feeder->left > 0) {
        if (gar_stream_push(feeder->sink, gar_batch_ref(batch), NULL) == GAR_OK) {
            feeder->left--;
        } else {
            gar_batch_unref(batch);
            gar_thread_pause();
        }
    }
    gar_stream_end(feeder->sink, GAR_OK, NULL);
}

static int64_t stream_between_threads(int64_t count)
{
    const struct gar_stream_options options = {.schema = schema, .max_batches = 64};
    struct gar_stream *stream = NULL;
    struct feeder feeder = {.task = {.run = feed}, .left = count};
    if (gar_stream_new_queue(&options, &stream, &feeder.sink, NULL) != GAR_OK) {
        fail("stream");
    }
    const int64_t start_ns = gar_clock_ns();
    gar_pool_submit(gar_runtime_compute(runtime), &feeder.task);
    struct gar_batch *out = NULL;
    while (gar_stream_next(stream, NULL, &out, NULL) == GAR_OK) {
        gar_batch_unref(out);
    }
    const int64_t taken_ns = gar_clock_ns() - start_ns;
    gar_stream_free(stream);
    return taken_ns;
}

static int64_t stream_one_thread(int64_t count)
{
    const struct gar_stream_options options = {.schema = schema, .max_batches = 64};
    struct gar_stream *stream = NULL;
    struct gar_stream_sink *sink = NULL;
    if (gar_stream_new_queue(&options, &stream, &sink, NULL) != GAR_OK) {
        fail("stream");
    }
    const int64_t start_ns = gar_clock_ns();
    for (int64_t i = 0; i < count; i++) {
        struct gar_batch *out = NULL;
        if (gar_stream_push(sink, gar_batch_ref(batch), NULL) != GAR_OK ||
            gar_stream_next(stream, NULL, &out, NULL) != GAR_OK) {
            fail("push");
        }
        gar_batch_unref(out);
    }
    const int64_t taken_ns = gar_clock_ns() - start_ns;
    gar_stream_sink_free(sink);
    gar_stream_free(stream);
    return taken_ns;
}

static int64_t stream_open_close(int64_t count)
{
    const struct gar_stream_options options = {.schema = schema};
    const int64_t start_ns = gar_clock_ns();
    for (int64_t i = 0; i < count; i++) {
        struct gar_stream *stream = NULL;
        struct gar_stream_sink *sink = NULL;
        if (gar_stream_new_queue(&options, &stream, &sink, NULL) != GAR_OK) {
            fail("stream");
        }
        gar_stream_end(sink, GAR_OK, NULL);
        gar_stream_free(stream);
    }
    return gar_clock_ns() - start_ns;
}

static int64_t block_bytes;

static int64_t alloc_free(int64_t count)
{
    const int64_t start_ns = gar_clock_ns();
    for (int64_t i = 0; i < count; i++) {
        int64_t capacity;
        void *data = gar_memory_alloc(&account->memory, block_bytes, &capacity, NULL);
        if (data == NULL) {
            fail("alloc");
        }
        gar_memory_free(&account->memory, data, capacity);
    }
    return gar_clock_ns() - start_ns;
}

/* Each block once from the kernel, as at the first run of a query. */
static int64_t alloc_cold(int64_t count)
{
    enum { BLOCKS_MAX = 512 };
    void *data[BLOCKS_MAX];
    int64_t capacity[BLOCKS_MAX];
    (void)gar_memory_pool_trim_all(account->pool);
    const int64_t start_ns = gar_clock_ns();
    for (int64_t i = 0; i < count; i++) {
        data[i] = gar_memory_alloc(&account->memory, block_bytes, &capacity[i], NULL);
        if (data[i] == NULL) {
            fail("alloc");
        }
        for (int64_t at = 0; at < block_bytes; at += 4096) {
            ((char *)data[i])[at] = 1;
        }
    }
    const int64_t taken_ns = gar_clock_ns() - start_ns;
    for (int64_t i = 0; i < count; i++) {
        gar_memory_free(&account->memory, data[i], capacity[i]);
    }
    return taken_ns;
}

static void set_up(void)
{
    const struct gar_runtime_options options = {0};
    char name[] = "n";
    const struct gar_field field = {.name = name, .type = gar_type_of(GAR_NULL), .nullable = true};
    struct gar_column *column = NULL;
    if (gar_runtime_new(&options, &runtime, NULL) != GAR_OK ||
        gar_runtime_start(runtime, GAR_RUNTIME_ALL, NULL) != GAR_OK ||
        gar_account_new(gar_runtime_memory(runtime), "bench", 0, &account, NULL) != GAR_OK ||
        gar_schema_new(&field, 1, false, &schema, NULL) != GAR_OK ||
        gar_column_new_null(gar_memory_system(), field.type, 10, &column, NULL) != GAR_OK ||
        gar_batch_new(schema, &column, 10, &batch, NULL) != GAR_OK) {
        fail("set-up");
    }
}

int main(void)
{
    set_up();
    printf("%-58s %10s %10s\n", "nanoseconds for one", "fastest", "median");
    report("runtime of 2 + 2 threads and loop: start, join", start_and_free, 20);
    report("enter and leave", enter_and_leave, 10000);
    pause_us = 200;
    report("task round trip, all asleep", task_round_trip, 100);
    report("message round trip, loop asleep", message_round_trip, 100);
    if (gar_runtime_enter(runtime, NULL) != GAR_OK) {
        fail("enter");
    }
    pause_us = 0;
    report("task round trip, a query inside (workers spin)", task_round_trip, 1000);
    report("message round trip, a query inside (loop spins)", message_round_trip, 1000);
    report("empty task, submitted as a list of 10,000", many_tasks, MANY);
    report("stream: open and close", stream_open_close, 1000);
    report("stream: push and next on one thread", stream_one_thread, 10000);
    report("stream: push and next between threads", stream_between_threads, 10000);
    gar_runtime_leave(runtime);
    static const int64_t sizes[] = {1000, 16384, 65536, 1 << 20, 8 << 20};
    for (int64_t i = 0; i < GAR_COUNT_OF(sizes); i++) {
        char what[80];
        block_bytes = sizes[i];
        (void)snprintf(what, sizeof what, "memory: take and give back %lld bytes, warm",
                       (long long)sizes[i]);
        report(what, alloc_free, 10000);
    }
    for (int64_t i = 2; i < GAR_COUNT_OF(sizes); i++) {
        char what[80];
        block_bytes = sizes[i];
        (void)snprintf(what, sizeof what, "memory: take and touch %lld bytes, cold",
                       (long long)sizes[i]);
        report(what, alloc_cold, gar_min_i64((INT64_C(256) << 20) / sizes[i], 512));
    }
    gar_account_unref(account);
    gar_batch_unref(batch);
    gar_schema_unref(schema);
    gar_runtime_free(runtime);
    return 0;
}
