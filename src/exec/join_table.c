/* SPDX-License-Identifier: Apache-2.0 */
/* Join tables: building in steps, and looking up. */
#include "exec/join_table.h"

#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "runtime/cancel.h"

enum {
    ENCODE_ROWS = 1 << 16, /* of one item that encodes keys */
    CELLS_ALWAYS = 4096,   /* a range so small is always an array */
    CELLS_PER_ROW = 8,     /* and a larger one up to so many cells a row: what slots would take */
    REGION_ROWS = 1 << 14, /* fewer rows a region are not worth a task */
    REGIONS_MAX = 64,
    PREFETCH_FROM = 1 << 18, /* bytes; smaller tables lie in L2 anyway */
    SLOTS_MIN = 16,
    CANCEL_ROWS = 1 << 16,
};

struct slot {
    uint64_t key;   /* the word; or the hash (upper half) and a row with this key */
    uint32_t start; /* the row of a unique key; else its list's place */
    uint32_t count; /* 0: empty */
};

enum step { STEP_NONE, STEP_ENCODE, STEP_PACK, STEP_INSERT, STEP_LIST, STEP_READY };

struct region {
    int64_t rows; /* with a key in it */
    int64_t keys; /* that differ */
    bool has_repeats;
    bool is_full; /* more than its share of keys: the table is made again in one region */
};

struct range {
    int64_t least;
    int64_t greatest;
};

/* One of several keys in a word: its distance from the least one, moved up by shift bits. */
struct packed {
    uint64_t least;
    uint64_t span; /* greatest distance */
    int32_t shift;
};

struct gar_join_table {
    struct gar_memory *memory; /* borrowed */
    struct gar_key_layout layout;
    bool *nulls_equal; /* owned */
    bool is_word;
    bool is_integer;       /* the word's order is that of the key */
    bool may_pack;         /* several keys of ordered words: they are loaded one by one at first */
    struct packed *packed; /* owned; of each key when they share a word, else NULL */
    bool is_array;
    bool is_unique;
    struct gar_column **columns; /* owned references */
    int64_t rows;
    enum step step;
    struct gar_buffer *keys;  /* owned; a word, or a key row, for each row */
    struct gar_buffer *marks; /* owned; a byte a row: it has no key; NULL: all have one */
    struct range *ranges;     /* owned; of each encode item */
    int64_t range_count;
    struct gar_buffer *slots; /* owned; slots, or uint32_t cells + 1 */
    int64_t slots_per_region; /* a power of two */
    int32_t region_bits;
    int32_t regions_max;
    struct region regions[REGIONS_MAX];
    uint64_t base; /* array: the key of cell 0 */
    int64_t cells;
    struct gar_buffer *places; /* owned, while built: slot of each row */
    struct gar_buffer *lists;  /* owned; row numbers by key; NULL when unique */
};

/* ---- making ---- */

static bool is_ordered_word(struct gar_type type)
{
    switch ((enum gar_type_id)type.id) {
    case GAR_BOOL:
    case GAR_INT8:
    case GAR_INT16:
    case GAR_INT32:
    case GAR_INT64:
    case GAR_UINT8:
    case GAR_UINT16:
    case GAR_UINT32:
    case GAR_DATE:
    case GAR_TIME:
    case GAR_TIMESTAMP:
    case GAR_DURATION:
    case GAR_DECIMAL128: return true;
    case GAR_NULL:
    case GAR_UINT64:
    case GAR_FLOAT32:
    case GAR_FLOAT64:
    case GAR_STRING:
    case GAR_BINARY:
    case GAR_LIST:
    case GAR_FIXED_LIST:
    case GAR_STRUCT:
    case GAR_MAP:
    case GAR_TYPE_ID_COUNT: return false;
    }
    return false;
}

enum gar_status gar_join_table_new(const struct gar_type *types, int64_t count,
                                   const bool *nulls_equal, int32_t regions,
                                   struct gar_memory *memory, struct gar_join_table **out,
                                   struct gar_error *err)
{
    struct gar_join_table *table = (struct gar_join_table *)gar_calloc(1, (int64_t)sizeof *table);
    if (table == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *table);
    }
    table->memory = memory;
    table->regions_max = regions;
    enum gar_status status = gar_key_layout_init(&table->layout, types, count, err);
    if (status >= 0) {
        table->nulls_equal = (bool *)gar_calloc(count, (int64_t)sizeof(bool));
        table->columns = (struct gar_column **)gar_calloc(count, (int64_t)sizeof *table->columns);
        if (table->nulls_equal == NULL || table->columns == NULL) {
            status = gar_error_nomem(err, count * 9);
        }
    }
    if (status < 0) {
        gar_join_table_free(table);
        return status;
    }
    for (int64_t k = 0; k < count; k++) {
        table->nulls_equal[k] = nulls_equal != NULL && nulls_equal[k];
    }
    table->is_word = count == 1 && gar_key_is_word(types[0]) && !table->nulls_equal[0];
    table->is_integer = table->is_word && is_ordered_word(types[0]);
    table->may_pack = count > 1;
    for (int64_t k = 0; k < count; k++) {
        table->may_pack = table->may_pack && is_ordered_word(types[k]) &&
                          gar_key_is_word(types[k]) && !table->nulls_equal[k];
    }
    *out = table;
    return GAR_OK;
}

void gar_join_table_free(struct gar_join_table *table)
{
    if (table == NULL) {
        return;
    }
    for (int64_t k = 0; table->columns != NULL && k < table->layout.count; k++) {
        gar_column_unref(table->columns[k]);
    }
    gar_free(table->columns);
    gar_free(table->nulls_equal);
    gar_key_layout_destroy(&table->layout);
    gar_buffer_unref(table->keys);
    gar_buffer_unref(table->marks);
    gar_buffer_unref(table->slots);
    gar_buffer_unref(table->places);
    gar_buffer_unref(table->lists);
    gar_free(table->ranges);
    gar_free(table->packed);
    gar_free(table);
}

enum gar_status gar_join_table_begin(struct gar_join_table *table,
                                     struct gar_column *const *columns, int64_t rows,
                                     struct gar_error *err)
{
    if (rows >= (int64_t)INT32_MAX) {
        return gar_error_set(
            err, GAR_ERR_UNSUPPORTED,
            "a join with a table of %lld rows; at most 2147483646 are possible. Filter "
            "that side, or make the other one the smaller",
            (long long)rows);
    }
    table->rows = rows;
    for (int64_t k = 0; k < table->layout.count; k++) {
        table->columns[k] = gar_column_ref(columns[k]);
    }
    return GAR_OK;
}

int64_t gar_join_table_rows(const struct gar_join_table *table)
{
    return table->rows;
}

bool gar_join_table_is_unique(const struct gar_join_table *table)
{
    return table->is_unique;
}

int64_t gar_join_table_scratch(const struct gar_join_table *table)
{
    return (int64_t)GAR_KEY_ROWS * table->layout.words;
}

const uint32_t *gar_join_table_lists(const struct gar_join_table *table)
{
    return table->lists != NULL ? (const uint32_t *)(const void *)table->lists->data : NULL;
}

/* ---- step 1: encode ---- */

/* Rows that match nothing: a null in a key whose nulls are not equal. marks[i] = 1. True if there is one. */
static bool mark_nulls(const struct gar_join_table *table, struct gar_column *const *columns,
                       int64_t first, int64_t count, uint8_t *marks)
{
    bool has_marks = false;
    for (int64_t k = 0; k < table->layout.count; k++) {
        const struct gar_column *c = columns[k];
        const bool all = c->type.id == GAR_NULL ||
                         (c->encoding == GAR_CONSTANT && gar_column_is_null(c->dictionary, 0));
        if (table->nulls_equal[k] ||
            (!all && (c->encoding == GAR_CONSTANT || c->validity == NULL))) {
            continue;
        }
        if (!has_marks) {
            memset(marks, 0, (size_t)count);
            has_marks = true;
        }
        for (int64_t i = 0; i < count; i++) {
            marks[i] |= all || !gar_bit_get(c->validity, c->validity_offset + first + i);
        }
    }
    return has_marks;
}

static bool may_have_nulls(const struct gar_join_table *table)
{
    for (int64_t k = 0; k < table->layout.count; k++) {
        const struct gar_column *c = table->columns[k];
        const bool may =
            c->type.id == GAR_NULL || c->encoding == GAR_CONSTANT || c->validity != NULL;
        if (may && !table->nulls_equal[k]) {
            return true;
        }
    }
    return false;
}

static int64_t key_words(const struct gar_join_table *table)
{
    return table->is_word ? 1 : table->layout.words;
}

/* Ranges that a piece of the rows has: of one word, or of each key that may share one. */
static int64_t ranges_of(const struct gar_join_table *table)
{
    return table->may_pack ? table->layout.count : 1;
}

static uint64_t *keys_of(const struct gar_join_table *table)
{
    return (uint64_t *)(void *)table->keys->data;
}

static const uint8_t *marks_of(const struct gar_join_table *table)
{
    return table->marks != NULL ? table->marks->data : NULL;
}

static enum gar_status begin_encode(struct gar_join_table *table, int64_t *out_items,
                                    struct gar_error *err)
{
    const int64_t words = table->may_pack ? table->layout.count : key_words(table);
    const int64_t bytes = table->rows * words * (int64_t)sizeof(uint64_t);
    table->range_count = (table->rows + ENCODE_ROWS - 1) / ENCODE_ROWS;
    GAR_TRY(gar_buffer_new(table->memory, bytes, &table->keys, err));
    if (may_have_nulls(table)) {
        GAR_TRY(gar_buffer_new_zeroed(table->memory, table->rows, &table->marks, err));
    }
    const int64_t ranges = table->range_count * ranges_of(table);
    table->ranges = (struct range *)gar_calloc(ranges, (int64_t)sizeof *table->ranges);
    if (table->ranges == NULL) {
        return gar_error_nomem(err, ranges * (int64_t)sizeof *table->ranges);
    }
    *out_items = table->range_count;
    return GAR_OK;
}

/* Words of rows [first, end) that have a key. */
static struct range range_of(const struct gar_join_table *table, const uint64_t *words,
                             int64_t first, int64_t end)
{
    struct range range = {INT64_MAX, INT64_MIN};
    const uint8_t *marks = marks_of(table);
    for (int64_t i = first; i < end; i++) {
        if (marks == NULL || marks[i] == 0) {
            range.least = gar_min_i64(range.least, (int64_t)words[i]);
            range.greatest = gar_max_i64(range.greatest, (int64_t)words[i]);
        }
    }
    return range;
}

static void encode_rows(struct gar_join_table *table, int64_t first, int64_t end)
{
    uint64_t *keys = keys_of(table);
    for (int64_t at = first; at < end; at += GAR_KEY_ROWS) {
        const int64_t n = gar_min_i64(end - at, GAR_KEY_ROWS);
        gar_key_encode(&table->layout, table->columns, at, n, keys + at * table->layout.words);
    }
}

static void encode(struct gar_join_table *table, int64_t item)
{
    const int64_t first = item * ENCODE_ROWS;
    const int64_t end = gar_min_i64(first + ENCODE_ROWS, table->rows);
    if (table->marks != NULL) {
        (void)mark_nulls(table, table->columns, first, end - first, table->marks->data + first);
    }
    if (!table->is_word && !table->may_pack) {
        encode_rows(table, first, end);
        return;
    }
    for (int64_t k = 0; k < ranges_of(table); k++) {
        uint64_t *words = keys_of(table) + k * table->rows;
        gar_key_load_words(table->columns[k], first, end - first, words + first);
        if (table->is_integer || table->may_pack) {
            table->ranges[item * ranges_of(table) + k] = range_of(table, words, first, end);
        }
    }
}

/* ---- step 2: pack ---- */

static struct range whole_range(const struct gar_join_table *table, int64_t k)
{
    struct range all = {INT64_MAX, INT64_MIN};
    for (int64_t i = 0; i < table->range_count; i++) {
        const struct range *r = &table->ranges[i * ranges_of(table) + k];
        all.least = gar_min_i64(all.least, r->least);
        all.greatest = gar_max_i64(all.greatest, r->greatest);
    }
    return all;
}

/* Do the keys go into one word together? Else they become key rows. */
static enum gar_status begin_pack(struct gar_join_table *table, int64_t *out_items,
                                  struct gar_error *err)
{
    if (!table->may_pack) {
        return GAR_OK;
    }
    const int64_t count = table->layout.count;
    struct packed *packed = (struct packed *)gar_calloc(count, (int64_t)sizeof *packed);
    if (packed == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *packed);
    }
    int32_t bits = 0;
    for (int64_t k = 0; k < count && bits < 64; k++) {
        const struct range range = whole_range(table, k);
        const bool is_empty = range.least > range.greatest;
        packed[k].least = is_empty ? 0 : (uint64_t)range.least;
        packed[k].span = is_empty ? 0 : (uint64_t)range.greatest - (uint64_t)range.least;
        packed[k].shift = bits;
        bits += packed[k].span == 0 ? 0 : 64 - gar_clz64(packed[k].span);
    }
    *out_items = table->range_count;
    if (bits < 64) {
        table->packed = packed;
        return GAR_OK;
    }
    gar_free(packed);
    table->may_pack = false;
    gar_buffer_unref(table->keys);
    table->keys = NULL;
    return gar_buffer_new(table->memory,
                          table->rows * table->layout.words * (int64_t)sizeof(uint64_t),
                          &table->keys, err);
}

static void pack(struct gar_join_table *table, int64_t item)
{
    const int64_t first = item * ENCODE_ROWS;
    const int64_t end = gar_min_i64(first + ENCODE_ROWS, table->rows);
    if (table->packed == NULL) {
        encode_rows(table, first, end);
        return;
    }
    uint64_t *words = keys_of(table); /* those of the first key: its shift is 0 */
    for (int64_t i = first; i < end; i++) {
        words[i] -= table->packed[0].least;
    }
    for (int64_t k = 1; k < table->layout.count; k++) {
        const struct packed *p = &table->packed[k];
        const uint64_t *more = words + k * table->rows;
        for (int64_t i = first; i < end; i++) {
            words[i] |= (more[i] - p->least) << p->shift;
        }
    }
    table->ranges[item] = range_of(table, words, first, end);
}

/* After the last piece: one word from here on. */
static void end_pack(struct gar_join_table *table)
{
    if (table->packed != NULL) {
        table->may_pack = false;
        table->is_word = table->is_integer = true;
    }
}

/* ---- step 3: insert ---- */

static uint32_t hash_of(const struct gar_join_table *table, int64_t row)
{
    const uint64_t *key = keys_of(table) + row * key_words(table);
    return table->is_word ? gar_key_hash_word(*key) : gar_key_hash(key);
}

static bool choose_array(struct gar_join_table *table)
{
    const struct range all = whole_range(table, 0);
    if (!table->is_integer || all.least > all.greatest) {
        return false;
    }
    const uint64_t span = (uint64_t)all.greatest - (uint64_t)all.least + 1;
    if (span == 0 || (span > CELLS_ALWAYS && span / CELLS_PER_ROW > (uint64_t)table->rows)) {
        return false;
    }
    table->base = (uint64_t)all.least;
    table->cells = (int64_t)span;
    return true;
}

static enum gar_status begin_insert(struct gar_join_table *table, int64_t *out_items,
                                    struct gar_error *err)
{
    table->is_array = choose_array(table);
    if (table->is_array) {
        *out_items = 1;
        return gar_buffer_new_zeroed(table->memory, (table->cells + 1) * (int64_t)sizeof(uint32_t),
                                     &table->slots, err);
    }
    while ((2 << table->region_bits) <= gar_min_i64(table->regions_max, REGIONS_MAX) &&
           (table->rows >> (table->region_bits + 1)) >= REGION_ROWS) {
        table->region_bits++;
    }
    /* Regions are not quite of one size: room for some more than their share. */
    const int64_t share = table->rows >> table->region_bits;
    const int64_t want = 2 * share + (table->region_bits > 0 ? share / 8 : 0);
    table->slots_per_region = gar_max_i64(gar_next_pow2(want), SLOTS_MIN);
    const int64_t slots = table->slots_per_region << table->region_bits;
    GAR_TRY(gar_buffer_new_zeroed(table->memory, slots * (int64_t)sizeof(struct slot),
                                  &table->slots, err));
    *out_items = (int64_t)1 << table->region_bits;
    return gar_buffer_new(table->memory, table->rows * (int64_t)sizeof(uint32_t), &table->places,
                          err);
}

static int64_t region_of(const struct gar_join_table *table, uint32_t hash)
{
    return table->region_bits == 0 ? 0 : (int64_t)(hash >> (32 - table->region_bits));
}

/* Is the key of the slot that of key row `key`? */
static inline bool is_key(const struct gar_join_table *table, const struct slot *slot,
                          const uint64_t *key)
{
    if (table->is_word) {
        return slot->key == *key;
    }
    if ((slot->key ^ key[0]) >> 32 != 0) {
        return false;
    }
    const uint64_t *other = keys_of(table) + (int64_t)(uint32_t)slot->key * table->layout.words;
    const struct gar_key_layout *layout = &table->layout;
    for (int64_t w = 0; layout->text_count == 0 && w < layout->words; w++) {
        if (other[w] != key[w]) {
            return false;
        }
    }
    if (layout->text_count == 0) {
        return true;
    }
    for (int32_t w = 0; w < layout->null_words; w++) {
        if (other[w] != key[w]) {
            return false;
        }
    }
    for (int64_t c = 0; c < layout->count; c++) {
        const struct gar_key_column *column = &layout->columns[c];
        const uint64_t *a = other + column->word;
        const uint64_t *b = key + column->word;
        if (column->words == 0) {
            continue;
        }
        if (a[0] != b[0]) {
            return false;
        }
        const int32_t size = column->is_text ? gar_key_text_size(a[0]) : 0;
        if (size > GAR_VIEW_INLINE_BYTES) {
            if (memcmp(gar_key_far(a[1]), gar_key_far(b[1]), (size_t)size) != 0) {
                return false;
            }
        } else if (column->words == 2 && a[1] != b[1]) {
            return false;
        }
    }
    return true;
}

/* The slot of the key, or the empty one where it would go. Every region has an empty slot. */
static inline struct slot *find_slot(const struct gar_join_table *table, const uint64_t *key,
                                     uint32_t hash)
{
    const uint64_t mask = (uint64_t)table->slots_per_region - 1;
    struct slot *slots = (struct slot *)(void *)table->slots->data +
                         region_of(table, hash) * table->slots_per_region;
    uint64_t at = hash & mask;
    while (slots[at].count != 0 && !is_key(table, &slots[at], key)) {
        at = (at + 1) & mask;
    }
    return &slots[at];
}

static enum gar_status insert_region(struct gar_join_table *table, int64_t item,
                                     const struct gar_cancel *cancel, struct gar_error *err)
{
    struct region *region = &table->regions[item];
    const uint8_t *marks = marks_of(table);
    struct slot *slots = (struct slot *)(void *)table->slots->data;
    uint32_t *places = (uint32_t *)(void *)table->places->data;
    const int64_t stride = key_words(table);
    for (int64_t i = 0; i < table->rows; i++) {
        if (i % CANCEL_ROWS == 0) {
            GAR_CANCEL_CHECK(cancel, err);
        }
        const uint32_t hash = hash_of(table, i);
        if (region_of(table, hash) != item || (marks != NULL && marks[i] != 0)) {
            continue;
        }
        const uint64_t *key = keys_of(table) + i * stride;
        struct slot *slot = find_slot(table, key, hash);
        if (slot->count == 0) {
            if (++region->keys >= table->slots_per_region) { /* one stays empty */
                region->is_full = true;
                return GAR_OK;
            }
            slot->key = table->is_word ? *key : (key[0] >> 32 << 32) | (uint32_t)i;
            slot->start = (uint32_t)i;
        } else {
            region->has_repeats = true;
        }
        slot->count++;
        places[i] = (uint32_t)(slot - slots);
        region->rows++;
    }
    return GAR_OK;
}

/* Cells count their rows; if none has two, they get the row itself (+ 1). */
static enum gar_status insert_array(struct gar_join_table *table, const struct gar_cancel *cancel,
                                    struct gar_error *err)
{
    uint32_t *cells = (uint32_t *)(void *)table->slots->data;
    const uint8_t *marks = marks_of(table);
    const uint64_t *keys = keys_of(table);
    struct region *region = &table->regions[0];
    for (int64_t i = 0; i < table->rows; i++) {
        if (i % CANCEL_ROWS == 0) {
            GAR_CANCEL_CHECK(cancel, err);
        }
        if (marks == NULL || marks[i] == 0) {
            uint32_t *cell = &cells[keys[i] - table->base];
            region->has_repeats = region->has_repeats || *cell != 0;
            *cell = *cell == 0 ? (uint32_t)i + 1 : *cell;
            region->rows++;
        }
    }
    return GAR_OK;
}

/* ---- step 4: lists ---- */

static enum gar_status begin_list(struct gar_join_table *table, int64_t *out_items,
                                  struct gar_error *err)
{
    int64_t rows = 0;
    bool has_repeats = false;
    bool is_full = false;
    for (int64_t r = 0; r < (int64_t)1 << table->region_bits; r++) {
        rows += table->regions[r].rows;
        has_repeats = has_repeats || table->regions[r].has_repeats;
        is_full = is_full || table->regions[r].is_full;
    }
    if (is_full) { /* with one region there is a slot for every row */
        gar_buffer_unref(table->slots);
        gar_buffer_unref(table->places);
        table->slots = table->places = NULL;
        memset(table->regions, 0, sizeof table->regions);
        table->region_bits = 0;
        table->regions_max = 1;
        table->step = STEP_INSERT;
        return begin_insert(table, out_items, err);
    }
    table->is_unique = !has_repeats;
    *out_items = has_repeats ? (int64_t)1 << table->region_bits : 0;
    return has_repeats
               ? gar_buffer_new(table->memory, rows * (int64_t)sizeof(uint32_t), &table->lists, err)
               : GAR_OK;
}

static void list_region(struct gar_join_table *table, int64_t item)
{
    struct slot *slots = (struct slot *)(void *)table->slots->data + item * table->slots_per_region;
    struct slot *all = (struct slot *)(void *)table->slots->data;
    const uint32_t *places = (const uint32_t *)(const void *)table->places->data;
    const uint8_t *marks = marks_of(table);
    uint32_t *lists = (uint32_t *)(void *)table->lists->data;
    uint32_t at = 0;
    for (int64_t r = 0; r < item; r++) {
        at += (uint32_t)table->regions[r].rows;
    }
    for (int64_t s = 0; s < table->slots_per_region; s++) {
        slots[s].start = at; /* moves on while rows are put, and back at the end */
        at += slots[s].count;
    }
    for (int64_t i = 0; i < table->rows; i++) {
        if ((marks == NULL || marks[i] == 0) && region_of(table, hash_of(table, i)) == item) {
            lists[all[places[i]].start++] = (uint32_t)i;
        }
    }
    for (int64_t s = 0; s < table->slots_per_region; s++) {
        slots[s].start -= slots[s].count;
    }
}

/* cells[k] .. cells[k + 1] become the list of key base + k. */
static void list_array(struct gar_join_table *table)
{
    uint32_t *cells = (uint32_t *)(void *)table->slots->data;
    uint32_t *lists = (uint32_t *)(void *)table->lists->data;
    const uint8_t *marks = marks_of(table);
    const uint64_t *keys = keys_of(table);
    memset(cells, 0, (size_t)(table->cells + 1) * sizeof *cells);
    for (int64_t i = 0; i < table->rows; i++) {
        if (marks == NULL || marks[i] == 0) {
            cells[keys[i] - table->base]++;
        }
    }
    uint32_t end = 0;
    for (int64_t c = 0; c <= table->cells; c++) {
        end += cells[c];
        cells[c] = end;
    }
    for (int64_t i = table->rows; i-- > 0;) { /* from the end of each list to its start */
        if (marks == NULL || marks[i] == 0) {
            lists[--cells[keys[i] - table->base]] = (uint32_t)i;
        }
    }
}

/* ---- steps ---- */

static enum gar_status finish(struct gar_join_table *table)
{
    gar_buffer_unref(table->places);
    table->places = NULL;
    gar_buffer_unref(table->marks);
    table->marks = NULL;
    if (table->is_word) { /* words lie in the slots or are places themselves */
        gar_buffer_unref(table->keys);
        table->keys = NULL;
    }
    return GAR_OK;
}

enum gar_status gar_join_table_step(struct gar_join_table *table, int64_t *out_items,
                                    struct gar_error *err)
{
    *out_items = 0;
    while (*out_items == 0 && table->step != STEP_READY) {
        table->step = (enum step)(table->step + 1);
        switch (table->step) {
        case STEP_ENCODE: GAR_TRY(begin_encode(table, out_items, err)); break;
        case STEP_PACK: GAR_TRY(begin_pack(table, out_items, err)); break;
        case STEP_INSERT:
            end_pack(table);
            GAR_TRY(begin_insert(table, out_items, err));
            break;
        case STEP_LIST: GAR_TRY(begin_list(table, out_items, err)); break;
        case STEP_NONE:
        case STEP_READY: GAR_TRY(finish(table)); break;
        }
    }
    return GAR_OK;
}

enum gar_status gar_join_table_item(struct gar_join_table *table, int64_t item,
                                    const struct gar_cancel *cancel, struct gar_error *err)
{
    GAR_CANCEL_CHECK(cancel, err);
    switch (table->step) {
    case STEP_ENCODE: encode(table, item); break;
    case STEP_PACK: pack(table, item); break;
    case STEP_INSERT:
        return table->is_array ? insert_array(table, cancel, err)
                               : insert_region(table, item, cancel, err);
    case STEP_LIST:
        if (table->is_array) {
            list_array(table);
        } else {
            list_region(table, item);
        }
        break;
    case STEP_NONE:
    case STEP_READY: break;
    }
    return GAR_OK;
}

/* ---- looking up ---- */

static void find_in_array(const struct gar_join_table *table, const uint64_t *words, int64_t count,
                          uint32_t *out_start, uint32_t *out_count)
{
    const uint32_t *cells = (const uint32_t *)(const void *)table->slots->data;
    const uint64_t limit = (uint64_t)table->cells;
    if (table->slots->size > PREFETCH_FROM) {
        for (int64_t i = 0; i < count; i++) {
            const uint64_t place = words[i] - table->base;
            __builtin_prefetch(&cells[place < limit ? place : 0]);
        }
    }
    for (int64_t i = 0; i < count; i++) {
        const uint64_t place = words[i] - table->base;
        const bool is_inside = place < limit;
        const uint64_t safe = is_inside ? place : 0;
        const uint32_t start = cells[safe];
        if (table->is_unique) {
            out_count[i] = is_inside & (start != 0);
            out_start[i] = start - out_count[i];
        } else {
            out_start[i] = start;
            out_count[i] = is_inside ? cells[safe + 1] - start : 0;
        }
    }
}

static void find_in_slots(const struct gar_join_table *table, const uint64_t *keys, int64_t stride,
                          int64_t count, uint32_t *out_start, uint32_t *out_count)
{
    uint32_t hashes[GAR_KEY_ROWS];
    const struct slot *slots = (const struct slot *)(const void *)table->slots->data;
    const uint64_t mask = (uint64_t)table->slots_per_region - 1;
    for (int64_t i = 0; i < count; i++) {
        hashes[i] = table->is_word ? gar_key_hash_word(keys[i]) : gar_key_hash(keys + i * stride);
    }
    if (table->slots->size > PREFETCH_FROM) {
        for (int64_t i = 0; i < count; i++) {
            __builtin_prefetch(&slots[region_of(table, hashes[i]) * table->slots_per_region +
                                      (int64_t)(hashes[i] & mask)]);
        }
    }
    for (int64_t i = 0; i < count; i++) {
        const struct slot *slot = find_slot(table, keys + i * stride, hashes[i]);
        out_start[i] = slot->start;
        out_count[i] = slot->count;
    }
}

/* Words of several keys in one. outside[i]: no row of the table has such a key. Uses two runs of scratch. */
static void load_packed(const struct gar_join_table *table, struct gar_column *const *columns,
                        int64_t first, int64_t count, uint64_t *words, uint8_t *outside)
{
    uint64_t *more = words + GAR_KEY_ROWS;
    memset(words, 0, (size_t)count * sizeof *words);
    memset(outside, 0, (size_t)count);
    for (int64_t k = 0; k < table->layout.count; k++) {
        const struct packed *p = &table->packed[k];
        gar_key_load_words(columns[k], first, count, more);
        for (int64_t i = 0; i < count; i++) {
            const uint64_t distance = more[i] - p->least;
            outside[i] |= distance > p->span;
            words[i] |= distance << p->shift;
        }
    }
}

void gar_join_table_find(const struct gar_join_table *table, struct gar_column *const *columns,
                         int64_t first, int64_t count, uint64_t *scratch, uint32_t *out_start,
                         uint32_t *out_count)
{
    const int64_t stride = key_words(table);
    uint8_t marks[GAR_KEY_ROWS];
    uint8_t outside[GAR_KEY_ROWS];
    for (int64_t at = 0; at < count; at += GAR_KEY_ROWS) {
        const int64_t n = gar_min_i64(count - at, GAR_KEY_ROWS);
        if (table->rows == 0) {
            memset(out_count + at, 0, (size_t)n * sizeof *out_count);
            memset(out_start + at, 0, (size_t)n * sizeof *out_start);
            continue;
        }
        if (table->packed != NULL) {
            load_packed(table, columns, first + at, n, scratch, outside);
        } else if (table->is_word) {
            gar_key_load_words(columns[0], first + at, n, scratch);
        } else {
            gar_key_encode(&table->layout, columns, first + at, n, scratch);
        }
        if (table->is_array) {
            find_in_array(table, scratch, n, out_start + at, out_count + at);
        } else {
            find_in_slots(table, scratch, stride, n, out_start + at, out_count + at);
        }
        for (int64_t i = 0; table->packed != NULL && i < n; i++) {
            out_count[at + i] = outside[i] != 0 ? 0 : out_count[at + i];
        }
        if (mark_nulls(table, columns, first + at, n, marks)) {
            for (int64_t i = 0; i < n; i++) {
                out_count[at + i] = marks[i] != 0 ? 0 : out_count[at + i];
            }
        }
    }
}
