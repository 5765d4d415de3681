/* SPDX-License-Identifier: Apache-2.0 */
/* Messages, layouts, and batches in regions.
 *
 * Trees are walked over the node table in preorder: a parent hands each child its span, so there is no recursion. Only the
 * compilation of a schema descends, to at most GAR_WIRE_DEPTH_MAX levels, with its own stack. */
#include "actors/wire.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bits.h"
#include "base/number_text.h"

/* Row counts and sizes beyond this are lies. */
#define COUNT_MAX (INT64_C(1) << 47)

struct head {
    int64_t rows;
    int64_t nodes;
    int64_t unused[6];
};
_Static_assert(sizeof(struct head) == GAR_WIRE_ALIGN, "what follows is aligned");

struct description {
    int64_t length;
    int64_t null_count; /* -1: unknown */
    int64_t offset[3];  /* of buffers: validity; values or offsets; bytes */
    int64_t bytes[3];
};
_Static_assert(sizeof(struct description) == GAR_WIRE_ALIGN, "what follows is aligned");

struct view { /* Arrow's view layout */
    int32_t size;
    union {
        uint8_t inlined[12];
        struct {
            uint8_t prefix[4];
            int32_t buffer;
            int32_t offset;
        } far;
    };
};

static enum gar_status malformed(struct gar_error *err, const char *what)
{
    return gar_error_set(err, GAR_ERR_FORMAT, "malformed batch: %s", what);
}

static int64_t round_up(int64_t bytes)
{
    return (bytes + GAR_WIRE_ALIGN - 1) & ~(int64_t)(GAR_WIRE_ALIGN - 1);
}

/* ---- messages ---- */

void gar_wire_message_init(struct gar_wire_message *message, enum gar_wire_kind kind)
{
    memset(message, 0, sizeof *message);
    message->magic = GAR_WIRE_MAGIC;
    message->version = GAR_WIRE_VERSION;
    message->kind = (uint16_t)kind;
}

bool gar_wire_message_is_sound(const struct gar_wire_message *message, int64_t bytes)
{
    return bytes == (int64_t)sizeof *message && message->magic == GAR_WIRE_MAGIC &&
           message->version == GAR_WIRE_VERSION && message->unused == 0;
}

/* ---- layouts ---- */

static const struct {
    const char *prefix;
    enum gar_wire_node_kind kind;
    int32_t width;
    bool has_more; /* after the prefix */
} formats[] = {
    {"n", GAR_WIRE_NODE_NULL, 0, false},    {"b", GAR_WIRE_NODE_BITS, 0, false},
    {"c", GAR_WIRE_NODE_FIXED, 1, false},   {"C", GAR_WIRE_NODE_FIXED, 1, false},
    {"s", GAR_WIRE_NODE_FIXED, 2, false},   {"S", GAR_WIRE_NODE_FIXED, 2, false},
    {"i", GAR_WIRE_NODE_FIXED, 4, false},   {"I", GAR_WIRE_NODE_FIXED, 4, false},
    {"l", GAR_WIRE_NODE_FIXED, 8, false},   {"L", GAR_WIRE_NODE_FIXED, 8, false},
    {"e", GAR_WIRE_NODE_FIXED, 2, false},   {"f", GAR_WIRE_NODE_FIXED, 4, false},
    {"g", GAR_WIRE_NODE_FIXED, 8, false},   {"tdD", GAR_WIRE_NODE_FIXED, 4, false},
    {"tdm", GAR_WIRE_NODE_FIXED, 8, false}, {"tts", GAR_WIRE_NODE_FIXED, 4, false},
    {"ttm", GAR_WIRE_NODE_FIXED, 4, false}, {"ttu", GAR_WIRE_NODE_FIXED, 8, false},
    {"ttn", GAR_WIRE_NODE_FIXED, 8, false}, {"ts", GAR_WIRE_NODE_FIXED, 8, true},
    {"tD", GAR_WIRE_NODE_FIXED, 8, true},   {"u", GAR_WIRE_NODE_TEXT32, 0, false},
    {"z", GAR_WIRE_NODE_TEXT32, 0, false},  {"U", GAR_WIRE_NODE_TEXT, 0, false},
    {"Z", GAR_WIRE_NODE_TEXT, 0, false},    {"vu", GAR_WIRE_NODE_VIEWS, 0, false},
    {"vz", GAR_WIRE_NODE_VIEWS, 0, false},  {"+s", GAR_WIRE_NODE_STRUCT, 0, false},
    {"+l", GAR_WIRE_NODE_LIST32, 0, false}, {"+L", GAR_WIRE_NODE_LIST, 0, false},
    {"+m", GAR_WIRE_NODE_LIST32, 0, false},
};

/* The number after the last of `mark` in text, or -1. */
static int32_t number_after(const char *text, char mark)
{
    const char *at = strrchr(text, mark);
    if (at == NULL || at[1] < '0' || at[1] > '9') {
        return -1;
    }
    char *end = NULL;
    const long number = strtol(at + 1, &end, 10);
    return *end != 0 || number > INT32_MAX ? -1 : (int32_t)number;
}

int32_t gar_wire_numbers(const char *text, char mark, int64_t *out, int32_t max)
{
    for (int32_t i = 0; i < max; i++) {
        const char *end = strchr(text, mark);
        const int64_t bytes = end != NULL ? end - text : (int64_t)strlen(text);
        if (gar_parse_i64(text, bytes, &out[i]) != GAR_OK) {
            return -1;
        }
        if (end == NULL) {
            return i + 1;
        }
        text = end + 1;
    }
    return -1;
}

static bool read_format(const char *format, struct gar_wire_node *node)
{
    for (int64_t i = 0; i < GAR_COUNT_OF(formats); i++) {
        const size_t length = strlen(formats[i].prefix);
        if (strncmp(format, formats[i].prefix, length) == 0 &&
            (formats[i].has_more || format[length] == 0)) {
            node->kind = formats[i].kind;
            node->width = formats[i].width;
            return true;
        }
    }
    if (strncmp(format, "w:", 2) == 0) {
        node->kind = GAR_WIRE_NODE_FIXED;
        node->width = number_after(format, ':');
        return node->width > 0;
    }
    if (strncmp(format, "+w:", 3) == 0) {
        node->kind = GAR_WIRE_NODE_FIXED_LIST;
        node->width = number_after(format, ':');
        return node->width > 0;
    }
    if (strncmp(format, "d:", 2) == 0) { /* d:precision,scale or d:precision,scale,bits */
        int64_t numbers[3] = {0, 0, 128};
        const int32_t read = gar_wire_numbers(format + 2, ',', numbers, 3);
        const int64_t bits = numbers[2];
        node->kind = GAR_WIRE_NODE_FIXED;
        node->width =
            bits == 32 || bits == 64 || bits == 128 || bits == 256 ? (int32_t)bits / 8 : 0;
        return read >= 2 && node->width > 0;
    }
    return false;
}

static int32_t children_wanted(const struct gar_wire_node *node)
{
    switch (node->kind) {
    case GAR_WIRE_NODE_LIST:
    case GAR_WIRE_NODE_LIST32:
    case GAR_WIRE_NODE_FIXED_LIST: return 1;
    case GAR_WIRE_NODE_STRUCT: return -1; /* any */
    case GAR_WIRE_NODE_NULL:
    case GAR_WIRE_NODE_FIXED:
    case GAR_WIRE_NODE_BITS:
    case GAR_WIRE_NODE_TEXT:
    case GAR_WIRE_NODE_TEXT32:
    case GAR_WIRE_NODE_VIEWS: break;
    }
    return 0;
}

struct level {
    const struct ArrowSchema *schema;
    int32_t node;
    int64_t next; /* child to visit */
};

struct compiler {
    struct gar_wire_layout *layout; /* owned */
    int64_t capacity;
    struct level stack[GAR_WIRE_DEPTH_MAX];
    int32_t depth;
};

static enum gar_status push_node(struct compiler *c, const struct ArrowSchema *schema,
                                 int32_t parent, int32_t child, struct gar_error *err)
{
    const int32_t number = c->layout == NULL ? 0 : c->layout->count;
    if (number >= GAR_WIRE_NODES_MAX || c->depth >= GAR_WIRE_DEPTH_MAX) {
        return gar_error_set(err, GAR_ERR_UNSUPPORTED,
                             "more than %d levels or %d columns cannot pass to an actor",
                             GAR_WIRE_DEPTH_MAX, GAR_WIRE_NODES_MAX);
    }
    if (number >= c->capacity) {
        const int64_t capacity = gar_max_i64(8, 2 * c->capacity);
        const int64_t bytes =
            (int64_t)sizeof *c->layout + capacity * (int64_t)sizeof(struct gar_wire_node);
        struct gar_wire_layout *larger = gar_realloc(c->layout, bytes);
        if (larger == NULL) {
            return gar_error_nomem(err, bytes);
        }
        larger->count = number;
        c->layout = larger;
        c->capacity = capacity;
    }
    struct gar_wire_node *node = &c->layout->nodes[number];
    memset(node, 0, sizeof *node);
    node->parent = parent;
    node->child = child;
    const char *format = schema->format != NULL ? schema->format : "";
    (void)snprintf(node->format, sizeof node->format, "%s", format);
    const bool is_known = schema->dictionary == NULL && read_format(format, node);
    const int32_t wanted = is_known ? children_wanted(node) : 0;
    if (!is_known || schema->n_children < 0 || schema->n_children > GAR_WIRE_NODES_MAX ||
        (wanted >= 0 && schema->n_children != wanted)) {
        char quoted[64];
        return gar_error_set(
            err, GAR_ERR_UNSUPPORTED,
            "column '%s': values of Arrow format '%s'%s cannot pass to an actor",
            schema->name != NULL ? schema->name : "",
            gar_error_quote(format, (int64_t)strlen(format), quoted, (int64_t)sizeof quoted),
            schema->dictionary != NULL ? " with a dictionary" : "");
    }
    node->children = (int32_t)schema->n_children;
    c->layout->count = number + 1;
    c->stack[c->depth++] = (struct level){schema, number, 0};
    return GAR_OK;
}

enum gar_status gar_wire_layout_new(const struct ArrowSchema *schema, struct gar_wire_layout **out,
                                    struct gar_error *err)
{
    struct compiler c = {.layout = NULL};
    enum gar_status status = push_node(&c, schema, -1, 0, err);
    if (status >= 0 && c.layout->nodes[0].kind != GAR_WIRE_NODE_STRUCT) {
        status = gar_error_set(err, GAR_ERR_TYPE, "a batch must be a struct, got Arrow format '%s'",
                               c.layout->nodes[0].format);
    }
    while (status >= 0 && c.depth > 0) {
        struct level *top = &c.stack[c.depth - 1];
        if (top->next == top->schema->n_children) {
            c.depth--;
            continue;
        }
        const int64_t child = top->next++;
        status = push_node(&c, top->schema->children[child], top->node, (int32_t)child, err);
    }
    if (status < 0) {
        gar_free(c.layout);
        return status;
    }
    *out = c.layout;
    return GAR_OK;
}

/* The kind both sides agree on. */
static enum gar_wire_node_kind written_kind(enum gar_wire_node_kind kind)
{
    return kind == GAR_WIRE_NODE_TEXT32 || kind == GAR_WIRE_NODE_VIEWS ? GAR_WIRE_NODE_TEXT : kind;
}

/* "u" or "z" of a text, in whatever layout. */
static char text_letter(const char *format)
{
    const char letter = format[0] == 'v' ? format[1] : format[0];
    return letter == 'u' || letter == 'U' ? 'u' : 'z';
}

static bool node_fits(const struct gar_wire_node *want, const struct gar_wire_node *have)
{
    if (want->children != have->children || want->parent != have->parent) {
        return false;
    }
    if (want->kind == GAR_WIRE_NODE_TEXT) {
        return written_kind(have->kind) == GAR_WIRE_NODE_TEXT &&
               text_letter(want->format) == text_letter(have->format);
    }
    if (want->kind == GAR_WIRE_NODE_LIST || want->kind == GAR_WIRE_NODE_LIST32) {
        return have->kind == GAR_WIRE_NODE_LIST || have->kind == GAR_WIRE_NODE_LIST32;
    }
    return strcmp(want->format, have->format) == 0;
}

enum gar_status gar_wire_layout_match(const struct gar_wire_layout *layout,
                                      const struct ArrowSchema *from, struct gar_wire_layout **out,
                                      struct gar_error *err)
{
    struct gar_wire_layout *source = NULL;
    GAR_TRY(gar_wire_layout_new(from, &source, err));
    if (source->nodes[0].children != layout->nodes[0].children) {
        const int32_t got = source->nodes[0].children;
        gar_free(source);
        return gar_error_set(err, GAR_ERR_TYPE, "returned %d columns, expected %d", (int)got,
                             (int)layout->nodes[0].children);
    }
    for (int32_t i = 0; i < layout->count; i++) {
        if (i >= source->count || !node_fits(&layout->nodes[i], &source->nodes[i])) {
            const enum gar_status status = gar_error_set(
                err, GAR_ERR_TYPE, "returned values of Arrow format '%s', expected '%s'",
                i < source->count ? source->nodes[i].format : "", layout->nodes[i].format);
            gar_free(source);
            return status;
        }
    }
    *out = source;
    return GAR_OK;
}

/* ---- measuring ---- */

static int64_t offset_at(const void *offsets, bool is_wide, int64_t i)
{
    if (is_wide) {
        int64_t v;
        memcpy(&v, (const uint8_t *)offsets + i * (int64_t)sizeof v, sizeof v);
        return v;
    }
    int32_t v;
    memcpy(&v, (const uint8_t *)offsets + i * (int64_t)sizeof v, sizeof v);
    return v;
}

static const void *buffer_of(const struct gar_wire_span *span, int64_t i)
{
    return i < span->array->n_buffers && span->array->buffers != NULL ? span->array->buffers[i]
                                                                      : NULL;
}

static bool view_is_null(const struct gar_wire_span *span, int64_t i)
{
    const uint8_t *validity = buffer_of(span, 0);
    return validity != NULL && !gar_bit_get(validity, span->start + i);
}

static int64_t views_bytes(const struct gar_wire_span *span)
{
    const struct view *views = (const struct view *)buffer_of(span, 1) + span->start;
    int64_t total = 0;
    for (int64_t i = 0; i < span->length; i++) {
        total += view_is_null(span, i) ? 0 : views[i].size;
    }
    return total;
}

/* First and last offset of the span's rows. */
static void offset_range(const struct gar_wire_span *span, bool is_wide, int64_t *out_first,
                         int64_t *out_last)
{
    const void *offsets = buffer_of(span, 1);
    if (offsets == NULL || span->length == 0) {
        *out_first = 0;
        *out_last = 0;
        return;
    }
    *out_first = offset_at(offsets, is_wide, span->start);
    *out_last = offset_at(offsets, is_wide, span->start + span->length);
}

/* Sizes of the node's buffers, and which rows of its child belong to it. */
static void measure_node(const struct gar_wire_node *node, const struct gar_wire_node *from,
                         struct gar_wire_span *span, int64_t *child_start, int64_t *child_length)
{
    const int64_t n = span->length;
    int64_t first = 0;
    int64_t last = 0;
    *child_start = span->start;
    *child_length = n;
    const uint8_t *validity = node->kind == GAR_WIRE_NODE_NULL ? NULL : buffer_of(span, 0);
    span->null_count = 0;
    if (validity != NULL && span->array->null_count != 0) {
        span->null_count = n - gar_bits_count(validity, span->start, n);
    }
    span->bytes[0] = span->null_count > 0 ? gar_bits_bytes(n) : 0;
    switch (node->kind) {
    case GAR_WIRE_NODE_NULL:
    case GAR_WIRE_NODE_STRUCT: break;
    case GAR_WIRE_NODE_FIXED: span->bytes[1] = n * node->width; break;
    case GAR_WIRE_NODE_BITS: span->bytes[1] = gar_bits_bytes(n); break;
    case GAR_WIRE_NODE_TEXT:
    case GAR_WIRE_NODE_TEXT32:
    case GAR_WIRE_NODE_VIEWS:
        span->bytes[1] = (n + 1) * (int64_t)sizeof(int64_t);
        if (from->kind == GAR_WIRE_NODE_VIEWS) {
            span->bytes[2] = n == 0 ? 0 : views_bytes(span);
        } else {
            offset_range(span, from->kind == GAR_WIRE_NODE_TEXT, &first, &last);
            span->bytes[2] = last - first;
        }
        break;
    case GAR_WIRE_NODE_LIST:
    case GAR_WIRE_NODE_LIST32:
        span->bytes[1] = (n + 1) * (node->kind == GAR_WIRE_NODE_LIST ? (int64_t)sizeof(int64_t)
                                                                     : (int64_t)sizeof(int32_t));
        offset_range(span, from->kind == GAR_WIRE_NODE_LIST, &first, &last);
        *child_start = first;
        *child_length = last - first;
        break;
    case GAR_WIRE_NODE_FIXED_LIST:
        *child_start = span->start * node->width;
        *child_length = n * node->width;
        break;
    }
}

/* Gives the direct children of node i their spans; child nodes come later in preorder. */
static enum gar_status spread(const struct gar_wire_layout *layout, int32_t i, int64_t start,
                              int64_t length, struct gar_wire_span *spans, struct gar_error *err)
{
    const struct ArrowArray *array = spans[i].array;
    const int32_t children = layout->nodes[i].children;
    if (children > 0 && (array->n_children != children || array->children == NULL)) {
        return malformed(err, "an array without its children");
    }
    for (int32_t k = i + 1, found = 0; k < layout->count && found < children; k++) {
        if (layout->nodes[k].parent == i) {
            const struct ArrowArray *child = array->children[layout->nodes[k].child];
            if (child == NULL || length < 0 || start + length > child->length) {
                return malformed(err, "a child that is missing or too short");
            }
            spans[k] = (struct gar_wire_span){
                .array = child, .start = child->offset + start, .length = length};
            found++;
        }
    }
    return GAR_OK;
}

enum gar_status gar_wire_measure(const struct gar_wire_layout *layout,
                                 const struct gar_wire_layout *from, const struct ArrowArray *array,
                                 struct gar_wire_span *spans, int64_t *out_bytes,
                                 struct gar_error *err)
{
    int64_t total =
        (int64_t)sizeof(struct head) + layout->count * (int64_t)sizeof(struct description);
    spans[0] =
        (struct gar_wire_span){.array = array, .start = array->offset, .length = array->length};
    for (int32_t i = 0; i < layout->count; i++) {
        int64_t start = 0;
        int64_t length = 0;
        struct gar_wire_span *span = &spans[i];
        if (span->length > COUNT_MAX || span->start > COUNT_MAX) {
            return malformed(err, "impossible length or offset");
        }
        measure_node(&layout->nodes[i], &from->nodes[i], span, &start, &length);
        if (i == 0 && span->null_count > 0) {
            return malformed(err, "rows that are null as a whole");
        }
        GAR_TRY(spread(layout, i, start, length, spans, err));
        for (int b = 0; b < 3; b++) {
            if (span->bytes[b] < 0 || span->bytes[b] > COUNT_MAX || total > COUNT_MAX) {
                return gar_error_set(err, GAR_ERR_OVERFLOW, "a batch of too many bytes");
            }
            total += round_up(span->bytes[b]);
        }
    }
    *out_bytes = total;
    return GAR_OK;
}

/* ---- writing ---- */

static void write_views(const struct gar_wire_span *span, int64_t *offsets, uint8_t *bytes)
{
    if (span->length == 0) {
        offsets[0] = 0;
        return;
    }
    const struct view *views = (const struct view *)buffer_of(span, 1) + span->start;
    int64_t at = 0;
    for (int64_t i = 0; i < span->length; i++) {
        offsets[i] = at;
        if (view_is_null(span, i)) {
            continue;
        }
        const struct view *v = &views[i];
        const uint8_t *text =
            v->size <= 12 ? v->inlined
                          : (const uint8_t *)buffer_of(span, 2 + v->far.buffer) + v->far.offset;
        memcpy(bytes + at, text, (size_t)v->size);
        at += v->size;
    }
    offsets[span->length] = at;
}

static void write_offsets(const struct gar_wire_span *span, bool is_from_wide, bool is_to_wide,
                          uint8_t *out)
{
    const void *offsets = buffer_of(span, 1);
    if (offsets == NULL || span->length == 0) {
        memset(out, 0, is_to_wide ? sizeof(int64_t) : sizeof(int32_t));
        return;
    }
    const int64_t first = offset_at(offsets, is_from_wide, span->start);
    for (int64_t i = 0; i <= span->length; i++) {
        const int64_t offset = offset_at(offsets, is_from_wide, span->start + i) - first;
        if (is_to_wide) {
            memcpy(out + i * (int64_t)sizeof offset, &offset, sizeof offset);
        } else {
            const int32_t narrow = (int32_t)offset;
            memcpy(out + i * (int64_t)sizeof narrow, &narrow, sizeof narrow);
        }
    }
}

static void write_node(const struct gar_wire_node *node, const struct gar_wire_node *from,
                       const struct gar_wire_span *span, uint8_t *const out[3])
{
    const uint8_t *values = buffer_of(span, 1);
    if (span->bytes[0] > 0) {
        gar_bits_copy(out[0], 0, buffer_of(span, 0), span->start, span->length);
    }
    switch (node->kind) {
    case GAR_WIRE_NODE_NULL:
    case GAR_WIRE_NODE_STRUCT:
    case GAR_WIRE_NODE_FIXED_LIST: break;
    case GAR_WIRE_NODE_FIXED:
        if (span->bytes[1] > 0) {
            memcpy(out[1], values + span->start * node->width, (size_t)span->bytes[1]);
        }
        break;
    case GAR_WIRE_NODE_BITS:
        if (span->length > 0) {
            gar_bits_copy(out[1], 0, values, span->start, span->length);
        }
        break;
    case GAR_WIRE_NODE_TEXT:
    case GAR_WIRE_NODE_TEXT32:
    case GAR_WIRE_NODE_VIEWS:
        if (from->kind == GAR_WIRE_NODE_VIEWS) {
            write_views(span, (int64_t *)(void *)out[1], out[2]);
            break;
        }
        write_offsets(span, from->kind == GAR_WIRE_NODE_TEXT, true, out[1]);
        if (span->bytes[2] > 0) {
            int64_t first = 0;
            int64_t last = 0;
            offset_range(span, from->kind == GAR_WIRE_NODE_TEXT, &first, &last);
            memcpy(out[2], (const uint8_t *)buffer_of(span, 2) + first, (size_t)(last - first));
        }
        break;
    case GAR_WIRE_NODE_LIST:
    case GAR_WIRE_NODE_LIST32:
        write_offsets(span, from->kind == GAR_WIRE_NODE_LIST, node->kind == GAR_WIRE_NODE_LIST,
                      out[1]);
        break;
    }
}

void gar_wire_write(const struct gar_wire_layout *layout, const struct gar_wire_layout *from,
                    const struct gar_wire_span *spans, uint8_t *region)
{
    struct head *head = (struct head *)(void *)region;
    struct description *descriptions = (struct description *)(void *)(head + 1);
    memset(head, 0, sizeof *head);
    head->rows = spans[0].length;
    head->nodes = layout->count;
    int64_t at = (int64_t)sizeof *head + layout->count * (int64_t)sizeof descriptions[0];
    for (int32_t i = 0; i < layout->count; i++) {
        const struct gar_wire_span *span = &spans[i];
        uint8_t *out[3];
        descriptions[i].length = span->length;
        descriptions[i].null_count = span->null_count;
        for (int b = 0; b < 3; b++) {
            descriptions[i].offset[b] = at;
            descriptions[i].bytes[b] = span->bytes[b];
            out[b] = region + at;
            at += round_up(span->bytes[b]);
        }
        write_node(&layout->nodes[i], &from->nodes[i], span, out);
    }
}

/* ---- reading ---- */

/* What an array that was read keeps alive: one block, with the arrays and their buffer pointers behind it. */
struct reading {
    int64_t refs; /* atomic: arrays not released yet */
    void (*on_release)(void *context);
    void *context;
    struct gar_memory *memory; /* owned reference */
    uint8_t *private;          /* offsets and bitmaps; owned */
    int64_t private_bytes;
    struct ArrowArray *arrays; /* one a node */
    struct ArrowArray **children;
    const void **buffers; /* three a node */
};

static void drop_reading(struct reading *reading)
{
    gar_memory_free(reading->memory, reading->private, reading->private_bytes);
    gar_memory_unref(reading->memory);
    gar_free(reading);
}

static void release_array(struct ArrowArray *array)
{
    struct reading *reading = array->private_data;
    for (int64_t i = 0; i < array->n_children; i++) {
        struct ArrowArray *child = array->children[i];
        if (child->release != NULL) { /* a consumer may have moved it out */
            child->release(child);    /* NOLINT(misc-no-recursion): depth was checked */
        }
    }
    array->release = NULL;
    if (__atomic_sub_fetch(&reading->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        void (*const on_release)(void *) = reading->on_release;
        void *const context = reading->context;
        drop_reading(reading);
        if (on_release != NULL) {
            on_release(context);
        }
    }
}

/* The description of node i, copied and checked against the region and its own length. */
static enum gar_status read_description(const struct gar_wire_layout *layout, int32_t i,
                                        const struct gar_wire_source *source,
                                        struct description *out, struct gar_error *err)
{
    const struct gar_wire_node *node = &layout->nodes[i];
    memcpy(out, source->region + sizeof(struct head) + (size_t)i * sizeof(struct description),
           sizeof *out);
    const int64_t n = out->length;
    if (n < 0 || n > COUNT_MAX || (i == 0 && n != source->rows)) {
        return malformed(err, "impossible length");
    }
    for (int b = 0; b < 3; b++) {
        if (out->bytes[b] < 0 || out->offset[b] < 0 || out->offset[b] > source->bytes ||
            out->bytes[b] > source->bytes - out->offset[b] ||
            out->offset[b] % GAR_WIRE_ALIGN != 0) {
            return malformed(err, "a buffer outside its region");
        }
    }
    int64_t least = 0;
    switch (node->kind) {
    case GAR_WIRE_NODE_NULL:
    case GAR_WIRE_NODE_STRUCT:
    case GAR_WIRE_NODE_FIXED_LIST: break;
    case GAR_WIRE_NODE_FIXED:
        if (n > COUNT_MAX / node->width) {
            return malformed(err, "impossible length");
        }
        least = n * node->width;
        break;
    case GAR_WIRE_NODE_BITS: least = gar_bits_bytes(n); break;
    case GAR_WIRE_NODE_TEXT:
    case GAR_WIRE_NODE_TEXT32:
    case GAR_WIRE_NODE_VIEWS:
    case GAR_WIRE_NODE_LIST: least = (n + 1) * (int64_t)sizeof(int64_t); break;
    case GAR_WIRE_NODE_LIST32: least = (n + 1) * (int64_t)sizeof(int32_t); break;
    }
    const bool has_nulls = out->null_count != 0;
    if (out->bytes[1] < least || (has_nulls && out->bytes[0] < gar_bits_bytes(n)) ||
        (i == 0 && has_nulls)) {
        return malformed(err, "a buffer that is too short");
    }
    if (!has_nulls || node->kind == GAR_WIRE_NODE_NULL) {
        out->bytes[0] = 0;
    } else {
        out->bytes[0] = gar_bits_bytes(n);
    }
    out->bytes[1] = least;
    return GAR_OK;
}

static bool has_offsets(enum gar_wire_node_kind kind)
{
    return kind == GAR_WIRE_NODE_TEXT || kind == GAR_WIRE_NODE_LIST || kind == GAR_WIRE_NODE_LIST32;
}

/* Offsets rise from 0 to at most `last`. */
static enum gar_status check_offsets(const void *offsets, bool is_wide, int64_t n, int64_t last,
                                     struct gar_error *err)
{
    int64_t before = offset_at(offsets, is_wide, 0);
    bool is_right = before == 0;
    for (int64_t i = 1; i <= n; i++) {
        const int64_t offset = offset_at(offsets, is_wide, i);
        is_right &= offset >= before;
        before = offset;
    }
    return is_right && before <= last ? GAR_OK : malformed(err, "offsets that do not rise or end");
}

/* Do the lengths of parent and child agree? */
static bool child_fits(const struct gar_wire_node *parent, const struct ArrowArray *array,
                       int64_t child_length)
{
    switch (parent->kind) {
    case GAR_WIRE_NODE_STRUCT: return child_length == array->length;
    case GAR_WIRE_NODE_FIXED_LIST:
        return array->length <= COUNT_MAX / parent->width &&
               child_length == array->length * parent->width;
    case GAR_WIRE_NODE_LIST:
        return child_length >= offset_at(array->buffers[1], true, array->length);
    case GAR_WIRE_NODE_LIST32:
        return child_length >= offset_at(array->buffers[1], false, array->length);
    case GAR_WIRE_NODE_NULL:
    case GAR_WIRE_NODE_FIXED:
    case GAR_WIRE_NODE_BITS:
    case GAR_WIRE_NODE_TEXT:
    case GAR_WIRE_NODE_TEXT32:
    case GAR_WIRE_NODE_VIEWS: break;
    }
    return false;
}

static int64_t buffers_of(enum gar_wire_node_kind kind)
{
    switch (kind) {
    case GAR_WIRE_NODE_NULL: return 0;
    case GAR_WIRE_NODE_STRUCT:
    case GAR_WIRE_NODE_FIXED_LIST: return 1;
    case GAR_WIRE_NODE_FIXED:
    case GAR_WIRE_NODE_BITS:
    case GAR_WIRE_NODE_LIST:
    case GAR_WIRE_NODE_LIST32: return 2;
    case GAR_WIRE_NODE_TEXT:
    case GAR_WIRE_NODE_TEXT32:
    case GAR_WIRE_NODE_VIEWS: break;
    }
    return 3;
}

/* Node i: copies what must not change to *private (advanced), checks it, fills the array. */
static enum gar_status read_node(const struct gar_wire_layout *layout, int32_t i,
                                 const struct gar_wire_source *source, const struct description *d,
                                 struct reading *reading, uint8_t **private, struct gar_error *err)
{
    const struct gar_wire_node *node = &layout->nodes[i];
    struct ArrowArray *array = &reading->arrays[i];
    const void **buffers = &reading->buffers[3 * (int64_t)i];
    array->length = d->length;
    array->n_buffers = buffers_of(node->kind);
    array->buffers = buffers;
    array->release = release_array;
    array->private_data = reading;
    if (d->bytes[0] > 0) {
        memcpy(*private, source->region + d->offset[0], (size_t)d->bytes[0]);
        buffers[0] = *private;
        *private += round_up(d->bytes[0]);
        array->null_count = d->length - gar_bits_count(buffers[0], 0, d->length);
    } else if (node->kind == GAR_WIRE_NODE_NULL) {
        array->null_count = d->length;
    }
    if (has_offsets(node->kind)) {
        const bool is_wide = node->kind != GAR_WIRE_NODE_LIST32;
        const int64_t last = node->kind == GAR_WIRE_NODE_TEXT ? d->bytes[2] : COUNT_MAX;
        memcpy(*private, source->region + d->offset[1], (size_t)d->bytes[1]);
        buffers[1] = *private;
        *private += round_up(d->bytes[1]);
        buffers[2] = source->region + d->offset[2];
        GAR_TRY(check_offsets(buffers[1], is_wide, d->length, last, err));
    } else {
        buffers[1] = source->region + d->offset[1];
    }
    if (i > 0) {
        struct ArrowArray *parent = &reading->arrays[node->parent];
        if (!child_fits(&layout->nodes[node->parent], parent, d->length)) {
            return malformed(err, "lengths of an array and its child that differ");
        }
        parent->children[node->child] = array;
    }
    return GAR_OK;
}

static struct reading *new_reading(const struct gar_wire_layout *layout,
                                   const struct gar_wire_source *source, int64_t private_bytes,
                                   struct gar_error *err)
{
    const int64_t one = (int64_t)sizeof(struct ArrowArray) + (int64_t)sizeof(struct ArrowArray *) +
                        3 * (int64_t)sizeof(void *);
    const int64_t bytes = (int64_t)sizeof(struct reading) + layout->count * one;
    struct reading *reading = gar_calloc(1, bytes);
    if (reading == NULL) {
        (void)gar_error_nomem(err, bytes);
        return NULL;
    }
    reading->memory = gar_memory_ref(source->memory);
    if (private_bytes > 0) {
        reading->private =
            gar_memory_alloc(source->memory, private_bytes, &reading->private_bytes, err);
        if (reading->private == NULL) {
            drop_reading(reading);
            return NULL;
        }
    }
    reading->refs = layout->count;
    reading->arrays = (struct ArrowArray *)(void *)(reading + 1);
    reading->children = (struct ArrowArray **)(void *)(reading->arrays + layout->count);
    reading->buffers = (const void **)(void *)(reading->children + layout->count);
    struct ArrowArray **next = reading->children;
    for (int32_t i = 0; i < layout->count; i++) {
        reading->arrays[i].n_children = layout->nodes[i].children;
        reading->arrays[i].children = next;
        next += layout->nodes[i].children;
    }
    return reading;
}

/* A head and as many descriptions as the layout has. */
static enum gar_status read_head(const struct gar_wire_layout *layout,
                                 const struct gar_wire_source *source, struct gar_error *err)
{
    const int64_t least =
        (int64_t)sizeof(struct head) + layout->count * (int64_t)sizeof(struct description);
    if (source->bytes < least || ((uintptr_t)source->region & (GAR_WIRE_ALIGN - 1)) != 0) {
        return malformed(err, "a region that is too short");
    }
    struct head head;
    memcpy(&head, source->region, sizeof head);
    return head.nodes == layout->count && head.rows == source->rows
               ? GAR_OK
               : malformed(err, "a head that does not fit the schema");
}

static enum gar_status read_all(const struct gar_wire_layout *layout,
                                const struct gar_wire_source *source,
                                const struct description *descriptions, int64_t private_bytes,
                                struct ArrowArray *out, struct gar_error *err)
{
    struct reading *reading = new_reading(layout, source, private_bytes, err);
    if (reading == NULL) {
        return GAR_ERR_NOMEM;
    }
    uint8_t *private = reading->private;
    for (int32_t i = 0; i < layout->count; i++) {
        const enum gar_status status =
            read_node(layout, i, source, &descriptions[i], reading, &private, err);
        if (status < 0) {
            drop_reading(reading);
            return status;
        }
    }
    reading->on_release = source->on_release;
    reading->context = source->context;
    *out = reading->arrays[0];
    return GAR_OK;
}

enum gar_status gar_wire_read(const struct gar_wire_layout *layout,
                              const struct gar_wire_source *source, struct ArrowArray *out,
                              struct gar_error *err)
{
    GAR_TRY(read_head(layout, source, err));
    const int64_t bytes = layout->count * (int64_t)sizeof(struct description);
    struct description *descriptions = gar_malloc(bytes);
    if (descriptions == NULL) {
        return gar_error_nomem(err, bytes);
    }
    enum gar_status status = GAR_OK;
    int64_t private_bytes = 0;
    for (int32_t i = 0; status >= 0 && i < layout->count; i++) {
        struct description *d = &descriptions[i];
        status = read_description(layout, i, source, d, err);
        if (status >= 0) {
            private_bytes += round_up(d->bytes[0]);
            private_bytes += has_offsets(layout->nodes[i].kind) ? round_up(d->bytes[1]) : 0;
        }
    }
    if (status >= 0) {
        status = read_all(layout, source, descriptions, private_bytes, out, err);
    }
    gar_free(descriptions);
    return status;
}
