/* SPDX-License-Identifier: Apache-2.0 */
/* Locks and condition variables with clang's thread-safety annotations; timed waits use the monotonic clock. */
#ifndef GAR_OS_MUTEX_H
#define GAR_OS_MUTEX_H

#include <pthread.h>

#include "base/attrs.h"

struct GAR_CAPABILITY("mutex") gar_mutex {
    pthread_mutex_t handle;
};

struct gar_cond {
    pthread_cond_t handle;
};

/* For static storage; gar_mutex_init does the same at run time and cannot fail. */
#define GAR_MUTEX_INIT            \
    {                             \
        PTHREAD_MUTEX_INITIALIZER \
    }

void gar_mutex_init(struct gar_mutex *mutex);
void gar_mutex_destroy(struct gar_mutex *mutex);
void gar_mutex_lock(struct gar_mutex *mutex) GAR_ACQUIRES(mutex);
bool gar_mutex_try_lock(struct gar_mutex *mutex) GAR_TSA(try_acquire_capability(true, mutex));
void gar_mutex_unlock(struct gar_mutex *mutex) GAR_RELEASES(mutex);

void gar_cond_init(struct gar_cond *cond);
void gar_cond_destroy(struct gar_cond *cond);
/* May wake without a signal: test the condition in a loop. */
void gar_cond_wait(struct gar_cond *cond, struct gar_mutex *mutex) GAR_REQUIRES(mutex);
/* False when deadline_ns (gar_clock_ns) has passed. */
bool gar_cond_wait_until(struct gar_cond *cond, struct gar_mutex *mutex, int64_t deadline_ns)
    GAR_REQUIRES(mutex);
void gar_cond_signal(struct gar_cond *cond);
void gar_cond_broadcast(struct gar_cond *cond);

/* Runs fn exactly once in the process; every caller returns after it has run. */
struct gar_once {
    pthread_once_t handle;
};
#define GAR_ONCE_INIT     \
    {                     \
        PTHREAD_ONCE_INIT \
    }
void gar_once_run(struct gar_once *once, void (*fn)(void));

#endif
