/* SPDX-License-Identifier: Apache-2.0 */
/* The far side of an actor pool: what an actor is. A shared object may offer one (a native actor), and the Python package
 * offers the one that runs Python classes. An actor is made once in a worker process, called with one Arrow record batch
 * after the other, and destroyed once. All calls come from one thread. */
#ifndef GAR_ACTOR_H
#define GAR_ACTOR_H

#include <gar/arrow_abi.h>
#include <gar/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GAR_ACTOR_ABI 1

/* The symbol that gar-worker looks for in a shared object: a function that returns its class. */
#define GAR_ACTOR_ENTRY "gar_actor_entry"

/* Where create and call say why they failed; valid during that call. */
struct gar_actor_report {
    int32_t abi;   /* GAR_ACTOR_ABI */
    void *context; /* the engine's */
    /* Copies the texts. type: a short name ("ValueError"); text: one or more lines; traceback may be NULL. */
    void (*fail)(struct gar_actor_report *report, const char *type, const char *text,
                 const char *traceback);
    /* Try again, but not before so many nanoseconds have passed (a service said "retry after"). */
    void (*retry_after)(struct gar_actor_report *report, int64_t ns);
};

/* What an actor learns when it is made. Everything is borrowed for the call of create, but for `input` and `output`,
 * which live as long as the actor. */
struct gar_actor_setup {
    int32_t abi;        /* GAR_ACTOR_ABI */
    int32_t index;      /* of this actor in its pool */
    int32_t count;      /* actors of the pool */
    const char *name;   /* of the function, for messages */
    const void *code;   /* what the caller gave for this actor: a pickle, settings; may be empty */
    int64_t code_bytes; /* of code */
    const struct ArrowSchema *input;  /* struct type: the columns of each call */
    const struct ArrowSchema *output; /* struct type: the columns of each result */
};

struct gar_actor_class {
    int32_t abi;      /* GAR_ACTOR_ABI */
    const char *name; /* for messages */
    /* What one actor needs when the user says nothing; 0: nothing. */
    double cpus;
    double gpus;
    int64_t memory_bytes;
    /* 0 with *out_actor, or not 0 after report->fail. */
    int (*create)(const struct gar_actor_setup *setup, void **out_actor,
                  struct gar_actor_report *report);
    /* input: a struct array over shared memory. The actor may move it out (set input->release to NULL) and keep it: its
     * place stays taken until it is released, on any thread. output: filled by the actor, together with output_schema
     * (either may be given up at once: the engine copies and releases). Rows equal those of the input. Text may have 32-bit
     * or 64-bit offsets or be views; else formats equal those of setup->output.
     * 0, or not 0 after report->fail. */
    int (*call)(void *actor, struct ArrowArray *input, struct ArrowSchema *output_schema,
                struct ArrowArray *output, struct gar_actor_report *report);
    void (*destroy)(
        void *actor); /* once, at the normal end; not called when the process is killed */
};

/* Run the worker side over the descriptors that this process inherited, until the pool ends it. The caller's process was
 * started by a pool (environment GAR_WORKER). Returns the exit status for the process: 0 after a normal end.
 * Threads: the calling thread runs create, call and destroy; blocks. A Python host gives up the GIL before, and takes it
 * inside the class's functions. */
GAR_API int gar_actor_worker_run(const struct gar_actor_class *actor_class);

#ifdef __cplusplus
}
#endif
#endif
