/* SPDX-License-Identifier: Apache-2.0 */
/* User functions: Python callables that the engine calls on its Python threads. What the callable does with a batch is the
 * package's matter (gar/udf.py); here are the thread states, the conversion and the errors.
 *
 * A runner is made for every query by `open(query)` and called as runner(struct array, first row, cancelled) for every
 * batch; it gives an Array, or (Array, Array of counts) when it expands rows; runner.close() ends it. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "gar_py.h"

enum { FAILURES_MAX = 16 };

/* What the engine keeps of a function. The node is for its last release. */
struct function {
    struct drop_node node; /* first */
    struct gar_state *state;
    PyObject *open; /* owned */
};

/* A runner that is closed by whoever has the GIL next. */
struct dropped {
    struct drop_node node; /* first */
    PyObject *runner;      /* owned */
};

/* ---- the GIL on the engine's threads ------------------------------------------------------------------------------------- */

static pthread_key_t thread_key;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;

/* At a thread's end its thread state goes too: one Ensure more than the one that kept it, then both are released. */
static void end_thread(void *unused)
{
    (void)unused;
    if (Py_IsInitialized()) {
        (void)PyGILState_Ensure();
        PyGILState_Release(PyGILState_LOCKED);
        PyGILState_Release(PyGILState_UNLOCKED);
    }
}

static void make_thread_key(void)
{
    (void)pthread_key_create(&thread_key, end_thread);
}

/* The first call on a thread keeps its thread state, so that what Python code keeps for a thread stays. */
static bool take_gil(PyGILState_STATE *gil)
{
    static const char kept = 1;
    if (!Py_IsInitialized()) {
        return false;
    }
    (void)pthread_once(&thread_once, make_thread_key);
    if (pthread_getspecific(thread_key) == NULL) {
        (void)PyGILState_Ensure();
        (void)PyEval_SaveThread();
        (void)pthread_setspecific(thread_key, &kept);
    }
    *gil = PyGILState_Ensure();
    return true;
}

/* ---- errors ---------------------------------------------------------------------------------------------------------- */

/* Keep the exception for whoever is told of the failure: its number goes with the error. The newest few are kept; they hold
 * what the user's frames hold. */
static int64_t keep_failure(struct gar_state *state, int64_t query, PyObject *exception)
{
    if (state->failures == NULL && (state->failures = PyDict_New()) == NULL) {
        PyErr_Clear();
        return -1;
    }
    const int64_t number = ++state->failure_count;
    PyObject *key = PyLong_FromLongLong(number);
    PyObject *old = PyLong_FromLongLong(number - FAILURES_MAX);
    PyObject *kept = Py_BuildValue("(LO)", (long long)query, exception);
    if (key == NULL || old == NULL || kept == NULL ||
        PyDict_SetItem(state->failures, key, kept) < 0) {
        PyErr_Clear();
    }
    if (old != NULL && PyDict_DelItem(state->failures, old) < 0) {
        PyErr_Clear();
    }
    Py_XDECREF(kept);
    Py_XDECREF(key);
    Py_XDECREF(old);
    return number;
}

/* The query has told of its failure: forget all that it kept. */
static void forget_failures(struct gar_state *state, int64_t query)
{
    PyObject *keys = PyDict_Keys(state->failures);
    for (Py_ssize_t i = 0; keys != NULL && i < PyList_Size(keys); i++) {
        PyObject *key = PyList_GetItem(keys, i);
        PyObject *kept = PyDict_GetItemWithError(state->failures, key);
        if (kept != NULL && PyLong_AsLongLong(PyTuple_GetItem(kept, 0)) == query &&
            PyDict_DelItem(state->failures, key) < 0) {
            PyErr_Clear();
        }
    }
    Py_XDECREF(keys);
    PyErr_Clear();
}

/* The pending exception becomes err. */
static enum gar_status take_failure(struct gar_state *state, int64_t query, struct gar_error *err)
{
    PyObject *type = NULL;
    PyObject *value = NULL;
    PyObject *trace = NULL;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    enum gar_status status = GAR_ERR_CALLBACK;
    const char *text = NULL;
    PyObject *shown = NULL;
    if (value != NULL) {
        if (trace != NULL) {
            (void)PyException_SetTraceback(value, trace);
        }
        for (int i = 1; i < ERROR_CLASSES_MAX; i++) {
            if ((enum gar_status) - i != GAR_ERR_INTERRUPTED && state->errors[i] != NULL &&
                PyErr_GivenExceptionMatches(value, state->errors[i]) != 0) {
                status = (enum gar_status) - i;
            }
        }
        shown = PyObject_Str(value);
        text = shown != NULL ? PyUnicode_AsUTF8AndSize(shown, NULL) : NULL;
        PyErr_Clear();
    }
    if (err != NULL) {
        memset(err, 0, sizeof *err);
        err->status = status;
        err->position =
            value != NULL && status != GAR_ERR_CANCELLED ? keep_failure(state, query, value) : -1;
        (void)snprintf(err->message, sizeof err->message, "%s",
                       text != NULL ? text : "a user function failed without a message");
    }
    Py_XDECREF(shown);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return status;
}

static enum gar_status fail_shutdown(struct gar_error *err)
{
    if (err != NULL) {
        memset(err, 0, sizeof *err);
        err->status = GAR_ERR_CANCELLED;
        err->position = -1;
        (void)snprintf(err->message, sizeof err->message, "Python is shutting down");
    }
    return GAR_ERR_CANCELLED;
}

/* What a worker process told of its exception, as an exception that shows it. */
static void worker_traceback(const struct gar_error *err, PyObject *exception)
{
    char *text = gar_failure_traceback(err->position);
    PyObject *told =
        text != NULL ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace") : NULL;
    PyObject *module = told != NULL ? PyImport_ImportModule("gar.exceptions") : NULL;
    PyObject *cause =
        module != NULL ? PyObject_CallMethod(module, "WorkerTraceback", "O", told) : NULL;
    if (cause != NULL) {
        PyException_SetCause(exception, cause); /* steals */
    }
    PyErr_Clear();
    Py_XDECREF(module);
    Py_XDECREF(told);
    gar_text_free(text);
}

void cause_of_failure(struct gar_state *state, const struct gar_error *err, PyObject *exception)
{
    if (err->position < -1) {
        worker_traceback(err, exception);
        return;
    }
    if (err->position <= 0 || state->failures == NULL) {
        return;
    }
    PyObject *key = PyLong_FromLongLong(err->position);
    PyObject *entry = key != NULL ? PyDict_GetItemWithError(state->failures, key) : NULL;
    if (entry != NULL) {
        PyObject *kept = Py_NewRef(PyTuple_GetItem(entry, 1));
        const int64_t query = PyLong_AsLongLong(PyTuple_GetItem(entry, 0));
        PyObject *cause = PyException_GetCause(kept);
        if (cause == NULL && PyErr_GivenExceptionMatches(kept, state->error_base) == 0) {
            cause = Py_NewRef(kept);
        }
        if (cause != NULL) {
            PyException_SetCause(exception, cause); /* steals */
        }
        Py_DECREF(kept);
        forget_failures(state, query);
    }
    Py_XDECREF(key);
    PyErr_Clear();
}

/* ---- calls --------------------------------------------------------------------------------------------------------------- */

static PyObject *ask_cancelled(PyObject *self, PyObject *unused)
{
    (void)unused;
    const struct gar_user_call **place = PyCapsule_GetPointer(self, "gar call");
    if (place == NULL) {
        return NULL;
    }
    return PyBool_FromLong(*place == NULL || (*place)->is_cancelled(*place));
}

static void free_place(PyObject *capsule)
{
    raw_free(PyCapsule_GetPointer(capsule, "gar call"));
}

/* A callable that tells whether the call is still wanted; *place is set to NULL at its end. */
static PyObject *make_cancelled(const struct gar_user_call *call, const struct gar_user_call ***out)
{
    static PyMethodDef method = {"cancelled", ask_cancelled, METH_NOARGS,
                                 "Does nobody want the result any more?"};
    const struct gar_user_call **place = raw_malloc(sizeof *place);
    PyObject *capsule = place != NULL ? PyCapsule_New((void *)place, "gar call", free_place) : NULL;
    if (capsule == NULL) {
        raw_free((void *)place);
        return PyErr_Occurred() != NULL ? NULL : PyErr_NoMemory();
    }
    *place = call;
    PyObject *function = PyCFunction_NewEx(&method, capsule, NULL);
    if (function != NULL) {
        *out = place;
    }
    Py_DECREF(capsule); /* the function's */
    return function;
}

static PyObject *wrap_args(struct gar_state *state, struct gar_user_call *call)
{
    struct ArrowSchema schema;
    if (!copy_schema(call->schema, NULL, &schema)) {
        return NULL;
    }
    struct ArrowArray array = call->args;
    call->args.release = NULL;
    struct holder *holder = holder_new(&schema, &array);
    return holder != NULL ? wrap_array(state, holder) : NULL;
}

static bool give_array(struct gar_state *state, PyObject *object, struct ArrowArray *out)
{
    if (!PyObject_TypeCheck(object, state->array_type)) {
        (void)raise_text(state, GAR_ERR_TYPE, "a user function gave no array");
        return false;
    }
    return holder_export_array(((struct py_array *)(void *)object)->holder, out);
}

static bool give_result(struct gar_state *state, PyObject *result, struct gar_user_call *call)
{
    PyObject *values = result;
    if (PyTuple_Check(result) && PyTuple_Size(result) == 2) {
        values = PyTuple_GetItem(result, 0);
        if (!give_array(state, PyTuple_GetItem(result, 1), &call->repeats)) {
            return false;
        }
    }
    if (!give_array(state, values, &call->result)) {
        return false;
    }
    if (!copy_schema(&((struct py_array *)(void *)values)->holder->schema, NULL,
                     &call->result_schema)) {
        call->result_schema.release = NULL;
        return false;
    }
    return true;
}

static enum gar_status call_runner(void *context, struct gar_user_call *call, struct gar_error *err)
{
    struct function *function = context;
    struct gar_state *state = function->state;
    PyGILState_STATE gil;
    if (!take_gil(&gil)) {
        return fail_shutdown(err);
    }
    drop_list_drain(state->drops);
    const struct gar_user_call **place = NULL;
    PyObject *cancelled = make_cancelled(call, &place);
    PyObject *args = cancelled != NULL ? wrap_args(state, call) : NULL;
    PyObject *first_row = args != NULL ? PyLong_FromLongLong(call->first_row) : NULL;
    PyObject *result = first_row != NULL
                           ? PyObject_CallFunctionObjArgs((PyObject *)call->state, args, first_row,
                                                          cancelled, NULL)
                           : NULL;
    const bool ok = result != NULL && give_result(state, result, call);
    const enum gar_status status = ok ? GAR_OK : take_failure(state, call->query, err);
    if (place != NULL) {
        *place = NULL;
    }
    Py_XDECREF(result);
    Py_XDECREF(first_row);
    Py_XDECREF(args);
    Py_XDECREF(cancelled);
    PyGILState_Release(gil);
    return status;
}

/* ---- the life of a runner ------------------------------------------------------------------------------------------------ */

static enum gar_status open_runner(void *context, int64_t query, void **out_state,
                                   struct gar_error *err)
{
    struct function *function = context;
    if (!Py_IsInitialized()) {
        return fail_shutdown(err);
    }
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *runner = PyObject_CallFunction(function->open, "L", (long long)query);
    const enum gar_status status =
        runner != NULL ? GAR_OK : take_failure(function->state, query, err);
    *out_state = runner;
    PyGILState_Release(gil);
    return status;
}

/* With the GIL. An error here has nobody to go to. */
static void end_runner(PyObject *runner)
{
    PyObject *type = NULL;
    PyObject *value = NULL;
    PyObject *trace = NULL;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *result = PyObject_CallMethod(runner, "close", NULL);
    if (result == NULL) {
        PyErr_WriteUnraisable(runner);
    }
    Py_XDECREF(result);
    Py_DECREF(runner);
    PyErr_Restore(type, value, trace);
}

static void end_dropped(struct drop_node *node)
{
    struct dropped *dropped = (struct dropped *)(void *)node;
    end_runner(dropped->runner);
    drop_list_unref(node->list);
    raw_free(dropped);
}

static void close_runner(void *context, void *runner, bool is_regular)
{
    struct function *function = context;
    PyGILState_STATE gil;
    if (is_regular && take_gil(&gil)) {
        end_runner(runner);
        PyGILState_Release(gil);
        return;
    }
    struct dropped *dropped = raw_calloc(1, sizeof *dropped);
    if (dropped != NULL) { /* without memory it is lost */
        dropped->node.release = end_dropped;
        dropped->node.list = drop_list_ref(function->state->drops);
        dropped->runner = runner;
        drop_list_push(&dropped->node);
    }
}

static void free_function(struct drop_node *node)
{
    struct function *function = (struct function *)(void *)node;
    Py_DECREF(function->open);
    drop_list_unref(node->list);
    raw_free(function);
}

static void release_function(void *context)
{
    struct function *function = context;
    drop_list_push(&function->node);
}

/* ---- making ------------------------------------------------------------------------------------------------------------- */

static void free_args(struct gar_expr **args, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        gar_expr_release(args[i]);
    }
    raw_free(args);
}

static struct gar_expr **take_args(struct gar_state *state, PyObject *list, int64_t *count)
{
    *count = (int64_t)PyList_Size(list);
    struct gar_expr **args = raw_calloc((size_t)*count, sizeof *args);
    if (args == NULL) {
        (void)PyErr_NoMemory();
        return NULL;
    }
    for (int64_t i = 0; i < *count; i++) {
        args[i] = expression_from_object(state, PyList_GetItem(list, (Py_ssize_t)i));
        if (args[i] == NULL) {
            free_args(args, i);
            return NULL;
        }
    }
    return args;
}

/* user_function(name, type, batch_rows, max_calls, is_expanding, is_grouped, detail, open, args) */
static PyObject *user_function(PyObject *module, PyObject *given)
{
    struct gar_state *state = module_state(module);
    struct gar_user_function f = {.struct_bytes = sizeof f,
                                  .open = open_runner,
                                  .call = call_runner,
                                  .close = close_runner,
                                  .release = release_function};
    long long batch_rows = 0;
    int max_calls = 0;
    int is_expanding = 0;
    int is_grouped = 0;
    PyObject *open = NULL;
    PyObject *list = NULL;
    if (!parse_args(state, given, "ssLippzOO!:user_function", &f.name, &f.type, &batch_rows,
                    &max_calls, &is_expanding, &is_grouped, &f.detail, &open, &PyList_Type,
                    &list)) {
        return NULL;
    }
    int64_t count = 0;
    struct gar_expr **args = take_args(state, list, &count);
    if (args == NULL) {
        return NULL;
    }
    struct function *function = raw_calloc(1, sizeof *function);
    if (function == NULL) {
        free_args(args, count);
        return PyErr_NoMemory();
    }
    function->node.release = free_function;
    function->node.list = drop_list_ref(state->drops);
    function->state = state;
    function->open = Py_NewRef(open);
    f.context = function;
    f.batch_rows = batch_rows;
    f.max_calls = max_calls;
    f.is_expanding = is_expanding != 0;
    f.is_grouped = is_grouped != 0;
    struct gar_expr *expr = NULL;
    struct gar_error err;
    const enum gar_status status = gar_expr_user_function(&f, args, count, &expr, &err);
    free_args(args, count);
    return status < 0 ? raise_error(state, status, &err) : wrap_expression(state, expr);
}

static bool set_request(struct gar_state *state, struct gar_resource_request *request, double cpus,
                        double gpus, long long memory, long long gpu_memory)
{
    struct gar_error err;
    enum gar_status status = GAR_OK;
    gar_resource_request_init(request);
    if (cpus >= 0) {
        status = gar_resource_request_set_cpus(request, cpus, &err);
    }
    if (status >= 0 && gpus >= 0) {
        status = gar_resource_request_set_gpus(request, gpus, &err);
    }
    if (status >= 0 && memory >= 0) {
        status = gar_resource_request_set_memory(request, memory, &err);
    }
    if (status >= 0 && gpu_memory >= 0) {
        status = gar_resource_request_set_gpu_memory(request, gpu_memory, &err);
    }
    if (status < 0) {
        (void)raise_error(state, status, &err);
    }
    return status >= 0;
}

/* actor_function(name, type, batch_rows, count, takes_fewer, is_spread, inherits_devices, cpus, gpus, memory, gpu_memory,
 * on_error, retries, argv, code, detail, args); amounts that are not asked are -1. */
static PyObject *actor_function(PyObject *module, PyObject *given)
{
    struct gar_state *state = module_state(module);
    struct gar_actor_function f = {.struct_bytes = sizeof f};
    long long batch_rows = 0;
    long long memory = -1;
    long long gpu_memory = -1;
    double cpus = -1;
    double gpus = -1;
    int count = 1;
    int takes_fewer = 0;
    int is_spread = 0;
    int inherits = 0;
    int on_error = 0;
    int retries = 0;
    const char *code = NULL;
    Py_ssize_t code_bytes = 0;
    PyObject *argv = NULL;
    PyObject *list = NULL;
    if (!parse_args(state, given, "ssLipppddLLiiO!y#zO!:actor_function", &f.name, &f.type,
                    &batch_rows, &count, &takes_fewer, &is_spread, &inherits, &cpus, &gpus, &memory,
                    &gpu_memory, &on_error, &retries, &PyList_Type, &argv, &code, &code_bytes,
                    &f.detail, &PyList_Type, &list) ||
        !set_request(state, &f.request, cpus, gpus, memory, gpu_memory)) {
        return NULL;
    }
    int64_t arg_count = 0;
    struct gar_expr **args = take_args(state, list, &arg_count);
    const Py_ssize_t words = PyList_Size(argv);
    const char **texts = args != NULL ? raw_calloc((size_t)words + 1, sizeof *texts) : NULL;
    bool ok = texts != NULL;
    for (Py_ssize_t i = 0; ok && i < words; i++) {
        texts[i] = PyUnicode_AsUTF8AndSize(PyList_GetItem(argv, i), NULL);
        ok = texts[i] != NULL;
    }
    PyObject *made = NULL;
    if (ok) {
        struct gar_expr *expr = NULL;
        struct gar_error err;
        f.batch_rows = batch_rows;
        f.count = count;
        f.takes_fewer = takes_fewer != 0;
        f.is_spread = is_spread != 0;
        f.inherits_devices = inherits != 0;
        f.on_error = on_error;
        f.max_retries = retries;
        f.argv = texts;
        f.code = code;
        f.code_bytes = code_bytes;
        const enum gar_status status = gar_expr_actor_function(&f, args, arg_count, &expr, &err);
        made = status < 0 ? raise_error(state, status, &err) : wrap_expression(state, expr);
    } else if (PyErr_Occurred() == NULL) {
        (void)PyErr_NoMemory();
    }
    raw_free(texts);
    if (args != NULL) {
        free_args(args, arg_count);
    }
    return made;
}

/* Name of the calling thread for ps and debuggers. */
static PyObject *name_thread(PyObject *module, PyObject *name)
{
    (void)module;
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    if (text == NULL) {
        return NULL;
    }
    char cut[16];
    (void)snprintf(cut, sizeof cut, "%s", text);
    (void)pthread_setname_np(pthread_self(), cut);
    return Py_NewRef(Py_None);
}

PyMethodDef user_function_functions[] = {
    {"user_function", user_function, METH_VARARGS, "An expression that calls a Python function."},
    {"actor_function", actor_function, METH_VARARGS,
     "An expression that worker processes compute."},
    {"name_thread", name_thread, METH_O, "Name the calling thread."},
    {NULL, NULL, 0, NULL},
};
