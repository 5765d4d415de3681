/* SPDX-License-Identifier: Apache-2.0 */
/* Fibers, virtual time and the choice of who runs.
 *
 * A fiber gives up the machine only in point (at random) and in wait. Both go back to the loop in sim_run, which picks the next
 * one. How it picks is drawn once a run, because different faults hide under different orders: by weight (some threads are a
 * hundred times slower than others), or by priority with a few changes at random steps. */
#include "scheduler.h"

#include <dlfcn.h>
#include <errno.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/stop.h"
#include "os/simulate.h"

enum {
    THREADS_MAX = 128,
    NAME_BYTES = 32,
    STACK_BYTES = 2 << 20,
    GUARD_BYTES = 1 << 12,
    POINT_NS_MAX = 2000, /* one step of somebody's work takes up to so long */
};

#define STEPS_MAX   INT64_C(20000000)
#define TIME_MAX_NS (INT64_C(100000) * GAR_NS_PER_S)

enum state { STATE_FREE, STATE_READY, STATE_WAITING, STATE_ENDED };
enum policy { POLICY_WEIGHTS, POLICY_PRIORITIES };

struct sim_thread {
    ucontext_t context;
    char name[NAME_BYTES];
    void (*run)(void *context);
    void *argument;
    char *stack; /* kept when the thread ends, for the next one */
    void *fake_stack;
    enum state state;
    const void *address; /* WAITING */
    int64_t deadline_ns; /* WAITING */
    enum gar_simulated_wait result;
    const char *place;
    int64_t weight;           /* or priority */
    const int32_t *stop_word; /* thread-local variables of the engine that matter: gar_stop_word */
    bool takes_signals;
    bool is_joined;
};

static struct {
    struct sim_rng rng;
    uint64_t seed;
    bool is_traced;
    bool is_running;
    enum policy policy;
    int32_t switch_percent; /* at a point */
    int32_t signal_permille;
    int64_t change_step; /* priorities: when the running one falls to the lowest */
    int64_t lowest;
    int64_t now_ns;
    int64_t steps;
    struct sim_thread threads[THREADS_MAX];
    struct sim_thread *current;
    ucontext_t loop;
    void *loop_fake_stack;
    const void *loop_stack;
    size_t loop_stack_bytes;
} machine;

/* The C library's own swapcontext. AddressSanitizer's clears the marks of the whole stack at each switch, which costs two system
 * calls; ours are kept right by the calls for fibers. */
static int (*swap)(ucontext_t *from, const ucontext_t *to);

static struct sim_thread *start_thread(const char *name, void (*run)(void *context), void *context);
static void enter_thread(void);
static void leave_thread(bool is_last);
static struct sim_thread *choose(void);
static struct sim_thread *choose_ready(void);
static bool is_able(const struct sim_thread *thread);
static bool jump_to_deadline(void);
static void run_thread(struct sim_thread *thread);
static void print_threads(void);
static void on_abort(int signal);
static void on_death(void);

/* ---- random numbers ---- */

uint64_t sim_next(struct sim_rng *rng)
{
    rng->state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = rng->state;
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

int64_t sim_below(struct sim_rng *rng, int64_t bound)
{
    return (int64_t)(sim_next(rng) % (uint64_t)bound);
}

bool sim_chance(struct sim_rng *rng, int32_t percent)
{
    return sim_below(rng, 100) < percent;
}

/* ---- what the engine sees ---- */

static int64_t machine_clock(void)
{
    machine.now_ns += 1 + sim_below(&machine.rng, 50);
    return machine.now_ns;
}

static void machine_point(const char *name)
{
    struct sim_thread *self = machine.current;
    const bool is_yield = strcmp(name, "yield") == 0 || strcmp(name, "spin") == 0;
    self->place = name;
    machine.steps++;
    machine.now_ns += sim_below(&machine.rng, POINT_NS_MAX);
    if (machine.policy == POLICY_PRIORITIES && (is_yield || machine.steps >= machine.change_step)) {
        self->weight = machine.lowest--;
        machine.change_step =
            is_yield ? machine.change_step : machine.steps + 1 + sim_below(&machine.rng, 4000);
        leave_thread(false);
    } else if (is_yield || sim_chance(&machine.rng, machine.switch_percent)) {
        leave_thread(false);
    }
}

static enum gar_simulated_wait machine_wait(const void *address, int64_t deadline_ns)
{
    struct sim_thread *self = machine.current;
    machine.steps++;
    self->address = address;
    self->deadline_ns = deadline_ns;
    self->state = STATE_WAITING;
    leave_thread(false);
    return self->result;
}

static void machine_wake(const void *address, bool all)
{
    struct sim_thread *sleepers[THREADS_MAX];
    int64_t count = 0;
    for (int64_t i = 0; i < THREADS_MAX; i++) {
        struct sim_thread *thread = &machine.threads[i];
        if (thread->state == STATE_WAITING && thread->address == address) {
            sleepers[count++] = thread;
        }
    }
    const int64_t only = count > 0 && !all ? sim_below(&machine.rng, count) : -1;
    for (int64_t i = 0; i < count; i++) {
        if (only < 0 || i == only) {
            sleepers[i]->state = STATE_READY;
            sleepers[i]->result = GAR_SIMULATED_WOKEN;
        }
    }
}

static int machine_start(const char *name, void (*run)(void *context), void *context,
                         const void **out_self)
{
    struct sim_thread *thread = start_thread(name, run, context);
    *out_self = thread;
    return thread == NULL ? EAGAIN : 0;
}

static void machine_join(const void *self)
{
    sim_join(&machine.threads[(const struct sim_thread *)self - machine.threads]);
}

static const void *machine_self(void)
{
    return machine.current != NULL ? (const void *)machine.current : (const void *)&machine;
}

static const struct gar_simulation simulation = {
    .clock_ns = machine_clock,
    .point = machine_point,
    .wait = machine_wait,
    .wake = machine_wake,
    .start = machine_start,
    .join = machine_join,
    .self = machine_self,
};

/* ---- a run ---- */

void sim_run(uint64_t seed, bool is_traced, void (*body)(void *context), void *context)
{
    machine.rng = (struct sim_rng){.state = seed * UINT64_C(0xD1342543DE82EF95) + 1};
    machine.seed = seed;
    machine.is_traced = is_traced;
    machine.is_running = true;
    machine.now_ns = GAR_NS_PER_S;
    machine.steps = 0;
    machine.policy = sim_chance(&machine.rng, 60) ? POLICY_WEIGHTS : POLICY_PRIORITIES;
    const int32_t percents[4] = {2, 10, 30, 100};
    machine.switch_percent = percents[sim_below(&machine.rng, 4)];
    machine.signal_permille = sim_chance(&machine.rng, 30) ? 20 : 0;
    machine.change_step = 1 + sim_below(&machine.rng, 500);
    machine.lowest = -1;
    void *found = dlsym(RTLD_NEXT, "swapcontext");
    memcpy(&swap, &found, sizeof swap);
    const struct sigaction abort_action = {.sa_handler = on_abort};
    (void)sigaction(SIGABRT, &abort_action, NULL);
    __sanitizer_set_death_callback(on_death);
    gar_simulation_set(&simulation);
    struct sim_thread *first = start_thread("main", body, context);
    first->is_joined = true;
    first->takes_signals = true;
    for (struct sim_thread *next = choose(); next != NULL; next = choose()) {
        run_thread(next);
    }
    gar_simulation_set(NULL);
    machine.is_running = false;
}

uint64_t sim_seed(void)
{
    return machine.seed;
}

int64_t sim_steps(void)
{
    return machine.steps;
}

struct sim_thread *sim_spawn(const char *name, void (*run)(void *context), void *context)
{
    struct sim_thread *thread = start_thread(name, run, context);
    SIM_CHECK(thread != NULL, "the simulation has no place for thread '%s'", name);
    thread->takes_signals = true;
    return thread;
}

void sim_join(struct sim_thread *thread)
{
    SIM_CHECK(!thread->is_joined, "thread '%s' is joined twice", thread->name);
    while (thread->state != STATE_ENDED) {
        (void)machine_wait(thread, GAR_CLOCK_NEVER);
    }
    thread->is_joined = true;
    thread->state = STATE_FREE;
}

void sim_point(const char *name)
{
    machine_point(name);
}

void sim_sleep(int64_t ns)
{
    const int64_t until_ns = machine.now_ns + ns;
    while (machine.now_ns < until_ns) {
        (void)machine_wait(&machine.current->name, until_ns);
    }
}

int64_t sim_now_ns(void)
{
    return machine.now_ns;
}

/* ---- threads ---- */

static struct sim_thread *start_thread(const char *name, void (*run)(void *context), void *context)
{
    struct sim_thread *thread = NULL;
    for (int64_t i = 0; i < THREADS_MAX && thread == NULL; i++) {
        thread = machine.threads[i].state == STATE_FREE ? &machine.threads[i] : NULL;
    }
    if (thread == NULL) {
        return NULL;
    }
    char *stack = thread->stack;
    if (stack == NULL) {
        stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        SIM_CHECK(stack != MAP_FAILED && mprotect(stack, GUARD_BYTES, PROT_NONE) == 0,
                  "no memory for the stack of thread '%s'", name);
    }
    memset(thread, 0, sizeof *thread);
    (void)snprintf(thread->name, sizeof thread->name, "%s", name);
    thread->run = run;
    thread->argument = context;
    thread->stack = stack;
    thread->state = STATE_READY;
    thread->place = "start";
    const int64_t weights[4] = {100, 100, 10, 1};
    thread->weight = machine.policy == POLICY_WEIGHTS ? weights[sim_below(&machine.rng, 4)]
                                                      : (int64_t)(sim_next(&machine.rng) % 1000000);
    __asan_unpoison_memory_region(stack + GUARD_BYTES, STACK_BYTES - GUARD_BYTES);
    (void)getcontext(&thread->context);
    thread->context.uc_stack.ss_sp = stack + GUARD_BYTES;
    thread->context.uc_stack.ss_size = STACK_BYTES - GUARD_BYTES;
    thread->context.uc_link = NULL;
    makecontext(&thread->context, enter_thread, 0);
    sim_trace("starts '%s'", name);
    return thread;
}

static void enter_thread(void)
{
    __sanitizer_finish_switch_fiber(NULL, &machine.loop_stack, &machine.loop_stack_bytes);
    struct sim_thread *self = machine.current;
    self->run(self->argument);
    sim_trace("ends");
    self->state = STATE_ENDED;
    self->place = "end";
    machine_wake(self, true);
    if (self == &machine.threads[0]) {
        self->state = STATE_FREE;
    }
    leave_thread(true);
}

static void leave_thread(bool is_last)
{
    struct sim_thread *self = machine.current;
    const int32_t *stop = gar_stop_word; /* of a real thread: each has its own */
    gar_stop_word = NULL;
    __sanitizer_start_switch_fiber(is_last ? NULL : &self->fake_stack, machine.loop_stack,
                                   machine.loop_stack_bytes);
    (void)swap(&self->context, &machine.loop);
    __sanitizer_finish_switch_fiber(self->fake_stack, NULL, NULL);
    gar_stop_word = stop;
}

static void run_thread(struct sim_thread *thread)
{
    machine.current = thread;
    gar_stop_word = thread->stop_word;
    __sanitizer_start_switch_fiber(&machine.loop_fake_stack, thread->stack + GUARD_BYTES,
                                   STACK_BYTES - GUARD_BYTES);
    (void)swap(&machine.loop, &thread->context);
    __sanitizer_finish_switch_fiber(machine.loop_fake_stack, NULL, NULL);
    thread->stop_word = gar_stop_word;
    machine.current = NULL;
}

/* ---- the choice ---- */

static bool is_able(const struct sim_thread *thread)
{
    return thread->state == STATE_READY ||
           (thread->state == STATE_WAITING && thread->deadline_ns <= machine.now_ns);
}

/* NULL: all have ended. */
static struct sim_thread *choose(void)
{
    SIM_CHECK(machine.steps < STEPS_MAX, "no end after %lld steps", (long long)machine.steps);
    SIM_CHECK(machine.now_ns < TIME_MAX_NS, "no end in %lld simulated seconds",
              (long long)(machine.now_ns / GAR_NS_PER_S));
    struct sim_thread *next = choose_ready();
    while (next == NULL && jump_to_deadline()) {
        next = choose_ready();
    }
    if (next == NULL) {
        for (int64_t i = 0; i < THREADS_MAX; i++) {
            SIM_CHECK(machine.threads[i].state != STATE_WAITING,
                      "DEADLOCK: everybody waits and no deadline is left; a wake-up was lost");
            SIM_CHECK(machine.threads[i].state != STATE_ENDED, "thread '%s' was never joined",
                      machine.threads[i].name);
        }
        return NULL;
    }
    if (next->state == STATE_WAITING) {
        next->state = STATE_READY;
        next->result =
            next->deadline_ns <= machine.now_ns ? GAR_SIMULATED_TIMEOUT : GAR_SIMULATED_SIGNAL;
    }
    return next;
}

static struct sim_thread *choose_ready(void)
{
    struct sim_thread *able[THREADS_MAX];
    int64_t count = 0;
    int64_t sum = 0;
    struct sim_thread *first = NULL;
    for (int64_t i = 0; i < THREADS_MAX; i++) {
        struct sim_thread *thread = &machine.threads[i];
        if (thread->state == STATE_WAITING && thread->takes_signals &&
            machine.signal_permille > 0 && thread->address != &thread->name &&
            sim_below(&machine.rng, 1000) < machine.signal_permille) {
            return thread;
        }
        if (is_able(thread)) {
            able[count++] = thread;
            sum += thread->weight;
            first = first == NULL || thread->weight > first->weight ? thread : first;
        }
    }
    if (count == 0 || machine.policy == POLICY_PRIORITIES) {
        return first;
    }
    int64_t at = sim_below(&machine.rng, sum);
    for (int64_t i = 0; i < count; i++) {
        at -= able[i]->weight;
        if (at < 0) {
            return able[i];
        }
    }
    return first;
}

/* False when nobody waits for a time. */
static bool jump_to_deadline(void)
{
    int64_t earliest_ns = GAR_CLOCK_NEVER;
    for (int64_t i = 0; i < THREADS_MAX; i++) {
        const struct sim_thread *thread = &machine.threads[i];
        if (thread->state == STATE_WAITING && thread->deadline_ns < earliest_ns) {
            earliest_ns = thread->deadline_ns;
        }
    }
    if (earliest_ns == GAR_CLOCK_NEVER) {
        return false;
    }
    machine.now_ns = earliest_ns;
    return true;
}

/* ---- reports ---- */

void sim_trace(const char *format, ...)
{
    if (!machine.is_traced) {
        return;
    }
    va_list args;
    va_start(args, format);
    printf("%12.3f us %-16s ", (double)machine.now_ns / 1000,
           machine.current != NULL ? machine.current->name : "-");
    (void)vprintf(format, args);
    printf("\n");
    va_end(args);
}

void sim_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("FAILED seed %llu: ", (unsigned long long)machine.seed);
    (void)vprintf(format, args);
    printf("\n");
    va_end(args);
    print_threads();
    printf("replay: sim --seed %llu --trace\n", (unsigned long long)machine.seed);
    (void)fflush(stdout);
    _exit(1);
}

static void print_threads(void)
{
    static const char *const states[] = {"", "could run", "waits", "has ended"};
    printf("at %.3f us, step %lld, running '%s':\n", (double)machine.now_ns / 1000,
           (long long)machine.steps, machine.current != NULL ? machine.current->name : "nobody");
    for (int64_t i = 0; i < THREADS_MAX; i++) {
        const struct sim_thread *thread = &machine.threads[i];
        if (thread->state == STATE_FREE) {
            continue;
        }
        printf("  %-16s %-9s last point '%s'", thread->name, states[thread->state], thread->place);
        if (thread->state == STATE_WAITING && thread->deadline_ns != GAR_CLOCK_NEVER) {
            printf(", until %.3f us", (double)thread->deadline_ns / 1000);
        }
        printf("\n");
    }
}

/* An assert of the engine. */
static void on_abort(int signal)
{
    (void)signal;
    if (machine.is_running) {
        sim_fail("the engine aborted (its message is above)");
    }
    _exit(1);
}

/* A sanitizer's report. */
static void on_death(void)
{
    if (machine.is_running) {
        sim_fail("a sanitizer found a fault (its report is above)");
    }
}
