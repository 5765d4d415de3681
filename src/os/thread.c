/* SPDX-License-Identifier: Apache-2.0 */
/* Threads over pthreads. The new thread inherits a blocked signal mask from its starter, so that no handler of the host
 * ever runs on it, not even before its first instruction. Signals that report the thread's own faults stay open: a
 * crash handler of the host still sees them. */
#include "os/thread.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "os/fault.h"
#include "os/simulate.h"

#if defined(GAR_SANITIZED)
#define STACK_BYTES (8 << 20) /* instrumented frames are several times larger */
#else
#define STACK_BYTES (2 << 20)
#endif

/* Handed from the starter to the new thread, which frees it. */
struct start {
    void (*run)(void *context);
    void *context;
    int32_t nice;
    enum gar_thread_policy policy;
    char name[16];
};

static int start_blocked(pthread_t *handle, struct start *start);
static void *enter(void *argument);
static void enter_simulated(void *argument);
static void run_start(struct start *start);
static void set_priority(const struct start *start);

enum gar_status gar_thread_start(struct gar_thread *thread,
                                 const struct gar_thread_options *options,
                                 void (*run)(void *context), void *context, struct gar_error *err)
{
    struct start *start = gar_calloc(1, (int64_t)sizeof *start);
    if (start == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *start);
    }
    start->run = run;
    start->context = context;
    start->nice = options->nice;
    start->policy = options->policy;
    const size_t name_bytes = strnlen(options->name, sizeof start->name - 1);
    memcpy(start->name, options->name, name_bytes);
    int code = gar_os_fault_hit(GAR_OS_THREAD);
    const struct gar_simulation *simulation = gar_simulation();
    if (code == 0 && GAR_UNLIKELY(simulation != NULL)) {
        code = simulation->start(start->name, enter_simulated, start, &thread->simulated);
    } else if (code == 0) {
        code = start_blocked(&thread->handle, start);
    }
    if (code != 0) {
        gar_free(start);
        return gar_error_set_errno(
            err, code, "cannot start thread '%s'; raise the limit of processes or close others",
            options->name);
    }
    thread->is_started = true;
    return GAR_OK;
}

void gar_thread_join(struct gar_thread *thread)
{
    if (thread->is_started) {
        if (GAR_UNLIKELY(thread->simulated != NULL)) {
            gar_simulation()->join(thread->simulated);
        } else {
            (void)pthread_join(thread->handle, NULL);
        }
        memset(thread, 0, sizeof *thread);
    }
}

void gar_thread_detach(struct gar_thread *thread)
{
    if (thread->is_started) {
        (void)pthread_detach(thread->handle);
        memset(thread, 0, sizeof *thread);
    }
}

void gar_thread_forget(struct gar_thread *thread)
{
    memset(thread, 0, sizeof *thread);
}

bool gar_thread_is_self(const struct gar_thread *thread)
{
    if (GAR_UNLIKELY(thread->simulated != NULL)) {
        return thread->is_started && thread->simulated == gar_thread_self();
    }
    return thread->is_started && pthread_equal(thread->handle, pthread_self()) != 0;
}

const void *gar_thread_self(void)
{
    static _Thread_local char name;
    const struct gar_simulation *simulation = gar_simulation();
    return GAR_UNLIKELY(simulation != NULL) ? simulation->self() : &name;
}

void gar_thread_name(char *out, int64_t out_bytes)
{
    char name[16] = "";
    (void)pthread_getname_np(pthread_self(), name, sizeof name);
    (void)snprintf(out, (size_t)out_bytes, "%s", name);
}

int64_t gar_thread_id(void)
{
    return (int64_t)syscall(SYS_gettid);
}

void gar_thread_yield(void)
{
    const struct gar_simulation *simulation = gar_simulation();
    if (GAR_UNLIKELY(simulation != NULL)) {
        simulation->point("yield");
    } else {
        (void)sched_yield();
    }
}

static int start_blocked(pthread_t *handle, struct start *start)
{
    pthread_attr_t attributes;
    int code = pthread_attr_init(&attributes);
    if (code != 0) {
        return code;
    }
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    static const int own_faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t blocked;
    sigset_t before;
    (void)sigfillset(&blocked);
    for (int64_t i = 0; i < GAR_COUNT_OF(own_faults); i++) {
        (void)sigdelset(&blocked, own_faults[i]);
    }
    (void)pthread_sigmask(SIG_SETMASK, &blocked, &before);
    code = pthread_create(handle, &attributes, enter, start);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return code;
}

static void *enter(void *argument)
{
    struct start *start = argument;
    (void)pthread_setname_np(pthread_self(), start->name);
    set_priority(start);
    run_start(start);
    return NULL;
}

static void enter_simulated(void *argument)
{
    run_start(argument);
}

static void run_start(struct start *start)
{
    void (*const run)(void *) = start->run;
    void *const context = start->context;
    gar_free(start);
    run(context);
}

/* On Linux both calls act on one thread. What is not allowed is left as it is. */
static void set_priority(const struct start *start)
{
    if (start->policy != GAR_THREAD_NORMAL) {
        const struct sched_param none = {.sched_priority = 0};
        (void)sched_setscheduler(0, start->policy == GAR_THREAD_BATCH ? SCHED_BATCH : SCHED_IDLE,
                                 &none);
    }
    if (start->nice != 0) {
        const id_t self = (id_t)gar_thread_id();
        (void)setpriority(PRIO_PROCESS, self, getpriority(PRIO_PROCESS, self) + start->nice);
    }
}
