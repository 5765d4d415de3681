/* SPDX-License-Identifier: Apache-2.0 */
/* Calendar arithmetic and ISO 8601 text.
 *
 * Years are counted from March so that the leap day is the last of its year: day-of-year is then the linear
 * (153 * month + 2) / 5. Four-digit years, which is nearly all input, take 32-bit unsigned arithmetic on a year moved
 * up by one 400-year era (146,097 days); all others take the 64-bit path with floor division. */
#include "base/calendar.h"

#include "base/bits.h"
#include "base/int128.h"

enum { ERA_DAYS = 146097, EPOCH_FROM_MARCH_0 = 719468, DAY_SECONDS = 86400 };

static int64_t floor_div(int64_t a, int64_t b) /* b > 0 */
{
    return a / b - (a % b < 0);
}

static int64_t floor_mod(int64_t a, int64_t b) /* b > 0; in 0..b-1 */
{
    const int64_t r = a % b;
    return r < 0 ? r + b : r;
}

GAR_INLINE uint32_t day_of_march_year(uint32_t month, uint32_t day)
{
    return (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
}

int64_t gar_days_from_civil(int64_t year, int32_t month, int32_t day)
{
    const int64_t y = year - (month <= 2);
    const int64_t era = floor_div(y, 400);
    const int64_t yoe = y - era * 400;
    const int64_t doe =
        yoe * 365 + yoe / 4 - yoe / 100 + day_of_march_year((uint32_t)month, (uint32_t)day);
    return era * ERA_DAYS + doe - EPOCH_FROM_MARCH_0;
}

/* The same for years 0..9999. */
GAR_INLINE int32_t days_from_civil_small(uint32_t year, uint32_t month, uint32_t day)
{
    const uint32_t y = year + 400 - (month <= 2);
    return (int32_t)(y * 365 + y / 4 - y / 100 + y / 400 + day_of_march_year(month, day)) -
           ERA_DAYS - EPOCH_FROM_MARCH_0;
}

struct gar_civil gar_civil_from_days(int64_t days)
{
    const int64_t z = days + EPOCH_FROM_MARCH_0;
    const int64_t era = floor_div(z, ERA_DAYS);
    const uint32_t doe = (uint32_t)(z - era * ERA_DAYS);
    const uint32_t yoe = (doe - doe / 1460 + doe / 36524 - doe / (ERA_DAYS - 1)) / 365;
    const uint32_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    const uint32_t mp = (5 * doy + 2) / 153;
    const uint32_t month = mp < 10 ? mp + 3 : mp - 9;
    return (struct gar_civil){.year = (int64_t)yoe + era * 400 + (month <= 2),
                              .month = (int32_t)month,
                              .day = (int32_t)(doy - (153 * mp + 2) / 5 + 1)};
}

bool gar_is_leap_year(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int32_t gar_days_in_month(int64_t year, int32_t month)
{
    static const int8_t days[13] = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month] + (month == 2 && gar_is_leap_year(year));
}

int64_t gar_days_add_months(int64_t days, int64_t months)
{
    const struct gar_civil c = gar_civil_from_days(days);
    const int64_t total = c.year * 12 + (c.month - 1) + months;
    const int64_t year = floor_div(total, 12);
    const int32_t month = (int32_t)(total - year * 12) + 1;
    const int32_t last = gar_days_in_month(year, month);
    return gar_days_from_civil(year, month, c.day < last ? c.day : last);
}

int64_t gar_ticks_per_second(int32_t digits)
{
    return gar_pow10_i64(digits);
}

/* ---- reading ---- */

/* Two digits at p as 0..99, or a value >= 100. */
GAR_INLINE uint32_t two_digits(const char *p)
{
    const uint32_t high = (uint32_t)(unsigned char)p[0] - '0';
    const uint32_t low = (uint32_t)(unsigned char)p[1] - '0';
    return high > 9 || low > 9 ? 1000 : high * 10 + low;
}

GAR_INLINE bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The three pairs of digits in the eight bytes "YY-MM-DD"; false if it is not of that form. Exclusive or with the form of
 * all zeros leaves the digits, and nothing in place of the dashes; the sum sets a high bit where a digit is over 9
 * or a dash is none. Then each tens digit takes its ones digit from the byte behind it. */
GAR_INLINE bool read_pairs(const char *text, uint32_t *year, uint32_t *month, uint32_t *day)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint64_t x = gar_load_u64(text) ^ UINT64_C(0x30302d30302d3030);
    if ((((x + UINT64_C(0x76767f76767f7676)) | x) & UINT64_C(0x8080808080808080)) != 0) {
        return false;
    }
    const uint64_t pairs = x * 10 + (x >> 8);
    *year = (uint32_t)(pairs & 0xff);
    *month = (uint32_t)(pairs >> 24 & 0xff);
    *day = (uint32_t)(pairs >> 48 & 0xff);
    return true;
#else
    *year = two_digits(text);
    *month = two_digits(text + 3);
    *day = two_digits(text + 6);
    return text[2] == '-' && text[5] == '-' && *year < 100 && *month < 100 && *day < 100;
#endif
}

/* The civil date in the first bytes of text; *out_used gets how many. */
GAR_INLINE bool read_date(const char *text, int64_t bytes, int64_t *out_days, int64_t *out_used)
{
    uint32_t in_century = 0;
    uint32_t month = 0;
    uint32_t day = 0;
    if (bytes >= 10 && read_pairs(text + 2, &in_century, &month, &day)) {
        const uint32_t century = two_digits(text);
        if (GAR_LIKELY(century < 100 && month - 1 < 12 && day - 1 < 28)) {
            *out_days = days_from_civil_small(century * 100 + in_century, month, day);
            *out_used = 10;
            return true;
        }
    }
    /* The general form: sign, 4 to 7 digits of year, or the last days of a month. */
    int64_t i = 0;
    bool is_negative = false;
    if (bytes > 0 && (text[0] == '-' || text[0] == '+')) {
        is_negative = text[0] == '-';
        i = 1;
    }
    const int64_t first = i;
    int64_t year = 0;
    while (i < bytes && i < first + 7 && is_digit(text[i])) {
        year = year * 10 + (text[i++] - '0');
    }
    if (i - first < 4 || bytes - i < 6 || text[i] != '-' || text[i + 3] != '-') {
        return false;
    }
    year = is_negative ? -year : year;
    month = two_digits(text + i + 1);
    day = two_digits(text + i + 4);
    if (month - 1 >= 12 || day - 1 >= (uint32_t)gar_days_in_month(year, (int32_t)month)) {
        return false;
    }
    *out_days = gar_days_from_civil(year, (int32_t)month, (int32_t)day);
    *out_used = i + 6;
    return true;
}

/* A time of day. */
struct clock_text {
    int64_t seconds;  /* since midnight */
    int64_t fraction; /* in units of 10^-fraction_digits seconds */
    int32_t fraction_digits;
};

/* The time of day in the first bytes of text. */
GAR_INLINE bool read_time(const char *text, int64_t bytes, struct clock_text *out,
                          int64_t *out_used)
{
    if (bytes < 5 || text[2] != ':') {
        return false;
    }
    const uint32_t hour = two_digits(text);
    const uint32_t minute = two_digits(text + 3);
    uint32_t second = 0;
    int64_t fraction = 0;
    int64_t i = 5;
    int64_t point = 4; /* so that i - point - 1 is the number of digits, none */
    if (bytes >= 8 && text[5] == ':') {
        second = two_digits(text + 6);
        i = 8;
        point = 7;
        if (bytes > 8 && text[8] == '.') {
            point = 8;
            i = 9;
            while (i < bytes && i < 18 && is_digit(text[i])) {
                fraction = fraction * 10 + (text[i++] - '0');
            }
            if (i == 9 || (i < bytes && is_digit(text[i]))) {
                return false; /* a point alone, or more than nine digits */
            }
        }
    }
    if (hour > 23 || minute > 59 || second > 59) {
        return false;
    }
    out->seconds = (int64_t)hour * 3600 + (int64_t)minute * 60 + second;
    out->fraction = fraction;
    out->fraction_digits = (int32_t)(i - point - 1);
    *out_used = i;
    return true;
}

/* The fraction in units of 10^-digits seconds; digits beyond are cut. */
GAR_INLINE int64_t fraction_in(const struct clock_text *time, int32_t digits)
{
    return time->fraction_digits <= digits
               ? time->fraction * gar_pow10_i64(digits - time->fraction_digits)
               : time->fraction / gar_pow10_i64(time->fraction_digits - digits);
}

/* "Z", "+01:00", "+0100", "+01" or "+01:02:03" as the whole text: seconds east of Greenwich. */
static bool read_offset(const char *text, int64_t bytes, int64_t *out_seconds)
{
    if (bytes == 1 && (text[0] == 'Z' || text[0] == 'z')) {
        *out_seconds = 0;
        return true;
    }
    if (bytes < 3 || (text[0] != '+' && text[0] != '-')) {
        return false;
    }
    const uint32_t hour = two_digits(text + 1);
    uint32_t minute = 0;
    uint32_t second = 0;
    if (bytes == 9 && text[3] == ':' && text[6] == ':') {
        minute = two_digits(text + 4);
        second = two_digits(text + 7);
    } else if (bytes == 6 && text[3] == ':') {
        minute = two_digits(text + 4);
    } else if (bytes == 5) {
        minute = two_digits(text + 3);
    } else if (bytes != 3) {
        return false;
    }
    if (hour > 23 || minute > 59 || second > 59) {
        return false;
    }
    const int64_t seconds = (int64_t)hour * 3600 + (int64_t)minute * 60 + second;
    *out_seconds = text[0] == '-' ? -seconds : seconds;
    return true;
}

bool gar_parse_date(const char *text, int64_t bytes, int32_t *out_days)
{
    int64_t days = 0;
    int64_t used = 0;
    if (!read_date(text, bytes, &days, &used) || used != bytes || days != (int32_t)days) {
        return false;
    }
    *out_days = (int32_t)days;
    return true;
}

bool gar_parse_time(const char *text, int64_t bytes, int64_t *out_ns)
{
    struct clock_text time = {0};
    int64_t used = 0;
    if (!read_time(text, bytes, &time, &used) || used != bytes) {
        return false;
    }
    *out_ns = time.seconds * INT64_C(1000000000) + fraction_in(&time, 9);
    return true;
}

bool gar_parse_timestamp(const char *text, int64_t bytes, int32_t digits, int64_t *out,
                         bool *out_has_offset)
{
    int64_t days = 0;
    int64_t used = 0;
    if (!read_date(text, bytes, &days, &used)) {
        return false;
    }
    struct clock_text time = {0};
    bool has_offset = false;
    if (used < bytes) {
        const char between = text[used];
        int64_t time_used = 0;
        if ((between != 'T' && between != ' ' && between != 't') ||
            !read_time(text + used + 1, bytes - used - 1, &time, &time_used)) {
            return false;
        }
        used += 1 + time_used;
        if (used < bytes) {
            int64_t offset = 0;
            if (!read_offset(text + used, bytes - used, &offset)) {
                return false;
            }
            time.seconds -= offset;
            has_offset = true;
        }
    }
    const int64_t ticks = gar_ticks_per_second(digits);
    const gar_i128 value =
        (gar_i128)(days * DAY_SECONDS + time.seconds) * ticks + fraction_in(&time, digits);
    if (value != (int64_t)value) {
        return false;
    }
    *out = (int64_t)value;
    *out_has_offset = has_offset;
    return true;
}

/* ---- writing ---- */

static char *put_padded(char *p, uint64_t value, int32_t width)
{
    char reversed[24];
    int32_t n = 0;
    do {
        reversed[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    for (int32_t i = n; i < width; i++) {
        *p++ = '0';
    }
    while (n > 0) {
        *p++ = reversed[--n];
    }
    return p;
}

GAR_INLINE char *put_two(char *p, int32_t value)
{
    p[0] = (char)('0' + value / 10);
    p[1] = (char)('0' + value % 10);
    return p + 2;
}

static char *put_date(char *p, int64_t days)
{
    const struct gar_civil c = gar_civil_from_days(days);
    if (GAR_LIKELY(c.year >= 0 && c.year <= 9999)) {
        p = put_two(p, (int32_t)(c.year / 100));
        p = put_two(p, (int32_t)(c.year % 100));
    } else {
        if (c.year < 0) {
            *p++ = '-';
        }
        p = put_padded(p, (uint64_t)(c.year < 0 ? -c.year : c.year), 4);
    }
    *p++ = '-';
    p = put_two(p, c.month);
    *p++ = '-';
    return put_two(p, c.day);
}

static char *put_time(char *p, int64_t second_of_day, int64_t fraction, int32_t digits)
{
    const int32_t s = (int32_t)second_of_day;
    p = put_two(p, s / 3600);
    *p++ = ':';
    p = put_two(p, s / 60 % 60);
    *p++ = ':';
    p = put_two(p, s % 60);
    if (digits > 0) {
        *p++ = '.';
        p = put_padded(p, (uint64_t)fraction, digits);
    }
    return p;
}

int32_t gar_format_date(int32_t days, char *out)
{
    return (int32_t)(put_date(out, days) - out);
}

int32_t gar_format_time(int64_t value, int32_t digits, char *out)
{
    const int64_t ticks = gar_ticks_per_second(digits);
    const int64_t seconds = floor_div(value, ticks);
    return (
        int32_t)(put_time(out, floor_mod(seconds, DAY_SECONDS), floor_mod(value, ticks), digits) -
                 out);
}

int32_t gar_format_timestamp(int64_t value, int32_t digits, char *out)
{
    const int64_t ticks = gar_ticks_per_second(digits);
    const int64_t seconds = floor_div(value, ticks);
    char *p = put_date(out, floor_div(seconds, DAY_SECONDS));
    *p++ = ' ';
    return (int32_t)(put_time(p, floor_mod(seconds, DAY_SECONDS), floor_mod(value, ticks), digits) -
                     out);
}
