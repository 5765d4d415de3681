/* SPDX-License-Identifier: Apache-2.0 */
/* Time zones: offsets from UTC by instant, and instants by local clock.
 *
 * A zone is a table of transitions from a TZif file (RFC 9636), continued for ever by the rule in the file's footer. Fixed
 * zones need no file: "UTC", "Z", "Etc/UTC", "GMT" and the like, "+01:00", "-0530", "+01". Zones are immutable.
 * Kernels do no IO: the engine gives a loader that knows the folders. Threads: any, everywhere. */
#ifndef GAR_KERNELS_ZONE_H
#define GAR_KERNELS_ZONE_H

#include "arrow/type.h"
#include "base/attrs.h"
#include "base/error.h"

struct gar_zone;

/* No zone is further from UTC than this, and no file that says so is taken. */
#define GAR_ZONE_OFFSET_MAX (26 * 3600)

/* Reads the file of a zone: *out_data from gar_malloc, owned by the caller. The name is any text; the loader checks it.
 * Errors: GAR_ERR_VALUE for a zone that is not there, naming it and where it was looked for. */
typedef enum gar_status (*gar_zone_loader)(const char *name, uint8_t **out_data, int64_t *out_bytes,
                                           struct gar_error *err);
/* The loader for all later gar_zone_find; NULL takes it away. */
void gar_zone_set_loader(gar_zone_loader loader);

/* The zone of this name (a pointer from gar_zone_intern). Found zones are kept for the life of the process, so that the
 * fast path is one look into a table without a lock; zones that were not found are looked for again.
 * Errors: the loader's; GAR_ERR_FORMAT when the file is broken; GAR_ERR_UNSUPPORTED without a loader or when
 * the file counts leap seconds; GAR_ERR_NOMEM. Owns: nobody; *out is never freed. */
GAR_MUST_USE enum gar_status gar_zone_find(const char *name, const struct gar_zone **out,
                                           struct gar_error *err);

/* A zone from the bytes of a TZif file, or from a fixed name; apart from the process's table. Errors: GAR_ERR_FORMAT,
 * GAR_ERR_UNSUPPORTED (leap seconds), GAR_ERR_NOMEM; gar_zone_fixed also GAR_ERR_VALUE: no fixed name.
 * Owns: the caller frees *out. */
GAR_MUST_USE enum gar_status gar_zone_parse(const char *name, const uint8_t *data, int64_t bytes,
                                            struct gar_zone **out, struct gar_error *err);
GAR_MUST_USE enum gar_status gar_zone_fixed(const char *name, struct gar_zone **out,
                                            struct gar_error *err);
void gar_zone_free(struct gar_zone *zone);
/* Does gar_zone_fixed know it? */
bool gar_zone_is_fixed_name(const char *name);

/* Has the zone one offset for ever? */
bool gar_zone_is_fixed(const struct gar_zone *zone);
/* Is that offset 0? */
bool gar_zone_is_utc(const struct gar_zone *zone);

/* Seconds to add to UTC for the local clock at this instant. The same offset holds from *out_from (INT64_MIN: always) up to
 * but without *out_until (INT64_MAX: for ever); either may be NULL. Instants more than 36 billion years away count
 * as just so far. */
int32_t gar_zone_offset(const struct gar_zone *zone, int64_t utc_seconds, int64_t *out_from,
                        int64_t *out_until);

/* The offset alone. */
int32_t gar_zone_offset_at(const struct gar_zone *zone, int64_t utc_seconds);

/* What a local clock's reading means. */
enum gar_zone_kind {
    GAR_ZONE_ONE,  /* one instant */
    GAR_ZONE_FOLD, /* two or more: the clock was turned back over it */
    GAR_ZONE_GAP,  /* none: the clock was put forward over it */
};
struct gar_zone_instants {
    enum gar_zone_kind kind;
    /* ONE: both the same. FOLD: the first and the last instant that read so. GAP: by the offset after the change, which
     * lies before it, and by the offset before the change, which lies after it. */
    int64_t earlier;
    int64_t later;
    int64_t change; /* GAP: the instant of the change; else 0 */
};
/* Instants of a local reading, seconds since 1970-01-01 00:00 of the local clock. Results beyond int64 are cut to it. */
struct gar_zone_instants gar_zone_resolve(const struct gar_zone *zone, int64_t local_seconds);

/* The usual choice: in a fold the first instant; in a gap so much after the change as the reading is after the gap's start. */
int64_t gar_zone_to_utc(const struct gar_zone *zone, int64_t local_seconds);

/* Vectors: values in ticks of `unit`. Shape: n values in and out; out may be the input. Nulls: not looked at. True if some
 * lane overflowed; its out is the wrapped value and the caller looks closer. */

/* out = the local clock's reading at each instant. */
bool gar_zone_local_vector(const int64_t *values, int64_t n, enum gar_time_unit unit,
                           const struct gar_zone *zone, int64_t *out);
/* What a reading in a gap gives. */
enum gar_zone_gap {
    GAR_ZONE_GAP_PASSED, /* so much after the change as the reading is after the gap's start: gar_zone_to_utc */
    GAR_ZONE_GAP_CHANGE, /* the change: the first instant that reads so much or more, for starts of days and hours */
};
/* out = the instant of each local reading. In a fold the first, but where `like` (instants; may be NULL, must not be out) has
 * for a lane an instant with an offset that gives the reading too, that offset is taken. */
bool gar_zone_utc_vector(const int64_t *local, int64_t n, enum gar_time_unit unit,
                         const struct gar_zone *zone, const int64_t *like, enum gar_zone_gap gap,
                         int64_t *out);

#endif
