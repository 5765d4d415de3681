/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas with a hash index over their names, and the message for a name that is not there. */
#include "arrow/schema.h"

#include <string.h>

#include "arrow/refs_priv.h"
#include "base/alloc.h"
#include "base/bits.h"
#include "base/hash.h"
#include "base/utf8.h"

/* Open addressing; a slot holds position + 1, 0 is empty. Of equal names the first is found. */
struct gar_name_index {
    int64_t mask;
    int32_t slots[];
};

#define FIELDS_MAX 1000000

static struct gar_name_index *new_index(int64_t count)
{
    const int64_t slots = gar_next_pow2(2 * count + 1);
    struct gar_name_index *index =
        gar_calloc(1, (int64_t)sizeof *index + slots * (int64_t)sizeof index->slots[0]);
    if (index != NULL) {
        index->mask = slots - 1;
    }
    return index;
}

/* The slot that holds the name, or the empty one where it would go. */
static int32_t *find_slot(const struct gar_schema *schema, const char *name)
{
    struct gar_name_index *index = schema->index;
    uint64_t at = gar_hash_bytes(name, (int64_t)strlen(name));
    for (;; at++) {
        int32_t *slot = &index->slots[(int64_t)at & index->mask];
        if (*slot == 0 || strcmp(schema->fields[*slot - 1].name, name) == 0) {
            return slot;
        }
    }
}

static enum gar_status copy_field(const struct gar_field *from, struct gar_field *to,
                                  struct gar_error *err)
{
    const char *name = from->name != NULL ? from->name : "";
    const int64_t bytes = (int64_t)strlen(name);
    if (!gar_utf8_valid(name, bytes)) {
        char quoted[96];
        return gar_error_set(err, GAR_ERR_VALUE, "column name '%s' is not valid UTF-8",
                             gar_error_quote(name, bytes, quoted, (int64_t)sizeof quoted));
    }
    to->type = from->type;
    to->nullable = from->nullable;
    to->name = gar_strndup(name, bytes);
    if (to->name == NULL) {
        return gar_error_nomem(err, bytes);
    }
    if (from->metadata != NULL && from->metadata_bytes > 0) {
        to->metadata = gar_malloc(from->metadata_bytes);
        if (to->metadata == NULL) {
            return gar_error_nomem(err, from->metadata_bytes);
        }
        memcpy(to->metadata, from->metadata, (size_t)from->metadata_bytes);
        to->metadata_bytes = from->metadata_bytes;
    }
    return GAR_OK;
}

/* The one door of the engine that nested types would come through: behind it nothing computes on them. */
static enum gar_status refuse_nested(const struct gar_field *field, struct gar_error *err)
{
    if (!gar_type_is_nested(field->type)) {
        return GAR_OK;
    }
    char quoted[128];
    char text[128];
    const int64_t bytes = field->name != NULL ? (int64_t)strlen(field->name) : 0;
    return gar_error_set(err, GAR_ERR_UNSUPPORTED,
                         "column '%s' has the nested type %s, which is not supported; leave it out "
                         "or unnest it before",
                         gar_error_quote(field->name, bytes, quoted, (int64_t)sizeof quoted),
                         gar_type_text(field->type, text, (int64_t)sizeof text));
}

static enum gar_status fill_schema(struct gar_schema *schema, const struct gar_field *fields,
                                   int64_t count, bool allow_duplicates, struct gar_error *err)
{
    for (int64_t i = 0; i < count; i++) {
        GAR_TRY(refuse_nested(&fields[i], err));
        GAR_TRY(copy_field(&fields[i], &schema->fields[i], err));
        schema->count = i + 1;
        int32_t *slot = find_slot(schema, schema->fields[i].name);
        if (*slot == 0) {
            *slot = (int32_t)(i + 1);
        } else if (!allow_duplicates) {
            char quoted[128];
            return gar_error_set(err, GAR_ERR_VALUE,
                                 "two columns are named '%s' (positions %d and %lld); rename one, "
                                 "for example with alias",
                                 gar_error_quote(schema->fields[i].name,
                                                 (int64_t)strlen(schema->fields[i].name), quoted,
                                                 (int64_t)sizeof quoted),
                                 (int)*slot - 1, (long long)i);
        }
    }
    return GAR_OK;
}

enum gar_status gar_schema_new(const struct gar_field *fields, int64_t count, bool allow_duplicates,
                               struct gar_schema **out, struct gar_error *err)
{
    if (count < 0 || count > FIELDS_MAX) {
        return gar_error_set(err, GAR_ERR_VALUE, "a schema of %lld columns; the limit is %d",
                             (long long)count, FIELDS_MAX);
    }
    struct gar_schema *schema = gar_calloc(1, (int64_t)sizeof *schema);
    if (schema == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *schema);
    }
    schema->refs = 1;
    schema->fields = gar_calloc(gar_max_i64(count, 1), (int64_t)sizeof schema->fields[0]);
    schema->index = new_index(count);
    enum gar_status status = GAR_OK;
    if (schema->fields == NULL || schema->index == NULL) {
        status = gar_error_nomem(err, count * (int64_t)sizeof schema->fields[0]);
    } else {
        status = fill_schema(schema, fields, count, allow_duplicates, err);
    }
    if (status < 0) {
        gar_schema_unref(schema);
        return status;
    }
    *out = schema;
    return GAR_OK;
}

struct gar_schema *gar_schema_ref(const struct gar_schema *schema)
{
    struct gar_schema *s = drop_const(schema);
    if (s != NULL) {
        ref_add(&s->refs);
    }
    return s;
}

void gar_schema_unref(struct gar_schema *schema)
{
    if (schema == NULL || !ref_drop(&schema->refs)) {
        return;
    }
    for (int64_t i = 0; schema->fields != NULL && i < schema->count; i++) {
        gar_free(schema->fields[i].name);
        gar_free(schema->fields[i].metadata);
    }
    gar_free(schema->fields);
    gar_free(schema->index);
    gar_free(schema);
}

int64_t gar_schema_find(const struct gar_schema *schema, const char *name)
{
    return (int64_t)*find_slot(schema, name) - 1;
}

bool gar_schema_equal(const struct gar_schema *a, const struct gar_schema *b)
{
    if (a == b) {
        return true;
    }
    if (a->count != b->count) {
        return false;
    }
    for (int64_t i = 0; i < a->count; i++) {
        if (!gar_type_equal(a->fields[i].type, b->fields[i].type) ||
            strcmp(a->fields[i].name, b->fields[i].name) != 0) {
            return false;
        }
    }
    return true;
}

void gar_schema_print(const struct gar_schema *schema, struct gar_strbuf *out)
{
    for (int64_t i = 0; i < schema->count; i++) {
        char quoted[256];
        const char *name = schema->fields[i].name;
        gar_strbuf_append(
            out, gar_error_quote(name, (int64_t)strlen(name), quoted, (int64_t)sizeof quoted));
        gar_strbuf_append(out, ": ");
        gar_type_print(schema->fields[i].type, out);
        gar_strbuf_append_char(out, '\n');
    }
}

/* ---- unknown names ---- */

#define NAME_BYTES_COMPARED 64
#define NEAREST_MAX         3
#define NAMES_LISTED_MAX    20
#define NAMES_COMPARED_MAX  10000

static char fold(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* Edits (insert, delete, replace a byte; case is free) that make a into b; long names are cut. */
static int32_t edit_distance(const char *a, const char *b)
{
    const int32_t a_bytes = (int32_t)strnlen(a, NAME_BYTES_COMPARED);
    const int32_t b_bytes = (int32_t)strnlen(b, NAME_BYTES_COMPARED);
    int32_t row[NAME_BYTES_COMPARED + 1];
    for (int32_t j = 0; j <= b_bytes; j++) {
        row[j] = j;
    }
    for (int32_t i = 1; i <= a_bytes; i++) {
        int32_t diagonal = row[0];
        row[0] = i;
        for (int32_t j = 1; j <= b_bytes; j++) {
            const int32_t above = row[j];
            const int32_t replaced = diagonal + (fold(a[i - 1]) == fold(b[j - 1]) ? 0 : 1);
            int32_t best = above < row[j - 1] ? above + 1 : row[j - 1] + 1;
            if (replaced < best) {
                best = replaced;
            }
            row[j] = best;
            diagonal = above;
        }
    }
    return row[b_bytes];
}

struct near_name {
    int64_t position;
    int32_t distance;
};

/* Keeps the nearest few in ascending distance. */
static void keep_nearest(struct near_name *nearest, int32_t *count, struct near_name candidate)
{
    int32_t at = *count;
    while (at > 0 && nearest[at - 1].distance > candidate.distance) {
        at--;
    }
    if (at >= NEAREST_MAX) {
        return;
    }
    const int32_t last = *count < NEAREST_MAX ? *count : NEAREST_MAX - 1;
    for (int32_t i = last; i > at; i--) {
        nearest[i] = nearest[i - 1];
    }
    nearest[at] = candidate;
    if (*count < NEAREST_MAX) {
        (*count)++;
    }
}

static void append_name(struct gar_strbuf *sb, const char *name, bool quote)
{
    char quoted[64];
    (void)gar_error_quote(name, (int64_t)strlen(name), quoted, (int64_t)sizeof quoted);
    gar_strbuf_printf(sb, quote ? "'%s'" : "%s", quoted);
}

static void append_nearest(struct gar_strbuf *sb, const struct gar_schema *schema, const char *name)
{
    struct near_name nearest[NEAREST_MAX];
    int32_t count = 0;
    const int32_t name_bytes = (int32_t)strnlen(name, NAME_BYTES_COMPARED);
    const int32_t limit = name_bytes < 3 ? 1 : 1 + name_bytes / 3;
    for (int64_t i = 0; i < gar_min_i64(schema->count, NAMES_COMPARED_MAX); i++) {
        const struct near_name candidate = {i, edit_distance(name, schema->fields[i].name)};
        if (candidate.distance <= limit) {
            keep_nearest(nearest, &count, candidate);
        }
    }
    for (int32_t i = 0; i < count; i++) {
        gar_strbuf_append(sb, i == 0 ? "; did you mean " : i == count - 1 ? " or " : ", ");
        append_name(sb, schema->fields[nearest[i].position].name, true);
    }
    if (count > 0) {
        gar_strbuf_append(sb, "?");
    }
}

enum gar_status gar_schema_get(const struct gar_schema *schema, const char *name, int64_t *out,
                               struct gar_error *err)
{
    const int64_t at = gar_schema_find(schema, name);
    if (at >= 0) {
        *out = at;
        return GAR_OK;
    }
    struct gar_strbuf sb = {0};
    gar_strbuf_append(&sb, "unknown column ");
    append_name(&sb, name, true);
    append_nearest(&sb, schema, name);
    if (schema->count == 0) {
        gar_strbuf_append(&sb, " (there are no columns)");
    } else {
        gar_strbuf_append(&sb, " (columns: ");
        for (int64_t i = 0; i < gar_min_i64(schema->count, NAMES_LISTED_MAX); i++) {
            gar_strbuf_append(&sb, i > 0 ? ", " : "");
            append_name(&sb, schema->fields[i].name, false);
        }
        if (schema->count > NAMES_LISTED_MAX) {
            gar_strbuf_printf(&sb, ", and %lld more",
                              (long long)(schema->count - NAMES_LISTED_MAX));
        }
        gar_strbuf_append(&sb, ")");
    }
    const enum gar_status status = gar_error_set(err, GAR_ERR_COLUMN, "%s", gar_strbuf_text(&sb));
    gar_strbuf_destroy(&sb);
    return status;
}
