/* SPDX-License-Identifier: Apache-2.0 */
/* Batches to CSV text that csv_parse reads back equal. */
#ifndef GAR_FORMATS_CSV_CSV_WRITER_H
#define GAR_FORMATS_CSV_CSV_WRITER_H

#include "arrow/batch.h"
#include "base/strbuf.h"

struct gar_csv_writer_options {
    char delimiter; /* ASCII, no line end and no quote */
    char quote;
};

/* Errors: GAR_ERR_VALUE naming the option. Threads: any. */
GAR_MUST_USE enum gar_status gar_csv_writer_options_check(
    const struct gar_csv_writer_options *options, struct gar_error *err);
/* The names, quoted where needed, and '\n'. Errors: GAR_ERR_NOMEM. Owns: appends to out. */
GAR_MUST_USE enum gar_status gar_csv_write_header(const struct gar_schema *schema,
                                                  const struct gar_csv_writer_options *options,
                                                  struct gar_strbuf *out, struct gar_error *err);
/* The selected rows. Null is an empty field; the empty text is two quotes; text is quoted where it must be. Dates
 * and times are ISO 8601 (with 'T', and 'Z' where the type has a zone); floats are shortest; durations are ticks of
 * their unit.
 *
 * Errors:  GAR_ERR_NOMEM; GAR_ERR_VALUE for binary values that are not UTF-8, naming column and row; GAR_ERR_VALUE for an
 *          impossible option. out may then hold a part of the rows.
 * Owns:    borrows batch; appends to out; memory is used for columns that have to be flattened
 * Threads: any; never blocks */
GAR_MUST_USE enum gar_status gar_csv_write_batch(const struct gar_batch *batch,
                                                 const struct gar_csv_writer_options *options,
                                                 struct gar_memory *memory, struct gar_strbuf *out,
                                                 struct gar_error *err);

#endif
