/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated machine: every thread is a fiber on the one real thread, and a seed decides which one goes on at each lock,
 * parker, wake-up and test point. Time is made up: it creeps while somebody works and jumps to the next deadline when nobody
 * can. With nobody able to run and no deadline left, a wake-up was lost: the run ends with a report of who waits where. */
#ifndef GAR_SIM_SCHEDULER_H
#define GAR_SIM_SCHEDULER_H

#include "base/attrs.h"
#include "os/clock.h"

/* ---- random numbers ---- */

struct sim_rng {
    uint64_t state;
};
uint64_t sim_next(struct sim_rng *rng);
/* 0 .. bound - 1. */
int64_t sim_below(struct sim_rng *rng, int64_t bound);
/* True in `percent` of all cases. */
bool sim_chance(struct sim_rng *rng, int32_t percent);

/* ---- a run ---- */

/* Runs body as the first simulated thread, until every thread has ended. Ends the process when the run gets stuck. */
void sim_run(uint64_t seed, bool is_traced, void (*body)(void *context), void *context);
uint64_t sim_seed(void);
int64_t sim_steps(void);

/* A thread of the test: joined by sim_join, exactly once. Spurious wake-ups (signals) come to these threads only. */
struct sim_thread;
struct sim_thread *sim_spawn(const char *name, void (*run)(void *context), void *context);
void sim_join(struct sim_thread *thread);
/* Let others come to run here. */
void sim_point(const char *name);
/* Sleep, in virtual time. */
void sim_sleep(int64_t ns);
/* Virtual time without a side effect. */
int64_t sim_now_ns(void);

/* ---- reports ---- */

/* A line of the trace; costs nothing when not traced. */
void sim_trace(const char *format, ...) GAR_PRINTF(1, 2);
/* A fault: says it with seed, replay line and threads, and ends the process with status 1. */
__attribute__((noreturn)) void sim_fail(const char *format, ...) GAR_PRINTF(1, 2);
#define SIM_CHECK(condition, ...)  \
    do {                           \
        if (!(condition)) {        \
            sim_fail(__VA_ARGS__); \
        }                          \
    } while (0)

#endif
