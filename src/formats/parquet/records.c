/* SPDX-License-Identifier: Apache-2.0 */
/* Levels to shapes, node by node: a node has a slot for each level that repeats no deeper than its container and reaches
 * into it. */
#include <string.h>

#include "base/bits.h"
#include "formats/parquet/records_priv.h"

enum gar_status gar_records_path(struct parquet_path *path, struct gar_error *err)
{
    if (path->count < 1 || path->count > PARQUET_NODES_MAX) {
        return gar_error_set(err, GAR_ERR_UNSUPPORTED,
                             "a column nested %d deep cannot be read; 1 to %d are possible",
                             path->count, PARQUET_NODES_MAX);
    }
    if (path->nodes[path->count - 1].is_list) {
        return gar_error_set(err, GAR_ERR_INTERNAL, "a path of a leaf that is a list");
    }
    uint32_t definition = 0;
    uint32_t repetition = 0;
    int32_t container = -1;
    for (int32_t i = 0; i < path->count; i++) {
        struct parquet_node *const node = &path->nodes[i];
        definition += node->is_optional;
        node->defined = definition;
        node->container = container;
        if (node->is_list) {
            node->filled = ++definition;
            node->repeats = ++repetition;
            container = i;
        }
    }
    path->max_definition = definition;
    path->max_repetition = repetition;
    return GAR_OK;
}

void gar_records_init(struct parquet_records *records, const struct parquet_path *path,
                      struct gar_memory *memory)
{
    *records = (struct parquet_records){.path = path, .memory = memory};
}

void gar_records_destroy(struct parquet_records *records)
{
    for (int32_t i = 0; i < records->path->count; i++) {
        gar_buffer_unref(records->nodes[i].validity);
        gar_buffer_unref(records->nodes[i].entries);
    }
    memset(records->nodes, 0, sizeof records->nodes);
}

/* The definition level from which on the node has a slot, and the deepest repetition level that opens one. */
static uint32_t slot_definition(const struct parquet_path *path, const struct parquet_node *node)
{
    return node->container < 0 ? 0 : path->nodes[node->container].filled;
}

static uint32_t slot_repetition(const struct parquet_path *path, const struct parquet_node *node)
{
    return node->container < 0 ? 0 : path->nodes[node->container].repeats;
}

/* Can a slot of the node be null, itself or through a struct above it? */
static bool may_be_null(const struct parquet_path *path, const struct parquet_node *node)
{
    return node->defined > slot_definition(path, node);
}

/* For each repetition level the definition level from which on the list that it continues has items. */
static void list_levels(const struct parquet_path *path, uint32_t *filled)
{
    filled[0] = 0;
    for (int32_t i = 0; i < path->count; i++) {
        if (path->nodes[i].is_list) {
            filled[path->nodes[i].repeats] = path->nodes[i].filled;
        }
    }
}

static enum gar_status check_levels(struct parquet_records *records, const uint32_t *repetition,
                                    const uint32_t *definition, int64_t count,
                                    struct gar_error *err)
{
    const struct parquet_path *const path = records->path;
    uint32_t filled[PARQUET_NODES_MAX + 1];
    list_levels(path, filled);
    for (int64_t i = 0; i < count; i++) {
        const uint32_t r = repetition == NULL ? 0 : repetition[i];
        const uint32_t d = definition[i];
        if (d > path->max_definition || r > path->max_repetition) {
            return gar_error_set(err, GAR_ERR_FORMAT,
                                 "levels %u and %u (definition, repetition) are above the "
                                 "column's greatest, %u and %u",
                                 d, r, path->max_definition, path->max_repetition);
        }
        if (r > 0 && !records->has_level) {
            return gar_error_set(err, GAR_ERR_FORMAT,
                                 "the first repetition level is %u, but a row begins with 0", r);
        }
        if (r > 0 && (d < filled[r] || records->last_definition < filled[r])) {
            return gar_error_set(
                err, GAR_ERR_FORMAT,
                "repetition level %u goes on with a list that is empty or null there", r);
        }
        records->last_definition = d;
        records->has_level = true;
    }
    return GAR_OK;
}

static enum gar_status grow(struct parquet_records *records, struct gar_buffer **buffer,
                            int64_t bytes, struct gar_error *err)
{
    if (*buffer == NULL) {
        return gar_buffer_new(records->memory, bytes, buffer, err);
    }
    if (bytes <= (*buffer)->size) {
        return GAR_OK;
    }
    return gar_buffer_resize(*buffer, gar_max_i64(bytes, 2 * (*buffer)->size), err);
}

static int64_t count_slots(uint32_t max_repetition, uint32_t min_definition,
                           const uint32_t *repetition, const uint32_t *definition, int64_t count)
{
    int64_t slots = 0;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t r = repetition == NULL ? 0 : repetition[i];
        slots += r <= max_repetition && definition[i] >= min_definition;
    }
    return slots;
}

/* items: what earlier levels put into the node's lists. */
static void put_entries(const struct parquet_path *path, const struct parquet_node *node,
                        const uint32_t *repetition, const uint32_t *definition, int64_t count,
                        int64_t items, struct parquet_node_shape *shape)
{
    const uint32_t min_definition = slot_definition(path, node);
    const uint32_t max_repetition = slot_repetition(path, node);
    struct parquet_list_entry *const entries = (void *)shape->entries->data;
    int64_t slot = shape->slots;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t r = repetition == NULL ? 0 : repetition[i];
        const uint32_t d = definition[i];
        if (r <= max_repetition && d >= min_definition) {
            entries[slot++] = (struct parquet_list_entry){d >= node->defined ? items : 0, 0};
        }
        if (r <= node->repeats && d >= node->filled) {
            entries[slot - 1].length++;
            items++;
        }
    }
}

static void put_validity(const struct parquet_path *path, const struct parquet_node *node,
                         const uint32_t *repetition, const uint32_t *definition, int64_t count,
                         struct parquet_node_shape *shape)
{
    const uint32_t min_definition = slot_definition(path, node);
    const uint32_t max_repetition = slot_repetition(path, node);
    uint8_t *const bits = shape->validity->data;
    int64_t slot = shape->slots;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t r = repetition == NULL ? 0 : repetition[i];
        if (r <= max_repetition && definition[i] >= min_definition) {
            const bool is_valid = definition[i] >= node->defined;
            gar_bit_put(bits, slot++, is_valid);
            shape->null_count += !is_valid;
        }
    }
}

enum gar_status gar_records_add(struct parquet_records *records, const uint32_t *repetition,
                                const uint32_t *definition, int64_t count, struct gar_error *err)
{
    const struct parquet_path *const path = records->path;
    GAR_TRY(check_levels(records, repetition, definition, count, err));
    for (int32_t n = 0; n < path->count; n++) {
        const struct parquet_node *const node = &path->nodes[n];
        struct parquet_node_shape *const shape = &records->nodes[n];
        const int64_t slots =
            shape->slots + count_slots(slot_repetition(path, node), slot_definition(path, node),
                                       repetition, definition, count);
        if (node->is_list) {
            GAR_TRY(grow(records, &shape->entries,
                         slots * (int64_t)sizeof(struct parquet_list_entry), err));
            put_entries(path, node, repetition, definition, count, records->nodes[n + 1].slots,
                        shape);
        }
        if (may_be_null(path, node)) {
            GAR_TRY(grow(records, &shape->validity, gar_bits_bytes(slots), err));
            put_validity(path, node, repetition, definition, count, shape);
        }
        shape->slots = slots;
    }
    const struct parquet_node_shape *const leaf = &records->nodes[path->count - 1];
    records->values = leaf->slots - leaf->null_count;
    return GAR_OK;
}

int64_t gar_records_cut(const uint32_t *repetition, int64_t count, int64_t rows, int64_t *out_rows)
{
    if (repetition == NULL) {
        *out_rows = gar_min_i64(count, rows);
        return *out_rows;
    }
    int64_t begun = 0;
    int64_t i = 0;
    for (; i < count; i++) {
        if (repetition[i] == 0) {
            if (begun == rows) {
                break;
            }
            begun++;
        }
    }
    *out_rows = begun;
    return i;
}

static bool same_bits(const struct gar_buffer *a, const struct gar_buffer *b, int64_t bits)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }
    for (int64_t i = 0; i < bits; i++) {
        if (gar_bit_get(a->data, i) != gar_bit_get(b->data, i)) {
            return false;
        }
    }
    return true;
}

bool gar_records_agree(const struct parquet_records *a, const struct parquet_records *b,
                       int32_t shared)
{
    for (int32_t i = 0; i < shared; i++) {
        const struct parquet_node_shape *const x = &a->nodes[i];
        const struct parquet_node_shape *const y = &b->nodes[i];
        if (x->slots != y->slots || !same_bits(x->validity, y->validity, x->slots)) {
            return false;
        }
        if (x->slots > 0 && a->path->nodes[i].is_list &&
            memcmp(x->entries->data, y->entries->data,
                   (size_t)x->slots * sizeof(struct parquet_list_entry)) != 0) {
            return false;
        }
    }
    return true;
}
