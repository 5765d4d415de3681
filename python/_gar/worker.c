/* SPDX-License-Identifier: Apache-2.0 */
/* The Python actor: an actor class over <gar/actor.h> whose functions call a Python object (the shell of gar._worker). The
 * GIL is given up while the worker waits for the next call; the main thread does everything. */
#include <gar/actor.h>
#include <stdio.h>
#include <string.h>

#include "gar_py.h"

/* Of the one actor of this process. */
static struct {
    struct gar_state *state;
    PyObject *shell;       /* borrowed from the caller of run_worker */
    PyThreadState *thread; /* while the GIL is given up */
    const struct ArrowSchema *input;
    const struct ArrowSchema *output;
} python_actor;

static void enter_python(void)
{
    PyEval_RestoreThread(python_actor.thread);
    drop_list_drain(python_actor.state->drops);
}

static void leave_python(void)
{
    python_actor.thread = PyEval_SaveThread();
}

static const char *text_at(PyObject *tuple, Py_ssize_t i)
{
    PyObject *item = PyTuple_GetItem(tuple, i); /* borrowed */
    const char *text = item == NULL || item == Py_None ? NULL : PyUnicode_AsUTF8AndSize(item, NULL);
    PyErr_Clear();
    return text;
}

/* The shell answers a failure by (type, text, traceback, nanoseconds to wait or -1). */
static void report_tuple(struct gar_actor_report *report, PyObject *failure)
{
    const char *type = text_at(failure, 0);
    const char *text = text_at(failure, 1);
    report->fail(report, type != NULL ? type : "Exception", text != NULL ? text : "",
                 text_at(failure, 2));
    PyObject *wait = PyTuple_GetItem(failure, 3);
    const long long ns = wait != NULL ? PyLong_AsLongLong(wait) : -1;
    PyErr_Clear();
    if (ns >= 0) {
        report->retry_after(report, ns);
    }
}

/* An exception that the shell let through, or one of ours. */
static void report_exception(struct gar_actor_report *report)
{
    PyObject *type = NULL;
    PyObject *value = NULL;
    PyObject *trace = NULL;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *text = value != NULL ? PyObject_Str(value) : NULL;
    PyErr_Clear();
    PyObject *name = type != NULL ? PyObject_GetAttrString(type, "__name__") : NULL;
    PyErr_Clear();
    const char *name_text = name != NULL ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    const char *value_text = text != NULL ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    PyErr_Clear();
    report->fail(report, name_text != NULL ? name_text : "Exception",
                 value_text != NULL ? value_text : "", NULL);
    Py_XDECREF(name);
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
}

static PyObject *copied_schema(const struct ArrowSchema *schema)
{
    struct ArrowSchema copy;
    return copy_schema(schema, NULL, &copy) ? schema_capsule(&copy) : PyErr_NoMemory();
}

static int create(const struct gar_actor_setup *setup, void **out_actor,
                  struct gar_actor_report *report)
{
    int code = 1;
    enter_python();
    python_actor.input = setup->input;
    python_actor.output = setup->output;
    *out_actor = &python_actor;
    PyObject *input = copied_schema(setup->input);
    PyObject *output = input != NULL ? copied_schema(setup->output) : NULL;
    PyObject *failure =
        output == NULL
            ? NULL
            : PyObject_CallMethod(python_actor.shell, "create", "siiy#OO", setup->name,
                                  (int)setup->index, (int)setup->count, (const char *)setup->code,
                                  (Py_ssize_t)setup->code_bytes, input, output);
    if (failure == NULL) {
        report_exception(report);
    } else if (PyTuple_Check(failure)) {
        report_tuple(report, failure);
    } else {
        code = 0;
    }
    Py_XDECREF(failure);
    Py_XDECREF(output);
    Py_XDECREF(input);
    leave_python();
    return code;
}

/* The input's columns as a list of arrays; each keeps the call's place in shared memory while it lives. */
static PyObject *input_columns(struct ArrowArray *input)
{
    PyObject *list = PyList_New(0);
    for (int64_t i = 0; list != NULL && i < input->n_children; i++) {
        struct ArrowSchema schema;
        PyObject *array = NULL;
        if (copy_schema(python_actor.input->children[i], NULL, &schema)) {
            struct holder *holder = holder_new(&schema, input->children[i]);
            array = holder != NULL ? wrap_array(python_actor.state, holder) : NULL;
        } else {
            PyErr_NoMemory();
        }
        if (array == NULL || PyList_Append(list, array) < 0) {
            Py_DECREF(list);
            list = NULL;
        }
        Py_XDECREF(array);
    }
    return list;
}

/* The columns that the shell returned, as one struct. False with an exception. */
static bool output_struct(PyObject *list, struct ArrowSchema *schema, struct ArrowArray *array)
{
    const int64_t count = python_actor.output->n_children;
    if (!PyList_Check(list) || PyList_Size(list) != (Py_ssize_t)count) {
        PyErr_Format(PyExc_TypeError, "the worker's shell returned no list of %d columns",
                     (int)count);
        return false;
    }
    struct holder **holders = raw_calloc((size_t)count, sizeof holders[0]);
    const char **names = raw_calloc((size_t)count, sizeof names[0]);
    bool is_good = holders != NULL && names != NULL;
    int64_t rows = 0;
    if (!is_good) {
        PyErr_NoMemory();
    }
    for (int64_t i = 0; is_good && i < count; i++) {
        names[i] = python_actor.output->children[i]->name;
        holders[i] = column_from_object(python_actor.state, PyList_GetItem(list, (Py_ssize_t)i));
        is_good = holders[i] != NULL;
        if (is_good && i > 0 && holders[i]->array.length != rows) {
            PyErr_SetString(PyExc_ValueError, "returned columns of different lengths");
            is_good = false;
        }
        rows = is_good ? holders[i]->array.length : rows;
    }
    /* make_struct takes references of its own. */
    is_good = is_good && make_struct(holders, names, count, rows, schema, array);
    for (int64_t i = 0; holders != NULL && i < count; i++) {
        holder_unref(holders[i]);
    }
    raw_free(holders);
    raw_free(names);
    return is_good;
}

static int call(void *actor, struct ArrowArray *input, struct ArrowSchema *output_schema,
                struct ArrowArray *output, struct gar_actor_report *report)
{
    (void)actor;
    int code = 1;
    const long long rows = (long long)input->length;
    enter_python();
    PyObject *columns = input_columns(input);
    PyObject *result = columns != NULL
                           ? PyObject_CallMethod(python_actor.shell, "call", "OL", columns, rows)
                           : NULL;
    Py_XDECREF(columns);
    if (result == NULL) {
        report_exception(report);
    } else if (PyTuple_Check(result)) {
        report_tuple(report, result);
    } else if (!output_struct(result, output_schema, output)) {
        report_exception(report);
    } else {
        code = 0;
    }
    Py_XDECREF(result);
    leave_python();
    return code;
}

static void destroy(void *actor)
{
    (void)actor;
    enter_python();
    PyObject *done = PyObject_CallMethod(python_actor.shell, "close", NULL);
    Py_XDECREF(done);
    PyErr_Clear();
    leave_python();
}

static PyObject *run_worker(PyObject *module, PyObject *shell)
{
    static const struct gar_actor_class python_class = {
        .abi = GAR_ACTOR_ABI, .name = "python", .create = create, .call = call, .destroy = destroy};
    python_actor.state = module_state(module);
    python_actor.shell = shell;
    leave_python();
    const int code = gar_actor_worker_run(&python_class);
    PyEval_RestoreThread(python_actor.thread);
    return PyLong_FromLong(code);
}

PyMethodDef worker_functions[] = {
    {"run_worker", run_worker, METH_O,
     "run_worker(shell) -> exit status: serve the pool that started this process."},
    {NULL, NULL, 0, NULL},
};
