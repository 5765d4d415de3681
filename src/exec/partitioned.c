/* SPDX-License-Identifier: Apache-2.0 */
/* Partitioned rows: dividing, keeping, and reading again. */
#include "exec/partitioned.h"

#include <string.h>

#include "arrow/gather.h"
#include "base/alloc.h"
#include "exec/spilled.h"

enum {
    GATHER_ROWS = 1 << 16, /* of a worker, before they are divided */
    GATHER_BYTES = 4 << 20,
    GATHER_BYTES_MIN = 128 << 10,
    EVICT_STEP = 2,
    SHIFT_MAX = 4 * GAR_PARTITION_BITS,
    OTHERS_BYTES_MAX = 512 << 20, /* that an operator leaves to others */
};

/* Rows of one partition that one worker put away. */
struct pieces {
    struct gar_batch **items; /* owned; those in memory */
    int64_t count;
    int64_t capacity;
    int64_t rows; /* of them */
    int64_t bytes;
    struct gar_spilled run; /* those on disk */
};

/* A batch as it was added. */
struct added {
    struct gar_column **columns; /* owned */
    int64_t rows;
};

struct worker {
    struct added *added; /* owned */
    int64_t count;
    int64_t capacity;
    int64_t rows;
    int64_t bytes;
    uint32_t *hashes; /* owned; of all rows added */
    int64_t hash_capacity;
    struct pieces pieces[GAR_PARTITIONS];
};

struct gar_partitioned {
    struct gar_query *query;   /* borrowed */
    struct gar_schema *schema; /* borrowed */
    struct gar_memory *memory; /* borrowed */
    int32_t shift;
    int32_t resident; /* atomic */
    int64_t overhead;
    int64_t rows_in_memory;  /* atomic */
    struct worker **workers; /* owned; NULL where a worker had nothing to do */
    int32_t worker_count;
};

enum gar_status gar_partitioned_new(struct gar_query *query, struct gar_schema *schema,
                                    int32_t shift, int32_t resident, int64_t overhead,
                                    struct gar_memory *memory, struct gar_partitioned **out,
                                    struct gar_error *err)
{
    struct gar_partitioned *parts = (struct gar_partitioned *)gar_calloc(1, (int64_t)sizeof *parts);
    if (parts == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *parts);
    }
    parts->workers = (struct worker **)gar_calloc(query->workers, (int64_t)sizeof(struct worker *));
    if (parts->workers == NULL) {
        gar_free(parts);
        return gar_error_nomem(err, query->workers * 8);
    }
    parts->query = query;
    parts->schema = schema;
    parts->memory = memory;
    parts->shift = shift;
    parts->resident = resident;
    parts->overhead = overhead;
    parts->worker_count = query->workers;
    *out = parts;
    return GAR_OK;
}

static void free_columns(struct gar_column **columns, int64_t count)
{
    for (int64_t i = 0; columns != NULL && i < count; i++) {
        gar_column_unref(columns[i]);
    }
    gar_free(columns);
}

static void drop_added(const struct gar_partitioned *parts, struct worker *w)
{
    for (int64_t i = 0; i < w->count; i++) {
        free_columns(w->added[i].columns, parts->schema->count);
    }
    w->count = w->rows = w->bytes = 0;
}

static void drop_pieces(struct pieces *pieces)
{
    for (int64_t i = 0; i < pieces->count; i++) {
        gar_batch_unref(pieces->items[i]);
    }
    gar_free(pieces->items);
    gar_spilled_destroy(&pieces->run);
    memset(pieces, 0, sizeof *pieces);
}

void gar_partitioned_free(struct gar_partitioned *parts)
{
    for (int32_t i = 0; parts != NULL && i < parts->worker_count; i++) {
        struct worker *w = parts->workers[i];
        if (w == NULL) {
            continue;
        }
        drop_added(parts, w);
        for (int32_t p = 0; p < GAR_PARTITIONS; p++) {
            drop_pieces(&w->pieces[p]);
        }
        gar_free(w->added);
        gar_free(w->hashes);
        gar_free(w);
    }
    if (parts != NULL) {
        gar_free(parts->workers);
        gar_free(parts);
    }
}

void gar_partitioned_evict(struct gar_partitioned *parts, int32_t resident)
{
    int32_t now = gar_partitioned_resident(parts);
    while (resident < now && !__atomic_compare_exchange_n(&parts->resident, &now, resident, true,
                                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

int32_t gar_partitioned_resident(const struct gar_partitioned *parts)
{
    return __atomic_load_n(&parts->resident, __ATOMIC_RELAXED);
}

/* ---- dividing ---- */

/* A batch (moved) of the partition is kept in memory. */
static enum gar_status keep(struct gar_partitioned *parts, struct pieces *pieces,
                            struct gar_batch *batch, struct gar_error *err)
{
    const enum gar_status status = gar_grow((void **)&pieces->items, &pieces->capacity,
                                            pieces->count + 1, (int64_t)sizeof *pieces->items, err);
    if (status < 0) {
        gar_batch_unref(batch);
        return status;
    }
    pieces->items[pieces->count++] = batch;
    pieces->rows += batch->rows;
    pieces->bytes += gar_batch_bytes(batch);
    (void)__atomic_fetch_add(&parts->rows_in_memory, batch->rows, __ATOMIC_RELAXED);
    return GAR_OK;
}

/* A batch of the partition goes to disk. */
static enum gar_status write_batch(struct gar_partitioned *parts, struct pieces *pieces,
                                   const struct gar_batch *batch, struct gar_error *err)
{
    if (pieces->run.schema == NULL) {
        gar_spilled_init(&pieces->run, parts->query->spill, parts->schema);
    }
    return gar_spilled_add(&pieces->run, batch, parts->memory, err);
}

/* What the worker holds of partitions that are not resident any more goes to disk. */
static enum gar_status write_evicted(struct gar_partitioned *parts, struct worker *w,
                                     struct gar_error *err)
{
    for (int32_t p = gar_partitioned_resident(parts); p < GAR_PARTITIONS; p++) {
        struct pieces *pieces = &w->pieces[p];
        (void)__atomic_fetch_sub(&parts->rows_in_memory, pieces->rows, __ATOMIC_RELAXED);
        pieces->rows = pieces->bytes = 0;
        while (pieces->count > 0) {
            struct gar_batch *batch = pieces->items[--pieces->count];
            const enum gar_status status = write_batch(parts, pieces, batch, err);
            gar_batch_unref(batch);
            GAR_TRY(status);
        }
    }
    return GAR_OK;
}

/* When it gets short, a few partitions less stay. */
static void look_at_room(struct gar_partitioned *parts)
{
    const int32_t resident = gar_partitioned_resident(parts);
    const int64_t rows = __atomic_load_n(&parts->rows_in_memory, __ATOMIC_RELAXED);
    if (resident > 0 && gar_query_is_tight(parts->query, parts->shift, rows * parts->overhead)) {
        gar_partitioned_evict(parts, resident > EVICT_STEP ? resident - EVICT_STEP : 0);
    }
}

/* Column c of all that was added. */
static enum gar_status whole_column(const struct gar_partitioned *parts, const struct worker *w,
                                    int64_t c, struct gar_column **scratch, struct gar_column **out,
                                    struct gar_error *err)
{
    if (w->count == 1) {
        *out = gar_column_ref(w->added[0].columns[c]);
        return GAR_OK;
    }
    for (int64_t i = 0; i < w->count; i++) {
        scratch[i] = w->added[i].columns[c];
    }
    return gar_column_concat(scratch, w->count, parts->schema->fields[c].type, parts->memory, out,
                             err);
}

/* Where each partition's rows lie among `order`, the rows by partition. */
struct division {
    uint32_t *order; /* owned */
    int64_t starts[GAR_PARTITIONS + 1];
    struct gar_column **columns; /* owned; of each partition */
    struct gar_column **scratch; /* owned */
};

static enum gar_status order_rows(const struct gar_partitioned *parts, const struct worker *w,
                                  struct division *d, struct gar_error *err)
{
    d->order = (uint32_t *)gar_malloc(w->rows * (int64_t)sizeof *d->order);
    d->columns = (struct gar_column **)gar_calloc(GAR_PARTITIONS * parts->schema->count,
                                                  (int64_t)sizeof(struct gar_column *));
    d->scratch = (struct gar_column **)gar_calloc(w->count, (int64_t)sizeof(struct gar_column *));
    if (d->order == NULL || d->columns == NULL || d->scratch == NULL) {
        return gar_error_nomem(err, w->rows * (int64_t)sizeof *d->order);
    }
    for (int64_t i = 0; i < w->rows; i++) {
        d->starts[gar_partition_of(w->hashes[i], parts->shift) + 1]++;
    }
    for (int32_t p = 0; p < GAR_PARTITIONS; p++) {
        d->starts[p + 1] += d->starts[p];
    }
    int64_t next[GAR_PARTITIONS];
    memcpy(next, d->starts, sizeof next);
    for (int64_t i = 0; i < w->rows; i++) {
        d->order[next[gar_partition_of(w->hashes[i], parts->shift)]++] = (uint32_t)i;
    }
    return GAR_OK;
}

/* Column c of every partition, without the bytes of texts of the others. */
static enum gar_status divide_column(const struct gar_partitioned *parts, const struct worker *w,
                                     int64_t c, struct division *d, struct gar_error *err)
{
    struct gar_column *whole = NULL;
    GAR_TRY(whole_column(parts, w, c, d->scratch, &whole, err));
    enum gar_status status = GAR_OK;
    for (int32_t p = 0; p < GAR_PARTITIONS && status >= 0; p++) {
        const int64_t rows = d->starts[p + 1] - d->starts[p];
        struct gar_column *part = NULL;
        if (rows > 0) {
            status =
                gar_column_gather(whole, d->order + d->starts[p], rows, parts->memory, &part, err);
        }
        if (rows > 0 && status >= 0) {
            status = gar_column_compact(part, false, parts->memory,
                                        &d->columns[p * parts->schema->count + c], err);
            gar_column_unref(part);
        }
    }
    gar_column_unref(whole);
    return status;
}

static enum gar_status divide(struct gar_partitioned *parts, struct worker *w, bool may_write,
                              struct gar_error *err)
{
    const int64_t count = parts->schema->count;
    struct division d = {.order = NULL};
    enum gar_status status = order_rows(parts, w, &d, err);
    for (int64_t c = 0; c < count && status >= 0; c++) {
        status = divide_column(parts, w, c, &d, err);
    }
    for (int32_t p = 0; p < GAR_PARTITIONS && status >= 0; p++) {
        const int64_t rows = d.starts[p + 1] - d.starts[p];
        struct gar_batch *batch = NULL;
        if (rows == 0) {
            continue;
        }
        status = gar_batch_new(parts->schema, d.columns + p * count, rows, &batch, err);
        if (status >= 0) {
            memset(d.columns + p * count, 0, (size_t)count * sizeof *d.columns);
            if (!may_write || p < gar_partitioned_resident(parts)) {
                status = keep(parts, &w->pieces[p], batch, err);
                continue;
            }
            status = write_batch(parts, &w->pieces[p], batch, err);
            gar_batch_unref(batch);
        }
    }
    free_columns(d.columns, GAR_PARTITIONS * count);
    gar_free(d.scratch);
    gar_free(d.order);
    drop_added(parts, w);
    return status;
}

static enum gar_status need_worker(struct gar_partitioned *parts, int32_t worker,
                                   struct gar_error *err)
{
    if (parts->workers[worker] == NULL) {
        parts->workers[worker] = (struct worker *)gar_calloc(1, (int64_t)sizeof(struct worker));
    }
    return parts->workers[worker] != NULL ? GAR_OK
                                          : gar_error_nomem(err, (int64_t)sizeof(struct worker));
}

static int64_t row_bytes(const struct gar_column *column, int64_t rows)
{
    const bool is_far = gar_type_is_text(column->type) && column->encoding == GAR_FLAT;
    return rows * gar_max_i64(gar_type_width(column->type), 1) +
           (is_far ? gar_column_far_bytes(column) : 0);
}

enum gar_status gar_partitioned_add(struct gar_partitioned *parts, int32_t worker,
                                    struct gar_column *const *columns, int64_t rows,
                                    const uint32_t *hashes, struct gar_error *err)
{
    const int64_t count = parts->schema->count;
    GAR_TRY(need_worker(parts, worker, err));
    struct worker *w = parts->workers[worker];
    GAR_TRY(gar_grow((void **)&w->hashes, &w->hash_capacity, w->rows + rows,
                     (int64_t)sizeof *w->hashes, err));
    GAR_TRY(
        gar_grow((void **)&w->added, &w->capacity, w->count + 1, (int64_t)sizeof *w->added, err));
    struct gar_column **kept = (struct gar_column **)gar_calloc(count, (int64_t)sizeof *kept);
    if (kept == NULL) {
        return gar_error_nomem(err, count * 8);
    }
    for (int64_t c = 0; c < count; c++) {
        kept[c] = gar_column_ref(columns[c]);
        w->bytes += row_bytes(columns[c], rows);
    }
    memcpy(w->hashes + w->rows, hashes, (size_t)rows * sizeof *hashes);
    w->added[w->count++] = (struct added){kept, rows};
    w->rows += rows;
    const int64_t most = gar_max_i64(
        gar_min_i64(gar_query_room(parts->query, 0) / (8 * parts->worker_count), GATHER_BYTES),
        GATHER_BYTES_MIN);
    if (w->rows < GATHER_ROWS && w->bytes < most) {
        return GAR_OK;
    }
    GAR_TRY(divide(parts, w, true, err));
    look_at_room(parts);
    return write_evicted(parts, w, err);
}

enum gar_status gar_partitioned_flush(struct gar_partitioned *parts, int32_t worker,
                                      struct gar_error *err)
{
    struct worker *w = parts->workers[worker];
    if (w == NULL) {
        return GAR_OK;
    }
    if (w->rows > 0) {
        GAR_TRY(divide(parts, w, true, err));
    }
    return write_evicted(parts, w, err);
}

enum gar_status gar_partitioned_settle(struct gar_partitioned *parts, struct gar_error *err)
{
    for (int32_t i = 0; i < parts->worker_count; i++) {
        struct worker *w = parts->workers[i];
        if (w != NULL && w->rows > 0) {
            GAR_TRY(divide(parts, w, false, err));
        }
    }
    return GAR_OK;
}

/* ---- reading ---- */

int64_t gar_partitioned_rows(const struct gar_partitioned *parts, int32_t partition)
{
    int64_t rows = 0;
    for (int32_t i = 0; i < parts->worker_count; i++) {
        const struct worker *w = parts->workers[i];
        rows += w != NULL ? w->pieces[partition].rows + w->pieces[partition].run.rows : 0;
    }
    return rows;
}

int64_t gar_partitioned_bytes(const struct gar_partitioned *parts, int32_t partition)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < parts->worker_count; i++) {
        const struct worker *w = parts->workers[i];
        bytes += w != NULL ? w->pieces[partition].bytes : 0;
    }
    return bytes;
}

bool gar_partitioned_is_used(const struct gar_partitioned *parts)
{
    for (int32_t i = 0; i < parts->worker_count; i++) {
        if (parts->workers[i] != NULL) {
            return true;
        }
    }
    return false;
}

struct gar_batch *gar_partitioned_take(struct gar_partitioned *parts, int32_t partition)
{
    for (int32_t i = 0; i < parts->worker_count; i++) {
        struct worker *w = parts->workers[i];
        if (w != NULL && w->pieces[partition].count > 0) {
            return w->pieces[partition].items[--w->pieces[partition].count];
        }
    }
    return NULL;
}

/* ---- as a source ---- */

struct part_source {
    struct gar_source base;
    struct gar_partitioned *parts; /* borrowed; NULL when released */
    int32_t partition;
    int32_t worker; /* of the next unit */
    int64_t next;
};

/* A unit is a batch of a worker: those in memory come first. */
static struct pieces *pieces_of(const struct part_source *source,
                                const struct gar_source_unit *unit)
{
    return &source->parts->workers[unit->part >> 32]->pieces[source->partition];
}

static enum gar_status part_next(struct gar_source *base, struct gar_query *query,
                                 struct gar_source_unit *out, struct gar_error *err)
{
    struct part_source *source = (struct part_source *)base;
    const struct gar_partitioned *parts = source->parts;
    (void)query;
    (void)err;
    for (; source->worker < parts->worker_count; source->worker++, source->next = 0) {
        const struct worker *w = parts->workers[source->worker];
        const struct pieces *pieces = w != NULL ? &w->pieces[source->partition] : NULL;
        if (pieces != NULL && source->next < pieces->count + pieces->run.count) {
            out->part = ((int64_t)source->worker << 32) | source->next++;
            return GAR_OK;
        }
    }
    return GAR_EOF;
}

static enum gar_status read_unit(const struct part_source *source, struct gar_source_unit *unit,
                                 struct gar_error *err)
{
    struct pieces *pieces = pieces_of(source, unit);
    const int64_t i = unit->part & UINT32_MAX;
    if (i < pieces->count) {
        unit->batch = gar_batch_ref(pieces->items[i]);
    } else {
        GAR_TRY(gar_spilled_read(&pieces->run, i - pieces->count, source->parts->memory,
                                 &unit->batch, err));
    }
    unit->end = unit->batch->rows;
    return GAR_OK;
}

static enum gar_status part_decode(struct gar_source *base, struct gar_source_unit *unit,
                                   int32_t worker, int64_t max_rows, struct gar_batch **out,
                                   struct gar_error *err)
{
    (void)worker;
    if (unit->batch == NULL) {
        GAR_TRY(read_unit((struct part_source *)base, unit, err));
    }
    const int64_t rows = gar_min_i64(unit->end - unit->next, max_rows);
    if (rows <= 0) {
        return GAR_EOF;
    }
    GAR_TRY(gar_batch_slice(unit->batch, unit->next, rows, out, err));
    unit->next += rows;
    return GAR_OK;
}

static void part_unit_free(struct gar_source *base, struct gar_source_unit *unit)
{
    const struct part_source *source = (const struct part_source *)(const void *)base;
    gar_batch_unref(unit->batch);
    unit->batch = NULL;
    if (source->parts == NULL) {
        return;
    }
    struct pieces *pieces = pieces_of(source, unit);
    const int64_t i = unit->part & UINT32_MAX;
    if (i < pieces->count) {
        gar_batch_unref(pieces->items[i]);
        pieces->items[i] = NULL;
    } else {
        gar_spilled_release(&pieces->run, i - pieces->count);
    }
}

static void part_release(struct gar_source *base)
{
    struct part_source *source = (struct part_source *)base;
    struct gar_partitioned *parts = source->parts;
    for (int32_t i = 0; parts != NULL && i < parts->worker_count; i++) {
        if (parts->workers[i] != NULL) {
            drop_pieces(&parts->workers[i]->pieces[source->partition]);
        }
    }
    source->parts = NULL;
}

static void part_explain(const struct gar_source *base, struct gar_strbuf *out)
{
    (void)base;
    gar_strbuf_append(out, "rows of a partition");
}

enum gar_status gar_partitioned_source(struct gar_partitioned *parts, int32_t partition, int32_t op,
                                       struct gar_source **out, struct gar_error *err)
{
    static const struct gar_source_vtable vtable = {.name = "partition",
                                                    .next = part_next,
                                                    .decode = part_decode,
                                                    .unit_free = part_unit_free,
                                                    .release = part_release,
                                                    .explain = part_explain};
    struct part_source *source =
        (struct part_source *)gar_arena_calloc(&parts->query->arena, 1, (int64_t)sizeof *source);
    if (source == NULL) {
        return gar_error_nomem(err, (int64_t)sizeof *source);
    }
    source->base.vtable = &vtable;
    source->base.op = op;
    source->parts = parts;
    source->partition = partition;
    *out = &source->base;
    return GAR_OK;
}

/* ---- when ---- */

bool gar_query_may_divide(const struct gar_query *query, int32_t shift)
{
    return shift < SHIFT_MAX && gar_query_may_spill(query);
}

static int64_t share_of_others(int64_t limit, int32_t shift)
{
    return gar_min_i64(limit / (shift == 0 ? 4 : 8), OTHERS_BYTES_MAX);
}

int64_t gar_query_room(const struct gar_query *query, int32_t shift)
{
    int64_t limit = 0;
    const int64_t room = gar_memory_room(query->memory, &limit);
    return gar_max_i64(room - share_of_others(limit, shift), 0);
}

bool gar_query_is_tight(const struct gar_query *query, int32_t shift, int64_t bytes)
{
    int64_t limit = 0;
    const int64_t room = gar_memory_room(query->memory, &limit);
    return room < gar_max_i64(bytes, share_of_others(limit, shift)) && gar_query_may_spill(query);
}
