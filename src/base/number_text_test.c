/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and text: limits, special values, round trips, and the parse-number corpus. */
#include "base/number_text.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void integers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum gar_status as_i64;
        int64_t i64;
        enum gar_status as_u64;
        uint64_t u64;
    } cases[] = {
        {"0", GAR_OK, 0, GAR_OK, 0},
        {"-0", GAR_OK, 0, GAR_OK, 0},
        {"+7", GAR_OK, 7, GAR_OK, 7},
        {"0000000000000000000000000012", GAR_OK, 12, GAR_OK, 12},
        {"12345678", GAR_OK, 12345678, GAR_OK, 12345678},
        {"1234567812345678", GAR_OK, 1234567812345678, GAR_OK, 1234567812345678},
        {"-12345678123456789", GAR_OK, -12345678123456789, GAR_ERR_OVERFLOW, 0},
        {"9223372036854775807", GAR_OK, INT64_MAX, GAR_OK, INT64_MAX},
        {"9223372036854775808", GAR_ERR_OVERFLOW, 0, GAR_OK, UINT64_C(9223372036854775808)},
        {"-9223372036854775808", GAR_OK, INT64_MIN, GAR_ERR_OVERFLOW, 0},
        {"-9223372036854775809", GAR_ERR_OVERFLOW, 0, GAR_ERR_OVERFLOW, 0},
        {"18446744073709551615", GAR_ERR_OVERFLOW, 0, GAR_OK, UINT64_MAX},
        {"18446744073709551616", GAR_ERR_OVERFLOW, 0, GAR_ERR_OVERFLOW, 0},
        {"99999999999999999999999999", GAR_ERR_OVERFLOW, 0, GAR_ERR_OVERFLOW, 0},
        {"", GAR_ERR_VALUE, 0, GAR_ERR_VALUE, 0},
        {"-", GAR_ERR_VALUE, 0, GAR_ERR_VALUE, 0},
        {"+", GAR_ERR_VALUE, 0, GAR_ERR_VALUE, 0},
        {"1.0", GAR_ERR_VALUE, 0, GAR_ERR_VALUE, 0},
        {"1 ", GAR_ERR_VALUE, 0, GAR_ERR_VALUE, 0},
        {"--1", GAR_ERR_VALUE, 0, GAR_ERR_VALUE, 0},
        {"1234567a", GAR_ERR_VALUE, 0, GAR_ERR_VALUE, 0},
        {"12345678/", GAR_ERR_VALUE, 0, GAR_ERR_VALUE, 0},
        {"1234567:", GAR_ERR_VALUE, 0, GAR_ERR_VALUE, 0},
        {"99999999999999999999999999x", GAR_ERR_VALUE, 0, GAR_ERR_VALUE, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t n = (int64_t)strlen(cases[i].text);
        int64_t s = 0;
        uint64_t u = 0;
        if (gar_parse_i64(cases[i].text, n, &s) != cases[i].as_i64 || s != cases[i].i64 ||
            gar_parse_u64(cases[i].text, n, &u) != cases[i].as_u64 || u != cases[i].u64) {
            fail_msg("'%s'", cases[i].text);
        }
    }
}

static void integers_go_there_and_back(void **state)
{
    (void)state;
    uint64_t x = 1;
    for (int i = 0; i < 100000; i++) {
        x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
        const uint64_t v = x >> (i % 64);
        char text[24];
        uint64_t u = 0;
        int64_t s = 0;
        assert_int_equal(gar_parse_u64(text, gar_format_u64(v, text), &u), GAR_OK);
        assert_true(u == v);
        assert_int_equal(gar_parse_i64(text, gar_format_i64((int64_t)v, text), &s), GAR_OK);
        assert_true(s == (int64_t)v);
    }
    char text[25] = {0};
    assert_int_equal(gar_format_i64(INT64_MIN, text), 20);
    assert_string_equal(text, "-9223372036854775808");
}

static void float_words_and_ranges(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double v;
    } good[] = {
        {"1.5", 1.5},
        {"+1.5", 1.5},
        {".5", .5},
        {"5.", 5.0},
        {"1e400", (double)INFINITY},
        {"-1e400", -(double)INFINITY},
        {"0.00000000001e400", (double)INFINITY},
        {"1e-400", 0.0},
        {"1000000e-400", 0.0},
        {"0e99999999999999999999", 0.0},
        {"1e99999999999999999999", (double)INFINITY},
        {"1e-99999999999999999999", 0.0},
        {"inf", (double)INFINITY},
        {"-INF", -(double)INFINITY},
        {"+Infinity", (double)INFINITY},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        double v = 0;
        float f = 0;
        const int64_t n = (int64_t)strlen(good[i].text);
        if (!gar_parse_double(good[i].text, n, &v) || v != good[i].v ||
            !gar_parse_float(good[i].text, n, &f) || f != (float)good[i].v) {
            fail_msg("'%s' gives %g", good[i].text, v);
        }
    }
    double v = 0;
    assert_true(gar_parse_double("-NaN", 4, &v) && isnan(v));
    assert_true(gar_parse_double("-1e-400", 7, &v) && v == 0 && signbit(v));
    static const char *const bad[] = {"",    "+",      "-",     ".",  "e5", "1e",   "1e+", "1.5x",
                                      "+-1", "nan(1)", "infin", " 1", "1 ", "0x10", "1_0", "1,5"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        float f = 0;
        if (gar_parse_double(bad[i], (int64_t)strlen(bad[i]), &v) ||
            gar_parse_float(bad[i], (int64_t)strlen(bad[i]), &f)) {
            fail_msg("taken: '%s'", bad[i]);
        }
    }
}

static void text_of_floats(void **state)
{
    (void)state;
    static const struct {
        double v;
        const char *text;
    } cases[] = {
        {1.5, "1.5"},
        {3.0, "3.0"},
        {-0.0, "-0.0"},
        {0.1, "0.1"},
        {100000.0, "100000.0"},
        {1e300, "1e+300"},
        {1e16, "1e+16"},
        {1e15, "1000000000000000.0"},
        {1e-4, "0.0001"},
        {1e-5, "1e-05"},
        {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {123456789012345.67, "123456789012345.67"},
    };
    char text[41];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        text[gar_format_double(cases[i].v, text)] = '\0';
        assert_string_equal(text, cases[i].text);
    }
    text[gar_format_double((double)NAN, text)] = '\0';
    assert_string_equal(text, "nan");
    text[gar_format_double(-(double)INFINITY, text)] = '\0';
    assert_string_equal(text, "-inf");
    text[gar_format_float(0.1f, text)] = '\0';
    assert_string_equal(text, "0.1");
}

static void floats_go_there_and_back(void **state)
{
    (void)state;
    uint64_t x = 7;
    for (int i = 0; i < 200000; i++) {
        x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
        char text[40];
        double d = 0;
        double d_back = 0;
        memcpy(&d, &x, sizeof d);
        int32_t n = gar_format_double(d, text);
        assert_true(n > 0 && n <= 40);
        assert_true(gar_parse_double(text, n, &d_back));
        assert_true(isnan(d) ? isnan(d_back) : memcmp(&d, &d_back, sizeof d) == 0);
        const uint32_t half = (uint32_t)(x >> 32);
        float f = 0;
        float f_back = 0;
        memcpy(&f, &half, sizeof f);
        n = gar_format_float(f, text);
        assert_true(n > 0 && n <= 40);
        assert_true(gar_parse_float(text, n, &f_back));
        assert_true(isnan(f) ? isnan(f_back) : memcmp(&f, &f_back, sizeof f) == 0);
    }
}

static void check_corpus_file(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/parse-number/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        print_message("[  SKIPPED ] no %s\n", path);
        skip();
    }
    static char line[65536];
    int64_t lines = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        const char *text = line + 31;
        const int64_t n = (int64_t)strlen(text);
        const uint32_t want_f = (uint32_t)strtoul(line + 5, NULL, 16);
        const uint64_t want_d = strtoull(line + 14, NULL, 16);
        float f = 0;
        double d = 0;
        const bool ok = gar_parse_float(text, n, &f) && gar_parse_double(text, n, &d);
        uint32_t got_f = 0;
        uint64_t got_d = 0;
        memcpy(&got_f, &f, sizeof f);
        memcpy(&got_d, &d, sizeof d);
        const bool is_nan = ok && isnan(d) && isnan(f);
        if (!ok || (!is_nan && (got_f != want_f || got_d != want_d))) {
            fclose(file);
            fail_msg("%s: '%s' gives %08" PRIX32 " %016" PRIX64, name, text, got_f, got_d);
        }
        lines++;
    }
    fclose(file);
    assert_true(lines > 50);
}

static void corpus(void **state)
{
    (void)state;
    const char *folder = getenv("GAR_TEST_CORPORA");
    if (folder == NULL) {
        folder = "../shared/corpora";
    }
    check_corpus_file(folder, "google-wuffs.txt");
    check_corpus_file(folder, "more-test-cases.txt");
    check_corpus_file(folder, "exhaustive-float16.txt");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers),
        cmocka_unit_test(integers_go_there_and_back),
        cmocka_unit_test(float_words_and_ranges),
        cmocka_unit_test(text_of_floats),
        cmocka_unit_test(floats_go_there_and_back),
        cmocka_unit_test(corpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
