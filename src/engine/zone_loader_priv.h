/* SPDX-License-Identifier: Apache-2.0 */
/* Where the files of time zones are; private to engine/. */
#ifndef GAR_ENGINE_ZONE_LOADER_PRIV_H
#define GAR_ENGINE_ZONE_LOADER_PRIV_H

#include "base/error.h"

/* Gives the kernels the reader of zone files below. The first call takes the folders from the environment. */
void gar_zone_loader_install(void);

/* The file of a zone from the first folder that has it: $TZDIR, /usr/share/zoneinfo, /usr/lib/zoneinfo, and $GAR_TZDATA, which
 * may name the folder `zoneinfo` of PyPI's tzdata. *out_data is the caller's to gar_free.
 * Errors: GAR_ERR_VALUE for a name that no zone can have, or that no folder has; GAR_ERR_IO; GAR_ERR_FORMAT for a file
 * of more than 1 MiB; GAR_ERR_NOMEM. Threads: any, after gar_zone_loader_install. */
GAR_MUST_USE enum gar_status gar_zone_load_file(const char *name, uint8_t **out_data,
                                                int64_t *out_bytes, struct gar_error *err);

#endif
