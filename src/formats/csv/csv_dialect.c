/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of CSV options, and the dialect they give for one file. */
#include "formats/csv/csv_dialect.h"

#include <string.h>

struct gar_csv_format gar_csv_format_default(void)
{
    return (struct gar_csv_format){
        .has_header = true,
        .double_quote = true,
        .allow_variable_columns = false,
        .delimiter = ',',
        .quote = '"',
        .escape = GAR_CSV_NONE,
        .comment = GAR_CSV_NONE,
        .nulls = NULL,
        .null_count = 0,
        .line_bytes_max = GAR_CSV_LINE_BYTES_MAX,
    };
}

static enum gar_status check_byte(const char *name, int32_t byte, bool may_lack,
                                  struct gar_error *err)
{
    if (byte == GAR_CSV_NONE && may_lack) {
        return GAR_OK;
    }
    if (byte < 0 || byte > 127) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "csv option %s must be one ASCII character, got %d", name, byte);
    }
    if (byte == '\n' || byte == '\r') {
        return gar_error_set(err, GAR_ERR_VALUE, "csv option %s cannot be a line end", name);
    }
    return GAR_OK;
}

static enum gar_status check_apart(const char *a_name, int32_t a, const char *b_name, int32_t b,
                                   struct gar_error *err)
{
    if (a != GAR_CSV_NONE && a == b) {
        char text[16];
        const char c = (char)a;
        return gar_error_set(err, GAR_ERR_VALUE,
                             "csv options %s and %s are both '%s'; they must differ", a_name,
                             b_name, gar_error_quote(&c, 1, text, (int64_t)sizeof text));
    }
    return GAR_OK;
}

enum gar_status gar_csv_format_check(const struct gar_csv_format *format, struct gar_error *err)
{
    GAR_TRY(check_byte("delimiter", format->delimiter, false, err));
    GAR_TRY(check_byte("quote", format->quote, true, err));
    GAR_TRY(check_byte("escape", format->escape, true, err));
    GAR_TRY(check_byte("comment", format->comment, true, err));
    GAR_TRY(check_apart("delimiter", format->delimiter, "quote", format->quote, err));
    GAR_TRY(check_apart("delimiter", format->delimiter, "escape", format->escape, err));
    GAR_TRY(check_apart("delimiter", format->delimiter, "comment", format->comment, err));
    GAR_TRY(check_apart("quote", format->quote, "comment", format->comment, err));
    GAR_TRY(check_apart("escape", format->escape, "comment", format->comment, err));
    if (format->line_bytes_max < 1 || format->line_bytes_max > (int64_t)1 << 30) {
        return gar_error_set(err, GAR_ERR_VALUE,
                             "csv option line_bytes_max must be 1 to 2^30, got %lld",
                             (long long)format->line_bytes_max);
    }
    return GAR_OK;
}

/* Is there a '\r', but no '\n', outside of quotes? The last byte does not count: its '\n' may follow. */
static bool ends_in_returns(const struct gar_csv_dialect *dialect, const uint8_t *head,
                            int64_t head_bytes)
{
    bool is_inside = false;
    bool has_return = false;
    for (int64_t i = 0; i < head_bytes; i++) {
        if (dialect->has_quote && head[i] == dialect->quote) {
            is_inside = !is_inside;
        } else if (!is_inside && head[i] == '\n') {
            return false;
        }
        has_return |= !is_inside && head[i] == '\r' && i + 1 < head_bytes;
    }
    return has_return;
}

struct gar_csv_dialect gar_csv_dialect_of(const struct gar_csv_format *format, const uint8_t *head,
                                          int64_t head_bytes)
{
    struct gar_csv_dialect dialect = {
        .delimiter = (uint8_t)format->delimiter,
        .terminator = '\n',
        .has_quote = format->quote != GAR_CSV_NONE,
        .has_escape = format->escape != GAR_CSV_NONE && format->escape != format->quote,
        .has_comment = format->comment != GAR_CSV_NONE,
        .double_quote = format->double_quote || format->escape == format->quote,
    };
    dialect.quote = dialect.has_quote ? (uint8_t)format->quote : 0;
    dialect.escape = dialect.has_escape ? (uint8_t)format->escape : 0;
    dialect.comment = dialect.has_comment ? (uint8_t)format->comment : 0;
    if (ends_in_returns(&dialect, head, head_bytes)) {
        dialect.terminator = '\r';
    }
    return dialect;
}

enum gar_status gar_csv_bom(const uint8_t *head, int64_t head_bytes, int64_t *out_bytes,
                            struct gar_error *err)
{
    *out_bytes = 0;
    if (head_bytes >= 3 && memcmp(head, "\xEF\xBB\xBF", 3) == 0) {
        *out_bytes = 3;
        return GAR_OK;
    }
    if (head_bytes >= 2 && (memcmp(head, "\xFF\xFE", 2) == 0 || memcmp(head, "\xFE\xFF", 2) == 0)) {
        return gar_error_set(err, GAR_ERR_UNSUPPORTED,
                             "the file is UTF-16 or UTF-32 (it starts with that byte-order mark); "
                             "convert it to UTF-8 "
                             "first, for example with iconv");
    }
    return GAR_OK;
}
