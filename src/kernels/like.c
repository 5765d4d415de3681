/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of like. A pattern is cut at its % signs into pieces; most patterns have no _ and are then a prefix, a suffix
 * and texts to find between them, in order (leftmost first is enough). Pieces with _ are matched character by character. */
#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/utf8.h"
#include "kernels/text.h"
#include "kernels/vector.h"

/* One character of a piece: a code point, or any. */
#define ANY_CHARACTER INT32_C(-1)

struct piece {
    const uint8_t *bytes; /* the literal text when there is no _ and case matters */
    int64_t size;
    const int32_t *characters; /* all pieces of a pattern with _ or without case */
    int64_t count;
};

struct gar_like {
    bool ignore_case;
    bool is_plain;    /* pieces are literal bytes */
    bool has_percent; /* else the only piece is the whole text */
    int64_t count;    /* pieces: the first is a prefix, the last a suffix (both may be empty) */
    struct piece *pieces;
    uint8_t *bytes; /* storage of the pieces */
    int32_t *characters;
};

void gar_like_free(struct gar_like *like)
{
    if (like != NULL) {
        gar_free(like->pieces);
        gar_free(like->bytes);
        gar_free(like->characters);
        gar_free(like);
    }
}

/* Reads the pattern into the storage that the caller made large enough. */
static enum gar_status cut_pattern(struct gar_like *like, const uint8_t *pattern, int64_t bytes,
                                   struct gar_error *err)
{
    struct piece *piece = &like->pieces[0];
    piece->bytes = like->bytes;
    piece->characters = like->characters;
    int64_t byte_count = 0;
    int64_t character_count = 0;
    like->count = 1;
    like->is_plain = !like->ignore_case;
    for (int64_t i = 0; i < bytes;) {
        int32_t size = 0;
        int32_t c = gar_utf8_decode(pattern + i, bytes - i, &size);
        const bool is_escaped = c == '\\';
        if (is_escaped) {
            i += size;
            if (i >= bytes) {
                return gar_error_set(
                    err, GAR_ERR_VALUE,
                    "like: the pattern ends in a lone backslash; write two of them");
            }
            c = gar_utf8_decode(pattern + i, bytes - i, &size);
        }
        if (!is_escaped && c == '%') {
            piece = &like->pieces[like->count++];
            piece->bytes = like->bytes + byte_count;
            piece->characters = like->characters + character_count;
            like->has_percent = true;
        } else {
            const bool is_any = !is_escaped && c == '_';
            like->is_plain = like->is_plain && !is_any;
            memcpy(like->bytes + byte_count, pattern + i, (size_t)size);
            byte_count += size;
            piece->size += size;
            like->characters[character_count++] = is_any              ? ANY_CHARACTER
                                                  : like->ignore_case ? gar_text_lower_char(c)
                                                                      : c;
            piece->count++;
        }
        i += size;
    }
    return GAR_OK;
}

enum gar_status gar_like_new(const uint8_t *pattern, int64_t bytes, bool ignore_case,
                             struct gar_like **out, struct gar_error *err)
{
    struct gar_like *like = gar_calloc(1, (int64_t)sizeof *like);
    if (like == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *like);
    }
    like->ignore_case = ignore_case;
    like->pieces = gar_calloc(bytes + 1, (int64_t)sizeof *like->pieces);
    like->bytes = gar_malloc(bytes + 1);
    like->characters = gar_malloc((bytes + 1) * (int64_t)sizeof *like->characters);
    enum gar_status status = GAR_OK;
    if (like->pieces == NULL || like->bytes == NULL || like->characters == NULL) {
        status = gar_error_nomem(err, bytes);
    } else {
        status = cut_pattern(like, pattern, bytes, err);
    }
    if (status < 0) {
        gar_like_free(like);
        return status;
    }
    *out = like;
    return GAR_OK;
}

/* --- plain pieces --- */

static bool matches_plain(const struct gar_like *like, const uint8_t *text, int64_t bytes)
{
    const struct piece *first = &like->pieces[0];
    if (!like->has_percent) {
        return bytes == first->size && memcmp(text, first->bytes, (size_t)bytes) == 0;
    }
    const struct piece *last = &like->pieces[like->count - 1];
    if (bytes < first->size + last->size || memcmp(text, first->bytes, (size_t)first->size) != 0 ||
        memcmp(text + bytes - last->size, last->bytes, (size_t)last->size) != 0) {
        return false;
    }
    int64_t at = first->size;
    const int64_t end = bytes - last->size;
    for (int64_t i = 1; i < like->count - 1; i++) {
        const int64_t found =
            gar_text_find(text + at, end - at, like->pieces[i].bytes, like->pieces[i].size);
        if (found < 0) {
            return false;
        }
        at += found + like->pieces[i].size;
    }
    return true;
}

/* --- pieces of characters --- */

/* Bytes that the piece takes at the start of text, or -1. */
static int64_t match_characters(const struct gar_like *like, const struct piece *piece,
                                const uint8_t *text, int64_t bytes)
{
    int64_t at = 0;
    for (int64_t k = 0; k < piece->count; k++) {
        if (at >= bytes) {
            return -1;
        }
        int32_t size = 0;
        const int32_t c = gar_utf8_decode(text + at, bytes - at, &size);
        const int32_t want = piece->characters[k];
        if (want != ANY_CHARACTER && want != (like->ignore_case ? gar_text_lower_char(c) : c)) {
            return -1;
        }
        at += size;
    }
    return at;
}

/* Does the piece take exactly the last characters of text? */
static bool match_suffix(const struct gar_like *like, const struct piece *piece,
                         const uint8_t *text, int64_t bytes)
{
    int64_t start = bytes;
    for (int64_t k = 0; k < piece->count; k++) {
        if (start == 0) {
            return false;
        }
        start--;
        while (start > 0 && (text[start] & 0xc0) == 0x80) {
            start--;
        }
    }
    return match_characters(like, piece, text + start, bytes - start) == bytes - start;
}

static bool matches_characters(const struct gar_like *like, const uint8_t *text, int64_t bytes)
{
    int64_t at = match_characters(like, &like->pieces[0], text, bytes);
    if (at < 0 || !like->has_percent) {
        return at == bytes;
    }
    for (int64_t i = 1; i < like->count - 1; i++) {
        int64_t taken = match_characters(like, &like->pieces[i], text + at, bytes - at);
        while (taken < 0) {
            if (at >= bytes) {
                return false;
            }
            int32_t size = 0;
            (void)gar_utf8_decode(text + at, bytes - at, &size);
            at += size;
            taken = match_characters(like, &like->pieces[i], text + at, bytes - at);
        }
        at += taken;
    }
    return match_suffix(like, &like->pieces[like->count - 1], text + at, bytes - at);
}

bool gar_like_matches(const struct gar_like *like, const uint8_t *text, int64_t bytes)
{
    return like->is_plain ? matches_plain(like, text, bytes)
                          : matches_characters(like, text, bytes);
}

/* Does the pattern only ask for a prefix ("abc%") or for one part anywhere ("%abc%")? */
static bool is_prefix_only(const struct gar_like *like)
{
    return like->is_plain && like->count == 2 && like->pieces[1].size == 0;
}

static bool is_part_only(const struct gar_like *like)
{
    return like->is_plain && like->count == 3 && like->pieces[0].size == 0 &&
           like->pieces[2].size == 0 && like->pieces[1].size >= 2;
}

/* The first four bytes lie in every view; longer prefixes are looked at where those agree. */
static void match_prefix(const struct piece *prefix, const struct gar_string_view *views,
                         const uint8_t *const *data, uint64_t *bits, int64_t n)
{
    const int64_t near_bytes = prefix->size < 4 ? prefix->size : 4;
    uint32_t want = 0;
    memcpy(&want, prefix->bytes, (size_t)near_bytes);
    const uint32_t mask = near_bytes == 4 ? UINT32_MAX : (1u << (8 * near_bytes)) - 1;
    gar_vector_kernels()->equal_pairs((const uint64_t *)(const void *)views, (uint64_t)want << 32,
                                      (uint64_t)mask << 32, 0, 0, bits, n);
    for (int64_t w = 0; w < (n + 63) / 64; w++) {
        for (uint64_t hits = bits[w]; hits != 0; hits &= hits - 1) {
            const int64_t i = 64 * w + gar_ctz64(hits);
            const uint8_t *text = gar_view_bytes(&views[i], data);
            if (views[i].size < prefix->size ||
                (prefix->size > 4 &&
                 memcmp(text + 4, prefix->bytes + 4, (size_t)prefix->size - 4) != 0)) {
                bits[w] &= ~(UINT64_C(1) << (i & 63));
            }
        }
    }
}

static void match_part(const struct piece *part, const struct gar_string_view *views,
                       const uint8_t *const *data, uint64_t *bits, int64_t n)
{
    const struct gar_vector_kernels *kernels = gar_vector_kernels();
    for (int64_t i = 0; i < n; i += 64) {
        uint64_t word = 0;
        for (int64_t k = 0; k < 64 && i + k < n; k++) {
            const struct gar_string_view *view = &views[i + k];
            const bool is_found = view->size >= part->size &&
                                  kernels->find_part(gar_view_bytes(view, data), view->size,
                                                     part->bytes, part->size) >= 0;
            word |= (uint64_t)is_found << k;
        }
        bits[i >> 6] = word;
    }
}

void gar_like_match_views(const struct gar_like *like, const struct gar_string_view *views,
                          const uint8_t *const *data, uint64_t *bits, int64_t n)
{
    if (is_prefix_only(like)) {
        match_prefix(&like->pieces[0], views, data, bits, n);
        return;
    }
    if (is_part_only(like)) {
        match_part(&like->pieces[1], views, data, bits, n);
        return;
    }
    for (int64_t i = 0; i < n; i += 64) {
        uint64_t word = 0;
        for (int64_t k = 0; k < 64 && i + k < n; k++) {
            const struct gar_string_view *view = &views[i + k];
            word |= (uint64_t)gar_like_matches(like, gar_view_bytes(view, data), view->size) << k;
        }
        bits[i >> 6] = word;
    }
}
