/* SPDX-License-Identifier: Apache-2.0 */
/* Life of the loop, for runtime.c. */
#ifndef GAR_RUNTIME_LOOP_PRIV_H
#define GAR_RUNTIME_LOOP_PRIV_H

#include "runtime/loop.h"

/* active: number of queries inside, borrowed; while it is not 0 the loop spins a moment before it sleeps. */
GAR_MUST_USE enum gar_status gar_loop_new(const int64_t *active, struct gar_loop **out,
                                          struct gar_error *err);
GAR_MUST_USE enum gar_status gar_loop_run_thread(struct gar_loop *loop, struct gar_error *err);
/* Handles what is in the inbox, then ends and joins the thread. One that does not run is fine. */
void gar_loop_stop(struct gar_loop *loop);
/* is_forked: the thread is of another process. */
void gar_loop_free(struct gar_loop *loop, bool is_forked);

#endif
