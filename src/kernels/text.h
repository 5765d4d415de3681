/* SPDX-License-Identifier: Apache-2.0 */
/* Text: a sink that collects results as views, patterns of like, search, case, trimming.
 * Threads: a sink is of one thread; matchers are immutable and shared. */
#ifndef GAR_KERNELS_TEXT_H
#define GAR_KERNELS_TEXT_H

#include "arrow/column.h"

/* Collects texts longer than a view holds in buffers; views are numbered by buffer. A zeroed struct with memory set is ready. */
struct gar_text_sink {
    struct gar_memory *memory;   /* borrowed */
    struct gar_buffer **buffers; /* owned */
    const uint8_t **pointers;    /* buffers[i]->data */
    int64_t count;               /* buffers in use */
    int64_t capacity;            /* of both arrays */
    int64_t made;                /* buffers that are there, in use or not */
    int64_t used;                /* bytes of the last buffer in use */
};

void gar_text_sink_destroy(struct gar_text_sink *sink);
/* Forgets all texts and keeps the buffers for the next vector. */
void gar_text_sink_reset(struct gar_text_sink *sink);
/* Room for `bytes`, to be written at once and kept by gar_text_sink_commit. Errors: GAR_ERR_NOMEM, GAR_ERR_OVERFLOW
 * beyond 2^31-1 bytes in one text. */
GAR_MUST_USE enum gar_status gar_text_sink_room(struct gar_text_sink *sink, int64_t bytes,
                                                uint8_t **out, struct gar_error *err);
/* A view of the `bytes` written at the place that gar_text_sink_room gave (fewer than asked for is fine). */
struct gar_string_view gar_text_sink_commit(struct gar_text_sink *sink, int64_t bytes);
/* A view of a copy of these bytes. */
GAR_MUST_USE enum gar_status gar_text_sink_add(struct gar_text_sink *sink, const uint8_t *bytes,
                                               int64_t size, struct gar_string_view *out,
                                               struct gar_error *err);
/* Moves the buffers in use to a column being built (its views number them alike). Errors: GAR_ERR_NOMEM. */
GAR_MUST_USE enum gar_status gar_text_sink_give(struct gar_text_sink *sink,
                                                struct gar_column *column, struct gar_error *err);

/* A pattern of like: % any text, _ one character, backslash takes the next character literally. */
struct gar_like;
/* Errors: GAR_ERR_VALUE when the pattern ends in a lone backslash; GAR_ERR_NOMEM. Owns: caller frees *out. */
GAR_MUST_USE enum gar_status gar_like_new(const uint8_t *pattern, int64_t bytes, bool ignore_case,
                                          struct gar_like **out, struct gar_error *err);
void gar_like_free(struct gar_like *like);
bool gar_like_matches(const struct gar_like *like, const uint8_t *text, int64_t bytes);
/* Bit i of bits = does views[i] match; bits beyond n are 0. */
void gar_like_match_views(const struct gar_like *like, const struct gar_string_view *views,
                          const uint8_t *const *data, uint64_t *bits, int64_t n);

/* Position of part in text or -1. An empty part is found at 0. */
int64_t gar_text_find(const uint8_t *text, int64_t bytes, const uint8_t *part, int64_t part_bytes);
/* -1, 0, 1 by bytes, then by length. */
int32_t gar_text_compare(const struct gar_string_view *a, const uint8_t *const *a_data,
                         const struct gar_string_view *b, const uint8_t *const *b_data);
bool gar_text_equal(const struct gar_string_view *a, const uint8_t *const *a_data,
                    const struct gar_string_view *b, const uint8_t *const *b_data);

enum gar_text_case { GAR_TEXT_LOWER, GAR_TEXT_UPPER };
/* Appends the text in the other case. */
GAR_MUST_USE enum gar_status gar_text_to_case(struct gar_text_sink *sink, enum gar_text_case to,
                                              const uint8_t *text, int64_t bytes,
                                              struct gar_string_view *out, struct gar_error *err);
/* Bytes of white space (Unicode White_Space) at the start and at the end. */
int64_t gar_text_space_before(const uint8_t *text, int64_t bytes);
int64_t gar_text_space_after(const uint8_t *text, int64_t bytes);
/* The part [*out_start, *out_start + *out_bytes) that substr(start, count) means: start counts characters, from the end when
 * negative; count < 0 or none (INT64_MAX) as far as there is text. */
void gar_text_substr(const uint8_t *text, int64_t bytes, int64_t start, int64_t count,
                     int64_t *out_start, int64_t *out_bytes);
/* Unicode simple lower case of a code point. */
int32_t gar_text_lower_char(int32_t code_point);

#endif
