/* SPDX-License-Identifier: Apache-2.0 */
/* TZif reading and look-ups. A zone is a sorted list of moments at which its offset changes; after the last one the POSIX
 * rule in the file's footer goes on for ever.
 *
 * Zones live in a list that only grows, so that readers need no lock: a new one is put in front with one compare-and-swap;
 * when two threads load the same zone, one of the two copies is dropped. */
#include "kernels/zone.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/calendar.h"

#define ZONE_NAME_MAX 128
#define ZONE_FILE_BYTES_MAX (1 << 20)
#define DAY_SECONDS INT64_C(86400)

/* When daylight saving starts or ends, as POSIX TZ writes it. */
struct rule {
    enum { RULE_JULIAN_NO_LEAP, RULE_DAY, RULE_WEEKDAY } kind; /* Jn, n, Mm.w.d */
    int32_t month;
    int32_t week;
    int32_t day;
    int32_t time; /* seconds after local midnight */
};

struct gar_zone {
    struct gar_zone *next;
    char name[ZONE_NAME_MAX + 1];
    int64_t count;        /* transitions */
    int64_t *at;          /* UTC seconds, ascending */
    int32_t *offset;      /* in force from at[i] on */
    int32_t first_offset; /* before at[0] */
    bool has_rule;        /* after the last transition */
    bool has_daylight;
    int32_t standard_offset;
    int32_t daylight_offset;
    struct rule start;
    struct rule end;
};

/* --- TZif --- */

static int64_t read_big(const uint8_t *p, int32_t bytes)
{
    uint64_t v = (p[0] & 0x80) != 0 ? UINT64_MAX : 0;
    for (int32_t i = 0; i < bytes; i++) {
        v = v << 8 | p[i];
    }
    return (int64_t)v;
}

struct header {
    uint8_t version;
    int64_t isut_count;
    int64_t isstd_count;
    int64_t leap_count;
    int64_t time_count;
    int64_t type_count;
    int64_t char_count;
};

#define HEADER_BYTES 44

static bool read_header(const uint8_t *data, int64_t bytes, struct header *out)
{
    if (bytes < HEADER_BYTES || memcmp(data, "TZif", 4) != 0) {
        return false;
    }
    int64_t counts[6];
    for (int32_t i = 0; i < 6; i++) {
        counts[i] = read_big(data + 20 + 4 * i, 4);
        if (counts[i] < 0 || counts[i] > ZONE_FILE_BYTES_MAX) {
            return false;
        }
    }
    *out = (struct header){data[4], counts[0], counts[1], counts[2], counts[3], counts[4], counts[5]};
    return out->type_count > 0;
}

static int64_t block_bytes(const struct header *h, int32_t time_bytes)
{
    return h->time_count * (time_bytes + 1) + h->type_count * 6 + h->char_count + h->leap_count * (time_bytes + 4) +
           h->isstd_count + h->isut_count;
}

static enum gar_status read_block(struct gar_zone *zone, const uint8_t *data, const struct header *h, int32_t time_bytes,
                                  struct gar_error *err)
{
    const uint8_t *times = data;
    const uint8_t *indices = times + h->time_count * time_bytes;
    const uint8_t *types = indices + h->time_count;
    zone->at = gar_malloc(h->time_count * (int64_t)sizeof *zone->at);
    zone->offset = gar_malloc(h->time_count * (int64_t)sizeof *zone->offset);
    if (zone->at == NULL || zone->offset == NULL) {
        return gar_error_nomem(err, h->time_count * (int64_t)sizeof *zone->at);
    }
    /* before the first transition: the first type that is no daylight saving, as a rule type 0 */
    int64_t first = 0;
    while (first + 1 < h->type_count && types[6 * first + 4] != 0) {
        first++;
    }
    zone->first_offset = (int32_t)read_big(types + 6 * (types[4] == 0 ? 0 : first), 4);
    for (int64_t i = 0; i < h->time_count; i++) {
        const int64_t at = read_big(times + i * time_bytes, time_bytes);
        if (indices[i] >= h->type_count || (i > 0 && at <= zone->at[i - 1])) {
            return gar_error_set(err, GAR_ERR_FORMAT, "zone file of %s: transition %lld is out of order or range",
                                 zone->name, (long long)i);
        }
        zone->at[i] = at;
        zone->offset[i] = (int32_t)read_big(types + 6 * (int64_t)indices[i], 4);
    }
    zone->count = h->time_count;
    return GAR_OK;
}

/* --- the footer's POSIX rule --- */

struct text {
    const char *at;
    const char *end;
};

static bool take(struct text *t, char c)
{
    if (t->at < t->end && *t->at == c) {
        t->at++;
        return true;
    }
    return false;
}

static bool take_number(struct text *t, int32_t *out)
{
    int32_t v = 0;
    const char *start = t->at;
    while (t->at < t->end && *t->at >= '0' && *t->at <= '9' && v < 10000) {
        v = 10 * v + (*t->at++ - '0');
    }
    *out = v;
    return t->at != start;
}

/* [+-]hh[:mm[:ss]] in seconds. */
static bool take_time(struct text *t, int32_t *out)
{
    const bool is_negative = take(t, '-');
    if (!is_negative) {
        (void)take(t, '+');
    }
    int32_t parts[3] = {0, 0, 0};
    if (!take_number(t, &parts[0])) {
        return false;
    }
    for (int32_t i = 1; i < 3 && take(t, ':'); i++) {
        if (!take_number(t, &parts[i])) {
            return false;
        }
    }
    const int32_t seconds = 3600 * parts[0] + 60 * parts[1] + parts[2];
    *out = is_negative ? -seconds : seconds;
    return parts[0] <= 200;
}

static bool take_name(struct text *t)
{
    const char *start = t->at;
    if (take(t, '<')) {
        while (t->at < t->end && *t->at != '>') {
            t->at++;
        }
        return take(t, '>');
    }
    while (t->at < t->end && ((*t->at >= 'A' && *t->at <= 'Z') || (*t->at >= 'a' && *t->at <= 'z'))) {
        t->at++;
    }
    return t->at - start >= 3;
}

static bool take_rule(struct text *t, struct rule *out)
{
    out->time = 7200;
    if (take(t, 'M')) {
        out->kind = RULE_WEEKDAY;
        if (!take_number(t, &out->month) || !take(t, '.') || !take_number(t, &out->week) || !take(t, '.') ||
            !take_number(t, &out->day) || out->month < 1 || out->month > 12 || out->week < 1 || out->week > 5 ||
            out->day > 6) {
            return false;
        }
    } else {
        out->kind = take(t, 'J') ? RULE_JULIAN_NO_LEAP : RULE_DAY;
        if (!take_number(t, &out->day) || out->day > 365) {
            return false;
        }
    }
    return !take(t, '/') || take_time(t, &out->time);
}

static bool read_rule(struct gar_zone *zone, const char *text, int64_t bytes)
{
    struct text t = {text, text + bytes};
    int32_t west = 0;
    if (!take_name(&t) || !take_time(&t, &west)) {
        return false;
    }
    zone->standard_offset = -west;
    zone->has_rule = true;
    if (t.at == t.end) {
        return true;
    }
    if (!take_name(&t)) {
        return false;
    }
    zone->daylight_offset = zone->standard_offset + 3600;
    if (t.at < t.end && *t.at != ',') {
        if (!take_time(&t, &west)) {
            return false;
        }
        zone->daylight_offset = -west;
    }
    if (!take(&t, ',') || !take_rule(&t, &zone->start) || !take(&t, ',') || !take_rule(&t, &zone->end)) {
        return false;
    }
    zone->has_daylight = true;
    return t.at == t.end;
}

static enum gar_status parse_file(struct gar_zone *zone, const uint8_t *data, int64_t bytes, struct gar_error *err)
{
    struct header h;
    int64_t start = 0;
    bool is_good = read_header(data, bytes, &h);
    int32_t time_bytes = 4;
    if (is_good && h.version >= '2') {
        start = HEADER_BYTES + block_bytes(&h, 4);
        is_good = start < bytes && read_header(data + start, bytes - start, &h);
        time_bytes = 8;
    }
    start += HEADER_BYTES;
    if (!is_good || block_bytes(&h, time_bytes) > bytes - start) {
        return gar_error_set(err, GAR_ERR_FORMAT, "zone file of %s is cut or no TZif file", zone->name);
    }
    GAR_TRY(read_block(zone, data + start, &h, time_bytes, err));
    const char *footer = (const char *)data + start + block_bytes(&h, time_bytes);
    const int64_t footer_bytes = bytes - (start + block_bytes(&h, time_bytes));
    if (time_bytes == 8 && footer_bytes > 2 && footer[0] == '\n') {
        const char *line_end = memchr(footer + 1, '\n', (size_t)footer_bytes - 1);
        if (line_end == NULL || (line_end > footer + 1 && !read_rule(zone, footer + 1, line_end - footer - 1))) {
            return gar_error_set(err, GAR_ERR_FORMAT, "zone file of %s: bad rule after the last transition", zone->name);
        }
    }
    return GAR_OK;
}

void gar_zone_free(struct gar_zone *zone)
{
    if (zone != NULL) {
        gar_free(zone->at);
        gar_free(zone->offset);
        gar_free(zone);
    }
}

static enum gar_status new_zone(const char *name, struct gar_zone **out, struct gar_error *err)
{
    struct gar_zone *zone = gar_calloc(1, (int64_t)sizeof *zone);
    if (zone == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *zone);
    }
    snprintf(zone->name, sizeof zone->name, "%s", name);
    *out = zone;
    return GAR_OK;
}

enum gar_status gar_zone_parse(const uint8_t *data, int64_t bytes, const char *name, struct gar_zone **out,
                               struct gar_error *err)
{
    struct gar_zone *zone = NULL;
    GAR_TRY(new_zone(name, &zone, err));
    const enum gar_status status = parse_file(zone, data, bytes, err);
    if (status < 0) {
        gar_zone_free(zone);
        return status;
    }
    *out = zone;
    return GAR_OK;
}

/* --- finding --- */

static enum gar_status read_file(const char *path, uint8_t **out_data, int64_t *out_bytes, struct gar_error *err)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        return GAR_EOF;
    }
    uint8_t *data = gar_malloc(ZONE_FILE_BYTES_MAX);
    if (data == NULL) {
        (void)fclose(file);
        return gar_error_nomem(err, ZONE_FILE_BYTES_MAX);
    }
    const size_t bytes = fread(data, 1, ZONE_FILE_BYTES_MAX, file);
    const bool is_bad = ferror(file) != 0;
    (void)fclose(file);
    if (is_bad) {
        gar_free(data);
        return GAR_EOF;
    }
    *out_data = data;
    *out_bytes = (int64_t)bytes;
    return GAR_OK;
}

static enum gar_status load_from_system(const char *name, uint8_t **out_data, int64_t *out_bytes, struct gar_error *err)
{
    const char *folders[] = {getenv("TZDIR"), "/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo"};
    for (int32_t i = 0; i < GAR_COUNT_OF(folders); i++) {
        if (folders[i] == NULL) {
            continue;
        }
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folders[i], name);
        const enum gar_status status = read_file(path, out_data, out_bytes, err);
        if (status != GAR_EOF) {
            return status;
        }
    }
    return gar_error_set(err, GAR_ERR_VALUE,
                         "unknown time zone '%s'; install the tzdata package or name a zone such as Europe/Berlin or +02:00",
                         name);
}

static gar_zone_load_fn loader = load_from_system;
static struct gar_zone *zones; /* atomic head; newest first */

void gar_zone_set_loader(gar_zone_load_fn load)
{
    loader = load != NULL ? load : load_from_system;
}

static bool is_safe_name(const char *name)
{
    for (const char *c = name; *c != '\0'; c++) {
        const bool is_letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
        if (!is_letter && strchr("_+-/", *c) == NULL) {
            return false;
        }
    }
    return name[0] != '\0' && name[0] != '/' && strlen(name) <= ZONE_NAME_MAX;
}

/* "+02:00", "-0530", "+02"; UTC and its other names. */
static bool fixed_offset(const char *name, int32_t *out)
{
    static const char *const utc[] = {"UTC", "utc", "Z", "GMT", "Etc/UTC", "Etc/GMT", "UCT", "Zulu"};
    for (int32_t i = 0; i < GAR_COUNT_OF(utc); i++) {
        if (strcmp(name, utc[i]) == 0) {
            *out = 0;
            return true;
        }
    }
    if (name[0] != '+' && name[0] != '-') {
        return false;
    }
    int32_t digits[4] = {0, 0, 0, 0};
    int32_t count = 0;
    for (const char *c = name + 1; *c != '\0'; c++) {
        if (*c == ':' && count == 2) {
            continue;
        }
        if (*c < '0' || *c > '9' || count == 4) {
            return false;
        }
        digits[count++] = *c - '0';
    }
    const int32_t hours = 10 * digits[0] + digits[1];
    const int32_t minutes = 10 * digits[2] + digits[3];
    *out = (name[0] == '-' ? -1 : 1) * (3600 * hours + 60 * minutes);
    return (count == 2 || count == 4) && hours < 24 && minutes < 60;
}

static struct gar_zone *find_loaded(const char *name)
{
    struct gar_zone *zone = __atomic_load_n(&zones, __ATOMIC_ACQUIRE);
    while (zone != NULL && strcmp(zone->name, name) != 0) {
        zone = zone->next;
    }
    return zone;
}

static enum gar_status load_zone(const char *name, struct gar_zone **out, struct gar_error *err)
{
    int32_t offset = 0;
    if (fixed_offset(name, &offset)) {
        GAR_TRY(new_zone(name, out, err));
        (*out)->first_offset = offset;
        return GAR_OK;
    }
    if (!is_safe_name(name)) {
        char quoted[80];
        gar_error_quote(name, (int64_t)strlen(name), quoted, (int64_t)sizeof quoted);
        return gar_error_set(err, GAR_ERR_VALUE, "unknown time zone '%s'; name a zone such as Europe/Berlin or +02:00",
                             quoted);
    }
    uint8_t *data = NULL;
    int64_t bytes = 0;
    GAR_TRY(loader(name, &data, &bytes, err));
    const enum gar_status status = gar_zone_parse(data, bytes, name, out, err);
    gar_free(data);
    return status;
}

enum gar_status gar_zone_find(const char *name, const struct gar_zone **out, struct gar_error *err)
{
    struct gar_zone *zone = find_loaded(name);
    if (zone != NULL) {
        *out = zone;
        return GAR_OK;
    }
    GAR_TRY(load_zone(name, &zone, err));
    struct gar_zone *head = __atomic_load_n(&zones, __ATOMIC_ACQUIRE);
    do {
        struct gar_zone *other = find_loaded(name);
        if (other != NULL) {
            gar_zone_free(zone); /* another thread was first */
            *out = other;
            return GAR_OK;
        }
        zone->next = head;
    } while (!__atomic_compare_exchange_n(&zones, &head, zone, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    *out = zone;
    return GAR_OK;
}

/* --- looking up --- */

bool gar_zone_is_utc(const struct gar_zone *zone)
{
    return zone->count == 0 && !zone->has_daylight && zone->first_offset == 0 &&
           (!zone->has_rule || zone->standard_offset == 0);
}

/* Local seconds since 1970 at which a rule takes effect in a year. */
static int64_t rule_moment(const struct rule *rule, int64_t year)
{
    const int64_t first_day = gar_days_from_civil(year, 1, 1);
    int64_t day = 0;
    switch (rule->kind) {
    case RULE_DAY: day = first_day + rule->day; break;
    case RULE_JULIAN_NO_LEAP: day = first_day + rule->day - 1 + (rule->day >= 60 && gar_is_leap_year(year) ? 1 : 0); break;
    case RULE_WEEKDAY: {
        const int64_t month_start = gar_days_from_civil(year, rule->month, 1);
        const int64_t weekday = ((month_start + 4) % 7 + 7) % 7; /* 1970-01-01 was a Thursday; Sunday is 0 */
        day = month_start + (rule->day - weekday + 7) % 7 + 7 * (rule->week - 1);
        if (day >= month_start + gar_days_in_month(year, rule->month)) {
            day -= 7;
        }
        break;
    }
    }
    return day * DAY_SECONDS + rule->time;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0 ? 1 : 0);
}

static int32_t rule_offset(const struct gar_zone *zone, int64_t utc_seconds)
{
    if (!zone->has_daylight) {
        return zone->standard_offset;
    }
    const int64_t year = gar_civil_from_days(floor_div(utc_seconds + zone->standard_offset, DAY_SECONDS)).year;
    const int64_t start = rule_moment(&zone->start, year) - zone->standard_offset;
    const int64_t end = rule_moment(&zone->end, year) - zone->daylight_offset;
    const bool is_daylight = start < end ? utc_seconds >= start && utc_seconds < end
                                         : utc_seconds >= start || utc_seconds < end;
    return is_daylight ? zone->daylight_offset : zone->standard_offset;
}

int32_t gar_zone_offset_at(const struct gar_zone *zone, int64_t utc_seconds)
{
    if (zone->count == 0 || utc_seconds < zone->at[0]) {
        return zone->count == 0 && zone->has_rule ? rule_offset(zone, utc_seconds) : zone->first_offset;
    }
    if (zone->has_rule && utc_seconds >= zone->at[zone->count - 1]) {
        return rule_offset(zone, utc_seconds);
    }
    int64_t low = 0;
    int64_t high = zone->count; /* at[low] <= utc < at[high] */
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (zone->at[middle] <= utc_seconds) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return zone->offset[low];
}

int64_t gar_zone_to_utc(const struct gar_zone *zone, int64_t local_seconds)
{
    /* the offsets around the reading: a day before and a day after bracket any change */
    const int32_t before = gar_zone_offset_at(zone, local_seconds - DAY_SECONDS);
    const int32_t after = gar_zone_offset_at(zone, local_seconds + DAY_SECONDS);
    const int64_t with_before = local_seconds - before;
    if (before == after || gar_zone_offset_at(zone, with_before) == before) {
        return with_before;
    }
    const int64_t with_after = local_seconds - after;
    return gar_zone_offset_at(zone, with_after) == after ? with_after : with_before;
}
