/* SPDX-License-Identifier: Apache-2.0 */
/* Key rows: encoding and hashing, column by column over short vectors. */
#include "kernels/hash_rows.h"

#include "base/alloc.h"
#include "base/hash.h"

enum { KEYS_MAX = 4096, NULLS_PER_WORD = 32 };

static uint32_t hash_mask = UINT32_MAX; /* constant but for tests */

void gar_key_set_hash_mask(uint32_t mask)
{
    hash_mask = mask;
}

bool gar_key_is_word(struct gar_type type)
{
    if (type.id == GAR_DECIMAL128) {
        return type.precision <= GAR_DECIMAL64_PRECISION_MAX;
    }
    return type.id != GAR_NULL && !gar_type_is_text(type);
}

uint32_t gar_key_hash_word(uint64_t word)
{
    return (uint32_t)(gar_hash_u64(word) >> 32) & hash_mask;
}

enum gar_status gar_key_layout_init(struct gar_key_layout *layout, const struct gar_type *types,
                                    int64_t count, struct gar_error *err)
{
    memset(layout, 0, sizeof *layout);
    if (count > KEYS_MAX) {
        return gar_error_set(err, GAR_ERR_UNSUPPORTED, "%lld keys; at most %d are possible",
                             (long long)count, (int)KEYS_MAX);
    }
    layout->columns = (struct gar_key_column *)gar_calloc(count, (int64_t)sizeof *layout->columns);
    if (layout->columns == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *layout->columns);
    }
    layout->count = count;
    layout->null_words = (int32_t)gar_max_i64(1, (count + NULLS_PER_WORD - 1) / NULLS_PER_WORD);
    layout->words = layout->null_words;
    for (int64_t i = 0; i < count; i++) {
        struct gar_key_column *c = &layout->columns[i];
        c->type = types[i];
        c->word = layout->words;
        c->is_text = gar_type_is_text(types[i]);
        c->words = types[i].id == GAR_NULL ? 0 : gar_key_is_word(types[i]) ? 1 : 2;
        layout->words += c->words;
        layout->text_count += c->is_text;
    }
    return GAR_OK;
}

void gar_key_layout_destroy(struct gar_key_layout *layout)
{
    gar_free(layout->columns);
    memset(layout, 0, sizeof *layout);
}

static uint64_t canonical_f64(double v)
{
    uint64_t bits = UINT64_C(0x7ff8000000000000);
    if (v == v) {
        v += 0.0; /* -0.0 becomes 0.0 */
        memcpy(&bits, &v, sizeof bits);
    }
    return bits;
}

static uint64_t canonical_f32(float v)
{
    uint32_t bits = UINT32_C(0x7fc00000);
    if (v == v) {
        v += 0.0f;
        memcpy(&bits, &v, sizeof bits);
    }
    return bits;
}

/* out[i * stride] = f(values[place of i]). codes NULL: places are first, first + 1, ...; else
 * codes[i], step 0 or 1. */
#define LOAD(value_type, convert)                                 \
    do {                                                          \
        const value_type *from = (const value_type *)values;      \
        if (codes == NULL) {                                      \
            from += first;                                        \
            for (int64_t i = 0; i < count; i++) {                 \
                out[i * stride] = convert(from[i]);               \
            }                                                     \
        } else {                                                  \
            for (int64_t i = 0; i < count; i++) {                 \
                out[i * stride] = convert(from[codes[i * step]]); \
            }                                                     \
        }                                                         \
    } while (0)

#define AS_WORD(v) ((uint64_t)(v))

/* Words of a column of one word; codes as in LOAD. */
static void load_words(const struct gar_column *flat, const uint32_t *codes, int64_t step,
                       int64_t first, int64_t count, uint64_t *out, int64_t stride)
{
    const void *values = flat->values;
    switch ((enum gar_type_id)flat->type.id) {
    case GAR_BOOL:
        for (int64_t i = 0; i < count; i++) {
            const int64_t place = codes != NULL ? (int64_t)codes[i * step] : first + i;
            out[i * stride] = gar_bit_get((const uint8_t *)values, flat->values_offset + place);
        }
        break;
    case GAR_FLOAT32: LOAD(float, canonical_f32); break;
    case GAR_FLOAT64: LOAD(double, canonical_f64); break;
    case GAR_DECIMAL128: LOAD(gar_i128, AS_WORD); break;
    case GAR_UINT8: LOAD(uint8_t, AS_WORD); break;
    case GAR_UINT16: LOAD(uint16_t, AS_WORD); break;
    case GAR_UINT32: LOAD(uint32_t, AS_WORD); break;
    case GAR_INT8: LOAD(int8_t, AS_WORD); break;
    case GAR_INT16: LOAD(int16_t, AS_WORD); break;
    case GAR_INT32:
    case GAR_DATE: LOAD(int32_t, AS_WORD); break;
    case GAR_NULL:
    case GAR_INT64:
    case GAR_UINT64:
    case GAR_STRING:
    case GAR_BINARY:
    case GAR_TIME:
    case GAR_TIMESTAMP:
    case GAR_DURATION:
    case GAR_LIST:
    case GAR_FIXED_LIST:
    case GAR_STRUCT:
    case GAR_MAP:
    case GAR_TYPE_ID_COUNT: LOAD(uint64_t, AS_WORD); break;
    }
}

static void load_decimals(const struct gar_column *flat, const uint32_t *codes, int64_t step,
                          int64_t first, int64_t count, uint64_t *out, int64_t stride)
{
    const gar_i128 *values = (const gar_i128 *)flat->values;
    for (int64_t i = 0; i < count; i++) {
        const gar_i128 v = values[codes != NULL ? (int64_t)codes[i * step] : first + i];
        out[i * stride] = (uint64_t)v;
        out[i * stride + 1] = (uint64_t)(v >> 64);
    }
}

static void load_texts(const struct gar_column *flat, const uint32_t *codes, int64_t step,
                       int64_t first, int64_t count, uint64_t *out, int64_t stride)
{
    const struct gar_string_view *views = (const struct gar_string_view *)flat->values;
    for (int64_t i = 0; i < count; i++) {
        const struct gar_string_view *v =
            &views[codes != NULL ? (int64_t)codes[i * step] : first + i];
        uint64_t words[2];
        memcpy(words, v, sizeof words);
        out[i * stride] = words[0];
        out[i * stride + 1] = v->size <= GAR_VIEW_INLINE_BYTES
                                  ? words[1]
                                  : (uint64_t)(uintptr_t)gar_view_bytes(v, flat->data_pointers);
    }
}

/* Where the values of a column's rows lie. */
static const struct gar_column *places_of(const struct gar_column *column, int64_t first,
                                          const uint32_t **out_codes, int64_t *out_step)
{
    static const uint32_t zero[1] = {0};
    *out_step = 1;
    *out_codes = NULL;
    if (column->encoding == GAR_FLAT) {
        return column;
    }
    if (column->encoding == GAR_CONSTANT) {
        *out_codes = zero;
        *out_step = 0;
    } else {
        *out_codes = (const uint32_t *)column->values + first;
    }
    return column->dictionary;
}

static void load_column(const struct gar_column *column, int64_t first, int64_t count,
                        const struct gar_key_column *key, uint64_t *out, int64_t stride)
{
    const uint32_t *codes = NULL;
    int64_t step = 0;
    const struct gar_column *flat = places_of(column, first, &codes, &step);
    if (key->is_text) {
        load_texts(flat, codes, step, first, count, out, stride);
    } else if (key->words == 2) {
        load_decimals(flat, codes, step, first, count, out, stride);
    } else {
        load_words(flat, codes, step, first, count, out, stride);
    }
}

/* Calls out[row] for each null of the rows: clears `words` words and sets the null bit. */
static void clear_nulls(const struct gar_column *column, int64_t first, int64_t count,
                        int64_t index, const struct gar_key_column *key, uint64_t *rows,
                        int64_t stride)
{
    const uint64_t bit = UINT64_C(1) << (index % NULLS_PER_WORD);
    const bool all = column->type.id == GAR_NULL || (column->encoding == GAR_CONSTANT &&
                                                     gar_column_is_null(column->dictionary, 0));
    if (!all && (column->encoding == GAR_CONSTANT || column->validity == NULL)) {
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        if (all || !gar_bit_get(column->validity, column->validity_offset + first + i)) {
            uint64_t *row = rows + i * stride;
            row[index / NULLS_PER_WORD] |= bit;
            for (int32_t w = 0; w < key->words; w++) {
                row[key->word + w] = 0;
            }
        }
    }
}

/* Two words into one: the halves of their product, after Wang Yi's wyhash. */
static inline uint64_t fold(uint64_t a, uint64_t b)
{
    const gar_u128 product =
        (gar_u128)(a ^ UINT64_C(0x9e3779b97f4a7c15)) * (gar_u128)(b ^ UINT64_C(0xd6e8feb86659fd93));
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static void hash_column(const struct gar_key_column *key, const uint64_t *rows, int64_t stride,
                        int64_t count, uint64_t *hashes)
{
    if (key->words == 1) {
        for (int64_t i = 0; i < count; i++) {
            hashes[i] = fold(hashes[i], rows[i * stride + key->word]);
        }
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const uint64_t *word = &rows[i * stride + key->word];
        uint64_t second = word[1];
        if (key->is_text && gar_key_text_size(word[0]) > GAR_VIEW_INLINE_BYTES) {
            second = gar_hash_bytes(gar_key_far(word[1]), gar_key_text_size(word[0]));
        }
        hashes[i] = fold(hashes[i] + word[0], second);
    }
}

void gar_key_encode(const struct gar_key_layout *layout, struct gar_column *const *columns,
                    int64_t first, int64_t count, uint64_t *rows)
{
    const int64_t stride = layout->words;
    uint64_t hashes[GAR_KEY_ROWS];
    for (int64_t i = 0; i < count; i++) {
        for (int32_t w = 0; w < layout->null_words; w++) {
            rows[i * stride + w] = 0;
        }
    }
    for (int64_t c = 0; c < layout->count; c++) {
        const struct gar_key_column *key = &layout->columns[c];
        if (key->words > 0) {
            load_column(columns[c], first, count, key, rows + key->word, stride);
        }
        clear_nulls(columns[c], first, count, c, key, rows, stride);
    }
    for (int64_t i = 0; i < count; i++) {
        hashes[i] = rows[i * stride];
        for (int32_t w = 1; w < layout->null_words; w++) {
            hashes[i] = fold(hashes[i], rows[i * stride + w]);
        }
    }
    for (int64_t c = 0; c < layout->count; c++) {
        if (layout->columns[c].words > 0) {
            hash_column(&layout->columns[c], rows, stride, count, hashes);
        }
    }
    for (int64_t i = 0; i < count; i++) {
        rows[i * stride] |= (uint64_t)((uint32_t)(gar_hash_u64(hashes[i]) >> 32) & hash_mask) << 32;
    }
}

void gar_key_load_words(const struct gar_column *column, int64_t first, int64_t count,
                        uint64_t *out)
{
    const uint32_t *codes = NULL;
    int64_t step = 0;
    const struct gar_column *flat = places_of(column, first, &codes, &step);
    load_words(flat, codes, step, first, count, out, 1);
    if (column->encoding != GAR_CONSTANT && column->validity != NULL) {
        for (int64_t i = 0; i < count; i++) {
            if (!gar_bit_get(column->validity, column->validity_offset + first + i)) {
                out[i] = 0;
            }
        }
    } else if (column->encoding == GAR_CONSTANT && gar_column_is_null(column->dictionary, 0)) {
        memset(out, 0, (size_t)count * sizeof *out);
    }
}

void gar_key_store_word(struct gar_column *column, int64_t i, uint64_t word)
{
    uint8_t *values = (uint8_t *)gar_column_values_mut(column);
    const int32_t width = gar_type_width(column->type);
    if (width == 0) {
        gar_bit_put(values, i, word != 0);
    } else if (width == 16) {
        ((gar_i128 *)(void *)values)[i] = (int64_t)word;
    } else {
        memcpy(values + i * width, &word, (size_t)width); /* little-endian: the low bytes */
    }
}

void gar_key_hashes(const struct gar_key_layout *layout, struct gar_column *const *columns,
                    int64_t first, int64_t count, uint64_t *scratch, uint32_t *out)
{
    const bool is_word = layout->count == 1 && gar_key_is_word(layout->columns[0].type);
    const bool has_nulls = is_word && gar_column_null_count(columns[0]) > 0;
    for (int64_t at = 0; at < count; at += GAR_KEY_ROWS) {
        const int64_t n = gar_min_i64(count - at, GAR_KEY_ROWS);
        if (!is_word) {
            gar_key_encode(layout, columns, first + at, n, scratch);
            for (int64_t i = 0; i < n; i++) {
                out[at + i] = gar_key_hash(scratch + i * layout->words);
            }
            continue;
        }
        gar_key_load_words(columns[0], first + at, n, scratch);
        for (int64_t i = 0; i < n; i++) {
            out[at + i] = gar_key_hash_word(scratch[i]);
        }
        for (int64_t i = 0; has_nulls && i < n; i++) {
            if (gar_column_is_null(columns[0], first + at + i)) {
                out[at + i] = 0;
            }
        }
    }
}
