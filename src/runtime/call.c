/* SPDX-License-Identifier: Apache-2.0 */
/* gar_runtime_call: blocking work on the IO pool while the caller waits and looks at its signals. The state is shared
 * by two: whoever lets go last frees it, so that a caller may leave work behind that does not come back. */
#include <assert.h>

#include "base/alloc.h"
#include "os/clock.h"
#include "os/park.h"
#include "os/test_point.h"
#include "runtime/runtime.h"

struct call {
    struct gar_task task; /* first */
    struct gar_cancel_waker waker;
    struct gar_runtime *runtime;
    struct gar_call what;     /* cancel is an owned reference */
    struct gar_parker parker; /* the caller's */
    enum gar_status status;
    struct gar_error error;
    int64_t refs;    /* atomic */
    int32_t is_done; /* atomic; release after status and error */
};

static enum gar_status run_here(const struct gar_call *call, struct gar_error *err);
static void run_on_io(struct gar_task *task, int32_t worker);
static void wake_caller(struct gar_cancel_waker *waker);
static bool wait_done(struct call *call);
static enum gar_status collect(const struct call *call, bool is_interrupted, struct gar_error *err);
static void unref(struct call *call);

enum gar_status gar_runtime_call(struct gar_runtime *runtime, const struct gar_call *what,
                                 struct gar_error *err)
{
    assert(!gar_loop_is_self(gar_runtime_loop(runtime)));
    if (gar_pool_worker_self(gar_runtime_io(runtime)) >= 0) {
        return run_here(what, err);
    }
    struct call *call = gar_calloc(1, (int64_t)sizeof *call);
    enum gar_status status = call == NULL ? gar_error_nomem(err, (int64_t)sizeof *call)
                                          : gar_runtime_start(runtime, GAR_RUNTIME_IO, err);
    if (status == GAR_OK) {
        status = gar_runtime_enter(runtime, err);
    }
    if (status != GAR_OK) {
        gar_free(call);
        if (what->release != NULL) {
            what->release(what->context);
        }
        return status;
    }
    call->task.run = run_on_io;
    call->waker.wake = wake_caller;
    call->runtime = runtime;
    call->what = *what;
    call->refs = 2;
    call->error.position = -1;
    if (what->cancel != NULL) {
        (void)gar_cancel_ref(what->cancel);
    }
    gar_pool_submit(gar_runtime_io(runtime), &call->task);
    const bool is_interrupted = wait_done(call);
    status = collect(call, is_interrupted, err);
    unref(call);
    return status;
}

static enum gar_status run_here(const struct gar_call *call, struct gar_error *err)
{
    const enum gar_status status = gar_cancel_requested(call->cancel)
                                       ? gar_cancel_status(call->cancel, err)
                                       : call->run(call->context, err);
    if (call->release != NULL) {
        call->release(call->context);
    }
    return status;
}

static void run_on_io(struct gar_task *task, int32_t worker)
{
    (void)worker;
    struct call *call = (struct call *)task;
    struct gar_runtime *runtime = call->runtime;
    call->status = gar_cancel_requested(call->what.cancel)
                       ? gar_cancel_status(call->what.cancel, &call->error)
                       : call->what.run(call->what.context, &call->error);
    __atomic_store_n(&call->is_done, 1, __ATOMIC_RELEASE);
    GAR_TEST_POINT("call done");
    gar_parker_wake(&call->parker);
    unref(call);
    gar_runtime_leave(runtime);
}

static void wake_caller(struct gar_cancel_waker *waker)
{
    struct call *call = (struct call *)(void *)((char *)waker - offsetof(struct call, waker));
    gar_parker_wake(&call->parker);
}

/* Until run is done, or for GAR_WAIT_STOP_NS after a cancel or interrupt. True when the caller was interrupted. */
static bool wait_done(struct call *call)
{
    bool is_interrupted = false;
    struct gar_cancel *cancel = call->what.cancel;
    const struct gar_interrupt *interrupt = call->what.interrupt;
    int64_t give_up_ns = GAR_CLOCK_NEVER;
    const bool is_listed = cancel != NULL && gar_cancel_add_waker(cancel, &call->waker);
    while (__atomic_load_n(&call->is_done, __ATOMIC_ACQUIRE) == 0 && gar_clock_ns() < give_up_ns) {
        if (give_up_ns == GAR_CLOCK_NEVER && gar_cancel_poll(cancel)) {
            give_up_ns = gar_clock_deadline(GAR_WAIT_STOP_NS);
        }
        const int64_t limit_ns =
            cancel == NULL || give_up_ns != GAR_CLOCK_NEVER ? give_up_ns : cancel->deadline_ns;
        const int64_t tick_ns =
            interrupt == NULL ? GAR_CLOCK_NEVER : gar_clock_deadline(GAR_WAIT_TICK_NS);
        if (gar_parker_wait(&call->parker, gar_min_i64(tick_ns, limit_ns)) == GAR_PARK_WOKEN ||
            give_up_ns != GAR_CLOCK_NEVER || !gar_interrupt_check(interrupt)) {
            continue;
        }
        if (cancel != NULL) {
            (void)gar_cancel_request(cancel, GAR_CANCEL_INTERRUPT);
        }
        is_interrupted = true;
        give_up_ns = gar_clock_deadline(cancel == NULL ? 0 : GAR_WAIT_STOP_NS);
    }
    if (is_listed) {
        gar_cancel_remove_waker(cancel, &call->waker);
    }
    return is_interrupted;
}

/* An interrupt that the caller saw goes before everything: its signal handler has run, so it expects to be stopped, also when
 * run came to an end meanwhile. */
static enum gar_status collect(const struct call *call, bool is_interrupted, struct gar_error *err)
{
    if (!is_interrupted && __atomic_load_n(&call->is_done, __ATOMIC_ACQUIRE) != 0) {
        if (call->status < 0 && err != NULL) {
            *err = call->error;
        }
        return call->status;
    }
    const enum gar_status status =
        is_interrupted ? GAR_OK : gar_cancel_status(call->what.cancel, err);
    return status < 0 ? status : gar_error_set(err, GAR_ERR_INTERRUPTED, "interrupted");
}

static void unref(struct call *call)
{
    if (__atomic_sub_fetch(&call->refs, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    if (call->what.release != NULL) {
        call->what.release(call->what.context);
    }
    gar_cancel_unref(call->what.cancel);
    gar_free(call);
}
