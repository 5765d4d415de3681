/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions over decimals. Each vector is computed in 64 bits when the bounds of its registers show that nothing can
 * overflow, else in 128 bits with every step checked. */
#include "expr/eval_priv.h"

/* A product of bounds, or false. Also false when the result would not fit int64. */
static bool bounds_multiply(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out) && *out <= INT64_MAX;
}

static bool bounds_add(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out) && *out <= INT64_MAX;
}

/* The bound worked out from the values: what operations left behind may be up to twice too large each. */
static uint64_t tight_bound(const struct gar_eval *eval, struct gar_reg *reg, int64_t n)
{
    const int64_t count = reg->is_const ? 1 : n;
    reg->bound = eval->kernels->bound(reg->values, count);
    return reg->bound;
}

static enum gar_status decimal_overflow(struct gar_eval *eval, const struct gar_instr *instr,
                                        struct gar_reg **args, struct gar_reg *out,
                                        const uint64_t *active, int64_t i, int64_t n,
                                        struct gar_error *err)
{
    ((gar_i128 *)out->dest)[i] = 0;
    if (!gar_word_bit(active, i)) {
        return GAR_OK;
    }
    if (instr->node->is_try) {
        gar_reg_set_null(out, i, n);
        return GAR_OK;
    }
    return gar_lane_overflow(eval, instr, args, i, err);
}

/* --- add, subtract, multiply --- */

static bool combine(enum gar_op op, gar_i128 a, gar_i128 b, gar_i128 *out)
{
    return op == GAR_OP_ADD   ? __builtin_add_overflow(a, b, out)
           : op == GAR_OP_SUB ? __builtin_sub_overflow(a, b, out)
                              : __builtin_mul_overflow(a, b, out);
}

static enum gar_status run_wide(struct gar_eval *eval, const struct gar_instr *instr,
                                struct gar_reg **args, struct gar_reg *out, int64_t n,
                                struct gar_error *err)
{
    const gar_i128 *a = gar_reg_wide(eval, args[0], n, 0);
    const gar_i128 *b = gar_reg_wide(eval, args[1], n, 1);
    const int64_t a_step = args[0]->is_const ? 0 : 1;
    const int64_t b_step = args[1]->is_const ? 0 : 1;
    gar_i128 *to = out->dest;
    uint64_t active[GAR_VECTOR_WORDS];
    gar_active_lanes(eval, instr, out, n, active);
    for (int64_t i = 0; i < n; i++) {
        const bool is_over = combine(instr->node->op, a[i * a_step], b[i * b_step], &to[i]);
        if (is_over || !gar_decimal_fits(to[i], instr->node->type.precision)) {
            GAR_TRY(decimal_overflow(eval, instr, args, out, active, i, n, err));
        }
    }
    out->is_wide = true;
    return GAR_OK;
}

static enum gar_shape shape_of(struct gar_reg **args)
{
    return args[1]->is_const ? GAR_SHAPE_VS : args[0]->is_const ? GAR_SHAPE_SV : GAR_SHAPE_VV;
}

static enum gar_status run_sum(struct gar_eval *eval, const struct gar_instr *instr,
                               struct gar_reg **args, struct gar_reg *out, int64_t n,
                               struct gar_error *err)
{
    const bool is_narrow = !args[0]->is_wide && !args[1]->is_wide;
    uint64_t bound = 0;
    if (!is_narrow || !bounds_add(args[0]->bound, args[1]->bound, &bound)) {
        return run_wide(eval, instr, args, out, n, err);
    }
    const enum gar_arith op = instr->node->op == GAR_OP_ADD ? GAR_ARITH_ADD : GAR_ARITH_SUB;
    (void)eval->kernels->arith[op][GAR_LANE_I64][shape_of(args)](args[0]->values, args[1]->values,
                                                                 out->dest, n);
    out->bound = bound;
    return GAR_OK;
}

static enum gar_status run_product(struct gar_eval *eval, const struct gar_instr *instr,
                                   struct gar_reg **args, struct gar_reg *out, int64_t n,
                                   struct gar_error *err)
{
    if (args[0]->is_wide || args[1]->is_wide) {
        return run_wide(eval, instr, args, out, n, err);
    }
    uint64_t bound = 0;
    if (!bounds_multiply(args[0]->bound, args[1]->bound, &bound) &&
        !bounds_multiply(tight_bound(eval, args[0], n), tight_bound(eval, args[1], n), &bound)) {
        return run_wide(eval, instr, args, out, n, err);
    }
    eval->kernels->mul_unchecked[shape_of(args)](args[0]->values, args[1]->values, out->dest, n);
    out->bound = bound;
    return GAR_OK;
}

/* --- floor division, remainder --- */

static enum gar_status run_divide(struct gar_eval *eval, const struct gar_instr *instr,
                                  struct gar_reg **args, struct gar_reg *out, int64_t n,
                                  struct gar_error *err)
{
    (void)err;
    const gar_i128 *a = gar_reg_wide(eval, args[0], n, 0);
    const gar_i128 *b = gar_reg_wide(eval, args[1], n, 1);
    const int64_t a_step = args[0]->is_const ? 0 : 1;
    const int64_t b_step = args[1]->is_const ? 0 : 1;
    gar_i128 *to = out->dest;
    for (int64_t i = 0; i < n; i++) {
        const gar_i128 x = a[i * a_step];
        const gar_i128 y = b[i * b_step];
        to[i] = 0;
        if (y == 0) {
            gar_reg_set_null(out, i, n);
        } else if (instr->node->op == GAR_OP_MOD) {
            to[i] = x % y;
        } else {
            const gar_i128 r = x % y;
            to[i] = x / y - (r != 0 && ((r < 0) != (y < 0)) ? 1 : 0);
        }
    }
    out->is_wide = true;
    return GAR_OK;
}

/* --- sign, rounding --- */

static enum gar_status run_negate(struct gar_eval *eval, const struct gar_instr *instr,
                                  struct gar_reg **args, struct gar_reg *out, int64_t n,
                                  struct gar_error *err)
{
    (void)eval;
    (void)err;
    const bool is_abs = instr->node->op == GAR_OP_ABS;
    if (!args[0]->is_wide && args[0]->bound <= INT64_MAX) {
        const int64_t *a = args[0]->values;
        int64_t *to = out->dest;
        for (int64_t i = 0; i < n; i++) {
            to[i] = is_abs && a[i] >= 0 ? a[i] : -a[i];
        }
        out->bound = args[0]->bound;
        return GAR_OK;
    }
    const gar_i128 *a = gar_reg_wide(eval, args[0], n, 0);
    gar_i128 *to = out->dest;
    for (int64_t i = 0; i < n; i++) {
        to[i] = is_abs && a[i] >= 0 ? a[i] : -a[i]; /* 38 digits leave room for either sign */
    }
    out->is_wide = true;
    return GAR_OK;
}

static enum gar_status run_sign(struct gar_eval *eval, const struct gar_instr *instr,
                                struct gar_reg **args, struct gar_reg *out, int64_t n,
                                struct gar_error *err)
{
    (void)instr;
    (void)err;
    const gar_i128 *a = gar_reg_wide(eval, args[0], n, 0);
    int32_t *to = out->dest;
    for (int64_t i = 0; i < n; i++) {
        to[i] = (a[i] > 0) - (a[i] < 0);
    }
    return GAR_OK;
}

/* floor, ceil and round to a scale; digits < 0 round the whole part. */
static bool round_one(gar_i128 v, enum gar_function_id id, int32_t drop, int32_t restore,
                      gar_i128 *out)
{
    if (drop > GAR_DECIMAL_PRECISION_MAX) {
        *out = 0;
        return true;
    }
    const gar_i128 unit = gar_pow10_i128(drop);
    gar_i128 q = v / unit;
    const gar_i128 r = v % unit;
    if (id == GAR_FN_FLOOR) {
        q -= r < 0 ? 1 : 0;
    } else if (id == GAR_FN_CEIL) {
        q += r > 0 ? 1 : 0;
    } else {
        const gar_i128 size = r < 0 ? -r : r;
        q += size >= unit - size ? (v < 0 ? -1 : 1) : 0;
    }
    return !__builtin_mul_overflow(q, gar_pow10_i128(restore), out);
}

static enum gar_status run_round(struct gar_eval *eval, const struct gar_instr *instr,
                                 struct gar_reg **args, struct gar_reg *out, int64_t n,
                                 struct gar_error *err)
{
    const enum gar_function_id id = (enum gar_function_id)instr->node->param[0];
    const int64_t digits = instr->node->param[1];
    const int64_t drop = instr->node->args[0]->type.scale - digits; /* > 0 */
    const int64_t restore = digits < 0 ? -digits : 0;
    const gar_i128 *a = gar_reg_wide(eval, args[0], n, 0);
    gar_i128 *to = out->dest;
    uint64_t active[GAR_VECTOR_WORDS];
    gar_active_lanes(eval, instr, out, n, active);
    for (int64_t i = 0; i < n; i++) {
        const bool is_kept =
            round_one(a[i], id, (int32_t)gar_min_i64(drop, GAR_DECIMAL_PRECISION_MAX + 1),
                      (int32_t)gar_min_i64(restore, GAR_DECIMAL_PRECISION_MAX), &to[i]);
        if (!is_kept || !gar_decimal_fits(to[i], instr->node->type.precision)) {
            GAR_TRY(decimal_overflow(eval, instr, args, out, active, i, n, err));
        }
    }
    out->is_wide = true;
    return GAR_OK;
}

enum gar_status gar_choose_decimal(const struct gar_bound *node, struct gar_instr *instr,
                                   struct gar_error *err)
{
    (void)err;
    instr->is_strict = true;
    switch (node->op) {
    case GAR_OP_ADD:
    case GAR_OP_SUB: instr->run = run_sum; break;
    case GAR_OP_MUL: instr->run = run_product; break;
    case GAR_OP_NEG:
    case GAR_OP_ABS: instr->run = run_negate; break;
    case GAR_OP_SIGN: instr->run = run_sign; break;
    case GAR_OP_ROUND: instr->run = run_round; break;
    default: instr->run = run_divide; break;
    }
    return GAR_OK;
}
