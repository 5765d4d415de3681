/* SPDX-License-Identifier: Apache-2.0 */
/* User functions written in C: exact batches, order, states, results that are wrong, expansion, failure and cancel. */
#include <gar/gar.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What a function does, and what it has seen. Atomics. */
struct seen {
    int64_t calls;
    int64_t rows;
    int64_t odd_calls; /* of other sizes than batch_rows */
    int64_t opened;
    int64_t closed;
    int64_t released;
    int64_t batch_rows;
    int64_t fail_row; /* -1: none */
    int64_t lose;     /* values left out */
};

static void free_array(struct ArrowArray *array)
{
    free((void *)(uintptr_t)array->buffers[1]);
    free((void *)(uintptr_t)array->buffers);
    array->release = NULL;
}

static void free_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void give_values(struct ArrowArray *out, int64_t *values, int64_t length)
{
    const void **buffers = calloc(2, sizeof *buffers);
    assert_non_null(buffers);
    buffers[1] = values;
    *out = (struct ArrowArray){
        .length = length, .n_buffers = 2, .buffers = buffers, .release = free_array};
}

static void note_call(struct seen *seen, const struct gar_user_call *call)
{
    (void)__atomic_fetch_add(&seen->calls, 1, __ATOMIC_RELAXED);
    (void)__atomic_fetch_add(&seen->rows, call->rows, __ATOMIC_RELAXED);
    if (call->rows != seen->batch_rows) {
        (void)__atomic_fetch_add(&seen->odd_calls, 1, __ATOMIC_RELAXED);
    }
}

static const int64_t *first_argument(const struct gar_user_call *call)
{
    const struct ArrowArray *child = call->args.children[0];
    return (const int64_t *)child->buffers[1] + child->offset;
}

/* a -> 10 a */
static enum gar_status call_ten(void *context, struct gar_user_call *call, struct gar_error *err)
{
    struct seen *seen = context;
    note_call(seen, call);
    if (call->is_cancelled(call)) {
        return GAR_ERR_CANCELLED;
    }
    const int64_t *in = first_argument(call);
    const int64_t rows = call->rows - seen->lose;
    int64_t *values = malloc((size_t)call->rows * sizeof *values);
    for (int64_t i = 0; i < rows; i++) {
        if (in[i] == seen->fail_row) {
            (void)snprintf(err->message, sizeof err->message, "row %lld is bad",
                           (long long)(call->first_row + i));
            err->status = GAR_ERR_CALLBACK;
            free(values);
            return GAR_ERR_CALLBACK;
        }
        values[i] = 10 * in[i];
    }
    give_values(&call->result, values, rows);
    call->result_schema =
        (struct ArrowSchema){.format = "l", .name = "", .flags = 2, .release = free_schema};
    return GAR_OK;
}

/* a -> a % 3 rows of a */
static enum gar_status call_repeat(void *context, struct gar_user_call *call, struct gar_error *err)
{
    (void)err;
    note_call(context, call);
    const int64_t *in = first_argument(call);
    int64_t *values = malloc((size_t)call->rows * 3 * sizeof *values);
    int64_t *counts = malloc((size_t)call->rows * sizeof *counts);
    int64_t n = 0;
    for (int64_t i = 0; i < call->rows; i++) {
        counts[i] = in[i] % 3;
        for (int64_t k = 0; k < counts[i]; k++) {
            values[n++] = in[i];
        }
    }
    give_values(&call->result, values, n);
    give_values(&call->repeats, counts, call->rows);
    call->result_schema =
        (struct ArrowSchema){.format = "l", .name = "", .flags = 2, .release = free_schema};
    return GAR_OK;
}

enum { GROUP_ROWS = 700, GROUPS = 9 };

/* Numbers of groups -> themselves; what comes must be whole groups that go on where the last call ended. */
static enum gar_status call_groups(void *context, struct gar_user_call *call, struct gar_error *err)
{
    struct seen *seen = context;
    (void)err;
    const int64_t *in = first_argument(call);
    int64_t *values = malloc((size_t)call->rows * sizeof *values);
    for (int64_t i = 0; i < call->rows; i++) {
        seen->odd_calls += in[i] != (seen->rows + i) / GROUP_ROWS;
        values[i] = in[i];
    }
    seen->odd_calls += call->rows % GROUP_ROWS != 0;
    seen->rows += call->rows;
    seen->calls++;
    give_values(&call->result, values, call->rows);
    call->result_schema =
        (struct ArrowSchema){.format = "l", .name = "", .flags = 2, .release = free_schema};
    return GAR_OK;
}

static enum gar_status open_state(void *context, int64_t query, void **out_state,
                                  struct gar_error *err)
{
    (void)query;
    (void)err;
    (void)__atomic_fetch_add(&((struct seen *)context)->opened, 1, __ATOMIC_RELAXED);
    *out_state = context;
    return GAR_OK;
}

static void close_state(void *context, void *state, bool is_regular)
{
    (void)is_regular;
    assert_ptr_equal(context, state);
    (void)__atomic_fetch_add(&((struct seen *)context)->closed, 1, __ATOMIC_RELAXED);
}

static void release_context(void *context)
{
    (void)__atomic_fetch_add(&((struct seen *)context)->released, 1, __ATOMIC_RELAXED);
}

static struct gar_user_function ten(struct seen *seen)
{
    return (struct gar_user_function){.struct_bytes = sizeof(struct gar_user_function),
                                      .name = "ten",
                                      .type = "int64",
                                      .batch_rows = seen->batch_rows,
                                      .call = call_ten,
                                      .open = open_state,
                                      .close = close_state,
                                      .release = release_context,
                                      .context = seen};
}

/* select id, f(id) as r from range(rows) */
static struct gar_frame *frame_of(const struct gar_user_function *function, int64_t rows)
{
    struct gar_session *session = NULL;
    struct gar_frame *range = NULL;
    struct gar_frame *out = NULL;
    struct gar_expr *exprs[2] = {NULL, NULL};
    struct gar_expr *call = NULL;
    assert_int_equal(gar_session_default(&session, NULL), GAR_OK);
    assert_int_equal(gar_frame_range(session, 0, rows, 1, &range, NULL), GAR_OK);
    assert_int_equal(gar_expr_column("id", &exprs[0], NULL), GAR_OK);
    assert_int_equal(gar_expr_user_function(function, exprs, 1, &call, NULL), GAR_OK);
    assert_int_equal(gar_expr_alias(call, "r", &exprs[1], NULL), GAR_OK);
    assert_int_equal(gar_frame_select(range, exprs, 2, &out, NULL), GAR_OK);
    gar_expr_release(call);
    gar_expr_release(exprs[0]);
    gar_expr_release(exprs[1]);
    gar_frame_release(range);
    return out;
}

/* Runs the frame; the rows' r must be 10 id, in order. */
static int64_t check_rows(const struct gar_frame *frame)
{
    struct gar_result *result = NULL;
    struct ArrowArray array;
    int64_t next = 0;
    assert_int_equal(gar_frame_run(frame, NULL, &result, NULL), GAR_OK);
    while (gar_result_next(result, GAR_TEXT_AS_LARGE, &array, NULL) == GAR_OK) {
        const int64_t *id = (const int64_t *)array.children[0]->buffers[1];
        const int64_t *r = (const int64_t *)array.children[1]->buffers[1];
        for (int64_t i = 0; i < array.length; i++, next++) {
            assert_int_equal(id[array.children[0]->offset + i], next);
            assert_int_equal(r[array.children[1]->offset + i], 10 * next);
        }
        array.release(&array);
    }
    gar_result_release(result);
    return next;
}

static void test_exact_batches_in_order(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 7, 1000, 16384, 1000000};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        struct seen seen = {.batch_rows = sizes[s], .fail_row = -1};
        const struct gar_user_function function = ten(&seen);
        const int64_t rows = sizes[s] == 1 ? 3000 : 100003;
        struct gar_frame *frame = frame_of(&function, rows);
        assert_int_equal(check_rows(frame), rows);
        assert_int_equal(seen.rows, rows);
        assert_int_equal(seen.odd_calls, rows % sizes[s] != 0 ? 1 : 0);
        assert_int_equal(seen.calls, (rows + sizes[s] - 1) / sizes[s]);
        assert_int_equal(check_rows(frame), rows);
        gar_frame_release(frame);
        assert_int_equal(seen.opened, 2);
        assert_int_equal(seen.closed, 2);
        assert_int_equal(seen.released, 1);
    }
}

static void test_no_rows(void **state)
{
    (void)state;
    struct seen seen = {.fail_row = -1};
    const struct gar_user_function function = ten(&seen);
    struct gar_frame *frame = frame_of(&function, 0);
    assert_int_equal(check_rows(frame), 0);
    gar_frame_release(frame);
    assert_int_equal(seen.calls, 0);
    assert_int_equal(seen.released, 1);
}

static void collect_fails(const struct gar_frame *frame, enum gar_status status, const char *text)
{
    struct gar_frame *all = NULL;
    struct gar_error err;
    assert_int_equal(gar_frame_collect(frame, NULL, &all, &err), status);
    assert_non_null(strstr(err.message, text));
}

static void test_failures(void **state)
{
    (void)state;
    struct seen seen = {.batch_rows = 100, .fail_row = 4321};
    struct gar_user_function function = ten(&seen);
    struct gar_frame *frame = frame_of(&function, 100000);
    collect_fails(frame, GAR_ERR_CALLBACK, "row 4321 is bad");
    gar_frame_release(frame);
    assert_int_equal(seen.opened, seen.closed);

    struct seen loses = {.batch_rows = 10, .fail_row = -1, .lose = 3};
    function = ten(&loses);
    frame = frame_of(&function, 100);
    collect_fails(frame, GAR_ERR_VALUE, "UDF 'ten' returned 7 values, expected 10");
    gar_frame_release(frame);

    struct seen other = {.batch_rows = 10, .fail_row = -1};
    function = ten(&other);
    function.type = "string";
    frame = frame_of(&function, 100);
    collect_fails(frame, GAR_ERR_TYPE, "UDF 'ten' returned int64, expected string");
    gar_frame_release(frame);

    struct seen narrow = {.batch_rows = 10, .fail_row = -1};
    function = ten(&narrow);
    function.type = "int8";
    frame = frame_of(&function, 100);
    collect_fails(frame, GAR_ERR_CAST, "does not fit");
    gar_frame_release(frame);
}

static void test_wrong_functions(void **state)
{
    (void)state;
    struct seen seen = {.fail_row = -1};
    struct gar_expr *call = NULL;
    struct gar_error err;
    struct gar_user_function function = ten(&seen);
    function.type = "nonsense";
    assert_int_equal(gar_expr_user_function(&function, NULL, 0, &call, &err), GAR_ERR_VALUE);
    function = ten(&seen);
    function.name = "";
    assert_int_equal(gar_expr_user_function(&function, NULL, 0, &call, &err), GAR_ERR_VALUE);
    function = ten(&seen);
    function.batch_rows = -1;
    assert_int_equal(gar_expr_user_function(&function, NULL, 0, &call, &err), GAR_ERR_VALUE);
    function = ten(&seen);
    function.call = NULL;
    assert_int_equal(gar_expr_user_function(&function, NULL, 0, &call, &err), GAR_ERR_VALUE);
    assert_int_equal(seen.released, 4);
}

static void test_expansion(void **state)
{
    (void)state;
    struct seen seen = {.batch_rows = 11, .fail_row = -1};
    struct gar_user_function function = ten(&seen);
    function.call = call_repeat;
    function.is_expanding = true;
    struct gar_frame *frame = frame_of(&function, 3000);
    struct gar_result *result = NULL;
    struct ArrowArray array;
    int64_t rows = 0;
    assert_int_equal(gar_frame_run(frame, NULL, &result, NULL), GAR_OK);
    while (gar_result_next(result, GAR_TEXT_AS_LARGE, &array, NULL) == GAR_OK) {
        const int64_t *id = (const int64_t *)array.children[0]->buffers[1];
        const int64_t *r = (const int64_t *)array.children[1]->buffers[1];
        for (int64_t i = 0; i < array.length; i++) {
            assert_int_equal(id[array.children[0]->offset + i], r[array.children[1]->offset + i]);
        }
        rows += array.length;
        array.release(&array);
    }
    assert_int_equal(rows, 3000);
    gar_result_release(result);
    gar_frame_release(frame);
}

static void test_dropped_results(void **state)
{
    (void)state;
    struct seen seen = {.batch_rows = 10, .fail_row = -1};
    const struct gar_user_function function = ten(&seen);
    struct gar_frame *frame = frame_of(&function, 10000000);
    struct gar_result *result = NULL;
    struct ArrowArray array;
    assert_int_equal(gar_frame_run(frame, NULL, &result, NULL), GAR_OK);
    assert_int_equal(gar_result_next(result, GAR_TEXT_AS_LARGE, &array, NULL), GAR_OK);
    array.release(&array);
    gar_result_release(result);
    struct gar_frame *few = NULL;
    assert_int_equal(gar_frame_limit(frame, 5, 20, &few, NULL), GAR_OK);
    gar_frame_release(frame);
    assert_int_equal(gar_frame_collect(few, NULL, &frame, NULL), GAR_OK);
    assert_int_equal(gar_frame_known_rows(frame), 20);
    gar_frame_release(frame);
    gar_frame_release(few);
}

/* select f(id // 700) from range(6300) */
static enum gar_status groups_frame(const struct gar_user_function *function, const char *argument,
                                    struct gar_frame **out, struct gar_error *err)
{
    struct gar_session *session = NULL;
    struct gar_frame *range = NULL;
    struct gar_expr *arg = NULL;
    struct gar_expr *call = NULL;
    assert_int_equal(gar_session_default(&session, NULL), GAR_OK);
    assert_int_equal(gar_frame_range(session, 0, GROUPS * GROUP_ROWS, 1, &range, NULL), GAR_OK);
    assert_int_equal(gar_expr_parse(argument, (int64_t)strlen(argument), range, &arg, NULL),
                     GAR_OK);
    assert_int_equal(gar_expr_user_function(function, &arg, 1, &call, NULL), GAR_OK);
    const enum gar_status status = gar_frame_select(range, &call, 1, out, err);
    gar_expr_release(call);
    gar_expr_release(arg);
    gar_frame_release(range);
    return status;
}

static void test_groups(void **state)
{
    (void)state;
    struct seen seen = {.fail_row = -1};
    struct gar_user_function function = ten(&seen);
    struct gar_frame *frame = NULL;
    struct gar_frame *rows = NULL;
    struct gar_error err;
    function.call = call_groups;
    function.is_grouped = true;
    function.max_calls = 1;
    assert_int_equal(groups_frame(&function, "id // 700", &frame, &err), GAR_OK);
    assert_int_equal(gar_frame_collect(frame, NULL, &rows, &err), GAR_OK);
    assert_int_equal(gar_frame_known_rows(rows), GROUPS * GROUP_ROWS);
    assert_int_equal(seen.rows, GROUPS * GROUP_ROWS);
    assert_int_equal(seen.odd_calls, 0);
    assert_true(seen.calls > 1 && seen.calls <= GROUPS);
    gar_frame_release(rows);
    gar_frame_release(frame);
    assert_int_equal(groups_frame(&function, "id / 2.0", &frame, &err), GAR_ERR_TYPE);
    function.batch_rows = 10;
    assert_int_equal(groups_frame(&function, "id", &frame, &err), GAR_ERR_VALUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_batches_in_order),
        cmocka_unit_test(test_no_rows),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_wrong_functions),
        cmocka_unit_test(test_expansion),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_dropped_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
