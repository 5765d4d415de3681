/* SPDX-License-Identifier: Apache-2.0 */
/* Building a FLAT column row by row. Single owner. */
#ifndef GAR_ARROW_BUILDER_H
#define GAR_ARROW_BUILDER_H

#include "arrow/value.h"

/* A zeroed struct is safe to destroy. */
struct gar_builder {
    struct gar_memory *memory; /* borrowed */
    struct gar_type type;
    int64_t length;
    int64_t null_count;
    struct gar_buffer *values;   /* owned */
    struct gar_buffer *validity; /* owned; NULL until the first null */
    struct gar_buffer **data;    /* owned string bytes */
    int32_t data_count;
    int64_t data_capacity;
};

void gar_builder_init(struct gar_builder *builder, struct gar_memory *memory, struct gar_type type);
void gar_builder_destroy(struct gar_builder *builder);
/* Each appends one row; the caller uses the one of the type's layout. Errors: GAR_ERR_NOMEM; the row is then not there. */
GAR_MUST_USE enum gar_status gar_builder_append_null(struct gar_builder *builder,
                                                     struct gar_error *err);
GAR_MUST_USE enum gar_status gar_builder_append_bool(struct gar_builder *builder, bool value,
                                                     struct gar_error *err);
/* Copies the type's width bytes from value (fixed-width types). */
GAR_MUST_USE enum gar_status gar_builder_append_fixed(struct gar_builder *builder,
                                                      const void *value, struct gar_error *err);
/* Copies the bytes; string input must be UTF-8 (not checked). Values up to 2^31-1 bytes. */
GAR_MUST_USE enum gar_status gar_builder_append_bytes(struct gar_builder *builder, const void *data,
                                                      int64_t bytes, struct gar_error *err);
/* Any value of the builder's type, or null. */
GAR_MUST_USE enum gar_status gar_builder_append_value(struct gar_builder *builder,
                                                      const struct gar_value *value,
                                                      struct gar_error *err);
GAR_MUST_USE enum gar_status gar_builder_reserve(struct gar_builder *builder, int64_t rows,
                                                 struct gar_error *err);
/* Moves the rows out; the builder is empty and ready again. */
GAR_MUST_USE enum gar_status gar_builder_finish(struct gar_builder *builder,
                                                struct gar_column **out, struct gar_error *err);

#endif
