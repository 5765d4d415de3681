/* SPDX-License-Identifier: Apache-2.0 */
/* The calendar day by day from year -9999 to 9999, and ISO 8601 text. */
#include "base/calendar.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void every_day_goes_there_and_back(void **state)
{
    (void)state;
    int64_t days = gar_days_from_civil(-9999, 1, 1);
    for (int64_t year = -9999; year <= 9999; year++) {
        for (int32_t month = 1; month <= 12; month++) {
            for (int32_t day = 1; day <= gar_days_in_month(year, month); day++, days++) {
                if (gar_days_from_civil(year, month, day) != days) {
                    fail_msg("%lld-%d-%d", (long long)year, month, day);
                }
                const struct gar_civil c = gar_civil_from_days(days);
                if (c.year != year || c.month != month || c.day != day) {
                    fail_msg("day %lld", (long long)days);
                }
                char text[48];
                int32_t parsed = 0;
                const int32_t n = gar_format_date((int32_t)days, text);
                if (!gar_parse_date(text, n, &parsed) || parsed != days) {
                    fail_msg("text of day %lld: %.*s", (long long)days, n, text);
                }
            }
        }
    }
    assert_int_equal(gar_days_from_civil(1970, 1, 1), 0);
    assert_int_equal(gar_days_from_civil(2000, 3, 1), 11017);
    assert_int_equal(gar_days_from_civil(1, 1, 1), -719162);
}

static void far_days(void **state)
{
    (void)state;
    static const int64_t far[] = {INT64_MAX / 366, INT64_MIN / 366, INT32_MAX, INT32_MIN};
    for (int i = 0; i < 4; i++) {
        const struct gar_civil c = gar_civil_from_days(far[i]);
        assert_true(gar_days_from_civil(c.year, c.month, c.day) == far[i]);
    }
    static const int32_t ends[] = {INT32_MAX, INT32_MIN};
    for (int i = 0; i < 2; i++) {
        char text[48];
        int32_t back = 0;
        const int32_t n = gar_format_date(ends[i], text);
        assert_true(gar_parse_date(text, n, &back));
        assert_int_equal(back, ends[i]);
    }
}

static void months_are_cut_to_length(void **state)
{
    (void)state;
    assert_int_equal(gar_days_add_months(gar_days_from_civil(2024, 1, 31), 1),
                     gar_days_from_civil(2024, 2, 29));
    assert_int_equal(gar_days_add_months(gar_days_from_civil(2023, 1, 31), 1),
                     gar_days_from_civil(2023, 2, 28));
    assert_int_equal(gar_days_add_months(gar_days_from_civil(2024, 3, 31), -13),
                     gar_days_from_civil(2023, 2, 28));
    assert_int_equal(gar_days_add_months(gar_days_from_civil(0, 1, 15), -1),
                     gar_days_from_civil(-1, 12, 15));
    assert_int_equal(gar_days_add_months(gar_days_from_civil(1998, 12, 1), -3),
                     gar_days_from_civil(1998, 9, 1));
}

static bool parses_date(const char *text)
{
    int32_t days = 0;
    return gar_parse_date(text, (int64_t)strlen(text), &days);
}

static void bad_dates_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "2024",
                                      "2024-1-01",
                                      "2024-01-1",
                                      "2024-13-01",
                                      "2024-00-10",
                                      "2024-02-30",
                                      "2023-02-29",
                                      "1900-02-29",
                                      "2024-04-31",
                                      "2024-01-00",
                                      "2024-01-32",
                                      "2024/01/01",
                                      "2024-01-011",
                                      "12024-01-0x",
                                      "-24-01-01",
                                      "+-2024-01-01",
                                      "2024-01-01 ",
                                      " 2024-01-01",
                                      "99999999-01-01",
                                      "9999999-01-01",
                                      "20 4-01-01",
                                      "2024-0:-01"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (parses_date(bad[i])) {
            fail_msg("taken: '%s'", bad[i]);
        }
    }
    assert_true(parses_date("2024-02-29"));
    assert_true(parses_date("2000-02-29"));
    assert_true(parses_date("+2024-02-29"));
    assert_true(parses_date("+12024-02-29"));
    assert_true(parses_date("-0001-12-31"));
    assert_true(parses_date("0000-02-29"));
}

static int64_t stamp(const char *text, int32_t digits, bool *has_offset)
{
    int64_t v = 0;
    if (!gar_parse_timestamp(text, (int64_t)strlen(text), digits, &v, has_offset)) {
        fail_msg("refused: '%s'", text);
    }
    return v;
}

static void timestamps(void **state)
{
    (void)state;
    bool has_offset = true;
    assert_int_equal(stamp("1970-01-01", 0, &has_offset), 0);
    assert_false(has_offset);
    assert_int_equal(stamp("1970-01-02T00:00", 3, &has_offset), 86400000);
    assert_int_equal(stamp("1970-01-01 00:00:01.5", 6, &has_offset), 1500000);
    assert_int_equal(stamp("1970-01-01 00:00:00.123456789", 3, &has_offset), 123);
    assert_int_equal(stamp("1969-12-31 23:59:59.9", 3, &has_offset), -100);
    assert_false(has_offset);
    assert_int_equal(stamp("1970-01-01T01:00:00Z", 0, &has_offset), 3600);
    assert_true(has_offset);
    assert_int_equal(stamp("1970-01-01T01:00:00+01:00", 0, &has_offset), 0);
    assert_int_equal(stamp("1970-01-01T01:00:00.25+0130", 3, &has_offset), -1800000 + 250);
    assert_int_equal(stamp("1970-01-01 00:53:29+00:53:28", 0, &has_offset), 1);
    assert_int_equal(stamp("1970-01-01 00:00:00-04:56:02", 0, &has_offset), 17762);
    assert_int_equal(stamp("1970-01-01T01:00-02", 0, &has_offset), 10800);
    assert_true(stamp("1677-09-21 00:12:43.145224192", 9, &has_offset) == INT64_MIN);
    assert_true(stamp("2262-04-11 23:47:16.854775807", 9, &has_offset) == INT64_MAX);
    static const char *const bad[] = {"1970-01-01T",
                                      "1970-01-01 1:00",
                                      "1970-01-01 24:00:00",
                                      "1970-01-01 00:60",
                                      "1970-01-01 00:00:60",
                                      "1970-01-01 00:00:00.",
                                      "1970-01-01 00:00:00.1234567890",
                                      "1970-01-01 00:00:00+1",
                                      "1970-01-01 00:00:00+01:6",
                                      "1970-01-01 00:00:00+01:00:60",
                                      "1970-01-01 00:00:00+01:00:0",
                                      "1970-01-01 00:00:00+01-00-00",
                                      "1970-01-01 00:00:00+24:00",
                                      "1970-01-01Z",
                                      "1970-01-01x00:00:00",
                                      "1970-01-01 00:00:00 UTC",
                                      "2262-04-11 23:47:16.854775808",
                                      "1677-09-21 00:12:43.145224191",
                                      ""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int64_t v = 0;
        if (gar_parse_timestamp(bad[i], (int64_t)strlen(bad[i]), 9, &v, &has_offset)) {
            fail_msg("taken: '%s'", bad[i]);
        }
    }
}

static void text_of_timestamps(void **state)
{
    (void)state;
    static const struct {
        int64_t value;
        int32_t digits;
        const char *text;
    } cases[] = {
        {0, 0, "1970-01-01 00:00:00"},
        {-1, 0, "1969-12-31 23:59:59"},
        {-1, 3, "1969-12-31 23:59:59.999"},
        {1500000, 6, "1970-01-01 00:00:01.500000"},
        {INT64_MIN, 9, "1677-09-21 00:12:43.145224192"},
        {INT64_MAX, 9, "2262-04-11 23:47:16.854775807"},
        {INT64_MAX, 0, "292277026596-12-04 15:30:07"},
        {INT64_MIN, 0, "-292277022657-01-27 08:29:52"},
        {INT64_MIN, 6, "-290308-12-21 19:59:05.224192"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[48];
        text[gar_format_timestamp(cases[i].value, cases[i].digits, text)] = '\0';
        assert_string_equal(text, cases[i].text);
    }
    char text[48];
    text[gar_format_time(INT64_C(86399999999999), 9, text)] = '\0';
    assert_string_equal(text, "23:59:59.999999999");
    text[gar_format_time(3661, 0, text)] = '\0';
    assert_string_equal(text, "01:01:01");
    gar_format_time(INT64_MIN, 9, text); /* no overflow */
}

static void times(void **state)
{
    (void)state;
    int64_t ns = 0;
    assert_true(gar_parse_time("12:34", 5, &ns));
    assert_true(ns == INT64_C(45240) * 1000000000);
    assert_true(gar_parse_time("12:34:56.789", 12, &ns));
    assert_true(ns == INT64_C(45296789000000));
    assert_false(gar_parse_time("12:34:56.7890123456", 19, &ns));
    assert_false(gar_parse_time("12:34:56Z", 9, &ns));
    assert_false(gar_parse_time("12:3", 4, &ns));
    assert_false(gar_parse_time("25:00:00", 8, &ns));
    assert_int_equal(gar_ticks_per_second(6), 1000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_day_goes_there_and_back),
        cmocka_unit_test(far_days),
        cmocka_unit_test(months_are_cut_to_length),
        cmocka_unit_test(bad_dates_are_refused),
        cmocka_unit_test(timestamps),
        cmocka_unit_test(text_of_timestamps),
        cmocka_unit_test(times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
