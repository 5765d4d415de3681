/* SPDX-License-Identifier: Apache-2.0 */
/* One record a thread, under its own lock: nobody but the watchdog ever asks for it. */
#include "runtime/activity.h"

#include <stdio.h>
#include <string.h>

#include "os/clock.h"
#include "os/mutex.h"
#include "runtime/trace.h"

enum { PATH_BYTES = 160 };

struct gar_activity {
    struct gar_mutex lock;
    struct {
        enum gar_activity_kind kind;
        char path[PATH_BYTES];
        int64_t offset;
        int64_t bytes;
        int64_t since_ns; /* 0: nothing */
    } synced GAR_GUARDED;
};

static _Thread_local struct gar_activity self = {.lock = GAR_MUTEX_INIT};

struct gar_activity *gar_activity_self(void)
{
    return &self;
}

void gar_activity_begin(enum gar_activity_kind kind, const char *path, int64_t offset,
                        int64_t bytes)
{
    const size_t length = strlen(path);
    const char *shown = length < PATH_BYTES ? path : path + (length - PATH_BYTES + 1);
    gar_mutex_lock(&self.lock);
    self.synced.kind = kind;
    memcpy(self.synced.path, shown, strlen(shown) + 1);
    self.synced.offset = offset;
    self.synced.bytes = bytes;
    self.synced.since_ns = gar_clock_ns();
    gar_mutex_unlock(&self.lock);
}

void gar_activity_end(void)
{
    gar_mutex_lock(&self.lock);
    const enum gar_activity_kind kind = self.synced.kind;
    const int64_t since_ns = self.synced.since_ns;
    const struct gar_trace_args args = {
        .path = self.synced.path, .offset = self.synced.offset, .bytes = self.synced.bytes};
    self.synced.since_ns = 0;
    gar_mutex_unlock(&self.lock);
    if (gar_trace_is_on()) { /* the path is written by this thread alone */
        gar_trace_span("io", kind == GAR_ACTIVITY_READ ? "read" : "write", since_ns, &args);
    }
}

bool gar_activity_describe(struct gar_activity *activity, char *out, int64_t out_bytes)
{
    gar_mutex_lock(&activity->lock);
    const bool is_busy = activity->synced.since_ns != 0;
    if (is_busy) {
        (void)snprintf(out, (size_t)out_bytes, "%s '%s' at byte %lld (%lld bytes) for %.1f s",
                       activity->synced.kind == GAR_ACTIVITY_READ ? "reading" : "writing",
                       activity->synced.path, (long long)activity->synced.offset,
                       (long long)activity->synced.bytes,
                       (double)(gar_clock_ns() - activity->synced.since_ns) / 1e9);
    }
    gar_mutex_unlock(&activity->lock);
    return is_busy;
}
