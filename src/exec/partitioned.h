/* SPDX-License-Identifier: Apache-2.0 */
/* Rows divided by the hash of their key, kept apart until each partition's turn comes.
 *
 * Workers add rows with their hashes. A worker gathers some thousands, divides them by GAR_PARTITION_BITS bits of the hash
 * (from bit `shift` on, from the top) and keeps a batch for each partition: those of resident partitions in memory, the
 * others on disk (exec/spilled.h). A partition is read as a source, in any order of its rows.
 *
 * Memory: a few MiB a worker while rows are added, the batches of resident partitions, a few words a batch on disk.
 * Order: none. */
#ifndef GAR_EXEC_PARTITIONED_H
#define GAR_EXEC_PARTITIONED_H

#include "exec/exec_priv.h"

enum { GAR_PARTITION_BITS = 5, GAR_PARTITIONS = 1 << GAR_PARTITION_BITS };

struct gar_partitioned;

/* Is the room of the query's memory below `bytes`, or below what every operator leaves to others (parts of one, shift > 0,
 * leave less)? Any thread. */
bool gar_query_is_tight(const struct gar_query *query, int32_t shift, int64_t bytes);
/* What the query may still take, less what every operator leaves to others; at least 0. */
int64_t gar_query_room(const struct gar_query *query, int32_t shift);

/* resident: how many partitions, the first ones, lie in memory; fewer when it gets short: then there must be room for
 * overhead bytes for each of their rows, too. Errors: GAR_ERR_NOMEM. Owns: caller frees;
 * schema and memory are borrowed. */
GAR_MUST_USE enum gar_status gar_partitioned_new(struct gar_query *query, struct gar_schema *schema,
                                                 int32_t shift, int32_t resident, int64_t overhead,
                                                 struct gar_memory *memory,
                                                 struct gar_partitioned **out,
                                                 struct gar_error *err);
void gar_partitioned_free(struct gar_partitioned *parts);
/* The partition of a hash. */
GAR_INLINE int32_t gar_partition_of(uint32_t hash, int32_t shift)
{
    return (int32_t)((hash << shift) >> (32 - GAR_PARTITION_BITS));
}

/* May rows that share `shift` bits of their hashes be divided? Not without a place to put them, nor beyond 20 bits. */
bool gar_query_may_divide(const struct gar_query *query, int32_t shift);

/* compute, each worker for itself: add rows of columns of the schema's types (any encodings; references are taken).
 * Errors: GAR_ERR_NOMEM, IO errors of writing. */
GAR_MUST_USE enum gar_status gar_partitioned_add(struct gar_partitioned *parts, int32_t worker,
                                                 struct gar_column *const *columns, int64_t rows,
                                                 const uint32_t *hashes, struct gar_error *err);
/* compute, each worker for itself: after the last row; or to put what it holds of partitions that are resident no more on
 * disk. */
GAR_MUST_USE enum gar_status gar_partitioned_flush(struct gar_partitioned *parts, int32_t worker,
                                                   struct gar_error *err);
/* Any thread: from now on only partitions below `resident` stay in memory; the number never rises. */
void gar_partitioned_evict(struct gar_partitioned *parts, int32_t resident);
int32_t gar_partitioned_resident(const struct gar_partitioned *parts);

/* Has any row been added? No worker is at work. */
bool gar_partitioned_is_used(const struct gar_partitioned *parts);

/* After the flushes, role: rows of a partition, and what it holds in memory. */
int64_t gar_partitioned_rows(const struct gar_partitioned *parts, int32_t partition);
int64_t gar_partitioned_bytes(const struct gar_partitioned *parts, int32_t partition);
/* role: take a batch out of a resident partition; NULL: no more. Owns: caller unrefs. */
struct gar_batch *gar_partitioned_take(struct gar_partitioned *parts, int32_t partition);
/* role, no worker is at work: divide what was added and not divided yet; it stays in memory. */
GAR_MUST_USE enum gar_status gar_partitioned_settle(struct gar_partitioned *parts,
                                                    struct gar_error *err);
/* A source of the partition's rows, owned by the query; its batches are gone when it is released. `op`: number of the
 * operator in the profile. Errors: GAR_ERR_NOMEM. */
GAR_MUST_USE enum gar_status gar_partitioned_source(struct gar_partitioned *parts,
                                                    int32_t partition, int32_t op,
                                                    struct gar_source **out, struct gar_error *err);

#endif
