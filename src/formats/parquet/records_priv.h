/* SPDX-License-Identifier: Apache-2.0 */
/* Levels of nested columns to their shape and back, without values: who is null, and which items a list has.
 *
 * A leaf's path is a row of nodes, from the column itself to the leaf. Each node has slots: rows for the nodes above the first
 * list, items of the nearest list above for the others. Slots of a node below a null struct are there and null, so that a
 * struct and its fields have as many. A null list and an empty list have no items.
 *
 * Nothing here trusts the levels: each is checked against the path and against the level before it. Memory grows with levels
 * that were really decoded, and is charged to the account given. */
#ifndef GAR_FORMATS_PARQUET_RECORDS_PRIV_H
#define GAR_FORMATS_PARQUET_RECORDS_PRIV_H

#include "arrow/buffer.h"

#define PARQUET_NODES_MAX 64

/* Items [offset, offset + length) of the node below. {0, 0} for null. */
struct parquet_list_entry {
    int64_t offset;
    int64_t length;
};

struct parquet_node {
    bool is_optional; /* may be null */
    bool is_list;     /* its items are the slots of the node below; the leaf is none */
    /* Filled in by gar_records_path: */
    uint32_t defined;  /* a definition level from here on: not null */
    uint32_t filled;   /* lists: from here on an item is there */
    uint32_t repeats;  /* lists: the repetition level of an item that is not the first */
    int32_t container; /* node number of the nearest list above, -1: none */
};

/* The nodes of one leaf and its greatest levels. */
struct parquet_path {
    struct parquet_node nodes[PARQUET_NODES_MAX]; /* the last is the leaf */
    int32_t count;
    uint32_t max_definition;
    uint32_t max_repetition;
};

/* Works out the levels of a path whose count, is_optional and is_list are set. A list whose node is not optional is the bare
 * repeated field, or the required group around one. Errors: GAR_ERR_UNSUPPORTED: no node, or more than PARQUET_NODES_MAX;
 * GAR_ERR_INTERNAL: a leaf that is a list. */
GAR_MUST_USE enum gar_status gar_records_path(struct parquet_path *path, struct gar_error *err);

/* What the levels said of one node. */
struct parquet_node_shape {
    int64_t slots;
    int64_t null_count;
    struct gar_buffer *validity; /* owned; a bit for each slot; NULL for a node that is not optional
                                    and has no optional struct above it in its container */
    struct gar_buffer *entries;  /* owned; lists: struct parquet_list_entry for each slot */
};

/* The shape of a run of whole rows. */
struct parquet_records {
    const struct parquet_path *path; /* borrowed */
    struct gar_memory *memory;       /* borrowed */
    struct parquet_node_shape nodes[PARQUET_NODES_MAX];
    int64_t values;           /* slots of the leaf that are not null: values to decode */
    uint32_t last_definition; /* of the level before */
    bool has_level;           /* there was one */
};

void gar_records_init(struct parquet_records *records, const struct parquet_path *path,
                      struct gar_memory *memory);
void gar_records_destroy(struct parquet_records *records);

/* Takes count levels; repetition NULL: all 0. They may end inside a row. Errors: GAR_ERR_FORMAT: a level above the path's
 * greatest, a first level that does not begin a row, an item that goes on with a list that has none;
 * GAR_ERR_NOMEM. After an error only gar_records_destroy is allowed. */
GAR_MUST_USE enum gar_status gar_records_add(struct parquet_records *records,
                                             const uint32_t *repetition, const uint32_t *definition,
                                             int64_t count, struct gar_error *err);

/* How many of the next count levels belong to the row that is open and `rows` more; *out_rows gets how many rows begin there. */
int64_t gar_records_cut(const uint32_t *repetition, int64_t count, int64_t rows, int64_t *out_rows);

/* Leaves of one column must say the same about the nodes that they share, the first `shared` of both paths. */
bool gar_records_agree(const struct parquet_records *a, const struct parquet_records *b,
                       int32_t shared);

/* Writing: the shape of one node as columns have it. */
struct parquet_node_source {
    const uint8_t *validity; /* NULL: no null */
    int64_t validity_offset;
    const struct parquet_list_entry *entries; /* lists; any order, overlaps and gaps allowed */
};

/* The levels of one leaf. A zeroed struct is safe to destroy. */
struct parquet_levels {
    struct gar_buffer *repetition; /* owned; uint32_t, count of them */
    struct gar_buffer *definition; /* owned; uint32_t */
    struct gar_buffer *slots;      /* owned; int64_t: the leaf slot of each value, in order */
    int64_t count;
    int64_t values;
};

/* Levels of rows [from, from + rows); sources: one for each node of the path. A null where the path's node is not optional is an
 * error. Errors: GAR_ERR_VALUE, GAR_ERR_NOMEM. Owns: the caller destroys *out, also after an error. */
GAR_MUST_USE enum gar_status gar_records_levels(const struct parquet_path *path,
                                                const struct parquet_node_source *sources,
                                                int64_t from, int64_t rows,
                                                struct gar_memory *memory,
                                                struct parquet_levels *out, struct gar_error *err);
void gar_parquet_levels_destroy(struct parquet_levels *levels);

#endif
