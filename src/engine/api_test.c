/* SPDX-License-Identifier: Apache-2.0 */
/* The public API from end to end, on small data: every handle kind, results in all forms, settings, interrupts, errors,
 * and a sweep that fails each allocation once. */
#include <gar/gar.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/attrs.h"

static struct gar_session *session(void)
{
    struct gar_session *s = NULL;
    assert_int_equal(gar_session_default(&s, NULL), GAR_OK);
    return s;
}

static void check(enum gar_status status, const struct gar_error *err)
{
    if (status < 0) {
        fail_msg("%s: %s", gar_status_name(status), err->message);
    }
}

/* One SQL expression over a frame. */
static struct gar_expr *sql(const char *text, const struct gar_frame *frame)
{
    struct gar_error err = {.status = GAR_OK};
    struct gar_expr *expr = NULL;
    check(gar_expr_parse(text, (int64_t)strlen(text), frame, &expr, &err), &err);
    return expr;
}

static struct gar_frame *make_range(int64_t end)
{
    struct gar_error err = {.status = GAR_OK};
    struct gar_frame *frame = NULL;
    check(gar_frame_range(session(), 0, end, 1, &frame, &err), &err);
    return frame;
}

static struct gar_frame *where(struct gar_frame *frame, const char *text)
{
    struct gar_error err = {.status = GAR_OK};
    struct gar_frame *out = NULL;
    struct gar_expr *predicate = sql(text, frame);
    check(gar_frame_where(frame, predicate, &out, &err), &err);
    gar_expr_release(predicate);
    gar_frame_release(frame);
    return out;
}

static struct gar_frame *select_list(struct gar_frame *frame, const char *text)
{
    struct gar_error err = {.status = GAR_OK};
    struct gar_frame *out = NULL;
    struct gar_expr **list = NULL;
    int64_t count = 0;
    check(gar_expr_parse_list(text, (int64_t)strlen(text), frame, &list, &count, &err), &err);
    check(gar_frame_select(frame, list, count, &out, &err), &err);
    gar_expr_list_free(list, count);
    gar_frame_release(frame);
    return out;
}

static void expect_table(struct gar_frame *frame, const char *expected)
{
    struct gar_error err = {.status = GAR_OK};
    struct gar_frame *rows = NULL;
    char *text = NULL;
    check(gar_frame_collect(frame, NULL, &rows, &err), &err);
    check(gar_frame_to_table(rows, GAR_FORMAT_TABLE, NULL, &text, &err), &err);
    assert_string_equal(text, expected);
    gar_text_free(text);
    gar_frame_release(rows);
    gar_frame_release(frame);
}

static void test_query(void **state)
{
    (void)state;
    struct gar_frame *frame = where(make_range(10), "id > 6 and id <> 8");
    frame = select_list(frame, "id, id * 2 as twice, case when id = 7 then 'sev\ten' end as name");
    expect_table(frame, "╭───────┬───────┬─────────╮\n"
                        "│ id    ┆ twice ┆ name    │\n"
                        "│ int64 ┆ int64 ┆ string  │\n"
                        "╞═══════╪═══════╪═════════╡\n"
                        "│     7 ┆    14 ┆ sev\\ten │\n"
                        "│     9 ┆    18 ┆ null    │\n"
                        "╰───────┴───────┴─────────╯\n"
                        "(2 rows)\n");
    expect_table(where(make_range(10), "id < 0"), "╭───────╮\n"
                                                  "│ id    │\n"
                                                  "│ int64 │\n"
                                                  "╞═══════╡\n"
                                                  "╰───────╯\n"
                                                  "(No rows)\n");
}

static struct gar_frame *grouped(void)
{
    struct gar_error err = {.status = GAR_OK};
    struct gar_frame *frame = select_list(make_range(1000), "id % 3 as k, id as v");
    struct gar_frame *out = NULL;
    struct gar_frame *sorted = NULL;
    struct gar_expr *key = sql("k", frame);
    struct gar_expr *aggregates[] = {sql("sum(v) as total", frame), sql("count(*) as n", frame),
                                     sql("max(v) - min(v) as width", frame)};
    check(gar_frame_aggregate(frame, &key, 1, aggregates, 3, &out, &err), &err);
    check(gar_frame_sort(out, &key, NULL, NULL, 1, &sorted, &err), &err);
    for (int i = 0; i < 3; i++) {
        gar_expr_release(aggregates[i]);
    }
    gar_expr_release(key);
    gar_frame_release(frame);
    gar_frame_release(out);
    return sorted;
}

static void test_group(void **state)
{
    (void)state;
    expect_table(grouped(), "╭───────┬────────┬───────┬───────╮\n"
                            "│ k     ┆ total  ┆ n     ┆ width │\n"
                            "│ int64 ┆ int64  ┆ int64 ┆ int64 │\n"
                            "╞═══════╪════════╪═══════╪═══════╡\n"
                            "│     0 ┆ 166833 ┆   334 ┆   999 │\n"
                            "│     1 ┆ 166167 ┆   333 ┆   996 │\n"
                            "│     2 ┆ 166500 ┆   333 ┆   996 │\n"
                            "╰───────┴────────┴───────┴───────╯\n"
                            "(3 rows)\n");
}

/* Wide tables lose their middle, long cells their end. */
static void test_table_fits(void **state)
{
    (void)state;
    struct gar_error err = {.status = GAR_OK};
    struct gar_frame *rows = NULL;
    char *text = NULL;
    struct gar_frame *frame = select_list(
        make_range(20),
        "id as a, id as b, id as c, id as d, 'a text that is much too long for its cell' as e");
    check(gar_frame_collect(frame, NULL, &rows, &err), &err);
    struct gar_table_options options;
    gar_table_options_init(&options);
    options.max_rows = 1;
    options.max_cell_width = 10;
    options.max_width = 40;
    options.total_rows = 20;
    check(gar_frame_to_table(rows, GAR_FORMAT_TABLE, &options, &text, &err), &err);
    assert_string_equal(text, "╭───────┬───────┬───┬────────────╮\n"
                              "│ a     ┆ b     ┆ … ┆ e          │\n"
                              "│ int64 ┆ int64 ┆ … ┆ string     │\n"
                              "╞═══════╪═══════╪═══╪════════════╡\n"
                              "│     0 ┆     0 ┆ … ┆ a text th… │\n"
                              "╰───────┴───────┴───┴────────────╯\n"
                              "(3 of 5 columns shown)\n"
                              "(Showing first 1 of 20 rows)\n");
    gar_text_free(text);
    check(gar_frame_to_table(rows, GAR_FORMAT_HTML, &options, &text, &err), &err);
    assert_non_null(strstr(text, "<td style=\"text-align: left\">a text th…</td>"));
    gar_text_free(text);
    assert_int_equal(gar_frame_to_table(frame, GAR_FORMAT_TABLE, NULL, &text, &err), GAR_ERR_VALUE);
    gar_frame_release(rows);
    gar_frame_release(frame);
}

/* Batches of exactly the rows asked for, and the same rows through an Arrow stream. */
static void test_results(void **state)
{
    (void)state;
    struct gar_error err = {.status = GAR_OK};
    struct gar_frame *frame = make_range(10);
    struct gar_run_options options;
    gar_run_options_init(&options);
    options.batch_rows = 3;
    static const int64_t lengths[] = {3, 3, 3, 1};
    struct gar_result *result = NULL;
    check(gar_frame_run(frame, &options, &result, &err), &err);
    int64_t next = 0;
    for (int i = 0; i < 4; i++) {
        struct ArrowArray batch;
        check(gar_result_next(result, GAR_TEXT_AS_LARGE, &batch, &err), &err);
        assert_int_equal(batch.length, lengths[i]);
        const struct ArrowArray *id = batch.children[0];
        for (int64_t r = 0; r < batch.length; r++) {
            assert_int_equal(((const int64_t *)id->buffers[1])[id->offset + r], next++);
        }
        batch.release(&batch);
    }
    struct ArrowArray none;
    assert_int_equal(gar_result_next(result, GAR_TEXT_AS_LARGE, &none, &err), GAR_EOF);
    gar_result_release(result);

    struct ArrowArrayStream stream;
    struct ArrowSchema schema;
    check(gar_frame_run(frame, &options, &result, &err), &err);
    check(gar_result_to_stream(result, GAR_TEXT_AS_VIEW, &stream, &err), &err);
    assert_int_equal(stream.get_schema(&stream, &schema), 0);
    assert_string_equal(schema.children[0]->name, "id");
    schema.release(&schema);
    struct gar_frame *back = NULL;
    check(gar_frame_from_stream(session(), &stream, &back, &err), &err);
    assert_int_equal(gar_frame_known_rows(back), 10);
    gar_frame_release(back);
    gar_frame_release(frame);
}

static void test_count(void **state)
{
    (void)state;
    struct gar_error err = {.status = GAR_OK};
    struct gar_frame *frame = where(make_range(100000), "id % 10 = 3");
    int64_t rows = 0;
    check(gar_frame_count_rows(frame, NULL, &rows, &err), &err);
    assert_int_equal(rows, 10000);
    gar_frame_release(frame);
}

static int stop_now(void *context)
{
    int *asked = context;
    (*asked)++;
    return 1;
}

static int stop_at_third(void *context)
{
    int *asked = context;
    return ++*asked >= 3;
}

/* A pipe of which nothing comes: the caller is asked until it says stop. */
static void test_stop_planning(void **state)
{
    (void)state;
    struct gar_error err = {.status = GAR_OK};
    char path[] = "/tmp/gar-api-test-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    const char *paths[] = {path};
    struct gar_frame *frame = NULL;
    int asked = 0;
    struct gar_csv_options csv;
    gar_csv_options_init(&csv);
    csv.interrupted = stop_at_third;
    csv.context = &asked;
    assert_int_equal(gar_frame_read_csv(session(), paths, 1, &csv, &frame, &err),
                     GAR_ERR_INTERRUPTED);
    assert_int_equal(asked, 3);
    asked = 0;
    struct gar_parquet_options parquet;
    gar_parquet_options_init(&parquet);
    parquet.interrupted = stop_at_third;
    parquet.context = &asked;
    assert_int_equal(gar_frame_read_parquet(session(), paths, 1, &parquet, &frame, &err),
                     GAR_ERR_INTERRUPTED);
    assert_int_equal(asked, 3);
    assert_int_equal(unlink(path), 0);
}

/* A query that would run for hours ends at once: by the caller's interrupt, by a deadline, by release. */
static void test_stop(void **state)
{
    (void)state;
    struct gar_error err = {.status = GAR_OK};
    struct gar_frame *frame = select_list(make_range(INT64_C(1) << 50), "sum(id % 7) as s");
    struct gar_run_options options;
    struct gar_frame *out = NULL;
    int asked = 0;
    gar_run_options_init(&options);
    options.interrupted = stop_now;
    options.context = &asked;
    assert_int_equal(gar_frame_collect(frame, &options, &out, &err), GAR_ERR_INTERRUPTED);
    assert_true(asked >= 1);
    gar_run_options_init(&options);
    options.timeout_ms = 50;
    assert_int_equal(gar_frame_collect(frame, &options, &out, &err), GAR_ERR_TIMEOUT);
    struct gar_result *result = NULL;
    check(gar_frame_run(frame, NULL, &result, &err), &err);
    gar_result_cancel(result);
    struct ArrowArray batch;
    assert_int_equal(gar_result_next(result, GAR_TEXT_AS_LARGE, &batch, &err), GAR_ERR_CANCELLED);
    gar_result_release(result);
    check(gar_frame_run(frame, NULL, &result, &err), &err);
    gar_result_release(result);
    gar_frame_release(frame);
    expect_table(grouped(), "╭───────┬────────┬───────┬───────╮\n"
                            "│ k     ┆ total  ┆ n     ┆ width │\n"
                            "│ int64 ┆ int64  ┆ int64 ┆ int64 │\n"
                            "╞═══════╪════════╪═══════╪═══════╡\n"
                            "│     0 ┆ 166833 ┆   334 ┆   999 │\n"
                            "│     1 ┆ 166167 ┆   333 ┆   996 │\n"
                            "│     2 ┆ 166500 ┆   333 ┆   996 │\n"
                            "╰───────┴────────┴───────┴───────╯\n"
                            "(3 rows)\n");
}

static void test_errors(void **state)
{
    (void)state;
    struct gar_error err = {.status = GAR_OK};
    struct gar_frame *frame = make_range(3);
    struct gar_frame *out = NULL;
    struct gar_expr *expr = NULL;
    check(gar_expr_column("idd", &expr, &err), &err);
    assert_int_equal(gar_frame_select(frame, &expr, 1, &out, &err), GAR_ERR_COLUMN);
    assert_non_null(strstr(err.message, "'id'"));
    gar_expr_release(expr);
    struct gar_expr *twice[2] = {sql("id", frame), sql("id + 1", frame)};
    assert_int_equal(gar_frame_select(frame, twice, 2, &out, &err), GAR_ERR_VALUE);
    assert_non_null(strstr(err.message, "id"));
    gar_expr_release(twice[0]);
    gar_expr_release(twice[1]);
    assert_int_equal(gar_frame_limit(frame, 0, -2, &out, &err), GAR_ERR_VALUE);
    assert_int_equal(gar_frame_limit(frame, -1, 1, &out, &err), GAR_ERR_VALUE);
    static const char *const paths[] = {"/nowhere/at all.parquet"};
    assert_int_equal(gar_frame_read_parquet(session(), paths, 1, NULL, &out, &err), GAR_ERR_IO);
    assert_non_null(strstr(err.message, "/nowhere/at all.parquet"));
    assert_int_equal(gar_frame_read_csv(session(), paths, 0, NULL, &out, &err), GAR_ERR_VALUE);
    assert_int_equal(gar_frame_range(session(), 0, 1, 0, &out, &err), GAR_ERR_VALUE);
    assert_null(out);
    gar_frame_release(frame);
    frame = select_list(make_range(3), "cast(id * 4611686018427387904 as int64) as big");
    assert_int_equal(gar_frame_collect(frame, NULL, &out, &err), GAR_ERR_OVERFLOW);
    gar_frame_release(frame);
}

static void test_settings(void **state)
{
    (void)state;
    struct gar_error err = {.status = GAR_OK};
    struct gar_settings settings = {.struct_bytes = sizeof settings};
    struct gar_session *own = NULL;
    check(gar_session_new(NULL, &own, &err), &err);
    gar_session_settings(own, &settings);
    settings.morsel_rows = 0;
    assert_int_equal(gar_session_configure(own, &settings, &err), GAR_ERR_VALUE);
    settings.morsel_rows = 7;
    settings.num_threads = 3;
    settings.memory_limit_bytes = 1 << 20;
    settings.enable_inline = false;
    check(gar_session_configure(own, &settings, &err), &err);
    struct gar_frame *frame = NULL;
    struct gar_frame *out = NULL;
    check(gar_frame_range(own, 0, 100, 1, &frame, &err), &err);
    check(gar_frame_collect(frame, NULL, &out, &err), &err);
    assert_int_equal(gar_frame_known_rows(out), 100);
    gar_frame_release(out);
    gar_frame_release(frame);
    /* 8 MB do not fit into 1 MiB: a clean refusal */
    check(gar_frame_range(own, 0, 1000000, 1, &frame, &err), &err);
    assert_int_equal(gar_frame_collect(frame, NULL, &out, &err), GAR_ERR_NOMEM);
    gar_frame_release(frame);
    gar_session_release(own);
}

static void test_registry(void **state)
{
    (void)state;
    struct gar_function_description row = {.struct_bytes = sizeof row};
    bool has_sum = false;
    for (int64_t i = 0; gar_registry_get(i, &row); i++) {
        assert_non_null(row.name);
        assert_non_null(row.summary);
        has_sum = has_sum || (strcmp(row.name, "sum") == 0 && row.is_aggregate);
    }
    assert_true(has_sum);
    assert_false(gar_registry_get(gar_registry_count(), &row));
    char *type = NULL;
    struct gar_error err = {.status = GAR_OK};
    check(gar_type_canonical("BIGINT", &type, &err), &err);
    assert_string_equal(type, "int64");
    gar_text_free(type);
    assert_int_equal(gar_type_canonical("nothing", &type, &err), GAR_ERR_VALUE);
}

/* One whole query with allocation n failing: the right answer or a clean error, nothing left behind. */
static enum gar_status query_once(int64_t *out_rows)
{
    struct gar_frame *frame = NULL;
    struct gar_frame *filtered = NULL;
    struct gar_frame *rows = NULL;
    struct gar_expr *predicate = NULL;
    enum gar_status status = gar_frame_range(session(), 0, 100, 1, &frame, NULL);
    if (status == GAR_OK) {
        status = gar_expr_parse("id % 2 = 0", 10, frame, &predicate, NULL);
    }
    if (status == GAR_OK) {
        status = gar_frame_where(frame, predicate, &filtered, NULL);
    }
    if (status == GAR_OK) {
        status = gar_frame_collect(filtered, NULL, &rows, NULL);
    }
    if (status == GAR_OK) {
        *out_rows = gar_frame_known_rows(rows);
    }
    gar_expr_release(predicate);
    gar_frame_release(rows);
    gar_frame_release(filtered);
    gar_frame_release(frame);
    return status;
}

static void test_memory(void **state)
{
    (void)state;
    int64_t rows = 0;
    assert_int_equal(query_once(&rows), GAR_OK); /* everything made at first use is there */
    struct gar_statistics before = {.struct_bytes = sizeof before};
    gar_session_statistics(session(), &before);
    for (int64_t n = 1;; n++) {
        rows = 0;
        gar_alloc_fail_at(n, false);
        const enum gar_status status = query_once(&rows);
        gar_alloc_fail_at(0, false);
        struct gar_statistics after = {.struct_bytes = sizeof after};
        gar_session_statistics(session(), &after);
        assert_int_equal(after.heap_live_blocks, before.heap_live_blocks);
        assert_int_equal(after.memory_live_bytes, before.memory_live_bytes);
        if (status == GAR_OK) {
            assert_int_equal(rows, 50);
            break;
        }
        assert_int_equal(status, GAR_ERR_NOMEM);
        assert_true(n < 100000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_query),         cmocka_unit_test(test_group),
        cmocka_unit_test(test_table_fits),    cmocka_unit_test(test_results),
        cmocka_unit_test(test_count),         cmocka_unit_test(test_stop),
        cmocka_unit_test(test_stop_planning), cmocka_unit_test(test_errors),
        cmocka_unit_test(test_settings),      cmocka_unit_test(test_registry),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
