/* SPDX-License-Identifier: Apache-2.0 */
/* What expressions cost a row, over batches of 64 K rows: the shapes of TPC-H Q1 and Q6, chains, filters, texts, dates.
 * Prints the fastest and the median of several runs in nanoseconds a row for each instruction set. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/batch.h"
#include "base/alloc.h"
#include "base/cpu.h"
#include "base/memory.h"
#include "expr/program.h"
#include "os/clock.h"

enum { RUNS = 41, ROWS = 65536 };

#define MUST(call)                                                                      \
    do {                                                                                \
        if ((call) < 0) {                                                               \
            (void)fprintf(stderr, "expr_bench: %s failed: %s\n", #call, error.message); \
            exit(1); /* NOLINT(concurrency-mt-unsafe): a program that ends */           \
        }                                                                               \
    } while (0)

static struct gar_error error = GAR_ERROR_INIT;
static uint64_t seed = 88172645463325252U;

static uint64_t random_below(uint64_t bound)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % bound;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* --- columns --- */

static struct gar_column *new_column(struct gar_type type, int64_t rows)
{
    struct gar_column *column = NULL;
    MUST(gar_column_new(gar_memory_system(), type, rows, false, &column, &error));
    return column;
}

static struct gar_column *decimals(int32_t precision, int32_t scale, int64_t rows, int64_t step,
                                   uint64_t bound)
{
    struct gar_column *column = new_column(gar_type_decimal(precision, scale), rows);
    gar_i128 *v = gar_column_values_mut(column);
    for (int64_t i = 0; i < rows; i++) {
        v[i] = step > 0 ? i * step : (int64_t)random_below(bound);
    }
    return column;
}

static struct gar_column *dates(int64_t rows, bool in_order)
{
    struct gar_column *column = new_column(gar_type_of(GAR_DATE), rows);
    int32_t *v = gar_column_values_mut(column);
    for (int64_t i = 0; i < rows; i++) {
        v[i] = 8036 + (int32_t)(in_order ? i : (int64_t)random_below(2526));
    }
    return column;
}

static struct gar_column *integers(uint64_t bound)
{
    struct gar_column *column = new_column(gar_type_of(GAR_INT64), ROWS);
    int64_t *v = gar_column_values_mut(column);
    for (int64_t i = 0; i < ROWS; i++) {
        v[i] = (int64_t)random_below(bound);
    }
    return column;
}

static struct gar_column *doubles(void)
{
    struct gar_column *column = new_column(gar_type_of(GAR_FLOAT64), ROWS);
    double *v = gar_column_values_mut(column);
    for (int64_t i = 0; i < ROWS; i++) {
        v[i] = (double)random_below(1000000) / 1000.0;
    }
    return column;
}

static struct gar_column *texts(int32_t size)
{
    struct gar_column *column = new_column(gar_type_of(GAR_STRING), ROWS);
    struct gar_buffer *buffer = NULL;
    MUST(gar_buffer_new(gar_memory_system(), (int64_t)ROWS * size, &buffer, &error));
    for (int64_t i = 0; i < (int64_t)ROWS * size; i++) {
        buffer->data[i] = (uint8_t)("etaoin shrdlu bcfg"[random_below(18)]);
    }
    struct gar_string_view *v = gar_column_values_mut(column);
    for (int32_t i = 0; i < ROWS; i++) {
        v[i] = gar_view_make(buffer->data + (int64_t)i * size, size, 0, i * size);
    }
    int32_t index = 0;
    MUST(gar_column_add_data(column, buffer, &index, &error));
    return column;
}

/* entries (moved) behind random codes */
static struct gar_column *coded(struct gar_column *entries)
{
    struct gar_buffer *codes = NULL;
    MUST(gar_buffer_new(gar_memory_system(), ROWS * 4, &codes, &error));
    for (int64_t i = 0; i < ROWS; i++) {
        ((uint32_t *)(void *)codes->data)[i] = (uint32_t)random_below((uint64_t)entries->length);
    }
    struct gar_column *column = NULL;
    MUST(gar_column_new_dictionary(codes, ROWS, NULL, 0, entries, gar_dictionary_next_id(), &column,
                                   &error));
    return column;
}

static const char *const names[] = {
    "price",    "discount",  "tax",           "quantity", "ship", "price_coded", "discount_flat",
    "tax_flat", "ship_flat", "quantity_flat", "k",        "x",    "short",       "long"};

static struct gar_batch *make_batch(void)
{
    struct gar_column *columns[] = {
        decimals(15, 2, ROWS, 0, 10494950),
        coded(decimals(15, 2, 11, 1, 0)),
        coded(decimals(15, 2, 9, 1, 0)),
        coded(decimals(15, 2, 50, 100, 0)),
        coded(dates(2526, true)),
        coded(decimals(15, 2, 20000, 977, 0)),
        decimals(15, 2, ROWS, 0, 11),
        decimals(15, 2, ROWS, 0, 9),
        dates(ROWS, false),
        decimals(15, 2, ROWS, 0, 5000),
        integers(1000),
        doubles(),
        texts(10),
        texts(44),
    };
    struct gar_field fields[GAR_COUNT_OF(names)];
    memset(fields, 0, sizeof fields);
    for (int64_t i = 0; i < GAR_COUNT_OF(names); i++) {
        fields[i].name = gar_strdup(names[i]);
        fields[i].type = columns[i]->type;
    }
    struct gar_schema *schema = NULL;
    MUST(gar_schema_new(fields, GAR_COUNT_OF(names), false, &schema, &error));
    struct gar_batch *batch = NULL;
    MUST(gar_batch_new(schema, columns, ROWS, &batch, &error));
    return batch;
}

/* --- expressions; nothing is freed, the program ends --- */

static struct gar_expr *col(const char *name)
{
    struct gar_expr *expr = NULL;
    MUST(gar_expr_new_column(name, &expr, &error));
    return expr;
}

static struct gar_expr *literal(struct gar_value value)
{
    struct gar_expr *expr = NULL;
    value.is_valid = true;
    MUST(gar_expr_new_literal(&value, &expr, &error));
    return expr;
}

static struct gar_expr *integer(int64_t v)
{
    return literal((struct gar_value){.type = gar_type_of(GAR_INT64), .i64 = v});
}

static struct gar_expr *number(double v)
{
    return literal((struct gar_value){.type = gar_type_of(GAR_FLOAT64), .f64 = v});
}

static struct gar_expr *text(const char *v)
{
    struct gar_value value = {0};
    MUST(gar_value_from_text(gar_type_of(GAR_STRING), v, (int64_t)strlen(v), &value, &error));
    return literal(value);
}

static struct gar_expr *day(int32_t days)
{
    return literal((struct gar_value){.type = gar_type_of(GAR_DATE), .i64 = days});
}

static struct gar_expr *cents(int64_t v)
{
    return literal((struct gar_value){.type = gar_type_decimal(15, 2), .i128 = v});
}

static struct gar_expr *two(const char *name, struct gar_expr *a, struct gar_expr *b)
{
    struct gar_expr *args[2] = {a, b};
    struct gar_expr *expr = NULL;
    MUST(gar_expr_new_call_by_name(name, args, b == NULL ? 1 : 2, &expr, &error));
    return expr;
}

static struct gar_expr *one(const char *name, struct gar_expr *a)
{
    return two(name, a, NULL);
}

static struct gar_expr *q6(const char *ship, const char *discount, const char *quantity)
{
    struct gar_expr *dates_fit =
        two("and", two("greater_equal", col(ship), day(8766)), two("less", col(ship), day(9131)));
    struct gar_expr *discount_fits = two("and", two("greater_equal", col(discount), cents(5)),
                                         two("less_equal", col(discount), cents(7)));
    return two("and", two("and", dates_fit, discount_fits),
               two("less", col(quantity), integer(24)));
}

static struct gar_expr *disc_price(const char *price, const char *discount)
{
    return two("multiply", col(price), two("subtract", integer(1), col(discount)));
}

static struct gar_expr *charge(const char *price, const char *discount, const char *tax)
{
    return two("multiply", disc_price(price, discount), two("add", integer(1), col(tax)));
}

static struct gar_expr *chain(void)
{
    struct gar_expr *expr = col("x");
    for (int i = 0; i < 3; i++) {
        expr = two("add", two("multiply", expr, number(1.0001)), number(0.5));
    }
    return expr;
}

/* --- timing --- */

static void report(const char *what, const struct gar_batch *batch, struct gar_expr *const *exprs,
                   int64_t count, bool is_filter)
{
    printf("%-40s", what);
    for (enum gar_isa isa = GAR_ISA_PORTABLE; isa <= GAR_ISA_AVX512; isa++) {
        if (gar_cpu_set_isa(isa) != isa) {
            continue;
        }
        struct gar_program *program = NULL;
        struct gar_eval *eval = NULL;
        MUST(gar_program_new(batch->schema, exprs, count, &program, &error));
        MUST(gar_eval_new(program, gar_memory_system(), &eval, &error));
        double each[RUNS];
        for (int i = 0; i < RUNS; i++) {
            const int64_t start_ns = gar_clock_ns();
            if (is_filter) {
                struct gar_buffer *selection = NULL;
                int64_t selected = 0;
                MUST(gar_eval_filter(eval, batch, &selection, &selected, &error));
                gar_buffer_unref(selection);
            } else {
                struct gar_column *out[4] = {0};
                MUST(gar_eval_run(eval, batch, out, &error));
                for (int64_t k = 0; k < count; k++) {
                    gar_column_unref(out[k]);
                }
            }
            each[i] = (double)(gar_clock_ns() - start_ns) / ROWS;
        }
        qsort(each, RUNS, sizeof each[0], compare);
        printf("  %s %6.2f %6.2f", gar_isa_name(isa), each[0], each[RUNS / 2]);
        gar_eval_free(eval);
        gar_program_unref(program);
    }
    printf("\n");
}

static void report_one(const char *what, const struct gar_batch *batch, struct gar_expr *expr)
{
    report(what, batch, &expr, 1, false);
}

static void report_filter(const char *what, const struct gar_batch *batch, struct gar_expr *expr)
{
    report(what, batch, &expr, 1, true);
}

int main(void)
{
    /* results come from malloc here: keep what is freed, as the engine's pool does */
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 30);
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
    const struct gar_batch *batch = make_batch();
    report_filter("q6 filter, dictionaries", batch, q6("ship", "discount", "quantity"));
    report_filter("q6 filter, flat", batch, q6("ship_flat", "discount_flat", "quantity_flat"));
    report_one("price * (1 - discount), coded discount", batch, disc_price("price", "discount"));
    report_one("price * (1 - discount), all coded", batch, disc_price("price_coded", "discount"));
    report_one("price * (1 - discount), flat", batch, disc_price("price", "discount_flat"));
    struct gar_expr *q1[] = {disc_price("price", "discount"), charge("price", "discount", "tax")};
    report("q1: both products, coded", batch, q1, 2, false);
    struct gar_expr *q1_flat[] = {disc_price("price", "discount_flat"),
                                  charge("price", "discount_flat", "tax_flat")};
    report("q1: both products, flat", batch, q1_flat, 2, false);
    report_one("six chained double operations", batch, chain());
    report_one("k + 1", batch, two("add", col("k"), integer(1)));
    report_one("k * k + k", batch, two("add", two("multiply", col("k"), col("k")), col("k")));
    report_filter("k < 10 (1 %)", batch, two("less", col("k"), integer(10)));
    report_filter("k < 500 (50 %)", batch, two("less", col("k"), integer(500)));
    report_filter(
        "k < 10 and x < 500", batch,
        two("and", two("less", col("k"), integer(10)), two("less", col("x"), number(500))));
    report_filter(
        "k < 900 and x < 500", batch,
        two("and", two("less", col("k"), integer(900)), two("less", col("x"), number(500))));
    report_one("k < 500 as a column", batch, two("less", col("k"), integer(500)));
    report_one("year(date)", batch, one("year", col("ship_flat")));
    report_one("cast decimal as double", batch, two("divide", col("price"), number(1)));
    report_filter("short = 'etaoin shr'", batch, two("equal", col("short"), text("etaoin shr")));
    report_filter("long like '%shrdlu%'", batch, two("like", col("long"), text("%shrdlu%")));
    report_filter("long like 'eta%'", batch, two("like", col("long"), text("eta%")));
    report_one("upper(long)", batch, one("upper", col("long")));
    return 0;
}
