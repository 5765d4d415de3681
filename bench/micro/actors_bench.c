/* SPDX-License-Identifier: Apache-2.0 */
/* What an actor pool costs: its start (to the first row out), and each batch of two float64 columns in and one out,
 * above the start. One actor that adds the columns. Prints microseconds, the fastest and the median of several runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "actors/apply.h"
#include "base/alloc.h"
#include "os/clock.h"

enum { RUNS = 7 };

static struct gar_runtime *runtime;
static struct gar_schema *input;
static struct gar_schema *output;
static const char *const *program;
static char code[4096];
static int64_t code_bytes;

static void check(enum gar_status status, const struct gar_error *err)
{
    if (status < 0) {
        (void)fprintf(stderr, "actors_bench: %s\n", err->message);
        exit(1); /* NOLINT(concurrency-mt-unsafe): a program that ends */
    }
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct gar_batch *make_batch(int64_t rows)
{
    struct gar_error err = GAR_ERROR_INIT;
    struct gar_column *columns[2] = {NULL, NULL};
    struct gar_batch *batch = NULL;
    for (int k = 0; k < 2; k++) {
        check(gar_column_new(gar_memory_system(), gar_type_of(GAR_FLOAT64), rows, false,
                             &columns[k], &err),
              &err);
        double *values = gar_column_values_mut(columns[k]);
        for (int64_t i = 0; i < rows; i++) {
            values[i] = (double)i;
        }
        columns[k]->null_count = 0;
    }
    check(gar_batch_new(input, columns, rows, &batch, &err), &err);
    return batch;
}

/* Nanoseconds to the first batch and to the end. */
static void run_once(int32_t actors, int64_t rows, int64_t count, int64_t *out_first,
                     int64_t *out_all)
{
    struct gar_error err = GAR_ERROR_INIT;
    struct gar_actor_seat seats[16];
    struct gar_stream *in = NULL;
    struct gar_stream *out = NULL;
    struct gar_batch **batches = gar_calloc(count, (int64_t)sizeof batches[0]);
    struct gar_batch *one = make_batch(rows);
    for (int64_t i = 0; i < count; i++) {
        batches[i] = one;
    }
    memset(seats, 0, sizeof seats);
    check(gar_stream_new_batches(input, batches, count, &in, &err), &err);
    const struct gar_actor_apply apply = {.pool = {.runtime = runtime,
                                                   .name = "add",
                                                   .argv = program,
                                                   .code = code,
                                                   .code_bytes = code_bytes,
                                                   .input = input,
                                                   .output = output,
                                                   .seats = seats,
                                                   .count = actors}};
    const int64_t start_ns = gar_clock_ns();
    *out_first = 0;
    check(gar_actor_apply(&apply, in, &out, &err), &err);
    for (;;) {
        struct gar_batch *batch = NULL;
        const enum gar_status status = gar_stream_next(out, NULL, &batch, &err);
        check(status, &err);
        if (status == GAR_EOF) {
            break;
        }
        if (*out_first == 0) {
            *out_first = gar_clock_ns() - start_ns;
        }
        gar_batch_unref(batch);
        *out_all = gar_clock_ns() - start_ns; /* without the tear-down */
    }
    gar_stream_free(out);
    gar_batch_unref(one);
    gar_free(batches);
}

static void report(int32_t actors, int64_t rows, int64_t count)
{
    double first[RUNS];
    double each[RUNS];
    for (int i = 0; i < RUNS; i++) {
        int64_t first_ns = 0;
        int64_t all_ns = 0;
        run_once(actors, rows, count, &first_ns, &all_ns);
        first[i] = (double)first_ns / 1e3;
        each[i] = (double)(all_ns - first_ns) / 1e3 / (double)gar_max_i64(count - 1, 1);
    }
    qsort(first, RUNS, sizeof first[0], compare);
    qsort(each, RUNS, sizeof each[0], compare);
    printf("%d actors, %7lld rows a batch, %5lld batches: start %8.0f %8.0f us, a batch %8.1f "
           "%8.1f us\n",
           (int)actors, (long long)rows, (long long)count, first[0], first[RUNS / 2], each[0],
           each[RUNS / 2]);
}

int main(int argc, char **argv)
{
    char a[] = "a";
    char b[] = "b";
    char sum[] = "sum";
    const struct gar_field in[] = {{.name = a, .type = gar_type_of(GAR_FLOAT64)},
                                   {.name = b, .type = gar_type_of(GAR_FLOAT64)}};
    const struct gar_field out[] = {{.name = sum, .type = gar_type_of(GAR_FLOAT64)}};
    const struct gar_runtime_options options = {.compute_threads = 0};
    struct gar_error err = GAR_ERROR_INIT;
    if (argc < 3) {
        (void)fprintf(stderr,
                      "usage: actors_bench CODE_FILE PROGRAM [ARGUMENT ...]\n"
                      "  e.g. actors_bench /dev/null build/release/tests/actors_test_worker\n");
        return 2;
    }
    FILE *file = fopen(argv[1], "re");
    code_bytes = file != NULL ? (int64_t)fread(code, 1, sizeof code, file) : 0;
    if (file != NULL) {
        (void)fclose(file);
    }
    union {
        char **plain;
        const char *const *constant;
    } arguments = {.plain = argv + 2};
    program = arguments.constant;
    check(gar_schema_new(in, 2, false, &input, &err), &err);
    check(gar_schema_new(out, 1, false, &output, &err), &err);
    check(gar_runtime_new(&options, &runtime, &err), &err);
    const char *only = getenv("ACTORS_BENCH_ONLY"); /* one case, for profilers */
    if (only != NULL) {
        report(1, strtoll(only, NULL, 10), 2000);
        gar_runtime_free(runtime);
        return 0;
    }
    report(1, 1, 5000);
    report(1, 1024, 4000);
    report(1, 16384, 250);
    report(1, 131072, 31);
    report(2, 16384, 250);
    gar_runtime_free(runtime);
    gar_schema_unref(input);
    gar_schema_unref(output);
    return 0;
}
