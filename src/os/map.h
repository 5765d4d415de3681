/* SPDX-License-Identifier: Apache-2.0 */
/* Anonymous memory from the kernel, in huge pages where it gives them. */
#ifndef GAR_OS_MAP_H
#define GAR_OS_MAP_H

#include "base/attrs.h"
#include "base/error.h"

#define GAR_MAP_HUGE_BYTES INT64_C(2097152)

#define GAR_MAP_PAGE_BYTES INT64_C(4096)

/* bytes (> 0, a multiple of GAR_MAP_PAGE_BYTES) at a multiple of GAR_MAP_HUGE_BYTES, zeroed; pages appear at first touch.
 * is_huge: huge pages are asked for, except for the last part that does not fill one. NULL with errno set when refused. */
void *gar_map_new(int64_t bytes, bool is_huge);
void gar_map_free(void *data, int64_t bytes);
/* Make the pages exist now (much cheaper than one fault a page); what the kernel refuses comes at first touch. */
void gar_map_populate(void *data, int64_t bytes);
/* Give the pages back but keep the range. */
void gar_map_discard(void *data, int64_t bytes);

#endif
