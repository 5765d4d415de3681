/* SPDX-License-Identifier: Apache-2.0 */
/* The log. Level and target are atomics: they are set once, early, and read on every thread. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 1024 };

typedef void (*write_fn)(void *context, enum gar_log_level level, const char *message);

static int32_t level_now = GAR_LOG_WARNING; /* atomic */
static write_fn target;      /* atomic, released after its context; NULL: standard error */
static void *target_context; /* atomic */

static const char *const names[] = {"off", "error", "warning", "info"};

static void write_line(enum gar_log_level level, const char *message)
{
    char line[LINE_BYTES + 32];
    const int bytes = snprintf(line, sizeof line, "gar: %s: %s\n", names[level], message);
    const ssize_t written = write(STDERR_FILENO, line, (size_t)bytes);
    (void)written; /* nobody is left to tell */
}

void gar_log(enum gar_log_level level, const char *format, ...)
{
    if (level == GAR_LOG_OFF || (int32_t)level > __atomic_load_n(&level_now, __ATOMIC_RELAXED)) {
        return;
    }
    char message[LINE_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    const write_fn write_to = __atomic_load_n(&target, __ATOMIC_ACQUIRE);
    if (write_to != NULL) {
        write_to(__atomic_load_n(&target_context, __ATOMIC_RELAXED), level, message);
    } else {
        write_line(level, message);
    }
}

void gar_log_set(enum gar_log_level level, write_fn write_to, void *context)
{
    __atomic_store_n(&level_now, (int32_t)level, __ATOMIC_RELAXED);
    __atomic_store_n(&target_context, context, __ATOMIC_RELAXED);
    __atomic_store_n(&target, write_to, __ATOMIC_RELEASE);
}

bool gar_log_level_parse(const char *text, enum gar_log_level *out)
{
    for (int64_t i = 0; i < GAR_COUNT_OF(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (enum gar_log_level)i;
            return true;
        }
    }
    return false;
}
