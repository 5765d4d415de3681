/* SPDX-License-Identifier: Apache-2.0 */
/* Columns, batches and schemas from and to the Arrow C data interface.
 *
 * Import takes what producers emit today: all widths and offsets, utf8, large_utf8 and string views (and binary),
 * dictionaries, booleans, decimal32/64/128 (256 only where values fit), date32/64, all time units, null, run-end
 * encoding, float16 (as float32), nulls without a bitmap. Nested types are GAR_ERR_UNSUPPORTED naming the field. Buffers
 * are shared where layouts agree, else copied. Lengths, offsets and views are checked; strings are checked for UTF-8.
 * Export gives views ("vu", "vz") or 64-bit offsets ("U", "Z"); a column that is DICTIONARY or CONSTANT is flattened. */
#ifndef GAR_ARROW_ABI_IMPORT_H
#define GAR_ARROW_ABI_IMPORT_H

#include <gar/arrow_abi.h>

#include "arrow/batch.h"

enum gar_text_layout {
    GAR_TEXT_VIEWS,        /* string_view / binary_view: shares buffers */
    GAR_TEXT_LARGE_OFFSETS /* large_string / large_binary: copies bytes */
};

/* Schema of a struct type (a record batch). Borrows abi. */
GAR_MUST_USE enum gar_status gar_schema_import(const struct ArrowSchema *abi,
                                               struct gar_schema **out, struct gar_error *err);
/* One field's type. Borrows abi. */
GAR_MUST_USE enum gar_status gar_type_import(const struct ArrowSchema *abi, struct gar_type *out,
                                             struct gar_error *err);
/* A record batch: moves `array` (its release is NULL afterwards, also on failure) and borrows `abi`, its schema. */
GAR_MUST_USE enum gar_status gar_batch_import(const struct ArrowSchema *abi,
                                              struct ArrowArray *array, struct gar_schema *schema,
                                              struct gar_memory *memory, struct gar_batch **out,
                                              struct gar_error *err);
/* One column: moves `array` likewise. */
GAR_MUST_USE enum gar_status gar_column_import(const struct ArrowSchema *abi,
                                               struct ArrowArray *array, struct gar_memory *memory,
                                               struct gar_column **out, struct gar_error *err);
/* out is uninitialised memory of the caller; filled on success (caller calls out->release). */
GAR_MUST_USE enum gar_status gar_schema_export(const struct gar_schema *schema,
                                               enum gar_text_layout layout, struct ArrowSchema *out,
                                               struct gar_error *err);
GAR_MUST_USE enum gar_status gar_type_export(struct gar_type type, const char *name, bool nullable,
                                             enum gar_text_layout layout, struct ArrowSchema *out,
                                             struct gar_error *err);
/* Gathers a selection first. The exported array holds references. memory is used for what must be copied. */
GAR_MUST_USE enum gar_status gar_batch_export(const struct gar_batch *batch,
                                              enum gar_text_layout layout,
                                              struct gar_memory *memory, struct ArrowArray *out,
                                              struct gar_error *err);
GAR_MUST_USE enum gar_status gar_column_export(const struct gar_column *column,
                                               enum gar_text_layout layout,
                                               struct gar_memory *memory, struct ArrowArray *out,
                                               struct gar_error *err);

#endif
