/* SPDX-License-Identifier: Apache-2.0 */
/* Running a variant: vectors through the instruction list, results into columns. */
#include "arrow/gather.h"
#include "base/alloc.h"
#include "expr/eval_priv.h"

/* --- one instruction --- */

/* A strict result's validity from its arguments'. Returns false when it is null for all rows. */
static bool join_validity(struct gar_reg **args, int32_t count, struct gar_reg *out, int64_t n)
{
    for (int32_t a = 0; a < count; a++) {
        const struct gar_reg *arg = args[a];
        if (arg->is_const && arg->is_null) {
            return false;
        }
        if (arg->is_const || arg->valid == NULL) {
            continue;
        }
        if (out->valid == NULL) {
            memcpy(out->own_valid, arg->valid, (size_t)gar_words(n) * 8);
            out->valid = out->own_valid;
            continue;
        }
        for (int64_t w = 0; w < gar_words(n); w++) {
            out->own_valid[w] &= arg->valid[w];
        }
    }
    return true;
}

static void set_const_null(struct gar_reg *out, struct gar_type type)
{
    out->values = out->own;
    out->is_const = true;
    out->is_null = true;
    out->full_rows = 0;
    out->is_wide = false;
    out->bound = 0;
    memset(out->own, 0, type.id == GAR_BOOL || type.id == GAR_NULL ? 8 : 16);
}

enum { ARGS_ON_STACK = 8 };

static enum gar_status run_instr(struct gar_eval *eval, const struct gar_variant *variant,
                                 const struct gar_instr *instr, struct gar_reg **args, void *target,
                                 int64_t n, struct gar_error *err)
{
    struct gar_reg *out = &variant->regs[instr->out];
    if (instr->run == gar_run_const && out->is_const) {
        return GAR_OK; /* written once */
    }
    bool is_all_const = instr->arg_count > 0;
    for (int32_t a = 0; a < instr->arg_count; a++) {
        args[a] = &variant->regs[instr->args[a]];
        is_all_const = is_all_const && args[a]->is_const;
    }
    out->dest = target != NULL && !is_all_const ? target : out->own;
    out->values = out->dest;
    out->valid = NULL;
    out->is_const = false;
    out->is_null = false;
    out->full_rows = 0;
    out->is_wide = false;
    out->data = NULL;
    if (instr->is_strict && !join_validity(args, instr->arg_count, out, n)) {
        set_const_null(out, instr->node->type);
        return GAR_OK;
    }
    if (!is_all_const && instr->is_flat) {
        for (int32_t a = 0; a < instr->arg_count; a++) {
            if (args[a]->is_const) {
                gar_reg_fill(args[a], instr->node->args[a]->type, n);
            }
        }
    }
    GAR_TRY(instr->run(eval, instr, args, out, is_all_const ? 1 : n, err));
    if (is_all_const) {
        out->is_const = true;
        out->is_null = out->valid != NULL && (out->valid[0] & 1) == 0;
        out->valid = NULL;
    }
    return GAR_OK;
}

static enum gar_status run_many_args(struct gar_eval *eval, const struct gar_variant *variant,
                                     const struct gar_instr *instr, void *target, int64_t n,
                                     struct gar_error *err)
{
    struct gar_reg **args = gar_calloc(instr->arg_count, (int64_t)sizeof *args);
    if (args == NULL) {
        return gar_error_nomem(err, instr->arg_count * (int64_t)sizeof *args);
    }
    const enum gar_status status = run_instr(eval, variant, instr, args, target, n, err);
    gar_free(args);
    return status;
}

/* --- outputs --- */

enum output_kind {
    OUTPUT_PASS,       /* a column of the batch as it is, or its selected rows */
    OUTPUT_DICTIONARY, /* a column's codes with the hoist's table as dictionary */
    OUTPUT_FLAT        /* computed */
};

struct output {
    enum output_kind kind;
    const struct gar_bound *node;
    struct gar_column *column; /* owned until the end */
    uint8_t *values;
    int32_t width;
    int64_t rows;
    int64_t null_count;
    struct gar_text_sink sink;  /* texts that no instruction's sink holds */
    struct gar_text_sink *from; /* the sink whose buffers the views number */
    const struct gar_hoist *hoist;
};

static const struct gar_instr *instr_of(const struct gar_variant *variant, int32_t reg)
{
    for (int64_t i = 0; i < variant->instr_count; i++) {
        if (variant->instrs[i].out == reg) {
            return &variant->instrs[i];
        }
    }
    return NULL;
}

static enum gar_status start_output(struct gar_eval *eval, struct gar_variant *variant,
                                    int32_t index, struct gar_column *const *columns, int64_t rows,
                                    struct output *output, struct gar_error *err)
{
    const struct gar_bound *node = variant->roots[index];
    const struct gar_instr *instr = instr_of(variant, variant->outputs[index]);
    output->node = node;
    output->rows = rows;
    if (node->op == GAR_OP_COLUMN) {
        output->kind = OUTPUT_PASS;
        return GAR_OK;
    }
    const struct gar_hoist *hoist = instr->hoist;
    if (hoist != NULL && node->type.id != GAR_BOOL && hoist->table->encoding == GAR_FLAT &&
        gar_column_null_count(hoist->table) == 0 && !hoist->has_null_entry &&
        columns[hoist->column]->encoding == GAR_DICTIONARY &&
        gar_type_equal(hoist->table->type, node->type)) {
        output->kind = OUTPUT_DICTIONARY;
        output->hoist = hoist;
        return GAR_OK;
    }
    output->kind = OUTPUT_FLAT;
    GAR_TRY(gar_column_new(eval->memory, node->type, rows, false, &output->column, err));
    output->values = gar_column_values_mut(output->column);
    output->width = gar_type_width(node->type);
    output->sink.memory = eval->memory;
    output->from = instr->sink != NULL && instr->output == index ? instr->sink : &output->sink;
    return GAR_OK;
}

/* The bitmap of an output that has its first null at vector start `at`: all rows before are valid. */
static enum gar_status add_validity(struct gar_eval *eval, struct output *output,
                                    struct gar_error *err)
{
    struct gar_column *column = output->column;
    const int64_t bytes = gar_words(output->rows) * 8;
    GAR_TRY(gar_buffer_new(eval->memory, bytes, &column->validity_owner, err));
    memset(column->validity_owner->data, 0xff, (size_t)bytes);
    column->validity = column->validity_owner->data;
    return GAR_OK;
}

static enum gar_status store_validity(struct gar_eval *eval, struct output *output,
                                      const struct gar_reg *reg, int64_t at, int64_t n,
                                      struct gar_error *err)
{
    const bool has_null = reg->is_const ? reg->is_null : reg->valid != NULL;
    if (!has_null || output->node->type.id == GAR_NULL) {
        return GAR_OK;
    }
    if (output->column->validity == NULL) {
        GAR_TRY(add_validity(eval, output, err));
    }
    uint8_t *bits = output->column->validity_owner->data + at / 8;
    for (int64_t w = 0; w < gar_words(n); w++) {
        const uint64_t word = gar_valid_word(reg, w) & gar_word_mask(n, w);
        output->null_count += gar_popcount64(~word & gar_word_mask(n, w));
        gar_store_u64(bits + 8 * w, word); /* the buffer is whole words long */
    }
    return GAR_OK;
}

static enum gar_status store_text(struct output *output, const struct gar_reg *reg, int64_t at,
                                  int64_t n, struct gar_error *err)
{
    const struct gar_string_view *views = reg->values;
    struct gar_string_view *to = (struct gar_string_view *)(void *)output->values + at;
    if (reg->is_const) {
        struct gar_string_view one = views[0];
        if (one.size > GAR_VIEW_INLINE_BYTES) {
            GAR_TRY(gar_text_sink_add(&output->sink, gar_view_bytes(&views[0], reg->data), one.size,
                                      &one, err));
        }
        for (int64_t i = 0; i < n; i++) {
            to[i] = one;
        }
        return GAR_OK;
    }
    for (int64_t i = 0; i < n; i++) {
        const struct gar_string_view *view = &views[i];
        if (view->size <= GAR_VIEW_INLINE_BYTES) {
            to[i] = *view;
        } else if (!gar_reg_is_valid(reg, i)) {
            memset(&to[i], 0, sizeof to[i]);
        } else {
            GAR_TRY(gar_text_sink_add(&output->sink, gar_view_bytes(view, reg->data), view->size,
                                      &to[i], err));
        }
    }
    return GAR_OK;
}

static void store_bools(struct output *output, const struct gar_reg *reg, int64_t at, int64_t n)
{
    uint64_t words[GAR_VECTOR_WORDS] = {0};
    for (int64_t w = 0; w < gar_words(n); w++) {
        words[w] = gar_bool_word(reg, w) & gar_word_mask(n, w);
    }
    memcpy(output->values + at / 8, words, (size_t)gar_bits_bytes(n));
}

static void store_fixed(struct gar_eval *eval, struct output *output, const struct gar_reg *reg,
                        int64_t at, int64_t n)
{
    uint8_t *to = output->values + at * output->width;
    if (output->node->type.id == GAR_DECIMAL128) {
        gar_i128 *wide = (gar_i128 *)(void *)to;
        if (reg->is_const) {
            const gar_i128 v = *gar_reg_wide(eval, reg, 1, 0);
            for (int64_t i = 0; i < n; i++) {
                wide[i] = v;
            }
        } else if (reg->is_wide) {
            memcpy(wide, reg->values, (size_t)n * sizeof *wide);
        } else {
            eval->kernels->widen(reg->values, wide, n);
        }
        return;
    }
    if (!reg->is_const) {
        if (reg->values != to) {
            memcpy(to, reg->values, (size_t)(n * output->width));
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        memcpy(to + i * output->width, reg->values, (size_t)output->width);
    }
}

static enum gar_status store_output(struct gar_eval *eval, struct output *output,
                                    const struct gar_reg *reg, int64_t at, int64_t n,
                                    struct gar_error *err)
{
    GAR_TRY(store_validity(eval, output, reg, at, n, err));
    if (output->node->type.id == GAR_NULL) {
        return GAR_OK;
    }
    if (output->node->type.id == GAR_BOOL) {
        store_bools(output, reg, at, n);
    } else if (!gar_type_is_text(output->node->type)) {
        store_fixed(eval, output, reg, at, n);
    } else if (output->from == &output->sink || reg->is_const) {
        output->from = &output->sink;
        return store_text(output, reg, at, n, err);
    } else if (reg->values != (const void *)(output->values + at * output->width)) {
        return gar_error_set(err, GAR_ERR_INTERNAL, "a text result is not in its place");
    }
    return GAR_OK;
}

/* A column's codes beside another dictionary. */
static enum gar_status finish_dictionary(struct gar_eval *eval, const struct output *output,
                                         struct gar_column *const *columns, const uint32_t *rows,
                                         int64_t count, struct gar_column **out,
                                         struct gar_error *err)
{
    const struct gar_column *column = columns[output->hoist->column];
    struct gar_column *coded = NULL;
    if (rows != NULL) {
        GAR_TRY(gar_column_gather(column, rows, count, eval->memory, &coded, err));
    } else {
        GAR_TRY(gar_column_slice(column, 0, count, &coded, err));
    }
    const enum gar_status status =
        gar_column_with_dictionary(coded, output->hoist->table, output->hoist->table_id, out, err);
    gar_column_unref(coded);
    return status;
}

static enum gar_status finish_output(struct gar_eval *eval, struct output *output,
                                     struct gar_column *const *columns, const uint32_t *rows,
                                     int64_t count, struct gar_column **out, struct gar_error *err)
{
    switch (output->kind) {
    case OUTPUT_PASS: {
        const struct gar_column *column = columns[output->node->column];
        if (rows != NULL) {
            return gar_column_gather(column, rows, count, eval->memory, out, err);
        }
        if (column->length != count) {
            return gar_column_slice(column, 0, count, out, err);
        }
        *out = gar_column_ref(column);
        return GAR_OK;
    }
    case OUTPUT_DICTIONARY: return finish_dictionary(eval, output, columns, rows, count, out, err);
    case OUTPUT_FLAT: break;
    }
    if (gar_type_is_text(output->node->type)) {
        GAR_TRY(gar_text_sink_give(output->from, output->column, err));
    }
    if (output->node->type.id != GAR_NULL) {
        output->column->null_count = output->null_count;
    }
    *out = output->column;
    output->column = NULL;
    return GAR_OK;
}

/* --- the loop --- */

static enum gar_status step(struct gar_eval *eval, struct gar_variant *variant,
                            struct output *outputs, int64_t at, int64_t n, struct gar_error *err)
{
    struct gar_reg *args[ARGS_ON_STACK];
    eval->vector_rows = n;
    for (int64_t i = 0; i < variant->instr_count; i++) {
        const struct gar_instr *instr = &variant->instrs[i];
        void *target = NULL;
        if (outputs != NULL && instr->output >= 0 && outputs[instr->output].kind == OUTPUT_FLAT) {
            const struct output *output = &outputs[instr->output];
            const struct gar_type type = output->node->type;
            /* a free cast may lie between instruction and output: the layouts are the same then too */
            if (type.id != GAR_BOOL && type.id != GAR_NULL && type.id != GAR_DECIMAL128 &&
                !(gar_type_is_text(type) && instr->sink == NULL)) {
                target = output->values + at * output->width;
            }
        } else if (instr->sink != NULL) {
            gar_text_sink_reset(instr->sink);
        }
        if (instr->arg_count <= ARGS_ON_STACK) {
            GAR_TRY(run_instr(eval, variant, instr, args, target, n, err));
        } else {
            GAR_TRY(run_many_args(eval, variant, instr, target, n, err));
        }
    }
    return GAR_OK;
}

enum gar_status gar_variant_step(struct gar_eval *eval, struct gar_variant *variant, int64_t n,
                                 struct gar_error *err)
{
    return step(eval, variant, NULL, 0, n, err);
}

static enum gar_status run_all(struct gar_eval *eval, struct gar_variant *variant,
                               struct output *outputs, const uint32_t *rows, int64_t count,
                               struct gar_error *err)
{
    for (int64_t at = 0; at < count; at += GAR_VECTOR_ROWS) {
        const int64_t n = gar_min_i64(GAR_VECTOR_ROWS, count - at);
        eval->rows = rows != NULL ? rows + at : NULL;
        eval->base = at;
        GAR_TRY(step(eval, variant, outputs, at, n, err));
        for (int32_t o = 0; o < variant->output_count; o++) {
            if (outputs[o].kind == OUTPUT_FLAT) {
                GAR_TRY(store_output(eval, &outputs[o], &variant->regs[variant->outputs[o]], at, n,
                                     err));
            }
        }
    }
    return GAR_OK;
}

static bool needs_work(const struct output *outputs, int32_t count)
{
    for (int32_t o = 0; o < count; o++) {
        if (outputs[o].kind == OUTPUT_FLAT) {
            return true;
        }
    }
    return false;
}

enum gar_status gar_variant_run(struct gar_eval *eval, struct gar_variant *variant,
                                struct gar_column *const *columns, const uint32_t *rows,
                                int64_t count, struct gar_column **out, struct gar_error *err)
{
    struct output *outputs = gar_calloc(variant->output_count, (int64_t)sizeof *outputs);
    struct gar_column **done = gar_calloc(variant->output_count, (int64_t)sizeof *done);
    enum gar_status status = GAR_OK;
    if (outputs == NULL || done == NULL) {
        status = gar_error_nomem(err, variant->output_count * (int64_t)sizeof *outputs);
    }
    eval->columns = columns;
    eval->variant = variant;
    for (int32_t o = 0; status >= 0 && o < variant->output_count; o++) {
        status = start_output(eval, variant, o, columns, count, &outputs[o], err);
    }
    for (int64_t i = 0; status >= 0 && i < variant->instr_count; i++) {
        if (variant->instrs[i].sink != NULL) {
            gar_text_sink_reset(variant->instrs[i].sink);
        }
    }
    if (status >= 0 && needs_work(outputs, variant->output_count)) {
        status = run_all(eval, variant, outputs, rows, count, err);
    }
    for (int32_t o = 0; status >= 0 && o < variant->output_count; o++) {
        status = finish_output(eval, &outputs[o], columns, rows, count, &done[o], err);
    }
    for (int32_t o = 0; outputs != NULL && done != NULL && o < variant->output_count; o++) {
        if (status >= 0) {
            out[o] = done[o];
        } else {
            gar_column_unref(done[o]);
        }
        gar_column_unref(outputs[o].column);
        gar_text_sink_destroy(&outputs[o].sink);
    }
    gar_free(outputs);
    gar_free(done);
    return status;
}
