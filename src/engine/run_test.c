/* SPDX-License-Identifier: Apache-2.0 */
/* Results as handles of running queries: modes, progress, waiting with a bound, the descriptor, cancel, deadlines. */
#include <gar/gar.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static const enum gar_run_mode modes[] = {GAR_RUN_ON_DEMAND, GAR_RUN_BACKGROUND, GAR_RUN_TO_END};

static struct gar_session *session(void)
{
    struct gar_session *s = NULL;
    assert_int_equal(gar_session_default(&s, NULL), GAR_OK);
    return s;
}

/* id of 0 .. rows where id % 2 = 0. */
static struct gar_frame *even_rows(int64_t rows)
{
    struct gar_frame *range = NULL;
    struct gar_frame *out = NULL;
    struct gar_expr *predicate = NULL;
    assert_int_equal(gar_frame_range(session(), 0, rows, 1, &range, NULL), GAR_OK);
    assert_int_equal(gar_expr_parse("id % 2 = 0", 10, range, &predicate, NULL), GAR_OK);
    assert_int_equal(gar_frame_where(range, predicate, &out, NULL), GAR_OK);
    gar_expr_release(predicate);
    gar_frame_release(range);
    return out;
}

static struct gar_result *start(const struct gar_frame *frame, enum gar_run_mode mode,
                                int64_t timeout_ms)
{
    struct gar_run_options options;
    struct gar_error err;
    struct gar_result *result = NULL;
    gar_run_options_init(&options);
    options.mode = mode;
    options.timeout_ms = timeout_ms;
    assert_int_equal(gar_frame_run(frame, &options, &result, &err), GAR_OK);
    return result;
}

static struct gar_progress progress_of(const struct gar_result *result)
{
    struct gar_progress progress = {.struct_bytes = sizeof progress};
    gar_result_progress(result, &progress);
    return progress;
}

/* Until it has ended; the census of the test runner is the bound. */
static struct gar_progress wait_end(const struct gar_result *result)
{
    struct gar_progress progress = progress_of(result);
    while (progress.state == GAR_RUN_RUNNING) {
        const struct timespec pause = {.tv_nsec = 1000000};
        (void)nanosleep(&pause, NULL);
        progress = progress_of(result);
    }
    return progress;
}

static void test_collect_in_every_mode(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
        for (int64_t rows = 1000; rows <= 1000000; rows *= 1000) {
            struct gar_frame *frame = even_rows(rows);
            struct gar_result *result = start(frame, modes[m], 0);
            for (int again = 0; again < 2; again++) {
                struct gar_frame *all = NULL;
                assert_int_equal(gar_result_collect(result, -1, &all, NULL), GAR_OK);
                assert_int_equal(gar_frame_known_rows(all), rows / 2);
                gar_frame_release(all);
            }
            const struct gar_progress progress = wait_end(result);
            assert_int_equal(progress.state, GAR_RUN_DONE);
            assert_int_equal(progress.rows, rows / 2);
            assert_int_equal(progress.rows_read, rows);
            assert_true(progress.bytes >= rows * 4);
            assert_true(progress.elapsed_ns > 0);
            assert_int_equal(progress_of(result).elapsed_ns, progress.elapsed_ns);
            gar_result_release(result);
            gar_frame_release(frame);
        }
    }
}

/* Nobody reads: the one goes to its end, the other stops for its reader. */
static void test_only_to_end_needs_no_reader(void **state)
{
    (void)state;
    struct gar_frame *frame = even_rows(20000000);
    struct gar_result *to_end = start(frame, GAR_RUN_TO_END, 0);
    struct gar_result *background = start(frame, GAR_RUN_BACKGROUND, 0);
    const struct gar_progress done = wait_end(to_end);
    assert_int_equal(done.state, GAR_RUN_DONE);
    assert_int_equal(done.rows, 10000000);
    assert_true(done.memory_bytes >= 80000000);
    assert_true(done.memory_peak_bytes >= done.memory_bytes);
    assert_int_equal(progress_of(background).state, GAR_RUN_RUNNING);
    assert_true(progress_of(background).rows < 10000000);
    gar_result_release(background);
    gar_result_cancel(to_end); /* too late to lose anything */
    struct gar_frame *all = NULL;
    assert_int_equal(gar_result_collect(to_end, 0, &all, NULL), GAR_OK);
    assert_int_equal(gar_frame_known_rows(all), 10000000);
    gar_frame_release(all);
    gar_result_release(to_end);
    gar_frame_release(frame);
}

static void test_descriptor(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
        struct gar_frame *frame = even_rows(1000000);
        struct gar_result *result = start(frame, modes[m], 0);
        int64_t rows = 0;
        enum gar_status status = GAR_OK;
        int fd = -1;
        assert_int_equal(gar_result_fd(result, &fd, NULL), GAR_OK);
        while (status != GAR_EOF) {
            struct ArrowArray batch;
            status = gar_result_next_within(result, GAR_TEXT_AS_VIEW, 0, &batch, NULL);
            assert_true(status >= 0);
            if (status == GAR_OK) {
                rows += batch.length;
                batch.release(&batch);
            } else if (status == GAR_PENDING) {
                struct pollfd one = {.fd = fd, .events = POLLIN};
                assert_int_equal(poll(&one, 1, 60000), 1);
            }
        }
        assert_int_equal(rows, 500000);
        struct pollfd one = {.fd = fd, .events = POLLIN};
        assert_int_equal(poll(&one, 1, 0), 1); /* the end stays readable */
        gar_result_release(result);
        gar_frame_release(frame);
    }
}

static void *cancel_it(void *result)
{
    gar_result_cancel(result);
    gar_result_cancel(result);
    return NULL;
}

static void test_cancel_from_another_thread(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
        struct gar_frame *frame = even_rows(INT64_C(1) << 40);
        struct gar_result *result = start(frame, modes[m], 0);
        struct gar_frame *all = NULL;
        struct gar_error err;
        if (modes[m] != GAR_RUN_TO_END) {
            struct ArrowArray batch;
            assert_int_equal(gar_result_next(result, GAR_TEXT_AS_LARGE, &batch, NULL), GAR_OK);
            batch.release(&batch);
        }
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, cancel_it, result), 0);
        for (int again = 0; again < 2; again++) {
            assert_int_equal(gar_result_collect(result, -1, &all, &err), GAR_ERR_CANCELLED);
            assert_non_null(strstr(err.message, "cancelled"));
        }
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(wait_end(result).state, GAR_RUN_CANCELLED);
        gar_result_release(result);
        gar_frame_release(frame);
    }
}

static void test_deadline(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
        struct gar_frame *frame = even_rows(INT64_C(1) << 40);
        struct gar_result *result = start(frame, modes[m], 30);
        struct gar_error err;
        struct ArrowArray batch;
        enum gar_status status = GAR_OK;
        while (status == GAR_OK) {
            status = gar_result_next(result, GAR_TEXT_AS_VIEW, &batch, &err);
            if (status == GAR_OK) {
                batch.release(&batch);
            }
        }
        assert_int_equal(status, GAR_ERR_TIMEOUT);
        assert_non_null(strstr(err.message, "deadline"));
        assert_int_equal(wait_end(result).state, GAR_RUN_CANCELLED);
        gar_result_release(result);
        gar_frame_release(frame);
    }
}

/* Waiting is bounded, and what came meanwhile is not lost. */
static void test_collect_within(void **state)
{
    (void)state;
    struct gar_frame *frame = even_rows(20000000);
    struct gar_result *result = start(frame, GAR_RUN_BACKGROUND, 0);
    struct gar_frame *all = NULL;
    enum gar_status status = GAR_PENDING;
    int64_t waits = 0;
    while (status == GAR_PENDING) {
        status = gar_result_collect(result, waits % 3, &all, NULL);
        waits++;
    }
    assert_int_equal(status, GAR_OK);
    assert_int_equal(gar_frame_known_rows(all), 10000000);
    gar_frame_release(all);
    gar_result_release(result);
    gar_frame_release(frame);
}

static void test_bad_calls(void **state)
{
    (void)state;
    struct gar_frame *frame = even_rows(10);
    struct gar_run_options options;
    struct gar_result *result = NULL;
    struct gar_error err;
    gar_run_options_init(&options);
    options.mode = (enum gar_run_mode)7;
    assert_int_equal(gar_frame_run(frame, &options, &result, &err), GAR_ERR_VALUE);
    assert_null(result);
    result = start(frame, GAR_RUN_BACKGROUND, 0);
    struct gar_progress part = {.struct_bytes = offsetof(struct gar_progress, rows_read),
                                .rows_read = -7};
    gar_result_progress(result, &part); /* a caller of an older header */
    assert_int_equal(part.rows_read, -7);
    assert_int_equal(part.struct_bytes, offsetof(struct gar_progress, rows_read));
    gar_result_release(result);
    gar_frame_release(frame);
}

static int64_t count_even(int64_t rows)
{
    struct gar_frame *frame = even_rows(rows);
    int64_t count = -1;
    struct gar_error err;
    if (gar_frame_count_rows(frame, NULL, &count, &err) != GAR_OK) {
        (void)fprintf(stderr, "%s\n", err.message);
    }
    gar_frame_release(frame);
    return count;
}

/* 0 when results of the parent refuse to go on, its frames work, and so do new queries. */
static int child_of_fork(struct gar_result *const *results, int64_t count,
                         const struct gar_frame *rows)
{
    struct gar_error err;
    struct ArrowArray batch;
    struct gar_frame *all = NULL;
    int fd = -1;
    (void)alarm(60);
    for (int64_t i = 0; i < count; i++) {
        const bool refuses =
            gar_result_next(results[i], GAR_TEXT_AS_VIEW, &batch, &err) == GAR_ERR_UNSUPPORTED &&
            strstr(err.message, "fork") != NULL &&
            gar_result_collect(results[i], 0, &all, &err) == GAR_ERR_UNSUPPORTED &&
            gar_result_fd(results[i], &fd, &err) == GAR_ERR_UNSUPPORTED &&
            progress_of(results[i]).state == GAR_RUN_FAILED;
        gar_result_cancel(results[i]);
        gar_result_release(results[i]);
        if (!refuses) {
            return 1;
        }
    }
    int64_t known = -1;
    if (gar_frame_count_rows(rows, NULL, &known, &err) != GAR_OK || known != 50) {
        return 2;
    }
    return count_even(100) == 50 && count_even(3000000) == 1500000 ? 0 : 3;
}

static void *query_on(void *stop)
{
    while (__atomic_load_n((int *)stop, __ATOMIC_RELAXED) == 0) {
        (void)count_even(300000);
        struct gar_session *own = NULL;
        struct gar_error err;
        if (gar_session_new(NULL, &own, &err) == GAR_OK) {
            gar_session_release(own);
        }
    }
    return NULL;
}

/* Until the query waits for its reader. */
static void wait_full(const struct gar_result *result)
{
    int64_t before = -1;
    int64_t rows = progress_of(result).rows;
    while (rows != before) {
        const struct timespec pause = {.tv_nsec = 100000000};
        (void)nanosleep(&pause, NULL);
        before = rows;
        rows = progress_of(result).rows;
    }
}

static void test_fork(void **state)
{
    (void)state;
    struct gar_frame *large = even_rows(INT64_C(1) << 40);
    struct gar_frame *small = even_rows(100);
    struct gar_frame *rows = NULL;
    assert_int_equal(gar_frame_collect(small, NULL, &rows, NULL), GAR_OK);
    struct gar_result *results[] = {
        start(small, GAR_RUN_ON_DEMAND, 0), start(small, GAR_RUN_TO_END, 0),
        start(large, GAR_RUN_ON_DEMAND, 0), start(large, GAR_RUN_BACKGROUND, 0)};
    const int64_t count = (int64_t)(sizeof results / sizeof results[0]);
    wait_full(results[2]);
    wait_full(results[3]);
    /* The sanitizers' allocators do not survive a fork while other threads allocate. */
    int stop = 0;
    pthread_t thread;
#if !defined(GAR_SANITIZED)
    assert_int_equal(pthread_create(&thread, NULL, query_on, &stop), 0);
#endif
    for (int i = 0; i < 10; i++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            _exit(child_of_fork(results, count, rows));
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_int_equal(count_even(300000), 150000);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
#if !defined(GAR_SANITIZED)
    assert_int_equal(pthread_join(thread, NULL), 0);
#else
    (void)thread;
    (void)query_on;
#endif
    struct ArrowArray batch;
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(gar_result_next(results[i], GAR_TEXT_AS_VIEW, &batch, NULL), GAR_OK);
        batch.release(&batch);
        gar_result_release(results[i]);
    }
    gar_frame_release(rows);
    gar_frame_release(small);
    gar_frame_release(large);
}

static void test_priorities_are_checked(void **state)
{
    (void)state;
    struct gar_settings settings = {.struct_bytes = sizeof settings};
    struct gar_session *own = NULL;
    struct gar_error err;
    assert_int_equal(gar_session_new(NULL, &own, NULL), GAR_OK);
    gar_session_settings(own, &settings);
    assert_int_equal(settings.compute_nice, 0);
    assert_int_equal(settings.io_nice, 0);
    assert_false(settings.compute_batch);
    settings.compute_nice = 20;
    assert_int_equal(gar_session_configure(own, &settings, &err), GAR_ERR_VALUE);
    assert_non_null(strstr(err.message, "got 20"));
    settings.compute_nice = 19;
    settings.io_nice = -21;
    assert_int_equal(gar_session_configure(own, &settings, &err), GAR_ERR_VALUE);
    settings.io_nice = 1;
    settings.compute_batch = true;
    assert_int_equal(gar_session_configure(own, &settings, &err), GAR_OK);
    gar_session_release(own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_collect_in_every_mode),
        cmocka_unit_test(test_only_to_end_needs_no_reader),
        cmocka_unit_test(test_descriptor),
        cmocka_unit_test(test_cancel_from_another_thread),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_collect_within),
        cmocka_unit_test(test_bad_calls),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_priorities_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
