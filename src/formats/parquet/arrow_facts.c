/* SPDX-License-Identifier: Apache-2.0 */
/* The Arrow schema that Arrow-based writers embed in the footer: base64 of an IPC schema message (FlatBuffers).
 *
 * Only the top-level fields are read: name, kind of type, its few parameters, key-value metadata. The message is a help and
 * never a condition: whatever is malformed in it makes it count as absent. Every table, vector and text is checked to lie in the
 * message before it is looked at; nothing recurses. */
#include <string.h>

#include "formats/parquet/parquet.h"
#include "formats/parquet/parquet_priv.h"

#define HEADER_SCHEMA 1
/* Slots of the tables (FlatBuffers numbers fields from 0; the type of a union takes a slot of its own). */
enum { MESSAGE_HEADER_TYPE = 1, MESSAGE_HEADER = 2 };
enum { SCHEMA_FIELDS = 1 };
enum { FIELD_NAME = 0, FIELD_TYPE_TYPE = 2, FIELD_TYPE = 3, FIELD_METADATA = 6 };
enum { INT_BITS = 0, INT_SIGNED = 1, TIMESTAMP_UNIT = 0, TIMESTAMP_ZONE = 1, DURATION_UNIT = 0 };
enum { PAIR_KEY = 0, PAIR_VALUE = 1 };

struct flat {
    const uint8_t *data;
    int64_t bytes;
    int64_t
        budget; /* bytes that may still be copied: fields may share texts, which could ask for more than there is */
};

/* A table: where it starts and where its vtable lies. at < 0: none. */
struct flat_table {
    int64_t at;
    int64_t vtable;
    int32_t vtable_bytes;
};

static bool has(const struct flat *f, int64_t at, int64_t bytes)
{
    return at >= 0 && bytes >= 0 && at <= f->bytes && bytes <= f->bytes - at;
}

static uint32_t load_u16(const struct flat *f, int64_t at)
{
    return (uint32_t)f->data[at] | ((uint32_t)f->data[at + 1] << 8);
}

static struct flat_table table_at(const struct flat *f, int64_t at)
{
    struct flat_table table = {.at = -1};
    if (!has(f, at, 4)) {
        return table;
    }
    const int64_t vtable = at - (int32_t)gar_load_u32(f->data + at);
    if (!has(f, vtable, 4)) {
        return table;
    }
    const int32_t bytes = (int32_t)load_u16(f, vtable);
    if (bytes < 4 || !has(f, vtable, bytes)) {
        return table;
    }
    return (struct flat_table){.at = at, .vtable = vtable, .vtable_bytes = bytes};
}

/* Where the value of a slot lies, or -1 when absent or outside. */
static int64_t slot_at(const struct flat *f, struct flat_table table, int32_t slot, int64_t bytes)
{
    const int32_t place = 4 + 2 * slot;
    if (table.at < 0 || place + 2 > table.vtable_bytes) {
        return -1;
    }
    const uint32_t offset = load_u16(f, table.vtable + place);
    if (offset == 0 || !has(f, table.at + offset, bytes)) {
        return -1;
    }
    return table.at + (int64_t)offset;
}

/* What an offset slot points to, or -1. */
static int64_t slot_target(const struct flat *f, struct flat_table table, int32_t slot)
{
    const int64_t at = slot_at(f, table, slot, 4);
    if (at < 0) {
        return -1;
    }
    const int64_t target = at + gar_load_u32(f->data + at);
    return has(f, target, 4) ? target : -1;
}

static struct flat_table slot_table(const struct flat *f, struct flat_table table, int32_t slot)
{
    const int64_t target = slot_target(f, table, slot);
    if (target < 0) {
        return (struct flat_table){.at = -1};
    }
    return table_at(f, target);
}

/* Items of a vector of offsets (or bytes, item_bytes 1): its count, and where the first one lies. */
static int64_t slot_vector(const struct flat *f, struct flat_table table, int32_t slot,
                           int64_t item_bytes, int64_t *out_at)
{
    const int64_t target = slot_target(f, table, slot);
    if (target < 0) {
        return -1;
    }
    const int64_t count = gar_load_u32(f->data + target);
    if (count > (f->bytes - target - 4) / item_bytes) {
        return -1;
    }
    *out_at = target + 4;
    return count;
}

static int32_t slot_u8(const struct flat *f, struct flat_table table, int32_t slot)
{
    const int64_t at = slot_at(f, table, slot, 1);
    return at < 0 ? 0 : f->data[at];
}

static int32_t slot_i16(const struct flat *f, struct flat_table table, int32_t slot)
{
    const int64_t at = slot_at(f, table, slot, 2);
    return at < 0 ? 0 : (int16_t)load_u16(f, at);
}

static int32_t slot_i32(const struct flat *f, struct flat_table table, int32_t slot)
{
    const int64_t at = slot_at(f, table, slot, 4);
    return at < 0 ? 0 : (int32_t)gar_load_u32(f->data + at);
}

/* -1 for a character that is none of base64's. */
static int32_t base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* out has room for bytes. Returns the length, or -1. */
static int64_t decode_base64(const char *text, int64_t bytes, uint8_t *out)
{
    while (bytes > 0 && text[bytes - 1] == '=') {
        bytes--;
    }
    uint32_t bits = 0;
    int32_t have = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < bytes; i++) {
        const int32_t digit = base64_digit(text[i]);
        if (digit < 0) {
            return -1;
        }
        bits = (bits << 6) | (uint32_t)digit;
        have += 6;
        if (have >= 8) {
            have -= 8;
            out[at++] = (uint8_t)(bits >> have);
        }
    }
    return at;
}

static void put_i32(uint8_t *out, int64_t *at, int64_t value)
{
    const int32_t v = (int32_t)value;
    memcpy(out + *at, &v, sizeof v);
    *at += (int64_t)sizeof v;
}

/* Where a pair's two texts lie. False if malformed. */
static bool pair_texts(const struct flat *f, int64_t at, int64_t lengths[2], int64_t places[2])
{
    const struct flat_table pair = table_at(f, at + gar_load_u32(f->data + at));
    for (int32_t k = 0; k < 2; k++) {
        lengths[k] = slot_vector(f, pair, k == 0 ? PAIR_KEY : PAIR_VALUE, 1, &places[k]);
        if (pair.at < 0 || lengths[k] < 0) {
            return false;
        }
    }
    return true;
}

/* The field's pairs in the form of the C data interface: count, then length and bytes of key and value. */
static enum gar_status read_metadata(struct flat *f, struct flat_table field,
                                     struct gar_arena *arena, struct parquet_arrow_fact *out,
                                     struct gar_error *err)
{
    int64_t first = 0;
    const int64_t count = slot_vector(f, field, FIELD_METADATA, 4, &first);
    if (count <= 0) {
        return GAR_OK;
    }
    int64_t total = 4;
    int64_t lengths[2];
    int64_t places[2];
    for (int64_t i = 0; i < count; i++) {
        if (!pair_texts(f, first + 4 * i, lengths, places)) {
            return GAR_OK;
        }
        total += 8 + lengths[0] + lengths[1];
        if (total > f->budget) {
            f->budget = 0;
            return GAR_OK;
        }
    }
    f->budget -= total;
    uint8_t *const metadata = gar_arena_alloc(arena, total);
    if (metadata == NULL) {
        return gar_error_nomem(err, total);
    }
    int64_t at = 0;
    put_i32(metadata, &at, count);
    for (int64_t i = 0; i < count; i++) {
        (void)pair_texts(f, first + 4 * i, lengths, places);
        for (int32_t k = 0; k < 2; k++) {
            put_i32(metadata, &at, lengths[k]);
            memcpy(metadata + at, f->data + places[k], (size_t)lengths[k]);
            at += lengths[k];
        }
    }
    out->metadata = (char *)metadata;
    out->metadata_bytes = total;
    return GAR_OK;
}

static enum gar_status read_field(struct flat *f, struct flat_table field, struct gar_arena *arena,
                                  struct parquet_arrow_fact *out, struct gar_error *err)
{
    *out = (struct parquet_arrow_fact){.unit = -1};
    int64_t at = 0;
    const int64_t bytes = slot_vector(f, field, FIELD_NAME, 1, &at);
    if (bytes < 0 || bytes > f->budget) {
        return GAR_OK;
    }
    f->budget -= bytes;
    out->name = gar_arena_strndup(arena, (const char *)f->data + at, bytes);
    if (out->name == NULL) {
        return gar_error_nomem(err, bytes);
    }
    const struct flat_table type = slot_table(f, field, FIELD_TYPE);
    out->kind = slot_u8(f, field, FIELD_TYPE_TYPE);
    if (out->kind == PARQUET_ARROW_INT) {
        out->bits = slot_i32(f, type, INT_BITS);
        out->is_signed = slot_u8(f, type, INT_SIGNED) != 0;
    } else if (out->kind == PARQUET_ARROW_TIMESTAMP) {
        int64_t zone = 0;
        const int64_t zone_bytes = slot_vector(f, type, TIMESTAMP_ZONE, 1, &zone);
        out->unit = slot_i16(f, type, TIMESTAMP_UNIT);
        if (zone_bytes > 0) {
            out->zone = (const char *)f->data + zone;
            out->zone_bytes = zone_bytes;
        }
    } else if (out->kind == PARQUET_ARROW_DURATION) {
        /* The schema language's default, which is then not stored, is milliseconds. */
        out->unit =
            slot_at(f, type, DURATION_UNIT, 2) < 0 ? GAR_MILLI : slot_i16(f, type, DURATION_UNIT);
    }
    if (out->unit > GAR_NANO) {
        out->unit = -1;
    }
    GAR_TRY(read_metadata(f, field, arena, out, err));
    /* It is read as binary: not the storage any more that an extension type (UUID) is made of. */
    if (out->kind == PARQUET_ARROW_FIXED_SIZE_BINARY && out->metadata != NULL &&
        memmem(out->metadata, (size_t)out->metadata_bytes, "ARROW:extension:", 16) != NULL) {
        out->metadata = NULL;
        out->metadata_bytes = 0;
    }
    return GAR_OK;
}

enum gar_status gar_parquet_arrow_facts(const char *base64, int64_t bytes, struct gar_arena *arena,
                                        struct parquet_arrow_fact **out, int64_t *out_count,
                                        struct gar_error *err)
{
    *out = NULL;
    *out_count = 0;
    uint8_t *const message = gar_arena_alloc(arena, bytes + 1);
    if (message == NULL) {
        return gar_error_nomem(err, bytes);
    }
    struct flat f = {.data = message, .bytes = decode_base64(base64, bytes, message)};
    /* A length stands in front, since 2019 after a marker of four 0xff. */
    const int64_t prefix = f.bytes >= 8 && gar_load_u32(message) == UINT32_MAX ? 8 : 4;
    if (f.bytes < prefix + 8) {
        return GAR_OK;
    }
    f.data += prefix;
    f.bytes -= prefix;
    f.budget = 4 * f.bytes;
    const struct flat_table root = table_at(&f, gar_load_u32(f.data));
    if (root.at < 0 || slot_u8(&f, root, MESSAGE_HEADER_TYPE) != HEADER_SCHEMA) {
        return GAR_OK;
    }
    int64_t first = 0;
    const int64_t count =
        slot_vector(&f, slot_table(&f, root, MESSAGE_HEADER), SCHEMA_FIELDS, 4, &first);
    if (count <= 0) {
        return GAR_OK;
    }
    struct parquet_arrow_fact *const facts = gar_arena_calloc(arena, count, (int64_t)sizeof *facts);
    if (facts == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *facts);
    }
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = first + 4 * i;
        GAR_TRY(
            read_field(&f, table_at(&f, at + gar_load_u32(f.data + at)), arena, &facts[i], err));
    }
    *out = facts;
    *out_count = count;
    return GAR_OK;
}
