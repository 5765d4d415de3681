/* SPDX-License-Identifier: Apache-2.0 */
/* User functions as expressions: an opaque, counted object with a name, a result type and options. Programs cannot
 * evaluate it: plan/ gives every call a node of its own, and exec/ hands batches to what `kind` names. */
#ifndef GAR_EXPR_UDF_H
#define GAR_EXPR_UDF_H

#include "arrow/type.h"
#include "base/attrs.h"
#include "base/error.h"

struct gar_udf_kind; /* how its calls are performed: exec/performer.h */

struct gar_udf {
    int64_t refs; /* atomic */
    char *name;   /* for messages and explain; owned */
    struct gar_type type;
    int64_t batch_rows; /* of every call but the last; 0: as batches come */
    int32_t max_calls;  /* at work at once in a query; 0: as many as there are threads */
    bool is_expanding;  /* a row gives any number of rows; the other columns are repeated */
    bool is_grouped;    /* the first argument numbers groups, in runs; calls have whole groups */
    char *detail;       /* options for explain, or NULL; owned */
    const struct gar_udf_kind *kind; /* static */
    void *context;                   /* the kind's */
    void (*release)(void *context);  /* once, on any thread; may be NULL */
};

struct gar_udf_options {
    const char *name;
    struct gar_type type;
    int64_t batch_rows;
    int32_t max_calls;
    bool is_expanding;
    bool is_grouped;
    const char *detail;
    const struct gar_udf_kind *kind;
    void *context;
    void (*release)(void *context);
};

/* Copies texts; context moves in on success. Errors: GAR_ERR_VALUE (no name, negative sizes), GAR_ERR_NOMEM.
 * Owns: caller unrefs. Threads: any. */
GAR_MUST_USE enum gar_status gar_udf_new(const struct gar_udf_options *options,
                                         struct gar_udf **out, struct gar_error *err);
struct gar_udf *gar_udf_ref(struct gar_udf *udf);
void gar_udf_unref(struct gar_udf *udf);

#endif
