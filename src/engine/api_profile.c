/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of queries: the public face of exec/profile.h, and explain analyze. */
#include <gar/gar.h>
#include <string.h>

#include "base/log.h"
#include "engine/engine_priv.h"
#include "exec/profile.h"
#include "runtime/trace.h"

struct gar_profile *gar_frame_profile(const struct gar_frame *frame)
{
    return frame->profile != NULL ? gar_profile_ref(frame->profile) : NULL;
}

struct gar_profile *gar_profile_retain(struct gar_profile *profile)
{
    return gar_profile_ref(profile);
}

void gar_profile_release(struct gar_profile *profile)
{
    gar_profile_unref(profile);
}

/* The first bytes of `full` that the caller's struct has; its own size stays. */
static void give(void *out, const void *full, size_t full_bytes)
{
    size_t bytes = 0;
    memcpy(&bytes, out, sizeof bytes);
    memcpy(out, full, bytes < full_bytes ? bytes : full_bytes);
    memcpy(out, &bytes, sizeof bytes);
}

void gar_profile_query(const struct gar_profile *profile, struct gar_query_profile *out)
{
    struct gar_query_profile full;
    gar_profile_read_query(profile, &full);
    give(out, &full, sizeof full);
}

bool gar_profile_operator(const struct gar_profile *profile, int64_t i,
                          struct gar_operator_profile *out)
{
    struct gar_operator_profile full;
    if (!gar_profile_read_operator(profile, i, &full)) {
        return false;
    }
    give(out, &full, sizeof full);
    return true;
}

enum gar_status gar_profile_text(const struct gar_profile *profile, char **out,
                                 struct gar_error *err)
{
    struct gar_strbuf text = {0};
    gar_profile_print(profile, true, &text);
    return gar_engine_take_text(&text, out, err);
}

enum gar_status gar_frame_explain_analyze(const struct gar_frame *frame,
                                          const struct gar_run_options *options, char **out,
                                          struct gar_error *err)
{
    struct gar_result *result = NULL;
    GAR_TRY(gar_frame_run(frame, options, &result, err));
    enum gar_status status = GAR_OK;
    while (status == GAR_OK) {
        struct ArrowArray rows;
        status = gar_result_next(result, GAR_TEXT_AS_VIEW, &rows, err);
        if (status == GAR_OK) {
            rows.release(&rows);
        }
    }
    struct gar_profile *profile = gar_result_profile(result);
    gar_result_release(result);
    if (status == GAR_EOF) {
        status = gar_profile_text(profile, out, err);
    }
    gar_profile_release(profile);
    return status;
}

/* ---- the log and traces ------------------------------------------------------------------------------------------ */

void gar_log_to(enum gar_log_level level,
                void (*write)(void *context, enum gar_log_level level, const char *message),
                void *context)
{
    gar_log_set(level, write, context);
}

enum gar_status gar_trace_start(const char *path, struct gar_error *err)
{
    return gar_trace_begin(path, err);
}

enum gar_status gar_trace_stop(struct gar_error *err)
{
    return gar_trace_end(err);
}
