/* SPDX-License-Identifier: Apache-2.0 */
/* What can never be granted, in words: what was asked, what the machine has, what is set aside, what to do. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "resources/ledger_priv.h"

/* Text that is cut where it does not fit. */
struct text {
    char data[640];
    int64_t size;
};

static void add(struct text *text, const char *format, ...) GAR_PRINTF(2, 3);
static enum gar_status check_gpus(const struct gar_ledger_view *view,
                                  const struct gar_ledger_want *want, struct gar_error *err);
static enum gar_status check_gpu_memory(const struct gar_ledger_view *view,
                                        const struct gar_ledger_want *want, int64_t needed,
                                        struct gar_error *err);
static void add_holder(struct text *text, const struct gar_ledger_want *want);
static void add_troubles(struct text *text, const struct gar_ledger_view *view);
static void add_machine(struct text *text, const struct gar_ledger_view *view);

enum gar_status gar_wants_check(const struct gar_ledger_want *wants, int64_t want_count,
                                struct gar_error *err)
{
    int64_t actors = 0;
    for (int64_t w = 0; w < want_count; w++) {
        GAR_TRY(gar_resource_request_check(&wants[w].request, err));
        if (wants[w].count < 1 || wants[w].count_min < 0 || wants[w].count_min > wants[w].count) {
            return gar_error_set(
                err, GAR_ERR_VALUE,
                "'%s' asks for %lld actors and at least %lld; a pool has 1 or more",
                wants[w].holder, (long long)wants[w].count, (long long)wants[w].count_min);
        }
        if (wants[w].count > GAR_WANTED_MAX - actors) {
            return gar_error_set(err, GAR_ERR_VALUE,
                                 "'%s' asks for %lld actors; all pools of a query have at most %d",
                                 wants[w].holder, (long long)wants[w].count, (int)GAR_WANTED_MAX);
        }
        actors += wants[w].count;
    }
    return GAR_OK;
}

enum gar_status gar_want_check_possible(const struct gar_ledger_view *view,
                                        const struct gar_ledger_want *want, struct gar_error *err)
{
    struct text tail = {.size = 0};
    char asked[32];
    char found[32];
    add_holder(&tail, want);
    if (want->request.cpu_shares > view->cpu_shares) {
        return gar_error_set(
            err, GAR_ERR_VALUE, "Requested %s CPUs but found only %s available%s",
            gar_shares_text(want->request.cpu_shares, asked, (int64_t)sizeof asked),
            gar_shares_text(view->cpu_shares, found, (int64_t)sizeof found), tail.data);
    }
    if (want->request.memory_bytes > view->memory_bytes) {
        return gar_error_set(
            err, GAR_ERR_VALUE,
            "Requested %lld bytes of memory (%s) but found only %lld (%s) available%s",
            (long long)want->request.memory_bytes,
            gar_bytes_text(want->request.memory_bytes, asked, (int64_t)sizeof asked),
            (long long)view->memory_bytes,
            gar_bytes_text(view->memory_bytes, found, (int64_t)sizeof found), tail.data);
    }
    return check_gpus(view, want, err);
}

enum gar_status gar_wants_refuse(const struct gar_ledger_view *view,
                                 const struct gar_ledger_want *wants, int64_t want_count,
                                 struct gar_error *err)
{
    struct text text = {.size = 0};
    int64_t actors = 0;
    for (int64_t w = 0; w < want_count; w++) {
        char request[160];
        const int64_t least = wants[w].count_min > 0 ? wants[w].count_min : wants[w].count;
        actors += least;
        add(&text, "%s%lld of '%s' with %s each", w > 0 ? ", " : "", (long long)least,
            wants[w].holder,
            gar_resource_request_text(&wants[w].request, request, (int64_t)sizeof request));
    }
    add(&text, "; the machine has ");
    add_machine(&text, view);
    if (want_count > 1) {
        add(&text, "; they run at the same time: ask for fractions or fewer actors, or collect "
                   "between them");
    } else {
        add(&text, "; ask for fewer actors or smaller shares, or use max_concurrency=\"auto\"");
    }
    return gar_error_set(err, GAR_ERR_VALUE,
                         "Not enough resources available to admit %lld actors: %s",
                         (long long)actors, text.data);
}

static enum gar_status check_gpus(const struct gar_ledger_view *view,
                                  const struct gar_ledger_want *want, struct gar_error *err)
{
    const int64_t needed = gar_request_device_count(&want->request);
    int64_t usable = 0;
    bool has_slices = false;
    for (int64_t d = 0; d < view->list->count; d++) {
        const bool is_slice = needed > 1 && view->list->devices[d].is_slice;
        has_slices = has_slices || is_slice;
        usable += !view->devices[d].is_set_aside && !is_slice;
    }
    if (needed > usable) {
        struct text tail = {.size = 0};
        char asked[32];
        add_holder(&tail, want);
        if (has_slices) {
            add(&tail, "; a process can use only one slice of a split GPU");
        }
        add_troubles(&tail, view);
        return gar_error_set(
            err, GAR_ERR_VALUE, "Requested %s GPUs but found only %lld available%s",
            gar_shares_text(want->request.gpu_shares > 0 ? want->request.gpu_shares : GAR_SHARES,
                            asked, (int64_t)sizeof asked),
            (long long)usable, tail.data);
    }
    return want->request.gpu_memory_bytes > 0 ? check_gpu_memory(view, want, needed, err) : GAR_OK;
}

static enum gar_status check_gpu_memory(const struct gar_ledger_view *view,
                                        const struct gar_ledger_want *want, int64_t needed,
                                        struct gar_error *err)
{
    int64_t fitting = 0;
    int64_t largest = -1;
    for (int64_t d = 0; d < view->list->count; d++) {
        const struct gar_device *device = &view->list->devices[d];
        if (!view->devices[d].is_set_aside && !(needed > 1 && device->is_slice)) {
            fitting += device->memory_bytes >= want->request.gpu_memory_bytes;
            largest = gar_max_i64(largest, device->memory_bytes);
        }
    }
    if (fitting >= needed) {
        return GAR_OK;
    }
    struct text tail = {.size = 0};
    char asked[32];
    char found[32];
    add_holder(&tail, want);
    (void)gar_bytes_text(want->request.gpu_memory_bytes, asked, (int64_t)sizeof asked);
    if (largest < 0) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "Requested %s of GPU memory, but the memory of the devices is not "
                             "known: %s%s",
                             asked, view->list->memory_reason, tail.data);
    }
    add_troubles(&tail, view);
    if (fitting > 0) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "Requested %lld GPUs with %s of memory each but found only %lld such "
                             "devices available%s",
                             (long long)needed, asked, (long long)fitting, tail.data);
    }
    return gar_error_set(
        err, GAR_ERR_VALUE,
        "Requested %s of GPU memory but found only %s available on the largest device%s", asked,
        gar_bytes_text(largest, found, (int64_t)sizeof found), tail.data);
}

static void add(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int64_t room = (int64_t)sizeof text->data - text->size;
    const int size = vsnprintf(text->data + text->size, (size_t)room, format, args);
    va_end(args);
    text->size += gar_min_i64(gar_max_i64(size, 0), room - 1);
}

static void add_holder(struct text *text, const struct gar_ledger_want *want)
{
    if (want->holder != NULL && want->holder[0] != '\0') {
        add(text, " (for '%s')", want->holder);
    }
}

static void add_troubles(struct text *text, const struct gar_ledger_view *view)
{
    for (int64_t d = 0; d < view->list->count; d++) {
        if (view->devices[d].is_set_aside) {
            add(text, "; device '%s' is set aside: %s", view->list->devices[d].name,
                view->health[d].reason);
        }
    }
    if (view->list->warning[0] != '\0') {
        add(text, "; %s", view->list->warning);
    }
}

static void add_machine(struct text *text, const struct gar_ledger_view *view)
{
    char amount[32];
    add(text, "%s CPUs", gar_shares_text(view->cpu_shares, amount, (int64_t)sizeof amount));
    add(text, ", %s of memory", gar_bytes_text(view->memory_bytes, amount, (int64_t)sizeof amount));
    int64_t usable = 0;
    for (int64_t d = 0; d < view->list->count; d++) {
        usable += !view->devices[d].is_set_aside;
    }
    add(text, ", %lld GPUs", (long long)usable);
    int64_t shown = 0;
    for (int64_t d = 0; d < view->list->count; d++) {
        if (!view->devices[d].is_set_aside && shown < 9) {
            add(text, "%s%s", shown == 0 ? " (" : ", ",
                shown < 8 ? view->list->devices[d].name : "...");
            shown++;
        }
    }
    add(text, "%s", shown > 0 ? ")" : "");
    add_troubles(text, view);
}
