/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts: one a query. Each is a struct gar_memory that charges the pool's budget and its own limit, and takes
 * reservations for memory that is not allocated through it. */
#ifndef GAR_RESOURCES_ACCOUNT_H
#define GAR_RESOURCES_ACCOUNT_H

#include "base/memory.h"
#include "resources/memory_pool.h"

/* memory is the first member: (struct gar_memory *)account works, gar_buffer_new(&account->memory, ...) is usual. */
struct gar_account {
    struct gar_memory memory;
    struct gar_memory_pool *pool; /* owned reference */
    int64_t limit_bytes;          /* atomic; INT64_MAX: only the pool's */
    int64_t refs;                 /* atomic */
    int64_t used_bytes;           /* atomic; handed out and reserved */
    int64_t peak_bytes;           /* atomic */
    char name[32];                /* for messages: "query", "scan of 'a.parquet'" */
};

/* limit_bytes 0: no limit of its own. name is copied and cut.
 * Memory refused by either limit is GAR_ERR_NOMEM: "out of memory: query asked for 128.0 MiB, uses 900.0 MiB of its
 * limit of 1.0 GiB; raise the memory limit or work on less at once".
 * Owns: caller unrefs; every buffer holds a reference, so that they may outlive the query. Threads: any. */
GAR_MUST_USE enum gar_status gar_account_new(struct gar_memory_pool *pool, const char *name,
                                             int64_t limit_bytes, struct gar_account **out,
                                             struct gar_error *err);
struct gar_account *gar_account_ref(struct gar_account *account);
void gar_account_unref(struct gar_account *account);
int64_t gar_account_used_bytes(const struct gar_account *account);
int64_t gar_account_peak_bytes(const struct gar_account *account);
/* How much may still be taken: the smaller room of account and pool, at least 0. Advice, not a promise. */
int64_t gar_account_room_bytes(const struct gar_account *account);

/* A reservation: bytes that are used elsewhere (gar_malloc, a library's state, a file cache). Zeroed = nothing held. */
struct gar_ticket {
    struct gar_account *account; /* owned reference while bytes > 0 */
    int64_t bytes;
};

/* Hold `bytes` more in the ticket. Errors: GAR_ERR_NOMEM as for memory; the ticket is then unchanged.
 * Threads: one ticket is used by one thread at a time. */
GAR_MUST_USE enum gar_status gar_ticket_reserve(struct gar_ticket *ticket,
                                                struct gar_account *account, int64_t bytes,
                                                struct gar_error *err);
/* Give `bytes` (at most what is held) back. */
void gar_ticket_shrink(struct gar_ticket *ticket, int64_t bytes);
/* Give all back; a zeroed or released ticket is fine. */
void gar_ticket_release(struct gar_ticket *ticket);

#endif
