/* SPDX-License-Identifier: Apache-2.0 */
/* Locks and condition variables over pthreads. */
#include "os/mutex.h"

#include <assert.h>
#include <errno.h>
#include <time.h>

#include "os/clock.h"
#include "os/simulate.h"
#include "os/test_point.h"

void gar_mutex_init(struct gar_mutex *mutex)
{
    /* Default attributes: glibc's cannot fail. */
    (void)pthread_mutex_init(&mutex->handle, NULL);
}

void gar_mutex_destroy(struct gar_mutex *mutex)
{
    (void)pthread_mutex_destroy(&mutex->handle);
}

/* Under a simulation the system's mutex only holds the state: nobody ever blocks in it. */
static void simulated_lock(const struct gar_simulation *simulation,
                           struct gar_mutex *mutex) GAR_NO_TSA
{
    while (pthread_mutex_trylock(&mutex->handle) != 0) {
        (void)simulation->wait(mutex, GAR_CLOCK_NEVER);
    }
}

static void simulated_unlock(const struct gar_simulation *simulation,
                             struct gar_mutex *mutex) GAR_NO_TSA
{
    const int code = pthread_mutex_unlock(&mutex->handle);
    assert(code == 0);
    (void)code;
    simulation->wake(mutex, false);
}

static bool simulated_cond_wait(const struct gar_simulation *simulation, struct gar_cond *cond,
                                struct gar_mutex *mutex, int64_t deadline_ns)
{
    simulated_unlock(simulation, mutex);
    const enum gar_simulated_wait result = simulation->wait(cond, deadline_ns);
    simulated_lock(simulation, mutex);
    return result != GAR_SIMULATED_TIMEOUT;
}

void gar_mutex_lock(struct gar_mutex *mutex) GAR_NO_TSA
{
    GAR_TEST_POINT("lock");
    const struct gar_simulation *simulation = gar_simulation();
    if (GAR_UNLIKELY(simulation != NULL)) {
        simulated_lock(simulation, mutex);
        return;
    }
    const int code = pthread_mutex_lock(&mutex->handle);
    assert(code == 0);
    (void)code;
}

bool gar_mutex_try_lock(struct gar_mutex *mutex) GAR_NO_TSA
{
    return pthread_mutex_trylock(&mutex->handle) == 0;
}

void gar_mutex_unlock(struct gar_mutex *mutex) GAR_NO_TSA
{
    const struct gar_simulation *simulation = gar_simulation();
    if (GAR_UNLIKELY(simulation != NULL)) {
        simulated_unlock(simulation, mutex);
    } else {
        const int code = pthread_mutex_unlock(&mutex->handle);
        assert(code == 0);
        (void)code;
    }
    GAR_TEST_POINT("unlock");
}

void gar_cond_init(struct gar_cond *cond)
{
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&cond->handle, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

void gar_cond_destroy(struct gar_cond *cond)
{
    (void)pthread_cond_destroy(&cond->handle);
}

void gar_cond_wait(struct gar_cond *cond, struct gar_mutex *mutex)
{
    const struct gar_simulation *simulation = gar_simulation();
    if (GAR_UNLIKELY(simulation != NULL)) {
        (void)simulated_cond_wait(simulation, cond, mutex, GAR_CLOCK_NEVER);
        return;
    }
    (void)pthread_cond_wait(&cond->handle, &mutex->handle);
}

bool gar_cond_wait_until(struct gar_cond *cond, struct gar_mutex *mutex, int64_t deadline_ns)
{
    if (deadline_ns == GAR_CLOCK_NEVER) {
        gar_cond_wait(cond, mutex);
        return true;
    }
    const struct gar_simulation *simulation = gar_simulation();
    if (GAR_UNLIKELY(simulation != NULL)) {
        return simulated_cond_wait(simulation, cond, mutex, deadline_ns);
    }
    const int64_t at_ns = gar_max_i64(deadline_ns, 0);
    const struct timespec at = {.tv_sec = at_ns / GAR_NS_PER_S, .tv_nsec = at_ns % GAR_NS_PER_S};
    return pthread_cond_timedwait(&cond->handle, &mutex->handle, &at) != ETIMEDOUT;
}

static bool simulated_cond_wake(const struct gar_cond *cond, bool all)
{
    const struct gar_simulation *simulation = gar_simulation();
    if (GAR_UNLIKELY(simulation != NULL)) {
        simulation->wake(cond, all);
        return true;
    }
    return false;
}

void gar_cond_signal(struct gar_cond *cond)
{
    if (!simulated_cond_wake(cond, false)) {
        (void)pthread_cond_signal(&cond->handle);
    }
}

void gar_cond_broadcast(struct gar_cond *cond)
{
    if (!simulated_cond_wake(cond, true)) {
        (void)pthread_cond_broadcast(&cond->handle);
    }
}

void gar_once_run(struct gar_once *once, void (*fn)(void))
{
    (void)pthread_once(&once->handle, fn);
}
