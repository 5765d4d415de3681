/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of three-valued logic, null tests, choice and hashing. */
#include <math.h>

#include "base/hash.h"
#include "expr/eval_priv.h"

static enum gar_status run_logic(struct gar_eval *eval, const struct gar_instr *instr,
                                 struct gar_reg **args, struct gar_reg *out, int64_t n,
                                 struct gar_error *err)
{
    (void)eval;
    (void)err;
    const enum gar_op op = instr->node->op;
    uint64_t *words = out->dest;
    for (int64_t w = 0; w < gar_words(n); w++) {
        const uint64_t a_valid = gar_valid_word(args[0], w);
        const uint64_t b_valid = gar_valid_word(args[1], w);
        const uint64_t a_true = gar_bool_word(args[0], w) & a_valid;
        const uint64_t b_true = gar_bool_word(args[1], w) & b_valid;
        const uint64_t a_false = a_valid & ~a_true;
        const uint64_t b_false = b_valid & ~b_true;
        const uint64_t is_true = op == GAR_OP_AND  ? a_true & b_true
                                 : op == GAR_OP_OR ? a_true | b_true
                                                   : a_true ^ b_true;
        uint64_t valid = a_valid & b_valid;
        valid = op == GAR_OP_AND  ? valid | a_false | b_false
                : op == GAR_OP_OR ? valid | a_true | b_true
                                  : valid;
        const uint64_t mask = gar_word_mask(n, w);
        words[w] = is_true & valid & mask;
        out->own_valid[w] = valid & mask;
    }
    gar_reg_tidy_valid(out, n);
    return GAR_OK;
}

static enum gar_status run_not(struct gar_eval *eval, const struct gar_instr *instr,
                               struct gar_reg **args, struct gar_reg *out, int64_t n,
                               struct gar_error *err)
{
    (void)eval;
    (void)instr;
    (void)err;
    uint64_t *words = out->dest;
    for (int64_t w = 0; w < gar_words(n); w++) {
        words[w] = ~gar_bool_word(args[0], w) & gar_word_mask(n, w);
    }
    return GAR_OK;
}

static enum gar_status run_null_test(struct gar_eval *eval, const struct gar_instr *instr,
                                     struct gar_reg **args, struct gar_reg *out, int64_t n,
                                     struct gar_error *err)
{
    (void)eval;
    (void)err;
    uint64_t *words = out->dest;
    for (int64_t w = 0; w < gar_words(n); w++) {
        const uint64_t valid = gar_valid_word(args[0], w);
        words[w] = (instr->node->op == GAR_OP_IS_NULL ? ~valid : valid) & gar_word_mask(n, w);
    }
    return GAR_OK;
}

static enum gar_status run_float_test(struct gar_eval *eval, const struct gar_instr *instr,
                                      struct gar_reg **args, struct gar_reg *out, int64_t n,
                                      struct gar_error *err)
{
    (void)eval;
    (void)err;
    const enum gar_op op = instr->node->op;
    uint64_t *words = out->dest;
    for (int64_t w = 0; w < gar_words(n); w++) {
        uint64_t word = 0;
        const int64_t count = gar_min_i64(64, n - 64 * w);
        for (int64_t k = 0; k < count; k++) {
            const int64_t i = 64 * w + k;
            bool is_nan = false;
            bool is_inf = false;
            if (instr->lane == GAR_LANE_F64) {
                is_nan = isnan(((const double *)args[0]->values)[i]);
                is_inf = isinf(((const double *)args[0]->values)[i]);
            } else if (instr->lane == GAR_LANE_F32) {
                is_nan = isnan(((const float *)args[0]->values)[i]);
                is_inf = isinf(((const float *)args[0]->values)[i]);
            }
            word |= (uint64_t)(op == GAR_OP_IS_NAN   ? is_nan
                               : op == GAR_OP_IS_INF ? is_inf
                                                     : !is_nan)
                    << k;
        }
        words[w] = word;
    }
    return GAR_OK;
}

/* --- choice: the first candidate whose bits say so --- */

/* Copies the lanes of `from` that are set in take to out. */
#define BLEND_CASE(bytes, type)                                                \
    case bytes: {                                                              \
        const type *v = from->values;                                          \
        type *to = out->dest;                                                  \
        for (int64_t i = 0; i < n; i++) {                                      \
            to[i] = gar_word_bit(take, i) ? v[from->is_const ? 0 : i] : to[i]; \
        }                                                                      \
        break;                                                                 \
    }

static void blend_fixed(int32_t width, const struct gar_reg *from, const uint64_t *take,
                        struct gar_reg *out, int64_t n)
{
    switch (width) {
        BLEND_CASE(1, uint8_t)
        BLEND_CASE(2, uint16_t)
        BLEND_CASE(4, uint32_t)
        BLEND_CASE(8, uint64_t)
        BLEND_CASE(16, gar_u128)
    default: break;
    }
}

static enum gar_status blend_text(const struct gar_instr *instr, const struct gar_reg *from,
                                  const uint64_t *take, struct gar_reg *out, int64_t n,
                                  struct gar_error *err)
{
    const struct gar_string_view *views = from->values;
    struct gar_string_view *to = out->dest;
    for (int64_t i = 0; i < n; i++) {
        if (gar_word_bit(take, i)) {
            const struct gar_string_view *view = &views[gar_reg_at(from, i)];
            GAR_TRY(gar_text_sink_add(instr->sink, gar_view_bytes(view, from->data), view->size,
                                      &to[i], err));
        }
    }
    return GAR_OK;
}

static enum gar_status blend(struct gar_eval *eval, const struct gar_instr *instr,
                             const struct gar_reg *from, const uint64_t *take, struct gar_reg *out,
                             int64_t n, struct gar_error *err)
{
    const struct gar_type type = instr->node->type;
    if (type.id == GAR_BOOL) {
        uint64_t *words = out->dest;
        for (int64_t w = 0; w < gar_words(n); w++) {
            words[w] = (words[w] & ~take[w]) | (gar_bool_word(from, w) & take[w]);
        }
        return GAR_OK;
    }
    if (gar_type_is_text(type)) {
        return blend_text(instr, from, take, out, n, err);
    }
    if (type.id != GAR_DECIMAL128) {
        blend_fixed(gar_type_width(type), from, take, out, n);
        return GAR_OK;
    }
    if (!out->is_wide) {
        blend_fixed(8, from, take, out, n);
        out->bound = from->bound > out->bound ? from->bound : out->bound;
        return GAR_OK;
    }
    struct gar_reg wide = *from;
    wide.values = gar_reg_wide(eval, from, n, 0);
    blend_fixed(16, &wide, take, out, n);
    return GAR_OK;
}

static void clear_values(struct gar_reg *out, struct gar_type type, int64_t n)
{
    const int64_t bytes = type.id == GAR_BOOL ? gar_words(n) * 8 : n * gar_type_width(type);
    memset(out->dest, 0, (size_t)bytes);
}

static bool any_wide(struct gar_reg **args, int32_t first, int32_t count, int32_t step)
{
    for (int32_t a = first; a < count; a += step) {
        if (args[a]->is_wide) {
            return true;
        }
    }
    return false;
}

enum gar_status gar_choice_take(struct gar_eval *eval, const struct gar_instr *instr,
                                const struct gar_reg *from, const uint64_t *take,
                                struct gar_reg *out, int64_t n, struct gar_error *err)
{
    uint64_t filled[GAR_VECTOR_WORDS];
    for (int64_t w = 0; w < gar_words(n); w++) {
        filled[w] = take[w] & gar_valid_word(from, w);
        out->own_valid[w] |= filled[w];
    }
    return blend(eval, instr, from, filled, out, n, err);
}

void gar_choice_start(const struct gar_instr *instr, struct gar_reg *out, bool is_wide, int64_t n)
{
    clear_values(out, instr->node->type, n);
    memset(out->own_valid, 0, (size_t)gar_words(n) * 8);
    out->is_wide = is_wide;
    out->bound = 0;
}

void gar_choice_finish(const struct gar_instr *instr, struct gar_reg *out, int64_t n)
{
    gar_reg_tidy_valid(out, n);
    if (instr->sink != NULL) {
        out->data = instr->sink->pointers;
    }
}

static enum gar_status run_coalesce(struct gar_eval *eval, const struct gar_instr *instr,
                                    struct gar_reg **args, struct gar_reg *out, int64_t n,
                                    struct gar_error *err)
{
    gar_choice_start(instr, out, any_wide(args, 0, instr->arg_count, 1), n);
    uint64_t open[GAR_VECTOR_WORDS];
    for (int32_t a = 0; a < instr->arg_count; a++) {
        for (int64_t w = 0; w < gar_words(n); w++) {
            open[w] = ~out->own_valid[w] & gar_word_mask(n, w);
        }
        GAR_TRY(gar_choice_take(eval, instr, args[a], open, out, n, err));
    }
    gar_choice_finish(instr, out, n);
    return GAR_OK;
}

static enum gar_status run_when(struct gar_eval *eval, const struct gar_instr *instr,
                                struct gar_reg **args, struct gar_reg *out, int64_t n,
                                struct gar_error *err)
{
    const int32_t last = instr->arg_count - 1;
    gar_choice_start(instr, out, any_wide(args, 1, last, 2) || args[last]->is_wide, n);
    uint64_t open[GAR_VECTOR_WORDS];
    uint64_t take[GAR_VECTOR_WORDS];
    for (int64_t w = 0; w < gar_words(n); w++) {
        open[w] = gar_word_mask(n, w);
    }
    for (int32_t a = 0; a < last; a += 2) {
        for (int64_t w = 0; w < gar_words(n); w++) {
            take[w] = open[w] & gar_bool_word(args[a], w) & gar_valid_word(args[a], w);
            open[w] &= ~take[w];
        }
        GAR_TRY(gar_choice_take(eval, instr, args[a + 1], take, out, n, err));
    }
    GAR_TRY(gar_choice_take(eval, instr, args[last], open, out, n, err));
    gar_choice_finish(instr, out, n);
    return GAR_OK;
}

/* --- hash --- */

/* Decimals hash by value at their scale; floats as -0.0 = 0.0 and one NaN. */
static uint64_t hash_lane(const struct gar_reg *reg, struct gar_type type, int64_t i)
{
    if (!gar_reg_is_valid(reg, i)) {
        return UINT64_C(0x9e3779b97f4a7c15);
    }
    i = gar_reg_at(reg, i);
    switch ((enum gar_type_id)type.id) {
    case GAR_BOOL: return gar_hash_u64(gar_word_bit(reg->values, i));
    case GAR_FLOAT32:
    case GAR_FLOAT64: {
        double v = type.id == GAR_FLOAT64 ? ((const double *)reg->values)[i]
                                          : (double)((const float *)reg->values)[i];
        v = v == 0 ? 0.0 : isnan(v) ? (double)NAN : v;
        return gar_hash_u64(gar_load_u64(&v));
    }
    case GAR_DECIMAL128: {
        const gar_i128 v =
            reg->is_wide ? ((const gar_i128 *)reg->values)[i] : ((const int64_t *)reg->values)[i];
        return gar_hash_combine(gar_hash_u64((uint64_t)v), (uint64_t)(v >> 64));
    }
    case GAR_STRING:
    case GAR_BINARY: {
        const struct gar_string_view *view = (const struct gar_string_view *)reg->values + i;
        return gar_hash_bytes(gar_view_bytes(view, reg->data), view->size);
    }
    default: break;
    }
    int64_t v = 0;
    memcpy(&v, (const uint8_t *)reg->values + i * gar_type_width(type),
           (size_t)gar_type_width(type));
    return gar_hash_u64((uint64_t)v);
}

static enum gar_status run_hash(struct gar_eval *eval, const struct gar_instr *instr,
                                struct gar_reg **args, struct gar_reg *out, int64_t n,
                                struct gar_error *err)
{
    (void)eval;
    (void)err;
    uint64_t *to = out->dest;
    for (int64_t i = 0; i < n; i++) {
        uint64_t h = 0;
        for (int32_t a = 0; a < instr->arg_count; a++) {
            h = gar_hash_combine(h, hash_lane(args[a], instr->node->args[a]->type, i));
        }
        to[i] = h;
    }
    return GAR_OK;
}

enum gar_status gar_choose_logic(const struct gar_bound *node, struct gar_instr *instr,
                                 struct gar_error *err)
{
    (void)err;
    switch (node->op) {
    case GAR_OP_NOT:
        instr->run = run_not;
        instr->is_strict = true;
        break;
    case GAR_OP_IS_NULL:
    case GAR_OP_NOT_NULL: instr->run = run_null_test; break;
    case GAR_OP_COALESCE: instr->run = run_coalesce; break;
    case GAR_OP_WHEN: instr->run = run_when; break;
    case GAR_OP_IS_NAN:
    case GAR_OP_NOT_NAN:
    case GAR_OP_IS_INF:
        instr->run = run_float_test;
        instr->is_strict = true;
        break;
    case GAR_OP_HASH: instr->run = run_hash; break;
    default: instr->run = run_logic; break;
    }
    return GAR_OK;
}
