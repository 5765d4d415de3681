/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the extension share: module state, object layouts, helpers. The extension converts between Python objects
 * and include/gar; it holds no engine logic. Limited API, CPython 3.11 and newer. */
#ifndef GAR_PY_H
#define GAR_PY_H

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>

#include <gar/gar.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

/* Memory that is freed without the GIL. The limited API has no name for it. */
static inline void *raw_malloc(size_t bytes)
{
    return malloc(bytes > 0 ? bytes : 1);
}

static inline void *raw_calloc(size_t count, size_t bytes)
{
    return calloc(count > 0 ? count : 1, bytes);
}

static inline void *raw_realloc(void *old, size_t bytes)
{
    return realloc(old, bytes > 0 ? bytes : 1);
}

static inline void raw_free(void *memory)
{
    free(memory);
}

#define GAR_PY_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

struct drop_list;

/* Python objects that conversions need, fetched at first use. */
struct known_objects {
    PyObject *date;        /* datetime.date */
    PyObject *datetime;    /* datetime.datetime */
    PyObject *time;        /* datetime.time */
    PyObject *timedelta;   /* datetime.timedelta */
    PyObject *timezone;    /* datetime.timezone */
    PyObject *utc;         /* datetime.timezone.utc */
    PyObject *decimal;     /* decimal.Decimal */
    PyObject *fromordinal; /* datetime.date.fromordinal */
    PyObject *epoch;       /* datetime.datetime(1970, 1, 1) */
    PyObject *epoch_utc;   /* the same with zone UTC */
    PyObject *days;        /* the names of timedelta's parts */
    PyObject *seconds;
    PyObject *microseconds;
};

#define ERROR_CLASSES_MAX 32

struct gar_state {
    struct gar_session *session;         /* borrowed: the process's own */
    struct drop_list *drops;             /* owned reference */
    PyObject *error_base;                /* gar.GarError */
    PyObject *errors[ERROR_CLASSES_MAX]; /* by negated status */
    PyObject *not_found_error;           /* GarIOError that is a FileNotFoundError */
    PyObject *permission_error;
    PyObject *import_error;    /* a package that is not installed */
    PyObject *index_error;     /* a row or column number out of range */
    PyObject *attribute_error; /* what this kind of object does not have */
    PyObject *state_error;     /* not now: the frame has not run yet */
    PyTypeObject *expression_type;
    PyTypeObject *frame_type;
    PyTypeObject *result_type;
    PyTypeObject *array_type;
    PyTypeObject *profile_type;
    PyObject *show_progress; /* callable, or NULL */
    PyTypeObject *
        expression_class; /* what is made: the type above until the package registers its subclass */
    struct known_objects known;
    PyObject *failures;    /* dict: exceptions of user functions by number; the newest few */
    int64_t failure_count; /* so far */
};

/* ---- objects ---------------------------------------------------------------------------------------------------- */

struct py_expression {
    PyObject_HEAD struct gar_expr *expr;
    struct gar_state *state; /* of the module; the type keeps it alive */
};

struct py_frame {
    PyObject_HEAD struct gar_frame *frame;
    struct gar_state *state;
};

/* One Arrow array with its schema, shared by every Python object and exported copy that shows it. */
struct holder {
    int64_t refs; /* atomic */
    struct ArrowSchema schema;
    struct ArrowArray array;
};

struct py_array {
    PyObject_HEAD struct holder *holder;
    struct gar_state *state;
};

/* ---- module.c --------------------------------------------------------------------------------------------------- */

struct gar_state *module_state(PyObject *module);
/* The process's session, made at first use. NULL with an exception on failure. */
struct gar_session *get_session(struct gar_state *state);
/* Fetches datetime's classes; false with an exception. */
bool load_datetime(struct gar_state *state);
bool load_decimal(struct gar_state *state);
PyObject *make_type(PyObject *module, PyType_Spec *spec);

/* Free the memory of an instance by its type's slot. */
void free_instance(PyObject *self);

/* ---- errors.c --------------------------------------------------------------------------------------------------- */

bool init_errors(PyObject *module, struct gar_state *state);
/* Raise the exception of a status; always NULL. An exception that is there already (a signal's) stays. */
PyObject *raise_error(struct gar_state *state, enum gar_status status, const struct gar_error *err);
PyObject *raise_text(struct gar_state *state, enum gar_status status, const char *format, ...)
    GAR_PY_PRINTF(3, 4);
/* A pending exception of another tree becomes one of ours of its kind, with the first as the cause. What is ours, and
 * what is no Exception (KeyboardInterrupt), stays. */
void adopt_error(struct gar_state *state);
/* PyArg_ParseTuple whose exceptions are ours. */
bool parse_args(struct gar_state *state, PyObject *args, const char *format, ...);
extern PyMethodDef error_functions[];
/* Put "column 'x': " in front of the pending exception's message. */
void prefix_error(const char *name);

/* ---- waiting.c -------------------------------------------------------------------------------------------------- */

/* A call into the engine that may wait: the GIL is released around it and signals are looked at from inside. */
struct waiting {
    PyThreadState *saved;
    struct drop_list *drops;
    PyObject *show_progress; /* borrowed from the state; NULL: none */
};

/* With an exception that a signal's handler raised while the engine waited: signals that came while it stopped are handled
 * now, so that a second Ctrl-C does not raise a second KeyboardInterrupt out of the first one's handling. */
void settle_signals(void);
void waiting_init(struct waiting *w, struct gar_state *state, struct gar_run_options *options);
/* For queries that other libraries pull as Arrow streams, on threads of any kind. */
void stream_waiting_init(struct gar_run_options *options);
#define GAR_WITHOUT_GIL(w, call)          \
    do {                                  \
        (w)->saved = PyEval_SaveThread(); \
        call;                             \
        PyEval_RestoreThread((w)->saved); \
    } while (0)

/* The drop list: what only a thread with the GIL may release. Nodes are part of what they release. */
struct drop_node {
    struct drop_node *next;
    void (*release)(struct drop_node *node); /* called with the GIL held */
    struct drop_list *list;                  /* owned reference */
};

struct drop_list *drop_list_new(void);
struct drop_list *drop_list_ref(struct drop_list *list);
void drop_list_unref(struct drop_list *list);
/* Any thread, no GIL needed. */
void drop_list_push(struct drop_node *node);
/* With the GIL: release all that waits. */
void drop_list_drain(struct drop_list *list);
/* After this nothing is released any more: the interpreter is going away. */
void drop_list_close(struct drop_list *list);

/* ---- profile.c -------------------------------------------------------------------------------------------------- */

/* Moves the profile; None for NULL. */
PyObject *wrap_profile(struct gar_state *state, struct gar_profile *profile);
PyObject *make_profile_type(PyObject *module);
extern PyMethodDef profile_functions[];

/* ---- arrow.c ---------------------------------------------------------------------------------------------------- */

/* Moves schema and array into a new holder with one reference; releases both on failure (NULL, MemoryError set). */
struct holder *holder_new(struct ArrowSchema *schema, struct ArrowArray *array);
void holder_unref(struct holder *holder);
/* A copy that shares the holder's buffers; each struct of it may be moved and released on its own. */
bool holder_export_array(struct holder *holder, struct ArrowArray *out);
/* A deep copy of a schema, `name` instead of the top name if not NULL. */
bool copy_schema(const struct ArrowSchema *from, const char *name, struct ArrowSchema *out);
/* Struct array over the columns of several holders, all of `length` rows. */
bool make_struct(struct holder *const *columns, const char *const *names, int64_t count,
                 int64_t length, struct ArrowSchema *schema, struct ArrowArray *array);
/* Holder -> py_array object; moves the reference also on failure. */
PyObject *wrap_array(struct gar_state *state, struct holder *holder);
PyObject *schema_capsule(struct ArrowSchema *schema);      /* moves */
PyObject *array_capsule(struct ArrowArray *array);         /* moves */
PyObject *stream_capsule(struct ArrowArrayStream *stream); /* moves */
/* Foreign arrays and streams, so that their release runs only with the GIL held. Move and replace in place; false with
 * an exception (then released). */
bool guard_array(struct gar_state *state, struct ArrowArray *array);
bool guard_stream(struct gar_state *state, struct ArrowArrayStream *stream, bool as_struct);
/* From obj.__arrow_c_array__() or __arrow_c_stream__(); out is the caller's to release. false with an exception. */
bool take_array_capsules(struct gar_state *state, PyObject *obj, struct ArrowSchema *schema,
                         struct ArrowArray *array);
bool take_stream_capsule(struct gar_state *state, PyObject *obj, bool as_struct,
                         struct ArrowArrayStream *out);
PyObject *make_array_type(PyObject *module);
/* Any Python object that stands for a column -> holder (new reference); NULL with an exception. */
struct holder *column_from_object(struct gar_state *state, PyObject *obj);
/* A single-column frame's rows as one array. */
struct holder *column_from_frame(struct gar_state *state, struct gar_frame *frame);

/* ---- from_python.c, from_numpy.c, to_python.c -------------------------------------------------------------------- */

/* A list, tuple or other sequence -> Arrow by its values. type_text may be NULL. */
struct holder *column_from_sequence(struct gar_state *state, PyObject *sequence);
/* The letter of a numpy scalar that is a datetime64 (M) or timedelta64 (m), else 0. */
char numpy_time_kind(PyObject *value);
/* numpy arrays and whatever has __array_interface__ or a one-dimensional buffer. NULL without exception: it is none. */
struct holder *column_from_buffer(struct gar_state *state, PyObject *obj, bool *handled);
/* Proleptic Gregorian date of a day number from 1970-01-01. */
struct civil {
    int64_t year;
    int month;
    int day;
};
struct civil civil_of(int64_t days);
/* Append the rows of an array to a list. */
bool append_to_list(struct gar_state *state, const struct ArrowSchema *schema,
                    const struct ArrowArray *array, int64_t first, int64_t count, PyObject *list);
/* Row i as an object. */
PyObject *array_item(struct gar_state *state, const struct ArrowSchema *schema,
                     const struct ArrowArray *array, int64_t i);
/* A fresh Arrow array from parts of raw_malloc (moved, also on failure): validity may be NULL. */
struct built_array {
    void *validity;
    void *values;
    void **data;         /* text: blocks the views point into */
    int64_t *data_bytes; /* their sizes */
    int64_t data_count;
    int64_t length;
    int64_t null_count;
    bool is_text;
};
struct holder *finish_array(struct built_array *parts, const char *format);
void free_parts(struct built_array *parts);

/* ---- expression.c, frame.c ---------------------------------------------------------------------------------------- */

PyObject *make_expression_type(PyObject *module);
PyObject *make_frame_type(PyObject *module);
PyObject *make_result_type(PyObject *module);
extern PyMethodDef expression_functions[];
extern PyMethodDef frame_functions[];
extern PyMethodDef user_function_functions[];
/* The user's exception as the cause of ours, if err is of a user function. */
void cause_of_failure(struct gar_state *state, const struct gar_error *err, PyObject *exception);
extern PyMethodDef array_functions[];
extern PyMethodDef resource_functions[];
extern PyMethodDef worker_functions[];
/* A new expression: the argument itself, or a literal of it. NULL with an exception. Caller releases. */
struct gar_expr *expression_from_object(struct gar_state *state, PyObject *obj);
/* Moves expr. */
PyObject *wrap_expression(struct gar_state *state, struct gar_expr *expr);
PyObject *wrap_frame(struct gar_state *state, struct gar_frame *frame);
/* A result as an iterator of batches. Moves the frame's run. */
PyObject *start_result(struct gar_state *state, struct gar_frame *frame, int64_t batch_rows,
                       int64_t timeout_ms, enum gar_text_encoding encoding, enum gar_run_mode mode);

#endif
