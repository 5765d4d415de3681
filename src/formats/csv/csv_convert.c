/* SPDX-License-Identifier: Apache-2.0 */
/* Typed columns from text fields. Each type has a fast way over CSV_VECTOR_ROWS rows for plain fields; a field that
 * is anything else (quoted, blank, null, long, odd) goes one by one through `open_cell` and the full parser of its type. */
#include <string.h>

#include "base/calendar.h"
#include "base/number_text.h"
#include "base/utf8.h"
#include "formats/csv/csv_convert_priv.h"

/* Values are views up to this size. */
#define VIEW_BYTES_MAX INT32_MAX

/* ---- targets ---- */

bool csv_type_is_readable(struct gar_type type)
{
    return type.id < GAR_TYPE_ID_COUNT && !gar_type_is_nested(type);
}

static int64_t values_bytes(struct gar_type type, int64_t rows)
{
    return type.id == GAR_BOOL ? gar_bits_bytes(rows) : rows * gar_type_width(type);
}

enum gar_status csv_target_init(struct csv_target *target, struct gar_type type, int64_t capacity,
                                struct gar_memory *memory, struct gar_error *err)
{
    memset(target, 0, sizeof *target);
    target->type = type;
    target->memory = memory;
    target->capacity = capacity;
    if (type.id == GAR_BOOL) {
        return gar_buffer_new_zeroed(memory, values_bytes(type, capacity), &target->values, err);
    }
    return gar_buffer_new(memory, values_bytes(type, capacity), &target->values, err);
}

void csv_target_destroy(struct csv_target *target)
{
    gar_buffer_unref(target->values);
    gar_buffer_unref(target->validity);
    gar_buffer_unref(target->side);
    memset(target, 0, sizeof *target);
}

/* Mark the row null; its value is zeroed by the caller. */
static bool put_null(struct csv_target *t, int64_t row, struct gar_error *err)
{
    if (t->type.id == GAR_NULL) {
        return true;
    }
    if (GAR_UNLIKELY(t->validity == NULL)) {
        if (gar_buffer_new(t->memory, gar_bits_bytes(t->capacity), &t->validity, err) < 0) {
            return false;
        }
        memset(t->validity->data, 0xff, (size_t)t->validity->size);
    }
    gar_bit_clear(t->validity->data, row);
    t->null_count++;
    return true;
}

enum gar_status csv_target_finish(struct csv_target *target, struct gar_buffer *block,
                                  struct gar_column **out, struct gar_error *err)
{
    if (target->type.id == GAR_NULL) {
        return gar_column_new_null(target->memory, target->type, target->length, out, err);
    }
    struct gar_buffer *data[2] = {NULL, NULL};
    int32_t data_count = 0;
    if (target->uses_block || target->side != NULL) {
        data[data_count++] = gar_buffer_ref(block);
    }
    if (target->side != NULL) {
        target->side->size = target->side_bytes;
        data[data_count++] = target->side;
    }
    target->values->size = values_bytes(target->type, target->length);
    const struct gar_column_parts parts = {
        .type = target->type,
        .length = target->length,
        .null_count = target->null_count,
        .validity = target->validity,
        .values = target->values,
        .data = data_count > 0 ? data : NULL,
        .data_count = data_count,
    };
    const enum gar_status status = gar_column_from_parts(&parts, out, err);
    if (status < 0) {
        if (data_count > 0) {
            gar_buffer_unref(data[0]);
        }
        return status;
    }
    target->values = NULL;
    target->validity = NULL;
    target->side = NULL;
    return GAR_OK;
}

/* ---- one field ---- */

struct cell {
    const uint8_t *text;
    int64_t bytes;
    bool is_null;
    bool is_quoted;
};

static bool is_null_text(const struct csv_rules *rules, const uint8_t *text, int64_t bytes)
{
    for (int64_t i = 0; i < rules->null_count; i++) {
        if (rules->nulls[i].bytes == bytes &&
            memcmp(rules->nulls[i].text, text, (size_t)bytes) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r';
}

/* A field of a type other than text: quotes off, blanks off, null or not. */
static enum csv_problem open_cell(const struct csv_rules *rules, const uint8_t *text, int64_t bytes,
                                  struct cell *out)
{
    out->is_quoted = rules->dialect.has_quote && bytes > 0 && text[0] == rules->dialect.quote;
    if (out->is_quoted) {
        if (bytes < 2 || text[bytes - 1] != rules->dialect.quote) {
            return CSV_AFTER_QUOTE;
        }
        text++;
        bytes -= 2;
    }
    while (bytes > 0 && is_blank(text[0])) {
        text++;
        bytes--;
    }
    while (bytes > 0 && is_blank(text[bytes - 1])) {
        bytes--;
    }
    out->text = text;
    out->bytes = bytes;
    out->is_null = bytes == 0 || is_null_text(rules, text, bytes);
    return CSV_FINE;
}

static const uint8_t *field_at(const struct csv_fields *f, int64_t row, int64_t *out_bytes)
{
    const uint32_t start = f->before[row * f->stride] + 1;
    *out_bytes = (int64_t)(uint32_t)(f->ends[row * f->stride] - start);
    return f->data + start;
}

static enum csv_problem problem_of(enum gar_status status)
{
    return status == GAR_OK             ? CSV_FINE
           : status == GAR_ERR_OVERFLOW ? CSV_OUT_OF_RANGE
                                        : CSV_NOT_A_VALUE;
}

/* ---- numbers ---- */

static enum csv_problem narrow_i64(int64_t value, int64_t low, int64_t high, int64_t *out)
{
    *out = value;
    return value < low || value > high ? CSV_OUT_OF_RANGE : CSV_FINE;
}

static int64_t integer_low(enum gar_type_id id)
{
    switch ((int)id) {
    case GAR_INT8: return INT8_MIN;
    case GAR_INT16: return INT16_MIN;
    case GAR_INT32: return INT32_MIN;
    case GAR_INT64:
    case GAR_DURATION: return INT64_MIN;
    default: return 0;
    }
}

static int64_t integer_high(enum gar_type_id id)
{
    switch ((int)id) {
    case GAR_INT8: return INT8_MAX;
    case GAR_INT16: return INT16_MAX;
    case GAR_INT32: return INT32_MAX;
    case GAR_UINT8: return UINT8_MAX;
    case GAR_UINT16: return UINT16_MAX;
    case GAR_UINT32: return UINT32_MAX;
    default: return INT64_MAX;
    }
}

/* The text of any value but text, stored at values[row]. text is trimmed and not empty. */
static enum csv_problem store_integer(struct gar_type type, const struct cell *cell,
                                      uint8_t *values, int64_t row)
{
    if (type.id == GAR_UINT64) {
        uint64_t u = 0;
        const enum csv_problem problem =
            problem_of(gar_parse_u64((const char *)cell->text, cell->bytes, &u));
        ((uint64_t *)(void *)values)[row] = u;
        return problem;
    }
    int64_t v = 0;
    enum csv_problem problem = problem_of(gar_parse_i64((const char *)cell->text, cell->bytes, &v));
    if (problem == CSV_FINE) {
        problem = narrow_i64(v, integer_low(type.id), integer_high(type.id), &v);
    }
    switch (gar_type_width(type)) {
    case 1: values[row] = (uint8_t)v; break;
    case 2: ((uint16_t *)(void *)values)[row] = (uint16_t)v; break;
    case 4: ((uint32_t *)(void *)values)[row] = (uint32_t)v; break;
    default: ((int64_t *)(void *)values)[row] = v; break;
    }
    return problem;
}

static bool same_word(const struct cell *cell, const char *word)
{
    const int64_t bytes = (int64_t)strlen(word);
    if (cell->bytes != bytes) {
        return false;
    }
    for (int64_t i = 0; i < bytes; i++) {
        if ((cell->text[i] | 0x20) != (uint8_t)word[i]) {
            return false;
        }
    }
    return true;
}

static enum csv_problem store_timestamp(struct gar_type type, const struct cell *cell, int64_t *out)
{
    bool has_offset = false;
    const int32_t digits = gar_unit_digits((enum gar_time_unit)type.unit);
    if (!gar_parse_timestamp((const char *)cell->text, cell->bytes, digits, out, &has_offset)) {
        return CSV_NOT_A_VALUE;
    }
    if (type.zone == NULL) {
        return has_offset ? CSV_HAS_ZONE : CSV_FINE;
    }
    return has_offset || strcmp(type.zone, "UTC") == 0 ? CSV_FINE : CSV_NO_ZONE;
}

static enum csv_problem store_time(struct gar_type type, const struct cell *cell, int64_t *out)
{
    int64_t ns = 0;
    if (!gar_parse_time((const char *)cell->text, cell->bytes, &ns)) {
        return CSV_NOT_A_VALUE;
    }
    *out = type.unit == GAR_NANO ? ns : ns / 1000;
    return CSV_FINE;
}

static enum csv_problem store_value(struct gar_type type, const struct cell *cell, uint8_t *values,
                                    int64_t row)
{
    const char *text = (const char *)cell->text;
    const int64_t bytes = cell->bytes;
    switch ((enum gar_type_id)type.id) {
    case GAR_BOOL:
        if (!same_word(cell, "true") && !same_word(cell, "false")) {
            return CSV_NOT_A_VALUE;
        }
        gar_bit_put(values, row, bytes == 4);
        return CSV_FINE;
    case GAR_INT8:
    case GAR_INT16:
    case GAR_INT32:
    case GAR_INT64:
    case GAR_UINT8:
    case GAR_UINT16:
    case GAR_UINT32:
    case GAR_UINT64:
    case GAR_DURATION: return store_integer(type, cell, values, row);
    case GAR_FLOAT32:
        return gar_parse_float(text, bytes, (float *)(void *)values + row) ? CSV_FINE
                                                                           : CSV_NOT_A_VALUE;
    case GAR_FLOAT64:
        return gar_parse_double(text, bytes, (double *)(void *)values + row) ? CSV_FINE
                                                                             : CSV_NOT_A_VALUE;
    case GAR_DECIMAL128: {
        gar_i128 v = 0;
        const enum csv_problem problem =
            problem_of(gar_decimal_parse(text, bytes, type.precision, type.scale, false, &v));
        memcpy(values + row * 16, &v, sizeof v);
        return problem;
    }
    case GAR_DATE:
        return gar_parse_date(text, bytes, (int32_t *)(void *)values + row) ? CSV_FINE
                                                                            : CSV_NOT_A_VALUE;
    case GAR_TIME: return store_time(type, cell, (int64_t *)(void *)values + row);
    case GAR_TIMESTAMP: return store_timestamp(type, cell, (int64_t *)(void *)values + row);
    case GAR_NULL: return CSV_NOT_A_VALUE;
    case GAR_STRING:
    case GAR_BINARY:
    case GAR_LIST:
    case GAR_FIXED_LIST:
    case GAR_STRUCT:
    case GAR_MAP:
    case GAR_TYPE_ID_COUNT: break;
    }
    return CSV_UNSUPPORTED_TYPE;
}

/* Field `row` of f, by the full rules, as the target's row `at`. */
static enum csv_problem convert_one(const struct csv_rules *rules, const struct csv_fields *f,
                                    int64_t row, struct csv_target *t, int64_t at,
                                    struct gar_error *err)
{
    int64_t bytes;
    const uint8_t *text = field_at(f, row, &bytes);
    struct cell cell = {.text = text, .is_null = true};
    if (bytes > 0) {
        const enum csv_problem problem = open_cell(rules, text, bytes, &cell);
        if (problem != CSV_FINE) {
            return problem;
        }
    }
    if (!cell.is_null) {
        return store_value(t->type, &cell, t->values->data, at);
    }
    const int32_t width = gar_type_width(t->type);
    if (width > 0) {
        memset(t->values->data + at * width, 0, (size_t)width);
    }
    return put_null(t, at, err) ? CSV_FINE : CSV_NO_MEMORY;
}

/* The rows of [from, from + rows) whose bit in plain is not set. */
static enum csv_problem convert_rest(const struct csv_rules *rules, const struct csv_fields *f,
                                     int64_t from, int64_t rows, const uint64_t *plain,
                                     struct csv_target *t, int64_t *out_row, struct gar_error *err)
{
    for (int64_t base = 0; base < rows; base += 64) {
        const int64_t here = gar_min_i64(64, rows - base);
        uint64_t left = ~plain[base >> 6];
        if (here < 64) {
            left &= (UINT64_C(1) << here) - 1;
        }
        while (left != 0) {
            const int64_t i = base + gar_ctz64(left);
            left &= left - 1;
            const enum csv_problem problem = convert_one(rules, f, from + i, t, t->length + i, err);
            if (GAR_UNLIKELY(problem != CSV_FINE)) {
                *out_row = from + i;
                return problem;
            }
        }
    }
    return CSV_FINE;
}

/* Rows whose value is out of bounds lose their bit: the slow way finds out what is wrong with them. */
static void keep_within(const int64_t *values, int64_t rows, int64_t low, int64_t high,
                        uint64_t *plain)
{
    for (int64_t base = 0; base < rows; base += 64) {
        const int64_t here = gar_min_i64(64, rows - base);
        uint64_t bad = 0;
        for (int64_t k = 0; k < here; k++) {
            bad |= (uint64_t)(values[base + k] < low || values[base + k] > high) << k;
        }
        plain[base >> 6] &= ~bad;
    }
}

#define NARROW(CTYPE)                                             \
    do {                                                          \
        CTYPE *to = (CTYPE *)(void *)t->values->data + t->length; \
        for (int64_t i = 0; i < rows; i++) {                      \
            to[i] = (CTYPE)values[i];                             \
        }                                                         \
    } while (0)

static void integer_vector(const struct csv_fields *f, int64_t row, int64_t rows,
                           struct csv_target *t, uint64_t *plain)
{
    if (t->type.id == GAR_INT64) {
        csv_parse_integers(f, row, rows, (int64_t *)(void *)t->values->data + t->length, plain);
        return;
    }
    int64_t values[CSV_VECTOR_ROWS];
    csv_parse_integers(f, row, rows, values, plain);
    keep_within(values, rows, integer_low(t->type.id), integer_high(t->type.id), plain);
    switch (gar_type_width(t->type)) {
    case 1: NARROW(uint8_t); break;
    case 2: NARROW(uint16_t); break;
    case 4: NARROW(uint32_t); break;
    default: NARROW(uint64_t); break;
    }
}

/* Rounding to double and then to float goes wrong only when the double lies halfway between two floats. */
static void float_vector(const struct csv_fields *f, int64_t row, int64_t rows,
                         struct csv_target *t, uint64_t *plain)
{
    double values[CSV_VECTOR_ROWS];
    float *to = (float *)(void *)t->values->data + t->length;
    csv_parse_doubles(f, row, rows, values, plain);
    for (int64_t i = 0; i < rows; i++) {
        uint64_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        to[i] = (float)values[i];
        if ((bits & 0x1fffffff) == 0x10000000) {
            plain[i >> 6] &= ~(UINT64_C(1) << (i & 63));
        }
    }
}

static void fill_decimal_rules(struct gar_type type, struct csv_decimal_rules *rules)
{
    for (int32_t fraction = 0; fraction < GAR_COUNT_OF(rules->factor); fraction++) {
        const int32_t by = type.scale - fraction;
        const bool is_fast = by >= 0 && by <= GAR_DECIMAL64_PRECISION_MAX;
        rules->factor[fraction] = is_fast ? gar_pow10_i64(by) : 0;
        rules->limit[fraction] = -1;
        if (is_fast) {
            const gar_i128 greatest = gar_pow10_i128(type.precision) - 1;
            rules->limit[fraction] =
                (int64_t)(greatest > INT64_MAX ? INT64_MAX : greatest) / rules->factor[fraction];
        }
    }
}

static enum csv_problem convert_numbers(const struct csv_rules *rules, const struct csv_fields *f,
                                        struct csv_target *t, int64_t *out_row,
                                        struct gar_error *err)
{
    struct csv_decimal_rules decimal;
    if (t->type.id == GAR_DECIMAL128) {
        fill_decimal_rules(t->type, &decimal);
    }
    for (int64_t row = 0; row < f->rows; row += CSV_VECTOR_ROWS) {
        const int64_t rows = gar_min_i64(CSV_VECTOR_ROWS, f->rows - row);
        uint64_t plain[CSV_VECTOR_ROWS / 64] = {0};
        if (!rules->nulls_look_like_values) {
            switch ((int)t->type.id) {
            case GAR_FLOAT64:
                csv_parse_doubles(f, row, rows, (double *)(void *)t->values->data + t->length,
                                  plain);
                break;
            case GAR_FLOAT32: float_vector(f, row, rows, t, plain); break;
            case GAR_DECIMAL128:
                csv_parse_decimals(f, row, rows, &decimal, t->values->data + t->length * 16, plain);
                break;
            default: integer_vector(f, row, rows, t, plain); break;
            }
        }
        const enum csv_problem problem = convert_rest(rules, f, row, rows, plain, t, out_row, err);
        if (problem != CSV_FINE) {
            return problem;
        }
        t->length += rows;
    }
    return CSV_FINE;
}

/* ---- dates, times, booleans ---- */

static enum csv_problem convert_dates(const struct csv_rules *rules, const struct csv_fields *f,
                                      struct csv_target *t, int64_t *out_row, struct gar_error *err)
{
    uint64_t plain[CSV_VECTOR_ROWS / 64];
    for (int64_t row = 0; row < f->rows; row += CSV_VECTOR_ROWS) {
        const int64_t rows = gar_min_i64(CSV_VECTOR_ROWS, f->rows - row);
        if (rules->nulls_look_like_values) {
            memset(plain, 0, sizeof plain);
        } else {
            csv_parse_dates(f, row, rows, (int32_t *)(void *)t->values->data + t->length, plain);
        }
        const enum csv_problem problem = convert_rest(rules, f, row, rows, plain, t, out_row, err);
        if (problem != CSV_FINE) {
            return problem;
        }
        t->length += rows;
    }
    return CSV_FINE;
}

/* Booleans, times, timestamps, durations, nulls: one by one. */
static enum csv_problem convert_each(const struct csv_rules *rules, const struct csv_fields *f,
                                     struct csv_target *t, int64_t *out_row, struct gar_error *err)
{
    for (int64_t row = 0; row < f->rows; row++) {
        const enum csv_problem problem = convert_one(rules, f, row, t, t->length, err);
        if (problem != CSV_FINE) {
            *out_row = row;
            return problem;
        }
        t->length++;
    }
    return CSV_FINE;
}

/* ---- text ---- */

/* Masks of the first n bytes of twelve, as the two words of a view hold them. */
GAR_INLINE struct gar_string_view make_view(const uint8_t *p, uint32_t bytes, uint32_t offset)
{
    static const uint64_t low_masks[16] = {
        0,          0xff,         0xffff,         0xffffff,
        0xffffffff, 0xffffffffff, 0xffffffffffff, 0xffffffffffffff,
        UINT64_MAX, UINT64_MAX,   UINT64_MAX,     UINT64_MAX,
        UINT64_MAX, UINT64_MAX,   UINT64_MAX,     UINT64_MAX,
    };
    static const uint32_t high_masks[16] = {0, 0, 0,    0,      0,        0,         0,
                                            0, 0, 0xff, 0xffff, 0xffffff, UINT32_MAX};
    const uint32_t k = bytes < 15 ? bytes : 15;
    const uint64_t low = gar_load_u64(p) & low_masks[k];
    const uint64_t high = gar_load_u32(p + 8) & high_masks[k];
    uint64_t words[2];
    words[0] = bytes | low << 32;
    words[1] = bytes <= GAR_VIEW_INLINE_BYTES ? low >> 32 | high << 32 : (uint64_t)offset << 32;
    struct gar_string_view view;
    memcpy(&view, words, sizeof view);
    return view;
}

static bool side_room(struct csv_target *t, int64_t bytes, struct gar_error *err)
{
    const int64_t want = t->side_bytes + bytes;
    if (t->side == NULL) {
        return gar_buffer_new(t->memory, gar_max_i64(want, 4096), &t->side, err) >= 0;
    }
    return want <= t->side->size ||
           gar_buffer_resize(t->side, gar_max_i64(want, 2 * t->side->size), err) >= 0;
}

/* Text with doubled quotes or escapes, written to the side buffer (a short result moves into the view again). text
 * lies between the quotes when is_quoted. */
static enum csv_problem unescape(const struct csv_rules *rules, const uint8_t *text, int64_t bytes,
                                 bool is_quoted, struct csv_target *t, struct gar_string_view *out,
                                 struct gar_error *err)
{
    const struct gar_csv_dialect *d = &rules->dialect;
    if (!side_room(t, bytes + GAR_VIEW_INLINE_BYTES, err)) {
        return CSV_NO_MEMORY;
    }
    uint8_t *to = t->side->data + t->side_bytes;
    int64_t count = 0;
    for (int64_t i = 0; i < bytes; i++) {
        if (d->has_escape && text[i] == d->escape && i + 1 < bytes) {
            i++;
        } else if (is_quoted && text[i] == d->quote) {
            if (!d->double_quote || i + 1 >= bytes || text[i + 1] != d->quote) {
                return CSV_AFTER_QUOTE;
            }
            i++;
        }
        to[count++] = text[i];
    }
    if (t->side_bytes + count > VIEW_BYTES_MAX) {
        return CSV_TOO_LONG;
    }
    *out = gar_view_make(to, (int32_t)count, 1, (int32_t)t->side_bytes);
    if (count > GAR_VIEW_INLINE_BYTES) {
        t->side_bytes += count;
    }
    return CSV_FINE;
}

/* A field that needs more than a look at its ends. */
static enum csv_problem text_slow(const struct csv_rules *rules, const struct csv_fields *f,
                                  const uint8_t *text, int64_t bytes, struct csv_target *t,
                                  struct gar_string_view *out, struct gar_error *err)
{
    const bool is_quoted = rules->dialect.has_quote && bytes > 0 && text[0] == rules->dialect.quote;
    if (is_quoted) {
        if (bytes < 2 || text[bytes - 1] != rules->dialect.quote) {
            return CSV_AFTER_QUOTE;
        }
        text++;
        bytes -= 2;
    }
    const bool has_quote = is_quoted && memchr(text, rules->dialect.quote, (size_t)bytes) != NULL;
    const bool has_escape =
        rules->dialect.has_escape && memchr(text, rules->dialect.escape, (size_t)bytes) != NULL;
    enum csv_problem problem = CSV_FINE;
    if (has_quote || has_escape) {
        problem = unescape(rules, text, bytes, is_quoted, t, out, err);
    } else {
        *out = make_view(text, (uint32_t)bytes, (uint32_t)(text - f->data) + (uint32_t)t->base);
        t->uses_block |= bytes > GAR_VIEW_INLINE_BYTES;
    }
    if (problem == CSV_FINE && f->check_utf8 && t->type.id == GAR_STRING &&
        !gar_utf8_valid(text, bytes)) {
        problem = CSV_BAD_UTF8;
    }
    return problem;
}

static enum csv_problem convert_text(const struct csv_rules *rules, const struct csv_fields *f,
                                     struct csv_target *t, int64_t *out_row, struct gar_error *err)
{
    const struct gar_csv_dialect *d = &rules->dialect;
    struct gar_string_view *to = (struct gar_string_view *)(void *)t->values->data + t->length;
    const bool is_slow = f->has_escapes || (f->check_utf8 && t->type.id == GAR_STRING);
    const bool has_quote = d->has_quote;
    uint32_t longest = 0;
    for (int64_t row = 0; row < f->rows; row++) {
        uint32_t start = f->before[row * f->stride] + 1;
        uint32_t bytes = f->ends[row * f->stride] - start;
        const uint8_t *p = f->data + start;
        if (bytes == 0 ||
            (rules->null_count > 0 && p[0] != d->quote && is_null_text(rules, p, bytes))) {
            memset(&to[row], 0, sizeof to[row]);
            if (!put_null(t, t->length + row, err)) {
                *out_row = row;
                return CSV_NO_MEMORY;
            }
            continue;
        }
        enum csv_problem problem = CSV_FINE;
        if (GAR_UNLIKELY(is_slow)) {
            problem = text_slow(rules, f, p, bytes, t, &to[row], err);
        } else {
            if (has_quote && p[0] == d->quote) {
                if (GAR_UNLIKELY(bytes < 2 || p[bytes - 1] != d->quote)) {
                    problem = CSV_AFTER_QUOTE;
                } else {
                    start++;
                    bytes -= 2;
                }
            }
            to[row] = make_view(f->data + start, bytes, start + (uint32_t)t->base);
            longest = bytes > longest ? bytes : longest;
        }
        if (GAR_UNLIKELY(problem != CSV_FINE)) {
            *out_row = row;
            return problem;
        }
    }
    t->uses_block |= longest > GAR_VIEW_INLINE_BYTES;
    t->length += f->rows;
    return CSV_FINE;
}

enum csv_problem csv_convert(const struct csv_rules *rules, const struct csv_fields *fields,
                             struct csv_target *target, int64_t *out_row, struct gar_error *err)
{
    switch ((enum gar_type_id)target->type.id) {
    case GAR_STRING:
    case GAR_BINARY: return convert_text(rules, fields, target, out_row, err);
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
    case GAR_DECIMAL128: return convert_numbers(rules, fields, target, out_row, err);
    case GAR_DATE: return convert_dates(rules, fields, target, out_row, err);
    case GAR_BOOL:
    case GAR_TIME:
    case GAR_TIMESTAMP:
    case GAR_DURATION:
    case GAR_NULL: return convert_each(rules, fields, target, out_row, err);
    case GAR_LIST:
    case GAR_FIXED_LIST:
    case GAR_STRUCT:
    case GAR_MAP:
    case GAR_TYPE_ID_COUNT: break;
    }
    *out_row = 0;
    return CSV_UNSUPPORTED_TYPE;
}
