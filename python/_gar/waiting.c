/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting without the GIL, looking at signals, and the list of what only a thread with the GIL may release. */
#include "gar_py.h"

struct drop_list {
    int64_t refs;           /* atomic */
    struct drop_node *head; /* atomic; newest first */
    bool closed;            /* atomic */
};

struct drop_list *drop_list_new(void)
{
    struct drop_list *list = raw_calloc(1, sizeof *list);
    if (list != NULL) {
        list->refs = 1;
    }
    return list;
}

struct drop_list *drop_list_ref(struct drop_list *list)
{
    __atomic_fetch_add(&list->refs, 1, __ATOMIC_RELAXED);
    return list;
}

void drop_list_unref(struct drop_list *list)
{
    if (list != NULL && __atomic_fetch_sub(&list->refs, 1, __ATOMIC_ACQ_REL) == 1) {
        raw_free(list);
    }
}

void drop_list_push(struct drop_node *node)
{
    struct drop_list *list = node->list;
    node->next = __atomic_load_n(&list->head, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&list->head, &node->next, node, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
    }
}

void drop_list_drain(struct drop_list *list)
{
    if (list == NULL || __atomic_load_n(&list->head, __ATOMIC_RELAXED) == NULL ||
        __atomic_load_n(&list->closed, __ATOMIC_ACQUIRE)) {
        return;
    }
    struct drop_node *node = __atomic_exchange_n(&list->head, NULL, __ATOMIC_ACQUIRE);
    while (node != NULL) {
        struct drop_node *next = node->next;
        node->release(node); /* frees the node and its reference of the list */
        node = next;
    }
}

void drop_list_close(struct drop_list *list)
{
    if (list != NULL) {
        __atomic_store_n(&list->closed, true, __ATOMIC_RELEASE);
    }
}

/* Called by the engine on the waiting thread. A pending exception stays in the thread state and is raised by raise_error. */
static int look_at_signals(void *context)
{
    struct waiting *w = context;
    PyEval_RestoreThread(w->saved);
    drop_list_drain(w->drops);
    /* A handler has raised and the engine still comes to a stop: the next signal waits (settle_signals). */
    const int result = PyErr_Occurred() != NULL ? -1 : PyErr_CheckSignals();
    w->saved = PyEval_SaveThread();
    return result != 0;
}

/* The same for progress. An exception that is there (a signal's) stays; Ctrl-C inside the callable counts; its other failures
 * do not disturb the query. */
static void show_line(void *context, const char *line)
{
    struct waiting *w = context;
    PyObject *type = NULL;
    PyObject *value = NULL;
    PyObject *trace = NULL;
    PyEval_RestoreThread(w->saved);
    PyErr_Fetch(&type, &value, &trace);
    PyObject *show = Py_NewRef(w->show_progress);
    PyObject *text = line != NULL ? PyUnicode_FromString(line) : Py_NewRef(Py_None);
    PyObject *done = text != NULL ? PyObject_CallFunctionObjArgs(show, text, NULL) : NULL;
    if (done == NULL && (type != NULL || !PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))) {
        PyErr_Clear();
    }
    Py_XDECREF(done);
    Py_XDECREF(text);
    Py_DECREF(show);
    if (type != NULL) {
        PyErr_Restore(type, value, trace);
    }
    w->saved = PyEval_SaveThread();
}

void settle_signals(void)
{
    PyObject *type = NULL;
    PyObject *value = NULL;
    PyObject *trace = NULL;
    PyErr_Fetch(&type, &value, &trace);
    if (PyErr_CheckSignals() == 0 || PyErr_ExceptionMatches(type)) {
        PyErr_Clear();
        PyErr_Restore(type, value, trace);
    } else { /* another signal's handler raised something else: that one counts */
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
    }
}

void waiting_init(struct waiting *w, struct gar_state *state, struct gar_run_options *options)
{
    w->saved = NULL;
    w->drops = state->drops;
    w->show_progress = state->show_progress;
    drop_list_drain(state->drops);
    if (options != NULL) {
        gar_run_options_init(options);
        options->interrupted = look_at_signals;
        options->context = w;
        options->show_progress = w->show_progress != NULL ? show_line : NULL;
    }
}

/* A stream's consumer knows nothing of our exceptions: the stream ends with an error, and the signal is raised again for
 * the interpreter, which throws KeyboardInterrupt as soon as Python code runs. */
static int look_at_signals_anywhere(void *context)
{
    (void)context;
    if (!Py_IsInitialized()) {
        return 0;
    }
    const PyGILState_STATE gil = PyGILState_Ensure();
    const int result = PyErr_CheckSignals();
    if (result != 0) {
        const bool is_interrupt = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0;
        PyErr_Clear();
        if (is_interrupt) {
            PyErr_SetInterrupt();
        }
    }
    PyGILState_Release(gil);
    return result != 0;
}

void stream_waiting_init(struct gar_run_options *options)
{
    gar_run_options_init(options);
    options->interrupted = look_at_signals_anywhere;
}
