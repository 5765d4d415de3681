/* SPDX-License-Identifier: Apache-2.0 */
/* Growing text. Every append goes through make_room, the one place that can be refused. */
#include "base/strbuf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

static bool make_room(struct gar_strbuf *sb, int64_t more)
{
    if (sb->failed) {
        return false;
    }
    void *data = sb->data;
    int64_t want = 0;
    if (more < 0 || __builtin_add_overflow(sb->size + 1, more, &want) ||
        gar_grow(&data, &sb->capacity, want, 1, NULL) != GAR_OK) {
        sb->failed = true;
        return false;
    }
    sb->data = data;
    return true;
}

void gar_strbuf_append(struct gar_strbuf *sb, const char *text)
{
    gar_strbuf_append_n(sb, text, (int64_t)strlen(text));
}

void gar_strbuf_append_n(struct gar_strbuf *sb, const char *text, int64_t bytes)
{
    if (make_room(sb, bytes)) {
        if (bytes > 0) {
            memcpy(sb->data + sb->size, text, (size_t)bytes);
        }
        sb->size += bytes;
        sb->data[sb->size] = '\0';
    }
}

void gar_strbuf_append_char(struct gar_strbuf *sb, char c)
{
    gar_strbuf_append_n(sb, &c, 1);
}

void gar_strbuf_append_fill(struct gar_strbuf *sb, char c, int64_t count)
{
    if (count > 0 && make_room(sb, count)) {
        memset(sb->data + sb->size, c, (size_t)count);
        sb->size += count;
        sb->data[sb->size] = '\0';
    }
}

void gar_strbuf_printf(struct gar_strbuf *sb, const char *format, ...)
{
    char small[256];
    va_list args;
    va_start(args, format);
    const int bytes = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    if (bytes < 0) {
        sb->failed = true;
    } else if (bytes < (int)sizeof small) {
        gar_strbuf_append_n(sb, small, bytes);
    } else if (make_room(sb, bytes)) {
        va_start(args, format);
        vsnprintf(sb->data + sb->size, (size_t)bytes + 1, format, args);
        va_end(args);
        sb->size += bytes;
    }
}

const char *gar_strbuf_text(const struct gar_strbuf *sb)
{
    return sb->data == NULL ? "" : sb->data;
}

char *gar_strbuf_take(struct gar_strbuf *sb)
{
    char *text = NULL;
    if (!sb->failed && make_room(sb, 0)) {
        text = sb->data;
        text[sb->size] = '\0';
        sb->data = NULL;
    }
    gar_strbuf_destroy(sb);
    return text;
}

void gar_strbuf_clear(struct gar_strbuf *sb)
{
    sb->size = 0;
    sb->failed = false;
    if (sb->data != NULL) {
        sb->data[0] = '\0';
    }
}

void gar_strbuf_destroy(struct gar_strbuf *sb)
{
    if (sb != NULL) {
        gar_free(sb->data);
        *sb = (struct gar_strbuf){0};
    }
}
