/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of batches on disk: rows that an operator cannot hold, written as they come and read back batch by batch.
 *
 * A batch becomes one block of the query's spill file (storage/spill.h): a checksum, then each column's validity, values, and
 * for texts lengths and bytes, each compressed by LZ4 where that pays. No pointer is in it. Encodings and selections are
 * gone when it is read; origins (arrow/batch.h) are not kept.
 *
 * When to spill: an operator that is about to grow asks how much room the query's account has (gar_account_room_bytes), and
 * leaves a share of the limit to the operators beside it. The run itself needs twice the bytes of a batch while it writes
 * or reads one, so batches should have some MiB at most, and some ten thousand rows. */
#ifndef GAR_EXEC_SPILLED_H
#define GAR_EXEC_SPILLED_H

#include "arrow/batch.h"
#include "storage/spill.h"

struct gar_spilled_block {
    int64_t offset; /* -1: given back */
    int64_t bytes;
    int64_t rows;
};

/* A zeroed struct is safe to destroy. */
struct gar_spilled {
    struct gar_spill_file *file;      /* borrowed */
    struct gar_schema *schema;        /* owned reference */
    struct gar_spilled_block *blocks; /* owned */
    int64_t count;
    int64_t capacity;
    int64_t rows;
    int64_t bytes; /* on disk */
};

void gar_spilled_init(struct gar_spilled *run, struct gar_spill_file *file,
                      struct gar_schema *schema);
/* Gives what is left back. No reader is at work. */
void gar_spilled_destroy(struct gar_spilled *run);
/* Write the rows of a batch of the run's schema (borrowed); a very large one becomes several. Errors: GAR_ERR_NOMEM (memory
 * or spill space), GAR_ERR_IO, GAR_ERR_UNSUPPORTED (a type that cannot be written). Threads: one at a time. */
GAR_MUST_USE enum gar_status gar_spilled_add(struct gar_spilled *run, const struct gar_batch *batch,
                                             struct gar_memory *memory, struct gar_error *err);
/* Batch i of 0 .. count - 1, FLAT columns. Errors: GAR_ERR_NOMEM, GAR_ERR_IO (also for a checksum that is wrong). Threads:
 * any number at once, when no one writes. */
GAR_MUST_USE enum gar_status gar_spilled_read(const struct gar_spilled *run, int64_t i,
                                              struct gar_memory *memory, struct gar_batch **out,
                                              struct gar_error *err);
/* Batch i is not needed any more; once. Threads: one for a batch. */
void gar_spilled_release(struct gar_spilled *run, int64_t i);

#endif
