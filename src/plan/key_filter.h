/* SPDX-License-Identifier: Apache-2.0 */
/* The keys that a running join has in its table, for scans of the other side: rows whose key is not among them have no
 * partner and need not be read further.
 *
 * A filter is made with the query, open (it says nothing), and filled once when the table's side is complete. Its form
 * then follows from the keys: a bitmap over their range where that is small enough (exact), else a Bloom filter (a few rows
 * in a thousand pass in vain), with the range in both. Integers up to 64 bits, dates and times are taken; nulls never pass.
 *
 * Memory: a bit for each value of the range, or 16 bits a key. Threads: fill once, on one thread; everything else on any,
 * also meanwhile. */
#ifndef GAR_PLAN_KEY_FILTER_H
#define GAR_PLAN_KEY_FILTER_H

#include "arrow/column.h"

struct gar_key_filter;

/* Are keys of the type taken? */
bool gar_key_filter_takes(struct gar_type type);
/* memory is borrowed. Errors: GAR_ERR_NOMEM. Owns: caller frees, when nobody looks at it any more. */
GAR_MUST_USE enum gar_status gar_key_filter_new(struct gar_memory *memory,
                                                struct gar_key_filter **out, struct gar_error *err);
void gar_key_filter_free(struct gar_key_filter *filter);
/* All keys, a column of a type that is taken. When there is no memory for it the filter stays open: scans do without. */
void gar_key_filter_fill(struct gar_key_filter *filter, const struct gar_column *keys);

/* Has it been filled? */
bool gar_key_filter_is_filled(const struct gar_key_filter *filter);
/* May a filled filter let a value of [least, greatest] pass? */
bool gar_key_filter_may_match(const struct gar_key_filter *filter, int64_t least, int64_t greatest);
/* Rows of a FLAT column of the keys' type that may be keys, of those in `rows` (count ascending row numbers; NULL: rows
 * 0 .. count - 1). out has room for count and may be `rows`. Gives how many.
 * Shape: column[length], rows[count] -> out[<= count] */
int64_t gar_key_filter_select(const struct gar_key_filter *filter, const struct gar_column *column,
                              const uint32_t *rows, int64_t count, uint32_t *out);

/* A filter that a scan shall apply to one of the provider's columns. `tested` and `passed` are added to with relaxed
 * atomics: a filter that lets nearly everything through is not worth its cost, and is left alone from then on. */
struct gar_key_use {
    struct gar_key_filter *filter; /* borrowed */
    int64_t position;              /* of the column in the provider's schema */
    int64_t tested;
    int64_t passed;
};
/* Is it filled, and worth being applied? */
bool gar_key_use_pays(const struct gar_key_use *use);
void gar_key_use_count(struct gar_key_use *use, int64_t tested, int64_t passed);

#endif
