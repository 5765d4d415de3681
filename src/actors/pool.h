/* SPDX-License-Identifier: Apache-2.0 */
/* Actor pools: N worker processes of one user class, fed with batches through shared memory.
 *
 * A pool lives on the query loop. It starts all its actors at once, gives each waiting call to the first actor that is
 * free, and follows its policy when one fails. Calls finish in any order; each finishes exactly once. The end of a pool is
 * told once, when no process, descriptor or grant of it is left; results that were handed out stay valid. */
#ifndef GAR_ACTORS_POOL_H
#define GAR_ACTORS_POOL_H

#include "actors/failure.h"
#include "actors/policy.h"
#include "arrow/batch.h"
#include "resources/account.h"
#include "resources/device_error.h"
#include "runtime/runtime.h"

struct gar_actor_pool;

/* One actor's place: what was granted for it. */
struct gar_actor_seat {
    const char *const
        *environment;   /* "NAME=value" set, "NAME" removed; ends with NULL; may be NULL */
    const char *device; /* names of its devices ("3,4"), for messages; NULL: it has none */
    void *grant;        /* the ledger's handle; may be NULL */
    void (*release)(void *grant); /* once, on the loop, after the process is reaped; may be NULL */
    void (*set_process)(void *grant, int64_t pid); /* a process uses it; may be NULL */
    /* What the end or the exception of a process says of its devices, told to the ledger. *out_is_aside: they are out of
     * service now, the actor will not be started again. out_why: static words. On the loop; NULL without devices. */
    enum gar_device_error (*judge)(void *grant, int32_t exit_code, int32_t signal, const char *text,
                                   bool *out_is_aside, const char **out_why);
};

/* What the pool tells. All run on the loop and must not block; members may be NULL but for on_ended. */
struct gar_actor_listener {
    /* A submit was GAR_PENDING; now there is room. */
    void (*on_room)(void *context);
    /* Bytes an actor wrote to stdout or stderr, as they came. */
    void (*on_output)(void *context, int32_t actor, bool is_stderr, const char *text,
                      int64_t bytes);
    /* Rows that were made null because of the policy. The failure is borrowed. */
    void (*on_nulled)(void *context, const struct gar_actor_failure *failure);
    /* The last call. failure (borrowed) is NULL unless the pool failed. The pool is gone afterwards. */
    void (*on_ended)(void *context, enum gar_status status, const struct gar_error *err,
                     const struct gar_actor_failure *failure);
};

struct gar_actor_pool_options {
    struct gar_runtime *runtime; /* borrowed; entered until the pool has ended */
    struct gar_account
        *account;        /* pays for arenas and workers; a reference is taken; NULL: nobody */
    int64_t limit_bytes; /* own memory of one worker; one that uses more ends the pool; 0: none */
    const char *name;    /* of the user's function, for messages */
    const char *const *argv;        /* the worker program and its arguments; argv[0] is a path */
    const char *const *environment; /* as a seat's, for all actors, over this process's own */
    const void *code;               /* handed to create; copied */
    int64_t code_bytes;             /* of code */
    struct gar_schema *input;       /* references are taken */
    struct gar_schema *output;      /* types the results must have */
    const struct gar_actor_seat *seats; /* one an actor; copied; grants are moved on success */
    int32_t count;                      /* 1 .. GAR_ACTORS_MAX */
    int64_t arena_bytes;                /* address space of an arena; 0: by the machine's memory */
    struct gar_actor_policy policy;     /* zeroed: defaults */
    const struct gar_actor_listener *listener; /* static */
    void *context;                             /* the listener's */
};

#define GAR_ACTORS_MAX 4096

/* Starts nothing. Errors: GAR_ERR_UNSUPPORTED naming a column whose type cannot pass to a process; GAR_ERR_VALUE;
 * GAR_ERR_NOMEM. Owns: the pool ends by itself after gar_actor_pool_end or _cancel; one that was never started may be
 * given to gar_actor_pool_drop instead. Threads: any. */
GAR_MUST_USE enum gar_status gar_actor_pool_new(const struct gar_actor_pool_options *options,
                                                struct gar_actor_pool **out, struct gar_error *err);
/* Never started: frees it and releases its grants; on_ended is not called. Threads: any. */
void gar_actor_pool_drop(struct gar_actor_pool *pool);

/* Start all actors. Failures come to on_ended. Once. Threads: query loop only (so all below). */
void gar_actor_pool_start_on_loop(struct gar_actor_pool *pool);

/* One batch to work on. Embedded in the caller's struct, which lives until on_done. */
struct gar_actor_call {
    struct gar_batch *batch; /* gathered, rows > 0, of the input schema; moved in by a submit */
    int64_t first_row;       /* place of its first row in the operator's input, for messages */
    /* On the loop, once for each accepted call, never inside submit. */
    void (*on_done)(struct gar_actor_call *call);
    /* Valid in on_done: */
    enum gar_status status;   /* GAR_OK; GAR_ERR_CANCELLED when the pool failed or was cancelled */
    struct gar_batch *result; /* owned by the caller; all rows, in order */
    struct gar_call_work *work; /* the pool's */
};

/* GAR_OK: accepted. GAR_PENDING: enough is in flight; keep the batch and submit after on_room. GAR_ERR_CANCELLED: the
 * pool has failed or ends; on_ended says why. */
enum gar_status gar_actor_pool_submit_on_loop(struct gar_actor_pool *pool,
                                              struct gar_actor_call *call);
/* No more calls will come: when the accepted ones are done each actor is torn down, then on_ended comes. */
void gar_actor_pool_end_on_loop(struct gar_actor_pool *pool);
/* Kill everything now. Accepted calls finish with GAR_ERR_CANCELLED, then on_ended tells `status` and err. */
void gar_actor_pool_cancel_on_loop(struct gar_actor_pool *pool, enum gar_status status,
                                   const struct gar_error *err);

/* What it is doing, for progress lines. */
struct gar_actor_pool_figures {
    int32_t actors;
    int32_t ready; /* constructed and alive; busy ones included */
    int32_t busy;
    int32_t aside;    /* out of service because their device failed */
    int64_t restarts; /* processes started again */
    int64_t retries;  /* batches tried again */
    int64_t rows;     /* finished */
    int64_t nulled;   /* of them made null */
};
void gar_actor_pool_figures_on_loop(const struct gar_actor_pool *pool,
                                    struct gar_actor_pool_figures *out);

#endif
