/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime: compute pool, IO pool, spawn thread, query loop, memory pool. Threads start at first need and are joined at
 * free. */
#ifndef GAR_RUNTIME_RUNTIME_H
#define GAR_RUNTIME_RUNTIME_H

#include "base/attrs.h"
#include "base/error.h"
#include "resources/memory_pool.h"
#include "runtime/cancel.h"
#include "runtime/loop.h"
#include "runtime/pool.h"
#include "runtime/wait.h"

struct gar_runtime;

/* A zeroed struct means defaults. */
struct gar_runtime_options {
    int32_t compute_threads; /* 0: usable CPUs (affinity mask and container quota) */
    int32_t io_threads;      /* 0: min(8, usable CPUs) */
    int32_t
        compute_nice; /* nice value added for compute threads; what the system refuses is left out */
    int32_t io_nice;
    bool is_compute_batch; /* SCHED_BATCH for compute threads, where allowed */
    struct gar_memory_pool
        *memory; /* borrowed for the call, a reference is kept; NULL: the process's pool */
};

#define GAR_RUNTIME_THREADS_MAX 1024

/* Starts no thread. Errors: GAR_ERR_VALUE naming a thread number out of 0..GAR_RUNTIME_THREADS_MAX, GAR_ERR_NOMEM.
 * Owns: caller frees. */
GAR_MUST_USE enum gar_status gar_runtime_new(const struct gar_runtime_options *options,
                                             struct gar_runtime **out, struct gar_error *err);
/* Waits until everyone who entered has left (cancel their queries first), then stops and joins all threads. In a forked
 * child of the maker it only frees memory. NULL is fine. Threads: not from a thread of the runtime. */
void gar_runtime_free(struct gar_runtime *runtime);

enum gar_runtime_part {
    GAR_RUNTIME_COMPUTE = 1,
    GAR_RUNTIME_IO = 2,
    GAR_RUNTIME_LOOP = 4,
    GAR_RUNTIME_ALL = 7,     /* what every query may need */
    GAR_RUNTIME_SPAWN = 8,   /* for worker processes */
    GAR_RUNTIME_PYTHON = 16, /* for user functions in this process */
};
/* Make sure that the named parts (bits of enum gar_runtime_part) run; cheap when they do. A pool that gets only some
 * of its threads goes on with those.
 * Errors: GAR_ERR_IO when not even one thread starts, with the system's reason; GAR_ERR_UNSUPPORTED in a forked child.
 * Threads: any. */
GAR_MUST_USE enum gar_status gar_runtime_start(struct gar_runtime *runtime, uint32_t parts,
                                               struct gar_error *err);

/* A query enters before its first use of pools or loop and leaves when nothing of it is queued or running any more.
 * While somebody is inside, idle workers spin for a moment before they sleep; when the last one leaves, memory above the
 * resident cap is given back. Errors: GAR_ERR_UNSUPPORTED in a forked child; GAR_ERR_CANCELLED while it is being freed. */
GAR_MUST_USE enum gar_status gar_runtime_enter(struct gar_runtime *runtime, struct gar_error *err);
void gar_runtime_leave(struct gar_runtime *runtime);
/* Those inside now. */
int64_t gar_runtime_active(const struct gar_runtime *runtime);

/* Threads running now: of the pools and the loop. */
int32_t gar_runtime_threads(const struct gar_runtime *runtime);

/* Is it of another process (this one is a forked child)? Then make a new one. */
bool gar_runtime_is_forked(const struct gar_runtime *runtime);

/* Borrowed from the runtime. */
struct gar_pool *gar_runtime_compute(struct gar_runtime *runtime);
struct gar_pool *gar_runtime_io(struct gar_runtime *runtime);
/* One thread that starts processes and lives as long as the runtime, because a process's death signal follows it. */
struct gar_pool *gar_runtime_spawn(struct gar_runtime *runtime);
/* Threads of user functions, the only ones that run a host language's code; they may block. At least two. */
struct gar_pool *gar_runtime_python(struct gar_runtime *runtime);
struct gar_loop *gar_runtime_loop(struct gar_runtime *runtime);
struct gar_memory_pool *gar_runtime_memory(struct gar_runtime *runtime);

/* Work that may block (opening files, reading footers), done on the IO pool while the caller waits. */
struct gar_call {
    enum gar_status (*run)(void *context, struct gar_error *err);
    void (*release)(void *context); /* called once, by the last user of context; may be NULL */
    void *context;                  /* moved: belongs to the call from now on */
    struct gar_cancel *cancel;      /* may be NULL; run should look at it */
    const struct gar_interrupt *interrupt; /* may be NULL */
};
/* Returns what run returned. An interrupt cancels the token; if run does not come back within GAR_WAIT_STOP_NS after a
 * cancel, the call returns the reason's error and leaves run alone (context stays alive for it). Called on a thread of
 * the IO pool it runs in place. Threads: blocks; not on the loop nor on a compute thread. */
GAR_MUST_USE enum gar_status gar_runtime_call(struct gar_runtime *runtime,
                                              const struct gar_call *call, struct gar_error *err);

#endif
