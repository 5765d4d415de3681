/* SPDX-License-Identifier: Apache-2.0 */
/* What the death or the exception of a process that held a device says about the device. */
#ifndef GAR_RESOURCES_DEVICE_ERROR_H
#define GAR_RESOURCES_DEVICE_ERROR_H

#include "base/attrs.h"

enum gar_device_error {
    GAR_DEVICE_FINE, /* the device had no part in it: an error of the user's, or of an argument */
    GAR_DEVICE_FULL, /* the device's memory is used up; the process and the device can go on */
    GAR_DEVICE_POISON, /* the process's CUDA context is lost: start a fresh process; the device is fine */
    GAR_DEVICE_SUSPECT, /* the process died as CUDA programs die: set aside when it happens twice in a row */
    GAR_DEVICE_LOST, /* the device is gone or damaged: set it aside now */
};

/* exit_code: of the process, -1: it runs or died by a signal; signal: 0 if none. text: message of the exception, or the
 * last lines of standard error; may be NULL. The text decides where it says something, the exit otherwise.
 * out_why (may be NULL): the static words of the table that decided, for messages ("uncorrectable ECC error").
 * Only for processes that held a device. Threads: any. */
enum gar_device_error gar_device_error_classify(int32_t exit_code, int32_t signal, const char *text,
                                                const char **out_why);

#endif
