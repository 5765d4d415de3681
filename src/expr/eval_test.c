/* SPDX-License-Identifier: Apache-2.0 */
/* Case tables of scalar functions: each row is run over flat, sliced, dictionary, repeated, selected and constant inputs,
 * and all give the same. */
#include "expr/test_support_priv.h"
#include "expr/test_zones_priv.h"

/* One row: columns a, b, c (NULL: none), the expression, the expected values or an error's text. */
struct row {
    const char *columns[3];
    struct gar_expr *(*make)(void);
    const char *type;   /* of the result, or NULL for an error */
    const char *result; /* values, or a part of the message */
};

enum layout { FLAT, SLICED, DICTIONARY, REPEATED, LAYOUT_COUNT };

/* Rows once, or 700 times over so that there are several vectors and dictionaries pay. */
#define REPEATS 700

static struct gar_column *repeat(const struct gar_column *column)
{
    struct gar_column *coded = as_dictionary(column);
    const int64_t count = column->length * REPEATS;
    uint32_t *rows = gar_malloc(count * 4);
    for (int64_t i = 0; i < count; i++) {
        rows[i] = (uint32_t)(i % column->length);
    }
    struct gar_column *out = NULL;
    OK(gar_column_gather(coded, rows, count, gar_memory_system(), &out, err));
    gar_free(rows);
    gar_column_unref(coded);
    return out;
}

static struct gar_batch *make_batch(const struct row *row, enum layout layout)
{
    struct gar_column *columns[3];
    int64_t count = 0;
    for (; count < 3 && row->columns[count] != NULL; count++) {
        struct gar_column *flat = column_of(row->columns[count]);
        switch (layout) {
        case FLAT: columns[count] = gar_column_ref(flat); break;
        case SLICED: columns[count] = as_slice(flat); break;
        case DICTIONARY: columns[count] = as_dictionary(flat); break;
        case REPEATED: columns[count] = repeat(flat); break;
        case LAYOUT_COUNT: break;
        }
        gar_column_unref(flat);
    }
    return batch_of(columns, count);
}

/* All rows of a table run; each mismatch is printed, and the test fails at the end. */
static int64_t failures;

static void complain(const struct gar_expr *expr, const char *where, const char *got,
                     const char *want)
{
    struct gar_strbuf text = {0};
    gar_expr_print(expr, &text);
    print_error("%s [%s]:\n    got  %s\n    want %s\n", gar_strbuf_text(&text), where, got, want);
    gar_strbuf_destroy(&text);
    failures++;
}

static void compare_part(const struct row *row, const struct gar_expr *expr,
                         const struct gar_column *result, int64_t start, int64_t rows,
                         const char *where)
{
    struct gar_column *part = NULL;
    struct gar_strbuf got = {0};
    char type_text[64];
    OK(gar_column_slice(result, start, rows, &part, err));
    gar_strbuf_printf(&got,
                      "%s: ", gar_type_text(result->type, type_text, (int64_t)sizeof type_text));
    column_text(part, &got);
    struct gar_strbuf want = {0};
    gar_strbuf_printf(&want, "%s: %s", row->type, row->result);
    if (strcmp(gar_strbuf_text(&got), gar_strbuf_text(&want)) != 0) {
        complain(expr, where, gar_strbuf_text(&got), gar_strbuf_text(&want));
    }
    gar_column_unref(part);
    gar_strbuf_destroy(&got);
    gar_strbuf_destroy(&want);
}

static void check_result(const struct row *row, const struct gar_expr *expr,
                         const struct gar_column *result, int64_t repeats, const char *where)
{
    struct gar_error err = GAR_ERROR_INIT;
    if (gar_column_validate(result, &err) < 0) {
        complain(expr, where, err.message, "a valid column");
        return;
    }
    const int64_t rows = result->length / repeats;
    for (int64_t r = 0; r<repeats; r += repeats> 1 ? repeats - 1 : 1) {
        compare_part(row, expr, result, r * rows, rows, where);
    }
}

static void run_layout(const struct row *row, struct gar_expr *expr, enum layout layout)
{
    static const char *const names[] = {"flat", "sliced", "dictionary", "repeated"};
    struct gar_batch *batch = make_batch(row, layout);
    struct gar_column *result = NULL;
    struct gar_error err = GAR_ERROR_INIT;
    const enum gar_status status = evaluate(expr, batch, &result, &err);
    if (status < 0) {
        if (row->type != NULL || strstr(err.message, row->result) == NULL) {
            complain(expr, names[layout], err.message, row->result);
        }
    } else if (row->type == NULL) {
        complain(expr, names[layout], "a result", row->result);
    } else {
        check_result(row, expr, result, layout == REPEATED ? REPEATS : 1, names[layout]);
    }
    gar_column_unref(result);
    gar_batch_unref(batch);
}

/* Every row of the batch through a selection that skips each second copy. */
static void run_selected(const struct row *row, struct gar_expr *expr)
{
    struct gar_batch *batch = make_batch(row, REPEATED);
    const int64_t length = batch->rows / REPEATS;
    struct gar_buffer *selection = NULL;
    OK(gar_buffer_new(gar_memory_system(), batch->rows * 4, &selection, err));
    uint32_t *rows = (uint32_t *)(void *)selection->data;
    int64_t selected = 0;
    for (int64_t i = 0; i < batch->rows; i++) {
        if (i / length % 2 == 1) {
            rows[selected++] = (uint32_t)i;
        }
    }
    struct gar_batch *chosen = NULL;
    OK(gar_batch_select(batch, selection, selected, &chosen, err));
    struct gar_column *result = NULL;
    struct gar_error err = GAR_ERROR_INIT;
    if (evaluate(expr, chosen, &result, &err) < 0) {
        complain(expr, "selected", err.message, row->result);
    } else {
        assert_int_equal(result->length, selected);
        check_result(row, expr, result, REPEATS / 2, "selected");
    }
    gar_column_unref(result);
    gar_batch_unref(chosen);
    gar_batch_unref(batch);
}

static void run_empty(const struct row *row, struct gar_expr *expr)
{
    struct gar_batch *batch = make_batch(row, FLAT);
    struct gar_batch *none = NULL;
    OK(gar_batch_slice(batch, 0, 0, &none, err));
    struct gar_column *result = NULL;
    struct gar_error err = GAR_ERROR_INIT;
    if (evaluate(expr, none, &result, &err) < 0) {
        complain(expr, "empty", err.message, "no rows");
    } else {
        assert_int_equal(result->length, 0);
    }
    gar_column_unref(result);
    gar_batch_unref(none);
    gar_batch_unref(batch);
}

static void run_row(const struct row *row)
{
    struct gar_expr *expr = row->make();
    for (enum layout layout = FLAT; layout < LAYOUT_COUNT; layout++) {
        run_layout(row, expr, layout);
    }
    if (row->type != NULL) {
        run_selected(row, expr);
        run_empty(row, expr);
    }
    gar_expr_unref(expr);
}

#define MAKE(name, expression)         \
    static struct gar_expr *name(void) \
    {                                  \
        return expression;             \
    }
#define A         col("a")
#define B         col("b")
#define C         col("c")
#define CALL(...) call(__VA_ARGS__, NULL)
#define I(v)      int_lit(v)
#define T(v)      text_lit(v)

MAKE(a_plus_b, CALL("add", A, B))
MAKE(a_minus_b, CALL("subtract", A, B))
MAKE(a_times_b, CALL("multiply", A, B))
MAKE(a_over_b, CALL("divide", A, B))
MAKE(a_floor_b, CALL("floor_divide", A, B))
MAKE(a_mod_b, CALL("modulo", A, B))
MAKE(a_plus_1, CALL("add", A, I(1)))
MAKE(one_minus_a, CALL("subtract", I(1), A))
MAKE(a_mod_minus_1, CALL("modulo", A, I(-1)))
MAKE(a_floor_minus_1, CALL("floor_divide", A, I(-1)))
MAKE(try_a_plus_b, CALL("try_add", A, B))
MAKE(try_a_times_b, CALL("try_multiply", A, B))
MAKE(negate_a, CALL("negate", A))
MAKE(abs_a, CALL("abs", A))
MAKE(sign_a, CALL("sign", A))
MAKE(floor_a, CALL("floor", A))
MAKE(ceil_a, CALL("ceil", A))
MAKE(round_a_1, CALL("round", A, I(1)))
MAKE(round_a_minus_1, CALL("round", A, I(-1)))
MAKE(sqrt_a, CALL("sqrt", A))
MAKE(power_a_2, CALL("power", A, I(2)))
MAKE(shift_a_b, CALL("shift_left", A, B))
MAKE(bit_and_a_b, CALL("bitwise_and", A, B))
MAKE(disc_price, CALL("multiply", A, CALL("subtract", I(1), B)))
MAKE(charge, CALL("multiply", CALL("multiply", A, CALL("subtract", I(1), B)), CALL("add", I(1), C)))

static const struct row arithmetic[] = {
    {{"int64: 1, null, 3", "int64: 10, 20, null"}, a_plus_b, "int64", "11, null, null"},
    {{"int32: 1, 2", "int64: 10, 20"}, a_plus_b, "int64", "11, 22"},
    {{"int8: 100, 27", "int8: 27, 100"}, a_plus_b, "int8", "127, 127"},
    {{"int8: 100, 100", "int8: 27, 28"}, a_plus_b, NULL, "int8 overflow in add: 100 + 28"},
    {{"int64: 9223372036854775807", "int64: 1"},
     a_plus_b,
     NULL,
     "int64 overflow in add: 9223372036854775807 + 1"},
    {{"int64: -9223372036854775808", "int64: 1"}, a_minus_b, NULL, "overflow in subtract"},
    {{"uint8: 250, 5", "uint8: 5, 250"}, a_plus_b, "uint8", "255, 255"},
    {{"uint32: 4000000000", "uint32: 4000000000"}, a_plus_b, NULL, "uint32 overflow"},
    {{"uint64: 3", "uint64: 5"}, a_minus_b, NULL, "uint64 overflow in subtract: 3 - 5"},
    {{"uint64: 18446744073709551615, 1", "int64: null, -1"},
     a_plus_b,
     NULL,
     "cannot cast '18446744073709551615'"},
    {{"uint32: 1", "int32: -5"}, a_plus_b, "int64", "-4"},
    {{"int64: 4611686018427387904, 3", "int64: 2, 4"},
     a_times_b,
     NULL,
     "overflow in multiply: 4611686018427387904 * 2"},
    {{"int64: 3037000499, -3, null", "int64: 3037000499, 4, 5"},
     a_times_b,
     "int64",
     "9223372030926249001, -12, null"},
    {{"int64: -9223372036854775808, 5", "int64: -1, 1"}, a_times_b, NULL, "overflow"},
    {{"int32: 65536, 3", "int32: 65536, 4"}, a_times_b, NULL, "int32 overflow"},
    {{"int64: 9223372036854775807, 1", "int64: 1, 1"}, try_a_plus_b, "int64", "null, 2"},
    {{"int64: 9223372036854775807, 3", "int64: 3, 3"}, try_a_times_b, "int64", "null, 9"},
    {{"int64: 7, -7, 7, -7, 1", "int64: 2, 2, -2, -2, 0"},
     a_floor_b,
     "int64",
     "3, -4, -4, 3, null"},
    {{"int64: 7, -7, 7, -7, 1", "int64: 2, 2, -2, -2, 0"}, a_mod_b, "int64", "1, -1, 1, -1, null"},
    {{"int64: -9223372036854775808"}, a_floor_minus_1, NULL, "int64 overflow in floor_divide"},
    {{"int64: -9223372036854775808, 5"}, a_mod_minus_1, "int64", "0, 0"},
    {{"int32: -2147483648, 5"}, a_mod_minus_1, "int32", "0, 0"},
    {{"uint8: 7, 9, 1", "uint8: 2, 3, 0"}, a_floor_b, "uint8", "3, 3, null"},
    {{"int64: 1, 2, 4, null", "int64: 2, 0, 2, 1"}, a_over_b, "float64", "0.5, inf, 2.0, null"},
    {{"float64: 1.5, -1.5, 2.0", "float64: 1.0, 1.0, 0.0"}, a_floor_b, "float64", "1.0, -2.0, inf"},
    {{"float64: 5.5, -5.5", "float64: 2.0, 2.0"}, a_mod_b, "float64", "1.5, -1.5"},
    {{"float32: 1.5", "float32: 2.25"}, a_plus_b, "float32", "3.75"},
    {{"float32: 1.5", "int64: 2"}, a_plus_b, "float64", "3.5"},
    {{"int8: 100, null"}, a_plus_1, "int32", "101, null"},
    {{"int32: 1, 2"}, a_plus_1, "int32", "2, 3"},
    {{"uint64: 1, 2"}, a_plus_1, "uint64", "2, 3"},
    {{"uint32: 4294967295"}, a_plus_1, "int64", "4294967296"},
    {{"int64: 1, null"}, one_minus_a, "int64", "0, null"},
    {{"int64: 5, -5, null"}, negate_a, "int64", "-5, 5, null"},
    {{"int64: -9223372036854775808"}, negate_a, NULL, "int64 overflow in negate"},
    {{"int64: -9223372036854775808"}, abs_a, NULL, "int64 overflow in abs"},
    {{"int8: -128"}, abs_a, NULL, "int8 overflow in abs"},
    {{"int8: -127, 5, null"}, abs_a, "int8", "127, 5, null"},
    {{"uint8: 200"}, negate_a, "int16", "-200"},
    {{"float64: -1.5, nan, -0.0"}, abs_a, "float64", "1.5, nan, 0.0"},
    {{"int32: -4, 0, 9"}, sign_a, "int32", "-1, 0, 1"},
    {{"float64: 1.5, -1.5, null"}, floor_a, "float64", "1.0, -2.0, null"},
    {{"float64: 1.25, -1.25, 2.5"}, round_a_1, "float64", "1.3, -1.3, 2.5"},
    {{"int32: 15, 14, -15"}, round_a_minus_1, "int32", "20, 10, -20"},
    {{"int8: 127"}, round_a_minus_1, NULL, "int8 overflow in round"},
    {{"float64: 4.0, 2.25"}, sqrt_a, "float64", "2.0, 1.5"},
    {{"int64: 3, null"}, power_a_2, "float64", "9.0, null"},
    {{"int32: 1, 3", "int32: 4, 0"}, shift_a_b, "int32", "16, 3"},
    {{"int32: 1", "int64: 32"}, shift_a_b, NULL, "a shift lies between 0 and 31"},
    {{"int64: 12", "int64: 10"}, bit_and_a_b, "int64", "8"},
    {{"string: x, null", "string: y, z"}, a_plus_b, "string", "xy, null"},
};

static const struct row decimals[] = {
    {{"decimal(15, 2): 1.25, null", "decimal(15, 2): 2.50, 1.00"},
     a_plus_b,
     "decimal(16, 2)",
     "3.75, null"},
    {{"decimal(15, 2): 1.25", "decimal(10, 4): 0.0001"}, a_minus_b, "decimal(18, 4)", "1.2499"},
    {{"decimal(15, 2): 901.00, 104949.50", "decimal(15, 2): 0.05, 0.10"},
     disc_price,
     "decimal(31, 4)",
     "855.9500, 94454.5500"},
    {{"decimal(15, 2): 901.00", "decimal(15, 2): 0.05", "decimal(15, 2): 0.08"},
     charge,
     "decimal(38, 6)",
     "924.426000"},
    {{"decimal(38, 0): 99999999999999999999999999999999999999", "decimal(38, 0): 1"},
     a_plus_b,
     NULL,
     "overflow in add"},
    {{"decimal(20, 0): 99999999999999999999", "decimal(20, 0): 3"},
     a_times_b,
     "decimal(38, 0)",
     "299999999999999999997"},
    {{"decimal(18, 0): 999999999999999999", "decimal(18, 0): 999999999999999999"},
     a_times_b,
     "decimal(36, 0)",
     "999999999999999998000000000000000001"},
    {{"decimal(38, 0): 99999999999999999999", "decimal(38, 0): 99999999999999999999"},
     a_times_b,
     NULL,
     "overflow in multiply"},
    {{"decimal(38, 20): 1", "decimal(38, 20): 1"}, a_times_b, NULL, "more than 38 digits"},
    {{"decimal(5, 2): 7.50, -7.50, 1", "decimal(5, 2): 2, 2, 0"},
     a_floor_b,
     "decimal(6, 0)",
     "3, -4, null"},
    {{"decimal(5, 2): 7.50, -7.50, 1", "decimal(5, 2): 2, 2, 0"},
     a_mod_b,
     "decimal(5, 2)",
     "1.50, -1.50, null"},
    {{"decimal(5, 2): 7.50", "int32: 2"}, a_over_b, "float64", "3.75"},
    {{"decimal(5, 2): 7.50", "int32: 2"}, a_plus_b, "decimal(13, 2)", "9.50"},
    {{"decimal(5, 2): 7.50", "float64: 0.5"}, a_plus_b, "float64", "8.0"},
    {{"decimal(5, 2): -7.55, 7.55"}, round_a_1, "decimal(5, 1)", "-7.6, 7.6"},
    {{"decimal(5, 2): -7.55, 7.55"}, floor_a, "decimal(4, 0)", "-8, 7"},
    {{"decimal(5, 2): -7.55, 7.55"}, ceil_a, "decimal(4, 0)", "-7, 8"},
    {{"decimal(5, 2): -7.55, 0.00"}, sign_a, "int32", "-1, 0"},
    {{"decimal(5, 2): -7.55, 8.00"}, negate_a, "decimal(5, 2)", "7.55, -8.00"},
    {{"decimal(38, 2): -99999999999999999999.55"},
     abs_a,
     "decimal(38, 2)",
     "99999999999999999999.55"},
    {{"decimal(38, 0): 99999999999999999999999999999999999999, 1", "decimal(38, 0): 1, 1"},
     try_a_plus_b,
     "decimal(38, 0)",
     "null, 2"},
};

MAKE(a_eq_b, CALL("equal", A, B))
MAKE(a_ne_b, CALL("not_equal", A, B))
MAKE(a_lt_b, CALL("less", A, B))
MAKE(a_le_b, CALL("less_equal", A, B))
MAKE(a_gt_b, CALL("greater", A, B))
MAKE(a_ge_b, CALL("greater_equal", A, B))
MAKE(a_same_b, CALL("eq_null_safe", A, B))
MAKE(a_gt_2, CALL("greater", A, I(2)))
MAKE(two_ge_a, CALL("greater_equal", I(2), A))
MAKE(a_between_b_c, CALL("between", A, B, C))
MAKE(a_eq_text, CALL("equal", A, T("abc")))
MAKE(a_gt_long, CALL("greater", A, T("abcdefghijklmnop")))
MAKE(a_ge_date_text, CALL("greater_equal", A, T("1994-01-01")))
MAKE(a_eq_float, CALL("equal", A, lit("double", "9007199254740992")))
MAKE(least_ab, CALL("columns_min", A, B))
MAKE(greatest_abc, CALL("columns_max", A, B, C))

static const struct row comparisons[] = {
    {{"int64: 1, 2, null", "int64: 1, 3, 3"}, a_eq_b, "bool", "true, false, null"},
    {{"int64: 1, 2, null", "int64: 1, 3, 3"}, a_ne_b, "bool", "false, true, null"},
    {{"int64: 1, 2, 5", "int32: 1, 3, 3"}, a_lt_b, "bool", "false, true, false"},
    {{"int64: 1, 2, 5", "int32: 1, 3, 3"}, a_ge_b, "bool", "true, false, true"},
    {{"int8: 1, 2, 5", "int8: 1, 3, 3"}, a_le_b, "bool", "true, true, false"},
    {{"uint8: 200, 2", "int8: 1, 3"}, a_gt_b, "bool", "true, false"},
    {{"uint64: 18446744073709551615, 1", "int64: -1, 1"}, a_eq_b, "bool", "false, true"},
    {{"uint64: 18446744073709551615, 1", "int64: -1, 1"}, a_gt_b, "bool", "true, false"},
    {{"int64: 1, 2, 3, null"}, a_gt_2, "bool", "false, false, true, null"},
    {{"uint8: 1, 2, 3, null"}, two_ge_a, "bool", "true, true, false, null"},
    {{"decimal(10, 2): 1.99, 2.00, 2.01"}, a_gt_2, "bool", "false, false, true"},
    {{"float64: 1.0, nan, null", "float64: 1.0, nan, 1.0"}, a_eq_b, "bool", "true, false, null"},
    {{"float64: 1.0, nan, 0.0", "float64: 2.0, 1.0, -0.0"}, a_ne_b, "bool", "true, true, false"},
    {{"float64: 1.0, nan", "float64: 2.0, 1.0"}, a_lt_b, "bool", "true, false"},
    {{"int64: 9007199254740993, 9007199254740992"}, a_eq_float, "bool", "false, true"},
    {{"decimal(10, 2): 1.10, 2.00", "decimal(10, 4): 1.1000, 2.0001"},
     a_eq_b,
     "bool",
     "true, false"},
    {{"decimal(38, 0): 99999999999999999999999999999999999999, 1", "decimal(38, 10): 1, 1"},
     a_gt_b,
     "bool",
     "true, false"},
    {{"decimal(10, 2): 1.10", "float64: 1.1"}, a_eq_b, "bool", "true"},
    {{"string: abc, abcd, '', null", "string: abc, abce, x, x"},
     a_eq_b,
     "bool",
     "true, false, false, null"},
    {{"string: abc, abd, ab", "string: abd, abc, abc"}, a_lt_b, "bool", "true, false, true"},
    {{"string: abcdefghijklmnop, abcdefghijklmnoz", "string: abcdefghijklmnoq, abcdefghijklmnoq"},
     a_lt_b,
     "bool",
     "true, false"},
    {{"string: abc, abcd, null"}, a_eq_text, "bool", "true, false, null"},
    {{"string: abcdefghijklmnoq, abcdefghijklmno, b"}, a_gt_long, "bool", "true, false, true"},
    {{"bool: true, false, true, null", "bool: true, true, false, true"},
     a_gt_b,
     "bool",
     "false, false, true, null"},
    {{"date: 2020-01-01, 2020-01-02", "timestamp[us]: 2020-01-01 00:00:00, 2020-01-01 12:00:00"},
     a_eq_b,
     "bool",
     "true, false"},
    {{"date: 1993-12-31, 1994-01-01"}, a_ge_date_text, "bool", "false, true"},
    {{"timestamp[us]: 1993-12-31 23:59:59.999999, 1994-01-01 00:00:00"},
     a_ge_date_text,
     "bool",
     "false, true"},
    {{"timestamp[us, UTC]: 2020-01-01 00:00:00", "timestamp[ms, +02:00]: 2020-01-01 02:00:00"},
     a_eq_b,
     "bool",
     "true"},
    {{"timestamp[us, UTC]: 2020-01-01 00:00:00", "timestamp[us]: 2020-01-01 00:00:00"},
     a_eq_b,
     NULL,
     "cannot take"},
    {{"duration[s]: 1, 2", "duration[ms]: 1000, 1999"}, a_eq_b, "bool", "true, false"},
    {{"int64: 1", "string: x"}, a_eq_b, NULL, "equal cannot take int64 with string"},
    {{"int64: 1, 2, null, null", "int64: 1, 3, null, 3"},
     a_same_b,
     "bool",
     "true, false, true, false"},
    {{"string: x, null, null", "string: x, null, y"}, a_same_b, "bool", "true, true, false"},
    {{"int64: 1, 5, 9, null", "int64: 2, 2, 2, 2", "int64: 6, 6, 6, 6"},
     a_between_b_c,
     "bool",
     "false, true, false, null"},
    {{"int64: 1, null, null", "int64: 2, 2, null"}, least_ab, "int64", "1, 2, null"},
    {{"float64: 1.0, nan, nan", "float64: nan, 2.0, nan"}, least_ab, "float64", "1.0, 2.0, nan"},
    {{"string: b, null, abcdefghijklmnopq", "string: a, x, b"},
     least_ab,
     "string",
     "a, x, abcdefghijklmnopq"},
    {{"decimal(5, 2): 1.25, null", "decimal(5, 1): 1.3, 0.1", "decimal(5, 2): 0.00, 0.00"},
     greatest_abc,
     "decimal(6, 2)",
     "1.30, 0.10"},
};

MAKE(a_and_b, CALL("and", A, B))
MAKE(a_or_b, CALL("or", A, B))
MAKE(a_xor_b, CALL("xor", A, B))
MAKE(not_a, CALL("not", A))
MAKE(a_is_null, CALL("is_null", A))
MAKE(a_not_null, CALL("not_null", A))
MAKE(a_is_nan, CALL("is_nan", A))
MAKE(a_is_inf, CALL("is_inf", A))
MAKE(a_fill_b, CALL("fill_null", A, B))
MAKE(a_fill_0, CALL("fill_null", A, I(0)))
MAKE(coalesce_abc, CALL("coalesce", A, B, C))
MAKE(when_a_b_c, CALL("when", A, B, C))
MAKE(nullif_ab, CALL("nullif", A, B))
MAKE(fill_nan_0, CALL("fill_nan", A, lit("double", "0")))
/* the division is guarded: rows with b = 0 never reach the cast or the overflow */
MAKE(guarded, CALL("when", CALL("greater", A, I(0)),
                   CALL("multiply", A, lit("bigint", "9223372036854775807")), I(-1)))
MAKE(guarded_and,
     CALL("and", CALL("less", A, I(2)),
          CALL("greater", CALL("multiply", A, lit("bigint", "9223372036854775807")), I(0))))
MAKE(guarded_const, CALL("when", CALL("greater", A, I(5)),
                         CALL("add", lit("bigint", "9223372036854775807"), lit("bigint", "1")), A))

static const struct row logic[] = {
    {{"bool: true, true, false, null, null, null", "bool: true, null, null, true, false, null"},
     a_and_b,
     "bool",
     "true, null, false, null, false, null"},
    {{"bool: true, true, false, null, null, null", "bool: true, null, null, true, false, null"},
     a_or_b,
     "bool",
     "true, true, null, true, null, null"},
    {{"bool: true, true, false, null", "bool: true, false, false, true"},
     a_xor_b,
     "bool",
     "false, true, false, null"},
    {{"bool: true, false, null"}, not_a, "bool", "false, true, null"},
    {{"int64: 1, null"}, a_is_null, "bool", "false, true"},
    {{"string: x, null"}, a_not_null, "bool", "true, false"},
    {{"null: null, null"}, a_is_null, "bool", "true, true"},
    {{"float64: 1.0, nan, inf, null"}, a_is_nan, "bool", "false, true, false, null"},
    {{"float32: 1.0, nan, -inf, null"}, a_is_inf, "bool", "false, false, true, null"},
    {{"int64: 1, null"}, a_is_nan, "bool", "false, null"},
    {{"int64: 1, null, 3", "int64: 9, 8, 7"}, a_fill_b, "int64", "1, 8, 3"},
    {{"int64: 1, null, 3"}, a_fill_0, "int64", "1, 0, 3"},
    {{"null: null, null", "int64: 1, null", "float64: 0.5, 2.5"},
     coalesce_abc,
     "float64",
     "1.0, 2.5"},
    {{"string: abcdefghijklmnopqrstuvw, null, null", "string: x, y, null",
      "string: p, q, zyxwvutsrqponmlkji"},
     coalesce_abc,
     "string",
     "abcdefghijklmnopqrstuvw, y, zyxwvutsrqponmlkji"},
    {{"bool: true, false, null", "int64: 1, 2, 3", "int64: 10, 20, 30"},
     when_a_b_c,
     "int64",
     "1, 20, 30"},
    {{"bool: true, false, null", "decimal(5, 2): 1, 2, 3",
      "decimal(38, 0): 10, 99999999999999999999, 30"},
     when_a_b_c,
     "decimal(38, 2)",
     "1.00, 99999999999999999999.00, 30.00"},
    {{"bool: true, false, null", "bool: false, true, true", "bool: true, null, false"},
     when_a_b_c,
     "bool",
     "false, null, false"},
    {{"int64: 1, 2, null", "int64: 1, 3, 4"}, nullif_ab, "int64", "null, 2, null"},
    {{"float64: 1.0, nan, null"}, fill_nan_0, "float64", "1.0, 0.0, null"},
    {{"int64: 1, -2, 0, null"}, guarded, "int64", "9223372036854775807, -1, -1, -1"},
    {{"int64: 1, 2, 3"}, guarded_and, "bool", "true, false, false"},
    {{"int64: 1, 2, 3"}, guarded_const, "int64", "1, 2, 3"},
    {{"int64: 1, 2, 6"}, guarded_const, NULL, "int64 overflow in add"},
    {{"int64: 1"}, not_a, NULL, "not takes bool, not int64"},
};

MAKE(like_prefix, CALL("like", A, T("ab%")))
MAKE(like_middle, CALL("like", A, T("%b%d%")))
MAKE(like_any, CALL("like", A, T("a_c%")))
MAKE(like_exact, CALL("like", A, T("abc")))
MAKE(like_escape, CALL("like", A, T("100\\%")))
MAKE(like_bad, CALL("like", A, T("x\\")))
MAKE(ilike_middle, CALL("ilike", A, T("%ÄB%")))
MAKE(like_columns, CALL("like", A, B))
MAKE(a_contains_b, CALL("contains", A, B))
MAKE(a_starts_b, CALL("startswith", A, B))
MAKE(a_ends_b, CALL("endswith", A, B))
MAKE(lower_a, CALL("lower", A))
MAKE(upper_a, CALL("upper", A))
MAKE(reverse_a, CALL("reverse", A))
MAKE(length_a, CALL("length", A))
MAKE(length_bytes_a, CALL("length_bytes", A))
MAKE(trim_a, CALL("trim", A))
MAKE(substr_2, CALL("substr", A, I(2)))
MAKE(substr_1_2, CALL("substr", A, I(1), I(2)))
MAKE(substr_minus_2, CALL("substr", A, I(-2)))
MAKE(left_2, CALL("left", A, I(2)))
MAKE(right_2, CALL("right", A, I(2)))
MAKE(concat_ab, CALL("concat", A, T("-"), B))
MAKE(replace_a, CALL("replace", A, T("ab"), T("xyz")))

static const struct row text[] = {
    {{"string: abc, ab, a, null, xab"}, like_prefix, "bool", "true, true, false, null, false"},
    {{"string: abcd, bd, db, abcdefghijklmnopd"}, like_middle, "bool", "true, true, false, true"},
    {{"string: abcd, aéc, ac"}, like_any, "bool", "true, true, false"},
    {{"string: abc, abcd, ''"}, like_exact, "bool", "true, false, false"},
    {{"string: 100%, 1000"}, like_escape, "bool", "true, false"},
    {{"string: x"}, like_bad, NULL, "lone backslash"},
    {{"string: xäby, ab"}, ilike_middle, "bool", "true, false"},
    {{"string: abc, abc, null", "string: a%, b%, a"}, like_columns, "bool", "true, false, null"},
    {{"string: abcdefghijklmnop, abc, abc, null", "string: nop, d, '', x"},
     a_contains_b,
     "bool",
     "true, false, true, null"},
    {{"string: abcdefghijklmnop, abc", "string: abcdefghijklmn, b"},
     a_starts_b,
     "bool",
     "true, false"},
    {{"string: abcdefghijklmnop, abc", "string: defghijklmnop, b"},
     a_ends_b,
     "bool",
     "true, false"},
    {{"string: ABC, ÄÖÜ, null, ABCDEFGHIJKLMNOPQ"},
     lower_a,
     "string",
     "abc, äöü, null, abcdefghijklmnopq"},
    {{"string: abc, äöü, straße"}, upper_a, "string", "ABC, ÄÖÜ, STRAßE"},
    {{"string: abc, äöü"}, reverse_a, "string", "cba, üöä"},
    {{"string: 😉test, '', null"}, length_a, "int64", "5, 0, null"},
    {{"string: 😉test, ''"}, length_bytes_a, "int64", "8, 0"},
    {{"string:    abc  , '', null"}, trim_a, "string", "abc, , null"},
    {{"string: query, äöüß, q"}, substr_2, "string", "ery, üß, "},
    {{"string: query, äöüß, q"}, substr_1_2, "string", "ue, öü, "},
    {{"string: query, ä, ''"}, substr_minus_2, "string", "ry, ä, "},
    {{"string: query, ä"}, left_2, "string", "qu, ä"},
    {{"string: query, ä"}, right_2, "string", "ry, ä"},
    {{"string: abc, null, abcdefghijk", "string: x, y, lmnop"},
     concat_ab,
     "string",
     "abc-x, null, abcdefghijk-lmnop"},
    {{"string: abcab, b, null, ababababababab"},
     replace_a,
     "string",
     "xyzcxyz, b, null, xyzxyzxyzxyzxyzxyzxyz"},
};

MAKE(year_a, CALL("year", A))
MAKE(month_a, CALL("month", A))
MAKE(day_a, CALL("day", A))
MAKE(hour_a, CALL("hour", A))
MAKE(second_a, CALL("second", A))
MAKE(week_a, CALL("week_of_year", A))
MAKE(weekday_a, CALL("day_of_week", A))
MAKE(yearday_a, CALL("day_of_year", A))
MAKE(date_a, CALL("date", A))
MAKE(time_a, CALL("time", A))
MAKE(trunc_month, CALL("date_trunc", T("month"), A))
MAKE(trunc_hour, CALL("date_trunc", T("hour"), A))
MAKE(trunc_day, CALL("date_trunc", T("day"), A))
MAKE(trunc_week, CALL("date_trunc", T("week"), A))
MAKE(trunc_bad, CALL("date_trunc", T("fortnight"), A))
MAKE(add_1_month, CALL("date_add_months", A, I(1)))
MAKE(minus_90_days, CALL("subtract", A, CALL("interval", I(0), I(90), I(0))))
MAKE(plus_interval, CALL("add", A, CALL("interval", I(1), I(1), I(3600000000000))))
MAKE(plus_day_duration, CALL("add", A, lit("duration[s]", "86400")))

static const struct row temporal[] = {
    {{"date: 1970-01-01, 1969-12-31, 2000-02-29, null, -0044-03-15, 9999-12-31"},
     year_a,
     "int32",
     "1970, 1969, 2000, null, -44, 9999"},
    {{"date: 1970-01-01, 1969-12-31, 2000-02-29, null"}, month_a, "int32", "1, 12, 2, null"},
    {{"date: 1970-01-01, 1969-12-31, 2000-02-29, null"}, day_a, "int32", "1, 31, 29, null"},
    {{"timestamp[us]: 1969-12-31 23:59:59.999999, 2024-02-29 12:00:00"},
     year_a,
     "int32",
     "1969, 2024"},
    {{"timestamp[ns]: 1969-12-31 23:59:59.999999, 2024-02-29 12:34:56"},
     second_a,
     "int32",
     "59, 56"},
    {{"timestamp[s]: 1969-12-31 23:59:59, 2024-02-29 12:34:56"}, hour_a, "int32", "23, 12"},
    {{"timestamp[us, Europe/Berlin]: 2024-06-30 22:30:00Z, 2024-12-31 22:30:00Z"},
     month_a,
     "int32",
     "7, 12"},
    {{"timestamp[us, Europe/Berlin]: 2024-06-30 22:30:00Z, 2024-12-31 22:30:00Z"},
     hour_a,
     "int32",
     "0, 23"},
    {{"timestamp[us, +05:30]: 2024-06-30 22:30:00Z"}, day_a, "int32", "1"},
    {{"date: 2024-12-30, 2021-01-03, 2020-12-31"}, week_a, "int32", "1, 53, 53"},
    {{"date: 2024-01-01, 2024-01-07"}, weekday_a, "int32", "0, 6"},
    {{"date: 2024-12-31, 2023-12-31"}, yearday_a, "int32", "366, 365"},
    {{"timestamp[ms]: 1969-12-31 23:59:59, null"}, date_a, "date", "1969-12-31, null"},
    {{"timestamp[ms]: 1969-12-31 23:59:59"}, time_a, "time[us]", "23:59:59.000000"},
    {{"date: 2024-02-29, null"}, trunc_month, "date", "2024-02-01, null"},
    {{"timestamp[us]: 2024-02-29 12:34:56"},
     trunc_hour,
     "timestamp[us]",
     "2024-02-29 12:00:00.000000"},
    {{"timestamp[s]: 1969-12-31 12:34:56"}, trunc_week, "timestamp[s]", "1969-12-29 00:00:00"},
    {{"timestamp[s, Europe/Berlin]: 2024-06-30 22:30:00Z"},
     trunc_day,
     "timestamp[s, Europe/Berlin]",
     "2024-06-30 22:00:00Z"},
    {{"date: 2024-02-29"}, trunc_bad, NULL, "unknown unit 'fortnight'"},
    {{"date: 2024-01-31, null"}, add_1_month, "date", "2024-02-29, null"},
    {{"timestamp[s]: 2023-01-31 10:00:00"}, add_1_month, "timestamp[s]", "2023-02-28 10:00:00"},
    {{"date: 1998-12-01, null"}, minus_90_days, "date", "1998-09-02, null"},
    {{"date: 2024-01-31"}, plus_interval, "timestamp[us]", "2024-03-01 01:00:00.000000"},
    {{"date: 2024-01-31"}, plus_day_duration, "date", "2024-02-01"},
    {{"date: 2024-01-31", "date: 2024-01-01"}, a_minus_b, "duration[s]", "30d 00:00:00"},
    {{"timestamp[us]: 2024-01-31 00:00:00", "duration[ms]: 1500"},
     a_plus_b,
     "timestamp[us]",
     "2024-01-31 00:00:01.500000"},
    {{"date: 2024-01-31", "date: 2024-01-01"}, a_plus_b, NULL, "add cannot take date and date"},
};

MAKE(minute_a, CALL("minute", A))
MAKE(trunc_minute, CALL("date_trunc", T("minute"), A))
MAKE(trunc_year, CALL("date_trunc", T("year"), A))
MAKE(trunc_micro, CALL("date_trunc", T("microsecond"), A))
MAKE(minus_1_month, CALL("date_add_months", A, I(-1)))
MAKE(plus_1_day, CALL("add", A, CALL("interval", I(0), I(1), I(0))))
MAKE(plus_24_hours, CALL("add", A, CALL("interval", I(0), I(0), I(86400000000000))))
MAKE(to_text, cast_to(A, "string", false))
MAKE(to_new_york, cast_to(A, "timestamp[s, America/New_York]", false))
MAKE(to_havana, cast_to(A, "timestamp[s, America/Havana]", false))
MAKE(to_naive, cast_to(A, "timestamp[s]", false))
MAKE(to_day, cast_to(A, "date", false))
MAKE(to_mars, cast_to(A, "timestamp[s, Mars/Olympus]", false))
MAKE(to_25_hours, cast_to(A, "timestamp[s, +25:00]", false))
MAKE(to_clock, cast_to(A, "time[us]", false))

/* By the rules of test_zones_priv.h. Clocks in Berlin change at 01:00Z on 2024-03-31 and 2024-10-27; on Lord Howe by half an
 * hour, at 15:00Z on 2024-04-06 (02:00 is 01:30 again) and 15:30Z on 2024-10-05 (02:00 is 02:30); in Havana at 05:00Z on
 * 2024-03-10 (00:00 is 01:00) and on 2024-11-03 (01:00 is 00:00 again). */
static const struct row zoned[] = {
    {{"timestamp[us, Europe/Berlin]: 2024-03-31 00:59:59Z, 2024-03-31 01:00:00Z, null"},
     hour_a,
     "int32",
     "1, 3, null"},
    {{"timestamp[ns, Europe/Berlin]: 2024-10-27 00:59:59Z, 2024-10-27 01:00:00Z"},
     hour_a,
     "int32",
     "2, 2"},
    {{"timestamp[s, Australia/Lord_Howe]: 2024-04-06 14:59:00Z, 2024-04-06 15:00:00Z"},
     minute_a,
     "int32",
     "59, 30"},
    {{"timestamp[ms, America/New_York]: 2024-01-01 04:59:59Z, 2024-01-01 05:00:00Z"},
     year_a,
     "int32",
     "2023, 2024"},
    {{"timestamp[ms, America/New_York]: 2024-01-01 04:59:59Z"}, date_a, "date", "2023-12-31"},
    {{"timestamp[ms, America/New_York]: 2024-07-01 03:59:59.5Z"},
     time_a,
     "time[us]",
     "23:59:59.500000"},
    {{"timestamp[s, -0530]: 2024-01-01 05:29:59Z, 2024-01-01 05:30:00Z"},
     yearday_a,
     "int32",
     "365, 1"},
    /* the start of an hour within the same half of a fold, or at or before a change within the hour */
    {{"timestamp[s, Europe/Berlin]: 2024-10-27 00:30:00Z, 2024-10-27 01:30:00Z"},
     trunc_hour,
     "timestamp[s, Europe/Berlin]",
     "2024-10-27 00:00:00Z, 2024-10-27 01:00:00Z"},
    {{"timestamp[s, Australia/Lord_Howe]: 2024-04-06 15:15:00Z, 2024-10-05 15:45:00Z"},
     trunc_hour,
     "timestamp[s, Australia/Lord_Howe]",
     "2024-04-06 14:00:00Z, 2024-10-05 15:30:00Z"},
    {{"timestamp[s, Pacific/Chatham]: 2024-09-28 14:10:00Z, 2024-09-28 13:59:00Z"},
     trunc_hour,
     "timestamp[s, Pacific/Chatham]",
     "2024-09-28 14:00:00Z, 2024-09-28 13:15:00Z"},
    {{"timestamp[us, Australia/Lord_Howe]: 2024-04-06 15:15:30Z"},
     trunc_minute,
     "timestamp[us, Australia/Lord_Howe]",
     "2024-04-06 15:15:00.000000Z"},
    {{"timestamp[ns, +05:30]: 2024-04-06 15:15:30.123456789Z"},
     trunc_micro,
     "timestamp[ns, +05:30]",
     "2024-04-06 15:15:30.123456000Z"},
    /* the first of two midnights, and the first moment of a day without one */
    {{"timestamp[ms, America/Havana]: 2024-11-03 05:30:00Z, 2024-03-10 12:00:00Z"},
     trunc_day,
     "timestamp[ms, America/Havana]",
     "2024-11-03 04:00:00.000Z, 2024-03-10 05:00:00.000Z"},
    {{"timestamp[s, Europe/Berlin]: 2024-07-15 12:00:00Z, null"},
     trunc_month,
     "timestamp[s, Europe/Berlin]",
     "2024-06-30 22:00:00Z, null"},
    {{"timestamp[s, America/New_York]: 2024-03-11 03:00:00Z"},
     trunc_week,
     "timestamp[s, America/New_York]",
     "2024-03-04 05:00:00Z"},
    {{"timestamp[s, America/New_York]: 2025-01-01 04:59:59Z"},
     trunc_year,
     "timestamp[s, America/New_York]",
     "2024-01-01 05:00:00Z"},
    /* months and days by the local clock: the offset is kept in a fold, a gap is passed; hours by the instant */
    {{"timestamp[s, Europe/Berlin]: 2024-09-27 00:30:00Z, 2024-02-29 01:30:00Z"},
     add_1_month,
     "timestamp[s, Europe/Berlin]",
     "2024-10-27 00:30:00Z, 2024-03-29 01:30:00Z"},
    {{"timestamp[s, Europe/Berlin]: 2024-11-27 01:30:00Z, 2025-04-30 00:30:00Z"},
     minus_1_month,
     "timestamp[s, Europe/Berlin]",
     "2024-10-27 01:30:00Z, 2025-03-30 01:30:00Z"},
    {{"timestamp[s, Europe/Berlin]: 2024-03-30 12:00:00Z"},
     plus_1_day,
     "timestamp[s, Europe/Berlin]",
     "2024-03-31 11:00:00Z"},
    {{"timestamp[s, Europe/Berlin]: 2024-03-30 12:00:00Z"},
     plus_24_hours,
     "timestamp[s, Europe/Berlin]",
     "2024-03-31 12:00:00Z"},
    /* casts by the local clock; from zone to zone the instant stays */
    {{"date: 2024-07-01, 2024-12-01"},
     to_new_york,
     "timestamp[s, America/New_York]",
     "2024-07-01 04:00:00Z, 2024-12-01 05:00:00Z"},
    {{"date: 2024-03-10"}, to_havana, "timestamp[s, America/Havana]", "2024-03-10 05:00:00Z"},
    {{"timestamp[s]: 2024-03-31 02:30:00, 2024-10-27 01:30:00"},
     to_new_york,
     "timestamp[s, America/New_York]",
     "2024-03-31 06:30:00Z, 2024-10-27 05:30:00Z"},
    {{"timestamp[us, Europe/Berlin]: 2024-03-31 02:30:00Z"},
     to_new_york,
     "timestamp[s, America/New_York]",
     "2024-03-31 02:30:00Z"},
    {{"timestamp[s, Europe/Berlin]: 2024-07-01 22:30:00Z"},
     to_naive,
     "timestamp[s]",
     "2024-07-02 00:30:00"},
    {{"timestamp[s, Europe/Berlin]: 2024-07-01 22:30:00Z"}, to_day, "date", "2024-07-02"},
    {{"timestamp[s, Europe/Berlin]: 2024-07-01 22:30:00Z"},
     to_clock,
     "time[us]",
     "00:30:00.000000"},
    {{"timestamp[s, Australia/Lord_Howe]: 2024-07-01 22:30:00Z"},
     to_text,
     "string",
     "2024-07-02 09:00:00+10:30"},
    {{"string: 2024-07-02 09:00:00, 2024-07-02T09:00:00-01:02:03"},
     to_new_york,
     "timestamp[s, America/New_York]",
     "2024-07-02 13:00:00Z, 2024-07-02 10:02:03Z"},
    /* instants compare whatever their zones; a date is its midnight by the zone's clock; a naive time is a type error */
    {{"timestamp[s, UTC]: 2024-07-01 00:00:00Z", "timestamp[ms, +00:00]: 2024-07-01 00:00:00Z"},
     a_eq_b,
     "bool",
     "true"},
    {{"timestamp[s, UTC]: 2024-07-01 00:00:00Z",
      "timestamp[ms, Europe/Berlin]: 2024-07-01 00:00:00Z"},
     a_eq_b,
     "bool",
     "true"},
    {{"timestamp[s, UTC]: 2024-07-01 00:00:00Z", "timestamp[s]: 2024-07-01 00:00:00"},
     a_eq_b,
     NULL,
     "cannot take"},
    {{"date: 2024-07-01, 2024-07-01",
      "timestamp[s, UTC]: 2024-07-01 00:00:00Z, 2024-06-30 22:00:00Z"},
     a_eq_b,
     "bool",
     "true, false"},
    {{"date: 2024-07-01, 2024-07-01",
      "timestamp[s, Europe/Berlin]: 2024-07-01 00:00:00Z, 2024-06-30 22:00:00Z"},
     a_eq_b,
     "bool",
     "false, true"},
    {{"timestamp[s]: 2024-07-01 00:00:00"}, to_mars, NULL, "unknown time zone 'Mars/Olympus'"},
    {{"timestamp[s]: 2024-07-01 00:00:00"}, to_25_hours, NULL, "'+25:00' is no fixed time zone"},
};

MAKE(to_int, cast_to(A, "int", false))
MAKE(try_int, cast_to(A, "int", true))
MAKE(to_bigint, cast_to(A, "bigint", false))
MAKE(to_tiny, cast_to(A, "int8", false))
MAKE(try_uint8, cast_to(A, "uint8", true))
MAKE(to_uint64, cast_to(A, "uint64", false))
MAKE(to_double, cast_to(A, "double", false))
MAKE(to_float, cast_to(A, "float32", false))
MAKE(to_bool, cast_to(A, "bool", false))
MAKE(to_string, cast_to(A, "string", false))
MAKE(to_decimal, cast_to(A, "decimal(10, 2)", false))
MAKE(try_decimal, cast_to(A, "decimal(4, 2)", true))
MAKE(to_date, cast_to(A, "date", false))
MAKE(try_date, cast_to(A, "date", true))
MAKE(to_timestamp, cast_to(A, "timestamp[us]", false))
MAKE(to_timestamp_ns, cast_to(A, "timestamp[ns]", false))
MAKE(to_timestamp_utc, cast_to(A, "timestamp[us, UTC]", false))
MAKE(to_binary, cast_to(A, "binary", false))

static const struct row casts[] = {
    {{"string:   3  , -7, null"}, to_int, "int32", "3, -7, null"},
    {{"string: 3, x"}, to_int, NULL, "cannot cast 'x' from string to int32, row 1"},
    {{"string: 3, x, 99999999999"}, try_int, "int32", "3, null, null"},
    {{"int64: 1, 2147483648"}, to_int, NULL, "cannot cast '2147483648' from int64 to int32"},
    {{"int64: 127, -128, null"}, to_tiny, "int8", "127, -128, null"},
    {{"int32: 255, 256, -1"}, try_uint8, "uint8", "255, null, null"},
    {{"int64: -1"}, to_uint64, NULL, "out of range"},
    {{"uint64: 18446744073709551615"}, to_bigint, NULL, "out of range"},
    {{"float64: 2.9, -2.9, null"}, to_bigint, "int64", "2, -2, null"},
    {{"float64: nan"}, to_bigint, NULL, "it is no number"},
    {{"float64: 9223372036854775808.0"}, to_bigint, NULL, "out of range"},
    {{"float64: 18446744073709549568.0"}, to_uint64, "uint64", "18446744073709549568"},
    {{"bool: true, false, null"}, to_bigint, "int64", "1, 0, null"},
    {{"bool: true, false, null"}, to_string, "string", "true, false, null"},
    {{"string: true, FALSE, 1"}, to_bool, "bool", "true, false, true"},
    {{"int64: 0, 5"}, to_bool, "bool", "false, true"},
    {{"int64: 3, null"}, to_double, "float64", "3.0, null"},
    {{"uint64: 18446744073709551615"}, to_double, "float64", "1.8446744073709552e+19"},
    {{"float64: 0.1"}, to_float, "float32", "0.1"},
    {{"decimal(15, 2): 328.00, -0.05"}, to_double, "float64", "328.0, -0.05"},
    {{"decimal(15, 2): 328.99, -0.05"}, to_bigint, "int64", "328, 0"},
    {{"decimal(15, 4): 1.2350, -1.2350, 1.2349"},
     to_decimal,
     "decimal(10, 2)",
     "1.24, -1.24, 1.23"},
    {{"decimal(15, 0): 123456789"}, to_decimal, NULL, "does not fit the precision"},
    {{"int64: 12, 123456789"}, try_decimal, "decimal(4, 2)", "12.00, null"},
    {{"string: 1.23e2, 1E-1, .5"}, to_decimal, "decimal(10, 2)", "123.00, 0.10, 0.50"},
    {{"float64: 1.005, 2.5"}, to_decimal, "decimal(10, 2)", "1.00, 2.50"},
    {{"int64: 5, -5, null"}, to_string, "string", "5, -5, null"},
    {{"decimal(5, 2): -0.05, 1.5"}, to_string, "string", "-0.05, 1.50"},
    {{"date: 2024-02-29, null"}, to_string, "string", "2024-02-29, null"},
    {{"timestamp[ms, UTC]: 2024-02-29 01:02:03.004Z"},
     to_string,
     "string",
     "2024-02-29 01:02:03.004Z"},
    {{"timestamp[s, Europe/Berlin]: 2024-02-29 01:02:03Z"},
     to_string,
     "string",
     "2024-02-29 02:02:03+01:00"},
    {{"string: 2024-02-29, null"}, to_date, "date", "2024-02-29, null"},
    {{"string: 2024-02-30"}, try_date, "date", "null"},
    {{"timestamp[us]: 1969-12-31 23:00:00"}, to_date, "date", "1969-12-31"},
    {{"date: 1969-12-31, null"}, to_timestamp, "timestamp[us]", "1969-12-31 00:00:00.000000, null"},
    {{"timestamp[s]: 2500-01-01 00:00:00"}, to_timestamp_ns, NULL, "out of range"},
    {{"string: 2024-01-02T03:04:05+02:00, 2024-01-02, 2024-01-02 03:04"},
     to_timestamp_utc,
     "timestamp[us, UTC]",
     "2024-01-02 01:04:05.000000Z, 2024-01-02 00:00:00.000000Z, 2024-01-02 03:04:00.000000Z"},
    {{"string: abc"}, to_binary, "binary", "616263"},
    {{"null: null"}, to_string, "string", "null"},
};

static void run_table(const struct row *rows, int64_t count)
{
    failures = 0;
    for (int64_t i = 0; i < count; i++) {
        run_row(&rows[i]);
    }
    assert_int_equal(failures, 0);
}

#define TABLE_TEST(name)                     \
    static void test_##name(void **state)    \
    {                                        \
        (void)state;                         \
        run_table(name, GAR_COUNT_OF(name)); \
    }

TABLE_TEST(arithmetic)
TABLE_TEST(decimals)
TABLE_TEST(comparisons)
TABLE_TEST(logic)
TABLE_TEST(text)
TABLE_TEST(temporal)
TABLE_TEST(zoned)
TABLE_TEST(casts)

static struct gar_expr *in_list(struct gar_expr *arg, const char *set_text)
{
    struct gar_column *set = column_of(set_text);
    struct gar_expr *expr = NULL;
    OK(gar_expr_new_in_list(arg, set, &expr, err));
    gar_column_unref(set);
    gar_expr_unref(arg);
    return expr;
}

MAKE(in_ints, in_list(A, "int64: 1, null"))
MAKE(in_many, in_list(A, "int64: 1, 2, 3, 4, 5, 6, 7, 8, 9, 1000"))
MAKE(in_empty, in_list(A, "int64: null"))
MAKE(in_texts, in_list(A, "string: x, abcdefghijklmnopq, null"))
MAKE(in_many_texts, in_list(A, "string: x, abcdefghijklmnopq, a, b, c, d, e, f, g"))
MAKE(in_dates, in_list(A, "string: 2024-01-01, 2024-02-29"))
MAKE(in_floats, in_list(A, "double: 1.0, 2.5"))

static const struct row membership[] = {
    {{"int64: 1, 2, 3, null, 4, 5"}, in_ints, "bool", "true, false, false, null, false, false"},
    {{"int8: 1, 12, 9, null"}, in_many, "bool", "true, false, true, null"},
    {{"decimal(10, 2): 1.00, 1.01"}, in_many, "bool", "true, false"},
    {{"int64: 1, null"}, in_empty, "bool", "false, null"},
    {{"string: x, y, abcdefghijklmnopq, abcdefghijklmnopr, null"},
     in_texts,
     "bool",
     "true, false, true, false, null"},
    {{"string: x, y, abcdefghijklmnopq, abcdefghijklmnopr, null"},
     in_many_texts,
     "bool",
     "true, false, true, false, null"},
    {{"date: 2024-02-29, 2024-03-01"}, in_dates, "bool", "true, false"},
    {{"int64: 1, 2"}, in_floats, "bool", "true, false"},
    {{"float64: 2.5, nan"}, in_floats, "bool", "true, false"},
    {{"int64: 1"}, in_texts, NULL, "in cannot look for int64 among string"},
};
TABLE_TEST(membership)

int main(void)
{
    gar_zone_set_loader(test_zone_load);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arithmetic),  cmocka_unit_test(test_decimals),
        cmocka_unit_test(test_comparisons), cmocka_unit_test(test_logic),
        cmocka_unit_test(test_text),        cmocka_unit_test(test_temporal),
        cmocka_unit_test(test_zoned),       cmocka_unit_test(test_casts),
        cmocka_unit_test(test_membership),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
