/* SPDX-License-Identifier: Apache-2.0 */
/* Row groups that a filter cannot match, as statistics prove. */
#ifndef GAR_SOURCES_PARQUET_PRUNE_H
#define GAR_SOURCES_PARQUET_PRUNE_H

#include "expr/expr.h"
#include "formats/parquet/parquet.h"
#include "plan/key_filter.h"

struct gar_parquet_prune {
    struct gar_parquet_file *file;   /* borrowed */
    const struct gar_schema *schema; /* the provider's; borrowed */
    const int64_t
        *file_columns; /* provider position -> file column, -1: not in the file; borrowed */
};

/* True if the filter is false or null for every row of the row group. Anything not understood, and any failure (memory
 * too), gives false: the row group is then read. Threads: any. */
bool gar_parquet_prune_group(const struct gar_parquet_prune *prune, int64_t row_group,
                             const struct gar_expr *filter);
/* True if none of a filled filter's keys lies in the row group. */
bool gar_parquet_prune_keys(const struct gar_parquet_prune *prune, int64_t row_group,
                            const struct gar_key_use *use);

#endif
