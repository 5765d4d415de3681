/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the sources of devices. */
#ifndef GAR_RESOURCES_DEVICES_PRIV_H
#define GAR_RESOURCES_DEVICES_PRIV_H

#include "resources/devices.h"

/* Copies the device to the end of the list. */
GAR_MUST_USE enum gar_status gar_device_list_append(struct gar_device_list *list,
                                                    const struct gar_device *device,
                                                    struct gar_error *err);
/* Adds a warning behind those that are there; cut where it does not fit. */
void gar_device_list_warn(struct gar_device_list *list, const char *format, ...) GAR_PRINTF(2, 3);

/* One element of a comma list. */
struct gar_list_element {
    const char *text; /* borrowed, not terminated */
    int64_t bytes;
};
/* Steps through a comma list: *at starts at its beginning. False after the last element. A list of length 0 has one
 * empty element. */
bool gar_list_next(const char **at, struct gar_list_element *out);
/* Without blanks and tabs at both ends. */
struct gar_list_element gar_list_trim(struct gar_list_element element);
bool gar_list_starts_with(struct gar_list_element element, const char *prefix);

#endif
