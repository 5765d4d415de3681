/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow format strings and schemas, read and written. Formats: Arrow C data interface, "Data type description". */
#include <stdio.h>
#include <string.h>

#include "arrow/abi_priv.h"
#include "base/alloc.h"
#include "base/number_text.h"
#include "base/utf8.h"

/* More is not metadata but a mistake. */
#define METADATA_BYTES_MAX (INT64_C(64) << 20)
#define CHILDREN_MAX       1000000

/* ---- reading formats ---- */

static enum gar_status refuse(const struct ArrowSchema *abi, const char *what,
                              struct gar_error *err)
{
    char format[64];
    const char *text = abi->format != NULL ? abi->format : "";
    return gar_error_set(
        err, GAR_ERR_UNSUPPORTED, "%s is not supported (Arrow format '%s')", what,
        gar_error_quote(text, (int64_t)strlen(text), format, (int64_t)sizeof format));
}

static struct abi_format direct(struct gar_type type)
{
    return (struct abi_format){.type = type, .layout = ABI_DIRECT, .width = gar_type_width(type)};
}

static struct abi_format with_layout(enum gar_type_id id, enum abi_layout layout, int32_t width)
{
    return (struct abi_format){.type = gar_type_of(id), .layout = layout, .width = width};
}

/* One-letter formats. */
static bool read_simple(char letter, struct abi_format *out)
{
    switch (letter) {
    case 'n': *out = with_layout(GAR_NULL, ABI_NULL, 0); return true;
    case 'b': *out = with_layout(GAR_BOOL, ABI_BOOL, 0); return true;
    case 'c': *out = direct(gar_type_of(GAR_INT8)); return true;
    case 'C': *out = direct(gar_type_of(GAR_UINT8)); return true;
    case 's': *out = direct(gar_type_of(GAR_INT16)); return true;
    case 'S': *out = direct(gar_type_of(GAR_UINT16)); return true;
    case 'i': *out = direct(gar_type_of(GAR_INT32)); return true;
    case 'I': *out = direct(gar_type_of(GAR_UINT32)); return true;
    case 'l': *out = direct(gar_type_of(GAR_INT64)); return true;
    case 'L': *out = direct(gar_type_of(GAR_UINT64)); return true;
    case 'e': *out = with_layout(GAR_FLOAT32, ABI_FLOAT16, 2); return true;
    case 'f': *out = direct(gar_type_of(GAR_FLOAT32)); return true;
    case 'g': *out = direct(gar_type_of(GAR_FLOAT64)); return true;
    case 'z': *out = with_layout(GAR_BINARY, ABI_OFFSETS32, 4); return true;
    case 'Z': *out = with_layout(GAR_BINARY, ABI_OFFSETS64, 8); return true;
    case 'u': *out = with_layout(GAR_STRING, ABI_OFFSETS32, 4); return true;
    case 'U': *out = with_layout(GAR_STRING, ABI_OFFSETS64, 8); return true;
    default: return false;
    }
}

static bool read_unit(char letter, enum gar_time_unit *out)
{
    switch (letter) {
    case 's': *out = GAR_SECOND; return true;
    case 'm': *out = GAR_MILLI; return true;
    case 'u': *out = GAR_MICRO; return true;
    case 'n': *out = GAR_NANO; return true;
    default: return false;
    }
}

/* tdD tdm tts ttm ttu ttn tss:zone ... tDs ... */
static enum gar_status read_temporal(const struct ArrowSchema *abi, struct abi_format *out,
                                     struct gar_error *err)
{
    const char *f = abi->format;
    enum gar_time_unit unit = GAR_SECOND;
    if (strcmp(f, "tdD") == 0) {
        *out = direct(gar_type_of(GAR_DATE));
        return GAR_OK;
    }
    if (strcmp(f, "tdm") == 0) {
        *out = with_layout(GAR_DATE, ABI_DATE64, 8);
        return GAR_OK;
    }
    if (f[1] == '\0' || !read_unit(f[2], &unit)) {
        return refuse(abi, f[1] == 'i' ? "a calendar interval" : "this type", err);
    }
    if (f[1] == 't' && f[3] == '\0') {
        if (unit >= GAR_MICRO) {
            *out = direct(gar_type_with_unit(GAR_TIME, unit));
        } else {
            *out = with_layout(GAR_TIME, ABI_TIME32, 4);
            out->type.unit = GAR_MICRO;
            out->factor = unit == GAR_SECOND ? 1000000 : 1000;
        }
        return GAR_OK;
    }
    if (f[1] == 'D' && f[3] == '\0') {
        *out = direct(gar_type_with_unit(GAR_DURATION, unit));
        return GAR_OK;
    }
    if (f[1] == 's' && f[3] == ':') {
        const char *zone = NULL;
        if (f[4] != '\0') {
            zone = gar_zone_intern(f + 4, (int64_t)strlen(f + 4), err);
            if (zone == NULL) {
                return GAR_ERR_VALUE;
            }
        }
        *out = direct(gar_type_timestamp(unit, zone));
        return GAR_OK;
    }
    return refuse(abi, "this type", err);
}

/* Up to three comma-separated integers; how many there were, or -1. */
static int32_t read_numbers(const char *text, int64_t numbers[3])
{
    int32_t count = 0;
    while (count < 3) {
        const char *comma = strchr(text, ',');
        const int64_t bytes = comma != NULL ? comma - text : (int64_t)strlen(text);
        if (gar_parse_i64(text, bytes, &numbers[count]) != GAR_OK) {
            return -1;
        }
        count++;
        if (comma == NULL) {
            return count;
        }
        text = comma + 1;
    }
    return -1;
}

/* d:precision,scale[,bits] */
static enum gar_status read_decimal(const struct ArrowSchema *abi, struct abi_format *out,
                                    struct gar_error *err)
{
    int64_t n[3] = {0, 0, 128};
    const int32_t count = read_numbers(abi->format + 2, n);
    const bool bits_known = n[2] == 32 || n[2] == 64 || n[2] == 128 || n[2] == 256;
    if (count < 2 || !bits_known || n[0] < 1 || n[0] > 76) {
        return refuse(abi, "this decimal", err);
    }
    const int64_t precision = n[2] == 256 ? gar_min_i64(n[0], GAR_DECIMAL_PRECISION_MAX) : n[0];
    if (precision > GAR_DECIMAL_PRECISION_MAX || n[1] < 0 || n[1] > GAR_DECIMAL_PRECISION_MAX) {
        return refuse(abi, "a decimal with negative scale or more than 38 digits", err);
    }
    /* A scale above the precision (0.0012 has 2 digits and scale 4) only needs room for the zeros. */
    *out = direct(gar_type_decimal((int32_t)gar_max_i64(precision, n[1]), (int32_t)n[1]));
    if (n[2] != 128) {
        out->layout = ABI_DECIMAL;
        out->width = (int32_t)(n[2] / 8);
    }
    return GAR_OK;
}

static enum gar_status read_nested(const struct ArrowSchema *abi, int32_t depth,
                                   struct abi_format *out, struct gar_error *err)
{
    switch (abi->format[1]) {
    case 'r': break;
    case 's': return refuse(abi, "the nested type struct", err);
    case 'l':
    case 'L':
    case 'v':
    case 'w': return refuse(abi, "the nested type list", err);
    case 'm': return refuse(abi, "the nested type map", err);
    case 'u': return refuse(abi, "the nested type union", err);
    default: return refuse(abi, "this type", err);
    }
    if (abi->n_children != 2 || abi->children == NULL || abi->children[0] == NULL ||
        abi->children[1] == NULL) {
        return gar_error_set(err, GAR_ERR_FORMAT,
                             "a run-end encoded field without its two children");
    }
    struct abi_format ends;
    struct abi_format values;
    GAR_TRY(abi_read_format(abi->children[0], depth + 1, &ends, err));
    GAR_TRY(abi_read_format(abi->children[1], depth + 1, &values, err));
    if (ends.layout != ABI_DIRECT || !gar_type_is_signed(ends.type) || ends.type.id == GAR_INT8) {
        return gar_error_set(err, GAR_ERR_FORMAT, "run ends that are not int16, int32 or int64");
    }
    *out = (struct abi_format){
        .type = values.type, .layout = ABI_RUN_END, .width = gar_type_width(ends.type)};
    return GAR_OK;
}

static enum gar_status read_dictionary(const struct ArrowSchema *abi, int32_t depth,
                                       struct abi_format *out, struct gar_error *err)
{
    struct abi_format index = {0};
    if (abi->format[0] == '\0' || abi->format[1] != '\0' || !read_simple(abi->format[0], &index) ||
        !gar_type_is_integer(index.type)) {
        return refuse(abi, "a dictionary whose indices are not integers", err);
    }
    struct abi_format values;
    GAR_TRY(abi_read_format(abi->dictionary, depth + 1, &values, err));
    *out = (struct abi_format){.type = values.type,
                               .layout = ABI_DICTIONARY,
                               .width = index.width,
                               .is_unsigned = gar_type_is_unsigned(index.type)};
    return GAR_OK;
}

enum gar_status abi_read_format(const struct ArrowSchema *abi, int32_t depth,
                                struct abi_format *out, struct gar_error *err)
{
    const char *f = abi->format;
    if (f == NULL || abi->release == NULL) {
        return gar_error_set(err, GAR_ERR_FORMAT,
                             "an Arrow schema without a format or already released");
    }
    if (depth > ABI_DEPTH_MAX) {
        return refuse(abi, "nesting this deep", err);
    }
    if (abi->dictionary != NULL) {
        return read_dictionary(abi, depth, out, err);
    }
    if (f[0] != '\0' && f[1] == '\0' && read_simple(f[0], out)) {
        return GAR_OK;
    }
    if (strcmp(f, "vu") == 0 || strcmp(f, "vz") == 0) {
        *out = with_layout(f[1] == 'u' ? GAR_STRING : GAR_BINARY, ABI_VIEWS, 16);
        return GAR_OK;
    }
    if (strncmp(f, "w:", 2) == 0) {
        int64_t width = 0;
        if (gar_parse_i64(f + 2, (int64_t)strlen(f + 2), &width) != GAR_OK || width < 0 ||
            width > INT32_MAX) {
            return refuse(abi, "this fixed-size binary", err);
        }
        *out = with_layout(GAR_BINARY, ABI_FIXED_BINARY, (int32_t)width);
        return GAR_OK;
    }
    if (strncmp(f, "d:", 2) == 0) {
        return read_decimal(abi, out, err);
    }
    if (f[0] == 't') {
        return read_temporal(abi, out, err);
    }
    return f[0] == '+' ? read_nested(abi, depth, out, err) : refuse(abi, "this type", err);
}

/* ---- reading schemas ---- */

/* The next int32 of the metadata if `bytes` more are believable. */
static bool read_count(const char *metadata, int64_t *at, int32_t *out)
{
    memcpy(out, metadata + *at, sizeof *out);
    *at += (int64_t)sizeof *out;
    return *out >= 0 && *at <= METADATA_BYTES_MAX - *out;
}

int64_t abi_metadata_bytes(const char *metadata)
{
    int64_t at = 0;
    int32_t pairs = 0;
    if (!read_count(metadata, &at, &pairs)) {
        return -1;
    }
    for (int64_t i = 0; i < 2 * (int64_t)pairs; i++) {
        int32_t bytes = 0;
        if (!read_count(metadata, &at, &bytes)) {
            return -1;
        }
        at += bytes;
    }
    return at;
}

enum gar_status gar_type_import(const struct ArrowSchema *abi, struct gar_type *out,
                                struct gar_error *err)
{
    struct abi_format format;
    GAR_TRY(abi_read_format(abi, 0, &format, err));
    *out = format.type;
    return GAR_OK;
}

static enum gar_status import_field(const struct ArrowSchema *abi, struct gar_field *out,
                                    struct gar_error *err)
{
    const char *name = abi->name != NULL ? abi->name : "";
    const enum gar_status status = gar_type_import(abi, &out->type, err);
    if (status < 0) {
        char quoted[128];
        gar_error_prefix(
            err, "column '%s': ",
            gar_error_quote(name, (int64_t)strlen(name), quoted, (int64_t)sizeof quoted));
        return status;
    }
    out->name = (char *)(uintptr_t)name; /* borrowed; the schema copies it */
    out->nullable = (abi->flags & ARROW_FLAG_NULLABLE) != 0;
    if (abi->metadata == NULL) {
        return GAR_OK;
    }
    const int64_t bytes = abi_metadata_bytes(abi->metadata);
    if (bytes < 0) {
        return gar_error_set(err, GAR_ERR_FORMAT, "the metadata of an Arrow field is malformed");
    }
    /* Fixed-size binary becomes binary: it is not the storage any more that an extension type (UUID) is made of. */
    const bool is_lost = abi->format[0] == 'w' &&
                         memmem(abi->metadata, (size_t)bytes, "ARROW:extension:", 16) != NULL;
    if (!is_lost) {
        out->metadata_bytes = bytes;
        out->metadata = (char *)(uintptr_t)abi->metadata;
    }
    return GAR_OK;
}

enum gar_status gar_schema_import(const struct ArrowSchema *abi, struct gar_schema **out,
                                  struct gar_error *err)
{
    if (abi->release == NULL || abi->format == NULL || strcmp(abi->format, "+s") != 0) {
        return gar_error_set(
            err, GAR_ERR_TYPE,
            "expected Arrow data with named columns (a struct), got an array of format '%s'",
            abi->release != NULL && abi->format != NULL ? abi->format : "released");
    }
    if (abi->n_children < 0 || abi->n_children > CHILDREN_MAX ||
        (abi->n_children > 0 && abi->children == NULL)) {
        return gar_error_set(err, GAR_ERR_FORMAT, "an Arrow schema of %lld columns",
                             (long long)abi->n_children);
    }
    struct gar_field *fields =
        gar_calloc(gar_max_i64(abi->n_children, 1), (int64_t)sizeof fields[0]);
    if (fields == NULL) {
        return gar_error_nomem(err, abi->n_children * (int64_t)sizeof fields[0]);
    }
    enum gar_status status = GAR_OK;
    for (int64_t i = 0; i < abi->n_children && status >= 0; i++) {
        status = abi->children[i] == NULL
                     ? gar_error_set(err, GAR_ERR_FORMAT, "an Arrow schema without its child %lld",
                                     (long long)i)
                     : import_field(abi->children[i], &fields[i], err);
    }
    if (status >= 0) {
        status = gar_schema_new(fields, abi->n_children, false, out, err);
    }
    gar_free(fields);
    return status;
}

/* ---- writing ---- */

void abi_write_format(struct gar_type type, enum gar_text_layout layout, char *out,
                      int64_t out_bytes)
{
    static const char units[] = "smun";
    static const char *const simple[GAR_TYPE_ID_COUNT] = {
        [GAR_NULL] = "n",    [GAR_BOOL] = "b",    [GAR_INT8] = "c",    [GAR_INT16] = "s",
        [GAR_INT32] = "i",   [GAR_INT64] = "l",   [GAR_UINT8] = "C",   [GAR_UINT16] = "S",
        [GAR_UINT32] = "I",  [GAR_UINT64] = "L",  [GAR_FLOAT32] = "f", [GAR_FLOAT64] = "g",
        [GAR_STRING] = "vu", [GAR_BINARY] = "vz", [GAR_DATE] = "tdD",
    };
    const char unit = units[type.unit & 3];
    const size_t room = (size_t)out_bytes;
    if (type.id == GAR_DECIMAL128) {
        (void)snprintf(out, room, "d:%d,%d", (int)type.precision, (int)type.scale);
    } else if (type.id == GAR_TIME) {
        (void)snprintf(out, room, "tt%c", unit);
    } else if (type.id == GAR_TIMESTAMP) {
        (void)snprintf(out, room, "ts%c:%s", unit, type.zone != NULL ? type.zone : "");
    } else if (type.id == GAR_DURATION) {
        (void)snprintf(out, room, "tD%c", unit);
    } else if (layout == GAR_TEXT_LARGE_OFFSETS && gar_type_is_text(type)) {
        (void)snprintf(out, room, "%s", type.id == GAR_STRING ? "U" : "Z");
    } else {
        (void)snprintf(out, room, "%s", type.id < GAR_TYPE_ID_COUNT ? simple[type.id] : "n");
    }
}

/* One exported field in one block: the struct is the caller's, these are its texts and children. */
struct exported_schema {
    char format[192];
    char *name;
    char *metadata;
    struct ArrowSchema *children; /* count items */
    struct ArrowSchema **child_pointers;
};

static void release_schema(struct ArrowSchema *abi)
{
    struct exported_schema *own = abi->private_data;
    for (int64_t i = 0; i < abi->n_children; i++) {
        if (own->children[i].release != NULL) {
            own->children[i].release(&own->children[i]);
        }
    }
    gar_free(own->name);
    gar_free(own->metadata);
    gar_free(own->children);
    gar_free(own->child_pointers);
    gar_free(own);
    abi->release = NULL;
}

/* A releasable field without children. */
static enum gar_status start_schema(const char *name, int64_t flags, struct ArrowSchema *out,
                                    struct gar_error *err)
{
    struct exported_schema *own = gar_calloc(1, (int64_t)sizeof *own);
    if (own == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *own);
    }
    own->name = gar_strdup(name);
    if (own->name == NULL) {
        gar_free(own);
        return gar_error_nomem(err, (int64_t)strlen(name));
    }
    *out = (struct ArrowSchema){.format = own->format,
                                .name = own->name,
                                .flags = flags,
                                .release = release_schema,
                                .private_data = own};
    return GAR_OK;
}

enum gar_status gar_type_export(struct gar_type type, const char *name, bool nullable,
                                enum gar_text_layout layout, struct ArrowSchema *out,
                                struct gar_error *err)
{
    GAR_TRY(start_schema(name, nullable ? ARROW_FLAG_NULLABLE : 0, out, err));
    struct exported_schema *own = out->private_data;
    abi_write_format(type, layout, own->format, (int64_t)sizeof own->format);
    return GAR_OK;
}

static enum gar_status export_field(const struct gar_field *field, enum gar_text_layout layout,
                                    struct ArrowSchema *out, struct gar_error *err)
{
    GAR_TRY(gar_type_export(field->type, field->name, field->nullable, layout, out, err));
    if (field->metadata == NULL) {
        return GAR_OK;
    }
    struct exported_schema *own = out->private_data;
    own->metadata = gar_malloc(field->metadata_bytes);
    if (own->metadata == NULL) {
        return gar_error_nomem(err, field->metadata_bytes);
    }
    memcpy(own->metadata, field->metadata, (size_t)field->metadata_bytes);
    out->metadata = own->metadata;
    return GAR_OK;
}

enum gar_status gar_schema_export(const struct gar_schema *schema, enum gar_text_layout layout,
                                  struct ArrowSchema *out, struct gar_error *err)
{
    struct ArrowSchema top;
    GAR_TRY(start_schema("", 0, &top, err));
    struct exported_schema *own = top.private_data;
    memcpy(own->format, "+s", 3);
    own->children = gar_calloc(gar_max_i64(schema->count, 1), (int64_t)sizeof own->children[0]);
    own->child_pointers =
        gar_calloc(gar_max_i64(schema->count, 1), (int64_t)sizeof own->child_pointers[0]);
    enum gar_status status = GAR_OK;
    if (own->children == NULL || own->child_pointers == NULL) {
        status = gar_error_nomem(err, schema->count * (int64_t)sizeof own->children[0]);
    } else {
        top.n_children = schema->count;
        top.children = own->child_pointers;
    }
    for (int64_t i = 0; status >= 0 && i < schema->count; i++) {
        own->child_pointers[i] = &own->children[i];
        status = export_field(&schema->fields[i], layout, &own->children[i], err);
    }
    if (status < 0) {
        release_schema(&top);
        return status;
    }
    *out = top;
    return GAR_OK;
}
