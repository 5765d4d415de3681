/* SPDX-License-Identifier: Apache-2.0 */
/* Values as text, shared by the text formats: everything but strings and binary. */
#ifndef GAR_FORMATS_TEXT_CELL_H
#define GAR_FORMATS_TEXT_CELL_H

#include "arrow/batch.h"

/* Longest text that gar_text_cell writes. */
#define GAR_TEXT_CELL_BYTES 64

/* The columns of a batch without selection and in FLAT form. A zeroed struct is empty. */
struct gar_text_columns {
    struct gar_batch *batch;     /* owned reference; gathered */
    struct gar_column **columns; /* owned; batch->schema->count */
};

/* Errors: GAR_ERR_NOMEM. Owns: takes references; caller destroys. Threads: any. */
GAR_MUST_USE enum gar_status gar_text_columns_init(struct gar_text_columns *columns,
                                                   const struct gar_batch *batch,
                                                   struct gar_memory *memory,
                                                   struct gar_error *err);
void gar_text_columns_destroy(struct gar_text_columns *columns);

/* Write row `row` (not null) of a FLAT column that is neither string nor binary; returns the length. Dates and times
 * are ISO 8601 without quotes, floats as gar_format_double, booleans true or false, durations ticks. out has room
 * for GAR_TEXT_CELL_BYTES. */
int32_t gar_text_cell(const struct gar_column *column, int64_t row, char *out);

#endif
