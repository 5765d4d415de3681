/* SPDX-License-Identifier: Apache-2.0 */
/* Moving rows: gather, flatten, concatenate, compact. Results are new columns; inputs are never written. */
#ifndef GAR_ARROW_GATHER_H
#define GAR_ARROW_GATHER_H

#include "arrow/column.h"

/* Row k of the result is row rows[k]; rows[k] in 0..length-1, not checked. DICTIONARY stays DICTIONARY, CONSTANT
 * stays CONSTANT; string data buffers are shared. Errors: GAR_ERR_NOMEM. Threads: any. */
GAR_MUST_USE enum gar_status gar_column_gather(const struct gar_column *column,
                                               const uint32_t *rows, int64_t count,
                                               struct gar_memory *memory, struct gar_column **out,
                                               struct gar_error *err);
/* The same with 64-bit row numbers; a negative number gives null. */
GAR_MUST_USE enum gar_status gar_column_gather_i64(const struct gar_column *column,
                                                   const int64_t *rows, int64_t count,
                                                   struct gar_memory *memory,
                                                   struct gar_column **out, struct gar_error *err);
/* FLAT with the same rows; a FLAT column gives a new reference. */
GAR_MUST_USE enum gar_status gar_column_flatten(const struct gar_column *column,
                                                struct gar_memory *memory, struct gar_column **out,
                                                struct gar_error *err);
/* All rows of all, in order; same type. FLAT, or DICTIONARY if all share one dictionary id. */
GAR_MUST_USE enum gar_status gar_column_concat(struct gar_column *const *columns, int64_t count,
                                               struct gar_type type, struct gar_memory *memory,
                                               struct gar_column **out, struct gar_error *err);
/* Bytes that the rows of a FLAT string or binary column have outside of their views. */
int64_t gar_column_far_bytes(const struct gar_column *column);
/* String and binary: copies the bytes in use into one fresh buffer when they are under half of what is held
 * (or always, if `force`); else, and for other types, a new reference. */
GAR_MUST_USE enum gar_status gar_column_compact(const struct gar_column *column, bool force,
                                                struct gar_memory *memory, struct gar_column **out,
                                                struct gar_error *err);

#endif
