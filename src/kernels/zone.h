/* SPDX-License-Identifier: Apache-2.0 */
/* Time zones: the local clock of a zone at an instant, and back. Rules come from TZif files (RFC 8536) in the system's zone
 * directory; "UTC", "GMT", "Z" and fixed offsets such as "+02:00" need none. */
#ifndef GAR_KERNELS_ZONE_H
#define GAR_KERNELS_ZONE_H

#include "base/attrs.h"
#include "base/error.h"

struct gar_zone;

/* Reads the zone file of `name` ("Europe/Berlin"; checked: letters, digits, "_+-/" only, no ".."): *out_data (gar_malloc) and
 * its bytes; GAR_ERR_VALUE when there is none. */
typedef enum gar_status (*gar_zone_load_fn)(const char *name, uint8_t **out_data, int64_t *out_bytes,
                                            struct gar_error *err);
/* Replaces the reader of zone files; NULL brings back the default, which looks in $TZDIR and /usr/share/zoneinfo.
 * Threads: call before zones are used. */
void gar_zone_set_loader(gar_zone_load_fn load);

/* The zone of a name; the same pointer each time, for the life of the process.
 * Errors: GAR_ERR_VALUE naming the zone; GAR_ERR_FORMAT for a bad zone file; GAR_ERR_NOMEM. Threads: any; the first use of
 * a zone reads a file. */
GAR_MUST_USE enum gar_status gar_zone_find(const char *name, const struct gar_zone **out, struct gar_error *err);
/* Is it UTC for all time? */
bool gar_zone_is_utc(const struct gar_zone *zone);
/* Seconds to add to UTC for the local clock at an instant. */
int32_t gar_zone_offset_at(const struct gar_zone *zone, int64_t utc_seconds);
/* The instant of a local clock reading. A reading that comes twice means the first; one that is skipped is
 * taken with the offset before the gap. */
int64_t gar_zone_to_utc(const struct gar_zone *zone, int64_t local_seconds);

/* For tests and fuzzing: a zone made from a TZif file in memory. Owns: caller frees. */
GAR_MUST_USE enum gar_status gar_zone_parse(const uint8_t *data, int64_t bytes, const char *name, struct gar_zone **out,
                                            struct gar_error *err);
void gar_zone_free(struct gar_zone *zone);

#endif
