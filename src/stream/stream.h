/* SPDX-License-Identifier: Apache-2.0 */
/* The batch stream: what a query gives its caller. Pulled by one consumer; two kinds behind one struct: a bounded queue
 * filled by a running query, and an inline stream whose batches are computed on the consumer's thread. */
#ifndef GAR_STREAM_STREAM_H
#define GAR_STREAM_STREAM_H

#include "arrow/batch.h"
#include "runtime/cancel.h"
#include "runtime/wait.h"

struct gar_stream;      /* consumer's side */
struct gar_stream_sink; /* producer's side of a queue stream */

/* What the consumer's side tells the producer. All run on any thread, with no lock held, and must not block (post a
 * message to the loop). `context` lives until release, which comes once, when the consumer's side is freed. */
struct gar_stream_producer {
    void (*on_room)(void *context); /* a push was GAR_PENDING; now there is room */
    void (*on_cancel)(void *context,
                      enum gar_cancel_reason reason); /* at most once; stop soon and end the sink */
    void (*release)(void *context);                   /* drop the stream's hold on context */
};

struct gar_stream_options {
    struct gar_schema *schema;                  /* a reference is taken */
    int64_t max_batches;                        /* 0: 8; INT64_MAX: no bound */
    int64_t max_bytes;                          /* 0: 16 MiB; a larger batch passes alone */
    const struct gar_stream_producer *producer; /* static; members may be NULL */
    void *context;                              /* the producer's; held until release */
};

/* A queue stream. Errors: GAR_ERR_NOMEM; then release is not called.
 * Owns: the producer ends or frees *out_sink, the consumer frees *out_stream; in any order, on any threads. */
GAR_MUST_USE enum gar_status gar_stream_new_queue(const struct gar_stream_options *options,
                                                  struct gar_stream **out_stream,
                                                  struct gar_stream_sink **out_sink,
                                                  struct gar_error *err);

/* Producer. batch must be gathered (no selection) and have the stream's schema. GAR_OK: batch is moved. GAR_PENDING:
 * full; keep the batch and push again after on_room. GAR_ERR_CANCELLED (message set): the consumer has gone; keep the
 * batch. GAR_ERR_NOMEM: no place for it; keep the batch. Never blocks.
 * Threads: any number at once; order is that of the calls. */
GAR_MUST_USE enum gar_status gar_stream_push(struct gar_stream_sink *sink, struct gar_batch *batch,
                                             struct gar_error *err);
bool gar_stream_is_full(const struct gar_stream_sink *sink);
/* The end, once, and the end of the sink (moved). status GAR_OK: complete, queued batches are still delivered. An error
 * (why is copied) is delivered at once, before queued batches: they are dropped. */
void gar_stream_end(struct gar_stream_sink *sink, enum gar_status status,
                    const struct gar_error *why);
/* A sink freed without an end is an error of the consumer: "the result ended without an end mark". NULL is fine. */
void gar_stream_sink_free(struct gar_stream_sink *sink);

/* Computes batches on the consumer's thread. */
struct gar_stream_source {
    /* GAR_OK with a gathered batch, GAR_EOF, GAR_PENDING (see take_over), or an error; called again only after GAR_OK.
     * interrupt may be NULL: a long computation looks at it now and then. */
    enum gar_status (*next)(void *context, const struct gar_interrupt *interrupt,
                            struct gar_batch **out, struct gar_error *err);
    void (*cancel)(
        void *context,
        enum gar_cancel_reason reason); /* any thread, also while next runs; may be NULL */
    void (*release)(void *context);     /* the thread that frees the stream, once */
    /* May be NULL: next never says GAR_PENDING then. When next says it, the work has outgrown the caller's thread and is
     * done by a running query from now on: this gives that query's stream (moved), and all later calls go to it. cancel
     * and release stay in force. Consumer's thread, at most once. */
    struct gar_stream *(*take_over)(void *context);
};
/* An inline stream: no thread, no queue, no descriptor. context is moved on success. */
GAR_MUST_USE enum gar_status gar_stream_new_inline(struct gar_schema *schema,
                                                   const struct gar_stream_source *source,
                                                   void *context, struct gar_stream **out,
                                                   struct gar_error *err);
/* An inline stream of batches that are there already. References are taken. */
GAR_MUST_USE enum gar_status gar_stream_new_batches(struct gar_schema *schema,
                                                    struct gar_batch *const *batches, int64_t count,
                                                    struct gar_stream **out, struct gar_error *err);

/* Consumer. Borrowed. */
const struct gar_schema *gar_stream_schema(const struct gar_stream *stream);
/* The next batch: GAR_OK with *out (caller unrefs), GAR_EOF at the end, or the query's error, which stays. Sleeps only
 * when nothing is ready. When the interrupt asks to stop: cancels the producer, waits until it has stopped (at most
 * GAR_WAIT_STOP_NS) and returns GAR_ERR_INTERRUPTED. Threads: one consumer at a time; blocks. */
GAR_MUST_USE enum gar_status gar_stream_next(struct gar_stream *stream,
                                             const struct gar_interrupt *interrupt,
                                             struct gar_batch **out, struct gar_error *err);
/* The same without waiting: GAR_PENDING when nothing is ready. An inline stream computes. */
GAR_MUST_USE enum gar_status gar_stream_try_next(struct gar_stream *stream, struct gar_batch **out,
                                                 struct gar_error *err);
/* Waits until deadline_ns (gar_clock_ns): GAR_PENDING when it passes. */
GAR_MUST_USE enum gar_status gar_stream_next_until(struct gar_stream *stream, int64_t deadline_ns,
                                                   const struct gar_interrupt *interrupt,
                                                   struct gar_batch **out, struct gar_error *err);
/* A descriptor to poll(2): readable while gar_stream_try_next would not say GAR_PENDING. Owned by the stream. An inline
 * stream's is always readable; ask again after a GAR_PENDING, because it changes when the work is handed over. */
GAR_MUST_USE enum gar_status gar_stream_fd(struct gar_stream *stream, int *out_fd,
                                           struct gar_error *err);
/* Ask the producer to stop; the next call of next tells the reason. Threads: any, while the stream lives. */
void gar_stream_cancel(struct gar_stream *stream, enum gar_cancel_reason reason);
/* Cancels (dropped) what still runs and frees; never waits. NULL is fine. Threads: any. */
void gar_stream_free(struct gar_stream *stream);

/* All remaining batches: *out_batches (gar_free the array, unref the items) and *out_count. Frees nothing of the stream. */
GAR_MUST_USE enum gar_status gar_stream_collect(struct gar_stream *stream,
                                                const struct gar_interrupt *interrupt,
                                                struct gar_batch ***out_batches, int64_t *out_count,
                                                struct gar_error *err);
void gar_batches_free(struct gar_batch **batches, int64_t count);

#endif
