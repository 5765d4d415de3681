/* SPDX-License-Identifier: Apache-2.0 */
/* Why an actor or a batch failed, with all its texts; the one-line error of the query is made of it. */
#ifndef GAR_ACTORS_FAILURE_H
#define GAR_ACTORS_FAILURE_H

#include "actors/policy.h"
#include "base/attrs.h"
#include "base/error.h"

struct gar_actor_failure {
    enum gar_actor_fault fault;
    char *type;        /* of the exception; NULL when the process died */
    char *text;        /* its text, or what became of the process */
    char *traceback;   /* may be NULL */
    char *log;         /* the last that the actor wrote to stdout and stderr; may be NULL */
    char *device;      /* the actor's; NULL: it has none */
    int32_t actor;     /* number in the pool */
    int64_t pid;       /* of its process; 0: none */
    int32_t exit_code; /* -1: it did not exit by itself */
    int32_t signal;    /* 0: none */
    int64_t first_row; /* of the operator's input; -1: not in a call */
    int64_t rows;
    int64_t retry_after_ns; /* -1: not said */
};

/* With a text made by the format. NULL only without memory. Owns: caller frees. */
struct gar_actor_failure *gar_actor_failure_new(enum gar_actor_fault fault, const char *format, ...)
    GAR_PRINTF(2, 3);
void gar_actor_failure_free(struct gar_actor_failure *failure);
/* The error of a query: "UDF 'embed' failed in rows 16384 to 32767: ValueError: ...". name: of the function. NULL failure:
 * out of memory. Returns its status: GAR_ERR_CALLBACK, GAR_ERR_TYPE, GAR_ERR_NOMEM, GAR_ERR_TIMEOUT. */
enum gar_status gar_actor_failure_error(const struct gar_actor_failure *failure, const char *name,
                                        struct gar_error *err);

/* Keep the traceback of a failure for whoever is told of it: the newest few are kept, in memory of this file. Returns the number
 * that goes along as the error's position, below -1; -1 without a traceback. Threads: any. */
int64_t gar_actor_failure_keep(const struct gar_actor_failure *failure);
#define GAR_ACTOR_TRACEBACK_BYTES 8192
/* The traceback kept under a number, its end if it is long, and forget it. False: there is none. Threads: any. */
bool gar_actor_failure_take(int64_t number, char out[GAR_ACTOR_TRACEBACK_BYTES]);

#endif
