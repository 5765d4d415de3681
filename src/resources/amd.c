/* SPDX-License-Identifier: Apache-2.0 */
/* AMD GPUs: the topology that the kernel's KFD driver shows in sysfs, and ROCm's two lists of visible devices. What a
 * container may not use cannot be read there, and is not listed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/file.h"
#include "resources/devices_priv.h"

#define NODES "/sys/class/kfd/kfd/topology/nodes"

enum { NODES_MAX = 512, BANKS_MAX = 16, TEXT_BYTES = 8192, PATH_BYTES = 4096 };

static enum gar_status add_node(const char *root, int64_t node, struct gar_device_list *out,
                                struct gar_error *err);
static int64_t read_memory(const char *root, int64_t node, uint64_t render_minor);
static void read_model(const char *root, int64_t node, uint64_t render_minor, char *out);
static bool read_text(const char *path, char *out);
static bool find_number(const char *text, const char *key, uint64_t *out);
static int64_t find_element(struct gar_list_element element, const struct gar_device_list *known);

enum gar_status gar_amd_list(const char *root, struct gar_device_list *out, struct gar_error *err)
{
    memset(out, 0, sizeof *out);
    out->gpu_count = -1;
    char path[PATH_BYTES];
    struct gar_file_info info;
    (void)snprintf(path, sizeof path, "%s" NODES, root);
    if (gar_file_stat(path, &info, NULL) != GAR_OK) {
        return GAR_OK;
    }
    for (int64_t node = 0; node < NODES_MAX; node++) {
        const enum gar_status status = add_node(root, node, out, err);
        if (status != GAR_OK) {
            gar_device_list_destroy(out);
            return status;
        }
    }
    out->gpu_count = out->count;
    out->is_amd = true;
    return GAR_OK;
}

enum gar_status gar_amd_visible_parse(const char *rocr, const char *hip,
                                      const struct gar_device_list *known,
                                      struct gar_device_list *out, struct gar_error *err)
{
    memset(out, 0, sizeof *out);
    out->gpu_count = known->gpu_count;
    out->is_amd = true;
    (void)snprintf(out->memory_reason, sizeof out->memory_reason,
                   "the kernel does not tell the memory of the AMD devices");
    const char *const lists[] = {rocr, hip != NULL && hip[0] != '\0' ? hip : NULL};
    struct gar_device_list left = {.count = 0};
    enum gar_status status = GAR_OK;
    for (int64_t d = 0; d < known->count && status == GAR_OK; d++) {
        status = gar_device_list_append(&left, &known->devices[d], err);
    }
    for (int64_t i = 0; i < GAR_COUNT_OF(lists) && status == GAR_OK; i++) {
        struct gar_device_list picked = {.count = 0};
        const char *at = lists[i];
        struct gar_list_element element;
        while (status == GAR_OK && gar_list_next(&at, &element)) {
            const int64_t d = find_element(element, &left);
            if (d < 0) {
                break; /* an invalid element ends the list */
            }
            struct gar_device device = left.devices[d];
            memset(device.name, 0, sizeof device.name);
            memcpy(device.name, element.text, (size_t)element.bytes);
            bool is_new = true; /* named again: counts once */
            for (int64_t p = 0; p < picked.count; p++) {
                is_new = is_new && picked.devices[p].index != device.index;
            }
            if (is_new) {
                status = gar_device_list_append(&picked, &device, err);
            }
        }
        if (lists[i] != NULL) {
            gar_device_list_destroy(&left);
            left = picked;
        }
        if (i == 0) { /* HIP counts what ROCr left */
            for (int64_t d = 0; d < left.count; d++) {
                (void)snprintf(left.devices[d].name, sizeof left.devices[d].name, "%lld",
                               (long long)d);
            }
        }
    }
    if (status != GAR_OK) {
        gar_device_list_destroy(&left);
        return status;
    }
    out->devices = left.devices;
    out->count = left.count;
    out->capacity = left.capacity;
    return GAR_OK;
}

/* A plain number (no sign, no blanks) or a prefix of a UUID; -1: neither. */
static int64_t find_element(struct gar_list_element element, const struct gar_device_list *known)
{
    if (element.bytes <= 0 || element.bytes >= GAR_DEVICE_TEXT_BYTES) {
        return -1;
    }
    if (gar_list_starts_with(element, "GPU-")) {
        for (int64_t d = 0; d < known->count; d++) {
            if (strncmp(known->devices[d].uuid, element.text, (size_t)element.bytes) == 0) {
                return d;
            }
        }
        return -1;
    }
    int64_t value = 0;
    for (int64_t i = 0; i < element.bytes; i++) {
        const bool is_padded = i == 0 && element.text[0] == '0' && element.bytes > 1;
        if (element.text[i] < '0' || element.text[i] > '9' || is_padded) {
            return -1;
        }
        value = gar_min_i64(value * 10 + (element.text[i] - '0'), INT32_MAX);
    }
    return value < known->count ? value : -1;
}

/* CPUs are nodes too: their gpu_id is 0. */
static enum gar_status add_node(const char *root, int64_t node, struct gar_device_list *out,
                                struct gar_error *err)
{
    char path[PATH_BYTES];
    char text[TEXT_BYTES];
    (void)snprintf(path, sizeof path, "%s" NODES "/%lld/gpu_id", root, (long long)node);
    if (!read_text(path, text) || strtoull(text, NULL, 10) == 0) {
        return GAR_OK;
    }
    (void)snprintf(path, sizeof path, "%s" NODES "/%lld/properties", root, (long long)node);
    if (!read_text(path, text)) {
        return GAR_OK;
    }
    struct gar_device device;
    memset(&device, 0, sizeof device);
    device.vendor = GAR_VENDOR_AMD;
    device.index = (int32_t)out->count;
    (void)snprintf(device.name, sizeof device.name, "%lld", (long long)out->count);
    uint64_t number = 0;
    if (find_number(text, "unique_id", &number) && number != 0) {
        (void)snprintf(device.uuid, sizeof device.uuid, "GPU-%016llx", (unsigned long long)number);
    }
    uint64_t render_minor = 0;
    (void)find_number(text, "drm_render_minor", &render_minor);
    device.memory_bytes = read_memory(root, node, render_minor);
    read_model(root, node, render_minor, device.model);
    return gar_device_list_append(out, &device, err);
}

/* From the display driver; else the sum of the node's memory banks of its own. */
static int64_t read_memory(const char *root, int64_t node, uint64_t render_minor)
{
    char path[PATH_BYTES];
    char text[TEXT_BYTES];
    (void)snprintf(path, sizeof path, "%s/sys/class/drm/renderD%llu/device/mem_info_vram_total",
                   root, (unsigned long long)render_minor);
    if (read_text(path, text)) {
        const int64_t bytes = (int64_t)strtoll(text, NULL, 10);
        if (bytes > 0) {
            return bytes;
        }
    }
    int64_t total = 0;
    for (int64_t bank = 0; bank < BANKS_MAX; bank++) {
        (void)snprintf(path, sizeof path, "%s" NODES "/%lld/mem_banks/%lld/properties", root,
                       (long long)node, (long long)bank);
        uint64_t heap = 0;
        uint64_t bytes = 0;
        if (read_text(path, text) && find_number(text, "heap_type", &heap) &&
            (heap == 1 || heap == 2) && /* frame buffer, public or private */
            find_number(text, "size_in_bytes", &bytes) && bytes < (uint64_t)1 << 50) {
            total += (int64_t)bytes;
        }
    }
    return total > 0 ? total : -1;
}

/* The product's name where the card tells it, else the node's ("gfx90a"). */
static void read_model(const char *root, int64_t node, uint64_t render_minor, char *out)
{
    char path[PATH_BYTES];
    char text[TEXT_BYTES];
    (void)snprintf(path, sizeof path, "%s/sys/class/drm/renderD%llu/device/product_name", root,
                   (unsigned long long)render_minor);
    if (!read_text(path, text) || text[0] == '\0') {
        (void)snprintf(path, sizeof path, "%s" NODES "/%lld/name", root, (long long)node);
        if (!read_text(path, text)) {
            text[0] = '\0';
        }
    }
    text[strcspn(text, "\n")] = '\0';
    (void)snprintf(out, GAR_DEVICE_TEXT_BYTES, "%.*s", GAR_DEVICE_TEXT_BYTES - 1, text);
}

static bool read_text(const char *path, char *out)
{
    int fd = -1;
    if (gar_file_open(path, GAR_FILE_READ, &fd, NULL) != GAR_OK) {
        return false;
    }
    int64_t size = 0;
    const enum gar_status status = gar_file_read_at(fd, path, out, TEXT_BYTES - 1, 0, &size, NULL);
    const enum gar_status closed = gar_file_close(fd, path, NULL);
    out[status == GAR_OK ? size : 0] = '\0';
    return status == GAR_OK && closed == GAR_OK;
}

/* "key 123" at the beginning of a line. */
static bool find_number(const char *text, const char *key, uint64_t *out)
{
    const size_t size = strlen(key);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, size) == 0 && line[size] == ' ') {
            *out = strtoull(line + size, NULL, 10);
            return true;
        }
    }
    return false;
}
