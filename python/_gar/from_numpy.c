/* SPDX-License-Identifier: Apache-2.0 */
/* numpy arrays and other one-dimensional buffers to Arrow, without numpy itself.
 *
 * Contiguous arrays of native numbers, timestamps and durations are shared: the Arrow array keeps the Python object
 * alive and gives it back on the drop list. Booleans, dates, texts, strided, unaligned and byte-swapped arrays are
 * copied. NaT and masked values are null; NaN is a value. */
#include <stdio.h>
#include <string.h>

#include "gar_py.h"

/* What __array_interface__ or a buffer says. */
struct source {
    PyObject *owner; /* kept alive by a shared array; owned */
    const char *data;
    int64_t length;
    int64_t stride_bytes;
    int64_t item_bytes;
    char kind;          /* numpy's letter: b i u f M m U S V O */
    char unit[8];       /* of M and m: D s ms us ns ... */
    int64_t unit_count; /* 1 in datetime64[s], 25 in datetime64[25s] */
    bool swapped;
    uint8_t *mask; /* one byte for each item, not 0: null; raw_malloc, NULL without a mask */
};

/* ---- shared arrays ----------------------------------------------------------------------------------------------------- */

struct shared_array {
    struct drop_node node;
    PyObject *owner;
    void *validity; /* own, or NULL */
    const void *buffers[2];
};

static void drop_shared(struct drop_node *node)
{
    struct shared_array *own = (struct shared_array *)(void *)node;
    Py_XDECREF(own->owner);
    drop_list_unref(node->list);
    raw_free(own->validity);
    raw_free(own);
}

static void release_shared(struct ArrowArray *array)
{
    struct shared_array *own = array->private_data;
    array->release = NULL;
    drop_list_push(&own->node);
}

/* Moves validity (may be NULL). */
static struct holder *share_source(struct gar_state *state, const struct source *s, void *validity,
                                   int64_t nulls, const char *format)
{
    struct shared_array *own = raw_calloc(1, sizeof *own);
    struct ArrowSchema schema;
    const struct ArrowSchema from = {.format = format, .name = "", .flags = ARROW_FLAG_NULLABLE};
    if (own == NULL || !copy_schema(&from, NULL, &schema)) {
        raw_free(own);
        raw_free(validity);
        PyErr_NoMemory();
        return NULL;
    }
    own->node = (struct drop_node){.release = drop_shared, .list = drop_list_ref(state->drops)};
    own->owner = Py_NewRef(s->owner);
    own->validity = validity;
    own->buffers[0] = validity;
    own->buffers[1] = s->data;
    struct ArrowArray array = {.length = s->length,
                               .null_count = nulls,
                               .n_buffers = 2,
                               .buffers = own->buffers,
                               .release = release_shared,
                               .private_data = own};
    return holder_new(&schema, &array);
}

/* ---- copies ------------------------------------------------------------------------------------------------------------ */

/* All items side by side in native byte order; raw_malloc. */
static void *packed_copy(const struct source *s)
{
    const size_t width = (size_t)s->item_bytes;
    char *to = raw_malloc((size_t)s->length * width + 16);
    if (to == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (int64_t i = 0; i < s->length; i++) {
        char *item = to + (size_t)i * width;
        memcpy(item, s->data + i * s->stride_bytes, width);
        for (size_t k = 0; s->swapped && k < width / 2; k++) {
            const char c = item[k];
            item[k] = item[width - 1 - k];
            item[width - 1 - k] = c;
        }
    }
    return to;
}

static struct holder *copy_numbers(const struct source *s, void *validity, int64_t nulls,
                                   const char *format)
{
    struct built_array parts = {.validity = validity, .null_count = nulls, .length = s->length};
    parts.values = packed_copy(s);
    if (parts.values == NULL) {
        free_parts(&parts);
        return NULL;
    }
    return finish_array(&parts, format);
}

static int64_t tick_at(const struct source *s, int64_t i)
{
    int64_t v;
    memcpy(&v, s->data + i * s->stride_bytes, sizeof v);
    return s->swapped ? (int64_t)__builtin_bswap64((uint64_t)v) : v;
}

static bool is_null_at(const struct source *s, bool nat, int64_t i)
{
    return (s->mask != NULL && s->mask[i] != 0) || (nat && tick_at(s, i) == INT64_MIN);
}

static bool is_packed(const struct source *s)
{
    return !s->swapped && (s->stride_bytes == s->item_bytes || s->length <= 1) &&
           (uintptr_t)s->data % (uintptr_t)s->item_bytes == 0;
}

/* Bitmap of what is neither masked nor, with nat, NaT; NULL with *nulls 0 when that is everything; *ok false with an
 * exception when memory is short. */
static void *validity_of(const struct source *s, bool nat, int64_t *nulls, bool *ok)
{
    *nulls = 0;
    *ok = true;
    for (int64_t i = 0; (nat || s->mask != NULL) && i < s->length; i++) {
        *nulls += is_null_at(s, nat, i);
    }
    if (*nulls == 0) {
        return NULL;
    }
    uint8_t *bits = raw_calloc((size_t)(s->length + 7) / 8 + 1, 1);
    if (bits == NULL) {
        *ok = false;
        PyErr_NoMemory();
        return NULL;
    }
    for (int64_t i = 0; i < s->length; i++) {
        const unsigned valid = !is_null_at(s, nat, i);
        bits[i >> 3] = (uint8_t)(bits[i >> 3] | (valid << (i & 7)));
    }
    return bits;
}

static struct holder *numbers(struct gar_state *state, const struct source *s, const char *format)
{
    int64_t nulls = 0;
    bool ok = true;
    void *validity = validity_of(s, false, &nulls, &ok);
    if (!ok) {
        return NULL;
    }
    return is_packed(s) ? share_source(state, s, validity, nulls, format)
                        : copy_numbers(s, validity, nulls, format);
}

static struct holder *bools(const struct source *s)
{
    struct built_array parts = {.length = s->length};
    bool ok = true;
    parts.validity = validity_of(s, false, &parts.null_count, &ok);
    uint8_t *bits = ok ? raw_calloc((size_t)(s->length + 7) / 8 + 1, 1) : NULL;
    if (bits == NULL) {
        free_parts(&parts);
        PyErr_NoMemory();
        return NULL;
    }
    for (int64_t i = 0; i < s->length; i++) {
        const unsigned value = s->data[i * s->stride_bytes] != 0;
        bits[i >> 3] = (uint8_t)(bits[i >> 3] | (value << (i & 7)));
    }
    parts.values = bits;
    return finish_array(&parts, "b");
}

/* IEEE binary16 to binary32 bits. */
static uint32_t widen_half(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t exponent = (half >> 10) & 0x1fu;
    uint32_t mantissa = half & 0x3ffu;
    if (exponent == 0x1f) {
        return sign | 0x7f800000u | (mantissa << 13);
    }
    if (exponent != 0) {
        return sign | ((exponent + 112u) << 23) | (mantissa << 13);
    }
    if (mantissa == 0) {
        return sign;
    }
    uint32_t shift = 0;
    for (; (mantissa & 0x400u) == 0; mantissa <<= 1) {
        shift++;
    }
    return sign | ((113u - shift) << 23) | ((mantissa & 0x3ffu) << 13);
}

/* float16 becomes float32. */
static struct holder *halves(const struct source *s)
{
    struct built_array parts = {.length = s->length};
    bool ok = true;
    parts.validity = validity_of(s, false, &parts.null_count, &ok);
    uint16_t *packed = ok ? packed_copy(s) : NULL;
    uint32_t *wide = packed != NULL ? raw_calloc((size_t)s->length, sizeof *wide) : NULL;
    if (wide == NULL) {
        raw_free(packed);
        free_parts(&parts);
        PyErr_NoMemory();
        return NULL;
    }
    for (int64_t i = 0; i < s->length; i++) {
        wide[i] = widen_half(packed[i]);
    }
    raw_free(packed);
    parts.values = wide;
    return finish_array(&parts, "f");
}

/* ---- datetime64 and timedelta64 ----------------------------------------------------------------------------------------- */

/* How a unit of numpy is stored: items times factor, or items divided by divisor where that leaves nothing. */
struct stored_unit {
    const char *unit;
    char letter; /* of the Arrow unit, D for days */
    int64_t factor;
    int64_t divisor;
};

/* Items in the stored unit, as int32 days or int64; checked. Moves validity. */
static struct holder *scaled(struct gar_state *state, const struct source *s, void *validity,
                             int64_t nulls, const struct stored_unit *unit, bool as_days,
                             const char *format)
{
    struct built_array parts = {.validity = validity, .null_count = nulls, .length = s->length};
    parts.values = raw_calloc((size_t)s->length + 2, as_days ? 4 : 8);
    bool ok = parts.values != NULL;
    if (!ok) {
        PyErr_NoMemory();
    }
    for (int64_t i = 0; ok && i < s->length; i++) {
        int64_t v = tick_at(s, i);
        if (is_null_at(s, true, i)) {
            continue;
        }
        ok = !__builtin_mul_overflow(v, s->unit_count, &v) &&
             !__builtin_mul_overflow(v, unit->factor, &v);
        if (ok && v % unit->divisor != 0) {
            raise_text(state, GAR_ERR_VALUE, "the value at row %lld is finer than nanoseconds",
                       (long long)i);
            ok = false;
            break;
        }
        v /= unit->divisor;
        ok = ok && (!as_days || (v >= INT32_MIN && v <= INT32_MAX));
        if (!ok) {
            raise_text(state, GAR_ERR_OVERFLOW, "the %s at row %lld is out of range",
                       s->kind == 'M' ? "datetime64" : "timedelta64", (long long)i);
        } else if (as_days) {
            ((int32_t *)parts.values)[i] = (int32_t)v;
        } else {
            ((int64_t *)parts.values)[i] = v;
        }
    }
    if (!ok) {
        free_parts(&parts);
        return NULL;
    }
    return finish_array(&parts, format);
}

static struct holder *from_interface(struct gar_state *state, PyObject *obj, PyObject *dict,
                                     uint8_t *mask);

/* datetime64 of years and months: numpy knows the days. */
static struct holder *by_days(struct gar_state *state, PyObject *obj, const struct source *s)
{
    PyObject *days = PyObject_CallMethod(obj, "astype", "s", "datetime64[D]");
    PyObject *dict = days != NULL ? PyObject_GetAttrString(days, "__array_interface__") : NULL;
    PyObject *type =
        dict != NULL && PyDict_Check(dict) ? PyDict_GetItemString(dict, "typestr") : NULL;
    struct holder *holder = NULL;
    if (type != NULL && PyUnicode_Check(type) &&
        PyUnicode_CompareWithASCIIString(type, "<M8[D]") == 0) {
        holder = from_interface(state, days, dict, s->mask);
    } else if (PyErr_Occurred() == NULL) {
        raise_text(state, GAR_ERR_TYPE, "astype() did not give an array of days");
    }
    Py_XDECREF(dict);
    Py_XDECREF(days);
    return holder;
}

/* An array of times without unit holds nothing but NaT. */
static struct holder *all_null(const struct source *s)
{
    struct built_array parts = {.length = s->length, .null_count = s->length};
    return finish_array(&parts, "n");
}

static struct holder *times(struct gar_state *state, const struct source *s,
                            const struct stored_unit *unit)
{
    const bool is_delta = s->kind == 'm';
    const bool as_days = unit->letter == 'D' && !is_delta;
    struct stored_unit own = *unit;
    own.factor *= unit->letter == 'D' && is_delta ? 86400 : 1;
    int64_t nulls = 0;
    bool ok = true;
    void *validity = validity_of(s, true, &nulls, &ok);
    if (!ok) {
        return NULL;
    }
    char format[8];
    const char letter = unit->letter == 'D' ? 's' : unit->letter;
    (void)snprintf(format, sizeof format, as_days ? "tdD" : is_delta ? "tD%c" : "ts%c:", letter);
    if (as_days || own.factor != 1 || own.divisor != 1 || s->unit_count != 1) {
        return scaled(state, s, validity, nulls, &own, as_days, format);
    }
    return is_packed(s) ? share_source(state, s, validity, nulls, format)
                        : copy_numbers(s, validity, nulls, format);
}

static struct holder *datetimes(struct gar_state *state, PyObject *obj, const struct source *s)
{
    static const struct stored_unit units[] = {
        {"ns", 'n', 1, 1},    {"us", 'u', 1, 1},       {"ms", 'm', 1, 1},         {"s", 's', 1, 1},
        {"m", 's', 60, 1},    {"h", 's', 3600, 1},     {"D", 'D', 1, 1},          {"W", 'D', 7, 1},
        {"ps", 'n', 1, 1000}, {"fs", 'n', 1, 1000000}, {"as", 'n', 1, 1000000000}};
    if (s->item_bytes != 8) {
        raise_text(state, GAR_ERR_TYPE, "a datetime64 or timedelta64 of %lld bytes",
                   (long long)s->item_bytes);
        return NULL;
    }
    for (size_t k = 0; k < sizeof units / sizeof units[0]; k++) {
        if (strcmp(units[k].unit, s->unit) == 0) {
            return times(state, s, &units[k]);
        }
    }
    if (s->kind == 'M' && (strcmp(s->unit, "Y") == 0 || strcmp(s->unit, "M") == 0)) {
        return by_days(state, obj, s);
    }
    int64_t nulls = 0;
    bool ok = true;
    raw_free(validity_of(s, true, &nulls, &ok));
    if (!ok) {
        return NULL;
    }
    if (s->unit[0] == '\0' && nulls == s->length) {
        return all_null(s);
    }
    raise_text(state, GAR_ERR_UNSUPPORTED,
               s->kind == 'm' && s->unit[0] != '\0'
                   ? "a timedelta64 of unit '%s' has no fixed length; convert to days"
                   : "numpy unit '%s' is not supported; convert to ns, us, ms, s or D",
               s->unit[0] != '\0' ? s->unit : "generic");
    return NULL;
}

/* ---- texts and objects --------------------------------------------------------------------------------------------------- */

/* What cannot be shared or packed goes through a list of Python objects. */
static struct holder *by_list(struct gar_state *state, PyObject *obj)
{
    PyObject *list = PyObject_CallMethod(obj, "tolist", NULL);
    if (list == NULL || !PyList_Check(list)) {
        Py_XDECREF(list);
        if (PyErr_Occurred() == NULL) {
            raise_text(state, GAR_ERR_TYPE, "tolist() did not return a list");
        }
        return NULL;
    }
    struct holder *holder = column_from_sequence(state, list);
    Py_DECREF(list);
    return holder;
}

static struct holder *empty_texts(const char *format)
{
    struct built_array parts = {.is_text = true};
    return finish_array(&parts, format);
}

static struct holder *convert(struct gar_state *state, PyObject *obj, const struct source *s)
{
    static const char *const signed_formats[] = {[1] = "c", [2] = "s", [4] = "i", [8] = "l"};
    static const char *const unsigned_formats[] = {[1] = "C", [2] = "S", [4] = "I", [8] = "L"};
    static const char *const float_formats[] = {[4] = "f", [8] = "g"};
    const int64_t w = s->item_bytes;
    const bool is_int_width = w == 1 || w == 2 || w == 4 || w == 8;
    switch (s->kind) {
    case 'b': return bools(s);
    case 'i':
        if (is_int_width) {
            return numbers(state, s, signed_formats[w]);
        }
        break;
    case 'u':
        if (is_int_width) {
            return numbers(state, s, unsigned_formats[w]);
        }
        break;
    case 'f':
        if (w == 2) {
            return halves(s);
        }
        if (w == 4 || w == 8) {
            return numbers(state, s, float_formats[w]);
        }
        break;
    case 'M':
    case 'm': return datetimes(state, obj, s);
    case 'U':
    case 'S':
    case 'T':
        return s->length > 0 ? by_list(state, obj) : empty_texts(s->kind == 'S' ? "vz" : "vu");
    case 'O': return by_list(state, obj);
    case 'V':
        raise_text(state, GAR_ERR_UNSUPPORTED,
                   "a structured numpy array is no column; give each of its fields as one");
        return NULL;
    default: break;
    }
    raise_text(state, GAR_ERR_UNSUPPORTED,
               "numpy values of kind '%c' and %lld bytes are not supported", s->kind, (long long)w);
    return NULL;
}

/* ---- reading descriptions ------------------------------------------------------------------------------------------------ */

/* "<i8", "|b1", "<M8[ns]", "<m8[25s]" */
static bool read_type(const char *text, struct source *s)
{
    char order = text[0];
    char count[12] = "";
    int bytes = 0;
    if (order == '\0' ||
        sscanf(text + 1, "%c%d", &s->kind, &bytes) < 1) { /* "|O" may come without a size */
        return false;
    }
    s->item_bytes = bytes;
    s->swapped = order == '>' && bytes > 1;
    s->unit_count = 1;
    const char *bracket = strchr(text, '[');
    if (bracket != NULL) {
        (void)sscanf(bracket + 1, "%11[0-9]", count);
        (void)sscanf(bracket + 1 + strlen(count), "%7[^]]", s->unit);
        if (count[0] != '\0') {
            (void)sscanf(count, "%lld", (long long *)&s->unit_count);
        }
    }
    return true;
}

static int64_t item_as_int(PyObject *tuple, Py_ssize_t i)
{
    PyObject *item = PyTuple_GetItem(tuple, i);
    return item != NULL ? PyLong_AsLongLong(item) : -1;
}

static bool read_interface(struct gar_state *state, PyObject *obj, PyObject *dict, struct source *s)
{
    PyObject *type = PyDict_GetItemString(dict, "typestr");
    PyObject *shape = PyDict_GetItemString(dict, "shape");
    PyObject *data = PyDict_GetItemString(dict, "data");
    PyObject *strides = PyDict_GetItemString(dict, "strides");
    const char *text =
        type != NULL && PyUnicode_Check(type) ? PyUnicode_AsUTF8AndSize(type, NULL) : NULL;
    if (text == NULL || shape == NULL || !PyTuple_Check(shape) || data == NULL ||
        !PyTuple_Check(data)) {
        raise_text(state, GAR_ERR_TYPE, "an __array_interface__ without typestr, shape or data");
        return false;
    }
    if (PyTuple_Size(shape) != 1) {
        raise_text(state, GAR_ERR_TYPE, "a column needs one dimension, the array has %d",
                   (int)PyTuple_Size(shape));
        return false;
    }
    if (!read_type(text, s)) {
        raise_text(state, GAR_ERR_UNSUPPORTED, "numpy type '%s' is not supported", text);
        return false;
    }
    if (s->item_bytes <= 0 && s->kind != 'O' && s->kind != 'U' && s->kind != 'S') {
        raise_text(state, GAR_ERR_TYPE, "numpy type '%s' has no size", text);
        return false;
    }
    s->owner = obj;
    s->length = item_as_int(shape, 0);
    s->data = PyLong_AsVoidPtr(PyTuple_GetItem(data, 0));
    s->stride_bytes = strides != NULL && PyTuple_Check(strides) && PyTuple_Size(strides) == 1
                          ? item_as_int(strides, 0)
                          : s->item_bytes;
    if (PyErr_Occurred() != NULL) {
        return false;
    }
    if (s->length < 0 || (s->length > 0 && s->data == NULL)) {
        raise_text(state, GAR_ERR_VALUE, "an __array_interface__ of %lld items without data",
                   (long long)s->length);
        return false;
    }
    return true;
}

/* A Py_buffer kept by a capsule, so that one Python object owns it. */
static void free_buffer_capsule(PyObject *capsule)
{
    Py_buffer *view = PyCapsule_GetPointer(capsule, "gar_buffer");
    if (view != NULL) {
        PyBuffer_Release(view);
        PyMem_Free(view);
    }
}

static PyObject *hold_buffer(PyObject *obj, Py_buffer **out)
{
    Py_buffer *view = PyMem_Calloc(1, sizeof *view);
    if (view == NULL || PyObject_GetBuffer(obj, view, PyBUF_STRIDES | PyBUF_FORMAT) < 0) {
        PyMem_Free(view);
        return NULL;
    }
    PyObject *capsule = PyCapsule_New(view, "gar_buffer", free_buffer_capsule);
    if (capsule == NULL) {
        PyBuffer_Release(view);
        PyMem_Free(view);
    }
    *out = view;
    return capsule;
}

/* struct letters to numpy's. */
static bool read_buffer_format(const char *format, struct source *s)
{
    const char *f = format != NULL ? format : "B";
    if (*f == '@' || *f == '=' || *f == '<') {
        f++;
    }
    if (f[0] == '\0' || f[1] != '\0') {
        return false;
    }
    if (strchr("bhilqn", f[0]) != NULL) {
        s->kind = 'i';
    } else if (strchr("BHILQN", f[0]) != NULL) {
        s->kind = 'u';
    } else if (strchr("efd", f[0]) != NULL) {
        s->kind = 'f';
    } else if (f[0] == '?') {
        s->kind = 'b';
    } else {
        return false;
    }
    return true;
}

static struct holder *from_plain_buffer(struct gar_state *state, PyObject *obj)
{
    Py_buffer *view = NULL;
    PyObject *owner = hold_buffer(obj, &view);
    if (owner == NULL) {
        if (PyErr_Occurred() == NULL) {
            PyErr_NoMemory();
        }
        return NULL;
    }
    struct source s = {.owner = owner, .unit_count = 1};
    struct holder *holder = NULL;
    if (view->ndim != 1 || !read_buffer_format(view->format, &s)) {
        raise_text(state, GAR_ERR_UNSUPPORTED,
                   "a buffer of %d dimensions and format '%s' is no column", view->ndim,
                   view->format != NULL ? view->format : "B");
    } else {
        s.data = view->buf;
        s.item_bytes = view->itemsize;
        s.length = view->shape[0];
        s.stride_bytes = view->strides != NULL ? view->strides[0] : view->itemsize;
        holder = convert(state, obj, &s);
    }
    Py_DECREF(owner);
    return holder;
}

/* An array by its __array_interface__; the mask may be NULL and stays the caller's. */
static struct holder *from_interface(struct gar_state *state, PyObject *obj, PyObject *dict,
                                     uint8_t *mask)
{
    struct source s = {.mask = mask};
    return read_interface(state, obj, dict, &s) ? convert(state, obj, &s) : NULL;
}

/* One byte for each item of a mask of numpy's; raw_malloc. NULL with an exception. */
static uint8_t *read_mask(struct gar_state *state, PyObject *mask, int64_t length)
{
    struct source s = {0};
    PyObject *dict = PyObject_GetAttrString(mask, "__array_interface__");
    uint8_t *bytes = NULL;
    if (dict != NULL && PyDict_Check(dict) && read_interface(state, mask, dict, &s)) {
        if (s.kind != 'b' || s.length != length) {
            raise_text(state, GAR_ERR_TYPE, "a mask needs one boolean for each value");
        } else {
            bytes = raw_malloc((size_t)length);
            if (bytes == NULL) {
                PyErr_NoMemory();
            }
        }
    }
    for (int64_t i = 0; bytes != NULL && i < length; i++) {
        bytes[i] = (uint8_t)s.data[i * s.stride_bytes];
    }
    Py_XDECREF(dict);
    return bytes;
}

/* A masked array of numpy. Texts and objects go by their list, which has None for masked values. */
static struct holder *from_masked(struct gar_state *state, PyObject *obj)
{
    PyObject *data = PyObject_GetAttrString(obj, "data");
    PyObject *numpy = data != NULL ? PyImport_ImportModule("numpy.ma") : NULL;
    PyObject *mask = numpy != NULL ? PyObject_CallMethod(numpy, "getmaskarray", "O", obj) : NULL;
    PyObject *dict = mask != NULL ? PyObject_GetAttrString(data, "__array_interface__") : NULL;
    struct source s = {0};
    struct holder *holder = NULL;
    if (dict != NULL && PyDict_Check(dict) && read_interface(state, data, dict, &s)) {
        uint8_t *bytes = read_mask(state, mask, s.length);
        if (bytes != NULL && s.length > 0 && strchr("USTO", s.kind) != NULL) {
            holder = by_list(state, obj);
        } else if (bytes != NULL) {
            holder = from_interface(state, data, dict, bytes);
        }
        raw_free(bytes);
    }
    Py_XDECREF(dict);
    Py_XDECREF(mask);
    Py_XDECREF(numpy);
    Py_XDECREF(data);
    return holder;
}

char numpy_time_kind(PyObject *value)
{
    PyObject *dtype = PyObject_GetAttrString(value, "dtype");
    PyObject *kind = dtype != NULL ? PyObject_GetAttrString(dtype, "kind") : NULL;
    const char *text =
        kind != NULL && PyUnicode_Check(kind) ? PyUnicode_AsUTF8AndSize(kind, NULL) : NULL;
    const char letter = text != NULL && (text[0] == 'M' || text[0] == 'm') ? text[0] : '\0';
    Py_XDECREF(kind);
    Py_XDECREF(dtype);
    PyErr_Clear();
    return letter;
}

struct holder *column_from_buffer(struct gar_state *state, PyObject *obj, bool *handled)
{
    *handled = true;
    if (PyObject_HasAttrString(obj, "__array_interface__") && PyObject_HasAttrString(obj, "mask") &&
        PyObject_HasAttrString(obj, "filled")) {
        return from_masked(state, obj);
    }
    PyObject *dict = PyObject_GetAttrString(obj, "__array_interface__");
    if (dict != NULL && PyDict_Check(dict)) {
        struct holder *holder = from_interface(state, obj, dict, NULL);
        Py_DECREF(dict);
        return holder;
    }
    Py_XDECREF(dict);
    PyErr_Clear();
    if (PyObject_CheckBuffer(obj) && !PyObject_HasAttrString(obj, "__arrow_c_array__")) {
        return from_plain_buffer(state, obj);
    }
    *handled = false;
    return NULL;
}
