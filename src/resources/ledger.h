/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger: CPUs, memory and named devices of the process, who holds them, who waits for them.
 *
 * Life of an acquisition: fill wants, call gar_ledger_acquire with a ticket in the caller's storage. It ends in one of
 * three ways: at once with the grants (GAR_OK), at once with an error (what can never be), or GAR_PENDING; then on_done
 * runs exactly once, later, on whatever thread released, cancelled or set a device aside, with no lock held. All wants
 * are granted together or not at all. Waiting tickets are served in the order in which they came; one that came later
 * goes first only if no earlier one waits for a kind of resource that it asks (CPUs, memory, GPUs), so that none can
 * be starved. Grants are prepared when the ticket is queued: serving cannot fail for want of memory.
 *
 * Placement: whole GPUs take devices that are entirely free, in order, and all their memory; a fraction takes the
 * device with the least remaining share that still fits (PACK) or the most (SPREAD), never two; gpu_memory without a
 * share takes the device with the least unbooked memory that fits. A slice of a GPU (MIG) counts as a device, but a
 * process can use only one: requests for two and more take whole GPUs. */
#ifndef GAR_RESOURCES_LEDGER_H
#define GAR_RESOURCES_LEDGER_H

#include "base/attrs.h"
#include "base/error.h"
#include "resources/device_error.h"
#include "resources/devices.h"
#include "resources/request.h"

struct gar_ledger;

/* ---- the ledger ------------------------------------------------------------------------------------------------------ */

struct gar_ledger_options {
    int64_t cpu_shares;
    int64_t memory_bytes;
    struct gar_device_list *devices; /* moved: left empty; NULL: none */
};
/* Errors: GAR_ERR_NOMEM. Owns: caller unrefs; grants and waiting tickets hold references. */
GAR_MUST_USE enum gar_status gar_ledger_new(const struct gar_ledger_options *options,
                                            struct gar_ledger **out, struct gar_error *err);
/* The process's ledger, with what discovery finds; made at the first call, never freed. NULL with err set: out of
 * memory. Threads: any, but the first call reads files and loads NVML: not on the query loop. */
struct gar_ledger *gar_ledger_process(struct gar_error *err);
struct gar_ledger *gar_ledger_ref(struct gar_ledger *ledger);
void gar_ledger_unref(struct gar_ledger *ledger);
/* Fixed for the life of the ledger. */
const struct gar_device_list *gar_ledger_devices(const struct gar_ledger *ledger);
int64_t gar_ledger_cpu_shares(const struct gar_ledger *ledger);
int64_t gar_ledger_memory_bytes(const struct gar_ledger *ledger);

/* ---- acquire ----------------------------------------------------------------------------------------------------------- */

enum gar_gpu_strategy { GAR_GPU_PACK, GAR_GPU_SPREAD };

/* `count` equal actors, each with a grant of its own. */
struct gar_ledger_want {
    struct gar_resource_request request;
    int64_t count;
    int64_t count_min; /* fewer are fine when more do not fit at the moment; 0: all of them */
    enum gar_gpu_strategy strategy;
    const char *holder; /* for messages and snapshots; copied, cut to 63 bytes */
};

/* What one actor holds; released exactly once. */
struct gar_grant;

/* A zeroed struct, but for the first two fields, is ready for use. */
struct gar_ledger_ticket {
    /* set by the caller */
    void (*on_done)(struct gar_ledger_ticket *ticket, enum gar_status status);
    void *context;
    /* the result: grants on GAR_OK, else err */
    struct gar_grant *
        *grants; /* owned; of the first want, then the second, ...; NULL what you take */
    int64_t grant_count;
    int64_t *counts; /* owned; grants of each want */
    struct gar_error err;
    struct gar_ledger_wait *wait; /* owned; what the ledger keeps about it */
};

/* GAR_OK: granted, on_done is not called. GAR_PENDING: on_done will be called once, perhaps before this returns, with
 * GAR_OK, GAR_ERR_CANCELLED, or GAR_ERR_VALUE when a lost device made it impossible; until then the ticket must stay
 * where it is. on_done may acquire, release and destroy the ticket; it must not block.
 * Errors: GAR_ERR_VALUE for what can never be, before anything waits: "Requested 8 GPUs but found only 4 available"
 * (CPUs, bytes of memory, GPU memory alike) for one actor, "Not enough resources available to admit 3 actors: ..." for
 * all together; GAR_ERR_NOMEM; GAR_ERR_UNSUPPORTED for GPUs in a forked child (they are booked in its parent)
 * Owns: wants are copied. After every end but GAR_PENDING the caller destroys the ticket. Threads: any; never blocks. */
GAR_MUST_USE enum gar_status gar_ledger_acquire(struct gar_ledger *ledger,
                                                const struct gar_ledger_want *wants,
                                                int64_t want_count,
                                                struct gar_ledger_ticket *ticket,
                                                struct gar_error *err);
/* Ends a waiting ticket with GAR_ERR_CANCELLED: true, and on_done runs as always, once. False: it was granted or failed
 * before (its on_done may still be running on another thread), or never waited. */
bool gar_ledger_cancel(struct gar_ledger_ticket *ticket);
/* Releases the grants that were not taken and frees what the ticket owns. It must not be pending. Zeroed is fine. */
void gar_ledger_ticket_destroy(struct gar_ledger_ticket *ticket);

/* Where wants would go; nothing is booked. */
struct gar_placement {
    int64_t *counts;  /* owned; actors of each want */
    int32_t *devices; /* owned; see gar_placement_devices */
};
/* On the machine as it is now, or with nothing booked (is_empty). For checks and explain at plan time.
 * Errors: as gar_ledger_acquire; GAR_PENDING: it would wait. Owns: caller destroys out. */
GAR_MUST_USE enum gar_status gar_ledger_preview(struct gar_ledger *ledger,
                                                const struct gar_ledger_want *wants,
                                                int64_t want_count, bool is_empty,
                                                struct gar_placement *out, struct gar_error *err);
void gar_placement_destroy(struct gar_placement *placement);
/* How many devices each grant of this request has. */
int64_t gar_request_device_count(const struct gar_resource_request *request);
/* The devices of actor i of want w: gar_request_device_count indexes into gar_ledger_devices. */
const int32_t *gar_placement_devices(const struct gar_placement *placement,
                                     const struct gar_ledger_want *wants, int64_t w, int64_t i);

/* ---- grants ------------------------------------------------------------------------------------------------------------ */

/* Gives back what was booked, once, and sets *grant NULL; waiting tickets that now fit are served before it returns.
 * NULL is fine. Threads: any; runs other tickets' on_done. */
void gar_grant_release(struct gar_grant **grant);
const struct gar_resource_request *gar_grant_request(const struct gar_grant *grant);
int64_t gar_grant_device_count(const struct gar_grant *grant);
/* Index into gar_ledger_devices. */
int32_t gar_grant_device(const struct gar_grant *grant, int64_t i);
/* "3,4"; "" for none. Returns out. */
const char *gar_grant_device_text(const struct gar_grant *grant, char *out, int64_t out_bytes);
/* The variables that show a process this grant's devices and no others. */
GAR_MUST_USE enum gar_status gar_grant_environment(const struct gar_grant *grant,
                                                   struct gar_device_environment *out,
                                                   struct gar_error *err);
/* For snapshots: the process that uses it. */
void gar_grant_set_process(struct gar_grant *grant, int64_t process_id);

/* ---- devices that fail -------------------------------------------------------------------------------------------------- */

/* Nothing more is given from the device; who holds it keeps it until release. Tickets that can never be served now end
 * with GAR_ERR_VALUE naming it. reason is copied and cut. Threads: any; runs on_done. */
void gar_ledger_set_aside(struct gar_ledger *ledger, int32_t device, const char *reason);
void gar_ledger_restore(struct gar_ledger *ledger, int32_t device);
bool gar_ledger_is_set_aside(struct gar_ledger *ledger, int32_t device);
/* Ask the driver again, and set aside the devices that it no longer lists (by UUID, where it is known). When NVML does
 * not answer nothing changes. *out_lost (may be NULL): how many. Errors: GAR_ERR_NOMEM. May block as
 * gar_devices_find: not on the query loop. */
GAR_MUST_USE enum gar_status gar_ledger_look_again(struct gar_ledger *ledger,
                                                   const struct gar_device_search *search,
                                                   int64_t *out_lost, struct gar_error *err);
/* Tell what happened to a process with this grant: LOST sets its devices aside, SUSPECT does so the second time in a
 * row, FINE starts counting anew. Returns whether devices were set aside. `why` goes into the reason. */
bool gar_ledger_report(struct gar_grant *grant, enum gar_device_error error, const char *why);

/* ---- looking ------------------------------------------------------------------------------------------------------------ */

/* Owns: caller frees with gar_resources_free. Errors: GAR_ERR_NOMEM. */
GAR_MUST_USE enum gar_status gar_ledger_snapshot(struct gar_ledger *ledger,
                                                 struct gar_resources **out, struct gar_error *err);

#endif
