/* SPDX-License-Identifier: Apache-2.0 */
/* Asking a long computation to stop. Who runs a task says by a word whether it goes on; loops deep inside, which know of no
 * query, look at it now and then. */
#ifndef GAR_BASE_STOP_H
#define GAR_BASE_STOP_H

#include "base/attrs.h"
#include "base/error.h"

/* Of the task on this thread: atomic, 0 means go on, borrowed until the task ends; NULL: nobody stops it. */
extern _Thread_local const int32_t *gar_stop_word;

/* Once in some thousand rows. */
GAR_INLINE bool gar_stop_requested(void)
{
    return gar_stop_word != NULL &&
           GAR_UNLIKELY(__atomic_load_n(gar_stop_word, __ATOMIC_RELAXED) != 0);
}

/* GAR_OK, or GAR_ERR_CANCELLED: who runs the task knows the reason. */
GAR_MUST_USE enum gar_status gar_stop_check(struct gar_error *err);

#endif
