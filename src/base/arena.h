/* SPDX-License-Identifier: Apache-2.0 */
/* A region freed whole: many small objects of one lifetime (a plan, a parse, a footer). Not thread-safe. */
#ifndef GAR_BASE_ARENA_H
#define GAR_BASE_ARENA_H

#include "base/attrs.h"
#include "base/error.h"

struct gar_arena_block;

/* A zeroed struct is a valid empty arena. */
struct gar_arena {
    struct gar_arena_block *blocks; /* owned; newest first */
    char *next;                     /* free space in the newest block */
    int64_t left_bytes;
    int64_t total_bytes; /* what all blocks hold, for limits */
};

/* 16-byte aligned memory that lives until the arena is destroyed; NULL when refused. bytes >= 0. */
void *gar_arena_alloc(struct gar_arena *arena, int64_t bytes);
void *gar_arena_calloc(struct gar_arena *arena, int64_t count, int64_t item_bytes);
char *gar_arena_strndup(struct gar_arena *arena, const char *text, int64_t bytes);
void gar_arena_destroy(struct gar_arena *arena);

#endif
