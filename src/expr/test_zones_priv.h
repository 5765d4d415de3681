/* SPDX-License-Identifier: Apache-2.0 */
/* A few zones for tests, made of today's rules alone, so that results need no files of the machine. */
#ifndef GAR_EXPR_TEST_ZONES_PRIV_H
#define GAR_EXPR_TEST_ZONES_PRIV_H

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/zone.h"

/* A TZif file without transitions whose footer is the zone's rule. */
GAR_UNUSED static enum gar_status test_zone_load(const char *name, uint8_t **out_data,
                                                 int64_t *out_bytes, struct gar_error *err)
{
    static const struct {
        const char *name;
        const char *rule;
    } zones[] = {
        {"Europe/Berlin", "CET-1CEST,M3.5.0,M10.5.0/3"},
        {"America/New_York", "EST5EDT,M3.2.0,M11.1.0"},
        {"America/Havana",
         "CST5CDT,M3.2.0/0,M11.1.0/1"}, /* midnight is left out, and comes twice */
        {"Pacific/Chatham", "<+1245>-12:45<+1345>,M9.5.0/2:45,M4.1.0/3:45"}, /* within an hour */
        {"Australia/Lord_Howe", "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0"},     /* by half an hour */
    };
    /* Header and one kind of local time (offset 0, name "UTC"), for either block. */
    enum { BLOCK = 54, ROOM = 2 * BLOCK + 64 };
    static const uint8_t block[BLOCK] = {
        [0] = 'T', [1] = 'Z', [2] = 'i',  [3] = 'f',  [4] = '2',
        [39] = 1,  [43] = 4,  [50] = 'U', [51] = 'T', [52] = 'C',
    };
    for (int64_t i = 0; i < GAR_COUNT_OF(zones); i++) {
        if (strcmp(zones[i].name, name) == 0) {
            uint8_t *data = gar_calloc(1, ROOM);
            if (data == NULL) {
                return gar_error_nomem(err, ROOM);
            }
            memcpy(data, block, BLOCK);
            memcpy(data + BLOCK, block, BLOCK);
            *out_bytes = 2 * BLOCK + snprintf((char *)data + 2 * BLOCK, ROOM - 2 * BLOCK, "\n%s\n",
                                              zones[i].rule);
            *out_data = data;
            return GAR_OK;
        }
    }
    return gar_error_set(err, GAR_ERR_VALUE, "unknown time zone '%s'", name);
}

#endif
