/* SPDX-License-Identifier: Apache-2.0 */
/* Casts from and to text. */
#include "base/calendar.h"
#include "base/number_text.h"
#include "base/utf8.h"
#include "expr/cast_priv.h"

/* --- from text --- */

/* Without the blanks at both ends. */
static const char *trim(const char *text, int64_t *bytes)
{
    while (*bytes > 0 && (text[0] == ' ' || (text[0] >= '\t' && text[0] <= '\r'))) {
        text++;
        (*bytes)--;
    }
    while (*bytes > 0 &&
           (text[*bytes - 1] == ' ' || (text[*bytes - 1] >= '\t' && text[*bytes - 1] <= '\r'))) {
        (*bytes)--;
    }
    return text;
}

static const char *reason_of(enum gar_status status)
{
    return status == GAR_ERR_OVERFLOW ? "it is out of range" : "it cannot be read as that type";
}

static enum gar_status read_integer(const char *text, int64_t bytes, enum gar_lane lane,
                                    void *values, int64_t i)
{
    if (lane == GAR_LANE_U64) {
        return gar_parse_u64(text, bytes, (uint64_t *)values + i);
    }
    int64_t v = 0;
    const enum gar_status status = gar_parse_i64(text, bytes, &v);
    if (status < 0) {
        return status;
    }
    bool is_kept = true;
    switch (lane) {
    case GAR_LANE_I8: is_kept = v == (((int8_t *)values)[i] = (int8_t)v); break;
    case GAR_LANE_I16: is_kept = v == (((int16_t *)values)[i] = (int16_t)v); break;
    case GAR_LANE_I32: is_kept = v == (((int32_t *)values)[i] = (int32_t)v); break;
    case GAR_LANE_U8: is_kept = v == (((uint8_t *)values)[i] = (uint8_t)v); break;
    case GAR_LANE_U16: is_kept = v == (((uint16_t *)values)[i] = (uint16_t)v); break;
    case GAR_LANE_U32: is_kept = v == (((uint32_t *)values)[i] = (uint32_t)v); break;
    default: ((int64_t *)values)[i] = v; break;
    }
    return is_kept ? GAR_OK : GAR_ERR_OVERFLOW;
}

static bool equals_word(const char *text, int64_t bytes, const char *word)
{
    int64_t i = 0;
    while (i < bytes && word[i] != '\0' && (text[i] | 0x20) == word[i]) {
        i++;
    }
    return i == bytes && word[i] == '\0';
}

static enum gar_status read_bool(const char *text, int64_t bytes, bool *out)
{
    *out = equals_word(text, bytes, "true") || equals_word(text, bytes, "t") ||
           (bytes == 1 && text[0] == '1');
    const bool is_false = equals_word(text, bytes, "false") || equals_word(text, bytes, "f") ||
                          (bytes == 1 && text[0] == '0');
    return *out || is_false ? GAR_OK : GAR_ERR_VALUE;
}

static enum gar_status read_time(const char *text, int64_t bytes, struct gar_type type,
                                 const struct gar_zone *zone, void *values, int64_t i)
{
    if (type.id == GAR_DATE) {
        return gar_parse_date(text, bytes, (int32_t *)values + i) ? GAR_OK : GAR_ERR_VALUE;
    }
    int64_t *to = (int64_t *)values + i;
    if (type.id == GAR_TIME) {
        if (!gar_parse_time(text, bytes, to)) {
            return GAR_ERR_VALUE;
        }
        *to = type.unit == GAR_MICRO ? *to / 1000 : *to;
        return GAR_OK;
    }
    bool has_offset = false;
    if (!gar_parse_timestamp(text, bytes, gar_unit_digits((enum gar_time_unit)type.unit), to,
                             &has_offset)) {
        return GAR_ERR_VALUE;
    }
    return has_offset || gar_ticks_from_local((enum gar_time_unit)type.unit, zone, *to, to)
               ? GAR_OK
               : GAR_ERR_OVERFLOW;
}

/* One trimmed text as a value at lane i of out. */
static enum gar_status read_value(const struct gar_instr *instr, const char *text, int64_t bytes,
                                  struct gar_reg *out, int64_t i)
{
    const struct gar_type type = instr->node->type;
    switch ((enum gar_type_id)type.id) {
    case GAR_BOOL: {
        bool truth = false;
        const enum gar_status status = read_bool(text, bytes, &truth);
        ((uint64_t *)out->dest)[i >> 6] |= (uint64_t)truth << (i & 63);
        return status;
    }
    case GAR_FLOAT32:
        return gar_parse_float(text, bytes, (float *)out->dest + i) ? GAR_OK : GAR_ERR_VALUE;
    case GAR_FLOAT64:
        return gar_parse_double(text, bytes, (double *)out->dest + i) ? GAR_OK : GAR_ERR_VALUE;
    case GAR_DECIMAL128:
        return gar_decimal_parse(text, bytes, type.precision, type.scale, true,
                                 (gar_i128 *)out->dest + i);
    case GAR_DATE:
    case GAR_TIME:
    case GAR_TIMESTAMP: return read_time(text, bytes, type, instr->state, out->dest, i);
    default: return read_integer(text, bytes, gar_type_lane(type), out->dest, i);
    }
}

static enum gar_status from_text(struct gar_eval *eval, const struct gar_instr *instr,
                                 struct gar_reg **args, struct gar_reg *out, int64_t n,
                                 struct gar_error *err)
{
    const struct gar_type type = instr->node->type;
    uint64_t active[GAR_VECTOR_WORDS];
    gar_active_lanes(eval, instr, out, n, active);
    memset(out->dest, 0,
           type.id == GAR_BOOL ? (size_t)gar_words(n) * 8 : (size_t)(n * gar_type_width(type)));
    out->is_wide = type.id == GAR_DECIMAL128;
    for (int64_t i = 0; i < n; i++) {
        if (!gar_word_bit(active, i)) {
            continue;
        }
        const struct gar_string_view *view = (const struct gar_string_view *)args[0]->values + i;
        int64_t bytes = view->size;
        const char *text = trim((const char *)gar_view_bytes(view, args[0]->data), &bytes);
        const enum gar_status status = read_value(instr, text, bytes, out, i);
        if (status < 0) {
            GAR_TRY(gar_cast_fails(eval, instr, args, out, active, i, n, reason_of(status), err));
        }
    }
    return GAR_OK;
}

static enum gar_status from_binary(struct gar_eval *eval, const struct gar_instr *instr,
                                   struct gar_reg **args, struct gar_reg *out, int64_t n,
                                   struct gar_error *err)
{
    struct gar_string_view *to = out->dest;
    uint64_t active[GAR_VECTOR_WORDS];
    gar_active_lanes(eval, instr, out, n, active);
    memset(to, 0, (size_t)n * sizeof *to);
    for (int64_t i = 0; i < n; i++) {
        const struct gar_string_view *view = (const struct gar_string_view *)args[0]->values + i;
        const uint8_t *bytes = gar_view_bytes(view, args[0]->data);
        if (!gar_word_bit(active, i)) {
            continue;
        }
        if (gar_utf8_valid(bytes, view->size)) {
            GAR_TRY(gar_text_sink_add(instr->sink, bytes, view->size, &to[i], err));
        } else {
            GAR_TRY(gar_cast_fails(eval, instr, args, out, active, i, n, "it is not UTF-8", err));
        }
    }
    out->data = instr->sink->pointers;
    return GAR_OK;
}

/* --- to text --- */

static int32_t two_digits(int64_t value, char *out)
{
    out[0] = (char)('0' + value / 10);
    out[1] = (char)('0' + value % 10);
    return 2;
}

/* "2024-01-02 03:04:05+01:00" by the local clock of the zone; "Z" for UTC. */
static int32_t format_zoned(int64_t ticks, struct gar_type type, const struct gar_zone *zone,
                            char *out)
{
    const enum gar_time_unit unit = (enum gar_time_unit)type.unit;
    int64_t local = ticks;
    if (!gar_ticks_to_local(unit, zone, ticks, &local)) {
        local = ticks;
        zone = NULL;
    }
    int32_t size = gar_format_timestamp(local, gar_unit_digits(unit), out);
    if (zone == NULL) {
        out[size] = 'Z';
        return size + 1;
    }
    const int64_t offset = (local - ticks) / gar_unit_ticks_per_second(unit);
    const int64_t seconds = offset < 0 ? -offset : offset;
    out[size++] = offset < 0 ? '-' : '+';
    size += two_digits(seconds / 3600, out + size);
    out[size++] = ':';
    size += two_digits(seconds / 60 % 60, out + size);
    if (seconds % 60 != 0) { /* the local time of a place before there were zones */
        out[size++] = ':';
        size += two_digits(seconds % 60, out + size);
    }
    return size;
}

static int64_t small_integer(const void *values, enum gar_lane lane, int64_t i)
{
    switch (lane) {
    case GAR_LANE_I8: return ((const int8_t *)values)[i];
    case GAR_LANE_I16: return ((const int16_t *)values)[i];
    case GAR_LANE_I32: return ((const int32_t *)values)[i];
    case GAR_LANE_U8: return ((const uint8_t *)values)[i];
    case GAR_LANE_U16: return ((const uint16_t *)values)[i];
    case GAR_LANE_U32: return ((const uint32_t *)values)[i];
    default: return ((const int64_t *)values)[i];
    }
}

/* As it is shown in tables: "30d 00:00:00". */
static int32_t format_duration(int64_t v, struct gar_type type, char *out, int32_t out_bytes)
{
    const struct gar_value value = {.type = type, .is_valid = true, .i64 = v};
    struct gar_strbuf text = {0};
    gar_value_print_plain(&value, 0, &text);
    const int32_t size = (int32_t)gar_min_i64(text.size, out_bytes);
    memcpy(out, gar_strbuf_text(&text), (size_t)size);
    gar_strbuf_destroy(&text);
    return size;
}

static int32_t format_value(const struct gar_instr *instr, const struct gar_reg *arg, int64_t i,
                            char *out)
{
    const struct gar_type type = instr->node->args[0]->type;
    const enum gar_lane lane = (enum gar_lane)instr->lane;
    switch ((enum gar_type_id)type.id) {
    case GAR_BOOL: {
        const bool truth = gar_word_bit(arg->values, i);
        memcpy(out, truth ? "true " : "false", 5);
        return truth ? 4 : 5;
    }
    case GAR_UINT64: return gar_format_u64(((const uint64_t *)arg->values)[i], out);
    case GAR_FLOAT32: return gar_format_float(((const float *)arg->values)[i], out);
    case GAR_FLOAT64: return gar_format_double(((const double *)arg->values)[i], out);
    case GAR_DECIMAL128:
        return gar_decimal_format(arg->is_wide ? ((const gar_i128 *)arg->values)[i]
                                               : ((const int64_t *)arg->values)[i],
                                  type.scale, out);
    case GAR_DATE: return gar_format_date(((const int32_t *)arg->values)[i], out);
    case GAR_TIME:
        return gar_format_time(small_integer(arg->values, lane, i),
                               gar_unit_digits((enum gar_time_unit)type.unit), out);
    case GAR_DURATION: return format_duration(small_integer(arg->values, lane, i), type, out, 64);
    case GAR_TIMESTAMP: {
        const int64_t ticks = small_integer(arg->values, lane, i);
        return type.zone != NULL ? format_zoned(ticks, type, instr->state, out)
                                 : gar_format_timestamp(
                                       ticks, gar_unit_digits((enum gar_time_unit)type.unit), out);
    }
    default: return gar_format_i64(small_integer(arg->values, lane, i), out);
    }
}

static enum gar_status to_text(struct gar_eval *eval, const struct gar_instr *instr,
                               struct gar_reg **args, struct gar_reg *out, int64_t n,
                               struct gar_error *err)
{
    (void)eval;
    struct gar_string_view *to = out->dest;
    for (int64_t i = 0; i < n; i++) {
        char text[80];
        const int32_t size = format_value(instr, args[0], i, text);
        GAR_TRY(gar_text_sink_add(instr->sink, (const uint8_t *)text, size, &to[i], err));
    }
    out->data = instr->sink->pointers;
    return GAR_OK;
}

enum gar_status gar_choose_cast_text(const struct gar_bound *node, struct gar_instr *instr,
                                     struct gar_error *err)
{
    const bool is_from = gar_type_is_text(node->args[0]->type);
    const struct gar_zone *zone = NULL;
    GAR_TRY(gar_type_zone(is_from ? node->type : node->args[0]->type, &zone, err));
    memcpy(&instr->state, &zone, sizeof zone); /* lives for ever, never written through */
    instr->run = !is_from ? to_text : node->type.id == GAR_STRING ? from_binary : from_text;
    return GAR_OK;
}
