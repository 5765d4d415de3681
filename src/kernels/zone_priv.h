/* SPDX-License-Identifier: Apache-2.0 */
/* Zones inside; private to the zone files. */
#ifndef GAR_KERNELS_ZONE_PRIV_H
#define GAR_KERNELS_ZONE_PRIV_H

#include "kernels/zone.h"

/* Instants further away count as this far, so that sums of a few years and offsets cannot overflow. */
#define GAR_ZONE_FAR (INT64_C(1) << 60)

/* A day of each year at a time of its local clock. */
struct gar_zone_day {
    enum {
        GAR_ZONE_DAY_JULIAN, /* day 1..365; 29 February is never counted */
        GAR_ZONE_DAY_ZERO,   /* day 0..365 */
        GAR_ZONE_DAY_MONTH,  /* day 0..6 (Sunday 0) of week 1..5 (5: the last) of the month */
    } form;
    int32_t day;
    int32_t week;
    int32_t month;
    int32_t seconds; /* after midnight; -167 h to 167 h */
};

/* The rule of a POSIX TZ text. */
struct gar_zone_rule {
    int32_t standard; /* seconds east of Greenwich */
    int32_t summer;
    bool has_summer;
    struct gar_zone_day start; /* of summer time, by the standard clock */
    struct gar_zone_day end;   /* of summer time, by its own clock */
};

struct gar_zone {
    const char *name; /* the interned name; NULL outside the process's table */
    bool has_rule;
    struct gar_zone_rule rule; /* with summer time */
    int64_t rule_from;         /* the rule says it all from this instant on; INT64_MIN: always */
    int64_t count;
    const int64_t *at;      /* count instants, ascending */
    const int32_t *offsets; /* count + 1: before at[0], from at[0], ... */
};

/* One stretch of time with one offset: [from, until). */
struct gar_zone_span {
    int64_t from;
    int64_t until;
    int32_t offset;
};
struct gar_zone_span gar_zone_span_at(const struct gar_zone *zone, int64_t utc_seconds);

/* A change of the clock that a rule makes. */
struct gar_zone_event {
    int64_t at;
    int32_t offset; /* from then on */
};
/* The two changes in each of `years` years from `year`, in order of time; out has room for 2 * years. */
void gar_zone_rule_events(const struct gar_zone_rule *rule, int64_t year, int32_t years,
                          struct gar_zone_event *out);
/* The stretch that the rule puts this instant in. */
struct gar_zone_span gar_zone_rule_span(const struct gar_zone_rule *rule, int64_t utc_seconds);
/* A POSIX TZ text: "CET-1CEST,M3.5.0,M10.5.0/3", "<+0330>-3:30". False if it is none. */
bool gar_zone_rule_parse(const char *text, int64_t bytes, struct gar_zone_rule *out);

/* The civil year of an instant |seconds| <= 2 * GAR_ZONE_FAR at an offset. */
int64_t gar_zone_year(int64_t utc_seconds, int32_t offset);

#endif
