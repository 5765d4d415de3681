/* SPDX-License-Identifier: Apache-2.0 */
/* The search for devices, and the environment that shows some of them to a process. */
#include "resources/devices.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/strbuf.h"
#include "resources/devices_priv.h"

#define NVML_TIMEOUT_MS 10000

static enum gar_status find_amd(const struct gar_device_search *search,
                                struct gar_device_list *known, struct gar_device_list *out,
                                struct gar_error *err);
static bool add_entry(struct gar_device_environment *out, const char *name, const char *value);

void gar_device_search_init(struct gar_device_search *search)
{
    *search = (struct gar_device_search){
        .cuda_visible = getenv("CUDA_VISIBLE_DEVICES"),
        .cuda_order = getenv("CUDA_DEVICE_ORDER"),
        .hip_visible = getenv("HIP_VISIBLE_DEVICES"),
        .rocr_visible = getenv("ROCR_VISIBLE_DEVICES"),
        .nvml_path = "libnvidia-ml.so.1",
        .root = "",
        .timeout_ms = NVML_TIMEOUT_MS,
    };
}

enum gar_status gar_devices_find(const struct gar_device_search *search,
                                 struct gar_device_list *out, struct gar_error *err)
{
    memset(out, 0, sizeof *out);
    struct gar_device_list nvml;
    GAR_TRY(gar_nvml_list(search->nvml_path, search->timeout_ms, &nvml, err));
    struct gar_device_list amd = {.count = 0};
    enum gar_status status = GAR_OK;
    if (nvml.gpu_count <= 0) {
        status = gar_amd_list(search->root, &amd, err);
    }
    if (status == GAR_OK && amd.gpu_count > 0) {
        status = find_amd(search, &amd, out, err);
    } else if (status == GAR_OK) {
        const bool is_pci_order =
            search->cuda_order != NULL && strcmp(search->cuda_order, "PCI_BUS_ID") == 0;
        status = gar_visible_parse(search->cuda_visible, is_pci_order, &nvml, out, err);
        out->needs_pci_order = search->cuda_visible == NULL;
    }
    if (status == GAR_OK && nvml.warning[0] != '\0') {
        gar_device_list_warn(out, "%s", nvml.warning);
    }
    gar_device_list_destroy(&nvml);
    gar_device_list_destroy(&amd);
    if (status != GAR_OK) {
        gar_device_list_destroy(out);
    }
    return status;
}

/* HIP reads CUDA's variable when its own says nothing. */
static enum gar_status find_amd(const struct gar_device_search *search,
                                struct gar_device_list *known, struct gar_device_list *out,
                                struct gar_error *err)
{
    const bool is_hip_set = search->hip_visible != NULL && search->hip_visible[0] != '\0';
    GAR_TRY(gar_amd_visible_parse(search->rocr_visible,
                                  is_hip_set ? search->hip_visible : search->cuda_visible, known,
                                  out, err));
    if (known->warning[0] != '\0') {
        gar_device_list_warn(out, "%s", known->warning);
    }
    return GAR_OK;
}

enum gar_status gar_device_environment(const struct gar_device_list *list, const int32_t *devices,
                                       int64_t count, struct gar_device_environment *out,
                                       struct gar_error *err)
{
    memset(out, 0, sizeof *out);
    struct gar_strbuf names = {0};
    for (int64_t i = 0; i < count; i++) {
        gar_strbuf_printf(&names, "%s%s", i > 0 ? "," : "", list->devices[devices[i]].name);
    }
    bool is_good = !names.failed;
    if (list->is_amd) {
        is_good =
            is_good &&
            add_entry(out, "HIP_VISIBLE_DEVICES=", count == 0 ? "-1" : gar_strbuf_text(&names));
        is_good = is_good && add_entry(out, "CUDA_VISIBLE_DEVICES", ""); /* HIP would read it too */
    } else {
        is_good = is_good && add_entry(out, "CUDA_VISIBLE_DEVICES=", gar_strbuf_text(&names));
        if (count > 0 && list->needs_pci_order) {
            is_good = is_good && add_entry(out, "CUDA_DEVICE_ORDER=", "PCI_BUS_ID");
        }
    }
    gar_strbuf_destroy(&names);
    if (!is_good) {
        gar_device_environment_destroy(out);
        return gar_error_nomem(err, GAR_DEVICE_TEXT_BYTES);
    }
    return GAR_OK;
}

void gar_device_environment_destroy(struct gar_device_environment *environment)
{
    for (int64_t i = 0; i < environment->count; i++) {
        gar_free(environment->entries[i]);
    }
    memset(environment, 0, sizeof *environment);
}

static bool add_entry(struct gar_device_environment *out, const char *name, const char *value)
{
    struct gar_strbuf entry = {0};
    gar_strbuf_printf(&entry, "%s%s", name, value);
    char *text = gar_strbuf_take(&entry);
    if (text == NULL) {
        return false;
    }
    out->entries[out->count++] = text;
    return true;
}

/* ---- lists ---------------------------------------------------------------------------------------------------------- */

void gar_device_list_destroy(struct gar_device_list *list)
{
    gar_free(list->devices);
    memset(list, 0, sizeof *list);
}

enum gar_status gar_device_list_append(struct gar_device_list *list,
                                       const struct gar_device *device, struct gar_error *err)
{
    void *items = list->devices;
    GAR_TRY(gar_grow(&items, &list->capacity, list->count + 1, (int64_t)sizeof *device, err));
    list->devices = items;
    list->devices[list->count++] = *device;
    return GAR_OK;
}

void gar_device_list_warn(struct gar_device_list *list, const char *format, ...)
{
    size_t size = strlen(list->warning);
    if (size > 0 && size + 3 < sizeof list->warning) {
        memcpy(list->warning + size, "; ", 3);
        size += 2;
    }
    va_list args;
    va_start(args, format);
    (void)vsnprintf(list->warning + size, sizeof list->warning - size, format, args);
    va_end(args);
}

bool gar_list_next(const char **at, struct gar_list_element *out)
{
    if (*at == NULL) {
        return false;
    }
    const char *comma = strchr(*at, ',');
    out->text = *at;
    out->bytes = comma == NULL ? (int64_t)strlen(*at) : (int64_t)(comma - *at);
    *at = comma == NULL ? NULL : comma + 1;
    return true;
}

struct gar_list_element gar_list_trim(struct gar_list_element element)
{
    while (element.bytes > 0 && (element.text[0] == ' ' || element.text[0] == '\t')) {
        element.text++;
        element.bytes--;
    }
    while (element.bytes > 0 &&
           (element.text[element.bytes - 1] == ' ' || element.text[element.bytes - 1] == '\t')) {
        element.bytes--;
    }
    return element;
}

bool gar_list_starts_with(struct gar_list_element element, const char *prefix)
{
    const size_t size = strlen(prefix);
    return element.bytes >= (int64_t)size && memcmp(element.text, prefix, size) == 0;
}
