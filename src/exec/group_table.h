/* SPDX-License-Identifier: Apache-2.0 */
/* Group tables: from key columns to dense group numbers (0, 1, 2, ... in the order of their first row).
 *
 * Slots of an open-addressing table hold a 32-bit hash and a group number; key rows lie in row
 * pages, so nothing moves when the table grows.
 * In front of it are two caches for dictionary-encoded keys: code -> group for one key column, and
 * code x code -> group for several of
 * few entries. They only save work: what they do not know is looked up in the table. A single key column of up to 8 bytes
 * is compared as one word that lies in the slot.
 *
 * Memory: grows with the number of groups: one key row, two slots. Order: none needed; first rows come first.
 * Threads: one at a time. */
#ifndef GAR_EXEC_GROUP_TABLE_H
#define GAR_EXEC_GROUP_TABLE_H

#include "exec/row_page.h"

struct gar_group_table;

/* layout and memory are borrowed for the life of the table. Errors: GAR_ERR_NOMEM. Owns: caller
 * frees. */
GAR_MUST_USE enum gar_status gar_group_table_new(const struct gar_key_layout *layout,
                                                 struct gar_memory *memory,
                                                 struct gar_group_table **out,
                                                 struct gar_error *err);
void gar_group_table_free(struct gar_group_table *table);
int64_t gar_group_table_count(const struct gar_group_table *table);

/* Group numbers of rows [0, rows) of the key columns; new groups are added. Errors: GAR_ERR_NOMEM;
 * GAR_ERR_UNSUPPORTED beyond
 * 2^32 - 2 groups. The table is then still usable, groups may have been added. */
GAR_MUST_USE enum gar_status gar_group_table_find(struct gar_group_table *table,
                                                  struct gar_column *const *columns, int64_t rows,
                                                  uint32_t *out_groups, struct gar_error *err);

/* While it is frozen, find adds no groups: rows whose key the table does not have get GAR_NO_GROUP. */
#define GAR_NO_GROUP UINT32_MAX
void gar_group_table_freeze(struct gar_group_table *table, bool is_frozen);

/* Insert the keys of groups of another table of the same layout: from_groups[i] becomes
 * out_groups[i] here. */
GAR_MUST_USE enum gar_status gar_group_table_absorb(struct gar_group_table *table,
                                                    const struct gar_group_table *from,
                                                    const uint32_t *from_groups, int64_t count,
                                                    uint32_t *out_groups, struct gar_error *err);

/* The hash of a group's key, as gar_key_hashes gives it. */
uint32_t gar_group_table_hash(const struct gar_group_table *table, int64_t group);

/* Groups listed by partition: bits [shift, shift + bits) of the hash from its top, the same in all tables of one layout.
 * Ascending in each. Zeroed: nothing. */
struct gar_group_parts {
    uint32_t *groups; /* owned */
    int64_t *starts;  /* owned; first of each partition in groups, and the end */
};

#define GAR_GROUP_PARTITION_BITS_MAX 8
/* Bits for the tables of all workers, which hold so many groups together. */
int32_t gar_group_partition_bits(int64_t groups);
/* Of the listed groups (NULL: 0 .. count - 1). bits <= GAR_GROUP_PARTITION_BITS_MAX. Owns: caller destroys *out, also
 * after a failure. */
GAR_MUST_USE enum gar_status gar_group_parts_init(struct gar_group_parts *parts,
                                                  const struct gar_group_table *table,
                                                  const uint32_t *listed, int64_t count,
                                                  int32_t shift, int32_t bits,
                                                  struct gar_error *err);
void gar_group_parts_destroy(struct gar_group_parts *parts);

/* Key column `index` of groups [first, first + count). */
GAR_MUST_USE enum gar_status gar_group_table_column(const struct gar_group_table *table,
                                                    int64_t index, int64_t first, int64_t count,
                                                    struct gar_memory *memory,
                                                    struct gar_column **out, struct gar_error *err);

#endif
