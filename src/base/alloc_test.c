/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation: counters, the failure hook, growth, arenas, the system memory. */
#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/cpu.h"
#include "base/hash.h"
#include "base/memory.h"

static void counts_live_blocks(void **state)
{
    (void)state;
    const int64_t bytes = gar_alloc_live_bytes();
    const int64_t blocks = gar_alloc_live_blocks();
    void *a = gar_malloc(100);
    void *b = gar_calloc(10, 10);
    void *c = gar_malloc(0);
    char *d = gar_strdup("text");
    assert_non_null(c);
    assert_string_equal(d, "text");
    assert_true(gar_alloc_live_bytes() >= bytes + 206);
    assert_int_equal(gar_alloc_live_blocks(), blocks + 4);
    a = gar_realloc(a, 10000);
    assert_non_null(a);
    assert_true(gar_alloc_live_bytes() >= bytes + 10106);
    gar_free(a);
    gar_free(b);
    gar_free(c);
    gar_free(d);
    gar_free(NULL);
    assert_int_equal(gar_alloc_live_bytes(), bytes);
    assert_int_equal(gar_alloc_live_blocks(), blocks);
}

static void absurd_sizes_are_refused(void **state)
{
    (void)state;
    assert_null(gar_malloc(INT64_MAX));
    assert_null(gar_calloc(INT64_MAX, INT64_MAX));
}

static void hook_fails_the_nth(void **state)
{
    (void)state;
    gar_alloc_fail_at(2, false);
    void *a = gar_malloc(1);
    void *b = gar_malloc(1);
    void *c = gar_malloc(1);
    assert_int_equal(gar_alloc_fail_at(0, false), 3);
    assert_non_null(a);
    assert_null(b);
    assert_non_null(c);
    gar_alloc_fail_at(1, true);
    assert_null(gar_realloc(a, 100));
    assert_null(gar_calloc(1, 1));
    struct gar_error err = GAR_ERROR_INIT;
    int64_t capacity = 0;
    assert_null(gar_memory_alloc(gar_memory_system(), 10, &capacity, &err));
    assert_int_equal(err.status, GAR_ERR_NOMEM);
    gar_alloc_fail_at(0, false);
    gar_free(a);
    gar_free(c);
}

static void grow_keeps_what_is_there(void **state)
{
    (void)state;
    void *items = NULL;
    int64_t capacity = 0;
    assert_int_equal(gar_grow(&items, &capacity, 3, 8, NULL), GAR_OK);
    assert_true(capacity >= 3);
    memset(items, 7, 24);
    const void *before = items;
    const int64_t capacity_before = capacity;
    struct gar_error err = GAR_ERROR_INIT;
    gar_alloc_fail_at(1, false);
    assert_int_equal(gar_grow(&items, &capacity, 1000, 8, &err), GAR_ERR_NOMEM);
    gar_alloc_fail_at(0, false);
    assert_ptr_equal(items, before);
    assert_int_equal(capacity, capacity_before);
    assert_int_equal(gar_grow(&items, &capacity, INT64_MAX, 8, NULL), GAR_ERR_NOMEM);
    assert_int_equal(gar_grow(&items, &capacity, 1000, 8, NULL), GAR_OK);
    assert_true(capacity >= 1000);
    assert_int_equal(((const char *)items)[23], 7);
    gar_free(items);
}

static void arena_gives_aligned_memory(void **state)
{
    (void)state;
    const int64_t blocks = gar_alloc_live_blocks();
    struct gar_arena arena = {0};
    for (int i = 0; i < 5000; i++) {
        char *p = gar_arena_alloc(&arena, i % 50);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 16, 0);
        memset(p, i, (size_t)(i % 50));
    }
    char *big = gar_arena_calloc(&arena, 3 << 20, 1);
    assert_non_null(big);
    assert_int_equal(big[(3 << 20) - 1], 0);
    assert_string_equal(gar_arena_strndup(&arena, "abcdef", 3), "abc");
    assert_null(gar_arena_alloc(&arena, -1));
    assert_null(gar_arena_calloc(&arena, INT64_MAX, INT64_MAX));
    assert_true(arena.total_bytes > 3 << 20);
    gar_arena_destroy(&arena);
    gar_arena_destroy(&arena);
    gar_arena_destroy(NULL);
    assert_int_equal(gar_alloc_live_blocks(), blocks);
}

static void system_memory_is_aligned_and_counted(void **state)
{
    (void)state;
    struct gar_memory *m = gar_memory_ref(gar_memory_system());
    const int64_t before = gar_memory_system_live_bytes();
    int64_t capacity = 0;
    void *data = gar_memory_alloc(m, 100, &capacity, NULL);
    assert_non_null(data);
    assert_int_equal((uintptr_t)data % 64, 0);
    assert_true(capacity >= 100);
    memset(data, 1, (size_t)capacity);
    assert_int_equal(gar_memory_system_live_bytes(), before + capacity);
    gar_memory_free(m, data, capacity);
    assert_int_equal(gar_memory_system_live_bytes(), before);
    data = gar_memory_alloc(m, 0, &capacity, NULL);
    assert_non_null(data);
    gar_memory_free(m, data, capacity);
    assert_null(gar_memory_alloc(m, INT64_MAX - 100, &capacity, NULL));
    gar_memory_unref(m);
}

static void isa_can_be_lowered_only(void **state)
{
    (void)state;
    const enum gar_isa best = gar_cpu_isa();
    assert_int_equal(gar_cpu_set_isa(GAR_ISA_PORTABLE), GAR_ISA_PORTABLE);
    assert_int_equal(gar_cpu_isa(), GAR_ISA_PORTABLE);
    assert_true(gar_cpu_set_isa(GAR_ISA_AVX512) >= best);
    gar_cpu_set_isa(best);
    assert_string_equal(gar_isa_name(GAR_ISA_AVX2), "avx2");
}

static void fixed_hash_has_known_values(void **state)
{
    (void)state;
    assert_true(gar_hash_xxh64("", 0) == UINT64_C(0xef46db3751d8e999));
    assert_true(gar_hash_xxh64("abc", 3) == UINT64_C(0x44bc2cf5ad770999));
    assert_true(gar_hash_bytes("abc", 3) != gar_hash_bytes("abd", 3));
    assert_true(gar_hash_combine(gar_hash_u64(1), gar_hash_u64(2)) !=
                gar_hash_combine(gar_hash_u64(2), gar_hash_u64(1)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_live_blocks),
        cmocka_unit_test(absurd_sizes_are_refused),
        cmocka_unit_test(hook_fails_the_nth),
        cmocka_unit_test(grow_keeps_what_is_there),
        cmocka_unit_test(arena_gives_aligned_memory),
        cmocka_unit_test(system_memory_is_aligned_and_counted),
        cmocka_unit_test(isa_can_be_lowered_only),
        cmocka_unit_test(fixed_hash_has_known_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
