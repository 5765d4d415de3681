/* SPDX-License-Identifier: Apache-2.0 */
/* Sort keys.
 *
 * A sorter holds fields, the parts of the bit string: FIXED fields of at most 64 bits (a column whose range needs more
 * is two of them), a NULL bit before texts that have nulls, and TEXT fields of any length. Levels
 * pack fields greedily into 64 bits. A
 * text takes what is left of its level in whole bytes, then four bits that say how many of those bytes are the text's or
 * that it goes on; a text that goes on is followed 7 bytes at a time before the next level. */
#include "kernels/sort_key.h"

#include "base/alloc.h"
#include "base/int128.h"
#include "base/stop.h"

enum {
    TEXT_COUNT_BITS = 4,
    TEXT_GOES_ON = 15,
    TEXT_BYTES = 7,     /* of a level that is all text */
    TEXT_BITS_MIN = 20, /* a text begins a new level when fewer bits are left */
    SMALL_RUN = 12,     /* ties of so few rows are compared directly */
    FILL_STEP = 1024,
    DEPTH_MAX = 48, /* levels of recursion; then rows are compared directly */
};

enum field_kind { FIELD_FIXED, FIELD_NULL, FIELD_TEXT };

struct field {
    enum field_kind kind;
    int64_t column;
    int32_t shift; /* FIXED: 64 for the upper half of a wide value */
    int32_t bits;  /* FIXED, NULL: 0 .. 64 */
};

struct level {
    int64_t first; /* fields [first, end) */
    int64_t end;
    int64_t text;       /* the last field when it is a text, else -1 */
    int32_t text_bytes; /* of it in this level */
    int32_t used_bits;  /* by the fixed fields */
};

struct sort_column {
    struct gar_column *column; /* borrowed */
    const struct gar_column *flat;
    bool descending;
    bool nulls_first;
    bool has_nulls;
    bool is_text;
    gar_u128 least; /* of the values, in their unsigned order */
    gar_u128 span;  /* greatest - least */
};

struct gar_sorter {
    struct sort_column *columns; /* owned */
    int64_t count;
    struct field *fields; /* owned */
    int64_t field_count;
    struct level *levels; /* owned */
    int64_t level_count;
};

/* ---- values in unsigned order ---- */

static inline gar_u128 order_f64(double v)
{
    uint64_t bits = UINT64_C(0x7ff8000000000000);
    if (v == v) {
        v += 0.0;
        memcpy(&bits, &v, sizeof bits);
    }
    return (bits >> 63) != 0 ? ~bits : bits | (UINT64_C(1) << 63);
}

static inline gar_u128 order_i64(int64_t v)
{
    return (uint64_t)v ^ (UINT64_C(1) << 63);
}

static inline gar_u128 order_i128(gar_i128 v)
{
    return (gar_u128)v ^ ((gar_u128)1 << 127);
}

static inline gar_u128 value_at(const struct gar_column *flat, int64_t place)
{
    const void *values = flat->values;
    switch ((enum gar_type_id)flat->type.id) {
    case GAR_BOOL: return gar_bit_get((const uint8_t *)values, flat->values_offset + place);
    case GAR_INT8: return order_i64(((const int8_t *)values)[place]);
    case GAR_INT16: return order_i64(((const int16_t *)values)[place]);
    case GAR_INT32:
    case GAR_DATE: return order_i64(((const int32_t *)values)[place]);
    case GAR_UINT8: return ((const uint8_t *)values)[place];
    case GAR_UINT16: return ((const uint16_t *)values)[place];
    case GAR_UINT32: return ((const uint32_t *)values)[place];
    case GAR_UINT64: return ((const uint64_t *)values)[place];
    case GAR_FLOAT32: return order_f64((double)((const float *)values)[place]);
    case GAR_FLOAT64: return order_f64(((const double *)values)[place]);
    case GAR_DECIMAL128: return order_i128(((const gar_i128 *)values)[place]);
    case GAR_INT64:
    case GAR_TIME:
    case GAR_TIMESTAMP:
    case GAR_DURATION: return order_i64(((const int64_t *)values)[place]);
    case GAR_NULL:
    case GAR_STRING:
    case GAR_BINARY:
    case GAR_LIST:
    case GAR_FIXED_LIST:
    case GAR_STRUCT:
    case GAR_MAP:
    case GAR_TYPE_ID_COUNT: break;
    }
    return 0;
}

static inline int64_t place_of(const struct sort_column *c, int64_t row)
{
    if (c->column->encoding == GAR_FLAT) {
        return row;
    }
    return c->column->encoding == GAR_CONSTANT
               ? 0
               : (int64_t)((const uint32_t *)c->column->values)[row];
}

static inline bool is_null(const struct sort_column *c, int64_t row)
{
    return c->has_nulls && gar_column_is_null(c->column, row);
}

/* ---- ranges and fields ---- */

static void look_at_rows(struct sort_column *c, int64_t rows)
{
    const struct gar_column *column = c->column;
    c->flat = column->encoding == GAR_FLAT ? column : column->dictionary;
    c->is_text = gar_type_is_text(column->type);
    c->has_nulls = column->type.id == GAR_NULL || gar_column_null_count(column) > 0;
    c->least = 0;
    c->span = 0;
    if (c->is_text || column->type.id == GAR_NULL) {
        return;
    }
    gar_u128 least = ~(gar_u128)0;
    gar_u128 greatest = 0;
    for (int64_t i = 0; i < rows; i++) {
        if (!is_null(c, i)) {
            const gar_u128 v = value_at(c->flat, place_of(c, i));
            least = v < least ? v : least;
            greatest = v > greatest ? v : greatest;
        }
    }
    if (least <= greatest) {
        c->least = least;
        c->span = greatest - least;
    }
}

static int32_t bit_length(gar_u128 v)
{
    const uint64_t high = (uint64_t)(v >> 64);
    const uint64_t low = (uint64_t)v;
    if (high != 0) {
        return 128 - gar_clz64(high);
    }
    return low != 0 ? 64 - gar_clz64(low) : 0;
}

static void add_fields(struct gar_sorter *sorter, int64_t column)
{
    const struct sort_column *c = &sorter->columns[column];
    struct field *fields = sorter->fields;
    if (c->is_text) {
        if (c->has_nulls) {
            fields[sorter->field_count++] = (struct field){FIELD_NULL, column, 0, 1};
        }
        fields[sorter->field_count++] = (struct field){FIELD_TEXT, column, 0, 0};
        return;
    }
    /* The codes are 0 .. span, one more with nulls: a decimal's span is below 2^127. */
    const int32_t bits = bit_length(c->span + (c->has_nulls ? 1 : 0));
    if (bits > 64) {
        fields[sorter->field_count++] = (struct field){FIELD_FIXED, column, 64, bits - 64};
    }
    if (bits > 0) {
        fields[sorter->field_count++] =
            (struct field){FIELD_FIXED, column, 0, bits > 64 ? 64 : bits};
    }
}

static void pack_levels(struct gar_sorter *sorter)
{
    struct level *level = &sorter->levels[0];
    *level = (struct level){0, 0, -1, 0, 0};
    sorter->level_count = 1;
    for (int64_t f = 0; f < sorter->field_count; f++) {
        const struct field *field = &sorter->fields[f];
        const int32_t need = field->kind == FIELD_TEXT ? TEXT_BITS_MIN : field->bits;
        if (level->text >= 0 || level->used_bits + need > 64) {
            level = &sorter->levels[sorter->level_count++];
            *level = (struct level){f, f, -1, 0, 0};
        }
        level->end = f + 1;
        if (field->kind == FIELD_TEXT) {
            level->text = f;
            level->text_bytes = (64 - level->used_bits - TEXT_COUNT_BITS) / 8;
        } else {
            level->used_bits += field->bits;
        }
    }
}

enum gar_status gar_sorter_new(const struct gar_sort_column *columns, int64_t count, int64_t rows,
                               struct gar_sorter **out, struct gar_error *err)
{
    if (rows > (int64_t)UINT32_MAX) {
        return gar_error_set(err, GAR_ERR_UNSUPPORTED,
                             "sorting %lld rows at once; at most 4294967295 are possible",
                             (long long)rows);
    }
    struct gar_sorter *sorter = (struct gar_sorter *)gar_calloc(1, (int64_t)sizeof *sorter);
    if (sorter == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *sorter);
    }
    sorter->columns = (struct sort_column *)gar_calloc(count, (int64_t)sizeof *sorter->columns);
    sorter->fields = (struct field *)gar_calloc(2 * count, (int64_t)sizeof *sorter->fields);
    sorter->levels = (struct level *)gar_calloc(2 * count + 1, (int64_t)sizeof *sorter->levels);
    if (sorter->columns == NULL || sorter->fields == NULL || sorter->levels == NULL) {
        gar_sorter_free(sorter);
        return gar_error_nomem(err, count * (int64_t)sizeof *sorter->columns);
    }
    sorter->count = count;
    for (int64_t i = 0; i < count; i++) {
        struct sort_column *c = &sorter->columns[i];
        c->column = columns[i].column;
        c->descending = columns[i].descending;
        c->nulls_first = columns[i].nulls_first;
        look_at_rows(c, rows);
        add_fields(sorter, i);
    }
    pack_levels(sorter);
    *out = sorter;
    return GAR_OK;
}

void gar_sorter_free(struct gar_sorter *sorter)
{
    if (sorter != NULL) {
        gar_free(sorter->columns);
        gar_free(sorter->fields);
        gar_free(sorter->levels);
        gar_free(sorter);
    }
}

/* ---- keys ---- */

/* The code of a row in a fixed column. */
static inline gar_u128 code_at(const struct sort_column *c, int64_t row)
{
    if (is_null(c, row)) {
        return c->nulls_first ? 0 : c->span + 1;
    }
    const gar_u128 v = value_at(c->flat, place_of(c, row)) - c->least;
    return (c->descending ? c->span - v : v) + (c->has_nulls && c->nulls_first ? 1 : 0);
}

/* `bytes` bytes of a row's text from `offset` on, with the count behind them, in the low bits of
 * the result. */
static uint64_t text_bits(const struct sort_column *c, int64_t row, int64_t offset, int32_t bytes)
{
    uint64_t key = 0;
    int64_t left = 0;
    if (!is_null(c, row)) {
        int64_t size = 0;
        const uint8_t *text = gar_column_bytes_at(c->flat, place_of(c, row), &size);
        left = gar_max_i64(size - offset, 0);
        const int64_t n = gar_min_i64(left, bytes);
        for (int64_t i = 0; i < n; i++) {
            key |= (uint64_t)text[offset + i] << (8 * (bytes - 1 - i));
        }
    }
    key = (key << TEXT_COUNT_BITS) | (uint64_t)(left > bytes ? TEXT_GOES_ON : left);
    if (c->descending) {
        const int32_t bits = 8 * bytes + TEXT_COUNT_BITS;
        key = ~key & (~UINT64_C(0) >> (64 - bits));
    }
    return key;
}

/* Does the key of a level or of a text's later part say that the text goes on? */
static bool goes_on(const struct sort_column *c, uint64_t key, int32_t shift)
{
    const uint64_t count = (key >> shift) & ((1u << TEXT_COUNT_BITS) - 1);
    return (c->descending ? count ^ ((1u << TEXT_COUNT_BITS) - 1) : count) == TEXT_GOES_ON;
}

static uint64_t field_bits(const struct gar_sorter *sorter, const struct field *f, int64_t row)
{
    const struct sort_column *c = &sorter->columns[f->column];
    if (f->kind == FIELD_NULL) {
        return is_null(c, row) != c->nulls_first;
    }
    return (uint64_t)(code_at(c, row) >> f->shift);
}

/* Bits below the text of a level. */
static int32_t text_shift(const struct level *level)
{
    return 64 - level->used_bits - TEXT_COUNT_BITS - 8 * level->text_bytes;
}

static uint64_t level_key(const struct gar_sorter *sorter, const struct level *level, int64_t row)
{
    uint64_t key = 0;
    int32_t used = 0;
    for (int64_t f = level->first; f < level->end; f++) {
        const struct field *field = &sorter->fields[f];
        if (f == level->text) {
            key |= text_bits(&sorter->columns[field->column], row, 0, level->text_bytes)
                   << text_shift(level);
        } else if (field->bits > 0) {
            used += field->bits;
            key |= field_bits(sorter, field, row) << (64 - used);
        }
    }
    return key;
}

/* Add one plain 64-bit field of a flat column without nulls to the keys of consecutive rows. */
#define FILL(value_type, to_order)                                              \
    do {                                                                        \
        const value_type *values = (const value_type *)c->flat->values + first; \
        for (int64_t i = 0; i < count; i++) {                                   \
            const uint64_t v = (uint64_t)((to_order(values[i])) - c->least);    \
            out[i].key |= (flip ? (uint64_t)c->span - v : v) << shift;          \
        }                                                                       \
    } while (0)

static bool fill_fast(const struct sort_column *c, int64_t first, int64_t count, int32_t shift,
                      struct gar_sort_entry *out)
{
    if (c->has_nulls || c->column->encoding != GAR_FLAT || bit_length(c->span) > 64) {
        return false;
    }
    const bool flip = c->descending;
    switch ((enum gar_type_id)c->flat->type.id) {
    case GAR_INT32:
    case GAR_DATE: FILL(int32_t, order_i64); return true;
    case GAR_INT64:
    case GAR_TIME:
    case GAR_TIMESTAMP:
    case GAR_DURATION: FILL(int64_t, order_i64); return true;
    case GAR_FLOAT64: FILL(double, order_f64); return true;
    case GAR_DECIMAL128: FILL(gar_i128, order_i128); return true;
    default: return false;
    }
}

/* One step of fill, so short that all its passes are in L1. */
static void fill_step(const struct gar_sorter *sorter, int64_t first, int64_t count,
                      struct gar_sort_entry *out)
{
    const struct level *level = &sorter->levels[0];
    for (int64_t i = 0; i < count; i++) {
        out[i] = (struct gar_sort_entry){0, (uint32_t)(first + i), 0};
    }
    int32_t used = 0;
    for (int64_t f = level->first; f < level->end; f++) {
        const struct field *field = &sorter->fields[f];
        const struct sort_column *c = &sorter->columns[field->column];
        if (f == level->text) {
            for (int64_t i = 0; i < count; i++) {
                out[i].key |= text_bits(c, first + i, 0, level->text_bytes) << text_shift(level);
            }
            continue;
        }
        used += field->bits;
        if (field->kind == FIELD_FIXED && fill_fast(c, first, count, 64 - used, out)) {
            continue;
        }
        for (int64_t i = 0; i < count; i++) {
            out[i].key |= field_bits(sorter, field, first + i) << (64 - used);
        }
    }
}

void gar_sorter_fill(const struct gar_sorter *sorter, int64_t first, int64_t count,
                     struct gar_sort_entry *out)
{
    for (int64_t at = 0; at < count; at += FILL_STEP) {
        fill_step(sorter, first + at, gar_min_i64(count - at, FILL_STEP), out + at);
    }
}

/* ---- comparing ---- */

static int32_t compare_places(const struct sort_column *a, int64_t a_place,
                              const struct sort_column *b, int64_t b_place)
{
    int64_t a_size = 0;
    int64_t b_size = 0;
    const uint8_t *a_text = gar_column_bytes_at(a->flat, a_place, &a_size);
    const uint8_t *b_text = gar_column_bytes_at(b->flat, b_place, &b_size);
    const int32_t order = memcmp(a_text, b_text, (size_t)gar_min_i64(a_size, b_size));
    return order != 0 ? order : (a_size > b_size) - (a_size < b_size);
}

static struct sort_column view_column(struct gar_column *column)
{
    return (struct sort_column){.column = column,
                                .flat = column->encoding == GAR_FLAT ? column : column->dictionary,
                                .is_text = gar_type_is_text(column->type),
                                .has_nulls = column->type.id == GAR_NULL ||
                                             gar_column_null_count(column) > 0};
}

int64_t gar_sort_not_after(const struct gar_sort_column *key, int64_t rows,
                           struct gar_column *bound, int64_t bound_row, uint32_t *out)
{
    const struct sort_column c = view_column(key->column);
    const struct sort_column b = view_column(bound);
    const bool bound_null = is_null(&b, bound_row);
    const gar_u128 limit = value_at(b.flat, place_of(&b, bound_row));
    int64_t n = 0;
    for (int64_t i = 0; i < rows; i++) {
        bool keep = false;
        if (is_null(&c, i) || bound_null) {
            keep = is_null(&c, i) ? key->nulls_first || bound_null : !key->nulls_first;
        } else if (c.is_text) {
            const int32_t order = compare_places(&c, place_of(&c, i), &b, place_of(&b, bound_row));
            keep = key->descending ? order >= 0 : order <= 0;
        } else {
            const gar_u128 v = value_at(c.flat, place_of(&c, i));
            keep = key->descending ? v >= limit : v <= limit;
        }
        out[n] = (uint32_t)i;
        n += keep;
    }
    return n;
}

static int32_t compare_column(const struct sort_column *c, int64_t a, int64_t b)
{
    if (!c->is_text) {
        const gar_u128 x = code_at(c, a);
        const gar_u128 y = code_at(c, b);
        return (x > y) - (x < y);
    }
    const bool a_null = is_null(c, a);
    const bool b_null = is_null(c, b);
    if (a_null || b_null) {
        const int32_t order = (a_null ? 1 : 0) - (b_null ? 1 : 0);
        return c->nulls_first ? -order : order;
    }
    const int32_t order = compare_places(c, place_of(c, a), c, place_of(c, b));
    return c->descending ? (order < 0) - (order > 0) : order;
}

static int32_t compare_from(const struct gar_sorter *sorter, int64_t column, int64_t a, int64_t b)
{
    for (int64_t c = column; c < sorter->count; c++) {
        const int32_t order = compare_column(&sorter->columns[c], a, b);
        if (order != 0) {
            return order;
        }
    }
    return 0;
}

int32_t gar_sorter_compare(const struct gar_sorter *sorter, int64_t a, int64_t b)
{
    return compare_from(sorter, 0, a, b);
}

/* Stable: insertion for runs of 12, then merges. */
static void compare_sort(const struct gar_sorter *sorter, int64_t column,
                         struct gar_sort_entry *entries, struct gar_sort_entry *scratch,
                         int64_t count)
{
    for (int64_t start = 0; start < count; start += SMALL_RUN) {
        const int64_t end = gar_min_i64(start + SMALL_RUN, count);
        for (int64_t i = start + 1; i < end; i++) {
            const struct gar_sort_entry e = entries[i];
            int64_t at = i;
            while (at > start && compare_from(sorter, column, entries[at - 1].row, e.row) > 0) {
                entries[at] = entries[at - 1];
                at--;
            }
            entries[at] = e;
        }
    }
    for (int64_t width = SMALL_RUN; width < count; width *= 2) {
        for (int64_t start = 0; start + width < count; start += 2 * width) {
            const int64_t middle = start + width;
            const int64_t end = gar_min_i64(middle + width, count);
            memcpy(scratch, entries + start, (size_t)width * sizeof *scratch);
            int64_t left = 0;
            int64_t right = middle;
            int64_t out = start;
            while (left < width && right < end) {
                if (compare_from(sorter, column, scratch[left].row, entries[right].row) <= 0) {
                    entries[out++] = scratch[left++];
                } else {
                    entries[out++] = entries[right++];
                }
            }
            memcpy(entries + out, scratch + left, (size_t)(width - left) * sizeof *scratch);
        }
    }
}

/* ---- sorting ---- */

static void sort_level(const struct gar_sorter *sorter, struct gar_sort_entry *entries,
                       struct gar_sort_entry *scratch, int64_t count, int64_t level,
                       int64_t text_offset, int32_t depth);

/* Rows [0, count) are equal in their keys of `level` (from text_offset on, when > 0): sort them by
 * what follows. */
static void sort_tie(const struct gar_sorter *sorter, struct gar_sort_entry *entries,
                     struct gar_sort_entry *scratch, int64_t count, int64_t level,
                     int64_t text_offset, int32_t depth)
{
    const struct level *l = &sorter->levels[level];
    int64_t next_level = level + 1;
    int64_t next_offset = 0;
    int64_t column = 0;
    if (l->text >= 0) {
        const struct sort_column *c = &sorter->columns[sorter->fields[l->text].column];
        if (goes_on(c, entries[0].key, text_offset > 0 ? 0 : text_shift(l))) {
            next_level = level;
            next_offset = text_offset > 0 ? text_offset + TEXT_BYTES : l->text_bytes;
            column = sorter->fields[l->text].column;
        }
    }
    if (next_level >= sorter->level_count) {
        return; /* equal rows */
    }
    if (next_level > level) {
        column = sorter->fields[sorter->levels[next_level].first].column;
    }
    if (count <= SMALL_RUN || depth >= DEPTH_MAX) {
        compare_sort(sorter, column, entries, scratch, count);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        if (next_level > level) {
            entries[i].key = level_key(sorter, &sorter->levels[next_level], entries[i].row);
        } else {
            const struct sort_column *c = &sorter->columns[column];
            entries[i].key = text_bits(c, entries[i].row, next_offset, TEXT_BYTES);
        }
    }
    sort_level(sorter, entries, scratch, count, next_level, next_offset, depth + 1);
}

static void sort_level(const struct gar_sorter *sorter, struct gar_sort_entry *entries,
                       struct gar_sort_entry *scratch, int64_t count, int64_t level,
                       int64_t text_offset, int32_t depth)
{
    gar_radix_sort(entries, scratch, count);
    if (level + 1 >= sorter->level_count && sorter->levels[level].text < 0) {
        return;
    }
    int64_t start = 0;
    while (start < count) {
        int64_t end = start + 1;
        while (end < count && entries[end].key == entries[start].key) {
            end++;
        }
        if (gar_stop_requested()) {
            return;
        }
        if (end - start > 1) {
            sort_tie(sorter, entries + start, scratch + start, end - start, level, text_offset,
                     depth);
        }
        start = end;
    }
}

void gar_sorter_sort(const struct gar_sorter *sorter, struct gar_sort_entry *entries,
                     struct gar_sort_entry *scratch, int64_t count)
{
    sort_level(sorter, entries, scratch, count, 0, 0, 0);
}
