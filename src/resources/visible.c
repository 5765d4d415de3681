/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA_VISIBLE_DEVICES, read as CUDA reads it: NVIDIA's programming guide where it says something, else what the
 * runtime is seen to do. tests/gpu compares every rule with the real one. */
#include <stdio.h>
#include <string.h>

#include "resources/devices_priv.h"

enum list_kind { BY_ORDINAL, BY_UUID, BY_SLICE };

/* What an element names. */
struct target {
    int64_t known;   /* index into the known devices, -1: believed */
    int64_t ordinal; /* BY_ORDINAL */
};

static enum gar_status take_all(const struct gar_device_list *known, struct gar_device_list *out,
                                struct gar_error *err);
static enum list_kind kind_of(struct gar_list_element element);
static bool resolve(struct gar_list_element element, enum list_kind kind,
                    const struct gar_device_list *known, struct target *out);
static bool resolve_ordinal(struct gar_list_element element, const struct gar_device_list *known,
                            struct target *out);
static bool resolve_text(struct gar_list_element element, enum list_kind kind,
                         const struct gar_device_list *known, struct target *out);
static bool is_repeated(const struct gar_device_list *out, const struct gar_device *device,
                        const struct target *target, const struct target *targets);
static void describe(struct gar_list_element element, const struct target *target,
                     bool is_pci_order, bool are_alike, const struct gar_device_list *known,
                     struct gar_device *out);
static bool are_all_alike(const struct gar_device_list *known);
static void warn_of_end(struct gar_device_list *out, struct gar_list_element element,
                        const struct gar_device_list *known);
static void explain_memory(struct gar_device_list *out, const struct gar_device_list *known,
                           bool is_ordinal_known);

enum { NAMED_MAX = 1024 };

enum gar_status gar_visible_parse(const char *text, bool is_pci_order,
                                  const struct gar_device_list *known, struct gar_device_list *out,
                                  struct gar_error *err)
{
    memset(out, 0, sizeof *out);
    out->gpu_count = known->gpu_count;
    if (text == NULL) {
        return take_all(known, out, err);
    }
    struct target targets[NAMED_MAX];
    const bool are_alike = are_all_alike(known);
    const char *at = text;
    struct gar_list_element element;
    enum list_kind kind = BY_ORDINAL;
    while (out->count < NAMED_MAX && gar_list_next(&at, &element)) {
        element = gar_list_trim(element);
        if (out->count == 0) {
            kind = kind_of(element);
        }
        struct target target = {.known = -1, .ordinal = -1};
        struct gar_device device;
        if (!resolve(element, kind, known, &target)) {
            warn_of_end(out, element, known);
            break;
        }
        describe(element, &target, is_pci_order, are_alike, known, &device);
        if (is_repeated(out, &device, &target, targets)) {
            out->count = 0;
            gar_device_list_warn(out,
                                 "CUDA_VISIBLE_DEVICES names device '%s' twice, which hides "
                                 "every device",
                                 device.name);
            break;
        }
        targets[out->count] = target;
        const enum gar_status status = gar_device_list_append(out, &device, err);
        if (status != GAR_OK) {
            gar_device_list_destroy(out);
            return status;
        }
    }
    explain_memory(out, known, is_pci_order || kind != BY_ORDINAL);
    return GAR_OK;
}

static enum gar_status take_all(const struct gar_device_list *known, struct gar_device_list *out,
                                struct gar_error *err)
{
    for (int64_t i = 0; i < known->count; i++) {
        if (!known->devices[i].is_split) {
            const enum gar_status status = gar_device_list_append(out, &known->devices[i], err);
            if (status != GAR_OK) {
                gar_device_list_destroy(out);
                return status;
            }
        }
    }
    explain_memory(out, known, true);
    return GAR_OK;
}

static enum list_kind kind_of(struct gar_list_element element)
{
    if (gar_list_starts_with(element, "GPU-")) {
        return BY_UUID;
    }
    return gar_list_starts_with(element, "MIG-") ? BY_SLICE : BY_ORDINAL;
}

static bool resolve(struct gar_list_element element, enum list_kind kind,
                    const struct gar_device_list *known, struct target *out)
{
    if (element.bytes >= GAR_DEVICE_TEXT_BYTES) {
        return false;
    }
    return kind == BY_ORDINAL ? resolve_ordinal(element, known, out)
                              : resolve_text(element, kind, known, out);
}

/* As strtoul: a sign, digits, and anything behind them. */
static bool resolve_ordinal(struct gar_list_element element, const struct gar_device_list *known,
                            struct target *out)
{
    int64_t i = 0;
    const bool is_negative = element.bytes > 0 && element.text[0] == '-';
    if (is_negative || (element.bytes > 0 && element.text[0] == '+')) {
        i++;
    }
    int64_t value = 0;
    const int64_t first = i;
    for (; i < element.bytes && element.text[i] >= '0' && element.text[i] <= '9'; i++) {
        value = gar_min_i64(value * 10 + (element.text[i] - '0'), INT32_MAX);
    }
    if (i == first || (is_negative && value != 0) ||
        (known->gpu_count >= 0 && value >= known->gpu_count) || value == INT32_MAX) {
        return false;
    }
    out->ordinal = value;
    for (int64_t d = 0; d < known->count; d++) {
        if (!known->devices[d].is_slice && known->devices[d].index == value) {
            out->known = d;
        }
    }
    return true;
}

/* A unique prefix of a UUID. The older name of a slice, MIG-GPU-<uuid>/<instance>/<instance>, is believed if its GPU
 * is known and split. */
static bool resolve_text(struct gar_list_element element, enum list_kind kind,
                         const struct gar_device_list *known, struct target *out)
{
    if (kind_of(element) != kind) {
        return false;
    }
    if (known->gpu_count < 0) {
        return true;
    }
    int64_t matches = 0;
    for (int64_t d = 0; d < known->count; d++) {
        const struct gar_device *device = &known->devices[d];
        if (device->is_slice == (kind == BY_SLICE) &&
            strncmp(device->uuid, element.text, (size_t)element.bytes) == 0) {
            out->known = d;
            matches++;
        }
    }
    if (matches == 0 && gar_list_starts_with(element, "MIG-GPU-")) {
        const char *slash = memchr(element.text, '/', (size_t)element.bytes);
        const size_t uuid_bytes = slash == NULL ? 0 : (size_t)(slash - element.text) - 4;
        for (int64_t d = 0; d < known->count && slash != NULL; d++) {
            matches += known->devices[d].is_split &&
                       strncmp(known->devices[d].uuid, element.text + 4, uuid_bytes) == 0;
        }
    }
    return matches == 1;
}

static bool is_repeated(const struct gar_device_list *out, const struct gar_device *device,
                        const struct target *target, const struct target *targets)
{
    for (int64_t i = 0; i < out->count; i++) {
        if ((target->known >= 0 && target->known == targets[i].known) ||
            (target->ordinal >= 0 && target->ordinal == targets[i].ordinal) ||
            strcmp(out->devices[i].name, device->name) == 0) {
            return true;
        }
    }
    return false;
}

/* What is known about the device, under the name that was written. An ordinal tells which device it is only in PCI
 * order; among equal cards it still tells model and memory. */
static void describe(struct gar_list_element element, const struct target *target,
                     bool is_pci_order, bool are_alike, const struct gar_device_list *known,
                     struct gar_device *out)
{
    memset(out, 0, sizeof *out);
    out->memory_bytes = -1;
    out->index = -1;
    out->is_slice = gar_list_starts_with(element, "MIG-");
    const bool is_sure = target->ordinal < 0 || is_pci_order;
    if (target->known >= 0 && (is_sure || are_alike)) {
        *out = known->devices[target->known];
        if (out->is_split) { /* the size of its first slice is not worth a guess */
            out->memory_bytes = -1;
        }
        if (!is_sure) {
            out->uuid[0] = '\0';
            out->index = -1;
        }
    } else if (known->gpu_count >= 0) {
        out->vendor = GAR_VENDOR_NVIDIA;
    }
    memset(out->name, 0, sizeof out->name);
    memcpy(out->name, element.text, (size_t)element.bytes);
}

static bool are_all_alike(const struct gar_device_list *known)
{
    for (int64_t d = 0; d < known->count; d++) {
        const struct gar_device *device = &known->devices[d];
        if (device->is_split || device->is_slice ||
            device->memory_bytes != known->devices[0].memory_bytes ||
            strcmp(device->model, known->devices[0].model) != 0) {
            return false;
        }
    }
    return true;
}

/* Words and negative numbers are how lists are ended on purpose. */
static void warn_of_end(struct gar_device_list *out, struct gar_list_element element,
                        const struct gar_device_list *known)
{
    const bool is_number = element.bytes > 0 && element.text[0] >= '0' && element.text[0] <= '9';
    if (is_number || gar_list_starts_with(element, "GPU-") ||
        gar_list_starts_with(element, "MIG-")) {
        gar_device_list_warn(out, "CUDA_VISIBLE_DEVICES ends before '%.*s', which is no device",
                             (int)gar_min_i64(element.bytes, 40), element.text);
        if (known->gpu_count >= 0) {
            gar_device_list_warn(out, "the driver has %lld GPUs", (long long)known->gpu_count);
        }
    }
}

static void explain_memory(struct gar_device_list *out, const struct gar_device_list *known,
                           bool is_ordinal_known)
{
    if (known->gpu_count < 0) {
        (void)snprintf(out->memory_reason, sizeof out->memory_reason,
                       "NVML (libnvidia-ml.so.1) did not answer");
    } else if (!is_ordinal_known && !are_all_alike(known)) {
        (void)snprintf(out->memory_reason, sizeof out->memory_reason,
                       "numbers in CUDA_VISIBLE_DEVICES name devices for sure only with "
                       "CUDA_DEVICE_ORDER=PCI_BUS_ID, or when all cards are alike; set it, or name "
                       "them by UUID");
    } else {
        (void)snprintf(out->memory_reason, sizeof out->memory_reason, "NVML does not tell it");
    }
}
