/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of what was worked out from files: hits, changes that the times of content hide, room, references. */
#include "storage/file_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/storage_test_priv.h"

/* Changes younger than two seconds are not trusted. */
#define SETTLE_US 2200000

struct value {
    int64_t refs;
};

static void ref_value(void *value)
{
    ((struct value *)value)->refs++;
}

static void unref_value(void *value)
{
    ((struct value *)value)->refs--;
}

static const struct gar_file_cache_kind kind = {ref_value, unref_value};
static const struct gar_file_cache_kind other_kind = {ref_value, unref_value};

static struct gar_source *open_source(const char *name)
{
    struct gar_source *source = NULL;
    assert_int_equal(gar_source_open(in_folder(name), NULL, &source, NULL), GAR_OK);
    return source;
}

static bool is_kept(const char *name, const struct value *value)
{
    struct gar_source *source = open_source(name);
    struct value *found = (struct value *)gar_file_cache_find(&kind, source);
    gar_source_unref(source);
    if (found != NULL) {
        found->refs--;
    }
    return found == value;
}

static void add(const char *name, struct value *value, int64_t bytes)
{
    struct gar_source *source = open_source(name);
    gar_file_cache_add(&kind, source, value, bytes);
    gar_source_unref(source);
}

static void test_states(void **state)
{
    (void)state;
    static const char *const names[] = {"0", "1", "2", "3", "4"};
    struct value values[5] = {{0}};
    for (int64_t i = 0; i < GAR_COUNT_OF(names); i++) {
        put_file(names[i], "same", 4);
    }
    gar_file_cache_set_limit(1 << 20);
    add("0", &values[0], 10);
    assert_int_equal(values[0].refs, 0); /* it changed just now */
    assert_int_equal(usleep(SETTLE_US), 0);
    add("0", &values[0], 10);
    assert_int_equal(values[0].refs, 1);
    assert_true(is_kept("0", &values[0]));
    struct gar_source *source = open_source("0");
    assert_null(gar_file_cache_find(&other_kind, source));
    assert_true(gar_source_is_unchanged(source));

    /* the same size, and the time of content put back */
    struct stat info;
    assert_int_equal(stat(in_folder("0"), &info), 0);
    put_file("0", "else", 4);
    const struct timespec times[2] = {info.st_atim, info.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, in_folder("0"), times, 0), 0);
    assert_false(is_kept("0", &values[0]));
    assert_false(gar_source_is_unchanged(source));
    gar_source_unref(source);

    /* a file that changed after it was opened */
    source = open_source("1");
    put_file("1", "more", 4);
    gar_file_cache_add(&kind, source, &values[1], 10);
    assert_int_equal(values[1].refs, 0);
    gar_source_unref(source);

    /* room for two of these, and none for a large one */
    gar_file_cache_set_limit(600);
    add("2", &values[2], 240);
    add("3", &values[3], 5000);
    assert_int_equal(values[3].refs, 0);
    for (int i = 0; i < 20; i++) {
        add("3", &values[3], 230);
        add("4", &values[4], 230);
    }
    assert_true(values[0].refs + values[2].refs + values[3].refs + values[4].refs <= 3);
    assert_true(is_kept("4", &values[4]));
    gar_file_cache_set_limit(0);
    for (int64_t i = 0; i < GAR_COUNT_OF(names); i++) {
        assert_int_equal(values[i].refs, 0);
    }
    add("4", &values[4], 1);
    assert_int_equal(values[4].refs, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_states, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
