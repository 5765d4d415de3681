/* SPDX-License-Identifier: Apache-2.0 */
/* The Result type: a running query as an iterator. Each batch is an Array of a struct, split into columns on demand. */
#include <string.h>

#include "gar_py.h"

struct py_result {
    PyObject_HEAD struct gar_result *result;
    struct gar_state *state;
    struct waiting waiting; /* the engine's callback looks here; set before each call */
    struct ArrowSchema schema;
    enum gar_text_encoding encoding;
    bool is_busy; /* a thread is inside next */
    bool is_done;
};

static struct py_result *as_result(PyObject *self)
{
    return (struct py_result *)(void *)self;
}

PyObject *start_result(struct gar_state *state, struct gar_frame *frame, int64_t batch_rows,
                       int64_t timeout_ms, enum gar_text_encoding encoding)
{
    PyObject *self = PyType_GenericAlloc(state->result_type, 0);
    if (self == NULL) {
        return NULL;
    }
    struct py_result *r = as_result(self);
    struct gar_run_options options;
    struct gar_error err;
    r->state = state;
    r->encoding = encoding;
    waiting_init(&r->waiting, state, &options);
    options.batch_rows = batch_rows;
    options.timeout_ms = timeout_ms;
    enum gar_status status;
    GAR_WITHOUT_GIL(&r->waiting, status = gar_frame_run(frame, &options, &r->result, &err));
    if (status >= 0) {
        status = gar_result_schema(r->result, encoding, &r->schema, &err);
    } else {
        r->result = NULL;
    }
    if (status < 0) {
        Py_DECREF(self);
        return raise_error(state, status, &err);
    }
    return self;
}

static void result_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    struct py_result *r = as_result(self);
    if (r->result != NULL) {
        PyThreadState *saved = PyEval_SaveThread();
        gar_result_release(r->result);
        PyEval_RestoreThread(saved);
    }
    if (r->schema.release != NULL) {
        r->schema.release(&r->schema);
    }
    PyObject_Free(self);
    Py_DECREF(type);
}

/* The next batch as an Array of a struct; NULL without an exception at the end. */
static PyObject *result_next(PyObject *self)
{
    struct py_result *r = as_result(self);
    struct ArrowArray array;
    struct ArrowSchema schema;
    struct gar_error err;
    if (r->is_busy) {
        return raise_text(r->state, GAR_ERR_VALUE, "this result is being read by another thread");
    }
    if (r->is_done) {
        return NULL;
    }
    drop_list_drain(r->state->drops);
    r->is_busy = true;
    enum gar_status status;
    GAR_WITHOUT_GIL(&r->waiting, status = gar_result_next(r->result, r->encoding, &array, &err));
    r->is_busy = false;
    if (status == GAR_EOF) {
        r->is_done = true;
        return NULL;
    }
    if (status < 0) { /* later calls report it again: a cut result never looks complete */
        return raise_error(r->state, status, &err);
    }
    if (!copy_schema(&r->schema, NULL, &schema)) {
        array.release(&array);
        return NULL;
    }
    struct holder *holder = holder_new(&schema, &array);
    return holder != NULL ? wrap_array(r->state, holder) : NULL;
}

static PyObject *result_cancel(PyObject *self, PyObject *unused)
{
    (void)unused;
    gar_result_cancel(as_result(self)->result);
    return Py_NewRef(Py_None);
}

/* Append all batches still to come to one list per column: the rows of to_pydict. */
static PyObject *result_lists(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct py_result *r = as_result(self);
    const int64_t count = r->schema.n_children;
    PyObject *lists = PyList_New((Py_ssize_t)count);
    for (int64_t i = 0; lists != NULL && i < count; i++) {
        PyObject *column = PyList_New(0);
        if (column == NULL || PyList_SetItem(lists, (Py_ssize_t)i, column) < 0) {
            Py_CLEAR(lists);
        }
    }
    while (lists != NULL) {
        PyObject *batch = result_next(self);
        if (batch == NULL) {
            if (PyErr_Occurred() != NULL) {
                Py_CLEAR(lists);
            }
            break;
        }
        const struct holder *holder = ((struct py_array *)(void *)batch)->holder;
        for (int64_t i = 0; lists != NULL && i < count; i++) {
            if (!append_to_list(r->state, holder->schema.children[i], holder->array.children[i], 0,
                                holder->array.children[i]->length,
                                PyList_GetItem(lists, (Py_ssize_t)i))) {
                prefix_error(holder->schema.children[i]->name);
                Py_CLEAR(lists);
            }
        }
        Py_DECREF(batch);
    }
    return lists;
}

static PyMethodDef result_methods[] = {
    {"cancel", result_cancel, METH_NOARGS, "Stop the query."},
    {"lists", result_lists, METH_NOARGS, "All rows to come, one list for each column."},
    {NULL, NULL, 0, NULL},
};

static PyObject *result_iter(PyObject *self)
{
    return Py_NewRef(self);
}

PyObject *make_result_type(PyObject *module)
{
    PyType_Slot slots[] = {
        {Py_tp_dealloc, (void *)(uintptr_t)result_dealloc},
        {Py_tp_iter, (void *)(uintptr_t)result_iter},
        {Py_tp_iternext, (void *)(uintptr_t)result_next},
        {Py_tp_methods, result_methods},
        {0, NULL},
    };
    PyType_Spec spec = {.name = "gar._native.Result",
                        .basicsize = sizeof(struct py_result),
                        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                        .slots = slots};
    return make_type(module, &spec);
}
