/* SPDX-License-Identifier: Apache-2.0 */
/* The session behind the public handle; private to engine/. */
#ifndef GAR_ENGINE_SESSION_PRIV_H
#define GAR_ENGINE_SESSION_PRIV_H

#include "engine/engine_priv.h"
#include "os/mutex.h"
#include "resources/account.h"
#include "resources/memory_pool.h"
#include "storage/spill.h"

struct gar_session {
    struct gar_memory_pool *pool; /* owned reference; constant */
    struct gar_mutex lock;
    struct {
        struct gar_settings settings;
        struct gar_runtime *runtime; /* owned; NULL after exit began; replaced in a forked child */
        struct gar_spill_space *spill; /* owned reference */
    } synced GAR_GUARDED;
    int64_t refs;             /* atomic */
    struct gar_session *next; /* under the list's lock */
    struct gar_session *previous;
};

struct gar_session *gar_session_retain(struct gar_session *session);
/* Settings and runtime for a query that starts now; the runtime is entered, the caller leaves it (gar_runtime_leave). */
GAR_MUST_USE enum gar_status gar_session_begin(struct gar_session *session,
                                               struct gar_settings *out_settings,
                                               struct gar_runtime **out_runtime,
                                               struct gar_error *err);

/* Where queries that start now spill. Owns: caller unrefs. */
struct gar_spill_space *gar_session_spill_space(struct gar_session *session);

#endif
