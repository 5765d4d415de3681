/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated tables and files. */
#include "world.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/cancel.h"

static int64_t open_count; /* scans, units, worker states, writes, pieces */

int64_t sim_world_open(void)
{
    return open_count;
}

/* Memory of the world itself, which no failing allocation of the engine touches. */
static void *make(size_t bytes)
{
    void *object = calloc(1, bytes);
    SIM_CHECK(object != NULL, "no memory");
    open_count++;
    return object;
}

static void unmake(void *object)
{
    open_count--;
    free(object);
}

/* ---- tables ---- */

struct table {
    struct gar_scan_provider base;
    struct sim_table_options options;
    struct sim_rng rng;
    bool has_failed;
    int64_t scans;
};

struct scan {
    struct gar_scan base;
    struct table *table;
    struct gar_memory *memory; /* borrowed */
    struct gar_cancel *cancel; /* borrowed; may be NULL */
    int64_t positions[3];
    int64_t column_count;
    int64_t units_given;
    int64_t units_alive;
    int64_t workers_alive;
    int64_t loads_running;
};

struct gar_unit {
    int64_t number;
    int64_t next; /* row */
    int64_t end;
    bool is_loaded;
    bool is_busy;
};

struct worker {
    bool is_busy;
};

static enum gar_status fail(struct table *table, const char *what, int64_t number,
                            struct gar_error *err)
{
    table->has_failed = true;
    sim_trace("fault: %s of unit %lld", what, (long long)number);
    return gar_error_set(err, GAR_ERR_IO, "simulated fault: %s of unit %lld", what,
                         (long long)number);
}

static enum gar_status scan_next(struct gar_scan *base, struct gar_unit **out,
                                 struct gar_error *err)
{
    struct scan *scan = (struct scan *)base;
    struct table *table = scan->table;
    const int64_t number = scan->units_given;
    const int64_t first = number * table->options.unit_rows;
    SIM_CHECK(!base->sequential || scan->loads_running == 0, "next during a load");
    if (first >= table->options.rows->count) {
        return GAR_EOF;
    }
    if (number == table->options.faults.next) {
        return fail(table, "next", number, err);
    }
    struct gar_unit *unit = make(sizeof *unit);
    unit->number = number;
    unit->next = first;
    unit->end = gar_min_i64(first + table->options.unit_rows, table->options.rows->count);
    unit->is_loaded = !table->options.has_load;
    scan->units_given++;
    scan->units_alive++;
    *out = unit;
    return GAR_OK;
}

/* A read: time passes, then what shall happen at this unit. */
static enum gar_status read_unit(struct scan *scan, const struct gar_unit *unit,
                                 struct gar_error *err)
{
    struct table *table = scan->table;
    const struct sim_faults *faults = &table->options.faults;
    if (unit->number == faults->deaf) {
        sim_sleep(SIM_DEAF_NS);
    } else {
        const int64_t ns = unit->number == faults->hang
                               ? INT64_MAX
                               : sim_below(&table->rng, table->options.latency_ns + 1);
        GAR_TRY(gar_cancel_sleep(scan->cancel, ns, err));
    }
    return unit->number == faults->load ? fail(table, "load", unit->number, err) : GAR_OK;
}

static enum gar_status scan_load(struct gar_scan *base, struct gar_unit *unit,
                                 struct gar_error *err)
{
    struct scan *scan = (struct scan *)base;
    SIM_CHECK(!unit->is_loaded && !unit->is_busy, "a unit is loaded twice");
    SIM_CHECK(!base->sequential || scan->loads_running == 0, "two loads of a sequential scan");
    scan->loads_running++;
    unit->is_busy = true;
    const enum gar_status status = read_unit(scan, unit, err);
    unit->is_busy = false;
    unit->is_loaded = status == GAR_OK;
    scan->loads_running--;
    return status;
}

static enum gar_status scan_worker_new(struct gar_scan *base, struct gar_memory *memory, void **out,
                                       struct gar_error *err)
{
    (void)memory;
    (void)err;
    ((struct scan *)base)->workers_alive++;
    *out = make(sizeof(struct worker));
    return GAR_OK;
}

static void scan_worker_free(struct gar_scan *base, void *state)
{
    const struct worker *worker = state;
    SIM_CHECK(!worker->is_busy, "a worker's state is freed while it is used");
    ((struct scan *)base)->workers_alive--;
    unmake(state);
}

static enum gar_status scan_decode(struct gar_scan *base, struct gar_unit *unit, void *state,
                                   int64_t max_rows, struct gar_batch **out, struct gar_error *err)
{
    struct scan *scan = (struct scan *)base;
    struct table *table = scan->table;
    struct worker *worker = state;
    SIM_CHECK(unit->is_loaded, "a unit is decoded that was not loaded");
    SIM_CHECK(!unit->is_busy, "a unit is decoded by two threads at once");
    SIM_CHECK(!worker->is_busy, "a worker's state is used by two threads at once");
    if (unit->number == table->options.faults.decode) {
        return fail(table, "decode", unit->number, err);
    }
    const int64_t rows = gar_min_i64(unit->end - unit->next, max_rows);
    if (rows == 0) {
        return GAR_EOF;
    }
    unit->is_busy = worker->is_busy = true;
    sim_point("decode");
    const enum gar_status status =
        sim_batch_new(scan->base.schema, scan->positions, scan->column_count,
                      table->options.rows->rows + unit->next, rows, scan->memory, out, err);
    sim_point("decoded");
    unit->is_busy = worker->is_busy = false;
    unit->next += rows;
    return status;
}

static void scan_unit_free(struct gar_scan *base, struct gar_unit *unit)
{
    SIM_CHECK(!unit->is_busy, "a unit is freed while it is used");
    ((struct scan *)base)->units_alive--;
    unmake(unit);
}

static void scan_free(struct gar_scan *base)
{
    struct scan *scan = (struct scan *)base;
    SIM_CHECK(scan->units_alive == 0, "a scan is freed before its units");
    SIM_CHECK(scan->workers_alive == 0, "a scan is freed before its workers' states");
    SIM_CHECK(scan->loads_running == 0, "a scan is freed while it reads");
    gar_schema_unref(scan->base.schema);
    scan->table->scans--;
    gar_scan_provider_unref(&scan->table->base);
    unmake(scan);
}

/* The schema of the asked columns. */
static enum gar_status pick_schema(const struct gar_schema *all, const int64_t *positions,
                                   int64_t count, struct gar_schema **out, struct gar_error *err)
{
    struct gar_field fields[3];
    for (int64_t i = 0; i < count; i++) {
        fields[i] = all->fields[positions[i]];
    }
    return gar_schema_new(fields, count, false, out, err);
}

static enum gar_status table_open(struct gar_scan_provider *base,
                                  const struct gar_scan_request *request, struct gar_scan **out,
                                  struct gar_error *err)
{
    static const struct gar_scan_vtable loaded = {.next = scan_next,
                                                  .load = scan_load,
                                                  .worker_new = scan_worker_new,
                                                  .worker_free = scan_worker_free,
                                                  .decode = scan_decode,
                                                  .unit_free = scan_unit_free,
                                                  .free = scan_free};
    static const struct gar_scan_vtable at_hand = {.next = scan_next,
                                                   .worker_new = scan_worker_new,
                                                   .worker_free = scan_worker_free,
                                                   .decode = scan_decode,
                                                   .unit_free = scan_unit_free,
                                                   .free = scan_free};
    struct table *table = (struct table *)base;
    if (table->options.faults.open == 0) {
        return fail(table, "open", 0, err);
    }
    struct gar_schema *schema = NULL;
    GAR_TRY(pick_schema(base->schema, request->columns, request->column_count, &schema, err));
    struct scan *scan = make(sizeof *scan);
    scan->base.vtable = table->options.has_load ? &loaded : &at_hand;
    scan->base.schema = schema;
    scan->base.sequential = table->options.has_load && table->options.is_sequential;
    scan->base.rows_exact = table->options.rows->count;
    scan->table = table;
    table->scans++;
    (void)gar_scan_provider_ref(base);
    scan->memory = request->memory;
    scan->cancel = request->cancel;
    scan->column_count = request->column_count;
    memcpy(scan->positions, request->columns,
           (size_t)request->column_count * sizeof scan->positions[0]);
    *out = &scan->base;
    return GAR_OK;
}

static int64_t table_row_count(struct gar_scan_provider *base)
{
    return ((struct table *)base)->options.rows->count;
}

static void table_print(const struct gar_scan_provider *base, struct gar_strbuf *out)
{
    (void)base;
    gar_strbuf_append(out, "simulated table");
}

static void table_free(struct gar_scan_provider *base)
{
    gar_schema_unref(base->schema);
    unmake(base);
}

struct gar_scan_provider *sim_table_new(const struct sim_table_options *options,
                                        struct sim_rng *rng)
{
    static const struct gar_scan_provider_vtable vtable = {
        .open = table_open, .row_count = table_row_count, .print = table_print, .free = table_free};
    struct table *table = make(sizeof *table);
    table->base = (struct gar_scan_provider){.vtable = &vtable,
                                             .refs = 1,
                                             .schema = sim_schema_new(),
                                             .size_hint_rows = options->rows->count,
                                             .size_hint_bytes = options->rows->count * 40};
    table->options = *options;
    table->rng.state = sim_next(rng);
    return &table->base;
}

bool sim_table_has_failed(const struct gar_scan_provider *table)
{
    return ((const struct table *)(const void *)table)->has_failed;
}

int64_t sim_table_scans(const struct gar_scan_provider *table)
{
    return ((const struct table *)(const void *)table)->scans;
}

/* ---- files ---- */

struct file {
    struct gar_sink_provider base;
    struct sim_file_options options;
    struct sim_rng rng;
    struct sim_rows rows; /* of the published write */
    bool is_published;
    bool has_failed;
};

struct write {
    struct gar_write base;
    struct file *file;
    struct gar_memory *memory;
    struct sim_rows rows;
    int64_t encoded;
    int64_t appended;
    int64_t pieces_alive;
    bool is_appending;
    bool is_finished;
};

struct gar_encoded {
    struct sim_rows rows;
};

static enum gar_status fail_write(struct file *file, const char *what, struct gar_error *err)
{
    file->has_failed = true;
    sim_trace("fault: %s", what);
    return gar_error_set(err, GAR_ERR_IO, "simulated fault: %s", what);
}

static enum gar_status write_encode(struct gar_write *base, struct gar_batch *batch,
                                    struct gar_memory *memory, struct gar_encoded **out,
                                    struct gar_error *err)
{
    (void)memory;
    struct write *write = (struct write *)base;
    sim_point("encode");
    if (write->encoded++ == write->file->options.fail_encode) {
        return fail_write(write->file, "encode", err);
    }
    struct gar_encoded *encoded = make(sizeof *encoded);
    write->pieces_alive++;
    sim_batch_read(batch, &encoded->rows);
    *out = encoded;
    return GAR_OK;
}

static void write_encoded_free(struct gar_write *base, struct gar_encoded *encoded)
{
    ((struct write *)base)->pieces_alive--;
    sim_rows_free(&encoded->rows);
    unmake(encoded);
}

static enum gar_status write_append(struct gar_write *base, struct gar_encoded *encoded,
                                    struct gar_error *err)
{
    struct write *write = (struct write *)base;
    struct file *file = write->file;
    SIM_CHECK(!write->is_appending, "two appends at once");
    SIM_CHECK(!write->is_finished, "an append after finish");
    write->is_appending = true;
    sim_sleep(sim_below(&file->rng, file->options.latency_ns + 1));
    const bool fails = write->appended++ == file->options.fail_append;
    for (int64_t i = 0; i < encoded->rows.count && !fails; i++) {
        sim_rows_add(&write->rows, encoded->rows.rows[i]);
    }
    write_encoded_free(base, encoded);
    write->is_appending = false;
    return fails ? fail_write(file, "append", err) : GAR_OK;
}

/* No path is a row: the answer of a write is empty here. */
static enum gar_status write_finish(struct gar_write *base, struct gar_memory *memory,
                                    struct gar_batch **out_paths, struct gar_error *err)
{
    (void)memory;
    struct write *write = (struct write *)base;
    struct file *file = write->file;
    SIM_CHECK(!write->is_finished, "finish is called twice");
    SIM_CHECK(!write->is_appending && write->pieces_alive == 0, "finish before the last append");
    write->is_finished = true;
    sim_sleep(sim_below(&file->rng, file->options.latency_ns + 1));
    if (file->options.fail_finish == 0) {
        return fail_write(file, "finish", err);
    }
    SIM_CHECK(!file->is_published, "one write is published twice");
    file->is_published = true;
    file->rows = write->rows;
    write->rows = (struct sim_rows){0};
    *out_paths = NULL;
    return GAR_OK;
}

static void write_free(struct gar_write *base)
{
    struct write *write = (struct write *)base;
    SIM_CHECK(write->pieces_alive == 0, "a write is freed before its pieces");
    SIM_CHECK(!write->is_appending, "a write is freed during an append");
    sim_rows_free(&write->rows);
    gar_sink_provider_unref(&write->file->base);
    unmake(write);
}

static enum gar_status file_open(struct gar_sink_provider *base, struct gar_schema *schema,
                                 struct gar_memory *memory, struct gar_write **out,
                                 struct gar_error *err)
{
    static const struct gar_write_vtable vtable = {.encode = write_encode,
                                                   .append = write_append,
                                                   .encoded_free = write_encoded_free,
                                                   .finish = write_finish,
                                                   .free = write_free};
    (void)schema;
    struct file *file = (struct file *)base;
    if (file->options.fail_open == 0) {
        return fail_write(file, "open", err);
    }
    struct write *write = make(sizeof *write);
    write->base =
        (struct gar_write){.vtable = &vtable, .preferred_rows = file->options.preferred_rows};
    write->file = (struct file *)gar_sink_provider_ref(base);
    write->memory = memory;
    *out = &write->base;
    return GAR_OK;
}

static void file_print(const struct gar_sink_provider *base, struct gar_strbuf *out)
{
    (void)base;
    gar_strbuf_append(out, "simulated file");
}

static void file_free(struct gar_sink_provider *base)
{
    sim_rows_free(&((struct file *)base)->rows);
    unmake(base);
}

struct gar_sink_provider *sim_file_new(const struct sim_file_options *options, struct sim_rng *rng)
{
    static const struct gar_sink_provider_vtable vtable = {
        .open = file_open, .print = file_print, .free = file_free};
    struct file *file = make(sizeof *file);
    file->base = (struct gar_sink_provider){.vtable = &vtable, .refs = 1};
    file->options = *options;
    file->rng.state = sim_next(rng);
    return &file->base;
}

bool sim_file_has_failed(const struct gar_sink_provider *file)
{
    return ((const struct file *)(const void *)file)->has_failed;
}

const struct sim_rows *sim_file_rows(const struct gar_sink_provider *file)
{
    const struct file *f = (const struct file *)(const void *)file;
    return f->is_published ? &f->rows : NULL;
}
