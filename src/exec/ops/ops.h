/* SPDX-License-Identifier: Apache-2.0 */
/* The operators: what lowering builds pipelines of. Every constructor gives an object that the query owns (it is freed
 * with the query, also when the constructor fails after making it). Threads: all are made on the
 * thread that starts the query. */
#ifndef GAR_EXEC_OPS_OPS_H
#define GAR_EXEC_OPS_OPS_H

#include "exec/exec_priv.h"

/* A scan, opened. *out_scan (borrowed from the source) tells the schema of its batches and whether it applies the whole
 * filter itself. Errors: what the provider's open says. */
GAR_MUST_USE enum gar_status gar_scan_source_new(struct gar_query *query,
                                                 struct gar_scan_provider *provider,
                                                 const struct gar_scan_request *request,
                                                 struct gar_source **out,
                                                 const struct gar_scan **out_scan,
                                                 struct gar_error *err);

/* Rows where the predicate is true, as a selection. */
GAR_MUST_USE enum gar_status gar_filter_new(struct gar_query *query, const struct gar_schema *input,
                                            struct gar_expr *predicate, struct gar_transform **out,
                                            struct gar_error *err);
/* Rows that `use` lets pass, by column number `column`. */
GAR_MUST_USE enum gar_status gar_key_test_new(struct gar_query *query, struct gar_schema *input,
                                              int64_t column, struct gar_key_use *use,
                                              struct gar_transform **out, struct gar_error *err);
/* The expressions as columns of `schema`. Plain columns alone keep the selection of the input. */
GAR_MUST_USE enum gar_status gar_project_new(struct gar_query *query,
                                             const struct gar_schema *input,
                                             struct gar_expr *const *exprs,
                                             struct gar_schema *schema, struct gar_transform **out,
                                             struct gar_error *err);

/* The end of the last pipeline: batches go to the consumer. */
GAR_MUST_USE enum gar_status gar_result_sink_new(struct gar_query *query, struct gar_sink **out,
                                                 struct gar_error *err);
/* Keeps batches and gives them again as a source (owned by the sink): between a limit and what comes after it.
 * Memory: all rows of the limit. Order: kept. */
GAR_MUST_USE enum gar_status gar_collect_sink_new(struct gar_query *query,
                                                  struct gar_sink **out_sink,
                                                  struct gar_source **out_source,
                                                  struct gar_error *err);

/* AGGREGATE, DISTINCT, SORT and WRITE nodes: a sink over the node's input, and a source of its
 * result. */
GAR_MUST_USE enum gar_status gar_group_by_new(struct gar_query *query, const struct gar_plan *plan,
                                              struct gar_sink **out_sink,
                                              struct gar_source **out_source,
                                              struct gar_error *err);
GAR_MUST_USE enum gar_status gar_distinct_new(struct gar_query *query, const struct gar_plan *plan,
                                              struct gar_sink **out_sink,
                                              struct gar_source **out_source,
                                              struct gar_error *err);
GAR_MUST_USE enum gar_status gar_order_by_new(struct gar_query *query, const struct gar_plan *plan,
                                              struct gar_sink **out_sink,
                                              struct gar_source **out_source,
                                              struct gar_error *err);
GAR_MUST_USE enum gar_status gar_window_new(struct gar_query *query, const struct gar_plan *plan,
                                            struct gar_sink **out_sink,
                                            struct gar_source **out_source, struct gar_error *err);
/* A WINDOW node that only numbers its input's rows. The pipeline that ends in the sink is streaming and ordered. */
bool gar_number_applies(const struct gar_plan *plan);
GAR_MUST_USE enum gar_status gar_number_new(struct gar_query *query, const struct gar_plan *plan,
                                            struct gar_sink **out_sink,
                                            struct gar_source **out_source, struct gar_error *err);
GAR_MUST_USE enum gar_status gar_write_sink_new(struct gar_query *query,
                                                const struct gar_plan *plan, bool is_dry,
                                                struct gar_sink **out_sink,
                                                struct gar_source **out_source,
                                                struct gar_error *err);

struct gar_join;
/* JOIN nodes: a sink for the side that the table is made of, a transform for the other side, and a source (or NULL) of rows
 * of the first side that come after all of the second. */
GAR_MUST_USE enum gar_status gar_join_new(struct gar_query *query, const struct gar_plan *plan,
                                          struct gar_sink **out_sink,
                                          struct gar_transform **out_transform,
                                          struct gar_source **out_rest, struct gar_join **out_join,
                                          struct gar_error *err);

/* A UDF node over batches of `input`: the columns of the node's input, then its arguments. The source's batches have the
 * node's columns. The pipeline that ends in the sink is streaming. */
GAR_MUST_USE enum gar_status gar_udf_stage_new(struct gar_query *query, const struct gar_plan *plan,
                                               struct gar_schema *input, bool is_dry,
                                               struct gar_sink **out_sink,
                                               struct gar_source **out_source,
                                               struct gar_error *err);

/* ---- shared by operators ---- */

/* A list of batches that is a source: one unit a batch, cut to max_rows. Embedded. */
struct gar_batch_list {
    struct gar_source source;
    struct gar_batch **batches; /* owned */
    int64_t count;
    int64_t capacity;
    int64_t next; /* unit to give */
};
void gar_batch_list_init(struct gar_batch_list *list);
void gar_batch_list_destroy(struct gar_batch_list *list);
/* Moves the batch in; on failure it stays the caller's. */
GAR_MUST_USE enum gar_status gar_batch_list_add(struct gar_batch_list *list,
                                                struct gar_batch *batch, struct gar_error *err);

#endif
