/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of arithmetic over integers, floats and times. Decimals are in ops_decimal.c. */
#include <math.h>

#include "expr/eval_priv.h"

/* --- add, subtract, multiply, divide --- */

static enum gar_arith arith_of(enum gar_op op)
{
    return op == GAR_OP_ADD   ? GAR_ARITH_ADD
           : op == GAR_OP_SUB ? GAR_ARITH_SUB
           : op == GAR_OP_MUL ? GAR_ARITH_MUL
                              : GAR_ARITH_DIV;
}

static enum gar_shape shape_of(struct gar_reg **args)
{
    return args[1]->is_const ? GAR_SHAPE_VS : args[0]->is_const ? GAR_SHAPE_SV : GAR_SHAPE_VV;
}

static const void *lane_at(const struct gar_reg *reg, int32_t width, int64_t i)
{
    return (const uint8_t *)reg->values + gar_reg_at(reg, i) * width;
}

/* Some lane overflowed: the first one that counts is an error, or each becomes null. */
static enum gar_status look_at_overflow(struct gar_eval *eval, const struct gar_instr *instr,
                                        struct gar_reg **args, struct gar_reg *out, int64_t n,
                                        struct gar_error *err)
{
    const enum gar_arith op = arith_of(instr->node->op);
    const int32_t width = gar_type_width(instr->node->args[0]->type);
    uint64_t active[GAR_VECTOR_WORDS];
    gar_active_lanes(eval, instr, out, n, active);
    for (int64_t i = 0; i < n; i++) {
        if (!gar_word_bit(active, i) ||
            !gar_arith_overflows(op, (enum gar_lane)instr->lane, lane_at(args[0], width, i),
                                 lane_at(args[1], width, i))) {
            continue;
        }
        if (!instr->node->is_try) {
            return gar_lane_overflow(eval, instr, args, i, err);
        }
        gar_reg_set_null(out, i, n);
    }
    return GAR_OK;
}

static enum gar_status run_arith(struct gar_eval *eval, const struct gar_instr *instr,
                                 struct gar_reg **args, struct gar_reg *out, int64_t n,
                                 struct gar_error *err)
{
    const gar_arith_fn kernel =
        eval->kernels->arith[arith_of(instr->node->op)][instr->lane][shape_of(args)];
    if (GAR_LIKELY(!kernel(args[0]->values, args[1]->values, out->dest, n))) {
        return GAR_OK;
    }
    return look_at_overflow(eval, instr, args, out, n, err);
}

/* --- floor division and remainder --- */

/* Null where b is zero. The least signed value over -1: an error for //, 0 for %. */
#define INTEGER_DIVISION(tag, type, LEAST)                                                      \
    static enum gar_status run_floor_div_##tag(                                                 \
        struct gar_eval *eval, const struct gar_instr *instr, struct gar_reg **args,            \
        struct gar_reg *out, int64_t n, struct gar_error *err)                                  \
    {                                                                                           \
        const type *a = args[0]->values;                                                        \
        const type *b = args[1]->values;                                                        \
        type *to = out->dest;                                                                   \
        uint64_t active[GAR_VECTOR_WORDS];                                                      \
        gar_active_lanes(eval, instr, out, n, active);                                          \
        for (int64_t i = 0; i < n; i++) {                                                       \
            const type y = b[i];                                                                \
            to[i] = 0;                                                                          \
            if (y == 0) {                                                                       \
                gar_reg_set_null(out, i, n);                                                    \
            } else if ((LEAST) != 0 && a[i] == (type)(LEAST) && y == (type)-1) {                \
                if (gar_word_bit(active, i)) {                                                  \
                    return gar_lane_overflow(eval, instr, args, i, err);                        \
                }                                                                               \
            } else {                                                                            \
                const type q = (type)(a[i] / y);                                                \
                const type r = (type)(a[i] - q * y);                                            \
                to[i] = (type)(q - (r != 0 && ((r < 0) != (y < 0)) ? 1 : 0));                   \
            }                                                                                   \
        }                                                                                       \
        return GAR_OK;                                                                          \
    }                                                                                           \
    static enum gar_status run_mod_##tag(struct gar_eval *eval, const struct gar_instr *instr,  \
                                         struct gar_reg **args, struct gar_reg *out, int64_t n, \
                                         struct gar_error *err)                                 \
    {                                                                                           \
        (void)eval;                                                                             \
        (void)instr;                                                                            \
        (void)err;                                                                              \
        const type *a = args[0]->values;                                                        \
        const type *b = args[1]->values;                                                        \
        type *to = out->dest;                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                       \
            const type y = b[i];                                                                \
            to[i] = 0;                                                                          \
            if (y == 0) {                                                                       \
                gar_reg_set_null(out, i, n);                                                    \
            } else if ((LEAST) == 0 || y != (type)-1) {                                         \
                to[i] = (type)(a[i] % y);                                                       \
            }                                                                                   \
        }                                                                                       \
        return GAR_OK;                                                                          \
    }

INTEGER_DIVISION(i8, int8_t, INT8_MIN)
INTEGER_DIVISION(i16, int16_t, INT16_MIN)
INTEGER_DIVISION(i32, int32_t, INT32_MIN)
INTEGER_DIVISION(i64, int64_t, INT64_MIN)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtype-limits"
#endif
INTEGER_DIVISION(u8, uint8_t, 0)
INTEGER_DIVISION(u16, uint16_t, 0)
INTEGER_DIVISION(u32, uint32_t, 0)
INTEGER_DIVISION(u64, uint64_t, 0)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#define FLOAT_DIVISION(tag, type, FLOOR, FMOD)                                                  \
    static enum gar_status run_floor_div_##tag(                                                 \
        struct gar_eval *eval, const struct gar_instr *instr, struct gar_reg **args,            \
        struct gar_reg *out, int64_t n, struct gar_error *err)                                  \
    {                                                                                           \
        (void)eval;                                                                             \
        (void)instr;                                                                            \
        (void)err;                                                                              \
        const type *a = args[0]->values;                                                        \
        const type *b = args[1]->values;                                                        \
        type *to = out->dest;                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                       \
            to[i] = FLOOR(a[i] / b[i]);                                                         \
        }                                                                                       \
        return GAR_OK;                                                                          \
    }                                                                                           \
    static enum gar_status run_mod_##tag(struct gar_eval *eval, const struct gar_instr *instr,  \
                                         struct gar_reg **args, struct gar_reg *out, int64_t n, \
                                         struct gar_error *err)                                 \
    {                                                                                           \
        (void)eval;                                                                             \
        (void)instr;                                                                            \
        (void)err;                                                                              \
        const type *a = args[0]->values;                                                        \
        const type *b = args[1]->values;                                                        \
        type *to = out->dest;                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                       \
            to[i] = FMOD(a[i], b[i]);                                                           \
        }                                                                                       \
        return GAR_OK;                                                                          \
    }

FLOAT_DIVISION(f32, float, floorf, fmodf)
FLOAT_DIVISION(f64, double, floor, fmod)

/* --- sign --- */

#define SIGN_FNS(tag, type, utype)                                                                 \
    static enum gar_status run_neg_##tag(struct gar_eval *eval, const struct gar_instr *instr,     \
                                         struct gar_reg **args, struct gar_reg *out, int64_t n,    \
                                         struct gar_error *err)                                    \
    {                                                                                              \
        const bool is_abs = instr->node->op == GAR_OP_ABS;                                         \
        const type *a = args[0]->values;                                                           \
        type *to = out->dest;                                                                      \
        type least = 0;                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const type x = a[i];                                                                   \
            const type r = (type)(utype)(0 - (utype)x);                                            \
            least =                                                                                \
                (type)(least |                                                                     \
                       (x == r ? x : 0)); /* only 0 and the least value are their own negatives */ \
            to[i] = is_abs && x >= 0 ? x : r;                                                      \
        }                                                                                          \
        if (GAR_LIKELY(least == 0)) {                                                              \
            return GAR_OK;                                                                         \
        }                                                                                          \
        uint64_t active[GAR_VECTOR_WORDS];                                                         \
        gar_active_lanes(eval, instr, out, n, active);                                             \
        for (int64_t i = 0; i < n; i++) {                                                          \
            if (a[i] < 0 && a[i] == to[i] && gar_word_bit(active, i)) {                            \
                return gar_lane_overflow(eval, instr, args, i, err);                               \
            }                                                                                      \
        }                                                                                          \
        return GAR_OK;                                                                             \
    }

SIGN_FNS(i8, int8_t, uint8_t)
SIGN_FNS(i16, int16_t, uint16_t)
SIGN_FNS(i32, int32_t, uint32_t)
SIGN_FNS(i64, int64_t, uint64_t)

#define FLOAT_SIGN_FN(tag, type, FABS)                                                          \
    static enum gar_status run_neg_##tag(struct gar_eval *eval, const struct gar_instr *instr,  \
                                         struct gar_reg **args, struct gar_reg *out, int64_t n, \
                                         struct gar_error *err)                                 \
    {                                                                                           \
        (void)eval;                                                                             \
        (void)err;                                                                              \
        const bool is_abs = instr->node->op == GAR_OP_ABS;                                      \
        const type *a = args[0]->values;                                                        \
        type *to = out->dest;                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                       \
            to[i] = is_abs ? FABS(a[i]) : -a[i];                                                \
        }                                                                                       \
        return GAR_OK;                                                                          \
    }

FLOAT_SIGN_FN(f32, float, fabsf)
FLOAT_SIGN_FN(f64, double, fabs)

#define SIGN_OF_FN(tag, type)                                                                    \
    static enum gar_status run_sign_##tag(struct gar_eval *eval, const struct gar_instr *instr,  \
                                          struct gar_reg **args, struct gar_reg *out, int64_t n, \
                                          struct gar_error *err)                                 \
    {                                                                                            \
        (void)eval;                                                                              \
        (void)instr;                                                                             \
        (void)err;                                                                               \
        const type *a = args[0]->values;                                                         \
        type *to = out->dest;                                                                    \
        for (int64_t i = 0; i < n; i++) {                                                        \
            const type x = a[i];                                                                 \
            to[i] = x > 0 ? (type)1 : x < 0 ? (type)-1 : x; /* NaN and zeros stay */             \
        }                                                                                        \
        return GAR_OK;                                                                           \
    }

SIGN_OF_FN(i8, int8_t)
SIGN_OF_FN(i16, int16_t)
SIGN_OF_FN(i32, int32_t)
SIGN_OF_FN(i64, int64_t)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtype-limits"
#endif
SIGN_OF_FN(u8, uint8_t)
SIGN_OF_FN(u16, uint16_t)
SIGN_OF_FN(u32, uint32_t)
SIGN_OF_FN(u64, uint64_t)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
SIGN_OF_FN(f32, float)
SIGN_OF_FN(f64, double)

/* --- rounding --- */

/* v at `digits` after the point, half away from zero. Digits that a double does not have are not rounded. */
static double round_double(double v, int64_t digits)
{
    if (digits == 0) {
        return round(v);
    }
    if (digits > 300 || digits < -300 || !isfinite(v)) {
        return digits < 0 && isfinite(v) ? 0.0 : v;
    }
    const double scale = pow(10.0, (double)(digits < 0 ? -digits : digits));
    if (digits < 0) {
        return round(v / scale) * scale;
    }
    const double scaled = v * scale;
    return isfinite(scaled) && fabs(scaled) < 4503599627370496.0 ? round(scaled) / scale : v;
}

static double round_one(double v, enum gar_function_id id, int64_t digits)
{
    return id == GAR_FN_FLOOR ? floor(v) : id == GAR_FN_CEIL ? ceil(v) : round_double(v, digits);
}

static enum gar_status run_round_float(struct gar_eval *eval, const struct gar_instr *instr,
                                       struct gar_reg **args, struct gar_reg *out, int64_t n,
                                       struct gar_error *err)
{
    (void)eval;
    (void)err;
    const enum gar_function_id id = (enum gar_function_id)instr->node->param[0];
    const int64_t digits = instr->node->param[1];
    for (int64_t i = 0; i < n; i++) {
        if (instr->lane == GAR_LANE_F32) {
            ((float *)out->dest)[i] =
                (float)round_one((double)((const float *)args[0]->values)[i], id, digits);
        } else {
            ((double *)out->dest)[i] = round_one(((const double *)args[0]->values)[i], id, digits);
        }
    }
    return GAR_OK;
}

static gar_i128 lane_integer(const void *values, enum gar_lane lane, int64_t i)
{
    switch (lane) {
    case GAR_LANE_I8: return ((const int8_t *)values)[i];
    case GAR_LANE_I16: return ((const int16_t *)values)[i];
    case GAR_LANE_I32: return ((const int32_t *)values)[i];
    case GAR_LANE_I64: return ((const int64_t *)values)[i];
    case GAR_LANE_U8: return ((const uint8_t *)values)[i];
    case GAR_LANE_U16: return ((const uint16_t *)values)[i];
    case GAR_LANE_U32: return ((const uint32_t *)values)[i];
    case GAR_LANE_U64: return ((const uint64_t *)values)[i];
    case GAR_LANE_F32:
    case GAR_LANE_F64:
    case GAR_LANE_COUNT: break;
    }
    return 0;
}

/* False if v does not fit. */
static bool put_integer(void *values, enum gar_lane lane, int64_t i, gar_i128 v)
{
    switch (lane) {
    case GAR_LANE_I8: ((int8_t *)values)[i] = (int8_t)v; break;
    case GAR_LANE_I16: ((int16_t *)values)[i] = (int16_t)v; break;
    case GAR_LANE_I32: ((int32_t *)values)[i] = (int32_t)v; break;
    case GAR_LANE_I64: ((int64_t *)values)[i] = (int64_t)v; break;
    case GAR_LANE_U8: ((uint8_t *)values)[i] = (uint8_t)v; break;
    case GAR_LANE_U16: ((uint16_t *)values)[i] = (uint16_t)v; break;
    case GAR_LANE_U32: ((uint32_t *)values)[i] = (uint32_t)v; break;
    case GAR_LANE_U64: ((uint64_t *)values)[i] = (uint64_t)v; break;
    case GAR_LANE_F32:
    case GAR_LANE_F64:
    case GAR_LANE_COUNT: return false;
    }
    return lane_integer(values, lane, i) == v;
}

/* Negative digits only: integers have none after the point. */
static enum gar_status run_round_integer(struct gar_eval *eval, const struct gar_instr *instr,
                                         struct gar_reg **args, struct gar_reg *out, int64_t n,
                                         struct gar_error *err)
{
    const enum gar_lane lane = (enum gar_lane)instr->lane;
    const int64_t places = -instr->node->param[1];
    uint64_t active[GAR_VECTOR_WORDS];
    gar_active_lanes(eval, instr, out, n, active);
    for (int64_t i = 0; i < n; i++) {
        gar_i128 v = 0;
        if (places <= 20) {
            const gar_i128 unit = gar_pow10_i128((int32_t)places);
            (void)gar_decimal_rescale(lane_integer(args[0]->values, lane, i), (int32_t)-places, &v);
            v *= unit;
        }
        if (!put_integer(out->dest, lane, i, v) && gar_word_bit(active, i)) {
            return gar_lane_overflow(eval, instr, args, i, err);
        }
    }
    return GAR_OK;
}

/* --- mathematics --- */

typedef double (*math1_fn)(double);

static double radians(double v)
{
    return v * 0.017453292519943295;
}

static double degrees(double v)
{
    return v * 57.29577951308232;
}

static math1_fn math1_of(enum gar_function_id id)
{
    switch (id) {
    case GAR_FN_SQRT: return sqrt;
    case GAR_FN_CBRT: return cbrt;
    case GAR_FN_EXP: return exp;
    case GAR_FN_EXPM1: return expm1;
    case GAR_FN_LN: return log;
    case GAR_FN_LOG10: return log10;
    case GAR_FN_LOG2: return log2;
    case GAR_FN_LOG1P: return log1p;
    case GAR_FN_SIN: return sin;
    case GAR_FN_COS: return cos;
    case GAR_FN_TAN: return tan;
    case GAR_FN_ARCSIN: return asin;
    case GAR_FN_ARCCOS: return acos;
    case GAR_FN_ARCTAN: return atan;
    case GAR_FN_SINH: return sinh;
    case GAR_FN_COSH: return cosh;
    case GAR_FN_TANH: return tanh;
    case GAR_FN_RADIANS: return radians;
    default: return degrees;
    }
}

static enum gar_status run_math1(struct gar_eval *eval, const struct gar_instr *instr,
                                 struct gar_reg **args, struct gar_reg *out, int64_t n,
                                 struct gar_error *err)
{
    (void)eval;
    (void)err;
    const enum gar_function_id id = (enum gar_function_id)instr->node->param[0];
    if (id == GAR_FN_SQRT && instr->lane == GAR_LANE_F64) {
        const double *a = args[0]->values;
        double *to = out->dest;
        for (int64_t i = 0; i < n; i++) {
            to[i] = sqrt(a[i]);
        }
        return GAR_OK;
    }
    const math1_fn fn = math1_of(id);
    for (int64_t i = 0; i < n; i++) {
        if (instr->lane == GAR_LANE_F32) {
            ((float *)out->dest)[i] = (float)fn((double)((const float *)args[0]->values)[i]);
        } else {
            ((double *)out->dest)[i] = fn(((const double *)args[0]->values)[i]);
        }
    }
    return GAR_OK;
}

static enum gar_status run_math2(struct gar_eval *eval, const struct gar_instr *instr,
                                 struct gar_reg **args, struct gar_reg *out, int64_t n,
                                 struct gar_error *err)
{
    (void)eval;
    (void)err;
    const double *a = args[0]->values;
    const double *b = args[1]->values;
    double *to = out->dest;
    const bool is_power = instr->node->param[0] == GAR_FN_POWER;
    for (int64_t i = 0; i < n; i++) {
        to[i] = is_power ? pow(a[i], b[i]) : atan2(a[i], b[i]);
    }
    return GAR_OK;
}

/* --- bits --- */

static enum gar_status run_bits(struct gar_eval *eval, const struct gar_instr *instr,
                                struct gar_reg **args, struct gar_reg *out, int64_t n,
                                struct gar_error *err)
{
    (void)eval;
    (void)err;
    const int64_t bytes = n * gar_type_width(instr->node->type);
    const uint8_t *a = args[0]->values;
    const uint8_t *b = args[1]->values;
    uint8_t *to = out->dest;
    const enum gar_op op = instr->node->op;
    for (int64_t i = 0; i < bytes; i++) {
        to[i] = op == GAR_OP_BIT_AND  ? (uint8_t)(a[i] & b[i])
                : op == GAR_OP_BIT_OR ? (uint8_t)(a[i] | b[i])
                                      : (uint8_t)(a[i] ^ b[i]);
    }
    return GAR_OK;
}

static enum gar_status run_shift(struct gar_eval *eval, const struct gar_instr *instr,
                                 struct gar_reg **args, struct gar_reg *out, int64_t n,
                                 struct gar_error *err)
{
    const enum gar_lane lane = (enum gar_lane)instr->lane;
    const int32_t width = 8 * gar_type_width(instr->node->type);
    const int64_t *by = args[1]->values;
    uint64_t active[GAR_VECTOR_WORDS];
    gar_active_lanes(eval, instr, out, n, active);
    for (int64_t i = 0; i < n; i++) {
        if (by[i] < 0 || by[i] >= width) {
            if (gar_word_bit(active, i)) {
                char row[GAR_ROW_TEXT_BYTES];
                return gar_error_set(err, GAR_ERR_VALUE,
                                     "%s by %lld%s; a shift lies between 0 and %d",
                                     gar_instr_name(instr), (long long)by[i],
                                     gar_lane_row_text(eval, i, row), width - 1);
            }
            (void)put_integer(out->dest, lane, i, 0);
            continue;
        }
        const gar_i128 v = lane_integer(args[0]->values, lane, i);
        const gar_i128 r =
            instr->node->op == GAR_OP_SHIFT_LEFT ? (gar_i128)((gar_u128)v << by[i]) : v >> by[i];
        (void)put_integer(out->dest, lane, i, r); /* bits moved out are gone */
    }
    return GAR_OK;
}

/* --- choice --- */

#define LANE_TABLE(name)                                                                       \
    {                                                                                          \
        [GAR_LANE_I8] = name##_i8, [GAR_LANE_I16] = name##_i16, [GAR_LANE_I32] = name##_i32,   \
        [GAR_LANE_I64] = name##_i64, [GAR_LANE_U8] = name##_u8, [GAR_LANE_U16] = name##_u16,   \
        [GAR_LANE_U32] = name##_u32, [GAR_LANE_U64] = name##_u64, [GAR_LANE_F32] = name##_f32, \
        [GAR_LANE_F64] = name##_f64                                                            \
    }

static const gar_instr_fn floor_div_fns[GAR_LANE_COUNT] = LANE_TABLE(run_floor_div);
static const gar_instr_fn mod_fns[GAR_LANE_COUNT] = LANE_TABLE(run_mod);
static const gar_instr_fn sign_fns[GAR_LANE_COUNT] = LANE_TABLE(run_sign);
static const gar_instr_fn neg_fns[GAR_LANE_COUNT] = {
    [GAR_LANE_I8] = run_neg_i8,   [GAR_LANE_I16] = run_neg_i16, [GAR_LANE_I32] = run_neg_i32,
    [GAR_LANE_I64] = run_neg_i64, [GAR_LANE_F32] = run_neg_f32, [GAR_LANE_F64] = run_neg_f64,
};

enum gar_status gar_choose_arith(const struct gar_bound *node, struct gar_instr *instr,
                                 struct gar_error *err)
{
    instr->is_strict = true;
    instr->is_flat = true;
    if (instr->lane == GAR_LANE_COUNT) {
        return gar_error_set(err, GAR_ERR_INTERNAL, "no arithmetic for type %d",
                             (int)node->args[0]->type.id);
    }
    switch (node->op) {
    case GAR_OP_ADD:
    case GAR_OP_SUB:
    case GAR_OP_MUL:
    case GAR_OP_DIV:
        instr->run = run_arith;
        instr->is_flat = false;
        break;
    case GAR_OP_FLOOR_DIV: instr->run = floor_div_fns[instr->lane]; break;
    case GAR_OP_MOD: instr->run = mod_fns[instr->lane]; break;
    case GAR_OP_NEG:
    case GAR_OP_ABS: instr->run = neg_fns[instr->lane]; break;
    case GAR_OP_SIGN: instr->run = sign_fns[instr->lane]; break;
    case GAR_OP_ROUND:
        instr->run = gar_type_is_float(node->type) ? run_round_float : run_round_integer;
        break;
    case GAR_OP_MATH1: instr->run = run_math1; break;
    case GAR_OP_MATH2: instr->run = run_math2; break;
    case GAR_OP_BIT_AND:
    case GAR_OP_BIT_OR:
    case GAR_OP_BIT_XOR: instr->run = run_bits; break;
    default: instr->run = run_shift; break;
    }
    return GAR_OK;
}
