/* SPDX-License-Identifier: Apache-2.0 */
/* Resource requests: the public struct and functions of <gar/resources.h>, and texts for messages. */
#ifndef GAR_RESOURCES_REQUEST_H
#define GAR_RESOURCES_REQUEST_H

#include <gar/resources.h>

#include "base/attrs.h"
#include "base/error.h"

/* 0.2 -> 2000, 1.0 / 3 -> 3333: rounded down but for the error of the double itself. amount is finite, nonnegative and
 * below 1e9. */
int64_t gar_shares_from_double(double amount);
/* 2000 -> "0.2"; 10000 -> "1". Returns out. */
const char *gar_shares_text(int64_t shares, char *out, int64_t out_bytes);
/* "512 bytes", "1.5 MiB". Returns out. */
const char *gar_bytes_text(int64_t bytes, char *out, int64_t out_bytes);

/* The fields as they are booked: what was not asked is 0. */
struct gar_resource_request gar_resource_request_booked(const struct gar_resource_request *request);

#endif
