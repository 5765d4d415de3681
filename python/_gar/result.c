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
    bool is_busy; /* a thread is inside the engine */
    bool is_done;
    bool is_interrupted; /* a signal's exception was raised: once */
};

static struct py_result *as_result(PyObject *self)
{
    return (struct py_result *)(void *)self;
}

PyObject *start_result(struct gar_state *state, struct gar_frame *frame, int64_t batch_rows,
                       int64_t timeout_ms, enum gar_text_encoding encoding, enum gar_run_mode mode)
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
    options.mode = mode;
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

/* Before a call that may wait: one thread at a time. False with an exception. */
static bool enter_result(struct py_result *r)
{
    if (r->is_busy) {
        (void)raise_text(r->state, GAR_ERR_VALUE, "this result is being read by another thread");
        return false;
    }
    drop_list_drain(r->state->drops);
    r->is_busy = true;
    return true;
}

/* The exception of a failure; later calls report it again, so that a cut result never looks complete. Only a signal's own
 * exception is raised once. */
static PyObject *fail_result(struct py_result *r, enum gar_status status,
                             const struct gar_error *err)
{
    if (status == GAR_ERR_INTERRUPTED && r->is_interrupted && PyErr_Occurred() == NULL) {
        return raise_text(r->state, GAR_ERR_CANCELLED, "this query was interrupted");
    }
    r->is_interrupted = r->is_interrupted || status == GAR_ERR_INTERRUPTED;
    return raise_error(r->state, status, err);
}

/* A batch (moved) as an Array of a struct. */
static PyObject *wrap_batch(struct py_result *r, struct ArrowArray *array)
{
    struct ArrowSchema schema;
    if (!copy_schema(&r->schema, NULL, &schema)) {
        array->release(array);
        return NULL;
    }
    struct holder *holder = holder_new(&schema, array);
    return holder != NULL ? wrap_array(r->state, holder) : NULL;
}

/* The next batch as an Array of a struct; NULL without an exception at the end. */
static PyObject *result_next(PyObject *self)
{
    struct py_result *r = as_result(self);
    struct ArrowArray array;
    struct gar_error err;
    if (r->is_done && !r->is_busy) {
        return NULL;
    }
    if (!enter_result(r)) {
        return NULL;
    }
    enum gar_status status;
    GAR_WITHOUT_GIL(&r->waiting, status = gar_result_next(r->result, r->encoding, &array, &err));
    r->is_busy = false;
    if (status == GAR_EOF) {
        r->is_done = true;
        return NULL;
    }
    return status < 0 ? fail_result(r, status, &err) : wrap_batch(r, &array);
}

/* The next batch if it is there, None if it is not; StopIteration at the end. */
static PyObject *result_poll(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct py_result *r = as_result(self);
    struct ArrowArray array;
    struct gar_error err;
    if (!enter_result(r)) {
        return NULL;
    }
    enum gar_status status;
    GAR_WITHOUT_GIL(&r->waiting,
                    status = gar_result_next_within(r->result, r->encoding, 0, &array, &err));
    r->is_busy = false;
    if (status == GAR_PENDING) {
        return Py_NewRef(Py_None);
    }
    if (status == GAR_EOF) {
        PyErr_SetNone(PyExc_StopIteration);
        return NULL;
    }
    return status < 0 ? fail_result(r, status, &err) : wrap_batch(r, &array);
}

/* collect(timeout_ms): all rows as a Frame, or None if the query has not ended by then. -1: no bound. */
static PyObject *result_collect(PyObject *self, PyObject *args)
{
    struct py_result *r = as_result(self);
    long long timeout_ms = -1;
    struct gar_frame *out = NULL;
    struct gar_error err;
    if (!parse_args(r->state, args, "L", &timeout_ms) || !enter_result(r)) {
        return NULL;
    }
    enum gar_status status;
    GAR_WITHOUT_GIL(&r->waiting, status = gar_result_collect(r->result, timeout_ms, &out, &err));
    r->is_busy = false;
    if (status == GAR_PENDING) {
        return Py_NewRef(Py_None);
    }
    return status < 0 ? fail_result(r, status, &err) : wrap_frame(r->state, out);
}

static PyObject *result_fd(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct py_result *r = as_result(self);
    struct gar_error err;
    int fd = -1;
    const enum gar_status status = gar_result_fd(r->result, &fd, &err);
    return status < 0 ? raise_error(r->state, status, &err) : PyLong_FromLong(fd);
}

static PyObject *result_progress(PyObject *self, PyObject *unused)
{
    (void)unused;
    static const char *const states[] = {"running", "done", "cancelled", "failed"};
    struct gar_progress p = {.struct_bytes = sizeof p};
    gar_result_progress(as_result(self)->result, &p);
    return Py_BuildValue("{s:s,s:d,s:L,s:L,s:L,s:L,s:L}", "state", states[p.state], "elapsed",
                         (double)p.elapsed_ns / 1e9, "rows_read", (long long)p.rows_read, "rows",
                         (long long)p.rows, "bytes", (long long)p.bytes, "memory_bytes",
                         (long long)p.memory_bytes, "memory_peak_bytes",
                         (long long)p.memory_peak_bytes);
}

static PyObject *result_profile(PyObject *self, PyObject *unused)
{
    (void)unused;
    return wrap_profile(as_result(self)->state, gar_result_profile(as_result(self)->result));
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
    {"poll", result_poll, METH_NOARGS, "The next batch, or None if there is none yet."},
    {"collect", result_collect, METH_VARARGS, "collect(timeout_ms): a Frame, or None."},
    {"fd", result_fd, METH_NOARGS, "A descriptor: readable while poll would not give None."},
    {"profile", result_profile, METH_NOARGS, "What the operators have done, as it goes on."},
    {"progress", result_progress, METH_NOARGS, "What the query has done so far."},
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
