/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles, progress and the log through the public API. */
#include <gar/gar.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct gar_session *new_session(void)
{
    struct gar_settings settings;
    struct gar_session *session = NULL;
    gar_settings_init(&settings);
    settings.num_threads = 2;
    settings.enable_inline = false;
    assert_int_equal(gar_session_new(&settings, &session, NULL), GAR_OK);
    return session;
}

/* Rows 0 .. rows - 1 of which the even ones pass. */
static struct gar_frame *even(struct gar_session *session, int64_t rows)
{
    static const char sql[] = "id % 2 = 0";
    struct gar_frame *range = NULL;
    struct gar_frame *frame = NULL;
    struct gar_expr *predicate = NULL;
    assert_int_equal(gar_frame_range(session, 0, rows, 1, &range, NULL), GAR_OK);
    assert_int_equal(gar_expr_parse(sql, (int64_t)strlen(sql), range, &predicate, NULL), GAR_OK);
    assert_int_equal(gar_frame_where(range, predicate, &frame, NULL), GAR_OK);
    gar_expr_release(predicate);
    gar_frame_release(range);
    return frame;
}

/* A profile outlives frame, result and session. */
static void test_profile_outlives_all(void **context)
{
    (void)context;
    struct gar_session *session = new_session();
    struct gar_frame *frame = even(session, 1000);
    struct gar_frame *made = NULL;
    assert_null(gar_frame_profile(frame));
    assert_int_equal(gar_frame_collect(frame, NULL, &made, NULL), GAR_OK);
    struct gar_profile *profile = gar_frame_profile(made);
    assert_non_null(profile);
    gar_frame_release(made);
    gar_frame_release(frame);
    gar_session_release(session);
    struct gar_query_profile query = {.struct_bytes = sizeof query};
    gar_profile_query(profile, &query);
    assert_int_equal(query.struct_bytes, sizeof query);
    assert_true(query.is_finished);
    assert_int_equal(query.rows, 500);
    assert_int_equal(query.rows_read, 1000);
    assert_int_equal(query.operator_count, 3);
    assert_true(query.memory_peak_bytes > 0);
    assert_int_equal(query.memory_bytes, 0);
    struct gar_operator_profile op = {.struct_bytes = offsetof(struct gar_operator_profile, role)};
    op.rows_in = 77; /* a caller of an older header: what lies behind stays */
    assert_true(gar_profile_operator(profile, 1, &op));
    assert_string_equal(op.name, "filter");
    assert_int_equal(op.rows_in, 77);
    assert_false(gar_profile_operator(profile, 3, &op));
    assert_false(gar_profile_operator(profile, -1, &op));
    char *text = NULL;
    assert_int_equal(gar_profile_text(profile, &text, NULL), GAR_OK);
    assert_non_null(strstr(text, "rows 500 of 1,000"));
    gar_text_free(text);
    gar_profile_release(gar_profile_retain(profile));
    gar_profile_release(profile);
    gar_profile_release(NULL);
}

struct shown {
    int lines;
    int ends;
    int interrupts;
    char last[256];
};

static void show(void *context, const char *line)
{
    struct shown *shown = (struct shown *)context;
    if (line == NULL) {
        shown->ends++;
    } else {
        shown->lines++;
        (void)snprintf(shown->last, sizeof shown->last, "%s", line);
    }
}

static int stop_after_two_lines(void *context)
{
    struct shown *shown = (struct shown *)context;
    shown->interrupts++;
    return shown->lines >= 2;
}

/* The caller's own progress: shown while it waits, taken away once, also when it interrupts. */
static void test_show_progress(void **context)
{
    (void)context;
    struct gar_session *session = new_session();
    struct gar_frame *endless = even(session, INT64_MAX);
    struct shown shown = {0};
    struct gar_run_options options;
    gar_run_options_init(&options);
    options.interrupted = stop_after_two_lines;
    options.show_progress = show;
    options.context = &shown;
    int64_t rows = 0;
    assert_int_equal(gar_frame_count_rows(endless, &options, &rows, NULL), GAR_ERR_INTERRUPTED);
    assert_int_equal(shown.lines, 2);
    assert_int_equal(shown.ends, 1);
    assert_non_null(strstr(shown.last, "scan"));
    assert_non_null(strstr(shown.last, "step 1 of 2"));
    gar_frame_release(endless);
    gar_session_release(session);
}

static void test_explain_analyze(void **context)
{
    (void)context;
    struct gar_session *session = new_session();
    struct gar_frame *frame = even(session, 100000);
    char *text = NULL;
    assert_int_equal(gar_frame_explain_analyze(frame, NULL, &text, NULL), GAR_OK);
    assert_non_null(strstr(text, "50,000 rows in"));
    assert_non_null(strstr(text, "rows 50,000 of 100,000"));
    gar_text_free(text);
    struct gar_run_options options;
    gar_run_options_init(&options);
    options.timeout_ms = 1;
    struct gar_frame *endless = even(session, INT64_MAX);
    assert_int_equal(gar_frame_explain_analyze(endless, &options, &text, NULL), GAR_ERR_TIMEOUT);
    gar_frame_release(endless);
    gar_frame_release(frame);
    gar_session_release(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_profile_outlives_all),
        cmocka_unit_test(test_show_progress),
        cmocka_unit_test(test_explain_analyze),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
