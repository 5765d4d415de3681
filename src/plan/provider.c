/* SPDX-License-Identifier: Apache-2.0 */
/* Counting of providers. */
#include "plan/provider.h"

#include <stddef.h>

struct gar_scan_provider *gar_scan_provider_ref(struct gar_scan_provider *provider)
{
    __atomic_fetch_add(&provider->refs, 1, __ATOMIC_RELAXED);
    return provider;
}

void gar_scan_provider_unref(struct gar_scan_provider *provider)
{
    if (provider != NULL && __atomic_sub_fetch(&provider->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        provider->vtable->free(provider);
    }
}

struct gar_sink_provider *gar_sink_provider_ref(struct gar_sink_provider *provider)
{
    __atomic_fetch_add(&provider->refs, 1, __ATOMIC_RELAXED);
    return provider;
}

void gar_sink_provider_unref(struct gar_sink_provider *provider)
{
    if (provider != NULL && __atomic_sub_fetch(&provider->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        provider->vtable->free(provider);
    }
}
