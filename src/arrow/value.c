/* SPDX-License-Identifier: Apache-2.0 */
/* Single values: reading them from columns and text, printing and comparing them. */
#include "arrow/value.h"

#include <math.h>

#include "arrow/builder.h"
#include "base/alloc.h"
#include "base/calendar.h"
#include "base/number_text.h"
#include "base/utf8.h"

void gar_value_destroy(struct gar_value *value)
{
    if (value == NULL) {
        return;
    }
    if (value->is_valid && gar_type_is_text(value->type)) {
        gar_free(value->text.data);
    }
    *value = (struct gar_value){0};
}

static enum gar_status set_text(struct gar_type type, const void *data, int64_t size,
                                struct gar_value *out, struct gar_error *err)
{
    char *copy = gar_malloc(size + 1);
    if (copy == NULL) {
        return gar_error_nomem(err, size + 1);
    }
    if (size > 0) {
        memcpy(copy, data, (size_t)size);
    }
    copy[size] = '\0';
    *out = (struct gar_value){.type = type, .is_valid = true};
    out->text.data = copy;
    out->text.size = size;
    return GAR_OK;
}

enum gar_status gar_value_copy(const struct gar_value *value, struct gar_value *out,
                               struct gar_error *err)
{
    if (value->is_valid && gar_type_is_text(value->type)) {
        return set_text(value->type, value->text.data, value->text.size, out, err);
    }
    *out = *value;
    return GAR_OK;
}

/* ---- from text ---- */

static bool parse_bool(const char *data, int64_t size, bool *out)
{
    char word[8] = {0};
    if (size < 1 || size >= (int64_t)sizeof word) {
        return false;
    }
    for (int64_t i = 0; i < size; i++) {
        word[i] = data[i] >= 'A' && data[i] <= 'Z' ? (char)(data[i] + ('a' - 'A')) : data[i];
    }
    *out = strcmp(word, "true") == 0 || strcmp(word, "t") == 0 || strcmp(word, "1") == 0;
    return *out || strcmp(word, "false") == 0 || strcmp(word, "f") == 0 || strcmp(word, "0") == 0;
}

/* Does v fit the width of an integer type? */
static bool signed_fits(struct gar_type type, int64_t v)
{
    const int32_t bits = 8 * gar_type_width(type);
    return bits >= 64 || (v >= -(INT64_C(1) << (bits - 1)) && v < (INT64_C(1) << (bits - 1)));
}

static bool unsigned_fits(struct gar_type type, uint64_t v)
{
    const int32_t bits = 8 * gar_type_width(type);
    return bits >= 64 || v < (UINT64_C(1) << bits);
}

static enum gar_status parse_integer(struct gar_type type, const char *data, int64_t size,
                                     struct gar_value *out)
{
    if (gar_type_is_unsigned(type)) {
        const enum gar_status status = gar_parse_u64(data, size, &out->u64);
        return status == GAR_OK && !unsigned_fits(type, out->u64) ? GAR_ERR_OVERFLOW : status;
    }
    const enum gar_status status = gar_parse_i64(data, size, &out->i64);
    return status == GAR_OK && !signed_fits(type, out->i64) ? GAR_ERR_OVERFLOW : status;
}

static bool parse_time_of_day(struct gar_type type, const char *data, int64_t size, int64_t *out)
{
    int64_t ns = 0;
    if (!gar_parse_time(data, size, &ns)) {
        return false;
    }
    *out = type.unit == GAR_NANO ? ns : ns / 1000;
    return true;
}

/* Status without a message; out->type and is_valid are set by the caller. */
static enum gar_status parse_value(struct gar_type type, const char *data, int64_t size,
                                   struct gar_value *out)
{
    bool ok = false;
    bool has_offset = false;
    int32_t days = 0;
    switch ((enum gar_type_id)type.id) {
    case GAR_BOOL: ok = parse_bool(data, size, &out->boolean); break;
    case GAR_INT8:
    case GAR_INT16:
    case GAR_INT32:
    case GAR_INT64:
    case GAR_UINT8:
    case GAR_UINT16:
    case GAR_UINT32:
    case GAR_UINT64: return parse_integer(type, data, size, out);
    case GAR_FLOAT32: {
        float f = 0;
        ok = gar_parse_float(data, size, &f);
        out->f64 = (double)f;
        break;
    }
    case GAR_FLOAT64: ok = gar_parse_double(data, size, &out->f64); break;
    case GAR_DECIMAL128:
        return gar_decimal_parse(data, size, type.precision, type.scale, false, &out->i128);
    case GAR_DATE:
        ok = gar_parse_date(data, size, &days);
        out->i64 = days;
        break;
    case GAR_TIME: ok = parse_time_of_day(type, data, size, &out->i64); break;
    case GAR_TIMESTAMP:
        ok = gar_parse_timestamp(data, size, gar_unit_digits((enum gar_time_unit)type.unit),
                                 &out->i64, &has_offset);
        break;
    case GAR_DURATION: return gar_parse_i64(data, size, &out->i64);
    case GAR_NULL:
    case GAR_STRING:
    case GAR_BINARY:
    case GAR_LIST:
    case GAR_FIXED_LIST:
    case GAR_STRUCT:
    case GAR_MAP:
    case GAR_TYPE_ID_COUNT: break;
    }
    return ok ? GAR_OK : GAR_ERR_VALUE;
}

enum gar_status gar_value_from_text(struct gar_type type, const char *data, int64_t size,
                                    struct gar_value *out, struct gar_error *err)
{
    if (gar_type_is_text(type)) {
        return set_text(type, data, size, out, err);
    }
    struct gar_value value = {.type = type, .is_valid = true};
    const enum gar_status status = parse_value(type, data, size, &value);
    if (status < 0) {
        char quoted[128];
        char name[64];
        return gar_error_set(err, status,
                             status == GAR_ERR_OVERFLOW ? "'%s' does not fit %s"
                                                        : "'%s' is not a value of %s",
                             gar_error_quote(data, size, quoted, (int64_t)sizeof quoted),
                             gar_type_text(type, name, (int64_t)sizeof name));
    }
    *out = value;
    return GAR_OK;
}

/* ---- from and to columns ---- */

#define GAR_LOAD(type) (((const type *)values->values)[at])

enum gar_status gar_value_from_column(const struct gar_column *column, int64_t i,
                                      struct gar_value *out, struct gar_error *err)
{
    struct gar_value value = {.type = column->type, .is_valid = !gar_column_is_null(column, i)};
    if (!value.is_valid) {
        *out = value;
        return GAR_OK;
    }
    const struct gar_column *values = NULL;
    const int64_t at = gar_column_locate(column, i, &values);
    int64_t bytes = 0;
    switch ((enum gar_type_id)column->type.id) {
    case GAR_BOOL: value.boolean = gar_bit_get(values->values, values->values_offset + at); break;
    case GAR_INT8: value.i64 = GAR_LOAD(int8_t); break;
    case GAR_INT16: value.i64 = GAR_LOAD(int16_t); break;
    case GAR_DATE:
    case GAR_INT32: value.i64 = GAR_LOAD(int32_t); break;
    case GAR_TIME:
    case GAR_TIMESTAMP:
    case GAR_DURATION:
    case GAR_INT64: value.i64 = GAR_LOAD(int64_t); break;
    case GAR_UINT8: value.u64 = GAR_LOAD(uint8_t); break;
    case GAR_UINT16: value.u64 = GAR_LOAD(uint16_t); break;
    case GAR_UINT32: value.u64 = GAR_LOAD(uint32_t); break;
    case GAR_UINT64: value.u64 = GAR_LOAD(uint64_t); break;
    case GAR_FLOAT32: value.f64 = (double)GAR_LOAD(float); break;
    case GAR_FLOAT64: value.f64 = GAR_LOAD(double); break;
    case GAR_DECIMAL128: value.i128 = GAR_LOAD(gar_i128); break;
    case GAR_STRING:
    case GAR_BINARY: {
        const uint8_t *data = gar_column_bytes_at(values, at, &bytes);
        return set_text(column->type, data, bytes, out, err);
    }
    case GAR_LIST:
    case GAR_FIXED_LIST:
    case GAR_STRUCT:
    case GAR_MAP: {
        char text[96];
        return gar_error_set(err, GAR_ERR_UNSUPPORTED, "%s has no single values",
                             gar_type_text(column->type, text, (int64_t)sizeof text));
    }
    case GAR_NULL:
    case GAR_TYPE_ID_COUNT: break;
    }
    *out = value;
    return GAR_OK;
}

enum gar_status gar_value_to_column(const struct gar_value *value, struct gar_memory *memory,
                                    struct gar_column **out, struct gar_error *err)
{
    struct gar_builder builder;
    gar_builder_init(&builder, memory, value->type);
    enum gar_status status = gar_builder_reserve(&builder, 1, err);
    if (status >= 0) {
        status = gar_builder_append_value(&builder, value, err);
    }
    if (status >= 0) {
        status = gar_builder_finish(&builder, out, err);
    }
    gar_builder_destroy(&builder);
    return status;
}

/* ---- printing ---- */

static void append_escaped(struct gar_strbuf *out, const char *data, int64_t size)
{
    static const char digits[] = "0123456789abcdef";
    for (int64_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)data[i];
        if (c == '\n' || c == '\r' || c == '\t') {
            gar_strbuf_append_char(out, '\\');
            gar_strbuf_append_char(out, c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
        } else if (c < 0x20 || c == 0x7f) {
            gar_strbuf_append(out, "\\x");
            gar_strbuf_append_char(out, digits[c >> 4]);
            gar_strbuf_append_char(out, digits[c & 15]);
        } else if (c == 0xc2 && i + 1 < size &&
                   (unsigned char)data[i + 1] < 0xa0) { /* C1 controls */
            gar_strbuf_append(out, "\\x");
            gar_strbuf_append_char(out, digits[(unsigned char)data[i + 1] >> 4]);
            gar_strbuf_append_char(out, digits[(unsigned char)data[i + 1] & 15]);
            i++;
        } else if (c == 0xe2 && i + 2 < size && (unsigned char)data[i + 1] == 0x80 &&
                   (((unsigned char)data[i + 2] >= 0xa8 && (unsigned char)data[i + 2] <= 0xae) ||
                    (unsigned char)data[i + 2] == 0x8e || (unsigned char)data[i + 2] == 0x8f)) {
            /* line separators and direction marks: they would turn the rest of the line around */
            gar_strbuf_printf(out, "\\u%04x",
                              0x2000u | ((unsigned)(unsigned char)data[i + 2] & 0x3fu));
            i += 2;
        } else {
            gar_strbuf_append_char(out, (char)c);
        }
    }
}

static void append_hex(struct gar_strbuf *out, const char *data, int64_t size)
{
    static const char digits[] = "0123456789abcdef";
    for (int64_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)data[i];
        gar_strbuf_append_char(out, digits[c >> 4]);
        gar_strbuf_append_char(out, digits[c & 15]);
    }
}

/* "3d 04:05:06.789", without days when there are none. */
static void append_duration(struct gar_strbuf *out, int64_t v, enum gar_time_unit unit)
{
    const int32_t digits = gar_unit_digits(unit);
    const uint64_t per_second = (uint64_t)gar_ticks_per_second(digits);
    const uint64_t magnitude = v < 0 ? UINT64_C(0) - (uint64_t)v : (uint64_t)v;
    const uint64_t seconds = magnitude / per_second;
    const uint64_t fraction = magnitude % per_second;
    if (v < 0) {
        gar_strbuf_append_char(out, '-');
    }
    if (seconds >= 86400) {
        gar_strbuf_printf(out, "%llud ", (unsigned long long)(seconds / 86400));
    }
    gar_strbuf_printf(out, "%02u:%02u:%02u", (unsigned)(seconds % 86400 / 3600),
                      (unsigned)(seconds % 3600 / 60), (unsigned)(seconds % 60));
    if (digits > 0) {
        gar_strbuf_printf(out, ".%0*llu", (int)digits, (unsigned long long)fraction);
    }
}

/* Everything but text, without quotes. Zoned timestamps are shown on the UTC clock with a Z. */
static void append_scalar(struct gar_strbuf *out, const struct gar_value *value)
{
    char text[64];
    int32_t bytes = 0;
    const enum gar_time_unit unit = (enum gar_time_unit)(value->type.unit & 3);
    switch ((enum gar_type_id)value->type.id) {
    case GAR_BOOL: gar_strbuf_append(out, value->boolean ? "true" : "false"); return;
    case GAR_INT8:
    case GAR_INT16:
    case GAR_INT32:
    case GAR_INT64: bytes = gar_format_i64(value->i64, text); break;
    case GAR_UINT8:
    case GAR_UINT16:
    case GAR_UINT32:
    case GAR_UINT64: bytes = gar_format_u64(value->u64, text); break;
    case GAR_FLOAT32: bytes = gar_format_float((float)value->f64, text); break;
    case GAR_FLOAT64: bytes = gar_format_double(value->f64, text); break;
    case GAR_DECIMAL128: bytes = gar_decimal_format(value->i128, value->type.scale, text); break;
    case GAR_DATE: bytes = gar_format_date((int32_t)value->i64, text); break;
    case GAR_TIME: bytes = gar_format_time(value->i64, gar_unit_digits(unit), text); break;
    case GAR_TIMESTAMP:
        bytes = gar_format_timestamp(value->i64, gar_unit_digits(unit), text);
        if (value->type.zone != NULL) {
            text[bytes++] = 'Z';
        }
        break;
    case GAR_DURATION: append_duration(out, value->i64, unit); return;
    case GAR_NULL:
    case GAR_STRING:
    case GAR_BINARY:
    case GAR_LIST:
    case GAR_FIXED_LIST:
    case GAR_STRUCT:
    case GAR_MAP:
    case GAR_TYPE_ID_COUNT: return;
    }
    gar_strbuf_append_n(out, text, bytes);
}

static void print_quoted(struct gar_strbuf *out, const char *data, int64_t size)
{
    gar_strbuf_append_char(out, '\'');
    const char *at = data;
    const char *const end = data + size;
    while (at < end) {
        const char *quote = memchr(at, '\'', (size_t)(end - at));
        const char *stop = quote != NULL ? quote : end;
        append_escaped(out, at, stop - at);
        gar_strbuf_append(out, quote != NULL ? "''" : "");
        at = quote != NULL ? stop + 1 : stop;
    }
    gar_strbuf_append_char(out, '\'');
}

void gar_value_print(const struct gar_value *value, struct gar_strbuf *out)
{
    if (!value->is_valid) {
        gar_strbuf_append(out, "null");
        return;
    }
    const char *word = NULL;
    switch ((enum gar_type_id)value->type.id) {
    case GAR_STRING: print_quoted(out, value->text.data, value->text.size); return;
    case GAR_BINARY:
        gar_strbuf_append(out, "x'");
        append_hex(out, value->text.data, value->text.size);
        gar_strbuf_append_char(out, '\'');
        return;
    case GAR_DATE: word = "date '"; break;
    case GAR_TIME: word = "time '"; break;
    case GAR_TIMESTAMP: word = value->type.zone != NULL ? "timestamptz '" : "timestamp '"; break;
    case GAR_DURATION: word = "interval '"; break;
    case GAR_NULL:
    case GAR_BOOL:
    case GAR_INT8:
    case GAR_INT16:
    case GAR_INT32:
    case GAR_INT64:
    case GAR_UINT8:
    case GAR_UINT16:
    case GAR_UINT32:
    case GAR_UINT64:
    case GAR_FLOAT32:
    case GAR_FLOAT64:
    case GAR_DECIMAL128:
    case GAR_LIST:
    case GAR_FIXED_LIST:
    case GAR_STRUCT:
    case GAR_MAP:
    case GAR_TYPE_ID_COUNT: break;
    }
    gar_strbuf_append(out, word != NULL ? word : "");
    append_scalar(out, value);
    gar_strbuf_append(out, word != NULL ? "'" : "");
}

/* The longest start of the text that has at most max_bytes and ends at a character border. */
static int64_t cut_at(const char *data, int64_t size, int64_t max_bytes)
{
    if (max_bytes <= 0 || size <= max_bytes) {
        return size;
    }
    int64_t end = max_bytes;
    while (end > 0 && ((unsigned char)data[end] & 0xC0u) == 0x80u) {
        end--;
    }
    return end;
}

void gar_value_print_plain(const struct gar_value *value, int64_t max_bytes, struct gar_strbuf *out)
{
    if (!value->is_valid) {
        gar_strbuf_append(out, "null");
        return;
    }
    if (value->type.id == GAR_STRING) {
        const int64_t end = cut_at(value->text.data, value->text.size, max_bytes);
        append_escaped(out, value->text.data, end);
        gar_strbuf_append(out, end < value->text.size ? "…" : "");
    } else if (value->type.id == GAR_BINARY) {
        const int64_t shown =
            max_bytes > 0 ? gar_min_i64(value->text.size, max_bytes / 2) : value->text.size;
        append_hex(out, value->text.data, shown);
        gar_strbuf_append(out, shown < value->text.size ? "…" : "");
    } else {
        append_scalar(out, value);
    }
}

/* ---- comparing ---- */

static int32_t compare_doubles(double a, double b)
{
    if (isnan(a) || isnan(b)) {
        return (isnan(a) ? 1 : 0) - (isnan(b) ? 1 : 0);
    }
    return (a > b) - (a < b);
}

static int32_t compare_texts(const struct gar_value *a, const struct gar_value *b)
{
    const int64_t common = gar_min_i64(a->text.size, b->text.size);
    const int order = common > 0 ? memcmp(a->text.data, b->text.data, (size_t)common) : 0;
    if (order != 0) {
        return order < 0 ? -1 : 1;
    }
    return (a->text.size > b->text.size) - (a->text.size < b->text.size);
}

int32_t gar_value_compare(const struct gar_value *a, const struct gar_value *b)
{
    switch ((enum gar_type_id)a->type.id) {
    case GAR_BOOL: return (int32_t)a->boolean - (int32_t)b->boolean;
    case GAR_UINT8:
    case GAR_UINT16:
    case GAR_UINT32:
    case GAR_UINT64: return (a->u64 > b->u64) - (a->u64 < b->u64);
    case GAR_FLOAT32:
    case GAR_FLOAT64: return compare_doubles(a->f64, b->f64);
    case GAR_DECIMAL128: return (a->i128 > b->i128) - (a->i128 < b->i128);
    case GAR_STRING:
    case GAR_BINARY: return compare_texts(a, b);
    case GAR_INT8:
    case GAR_INT16:
    case GAR_INT32:
    case GAR_INT64:
    case GAR_DATE:
    case GAR_TIME:
    case GAR_TIMESTAMP:
    case GAR_DURATION: return (a->i64 > b->i64) - (a->i64 < b->i64);
    case GAR_NULL:
    case GAR_LIST:
    case GAR_FIXED_LIST:
    case GAR_STRUCT:
    case GAR_MAP:
    case GAR_TYPE_ID_COUNT: break;
    }
    return 0;
}

bool gar_value_equal(const struct gar_value *a, const struct gar_value *b)
{
    if (!gar_type_equal(a->type, b->type) || a->is_valid != b->is_valid) {
        return false;
    }
    return !a->is_valid || gar_value_compare(a, b) == 0;
}
