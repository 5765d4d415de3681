/* SPDX-License-Identifier: Apache-2.0 */
/* Failures and their one-line form. */
#include "actors/failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

struct gar_actor_failure *gar_actor_failure_new(enum gar_actor_fault fault, const char *format, ...)
{
    struct gar_actor_failure *failure = gar_calloc(1, (int64_t)sizeof *failure);
    if (failure == NULL) {
        return NULL;
    }
    char text[GAR_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    failure->fault = fault;
    failure->text = gar_strdup(text);
    failure->exit_code = -1;
    failure->first_row = -1;
    failure->retry_after_ns = -1;
    if (failure->text == NULL) {
        gar_free(failure);
        return NULL;
    }
    return failure;
}

void gar_actor_failure_free(struct gar_actor_failure *failure)
{
    if (failure != NULL) {
        gar_free(failure->type);
        gar_free(failure->text);
        gar_free(failure->traceback);
        gar_free(failure->log);
        gar_free(failure->device);
        gar_free(failure);
    }
}

static enum gar_status status_of(enum gar_actor_fault fault)
{
    switch (fault) {
    case GAR_ACTOR_TOO_SLOW: return GAR_ERR_TIMEOUT;
    case GAR_ACTOR_NO_ROOM: return GAR_ERR_NOMEM;
    case GAR_ACTOR_NO_FAULT:
    case GAR_ACTOR_RAISED:
    case GAR_ACTOR_BAD_RESULT:
    case GAR_ACTOR_DIED:
    case GAR_ACTOR_NO_START:
    case GAR_ACTOR_LOST_DEVICE:
    case GAR_ACTOR_PROTOCOL: break;
    }
    return GAR_ERR_CALLBACK;
}

/* What failed: the words between the function's name and the text. */
static const char *doing(const struct gar_actor_failure *failure)
{
    if (failure->fault == GAR_ACTOR_NO_START) {
        return " could not be started";
    }
    return failure->fault == GAR_ACTOR_BAD_RESULT || failure->fault == GAR_ACTOR_NO_ROOM
               ? ""
               : " failed";
}

/* The last line of the actor's output, which often says more than its status. */
static const char *last_line(const char *log, char *out, int64_t out_bytes)
{
    int64_t end = log == NULL ? 0 : (int64_t)strlen(log);
    while (end > 0 && (log[end - 1] == '\n' || log[end - 1] == '\r' || log[end - 1] == ' ')) {
        end--;
    }
    int64_t start = end;
    while (start > 0 && log[start - 1] != '\n') {
        start--;
    }
    return end == 0 ? NULL : gar_error_quote(log + start, end - start, out, out_bytes);
}

enum gar_status gar_actor_failure_error(const struct gar_actor_failure *failure, const char *name,
                                        struct gar_error *err)
{
    if (failure == NULL) {
        return gar_error_set(err, GAR_ERR_NOMEM, "UDF '%s': out of memory", name);
    }
    char rows[96] = "";
    if (failure->first_row >= 0) {
        (void)snprintf(rows, sizeof rows, " in rows %lld to %lld", (long long)failure->first_row,
                       (long long)(failure->first_row + failure->rows - 1));
    }
    char text[640];
    (void)gar_error_quote(failure->text, (int64_t)strlen(failure->text), text,
                          (int64_t)sizeof text);
    char quoted[160];
    const char *line =
        failure->type != NULL ? NULL : last_line(failure->log, quoted, (int64_t)sizeof quoted);
    const bool has_device = failure->device != NULL && failure->device[0] != 0;
    return gar_error_set(err, status_of(failure->fault), "UDF '%s'%s%s: %s%s%s%s%s%s%s%s", name,
                         doing(failure), rows, failure->type != NULL ? failure->type : "",
                         failure->type != NULL && failure->type[0] != 0 && text[0] != 0 ? ": " : "",
                         text, has_device ? " (device " : "", has_device ? failure->device : "",
                         has_device ? ")" : "", line != NULL ? "; its last output: " : "",
                         line != NULL ? line : "");
}

/* ---- tracebacks ---- */

/* A slot is used by who sets is_busy; nobody waits for one, so that a fork at any moment does no harm. */
static struct kept {
    int32_t is_busy; /* atomic */
    int64_t number;  /* 0: empty */
    char text[GAR_ACTOR_TRACEBACK_BYTES];
} kept[8];
static int64_t kept_count; /* atomic */

static struct kept *enter_slot(int64_t number)
{
    struct kept *slot = &kept[number % GAR_COUNT_OF(kept)];
    return __atomic_exchange_n(&slot->is_busy, 1, __ATOMIC_ACQUIRE) == 0 ? slot : NULL;
}

static void leave_slot(struct kept *slot)
{
    __atomic_store_n(&slot->is_busy, 0, __ATOMIC_RELEASE);
}

int64_t gar_actor_failure_keep(const struct gar_actor_failure *failure)
{
    if (failure == NULL || failure->traceback == NULL || failure->traceback[0] == '\0') {
        return -1;
    }
    const int64_t number = __atomic_add_fetch(&kept_count, 1, __ATOMIC_RELAXED);
    struct kept *slot = enter_slot(number);
    if (slot == NULL) {
        return -1;
    }
    const char *text = failure->traceback;
    const int64_t bytes = (int64_t)strlen(text);
    int64_t from = gar_max_i64(bytes - (GAR_ACTOR_TRACEBACK_BYTES - 1), 0);
    while (from > 0 && from < bytes && text[from - 1] != '\n') { /* whole lines */
        from++;
    }
    memcpy(slot->text, text + from, (size_t)(bytes - from + 1));
    slot->number = number;
    leave_slot(slot);
    return -1 - number;
}

bool gar_actor_failure_take(int64_t number, char out[GAR_ACTOR_TRACEBACK_BYTES])
{
    struct kept *slot = number < -1 ? enter_slot(-1 - number) : NULL;
    if (slot == NULL) {
        return false;
    }
    const bool is_there = slot->number == -1 - number;
    if (is_there) {
        memcpy(out, slot->text, strlen(slot->text) + 1);
        slot->number = 0;
    }
    leave_slot(slot);
    return is_there;
}
