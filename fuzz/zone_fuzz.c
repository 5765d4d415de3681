/* SPDX-License-Identifier: Apache-2.0 */
/* Time zones: a TZif file, or the text of a rule when the input does not start with 'T'. What is taken must answer any
 * instant and any local reading consistently. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/zone.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)    \
    do {                    \
        if (!(condition)) { \
            abort();        \
        }                   \
    } while (0)

/* The stretch around an instant, and the readings of its clock and near it. Returns where the stretch ends. */
static int64_t check_at(const struct gar_zone *zone, int64_t t)
{
    int64_t from = 0;
    int64_t until = 0;
    const int64_t offset = gar_zone_offset(zone, t, &from, &until);
    CHECK(offset >= -GAR_ZONE_OFFSET_MAX && offset <= GAR_ZONE_OFFSET_MAX);
    CHECK(from <= t && (t < until || until == INT64_MAX));
    CHECK(gar_zone_offset_at(zone, from) == offset);
    CHECK(until == INT64_MAX || gar_zone_offset_at(zone, until - 1) == offset);
    static const int64_t near[] = {-90000, -3600, -1, 0, 1, 1800, 7200};
    for (int64_t i = 0; i < GAR_COUNT_OF(near); i++) {
        int64_t local = 0;
        if (__builtin_add_overflow(t, near[i] + offset, &local) || local > INT64_MAX / 4 ||
            local < INT64_MIN / 4) {
            continue;
        }
        const struct gar_zone_instants found = gar_zone_resolve(zone, local);
        const bool is_earlier = found.earlier + gar_zone_offset_at(zone, found.earlier) == local;
        const bool is_later = found.later + gar_zone_offset_at(zone, found.later) == local;
        CHECK(found.earlier <= found.later);
        CHECK(is_earlier == (found.kind != GAR_ZONE_GAP) && is_later == is_earlier);
        CHECK(near[i] != 0 ||
              (found.kind != GAR_ZONE_GAP && found.earlier <= t && t <= found.later));
        int64_t instant = 0;
        CHECK(
            !gar_zone_utc_vector(&local, 1, GAR_SECOND, zone, NULL, GAR_ZONE_GAP_PASSED, &instant));
        CHECK(instant == gar_zone_to_utc(zone, local));
        if (near[i] == 0) {
            CHECK(!gar_zone_utc_vector(&local, 1, GAR_SECOND, zone, &t, GAR_ZONE_GAP_PASSED,
                                       &instant));
            CHECK(instant == t);
        }
    }
    return until;
}

static void check_zone(const struct gar_zone *zone)
{
    static const int64_t starts[] = {
        INT64_MIN,  INT64_MIN / 2,    -(INT64_C(1) << 40), -5000000000, 0,
        4200000000, INT64_C(1) << 50, INT64_MAX / 2,       INT64_MAX,
    };
    for (int64_t i = 0; i < GAR_COUNT_OF(starts); i++) {
        int64_t t = starts[i];
        for (int64_t steps = 0; steps < 64; steps++) {
            const int64_t until = check_at(zone, t);
            if (until == INT64_MAX) {
                break;
            }
            CHECK(until > t);
            t = until;
        }
    }
}

/* A file without transitions that ends in this rule. */
static enum gar_status parse_rule(const uint8_t *text, size_t size, struct gar_zone **out)
{
    enum { BLOCK = 54, TEXT_MAX = 256 };
    static const uint8_t block[BLOCK] = {'T', 'Z', 'i', 'f', '2', [39] = 1, [43] = 4};
    uint8_t file[2 * BLOCK + TEXT_MAX + 2];
    const size_t taken = size < TEXT_MAX ? size : TEXT_MAX;
    memcpy(file, block, BLOCK);
    memcpy(file + BLOCK, block, BLOCK);
    file[2 * BLOCK] = '\n';
    memcpy(file + 2 * BLOCK + 1, text, taken);
    file[2 * BLOCK + 1 + taken] = '\n';
    return gar_zone_parse("fuzz", file, (int64_t)(2 * BLOCK + taken + 2), out, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gar_zone *zone = NULL;
    const bool is_file = size > 0 && data[0] == 'T';
    const enum gar_status status = is_file
                                       ? gar_zone_parse("fuzz", data, (int64_t)size, &zone, NULL)
                                       : parse_rule(data, size, &zone);
    if (status == GAR_OK) {
        check_zone(zone);
        gar_zone_free(zone);
    }
    return 0;
}
