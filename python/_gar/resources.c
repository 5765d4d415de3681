/* SPDX-License-Identifier: Apache-2.0 */
/* Resource requests (as tuples of four integers; gar/machine.py gives them a face) and the machine's resources. */
#include <gar/resources.h>

#include "gar_py.h"

/* None, or a number: no text, no bool. */
static bool take_amount(struct gar_state *state, const char *name, PyObject *value, bool *is_given,
                        double *out)
{
    *is_given = value != Py_None;
    if (!*is_given) {
        return true;
    }
    *out = PyBool_Check(value) ? -1.0 : PyFloat_AsDouble(value);
    if (PyBool_Check(value) || (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_TypeError))) {
        PyErr_Clear();
        raise_text(state, GAR_ERR_TYPE, "%s must be a number or None", name);
        return false;
    }
    return PyErr_Occurred() == NULL;
}

/* None, an integer, or text such as "6GiB". */
static bool take_bytes(struct gar_state *state, const char *name, PyObject *value, bool *is_given,
                       int64_t *out)
{
    struct gar_error err;
    *is_given = value != Py_None;
    if (!*is_given) {
        return true;
    }
    if (PyUnicode_Check(value)) {
        Py_ssize_t size = 0;
        const char *text = PyUnicode_AsUTF8AndSize(value, &size);
        if (text == NULL) {
            return false;
        }
        const enum gar_status status = gar_bytes_parse(text, out, &err);
        return status == GAR_OK || raise_error(state, status, &err) != NULL;
    }
    PyObject *number = PyBool_Check(value) ? NULL : PyNumber_Index(value);
    if (number == NULL) {
        PyErr_Clear();
        raise_text(state, GAR_ERR_TYPE,
                   "%s must be a whole number of bytes, a text such as '6GiB', or None", name);
        return false;
    }
    int overflow = 0;
    *out = (int64_t)PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (overflow != 0) {
        raise_text(state, GAR_ERR_VALUE, "%s is out of range", name);
        return false;
    }
    return true;
}

/* byte_size(name, value): a number of bytes. */
static PyObject *byte_size(PyObject *module, PyObject *args)
{
    struct gar_state *state = module_state(module);
    const char *name = NULL;
    PyObject *value = NULL;
    bool is_given = false;
    int64_t bytes = 0;
    if (!parse_args(state, args, "sO", &name, &value) ||
        !take_bytes(state, name, value, &is_given, &bytes)) {
        return NULL;
    }
    return PyLong_FromLongLong((long long)bytes);
}

static PyObject *from_request(const struct gar_resource_request *request)
{
    return Py_BuildValue("(LLLL)", (long long)request->cpu_shares, (long long)request->gpu_shares,
                         (long long)request->memory_bytes, (long long)request->gpu_memory_bytes);
}

/* A tuple of from_request, perhaps from a pickle: checked again. */
static bool to_request(struct gar_state *state, PyObject *tuple, struct gar_resource_request *out)
{
    long long cpus;
    long long gpus;
    long long memory;
    long long gpu_memory;
    struct gar_error err;
    if (!PyTuple_Check(tuple) ||
        !PyArg_ParseTuple(tuple, "LLLL", &cpus, &gpus, &memory, &gpu_memory)) {
        PyErr_Clear();
        raise_text(state, GAR_ERR_TYPE, "not a resource request");
        return false;
    }
    *out = (struct gar_resource_request){.cpu_shares = cpus,
                                         .gpu_shares = gpus,
                                         .memory_bytes = memory,
                                         .gpu_memory_bytes = gpu_memory};
    const enum gar_status status = gar_resource_request_check(out, &err);
    return status == GAR_OK || raise_error(state, status, &err) != NULL;
}

/* request_make(num_cpus, num_gpus, memory_bytes, gpu_memory) */
static PyObject *request_make(PyObject *module, PyObject *args)
{
    struct gar_state *state = module_state(module);
    PyObject *cpus = NULL;
    PyObject *gpus = NULL;
    PyObject *memory = NULL;
    PyObject *gpu_memory = NULL;
    if (!PyArg_ParseTuple(args, "OOOO", &cpus, &gpus, &memory, &gpu_memory)) {
        return NULL;
    }
    struct gar_resource_request request;
    struct gar_error err;
    double amount = 0;
    int64_t bytes = 0;
    bool is_given = false;
    enum gar_status status = GAR_OK;
    gar_resource_request_init(&request);
    if (!take_amount(state, "num_cpus", cpus, &is_given, &amount)) {
        return NULL;
    }
    if (is_given) {
        status = gar_resource_request_set_cpus(&request, amount, &err);
    }
    if (status == GAR_OK) {
        if (!take_amount(state, "num_gpus", gpus, &is_given, &amount)) {
            return NULL;
        }
        status = is_given ? gar_resource_request_set_gpus(&request, amount, &err) : GAR_OK;
    }
    if (status == GAR_OK) {
        if (!take_bytes(state, "memory_bytes", memory, &is_given, &bytes)) {
            return NULL;
        }
        status = is_given ? gar_resource_request_set_memory(&request, bytes, &err) : GAR_OK;
    }
    if (status == GAR_OK) {
        if (!take_bytes(state, "gpu_memory", gpu_memory, &is_given, &bytes)) {
            return NULL;
        }
        status = is_given ? gar_resource_request_set_gpu_memory(&request, bytes, &err) : GAR_OK;
    }
    return status == GAR_OK ? from_request(&request) : raise_error(state, status, &err);
}

static bool take_two(PyObject *module, PyObject *args, struct gar_resource_request *a,
                     struct gar_resource_request *b)
{
    PyObject *first = NULL;
    PyObject *second = NULL;
    return PyArg_ParseTuple(args, "OO", &first, &second) &&
           to_request(module_state(module), first, a) &&
           to_request(module_state(module), second, b);
}

static PyObject *request_max(PyObject *module, PyObject *args)
{
    struct gar_resource_request a;
    struct gar_resource_request b;
    if (!take_two(module, args, &a, &b)) {
        return NULL;
    }
    gar_resource_request_max(&a, &b, &a);
    return from_request(&a);
}

static PyObject *request_override(PyObject *module, PyObject *args)
{
    struct gar_resource_request a;
    struct gar_resource_request b;
    if (!take_two(module, args, &a, &b)) {
        return NULL;
    }
    gar_resource_request_override(&a, &b, &a);
    return from_request(&a);
}

static PyObject *request_sum(PyObject *module, PyObject *args)
{
    struct gar_resource_request a;
    struct gar_resource_request b;
    struct gar_error err;
    if (!take_two(module, args, &a, &b)) {
        return NULL;
    }
    const enum gar_status status = gar_resource_request_sum(&a, &b, &a, &err);
    return status == GAR_OK ? from_request(&a) : raise_error(module_state(module), status, &err);
}

static PyObject *request_multiply(PyObject *module, PyObject *args)
{
    struct gar_state *state = module_state(module);
    PyObject *tuple = NULL;
    long long factor = 0;
    struct gar_resource_request request;
    struct gar_error err;
    if (!PyArg_ParseTuple(args, "OL", &tuple, &factor) || !to_request(state, tuple, &request)) {
        return NULL;
    }
    const enum gar_status status = gar_resource_request_multiply(&request, factor, &request, &err);
    return status == GAR_OK ? from_request(&request) : raise_error(state, status, &err);
}

static PyObject *request_check(PyObject *module, PyObject *tuple)
{
    struct gar_resource_request request;
    return to_request(module_state(module), tuple, &request) ? from_request(&request) : NULL;
}

static PyObject *request_text(PyObject *module, PyObject *tuple)
{
    struct gar_resource_request request;
    char text[256];
    if (!to_request(module_state(module), tuple, &request)) {
        return NULL;
    }
    return PyUnicode_FromString(gar_resource_request_text(&request, text, (int64_t)sizeof text));
}

/* The search for devices may take a while: without the GIL. */
static PyObject *resources(PyObject *module, PyObject *args)
{
    struct gar_state *state = module_state(module);
    int as_json = 0;
    int looks_again = 0;
    struct gar_resources *seen = NULL;
    char *text = NULL;
    struct gar_error err;
    enum gar_status status = GAR_OK;
    if (!PyArg_ParseTuple(args, "pp", &as_json, &looks_again)) {
        return NULL;
    }
    PyThreadState *saved = PyEval_SaveThread();
    status = looks_again != 0 ? gar_resources_look_again(&err) : GAR_OK;
    if (status == GAR_OK) {
        status = gar_resources_read(&seen, &err);
    }
    if (status == GAR_OK) {
        status = gar_resources_to_text(seen, as_json != 0, &text, &err);
        gar_resources_free(seen);
    }
    PyEval_RestoreThread(saved);
    if (status != GAR_OK) {
        return raise_error(state, status, &err);
    }
    PyObject *made = PyUnicode_FromString(text);
    gar_text_free(text);
    return made;
}

/* set_aside(device, reason); restore(device) with reason None. */
static PyObject *set_aside(PyObject *module, PyObject *args)
{
    const char *device = NULL;
    const char *reason = NULL;
    struct gar_error err;
    enum gar_status status = GAR_OK;
    if (!parse_args(module_state(module), args, "sz", &device, &reason)) {
        return NULL;
    }
    PyThreadState *saved = PyEval_SaveThread();
    status = reason == NULL ? gar_resources_restore(device, &err)
                            : gar_resources_set_aside(device, reason, &err);
    PyEval_RestoreThread(saved);
    return status == GAR_OK ? Py_NewRef(Py_None) : raise_error(module_state(module), status, &err);
}

PyMethodDef resource_functions[] = {
    {"request_make", request_make, METH_VARARGS, "(cpus, gpus, memory, gpu memory) -> request"},
    {"request_check", request_check, METH_O, "The request itself, if it is one."},
    {"request_max", request_max, METH_VARARGS, "Field by field, the larger."},
    {"request_sum", request_sum, METH_VARARGS, "Field by field, the sum."},
    {"request_multiply", request_multiply, METH_VARARGS, "Field by field, times a whole number."},
    {"request_override", request_override, METH_VARARGS, "The second's fields over the first's."},
    {"request_text", request_text, METH_O, "In words."},
    {"byte_size", byte_size, METH_VARARGS, "(name, bytes or a text such as '6GiB') -> bytes"},
    {"resources", resources, METH_VARARGS, "What the machine has and who holds it: JSON or table."},
    {"set_aside", set_aside, METH_VARARGS, "Take a device out of use (reason), or back (None)."},
    {NULL, NULL, 0, NULL},
};
