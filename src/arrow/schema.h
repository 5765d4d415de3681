/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas: immutable, counted lists of named, typed fields. */
#ifndef GAR_ARROW_SCHEMA_H
#define GAR_ARROW_SCHEMA_H

#include "arrow/type.h"

struct gar_field {
    char *name; /* UTF-8, NUL-terminated; owned by the schema */
    struct gar_type type;
    bool nullable;
    char *metadata; /* Arrow's binary key-value form, or NULL; owned by the schema */
    int64_t metadata_bytes;
};

struct gar_schema {
    int64_t refs; /* atomic */
    int64_t count;
    struct gar_field *fields;     /* count items */
    struct gar_name_index *index; /* name -> position, built with the schema */
};

/* Copies names and metadata. Duplicate names are an error naming them unless allow_duplicates (files may have
 * them; gar_schema_find then gives the first). Errors: GAR_ERR_VALUE, GAR_ERR_NOMEM,
 * GAR_ERR_UNSUPPORTED for nested types. Owns: caller unrefs *out. */
GAR_MUST_USE enum gar_status gar_schema_new(const struct gar_field *fields, int64_t count,
                                            bool allow_duplicates, struct gar_schema **out,
                                            struct gar_error *err);
struct gar_schema *gar_schema_ref(const struct gar_schema *schema);
void gar_schema_unref(struct gar_schema *schema);
/* Position of a field by exact name, or -1. */
int64_t gar_schema_find(const struct gar_schema *schema, const char *name);
/* The same, but a missing name writes GAR_ERR_COLUMN: "unknown column 'nam'; did you mean 'name'? (columns: ...)". */
GAR_MUST_USE enum gar_status gar_schema_get(const struct gar_schema *schema, const char *name,
                                            int64_t *out, struct gar_error *err);
/* Names and types equal (metadata and nullable not looked at). */
bool gar_schema_equal(const struct gar_schema *a, const struct gar_schema *b);
/* "name: type" a line. */
void gar_schema_print(const struct gar_schema *schema, struct gar_strbuf *out);

#endif
