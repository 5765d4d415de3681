/* SPDX-License-Identifier: Apache-2.0 */
/* What functions and actors may ask of the machine (CPUs, GPUs, memory, GPU memory), and what the machine has:
 * totals, named devices, who holds what, who waits. The conventions of gar.h apply. */
#ifndef GAR_RESOURCES_H
#define GAR_RESOURCES_H

#include <gar/status.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Shares are counted in 1/10000, rounded down: three thirds and five 0.2 fit one device. */
#define GAR_SHARES 10000
/* A field that was not asked; it books nothing. */
#define GAR_NOT_ASKED (-1)

/* What one actor (or one function) asks. Fill it with the functions below: they check where the request is written. */
struct gar_resource_request {
    int64_t cpu_shares; /* of one CPU; any fraction */
    int64_t gpu_shares; /* of one device up to GAR_SHARES, else a multiple of it: whole devices */
    int64_t memory_bytes;
    int64_t gpu_memory_bytes; /* on each of its devices; alone: on one device */
};

/* Nothing asked. Threads of all functions here: any. */
GAR_API void gar_resource_request_init(struct gar_resource_request *request);
/* Errors: GAR_ERR_VALUE, request untouched: "num_cpus must be nonnegative, got -1"; "num_gpus must be nonnegative, got
 * -1"; "num_gpus greater than 1 must be an integer, got 1.5"; "memory_bytes must be nonnegative, got -1";
 * "gpu_memory must be nonnegative, got -1"; not a number; more than 0 but under one share. */
GAR_API GAR_MUST_USE enum gar_status gar_resource_request_set_cpus(
    struct gar_resource_request *request, double cpus, struct gar_error *err);
GAR_API GAR_MUST_USE enum gar_status gar_resource_request_set_gpus(
    struct gar_resource_request *request, double gpus, struct gar_error *err);
GAR_API GAR_MUST_USE enum gar_status gar_resource_request_set_memory(
    struct gar_resource_request *request, int64_t bytes, struct gar_error *err);
GAR_API GAR_MUST_USE enum gar_status gar_resource_request_set_gpu_memory(
    struct gar_resource_request *request, int64_t bytes, struct gar_error *err);
/* All four fields at once, for requests that were read from elsewhere. Errors as above. */
GAR_API GAR_MUST_USE enum gar_status gar_resource_request_check(
    const struct gar_resource_request *request, struct gar_error *err);

/* Field by field; a field asked on one side only is that side's. out may be one of the arguments. */
GAR_API void gar_resource_request_max(const struct gar_resource_request *a,
                                      const struct gar_resource_request *b,
                                      struct gar_resource_request *out);
/* Errors: as for the setters (0.75 + 0.75 GPUs is no legal amount); GAR_ERR_OVERFLOW. */
GAR_API GAR_MUST_USE enum gar_status gar_resource_request_sum(const struct gar_resource_request *a,
                                                              const struct gar_resource_request *b,
                                                              struct gar_resource_request *out,
                                                              struct gar_error *err);
GAR_API GAR_MUST_USE enum gar_status gar_resource_request_multiply(
    const struct gar_resource_request *a, int64_t factor, struct gar_resource_request *out,
    struct gar_error *err);
/* The fields asked in `over` replace those of `base`; the others stay. */
GAR_API void gar_resource_request_override(const struct gar_resource_request *base,
                                           const struct gar_resource_request *over,
                                           struct gar_resource_request *out);
/* A field that was not asked differs from 0. */
GAR_API bool gar_resource_request_equal(const struct gar_resource_request *a,
                                        const struct gar_resource_request *b);
/* "2 CPUs, 0.5 GPUs, 6.0 GiB of GPU memory", "nothing"; cut to out_bytes. Returns out. */
GAR_API const char *gar_resource_request_text(const struct gar_resource_request *request, char *out,
                                              int64_t out_bytes);
/* "6GiB", "1.5 GB", "512k", "1000", "64 MiB" -> bytes; K, M, G, T, P alone and with iB are powers of 1024, with B of
 * 1000; letter case does not matter. Errors: GAR_ERR_VALUE quoting the text. */
GAR_API GAR_MUST_USE enum gar_status gar_bytes_parse(const char *text, int64_t *out,
                                                     struct gar_error *err);

/* ---- the machine ---------------------------------------------------------------------------------------------------- */

#define GAR_DEVICE_TEXT_BYTES 96
#define GAR_HOLDER_TEXT_BYTES 64

enum gar_device_vendor {
    GAR_VENDOR_UNKNOWN, /* named by CUDA_VISIBLE_DEVICES, but no library answered about it */
    GAR_VENDOR_NVIDIA,
    GAR_VENDOR_AMD
};

/* One GPU, or one slice of a GPU that is split (MIG). */
struct gar_device {
    char name[GAR_DEVICE_TEXT_BYTES]; /* as handed to processes: "3", "GPU-8932f937", "MIG-..." */
    char uuid[GAR_DEVICE_TEXT_BYTES]; /* "": not known */
    char model[GAR_DEVICE_TEXT_BYTES];
    int64_t memory_bytes; /* -1: not known */
    int32_t index; /* number in the driver's (PCI) order; slices have their GPU's; -1: not known */
    enum gar_device_vendor vendor;
    bool is_slice; /* of a GPU that is split (MIG): a process can use only one */
    bool is_split; /* a split GPU named as a whole: a process sees its first slice */
};

/* A device and what is booked on it. */
struct gar_resource_device {
    struct gar_device device;
    int64_t free_shares;                /* of GAR_SHARES */
    int64_t free_memory_bytes;          /* not booked; -1: not known */
    bool is_set_aside;                  /* lost: nothing more is given from it */
    char reason[GAR_DEVICE_TEXT_BYTES]; /* why it was set aside */
};

/* One grant that is held, or one request that waits. */
struct gar_resource_holder {
    char name[GAR_HOLDER_TEXT_BYTES]; /* of the function or class */
    int64_t process_id;               /* 0: none yet, or in this process */
    struct gar_resource_request request;
    int64_t count; /* waiting: actors asked for together; held: 1 */
    int64_t device_count;
    int32_t *devices; /* held: indexes into devices; owned by the snapshot */
};

/* A snapshot. Owns: freed with gar_resources_free. */
struct gar_resources {
    int64_t cpu_shares; /* total: usable CPUs */
    int64_t free_cpu_shares;
    int64_t memory_bytes; /* total: what RAM, container and address space allow */
    int64_t free_memory_bytes;
    int64_t device_count;
    struct gar_resource_device *devices;
    int64_t holder_count;
    struct gar_resource_holder *holders;
    int64_t waiting_count;
    struct gar_resource_holder *waiting;
    char warning[256]; /* what went wrong when devices were looked for; "": nothing */
};

/* What this process's engine has and who holds it. The first call looks for devices (may take some hundred
 * milliseconds; at most 10 s when a driver hangs) and never starts CUDA. Errors: GAR_ERR_NOMEM. */
GAR_API GAR_MUST_USE enum gar_status gar_resources_read(struct gar_resources **out,
                                                        struct gar_error *err);
GAR_API void gar_resources_free(struct gar_resources *resources);
/* As a table for people (CPUs, memory, devices, who holds, who waits) or as one JSON object. Owns: *out is freed with
 * gar_text_free. Errors: GAR_ERR_NOMEM. */
GAR_API GAR_MUST_USE enum gar_status gar_resources_to_text(const struct gar_resources *resources,
                                                           bool as_json, char **out,
                                                           struct gar_error *err);
/* Asks the driver which devices are still there and sets aside those that are not. Blocks as the first read may.
 * Errors: GAR_ERR_NOMEM. */
GAR_API GAR_MUST_USE enum gar_status gar_resources_look_again(struct gar_error *err);
/* Take a device out of use, or back into use, by name. Errors: GAR_ERR_VALUE (no such device), GAR_ERR_NOMEM. */
GAR_API GAR_MUST_USE enum gar_status gar_resources_set_aside(const char *device, const char *reason,
                                                             struct gar_error *err);
GAR_API GAR_MUST_USE enum gar_status gar_resources_restore(const char *device,
                                                           struct gar_error *err);

#ifdef __cplusplus
}
#endif
#endif
