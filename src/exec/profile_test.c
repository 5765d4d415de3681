/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles, the watchdog, and results without order, over a scan whose units stop where a test wants them to. */
#include "exec/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/log.h"
#include "exec/exec.h"
#include "os/park.h"
#include "runtime/activity.h"

enum { UNITS = 24, UNIT_ROWS = 100, WATCHDOG_MS = 40 };

/* ---- a scan with a gate ---- */

enum gate { GATE_NONE, GATE_LOAD, GATE_DECODE };

struct gated {
    struct gar_scan_provider base;
    enum gate gate;
    int64_t gated_unit; /* stops at the gate */
    int32_t is_open;    /* atomic */
};

struct gar_unit {
    int64_t number;
    bool is_done;
};

struct gated_scan {
    struct gar_scan base;
    struct gated *gated;
    struct gar_memory *memory;
    struct gar_cancel *cancel;
    int64_t next;
};

static void pass(struct gated_scan *scan, const struct gar_unit *unit, enum gate gate)
{
    struct gated *gated = scan->gated;
    struct gar_parker parker = {0};
    while (gated->gate == gate && unit->number == gated->gated_unit &&
           __atomic_load_n(&gated->is_open, __ATOMIC_ACQUIRE) == 0 &&
           !gar_cancel_requested(scan->cancel)) {
        (void)gar_parker_wait(&parker, gar_clock_ns() + GAR_NS_PER_MS);
    }
}

static enum gar_status gated_next(struct gar_scan *base, struct gar_unit **out,
                                  struct gar_error *err)
{
    struct gated_scan *scan = (struct gated_scan *)base;
    if (scan->next == UNITS) {
        return GAR_EOF;
    }
    struct gar_unit *unit = (struct gar_unit *)gar_calloc(1, (int64_t)sizeof *unit);
    if (unit == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *unit);
    }
    unit->number = scan->next++;
    *out = unit;
    return GAR_OK;
}

static enum gar_status gated_load(struct gar_scan *base, struct gar_unit *unit,
                                  struct gar_error *err)
{
    (void)err;
    gar_activity_begin(GAR_ACTIVITY_READ, "gated.bin", unit->number * 1000, 1000);
    pass((struct gated_scan *)base, unit, GATE_LOAD);
    gar_activity_end();
    return GAR_OK;
}

static enum gar_status gated_decode(struct gar_scan *base, struct gar_unit *unit, void *worker,
                                    int64_t max_rows, struct gar_batch **out, struct gar_error *err)
{
    (void)worker;
    (void)max_rows;
    struct gated_scan *scan = (struct gated_scan *)base;
    if (unit->is_done) {
        return GAR_EOF;
    }
    pass(scan, unit, GATE_DECODE);
    struct gar_column *column = NULL;
    GAR_TRY(gar_column_new(scan->memory, gar_type_of(GAR_INT64), UNIT_ROWS, false, &column, err));
    column->null_count = 0;
    for (int64_t i = 0; i < UNIT_ROWS; i++) {
        ((int64_t *)gar_column_values_mut(column))[i] = unit->number * UNIT_ROWS + i;
    }
    const enum gar_status status = gar_batch_new(base->schema, &column, UNIT_ROWS, out, err);
    if (status < 0) {
        gar_column_unref(column);
    }
    unit->is_done = true;
    return status;
}

static void gated_unit_free(struct gar_scan *base, struct gar_unit *unit)
{
    (void)base;
    gar_free(unit);
}

static void gated_scan_free(struct gar_scan *base)
{
    struct gated_scan *scan = (struct gated_scan *)base;
    gar_scan_provider_unref(&scan->gated->base);
    gar_free(scan);
}

static enum gar_status gated_open(struct gar_scan_provider *base,
                                  const struct gar_scan_request *request, struct gar_scan **out,
                                  struct gar_error *err)
{
    static const struct gar_scan_vtable vtable = {.next = gated_next,
                                                  .load = gated_load,
                                                  .decode = gated_decode,
                                                  .unit_free = gated_unit_free,
                                                  .free = gated_scan_free};
    struct gated_scan *scan = (struct gated_scan *)gar_calloc(1, (int64_t)sizeof *scan);
    if (scan == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *scan);
    }
    scan->base.vtable = &vtable;
    scan->base.schema = base->schema;
    scan->base.rows_exact = UNITS * UNIT_ROWS;
    scan->gated = (struct gated *)gar_scan_provider_ref(base);
    scan->memory = request->memory;
    scan->cancel = request->cancel;
    *out = &scan->base;
    return GAR_OK;
}

static int64_t gated_rows(struct gar_scan_provider *base)
{
    (void)base;
    return UNITS * UNIT_ROWS;
}

static void gated_print(const struct gar_scan_provider *base, struct gar_strbuf *out)
{
    (void)base;
    gar_strbuf_append(out, "gated");
}

static void gated_free(struct gar_scan_provider *base)
{
    gar_schema_unref(base->schema);
    gar_free(base);
}

static struct gated *new_gated(enum gate gate, int64_t unit)
{
    static const struct gar_scan_provider_vtable vtable = {
        .open = gated_open, .row_count = gated_rows, .print = gated_print, .free = gated_free};
    struct gated *gated = (struct gated *)gar_calloc(1, (int64_t)sizeof *gated);
    char name[] = "n";
    const struct gar_field field = {.name = name, .type = {.id = GAR_INT64}};
    assert_non_null(gated);
    gated->base.vtable = &vtable;
    gated->base.refs = 1;
    gated->base.size_hint_rows = UNITS * UNIT_ROWS;
    gated->base.size_hint_bytes = -1;
    gated->gate = gate;
    gated->gated_unit = unit;
    assert_int_equal(gar_schema_new(&field, 1, false, &gated->base.schema, NULL), GAR_OK);
    return gated;
}

static void open_gate(struct gated *gated)
{
    __atomic_store_n(&gated->is_open, 1, __ATOMIC_RELEASE);
}

/* ---- runs ---- */

/* n >= limit_below rows are dropped: `n < below`. */
static struct gar_plan *plan_of(struct gated *gated, int64_t below)
{
    const struct gar_value v = {.type = gar_type_of(GAR_INT64), .is_valid = true, .i64 = below};
    struct gar_plan *scan = NULL;
    struct gar_plan *plan = NULL;
    struct gar_expr *args[2] = {NULL, NULL};
    struct gar_expr *less = NULL;
    assert_int_equal(gar_plan_scan(&gated->base, &scan, NULL), GAR_OK);
    assert_int_equal(gar_expr_new_column("n", &args[0], NULL), GAR_OK);
    assert_int_equal(gar_expr_new_literal(&v, &args[1], NULL), GAR_OK);
    assert_int_equal(gar_expr_new_call_by_name("less", args, 2, &less, NULL), GAR_OK);
    assert_int_equal(gar_plan_filter(scan, less, &plan, NULL), GAR_OK);
    gar_expr_unref(less);
    gar_expr_unref(args[0]);
    gar_expr_unref(args[1]);
    gar_plan_unref(scan);
    gar_scan_provider_unref(&gated->base);
    return plan;
}

struct run {
    struct gar_runtime *runtime;
    struct gar_profile *profile;
    struct gar_stream *stream;
};

static struct run start(const struct gar_plan *plan, int32_t threads, bool maintain_order,
                        bool allow_inline)
{
    struct run run = {0};
    const struct gar_runtime_options sizes = {.compute_threads = threads, .io_threads = 2};
    assert_int_equal(gar_runtime_new(&sizes, &run.runtime, NULL), GAR_OK);
    assert_int_equal(gar_profile_new(NULL, &run.profile, NULL), GAR_OK);
    const struct gar_exec_options options = {.runtime = run.runtime,
                                             .memory = gar_memory_system(),
                                             .morsel_rows = 1 << 17,
                                             .maintain_order = maintain_order,
                                             .allow_inline = allow_inline,
                                             .watchdog_ns = WATCHDOG_MS * GAR_NS_PER_MS,
                                             .profile = run.profile};
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(gar_exec_start(plan, &options, &run.stream, &err), GAR_OK);
    return run;
}

static void finish(struct run *run)
{
    gar_stream_free(run->stream);
    gar_runtime_free(run->runtime);
    gar_profile_unref(run->profile);
}

/* Rows to the end. */
static int64_t read_rest(struct gar_stream *stream)
{
    int64_t rows = 0;
    for (;;) {
        struct gar_batch *batch = NULL;
        struct gar_error err = GAR_ERROR_INIT;
        const enum gar_status status = gar_stream_next(stream, NULL, &batch, &err);
        if (status != GAR_OK) {
            assert_int_equal(status, GAR_EOF);
            return rows;
        }
        rows += batch->rows;
        gar_batch_unref(batch);
    }
}

static struct gar_operator_profile operator_of(const struct gar_profile *profile, int64_t i)
{
    struct gar_operator_profile op;
    assert_true(gar_profile_read_operator(profile, i, &op));
    return op;
}

/* ---- tests ---- */

static void check_counts(bool allow_inline)
{
    struct gar_plan *plan = plan_of(new_gated(GATE_NONE, 0), 1050);
    struct run run = start(plan, 2, true, allow_inline);
    assert_int_equal(read_rest(run.stream), 1050);
    struct gar_query_profile query;
    gar_profile_read_query(run.profile, &query);
    assert_true(query.is_finished);
    assert_int_equal(query.is_inline, allow_inline);
    assert_int_equal(query.status, GAR_OK);
    assert_int_equal(query.operator_count, 3);
    assert_int_equal(query.rows, 1050);
    assert_int_equal(query.bytes, 1050 * 8);
    assert_int_equal(query.rows_read, UNITS * UNIT_ROWS);
    const struct gar_operator_profile scan = operator_of(run.profile, 0);
    assert_string_equal(scan.name, "scan");
    assert_string_equal(scan.detail, "scan gated");
    assert_int_equal(scan.role, GAR_OPERATOR_SOURCE);
    assert_int_equal(scan.rows_out, UNITS * UNIT_ROWS);
    assert_int_equal(scan.rows_total, UNITS * UNIT_ROWS);
    assert_int_equal(scan.batches, UNITS);
    assert_int_equal(scan.bytes, UNITS * UNIT_ROWS * 8);
    assert_true(scan.memory_peak_bytes >= UNIT_ROWS * 8);
    const struct gar_operator_profile filter = operator_of(run.profile, 1);
    assert_string_equal(filter.name, "filter");
    assert_int_equal(filter.rows_in, UNITS * UNIT_ROWS);
    assert_int_equal(filter.rows_out, 1050);
    assert_int_equal(filter.batches, 11);
    const struct gar_operator_profile result = operator_of(run.profile, 2);
    assert_int_equal(result.rows_in, 1050);
    assert_int_equal(result.rows_out, 1050);
    struct gar_operator_profile none;
    assert_false(gar_profile_read_operator(run.profile, 3, &none));
    struct gar_strbuf text = {0};
    gar_profile_print(run.profile, true, &text);
    assert_non_null(strstr(gar_strbuf_text(&text), "1,050 of 2,400"));
    gar_strbuf_destroy(&text);
    finish(&run);
    gar_plan_unref(plan);
}

static void test_counts(void **context)
{
    (void)context;
    check_counts(false);
    check_counts(true);
}

static char last_said[1024];
static int32_t said; /* atomic */

static void note_log(void *context, enum gar_log_level level, const char *message)
{
    (void)context;
    (void)level;
    (void)snprintf(last_said, sizeof last_said, "%s", message);
    __atomic_store_n(&said, 1, __ATOMIC_RELEASE);
}

/* Until the watchdog has spoken; what the profile says then. */
static const char *wait_for_words(const struct gar_profile *profile)
{
    struct gar_parker parker = {0};
    while (__atomic_load_n(&said, __ATOMIC_ACQUIRE) == 0) {
        (void)gar_parker_wait(&parker, gar_clock_ns() + GAR_NS_PER_MS);
    }
    struct gar_query_profile query;
    do {
        gar_profile_read_query(profile, &query);
    } while (query.waiting == NULL);
    return query.waiting;
}

static void check_watchdog(enum gate gate, const char *words, const char *more)
{
    struct gated *gated = new_gated(gate, 3);
    struct gar_plan *plan = plan_of(gated, UNITS * UNIT_ROWS);
    said = 0;
    gar_log_set(GAR_LOG_INFO, note_log, NULL);
    struct run run = start(plan, 2, true, false);
    struct gar_batch *batch = NULL;
    assert_int_equal(gar_stream_next(run.stream, NULL, &batch, NULL), GAR_OK);
    int64_t rows = batch->rows;
    gar_batch_unref(batch);
    const char *waiting = wait_for_words(run.profile);
    if (strstr(waiting, words) == NULL || strstr(waiting, more) == NULL) {
        fail_msg("the watchdog said: %s", waiting);
    }
    assert_string_equal(last_said, waiting);
    open_gate(gated);
    rows += read_rest(run.stream);
    assert_int_equal(rows, UNITS * UNIT_ROWS);
    struct gar_query_profile query;
    gar_profile_read_query(run.profile, &query);
    assert_null(query.waiting);
    finish(&run);
    gar_log_set(GAR_LOG_WARNING, NULL, NULL);
    gar_plan_unref(plan);
}

static void test_watchdog(void **context)
{
    (void)context;
    check_watchdog(GATE_LOAD, "reading 'gated.bin' at byte 3000 (1000 bytes)", "has not moved for");
    check_watchdog(GATE_DECODE, "operator 'scan gated' of pipeline 1", "one batch for");
}

/* A consumer that does not take: said once, and the query is not at fault. */
static void test_slow_consumer(void **context)
{
    (void)context;
    struct gar_plan *plan = plan_of(new_gated(GATE_NONE, 0), UNITS * UNIT_ROWS);
    said = 0;
    gar_log_set(GAR_LOG_INFO, note_log, NULL);
    struct gar_runtime *runtime = NULL;
    const struct gar_runtime_options sizes = {.compute_threads = 2, .io_threads = 2};
    assert_int_equal(gar_runtime_new(&sizes, &runtime, NULL), GAR_OK);
    struct gar_profile *profile = NULL;
    assert_int_equal(gar_profile_new(NULL, &profile, NULL), GAR_OK);
    const struct gar_exec_options options = {.runtime = runtime,
                                             .memory = gar_memory_system(),
                                             .morsel_rows = 10,
                                             .maintain_order = true,
                                             .stream_batches = 1,
                                             .watchdog_ns = WATCHDOG_MS * GAR_NS_PER_MS,
                                             .profile = profile};
    struct run run = {.runtime = runtime, .profile = profile};
    assert_int_equal(gar_exec_start(plan, &options, &run.stream, NULL), GAR_OK);
    assert_non_null(strstr(wait_for_words(profile), "its rows wait for who reads them"));
    assert_int_equal(read_rest(run.stream), UNITS * UNIT_ROWS);
    finish(&run);
    gar_log_set(GAR_LOG_WARNING, NULL, NULL);
    gar_plan_unref(plan);
}

/* Without order one unit that hangs holds no other up: all their rows come first. */
static void test_any_order(void **context)
{
    (void)context;
    const enum gate gates[2] = {GATE_DECODE, GATE_NONE};
    for (int64_t g = 0; g < 2; g++) {
        struct gated *gated = new_gated(gates[g], 0);
        struct gar_plan *plan = plan_of(gated, UNITS * UNIT_ROWS);
        struct run run = start(plan, 4, false, false);
        bool seen[UNITS * UNIT_ROWS] = {false};
        for (int64_t rows = 0; rows < UNITS * UNIT_ROWS;) {
            struct gar_batch *batch = NULL;
            if (rows == (UNITS - 1) * UNIT_ROWS) {
                open_gate(gated);
            }
            assert_int_equal(gar_stream_next(run.stream, NULL, &batch, NULL), GAR_OK);
            const int64_t *n = (const int64_t *)batch->columns[0]->values;
            for (int64_t i = 0; i < batch->rows; i++) {
                assert_false(seen[n[i]]);
                assert_true(g == 1 || n[i] >= UNIT_ROWS || rows >= (UNITS - 1) * UNIT_ROWS);
                seen[n[i]] = true;
            }
            rows += batch->rows;
            gar_batch_unref(batch);
        }
        assert_int_equal(read_rest(run.stream), 0);
        finish(&run);
        gar_plan_unref(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_watchdog),
        cmocka_unit_test(test_slow_consumer),
        cmocka_unit_test(test_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
