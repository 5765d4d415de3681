/* SPDX-License-Identifier: Apache-2.0 */
/* The setup block: a head, the code, the texts of name and schemas (each with its NUL), one record for each field in
 * preorder. */
#include "actors/setup.h"

#include <string.h>

#include "actors/wire.h"
#include "base/alloc.h"

struct setup_head {
    int32_t version;
    int32_t index;
    int32_t count;
    int32_t unused;
    int64_t code_bytes;
    int64_t text_bytes;
    int64_t fields; /* of both trees */
};

struct field {
    int64_t format; /* places in the texts */
    int64_t name;
    int64_t metadata; /* -1: none */
    int64_t flags;
    int64_t children;
};

/* ---- writing ---- */

struct writer {
    struct gar_strbuf texts;
    struct gar_strbuf fields;
    int64_t count;
};

static int64_t add_text(struct writer *w, const char *text, int64_t bytes)
{
    const int64_t at = w->texts.size;
    gar_strbuf_append_n(&w->texts, text, bytes);
    gar_strbuf_append_char(&w->texts, '\0');
    return at;
}

/* Length of Arrow's key-value metadata, written by our own export. */
static int64_t metadata_bytes(const char *metadata)
{
    int32_t pairs;
    memcpy(&pairs, metadata, sizeof pairs);
    int64_t at = (int64_t)sizeof pairs;
    for (int32_t i = 0; i < 2 * pairs; i++) {
        int32_t size;
        memcpy(&size, metadata + at, sizeof size);
        at += (int64_t)sizeof size + size;
    }
    return at;
}

static void add_field(struct writer *w, const struct ArrowSchema *schema)
{
    const char *name = schema->name != NULL ? schema->name : "";
    const struct field field = {
        .format = add_text(w, schema->format, (int64_t)strlen(schema->format)),
        .name = add_text(w, name, (int64_t)strlen(name)),
        .metadata = schema->metadata == NULL
                        ? -1
                        : add_text(w, schema->metadata, metadata_bytes(schema->metadata)),
        .flags = schema->flags,
        .children = schema->n_children};
    gar_strbuf_append_n(&w->fields, (const char *)&field, (int64_t)sizeof field);
    w->count++;
}

/* Depth was checked when the layout was made. */
static void add_tree(struct writer *w, const struct ArrowSchema *root)
{
    struct {
        const struct ArrowSchema *schema;
        int64_t next;
    } stack[GAR_WIRE_DEPTH_MAX + 1] = {{root, 0}};
    int32_t depth = 1;
    add_field(w, root);
    while (depth > 0) {
        const struct ArrowSchema *top = stack[depth - 1].schema;
        if (stack[depth - 1].next == top->n_children) {
            depth--;
            continue;
        }
        const struct ArrowSchema *child = top->children[stack[depth - 1].next++];
        add_field(w, child);
        stack[depth].schema = child;
        stack[depth].next = 0;
        depth++;
    }
}

void gar_setup_write(const struct gar_setup_options *options, struct gar_strbuf *out)
{
    struct writer w = {.count = 0};
    (void)add_text(&w, options->name, (int64_t)strlen(options->name));
    add_tree(&w, options->input);
    add_tree(&w, options->output);
    while (w.texts.size % 8 != 0) {
        gar_strbuf_append_char(&w.texts, '\0');
    }
    const struct setup_head head = {.version = GAR_WIRE_VERSION,
                                    .count = options->count,
                                    .code_bytes = options->code_bytes,
                                    .text_bytes = w.texts.size,
                                    .fields = w.count};
    gar_strbuf_append_n(out, (const char *)&head, (int64_t)sizeof head);
    gar_strbuf_append_n(out, w.fields.data, w.fields.size);
    gar_strbuf_append_n(out, w.texts.data, w.texts.size);
    if (options->code_bytes > 0) {
        gar_strbuf_append_n(out, options->code, options->code_bytes);
    }
    out->failed |= w.texts.failed || w.fields.failed;
    gar_strbuf_destroy(&w.texts);
    gar_strbuf_destroy(&w.fields);
}

void gar_setup_set_index(void *block, int32_t index)
{
    memcpy((char *)block + offsetof(struct setup_head, index), &index, sizeof index);
}

/* ---- reading ---- */

static enum gar_status malformed(struct gar_error *err)
{
    return gar_error_set(err, GAR_ERR_FORMAT, "malformed setup of an actor");
}

static void release_nothing(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

struct reader {
    const uint8_t *fields; /* records, not aligned */
    int64_t field_count;
    const char *texts;
    int64_t text_bytes;
    struct ArrowSchema *nodes; /* room for all fields */
    struct ArrowSchema **children;
    int64_t next_node;
    int64_t next_child;
};

static bool is_text_place(const struct reader *r, int64_t at)
{
    return at >= 0 && at < r->text_bytes;
}

/* The next field into *out; its children are places to fill. */
static bool read_field(struct reader *r, struct ArrowSchema *out)
{
    struct field f;
    if (r->next_node >= r->field_count) {
        return false;
    }
    memcpy(&f, r->fields + r->next_node * (int64_t)sizeof f, sizeof f);
    if (!is_text_place(r, f.format) || !is_text_place(r, f.name) || f.metadata >= r->text_bytes ||
        f.children < 0 || f.children > r->field_count - r->next_child) {
        return false;
    }
    r->next_node++;
    *out = (struct ArrowSchema){.format = r->texts + f.format,
                                .name = r->texts + f.name,
                                .metadata = f.metadata < 0 ? NULL : r->texts + f.metadata,
                                .flags = f.flags,
                                .n_children = f.children,
                                .children = r->children + r->next_child,
                                .release = release_nothing};
    r->next_child += f.children;
    return true;
}

static bool read_tree(struct reader *r, struct ArrowSchema *root)
{
    struct {
        struct ArrowSchema *schema;
        int64_t next;
    } stack[GAR_WIRE_DEPTH_MAX + 1] = {{root, 0}};
    int32_t depth = 1;
    if (!read_field(r, root)) {
        return false;
    }
    while (depth > 0) {
        struct ArrowSchema *top = stack[depth - 1].schema;
        if (stack[depth - 1].next == top->n_children) {
            depth--;
            continue;
        }
        struct ArrowSchema *child = &r->nodes[r->next_node];
        if (depth > GAR_WIRE_DEPTH_MAX || !read_field(r, child)) {
            return false;
        }
        top->children[stack[depth - 1].next++] = child;
        stack[depth].schema = child;
        stack[depth].next = 0;
        depth++;
    }
    return true;
}

enum gar_status gar_setup_read(const void *block, int64_t bytes, struct gar_setup *out,
                               struct gar_error *err)
{
    struct setup_head head;
    memset(out, 0, sizeof *out);
    if (bytes < (int64_t)sizeof head) {
        return malformed(err);
    }
    memcpy(&head, block, sizeof head);
    const int64_t body = bytes - (int64_t)sizeof head;
    if (head.version != GAR_WIRE_VERSION || head.fields < 2 ||
        head.fields > body / (int64_t)sizeof(struct field) || head.text_bytes < 1 ||
        head.text_bytes > body - head.fields * (int64_t)sizeof(struct field) ||
        head.code_bytes != body - head.fields * (int64_t)sizeof(struct field) - head.text_bytes) {
        return malformed(err);
    }
    const uint8_t *fields = (const uint8_t *)block + sizeof head;
    const uint8_t *texts = fields + head.fields * (int64_t)sizeof(struct field);
    out->texts = gar_malloc(head.text_bytes);
    out->trees = gar_calloc(head.fields, (int64_t)sizeof(struct ArrowSchema) +
                                             (int64_t)sizeof(struct ArrowSchema *));
    if (out->texts == NULL || out->trees == NULL) {
        gar_setup_destroy(out);
        return gar_error_nomem(err, head.text_bytes);
    }
    memcpy(out->texts, texts, (size_t)head.text_bytes);
    struct ArrowSchema *nodes = out->trees;
    struct reader r = {.fields = fields,
                       .field_count = head.fields,
                       .texts = out->texts,
                       .text_bytes = head.text_bytes,
                       .nodes = nodes,
                       .children = (struct ArrowSchema **)(void *)(nodes + head.fields)};
    if (out->texts[head.text_bytes - 1] != 0 || !read_tree(&r, &out->input) ||
        !read_tree(&r, &out->output)) {
        gar_setup_destroy(out);
        return malformed(err);
    }
    out->index = head.index;
    out->count = head.count;
    out->name = out->texts;
    out->code = texts + head.text_bytes;
    out->code_bytes = head.code_bytes;
    return GAR_OK;
}

void gar_setup_destroy(struct gar_setup *setup)
{
    gar_free(setup->texts);
    gar_free(setup->trees);
    memset(setup, 0, sizeof *setup);
}
