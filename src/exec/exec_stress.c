/* SPDX-License-Identifier: Apache-2.0 */
/* Many queries at once from several threads on shared pools: read to the end, dropped after some batches, cancelled by
 * another thread, or failing; some begin on the caller's thread and move to the pools; somebody looks at their profiles, and
 * traces come and go. Run under ThreadSanitizer. */
#include "exec/exec.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/log.h"
#include "os/test_point.h"
#include "runtime/trace.h"

enum { CALLERS = 4, ROUNDS = 60, ROWS = 20000, PLANS = 11 };

/* A plan and the rows that it gives when nothing stops it; or the way in which it fails. */
struct known_plan {
    struct gar_plan *plan;
    int64_t rows;
    enum gar_status failure; /* GAR_OK: none */
};

struct shared {
    pthread_mutex_t lock;
    struct gar_profile
        *profiles[CALLERS]; /* under the lock; owned references: of the latest queries */
    int32_t is_over;        /* atomic */
    struct gar_runtime *runtimes[2];
    struct known_plan plans[PLANS];
};

struct caller {
    struct shared *shared;
    int64_t number;
    uint64_t random_state;
    int64_t failures;
};

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 17 ^ *state >> 41;
}

static struct gar_expr *col(const char *name)
{
    struct gar_expr *e = NULL;
    assert_int_equal(gar_expr_new_column(name, &e, NULL), GAR_OK);
    return e;
}

static struct gar_expr *int_literal(int64_t value)
{
    const struct gar_value v = {.type = gar_type_of(GAR_INT64), .is_valid = true, .i64 = value};
    struct gar_expr *e = NULL;
    assert_int_equal(gar_expr_new_literal(&v, &e, NULL), GAR_OK);
    return e;
}

/* Takes over its arguments. */
static struct gar_expr *call(const char *name, struct gar_expr *a, struct gar_expr *b,
                             const char *alias)
{
    struct gar_expr *args[2] = {a, b};
    struct gar_expr *e = NULL;
    struct gar_expr *named = NULL;
    assert_int_equal(gar_expr_new_call_by_name(name, args, b == NULL ? 1 : 2, &e, NULL), GAR_OK);
    assert_int_equal(gar_expr_new_alias(e, alias, &named, NULL), GAR_OK);
    gar_expr_unref(a);
    gar_expr_unref(b);
    gar_expr_unref(e);
    return named;
}

static struct gar_plan *scan(int64_t rows)
{
    struct gar_scan_provider *provider = NULL;
    struct gar_plan *plan = NULL;
    assert_int_equal(gar_range_provider_new("i", 0, rows, 1, &provider, NULL), GAR_OK);
    assert_int_equal(gar_plan_scan(provider, &plan, NULL), GAR_OK);
    gar_scan_provider_unref(provider);
    return plan;
}

/* i, and k = i % divisor. */
static struct gar_plan *with_key(struct gar_plan *input, int64_t divisor)
{
    struct gar_expr *exprs[1] = {call("modulo", col("i"), int_literal(divisor), "k")};
    struct gar_plan *plan = NULL;
    assert_int_equal(gar_plan_with_columns(input, exprs, 1, &plan, NULL), GAR_OK);
    gar_expr_unref(exprs[0]);
    gar_plan_unref(input);
    return plan;
}

/* i + something: too large from row `first` on. */
static struct gar_plan *overflow(struct gar_plan *input, int64_t first)
{
    struct gar_expr *exprs[1] = {call("add", col("i"), int_literal(INT64_MAX - first + 1), "i")};
    struct gar_plan *plan = NULL;
    assert_int_equal(gar_plan_with_columns(input, exprs, 1, &plan, NULL), GAR_OK);
    gar_expr_unref(exprs[0]);
    gar_plan_unref(input);
    return plan;
}

static struct gar_plan *group(struct gar_plan *input)
{
    struct gar_expr *keys[1] = {col("k")};
    struct gar_expr *aggs[2] = {call("sum", col("i"), NULL, "s"),
                                call("count_distinct", col("i"), NULL, "d")};
    struct gar_plan *plan = NULL;
    assert_int_equal(gar_plan_aggregate(input, keys, 1, aggs, 2, &plan, NULL), GAR_OK);
    gar_expr_unref(keys[0]);
    gar_expr_unref(aggs[0]);
    gar_expr_unref(aggs[1]);
    gar_plan_unref(input);
    return plan;
}

static struct gar_plan *distinct(struct gar_plan *input)
{
    struct gar_expr *keys[1] = {col("k")};
    struct gar_plan *plan = NULL;
    assert_int_equal(gar_plan_distinct(input, keys, 1, &plan, NULL), GAR_OK);
    gar_expr_unref(keys[0]);
    gar_plan_unref(input);
    return plan;
}

static struct gar_plan *sort(struct gar_plan *input, int64_t limit)
{
    struct gar_expr *keys[2] = {col("k"), col("i")};
    const bool descending[2] = {true, false};
    const bool nulls_first[2] = {false, false};
    struct gar_plan *plan = NULL;
    assert_int_equal(gar_plan_sort(input, keys, descending, nulls_first, 2, limit, &plan, NULL),
                     GAR_OK);
    gar_expr_unref(keys[0]);
    gar_expr_unref(keys[1]);
    gar_plan_unref(input);
    return plan;
}

static struct gar_plan *limit(struct gar_plan *input, int64_t offset, int64_t count)
{
    struct gar_plan *plan = NULL;
    assert_int_equal(gar_plan_limit(input, offset, count, &plan, NULL), GAR_OK);
    gar_plan_unref(input);
    return plan;
}

static struct gar_plan *join(enum gar_join_kind kind, struct gar_plan *left, struct gar_plan *right,
                             const char *left_key, const char *right_key, bool is_build_left)
{
    struct gar_expr *keys[2] = {col(left_key), col(right_key)};
    const struct gar_join_spec spec = {
        .kind = kind, .left_keys = &keys[0], .right_keys = &keys[1], .key_count = 1};
    struct gar_plan *plan = NULL;
    struct gar_plan *turned = NULL;
    assert_int_equal(gar_plan_join(left, right, &spec, &plan, NULL), GAR_OK);
    assert_int_equal(plan->kind, GAR_PLAN_JOIN); /* keys of two names */
    struct gar_join_parts parts = gar_plan_join_parts(plan);
    parts.is_build_left = is_build_left;
    assert_int_equal(gar_plan_join_exact(plan->inputs[0], plan->inputs[1], &parts, &turned, NULL),
                     GAR_OK);
    gar_plan_unref(plan);
    gar_plan_unref(left);
    gar_plan_unref(right);
    gar_expr_unref(keys[0]);
    gar_expr_unref(keys[1]);
    return turned;
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

static void make_plans(struct shared *shared)
{
    const struct known_plan plans[PLANS] = {
        {with_key(scan(ROWS), 7), ROWS, GAR_OK},
        {group(with_key(scan(ROWS), 5000)), 5000, GAR_OK},
        {distinct(with_key(scan(ROWS), 1000)), 1000, GAR_OK},
        {sort(with_key(scan(ROWS), 3), -1), ROWS, GAR_OK},
        {limit(concat(sort(with_key(scan(ROWS), 11), 100), with_key(scan(ROWS), 2)), 50, 500), 500,
         GAR_OK},
        {limit(with_key(scan(INT64_C(1) << 40), 13), 3000, 200), 200, GAR_OK},
        {overflow(with_key(scan(ROWS), 4), ROWS - 700), 0, GAR_ERR_OVERFLOW},
        {group(overflow(with_key(scan(ROWS), 300), 9000)), 0, GAR_ERR_OVERFLOW},
        /* Every left row has one partner, a thousand right rows have none. */
        {join(GAR_JOIN_OUTER, with_key(scan(ROWS), 5000), scan(6000), "k", "i", false), ROWS + 1000,
         GAR_OK},
        {join(GAR_JOIN_OUTER, with_key(scan(ROWS), 5000), scan(6000), "k", "i", true), ROWS + 1000,
         GAR_OK},
        /* Six partners each: a batch gives several. */
        {join(GAR_JOIN_INNER, scan(100), with_key(scan(600), 100), "i", "k", false), 600, GAR_OK},
    };
    memcpy(shared->plans, plans, sizeof plans);
}

struct canceller {
    struct gar_cancel *cancel;
    int64_t wait_ns;
};

static void *cancel_later(void *context)
{
    struct canceller *canceller = (struct canceller *)context;
    (void)gar_cancel_sleep(NULL, canceller->wait_ns, NULL);
    (void)gar_cancel_request(canceller->cancel, GAR_CANCEL_USER);
    return NULL;
}

/* Read at most `batches`; *out_rows are those that came. */
static enum gar_status read_batches(struct gar_stream *stream, int64_t batches, int64_t *out_rows)
{
    enum gar_status status = GAR_OK;
    for (int64_t i = 0; i < batches && status == GAR_OK; i++) {
        struct gar_batch *batch = NULL;
        status = gar_stream_next(stream, NULL, &batch, NULL);
        *out_rows += status == GAR_OK ? batch->rows : 0;
        gar_batch_unref(batch);
    }
    return status;
}

/* A new profile for the caller's next query, which the watcher sees. */
static struct gar_profile *show_profile(const struct caller *caller)
{
    struct shared *shared = caller->shared;
    struct gar_profile *profile = NULL;
    if (gar_profile_new(NULL, &profile, NULL) != GAR_OK) {
        return NULL;
    }
    (void)pthread_mutex_lock(&shared->lock);
    gar_profile_unref(shared->profiles[caller->number]);
    shared->profiles[caller->number] = gar_profile_ref(profile);
    (void)pthread_mutex_unlock(&shared->lock);
    return profile;
}

static void run_query(struct caller *caller)
{
    const struct known_plan *known =
        &caller->shared->plans[next_random(&caller->random_state) % PLANS];
    const int64_t morsels[3] = {97, 1000, 131072};
    const uint64_t how = next_random(&caller->random_state) % 4;
    struct gar_cancel *cancel = NULL;
    struct gar_stream *stream = NULL;
    caller->failures += gar_cancel_new(INT64_MAX, &cancel, NULL) != GAR_OK;
    const struct gar_exec_options options = {
        .runtime = caller->shared->runtimes[next_random(&caller->random_state) % 2],
        .memory = gar_memory_system(),
        .cancel = cancel,
        .morsel_rows = morsels[next_random(&caller->random_state) % 3],
        .maintain_order = next_random(&caller->random_state) % 2 == 0,
        .allow_inline = next_random(&caller->random_state) % 3 == 0,
        .hand_over_rows = 1 + (int64_t)(next_random(&caller->random_state) % 30000),
        .stream_batches = 2,
        .watchdog_ns = 200000,
        .profile = show_profile(caller)};
    enum gar_status status = gar_exec_start(known->plan, &options, &stream, NULL);
    gar_profile_unref(options.profile);
    int64_t rows = 0;
    pthread_t thread = 0;
    struct canceller canceller = {cancel, (int64_t)(next_random(&caller->random_state) % 3000000)};
    const bool is_cancelled =
        how == 0 && pthread_create(&thread, NULL, cancel_later, &canceller) == 0;
    if (status == GAR_OK) {
        status = read_batches(
            stream, how == 1 ? (int64_t)(next_random(&caller->random_state) % 5) : INT64_MAX,
            &rows);
    }
    const bool is_right = known->failure != GAR_OK ? status == known->failure
                                                   : status == GAR_EOF && rows == known->rows;
    if (how != 1) { /* 1: dropped */
        caller->failures += !is_right && !(how == 0 && status == GAR_ERR_CANCELLED);
    }
    gar_stream_free(stream);
    if (is_cancelled) {
        (void)pthread_join(thread, NULL);
    }
    gar_cancel_unref(cancel);
}

/* Reads all that runs, again and again. */
static void *watch(void *context)
{
    struct shared *shared = (struct shared *)context;
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/gar-stress-%d.json", (int)getpid());
    for (int64_t i = 0; __atomic_load_n(&shared->is_over, __ATOMIC_RELAXED) == 0; i++) {
        (void)pthread_mutex_lock(&shared->lock);
        struct gar_profile *profile = shared->profiles[i % CALLERS];
        profile = profile != NULL ? gar_profile_ref(profile) : NULL;
        (void)pthread_mutex_unlock(&shared->lock);
        if (profile != NULL) {
            char line[128];
            (void)gar_profile_line(profile, line, (int64_t)sizeof line);
            gar_profile_unref(profile);
        }
        const enum gar_status traced = i % 64 == 0    ? gar_trace_begin(path, NULL)
                                       : i % 64 == 50 ? gar_trace_end(NULL)
                                                      : gar_trace_flush(NULL);
        assert_int_equal(traced, GAR_OK);
        (void)sched_yield();
    }
    assert_int_equal(gar_trace_end(NULL), GAR_OK);
    (void)unlink(path);
    return NULL;
}

static void *run_caller(void *context)
{
    for (int64_t i = 0; i < ROUNDS; i++) {
        run_query((struct caller *)context);
    }
    return NULL;
}

static void test_queries_at_once(void **context)
{
    (void)context;
    gar_test_point_set(13, 50);
    struct shared shared = {.is_over = 0};
    const struct gar_runtime_options first = {.compute_threads = 1, .io_threads = 1};
    assert_int_equal(gar_runtime_new(&first, &shared.runtimes[0], NULL), GAR_OK);
    gar_runtime_free(shared.runtimes[0]); /* what is made once for the process is there now */
    const int64_t blocks = gar_alloc_live_blocks();
    const int64_t bytes = gar_memory_system_live_bytes();
    make_plans(&shared);
    for (int32_t r = 0; r < 2; r++) {
        const struct gar_runtime_options options = {.compute_threads = r == 0 ? 2 : 8,
                                                    .io_threads = 2};
        assert_int_equal(gar_runtime_new(&options, &shared.runtimes[r], NULL), GAR_OK);
    }
    struct caller callers[CALLERS];
    pthread_t threads[CALLERS];
    pthread_t watcher;
    (void)pthread_mutex_init(&shared.lock, NULL);
    gar_log_set(GAR_LOG_OFF, NULL, NULL);
    assert_int_equal(pthread_create(&watcher, NULL, watch, &shared), 0);
    for (uint64_t i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){&shared, (int64_t)i,
                                     gar_test_point_environment() * 1000 + i * 77 + 1, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, run_caller, &callers[i]), 0);
    }
    for (int64_t i = 0; i < CALLERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(callers[i].failures, 0);
    }
    __atomic_store_n(&shared.is_over, 1, __ATOMIC_RELAXED);
    assert_int_equal(pthread_join(watcher, NULL), 0);
    for (int64_t i = 0; i < CALLERS; i++) {
        gar_profile_unref(shared.profiles[i]);
    }
    (void)pthread_mutex_destroy(&shared.lock);
    for (int32_t r = 0; r < 2; r++) {
        gar_runtime_free(shared.runtimes[r]);
    }
    for (int64_t i = 0; i < PLANS; i++) {
        gar_plan_unref(shared.plans[i].plan);
    }
    assert_int_equal(gar_memory_system_live_bytes(), bytes);
    assert_int_equal(gar_alloc_live_blocks(), blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_queries_at_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
