/* SPDX-License-Identifier: Apache-2.0 */
/* A growing text. Appending never fails loudly: a refused allocation sets `failed`, which the reader checks once. */
#ifndef GAR_BASE_STRBUF_H
#define GAR_BASE_STRBUF_H

#include "base/attrs.h"
#include "base/error.h"

/* A zeroed struct is a valid empty text. */
struct gar_strbuf {
    char *data; /* owned; NUL-terminated when not NULL */
    int64_t size;
    int64_t capacity;
    bool failed; /* an append was refused; data is cut */
};

void gar_strbuf_append(struct gar_strbuf *sb, const char *text);
void gar_strbuf_append_n(struct gar_strbuf *sb, const char *text, int64_t bytes);
void gar_strbuf_append_char(struct gar_strbuf *sb, char c);
void gar_strbuf_append_fill(struct gar_strbuf *sb, char c, int64_t count);
void gar_strbuf_printf(struct gar_strbuf *sb, const char *format, ...) GAR_PRINTF(2, 3);
/* The text, never NULL; stays owned by sb. */
const char *gar_strbuf_text(const struct gar_strbuf *sb);
/* Moves the text out (caller gar_frees it) and leaves sb empty; NULL if an append had failed. */
char *gar_strbuf_take(struct gar_strbuf *sb);
void gar_strbuf_clear(struct gar_strbuf *sb);
void gar_strbuf_destroy(struct gar_strbuf *sb);

#endif
