/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan scans and writes: interfaces that sources/ implements and exec/ drives.
 *
 * A scan is cut into units (a Parquet row group, a block of CSV, a batch in memory). For each unit exec calls, in this order:
 *   next    cheap, serialised by exec, gives units in row order; GAR_EOF at the end
 *   load    on the IO pool (may block in reads); left NULL by sources that read nothing. With `sequential` set, next and load
 *           of unit k are both over before next of unit k+1 starts, and next also runs on the IO pool (it may read)
 *   decode  on a compute thread, repeatedly, until GAR_EOF: each call gives one batch of at most max_rows rows
 *   park    of scans with load: drop what load can bring back, because nobody wants the unit for now; decode goes on where
 *           it was after another load. Without a unit: what the scan itself keeps for decoding. No decode is under way
 *   unit_free  any thread
 * Batches say which rows of the input they are (gar_batch_set_origin), where the source can tell.
 * Units of one scan are decoded on several threads at once; decode's worker state is of one thread at a time. */
#ifndef GAR_PLAN_PROVIDER_H
#define GAR_PLAN_PROVIDER_H

#include "arrow/batch.h"
#include "expr/expr.h"
#include "plan/key_filter.h"

struct gar_cancel; /* runtime/cancel.h; may be NULL */
struct gar_scan_provider;
struct gar_scan;
struct gar_unit;

/* What a scan has done, for the profile: filled in by scans that know, added to with relaxed atomics on any thread.
 * Totals are -1 where they are not known. */
struct gar_scan_counts {
    int64_t files_total;
    int64_t files_read;
    int64_t pieces_total;   /* row groups, blocks */
    int64_t pieces_skipped; /* excluded by statistics, or beyond a limit */
    int64_t pieces_read;
    int64_t bytes_total; /* that will be read, as stored */
    int64_t bytes_read;
    int64_t rows_total; /* that will be read, before the filter */
    int64_t rows_read;
};

#define GAR_SCAN_COUNT(counts, field, n)                                       \
    do {                                                                       \
        if ((counts) != NULL) {                                                \
            (void)__atomic_fetch_add(&(counts)->field, (n), __ATOMIC_RELAXED); \
        }                                                                      \
    } while (0)

/* What the plan wants of a scan. Borrowed during open. */
struct gar_scan_request {
    const int64_t *
        columns; /* positions in the provider's schema, in output order; may be empty (row counts only) */
    int64_t column_count;
    const struct gar_expr
        *filter;   /* over the provider's schema (also of columns not in `columns`), or NULL */
    int64_t skip;  /* rows at the start that are not wanted (0 with a filter); see rows_skipped */
    int64_t limit; /* rows that are enough after the filter, those to skip counted in, or -1 */
    int64_t batch_rows;             /* rows a batch should have at most (default_morsel_size) */
    struct gar_memory *memory;      /* borrowed for the life of the scan */
    struct gar_cancel *cancel;      /* borrowed likewise */
    struct gar_scan_counts *counts; /* borrowed likewise; zeroed when open is called; may be NULL */
    struct gar_key_use *keys;       /* borrowed likewise; of columns in `columns`; see takes_keys */
    int64_t key_count;
};

struct gar_scan_vtable {
    /* GAR_OK with *out owned by the caller, or GAR_EOF. */
    enum gar_status (*next)(struct gar_scan *scan, struct gar_unit **out, struct gar_error *err);
    enum gar_status (*load)(struct gar_scan *scan, struct gar_unit *unit,
                            struct gar_error *err); /* or NULL */
    enum gar_status (*worker_new)(struct gar_scan *scan, struct gar_memory *memory, void **out,
                                  struct gar_error *err); /* or NULL */
    void (*worker_free)(struct gar_scan *scan, void *worker);
    enum gar_status (*decode)(struct gar_scan *scan, struct gar_unit *unit, void *worker,
                              int64_t max_rows, struct gar_batch **out, struct gar_error *err);
    void (*park)(struct gar_scan *scan, struct gar_unit *unit); /* unit NULL: the scan's; or NULL */
    void (*unit_free)(struct gar_scan *scan, struct gar_unit *unit);
    void (*free)(struct gar_scan *scan);
};

/* Sources embed this as their first member. */
struct gar_scan {
    const struct gar_scan_vtable *vtable;
    struct gar_schema *schema; /* of the batches: the requested columns; owned by the scan */
    bool sequential;
    int64_t
        rows_skipped; /* how many of the request's skip it leaves out itself; exec drops the rest */
    int64_t rows_exact; /* rows it will give before the filter, or -1 */
    int64_t unit_bytes; /* estimate of one unit's memory for read-ahead, or 0 */
};

struct gar_scan_provider_vtable {
    GAR_MUST_USE enum gar_status (*open)(struct gar_scan_provider *provider,
                                         const struct gar_scan_request *request,
                                         struct gar_scan **out, struct gar_error *err);
    /* Rows in all without reading data, or -1 when unknown. */
    int64_t (*row_count)(struct gar_scan_provider *provider);
    /* One line for explain: "parquet lineitem.parquet (53 row groups)". */
    void (*print)(const struct gar_scan_provider *provider, struct gar_strbuf *out);
    void (*free)(struct gar_scan_provider *provider);
    /* Least and greatest value of column `position` as statistics know them without reading data, as numbers in the column's
     * own unit (days, microseconds, ...); false: no idea. May be NULL. For estimates only. */
    bool (*column_range)(struct gar_scan_provider *provider, int64_t position, double *out_least,
                         double *out_greatest);
};

/* Immutable, counted, used by many queries at once. Embed as first member. */
struct gar_scan_provider {
    const struct gar_scan_provider_vtable *vtable;
    int64_t refs;              /* atomic; starts at 1 */
    struct gar_schema *schema; /* of the whole source; owned */
    int64_t size_hint_rows;    /* -1 unknown; guides inline execution and pool sizes */
    int64_t size_hint_bytes;   /* -1 unknown */
    bool
        filter_exact; /* its scans apply the whole filter themselves; else exec filters after them */
    bool
        takes_keys; /* its scans look at the request's keys: rows that do not pass may be left out */
};

struct gar_scan_provider *gar_scan_provider_ref(struct gar_scan_provider *provider);
void gar_scan_provider_unref(struct gar_scan_provider *provider);

/* In-memory batches (references are taken; all of `schema`) and integer ranges; implemented in plan/. */
GAR_MUST_USE enum gar_status gar_memory_provider_new(struct gar_schema *schema,
                                                     struct gar_batch *const *batches,
                                                     int64_t count, struct gar_scan_provider **out,
                                                     struct gar_error *err);
/* Column `name` int64: start, start+step, ... below (above) end. step != 0. */
GAR_MUST_USE enum gar_status gar_range_provider_new(const char *name, int64_t start, int64_t end,
                                                    int64_t step, struct gar_scan_provider **out,
                                                    struct gar_error *err);

/* Writing. encode runs on compute threads, several at once; append on the IO pool, one at a time, in row order
 * (when order is kept); finish publishes and gives a batch of one string column "path"; a sink freed
 * without finish removes everything it staged. */
struct gar_sink_provider;
struct gar_write;
struct gar_encoded;

struct gar_write_vtable {
    enum gar_status (*encode)(struct gar_write *write, struct gar_batch *batch,
                              struct gar_memory *memory, struct gar_encoded **out,
                              struct gar_error *err);
    enum gar_status (*append)(struct gar_write *write, struct gar_encoded *encoded,
                              struct gar_error *err); /* moves encoded */
    void (*encoded_free)(struct gar_write *write, struct gar_encoded *encoded);
    enum gar_status (*finish)(struct gar_write *write, struct gar_memory *memory,
                              struct gar_batch **out_paths, struct gar_error *err);
    void (*free)(struct gar_write *write); /* aborts unless finished */
};

struct gar_write {
    const struct gar_write_vtable *vtable;
    int64_t preferred_rows; /* exec gathers about so many rows (in order) for each encode call */
};

struct gar_sink_provider_vtable {
    GAR_MUST_USE enum gar_status (*open)(struct gar_sink_provider *provider,
                                         struct gar_schema *schema, struct gar_memory *memory,
                                         struct gar_write **out, struct gar_error *err);
    void (*print)(const struct gar_sink_provider *provider, struct gar_strbuf *out);
    void (*free)(struct gar_sink_provider *provider);
};

struct gar_sink_provider {
    const struct gar_sink_provider_vtable *vtable;
    int64_t refs; /* atomic; starts at 1 */
};

struct gar_sink_provider *gar_sink_provider_ref(struct gar_sink_provider *provider);
void gar_sink_provider_unref(struct gar_sink_provider *provider);

#endif
