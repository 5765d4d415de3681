/* SPDX-License-Identifier: Apache-2.0 */
/* Writing the Arrow schema that lets types come back which Parquet itself has no words for: durations and time zones; and the
 * metadata of fields.
 *
 * The message is laid out front to back: a table follows its own small vtable, and an offset is patched when its target is
 * written. All scalars in it have four bytes or fewer, so four-byte alignment is enough. */
#include <string.h>

#include "base/bits.h"
#include "formats/parquet/encode_priv.h"

#define SLOTS_MAX          8
#define METADATA_VERSION_5 4
#define HEADER_SCHEMA      1

/* Arrow's numbers of types (Type union). */
enum {
    ARROW_NULL = 1,
    ARROW_INT = 2,
    ARROW_FLOAT = 3,
    ARROW_BINARY = 4,
    ARROW_UTF8 = 5,
    ARROW_BOOL = 6,
    ARROW_DECIMAL = 7,
    ARROW_DATE = 8,
    ARROW_TIME = 9,
    ARROW_TIMESTAMP = 10,
    ARROW_DURATION = 18
};

/* A table being written: for each slot its bytes (0: absent), and where its value went. */
struct slots {
    int32_t bytes[SLOTS_MAX];
    int64_t at[SLOTS_MAX];
    int32_t count;
};

static void put_zeros(struct gar_strbuf *out, int64_t count)
{
    gar_strbuf_append_fill(out, 0, count);
}

static void align(struct gar_strbuf *out)
{
    put_zeros(out, (4 - out->size % 4) % 4);
}

static void patch(struct gar_strbuf *out, int64_t at, const void *value, int64_t bytes)
{
    if (!out->failed) {
        memcpy(out->data + at, value, (size_t)bytes);
    }
}

static void patch_u8(struct gar_strbuf *out, int64_t at, uint8_t value)
{
    patch(out, at, &value, 1);
}

static void patch_i16(struct gar_strbuf *out, int64_t at, int32_t value)
{
    const int16_t v = (int16_t)value;
    patch(out, at, &v, 2);
}

static void patch_i32(struct gar_strbuf *out, int64_t at, int32_t value)
{
    patch(out, at, &value, 4);
}

/* The offset at `at` now points to the end of what is written. */
static void patch_here(struct gar_strbuf *out, int64_t at)
{
    align(out);
    patch_i32(out, at, (int32_t)(out->size - at));
}

/* vtable and table with zeroed fields; slots->at says where each goes. Returns the table's place. */
static int64_t put_table(struct gar_strbuf *out, struct slots *slots)
{
    align(out);
    const int64_t vtable = out->size;
    put_zeros(out, 4 + 2 * slots->count);
    align(out);
    const int64_t table = out->size;
    put_zeros(out, 4);
    /* Wide fields first keeps every field aligned. */
    for (int32_t width = 4; width >= 1; width /= 2) {
        for (int32_t i = 0; i < slots->count; i++) {
            if (slots->bytes[i] == width) {
                slots->at[i] = out->size;
                patch_i16(out, vtable + 4 + 2 * i, (int32_t)(out->size - table));
                put_zeros(out, width);
            }
        }
    }
    patch_i16(out, vtable, 4 + 2 * slots->count);
    patch_i16(out, vtable + 2, (int32_t)(out->size - table));
    patch_i32(out, table, (int32_t)(table - vtable));
    return table;
}

/* A text at the end, which the offset at `at` points to. */
static void put_text(struct gar_strbuf *out, int64_t at, const char *text, int64_t bytes)
{
    patch_here(out, at);
    const int64_t length_at = out->size;
    put_zeros(out, 4);
    patch_i32(out, length_at, (int32_t)bytes);
    gar_strbuf_append_n(out, text, bytes);
    put_zeros(out, 1);
}

static uint8_t arrow_kind(struct gar_type type)
{
    switch ((enum gar_type_id)type.id) {
    case GAR_BOOL: return ARROW_BOOL;
    case GAR_INT8:
    case GAR_INT16:
    case GAR_INT32:
    case GAR_INT64:
    case GAR_UINT8:
    case GAR_UINT16:
    case GAR_UINT32:
    case GAR_UINT64: return ARROW_INT;
    case GAR_FLOAT32:
    case GAR_FLOAT64: return ARROW_FLOAT;
    case GAR_DECIMAL128: return ARROW_DECIMAL;
    case GAR_STRING: return ARROW_UTF8;
    case GAR_BINARY: return ARROW_BINARY;
    case GAR_DATE: return ARROW_DATE;
    case GAR_TIME: return ARROW_TIME;
    case GAR_TIMESTAMP: return ARROW_TIMESTAMP;
    case GAR_DURATION: return ARROW_DURATION;
    case GAR_NULL:
    case GAR_LIST:
    case GAR_FIXED_LIST:
    case GAR_STRUCT:
    case GAR_MAP:
    case GAR_TYPE_ID_COUNT: break;
    }
    return ARROW_NULL;
}

/* The table of a type, which the offset at `at` points to. */
static void put_type(struct gar_strbuf *out, int64_t at, struct gar_type type)
{
    const uint8_t kind = arrow_kind(type);
    struct slots slots = {0};
    switch (kind) {
    case ARROW_INT: slots = (struct slots){.count = 2, .bytes = {4, 1}}; break;
    case ARROW_DECIMAL: slots = (struct slots){.count = 2, .bytes = {4, 4}}; break;
    case ARROW_TIME: slots = (struct slots){.count = 2, .bytes = {2, 4}}; break;
    case ARROW_TIMESTAMP:
        slots = (struct slots){.count = 2, .bytes = {2, type.zone != NULL ? 4 : 0}};
        break;
    case ARROW_FLOAT:
    case ARROW_DATE:
    case ARROW_DURATION: slots = (struct slots){.count = 1, .bytes = {2}}; break;
    default: break;
    }
    const int64_t table = put_table(out, &slots);
    patch_i32(out, at, (int32_t)(table - at));
    if (kind == ARROW_INT) {
        patch_i32(out, slots.at[0], 8 * gar_type_width(type));
        patch_u8(out, slots.at[1], gar_type_is_signed(type));
    } else if (kind == ARROW_DECIMAL) {
        patch_i32(out, slots.at[0], type.precision);
        patch_i32(out, slots.at[1], type.scale);
    } else if (kind == ARROW_TIME) {
        patch_i16(out, slots.at[0], type.unit);
        patch_i32(out, slots.at[1], 64);
    } else if (kind == ARROW_FLOAT) {
        patch_i16(out, slots.at[0], type.id == GAR_FLOAT32 ? 1 : 2);
    } else if (kind == ARROW_DURATION) {
        patch_i16(out, slots.at[0], type.unit);
    } else if (kind == ARROW_TIMESTAMP) {
        patch_i16(out, slots.at[0], type.unit);
        if (type.zone != NULL) {
            put_text(out, slots.at[1], type.zone, (int64_t)strlen(type.zone));
        }
    }
    /* A date's unit, DAY, is 0. */
}

/* One text of Arrow's binary key-value form. False when it passes the end. */
static bool take_text(const char **at, const char *end, const char **text, int64_t *bytes)
{
    if (end - *at < 4) {
        return false;
    }
    *bytes = (int32_t)gar_load_u32(*at);
    *text = *at + 4;
    if (*bytes < 0 || *bytes > end - *text) {
        return false;
    }
    *at = *text + *bytes;
    return true;
}

static int32_t pair_count(const struct gar_field *field)
{
    if (field->metadata == NULL || field->metadata_bytes < 4) {
        return 0;
    }
    const char *at = field->metadata + 4;
    const char *const end = field->metadata + field->metadata_bytes;
    const int32_t count = (int32_t)gar_load_u32(field->metadata);
    const char *text = NULL;
    int64_t bytes = 0;
    for (int32_t i = 0; i < count; i++) {
        const bool has_key = take_text(&at, end, &text, &bytes);
        if (!has_key || !take_text(&at, end, &text, &bytes)) {
            return 0;
        }
    }
    return count > 0 ? count : 0;
}

static void put_metadata(struct gar_strbuf *out, int64_t at, const struct gar_field *field,
                         int32_t count)
{
    patch_here(out, at);
    const int64_t vector = out->size;
    put_zeros(out, 4 + 4 * (int64_t)count);
    patch_i32(out, vector, count);
    const char *next = field->metadata + 4;
    const char *const end = field->metadata + field->metadata_bytes;
    for (int32_t i = 0; i < count; i++) {
        struct slots slots = {.count = 2, .bytes = {4, 4}};
        const int64_t table = put_table(out, &slots);
        const int64_t offset_at = vector + 4 + 4 * (int64_t)i;
        patch_i32(out, offset_at, (int32_t)(table - offset_at));
        for (int32_t k = 0; k < 2; k++) {
            const char *text = "";
            int64_t bytes = 0;
            (void)take_text(&next, end, &text, &bytes);
            put_text(out, slots.at[k], text, bytes);
        }
    }
}

static void put_field(struct gar_strbuf *out, int64_t at, const struct gar_field *field)
{
    const int32_t pairs = pair_count(field);
    /* name, nullable, type_type, type, dictionary, children, custom_metadata */
    struct slots slots = {.count = 7, .bytes = {4, 1, 1, 4, 0, 4, pairs > 0 ? 4 : 0}};
    const int64_t table = put_table(out, &slots);
    patch_i32(out, at, (int32_t)(table - at));
    patch_u8(out, slots.at[1], field->nullable);
    patch_u8(out, slots.at[2], arrow_kind(field->type));
    put_text(out, slots.at[0], field->name, (int64_t)strlen(field->name));
    put_type(out, slots.at[3], field->type);
    patch_here(out, slots.at[5]);
    put_zeros(out, 4); /* no children */
    if (pairs > 0) {
        put_metadata(out, slots.at[6], field, pairs);
    }
}

static void put_message(struct gar_strbuf *out, const struct gar_schema *schema)
{
    put_zeros(out, 4);
    /* version, header_type, header */
    struct slots message = {.count = 3, .bytes = {2, 1, 4}};
    const int64_t message_at = put_table(out, &message);
    patch_i32(out, 0, (int32_t)message_at);
    patch_i16(out, message.at[0], METADATA_VERSION_5);
    patch_u8(out, message.at[1], HEADER_SCHEMA);
    /* endianness (little is the default), fields */
    struct slots body = {.count = 2, .bytes = {0, 4}};
    const int64_t body_at = put_table(out, &body);
    patch_i32(out, message.at[2], (int32_t)(body_at - message.at[2]));
    patch_here(out, body.at[1]);
    const int64_t vector = out->size;
    put_zeros(out, 4 + 4 * schema->count);
    patch_i32(out, vector, (int32_t)schema->count);
    for (int64_t i = 0; i < schema->count; i++) {
        put_field(out, vector + 4 + 4 * i, &schema->fields[i]);
    }
}

static void put_base64(struct gar_strbuf *out, const uint8_t *data, int64_t bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int64_t i = 0; i < bytes; i += 3) {
        const int64_t left = bytes - i;
        const uint32_t a = data[i];
        const uint32_t b = left > 1 ? data[i + 1] : 0;
        const uint32_t c = left > 2 ? data[i + 2] : 0;
        const uint32_t bits = (a << 16) | (b << 8) | c;
        gar_strbuf_append_char(out, digits[bits >> 18]);
        gar_strbuf_append_char(out, digits[(bits >> 12) & 63]);
        gar_strbuf_append_char(out, left > 1 ? digits[(bits >> 6) & 63] : '=');
        gar_strbuf_append_char(out, left > 2 ? digits[bits & 63] : '=');
    }
}

/* Does anything get lost without it? */
static bool is_needed(const struct gar_schema *schema)
{
    for (int64_t i = 0; i < schema->count; i++) {
        const struct gar_field *const field = &schema->fields[i];
        const bool has_zone = field->type.zone != NULL && strcmp(field->type.zone, "UTC") != 0;
        if (field->type.id == GAR_DURATION || has_zone || pair_count(field) > 0) {
            return true;
        }
    }
    return false;
}

enum gar_status gar_parquet_arrow_facts_write(const struct gar_schema *schema,
                                              struct gar_strbuf *out, struct gar_error *err)
{
    if (!is_needed(schema)) {
        return GAR_OK;
    }
    struct gar_strbuf message = {0};
    put_message(&message, schema);
    put_zeros(&message, (8 - message.size % 8) % 8);
    struct gar_strbuf framed = {0};
    gar_strbuf_append_fill(&framed, (char)-1, 4);
    put_zeros(&framed, 4);
    patch_i32(&framed, 4, (int32_t)message.size);
    gar_strbuf_append_n(&framed, gar_strbuf_text(&message), message.size);
    const bool is_good = !message.failed && !framed.failed;
    if (is_good) {
        put_base64(out, (const uint8_t *)framed.data, framed.size);
    }
    gar_strbuf_destroy(&message);
    gar_strbuf_destroy(&framed);
    return is_good && !out->failed ? GAR_OK : gar_error_nomem(err, message.size);
}
