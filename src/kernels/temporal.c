/* SPDX-License-Identifier: Apache-2.0 */
/* Calendar arithmetic over vectors. */
#include "kernels/temporal.h"

#include "base/calendar.h"
#include "kernels/civil_priv.h"
#include "kernels/vector.h"

#define DAY_SECONDS INT64_C(86400)

int64_t gar_unit_ticks_per_second(enum gar_time_unit unit)
{
    static const int64_t ticks[] = {1, 1000, 1000000, 1000000000};
    return ticks[unit];
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0 ? 1 : 0);
}

static int32_t iso_week(int64_t days)
{
    /* the week belongs to the year of its Thursday */
    const int64_t weekday = ((days + 3) % 7 + 7) % 7; /* Monday is 0 */
    const int64_t thursday = days - weekday + 3;
    const int64_t year = gar_civil_from_days(thursday).year;
    return (int32_t)((thursday - gar_days_from_civil(year, 1, 1)) / 7 + 1);
}

/* One part of one day, any range. */
static int32_t day_part(enum gar_date_part part, int64_t days)
{
    const struct gar_civil c = gar_civil_from_days(days);
    switch (part) {
    case GAR_PART_YEAR: return (int32_t)c.year;
    case GAR_PART_QUARTER: return (c.month + 2) / 3;
    case GAR_PART_MONTH: return c.month;
    case GAR_PART_DAY: return c.day;
    case GAR_PART_DAY_OF_WEEK: return (int32_t)(((days + 3) % 7 + 7) % 7);
    case GAR_PART_DAY_OF_YEAR: return (int32_t)(days - gar_days_from_civil(c.year, 1, 1) + 1);
    case GAR_PART_WEEK_OF_YEAR: return iso_week(days);
    case GAR_PART_HOUR:
    case GAR_PART_MINUTE:
    case GAR_PART_SECOND:
    case GAR_PART_MILLISECOND:
    case GAR_PART_MICROSECOND:
    case GAR_PART_NANOSECOND: break;
    }
    return 0;
}

void gar_days_part(enum gar_date_part part, const int32_t *days, int32_t *out, int64_t n)
{
    int32_t least = 0;
    int32_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        least = days[i] < least ? days[i] : least;
        most = days[i] > most ? days[i] : most;
    }
    const bool is_civil = part == GAR_PART_YEAR || part == GAR_PART_MONTH || part == GAR_PART_DAY;
    if (is_civil && least >= GAR_CIVIL_DAYS_MIN && most <= GAR_CIVIL_DAYS_MAX) {
        gar_vector_kernels()->civil[part == GAR_PART_YEAR    ? 0
                                    : part == GAR_PART_MONTH ? 1
                                                             : 2](days, out, n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        out[i] = day_part(part, days[i]);
    }
}

int64_t gar_ticks_day(enum gar_time_unit unit, const struct gar_zone *zone, int64_t ticks,
                      int64_t *out_day_ticks)
{
    const int64_t per_second = gar_unit_ticks_per_second(unit);
    int64_t seconds = floor_div(ticks, per_second);
    const int64_t fraction = ticks - seconds * per_second;
    if (zone != NULL) {
        /* an instant in seconds near the ends of int64 keeps its place: the clock stops there */
        const int32_t offset = gar_zone_offset_at(zone, seconds);
        if (__builtin_add_overflow(seconds, offset, &seconds)) {
            seconds = offset < 0 ? INT64_MIN : INT64_MAX;
        }
    }
    const int64_t days = floor_div(seconds, DAY_SECONDS);
    if (out_day_ticks != NULL) {
        *out_day_ticks = (seconds - days * DAY_SECONDS) * per_second + fraction;
    }
    return days;
}

static int32_t clock_part(enum gar_date_part part, int64_t day_ticks, int64_t per_second)
{
    const int64_t seconds = day_ticks / per_second;
    const int64_t fraction = day_ticks % per_second;
    switch (part) {
    case GAR_PART_HOUR: return (int32_t)(seconds / 3600);
    case GAR_PART_MINUTE: return (int32_t)(seconds / 60 % 60);
    case GAR_PART_SECOND: return (int32_t)(seconds % 60);
    case GAR_PART_MILLISECOND: return (int32_t)(fraction * 1000 / per_second);
    case GAR_PART_MICROSECOND: return (int32_t)(fraction * 1000000 / per_second);
    default: return (int32_t)(fraction * (1000000000 / per_second));
    }
}

#define BLOCK_ROWS 256

/* The parts of the local clock's readings; near the ends of the range, where these overflow, value by value. */
static void zoned_part(enum gar_date_part part, enum gar_time_unit unit,
                       const struct gar_zone *zone, const int64_t *ticks, int32_t *out, int64_t n)
{
    const int64_t per_second = gar_unit_ticks_per_second(unit);
    for (int64_t at = 0; at < n; at += BLOCK_ROWS) {
        const int64_t count = gar_min_i64(BLOCK_ROWS, n - at);
        int64_t local[BLOCK_ROWS];
        if (!gar_zone_local_vector(ticks + at, count, unit, zone, local)) {
            gar_ticks_part(part, unit, NULL, local, out + at, count);
            continue;
        }
        for (int64_t i = at; i < at + count; i++) {
            int64_t day_ticks = 0;
            const int64_t days = gar_ticks_day(unit, zone, ticks[i], &day_ticks);
            out[i] = part >= GAR_PART_HOUR ? clock_part(part, day_ticks, per_second)
                                           : day_part(part, days);
        }
    }
}

void gar_ticks_part(enum gar_date_part part, enum gar_time_unit unit, const struct gar_zone *zone,
                    const int64_t *ticks, int32_t *out, int64_t n)
{
    const int64_t per_second = gar_unit_ticks_per_second(unit);
    if (zone != NULL) {
        zoned_part(part, unit, zone, ticks, out, n);
        return;
    }
    if (part >= GAR_PART_HOUR) {
        for (int64_t i = 0; i < n; i++) {
            int64_t day_ticks = 0;
            (void)gar_ticks_day(unit, NULL, ticks[i], &day_ticks);
            out[i] = clock_part(part, day_ticks, per_second);
        }
        return;
    }
    for (int64_t at = 0; at < n; at += BLOCK_ROWS) {
        const int64_t count = gar_min_i64(BLOCK_ROWS, n - at);
        int32_t days[BLOCK_ROWS];
        if (gar_vector_kernels()->days_of_ticks(ticks + at, DAY_SECONDS * per_second, days,
                                                count)) {
            gar_days_part(part, days, out + at, count);
            continue;
        }
        for (int64_t i = 0; i < count; i++) {
            out[at + i] = day_part(part, floor_div(ticks[at + i], DAY_SECONDS * per_second));
        }
    }
}

int64_t gar_days_trunc(enum gar_trunc_unit to, int64_t days)
{
    const struct gar_civil c = gar_civil_from_days(days);
    switch (to) {
    case GAR_TRUNC_WEEK: return days - ((days + 3) % 7 + 7) % 7;
    case GAR_TRUNC_MONTH: return days - c.day + 1;
    case GAR_TRUNC_QUARTER: return gar_days_from_civil(c.year, (c.month - 1) / 3 * 3 + 1, 1);
    case GAR_TRUNC_YEAR: return gar_days_from_civil(c.year, 1, 1);
    case GAR_TRUNC_NANOSECOND:
    case GAR_TRUNC_MICROSECOND:
    case GAR_TRUNC_MILLISECOND:
    case GAR_TRUNC_SECOND:
    case GAR_TRUNC_MINUTE:
    case GAR_TRUNC_HOUR:
    case GAR_TRUNC_DAY: break;
    }
    return days;
}

bool gar_ticks_from_local(enum gar_time_unit unit, const struct gar_zone *zone, int64_t local,
                          int64_t *out)
{
    if (zone == NULL) {
        *out = local;
        return true;
    }
    return !gar_zone_utc_vector(&local, 1, unit, zone, NULL, GAR_ZONE_GAP_PASSED, out);
}

bool gar_ticks_to_local(enum gar_time_unit unit, const struct gar_zone *zone, int64_t ticks,
                        int64_t *out)
{
    if (zone == NULL) {
        *out = ticks;
        return true;
    }
    const int64_t per_second = gar_unit_ticks_per_second(unit);
    const int64_t offset = gar_zone_offset_at(zone, floor_div(ticks, per_second));
    return !__builtin_add_overflow(ticks, offset * per_second, out);
}

/* Days and ticks of the day as a local clock reading. */
static bool join_local(enum gar_time_unit unit, int64_t days, int64_t day_ticks, int64_t *out)
{
    int64_t ticks = 0;
    return !__builtin_mul_overflow(days, DAY_SECONDS * gar_unit_ticks_per_second(unit), &ticks) &&
           !__builtin_add_overflow(ticks, day_ticks, out);
}

/* The first instant that reads so much or more on that day: the reading itself, or the change of a clock that skips it. */
static bool start_in_day(enum gar_time_unit unit, const struct gar_zone *zone, int64_t days,
                         int64_t day_ticks, int64_t *out)
{
    int64_t local = 0;
    if (!join_local(unit, days, day_ticks, &local)) {
        return false;
    }
    *out = local;
    return zone == NULL ||
           !gar_zone_utc_vector(&local, 1, unit, zone, NULL, GAR_ZONE_GAP_CHANGE, out);
}

bool gar_ticks_from_day(enum gar_time_unit unit, const struct gar_zone *zone, int64_t days,
                        int64_t *out)
{
    return start_in_day(unit, zone, days, 0, out);
}

static int64_t span_ticks(enum gar_trunc_unit to, int64_t per_second)
{
    switch (to) {
    case GAR_TRUNC_MICROSECOND: return per_second / 1000000;
    case GAR_TRUNC_MILLISECOND: return per_second / 1000;
    case GAR_TRUNC_SECOND: return per_second;
    case GAR_TRUNC_MINUTE: return 60 * per_second;
    case GAR_TRUNC_HOUR: return 3600 * per_second;
    default: return 1;
    }
}

bool gar_ticks_trunc(enum gar_trunc_unit to, enum gar_time_unit unit, const struct gar_zone *zone,
                     int64_t ticks, int64_t *out)
{
    int64_t day_ticks = 0;
    const int64_t days = gar_ticks_day(unit, zone, ticks, &day_ticks);
    if (to <= GAR_TRUNC_HOUR) {
        const int64_t per_second = gar_unit_ticks_per_second(unit);
        const int64_t span = span_ticks(to, per_second);
        const int64_t over = span <= 1 ? 0 : day_ticks % span;
        if (__builtin_sub_overflow(ticks, over, out)) {
            return false;
        }
        int64_t from = INT64_MIN; /* the last change of the clock */
        if (zone != NULL && over != 0) {
            (void)gar_zone_offset(zone, floor_div(ticks, per_second), &from, NULL);
        }
        /* Some clocks change within an hour; behind such a change the unit starts by the clock before it, or at it. */
        return floor_div(*out, per_second) >= from ||
               start_in_day(unit, zone, days, day_ticks - over, out);
    }
    return gar_ticks_from_day(unit, zone, gar_days_trunc(to, days), out);
}

/* By the local clock and back: for units up to an hour to the instant with the same offset where there are two. */
static bool zoned_trunc(enum gar_trunc_unit to, enum gar_time_unit unit,
                        const struct gar_zone *zone, const int64_t *ticks, int64_t *out, int64_t n)
{
    bool is_kept = true;
    for (int64_t at = 0; at < n; at += BLOCK_ROWS) {
        const int64_t count = gar_min_i64(BLOCK_ROWS, n - at);
        int64_t local[BLOCK_ROWS];
        is_kept &= !gar_zone_local_vector(ticks + at, count, unit, zone, local);
        for (int64_t i = 0; i < count; i++) {
            is_kept &= gar_ticks_trunc(to, unit, NULL, local[i], &local[i]);
        }
        const int64_t *like = to <= GAR_TRUNC_HOUR ? ticks + at : NULL;
        is_kept &=
            !gar_zone_utc_vector(local, count, unit, zone, like, GAR_ZONE_GAP_CHANGE, out + at);
    }
    return is_kept;
}

bool gar_ticks_trunc_vector(enum gar_trunc_unit to, enum gar_time_unit unit,
                            const struct gar_zone *zone, const int64_t *ticks, int64_t *out,
                            int64_t n)
{
    if (zone != NULL) {
        return zoned_trunc(to, unit, zone, ticks, out, n);
    }
    bool is_kept = true;
    for (int64_t i = 0; i < n; i++) {
        int64_t result = 0; /* written in any case, so that the loop may go on */
        is_kept &= gar_ticks_trunc(to, unit, NULL, ticks[i], &result);
        out[i] = result;
    }
    return is_kept;
}

/* Months within what the calendar functions take. */
#define MONTHS_MAX (INT64_C(12) * 10000000000)

bool gar_ticks_add(enum gar_time_unit unit, const struct gar_zone *zone, int64_t ticks,
                   int64_t months, int64_t days, int64_t more_ticks, int64_t *out)
{
    int64_t moved = ticks;
    if (months != 0 || days != 0) {
        int64_t day_ticks = 0;
        int64_t day = gar_ticks_day(unit, zone, ticks, &day_ticks);
        if (months > MONTHS_MAX || months < -MONTHS_MAX) {
            return false;
        }
        day = months != 0 ? gar_days_add_months(day, months) : day;
        int64_t local = 0;
        if (__builtin_add_overflow(day, days, &day) || !join_local(unit, day, day_ticks, &local)) {
            return false;
        }
        /* Of two instants that read so, the one by the same offset. */
        moved = local;
        if (zone != NULL &&
            gar_zone_utc_vector(&local, 1, unit, zone, &ticks, GAR_ZONE_GAP_PASSED, &moved)) {
            return false;
        }
    }
    return !__builtin_add_overflow(moved, more_ticks, out);
}

bool gar_days_add(int32_t days, int64_t months, int64_t more_days, int32_t *out)
{
    if (months > MONTHS_MAX || months < -MONTHS_MAX) {
        return false;
    }
    int64_t moved = months != 0 ? gar_days_add_months(days, months) : days;
    if (__builtin_add_overflow(moved, more_days, &moved)) {
        return false;
    }
    *out = (int32_t)moved;
    return *out == moved;
}
