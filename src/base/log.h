/* SPDX-License-Identifier: Apache-2.0 */
/* The log: what the engine has to say to nobody's call in particular. One line a message, to standard error unless the host
 * program takes it. */
#ifndef GAR_BASE_LOG_H
#define GAR_BASE_LOG_H

#include <gar/gar.h>

#include "base/attrs.h"

/* Say it, when the level is on. Threads: any; the host's function runs on this thread. */
void gar_log(enum gar_log_level level, const char *format, ...) GAR_PRINTF(2, 3);
/* See gar_log_to (include/gar). */
void gar_log_set(enum gar_log_level level,
                 void (*write)(void *context, enum gar_log_level level, const char *message),
                 void *context);
/* "off", "error", "warning", "info"; false for anything else. */
bool gar_log_level_parse(const char *text, enum gar_log_level *out);

#endif
