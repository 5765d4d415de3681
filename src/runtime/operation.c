/* SPDX-License-Identifier: Apache-2.0 */
/* Operations. One atomic word decides between a finish and a cancel that meet: while on_cancel runs, a finish is left to
 * the cancelling thread, so that on_finish never overlaps on_cancel and nobody waits. */
#include "runtime/operation.h"

#include <assert.h>
#include <string.h>

#include "os/test_point.h"

static void complete(struct gar_operation *operation)
{
    operation->on_finish(operation);
}

/* What the status and error will be; only one thread gets here. */
static void record(struct gar_operation *operation, enum gar_status status,
                   const struct gar_error *err)
{
    operation->status = status;
    if (err != NULL && status < 0) {
        operation->error = *err;
    }
}

void gar_operation_init(struct gar_operation *operation,
                        void (*on_finish)(struct gar_operation *operation))
{
    memset(operation, 0, sizeof *operation);
    operation->error.position = -1;
    operation->on_finish = on_finish;
}

bool gar_operation_start(struct gar_operation *operation,
                         void (*on_cancel)(struct gar_operation *operation))
{
    operation->on_cancel = on_cancel;
    int32_t expected = GAR_OPERATION_IDLE;
    const bool is_first =
        __atomic_compare_exchange_n(&operation->state, &expected, GAR_OPERATION_STARTED, false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    assert(is_first);
    (void)is_first;
    if (__atomic_load_n(&operation->cancelled, __ATOMIC_SEQ_CST) == 0) {
        return true;
    }
    expected = GAR_OPERATION_STARTED;
    if (!__atomic_compare_exchange_n(&operation->state, &expected, GAR_OPERATION_FINISHED, false,
                                     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        return true; /* a cancel runs on_cancel just now: the performer will see it */
    }
    operation->status =
        gar_error_set(&operation->error, GAR_ERR_CANCELLED, "cancelled before it was started");
    complete(operation);
    return false;
}

void gar_operation_finish(struct gar_operation *operation, enum gar_status status,
                          const struct gar_error *err)
{
    record(operation, status, err);
    int32_t expected = GAR_OPERATION_STARTED;
    GAR_TEST_POINT("operation finish");
    for (;;) {
        assert((expected & GAR_OPERATION_STARTED) != 0 &&
               (expected & GAR_OPERATION_FINISH_WAITING) == 0);
        const int32_t next = (expected & GAR_OPERATION_CANCELLING) != 0
                                 ? expected | GAR_OPERATION_FINISH_WAITING
                                 : GAR_OPERATION_FINISHED;
        if (__atomic_compare_exchange_n(&operation->state, &expected, next, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            if (next == GAR_OPERATION_FINISHED) {
                complete(operation);
            }
            return;
        }
    }
}

void gar_operation_cancel(struct gar_operation *operation)
{
    if (__atomic_exchange_n(&operation->cancelled, 1, __ATOMIC_SEQ_CST) != 0) {
        return;
    }
    int32_t expected = GAR_OPERATION_STARTED;
    if (!__atomic_compare_exchange_n(&operation->state, &expected,
                                     GAR_OPERATION_STARTED | GAR_OPERATION_CANCELLING, false,
                                     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        return; /* not started: start will see it; or finished */
    }
    if (operation->on_cancel != NULL) {
        operation->on_cancel(operation);
    }
    GAR_TEST_POINT("operation cancel");
    expected = GAR_OPERATION_STARTED | GAR_OPERATION_CANCELLING;
    if (!__atomic_compare_exchange_n(&operation->state, &expected, GAR_OPERATION_STARTED, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&operation->state, GAR_OPERATION_FINISHED, __ATOMIC_RELEASE);
        complete(operation);
    }
}

bool gar_operation_is_cancelled(const struct gar_operation *operation)
{
    return __atomic_load_n(&operation->cancelled, __ATOMIC_ACQUIRE) != 0;
}
