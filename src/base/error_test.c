/* SPDX-License-Identifier: Apache-2.0 */
/* Error messages: formatting, prefixes, cutting, quoting. */
#include "base/error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"

static void message_and_status(void **state)
{
    (void)state;
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(gar_error_set(&err, GAR_ERR_VALUE, "value %d\nis bad", 7), GAR_ERR_VALUE);
    assert_int_equal(err.status, GAR_ERR_VALUE);
    assert_int_equal(err.position, -1);
    assert_string_equal(err.message, "value 7 is bad");
    gar_error_prefix(&err, "column '%s': ", "a");
    assert_string_equal(err.message, "column 'a': value 7 is bad");
    gar_error_set(&err, GAR_ERR_TYPE, "again: %s", err.message);
    assert_string_equal(err.message, "again: column 'a': value 7 is bad");
    assert_int_equal(gar_error_set(NULL, GAR_ERR_IO, "unseen"), GAR_ERR_IO);
    gar_error_prefix(NULL, "unseen");
    assert_int_equal(gar_error_set_errno(&err, ENOENT, "open '%s'", "x"), GAR_ERR_IO);
    assert_string_equal(err.message, "open 'x': No such file or directory");
    assert_int_equal(err.os_errno, ENOENT);
    assert_int_equal(gar_error_nomem(&err, 123), GAR_ERR_NOMEM);
    assert_non_null(strstr(err.message, "123"));
}

static void long_messages_are_cut_at_a_character(void **state)
{
    (void)state;
    char text[3000];
    for (int i = 0; i < 2997; i += 3) {
        memcpy(text + i, "\xe2\x82\xac", 3);
    }
    text[2997] = '\0';
    for (int shift = 0; shift < 3; shift++) {
        struct gar_error err = GAR_ERROR_INIT;
        gar_error_set(&err, GAR_ERR_VALUE, "%.*s%s", shift, "ab", text);
        assert_true(strlen(err.message) > GAR_ERROR_MESSAGE_BYTES - 4);
        assert_true(gar_utf8_valid(err.message, (int64_t)strlen(err.message)));
        gar_error_prefix(&err, "p");
        assert_true(gar_utf8_valid(err.message, (int64_t)strlen(err.message)));
    }
}

static void names(void **state)
{
    (void)state;
    assert_string_equal(gar_status_name(GAR_ERR_IO), "GAR_ERR_IO");
    assert_string_equal(gar_status_text(GAR_ERR_NOMEM), "out of memory");
    assert_string_equal(gar_status_exception(GAR_ERR_COLUMN), "GarColumnError");
}

static enum gar_status pass_on(enum gar_status status)
{
    GAR_TRY(status);
    return GAR_EOF;
}

static void try_forwards_failures_only(void **state)
{
    (void)state;
    assert_int_equal(pass_on(GAR_ERR_CAST), GAR_ERR_CAST);
    assert_int_equal(pass_on(GAR_PENDING), GAR_EOF);
}

static void quoting(void **state)
{
    (void)state;
    char out[32];
    assert_string_equal(gar_error_quote("plain", 5, out, 32), "plain");
    assert_string_equal(gar_error_quote("a\nb\tc\rd\x1b", 8, out, 32), "a\\nb\\tc\\rd\\x1b");
    assert_string_equal(gar_error_quote("\xe2\x82\xac\xff", 4, out, 32), "\xe2\x82\xac\\xff");
    assert_string_equal(gar_error_quote("\xc2\x9b", 2, out, 32), "\\xc2\\x9b");
    assert_string_equal(gar_error_quote("abcdefghij", 10, out, 9), "abcde...");
    assert_string_equal(gar_error_quote("abcdefgh", 8, out, 9), "abcdefgh");
    assert_string_equal(gar_error_quote("\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac", 9, out, 9),
                        "\xe2\x82\xac...");
    assert_string_equal(gar_error_quote("abc", 3, out, 1), "");
    assert_string_equal(gar_error_quote("", 0, out, 8), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(message_and_status),
        cmocka_unit_test(long_messages_are_cut_at_a_character),
        cmocka_unit_test(names),
        cmocka_unit_test(try_forwards_failures_only),
        cmocka_unit_test(quoting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
