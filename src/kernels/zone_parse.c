/* SPDX-License-Identifier: Apache-2.0 */
/* Reading TZif files (RFC 9636) of any version, and the names of fixed zones.
 *
 * Version 1 has one block of 32-bit instants. Later versions have that block, which is stepped over, a second one of
 * 64-bit instants, and a footer with the rule for the time after the last instant. Only offsets are kept: changes of name or of
 * the summer-time mark alone are left out. The rule is written out as instants up to the year 2100, so that nearly all lookups
 * are one binary search. */
#include <string.h>

#include "base/alloc.h"
#include "kernels/zone_priv.h"

enum {
    HEADER_BYTES = 44,
    TYPE_BYTES = 6,
    TRANSITIONS_MAX = 4096, /* the files of the world have up to 250 */
    TYPES_MAX = 256,
    RULE_YEAR_FIRST = 1800, /* rules that start in these years are written out */
    RULE_YEAR_END = 2101,
    RULE_EVENTS_MAX = 2 * (RULE_YEAR_END - RULE_YEAR_FIRST),
};

/* A block's header and where its parts are. */
struct block {
    int64_t time_bytes; /* of one instant: 4 or 8 */
    int64_t leap_count;
    int64_t time_count;
    int64_t type_count;
    int64_t bytes; /* of the body */
    const uint8_t *times;
    const uint8_t *indexes;
    const uint8_t *types;
};

struct input {
    const char *name; /* for messages */
    const uint8_t *at;
    int64_t left;
};

static enum gar_status broken(const struct input *in, struct gar_error *err, const char *what)
{
    char shown[160];
    return gar_error_set(err, GAR_ERR_FORMAT,
                         "time zone '%s': its file is not a valid TZif file: %s; reinstall tzdata",
                         gar_error_quote(in->name, (int64_t)strlen(in->name), shown, sizeof shown),
                         what);
}

static uint32_t load_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

static int32_t load_i32(const uint8_t *p)
{
    return (int32_t)load_u32(p);
}

static int64_t load_i64(const uint8_t *p)
{
    return (int64_t)((uint64_t)load_u32(p) << 32 | load_u32(p + 4));
}

/* Reads the header at the input's place and steps over the block; every part is there. */
static enum gar_status take_block(struct input *in, int64_t time_bytes, uint8_t *out_version,
                                  struct block *out, struct gar_error *err)
{
    if (in->left < HEADER_BYTES) {
        return broken(in, err, "it ends in a header");
    }
    if (memcmp(in->at, "TZif", 4) != 0) {
        return broken(in, err, "it does not start with 'TZif'");
    }
    *out_version = in->at[4];
    const uint8_t *counts = in->at + 20;
    const int64_t ut_count = load_u32(counts);
    const int64_t standard_count = load_u32(counts + 4);
    *out = (struct block){
        .time_bytes = time_bytes,
        .leap_count = load_u32(counts + 8),
        .time_count = load_u32(counts + 12),
        .type_count = load_u32(counts + 16),
        .times = in->at + HEADER_BYTES,
    };
    const int64_t name_bytes = load_u32(counts + 20);
    out->bytes = out->time_count * (time_bytes + 1) + out->type_count * TYPE_BYTES + name_bytes +
                 out->leap_count * (time_bytes + 4) + standard_count + ut_count;
    if (out->bytes > in->left - HEADER_BYTES) {
        return broken(in, err, "it counts more than it holds");
    }
    out->indexes = out->times + out->time_count * time_bytes;
    out->types = out->indexes + out->time_count;
    in->at += HEADER_BYTES + out->bytes;
    in->left -= HEADER_BYTES + out->bytes;
    return GAR_OK;
}

/* The rule between two newlines; *out_has_rule false when it is empty. */
static enum gar_status take_footer(struct input *in, struct gar_zone_rule *out, bool *out_has_rule,
                                   struct gar_error *err)
{
    if (in->left < 2 || in->at[0] != '\n') {
        return broken(in, err, "its footer is missing");
    }
    const char *text = (const char *)in->at + 1;
    const char *end = memchr(text, '\n', (size_t)(in->left - 1));
    if (end == NULL) {
        return broken(in, err, "it ends in its footer");
    }
    *out_has_rule = end > text;
    if (*out_has_rule && !gar_zone_rule_parse(text, end - text, out)) {
        return broken(in, err, "the rule in its footer cannot be read");
    }
    return GAR_OK;
}

/* A zone with room for so many transitions, in one piece of memory. */
static struct gar_zone *zone_new(int64_t room, int64_t **out_at, int32_t **out_offsets)
{
    const int64_t head = (int64_t)sizeof(struct gar_zone);
    struct gar_zone *zone = gar_calloc(1, head + room * 8 + (room + 1) * 4);
    if (zone == NULL) {
        return NULL;
    }
    *out_at = (int64_t *)(void *)((char *)zone + head);
    *out_offsets = (int32_t *)(void *)((char *)zone + head + room * 8);
    zone->at = *out_at;
    zone->offsets = *out_offsets;
    zone->rule_from = INT64_MIN;
    return zone;
}

/* Transitions being written. */
struct table {
    struct gar_zone *zone;
    int64_t *at;
    int32_t *offsets;
};

static void append(struct table *table, int64_t at, int32_t offset)
{
    const int64_t n = table->zone->count;
    if (table->offsets[n] != offset) {
        table->at[n] = at;
        table->offsets[n + 1] = offset;
        table->zone->count = n + 1;
    }
}

static enum gar_status check_block(const struct input *in, const struct block *block,
                                   struct gar_error *err)
{
    if (block->leap_count > 0) {
        char shown[160];
        return gar_error_set(
            err, GAR_ERR_UNSUPPORTED,
            "time zone '%s' counts leap seconds, which timestamps do not; take the zone without "
            "'right/'",
            gar_error_quote(in->name, (int64_t)strlen(in->name), shown, sizeof shown));
    }
    if (block->type_count < 1 || block->type_count > TYPES_MAX) {
        return broken(in, err, "it must have 1 to 256 kinds of local time");
    }
    if (block->time_count > TRANSITIONS_MAX) {
        return broken(in, err, "it has more than 4,096 transitions");
    }
    for (int64_t i = 0; i < block->type_count; i++) {
        const int32_t offset = load_i32(block->types + i * TYPE_BYTES);
        if (offset < -GAR_ZONE_OFFSET_MAX || offset > GAR_ZONE_OFFSET_MAX) {
            return broken(in, err, "an offset is more than 26 hours");
        }
    }
    return GAR_OK;
}

static enum gar_status read_transitions(const struct input *in, const struct block *block,
                                        struct table *table, struct gar_error *err)
{
    table->offsets[0] = load_i32(block->types);
    int64_t last = INT64_MIN;
    for (int64_t i = 0; i < block->time_count; i++) {
        const uint8_t *p = block->times + i * block->time_bytes;
        const int64_t raw = block->time_bytes == 8 ? load_i64(p) : load_i32(p);
        const int64_t at =
            gar_max_i64(raw, -GAR_ZONE_FAR); /* the beginning of time, in some files */
        if (at <= last) {
            return broken(in, err, "its transitions are not in order");
        }
        if (at > GAR_ZONE_FAR) {
            return broken(in, err, "a transition is beyond all time");
        }
        if (block->indexes[i] >= block->type_count) {
            return broken(in, err, "a transition leads to a kind of local time that is not there");
        }
        append(table, at, load_i32(block->types + block->indexes[i] * TYPE_BYTES));
        last = at;
    }
    return GAR_OK;
}

/* How many years of the rule's changes are written out behind the last transition, from the year before it on. */
static int32_t years_written(const struct gar_zone_rule *rule, int64_t from)
{
    if (!rule->has_summer || from == INT64_MIN) {
        return 0;
    }
    const int64_t year = gar_zone_year(from, rule->standard);
    return year < RULE_YEAR_FIRST + 2 || year >= RULE_YEAR_END
               ? 0
               : (int32_t)(RULE_YEAR_END - year) + 1;
}

/* What holds from the last transition on. `from`: that transition, or INT64_MIN when there is none. */
static void apply_rule(struct table *table, const struct gar_zone_rule *rule, int64_t from)
{
    struct gar_zone *zone = table->zone;
    if (!rule->has_summer) {
        if (from == INT64_MIN) {
            table->offsets[0] = rule->standard;
        } else {
            append(table, from, rule->standard);
        }
        return;
    }
    zone->rule = *rule;
    zone->has_rule = true;
    zone->rule_from = from;
    const int32_t years = years_written(rule, from);
    if (years == 0) {
        return;
    }
    append(table, from, gar_zone_rule_span(rule, from).offset);
    struct gar_zone_event events[RULE_EVENTS_MAX];
    gar_zone_rule_events(rule, gar_zone_year(from, rule->standard) - 1, years, events);
    /* The last year's changes may lie behind the first ones of the year that follows: they are the rule's. */
    for (int32_t i = 0; i < 2 * years - 4; i++) {
        if (events[i].at > from) {
            append(table, events[i].at, events[i].offset);
            zone->rule_from = events[i].at;
        }
    }
}

enum gar_status gar_zone_parse(const char *name, const uint8_t *data, int64_t bytes,
                               struct gar_zone **out, struct gar_error *err)
{
    struct input in = {.name = name, .at = data, .left = bytes};
    struct block block;
    uint8_t version = 0;
    struct gar_zone_rule rule = {0};
    bool has_rule = false;
    GAR_TRY(take_block(&in, 4, &version, &block, err));
    if (version != 0) {
        if (version < '2') {
            return broken(&in, err, "its version is unknown");
        }
        GAR_TRY(take_block(&in, 8, &version, &block, err));
        GAR_TRY(take_footer(&in, &rule, &has_rule, err));
    }
    GAR_TRY(check_block(&in, &block, err));
    const int64_t n = block.time_count;
    int64_t last = INT64_MIN;
    if (has_rule && n > 0) { /* not checked yet: only its year is looked at before */
        last = load_i64(block.times + (n - 1) * 8);
        last = gar_max_i64(-GAR_ZONE_FAR, gar_min_i64(last, GAR_ZONE_FAR));
    }
    struct table table = {0};
    const int64_t room = n + 1 + 2 * (int64_t)years_written(&rule, last);
    table.zone = zone_new(room, &table.at, &table.offsets);
    if (table.zone == NULL) {
        return gar_error_nomem(err, room * 12);
    }
    const enum gar_status status = read_transitions(&in, &block, &table, err);
    if (status != GAR_OK) {
        gar_zone_free(table.zone);
        return status;
    }
    if (has_rule) {
        apply_rule(&table, &rule, last);
    }
    *out = table.zone;
    return GAR_OK;
}

void gar_zone_free(struct gar_zone *zone)
{
    gar_free(zone);
}

/* ---- fixed zones ---- */

/* Two digits as 0..99, or more than 99. */
static int32_t two_digits(const char *p)
{
    if (p[0] < '0' || p[0] > '9' || p[1] < '0' || p[1] > '9') {
        return 100;
    }
    return (p[0] - '0') * 10 + (p[1] - '0');
}

static bool fixed_offset(const char *name, int32_t *out)
{
    static const char *const utc[] = {"UTC", "Etc/UTC", "GMT",  "Etc/GMT",
                                      "Z",   "UCT",     "Zulu", "utc"};
    *out = 0;
    for (int64_t i = 0; i < GAR_COUNT_OF(utc); i++) {
        if (strcmp(name, utc[i]) == 0) {
            return true;
        }
    }
    if (name[0] != '+' && name[0] != '-') {
        return false;
    }
    const size_t length = strlen(name);
    int32_t minutes = 0;
    if (length == 6 && name[3] == ':') {
        minutes = two_digits(name + 4);
    } else if (length == 5) {
        minutes = two_digits(name + 3);
    } else if (length != 3) {
        return false;
    }
    const int32_t hours = two_digits(name + 1);
    const int32_t seconds = hours * 3600 + minutes * 60;
    *out = name[0] == '-' ? -seconds : seconds;
    return hours <= 23 && minutes <= 59;
}

bool gar_zone_is_fixed_name(const char *name)
{
    int32_t offset = 0;
    return fixed_offset(name, &offset);
}

enum gar_status gar_zone_fixed(const char *name, struct gar_zone **out, struct gar_error *err)
{
    int32_t offset = 0;
    if (!fixed_offset(name, &offset)) {
        char shown[160];
        return gar_error_set(
            err, GAR_ERR_VALUE,
            "'%s' is no fixed time zone; these are UTC and offsets such as +01:00, up to 23:59",
            gar_error_quote(name, (int64_t)strlen(name), shown, sizeof shown));
    }
    int64_t *at = NULL;
    int32_t *offsets = NULL;
    struct gar_zone *zone = zone_new(0, &at, &offsets);
    if (zone == NULL) {
        return gar_error_nomem(err, sizeof *zone);
    }
    offsets[0] = offset;
    *out = zone;
    return GAR_OK;
}
