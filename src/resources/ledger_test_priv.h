/* SPDX-License-Identifier: Apache-2.0 */
/* Machines and wants for the tests of the ledger. */
#ifndef GAR_RESOURCES_LEDGER_TEST_PRIV_H
#define GAR_RESOURCES_LEDGER_TEST_PRIV_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "resources/devices_priv.h"
#include "resources/ledger.h"

#define GIB (INT64_C(1) << 30)

/* A machine with devices named by the comma list, each with device_bytes (-1: unknown); "MIG-" names are slices. */
GAR_INLINE struct gar_ledger *new_machine(double cpus, int64_t memory_bytes, const char *names,
                                          int64_t device_bytes)
{
    struct gar_device_list list = {.count = 0};
    const char *at = names[0] == '\0' ? NULL : names;
    struct gar_list_element element;
    while (gar_list_next(&at, &element)) {
        struct gar_device device = {.memory_bytes = device_bytes, .index = -1};
        (void)snprintf(device.name, sizeof device.name, "%.*s", (int)element.bytes, element.text);
        device.is_slice = gar_list_starts_with(element, "MIG-");
        if (gar_device_list_append(&list, &device, NULL) != GAR_OK) {
            abort();
        }
    }
    const struct gar_ledger_options options = {
        .cpu_shares = gar_shares_from_double(cpus), .memory_bytes = memory_bytes, .devices = &list};
    struct gar_ledger *ledger = NULL;
    const enum gar_status status = gar_ledger_new(&options, &ledger, NULL);
    gar_device_list_destroy(&list);
    return status == GAR_OK ? ledger : NULL;
}

/* `count` actors with so many GPUs each; other fields are the test's to set. */
GAR_INLINE struct gar_ledger_want gpu_want(const char *holder, int64_t count, double gpus)
{
    struct gar_ledger_want want = {.count = count, .holder = holder};
    gar_resource_request_init(&want.request);
    if (gar_resource_request_set_gpus(&want.request, gpus, NULL) != GAR_OK) {
        abort();
    }
    return want;
}

GAR_INLINE struct gar_ledger_want cpu_want(const char *holder, int64_t count, double cpus)
{
    struct gar_ledger_want want = {.count = count, .holder = holder};
    gar_resource_request_init(&want.request);
    if (gar_resource_request_set_cpus(&want.request, cpus, NULL) != GAR_OK) {
        abort();
    }
    return want;
}

#endif
