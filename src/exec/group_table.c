/* SPDX-License-Identifier: Apache-2.0 */
/* Group tables: linear probing over slots, batch hashing with prefetch, and the caches for
 * dictionary codes. */
#include "exec/group_table.h"

#include "arrow/gather.h"
#include "base/alloc.h"
#include "base/stop.h"
#include "kernels/word_index.h"

enum {
    FIRST_SLOTS = 64,
    STOP_STEPS = 1 << 16,
    GROW_FAST_BELOW = 1 << 18,     /* groups */
    PREFETCH_FROM_BYTES = 1 << 18, /* smaller tables lie in L2 anyway */
    CODES_MAX = 1 << 16,     /* entries of a dictionary that one batch may make us map, at least */
    PAIR_ENTRIES_MAX = 1024, /* entries of a dictionary in a key of several columns */
    PAIR_CELLS_MAX = 1 << 16,
    PAIR_COLUMNS_MAX = 8,
    PARTITION_GROUPS = 1 << 15, /* aimed at for each partition */
    PARTITION_BITS_MIN = 3,
};

#define NO_GROUP GAR_NO_GROUP

/* What is known of the dictionary that a key column had last. */
struct code_map {
    uint64_t dictionary_id;       /* 0: none */
    struct gar_buffer *map;       /* owned; uint32_t per entry */
    struct gar_key_layout layout; /* of the one column; several keys only */
    struct gar_group_table *ids;  /* owned; entry -> number of the value; several keys only */
    int32_t shift;                /* of the number in the index of cells */
    int32_t bits;
};

struct gar_group_table {
    const struct gar_key_layout *layout; /* borrowed */
    struct gar_memory *memory;           /* borrowed */
    bool is_word;                        /* one key column of one word */
    bool is_frozen;                      /* no group is added */
    struct gar_word_index words;         /* is_word: everything */
    struct gar_row_pages pages;          /* else: key row of each group */
    struct gar_buffer *slots;            /* owned; uint64_t: hash << 32 | group + 1 */
    int64_t slot_mask;
    uint64_t *scratch;     /* owned; GAR_KEY_ROWS key rows */
    struct code_map *maps; /* owned; one a key column */
    struct gar_buffer
        *cells;        /* owned; uint32_t group of each combination of numbers, NO_GROUP unknown */
    int32_t cell_bits; /* of all columns together */
};

enum gar_status gar_group_table_new(const struct gar_key_layout *layout, struct gar_memory *memory,
                                    struct gar_group_table **out, struct gar_error *err)
{
    struct gar_group_table *table = (struct gar_group_table *)gar_calloc(1, (int64_t)sizeof *table);
    if (table == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *table);
    }
    table->layout = layout;
    table->memory = memory;
    table->is_word = layout->count == 1 && gar_key_is_word(layout->columns[0].type);
    gar_word_index_init(&table->words, memory,
                        table->is_word && !gar_type_is_float(layout->columns[0].type));
    gar_row_pages_init(&table->pages, layout, memory);
    *out = table;
    return GAR_OK;
}

static void destroy_map(struct code_map *map)
{
    gar_buffer_unref(map->map);
    gar_group_table_free(map->ids);
    gar_key_layout_destroy(&map->layout);
}

void gar_group_table_free(struct gar_group_table *table)
{
    if (table == NULL) {
        return;
    }
    for (int64_t c = 0; table->maps != NULL && c < table->layout->count; c++) {
        destroy_map(&table->maps[c]);
    }
    gar_free(table->maps);
    gar_buffer_unref(table->slots);
    gar_word_index_destroy(&table->words);
    gar_buffer_unref(table->cells);
    gar_row_pages_destroy(&table->pages);
    gar_free(table->scratch);
    gar_free(table);
}

void gar_group_table_freeze(struct gar_group_table *table, bool is_frozen)
{
    table->is_frozen = is_frozen;
}

int64_t gar_group_table_count(const struct gar_group_table *table)
{
    return table->is_word ? table->words.count : table->pages.count;
}

/* ---- the table ---- */

/* Fill larger slots from the old ones in their order: a slot's new place is its old one or a
 * multiple of the old size further, so that memory is written in a few streams. */
static enum gar_status refill_rows(const struct gar_group_table *table, uint64_t *slots,
                                   uint64_t mask, struct gar_error *err)
{
    const uint64_t *old = (const uint64_t *)(const void *)table->slots->data;
    for (int64_t i = 0; i <= table->slot_mask; i++) {
        if (i % STOP_STEPS == 0) {
            GAR_TRY(gar_stop_check(err));
        }
        if (old[i] == 0) {
            continue;
        }
        uint64_t at = (old[i] >> 32) & mask;
        while (slots[at] != 0) {
            at = (at + 1) & mask;
        }
        slots[at] = old[i];
    }
    return GAR_OK;
}

/* Room for `more` rows at a load of at most 2/3. */
static enum gar_status make_room(struct gar_group_table *table, int64_t more, struct gar_error *err)
{
    const int64_t want = table->pages.count + (table->is_frozen ? 0 : more);
    if (want >= (int64_t)UINT32_MAX) {
        return gar_error_set(err, GAR_ERR_UNSUPPORTED, "more than 4294967294 groups in one task");
    }
    if (table->slots != NULL && want * 3 <= (table->slot_mask + 1) * 2) {
        return GAR_OK;
    }
    /* Small tables grow by 4, to be refilled less often; large ones by 2, for their memory. */
    const int64_t factor = table->slots != NULL && want < GROW_FAST_BELOW ? 4 : 2;
    const int64_t slots = gar_max_i64(gar_next_pow2(want * factor), FIRST_SLOTS);
    struct gar_buffer *fresh = NULL;
    GAR_TRY(gar_buffer_new_zeroed(table->memory, slots * (int64_t)sizeof(uint64_t), &fresh, err));
    if (table->slots != NULL) {
        const enum gar_status status =
            refill_rows(table, (uint64_t *)(void *)fresh->data, (uint64_t)slots - 1, err);
        if (status < 0) {
            gar_buffer_unref(fresh);
            return status;
        }
    }
    gar_buffer_unref(table->slots);
    table->slots = fresh;
    table->slot_mask = slots - 1;
    return GAR_OK;
}

/* Group of a key row whose far texts are pointers; there is room. */
static enum gar_status find_row(struct gar_group_table *table, const uint64_t *row, uint32_t *out,
                                struct gar_error *err)
{
    uint64_t *slots = (uint64_t *)(void *)table->slots->data;
    const uint32_t hash = gar_key_hash(row);
    uint64_t at = hash & (uint64_t)table->slot_mask;
    while (slots[at] != 0) {
        const uint32_t group = (uint32_t)slots[at] - 1;
        if ((uint32_t)(slots[at] >> 32) == hash && gar_row_pages_equal(&table->pages, group, row)) {
            *out = group;
            return GAR_OK;
        }
        at = (at + 1) & (uint64_t)table->slot_mask;
    }
    if (table->is_frozen) {
        *out = NO_GROUP;
        return GAR_OK;
    }
    GAR_TRY(gar_row_pages_append(&table->pages, row, err));
    *out = (uint32_t)(table->pages.count - 1);
    slots[at] = ((uint64_t)hash << 32) | (*out + 1);
    return GAR_OK;
}

static bool is_null_at(const struct gar_column *column, int64_t i)
{
    if (column->encoding == GAR_CONSTANT) {
        return gar_column_is_null(column->dictionary, 0);
    }
    return column->validity != NULL && !gar_bit_get(column->validity, column->validity_offset + i);
}

static bool may_have_nulls(const struct gar_column *column)
{
    return column->encoding == GAR_CONSTANT ? is_null_at(column, 0)
                                            : column->validity != NULL && column->null_count != 0;
}

/* Rows of a column that has nulls: those that are not null are looked up together. Before null has
 * its number, rows before the first null come first, so that numbers follow the rows. */
static enum gar_status find_words_and_nulls(struct gar_group_table *table,
                                            const struct gar_column *column, int64_t first,
                                            const uint64_t *keys, int64_t count, uint32_t *out,
                                            struct gar_error *err)
{
    uint64_t valid_keys[GAR_WORD_INDEX_STEP];
    uint32_t valid_out[GAR_WORD_INDEX_STEP];
    int64_t done = 0;
    if (table->words.null_number < 0) {
        while (done < count && !is_null_at(column, first + done)) {
            done++;
        }
        GAR_TRY(gar_word_index_find(&table->words, keys, done, out, err));
        if (done == count) {
            return GAR_OK;
        }
    }
    uint32_t null = 0;
    GAR_TRY(gar_word_index_find_null(&table->words, &null, err));
    int64_t valid = 0;
    for (int64_t i = done; i < count; i++) {
        valid_keys[valid] = keys[i];
        valid += !is_null_at(column, first + i);
    }
    GAR_TRY(gar_word_index_find(&table->words, valid_keys, valid, valid_out, err));
    valid = 0;
    for (int64_t i = done; i < count; i++) {
        out[i] = is_null_at(column, first + i) ? null : valid_out[valid++];
    }
    return GAR_OK;
}

/* Of a frozen table. */
static void look_up_words(const struct gar_group_table *table, const struct gar_column *column,
                          int64_t first, int64_t rows, uint32_t *out)
{
    uint64_t keys[GAR_WORD_INDEX_STEP];
    const uint32_t null =
        table->words.null_number >= 0 ? (uint32_t)table->words.null_number : NO_GROUP;
    const bool has_nulls = may_have_nulls(column);
    for (int64_t at = 0; at < rows; at += GAR_WORD_INDEX_STEP) {
        const int64_t n = gar_min_i64(rows - at, GAR_WORD_INDEX_STEP);
        gar_key_load_words(column, first + at, n, keys);
        gar_word_index_look_up(&table->words, keys, n, out + at);
        for (int64_t i = 0; has_nulls && i < n; i++) {
            out[at + i] = is_null_at(column, first + at + i) ? null : out[at + i];
        }
    }
}

static enum gar_status find_words(struct gar_group_table *table, const struct gar_column *column,
                                  int64_t first, int64_t rows, uint32_t *out, struct gar_error *err)
{
    uint64_t keys[GAR_WORD_INDEX_STEP];
    const bool has_nulls = may_have_nulls(column);
    if (table->is_frozen) {
        look_up_words(table, column, first, rows, out);
        return GAR_OK;
    }
    for (int64_t at = 0; at < rows; at += GAR_WORD_INDEX_STEP) {
        const int64_t n = gar_min_i64(rows - at, GAR_WORD_INDEX_STEP);
        gar_key_load_words(column, first + at, n, keys);
        GAR_TRY(has_nulls ? find_words_and_nulls(table, column, first + at, keys, n, out + at, err)
                          : gar_word_index_find(&table->words, keys, n, out + at, err));
    }
    return GAR_OK;
}

static enum gar_status need_scratch(struct gar_group_table *table, struct gar_error *err)
{
    const int64_t bytes = (int64_t)table->layout->words * GAR_KEY_ROWS * (int64_t)sizeof(uint64_t);
    if (table->scratch == NULL) {
        table->scratch = (uint64_t *)gar_malloc(bytes);
    }
    return table->scratch != NULL ? GAR_OK : gar_error_nomem(err, bytes);
}

/* Bring slots and key rows of the rows in scratch near, when the table is larger than L2. */
static void prefetch_rows(const struct gar_group_table *table, int64_t count)
{
    const uint64_t *slots = (const uint64_t *)(const void *)table->slots->data;
    const int64_t stride = table->layout->words;
    if (table->slots->size <= PREFETCH_FROM_BYTES) {
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        __builtin_prefetch(
            &slots[gar_key_hash(table->scratch + i * stride) & (uint64_t)table->slot_mask]);
    }
    for (int64_t i = 0; i < count; i++) {
        const uint64_t slot =
            slots[gar_key_hash(table->scratch + i * stride) & (uint64_t)table->slot_mask];
        if (slot != 0) {
            __builtin_prefetch(gar_row_pages_at(&table->pages, (uint32_t)slot - 1));
        }
    }
}

static enum gar_status find_rows(struct gar_group_table *table, struct gar_column *const *columns,
                                 int64_t first, int64_t rows, uint32_t *out, struct gar_error *err)
{
    const int64_t stride = table->layout->words;
    GAR_TRY(need_scratch(table, err));
    for (int64_t at = 0; at < rows; at += GAR_KEY_ROWS) {
        const int64_t n = gar_min_i64(rows - at, GAR_KEY_ROWS);
        GAR_TRY(make_room(table, n, err));
        gar_key_encode(table->layout, columns, first + at, n, table->scratch);
        prefetch_rows(table, n);
        for (int64_t i = 0; i < n; i++) {
            GAR_TRY(find_row(table, table->scratch + i * stride, &out[at + i], err));
        }
    }
    return GAR_OK;
}

static enum gar_status find_plain(struct gar_group_table *table, struct gar_column *const *columns,
                                  int64_t first, int64_t rows, uint32_t *out, struct gar_error *err)
{
    return table->is_word ? find_words(table, columns[0], first, rows, out, err)
                          : find_rows(table, columns, first, rows, out, err);
}

/* ---- dictionary codes ---- */

static enum gar_status need_maps(struct gar_group_table *table, struct gar_error *err)
{
    if (table->maps == NULL) {
        table->maps =
            (struct code_map *)gar_calloc(table->layout->count, (int64_t)sizeof *table->maps);
        if (table->maps == NULL) {
            return gar_error_nomem(err, table->layout->count * (int64_t)sizeof *table->maps);
        }
    }
    return GAR_OK;
}

static enum gar_status map_room(struct gar_group_table *table, struct code_map *map,
                                int64_t entries, struct gar_error *err)
{
    const int64_t bytes = gar_max_i64(entries, 1) * (int64_t)sizeof(uint32_t);
    map->dictionary_id = 0;
    if (map->map != NULL && map->map->size >= bytes) {
        return GAR_OK;
    }
    gar_buffer_unref(map->map);
    map->map = NULL;
    return gar_buffer_new(table->memory, bytes, &map->map, err);
}

/* Groups of the codes among rows [first, first + rows), none null, that the map does not know, looked up together so that their
 * cache misses overlap. */
static enum gar_status find_new_codes(struct gar_group_table *table,
                                      const struct gar_column *column, int64_t first, int64_t rows,
                                      uint32_t *groups, struct gar_error *err)
{
    const uint32_t *codes = (const uint32_t *)column->values + first;
    uint32_t fresh[GAR_KEY_ROWS];
    uint32_t found[GAR_KEY_ROWS];
    int64_t count = 0;
    for (int64_t i = 0; i < rows; i++) {
        if (GAR_UNLIKELY(groups[codes[i]] == NO_GROUP)) {
            groups[codes[i]] = 0; /* seen; overwritten below */
            fresh[count++] = codes[i];
        }
    }
    if (count == 0) {
        return GAR_OK;
    }
    struct gar_column *keys = NULL;
    GAR_TRY(gar_column_gather(column->dictionary, fresh, count, table->memory, &keys, err));
    const enum gar_status status = find_plain(table, &keys, 0, count, found, err);
    gar_column_unref(keys);
    for (int64_t i = 0; i < count && status >= 0; i++) {
        groups[fresh[i]] = found[i];
    }
    return status;
}

/* Rows from `first` on up to the next null, at most `limit`. */
static int64_t rows_to_null(const struct gar_column *column, int64_t first, int64_t limit)
{
    int64_t n = 0;
    while (n < limit && !is_null_at(column, first + n)) {
        n++;
    }
    return n;
}

/* One dictionary-encoded key column: codes lead to groups directly. */
static enum gar_status find_codes(struct gar_group_table *table, struct gar_column *const *columns,
                                  int64_t rows, uint32_t *out, struct gar_error *err)
{
    const struct gar_column *column = columns[0];
    GAR_TRY(need_maps(table, err));
    struct code_map *map = &table->maps[0];
    if (map->dictionary_id != column->dictionary_id) {
        GAR_TRY(map_room(table, map, column->dictionary->length, err));
        memset(map->map->data, 0xff, (size_t)column->dictionary->length * sizeof(uint32_t));
        map->dictionary_id = column->dictionary_id;
    }
    uint32_t *groups = (uint32_t *)(void *)map->map->data;
    const uint32_t *codes = (const uint32_t *)column->values;
    const bool has_nulls = may_have_nulls(column);
    for (int64_t at = 0; at < rows;) {
        int64_t n = gar_min_i64(rows - at, GAR_KEY_ROWS);
        n = has_nulls ? rows_to_null(column, at, n) : n;
        if (n == 0) {
            GAR_TRY(find_plain(table, columns, at, 1, &out[at], err));
            at++;
            continue;
        }
        const enum gar_status status = find_new_codes(table, column, at, n, groups, err);
        if (status < 0) {
            map->dictionary_id = 0; /* some entries are marked and not known */
            return status;
        }
        for (const int64_t end = at + n; at < end; at++) {
            out[at] = groups[codes[at]];
        }
    }
    return GAR_OK;
}

/* Several key columns: is each a small dictionary or constant? */
static bool takes_cells(const struct gar_group_table *table, struct gar_column *const *columns)
{
    if (table->layout->count > PAIR_COLUMNS_MAX) {
        return false;
    }
    for (int64_t c = 0; c < table->layout->count; c++) {
        const bool is_small = columns[c]->encoding == GAR_CONSTANT ||
                              (columns[c]->encoding == GAR_DICTIONARY &&
                               columns[c]->dictionary->length <= PAIR_ENTRIES_MAX);
        if (!is_small || table->layout->columns[c].words == 0) {
            return false;
        }
    }
    return true;
}

/* Numbers of the entries of the column's dictionary: 1, 2, ... a value; null is 0. */
static enum gar_status number_entries(struct gar_group_table *table, int64_t c,
                                      struct gar_column *column, struct gar_error *err)
{
    struct code_map *map = &table->maps[c];
    const bool is_constant = column->encoding == GAR_CONSTANT;
    if (!is_constant && map->dictionary_id == column->dictionary_id) {
        return GAR_OK;
    }
    if (map->ids == NULL) {
        if (map->layout.columns == NULL) {
            GAR_TRY(gar_key_layout_init(&map->layout, &table->layout->columns[c].type, 1, err));
        }
        GAR_TRY(gar_group_table_new(&map->layout, table->memory, &map->ids, err));
    }
    struct gar_column *entries = column->dictionary;
    GAR_TRY(map_room(table, map, entries->length, err));
    uint32_t *numbers = (uint32_t *)(void *)map->map->data;
    if (is_constant && gar_column_is_null(entries, 0)) {
        numbers[0] = 0;
        return GAR_OK;
    }
    GAR_TRY(gar_group_table_find(map->ids, &entries, entries->length, numbers, err));
    for (int64_t i = 0; i < entries->length; i++) {
        numbers[i] = (numbers[i] + 1) << map->shift;
    }
    map->dictionary_id = is_constant ? 0 : column->dictionary_id;
    return GAR_OK;
}

/* Make the cells wide enough for every number. False when they would be too many. */
static enum gar_status fit_cells(struct gar_group_table *table, bool *out_fits,
                                 struct gar_error *err)
{
    bool fits = table->cells != NULL;
    int32_t shift = 0;
    int32_t bits[PAIR_COLUMNS_MAX];
    for (int64_t c = 0; c < table->layout->count; c++) {
        const struct code_map *map = &table->maps[c];
        const int64_t numbers = 1 + (map->ids != NULL ? gar_group_table_count(map->ids) : 0);
        bits[c] = map->bits;
        if (numbers > (int64_t)1 << bits[c]) {
            bits[c] = gar_ctz64((uint64_t)gar_next_pow2(numbers));
            fits = false;
        }
        shift += bits[c];
    }
    *out_fits = ((int64_t)1 << gar_min_i64(shift, 62)) <= PAIR_CELLS_MAX;
    if (fits || !*out_fits) {
        return GAR_OK;
    }
    struct gar_buffer *cells = NULL;
    GAR_TRY(gar_buffer_new(table->memory, ((int64_t)sizeof(uint32_t)) << shift, &cells, err));
    memset(cells->data, 0xff, (size_t)cells->size);
    gar_buffer_unref(table->cells);
    table->cells = cells;
    int32_t at = 0;
    for (int64_t c = 0; c < table->layout->count; c++) {
        table->maps[c].bits = bits[c];
        table->maps[c].shift = at;
        table->maps[c].dictionary_id = 0; /* numbers are shifted: make the map again */
        at += bits[c];
    }
    return GAR_OK;
}

/* out[i] += number of row i's entry. */
static void add_numbers(const struct code_map *map, const struct gar_column *column, int64_t rows,
                        uint32_t *out)
{
    const uint32_t *numbers = (const uint32_t *)(const void *)map->map->data;
    if (column->encoding == GAR_CONSTANT) {
        for (int64_t i = 0; i < rows; i++) {
            out[i] += numbers[0];
        }
        return;
    }
    const uint32_t *codes = (const uint32_t *)column->values;
    if (!may_have_nulls(column)) {
        for (int64_t i = 0; i < rows; i++) {
            out[i] += numbers[codes[i]];
        }
        return;
    }
    for (int64_t i = 0; i < rows; i++) {
        out[i] += is_null_at(column, i) ? 0 : numbers[codes[i]];
    }
}

/* Several small dictionaries. *out_done false: the product is too large, nothing was looked up. */
static enum gar_status find_cells(struct gar_group_table *table, struct gar_column *const *columns,
                                  int64_t rows, uint32_t *out, bool *out_done,
                                  struct gar_error *err)
{
    GAR_TRY(need_maps(table, err));
    for (int32_t pass = 0; pass < 2; pass++) {
        for (int64_t c = 0; c < table->layout->count; c++) {
            GAR_TRY(number_entries(table, c, columns[c], err));
        }
        if (pass == 0) {
            GAR_TRY(fit_cells(table, out_done, err));
            if (!*out_done) {
                return GAR_OK;
            }
        }
    }
    memset(out, 0, (size_t)rows * sizeof *out);
    for (int64_t c = 0; c < table->layout->count; c++) {
        add_numbers(&table->maps[c], columns[c], rows, out);
    }
    uint32_t *cells = (uint32_t *)(void *)table->cells->data;
    for (int64_t i = 0; i < rows; i++) {
        const uint32_t cell = out[i];
        uint32_t group = cells[cell];
        if (GAR_UNLIKELY(group == NO_GROUP)) {
            GAR_TRY(find_plain(table, columns, i, 1, &group, err));
            cells[cell] = group;
        }
        out[i] = group;
    }
    return GAR_OK;
}

enum gar_status gar_group_table_find(struct gar_group_table *table,
                                     struct gar_column *const *columns, int64_t rows,
                                     uint32_t *out_groups, struct gar_error *err)
{
    if (rows == 0) {
        return GAR_OK;
    }
    if (table->layout->count == 1 && columns[0]->encoding == GAR_DICTIONARY &&
        columns[0]->dictionary->length <= gar_max_i64(4 * rows, CODES_MAX)) {
        return find_codes(table, columns, rows, out_groups, err);
    }
    if (table->layout->count > 1 && takes_cells(table, columns)) {
        bool is_done = false;
        GAR_TRY(find_cells(table, columns, rows, out_groups, &is_done, err));
        if (is_done) {
            return GAR_OK;
        }
    }
    return find_plain(table, columns, 0, rows, out_groups, err);
}

/* ---- merging and output ---- */

static enum gar_status absorb_words(struct gar_group_table *table,
                                    const struct gar_group_table *from, const uint32_t *from_groups,
                                    int64_t count, uint32_t *out, struct gar_error *err)
{
    uint64_t keys[GAR_WORD_INDEX_STEP];
    for (int64_t at = 0; at < count; at += GAR_WORD_INDEX_STEP) {
        const int64_t n = gar_min_i64(count - at, GAR_WORD_INDEX_STEP);
        int64_t null_at = -1; /* at most one of the groups is that of null */
        for (int64_t i = 0; i < n; i++) {
            const uint32_t g = from_groups[at + i];
            keys[i] = gar_word_index_key(&from->words, g);
            null_at = g == from->words.null_number ? i : null_at;
        }
        if (null_at < 0) {
            GAR_TRY(gar_word_index_find(&table->words, keys, n, out + at, err));
            continue;
        }
        GAR_TRY(gar_word_index_find(&table->words, keys, null_at, out + at, err));
        GAR_TRY(gar_word_index_find_null(&table->words, &out[at + null_at], err));
        GAR_TRY(gar_word_index_find(&table->words, keys + null_at + 1, n - null_at - 1,
                                    out + at + null_at + 1, err));
    }
    return GAR_OK;
}

static enum gar_status absorb_rows(struct gar_group_table *table,
                                   const struct gar_group_table *from, const uint32_t *from_groups,
                                   int64_t count, uint32_t *out, struct gar_error *err)
{
    const int64_t stride = table->layout->words;
    GAR_TRY(need_scratch(table, err));
    for (int64_t at = 0; at < count; at += GAR_KEY_ROWS) {
        const int64_t n = gar_min_i64(count - at, GAR_KEY_ROWS);
        GAR_TRY(make_room(table, n, err));
        for (int64_t i = 0; i < n; i++) {
            gar_row_pages_export(&from->pages, from_groups[at + i], table->scratch + i * stride);
        }
        prefetch_rows(table, n);
        for (int64_t i = 0; i < n; i++) {
            GAR_TRY(find_row(table, table->scratch + i * stride, &out[at + i], err));
        }
    }
    return GAR_OK;
}

enum gar_status gar_group_table_absorb(struct gar_group_table *table,
                                       const struct gar_group_table *from,
                                       const uint32_t *from_groups, int64_t count,
                                       uint32_t *out_groups, struct gar_error *err)
{
    return table->is_word ? absorb_words(table, from, from_groups, count, out_groups, err)
                          : absorb_rows(table, from, from_groups, count, out_groups, err);
}

uint32_t gar_group_table_hash(const struct gar_group_table *table, int64_t group)
{
    if (!table->is_word) {
        return gar_key_hash(gar_row_pages_at(&table->pages, group));
    }
    return group == table->words.null_number
               ? 0
               : gar_key_hash_word(gar_word_index_key(&table->words, group));
}

int32_t gar_group_partition_bits(int64_t groups)
{
    int32_t bits = PARTITION_BITS_MIN;
    while (bits < GAR_GROUP_PARTITION_BITS_MAX && (groups >> bits) > PARTITION_GROUPS) {
        bits++;
    }
    return bits;
}

static int64_t partition_of(const struct gar_group_table *table, int64_t group, int32_t shift,
                            int32_t bits)
{
    return bits == 0 ? 0 : (int64_t)((gar_group_table_hash(table, group) << shift) >> (32 - bits));
}

enum gar_status gar_group_parts_init(struct gar_group_parts *parts,
                                     const struct gar_group_table *table, const uint32_t *listed,
                                     int64_t count, int32_t shift, int32_t bits,
                                     struct gar_error *err)
{
    const int64_t part_count = (int64_t)1 << bits;
    parts->groups = (uint32_t *)gar_malloc(count * (int64_t)sizeof(uint32_t));
    parts->starts = (int64_t *)gar_calloc(part_count + 1, (int64_t)sizeof(int64_t));
    if (parts->groups == NULL || parts->starts == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof(uint32_t));
    }
    for (int64_t i = 0; i < count; i++) {
        if (i % STOP_STEPS == 0) {
            GAR_TRY(gar_stop_check(err));
        }
        const int64_t g = listed != NULL ? (int64_t)listed[i] : i;
        parts->starts[partition_of(table, g, shift, bits) + 1]++;
    }
    for (int64_t p = 0; p < part_count; p++) {
        parts->starts[p + 1] += parts->starts[p];
    }
    int64_t next[1 << GAR_GROUP_PARTITION_BITS_MAX];
    memcpy(next, parts->starts, (size_t)part_count * sizeof next[0]);
    for (int64_t i = 0; i < count; i++) {
        if (i % STOP_STEPS == 0) {
            GAR_TRY(gar_stop_check(err));
        }
        const int64_t g = listed != NULL ? (int64_t)listed[i] : i;
        parts->groups[next[partition_of(table, g, shift, bits)]++] = (uint32_t)g;
    }
    return GAR_OK;
}

void gar_group_parts_destroy(struct gar_group_parts *parts)
{
    gar_free(parts->groups);
    gar_free(parts->starts);
    *parts = (struct gar_group_parts){NULL, NULL};
}

enum gar_status gar_group_table_column(const struct gar_group_table *table, int64_t index,
                                       int64_t first, int64_t count, struct gar_memory *memory,
                                       struct gar_column **out, struct gar_error *err)
{
    if (!table->is_word) {
        return gar_row_pages_column(&table->pages, index, NULL, first, count, memory, out, err);
    }
    const int64_t null = table->words.null_number - first;
    const bool has_null = table->words.null_number >= 0 && null >= 0 && null < count;
    struct gar_column *column = NULL;
    GAR_TRY(gar_column_new(memory, table->layout->columns[0].type, count, has_null, &column, err));
    if (count > 0 && gar_type_width(column->type) == 8) {
        memcpy(gar_column_values_mut(column),
               (const uint64_t *)(const void *)table->words.words->data + first,
               (size_t)count * sizeof(uint64_t));
    } else {
        for (int64_t i = 0; i < count; i++) {
            gar_key_store_word(column, i, gar_word_index_key(&table->words, first + i));
        }
    }
    column->null_count = has_null;
    if (has_null) {
        gar_bit_clear(gar_column_validity_mut(column), null);
    }
    *out = column;
    return GAR_OK;
}
