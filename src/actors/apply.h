/* SPDX-License-Identifier: Apache-2.0 */
/* A pool over a stream: every batch goes through an actor; order is kept, batches are cut to an exact size. */
#ifndef GAR_ACTORS_APPLY_H
#define GAR_ACTORS_APPLY_H

#include "actors/pool.h"
#include "stream/stream.h"

struct gar_actor_apply {
    struct gar_actor_pool_options pool; /* listener and context are not looked at */
    int64_t batch_rows;                 /* of each call but the last; 0: as the batches come */
    int64_t max_batches; /* calls and results on their way at once; 0: 4 an actor and 4 */
    /* Told when the pool failed, before the stream's end, on the loop; may be NULL. */
    void (*on_failed)(void *context, const struct gar_actor_failure *failure);
    void (*on_output)(void *context, int32_t actor, bool is_stderr, const char *text,
                      int64_t bytes);
    void *context; /* lives until the stream's end */
};

/* Starts the pool and reads `input` (moved on success) on the IO pool. The result stream ends after the pool: when the
 * consumer sees the end, or an error, no process is left. Errors: as gar_actor_pool_new; GAR_ERR_IO (no threads).
 * Owns: caller frees *out. Threads: any. */
GAR_MUST_USE enum gar_status gar_actor_apply(const struct gar_actor_apply *options,
                                             struct gar_stream *input, struct gar_stream **out,
                                             struct gar_error *err);

#endif
