/* SPDX-License-Identifier: Apache-2.0 */
/* Streams under TSan: queries as compute tasks that push until full and go on when told of room, consumers that read by
 * sleeping, by polling a descriptor or not at all, and that drop, cancel and are interrupted at random places. A complete
 * stream delivers every batch once and in order; a cut one never looks complete; nothing is left behind. */
#include "stream/stream.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "runtime/runtime.h"

enum { CONSUMERS = 3, ROUNDS = 120, BATCHES = 40 };

/* Whose turn it is: the task runs, it runs but was told to look again, it has stopped at a full stream. */
enum { RUNNING, NOTIFIED, SUSPENDED };

/* A query: its state belongs to one task at a time; the loop only submits the task again. Each queued message holds a
 * reference. */
struct query {
    struct gar_task task;
    struct gar_message room;
    struct gar_runtime *runtime;
    struct gar_cancel *cancel;
    struct gar_stream_sink *sink;
    struct gar_schema *schema;
    int64_t next;
    int64_t refs;    /* atomic: the stream, the work, a queued message */
    int32_t turn;    /* atomic: RUNNING, ... */
    int64_t fail_at; /* batch that fails, or -1 */
    bool forgets_end;
};

static struct gar_batch *templates[BATCHES];
static struct gar_schema *schema;

static void unref_query(struct query *query)
{
    if (__atomic_sub_fetch(&query->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        gar_cancel_unref(query->cancel);
        gar_free(query);
    }
}

static void finish(struct query *query, enum gar_status status, const struct gar_error *why)
{
    struct gar_runtime *runtime = query->runtime;
    if (query->forgets_end && status == GAR_OK) {
        gar_stream_sink_free(query->sink);
    } else {
        gar_stream_end(query->sink, status, why);
    }
    unref_query(query);
    gar_runtime_leave(runtime);
}

static void run_query(struct gar_task *task, int32_t worker)
{
    struct query *query = (struct query *)task;
    (void)worker;
    struct gar_error err = GAR_ERROR_INIT;
    for (;;) {
        if (gar_cancel_requested(query->cancel)) {
            finish(query, gar_cancel_status(query->cancel, &err), &err);
            return;
        }
        if (query->next == query->fail_at) {
            finish(query, gar_error_set(&err, GAR_ERR_CAST, "as arranged"), &err);
            return;
        }
        if (query->next == BATCHES) {
            finish(query, GAR_OK, NULL);
            return;
        }
        struct gar_batch *batch = gar_batch_ref(templates[query->next]);
        const enum gar_status status = gar_stream_push(query->sink, batch, &err);
        if (status == GAR_PENDING) {
            gar_batch_unref(batch);
            int32_t expected = RUNNING;
            if (__atomic_compare_exchange_n(&query->turn, &expected, SUSPENDED, false,
                                            __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
                return;
            }
            __atomic_store_n(&query->turn, RUNNING,
                             __ATOMIC_RELEASE); /* room or cancel came meanwhile */
            continue;
        }
        if (status != GAR_OK) {
            gar_batch_unref(batch);
            finish(query, status, &err);
            return;
        }
        query->next++;
    }
}

static void notify(struct query *query)
{
    (void)__atomic_fetch_add(&query->refs, 1, __ATOMIC_RELAXED);
    if (!gar_loop_post(gar_runtime_loop(query->runtime), &query->room)) {
        unref_query(query);
    }
}

static void on_room(void *context)
{
    notify(context);
}

static void on_cancel(void *context, enum gar_cancel_reason reason)
{
    struct query *query = context;
    (void)gar_cancel_request(query->cancel, reason);
    notify(query);
}

static void on_release(void *context)
{
    unref_query(context);
}

/* A task of the IO pool: it may block. */
struct consumer {
    struct gar_task task;
    struct gar_runtime *runtime;
    uint64_t random;
    int64_t complete;
    bool is_wrong;
};

static uint64_t draw(struct consumer *self)
{
    self->random = self->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return self->random >> 33;
}

static bool interrupt_check(void *context)
{
    return draw(context) % 2 == 0;
}

static void read_stream(struct consumer *self, struct gar_stream *stream, bool may_complete)
{
    const struct gar_interrupt interrupt = {.check = interrupt_check, .context = self};
    const int64_t stop_at = (int64_t)(draw(self) % (2 * BATCHES));
    const bool polls = draw(self) % 3 == 0;
    const bool cancels = draw(self) % 2 == 0;
    struct gar_error err = GAR_ERROR_INIT;
    for (int64_t i = 0;; i++) {
        if (i == stop_at) {
            if (!cancels) {
                return; /* dropped */
            }
            gar_stream_cancel(stream, GAR_CANCEL_USER);
        }
        struct gar_batch *batch = NULL;
        enum gar_status status = GAR_PENDING;
        int fd = -1;
        if (polls && gar_stream_fd(stream, &fd, &err) == GAR_OK) {
            for (status = gar_stream_try_next(stream, &batch, &err); status == GAR_PENDING;
                 status = gar_stream_try_next(stream, &batch, &err)) {
                struct pollfd one = {.fd = fd, .events = POLLIN};
                (void)poll(&one, 1, 1000);
            }
        } else {
            status = gar_stream_next(stream, draw(self) % 4 == 0 ? &interrupt : NULL, &batch, &err);
        }
        if (status == GAR_OK) {
            self->is_wrong |= batch->rows != i + 1;
            gar_batch_unref(batch);
            continue;
        }
        if (status == GAR_EOF) {
            self->is_wrong |= i != BATCHES || !may_complete;
            self->complete++;
        }
        return;
    }
}

static void resume(struct gar_message *message, struct gar_loop *loop)
{
    (void)loop;
    struct query *query = (struct query *)(void *)((char *)message - offsetof(struct query, room));
    int32_t turn = __atomic_load_n(&query->turn, __ATOMIC_ACQUIRE);
    while (!__atomic_compare_exchange_n(&query->turn, &turn, turn == SUSPENDED ? RUNNING : NOTIFIED,
                                        true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    }
    if (turn == SUSPENDED) {
        gar_pool_submit(gar_runtime_compute(query->runtime), &query->task);
    }
    unref_query(query);
}

static int64_t consuming; /* atomic: consumers at work */

static void consume_all(struct consumer *self)
{
    static const struct gar_stream_producer producer = {
        .on_room = on_room, .on_cancel = on_cancel, .release = on_release};
    for (int round = 0; round < ROUNDS; round++) {
        struct query *query = gar_calloc(1, (int64_t)sizeof *query);
        query->task.run = run_query;
        query->room.handle = resume;
        query->runtime = self->runtime;
        query->schema = schema;
        query->refs = 2;
        query->fail_at = draw(self) % 4 == 0 ? (int64_t)(draw(self) % BATCHES) : -1;
        query->forgets_end = draw(self) % 4 == 0;
        struct gar_stream *stream = NULL;
        const struct gar_stream_options options = {.schema = schema,
                                                   .max_batches = 1 + (int64_t)(draw(self) % 8),
                                                   .producer = &producer,
                                                   .context = query};
        if (gar_cancel_new(INT64_MAX, &query->cancel, NULL) != GAR_OK ||
            gar_runtime_enter(self->runtime, NULL) != GAR_OK ||
            gar_stream_new_queue(&options, &stream, &query->sink, NULL) != GAR_OK) {
            self->is_wrong = true;
            return;
        }
        const bool may_complete = query->fail_at < 0 && !query->forgets_end;
        gar_pool_submit(gar_runtime_compute(self->runtime), &query->task);
        read_stream(self, stream, may_complete);
        gar_stream_free(stream);
    }
}

static void consume(struct gar_task *task, int32_t worker)
{
    (void)worker;
    consume_all((struct consumer *)task);
    (void)__atomic_fetch_sub(&consuming, 1, __ATOMIC_RELEASE);
}

static void wait_for_zero(const int64_t *counter)
{
    while (__atomic_load_n(counter, __ATOMIC_ACQUIRE) > 0 &&
           gar_cancel_sleep(NULL, 1000000, NULL) == GAR_OK) {
    }
}

int main(void)
{
    (void)setenv("GAR_TEST_POINTS", "9",
                 0); /* NOLINT(concurrency-mt-unsafe): no other thread yet */
    char name[] = "n";
    const struct gar_field field = {.name = name, .type = gar_type_of(GAR_NULL), .nullable = true};
    if (gar_schema_new(&field, 1, false, &schema, NULL) != GAR_OK) {
        return 1;
    }
    for (int64_t i = 0; i < BATCHES; i++) {
        struct gar_column *column = NULL;
        if (gar_column_new_null(gar_memory_system(), field.type, i + 1, &column, NULL) != GAR_OK ||
            gar_batch_new(schema, &column, i + 1, &templates[i], NULL) != GAR_OK) {
            return 1;
        }
    }
    const int64_t blocks = gar_alloc_live_blocks();
    const struct gar_runtime_options options = {.compute_threads = 2, .io_threads = CONSUMERS};
    struct gar_runtime *runtime = NULL;
    struct consumer consumers[CONSUMERS];
    memset(consumers, 0, sizeof consumers);
    if (gar_runtime_new(&options, &runtime, NULL) != GAR_OK ||
        gar_runtime_start(runtime, GAR_RUNTIME_ALL, NULL) != GAR_OK) {
        return 1;
    }
    bool is_right = true;
    int64_t complete = 0;
    consuming = CONSUMERS;
    for (int i = 0; i < CONSUMERS; i++) {
        consumers[i].task.run = consume;
        consumers[i].runtime = runtime;
        consumers[i].random = (uint64_t)i * 7 + 1;
        gar_pool_submit(gar_runtime_io(runtime), &consumers[i].task);
    }
    wait_for_zero(&consuming);
    for (int i = 0; i < CONSUMERS; i++) {
        is_right &= !consumers[i].is_wrong;
        complete += consumers[i].complete;
    }
    gar_runtime_free(runtime);
    is_right &= gar_alloc_live_blocks() == blocks;
    printf("%lld of %d complete, %lld blocks left\n", (long long)complete, CONSUMERS * ROUNDS,
           (long long)(gar_alloc_live_blocks() - blocks));
    for (int64_t i = 0; i < BATCHES; i++) {
        gar_batch_unref(templates[i]);
    }
    gar_schema_unref(schema);
    return is_right && complete > 0 ? 0 : 1;
}
