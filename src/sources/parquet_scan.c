/* SPDX-License-Identifier: Apache-2.0 */
/* The Parquet scan: one unit per row group that statistics do not exclude.
 *
 *   next    the next row group
 *   load    opens the file, so that an idle scan keeps none open, and reads the byte ranges of the needed column chunks,
 *           neighbours joined, into one buffer per range
 *   decode  max_rows rows at a time. Keys of joins are tested first, then the filter; rows that fail are never decoded in
 *           the other columns (pages without a row left are not even decompressed). Few rows left: dense columns. Many: whole
 *           columns with a selection.
 *
 * The needed columns are those of the filter (first), then the other requested ones. Decompression contexts and the filter's
 * scratch are pooled in the scan, since a unit may be resumed by another worker. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/gather.h"
#include "base/alloc.h"
#include "sources/parquet_files.h"
#include "sources/parquet_prune.h"
#include "sources/sources.h"

/* Ranges closer than this are read as one: a read costs about as much as copying so many bytes. */
#define GAP_BYTES ((int64_t)128 << 10)
/* Above this share of rows left the columns are decoded whole and a selection is kept. */
#define DENSE_SHARE   4
#define DECODER_SLOTS 32
/* Statistics of more row groups are not gone through for an estimate. */
#define RANGE_GROUPS_MAX 10000

struct provider {
    struct gar_scan_provider base;
    struct gar_parquet_inputs inputs;
};

struct group {
    int64_t input;
    int64_t row_group;
    int64_t first_row; /* of the scan's input, all files together */
    int64_t file_row;  /* of its file */
};

/* What decoding needs besides the unit. */
struct decoder {
    struct gar_parquet_scratch *scratch;
    struct gar_eval *eval; /* NULL without a filter */
};

struct scan {
    struct gar_scan base;
    struct provider *provider;      /* owned reference */
    struct gar_memory *memory;      /* borrowed */
    struct gar_cancel *cancel;      /* borrowed */
    struct gar_scan_counts *counts; /* borrowed; may be NULL */
    int64_t *needed;                /* provider positions: predicate columns first; owned */
    int64_t needed_count;
    int64_t predicate_count;
    int64_t *output_slots;               /* output column -> index in needed; owned */
    struct gar_schema *predicate_schema; /* owned; NULL without a filter */
    struct gar_program *predicate;       /* owned; NULL without a filter */
    struct gar_key_use *keys;            /* borrowed */
    int64_t key_count;
    int64_t *key_slots;   /* index in needed; owned */
    struct group *groups; /* owned */
    int64_t group_count;
    int64_t group_next;
    struct decoder *decoders[DECODER_SLOTS]; /* atomic slots: idle decoders; owned */
};

/* A column chunk's place in the unit's buffers. */
struct place {
    struct gar_buffer *buffer; /* owned reference; NULL: not in the file */
    int64_t offset;
};

struct gar_unit {
    int64_t input;
    int64_t row_group;
    int64_t done;                        /* rows decoded */
    int64_t left;                        /* and to decode */
    int64_t first_row;                   /* the next row's number in the scan's input, */
    int64_t file_row;                    /* and in its file */
    struct place *places;                /* needed_count items */
    struct gar_parquet_reader **readers; /* needed_count items, made at the first decode */
    struct decoder *decoder;             /* taken from the scan at the first decode */
};

/* ---- decoders ----------------------------------------------------------------------------------------------------------- */

static void decoder_free(struct decoder *decoder)
{
    if (decoder == NULL) {
        return;
    }
    gar_eval_free(decoder->eval);
    gar_parquet_scratch_free(decoder->scratch);
    gar_free(decoder);
}

static enum gar_status take_decoder(struct scan *scan, struct decoder **out, struct gar_error *err)
{
    for (int64_t i = 0; i < DECODER_SLOTS; i++) {
        struct decoder *idle = __atomic_exchange_n(&scan->decoders[i], NULL, __ATOMIC_ACQ_REL);
        if (idle != NULL) {
            *out = idle;
            return GAR_OK;
        }
    }
    struct decoder *fresh = gar_calloc(1, sizeof *fresh);
    if (fresh == NULL) {
        return gar_error_nomem(err, sizeof *fresh);
    }
    enum gar_status status = gar_parquet_scratch_new(scan->memory, &fresh->scratch, err);
    if (status == GAR_OK && scan->predicate != NULL) {
        status = gar_eval_new(scan->predicate, scan->memory, &fresh->eval, err);
    }
    if (status != GAR_OK) {
        decoder_free(fresh);
        return status;
    }
    *out = fresh;
    return GAR_OK;
}

static void give_decoder(struct scan *scan, struct decoder *decoder)
{
    for (int64_t i = 0; i < DECODER_SLOTS && decoder != NULL; i++) {
        struct decoder *empty = NULL;
        if (__atomic_compare_exchange_n(&scan->decoders[i], &empty, decoder, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            return;
        }
    }
    decoder_free(decoder);
}

/* ---- units: next and load ----------------------------------------------------------------------------------------------- */

static void unit_drop(struct scan *scan, struct gar_unit *unit)
{
    for (int64_t i = 0; i < scan->needed_count; i++) {
        if (unit->readers != NULL) {
            gar_parquet_reader_free(unit->readers[i]);
            unit->readers[i] = NULL;
        }
        if (unit->places != NULL) {
            gar_buffer_unref(unit->places[i].buffer);
            unit->places[i].buffer = NULL;
        }
    }
    give_decoder(scan, unit->decoder);
    unit->decoder = NULL;
}

static void park(struct gar_scan *base, struct gar_unit *unit)
{
    struct scan *scan = (struct scan *)base;
    if (unit != NULL) {
        unit_drop(scan, unit);
        return;
    }
    for (int64_t i = 0; i < DECODER_SLOTS; i++) {
        decoder_free(__atomic_exchange_n(&scan->decoders[i], NULL, __ATOMIC_ACQ_REL));
    }
}

static void unit_free(struct gar_scan *base, struct gar_unit *unit)
{
    struct scan *scan = (struct scan *)base;
    if (unit == NULL) {
        return;
    }
    unit_drop(scan, unit);
    gar_free(unit->places);
    gar_free(unit->readers);
    gar_free(unit);
}

static const struct gar_parquet_input *input_of(const struct scan *scan,
                                                const struct gar_unit *unit)
{
    return &scan->provider->inputs.items[unit->input];
}

/* Does a join have no key that the row group could hold? */
static bool lacks_keys(const struct scan *scan, int64_t i)
{
    const struct group *group = &scan->groups[i];
    const struct gar_parquet_input *input = &scan->provider->inputs.items[group->input];
    const struct gar_parquet_prune prune = {input->file, scan->provider->inputs.schema,
                                            input->columns};
    bool is_without = false;
    for (int64_t k = 0; k < scan->key_count && !is_without; k++) {
        is_without = gar_key_filter_is_filled(scan->keys[k].filter) &&
                     gar_parquet_prune_keys(&prune, group->row_group, &scan->keys[k]);
    }
    return is_without;
}

static enum gar_status next(struct gar_scan *base, struct gar_unit **out, struct gar_error *err)
{
    struct scan *scan = (struct scan *)base;
    while (scan->group_next < scan->group_count && lacks_keys(scan, scan->group_next)) {
        GAR_SCAN_COUNT(scan->counts, pieces_skipped, 1);
        scan->group_next++;
    }
    if (scan->group_next == scan->group_count) {
        return GAR_EOF;
    }
    const struct group *group = &scan->groups[scan->group_next];
    const struct gar_parquet_input *input = &scan->provider->inputs.items[group->input];
    if (scan->group_next == 0 || scan->groups[scan->group_next - 1].input != group->input) {
        GAR_SCAN_COUNT(scan->counts, files_read, 1);
    }
    struct gar_unit *unit = gar_calloc(1, sizeof *unit);
    if (unit == NULL) {
        return gar_error_nomem(err, sizeof *unit);
    }
    unit->input = group->input;
    unit->row_group = group->row_group;
    unit->first_row = group->first_row;
    unit->file_row = group->file_row;
    unit->left = input->file->row_groups[group->row_group].rows;
    unit->places = gar_calloc(scan->needed_count + 1, sizeof *unit->places);
    unit->readers = gar_calloc(scan->needed_count + 1, sizeof(struct gar_parquet_reader *));
    if (unit->places == NULL || unit->readers == NULL) {
        unit_free(base, unit);
        return gar_error_nomem(err, (scan->needed_count + 1) * (int64_t)sizeof *unit->places);
    }
    scan->group_next++;
    *out = unit;
    return GAR_OK;
}

/* One chunk to read: its bytes and which needed column it is. */
struct range {
    int64_t offset;
    int64_t bytes;
    int64_t slot;
};

static int compare_ranges(const void *a, const void *b)
{
    const struct range *x = a;
    const struct range *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Read ranges[from, to) as one and hand the buffer to their columns. */
static enum gar_status load_joined(const struct scan *scan, struct gar_unit *unit,
                                   struct gar_source *source, const struct range *ranges,
                                   int64_t from, int64_t to, struct gar_error *err)
{
    const int64_t start = ranges[from].offset;
    int64_t end = start;
    for (int64_t i = from; i < to; i++) {
        end = gar_max_i64(end, ranges[i].offset + ranges[i].bytes);
    }
    struct gar_buffer *buffer = NULL;
    int64_t got = 0;
    GAR_TRY(gar_buffer_new(scan->memory, end - start, &buffer, err));
    enum gar_status status =
        gar_source_read_at(source, buffer->data, end - start, start, scan->cancel, &got, err);
    if (status == GAR_OK && got != end - start) {
        status = gar_error_set(err, GAR_ERR_IO, "%s: the file became shorter while it was read",
                               input_of(scan, unit)->path);
    }
    if (status == GAR_OK) {
        GAR_SCAN_COUNT(scan->counts, bytes_read, got);
    }
    for (int64_t i = from; i < to && status == GAR_OK; i++) {
        unit->places[ranges[i].slot] =
            (struct place){gar_buffer_ref(buffer), ranges[i].offset - start};
    }
    gar_buffer_unref(buffer);
    return status;
}

static enum gar_status load_ranges(const struct scan *scan, struct gar_unit *unit,
                                   struct gar_source *source, struct range *ranges, int64_t count,
                                   struct gar_error *err)
{
    if (count > 1) {
        qsort(ranges, (size_t)count, sizeof *ranges, compare_ranges);
    }
    for (int64_t from = 0; from < count;) {
        int64_t to = from + 1;
        int64_t end = ranges[from].offset + ranges[from].bytes;
        while (to < count && ranges[to].offset - end <= GAP_BYTES) {
            end = gar_max_i64(end, ranges[to].offset + ranges[to].bytes);
            to++;
        }
        GAR_TRY(load_joined(scan, unit, source, ranges, from, to, err));
        from = to;
    }
    return gar_source_check(source, err);
}

static enum gar_status load(struct gar_scan *base, struct gar_unit *unit, struct gar_error *err)
{
    struct scan *scan = (struct scan *)base;
    const struct gar_parquet_input *input = input_of(scan, unit);
    struct range *ranges = gar_calloc(scan->needed_count + 1, sizeof *ranges);
    if (ranges == NULL) {
        return gar_error_nomem(err, (scan->needed_count + 1) * (int64_t)sizeof *ranges);
    }
    int64_t count = 0;
    for (int64_t i = 0; i < scan->needed_count; i++) {
        const int64_t column = input->columns[scan->needed[i]];
        if (column >= 0) {
            const struct gar_parquet_chunk *chunk =
                gar_parquet_chunk(input->file, unit->row_group, column);
            ranges[count++] = (struct range){chunk->offset, chunk->bytes, i};
        }
    }
    struct gar_source *source = NULL;
    enum gar_status status = gar_parquet_input_reopen(input, &source, err);
    if (status == GAR_OK) {
        status = load_ranges(scan, unit, source, ranges, count, err);
    }
    gar_free(ranges);
    gar_source_unref(source);
    GAR_SCAN_COUNT(scan->counts, pieces_read, 1);
    return status;
}

/* ---- units: decode --------------------------------------------------------------------------------------------------------- */

/* Readers of all needed columns, behind the rows that a parked unit has given already. */
static enum gar_status start_decoding(struct scan *scan, struct gar_unit *unit,
                                      struct gar_error *err)
{
    const struct gar_parquet_input *input = input_of(scan, unit);
    const struct gar_schema *schema = scan->provider->base.schema;
    GAR_TRY(take_decoder(scan, &unit->decoder, err));
    for (int64_t i = 0; i < scan->needed_count; i++) {
        const int64_t column = input->columns[scan->needed[i]];
        const struct gar_parquet_reader_options options = {
            .scratch = unit->decoder->scratch,
            .as_binary = schema->fields[scan->needed[i]].type.id == GAR_BINARY};
        if (column >= 0) {
            GAR_TRY(gar_parquet_reader_new(input->file, unit->row_group, column,
                                           unit->places[i].buffer, unit->places[i].offset, &options,
                                           scan->memory, &unit->readers[i], err));
            GAR_TRY(gar_parquet_reader_skip(unit->readers[i], unit->done, err));
        }
    }
    return GAR_OK;
}

/* A column that the file does not have: its path, or nulls. */
static enum gar_status absent_column(const struct scan *scan, const struct gar_unit *unit,
                                     int64_t position, int64_t rows, struct gar_column **out,
                                     struct gar_error *err)
{
    const struct gar_parquet_inputs *inputs = &scan->provider->inputs;
    if (position != inputs->path_column) {
        return gar_column_new_null(scan->memory, inputs->schema->fields[position].type, rows, out,
                                   err);
    }
    struct gar_value value;
    struct gar_column *one = NULL;
    const char *path = input_of(scan, unit)->path;
    GAR_TRY(gar_value_from_text(gar_type_of(GAR_STRING), path, (int64_t)strlen(path), &value, err));
    enum gar_status status = gar_value_to_column(&value, scan->memory, &one, err);
    gar_value_destroy(&value);
    if (status == GAR_OK) {
        status = gar_column_new_constant(one, rows, out, err);
        if (status != GAR_OK) {
            gar_column_unref(one);
        }
    }
    return status;
}

/* column (taken) as the schema's type. */
static enum gar_status cast_column(const struct scan *scan, const struct gar_unit *unit,
                                   int64_t position, const uint32_t *selection,
                                   struct gar_column *column, struct gar_column **out,
                                   struct gar_error *err)
{
    const struct gar_parquet_input *input = input_of(scan, unit);
    struct gar_program *program = input->casts[position];
    if (program == NULL) {
        *out = column;
        return GAR_OK;
    }
    struct gar_batch *batch = NULL;
    struct gar_eval *eval = NULL;
    enum gar_status status =
        gar_batch_new(input->cast_inputs[position], &column, column->length, &batch, err);
    if (status != GAR_OK) {
        gar_column_unref(column);
        return status;
    }
    batch->first_row = unit->file_row; /* for messages, which the path comes before */
    batch->row_of = selection;         /* borrowed: the batch ends here */
    status = gar_eval_new(program, scan->memory, &eval, err);
    if (status == GAR_OK) {
        status = gar_eval_run(eval, batch, out, err);
    }
    gar_eval_free(eval);
    gar_batch_unref(batch);
    return status;
}

/* The next `rows` rows of a needed column; with a selection only its `count` rows. */
static enum gar_status read_column(const struct scan *scan, struct gar_unit *unit, int64_t slot,
                                   int64_t rows, const uint32_t *selection, int64_t count,
                                   struct gar_column **out, struct gar_error *err)
{
    const int64_t position = scan->needed[slot];
    struct gar_column *column = NULL;
    if (unit->readers[slot] == NULL) {
        return absent_column(scan, unit, position, selection != NULL ? count : rows, out, err);
    }
    if (selection != NULL) {
        GAR_TRY(gar_parquet_reader_read_selected(unit->readers[slot], rows, selection, count,
                                                 &column, err));
    } else {
        GAR_TRY(gar_parquet_reader_read(unit->readers[slot], rows, &column, err));
    }
    return cast_column(scan, unit, position, selection, column, out, err);
}

/* The columns of one step, by slot; NULL where not read. Tests narrow it: to a selection of the rows that its columns have,
 * or, when few are left, to dense columns of these. */
struct step {
    struct gar_column **columns;  /* needed_count items */
    int64_t total;                /* rows of the row group that it passes over */
    int64_t rows;                 /* that its columns have */
    struct gar_buffer *selection; /* owned; of these; NULL: all rows */
    int64_t selected;
    struct gar_buffer *kept; /* owned; which rows of the step dense columns have; NULL: all */
};

static const uint32_t *numbers(const struct gar_buffer *buffer)
{
    return buffer == NULL ? NULL : (const uint32_t *)(const void *)buffer->data;
}

static void step_destroy(const struct scan *scan, struct step *step)
{
    for (int64_t i = 0; step->columns != NULL && i < scan->needed_count; i++) {
        gar_column_unref(step->columns[i]);
    }
    gar_buffer_unref(step->kept);
    gar_free(step->columns);
    gar_buffer_unref(step->selection);
}

static enum gar_status need_slot(const struct scan *scan, struct gar_unit *unit, struct step *step,
                                 int64_t slot, struct gar_error *err)
{
    return step->columns[slot] != NULL
               ? GAR_OK
               : read_column(scan, unit, slot, step->total, numbers(step->kept), step->rows,
                             &step->columns[slot], err);
}

/* Few rows left: from now on only those, dense. */
static enum gar_status make_dense(const struct scan *scan, struct step *step, struct gar_error *err)
{
    if (step->selection == NULL || step->selected * DENSE_SHARE >= step->rows) {
        return GAR_OK;
    }
    uint32_t *selection = (uint32_t *)(void *)step->selection->data;
    for (int64_t i = 0; i < scan->needed_count; i++) {
        struct gar_column *dense = NULL;
        if (step->columns[i] != NULL) {
            GAR_TRY(gar_column_gather(step->columns[i], selection, step->selected, scan->memory,
                                      &dense, err));
            gar_column_unref(step->columns[i]);
            step->columns[i] = dense;
        }
    }
    const uint32_t *kept = numbers(step->kept);
    for (int64_t i = 0; i < step->selected && kept != NULL; i++) {
        selection[i] = kept[selection[i]];
    }
    gar_buffer_unref(step->kept);
    step->kept = step->selection;
    step->selection = NULL;
    step->rows = step->selected;
    return GAR_OK;
}

/* The rows that one of the keys lets pass. */
static enum gar_status test_keys(const struct scan *scan, struct gar_unit *unit, struct step *step,
                                 int64_t k, struct gar_error *err)
{
    struct gar_key_use *use = &scan->keys[k];
    struct gar_column *flat = NULL;
    GAR_TRY(need_slot(scan, unit, step, scan->key_slots[k], err));
    GAR_TRY(gar_column_flatten(step->columns[scan->key_slots[k]], scan->memory, &flat, err));
    struct gar_buffer *selection = step->selection;
    enum gar_status status = GAR_OK;
    if (selection == NULL) {
        status =
            gar_buffer_new(scan->memory, step->rows * (int64_t)sizeof(uint32_t), &selection, err);
    }
    if (status == GAR_OK) {
        const int64_t before = step->selected;
        step->selected = gar_key_filter_select(use->filter, flat, numbers(step->selection), before,
                                               (uint32_t *)(void *)selection->data);
        gar_key_use_count(use, before, step->selected);
        step->selection = selection;
        if (step->selected == step->rows) { /* all */
            gar_buffer_unref(selection);
            step->selection = NULL;
        }
    }
    gar_column_unref(flat);
    return status;
}

/* Read the filter's columns and find the rows that pass. */
static enum gar_status test_filter(const struct scan *scan, struct gar_unit *unit,
                                   struct step *step, struct gar_error *err)
{
    struct gar_column **refs = gar_calloc(scan->predicate_count + 1, sizeof(struct gar_column *));
    struct gar_batch *batch = NULL;
    if (refs == NULL) {
        return gar_error_nomem(err,
                               (scan->predicate_count + 1) * (int64_t)sizeof(struct gar_column *));
    }
    enum gar_status status = GAR_OK;
    for (int64_t i = 0; i < scan->predicate_count && status == GAR_OK; i++) {
        status = need_slot(scan, unit, step, i, err);
        if (status == GAR_OK) {
            refs[i] = gar_column_ref(step->columns[i]);
        }
    }
    if (status == GAR_OK) {
        status = gar_batch_new(scan->predicate_schema, refs, step->rows, &batch, err);
    }
    if (status == GAR_OK) {
        struct gar_buffer *selection = NULL;
        gar_batch_set_origin(batch, unit->file_row); /* the path comes before messages */
        batch->row_of = numbers(step->kept);         /* borrowed: the batch ends here */
        batch->selection = numbers(step->selection);
        batch->selected = step->selected;
        status = gar_eval_filter(unit->decoder->eval, batch, &selection, &step->selected, err);
        batch->row_of = batch->selection = NULL;
        if (status == GAR_OK && selection != NULL) {
            gar_buffer_unref(step->selection);
            step->selection = selection;
        }
        gar_batch_unref(batch);
    } else {
        for (int64_t i = 0; i < scan->predicate_count; i++) {
            gar_column_unref(refs[i]);
        }
    }
    gar_free(refs);
    return status;
}

/* Keys of joins first, while they drop many rows, then the filter. */
static enum gar_status test_rows(const struct scan *scan, struct gar_unit *unit, struct step *step,
                                 struct gar_error *err)
{
    for (int64_t k = 0; k < scan->key_count && step->selected > 0; k++) {
        if (gar_key_use_pays(&scan->keys[k])) {
            GAR_TRY(test_keys(scan, unit, step, k, err));
            GAR_TRY(make_dense(scan, step, err));
        }
    }
    if (scan->predicate != NULL && step->selected > 0) {
        GAR_TRY(test_filter(scan, unit, step, err));
        GAR_TRY(make_dense(scan, step, err));
    }
    return GAR_OK;
}

/* Pass over the rows of a step in the columns that were not read. */
static enum gar_status skip_others(const struct scan *scan, struct gar_unit *unit,
                                   const struct step *step, struct gar_error *err)
{
    for (int64_t i = 0; i < scan->needed_count; i++) {
        if (unit->readers[i] != NULL && step->columns[i] == NULL) {
            GAR_TRY(gar_parquet_reader_skip(unit->readers[i], step->total, err));
        }
    }
    return GAR_OK;
}

static enum gar_status read_others(const struct scan *scan, struct gar_unit *unit,
                                   struct step *step, struct gar_error *err)
{
    for (int64_t i = 0; i < scan->needed_count; i++) {
        GAR_TRY(need_slot(scan, unit, step, i, err));
    }
    return GAR_OK;
}

static enum gar_status make_batch(const struct scan *scan, const struct gar_unit *unit,
                                  struct step *step, struct gar_batch **out, struct gar_error *err)
{
    const int64_t count = scan->base.schema->count;
    struct gar_column **columns = gar_calloc(count + 1, sizeof(struct gar_column *));
    struct gar_batch *batch = NULL;
    if (columns == NULL) {
        return gar_error_nomem(err, (count + 1) * (int64_t)sizeof(struct gar_column *));
    }
    for (int64_t i = 0; i < count; i++) {
        columns[i] = gar_column_ref(step->columns[scan->output_slots[i]]);
    }
    enum gar_status status = gar_batch_new(scan->base.schema, columns, step->rows, &batch, err);
    if (status != GAR_OK) {
        for (int64_t i = 0; i < count; i++) {
            gar_column_unref(columns[i]);
        }
    }
    gar_free(columns);
    if (status == GAR_OK && step->kept != NULL) {
        gar_batch_set_origins(batch, unit->first_row, step->kept);
        step->kept = NULL; /* moved */
    } else if (status == GAR_OK) {
        gar_batch_set_origin(batch, unit->first_row);
    }
    if (status == GAR_OK && step->selection != NULL) {
        struct gar_batch *whole = batch;
        status = gar_batch_select(whole, step->selection, step->selected, &batch, err);
        gar_batch_unref(whole);
        if (status == GAR_OK) {
            step->selection = NULL; /* moved */
        }
    }
    if (status == GAR_OK) {
        *out = batch;
    }
    return status;
}

/* One step of at most max_rows rows; *out stays NULL when no row passed. */
static enum gar_status decode_step(const struct scan *scan, struct gar_unit *unit, int64_t max_rows,
                                   struct gar_batch **out, struct gar_error *err)
{
    const int64_t rows = gar_min_i64(unit->left, max_rows);
    struct step step = {.total = rows, .rows = rows, .selected = rows};
    step.columns = gar_calloc(scan->needed_count + 1, sizeof(struct gar_column *));
    if (step.columns == NULL) {
        return gar_error_nomem(err,
                               (scan->needed_count + 1) * (int64_t)sizeof(struct gar_column *));
    }
    unit->left -= rows;
    GAR_SCAN_COUNT(scan->counts, rows_read, rows);
    unit->done += rows;
    enum gar_status status = test_rows(scan, unit, &step, err);
    if (status == GAR_OK && step.selected == 0) {
        status = skip_others(scan, unit, &step, err);
    } else if (status == GAR_OK) {
        status = read_others(scan, unit, &step, err);
        if (status == GAR_OK) {
            status = make_batch(scan, unit, &step, out, err);
        }
    }
    unit->first_row += rows;
    unit->file_row += rows;
    step_destroy(scan, &step);
    return status;
}

static enum gar_status decode(struct gar_scan *base, struct gar_unit *unit, void *worker,
                              int64_t max_rows, struct gar_batch **out, struct gar_error *err)
{
    (void)worker;
    struct scan *scan = (struct scan *)base;
    enum gar_status status = unit->decoder == NULL ? start_decoding(scan, unit, err) : GAR_OK;
    struct gar_batch *batch = NULL;
    while (status == GAR_OK && batch == NULL && unit->left > 0) {
        if (gar_cancel_requested(scan->cancel)) {
            return gar_cancel_status(scan->cancel, err);
        }
        status = decode_step(scan, unit, max_rows, &batch, err);
    }
    if (status < 0) {
        gar_error_prefix(err, "%s: ", input_of(scan, unit)->path);
        return status;
    }
    if (batch == NULL) {
        return GAR_EOF;
    }
    *out = batch;
    return GAR_OK;
}

/* ---- opening a scan ------------------------------------------------------------------------------------------------------- */

static void scan_free(struct gar_scan *base)
{
    struct scan *scan = (struct scan *)base;
    if (scan == NULL) {
        return;
    }
    for (int64_t i = 0; i < DECODER_SLOTS; i++) {
        decoder_free(scan->decoders[i]);
    }
    gar_program_unref(scan->predicate);
    gar_schema_unref(scan->predicate_schema);
    gar_schema_unref(scan->base.schema);
    gar_free(scan->needed);
    gar_free(scan->output_slots);
    gar_free(scan->key_slots);
    gar_free(scan->groups);
    gar_scan_provider_unref(&scan->provider->base);
    gar_free(scan);
}

/* Visitor: the filter's columns, once each, become needed. */
static void need_column(const char *name, void *context)
{
    struct scan *scan = context;
    const int64_t position = gar_schema_find(scan->provider->base.schema, name);
    for (int64_t i = 0; i < scan->needed_count; i++) {
        if (scan->needed[i] == position) {
            return;
        }
    }
    if (position >= 0) {
        scan->needed[scan->needed_count++] = position;
    }
}

static enum gar_status fields_schema(const struct gar_schema *from, const int64_t *positions,
                                     int64_t count, struct gar_schema **out, struct gar_error *err)
{
    struct gar_field *fields = gar_calloc(count + 1, sizeof *fields);
    if (fields == NULL) {
        return gar_error_nomem(err, (count + 1) * (int64_t)sizeof *fields);
    }
    for (int64_t i = 0; i < count; i++) {
        fields[i] = from->fields[positions[i]];
    }
    const enum gar_status status = gar_schema_new(fields, count, true, out, err);
    gar_free(fields);
    return status;
}

static enum gar_status find_keys(struct scan *scan, const struct gar_scan_request *request,
                                 struct gar_error *err)
{
    scan->key_slots = gar_calloc(request->key_count + 1, sizeof *scan->key_slots);
    if (scan->key_slots == NULL) {
        return gar_error_nomem(err, (request->key_count + 1) * 8);
    }
    scan->keys = request->keys;
    scan->key_count = request->key_count;
    for (int64_t k = 0; k < scan->key_count; k++) {
        while (scan->needed[scan->key_slots[k]] != scan->keys[k].position) {
            scan->key_slots[k]++;
        }
    }
    return GAR_OK;
}

static enum gar_status choose_columns(struct scan *scan, const struct gar_scan_request *request,
                                      struct gar_error *err)
{
    const struct gar_schema *schema = scan->provider->base.schema;
    scan->needed = gar_calloc(schema->count + 1, sizeof *scan->needed);
    scan->output_slots = gar_calloc(request->column_count + 1, sizeof *scan->output_slots);
    if (scan->needed == NULL || scan->output_slots == NULL) {
        return gar_error_nomem(err, (schema->count + request->column_count + 2) * 8);
    }
    if (request->filter != NULL) {
        gar_expr_visit_columns(request->filter, need_column, scan);
        scan->predicate_count = scan->needed_count;
        GAR_TRY(
            fields_schema(schema, scan->needed, scan->needed_count, &scan->predicate_schema, err));
        struct gar_expr *filter = (struct gar_expr *)(uintptr_t)request->filter;
        GAR_TRY(gar_program_new(scan->predicate_schema, &filter, 1, &scan->predicate, err));
    }
    for (int64_t i = 0; i < request->column_count; i++) {
        int64_t slot = 0;
        while (slot < scan->needed_count && scan->needed[slot] != request->columns[i]) {
            slot++;
        }
        if (slot == scan->needed_count) {
            scan->needed[scan->needed_count++] = request->columns[i];
        }
        scan->output_slots[i] = slot;
    }
    GAR_TRY(
        fields_schema(schema, request->columns, request->column_count, &scan->base.schema, err));
    return find_keys(scan, request, err);
}

/* Every needed column must be readable in every file. */
static enum gar_status check_columns(const struct scan *scan, const struct gar_parquet_input *input,
                                     struct gar_error *err)
{
    for (int64_t i = 0; i < scan->needed_count; i++) {
        const int64_t column = input->columns[scan->needed[i]];
        const enum gar_status status =
            column < 0 ? GAR_OK : gar_parquet_column_check(input->file, column, err);
        if (status < 0) {
            gar_error_prefix(err, "%s: ", input->path);
            return status;
        }
    }
    return GAR_OK;
}

/* The row groups that may have rows for the request, in order. */
static enum gar_status choose_groups(struct scan *scan, const struct gar_scan_request *request,
                                     struct gar_error *err)
{
    const struct gar_parquet_inputs *inputs = &scan->provider->inputs;
    int64_t rows = 0;
    int64_t first_row = 0;
    const int64_t skip = request->filter == NULL ? request->skip : 0;
    scan->groups = gar_calloc(inputs->row_groups + 1, sizeof *scan->groups);
    if (scan->groups == NULL) {
        return gar_error_nomem(err, (inputs->row_groups + 1) * (int64_t)sizeof *scan->groups);
    }
    for (int64_t f = 0; f < inputs->count; f++) {
        const struct gar_parquet_input *input = &inputs->items[f];
        const struct gar_parquet_prune prune = {input->file, inputs->schema, input->columns};
        GAR_TRY(check_columns(scan, input, err));
        int64_t file_row = 0;
        for (int64_t g = 0; g < input->file->row_group_count; g++) {
            const int64_t group_rows = input->file->row_groups[g].rows;
            const bool is_skipped = rows == 0 && group_rows <= skip - scan->base.rows_skipped;
            const bool is_enough =
                request->filter == NULL && request->limit >= 0 && first_row >= request->limit;
            const bool is_excluded =
                group_rows == 0 || is_enough || is_skipped ||
                (request->filter != NULL && gar_parquet_prune_group(&prune, g, request->filter));
            if (is_skipped) {
                scan->base.rows_skipped += group_rows;
            } else if (!is_excluded) {
                scan->groups[scan->group_count++] = (struct group){f, g, first_row, file_row};
                rows += group_rows;
            }
            first_row += group_rows;
            file_row += group_rows;
        }
    }
    scan->base.rows_exact = request->filter == NULL && request->key_count == 0 ? rows : -1;
    if (scan->counts != NULL) {
        scan->counts->files_total = inputs->count;
        scan->counts->pieces_total = inputs->row_groups;
        scan->counts->pieces_skipped = inputs->row_groups - scan->group_count;
        scan->counts->rows_total = rows;
    }
    return GAR_OK;
}

/* Bytes of the needed columns in the chosen row groups. */
static int64_t total_bytes(const struct scan *scan)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < scan->group_count; i++) {
        const struct gar_parquet_input *input =
            &scan->provider->inputs.items[scan->groups[i].input];
        for (int64_t c = 0; c < scan->needed_count; c++) {
            const int64_t column = input->columns[scan->needed[c]];
            bytes += column < 0
                         ? 0
                         : gar_parquet_chunk(input->file, scan->groups[i].row_group, column)->bytes;
        }
    }
    return bytes;
}

static enum gar_status open(struct gar_scan_provider *base, const struct gar_scan_request *request,
                            struct gar_scan **out, struct gar_error *err)
{
    static const struct gar_scan_vtable vtable = {.next = next,
                                                  .load = load,
                                                  .decode = decode,
                                                  .park = park,
                                                  .unit_free = unit_free,
                                                  .free = scan_free};
    struct scan *scan = gar_calloc(1, sizeof *scan);
    if (scan == NULL) {
        return gar_error_nomem(err, sizeof *scan);
    }
    scan->base.vtable = &vtable;
    scan->provider = (struct provider *)gar_scan_provider_ref(base);
    scan->memory = request->memory;
    scan->cancel = request->cancel;
    scan->counts = request->counts;
    enum gar_status status = choose_columns(scan, request, err);
    if (status == GAR_OK) {
        status = choose_groups(scan, request, err);
    }
    if (status != GAR_OK) {
        scan_free(&scan->base);
        return status;
    }
    const int64_t bytes = total_bytes(scan);
    scan->base.unit_bytes = scan->group_count == 0 ? 0 : bytes / scan->group_count;
    if (scan->counts != NULL) {
        scan->counts->bytes_total = bytes;
    }
    *out = &scan->base;
    return GAR_OK;
}

/* ---- the provider ---- */

static int64_t row_count(struct gar_scan_provider *base)
{
    const struct gar_parquet_inputs *inputs = &((struct provider *)base)->inputs;
    for (int64_t i = 0; i < inputs->count; i++) { /* a scan would say what has changed */
        const struct gar_parquet_input *input = &inputs->items[i];
        if (input->source == NULL && !gar_source_is_same(input->path, &input->id)) {
            return -1;
        }
    }
    return inputs->rows;
}

static void print(const struct gar_scan_provider *base, struct gar_strbuf *out)
{
    const struct gar_parquet_inputs *inputs = &((const struct provider *)base)->inputs;
    gar_strbuf_printf(out, "parquet %s", inputs->items[0].path);
    if (inputs->count > 1) {
        gar_strbuf_printf(out, " and %lld more", (long long)(inputs->count - 1));
    }
    gar_strbuf_printf(out, " (%lld rows, %lld row groups)", (long long)inputs->rows,
                      (long long)inputs->row_groups);
}

static void provider_free(struct gar_scan_provider *base)
{
    struct provider *provider = (struct provider *)base;
    gar_parquet_inputs_destroy(&provider->inputs);
    gar_free(provider);
}

/* A bound as a number; false when it is not one. */
static bool bound_number(const struct gar_value *value, double *out)
{
    if (!value->is_valid) {
        return false;
    }
    switch ((enum gar_type_id)value->type.id) {
    case GAR_UINT8:
    case GAR_UINT16:
    case GAR_UINT32:
    case GAR_UINT64: *out = (double)value->u64; return true;
    case GAR_INT8:
    case GAR_INT16:
    case GAR_INT32:
    case GAR_INT64:
    case GAR_DATE:
    case GAR_TIME:
    case GAR_TIMESTAMP:
    case GAR_DURATION: *out = (double)value->i64; return true;
    case GAR_FLOAT32:
    case GAR_FLOAT64: *out = value->f64; return true;
    case GAR_DECIMAL128:
        *out = (double)value->i128 / pow(10.0, (double)value->type.scale);
        return true;
    case GAR_NULL:
    case GAR_BOOL:
    case GAR_STRING:
    case GAR_BINARY:
    case GAR_LIST:
    case GAR_FIXED_LIST:
    case GAR_STRUCT:
    case GAR_MAP:
    case GAR_TYPE_ID_COUNT: return false;
    }
    return false;
}

static bool group_range(const struct gar_parquet_file *file, int64_t group, int64_t column,
                        double *least, double *greatest)
{
    struct gar_parquet_bounds bounds;
    double low = 0;
    double high = 0;
    if (gar_parquet_bounds_get(file, group, column, &bounds, NULL) != GAR_OK) {
        return false;
    }
    const bool is_empty = bounds.null_count == bounds.rows;
    const bool is_known =
        is_empty || (bound_number(&bounds.min, &low) && bound_number(&bounds.max, &high));
    gar_parquet_bounds_destroy(&bounds);
    if (is_known && !is_empty) {
        *least = fmin(*least, low);
        *greatest = fmax(*greatest, high);
    }
    return is_known;
}

static bool column_range(struct gar_scan_provider *base, int64_t position, double *out_least,
                         double *out_greatest)
{
    const struct provider *provider = (const struct provider *)base;
    *out_least = HUGE_VAL;
    *out_greatest = -HUGE_VAL;
    if (provider->inputs.row_groups > RANGE_GROUPS_MAX) {
        return false;
    }
    for (int64_t i = 0; i < provider->inputs.count; i++) {
        const struct gar_parquet_input *input = &provider->inputs.items[i];
        const int64_t column = input->columns[position];
        if (column < 0 || input->file->columns[column].unsupported != NULL ||
            !gar_type_equal(input->file->columns[column].type,
                            base->schema->fields[position].type)) {
            return false;
        }
        for (int64_t g = 0; g < input->file->row_group_count; g++) {
            if (!group_range(input->file, g, column, out_least, out_greatest)) {
                return false;
            }
        }
    }
    return *out_least <= *out_greatest;
}

enum gar_status gar_parquet_provider_new(const char *const *paths, int64_t count,
                                         const struct gar_parquet_options *options,
                                         struct gar_cancel *cancel, struct gar_scan_provider **out,
                                         struct gar_error *err)
{
    static const struct gar_scan_provider_vtable vtable = {open, row_count, print, provider_free,
                                                           column_range};
    struct provider *provider = gar_calloc(1, sizeof *provider);
    if (provider == NULL) {
        return gar_error_nomem(err, sizeof *provider);
    }
    provider->base.vtable = &vtable;
    provider->base.refs = 1;
    provider->base.filter_exact = true;
    provider->base.takes_keys = true;
    const enum gar_status status =
        gar_parquet_inputs_open(paths, count, options, cancel, &provider->inputs, err);
    if (status != GAR_OK) {
        provider_free(&provider->base);
        return status;
    }
    provider->base.schema = provider->inputs.schema;
    provider->base.size_hint_rows = provider->inputs.rows;
    provider->base.size_hint_bytes = provider->inputs.bytes;
    *out = &provider->base;
    return GAR_OK;
}
