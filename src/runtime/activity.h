/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread reads or writes just now: kept by who does it, looked at by the watchdog, and put into the trace. */
#ifndef GAR_RUNTIME_ACTIVITY_H
#define GAR_RUNTIME_ACTIVITY_H

#include "base/attrs.h"

struct gar_activity;

/* The calling thread's; lives as long as the thread. */
struct gar_activity *gar_activity_self(void);

enum gar_activity_kind { GAR_ACTIVITY_READ, GAR_ACTIVITY_WRITE };

/* Around one read or write call, on its thread; not nested. path is copied (its end, when it is long). */
void gar_activity_begin(enum gar_activity_kind kind, const char *path, int64_t offset,
                        int64_t bytes);
void gar_activity_end(void);

/* "reading 'a.parquet' at byte 4 (1024 bytes) for 3.1 s"; false when the thread does nothing of the kind. Threads: any, while
 * the activity's thread lives. */
bool gar_activity_describe(struct gar_activity *activity, char *out, int64_t out_bytes);

#endif
