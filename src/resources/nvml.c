/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's management library, loaded at run time. It talks to the driver, not to CUDA: no context is made, and after
 * the listing it is shut down again, so that no descriptor of it stays open. A driver in trouble can hang in any call,
 * so all of them are made on a thread that the caller gives up after a time; what the thread uses belongs to the job,
 * which the last of the two frees. The library stays loaded: unloading one whose thread hangs would be worse. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "os/clock.h"
#include "os/mutex.h"
#include "os/thread.h"
#include "resources/devices_priv.h"

enum {
    /* results */
    NVML_OK = 0,
    NVML_NOT_SUPPORTED = 3,
    NVML_NOT_FOUND = 6,
    NVML_DRIVER_NOT_LOADED = 9,
    NVML_NO_LIBRARY = 12,
    /* nvmlInitWithFlags: no GPU is no error */
    NVML_FLAG_NO_GPUS = 1,
    /* more is taken for a broken answer */
    GPUS_MAX = 1024,
    SLICES_MAX = 64,
};

typedef void *nvml_device;
struct nvml_memory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};

/* The functions, named as in the library; the last five are optional. */
struct nvml {
    int (*init_with_flags)(unsigned flags);
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *count);
    int (*handle)(unsigned index, nvml_device *device);
    int (*uuid)(nvml_device device, char *text, unsigned bytes);
    int (*name)(nvml_device device, char *text, unsigned bytes);
    int (*memory)(nvml_device device, struct nvml_memory *memory);
    int (*mig_mode)(nvml_device device, unsigned *current, unsigned *pending);
    int (*mig_count)(nvml_device device, unsigned *count);
    int (*mig_handle)(nvml_device device, unsigned index, nvml_device *slice);
    const char *(*error_text)(int code);
};

/* Shared by the caller and the thread. */
struct job {
    char path[512];
    struct gar_mutex lock;
    struct gar_cond is_done_changed;
    bool is_done;  /* guarded by lock */
    int32_t users; /* guarded by lock */
    /* the thread's until is_done */
    struct gar_device_list list;
    enum gar_status status;
    struct gar_error err;
};

static void run_job(void *context);
static void leave_job(struct job *job);
static bool wait_for_job(struct job *job, int64_t timeout_ms);
static enum gar_status list_devices(const char *path, struct gar_device_list *out,
                                    struct gar_error *err);
static bool load(const char *path, struct nvml *out, struct gar_device_list *list);
static bool start(const struct nvml *nvml, struct gar_device_list *list);
static enum gar_status list_gpus(const struct nvml *nvml, struct gar_device_list *out,
                                 struct gar_error *err);
static enum gar_status list_slices(const struct nvml *nvml, nvml_device gpu, int32_t index,
                                   struct gar_device_list *out, struct gar_error *err);
static void describe(const struct nvml *nvml, nvml_device handle, struct gar_device *out);
static const char *text_of(const struct nvml *nvml, int code);

enum gar_status gar_nvml_list(const char *path, int64_t timeout_ms, struct gar_device_list *out,
                              struct gar_error *err)
{
    memset(out, 0, sizeof *out);
    out->gpu_count = -1;
    struct job *job = gar_calloc(1, (int64_t)sizeof *job);
    if (job == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *job);
    }
    (void)snprintf(job->path, sizeof job->path, "%s", path);
    gar_mutex_init(&job->lock);
    gar_cond_init(&job->is_done_changed);
    job->users = 2;
    const struct gar_thread_options options = {.name = "Device-Search"};
    struct gar_thread thread = {0};
    struct gar_error start_error = GAR_ERROR_INIT;
    if (gar_thread_start(&thread, &options, run_job, job, &start_error) != GAR_OK) {
        gar_device_list_warn(out, "devices cannot be looked for: %s", start_error.message);
        leave_job(job);
        leave_job(job);
        return GAR_OK;
    }
    enum gar_status status = GAR_OK;
    if (wait_for_job(job, timeout_ms)) {
        gar_thread_join(&thread);
        status = job->status;
        if (status == GAR_OK) {
            *out = job->list;
            memset(&job->list, 0, sizeof job->list);
        } else if (err != NULL) {
            *err = job->err;
        }
    } else {
        gar_thread_detach(&thread);
        gar_device_list_warn(out, "NVML did not answer within %lld ms: the driver hangs",
                             (long long)timeout_ms);
    }
    leave_job(job);
    return status;
}

static void run_job(void *context)
{
    struct job *job = context;
    job->status = list_devices(job->path, &job->list, &job->err);
    gar_mutex_lock(&job->lock);
    job->is_done = true;
    gar_cond_signal(&job->is_done_changed);
    gar_mutex_unlock(&job->lock);
    leave_job(job);
}

static void leave_job(struct job *job)
{
    gar_mutex_lock(&job->lock);
    const bool is_last = --job->users == 0;
    gar_mutex_unlock(&job->lock);
    if (is_last) {
        gar_device_list_destroy(&job->list);
        gar_cond_destroy(&job->is_done_changed);
        gar_mutex_destroy(&job->lock);
        gar_free(job);
    }
}

static bool wait_for_job(struct job *job, int64_t timeout_ms)
{
    const int64_t deadline_ns = gar_clock_deadline(timeout_ms * GAR_NS_PER_MS);
    gar_mutex_lock(&job->lock);
    while (!job->is_done && gar_cond_wait_until(&job->is_done_changed, &job->lock, deadline_ns)) {
    }
    const bool is_done = job->is_done;
    gar_mutex_unlock(&job->lock);
    return is_done;
}

/* On the thread. */
static enum gar_status list_devices(const char *path, struct gar_device_list *out,
                                    struct gar_error *err)
{
    struct nvml nvml;
    memset(out, 0, sizeof *out);
    out->gpu_count = -1;
    if (!load(path, &nvml, out) || !start(&nvml, out)) {
        return GAR_OK;
    }
    const enum gar_status status = list_gpus(&nvml, out, err);
    (void)nvml.shutdown();
    if (status != GAR_OK) {
        gar_device_list_destroy(out);
    }
    return status;
}

static bool load(const char *path, struct nvml *out, struct gar_device_list *list)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *reason = dlerror();
        /* A library that is not there is no fault; one that does not load is. */
        if (reason != NULL &&
            strstr(reason, "cannot open shared object file: No such file") == NULL) {
            gar_device_list_warn(list, "NVML cannot be loaded: %s", reason);
        }
        return false;
    }
    memset(out, 0, sizeof *out);
    const struct {
        void *slot;
        const char *name;
        const char *older; /* name in older drivers */
        bool is_needed;
    } functions[] = {
        {&out->init_with_flags, "nvmlInitWithFlags", NULL, false},
        {&out->init, "nvmlInit_v2", "nvmlInit", true},
        {&out->shutdown, "nvmlShutdown", NULL, true},
        {&out->count, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount", true},
        {&out->handle, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex", true},
        {&out->uuid, "nvmlDeviceGetUUID", NULL, true},
        {&out->name, "nvmlDeviceGetName", NULL, true},
        {&out->memory, "nvmlDeviceGetMemoryInfo", NULL, true},
        {&out->mig_mode, "nvmlDeviceGetMigMode", NULL, false},
        {&out->mig_count, "nvmlDeviceGetMaxMigDeviceCount", NULL, false},
        {&out->mig_handle, "nvmlDeviceGetMigDeviceHandleByIndex", NULL, false},
        {&out->error_text, "nvmlErrorString", NULL, false},
    };
    for (int64_t i = 0; i < GAR_COUNT_OF(functions); i++) {
        void *symbol = dlsym(library, functions[i].name);
        if (symbol == NULL && functions[i].older != NULL) {
            symbol = dlsym(library, functions[i].older);
        }
        if (symbol == NULL && functions[i].is_needed) {
            gar_device_list_warn(list, "NVML is broken: it has no %s", functions[i].name);
            return false;
        }
        memcpy(functions[i].slot, &symbol,
               sizeof symbol); /* object to function pointer, as POSIX says */
    }
    return true;
}

static bool start(const struct nvml *nvml, struct gar_device_list *list)
{
    const int code =
        nvml->init_with_flags != NULL ? nvml->init_with_flags(NVML_FLAG_NO_GPUS) : nvml->init();
    if (code == NVML_OK) {
        return true;
    }
    if (code != NVML_DRIVER_NOT_LOADED && code != NVML_NO_LIBRARY) { /* no driver is no fault */
        gar_device_list_warn(list, "NVML cannot be used: %s", text_of(nvml, code));
    }
    return false;
}

static enum gar_status list_gpus(const struct nvml *nvml, struct gar_device_list *out,
                                 struct gar_error *err)
{
    unsigned count = 0;
    const int count_code = nvml->count(&count);
    if (count_code != NVML_OK || count > GPUS_MAX) {
        gar_device_list_warn(out, "NVML is broken: it counts %u GPUs (%s)", count,
                             text_of(nvml, count_code));
        return GAR_OK;
    }
    out->gpu_count = count;
    for (unsigned i = 0; i < count; i++) {
        nvml_device gpu = NULL;
        const int code = nvml->handle(i, &gpu);
        if (code != NVML_OK) {
            gar_device_list_warn(out, "GPU %u is left out: %s", i, text_of(nvml, code));
            continue;
        }
        struct gar_device device;
        describe(nvml, gpu, &device);
        device.index = (int32_t)i;
        (void)snprintf(device.name, sizeof device.name, "%u", i);
        unsigned is_split = 0;
        unsigned will_be = 0;
        device.is_split = nvml->mig_mode != NULL &&
                          nvml->mig_mode(gpu, &is_split, &will_be) == NVML_OK && is_split == 1;
        GAR_TRY(gar_device_list_append(out, &device, err));
        if (device.is_split) {
            GAR_TRY(list_slices(nvml, gpu, device.index, out, err));
        }
    }
    return GAR_OK;
}

static enum gar_status list_slices(const struct nvml *nvml, nvml_device gpu, int32_t index,
                                   struct gar_device_list *out, struct gar_error *err)
{
    unsigned count = 0;
    if (nvml->mig_count == NULL || nvml->mig_handle == NULL ||
        nvml->mig_count(gpu, &count) != NVML_OK || count > SLICES_MAX) {
        gar_device_list_warn(out, "the slices of GPU %d are not known", (int)index);
        return GAR_OK;
    }
    for (unsigned i = 0; i < count; i++) {
        nvml_device slice = NULL;
        const int code = nvml->mig_handle(gpu, i, &slice);
        if (code != NVML_OK) {
            if (code != NVML_NOT_FOUND) { /* that place is not in use */
                gar_device_list_warn(out, "slice %u of GPU %d is left out: %s", i, (int)index,
                                     text_of(nvml, code));
            }
            continue;
        }
        struct gar_device device;
        describe(nvml, slice, &device);
        device.index = index;
        device.is_slice = true;
        if (device.uuid[0] == '\0') { /* its only name */
            gar_device_list_warn(out, "slice %u of GPU %d is left out: it has no UUID", i,
                                 (int)index);
            continue;
        }
        memcpy(device.name, device.uuid, sizeof device.name);
        GAR_TRY(gar_device_list_append(out, &device, err));
    }
    return GAR_OK;
}

/* What cannot be read stays empty: it is needed for messages and gpu_memory only. */
static void describe(const struct nvml *nvml, nvml_device handle, struct gar_device *out)
{
    memset(out, 0, sizeof *out);
    out->vendor = GAR_VENDOR_NVIDIA;
    out->memory_bytes = -1;
    if (nvml->uuid(handle, out->uuid, (unsigned)sizeof out->uuid - 1) != NVML_OK) {
        memset(out->uuid, 0, sizeof out->uuid);
    }
    if (nvml->name(handle, out->model, (unsigned)sizeof out->model - 1) != NVML_OK) {
        memset(out->model, 0, sizeof out->model);
    }
    struct nvml_memory memory = {0, 0, 0};
    if (nvml->memory(handle, &memory) == NVML_OK && memory.total > 0 &&
        memory.total <= (unsigned long long)INT64_MAX) {
        out->memory_bytes = (int64_t)memory.total;
    }
}

static const char *text_of(const struct nvml *nvml, int code)
{
    const char *text = nvml->error_text == NULL ? NULL : nvml->error_text(code);
    return text == NULL ? "unknown reason" : text;
}
