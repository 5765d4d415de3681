/* SPDX-License-Identifier: Apache-2.0 */
/* The Thrift compact protocol: a reader that believes nothing and a plain writer. */
#include "formats/parquet/thrift_priv.h"

#define VARINT_BYTES_MAX 10

static uint64_t read_varint(struct thrift_reader *reader);
static void skip_value(struct thrift_reader *reader, uint8_t type, bool in_list);
static void put_varint(struct gar_strbuf *out, uint64_t value);

void gar_thrift_init(struct thrift_reader *reader, const uint8_t *data, int64_t bytes)
{
    *reader = (struct thrift_reader){.start = data, .next = data, .end = data + bytes};
}

void gar_thrift_fail(struct thrift_reader *reader, const char *why)
{
    if (reader->why == NULL) {
        reader->why = why;
        reader->where = reader->next - reader->start;
        reader->next = reader->end;
    }
}

static uint8_t read_byte(struct thrift_reader *reader)
{
    if (reader->next >= reader->end) {
        gar_thrift_fail(reader, "it ends too early");
        return 0;
    }
    return *reader->next++;
}

static uint64_t read_varint(struct thrift_reader *reader)
{
    uint64_t value = 0;
    for (int32_t i = 0; i < VARINT_BYTES_MAX; i++) {
        const uint8_t byte = read_byte(reader);
        if (reader->why != NULL) {
            return 0;
        }
        if (i == VARINT_BYTES_MAX - 1 && byte > 1) {
            break;
        }
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if ((byte & 0x80) == 0) {
            return value;
        }
    }
    gar_thrift_fail(reader, "a number has more than 64 bits");
    return 0;
}

int64_t gar_thrift_int(struct thrift_reader *reader)
{
    const uint64_t raw = read_varint(reader);
    return (int64_t)(raw >> 1) ^ -(int64_t)(raw & 1);
}

const uint8_t *gar_thrift_binary(struct thrift_reader *reader, int64_t *out_bytes)
{
    const uint64_t bytes = read_varint(reader);
    if (bytes > (uint64_t)(reader->end - reader->next)) {
        gar_thrift_fail(reader, "a text is longer than what is left");
    }
    if (reader->why != NULL) {
        *out_bytes = 0;
        return reader->start;
    }
    const uint8_t *const data = reader->next;
    reader->next += bytes;
    *out_bytes = (int64_t)bytes;
    return data;
}

void gar_thrift_struct_begin(struct thrift_reader *reader)
{
    reader->depth++;
    if (reader->depth > THRIFT_DEPTH_MAX) {
        gar_thrift_fail(reader, "structs are nested too deep");
    }
}

bool gar_thrift_field_next(struct thrift_reader *reader, struct thrift_field *field)
{
    if (reader->why != NULL) {
        reader->depth--;
        return false;
    }
    const uint8_t head = read_byte(reader);
    const uint8_t type = head & 0x0f;
    if (reader->why != NULL || type == THRIFT_STOP) {
        reader->depth--;
        return false;
    }
    const int32_t step = head >> 4;
    if (step != 0) {
        field->id += step;
    } else {
        const int64_t id = gar_thrift_int(reader);
        if (id < INT16_MIN || id > INT16_MAX) {
            gar_thrift_fail(reader, "a field number is out of range");
        }
        field->id = (int32_t)id;
    }
    if (type > THRIFT_UUID) {
        gar_thrift_fail(reader, "a field has an unknown type");
    }
    field->type = type;
    if (reader->why != NULL) {
        reader->depth--;
        return false;
    }
    return true;
}

int64_t gar_thrift_field_int(struct thrift_reader *reader, const struct thrift_field *field)
{
    switch (field->type) {
    case THRIFT_BYTE: return (int8_t)read_byte(reader);
    case THRIFT_I16:
    case THRIFT_I32:
    case THRIFT_I64: return gar_thrift_int(reader);
    default: gar_thrift_fail(reader, "a field that should be an integer is none"); return 0;
    }
}

int32_t gar_thrift_field_i32(struct thrift_reader *reader, const struct thrift_field *field)
{
    const int64_t value = gar_thrift_field_int(reader, field);
    if (value < INT32_MIN || value > INT32_MAX) {
        gar_thrift_fail(reader, "a field should fit 32 bits");
        return 0;
    }
    return (int32_t)value;
}

bool gar_thrift_field_bool(struct thrift_reader *reader, const struct thrift_field *field)
{
    if (field->type != THRIFT_TRUE && field->type != THRIFT_FALSE) {
        gar_thrift_fail(reader, "a field that should be a boolean is none");
    }
    return field->type == THRIFT_TRUE;
}

const uint8_t *gar_thrift_field_binary(struct thrift_reader *reader,
                                       const struct thrift_field *field, int64_t *out_bytes)
{
    if (field->type != THRIFT_BINARY) {
        gar_thrift_fail(reader, "a field that should be a text is none");
    }
    return gar_thrift_binary(reader, out_bytes);
}

bool gar_thrift_field_struct(struct thrift_reader *reader, const struct thrift_field *field)
{
    if (field->type != THRIFT_STRUCT) {
        gar_thrift_fail(reader, "a field that should be a struct is none");
        return false;
    }
    return true;
}

/* Type and count of a list's head; each item takes at least item_bytes_min bytes. */
static int64_t read_list_head(struct thrift_reader *reader, int64_t item_bytes_min,
                              uint8_t *out_type)
{
    const uint8_t head = read_byte(reader);
    *out_type = head & 0x0f;
    uint64_t count = head >> 4;
    if (count == 15) {
        count = read_varint(reader);
    }
    const uint64_t left = (uint64_t)(reader->end - reader->next);
    if (reader->why == NULL && count > left / (uint64_t)item_bytes_min) {
        gar_thrift_fail(reader, "a list is longer than what is left");
    }
    return reader->why != NULL ? 0 : (int64_t)count;
}

int64_t gar_thrift_field_list(struct thrift_reader *reader, const struct thrift_field *field,
                              enum thrift_type item, int64_t item_bytes_min)
{
    if (field->type != THRIFT_LIST && field->type != THRIFT_SET) {
        gar_thrift_fail(reader, "a field that should be a list is none");
        return 0;
    }
    uint8_t type = 0;
    const int64_t count = read_list_head(reader, item_bytes_min, &type);
    if (count > 0 && type != (uint8_t)item) {
        gar_thrift_fail(reader, "a list holds another type than it should");
        return 0;
    }
    return count;
}

void gar_thrift_skip(struct thrift_reader *reader, const struct thrift_field *field)
{
    skip_value(reader, field->type, false);
}

static void skip_bytes(struct thrift_reader *reader, int64_t bytes)
{
    if (bytes > reader->end - reader->next) {
        gar_thrift_fail(reader, "it ends too early");
        return;
    }
    reader->next += bytes;
}

static void skip_items(struct thrift_reader *reader, bool is_map)
{
    uint8_t types[2] = {0, 0};
    int64_t count = 0;
    if (is_map) {
        const uint64_t pairs = read_varint(reader);
        if (pairs > (uint64_t)(reader->end - reader->next) / 2) {
            gar_thrift_fail(reader, "a map is longer than what is left");
            return;
        }
        if (pairs > 0) {
            const uint8_t both = read_byte(reader);
            types[0] = both >> 4;
            types[1] = both & 0x0f;
        }
        count = (int64_t)pairs;
    } else {
        count = read_list_head(reader, 1, &types[0]);
    }
    for (int64_t i = 0; i < count && reader->why == NULL; i++) {
        skip_value(reader, types[0], true);
        if (is_map) {
            skip_value(reader, types[1], true);
        }
    }
}

/* Recursion is bounded by THRIFT_DEPTH_MAX; every item consumes at least one byte (a struct its stop byte). */
static void skip_value(struct thrift_reader *reader, uint8_t type,
                       bool in_list) /* NOLINT(misc-no-recursion): depth limit */
{
    if (reader->why != NULL) {
        return;
    }
    switch (type) {
    case THRIFT_TRUE:
    case THRIFT_FALSE:
        if (in_list) {
            skip_bytes(reader, 1);
        }
        return;
    case THRIFT_BYTE: skip_bytes(reader, 1); return;
    case THRIFT_I16:
    case THRIFT_I32:
    case THRIFT_I64: (void)read_varint(reader); return;
    case THRIFT_DOUBLE: skip_bytes(reader, 8); return;
    case THRIFT_UUID: skip_bytes(reader, 16); return;
    case THRIFT_BINARY: {
        int64_t bytes = 0;
        (void)gar_thrift_binary(reader, &bytes);
        return;
    }
    case THRIFT_LIST:
    case THRIFT_SET:
    case THRIFT_MAP:
        gar_thrift_struct_begin(reader);
        skip_items(reader, type == THRIFT_MAP);
        reader->depth--;
        return;
    case THRIFT_STRUCT: {
        struct thrift_field field = {0};
        gar_thrift_struct_begin(reader);
        while (gar_thrift_field_next(reader, &field)) {
            skip_value(reader, field.type, false);
        }
        return;
    }
    default: gar_thrift_fail(reader, "a value has an unknown type"); return;
    }
}

static void put_varint(struct gar_strbuf *out, uint64_t value)
{
    while (value >= 0x80) {
        gar_strbuf_append_char(out, (char)(uint8_t)(value | 0x80));
        value >>= 7;
    }
    gar_strbuf_append_char(out, (char)(uint8_t)value);
}

void gar_thrift_put_zigzag(struct gar_strbuf *out, int64_t value)
{
    put_varint(out, ((uint64_t)value << 1) ^ (uint64_t)(value >> 63));
}

void gar_thrift_put_text(struct gar_strbuf *out, const void *data, int64_t bytes)
{
    put_varint(out, (uint64_t)bytes);
    gar_strbuf_append_n(out, data, bytes);
}

void gar_thrift_put_field(struct gar_strbuf *out, int32_t *last, int32_t id, enum thrift_type type)
{
    const int32_t step = id - *last;
    if (step >= 1 && step <= 15) {
        gar_strbuf_append_char(out, (char)(uint8_t)(((uint32_t)step << 4) | (uint32_t)type));
    } else {
        gar_strbuf_append_char(out, (char)type);
        gar_thrift_put_zigzag(out, id);
    }
    *last = id;
}

void gar_thrift_put_i32(struct gar_strbuf *out, int32_t *last, int32_t id, int32_t value)
{
    gar_thrift_put_field(out, last, id, THRIFT_I32);
    gar_thrift_put_zigzag(out, value);
}

void gar_thrift_put_i64(struct gar_strbuf *out, int32_t *last, int32_t id, int64_t value)
{
    gar_thrift_put_field(out, last, id, THRIFT_I64);
    gar_thrift_put_zigzag(out, value);
}

void gar_thrift_put_bool(struct gar_strbuf *out, int32_t *last, int32_t id, bool value)
{
    gar_thrift_put_field(out, last, id, value ? THRIFT_TRUE : THRIFT_FALSE);
}

void gar_thrift_put_binary(struct gar_strbuf *out, int32_t *last, int32_t id, const void *data,
                           int64_t bytes)
{
    gar_thrift_put_field(out, last, id, THRIFT_BINARY);
    gar_thrift_put_text(out, data, bytes);
}

void gar_thrift_put_list(struct gar_strbuf *out, int32_t *last, int32_t id, enum thrift_type item,
                         int64_t count)
{
    gar_thrift_put_field(out, last, id, THRIFT_LIST);
    if (count < 15) {
        gar_strbuf_append_char(out, (char)(uint8_t)(((uint64_t)count << 4) | (uint64_t)item));
    } else {
        gar_strbuf_append_char(out, (char)(uint8_t)(0xf0 | (uint32_t)item));
        put_varint(out, (uint64_t)count);
    }
}

void gar_thrift_put_stop(struct gar_strbuf *out)
{
    gar_strbuf_append_char(out, 0);
}
