/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions over text. A constant pattern is prepared when the instruction first runs with it and kept. */
#include "base/alloc.h"
#include "base/utf8.h"
#include "expr/eval_priv.h"

static const struct gar_string_view *views_of(const struct gar_reg *reg)
{
    return reg->values;
}

static const uint8_t *bytes_of(const struct gar_reg *reg, int64_t i, int64_t *out_bytes)
{
    const struct gar_string_view *view = &views_of(reg)[gar_reg_at(reg, i)];
    *out_bytes = view->size;
    return gar_view_bytes(view, reg->data);
}

/* --- like --- */

/* The last pattern of a constant argument, prepared. */
struct pattern {
    struct gar_like *like;
    uint8_t *text;
    int64_t bytes;
};

static void free_pattern(void *state)
{
    struct pattern *pattern = state;
    if (pattern != NULL) {
        gar_like_free(pattern->like);
        gar_free(pattern->text);
        gar_free(pattern);
    }
}

static enum gar_status prepare_pattern(struct pattern *pattern, const uint8_t *text, int64_t bytes,
                                       bool ignore_case, struct gar_error *err)
{
    if (pattern->like != NULL && pattern->bytes == bytes &&
        memcmp(pattern->text, text, (size_t)bytes) == 0) {
        return GAR_OK;
    }
    struct gar_like *like = NULL;
    GAR_TRY(gar_like_new(text, bytes, ignore_case, &like, err));
    uint8_t *copy = gar_malloc(bytes);
    if (copy == NULL) {
        gar_like_free(like);
        return gar_error_nomem(err, bytes);
    }
    memcpy(copy, text, (size_t)bytes);
    gar_like_free(pattern->like);
    gar_free(pattern->text);
    *pattern = (struct pattern){like, copy, bytes};
    return GAR_OK;
}

static enum gar_status run_like(struct gar_eval *eval, const struct gar_instr *instr,
                                struct gar_reg **args, struct gar_reg *out, int64_t n,
                                struct gar_error *err)
{
    const bool ignore_case = instr->node->param[0] != 0;
    uint64_t *words = out->dest;
    uint64_t active[GAR_VECTOR_WORDS];
    gar_active_lanes(eval, instr, out, n, active);
    memset(words, 0, (size_t)gar_words(n) * 8);
    if (args[1]->is_const && (!args[0]->is_const || n == 1)) {
        int64_t bytes = 0;
        const uint8_t *text = bytes_of(args[1], 0, &bytes);
        GAR_TRY(prepare_pattern(instr->state, text, bytes, ignore_case, err));
        const struct pattern *pattern = instr->state;
        gar_like_match_views(pattern->like, views_of(args[0]), args[0]->data, words, n);
        return GAR_OK;
    }
    for (int64_t i = 0; i < n; i++) {
        if (!gar_word_bit(active, i)) {
            continue;
        }
        int64_t bytes = 0;
        const uint8_t *text = bytes_of(args[1], i, &bytes);
        GAR_TRY(prepare_pattern(instr->state, text, bytes, ignore_case, err));
        const struct pattern *pattern = instr->state;
        text = bytes_of(args[0], i, &bytes);
        words[i >> 6] |= (uint64_t)gar_like_matches(pattern->like, text, bytes) << (i & 63);
    }
    return GAR_OK;
}

/* --- contains, startswith, endswith --- */

static bool test_text(enum gar_op op, const uint8_t *text, int64_t bytes, const uint8_t *part,
                      int64_t part_bytes)
{
    if (part_bytes > bytes) {
        return false;
    }
    switch (op) {
    case GAR_OP_STARTSWITH: return memcmp(text, part, (size_t)part_bytes) == 0;
    case GAR_OP_ENDSWITH: return memcmp(text + bytes - part_bytes, part, (size_t)part_bytes) == 0;
    default: return gar_text_find(text, bytes, part, part_bytes) >= 0;
    }
}

static enum gar_status run_test(struct gar_eval *eval, const struct gar_instr *instr,
                                struct gar_reg **args, struct gar_reg *out, int64_t n,
                                struct gar_error *err)
{
    (void)eval;
    (void)err;
    uint64_t *words = out->dest;
    for (int64_t w = 0; w < gar_words(n); w++) {
        uint64_t word = 0;
        const int64_t count = gar_min_i64(64, n - 64 * w);
        for (int64_t k = 0; k < count; k++) {
            int64_t bytes = 0;
            int64_t part_bytes = 0;
            const uint8_t *text = bytes_of(args[0], 64 * w + k, &bytes);
            const uint8_t *part = bytes_of(args[1], 64 * w + k, &part_bytes);
            word |= (uint64_t)test_text(instr->node->op, text, bytes, part, part_bytes) << k;
        }
        words[w] = word;
    }
    return GAR_OK;
}

/* --- lengths --- */

static enum gar_status run_length(struct gar_eval *eval, const struct gar_instr *instr,
                                  struct gar_reg **args, struct gar_reg *out, int64_t n,
                                  struct gar_error *err)
{
    (void)eval;
    (void)err;
    int64_t *to = out->dest;
    const struct gar_string_view *views = views_of(args[0]);
    if (instr->node->op == GAR_OP_LENGTH_BYTES) {
        for (int64_t i = 0; i < n; i++) {
            to[i] = views[i].size;
        }
        return GAR_OK;
    }
    for (int64_t i = 0; i < n; i++) {
        to[i] = gar_utf8_length(gar_view_bytes(&views[i], args[0]->data), views[i].size);
    }
    return GAR_OK;
}

/* --- results that are texts: rows that are null or not asked for give the empty text --- */

static void empty_at(struct gar_reg *out, int64_t i)
{
    memset((struct gar_string_view *)out->dest + i, 0, sizeof(struct gar_string_view));
}

static enum gar_status reverse(struct gar_text_sink *sink, const uint8_t *text, int64_t bytes,
                               struct gar_string_view *out, struct gar_error *err)
{
    uint8_t *place = NULL;
    GAR_TRY(gar_text_sink_room(sink, bytes, &place, err));
    for (int64_t i = 0; i < bytes;) {
        int32_t size = 0;
        (void)gar_utf8_decode(text + i, bytes - i, &size);
        memcpy(place + bytes - i - size, text + i, (size_t)size);
        i += size;
    }
    *out = gar_text_sink_commit(sink, bytes);
    return GAR_OK;
}

static enum gar_status run_text1(struct gar_eval *eval, const struct gar_instr *instr,
                                 struct gar_reg **args, struct gar_reg *out, int64_t n,
                                 struct gar_error *err)
{
    (void)eval;
    struct gar_string_view *to = out->dest;
    const enum gar_function_id id = (enum gar_function_id)instr->node->param[0];
    for (int64_t i = 0; i < n; i++) {
        int64_t bytes = 0;
        const uint8_t *text = bytes_of(args[0], i, &bytes);
        if (!gar_reg_is_valid(out, i)) {
            empty_at(out, i);
        } else if (id == GAR_FN_LOWER || id == GAR_FN_UPPER) {
            GAR_TRY(gar_text_to_case(instr->sink,
                                     id == GAR_FN_LOWER ? GAR_TEXT_LOWER : GAR_TEXT_UPPER, text,
                                     bytes, &to[i], err));
        } else if (id == GAR_FN_REVERSE) {
            GAR_TRY(reverse(instr->sink, text, bytes, &to[i], err));
        } else {
            const int64_t before = id == GAR_FN_RSTRIP ? 0 : gar_text_space_before(text, bytes);
            const int64_t after =
                id == GAR_FN_LSTRIP ? 0 : gar_text_space_after(text + before, bytes - before);
            GAR_TRY(
                gar_text_sink_add(instr->sink, text + before, bytes - before - after, &to[i], err));
        }
    }
    out->data = instr->sink->pointers;
    return GAR_OK;
}

static enum gar_status run_substr(struct gar_eval *eval, const struct gar_instr *instr,
                                  struct gar_reg **args, struct gar_reg *out, int64_t n,
                                  struct gar_error *err)
{
    (void)eval;
    struct gar_string_view *to = out->dest;
    const bool is_right = instr->node->op == GAR_OP_RIGHT;
    for (int64_t i = 0; i < n; i++) {
        if (!gar_reg_is_valid(out, i)) {
            empty_at(out, i);
            continue;
        }
        int64_t bytes = 0;
        const uint8_t *text = bytes_of(args[0], i, &bytes);
        int64_t start = ((const int64_t *)args[1]->values)[gar_reg_at(args[1], i)];
        int64_t count = instr->arg_count == 3
                            ? ((const int64_t *)args[2]->values)[gar_reg_at(args[2], i)]
                            : INT64_MAX;
        if (is_right) {
            count = start > 0 ? INT64_MAX : 0;
            start = start > 0 ? -start : 0;
        }
        int64_t part_start = 0;
        int64_t part_bytes = 0;
        gar_text_substr(text, bytes, start, count, &part_start, &part_bytes);
        GAR_TRY(gar_text_sink_add(instr->sink, text + part_start, part_bytes, &to[i], err));
    }
    out->data = instr->sink->pointers;
    return GAR_OK;
}

static enum gar_status run_concat(struct gar_eval *eval, const struct gar_instr *instr,
                                  struct gar_reg **args, struct gar_reg *out, int64_t n,
                                  struct gar_error *err)
{
    struct gar_string_view *to = out->dest;
    uint64_t active[GAR_VECTOR_WORDS];
    gar_active_lanes(eval, instr, out, n, active);
    for (int64_t i = 0; i < n; i++) {
        if (!gar_word_bit(active, i)) {
            empty_at(out, i);
            continue;
        }
        int64_t total = 0;
        for (int32_t a = 0; a < instr->arg_count; a++) {
            total += views_of(args[a])[gar_reg_at(args[a], i)].size;
        }
        uint8_t *place = NULL;
        GAR_TRY(gar_text_sink_room(instr->sink, total, &place, err));
        int64_t at = 0;
        for (int32_t a = 0; a < instr->arg_count; a++) {
            int64_t bytes = 0;
            const uint8_t *text = bytes_of(args[a], i, &bytes);
            memcpy(place + at, text, (size_t)bytes);
            at += bytes;
        }
        to[i] = gar_text_sink_commit(instr->sink, total);
    }
    out->data = instr->sink->pointers;
    return GAR_OK;
}

/* Every occurrence of part, left to right; an empty part is nowhere. */
static enum gar_status replace(struct gar_text_sink *sink, const uint8_t *text, int64_t bytes,
                               const uint8_t *part, int64_t part_bytes, const uint8_t *by,
                               int64_t by_bytes, struct gar_string_view *out, struct gar_error *err)
{
    int64_t hits = 0;
    for (int64_t at = 0; part_bytes > 0 && at <= bytes - part_bytes;) {
        const int64_t found = gar_text_find(text + at, bytes - at, part, part_bytes);
        if (found < 0) {
            break;
        }
        hits++;
        at += found + part_bytes;
    }
    if (hits == 0) {
        return gar_text_sink_add(sink, text, bytes, out, err);
    }
    const int64_t total = bytes + hits * (by_bytes - part_bytes);
    uint8_t *place = NULL;
    GAR_TRY(gar_text_sink_room(sink, total, &place, err));
    int64_t at = 0;
    for (; hits > 0; hits--) {
        const int64_t found = gar_text_find(text + at, bytes - at, part, part_bytes);
        memcpy(place, text + at, (size_t)found);
        memcpy(place + found, by, (size_t)by_bytes);
        place += found + by_bytes;
        at += found + part_bytes;
    }
    memcpy(place, text + at, (size_t)(bytes - at));
    *out = gar_text_sink_commit(sink, total);
    return GAR_OK;
}

static enum gar_status run_replace(struct gar_eval *eval, const struct gar_instr *instr,
                                   struct gar_reg **args, struct gar_reg *out, int64_t n,
                                   struct gar_error *err)
{
    struct gar_string_view *to = out->dest;
    uint64_t active[GAR_VECTOR_WORDS];
    gar_active_lanes(eval, instr, out, n, active);
    for (int64_t i = 0; i < n; i++) {
        if (!gar_word_bit(active, i)) {
            empty_at(out, i);
            continue;
        }
        int64_t bytes = 0;
        int64_t part_bytes = 0;
        int64_t by_bytes = 0;
        const uint8_t *text = bytes_of(args[0], i, &bytes);
        const uint8_t *part = bytes_of(args[1], i, &part_bytes);
        const uint8_t *by = bytes_of(args[2], i, &by_bytes);
        GAR_TRY(replace(instr->sink, text, bytes, part, part_bytes, by, by_bytes, &to[i], err));
    }
    out->data = instr->sink->pointers;
    return GAR_OK;
}

enum gar_status gar_choose_text(const struct gar_bound *node, struct gar_instr *instr,
                                struct gar_error *err)
{
    instr->is_strict = true;
    switch (node->op) {
    case GAR_OP_LIKE:
        instr->run = run_like;
        instr->state = gar_calloc(1, (int64_t)sizeof(struct pattern));
        instr->state_free = free_pattern;
        if (instr->state == NULL) {
            return gar_error_nomem(err, (int64_t)sizeof(struct pattern));
        }
        break;
    case GAR_OP_CONTAINS:
    case GAR_OP_STARTSWITH:
    case GAR_OP_ENDSWITH: instr->run = run_test; break;
    case GAR_OP_LENGTH:
    case GAR_OP_LENGTH_BYTES:
        instr->run = run_length;
        instr->is_flat = true;
        break;
    case GAR_OP_TEXT1: instr->run = run_text1; break;
    case GAR_OP_SUBSTR:
    case GAR_OP_RIGHT: instr->run = run_substr; break;
    case GAR_OP_CONCAT: instr->run = run_concat; break;
    default: instr->run = run_replace; break;
    }
    return GAR_OK;
}
