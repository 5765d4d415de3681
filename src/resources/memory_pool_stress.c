/* SPDX-License-Identifier: Apache-2.0 */
/* Several threads allocate, write, pass blocks to each other, free and trim. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "os/test_point.h"
#include "os/thread.h"
#include "resources/account.h"

enum { THREADS = 4, SLOTS = 64, ROUNDS = 3000 };

struct slot {
    void *data;
    int64_t capacity;
};

static struct slot *slots[SLOTS]; /* atomic: whoever exchanges one owns it */
static struct gar_account *account;

static void work(void *context)
{
    uint64_t random = *(const uint64_t *)context;
    for (int i = 0; i < ROUNDS; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        struct slot *mine = gar_malloc((int64_t)sizeof *mine);
        const int64_t bytes = (int64_t)((random >> 33) % (1u << (10 + random % 12)));
        mine->data = gar_memory_alloc(&account->memory, bytes, &mine->capacity, NULL);
        if (mine->data != NULL) {
            memset(mine->data, (int)(random & 0xff), (size_t)gar_min_i64(mine->capacity, 4096));
        }
        struct slot *old =
            __atomic_exchange_n(&slots[(random >> 20) % SLOTS], mine, __ATOMIC_ACQ_REL);
        if (old != NULL) {
            gar_memory_free(&account->memory, old->data, old->capacity);
            gar_free(old);
        }
        if (random % 31 == 0) {
            gar_memory_pool_enter(account->pool);
            gar_memory_pool_leave(account->pool);
        }
        if (random % 97 == 0) {
            (void)gar_memory_pool_trim_all(account->pool);
        }
    }
}

int main(void)
{
    const struct gar_memory_pool_options options = {.limit_bytes = INT64_C(20) << 20,
                                                    .resident_bytes = INT64_C(1) << 20};
    struct gar_memory_pool *pool;
    if (gar_memory_pool_new(&options, &pool, NULL) != GAR_OK ||
        gar_account_new(pool, "stress", 0, &account, NULL) != GAR_OK) {
        return 1;
    }
    gar_test_point_set(7, 50);
    struct gar_thread threads[THREADS];
    uint64_t seeds[THREADS];
    memset(threads, 0, sizeof threads);
    for (int i = 0; i < THREADS; i++) {
        seeds[i] = (uint64_t)i + 1;
        const struct gar_thread_options thread_options = {.name = "Stress"};
        if (gar_thread_start(&threads[i], &thread_options, work, &seeds[i], NULL) != GAR_OK) {
            return 1;
        }
    }
    for (int i = 0; i < THREADS; i++) {
        gar_thread_join(&threads[i]);
    }
    for (int i = 0; i < SLOTS; i++) {
        if (slots[i] != NULL) {
            gar_memory_free(&account->memory, slots[i]->data, slots[i]->capacity);
            gar_free(slots[i]);
        }
    }
    struct gar_memory_usage usage;
    gar_memory_pool_usage(pool, &usage);
    const bool is_right = usage.used_bytes == 0 && usage.idle_bytes == usage.mapped_bytes;
    printf("used %lld idle %lld mapped %lld\n", (long long)usage.used_bytes,
           (long long)usage.idle_bytes, (long long)usage.mapped_bytes);
    gar_account_unref(account);
    gar_memory_pool_unref(pool);
    return is_right ? 0 : 1;
}
