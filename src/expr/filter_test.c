/* SPDX-License-Identifier: Apache-2.0 */
/* gar_eval_filter selects the rows for which gar_eval_run says true: over random batches, layouts, selections, and over
 * many batches of one evaluator, while it learns how many conjuncts to look at first. Then what stays the same: registers
 * shared by outputs, constants, printing, typing errors. */
#include "base/cpu.h"
#include "expr/test_support_priv.h"

enum { ROWS = 5000, PREDICATES = 10 };

static uint64_t seed = 0x2545f4914f6cdd1dU;

static uint64_t random_below(uint64_t bound)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % bound;
}

/* Random rows of a type with some nulls; flat or coded. */
static struct gar_column *random_column(struct gar_type type, bool is_coded)
{
    struct gar_builder builder;
    gar_builder_init(&builder, gar_memory_system(), type);
    const int64_t entries = is_coded ? 40 : ROWS;
    for (int64_t i = 0; i < entries; i++) {
        struct gar_value value = {.type = type, .is_valid = random_below(10) != 0};
        const int64_t number = (int64_t)random_below(1000) - 200;
        if (is_coded) {
            value.is_valid = true;
        }
        if (type.id == GAR_STRING) {
            char text[40];
            snprintf(text, sizeof text, random_below(2) == 0 ? "%lld" : "a rather long text %lld",
                     (long long)number);
            struct gar_value made = {0};
            OK(gar_value_from_text(type, text, (int64_t)strlen(text), &made, err));
            made.is_valid = value.is_valid;
            OK(gar_builder_append_value(&builder, &made, err));
            made.is_valid = true;
            gar_value_destroy(&made);
            continue;
        }
        if (type.id == GAR_FLOAT64) {
            value.f64 = (double)number / 4.0;
        } else if (type.id == GAR_DECIMAL128) {
            value.i128 = random_below(200) == 0 ? (gar_i128)number * ((gar_i128)1 << 80) : number;
        } else {
            value.i64 = number;
        }
        OK(gar_builder_append_value(&builder, &value, err));
    }
    struct gar_column *column = NULL;
    OK(gar_builder_finish(&builder, &column, err));
    gar_builder_destroy(&builder);
    if (!is_coded) {
        return column;
    }
    struct gar_column *coded = as_dictionary(column);
    uint32_t *rows = gar_malloc(ROWS * 4);
    for (int64_t i = 0; i < ROWS; i++) {
        rows[i] = (uint32_t)random_below((uint64_t)entries);
    }
    struct gar_column *out = NULL;
    OK(gar_column_gather(coded, rows, ROWS, gar_memory_system(), &out, err));
    gar_free(rows);
    gar_column_unref(coded);
    gar_column_unref(column);
    return out;
}

/* a int64, b double, c decimal, d string, e date, f int32 */
static struct gar_batch *random_batch(void)
{
    const struct gar_type types[6] = {gar_type_of(GAR_INT64),  gar_type_of(GAR_FLOAT64),
                                      gar_type_decimal(38, 2), gar_type_of(GAR_STRING),
                                      gar_type_of(GAR_DATE),   gar_type_of(GAR_INT32)};
    struct gar_column *columns[6];
    for (int64_t i = 0; i < 6; i++) {
        columns[i] = random_column(types[i], random_below(2) == 0);
    }
    return batch_of(columns, 6);
}

static struct gar_batch *random_selection(struct gar_batch *batch)
{
    struct gar_buffer *selection = NULL;
    OK(gar_buffer_new(gar_memory_system(), batch->rows * 4, &selection, err));
    int64_t count = 0;
    const uint64_t step = 1 + random_below(5);
    for (int64_t i = 0; i < batch->rows; i++) {
        if (random_below(step) == 0) {
            ((uint32_t *)(void *)selection->data)[count++] = (uint32_t)i;
        }
    }
    struct gar_batch *out = NULL;
    OK(gar_batch_select(batch, selection, count, &out, err));
    gar_batch_unref(batch);
    return out;
}

#define A         col("a")
#define B         col("b")
#define C         col("c")
#define D         col("d")
#define E         col("e")
#define F         col("f")
#define CALL(...) call(__VA_ARGS__, NULL)
#define I(v)      int_lit(v)

static struct gar_expr *both(struct gar_expr *a, struct gar_expr *b)
{
    return CALL("and", a, b);
}

/* Predicates of every kind; the numbers inside are fixed, the data is random. */
static struct gar_expr *predicate(int32_t i)
{
    switch (i) {
    case 0: return CALL("less", A, I(100));
    case 1: return both(CALL("greater_equal", A, I(0)), CALL("less", A, I(50)));
    case 2:
        return both(both(CALL("greater", F, I(-100)), CALL("greater", B, lit("double", "10"))),
                    both(CALL("less_equal", F, I(300)), CALL("like", D, text_lit("%text 1%"))));
    case 3: return both(CALL("greater", C, I(1)), both(CALL("less", C, I(3)), CALL("not_null", E)));
    case 4: return CALL("or", CALL("is_null", A), CALL("equal", D, text_lit("7")));
    case 5:
        return both(CALL("greater", A, I(0)), CALL("greater", CALL("modulo", I(1000), A), I(3)));
    /* the multiplication overflows for every row that the first test drops */
    case 6:
        return both(CALL("less", A, I(2)),
                    CALL("less", CALL("multiply", A, lit("bigint", "40000000000000000")), I(1)));
    case 7:
        return both(CALL("greater", CALL("year", E), I(1970)),
                    CALL("less", CALL("month", E), I(6)));
    case 8:
        return both(CALL("between", E, lit("date", "1970-03-01"), lit("date", "1971-06-01")),
                    CALL("is_null", B));
    default:
        return both(CALL("greater", A, F),
                    both(CALL("less", B, lit("double", "1e9")), CALL("not_equal", C, I(0))));
    }
}

static void check_batch(struct gar_eval *filter, struct gar_eval *run,
                        const struct gar_batch *batch)
{
    struct gar_column *truth = NULL;
    OK(gar_eval_run(run, batch, &truth, err));
    OK(gar_column_validate(truth, err));
    struct gar_buffer *selection = NULL;
    int64_t selected = 0;
    OK(gar_eval_filter(filter, batch, &selection, &selected, err));
    int64_t at = 0;
    for (int64_t i = 0; i < batch->selected; i++) {
        struct gar_value value = {0};
        OK(gar_value_from_column(truth, i, &value, err));
        if (!value.is_valid || !value.boolean) {
            continue;
        }
        const uint32_t row = batch->selection != NULL ? batch->selection[i] : (uint32_t)i;
        assert_true(at < selected);
        assert_int_equal(selection == NULL ? (uint32_t)at
                                           : ((const uint32_t *)(const void *)selection->data)[at],
                         row);
        at++;
    }
    assert_int_equal(at, selected);
    assert_true(selection != NULL || selected == batch->rows);
    gar_buffer_unref(selection);
    gar_column_unref(truth);
}

static void test_filter_is_run(void **state)
{
    (void)state;
    for (int32_t p = 0; p < PREDICATES; p++) {
        struct gar_expr *expr = predicate(p);
        struct gar_batch *batch = random_batch();
        struct gar_program *program = NULL;
        struct gar_eval *filter = NULL;
        struct gar_eval *run = NULL;
        OK(gar_program_new(batch->schema, &expr, 1, &program, err));
        OK(gar_eval_new(program, gar_memory_system(), &filter, err));
        OK(gar_eval_new(program, gar_memory_system(), &run, err));
        gar_batch_unref(batch);
        for (int32_t round = 0; round < 8; round++) {
            batch = random_batch();
            if (round % 2 == 1) {
                batch = random_selection(batch);
            }
            check_batch(filter, run, batch);
            gar_batch_unref(batch);
        }
        gar_eval_free(filter);
        gar_eval_free(run);
        gar_program_unref(program);
        gar_expr_unref(expr);
    }
}

static void test_every_isa(void **state)
{
    (void)state;
    for (enum gar_isa isa = GAR_ISA_PORTABLE; isa <= GAR_ISA_AVX512; isa++) {
        if (gar_cpu_set_isa(isa) == isa) {
            seed = 77;
            test_filter_is_run(state);
        }
    }
}

/* Several outputs share their parts, and each is right. */
static void test_shared_parts(void **state)
{
    (void)state;
    struct gar_column *columns[2] = {column_of("decimal(15, 2): 10.00, 20.00, null"),
                                     column_of("decimal(15, 2): 0.10, 0.25, 0")};
    struct gar_batch *batch = batch_of(columns, 2);
    struct gar_expr *exprs[5] = {
        CALL("multiply", A, CALL("subtract", I(1), B)),
        CALL("multiply", CALL("multiply", A, CALL("subtract", I(1), B)), CALL("add", I(1), B)), A,
        CALL("multiply", A, CALL("subtract", I(1), B)), lit("string", "a text that is long")};
    static const char *const want[5] = {
        "9.0000, 15.0000, null", "9.900000, 18.750000, null", "10.00, 20.00, null",
        "9.0000, 15.0000, null", "a text that is long, a text that is long, a text that is long"};
    struct gar_program *program = NULL;
    struct gar_eval *eval = NULL;
    struct gar_column *out[5];
    OK(gar_program_new(batch->schema, exprs, 5, &program, err));
    OK(gar_eval_new(program, gar_memory_system(), &eval, err));
    for (int32_t round = 0; round < 2; round++) {
        OK(gar_eval_run(eval, batch, out, err));
        for (int32_t i = 0; i < 5; i++) {
            struct gar_strbuf text = {0};
            column_text(out[i], &text);
            assert_string_equal(gar_strbuf_text(&text), want[i]);
            gar_strbuf_destroy(&text);
            if (i == 2) {
                assert_ptr_equal(out[i], batch->columns[0]);
            }
            gar_column_unref(out[i]);
        }
    }
    gar_eval_free(eval);
    gar_program_unref(program);
    for (int32_t i = 0; i < 5; i++) {
        gar_expr_unref(exprs[i]);
    }
    gar_batch_unref(batch);
}

/* A function of a dictionary column is a dictionary column again, with one id as long as its input has one. */
static void test_dictionary_result(void **state)
{
    (void)state;
    struct gar_column *columns[1] = {random_column(gar_type_of(GAR_DATE), true)};
    struct gar_batch *batch = batch_of(columns, 1);
    struct gar_expr *expr = CALL("year", A);
    struct gar_program *program = NULL;
    struct gar_eval *eval = NULL;
    struct gar_column *first = NULL;
    struct gar_column *second = NULL;
    OK(gar_program_new(batch->schema, &expr, 1, &program, err));
    OK(gar_eval_new(program, gar_memory_system(), &eval, err));
    OK(gar_eval_run(eval, batch, &first, err));
    OK(gar_eval_run(eval, batch, &second, err));
    assert_int_equal(first->encoding, GAR_DICTIONARY);
    assert_int_equal(first->dictionary_id, second->dictionary_id);
    assert_int_not_equal(first->dictionary_id, batch->columns[0]->dictionary_id);
    OK(gar_column_validate(first, err));
    gar_column_unref(first);
    gar_column_unref(second);
    gar_eval_free(eval);
    gar_program_unref(program);
    gar_expr_unref(expr);
    gar_batch_unref(batch);
}

/* What was worked out of one dictionary is not used for another, though it may lie at the same address: here the first
 * one's entries are simply changed. */
static void test_dictionary_address(void **state)
{
    (void)state;
    struct gar_column *flat =
        column_of("decimal(15, 2): 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08");
    struct gar_column *coded = as_dictionary(flat);
    uint32_t rows[64];
    for (uint32_t i = 0; i < 64; i++) {
        rows[i] = i % 8;
    }
    struct gar_column *many[1] = {NULL}; /* worth working on the entries */
    OK(gar_column_gather(coded, rows, 64, gar_memory_system(), &many[0], err));
    struct gar_column *few[1] = {NULL}; /* not worth it */
    OK(gar_column_gather(coded, rows, 2, gar_memory_system(), &few[0], err));
    few[0]->dictionary_id = gar_dictionary_next_id();
    struct gar_batch *first = batch_of(many, 1);
    struct gar_batch *second = batch_of(few, 1);
    struct gar_expr *expr = CALL("add", A, A);
    struct gar_program *program = NULL;
    struct gar_eval *eval = NULL;
    struct gar_column *out = NULL;
    OK(gar_program_new(first->schema, &expr, 1, &program, err));
    OK(gar_eval_new(program, gar_memory_system(), &eval, err));
    OK(gar_eval_run(eval, first, &out, err));
    gar_column_unref(out);
    ((gar_i128 *)gar_column_values_mut(coded->dictionary))[1] = 500;
    OK(gar_eval_run(eval, second, &out, err));
    const struct gar_column *values = NULL;
    const int64_t place = gar_column_locate(out, 1, &values);
    assert_int_equal((int64_t)((const gar_i128 *)values->values)[place], 1000);
    gar_column_unref(out);
    gar_eval_free(eval);
    gar_program_unref(program);
    gar_expr_unref(expr);
    gar_batch_unref(first);
    gar_batch_unref(second);
    gar_column_unref(coded);
    gar_column_unref(flat);
}

/* An entry that no row uses must not raise its error. */
static void test_unused_entry(void **state)
{
    (void)state;
    struct gar_column *flat = column_of("string: 1, x, 3");
    struct gar_column *coded = as_dictionary(flat);
    uint32_t rows[64];
    for (uint32_t i = 0; i < 64; i++) {
        rows[i] = i % 2 * 2; /* never the x */
    }
    struct gar_column *columns[1] = {NULL};
    OK(gar_column_gather(coded, rows, 64, gar_memory_system(), &columns[0], err));
    struct gar_batch *batch = batch_of(columns, 1);
    struct gar_expr *expr = cast_to(A, "int", false);
    struct gar_column *out = NULL;
    OK(evaluate(expr, batch, &out, err));
    assert_int_equal(gar_column_null_count(out), 0);
    gar_column_unref(out);
    gar_expr_unref(expr);
    gar_batch_unref(batch);
    gar_column_unref(coded);
    gar_column_unref(flat);
}

static void check_print(struct gar_expr *expr, const char *want)
{
    struct gar_strbuf text = {0};
    gar_expr_print(expr, &text);
    assert_string_equal(gar_strbuf_text(&text), want);
    gar_strbuf_destroy(&text);
    gar_expr_unref(expr);
}

static void test_print(void **state)
{
    (void)state;
    check_print(CALL("multiply", CALL("add", A, I(1)), B), "(a + 1) * b");
    check_print(CALL("add", A, CALL("multiply", I(1), B)), "a + 1 * b");
    check_print(CALL("subtract", A, CALL("subtract", B, C)), "a - (b - c)");
    check_print(CALL("not", CALL("and", A, CALL("or", B, C))), "not (a and (b or c))");
    check_print(CALL("like", D, text_lit("x%")), "d like 'x%'");
    check_print(cast_to(A, "bigint", false), "cast(a as int64)");
    check_print(CALL("when", CALL("is_null", A), I(1), I(2)),
                "case when a is null then 1 else 2 end");
    check_print(CALL("negate", CALL("negate", A)), "-(-a)");
    check_print(CALL("power", A, I(-2)), "power(a, -2)");
    check_print(CALL("multiply", A, I(-2)), "a * -2");
    check_print(col("order"), "\"order\"");
    check_print(CALL("count"), "count(*)");
}

static void check_type_error(struct gar_expr *expr, const char *want)
{
    struct gar_batch *batch = random_batch();
    struct gar_error err = GAR_ERROR_INIT;
    struct gar_type type;
    assert_true(gar_expr_type(expr, batch->schema, true, &type, &err) < 0);
    if (strstr(err.message, want) == NULL) {
        fail_msg("'%s' lacks '%s'", err.message, want);
    }
    gar_batch_unref(batch);
    gar_expr_unref(expr);
}

static void test_type_errors(void **state)
{
    (void)state;
    check_type_error(CALL("lower", A), "lower takes a string, not int64");
    check_type_error(CALL("add", A, D),
                     "add cannot take int64 and string; cast the text to a number");
    check_type_error(CALL("sum", CALL("sum", A)), "sum stands inside another aggregate");
    check_type_error(col("aa"), "unknown column 'aa'");
    check_type_error(CALL("interval", I(1), I(0), I(0)), "an interval is no value of its own");
    check_type_error(CALL("equal", A, E), "equal cannot take int64 with date");
    check_type_error(CALL("and", A, CALL("is_null", A)), "and takes bool, not int64");
    check_type_error(CALL("equal", E, text_lit("2024-13-01")), "cannot cast '2024-13-01'");
    struct gar_expr *expr = NULL;
    struct gar_error err = GAR_ERROR_INIT;
    assert_int_equal(gar_expr_new_call_by_name("uper", NULL, 0, &expr, &err), GAR_ERR_VALUE);
    assert_non_null(strstr(err.message, "did you mean 'upper'?"));
}

/* Every allocation of making and running a program fails once; each time the error is clean. */
static void test_allocation_faults(void **state)
{
    (void)state;
    struct gar_batch *batch = random_batch();
    struct gar_expr *expr =
        CALL("concat", CALL("upper", D), cast_to(CALL("add", A, I(1)), "string", false));
    int64_t failed = 0;
    for (int64_t n = 1; n < 400; n++) {
        struct gar_column *out = NULL;
        struct gar_error err = GAR_ERROR_INIT;
        (void)gar_alloc_fail_at(n, false);
        const enum gar_status status = evaluate(expr, batch, &out, &err);
        (void)gar_alloc_fail_at(0, false);
        if (status >= 0) {
            gar_column_unref(out);
            break;
        }
        assert_int_equal(status, GAR_ERR_NOMEM);
        failed++;
    }
    assert_true(failed > 10);
    gar_expr_unref(expr);
    gar_batch_unref(batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filter_is_run),
        cmocka_unit_test(test_every_isa),
        cmocka_unit_test(test_shared_parts),
        cmocka_unit_test(test_dictionary_result),
        cmocka_unit_test(test_dictionary_address),
        cmocka_unit_test(test_unused_entry),
        cmocka_unit_test(test_print),
        cmocka_unit_test(test_type_errors),
        cmocka_unit_test(test_allocation_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
