/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger: one lock, what is free, the grants that are held, the queue, and a list of tickets that are finished but
 * not yet told.
 *
 * Serving (serve_locked) goes through the queue from the front and grants whatever fits and whose kinds of resources no
 * earlier ticket waits for. It runs after everything that can make room: release, restore, and the end of a ticket that
 * stood in the way. A wake-up cannot be lost: test and queueing happen under one lock.
 *
 * Telling (tell) runs on_done with no lock held. Whoever finished a ticket drains the list, unless a thread is at it
 * already: then that thread takes it. So on_done may release and acquire without recursion, and callbacks come in the
 * order in which tickets were served. */
#include "resources/ledger.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "os/fork.h"
#include "os/limits.h"
#include "os/mutex.h"
#include "os/test_point.h"
#include "resources/ledger_priv.h"

struct gar_grant {
    struct gar_ledger *ledger; /* owned reference once granted */
    struct gar_grant *next;
    struct gar_grant *previous;
    struct gar_resource_request request;
    int64_t process_id; /* guarded by the ledger's lock */
    int64_t forks;      /* the ledger's when it was granted */
    char holder[GAR_HOLDER_TEXT_BYTES];
    int64_t device_count;
    int32_t devices[]; /* constant once granted */
};

struct gar_ledger_wait {
    struct gar_ledger_ticket *ticket; /* borrowed; stays where it is while pending */
    struct gar_ledger *ledger;        /* owned reference */
    struct gar_ledger_wait *next;     /* in the queue, then in the list of those to tell */
    struct gar_ledger_wait *previous;
    struct gar_ledger_want *wants; /* owned; holders point into the grants */
    int64_t want_count;
    int64_t actor_count; /* grants prepared */
    int32_t *devices;    /* owned; room for the placement */
    uint32_t kinds;
    int64_t forks;          /* the ledger's when it was queued */
    bool is_pending;        /* guarded by the ledger's lock */
    enum gar_status status; /* once it is not pending */
};

struct gar_ledger {
    /* constant */
    struct gar_device_list list;
    int64_t cpu_shares;
    int64_t memory_bytes;
    struct gar_mutex lock;
    struct {
        struct gar_ledger_state free;
        struct gar_ledger_state scratch;
        struct gar_ledger_state again;
        struct gar_device_health *health; /* owned */
        struct gar_grant *grants;         /* newest first */
        struct gar_ledger_wait *first;    /* the queue */
        struct gar_ledger_wait *last;
        struct gar_ledger_wait *told_first; /* finished, to be told */
        struct gar_ledger_wait *told_last;
        bool is_telling;
        int64_t forks; /* since the process that made it: grants of another number are not ours */
    } synced GAR_GUARDED;
    int64_t refs; /* atomic */
};

static struct gar_ledger_view view_locked(const struct gar_ledger *ledger)
    GAR_REQUIRES(ledger->lock);
static enum gar_status check_fork_locked(const struct gar_ledger *ledger,
                                         const struct gar_ledger_want *wants, int64_t want_count,
                                         struct gar_error *err) GAR_REQUIRES(ledger->lock);
static enum gar_status check_each_locked(const struct gar_ledger *ledger,
                                         const struct gar_ledger_want *wants, int64_t want_count,
                                         struct gar_error *err) GAR_REQUIRES(ledger->lock);
static enum gar_status check_together_locked(struct gar_ledger *ledger,
                                             const struct gar_ledger_want *wants,
                                             int64_t want_count, int32_t *devices, int64_t *counts,
                                             struct gar_error *err) GAR_REQUIRES(ledger->lock);
static bool place_locked(struct gar_ledger *ledger, struct gar_ledger_wait *wait)
    GAR_REQUIRES(ledger->lock);
static void serve_locked(struct gar_ledger *ledger) GAR_REQUIRES(ledger->lock);
static uint32_t awaited_locked(const struct gar_ledger *ledger) GAR_REQUIRES(ledger->lock);
static void refuse_impossible_locked(struct gar_ledger *ledger) GAR_REQUIRES(ledger->lock);
static void enqueue_locked(struct gar_ledger *ledger, struct gar_ledger_wait *wait)
    GAR_REQUIRES(ledger->lock);
static void finish_locked(struct gar_ledger *ledger, struct gar_ledger_wait *wait,
                          enum gar_status status) GAR_REQUIRES(ledger->lock);
static void tell_later_locked(struct gar_ledger *ledger, struct gar_ledger_wait *wait,
                              enum gar_status status) GAR_REQUIRES(ledger->lock);
static void unlink_grant_locked(struct gar_ledger *ledger, struct gar_grant *grant)
    GAR_REQUIRES(ledger->lock);
static void tell(struct gar_ledger *ledger) GAR_EXCLUDES(ledger->lock);
static enum gar_status prepare(struct gar_ledger *ledger, const struct gar_ledger_want *wants,
                               int64_t want_count, struct gar_ledger_ticket *ticket,
                               struct gar_error *err);
static enum gar_status prepare_grants(struct gar_ledger_wait *wait, struct gar_error *err);
static int64_t count_devices(const struct gar_ledger_want *wants, int64_t want_count);
static void free_wait(struct gar_ledger_ticket *ticket);

/* ---- the ledger ----------------------------------------------------------------------------- */

static enum gar_status init_states(struct gar_ledger *ledger, struct gar_error *err) GAR_NO_TSA
{
    const int64_t count = gar_max_i64(ledger->list.count, 1);
    struct gar_ledger_state *const states[] = {&ledger->synced.free, &ledger->synced.scratch,
                                               &ledger->synced.again};
    for (int64_t i = 0; i < GAR_COUNT_OF(states); i++) {
        states[i]->device_count = ledger->list.count;
        states[i]->machine = ledger->list.devices;
        states[i]->devices = gar_calloc(count, (int64_t)sizeof *states[i]->devices);
        if (states[i]->devices == NULL) {
            return gar_error_nomem(err, count * (int64_t)sizeof *states[i]->devices);
        }
    }
    ledger->synced.health = gar_calloc(count, (int64_t)sizeof *ledger->synced.health);
    if (ledger->synced.health == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *ledger->synced.health);
    }
    gar_ledger_state_clear(&ledger->synced.free, ledger->cpu_shares, ledger->memory_bytes);
    return GAR_OK;
}

enum gar_status gar_ledger_new(const struct gar_ledger_options *options, struct gar_ledger **out,
                               struct gar_error *err)
{
    struct gar_ledger *ledger = gar_calloc(1, (int64_t)sizeof *ledger);
    if (ledger == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *ledger);
    }
    gar_mutex_init(&ledger->lock);
    ledger->cpu_shares = options->cpu_shares;
    ledger->memory_bytes = options->memory_bytes;
    ledger->refs = 1;
    if (options->devices != NULL) {
        ledger->list = *options->devices;
        memset(options->devices, 0, sizeof *options->devices);
    }
    const enum gar_status status = init_states(ledger, err);
    if (status != GAR_OK) {
        gar_ledger_unref(ledger);
        return status;
    }
    *out = ledger;
    return GAR_OK;
}

struct gar_ledger *gar_ledger_ref(struct gar_ledger *ledger)
{
    (void)__atomic_fetch_add(&ledger->refs, 1, __ATOMIC_RELAXED);
    return ledger;
}

static void free_ledger(struct gar_ledger *ledger) GAR_NO_TSA
{
    assert(ledger->synced.grants == NULL && ledger->synced.first == NULL);
    gar_free(ledger->synced.free.devices);
    gar_free(ledger->synced.scratch.devices);
    gar_free(ledger->synced.again.devices);
    gar_free(ledger->synced.health);
    gar_device_list_destroy(&ledger->list);
    gar_mutex_destroy(&ledger->lock);
    gar_free(ledger);
}

void gar_ledger_unref(struct gar_ledger *ledger)
{
    if (ledger != NULL && __atomic_sub_fetch(&ledger->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        free_ledger(ledger);
    }
}

const struct gar_device_list *gar_ledger_devices(const struct gar_ledger *ledger)
{
    return &ledger->list;
}

int64_t gar_ledger_cpu_shares(const struct gar_ledger *ledger)
{
    return ledger->cpu_shares;
}

int64_t gar_ledger_memory_bytes(const struct gar_ledger *ledger)
{
    return ledger->memory_bytes;
}

/* ---- the process's ledger ------------------------------------------------------------------- */

static struct gar_ledger *process_ledger;              /* atomic; set once */
static struct gar_mutex process_lock = GAR_MUTEX_INIT; /* guards the making of process_ledger */

static void before_fork(void) GAR_NO_TSA
{
    gar_mutex_lock(&process_lock);
    if (process_ledger != NULL) {
        gar_mutex_lock(&process_ledger->lock);
    }
}

static void after_fork_in_parent(void) GAR_NO_TSA
{
    if (process_ledger != NULL) {
        gar_mutex_unlock(&process_ledger->lock);
    }
    gar_mutex_unlock(&process_lock);
}

/* What the parent holds and waits for stays the parent's: here the books begin anew, for CPUs and memory. A thread that
 * was telling does not exist here. */
static void after_fork_in_child(void) GAR_NO_TSA
{
    struct gar_ledger *ledger = process_ledger;
    if (ledger != NULL) {
        gar_ledger_state_clear(&ledger->synced.free, ledger->cpu_shares, ledger->memory_bytes);
        ledger->synced.grants = NULL;
        ledger->synced.first = NULL;
        ledger->synced.last = NULL;
        ledger->synced.told_first = NULL;
        ledger->synced.told_last = NULL;
        ledger->synced.is_telling = false;
        ledger->synced.forks++;
    }
    after_fork_in_parent();
}

static void handle_forks(void)
{
    static struct gar_fork_handler handler = {
        .before = before_fork,
        .after_in_parent = after_fork_in_parent,
        .after_in_child = after_fork_in_child,
    };
    gar_fork_register(&handler);
}

static enum gar_status make_process_ledger(struct gar_ledger **out, struct gar_error *err)
{
    const struct gar_os_limits *limits = gar_os_limits();
    struct gar_device_search search;
    struct gar_device_list devices = {.count = 0};
    gar_device_search_init(&search);
    GAR_TRY(gar_devices_find(&search, &devices, err));
    const struct gar_ledger_options options = {
        .cpu_shares = (int64_t)limits->cpus * GAR_SHARES,
        .memory_bytes = limits->memory_bytes,
        .devices = &devices,
    };
    const enum gar_status status = gar_ledger_new(&options, out, err);
    gar_device_list_destroy(&devices); /* empty unless that failed early */
    return status;
}

struct gar_ledger *gar_ledger_process(struct gar_error *err)
{
    static struct gar_once once = GAR_ONCE_INIT;
    struct gar_ledger *ledger = __atomic_load_n(&process_ledger, __ATOMIC_ACQUIRE);
    if (ledger != NULL) {
        return ledger;
    }
    gar_once_run(&once, handle_forks);
    struct gar_ledger *made = NULL;
    if (make_process_ledger(&made, err) != GAR_OK) {
        return NULL;
    }
    gar_mutex_lock(&process_lock);
    const bool is_first = process_ledger == NULL;
    if (is_first) {
        __atomic_store_n(&process_ledger, made, __ATOMIC_RELEASE);
    }
    ledger = process_ledger;
    gar_mutex_unlock(&process_lock);
    if (!is_first) {
        gar_ledger_unref(made);
    }
    return ledger;
}

/* ---- acquire -------------------------------------------------------------------------------- */

enum gar_status gar_ledger_acquire(struct gar_ledger *ledger, const struct gar_ledger_want *wants,
                                   int64_t want_count, struct gar_ledger_ticket *ticket,
                                   struct gar_error *err)
{
    assert(ticket->on_done != NULL && ticket->wait == NULL);
    GAR_TRY(gar_wants_check(wants, want_count, err));
    gar_mutex_lock(&ledger->lock);
    enum gar_status status = check_fork_locked(ledger, wants, want_count, err);
    if (status == GAR_OK) {
        status = check_each_locked(ledger, wants, want_count, err);
    }
    gar_mutex_unlock(&ledger->lock);
    if (status == GAR_OK) {
        status = prepare(ledger, wants, want_count, ticket, err); /* sizes are sane now */
    }
    if (status != GAR_OK) {
        free_wait(ticket);
        return status;
    }
    struct gar_ledger_wait *wait = ticket->wait;
    GAR_TEST_POINT("ledger-acquire");
    gar_mutex_lock(&ledger->lock);
    status =
        check_each_locked(ledger, wait->wants, want_count, err); /* a device may be lost by now */
    if (status == GAR_OK) {
        status = check_together_locked(ledger, wait->wants, want_count, wait->devices,
                                       ticket->counts, err);
    }
    if (status == GAR_OK &&
        ((wait->kinds & awaited_locked(ledger)) != 0 || !place_locked(ledger, wait))) {
        enqueue_locked(ledger, wait);
        status = GAR_PENDING;
    }
    gar_mutex_unlock(&ledger->lock);
    if (status < 0) {
        free_wait(ticket);
    }
    return status;
}

bool gar_ledger_cancel(struct gar_ledger_ticket *ticket)
{
    struct gar_ledger_wait *wait = ticket->wait;
    if (wait == NULL) {
        return false;
    }
    struct gar_ledger *ledger = gar_ledger_ref(wait->ledger);
    GAR_TEST_POINT("ledger-cancel");
    gar_mutex_lock(&ledger->lock);
    const bool was_pending = wait->is_pending;
    if (was_pending) {
        (void)gar_error_set(&ticket->err, GAR_ERR_CANCELLED,
                            "cancelled while it waited for resources");
        if (wait->forks != ledger->synced.forks) { /* the parent's: in no queue of ours */
            tell_later_locked(ledger, wait, GAR_ERR_CANCELLED);
        } else {
            finish_locked(ledger, wait, GAR_ERR_CANCELLED);
            serve_locked(ledger); /* it may have stood in the way */
        }
    }
    gar_mutex_unlock(&ledger->lock);
    tell(ledger);
    gar_ledger_unref(ledger);
    return was_pending;
}

void gar_ledger_ticket_destroy(struct gar_ledger_ticket *ticket)
{
    for (int64_t i = 0; i < ticket->grant_count; i++) {
        gar_grant_release(&ticket->grants[i]);
    }
    free_wait(ticket);
}

enum gar_status gar_ledger_preview(struct gar_ledger *ledger, const struct gar_ledger_want *wants,
                                   int64_t want_count, bool is_empty, struct gar_placement *out,
                                   struct gar_error *err)
{
    memset(out, 0, sizeof *out);
    GAR_TRY(gar_wants_check(wants, want_count, err));
    gar_mutex_lock(&ledger->lock);
    enum gar_status status = check_each_locked(ledger, wants, want_count, err);
    gar_mutex_unlock(&ledger->lock);
    GAR_TRY(status);
    const int64_t devices = count_devices(wants, want_count);
    out->devices = gar_calloc(gar_max_i64(devices, 1), (int64_t)sizeof *out->devices);
    out->counts = gar_calloc(gar_max_i64(want_count, 1), (int64_t)sizeof *out->counts);
    if (out->devices == NULL || out->counts == NULL) {
        gar_placement_destroy(out);
        return gar_error_nomem(err, devices * (int64_t)sizeof *out->devices);
    }
    gar_mutex_lock(&ledger->lock);
    status = check_together_locked(ledger, wants, want_count, out->devices, out->counts, err);
    if (status == GAR_OK && !is_empty) {
        gar_ledger_state_copy(&ledger->synced.free, &ledger->synced.scratch);
        if (!gar_ledger_state_place_all(&ledger->synced.scratch, &ledger->synced.again, wants,
                                        want_count, out->devices, out->counts)) {
            status = GAR_PENDING;
        }
    }
    gar_mutex_unlock(&ledger->lock);
    if (status != GAR_OK) {
        gar_placement_destroy(out);
    }
    return status;
}

void gar_placement_destroy(struct gar_placement *placement)
{
    gar_free(placement->counts);
    gar_free(placement->devices);
    memset(placement, 0, sizeof *placement);
}

const int32_t *gar_placement_devices(const struct gar_placement *placement,
                                     const struct gar_ledger_want *wants, int64_t w, int64_t i)
{
    return placement->devices + gar_wants_device_offset(wants, w, i);
}

/* ---- grants --------------------------------------------------------------------------------- */

void gar_grant_release(struct gar_grant **grant_slot)
{
    struct gar_grant *grant = *grant_slot;
    if (grant == NULL) {
        return;
    }
    *grant_slot = NULL;
    struct gar_ledger *ledger = grant->ledger;
    GAR_TEST_POINT("ledger-release");
    gar_mutex_lock(&ledger->lock);
    if (grant->forks == ledger->synced.forks) {
        unlink_grant_locked(ledger, grant);
        gar_ledger_state_give(&ledger->synced.free, &grant->request, grant->devices);
        serve_locked(ledger);
    }
    gar_mutex_unlock(&ledger->lock);
    gar_free(grant);
    tell(ledger);
    gar_ledger_unref(ledger);
}

const struct gar_resource_request *gar_grant_request(const struct gar_grant *grant)
{
    return &grant->request;
}

int64_t gar_grant_device_count(const struct gar_grant *grant)
{
    return grant->device_count;
}

int32_t gar_grant_device(const struct gar_grant *grant, int64_t i)
{
    assert(i >= 0 && i < grant->device_count);
    return grant->devices[i];
}

const char *gar_grant_device_text(const struct gar_grant *grant, char *out, int64_t out_bytes)
{
    int64_t size = 0;
    out[0] = '\0';
    for (int64_t i = 0; i < grant->device_count && size < out_bytes - 1; i++) {
        const int added = snprintf(out + size, (size_t)(out_bytes - size), "%s%s", i > 0 ? "," : "",
                                   grant->ledger->list.devices[grant->devices[i]].name);
        size = gar_min_i64(size + gar_max_i64(added, 0), out_bytes - 1);
    }
    return out;
}

enum gar_status gar_grant_environment(const struct gar_grant *grant,
                                      struct gar_device_environment *out, struct gar_error *err)
{
    return gar_device_environment(&grant->ledger->list, grant->devices, grant->device_count, out,
                                  err);
}

void gar_grant_set_process(struct gar_grant *grant, int64_t process_id)
{
    gar_mutex_lock(&grant->ledger->lock);
    grant->process_id = process_id;
    gar_mutex_unlock(&grant->ledger->lock);
}

/* ---- devices that fail ---------------------------------------------------------------------- */

static void set_aside_locked(struct gar_ledger *ledger, int32_t device, const char *reason)
    GAR_REQUIRES(ledger->lock)
{
    struct gar_device_health *health = &ledger->synced.health[device];
    if (!ledger->synced.free.devices[device].is_set_aside) {
        ledger->synced.free.devices[device].is_set_aside = true;
        (void)snprintf(health->reason, sizeof health->reason, "%s", reason);
    }
}

void gar_ledger_set_aside(struct gar_ledger *ledger, int32_t device, const char *reason)
{
    assert(device >= 0 && device < ledger->list.count);
    gar_mutex_lock(&ledger->lock);
    set_aside_locked(ledger, device, reason);
    refuse_impossible_locked(ledger);
    serve_locked(ledger);
    gar_mutex_unlock(&ledger->lock);
    tell(ledger);
}

void gar_ledger_restore(struct gar_ledger *ledger, int32_t device)
{
    assert(device >= 0 && device < ledger->list.count);
    gar_mutex_lock(&ledger->lock);
    ledger->synced.free.devices[device].is_set_aside = false;
    memset(&ledger->synced.health[device], 0, sizeof ledger->synced.health[device]);
    serve_locked(ledger);
    gar_mutex_unlock(&ledger->lock);
    tell(ledger);
}

bool gar_ledger_is_set_aside(struct gar_ledger *ledger, int32_t device)
{
    assert(device >= 0 && device < ledger->list.count);
    gar_mutex_lock(&ledger->lock);
    const bool is_set_aside = ledger->synced.free.devices[device].is_set_aside;
    gar_mutex_unlock(&ledger->lock);
    return is_set_aside;
}

static bool is_listed(const struct gar_device_list *list, const char *uuid)
{
    for (int64_t d = 0; d < list->count; d++) {
        if (strncmp(list->devices[d].uuid, uuid, sizeof list->devices[d].uuid) == 0) {
            return true;
        }
    }
    return false;
}

enum gar_status gar_ledger_look_again(struct gar_ledger *ledger,
                                      const struct gar_device_search *search, int64_t *out_lost,
                                      struct gar_error *err)
{
    struct gar_device_list now;
    int64_t lost = 0;
    GAR_TRY(gar_nvml_list(search->nvml_path, search->timeout_ms, &now, err));
    for (int32_t d = 0; now.gpu_count >= 0 && d < ledger->list.count; d++) {
        const struct gar_device *device = &ledger->list.devices[d];
        if (device->vendor == GAR_VENDOR_NVIDIA && device->uuid[0] != '\0' &&
            !is_listed(&now, device->uuid) && !gar_ledger_is_set_aside(ledger, d)) {
            gar_ledger_set_aside(ledger, d, "the driver no longer lists it");
            lost++;
        }
    }
    gar_device_list_destroy(&now);
    if (out_lost != NULL) {
        *out_lost = lost;
    }
    return GAR_OK;
}

bool gar_ledger_report(struct gar_grant *grant, enum gar_device_error error, const char *why)
{
    enum { SUSPECTS_MAX = 2 };
    struct gar_ledger *ledger = grant->ledger;
    bool is_lost = false;
    gar_mutex_lock(&ledger->lock);
    for (int64_t i = 0; i < grant->device_count; i++) {
        struct gar_device_health *health = &ledger->synced.health[grant->devices[i]];
        if (error == GAR_DEVICE_FINE) {
            health->suspects = 0;
        } else if (error == GAR_DEVICE_SUSPECT) {
            health->suspects++;
        }
        if (error == GAR_DEVICE_LOST || health->suspects >= SUSPECTS_MAX) {
            set_aside_locked(ledger, grant->devices[i], why);
            is_lost = true;
        }
    }
    if (is_lost) {
        refuse_impossible_locked(ledger);
        serve_locked(ledger);
    }
    gar_mutex_unlock(&ledger->lock);
    tell(ledger);
    return is_lost;
}

/* ---- under the lock ------------------------------------------------------------------------- */

static struct gar_ledger_view view_locked(const struct gar_ledger *ledger)
{
    return (struct gar_ledger_view){
        .cpu_shares = ledger->cpu_shares,
        .memory_bytes = ledger->memory_bytes,
        .list = &ledger->list,
        .devices = ledger->synced.free.devices,
        .health = ledger->synced.health,
    };
}

/* Two processes that book the same devices in books of their own would give each twice. */
static enum gar_status check_fork_locked(const struct gar_ledger *ledger,
                                         const struct gar_ledger_want *wants, int64_t want_count,
                                         struct gar_error *err)
{
    for (int64_t w = 0; w < want_count; w++) {
        if (ledger->synced.forks > 0 && gar_request_device_count(&wants[w].request) > 0) {
            return gar_error_set(err, GAR_ERR_UNSUPPORTED,
                                 "'%s' asks for a GPU in a forked process, but the GPUs are booked "
                                 "in its parent; start a new process (spawn) instead",
                                 wants[w].holder);
        }
    }
    return GAR_OK;
}

static enum gar_status check_each_locked(const struct gar_ledger *ledger,
                                         const struct gar_ledger_want *wants, int64_t want_count,
                                         struct gar_error *err)
{
    const struct gar_ledger_view view = view_locked(ledger);
    for (int64_t w = 0; w < want_count; w++) {
        GAR_TRY(gar_want_check_possible(&view, &wants[w], err));
    }
    return GAR_OK;
}

/* All of them on a machine with nothing booked. */
static enum gar_status check_together_locked(struct gar_ledger *ledger,
                                             const struct gar_ledger_want *wants,
                                             int64_t want_count, int32_t *devices, int64_t *counts,
                                             struct gar_error *err)
{
    struct gar_ledger_state *empty = &ledger->synced.scratch;
    gar_ledger_state_copy(&ledger->synced.free, empty);
    gar_ledger_state_clear(empty, ledger->cpu_shares, ledger->memory_bytes);
    if (!gar_ledger_state_place_all(empty, &ledger->synced.again, wants, want_count, devices,
                                    counts)) {
        const struct gar_ledger_view view = view_locked(ledger);
        return gar_wants_refuse(&view, wants, want_count, err);
    }
    return GAR_OK;
}

/* Grants a waiting ticket, if it fits: state, grants, and what the ticket shows. */
static bool place_locked(struct gar_ledger *ledger, struct gar_ledger_wait *wait)
{
    struct gar_ledger_ticket *ticket = wait->ticket;
    gar_ledger_state_copy(&ledger->synced.free, &ledger->synced.scratch);
    if (!gar_ledger_state_place_all(&ledger->synced.scratch, &ledger->synced.again, wait->wants,
                                    wait->want_count, wait->devices, ticket->counts)) {
        return false;
    }
    gar_ledger_state_copy(&ledger->synced.scratch, &ledger->synced.free);
    int64_t prepared = 0;
    for (int64_t w = 0; w < wait->want_count; w++) {
        for (int64_t i = 0; i < ticket->counts[w]; i++) {
            /* Spare grants of earlier wants are swapped to the end. */
            struct gar_grant *grant = ticket->grants[prepared + i];
            ticket->grants[prepared + i] = ticket->grants[ticket->grant_count];
            ticket->grants[ticket->grant_count++] = grant;
            if (grant->device_count > 0) {
                memcpy(grant->devices, wait->devices + gar_wants_device_offset(wait->wants, w, i),
                       (size_t)grant->device_count * sizeof *grant->devices);
            }
            grant->ledger = gar_ledger_ref(ledger);
            grant->forks = ledger->synced.forks;
            grant->previous = NULL;
            grant->next = ledger->synced.grants;
            if (grant->next != NULL) {
                grant->next->previous = grant;
            }
            ledger->synced.grants = grant;
        }
        prepared += wait->wants[w].count;
    }
    return true;
}

static void unlink_grant_locked(struct gar_ledger *ledger, struct gar_grant *grant)
{
    if (grant->previous != NULL) {
        grant->previous->next = grant->next;
    } else {
        ledger->synced.grants = grant->next;
    }
    if (grant->next != NULL) {
        grant->next->previous = grant->previous;
    }
}

static void serve_locked(struct gar_ledger *ledger)
{
    uint32_t awaited = 0; /* kinds that an earlier ticket waits for */
    struct gar_ledger_wait *next;
    for (struct gar_ledger_wait *wait = ledger->synced.first; wait != NULL; wait = next) {
        next = wait->next;
        if ((wait->kinds & awaited) == 0 && place_locked(ledger, wait)) {
            finish_locked(ledger, wait, GAR_OK);
        } else {
            awaited |= wait->kinds;
        }
    }
}

/* The kinds that anybody waits for. */
static uint32_t awaited_locked(const struct gar_ledger *ledger)
{
    uint32_t awaited = 0;
    for (const struct gar_ledger_wait *wait = ledger->synced.first; wait != NULL;
         wait = wait->next) {
        awaited |= wait->kinds;
    }
    return awaited;
}

/* After a device was lost: whoever waits for what the machine no longer has. */
static void refuse_impossible_locked(struct gar_ledger *ledger)
{
    struct gar_ledger_wait *next;
    for (struct gar_ledger_wait *wait = ledger->synced.first; wait != NULL; wait = next) {
        next = wait->next;
        enum gar_status status =
            check_each_locked(ledger, wait->wants, wait->want_count, &wait->ticket->err);
        if (status == GAR_OK) {
            status = check_together_locked(ledger, wait->wants, wait->want_count, wait->devices,
                                           wait->ticket->counts, &wait->ticket->err);
        }
        if (status != GAR_OK) {
            finish_locked(ledger, wait, status);
        }
    }
}

static void enqueue_locked(struct gar_ledger *ledger, struct gar_ledger_wait *wait)
{
    wait->is_pending = true;
    wait->forks = ledger->synced.forks;
    wait->next = NULL;
    wait->previous = ledger->synced.last;
    if (wait->previous != NULL) {
        wait->previous->next = wait;
    } else {
        ledger->synced.first = wait;
    }
    ledger->synced.last = wait;
}

/* From the queue to the list of those to tell. */
static void finish_locked(struct gar_ledger *ledger, struct gar_ledger_wait *wait,
                          enum gar_status status)
{
    if (wait->previous != NULL) {
        wait->previous->next = wait->next;
    } else {
        ledger->synced.first = wait->next;
    }
    if (wait->next != NULL) {
        wait->next->previous = wait->previous;
    } else {
        ledger->synced.last = wait->previous;
    }
    tell_later_locked(ledger, wait, status);
}

static void tell_later_locked(struct gar_ledger *ledger, struct gar_ledger_wait *wait,
                              enum gar_status status)
{
    wait->is_pending = false;
    wait->status = status;
    wait->next = NULL;
    if (ledger->synced.told_last != NULL) {
        ledger->synced.told_last->next = wait;
    } else {
        ledger->synced.told_first = wait;
    }
    ledger->synced.told_last = wait;
}

/* ---- without the lock ----------------------------------------------------------------------- */

/* The caller holds a reference to the ledger. */
static void tell(struct gar_ledger *ledger)
{
    gar_mutex_lock(&ledger->lock);
    if (!ledger->synced.is_telling) {
        ledger->synced.is_telling = true;
        struct gar_ledger_wait *wait;
        while ((wait = ledger->synced.told_first) != NULL) {
            ledger->synced.told_first = wait->next;
            if (wait->next == NULL) {
                ledger->synced.told_last = NULL;
            }
            struct gar_ledger_ticket *ticket = wait->ticket;
            const enum gar_status status = wait->status;
            gar_mutex_unlock(&ledger->lock);
            GAR_TEST_POINT("ledger-tell");
            ticket->on_done(ticket, status);
            gar_mutex_lock(&ledger->lock);
        }
        ledger->synced.is_telling = false;
    }
    gar_mutex_unlock(&ledger->lock);
}

static int64_t count_devices(const struct gar_ledger_want *wants, int64_t want_count)
{
    int64_t count = 0;
    for (int64_t w = 0; w < want_count; w++) {
        count += wants[w].count * gar_request_device_count(&wants[w].request);
    }
    return count;
}

/* Everything that granting needs, so that it cannot fail later. On failure the ticket is half-built. */
static enum gar_status prepare(struct gar_ledger *ledger, const struct gar_ledger_want *wants,
                               int64_t want_count, struct gar_ledger_ticket *ticket,
                               struct gar_error *err)
{
    int64_t actors = 0;
    for (int64_t w = 0; w < want_count; w++) {
        actors += wants[w].count;
    }
    struct gar_ledger_wait *wait = gar_calloc(1, (int64_t)sizeof *wait);
    if (wait == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *wait);
    }
    ticket->wait = wait;
    wait->ticket = ticket;
    wait->ledger = gar_ledger_ref(ledger);
    const int64_t devices = gar_max_i64(count_devices(wants, want_count), 1);
    wait->devices = gar_calloc(devices, (int64_t)sizeof *wait->devices);
    wait->wants = gar_calloc(gar_max_i64(want_count, 1), (int64_t)sizeof *wait->wants);
    ticket->counts = gar_calloc(gar_max_i64(want_count, 1), (int64_t)sizeof *ticket->counts);
    ticket->grants = gar_calloc(gar_max_i64(actors, 1), (int64_t)sizeof *ticket->grants);
    ticket->grant_count = 0;
    if (wait->devices == NULL || wait->wants == NULL || ticket->counts == NULL ||
        ticket->grants == NULL) {
        return gar_error_nomem(err, devices * (int64_t)sizeof *wait->devices);
    }
    for (int64_t w = 0; w < want_count; w++) {
        wait->wants[w] = wants[w];
        wait->kinds |= gar_request_kinds(&wants[w].request);
    }
    wait->want_count = want_count;
    wait->actor_count = actors;
    return prepare_grants(wait, err);
}

static enum gar_status prepare_grants(struct gar_ledger_wait *wait, struct gar_error *err)
{
    int64_t prepared = 0;
    for (int64_t w = 0; w < wait->want_count; w++) {
        struct gar_ledger_want *want = &wait->wants[w];
        const int64_t devices = gar_request_device_count(&want->request);
        const char *holder = want->holder == NULL ? "" : want->holder;
        for (int64_t i = 0; i < want->count; i++) {
            struct gar_grant *grant =
                gar_calloc(1, (int64_t)sizeof *grant + devices * (int64_t)sizeof grant->devices[0]);
            if (grant == NULL) {
                return gar_error_nomem(err, (int64_t)sizeof *grant);
            }
            wait->ticket->grants[prepared++] = grant;
            grant->request = want->request;
            grant->device_count = devices;
            (void)snprintf(grant->holder, sizeof grant->holder, "%s", holder);
            want->holder = grant->holder; /* read only while all grants of the ticket are here */
        }
    }
    return GAR_OK;
}

/* Everything but grants that were given. */
static void free_wait(struct gar_ledger_ticket *ticket)
{
    struct gar_ledger_wait *wait = ticket->wait;
    if (wait != NULL) {
        assert(!wait->is_pending);
        for (int64_t i = ticket->grant_count; ticket->grants != NULL && i < wait->actor_count;
             i++) {
            gar_free(ticket->grants[i]);
        }
        gar_free(wait->devices);
        gar_free(wait->wants);
        gar_ledger_unref(wait->ledger);
        gar_free(wait);
    }
    gar_free(ticket->grants);
    gar_free(ticket->counts);
    ticket->wait = NULL;
    ticket->grants = NULL;
    ticket->counts = NULL;
    ticket->grant_count = 0;
}

/* ---- looking -------------------------------------------------------------------------------- */

/* A snapshot in one piece with the indexes that its holders point to. */
struct snapshot {
    struct gar_resources resources; /* first: what the caller sees */
    int32_t *indexes;               /* owned */
};

struct snapshot_size {
    int64_t holders;
    int64_t waiting;
    int64_t indexes;
};

static struct snapshot_size size_locked(const struct gar_ledger *ledger) GAR_REQUIRES(ledger->lock)
{
    struct snapshot_size size = {0, 0, 0};
    for (const struct gar_grant *grant = ledger->synced.grants; grant != NULL;
         grant = grant->next) {
        size.holders++;
        size.indexes += grant->device_count;
    }
    for (const struct gar_ledger_wait *wait = ledger->synced.first; wait != NULL;
         wait = wait->next) {
        size.waiting += wait->want_count;
    }
    return size;
}

static void fill_devices_locked(const struct gar_ledger *ledger, struct gar_resources *out)
    GAR_REQUIRES(ledger->lock)
{
    for (int64_t d = 0; d < ledger->list.count; d++) {
        const struct gar_device_state *state = &ledger->synced.free.devices[d];
        struct gar_resource_device *device = &out->devices[d];
        device->device = ledger->list.devices[d];
        device->free_shares = state->free_shares;
        device->free_memory_bytes = device->device.memory_bytes < 0 ? -1 : state->free_memory_bytes;
        device->is_set_aside = state->is_set_aside;
        memcpy(device->reason, ledger->synced.health[d].reason, sizeof device->reason);
    }
}

/* Oldest grant first. */
static void fill_locked(const struct gar_ledger *ledger, const struct snapshot_size *size,
                        struct snapshot *out) GAR_REQUIRES(ledger->lock)
{
    struct gar_resources *resources = &out->resources;
    resources->free_cpu_shares = ledger->synced.free.free_cpu_shares;
    resources->free_memory_bytes = ledger->synced.free.free_memory_bytes;
    fill_devices_locked(ledger, resources);
    int32_t *indexes = out->indexes;
    int64_t at = size->holders;
    for (const struct gar_grant *grant = ledger->synced.grants; grant != NULL;
         grant = grant->next) {
        struct gar_resource_holder *holder = &resources->holders[--at];
        memcpy(holder->name, grant->holder, sizeof holder->name);
        holder->process_id = grant->process_id;
        holder->request = grant->request;
        holder->count = 1;
        holder->device_count = grant->device_count;
        holder->devices = indexes;
        for (int64_t i = 0; i < grant->device_count; i++) {
            *indexes++ = grant->devices[i];
        }
    }
    for (const struct gar_ledger_wait *wait = ledger->synced.first; wait != NULL;
         wait = wait->next) {
        for (int64_t w = 0; w < wait->want_count; w++) {
            struct gar_resource_holder *holder = &resources->waiting[resources->waiting_count++];
            (void)snprintf(holder->name, sizeof holder->name, "%s", wait->wants[w].holder);
            holder->request = wait->wants[w].request;
            holder->count = wait->wants[w].count;
        }
    }
    resources->holder_count = size->holders;
}

enum gar_status gar_ledger_snapshot(struct gar_ledger *ledger, struct gar_resources **out,
                                    struct gar_error *err)
{
    struct snapshot *made = gar_calloc(1, (int64_t)sizeof *made);
    if (made == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *made);
    }
    struct gar_resources *resources = &made->resources;
    resources->cpu_shares = ledger->cpu_shares;
    resources->memory_bytes = ledger->memory_bytes;
    resources->device_count = ledger->list.count;
    memcpy(resources->warning, ledger->list.warning, sizeof resources->warning);
    resources->devices =
        gar_calloc(gar_max_i64(ledger->list.count, 1), (int64_t)sizeof *resources->devices);
    struct snapshot_size room = {0, 0, 0};
    bool is_filled = false;
    while (!is_filled) { /* again when more came while memory was taken */
        gar_free(resources->holders);
        gar_free(resources->waiting);
        gar_free(made->indexes);
        resources->holders = gar_calloc(room.holders + 1, (int64_t)sizeof *resources->holders);
        resources->waiting = gar_calloc(room.waiting + 1, (int64_t)sizeof *resources->waiting);
        made->indexes = gar_calloc(room.indexes + 1, (int64_t)sizeof *made->indexes);
        if (resources->devices == NULL || resources->holders == NULL ||
            resources->waiting == NULL || made->indexes == NULL) {
            gar_resources_free(resources);
            return gar_error_nomem(err, room.holders * (int64_t)sizeof *resources->holders);
        }
        gar_mutex_lock(&ledger->lock);
        const struct snapshot_size size = size_locked(ledger);
        is_filled = size.holders <= room.holders && size.waiting <= room.waiting &&
                    size.indexes <= room.indexes;
        if (is_filled) {
            fill_locked(ledger, &size, made);
        }
        gar_mutex_unlock(&ledger->lock);
        room = size;
    }
    *out = resources;
    return GAR_OK;
}

void gar_resources_free(struct gar_resources *resources)
{
    struct snapshot *made = (struct snapshot *)resources;
    if (made != NULL) {
        gar_free(resources->devices);
        gar_free(resources->holders);
        gar_free(resources->waiting);
        gar_free(made->indexes);
        gar_free(made);
    }
}

/* ---- the public functions ------------------------------------------------------------------- */

enum gar_status gar_resources_read(struct gar_resources **out, struct gar_error *err)
{
    struct gar_ledger *ledger = gar_ledger_process(err);
    return ledger == NULL ? GAR_ERR_NOMEM : gar_ledger_snapshot(ledger, out, err);
}

enum gar_status gar_resources_look_again(struct gar_error *err)
{
    struct gar_ledger *ledger = gar_ledger_process(err);
    struct gar_device_search search;
    gar_device_search_init(&search);
    return ledger == NULL ? GAR_ERR_NOMEM : gar_ledger_look_again(ledger, &search, NULL, err);
}

static enum gar_status find_device(struct gar_ledger **out_ledger, const char *name,
                                   int32_t *out_device, struct gar_error *err)
{
    struct gar_ledger *ledger = gar_ledger_process(err);
    if (ledger == NULL) {
        return GAR_ERR_NOMEM;
    }
    for (int64_t d = 0; d < ledger->list.count; d++) {
        if (strcmp(ledger->list.devices[d].name, name) == 0) {
            *out_ledger = ledger;
            *out_device = (int32_t)d;
            return GAR_OK;
        }
    }
    char quoted[GAR_DEVICE_TEXT_BYTES];
    return gar_error_set(
        err, GAR_ERR_VALUE, "there is no device '%s'; this process has %lld",
        gar_error_quote(name, (int64_t)strlen(name), quoted, (int64_t)sizeof quoted),
        (long long)ledger->list.count);
}

enum gar_status gar_resources_set_aside(const char *device, const char *reason,
                                        struct gar_error *err)
{
    struct gar_ledger *ledger = NULL;
    int32_t index = 0;
    GAR_TRY(find_device(&ledger, device, &index, err));
    gar_ledger_set_aside(ledger, index, reason);
    return GAR_OK;
}

enum gar_status gar_resources_restore(const char *device, struct gar_error *err)
{
    struct gar_ledger *ledger = NULL;
    int32_t index = 0;
    GAR_TRY(find_device(&ledger, device, &index, err));
    gar_ledger_restore(ledger, index);
    return GAR_OK;
}
