/* SPDX-License-Identifier: Apache-2.0 */
/* count_rows: counting the rows of a source that knows their number reads nothing. */
#include "base/alloc.h"
#include "optimize/rule_priv.h"

/* count(*), or count of a literal that is not null. */
static bool counts_rows(const struct gar_expr *expr)
{
    while (expr->kind == GAR_EXPR_ALIAS) {
        expr = expr->args[0];
    }
    return gar_expr_is_call(expr, "count") &&
           (expr->arg_count == 0 ||
            (expr->arg_count == 1 && expr->args[0]->kind == GAR_EXPR_LITERAL &&
             expr->args[0]->value.is_valid));
}

/* The number of rows, or -1 when it is not known or not all that is asked for. */
static int64_t known_count(const struct gar_plan *node)
{
    const struct gar_plan *scan = node->kind == GAR_PLAN_AGGREGATE ? node->inputs[0] : NULL;
    if (scan == NULL || node->key_count > 0 || scan->kind != GAR_PLAN_SCAN ||
        scan->filter != NULL || scan->limit >= 0 || scan->provider->vtable->row_count == NULL) {
        return -1;
    }
    for (int64_t i = 0; i < node->expr_count; i++) {
        if (!counts_rows(node->exprs[i])) {
            return -1;
        }
    }
    return scan->provider->vtable->row_count(scan->provider);
}

static enum gar_status one_row(struct gar_schema *schema, int64_t rows, struct gar_column **columns,
                               struct gar_batch **out, struct gar_error *err)
{
    const struct gar_value value = {.type = gar_type_of(GAR_INT64), .is_valid = true, .i64 = rows};
    for (int64_t i = 0; i < schema->count; i++) {
        GAR_TRY(gar_value_to_column(&value, gar_memory_system(), &columns[i], err));
    }
    return gar_batch_new(schema, columns, 1, out, err);
}

static enum gar_status scan_of(struct gar_schema *schema, struct gar_batch *batch,
                               struct gar_plan **out, struct gar_error *err)
{
    struct gar_scan_provider *provider = NULL;
    GAR_TRY(gar_memory_provider_new(schema, &batch, 1, &provider, err));
    const enum gar_status status = gar_plan_scan(provider, out, err);
    gar_scan_provider_unref(provider);
    return status;
}

static enum gar_status count_node(const struct gar_plan *node, struct gar_plan **out,
                                  struct gar_error *err)
{
    const int64_t rows = known_count(node);
    if (rows < 0) {
        return GAR_OK;
    }
    struct gar_column **columns = gar_calloc(node->schema->count, (int64_t)sizeof *columns);
    if (columns == NULL) {
        return gar_error_nomem(err, node->schema->count * (int64_t)sizeof *columns);
    }
    struct gar_batch *batch = NULL;
    enum gar_status status = one_row(node->schema, rows, columns, &batch, err);
    if (status < 0) {
        for (int64_t i = 0; i < node->schema->count; i++) {
            gar_column_unref(columns[i]);
        }
    } else {
        status = scan_of(node->schema, batch, out, err);
    }
    gar_batch_unref(batch);
    gar_free(columns);
    return status;
}

enum gar_status gar_rule_count_rows(const struct gar_plan *plan, struct gar_plan **out,
                                    struct gar_error *err)
{
    return gar_plan_map(plan, count_node, out, err);
}
