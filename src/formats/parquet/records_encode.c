/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes to levels: all rows go down the path together, one node at a time; a list puts its items in place of its slot. */
#include <string.h>

#include "base/bits.h"
#include "formats/parquet/records_priv.h"

#define CLOSED (-1)

/* One level on its way down: the slot of the next node, or CLOSED when nothing is below. */
struct step {
    int64_t slot;
    uint32_t repetition;
    uint32_t definition;
};

static struct step *steps_of(struct gar_buffer *buffer)
{
    return (void *)buffer->data;
}

static bool is_null(const struct parquet_node_source *source, int64_t slot)
{
    return source->validity != NULL &&
           !gar_bit_get(source->validity, source->validity_offset + slot);
}

/* Steps that are null here close; the others know that they are not. */
static enum gar_status pass_nulls(const struct parquet_node *node,
                                  const struct parquet_node_source *source, struct step *steps,
                                  int64_t count, struct gar_error *err)
{
    for (int64_t i = 0; i < count; i++) {
        if (steps[i].slot == CLOSED) {
            continue;
        }
        if (!is_null(source, steps[i].slot)) {
            steps[i].definition += node->is_optional;
        } else if (node->is_optional) {
            steps[i].slot = CLOSED;
        } else {
            return gar_error_set(err, GAR_ERR_VALUE, "a null where none is allowed, at slot %lld",
                                 (long long)steps[i].slot);
        }
    }
    return GAR_OK;
}

static int64_t width_of(const struct parquet_node_source *source, const struct step *step)
{
    return step->slot == CLOSED ? 1 : gar_max_i64(1, source->entries[step->slot].length);
}

static enum gar_status count_items(const struct parquet_node_source *source,
                                   const struct step *steps, int64_t count, int64_t *out,
                                   struct gar_error *err)
{
    int64_t total = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t limit = INT64_MAX / (int64_t)sizeof(struct step);
        if (__builtin_add_overflow(total, width_of(source, &steps[i]), &total) || total > limit) {
            return gar_error_nomem(err, INT64_MAX);
        }
    }
    *out = total;
    return GAR_OK;
}

static void put_items(const struct parquet_node *node, const struct parquet_node_source *source,
                      const struct step *steps, int64_t count, struct step *out)
{
    for (int64_t i = 0; i < count; i++) {
        struct step step = steps[i];
        const int64_t length = step.slot == CLOSED ? 0 : source->entries[step.slot].length;
        if (length == 0) {
            step.slot = CLOSED;
            *out++ = step;
            continue;
        }
        const int64_t offset = source->entries[step.slot].offset;
        step.definition++;
        for (int64_t k = 0; k < length; k++) {
            step.slot = offset + k;
            *out++ = step;
            step.repetition = node->repeats;
        }
    }
}

static enum gar_status open_lists(const struct parquet_node *node,
                                  const struct parquet_node_source *source,
                                  struct gar_memory *memory, struct gar_buffer **steps,
                                  int64_t *count, struct gar_error *err)
{
    int64_t total = 0;
    struct gar_buffer *opened = NULL;
    GAR_TRY(count_items(source, steps_of(*steps), *count, &total, err));
    GAR_TRY(gar_buffer_new(memory, total * (int64_t)sizeof(struct step), &opened, err));
    put_items(node, source, steps_of(*steps), *count, steps_of(opened));
    gar_buffer_unref(*steps);
    *steps = opened;
    *count = total;
    return GAR_OK;
}

static enum gar_status split_steps(struct gar_buffer *buffer, int64_t count,
                                   struct gar_memory *memory, struct parquet_levels *out,
                                   struct gar_error *err)
{
    const struct step *const steps = steps_of(buffer);
    const int64_t level_bytes = count * (int64_t)sizeof(uint32_t);
    GAR_TRY(gar_buffer_new(memory, level_bytes, &out->repetition, err));
    GAR_TRY(gar_buffer_new(memory, level_bytes, &out->definition, err));
    GAR_TRY(gar_buffer_new(memory, count * (int64_t)sizeof(int64_t), &out->slots, err));
    uint32_t *const repetition = (void *)out->repetition->data;
    uint32_t *const definition = (void *)out->definition->data;
    int64_t *const slots = (void *)out->slots->data;
    for (int64_t i = 0; i < count; i++) {
        repetition[i] = steps[i].repetition;
        definition[i] = steps[i].definition;
        if (steps[i].slot != CLOSED) {
            slots[out->values++] = steps[i].slot;
        }
    }
    out->count = count;
    return GAR_OK;
}

enum gar_status gar_records_levels(const struct parquet_path *path,
                                   const struct parquet_node_source *sources, int64_t from,
                                   int64_t rows, struct gar_memory *memory,
                                   struct parquet_levels *out, struct gar_error *err)
{
    *out = (struct parquet_levels){0};
    struct gar_buffer *steps = NULL;
    int64_t count = rows;
    GAR_TRY(gar_buffer_new_zeroed(memory, rows * (int64_t)sizeof(struct step), &steps, err));
    for (int64_t i = 0; i < rows; i++) {
        steps_of(steps)[i].slot = from + i;
    }
    enum gar_status status = GAR_OK;
    for (int32_t n = 0; n < path->count && status >= 0; n++) {
        const struct parquet_node *const node = &path->nodes[n];
        status = pass_nulls(node, &sources[n], steps_of(steps), count, err);
        if (status >= 0 && node->is_list) {
            status = open_lists(node, &sources[n], memory, &steps, &count, err);
        }
    }
    if (status >= 0) {
        status = split_steps(steps, count, memory, out, err);
    }
    gar_buffer_unref(steps);
    return status;
}

void gar_parquet_levels_destroy(struct parquet_levels *levels)
{
    gar_buffer_unref(levels->repetition);
    gar_buffer_unref(levels->definition);
    gar_buffer_unref(levels->slots);
    *levels = (struct parquet_levels){0};
}
