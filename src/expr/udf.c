/* SPDX-License-Identifier: Apache-2.0 */
/* User functions as expressions: making and counting them. */
#include "expr/udf.h"

#include <string.h>

#include "base/alloc.h"

static void free_udf(struct gar_udf *udf)
{
    gar_free(udf->name);
    gar_free(udf->detail);
    gar_free(udf);
}

enum gar_status gar_udf_new(const struct gar_udf_options *options, struct gar_udf **out,
                            struct gar_error *err)
{
    if (options->name == NULL || options->name[0] == '\0') {
        return gar_error_set(err, GAR_ERR_VALUE, "a user function needs a name");
    }
    if (options->batch_rows < 0 || options->max_calls < 0) {
        return gar_error_set(
            err, GAR_ERR_VALUE, "UDF '%s': %s must not be negative, got %lld", options->name,
            options->batch_rows < 0 ? "batch size" : "concurrency",
            (long long)(options->batch_rows < 0 ? options->batch_rows : options->max_calls));
    }
    GAR_TRY(gar_type_check(options->type, err));
    struct gar_udf *udf = gar_calloc(1, (int64_t)sizeof *udf);
    if (udf == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *udf);
    }
    udf->refs = 1;
    udf->name = gar_strdup(options->name);
    udf->detail = options->detail != NULL ? gar_strdup(options->detail) : NULL;
    if (udf->name == NULL || (options->detail != NULL && udf->detail == NULL)) {
        free_udf(udf);
        return gar_error_nomem(err, (int64_t)strlen(options->name) + 1);
    }
    udf->type = options->type;
    udf->batch_rows = options->batch_rows;
    udf->max_calls = options->max_calls;
    udf->is_expanding = options->is_expanding;
    udf->is_grouped = options->is_grouped;
    udf->kind = options->kind;
    udf->context = options->context;
    udf->release = options->release;
    *out = udf;
    return GAR_OK;
}

struct gar_udf *gar_udf_ref(struct gar_udf *udf)
{
    (void)__atomic_fetch_add(&udf->refs, 1, __ATOMIC_RELAXED);
    return udf;
}

void gar_udf_unref(struct gar_udf *udf)
{
    if (udf == NULL || __atomic_sub_fetch(&udf->refs, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    if (udf->release != NULL) {
        udf->release(udf->context);
    }
    free_udf(udf);
}
