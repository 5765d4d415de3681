/* SPDX-License-Identifier: Apache-2.0 */
/* Where wants go: as the rules say, one after the other. Several wants of different shares may fit although this order
 * does not find it; then the hardest are placed first, and at last a bounded search tries all ways. */
#include <string.h>

#include "resources/ledger_priv.h"

static bool place_whole(struct gar_ledger_state *state, const struct gar_resource_request *request,
                        int64_t count, int32_t *devices);
static bool place_part(struct gar_ledger_state *state, const struct gar_resource_request *request,
                       enum gar_gpu_strategy strategy, int32_t *out_device);
static bool fits_part(const struct gar_device_state *device,
                      const struct gar_resource_request *request);
static void book_part(struct gar_device_state *device, const struct gar_resource_request *request,
                      int64_t sign);
static bool is_whole_free(const struct gar_ledger_state *state, int64_t device);
static bool is_better(const struct gar_device_state *a, const struct gar_device_state *b,
                      const struct gar_resource_request *request, enum gar_gpu_strategy strategy);
static bool place_least(struct gar_ledger_state *state, const struct gar_ledger_want *want,
                        int32_t *devices, int64_t *count);
static bool place_in_order(struct gar_ledger_state *state, const struct gar_ledger_want *wants,
                           int64_t want_count, int32_t *devices, int64_t *counts);
static bool place_hardest_first(struct gar_ledger_state *state, const struct gar_ledger_want *wants,
                                int64_t want_count, int32_t *devices, int64_t *counts);
static bool place_by_search(struct gar_ledger_state *state, const struct gar_ledger_want *wants,
                            int64_t want_count, int32_t *devices, int64_t *counts);
static int64_t next_hardest(const struct gar_ledger_want *wants, int64_t want_count,
                            const int64_t *counts);
static bool is_harder(const struct gar_ledger_want *wants, int64_t a, int64_t b);
static void place_more(struct gar_ledger_state *state, const struct gar_ledger_want *wants,
                       int64_t want_count, int32_t *devices, int64_t *counts);

uint32_t gar_request_kinds(const struct gar_resource_request *request)
{
    return (request->cpu_shares > 0 ? (uint32_t)GAR_KIND_CPU : 0u) |
           (request->memory_bytes > 0 ? (uint32_t)GAR_KIND_MEMORY : 0u) |
           (gar_request_device_count(request) > 0 ? (uint32_t)GAR_KIND_GPU : 0u);
}

int64_t gar_request_device_count(const struct gar_resource_request *request)
{
    if (request->gpu_shares > GAR_SHARES) {
        return request->gpu_shares / GAR_SHARES;
    }
    return request->gpu_shares > 0 || request->gpu_memory_bytes > 0 ? 1 : 0;
}

int64_t gar_device_memory(const struct gar_device *device)
{
    return gar_max_i64(device->memory_bytes, 0);
}

void gar_ledger_state_copy(const struct gar_ledger_state *from, struct gar_ledger_state *to)
{
    to->free_cpu_shares = from->free_cpu_shares;
    to->free_memory_bytes = from->free_memory_bytes;
    to->device_count = from->device_count;
    to->machine = from->machine;
    if (from->device_count > 0) {
        memcpy(to->devices, from->devices, (size_t)from->device_count * sizeof *from->devices);
    }
}

void gar_ledger_state_clear(struct gar_ledger_state *state, int64_t cpu_shares,
                            int64_t memory_bytes)
{
    state->free_cpu_shares = cpu_shares;
    state->free_memory_bytes = memory_bytes;
    for (int64_t d = 0; d < state->device_count; d++) {
        state->devices[d].free_shares = GAR_SHARES;
        state->devices[d].free_memory_bytes = gar_device_memory(&state->machine[d]);
    }
}

bool gar_ledger_state_place(struct gar_ledger_state *state,
                            const struct gar_resource_request *request,
                            enum gar_gpu_strategy strategy, int32_t *devices)
{
    if (gar_max_i64(request->cpu_shares, 0) > state->free_cpu_shares ||
        gar_max_i64(request->memory_bytes, 0) > state->free_memory_bytes) {
        return false;
    }
    const int64_t count = gar_request_device_count(request);
    if (request->gpu_shares >= GAR_SHARES) {
        if (!place_whole(state, request, count, devices)) {
            return false;
        }
    } else if (count > 0 && !place_part(state, request, strategy, devices)) {
        return false;
    }
    state->free_cpu_shares -= gar_max_i64(request->cpu_shares, 0);
    state->free_memory_bytes -= gar_max_i64(request->memory_bytes, 0);
    return true;
}

void gar_ledger_state_give(struct gar_ledger_state *state,
                           const struct gar_resource_request *request, const int32_t *devices)
{
    state->free_cpu_shares += gar_max_i64(request->cpu_shares, 0);
    state->free_memory_bytes += gar_max_i64(request->memory_bytes, 0);
    const int64_t count = gar_request_device_count(request);
    for (int64_t i = 0; i < count; i++) {
        struct gar_device_state *device = &state->devices[devices[i]];
        if (request->gpu_shares >= GAR_SHARES) {
            device->free_shares = GAR_SHARES;
            device->free_memory_bytes = gar_device_memory(&state->machine[devices[i]]);
        } else {
            device->free_shares += gar_max_i64(request->gpu_shares, 0);
            device->free_memory_bytes += gar_max_i64(request->gpu_memory_bytes, 0);
        }
    }
}

/* Devices that are entirely free, in order; two or more only of whole GPUs. */
static bool place_whole(struct gar_ledger_state *state, const struct gar_resource_request *request,
                        int64_t count, int32_t *devices)
{
    int64_t found = 0;
    for (int64_t d = 0; d < state->device_count && found < count; d++) {
        if (is_whole_free(state, d) &&
            state->devices[d].free_memory_bytes >= request->gpu_memory_bytes &&
            !(count > 1 && state->machine[d].is_slice)) {
            devices[found++] = (int32_t)d;
        }
    }
    if (found < count) {
        return false;
    }
    for (int64_t i = 0; i < count; i++) {
        state->devices[devices[i]].free_shares = 0;
        state->devices[devices[i]].free_memory_bytes = 0;
    }
    return true;
}

/* A share, memory, or both, on one device. A device whose share is all given has nothing more to give. */
static bool place_part(struct gar_ledger_state *state, const struct gar_resource_request *request,
                       enum gar_gpu_strategy strategy, int32_t *out_device)
{
    int64_t best = -1;
    for (int64_t d = 0; d < state->device_count; d++) {
        const struct gar_device_state *device = &state->devices[d];
        if (fits_part(device, request) &&
            (best < 0 || is_better(device, &state->devices[best], request, strategy))) {
            best = d;
        }
    }
    if (best < 0) {
        return false;
    }
    book_part(&state->devices[best], request, 1);
    *out_device = (int32_t)best;
    return true;
}

static bool is_whole_free(const struct gar_ledger_state *state, int64_t device)
{
    return !state->devices[device].is_set_aside &&
           state->devices[device].free_shares == GAR_SHARES &&
           state->devices[device].free_memory_bytes == gar_device_memory(&state->machine[device]);
}

/* By what was asked: the share first, then memory; the first in order wins a tie. */
static bool is_better(const struct gar_device_state *a, const struct gar_device_state *b,
                      const struct gar_resource_request *request, enum gar_gpu_strategy strategy)
{
    int64_t less = 0;
    if (request->gpu_shares > 0) {
        less = b->free_shares - a->free_shares;
    }
    if (less == 0) {
        less = b->free_memory_bytes - a->free_memory_bytes;
    }
    return strategy == GAR_GPU_PACK ? less > 0 : less < 0;
}

int64_t gar_wants_device_offset(const struct gar_ledger_want *wants, int64_t w, int64_t i)
{
    int64_t offset = 0;
    for (int64_t before = 0; before < w; before++) {
        offset += wants[before].count * gar_request_device_count(&wants[before].request);
    }
    return offset + i * gar_request_device_count(&wants[w].request);
}

bool gar_ledger_state_place_all(struct gar_ledger_state *state, struct gar_ledger_state *again,
                                const struct gar_ledger_want *wants, int64_t want_count,
                                int32_t *devices, int64_t *counts)
{
    gar_ledger_state_copy(state, again);
    if (place_in_order(state, wants, want_count, devices, counts)) {
        place_more(state, wants, want_count, devices, counts);
        return true;
    }
    if (want_count == 1) { /* equal actors: no order is better than another */
        return false;
    }
    gar_ledger_state_copy(again, state);
    if (place_hardest_first(state, wants, want_count, devices, counts)) {
        place_more(state, wants, want_count, devices, counts);
        return true;
    }
    gar_ledger_state_copy(again, state);
    if (place_by_search(state, wants, want_count, devices, counts)) {
        place_more(state, wants, want_count, devices, counts);
        return true;
    }
    return false;
}

static bool place_least(struct gar_ledger_state *state, const struct gar_ledger_want *want,
                        int32_t *devices, int64_t *count)
{
    const int64_t least = want->count_min > 0 ? want->count_min : want->count;
    const int64_t stride = gar_request_device_count(&want->request);
    for (*count = 0; *count < least; (*count)++) {
        if (!gar_ledger_state_place(state, &want->request, want->strategy,
                                    devices + *count * stride)) {
            return false;
        }
    }
    return true;
}

static bool place_in_order(struct gar_ledger_state *state, const struct gar_ledger_want *wants,
                           int64_t want_count, int32_t *devices, int64_t *counts)
{
    for (int64_t w = 0; w < want_count; w++) {
        if (!place_least(state, &wants[w], devices + gar_wants_device_offset(wants, w, 0),
                         &counts[w])) {
            return false;
        }
    }
    return true;
}

/* Each time the hardest of those that are left; counts -1 marks these. */
static bool place_hardest_first(struct gar_ledger_state *state, const struct gar_ledger_want *wants,
                                int64_t want_count, int32_t *devices, int64_t *counts)
{
    for (int64_t w = 0; w < want_count; w++) {
        counts[w] = -1;
    }
    for (int64_t placed = 0; placed < want_count; placed++) {
        const int64_t hardest = next_hardest(wants, want_count, counts);
        if (!place_least(state, &wants[hardest],
                         devices + gar_wants_device_offset(wants, hardest, 0), &counts[hardest])) {
            return false;
        }
    }
    return true;
}

/* The hardest want whose count is -1. */
static int64_t next_hardest(const struct gar_ledger_want *wants, int64_t want_count,
                            const int64_t *counts)
{
    int64_t hardest = -1;
    for (int64_t w = 0; w < want_count; w++) {
        if (counts[w] < 0 && (hardest < 0 || is_harder(wants, w, hardest))) {
            hardest = w;
        }
    }
    return hardest;
}

/* ---- search ---------------------------------------------------------------------------------- */

enum { SEARCH_ACTORS_MAX = 48, SEARCH_STEPS_MAX = 20000 };

/* Actors that ask a part of a device, and which one each has. */
struct search {
    int64_t count;
    int64_t wants[SEARCH_ACTORS_MAX];
    int32_t *slots[SEARCH_ACTORS_MAX]; /* where its device is written */
    int64_t devices[SEARCH_ACTORS_MAX];
};

/* Everything that has no choice: whole devices, and what asks for none. Parts are collected, hardest first, and their
 * CPUs and memory booked. False: no use to search. */
static bool prepare_search(struct gar_ledger_state *state, const struct gar_ledger_want *wants,
                           int64_t want_count, int32_t *devices, int64_t *counts,
                           struct search *search)
{
    for (int64_t w = 0; w < want_count; w++) {
        counts[w] = -1;
    }
    for (int64_t done = 0; done < want_count; done++) {
        const int64_t w = next_hardest(wants, want_count, counts);
        const struct gar_resource_request *request = &wants[w].request;
        int32_t *slots = devices + gar_wants_device_offset(wants, w, 0);
        if (request->gpu_shares >= GAR_SHARES || gar_request_device_count(request) == 0) {
            if (!place_least(state, &wants[w], slots, &counts[w])) {
                return false;
            }
            continue;
        }
        struct gar_resource_request rest = *request;
        rest.gpu_shares = 0;
        rest.gpu_memory_bytes = 0;
        const int64_t least = wants[w].count_min > 0 ? wants[w].count_min : wants[w].count;
        for (counts[w] = 0; counts[w] < least; counts[w]++) {
            if (search->count == SEARCH_ACTORS_MAX ||
                !gar_ledger_state_place(state, &rest, wants[w].strategy, NULL)) {
                return false;
            }
            search->wants[search->count] = w;
            search->slots[search->count] = slots + counts[w];
            search->count++;
        }
    }
    return true;
}

static bool fits_part(const struct gar_device_state *device,
                      const struct gar_resource_request *request)
{
    return !device->is_set_aside && device->free_shares >= gar_max_i64(request->gpu_shares, 1) &&
           device->free_memory_bytes >= request->gpu_memory_bytes;
}

static void book_part(struct gar_device_state *device, const struct gar_resource_request *request,
                      int64_t sign)
{
    device->free_shares -= sign * gar_max_i64(request->gpu_shares, 0);
    device->free_memory_bytes -= sign * gar_max_i64(request->gpu_memory_bytes, 0);
}

/* Depth first over the devices of each actor; of equal actors the later one never has an earlier device. */
static bool place_by_search(struct gar_ledger_state *state, const struct gar_ledger_want *wants,
                            int64_t want_count, int32_t *devices, int64_t *counts)
{
    struct search search = {.count = 0};
    if (!prepare_search(state, wants, want_count, devices, counts, &search)) {
        return false;
    }
    int64_t at = 0;
    int64_t next = 0; /* the device to try for the actor at hand */
    for (int64_t steps = 0; at < search.count && steps < SEARCH_STEPS_MAX; steps++) {
        const struct gar_resource_request *request = &wants[search.wants[at]].request;
        while (next < state->device_count && !fits_part(&state->devices[next], request)) {
            next++;
        }
        if (next < state->device_count) {
            book_part(&state->devices[next], request, 1);
            search.devices[at] = next;
            *search.slots[at] = (int32_t)next;
            at++;
            const bool is_equal = at < search.count && search.wants[at] == search.wants[at - 1];
            next = is_equal ? search.devices[at - 1] : 0;
        } else if (at > 0) { /* the one before must go elsewhere */
            at--;
            book_part(&state->devices[search.devices[at]], &wants[search.wants[at]].request, -1);
            next = search.devices[at] + 1;
        } else {
            return false;
        }
    }
    return at == search.count;
}

/* Many whole devices before one, one before shares, large shares before small ones, then memory. */
static bool is_harder(const struct gar_ledger_want *wants, int64_t a, int64_t b)
{
    const struct gar_resource_request *x = &wants[a].request;
    const struct gar_resource_request *y = &wants[b].request;
    if (x->gpu_shares != y->gpu_shares) {
        return x->gpu_shares > y->gpu_shares;
    }
    return x->gpu_memory_bytes > y->gpu_memory_bytes;
}

/* One more for each want that may have more, round after round, until nothing fits. */
static void place_more(struct gar_ledger_state *state, const struct gar_ledger_want *wants,
                       int64_t want_count, int32_t *devices, int64_t *counts)
{
    bool has_placed = true;
    while (has_placed) {
        has_placed = false;
        for (int64_t w = 0; w < want_count; w++) {
            if (counts[w] < wants[w].count &&
                gar_ledger_state_place(state, &wants[w].request, wants[w].strategy,
                                       devices + gar_wants_device_offset(wants, w, counts[w]))) {
                counts[w]++;
                has_placed = true;
            }
        }
    }
}
