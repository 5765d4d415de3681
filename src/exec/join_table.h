/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a join: from key columns to the rows of one side (the build side) that have that key.
 *
 * Rows with one key lie together in a list of row numbers; when no key occurs twice, there is no list. Three forms:
 *   array  one integer key whose values lie close together: a cell for each value of the range
 *   words  one key of up to 8 bytes, or several whose ranges go into 8 bytes together: open addressing, the key lies in
 *          the slot
 *   rows   any keys: open addressing by hash, key rows (kernels/hash_rows.h) are compared
 * Slots are divided into regions by the upper bits of the hash, so that tasks build them side by side.
 *
 * Building goes in steps, each of several items that may run on several threads at once; when all items of a step are
 * done, the next step begins. After the last one the table is constant and any number of threads may look up.
 * Memory: a key row a row, a slot of 16 bytes for each row twice over (or 4 bytes a value of the range), 4 bytes a row when keys
 * repeat; while it is built, 4 bytes a row more. Nothing holds a pointer but texts over 12 bytes in key rows: they
 * point into the key columns, which the table keeps. */
#ifndef GAR_EXEC_JOIN_TABLE_H
#define GAR_EXEC_JOIN_TABLE_H

#include "arrow/column.h"
#include "kernels/hash_rows.h"

struct gar_cancel;
struct gar_join_table;

/* types: of the key columns, count >= 1. nulls_equal[k]: null is a key like others; else rows with null there match
 * nothing. regions: tasks that build at once, at most. Errors: GAR_ERR_NOMEM, GAR_ERR_UNSUPPORTED (too many keys).
 * Owns: caller frees; memory is borrowed. */
GAR_MUST_USE enum gar_status gar_join_table_new(const struct gar_type *types, int64_t count,
                                                const bool *nulls_equal, int32_t regions,
                                                struct gar_memory *memory,
                                                struct gar_join_table **out, struct gar_error *err);
void gar_join_table_free(struct gar_join_table *table);

/* All rows: FLAT or other columns of one length; references are taken. Errors: GAR_ERR_UNSUPPORTED beyond 2^31 - 2 rows. */
GAR_MUST_USE enum gar_status gar_join_table_begin(struct gar_join_table *table,
                                                  struct gar_column *const *columns, int64_t rows,
                                                  struct gar_error *err);
/* Prepares the next step. *out_items: how many items it has, 0 when the table is ready. Threads: no item is under way.
 * Errors: GAR_ERR_NOMEM. */
GAR_MUST_USE enum gar_status gar_join_table_step(struct gar_join_table *table, int64_t *out_items,
                                                 struct gar_error *err);
/* One item of the step. cancel (may be NULL) is looked at now and then. */
GAR_MUST_USE enum gar_status gar_join_table_item(struct gar_join_table *table, int64_t item,
                                                 const struct gar_cancel *cancel,
                                                 struct gar_error *err);

int64_t gar_join_table_rows(const struct gar_join_table *table);
/* Does no key occur twice? */
bool gar_join_table_is_unique(const struct gar_join_table *table);
/* Words of scratch that a lookup needs. */
int64_t gar_join_table_scratch(const struct gar_join_table *table);

/* Look up rows [first, first + count) of key columns of the table's types. The partners of row i are rows
 * gar_join_table_row(table, out_start[i] + k), k in 0 .. out_count[i] - 1.
 * Shape:   columns[keys] -> out_start[count], out_count[count]
 * Threads: any number at once, each with scratch of its own */
void gar_join_table_find(const struct gar_join_table *table, struct gar_column *const *columns,
                         int64_t first, int64_t count, uint64_t *scratch, uint32_t *out_start,
                         uint32_t *out_count);
/* Row numbers by place; NULL: the place is the row. */
const uint32_t *gar_join_table_lists(const struct gar_join_table *table);

#endif
