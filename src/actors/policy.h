/* SPDX-License-Identifier: Apache-2.0 */
/* What a pool does when something fails: data, not code paths. */
#ifndef GAR_ACTORS_POLICY_H
#define GAR_ACTORS_POLICY_H

#include "base/attrs.h"

enum gar_actor_on_error {
    GAR_ACTOR_RAISE, /* the pool fails */
    GAR_ACTOR_NULL,  /* a failing batch is halved until only the bad rows are left: they are null */
    GAR_ACTOR_LOG,   /* the same, and on_nulled tells */
};

/* What can go wrong with a batch or an actor. */
enum gar_actor_fault {
    GAR_ACTOR_NO_FAULT,
    GAR_ACTOR_RAISED,     /* the user's function failed */
    GAR_ACTOR_BAD_RESULT, /* wrong length or type */
    GAR_ACTOR_DIED,       /* the process ended */
    GAR_ACTOR_TOO_SLOW,   /* a call took longer than its limit, or its process was stopped */
    GAR_ACTOR_NO_START,   /* the constructor failed, died or took too long */
    GAR_ACTOR_LOST_DEVICE,
    GAR_ACTOR_PROTOCOL, /* the process sent what no worker sends */
    GAR_ACTOR_NO_ROOM,  /* shared memory cannot grow */
};

/* A zeroed struct means defaults. */
struct gar_actor_policy {
    enum gar_actor_on_error on_error;
    /* One actor is started at first, and one more, of those that may be, whenever batches have waited with all actors at
     * work for as long as the last one took to start. Else all are started at once. */
    bool grows;
    int32_t max_retries;    /* tries of a batch after its first; 0: none */
    int32_t max_restarts;   /* of processes, in the whole pool; 0: 64 + 4 for each actor */
    int64_t backoff_ns;     /* before the first retry, doubled for each; 0: 100 ms */
    int64_t backoff_max_ns; /* 0: 60 s */
    int64_t start_limit_ns; /* process start to the end of the constructor; 0: 120 s */
    int64_t call_limit_ns;  /* one call; 0: no limit */
    int64_t stop_limit_ns;  /* one call of a process that is stopped (SIGSTOP); 0: 30 s */
    int64_t close_limit_ns; /* tear-down; 0: 5 s */
};

#endif
