/* SPDX-License-Identifier: Apache-2.0 */
/* Which GPUs this process may use, and the environment that shows a process just some of them. Never starts CUDA.
 *
 *  1. NVIDIA: CUDA_VISIBLE_DEVICES by CUDA's rules (gar_visible_parse) when it is set, else every GPU and every MIG
 *     slice that NVML lists. NVML is loaded at run time on a thread of its own: a driver that hangs costs a warning.
 *  2. AMD, where NVML finds nothing: the KFD topology in sysfs, filtered by ROCR_VISIBLE_DEVICES, then by
 *     HIP_VISIBLE_DEVICES (or CUDA_VISIBLE_DEVICES if HIP's is unset). */
#ifndef GAR_RESOURCES_DEVICES_H
#define GAR_RESOURCES_DEVICES_H

#include <gar/resources.h>

#include "base/attrs.h"
#include "base/error.h"

/* A zeroed struct is an empty list. */
struct gar_device_list {
    struct gar_device *devices; /* owned */
    int64_t count;
    int64_t capacity;
    int64_t gpu_count; /* GPUs that the driver has, whether listed or not; -1: not known */
    bool is_amd;       /* HIP's variable places processes, not CUDA's */
    bool
        needs_pci_order; /* names are NVML's numbers: processes need CUDA_DEVICE_ORDER=PCI_BUS_ID */
    char warning[256];   /* a broken NVML, a list that names nothing; "": none */
    char memory_reason[256]; /* why the memory of some device would not be known */
};
void gar_device_list_destroy(struct gar_device_list *list);

/* Where to look; tests point it at stubs. gar_device_search_init fills in the process's environment. */
struct gar_device_search {
    const char *cuda_visible; /* CUDA_VISIBLE_DEVICES; NULL: unset */
    const char *cuda_order;   /* CUDA_DEVICE_ORDER */
    const char *hip_visible;
    const char *rocr_visible;
    const char *nvml_path; /* "libnvidia-ml.so.1" */
    const char *root;      /* "": the real /sys */
    int64_t timeout_ms;    /* for NVML; 10,000 */
};
void gar_device_search_init(struct gar_device_search *search);

/* Errors: GAR_ERR_NOMEM only; everything else that goes wrong is a warning in the list.
 * Owns: caller destroys the list. Threads: any; may block for timeout_ms, so not the query loop. */
GAR_MUST_USE enum gar_status gar_devices_find(const struct gar_device_search *search,
                                              struct gar_device_list *out, struct gar_error *err);

/* What NVML lists, in its order: every GPU (also those that are split) and after each its slices. gpu_count is -1 when
 * NVML is missing, broken or late; then the list is empty, and the warning says why, but for missing.
 * Errors: GAR_ERR_NOMEM. Owns: caller destroys the list. Blocks as above. */
GAR_MUST_USE enum gar_status gar_nvml_list(const char *path, int64_t timeout_ms,
                                           struct gar_device_list *out, struct gar_error *err);
/* The AMD GPUs that the kernel lists under root, before any variable is applied. Errors and Owns as above. */
GAR_MUST_USE enum gar_status gar_amd_list(const char *root, struct gar_device_list *out,
                                          struct gar_error *err);

/* CUDA_VISIBLE_DEVICES over what NVML lists (gpu_count -1: it did not answer; names are then believed). text NULL: all
 * GPUs that are not split, and all slices. Names are kept as written, blanks around them trimmed. The first element
 * decides what the list is: GPU-... (unique prefixes of UUIDs), MIG-..., else ordinals, read as strtoul does. The list
 * ends before the first invalid element; an element that names a device again makes it empty.
 * is_pci_order: CUDA_DEVICE_ORDER is PCI_BUS_ID, so that ordinals are NVML's indexes.
 * Errors: GAR_ERR_NOMEM. Owns: caller destroys out. */
GAR_MUST_USE enum gar_status gar_visible_parse(const char *text, bool is_pci_order,
                                               const struct gar_device_list *known,
                                               struct gar_device_list *out, struct gar_error *err);
/* ROCR_VISIBLE_DEVICES (NULL: unset), then HIP_VISIBLE_DEVICES (NULL or "": unset) over the kernel's list. Names are
 * those of the second list, or numbers among what the first one left. */
GAR_MUST_USE enum gar_status gar_amd_visible_parse(const char *rocr, const char *hip,
                                                   const struct gar_device_list *known,
                                                   struct gar_device_list *out,
                                                   struct gar_error *err);

/* Variables for a process, as a list that ends with NULL: "NAME=value" to set, "NAME" to remove. */
struct gar_device_environment {
    char *entries[4]; /* owned */
    int64_t count;
};
/* What shows a process these devices and no others, in this order; count 0: none at all ("" for CUDA, "-1" for HIP, to
 * which an empty list means all). `devices` are indexes into the list. Errors: GAR_ERR_NOMEM.
 * Owns: caller destroys out. */
GAR_MUST_USE enum gar_status gar_device_environment(const struct gar_device_list *list,
                                                    const int32_t *devices, int64_t count,
                                                    struct gar_device_environment *out,
                                                    struct gar_error *err);
void gar_device_environment_destroy(struct gar_device_environment *environment);

#endif
