/* SPDX-License-Identifier: Apache-2.0 */
/* The Expression type: a handle with Python's operators. Named functions are methods that the package makes from the registry. */
#include <stdio.h>
#include <string.h>

#include "gar_py.h"

static struct py_expression *as_expression(PyObject *self)
{
    return (struct py_expression *)(void *)self;
}

PyObject *wrap_expression(struct gar_state *state, struct gar_expr *expr)
{
    PyObject *self = PyType_GenericAlloc(state->expression_class, 0);
    if (self == NULL) {
        gar_expr_release(expr);
        return NULL;
    }
    as_expression(self)->expr = expr;
    as_expression(self)->state = state;
    return self;
}

static void expression_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    gar_expr_release(as_expression(self)->expr);
    free_instance(self);
    Py_DECREF(type);
}

/* ---- literals ---------------------------------------------------------------------------------------------------------- */

static struct gar_expr *typed_literal(struct gar_state *state, const char *type, PyObject *text)
{
    struct gar_expr *expr = NULL;
    struct gar_error err;
    Py_ssize_t size = 0;
    const char *utf8 = text != NULL ? PyUnicode_AsUTF8AndSize(text, &size) : NULL;
    if (utf8 != NULL) {
        const enum gar_status status = gar_expr_typed(type, utf8, size, &expr, &err);
        if (status < 0) {
            raise_error(state, status, &err);
            expr = NULL;
        }
    }
    Py_XDECREF(text);
    return expr;
}

/* A date or timestamp as the engine reads it, a duration as its ticks. The format is tdD, tsX:... or tDX. */
static PyObject *ticks_text(const struct holder *holder)
{
    const char *format = holder->schema.format;
    int32_t days = 0;
    int64_t ticks = 0;
    if (format[1] == 'd') {
        memcpy(&days, holder->array.buffers[1], sizeof days);
        const struct civil c = civil_of(days);
        return PyUnicode_FromFormat("%04lld-%02d-%02d", (long long)c.year, c.month, c.day);
    }
    memcpy(&ticks, holder->array.buffers[1], sizeof ticks);
    if (format[1] == 'D') {
        return PyUnicode_FromFormat("%lld", (long long)ticks);
    }
    const int64_t per_second = format[2] == 's'   ? 1
                               : format[2] == 'm' ? 1000
                               : format[2] == 'u' ? 1000000
                                                  : 1000000000;
    const int digits = format[2] == 's' ? 0 : format[2] == 'm' ? 3 : format[2] == 'u' ? 6 : 9;
    const int64_t rest = ticks % per_second + (ticks % per_second < 0 ? per_second : 0);
    const int64_t seconds = (ticks - rest) / per_second;
    const int64_t clock = seconds % 86400 + (seconds % 86400 < 0 ? 86400 : 0);
    const struct civil c = civil_of((seconds - clock) / 86400);
    char text[80];
    char fraction[16] = "";
    if (digits > 0) {
        (void)snprintf(fraction, sizeof fraction, ".%0*lld", digits, (long long)rest);
    }
    (void)snprintf(text, sizeof text, "%04lld-%02d-%02d %02d:%02d:%02d%s%s", (long long)c.year,
                   c.month, c.day, (int)(clock / 3600), (int)(clock / 60 % 60), (int)(clock % 60),
                   fraction, format[4] != '\0' ? "Z" : "");
    return PyUnicode_FromString(text);
}

/* Values with a class of datetime or decimal, and numpy's times, go by the same road as columns of them: an array of
 * one row. */
static struct gar_expr *row_literal(struct gar_state *state, PyObject *value)
{
    PyObject *list = PyList_New(1);
    if (list == NULL || PyList_SetItem(list, 0, Py_NewRef(value)) < 0) {
        Py_XDECREF(list);
        return NULL;
    }
    struct holder *holder = column_from_sequence(state, list);
    Py_DECREF(list);
    if (holder == NULL) {
        return NULL;
    }
    struct gar_error err;
    struct gar_expr *expr = NULL;
    char *type = NULL;
    const char *format = holder->schema.format;
    enum gar_status status = holder->array.null_count > 0
                                 ? gar_expr_null(&expr, &err)
                                 : gar_type_from_arrow(&holder->schema, &type, &err);
    if (status < 0) {
        holder_unref(holder);
        raise_error(state, status, &err);
        return NULL;
    }
    if (expr == NULL) {
        PyObject *text = NULL;
        if (format[0] == 'd') {
            text = PyObject_CallMethod(value, "__format__", "s", "f");
        } else if (format[0] == 't' && format[1] == 't') {
            text = PyObject_CallMethod(value, "isoformat", NULL);
        } else if (format[0] == 't') {
            text = ticks_text(holder);
        } else {
            raise_text(state, GAR_ERR_TYPE, "this value cannot be a literal");
        }
        expr = typed_literal(state, type, text);
    }
    gar_text_free(type);
    holder_unref(holder);
    return expr;
}

/* Is it an array of several values? Scalars of numpy have no dimensions. */
static bool is_array(PyObject *value)
{
    PyObject *dimensions = PyObject_GetAttrString(value, "ndim");
    const bool found =
        dimensions != NULL && PyLong_Check(dimensions) && PyLong_AsLong(dimensions) != 0;
    Py_XDECREF(dimensions);
    PyErr_Clear();
    return found;
}

static struct gar_expr *array_literal(struct gar_state *state, PyObject *value)
{
    if (!PyObject_HasAttrString(value, "dtype") || !PyObject_HasAttrString(value, "item") ||
        (numpy_time_kind(value) != '\0' && !is_array(value))) {
        return row_literal(state, value);
    }
    PyObject *name = PyType_GetName(Py_TYPE(value));
    if (is_array(value)) {
        if (name != NULL) {
            PyErr_Format(state->errors[-(int)GAR_ERR_TYPE],
                         "a %U of several values cannot be a literal; a literal is one value",
                         name);
        }
        Py_XDECREF(name);
        return NULL;
    }
    PyObject *item = PyObject_CallMethod(value, "item", NULL);
    const bool is_plain = item != NULL && !PyObject_HasAttrString(item, "dtype");
    struct gar_expr *own = is_plain ? expression_from_object(state, item) : NULL;
    if (item != NULL && !is_plain && name != NULL) {
        PyErr_Format(state->errors[-(int)GAR_ERR_TYPE], "a numpy value of %U cannot be a literal",
                     name);
    }
    Py_XDECREF(name);
    Py_XDECREF(item);
    return own;
}

static enum gar_status int_literal(PyObject *value, struct gar_expr **out, struct gar_error *err)
{
    int overflow = 0;
    const long long v = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow == 0) {
        return gar_expr_int64(v, out, err);
    }
    const unsigned long long u = overflow > 0 ? PyLong_AsUnsignedLongLong(value) : 0;
    if (overflow > 0 && PyErr_Occurred() == NULL) {
        return gar_expr_uint64(u, out, err);
    }
    PyErr_Clear();
    *err = (struct gar_error){.status = GAR_ERR_OVERFLOW, .position = -1};
    (void)snprintf(err->message, sizeof err->message, "%s",
                   "the integer literal fits neither int64 nor uint64; use a float or a Decimal");
    return GAR_ERR_OVERFLOW;
}

static struct gar_expr *convert_value(struct gar_state *state, PyObject *obj)
{
    struct gar_expr *expr = NULL;
    struct gar_error err;
    enum gar_status status = GAR_OK;
    if (PyObject_TypeCheck(obj, state->expression_type)) {
        return gar_expr_retain(as_expression(obj)->expr);
    }
    if (PyLong_CheckExact(obj)) {
        status = int_literal(obj, &expr, &err);
    } else if (PyUnicode_Check(obj)) {
        Py_ssize_t size = 0;
        const char *text = PyUnicode_AsUTF8AndSize(obj, &size);
        if (text == NULL) {
            return NULL;
        }
        status = gar_expr_string(text, size, &expr, &err);
    } else if (PyFloat_Check(obj)) {
        status = gar_expr_float64(PyFloat_AsDouble(obj), &expr, &err);
    } else if (PyBool_Check(obj)) {
        status = gar_expr_bool(obj == Py_True, &expr, &err);
    } else if (obj == Py_None) {
        status = gar_expr_null(&expr, &err);
    } else if (PyBytes_Check(obj)) {
        char *bytes = NULL;
        Py_ssize_t size = 0;
        if (PyBytes_AsStringAndSize(obj, &bytes, &size) < 0) {
            return NULL;
        }
        status = gar_expr_binary(bytes, size, &expr, &err);
    } else if (PyLong_Check(obj)) {
        status = int_literal(obj, &expr, &err);
    } else {
        return array_literal(state, obj);
    }
    if (status < 0) {
        raise_error(state, status, &err);
        return NULL;
    }
    return expr;
}

struct gar_expr *expression_from_object(struct gar_state *state, PyObject *obj)
{
    struct gar_expr *expr = convert_value(state, obj);
    if (expr == NULL) {
        adopt_error(state);
    }
    return expr;
}

/* ---- calls -------------------------------------------------------------------------------------------------------------- */

static PyObject *call_function(struct gar_state *state, const char *name, PyObject *const *args,
                               Py_ssize_t count)
{
    struct gar_expr *few[8] = {0};
    struct gar_expr **exprs = few;
    struct gar_expr *out = NULL;
    struct gar_error err;
    if (count > 8) {
        exprs = PyMem_Malloc((size_t)count * sizeof *exprs);
        if (exprs == NULL) {
            return PyErr_NoMemory();
        }
    }
    Py_ssize_t made = 0;
    while (made < count && (exprs[made] = expression_from_object(state, args[made])) != NULL) {
        made++;
    }
    enum gar_status status = GAR_ERR_TYPE;
    if (made == count) {
        status = gar_expr_call(name, exprs, count, &out, &err);
    }
    for (Py_ssize_t i = 0; i < made; i++) {
        gar_expr_release(exprs[i]);
    }
    if (exprs != few) {
        PyMem_Free(exprs);
    }
    if (made < count) {
        return NULL;
    }
    return status < 0 ? raise_error(state, status, &err) : wrap_expression(state, out);
}

static PyObject *binary(const char *name, PyObject *a, PyObject *b);

#define GAR_BINARY(slot, name)                      \
    static PyObject *slot(PyObject *a, PyObject *b) \
    {                                               \
        return binary(name, a, b);                  \
    }

GAR_BINARY(op_add, "add")
GAR_BINARY(op_subtract, "subtract")
GAR_BINARY(op_multiply, "multiply")
GAR_BINARY(op_divide, "divide")
GAR_BINARY(op_floor_divide, "floor_divide")
GAR_BINARY(op_modulo, "modulo")
GAR_BINARY(op_and, "and")
GAR_BINARY(op_or, "or")
GAR_BINARY(op_xor, "xor")
GAR_BINARY(op_left, "shift_left")
GAR_BINARY(op_right, "shift_right")

/* Either side may be the expression; a type is one of ours when it has our addition. */
static PyObject *binary(const char *name, PyObject *a, PyObject *b)
{
    PyObject *ours = PyType_GetSlot(Py_TYPE(a), Py_nb_add) == (void *)(uintptr_t)op_add ? a : b;
    if (PyType_GetSlot(Py_TYPE(ours), Py_nb_add) != (void *)(uintptr_t)op_add) {
        return Py_NewRef(Py_NotImplemented);
    }
    PyObject *args[] = {a, b};
    return call_function(as_expression(ours)->state, name, args, 2);
}

static PyObject *op_power(PyObject *a, PyObject *b, PyObject *modulus)
{
    if (modulus != Py_None) {
        return Py_NewRef(Py_NotImplemented);
    }
    return binary("power", a, b);
}

static PyObject *unary(const char *name, PyObject *a)
{
    return call_function(as_expression(a)->state, name, &a, 1);
}

static PyObject *op_negate(PyObject *a)
{
    return unary("negate", a);
}

static PyObject *op_positive(PyObject *a)
{
    return Py_NewRef(a);
}

static PyObject *op_abs(PyObject *a)
{
    return unary("abs", a);
}

static PyObject *op_not(PyObject *a)
{
    return unary("not", a);
}

static int op_bool(PyObject *a)
{
    (void)raise_text(as_expression(a)->state, GAR_ERR_TYPE,
                     "an expression has no truth value; combine conditions with &, | and ~ instead "
                     "of and, or and not, "
                     "and use is_in or between for chains");
    return -1;
}

static PyObject *compare(PyObject *a, PyObject *b, int op)
{
    static const char *const names[] = {
        [Py_LT] = "less",      [Py_LE] = "less_equal", [Py_EQ] = "equal",
        [Py_NE] = "not_equal", [Py_GT] = "greater",    [Py_GE] = "greater_equal"};
    PyObject *args[] = {a, b};
    return call_function(as_expression(a)->state, names[op], args, 2);
}

static Py_hash_t hash_expression(PyObject *self)
{
    return (Py_hash_t)((uintptr_t)self >> 4);
}

/* ---- methods ------------------------------------------------------------------------------------------------------------ */

static PyObject *expression_repr(PyObject *self)
{
    struct gar_error err;
    char *text = NULL;
    const enum gar_status status = gar_expr_to_text(as_expression(self)->expr, &text, &err);
    if (status < 0) {
        return raise_error(as_expression(self)->state, status, &err);
    }
    PyObject *result = PyUnicode_FromString(text);
    gar_text_free(text);
    return result;
}

static PyObject *expression_name(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyUnicode_FromString(gar_expr_output_name(as_expression(self)->expr));
}

static PyObject *finish(PyObject *self, enum gar_status status, struct gar_expr *expr,
                        const struct gar_error *err)
{
    struct gar_state *state = as_expression(self)->state;
    return status < 0 ? raise_error(state, status, err) : wrap_expression(state, expr);
}

static PyObject *expression_alias(PyObject *self, PyObject *args)
{
    const char *name = NULL;
    struct gar_expr *out = NULL;
    struct gar_error err;
    if (!parse_args(as_expression(self)->state, args, "s:alias", &name)) {
        return NULL;
    }
    const enum gar_status status = gar_expr_alias(as_expression(self)->expr, name, &out, &err);
    return finish(self, status, out, &err);
}

static PyObject *expression_cast_text(PyObject *self, PyObject *args)
{
    const char *type = NULL;
    int is_try = 0;
    struct gar_expr *out = NULL;
    struct gar_error err;
    if (!parse_args(as_expression(self)->state, args, "sp", &type, &is_try)) {
        return NULL;
    }
    const enum gar_status status =
        gar_expr_cast(as_expression(self)->expr, type, is_try != 0, &out, &err);
    return finish(self, status, out, &err);
}

static PyObject *expression_is_in_array(PyObject *self, PyObject *values)
{
    struct gar_state *state = as_expression(self)->state;
    struct gar_expr *out = NULL;
    struct gar_error err;
    struct ArrowArray array;
    struct holder *holder = column_from_object(state, values);
    if (holder == NULL) {
        return NULL;
    }
    if (!holder_export_array(holder, &array)) {
        holder_unref(holder);
        return NULL;
    }
    const enum gar_status status =
        gar_expr_is_in(as_expression(self)->expr, &holder->schema, &array, &out, &err);
    holder_unref(holder);
    return finish(self, status, out, &err);
}

static PyMethodDef expression_methods[] = {
    {"name", expression_name, METH_NOARGS, "Name of the column it makes."},
    {"alias", expression_alias, METH_VARARGS,
     "alias(name)\n--\n\nThe same values under another name."},
    {"_cast", expression_cast_text, METH_VARARGS, "Cast to a type given as text."},
    {"_is_in", expression_is_in_array, METH_O, "Membership in the values of a column."},
    {NULL, NULL, 0, NULL},
};

PyObject *make_expression_type(PyObject *module)
{
    PyType_Slot slots[] = {
        {Py_tp_dealloc, (void *)(uintptr_t)expression_dealloc},
        {Py_tp_repr, (void *)(uintptr_t)expression_repr},
        {Py_tp_hash, (void *)(uintptr_t)hash_expression},
        {Py_tp_richcompare, (void *)(uintptr_t)compare},
        {Py_tp_methods, expression_methods},
        {Py_nb_add, (void *)(uintptr_t)op_add},
        {Py_nb_subtract, (void *)(uintptr_t)op_subtract},
        {Py_nb_multiply, (void *)(uintptr_t)op_multiply},
        {Py_nb_true_divide, (void *)(uintptr_t)op_divide},
        {Py_nb_floor_divide, (void *)(uintptr_t)op_floor_divide},
        {Py_nb_remainder, (void *)(uintptr_t)op_modulo},
        {Py_nb_power, (void *)(uintptr_t)op_power},
        {Py_nb_and, (void *)(uintptr_t)op_and},
        {Py_nb_or, (void *)(uintptr_t)op_or},
        {Py_nb_xor, (void *)(uintptr_t)op_xor},
        {Py_nb_lshift, (void *)(uintptr_t)op_left},
        {Py_nb_rshift, (void *)(uintptr_t)op_right},
        {Py_nb_negative, (void *)(uintptr_t)op_negate},
        {Py_nb_positive, (void *)(uintptr_t)op_positive},
        {Py_nb_absolute, (void *)(uintptr_t)op_abs},
        {Py_nb_invert, (void *)(uintptr_t)op_not},
        {Py_nb_bool, (void *)(uintptr_t)op_bool},
        {0, NULL},
    };
    PyType_Spec spec = {.name = "gar._native.Expression",
                        .basicsize = sizeof(struct py_expression),
                        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE |
                                 Py_TPFLAGS_DISALLOW_INSTANTIATION,
                        .slots = slots};
    return make_type(module, &spec);
}

/* ---- module functions --------------------------------------------------------------------------------------------------- */

static PyObject *column(PyObject *module, PyObject *args)
{
    const char *name = NULL;
    struct gar_expr *out = NULL;
    struct gar_error err;
    if (!parse_args(module_state(module), args, "s:col", &name)) {
        return NULL;
    }
    const enum gar_status status = gar_expr_column(name, &out, &err);
    struct gar_state *state = module_state(module);
    return status < 0 ? raise_error(state, status, &err) : wrap_expression(state, out);
}

static PyObject *literal(PyObject *module, PyObject *value)
{
    struct gar_state *state = module_state(module);
    struct gar_expr *expr = expression_from_object(state, value);
    return expr != NULL ? wrap_expression(state, expr) : NULL;
}

/* call(name, *args) */
static PyObject *call(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    const char *name = count > 0 ? PyUnicode_AsUTF8AndSize(args[0], NULL) : NULL;
    if (name == NULL) {
        return raise_text(module_state(module), GAR_ERR_TYPE, "call needs the name of a function");
    }
    return call_function(module_state(module), name, args + 1, count - 1);
}

/* Fills `items` with count borrowed expressions. */
static bool borrow_expressions(struct gar_state *state, PyObject *list, struct gar_expr **items)
{
    for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
        PyObject *item = PyList_GetItem(list, i);
        if (!PyObject_TypeCheck(item, state->expression_type)) {
            return raise_text(state, GAR_ERR_TYPE, "a window goes by expressions") != NULL;
        }
        items[i] = as_expression(item)->expr;
    }
    return true;
}

/* over(expression, partition_by, order_by, descending, nulls_first, frame, start, start_rows, end, end_rows, start_value,
 * end_value, min_periods, exclude): lists of expressions and, as bits, flags; values are expressions or None. */
static PyObject *over(PyObject *module, PyObject *args)
{
    struct gar_state *state = module_state(module);
    struct gar_window_description d = {.struct_bytes = sizeof d};
    PyObject *of = NULL;
    PyObject *partition = NULL;
    PyObject *order = NULL;
    PyObject *start_value = NULL;
    PyObject *end_value = NULL;
    unsigned long long descending = 0;
    unsigned long long nulls_first = 0;
    int frame = 0;
    int start = 0;
    int end = 0;
    long long start_rows = 0;
    long long end_rows = 0;
    long long min_periods = 0;
    int exclude = 0;
    if (!parse_args(state, args, "O!O!O!KKiiLiLOOLi", state->expression_type, &of, &PyList_Type,
                    &partition, &PyList_Type, &order, &descending, &nulls_first, &frame, &start,
                    &start_rows, &end, &end_rows, &start_value, &end_value, &min_periods,
                    &exclude)) {
        return NULL;
    }
    bool down[64] = {false};
    bool first[64] = {false};
    for (unsigned i = 0; i < 64; i++) {
        down[i] = (descending >> i & 1) != 0;
        first[i] = (nulls_first >> i & 1) != 0;
    }
    d.partition_count = PyList_Size(partition);
    d.order_count = PyList_Size(order);
    d.descending = down;
    d.nulls_first = first;
    d.frame = frame;
    d.start = start;
    d.end = end;
    d.start_rows = start_rows;
    d.end_rows = end_rows;
    d.min_periods = min_periods;
    d.exclude = exclude;
    d.start_value = PyObject_TypeCheck(start_value, state->expression_type)
                        ? as_expression(start_value)->expr
                        : NULL;
    d.end_value = PyObject_TypeCheck(end_value, state->expression_type)
                      ? as_expression(end_value)->expr
                      : NULL;
    struct gar_expr **items =
        PyMem_Calloc((size_t)(d.partition_count + d.order_count) + 1, sizeof(struct gar_expr *));
    struct gar_expr *out = NULL;
    PyObject *made = NULL;
    if (items == NULL) {
        return PyErr_NoMemory();
    }
    if (borrow_expressions(state, partition, items) &&
        borrow_expressions(state, order, items + d.partition_count)) {
        struct gar_error err;
        d.partition_by = items;
        d.order_by = items + d.partition_count;
        const enum gar_status status = gar_expr_windowed(as_expression(of)->expr, &d, &out, &err);
        made = status < 0 ? raise_error(state, status, &err) : wrap_expression(state, out);
    }
    PyMem_Free(items);
    return made;
}

/* restyle(expression, class): the same expression as an instance of a subclass. */
static PyObject *restyle(PyObject *module, PyObject *args)
{
    struct gar_state *state = module_state(module);
    PyObject *from = NULL;
    PyObject *class = NULL;
    if (!parse_args(state, args, "O!O!", state->expression_type, &from, &PyType_Type, &class)) {
        return NULL;
    }
    if (!PyType_IsSubtype((PyTypeObject *)(void *)class, state->expression_type)) {
        return raise_text(state, GAR_ERR_TYPE, "expected a subclass of Expression");
    }
    PyObject *self = PyType_GenericAlloc((PyTypeObject *)(void *)class, 0);
    if (self != NULL) {
        as_expression(self)->expr = gar_expr_retain(as_expression(from)->expr);
        as_expression(self)->state = state;
    }
    return self;
}

/* parse(sql, frame or None) */
static PyObject *parse(PyObject *module, PyObject *args)
{
    struct gar_state *state = module_state(module);
    const char *sql = NULL;
    Py_ssize_t size = 0;
    PyObject *frame = NULL;
    struct gar_expr *out = NULL;
    struct gar_error err;
    if (!parse_args(state, args, "s#O", &sql, &size, &frame)) {
        return NULL;
    }
    const struct gar_frame *names = PyObject_TypeCheck(frame, state->frame_type)
                                        ? ((struct py_frame *)(void *)frame)->frame
                                        : NULL;
    const enum gar_status status = gar_expr_parse(sql, size, names, &out, &err);
    return status < 0 ? raise_error(state, status, &err) : wrap_expression(state, out);
}

/* registry() -> [(name, sql, signature, summary, group, min, max, is_aggregate)] */
static PyObject *registry(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *rows = PyList_New(0);
    struct gar_function_description d = {.struct_bytes = sizeof d};
    for (int64_t i = 0; rows != NULL && gar_registry_get(i, &d); i++) {
        PyObject *row =
            Py_BuildValue("szsssiiO", d.name, d.sql, d.signature, d.summary, d.group,
                          (int)d.args_min, (int)d.args_max, d.is_aggregate ? Py_True : Py_False);
        if (row == NULL || PyList_Append(rows, row) < 0) {
            Py_CLEAR(rows);
        }
        Py_XDECREF(row);
    }
    return rows;
}

PyMethodDef expression_functions[] = {
    {"column", column, METH_VARARGS, "A column by its exact name."},
    {"literal", literal, METH_O, "A plain value as an expression."},
    {"call", (PyCFunction)(void (*)(void))call, METH_FASTCALL,
     "A function of the registry on expressions or values."},
    {"over", over, METH_VARARGS, "An expression over a window."},
    {"restyle", restyle, METH_VARARGS, "The same expression as an instance of a subclass."},
    {"parse", parse, METH_VARARGS, "A SQL expression; the frame may be None."},
    {"registry", registry, METH_NOARGS, "Every function of the engine."},
    {NULL, NULL, 0, NULL},
};
