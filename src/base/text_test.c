/* SPDX-License-Identifier: Apache-2.0 */
/* Growing text and UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/strbuf.h"
#include "base/utf8.h"

static void text_grows(void **state)
{
    (void)state;
    struct gar_strbuf sb = {0};
    assert_string_equal(gar_strbuf_text(&sb), "");
    gar_strbuf_append(&sb, "a");
    gar_strbuf_append_char(&sb, 'b');
    gar_strbuf_append_fill(&sb, '-', 3);
    gar_strbuf_append_fill(&sb, '-', -3);
    gar_strbuf_printf(&sb, "%d|%500s", 5, "x");
    assert_int_equal(sb.size, 5 + 2 + 500);
    assert_memory_equal(sb.data, "ab---5|", 7);
    assert_int_equal(sb.data[sb.size], 0);
    char *text = gar_strbuf_take(&sb);
    assert_int_equal(strlen(text), 507);
    assert_null(sb.data);
    gar_free(text);
    text = gar_strbuf_take(&sb);
    assert_string_equal(text, "");
    gar_free(text);
    gar_strbuf_append(&sb, "again");
    gar_strbuf_clear(&sb);
    assert_string_equal(gar_strbuf_text(&sb), "");
    gar_strbuf_destroy(&sb);
    gar_strbuf_destroy(NULL);
}

static void refused_growth_is_remembered(void **state)
{
    (void)state;
    struct gar_strbuf sb = {0};
    gar_strbuf_append(&sb, "start");
    gar_alloc_fail_at(1, false);
    gar_strbuf_append_fill(&sb, 'x', 1000);
    gar_alloc_fail_at(0, false);
    gar_strbuf_append(&sb, "end");
    assert_true(sb.failed);
    assert_string_equal(gar_strbuf_text(&sb), "start");
    assert_null(gar_strbuf_take(&sb));
    assert_false(sb.failed);
}

static void ill_formed_text_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bad;
    } cases[] = {
        {"plain ascii that is longer than thirty-two bytes, twice over, yes", -1},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", -1},
        {"\xf4\x8f\xbf\xbf", -1},
        {"\xee\x80\x80\xed\x9f\xbf", -1},
        {"a\x80", 1},
        {"\xc0\x80", 0},
        {"\xc1\xbf", 0},
        {"\xe0\x9f\xbf", 0},
        {"ab\xed\xa0\x80", 2},
        {"\xf0\x8f\xbf\xbf", 0},
        {"\xf4\x90\x80\x80", 0},
        {"\xf5\x80\x80\x80", 0},
        {"\xff", 0},
        {"abc\xe2\x82", 3},
        {"abc\xf0\x9f\x98", 3},
        {"\xc3", 0},
        {"0123456789012345678901234567890123456789\xc3(", 40},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t n = (int64_t)strlen(cases[i].text);
        char *exact = gar_malloc(n); /* so that a sanitizer sees a byte too far */
        memcpy(exact, cases[i].text, (size_t)n);
        assert_int_equal(gar_utf8_first_bad(exact, n), cases[i].bad);
        assert_int_equal(gar_utf8_valid(exact, n), cases[i].bad < 0);
        gar_free(exact);
    }
}

static void every_code_point(void **state)
{
    (void)state;
    for (int32_t c = 0; c <= 0x10ffff; c++) {
        char out[4];
        int32_t size = 0;
        const int32_t n = gar_utf8_encode(c, out);
        const bool is_surrogate = c >= 0xd800 && c <= 0xdfff;
        if (gar_utf8_valid(out, n) == is_surrogate ||
            (!is_surrogate && (gar_utf8_decode(out, n, &size) != c || size != n))) {
            fail_msg("U+%x", (unsigned)c);
        }
    }
}

static void counting(void **state)
{
    (void)state;
    const char *text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z0123456789";
    const int64_t n = (int64_t)strlen(text);
    assert_int_equal(gar_utf8_length(text, n), 15);
    static const int64_t offsets[] = {0, 1, 3, 6, 10, 11};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(gar_utf8_offset(text, n, i), offsets[i]);
    }
    assert_int_equal(gar_utf8_offset(text, n, 14), n - 1);
    assert_int_equal(gar_utf8_offset(text, n, 15), n);
    assert_int_equal(gar_utf8_offset(text, n, 1000), n);
    assert_int_equal(gar_utf8_offset("0123456789abcdef", 16, 9), 9);
    assert_int_equal(gar_utf8_offset("0123456789abcdef", 16, 16), 16);
    assert_int_equal(gar_utf8_offset("", 0, 0), 0);
    assert_int_equal(gar_utf8_width("ab", 2), 2);
    assert_int_equal(gar_utf8_width("\xe6\x97\xa5\xe6\x9c\xac", 6), 4);
    assert_int_equal(gar_utf8_width("e\xcc\x81", 3), 1);
    assert_int_equal(gar_utf8_width("a\tb", 3), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_grows),
        cmocka_unit_test(refused_growth_is_remembered),
        cmocka_unit_test(ill_formed_text_is_found),
        cmocka_unit_test(every_code_point),
        cmocka_unit_test(counting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
