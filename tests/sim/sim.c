/* SPDX-License-Identifier: Apache-2.0 */
/* Many simulated sessions, one a seed. See README.md.
 *
 * Usage: sim [--first N] [--count N]     sessions N, N + 1, ...
 *        sim --seed N [--trace]          one, as it happened */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/memory.h"
#include "os/fault.h"
#include "os/fork.h"
#include "plays.h"
#include "world.h"

enum { PLAYS_MAX = 8, WARM_UPS = 8 };

struct sim_later {
    struct sim_later *next;
    void (*free_object)(void *object);
    void *object;
};

/* What all sessions together have seen: a simulation that meets no error tests little. */
static struct {
    int64_t steps;
    int64_t seconds;
    int64_t ends[64];
    int64_t drops;
} seen;

void sim_play_later(struct sim_play *play, void (*free_object)(void *object), void *object)
{
    struct sim_later *later = malloc(sizeof *later);
    SIM_CHECK(later != NULL, "no memory");
    *later = (struct sim_later){.next = play->later, .free_object = free_object, .object = object};
    play->later = later;
}

static void free_later(struct sim_play *play)
{
    while (play->later != NULL) {
        struct sim_later *later = play->later;
        play->later = later->next;
        later->free_object(later->object);
        free(later);
    }
}

/* ---- memory that runs out ---- */

/* From some time on one allocation fails, or all for a while. */
static void refuse_memory(void *context)
{
    struct sim_play *play = context;
    sim_sleep(sim_below(&play->rng, sim_chance(&play->rng, 50) ? 100000 : 10 * GAR_NS_PER_MS));
    play->has_refused_memory = true;
    for (int64_t i = sim_below(&play->rng, 4); i >= 0; i--) {
        const bool and_on = sim_chance(&play->rng, 20);
        sim_trace("memory runs out");
        (void)gar_alloc_fail_at(1 + sim_below(&play->rng, 60), and_on);
        sim_sleep(sim_below(&play->rng, GAR_NS_PER_MS));
        (void)gar_alloc_fail_at(0, false);
        sim_trace("there is memory again");
    }
}

/* ---- a session ---- */

static void make_runtime(struct sim_play *play)
{
    const struct gar_memory_pool_options memory = {.limit_bytes = INT64_C(1) << 30};
    SIM_CHECK(gar_memory_pool_new(&memory, &play->memory, NULL) == GAR_OK, "no memory");
    const struct gar_runtime_options options = {
        .compute_threads = 1 + (int32_t)sim_below(&play->rng, 4),
        .io_threads = 1 + (int32_t)sim_below(&play->rng, 3),
        .memory = play->memory,
    };
    SIM_CHECK(gar_runtime_new(&options, &play->runtime, NULL) == GAR_OK, "no memory");
    sim_trace("%d compute threads, %d IO threads, %s%s", (int)options.compute_threads,
              (int)options.io_threads, play->has_faults ? "faults " : "",
              play->has_stops ? "stops" : "");
}

static struct sim_thread *start_play(struct sim_play *play)
{
    switch (sim_below(&play->rng, 15)) {
    case 0: return sim_play_call(play);
    case 1: return sim_play_operation(play);
    case 2: return sim_play_stream(play);
    case 3: return sim_play_bell(play);
    case 4: return sim_play_ledger(play);
    case 5:
    case 6: return sim_play_pool(play);
    default: return sim_play_query(play);
    }
}

static void play_session(void *context)
{
    struct sim_play *play = context;
    struct sim_thread *threads[PLAYS_MAX];
    /* The n-th thread, or all from there on, cannot be started. */
    const struct gar_os_fault no_thread = {.call = GAR_OS_THREAD,
                                           .nth = 1 + sim_below(&play->rng, 8),
                                           .and_on = sim_chance(&play->rng, 50),
                                           .os_errno = EAGAIN};
    play->has_few_threads = play->has_faults && sim_chance(&play->rng, 15);
    gar_os_fault_set(play->has_few_threads ? &no_thread : NULL);
    const int64_t count = 1 + sim_below(&play->rng, sim_chance(&play->rng, 70) ? 3 : PLAYS_MAX);
    make_runtime(play);
    for (int64_t i = 0; i < count; i++) {
        threads[i] = start_play(play);
    }
    struct sim_thread *refuser = play->has_faults && sim_chance(&play->rng, 40)
                                     ? sim_spawn("memory", refuse_memory, play)
                                     : NULL;
    for (int64_t i = 0; i < count; i++) {
        sim_join(threads[i]);
    }
    if (refuser != NULL) {
        sim_join(refuser);
    }
    gar_runtime_free(play->runtime);
    free_later(play);
    struct gar_memory_usage usage;
    gar_memory_pool_usage(play->memory, &usage);
    SIM_CHECK(usage.used_bytes == 0, "%lld bytes of column memory are left over",
              (long long)usage.used_bytes);
    gar_memory_pool_unref(play->memory);
    seen.seconds += sim_now_ns() / GAR_NS_PER_S;
}

/* Calm sessions find wrong rows, those with faults and stops wrong ends. */
static void run_session(uint64_t seed, bool is_traced)
{
    struct sim_play play = {.rng = {.state = seed ^ UINT64_C(0x5DEECE66D)}};
    play.has_faults = sim_chance(&play.rng, 50);
    play.has_stops = sim_chance(&play.rng, 60);
    const int64_t blocks = gar_alloc_live_blocks();
    const int64_t bytes = gar_memory_system_live_bytes();
    sim_run(seed, is_traced, play_session, &play);
    SIM_CHECK(gar_alloc_live_blocks() == blocks, "%lld blocks of memory are left over",
              (long long)(gar_alloc_live_blocks() - blocks));
    SIM_CHECK(gar_memory_system_live_bytes() == bytes, "%lld bytes of memory are left over",
              (long long)(gar_memory_system_live_bytes() - bytes));
    SIM_CHECK(sim_world_open() == 0, "%lld objects of the tables and files are left over",
              (long long)sim_world_open());
    seen.steps += sim_steps();
    seen.drops += play.drops;
    for (int64_t i = 0; i < GAR_COUNT_OF(seen.ends); i++) {
        seen.ends[i] += play.ends[i];
    }
}

static void trace_log(void *context, enum gar_log_level level, const char *message)
{
    (void)context;
    (void)level;
    sim_trace("log: %s", message);
}

static uint64_t read_number(const char *text)
{
    char *end = NULL;
    const unsigned long long value = strtoull(text, &end, 10);
    if (end == text || *end != '\0') {
        (void)fprintf(stderr, "sim: '%s' is not a number\n", text);
        exit(2);
    }
    return value;
}

/* What the process makes once must not happen in the middle of a session that is to be repeated. */
static void warm_up(void)
{
    (void)gar_fork_generation();
    gar_log_set(GAR_LOG_INFO, trace_log, NULL);
    for (uint64_t i = 0; i < WARM_UPS; i++) {
        run_session(UINT64_MAX - i, false);
    }
    memset(&seen, 0, sizeof seen);
}

int main(int argc, char **argv)
{
    uint64_t first = 1;
    uint64_t count = 500;
    bool is_traced = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--trace") == 0) {
            is_traced = true;
        } else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) {
            first = read_number(argv[++i]);
            count = 1;
        } else if (i + 1 < argc && strcmp(argv[i], "--first") == 0) {
            first = read_number(argv[++i]);
        } else if (i + 1 < argc && strcmp(argv[i], "--count") == 0) {
            count = read_number(argv[++i]);
        } else {
            (void)fprintf(stderr, "usage: sim [--first N] [--count N] | --seed N [--trace]\n");
            return 2;
        }
    }
    warm_up();
    for (uint64_t i = 0; i < count; i++) {
        run_session(first + i, is_traced);
    }
    printf("sim: %llu seeds from %llu passed: %lld steps, %lld simulated seconds; queries:",
           (unsigned long long)count, (unsigned long long)first, (long long)seen.steps,
           (long long)seen.seconds);
    for (int32_t i = 0; i < GAR_COUNT_OF(seen.ends); i++) {
        if (seen.ends[i] > 0) {
            printf(" %lld %s,", (long long)seen.ends[i],
                   i == 0 ? "complete" : gar_status_text((enum gar_status) - i));
        }
    }
    printf(" %lld dropped\n", (long long)seen.drops);
    return 0;
}
