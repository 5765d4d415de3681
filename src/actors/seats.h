/* SPDX-License-Identifier: Apache-2.0 */
/* Seats of a pool from the ledger's grants: which devices and how many threads each actor sees. */
#ifndef GAR_ACTORS_SEATS_H
#define GAR_ACTORS_SEATS_H

#include "actors/pool.h"
#include "resources/ledger.h"

struct gar_actor_seats {
    struct gar_actor_seat *seats; /* count items; for gar_actor_pool_options */
    int32_t count;
    struct seat_texts *texts; /* owned */
};

/* One seat a grant (a NULL grant books nothing and shows no device). inherits_devices: the actors see this process's own
 * devices. An actor sees exactly the devices of its grant; OMP_NUM_THREADS and its kin are the CPUs it was granted, or, when
 * it asked for none and the user set none, its share of the machine.
 * grants: moved on success, each into its seat; they become the pool's with gar_actor_pool_new.
 * Errors: GAR_ERR_NOMEM. Owns: caller destroys *out after gar_actor_pool_new. */
GAR_MUST_USE enum gar_status gar_actor_seats_new(struct gar_grant **grants, int32_t count,
                                                 bool inherits_devices, struct gar_actor_seats *out,
                                                 struct gar_error *err);
/* releases_grants: no pool took them. Zeroed is fine. */
void gar_actor_seats_destroy(struct gar_actor_seats *seats, bool releases_grants);

#endif
