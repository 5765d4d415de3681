/* SPDX-License-Identifier: Apache-2.0 */
/* Parts, truncation and calendar arithmetic of dates and times. Timestamps are instants in a unit; a zone (NULL: none) gives
 * the local clock. Functions say whether a result left the range and leave the message to the caller.
 * Threads: any. */
#ifndef GAR_KERNELS_TEMPORAL_H
#define GAR_KERNELS_TEMPORAL_H

#include "arrow/type.h"
#include "kernels/zone.h"

enum gar_date_part {
    GAR_PART_YEAR,
    GAR_PART_QUARTER,
    GAR_PART_MONTH,
    GAR_PART_DAY,
    GAR_PART_DAY_OF_WEEK, /* Monday is 0 */
    GAR_PART_DAY_OF_YEAR,
    GAR_PART_WEEK_OF_YEAR, /* ISO 8601 */
    GAR_PART_HOUR,
    GAR_PART_MINUTE,
    GAR_PART_SECOND,
    GAR_PART_MILLISECOND,
    GAR_PART_MICROSECOND,
    GAR_PART_NANOSECOND,
};

enum gar_trunc_unit {
    GAR_TRUNC_NANOSECOND,
    GAR_TRUNC_MICROSECOND,
    GAR_TRUNC_MILLISECOND,
    GAR_TRUNC_SECOND,
    GAR_TRUNC_MINUTE,
    GAR_TRUNC_HOUR,
    GAR_TRUNC_DAY,
    GAR_TRUNC_WEEK,
    GAR_TRUNC_MONTH,
    GAR_TRUNC_QUARTER,
    GAR_TRUNC_YEAR,
};

/* A calendar part (year .. week) of days[n]. */
void gar_days_part(enum gar_date_part part, const int32_t *days, int32_t *out, int64_t n);
/* Any part of ticks[n], which are timestamps or times of day. */
void gar_ticks_part(enum gar_date_part part, enum gar_time_unit unit, const struct gar_zone *zone,
                    const int64_t *ticks, int32_t *out, int64_t n);
/* Days and ticks of the day by the local clock. *out_day_ticks may be NULL. Days may leave int32. */
int64_t gar_ticks_day(enum gar_time_unit unit, const struct gar_zone *zone, int64_t ticks,
                      int64_t *out_day_ticks);
/* Start of the week, month, quarter or year. */
int64_t gar_days_trunc(enum gar_trunc_unit to, int64_t days);
/* The first instant of a day by the local clock: midnight, or the change of a clock that skips it. False if that leaves the
 * range. */
bool gar_ticks_from_day(enum gar_time_unit unit, const struct gar_zone *zone, int64_t days,
                        int64_t *out);
/* Start of the unit by the local clock, as an instant. False if that leaves the range. */
bool gar_ticks_trunc(enum gar_trunc_unit to, enum gar_time_unit unit, const struct gar_zone *zone,
                     int64_t ticks, int64_t *out);
/* The same for n values, out not being the input. False if some result left the range; which one, the function above tells. */
bool gar_ticks_trunc_vector(enum gar_trunc_unit to, enum gar_time_unit unit,
                            const struct gar_zone *zone, const int64_t *ticks, int64_t *out,
                            int64_t n);
/* Months, then days, by the local clock; then ticks by the instant. False if that leaves the range. */
bool gar_ticks_add(enum gar_time_unit unit, const struct gar_zone *zone, int64_t ticks,
                   int64_t months, int64_t days, int64_t more_ticks, int64_t *out);
bool gar_days_add(int32_t days, int64_t months, int64_t more_days, int32_t *out);
/* The instant of a local clock reading in ticks, and back. False if that leaves the range. */
bool gar_ticks_from_local(enum gar_time_unit unit, const struct gar_zone *zone, int64_t local,
                          int64_t *out);
bool gar_ticks_to_local(enum gar_time_unit unit, const struct gar_zone *zone, int64_t ticks,
                        int64_t *out);
int64_t gar_unit_ticks_per_second(enum gar_time_unit unit);

#endif
