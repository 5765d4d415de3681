/* SPDX-License-Identifier: Apache-2.0 */
/* The handles behind the public API; private to engine/. */
#ifndef GAR_ENGINE_ENGINE_PRIV_H
#define GAR_ENGINE_ENGINE_PRIV_H

#include <gar/gar.h>

#include "plan/plan.h"
#include "runtime/runtime.h"

struct gar_session;

/* A lazy plan, or rows kept in memory (then plan scans them). Immutable but for the count. */
struct gar_frame {
    int64_t refs;                /* atomic */
    struct gar_session *session; /* owned reference */
    struct gar_plan *plan;       /* owned reference */
    struct gar_batch **batches;  /* collected frames: batch_count owned references, else NULL */
    int64_t batch_count;
    int64_t rows; /* collected frames; -1 otherwise */
    bool is_collected;
    struct gar_profile *profile; /* owned reference: of the query that made it; NULL: none */
};

/* Takes the plan reference over, also on failure. */
GAR_MUST_USE enum gar_status gar_frame_make(struct gar_session *session, struct gar_plan *plan,
                                            struct gar_frame **out, struct gar_error *err);
/* A frame over batches in memory (references are taken), all of `schema`. */
GAR_MUST_USE enum gar_status gar_frame_make_collected(struct gar_session *session,
                                                      struct gar_schema *schema,
                                                      struct gar_batch *const *batches,
                                                      int64_t count, struct gar_frame **out,
                                                      struct gar_error *err);

/* Move a finished text to the caller; GAR_ERR_NOMEM if an append had failed. */
GAR_MUST_USE enum gar_status gar_engine_take_text(struct gar_strbuf *text, char **out,
                                                  struct gar_error *err);

/* Copy the bytes that both sides know of an option struct over defaults set by the caller. */
void gar_options_take(void *to, size_t to_bytes, const void *from);

/* The physical plan as text. */
GAR_MUST_USE enum gar_status gar_engine_explain_physical(const struct gar_frame *frame,
                                                         const struct gar_plan *optimized,
                                                         struct gar_strbuf *out,
                                                         struct gar_error *err);

/* Table text of the first rows; see gar_frame_to_table. */
GAR_MUST_USE enum gar_status gar_table_format(const struct gar_schema *schema,
                                              struct gar_batch *const *batches, int64_t batch_count,
                                              enum gar_text_format format,
                                              const struct gar_table_options *options, char **out,
                                              struct gar_error *err);

#endif
