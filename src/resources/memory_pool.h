/* SPDX-License-Identifier: Apache-2.0 */
/* The process's column memory: one budget, huge pages, size classes, blocks kept for reuse. Allocation goes through
 * accounts (resources/account.h). */
#ifndef GAR_RESOURCES_MEMORY_POOL_H
#define GAR_RESOURCES_MEMORY_POOL_H

#include "base/attrs.h"
#include "base/error.h"

struct gar_memory_pool;

/* A zeroed struct means defaults. */
struct gar_memory_pool_options {
    int64_t
        limit_bytes; /* budget of all accounts; 0: 75 % of what RAM, container and address space allow */
    int64_t
        resident_bytes; /* idle blocks kept by a trim; 0: a quarter of the limit, at most 2 GiB */
};

struct gar_memory_usage {
    int64_t limit_bytes;
    int64_t used_bytes;     /* handed out or reserved now */
    int64_t peak_bytes;     /* highest used_bytes since the start or the last reset */
    int64_t reserved_bytes; /* the part of used_bytes that are tickets */
    int64_t
        idle_bytes; /* kept for reuse; counts against the limit of the container, not against used_bytes */
    int64_t mapped_bytes;   /* taken from the kernel */
    int64_t resident_bytes; /* idle bytes that a trim keeps */
};

/* Owns: caller unrefs; accounts and buffers hold references too. Errors: GAR_ERR_NOMEM, GAR_ERR_VALUE (negative). */
GAR_MUST_USE enum gar_status gar_memory_pool_new(const struct gar_memory_pool_options *options,
                                                 struct gar_memory_pool **out,
                                                 struct gar_error *err);
/* The process's pool, made at the first call, never freed. NULL with err set when memory is out. Survives fork. */
struct gar_memory_pool *gar_memory_pool_process(struct gar_error *err);
struct gar_memory_pool *gar_memory_pool_ref(struct gar_memory_pool *pool);
void gar_memory_pool_unref(struct gar_memory_pool *pool);

/* The limit may be set below the use: then allocations fail until enough is given back. 0: the default. */
void gar_memory_pool_set_limit(struct gar_memory_pool *pool, int64_t bytes);
/* How many idle bytes a trim keeps; 0: the default. */
void gar_memory_pool_set_resident(struct gar_memory_pool *pool, int64_t bytes);
void gar_memory_pool_usage(struct gar_memory_pool *pool, struct gar_memory_usage *out);
void gar_memory_pool_reset_peak(struct gar_memory_pool *pool);
/* Around each query. While one is inside nothing is trimmed; the last leave trims, and so do later frees: when nothing is
 * in use any more, and each time that another part has gathered above the cap. */
void gar_memory_pool_enter(struct gar_memory_pool *pool);
void gar_memory_pool_leave(struct gar_memory_pool *pool);
/* Give idle blocks above the resident cap back to the kernel; between queries. Returns the bytes given back. */
int64_t gar_memory_pool_trim(struct gar_memory_pool *pool);
/* Give back every idle block. */
int64_t gar_memory_pool_trim_all(struct gar_memory_pool *pool);

#endif
