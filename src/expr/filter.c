/* SPDX-License-Identifier: Apache-2.0 */
/* Predicates as selections. The conjuncts are stages: the first ones look at every row of the batch and their
 * bitmaps are joined, the later ones at the rows that are left. How many are first is learned from batch to batch;
 * a stage that can fail is never first unless it stands first. */
#include "base/alloc.h"
#include "expr/eval_priv.h"

/* Above this share of rows left, the next stage looks at all rows too; below the second, one stage fewer does. */
#define DENSE_SHARE  0.4
#define SPARSE_SHARE 0.2
/* What gar_vector_kernels.select writes beyond its result. */
#define SELECT_SLACK 16

/* true-and-valid bits of a stage's result. */
static void true_bits(const struct gar_reg *reg, int64_t n, uint64_t *bits)
{
    for (int64_t w = 0; w < gar_words(n); w++) {
        bits[w] = gar_bool_word(reg, w) & gar_valid_word(reg, w) & gar_word_mask(n, w);
    }
}

static bool is_empty(const uint64_t *bits, int64_t n)
{
    uint64_t any = 0;
    for (int64_t w = 0; w < gar_words(n); w++) {
        any |= bits[w];
    }
    return any == 0;
}

static enum gar_status run_stage(struct gar_eval *eval, struct gar_variant *variant, int64_t n,
                                 uint64_t *bits, struct gar_error *err)
{
    eval->variant = variant;
    GAR_TRY(gar_variant_step(eval, variant, n, err));
    true_bits(&variant->regs[variant->outputs[0]], n, bits);
    return GAR_OK;
}

/* Stages [first, last) over rows (or all of 0..count-1); the rows that pass go to out, which may be rows. */
static enum gar_status run_stages(struct gar_eval *eval, struct gar_variant **stages, int64_t first,
                                  int64_t last, const uint32_t *rows, int64_t count, uint32_t *out,
                                  int64_t *out_count, struct gar_error *err)
{
    int64_t passed = 0;
    for (int64_t at = 0; at < count; at += GAR_VECTOR_ROWS) {
        const int64_t n = gar_min_i64(GAR_VECTOR_ROWS, count - at);
        uint64_t bits[GAR_VECTOR_WORDS];
        eval->rows = rows != NULL ? rows + at : NULL;
        eval->base = at;
        GAR_TRY(run_stage(eval, stages[first], n, bits, err));
        for (int64_t s = first + 1; s < last && !is_empty(bits, n); s++) {
            uint64_t more[GAR_VECTOR_WORDS];
            GAR_TRY(run_stage(eval, stages[s], n, more, err));
            for (int64_t w = 0; w < gar_words(n); w++) {
                bits[w] &= more[w];
            }
        }
        if (rows != NULL) {
            /* never writes past what has been read: passed <= at, and the slack lies before the next vector or the end */
            uint32_t chosen[GAR_VECTOR_ROWS + SELECT_SLACK];
            const int64_t k = eval->kernels->select_rows(bits, n, rows + at, chosen);
            memcpy(out + passed, chosen, (size_t)k * sizeof *chosen);
            passed += k;
        } else {
            passed += eval->kernels->select(bits, n, (uint32_t)at, out + passed);
        }
    }
    *out_count = passed;
    return GAR_OK;
}

static void learn(struct gar_eval *eval, int64_t dense, int64_t rows, int64_t passed)
{
    const struct gar_program *program = eval->program;
    const double share = (double)passed / (double)rows;
    if (share > DENSE_SHARE && dense < program->stage_count && !program->stage_can_fail[dense]) {
        eval->dense_stages = (int32_t)dense + 1;
    } else if (share < SPARSE_SHARE && dense > 1) {
        eval->dense_stages = (int32_t)dense - 1;
    }
}

static enum gar_status run_filter(struct gar_eval *eval, const struct gar_batch *batch,
                                  struct gar_variant **stages, uint32_t *out, int64_t *out_count,
                                  struct gar_error *err)
{
    const int64_t stage_count = eval->program->stage_count;
    eval->columns = batch->columns;
    const int64_t dense = gar_min_i64(eval->dense_stages, stage_count);
    int64_t passed = 0;
    GAR_TRY(
        run_stages(eval, stages, 0, dense, batch->selection, batch->selected, out, &passed, err));
    learn(eval, dense, batch->selected, passed);
    for (int64_t s = dense; s < stage_count && passed > 0; s++) {
        GAR_TRY(run_stages(eval, stages, s, s + 1, out, passed, out, &passed, err));
    }
    *out_count = passed;
    return GAR_OK;
}

static enum gar_status choose_stages(struct gar_eval *eval, const struct gar_batch *batch,
                                     struct gar_variant **stages, struct gar_error *err)
{
    const uint64_t signature = gar_eval_signature(eval, batch->columns, batch->selected);
    for (int64_t s = 0; s < eval->program->stage_count; s++) {
        const struct gar_bound *roots[1] = {eval->program->stages[s]};
        GAR_TRY(gar_variant_choose(eval, &eval->stage_variants[s], roots, 1, batch->columns,
                                   signature, &stages[s], err));
    }
    return GAR_OK;
}

enum gar_status gar_eval_filter(struct gar_eval *eval, const struct gar_batch *batch,
                                struct gar_buffer **out_selection, int64_t *out_selected,
                                struct gar_error *err)
{
    const int64_t stage_count = eval->program->stage_count;
    if (eval->program->output_count != 1 || stage_count == 0) {
        if (eval->program->output_count == 1 && eval->program->outputs[0]->type.id == GAR_NULL) {
            *out_selected = 0; /* a null of no type passes no row */
            return gar_buffer_new(eval->memory, 0, out_selection, err);
        }
        return gar_error_set(err, GAR_ERR_INTERNAL,
                             "a filter needs a program of one boolean output");
    }
    struct gar_variant **stages = gar_calloc(stage_count, (int64_t)sizeof *stages);
    if (stages == NULL) {
        return gar_error_nomem(err, stage_count * (int64_t)sizeof *stages);
    }
    struct gar_buffer *selection = NULL;
    int64_t passed = 0;
    enum gar_status status = choose_stages(eval, batch, stages, err);
    if (status >= 0) {
        status = gar_buffer_new(eval->memory,
                                (batch->selected + SELECT_SLACK) * (int64_t)sizeof(uint32_t),
                                &selection, err);
    }
    if (status >= 0 && batch->selected > 0) {
        eval->batch = batch;
        status = run_filter(eval, batch, stages, (uint32_t *)(void *)selection->data, &passed, err);
        eval->batch = NULL;
    }
    gar_free(stages);
    if (status < 0) {
        gar_buffer_unref(selection);
        return status;
    }
    *out_selected = passed;
    if (passed == batch->rows && batch->selection == NULL) {
        gar_buffer_unref(selection);
        selection = NULL;
    }
    *out_selection = selection;
    return GAR_OK;
}
