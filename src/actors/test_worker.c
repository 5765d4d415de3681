/* SPDX-License-Identifier: Apache-2.0 */
/* A worker that misbehaves on demand, for pool_test and the benchmark. It gives back a + b and the text s.
 * Its code is a list of words: do=WHAT at=VALUE (when a has that value) or at=create; once=PATH (only if PATH does not
 * exist yet; it is made); sleep_us=N (each call); print=BYTES (each call); show (devices and threads, when it starts). */
#include <errno.h>
#include <fcntl.h>
#include <gar/actor.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "actors/wire.h"
#include "base/alloc.h"

#define GROW_BYTES (INT64_C(300) << 20)

struct actor {
    char what[32];
    char at[32];
    char once[256];
    long sleep_us;
    long print;
    int64_t calls;
};

static struct actor actor;

static void read_word(const char *code, const char *key, char *out, size_t out_bytes)
{
    const char *at = strstr(code, key);
    out[0] = 0;
    if (at != NULL) {
        at += strlen(key);
        const size_t length = strcspn(at, " ");
        (void)snprintf(out, out_bytes, "%.*s", (int)length, at);
    }
}

static bool is_due(void)
{
    if (actor.once[0] == 0) {
        return true;
    }
    const int fd = open(actor.once, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0) {
        (void)close(fd);
    }
    return fd >= 0;
}

static void send_wrong(uint16_t kind, uint64_t seq, int64_t offset, int64_t bytes)
{
    struct gar_wire_message message;
    gar_wire_message_init(&message, GAR_WIRE_RESULT);
    message.kind = kind;
    message.seq = seq;
    message.offset = offset;
    message.bytes = bytes;
    (void)send(GAR_WIRE_FD_SOCKET, &message, sizeof message, MSG_NOSIGNAL);
    (void)sleep(600);
}

static bool is_what(const char *what)
{
    return strcmp(actor.what, what) == 0;
}

/* Does what was asked; returns when that is to fail by report. */
static void misbehave(void)
{
    static const char junk[100] = "this is no message";
    if (is_what("exit")) {
        _exit(3);
    } else if (is_what("segv")) {
        (void)fprintf(stderr, "about to crash\n");
        (void)signal(SIGSEGV, SIG_DFL); /* sanitizers catch it */
        (void)raise(SIGSEGV);
    } else if (is_what("abort")) {
        abort();
    } else if (is_what("kill")) {
        (void)raise(SIGKILL);
    } else if (is_what("stop")) {
        (void)raise(SIGSTOP);
    } else if (is_what("hang")) {
        (void)sleep(600);
    } else if (is_what("grow")) { /* 300 MiB that are used */
        char *much = gar_malloc(GROW_BYTES);
        for (int64_t i = 0; much != NULL && i < GROW_BYTES; i += 4096) {
            ((volatile char *)much)[i] = 1;
        }
        (void)sleep(600);
        gar_free(much);
    } else if (is_what("close")) {
        (void)close(GAR_WIRE_FD_SOCKET);
        (void)sleep(600);
    } else if (is_what("garbage")) {
        (void)send(GAR_WIRE_FD_SOCKET, junk, sizeof junk, MSG_NOSIGNAL);
        (void)sleep(600);
    } else if (is_what("outside")) {
        send_wrong(GAR_WIRE_RESULT, (uint64_t)actor.calls, INT64_C(1) << 40, 4096);
    } else if (is_what("negative")) {
        send_wrong(GAR_WIRE_RESULT, (uint64_t)actor.calls, GAR_WIRE_TEXT_BYTES, INT64_MIN);
    } else if (is_what("empty")) { /* zeros where a batch should be */
        static const char zeros[65536];
        (void)!pwrite(GAR_WIRE_FD_OUT, zeros, sizeof zeros, GAR_WIRE_TEXT_BYTES);
        send_wrong(GAR_WIRE_RESULT, (uint64_t)actor.calls, GAR_WIRE_TEXT_BYTES, 65536);
    } else if (is_what("twice")) {
        send_wrong(GAR_WIRE_READY, 0, 0, 0);
    } else if (is_what("unknown")) {
        send_wrong(77, 0, 0, 0);
    } else if (is_what("seq")) {
        send_wrong(GAR_WIRE_RESULT, 1000, GAR_WIRE_TEXT_BYTES, 64);
    } else if (is_what("fork")) { /* a child that holds everything open */
        if (fork() == 0) {
            (void)sleep(600);
        }
        _exit(4);
    }
}

static int test_create(const struct gar_actor_setup *setup, void **out_actor,
                       struct gar_actor_report *report)
{
    char number[32];
    char code[512];
    (void)snprintf(code, sizeof code, "%.*s", (int)setup->code_bytes, (const char *)setup->code);
    read_word(code, "do=", actor.what, sizeof actor.what);
    read_word(code, "at=", actor.at, sizeof actor.at);
    read_word(code, "once=", actor.once, sizeof actor.once);
    read_word(code, "sleep_us=", number, sizeof number);
    actor.sleep_us = strtol(number, NULL, 10);
    read_word(code, "print=", number, sizeof number);
    actor.print = strtol(number, NULL, 10);
    *out_actor = &actor;
    if (strstr(code, "show") != NULL) {
        const char *devices = getenv("CUDA_VISIBLE_DEVICES");
        const char *threads = getenv("OMP_NUM_THREADS");
        (void)printf("devices=%s threads=%s;\n", devices != NULL ? devices : "unset",
                     threads != NULL ? threads : "unset");
        (void)fflush(stdout);
    }
    if (strcmp(actor.at, "create") == 0 && is_due()) {
        misbehave();
        report->fail(report, "RuntimeError", "the model file is missing", "line 1\nline 2");
        return 1;
    }
    return 0;
}

struct own_array {
    const void *buffers[3];
};

static void release_own(struct ArrowArray *array)
{
    struct own_array *own = array->private_data;
    gar_free(own);
    array->release = NULL;
}

static void release_root(struct ArrowArray *array)
{
    for (int64_t i = 0; i < array->n_children; i++) {
        if (array->children[i]->release != NULL) {
            array->children[i]->release(array->children[i]);
        }
        gar_free(array->children[i]);
    }
    gar_free(array->children);
    gar_free(array->private_data);
    array->release = NULL;
}

static void release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void print_much(long bytes)
{
    char block[4096];
    memset(block, 'x', sizeof block);
    block[0] = 0; /* binary, and no newline */
    for (long done = 0; done < bytes; done += (long)sizeof block) {
        (void)!write(done % 8192 == 0 ? 1 : 2, block, sizeof block);
    }
}

/* sum of the first two columns; the third moves through. */
static struct ArrowArray *make_sum(const struct ArrowArray *input, int64_t rows)
{
    struct ArrowArray *sum = gar_calloc(1, (int64_t)sizeof *sum);
    struct own_array *own = gar_calloc(1, (int64_t)sizeof *own);
    /* One place for all results: the engine copies before the next call. */
    static double *values;
    static int64_t capacity;
    if (rows > capacity) {
        gar_free(values);
        values = gar_malloc(rows * (int64_t)sizeof values[0]);
        capacity = rows;
    }
    const double *a = input->children[0]->buffers[1];
    const double *b = input->children[1]->buffers[1];
    for (int64_t i = 0; i < rows; i++) {
        values[i] = a[i] + b[i];
    }
    own->buffers[1] = values;
    *sum = (struct ArrowArray){.length = rows,
                               .n_buffers = 2,
                               .buffers = own->buffers,
                               .release = release_own,
                               .private_data = own};
    return sum;
}

static int test_call(void *unused, struct ArrowArray *input, struct ArrowSchema *out_schema,
                     struct ArrowArray *output, struct gar_actor_report *report)
{
    (void)unused;
    static struct ArrowSchema fields[2];
    static struct ArrowSchema *field_list[2] = {&fields[0], &fields[1]};
    int64_t rows = input->length;
    actor.calls++;
    if (actor.sleep_us > 0) {
        const struct timespec pause = {actor.sleep_us / 1000000, (actor.sleep_us % 1000000) * 1000};
        (void)nanosleep(&pause, NULL);
    }
    print_much(actor.print);
    const double *a = input->children[0]->buffers[1];
    const double at = actor.at[0] != 0 ? strtod(actor.at, NULL) : -1.0;
    bool is_bad = false;
    for (int64_t i = 0; i < rows; i++) {
        is_bad |= a[i] == at;
    }
    fields[0] = (struct ArrowSchema){.format = "g", .name = "sum", .release = release_schema};
    fields[1] = (struct ArrowSchema){.format = "U", .name = "s", .release = release_schema};
    if (is_bad && is_due()) {
        misbehave();
        if (is_what("short")) {
            rows--;
        } else if (is_what("ecc")) {
            report->fail(report, "RuntimeError", "CUDA error: uncorrectable ECC error encountered",
                         NULL);
            return 1;
        } else if (is_what("type")) {
            fields[0].format = "l";
        } else if (is_what("nothing")) {
            return 0;
        } else if (!is_what("stop")) {
            report->fail(report, "ValueError", "bad value\nin a row", "Traceback: here");
            return 1;
        }
    }
    const int64_t columns = input->n_children > 2 ? 2 : 1;
    struct ArrowArray **children = gar_calloc(2, (int64_t)sizeof children[0]);
    const void **none = gar_calloc(1, (int64_t)sizeof none[0]);
    children[0] = make_sum(input, rows);
    if (columns == 2) {
        children[1] = gar_malloc((int64_t)sizeof *children[1]);
        *children[1] =
            *input->children[2]; /* moved: it keeps the input's place until it is copied */
        input->children[2]->release = NULL;
    }
    *output = (struct ArrowArray){.length = rows,
                                  .n_buffers = 1,
                                  .buffers = none,
                                  .n_children = columns,
                                  .children = children,
                                  .release = release_root,
                                  .private_data = none};
    *out_schema = (struct ArrowSchema){
        .format = "+s", .n_children = columns, .children = field_list, .release = release_schema};
    return 0;
}

static void test_destroy(void *unused)
{
    (void)unused;
    (void)printf("destroyed\n");
    (void)fflush(stdout);
}

int main(void)
{
    static const struct gar_actor_class test_class = {.abi = GAR_ACTOR_ABI,
                                                      .name = "test",
                                                      .create = test_create,
                                                      .call = test_call,
                                                      .destroy = test_destroy};
    return gar_actor_worker_run(&test_class);
}
