/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of both kinds and their Arrow adapters. */
#include "stream/stream.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "arrow/value.h"
#include "base/alloc.h"
#include "stream/arrow_stream.h"

static struct gar_schema *new_schema(void)
{
    char name[] = "n";
    const struct gar_field field = {.name = name, .type = gar_type_of(GAR_INT64), .nullable = true};
    struct gar_schema *schema = NULL;
    assert_int_equal(gar_schema_new(&field, 1, false, &schema, NULL), GAR_OK);
    return schema;
}

static struct gar_batch *new_batch(struct gar_schema *schema, int64_t value, int64_t rows)
{
    struct gar_column *column = NULL;
    assert_int_equal(
        gar_column_new(gar_memory_system(), gar_type_of(GAR_INT64), rows, false, &column, NULL),
        GAR_OK);
    int64_t *values = gar_column_values_mut(column);
    for (int64_t i = 0; i < rows; i++) {
        values[i] = value;
    }
    struct gar_batch *batch = NULL;
    assert_int_equal(gar_batch_new(schema, &column, rows, &batch, NULL), GAR_OK);
    return batch;
}

static int64_t first_value(const struct gar_batch *batch)
{
    return ((const int64_t *)batch->columns[0]->values)[0];
}

struct seen {
    int rooms;
    int cancels;
    enum gar_cancel_reason reason;
    int releases;
};

static void on_room(void *context)
{
    ((struct seen *)context)->rooms++;
}

static void on_cancel(void *context, enum gar_cancel_reason reason)
{
    struct seen *seen = context;
    seen->cancels++;
    seen->reason = reason;
}

static void on_release(void *context)
{
    ((struct seen *)context)->releases++;
}

static const struct gar_stream_producer producer = {
    .on_room = on_room, .on_cancel = on_cancel, .release = on_release};

struct pair {
    struct gar_schema *schema;
    struct gar_stream *stream;
    struct gar_stream_sink *sink;
    struct seen seen;
};

static void open_pair(struct pair *pair, int64_t max_batches, int64_t max_bytes)
{
    memset(pair, 0, sizeof *pair);
    pair->schema = new_schema();
    const struct gar_stream_options options = {.schema = pair->schema,
                                               .max_batches = max_batches,
                                               .max_bytes = max_bytes,
                                               .producer = &producer,
                                               .context = &pair->seen};
    assert_int_equal(gar_stream_new_queue(&options, &pair->stream, &pair->sink, NULL), GAR_OK);
}

static void close_pair(struct pair *pair)
{
    gar_stream_sink_free(pair->sink);
    gar_stream_free(pair->stream);
    assert_int_equal(pair->seen.releases, 1);
    gar_schema_unref(pair->schema);
}

static void push_new(struct pair *pair, int64_t value)
{
    struct gar_batch *batch = new_batch(pair->schema, value, 3);
    assert_int_equal(gar_stream_push(pair->sink, batch, NULL), GAR_OK);
}

static void check_next(struct gar_stream *stream, int64_t value)
{
    struct gar_batch *batch = NULL;
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(gar_stream_next(stream, NULL, &batch, &err), GAR_OK);
    assert_int_equal(first_value(batch), value);
    gar_batch_unref(batch);
}

static void test_queue_complete(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair, 2, 0);
    assert_true(gar_schema_equal(gar_stream_schema(pair.stream), pair.schema));
    struct gar_batch *batch = NULL;
    assert_int_equal(gar_stream_try_next(pair.stream, &batch, NULL), GAR_PENDING);
    assert_int_equal(gar_stream_next_until(pair.stream, 1, NULL, &batch, NULL), GAR_PENDING);
    push_new(&pair, 1);
    push_new(&pair, 2);
    assert_true(gar_stream_is_full(pair.sink));
    batch = new_batch(pair.schema, 3, 3);
    assert_int_equal(gar_stream_push(pair.sink, batch, NULL), GAR_PENDING);
    check_next(pair.stream, 1);
    assert_int_equal(pair.seen.rooms, 1);
    assert_int_equal(gar_stream_push(pair.sink, batch, NULL), GAR_OK);
    gar_stream_end(pair.sink, GAR_OK, NULL);
    pair.sink = NULL;
    check_next(pair.stream, 2);
    check_next(pair.stream, 3);
    assert_int_equal(gar_stream_next(pair.stream, NULL, &batch, NULL), GAR_EOF);
    assert_int_equal(gar_stream_next(pair.stream, NULL, &batch, NULL), GAR_EOF);
    close_pair(&pair);
    assert_int_equal(pair.seen.cancels, 0);
}

static void test_queue_cut_is_an_error(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair, 4, 0);
    push_new(&pair, 1);
    gar_stream_sink_free(pair.sink);
    pair.sink = NULL;
    struct gar_batch *batch = NULL;
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(gar_stream_next(pair.stream, NULL, &batch, &err), GAR_ERR_INTERNAL);
    assert_non_null(strstr(err.message, "without an end mark"));
    close_pair(&pair);
}

static void test_queue_error_first(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair, 4, 0);
    push_new(&pair, 1);
    struct gar_error why = GAR_ERROR_INIT;
    (void)gar_error_set(&why, GAR_ERR_INTERRUPTED, "the producer was interrupted");
    gar_stream_end(pair.sink, GAR_ERR_INTERRUPTED, &why);
    pair.sink = NULL;
    for (int i = 0; i < 2; i++) {
        struct gar_batch *batch = NULL;
        struct gar_error err = GAR_ERROR_INIT;
        assert_int_equal(gar_stream_next(pair.stream, NULL, &batch, &err), GAR_ERR_INTERRUPTED);
        assert_string_equal(err.message, why.message);
    }
    close_pair(&pair);
}

static void test_queue_dropped(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair, 4, 0);
    push_new(&pair, 1);
    gar_stream_free(pair.stream);
    pair.stream = NULL;
    assert_int_equal(pair.seen.cancels, 1);
    assert_int_equal(pair.seen.reason, GAR_CANCEL_DROPPED);
    struct gar_batch *batch = new_batch(pair.schema, 2, 1);
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(gar_stream_push(pair.sink, batch, &err), GAR_ERR_CANCELLED);
    gar_batch_unref(batch);
    close_pair(&pair);
}

static void test_queue_cancelled(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair, 4, 0);
    gar_stream_cancel(pair.stream, GAR_CANCEL_USER);
    gar_stream_cancel(pair.stream, GAR_CANCEL_DROPPED);
    assert_int_equal(pair.seen.cancels, 1);
    assert_int_equal(pair.seen.reason, GAR_CANCEL_USER);
    close_pair(&pair);
    assert_int_equal(pair.seen.cancels, 1);
}

static bool always(void *context)
{
    (void)context;
    return true;
}

static void test_queue_interrupted(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair, 4, 0);
    const struct gar_interrupt interrupt = {.check = always};
    struct gar_batch *batch = NULL;
    struct gar_error err = GAR_ERROR_INIT;
    /* Nobody ends the sink: the wait for it is bounded. */
    assert_int_equal(gar_stream_next(pair.stream, &interrupt, &batch, &err), GAR_ERR_INTERRUPTED);
    assert_string_equal(err.message, "interrupted");
    assert_int_equal(pair.seen.reason, GAR_CANCEL_INTERRUPT);
    assert_int_equal(gar_stream_next(pair.stream, &interrupt, &batch, &err), GAR_ERR_INTERRUPTED);
    close_pair(&pair);
    assert_int_equal(pair.seen.cancels, 1);
}

/* ---- inline ---- */

struct counter {
    struct gar_schema *schema;
    int64_t next;
    int64_t end;
    enum gar_status last; /* what comes after the end */
    struct gar_stream *inner;
    int cancels;
    int releases;
};

static enum gar_status count_next(void *context, const struct gar_interrupt *interrupt,
                                  struct gar_batch **out, struct gar_error *err)
{
    (void)interrupt;
    struct counter *counter = context;
    if (counter->next == counter->end) {
        return counter->last < 0 ? gar_error_set(err, counter->last, "at the end") : counter->last;
    }
    *out = new_batch(counter->schema, counter->next++, 1);
    return GAR_OK;
}

static void count_cancel(void *context, enum gar_cancel_reason reason)
{
    (void)reason;
    ((struct counter *)context)->cancels++;
}

static void count_release(void *context)
{
    ((struct counter *)context)->releases++;
}

static struct gar_stream *count_take_over(void *context)
{
    return ((struct counter *)context)->inner;
}

static const struct gar_stream_source counting = {.next = count_next,
                                                  .cancel = count_cancel,
                                                  .release = count_release,
                                                  .take_over = count_take_over};

static void test_inline(void **state)
{
    (void)state;
    struct counter counter = {.schema = new_schema(), .end = 3, .last = GAR_EOF};
    struct gar_stream *stream = NULL;
    assert_int_equal(gar_stream_new_inline(counter.schema, &counting, &counter, &stream, NULL),
                     GAR_OK);
    int fd = -1;
    assert_int_equal(gar_stream_fd(stream, &fd, NULL), GAR_OK);
    struct pollfd one = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&one, 1, 0), 1);
    struct gar_batch **batches = NULL;
    int64_t count = 0;
    assert_int_equal(gar_stream_collect(stream, NULL, &batches, &count, NULL), GAR_OK);
    assert_int_equal(count, 3);
    assert_int_equal(first_value(batches[2]), 2);
    gar_stream_free(stream);
    assert_int_equal(counter.releases, 1);
    assert_int_equal(counter.cancels, 0);
    /* The same batches as a stream of their own. */
    assert_int_equal(gar_stream_new_batches(counter.schema, batches, count, &stream, NULL), GAR_OK);
    gar_batches_free(batches, count);
    check_next(stream, 0);
    check_next(stream, 1);
    gar_stream_free(stream);
    gar_schema_unref(counter.schema);
}

static void test_inline_error_and_cancel(void **state)
{
    (void)state;
    struct counter counter = {.schema = new_schema(), .end = 1, .last = GAR_ERR_OVERFLOW};
    struct gar_stream *stream = NULL;
    assert_int_equal(gar_stream_new_inline(counter.schema, &counting, &counter, &stream, NULL),
                     GAR_OK);
    check_next(stream, 0);
    struct gar_batch **batches = NULL;
    int64_t count = 0;
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(gar_stream_collect(stream, NULL, &batches, &count, &err), GAR_ERR_OVERFLOW);
    assert_string_equal(err.message, "at the end");
    gar_stream_free(stream);
    counter.next = 0;
    assert_int_equal(gar_stream_new_inline(counter.schema, &counting, &counter, &stream, NULL),
                     GAR_OK);
    gar_stream_cancel(stream, GAR_CANCEL_DEADLINE);
    assert_int_equal(counter.cancels, 1);
    struct gar_batch *batch = NULL;
    assert_int_equal(gar_stream_next(stream, NULL, &batch, &err), GAR_ERR_TIMEOUT);
    gar_stream_free(stream);
    gar_schema_unref(counter.schema);
}

/* Work that outgrows the caller's thread goes on as a queue stream. */
static void test_inline_taken_over(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair, 4, 0);
    struct counter counter = {
        .schema = pair.schema, .end = 1, .last = GAR_PENDING, .inner = pair.stream};
    struct gar_stream *stream = NULL;
    assert_int_equal(gar_stream_new_inline(counter.schema, &counting, &counter, &stream, NULL),
                     GAR_OK);
    check_next(stream, 0);
    push_new(&pair, 7);
    check_next(stream, 7);
    struct gar_batch *batch = NULL;
    assert_int_equal(gar_stream_try_next(stream, &batch, NULL), GAR_PENDING);
    gar_stream_end(pair.sink, GAR_OK, NULL);
    assert_int_equal(gar_stream_next(stream, NULL, &batch, NULL), GAR_EOF);
    gar_stream_free(stream);
    assert_int_equal(pair.seen.releases, 1);
    assert_int_equal(counter.releases, 1);
    gar_schema_unref(pair.schema);
}

/* ---- Arrow ---- */

static void export_counter(struct counter *counter, struct ArrowArrayStream *out)
{
    struct gar_stream *stream = NULL;
    assert_int_equal(gar_stream_new_inline(counter->schema, &counting, counter, &stream, NULL),
                     GAR_OK);
    const struct gar_arrow_export_options options = {.layout = GAR_TEXT_VIEWS,
                                                     .memory = gar_memory_system()};
    assert_int_equal(gar_stream_export(stream, &options, out, NULL), GAR_OK);
}

static void test_arrow_round_trip(void **state)
{
    (void)state;
    struct counter counter = {.schema = new_schema(), .end = 3, .last = GAR_EOF};
    struct ArrowArrayStream abi;
    export_counter(&counter, &abi);
    struct gar_arrow_reader *reader = NULL;
    assert_int_equal(gar_arrow_reader_open(&abi, &reader, NULL), GAR_OK);
    assert_null(abi.release);
    assert_true(gar_schema_equal(gar_arrow_reader_schema(reader), counter.schema));
    struct gar_stream *stream = NULL;
    assert_int_equal(gar_arrow_reader_stream(reader, gar_memory_system(), &stream, NULL), GAR_OK);
    for (int64_t i = 0; i < 3; i++) {
        check_next(stream, i);
    }
    struct gar_batch *batch = NULL;
    assert_int_equal(gar_stream_next(stream, NULL, &batch, NULL), GAR_EOF);
    gar_stream_free(stream);
    assert_int_equal(counter.releases, 1);
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(gar_arrow_reader_open(&abi, &reader, &err), GAR_ERR_VALUE);
    gar_schema_unref(counter.schema);
}

static void test_arrow_errors(void **state)
{
    (void)state;
    static const struct {
        enum gar_status status;
        int code;
    } rows[] = {{GAR_ERR_INTERRUPTED, EINTR},
                {GAR_ERR_CANCELLED, ECANCELED},
                {GAR_ERR_TIMEOUT, ETIMEDOUT},
                {GAR_ERR_NOMEM, ENOMEM},
                {GAR_ERR_IO, EIO},
                {GAR_ERR_CAST, EINVAL}};
    struct gar_schema *schema = new_schema();
    for (int64_t i = 0; i < GAR_COUNT_OF(rows); i++) {
        struct counter counter = {.schema = schema, .end = 0, .last = rows[i].status};
        struct ArrowArrayStream abi;
        export_counter(&counter, &abi);
        struct ArrowArray array;
        assert_int_equal(abi.get_next(&abi, &array), rows[i].code);
        assert_string_equal(abi.get_last_error(&abi), "at the end");
        struct gar_arrow_reader *reader = NULL;
        assert_int_equal(gar_arrow_reader_open(&abi, &reader, NULL), GAR_OK);
        struct gar_batch *batch = NULL;
        struct gar_error err = GAR_ERROR_INIT;
        assert_true(gar_arrow_reader_next(reader, gar_memory_system(), &batch, &err) < 0);
        assert_true(gar_arrow_reader_next(reader, gar_memory_system(), &batch, &err) < 0);
        assert_non_null(strstr(err.message, "at the end"));
        gar_arrow_reader_free(reader);
        assert_int_equal(counter.releases, 1);
    }
    gar_schema_unref(schema);
}

static int releases_of_bad;

static void release_bad(struct ArrowArrayStream *self)
{
    releases_of_bad++;
    self->release = NULL;
}

static int fail_schema(struct ArrowArrayStream *self, struct ArrowSchema *out)
{
    (void)self;
    memset(out, 0x5a, sizeof *out); /* nonsense that must not be touched */
    return EIO;
}

static int no_schema(struct ArrowArrayStream *self, struct ArrowSchema *out)
{
    (void)self;
    memset(out, 0, sizeof *out);
    return 0;
}

static int no_array(struct ArrowArrayStream *self, struct ArrowArray *out)
{
    (void)self;
    (void)out;
    return EIO;
}

static void test_arrow_bad_producers(void **state)
{
    (void)state;
    const struct ArrowArrayStream bad[] = {
        {.get_schema = fail_schema, .get_next = no_array, .release = release_bad},
        {.get_schema = no_schema, .get_next = no_array, .release = release_bad},
        {.get_schema = NULL, .get_next = no_array, .release = release_bad},
        {.get_schema = no_schema, .get_next = NULL, .release = release_bad},
    };
    releases_of_bad = 0;
    for (int64_t i = 0; i < GAR_COUNT_OF(bad); i++) {
        struct ArrowArrayStream abi = bad[i];
        struct gar_arrow_reader *reader = NULL;
        struct gar_error err = GAR_ERROR_INIT;
        assert_int_equal(gar_arrow_reader_open(&abi, &reader, &err), GAR_ERR_CALLBACK);
        assert_true(err.message[0] != '\0');
        assert_int_equal(releases_of_bad, i + 1);
    }
}

/* Every refused allocation is an error and leaves nothing behind. */
static void test_refused_allocations(void **state)
{
    (void)state;
    struct gar_schema *schema = new_schema();
    struct gar_batch *batch = new_batch(schema, 1, 10);
    const int64_t blocks = gar_alloc_live_blocks();
    for (int64_t n = 1; n < 100; n++) {
        struct gar_stream *stream = NULL;
        struct gar_stream_sink *sink = NULL;
        struct ArrowArrayStream abi = {.release = NULL};
        struct gar_error err = GAR_ERROR_INIT;
        (void)gar_alloc_fail_at(n, false);
        const struct gar_stream_options options = {.schema = schema};
        const struct gar_arrow_export_options export_options = {.memory = gar_memory_system()};
        enum gar_status status = gar_stream_new_queue(&options, &stream, &sink, &err);
        if (status == GAR_OK) {
            gar_stream_sink_free(sink);
            gar_stream_free(stream);
            stream = NULL;
            status = gar_stream_new_batches(schema, &batch, 1, &stream, &err);
        }
        if (status == GAR_OK) {
            status = gar_stream_export(stream, &export_options, &abi, &err);
        }
        struct gar_arrow_reader *reader = NULL;
        if (status == GAR_OK) {
            stream = NULL;
            status = gar_arrow_reader_open(&abi, &reader, &err);
        }
        struct gar_batch *out = NULL;
        if (status == GAR_OK) {
            status = gar_arrow_reader_next(reader, gar_memory_system(), &out, &err);
        }
        (void)gar_alloc_fail_at(0, false);
        gar_batch_unref(out);
        gar_arrow_reader_free(reader);
        gar_stream_free(stream);
        assert_int_equal(gar_alloc_live_blocks(), blocks);
        if (status == GAR_OK) {
            assert_true(n > 5);
            break;
        }
        assert_true(status < 0 && err.message[0] != '\0');
    }
    gar_batch_unref(batch);
    gar_schema_unref(schema);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queue_complete),
        cmocka_unit_test(test_queue_cut_is_an_error),
        cmocka_unit_test(test_queue_error_first),
        cmocka_unit_test(test_queue_dropped),
        cmocka_unit_test(test_queue_cancelled),
        cmocka_unit_test(test_queue_interrupted),
        cmocka_unit_test(test_inline),
        cmocka_unit_test(test_inline_error_and_cancel),
        cmocka_unit_test(test_inline_taken_over),
        cmocka_unit_test(test_arrow_round_trip),
        cmocka_unit_test(test_arrow_errors),
        cmocka_unit_test(test_arrow_bad_producers),
        cmocka_unit_test(test_refused_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
