/* SPDX-License-Identifier: Apache-2.0 */
/* Data types: the table of their traits, their text, and the table of time zone texts. */
#include "arrow/type.h"

#include <string.h>

#include "base/hash.h"
#include "base/int128.h"
#include "base/number_text.h"
#include "base/utf8.h"

enum trait {
    IS_SIGNED = 1,
    IS_UNSIGNED = 2,
    IS_FLOAT = 4,
    IS_DECIMAL = 8,
    IS_TEMPORAL = 16,
    IS_TEXT = 32,
    HAS_UNIT = 64,
    IS_NESTED = 128,
};

struct type_row {
    const char *name;
    int32_t width_bytes;
    unsigned traits;
};

static const struct type_row type_rows[GAR_TYPE_ID_COUNT] = {
    [GAR_NULL] = {"null", 0, 0},
    [GAR_BOOL] = {"bool", 0, 0},
    [GAR_INT8] = {"int8", 1, IS_SIGNED},
    [GAR_INT16] = {"int16", 2, IS_SIGNED},
    [GAR_INT32] = {"int32", 4, IS_SIGNED},
    [GAR_INT64] = {"int64", 8, IS_SIGNED},
    [GAR_UINT8] = {"uint8", 1, IS_UNSIGNED},
    [GAR_UINT16] = {"uint16", 2, IS_UNSIGNED},
    [GAR_UINT32] = {"uint32", 4, IS_UNSIGNED},
    [GAR_UINT64] = {"uint64", 8, IS_UNSIGNED},
    [GAR_FLOAT32] = {"float32", 4, IS_FLOAT},
    [GAR_FLOAT64] = {"float64", 8, IS_FLOAT},
    [GAR_DECIMAL128] = {"decimal", 16, IS_DECIMAL},
    [GAR_STRING] = {"string", 16, IS_TEXT},
    [GAR_BINARY] = {"binary", 16, IS_TEXT},
    [GAR_DATE] = {"date", 4, IS_TEMPORAL},
    [GAR_TIME] = {"time", 8, IS_TEMPORAL | HAS_UNIT},
    [GAR_TIMESTAMP] = {"timestamp", 8, IS_TEMPORAL | HAS_UNIT},
    [GAR_DURATION] = {"duration", 8, IS_TEMPORAL | HAS_UNIT},
    [GAR_LIST] = {"list", 16, IS_NESTED},
    [GAR_FIXED_LIST] = {"fixed_list", 0, IS_NESTED},
    [GAR_STRUCT] = {"struct", 0, IS_NESTED},
    [GAR_MAP] = {"map", 16, IS_NESTED},
};

static const char *const unit_names[] = {"s", "ms", "us", "ns"};

static unsigned traits_of(struct gar_type type)
{
    return type.id < GAR_TYPE_ID_COUNT ? type_rows[type.id].traits : 0u;
}

int32_t gar_type_width(struct gar_type type)
{
    return type.id < GAR_TYPE_ID_COUNT ? type_rows[type.id].width_bytes : 0;
}

bool gar_type_is_signed(struct gar_type type)
{
    return (traits_of(type) & IS_SIGNED) != 0;
}

bool gar_type_is_unsigned(struct gar_type type)
{
    return (traits_of(type) & IS_UNSIGNED) != 0;
}

bool gar_type_is_integer(struct gar_type type)
{
    return (traits_of(type) & (IS_SIGNED | IS_UNSIGNED)) != 0;
}

bool gar_type_is_float(struct gar_type type)
{
    return (traits_of(type) & IS_FLOAT) != 0;
}

bool gar_type_is_numeric(struct gar_type type)
{
    return (traits_of(type) & (IS_SIGNED | IS_UNSIGNED | IS_FLOAT | IS_DECIMAL)) != 0;
}

bool gar_type_is_temporal(struct gar_type type)
{
    return (traits_of(type) & IS_TEMPORAL) != 0;
}

bool gar_type_is_text(struct gar_type type)
{
    return (traits_of(type) & IS_TEXT) != 0;
}

bool gar_type_is_nested(struct gar_type type)
{
    return (traits_of(type) & IS_NESTED) != 0;
}

int32_t gar_unit_digits(enum gar_time_unit unit)
{
    return 3 * (int32_t)unit;
}

enum gar_status gar_type_check(struct gar_type type, struct gar_error *err)
{
    if (type.id >= GAR_TYPE_ID_COUNT) {
        return gar_error_set(err, GAR_ERR_TYPE, "unknown type number %d", (int)type.id);
    }
    if (gar_type_is_nested(type) != (type.nest != NULL)) {
        return gar_error_set(err, GAR_ERR_TYPE, "%s with fields that do not fit it",
                             type_rows[type.id].name);
    }
    if (type.id == GAR_DECIMAL128) {
        if (type.precision < 1 || type.precision > GAR_DECIMAL_PRECISION_MAX) {
            return gar_error_set(err, GAR_ERR_TYPE, "decimal precision %d is not in 1..38",
                                 (int)type.precision);
        }
        if (type.scale < 0 || type.scale > (int)type.precision) {
            return gar_error_set(err, GAR_ERR_TYPE,
                                 "decimal scale %d is not in 0..%d (the precision)",
                                 (int)type.scale, (int)type.precision);
        }
    }
    if (type.unit > GAR_NANO) {
        return gar_error_set(err, GAR_ERR_TYPE, "unknown time unit number %d", (int)type.unit);
    }
    if (type.id == GAR_TIME && type.unit < GAR_MICRO) {
        return gar_error_set(err, GAR_ERR_TYPE, "time has unit us or ns, not %s",
                             unit_names[type.unit]);
    }
    return GAR_OK;
}

/* ---- text ---- */

/* "[int64]", "[float32, 4]", "[a: int64, b: string]". */
static void print_nest(struct gar_type type, struct gar_strbuf *out)
{
    gar_strbuf_append(out, "[");
    for (int32_t i = 0; i < type.nest->count; i++) {
        const struct gar_nest_field *field = &type.nest->fields[i];
        gar_strbuf_append(out, i > 0 ? ", " : "");
        if (type.id == GAR_STRUCT) {
            gar_strbuf_printf(out, "%s: ", field->name);
        }
        gar_type_print(field->type, out);
    }
    if (type.id == GAR_FIXED_LIST) {
        gar_strbuf_printf(out, ", %d", type.nest->width);
    }
    gar_strbuf_append(out, "]");
}

void gar_type_print(struct gar_type type, struct gar_strbuf *out)
{
    if (type.id >= GAR_TYPE_ID_COUNT) {
        gar_strbuf_append(out, "?");
        return;
    }
    gar_strbuf_append(out, type_rows[type.id].name);
    if (type.id == GAR_DECIMAL128) {
        gar_strbuf_printf(out, "(%d, %d)", (int)type.precision, (int)type.scale);
    } else if ((traits_of(type) & HAS_UNIT) != 0) {
        gar_strbuf_printf(out, "[%s", unit_names[type.unit & 3]);
        if (type.zone != NULL) {
            gar_strbuf_printf(out, ", %s", type.zone);
        }
        gar_strbuf_append(out, "]");
    } else if (type.nest != NULL) {
        print_nest(type, out);
    }
}

const char *gar_type_text(struct gar_type type, char *out, int64_t out_bytes)
{
    struct gar_strbuf sb = {0};
    gar_type_print(type, &sb);
    const char *text = gar_strbuf_text(&sb);
    int64_t bytes = gar_min_i64((int64_t)strlen(text), out_bytes - 1);
    while (bytes > 0 && ((unsigned char)text[bytes] & 0xC0u) == 0x80u) {
        bytes--; /* cut at a character border */
    }
    memcpy(out, text, (size_t)bytes);
    out[bytes] = '\0';
    gar_strbuf_destroy(&sb);
    return out;
}

struct spelling {
    const char *text;
    struct gar_type type;
};

/* Names without arguments, after lower-casing and with single blanks. */
static const struct spelling spellings[] = {
    {"null", {.id = GAR_NULL}},
    {"bool", {.id = GAR_BOOL}},
    {"boolean", {.id = GAR_BOOL}},
    {"int8", {.id = GAR_INT8}},
    {"tinyint", {.id = GAR_INT8}},
    {"int16", {.id = GAR_INT16}},
    {"smallint", {.id = GAR_INT16}},
    {"int2", {.id = GAR_INT16}},
    {"int32", {.id = GAR_INT32}},
    {"int", {.id = GAR_INT32}},
    {"integer", {.id = GAR_INT32}},
    {"int4", {.id = GAR_INT32}},
    {"int64", {.id = GAR_INT64}},
    {"bigint", {.id = GAR_INT64}},
    {"long", {.id = GAR_INT64}},
    {"uint8", {.id = GAR_UINT8}},
    {"utinyint", {.id = GAR_UINT8}},
    {"tinyint unsigned", {.id = GAR_UINT8}},
    {"uint16", {.id = GAR_UINT16}},
    {"usmallint", {.id = GAR_UINT16}},
    {"smallint unsigned", {.id = GAR_UINT16}},
    {"uint32", {.id = GAR_UINT32}},
    {"uinteger", {.id = GAR_UINT32}},
    {"int unsigned", {.id = GAR_UINT32}},
    {"uint64", {.id = GAR_UINT64}},
    {"ubigint", {.id = GAR_UINT64}},
    {"bigint unsigned", {.id = GAR_UINT64}},
    {"float32", {.id = GAR_FLOAT32}},
    {"float", {.id = GAR_FLOAT32}},
    {"real", {.id = GAR_FLOAT32}},
    {"float4", {.id = GAR_FLOAT32}},
    {"float64", {.id = GAR_FLOAT64}},
    {"double", {.id = GAR_FLOAT64}},
    {"double precision", {.id = GAR_FLOAT64}},
    {"float8", {.id = GAR_FLOAT64}},
    {"string", {.id = GAR_STRING}},
    {"utf8", {.id = GAR_STRING}},
    {"text", {.id = GAR_STRING}},
    {"varchar", {.id = GAR_STRING}},
    {"char", {.id = GAR_STRING}},
    {"character", {.id = GAR_STRING}},
    {"character varying", {.id = GAR_STRING}},
    {"large_string", {.id = GAR_STRING}},
    {"large_utf8", {.id = GAR_STRING}},
    {"string_view", {.id = GAR_STRING}},
    {"binary", {.id = GAR_BINARY}},
    {"bytes", {.id = GAR_BINARY}},
    {"bytea", {.id = GAR_BINARY}},
    {"blob", {.id = GAR_BINARY}},
    {"varbinary", {.id = GAR_BINARY}},
    {"large_binary", {.id = GAR_BINARY}},
    {"binary_view", {.id = GAR_BINARY}},
    {"date", {.id = GAR_DATE}},
    {"date32", {.id = GAR_DATE}},
    {"time", {.id = GAR_TIME, .unit = GAR_MICRO}},
    {"timestamp", {.id = GAR_TIMESTAMP, .unit = GAR_MICRO}},
    {"timestamp without time zone", {.id = GAR_TIMESTAMP, .unit = GAR_MICRO}},
    {"datetime", {.id = GAR_TIMESTAMP, .unit = GAR_MICRO}},
    {"timestamp_s", {.id = GAR_TIMESTAMP, .unit = GAR_SECOND}},
    {"timestamp_ms", {.id = GAR_TIMESTAMP, .unit = GAR_MILLI}},
    {"timestamp_us", {.id = GAR_TIMESTAMP, .unit = GAR_MICRO}},
    {"timestamp_ns", {.id = GAR_TIMESTAMP, .unit = GAR_NANO}},
    {"duration", {.id = GAR_DURATION, .unit = GAR_MICRO}},
};

/* A type text in parts: "name", and what stood between ( ) or [ ]. */
struct type_text {
    char name[40];
    int32_t name_bytes;
    char bracket; /* '(' or '[' or 0 */
    const char *args;
    int64_t args_bytes;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static char to_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static void trim(const char **text, int64_t *bytes)
{
    while (*bytes > 0 && is_blank((*text)[0])) {
        (*text)++;
        (*bytes)--;
    }
    while (*bytes > 0 && is_blank((*text)[*bytes - 1])) {
        (*bytes)--;
    }
}

/* Lower-cases the name and makes runs of blanks one. False if it cannot be a type. */
static bool split_text(const char *text, int64_t bytes, struct type_text *out)
{
    trim(&text, &bytes);
    int64_t i = 0;
    for (; i < bytes && text[i] != '(' && text[i] != '['; i++) {
        const bool blank = is_blank(text[i]);
        if (blank && out->name_bytes > 0 && out->name[out->name_bytes - 1] == ' ') {
            continue;
        }
        if (out->name_bytes + 1 >= (int32_t)sizeof out->name) {
            return false;
        }
        out->name[out->name_bytes++] = blank ? ' ' : to_lower(text[i]);
    }
    while (out->name_bytes > 0 && out->name[out->name_bytes - 1] == ' ') {
        out->name_bytes--;
    }
    out->name[out->name_bytes] = '\0';
    if (i == bytes) {
        return out->name_bytes > 0;
    }
    out->bracket = text[i];
    const char close = out->bracket == '(' ? ')' : ']';
    if (text[bytes - 1] != close) {
        return false;
    }
    out->args = text + i + 1;
    out->args_bytes = bytes - i - 2;
    trim(&out->args, &out->args_bytes);
    return out->args_bytes > 0;
}

static bool parse_small(const char *text, int64_t bytes, int32_t *out)
{
    int64_t v = 0;
    trim(&text, &bytes);
    if (gar_parse_i64(text, bytes, &v) != GAR_OK || v < -1000 || v > 1000) {
        return false;
    }
    *out = (int32_t)v;
    return true;
}

static bool parse_decimal_args(const struct type_text *t, struct gar_type *out)
{
    int32_t precision = GAR_DECIMAL_PRECISION_MAX;
    int32_t scale = 0;
    if (t->bracket == 0) {
        precision = 18;
        scale = 3;
    } else {
        const char *comma = memchr(t->args, ',', (size_t)t->args_bytes);
        const int64_t first = comma != NULL ? comma - t->args : t->args_bytes;
        if (!parse_small(t->args, first, &precision) ||
            (comma != NULL && !parse_small(comma + 1, t->args_bytes - first - 1, &scale))) {
            return false;
        }
    }
    if (precision < 1 || precision > GAR_DECIMAL_PRECISION_MAX || scale < 0 || scale > precision) {
        return false;
    }
    *out = gar_type_decimal(precision, scale);
    return true;
}

static bool parse_unit(const char *text, int64_t bytes, enum gar_time_unit *out)
{
    for (int u = 0; u <= (int)GAR_NANO; u++) {
        if ((int64_t)strlen(unit_names[u]) == bytes &&
            memcmp(unit_names[u], text, (size_t)bytes) == 0) {
            *out = (enum gar_time_unit)u;
            return true;
        }
    }
    return false;
}

/* "us" or "us, Europe/Berlin" after a temporal name. */
static bool parse_time_args(const struct type_text *t, struct gar_type *out)
{
    const char *comma = memchr(t->args, ',', (size_t)t->args_bytes);
    const char *unit = t->args;
    int64_t unit_bytes = comma != NULL ? comma - t->args : t->args_bytes;
    trim(&unit, &unit_bytes);
    enum gar_time_unit u = GAR_MICRO;
    if (!parse_unit(unit, unit_bytes, &u)) {
        return false;
    }
    out->unit = (uint8_t)u;
    if (out->id == GAR_TIME && u < GAR_MICRO) {
        out->unit = GAR_MICRO;
    }
    if (comma == NULL) {
        return true;
    }
    const char *zone = comma + 1;
    int64_t zone_bytes = t->args + t->args_bytes - zone;
    trim(&zone, &zone_bytes);
    if (out->id != GAR_TIMESTAMP || zone_bytes == 0) {
        return false;
    }
    out->zone = gar_zone_intern(zone, zone_bytes, NULL);
    return out->zone != NULL;
}

static bool parse_zoned(const struct type_text *t, struct gar_type *out)
{
    if (strcmp(t->name, "timestamptz") != 0 && strcmp(t->name, "timestamp with time zone") != 0) {
        return false;
    }
    *out = gar_type_timestamp(GAR_MICRO, gar_zone_intern("UTC", 3, NULL));
    return t->bracket == 0 && out->zone != NULL;
}

static bool parse_type(const struct type_text *t, struct gar_type *out)
{
    if (strcmp(t->name, "decimal") == 0 || strcmp(t->name, "numeric") == 0 ||
        strcmp(t->name, "decimal128") == 0) {
        return parse_decimal_args(t, out);
    }
    for (int64_t i = 0; i < GAR_COUNT_OF(spellings); i++) {
        if (strcmp(spellings[i].text, t->name) != 0) {
            continue;
        }
        *out = spellings[i].type;
        if (t->bracket == 0) {
            return true;
        }
        int32_t ignored = 0;
        if (t->bracket == '(') { /* varchar(10): the length is no constraint here */
            return gar_type_is_text(*out) && parse_small(t->args, t->args_bytes, &ignored);
        }
        return (traits_of(*out) & HAS_UNIT) != 0 && parse_time_args(t, out);
    }
    return parse_zoned(t, out);
}

enum gar_status gar_type_parse(const char *text, int64_t bytes, struct gar_type *out,
                               struct gar_error *err)
{
    struct type_text parts = {0};
    struct gar_type type = {0};
    if (!split_text(text, bytes, &parts) || !parse_type(&parts, &type)) {
        char quoted[96];
        return gar_error_set(err, GAR_ERR_VALUE,
                             "unknown type '%s'; known are int64, float64, string, "
                             "decimal(15, 2), date, timestamp[us, UTC] and the like",
                             gar_error_quote(text, bytes, quoted, (int64_t)sizeof quoted));
    }
    *out = type;
    return GAR_OK;
}

/* ---- time zones ---- */

#define ZONES_MAX      4096
#define ZONE_BYTES_MAX 128
#define ZONE_BUCKETS   1024

/* Texts are never taken out, so readers need no lock: a slot is filled first and then published by a compare-and-swap
 * on its bucket. Numbers in `heads` and `nexts` are slot + 1; 0 ends a list. */
static struct {
    int32_t heads[ZONE_BUCKETS]; /* atomic */
    int32_t nexts[ZONES_MAX];
    int32_t used; /* atomic; slots handed out */
    char texts[ZONES_MAX][ZONE_BYTES_MAX + 1];
} zones;

static const char *find_zone(int32_t head, const char *zone, int64_t bytes)
{
    for (int32_t at = head; at != 0; at = zones.nexts[at - 1]) {
        const char *text = zones.texts[at - 1];
        if (memcmp(text, zone, (size_t)bytes) == 0 && text[bytes] == '\0') {
            return text;
        }
    }
    return NULL;
}

static bool zone_is_text(const char *zone, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i++) {
        if ((unsigned char)zone[i] < 0x20 || zone[i] == 0x7f) {
            return false;
        }
    }
    return gar_utf8_valid(zone, bytes);
}

const char *gar_zone_intern(const char *zone, int64_t bytes, struct gar_error *err)
{
    if (bytes < 1 || bytes > ZONE_BYTES_MAX || !zone_is_text(zone, bytes)) {
        char quoted[96];
        (void)gar_error_set(
            err, GAR_ERR_VALUE, "not a time zone: '%s' (1 to %d printable characters)",
            gar_error_quote(zone, bytes, quoted, (int64_t)sizeof quoted), ZONE_BYTES_MAX);
        return NULL;
    }
    int32_t *bucket = &zones.heads[gar_hash_bytes(zone, bytes) % ZONE_BUCKETS];
    int32_t head = __atomic_load_n(bucket, __ATOMIC_ACQUIRE);
    const char *found = find_zone(head, zone, bytes);
    if (found != NULL) {
        return found;
    }
    if (__atomic_load_n(&zones.used, __ATOMIC_RELAXED) >= ZONES_MAX) {
        (void)gar_error_set(err, GAR_ERR_VALUE, "more than %d distinct time zones", ZONES_MAX);
        return NULL;
    }
    const int32_t slot = __atomic_fetch_add(&zones.used, 1, __ATOMIC_RELAXED);
    if (slot >= ZONES_MAX) {
        __atomic_store_n(&zones.used, ZONES_MAX, __ATOMIC_RELAXED);
        (void)gar_error_set(err, GAR_ERR_VALUE, "more than %d distinct time zones", ZONES_MAX);
        return NULL;
    }
    memcpy(zones.texts[slot], zone, (size_t)bytes);
    do {
        found = find_zone(head, zone, bytes);
        if (found != NULL) {
            return found; /* another thread was faster; the slot stays unused */
        }
        zones.nexts[slot] = head;
    } while (!__atomic_compare_exchange_n(bucket, &head, slot + 1, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    return zones.texts[slot];
}
