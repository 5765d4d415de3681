/* SPDX-License-Identifier: Apache-2.0 */
/* What instructions share: validity, guards, constants written out, messages. */
#include <stdio.h>

#include "base/calendar.h"
#include "base/number_text.h"
#include "expr/eval_priv.h"

enum gar_lane gar_type_lane(struct gar_type type)
{
    switch ((enum gar_type_id)type.id) {
    case GAR_INT8: return GAR_LANE_I8;
    case GAR_INT16: return GAR_LANE_I16;
    case GAR_INT32:
    case GAR_DATE: return GAR_LANE_I32;
    case GAR_INT64:
    case GAR_TIME:
    case GAR_TIMESTAMP:
    case GAR_DURATION: return GAR_LANE_I64;
    case GAR_UINT8: return GAR_LANE_U8;
    case GAR_UINT16: return GAR_LANE_U16;
    case GAR_UINT32: return GAR_LANE_U32;
    case GAR_UINT64: return GAR_LANE_U64;
    case GAR_FLOAT32: return GAR_LANE_F32;
    case GAR_FLOAT64: return GAR_LANE_F64;
    case GAR_NULL:
    case GAR_BOOL:
    case GAR_DECIMAL128:
    case GAR_STRING:
    case GAR_BINARY:
    case GAR_LIST:
    case GAR_FIXED_LIST:
    case GAR_STRUCT:
    case GAR_MAP:
    case GAR_TYPE_ID_COUNT: break;
    }
    return GAR_LANE_COUNT;
}

void gar_active_lanes(const struct gar_eval *eval, const struct gar_instr *instr,
                      const struct gar_reg *out, int64_t n, uint64_t *active)
{
    const struct gar_reg *guard = instr->guard >= 0 ? &eval->variant->regs[instr->guard] : NULL;
    for (int64_t w = 0; w < gar_words(n); w++) {
        active[w] = (out->valid != NULL ? out->valid[w] : UINT64_MAX) & gar_word_mask(n, w);
        if (guard != NULL) {
            active[w] &= gar_bool_word(guard, w);
        }
    }
    if (guard != NULL && n == 1 && eval->vector_rows > 1) {
        /* a constant result counts if any row asks for it */
        uint64_t any = 0;
        for (int64_t w = 0; w < gar_words(eval->vector_rows); w++) {
            any |= gar_bool_word(guard, w) & gar_word_mask(eval->vector_rows, w);
        }
        active[0] = any != 0 && (out->valid == NULL || (out->valid[0] & 1) != 0);
    }
}

void gar_reg_own_valid(struct gar_reg *out, int64_t n)
{
    for (int64_t w = 0; w < gar_words(n); w++) {
        out->own_valid[w] = gar_word_mask(n, w);
    }
    out->valid = out->own_valid;
}

void gar_reg_set_null(struct gar_reg *out, int64_t i, int64_t n)
{
    if (out->valid == NULL) {
        gar_reg_own_valid(out, n);
    }
    out->own_valid[i >> 6] &= ~(UINT64_C(1) << (i & 63));
}

void gar_reg_tidy_valid(struct gar_reg *out, int64_t n)
{
    uint64_t missing = 0;
    for (int64_t w = 0; w < gar_words(n); w++) {
        missing |= ~out->own_valid[w] & gar_word_mask(n, w);
    }
    out->valid = missing == 0 ? NULL : out->own_valid;
}

#define FILL_CASE(bytes, type)                         \
    case bytes: {                                      \
        type *v = reg->own;                            \
        const type first = *(const type *)reg->values; \
        for (int64_t i = 0; i < n; i++) {              \
            v[i] = first;                              \
        }                                              \
        break;                                         \
    }

void gar_reg_fill(struct gar_reg *reg, struct gar_type type, int64_t n)
{
    if (reg->full_rows >= n) {
        return;
    }
    int32_t width = gar_type_width(type);
    if (type.id == GAR_BOOL || type.id == GAR_NULL) {
        uint64_t *words = reg->own;
        const uint64_t word = gar_bool_word(reg, 0);
        for (int64_t w = 0; w < GAR_VECTOR_WORDS; w++) {
            words[w] = word;
        }
    } else if (type.id == GAR_DECIMAL128 && !reg->is_wide) {
        width = 8;
    }
    switch (width) {
        FILL_CASE(1, uint8_t)
        FILL_CASE(2, uint16_t)
        FILL_CASE(4, uint32_t)
        FILL_CASE(8, uint64_t)
        FILL_CASE(16, gar_u128)
    default: break;
    }
    reg->values = reg->own;
    reg->full_rows = (int32_t)n;
}

const gar_i128 *gar_reg_wide(struct gar_eval *eval, const struct gar_reg *reg, int64_t n,
                             int32_t temp)
{
    if (reg->is_wide) {
        return reg->values;
    }
    eval->kernels->widen(reg->values, eval->wide_temp[temp], reg->is_const ? 1 : n);
    return eval->wide_temp[temp];
}

const char *gar_lane_row_text(const struct gar_eval *eval, int64_t i, char *out)
{
    const int64_t row = eval->rows != NULL ? (int64_t)eval->rows[i] : eval->base + i;
    const int64_t origin = eval->batch != NULL ? gar_batch_origin(eval->batch, row) : -1;
    out[0] = '\0';
    if (origin >= 0) {
        (void)snprintf(out, GAR_ROW_TEXT_BYTES, ", row %lld", (long long)origin);
    }
    return out;
}

const char *gar_instr_name(const struct gar_instr *instr)
{
    const struct gar_function *function = instr->node->function;
    return function != NULL                 ? function->info.name
           : instr->node->op == GAR_OP_CAST ? "cast"
                                            : "expression";
}

static int64_t integer_at(const struct gar_reg *reg, struct gar_type type, int64_t i)
{
    switch (gar_type_width(type)) {
    case 1: return ((const int8_t *)reg->values)[i];
    case 2: return ((const int16_t *)reg->values)[i];
    case 4: return ((const int32_t *)reg->values)[i];
    default: return ((const int64_t *)reg->values)[i];
    }
}

static int32_t format_lane(const struct gar_reg *reg, struct gar_type type, int64_t i, char *out)
{
    switch ((enum gar_type_id)type.id) {
    case GAR_INT8:
    case GAR_INT16:
    case GAR_INT32:
    case GAR_INT64:
    case GAR_DURATION: return gar_format_i64(integer_at(reg, type, i), out);
    case GAR_UINT8: return gar_format_u64(((const uint8_t *)reg->values)[i], out);
    case GAR_UINT16: return gar_format_u64(((const uint16_t *)reg->values)[i], out);
    case GAR_UINT32: return gar_format_u64(((const uint32_t *)reg->values)[i], out);
    case GAR_UINT64: return gar_format_u64(((const uint64_t *)reg->values)[i], out);
    case GAR_FLOAT32: return gar_format_float(((const float *)reg->values)[i], out);
    case GAR_FLOAT64: return gar_format_double(((const double *)reg->values)[i], out);
    case GAR_DECIMAL128:
        return gar_decimal_format(reg->is_wide ? ((const gar_i128 *)reg->values)[i]
                                               : ((const int64_t *)reg->values)[i],
                                  type.scale, out);
    case GAR_DATE: return gar_format_date(((const int32_t *)reg->values)[i], out);
    case GAR_TIME:
        return gar_format_time(integer_at(reg, type, i), gar_unit_digits(type.unit), out);
    case GAR_TIMESTAMP:
        return gar_format_timestamp(integer_at(reg, type, i), gar_unit_digits(type.unit), out);
    case GAR_BOOL: {
        const bool truth = gar_word_bit(reg->values, i);
        memcpy(out, truth ? "true" : "false", 5);
        return truth ? 4 : 5;
    }
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

const char *gar_lane_text(const struct gar_reg *reg, struct gar_type type, int64_t i, char *out,
                          int64_t out_bytes)
{
    i = gar_reg_at(reg, i);
    if (gar_type_is_text(type)) {
        const struct gar_string_view *view = (const struct gar_string_view *)reg->values + i;
        return gar_error_quote((const char *)gar_view_bytes(view, reg->data), view->size, out,
                               out_bytes);
    }
    char text[64];
    const int32_t size = format_lane(reg, type, i, text);
    return gar_error_quote(text, size, out, out_bytes);
}

enum gar_status gar_lane_overflow(const struct gar_eval *eval, const struct gar_instr *instr,
                                  struct gar_reg **args, int64_t i, struct gar_error *err)
{
    char type_text[64];
    char a[80];
    char b[80];
    const struct gar_bound *node = instr->node;
    gar_type_text(node->type, type_text, (int64_t)sizeof type_text);
    gar_lane_text(args[0], node->args[0]->type, i, a, (int64_t)sizeof a);
    const char *name = gar_instr_name(instr);
    char row[GAR_ROW_TEXT_BYTES];
    (void)gar_lane_row_text(eval, i, row);
    if (node->arg_count < 2) {
        return gar_error_set(err, GAR_ERR_OVERFLOW,
                             "%s overflow in %s: %s%s; cast to a wider type first", type_text, name,
                             a, row);
    }
    gar_lane_text(args[1], node->args[1]->type, i, b, (int64_t)sizeof b);
    const char *sign = node->function != NULL && node->function->info.sql != NULL
                           ? node->function->info.sql
                           : "with";
    return gar_error_set(err, GAR_ERR_OVERFLOW,
                         "%s overflow in %s: %s %s %s%s; cast to a wider type first", type_text,
                         name, a, sign, b, row);
}

enum gar_status gar_run_guard(struct gar_eval *eval, const struct gar_instr *instr,
                              struct gar_reg **args, struct gar_reg *out, int64_t n,
                              struct gar_error *err)
{
    (void)eval;
    (void)err;
    uint64_t *words = out->dest;
    for (int64_t w = 0; w < gar_words(n); w++) {
        const uint64_t valid = gar_valid_word(args[0], w);
        uint64_t word = ~valid;
        if (instr->node->op != GAR_OP_GUARD_NULL) {
            const uint64_t is_true = gar_bool_word(args[0], w) & valid;
            word = instr->node->op == GAR_OP_GUARD_TRUE       ? is_true
                   : instr->node->op == GAR_OP_GUARD_NOT_TRUE ? ~is_true
                                                              : is_true | ~valid;
        }
        if (instr->arg_count > 1) {
            word &= gar_bool_word(args[1], w);
        }
        words[w] = word & gar_word_mask(n, w);
    }
    return GAR_OK;
}
