/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of Python objects to Arrow: one pass finds the type that holds every value, one fills the buffers.
 *
 * int -> int64 (uint64 beyond), float -> float64 (ints among them too), bool, str, bytes, date, datetime -> timestamp[us],
 * time, timedelta -> duration[us], Decimal -> decimal, None -> null. A Timestamp or Timedelta of pandas with nanoseconds
 * makes the column's unit ns. NaN is a value among numbers and null among values of any other kind, where only a missing
 * value can be meant. numpy scalars are Python's own values, but times keep their unit. Anything else is an error naming
 * the row. */
#include <stdio.h>
#include <string.h>

#include "gar_py.h"

enum kind {
    KIND_NONE,
    KIND_BOOL,
    KIND_INT,
    KIND_FLOAT,
    KIND_STR,
    KIND_BYTES,
    KIND_DATE,
    KIND_DATETIME,
    KIND_TIME,
    KIND_TIMEDELTA,
    KIND_DECIMAL,
    KIND_SCALAR, /* something with item(): a numpy scalar */
    KIND_OTHER,
};

static const char *const kind_names[] = {"None",    "bool",   "int",      "float", "str",
                                         "bytes",   "date",   "datetime", "time",  "timedelta",
                                         "Decimal", "scalar", "object"};

/* ---- parts ----------------------------------------------------------------------------------------------------------- */

void free_parts(struct built_array *parts)
{
    for (int64_t i = 0; i < parts->data_count; i++) {
        raw_free(parts->data[i]);
    }
    raw_free(parts->data);
    raw_free(parts->data_bytes);
    raw_free(parts->values);
    raw_free(parts->validity);
    memset(parts, 0, sizeof *parts);
}

struct finished {
    struct built_array parts;
    const void *buffers[];
};

static void release_finished(struct ArrowArray *array)
{
    struct finished *own = array->private_data;
    free_parts(&own->parts);
    raw_free(own);
    array->release = NULL;
}

struct holder *finish_array(struct built_array *parts, const char *format)
{
    const int64_t count = strcmp(format, "n") == 0 ? 0 : parts->is_text ? 3 + parts->data_count : 2;
    struct finished *own =
        raw_calloc(1, sizeof *own + (size_t)(count + 1) * sizeof own->buffers[0]);
    struct ArrowSchema schema;
    const struct ArrowSchema from = {.format = format, .name = "", .flags = ARROW_FLAG_NULLABLE};
    if (own == NULL || !copy_schema(&from, NULL, &schema)) {
        raw_free(own);
        free_parts(parts);
        PyErr_NoMemory();
        return NULL;
    }
    own->parts = *parts;
    memset(parts, 0, sizeof *parts);
    struct ArrowArray array = {.length = own->parts.length,
                               .null_count = own->parts.null_count,
                               .n_buffers = count,
                               .buffers = own->buffers,
                               .release = release_finished,
                               .private_data = own};
    if (count > 0) {
        own->buffers[0] = own->parts.validity;
        own->buffers[1] = own->parts.values;
    }
    if (own->parts.is_text) {
        for (int64_t i = 0; i < own->parts.data_count; i++) {
            own->buffers[2 + i] = own->parts.data[i];
        }
        own->buffers[2 + own->parts.data_count] = own->parts.data_bytes;
    }
    return holder_new(&schema, &array);
}

/* ---- kinds ------------------------------------------------------------------------------------------------------------ */

/* Classes of datetime and decimal that exist in this process; a value of one cannot exist before its module. */
static bool load_classes(struct gar_state *state)
{
    PyObject *modules = PyImport_GetModuleDict();
    if (state->known.date == NULL && PyDict_GetItemString(modules, "datetime") != NULL &&
        !load_datetime(state)) {
        return false;
    }
    return state->known.decimal != NULL || PyDict_GetItemString(modules, "decimal") == NULL ||
           load_decimal(state);
}

static bool is_a(PyObject *value, PyObject *class)
{
    return class != NULL && PyObject_TypeCheck(value, (PyTypeObject *)(void *)class) != 0;
}

/* pandas.NaT and pandas.NA. */
static bool is_pandas_null(PyObject *value)
{
    PyObject *name = PyType_GetName(Py_TYPE(value));
    const bool found = name != NULL && (PyUnicode_CompareWithASCIIString(name, "NaTType") == 0 ||
                                        PyUnicode_CompareWithASCIIString(name, "NAType") == 0);
    Py_XDECREF(name);
    return found;
}

static enum kind rare_kind(struct gar_state *state, PyObject *value)
{
    const struct known_objects *known = &state->known;
    if (is_pandas_null(value)) {
        return KIND_NONE;
    }
    if (is_a(value, known->datetime)) {
        return KIND_DATETIME;
    }
    if (is_a(value, known->date)) {
        return KIND_DATE;
    }
    if (is_a(value, known->time)) {
        return KIND_TIME;
    }
    if (is_a(value, known->timedelta)) {
        return KIND_TIMEDELTA;
    }
    if (is_a(value, known->decimal)) {
        return KIND_DECIMAL;
    }
    if (PyLong_Check(value)) {
        return PyBool_Check(value) ? KIND_BOOL : KIND_INT;
    }
    if (PyFloat_Check(value)) {
        return KIND_FLOAT;
    }
    if (PyUnicode_Check(value)) {
        return KIND_STR;
    }
    if (PyBytes_Check(value) || PyByteArray_Check(value)) {
        return KIND_BYTES;
    }
    if (PyObject_HasAttrString(value, "dtype") && PyObject_HasAttrString(value, "item") &&
        PyObject_HasAttrString(value, "ndim")) {
        return KIND_SCALAR;
    }
    return KIND_OTHER;
}

static enum kind kind_of(struct gar_state *state, PyObject *value)
{
    if (value == Py_None) {
        return KIND_NONE;
    }
    if (PyUnicode_CheckExact(value)) {
        return KIND_STR;
    }
    if (PyLong_CheckExact(value)) {
        return KIND_INT;
    }
    if (PyFloat_CheckExact(value)) {
        return KIND_FLOAT;
    }
    return PyBool_Check(value) ? KIND_BOOL : rare_kind(state, value);
}

/* The kind that holds both, or KIND_OTHER. */
static enum kind join_kinds(enum kind a, enum kind b)
{
    if (a == b || b == KIND_NONE) {
        return a;
    }
    if (a == KIND_NONE) {
        return b;
    }
    if ((a == KIND_INT && b == KIND_FLOAT) || (a == KIND_FLOAT && b == KIND_INT)) {
        return KIND_FLOAT;
    }
    if ((a == KIND_INT && b == KIND_DECIMAL) || (a == KIND_DECIMAL && b == KIND_INT)) {
        return KIND_DECIMAL;
    }
    return KIND_OTHER;
}

static PyObject *item_at(PyObject *sequence, bool is_list, Py_ssize_t i)
{
    return is_list ? PyList_GetItem(sequence, i) : PyTuple_GetItem(sequence, i); /* borrowed */
}

/* ---- filling ---------------------------------------------------------------------------------------------------------- */

struct fill {
    struct gar_state *state;
    PyObject *items;
    bool is_list;
    int64_t length;
    struct built_array parts;
    char format[160];
    int64_t data_room; /* of the newest text block */
    /* What the values decide beside their kind. */
    bool is_unsigned; /* ints beyond int64 */
    bool nan_is_null; /* NaN among values that are no floats */
    bool is_nano;     /* some datetime or timedelta has nanoseconds */
    int32_t precision;
    int32_t scale;
    PyObject *zone; /* borrowed: tzinfo of the first aware datetime */
};

static bool out_of_memory(void)
{
    PyErr_NoMemory();
    return false;
}

static bool is_nan(PyObject *value)
{
    return PyFloat_Check(value) && PyFloat_AsDouble(value) != PyFloat_AsDouble(value);
}

static bool is_missing(const struct fill *f, PyObject *value)
{
    return value == Py_None || (f->nan_is_null && is_nan(value));
}

static bool set_null(struct fill *f, int64_t i)
{
    if (f->parts.validity == NULL) {
        const size_t bytes = (size_t)(f->length + 7) / 8;
        f->parts.validity = raw_malloc(bytes + 1);
        if (f->parts.validity == NULL) {
            return out_of_memory();
        }
        memset(f->parts.validity, 0xff, bytes);
    }
    uint8_t *bits = f->parts.validity;
    bits[i >> 3] = (uint8_t)(bits[i >> 3] & ~(1u << (i & 7)));
    f->parts.null_count++;
    return true;
}

/* One value into a zeroed slot. */
typedef bool (*put_fn)(struct fill *f, PyObject *value, int64_t i);

static bool put_bool(struct fill *f, PyObject *value, int64_t i)
{
    if (value == Py_True) {
        ((uint8_t *)f->parts.values)[i >> 3] =
            (uint8_t)(((uint8_t *)f->parts.values)[i >> 3] | (1u << (i & 7)));
    }
    return true;
}

static bool put_int(struct fill *f, PyObject *value, int64_t i)
{
    if (f->is_unsigned) {
        const unsigned long long v = PyLong_AsUnsignedLongLong(value);
        if (v == (unsigned long long)-1 && PyErr_Occurred() != NULL) {
            raise_text(
                f->state, GAR_ERR_OVERFLOW,
                "the integers fit neither int64 nor uint64 (row %lld); use float or Decimal values",
                (long long)i);
            return false;
        }
        ((uint64_t *)f->parts.values)[i] = v;
        return true;
    }
    const long long v = PyLong_AsLongLong(value);
    ((int64_t *)f->parts.values)[i] = v;
    return v != -1 || PyErr_Occurred() == NULL;
}

/* Up to here every integer is a float64. */
#define EXACT_INT_MAX 9007199254740992.0

static bool put_float(struct fill *f, PyObject *value, int64_t i)
{
    const double v = PyFloat_AsDouble(value);
    ((double *)f->parts.values)[i] = v;
    if (v == -1.0 && PyErr_Occurred() != NULL) {
        return false;
    }
    if (PyLong_Check(value) && (v >= EXACT_INT_MAX || v <= -EXACT_INT_MAX)) {
        PyObject *back = PyLong_FromDouble(v);
        const int same = back != NULL ? PyObject_RichCompareBool(back, value, Py_EQ) : -1;
        Py_XDECREF(back);
        if (same == 0) {
            raise_text(f->state, GAR_ERR_OVERFLOW,
                       "the integer at row %lld stands among floats and is not exact as float64; "
                       "give a float or a Decimal",
                       (long long)i);
        }
        return same > 0;
    }
    return true;
}

#define BLOCK_BYTES_FIRST INT64_C(4096)
#define BLOCK_BYTES_MAX   (INT64_C(16) << 20)
#define TEXT_BYTES_MAX    INT64_C(0x7fffffff)

/* Room for `bytes` more in the newest block. */
static bool ensure_block(struct fill *f, int64_t bytes)
{
    struct built_array *p = &f->parts;
    if (p->data_count > 0 && p->data_bytes[p->data_count - 1] + bytes <= f->data_room) {
        return true;
    }
    if ((p->data_count & (p->data_count - 1)) == 0) { /* the arrays double */
        const size_t room = p->data_count == 0 ? 1 : 2 * (size_t)p->data_count;
        void **data = raw_realloc(p->data, room * sizeof *data);
        p->data = data != NULL ? data : p->data;
        int64_t *sizes = raw_realloc(p->data_bytes, room * sizeof *sizes);
        p->data_bytes = sizes != NULL ? sizes : p->data_bytes;
        if (data == NULL || sizes == NULL) {
            return out_of_memory();
        }
    }
    int64_t room = p->data_count == 0 ? BLOCK_BYTES_FIRST : 2 * f->data_room;
    room = room > BLOCK_BYTES_MAX ? BLOCK_BYTES_MAX : room;
    room = room < bytes ? bytes : room;
    void *block = raw_malloc((size_t)room);
    if (block == NULL) {
        return out_of_memory();
    }
    p->data[p->data_count] = block;
    p->data_bytes[p->data_count] = 0;
    p->data_count++;
    f->data_room = room;
    return true;
}

static bool put_text(struct fill *f, const char *text, Py_ssize_t size, int64_t i)
{
    uint8_t *view = (uint8_t *)f->parts.values + i * 16;
    const int32_t length = (int32_t)size;
    if (size > TEXT_BYTES_MAX) {
        raise_text(f->state, GAR_ERR_OVERFLOW, "the value at row %lld has more than 2^31 - 1 bytes",
                   (long long)i);
        return false;
    }
    memcpy(view, &length, sizeof length);
    if (size <= 12) {
        memcpy(view + 4, text, (size_t)size);
        return true;
    }
    if (!ensure_block(f, size)) {
        return false;
    }
    struct built_array *p = &f->parts;
    const int32_t block = (int32_t)(p->data_count - 1);
    const int32_t offset = (int32_t)p->data_bytes[block];
    memcpy((char *)p->data[block] + offset, text, (size_t)size);
    p->data_bytes[block] += size;
    memcpy(view + 4, text, 4);
    memcpy(view + 8, &block, sizeof block);
    memcpy(view + 12, &offset, sizeof offset);
    return true;
}

static bool put_str(struct fill *f, PyObject *value, int64_t i)
{
    Py_ssize_t size = 0;
    const char *text = PyUnicode_AsUTF8AndSize(value, &size);
    if (text == NULL) {
        raise_text(f->state, GAR_ERR_VALUE,
                   "the text at row %lld has a lone surrogate and cannot be UTF-8", (long long)i);
        return false;
    }
    return put_text(f, text, size, i);
}

static bool put_bytes(struct fill *f, PyObject *value, int64_t i)
{
    char *bytes = NULL;
    Py_ssize_t size = 0;
    if (PyByteArray_Check(value)) {
        bytes = PyByteArray_AsString(value);
        size = PyByteArray_Size(value);
    } else if (PyBytes_AsStringAndSize(value, &bytes, &size) < 0) {
        return false;
    }
    return put_text(f, bytes, size, i);
}

/* An integer attribute; false with an exception. */
static bool get_number(PyObject *value, const char *name, int64_t *out)
{
    PyObject *number = PyObject_GetAttrString(value, name);
    *out = number != NULL ? PyLong_AsLongLong(number) : -1;
    Py_XDECREF(number);
    return *out != -1 || PyErr_Occurred() == NULL;
}

#define EPOCH_ORDINAL 719163

static bool ordinal_of(PyObject *value, int64_t *days)
{
    PyObject *ordinal = PyObject_CallMethod(value, "toordinal", NULL);
    *days = ordinal != NULL ? PyLong_AsLongLong(ordinal) - EPOCH_ORDINAL : 0;
    Py_XDECREF(ordinal);
    return ordinal != NULL;
}

static bool put_date(struct fill *f, PyObject *value, int64_t i)
{
    int64_t days = 0;
    const bool ok = ordinal_of(value, &days);
    ((int32_t *)f->parts.values)[i] = (int32_t)days;
    return ok;
}

/* Microseconds since midnight of a time or datetime. */
static bool clock_of(PyObject *value, int64_t *micros)
{
    int64_t hour = 0;
    int64_t minute = 0;
    int64_t second = 0;
    int64_t fraction = 0;
    const bool ok = get_number(value, "hour", &hour) && get_number(value, "minute", &minute) &&
                    get_number(value, "second", &second) &&
                    get_number(value, "microsecond", &fraction);
    *micros = ((hour * 60 + minute) * 60 + second) * 1000000 + fraction;
    return ok;
}

static bool put_time(struct fill *f, PyObject *value, int64_t i)
{
    PyObject *zone = PyObject_GetAttrString(value, "tzinfo");
    const bool is_plain = zone == Py_None;
    if (zone != NULL && !is_plain) {
        raise_text(f->state, GAR_ERR_UNSUPPORTED,
                   "the time at row %lld has a time zone; a time of day has none here",
                   (long long)i);
    }
    Py_XDECREF(zone);
    if (!is_plain) {
        return false;
    }
    return clock_of(value, (int64_t *)f->parts.values + i);
}

/* A number that an object has under an interned name. */
static bool get_part(PyObject *value, PyObject *name, int64_t *out)
{
    PyObject *number = PyObject_GetAttr(value, name);
    *out = number != NULL ? PyLong_AsLongLong(number) : -1;
    Py_XDECREF(number);
    return *out != -1 || PyErr_Occurred() == NULL;
}

static bool micros_of_delta(struct gar_state *state, PyObject *value, int64_t row, int64_t *out)
{
    int64_t days = 0;
    int64_t seconds = 0;
    int64_t micros = 0;
    const bool ok = get_part(value, state->known.days, &days) &&
                    get_part(value, state->known.seconds, &seconds) &&
                    get_part(value, state->known.microseconds, &micros);
    /* timedelta allows 10^9 days: beyond int64 microseconds from 1.06 * 10^8 days on */
    if (ok && (__builtin_mul_overflow(days, INT64_C(86400000000), out) ||
               __builtin_add_overflow(*out, seconds * 1000000 + micros, out))) {
        return raise_text(state, GAR_ERR_OVERFLOW,
                          "the timedelta at row %lld is beyond 64-bit microseconds",
                          (long long)row) != NULL;
    }
    return ok;
}

/* Microseconds and the nanoseconds that pandas keeps beside them, in the column's unit. */
static bool put_ticks(struct fill *f, int64_t micros, PyObject *value, const char *name, int64_t i)
{
    int64_t *out = (int64_t *)f->parts.values + i;
    int64_t nanos = 0;
    *out = micros;
    if (!f->is_nano) {
        return true;
    }
    if (PyObject_HasAttrString(value, name) != 0 && !get_number(value, name, &nanos)) {
        return false;
    }
    if (__builtin_mul_overflow(micros, 1000, out) || __builtin_add_overflow(*out, nanos, out)) {
        raise_text(f->state, GAR_ERR_OVERFLOW,
                   "the value at row %lld is beyond 64-bit nanoseconds, which others in the column "
                   "need",
                   (long long)i);
        return false;
    }
    return true;
}

static bool put_timedelta(struct fill *f, PyObject *value, int64_t i)
{
    int64_t micros = 0;
    return micros_of_delta(f->state, value, i, &micros) &&
           put_ticks(f, micros, value, "nanoseconds", i);
}

/* Python's own subtraction takes the offset of an aware datetime into account. */
static bool put_datetime(struct fill *f, PyObject *value, int64_t i)
{
    const struct known_objects *known = &f->state->known;
    PyObject *since = PyNumber_Subtract(value, f->zone != NULL ? known->epoch_utc : known->epoch);
    if (since == NULL) {
        if (PyErr_ExceptionMatches(PyExc_TypeError)) {
            raise_text(f->state, GAR_ERR_TYPE,
                       "datetimes with and without a time zone in one column (row %lld); give all "
                       "of them a zone or none",
                       (long long)i);
        }
        return false;
    }
    int64_t micros = 0;
    const bool ok = micros_of_delta(f->state, since, i, &micros);
    Py_DECREF(since);
    return ok && put_ticks(f, micros, value, "nanosecond", i);
}

/* ---- decimals --------------------------------------------------------------------------------------------------------- */

/* Fixed-point text of a Decimal or int; new reference. NULL with an exception. */
static PyObject *decimal_text(struct fill *f, PyObject *value, int64_t i)
{
    if (PyLong_Check(value)) {
        return PyObject_Str(value);
    }
    PyObject *finite = PyObject_CallMethod(value, "is_finite", NULL);
    const bool ok = finite == Py_True;
    Py_XDECREF(finite);
    if (!ok) {
        return raise_text(f->state, GAR_ERR_VALUE,
                          "the Decimal at row %lld is infinite or no number", (long long)i);
    }
    return PyObject_CallMethod(value, "__format__", "s", "f");
}

/* Digits before and after the point. */
static void count_digits(const char *text, int32_t *before, int32_t *after)
{
    *before = 0;
    *after = 0;
    bool in_fraction = false;
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '.') {
            in_fraction = true;
        } else if (*p >= '0' && *p <= '9') {
            if (in_fraction) {
                (*after)++;
            } else if (*before > 0 || *p != '0') {
                (*before)++;
            }
        }
    }
}

static bool measure_decimals(struct fill *f)
{
    int32_t most_before = 0;
    for (int64_t i = 0; i < f->length; i++) {
        PyObject *value = item_at(f->items, f->is_list, (Py_ssize_t)i);
        if (is_missing(f, value)) {
            continue;
        }
        PyObject *text = decimal_text(f, value, i);
        const char *utf8 = text != NULL ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
        if (utf8 == NULL) {
            Py_XDECREF(text);
            return false;
        }
        int32_t before = 0;
        int32_t after = 0;
        count_digits(utf8, &before, &after);
        Py_DECREF(text);
        most_before = before > most_before ? before : most_before;
        f->scale = after > f->scale ? after : f->scale;
        if (most_before + f->scale > 38) {
            raise_text(f->state, GAR_ERR_OVERFLOW,
                       "the Decimals need %d digits (row %lld); the limit is 38",
                       (int)(most_before + f->scale), (long long)i);
            return false;
        }
    }
    f->precision = most_before + f->scale > 0 ? most_before + f->scale : 1;
    return true;
}

static bool put_decimal(struct fill *f, PyObject *value, int64_t i)
{
    __extension__ typedef __int128 i128;
    PyObject *text = decimal_text(f, value, i);
    const char *utf8 = text != NULL ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    if (utf8 == NULL) {
        Py_XDECREF(text);
        return false;
    }
    i128 v = 0;
    int32_t after = 0;
    bool in_fraction = false;
    for (const char *p = utf8; *p != '\0'; p++) {
        if (*p == '.') {
            in_fraction = true;
        } else if (*p >= '0' && *p <= '9') {
            v = v * 10 + (*p - '0');
            after += in_fraction ? 1 : 0;
        }
    }
    for (; after < f->scale; after++) {
        v *= 10;
    }
    v = utf8[0] == '-' ? -v : v;
    memcpy((uint8_t *)f->parts.values + i * 16, &v, sizeof v);
    Py_DECREF(text);
    return true;
}

/* ---- putting it together ---------------------------------------------------------------------------------------------- */

static bool fill_all(struct fill *f, put_fn put)
{
    for (int64_t i = 0; i < f->length; i++) {
        PyObject *value = item_at(f->items, f->is_list, (Py_ssize_t)i);
        if (is_missing(f, value)) {
            if (!set_null(f, i)) {
                return false;
            }
        } else if (!put(f, value, i)) {
            return false;
        }
    }
    return true;
}

/* Is some int beyond int64? False with an exception is an error. */
static bool find_unsigned(struct fill *f)
{
    for (int64_t i = 0; i < f->length; i++) {
        PyObject *value = item_at(f->items, f->is_list, (Py_ssize_t)i);
        int overflow = 0;
        if (value == Py_None || !PyLong_Check(value)) {
            continue;
        }
        (void)PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow != 0) {
            f->is_unsigned = true;
            return true;
        }
    }
    return true;
}

/* The zone's name as Arrow writes it, or "UTC" when the datetimes name none or several. */
static bool find_zone(struct fill *f, char *name, size_t room)
{
    name[0] = '\0';
    for (int64_t i = 0; i < f->length; i++) {
        PyObject *value = item_at(f->items, f->is_list, (Py_ssize_t)i);
        if (kind_of(f->state, value) != KIND_DATETIME) {
            continue;
        }
        PyObject *zone = PyObject_GetAttrString(value, "tzinfo");
        if (zone == NULL) {
            return false;
        }
        Py_DECREF(zone); /* the datetime keeps it */
        if (zone == Py_None) {
            return true; /* naive; put_datetime sees to mixtures */
        }
        if (f->zone != NULL && f->zone != zone) {
            (void)snprintf(name, room, "UTC");
            return true;
        }
        if (f->zone == NULL) {
            f->zone = zone;
            PyObject *key = PyObject_GetAttrString(zone, "key"); /* zoneinfo */
            if (key == NULL) {
                PyErr_Clear();
                key = PyObject_GetAttrString(zone, "zone"); /* pytz */
            }
            if (key == NULL) {
                PyErr_Clear();
                key = PyObject_CallMethod(zone, "tzname", "O", value);
            }
            const char *text =
                key != NULL && PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, NULL) : NULL;
            if (text != NULL && strncmp(text, "UTC", 3) == 0 &&
                (text[3] == '+' || text[3] == '-')) {
                text += 3; /* timezone(timedelta(hours=2)) calls itself UTC+02:00 */
            }
            const bool usable =
                text != NULL && (strchr(text, '/') != NULL || text[0] == '+' || text[0] == '-');
            (void)snprintf(name, room, "%.*s", (int)room - 1, usable ? text : "UTC");
            Py_XDECREF(key);
            PyErr_Clear();
        }
    }
    return true;
}

static bool prepare_kind(struct fill *f, enum kind kind, int32_t *width, put_fn *put)
{
    char zone[128];
    static const struct {
        const char *format;
        int32_t width;
        put_fn put;
    } table[] = {
        [KIND_NONE] = {"n", 0, NULL},
        [KIND_BOOL] = {"b", 0, put_bool},
        [KIND_INT] = {"l", 8, put_int},
        [KIND_FLOAT] = {"g", 8, put_float},
        [KIND_STR] = {"vu", 16, put_str},
        [KIND_BYTES] = {"vz", 16, put_bytes},
        [KIND_DATE] = {"tdD", 4, put_date},
        [KIND_DATETIME] = {"tsu:", 8, put_datetime},
        [KIND_TIME] = {"ttu", 8, put_time},
        [KIND_TIMEDELTA] = {"tDu", 8, put_timedelta},
        [KIND_DECIMAL] = {"d:", 16, put_decimal},
    };
    *width = table[kind].width;
    *put = table[kind].put;
    (void)snprintf(f->format, sizeof f->format, "%s", table[kind].format);
    f->parts.is_text = kind == KIND_STR || kind == KIND_BYTES;
    if (kind == KIND_INT) {
        if (!find_unsigned(f)) {
            return false;
        }
        f->format[0] = f->is_unsigned ? 'L' : 'l';
    } else if (kind == KIND_DATETIME) {
        if (!find_zone(f, zone, sizeof zone)) {
            return false;
        }
        (void)snprintf(f->format, sizeof f->format, "ts%c:%s", f->is_nano ? 'n' : 'u', zone);
    } else if (kind == KIND_TIMEDELTA && f->is_nano) {
        f->format[2] = 'n';
    } else if (kind == KIND_DECIMAL) {
        if (!measure_decimals(f)) {
            return false;
        }
        (void)snprintf(f->format, sizeof f->format, "d:%d,%d", (int)f->precision, (int)f->scale);
    }
    return true;
}

static struct holder *fill_kind(struct fill *f, enum kind kind)
{
    int32_t width = 0;
    put_fn put = NULL;
    f->parts.length = f->length;
    if (!prepare_kind(f, kind, &width, &put)) {
        free_parts(&f->parts);
        return NULL;
    }
    if (put == NULL) {
        f->parts.null_count = f->length;
        return finish_array(&f->parts, f->format);
    }
    const size_t bytes =
        kind == KIND_BOOL ? (size_t)(f->length + 7) / 8 : (size_t)f->length * (size_t)width;
    f->parts.values = raw_calloc(bytes + 16, 1);
    bool ok = f->parts.values != NULL || out_of_memory();
    ok = ok && fill_all(f, put);
    if (!ok) {
        free_parts(&f->parts);
        return NULL;
    }
    return finish_array(&f->parts, f->format);
}

/* The same values with numpy scalars turned into Python's own and pandas nulls into None; new list. */
static PyObject *plain_items(struct gar_state *state, PyObject *items, bool is_list, int64_t length)
{
    PyObject *plain = PyList_New((Py_ssize_t)length);
    for (int64_t i = 0; plain != NULL && i < length; i++) {
        PyObject *value = item_at(items, is_list, (Py_ssize_t)i);
        const enum kind kind = kind_of(state, value);
        PyObject *own = kind == KIND_SCALAR ? PyObject_CallMethod(value, "item", NULL)
                                            : Py_NewRef(kind == KIND_NONE ? Py_None : value);
        if (own == NULL || PyList_SetItem(plain, (Py_ssize_t)i, own) < 0) {
            Py_CLEAR(plain);
        }
    }
    return plain;
}

static struct holder *refuse(struct gar_state *state, PyObject *value, enum kind so_far, int64_t i)
{
    PyObject *name = PyType_GetName(Py_TYPE(value));
    const char *text = name != NULL ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    if (PyDict_Check(value) || PyList_Check(value) || PyTuple_Check(value)) {
        raise_text(state, GAR_ERR_UNSUPPORTED, "nested values are not supported: %s at row %lld",
                   text != NULL ? text : "?", (long long)i);
    } else if (so_far == KIND_NONE || so_far == KIND_OTHER) {
        raise_text(state, GAR_ERR_TYPE, "values of %s are not supported (row %lld)",
                   text != NULL ? text : "?", (long long)i);
    } else {
        raise_text(state, GAR_ERR_TYPE, "%s at row %lld among values of %s; a column has one type",
                   text != NULL ? text : "?", (long long)i, kind_names[so_far]);
    }
    Py_XDECREF(name);
    return NULL;
}

/* What one pass over the values finds. */
struct survey {
    enum kind kind;
    bool has_scalars; /* numpy scalars, pandas nulls */
    bool has_nan;
    bool is_nano;
    char time_kind; /* of numpy's times: M, m or 0 */
    int64_t first_time;
};

/* pandas' Timestamp and Timedelta have nanoseconds; the plain classes have no such attribute. */
static bool has_nanos(PyObject *value, enum kind kind)
{
    int64_t nanos = 0;
    PyObject *own =
        PyObject_GetAttrString(value, kind == KIND_DATETIME ? "nanosecond" : "nanoseconds");
    if (own != NULL) {
        nanos = PyLong_AsLongLong(own);
        Py_DECREF(own);
    }
    PyErr_Clear();
    return nanos != 0;
}

static bool look_at(struct gar_state *state, PyObject *value, int64_t i, struct survey *s)
{
    const enum kind own = kind_of(state, value);
    if (own == KIND_SCALAR || (own == KIND_NONE && value != Py_None)) {
        const char time_kind = own == KIND_SCALAR ? numpy_time_kind(value) : '\0';
        if (time_kind != '\0' && s->time_kind == '\0') {
            s->first_time = i;
        }
        s->time_kind = time_kind != '\0' ? time_kind : s->time_kind;
        s->has_scalars = true;
        return true;
    }
    if (own == KIND_FLOAT && is_nan(value)) {
        s->has_nan = true;
        return true;
    }
    if ((own == KIND_DATETIME && Py_TYPE(value) != (PyTypeObject *)(void *)state->known.datetime) ||
        (own == KIND_TIMEDELTA &&
         Py_TYPE(value) != (PyTypeObject *)(void *)state->known.timedelta)) {
        s->is_nano = s->is_nano || has_nanos(value, own);
    }
    const enum kind both = own == KIND_OTHER ? KIND_OTHER : join_kinds(s->kind, own);
    if (both == KIND_OTHER) {
        (void)refuse(state, value, s->kind, i);
        return false;
    }
    s->kind = both;
    return true;
}

/* datetime64 and timedelta64 scalars of one unit: numpy makes an array of them. */
static struct holder *numpy_times(struct gar_state *state, PyObject *items, bool is_list,
                                  int64_t length, int64_t first)
{
    PyObject *dtype = PyObject_GetAttrString(item_at(items, is_list, (Py_ssize_t)first), "dtype");
    PyObject *list = dtype != NULL ? PyList_New((Py_ssize_t)length) : NULL;
    bool ok = list != NULL;
    for (int64_t i = 0; ok && i < length; i++) {
        PyObject *value = item_at(items, is_list, (Py_ssize_t)i);
        const bool is_null = kind_of(state, value) == KIND_NONE || is_nan(value);
        PyObject *own = is_null ? NULL : PyObject_GetAttrString(value, "dtype");
        const int same = is_null       ? 1
                         : own != NULL ? PyObject_RichCompareBool(own, dtype, Py_EQ)
                                       : 0;
        Py_XDECREF(own);
        if (same <= 0) {
            raise_text(state, GAR_ERR_TYPE,
                       "the value at row %lld is no numpy time of the same unit as that at row "
                       "%lld; make one numpy array of them",
                       (long long)i, (long long)first);
        }
        ok = same > 0 &&
             PyList_SetItem(list, (Py_ssize_t)i, Py_NewRef(is_null ? Py_None : value)) == 0;
    }
    PyObject *numpy = ok ? PyImport_ImportModule("numpy") : NULL;
    PyObject *array = numpy != NULL ? PyObject_CallMethod(numpy, "array", "OO", list, dtype) : NULL;
    bool handled = false;
    struct holder *holder = array != NULL ? column_from_buffer(state, array, &handled) : NULL;
    Py_XDECREF(array);
    Py_XDECREF(numpy);
    Py_XDECREF(list);
    Py_XDECREF(dtype);
    return holder;
}

/* As column_from_sequence, for lists with numpy scalars or pandas nulls. */
static struct holder *from_scalars(struct gar_state *state, PyObject *sequence, bool is_list,
                                   int64_t length)
{
    PyObject *plain = plain_items(state, sequence, is_list, length);
    for (int64_t i = 0; plain != NULL && i < length;
         i++) { /* item() may give a numpy scalar again */
        PyObject *value = PyList_GetItem(plain, (Py_ssize_t)i);
        if (kind_of(state, value) == KIND_SCALAR) {
            (void)refuse(state, value, KIND_NONE, i);
            Py_CLEAR(plain);
        }
    }
    struct holder *holder = plain != NULL ? column_from_sequence(state, plain) : NULL;
    Py_XDECREF(plain);
    return holder;
}

struct holder *column_from_sequence(struct gar_state *state, PyObject *sequence)
{
    const bool is_list = PyList_Check(sequence) != 0;
    if (!load_classes(state)) {
        return NULL;
    }
    struct fill f = {.state = state,
                     .items = sequence,
                     .is_list = is_list,
                     .length = (int64_t)(is_list ? PyList_Size(sequence) : PyTuple_Size(sequence))};
    struct survey s = {.kind = KIND_NONE};
    for (int64_t i = 0; i < f.length; i++) {
        if (!look_at(state, item_at(sequence, is_list, (Py_ssize_t)i), i, &s)) {
            return NULL;
        }
    }
    if (s.time_kind != '\0') {
        return numpy_times(state, sequence, is_list, f.length, s.first_time);
    }
    if (s.has_scalars) {
        return from_scalars(state, sequence, is_list, f.length);
    }
    if (s.has_nan && (s.kind == KIND_NONE || s.kind == KIND_INT)) {
        s.kind = KIND_FLOAT;
    }
    f.nan_is_null = s.has_nan && s.kind != KIND_FLOAT;
    f.is_nano = s.is_nano;
    return fill_kind(&f, s.kind);
}
