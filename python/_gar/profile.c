/* SPDX-License-Identifier: Apache-2.0 */
/* The Profile type: what the operators of a query have done. Also traces, explain analyze, and progress shown by Python. */
#include <string.h>

#include "gar_py.h"

struct py_profile {
    PyObject_HEAD struct gar_profile *profile;
    struct gar_state *state;
};

static struct py_profile *as_profile(PyObject *self)
{
    return (struct py_profile *)(void *)self;
}

PyObject *wrap_profile(struct gar_state *state, struct gar_profile *profile)
{
    if (profile == NULL) {
        return Py_NewRef(Py_None);
    }
    PyObject *self = PyType_GenericAlloc(state->profile_type, 0);
    if (self == NULL) {
        gar_profile_release(profile);
        return NULL;
    }
    as_profile(self)->profile = profile;
    as_profile(self)->state = state;
    return self;
}

static void profile_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    gar_profile_release(as_profile(self)->profile);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* dict[name] = value (moved); false with an exception. */
static bool put(PyObject *dict, const char *name, PyObject *value)
{
    const bool is_put = value != NULL && PyDict_SetItemString(dict, name, value) == 0;
    Py_XDECREF(value);
    return is_put;
}

static PyObject *text_of(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

/* What only scans have; absent where it is not known. */
static bool put_scan(PyObject *dict, const struct gar_operator_profile *op)
{
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {
        {"files_total", op->files_total},   {"files_read", op->files_read},
        {"pieces_total", op->pieces_total}, {"pieces_skipped", op->pieces_skipped},
        {"pieces_read", op->pieces_read},   {"bytes_read", op->bytes_read},
        {"bytes_total", op->bytes_total},   {"rows_total", op->rows_total},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (numbers[i].value >= 0 &&
            !put(dict, numbers[i].name, PyLong_FromLongLong(numbers[i].value))) {
            return false;
        }
    }
    return true;
}

static PyObject *operator_dict(const struct gar_operator_profile *op)
{
    static const char *const roles[] = {"source", "transform", "sink"};
    PyObject *dict = Py_BuildValue(
        "{s:s,s:s,s:i,s:i,s:L,s:L,s:L,s:L,s:d,s:d,s:L,s:L}", "name", op->name, "role",
        roles[op->role], "pipeline", (int)op->pipeline, "branch", (int)op->branch, "rows_in",
        (long long)op->rows_in, "rows_out", (long long)op->rows_out, "batches",
        (long long)op->batches, "bytes", (long long)op->bytes, "busy_seconds",
        (double)op->busy_ns / 1e9, "io_seconds", (double)op->io_ns / 1e9, "memory_bytes",
        (long long)op->memory_bytes, "memory_peak_bytes", (long long)op->memory_peak_bytes);
    if (dict != NULL && (!put(dict, "detail", text_of(op->detail)) || !put_scan(dict, op))) {
        Py_CLEAR(dict);
    }
    return dict;
}

static PyObject *operator_list(const struct gar_profile *profile)
{
    PyObject *list = PyList_New(0);
    struct gar_operator_profile op = {.struct_bytes = sizeof op};
    for (int64_t i = 0; list != NULL && gar_profile_operator(profile, i, &op); i++) {
        PyObject *dict = operator_dict(&op);
        if (dict == NULL || PyList_Append(list, dict) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(dict);
    }
    return list;
}

static PyObject *profile_read(PyObject *self, PyObject *unused)
{
    (void)unused;
    const struct gar_profile *profile = as_profile(self)->profile;
    struct gar_query_profile q = {.struct_bytes = sizeof q};
    gar_profile_query(profile, &q);
    PyObject *dict = Py_BuildValue(
        "{s:d,s:d,s:L,s:L,s:L,s:L,s:L,s:i,s:i,s:i,s:O,s:O}", "wall_seconds",
        (double)q.wall_ns / 1e9, "cpu_seconds", (double)q.cpu_ns / 1e9, "rows", (long long)q.rows,
        "bytes", (long long)q.bytes, "rows_read", (long long)q.rows_read, "memory_bytes",
        (long long)q.memory_bytes, "memory_peak_bytes", (long long)q.memory_peak_bytes, "pipelines",
        (int)q.pipeline_count, "pipeline", (int)q.pipeline, "threads", (int)q.threads, "is_inline",
        q.is_inline ? Py_True : Py_False, "is_finished", q.is_finished ? Py_True : Py_False);
    if (dict != NULL &&
        (!put(dict, "waiting", q.waiting != NULL ? text_of(q.waiting) : Py_NewRef(Py_None)) ||
         !put(dict, "operators", operator_list(profile)))) {
        Py_CLEAR(dict);
    }
    return dict;
}

/* Moves the text. */
static PyObject *take_text(struct gar_state *state, enum gar_status status, char *text,
                           const struct gar_error *err)
{
    if (status < 0) {
        return raise_error(state, status, err);
    }
    PyObject *made = text_of(text);
    gar_text_free(text);
    return made;
}

static PyObject *profile_text(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct gar_error err;
    char *text = NULL;
    const enum gar_status status = gar_profile_text(as_profile(self)->profile, &text, &err);
    return take_text(as_profile(self)->state, status, text, &err);
}

static PyMethodDef profile_methods[] = {
    {"read", profile_read, METH_NOARGS, "What the query has done so far, as a dict."},
    {"text", profile_text, METH_NOARGS, "The physical plan with the numbers of each operator."},
    {NULL, NULL, 0, NULL},
};

PyObject *make_profile_type(PyObject *module)
{
    PyType_Slot slots[] = {
        {Py_tp_dealloc, (void *)(uintptr_t)profile_dealloc},
        {Py_tp_methods, profile_methods},
        {0, NULL},
    };
    PyType_Spec spec = {.name = "gar._native.Profile",
                        .basicsize = sizeof(struct py_profile),
                        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                        .slots = slots};
    return make_type(module, &spec);
}

/* ---- functions ---- */

/* explain_analyze(frame, timeout_ms) */
static PyObject *explain_analyze(PyObject *module, PyObject *args)
{
    struct gar_state *state = module_state(module);
    PyObject *frame = NULL;
    long long timeout_ms = 0;
    struct waiting w;
    struct gar_run_options options;
    struct gar_error err;
    char *text = NULL;
    enum gar_status status;
    if (!PyArg_ParseTuple(args, "O!|L", state->frame_type, &frame, &timeout_ms)) {
        return NULL;
    }
    waiting_init(&w, state, &options);
    options.timeout_ms = timeout_ms;
    GAR_WITHOUT_GIL(&w, status = gar_frame_explain_analyze(
                            ((struct py_frame *)(void *)frame)->frame, &options, &text, &err));
    return take_text(state, status, text, &err);
}

static PyObject *trace_start(PyObject *module, PyObject *arg)
{
    struct gar_state *state = module_state(module);
    PyObject *path = NULL;
    struct gar_error err;
    struct waiting w;
    enum gar_status status;
    if (get_session(state) == NULL || !PyUnicode_FSConverter(arg, &path)) {
        return NULL;
    }
    waiting_init(&w, state, NULL);
    GAR_WITHOUT_GIL(&w, status = gar_trace_start(PyBytes_AsString(path), &err));
    Py_DECREF(path);
    return status < 0 ? raise_error(state, status, &err) : Py_NewRef(Py_None);
}

static PyObject *trace_stop(PyObject *module, PyObject *unused)
{
    (void)unused;
    struct gar_state *state = module_state(module);
    struct gar_error err;
    struct waiting w;
    enum gar_status status;
    waiting_init(&w, state, NULL);
    GAR_WITHOUT_GIL(&w, status = gar_trace_stop(&err));
    return status < 0 ? raise_error(state, status, &err) : Py_NewRef(Py_None);
}

/* show_progress(callable or None): called with a line, and with None to take it away. */
static PyObject *show_progress(PyObject *module, PyObject *arg)
{
    struct gar_state *state = module_state(module);
    PyObject *old = state->show_progress;
    state->show_progress = arg == Py_None ? NULL : Py_NewRef(arg);
    Py_XDECREF(old);
    return Py_NewRef(Py_None);
}

PyMethodDef profile_functions[] = {
    {"explain_analyze", explain_analyze, METH_VARARGS, "explain_analyze(frame, timeout_ms=0)"},
    {"trace_start", trace_start, METH_O, "Write a trace to a new file from now on."},
    {"trace_stop", trace_stop, METH_NOARGS, "Complete the trace's file."},
    {"show_progress", show_progress, METH_O, "Who shows how far a query is, or None."},
    {NULL, NULL, 0, NULL},
};
