/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow arrays in the engine's own layouts to Python objects. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gar_py.h"

/* One array being read; `make` gives row i (not null) as a new reference. */
struct reader {
    struct gar_state *state;
    const struct ArrowArray *array;
    const char *format;
    PyObject *(*make)(const struct reader *r, int64_t i);
    const uint8_t *validity; /* NULL: no nulls */
    const void *values;
    int64_t ticks_per_second; /* times, timestamps and durations */
    int32_t scale;            /* decimals */
    PyObject *zone;           /* tzinfo of timestamps; owned, or NULL */
};

struct view {
    int32_t size;
    union {
        uint8_t inlined[12];
        struct {
            uint8_t prefix[4];
            int32_t buffer;
            int32_t offset;
        } far;
    };
};

static bool get_bit(const uint8_t *bits, int64_t i)
{
    return ((bits[i >> 3] >> (i & 7)) & 1) != 0;
}

/* ---- numbers and text ------------------------------------------------------------------------------------------------ */

#define GAR_MAKE_NUMBER(name, type, convert)                                     \
    static PyObject *name(const struct reader *r, int64_t i)                     \
    {                                                                            \
        type v;                                                                  \
        memcpy(&v, (const uint8_t *)r->values + (size_t)i * sizeof v, sizeof v); \
        return convert;                                                          \
    }

GAR_MAKE_NUMBER(make_i8, int8_t, PyLong_FromLong(v))
GAR_MAKE_NUMBER(make_i16, int16_t, PyLong_FromLong(v))
GAR_MAKE_NUMBER(make_i32, int32_t, PyLong_FromLong(v))
GAR_MAKE_NUMBER(make_i64, int64_t, PyLong_FromLongLong(v))
GAR_MAKE_NUMBER(make_u8, uint8_t, PyLong_FromLong(v))
GAR_MAKE_NUMBER(make_u16, uint16_t, PyLong_FromLong(v))
GAR_MAKE_NUMBER(make_u32, uint32_t, PyLong_FromUnsignedLong(v))
GAR_MAKE_NUMBER(make_u64, uint64_t, PyLong_FromUnsignedLongLong(v))
GAR_MAKE_NUMBER(make_f32, float, PyFloat_FromDouble((double)v))
GAR_MAKE_NUMBER(make_f64, double, PyFloat_FromDouble(v))

static PyObject *make_bool(const struct reader *r, int64_t i)
{
    return PyBool_FromLong(get_bit(r->values, i));
}

static PyObject *make_none(const struct reader *r, int64_t i)
{
    (void)r;
    (void)i;
    return Py_NewRef(Py_None);
}

static const char *text_at(const struct reader *r, int64_t i, Py_ssize_t *size)
{
    if (r->format[0] == 'v') {
        const struct view *v = (const struct view *)r->values + i;
        *size = v->size;
        return v->size <= 12 ? (const char *)v->inlined
                             : (const char *)r->array->buffers[2 + v->far.buffer] + v->far.offset;
    }
    const int64_t *offsets = (const int64_t *)r->values + i;
    *size = (Py_ssize_t)(offsets[1] - offsets[0]);
    return (const char *)r->array->buffers[2] + offsets[0];
}

static PyObject *make_str(const struct reader *r, int64_t i)
{
    Py_ssize_t size = 0;
    const char *text = text_at(r, i, &size);
    return PyUnicode_DecodeUTF8(text, size, NULL);
}

static PyObject *make_bytes(const struct reader *r, int64_t i)
{
    Py_ssize_t size = 0;
    const char *text = text_at(r, i, &size);
    return PyBytes_FromStringAndSize(text, size);
}

/* Decimal from its exact text. */
static PyObject *make_decimal(const struct reader *r, int64_t i)
{
    __extension__ typedef unsigned __int128 u128;
    u128 v;
    char text[64];
    memcpy(&v, (const uint8_t *)r->values + i * 16, sizeof v);
    const bool negative = (v >> 127) != 0;
    u128 rest = negative ? (u128)0 - v : v;
    char *at = text + sizeof text;
    *--at = '\0';
    for (int32_t digit = 0; rest != 0 || digit <= r->scale; digit++) {
        if (digit == r->scale && r->scale > 0) {
            *--at = '.';
        }
        *--at = (char)('0' + (int)(rest % 10));
        rest /= 10;
    }
    if (negative) {
        *--at = '-';
    }
    return PyObject_CallFunction(r->state->known.decimal, "s", at);
}

/* ---- dates and times -------------------------------------------------------------------------------------------------- */

/* 1970-01-01 as date.toordinal() counts. */
#define EPOCH_ORDINAL 719163
/* 0001-01-01 and 9999-12-31 as days from 1970-01-01. */
#define DATE_MIN_DAYS (-719162)
#define DATE_MAX_DAYS 2932896
/* datetime.timedelta.max. */
#define DELTA_MAX_DAYS 999999999

/* Era arithmetic on years that start in March. */
struct civil civil_of(int64_t days)
{
    const int64_t z = days + 719468;
    const int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    const int64_t day_of_era = z - era * 146097;
    const int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    const int64_t day_of_year =
        day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    const int64_t shifted = (5 * day_of_year + 2) / 153;
    struct civil c;
    c.day = (int)(day_of_year - (153 * shifted + 2) / 5 + 1);
    c.month = (int)(shifted < 10 ? shifted + 3 : shifted - 9);
    c.year = year_of_era + era * 400 + (c.month <= 2 ? 1 : 0);
    return c;
}

static PyObject *make_date(const struct reader *r, int64_t i)
{
    int32_t days;
    memcpy(&days, (const uint8_t *)r->values + i * 4, sizeof days);
    if (days < DATE_MIN_DAYS || days > DATE_MAX_DAYS) {
        return raise_text(r->state, GAR_ERR_VALUE,
                          "a date in the year %lld is beyond Python's date (years 1 to 9999); use "
                          "to_arrow",
                          (long long)civil_of(days).year);
    }
    PyObject *ordinal = PyLong_FromLongLong((long long)days + EPOCH_ORDINAL);
    PyObject *date = ordinal != NULL
                         ? PyObject_CallFunctionObjArgs(r->state->known.fromordinal, ordinal, NULL)
                         : NULL;
    Py_XDECREF(ordinal);
    return date;
}

/* Ticks to whole seconds and microseconds. False when nanoseconds would be lost. */
static bool split_ticks(const struct reader *r, int64_t ticks, int64_t *seconds, int64_t *micros)
{
    *seconds = ticks / r->ticks_per_second;
    int64_t rest = ticks % r->ticks_per_second;
    if (rest < 0) {
        rest += r->ticks_per_second;
        (*seconds)--;
    }
    if (r->ticks_per_second > 1000000) {
        *micros = rest / 1000;
        return rest % 1000 == 0;
    }
    *micros = rest * (1000000 / r->ticks_per_second);
    return true;
}

static PyObject *lost_digits(const struct reader *r, int64_t ticks)
{
    return raise_text(r->state, GAR_ERR_VALUE,
                      "%lld ns does not fit Python's microseconds; cast the column to unit us, or "
                      "use to_arrow or to_pandas",
                      (long long)ticks);
}

static int64_t ticks_at(const struct reader *r, int64_t i)
{
    int64_t ticks;
    memcpy(&ticks, (const uint8_t *)r->values + i * 8, sizeof ticks);
    return ticks;
}

static PyObject *make_time(const struct reader *r, int64_t i)
{
    int64_t seconds = 0;
    int64_t micros = 0;
    if (!split_ticks(r, ticks_at(r, i), &seconds, &micros)) {
        return lost_digits(r, ticks_at(r, i));
    }
    if (seconds < 0 || seconds >= 86400) {
        return raise_text(r->state, GAR_ERR_VALUE,
                          "a time %lld s after midnight is beyond Python's time; use to_arrow",
                          (long long)seconds);
    }
    return PyObject_CallFunction(r->state->known.time, "iiii", (int)(seconds / 3600),
                                 (int)(seconds / 60 % 60), (int)(seconds % 60), (int)micros);
}

static PyObject *make_duration(const struct reader *r, int64_t i)
{
    int64_t seconds = 0;
    int64_t micros = 0;
    if (!split_ticks(r, ticks_at(r, i), &seconds, &micros)) {
        return lost_digits(r, ticks_at(r, i));
    }
    if (seconds / 86400 < -DELTA_MAX_DAYS || seconds / 86400 > DELTA_MAX_DAYS) {
        return raise_text(r->state, GAR_ERR_VALUE,
                          "a duration of %lld s is beyond Python's timedelta; use to_arrow",
                          (long long)seconds);
    }
    return PyObject_CallFunction(r->state->known.timedelta, "LLL", 0LL, (long long)seconds,
                                 (long long)micros);
}

static PyObject *make_timestamp(const struct reader *r, int64_t i)
{
    const struct known_objects *known = &r->state->known;
    int64_t seconds = 0;
    int64_t micros = 0;
    if (!split_ticks(r, ticks_at(r, i), &seconds, &micros)) {
        return lost_digits(r, ticks_at(r, i));
    }
    const int64_t days = seconds / 86400 - (seconds % 86400 < 0 ? 1 : 0);
    const int64_t clock = seconds - days * 86400;
    const struct civil c = civil_of(days);
    if (c.year < 1 || c.year > 9999) {
        return raise_text(r->state, GAR_ERR_VALUE,
                          "a timestamp in the year %lld is beyond Python's datetime (years 1 to "
                          "9999); use to_arrow",
                          (long long)c.year);
    }
    PyObject *value =
        PyObject_CallFunction(known->datetime, "iiiiiiiO", (int)c.year, c.month, c.day,
                              (int)(clock / 3600), (int)(clock / 60 % 60), (int)(clock % 60),
                              (int)micros, r->zone != NULL ? known->utc : Py_None);
    if (value != NULL && r->zone != NULL && r->zone != known->utc) {
        PyObject *local = PyObject_CallMethod(value, "astimezone", "O", r->zone);
        Py_DECREF(value);
        value = local;
        if (value == NULL && PyErr_ExceptionMatches(PyExc_OverflowError)) {
            return raise_text(r->state, GAR_ERR_VALUE,
                              "the local time of a timestamp in the year %lld is beyond Python's "
                              "datetime (years 1 to 9999); use to_arrow",
                              (long long)c.year);
        }
    }
    return value;
}

/* "UTC", "Europe/Berlin", "+02:00" to a tzinfo object. */
static PyObject *zone_object(struct gar_state *state, const char *name)
{
    int hours = 0;
    int minutes = 0;
    char sign = 0;
    char end = 0;
    if (strcmp(name, "UTC") == 0 || strcmp(name, "Z") == 0) {
        return Py_NewRef(state->known.utc);
    }
    if ((name[0] == '+' || name[0] == '-') &&
        sscanf(name, "%c%2d:%2d%c", &sign, &hours, &minutes, &end) == 3) {
        const int total = (hours * 60 + minutes) * (sign == '-' ? -1 : 1);
        PyObject *delta = PyObject_CallFunction(state->known.timedelta, "iii", 0, total * 60, 0);
        PyObject *zone =
            delta != NULL ? PyObject_CallFunctionObjArgs(state->known.timezone, delta, NULL) : NULL;
        Py_XDECREF(delta);
        return zone;
    }
    PyObject *zoneinfo = PyImport_ImportModule("zoneinfo");
    PyObject *zone = zoneinfo != NULL ? PyObject_CallMethod(zoneinfo, "ZoneInfo", "s", name) : NULL;
    Py_XDECREF(zoneinfo);
    if (zone == NULL && PyErr_ExceptionMatches(PyExc_Exception)) {
        return raise_text(state, GAR_ERR_VALUE,
                          "Python knows no time zone '%.100s'; where the system has no zone files, "
                          "'pip install gar[tz]' brings them; to_arrow works without",
                          name);
    }
    return zone;
}

static int64_t ticks_of(char unit)
{
    return unit == 's' ? 1 : unit == 'm' ? 1000 : unit == 'u' ? 1000000 : 1000000000;
}

/* tdD, ttu, tDn, tsu:zone */
static bool open_temporal(struct reader *r)
{
    const char *f = r->format;
    if (!load_datetime(r->state)) {
        return false;
    }
    if (strcmp(f, "tdD") == 0) {
        r->make = make_date;
        return true;
    }
    r->ticks_per_second = ticks_of(f[2]);
    if (f[1] == 't') {
        r->make = make_time;
    } else if (f[1] == 'D') {
        r->make = make_duration;
    } else if (f[1] == 's') {
        r->make = make_timestamp;
        if (f[3] == ':' && f[4] != '\0') {
            r->zone = zone_object(r->state, f + 4);
            return r->zone != NULL;
        }
    }
    return r->make != NULL;
}

/* ---- readers ----------------------------------------------------------------------------------------------------------- */

static PyObject *(*simple_maker(char letter))(const struct reader *, int64_t)
{
    switch (letter) {
    case 'n': return make_none;
    case 'b': return make_bool;
    case 'c': return make_i8;
    case 'C': return make_u8;
    case 's': return make_i16;
    case 'S': return make_u16;
    case 'i': return make_i32;
    case 'I': return make_u32;
    case 'l': return make_i64;
    case 'L': return make_u64;
    case 'f': return make_f32;
    case 'g': return make_f64;
    case 'U': return make_str;
    case 'Z': return make_bytes;
    default: return NULL;
    }
}

static bool open_reader(struct reader *r, struct gar_state *state, const struct ArrowSchema *schema,
                        const struct ArrowArray *array)
{
    *r = (struct reader){.state = state, .array = array, .format = schema->format};
    bool ok = true;
    if (r->format[0] != '\0' && r->format[1] == '\0') {
        r->make = simple_maker(r->format[0]);
    } else if (r->format[0] == 'v') {
        r->make = r->format[1] == 'u' ? make_str : make_bytes;
    } else if (r->format[0] == 'd') {
        ok = load_decimal(state);
        const char *comma = strchr(r->format, ',');
        r->scale = comma != NULL ? (int32_t)strtol(comma + 1, NULL, 10) : 0;
        r->make = make_decimal;
    } else if (r->format[0] == 't') {
        ok = open_temporal(r);
    }
    if (!ok) {
        return false;
    }
    if (r->make == NULL) {
        raise_text(state, GAR_ERR_UNSUPPORTED,
                   "values of Arrow format '%s' have no Python form here", r->format);
        return false;
    }
    if (array->n_buffers > 1) {
        r->validity = array->null_count != 0 ? array->buffers[0] : NULL;
        r->values = array->buffers[1];
    }
    return true;
}

/* Rows between two looks at the signals: about a millisecond. */
enum { SIGNAL_ROWS = 8192 };

static PyObject *read_row(const struct reader *r, int64_t i)
{
    const int64_t row = r->array->offset + i;
    return r->validity != NULL && !get_bit(r->validity, row) ? Py_NewRef(Py_None) : r->make(r, row);
}

bool append_to_list(struct gar_state *state, const struct ArrowSchema *schema,
                    const struct ArrowArray *array, int64_t first, int64_t count, PyObject *list)
{
    struct reader r;
    bool ok = open_reader(&r, state, schema, array);
    for (int64_t i = first; ok && i < first + count; i++) {
        PyObject *value = read_row(&r, i);
        ok = value != NULL && PyList_Append(list, value) == 0;
        Py_XDECREF(value);
        if (!ok) {
            adopt_error(state);
        }
        /* Ctrl-C is seen in the middle of a long conversion too */
        ok = ok && (i % SIGNAL_ROWS != SIGNAL_ROWS - 1 || PyErr_CheckSignals() == 0);
    }
    Py_XDECREF(r.zone);
    return ok;
}

PyObject *array_item(struct gar_state *state, const struct ArrowSchema *schema,
                     const struct ArrowArray *array, int64_t i)
{
    struct reader r;
    PyObject *value = open_reader(&r, state, schema, array) ? read_row(&r, i) : NULL;
    Py_XDECREF(r.zone);
    if (value == NULL) {
        adopt_error(state);
    }
    return value;
}
