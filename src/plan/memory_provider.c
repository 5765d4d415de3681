/* SPDX-License-Identifier: Apache-2.0 */
/* Scans of batches in memory and of integer ranges.
 *
 * Both cut their rows into pieces of at most batch_rows. A piece is one unit and one batch: columns are shared or
 * sliced, never copied; a range piece is written when it is decoded. */
#include <string.h>

#include "base/alloc.h"
#include "plan/provider.h"

/* A run of rows; decoding moves its start. */
struct gar_unit {
    int64_t source; /* number of the batch; 0 for ranges */
    int64_t offset;
    int64_t rows;
};

/* ---- what both share ---- */

/* The fields of `schema` at these positions as a schema of their own. */
static enum gar_status pick_schema(const struct gar_schema *schema, const int64_t *columns,
                                   int64_t count, struct gar_schema **out, struct gar_error *err)
{
    struct gar_field *fields = gar_calloc(count, (int64_t)sizeof *fields);
    if (fields == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *fields);
    }
    for (int64_t i = 0; i < count; i++) {
        fields[i] = schema->fields[columns[i]];
    }
    const enum gar_status status = gar_schema_new(fields, count, true, out, err);
    gar_free(fields);
    return status;
}

static enum gar_status new_unit(int64_t source, int64_t offset, int64_t rows, struct gar_unit **out,
                                struct gar_error *err)
{
    struct gar_unit *unit = gar_malloc((int64_t)sizeof *unit);
    if (unit == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *unit);
    }
    *unit = (struct gar_unit){.source = source, .offset = offset, .rows = rows};
    *out = unit;
    return GAR_OK;
}

static void free_unit(struct gar_scan *scan, struct gar_unit *unit)
{
    (void)scan;
    gar_free(unit);
}

/* ---- batches in memory ---- */

struct memory_provider {
    struct gar_scan_provider base;
    struct gar_batch **batches; /* owned, without selections */
    int64_t count;
    int64_t rows;
};

struct memory_scan {
    struct gar_scan base;
    struct memory_provider *provider; /* owned reference */
    int64_t *columns;                 /* owned; base.schema->count items */
    bool is_identity;                 /* all columns in order */
    int64_t batch_rows;
    int64_t rows_left; /* of the limit; INT64_MAX without */
    int64_t next_batch;
    int64_t next_row; /* in that batch */
};

static enum gar_status memory_next(struct gar_scan *base, struct gar_unit **out,
                                   struct gar_error *err)
{
    struct memory_scan *scan = (struct memory_scan *)base;
    const struct memory_provider *provider = scan->provider;
    while (scan->next_batch < provider->count &&
           scan->next_row >= provider->batches[scan->next_batch]->rows) {
        scan->next_batch++;
        scan->next_row = 0;
    }
    if (scan->next_batch >= provider->count || scan->rows_left <= 0) {
        return GAR_EOF;
    }
    int64_t rows =
        gar_min_i64(provider->batches[scan->next_batch]->rows - scan->next_row, scan->batch_rows);
    rows = gar_min_i64(rows, scan->rows_left);
    GAR_TRY(new_unit(scan->next_batch, scan->next_row, rows, out, err));
    scan->next_row += rows;
    scan->rows_left -= rows;
    return GAR_OK;
}

static enum gar_status slice_columns(const struct memory_scan *scan, const struct gar_batch *batch,
                                     int64_t offset, int64_t rows, struct gar_column **columns,
                                     struct gar_error *err)
{
    for (int64_t i = 0; i < scan->base.schema->count; i++) {
        const struct gar_column *column = batch->columns[scan->columns[i]];
        if (rows == batch->rows) {
            columns[i] = gar_column_ref(column);
        } else {
            GAR_TRY(gar_column_slice(column, offset, rows, &columns[i], err));
        }
    }
    return GAR_OK;
}

static enum gar_status take_rows(const struct memory_scan *scan, const struct gar_batch *batch,
                                 int64_t offset, int64_t rows, struct gar_batch **out,
                                 struct gar_error *err)
{
    if (scan->is_identity) {
        if (rows == batch->rows) {
            *out = gar_batch_ref(batch);
            return GAR_OK;
        }
        return gar_batch_slice(batch, offset, rows, out, err);
    }
    const int64_t count = scan->base.schema->count;
    struct gar_column **columns = gar_calloc(count, (int64_t)sizeof *columns);
    if (columns == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *columns);
    }
    enum gar_status status = slice_columns(scan, batch, offset, rows, columns, err);
    if (status >= 0) {
        status = gar_batch_new(scan->base.schema, columns, rows, out, err);
    }
    if (status < 0) {
        for (int64_t i = 0; i < count; i++) {
            gar_column_unref(columns[i]);
        }
    } else {
        gar_batch_set_origin(*out, batch->first_row + offset);
    }
    gar_free(columns);
    return status;
}

/* The rows of a unit from *done on, at most max_rows. */
static enum gar_status memory_decode(struct gar_scan *base, struct gar_unit *unit, void *worker,
                                     int64_t max_rows, struct gar_batch **out,
                                     struct gar_error *err)
{
    (void)worker;
    const struct memory_scan *scan = (const struct memory_scan *)base;
    if (unit->rows == 0) {
        return GAR_EOF;
    }
    const int64_t rows = max_rows > 0 ? gar_min_i64(unit->rows, max_rows) : unit->rows;
    GAR_TRY(take_rows(scan, scan->provider->batches[unit->source], unit->offset, rows, out, err));
    unit->offset += rows;
    unit->rows -= rows;
    return GAR_OK;
}

static void memory_scan_free(struct gar_scan *base)
{
    struct memory_scan *scan = (struct memory_scan *)base;
    if (scan != NULL) {
        gar_schema_unref(scan->base.schema);
        gar_free(scan->columns);
        gar_scan_provider_unref(&scan->provider->base);
        gar_free(scan);
    }
}

static const struct gar_scan_vtable memory_scan_vtable = {
    .next = memory_next, .decode = memory_decode, .unit_free = free_unit, .free = memory_scan_free};

static enum gar_status fill_memory_scan(struct memory_scan *scan,
                                        const struct gar_scan_request *request,
                                        struct gar_error *err)
{
    const struct gar_schema *schema = scan->provider->base.schema;
    const int64_t count = request->column_count;
    scan->columns = gar_calloc(count, (int64_t)sizeof *scan->columns);
    if (scan->columns == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *scan->columns);
    }
    scan->is_identity = count == schema->count;
    for (int64_t i = 0; i < count; i++) {
        scan->columns[i] = request->columns[i];
        scan->is_identity = scan->is_identity && request->columns[i] == i;
    }
    if (scan->is_identity) {
        scan->base.schema = gar_schema_ref(schema);
        return GAR_OK;
    }
    return pick_schema(schema, request->columns, count, &scan->base.schema, err);
}

/* Begin behind the first `skip` rows. */
static void skip_rows(struct memory_scan *scan, int64_t skip)
{
    skip = gar_min_i64(skip, scan->provider->rows);
    scan->base.rows_skipped = skip;
    scan->rows_left = scan->rows_left == INT64_MAX ? INT64_MAX : scan->rows_left - skip;
    while (scan->next_batch < scan->provider->count &&
           skip >= scan->provider->batches[scan->next_batch]->rows) {
        skip -= scan->provider->batches[scan->next_batch++]->rows;
    }
    scan->next_row = skip;
}

static enum gar_status memory_open(struct gar_scan_provider *base,
                                   const struct gar_scan_request *request, struct gar_scan **out,
                                   struct gar_error *err)
{
    struct memory_scan *scan = gar_calloc(1, (int64_t)sizeof *scan);
    if (scan == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *scan);
    }
    scan->base.vtable = &memory_scan_vtable;
    scan->provider = (struct memory_provider *)gar_scan_provider_ref(base);
    scan->batch_rows = request->batch_rows > 0 ? request->batch_rows : INT64_MAX;
    scan->rows_left = request->limit >= 0 && request->filter == NULL ? request->limit : INT64_MAX;
    skip_rows(scan, request->filter == NULL ? request->skip : 0);
    scan->base.rows_exact = gar_max_i64(
        gar_min_i64(scan->provider->rows - scan->base.rows_skipped, scan->rows_left), 0);
    const enum gar_status status = fill_memory_scan(scan, request, err);
    if (status < 0) {
        memory_scan_free(&scan->base);
        return status;
    }
    *out = &scan->base;
    return GAR_OK;
}

static int64_t memory_row_count(struct gar_scan_provider *base)
{
    return ((struct memory_provider *)base)->rows;
}

static void memory_print(const struct gar_scan_provider *base, struct gar_strbuf *out)
{
    const struct memory_provider *provider = (const struct memory_provider *)base;
    gar_strbuf_printf(out, "memory (%lld rows)", (long long)provider->rows);
}

static void memory_free(struct gar_scan_provider *base)
{
    struct memory_provider *provider = (struct memory_provider *)base;
    for (int64_t i = 0; i < provider->count; i++) {
        gar_batch_unref(provider->batches[i]);
    }
    gar_free(provider->batches);
    gar_schema_unref(provider->base.schema);
    gar_free(provider);
}

static const struct gar_scan_provider_vtable memory_vtable = {
    .open = memory_open, .row_count = memory_row_count, .print = memory_print, .free = memory_free};

static enum gar_status take_batches(struct memory_provider *provider,
                                    struct gar_batch *const *batches, int64_t count,
                                    struct gar_error *err)
{
    provider->batches = gar_calloc(count, (int64_t)sizeof *provider->batches);
    if (provider->batches == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *provider->batches);
    }
    for (int64_t i = 0; i < count; i++) {
        if (!gar_schema_equal(batches[i]->schema, provider->base.schema)) {
            return gar_error_set(err, GAR_ERR_TYPE, "batch %lld has another schema than the table",
                                 (long long)i);
        }
        struct gar_batch *dense = NULL;
        GAR_TRY(gar_batch_gather(batches[i], gar_memory_system(), &dense, err));
        const enum gar_status status =
            gar_batch_at_row(dense, provider->rows, &provider->batches[i], err);
        gar_batch_unref(dense);
        GAR_TRY(status);
        provider->count = i + 1;
        provider->rows += provider->batches[i]->rows;
        provider->base.size_hint_bytes += gar_batch_bytes(provider->batches[i]);
    }
    provider->base.size_hint_rows = provider->rows;
    return GAR_OK;
}

enum gar_status gar_memory_provider_new(struct gar_schema *schema, struct gar_batch *const *batches,
                                        int64_t count, struct gar_scan_provider **out,
                                        struct gar_error *err)
{
    struct memory_provider *provider = gar_calloc(1, (int64_t)sizeof *provider);
    if (provider == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *provider);
    }
    provider->base.vtable = &memory_vtable;
    provider->base.refs = 1;
    provider->base.schema = gar_schema_ref(schema);
    const enum gar_status status = take_batches(provider, batches, count, err);
    if (status < 0) {
        memory_free(&provider->base);
        return status;
    }
    *out = &provider->base;
    return GAR_OK;
}

/* ---- ranges ---- */

struct range_provider {
    struct gar_scan_provider base;
    int64_t start;
    int64_t step;
    int64_t rows;
};

struct range_scan {
    struct gar_scan base;
    struct range_provider *provider; /* owned reference */
    struct gar_memory *memory;       /* borrowed */
    int64_t batch_rows;
    int64_t rows; /* the limit counted in */
    int64_t next_row;
};

enum { RANGE_UNIT_ROWS = 1 << 17 };

static enum gar_status range_next(struct gar_scan *base, struct gar_unit **out,
                                  struct gar_error *err)
{
    struct range_scan *scan = (struct range_scan *)base;
    const int64_t rows = gar_min_i64(scan->rows - scan->next_row, scan->batch_rows);
    if (rows <= 0) {
        return GAR_EOF;
    }
    GAR_TRY(new_unit(0, scan->next_row, rows, out, err));
    scan->next_row += rows;
    return GAR_OK;
}

static enum gar_status range_column(const struct range_scan *scan, int64_t offset, int64_t rows,
                                    struct gar_column **out, struct gar_error *err)
{
    GAR_TRY(gar_column_new(scan->memory, gar_type_of(GAR_INT64), rows, false, out, err));
    int64_t *values = gar_column_values_mut(*out);
    /* Unsigned, because the products wrap on the way to a value that does not. */
    const uint64_t first =
        (uint64_t)scan->provider->start + (uint64_t)offset * (uint64_t)scan->provider->step;
    for (int64_t i = 0; i < rows; i++) {
        values[i] = (int64_t)(first + (uint64_t)i * (uint64_t)scan->provider->step);
    }
    (*out)->null_count = 0;
    return GAR_OK;
}

static enum gar_status range_decode(struct gar_scan *base, struct gar_unit *unit, void *worker,
                                    int64_t max_rows, struct gar_batch **out, struct gar_error *err)
{
    (void)worker;
    const struct range_scan *scan = (const struct range_scan *)base;
    if (unit->rows == 0) {
        return GAR_EOF;
    }
    const int64_t rows = max_rows > 0 ? gar_min_i64(unit->rows, max_rows) : unit->rows;
    const int64_t count = scan->base.schema->count; /* the one column, no, one or more times */
    struct gar_column **columns = gar_calloc(count, (int64_t)sizeof *columns);
    if (columns == NULL) {
        return gar_error_nomem(err, count * (int64_t)sizeof *columns);
    }
    enum gar_status status =
        count > 0 ? range_column(scan, unit->offset, rows, &columns[0], err) : GAR_OK;
    for (int64_t i = 1; i < count && status >= 0; i++) {
        columns[i] = gar_column_ref(columns[0]);
    }
    if (status >= 0) {
        status = gar_batch_new(scan->base.schema, columns, rows, out, err);
    }
    if (status < 0) {
        for (int64_t i = 0; i < count; i++) {
            gar_column_unref(columns[i]);
        }
    } else {
        gar_batch_set_origin(*out, unit->offset);
        unit->offset += rows;
        unit->rows -= rows;
    }
    gar_free(columns);
    return status;
}

static void range_scan_free(struct gar_scan *base)
{
    struct range_scan *scan = (struct range_scan *)base;
    if (scan != NULL) {
        gar_schema_unref(scan->base.schema);
        gar_scan_provider_unref(&scan->provider->base);
        gar_free(scan);
    }
}

static const struct gar_scan_vtable range_scan_vtable = {
    .next = range_next, .decode = range_decode, .unit_free = free_unit, .free = range_scan_free};

static enum gar_status range_open(struct gar_scan_provider *base,
                                  const struct gar_scan_request *request, struct gar_scan **out,
                                  struct gar_error *err)
{
    struct range_scan *scan = gar_calloc(1, (int64_t)sizeof *scan);
    if (scan == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *scan);
    }
    scan->base.vtable = &range_scan_vtable;
    scan->provider = (struct range_provider *)gar_scan_provider_ref(base);
    scan->memory = request->memory;
    scan->batch_rows = request->batch_rows > 0 ? request->batch_rows : RANGE_UNIT_ROWS;
    scan->rows = scan->provider->rows;
    if (request->limit >= 0 && request->filter == NULL) {
        scan->rows = gar_min_i64(scan->rows, request->limit);
    }
    if (request->filter == NULL) {
        scan->next_row = gar_min_i64(request->skip, scan->rows);
    }
    scan->base.rows_skipped = scan->next_row;
    scan->base.rows_exact = scan->rows - scan->next_row;
    const enum gar_status status =
        pick_schema(base->schema, request->columns, request->column_count, &scan->base.schema, err);
    if (status < 0) {
        range_scan_free(&scan->base);
        return status;
    }
    *out = &scan->base;
    return GAR_OK;
}

static int64_t range_row_count(struct gar_scan_provider *base)
{
    return ((struct range_provider *)base)->rows;
}

static void range_print(const struct gar_scan_provider *base, struct gar_strbuf *out)
{
    const struct range_provider *provider = (const struct range_provider *)base;
    gar_strbuf_printf(out, "range from %lld step %lld (%lld rows)", (long long)provider->start,
                      (long long)provider->step, (long long)provider->rows);
}

static void range_free(struct gar_scan_provider *base)
{
    gar_schema_unref(base->schema);
    gar_free(base);
}

static const struct gar_scan_provider_vtable range_vtable = {
    .open = range_open, .row_count = range_row_count, .print = range_print, .free = range_free};

/* How many values lie in the range. False when they are more than INT64_MAX. */
static bool count_range(int64_t start, int64_t end, int64_t step, int64_t *out)
{
    const bool is_empty = step > 0 ? start >= end : start <= end;
    if (is_empty) {
        *out = 0;
        return true;
    }
    const uint64_t span =
        step > 0 ? (uint64_t)end - (uint64_t)start : (uint64_t)start - (uint64_t)end;
    const uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    const uint64_t rows = (span - 1) / stride + 1;
    *out = (int64_t)rows;
    return rows <= INT64_MAX;
}

enum gar_status gar_range_provider_new(const char *name, int64_t start, int64_t end, int64_t step,
                                       struct gar_scan_provider **out, struct gar_error *err)
{
    if (step == 0) {
        return gar_error_set(err, GAR_ERR_VALUE, "the step of a range must not be 0");
    }
    int64_t rows = 0;
    if (!count_range(start, end, step, &rows)) {
        return gar_error_set(err, GAR_ERR_VALUE, "a range from %lld to %lld has too many rows",
                             (long long)start, (long long)end);
    }
    struct range_provider *provider = gar_calloc(1, (int64_t)sizeof *provider);
    char *field_name = gar_strdup(name);
    enum gar_status status = GAR_OK;
    if (provider == NULL || field_name == NULL) {
        status = gar_error_nomem(err, (int64_t)sizeof *provider);
    } else {
        provider->base.vtable = &range_vtable;
        provider->base.refs = 1;
        provider->base.size_hint_rows = provider->rows = rows;
        provider->base.size_hint_bytes = rows > INT64_MAX / 8 ? INT64_MAX : rows * 8;
        provider->start = start;
        provider->step = step;
        const struct gar_field field = {
            .name = field_name, .type = gar_type_of(GAR_INT64), .nullable = false};
        status = gar_schema_new(&field, 1, false, &provider->base.schema, err);
    }
    gar_free(field_name);
    if (status < 0) {
        gar_free(provider);
        return status;
    }
    *out = &provider->base;
    return GAR_OK;
}
