/* SPDX-License-Identifier: Apache-2.0 */
/* The one door to the C library's allocator, with counters and a failure hook for tests. Column memory does
 * not come from here but from a struct gar_memory (base/memory.h). */
#ifndef GAR_BASE_ALLOC_H
#define GAR_BASE_ALLOC_H

#include "base/attrs.h"
#include "base/error.h"

/* As malloc, calloc, realloc and free. Sizes are signed: a negative or zero size counts as 1 byte. Return NULL when
 * refused. Threads: any. Owns: the caller frees with gar_free. */
void *gar_malloc(int64_t bytes);
void *gar_calloc(int64_t items, int64_t item_bytes);
void *gar_realloc(void *old, int64_t bytes);
void gar_free(void *memory);
char *gar_strdup(const char *text);
char *gar_strndup(const char *text, int64_t bytes);

/* Make room for at least `want` items: doubles the capacity. On failure *items and *capacity are untouched. */
GAR_MUST_USE enum gar_status gar_grow(void **items, int64_t *capacity, int64_t want,
                                      int64_t item_bytes, struct gar_error *err);

/* Bytes and blocks alive from this allocator. */
int64_t gar_alloc_live_bytes(void);
int64_t gar_alloc_live_blocks(void);

/* Test hook: let the n-th next allocation fail (1 = the next); and all after it if `and_on`. 0 switches it off.
 * Returns how many allocations were made since the last call. */
int64_t gar_alloc_fail_at(int64_t n, bool and_on);
/* True when the hook decides that this allocation fails; other allocators ask it too. */
bool gar_alloc_must_fail(void);

#endif
