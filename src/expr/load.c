/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions that bring values into registers: columns, tables worked out per dictionary entry, constants. Values of plain
 * columns are read where they lie. */
#include "arrow/gather.h"
#include "base/alloc.h"
#include "expr/eval_priv.h"

/* Bits [offset, offset + n) of a bitmap as words. */
static void load_bits(const uint8_t *bits, int64_t offset, uint64_t *words, int64_t n)
{
    for (int64_t w = 0; w < gar_words(n); w++) {
        words[w] = gar_bits_load(bits, offset + 64 * w, gar_min_i64(64, n - 64 * w));
    }
}

static void load_bits_at(const uint8_t *bits, int64_t offset, const uint32_t *rows, uint64_t *words,
                         int64_t n)
{
    for (int64_t w = 0; w < gar_words(n); w++) {
        uint64_t word = 0;
        const int64_t count = gar_min_i64(64, n - 64 * w);
        for (int64_t k = 0; k < count; k++) {
            word |= (uint64_t)gar_bit_get(bits, offset + rows[64 * w + k]) << k;
        }
        words[w] = word;
    }
}

static void load_validity(const struct gar_eval *eval, const struct gar_column *column,
                          struct gar_reg *out, int64_t n)
{
    if (column->validity == NULL || column->null_count == 0) {
        return;
    }
    if (eval->rows != NULL) {
        load_bits_at(column->validity, column->validity_offset, eval->rows, out->own_valid, n);
    } else {
        load_bits(column->validity, column->validity_offset + eval->base, out->own_valid, n);
    }
    gar_reg_tidy_valid(out, n);
}

/* values[rows[i]] for any fixed width; values has `count` items. */
static void gather_values(const struct gar_eval *eval, int32_t width, const void *values,
                          int64_t count, const uint32_t *rows, void *to, int64_t n)
{
    switch (width) {
    case 1: eval->kernels->gather8(values, rows, to, n); return;
    case 2: eval->kernels->gather16(values, rows, to, n); return;
    case 4: eval->kernels->gather32(values, count, rows, to, n); return;
    case 8: eval->kernels->gather64(values, count, rows, to, n); return;
    default: {
        const gar_i128 *from = values;
        gar_i128 *wide = to;
        for (int64_t i = 0; i < n; i++) {
            wide[i] = from[rows[i]];
        }
    }
    }
}

/* Decimals at rows of values: narrow if they fit, in one pass. */
static void gather_decimals(struct gar_eval *eval, const struct gar_column *flat,
                            const struct gar_narrow *narrow, const uint32_t *rows,
                            struct gar_reg *out, int64_t n)
{
    const gar_i128 *values = flat->values;
    out->values = out->own;
    if (narrow != NULL && narrow->of == flat && narrow->values != NULL) {
        eval->kernels->gather64((const uint64_t *)narrow->values, flat->length, rows, out->own, n);
        out->bound = narrow->bound;
        return;
    }
    const int64_t *halves = (const int64_t *)(const void *)values;
    int64_t *to = out->own;
    uint64_t wide = 0;
    uint64_t bits = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t low = halves[2 * (int64_t)rows[i]];
        const int64_t sign = low >> 63;
        wide |= (uint64_t)(halves[2 * (int64_t)rows[i] + 1] ^ sign);
        bits |= (uint64_t)(low ^ sign);
        to[i] = low;
    }
    if (wide != 0) {
        gather_values(eval, 16, values, flat->length, rows, out->own, n);
        out->is_wide = true;
    }
    out->bound = bits == 0 ? 1 : (UINT64_MAX >> gar_clz64(bits)) + 1;
}

enum gar_status gar_narrow_prepare(const struct gar_eval *eval, struct gar_narrow *narrow,
                                   const struct gar_column *flat, uint64_t id,
                                   struct gar_error *err)
{
    if (narrow->of == flat && narrow->id == id) {
        return GAR_OK;
    }
    gar_free(narrow->values);
    *narrow = (struct gar_narrow){.values = gar_malloc(flat->length * (int64_t)sizeof(int64_t))};
    if (narrow->values == NULL) {
        return gar_error_nomem(err, flat->length * (int64_t)sizeof(int64_t));
    }
    if (!eval->kernels->narrow(flat->values, narrow->values, flat->length, &narrow->bound)) {
        gar_free(narrow->values);
        narrow->values = NULL;
    }
    narrow->of = flat;
    narrow->id = id;
    return GAR_OK;
}

/* Row numbers of this vector within `column`'s own values: codes of a dictionary, or the selection. NULL: base .. */
static const uint32_t *value_rows(struct gar_eval *eval, const struct gar_column *column, int64_t n)
{
    if (column->encoding != GAR_DICTIONARY) {
        return eval->rows;
    }
    const uint32_t *codes = column->values;
    if (eval->rows == NULL) {
        return codes + eval->base;
    }
    eval->kernels->gather32(codes, column->length, eval->rows, eval->code_temp, n);
    return eval->code_temp;
}

/* Row 0 of a one-row column as a constant. */
static void load_single(const struct gar_column *column, struct gar_reg *out)
{
    out->is_const = true;
    out->values = out->own;
    out->data = column->data_pointers;
    memset(out->own, 0, column->type.id == GAR_BOOL || column->type.id == GAR_NULL ? 8 : 16);
    if (column->type.id == GAR_NULL || gar_column_is_null(column, 0)) {
        out->is_null = true;
        out->bound = 0;
        return;
    }
    if (column->type.id == GAR_BOOL) {
        *(uint64_t *)out->own = gar_bit_get(column->values, column->values_offset);
        return;
    }
    if (column->type.id == GAR_DECIMAL128) {
        const gar_i128 v = *(const gar_i128 *)column->values;
        out->is_wide = v != (int64_t)v;
        if (!out->is_wide) {
            const int64_t low = (int64_t)v;
            *(int64_t *)out->own = low;
            out->bound = low < 0 ? 0 - (uint64_t)low : (uint64_t)low;
            return;
        }
    }
    memcpy(out->own, column->values, (size_t)gar_type_width(column->type));
}

enum gar_status gar_run_load(struct gar_eval *eval, const struct gar_instr *instr,
                             struct gar_reg **args, struct gar_reg *out, int64_t n,
                             struct gar_error *err)
{
    (void)args;
    (void)err;
    const struct gar_column *column = eval->columns[instr->node->column];
    if (column->type.id == GAR_NULL) {
        load_single(column->encoding == GAR_CONSTANT ? column->dictionary : column, out);
        return GAR_OK;
    }
    if (column->encoding == GAR_CONSTANT) {
        load_single(column->dictionary, out);
        return GAR_OK;
    }
    load_validity(eval, column, out, n);
    const struct gar_column *flat =
        column->encoding == GAR_DICTIONARY ? column->dictionary : column;
    const uint32_t *rows = value_rows(eval, column, n);
    out->data = flat->data_pointers;
    out->values = out->own;
    const int32_t width = gar_type_width(flat->type);
    if (flat->type.id == GAR_BOOL) {
        if (rows != NULL) {
            load_bits_at(flat->values, flat->values_offset, rows, out->own, n);
        } else {
            load_bits(flat->values, flat->values_offset + eval->base, out->own, n);
        }
    } else if (flat->type.id == GAR_DECIMAL128) {
        const gar_i128 *values = flat->values;
        if (rows != NULL) {
            const bool is_coded = column->encoding == GAR_DICTIONARY && instr->used >= 0;
            const struct gar_narrow *narrow = is_coded ? &eval->uses[instr->used].narrow : NULL;
            /* Of a dictionary that is not worked on the copy may be an older one's, even at the same address. */
            const bool is_fresh = narrow != NULL && narrow->id == column->dictionary_id;
            gather_decimals(eval, flat, is_fresh ? narrow : NULL, rows, out, n);
        } else if (!eval->kernels->narrow(values + eval->base, out->own, n, &out->bound)) {
            out->values = values + eval->base;
            out->is_wide = true;
        }
    } else if (rows != NULL) {
        gather_values(eval, width, flat->values, flat->length, rows, out->own, n);
    } else {
        out->values = (const uint8_t *)flat->values + eval->base * width;
    }
    return GAR_OK;
}

enum gar_status gar_run_const(struct gar_eval *eval, const struct gar_instr *instr,
                              struct gar_reg **args, struct gar_reg *out, int64_t n,
                              struct gar_error *err)
{
    (void)args;
    (void)n;
    (void)eval;
    (void)err;
    const struct gar_value *value = instr->node->value;
    const struct gar_type type = instr->node->type;
    out->values = out->own;
    out->is_const = true;
    out->is_null = !value->is_valid;
    memset(out->own, 0, type.id == GAR_BOOL || type.id == GAR_NULL ? 8 : 16);
    if (!value->is_valid) {
        out->bound = 0;
        return GAR_OK;
    }
    if (type.id == GAR_BOOL) {
        *(uint64_t *)out->own = value->boolean;
    } else if (type.id == GAR_FLOAT32) {
        *(float *)out->own = (float)value->f64;
    } else if (type.id == GAR_DECIMAL128) {
        out->is_wide = value->i128 != (int64_t)value->i128;
        if (out->is_wide) {
            *(gar_i128 *)out->own = value->i128;
        } else {
            const int64_t low = (int64_t)value->i128;
            *(int64_t *)out->own = low;
            out->bound = low < 0 ? 0 - (uint64_t)low : (uint64_t)low;
        }
    } else if (gar_type_is_text(type)) {
        /* a far view points at the literal itself: buffer 0 of a table of one */
        const uint8_t **table = instr->state;
        *(struct gar_string_view *)out->own =
            gar_view_make(table[0], (int32_t)value->text.size, 0, 0);
        out->data = table;
    } else {
        memcpy(out->own, &value->i64,
               (size_t)gar_type_width(type)); /* little-endian: the low bytes come first */
    }
    return GAR_OK;
}

/* --- tables per dictionary entry --- */

/* One byte per entry: true and not null; then one per entry: not null. */
static enum gar_status make_flags(struct gar_hoist *hoist, struct gar_error *err)
{
    const struct gar_column *table = hoist->table;
    gar_free(hoist->flags);
    hoist->flags = gar_malloc(2 * table->length);
    if (hoist->flags == NULL) {
        return gar_error_nomem(err, 2 * table->length);
    }
    for (int64_t i = 0; i < table->length; i++) {
        const bool is_valid = !gar_column_is_null(table, i);
        hoist->flags[i] = is_valid && gar_bit_get(table->values, table->values_offset + i);
        hoist->flags[table->length + i] = is_valid;
    }
    return GAR_OK;
}

/* If the result for a null of the column is a value, it becomes one more entry of the table. */
static enum gar_status add_null_entry(struct gar_eval *eval, struct gar_hoist *hoist,
                                      struct gar_column **columns, struct gar_type type,
                                      struct gar_error *err)
{
    struct gar_column *null = NULL;
    GAR_TRY(gar_column_new_null(eval->memory, type, 1, &null, err));
    columns[hoist->column] = null;
    struct gar_column *result = NULL;
    enum gar_status status = gar_variant_run(eval, hoist->variant, columns, NULL, 1, &result, err);
    gar_column_unref(null);
    GAR_TRY(status);
    hoist->has_null_entry = !gar_column_is_null(result, 0);
    if (hoist->has_null_entry) {
        struct gar_column *both[2] = {hoist->table, result};
        struct gar_column *joined = NULL;
        status = gar_column_concat(both, 2, result->type, eval->memory, &joined, err);
        if (status >= 0) {
            gar_column_unref(hoist->table);
            hoist->table = joined;
        }
    }
    gar_column_unref(result);
    return status;
}

static enum gar_status work_out_table(struct gar_eval *eval, struct gar_hoist *hoist,
                                      struct gar_column **columns, const struct gar_column *column,
                                      struct gar_error *err)
{
    if (hoist->variant == NULL) {
        const struct gar_bound *roots[1] = {hoist->node};
        GAR_TRY(gar_variant_new(eval, roots, 1, 0, &hoist->variant, err));
    }
    struct gar_column *dictionary = column->dictionary;
    columns[hoist->column] = dictionary;
    struct gar_column *table = NULL;
    GAR_TRY(gar_variant_run(eval, hoist->variant, columns, NULL, dictionary->length, &table, err));
    gar_column_unref(hoist->table);
    hoist->table = table;
    GAR_TRY(add_null_entry(eval, hoist, columns, column->type, err));
    hoist->table_id = gar_dictionary_next_id();
    if (hoist->table->type.id == GAR_DECIMAL128) {
        GAR_TRY(gar_narrow_prepare(eval, &hoist->narrow, hoist->table, hoist->table_id, err));
    }
    return hoist->table->type.id == GAR_BOOL ? make_flags(hoist, err) : GAR_OK;
}

enum gar_status gar_hoist_prepare(struct gar_eval *eval, struct gar_hoist *hoist,
                                  const struct gar_column *column, bool *out_done,
                                  struct gar_error *err)
{
    *out_done = true;
    if (hoist->dictionary_id == column->dictionary_id && hoist->table != NULL) {
        return GAR_OK;
    }
    *out_done = false;
    if (hoist->failed_id == column->dictionary_id) {
        return GAR_OK;
    }
    const int64_t count =
        eval->program->schema == NULL ? hoist->column + 1 : eval->program->schema->count;
    struct gar_column **columns = gar_calloc(count, (int64_t)sizeof(struct gar_column *));
    if (columns == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof(struct gar_column *));
    }
    hoist->dictionary_id = 0;
    struct gar_error ignored;
    const enum gar_status status = work_out_table(eval, hoist, columns, column, &ignored);
    gar_free(columns);
    if (status == GAR_ERR_NOMEM) {
        return gar_error_set(err, GAR_ERR_NOMEM, "%s", ignored.message);
    }
    if (status < 0) {
        hoist->failed_id = column->dictionary_id; /* perhaps an entry that no row uses */
        return GAR_OK;
    }
    hoist->dictionary_id = column->dictionary_id;
    *out_done = true;
    return GAR_OK;
}

/* Codes of this vector; nulls get the code behind the last entry, if the result for null is a value. */
static const uint32_t *hoist_codes(struct gar_eval *eval, const struct gar_hoist *hoist,
                                   const struct gar_column *column, const struct gar_reg *nulls,
                                   int64_t n)
{
    const uint32_t *codes = value_rows(eval, column, n);
    if (nulls->valid == NULL || !hoist->has_null_entry) {
        return codes;
    }
    const uint32_t null_code = (uint32_t)(hoist->table->length - 1);
    for (int64_t i = 0; i < n; i++) {
        eval->code_temp[i] = gar_word_bit(nulls->valid, i) ? codes[i] : null_code;
    }
    return eval->code_temp;
}

static void load_table_bits(struct gar_eval *eval, const struct gar_hoist *hoist,
                            const uint32_t *codes, struct gar_reg *out, int64_t n)
{
    const int64_t entries = hoist->table->length;
    eval->kernels->gather_bits(hoist->flags, entries, codes, out->own, n);
    uint64_t *words = out->own;
    if (gar_column_null_count(hoist->table) != 0) {
        uint64_t valid[GAR_VECTOR_WORDS];
        eval->kernels->gather_bits(hoist->flags + entries, entries, codes, valid, n);
        if (out->valid == NULL) {
            gar_reg_own_valid(out, n);
        }
        for (int64_t w = 0; w < gar_words(n); w++) {
            out->own_valid[w] &= valid[w];
        }
    }
    if (out->valid != NULL) {
        for (int64_t w = 0; w < gar_words(n); w++) {
            words[w] &= out->valid[w];
        }
        gar_reg_tidy_valid(out, n);
    }
}

enum gar_status gar_run_hoisted(struct gar_eval *eval, const struct gar_instr *instr,
                                struct gar_reg **args, struct gar_reg *out, int64_t n,
                                struct gar_error *err)
{
    (void)args;
    (void)err;
    const struct gar_hoist *hoist = instr->hoist;
    const struct gar_column *column = eval->columns[hoist->column];
    const struct gar_column *table = hoist->table;
    load_validity(eval, column, out, n);
    out->values = out->own;
    const uint32_t *codes = hoist_codes(eval, hoist, column, out, n);
    if (hoist->has_null_entry) {
        out->valid = NULL; /* nulls have an entry of their own */
    }
    if (table->type.id == GAR_BOOL) {
        load_table_bits(eval, hoist, codes, out, n);
        return GAR_OK;
    }
    if (table->type.id == GAR_DECIMAL128) {
        gather_decimals(eval, table, &hoist->narrow, codes, out, n);
    } else {
        gather_values(eval, gar_type_width(table->type), table->values, table->length, codes,
                      out->own, n);
        out->data = table->data_pointers;
    }
    if (gar_column_null_count(table) != 0) {
        uint64_t valid[GAR_VECTOR_WORDS];
        load_bits_at(table->validity, table->validity_offset, codes, valid, n);
        if (out->valid == NULL) {
            gar_reg_own_valid(out, n);
        }
        for (int64_t w = 0; w < gar_words(n); w++) {
            out->own_valid[w] &= valid[w];
        }
        gar_reg_tidy_valid(out, n);
    }
    return GAR_OK;
}
