/* SPDX-License-Identifier: Apache-2.0 */
/* What runs when: inline work that moves to the pools, results that nobody takes for a while, limits that leave the
 * rest unread. The scan of these tests counts what is asked of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "arrow/column.h"
#include "base/alloc.h"
#include "exec/exec.h"
#include "os/clock.h"

enum { COLUMNS_MAX = 20, WAIT_NS = 1000000 };

/* ---- a scan that counts ---- */

struct fake {
    struct gar_scan_provider base;
    int64_t units;
    int64_t unit_rows; /* row r of unit u has u * unit_rows + r in every column */
    int64_t fail_unit; /* loading it fails; -1: none */
    /* atomic */
    int64_t opened; /* scans */
    int64_t loads;  /* of units, parked ones again */
    int64_t loaded; /* units now */
};

struct gar_unit {
    int64_t number;
    int64_t done;
    bool is_loaded;
};

struct fake_scan {
    struct gar_scan base;
    struct fake *fake;
    struct gar_memory *memory;
    int64_t next;
};

static enum gar_status fake_next(struct gar_scan *base, struct gar_unit **out,
                                 struct gar_error *err)
{
    struct fake_scan *scan = (struct fake_scan *)base;
    if (scan->next == scan->fake->units) {
        return GAR_EOF;
    }
    struct gar_unit *unit = gar_calloc(1, (int64_t)sizeof *unit);
    if (unit == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *unit);
    }
    unit->number = scan->next++;
    *out = unit;
    return GAR_OK;
}

static enum gar_status fake_load(struct gar_scan *base, struct gar_unit *unit,
                                 struct gar_error *err)
{
    struct fake *fake = ((struct fake_scan *)base)->fake;
    if (unit->number == fake->fail_unit) {
        return gar_error_set(err, GAR_ERR_IO, "unit %d cannot be read", (int)unit->number);
    }
    assert_false(unit->is_loaded);
    unit->is_loaded = true;
    __atomic_fetch_add(&fake->loads, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&fake->loaded, 1, __ATOMIC_RELAXED);
    return GAR_OK;
}

static void drop(struct fake *fake, struct gar_unit *unit)
{
    if (unit->is_loaded) {
        unit->is_loaded = false;
        __atomic_fetch_sub(&fake->loaded, 1, __ATOMIC_RELAXED);
    }
}

static void fake_park(struct gar_scan *base, struct gar_unit *unit)
{
    if (unit != NULL) {
        drop(((struct fake_scan *)base)->fake, unit);
    }
}

static void fake_unit_free(struct gar_scan *base, struct gar_unit *unit)
{
    drop(((struct fake_scan *)base)->fake, unit);
    gar_free(unit);
}

static enum gar_status make_columns(const struct fake_scan *scan, int64_t first, int64_t rows,
                                    struct gar_column **columns, struct gar_error *err)
{
    for (int64_t c = 0; c < scan->base.schema->count; c++) {
        GAR_TRY(
            gar_column_new(scan->memory, gar_type_of(GAR_INT64), rows, false, &columns[c], err));
        int64_t *values = (int64_t *)gar_column_values_mut(columns[c]);
        for (int64_t i = 0; i < rows; i++) {
            values[i] = first + i;
        }
        columns[c]->null_count = 0;
    }
    return GAR_OK;
}

static enum gar_status fake_decode(struct gar_scan *base, struct gar_unit *unit, void *worker,
                                   int64_t max_rows, struct gar_batch **out, struct gar_error *err)
{
    (void)worker;
    const struct fake_scan *scan = (const struct fake_scan *)base;
    const int64_t rows = gar_min_i64(max_rows, scan->fake->unit_rows - unit->done);
    assert_true(unit->is_loaded);
    if (rows == 0) {
        return GAR_EOF;
    }
    struct gar_column *columns[COLUMNS_MAX] = {NULL};
    const int64_t first = unit->number * scan->fake->unit_rows + unit->done;
    enum gar_status status = make_columns(scan, first, rows, columns, err);
    if (status == GAR_OK) {
        status = gar_batch_new(scan->base.schema, columns, rows, out, err);
    }
    for (int64_t c = 0; c < COLUMNS_MAX && status < 0; c++) {
        gar_column_unref(columns[c]);
    }
    unit->done += rows;
    return status;
}

static void fake_scan_free(struct gar_scan *base)
{
    gar_schema_unref(base->schema);
    gar_free(base);
}

static enum gar_status fake_open(struct gar_scan_provider *provider,
                                 const struct gar_scan_request *request, struct gar_scan **out,
                                 struct gar_error *err)
{
    static const struct gar_scan_vtable vtable = {.next = fake_next,
                                                  .load = fake_load,
                                                  .decode = fake_decode,
                                                  .park = fake_park,
                                                  .unit_free = fake_unit_free,
                                                  .free = fake_scan_free};
    struct fake_scan *scan = gar_calloc(1, (int64_t)sizeof *scan);
    if (scan == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *scan);
    }
    struct fake *fake = (struct fake *)provider;
    scan->base.vtable = &vtable;
    scan->base.schema = gar_schema_ref(provider->schema); /* the tests ask for all columns */
    scan->base.rows_exact = fake->units * fake->unit_rows;
    scan->fake = fake;
    scan->memory = request->memory;
    __atomic_fetch_add(&fake->opened, 1, __ATOMIC_RELAXED);
    *out = &scan->base;
    return GAR_OK;
}

static void fake_print(const struct gar_scan_provider *provider, struct gar_strbuf *out)
{
    (void)provider;
    gar_strbuf_append(out, "fake");
}

static void fake_free(struct gar_scan_provider *provider)
{
    (void)provider; /* in the test's frame; gar_scan_provider_unref frees the schema */
}

/* hint: what it says its rows were. */
static void make_fake(struct fake *fake, int64_t units, int64_t unit_rows, int64_t columns,
                      int64_t hint)
{
    static const struct gar_scan_provider_vtable vtable = {
        .open = fake_open, .print = fake_print, .free = fake_free};
    struct gar_field fields[COLUMNS_MAX];
    char names[COLUMNS_MAX][8];
    for (int64_t c = 0; c < columns; c++) {
        snprintf(names[c], sizeof names[c], c == 0 ? "i" : "c%d", (int)c);
        fields[c] = (struct gar_field){.name = names[c], .type = gar_type_of(GAR_INT64)};
    }
    *fake = (struct fake){.units = units, .unit_rows = unit_rows, .fail_unit = -1};
    fake->base.vtable = &vtable;
    fake->base.refs = 1;
    fake->base.size_hint_rows = hint;
    fake->base.size_hint_bytes = hint * 8 * columns;
    assert_int_equal(gar_schema_new(fields, columns, false, &fake->base.schema, NULL), GAR_OK);
}

/* ---- plans ---- */

static struct gar_expr *col(const char *name)
{
    struct gar_expr *e = NULL;
    assert_int_equal(gar_expr_new_column(name, &e, NULL), GAR_OK);
    return e;
}

static struct gar_plan *scan(struct fake *fake)
{
    struct gar_plan *plan = NULL;
    assert_int_equal(gar_plan_scan(&fake->base, &plan, NULL), GAR_OK);
    return plan;
}

/* Builders take over their inputs. */
static struct gar_plan *keep_multiples(struct gar_plan *input, int64_t divisor)
{
    const struct gar_value number = {
        .type = gar_type_of(GAR_INT64), .is_valid = true, .i64 = divisor};
    const struct gar_value zero = {.type = gar_type_of(GAR_INT64), .is_valid = true};
    struct gar_expr *parts[4] = {col("i")};
    struct gar_plan *plan = NULL;
    assert_int_equal(gar_expr_new_literal(&number, &parts[1], NULL), GAR_OK);
    assert_int_equal(gar_expr_new_call_by_name("modulo", parts, 2, &parts[2], NULL), GAR_OK);
    assert_int_equal(gar_expr_new_literal(&zero, &parts[3], NULL), GAR_OK);
    struct gar_expr *equal = NULL;
    assert_int_equal(gar_expr_new_call_by_name("equal", parts + 2, 2, &equal, NULL), GAR_OK);
    assert_int_equal(gar_plan_filter(input, equal, &plan, NULL), GAR_OK);
    for (int64_t i = 0; i < 4; i++) {
        gar_expr_unref(parts[i]);
    }
    gar_expr_unref(equal);
    gar_plan_unref(input);
    return plan;
}

static struct gar_plan *limit(struct gar_plan *input, int64_t count)
{
    struct gar_plan *plan = NULL;
    assert_int_equal(gar_plan_limit(input, 0, count, &plan, NULL), GAR_OK);
    gar_plan_unref(input);
    return plan;
}

static struct gar_plan *sort_down(struct gar_plan *input)
{
    struct gar_expr *key = col("i");
    const bool yes = true;
    struct gar_plan *plan = NULL;
    assert_int_equal(gar_plan_sort(input, &key, &yes, &yes, 1, -1, &plan, NULL), GAR_OK);
    gar_expr_unref(key);
    gar_plan_unref(input);
    return plan;
}

static struct gar_plan *count_groups(struct gar_plan *input)
{
    struct gar_expr *key = col("i");
    struct gar_expr *count = NULL;
    struct gar_expr *named = NULL;
    struct gar_plan *plan = NULL;
    assert_int_equal(gar_expr_new_call_by_name("count", NULL, 0, &count, NULL), GAR_OK);
    assert_int_equal(gar_expr_new_alias(count, "n", &named, NULL), GAR_OK);
    assert_int_equal(gar_plan_aggregate(input, &key, 1, &named, 1, &plan, NULL), GAR_OK);
    gar_expr_unref(key);
    gar_expr_unref(count);
    gar_expr_unref(named);
    gar_plan_unref(input);
    return plan;
}

static struct gar_plan *distinct(struct gar_plan *input)
{
    struct gar_plan *plan = NULL;
    assert_int_equal(gar_plan_distinct(input, NULL, 0, &plan, NULL), GAR_OK);
    gar_plan_unref(input);
    return plan;
}

static struct gar_plan *concat(struct gar_plan *a, struct gar_plan *b)
{
    struct gar_plan *inputs[2] = {a, b};
    struct gar_plan *plan = NULL;
    assert_int_equal(gar_plan_concat(inputs, 2, &plan, NULL), GAR_OK);
    gar_plan_unref(a);
    gar_plan_unref(b);
    return plan;
}

/* ---- running ---- */

static struct gar_runtime *runtime;

static void new_runtime(int32_t threads)
{
    const struct gar_runtime_options options = {.compute_threads = threads, .io_threads = 2};
    assert_int_equal(gar_runtime_new(&options, &runtime, NULL), GAR_OK);
}

static struct gar_exec_options options_of(bool allow_inline, int64_t hand_over_rows)
{
    return (struct gar_exec_options){.runtime = runtime,
                                     .memory = gar_memory_system(),
                                     .morsel_rows = 700,
                                     .maintain_order = true,
                                     .allow_inline = allow_inline,
                                     .hand_over_rows = hand_over_rows};
}

/* Rows and a sum of the first column that knows the order. */
struct digest {
    int64_t rows;
    uint64_t ordered;
    uint64_t sum;
};

static enum gar_status take(struct gar_stream *stream, int64_t batches, struct digest *digest,
                            struct gar_error *err)
{
    for (int64_t b = 0; b < batches; b++) {
        struct gar_batch *batch = NULL;
        const enum gar_status status = gar_stream_next(stream, NULL, &batch, err);
        if (status != GAR_OK) {
            return status;
        }
        const int64_t *values = (const int64_t *)batch->columns[0]->values;
        for (int64_t i = 0; i < batch->rows; i++) {
            digest->ordered = digest->ordered * 31 + (uint64_t)values[i];
            digest->sum += (uint64_t)values[i] * (uint64_t)values[i];
        }
        digest->rows += batch->rows;
        gar_batch_unref(batch);
    }
    return GAR_OK;
}

static enum gar_status run(const struct gar_plan *plan, const struct gar_exec_options *options,
                           struct digest *digest, struct gar_error *err)
{
    struct gar_stream *stream = NULL;
    *digest = (struct digest){0};
    enum gar_status status = gar_exec_start(plan, options, &stream, err);
    if (status >= 0) {
        status = take(stream, INT64_MAX, digest, err);
    }
    if (status < 0 && stream != NULL) { /* it stays */
        struct gar_batch *none = NULL;
        assert_int_equal(gar_stream_next(stream, NULL, &none, NULL), status);
    }
    gar_stream_free(stream);
    return status;
}

/* Until no query is left; the last of one goes after it has left. */
static void settle(void)
{
    while (gar_runtime_active(runtime) > 0) {
        assert_true(gar_cancel_sleep(NULL, WAIT_NS / 10, NULL) <= 0);
    }
}

static void wait_for_memory(int64_t bytes, int64_t blocks)
{
    const int64_t until = gar_clock_ns() + 30 * (int64_t)1000 * WAIT_NS;
    settle();
    while (gar_memory_system_live_bytes() > bytes || gar_alloc_live_blocks() > blocks) {
        assert_true(gar_clock_ns() < until);
        assert_true(gar_cancel_sleep(NULL, WAIT_NS / 10, NULL) <= 0);
    }
}

/* ---- handing over ---- */

enum { PLANS = 6, UNITS = 6, UNIT_ROWS = 1500 };

static void make_plans(struct fake fakes[2], struct gar_plan *plans[PLANS])
{
    make_fake(&fakes[0], UNITS, UNIT_ROWS, 2, 10);
    make_fake(&fakes[1], UNITS, UNIT_ROWS, 2, 10);
    plans[0] = scan(&fakes[0]);
    plans[1] = keep_multiples(scan(&fakes[0]), 7);
    plans[2] = sort_down(scan(&fakes[0]));
    plans[3] = distinct(concat(scan(&fakes[0]), scan(&fakes[1])));
    plans[4] = count_groups(concat(scan(&fakes[0]), keep_multiples(scan(&fakes[1]), 3)));
    plans[5] = limit(concat(sort_down(scan(&fakes[0])), sort_down(scan(&fakes[1]))), 13000);
}

static void free_plans(struct fake fakes[2], struct gar_plan *plans[PLANS])
{
    for (int64_t p = 0; p < PLANS; p++) {
        gar_plan_unref(plans[p]);
    }
    for (int64_t f = 0; f < 2; f++) {
        assert_int_equal(fakes[f].loaded, 0);
        gar_schema_unref(fakes[f].base.schema);
    }
}

static bool has_order(int64_t plan)
{
    return plan != 4;
}

/* The same rows wherever the work moves; threads start only when it does. */
static void test_hand_over_anywhere(void **context)
{
    (void)context;
    struct fake fakes[2];
    struct gar_plan *plans[PLANS];
    make_plans(fakes, plans);
    for (int64_t p = 0; p < PLANS; p++) {
        struct digest whole;
        new_runtime(3);
        struct gar_exec_options options = options_of(true, INT64_MAX);
        assert_int_equal(run(plans[p], &options, &whole, NULL), GAR_EOF);
        assert_int_equal(gar_runtime_threads(runtime), 0);
        for (int64_t rows = 1; rows < 40000; rows += 1 + rows / 3) {
            struct digest got;
            options.hand_over_rows = rows;
            assert_int_equal(run(plans[p], &options, &got, NULL), GAR_EOF);
            assert_int_equal(got.rows, whole.rows);
            assert_true(got.sum == whole.sum);
            assert_true(!has_order(p) || got.ordered == whole.ordered);
            if (rows == 1) {
                assert_int_not_equal(gar_runtime_threads(runtime), 0);
            }
        }
        gar_runtime_free(runtime);
    }
    free_plans(fakes, plans);
}

/* By the usual bounds: sizes that were said wrongly do not keep much work on the caller's thread. */
static void test_hand_over_by_work(void **context)
{
    (void)context;
    struct fake small;
    struct fake large;
    make_fake(&small, 10, 4000, 2, 40000);
    make_fake(&large, 100, 10000, 2, 100);
    new_runtime(2);
    struct digest got;
    const struct gar_exec_options options = options_of(true, 0);
    struct gar_plan *plan = scan(&small);
    assert_int_equal(run(plan, &options, &got, NULL), GAR_EOF);
    assert_int_equal(got.rows, 40000);
    assert_int_equal(gar_runtime_threads(runtime), 0);
    gar_plan_unref(plan);
    plan = count_groups(scan(&large));
    assert_int_equal(run(plan, &options, &got, NULL), GAR_EOF);
    assert_int_equal(got.rows, 1000000);
    assert_int_not_equal(gar_runtime_threads(runtime), 0);
    gar_plan_unref(plan);
    gar_runtime_free(runtime);
    gar_schema_unref(small.base.schema);
    gar_schema_unref(large.base.schema);
}

/* Dropped or cancelled before, while and after the work moves. */
static void test_hand_over_and_stop(void **context)
{
    (void)context;
    struct fake fakes[2];
    struct gar_plan *plans[PLANS];
    make_plans(fakes, plans);
    new_runtime(2);
    for (int64_t p = 0; p < PLANS; p++) {
        for (int64_t taken = 0; taken < 12; taken++) {
            for (int32_t how = 0; how < 2; how++) {
                const struct gar_exec_options options = options_of(true, 3000);
                struct gar_stream *stream = NULL;
                struct digest got = {0};
                assert_int_equal(gar_exec_start(plans[p], &options, &stream, NULL), GAR_OK);
                enum gar_status status = take(stream, taken, &got, NULL);
                if (how == 1 && status == GAR_OK) {
                    gar_stream_cancel(stream, GAR_CANCEL_USER);
                    status = take(stream, INT64_MAX, &got, NULL);
                    assert_true(status == GAR_ERR_CANCELLED || status == GAR_EOF);
                }
                gar_stream_free(stream);
            }
        }
    }
    settle();
    gar_runtime_free(runtime);
    free_plans(fakes, plans);
}

/* A unit that cannot be read: the error, whether it comes before, at or after the move. */
static void test_hand_over_and_failure(void **context)
{
    (void)context;
    struct fake fakes[2];
    struct gar_plan *plans[PLANS];
    make_plans(fakes, plans);
    new_runtime(2);
    for (int64_t p = 0; p < PLANS; p++) {
        for (int64_t unit = 0; unit < UNITS; unit++) {
            fakes[0].fail_unit = unit;
            const struct gar_exec_options options = options_of(true, 3 * UNIT_ROWS);
            struct gar_error err = GAR_ERROR_INIT;
            struct digest got;
            assert_int_equal(run(plans[p], &options, &got, &err), GAR_ERR_IO);
            assert_non_null(strstr(err.message, "cannot be read"));
        }
    }
    settle();
    gar_runtime_free(runtime);
    free_plans(fakes, plans);
}

/* The n-th allocation fails, in the pools and on the way there: an error or the right answer, and nothing is left. */
static void test_allocation_failures(void **context)
{
    (void)context;
    struct fake fakes[2];
    struct gar_plan *plans[PLANS];
    make_plans(fakes, plans);
    new_runtime(2);
    assert_int_equal(gar_runtime_start(runtime, GAR_RUNTIME_ALL, NULL), GAR_OK);
    const int64_t bytes = gar_memory_system_live_bytes();
    const int64_t blocks = gar_alloc_live_blocks();
    for (int64_t p = 0; p < PLANS; p++) {
        struct digest whole;
        struct gar_exec_options options = options_of(false, 0);
        assert_int_equal(run(plans[p], &options, &whole, NULL), GAR_EOF);
        for (int32_t how = 0; how < 3; how++) {
            options = options_of(how > 0, how == 0 ? 0 : how == 1 ? 1 : 4000);
            bool is_done = false;
            for (int64_t n = 1; !is_done; n += 1 + n / 64) {
                struct digest got;
                (void)gar_alloc_fail_at(n, false);
                const enum gar_status status = run(plans[p], &options, &got, NULL);
                is_done = gar_alloc_fail_at(0, false) < n;
                assert_true(status == GAR_ERR_NOMEM || status == GAR_EOF);
                if (status == GAR_EOF) {
                    assert_int_equal(got.rows, whole.rows);
                    assert_true(got.sum == whole.sum);
                }
                wait_for_memory(bytes, blocks + 8); /* queues of the pools may grow */
            }
        }
    }
    gar_runtime_free(runtime);
    free_plans(fakes, plans);
}

/* ---- stopping early ---- */

static void test_limit_leaves_the_rest(void **context)
{
    (void)context;
    new_runtime(4);
    for (int32_t is_inline = 0; is_inline < 2; is_inline++) {
        struct fake many;
        struct fake other;
        struct digest got;
        make_fake(&many, 1000, 1000, 2, is_inline ? 10 : 1000000);
        make_fake(&other, 1000, 1000, 2, is_inline ? 10 : 1000000);
        const struct gar_exec_options options = options_of(is_inline != 0, 0);
        struct gar_plan *plan = limit(scan(&many), 8);
        assert_int_equal(run(plan, &options, &got, NULL), GAR_EOF);
        assert_int_equal(got.rows, 8);
        assert_int_equal(many.loads, 1);
        gar_plan_unref(plan);
        /* 8 of 1 in 500 rows: 4 units, read by ones, twos and fours */
        many.loads = 0;
        plan = limit(keep_multiples(scan(&many), 500), 8);
        assert_int_equal(run(plan, &options, &got, NULL), GAR_EOF);
        assert_int_equal(got.rows, 8);
        assert_true(many.loads <= 12);
        gar_plan_unref(plan);
        /* The second input is never begun, nor what has to come before it. */
        many.loads = 0;
        plan = limit(concat(scan(&many), sort_down(scan(&other))), 900);
        assert_int_equal(run(plan, &options, &got, NULL), GAR_EOF);
        assert_int_equal(got.rows, 900);
        assert_int_equal(many.loads, 1);
        assert_int_equal(other.loads, 0);
        gar_plan_unref(plan);
        plan = limit(concat(limit(scan(&many), 100), limit(sort_down(scan(&other)), 5)), 50);
        assert_int_equal(run(plan, &options, &got, NULL), GAR_EOF);
        assert_int_equal(got.rows, 50);
        assert_int_equal(other.loads, 0);
        gar_plan_unref(plan);
        settle();
        gar_schema_unref(many.base.schema);
        gar_schema_unref(other.base.schema);
    }
    gar_runtime_free(runtime);
}

/* ---- idle results ---- */

/* A wide result of which one batch was taken makes little, lets go of its units after a while, and goes on where it was. */
static void test_idle_result(void **context)
{
    (void)context;
    struct fake wide;
    make_fake(&wide, 40, 50000, COLUMNS_MAX, 2000000);
    new_runtime(4);
    const int64_t bytes = gar_memory_system_live_bytes();
    struct gar_plan *plan = scan(&wide);
    for (int32_t in_order = 0; in_order < 2; in_order++) {
        struct gar_exec_options options = options_of(false, 0);
        struct gar_stream *stream = NULL;
        struct digest got = {0};
        options.morsel_rows = 131072;
        options.maintain_order = in_order != 0;
        wide.loads = 0;
        assert_int_equal(gar_exec_start(plan, &options, &stream, NULL), GAR_OK);
        assert_int_equal(take(stream, 1, &got, NULL), GAR_OK);
        do {
            assert_true(gar_cancel_sleep(NULL, WAIT_NS, NULL) <= 0);
        } while (__atomic_load_n(&wide.loaded, __ATOMIC_RELAXED) > 0);
        assert_true(gar_memory_system_live_bytes() - bytes < 3 << 20);
        assert_true(__atomic_load_n(&wide.loads, __ATOMIC_RELAXED) <= 2);
        assert_int_equal(take(stream, INT64_MAX, &got, NULL), GAR_EOF);
        assert_int_equal(got.rows, 2000000);
        struct digest again;
        assert_int_equal(run(plan, &options, &again, NULL), GAR_EOF);
        assert_true(again.sum == got.sum && (in_order == 0 || again.ordered == got.ordered));
        gar_stream_free(stream);
    }
    gar_plan_unref(plan);
    wait_for_memory(bytes, INT64_MAX);
    gar_runtime_free(runtime);
    gar_schema_unref(wide.base.schema);
}

/* Many at once: no thread more, and each holds its little. */
static void test_many_open_results(void **context)
{
    (void)context;
    enum { OPEN = 1000 };
    static struct gar_stream *streams[OPEN];
    struct fake wide;
    make_fake(&wide, 40, 50000, COLUMNS_MAX, 2000000);
    new_runtime(2);
    const int64_t bytes = gar_memory_system_live_bytes();
    struct gar_plan *plan = keep_multiples(scan(&wide), 2);
    struct gar_exec_options options = options_of(false, 0);
    int32_t threads = 0;
    options.morsel_rows = 131072;
    for (int64_t i = 0; i < OPEN; i++) {
        struct digest got = {0};
        assert_int_equal(gar_exec_start(plan, &options, &streams[i], NULL), GAR_OK);
        assert_int_equal(take(streams[i], 1, &got, NULL), GAR_OK);
        threads = i == 0 ? gar_runtime_threads(runtime) : threads;
    }
    assert_int_equal(gar_runtime_threads(runtime), threads);
    while (__atomic_load_n(&wide.loaded, __ATOMIC_RELAXED) > 0) {
        assert_true(gar_cancel_sleep(NULL, WAIT_NS, NULL) <= 0);
    }
    assert_true(gar_memory_system_live_bytes() - bytes < (int64_t)OPEN * (3 << 20));
    for (int64_t i = 0; i < OPEN; i++) {
        gar_stream_free(streams[i]);
    }
    gar_plan_unref(plan);
    wait_for_memory(bytes, INT64_MAX);
    gar_runtime_free(runtime);
    gar_schema_unref(wide.base.schema);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hand_over_anywhere),  cmocka_unit_test(test_hand_over_by_work),
        cmocka_unit_test(test_hand_over_and_stop),  cmocka_unit_test(test_hand_over_and_failure),
        cmocka_unit_test(test_allocation_failures), cmocka_unit_test(test_limit_leaves_the_rest),
        cmocka_unit_test(test_idle_result),         cmocka_unit_test(test_many_open_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
