/* SPDX-License-Identifier: Apache-2.0 */
/* Bound trees to instruction lists.
 *
 * 1. Walk each root; a node becomes one instruction after its arguments. Equal nodes (same operation, argument registers,
 *    parameters and, where they can fail, guard) share one register.
 * 2. Where the signature says that a column's dictionary is worked on, a subtree of that column alone becomes one look-up
 *    in a table (gar_hoist).
 * 3. Registers get scratch memory by life span: a slot is free again after its last reader. */
#include "base/alloc.h"
#include "expr/eval_priv.h"

/* Key of a register for finding equal nodes. */
struct seen {
    const struct gar_bound *node;
    int32_t guard;
    int32_t reg;
    int32_t arg_count;
    const int32_t *args;
};

/* In place of a guard: the register is a table look-up of the whole tree. */
#define HOISTED (-2)

struct compiler {
    struct gar_eval *eval;
    struct gar_variant *variant;
    int64_t instr_capacity;
    struct seen *seen;
    int64_t seen_count;
    int64_t seen_capacity;
};

bool gar_node_can_fail(const struct gar_bound *node)
{
    switch (node->op) {
    case GAR_OP_ADD:
    case GAR_OP_SUB:
    case GAR_OP_MUL:
    case GAR_OP_FLOOR_DIV:
    case GAR_OP_MOD:
    case GAR_OP_NEG:
    case GAR_OP_ABS:
    case GAR_OP_ROUND: return !gar_type_is_float(node->type) && !node->is_try;
    case GAR_OP_CAST: return !node->is_try;
    case GAR_OP_SHIFT_LEFT:
    case GAR_OP_SHIFT_RIGHT:
    case GAR_OP_ADD_MONTHS:
    case GAR_OP_ADD_INTERVAL:
    case GAR_OP_DATE_TRUNC:
    case GAR_OP_DATE_PART:
    case GAR_OP_DATE_OF:
    case GAR_OP_CONCAT:
    case GAR_OP_REPLACE:
    case GAR_OP_LIKE: return true;
    default: return false;
    }
}

bool gar_tree_can_fail(const struct gar_bound *node)
{
    if (gar_node_can_fail(node)) {
        return true;
    }
    for (int64_t i = 0; i < node->arg_count; i++) {
        if (gar_tree_can_fail(node->args[i])) {
            return true;
        }
    }
    return false;
}

int64_t gar_tree_column(const struct gar_bound *node)
{
    if (node->op == GAR_OP_COLUMN) {
        return node->column;
    }
    int64_t only = -1;
    for (int64_t i = 0; i < node->arg_count; i++) {
        const int64_t column = gar_tree_column(node->args[i]);
        if (column == -2 || (only >= 0 && column >= 0 && column != only)) {
            return -2;
        }
        only = column >= 0 ? column : only;
    }
    return only;
}

/* A text literal is a far view into a table of one buffer, the literal. */
static enum gar_status choose_const(const struct gar_bound *node, struct gar_instr *instr,
                                    struct gar_error *err)
{
    instr->run = gar_run_const;
    if (gar_type_is_text(node->type) && node->value->is_valid) {
        const uint8_t **table = gar_malloc((int64_t)sizeof *table);
        if (table == NULL) {
            return gar_error_nomem(err, (int64_t)sizeof *table);
        }
        table[0] = (const uint8_t *)node->value->text.data;
        instr->state = (void *)table;
        instr->state_free = gar_free;
    }
    return GAR_OK;
}

enum gar_status gar_instr_choose(const struct gar_bound *node, struct gar_instr *instr,
                                 struct gar_error *err)
{
    const struct gar_type of = node->arg_count > 0 ? node->args[0]->type : node->type;
    instr->lane = (uint8_t)gar_type_lane(of);
    switch (node->op) {
    case GAR_OP_COLUMN: instr->run = gar_run_load; return GAR_OK;
    case GAR_OP_CONST: return choose_const(node, instr, err);
    case GAR_OP_ADD:
    case GAR_OP_SUB:
    case GAR_OP_MUL:
    case GAR_OP_FLOOR_DIV:
    case GAR_OP_MOD:
    case GAR_OP_NEG:
    case GAR_OP_ABS:
    case GAR_OP_SIGN:
    case GAR_OP_ROUND:
        return of.id == GAR_DECIMAL128 ? gar_choose_decimal(node, instr, err)
                                       : gar_choose_arith(node, instr, err);
    case GAR_OP_DIV:
    case GAR_OP_MATH1:
    case GAR_OP_MATH2:
    case GAR_OP_BIT_AND:
    case GAR_OP_BIT_OR:
    case GAR_OP_BIT_XOR:
    case GAR_OP_SHIFT_LEFT:
    case GAR_OP_SHIFT_RIGHT: return gar_choose_arith(node, instr, err);
    case GAR_OP_EQ:
    case GAR_OP_NE:
    case GAR_OP_LT:
    case GAR_OP_LE:
    case GAR_OP_GT:
    case GAR_OP_GE:
    case GAR_OP_EQ_SAFE:
    case GAR_OP_LEAST:
    case GAR_OP_GREATEST:
    case GAR_OP_IN_SET: return gar_choose_compare(node, instr, err);
    case GAR_OP_RANGE:
        instr->run = gar_run_range;
        instr->is_strict = true;
        return GAR_OK;
    case GAR_OP_AND:
    case GAR_OP_OR:
    case GAR_OP_XOR:
    case GAR_OP_NOT:
    case GAR_OP_IS_NULL:
    case GAR_OP_NOT_NULL:
    case GAR_OP_COALESCE:
    case GAR_OP_WHEN:
    case GAR_OP_IS_NAN:
    case GAR_OP_NOT_NAN:
    case GAR_OP_IS_INF:
    case GAR_OP_HASH: return gar_choose_logic(node, instr, err);
    case GAR_OP_CAST: return gar_choose_cast(node, instr, err);
    case GAR_OP_LIKE:
    case GAR_OP_CONTAINS:
    case GAR_OP_STARTSWITH:
    case GAR_OP_ENDSWITH:
    case GAR_OP_TEXT1:
    case GAR_OP_LENGTH:
    case GAR_OP_LENGTH_BYTES:
    case GAR_OP_SUBSTR:
    case GAR_OP_RIGHT:
    case GAR_OP_CONCAT:
    case GAR_OP_REPLACE: return gar_choose_text(node, instr, err);
    case GAR_OP_DATE_PART:
    case GAR_OP_DATE_OF:
    case GAR_OP_DATE_TRUNC:
    case GAR_OP_ADD_MONTHS:
    case GAR_OP_ADD_INTERVAL: return gar_choose_time(node, instr, err);
    case GAR_OP_UDF:
        return gar_error_set(err, GAR_ERR_UNSUPPORTED,
                             "a user function cannot be computed here; make a column of it first");
    case GAR_OP_AGGREGATE:
    case GAR_OP_INTERVAL:
    case GAR_OP_GUARD_TRUE:
    case GAR_OP_GUARD_NOT_TRUE:
    case GAR_OP_GUARD_NOT_FALSE:
    case GAR_OP_GUARD_NULL: break;
    }
    return gar_error_set(err, GAR_ERR_INTERNAL, "no instruction for operation %d", (int)node->op);
}

/* --- registers and instructions --- */

static enum gar_status grow(void **items, int64_t *capacity, int64_t want, int64_t item_bytes,
                            struct gar_error *err)
{
    return want <= *capacity ? GAR_OK : gar_grow(items, capacity, want, item_bytes, err);
}

static bool same_operation(const struct gar_bound *a, const struct gar_bound *b)
{
    if (a == b) {
        return true;
    }
    if (a->op != b->op || !gar_type_equal(a->type, b->type) || a->column != b->column ||
        a->is_try != b->is_try || a->set != b->set ||
        memcmp(a->param, b->param, sizeof a->param) != 0) {
        return false;
    }
    if (a->op != GAR_OP_CONST) {
        return true;
    }
    if (a->value->is_valid != b->value->is_valid || !a->value->is_valid) {
        return a->value->is_valid == b->value->is_valid;
    }
    if (gar_type_is_float(a->type)) {
        return memcmp(&a->value->f64, &b->value->f64, sizeof(double)) == 0;
    }
    return gar_value_equal(a->value, b->value);
}

bool gar_bound_same_tree(const struct gar_bound *a, const struct gar_bound *b)
{
    if (a == b) {
        return true;
    }
    if (!same_operation(a, b) || a->arg_count != b->arg_count) {
        return false;
    }
    for (int64_t i = 0; i < a->arg_count; i++) {
        if (!gar_bound_same_tree(a->args[i], b->args[i])) {
            return false;
        }
    }
    return true;
}

/* The register of a look-up of the same tree in its table, or -1. */
static int32_t find_hoisted(const struct compiler *compiler, const struct gar_bound *node)
{
    for (int64_t i = 0; i < compiler->seen_count; i++) {
        if (compiler->seen[i].guard == HOISTED &&
            gar_bound_same_tree(compiler->seen[i].node, node)) {
            return compiler->seen[i].reg;
        }
    }
    return -1;
}

static int32_t find_seen(const struct compiler *compiler, const struct gar_bound *node,
                         const int32_t *args, int32_t arg_count, int32_t guard)
{
    for (int64_t i = 0; i < compiler->seen_count; i++) {
        const struct seen *seen = &compiler->seen[i];
        if (seen->guard == guard && seen->arg_count == arg_count &&
            same_operation(seen->node, node) &&
            (arg_count == 0 || memcmp(seen->args, args, (size_t)arg_count * sizeof *args) == 0)) {
            return seen->reg;
        }
    }
    return -1;
}

/* A new instruction with a register of its own. args are moved (arena). */
static enum gar_status emit(struct compiler *compiler, const struct gar_bound *node, int32_t *args,
                            int32_t arg_count, int32_t guard, struct gar_instr **out,
                            struct gar_error *err)
{
    struct gar_variant *variant = compiler->variant;
    void *instrs = variant->instrs;
    GAR_TRY(grow(&instrs, &compiler->instr_capacity, variant->instr_count + 1,
                 (int64_t)sizeof(struct gar_instr), err));
    variant->instrs = instrs;
    void *seen = compiler->seen;
    GAR_TRY(grow(&seen, &compiler->seen_capacity, compiler->seen_count + 1,
                 (int64_t)sizeof(struct seen), err));
    compiler->seen = seen;
    struct gar_instr *instr = &variant->instrs[variant->instr_count++];
    memset(instr, 0, sizeof *instr);
    instr->node = node;
    instr->out = variant->reg_count++;
    instr->guard = guard >= 0 ? guard : -1;
    instr->args = args;
    instr->arg_count = arg_count;
    instr->output = -1;
    compiler->seen[compiler->seen_count++] =
        (struct seen){node, guard, instr->out, arg_count, args};
    *out = instr;
    return GAR_OK;
}

static enum gar_status compile_node(struct compiler *compiler, const struct gar_bound *node,
                                    int32_t guard, int32_t *out, struct gar_error *err);

static enum gar_status new_args(struct compiler *compiler, int64_t count, int32_t **out,
                                struct gar_error *err)
{
    *out = gar_arena_calloc(&compiler->variant->arena, count + 1, (int64_t)sizeof **out);
    return *out != NULL ? GAR_OK : gar_error_nomem(err, count * (int64_t)sizeof **out);
}

/* guard AND a test of reg, as a guard register. */
static enum gar_status make_guard(struct compiler *compiler, enum gar_op test, int32_t guard,
                                  int32_t reg, int32_t *out, struct gar_error *err)
{
    struct gar_bound *node = gar_arena_calloc(&compiler->variant->arena, 1, (int64_t)sizeof *node);
    int32_t *args = NULL;
    GAR_TRY(new_args(compiler, 2, &args, err));
    if (node == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *node);
    }
    node->op = test;
    node->type = gar_type_of(GAR_BOOL);
    args[0] = reg;
    args[1] = guard;
    const int32_t arg_count = guard >= 0 ? 2 : 1;
    *out = find_seen(compiler, node, args, arg_count, -1);
    if (*out >= 0) {
        return GAR_OK;
    }
    struct gar_instr *instr = NULL;
    GAR_TRY(emit(compiler, node, args, arg_count, -1, &instr, err));
    instr->run = gar_run_guard;
    *out = instr->out;
    return GAR_OK;
}

/* Arguments of the operations that look at some of their arguments only where others say so. */
static enum gar_status compile_args(struct compiler *compiler, const struct gar_bound *node,
                                    int32_t guard, int32_t *args, struct gar_error *err)
{
    int32_t inner = guard;
    const bool can_fail = node->op == GAR_OP_COALESCE && gar_tree_can_fail(node);
    for (int64_t i = 0; i < node->arg_count; i++) {
        const struct gar_bound *arg = node->args[i];
        const bool has_fallible_rest =
            i + 1 < node->arg_count && gar_tree_can_fail(node->args[i + 1]);
        GAR_TRY(compile_node(compiler, arg, inner, &args[i], err));
        switch (node->op) {
        case GAR_OP_AND:
            if (has_fallible_rest) {
                GAR_TRY(make_guard(compiler, GAR_OP_GUARD_NOT_FALSE, guard, args[i], &inner, err));
            }
            break;
        case GAR_OP_OR:
            if (has_fallible_rest) {
                GAR_TRY(make_guard(compiler, GAR_OP_GUARD_NOT_TRUE, guard, args[i], &inner, err));
            }
            break;
        case GAR_OP_COALESCE:
            if (i + 1 < node->arg_count && can_fail) {
                GAR_TRY(make_guard(compiler, GAR_OP_GUARD_NULL, inner, args[i], &inner, err));
            }
            break;
        default: break;
        }
    }
    return GAR_OK;
}

static enum gar_status compile_when_args(struct compiler *compiler, const struct gar_bound *node,
                                         int32_t guard, int32_t *args, struct gar_error *err)
{
    int32_t rest = guard; /* rows that took no branch yet */
    const bool can_fail = gar_tree_can_fail(node);
    for (int64_t i = 0; i + 1 < node->arg_count; i += 2) {
        GAR_TRY(compile_node(compiler, node->args[i], rest, &args[i], err));
        int32_t taken = -1;
        if (can_fail) {
            GAR_TRY(make_guard(compiler, GAR_OP_GUARD_TRUE, rest, args[i], &taken, err));
            GAR_TRY(make_guard(compiler, GAR_OP_GUARD_NOT_TRUE, rest, args[i], &rest, err));
        }
        GAR_TRY(compile_node(compiler, node->args[i + 1], taken, &args[i + 1], err));
    }
    return compile_node(compiler, node->args[node->arg_count - 1], rest, &args[node->arg_count - 1],
                        err);
}

/* Position of a column among those of the program, or 64 and more: not in signatures. */
static int64_t used_position(const struct gar_program *program, int64_t column)
{
    for (int64_t i = 0; i < program->used_count; i++) {
        if (program->used[i] == column) {
            return i;
        }
    }
    return INT64_MAX;
}

static bool is_hoisted(const struct compiler *compiler, const struct gar_bound *node)
{
    if (compiler->variant->signature == 0 || node->op == GAR_OP_COLUMN ||
        node->op == GAR_OP_CONST) {
        return false;
    }
    const int64_t column = gar_tree_column(node);
    if (column < 0) {
        return false;
    }
    const int64_t position = used_position(compiler->eval->program, column);
    return position < 64 && (compiler->variant->signature >> position & 1) != 0;
}

static enum gar_status emit_hoist(struct compiler *compiler, const struct gar_bound *node,
                                  int32_t *out, struct gar_error *err)
{
    struct gar_variant *variant = compiler->variant;
    struct gar_hoist *hoist = gar_arena_calloc(&variant->arena, 1, (int64_t)sizeof *hoist);
    if (hoist == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *hoist);
    }
    hoist->column = gar_tree_column(node);
    hoist->node = node;
    hoist->next = variant->hoists;
    variant->hoists = hoist;
    struct gar_instr *instr = NULL;
    GAR_TRY(emit(compiler, node, NULL, 0, HOISTED, &instr, err));
    instr->run = gar_run_hoisted;
    instr->hoist = hoist;
    *out = instr->out;
    return GAR_OK;
}

/* A cast between decimals of one scale to at least the same precision changes nothing in registers. */
static bool is_free_cast(const struct gar_bound *node)
{
    if (node->op != GAR_OP_CAST) {
        return false;
    }
    const struct gar_type from = node->args[0]->type;
    const struct gar_type to = node->type;
    if (from.id == GAR_DECIMAL128 && to.id == GAR_DECIMAL128) {
        return from.scale == to.scale && from.precision <= to.precision;
    }
    /* instants are the same whatever the zone; 64-bit times keep their ticks */
    if (from.id == GAR_TIMESTAMP && to.id == GAR_TIMESTAMP) {
        return from.unit == to.unit && (from.zone == NULL) == (to.zone == NULL);
    }
    const bool is_date_as_number =
        (from.id == GAR_DATE && to.id == GAR_INT32) || (from.id == GAR_INT32 && to.id == GAR_DATE);
    const bool is_ticks =
        (from.id == GAR_INT64 && (to.id == GAR_TIMESTAMP || to.id == GAR_DURATION)) ||
        (to.id == GAR_INT64 && gar_type_is_temporal(from) && from.id != GAR_DATE);
    return is_date_as_number || is_ticks || (from.id == GAR_STRING && to.id == GAR_BINARY);
}

static enum gar_status compile_node(struct compiler *compiler, const struct gar_bound *node,
                                    int32_t guard, int32_t *out, struct gar_error *err)
{
    if (is_hoisted(compiler, node)) {
        *out = find_hoisted(compiler, node);
        return *out >= 0 ? GAR_OK : emit_hoist(compiler, node, out, err);
    }
    if (is_free_cast(node)) {
        return compile_node(compiler, node->args[0], guard, out, err);
    }
    int32_t *args = NULL;
    GAR_TRY(new_args(compiler, node->arg_count, &args, err));
    if (node->op == GAR_OP_WHEN) {
        GAR_TRY(compile_when_args(compiler, node, guard, args, err));
    } else {
        GAR_TRY(compile_args(compiler, node, guard, args, err));
    }
    const int32_t own_guard = gar_node_can_fail(node) ? guard : -1;
    *out = find_seen(compiler, node, args, (int32_t)node->arg_count, own_guard);
    if (*out >= 0) {
        return GAR_OK;
    }
    struct gar_instr *instr = NULL;
    GAR_TRY(emit(compiler, node, args, (int32_t)node->arg_count, own_guard, &instr, err));
    *out = instr->out;
    GAR_TRY(gar_instr_choose(node, instr, err));
    if (node->op == GAR_OP_COLUMN) {
        const int64_t position = used_position(compiler->eval->program, node->column);
        instr->used = position < 64 ? (int32_t)position : -1;
    }
    if (gar_type_is_text(node->type) && node->op != GAR_OP_COLUMN && node->op != GAR_OP_CONST) {
        instr->sink = gar_arena_calloc(&compiler->variant->arena, 1, (int64_t)sizeof *instr->sink);
        if (instr->sink == NULL) {
            return gar_error_nomem(err, (int64_t)sizeof *instr->sink);
        }
        instr->sink->memory = compiler->eval->memory;
    }
    return GAR_OK;
}

/* --- scratch --- */

/* Bytes of a full vector of the type in a register. */
static int64_t register_bytes(struct gar_type type)
{
    if (type.id == GAR_BOOL || type.id == GAR_NULL) {
        return GAR_VECTOR_WORDS * 8;
    }
    return (int64_t)gar_type_width(type) * GAR_VECTOR_ROWS;
}

struct slots {
    int64_t *offset; /* of each slot in scratch */
    int64_t *bytes;
    bool *is_free;
    int64_t count;
    int64_t total;
};

/* A slot of this size: a free one, or, if it must be `fresh`, one that no register used before. */
static int64_t take_slot(struct slots *slots, int64_t bytes, bool fresh)
{
    for (int64_t i = 0; i < slots->count && !fresh; i++) {
        if (slots->is_free[i] && slots->bytes[i] == bytes) {
            slots->is_free[i] = false;
            return i;
        }
    }
    const int64_t i = slots->count++;
    slots->offset[i] = slots->total;
    slots->bytes[i] = bytes;
    slots->is_free[i] = false;
    slots->total += bytes;
    return i;
}

/* The slot of each register, reusing those whose last reader is past. A constant is written for the first vector only: its
 * slot must not have held a register that comes before it, which would be written again for the second. */
static void assign_slots(const struct gar_variant *variant, const int64_t *last_use,
                         struct slots *slots, int64_t *slot_of)
{
    for (int64_t i = 0; i < variant->instr_count; i++) {
        const struct gar_instr *instr = &variant->instrs[i];
        slot_of[instr->out] =
            take_slot(slots, register_bytes(instr->node->type), instr->run == gar_run_const);
        for (int64_t r = 0; r <= instr->out; r++) {
            if (last_use[r] == i && r != instr->out) {
                slots->is_free[slot_of[r]] = true;
            }
        }
    }
}

static void find_last_uses(const struct gar_variant *variant, int64_t *last_use)
{
    for (int64_t i = 0; i < variant->instr_count; i++) {
        const struct gar_instr *instr = &variant->instrs[i];
        for (int32_t a = 0; a < instr->arg_count; a++) {
            last_use[instr->args[a]] = i;
        }
        if (instr->guard >= 0) {
            last_use[instr->guard] = i;
        }
    }
    for (int64_t i = 0; i < variant->instr_count; i++) {
        const struct gar_instr *instr = &variant->instrs[i];
        if (instr->run == gar_run_const) {
            last_use[instr->out] = INT64_MAX; /* written once for all vectors */
        }
    }
    for (int32_t i = 0; i < variant->output_count; i++) {
        last_use[variant->outputs[i]] = INT64_MAX;
    }
}

static enum gar_status make_registers(struct compiler *compiler, struct gar_error *err)
{
    struct gar_variant *variant = compiler->variant;
    const int64_t count = variant->reg_count + 1;
    struct gar_arena work = {0};
    int64_t *last_use = gar_arena_calloc(&work, count, (int64_t)sizeof *last_use);
    int64_t *slot_of = gar_arena_calloc(&work, count, (int64_t)sizeof *slot_of);
    struct slots slots = {.offset = gar_arena_calloc(&work, count, (int64_t)sizeof(int64_t)),
                          .bytes = gar_arena_calloc(&work, count, (int64_t)sizeof(int64_t)),
                          .is_free = gar_arena_calloc(&work, count, (int64_t)sizeof(bool))};
    variant->regs = gar_calloc(count, (int64_t)sizeof *variant->regs);
    enum gar_status status = GAR_OK;
    if (last_use == NULL || slot_of == NULL || slots.offset == NULL || slots.bytes == NULL ||
        slots.is_free == NULL || variant->regs == NULL) {
        status = gar_error_nomem(err, count * (int64_t)sizeof *variant->regs);
    } else {
        find_last_uses(variant, last_use);
        assign_slots(variant, last_use, &slots, slot_of);
        status = gar_buffer_new(compiler->eval->memory, slots.total, &variant->scratch, err);
    }
    if (status >= 0) {
        for (int64_t i = 0; i < variant->instr_count; i++) {
            struct gar_reg *reg = &variant->regs[variant->instrs[i].out];
            reg->own = variant->scratch->data + slots.offset[slot_of[variant->instrs[i].out]];
        }
    }
    gar_arena_destroy(&work);
    return status;
}

/* The instruction that writes an output's register may write into the output column itself, if its values lie there as
 * they lie in registers. */
static void mark_outputs(struct gar_variant *variant)
{
    for (int32_t o = 0; o < variant->output_count; o++) {
        for (int64_t i = 0; i < variant->instr_count; i++) {
            struct gar_instr *instr = &variant->instrs[i];
            const bool is_plain = instr->run != gar_run_load && instr->run != gar_run_const;
            if (instr->out == variant->outputs[o] && instr->output < 0 && is_plain) {
                instr->output = o;
            }
        }
    }
}

void gar_variant_free(struct gar_variant *variant)
{
    if (variant == NULL) {
        return;
    }
    for (int64_t i = 0; i < variant->instr_count; i++) {
        struct gar_instr *instr = &variant->instrs[i];
        if (instr->state_free != NULL) {
            instr->state_free(instr->state);
        }
        if (instr->sink != NULL) {
            gar_text_sink_destroy(instr->sink);
        }
    }
    for (struct gar_hoist *hoist = variant->hoists; hoist != NULL; hoist = hoist->next) {
        gar_variant_free(hoist->variant);
        gar_column_unref(hoist->table);
        gar_free(hoist->flags);
        gar_free(hoist->narrow.values);
    }
    gar_free(variant->instrs);
    gar_free(variant->regs);
    gar_buffer_unref(variant->scratch);
    struct gar_arena arena = variant->arena;
    gar_free(variant);
    gar_arena_destroy(&arena);
}

enum gar_status gar_variant_new(struct gar_eval *eval, const struct gar_bound *const *roots,
                                int64_t count, uint64_t signature, struct gar_variant **out,
                                struct gar_error *err)
{
    struct gar_variant *variant = gar_calloc(1, (int64_t)sizeof *variant);
    if (variant == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *variant);
    }
    variant->signature = signature;
    struct compiler compiler = {.eval = eval, .variant = variant};
    variant->outputs =
        gar_arena_calloc(&variant->arena, count + 1, (int64_t)sizeof *variant->outputs);
    variant->roots = gar_arena_calloc(&variant->arena, count + 1, (int64_t)sizeof *variant->roots);
    enum gar_status status = GAR_OK;
    if (variant->outputs == NULL || variant->roots == NULL) {
        status = gar_error_nomem(err, count * (int64_t)sizeof *variant->outputs);
    }
    for (int64_t i = 0; status >= 0 && i < count; i++) {
        variant->roots[i] = roots[i];
        status = compile_node(&compiler, roots[i], -1, &variant->outputs[i], err);
        variant->output_count = (int32_t)(i + 1);
    }
    if (status >= 0) {
        status = make_registers(&compiler, err);
    }
    gar_free(compiler.seen);
    if (status < 0) {
        gar_variant_free(variant);
        return status;
    }
    mark_outputs(variant);
    *out = variant;
    return GAR_OK;
}
