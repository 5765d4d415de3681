/* SPDX-License-Identifier: Apache-2.0 */
/* Status codes and the error struct that every fallible Gar function takes. */
#ifndef GAR_STATUS_H
#define GAR_STATUS_H

#include <stdint.h>

#if defined(__GNUC__)
#define GAR_API      __attribute__((visibility("default")))
#define GAR_MUST_USE __attribute__((warn_unused_result))
#else
#define GAR_API
#define GAR_MUST_USE
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define GAR_STATUS(name, number, text, exception) name = (number),
enum gar_status {
#include <gar/status.def>
};
#undef GAR_STATUS

/* Room for a message, its terminating NUL included. */
#define GAR_ERROR_MESSAGE_BYTES 1024

/* What went wrong. The caller owns the struct; functions only write it when they fail. */
struct gar_error {
    enum gar_status status; /* same as the function's result */
    int32_t os_errno;       /* errno of a failed system call, else 0 */
    int64_t
        position; /* byte offset in a parsed text, number of a worker's traceback (below -1), else -1 */
    char message[GAR_ERROR_MESSAGE_BYTES]; /* one line of UTF-8, NUL-terminated */
};

/* The name ("GAR_ERR_IO"), short text and Python exception class of a status.
 * Threads: any. Owns: static strings. */
GAR_API const char *gar_status_name(enum gar_status status);
GAR_API const char *gar_status_text(enum gar_status status);
GAR_API const char *gar_status_exception(enum gar_status status);

#ifdef __cplusplus
}
#endif
#endif
