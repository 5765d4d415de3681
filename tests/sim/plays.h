/* SPDX-License-Identifier: Apache-2.0 */
/* One simulated session: a runtime and what goes on in it at the same time. Each kind of play draws itself from the seed, runs on
 * threads of its own and judges what it sees; a new part of the engine joins by a play of its own. */
#ifndef GAR_SIM_PLAYS_H
#define GAR_SIM_PLAYS_H

#include "runtime/runtime.h"
#include "scheduler.h"

struct sim_later;

struct sim_play {
    struct sim_rng rng;
    struct gar_memory_pool *memory;
    struct gar_runtime *runtime;
    bool has_faults;         /* reads, writes and tasks may fail */
    bool has_stops;          /* consumers may cancel, drop, be interrupted, run into deadlines */
    bool has_refused_memory; /* an allocation was refused */
    bool has_few_threads;    /* a thread could not be started */
    int64_t queries;         /* drawn so far */
    int64_t calls;           /* likewise */
    int64_t deaf_reads;      /* in both */
    int64_t ends[64];        /* how often a query ended with status -i; 0: well */
    int64_t drops;
    struct sim_later *later;
};

/* Free the object after the runtime is gone: what the engine still holds until then stays valid. */
void sim_play_later(struct sim_play *play, void (*free_object)(void *object), void *object);

/* Each draws one play and starts it; the caller joins it. */
struct sim_thread *sim_play_query(struct sim_play *play);
struct sim_thread *sim_play_call(struct sim_play *play);      /* gar_runtime_call */
struct sim_thread *sim_play_operation(struct sim_play *play); /* finish against cancel */
struct sim_thread *sim_play_stream(struct sim_play *play);    /* a producer of our own */
struct sim_thread *sim_play_bell(struct sim_play *play);      /* watched descriptors */
struct sim_thread *sim_play_ledger(struct sim_play *play); /* resources: held, lost, waited for */
struct sim_thread *sim_play_pool(struct sim_play *play);   /* actors over the ledger */

#endif
