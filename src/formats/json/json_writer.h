/* SPDX-License-Identifier: Apache-2.0 */
/* Batches to JSON lines: one object a row. */
#ifndef GAR_FORMATS_JSON_JSON_WRITER_H
#define GAR_FORMATS_JSON_JSON_WRITER_H

#include "arrow/batch.h"
#include "base/strbuf.h"

/* The selected rows, each as {"name":value,...} and '\n'. Null values are written as null, NaN and infinities too
 * (JSON has no word for them); decimals and 64-bit integers as numbers with all their digits; dates and times as ISO
 * 8601 text; durations as ticks; binary as base64 text. Control characters are escaped.
 *
 * Errors:  GAR_ERR_NOMEM
 * Owns:    borrows batch; appends to out; memory is used for columns that have to be flattened
 * Threads: any; never blocks */
GAR_MUST_USE enum gar_status gar_json_write_batch(const struct gar_batch *batch,
                                                  struct gar_memory *memory, struct gar_strbuf *out,
                                                  struct gar_error *err);

#endif
