/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line: drawn by the thread that waits for a result, taken away before it goes on. */
#ifndef GAR_ENGINE_PROGRESS_LINE_PRIV_H
#define GAR_ENGINE_PROGRESS_LINE_PRIV_H

#include <gar/gar.h>

#include "base/attrs.h"

/* Of one waiting thread at a time; zeroed: nothing is ever drawn. */
struct gar_progress_line {
    const struct gar_profile *profile;             /* borrowed */
    void (*show)(void *context, const char *line); /* in place of standard error */
    void *context;
    int64_t begin_ns; /* of the waiting call */
    int64_t next_ns;  /* draw then */
    bool is_wanted;
    bool is_drawn;
};

/* show NULL: on standard error, as mode says. */
void gar_progress_line_init(struct gar_progress_line *line, const struct gar_profile *profile,
                            enum gar_progress_mode mode,
                            void (*show)(void *context, const char *line), void *context);
/* A call that may wait begins. */
void gar_progress_line_begin(struct gar_progress_line *line);
/* It waits: called every 20 ms. */
void gar_progress_line_tick(struct gar_progress_line *line);
/* It returns, for whatever reason. */
void gar_progress_line_end(struct gar_progress_line *line);

#endif
