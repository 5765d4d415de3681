/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the distinct values of a column chunk, as long as that looks like paying.
 *
 * An open hash table of entry numbers. Values are told apart by their stored bytes, so that NaNs and signed zeros come back as
 * they were. It gives up when a first sample is mostly distinct or when the entries grow too large. */
#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "formats/parquet/encode_priv.h"

/* A dictionary does not pay when more than so many per cent of a first sample are distinct, or of a
 * second, or of all. */
#define FIRST_VALUES        8192
#define FIRST_DISTINCT_MAX  95
#define SAMPLE_VALUES       32768
#define SAMPLE_DISTINCT_MAX 60
#define SLOTS_FIRST         1024

struct table {
    struct gar_buffer *slots; /* owned; uint32_t entry number + 1, 0: free */
    int64_t slot_count;       /* power of two */
};

void gar_parquet_dictionary_destroy(struct parquet_dictionary *dictionary)
{
    gar_buffer_unref(dictionary->codes);
    gar_buffer_unref(dictionary->firsts);
    *dictionary = (struct parquet_dictionary){0};
}

static uint64_t hash_value(const struct parquet_dense *dense, int64_t i)
{
    const uint8_t *const values = dense->values->data;
    if (dense->storage.bytes == 4) {
        return gar_hash_u64(gar_load_u32(values + 4 * i));
    }
    if (dense->storage.bytes == 8) {
        return gar_hash_u64(gar_load_u64(values + 8 * i));
    }
    if (dense->storage.bytes > 0) {
        return gar_hash_bytes(values + i * dense->storage.bytes, dense->storage.bytes);
    }
    const struct parquet_slice *const slice =
        (const struct parquet_slice *)(const void *)values + i;
    return gar_hash_bytes(slice->data, slice->bytes);
}

static bool equal_values(const struct parquet_dense *dense, int64_t a, int64_t b)
{
    const uint8_t *const values = dense->values->data;
    if (dense->storage.bytes == 4) {
        return gar_load_u32(values + 4 * a) == gar_load_u32(values + 4 * b);
    }
    if (dense->storage.bytes == 8) {
        return gar_load_u64(values + 8 * a) == gar_load_u64(values + 8 * b);
    }
    if (dense->storage.bytes > 0) {
        return memcmp(values + a * dense->storage.bytes, values + b * dense->storage.bytes,
                      (size_t)dense->storage.bytes) == 0;
    }
    const struct parquet_slice *const slices = (const struct parquet_slice *)(const void *)values;
    return slices[a].bytes == slices[b].bytes &&
           memcmp(slices[a].data, slices[b].data, (size_t)slices[a].bytes) == 0;
}

static int64_t plain_bytes(const struct parquet_dense *dense, int64_t i)
{
    if (dense->storage.bytes > 0) {
        return dense->storage.bytes;
    }
    return 4 + ((const struct parquet_slice *)(const void *)dense->values->data)[i].bytes;
}

/* Twice the slots, entries put in again. */
static enum gar_status grow_table(const struct parquet_dense *dense,
                                  const struct parquet_dictionary *dictionary,
                                  struct gar_memory *memory, struct table *table,
                                  struct gar_error *err)
{
    struct gar_buffer *slots = NULL;
    const int64_t count = table->slot_count * 2;
    GAR_TRY(gar_buffer_new_zeroed(memory, count * (int64_t)sizeof(uint32_t), &slots, err));
    uint32_t *const to = (uint32_t *)(void *)slots->data;
    const uint32_t *const firsts = (const uint32_t *)(const void *)dictionary->firsts->data;
    for (int64_t e = 0; e < dictionary->entries; e++) {
        uint64_t slot = hash_value(dense, firsts[e]) & (uint64_t)(count - 1);
        while (to[slot] != 0) {
            slot = (slot + 1) & (uint64_t)(count - 1);
        }
        to[slot] = (uint32_t)e + 1;
    }
    gar_buffer_unref(table->slots);
    table->slots = slots;
    table->slot_count = count;
    return GAR_OK;
}

static enum gar_status add_entry(const struct parquet_dense *dense, int64_t value,
                                 struct gar_memory *memory, struct parquet_dictionary *dictionary,
                                 struct table *table, struct gar_error *err)
{
    const int64_t used = dictionary->entries * (int64_t)sizeof(uint32_t);
    if (dictionary->firsts->size < used + (int64_t)sizeof(uint32_t)) {
        GAR_TRY(gar_buffer_resize(dictionary->firsts, 2 * used + 4096, err));
    }
    const uint32_t number = (uint32_t)value;
    memcpy(dictionary->firsts->data + used, &number, sizeof number);
    dictionary->entries++;
    dictionary->bytes += plain_bytes(dense, value);
    return dictionary->entries * 2 > table->slot_count
               ? grow_table(dense, dictionary, memory, table, err)
               : GAR_OK;
}

/* A dictionary being filled. */
struct filling {
    const struct parquet_dense *dense;
    struct parquet_dictionary *dictionary;
    struct gar_memory *memory;
    struct table table;
    int64_t bytes_max;
    int64_t at;      /* dense values that have their code */
    bool is_useless; /* given up */
};

/* The entry of dense value i, added if it is new. */
static enum gar_status find_entry(struct filling *f, int64_t i, uint32_t *out,
                                  struct gar_error *err)
{
    uint32_t *const slots = (uint32_t *)(void *)f->table.slots->data;
    const uint32_t *const firsts = (const uint32_t *)(const void *)f->dictionary->firsts->data;
    const uint64_t mask = (uint64_t)(f->table.slot_count - 1);
    uint64_t slot = hash_value(f->dense, i) & mask;
    while (slots[slot] != 0 && !equal_values(f->dense, firsts[slots[slot] - 1], i)) {
        slot = (slot + 1) & mask;
    }
    if (slots[slot] != 0) {
        *out = slots[slot] - 1;
        return GAR_OK;
    }
    *out = (uint32_t)f->dictionary->entries;
    slots[slot] = *out + 1;
    GAR_TRY(add_entry(f->dense, i, f->memory, f->dictionary, &f->table, err));
    f->is_useless = f->is_useless || f->dictionary->bytes > f->bytes_max;
    return GAR_OK;
}

static bool is_distinct(const struct filling *f, int64_t values, int64_t share)
{
    return f->at == values && f->dictionary->entries * 100 > values * share;
}

/* After each value: a sample that is mostly distinct ends it. */
static void advance(struct filling *f)
{
    f->at++;
    if (is_distinct(f, FIRST_VALUES, FIRST_DISTINCT_MAX) ||
        is_distinct(f, SAMPLE_VALUES, SAMPLE_DISTINCT_MAX)) {
        f->is_useless = true;
    }
}

static enum gar_status fill_flat(struct filling *f, int64_t count, struct gar_error *err)
{
    uint32_t *const codes = (uint32_t *)(void *)f->dictionary->codes->data;
    for (int64_t i = 0; i < count && !f->is_useless; i++) {
        GAR_TRY(find_entry(f, f->at, &codes[f->at], err));
        advance(f);
    }
    return GAR_OK;
}

/* Rows of a DICTIONARY column: each of its codes is looked up once. */
static enum gar_status fill_coded(struct filling *f, const struct gar_column *source,
                                  struct gar_error *err)
{
    struct gar_buffer *map = NULL;
    GAR_TRY(gar_buffer_new(f->memory, source->dictionary->length * (int64_t)sizeof(uint32_t), &map,
                           err));
    uint32_t *const known = (uint32_t *)(void *)map->data;
    memset(known, 0xff, (size_t)map->size);
    uint32_t *const codes = (uint32_t *)(void *)f->dictionary->codes->data;
    const uint32_t *const from = source->values;
    enum gar_status status = GAR_OK;
    for (int64_t row = 0; row < source->length && !f->is_useless && status >= 0; row++) {
        if (source->validity != NULL &&
            !gar_bit_get(source->validity, source->validity_offset + row)) {
            continue;
        }
        uint32_t *const entry = &known[from[row]];
        if (GAR_UNLIKELY(*entry == UINT32_MAX)) {
            status = find_entry(f, f->at, entry, err);
        }
        codes[f->at] = *entry;
        advance(f);
    }
    gar_buffer_unref(map);
    return status;
}

static enum gar_status fill(struct filling *f, struct gar_error *err)
{
    const struct parquet_dense *const dense = f->dense;
    for (int64_t i = 0; i < dense->held_count && !f->is_useless; i++) {
        const struct gar_column *const source = dense->sources[i];
        if (source->encoding == GAR_DICTIONARY && source->dictionary->length <= source->length) {
            GAR_TRY(fill_coded(f, source, err));
        } else {
            GAR_TRY(fill_flat(f, source->length - gar_column_null_count(dense->held[i]), err));
        }
    }
    /* An entry that is hardly ever used again costs its bytes and a code. */
    if (f->is_useless || f->dictionary->entries * 100 > dense->count * SAMPLE_DISTINCT_MAX) {
        f->dictionary->entries = 0;
    }
    return GAR_OK;
}

enum gar_status gar_parquet_dictionary_make(const struct parquet_dense *dense, int64_t bytes_max,
                                            struct gar_memory *memory,
                                            struct parquet_dictionary *out, struct gar_error *err)
{
    *out = (struct parquet_dictionary){0};
    if (dense->count == 0 || dense->type.id == GAR_BOOL || dense->count > UINT32_MAX - 1) {
        return GAR_OK;
    }
    struct filling f = {
        .dense = dense, .dictionary = out, .memory = memory, .bytes_max = bytes_max};
    f.table.slot_count = SLOTS_FIRST;
    enum gar_status status =
        gar_buffer_new(memory, dense->count * (int64_t)sizeof(uint32_t), &out->codes, err);
    if (status >= 0) {
        status = gar_buffer_new(memory, 4096, &out->firsts, err);
    }
    if (status >= 0) {
        status = gar_buffer_new_zeroed(memory, SLOTS_FIRST * (int64_t)sizeof(uint32_t),
                                       &f.table.slots, err);
    }
    if (status >= 0) {
        status = fill(&f, err);
    }
    gar_buffer_unref(f.table.slots);
    if (status < 0) {
        gar_parquet_dictionary_destroy(out);
    }
    return status;
}
