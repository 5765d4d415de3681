/* SPDX-License-Identifier: Apache-2.0 */
/* The public C API of Gar: sessions, expressions, lazy frames, results as Arrow streams.
 *
 * Conventions
 *  - Functions that can fail return enum gar_status: GAR_OK (0) or GAR_EOF (1) are good, negative values are failures. The last
 *    parameter takes the message (NULL if not wanted). On failure outputs are untouched.
 *  - Handles (struct gar_session, gar_expr, gar_frame, gar_result) are counted: what a function gives in *out
 *    belongs to the caller, who releases it with the _release function (NULL is fine). Arguments are borrowed for the
 *    call unless said otherwise.
 *  - Expressions and frames are immutable and may be used from any number of threads at once. A result belongs to one
 *    thread at a time, but gar_result_cancel and gar_result_progress may come from any thread.
 *  - After fork the child has no threads of ours: results of the parent say GAR_ERR_UNSUPPORTED there and are only forgotten by
 *    their release. Frames, sessions and new queries work.
 *  - Option structs start with struct_bytes: set by their _init function; fields that a caller's older header lacks get defaults.
 *  - Types are named by text ("int64", "decimal(15, 2)", "timestamp[us, UTC]") or by an ArrowSchema.
 *  - Text results (char **) are UTF-8, NUL-terminated, freed with gar_text_free.
 *  - Every function is marked EXPERIMENTAL (may change before 1.0) or STABLE (kept within a soname). */
#ifndef GAR_GAR_H
#define GAR_GAR_H

#include <gar/arrow_abi.h>
#include <gar/function.h>
#include <gar/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GAR_VERSION_MAJOR 0
#define GAR_VERSION_MINOR 1
#define GAR_VERSION_PATCH 0
#define GAR_EXPERIMENTAL  GAR_API
#define GAR_STABLE        GAR_API

struct gar_session;
struct gar_expr;
struct gar_frame;
struct gar_result;
struct gar_profile;

/* "0.1.0". Threads: any. */
GAR_STABLE const char *gar_version(void);
/* Frees text that a Gar function gave; NULL is fine. */
GAR_STABLE void gar_text_free(char *text);

/* ---- sessions and settings ------------------------------------------------------------------------------------ */

enum gar_progress_mode {
    GAR_PROGRESS_OFF,
    GAR_PROGRESS_AUTO, /* when standard error is a terminal */
    GAR_PROGRESS_ON
};

struct gar_settings {
    size_t struct_bytes;
    int64_t morsel_rows; /* rows a batch has at most; >= 1; default 131,072 */
    int64_t
        memory_limit_bytes; /* budget of the process's queries; 0: default (75 % of what the container allows) */
    int32_t
        num_threads; /* compute threads; 0: usable CPUs; takes effect until the pool has started */
    int32_t io_threads;  /* IO threads; 0: min(8, usable CPUs) */
    bool maintain_order; /* default true */
    bool enable_inline;  /* small queries run on the caller's thread; default true */
    bool compute_batch;  /* compute threads are SCHED_BATCH; default false */
    int32_t
        compute_nice; /* added to the process's nice value for compute threads, -20 .. 19; default 0 */
    int32_t io_nice; /* the same for IO threads; what the system refuses is left out */
    /* A caller who waits for more than half a second draws a line on standard error that tells how far the query is, and
     * takes it away again. Default GAR_PROGRESS_OFF. */
    enum gar_progress_mode progress;
    /* A query that has not moved for so long says in the log and in its profile what it waits for; 0: never; default
     * 30,000. */
    int64_t watchdog_ms;
    /* Free memory that is kept between queries; what is above goes back to the system; 0: default (a quarter of the limit,
     * at most 2 GiB). */
    int64_t memory_keep_bytes;
    /* Queries that need more memory than the limit put rows into files without names in this folder, at most so many bytes at
     * any time. "": the folder TMPDIR, else /tmp. 0: nine tenths of what is free there; -1: nothing is put there and
     * such queries fail. */
    int64_t spill_limit_bytes;
    char spill_dir[1024];
    /* Names of rules of the optimizer that are left out, with commas between (docs/optimizer.md); default "". */
    char disabled_rules[512];
    bool
        spill_always; /* for tests: operators that can do so put rows there whatever the memory; default false */
};

GAR_EXPERIMENTAL void gar_settings_init(struct gar_settings *settings);
/* The process-wide session, made at first use; starts no thread until a query needs one. Never released.
 * Errors: GAR_ERR_NOMEM. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_session_default(struct gar_session **out,
                                                                  struct gar_error *err);
/* Settings from the environment are the defaults: GAR_NUM_THREADS, GAR_IO_THREADS, GAR_MEMORY_LIMIT, GAR_MEMORY_KEEP,
 * GAR_DISABLE_RULES, GAR_SPILL_DIR, GAR_SPILL_LIMIT, GAR_SPILL=force (spill_always), GAR_MORSEL_ROWS, GAR_INLINE=0|1,
 * GAR_COMPUTE_NICE, GAR_IO_NICE, GAR_COMPUTE_BATCH=0|1, GAR_PROGRESS=0|1|auto, GAR_WATCHDOG_SECONDS,
 * GAR_FOOTER_CACHE (bytes of Parquet footers that the process keeps for files read again; default 16 MiB, 0: none); read
 * when the default session is made: GAR_TRACE=path (gar_trace_start), GAR_LOG=off|error|warning|info (gar_log_to). */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_session_new(const struct gar_settings *settings,
                                                              struct gar_session **out,
                                                              struct gar_error *err);
GAR_EXPERIMENTAL void gar_session_release(struct gar_session *session);
GAR_EXPERIMENTAL void gar_session_settings(const struct gar_session *session,
                                           struct gar_settings *out);
/* Queries that start later use the new settings. Errors: GAR_ERR_VALUE for an illegal one; number and priority of threads
 * cannot change while queries run (GAR_ERR_VALUE). */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_session_configure(
    struct gar_session *session, const struct gar_settings *settings, struct gar_error *err);

enum gar_log_level { GAR_LOG_OFF, GAR_LOG_ERROR, GAR_LOG_WARNING, GAR_LOG_INFO };

/* Messages up to `level` (default GAR_LOG_WARNING) go to write, one line each, on any thread, without a line end; NULL: to
 * standard error. write must not call back. Set it before queries run. */
GAR_EXPERIMENTAL void gar_log_to(enum gar_log_level level,
                                 void (*write)(void *context, enum gar_log_level level,
                                               const char *message),
                                 void *context);

/* From now on spans of tasks, reads, writes and waits of all queries are written to a new file at path that
 * chrome://tracing and ui.perfetto.dev show: one track a thread. The file is complete after each query's end.
 * Errors: GAR_ERR_VALUE when a trace is being written already; GAR_ERR_IO. Threads: any; blocks on IO. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_trace_start(const char *path,
                                                              struct gar_error *err);
/* Write what is left and close the file; without a trace it does nothing. Errors: GAR_ERR_IO. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_trace_stop(struct gar_error *err);

struct gar_statistics {
    size_t struct_bytes;
    int64_t memory_live_bytes; /* column memory in use by queries and results */
    int64_t memory_peak_bytes;
    int64_t memory_held_bytes; /* kept by the pool for reuse, the live bytes included */
    int64_t heap_live_bytes;   /* small objects */
    int64_t heap_live_blocks;
    int32_t threads;           /* engine threads now */
    int32_t queries;           /* running now */
    int64_t memory_keep_bytes; /* free memory that is kept between queries */
};

GAR_EXPERIMENTAL void gar_session_statistics(struct gar_session *session,
                                             struct gar_statistics *out);

/* ---- types ------------------------------------------------------------------------------------------------------ */

/* The canonical spelling of a type text ("bigint" -> "int64"). Errors: GAR_ERR_VALUE naming it. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_type_canonical(const char *type, char **out,
                                                                 struct gar_error *err);
/* Type text -> Arrow (out is the caller's to release), and back. large_string and large_binary stand for text. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_type_to_arrow(const char *type,
                                                                struct ArrowSchema *out,
                                                                struct gar_error *err);
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_type_from_arrow(const struct ArrowSchema *schema,
                                                                  char **out,
                                                                  struct gar_error *err);

/* ---- expressions -------------------------------------------------------------------------------------------------- */

GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_expr_column(const char *name,
                                                              struct gar_expr **out,
                                                              struct gar_error *err);
/* Literals. text and binary copy their bytes (text must be UTF-8). */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_expr_null(struct gar_expr **out,
                                                            struct gar_error *err);
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_expr_bool(bool value, struct gar_expr **out,
                                                            struct gar_error *err);
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_expr_int64(int64_t value, struct gar_expr **out,
                                                             struct gar_error *err);
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_expr_uint64(uint64_t value, struct gar_expr **out,
                                                              struct gar_error *err);
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_expr_float64(double value, struct gar_expr **out,
                                                               struct gar_error *err);
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_expr_string(const char *data, int64_t bytes,
                                                              struct gar_expr **out,
                                                              struct gar_error *err);
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_expr_binary(const void *data, int64_t bytes,
                                                              struct gar_expr **out,
                                                              struct gar_error *err);
/* Any type from text: ("date", "1998-12-01"), ("decimal(15, 2)", "0.05"), ("duration[us]", "5000000"). */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_expr_typed(const char *type, const char *data,
                                                             int64_t bytes, struct gar_expr **out,
                                                             struct gar_error *err);
/* A function of the registry by name. Errors: GAR_ERR_VALUE (unknown name with near ones, number of arguments). */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_expr_call(const char *function,
                                                            struct gar_expr *const *args,
                                                            int64_t count, struct gar_expr **out,
                                                            struct gar_error *err);
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_expr_cast(struct gar_expr *arg, const char *type,
                                                            bool is_try, struct gar_expr **out,
                                                            struct gar_error *err);
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_expr_alias(struct gar_expr *arg, const char *name,
                                                             struct gar_expr **out,
                                                             struct gar_error *err);
/* The shape of a window. The first bound and the last one: kind 0 the partition's first row, 1 an offset, 2 the current row (of a
 * range: its peers), 3 the partition's last row. Offsets of rows and of groups are counted from the row (its
 * group), negative before it; offsets of a range are values added to the one expression that the window is ordered by. */
struct gar_window_description {
    size_t struct_bytes;
    struct gar_expr *const *partition_by; /* borrowed, as all below */
    int64_t partition_count;
    struct gar_expr *const *order_by;
    const bool *descending;  /* of each expression of order_by; NULL: none */
    const bool *nulls_first; /* NULL: where descending */
    int64_t order_count;
    int32_t frame; /* 0 the whole partition, 1 rows, 2 range, 3 groups: of rows with equal keys */
    int32_t start;
    int32_t end;
    int64_t start_rows;
    int64_t end_rows;
    struct gar_expr *start_value; /* NULL unless of a range with an offset */
    struct gar_expr *end_value;
    int64_t min_periods; /* frames of fewer rows give null */
    int32_t
        exclude; /* rows that do not count: 0 none, 1 the current row, 2 it and its peers, 3 its peers */
};
/* The expression with its aggregates and window functions computed over the window, for select and with_columns. Errors:
 * GAR_ERR_VALUE when there is none in it or the frame makes no sense. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_expr_windowed(
    struct gar_expr *arg, const struct gar_window_description *window, struct gar_expr **out,
    struct gar_error *err);
/* arg in the values of an Arrow array; moves `array` (its release is NULL afterwards, also on failure), borrows `schema`. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_expr_is_in(struct gar_expr *arg,
                                                             const struct ArrowSchema *schema,
                                                             struct ArrowArray *array,
                                                             struct gar_expr **out,
                                                             struct gar_error *err);
/* A function of the caller's own over args, which may be none; *function is copied. Its context belongs to the expression
 * from now on (released also on failure). A frame with it never runs on the caller's thread. Errors: GAR_ERR_VALUE. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_expr_user_function(
    const struct gar_user_function *function, struct gar_expr *const *args, int64_t count,
    struct gar_expr **out, struct gar_error *err);
/* The same, performed by worker processes; everything is copied. Resources of all such functions of a query are acquired
 * together, before anything starts. Errors: GAR_ERR_VALUE. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_expr_actor_function(
    const struct gar_actor_function *function, struct gar_expr *const *args, int64_t count,
    struct gar_expr **out, struct gar_error *err);
/* The traceback, or whatever text its class gave, of the exception in a worker process that a query failed with: position is
 * the error's, below -1. It is given once; NULL: there is none, or newer failures took its place. The caller frees it. */
GAR_EXPERIMENTAL char *gar_failure_traceback(int64_t position);
/* A SQL expression; frame (may be NULL) resolves names. Errors: GAR_ERR_SYNTAX with err->position and a caret line. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_expr_parse(const char *sql, int64_t bytes,
                                                             const struct gar_frame *frame,
                                                             struct gar_expr **out,
                                                             struct gar_error *err);
/* A comma-separated list of SQL expressions, as after SELECT; *out is an array of *out_count, each released by the caller,
 * the array freed with gar_expr_list_free. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_expr_parse_list(const char *sql, int64_t bytes,
                                                                  const struct gar_frame *frame,
                                                                  struct gar_expr ***out,
                                                                  int64_t *out_count,
                                                                  struct gar_error *err);
GAR_EXPERIMENTAL void gar_expr_list_free(struct gar_expr **list, int64_t count);
GAR_EXPERIMENTAL struct gar_expr *gar_expr_retain(struct gar_expr *expr);
GAR_EXPERIMENTAL void gar_expr_release(struct gar_expr *expr);
/* Name of the column it makes; valid as long as the expression. */
GAR_EXPERIMENTAL const char *gar_expr_output_name(const struct gar_expr *expr);
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_expr_to_text(const struct gar_expr *expr,
                                                               char **out, struct gar_error *err);
/* Type over the rows of a frame, as text. Errors: GAR_ERR_COLUMN, GAR_ERR_TYPE. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_expr_type_text(const struct gar_expr *expr,
                                                                 const struct gar_frame *frame,
                                                                 char **out, struct gar_error *err);

/* One row of the function registry; static strings. */
struct gar_function_description {
    size_t struct_bytes;
    const char *name; /* for gar_expr_call and Python */
    const char *sql;  /* operator or SQL spelling, NULL if the same */
    const char *signature;
    const char *summary;
    const char *group;
    int32_t args_min;
    int32_t args_max; /* -1: any number */
    bool is_aggregate;
};

GAR_EXPERIMENTAL int64_t gar_registry_count(void);
/* False past the end. */
GAR_EXPERIMENTAL bool gar_registry_get(int64_t i, struct gar_function_description *out);

/* ---- frames: where rows come from ------------------------------------------------------------------------------------ */

struct gar_parquet_options {
    size_t struct_bytes;
    int64_t schema_count; /* 0: the files' own schema; else exactly these columns, by name */
    const char *const *schema_names;
    const char *const *schema_types;
    const char *file_path_column; /* NULL: none */
    /* As in gar_run_options: asked while the call reads footers (a pipe is read to its end). */
    int (*interrupted)(void *context);
    void *context;
};

struct gar_csv_options {
    size_t struct_bytes;
    bool has_header;   /* default true; without: column_1, column_2, ... */
    char delimiter;    /* default ',' */
    char quote;        /* default '"'; 0: no quoting */
    char escape;       /* default 0: none */
    bool double_quote; /* "" inside quotes is one quote; default true */
    char comment;      /* lines starting with it are skipped; default 0: none */
    bool
        allow_variable_columns; /* ragged rows: nulls for missing, extra ignored; default false: an error */
    bool infer_schema;          /* false: all text unless given */
    int64_t schema_count; /* given types by name; the others are inferred */
    const char *const *schema_names;
    const char *const *schema_types;
    const char *null_text; /* unquoted text that means null besides the empty one; NULL: none */
    const char *file_path_column;
    /* As in gar_run_options: asked while the call reads its sample. */
    int (*interrupted)(void *context);
    void *context;
};

struct gar_files_options {
    size_t struct_bytes;
    bool with_content; /* default false: "num_rows" (null) instead of "content" */
    bool
        null_on_error; /* null and a message to the log for a file that cannot be read; default false: an error */
    /* As in gar_run_options: asked while the call lists files. */
    int (*interrupted)(void *context);
    void *context;
};

GAR_EXPERIMENTAL void gar_files_options_init(struct gar_files_options *options);
GAR_EXPERIMENTAL void gar_parquet_options_init(struct gar_parquet_options *options);
GAR_EXPERIMENTAL void gar_csv_options_init(struct gar_csv_options *options);

/* Files, globs or directories. Footers (or a sample) are read now, data when the frame runs. options may be NULL.
 * "-" is standard input; what can be read only once (a pipe) gives its rows to one query.
 * Errors: GAR_ERR_IO, GAR_ERR_FORMAT with path and place, GAR_ERR_INTERRUPTED. Blocks on IO. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_read_parquet(
    struct gar_session *session, const char *const *paths, int64_t count,
    const struct gar_parquet_options *options, struct gar_frame **out, struct gar_error *err);
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_read_csv(
    struct gar_session *session, const char *const *paths, int64_t count,
    const struct gar_csv_options *options, struct gar_frame **out, struct gar_error *err);
/* One row for each file: "path" (string), "size" (int64) and "num_rows" or "content" (binary). A size is what the file had when
 * it was listed, or what was read of it when its content is asked for too. Errors: as above; GAR_ERR_UNSUPPORTED for pipes. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_read_files(
    struct gar_session *session, const char *const *paths, int64_t count,
    const struct gar_files_options *options, struct gar_frame **out, struct gar_error *err);
/* All batches of an Arrow stream, read now; moves the stream (released, also on failure). Buffers are shared
 * where layouts agree. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_from_stream(struct gar_session *session,
                                                                    struct ArrowArrayStream *stream,
                                                                    struct gar_frame **out,
                                                                    struct gar_error *err);
/* One record batch (struct array): moves `array`, borrows `schema`. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_from_arrow(struct gar_session *session,
                                                                   const struct ArrowSchema *schema,
                                                                   struct ArrowArray *array,
                                                                   struct gar_frame **out,
                                                                   struct gar_error *err);
/* int64 column "id": start, start + step, ... before end. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_range(struct gar_session *session,
                                                              int64_t start, int64_t end,
                                                              int64_t step, struct gar_frame **out,
                                                              struct gar_error *err);

/* ---- frames: transformations (lazy; each gives a new frame; all checks of names and types are made here) -------------- */

GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_select(const struct gar_frame *frame,
                                                               struct gar_expr *const *exprs,
                                                               int64_t count,
                                                               struct gar_frame **out,
                                                               struct gar_error *err);
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_with_columns(const struct gar_frame *frame,
                                                                     struct gar_expr *const *exprs,
                                                                     int64_t count,
                                                                     struct gar_frame **out,
                                                                     struct gar_error *err);
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_rename(const struct gar_frame *frame,
                                                               const char *const *from,
                                                               const char *const *to, int64_t count,
                                                               struct gar_frame **out,
                                                               struct gar_error *err);
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_exclude(const struct gar_frame *frame,
                                                                const char *const *names,
                                                                int64_t count,
                                                                struct gar_frame **out,
                                                                struct gar_error *err);
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_where(const struct gar_frame *frame,
                                                              struct gar_expr *predicate,
                                                              struct gar_frame **out,
                                                              struct gar_error *err);
/* limit -1: no limit. Errors: GAR_ERR_VALUE for other negative numbers. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_limit(const struct gar_frame *frame,
                                                              int64_t offset, int64_t limit,
                                                              struct gar_frame **out,
                                                              struct gar_error *err);
/* descending and nulls_first have `count` items; NULL: ascending; nulls last ascending, first descending. Stable. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_sort(
    const struct gar_frame *frame, struct gar_expr *const *keys, const bool *descending,
    const bool *nulls_first, int64_t count, struct gar_frame **out, struct gar_error *err);
/* Group-by; key_count 0: one row over everything. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_aggregate(
    const struct gar_frame *frame, struct gar_expr *const *keys, int64_t key_count,
    struct gar_expr *const *aggs, int64_t agg_count, struct gar_frame **out, struct gar_error *err);
/* count 0: whole rows; else one whole row per key, the first in input order when order is kept. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_distinct(const struct gar_frame *frame,
                                                                 struct gar_expr *const *keys,
                                                                 int64_t count,
                                                                 struct gar_frame **out,
                                                                 struct gar_error *err);
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_concat(struct gar_frame *const *frames,
                                                               int64_t count,
                                                               struct gar_frame **out,
                                                               struct gar_error *err);

struct gar_join_options {
    size_t struct_bytes;
    const char *
        how; /* "inner" (default), "left", "right", "outer" (also "full"), "semi", "anti", "cross" */
    bool nulls_equal; /* null keys match each other; else they match nothing */
    struct gar_expr *
        condition; /* borrowed; what must be true of a pair besides, over the columns of both sides under the
                                         names that they have in the result; NULL: nothing */
    const char *prefix; /* of right columns whose name left has too; both NULL: "right." */
    const char *suffix;
    const char
        *strategy; /* NULL or "hash": the one there is; "broadcast" is the same on one machine */
};
GAR_EXPERIMENTAL void gar_join_options_init(struct gar_join_options *options);
/* Pairs of rows whose keys are equal: left_keys over left, right_keys over right, count each (0: every pair, for "cross"
 * or with a condition). NaN equals NaN, -0.0 equals 0.0. Keys of different types are compared in a type that holds
 * both. Two keys that are columns of one name come out as one column, of left's type; it is right's value where left
 * has none. Equalities of both sides in the condition are used as keys. Row order of the result is not specified.
 * Errors: GAR_ERR_TYPE naming both keys and their types, GAR_ERR_COLUMN, GAR_ERR_VALUE (an unknown `how`, keys with
 * "cross", none without, two output columns of one name). */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_join(
    const struct gar_frame *left, const struct gar_frame *right, struct gar_expr *const *left_keys,
    struct gar_expr *const *right_keys, int64_t count, const struct gar_join_options *options,
    struct gar_frame **out, struct gar_error *err);

struct gar_asof_options {
    size_t struct_bytes;
    const char *direction; /* "backward" (default): right's `on` is at most left's; "forward": at
                              least; "nearest": either, of two equally near ones the lesser */
    struct gar_expr
        *tolerance;      /* borrowed; a literal: the greatest distance, a number, or a duration
                                   where `on` is a date or time; NULL: any */
    bool excludes_equal; /* a partner's `on` may not equal left's */
    const char *prefix;  /* as in gar_join_options */
    const char *suffix;
};
GAR_EXPERIMENTAL void gar_asof_options_init(struct gar_asof_options *options);
/* Every row of left once, beside the row of right whose `by` keys are equal (count each, maybe 0) and whose `on` lies
 * nearest in the direction, or beside nulls. `on` of both sides: numbers, dates, times, timestamps or durations, compared in a
 * type that holds both; null and NaN have no partner. Of right rows with one `on` the last of the input counts, forward the
 * first. Names as in gar_frame_join. Row order of the result is not specified.
 * Errors: GAR_ERR_TYPE, GAR_ERR_COLUMN, GAR_ERR_VALUE (an unknown direction, a negative tolerance, `on` that names no
 * column). */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_join_asof(
    const struct gar_frame *left, const struct gar_frame *right, struct gar_expr *left_on,
    struct gar_expr *right_on, struct gar_expr *const *left_by, struct gar_expr *const *right_by,
    int64_t count, const struct gar_asof_options *options, struct gar_frame **out,
    struct gar_error *err);

GAR_EXPERIMENTAL struct gar_frame *gar_frame_retain(struct gar_frame *frame);
GAR_EXPERIMENTAL void gar_frame_release(struct gar_frame *frame);

/* ---- frames: looking --------------------------------------------------------------------------------------------------- */

GAR_EXPERIMENTAL int64_t gar_frame_column_count(const struct gar_frame *frame);
/* NULL past the end; valid as long as the frame. */
GAR_EXPERIMENTAL const char *gar_frame_column_name(const struct gar_frame *frame, int64_t i);
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_column_type(const struct gar_frame *frame,
                                                                    int64_t i, char **out,
                                                                    struct gar_error *err);
/* Struct schema with large_string and large_binary; the caller releases *out. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_schema(const struct gar_frame *frame,
                                                               struct ArrowSchema *out,
                                                               struct gar_error *err);
/* Rows if they are known without running (collected frames, plain Parquet), else -1. */
GAR_EXPERIMENTAL int64_t gar_frame_known_rows(const struct gar_frame *frame);

enum gar_plan_stage {
    GAR_STAGE_LOGICAL,
    GAR_STAGE_OPTIMIZED,
    GAR_STAGE_PHYSICAL,
    GAR_STAGE_RESOURCES /* user functions: pools, actors, devices, batches, as they would be placed now */
};
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_explain(const struct gar_frame *frame,
                                                                enum gar_plan_stage stage,
                                                                char **out, struct gar_error *err);

/* ---- running ------------------------------------------------------------------------------------------------------------ */

enum gar_run_mode {
    GAR_RUN_ON_DEMAND, /* small queries run inside gar_result_next; others are never far ahead of their reader */
    GAR_RUN_BACKGROUND, /* at once and never on the caller's thread, not far ahead of the reader */
    GAR_RUN_TO_END /* at once and to the end, without a reader; rows wait in memory, within its limit */
};

struct gar_run_options {
    size_t struct_bytes;
    /* Asked by a waiting caller on its own thread every 20 ms and on EINTR; non-zero stops the query with
     * GAR_ERR_INTERRUPTED. NULL: never. */
    int (*interrupted)(void *context);
    void *context;
    int64_t timeout_ms;     /* from the start; GAR_ERR_TIMEOUT; 0: none */
    int64_t batch_rows;     /* exact rows of each result batch but the last; 0: as they come */
    enum gar_run_mode mode; /* of gar_frame_run; default GAR_RUN_ON_DEMAND */
    /* Shows how far the query is, in place of the line on standard error (gar_settings.progress): called with context on a
     * thread that waits, after half a second and then at most ten times a second; line NULL: take it away. NULL: none. */
    void (*show_progress)(void *context, const char *line);
};

GAR_EXPERIMENTAL void gar_run_options_init(struct gar_run_options *options);

enum gar_text_encoding {
    GAR_TEXT_AS_LARGE, /* large_string, large_binary */
    GAR_TEXT_AS_VIEW   /* string_view, binary_view: no copy */
};

/* Starts the query; options may be NULL. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_run(const struct gar_frame *frame,
                                                            const struct gar_run_options *options,
                                                            struct gar_result **out,
                                                            struct gar_error *err);
/* The next batch as a struct array (the caller releases *out) or GAR_EOF. Waits; a failure is reported again by later calls. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_result_next(struct gar_result *result,
                                                              enum gar_text_encoding encoding,
                                                              struct ArrowArray *out,
                                                              struct gar_error *err);
/* The same, but waits at most timeout_ms (0: not at all): GAR_PENDING when nothing has come by then. A small query of
 * GAR_RUN_ON_DEMAND computes here all the same. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_result_next_within(
    struct gar_result *result, enum gar_text_encoding encoding, int64_t timeout_ms,
    struct ArrowArray *out, struct gar_error *err);
/* All rows that were not taken as a frame over memory; may be called again. Waits at most timeout_ms (-1: until the end):
 * GAR_PENDING when the query has not ended by then; nothing is lost. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_result_collect(struct gar_result *result,
                                                                 int64_t timeout_ms,
                                                                 struct gar_frame **out,
                                                                 struct gar_error *err);
/* A descriptor to poll(2): readable while gar_result_next would not wait. Owned by the result, closed with it. A small query
 * of GAR_RUN_ON_DEMAND is always ready; ask again after each batch, it changes when such a query outgrows the caller.
 * Errors: GAR_ERR_IO (too many open files), GAR_ERR_UNSUPPORTED in a forked child. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_result_fd(struct gar_result *result, int *out_fd,
                                                            struct gar_error *err);

enum gar_run_state {
    GAR_RUN_RUNNING,
    GAR_RUN_DONE,      /* complete; rows may still wait to be taken */
    GAR_RUN_CANCELLED, /* stopped by a call, its deadline or an interrupt */
    GAR_RUN_FAILED     /* gar_result_next tells why */
};

/* What a query has done so far. */
struct gar_progress {
    size_t struct_bytes; /* set by the caller */
    enum gar_run_state state;
    int64_t elapsed_ns;        /* since the start; stands still after the end */
    int64_t rows_read;         /* rows that its scans gave */
    int64_t rows;              /* of the result, made so far */
    int64_t bytes;             /* of the result, made so far */
    int64_t memory_bytes;      /* column memory that the query holds */
    int64_t memory_peak_bytes; /* the most it ever held */
};

/* Fills the first struct_bytes of *out. Threads: any, while the result lives. Never waits. */
GAR_EXPERIMENTAL void gar_result_progress(const struct gar_result *result,
                                          struct gar_progress *out);
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_result_schema(const struct gar_result *result,
                                                                enum gar_text_encoding encoding,
                                                                struct ArrowSchema *out,
                                                                struct gar_error *err);
/* Moves the result into an Arrow stream (the caller's to release); `result` is released. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_result_to_stream(struct gar_result *result,
                                                                   enum gar_text_encoding encoding,
                                                                   struct ArrowArrayStream *out,
                                                                   struct gar_error *err);
/* Stops the query; a waiting gar_result_next ends with GAR_ERR_CANCELLED. One that has ended keeps its rows. Any thread,
 * any number of times. */
GAR_EXPERIMENTAL void gar_result_cancel(struct gar_result *result);
/* Stops what still runs and frees; does not wait long. */
GAR_EXPERIMENTAL void gar_result_release(struct gar_result *result);

/* Runs the frame and keeps its rows: a frame over memory. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_collect(
    const struct gar_frame *frame, const struct gar_run_options *options, struct gar_frame **out,
    struct gar_error *err);
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_count_rows(
    const struct gar_frame *frame, const struct gar_run_options *options, int64_t *out,
    struct gar_error *err);

/* ---- writing ------------------------------------------------------------------------------------------------------------- */

struct gar_write_options {
    size_t struct_bytes;
    const char *
        compression; /* parquet: "snappy" (default), "zstd", "gzip", "brotli", "lz4_raw", "none"; csv: "none", "gzip", "zstd" */
    bool
        overwrite; /* replace what the folder holds, after the new files are in place; default false: add */
    bool
        single_file; /* path is a file name; default: path is a folder unless it ends in .parquet / .csv */
    char delimiter;         /* csv; default ',' */
    bool header;            /* csv; default true */
    int64_t row_group_rows; /* parquet; 0: default */
};

GAR_EXPERIMENTAL void gar_write_options_init(struct gar_write_options *options);
/* Runs the frame and writes it. Files are staged under hidden names and published by rename; a failed or cancelled
 * write leaves the old state. *out: a frame over memory with one string column "path". Blocks. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_write_parquet(
    const struct gar_frame *frame, const char *path, const struct gar_write_options *write,
    const struct gar_run_options *options, struct gar_frame **out, struct gar_error *err);
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_write_csv(
    const struct gar_frame *frame, const char *path, const struct gar_write_options *write,
    const struct gar_run_options *options, struct gar_frame **out, struct gar_error *err);

/* ---- profiles: what the operators of a query have done -------------------------------------------------------------- */

/* A live view of one query: it may be read from any thread while the query runs, and after query and result are gone. */

struct gar_query_profile {
    size_t struct_bytes;       /* set by the caller */
    int64_t wall_ns;           /* since the start; stands still after the end */
    int64_t cpu_ns;            /* of all threads that worked for it, so far */
    int64_t rows;              /* of the result so far */
    int64_t bytes;             /* of the result so far */
    int64_t rows_read;         /* that its scans gave */
    int64_t memory_bytes;      /* column memory that the query and its rows hold now */
    int64_t memory_peak_bytes; /* the most it ever held */
    int64_t operator_count;    /* 0 until it is planned */
    int32_t pipeline_count;
    int32_t pipeline; /* that runs now, from 1; 0: none */
    int32_t threads;  /* compute threads it may use */
    bool is_inline;   /* on the caller's thread */
    bool is_finished;
    enum gar_status status; /* of the end */
    /* What a query that has not moved for a while waits for (the watchdog's words), or NULL. */
    const char *waiting;
};

enum gar_operator_role { GAR_OPERATOR_SOURCE, GAR_OPERATOR_TRANSFORM, GAR_OPERATOR_SINK };

struct gar_operator_profile {
    size_t struct_bytes; /* set by the caller */
    const char *name;    /* "scan", "filter", "group by" */
    const char *detail;  /* as in the physical plan */
    enum gar_operator_role role;
    int32_t pipeline; /* from 1 */
    int32_t branch;   /* of the pipeline, from 1: inputs of a concat */
    int64_t rows_in;  /* a scan: rows read, before its own filter */
    int64_t
        rows_out; /* a sink: its rows come out of the source of a later pipeline; 0 here, but for the result */
    int64_t batches; /* given; a sink: taken */
    int64_t bytes;   /* of those batches */
    int64_t busy_ns; /* on compute threads, all together */
    int64_t io_ns;   /* on IO threads: reading, writing */
    int64_t memory_bytes;
    int64_t memory_peak_bytes;
    /* Scans, -1 where it means nothing or is not known. A piece is a row group, or a block of text. */
    int64_t files_total;
    int64_t files_read;
    int64_t pieces_total;
    int64_t pieces_skipped; /* because statistics exclude them, or a limit is filled */
    int64_t pieces_read;
    int64_t bytes_read; /* as stored */
    int64_t bytes_total;
    int64_t rows_total;
};

/* The caller releases it; NULL for a frame that was not made by running a query. Threads: any, while the result or frame
 * lives. */
GAR_EXPERIMENTAL struct gar_profile *gar_result_profile(const struct gar_result *result);
GAR_EXPERIMENTAL struct gar_profile *gar_frame_profile(const struct gar_frame *frame);
/* These fill the first struct_bytes of *out. False: no such operator. Texts live as long as the profile. */
GAR_EXPERIMENTAL void gar_profile_query(const struct gar_profile *profile,
                                        struct gar_query_profile *out);
GAR_EXPERIMENTAL bool gar_profile_operator(const struct gar_profile *profile, int64_t i,
                                           struct gar_operator_profile *out);
/* The physical plan with the numbers of each operator. Errors: GAR_ERR_NOMEM. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_profile_text(const struct gar_profile *profile,
                                                               char **out, struct gar_error *err);
GAR_EXPERIMENTAL struct gar_profile *gar_profile_retain(struct gar_profile *profile);
GAR_EXPERIMENTAL void gar_profile_release(struct gar_profile *profile);
/* Runs the frame, throws its rows away, and gives the physical plan with the numbers of each operator. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_explain_analyze(
    const struct gar_frame *frame, const struct gar_run_options *options, char **out,
    struct gar_error *err);

/* ---- text ---------------------------------------------------------------------------------------------------------------- */

enum gar_text_format { GAR_FORMAT_TABLE, GAR_FORMAT_CSV, GAR_FORMAT_JSON, GAR_FORMAT_HTML };

struct gar_table_options {
    size_t struct_bytes;
    int64_t max_rows; /* rows shown; the note below says how many there are; default 8 */
    int64_t
        max_cell_width; /* terminal columns; longer cells are cut with an ellipsis; default 30 */
    int64_t max_width;  /* of the whole table; middle columns are left out beyond; 0: no bound */
    int64_t total_rows; /* for the note "(Showing first 8 of 20 rows)"; -1: unknown */
};

GAR_EXPERIMENTAL void gar_table_options_init(struct gar_table_options *options);
/* The first rows of a collected frame as a box table with names and types, or as an HTML table. Control characters are
 * escaped. Errors: GAR_ERR_VALUE if the frame was not collected. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_to_table(
    const struct gar_frame *frame, enum gar_text_format format,
    const struct gar_table_options *options, char **out, struct gar_error *err);
/* Runs the frame and hands its rows as CSV or JSON lines to write(data, bytes, context), on the caller's thread; a
 * non-zero result stops it with GAR_ERR_CALLBACK. */
GAR_EXPERIMENTAL GAR_MUST_USE enum gar_status gar_frame_write_text(
    const struct gar_frame *frame, enum gar_text_format format,
    const struct gar_run_options *options,
    int (*write)(const char *data, int64_t bytes, void *context), void *context,
    struct gar_error *err);

#ifdef __cplusplus
}
#endif
#endif
