/* SPDX-License-Identifier: Apache-2.0 */
/* The pure part of the ledger: what is free, and where wants go. No lock, no allocation. */
#ifndef GAR_RESOURCES_LEDGER_PRIV_H
#define GAR_RESOURCES_LEDGER_PRIV_H

#include "resources/ledger.h"

enum { GAR_WANTED_MAX = 65536 }; /* of one acquisition */

struct gar_device_state {
    int64_t free_shares;
    int64_t free_memory_bytes; /* 0 where the device's memory is not known */
    bool is_set_aside;
};

/* What is free, and the machine it is free on. */
struct gar_ledger_state {
    int64_t free_cpu_shares;
    int64_t free_memory_bytes;
    struct gar_device_state *devices; /* owned by the ledger */
    int64_t device_count;
    const struct gar_device *machine; /* borrowed; device_count items */
};

/* Kinds of resources, as bits. */
enum { GAR_KIND_CPU = 1, GAR_KIND_MEMORY = 2, GAR_KIND_GPU = 4 };
uint32_t gar_request_kinds(const struct gar_resource_request *request);

/* All of a device's memory, 0 where it is not known. */
int64_t gar_device_memory(const struct gar_device *device);

/* Copies what is free; `to` has room for the devices. */
void gar_ledger_state_copy(const struct gar_ledger_state *from, struct gar_ledger_state *to);
/* Nothing booked; devices that are set aside stay so. */
void gar_ledger_state_clear(struct gar_ledger_state *state, int64_t cpu_shares,
                            int64_t memory_bytes);
/* Book one actor: devices (gar_request_device_count items) are chosen here. False: it does not fit, state untouched. */
bool gar_ledger_state_place(struct gar_ledger_state *state,
                            const struct gar_resource_request *request,
                            enum gar_gpu_strategy strategy, int32_t *devices);
/* Undo it. */
void gar_ledger_state_give(struct gar_ledger_state *state,
                           const struct gar_resource_request *request, const int32_t *devices);

/* Where the devices of actor i of want w begin in a flat array: the actors of a want follow each other, each with
 * gar_request_device_count items. */
int64_t gar_wants_device_offset(const struct gar_ledger_want *wants, int64_t w, int64_t i);
/* Place all wants or nothing (state is then spoiled: work on a copy). counts[w]: actors placed. First the least that
 * each want needs, in the order given; if that fails, the hardest to place first; if that fails, by a bounded search.
 * Then as many more as fit, in turn. `again` has room for a copy of the state. */
bool gar_ledger_state_place_all(struct gar_ledger_state *state, struct gar_ledger_state *again,
                                const struct gar_ledger_want *wants, int64_t want_count,
                                int32_t *devices, int64_t *counts);

/* What a message about the machine needs. */
struct gar_device_health {
    char reason[GAR_DEVICE_TEXT_BYTES]; /* why it was set aside */
    int64_t suspects;                   /* in a row */
};
struct gar_ledger_view {
    int64_t cpu_shares;
    int64_t memory_bytes;
    const struct gar_device_list *list;
    const struct gar_device_state *devices; /* only is_set_aside is read */
    const struct gar_device_health *health;
};

/* Legal amounts and counts, whatever the machine. */
GAR_MUST_USE enum gar_status gar_wants_check(const struct gar_ledger_want *wants,
                                             int64_t want_count, struct gar_error *err);
/* What the machine could never give to one actor of the want. */
GAR_MUST_USE enum gar_status gar_want_check_possible(const struct gar_ledger_view *view,
                                                     const struct gar_ledger_want *want,
                                                     struct gar_error *err);
/* The message for wants that fit one by one, but never together. */
enum gar_status gar_wants_refuse(const struct gar_ledger_view *view,
                                 const struct gar_ledger_want *wants, int64_t want_count,
                                 struct gar_error *err);

#endif
