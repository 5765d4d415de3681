/* SPDX-License-Identifier: Apache-2.0 */
/* The pool, accounts and tickets. */
#include "resources/account.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "os/fault.h"
#include "os/limits.h"
#include "resources/memory_pool_priv.h"

#define MIB (INT64_C(1) << 20)

static struct gar_memory_pool *new_pool(int64_t limit_bytes, int64_t resident_bytes)
{
    const struct gar_memory_pool_options options = {.limit_bytes = limit_bytes,
                                                    .resident_bytes = resident_bytes};
    struct gar_memory_pool *pool = NULL;
    assert_int_equal(gar_memory_pool_new(&options, &pool, NULL), GAR_OK);
    return pool;
}

static struct gar_account *new_account(struct gar_memory_pool *pool, int64_t limit_bytes)
{
    struct gar_account *account = NULL;
    assert_int_equal(gar_account_new(pool, "query", limit_bytes, &account, NULL), GAR_OK);
    return account;
}

static void test_block_sizes(void **state)
{
    (void)state;
    int64_t before = 0;
    for (int64_t bytes = 0; bytes < INT64_C(1) << 40; bytes = bytes + bytes / 37 + 1) {
        const int64_t block = gar_memory_pool_block_bytes(bytes);
        assert_true(block >= bytes && block > 0);
        assert_true(block >= before);
        assert_int_equal(gar_memory_pool_block_bytes(block), block);
        if (bytes > 8192) {
            assert_true(block <= bytes + bytes / 4 + 4096);
        }
        before = block;
    }
    /* A column of 2^n bytes with its padding wastes almost nothing. */
    for (int32_t n = 12; n < 26; n++) {
        const int64_t bytes = INT64_C(1) << n;
        assert_true(gar_memory_pool_block_bytes(bytes + 64) <= bytes + 128);
    }
}

static void test_sizes_and_reuse(void **state)
{
    (void)state;
    struct gar_memory_pool *pool = new_pool(1024 * MIB, 0);
    struct gar_account *account = new_account(pool, 0);
    for (int round = 0; round < 2; round++) {
        for (int64_t bytes = 0; bytes <= 80 * MIB; bytes = bytes * 3 / 2 + 1) {
            int64_t capacity = 0;
            char *data = gar_memory_alloc(&account->memory, bytes, &capacity, NULL);
            assert_non_null(data);
            assert_int_equal((intptr_t)data % 64, 0);
            assert_true(capacity >= bytes);
            assert_int_equal(gar_account_used_bytes(account), capacity);
            data[0] = 1;
            data[capacity - 1] = 2;
            gar_memory_free(&account->memory, data, capacity);
        }
    }
    struct gar_memory_usage usage;
    gar_memory_pool_usage(pool, &usage);
    assert_int_equal(usage.used_bytes, 0);
    assert_true(usage.peak_bytes >= 40 * MIB);
    assert_true(usage.idle_bytes > 0);
    assert_int_equal(usage.idle_bytes, usage.mapped_bytes);
    assert_true(gar_memory_pool_trim_all(pool) > 0);
    gar_memory_pool_usage(pool, &usage);
    assert_int_equal(usage.idle_bytes, 0);
    assert_int_equal(usage.mapped_bytes, 0);
    gar_account_unref(account);
    gar_memory_pool_unref(pool);
}

/* The second run of the same work takes nothing from the kernel. */
static void test_warm_run_has_no_faults(void **state)
{
    (void)state;
    struct gar_memory_pool *pool = new_pool(1024 * MIB, 0);
    struct gar_account *account = new_account(pool, 0);
    int64_t faults[3] = {0, 0, 0};
    for (int round = 0; round < 3; round++) {
        struct gar_os_usage before;
        struct gar_os_usage after;
        gar_os_usage_read(&before);
        void *data[32];
        int64_t capacity[32];
        for (int i = 0; i < 32; i++) {
            data[i] = gar_memory_alloc(&account->memory, (i + 1) * 40000, &capacity[i], NULL);
            assert_non_null(data[i]);
            memset(data[i], i, (size_t)capacity[i]);
        }
        for (int i = 0; i < 32; i++) {
            gar_memory_free(&account->memory, data[i], capacity[i]);
        }
        gar_os_usage_read(&after);
        faults[round] = after.minor_faults - before.minor_faults;
    }
    assert_true(faults[2] < 20);
    gar_account_unref(account);
    gar_memory_pool_unref(pool);
}

static void test_limits(void **state)
{
    (void)state;
    struct gar_memory_pool *pool = new_pool(8 * MIB, 0);
    struct gar_account *small = new_account(pool, 2 * MIB);
    struct gar_account *free_account = new_account(pool, 0);
    struct gar_error err = GAR_ERROR_INIT;
    int64_t capacity[2];
    assert_null(gar_memory_alloc(&small->memory, 3 * MIB, &capacity[0], &err));
    assert_int_equal(err.status, GAR_ERR_NOMEM);
    assert_non_null(strstr(err.message, "query asked for 3.0 MiB"));
    assert_non_null(strstr(err.message, "limit of 2.0 MiB"));
    void *a = gar_memory_alloc(&free_account->memory, 7 * MIB, &capacity[0], NULL);
    assert_non_null(a);
    assert_null(gar_memory_alloc(&small->memory, MIB, &capacity[1], &err));
    assert_non_null(strstr(err.message, "process's limit of 8.0 MiB"));
    assert_int_equal(gar_account_used_bytes(small), 0);
    gar_memory_free(&free_account->memory, a, capacity[0]);
    /* Idle memory of another size makes way. */
    a = gar_memory_alloc(&small->memory, MIB, &capacity[1], NULL);
    assert_non_null(a);
    struct gar_memory_usage usage;
    gar_memory_pool_usage(pool, &usage);
    assert_true(usage.mapped_bytes <= 8 * MIB);
    gar_memory_free(&small->memory, a, capacity[1]);
    assert_null(gar_memory_alloc(&small->memory, -1, &capacity[0], &err));
    assert_null(gar_memory_alloc(&small->memory, INT64_MAX, &capacity[0], &err));
    gar_memory_pool_set_limit(pool, 1);
    assert_int_equal(gar_account_room_bytes(small), 1);
    assert_null(gar_memory_alloc(&small->memory, 100, &capacity[0], &err));
    gar_account_unref(small);
    gar_account_unref(free_account);
    gar_memory_pool_unref(pool);
    const struct gar_memory_pool_options bad = {.limit_bytes = -1};
    assert_int_equal(gar_memory_pool_new(&bad, &pool, &err), GAR_ERR_VALUE);
}

static void test_tickets(void **state)
{
    (void)state;
    struct gar_memory_pool *pool = new_pool(10 * MIB, 0);
    struct gar_account *account = new_account(pool, 0);
    struct gar_ticket ticket = {0};
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(gar_ticket_reserve(&ticket, account, 6 * MIB, NULL), GAR_OK);
    assert_int_equal(gar_ticket_reserve(&ticket, account, 5 * MIB, &err), GAR_ERR_NOMEM);
    assert_int_equal(gar_ticket_reserve(&ticket, account, INT64_MAX, &err), GAR_ERR_NOMEM);
    assert_int_equal(ticket.bytes, 6 * MIB);
    assert_int_equal(gar_ticket_reserve(&ticket, account, 4 * MIB, NULL), GAR_OK);
    assert_int_equal(gar_account_room_bytes(account), 0);
    gar_ticket_shrink(&ticket, 1 * MIB);
    struct gar_memory_usage usage;
    gar_memory_pool_usage(pool, &usage);
    assert_int_equal(usage.reserved_bytes, 9 * MIB);
    assert_int_equal(usage.used_bytes, 9 * MIB);
    gar_ticket_release(&ticket);
    gar_ticket_release(&ticket);
    gar_memory_pool_usage(pool, &usage);
    assert_int_equal(usage.used_bytes, 0);
    assert_int_equal(usage.peak_bytes, 10 * MIB);
    assert_int_equal(gar_account_peak_bytes(account), 10 * MIB);
    gar_account_unref(account);
    gar_memory_pool_unref(pool);
}

static void test_memory_outlives_account(void **state)
{
    (void)state;
    struct gar_memory_pool *pool = new_pool(100 * MIB, 0);
    struct gar_account *account = new_account(pool, 0);
    struct gar_memory *memory = gar_memory_ref(&account->memory);
    int64_t capacity;
    void *data = gar_memory_alloc(memory, MIB, &capacity, NULL);
    gar_account_unref(account);
    gar_memory_pool_unref(pool);
    memset(data, 1, (size_t)capacity);
    gar_memory_free(memory, data, capacity);
    gar_memory_unref(memory);
}

static void test_trim_keeps_the_cap(void **state)
{
    (void)state;
    struct gar_memory_pool *pool = new_pool(512 * MIB, 20 * MIB);
    struct gar_account *account = new_account(pool, 0);
    gar_memory_pool_enter(pool); /* frees do not trim */
    void *data[64];
    int64_t capacity[64];
    for (int i = 0; i < 64; i++) {
        data[i] = gar_memory_alloc(&account->memory, MIB, &capacity[i], NULL);
        assert_non_null(data[i]);
    }
    for (int i = 0; i < 64; i += 2) { /* every second one: only spans that are wholly free can go */
        gar_memory_free(&account->memory, data[i], capacity[i]);
    }
    (void)gar_memory_pool_trim(pool);
    for (int i = 1; i < 64; i += 2) {
        memset(data[i], 1, (size_t)capacity[i]);
        gar_memory_free(&account->memory, data[i], capacity[i]);
    }
    assert_true(gar_memory_pool_trim(pool) >= 40 * MIB);
    gar_memory_pool_leave(pool);
    struct gar_memory_usage usage;
    gar_memory_pool_usage(pool, &usage);
    assert_true(usage.idle_bytes <= 20 * MIB);
    gar_account_unref(account);
    gar_memory_pool_unref(pool);
}

static int64_t idle_bytes(struct gar_memory_pool *pool)
{
    struct gar_memory_usage usage;
    gar_memory_pool_usage(pool, &usage);
    return usage.idle_bytes;
}

/* While a query is inside nothing goes; its leave trims; what is freed afterwards goes in parts and with the last block. */
static void test_late_frees(void **state)
{
    (void)state;
    struct gar_memory_pool *pool = new_pool(512 * MIB, 20 * MIB);
    struct gar_account *account = new_account(pool, 0);
    void *data[200];
    int64_t capacity[200];
    gar_memory_pool_enter(pool);
    gar_memory_pool_enter(pool);
    for (int i = 0; i < 200; i++) {
        data[i] = gar_memory_alloc(&account->memory, MIB, &capacity[i], NULL);
        assert_non_null(data[i]);
    }
    for (int i = 0; i < 40; i++) {
        gar_memory_free(&account->memory, data[i], capacity[i]);
    }
    gar_memory_pool_leave(pool);
    assert_true(idle_bytes(pool) >= 40 * MIB);
    gar_memory_pool_leave(pool);
    assert_true(idle_bytes(pool) <= 40 * MIB); /* partly used spans may stay */
    for (int i = 40; i < 200; i++) {
        gar_memory_free(&account->memory, data[i], capacity[i]);
        assert_true(idle_bytes(pool) <= (20 + 64 + 40) * MIB);
    }
    assert_true(idle_bytes(pool) <= 20 * MIB);
    gar_memory_pool_set_resident(pool, MIB);
    void *one = gar_memory_alloc(&account->memory, MIB, &capacity[0], NULL);
    assert_non_null(one);
    gar_memory_free(&account->memory, one, capacity[0]);
    assert_true(idle_bytes(pool) <= MIB);
    gar_account_unref(account);
    gar_memory_pool_unref(pool);
}

/* Large maps are kept and reused when nearly the size. */
static void test_large(void **state)
{
    (void)state;
    struct gar_memory_pool *pool = new_pool(1024 * MIB, 0);
    struct gar_account *account = new_account(pool, 0);
    int64_t capacity;
    void *first = gar_memory_alloc(&account->memory, 50 * MIB, &capacity, NULL);
    gar_memory_free(&account->memory, first, capacity);
    void *second = gar_memory_alloc(&account->memory, 45 * MIB, &capacity, NULL);
    assert_ptr_equal(first, second);
    ((char *)second)[capacity - 1] = 1;
    struct gar_memory_usage usage;
    gar_memory_pool_usage(pool, &usage);
    assert_int_equal(usage.mapped_bytes, capacity);
    gar_memory_free(&account->memory, second, capacity);
    gar_account_unref(account);
    gar_memory_pool_unref(pool);
}

/* Refusals of the allocator and the kernel leave the accounts right. */
static void test_refused(void **state)
{
    (void)state;
    for (int64_t n = 1; n < 12; n++) {
        struct gar_memory_pool *pool = NULL;
        struct gar_account *account = NULL;
        const struct gar_memory_pool_options options = {.limit_bytes = 256 * MIB};
        struct gar_error err = GAR_ERROR_INIT;
        (void)gar_alloc_fail_at(n, n % 2 == 0);
        if (gar_memory_pool_new(&options, &pool, &err) == GAR_OK &&
            gar_account_new(pool, "query", 0, &account, &err) == GAR_OK) {
            static const int64_t sizes[] = {100, 5000, 100000, 3 * MIB, 40 * MIB};
            for (int64_t i = 0; i < GAR_COUNT_OF(sizes); i++) {
                int64_t capacity;
                void *data = gar_memory_alloc(&account->memory, sizes[i], &capacity, &err);
                if (data == NULL) {
                    assert_int_equal(err.status, GAR_ERR_NOMEM);
                } else {
                    gar_memory_free(&account->memory, data, capacity);
                }
                assert_int_equal(gar_account_used_bytes(account), 0);
            }
        } else {
            assert_int_equal(err.status, GAR_ERR_NOMEM);
        }
        (void)gar_alloc_fail_at(0, false);
        gar_account_unref(account);
        gar_memory_pool_unref(pool);
    }
    struct gar_memory_pool *pool = new_pool(256 * MIB, 0);
    struct gar_account *account = new_account(pool, 0);
    const struct gar_os_fault fault = {
        .call = GAR_OS_MAP, .nth = 1, .and_on = true, .os_errno = ENOMEM};
    gar_os_fault_set(&fault);
    struct gar_error err = GAR_ERROR_INIT;
    int64_t capacity;
    assert_null(gar_memory_alloc(&account->memory, MIB, &capacity, &err));
    assert_null(gar_memory_alloc(&account->memory, 100 * MIB, &capacity, &err));
    gar_os_fault_set(NULL);
    assert_int_equal(gar_account_used_bytes(account), 0);
    gar_account_unref(account);
    gar_memory_pool_unref(pool);
}

static void test_process_pool_survives_fork(void **state)
{
    (void)state;
    struct gar_memory_pool *pool = gar_memory_pool_process(NULL);
    assert_non_null(pool);
    assert_ptr_equal(pool, gar_memory_pool_process(NULL));
    struct gar_account *account = new_account(pool, 0);
    int64_t capacity;
    char *data = gar_memory_alloc(&account->memory, 200000, &capacity, NULL);
    data[5] = 42;
    const pid_t child = fork();
    if (child == 0) {
        int64_t more_capacity;
        char *more = gar_memory_alloc(&account->memory, 200000, &more_capacity, NULL);
        const bool is_right = more != NULL && data[5] == 42;
        gar_memory_free(&account->memory, data, capacity);
        _exit(is_right ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(data[5], 42);
    gar_memory_free(&account->memory, data, capacity);
    gar_account_unref(account);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block_sizes),
        cmocka_unit_test(test_sizes_and_reuse),
        cmocka_unit_test(test_warm_run_has_no_faults),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_tickets),
        cmocka_unit_test(test_memory_outlives_account),
        cmocka_unit_test(test_trim_keeps_the_cap),
        cmocka_unit_test(test_late_frees),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_process_pool_survives_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
