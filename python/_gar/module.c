/* SPDX-License-Identifier: Apache-2.0 */
/* gar._native: module state, settings, statistics, and putting the types together. */
#include <string.h>

#include "gar_py.h"

struct gar_state *module_state(PyObject *module)
{
    return PyModule_GetState(module);
}

struct gar_session *get_session(struct gar_state *state)
{
    struct gar_error err;
    if (state->session == NULL) {
        enum gar_status status = gar_session_default(&state->session, &err);
        if (status >= 0 && getenv("GAR_PROGRESS") == NULL) {
            struct gar_settings s; /* in terminals unless the environment says otherwise */
            gar_settings_init(&s);
            gar_session_settings(state->session, &s);
            s.progress = GAR_PROGRESS_AUTO;
            status = gar_session_configure(state->session, &s, &err);
        }
        if (status < 0) {
            state->session = NULL;
            raise_error(state, status, &err);
        }
    }
    return state->session;
}

/* *slot = module.name, once. */
static bool fetch(PyObject *from, const char *name, PyObject **slot)
{
    if (*slot == NULL && from != NULL) {
        *slot = PyObject_GetAttrString(from, name);
    }
    return *slot != NULL;
}

bool load_datetime(struct gar_state *state)
{
    struct known_objects *known = &state->known;
    if (known->microseconds != NULL) {
        return true;
    }
    PyObject *datetime = PyImport_ImportModule("datetime");
    bool ok =
        fetch(datetime, "date", &known->date) && fetch(datetime, "datetime", &known->datetime) &&
        fetch(datetime, "time", &known->time) && fetch(datetime, "timedelta", &known->timedelta) &&
        fetch(datetime, "timezone", &known->timezone) &&
        fetch(known->timezone, "utc", &known->utc) &&
        fetch(known->date, "fromordinal", &known->fromordinal);
    Py_XDECREF(datetime);
    if (ok && known->epoch == NULL) {
        known->epoch = PyObject_CallFunction(known->datetime, "iii", 1970, 1, 1);
    }
    if (ok && known->epoch_utc == NULL) {
        known->epoch_utc =
            PyObject_CallFunction(known->datetime, "iiiiiiiO", 1970, 1, 1, 0, 0, 0, 0, known->utc);
    }
    ok = ok && known->epoch != NULL && known->epoch_utc != NULL;
    if (ok && known->days == NULL) {
        known->days = PyUnicode_InternFromString("days");
    }
    if (ok && known->seconds == NULL) {
        known->seconds = PyUnicode_InternFromString("seconds");
    }
    if (ok && known->days != NULL && known->seconds != NULL) {
        known->microseconds = PyUnicode_InternFromString("microseconds");
    }
    return ok && known->microseconds != NULL;
}

bool load_decimal(struct gar_state *state)
{
    if (state->known.decimal != NULL) {
        return true;
    }
    PyObject *decimal = PyImport_ImportModule("decimal");
    const bool ok = fetch(decimal, "Decimal", &state->known.decimal);
    Py_XDECREF(decimal);
    return ok;
}

PyObject *make_type(PyObject *module, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    const char *dot = strrchr(spec->name, '.');
    if (type != NULL && PyModule_AddObjectRef(module, dot + 1, type) < 0) {
        Py_CLEAR(type);
    }
    return type;
}

void free_instance(PyObject *self)
{
    freefunc release = NULL;
    void *slot = PyType_GetSlot(Py_TYPE(self), Py_tp_free);
    memcpy(&release, &slot,
           sizeof release); /* ISO C has no cast from an object pointer to a function's */
    release(self);
}

/* ---- functions ----------------------------------------------------------------------------------------------------------- */

static PyObject *get_version(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyUnicode_FromString(gar_version());
}

/* register(class): what expressions are from now on. */
static PyObject *register_class(PyObject *module, PyObject *class)
{
    struct gar_state *state = module_state(module);
    if (!PyType_Check(class) ||
        !PyType_IsSubtype((PyTypeObject *)(void *)class, state->expression_type)) {
        return raise_text(state, GAR_ERR_TYPE, "expected a subclass of Expression");
    }
    Py_DECREF(state->expression_class);
    state->expression_class = (PyTypeObject *)(void *)Py_NewRef(class);
    return Py_NewRef(Py_None);
}

static PyObject *canonical_type(PyObject *module, PyObject *args)
{
    const char *type = NULL;
    char *text = NULL;
    struct gar_error err;
    if (!parse_args(module_state(module), args, "s", &type)) {
        return NULL;
    }
    const enum gar_status status = gar_type_canonical(type, &text, &err);
    if (status < 0) {
        return raise_error(module_state(module), status, &err);
    }
    PyObject *result = PyUnicode_FromString(text);
    gar_text_free(text);
    return result;
}

static PyObject *get_settings(PyObject *module, PyObject *unused)
{
    (void)unused;
    struct gar_session *session = get_session(module_state(module));
    struct gar_settings s;
    if (session == NULL) {
        return NULL;
    }
    gar_settings_init(&s);
    gar_session_settings(session, &s);
    return Py_BuildValue(
        "{s:L,s:L,s:i,s:i,s:O,s:O,s:i,s:i,s:O,s:i,s:L,s:L,s:L,s:s,s:O,s:s}", "morsel_rows",
        (long long)s.morsel_rows, "memory_limit_bytes", (long long)s.memory_limit_bytes,
        "num_threads", (int)s.num_threads, "io_threads", (int)s.io_threads, "maintain_order",
        s.maintain_order ? Py_True : Py_False, "enable_inline",
        s.enable_inline ? Py_True : Py_False, "compute_nice", (int)s.compute_nice, "io_nice",
        (int)s.io_nice, "compute_batch", s.compute_batch ? Py_True : Py_False, "progress",
        (int)s.progress, "watchdog_ms", (long long)s.watchdog_ms, "memory_keep_bytes",
        (long long)s.memory_keep_bytes, "spill_limit_bytes", (long long)s.spill_limit_bytes,
        "spill_dir", s.spill_dir, "spill_always", s.spill_always ? Py_True : Py_False,
        "disabled_rules", s.disabled_rules);
}

static bool take_int(PyObject *dict, const char *name, int64_t *out)
{
    PyObject *value = PyDict_GetItemString(dict, name);
    if (value != NULL) {
        *out = PyLong_AsLongLong(value);
    }
    return *out != -1 || PyErr_Occurred() == NULL;
}

static bool take_int32(PyObject *dict, const char *name, int32_t *out)
{
    int64_t value = *out;
    if (!take_int(dict, name, &value)) {
        return false;
    }
    if (value < INT32_MIN || value > INT32_MAX) {
        PyErr_Format(PyExc_ValueError, "%s is out of range", name);
        return false;
    }
    *out = (int32_t)value;
    return true;
}

static bool take_bool(PyObject *dict, const char *name, bool *out)
{
    PyObject *value = PyDict_GetItemString(dict, name);
    const int truth = value != NULL ? PyObject_IsTrue(value) : *out;
    *out = truth > 0;
    return truth >= 0;
}

/* -1 is a value here. */
static bool take_spill_limit(PyObject *dict, int64_t *out)
{
    PyObject *value = PyDict_GetItemString(dict, "spill_limit_bytes");
    if (value != NULL) {
        *out = PyLong_AsLongLong(value);
    }
    return PyErr_Occurred() == NULL;
}

static bool take_text(PyObject *dict, const char *name, char *out, size_t out_bytes)
{
    PyObject *value = PyDict_GetItemString(dict, name);
    Py_ssize_t size = 0;
    const char *text = value != NULL ? PyUnicode_AsUTF8AndSize(value, &size) : NULL;
    if (value == NULL) {
        return true;
    }
    if (text != NULL && (size_t)size >= out_bytes) {
        PyErr_Format(PyExc_ValueError, "%s is longer than %zu bytes", name, out_bytes - 1);
        return false;
    }
    if (text != NULL) {
        memcpy(out, text, (size_t)size + 1);
    }
    return text != NULL;
}

/* configure({name: value}): the settings named change. */
static PyObject *configure(PyObject *module, PyObject *args)
{
    struct gar_state *state = module_state(module);
    struct gar_session *session = get_session(state);
    PyObject *dict = NULL;
    struct gar_settings s;
    struct gar_error err;
    if (session == NULL || !parse_args(state, args, "O!", &PyDict_Type, &dict)) {
        return NULL;
    }
    gar_settings_init(&s);
    gar_session_settings(session, &s);
    int32_t progress = (int32_t)s.progress;
    if (!take_int(dict, "morsel_rows", &s.morsel_rows) ||
        !take_int(dict, "memory_limit_bytes", &s.memory_limit_bytes) ||
        !take_int(dict, "memory_keep_bytes", &s.memory_keep_bytes) ||
        !take_spill_limit(dict, &s.spill_limit_bytes) ||
        !take_text(dict, "spill_dir", s.spill_dir, sizeof s.spill_dir) ||
        !take_bool(dict, "spill_always", &s.spill_always) ||
        !take_text(dict, "disabled_rules", s.disabled_rules, sizeof s.disabled_rules) ||
        !take_int32(dict, "num_threads", &s.num_threads) ||
        !take_int32(dict, "io_threads", &s.io_threads) ||
        !take_int32(dict, "compute_nice", &s.compute_nice) ||
        !take_int32(dict, "io_nice", &s.io_nice) || !take_int32(dict, "progress", &progress) ||
        !take_int(dict, "watchdog_ms", &s.watchdog_ms) ||
        !take_bool(dict, "compute_batch", &s.compute_batch) ||
        !take_bool(dict, "maintain_order", &s.maintain_order) ||
        !take_bool(dict, "enable_inline", &s.enable_inline)) {
        adopt_error(state);
        return NULL;
    }
    s.progress = (enum gar_progress_mode)progress;
    struct waiting w;
    waiting_init(&w, state, NULL);
    enum gar_status status;
    GAR_WITHOUT_GIL(&w, status = gar_session_configure(session, &s, &err));
    return status < 0 ? raise_error(state, status, &err) : Py_NewRef(Py_None);
}

static PyObject *statistics(PyObject *module, PyObject *unused)
{
    (void)unused;
    struct gar_state *state = module_state(module);
    struct gar_session *session = get_session(state);
    struct gar_statistics s = {.struct_bytes = sizeof s};
    if (session == NULL) {
        return NULL;
    }
    drop_list_drain(state->drops);
    gar_session_statistics(session, &s);
    return Py_BuildValue(
        "{s:L,s:L,s:L,s:L,s:L,s:i,s:i,s:L}", "memory_live_bytes", (long long)s.memory_live_bytes,
        "memory_peak_bytes", (long long)s.memory_peak_bytes, "memory_held_bytes",
        (long long)s.memory_held_bytes, "heap_live_bytes", (long long)s.heap_live_bytes,
        "heap_live_blocks", (long long)s.heap_live_blocks, "threads", (int)s.threads, "queries",
        (int)s.queries, "memory_keep_bytes", (long long)s.memory_keep_bytes);
}

static PyMethodDef module_functions[] = {
    {"version", get_version, METH_NOARGS, "Version of the engine."},
    {"register", register_class, METH_O, "register(subclass of Expression)"},
    {"canonical_type", canonical_type, METH_VARARGS, "The canonical spelling of a type text."},
    {"settings", get_settings, METH_NOARGS, "Settings of the session."},
    {"configure", configure, METH_VARARGS, "Change settings of the session."},
    {"statistics", statistics, METH_NOARGS, "Memory, threads and queries of the engine."},
    {NULL, NULL, 0, NULL},
};

/* ---- the module ------------------------------------------------------------------------------------------------------------ */

static bool add_types(PyObject *module, struct gar_state *state)
{
    state->expression_type = (PyTypeObject *)(void *)make_expression_type(module);
    state->frame_type = (PyTypeObject *)(void *)make_frame_type(module);
    state->result_type = (PyTypeObject *)(void *)make_result_type(module);
    state->array_type = (PyTypeObject *)(void *)make_array_type(module);
    state->profile_type = (PyTypeObject *)(void *)make_profile_type(module);
    if (state->expression_type == NULL || state->frame_type == NULL || state->result_type == NULL ||
        state->array_type == NULL || state->profile_type == NULL) {
        return false;
    }
    state->expression_class =
        (PyTypeObject *)(void *)Py_NewRef((PyObject *)(void *)state->expression_type);
    return true;
}

static int exec_module(PyObject *module)
{
    struct gar_state *state = module_state(module);
    state->drops = drop_list_new();
    if (state->drops == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    if (!init_errors(module, state) || !add_types(module, state) ||
        PyModule_AddFunctions(module, error_functions) < 0 ||
        PyModule_AddFunctions(module, expression_functions) < 0 ||
        PyModule_AddFunctions(module, frame_functions) < 0 ||
        PyModule_AddFunctions(module, user_function_functions) < 0 ||
        PyModule_AddFunctions(module, array_functions) < 0 ||
        PyModule_AddFunctions(module, resource_functions) < 0 ||
        PyModule_AddFunctions(module, profile_functions) < 0 ||
        PyModule_AddFunctions(module, worker_functions) < 0) {
        return -1;
    }
    return 0;
}

static int traverse_module(PyObject *module, visitproc visit, void *arg)
{
    struct gar_state *state = module_state(module);
    if (state == NULL) {
        return 0;
    }
    Py_VISIT(state->error_base);
    for (int i = 0; i < ERROR_CLASSES_MAX; i++) {
        Py_VISIT(state->errors[i]);
    }
    Py_VISIT(state->not_found_error);
    Py_VISIT(state->permission_error);
    Py_VISIT(state->import_error);
    Py_VISIT(state->index_error);
    Py_VISIT(state->attribute_error);
    Py_VISIT(state->state_error);
    Py_VISIT(state->expression_type);
    Py_VISIT(state->frame_type);
    Py_VISIT(state->result_type);
    Py_VISIT(state->array_type);
    Py_VISIT(state->profile_type);
    Py_VISIT(state->show_progress);
    Py_VISIT(state->expression_class);
    Py_VISIT(state->failures);
    return 0;
}

static int clear_module(PyObject *module)
{
    struct gar_state *state = module_state(module);
    if (state == NULL) {
        return 0;
    }
    Py_CLEAR(state->error_base);
    for (int i = 0; i < ERROR_CLASSES_MAX; i++) {
        Py_CLEAR(state->errors[i]);
    }
    Py_CLEAR(state->not_found_error);
    Py_CLEAR(state->permission_error);
    Py_CLEAR(state->import_error);
    Py_CLEAR(state->index_error);
    Py_CLEAR(state->attribute_error);
    Py_CLEAR(state->state_error);
    Py_CLEAR(state->expression_type);
    Py_CLEAR(state->frame_type);
    Py_CLEAR(state->result_type);
    Py_CLEAR(state->array_type);
    Py_CLEAR(state->profile_type);
    Py_CLEAR(state->show_progress);
    Py_CLEAR(state->expression_class);
    Py_CLEAR(state->failures);
    Py_CLEAR(state->known.date);
    Py_CLEAR(state->known.datetime);
    Py_CLEAR(state->known.time);
    Py_CLEAR(state->known.timedelta);
    Py_CLEAR(state->known.timezone);
    Py_CLEAR(state->known.utc);
    Py_CLEAR(state->known.decimal);
    Py_CLEAR(state->known.fromordinal);
    Py_CLEAR(state->known.epoch);
    Py_CLEAR(state->known.epoch_utc);
    Py_CLEAR(state->known.days);
    Py_CLEAR(state->known.seconds);
    Py_CLEAR(state->known.microseconds);
    return 0;
}

static void free_module(void *module)
{
    (void)clear_module(module);
    struct gar_state *state = module_state(module);
    if (state != NULL) {
        drop_list_close(state->drops);
        drop_list_unref(state->drops);
        state->drops = NULL;
    }
}

PyMODINIT_FUNC PyInit__native(void);

PyMODINIT_FUNC PyInit__native(void)
{
    static PyModuleDef_Slot slots[] = {{0, NULL}, {0, NULL}};
    static struct PyModuleDef definition = {
        PyModuleDef_HEAD_INIT,
        .m_name = "_native",
        .m_doc = "The engine's C API for Python; use the package gar.",
        .m_size = sizeof(struct gar_state),
        .m_methods = module_functions,
        .m_slots = slots,
        .m_traverse = traverse_module,
        .m_clear = clear_module,
        .m_free = free_module,
    };
    slots[0] = (PyModuleDef_Slot){Py_mod_exec, (void *)(uintptr_t)exec_module};
    return PyModuleDef_Init(&definition);
}
