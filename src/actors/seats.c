/* SPDX-License-Identifier: Apache-2.0 */
/* Seats from grants. */
#include "actors/seats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "os/limits.h"

/* What libraries read to know how many threads to start, before they are loaded. */
static const char *const thread_variables[] = {
    "OMP_NUM_THREADS",     "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS", "BLIS_NUM_THREADS",     "RAYON_NUM_THREADS",
};
enum {
    THREAD_VARIABLES = sizeof thread_variables / sizeof thread_variables[0],
    THREAD_TEXT_BYTES = 40,
    DEVICE_TEXT_BYTES = 256,
    ENTRIES_MAX = THREAD_VARIABLES + 4 + 1,
};

struct seat_texts {
    struct gar_device_environment devices; /* owned */
    char threads[THREAD_VARIABLES][THREAD_TEXT_BYTES];
    char names[DEVICE_TEXT_BYTES];
    const char *entries[ENTRIES_MAX];
};

static void release_grant(void *context)
{
    struct gar_grant *grant = context;
    gar_grant_release(&grant);
}

static void set_process(void *context, int64_t pid)
{
    gar_grant_set_process(context, pid);
}

static enum gar_device_error judge_grant(void *context, int32_t exit_code, int32_t signal_number,
                                         const char *text, bool *out_is_aside, const char **out_why)
{
    const enum gar_device_error error =
        gar_device_error_classify(exit_code, signal_number, text, out_why);
    *out_is_aside = gar_ledger_report(context, error, *out_why != NULL ? *out_why : "");
    return error;
}

/* Threads that an actor may start; 0: what its libraries like (the user has said it). */
static int64_t threads_of(const struct gar_grant *grant, int32_t count, const char *variable)
{
    const struct gar_resource_request *request = grant != NULL ? gar_grant_request(grant) : NULL;
    if (request != NULL && request->cpu_shares > 0) {
        return gar_max_i64(request->cpu_shares / GAR_SHARES, 1);
    }
    if (getenv(variable) != NULL) {
        return 0;
    }
    return gar_max_i64(gar_os_limits()->cpus / count, 1);
}

static enum gar_status fill_seat(struct gar_grant *grant, int32_t count, bool inherits_devices,
                                 struct seat_texts *texts, struct gar_actor_seat *seat,
                                 struct gar_error *err)
{
    int64_t used = 0;
    if (!inherits_devices && grant == NULL) { /* none, for every kind of device */
        texts->entries[used++] = "CUDA_VISIBLE_DEVICES=";
        texts->entries[used++] = "HIP_VISIBLE_DEVICES=-1";
    } else if (!inherits_devices) {
        GAR_TRY(gar_grant_environment(grant, &texts->devices, err));
        for (int64_t i = 0; i < texts->devices.count; i++) {
            texts->entries[used++] = texts->devices.entries[i];
        }
    }
    for (int32_t i = 0; i < THREAD_VARIABLES; i++) {
        const int64_t threads = threads_of(grant, count, thread_variables[i]);
        if (threads > 0) {
            (void)snprintf(texts->threads[i], THREAD_TEXT_BYTES, "%s=%lld", thread_variables[i],
                           (long long)threads);
            texts->entries[used++] = texts->threads[i];
        }
    }
    texts->entries[used] = NULL;
    seat->environment = texts->entries;
    if (grant != NULL && gar_grant_device_count(grant) > 0) {
        seat->device = gar_grant_device_text(grant, texts->names, DEVICE_TEXT_BYTES);
        seat->judge = judge_grant;
    }
    return GAR_OK;
}

enum gar_status gar_actor_seats_new(struct gar_grant **grants, int32_t count, bool inherits_devices,
                                    struct gar_actor_seats *out, struct gar_error *err)
{
    struct gar_actor_seats made = {
        .seats = gar_calloc(count, (int64_t)sizeof made.seats[0]),
        .texts = gar_calloc(count, (int64_t)sizeof made.texts[0]),
        .count = count,
    };
    enum gar_status status = made.seats == NULL || made.texts == NULL
                                 ? gar_error_nomem(err, count * (int64_t)sizeof made.texts[0])
                                 : GAR_OK;
    for (int32_t i = 0; status >= 0 && i < count; i++) {
        status = fill_seat(grants[i], count, inherits_devices, &made.texts[i], &made.seats[i], err);
    }
    if (status < 0) {
        gar_actor_seats_destroy(&made, false);
        return status;
    }
    for (int32_t i = 0; i < count; i++) {
        if (grants[i] != NULL) {
            made.seats[i].grant = grants[i];
            made.seats[i].release = release_grant;
            made.seats[i].set_process = set_process;
            grants[i] = NULL;
        }
    }
    *out = made;
    return GAR_OK;
}

void gar_actor_seats_destroy(struct gar_actor_seats *seats, bool releases_grants)
{
    for (int32_t i = 0; i < seats->count; i++) {
        if (seats->texts != NULL) {
            gar_device_environment_destroy(&seats->texts[i].devices);
        }
        if (releases_grants && seats->seats != NULL && seats->seats[i].release != NULL) {
            seats->seats[i].release(seats->seats[i].grant);
        }
    }
    gar_free(seats->seats);
    gar_free(seats->texts);
    *seats = (struct gar_actor_seats){.seats = NULL};
}
