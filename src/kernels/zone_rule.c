/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of POSIX TZ texts: reading them, and the changes of the clock that they make in a year. */
#include <string.h>

#include "base/calendar.h"
#include "kernels/zone_priv.h"

enum { DAY_SECONDS = 86400 };

/* ---- reading ---- */

struct cursor {
    const char *at;
    const char *end;
};

static bool take(struct cursor *c, char wanted)
{
    if (c->at == c->end || *c->at != wanted) {
        return false;
    }
    c->at++;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* 1 to 3 digits, at most `most`. */
static bool take_number(struct cursor *c, int32_t most, int32_t *out)
{
    int32_t value = 0;
    int32_t digits = 0;
    while (c->at < c->end && is_digit(*c->at) && digits < 3) {
        value = value * 10 + (*c->at++ - '0');
        digits++;
    }
    *out = value;
    return digits > 0 && value <= most && (c->at == c->end || !is_digit(*c->at));
}

/* [+-]h[:mm[:ss]] as seconds. */
static bool take_time(struct cursor *c, int32_t most_hours, int32_t *out)
{
    const bool is_negative = take(c, '-');
    if (!is_negative) {
        (void)take(c, '+');
    }
    int32_t hours = 0;
    int32_t minutes = 0;
    int32_t seconds = 0;
    if (!take_number(c, most_hours, &hours) ||
        (take(c, ':') &&
         (!take_number(c, 59, &minutes) || (take(c, ':') && !take_number(c, 59, &seconds))))) {
        return false;
    }
    const int32_t total = hours * 3600 + minutes * 60 + seconds;
    *out = is_negative ? -total : total;
    return true;
}

/* Three or more letters, or anything between < and >. */
static bool take_name(struct cursor *c)
{
    if (take(c, '<')) {
        const char *close = memchr(c->at, '>', (size_t)(c->end - c->at));
        if (close == NULL || close == c->at) {
            return false;
        }
        c->at = close + 1;
        return true;
    }
    const char *start = c->at;
    while (c->at < c->end &&
           ((*c->at >= 'A' && *c->at <= 'Z') || (*c->at >= 'a' && *c->at <= 'z'))) {
        c->at++;
    }
    return c->at - start >= 3;
}

/* ,date[/time] */
static bool take_day(struct cursor *c, struct gar_zone_day *out)
{
    *out = (struct gar_zone_day){.form = GAR_ZONE_DAY_ZERO, .seconds = 2 * 3600};
    if (!take(c, ',')) {
        return false;
    }
    if (take(c, 'M')) {
        out->form = GAR_ZONE_DAY_MONTH;
        if (!take_number(c, 12, &out->month) || out->month < 1 || !take(c, '.') ||
            !take_number(c, 5, &out->week) || out->week < 1 || !take(c, '.') ||
            !take_number(c, 6, &out->day)) {
            return false;
        }
    } else if (take(c, 'J')) {
        out->form = GAR_ZONE_DAY_JULIAN;
        if (!take_number(c, 365, &out->day) || out->day < 1) {
            return false;
        }
    } else if (!take_number(c, 365, &out->day)) {
        return false;
    }
    return !take(c, '/') || take_time(c, 167, &out->seconds);
}

bool gar_zone_rule_parse(const char *text, int64_t bytes, struct gar_zone_rule *out)
{
    struct cursor c = {text, text + bytes};
    *out = (struct gar_zone_rule){0};
    int32_t west = 0;
    if (!take_name(&c) || !take_time(&c, 24, &west)) {
        return false;
    }
    out->standard = -west;
    if (c.at == c.end) {
        return true;
    }
    out->has_summer = true;
    if (!take_name(&c)) {
        return false;
    }
    out->summer = out->standard + 3600;
    if (c.at < c.end && *c.at != ',') {
        if (!take_time(&c, 24, &west)) {
            return false;
        }
        out->summer = -west;
    }
    return take_day(&c, &out->start) && take_day(&c, &out->end) && c.at == c.end;
}

/* ---- changes ---- */

/* Seconds since 1970-01-01 of the local clock. */
static int64_t day_seconds(const struct gar_zone_day *day, int64_t year)
{
    int64_t days = 0;
    switch (day->form) {
    case GAR_ZONE_DAY_JULIAN:
        days = gar_days_from_civil(year, 1, 1) + day->day - 1 +
               (day->day >= 60 && gar_is_leap_year(year));
        break;
    case GAR_ZONE_DAY_ZERO: days = gar_days_from_civil(year, 1, 1) + day->day; break;
    case GAR_ZONE_DAY_MONTH: {
        const int64_t first = gar_days_from_civil(year, day->month, 1);
        const int64_t thursday = (first + 4) % 7; /* 1970-01-01 was a Thursday, day 4 */
        const int32_t weekday = (int32_t)(thursday < 0 ? thursday + 7 : thursday);
        int32_t in_month = (day->day - weekday + 7) % 7 + 7 * (day->week - 1);
        if (in_month >= gar_days_in_month(year, day->month)) {
            in_month -= 7; /* week 5 is the last there is */
        }
        days = first + in_month;
        break;
    }
    }
    return days * DAY_SECONDS + day->seconds;
}

void gar_zone_rule_events(const struct gar_zone_rule *rule, int64_t year, int32_t years,
                          struct gar_zone_event *out)
{
    int32_t count = 0;
    for (int32_t i = 0; i < years; i++) {
        const struct gar_zone_event start = {day_seconds(&rule->start, year + i) - rule->standard,
                                             rule->summer};
        const struct gar_zone_event end = {day_seconds(&rule->end, year + i) - rule->summer,
                                           rule->standard};
        const bool is_north = start.at <= end.at;
        out[count++] = is_north ? start : end;
        out[count++] = is_north ? end : start;
        /* Times of day far outside a day may reach into the next year: a stable insertion keeps the order. */
        for (int32_t k = count - 2; k < count; k++) {
            for (int32_t j = k; j > 0 && out[j - 1].at > out[j].at; j--) {
                const struct gar_zone_event swap = out[j];
                out[j] = out[j - 1];
                out[j - 1] = swap;
            }
        }
    }
}

int64_t gar_zone_year(int64_t utc_seconds, int32_t offset)
{
    const int64_t local = utc_seconds + offset;
    return gar_civil_from_days(local / DAY_SECONDS - (local % DAY_SECONDS < 0)).year;
}

struct gar_zone_span gar_zone_rule_span(const struct gar_zone_rule *rule, int64_t utc_seconds)
{
    enum { YEARS = 5, EVENTS = 2 * YEARS };
    const int64_t t = gar_max_i64(-GAR_ZONE_FAR, gar_min_i64(utc_seconds, GAR_ZONE_FAR));
    /* No change lies more than nine days outside its year, so that the neighbours of t are among these. */
    struct gar_zone_event events[EVENTS];
    gar_zone_rule_events(rule, gar_zone_year(t, rule->standard) - 2, YEARS, events);
    int32_t next = 1;
    while (next < EVENTS - 1 && events[next].at <= t) {
        next++;
    }
    return (struct gar_zone_span){
        .from = t == -GAR_ZONE_FAR ? INT64_MIN : events[next - 1].at,
        .until = t == GAR_ZONE_FAR ? INT64_MAX : events[next].at,
        .offset = events[next - 1].offset,
    };
}
