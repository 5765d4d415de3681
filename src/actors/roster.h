/* SPDX-License-Identifier: Apache-2.0 */
/* The state machine of a pool: who works on what, and what follows when something fails.
 *
 * Pure: it knows row numbers, times and states, and talks to the world (processes, or a simulation) through a table of
 * functions; the world answers with events, never from inside one of those functions. One thread. */
#ifndef GAR_ACTORS_ROSTER_H
#define GAR_ACTORS_ROSTER_H

#include "actors/failure.h"
#include "actors/policy.h"
#include "base/attrs.h"
#include "base/error.h"

struct gar_roster;
struct gar_roster_call;

/* A run of rows of one call: all of them at first, halves when it failed. */
struct gar_roster_part {
    struct gar_roster_part *next;    /* in the list it waits or works in */
    struct gar_roster_part *sibling; /* the part with the next rows of the call */
    struct gar_roster_call *call;
    int64_t offset; /* rows of the call */
    int64_t rows;
    int32_t tries;         /* that failed */
    int64_t not_before_ns; /* while it waits for its next try */
    bool is_answered;      /* the actor is done with it; its result is on the way */
    bool is_done;
    bool is_null; /* done: its rows are null */
    void *result; /* the world's, when done and not null */
};

struct gar_roster_call {
    struct gar_roster_call *next; /* of all open calls, or of the finished ones */
    struct gar_roster_call *previous;
    struct gar_roster_part *parts; /* in the order of rows; owned */
    int64_t rows;
    int64_t first_row;
    int64_t open;      /* parts not done */
    int64_t on_way;    /* parts whose result is on the way */
    bool is_cancelled; /* finished without a result */
    void *owner;       /* the world's */
};

struct gar_roster_world {
    void (*start)(void *world, int32_t actor); /* then ready, failed or dead */
    void (*send)(void *world, int32_t actor,
                 struct gar_roster_part *part);     /* then answered, or dead */
    void (*stop)(void *world, int32_t actor);       /* at the normal end; then dead */
    void (*kill)(void *world, int32_t actor);       /* then dead; before or after any other event */
    bool (*is_stopped)(void *world, int32_t actor); /* does a signal keep it from running? */
    void (*set_alarm)(void *world, int64_t deadline_ns); /* one; GAR_CLOCK_NEVER: none */
    void (*drop_result)(void *world, void *result);
    /* All parts are done, or the call is cancelled. May submit, end and cancel. */
    void (*finish)(void *world, struct gar_roster_call *call);
    void (*on_nulled)(void *world, const struct gar_roster_part *part,
                      const struct gar_actor_failure *failure);
    void (*on_room)(void *world);
    /* The last call: no actor lives, no call is open. failure (moved, may be NULL): why, when it failed (has_failed). */
    void (*on_ended)(void *world, bool has_failed, struct gar_actor_failure *failure);
};

/* What is to become of an actor that failed. */
enum gar_roster_verdict {
    GAR_ROSTER_KEEP,    /* it goes on; one that died is started again */
    GAR_ROSTER_REPLACE, /* a fresh process, please: this one is spoiled */
    GAR_ROSTER_ASIDE,   /* its device is out of service: it is not started again */
};

/* world and its functions are borrowed. policy: zeroes are filled in. Errors: GAR_ERR_NOMEM. Owns: caller frees, after
 * on_ended or when never started. */
GAR_MUST_USE enum gar_status gar_roster_new(const struct gar_actor_policy *policy, int32_t actors,
                                            const struct gar_roster_world *world, void *context,
                                            struct gar_roster **out, struct gar_error *err);
void gar_roster_free(struct gar_roster *roster);

/* Commands. now_ns: the time. */
void gar_roster_start(struct gar_roster *roster, int64_t now_ns);
/* call: zeroed but for rows, first_row, owner; in the world's storage until finish. GAR_PENDING: enough is open, on_room
 * will come. GAR_ERR_CANCELLED: it ends. GAR_ERR_NOMEM. */
enum gar_status gar_roster_submit(struct gar_roster *roster, struct gar_roster_call *call,
                                  int64_t now_ns);
void gar_roster_end(struct gar_roster *roster, int64_t now_ns);
void gar_roster_cancel(struct gar_roster *roster, int64_t now_ns);
/* Something the pool cannot survive (failure is moved). */
void gar_roster_fail(struct gar_roster *roster, struct gar_actor_failure *failure, int64_t now_ns);

/* Events, by the number of the actor. Failures are moved. */
void gar_roster_ready(struct gar_roster *roster, int32_t number, int64_t now_ns);
/* The actor is done with the oldest part it has (which is returned): its result, or failure, is on the way. NULL: it has
 * none, which no honest worker does. */
struct gar_roster_part *gar_roster_answered(struct gar_roster *roster, int32_t number,
                                            int64_t now_ns);
void gar_roster_result(struct gar_roster *roster, struct gar_roster_part *part, void *result,
                       int64_t now_ns);
/* Of an answered part. */
void gar_roster_part_failed(struct gar_roster *roster, int32_t number, struct gar_roster_part *part,
                            struct gar_actor_failure *failure, enum gar_roster_verdict verdict,
                            int64_t now_ns);
/* The actor must be killed: it broke the protocol, its constructor failed. The failure tells in dead. */
void gar_roster_broken(struct gar_roster *roster, int32_t number, struct gar_actor_failure *failure,
                       int64_t now_ns);
/* Its process is gone, whatever was asked of it. */
void gar_roster_dead(struct gar_roster *roster, int32_t number, struct gar_actor_failure *failure,
                     enum gar_roster_verdict verdict, int64_t now_ns);
void gar_roster_alarm(struct gar_roster *roster, int64_t now_ns);

/* Looking. */
struct gar_roster_figures {
    int32_t ready;
    int32_t busy;
    int32_t aside;
    int64_t restarts;
    int64_t retries;
    int64_t rows;
    int64_t nulled;
};
void gar_roster_figures(const struct gar_roster *roster, struct gar_roster_figures *out);
/* The part an actor works on; NULL: none. */
const struct gar_roster_part *gar_roster_at_work(const struct gar_roster *roster, int32_t number);
bool gar_roster_is_ready(const struct gar_roster *roster, int32_t number);

#endif
