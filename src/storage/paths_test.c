/* SPDX-License-Identifier: Apache-2.0 */
/* Globs, folders, URIs, and the messages for what is not there. */
#include "storage/paths.h"

#include <sys/stat.h>

#include "base/strbuf.h"
#include "storage/storage_test_priv.h"

static void test_match(void **state)
{
    (void)state;
    static const struct {
        const char *pattern;
        const char *name;
        bool matches;
    } cases[] = {
        {"*", "", true},
        {"*", "abc", true},
        {"a*c", "abbbc", true},
        {"a*c", "abbb", false},
        {"*.csv", "x.csv", true},
        {"*.csv", "x.csv.gz", false},
        {"?", "a", true},
        {"?", "", false},
        {"?", "\xc3\xbc", true},
        {"a?c",
         "a\xc3\xbc"
         "c",
         true},
        {"[a-c]x", "bx", true},
        {"[a-c]x", "dx", false},
        {"[!a-c]x", "dx", true},
        {"[!a-c]x", "ax", false},
        {"[]]", "]", true},
        {"[a-]", "-", true},
        {"[", "[", true},
        {"[abc", "[abc", true},
        {"a*b*c*d", "a1b2c3d", true},
        {"*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaac", false},
        {"part-[0-9][0-9]", "part-07", true},
    };
    for (int64_t i = 0; i < GAR_COUNT_OF(cases); i++) {
        const bool got =
            gar_glob_match(cases[i].pattern, (int64_t)strlen(cases[i].pattern), cases[i].name);
        if (got != cases[i].matches) {
            fail_msg("%s against %s", cases[i].pattern, cases[i].name);
        }
    }
}

/* Expand one input below the test folder; names are printed without it, separated by blanks; errors as their message. */
static void check(const char *input, const char *right)
{
    struct gar_path_list list = {0};
    struct gar_error err = GAR_ERROR_INIT;
    const char *path = in_folder(input);
    struct gar_strbuf got = {0};
    if (gar_paths_expand(&path, 1, &list, &err) < 0) {
        gar_strbuf_append(&got, err.message);
        char *at;
        while ((at = strstr(got.data, test_folder)) != NULL) {
            memmove(at, at + strlen(test_folder) + 1, strlen(at + strlen(test_folder) + 1) + 1);
        }
        assert_true(err.os_errno != 0);
    }
    for (int64_t i = 0; i < list.count; i++) {
        assert_memory_equal(list.paths[i], test_folder, strlen(test_folder));
        gar_strbuf_append(&got, i > 0 ? " " : "");
        gar_strbuf_append(&got, list.paths[i] + strlen(test_folder) + 1);
    }
    assert_string_equal(got.data == NULL ? "" : got.data, right);
    gar_strbuf_destroy(&got);
    gar_path_list_destroy(&list);
}

static void test_expand(void **state)
{
    (void)state;
    put_text("b.csv", "x");
    put_text("a.csv", "x");
    put_text("c.txt", "x");
    put_text("_SUCCESS", "x");
    put_text(".hidden.csv", "x");
    put_text("empty.csv", "");
    put_text("a[1].csv", "x");
    put_text("deep/k=1/p.csv", "x");
    put_text("deep/k=2/q.csv", "x");
    put_text("deep/k=2/_temporary/r.csv", "x");
    put_text("spaces here/\xc3\xbc#1%.csv", "x");
    put_text("marks/_started_1", "x");
    put_text("marks/zero", "");
    check("a.csv", "a.csv");
    check("a[1].csv", "a[1].csv");
    check("*.csv", "a.csv a[1].csv b.csv empty.csv");
    check("[ab].csv", "a.csv b.csv");
    check("?.txt", "c.txt");
    check("", "a.csv a[1].csv b.csv c.txt");
    check("deep/**", "deep/k=1/p.csv deep/k=2/q.csv");
    check("deep/**/*.csv", "deep/k=1/p.csv deep/k=2/q.csv");
    check("deep/**/**/p.csv", "deep/k=1/p.csv");
    check("deep/k=*/*", "deep/k=1/p.csv deep/k=2/q.csv");
    check("**/q.csv", "deep/k=2/q.csv");
    check("spaces here/", "spaces here/\xc3\xbc#1%.csv");
    check(".h*", ".hidden.csv");
    check("deep", "folder 'deep' has no files of its own, only folders such as 'k=1'; 'deep/**' "
                  "lists them recursively: No "
                  "such file or directory");
    check("deep/*", "'deep/*' matches only folders; 'deep/*/*' or 'deep/*/**' lists the files in "
                    "them: No such file or "
                    "directory");
    check("marks", "folder 'marks' has no files with anything in them (empty ones are left out): "
                   "No such file or directory");
    check("none.csv", "cannot read 'none.csv': No such file or directory");
    check("*.parquet", "no files match '*.parquet': No such file or directory");
    check("none/**/*.csv", "no files match 'none/**/*.csv': No such file or directory");
    assert_int_equal(symlink(test_folder, in_folder("deep/loop")), 0);
    check("deep/**/q.csv", "deep/k=2/q.csv");
}

static void check_local(const char *input, const char *right)
{
    char *got = NULL;
    struct gar_error err = GAR_ERROR_INIT;
    const enum gar_status status = gar_path_local(input, &got, &err);
    assert_string_equal(status < 0 ? err.message : got, right);
    gar_free(got);
}

static void test_uris(void **state)
{
    (void)state;
    check_local("file:///a%20b/%C3%BC.csv", "/a b/\xc3\xbc.csv");
    check_local("file://localhost/x", "/x");
    check_local("FILE:///x", "/x");
    check_local("file://host/x",
                "'file://host/x' names another host; local files are file:///path");
    check_local("file:///a%2", "'file:///a%2' has a malformed %xx at byte 9");
    check_local("file:///a%00", "'file:///a%00' has a malformed %xx at byte 9");
    check_local("a%20b", "a%20b");
    check_local("c:/x", "c:/x");
    check_local("", "a path is empty");
    check_local("s3://user:secret@bucket/key?X-Amz-Signature=secret",
                "s3:// paths are not supported, only local files: 's3://bucket/key'");
    check_local("https://h/x?token=secret#f",
                "https:// paths are not supported, only local files: 'https://h/x'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_match),
        cmocka_unit_test_setup_teardown(test_expand, enter_folder, leave_folder),
        cmocka_unit_test(test_uris),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
