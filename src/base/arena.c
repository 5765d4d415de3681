/* SPDX-License-Identifier: Apache-2.0 */
/* A bump allocator over doubling blocks. A request larger than the next block gets a block of its own size. */
#include "base/arena.h"

#include <string.h>

#include "base/alloc.h"

enum { ALIGN_BYTES = 16, FIRST_BLOCK_BYTES = 2048, LARGEST_BLOCK_BYTES = 1 << 20 };

struct gar_arena_block {
    struct gar_arena_block *older; /* owned */
    int64_t bytes;                 /* of the payload behind this header */
};

_Static_assert(sizeof(struct gar_arena_block) % ALIGN_BYTES == 0, "the payload must start aligned");

static bool add_block(struct gar_arena *arena, int64_t bytes)
{
    int64_t size = arena->blocks == NULL
                       ? FIRST_BLOCK_BYTES
                       : gar_min_i64(2 * arena->blocks->bytes, LARGEST_BLOCK_BYTES);
    size = gar_max_i64(size, bytes);
    struct gar_arena_block *block = gar_malloc((int64_t)sizeof *block + size);
    if (block == NULL) {
        return false;
    }
    block->older = arena->blocks;
    block->bytes = size;
    arena->blocks = block;
    arena->next = (char *)(block + 1);
    arena->left_bytes = size;
    arena->total_bytes += size;
    return true;
}

void *gar_arena_alloc(struct gar_arena *arena, int64_t bytes)
{
    if (bytes < 0 || bytes > INT64_MAX / 4) {
        return NULL;
    }
    const int64_t rounded =
        gar_max_i64((bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES, ALIGN_BYTES);
    if (rounded > arena->left_bytes && !add_block(arena, rounded)) {
        return NULL;
    }
    void *memory = arena->next;
    arena->next += rounded;
    arena->left_bytes -= rounded;
    return memory;
}

void *gar_arena_calloc(struct gar_arena *arena, int64_t count, int64_t item_bytes)
{
    int64_t bytes = 0;
    if (__builtin_mul_overflow(count, item_bytes, &bytes)) {
        return NULL;
    }
    void *memory = gar_arena_alloc(arena, bytes);
    if (memory != NULL && bytes > 0) {
        memset(memory, 0, (size_t)bytes);
    }
    return memory;
}

char *gar_arena_strndup(struct gar_arena *arena, const char *text, int64_t bytes)
{
    char *copy = gar_arena_alloc(arena, bytes + 1);
    if (copy != NULL) {
        if (bytes > 0) {
            memcpy(copy, text, (size_t)bytes);
        }
        copy[bytes] = '\0';
    }
    return copy;
}

void gar_arena_destroy(struct gar_arena *arena)
{
    if (arena == NULL) {
        return;
    }
    struct gar_arena_block *block = arena->blocks;
    while (block != NULL) {
        struct gar_arena_block *older = block->older;
        gar_free(block);
        block = older;
    }
    *arena = (struct gar_arena){0};
}
