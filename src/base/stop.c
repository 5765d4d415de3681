/* SPDX-License-Identifier: Apache-2.0 */
/* The word by which the task on this thread is stopped. */
#include "base/stop.h"

_Thread_local const int32_t *gar_stop_word;

enum gar_status gar_stop_check(struct gar_error *err)
{
    return gar_stop_requested() ? gar_error_set(err, GAR_ERR_CANCELLED, "cancelled") : GAR_OK;
}
