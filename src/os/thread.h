/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: started with a name, a 2 MiB stack, all signals blocked and a priority; always joined. */
#ifndef GAR_OS_THREAD_H
#define GAR_OS_THREAD_H

#include <pthread.h>

#include "base/attrs.h"
#include "base/error.h"

enum gar_thread_policy {
    GAR_THREAD_NORMAL, /* the process's policy, with the nice value */
    GAR_THREAD_BATCH,  /* SCHED_BATCH: never preempts on wake-up */
    GAR_THREAD_IDLE,   /* SCHED_IDLE: only when nothing else wants the CPU */
};

struct gar_thread_options {
    const char *name; /* shown by ps and debuggers; cut to 15 bytes */
    int32_t nice;     /* added to the process's nice value; what the system refuses is left out */
    enum gar_thread_policy policy;
};

/* A zeroed struct is "not started". */
struct gar_thread {
    pthread_t handle;
    const void *simulated; /* os/simulate.h's name of it, else NULL */
    bool is_started;
};

/* Run `run(context)` on a new thread. Errors: GAR_ERR_IO with the system's number when none can be started.
 * Owns: borrows context until the join. Threads: any; join from one thread only. */
GAR_MUST_USE enum gar_status gar_thread_start(struct gar_thread *thread,
                                              const struct gar_thread_options *options,
                                              void (*run)(void *context), void *context,
                                              struct gar_error *err);
/* Waits for the end; a thread that was not started is fine. Afterwards the struct is zeroed. */
void gar_thread_join(struct gar_thread *thread);
/* Gives a thread up that may never end (a library that hangs): nobody joins it. What it uses must be its own. */
void gar_thread_detach(struct gar_thread *thread);
/* Forgets a thread without a join: only in a forked child, where it does not exist. */
void gar_thread_forget(struct gar_thread *thread);
bool gar_thread_is_self(const struct gar_thread *thread);
/* An address that names the calling thread as long as it lives. */
const void *gar_thread_self(void);
/* The kernel's number of the calling thread. */
int64_t gar_thread_id(void);
/* The calling thread's name, at most 15 bytes. */
void gar_thread_name(char *out, int64_t out_bytes);
void gar_thread_yield(void);

/* Tell the CPU that this is a spin loop. */
GAR_INLINE void gar_thread_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
