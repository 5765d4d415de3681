/* SPDX-License-Identifier: Apache-2.0 */
/* One life of one worker process: started, fed, drained, killed, reaped. Everything on the query loop, but for what the
 * spawn thread and the compute pool do for it. */
#ifndef GAR_ACTORS_LINK_H
#define GAR_ACTORS_LINK_H

#include "actors/arena.h"
#include "actors/failure.h"
#include "actors/wire.h"
#include "arrow/batch.h"
#include "os/process.h"
#include "runtime/runtime.h"

struct gar_link;

struct gar_link_end {
    struct gar_process_end process;
    bool is_started; /* false: no process came to be; error says why */
    bool is_killed;  /* we killed it */
    bool is_oom;     /* the kernel did, for lack of memory */
    int64_t pid;
    struct gar_error error;
    const char *log; /* what it wrote last; NUL-terminated; borrowed */
};

/* All on the loop, never from inside a call to the link. */
struct gar_link_listener {
    void (*on_ready)(void *owner);
    /* RESULT or FAILED of the oldest call: checked against the arena, in order. */
    void (*on_answer)(void *owner, const struct gar_wire_message *message);
    /* The constructor failed (FAILED with seq 0). */
    void (*on_no_start)(void *owner, const struct gar_wire_message *message);
    /* It broke the protocol, or shared memory failed: kill it. is_ours: it is the pool's trouble. */
    void (*on_broken)(void *owner, bool is_ours, const char *why);
    void (*on_output)(void *owner, bool is_stderr, const char *text, int64_t bytes);
    /* The last: the process is reaped, its descriptors are closed, no task is at work. Free the link. */
    void (*on_dead)(void *owner, const struct gar_link_end *end);
};

/* What is the same for all lives of all workers of a pool; borrowed. */
struct gar_link_common {
    struct gar_runtime *runtime;
    struct gar_account *account; /* may be NULL */
    struct gar_memory *memory;
    int64_t window; /* of an arena */
    const char *const *argv;
    const char *const *environment; /* the whole of it, but for the seat's part */
    const char *setup;              /* the block, its index to be set */
    int64_t setup_bytes;
    const struct gar_wire_layout *input;
    const struct gar_link_listener *listener;
};

/* Starts the process (on the spawn thread). environment: the seat's part, over the common one. Errors: GAR_ERR_NOMEM.
 * Owns: freed in or after on_dead. */
GAR_MUST_USE enum gar_status gar_link_start(const struct gar_link_common *common, int32_t index,
                                            const char *const *environment, void *owner,
                                            struct gar_link **out, struct gar_error *err);
/* Rows [offset, offset + rows) of a batch (a reference is taken) become a call. */
void gar_link_send(struct gar_link *link, const struct gar_batch *batch, int64_t offset,
                   int64_t rows);
void gar_link_stop(struct gar_link *link);
void gar_link_kill(struct gar_link *link);
bool gar_link_is_stopped(const struct gar_link *link);
struct gar_exchange *gar_link_exchange(const struct gar_link *link);
/* Texts of a FAILED message, copied into the failure (type, text, traceback). */
void gar_link_read_failure(const struct gar_link *link, const struct gar_wire_message *message,
                           struct gar_actor_failure *failure);
int64_t gar_link_pid(const struct gar_link *link);
/* Resident bytes that its process has alone; 0 when unknown. Reads a file. */
int64_t gar_link_private_bytes(const struct gar_link *link);
void gar_link_free(struct gar_link *link);

/* "NAME=value" sets, "NAME" removes; later lists win. The items are borrowed, the list is the caller's (gar_free).
 * NULL without memory. */
const char **gar_environment_merge(const char *const *const *lists, int32_t count);

#endif
