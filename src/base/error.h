/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and forwarding errors. Messages: what was wrong, the value, the place, what to do; one line, lower case. */
#ifndef GAR_BASE_ERROR_H
#define GAR_BASE_ERROR_H

#include <gar/status.h>

#include "base/attrs.h"

/* Forward a failure (negative status) to the caller. Positive outcomes fall through. */
#define GAR_TRY(expr)                                   \
    do {                                                \
        const enum gar_status gar_try_status_ = (expr); \
        if (GAR_UNLIKELY(gar_try_status_ < 0)) {        \
            return gar_try_status_;                     \
        }                                               \
    } while (0)

/* An error struct to start from. */
#define GAR_ERROR_INIT                                                 \
    {                                                                  \
        .status = GAR_OK, .os_errno = 0, .position = -1, .message = "" \
    }

/* Write the message into err (may be NULL) and return status, so that callers can `return` it.
 * Messages longer than the buffer are cut at a character border. Threads: any. */
enum gar_status gar_error_set(struct gar_error *err, enum gar_status status, const char *format,
                              ...) GAR_PRINTF(3, 4);

/* The same for a failed system call: appends ": " and the system's text for the number. */
enum gar_status gar_error_set_errno(struct gar_error *err, int os_errno, const char *format, ...)
    GAR_PRINTF(3, 4);

/* GAR_ERR_NOMEM with a uniform message naming the bytes asked for. */
enum gar_status gar_error_nomem(struct gar_error *err, int64_t bytes);

/* Put text in front of the message that is there ("column 'price': "). */
void gar_error_prefix(struct gar_error *err, const char *format, ...) GAR_PRINTF(2, 3);

/* Escape control characters and cut long text so that a value can stand in a message. out gets at most
 * out_bytes - 1 bytes and a NUL. Returns out. */
const char *gar_error_quote(const char *text, int64_t text_bytes, char *out, int64_t out_bytes);

#endif
