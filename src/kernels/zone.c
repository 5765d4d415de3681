/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups in zones, and the process's table of them. */
#include "kernels/zone.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "kernels/zone_priv.h"

/* ---- the process's table ---- */

/* Twice as many slots as there can be interned names. */
enum { SLOTS = 8192 };

static const struct gar_zone *slots[SLOTS]; /* atomic; a slot is filled once and never changed */
static gar_zone_loader loader_in_force;     /* atomic */

void gar_zone_set_loader(gar_zone_loader loader)
{
    __atomic_store_n(&loader_in_force, loader, __ATOMIC_RELEASE);
}

/* A new zone: fixed, or read through the loader. */
static enum gar_status load_zone(const char *name, struct gar_zone **out, struct gar_error *err)
{
    if (gar_zone_is_fixed_name(name) || name[0] == '+' || name[0] == '-') {
        return gar_zone_fixed(name, out, err); /* with its message about offsets that are none */
    }
    const gar_zone_loader loader = __atomic_load_n(&loader_in_force, __ATOMIC_ACQUIRE);
    if (loader == NULL) {
        char shown[160];
        return gar_error_set(
            err, GAR_ERR_UNSUPPORTED,
            "time zone '%s' needs a file of tzdata, and no session is there to read it",
            gar_error_quote(name, (int64_t)strlen(name), shown, sizeof shown));
    }
    uint8_t *data = NULL;
    int64_t bytes = 0;
    GAR_TRY(loader(name, &data, &bytes, err));
    const enum gar_status parsed = gar_zone_parse(name, data, bytes, out, err);
    gar_free(data);
    return parsed;
}

enum gar_status gar_zone_find(const char *name, const struct gar_zone **out, struct gar_error *err)
{
    struct gar_zone *made = NULL;
    uint64_t slot = gar_hash_u64((uint64_t)(uintptr_t)name) % SLOTS;
    for (int32_t probes = 0; probes < SLOTS; probes++) {
        const struct gar_zone *here = __atomic_load_n(&slots[slot], __ATOMIC_ACQUIRE);
        if (here == NULL) {
            if (made == NULL) {
                GAR_TRY(load_zone(name, &made, err));
                made->name = name;
            }
            if (__atomic_compare_exchange_n(&slots[slot], &here, made, false, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE)) {
                *out = made;
                return GAR_OK;
            }
        }
        if (here->name == name) {
            gar_zone_free(made); /* another thread was faster */
            *out = here;
            return GAR_OK;
        }
        slot = (slot + 1) % SLOTS;
    }
    gar_zone_free(made);
    return gar_error_set(err, GAR_ERR_INTERNAL, "more than %d time zones in use", SLOTS);
}

/* ---- lookups ---- */

/* How many of the instants are at or before t. */
static int64_t count_until(const int64_t *at, int64_t count, int64_t t)
{
    int64_t low = 0;
    while (count > 0) {
        const int64_t half = count / 2;
        const bool is_before = at[low + half] <= t;
        low = is_before ? low + half + 1 : low;
        count = is_before ? count - half - 1 : half;
    }
    return low;
}

struct gar_zone_span gar_zone_span_at(const struct gar_zone *zone, int64_t utc_seconds)
{
    if (zone->has_rule && utc_seconds >= zone->rule_from) {
        struct gar_zone_span span = gar_zone_rule_span(&zone->rule, utc_seconds);
        span.from = gar_max_i64(span.from, zone->rule_from);
        return span;
    }
    const int64_t i = count_until(zone->at, zone->count, utc_seconds);
    const int64_t last = zone->has_rule ? zone->rule_from : INT64_MAX;
    return (struct gar_zone_span){
        .from = i == 0 ? INT64_MIN : zone->at[i - 1],
        .until = i == zone->count ? last : zone->at[i],
        .offset = zone->offsets[i],
    };
}

bool gar_zone_is_fixed(const struct gar_zone *zone)
{
    return zone->count == 0 && !zone->has_rule;
}

bool gar_zone_is_utc(const struct gar_zone *zone)
{
    return gar_zone_is_fixed(zone) && zone->offsets[0] == 0;
}

int32_t gar_zone_offset(const struct gar_zone *zone, int64_t utc_seconds, int64_t *out_from,
                        int64_t *out_until)
{
    const struct gar_zone_span span = gar_zone_span_at(zone, utc_seconds);
    if (out_from != NULL) {
        *out_from = span.from;
    }
    if (out_until != NULL) {
        *out_until = span.until;
    }
    return span.offset;
}

int32_t gar_zone_offset_at(const struct gar_zone *zone, int64_t utc_seconds)
{
    return gar_zone_span_at(zone, utc_seconds).offset;
}

static int64_t minus(int64_t seconds, int32_t offset)
{
    int64_t result = 0;
    if (__builtin_sub_overflow(seconds, (int64_t)offset, &result)) {
        return offset > 0 ? INT64_MIN : INT64_MAX;
    }
    return result;
}

struct gar_zone_instants gar_zone_resolve(const struct gar_zone *zone, int64_t local_seconds)
{
    /* Every instant that could read so lies within 26 hours of the reading taken as UTC: walk the stretches there. */
    const int64_t end = minus(local_seconds, -GAR_ZONE_OFFSET_MAX);
    struct gar_zone_span span = gar_zone_span_at(zone, minus(local_seconds, GAR_ZONE_OFFSET_MAX));
    int64_t instant = minus(local_seconds, span.offset);
    struct gar_zone_instants found = {GAR_ZONE_ONE, instant, instant, 0};
    bool is_found = instant >= span.from && instant < span.until;
    bool is_gap = false;
    while (span.until != INT64_MAX && span.until <= end) {
        const int64_t by_before = instant;
        span = gar_zone_span_at(zone, span.until);
        instant = minus(local_seconds, span.offset);
        const bool is_here = instant >= span.from && instant < span.until;
        if (is_here && is_found) {
            found.kind = GAR_ZONE_FOLD;
            found.later = instant;
        } else if (is_here) {
            found = (struct gar_zone_instants){GAR_ZONE_ONE, instant, instant, 0};
            is_found = true;
        } else if (!is_found && !is_gap && by_before >= span.from && instant < span.from) {
            found = (struct gar_zone_instants){GAR_ZONE_GAP, instant, by_before, span.from};
            is_gap = true;
        }
    }
    return found;
}

int64_t gar_zone_to_utc(const struct gar_zone *zone, int64_t local_seconds)
{
    const struct gar_zone_instants found = gar_zone_resolve(zone, local_seconds);
    return found.kind == GAR_ZONE_GAP ? found.later : found.earlier;
}

/* ---- vectors ---- */

/* A stretch of ticks in which one shift holds: [first, last]. */
struct stretch {
    int64_t first;
    int64_t last;
    int64_t shift;
};

/* seconds * ticks, cut to int64. */
static int64_t times(int64_t seconds, int64_t ticks)
{
    int64_t result = 0;
    if (__builtin_mul_overflow(seconds, ticks, &result)) {
        return seconds < 0 ? INT64_MIN : INT64_MAX;
    }
    return result;
}

static int64_t floor_seconds(int64_t value, int64_t ticks)
{
    return value / ticks - (value % ticks < 0);
}

static struct stretch stretch_of(int64_t from, int64_t until, int32_t offset, int64_t ticks)
{
    const int64_t end = times(until, ticks);
    return (struct stretch){times(from, ticks), end == INT64_MAX ? INT64_MAX : end - 1,
                            offset * ticks};
}

static int64_t unit_ticks(enum gar_time_unit unit)
{
    static const int64_t ticks[] = {1, 1000, 1000000, 1000000000};
    return ticks[unit];
}

/* out = in + shift for the lanes from `start` that lie in the stretch; returns the first that does not. */
static int64_t shift_run(const int64_t *in, int64_t start, int64_t n, const struct stretch *s,
                         int64_t *out, bool *overflowed)
{
    const int64_t first = s->first;
    const int64_t last = s->last;
    const int64_t shift = s->shift;
    bool wrapped = false;
    int64_t i = start;
    for (; i < n && in[i] >= first && in[i] <= last; i++) {
        wrapped |= __builtin_add_overflow(in[i], shift, &out[i]);
    }
    *overflowed |= wrapped;
    return i;
}

bool gar_zone_local_vector(const int64_t *values, int64_t n, enum gar_time_unit unit,
                           const struct gar_zone *zone, int64_t *out)
{
    const int64_t ticks = unit_ticks(unit);
    bool overflowed = false;
    for (int64_t i = 0; i < n;) {
        const struct gar_zone_span span = gar_zone_span_at(zone, floor_seconds(values[i], ticks));
        const struct stretch s = stretch_of(span.from, span.until, span.offset, ticks);
        i = shift_run(values, i, n, &s, out, &overflowed);
    }
    return overflowed;
}

/* The instant of one reading near a change. False if it overflowed. */
static bool resolve_lane(const struct gar_zone *zone, int64_t local, int64_t ticks,
                         const int64_t *like, enum gar_zone_gap gap, int64_t *out)
{
    const int64_t seconds = floor_seconds(local, ticks);
    const struct gar_zone_instants found = gar_zone_resolve(zone, seconds);
    int64_t instant = found.earlier;
    if (found.kind == GAR_ZONE_GAP && gap == GAR_ZONE_GAP_CHANGE) {
        return !__builtin_mul_overflow(found.change, ticks, out);
    }
    if (found.kind == GAR_ZONE_GAP) {
        instant = found.later;
    } else if (found.kind == GAR_ZONE_FOLD && like != NULL) {
        const int32_t offset = gar_zone_offset_at(zone, floor_seconds(*like, ticks));
        const int64_t alike = minus(seconds, offset);
        instant = gar_zone_offset_at(zone, alike) == offset ? alike : instant;
    }
    return !__builtin_add_overflow(local, (instant - seconds) * ticks, out);
}

bool gar_zone_utc_vector(const int64_t *local, int64_t n, enum gar_time_unit unit,
                         const struct gar_zone *zone, const int64_t *like, enum gar_zone_gap gap,
                         int64_t *out)
{
    const int64_t ticks = unit_ticks(unit);
    bool overflowed = false;
    for (int64_t i = 0; i < n;) {
        const int64_t seconds = floor_seconds(local[i], ticks);
        const struct gar_zone_span span = gar_zone_span_at(zone, seconds);
        /* Readings further than 26 hours from the stretch's ends can only be in it. */
        const bool is_for_ever = span.until == INT64_MAX;
        const int64_t from =
            span.from == INT64_MIN ? INT64_MIN : minus(span.from, -GAR_ZONE_OFFSET_MAX);
        const int64_t until = is_for_ever ? INT64_MAX : minus(span.until, GAR_ZONE_OFFSET_MAX);
        if (seconds >= from && (seconds < until || is_for_ever)) {
            const struct stretch s = stretch_of(from, until, -span.offset, ticks);
            i = shift_run(local, i, n, &s, out, &overflowed);
        } else {
            overflowed |=
                !resolve_lane(zone, local[i], ticks, like == NULL ? NULL : like + i, gap, &out[i]);
            i++;
        }
    }
    return overflowed;
}
