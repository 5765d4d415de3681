/* SPDX-License-Identifier: Apache-2.0 */
/* The setup block: what a worker is told before its actor is made. Written by the pool, read by the worker. */
#ifndef GAR_ACTORS_SETUP_H
#define GAR_ACTORS_SETUP_H

#include <gar/arrow_abi.h>

#include "base/attrs.h"
#include "base/error.h"
#include "base/strbuf.h"

/* As the worker sees it; zeroed is fine to destroy. */
struct gar_setup {
    int32_t index;
    int32_t count;
    const char *name;          /* in texts */
    const uint8_t *code;       /* borrowed from the block */
    int64_t code_bytes;        /* of code */
    struct ArrowSchema input;  /* trees over texts; not released by their users */
    struct ArrowSchema output; /* likewise */
    char *texts;               /* owned */
    void *trees;               /* owned */
};

struct gar_setup_options {
    int32_t count;
    const char *name;
    const void *code;
    int64_t code_bytes;
    const struct ArrowSchema *input;
    const struct ArrowSchema *output;
};
/* Appends a block; the index is written by gar_setup_set_index. Check out->failed. */
void gar_setup_write(const struct gar_setup_options *options, struct gar_strbuf *out);
void gar_setup_set_index(void *block, int32_t index);
/* Errors: GAR_ERR_FORMAT, GAR_ERR_NOMEM. Owns: caller destroys; code is borrowed from the block. */
GAR_MUST_USE enum gar_status gar_setup_read(const void *block, int64_t bytes, struct gar_setup *out,
                                            struct gar_error *err);
void gar_setup_destroy(struct gar_setup *setup);

#endif
