/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of keys after a scan that does not look at them itself: a selection of the rows that may have a partner. */
#include "arrow/gather.h"
#include "base/alloc.h"
#include "exec/ops/ops.h"

struct key_test {
    struct gar_transform base;
    struct gar_schema *schema; /* owned reference */
    struct gar_memory *memory; /* borrowed */
    struct gar_key_use *use;   /* borrowed */
    int64_t column;            /* of the batch */
};

static enum gar_status select_rows(const struct key_test *test, const struct gar_batch *batch,
                                   struct gar_batch **out, struct gar_error *err)
{
    struct gar_column *flat = NULL;
    struct gar_buffer *selection = NULL;
    GAR_TRY(gar_column_flatten(batch->columns[test->column], test->memory, &flat, err));
    enum gar_status status =
        gar_buffer_new(test->memory, batch->selected * (int64_t)sizeof(uint32_t), &selection, err);
    int64_t selected = 0;
    if (status >= 0) {
        selected = gar_key_filter_select(test->use->filter, flat, batch->selection, batch->selected,
                                         (uint32_t *)(void *)selection->data);
        gar_key_use_count(test->use, batch->selected, selected);
    }
    gar_column_unref(flat);
    if (status >= 0 && selected == batch->selected) {
        *out = gar_batch_ref(batch);
    } else if (status >= 0 && selected > 0) {
        status = gar_batch_select(batch, selection, selected, out, err);
        selection = status >= 0 ? NULL : selection; /* moved */
    }
    gar_buffer_unref(selection);
    return status;
}

static enum gar_status key_test_worker_new(struct gar_transform *transform, struct gar_query *query,
                                           int32_t worker, void **out, struct gar_error *err)
{
    (void)query;
    (void)worker;
    (void)err;
    *out = transform; /* it keeps nothing */
    return GAR_OK;
}

static void key_test_worker_free(struct gar_transform *transform, void *worker)
{
    (void)transform;
    (void)worker;
}

static enum gar_status key_test_apply(struct gar_transform *transform, void *worker,
                                      struct gar_batch *batch, struct gar_batch **out,
                                      struct gar_error *err)
{
    (void)worker;
    const struct key_test *test = (const struct key_test *)(const void *)transform;
    *out = NULL;
    if (!gar_key_use_pays(test->use)) {
        *out = batch;
        return GAR_OK;
    }
    const enum gar_status status = select_rows(test, batch, out, err);
    gar_batch_unref(batch);
    return status;
}

static void key_test_explain(const struct gar_transform *transform, struct gar_strbuf *out)
{
    const struct key_test *test = (const struct key_test *)(const void *)transform;
    gar_strbuf_printf(out, "rows with a key of a join by %s",
                      test->schema->fields[test->column].name);
}

static void free_key_test(void *object)
{
    struct key_test *test = (struct key_test *)object;
    gar_schema_unref(test->schema);
    gar_free(test);
}

enum gar_status gar_key_test_new(struct gar_query *query, struct gar_schema *input, int64_t column,
                                 struct gar_key_use *use, struct gar_transform **out,
                                 struct gar_error *err)
{
    static const struct gar_transform_vtable vtable = {.name = "key test",
                                                       .worker_new = key_test_worker_new,
                                                       .worker_free = key_test_worker_free,
                                                       .apply = key_test_apply,
                                                       .explain = key_test_explain};
    struct key_test *test = (struct key_test *)gar_calloc(1, (int64_t)sizeof *test);
    if (test == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *test);
    }
    test->base.vtable = &vtable;
    test->schema = gar_schema_ref(input);
    test->memory = query->memory;
    test->use = use;
    test->column = column;
    GAR_TRY(gar_query_own(query, test, free_key_test, err));
    *out = &test->base;
    return GAR_OK;
}
