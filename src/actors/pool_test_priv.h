/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests and the stress program of pools share: batches a, b, s, a runtime, and a run to the end. */
#ifndef GAR_ACTORS_POOL_TEST_PRIV_H
#define GAR_ACTORS_POOL_TEST_PRIV_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "actors/apply.h"
#include "base/alloc.h"
#include "os/clock.h"

#define TEST_ARENA_BYTES (INT64_C(64) << 20)

struct test_pool {
    struct gar_runtime *runtime;
    struct gar_schema *input;
    struct gar_schema *output;
    char worker[512];
};

/* How a run ended. */
struct test_run {
    enum gar_status status;
    struct gar_error error;
    int64_t rows;  /* that came out */
    int64_t nulls; /* of them in the sum */
    bool is_wrong; /* a row out of order, twice, or with a wrong value */
    enum gar_actor_fault fault;
    int32_t signal;
    int32_t exit_code;
    bool has_traceback;
    int64_t output_bytes; /* the actors' */
    int64_t destroyed;    /* tear-downs that were printed */
    char shown[512];      /* what actors printed about their environment */
};

GAR_INLINE int64_t test_count_files(void)
{
    int64_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir != NULL && readdir(dir) != NULL) {
        count++;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return count;
}

/* Living children of this process, zombies included. */
GAR_INLINE int64_t test_count_children(int64_t *out_pids, int64_t most)
{
    int64_t count = 0;
    DIR *dir = opendir("/proc/self/task");
    for (struct dirent *entry = NULL; dir != NULL && (entry = readdir(dir)) != NULL;) {
        char path[320];
        (void)snprintf(path, sizeof path, "/proc/self/task/%s/children", entry->d_name);
        FILE *file = fopen(path, "re");
        for (long long pid = 0; file != NULL && fscanf(file, "%lld", &pid) == 1; count++) {
            if (count < most) {
                out_pids[count] = pid;
            }
        }
        if (file != NULL) {
            (void)fclose(file);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return count;
}

GAR_INLINE bool test_pool_open(struct test_pool *t)
{
    char floats[] = "a";
    char more[] = "b";
    char text[] = "s";
    char sum[] = "sum";
    const struct gar_field in[] = {{.name = floats, .type = gar_type_of(GAR_FLOAT64)},
                                   {.name = more, .type = gar_type_of(GAR_FLOAT64)},
                                   {.name = text, .type = gar_type_of(GAR_STRING)}};
    const struct gar_field out[] = {{.name = sum, .type = gar_type_of(GAR_FLOAT64)},
                                    {.name = text, .type = gar_type_of(GAR_STRING)}};
    const struct gar_runtime_options options = {.compute_threads = 2, .io_threads = 2};
    const ssize_t length = readlink("/proc/self/exe", t->worker, sizeof t->worker - 1);
    t->worker[length > 0 ? length : 0] = 0;
    char *slash = strrchr(t->worker, '/');
    if (slash == NULL) {
        return false;
    }
    (void)snprintf(slash + 1, sizeof t->worker - (size_t)(slash + 1 - t->worker),
                   "actors_test_worker");
    return gar_schema_new(in, 3, false, &t->input, NULL) == GAR_OK &&
           gar_schema_new(out, 2, false, &t->output, NULL) == GAR_OK &&
           gar_runtime_new(&options, &t->runtime, NULL) == GAR_OK;
}

GAR_INLINE void test_pool_close(struct test_pool *t)
{
    gar_runtime_free(t->runtime);
    gar_schema_unref(t->input);
    gar_schema_unref(t->output);
}

/* Row i: a = i, b = 2 i, s = "row i", longer than a view holds inside for odd i; every 7th s is null. */
GAR_INLINE struct gar_batch *test_batch(struct test_pool *t, int64_t first, int64_t rows)
{
    struct gar_memory *memory = gar_memory_system();
    struct gar_column *columns[3] = {NULL, NULL, NULL};
    struct gar_buffer *bytes = NULL;
    struct gar_batch *batch = NULL;
    int32_t at = 0;
    if (gar_column_new(memory, gar_type_of(GAR_FLOAT64), rows, false, &columns[0], NULL) < 0 ||
        gar_column_new(memory, gar_type_of(GAR_FLOAT64), rows, false, &columns[1], NULL) < 0 ||
        gar_column_new(memory, gar_type_of(GAR_STRING), rows, true, &columns[2], NULL) < 0 ||
        gar_buffer_new(memory, 64 * rows, &bytes, NULL) < 0) {
        abort();
    }
    double *a = gar_column_values_mut(columns[0]);
    double *b = gar_column_values_mut(columns[1]);
    struct gar_string_view *views = gar_column_values_mut(columns[2]);
    for (int64_t i = 0; i < rows; i++) {
        a[i] = (double)(first + i);
        b[i] = 2 * a[i];
        char text[64];
        const int size =
            snprintf(text, sizeof text, (first + i) % 2 == 0 ? "r%lld" : "a long text of row %lld",
                     (long long)(first + i));
        memcpy(bytes->data + at, text, (size_t)size);
        views[i] = gar_view_make(bytes->data + at, size, 0, at);
        at += size;
        if ((first + i) % 7 == 0) {
            gar_bit_clear(gar_column_validity_mut(columns[2]), i);
            memset(&views[i], 0, sizeof views[i]);
        }
    }
    columns[2]->null_count = -1;
    bytes->size = at;
    int32_t index = 0;
    if (gar_column_add_data(columns[2], bytes, &index, NULL) < 0 ||
        gar_batch_new(t->input, columns, rows, &batch, NULL) < 0) {
        abort();
    }
    return batch;
}

GAR_INLINE void test_check_batch(const struct gar_batch *batch, struct test_run *run)
{
    const struct gar_column *sum = batch->columns[0];
    const struct gar_column *text = batch->columns[1];
    for (int64_t i = 0; i < batch->rows; i++) {
        const int64_t row = run->rows + i;
        if (gar_column_is_null(sum, i)) {
            run->nulls++;
            continue;
        }
        char want[64];
        (void)snprintf(want, sizeof want, row % 2 == 0 ? "r%lld" : "a long text of row %lld",
                       (long long)row);
        const bool is_null = gar_column_is_null(text, i);
        int64_t bytes = 0;
        const struct gar_column *flat = NULL;
        const int64_t at = gar_column_locate(text, i, &flat);
        const uint8_t *got = gar_column_bytes_at(flat, at, &bytes);
        run->is_wrong |= ((const double *)sum->values)[i] != 3.0 * (double)row;
        run->is_wrong |= is_null != (row % 7 == 0);
        run->is_wrong |=
            !is_null && (bytes != (int64_t)strlen(want) || memcmp(got, want, (size_t)bytes) != 0);
    }
    run->rows += batch->rows;
}

static void test_on_failed(void *context, const struct gar_actor_failure *failure)
{
    struct test_run *run = context;
    run->fault = failure->fault;
    run->signal = failure->signal;
    run->exit_code = failure->exit_code;
    run->has_traceback = failure->traceback != NULL;
}

static void test_on_output(void *context, int32_t actor, bool is_stderr, const char *text,
                           int64_t bytes)
{
    struct test_run *run = context;
    (void)actor;
    run->output_bytes += bytes;
    if (bytes < 200 && memcmp(text, "devices=", (size_t)gar_min_i64(bytes, 8)) == 0) {
        const size_t used = strlen(run->shown);
        (void)snprintf(run->shown + used, sizeof run->shown - used, "%.*s", (int)bytes, text);
    }
    run->destroyed += !is_stderr && bytes >= 9 && memcmp(text, "destroyed", 9) == 0;
}

struct test_options {
    const char *code;
    int32_t actors;
    int64_t rows;       /* in all */
    int64_t chunk;      /* of an input batch; 0: 1,000 */
    int64_t batch_rows; /* 0: 100 */
    struct gar_actor_policy policy;
    int64_t arena_bytes;
    const char *program; /* NULL: the test worker */
    struct gar_account *account;
    int64_t limit_bytes;                /* of a worker's own memory */
    const struct gar_actor_seat *seats; /* NULL: nothing granted */
    int64_t stop_after;                 /* drop the stream when so many rows came; 0: never */
    /* Called after each batch that came out; may be NULL. */
    void (*on_batch)(void *context);
    void *context;
};

/* Runs a pool over rows 0 .. rows - 1 and checks what comes out. */
GAR_INLINE void test_run_pool(struct test_pool *t, const struct test_options *o,
                              struct test_run *run)
{
    const char *const argv[] = {o->program != NULL ? o->program : t->worker, NULL};
    struct gar_actor_seat *seats = gar_calloc(o->actors, (int64_t)sizeof seats[0]);
    const int64_t chunk = o->chunk > 0 ? o->chunk : 1000;
    const int64_t count = (o->rows + chunk - 1) / chunk;
    struct gar_batch **batches = gar_calloc(count + 1, (int64_t)sizeof batches[0]);
    struct gar_stream *input = NULL;
    struct gar_stream *result = NULL;
    memset(run, 0, sizeof *run);
    run->exit_code = -1;
    for (int64_t i = 0; i < count; i++) {
        batches[i] = test_batch(t, i * chunk, gar_min_i64(chunk, o->rows - i * chunk));
    }
    if (gar_stream_new_batches(t->input, batches, count, &input, NULL) < 0) {
        abort();
    }
    const struct gar_actor_apply apply = {
        .pool = {.runtime = t->runtime,
                 .account = o->account,
                 .limit_bytes = o->limit_bytes,
                 .name = "f",
                 .argv = argv,
                 .code = o->code,
                 .code_bytes = o->code != NULL ? (int64_t)strlen(o->code) : 0,
                 .input = t->input,
                 .output = t->output,
                 .seats = o->seats != NULL ? o->seats : seats,
                 .count = o->actors,
                 .arena_bytes = o->arena_bytes > 0 ? o->arena_bytes : TEST_ARENA_BYTES,
                 .policy = o->policy},
        .batch_rows = o->batch_rows > 0 ? o->batch_rows : 100,
        .on_failed = test_on_failed,
        .on_output = test_on_output,
        .context = run,
    };
    run->status = gar_actor_apply(&apply, input, &result, &run->error);
    if (run->status < 0) {
        gar_stream_free(input);
    }
    while (run->status == GAR_OK) {
        struct gar_batch *batch = NULL;
        run->status = gar_stream_next(result, NULL, &batch, &run->error);
        if (run->status == GAR_OK) {
            test_check_batch(batch, run);
            gar_batch_unref(batch);
            if (o->on_batch != NULL) {
                o->on_batch(o->context);
            }
            if (o->stop_after > 0 && run->rows >= o->stop_after) {
                break;
            }
        }
    }
    gar_stream_free(result);
    for (int64_t i = 0; i < count; i++) {
        gar_batch_unref(batches[i]);
    }
    gar_free(batches);
    gar_free(seats);
    /* A dropped stream does not wait for its pool. */
    while (gar_runtime_active(t->runtime) > 0) {
        const struct timespec pause = {.tv_nsec = 1000000};
        (void)nanosleep(&pause, NULL);
    }
}

#endif
