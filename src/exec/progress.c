/* SPDX-License-Identifier: Apache-2.0 */
/* Progress of a query: counters shared by the query and those who look. */
#include "exec/progress.h"

#include "base/alloc.h"
#include "os/clock.h"

enum gar_status gar_exec_progress_new(struct gar_exec_progress **out, struct gar_error *err)
{
    struct gar_exec_progress *progress =
        (struct gar_exec_progress *)gar_calloc(1, (int64_t)sizeof *progress);
    if (progress == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *progress);
    }
    progress->refs = 1;
    progress->start_ns = gar_clock_ns();
    *out = progress;
    return GAR_OK;
}

struct gar_exec_progress *gar_exec_progress_ref(struct gar_exec_progress *progress)
{
    if (progress != NULL) {
        (void)__atomic_fetch_add(&progress->refs, 1, __ATOMIC_RELAXED);
    }
    return progress;
}

void gar_exec_progress_unref(struct gar_exec_progress *progress)
{
    if (progress != NULL && __atomic_sub_fetch(&progress->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        gar_free(progress);
    }
}

void gar_exec_progress_note_result(struct gar_exec_progress *progress, int64_t rows, int64_t bytes)
{
    if (progress != NULL) {
        (void)__atomic_fetch_add(&progress->rows, rows, __ATOMIC_RELAXED);
        (void)__atomic_fetch_add(&progress->bytes, bytes, __ATOMIC_RELAXED);
    }
}

void gar_exec_progress_end(struct gar_exec_progress *progress, enum gar_status status)
{
    if (progress != NULL) {
        progress->status = (int32_t)status;
        __atomic_store_n(&progress->end_ns, gar_max_i64(gar_clock_ns(), 1), __ATOMIC_RELEASE);
    }
}

bool gar_exec_progress_ended(const struct gar_exec_progress *progress, enum gar_status *out_status,
                             int64_t *out_end_ns)
{
    const int64_t end_ns = __atomic_load_n(&progress->end_ns, __ATOMIC_ACQUIRE);
    if (end_ns == 0) {
        return false;
    }
    *out_status = (enum gar_status)progress->status;
    *out_end_ns = end_ns;
    return true;
}
