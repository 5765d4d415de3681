/* SPDX-License-Identifier: Apache-2.0 */
/* Traces: what is in the file at any time, full rings, threads that write while a trace ends, forks. That a whole query's
 * file is JSON with nested spans is tested from Python. */
#include "runtime/trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/thread.h"

static char path[64];

/* The whole file; the caller frees. */
static char *read_trace(void)
{
    struct gar_file_info info;
    int fd = -1;
    int64_t got = 0;
    assert_int_equal(gar_file_open(path, GAR_FILE_READ, &fd, NULL), GAR_OK);
    assert_int_equal(gar_file_stat_fd(fd, path, &info, NULL), GAR_OK);
    char *text = (char *)gar_malloc(info.bytes + 1);
    assert_int_equal(gar_file_read_at(fd, path, text, info.bytes, 0, &got, NULL), GAR_OK);
    assert_int_equal(gar_file_close(fd, path, NULL), GAR_OK);
    text[got] = '\0';
    return text;
}

static int64_t count_of(const char *text, const char *what)
{
    /* Not strstr: under the sanitizer each call looks for the end of the whole text. */
    const size_t bytes = strlen(what);
    const char *end = text + strlen(text);
    int64_t count = 0;
    for (const char *at = text; (at = memmem(at, (size_t)(end - at), what, bytes)) != NULL;
         at += bytes) {
        count++;
    }
    return count;
}

static void test_file(void **context)
{
    (void)context;
    struct gar_error err = GAR_ERROR_INIT;
    assert_false(gar_trace_is_on());
    assert_int_equal(gar_trace_flush(NULL), GAR_OK);
    assert_int_equal(gar_trace_begin("/nowhere/trace.json", &err), GAR_ERR_IO);
    assert_int_equal(gar_trace_begin(path, NULL), GAR_OK);
    assert_true(gar_trace_is_on());
    assert_int_equal(gar_trace_begin(path, &err), GAR_ERR_VALUE);
    assert_non_null(strstr(err.message, path));
    for (int round = 1; round <= 2; round++) {
        const struct gar_trace_args args = {
            .path = "dir/a \"file\"\n\xff", .offset = 7, .bytes = 9};
        gar_trace_span("io", "read", gar_clock_ns() - 1500, &args);
        gar_trace_query_begin(round, "query");
        assert_int_equal(gar_trace_flush(NULL), GAR_OK);
        char *text = read_trace();
        assert_int_equal(count_of(text, "\"ph\":\"X\""), round);
        assert_int_equal(count_of(text, "\"ph\":\"b\""), round);
        assert_int_equal(
            count_of(text, "\"path\":\"dir/a \\\"file\\\"??\",\"offset\":7,\"bytes\":9"), round);
        assert_int_equal(count_of(text, "thread_name"), 1);
        assert_string_equal(text + strlen(text) - 4, "\n]}\n");
        gar_free(text);
    }
    assert_int_equal(gar_trace_end(NULL), GAR_OK);
    assert_int_equal(gar_trace_end(NULL), GAR_OK);
    assert_false(gar_trace_is_on());
}

/* More events than a ring holds, before a flush. */
static void test_full_ring(void **context)
{
    (void)context;
    assert_int_equal(gar_trace_begin(path, NULL), GAR_OK);
    for (int i = 0; i < 5000; i++) {
        gar_trace_span("task", "work", gar_clock_ns(), NULL);
    }
    assert_int_equal(gar_trace_end(NULL), GAR_OK);
    char *text = read_trace();
    const int64_t kept = count_of(text, "\"ph\":\"X\"");
    char note[64];
    assert_in_range(kept, 1000, 4999);
    (void)snprintf(note, sizeof note, "\"%d events dropped\"", (int)(5000 - kept));
    assert_non_null(strstr(text, note));
    gar_free(text);
}

struct writer {
    struct gar_thread thread;
    int32_t *stop; /* atomic */
    int64_t spans;
};

static void write_spans(void *context)
{
    struct writer *writer = (struct writer *)context;
    while (__atomic_load_n(writer->stop, __ATOMIC_RELAXED) == 0) {
        if (gar_trace_is_on()) {
            gar_trace_span("task", "work", gar_clock_ns(), NULL);
            writer->spans++;
        }
        gar_thread_yield();
    }
}

/* Traces come and go while threads write; every file is complete. */
static void test_threads(void **context)
{
    (void)context;
    enum { WRITERS = 3, TRACES = 6 };
    struct writer writers[WRITERS];
    int32_t stop = 0;
    const int64_t blocks = gar_alloc_live_blocks();
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.stop = &stop};
        const struct gar_thread_options options = {.name = "writer"};
        assert_int_equal(
            gar_thread_start(&writers[i].thread, &options, write_spans, &writers[i], NULL), GAR_OK);
    }
    for (int t = 0; t < TRACES; t++) {
        assert_int_equal(gar_trace_begin(path, NULL), GAR_OK);
        for (int f = 0; f < 10; f++) {
            gar_thread_yield();
            assert_int_equal(gar_trace_flush(NULL), GAR_OK);
        }
        assert_int_equal(gar_trace_end(NULL), GAR_OK);
        char *text = read_trace();
        assert_string_equal(text + strlen(text) - 4, "\n]}\n");
        assert_int_equal(count_of(text, "{\"ph\""), count_of(text, "\n{\"ph\""));
        gar_free(text);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < WRITERS; i++) {
        gar_thread_join(&writers[i].thread);
    }
    assert_int_equal(gar_alloc_live_blocks(), blocks);
}

static void test_fork(void **context)
{
    (void)context;
    assert_int_equal(gar_trace_begin(path, NULL), GAR_OK);
    gar_trace_span("task", "parent", gar_clock_ns(), NULL);
    const pid_t child = fork();
    if (child == 0) {
        gar_trace_span("task", "child", gar_clock_ns(), NULL);
        _exit(gar_trace_is_on() || gar_trace_flush(NULL) != GAR_OK ? 1 : 0);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(gar_trace_end(NULL), GAR_OK);
    char *text = read_trace();
    assert_non_null(strstr(text, "\"parent\""));
    assert_null(strstr(text, "\"child\""));
    gar_free(text);
}

int main(void)
{
    (void)snprintf(path, sizeof path, "/tmp/gar-trace-%d.json", (int)getpid());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_full_ring),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_fork),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(path);
    return failed;
}
