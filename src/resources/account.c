/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts and tickets. A charge goes to the account first and is taken back when the pool refuses. */
#include "resources/account.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "resources/memory_pool_priv.h"
#include "resources/request.h"

#define ALLOC_BYTES_MAX (INT64_C(1) << 60)

static bool charge(struct gar_account *account, int64_t bytes, bool is_ticket);
static void discharge(struct gar_account *account, int64_t bytes, bool is_ticket);
static enum gar_status refuse(const struct gar_account *account, int64_t bytes,
                              struct gar_error *err);

static void *account_alloc(struct gar_memory *self, int64_t bytes, int64_t *out_capacity,
                           struct gar_error *err)
{
    struct gar_account *account = (struct gar_account *)self;
    if (bytes < 0 || bytes > ALLOC_BYTES_MAX) {
        gar_error_nomem(err, bytes);
        return NULL;
    }
    const int64_t block_bytes = gar_memory_pool_block_bytes(bytes);
    if (!charge(account, block_bytes, false)) {
        (void)refuse(account, block_bytes, err);
        return NULL;
    }
    int64_t idle_bytes = block_bytes;
    void *data = gar_memory_pool_take_idle(account->pool, block_bytes, &idle_bytes);
    if (data != NULL) {
        if (charge(account, idle_bytes - block_bytes, false)) {
            *out_capacity = idle_bytes;
            return data;
        }
        gar_memory_pool_give(account->pool, data, idle_bytes); /* too large for what is left */
    }
    data = gar_memory_pool_take(account->pool, block_bytes);
    if (data == NULL) {
        discharge(account, block_bytes, false);
        gar_error_nomem(err, bytes);
        return NULL;
    }
    *out_capacity = block_bytes;
    return data;
}

static void account_free(struct gar_memory *self, void *data, int64_t capacity)
{
    struct gar_account *account = (struct gar_account *)self;
    gar_memory_pool_give(account->pool, data, capacity);
    discharge(account, capacity, false);
    gar_memory_pool_freed(account->pool);
}

static void account_ref(struct gar_memory *self)
{
    (void)gar_account_ref((struct gar_account *)self);
}

static void account_unref(struct gar_memory *self)
{
    gar_account_unref((struct gar_account *)self);
}

static int64_t account_room(const struct gar_memory *self, int64_t *out_limit)
{
    const struct gar_account *account = (const struct gar_account *)self;
    struct gar_memory_usage usage;
    gar_memory_pool_usage(account->pool, &usage);
    *out_limit =
        gar_min_i64(__atomic_load_n(&account->limit_bytes, __ATOMIC_RELAXED), usage.limit_bytes);
    return gar_account_room_bytes(account);
}

enum gar_status gar_account_new(struct gar_memory_pool *pool, const char *name, int64_t limit_bytes,
                                struct gar_account **out, struct gar_error *err)
{
    static const struct gar_memory_vtable vtable = {.alloc = account_alloc,
                                                    .free = account_free,
                                                    .ref = account_ref,
                                                    .unref = account_unref,
                                                    .room = account_room};
    if (limit_bytes < 0) {
        return gar_error_set(err, GAR_ERR_VALUE, "memory limit %lld of %s must not be negative",
                             (long long)limit_bytes, name);
    }
    struct gar_account *account = gar_calloc(1, (int64_t)sizeof *account);
    if (account == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *account);
    }
    account->memory.vtable = &vtable;
    account->pool = gar_memory_pool_ref(pool);
    account->limit_bytes = limit_bytes > 0 ? limit_bytes : INT64_MAX;
    account->refs = 1;
    (void)snprintf(account->name, sizeof account->name, "%s", name);
    *out = account;
    return GAR_OK;
}

struct gar_account *gar_account_ref(struct gar_account *account)
{
    (void)__atomic_fetch_add(&account->refs, 1, __ATOMIC_RELAXED);
    return account;
}

void gar_account_unref(struct gar_account *account)
{
    if (account == NULL || __atomic_sub_fetch(&account->refs, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    assert(account->used_bytes == 0);
    gar_memory_pool_unref(account->pool);
    gar_free(account);
}

int64_t gar_account_used_bytes(const struct gar_account *account)
{
    return __atomic_load_n(&account->used_bytes, __ATOMIC_RELAXED);
}

int64_t gar_account_peak_bytes(const struct gar_account *account)
{
    return __atomic_load_n(&account->peak_bytes, __ATOMIC_RELAXED);
}

int64_t gar_account_room_bytes(const struct gar_account *account)
{
    struct gar_memory_usage usage;
    gar_memory_pool_usage(account->pool, &usage);
    const int64_t own =
        __atomic_load_n(&account->limit_bytes, __ATOMIC_RELAXED) - gar_account_used_bytes(account);
    return gar_max_i64(gar_min_i64(own, usage.limit_bytes - usage.used_bytes), 0);
}

enum gar_status gar_ticket_reserve(struct gar_ticket *ticket, struct gar_account *account,
                                   int64_t bytes, struct gar_error *err)
{
    assert(bytes >= 0 && (ticket->account == NULL || ticket->account == account));
    if (bytes > ALLOC_BYTES_MAX || !charge(account, bytes, true)) {
        return refuse(account, bytes, err);
    }
    if (ticket->account == NULL) {
        ticket->account = gar_account_ref(account);
    }
    ticket->bytes += bytes;
    return GAR_OK;
}

void gar_ticket_shrink(struct gar_ticket *ticket, int64_t bytes)
{
    assert(bytes >= 0 && bytes <= ticket->bytes);
    if (ticket->account != NULL) {
        ticket->bytes -= bytes;
        discharge(ticket->account, bytes, true);
    }
}

void gar_ticket_release(struct gar_ticket *ticket)
{
    struct gar_account *account = ticket->account;
    if (account != NULL) {
        discharge(account, ticket->bytes, true);
        memset(ticket, 0, sizeof *ticket);
        gar_account_unref(account);
    }
}

static bool charge(struct gar_account *account, int64_t bytes, bool is_ticket)
{
    int64_t used = gar_account_used_bytes(account);
    do {
        if (bytes > __atomic_load_n(&account->limit_bytes, __ATOMIC_RELAXED) - used) {
            return false;
        }
    } while (!__atomic_compare_exchange_n(&account->used_bytes, &used, used + bytes, true,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    if (!gar_memory_pool_charge(account->pool, bytes, is_ticket)) {
        (void)__atomic_fetch_sub(&account->used_bytes, bytes, __ATOMIC_RELAXED);
        return false;
    }
    gar_raise_peak(&account->peak_bytes, used + bytes);
    return true;
}

static void discharge(struct gar_account *account, int64_t bytes, bool is_ticket)
{
    (void)__atomic_fetch_sub(&account->used_bytes, bytes, __ATOMIC_RELAXED);
    gar_memory_pool_discharge(account->pool, bytes, is_ticket);
}

static enum gar_status refuse(const struct gar_account *account, int64_t bytes,
                              struct gar_error *err)
{
    struct gar_memory_usage usage;
    gar_memory_pool_usage(account->pool, &usage);
    const int64_t own_limit = __atomic_load_n(&account->limit_bytes, __ATOMIC_RELAXED);
    const int64_t own_used = gar_account_used_bytes(account);
    char asked[32];
    char used[32];
    char limit[32];
    (void)gar_bytes_text(bytes, asked, (int64_t)sizeof asked);
    if (bytes > own_limit - own_used) {
        return gar_error_set(err, GAR_ERR_NOMEM,
                             "out of memory: %s asked for %s and uses %s of its limit of %s; raise "
                             "that limit or work "
                             "on less at once",
                             account->name, asked,
                             gar_bytes_text(own_used, used, (int64_t)sizeof used),
                             gar_bytes_text(own_limit, limit, (int64_t)sizeof limit));
    }
    return gar_error_set(
        err, GAR_ERR_NOMEM,
        "out of memory: %s asked for %s, but %s of the process's limit of %s are in use; raise the "
        "memory limit, work on less at once or finish other queries first",
        account->name, asked, gar_bytes_text(usage.used_bytes, used, (int64_t)sizeof used),
        gar_bytes_text(usage.limit_bytes, limit, (int64_t)sizeof limit));
}
