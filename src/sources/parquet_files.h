/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a Parquet provider: opened, footers parsed, columns matched by name to one schema. */
#ifndef GAR_SOURCES_PARQUET_FILES_H
#define GAR_SOURCES_PARQUET_FILES_H

#include <gar/gar.h>

#include "expr/program.h"
#include "formats/parquet/parquet.h"
#include "runtime/cancel.h"
#include "storage/source.h"

struct gar_parquet_input {
    char *path; /* owned */
    struct gar_source
        *source; /* owned; kept open only for streams, whose content cannot be opened again */
    struct gar_source_id id;       /* the state that the footer belongs to */
    struct gar_parquet_file *file; /* owned reference */
    int64_t *columns; /* schema position -> file column, -1: nulls or the path; owned */
    struct gar_program **
        casts; /* schema position -> cast of the file's column to the schema's type, or NULL; owned */
    struct gar_schema **
        cast_inputs; /* schema position -> one field of the file's type, where there is a cast; owned */
};

struct gar_parquet_inputs {
    struct gar_schema *schema; /* owned */
    int64_t path_column;       /* position of the file path column, -1: none */
    int64_t count;
    struct gar_parquet_input *items; /* owned */
    int64_t rows;
    int64_t row_groups;
    int64_t bytes; /* of all data as written, uncompressed; a hint */
};

/* Opens all files of all paths. Without a given schema it is the first file's, and every file must have its columns with the
 * same types, in any order. Errors as gar_parquet_provider_new. Owns: caller destroys *out, also after a failure. */
GAR_MUST_USE enum gar_status gar_parquet_inputs_open(const char *const *paths, int64_t count,
                                                     const struct gar_parquet_options *options,
                                                     struct gar_cancel *cancel,
                                                     struct gar_parquet_inputs *out,
                                                     struct gar_error *err);
void gar_parquet_inputs_destroy(struct gar_parquet_inputs *inputs);
/* The file again, in the state the footer was read from. Owns: caller unrefs *out. Blocks. */
GAR_MUST_USE enum gar_status gar_parquet_input_reopen(const struct gar_parquet_input *input,
                                                      struct gar_source **out,
                                                      struct gar_error *err);

#endif
