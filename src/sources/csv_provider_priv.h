/* SPDX-License-Identifier: Apache-2.0 */
/* What the CSV provider (options, sample, schema) and its scans share. */
#ifndef GAR_SOURCES_CSV_PROVIDER_PRIV_H
#define GAR_SOURCES_CSV_PROVIDER_PRIV_H

#include "formats/csv/csv_infer.h"
#include "plan/provider.h"
#include "storage/byte_reader.h"
#include "storage/paths.h"

/* Text of one unit: large enough to hide what a unit costs, small enough for the caches; with paddings and the rest of
 * the block before just under 1 MiB, a size that the memory pool has. */
#define CSV_BLOCK_BYTES (((int64_t)1 << 20) - 4096)
/* First block of a scan with a limit. */
#define CSV_FIRST_BLOCK_BYTES ((int64_t)64 << 10)

struct csv_provider {
    struct gar_scan_provider base;
    struct gar_csv_format format;
    char *null_text;            /* owned or NULL; nulls[0] */
    const char *nulls[1];       /* format.nulls */
    struct gar_path_list files; /* owned */
    struct gar_source *
        *streams; /* owned; files.count items, NULL for files that are opened anew by each scan */
    uint8_t *
        terminators; /* owned; files.count items: the line end found in the sample, 0 where there was none */
    int64_t field_count; /* columns that come from the text: the first ones of the schema */
    bool *inferred;      /* owned; field_count items */
    int64_t path_column; /* position of the file_path_column, -1: none */
    int64_t block_bytes;
};

GAR_MUST_USE enum gar_status csv_scan_open(struct gar_scan_provider *provider,
                                           const struct gar_scan_request *request,
                                           struct gar_scan **out, struct gar_error *err);
/* The file's name in messages and in explain. */
const char *csv_provider_path(const struct csv_provider *provider, int64_t file);
/* For tests: the size of blocks from now on. */
void csv_provider_set_block_bytes(struct gar_scan_provider *provider, int64_t block_bytes);

#endif
