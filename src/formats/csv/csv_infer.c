/* SPDX-License-Identifier: Apache-2.0 */
/* Guessing types: each value is sorted into the classes it could belong to; a type holds when its classes cover all
 * values. */
#include "formats/csv/csv_infer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/calendar.h"
#include "base/number_text.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool same_word(const char *text, int64_t bytes, const char *word)
{
    if (bytes != (int64_t)strlen(word)) {
        return false;
    }
    for (int64_t i = 0; i < bytes; i++) {
        if ((text[i] | 0x20) != word[i]) {
            return false;
        }
    }
    return true;
}

/* '-' or nothing, then digits or a point. */
static bool starts_like_number(const char *text, int64_t bytes)
{
    const int64_t i = text[0] == '-';
    return i < bytes && (is_digit(text[i]) || text[i] == '.');
}

/* "007", "-01", "00.5": codes, not numbers. */
static bool has_leading_zero(const char *text, int64_t bytes)
{
    const int64_t i = text[0] == '-';
    return i + 1 < bytes && text[i] == '0' && is_digit(text[i + 1]);
}

static void add_number(struct gar_csv_guess *guess, const char *text, int64_t bytes)
{
    int64_t digits = 0;
    for (int64_t i = text[0] == '-'; i < bytes; i++) {
        digits += is_digit(text[i]);
    }
    const bool is_whole = digits == bytes - (text[0] == '-');
    if (!is_whole) {
        double v = 0;
        guess->floats += gar_parse_double(text, bytes, &v) && isfinite(v);
        return;
    }
    guess->integers++;
    guess->has_negative |= text[0] == '-';
    int64_t v = 0;
    if (gar_parse_i64(text, bytes, &v) != GAR_OK) {
        uint64_t u = 0;
        guess->beyond_int64 = true;
        guess->beyond_uint64 |= gar_parse_u64(text, bytes, &u) != GAR_OK;
    }
}

static void add_word(struct gar_csv_guess *guess, const char *text, int64_t bytes)
{
    if (same_word(text, bytes, "true") || same_word(text, bytes, "false")) {
        guess->booleans++;
        return;
    }
    const int64_t sign = text[0] == '-';
    guess->float_words += same_word(text + sign, bytes - sign, "nan") ||
                          same_word(text + sign, bytes - sign, "inf") ||
                          same_word(text + sign, bytes - sign, "infinity");
}

/* Digits after the last point, in front of an offset. */
static int64_t fraction_digits(const char *text, int64_t bytes)
{
    const char *point = memchr(text, '.', (size_t)bytes);
    if (point == NULL) {
        return 0;
    }
    int64_t digits = 0;
    while (point + 1 + digits < text + bytes && is_digit(point[1 + digits])) {
        digits++;
    }
    return digits;
}

/* "yyyy-mm-dd" and what may follow. */
static bool add_time(struct gar_csv_guess *guess, const char *text, int64_t bytes)
{
    if (bytes < 10 || text[4] != '-' || text[7] != '-') {
        return false;
    }
    int32_t days;
    if (bytes == 10) {
        const bool is_date = gar_parse_date(text, bytes, &days);
        guess->dates += is_date;
        return is_date;
    }
    int64_t ticks;
    bool has_offset = false;
    if ((text[10] != 'T' && text[10] != ' ') ||
        !gar_parse_timestamp(text, bytes, 6, &ticks, &has_offset)) {
        return false;
    }
    guess->timestamps++;
    guess->with_offset += has_offset;
    guess->has_nanoseconds |= fraction_digits(text, bytes) > 6;
    guess->beyond_nanoseconds |= !gar_parse_timestamp(text, bytes, 9, &ticks, &has_offset);
    return true;
}

void gar_csv_guess_add(struct gar_csv_guess *guess, const char *text, int64_t bytes)
{
    while (bytes > 0 && (text[0] == ' ' || text[0] == '\t' || text[0] == '\r')) {
        text++;
        bytes--;
    }
    while (bytes > 0 &&
           (text[bytes - 1] == ' ' || text[bytes - 1] == '\t' || text[bytes - 1] == '\r')) {
        bytes--;
    }
    if (bytes == 0) {
        return;
    }
    guess->values++;
    if (!starts_like_number(text, bytes)) {
        add_word(guess, text, bytes);
        return;
    }
    if (!add_time(guess, text, bytes) && !has_leading_zero(text, bytes)) {
        add_number(guess, text, bytes);
    }
}

static struct gar_type time_type(const struct gar_csv_guess *g)
{
    if (g->timestamps == 0) {
        return gar_type_of(GAR_DATE);
    }
    const bool all_have_offset = g->with_offset == g->values;
    if ((g->with_offset > 0 && !all_have_offset) || (g->has_nanoseconds && g->beyond_nanoseconds)) {
        return gar_type_of(GAR_STRING);
    }
    const char *zone = NULL;
    if (all_have_offset) {
        zone = gar_zone_intern("UTC", 3, NULL);
        if (zone == NULL) {
            return gar_type_of(GAR_STRING);
        }
    }
    return gar_type_timestamp(g->has_nanoseconds ? GAR_NANO : GAR_MICRO, zone);
}

struct gar_type gar_csv_guess_type(const struct gar_csv_guess *guess)
{
    const struct gar_csv_guess *g = guess;
    if (g->values == 0) {
        return gar_type_of(GAR_STRING);
    }
    if (g->booleans == g->values) {
        return gar_type_of(GAR_BOOL);
    }
    if (g->integers == g->values && !g->beyond_int64) {
        return gar_type_of(GAR_INT64);
    }
    if (g->integers == g->values && !g->beyond_uint64 && !g->has_negative) {
        return gar_type_of(GAR_UINT64);
    }
    if (g->integers + g->floats > 0 && g->integers + g->floats + g->float_words == g->values) {
        return gar_type_of(GAR_FLOAT64);
    }
    if (g->dates + g->timestamps == g->values) {
        return time_type(g);
    }
    return gar_type_of(GAR_STRING);
}

/* ---- samples ---- */

const char *gar_csv_column_name(int64_t i, char *out, int64_t out_bytes)
{
    (void)snprintf(out, (size_t)out_bytes, "column_%lld", (long long)i + 1);
    return out;
}

static enum gar_status add_column(struct gar_csv_inference *inference, const char *name,
                                  int64_t bytes, struct gar_error *err)
{
    if (inference->count >= GAR_CSV_FIELDS_MAX) {
        return gar_error_set(err, GAR_ERR_FORMAT, "more than %d columns; is the delimiter right?",
                             GAR_CSV_FIELDS_MAX);
    }
    if (bytes > 0 && memchr(name, '\0', (size_t)bytes) != NULL) {
        return gar_error_set(err, GAR_ERR_FORMAT,
                             "the name of column %lld holds a NUL byte; is this a CSV file?",
                             (long long)inference->count + 1);
    }
    if (inference->count == inference->capacity) {
        int64_t capacity = inference->capacity;
        GAR_TRY(gar_grow((void **)&inference->names, &capacity, inference->count + 1,
                         (int64_t)sizeof(char *), err));
        capacity = inference->capacity;
        GAR_TRY(gar_grow((void **)&inference->guesses, &capacity, inference->count + 1,
                         (int64_t)sizeof *inference->guesses, err));
        inference->capacity = capacity;
    }
    char neutral[32];
    char *copy =
        bytes > 0
            ? gar_strndup(name, bytes)
            : gar_strdup(gar_csv_column_name(inference->count, neutral, (int64_t)sizeof neutral));
    if (copy == NULL) {
        return gar_error_nomem(err, bytes + 1);
    }
    inference->names[inference->count] = copy;
    memset(&inference->guesses[inference->count], 0, sizeof *inference->guesses);
    inference->count++;
    return GAR_OK;
}

static enum gar_status take_header(struct gar_csv_inference *inference,
                                   const struct gar_csv_record *record, struct gar_error *err)
{
    for (int64_t i = 0; i < record->count; i++) {
        GAR_TRY(add_column(inference, record->text + record->cells[i].offset,
                           record->cells[i].bytes, err));
    }
    return GAR_OK;
}

static bool is_column_named(const struct gar_csv_inference *inference, int64_t column,
                            const struct gar_csv_record *record, int64_t cell)
{
    const char *name = inference->names[column];
    return (int64_t)strlen(name) == record->cells[cell].bytes &&
           memcmp(name, record->text + record->cells[cell].offset, strlen(name)) == 0;
}

/* Which column each field of the record is: map[field]. False when the names are not the same. */
static bool map_header(const struct gar_csv_inference *inference,
                       const struct gar_csv_record *record, int64_t *map)
{
    if (record->count != inference->count) {
        return false;
    }
    for (int64_t i = 0; i < record->count; i++) {
        int64_t column = i; /* nearly always the same place */
        for (int64_t k = 0; k < inference->count && !is_column_named(inference, column, record, i);
             k++) {
            column = column + 1 < inference->count ? column + 1 : 0;
        }
        if (!is_column_named(inference, column, record, i)) {
            return false;
        }
        map[i] = column;
    }
    return true;
}

static bool is_null_text(const struct gar_csv_format *format, const char *text, int64_t bytes)
{
    for (int64_t i = 0; i < format->null_count; i++) {
        if ((int64_t)strlen(format->nulls[i]) == bytes &&
            memcmp(format->nulls[i], text, (size_t)bytes) == 0) {
            return true;
        }
    }
    return false;
}

static void add_record(struct gar_csv_inference *inference, const struct gar_csv_format *format,
                       const struct gar_csv_record *record, const int64_t *map)
{
    const int64_t count = gar_min_i64(record->count, inference->count);
    for (int64_t i = 0; i < count; i++) {
        const char *text = record->text + record->cells[i].offset;
        const int64_t bytes = record->cells[i].bytes;
        if (!is_null_text(format, text, bytes)) {
            gar_csv_guess_add(&inference->guesses[map != NULL ? map[i] : i], text, bytes);
        }
    }
    inference->rows++;
}

static enum gar_status infer_records(struct gar_csv_inference *inference,
                                     const struct gar_csv_format *format,
                                     const struct gar_csv_dialect *dialect, const uint8_t *data,
                                     int64_t size, struct gar_csv_record *record, int64_t **map,
                                     struct gar_error *err)
{
    int64_t at = 0;
    int64_t line = 1;
    if (format->has_header) {
        const enum gar_status status =
            gar_csv_read_record(dialect, data, size, &at, &line, record, err);
        if (status != GAR_OK) {
            return status < 0 ? status : GAR_OK;
        }
        if (inference->count == 0) {
            GAR_TRY(take_header(inference, record, err));
        } else {
            *map = gar_malloc(inference->count * (int64_t)sizeof **map);
            if (*map == NULL) {
                return gar_error_nomem(err, inference->count * (int64_t)sizeof **map);
            }
            if (!map_header(inference, record, *map)) {
                return GAR_OK;
            }
        }
    }
    for (;;) {
        const enum gar_status status =
            gar_csv_read_record(dialect, data, size, &at, &line, record, err);
        if (status != GAR_OK) {
            return status < 0 ? status : GAR_OK;
        }
        const bool may_widen =
            !format->has_header && (inference->rows == 0 || format->allow_variable_columns);
        while (may_widen && inference->count < record->count) {
            GAR_TRY(add_column(inference, NULL, 0, err));
        }
        add_record(inference, format, record, *map);
    }
}

enum gar_status gar_csv_infer(struct gar_csv_inference *inference,
                              const struct gar_csv_format *format,
                              const struct gar_csv_dialect *dialect, const uint8_t *data,
                              int64_t size, struct gar_error *err)
{
    struct gar_csv_record record = {0};
    int64_t *map = NULL;
    const enum gar_status status =
        infer_records(inference, format, dialect, data, size, &record, &map, err);
    gar_free(map);
    gar_csv_record_destroy(&record);
    return status;
}

void gar_csv_inference_destroy(struct gar_csv_inference *inference)
{
    for (int64_t i = 0; i < inference->count; i++) {
        gar_free(inference->names[i]);
    }
    gar_free(inference->names);
    gar_free(inference->guesses);
    memset(inference, 0, sizeof *inference);
}
