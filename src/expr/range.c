/* SPDX-License-Identifier: Apache-2.0 */
/* Two comparisons of one value with constants, from below and from above, become one range test. */
#include "expr/eval_priv.h"

/* x op constant, whichever side the constant stands on. */
struct bound {
    struct gar_bound *x;
    const struct gar_value *value;
    bool is_low;  /* x >= or > value */
    bool is_open; /* the value itself is outside */
};

static bool read_bound(const struct gar_bound *node, struct bound *out)
{
    if (node->op != GAR_OP_LT && node->op != GAR_OP_LE && node->op != GAR_OP_GT &&
        node->op != GAR_OP_GE) {
        return false;
    }
    const bool is_const_first = node->args[0]->op == GAR_OP_CONST;
    struct gar_bound *x = node->args[is_const_first ? 1 : 0];
    const struct gar_bound *constant = node->args[is_const_first ? 0 : 1];
    if (constant->op != GAR_OP_CONST || x->op == GAR_OP_CONST || !constant->value->is_valid ||
        !gar_type_equal(x->type, constant->type)) {
        return false;
    }
    const enum gar_lane lane = gar_type_lane(x->type);
    if (lane != GAR_LANE_I32 && lane != GAR_LANE_I64 && x->type.id != GAR_DECIMAL128) {
        return false;
    }
    const bool is_greater = node->op == GAR_OP_GT || node->op == GAR_OP_GE;
    out->x = x;
    out->value = constant->value;
    out->is_low = is_greater != is_const_first;
    out->is_open = node->op == GAR_OP_LT || node->op == GAR_OP_GT;
    return true;
}

/* The bound as an inclusive constant; false if there is no value next to it. */
static bool close_bound(const struct bound *bound, struct gar_value *out)
{
    *out = *bound->value; /* numbers and times own nothing */
    const int64_t step = !bound->is_open ? 0 : bound->is_low ? 1 : -1;
    if (out->type.id == GAR_DECIMAL128) {
        out->i128 += step; /* 38 digits leave room */
        return true;
    }
    const bool is_32 = gar_type_lane(out->type) == GAR_LANE_I32;
    const int64_t edge =
        step > 0 ? (is_32 ? INT32_MAX : INT64_MAX) : (is_32 ? INT32_MIN : INT64_MIN);
    if (step != 0 && out->i64 == edge) {
        return false;
    }
    out->i64 += step;
    return true;
}

enum gar_status gar_bound_join_range(struct gar_binder *binder, struct gar_bound *a,
                                     struct gar_bound *b, struct gar_bound **out,
                                     struct gar_error *err)
{
    struct bound first;
    struct bound second;
    *out = NULL;
    if (!read_bound(a, &first) || !read_bound(b, &second) || first.is_low == second.is_low ||
        !gar_bound_same_tree(first.x, second.x)) {
        return GAR_OK;
    }
    struct gar_value low;
    struct gar_value high;
    if (!close_bound(first.is_low ? &first : &second, &low) ||
        !close_bound(first.is_low ? &second : &first, &high)) {
        return GAR_OK;
    }
    struct gar_bound *args[3] = {first.x, NULL, NULL};
    GAR_TRY(gar_bound_const(binder, &low, false, &args[1], err));
    GAR_TRY(gar_bound_const(binder, &high, false, &args[2], err));
    GAR_TRY(gar_bound_new(binder, GAR_OP_RANGE, gar_type_of(GAR_BOOL), args, 3, out, err));
    (*out)->function = a->function;
    return GAR_OK;
}

enum gar_status gar_bound_join_ranges(struct gar_binder *binder, struct gar_bound **node,
                                      struct gar_error *err)
{
    for (int64_t i = 0; i < (*node)->arg_count; i++) {
        GAR_TRY(gar_bound_join_ranges(binder, &(*node)->args[i], err));
    }
    if ((*node)->op == GAR_OP_AND) {
        struct gar_bound *joined = NULL;
        GAR_TRY(gar_bound_join_range(binder, (*node)->args[0], (*node)->args[1], &joined, err));
        *node = joined != NULL ? joined : *node;
    }
    return GAR_OK;
}

enum gar_status gar_run_range(struct gar_eval *eval, const struct gar_instr *instr,
                              struct gar_reg **args, struct gar_reg *out, int64_t n,
                              struct gar_error *err)
{
    (void)err;
    uint64_t *bits = out->dest;
    const bool is_wide = args[0]->is_wide || args[1]->is_wide || args[2]->is_wide;
    if (instr->lane == GAR_LANE_I32) {
        eval->kernels->between_i32(args[0]->values, *(const int32_t *)args[1]->values,
                                   *(const int32_t *)args[2]->values, bits, n);
    } else if (!is_wide) {
        eval->kernels->between_i64(args[0]->values, *(const int64_t *)args[1]->values,
                                   *(const int64_t *)args[2]->values, bits, n);
    } else {
        const gar_i128 low = *gar_reg_wide(eval, args[1], 1, 1);
        const gar_i128 high = *gar_reg_wide(eval, args[2], 1, 1);
        const gar_i128 *values = gar_reg_wide(eval, args[0], n, 0);
        memset(bits, 0, (size_t)gar_words(n) * 8);
        for (int64_t i = 0; i < n; i++) {
            bits[i >> 6] |= (uint64_t)(values[i] >= low && values[i] <= high) << (i & 63);
        }
    }
    return GAR_OK;
}
