/* SPDX-License-Identifier: Apache-2.0 */
/* Which scans look for the keys of which joins.
 *
 * Lowering makes the table's side of a join before the other side. On the way down that other side it carries a list of
 * wants: columns of the node at hand of whose rows only those matter that a key filter lets pass. A want goes through what
 * a filter on its column would go through, and along the equalities of joins to their other side; at a scan it becomes a
 * test. Filters are filled before the scans begin, or else let everything pass. */
#ifndef GAR_EXEC_KEY_WANTS_H
#define GAR_EXEC_KEY_WANTS_H

#include "exec/ops/join.h"

struct gar_key_want {
    const struct gar_key_want *next;
    int64_t position; /* in the schema of the node */
    struct gar_key_filter *filter;
};

/* What a node's input `side` is wanted for; lists lie in the query's arena. Errors: GAR_ERR_NOMEM. */
GAR_MUST_USE enum gar_status gar_key_wants_below(struct gar_query *query,
                                                 const struct gar_plan *node, int64_t side,
                                                 const struct gar_key_want *wants,
                                                 const struct gar_key_want **out,
                                                 struct gar_error *err);
/* The wants of a join's own keys for the other side than the table's, put before `wants`; the filters are the join's. */
GAR_MUST_USE enum gar_status gar_key_wants_add(struct gar_query *query, const struct gar_plan *plan,
                                               struct gar_join *join,
                                               const struct gar_key_want **wants,
                                               struct gar_error *err);
/* The tests of a scan (count items, for as long as the query lives), over the provider's schema. */
GAR_MUST_USE enum gar_status gar_key_wants_of_scan(struct gar_query *query,
                                                   const struct gar_plan *scan,
                                                   const struct gar_key_want *wants,
                                                   struct gar_key_use **out, int64_t *out_count,
                                                   struct gar_error *err);

#endif
