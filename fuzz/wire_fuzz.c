/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker process may send: a region of shared memory that claims to be a batch, whose first byte says of what
 * schema; or a setup block. What is taken must be a sound array. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "actors/setup.h"
#include "actors/wire.h"
#include "base/alloc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)    \
    do {                    \
        if (!(condition)) { \
            abort();        \
        }                   \
    } while (0)

static struct ArrowSchema item = {.format = "g", .name = "item"};
static struct ArrowSchema *items[1] = {&item};
static struct ArrowSchema fields[4] = {
    {.format = "g", .name = "number"},
    {.format = "U", .name = "text"},
    {.format = "b", .name = "flag"},
    {.format = "+L", .name = "list", .n_children = 1, .children = items},
};
static struct ArrowSchema *field_lists[3][3] = {
    {&fields[0], &fields[2], NULL}, {&fields[1], &fields[0], NULL}, {&fields[3], NULL, NULL}};
static const int64_t field_counts[3] = {2, 2, 1};

/* Every byte that the array says it has is there. */
static void look_at(const struct ArrowArray *array, const struct ArrowSchema *schema)
{
    uint64_t sum = 0;
    CHECK(array->length >= 0 && array->offset == 0);
    CHECK(array->n_children == schema->n_children);
    for (int64_t i = 0; i < array->n_children; i++) {
        const struct ArrowArray *child = array->children[i];
        const char *format = schema->children[i]->format;
        const uint8_t *values = child->buffers[1];
        const int64_t *offsets = child->buffers[1];
        const uint8_t *bytes = child->n_buffers > 2 ? child->buffers[2] : NULL;
        CHECK(child->length == array->length);
        for (int64_t k = 0; k < child->length && format[0] == 'g'; k++) {
            sum += values[8 * k] + values[8 * k + 7];
        }
        for (int64_t k = 0; k < child->length && format[0] == 'U'; k++) {
            CHECK(offsets[k] <= offsets[k + 1]);
            sum += offsets[k] < offsets[k + 1] ? bytes[offsets[k]] + bytes[offsets[k + 1] - 1] : 0;
        }
        if (format[0] == '+' && child->length > 0) {
            CHECK(offsets[child->length] <= child->children[0]->length);
        }
    }
    CHECK(sum != UINT64_MAX);
}

static void try_batch(int32_t kind, const uint8_t *region, int64_t bytes)
{
    struct ArrowSchema root = {
        .format = "+s", .n_children = field_counts[kind], .children = field_lists[kind]};
    struct gar_wire_layout *layout = NULL;
    struct ArrowArray array;
    int64_t rows = 0;
    if (bytes >= (int64_t)sizeof rows) {
        memcpy(&rows, region, sizeof rows);
    }
    const struct gar_wire_source source = {
        .region = region, .bytes = bytes, .rows = rows, .memory = gar_memory_system()};
    CHECK(gar_wire_layout_new(&root, &layout, NULL) == GAR_OK);
    if (gar_wire_read(layout, &source, &array, NULL) >= 0) {
        look_at(&array, &root);
        array.release(&array);
    }
    gar_free(layout);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    /* At its end, so that a sanitizer sees each step beyond; at a multiple of 64, as regions are. */
    const size_t bytes = size - 1;
    uint8_t *region = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
    if (region == NULL) {
        return 0;
    }
    memcpy(region, data + 1, bytes);
    if (data[0] % 4 == 3) {
        struct gar_setup setup;
        if (gar_setup_read(region, (int64_t)bytes, &setup, NULL) >= 0) {
            gar_setup_destroy(&setup);
        }
    } else {
        try_batch(data[0] % 4, region, (int64_t)bytes);
    }
    free(region);
    return 0;
}
