/* SPDX-License-Identifier: Apache-2.0 */
/* Zones made by hand (rules, gaps, folds, broken files), the process's table, vectors, and known changes of the clock in the
 * system's zone files (skipped where there are none). */
#include "kernels/zone.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/calendar.h"
#include "kernels/zone_priv.h"

/* "2024-03-31 01:00:00" in seconds. */
static int64_t at(const char *text)
{
    int64_t seconds = 0;
    bool has_offset = false;
    assert_true(gar_parse_timestamp(text, (int64_t)strlen(text), 0, &seconds, &has_offset));
    return seconds;
}

static const char *name_of(const char *text)
{
    const char *name = gar_zone_intern(text, (int64_t)strlen(text), NULL);
    assert_non_null(name);
    return name;
}

/* ---- a writer of TZif files ---- */

struct writer {
    uint8_t bytes[4096];
    int64_t used;
};

static void put(struct writer *w, uint64_t value, int32_t bytes)
{
    for (int32_t i = bytes - 1; i >= 0; i--) {
        w->bytes[w->used++] = (uint8_t)(value >> (8 * i));
    }
}

static void put_header(struct writer *w, char version, uint32_t times, uint32_t types)
{
    memcpy(w->bytes + w->used, "TZif", 4);
    w->used += 4;
    put(w, (uint8_t)version, 1);
    for (int32_t i = 0; i < 15; i++) {
        put(w, 0, 1);
    }
    put(w, 0, 4); /* UT marks */
    put(w, 0, 4); /* standard marks */
    put(w, 0, 4); /* leap seconds */
    put(w, times, 4);
    put(w, types, 4);
    put(w, 4, 4); /* bytes of names */
}

static void put_body(struct writer *w, const int64_t *times, const int32_t *offsets, int32_t count,
                     int32_t time_bytes)
{
    for (int32_t i = 0; i < count; i++) {
        put(w, (uint64_t)times[i], time_bytes);
    }
    for (int32_t i = 0; i < count; i++) {
        put(w, (uint64_t)(i + 1), 1);
    }
    for (int32_t i = 0; i <= count; i++) {
        put(w, (uint32_t)offsets[i], 4);
        put(w, 0, 2);
    }
    put(w, 0x4c4d5400, 4); /* "LMT" */
}

/* A version 2 file: offsets[0], then offsets[i + 1] from times[i]; rule may be "". */
static void write_zone(struct writer *w, const int64_t *times, const int32_t *offsets,
                       int32_t count, const char *rule)
{
    static const int32_t zero = 0;
    w->used = 0;
    put_header(w, '2', 0, 1);
    put_body(w, NULL, &zero, 0, 4);
    put_header(w, '2', (uint32_t)count, (uint32_t)count + 1);
    put_body(w, times, offsets, count, 8);
    w->used += snprintf((char *)w->bytes + w->used, 256, "\n%s\n", rule);
}

static struct gar_zone *make_zone(const int64_t *times, const int32_t *offsets, int32_t count,
                                  const char *rule)
{
    struct writer w;
    struct gar_zone *zone = NULL;
    struct gar_error err;
    write_zone(&w, times, offsets, count, rule);
    if (gar_zone_parse("Test/Zone", w.bytes, w.used, &zone, &err) != GAR_OK) {
        fail_msg("%s", err.message);
    }
    return zone;
}

static struct gar_zone *rule_zone(const char *rule)
{
    static const int32_t zero = 0;
    return make_zone(NULL, &zero, 0, rule);
}

/* ---- rules ---- */

static void rules_are_read_or_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int32_t standard;
        int32_t summer; /* -1: none */
    } good[] = {
        {"UTC0", 0, -1},
        {"EST5EDT,M3.2.0,M11.1.0", -18000, -14400},
        {"<+0330>-3:30", 12600, -1},
        {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", -7200, -3600},
        {"IST-1GMT0,M10.5.0,M3.5.0/1", 3600, 0},
        {"AAA-10:20:30BBB-11:00:01,J60,300/1:02:03", 37230, 39601},
        {"XXX24YYY,0/-167,J365/+167", -86400, -82800},
    };
    for (int64_t i = 0; i < GAR_COUNT_OF(good); i++) {
        struct gar_zone_rule rule;
        const bool is_good =
            gar_zone_rule_parse(good[i].text, (int64_t)strlen(good[i].text), &rule);
        if (!is_good || rule.standard != good[i].standard ||
            rule.has_summer != (good[i].summer != -1) ||
            (rule.has_summer && rule.summer != good[i].summer)) {
            fail_msg("%s", good[i].text);
        }
    }
    static const char *const bad[] = {
        "",
        "UT0",
        "UTC",
        "<>0",
        "<AB0",
        "UTC+-1",
        "EST5EDT",
        "EST5EDT,M3.2.0",
        "EST5EDT,M3.2.0,",
        "EST5EDT,M0.2.0,M11.1.0",
        "EST5EDT,M13.2.0,M11.1.0",
        "EST5EDT,M3.6.0,M11.1.0",
        "EST5EDT,M3.0.0,M11.1.0",
        "EST5EDT,M3.2.7,M11.1.0",
        "EST5EDT,M3.2.0/168,M11.1.0",
        "EST5EDT,M3.2.0/2:60,M11.1.0",
        "EST5EDT,M3.2.0,M11.1.0x",
        "EST5EDT,J0,J365",
        "EST5EDT,J1,J366",
        "EST5EDT,0,366",
        "EST5EDT,99999999999,1",
        "EST25",
        "EST5EDT-25,0,1",
        "EST5:EDT,0,1",
        "EST999999999999999999999",
    };
    for (int64_t i = 0; i < GAR_COUNT_OF(bad); i++) {
        struct gar_zone_rule rule;
        if (gar_zone_rule_parse(bad[i], (int64_t)strlen(bad[i]), &rule)) {
            fail_msg("taken: %s", bad[i]);
        }
    }
}

/* Offsets just before and at a change. */
static void check_change(const struct gar_zone *zone, const char *utc, int32_t before,
                         int32_t after)
{
    const int64_t t = at(utc);
    int64_t from = 0;
    int64_t until = 0;
    const int32_t got_before = gar_zone_offset(zone, t - 1, &from, &until);
    if (got_before != before || until != t || from >= t) {
        fail_msg("before %s: %d, until %lld", utc, got_before, (long long)(until - t));
    }
    const int32_t got_after = gar_zone_offset(zone, t, &from, &until);
    if (got_after != after || from != t || until <= t) {
        fail_msg("at %s: %d, from %lld", utc, got_after, (long long)(from - t));
    }
}

static void rules_make_changes(void **state)
{
    (void)state;
    struct gar_zone *zone = rule_zone("CET-1CEST,M3.5.0,M10.5.0/3");
    check_change(zone, "2024-03-31 01:00:00", 3600, 7200);
    check_change(zone, "2024-10-27 01:00:00", 7200, 3600);
    check_change(zone, "1600-03-26 01:00:00", 3600, 7200);
    check_change(zone, "9999-10-31 01:00:00", 7200, 3600);
    gar_zone_free(zone);
    zone = rule_zone("NZST-12NZDT,M9.5.0,M4.1.0/3"); /* south of the equator */
    check_change(zone, "2024-04-06 14:00:00", 46800, 43200);
    check_change(zone, "2024-09-28 14:00:00", 43200, 46800);
    gar_zone_free(zone);
    zone = rule_zone("IST-1GMT0,M10.5.0,M3.5.0/1"); /* summer time that goes back */
    check_change(zone, "2024-03-31 01:00:00", 0, 3600);
    check_change(zone, "2024-10-27 01:00:00", 3600, 0);
    gar_zone_free(zone);
    zone = rule_zone("EET-2EEST,M3.4.4/50,M10.4.4/50"); /* 50 hours after a Thursday's start */
    check_change(zone, "2024-03-30 00:00:00", 7200, 10800);
    check_change(zone, "2024-10-25 23:00:00", 10800, 7200);
    gar_zone_free(zone);
    zone = rule_zone("<-02>2<-01>,M3.5.0/-1,M10.5.0/0"); /* an hour before a Sunday's start */
    check_change(zone, "2024-03-31 01:00:00", -7200, -3600);
    check_change(zone, "2024-10-27 01:00:00", -3600, -7200);
    gar_zone_free(zone);
    zone = rule_zone("AAA0BBB,J60/0,59/0"); /* 1 March to what is 29 February only in leap years */
    check_change(zone, "2023-02-28 23:00:00", 3600, 0);
    check_change(zone, "2023-03-01 00:00:00", 0, 3600);
    check_change(zone, "2024-02-28 23:00:00", 3600, 0);
    check_change(zone, "2024-03-01 00:00:00", 0, 3600);
    gar_zone_free(zone);
}

static void summer_time_may_never_end(void **state)
{
    (void)state;
    struct gar_zone *zone = rule_zone("XXX3EDT4,0/0,J365/23"); /* each end is the next start */
    int64_t until = 0;
    for (int64_t t = at("1999-12-31 00:00:00"); t < at("2030-01-01 00:00:00"); t += 1800) {
        assert_int_equal(gar_zone_offset(zone, t, NULL, &until), -4 * 3600);
        assert_true(until > t);
    }
    gar_zone_free(zone);
}

static void far_times_have_offsets(void **state)
{
    (void)state;
    struct gar_zone *zone = rule_zone("CET-1CEST,M3.5.0,M10.5.0/3");
    static const int64_t far[] = {INT64_MIN,    -GAR_ZONE_FAR - 1, -GAR_ZONE_FAR, GAR_ZONE_FAR - 1,
                                  GAR_ZONE_FAR, GAR_ZONE_FAR + 1,  INT64_MAX};
    for (int64_t i = 0; i < GAR_COUNT_OF(far); i++) {
        int64_t from = 0;
        int64_t until = 0;
        const int32_t offset = gar_zone_offset(zone, far[i], &from, &until);
        assert_true(offset == 3600 || offset == 7200);
        assert_true(from <= far[i] && (far[i] < until || until == INT64_MAX));
        (void)gar_zone_resolve(zone, far[i]);
    }
    gar_zone_free(zone);
}

/* The table written out from the rule and the rule itself agree where one hands over to the other. */
static void table_and_rule_agree(void **state)
{
    (void)state;
    static const char *const rules[] = {
        "CET-1CEST,M3.5.0,M10.5.0/3", "NZST-12NZDT,M9.5.0,M4.1.0/3", "XXX3EDT4,0/0,J365/23",
        "AAA0BBB,J1/-167,J365/167",   "AAA0BBB,J365/167,J1/-167",    "AAA0BBB-24,J365/167,J365/160",
    };
    static const int32_t offsets[] = {0, 1800};
    for (int64_t i = 0; i < GAR_COUNT_OF(rules); i++) {
        const int64_t start = at("1999-07-01 00:00:00");
        struct gar_zone *table = make_zone(&start, offsets, 1, rules[i]);
        struct gar_zone *rule = rule_zone(rules[i]);
        int64_t until = 0;
        for (int64_t t = start; t < at("2130-01-01 00:00:00"); t = until) {
            const int32_t expected = gar_zone_offset(rule, t, NULL, &until);
            if (gar_zone_offset(table, t, NULL, NULL) != expected ||
                gar_zone_offset(table, until - 1, NULL, NULL) != expected) {
                fail_msg("%s at %lld", rules[i], (long long)t);
            }
        }
        gar_zone_free(table);
        gar_zone_free(rule);
    }
}

/* ---- local clocks ---- */

static void check_local(const struct gar_zone *zone, const char *local, enum gar_zone_kind kind,
                        const char *earlier, const char *later)
{
    const struct gar_zone_instants got = gar_zone_resolve(zone, at(local));
    if (got.kind != kind || got.earlier != at(earlier) || got.later != at(later)) {
        fail_msg("%s: kind %d, earlier %+lld, later %+lld", local, (int)got.kind,
                 (long long)(got.earlier - at(earlier)), (long long)(got.later - at(later)));
    }
    assert_true(gar_zone_to_utc(zone, at(local)) ==
                (kind == GAR_ZONE_GAP ? got.later : got.earlier));
}

static void gaps_and_folds_are_settled(void **state)
{
    (void)state;
    struct gar_zone *zone = rule_zone("CET-1CEST,M3.5.0,M10.5.0/3");
    check_local(zone, "2024-03-31 01:59:59", GAR_ZONE_ONE, "2024-03-31 00:59:59",
                "2024-03-31 00:59:59");
    check_local(zone, "2024-03-31 02:00:00", GAR_ZONE_GAP, "2024-03-31 00:00:00",
                "2024-03-31 01:00:00");
    check_local(zone, "2024-03-31 02:59:59", GAR_ZONE_GAP, "2024-03-31 00:59:59",
                "2024-03-31 01:59:59");
    check_local(zone, "2024-03-31 03:00:00", GAR_ZONE_ONE, "2024-03-31 01:00:00",
                "2024-03-31 01:00:00");
    check_local(zone, "2024-10-27 01:59:59", GAR_ZONE_ONE, "2024-10-26 23:59:59",
                "2024-10-26 23:59:59");
    check_local(zone, "2024-10-27 02:00:00", GAR_ZONE_FOLD, "2024-10-27 00:00:00",
                "2024-10-27 01:00:00");
    check_local(zone, "2024-10-27 02:59:59", GAR_ZONE_FOLD, "2024-10-27 00:59:59",
                "2024-10-27 01:59:59");
    check_local(zone, "2024-10-27 03:00:00", GAR_ZONE_ONE, "2024-10-27 02:00:00",
                "2024-10-27 02:00:00");
    gar_zone_free(zone);
    /* A whole day left out, then two changes an hour apart, back and forth. */
    const int64_t times[] = {at("2011-12-30 10:00:00"), at("2015-01-01 00:00:00"),
                             at("2015-01-01 01:00:00")};
    static const int32_t offsets[] = {-36000, 50400, 43200, 50400};
    zone = make_zone(times, offsets, 3, "");
    check_local(zone, "2011-12-29 23:59:59", GAR_ZONE_ONE, "2011-12-30 09:59:59",
                "2011-12-30 09:59:59");
    check_local(zone, "2011-12-30 12:00:00", GAR_ZONE_GAP, "2011-12-29 22:00:00",
                "2011-12-30 22:00:00");
    check_local(zone, "2011-12-31 00:00:00", GAR_ZONE_ONE, "2011-12-30 10:00:00",
                "2011-12-30 10:00:00");
    check_local(zone, "2015-01-01 12:30:00", GAR_ZONE_FOLD, "2014-12-31 22:30:00",
                "2015-01-01 00:30:00");
    check_local(zone, "2015-01-01 13:30:00", GAR_ZONE_ONE, "2014-12-31 23:30:00",
                "2014-12-31 23:30:00");
    check_local(zone, "2015-01-01 14:30:00", GAR_ZONE_GAP, "2015-01-01 00:30:00",
                "2015-01-01 02:30:00");
    check_local(zone, "2015-01-01 15:00:00", GAR_ZONE_ONE, "2015-01-01 01:00:00",
                "2015-01-01 01:00:00");
    gar_zone_free(zone);
}

/* ---- files ---- */

static void versions_and_footers(void **state)
{
    (void)state;
    const int64_t times[] = {at("1950-01-01 00:00:00"), at("1960-01-01 00:00:00")};
    static const int32_t offsets[] = {100, 200, 300};
    struct gar_zone *zone = make_zone(times, offsets, 2, "");
    int64_t from = 0;
    int64_t until = 0;
    assert_int_equal(gar_zone_offset(zone, INT64_MIN, &from, &until), 100);
    assert_true(from == INT64_MIN && until == times[0]);
    assert_int_equal(gar_zone_offset(zone, times[1] - 1, NULL, NULL), 200);
    assert_int_equal(gar_zone_offset(zone, INT64_MAX, &from, &until), 300);
    assert_true(from == times[1] && until == INT64_MAX);
    assert_false(gar_zone_is_fixed(zone));
    gar_zone_free(zone);
    /* The footer governs from the last transition on, or always without one. */
    zone = make_zone(times, offsets, 2, "<X1>-1");
    assert_int_equal(gar_zone_offset(zone, times[1], NULL, NULL), 3600);
    assert_int_equal(gar_zone_offset(zone, times[1] - 1, NULL, NULL), 200);
    gar_zone_free(zone);
    zone = rule_zone("<X1>-1");
    assert_int_equal(gar_zone_offset(zone, INT64_MIN, &from, &until), 3600);
    assert_true(gar_zone_is_fixed(zone) && from == INT64_MIN && until == INT64_MAX);
    gar_zone_free(zone);
    /* Version 1: 32-bit instants, no footer. */
    struct writer w = {.used = 0};
    put_header(&w, 0, 2, 3);
    put_body(&w, times, offsets, 2, 4);
    assert_int_equal(gar_zone_parse("V1", w.bytes, w.used, &zone, NULL), GAR_OK);
    assert_int_equal(gar_zone_offset(zone, times[0], NULL, NULL), 200);
    assert_int_equal(gar_zone_offset(zone, times[1], &from, &until), 300);
    assert_true(until == INT64_MAX);
    gar_zone_free(zone);
}

static void refuses(const struct writer *w, enum gar_status status, const char *part)
{
    struct gar_zone *zone = NULL;
    struct gar_error err;
    const enum gar_status got = gar_zone_parse("Test/Broken", w->bytes, w->used, &zone, &err);
    if (got != status || strstr(err.message, part) == NULL ||
        strstr(err.message, "Test/Broken") == NULL) {
        fail_msg("%d '%s', wanted '%s'", (int)got, got < 0 ? err.message : "", part);
    }
}

static void broken_files_are_refused(void **state)
{
    (void)state;
    const int64_t times[] = {1000, 2000};
    static const int32_t offsets[] = {100, 200, 300};
    enum { BLOCK = 44 + 6 + 4, COUNTS = BLOCK + 20, TIMES = BLOCK + 44, INDEXES = TIMES + 16 };
    struct writer whole;
    write_zone(&whole, times, offsets, 2, "CET-1CEST,M3.5.0,M10.5.0/3");
    /* Cut anywhere it fails. */
    struct writer w = whole;
    for (w.used = 0; w.used < whole.used; w.used++) {
        refuses(&w, GAR_ERR_FORMAT, "not a valid TZif file");
    }
    /* Each count too great, in either block. */
    for (int32_t i = 0; i < 6; i++) {
        w = whole;
        memset(w.bytes + 20 + 4 * i, 0xff, 4);
        refuses(&w, GAR_ERR_FORMAT, "counts more than it holds");
        w = whole;
        memset(w.bytes + COUNTS + 4 * i, 0xff, 4);
        refuses(&w, GAR_ERR_FORMAT, "counts more than it holds");
    }
    w = whole;
    w.bytes[0] = 't';
    refuses(&w, GAR_ERR_FORMAT, "does not start with 'TZif'");
    w = whole;
    w.bytes[4] = '1';
    refuses(&w, GAR_ERR_FORMAT, "version");
    w = whole;
    w.bytes[INDEXES] = 3;
    refuses(&w, GAR_ERR_FORMAT, "is not there");
    w = whole;
    memcpy(w.bytes + TIMES, w.bytes + TIMES + 8, 8);
    refuses(&w, GAR_ERR_FORMAT, "not in order");
    w = whole;
    w.bytes[TIMES + 8] = 0x7f;
    refuses(&w, GAR_ERR_FORMAT, "beyond all time");
    memset(w.bytes + TIMES + 9, 0xff, 7);
    refuses(&w, GAR_ERR_FORMAT, "beyond all time");
    w = whole;
    w.bytes[INDEXES + 2] = 0x80;
    refuses(&w, GAR_ERR_FORMAT, "26 hours");
    write_zone(&w, times, offsets, 2, "CET-1CEST");
    refuses(&w, GAR_ERR_FORMAT, "footer");
    /* No kinds of local time; leap seconds. */
    w.used = 0;
    put_header(&w, 0, 0, 0);
    put(&w, 0, 4);
    refuses(&w, GAR_ERR_FORMAT, "1 to 256");
    w.used = 0;
    put_header(&w, 0, 0, 1);
    w.bytes[31] = 1;
    memset(w.bytes + w.used, 0, 18);
    w.used += 18;
    refuses(&w, GAR_ERR_UNSUPPORTED, "leap seconds");
    w.used = 0;
    refuses(&w, GAR_ERR_FORMAT, "ends in a header");
}

static void no_memory_is_an_error(void **state)
{
    (void)state;
    struct writer w;
    struct gar_zone *zone = NULL;
    static const int32_t zero = 0;
    write_zone(&w, NULL, &zero, 0, "UTC0");
    const int64_t blocks = gar_alloc_live_blocks();
    (void)gar_alloc_fail_at(1, false);
    assert_int_equal(gar_zone_parse("X", w.bytes, w.used, &zone, NULL), GAR_ERR_NOMEM);
    (void)gar_alloc_fail_at(1, false);
    assert_int_equal(gar_zone_fixed("UTC", &zone, NULL), GAR_ERR_NOMEM);
    (void)gar_alloc_fail_at(0, false);
    assert_int_equal(gar_alloc_live_blocks(), blocks);
}

static void fixed_zones_need_no_file(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int32_t offset;
    } good[] = {
        {"UTC", 0},        {"Z", 0},           {"Etc/UTC", 0},    {"GMT", 0},
        {"+01:00", 3600},  {"-0530", -19800},  {"+01", 3600},     {"-00:00", 0},
        {"+23:59", 86340}, {"-23:59", -86340}, {"+05:45", 20700},
    };
    for (int64_t i = 0; i < GAR_COUNT_OF(good); i++) {
        const struct gar_zone *zone = NULL;
        assert_int_equal(gar_zone_find(name_of(good[i].name), &zone, NULL), GAR_OK);
        assert_int_equal(gar_zone_offset_at(zone, 1234567890), good[i].offset);
        assert_true(gar_zone_is_utc(zone) == (good[i].offset == 0));
        assert_true(gar_zone_is_fixed(zone));
        const int64_t local = at("2024-03-31 02:00:00");
        const struct gar_zone_instants found = gar_zone_resolve(zone, local);
        assert_int_equal(found.kind, GAR_ZONE_ONE);
        assert_true(found.earlier == local - good[i].offset && found.later == found.earlier);
    }
    static const char *const bad[] = {"+24:00",    "+01:60", "+1",     "+1:00",   "+01:0",
                                      "+01:00:00", "-",      "+0a:00", "+010000", "+01-00"};
    for (int64_t i = 0; i < GAR_COUNT_OF(bad); i++) {
        const struct gar_zone *zone = NULL;
        struct gar_error err;
        if (gar_zone_find(name_of(bad[i]), &zone, &err) != GAR_ERR_VALUE ||
            strstr(err.message, bad[i]) == NULL) {
            fail_msg("%s", bad[i]);
        }
    }
}

/* ---- the process's table ---- */

static int loads; /* atomic */

static enum gar_status test_loader(const char *name, uint8_t **out_data, int64_t *out_bytes,
                                   struct gar_error *err)
{
    (void)__atomic_add_fetch(&loads, 1, __ATOMIC_RELAXED);
    if (strncmp(name, "Test/", 5) != 0) {
        return gar_error_set(err, GAR_ERR_VALUE, "unknown time zone '%s'", name);
    }
    struct writer w;
    static const int32_t zero = 0;
    write_zone(&w, NULL, &zero, 0, "CET-1CEST,M3.5.0,M10.5.0/3");
    *out_data = gar_malloc(w.used);
    if (*out_data == NULL) {
        return gar_error_nomem(err, w.used);
    }
    *out_bytes = strcmp(name, "Test/Cut") == 0 ? 60 : w.used;
    memcpy(*out_data, w.bytes, (size_t)w.used);
    return GAR_OK;
}

static void zones_are_found_once(void **state)
{
    (void)state;
    const struct gar_zone *zone = NULL;
    const struct gar_zone *again = NULL;
    struct gar_error err;
    gar_zone_set_loader(NULL);
    assert_int_equal(gar_zone_find(name_of("Test/One"), &zone, &err), GAR_ERR_UNSUPPORTED);
    gar_zone_set_loader(test_loader);
    loads = 0;
    assert_int_equal(gar_zone_find(name_of("Test/One"), &zone, &err), GAR_OK);
    assert_int_equal(gar_zone_find(name_of("Test/One"), &again, &err), GAR_OK);
    assert_ptr_equal(zone, again);
    assert_int_equal(loads, 1);
    const int64_t blocks = gar_alloc_live_blocks();
    for (int32_t i = 0; i < 2; i++) { /* not remembered: tzdata may come later */
        assert_int_equal(gar_zone_find(name_of("Mars/Olympus"), &again, &err), GAR_ERR_VALUE);
        assert_int_equal(gar_zone_find(name_of("Test/Cut"), &again, &err), GAR_ERR_FORMAT);
    }
    assert_int_equal(loads, 5);
    assert_int_equal(gar_alloc_live_blocks(), blocks);
    gar_zone_set_loader(NULL);
}

enum { THREADS = 4, NAMES = 200 };

static void *find_all(void *argument)
{
    const struct gar_zone **found = argument;
    for (int32_t i = 0; i < NAMES; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "Test/%d", i);
        const char *name = gar_zone_intern(text, (int64_t)strlen(text), NULL);
        if (name == NULL || gar_zone_find(name, &found[i], NULL) != GAR_OK) {
            found[i] = NULL;
        }
    }
    return NULL;
}

static void threads_find_the_same_zones(void **state)
{
    (void)state;
    static const struct gar_zone *found[THREADS][NAMES];
    pthread_t threads[THREADS];
    gar_zone_set_loader(test_loader);
    for (int32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, find_all, found[i]), 0);
    }
    for (int32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    for (int32_t k = 0; k < NAMES; k++) {
        assert_non_null(found[0][k]);
        for (int32_t i = 1; i < THREADS; i++) {
            assert_ptr_equal(found[0][k], found[i][k]);
        }
    }
    gar_zone_set_loader(NULL);
}

/* ---- vectors ---- */

enum { ROWS = 1500 };

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 20;
}

static void vectors_do_what_lookups_do(void **state)
{
    (void)state;
    struct gar_zone *zone = rule_zone("CET-1CEST,M3.5.0,M10.5.0/3");
    static int64_t values[ROWS];
    static int64_t out[ROWS];
    static int64_t back[ROWS];
    static const int64_t ticks_of[] = {1, 1000, 1000000, 1000000000};
    uint64_t seed = 7;
    for (int32_t unit = GAR_SECOND; unit <= GAR_NANO; unit++) {
        const int64_t ticks = ticks_of[unit];
        const int64_t start = at("1969-06-01 00:00:00");
        for (int32_t i = 0; i < ROWS; i++) { /* steps of up to six hours, then anywhere */
            const int64_t seconds =
                i < ROWS / 2 ? start + (int64_t)i * 1800 + (int64_t)(next_random(&seed) % 21600)
                             : (int64_t)(next_random(&seed) % 7000000000) - 3000000000;
            values[i] = seconds * ticks + (int64_t)(next_random(&seed) % (uint64_t)ticks);
        }
        assert_false(gar_zone_local_vector(values, ROWS, (enum gar_time_unit)unit, zone, out));
        for (int32_t i = 0; i < ROWS; i++) {
            const int64_t seconds = values[i] / ticks - (values[i] % ticks < 0);
            const int64_t offset = gar_zone_offset(zone, seconds, NULL, NULL);
            assert_true(out[i] == values[i] + offset * ticks);
        }
        /* Back again: the same instants when told which, and the first of two when not. */
        assert_false(gar_zone_utc_vector(out, ROWS, (enum gar_time_unit)unit, zone, values,
                                         GAR_ZONE_GAP_PASSED, back));
        assert_memory_equal(back, values, sizeof values);
        assert_false(gar_zone_utc_vector(out, ROWS, (enum gar_time_unit)unit, zone, NULL,
                                         GAR_ZONE_GAP_PASSED, back));
        for (int32_t i = 0; i < ROWS; i++) {
            const int64_t local = out[i] / ticks - (out[i] % ticks < 0);
            const int64_t utc = gar_zone_to_utc(zone, local);
            assert_true(back[i] == out[i] + (utc - local) * ticks);
        }
        /* In place. */
        assert_false(gar_zone_local_vector(values, ROWS, (enum gar_time_unit)unit, zone, values));
        assert_memory_equal(values, out, sizeof values);
    }
    gar_zone_free(zone);
}

static void folds_follow_the_likeness(void **state)
{
    (void)state;
    struct gar_zone *zone = rule_zone("CET-1CEST,M3.5.0,M10.5.0/3");
    const int64_t local[] = {at("2024-10-27 02:30:00"), at("2024-10-27 02:30:00"),
                             at("2024-03-31 02:30:00"), at("2024-10-27 03:30:00")};
    const int64_t like[] = {at("2024-07-01 00:00:00"), at("2024-12-01 00:00:00"),
                            at("2024-12-01 00:00:00"), at("2024-07-01 00:00:00")};
    int64_t out[4] = {0};
    assert_false(gar_zone_utc_vector(local, 4, GAR_SECOND, zone, like, GAR_ZONE_GAP_PASSED, out));
    assert_true(out[0] == at("2024-10-27 00:30:00"));
    assert_true(out[1] == at("2024-10-27 01:30:00"));
    assert_true(out[2] == at("2024-03-31 01:30:00"));
    assert_true(out[3] == at("2024-10-27 02:30:00"));
    gar_zone_free(zone);
}

static void starts_in_gaps_are_the_change(void **state)
{
    (void)state;
    struct gar_zone *zone = rule_zone("CET-1CEST,M3.5.0,M10.5.0/3");
    static const int64_t ticks_of[] = {1, 1000, 1000000, 1000000000};
    for (int32_t unit = GAR_SECOND; unit <= GAR_NANO; unit++) {
        const int64_t ticks = ticks_of[unit];
        const int64_t local[] = {at("2024-03-31 02:30:00") * ticks + ticks / 2,
                                 at("2024-03-31 03:00:00") * ticks};
        int64_t out[2] = {0};
        assert_false(gar_zone_utc_vector(local, 2, (enum gar_time_unit)unit, zone, NULL,
                                         GAR_ZONE_GAP_CHANGE, out));
        assert_true(out[0] == at("2024-03-31 01:00:00") * ticks && out[1] == out[0]);
        assert_false(gar_zone_utc_vector(local, 1, (enum gar_time_unit)unit, zone, NULL,
                                         GAR_ZONE_GAP_PASSED, out));
        assert_true(out[0] == at("2024-03-31 01:30:00") * ticks + ticks / 2);
    }
    gar_zone_free(zone);
}

static void overflow_is_told(void **state)
{
    (void)state;
    struct gar_zone *east = NULL;
    struct gar_zone *west = NULL;
    assert_int_equal(gar_zone_fixed("+01:00", &east, NULL), GAR_OK);
    assert_int_equal(gar_zone_fixed("-01:00", &west, NULL), GAR_OK);
    struct gar_zone *rule = rule_zone("CET-1CEST,M3.5.0,M10.5.0/3");
    const int64_t greatest = INT64_MAX;
    const int64_t least = INT64_MIN;
    int64_t out = 0;
    for (int32_t unit = GAR_SECOND; unit <= GAR_NANO; unit++) {
        const enum gar_time_unit u = (enum gar_time_unit)unit;
        assert_true(gar_zone_local_vector(&greatest, 1, u, east, &out));
        assert_false(gar_zone_local_vector(&least, 1, u, east, &out));
        assert_true(gar_zone_local_vector(&least, 1, u, west, &out));
        assert_true(gar_zone_utc_vector(&greatest, 1, u, west, NULL, GAR_ZONE_GAP_PASSED, &out));
        assert_true(gar_zone_utc_vector(&least, 1, u, east, NULL, GAR_ZONE_GAP_PASSED, &out));
        assert_false(gar_zone_utc_vector(&least, 1, u, west, NULL, GAR_ZONE_GAP_PASSED, &out));
        assert_true(gar_zone_local_vector(&greatest, 1, u, rule, &out));
        assert_true(gar_zone_utc_vector(&least, 1, u, rule, &least, GAR_ZONE_GAP_PASSED, &out));
    }
    gar_zone_free(east);
    gar_zone_free(west);
    gar_zone_free(rule);
}

/* ---- the world ---- */

static enum gar_status system_loader(const char *name, uint8_t **out_data, int64_t *out_bytes,
                                     struct gar_error *err)
{
    char path[512];
    (void)snprintf(path, sizeof path, "/usr/share/zoneinfo/%s", name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return gar_error_set(err, GAR_ERR_VALUE, "no %s", path);
    }
    enum { ROOM = 1 << 16 };
    *out_data = gar_malloc(ROOM);
    *out_bytes = *out_data == NULL ? 0 : (int64_t)fread(*out_data, 1, ROOM, file);
    (void)fclose(file);
    return GAR_OK;
}

struct change {
    const char *zone;
    const char *utc;
    int32_t before;
    int32_t after;
};

/* From the history of each place; offsets in seconds. */
static const struct change changes[] = {
    {"Europe/Berlin", "1980-04-06 01:00:00", 3600, 7200},
    {"Europe/Berlin", "1945-05-24 00:00:00", 7200, 10800},
    {"Europe/Berlin", "2024-03-31 01:00:00", 3600, 7200},
    {"Europe/Berlin", "2037-10-25 01:00:00", 7200, 3600},
    {"Europe/Berlin", "2038-03-28 01:00:00", 3600, 7200},
    {"Europe/Berlin", "2100-10-31 01:00:00", 7200, 3600},
    {"Europe/London", "1968-02-18 02:00:00", 0, 3600},
    {"Europe/London", "1971-10-31 02:00:00", 3600, 0},
    {"Europe/Dublin", "2024-03-31 01:00:00", 0, 3600},
    {"Europe/Dublin", "2090-10-29 01:00:00", 3600, 0},
    {"Europe/Moscow", "2011-03-26 23:00:00", 10800, 14400},
    {"Europe/Moscow", "2014-10-25 22:00:00", 14400, 10800},
    {"Africa/Casablanca", "2019-05-05 02:00:00", 3600, 0},
    {"America/New_York", "1883-11-18 17:00:00", -17762, -18000},
    {"America/New_York", "1974-01-06 07:00:00", -18000, -14400},
    {"America/New_York", "2007-03-11 07:00:00", -18000, -14400},
    {"America/New_York", "2050-11-06 06:00:00", -14400, -18000},
    {"America/Sao_Paulo", "2018-11-04 03:00:00", -10800, -7200},
    {"America/Sao_Paulo", "2019-02-17 02:00:00", -7200, -10800},
    {"America/Caracas", "2007-12-09 07:00:00", -14400, -16200},
    {"America/St_Johns", "2000-04-02 03:31:00", -12600, -9000},
    {"America/Nuuk", "2023-03-26 01:00:00", -10800, -7200},
    {"Asia/Kolkata", "1945-10-14 17:30:00", 23400, 19800},
    {"Asia/Kathmandu", "1985-12-31 18:30:00", 19800, 20700},
    {"Asia/Tokyo", "1951-09-08 15:00:00", 36000, 32400},
    {"Asia/Pyongyang", "2018-05-04 15:00:00", 30600, 32400},
    {"Asia/Tehran", "2022-09-21 19:30:00", 16200, 12600},
    {"Australia/Lord_Howe", "2024-04-06 15:00:00", 39600, 37800},
    {"Australia/Lord_Howe", "2060-10-02 15:30:00", 37800, 39600},
    {"Pacific/Apia", "2011-12-30 10:00:00", -36000, 50400},
    {"Pacific/Kiritimati", "1994-12-31 10:00:00", -36000, 50400},
    {"Africa/Monrovia", "1972-01-07 00:44:30", -2670, 0},
    {"Antarctica/Troll", "2024-03-31 01:00:00", 0, 7200},
};

static void known_changes_of_the_clock(void **state)
{
    (void)state;
    FILE *file = fopen("/usr/share/zoneinfo/Europe/Berlin", "rb");
    if (file == NULL) {
        print_message("skipped: no zone files in /usr/share/zoneinfo; install tzdata\n");
        skip();
    }
    (void)fclose(file);
    gar_zone_set_loader(system_loader);
    for (int64_t i = 0; i < GAR_COUNT_OF(changes); i++) {
        const struct change *c = &changes[i];
        const struct gar_zone *zone = NULL;
        struct gar_error err;
        if (gar_zone_find(name_of(c->zone), &zone, &err) != GAR_OK) {
            fail_msg("%s", err.message);
        }
        const int32_t before = gar_zone_offset(zone, at(c->utc) - 1, NULL, NULL);
        const int32_t after = gar_zone_offset(zone, at(c->utc), NULL, NULL);
        if (before != c->before || after != c->after) {
            fail_msg("%s at %s: %d to %d", c->zone, c->utc, before, after);
        }
    }
    gar_zone_set_loader(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_are_read_or_refused),
        cmocka_unit_test(rules_make_changes),
        cmocka_unit_test(summer_time_may_never_end),
        cmocka_unit_test(far_times_have_offsets),
        cmocka_unit_test(table_and_rule_agree),
        cmocka_unit_test(gaps_and_folds_are_settled),
        cmocka_unit_test(versions_and_footers),
        cmocka_unit_test(broken_files_are_refused),
        cmocka_unit_test(no_memory_is_an_error),
        cmocka_unit_test(fixed_zones_need_no_file),
        cmocka_unit_test(zones_are_found_once),
        cmocka_unit_test(threads_find_the_same_zones),
        cmocka_unit_test(vectors_do_what_lookups_do),
        cmocka_unit_test(folds_follow_the_likeness),
        cmocka_unit_test(starts_in_gaps_are_the_change),
        cmocka_unit_test(overflow_is_told),
        cmocka_unit_test(known_changes_of_the_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
