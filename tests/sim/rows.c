/* SPDX-License-Identifier: Apache-2.0 */
/* Rows, random plans and their answers. */
#include "rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/builder.h"
#include "optimize/optimize.h"

enum { TEXTS = 12, KEYS = 6, VALUES = 60, DEPTH_MAX = 5 };

/* ---- rows ---- */

void sim_rows_add(struct sim_rows *rows, struct sim_row row)
{
    if (rows->count == rows->capacity) {
        rows->capacity = rows->capacity == 0 ? 64 : 2 * rows->capacity;
        rows->rows = realloc(rows->rows, (size_t)rows->capacity * sizeof *rows->rows);
        SIM_CHECK(rows->rows != NULL, "no memory");
    }
    rows->rows[rows->count++] = row;
}

void sim_rows_free(struct sim_rows *rows)
{
    free(rows->rows);
    memset(rows, 0, sizeof *rows);
}

struct sim_rows sim_rows_random(struct sim_rng *rng, int64_t count)
{
    struct sim_rows rows = {.certainty = SIM_ORDERED};
    for (int64_t i = 0; i < count; i++) {
        sim_rows_add(&rows, (struct sim_row){.k = (int32_t)sim_below(rng, KEYS + 1) - 1,
                                             .v = sim_below(rng, VALUES + 1) - 1,
                                             .s = (int32_t)sim_below(rng, TEXTS)});
    }
    return rows;
}

/* Short and long ones, in the order of their numbers. */
static int64_t text_of(int32_t s, char out[40])
{
    return snprintf(out, 40, s % 2 == 0 ? "%02d" : "%02d, a text that is not inline", (int)s);
}

static int compare_i64(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b ? 1 : 0;
}

/* Nulls are -1 and so come first. */
static int compare_rows(const void *left, const void *right)
{
    const struct sim_row *a = left;
    const struct sim_row *b = right;
    const int k = compare_i64(a->k, b->k);
    const int v = compare_i64(a->v, b->v);
    return k != 0 ? k : v != 0 ? v : compare_i64(a->s, b->s);
}

void sim_rows_sort(struct sim_rows *rows)
{
    if (rows->count > 0) {
        qsort(rows->rows, (size_t)rows->count, sizeof *rows->rows, compare_rows);
    }
}

const char *sim_rows_differ(const struct sim_rows *want, struct sim_rows *got, bool is_complete)
{
    if (want->certainty == SIM_UNKNOWN) {
        return NULL;
    }
    if (got->count > want->count) {
        return "more rows than there are";
    }
    if (is_complete && got->count != want->count) {
        return "rows are missing";
    }
    if (want->certainty == SIM_ORDERED) {
        for (int64_t i = 0; i < got->count; i++) {
            if (compare_rows(&got->rows[i], &want->rows[i]) != 0) {
                return "a row is wrong";
            }
        }
    }
    if (want->certainty == SIM_BAG && is_complete) {
        struct sim_rows sorted = {.certainty = SIM_BAG};
        for (int64_t i = 0; i < want->count; i++) {
            sim_rows_add(&sorted, want->rows[i]);
        }
        sim_rows_sort(&sorted);
        sim_rows_sort(got);
        const bool is_same = got->count == 0 || memcmp(sorted.rows, got->rows,
                                                       (size_t)got->count * sizeof *got->rows) == 0;
        sim_rows_free(&sorted);
        return is_same ? NULL : "the rows are other ones";
    }
    return NULL;
}

/* ---- batches ---- */

struct gar_schema *sim_schema_new(void)
{
    char k[] = "k";
    char v[] = "v";
    char s[] = "s";
    const struct gar_field fields[3] = {
        {.name = k, .type = gar_type_of(GAR_INT32), .nullable = true},
        {.name = v, .type = gar_type_of(GAR_INT64), .nullable = true},
        {.name = s, .type = gar_type_of(GAR_STRING), .nullable = true}};
    struct gar_schema *schema = NULL;
    SIM_CHECK(gar_schema_new(fields, 3, false, &schema, NULL) == GAR_OK, "no memory");
    return schema;
}

static enum gar_status append(struct gar_builder *builder, int64_t column,
                              const struct sim_row *row, struct gar_error *err)
{
    char text[40];
    if ((column == 0 && row->k < 0) || (column == 1 && row->v < 0)) {
        return gar_builder_append_null(builder, err);
    }
    return column == 0   ? gar_builder_append_fixed(builder, &row->k, err)
           : column == 1 ? gar_builder_append_fixed(builder, &row->v, err)
                         : gar_builder_append_bytes(builder, text, text_of(row->s, text), err);
}

static enum gar_status build_column(const struct gar_schema *schema, int64_t at, int64_t column,
                                    const struct sim_row *rows, int64_t count,
                                    struct gar_memory *memory, struct gar_column **out,
                                    struct gar_error *err)
{
    struct gar_builder builder;
    gar_builder_init(&builder, memory, schema->fields[at].type);
    enum gar_status status = GAR_OK;
    for (int64_t i = 0; i < count && status == GAR_OK; i++) {
        status = append(&builder, column, &rows[i], err);
    }
    if (status == GAR_OK) {
        status = gar_builder_finish(&builder, out, err);
    }
    gar_builder_destroy(&builder);
    return status;
}

enum gar_status sim_batch_new(struct gar_schema *schema, const int64_t *positions, int64_t count,
                              const struct sim_row *rows, int64_t row_count,
                              struct gar_memory *memory, struct gar_batch **out,
                              struct gar_error *err)
{
    struct gar_column *columns[3] = {NULL, NULL, NULL};
    enum gar_status status = GAR_OK;
    for (int64_t c = 0; c < count && status == GAR_OK; c++) {
        status = build_column(schema, c, positions[c], rows, row_count, memory, &columns[c], err);
    }
    if (status == GAR_OK) {
        status = gar_batch_new(schema, columns, row_count, out, err);
    }
    for (int64_t c = 0; c < count && status != GAR_OK; c++) {
        gar_column_unref(columns[c]);
    }
    return status;
}

void sim_batch_read(const struct gar_batch *batch, struct sim_rows *out)
{
    for (int64_t i = 0; i < batch->selected; i++) {
        const int64_t row = batch->selection != NULL ? batch->selection[i] : i;
        struct sim_row r = {.k = -1, .v = -1, .s = -1};
        const struct gar_column *flat = NULL;
        if (!gar_column_is_null(batch->columns[0], row)) {
            const int64_t at = gar_column_locate(batch->columns[0], row, &flat);
            r.k = ((const int32_t *)flat->values)[at];
        }
        if (!gar_column_is_null(batch->columns[1], row)) {
            const int64_t at = gar_column_locate(batch->columns[1], row, &flat);
            r.v = ((const int64_t *)flat->values)[at];
        }
        if (!gar_column_is_null(batch->columns[2], row)) {
            const int64_t at = gar_column_locate(batch->columns[2], row, &flat);
            int64_t bytes = 0;
            char want[40];
            const uint8_t *text = gar_column_bytes_at(flat, at, &bytes);
            SIM_CHECK(bytes >= 2, "a text of %lld bytes came out", (long long)bytes);
            r.s = (text[0] - '0') * 10 + (text[1] - '0');
            SIM_CHECK(text_of(r.s, want) == bytes && memcmp(want, text, (size_t)bytes) == 0,
                      "the text '%.*s' came out", (int)bytes, (const char *)text);
        }
        sim_rows_add(out, r);
    }
}

/* ---- answers ---- */

static void weaken(struct sim_rows *rows, enum sim_certainty certainty)
{
    if (rows->certainty < certainty) {
        rows->certainty = certainty;
    }
}

/* Rows chosen by their values: which are left is known only if which there were is known. */
static void after_choice(struct sim_rows *rows)
{
    if (rows->certainty == SIM_COUNT) {
        rows->certainty = SIM_UNKNOWN;
    }
}

static void apply_filter(struct sim_rows *rows, int64_t bound)
{
    int64_t n = 0;
    for (int64_t i = 0; i < rows->count; i++) {
        if (rows->rows[i].v > bound) {
            rows->rows[n++] = rows->rows[i];
        }
    }
    rows->count = n;
    after_choice(rows);
}

static void apply_limit(struct sim_rows *rows, int64_t offset, int64_t limit)
{
    const int64_t first = gar_min_i64(offset, rows->count);
    const int64_t n = limit < 0 ? rows->count - first : gar_min_i64(limit, rows->count - first);
    if (n < rows->count && rows->certainty == SIM_BAG) {
        rows->certainty = SIM_COUNT;
    }
    if (rows->count > 0) {
        memmove(rows->rows, rows->rows + first, (size_t)n * sizeof *rows->rows);
    }
    rows->count = n;
}

/* Which key a sort or distinct goes by. */
struct key_order {
    int32_t column; /* of the first key; the others follow */
    bool descending;
    bool nulls_first;
};
static struct key_order order_now; /* of the sort that runs */

static int64_t column_value(const struct sim_row *row, int32_t column)
{
    return column == 0 ? row->k : column == 1 ? row->v : row->s;
}

static int compare_by_order(const void *left, const void *right)
{
    for (int32_t i = 0; i < 3; i++) {
        const int32_t column = (order_now.column + i) % 3;
        const int64_t a = column_value(left, column);
        const int64_t b = column_value(right, column);
        if (a == b) {
            continue;
        }
        if (a < 0 || b < 0) { /* a null */
            return (a < 0) == order_now.nulls_first ? -1 : 1;
        }
        return (a < b) != order_now.descending ? -1 : 1;
    }
    return 0;
}

static void apply_sort(struct sim_rows *rows, struct key_order order)
{
    order_now = order;
    if (rows->count > 0) {
        qsort(rows->rows, (size_t)rows->count, sizeof *rows->rows, compare_by_order);
    }
    if (rows->certainty == SIM_BAG) {
        rows->certainty = SIM_ORDERED;
    }
}

static void apply_group(struct sim_rows *rows)
{
    struct sim_rows groups = {.certainty = rows->certainty};
    weaken(&groups, SIM_BAG);
    after_choice(&groups);
    for (int64_t i = 0; i < rows->count; i++) {
        const struct sim_row *row = &rows->rows[i];
        struct sim_row *group = NULL;
        for (int64_t g = 0; g < groups.count && group == NULL; g++) {
            group = groups.rows[g].k == row->k ? &groups.rows[g] : NULL;
        }
        if (group == NULL) {
            sim_rows_add(&groups, *row);
            continue;
        }
        group->v = row->v < 0 ? group->v : (group->v < 0 ? 0 : group->v) + row->v;
        group->s = row->s > group->s ? row->s : group->s;
    }
    sim_rows_free(rows);
    *rows = groups;
}

/* by_key: one row of each k, the first; else equal rows once. */
static void apply_distinct(struct sim_rows *rows, bool by_key)
{
    int64_t n = 0;
    for (int64_t i = 0; i < rows->count; i++) {
        bool is_new = true;
        for (int64_t j = 0; j < n && is_new; j++) {
            is_new = by_key ? rows->rows[j].k != rows->rows[i].k
                            : compare_rows(&rows->rows[j], &rows->rows[i]) != 0;
        }
        if (is_new) {
            rows->rows[n++] = rows->rows[i];
        }
    }
    rows->count = n;
    after_choice(rows);
    if (by_key && rows->certainty == SIM_BAG) {
        rows->certainty = SIM_COUNT; /* the first of each key is any */
    }
    weaken(rows, SIM_BAG);
}

/* ---- plans: builders that take over their inputs ---- */

#define BUILD(expr)                                                \
    do {                                                           \
        struct gar_error build_err = GAR_ERROR_INIT;               \
        if ((expr) < 0) {                                          \
            sim_fail("a plan was refused: %s", build_err.message); \
        }                                                          \
    } while (0)

static struct gar_expr *col(const char *name)
{
    struct gar_expr *e = NULL;
    BUILD(gar_expr_new_column(name, &e, &build_err));
    return e;
}

static struct gar_expr *call(const char *name, struct gar_expr *a, struct gar_expr *b,
                             const char *as)
{
    struct gar_expr *args[2] = {a, b};
    struct gar_expr *e = NULL;
    BUILD(gar_expr_new_call_by_name(name, args, b == NULL ? 1 : 2, &e, &build_err));
    gar_expr_unref(a);
    gar_expr_unref(b);
    if (as != NULL) {
        struct gar_expr *inner = e;
        BUILD(gar_expr_new_alias(inner, as, &e, &build_err));
        gar_expr_unref(inner);
    }
    return e;
}

static struct gar_expr *number(int64_t value)
{
    const struct gar_value v = {.type = gar_type_of(GAR_INT64), .is_valid = true, .i64 = value};
    struct gar_expr *e = NULL;
    BUILD(gar_expr_new_literal(&v, &e, &build_err));
    return e;
}

static struct gar_plan *plan_filter(struct gar_plan *input, int64_t bound)
{
    struct gar_expr *predicate = call("greater", col("v"), number(bound), NULL);
    struct gar_plan *plan = NULL;
    BUILD(gar_plan_filter(input, predicate, &plan, &build_err));
    gar_expr_unref(predicate);
    gar_plan_unref(input);
    return plan;
}

static struct gar_plan *plan_add(struct gar_plan *input, int64_t more)
{
    struct gar_expr *exprs[3] = {col("k"), call("add", col("v"), number(more), "v"), col("s")};
    struct gar_plan *plan = NULL;
    BUILD(gar_plan_project(input, exprs, 3, &plan, &build_err));
    for (int64_t i = 0; i < 3; i++) {
        gar_expr_unref(exprs[i]);
    }
    gar_plan_unref(input);
    return plan;
}

static struct gar_plan *plan_limit(struct gar_plan *input, int64_t offset, int64_t limit)
{
    struct gar_plan *plan = NULL;
    BUILD(gar_plan_limit(input, offset, limit, &plan, &build_err));
    gar_plan_unref(input);
    return plan;
}

static struct gar_plan *plan_sort(struct gar_plan *input, struct key_order order, int64_t limit)
{
    static const char *const names[3] = {"k", "v", "s"};
    struct gar_expr *keys[3];
    bool descending[3];
    bool nulls_first[3];
    for (int32_t i = 0; i < 3; i++) {
        keys[i] = col(names[(order.column + i) % 3]);
        descending[i] = order.descending;
        nulls_first[i] = order.nulls_first;
    }
    struct gar_plan *plan = NULL;
    BUILD(gar_plan_sort(input, keys, descending, nulls_first, 3, limit, &plan, &build_err));
    for (int64_t i = 0; i < 3; i++) {
        gar_expr_unref(keys[i]);
    }
    gar_plan_unref(input);
    return plan;
}

static struct gar_plan *plan_group(struct gar_plan *input)
{
    struct gar_expr *keys[1] = {col("k")};
    struct gar_expr *aggs[2] = {call("sum", col("v"), NULL, "v"), call("max", col("s"), NULL, "s")};
    struct gar_plan *plan = NULL;
    BUILD(gar_plan_aggregate(input, keys, 1, aggs, 2, &plan, &build_err));
    gar_expr_unref(keys[0]);
    gar_expr_unref(aggs[0]);
    gar_expr_unref(aggs[1]);
    gar_plan_unref(input);
    return plan;
}

static struct gar_plan *plan_distinct(struct gar_plan *input, bool by_key)
{
    struct gar_expr *keys[1] = {by_key ? col("k") : NULL};
    struct gar_plan *plan = NULL;
    BUILD(gar_plan_distinct(input, keys, by_key ? 1 : 0, &plan, &build_err));
    gar_expr_unref(keys[0]);
    gar_plan_unref(input);
    return plan;
}

/* ---- random plans ---- */

struct drawer {
    struct sim_rng *rng;
    struct gar_scan_provider *const *providers;
    const struct sim_rows *rows;
    int64_t count;
    bool is_ordered;
};

static struct gar_plan *draw(struct drawer *drawer, int32_t depth, struct sim_rows *out);

static struct gar_plan *draw_scan(struct drawer *drawer, struct sim_rows *out)
{
    const int64_t i = sim_below(drawer->rng, drawer->count);
    struct gar_plan *plan = NULL;
    BUILD(gar_plan_scan(drawer->providers[i], &plan, &build_err));
    *out = (struct sim_rows){.certainty = drawer->is_ordered ? SIM_ORDERED : SIM_BAG};
    for (int64_t r = 0; r < drawer->rows[i].count; r++) {
        sim_rows_add(out, drawer->rows[i].rows[r]);
    }
    sim_trace("scan of table %d, %lld rows", (int)i, (long long)out->count);
    return plan;
}

static struct gar_plan *draw_concat(struct drawer *drawer, int32_t depth, struct sim_rows *out)
{
    struct gar_plan *inputs[2];
    struct gar_plan *plan = NULL;
    struct sim_rows other = {0};
    inputs[0] = draw(drawer, depth + 2, out);
    inputs[1] = draw(drawer, depth + 2, &other);
    for (int64_t i = 0; i < other.count; i++) {
        sim_rows_add(out, other.rows[i]);
    }
    weaken(out, other.certainty);
    weaken(out, drawer->is_ordered ? SIM_ORDERED : SIM_BAG);
    sim_rows_free(&other);
    BUILD(gar_plan_concat(inputs, 2, &plan, &build_err));
    gar_plan_unref(inputs[0]);
    gar_plan_unref(inputs[1]);
    sim_trace("concat");
    return plan;
}

static struct gar_plan *draw_sort(struct drawer *drawer, struct gar_plan *input,
                                  struct sim_rows *out)
{
    struct sim_rng *rng = drawer->rng;
    const struct key_order order = {.column = (int32_t)sim_below(rng, 3),
                                    .descending = sim_chance(rng, 50),
                                    .nulls_first = sim_chance(rng, 50)};
    const int64_t limit = sim_chance(rng, 30) ? sim_below(rng, 40) : -1;
    sim_trace("sort by column %d, limit %lld", (int)order.column, (long long)limit);
    apply_sort(out, order);
    if (limit >= 0) {
        apply_limit(out, 0, limit);
    }
    return plan_sort(input, order, limit);
}

static struct gar_plan *draw(struct drawer *drawer, int32_t depth, struct sim_rows *out)
{
    struct sim_rng *rng = drawer->rng;
    if (depth >= DEPTH_MAX || sim_chance(rng, 20)) {
        return draw_scan(drawer, out);
    }
    if (sim_chance(rng, 15)) {
        return draw_concat(drawer, depth, out);
    }
    struct gar_plan *input = draw(drawer, depth + 1, out);
    const int64_t bound = sim_below(rng, VALUES);
    const int64_t offset = sim_chance(rng, 50) ? 0 : sim_below(rng, 30);
    const int64_t limit = sim_chance(rng, 15) ? -1 : sim_below(rng, 60);
    const bool by_key = sim_chance(rng, 50);
    switch (sim_below(rng, 6)) {
    case 0:
        sim_trace("filter v > %lld", (long long)bound);
        apply_filter(out, bound);
        return plan_filter(input, bound);
    case 1:
        sim_trace("project v + %lld", (long long)bound);
        for (int64_t i = 0; i < out->count; i++) {
            out->rows[i].v += out->rows[i].v < 0 ? 0 : bound;
        }
        return plan_add(input, bound);
    case 2:
        sim_trace("limit %lld offset %lld", (long long)limit, (long long)offset);
        apply_limit(out, offset, limit);
        return plan_limit(input, offset, limit);
    case 3: return draw_sort(drawer, input, out);
    case 4:
        sim_trace("group by k");
        apply_group(out);
        return plan_group(input);
    default:
        sim_trace("distinct %s", by_key ? "k" : "all");
        apply_distinct(out, by_key);
        return plan_distinct(input, by_key);
    }
}

struct gar_plan *sim_plan_random(struct sim_rng *rng, struct gar_scan_provider *const *providers,
                                 const struct sim_rows *rows, int64_t count, bool is_ordered,
                                 struct sim_rows *out)
{
    struct drawer drawer = {
        .rng = rng, .providers = providers, .rows = rows, .count = count, .is_ordered = is_ordered};
    struct gar_plan *plan = draw(&drawer, 0, out);
    if (sim_chance(rng, 50)) {
        struct gar_plan *better = NULL;
        BUILD(gar_optimize(plan, NULL, NULL, &better, &build_err));
        gar_plan_unref(plan);
        plan = better;
        sim_trace("optimized");
    }
    return plan;
}

struct gar_plan *sim_plan_first(struct gar_scan_provider *provider, const struct sim_rows *rows,
                                int64_t n, bool is_ordered, struct sim_rows *out)
{
    struct gar_plan *plan = NULL;
    BUILD(gar_plan_scan(provider, &plan, &build_err));
    *out = (struct sim_rows){.certainty = is_ordered ? SIM_ORDERED : SIM_COUNT};
    for (int64_t i = 0; i < n; i++) {
        sim_rows_add(out, rows->rows[i]);
    }
    sim_trace("the first %lld rows", (long long)n);
    return plan_limit(plan, 0, n);
}
