/* SPDX-License-Identifier: Apache-2.0 */
/* Programs and evaluators: making, sharing, choosing the variant for a batch. */
#include "expr/program.h"

#include "base/alloc.h"
#include "expr/eval_priv.h"
#include "expr/fold_priv.h"

/* --- programs --- */

static enum gar_status use_column(struct gar_program *program, int64_t column,
                                  struct gar_error *err)
{
    for (int64_t i = 0; i < program->used_count; i++) {
        if (program->used[i] == column) {
            return GAR_OK;
        }
    }
    int64_t *grown = gar_realloc(program->used, (program->used_count + 1) * (int64_t)sizeof *grown);
    if (grown == NULL) {
        return gar_error_nomem(err, (program->used_count + 1) * (int64_t)sizeof *grown);
    }
    program->used = grown;
    program->used[program->used_count++] = column;
    return GAR_OK;
}

static enum gar_status use_columns(struct gar_program *program, const struct gar_bound *node,
                                   struct gar_error *err)
{
    if (node->op == GAR_OP_COLUMN) {
        return use_column(program, node->column, err);
    }
    for (int64_t i = 0; i < node->arg_count; i++) {
        GAR_TRY(use_columns(program, node->args[i], err));
    }
    return GAR_OK;
}

static int64_t count_conjuncts(const struct gar_bound *node)
{
    return node->op == GAR_OP_AND ? count_conjuncts(node->args[0]) + count_conjuncts(node->args[1])
                                  : 1;
}

/* Appends the conjuncts of node, left to right; neighbours of one column alone become one stage. */
static enum gar_status add_stages(struct gar_program *program, struct gar_bound *node,
                                  struct gar_error *err)
{
    if (node->op == GAR_OP_AND) {
        GAR_TRY(add_stages(program, node->args[0], err));
        return add_stages(program, node->args[1], err);
    }
    const int64_t last = program->stage_count - 1;
    const int64_t column = gar_tree_column(node);
    if (last >= 0 && column >= 0 && gar_tree_column(program->stages[last]) == column) {
        struct gar_bound *range = NULL;
        GAR_TRY(gar_bound_join_range(&program->binder, program->stages[last], node, &range, err));
        if (range != NULL) {
            program->stages[last] = range;
            return GAR_OK;
        }
        struct gar_bound *pair[2] = {program->stages[last], node};
        return gar_bound_new(&program->binder, GAR_OP_AND, gar_type_of(GAR_BOOL), pair, 2,
                             &program->stages[last], err);
    }
    program->stages[program->stage_count++] = node;
    return GAR_OK;
}

static enum gar_status make_stages(struct gar_program *program, struct gar_error *err)
{
    if (program->output_count != 1 || program->outputs[0]->type.id != GAR_BOOL) {
        return GAR_OK;
    }
    const int64_t count = count_conjuncts(program->outputs[0]);
    program->stages =
        gar_arena_calloc(&program->binder.arena, count, (int64_t)sizeof(struct gar_bound *));
    program->stage_can_fail =
        gar_arena_calloc(&program->binder.arena, count, (int64_t)sizeof(bool));
    if (program->stages == NULL || program->stage_can_fail == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof(struct gar_bound *));
    }
    GAR_TRY(add_stages(program, program->outputs[0], err));
    for (int64_t i = 0; i < program->stage_count; i++) {
        program->stage_can_fail[i] = gar_tree_can_fail(program->stages[i]);
    }
    return GAR_OK;
}

static enum gar_status bind_outputs(struct gar_program *program, struct gar_expr *const *exprs,
                                    struct gar_error *err)
{
    for (int64_t i = 0; i < program->output_count; i++) {
        GAR_TRY(gar_bind(&program->binder, exprs[i], &program->outputs[i], err));
        if (program->outputs[i]->op == GAR_OP_INTERVAL) {
            return gar_error_set(
                err, GAR_ERR_TYPE,
                "an interval is no value of its own; add it to a date or timestamp");
        }
        GAR_TRY(gar_bound_fold_parts(&program->binder, &program->outputs[i], err));
        GAR_TRY(gar_bound_join_ranges(&program->binder, &program->outputs[i], err));
        GAR_TRY(use_columns(program, program->outputs[i], err));
    }
    return make_stages(program, err);
}

enum gar_status gar_program_new(const struct gar_schema *input, struct gar_expr *const *exprs,
                                int64_t count, struct gar_program **out, struct gar_error *err)
{
    struct gar_program *program = gar_calloc(1, (int64_t)sizeof *program);
    if (program == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *program);
    }
    program->refs = 1;
    program->schema = gar_schema_ref(input);
    program->binder.schema = program->schema;
    program->output_count = count;
    program->outputs =
        gar_arena_calloc(&program->binder.arena, count + 1, (int64_t)sizeof(struct gar_bound *));
    enum gar_status status = program->outputs == NULL
                                 ? gar_error_nomem(err, count * (int64_t)sizeof(void *))
                                 : bind_outputs(program, exprs, err);
    if (status < 0) {
        gar_program_unref(program);
        return status;
    }
    *out = program;
    return GAR_OK;
}

struct gar_program *gar_program_ref(const struct gar_program *program)
{
    struct gar_program *shared = NULL;
    memcpy(&shared, &program, sizeof shared);
    __atomic_fetch_add(&shared->refs, 1, __ATOMIC_RELAXED);
    return shared;
}

void gar_program_unref(struct gar_program *program)
{
    if (program == NULL || __atomic_sub_fetch(&program->refs, 1, __ATOMIC_ACQ_REL) != 0) {
        return;
    }
    gar_schema_unref(program->schema);
    gar_free(program->used);
    gar_binder_destroy(&program->binder);
    gar_free(program);
}

int64_t gar_program_output_count(const struct gar_program *program)
{
    return program->output_count;
}

struct gar_type gar_program_output_type(const struct gar_program *program, int64_t i)
{
    return program->outputs[i]->type;
}

/* --- evaluators --- */

enum gar_status gar_eval_new(const struct gar_program *program, struct gar_memory *memory,
                             struct gar_eval **out, struct gar_error *err)
{
    struct gar_eval *eval = gar_calloc(1, (int64_t)sizeof *eval);
    if (eval == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *eval);
    }
    eval->program = gar_program_ref(program);
    eval->memory = memory;
    eval->kernels = gar_vector_kernels();
    eval->dense_stages = 1;
    const int64_t wide_bytes = GAR_VECTOR_ROWS * (int64_t)sizeof(gar_i128);
    eval->wide_temp[0] = gar_malloc(wide_bytes);
    eval->wide_temp[1] = gar_malloc(wide_bytes);
    eval->code_temp = gar_malloc(GAR_VECTOR_ROWS * (int64_t)sizeof(uint32_t));
    eval->stage_variants =
        gar_calloc(program->stage_count + 1, (int64_t)sizeof *eval->stage_variants);
    eval->uses = gar_calloc(gar_min_i64(program->used_count, 64) + 1, (int64_t)sizeof *eval->uses);
    if (eval->uses == NULL || eval->wide_temp[0] == NULL || eval->wide_temp[1] == NULL ||
        eval->code_temp == NULL || eval->stage_variants == NULL) {
        gar_eval_free(eval);
        return gar_error_nomem(err, wide_bytes);
    }
    *out = eval;
    return GAR_OK;
}

static void free_variants(struct gar_variant *variant)
{
    while (variant != NULL) {
        struct gar_variant *next = variant->next;
        gar_variant_free(variant);
        variant = next;
    }
}

void gar_eval_free(struct gar_eval *eval)
{
    if (eval == NULL) {
        return;
    }
    free_variants(eval->variants);
    for (int64_t i = 0; eval->stage_variants != NULL && i < eval->program->stage_count; i++) {
        free_variants(eval->stage_variants[i]);
    }
    gar_free(eval->stage_variants);
    for (int64_t i = 0; eval->uses != NULL && i < eval->program->used_count && i < 64; i++) {
        gar_free(eval->uses[i].narrow.values);
    }
    gar_free(eval->uses);
    gar_free(eval->wide_temp[0]);
    gar_free(eval->wide_temp[1]);
    gar_free(eval->code_temp);
    gar_program_unref(eval->program);
    gar_free(eval);
}

/* A dictionary is worked on when it is clearly shorter than the rows that have used it. */
static bool is_dictionary_worth(const struct gar_column *column, int64_t rows,
                                struct gar_dictionary_use *use)
{
    if (column->encoding != GAR_DICTIONARY) {
        return false;
    }
    if (use->dictionary_id != column->dictionary_id) {
        use->dictionary_id = column->dictionary_id;
        use->rows = 0;
    }
    use->rows += rows;
    return column->dictionary->length <= use->rows / 2;
}

uint64_t gar_eval_signature(struct gar_eval *eval, struct gar_column *const *columns, int64_t rows)
{
    uint64_t signature = 0;
    for (int64_t i = 0; i < eval->program->used_count && i < 64; i++) {
        if (is_dictionary_worth(columns[eval->program->used[i]], rows, &eval->uses[i])) {
            signature |= UINT64_C(1) << i;
        }
    }
    return signature;
}

enum gar_status gar_variant_get(struct gar_eval *eval, struct gar_variant **list,
                                const struct gar_bound *const *roots, int64_t count,
                                uint64_t signature, struct gar_variant **out, struct gar_error *err)
{
    int64_t length = 0;
    for (struct gar_variant *variant = *list; variant != NULL; variant = variant->next) {
        if (variant->signature == signature) {
            *out = variant;
            return GAR_OK;
        }
        length++;
    }
    /* columns whose encodings change from batch to batch must not pile up variants */
    const int64_t variants_max = 8;
    if (length >= variants_max) {
        free_variants(*list);
        *list = NULL;
    }
    struct gar_variant *variant = NULL;
    GAR_TRY(gar_variant_new(eval, roots, count, signature, &variant, err));
    variant->next = *list;
    *list = variant;
    *out = variant;
    return GAR_OK;
}

/* Narrow copies of the decimal dictionaries that are worked on. */
static enum gar_status prepare_narrow(struct gar_eval *eval, struct gar_column *const *columns,
                                      uint64_t signature, struct gar_error *err)
{
    for (int64_t i = 0; i < eval->program->used_count && i < 64; i++) {
        const struct gar_column *column = columns[eval->program->used[i]];
        if ((signature >> i & 1) != 0 && column->type.id == GAR_DECIMAL128) {
            GAR_TRY(gar_narrow_prepare(eval, &eval->uses[i].narrow, column->dictionary,
                                       column->dictionary_id, err));
        }
    }
    return GAR_OK;
}

/* Tables for all hoists of a variant; *signature loses the columns whose entries raise errors. */
static enum gar_status prepare_hoists(struct gar_eval *eval, struct gar_variant *variant,
                                      struct gar_column *const *columns, uint64_t *signature,
                                      struct gar_error *err)
{
    for (struct gar_hoist *hoist = variant->hoists; hoist != NULL; hoist = hoist->next) {
        bool is_done = false;
        GAR_TRY(gar_hoist_prepare(eval, hoist, columns[hoist->column], &is_done, err));
        for (int64_t i = 0; !is_done && i < eval->program->used_count && i < 64; i++) {
            if (eval->program->used[i] == hoist->column) {
                *signature &= ~(UINT64_C(1) << i);
            }
        }
    }
    return GAR_OK;
}

/* The variant to run over these columns, its tables made. */
enum gar_status gar_variant_choose(struct gar_eval *eval, struct gar_variant **list,
                                   const struct gar_bound *const *roots, int64_t count,
                                   struct gar_column *const *columns, uint64_t signature,
                                   struct gar_variant **out, struct gar_error *err)
{
    GAR_TRY(prepare_narrow(eval, columns, signature, err));
    for (;;) {
        GAR_TRY(gar_variant_get(eval, list, roots, count, signature, out, err));
        uint64_t kept = signature;
        GAR_TRY(prepare_hoists(eval, *out, columns, &kept, err));
        if (kept == signature) {
            return GAR_OK;
        }
        signature = kept;
    }
}

enum gar_status gar_eval_run(struct gar_eval *eval, const struct gar_batch *batch,
                             struct gar_column **out, struct gar_error *err)
{
    const struct gar_program *program = eval->program;
    const struct gar_bound *const *roots = (const struct gar_bound *const *)program->outputs;
    struct gar_variant *variant = NULL;
    const uint64_t signature = gar_eval_signature(eval, batch->columns, batch->selected);
    GAR_TRY(gar_variant_choose(eval, &eval->variants, roots, program->output_count, batch->columns,
                               signature, &variant, err));
    eval->batch = batch;
    const enum gar_status status =
        gar_variant_run(eval, variant, batch->columns, batch->selection, batch->selected, out, err);
    eval->batch = NULL;
    return status;
}
