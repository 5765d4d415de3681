/* SPDX-License-Identifier: Apache-2.0 */
/* Zone files in a folder of its own: which names are looked for, which files are taken, and what the messages say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "engine/zone_loader_priv.h"
#include "kernels/zone.h"
#include "os/file.h"

static char first[] = "/tmp/gar-zones-XXXXXX";
static char last[] = "/tmp/gar-zones-XXXXXX";

static void write_file(const char *folder, const char *name, const char *data, int64_t bytes)
{
    char path[256];
    int fd = -1;
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(gar_file_open(path, GAR_FILE_CREATE, &fd, NULL), GAR_OK);
    assert_int_equal(gar_file_write(fd, path, data, bytes, NULL), GAR_OK);
    assert_int_equal(gar_file_close(fd, path, NULL), GAR_OK);
}

static int make_folders(void **state)
{
    (void)state;
    char path[256];
    if (mkdtemp(first) == NULL || mkdtemp(last) == NULL) {
        return 1;
    }
    (void)snprintf(path, sizeof path, "%s/Test", first);
    if (mkdir(path, 0777) != 0) {
        return 1;
    }
    write_file(first, "Test/One", "first", 5);
    write_file(last, "Two", "last", 4);
    write_file(last, "One", "last", 4);
    (void)snprintf(path, sizeof path, "%s/Huge", first);
    write_file(first, "Huge", "", 0);
    if (truncate(path, (1 << 20) + 1) != 0) {
        return 1;
    }
    if (setenv("TZDIR", first, 1) != 0 || setenv("GAR_TZDATA", last, 1) != 0) {
        return 1;
    }
    gar_zone_loader_install();
    return 0;
}

static int remove_folders(void **state)
{
    (void)state;
    static const char *const names[] = {"Test/One", "Test", "Huge", "Two", "One", ""};
    for (int64_t i = 0; i < GAR_COUNT_OF(names); i++) {
        char path[256];
        (void)snprintf(path, sizeof path, "%s/%s", first, names[i]);
        (void)remove(path);
        (void)snprintf(path, sizeof path, "%s/%s", last, names[i]);
        (void)remove(path);
    }
    return 0;
}

static void files_come_from_the_first_folder(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *data;
    } cases[] = {{"Test/One", "first"}, {"Two", "last"}, {"One", "last"}};
    for (int64_t i = 0; i < GAR_COUNT_OF(cases); i++) {
        uint8_t *data = NULL;
        int64_t bytes = 0;
        assert_int_equal(gar_zone_load_file(cases[i].name, &data, &bytes, NULL), GAR_OK);
        assert_int_equal(bytes, strlen(cases[i].data));
        assert_memory_equal(data, cases[i].data, strlen(cases[i].data));
        gar_free(data);
    }
}

static void refuse(const char *name, enum gar_status status, const char *part)
{
    uint8_t *data = NULL;
    int64_t bytes = 0;
    struct gar_error err;
    const int64_t blocks = gar_alloc_live_blocks();
    assert_int_equal(gar_zone_load_file(name, &data, &bytes, &err), status);
    if (strstr(err.message, part) == NULL) {
        fail_msg("'%s' lacks '%s'", err.message, part);
    }
    assert_int_equal(gar_alloc_live_blocks(), blocks);
}

static void names_stay_in_the_folder(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",           "/etc/passwd", "../Two", "Test/../Test/One", "Test//One", "Test/",
        ".hidden",    "./Two",       "Two\\",  "Europe/Berl n",    "a\xc3\xa4", "Test/.One",
        "Two;rm -rf", "%s%n",
    };
    for (int64_t i = 0; i < GAR_COUNT_OF(bad); i++) {
        refuse(bad[i], GAR_ERR_VALUE, "zones are called like");
    }
}

static void missing_zones_say_where_they_are_missing(void **state)
{
    (void)state;
    refuse("Mars/Olympus", GAR_ERR_VALUE, "unknown time zone 'Mars/Olympus'");
    refuse("Mars/Olympus", GAR_ERR_VALUE, first);
    refuse("Mars/Olympus", GAR_ERR_VALUE, last);
    refuse("Mars/Olympus", GAR_ERR_VALUE, "/usr/share/zoneinfo");
    refuse("Mars/Olympus", GAR_ERR_VALUE, "install the package tzdata");
    refuse("Test", GAR_ERR_VALUE, "unknown time zone 'Test'"); /* a folder */
    refuse("Two/Three", GAR_ERR_VALUE, "unknown time zone");   /* in what is no folder */
    refuse("Huge", GAR_ERR_FORMAT, "too many");
    (void)gar_alloc_fail_at(1, false);
    refuse("Two", GAR_ERR_NOMEM, "memory");
}

static void broken_files_name_the_zone(void **state)
{
    (void)state;
    const struct gar_zone *zone = NULL;
    struct gar_error err;
    const char *name = gar_zone_intern("Test/One", 8, NULL);
    assert_int_equal(gar_zone_find(name, &zone, &err), GAR_ERR_FORMAT);
    assert_non_null(strstr(err.message, "Test/One"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_come_from_the_first_folder),
        cmocka_unit_test(names_stay_in_the_folder),
        cmocka_unit_test(missing_zones_say_where_they_are_missing),
        cmocka_unit_test(broken_files_name_the_zone),
    };
    return cmocka_run_group_tests(tests, make_folders, remove_folders);
}
