/* SPDX-License-Identifier: Apache-2.0 */
/* Error messages: formatted aside first, so that arguments may point into the message that is replaced. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#define GAR_STATUS(name, number, text, exception) \
    case name: return #name;
const char *gar_status_name(enum gar_status status)
{
    switch (status) {
#include <gar/status.def>
    }
    return "GAR_UNKNOWN";
}
#undef GAR_STATUS

#define GAR_STATUS(name, number, text, exception) \
    case name: return text;
const char *gar_status_text(enum gar_status status)
{
    switch (status) {
#include <gar/status.def>
    }
    return "unknown status";
}
#undef GAR_STATUS

#define GAR_STATUS(name, number, text, exception) \
    case name: return exception;
const char *gar_status_exception(enum gar_status status)
{
    switch (status) {
#include <gar/status.def>
    }
    return "GarInternalError";
}
#undef GAR_STATUS

/* Cut before an incomplete last character, and keep the message one line. */
static void tidy_message(char *text)
{
    int64_t n = (int64_t)strlen(text);
    if (n == GAR_ERROR_MESSAGE_BYTES - 1) {
        const int64_t bad = gar_utf8_first_bad(text, n);
        if (bad >= n - 3 && bad >= 0) {
            n = bad;
            text[n] = '\0';
        }
    }
    for (int64_t i = 0; i < n; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f) {
            text[i] = ' ';
        }
    }
}

GAR_PRINTF(3, 0)
static void store_message(struct gar_error *err, enum gar_status status, const char *format,
                          va_list args)
{
    char text[GAR_ERROR_MESSAGE_BYTES];
    if (vsnprintf(text, sizeof text, format, args) < 0) {
        text[0] = '\0';
    }
    tidy_message(text);
    err->status = status;
    err->os_errno = 0;
    err->position = -1;
    memcpy(err->message, text, strlen(text) + 1);
}

enum gar_status gar_error_set(struct gar_error *err, enum gar_status status, const char *format,
                              ...)
{
    if (err != NULL) {
        va_list args;
        va_start(args, format);
        store_message(err, status, format, args);
        va_end(args);
    }
    return status;
}

enum gar_status gar_error_set_errno(struct gar_error *err, int os_errno, const char *format, ...)
{
    if (err != NULL) {
        va_list args;
        va_start(args, format);
        store_message(err, GAR_ERR_IO, format, args);
        va_end(args);
        char buffer[128];
        const char *reason = strerror_r(os_errno, buffer, sizeof buffer);
        const size_t used = strlen(err->message);
        snprintf(err->message + used, sizeof err->message - used, ": %s", reason);
        tidy_message(err->message);
        err->os_errno = os_errno;
    }
    return GAR_ERR_IO;
}

enum gar_status gar_error_nomem(struct gar_error *err, int64_t bytes)
{
    return gar_error_set(err, GAR_ERR_NOMEM, "out of memory: the system refused %lld bytes",
                         (long long)bytes);
}

void gar_error_prefix(struct gar_error *err, const char *format, ...)
{
    if (err == NULL) {
        return;
    }
    char text[GAR_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    const int wrote = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (wrote <= 0) {
        return;
    }
    const size_t used = strlen(text);
    const size_t rest = strlen(err->message);
    const size_t take = rest < sizeof text - 1 - used ? rest : sizeof text - 1 - used;
    memcpy(text + used, err->message, take);
    text[used + take] = '\0';
    tidy_message(text);
    memcpy(err->message, text, strlen(text) + 1);
}

/* The escape of one control byte or ill-formed byte; returns its length. */
static int64_t escape_byte(unsigned char c, char out[8])
{
    switch (c) {
    case '\n': memcpy(out, "\\n", 2); return 2;
    case '\r': memcpy(out, "\\r", 2); return 2;
    case '\t': memcpy(out, "\\t", 2); return 2;
    default: return snprintf(out, 8, "\\x%02x", (unsigned)c);
    }
}

const char *gar_error_quote(const char *text, int64_t text_bytes, char *out, int64_t out_bytes)
{
    if (out_bytes <= 0) {
        return "";
    }
    int64_t used = 0;
    int64_t cut_at = 0; /* the last place where "..." still fits */
    int64_t i = 0;
    while (i < text_bytes) {
        char piece[8];
        int64_t piece_bytes = 0;
        int64_t taken = 1;
        const unsigned char c = (unsigned char)text[i];
        if (c < 0x80) {
            if (c < 0x20 || c == 0x7f) {
                piece_bytes = escape_byte(c, piece);
            } else {
                piece[0] = (char)c;
                piece_bytes = 1;
            }
        } else {
            const int64_t want = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
            const bool is_c1 = c == 0xc2 && i + 1 < text_bytes && (unsigned char)text[i + 1] < 0xa0;
            if (want <= text_bytes - i && !is_c1 && gar_utf8_valid(text + i, want)) {
                memcpy(piece, text + i, (size_t)want);
                piece_bytes = taken = want;
            } else {
                piece_bytes = escape_byte(c, piece);
            }
        }
        if (used + piece_bytes > out_bytes - 1) {
            break;
        }
        memcpy(out + used, piece, (size_t)piece_bytes);
        used += piece_bytes;
        i += taken;
        if (used + 3 <= out_bytes - 1) {
            cut_at = used;
        }
    }
    if (i < text_bytes && out_bytes > 3) {
        memcpy(out + cut_at, "...", 3);
        used = cut_at + 3;
    }
    out[used] = '\0';
    return out;
}
