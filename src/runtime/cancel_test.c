/* SPDX-License-Identifier: Apache-2.0 */
/* Cancel tokens and operations. */
#include "runtime/cancel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "os/clock.h"
#include "os/thread.h"
#include "runtime/operation.h"

static struct gar_cancel *new_token(int64_t deadline_ns)
{
    struct gar_cancel *cancel = NULL;
    assert_int_equal(gar_cancel_new(deadline_ns, &cancel, NULL), GAR_OK);
    return cancel;
}

struct counted {
    struct gar_cancel_waker waker;
    struct gar_cancel *cancel;
    int woken;
};

static void count_wake(struct gar_cancel_waker *waker)
{
    struct counted *counted = (struct counted *)waker;
    counted->woken++;
    gar_cancel_remove_waker(counted->cancel, waker); /* from inside: must not wait for itself */
}

static void test_first_reason_stays(void **state)
{
    (void)state;
    struct gar_cancel *cancel = new_token(GAR_CLOCK_NEVER);
    struct gar_error err = GAR_ERROR_INIT;
    assert_false(gar_cancel_requested(NULL));
    assert_false(gar_cancel_requested(cancel));
    assert_false(gar_cancel_poll(cancel));
    assert_int_equal(gar_cancel_status(cancel, &err), GAR_OK);
    assert_true(gar_cancel_request(cancel, GAR_CANCEL_INTERRUPT));
    assert_false(gar_cancel_request(cancel, GAR_CANCEL_USER));
    assert_true(gar_cancel_requested(cancel));
    assert_int_equal(gar_cancel_reason_get(cancel), GAR_CANCEL_INTERRUPT);
    assert_int_equal(gar_cancel_status(cancel, &err), GAR_ERR_INTERRUPTED);
    gar_cancel_unref(cancel);
    gar_cancel_unref(NULL);
    static const struct {
        enum gar_cancel_reason reason;
        enum gar_status status;
    } rows[] = {{GAR_CANCEL_DEADLINE, GAR_ERR_TIMEOUT},
                {GAR_CANCEL_DROPPED, GAR_ERR_CANCELLED},
                {GAR_CANCEL_ERROR, GAR_ERR_CANCELLED},
                {GAR_CANCEL_USER, GAR_ERR_CANCELLED}};
    for (int64_t i = 0; i < GAR_COUNT_OF(rows); i++) {
        cancel = new_token(GAR_CLOCK_NEVER);
        assert_true(gar_cancel_request(cancel, rows[i].reason));
        assert_int_equal(gar_cancel_status(cancel, &err), rows[i].status);
        gar_cancel_unref(cancel);
    }
}

static void test_wakers(void **state)
{
    (void)state;
    struct gar_cancel *cancel = new_token(GAR_CLOCK_NEVER);
    struct counted counted[4];
    memset(counted, 0, sizeof counted);
    for (int i = 0; i < 4; i++) {
        counted[i].waker.wake = count_wake;
        counted[i].cancel = cancel;
    }
    for (int i = 0; i < 3; i++) {
        assert_true(gar_cancel_add_waker(cancel, &counted[i].waker));
    }
    gar_cancel_remove_waker(cancel, &counted[1].waker);
    gar_cancel_remove_waker(cancel, &counted[3].waker);
    assert_true(gar_cancel_request(cancel, GAR_CANCEL_USER));
    assert_false(gar_cancel_add_waker(cancel, &counted[3].waker));
    assert_int_equal(counted[0].woken, 1);
    assert_int_equal(counted[1].woken, 0);
    assert_int_equal(counted[2].woken, 1);
    assert_int_equal(counted[3].woken, 0);
    gar_cancel_unref(cancel);
}

static bool say_stop_at_third(void *context)
{
    int *asked = (int *)context;
    return ++*asked == 3;
}

/* A token that one thread polls asks its caller; then it is cancelled for good. */
static void test_interrupt(void **state)
{
    (void)state;
    struct gar_cancel *cancel = new_token(GAR_CLOCK_NEVER);
    int asked = 0;
    const struct gar_interrupt interrupt = {.check = say_stop_at_third, .context = &asked};
    cancel->interrupt = &interrupt;
    assert_false(gar_cancel_requested(cancel)); /* asks nobody */
    assert_int_equal(asked, 0);
    assert_false(gar_cancel_poll(cancel));
    assert_false(gar_cancel_poll(cancel));
    assert_true(gar_cancel_poll(cancel));
    assert_true(gar_cancel_poll(cancel));
    assert_int_equal(asked, 3);
    assert_int_equal(gar_cancel_status(cancel, NULL), GAR_ERR_INTERRUPTED);
    gar_cancel_unref(cancel);
}

static void test_deadline(void **state)
{
    (void)state;
    struct gar_cancel *cancel = new_token(gar_clock_ns() + 2 * GAR_NS_PER_MS);
    assert_false(gar_cancel_poll(cancel));
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(gar_cancel_sleep(cancel, 10 * GAR_NS_PER_S, &err), GAR_ERR_TIMEOUT);
    assert_true(gar_cancel_poll(cancel));
    assert_int_equal(gar_cancel_reason_get(cancel), GAR_CANCEL_DEADLINE);
    gar_cancel_unref(cancel);
    assert_int_equal(gar_cancel_sleep(NULL, GAR_NS_PER_MS, NULL), GAR_OK);
}

static void cancel_soon(void *context)
{
    assert_int_equal(gar_cancel_sleep(NULL, 5 * GAR_NS_PER_MS, NULL), GAR_OK);
    (void)gar_cancel_request(context, GAR_CANCEL_USER);
}

static void test_sleep_is_woken(void **state)
{
    (void)state;
    struct gar_cancel *cancel = new_token(GAR_CLOCK_NEVER);
    struct gar_thread thread = {0};
    const struct gar_thread_options options = {.name = "Cancel"};
    const int64_t start_ns = gar_clock_ns();
    assert_int_equal(gar_thread_start(&thread, &options, cancel_soon, cancel, NULL), GAR_OK);
    assert_int_equal(gar_cancel_sleep(cancel, 20 * GAR_NS_PER_S, NULL), GAR_ERR_CANCELLED);
    assert_true(gar_clock_ns() - start_ns < 2 * GAR_NS_PER_S);
    assert_int_equal(gar_cancel_sleep(cancel, 20 * GAR_NS_PER_S, NULL), GAR_ERR_CANCELLED);
    gar_thread_join(&thread);
    gar_cancel_unref(cancel);
}

struct work {
    struct gar_operation operation;
    int finished;
    int cancelled;
};

static void on_finish(struct gar_operation *operation)
{
    ((struct work *)operation)->finished++;
}

static void on_cancel(struct gar_operation *operation)
{
    ((struct work *)operation)->cancelled++;
}

static void on_cancel_finish(struct gar_operation *operation)
{
    ((struct work *)operation)->cancelled++;
    gar_operation_finish(operation, GAR_ERR_CANCELLED, NULL);
    assert_int_equal(((struct work *)operation)->finished, 0); /* not while we run */
}

static void test_operation_plain(void **state)
{
    (void)state;
    struct work work = {.finished = 0};
    gar_operation_init(&work.operation, on_finish);
    assert_true(gar_operation_start(&work.operation, on_cancel));
    gar_operation_finish(&work.operation, GAR_OK, NULL);
    assert_int_equal(work.finished, 1);
    assert_int_equal(work.operation.status, GAR_OK);
    gar_operation_cancel(&work.operation);
    assert_int_equal(work.cancelled, 0);
}

static void test_operation_cancelled_before_start(void **state)
{
    (void)state;
    struct work work = {.finished = 0};
    gar_operation_init(&work.operation, on_finish);
    gar_operation_cancel(&work.operation);
    assert_false(gar_operation_start(&work.operation, on_cancel));
    assert_int_equal(work.finished, 1);
    assert_int_equal(work.cancelled, 0);
    assert_int_equal(work.operation.status, GAR_ERR_CANCELLED);
}

static void test_operation_cancelled_while_running(void **state)
{
    (void)state;
    struct work work = {.finished = 0};
    gar_operation_init(&work.operation, on_finish);
    assert_true(gar_operation_start(&work.operation, on_cancel));
    gar_operation_cancel(&work.operation);
    gar_operation_cancel(&work.operation);
    assert_int_equal(work.cancelled, 1);
    assert_int_equal(work.finished, 0);
    assert_true(gar_operation_is_cancelled(&work.operation));
    struct gar_error err = GAR_ERROR_INIT;
    (void)gar_error_set(&err, GAR_ERR_IO, "broken");
    gar_operation_finish(&work.operation, GAR_ERR_IO, &err);
    assert_int_equal(work.finished, 1);
    assert_string_equal(work.operation.error.message, "broken");
}

static void test_operation_finished_by_cancel(void **state)
{
    (void)state;
    struct work work = {.finished = 0};
    gar_operation_init(&work.operation, on_finish);
    assert_true(gar_operation_start(&work.operation, on_cancel_finish));
    gar_operation_cancel(&work.operation);
    assert_int_equal(work.cancelled, 1);
    assert_int_equal(work.finished, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_reason_stays),
        cmocka_unit_test(test_wakers),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_interrupt),
        cmocka_unit_test(test_sleep_is_woken),
        cmocka_unit_test(test_operation_plain),
        cmocka_unit_test(test_operation_cancelled_before_start),
        cmocka_unit_test(test_operation_cancelled_while_running),
        cmocka_unit_test(test_operation_finished_by_cancel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
