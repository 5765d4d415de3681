/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic reference counts of buffers, columns, batches and schemas. */
#ifndef GAR_ARROW_REFS_PRIV_H
#define GAR_ARROW_REFS_PRIV_H

#include "base/attrs.h"

/* One more reference. Relaxed: whoever adds one holds one already. */
GAR_INLINE void ref_add(int64_t *refs)
{
    __atomic_fetch_add(refs, 1, __ATOMIC_RELAXED);
}

/* One reference less; true when it was the last. Release and acquire: all writes of other owners come first. */
GAR_INLINE bool ref_drop(int64_t *refs)
{
    return __atomic_fetch_sub(refs, 1, __ATOMIC_ACQ_REL) == 1;
}

/* Is this the only reference? */
GAR_INLINE bool ref_is_only(const int64_t *refs)
{
    return __atomic_load_n(refs, __ATOMIC_ACQUIRE) == 1;
}

/* Takes const away where a counted object is handed on. */
GAR_INLINE void *drop_const(const void *p)
{
    return (void *)(uintptr_t)p;
}

#endif
