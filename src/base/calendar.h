/* SPDX-License-Identifier: Apache-2.0 */
/* The proleptic Gregorian calendar, and dates, times and timestamps from and to ISO 8601 text. */
#ifndef GAR_BASE_CALENDAR_H
#define GAR_BASE_CALENDAR_H

#include "base/attrs.h"
#include "base/error.h"

struct gar_civil {
    int64_t year;
    int32_t month; /* 1..12 */
    int32_t day;   /* 1..31 */
};

/* Days since 1970-01-01 of a civil date, and back. Any day that fits int64_t / 366. */
int64_t gar_days_from_civil(int64_t year, int32_t month, int32_t day);
struct gar_civil gar_civil_from_days(int64_t days);
bool gar_is_leap_year(int64_t year);
int32_t gar_days_in_month(int64_t year, int32_t month);
/* days + months, the day cut to the length of the month reached. */
int64_t gar_days_add_months(int64_t days, int64_t months);

/* "2024-02-29" (also "+2024-..", years of 4 to 7 digits, optional minus). False if not a valid date. */
bool gar_parse_date(const char *text, int64_t bytes, int32_t *out_days);
/* "12:34:56.789", seconds optional, up to nine digits of fraction; nanoseconds since midnight. */
bool gar_parse_time(const char *text, int64_t bytes, int64_t *out_ns);
/* Date alone, or date and time with 'T' or blank between, optional "Z" or offset "+01:00", "+0100", "+01", "+01:02:03".
 * Result in units of 10^-digits seconds (digits 0, 3, 6, 9) since 1970-01-01 UTC when an offset is given, else of the local
 * clock; *out_has_offset says which. Fraction digits beyond the unit are cut. False if malformed or out of range. */
bool gar_parse_timestamp(const char *text, int64_t bytes, int32_t digits, int64_t *out,
                         bool *out_has_offset);
/* Writers return the length, no NUL; out has room for 48 bytes. digits is 0, 3, 6 or 9. */
int32_t gar_format_date(int32_t days, char *out);
int32_t gar_format_time(int64_t value, int32_t digits, char *out);
/* "2024-01-02 03:04:05.678"; the fraction is left out when digits is 0. */
int32_t gar_format_timestamp(int64_t value, int32_t digits, char *out);
/* 1, 10^3, 10^6, 10^9 for digits 0, 3, 6, 9. */
int64_t gar_ticks_per_second(int32_t digits);

#endif
