/* SPDX-License-Identifier: Apache-2.0 */
/* The Frame type: a handle of a lazy frame with thin methods over include/gar, and the functions that make frames. */
#include <string.h>

#include "gar_py.h"

static struct py_frame *as_frame(PyObject *self)
{
    return (struct py_frame *)(void *)self;
}

PyObject *wrap_frame(struct gar_state *state, struct gar_frame *frame)
{
    PyObject *self = PyType_GenericAlloc(state->frame_type, 0);
    if (self == NULL) {
        gar_frame_release(frame);
        return NULL;
    }
    as_frame(self)->frame = frame;
    as_frame(self)->state = state;
    return self;
}

static void frame_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    gar_frame_release(as_frame(self)->frame);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* A frame or the exception of a status. */
static PyObject *finish(struct gar_state *state, enum gar_status status, struct gar_frame *out,
                        const struct gar_error *err)
{
    return status < 0 ? raise_error(state, status, err) : wrap_frame(state, out);
}

/* ---- lists of arguments ---- */

struct expr_list {
    struct gar_expr **items;
    int64_t count;
};

static void free_exprs(struct expr_list *list)
{
    for (int64_t i = 0; i < list->count; i++) {
        gar_expr_release(list->items[i]);
    }
    PyMem_Free(list->items);
}

/* From a list of expressions and plain values. */
static bool read_exprs(struct gar_state *state, PyObject *list, struct expr_list *out)
{
    const Py_ssize_t count = PyList_Size(list);
    *out = (struct expr_list){.items = PyMem_Calloc((size_t)count + 1, sizeof(struct gar_expr *))};
    if (out->items == NULL) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        out->items[i] = expression_from_object(state, PyList_GetItem(list, i));
        if (out->items[i] == NULL) {
            free_exprs(out);
            return false;
        }
        out->count++;
    }
    return true;
}

/* UTF-8 of a list of str, borrowed from the strings; PyMem_Free the array. */
static const char **read_texts(struct gar_state *state, PyObject *list)
{
    const Py_ssize_t count = PyList_Size(list);
    const char **out = PyMem_Calloc((size_t)count + 1, sizeof *out);
    if (out == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_ssize_t size = 0;
        PyObject *item = PyList_GetItem(list, i);
        if (!PyUnicode_Check(item)) {
            raise_text(state, GAR_ERR_TYPE, "names and paths must be str");
            PyMem_Free((void *)(uintptr_t)out);
            return NULL;
        }
        out[i] = PyUnicode_AsUTF8AndSize(item, &size);
        if (out[i] != NULL && (Py_ssize_t)strlen(out[i]) != size) {
            raise_text(state, GAR_ERR_VALUE, "a name or path with a NUL character");
            out[i] = NULL;
        }
        if (out[i] == NULL) {
            adopt_error(state);
            PyMem_Free((void *)(uintptr_t)out);
            return NULL;
        }
    }
    return out;
}

/* ---- transformations ---- */

typedef enum gar_status (*exprs_fn)(const struct gar_frame *, struct gar_expr *const *, int64_t,
                                    struct gar_frame **, struct gar_error *);

static PyObject *with_exprs(PyObject *self, PyObject *list, exprs_fn apply)
{
    struct gar_state *state = as_frame(self)->state;
    struct expr_list exprs;
    struct gar_frame *out = NULL;
    struct gar_error err;
    if (!PyList_Check(list)) {
        return raise_text(state, GAR_ERR_TYPE, "expected a list of expressions");
    }
    if (!read_exprs(state, list, &exprs)) {
        return NULL;
    }
    const enum gar_status status =
        apply(as_frame(self)->frame, exprs.items, exprs.count, &out, &err);
    free_exprs(&exprs);
    return finish(state, status, out, &err);
}

static PyObject *frame_select(PyObject *self, PyObject *list)
{
    return with_exprs(self, list, gar_frame_select);
}

static PyObject *frame_with_columns(PyObject *self, PyObject *list)
{
    return with_exprs(self, list, gar_frame_with_columns);
}

static PyObject *frame_distinct(PyObject *self, PyObject *list)
{
    return with_exprs(self, list, gar_frame_distinct);
}

static PyObject *frame_where(PyObject *self, PyObject *predicate)
{
    struct gar_state *state = as_frame(self)->state;
    struct gar_frame *out = NULL;
    struct gar_error err;
    struct gar_expr *expr = expression_from_object(state, predicate);
    if (expr == NULL) {
        return NULL;
    }
    const enum gar_status status = gar_frame_where(as_frame(self)->frame, expr, &out, &err);
    gar_expr_release(expr);
    return finish(state, status, out, &err);
}

static PyObject *frame_rename(PyObject *self, PyObject *args)
{
    PyObject *from = NULL;
    PyObject *to = NULL;
    struct gar_frame *out = NULL;
    struct gar_error err;
    if (!parse_args(as_frame(self)->state, args, "O!O!", &PyList_Type, &from, &PyList_Type, &to)) {
        return NULL;
    }
    const char **old_names = read_texts(as_frame(self)->state, from);
    const char **new_names = old_names != NULL ? read_texts(as_frame(self)->state, to) : NULL;
    enum gar_status status = GAR_OK;
    const bool ok = new_names != NULL && PyList_Size(from) == PyList_Size(to);
    if (ok) {
        status = gar_frame_rename(as_frame(self)->frame, old_names, new_names,
                                  (int64_t)PyList_Size(from), &out, &err);
    }
    PyMem_Free((void *)(uintptr_t)old_names);
    PyMem_Free((void *)(uintptr_t)new_names);
    return ok ? finish(as_frame(self)->state, status, out, &err) : NULL;
}

static PyObject *frame_exclude(PyObject *self, PyObject *list)
{
    struct gar_frame *out = NULL;
    struct gar_error err;
    const char **names = PyList_Check(list) ? read_texts(as_frame(self)->state, list) : NULL;
    if (names == NULL) {
        return NULL;
    }
    const enum gar_status status =
        gar_frame_exclude(as_frame(self)->frame, names, (int64_t)PyList_Size(list), &out, &err);
    PyMem_Free((void *)(uintptr_t)names);
    return finish(as_frame(self)->state, status, out, &err);
}

static PyObject *frame_limit(PyObject *self, PyObject *args)
{
    long long offset = 0;
    long long limit = 0;
    struct gar_frame *out = NULL;
    struct gar_error err;
    if (!parse_args(as_frame(self)->state, args, "LL", &offset, &limit)) {
        return NULL;
    }
    const enum gar_status status =
        gar_frame_limit(as_frame(self)->frame, offset, limit, &out, &err);
    return finish(as_frame(self)->state, status, out, &err);
}

/* A list of bool of `count` items; PyMem_Free. */
static bool *read_bools(struct gar_state *state, PyObject *list, int64_t count)
{
    bool *out = PyMem_Calloc((size_t)count + 1, sizeof *out);
    if (out == NULL || PyList_Size(list) != (Py_ssize_t)count) {
        PyMem_Free(out);
        raise_text(state, GAR_ERR_VALUE, "one flag for each sort key is needed");
        return NULL;
    }
    for (int64_t i = 0; i < count; i++) {
        out[i] = PyObject_IsTrue(PyList_GetItem(list, (Py_ssize_t)i)) == 1;
    }
    return out;
}

static PyObject *frame_sort(PyObject *self, PyObject *args)
{
    struct gar_state *state = as_frame(self)->state;
    PyObject *keys = NULL;
    PyObject *descending = NULL;
    PyObject *nulls_first = NULL;
    struct expr_list exprs;
    struct gar_frame *out = NULL;
    struct gar_error err;
    if (!parse_args(state, args, "O!O!O", &PyList_Type, &keys, &PyList_Type, &descending,
                    &nulls_first) ||
        !read_exprs(state, keys, &exprs)) {
        return NULL;
    }
    bool *down = read_bools(state, descending, exprs.count);
    bool *first = down != NULL && PyList_Check(nulls_first)
                      ? read_bools(state, nulls_first, exprs.count)
                      : NULL;
    const bool ok = down != NULL && (first != NULL || !PyList_Check(nulls_first));
    enum gar_status status = GAR_OK;
    if (ok) {
        status = gar_frame_sort(as_frame(self)->frame, exprs.items, down, first, exprs.count, &out,
                                &err);
    }
    free_exprs(&exprs);
    PyMem_Free(down);
    PyMem_Free(first);
    return ok ? finish(state, status, out, &err) : NULL;
}

/* join(other, left_keys, right_keys, how, nulls_equal, condition, prefix, suffix, strategy) */
static PyObject *frame_join(PyObject *self, PyObject *args)
{
    struct gar_state *state = as_frame(self)->state;
    PyObject *other = NULL;
    PyObject *left = NULL;
    PyObject *right = NULL;
    PyObject *condition = NULL;
    int nulls_equal = 0;
    struct expr_list left_keys;
    struct expr_list right_keys;
    struct gar_join_options options;
    struct gar_frame *out = NULL;
    struct gar_error err;
    gar_join_options_init(&options);
    if (!parse_args(state, args, "O!O!O!spOzzz", state->frame_type, &other, &PyList_Type, &left,
                    &PyList_Type, &right, &options.how, &nulls_equal, &condition, &options.prefix,
                    &options.suffix, &options.strategy) ||
        !read_exprs(state, left, &left_keys)) {
        return NULL;
    }
    if (!read_exprs(state, right, &right_keys)) {
        free_exprs(&left_keys);
        return NULL;
    }
    options.nulls_equal = nulls_equal != 0;
    enum gar_status status = GAR_OK;
    bool ok = left_keys.count == right_keys.count;
    if (!ok) {
        PyErr_SetString(PyExc_ValueError, "as many keys are needed on both sides");
    } else if (condition != Py_None) {
        options.condition = expression_from_object(state, condition);
        ok = options.condition != NULL;
    }
    if (ok) {
        status = gar_frame_join(as_frame(self)->frame, as_frame(other)->frame, left_keys.items,
                                right_keys.items, left_keys.count, &options, &out, &err);
    }
    gar_expr_release(options.condition);
    free_exprs(&left_keys);
    free_exprs(&right_keys);
    return ok ? finish(state, status, out, &err) : NULL;
}

/* join_asof(other, [left_on, *left_by], [right_on, *right_by], direction, tolerance, excludes_equal, prefix, suffix) */
static PyObject *frame_join_asof(PyObject *self, PyObject *args)
{
    struct gar_state *state = as_frame(self)->state;
    PyObject *other = NULL;
    PyObject *left = NULL;
    PyObject *right = NULL;
    PyObject *tolerance = NULL;
    int excludes_equal = 0;
    struct expr_list left_keys;
    struct expr_list right_keys;
    struct gar_asof_options options;
    struct gar_frame *out = NULL;
    struct gar_error err;
    gar_asof_options_init(&options);
    if (!parse_args(state, args, "O!O!O!sOpzz", state->frame_type, &other, &PyList_Type, &left,
                    &PyList_Type, &right, &options.direction, &tolerance, &excludes_equal,
                    &options.prefix, &options.suffix) ||
        !read_exprs(state, left, &left_keys)) {
        return NULL;
    }
    if (!read_exprs(state, right, &right_keys)) {
        free_exprs(&left_keys);
        return NULL;
    }
    options.excludes_equal = excludes_equal != 0;
    enum gar_status status = GAR_OK;
    bool ok = left_keys.count == right_keys.count && left_keys.count > 0;
    if (!ok) {
        PyErr_SetString(PyExc_ValueError, "as many keys are needed on both sides");
    } else if (tolerance != Py_None) {
        options.tolerance = expression_from_object(state, tolerance);
        ok = options.tolerance != NULL;
    }
    if (ok) {
        status = gar_frame_join_asof(
            as_frame(self)->frame, as_frame(other)->frame, left_keys.items[0], right_keys.items[0],
            left_keys.items + 1, right_keys.items + 1, left_keys.count - 1, &options, &out, &err);
    }
    gar_expr_release(options.tolerance);
    free_exprs(&left_keys);
    free_exprs(&right_keys);
    return ok ? finish(state, status, out, &err) : NULL;
}

static PyObject *frame_aggregate(PyObject *self, PyObject *args)
{
    struct gar_state *state = as_frame(self)->state;
    PyObject *keys = NULL;
    PyObject *aggs = NULL;
    struct expr_list key_list;
    struct expr_list agg_list;
    struct gar_frame *out = NULL;
    struct gar_error err;
    if (!parse_args(state, args, "O!O!", &PyList_Type, &keys, &PyList_Type, &aggs) ||
        !read_exprs(state, keys, &key_list)) {
        return NULL;
    }
    if (!read_exprs(state, aggs, &agg_list)) {
        free_exprs(&key_list);
        return NULL;
    }
    const enum gar_status status =
        gar_frame_aggregate(as_frame(self)->frame, key_list.items, key_list.count, agg_list.items,
                            agg_list.count, &out, &err);
    free_exprs(&key_list);
    free_exprs(&agg_list);
    return finish(state, status, out, &err);
}

/* ---- looking ---- */

static PyObject *frame_column_names(PyObject *self, PyObject *unused)
{
    (void)unused;
    const struct gar_frame *frame = as_frame(self)->frame;
    const int64_t count = gar_frame_column_count(frame);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (int64_t i = 0; list != NULL && i < count; i++) {
        PyObject *name = PyUnicode_FromString(gar_frame_column_name(frame, i));
        if (name == NULL || PyList_SetItem(list, (Py_ssize_t)i, name) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *frame_column_types(PyObject *self, PyObject *unused)
{
    (void)unused;
    const struct gar_frame *frame = as_frame(self)->frame;
    const int64_t count = gar_frame_column_count(frame);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (int64_t i = 0; list != NULL && i < count; i++) {
        struct gar_error err;
        char *text = NULL;
        const enum gar_status status = gar_frame_column_type(frame, i, &text, &err);
        PyObject *item = status < 0 ? raise_error(as_frame(self)->state, status, &err)
                                    : PyUnicode_FromString(text);
        gar_text_free(status < 0 ? NULL : text);
        if (item == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *frame_arrow_schema(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct ArrowSchema schema;
    struct gar_error err;
    const enum gar_status status = gar_frame_schema(as_frame(self)->frame, &schema, &err);
    return status < 0 ? raise_error(as_frame(self)->state, status, &err) : schema_capsule(&schema);
}

static PyObject *frame_known_rows(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLongLong(gar_frame_known_rows(as_frame(self)->frame));
}

static PyObject *frame_explain(PyObject *self, PyObject *args)
{
    int stage = 0;
    struct gar_error err;
    char *text = NULL;
    struct waiting w;
    enum gar_status status;
    if (!parse_args(as_frame(self)->state, args, "i", &stage)) {
        return NULL;
    }
    waiting_init(&w, as_frame(self)->state, NULL);
    GAR_WITHOUT_GIL(&w, status = gar_frame_explain(as_frame(self)->frame,
                                                   (enum gar_plan_stage)stage, &text, &err));
    if (status < 0) {
        return raise_error(as_frame(self)->state, status, &err);
    }
    PyObject *result = PyUnicode_FromString(text);
    gar_text_free(text);
    return result;
}

static PyObject *frame_profile(PyObject *self, PyObject *unused)
{
    (void)unused;
    return wrap_profile(as_frame(self)->state, gar_frame_profile(as_frame(self)->frame));
}

static PyObject *frame_expr_type(PyObject *self, PyObject *obj)
{
    struct gar_state *state = as_frame(self)->state;
    struct gar_expr *expr = expression_from_object(state, obj);
    struct gar_error err;
    char *text = NULL;
    if (expr == NULL) {
        return NULL;
    }
    const enum gar_status status = gar_expr_type_text(expr, as_frame(self)->frame, &text, &err);
    gar_expr_release(expr);
    if (status < 0) {
        return raise_error(state, status, &err);
    }
    PyObject *result = PyUnicode_FromString(text);
    gar_text_free(text);
    return result;
}

/* table(html, max_rows, max_cell_width, max_width, total_rows) */
static PyObject *frame_table(PyObject *self, PyObject *args)
{
    struct gar_table_options options;
    struct gar_error err;
    char *text = NULL;
    int html = 0;
    long long rows = 0;
    long long cell = 0;
    long long width = 0;
    long long total = 0;
    gar_table_options_init(&options);
    if (!parse_args(as_frame(self)->state, args, "pLLLL", &html, &rows, &cell, &width, &total)) {
        return NULL;
    }
    options.max_rows = rows;
    options.max_cell_width = cell;
    options.max_width = width;
    options.total_rows = total;
    const enum gar_status status =
        gar_frame_to_table(as_frame(self)->frame, html != 0 ? GAR_FORMAT_HTML : GAR_FORMAT_TABLE,
                           &options, &text, &err);
    if (status < 0) {
        return raise_error(as_frame(self)->state, status, &err);
    }
    PyObject *result = PyUnicode_FromString(text);
    gar_text_free(text);
    return result;
}

/* A collected frame of the same columns without rows. */
static PyObject *frame_empty(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct gar_state *state = as_frame(self)->state;
    struct gar_session *session = get_session(state);
    struct ArrowSchema schema;
    struct gar_error err;
    struct gar_frame *out = NULL;
    if (session == NULL) {
        return NULL;
    }
    enum gar_status status = gar_frame_schema(as_frame(self)->frame, &schema, &err);
    if (status < 0) {
        return raise_error(state, status, &err);
    }
    struct holder **columns = PyMem_Calloc((size_t)schema.n_children + 1, sizeof(struct holder *));
    const char **names = PyMem_Calloc((size_t)schema.n_children + 1, sizeof *names);
    bool ok = columns != NULL && names != NULL;
    for (int64_t i = 0; ok && i < schema.n_children; i++) {
        struct built_array parts = {.length = 0};
        const char *format = schema.children[i]->format;
        parts.is_text = strcmp(format, "U") == 0 || strcmp(format, "Z") == 0;
        columns[i] =
            finish_array(&parts, parts.is_text ? (format[0] == 'U' ? "vu" : "vz") : format);
        names[i] = schema.children[i]->name;
        ok = columns[i] != NULL;
    }
    struct ArrowSchema top;
    struct ArrowArray array;
    ok = ok && make_struct(columns, names, schema.n_children, 0, &top, &array);
    for (int64_t i = 0; columns != NULL && i < schema.n_children; i++) {
        holder_unref(columns[i]);
    }
    if (ok) {
        status = gar_frame_from_arrow(session, &top, &array, &out, &err);
        top.release(&top);
    }
    PyMem_Free(columns);
    PyMem_Free((void *)(uintptr_t)names);
    schema.release(&schema);
    return ok ? finish(state, status, out, &err) : NULL;
}

/* ---- running ---- */

static PyObject *frame_collect(PyObject *self, PyObject *args)
{
    struct gar_state *state = as_frame(self)->state;
    long long timeout_ms = 0;
    struct waiting w;
    struct gar_run_options options;
    struct gar_error err;
    struct gar_frame *out = NULL;
    enum gar_status status;
    if (!parse_args(state, args, "|L", &timeout_ms)) {
        return NULL;
    }
    waiting_init(&w, state, &options);
    options.timeout_ms = timeout_ms;
    GAR_WITHOUT_GIL(&w, status = gar_frame_collect(as_frame(self)->frame, &options, &out, &err));
    return finish(state, status, out, &err);
}

static PyObject *frame_count_rows(PyObject *self, PyObject *args)
{
    struct gar_state *state = as_frame(self)->state;
    long long timeout_ms = 0;
    struct waiting w;
    struct gar_run_options options;
    struct gar_error err;
    int64_t rows = 0;
    enum gar_status status;
    if (!parse_args(as_frame(self)->state, args, "|L", &timeout_ms)) {
        return NULL;
    }
    waiting_init(&w, state, &options);
    options.timeout_ms = timeout_ms;
    GAR_WITHOUT_GIL(&w,
                    status = gar_frame_count_rows(as_frame(self)->frame, &options, &rows, &err));
    return status < 0 ? raise_error(state, status, &err) : PyLong_FromLongLong(rows);
}

/* run(batch_rows, timeout_ms, as_view, mode=0) -> Result */
static PyObject *frame_run(PyObject *self, PyObject *args)
{
    long long batch_rows = 0;
    long long timeout_ms = 0;
    int as_view = 0;
    int mode = GAR_RUN_ON_DEMAND;
    if (!parse_args(as_frame(self)->state, args, "LLp|i", &batch_rows, &timeout_ms, &as_view,
                    &mode)) {
        return NULL;
    }
    return start_result(as_frame(self)->state, as_frame(self)->frame, batch_rows, timeout_ms,
                        as_view != 0 ? GAR_TEXT_AS_VIEW : GAR_TEXT_AS_LARGE,
                        (enum gar_run_mode)mode);
}

/* stream(batch_rows, as_view) -> capsule */
static PyObject *frame_stream(PyObject *self, PyObject *args)
{
    struct gar_state *state = as_frame(self)->state;
    long long batch_rows = 0;
    int as_view = 0;
    struct gar_run_options options;
    struct gar_error err;
    struct gar_result *result = NULL;
    struct ArrowArrayStream stream;
    struct waiting w;
    enum gar_status status;
    if (!parse_args(state, args, "Lp", &batch_rows, &as_view)) {
        return NULL;
    }
    waiting_init(&w, state, NULL);
    stream_waiting_init(&options);
    options.batch_rows = batch_rows;
    GAR_WITHOUT_GIL(&w, status = gar_frame_run(as_frame(self)->frame, &options, &result, &err));
    if (status >= 0) {
        status = gar_result_to_stream(result, as_view != 0 ? GAR_TEXT_AS_VIEW : GAR_TEXT_AS_LARGE,
                                      &stream, &err);
    }
    return status < 0 ? raise_error(state, status, &err) : stream_capsule(&stream);
}

typedef enum gar_status (*write_fn)(const struct gar_frame *, const char *,
                                    const struct gar_write_options *,
                                    const struct gar_run_options *, struct gar_frame **,
                                    struct gar_error *);

/* write_x(path, compression or None, overwrite, single_file, delimiter, header, row_group_rows, timeout_ms) */
static PyObject *write_files(PyObject *self, PyObject *args, write_fn write)
{
    struct gar_state *state = as_frame(self)->state;
    const char *path = NULL;
    const char *compression = NULL;
    const char *delimiter = NULL;
    int overwrite = 0;
    int single_file = 0;
    int header = 1;
    long long row_group_rows = 0;
    long long timeout_ms = 0;
    struct gar_write_options options;
    struct gar_run_options run;
    struct gar_error err;
    struct gar_frame *out = NULL;
    struct waiting w;
    enum gar_status status;
    gar_write_options_init(&options);
    if (!parse_args(state, args, "szppzpL|L", &path, &compression, &overwrite, &single_file,
                    &delimiter, &header, &row_group_rows, &timeout_ms)) {
        return NULL;
    }
    if (delimiter != NULL) {
        if (strlen(delimiter) != 1) {
            return raise_text(state, GAR_ERR_VALUE, "the delimiter must be one ASCII character");
        }
        options.delimiter = delimiter[0];
    }
    options.compression = compression != NULL ? compression : options.compression;
    options.overwrite = overwrite != 0;
    options.single_file = single_file != 0;
    options.header = header != 0;
    options.row_group_rows = row_group_rows;
    waiting_init(&w, state, &run);
    run.timeout_ms = timeout_ms;
    GAR_WITHOUT_GIL(&w, status = write(as_frame(self)->frame, path, &options, &run, &out, &err));
    return finish(state, status, out, &err);
}

static PyObject *frame_write_parquet(PyObject *self, PyObject *args)
{
    return write_files(self, args, gar_frame_write_parquet);
}

static PyObject *frame_write_csv(PyObject *self, PyObject *args)
{
    return write_files(self, args, gar_frame_write_csv);
}

static PyMethodDef frame_methods[] = {
    {"select", frame_select, METH_O, "Columns made by a list of expressions."},
    {"with_columns", frame_with_columns, METH_O, "Columns added or replaced."},
    {"where", frame_where, METH_O, "Rows whose predicate is true."},
    {"rename", frame_rename, METH_VARARGS, "rename(from, to)"},
    {"exclude", frame_exclude, METH_O, "Without some columns."},
    {"limit", frame_limit, METH_VARARGS, "limit(offset, limit)"},
    {"sort", frame_sort, METH_VARARGS, "sort(keys, descending, nulls_first or None)"},
    {"aggregate", frame_aggregate, METH_VARARGS, "aggregate(keys, aggregates)"},
    {"distinct", frame_distinct, METH_O, "One row per key, or distinct rows."},
    {"join", frame_join, METH_VARARGS, "Pairs of rows whose keys are equal."},
    {"join_asof", frame_join_asof, METH_VARARGS, "Each row beside the nearest one of the other."},
    {"column_names", frame_column_names, METH_NOARGS, "Names of the columns."},
    {"column_types", frame_column_types, METH_NOARGS, "Types of the columns as text."},
    {"expr_type", frame_expr_type, METH_O, "Type text of an expression over this frame."},
    {"arrow_schema", frame_arrow_schema, METH_NOARGS, "Arrow schema capsule."},
    {"known_rows", frame_known_rows, METH_NOARGS, "Rows if known without running, else -1."},
    {"explain", frame_explain, METH_VARARGS, "explain(stage)"},
    {"profile", frame_profile, METH_NOARGS, "Profile of the query that made it, or None."},
    {"table", frame_table, METH_VARARGS,
     "table(html, max_rows, max_cell_width, max_width, total_rows)"},
    {"empty", frame_empty, METH_NOARGS, "The same columns without rows, over memory."},
    {"collect", frame_collect, METH_VARARGS, "collect(timeout_ms=0): run, keep the rows."},
    {"count_rows", frame_count_rows, METH_VARARGS, "count_rows(timeout_ms=0): run and count."},
    {"run", frame_run, METH_VARARGS, "run(batch_rows, timeout_ms, as_view, mode=0)"},
    {"stream", frame_stream, METH_VARARGS, "stream(batch_rows, as_view): Arrow stream capsule."},
    {"write_parquet", frame_write_parquet, METH_VARARGS, "Write Parquet files."},
    {"write_csv", frame_write_csv, METH_VARARGS, "Write CSV files."},
    {NULL, NULL, 0, NULL},
};

PyObject *make_frame_type(PyObject *module)
{
    PyType_Slot slots[] = {
        {Py_tp_dealloc, (void *)(uintptr_t)frame_dealloc},
        {Py_tp_methods, frame_methods},
        {0, NULL},
    };
    PyType_Spec spec = {.name = "gar._native.Frame",
                        .basicsize = sizeof(struct py_frame),
                        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                        .slots = slots};
    return make_type(module, &spec);
}

/* ---- functions that make frames ---- */

static PyObject *range_frame(PyObject *module, PyObject *args)
{
    struct gar_state *state = module_state(module);
    struct gar_session *session = get_session(state);
    long long start = 0;
    long long end = 0;
    long long step = 1;
    struct gar_frame *out = NULL;
    struct gar_error err;
    if (session == NULL || !parse_args(state, args, "LLL", &start, &end, &step)) {
        return NULL;
    }
    const enum gar_status status = gar_frame_range(session, start, end, step, &out, &err);
    return finish(state, status, out, &err);
}

static PyObject *concat_frames(PyObject *module, PyObject *args)
{
    struct gar_state *state = module_state(module);
    PyObject *list = NULL;
    struct gar_frame *out = NULL;
    struct gar_error err;
    if (!parse_args(state, args, "O!", &PyList_Type, &list)) {
        return NULL;
    }
    const Py_ssize_t count = PyList_Size(list);
    struct gar_frame **frames = PyMem_Calloc((size_t)count + 1, sizeof(struct gar_frame *));
    if (frames == NULL) {
        return PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyList_GetItem(list, i);
        if (!PyObject_TypeCheck(item, state->frame_type)) {
            PyMem_Free(frames);
            return raise_text(state, GAR_ERR_TYPE, "expected frames");
        }
        frames[i] = as_frame(item)->frame;
    }
    const enum gar_status status = gar_frame_concat(frames, (int64_t)count, &out, &err);
    PyMem_Free(frames);
    return finish(state, status, out, &err);
}

/* from_stream(obj with __arrow_c_stream__) */
static PyObject *from_stream(PyObject *module, PyObject *obj)
{
    struct gar_state *state = module_state(module);
    struct gar_session *session = get_session(state);
    struct ArrowArrayStream stream;
    struct gar_frame *out = NULL;
    struct gar_error err;
    struct waiting w;
    enum gar_status status;
    if (session == NULL || !take_stream_capsule(state, obj, false, &stream)) {
        return NULL;
    }
    waiting_init(&w, state, NULL);
    GAR_WITHOUT_GIL(&w, status = gar_frame_from_stream(session, &stream, &out, &err));
    drop_list_drain(state->drops);
    return finish(state, status, out, &err);
}

/* from_record_batch(obj with __arrow_c_array__ of a struct) */
static PyObject *from_record_batch(PyObject *module, PyObject *obj)
{
    struct gar_state *state = module_state(module);
    struct gar_session *session = get_session(state);
    struct ArrowSchema schema;
    struct ArrowArray array;
    struct gar_frame *out = NULL;
    struct gar_error err;
    if (session == NULL || !take_array_capsules(state, obj, &schema, &array)) {
        return NULL;
    }
    const enum gar_status status = gar_frame_from_arrow(session, &schema, &array, &out, &err);
    schema.release(&schema);
    return finish(state, status, out, &err);
}

/* from_columns(names, objects): all of one length */
static PyObject *from_columns(PyObject *module, PyObject *args)
{
    struct gar_state *state = module_state(module);
    struct gar_session *session = get_session(state);
    PyObject *name_list = NULL;
    PyObject *objects = NULL;
    struct gar_frame *out = NULL;
    struct gar_error err;
    if (session == NULL ||
        !parse_args(state, args, "O!O!", &PyList_Type, &name_list, &PyList_Type, &objects)) {
        return NULL;
    }
    drop_list_drain(state->drops);
    const int64_t count = (int64_t)PyList_Size(name_list);
    const char **names = read_texts(state, name_list);
    struct holder **columns = PyMem_Calloc((size_t)count + 1, sizeof(struct holder *));
    bool ok = names != NULL && columns != NULL;
    int64_t rows = 0;
    for (int64_t i = 0; ok && i < count; i++) {
        columns[i] = column_from_object(state, PyList_GetItem(objects, (Py_ssize_t)i));
        ok = columns[i] != NULL;
        if (!ok) {
            prefix_error(names[i]);
        } else if (i == 0) {
            rows = columns[0]->array.length;
        } else if (columns[i]->array.length != rows) {
            raise_text(state, GAR_ERR_VALUE,
                       "columns of different length: '%.100s' has %lld rows, '%.100s' has %lld",
                       names[0], (long long)rows, names[i], (long long)columns[i]->array.length);
            ok = false;
        }
    }
    struct ArrowSchema schema;
    struct ArrowArray array;
    enum gar_status status = GAR_OK;
    ok = ok && make_struct(columns, names, count, rows, &schema, &array);
    if (ok) {
        status = gar_frame_from_arrow(session, &schema, &array, &out, &err);
        schema.release(&schema);
    }
    for (int64_t i = 0; columns != NULL && i < count; i++) {
        holder_unref(columns[i]);
    }
    PyMem_Free(columns);
    PyMem_Free((void *)(uintptr_t)names);
    return ok ? finish(state, status, out, &err) : NULL;
}

/* The parts of a schema given by the user: [(name, type text)]. */
struct given_schema {
    const char **names;
    const char **types;
    int64_t count;
};

static void free_given(struct given_schema *given)
{
    PyMem_Free((void *)(uintptr_t)given->names);
    PyMem_Free((void *)(uintptr_t)given->types);
}

static bool read_given(struct gar_state *state, PyObject *names, PyObject *types,
                       struct given_schema *out)
{
    *out = (struct given_schema){.count = (int64_t)PyList_Size(names)};
    out->names = read_texts(state, names);
    out->types = out->names != NULL ? read_texts(state, types) : NULL;
    if (out->types == NULL) {
        free_given(out);
        return false;
    }
    return true;
}

/* read_parquet(paths, schema names, schema types, file_path_column or None) */
static PyObject *read_parquet(PyObject *module, PyObject *args)
{
    struct gar_state *state = module_state(module);
    struct gar_session *session = get_session(state);
    PyObject *paths = NULL;
    PyObject *names = NULL;
    PyObject *types = NULL;
    struct gar_parquet_options options;
    struct given_schema given;
    struct gar_frame *out = NULL;
    struct gar_error err;
    struct gar_run_options run;
    struct waiting w;
    enum gar_status status;
    gar_parquet_options_init(&options);
    if (session == NULL || !parse_args(state, args, "O!O!O!z", &PyList_Type, &paths, &PyList_Type,
                                       &names, &PyList_Type, &types, &options.file_path_column)) {
        return NULL;
    }
    const char **texts = read_texts(state, paths);
    if (texts == NULL || !read_given(state, names, types, &given)) {
        PyMem_Free((void *)(uintptr_t)texts);
        return NULL;
    }
    options.schema_count = given.count;
    options.schema_names = given.names;
    options.schema_types = given.types;
    waiting_init(&w, state, &run);
    options.interrupted = run.interrupted;
    options.context = run.context;
    const int64_t count = (int64_t)PyList_Size(paths);
    GAR_WITHOUT_GIL(&w,
                    status = gar_frame_read_parquet(session, texts, count, &options, &out, &err));
    free_given(&given);
    PyMem_Free((void *)(uintptr_t)texts);
    return finish(state, status, out, &err);
}

/* One ASCII character, or 0 for None. */
static bool read_char(struct gar_state *state, const char *what, const char *text, char *out)
{
    if (text != NULL && (strlen(text) != 1 || (unsigned char)text[0] >= 0x80)) {
        raise_text(state, GAR_ERR_VALUE, "%s must be one ASCII character, got '%.40s'", what, text);
        return false;
    }
    *out = text != NULL ? text[0] : '\0';
    return true;
}

/* read_csv(paths, names, types, file_path_column, has_header, delimiter, quote, escape, double_quote, comment,
 * allow_variable_columns, infer_schema, null_text) */
static PyObject *read_csv(PyObject *module, PyObject *args)
{
    struct gar_state *state = module_state(module);
    struct gar_session *session = get_session(state);
    PyObject *paths = NULL;
    PyObject *names = NULL;
    PyObject *types = NULL;
    const char *delimiter = NULL;
    const char *quote = NULL;
    const char *escape = NULL;
    const char *comment = NULL;
    int has_header = 1;
    int double_quote = 1;
    int allow_variable = 0;
    int infer = 1;
    struct gar_csv_options options;
    struct given_schema given;
    struct gar_frame *out = NULL;
    struct gar_error err;
    struct gar_run_options run;
    struct waiting w;
    enum gar_status status;
    gar_csv_options_init(&options);
    if (session == NULL ||
        !parse_args(state, args, "O!O!O!zpzzzpzppz", &PyList_Type, &paths, &PyList_Type, &names,
                    &PyList_Type, &types, &options.file_path_column, &has_header, &delimiter,
                    &quote, &escape, &double_quote, &comment, &allow_variable, &infer,
                    &options.null_text) ||
        !read_char(state, "delimiter", delimiter, &options.delimiter) ||
        !read_char(state, "quote", quote, &options.quote) ||
        !read_char(state, "escape_char", escape, &options.escape) ||
        !read_char(state, "comment", comment, &options.comment)) {
        return NULL;
    }
    const char **texts = read_texts(state, paths);
    if (texts == NULL || !read_given(state, names, types, &given)) {
        PyMem_Free((void *)(uintptr_t)texts);
        return NULL;
    }
    options.has_header = has_header != 0;
    options.double_quote = double_quote != 0;
    options.allow_variable_columns = allow_variable != 0;
    options.infer_schema = infer != 0;
    options.schema_count = given.count;
    options.schema_names = given.names;
    options.schema_types = given.types;
    waiting_init(&w, state, &run);
    options.interrupted = run.interrupted;
    options.context = run.context;
    const int64_t count = (int64_t)PyList_Size(paths);
    GAR_WITHOUT_GIL(&w, status = gar_frame_read_csv(session, texts, count, &options, &out, &err));
    free_given(&given);
    PyMem_Free((void *)(uintptr_t)texts);
    return finish(state, status, out, &err);
}

/* read_files(paths, with_content, null_on_error) */
static PyObject *read_files(PyObject *module, PyObject *args)
{
    struct gar_state *state = module_state(module);
    struct gar_session *session = get_session(state);
    PyObject *paths = NULL;
    int with_content = 0;
    int null_on_error = 0;
    struct gar_files_options options;
    struct gar_frame *out = NULL;
    struct gar_error err;
    struct gar_run_options run;
    struct waiting w;
    enum gar_status status;
    gar_files_options_init(&options);
    if (session == NULL ||
        !parse_args(state, args, "O!pp", &PyList_Type, &paths, &with_content, &null_on_error)) {
        return NULL;
    }
    const char **texts = read_texts(state, paths);
    if (texts == NULL) {
        return NULL;
    }
    options.with_content = with_content != 0;
    options.null_on_error = null_on_error != 0;
    waiting_init(&w, state, &run);
    options.interrupted = run.interrupted;
    options.context = run.context;
    const int64_t count = (int64_t)PyList_Size(paths);
    GAR_WITHOUT_GIL(&w, status = gar_frame_read_files(session, texts, count, &options, &out, &err));
    PyMem_Free((void *)(uintptr_t)texts);
    return finish(state, status, out, &err);
}

/* empty_column(frame): a column without rows of the type of the frame's first column. */
static PyObject *empty_column(PyObject *module, PyObject *frame)
{
    struct gar_state *state = module_state(module);
    struct ArrowSchema schema;
    struct gar_error err;
    if (!PyObject_TypeCheck(frame, state->frame_type)) {
        return raise_text(state, GAR_ERR_TYPE, "expected a frame");
    }
    const enum gar_status status = gar_frame_schema(as_frame(frame)->frame, &schema, &err);
    if (status < 0) {
        return raise_error(state, status, &err);
    }
    struct built_array parts = {.length = 0};
    const char *format = schema.children[0]->format;
    parts.is_text = strcmp(format, "U") == 0 || strcmp(format, "Z") == 0;
    struct holder *holder =
        finish_array(&parts, parts.is_text ? (format[0] == 'U' ? "vu" : "vz") : format);
    schema.release(&schema);
    return holder != NULL ? wrap_array(state, holder) : NULL;
}

PyMethodDef frame_functions[] = {
    {"empty_column", empty_column, METH_O,
     "A column without rows of the type of a frame's first column."},
    {"range", range_frame, METH_VARARGS, "range(start, end, step)"},
    {"concat", concat_frames, METH_VARARGS, "Rows of several frames."},
    {"from_stream", from_stream, METH_O, "All batches of an Arrow stream."},
    {"from_record_batch", from_record_batch, METH_O, "One Arrow record batch."},
    {"from_columns", from_columns, METH_VARARGS, "from_columns(names, columns)"},
    {"read_parquet", read_parquet, METH_VARARGS, "Parquet files."},
    {"read_csv", read_csv, METH_VARARGS, "CSV files."},
    {"read_files", read_files, METH_VARARGS, "Files as rows."},
    {NULL, NULL, 0, NULL},
};
