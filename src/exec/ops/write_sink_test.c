/* SPDX-License-Identifier: Apache-2.0 */
/* What a write sees: pieces encoded and appended in order, one finish behind the last, and always one free; without a
 * finish after any failure or cancel, so that what was staged is taken back and the old file stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arrow/builder.h"
#include "base/alloc.h"
#include "exec/ops/ops.h"

enum { ROWS = 20000, PIECE_ROWS = 1500 };

/* ---- a write that takes notes ---- */

enum failing { FAIL_NOTHING, FAIL_OPEN, FAIL_ENCODE, FAIL_APPEND, FAIL_FINISH, CANCEL_APPEND };

struct notes {
    struct gar_sink_provider base;
    enum failing failing;
    int64_t at; /* the piece that fails */
    struct gar_cancel *cancel;
    int64_t fail_at; /* this allocation of the query fails; 0: none */
    int64_t allocations;
    /* atomic: several pieces are encoded at once */
    int64_t encoded;
    int64_t alive; /* encoded pieces that nobody freed */
    /* of append and finish, which come one at a time */
    int32_t is_appending; /* atomic */
    int64_t appended;
    int64_t rows;
    bool is_in_order;
    bool is_finished;
    int64_t opened;
    int64_t freed; /* atomic */
};

struct fake_write {
    struct gar_write base;
    struct notes *notes;
};

struct gar_encoded {
    int64_t first;
    int64_t rows;
    bool is_dense;
};

static struct notes *notes_of(struct gar_write *write)
{
    return ((struct fake_write *)write)->notes;
}

static enum gar_status fake_encode(struct gar_write *write, struct gar_batch *batch,
                                   struct gar_memory *memory, struct gar_encoded **out,
                                   struct gar_error *err)
{
    struct notes *notes = notes_of(write);
    (void)memory;
    const int64_t number = __atomic_fetch_add(&notes->encoded, 1, __ATOMIC_RELAXED);
    if (notes->failing == FAIL_ENCODE && number == notes->at) {
        return gar_error_set(err, GAR_ERR_VALUE, "a value that cannot be encoded");
    }
    struct gar_encoded *encoded = gar_calloc(1, (int64_t)sizeof *encoded);
    if (encoded == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *encoded);
    }
    const int64_t *values = (const int64_t *)batch->columns[0]->values;
    encoded->first = values[0];
    encoded->rows = batch->rows;
    encoded->is_dense =
        batch->selection == NULL && values[batch->rows - 1] == values[0] + batch->rows - 1;
    __atomic_fetch_add(&notes->alive, 1, __ATOMIC_RELAXED);
    *out = encoded;
    return GAR_OK;
}

static void fake_encoded_free(struct gar_write *write, struct gar_encoded *encoded)
{
    __atomic_fetch_sub(&notes_of(write)->alive, 1, __ATOMIC_RELAXED);
    gar_free(encoded);
}

static enum gar_status fake_append(struct gar_write *write, struct gar_encoded *encoded,
                                   struct gar_error *err)
{
    struct notes *notes = notes_of(write);
    assert_int_equal(__atomic_exchange_n(&notes->is_appending, 1, __ATOMIC_ACQUIRE), 0);
    assert_false(notes->is_finished);
    const int64_t number = notes->appended++;
    notes->is_in_order = notes->is_in_order && encoded->is_dense && encoded->first == notes->rows;
    notes->rows += encoded->rows;
    fake_encoded_free(write, encoded);
    if (notes->failing == CANCEL_APPEND && number == notes->at) {
        (void)gar_cancel_request(notes->cancel, GAR_CANCEL_USER);
    }
    __atomic_store_n(&notes->is_appending, 0, __ATOMIC_RELEASE);
    return notes->failing == FAIL_APPEND && number == notes->at
               ? gar_error_set(err, GAR_ERR_IO, "the disk is full")
               : GAR_OK;
}

static enum gar_status fake_finish(struct gar_write *write, struct gar_memory *memory,
                                   struct gar_batch **out_paths, struct gar_error *err)
{
    struct notes *notes = notes_of(write);
    assert_false(notes->is_finished);
    if (notes->failing == FAIL_FINISH) {
        return gar_error_set(err, GAR_ERR_IO, "the folder has gone");
    }
    char name[] = "path";
    const struct gar_field field = {.name = name, .type = gar_type_of(GAR_STRING)};
    struct gar_schema *schema = NULL;
    struct gar_column *path = NULL;
    struct gar_builder builder;
    gar_builder_init(&builder, memory, field.type);
    enum gar_status status = gar_builder_append_bytes(&builder, "here", 4, err);
    if (status == GAR_OK) {
        status = gar_builder_finish(&builder, &path, err);
    }
    gar_builder_destroy(&builder);
    if (status == GAR_OK) {
        status = gar_schema_new(&field, 1, false, &schema, err);
    }
    if (status == GAR_OK) {
        status = gar_batch_new(schema, &path, 1, out_paths, err);
    }
    if (status < 0) {
        gar_column_unref(path);
    }
    gar_schema_unref(schema);
    notes->is_finished = status == GAR_OK;
    return status;
}

static void fake_write_free(struct gar_write *write)
{
    __atomic_fetch_add(&notes_of(write)->freed, 1, __ATOMIC_RELEASE);
    gar_free(write);
}

static enum gar_status fake_open(struct gar_sink_provider *provider, struct gar_schema *schema,
                                 struct gar_memory *memory, struct gar_write **out,
                                 struct gar_error *err)
{
    static const struct gar_write_vtable vtable = {.encode = fake_encode,
                                                   .append = fake_append,
                                                   .encoded_free = fake_encoded_free,
                                                   .finish = fake_finish,
                                                   .free = fake_write_free};
    struct notes *notes = (struct notes *)provider;
    (void)schema;
    (void)memory;
    if (notes->failing == FAIL_OPEN) {
        return gar_error_set(err, GAR_ERR_IO, "no such folder");
    }
    struct fake_write *write = gar_calloc(1, (int64_t)sizeof *write);
    if (write == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *write);
    }
    write->base.vtable = &vtable;
    write->base.preferred_rows = PIECE_ROWS;
    write->notes = notes;
    notes->opened++;
    *out = &write->base;
    return GAR_OK;
}

static void fake_print(const struct gar_sink_provider *provider, struct gar_strbuf *out)
{
    (void)provider;
    gar_strbuf_append(out, "notes");
}

static void fake_provider_free(struct gar_sink_provider *provider)
{
    (void)provider; /* in the test's frame */
}

/* ---- running ---- */

static struct gar_runtime *runtime;
static struct gar_plan *input;

static int set_up(void **context)
{
    (void)context;
    const struct gar_runtime_options options = {.compute_threads = 3, .io_threads = 2};
    struct gar_scan_provider *range = NULL;
    assert_int_equal(gar_runtime_new(&options, &runtime, NULL), GAR_OK);
    assert_int_equal(gar_runtime_start(runtime, GAR_RUNTIME_ALL, NULL), GAR_OK);
    assert_int_equal(gar_range_provider_new("i", 0, ROWS, 1, &range, NULL), GAR_OK);
    assert_int_equal(gar_plan_scan(range, &input, NULL), GAR_OK);
    gar_scan_provider_unref(range);
    return 0;
}

static int tear_down(void **context)
{
    (void)context;
    gar_plan_unref(input);
    gar_runtime_free(runtime);
    return 0;
}

/* Where a query runs: 0 on this thread, 1 in the pools, 2 first here and then there. */
enum { PLACES = 3 };

static void settle(const struct notes *notes)
{
    while (gar_runtime_active(runtime) > 0 ||
           __atomic_load_n(&notes->freed, __ATOMIC_ACQUIRE) < notes->opened) {
        assert_true(gar_cancel_sleep(NULL, 100000, NULL) <= 0);
    }
}

static struct gar_plan *plan_of(struct notes *notes)
{
    static const struct gar_sink_provider_vtable vtable = {
        .open = fake_open, .print = fake_print, .free = fake_provider_free};
    struct gar_plan *plan = NULL;
    notes->base.vtable = &vtable;
    notes->base.refs = 1;
    notes->is_in_order = true;
    assert_int_equal(gar_plan_write(input, &notes->base, &plan, NULL), GAR_OK);
    return plan;
}

static struct gar_exec_options options_of(int32_t place, int64_t morsel_rows,
                                          struct gar_cancel *cancel)
{
    return (struct gar_exec_options){.runtime = runtime,
                                     .memory = gar_memory_system(),
                                     .cancel = cancel,
                                     .morsel_rows = morsel_rows,
                                     .maintain_order = true,
                                     .allow_inline = place != 1,
                                     .hand_over_rows = place == 2 ? 5000 : INT64_MAX};
}

static enum gar_status run(struct notes *notes, int32_t place, int64_t morsel_rows,
                           struct gar_error *err)
{
    struct gar_plan *plan = plan_of(notes);
    struct gar_stream *stream = NULL;
    assert_int_equal(gar_cancel_new(INT64_MAX, &notes->cancel, NULL), GAR_OK);
    const struct gar_exec_options options = options_of(place, morsel_rows, notes->cancel);
    (void)gar_alloc_fail_at(notes->fail_at, false);
    enum gar_status status = gar_exec_start(plan, &options, &stream, err);
    int64_t rows = 0;
    while (status == GAR_OK) {
        struct gar_batch *batch = NULL;
        status = gar_stream_next(stream, NULL, &batch, err);
        rows += status == GAR_OK ? batch->rows : 0;
        gar_batch_unref(batch);
    }
    assert_true(status < 0 || rows == 1);
    gar_stream_free(stream);
    settle(notes);
    notes->allocations = gar_alloc_fail_at(0, false);
    gar_plan_unref(plan);
    gar_cancel_unref(notes->cancel);
    assert_int_equal(notes->freed, notes->opened);
    assert_int_equal(notes->alive, 0);
    return status;
}

static void test_everything_in_order(void **context)
{
    (void)context;
    const int64_t morsels[4] = {70, 1000, PIECE_ROWS, 131072};
    for (int32_t place = 0; place < PLACES; place++) {
        for (int64_t m = 0; m < 4; m++) {
            struct notes notes = {.failing = FAIL_NOTHING};
            assert_int_equal(run(&notes, place, morsels[m], NULL), GAR_EOF);
            assert_true(notes.is_finished && notes.is_in_order);
            assert_int_equal(notes.rows, ROWS);
            assert_int_equal(notes.opened, 1);
            assert_true(notes.appended <= ROWS / PIECE_ROWS + 1);
        }
    }
}

/* An error in the first, a middle or the last piece, or at the end: nothing is published. */
static void test_failures(void **context)
{
    (void)context;
    const int64_t last = (ROWS - 1) / PIECE_ROWS;
    const int64_t pieces[3] = {0, last / 2, last};
    for (int32_t place = 0; place < PLACES; place++) {
        for (enum failing failing = FAIL_OPEN; failing <= FAIL_FINISH; failing++) {
            for (int64_t k = 0; k < 3; k++) {
                struct notes notes = {.failing = failing, .at = pieces[k]};
                struct gar_error err = GAR_ERROR_INIT;
                const enum gar_status want = failing == FAIL_ENCODE ? GAR_ERR_VALUE : GAR_ERR_IO;
                assert_int_equal(run(&notes, place, 100, &err), want);
                assert_int_not_equal(err.message[0], '\0');
                assert_false(notes.is_finished);
            }
        }
    }
}

static void test_cancel_while_writing(void **context)
{
    (void)context;
    for (int32_t place = 0; place < PLACES; place++) {
        for (int64_t piece = 0; piece < 8; piece++) {
            struct notes notes = {.failing = CANCEL_APPEND, .at = piece};
            assert_int_equal(run(&notes, place, 100, NULL), GAR_ERR_CANCELLED);
            assert_false(notes.is_finished);
            assert_true(notes.appended <= piece + 2);
        }
    }
}

/* A caller that goes away without reading. */
static void test_dropped(void **context)
{
    (void)context;
    for (int32_t round = 0; round < 60; round++) {
        struct notes notes = {.failing = FAIL_NOTHING};
        struct gar_plan *plan = plan_of(&notes);
        struct gar_stream *stream = NULL;
        const struct gar_exec_options options = options_of(round % PLACES, 100, NULL);
        assert_int_equal(gar_exec_start(plan, &options, &stream, NULL), GAR_OK);
        if (round % 2 == 0) {
            (void)gar_cancel_sleep(NULL, round * (int64_t)20000, NULL);
        }
        gar_stream_free(stream);
        settle(&notes);
        gar_plan_unref(plan);
        assert_int_equal(notes.freed, 1);
        assert_int_equal(notes.alive, 0);
        assert_true(!notes.is_finished || notes.rows == ROWS);
    }
}

static void test_allocation_failures(void **context)
{
    (void)context;
    for (int32_t place = 0; place < PLACES; place++) {
        bool is_done = false;
        for (int64_t n = 1; !is_done; n += 1 + n / 32) {
            struct notes notes = {.failing = FAIL_NOTHING, .fail_at = n};
            const enum gar_status status = run(&notes, place, 1000, NULL);
            is_done = notes.allocations < n;
            assert_true(status == GAR_ERR_NOMEM || status == GAR_EOF);
            assert_true(notes.is_finished == (status == GAR_EOF) || notes.rows == ROWS);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything_in_order), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_cancel_while_writing), cmocka_unit_test(test_dropped),
        cmocka_unit_test(test_allocation_failures)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
