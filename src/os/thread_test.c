/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, parkers, conditions, event descriptors, forks. */
#include "os/thread.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/clock.h"
#include "os/event_fd.h"
#include "os/fault.h"
#include "os/fork.h"
#include "os/mutex.h"
#include "os/park.h"
#include "os/thread.h"

struct seen {
    char name[16];
    sigset_t mask;
};

static void look(void *context)
{
    struct seen *seen = context;
    (void)pthread_getname_np(pthread_self(), seen->name, sizeof seen->name);
    (void)pthread_sigmask(SIG_BLOCK, NULL, &seen->mask);
}

static void test_name_and_mask(void **state)
{
    (void)state;
    struct gar_thread thread = {0};
    struct seen seen;
    const struct gar_thread_options options = {
        .name = "A-Rather-Long-Thread-Name", .nice = 1, .policy = GAR_THREAD_BATCH};
    assert_int_equal(gar_thread_start(&thread, &options, look, &seen, NULL), GAR_OK);
    assert_false(gar_thread_is_self(&thread));
    gar_thread_join(&thread);
    gar_thread_join(&thread); /* again is fine */
    assert_string_equal(seen.name, "A-Rather-Long-T");
    assert_int_equal(sigismember(&seen.mask, SIGINT), 1);
    assert_int_equal(sigismember(&seen.mask, SIGTERM), 1);
    assert_int_equal(sigismember(&seen.mask, SIGSEGV), 0);
    sigset_t own;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &own);
    assert_int_equal(sigismember(&own, SIGINT), 0);
}

static void test_start_refused(void **state)
{
    (void)state;
    struct gar_thread thread = {0};
    struct gar_error err = GAR_ERROR_INIT;
    const struct gar_thread_options options = {.name = "None"};
    const struct gar_os_fault refused = {.call = GAR_OS_THREAD, .nth = 1, .os_errno = EAGAIN};
    gar_os_fault_set(&refused);
    assert_int_equal(gar_thread_start(&thread, &options, look, NULL, &err), GAR_ERR_IO);
    gar_os_fault_set(NULL);
    assert_int_equal(err.os_errno, EAGAIN);
    gar_thread_join(&thread);
}

struct ping {
    struct gar_parker here;
    struct gar_parker there;
    int64_t rounds;
};

static void answer(void *context)
{
    struct ping *ping = context;
    for (int64_t i = 0; i < ping->rounds; i++) {
        (void)gar_parker_wait(&ping->there, GAR_CLOCK_NEVER);
        gar_parker_wake(&ping->here);
    }
}

static void test_parker(void **state)
{
    (void)state;
    struct ping ping = {.rounds = 1000};
    const int64_t start_ns = gar_clock_ns();
    assert_int_equal(gar_parker_wait(&ping.here, start_ns + 5 * GAR_NS_PER_MS), GAR_PARK_TIMEOUT);
    assert_true(gar_clock_ns() - start_ns >= 5 * GAR_NS_PER_MS);
    gar_parker_wake(&ping.here);
    gar_parker_wake(&ping.here);
    assert_int_equal(gar_parker_wait(&ping.here, 0), GAR_PARK_WOKEN);
    assert_int_equal(gar_parker_wait(&ping.here, 0), GAR_PARK_TIMEOUT);
    struct gar_thread thread = {0};
    const struct gar_thread_options options = {.name = "Answer"};
    assert_int_equal(gar_thread_start(&thread, &options, answer, &ping, NULL), GAR_OK);
    for (int64_t i = 0; i < ping.rounds; i++) {
        gar_parker_wake(&ping.there);
        assert_int_equal(gar_parker_wait(&ping.here, gar_clock_deadline(10 * GAR_NS_PER_S)),
                         GAR_PARK_WOKEN);
    }
    gar_thread_join(&thread);
}

static void on_signal(int number)
{
    (void)number;
}

static void interrupt_later(void *context)
{
    (void)gar_clock_ns();
    (void)usleep(20000);
    (void)pthread_kill(*(pthread_t *)context, SIGUSR1);
}

/* A handled signal ends the sleep, with SA_RESTART too. */
static void test_parker_signal(void **state)
{
    (void)state;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    pthread_t self = pthread_self();
    struct gar_thread thread = {0};
    const struct gar_thread_options options = {.name = "Signal"};
    assert_int_equal(gar_thread_start(&thread, &options, interrupt_later, &self, NULL), GAR_OK);
    struct gar_parker parker = {0};
    assert_int_equal(gar_parker_wait(&parker, gar_clock_deadline(10 * GAR_NS_PER_S)),
                     GAR_PARK_SIGNAL);
    gar_thread_join(&thread);
}

struct box {
    struct gar_mutex lock;
    struct gar_cond changed;
    bool is_set GAR_GUARDED;
};

static void set_box(void *context)
{
    struct box *box = context;
    gar_mutex_lock(&box->lock);
    box->is_set = true;
    gar_cond_signal(&box->changed);
    gar_mutex_unlock(&box->lock);
}

static void test_condition(void **state)
{
    (void)state;
    struct box box;
    memset(&box, 0, sizeof box);
    gar_mutex_init(&box.lock);
    gar_cond_init(&box.changed);
    gar_mutex_lock(&box.lock);
    assert_false(gar_cond_wait_until(&box.changed, &box.lock, gar_clock_ns() + GAR_NS_PER_MS));
    struct gar_thread thread = {0};
    const struct gar_thread_options options = {.name = "Set"};
    assert_int_equal(gar_thread_start(&thread, &options, set_box, &box, NULL), GAR_OK);
    while (!box.is_set) {
        assert_true(
            gar_cond_wait_until(&box.changed, &box.lock, gar_clock_deadline(10 * GAR_NS_PER_S)));
    }
    gar_mutex_unlock(&box.lock);
    gar_thread_join(&thread);
    gar_cond_destroy(&box.changed);
    gar_mutex_destroy(&box.lock);
}

static void test_event_fd(void **state)
{
    (void)state;
    int fd = -1;
    assert_int_equal(gar_event_fd_open(&fd, NULL), GAR_OK);
    assert_int_equal(gar_event_fd_wait(fd, 0), GAR_PENDING);
    gar_event_fd_signal(fd);
    gar_event_fd_signal(fd);
    assert_int_equal(gar_event_fd_wait(fd, GAR_CLOCK_NEVER), GAR_OK);
    gar_event_fd_clear(fd);
    assert_int_equal(gar_event_fd_wait(fd, gar_clock_ns() + GAR_NS_PER_MS), GAR_PENDING);
    gar_event_fd_close(fd);
    gar_event_fd_close(-1);
    const struct gar_os_fault full = {.call = GAR_OS_EVENT_FD, .nth = 1, .os_errno = EMFILE};
    gar_os_fault_set(&full);
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(gar_event_fd_open(&fd, &err), GAR_ERR_IO);
    gar_os_fault_set(NULL);
    assert_int_equal(err.os_errno, EMFILE);
}

static int forks_seen;
static void before(void)
{
    forks_seen++;
}
static void after(void)
{
    forks_seen++;
}

static void test_fork(void **state)
{
    (void)state;
    static struct gar_fork_handler handler = {
        .before = before, .after_in_parent = after, .after_in_child = after};
    gar_fork_register(&handler);
    const uint64_t generation = gar_fork_generation();
    const pid_t child = fork();
    if (child == 0) {
        _exit(gar_fork_generation() == generation + 1 && forks_seen == 2 ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(gar_fork_generation(), generation);
    assert_int_equal(forks_seen, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_name_and_mask), cmocka_unit_test(test_start_refused),
        cmocka_unit_test(test_parker),        cmocka_unit_test(test_parker_signal),
        cmocka_unit_test(test_condition),     cmocka_unit_test(test_event_fd),
        cmocka_unit_test(test_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
