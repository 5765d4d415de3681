/* SPDX-License-Identifier: Apache-2.0 */
/* A small table, and rows as lines of text, for exec_test.c. */
#ifndef GAR_EXEC_EXEC_TEST_PRIV_H
#define GAR_EXEC_EXEC_TEST_PRIV_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arrow/builder.h"
#include "base/alloc.h"
#include "exec/exec.h"
#include "kernels/hash_rows.h"
#include "os/fault.h"

enum { ROWS = 500, BATCHES = 5, LINE_BYTES = 160 };

/* ---- the data ---- */

struct row {
    int32_t k; /* -1: null; few values */
    int64_t v; /* -1: null; many values */
    int64_t d; /* decimal(12, 2) */
    char s[40];
};

static struct row rows_of_table[ROWS];
static struct gar_scan_provider *table;
static struct gar_spill_space *spill_space;
static struct gar_runtime *runtimes[3];
static const int32_t thread_counts[3] = {1, 2, 8};

static uint64_t random_state = 11;

static uint64_t next_random(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return random_state >> 17 ^ random_state >> 41;
}

static struct gar_batch *make_batch(struct gar_schema *schema, const struct row *rows,
                                    int64_t count)
{
    struct gar_builder builders[4];
    struct gar_column *columns[4];
    for (int64_t c = 0; c < 4; c++) {
        gar_builder_init(&builders[c], gar_memory_system(), schema->fields[c].type);
    }
    for (int64_t i = 0; i < count; i++) {
        const gar_i128 d = rows[i].d;
        assert_int_equal(rows[i].k < 0 ? gar_builder_append_null(&builders[0], NULL)
                                       : gar_builder_append_fixed(&builders[0], &rows[i].k, NULL),
                         GAR_OK);
        assert_int_equal(rows[i].v < 0 ? gar_builder_append_null(&builders[1], NULL)
                                       : gar_builder_append_fixed(&builders[1], &rows[i].v, NULL),
                         GAR_OK);
        assert_int_equal(gar_builder_append_fixed(&builders[2], &d, NULL), GAR_OK);
        assert_int_equal(
            gar_builder_append_bytes(&builders[3], rows[i].s, (int64_t)strlen(rows[i].s), NULL),
            GAR_OK);
    }
    for (int64_t c = 0; c < 4; c++) {
        assert_int_equal(gar_builder_finish(&builders[c], &columns[c], NULL), GAR_OK);
        gar_builder_destroy(&builders[c]);
    }
    struct gar_batch *batch = NULL;
    assert_int_equal(gar_batch_new(schema, columns, count, &batch, NULL), GAR_OK);
    return batch;
}

static struct gar_scan_provider *make_table(const struct row *rows, int64_t count, int64_t batches)
{
    char k[] = "k";
    char v[] = "v";
    char d[] = "d";
    char s[] = "s";
    const struct gar_field fields[4] = {
        {.name = k, .type = {.id = GAR_INT32}, .nullable = true},
        {.name = v, .type = {.id = GAR_INT64}, .nullable = true},
        {.name = d, .type = {.id = GAR_DECIMAL128, .precision = 12, .scale = 2}},
        {.name = s, .type = {.id = GAR_STRING}}};
    struct gar_schema *schema = NULL;
    struct gar_batch *list[BATCHES];
    struct gar_scan_provider *provider = NULL;
    assert_int_equal(gar_schema_new(fields, 4, false, &schema, NULL), GAR_OK);
    int64_t at = 0;
    for (int64_t b = 0; b < batches; b++) {
        const int64_t n = b == batches - 1 ? count - at : count / batches - (b % 2);
        list[b] = make_batch(schema, rows + at, n);
        at += n;
    }
    assert_int_equal(gar_memory_provider_new(schema, list, batches, &provider, NULL), GAR_OK);
    for (int64_t b = 0; b < batches; b++) {
        gar_batch_unref(list[b]);
    }
    gar_schema_unref(schema);
    return provider;
}

static int set_up(void **context)
{
    (void)context;
    for (int64_t i = 0; i < ROWS; i++) {
        struct row *r = &rows_of_table[i];
        r->k = (int32_t)(next_random() % 9) - 1;
        r->v = next_random() % 10 == 0 ? -1 : (int64_t)(next_random() % 1000);
        r->d = (int64_t)(next_random() % 100000) - 50000;
        snprintf(r->s, sizeof r->s, next_random() % 2 == 0 ? "s%d" : "a longer text number %d",
                 (int)(next_random() % 13));
    }
    table = make_table(rows_of_table, ROWS, BATCHES);
    assert_int_equal(gar_spill_space_new(NULL, 0, &spill_space, NULL), GAR_OK);
    for (int64_t i = 0; i < 3; i++) {
        const struct gar_runtime_options options = {.compute_threads = thread_counts[i],
                                                    .io_threads = 2};
        assert_int_equal(gar_runtime_new(&options, &runtimes[i], NULL), GAR_OK);
    }
    return 0;
}

static int tear_down(void **context)
{
    (void)context;
    for (int64_t i = 0; i < 3; i++) {
        gar_runtime_free(runtimes[i]);
    }
    gar_scan_provider_unref(table);
    gar_spill_space_unref(spill_space);
    return 0;
}

/* ---- lines of text as rows ---- */

struct lines {
    char (*text)[LINE_BYTES];
    int64_t count;
    int64_t capacity;
};

static void add_line(struct lines *lines, const char *text)
{
    if (lines->count == lines->capacity) {
        lines->capacity = lines->capacity == 0 ? 256 : 2 * lines->capacity;
        lines->text = realloc(lines->text, (size_t)lines->capacity * LINE_BYTES);
        assert_non_null(lines->text);
    }
    snprintf(lines->text[lines->count++], LINE_BYTES, "%s", text);
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp((const char *)a, (const char *)b);
}

static void free_lines(struct lines *lines)
{
    free(lines->text);
    memset(lines, 0, sizeof *lines);
}

static void add_batch_lines(struct lines *lines, const struct gar_batch *batch)
{
    assert_null(batch->selection);
    assert_true(batch->rows > 0);
    for (int64_t i = 0; i < batch->rows; i++) {
        struct gar_strbuf line = {0};
        for (int64_t c = 0; c < batch->schema->count; c++) {
            struct gar_value v;
            assert_int_equal(gar_value_from_column(batch->columns[c], i, &v, NULL), GAR_OK);
            gar_strbuf_append(&line, c > 0 ? "|" : "");
            gar_value_print_plain(&v, 0, &line);
            gar_value_destroy(&v);
        }
        add_line(lines, gar_strbuf_text(&line));
        gar_strbuf_destroy(&line);
    }
}

static const char *number_or_null(int64_t v, char out[24])
{
    if (v < 0) {
        return "null";
    }
    snprintf(out, 24, "%lld", (long long)v);
    return out;
}

static const char *decimal_text(int64_t unscaled, char out[24])
{
    const long long whole = llabs((long long)unscaled) / 100;
    const long long part = llabs((long long)unscaled) % 100;
    snprintf(out, 24, "%s%lld.%02lld", unscaled < 0 ? "-" : "", whole, part);
    return out;
}

static void add_row_line(struct lines *lines, const struct row *r)
{
    char line[LINE_BYTES];
    char k[24];
    char v[24];
    char d[24];
    snprintf(line, sizeof line, "%s|%s|%s|%s", number_or_null(r->k, k), number_or_null(r->v, v),
             decimal_text(r->d, d), r->s);
    add_line(lines, line);
}

#endif
