/* SPDX-License-Identifier: Apache-2.0 */
/* The outside of the engine: tables whose reads take virtual time, fail or never answer, and a file that is written. They check
 * what plan/provider.h promises them, and count what they handed out. */
#ifndef GAR_SIM_WORLD_H
#define GAR_SIM_WORLD_H

#include "rows.h"

/* What goes wrong, at which unit (or piece); -1: nowhere. */
struct sim_faults {
    int64_t open;   /* 0: opening fails */
    int64_t next;   /* the unit's next fails */
    int64_t load;   /* its read fails */
    int64_t decode; /* its first decode fails */
    int64_t hang;   /* its read never answers until it is cancelled */
    int64_t deaf;   /* its read takes 3 s and does not look whether it is cancelled */
};
#define SIM_NO_FAULTS \
    ((struct sim_faults){.open = -1, .next = -1, .load = -1, .decode = -1, .hang = -1, .deaf = -1})
#define SIM_DEAF_NS (3 * GAR_NS_PER_S)

struct sim_table_options {
    const struct sim_rows *rows; /* borrowed for the table's life */
    int64_t unit_rows;
    bool has_load; /* else units are there at once, as in memory */
    bool is_sequential;
    int64_t latency_ns; /* a read takes up to so long */
    struct sim_faults faults;
};

/* Counted over all tables and files: 0 when everything has been given back. */
int64_t sim_world_open(void);

/* A gar_scan_provider. */
struct gar_scan_provider *sim_table_new(const struct sim_table_options *options,
                                        struct sim_rng *rng);
/* Did a fault of this table come up since it was made? It says "simulated fault" in its message. */
bool sim_table_has_failed(const struct gar_scan_provider *table);
/* Scans of it that are open now. */
int64_t sim_table_scans(const struct gar_scan_provider *table);

/* A gar_sink_provider. */
struct sim_file_options {
    int64_t preferred_rows;
    int64_t latency_ns;
    int64_t fail_open, fail_encode, fail_append, fail_finish; /* -1: never; else the n-th call */
};
struct gar_sink_provider *sim_file_new(const struct sim_file_options *options, struct sim_rng *rng);
bool sim_file_has_failed(const struct gar_sink_provider *file);
/* NULL: nothing was published. Borrowed. */
const struct sim_rows *sim_file_rows(const struct gar_sink_provider *file);

#endif
