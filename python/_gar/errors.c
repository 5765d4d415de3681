/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of exceptions, made from status.def, and raising them. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gar_py.h"

struct status_row {
    enum gar_status status;
    const char *text;
    const char *exception;
};

static const struct status_row status_rows[] = {
#define GAR_STATUS(name, number, text, exception) {name, text, exception},
#include <gar/status.def>
#undef GAR_STATUS
};

/* What a user would catch an error as, besides GarError. */
static PyObject *builtin_base(enum gar_status status)
{
    switch (status) {
    case GAR_ERR_NOMEM: return PyExc_MemoryError;
    case GAR_ERR_VALUE:
    case GAR_ERR_FORMAT:
    case GAR_ERR_CAST:
    case GAR_ERR_SYNTAX: return PyExc_ValueError;
    case GAR_ERR_OVERFLOW: return PyExc_OverflowError;
    case GAR_ERR_TYPE: return PyExc_TypeError;
    case GAR_ERR_COLUMN: return PyExc_KeyError;
    case GAR_ERR_IO: return PyExc_OSError;
    case GAR_ERR_TIMEOUT: return PyExc_TimeoutError;
    case GAR_ERR_UNSUPPORTED: return PyExc_NotImplementedError;
    case GAR_ERR_INTERRUPTED:
    case GAR_ERR_CANCELLED:
    case GAR_ERR_CALLBACK:
    case GAR_ERR_INTERNAL:
    case GAR_OK:
    case GAR_EOF:
    case GAR_PENDING: break;
    }
    return PyExc_RuntimeError;
}

/* KeyError and OSError would print their message in ways of their own. */
static const char base_code[] = "class GarError(Exception):\n"
                                "    \"\"\"Base of all errors of Gar.\"\"\"\n"
                                "    __module__ = 'gar'\n"
                                "    def __str__(self):\n"
                                "        return self.args[0] if self.args and "
                                "isinstance(self.args[0], str) else super().__str__()\n";

static PyObject *make_base(void)
{
    PyObject *names = PyDict_New();
    PyObject *builtins = PyImport_ImportModule("builtins");
    PyObject *code = NULL;
    PyObject *result = NULL;
    PyObject *base = NULL;
    if (names != NULL && builtins != NULL &&
        PyDict_SetItemString(names, "__builtins__", builtins) == 0 &&
        (code = Py_CompileString(base_code, "gar/errors", Py_file_input)) != NULL &&
        (result = PyEval_EvalCode(code, names, names)) != NULL) {
        base = PyDict_GetItemString(names, "GarError");
        Py_XINCREF(base);
    }
    Py_XDECREF(result);
    Py_XDECREF(code);
    Py_XDECREF(builtins);
    Py_XDECREF(names);
    return base;
}

/* class name(first, second) with a docstring, added to the module. New reference. */
static PyObject *add_class(PyObject *module, const char *name, const char *doc, PyObject *first,
                           PyObject *second)
{
    char full[96];
    (void)snprintf(full, sizeof full, "gar.%s", name);
    PyObject *bases = PyTuple_Pack(2, first, second);
    if (bases == NULL) {
        return NULL;
    }
    PyObject *made = PyErr_NewExceptionWithDoc(full, doc, bases, NULL);
    Py_DECREF(bases);
    if (made != NULL && PyModule_AddObjectRef(module, name, made) < 0) {
        Py_CLEAR(made);
    }
    return made;
}

bool init_errors(PyObject *module, struct gar_state *state)
{
    state->error_base = make_base();
    if (state->error_base == NULL ||
        PyModule_AddObjectRef(module, "GarError", state->error_base) < 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof status_rows / sizeof status_rows[0]; i++) {
        const struct status_row *row = &status_rows[i];
        const int at = -(int)row->status;
        if (at <= 0 || at >= ERROR_CLASSES_MAX) {
            continue;
        }
        if (row->status == GAR_ERR_INTERRUPTED) {
            state->errors[at] = Py_NewRef(PyExc_KeyboardInterrupt);
            continue;
        }
        state->errors[at] = add_class(module, row->exception, row->text, state->error_base,
                                      builtin_base(row->status));
        if (state->errors[at] == NULL) {
            return false;
        }
    }
    PyObject *io_error = state->errors[-(int)GAR_ERR_IO];
    state->not_found_error =
        add_class(module, "GarFileNotFoundError", "a file or folder is not there", io_error,
                  PyExc_FileNotFoundError);
    state->permission_error = add_class(module, "GarPermissionError", "access to a file was denied",
                                        io_error, PyExc_PermissionError);
    PyObject *type_error = state->errors[-(int)GAR_ERR_TYPE];
    state->import_error =
        add_class(module, "GarImportError", "a package that this needs is not installed",
                  state->error_base, PyExc_ImportError);
    state->index_error = add_class(module, "GarIndexError", "a row or column number out of range",
                                   state->errors[-(int)GAR_ERR_VALUE], PyExc_IndexError);
    state->attribute_error =
        add_class(module, "GarAttributeError", "an attribute that such an object does not have",
                  type_error, PyExc_AttributeError);
    state->state_error = add_class(module, "GarStateError",
                                   "a call that has to wait for another: the frame has not run yet",
                                   type_error, PyExc_RuntimeError);
    return state->not_found_error != NULL && state->permission_error != NULL &&
           state->import_error != NULL && state->index_error != NULL &&
           state->attribute_error != NULL && state->state_error != NULL;
}

static PyObject *class_of(const struct gar_state *state, enum gar_status status, int os_errno)
{
    if (status == GAR_ERR_IO && os_errno == ENOENT) {
        return state->not_found_error;
    }
    if (status == GAR_ERR_IO && (os_errno == EACCES || os_errno == EPERM)) {
        return state->permission_error;
    }
    const int at = -(int)status;
    return at > 0 && at < ERROR_CLASSES_MAX && state->errors[at] != NULL ? state->errors[at]
                                                                         : state->error_base;
}

static bool set_number(PyObject *exception, const char *name, int64_t value)
{
    PyObject *number = PyLong_FromLongLong(value);
    const bool ok = number != NULL && PyObject_SetAttrString(exception, name, number) == 0;
    Py_XDECREF(number);
    return ok;
}

PyObject *raise_error(struct gar_state *state, enum gar_status status, const struct gar_error *err)
{
    if (PyErr_Occurred() != NULL) { /* a signal's handler raised while the engine waited */
        settle_signals();
        return NULL;
    }
    if (status == GAR_ERR_INTERRUPTED) {
        PyErr_SetNone(PyExc_KeyboardInterrupt);
        return NULL;
    }
    PyObject *class = class_of(state, status, err->os_errno);
    PyObject *text =
        PyUnicode_DecodeUTF8(err->message, (Py_ssize_t)strlen(err->message), "replace");
    PyObject *exception = text != NULL ? PyObject_CallFunctionObjArgs(class, text, NULL) : NULL;
    Py_XDECREF(text);
    if (exception != NULL &&
        (err->os_errno == 0 || set_number(exception, "errno", err->os_errno)) &&
        (err->position < 0 || status != GAR_ERR_SYNTAX ||
         set_number(exception, "position", err->position))) {
        if (status != GAR_ERR_SYNTAX) {
            cause_of_failure(state, err, exception);
        }
        PyErr_SetObject(class, exception);
    }
    Py_XDECREF(exception);
    return NULL;
}

PyObject *raise_text(struct gar_state *state, enum gar_status status, const char *format, ...)
{
    struct gar_error err = {.status = status, .position = -1};
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err.message, sizeof err.message, format, args);
    va_end(args);
    PyErr_Clear();
    return raise_error(state, status, &err);
}

void prefix_error(const char *name)
{
    PyObject *type = NULL;
    PyObject *value = NULL;
    PyObject *trace = NULL;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *args = value != NULL ? PyObject_GetAttrString(value, "args") : NULL;
    PyObject *first = args != NULL && PyTuple_Check(args) && PyTuple_Size(args) == 1
                          ? PyTuple_GetItem(args, 0)
                          : NULL;
    if (first != NULL && PyUnicode_Check(first)) {
        PyObject *text = PyUnicode_FromFormat("column '%s': %U", name != NULL ? name : "", first);
        PyObject *tuple = text != NULL ? PyTuple_Pack(1, text) : NULL;
        if (tuple != NULL) {
            (void)PyObject_SetAttrString(value, "args", tuple);
        }
        Py_XDECREF(tuple);
        Py_XDECREF(text);
        PyErr_Clear();
    }
    Py_XDECREF(args);
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
}

/* ---- exceptions of others ------------------------------------------------------------------------------------------ */

/* Our class for an exception of Python's own or of a library. */
static PyObject *class_for(const struct gar_state *state, PyObject *exception)
{
    const struct {
        PyObject *theirs;
        PyObject *ours;
    } table[] = {
        {PyExc_MemoryError, state->errors[-(int)GAR_ERR_NOMEM]},
        {PyExc_ImportError, state->import_error},
        {PyExc_AttributeError, state->errors[-(int)GAR_ERR_TYPE]},
        {PyExc_TypeError, state->errors[-(int)GAR_ERR_TYPE]},
        {PyExc_OverflowError, state->errors[-(int)GAR_ERR_OVERFLOW]},
        {PyExc_NotImplementedError, state->errors[-(int)GAR_ERR_UNSUPPORTED]},
        {PyExc_FileNotFoundError, state->not_found_error},
        {PyExc_PermissionError, state->permission_error},
        {PyExc_OSError, state->errors[-(int)GAR_ERR_IO]},
        {PyExc_IndexError, state->index_error},
        {PyExc_ValueError, state->errors[-(int)GAR_ERR_VALUE]},
        {PyExc_LookupError, state->errors[-(int)GAR_ERR_VALUE]},
        {PyExc_ArithmeticError, state->errors[-(int)GAR_ERR_VALUE]},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (PyErr_GivenExceptionMatches(exception, table[i].theirs) != 0) {
            return table[i].ours;
        }
    }
    return state->errors[-(int)GAR_ERR_CALLBACK];
}

/* Its text on one line; that of exceptions that fit no class begins with their type. New reference, never NULL without
 * an exception. */
static PyObject *text_of(PyObject *exception, bool with_type)
{
    PyObject *name = PyType_GetName(Py_TYPE(exception));
    PyObject *said = PyObject_Str(exception);
    if (said == NULL) { /* it cannot even be printed */
        PyErr_Clear();
        said = PyUnicode_FromString("");
    }
    PyObject *line = said != NULL ? PyObject_CallMethod(said, "replace", "ss", "\n", " ") : NULL;
    PyObject *text = NULL;
    if (name != NULL && line != NULL) {
        text = PyUnicode_GetLength(line) == 0 ? Py_NewRef(name)
               : with_type                    ? PyUnicode_FromFormat("%U: %U", name, line)
                                              : Py_NewRef(line);
    }
    Py_XDECREF(name);
    Py_XDECREF(said);
    Py_XDECREF(line);
    return text;
}

/* The exception itself if it is ours or no Exception, else ours about it. New reference; NULL with an exception. */
static PyObject *adopted(const struct gar_state *state, PyObject *exception)
{
    if (PyErr_GivenExceptionMatches(exception, state->error_base) != 0 ||
        PyErr_GivenExceptionMatches(exception, PyExc_Exception) == 0) {
        return Py_NewRef(exception);
    }
    PyObject *class = class_for(state, exception);
    PyObject *text = text_of(exception, class == state->errors[-(int)GAR_ERR_CALLBACK]);
    PyObject *ours = text != NULL ? PyObject_CallFunctionObjArgs(class, text, NULL) : NULL;
    Py_XDECREF(text);
    if (ours != NULL) {
        PyException_SetCause(ours, Py_NewRef(exception));
    }
    return ours;
}

void adopt_error(struct gar_state *state)
{
    PyObject *type = NULL;
    PyObject *value = NULL;
    PyObject *trace = NULL;
    PyErr_Fetch(&type, &value, &trace);
    if (type == NULL || PyErr_GivenExceptionMatches(type, state->error_base) != 0) {
        PyErr_Restore(type, value, trace);
        return;
    }
    PyErr_NormalizeException(&type, &value, &trace);
    if (value == NULL) {
        PyErr_Restore(type, value, trace);
        return;
    }
    if (trace != NULL) {
        (void)PyException_SetTraceback(value, trace);
    }
    PyObject *ours = adopted(state, value);
    if (ours != NULL && ours != value) {
        PyErr_SetObject((PyObject *)(void *)Py_TYPE(ours), ours);
        Py_DECREF(ours);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
        return;
    }
    Py_XDECREF(ours);
    PyErr_Restore(type, value, trace);
}

bool parse_args(struct gar_state *state, PyObject *args, const char *format, ...)
{
    va_list places;
    va_start(places, format);
    const int ok = PyArg_VaParse(args, format, places);
    va_end(places);
    if (ok == 0) {
        adopt_error(state);
    }
    return ok != 0;
}

/* adopted(exception): what to raise in its stead. */
static PyObject *adopt_given(PyObject *module, PyObject *exception)
{
    struct gar_state *state = module_state(module);
    if (!PyExceptionInstance_Check(exception)) {
        return raise_text(state, GAR_ERR_TYPE, "expected an exception");
    }
    return adopted(state, exception);
}

PyMethodDef error_functions[] = {
    {"adopted", adopt_given, METH_O, "The exception of this package's tree for one of another."},
    {NULL, NULL, 0, NULL},
};
