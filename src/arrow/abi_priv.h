/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow format strings in both directions; shared by import and export. */
#ifndef GAR_ARROW_ABI_PRIV_H
#define GAR_ARROW_ABI_PRIV_H

#include "arrow/abi.h"

/* How the bytes of a foreign array lie. */
enum abi_layout {
    ABI_NULL,
    ABI_BOOL,
    ABI_DIRECT,    /* exactly our values buffer */
    ABI_OFFSETS32, /* text with int32 offsets */
    ABI_OFFSETS64,
    ABI_VIEWS,
    ABI_FIXED_BINARY, /* `width` bytes a value */
    ABI_FLOAT16,
    ABI_DECIMAL,    /* `width` bytes a value: 4, 8 or 32 */
    ABI_DATE64,     /* int64 milliseconds */
    ABI_TIME32,     /* int32, times `factor` gives our unit */
    ABI_RUN_END,    /* run ends and values as children */
    ABI_DICTIONARY, /* integers of `width` bytes into array->dictionary */
};

struct abi_format {
    struct gar_type type; /* what it becomes */
    enum abi_layout layout;
    int32_t width;
    int32_t factor;
    bool is_unsigned; /* dictionary indices */
};

/* Nesting of dictionaries and run ends that is followed. */
#define ABI_DEPTH_MAX 4

/* Read a field's format. Names the field in messages. */
GAR_MUST_USE enum gar_status abi_read_format(const struct ArrowSchema *abi, int32_t depth,
                                             struct abi_format *out, struct gar_error *err);
/* The format of a type; out has room for 192 bytes. */
void abi_write_format(struct gar_type type, enum gar_text_layout layout, char *out,
                      int64_t out_bytes);
/* Arrow's binary key-value metadata: its length in bytes, or -1 when it is malformed. */
int64_t abi_metadata_bytes(const char *metadata);

#endif
