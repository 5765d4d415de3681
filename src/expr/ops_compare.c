/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of comparison: six operators over every type, null-safe equality, least and greatest, membership. */
#include <math.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "expr/eval_priv.h"

static bool holds(enum gar_op op, int32_t order)
{
    switch (op) {
    case GAR_OP_NE: return order != 0;
    case GAR_OP_LT: return order < 0;
    case GAR_OP_LE: return order <= 0;
    case GAR_OP_GT: return order > 0;
    case GAR_OP_GE: return order >= 0;
    default: return order == 0;
    }
}

/* The operator with its sides swapped. */
static enum gar_op swapped(enum gar_op op)
{
    switch (op) {
    case GAR_OP_LT: return GAR_OP_GT;
    case GAR_OP_LE: return GAR_OP_GE;
    case GAR_OP_GT: return GAR_OP_LT;
    case GAR_OP_GE: return GAR_OP_LE;
    default: return op;
    }
}

static enum gar_compare compare_of(enum gar_op op)
{
    switch (op) {
    case GAR_OP_LT: return GAR_COMPARE_LT;
    case GAR_OP_LE: return GAR_COMPARE_LE;
    case GAR_OP_GT: return GAR_COMPARE_GT;
    case GAR_OP_GE: return GAR_COMPARE_GE;
    default: return GAR_COMPARE_EQ;
    }
}

static void invert(uint64_t *bits, int64_t n)
{
    for (int64_t w = 0; w < gar_words(n); w++) {
        bits[w] = ~bits[w] & gar_word_mask(n, w);
    }
}

static void compare_lanes(const struct gar_eval *eval, enum gar_op op, enum gar_lane lane,
                          const struct gar_reg *a, const struct gar_reg *b, uint64_t *bits,
                          int64_t n)
{
    if (a->is_const && !b->is_const) {
        const struct gar_reg *other = a;
        a = b;
        b = other;
        op = swapped(op);
    }
    const bool is_vector = !b->is_const;
    if (is_vector && (op == GAR_OP_GT || op == GAR_OP_GE)) {
        const struct gar_reg *other = a;
        a = b;
        b = other;
        op = swapped(op);
    }
    const gar_compare_fn kernel =
        eval->kernels->compare[compare_of(op)][lane][is_vector ? GAR_SHAPE_VV : GAR_SHAPE_VS];
    kernel(a->values, b->values, bits, n);
    if (op == GAR_OP_NE) {
        invert(bits, n);
    }
}

static void compare_bools(enum gar_op op, const struct gar_reg *a, const struct gar_reg *b,
                          uint64_t *bits, int64_t n)
{
    for (int64_t w = 0; w < gar_words(n); w++) {
        const uint64_t x = gar_bool_word(a, w);
        const uint64_t y = gar_bool_word(b, w);
        uint64_t word = ~(x ^ y);
        switch (op) {
        case GAR_OP_NE: word = x ^ y; break;
        case GAR_OP_LT: word = ~x & y; break;
        case GAR_OP_LE: word = ~x | y; break;
        case GAR_OP_GT: word = x & ~y; break;
        case GAR_OP_GE: word = x | ~y; break;
        default: break;
        }
        bits[w] = word & gar_word_mask(n, w);
    }
}

static int32_t order_of(gar_i128 a, gar_i128 b)
{
    return (a > b) - (a < b);
}

/* Order of a * 10^by and b, by >= 0. A product beyond 128 bits is beyond every b. */
static int32_t order_scaled(gar_i128 a, int32_t by, gar_i128 b)
{
    gar_i128 scaled = 0;
    if (__builtin_mul_overflow(a, gar_pow10_i128(by), &scaled)) {
        return a < 0 ? -1 : 1;
    }
    return order_of(scaled, b);
}

static void compare_decimals(struct gar_eval *eval, enum gar_op op, const struct gar_reg *a,
                             int32_t a_scale, const struct gar_reg *b, int32_t b_scale,
                             uint64_t *bits, int64_t n)
{
    if (a_scale == b_scale && !a->is_wide && !b->is_wide) {
        compare_lanes(eval, op, GAR_LANE_I64, a, b, bits, n);
        return;
    }
    const gar_i128 *x = gar_reg_wide(eval, a, n, 0);
    const gar_i128 *y = gar_reg_wide(eval, b, n, 1);
    for (int64_t w = 0; w < gar_words(n); w++) {
        uint64_t word = 0;
        const int64_t count = gar_min_i64(64, n - 64 * w);
        for (int64_t k = 0; k < count; k++) {
            const gar_i128 v = x[gar_reg_at(a, 64 * w + k)];
            const gar_i128 u = y[gar_reg_at(b, 64 * w + k)];
            const int32_t order = a_scale == b_scale  ? order_of(v, u)
                                  : a_scale < b_scale ? order_scaled(v, b_scale - a_scale, u)
                                                      : -order_scaled(u, a_scale - b_scale, v);
            word |= (uint64_t)holds(op, order) << k;
        }
        bits[w] = word;
    }
}

static void compare_texts(const struct gar_eval *eval, enum gar_op op, const struct gar_reg *a,
                          const struct gar_reg *b, uint64_t *bits, int64_t n)
{
    const struct gar_string_view *x = a->values;
    const struct gar_string_view *y = b->values;
    const bool is_equality = op == GAR_OP_EQ || op == GAR_OP_NE || op == GAR_OP_EQ_SAFE;
    const struct gar_string_view *one = b->is_const ? y : x;
    const struct gar_string_view *many = b->is_const ? x : y;
    if (is_equality && a->is_const != b->is_const && one->size <= GAR_VIEW_INLINE_BYTES) {
        uint64_t want[2]; /* a short text is the whole view */
        memcpy(want, one, sizeof want);
        eval->kernels->equal_pairs((const uint64_t *)(const void *)many, want[0], UINT64_MAX,
                                   want[1], UINT64_MAX, bits, n);
    } else {
        for (int64_t w = 0; w < gar_words(n); w++) {
            uint64_t word = 0;
            const int64_t count = gar_min_i64(64, n - 64 * w);
            for (int64_t k = 0; k < count; k++) {
                const struct gar_string_view *v = &x[gar_reg_at(a, 64 * w + k)];
                const struct gar_string_view *u = &y[gar_reg_at(b, 64 * w + k)];
                const bool truth = is_equality
                                       ? gar_text_equal(v, a->data, u, b->data)
                                       : holds(op, gar_text_compare(v, a->data, u, b->data));
                word |= (uint64_t)truth << k;
            }
            bits[w] = word;
        }
    }
    if (op == GAR_OP_NE) {
        invert(bits, n);
    }
}

static void compare(struct gar_eval *eval, enum gar_op op, struct gar_type a_type,
                    const struct gar_reg *a, struct gar_type b_type, const struct gar_reg *b,
                    uint64_t *bits, int64_t n)
{
    const enum gar_lane lane = gar_type_lane(a_type);
    if (lane != GAR_LANE_COUNT) {
        compare_lanes(eval, op, lane, a, b, bits, n);
    } else if (a_type.id == GAR_BOOL) {
        compare_bools(op, a, b, bits, n);
    } else if (a_type.id == GAR_DECIMAL128) {
        compare_decimals(eval, op, a, a_type.scale, b, b_type.scale, bits, n);
    } else if (gar_type_is_text(a_type)) {
        compare_texts(eval, op, a, b, bits, n);
    } else {
        memset(bits, 0, (size_t)gar_words(n) * 8);
    }
}

static enum gar_status run_compare(struct gar_eval *eval, const struct gar_instr *instr,
                                   struct gar_reg **args, struct gar_reg *out, int64_t n,
                                   struct gar_error *err)
{
    (void)err;
    struct gar_bound *const *nodes = instr->node->args;
    compare(eval, instr->node->op, nodes[0]->type, args[0], nodes[1]->type, args[1], out->dest, n);
    return GAR_OK;
}

static enum gar_status run_equal_safe(struct gar_eval *eval, const struct gar_instr *instr,
                                      struct gar_reg **args, struct gar_reg *out, int64_t n,
                                      struct gar_error *err)
{
    GAR_TRY(run_compare(eval, instr, args, out, n, err));
    uint64_t *words = out->dest;
    for (int64_t w = 0; w < gar_words(n); w++) {
        const uint64_t a = gar_valid_word(args[0], w);
        const uint64_t b = gar_valid_word(args[1], w);
        words[w] = ((words[w] & a & b) | (~a & ~b)) & gar_word_mask(n, w);
    }
    return GAR_OK;
}

/* --- least, greatest --- */

/* Floats: does a win over b? NaN never wins over a number. */
#define FLOAT_WINS(type)                                            \
    for (int64_t i = 0; i < n; i++) {                               \
        const type x = ((const type *)a->values)[gar_reg_at(a, i)]; \
        const type y = ((const type *)b->values)[gar_reg_at(b, i)]; \
        const bool truth = isnan(y) || (is_least ? x < y : x > y);  \
        bits[i >> 6] |= (uint64_t)(truth && !isnan(x)) << (i & 63); \
    }

static enum gar_status run_extreme(struct gar_eval *eval, const struct gar_instr *instr,
                                   struct gar_reg **args, struct gar_reg *out, int64_t n,
                                   struct gar_error *err)
{
    const struct gar_reg *a = args[0];
    const struct gar_reg *b = args[1];
    const struct gar_type type = instr->node->type;
    const bool is_least = instr->node->op == GAR_OP_LEAST;
    uint64_t bits[GAR_VECTOR_WORDS] = {0};
    if (type.id == GAR_FLOAT64) {
        FLOAT_WINS(double)
    } else if (type.id == GAR_FLOAT32) {
        FLOAT_WINS(float)
    } else {
        compare(eval, is_least ? GAR_OP_LT : GAR_OP_GT, type, a, type, b, bits, n);
    }
    uint64_t take[2][GAR_VECTOR_WORDS];
    for (int64_t w = 0; w < gar_words(n); w++) {
        const uint64_t a_valid = gar_valid_word(a, w);
        const uint64_t b_valid = gar_valid_word(b, w);
        take[0][w] = a_valid & (bits[w] | ~b_valid) & gar_word_mask(n, w);
        take[1][w] = b_valid & ~take[0][w] & gar_word_mask(n, w);
    }
    gar_choice_start(instr, out, a->is_wide || b->is_wide, n);
    GAR_TRY(gar_choice_take(eval, instr, a, take[0], out, n, err));
    GAR_TRY(gar_choice_take(eval, instr, b, take[1], out, n, err));
    gar_choice_finish(instr, out, n);
    return GAR_OK;
}

/* --- membership --- */

/* Sets of at most this many values are compared one by one, a vector each. */
#define SMALL_SET_MAX 6

/* Open addressing over the set's rows; slot = row + 1, 0 is free. */
struct set {
    const struct gar_column *column; /* FLAT, no nulls; owned by the program */
    int64_t mask;
    uint32_t *slots; /* owned; NULL for small sets */
};

static void free_set(void *state)
{
    struct set *set = state;
    if (set != NULL) {
        gar_free(set->slots);
        gar_free(set);
    }
}

/* Value at row i of a fixed-width column or register as one integer; floats by bits, -0.0 as 0.0. */
static gar_i128 key_of(struct gar_type type, const void *values, bool is_wide, int64_t i)
{
    switch ((enum gar_type_id)type.id) {
    case GAR_FLOAT64: {
        const double v = ((const double *)values)[i];
        const double plain = v == 0 ? 0.0 : v;
        return (int64_t)gar_load_u64(&plain);
    }
    case GAR_FLOAT32: {
        const float v = ((const float *)values)[i];
        const float plain = v == 0 ? 0.0F : v;
        return (int64_t)gar_load_u32(&plain);
    }
    case GAR_DECIMAL128:
        return is_wide ? ((const gar_i128 *)values)[i] : ((const int64_t *)values)[i];
    default: {
        int64_t v = 0; /* the same bytes are the same value */
        memcpy(&v, (const uint8_t *)values + i * gar_type_width(type),
               (size_t)gar_type_width(type));
        return v;
    }
    }
}

static uint64_t hash_key(gar_i128 key)
{
    return gar_hash_u64((uint64_t)key ^ ((uint64_t)(key >> 64) * UINT64_C(0x9e3779b97f4a7c15)));
}

static bool row_is_nan(struct gar_type type, const void *values, int64_t i)
{
    if (type.id == GAR_FLOAT64) {
        return isnan(((const double *)values)[i]);
    }
    return type.id == GAR_FLOAT32 && isnan(((const float *)values)[i]);
}

static uint64_t hash_text(const struct gar_string_view *view, const uint8_t *const *data)
{
    if (view->size > GAR_VIEW_INLINE_BYTES) {
        return gar_hash_bytes(gar_view_bytes(view, data), view->size);
    }
    uint64_t words[2];
    memcpy(words, view, sizeof words);
    return gar_hash_u64(words[0] ^ (words[1] * UINT64_C(0x9e3779b97f4a7c15)));
}

static bool find_fixed(const struct set *set, gar_i128 key)
{
    for (int64_t at = (int64_t)hash_key(key) & set->mask;; at = (at + 1) & set->mask) {
        if (set->slots[at] == 0) {
            return false;
        }
        if (key_of(set->column->type, set->column->values, true, set->slots[at] - 1) == key) {
            return true;
        }
    }
}

static bool find_text(const struct set *set, const struct gar_string_view *view,
                      const uint8_t *const *data)
{
    const struct gar_string_view *views = set->column->values;
    for (int64_t at = (int64_t)hash_text(view, data) & set->mask;; at = (at + 1) & set->mask) {
        if (set->slots[at] == 0) {
            return false;
        }
        if (gar_text_equal(view, data, &views[set->slots[at] - 1], set->column->data_pointers)) {
            return true;
        }
    }
}

static enum gar_status run_in_hash(struct gar_eval *eval, const struct gar_instr *instr,
                                   struct gar_reg **args, struct gar_reg *out, int64_t n,
                                   struct gar_error *err)
{
    (void)eval;
    (void)err;
    const struct set *set = instr->state;
    const struct gar_type type = set->column->type;
    uint64_t *words = out->dest;
    const bool is_text = gar_type_is_text(type);
    for (int64_t w = 0; w < gar_words(n); w++) {
        uint64_t word = 0;
        const int64_t count = gar_min_i64(64, n - 64 * w);
        for (int64_t k = 0; k < count; k++) {
            const int64_t i = 64 * w + k;
            bool truth = false;
            if (is_text) {
                truth = find_text(set, (const struct gar_string_view *)args[0]->values + i,
                                  args[0]->data);
            } else if (!row_is_nan(type, args[0]->values, i)) {
                truth = find_fixed(set, key_of(type, args[0]->values, args[0]->is_wide, i));
            }
            word |= (uint64_t)truth << k;
        }
        words[w] = word;
    }
    return GAR_OK;
}

/* One row of the set as a constant register. */
static void set_value(const struct gar_column *column, int64_t i, gar_u128 *storage,
                      struct gar_reg *out)
{
    memset(out, 0, sizeof *out);
    *storage = 0;
    out->is_const = true;
    out->values = storage;
    out->data = column->data_pointers;
    if (column->type.id == GAR_BOOL) {
        *storage = gar_bit_get(column->values, column->values_offset + i);
        return;
    }
    const int32_t width = gar_type_width(column->type);
    memcpy(storage, (const uint8_t *)column->values + i * width, (size_t)width);
    if (column->type.id == GAR_DECIMAL128) {
        const gar_i128 v = ((const gar_i128 *)column->values)[i];
        out->is_wide = v != (int64_t)v;
    }
}

static enum gar_status run_in_small(struct gar_eval *eval, const struct gar_instr *instr,
                                    struct gar_reg **args, struct gar_reg *out, int64_t n,
                                    struct gar_error *err)
{
    (void)err;
    const struct set *set = instr->state;
    const struct gar_type type = set->column->type;
    uint64_t *words = out->dest;
    memset(words, 0, (size_t)gar_words(n) * 8);
    for (int64_t i = 0; i < set->column->length; i++) {
        gar_u128 storage;
        struct gar_reg value;
        uint64_t bits[GAR_VECTOR_WORDS];
        set_value(set->column, i, &storage, &value);
        compare(eval, GAR_OP_EQ, type, args[0], type, &value, bits, n);
        for (int64_t w = 0; w < gar_words(n); w++) {
            words[w] |= bits[w];
        }
    }
    return GAR_OK;
}

static void fill_set(struct set *set)
{
    const struct gar_column *column = set->column;
    const bool is_text = gar_type_is_text(column->type);
    const struct gar_string_view *views = column->values;
    for (int64_t i = 0; i < column->length; i++) {
        const bool is_there = is_text
                                  ? find_text(set, &views[i], column->data_pointers)
                                  : find_fixed(set, key_of(column->type, column->values, true, i));
        if (is_there) {
            continue;
        }
        const uint64_t hash = is_text ? hash_text(&views[i], column->data_pointers)
                                      : hash_key(key_of(column->type, column->values, true, i));
        int64_t at = (int64_t)hash & set->mask;
        while (set->slots[at] != 0) {
            at = (at + 1) & set->mask;
        }
        set->slots[at] = (uint32_t)i + 1;
    }
}

static enum gar_status choose_in_set(const struct gar_bound *node, struct gar_instr *instr,
                                     struct gar_error *err)
{
    struct set *set = gar_calloc(1, (int64_t)sizeof *set);
    if (set == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *set);
    }
    instr->state = set;
    instr->state_free = free_set;
    instr->is_strict = true;
    set->column = node->set;
    if (node->set->length <= SMALL_SET_MAX || node->set->type.id == GAR_BOOL) {
        instr->run = run_in_small;
        return GAR_OK;
    }
    instr->run = run_in_hash;
    instr->is_flat = true;
    const int64_t capacity = gar_next_pow2(2 * node->set->length);
    set->mask = capacity - 1;
    set->slots = gar_calloc(capacity, (int64_t)sizeof *set->slots);
    if (set->slots == NULL) {
        return gar_error_nomem(err, capacity * (int64_t)sizeof *set->slots);
    }
    fill_set(set);
    return GAR_OK;
}

enum gar_status gar_choose_compare(const struct gar_bound *node, struct gar_instr *instr,
                                   struct gar_error *err)
{
    switch (node->op) {
    case GAR_OP_IN_SET: return choose_in_set(node, instr, err);
    case GAR_OP_EQ_SAFE: instr->run = run_equal_safe; break;
    case GAR_OP_LEAST:
    case GAR_OP_GREATEST: instr->run = run_extreme; break;
    default:
        instr->run = run_compare;
        instr->is_strict = true;
        break;
    }
    return GAR_OK;
}
