/* SPDX-License-Identifier: Apache-2.0 */
/* Windows, aggregates that keep rows, and as-of joins of numbered rows, over ranges: with all morsel
 * sizes, failing allocations, and stops at any batch. */
#include "expr/window.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "exec/exec.h"
#include "os/fault.h"

static struct gar_runtime *runtime;
static struct gar_spill_space *space;
static bool is_spilling; /* operators put all rows on disk */

#define BUILD(expr)                            \
    do {                                       \
        struct gar_error err = GAR_ERROR_INIT; \
        if ((expr) < 0) {                      \
            fail_msg("%s", err.message);       \
        }                                      \
    } while (0)

static struct gar_expr *col(const char *name)
{
    struct gar_expr *e = NULL;
    BUILD(gar_expr_new_column(name, &e, &err));
    return e;
}

static struct gar_expr *number(int64_t value)
{
    const struct gar_value v = {.type = gar_type_of(GAR_INT64), .is_valid = true, .i64 = value};
    struct gar_expr *e = NULL;
    BUILD(gar_expr_new_literal(&v, &e, &err));
    return e;
}

/* Takes over its arguments; a, b may be NULL. */
static struct gar_expr *call(const char *name, struct gar_expr *a, struct gar_expr *b)
{
    struct gar_expr *args[2] = {a, b};
    struct gar_expr *e = NULL;
    BUILD(gar_expr_new_call_by_name(name, args, a == NULL ? 0 : b == NULL ? 1 : 2, &e, &err));
    gar_expr_unref(a);
    gar_expr_unref(b);
    return e;
}

static int64_t group_of(int64_t i)
{
    return i % 7;
}

static int64_t order_of(int64_t i)
{
    return i * 37 % 101;
}

/* The call over rows of one group in order, named. Takes over the call. */
static struct gar_expr *over(struct gar_expr *of, enum gar_window_frame frame, const char *name)
{
    const struct gar_window window = {
        .partition_count = 1,
        .order_count = 1,
        .frame = frame,
        .start = frame == GAR_FRAME_ROWS ? GAR_BOUND_OFFSET : GAR_BOUND_UNBOUNDED_PRECEDING,
        .start_rows = -2,
        .end = GAR_BOUND_CURRENT};
    struct gar_expr *partition = call("modulo", col("i"), number(7));
    struct gar_expr *order = call("modulo", call("multiply", col("i"), number(37)), number(101));
    struct gar_expr *windowed = NULL;
    struct gar_expr *made = NULL;
    BUILD(gar_expr_over(of, &window, &partition, &order, NULL, NULL, &windowed, &err));
    BUILD(gar_expr_new_alias(windowed, name, &made, &err));
    gar_expr_unref(of);
    gar_expr_unref(windowed);
    gar_expr_unref(partition);
    gar_expr_unref(order);
    return made;
}

static struct gar_plan *scan(int64_t rows)
{
    struct gar_scan_provider *range = NULL;
    struct gar_plan *plan = NULL;
    BUILD(gar_range_provider_new("i", 0, rows, 1, &range, &err));
    BUILD(gar_plan_scan(range, &plan, &err));
    gar_scan_provider_unref(range);
    return plan;
}

static struct gar_plan *windows(int64_t rows)
{
    struct gar_plan *input = scan(rows);
    struct gar_plan *plan = NULL;
    struct gar_expr *exprs[] = {
        col("i"),
        over(call("sum", col("i"), NULL), GAR_FRAME_RANGE, "running"),
        over(call("count", col("i"), NULL), GAR_FRAME_NONE, "all"),
        over(call("rank", NULL, NULL), GAR_FRAME_NONE, "rank"),
        over(call("max", col("i"), NULL), GAR_FRAME_ROWS, "max"),
        over(call("lag", col("i"), number(2)), GAR_FRAME_NONE, "lag"),
        over(call("last_value", col("i"), NULL), GAR_FRAME_RANGE, "last"),
        over(call("median", col("i"), NULL), GAR_FRAME_ROWS, "median"),
    };
    BUILD(gar_plan_project(input, exprs, GAR_COUNT_OF(exprs), &plan, &err));
    for (int64_t i = 0; i < GAR_COUNT_OF(exprs); i++) {
        gar_expr_unref(exprs[i]);
    }
    gar_plan_unref(input);
    return plan;
}

static struct gar_plan *kept_rows(int64_t rows)
{
    struct gar_plan *input = scan(rows);
    struct gar_plan *plan = NULL;
    struct gar_expr *key = call("modulo", col("i"), number(7));
    struct gar_expr *aggs[] = {
        call("first", col("i"), NULL),
        call("last", col("i"), NULL),
        call("median", col("i"), NULL),
        call("mode", col("i"), NULL),
        call("arg_max", col("i"), call("negate", col("i"), NULL)),
        call("approx_count_distinct", col("i"), NULL),
        call("corr", col("i"), col("i")),
    };
    struct gar_expr *named[GAR_COUNT_OF(aggs)];
    const char *const names[] = {"first", "last", "median", "mode", "least", "count", "corr"};
    for (int64_t i = 0; i < GAR_COUNT_OF(aggs); i++) {
        BUILD(gar_expr_new_alias(aggs[i], names[i], &named[i], &err));
        gar_expr_unref(aggs[i]);
    }
    BUILD(gar_plan_aggregate(input, &key, 1, named, GAR_COUNT_OF(aggs), &plan, &err));
    for (int64_t i = 0; i < GAR_COUNT_OF(aggs); i++) {
        gar_expr_unref(named[i]);
    }
    gar_expr_unref(key);
    gar_plan_unref(input);
    return plan;
}

/* Takes over the expression. */
static struct gar_expr *named(struct gar_expr *of, const char *name)
{
    struct gar_expr *made = NULL;
    BUILD(gar_expr_new_alias(of, name, &made, &err));
    gar_expr_unref(of);
    return made;
}

/* Each i with its number from 1, beside the multiple of 3 that is nearest from below, by i / 30. */
static struct gar_plan *nearest(int64_t rows)
{
    const struct gar_window all = {0};
    struct gar_expr *row_number = call("row_number", NULL, NULL);
    struct gar_expr *numbered = NULL;
    BUILD(gar_expr_over(row_number, &all, NULL, NULL, NULL, NULL, &numbered, &err));
    struct gar_expr *left_exprs[] = {col("i"), named(numbered, "n"),
                                     named(call("floor_divide", col("i"), number(30)), "g")};
    struct gar_expr *right_exprs[] = {named(call("multiply", col("i"), number(3)), "j"),
                                      named(call("floor_divide", col("i"), number(10)), "h")};
    struct gar_plan *scans[2] = {scan(rows), scan(rows)};
    struct gar_plan *left = NULL;
    struct gar_plan *right = NULL;
    struct gar_plan *plan = NULL;
    BUILD(gar_plan_project(scans[0], left_exprs, 3, &left, &err));
    BUILD(gar_plan_project(scans[1], right_exprs, 2, &right, &err));
    struct gar_expr *keys[] = {col("i"), col("j"), col("g"), col("h")};
    const struct gar_asof_spec spec = {.kind = GAR_ASOF_BACKWARD,
                                       .left_on = keys[0],
                                       .right_on = keys[1],
                                       .left_by = &keys[2],
                                       .right_by = &keys[3],
                                       .by_count = 1};
    BUILD(gar_plan_join_asof(left, right, &spec, &plan, &err));
    gar_expr_unref(row_number);
    for (int64_t i = 0; i < 4; i++) {
        gar_expr_unref(keys[i]);
        gar_expr_unref(i < 3 ? left_exprs[i] : NULL);
        gar_expr_unref(i < 2 ? right_exprs[i] : NULL);
    }
    gar_plan_unref(scans[0]);
    gar_plan_unref(scans[1]);
    gar_plan_unref(left);
    gar_plan_unref(right);
    return plan;
}

static struct gar_exec_options options_of(int64_t morsel_rows, bool allow_inline)
{
    return (struct gar_exec_options){.runtime = runtime,
                                     .memory = gar_memory_system(),
                                     .spill = space,
                                     .spill_always = is_spilling,
                                     .morsel_rows = morsel_rows,
                                     .maintain_order = true,
                                     .allow_inline = allow_inline};
}

static int64_t i64_at(const struct gar_batch *batch, int64_t column, int64_t row)
{
    const struct gar_column *flat = NULL;
    const int64_t at = gar_column_locate(batch->columns[column], row, &flat);
    return ((const int64_t *)flat->values)[at];
}

static void check_window_row(const struct gar_batch *batch, int64_t row, int64_t rows)
{
    const int64_t i = i64_at(batch, 0, row);
    int64_t running = 0;
    int64_t all = 0;
    int64_t rank = 1;
    for (int64_t j = 0; j < rows; j++) {
        if (group_of(j) == group_of(i)) {
            all++;
            running += order_of(j) <= order_of(i) ? j : 0;
            rank += order_of(j) < order_of(i);
        }
    }
    assert_int_equal(i64_at(batch, 1, row), running);
    assert_int_equal(i64_at(batch, 2, row), all);
    assert_int_equal(i64_at(batch, 3, row), rank);
    assert_true(i64_at(batch, 4, row) >= i); /* the row itself is in its frame */
}

static void check_group_row(const struct gar_batch *batch, int64_t row, int64_t rows)
{
    const int64_t g = i64_at(batch, 0, row);
    const int64_t last = (rows - 1 - g) / 7 * 7 + g;
    const double median = ((const double *)batch->columns[3]->values)[row];
    assert_int_equal(i64_at(batch, 1, row), g);
    assert_int_equal(i64_at(batch, 2, row), last);
    assert_true(median * 2 == (double)(g + last));
    assert_int_equal(i64_at(batch, 4, row), g);
    assert_int_equal(i64_at(batch, 5, row), g);
    assert_true(llabs(i64_at(batch, 6, row) - (last - g) / 7 - 1) <= 2);
}

static void check_nearest_row(const struct gar_batch *batch, int64_t row, int64_t rows)
{
    (void)rows;
    const int64_t i = i64_at(batch, 0, row);
    assert_int_equal(i64_at(batch, 1, row), i + 1);
    assert_int_equal(i64_at(batch, 3, row), i / 3 * 3);
}

typedef void (*check_fn)(const struct gar_batch *batch, int64_t row, int64_t rows);

/* check may be NULL. */
static enum gar_status run(const struct gar_plan *plan, const struct gar_exec_options *options,
                           check_fn check, int64_t rows, int64_t *out_rows)
{
    struct gar_stream *stream = NULL;
    enum gar_status status = gar_exec_start(plan, options, &stream, NULL);
    while (status >= 0) {
        struct gar_batch *batch = NULL;
        status = gar_stream_next(stream, NULL, &batch, NULL);
        if (status != GAR_OK) {
            break;
        }
        for (int64_t i = 0; check != NULL && i < batch->rows; i++) {
            check(batch, i, rows);
        }
        *out_rows += batch->rows;
        gar_batch_unref(batch);
    }
    gar_stream_free(stream);
    return status == GAR_EOF ? GAR_OK : status;
}

static void settle(void)
{
    while (gar_runtime_active(runtime) > 0) {
        assert_true(gar_cancel_sleep(NULL, 100000, NULL) <= 0);
    }
    int64_t blocks = -1;
    while (blocks != gar_alloc_live_blocks()) { /* the last query may still be freed */
        blocks = gar_alloc_live_blocks();
        assert_true(gar_cancel_sleep(NULL, 20000000, NULL) <= 0);
    }
}

enum { PLANS = 3 };

static void make_plans(int64_t rows, struct gar_plan **plans)
{
    plans[0] = windows(rows);
    plans[1] = kept_rows(rows);
    plans[2] = nearest(rows);
}

static void free_plans(struct gar_plan **plans)
{
    for (int64_t p = 0; p < PLANS; p++) {
        gar_plan_unref(plans[p]);
    }
}

static void test_answers(void **context)
{
    (void)context;
    static const int64_t sizes[] = {0, 1, 7, 40, 700};
    static const int64_t morsels[] = {1, 13, 300, 100000};
    static const check_fn checks[PLANS] = {check_window_row, check_group_row, check_nearest_row};
    for (int64_t s = 0; s < GAR_COUNT_OF(sizes); s++) {
        struct gar_plan *plans[PLANS];
        make_plans(sizes[s], plans);
        for (int64_t m = 0; m < GAR_COUNT_OF(morsels); m++) {
            for (int32_t how = 0; how < 2 * PLANS; how++) {
                const struct gar_exec_options options = options_of(morsels[m], how < PLANS);
                const int32_t p = how % PLANS;
                int64_t rows = 0;
                assert_int_equal(run(plans[p], &options, checks[p], sizes[s], &rows), GAR_OK);
                assert_int_equal(rows, p == 1 ? gar_min_i64(sizes[s], 7) : sizes[s]);
            }
        }
        free_plans(plans);
    }
    settle();
}

/* The n-th allocation fails: an error or the right answer, and nothing is left over. */
static void test_allocation_failures(void **context)
{
    (void)context;
    struct gar_plan *plans[PLANS];
    make_plans(120, plans);
    for (int64_t p = 0; p < PLANS; p++) {
        const int64_t blocks = gar_alloc_live_blocks();
        const int64_t bytes = gar_memory_system_live_bytes();
        const struct gar_exec_options options = options_of(50, true);
        bool is_done = false;
        for (int64_t n = 1; !is_done; n++) {
            int64_t rows = 0;
            (void)gar_alloc_fail_at(n, false);
            const enum gar_status status = run(plans[p], &options, NULL, 120, &rows);
            is_done = gar_alloc_fail_at(0, false) < n;
            assert_true(status == GAR_OK || status == GAR_ERR_NOMEM);
            assert_int_equal(gar_alloc_live_blocks(), blocks);
            assert_int_equal(gar_memory_system_live_bytes(), bytes);
        }
    }
    free_plans(plans);
}

static void test_stopping(void **context)
{
    (void)context;
    struct gar_plan *plans[PLANS];
    make_plans(3000, plans);
    for (int32_t how = 0; how < 8 * PLANS; how++) {
        const bool is_read = how / PLANS % 2 == 0;
        const struct gar_exec_options options = options_of(40, how / PLANS % 4 < 2);
        struct gar_stream *stream = NULL;
        BUILD(gar_exec_start(plans[how % PLANS], &options, &stream, &err));
        if (is_read) {
            assert_true(gar_cancel_sleep(NULL, how * 200000, NULL) <= 0);
            gar_stream_cancel(stream, GAR_CANCEL_USER);
            struct gar_batch *batch = NULL;
            enum gar_status status = gar_stream_next(stream, NULL, &batch, NULL);
            while (status == GAR_OK) {
                gar_batch_unref(batch);
                batch = NULL;
                status = gar_stream_next(stream, NULL, &batch, NULL);
            }
            assert_true(status == GAR_ERR_CANCELLED || status == GAR_EOF);
        }
        gar_stream_free(stream);
    }
    free_plans(plans);
    settle();
}

static void test_on_disk(void **context)
{
    is_spilling = true;
    test_answers(context);
    test_allocation_failures(context);
    test_stopping(context);
    is_spilling = false;
    assert_int_equal(gar_spill_space_used_bytes(space), 0);
}

/* Every write and every read of what was spilled fails once. */
static void test_disk_failures(void **context)
{
    (void)context;
    const enum gar_os_call calls[] = {GAR_OS_OPEN, GAR_OS_WRITE, GAR_OS_READ};
    struct gar_plan *plan = windows(300);
    const int64_t bytes = gar_memory_system_live_bytes();
    is_spilling = true;
    for (int64_t c = 0; c < GAR_COUNT_OF(calls); c++) {
        bool is_done = false;
        int64_t failures = 0;
        for (int64_t n = 1; !is_done; n++) {
            const struct gar_os_fault fault = {.call = calls[c], .nth = n, .os_errno = ENOSPC};
            const struct gar_exec_options spilled = options_of(100, true);
            int64_t rows = 0;
            gar_os_fault_set(&fault);
            const enum gar_status status = run(plan, &spilled, NULL, 300, &rows);
            is_done = gar_os_fault_calls() < n;
            gar_os_fault_set(NULL);
            assert_int_equal(status, is_done ? GAR_OK : GAR_ERR_IO);
            failures += !is_done;
            assert_int_equal(gar_spill_space_used_bytes(space), 0);
            assert_int_equal(gar_memory_system_live_bytes(), bytes);
        }
        assert_true(failures > 0);
    }
    is_spilling = false;
    gar_plan_unref(plan);
}

static int set_up(void **context)
{
    (void)context;
    const struct gar_runtime_options options = {.compute_threads = 3, .io_threads = 1};
    if (gar_spill_space_new(NULL, 0, &space, NULL) < 0) {
        return 1;
    }
    return gar_runtime_new(&options, &runtime, NULL) == GAR_OK ? 0 : 1;
}

static int tear_down(void **context)
{
    (void)context;
    gar_runtime_free(runtime);
    gar_spill_space_unref(space);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),       cmocka_unit_test(test_allocation_failures),
        cmocka_unit_test(test_stopping),      cmocka_unit_test(test_on_disk),
        cmocka_unit_test(test_disk_failures),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
