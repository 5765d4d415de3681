/* SPDX-License-Identifier: Apache-2.0 */
/* User functions: how a host language, or a C program, gives the engine functions of its own over columns. Included by
 * gar.h. EXPERIMENTAL. */
#ifndef GAR_FUNCTION_H
#define GAR_FUNCTION_H

#include <gar/arrow_abi.h>
#include <gar/resources.h>
#include <gar/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One call of a user function. */
struct gar_user_call {
    size_t struct_bytes;
    /* In: one child for each argument; text as large_string and large_binary. The schema is borrowed and the same for all
     * calls of a query; the array may be moved out (release set to NULL), else the engine releases it. */
    const struct ArrowSchema *schema;
    struct ArrowArray args;
    int64_t rows;
    int64_t query;     /* as for open */
    int64_t first_row; /* place of the first row in the function's input, for messages */
    void *
        state; /* what gar_user_function.open gave. Calls of one query may run on several threads at once */
    /* True: nobody wants the result any more; return GAR_ERR_CANCELLED. Cheap. Valid during the call. */
    bool (*is_cancelled)(const struct gar_user_call *call);
    const void *engine;
    /* Out, moved to the engine on success: one column of the declared type (numbers and times of another width are
     * cast), of call->rows rows. */
    struct ArrowSchema result_schema;
    struct ArrowArray result;
    /* Of an expanding function: the result has the rows of row 0, then of row 1, ...; how many each gives, int64 without
     * nulls, call->rows items. */
    struct ArrowArray repeats;
};

struct gar_user_function {
    size_t struct_bytes;
    const char *name; /* for messages and plans */
    const char *type; /* of the result, as text */
    int64_t
        batch_rows;    /* exact rows of each call but the last; no call has none. 0: as they come */
    int32_t max_calls; /* at work at once in one query; 0: as many as there are threads */
    bool is_expanding; /* a row gives any number of rows; the other columns are repeated */
    /* The first argument, an int64 without nulls, numbers groups of rows that follow each other; no call has a part of a
     * group. Not with batch_rows. */
    bool is_grouped;
    const char *detail; /* options, for explain; may be NULL */
    /* Once for each query that runs it, on the thread that starts the query; must not wait for anything. `query` is the
     * same for all functions of one query. May be NULL. */
    enum gar_status (*open)(void *context, int64_t query, void **out_state, struct gar_error *err);
    /* On a thread of the Python pool (Python-Thread-N), which may block. On failure err holds what the query fails
     * with. */
    enum gar_status (*call)(void *context, struct gar_user_call *call, struct gar_error *err);
    /* Once for each open: on a thread of the Python pool at the query's regular end (is_regular), else
     * on any thread, where it must not block. NULL with open. */
    void (*close)(void *context, void *state, bool is_regular);
    void (*release)(void *context); /* once, on any thread, must not block; may be NULL */
    void *context;
};

/* A function that a pool of worker processes performs (docs/actors.md). */
struct gar_actor_function {
    size_t struct_bytes;
    const char *name;
    const char *type;
    int64_t batch_rows; /* exact rows of each call but the last; 0: as they come */
    int32_t count;      /* actors, each with the request's resources; 0: 1 */
    /* As many of count as fit now are enough, at least one; and one is started at first, more when batches wait for them. */
    bool takes_fewer;
    bool inherits_devices; /* they see this process's own devices */
    bool is_spread;        /* fractions of devices are spread, not packed */
    struct gar_resource_request request;
    int32_t on_error; /* 0: the query fails; 1: bad rows are null; 2: the same, and the log tells */
    int32_t max_retries;     /* of a batch after its first try */
    const char *const *argv; /* the worker program and its arguments, NULL at the end */
    const void *code;        /* handed to the worker's class; copied */
    int64_t code_bytes;
    const char *detail; /* for explain; may be NULL */
};

#ifdef __cplusplus
}
#endif
#endif
