/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow arrays in Python's hands: shared holders, capsules, guarded foreign arrays, and the Array type (one column). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gar_py.h"

/* Nesting of foreign schemas that is copied. */
#define DEPTH_MAX 64

/* ---- holders ------------------------------------------------------------------------------------------------------- */

static void release_schema(struct ArrowSchema *schema)
{
    if (schema->release != NULL) {
        schema->release(schema);
    }
}

static void release_array(struct ArrowArray *array)
{
    if (array->release != NULL) {
        array->release(array);
    }
}

struct holder *holder_new(struct ArrowSchema *schema, struct ArrowArray *array)
{
    struct holder *holder = raw_malloc(sizeof *holder);
    if (holder == NULL) {
        release_schema(schema);
        release_array(array);
        PyErr_NoMemory();
        return NULL;
    }
    holder->refs = 1;
    holder->schema = *schema;
    holder->array = *array;
    schema->release = NULL;
    array->release = NULL;
    return holder;
}

static struct holder *holder_ref(struct holder *holder)
{
    __atomic_fetch_add(&holder->refs, 1, __ATOMIC_RELAXED);
    return holder;
}

void holder_unref(struct holder *holder)
{
    if (holder != NULL && __atomic_fetch_sub(&holder->refs, 1, __ATOMIC_ACQ_REL) == 1) {
        release_schema(&holder->schema);
        release_array(&holder->array);
        raw_free(holder);
    }
}

/* A copied struct in one block: its children and their pointers. Each child can be moved out and released alone. */
struct array_copy {
    struct holder *holder; /* owned reference */
    struct ArrowArray *children;
    struct ArrowArray **child_pointers;
    struct ArrowArray *dictionary;
};

static void release_copy(struct ArrowArray *array)
{
    struct array_copy *copy = array->private_data;
    for (int64_t i = 0; copy->children != NULL && i < array->n_children; i++) {
        release_array(&copy->children[i]);
    }
    if (copy->dictionary != NULL) {
        release_array(copy->dictionary);
    }
    raw_free(copy->children);
    raw_free(copy->child_pointers);
    raw_free(copy->dictionary);
    holder_unref(copy->holder);
    raw_free(copy);
    array->release = NULL;
}

/* out is zeroed or complete afterwards, so that a release is always right. */
static bool copy_array(struct holder *holder, const struct ArrowArray *from, int depth,
                       struct ArrowArray *out)
{
    out->release = NULL;
    struct array_copy *copy = depth < DEPTH_MAX ? raw_calloc(1, sizeof *copy) : NULL;
    if (copy == NULL) {
        PyErr_NoMemory();
        return false;
    }
    copy->holder = holder_ref(holder);
    *out = *from;
    out->n_children = 0;
    out->children = NULL;
    out->dictionary = NULL;
    out->private_data = copy;
    out->release = release_copy;
    bool ok = true;
    if (from->n_children > 0) {
        copy->children = raw_calloc((size_t)from->n_children, sizeof *copy->children);
        copy->child_pointers = raw_calloc((size_t)from->n_children, sizeof *copy->child_pointers);
        ok = copy->children != NULL && copy->child_pointers != NULL;
        for (int64_t i = 0; ok && i < from->n_children; i++) {
            copy->child_pointers[i] = &copy->children[i];
            ok = copy_array(holder, from->children[i], depth + 1, &copy->children[i]);
            out->n_children = i + 1;
        }
        out->children = copy->child_pointers;
    }
    if (ok && from->dictionary != NULL) {
        copy->dictionary = raw_calloc(1, sizeof *copy->dictionary);
        ok = copy->dictionary != NULL &&
             copy_array(holder, from->dictionary, depth + 1, copy->dictionary);
        out->dictionary = copy->dictionary;
    }
    if (!ok) {
        release_copy(out);
        PyErr_NoMemory();
    }
    return ok;
}

bool holder_export_array(struct holder *holder, struct ArrowArray *out)
{
    return copy_array(holder, &holder->array, 0, out);
}

struct schema_copy {
    char *format;
    char *name;
    char *metadata;
    struct ArrowSchema *children;
    struct ArrowSchema **child_pointers;
    struct ArrowSchema *dictionary;
};

static void release_schema_copy(struct ArrowSchema *schema)
{
    struct schema_copy *copy = schema->private_data;
    for (int64_t i = 0; copy->children != NULL && i < schema->n_children; i++) {
        release_schema(&copy->children[i]);
    }
    if (copy->dictionary != NULL) {
        release_schema(copy->dictionary);
    }
    raw_free(copy->format);
    raw_free(copy->name);
    raw_free(copy->metadata);
    raw_free(copy->children);
    raw_free(copy->child_pointers);
    raw_free(copy->dictionary);
    raw_free(copy);
    schema->release = NULL;
}

static void *copy_bytes(const void *from, size_t bytes)
{
    void *to = raw_malloc(bytes);
    if (to != NULL) {
        memcpy(to, from, bytes);
    }
    return to;
}

/* Length of Arrow's binary metadata that a producer vouches for. */
static size_t metadata_bytes(const char *metadata)
{
    int32_t pairs;
    size_t at = sizeof pairs;
    memcpy(&pairs, metadata, sizeof pairs);
    for (int64_t i = 0; i < 2 * (int64_t)pairs; i++) {
        int32_t bytes;
        memcpy(&bytes, metadata + at, sizeof bytes);
        if (bytes < 0) {
            return 0;
        }
        at += sizeof bytes + (size_t)bytes;
    }
    return at;
}

static bool copy_schema_at(const struct ArrowSchema *from, const char *name, int depth,
                           struct ArrowSchema *out)
{
    memset(out, 0, sizeof *out);
    struct schema_copy *copy = depth < DEPTH_MAX ? raw_calloc(1, sizeof *copy) : NULL;
    if (copy == NULL) {
        PyErr_NoMemory();
        return false;
    }
    const char *own_name = name != NULL ? name : from->name != NULL ? from->name : "";
    copy->format = copy_bytes(from->format, strlen(from->format) + 1);
    copy->name = copy_bytes(own_name, strlen(own_name) + 1);
    const size_t bytes = from->metadata != NULL ? metadata_bytes(from->metadata) : 0;
    copy->metadata = bytes > 0 ? copy_bytes(from->metadata, bytes) : NULL;
    *out = (struct ArrowSchema){.format = copy->format,
                                .name = copy->name,
                                .metadata = copy->metadata,
                                .flags = from->flags,
                                .release = release_schema_copy,
                                .private_data = copy};
    bool ok = copy->format != NULL && copy->name != NULL && (bytes == 0 || copy->metadata != NULL);
    if (ok && from->n_children > 0) {
        copy->children = raw_calloc((size_t)from->n_children, sizeof *copy->children);
        copy->child_pointers = raw_calloc((size_t)from->n_children, sizeof *copy->child_pointers);
        ok = copy->children != NULL && copy->child_pointers != NULL;
        for (int64_t i = 0; ok && i < from->n_children; i++) {
            copy->child_pointers[i] = &copy->children[i];
            ok = copy_schema_at(from->children[i], NULL, depth + 1, &copy->children[i]);
            out->n_children = i + 1;
        }
        out->children = copy->child_pointers;
    }
    if (ok && from->dictionary != NULL) {
        copy->dictionary = raw_calloc(1, sizeof *copy->dictionary);
        ok = copy->dictionary != NULL &&
             copy_schema_at(from->dictionary, NULL, depth + 1, copy->dictionary);
        out->dictionary = copy->dictionary;
    }
    if (!ok) {
        release_schema_copy(out);
        PyErr_NoMemory();
    }
    return ok;
}

bool copy_schema(const struct ArrowSchema *from, const char *name, struct ArrowSchema *out)
{
    return copy_schema_at(from, name, 0, out);
}

/* ---- a struct over columns ------------------------------------------------------------------------------------------ */

struct struct_array {
    const void *no_validity;
    struct ArrowArray *children;
    struct ArrowArray **child_pointers;
};

static void release_struct(struct ArrowArray *array)
{
    struct struct_array *own = array->private_data;
    for (int64_t i = 0; i < array->n_children; i++) {
        release_array(&own->children[i]);
    }
    raw_free(own->children);
    raw_free(own->child_pointers);
    raw_free(own);
    array->release = NULL;
}

/* An empty struct schema and array with room for `count` children, none yet. */
static bool start_struct(int64_t count, int64_t length, struct ArrowSchema *schema,
                         struct ArrowArray *array)
{
    const struct ArrowSchema top = {.format = "+s", .name = ""};
    const size_t room = count > 0 ? (size_t)count : 1;
    memset(array, 0, sizeof *array);
    if (!copy_schema(&top, NULL, schema)) {
        return false;
    }
    struct schema_copy *own_schema = schema->private_data;
    own_schema->children = raw_calloc(room, sizeof *own_schema->children);
    own_schema->child_pointers = raw_calloc(room, sizeof *own_schema->child_pointers);
    struct struct_array *own = raw_calloc(1, sizeof *own);
    if (own != NULL) {
        own->children = raw_calloc(room, sizeof *own->children);
        own->child_pointers = raw_calloc(room, sizeof *own->child_pointers);
        *array = (struct ArrowArray){.length = length,
                                     .n_buffers = 1,
                                     .buffers = &own->no_validity,
                                     .children = own->child_pointers,
                                     .release = release_struct,
                                     .private_data = own};
    }
    schema->children = own_schema->child_pointers;
    if (own == NULL || own->children == NULL || own->child_pointers == NULL ||
        own_schema->children == NULL || own_schema->child_pointers == NULL) {
        release_schema(schema);
        release_array(array);
        PyErr_NoMemory();
        return false;
    }
    return true;
}

bool make_struct(struct holder *const *columns, const char *const *names, int64_t count,
                 int64_t length, struct ArrowSchema *schema, struct ArrowArray *array)
{
    if (!start_struct(count, length, schema, array)) {
        return false;
    }
    struct schema_copy *own_schema = schema->private_data;
    struct struct_array *own = array->private_data;
    for (int64_t i = 0; i < count; i++) {
        own_schema->child_pointers[i] = &own_schema->children[i];
        own->child_pointers[i] = &own->children[i];
        bool ok = copy_schema(&columns[i]->schema, names[i], &own_schema->children[i]);
        schema->n_children = ok ? i + 1 : i;
        ok = ok && holder_export_array(columns[i], &own->children[i]);
        array->n_children = ok ? i + 1 : i;
        if (!ok) {
            release_schema(schema);
            release_array(array);
            return false;
        }
    }
    return true;
}

/* ---- capsules ------------------------------------------------------------------------------------------------------- */

static void free_schema_capsule(PyObject *capsule)
{
    struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, "arrow_schema");
    if (schema != NULL) {
        release_schema(schema);
        raw_free(schema);
    }
}

static void free_array_capsule(PyObject *capsule)
{
    struct ArrowArray *array = PyCapsule_GetPointer(capsule, "arrow_array");
    if (array != NULL) {
        release_array(array);
        raw_free(array);
    }
}

static void free_stream_capsule(PyObject *capsule)
{
    struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    if (stream != NULL) {
        if (stream->release != NULL) {
            stream->release(stream);
        }
        raw_free(stream);
    }
}

/* A capsule over a copy of the struct; NULL with an exception, then the struct is still the caller's. */
static PyObject *new_capsule(const void *from, size_t bytes, const char *name,
                             PyCapsule_Destructor destroy)
{
    void *copy = copy_bytes(from, bytes);
    if (copy == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *capsule = PyCapsule_New(copy, name, destroy);
    if (capsule == NULL) {
        raw_free(copy);
    }
    return capsule;
}

PyObject *schema_capsule(struct ArrowSchema *schema)
{
    PyObject *capsule = new_capsule(schema, sizeof *schema, "arrow_schema", free_schema_capsule);
    if (capsule == NULL) {
        release_schema(schema);
    }
    return capsule;
}

PyObject *array_capsule(struct ArrowArray *array)
{
    PyObject *capsule = new_capsule(array, sizeof *array, "arrow_array", free_array_capsule);
    if (capsule == NULL) {
        release_array(array);
    }
    return capsule;
}

PyObject *stream_capsule(struct ArrowArrayStream *stream)
{
    PyObject *capsule =
        new_capsule(stream, sizeof *stream, "arrow_array_stream", free_stream_capsule);
    if (capsule == NULL) {
        stream->release(stream);
    }
    return capsule;
}

/* ---- foreign arrays and streams ------------------------------------------------------------------------------------- */

/* A foreign array whose release waits on the drop list until a thread with the GIL comes by. */
struct guarded_array {
    struct drop_node node;
    struct ArrowArray inner;
};

static void drop_array(struct drop_node *node)
{
    struct guarded_array *guard = (struct guarded_array *)(void *)node;
    release_array(&guard->inner);
    drop_list_unref(node->list);
    raw_free(guard);
}

static void release_guarded(struct ArrowArray *array)
{
    struct guarded_array *guard = array->private_data;
    array->release = NULL;
    drop_list_push(&guard->node);
}

/* No GIL needed. False when memory is short; then the array is released. */
static bool guard_in_list(struct drop_list *drops, struct ArrowArray *array)
{
    struct guarded_array *guard = raw_malloc(sizeof *guard);
    if (guard == NULL) {
        release_array(array);
        return false;
    }
    guard->node = (struct drop_node){.release = drop_array, .list = drop_list_ref(drops)};
    guard->inner = *array;
    array->release = release_guarded;
    array->private_data = guard;
    return true;
}

bool guard_array(struct gar_state *state, struct ArrowArray *array)
{
    if (array->release == NULL) {
        raise_text(state, GAR_ERR_VALUE, "the Arrow array was already released");
        return false;
    }
    if (!guard_in_list(state->drops, array)) {
        PyErr_NoMemory();
        return false;
    }
    return true;
}

/* A foreign stream whose arrays are guarded; with as_struct, arrays of any type become structs of one column "". */
struct guarded_stream {
    struct ArrowArrayStream inner;
    struct drop_node node;
    bool as_struct;
};

static void drop_stream(struct drop_node *node)
{
    struct guarded_stream *guard =
        (struct guarded_stream *)(void *)((char *)node - offsetof(struct guarded_stream, node));
    if (guard->inner.release != NULL) {
        guard->inner.release(&guard->inner);
    }
    drop_list_unref(node->list);
    raw_free(guard);
}

static void release_guarded_stream(struct ArrowArrayStream *stream)
{
    struct guarded_stream *guard = stream->private_data;
    stream->release = NULL;
    drop_list_push(&guard->node);
}

static const char *guarded_last_error(struct ArrowArrayStream *stream)
{
    struct guarded_stream *guard = stream->private_data;
    return guard->inner.get_last_error(&guard->inner);
}

/* A child struct that was moved here: one block with its parent. */
struct wrapped_child {
    struct ArrowArray array;
    struct ArrowArray *pointer;
    const void *no_validity;
};

static void release_wrapped(struct ArrowArray *array)
{
    struct wrapped_child *child = array->private_data;
    release_array(&child->array);
    raw_free(child);
    array->release = NULL;
}

static bool wrap_in_struct(struct ArrowArray *array)
{
    struct wrapped_child *child = raw_malloc(sizeof *child);
    if (child == NULL) {
        release_array(array);
        return false;
    }
    child->array = *array;
    child->pointer = &child->array;
    child->no_validity = NULL;
    *array = (struct ArrowArray){.length = child->array.length,
                                 .n_buffers = 1,
                                 .n_children = 1,
                                 .buffers = &child->no_validity,
                                 .children = &child->pointer,
                                 .release = release_wrapped,
                                 .private_data = child};
    return true;
}

struct wrapped_schema {
    struct ArrowSchema schema;
    struct ArrowSchema *pointer;
};

static void release_wrapped_schema(struct ArrowSchema *schema)
{
    struct wrapped_schema *child = schema->private_data;
    release_schema(&child->schema);
    raw_free(child);
    schema->release = NULL;
}

static bool wrap_schema(struct ArrowSchema *schema)
{
    struct wrapped_schema *child = raw_malloc(sizeof *child);
    if (child == NULL) {
        release_schema(schema);
        return false;
    }
    child->schema = *schema;
    child->pointer = &child->schema;
    *schema = (struct ArrowSchema){.format = "+s",
                                   .name = "",
                                   .n_children = 1,
                                   .children = &child->pointer,
                                   .release = release_wrapped_schema,
                                   .private_data = child};
    return true;
}

static int guarded_get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    struct guarded_stream *guard = stream->private_data;
    const int code = guard->inner.get_schema(&guard->inner, out);
    return code != 0 || !guard->as_struct || wrap_schema(out) ? code : ENOMEM;
}

static int guarded_get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    struct guarded_stream *guard = stream->private_data;
    const int code = guard->inner.get_next(&guard->inner, out);
    if (code != 0 || out->release == NULL) {
        return code;
    }
    if (!guard_in_list(guard->node.list, out) || (guard->as_struct && !wrap_in_struct(out))) {
        out->release = NULL;
        return ENOMEM;
    }
    return 0;
}

bool guard_stream(struct gar_state *state, struct ArrowArrayStream *stream, bool as_struct)
{
    struct guarded_stream *guard = raw_malloc(sizeof *guard);
    if (guard == NULL) {
        stream->release(stream);
        PyErr_NoMemory();
        return false;
    }
    guard->inner = *stream;
    guard->node = (struct drop_node){.release = drop_stream, .list = drop_list_ref(state->drops)};
    guard->as_struct = as_struct;
    *stream = (struct ArrowArrayStream){.get_schema = guarded_get_schema,
                                        .get_next = guarded_get_next,
                                        .get_last_error = guarded_last_error,
                                        .release = release_guarded_stream,
                                        .private_data = guard};
    return true;
}

bool take_array_capsules(struct gar_state *state, PyObject *obj, struct ArrowSchema *schema,
                         struct ArrowArray *array)
{
    PyObject *pair = PyObject_CallMethod(obj, "__arrow_c_array__", NULL);
    if (pair == NULL) {
        adopt_error(state);
        return false;
    }
    if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2) {
        raise_text(state, GAR_ERR_TYPE, "__arrow_c_array__ did not return two capsules");
        Py_DECREF(pair);
        return false;
    }
    struct ArrowSchema *from_schema =
        PyCapsule_GetPointer(PyTuple_GetItem(pair, 0), "arrow_schema");
    struct ArrowArray *from_array =
        from_schema != NULL ? PyCapsule_GetPointer(PyTuple_GetItem(pair, 1), "arrow_array") : NULL;
    bool ok = from_array != NULL;
    if (ok) {
        *schema = *from_schema;
        *array = *from_array;
        from_schema->release = NULL;
        from_array->release = NULL;
        ok = guard_array(state, array);
        if (!ok) {
            release_schema(schema);
        }
    }
    Py_DECREF(pair);
    if (!ok) {
        adopt_error(state);
    }
    return ok;
}

bool take_stream_capsule(struct gar_state *state, PyObject *obj, bool as_struct,
                         struct ArrowArrayStream *out)
{
    PyObject *capsule = PyObject_CallMethod(obj, "__arrow_c_stream__", NULL);
    if (capsule == NULL) {
        adopt_error(state);
        return false;
    }
    struct ArrowArrayStream *stream = PyCapsule_GetPointer(capsule, "arrow_array_stream");
    bool ok = stream != NULL;
    if (ok && stream->release == NULL) {
        raise_text(state, GAR_ERR_VALUE, "the Arrow stream was already read");
        ok = false;
    }
    if (ok) {
        *out = *stream;
        stream->release = NULL;
        ok = guard_stream(state, out, as_struct);
    }
    Py_DECREF(capsule);
    if (!ok) {
        adopt_error(state);
    }
    return ok;
}

/* ---- columns from any object ---------------------------------------------------------------------------------------- */

static bool has_attribute(PyObject *obj, const char *name)
{
    return PyObject_HasAttrString(obj, name) != 0;
}

struct holder *column_from_frame(struct gar_state *state, struct gar_frame *frame)
{
    struct waiting w;
    struct gar_run_options options;
    struct gar_error err;
    struct gar_frame *collected = NULL;
    struct gar_result *result = NULL;
    struct ArrowSchema schema;
    struct ArrowArray array;
    waiting_init(&w, state, &options);
    enum gar_status status;
    GAR_WITHOUT_GIL(&w, status = gar_frame_collect(frame, &options, &collected, &err));
    if (status < 0) {
        raise_error(state, status, &err);
        return NULL;
    }
    const int64_t rows = gar_frame_known_rows(collected);
    options.batch_rows = rows > 0 ? rows : 1;
    GAR_WITHOUT_GIL(&w, status = gar_frame_run(collected, &options, &result, &err));
    if (status >= 0) {
        status = gar_result_schema(result, GAR_TEXT_AS_VIEW, &schema, &err);
    }
    bool is_empty = false;
    if (status >= 0) {
        GAR_WITHOUT_GIL(&w, status = gar_result_next(result, GAR_TEXT_AS_VIEW, &array, &err));
        is_empty = status == GAR_EOF;
        if (status != GAR_OK && !is_empty) {
            release_schema(&schema);
        }
    }
    gar_result_release(result);
    gar_frame_release(collected);
    if (status < 0) {
        raise_error(state, status, &err);
        return NULL;
    }
    struct ArrowSchema child_schema;
    if (!copy_schema(schema.children[0], "", &child_schema)) {
        release_schema(&schema);
        if (!is_empty) {
            release_array(&array);
        }
        return NULL;
    }
    release_schema(&schema);
    if (is_empty) {
        struct built_array parts = {.is_text = child_schema.format[0] == 'v'};
        struct holder *empty = finish_array(&parts, child_schema.format);
        release_schema(&child_schema);
        return empty;
    }
    struct ArrowArray child = *array.children[0]; /* moved out of its parent */
    array.children[0]->release = NULL;
    release_array(&array);
    return holder_new(&child_schema, &child);
}

/* Any Arrow type -> one of the engine's own layouts. */
static struct holder *normalise(struct gar_state *state, struct ArrowArrayStream *stream)
{
    struct gar_session *session = get_session(state);
    struct gar_error err;
    struct gar_frame *frame = NULL;
    struct waiting w;
    if (session == NULL) {
        stream->release(stream);
        return NULL;
    }
    waiting_init(&w, state, NULL);
    enum gar_status status;
    GAR_WITHOUT_GIL(&w, status = gar_frame_from_stream(session, stream, &frame, &err));
    if (status < 0) {
        raise_error(state, status, &err);
        return NULL;
    }
    struct holder *holder = column_from_frame(state, frame);
    gar_frame_release(frame);
    return holder;
}

static struct holder *from_array_capsule(struct gar_state *state, PyObject *obj)
{
    struct ArrowSchema schema;
    struct ArrowArray array;
    struct gar_error err;
    struct gar_frame *frame = NULL;
    struct gar_session *session = get_session(state);
    if (session == NULL || !take_array_capsules(state, obj, &schema, &array)) {
        return NULL;
    }
    if (!wrap_schema(&schema)) {
        release_array(&array);
        PyErr_NoMemory();
        return NULL;
    }
    if (!wrap_in_struct(&array)) {
        release_schema(&schema);
        PyErr_NoMemory();
        return NULL;
    }
    const enum gar_status status = gar_frame_from_arrow(session, &schema, &array, &frame, &err);
    release_schema(&schema);
    if (status < 0) {
        raise_error(state, status, &err);
        return NULL;
    }
    struct holder *holder = column_from_frame(state, frame);
    gar_frame_release(frame);
    return holder;
}

static struct holder *convert_object(struct gar_state *state, PyObject *obj)
{
    if (PyObject_TypeCheck(obj, state->array_type)) {
        return holder_ref(((struct py_array *)(void *)obj)->holder);
    }
    if (PyList_Check(obj) || PyTuple_Check(obj)) {
        return column_from_sequence(state, obj);
    }
    if (PyUnicode_Check(obj) || PyBytes_Check(obj) || PyDict_Check(obj)) {
        raise_text(state, GAR_ERR_TYPE,
                   "a column is made from a list, an array or Arrow data, not from one %s",
                   PyUnicode_Check(obj) ? "str"
                   : PyBytes_Check(obj) ? "bytes"
                                        : "dict");
        return NULL;
    }
    bool handled = false;
    struct holder *holder = column_from_buffer(state, obj, &handled);
    if (handled) {
        return holder;
    }
    if (has_attribute(obj, "__arrow_c_array__")) {
        return from_array_capsule(state, obj);
    }
    if (has_attribute(obj, "__arrow_c_stream__")) {
        struct ArrowArrayStream stream;
        return take_stream_capsule(state, obj, true, &stream) ? normalise(state, &stream) : NULL;
    }
    if (has_attribute(obj, "__array__")) {
        PyObject *as_array = PyObject_CallMethod(obj, "__array__", NULL);
        holder = as_array != NULL ? column_from_buffer(state, as_array, &handled) : NULL;
        Py_XDECREF(as_array);
        if (handled || as_array == NULL) {
            return holder;
        }
    }
    PyObject *list = PySequence_List(obj);
    if (list == NULL) {
        if (PyErr_ExceptionMatches(PyExc_TypeError)) {
            raise_text(state, GAR_ERR_TYPE, "a column is made from a list, an array or Arrow data");
        }
        return NULL;
    }
    holder = column_from_sequence(state, list);
    Py_DECREF(list);
    return holder;
}

/* Foreign objects take part in a conversion: what they raise becomes an exception of ours. */
struct holder *column_from_object(struct gar_state *state, PyObject *obj)
{
    struct holder *holder = convert_object(state, obj);
    if (holder == NULL) {
        adopt_error(state);
    }
    return holder;
}

/* ---- the Array type ------------------------------------------------------------------------------------------------- */

static struct py_array *as_array(PyObject *self)
{
    return (struct py_array *)(void *)self;
}

PyObject *wrap_array(struct gar_state *state, struct holder *holder)
{
    PyObject *self = PyType_GenericAlloc(state->array_type, 0);
    if (self == NULL) {
        holder_unref(holder);
        return NULL;
    }
    as_array(self)->holder = holder;
    as_array(self)->state = state;
    return self;
}

static void array_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    holder_unref(as_array(self)->holder);
    free_instance(self);
    Py_DECREF(type);
}

static Py_ssize_t array_length(PyObject *self)
{
    return (Py_ssize_t)as_array(self)->holder->array.length;
}

static PyObject *array_get(PyObject *self, Py_ssize_t i)
{
    struct py_array *a = as_array(self);
    if (i < 0 || i >= a->holder->array.length) {
        PyErr_SetString(a->state->index_error, "row out of range");
        return NULL;
    }
    return array_item(a->state, &a->holder->schema, &a->holder->array, i);
}

static PyObject *array_type_text(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct py_array *a = as_array(self);
    struct gar_error err;
    char *text = NULL;
    const enum gar_status status = gar_type_from_arrow(&a->holder->schema, &text, &err);
    if (status < 0) {
        return raise_error(a->state, status, &err);
    }
    PyObject *result = PyUnicode_FromString(text);
    gar_text_free(text);
    return result;
}

static PyObject *array_to_list(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct py_array *a = as_array(self);
    PyObject *list = PyList_New(0);
    if (list != NULL && !append_to_list(a->state, &a->holder->schema, &a->holder->array, 0,
                                        a->holder->array.length, list)) {
        Py_CLEAR(list);
    }
    return list;
}

static PyObject *array_null_count(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyLong_FromLongLong(as_array(self)->holder->array.null_count);
}

static PyObject *array_arrow_array(PyObject *self, PyObject *args, PyObject *keywords)
{
    (void)args; /* requested_schema is a wish */
    (void)keywords;
    struct py_array *a = as_array(self);
    struct ArrowSchema schema;
    struct ArrowArray array;
    if (!copy_schema(&a->holder->schema, NULL, &schema)) {
        return NULL;
    }
    if (!holder_export_array(a->holder, &array)) {
        release_schema(&schema);
        return NULL;
    }
    PyObject *first = schema_capsule(&schema);
    PyObject *second = array_capsule(&array);
    PyObject *pair = first != NULL && second != NULL ? PyTuple_Pack(2, first, second) : NULL;
    Py_XDECREF(first);
    Py_XDECREF(second);
    return pair;
}

static PyObject *array_arrow_schema(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct ArrowSchema schema;
    return copy_schema(&as_array(self)->holder->schema, NULL, &schema) ? schema_capsule(&schema)
                                                                       : NULL;
}

/* (format, address of the values, address of the validity or 0, offset): for numpy views made in Python. */
static PyObject *array_buffers(PyObject *self, PyObject *unused)
{
    (void)unused;
    const struct ArrowArray *a = &as_array(self)->holder->array;
    const char *format = as_array(self)->holder->schema.format;
    const uintptr_t values = a->n_buffers > 1 ? (uintptr_t)a->buffers[1] : 0;
    const uintptr_t validity =
        a->n_buffers > 0 && a->null_count != 0 ? (uintptr_t)a->buffers[0] : 0;
    return Py_BuildValue("sKKL", format, (unsigned long long)values, (unsigned long long)validity,
                         (long long)a->offset);
}

/* The columns of a struct as arrays of their own. */
static PyObject *array_fields(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct py_array *a = as_array(self);
    const int64_t count = a->holder->array.n_children;
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (int64_t i = 0; list != NULL && i < count; i++) {
        struct ArrowSchema schema;
        struct ArrowArray array;
        struct holder *child = NULL;
        if (copy_schema(a->holder->schema.children[i], NULL, &schema)) {
            if (copy_array(a->holder, a->holder->array.children[i], 0, &array)) {
                child = holder_new(&schema, &array);
            } else {
                release_schema(&schema);
            }
        }
        PyObject *item = child != NULL ? wrap_array(a->state, child) : NULL;
        if (item == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

/* One list for each column of a struct: rows [first, first + rows) of it, fewer at the end. */
static PyObject *array_field_lists(PyObject *self, PyObject *args)
{
    struct py_array *a = as_array(self);
    const int64_t count = a->holder->array.n_children;
    Py_ssize_t first = 0;
    Py_ssize_t rows = PY_SSIZE_T_MAX;
    if (!parse_args(a->state, args, "|nn:field_lists", &first, &rows)) {
        return NULL;
    }
    const Py_ssize_t length = (Py_ssize_t)a->holder->array.length;
    first = first < 0 ? 0 : first > length ? length : first;
    rows = rows < 0 ? 0 : rows > length - first ? length - first : rows;
    PyObject *lists = PyList_New((Py_ssize_t)count);
    for (int64_t i = 0; lists != NULL && i < count; i++) {
        PyObject *list = PyList_New(0);
        const bool ok =
            list != NULL && append_to_list(a->state, a->holder->schema.children[i],
                                           a->holder->array.children[i], first, rows, list);
        if (!ok && list != NULL) {
            prefix_error(a->holder->schema.children[i]->name);
            Py_CLEAR(list);
        }
        if (list == NULL || PyList_SetItem(lists, (Py_ssize_t)i, list) < 0) {
            Py_CLEAR(lists);
        }
    }
    return lists;
}

static PyMethodDef array_methods[] = {
    {"fields", array_fields, METH_NOARGS, "The columns of a struct."},
    {"field_lists", array_field_lists, METH_VARARGS,
     "The columns of a struct as lists, or a range of their rows."},
    {"type_text", array_type_text, METH_NOARGS, "Type as text."},
    {"to_list", array_to_list, METH_NOARGS, "All rows as Python objects."},
    {"null_count", array_null_count, METH_NOARGS, "Number of nulls."},
    {"buffers", array_buffers, METH_NOARGS, "Format, addresses of values and validity, offset."},
    {"__arrow_c_array__", (PyCFunction)(void (*)(void))array_arrow_array,
     METH_VARARGS | METH_KEYWORDS, "Schema and array capsules."},
    {"__arrow_c_schema__", array_arrow_schema, METH_NOARGS, "Schema capsule."},
    {NULL, NULL, 0, NULL},
};

PyObject *make_array_type(PyObject *module)
{
    PyType_Slot slots[] = {
        {Py_tp_dealloc, (void *)(uintptr_t)array_dealloc},
        {Py_sq_length, (void *)(uintptr_t)array_length},
        {Py_sq_item, (void *)(uintptr_t)array_get},
        {Py_tp_methods, array_methods},
        {0, NULL},
    };
    PyType_Spec spec = {.name = "gar._native.Array",
                        .basicsize = sizeof(struct py_array),
                        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                        .slots = slots};
    return make_type(module, &spec);
}

/* ---- module functions ----------------------------------------------------------------------------------------------- */

static PyObject *new_array(PyObject *module, PyObject *obj)
{
    struct gar_state *state = module_state(module);
    drop_list_drain(state->drops);
    struct holder *holder = column_from_object(state, obj);
    return holder != NULL ? wrap_array(state, holder) : NULL;
}

/* zoned(array, zone): timestamps without a zone, which are UTC, as the same instants in a zone. */
static PyObject *zoned(PyObject *module, PyObject *args)
{
    struct gar_state *state = module_state(module);
    PyObject *obj = NULL;
    const char *zone = NULL;
    if (!parse_args(state, args, "O!s", state->array_type, &obj, &zone)) {
        return NULL;
    }
    struct holder *from = as_array(obj)->holder;
    const char *format = from->schema.format;
    if (strncmp(format, "ts", 2) != 0 || strlen(format) != 4) {
        return raise_text(state, GAR_ERR_TYPE, "expected timestamps without a time zone");
    }
    char type[160];
    char *known = NULL;
    struct gar_error err;
    (void)snprintf(type, sizeof type, "%s%s", format, zone);
    struct ArrowSchema wanted = from->schema;
    wanted.format = type;
    wanted.dictionary = NULL;
    const enum gar_status status = gar_type_from_arrow(&wanted, &known, &err);
    if (status < 0) {
        return raise_error(state, status, &err);
    }
    gar_text_free(known);
    struct ArrowSchema schema;
    struct ArrowArray array;
    if (!copy_schema(&wanted, NULL, &schema)) {
        return NULL;
    }
    if (!holder_export_array(from, &array)) {
        release_schema(&schema);
        return NULL;
    }
    struct holder *holder = holder_new(&schema, &array);
    return holder != NULL ? wrap_array(state, holder) : NULL;
}

/* type_to_schema(text, name) -> capsule */
static PyObject *type_to_schema(PyObject *module, PyObject *args)
{
    const char *type = NULL;
    struct ArrowSchema schema;
    struct gar_error err;
    if (!parse_args(module_state(module), args, "s", &type)) {
        return NULL;
    }
    const enum gar_status status = gar_type_to_arrow(type, &schema, &err);
    return status < 0 ? raise_error(module_state(module), status, &err) : schema_capsule(&schema);
}

/* schema_from_types([(name, type text)]) -> capsule of a struct schema */
static PyObject *schema_from_types(PyObject *module, PyObject *args)
{
    PyObject *fields = NULL;
    if (!parse_args(module_state(module), args, "O!", &PyList_Type, &fields)) {
        return NULL;
    }
    struct ArrowSchema schema;
    struct ArrowArray array;
    const int64_t count = (int64_t)PyList_Size(fields);
    if (!start_struct(count, 0, &schema, &array)) {
        return NULL;
    }
    release_array(&array);
    struct schema_copy *own = schema.private_data;
    for (int64_t i = 0; i < count; i++) {
        const char *name = NULL;
        const char *type = NULL;
        struct ArrowSchema field;
        struct gar_error err;
        enum gar_status status = GAR_OK;
        bool ok = parse_args(module_state(module), PyList_GetItem(fields, (Py_ssize_t)i), "ss",
                             &name, &type);
        if (ok) {
            status = gar_type_to_arrow(type, &field, &err);
            if (status < 0) {
                raise_error(module_state(module), status, &err);
            }
        }
        ok = ok && status >= 0;
        if (ok) {
            ok = copy_schema(&field, name, &own->children[i]);
            release_schema(&field);
        }
        if (!ok) {
            release_schema(&schema);
            return NULL;
        }
        own->child_pointers[i] = &own->children[i];
        schema.n_children = i + 1;
    }
    return schema_capsule(&schema);
}

/* schema_types(obj with __arrow_c_schema__) -> type text, or [(name, type text)] of a struct */
static PyObject *schema_types(PyObject *module, PyObject *obj)
{
    struct gar_state *state = module_state(module);
    PyObject *capsule = PyCapsule_CheckExact(obj)
                            ? Py_NewRef(obj)
                            : PyObject_CallMethod(obj, "__arrow_c_schema__", NULL);
    struct ArrowSchema *schema =
        capsule != NULL ? PyCapsule_GetPointer(capsule, "arrow_schema") : NULL;
    struct gar_error err;
    char *text = NULL;
    if (schema == NULL) {
        Py_XDECREF(capsule);
        adopt_error(state);
        return NULL;
    }
    if (schema->release == NULL || (schema->n_children > 0 && schema->children == NULL)) {
        Py_DECREF(capsule);
        return raise_text(state, GAR_ERR_FORMAT,
                          "an Arrow schema that was released or lacks its children");
    }
    PyObject *result = NULL;
    if (schema->format != NULL && strcmp(schema->format, "+s") == 0) {
        result = PyList_New(0);
        for (int64_t i = 0; result != NULL && i < schema->n_children; i++) {
            const enum gar_status status = gar_type_from_arrow(schema->children[i], &text, &err);
            if (status < 0) {
                raise_error(state, status, &err);
                prefix_error(schema->children[i]->name);
                Py_CLEAR(result);
                break;
            }
            PyObject *pair =
                Py_BuildValue("sss", schema->children[i]->name, text, schema->children[i]->format);
            gar_text_free(text);
            if (pair == NULL || PyList_Append(result, pair) < 0) {
                Py_CLEAR(result);
            }
            Py_XDECREF(pair);
        }
    } else {
        const enum gar_status status = gar_type_from_arrow(schema, &text, &err);
        result = status < 0 ? raise_error(state, status, &err) : PyUnicode_FromString(text);
        gar_text_free(status < 0 ? NULL : text);
    }
    Py_DECREF(capsule);
    return result;
}

PyMethodDef array_functions[] = {
    {"array", new_array, METH_O, "One column from a list, a numpy array or Arrow data."},
    {"zoned", zoned, METH_VARARGS, "zoned(array, zone): UTC timestamps in a zone."},
    {"type_to_schema", type_to_schema, METH_VARARGS, "Type text to an Arrow schema capsule."},
    {"schema_from_types", schema_from_types, METH_VARARGS,
     "Names and type texts to an Arrow schema capsule."},
    {"schema_types", schema_types, METH_O,
     "Type text of an Arrow schema, or (name, type, format) of its fields."},
    {NULL, NULL, 0, NULL},
};
